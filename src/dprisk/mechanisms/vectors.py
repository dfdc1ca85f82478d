"""Noise on vectors: one mean vector for each record, independent noise on each coordinate.

Histograms, marginals and the gradient of one step of DP-SGD are released this way.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy

from dprisk.errors import MechanismError, as_epsilon, as_noise_epsilon, as_scale, as_whole
from dprisk.guarantees import GaussianDP, Guarantee
from dprisk.mechanisms.base import Mechanism
from dprisk.mechanisms.local.histogram import SHE, histogram_curve, histogram_profile
from dprisk.mechanisms.numbers.additive import Gaussian, Laplace
from dprisk.mechanisms.some_records import ENOUGH, BySensitivity, as_sensitivity, laplace_curve
from dprisk.tables import as_floats
from dprisk.types import AnyArray, FloatArray, IntArray
from dprisk.values import Parameter

RANK = 1e-12  # directions in which the means spread less than this part of the widest are left out
SOME = 64  # so many records show whether the means lie in few directions
KEPT = 1e-10  # a distance may change by this part of the noise, or a hundredth of it of itself, when they are
QUICK = 1 << 21  # numbers in the means up to which the spread is found within about a second
STEPS = 1e-12  # by so much of themselves the steps of histogram encoding may differ


class Aligned(Mechanism):
    """What tells how far an output points towards each record: noise on vectors, the gradients of trainings."""

    @abstractmethod
    def alignments(self, outputs: npt.ArrayLike, norms: bool = False) -> FloatArray:
        """<output, mean> of each output (rows) and record (columns), less half of <mean, mean> if `norms`."""


class VectorNoise(BySensitivity):
    """The record's mean vector plus noise; outputs are the rows of a matrix."""

    means: FloatArray
    _metric: str

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return int(self.means.shape[1])

    def _set_means(self, means: npt.ArrayLike, sensitivity: float | None) -> None:
        array = as_floats(means, "The means", MechanismError)
        MechanismError.unless(
            array.ndim == 2 and array.size > 0,
            f"The means have a row for each record, a column for each coordinate, got {array.shape}.",
        )
        MechanismError.unless(np.all(np.abs(array) <= 1e50), "The means must be finite numbers, at most 1e50.")
        self.means, self.size = array, array.shape[0]
        self.sensitivity = None if sensitivity is None else as_sensitivity(sensitivity, self.spread)

    def on_means(self, means: npt.ArrayLike) -> Self:
        """The same noise on the means of other records, whatever their distance."""
        return self.labelled(None).replace(means=means, sensitivity=None)

    def viewed(self, values: IntArray) -> Self:
        """The same noise on the means of the records that are seen."""
        return self.on_means(self.means[values])

    def laws(self) -> tuple[Mechanism, IntArray]:
        """One record for each mean: a histogram of few cells has few, however many records there are."""
        return self._laws or super().laws()

    @cached_property
    def _laws(self) -> tuple[Mechanism, IntArray] | None:
        distinct, place = _distinct_rows(self.means)
        return None if len(distinct) == self.size else (self.on_means(distinct).sufficient(), place)

    @cached_property
    def spread(self) -> float:
        """The largest distance between the means of two records."""
        if self._step is not None:  # two coordinates differ, which takes no look at all pairs
            return self._step * (2 if self._metric == "cityblock" else math.sqrt(2))
        return max(float(rows.max()) for rows in self._distances(np.unique(self.means, axis=0)))

    @cached_property
    def _step(self) -> float | None:
        """h > 0 if the means are those of histogram encoding: any two that differ do by h in two coordinates."""
        return _one_hot_step(_differing(_distinct_rows(self.means)[0]))

    @property
    def guarantee_is_quick(self) -> bool:
        """The spread compares all means with each other."""
        return self.means.size <= QUICK

    def _distances(self, points: FloatArray) -> Iterator[FloatArray]:
        """The distances between all pairs of points, some rows at a time."""
        step = max(1, (1 << 20) // len(points))
        for start in range(0, len(points), step):
            yield scipy.spatial.distance.cdist(points[start : start + step], points, self._metric)

    def rows(self, outputs: npt.ArrayLike) -> FloatArray:
        """Outputs, checked: one row of `dimension` numbers for each."""
        rows = as_floats(outputs, "Outputs", MechanismError)
        if not (rows.ndim == 2 and rows.shape[1] == self.dimension):
            raise MechanismError(f"Each output is a row of {self.dimension} numbers, got shape {rows.shape}.")
        MechanismError.unless(np.all(np.isfinite(rows)), "Outputs must be finite numbers.")
        return rows


class VectorGaussian(VectorNoise, Aligned):
    """Gaussian noise of standard deviation sigma on each coordinate, in `steps` releases of the same means.

    The mean of the releases is sufficient, so that is the output: its noise has standard deviation sigma / sqrt(steps).
    Full-batch DP-SGD with gradients that do not change is such a release. It is epsilon-DP for no epsilon. A
    `sensitivity` is the distance that the means of other records than these may have, as of `Laplace`.

    >>> VectorGaussian([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], sigma=2.0, steps=4).noise
    1.0
    """

    _metric = "euclidean"

    def __init__(self, means: npt.ArrayLike, sigma: float, steps: int = 1, sensitivity: float | None = None) -> None:
        self._set_means(means, sensitivity)
        self.sigma, self.steps = as_scale("sigma", sigma), as_whole("steps", steps)

    @property
    def parameter(self) -> Parameter:
        return Parameter.noise("sigma", self.sigma)

    @property
    def noise(self) -> float:
        """The standard deviation of the output: sigma / sqrt(steps)."""
        return self.sigma / math.sqrt(self.steps)

    @cached_property
    def epsilon(self) -> float:
        return math.inf if self.spread > 0 else 0.0

    def pairwise_epsilon(self) -> FloatArray:
        rows = [np.where(distances > 0, math.inf, 0.0) for distances in self._distances(self.means)]
        return np.concatenate(rows)

    def delta_at(self, epsilon: float) -> float:
        return self.guarantee().delta_at(epsilon)

    def guarantee(self) -> Guarantee:
        """mu-Gaussian DP, mu the largest distance between two means over the noise: only the distance counts."""
        return GaussianDP(self.spread / self.noise)

    guarantee_is_exact = True

    def _promise(self) -> Guarantee:
        return GaussianDP(self.farthest / self.noise)

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        means = self.means[self._records(records)]
        return means + rng.normal(scale=self.noise, size=means.shape)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        standard: FloatArray = scipy.spatial.distance.cdist(self.rows(outputs), self.means) / self.noise
        return -(standard**2) / 2 - self.dimension * math.log(self.noise * math.sqrt(2 * math.pi))

    def alignments(self, outputs: npt.ArrayLike, norms: bool = False) -> FloatArray:
        half = (self.means**2).sum(axis=1) / 2 if norms else 0.0
        aligned: FloatArray = self.rows(outputs) @ self.means.T - half
        return aligned

    def averaged(self, times: int) -> Mechanism:
        """More releases of the same means."""
        return VectorGaussian(self.means, self.sigma, self.steps * times).sufficient()

    def _simpler(self) -> Mechanism | None:
        """The output's coordinates in the span of the differences of the means, at most one fewer than records.

        Noise orthogonal to that span tells nothing. On a line it is the one-dimensional `Gaussian`. None if too few
        directions to matter could be left out, or one that counts would be.
        """
        return self._in_the_span

    @cached_property
    def _in_the_span(self) -> Mechanism | None:
        distinct, place = np.unique(self.means, axis=0, return_inverse=True)
        place, moved = place.ravel(), distinct - distinct[0]  # records with equal means stay exactly equal
        if self.dimension < 2 * len(distinct) and np.linalg.matrix_rank(moved[1:SOME]) == SOME - 1:
            return None  # many records in many directions, few of which could be left out
        if self.dimension > 1:
            triangle, order = scipy.linalg.qr(moved.T, mode="r", pivoting=True)  # in the basis Q, farthest mean first
            spread = np.abs(np.diagonal(triangle))
            rank = max(1, int(np.count_nonzero(spread > RANK * spread[0])))
            if rank == self.dimension:
                return None
            moved = triangle[:rank, np.argsort(order)].T
            for before, after in zip(self._distances(distinct), self._distances(moved), strict=True):
                if not np.allclose(before, after, rtol=KEPT / 100, atol=KEPT * self.noise):
                    return None
        moved = moved[place]
        return Gaussian(moved[:, 0], self.noise) if moved.shape[1] == 1 else VectorGaussian(moved, self.noise)


class VectorLaplace(VectorNoise):
    """Laplace noise of the same scale on each coordinate: epsilon is the largest L1 distance of two means over it.

    A `sensitivity` is the distance that other records than these may have, as of `Laplace`.

    >>> VectorLaplace([[1.0, 0.0], [0.0, 1.0]], scale=4.0).epsilon
    0.5
    """

    _metric = "cityblock"

    def __init__(self, means: npt.ArrayLike, scale: float, sensitivity: float | None = None) -> None:
        self._set_means(means, sensitivity)
        self.scale = as_scale("scale", scale)

    @property
    def nominal_epsilon(self) -> float:
        """What the noise promises of any record: farthest / scale."""
        return self.farthest / self.scale

    def _promise(self) -> Guarantee:
        return laplace_curve(self.nominal_epsilon)

    @property
    def parameter(self) -> Parameter:
        return Parameter.epsilon(self.nominal_epsilon)

    def with_parameter(self, value: float) -> Self:
        epsilon = as_epsilon(value)
        if self.farthest == 0:
            return self
        return self.replace(scale=self.farthest / as_noise_epsilon("Laplace noise", epsilon))

    @cached_property
    def epsilon(self) -> float:
        return self.spread / self.scale

    def pairwise_epsilon(self) -> FloatArray:
        return np.concatenate(list(self._distances(self.means))) / self.scale

    def delta_at(self, epsilon: float) -> float:
        """That of `SHE` if the means are those of histogram encoding; otherwise 1 - exp((epsilon - own epsilon) / 2).

        The latter is the smallest delta if two of the farthest records differ in one coordinate, at least it otherwise:
        moving the mean coordinate by coordinate is a chain of tests, and on a line the chain is as easy to test as its
        ends.
        """
        epsilon = as_epsilon(epsilon)
        if self._step is not None:
            return float(histogram_profile(self.epsilon, np.array(epsilon)))
        return max(0.0, -math.expm1((epsilon - self.epsilon) / 2))

    def guarantee(self) -> Guarantee:
        """The curve of the profile `delta_at`."""
        return laplace_curve(self.epsilon) if self._step is None else histogram_curve(self.epsilon)

    @property
    def guarantee_is_exact(self) -> bool:
        """Whether the records are those of histogram encoding, or the two farthest differ in one coordinate only."""
        along = float(np.ptp(self.means, axis=0).max())
        return self._step is not None or self.spread <= along * ENOUGH

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        means = self.means[self._records(records)]
        return means + rng.laplace(scale=self.scale, size=means.shape)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        far: FloatArray = scipy.spatial.distance.cdist(self.rows(outputs), self.means, self._metric)
        return -far / self.scale - self.dimension * math.log(2 * self.scale)

    def _simpler(self) -> Mechanism | None:
        """The coordinates in which records differ; if that is one, the one-dimensional `Laplace`.

        If each record moves a coordinate of its own by the same step h, it is histogram encoding: in units of h the
        noise has the scale 2 / epsilon of `SHE` with epsilon = 2 h / scale.
        """
        moved = _differing(self.means)
        if moved.shape[1] <= 1:
            return Laplace(moved[:, 0] if moved.size else np.zeros(self.size), scale=self.scale)
        step = _one_hot_step(moved)
        if step is not None:
            return SHE(self.size, 2 * step / self.scale)
        return None if moved.shape[1] == self.dimension else VectorLaplace(moved, self.scale)


def _distinct_rows(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """The rows of a matrix without repetitions, and where among them each is.

    Found by a number made of each row's bits, several times as fast as by sorting the rows; checked, and sorted if two
    rows happen to have the same.
    """
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # -0.0 is 0.0
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    secret = np.random.default_rng(0).integers(0, 1 << 63, size=rows.shape[1], dtype=np.uint64)
    _, first, place = np.unique(
        ((bits ^ (bits >> np.uint64(33))) * secret).sum(axis=1), return_index=True, return_inverse=True
    )
    if not np.array_equal(rows[first][place], rows):
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        return distinct, place.ravel()
    return rows[first], place


def _differing(means: FloatArray) -> FloatArray:
    """The coordinates in which some means differ."""
    return means[:, np.any(means != means[0], axis=0)]


def _one_hot_step(means: FloatArray) -> float | None:
    """h > 0 if, up to the origin, the order and the signs of the coordinates, the means are h times the unit vectors.

    Then every coordinate has two values, one of which a single record has, another record in each coordinate.
    """
    records, dimension = means.shape
    if records != dimension:
        return None
    usual = np.median(means, axis=0) if records > 2 else means[np.arange(2)[::-1], np.arange(2)]
    own = means != usual
    if not (np.all(own.sum(axis=0) == 1) and np.all(own.sum(axis=1) == 1)):
        return None
    steps = np.abs((means - usual)[own])
    return float(steps.max()) if np.ptp(steps) <= STEPS * steps.max() else None


def as_vector_gaussian(mechanism: Mechanism) -> VectorGaussian | None:
    """Gaussian noise on numbers or vectors as a `VectorGaussian`; None for every other mechanism."""
    if isinstance(mechanism, Gaussian):
        return VectorGaussian(mechanism.positions[:, None], mechanism.sigma) if mechanism.is_open else None
    return mechanism if isinstance(mechanism, VectorGaussian) else None
