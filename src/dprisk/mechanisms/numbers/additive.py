"""Noise added to a number: one position on the line for each record."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_size, fail
from dprisk.guarantees import GaussianDP, Guarantee, PureDP
from dprisk.mechanisms.base import Mechanism
from dprisk.mechanisms.numbers.noise import NOT_KNOWN, GaussianNoise, LaplaceNoise, Noise
from dprisk.mechanisms.numbers.positions import Ends, Positioned, WithGaussian, WithLaplace, as_positions, laplace_scale
from dprisk.mechanisms.some_records import as_sensitivity, laplace_curve
from dprisk.mechanisms.tabled import Tabled
from dprisk.tables import as_floats
from dprisk.types import AnyArray, FloatArray, IntArray

NUMBER_ERROR = "95 % error"
LOG_BLOCK = 1 << 20  # likelihoods looked at at once
UNKNOWN_PROMISE = "What truncated Gaussian noise promises of other records is not known; leave the sensitivity out."
LEAST_INSIDE = -690.0  # log of the smallest probability of an interval that floats can still divide


class Additive(Positioned):
    """The record's position plus noise.

    `positions` has a number for each record: what the query answers if the target has that record. A whole number m
    stands for m equally spaced positions from 0 to 1. With an `interval`, outputs are kept in it: `ends="clamp"` moves
    an output outside to the nearer end, `ends="truncate"` draws again until it lies inside, which leaks more than the
    noise alone (`epsilon` tells the true one).
    """

    noise: Noise
    positions: FloatArray

    def __init__(
        self,
        positions: npt.ArrayLike,
        noise: Noise,
        interval: tuple[float, float] | None = None,
        ends: Ends = "clamp",
    ) -> None:
        MechanismError.unless(isinstance(noise, Noise), f"A noise such as LaplaceNoise(1.0) is needed, not {noise!r}.")
        is_count = isinstance(positions, numbers.Number)
        places = _equispaced(as_size(positions)) if is_count else as_positions(positions)
        self._place(places, noise, interval, ends)
        if self.is_truncated and not np.all(self._log_inside > LEAST_INSIDE):
            raise MechanismError("The interval is out of reach of a position: its noise never falls into it.")

    @property
    def _told_by(self) -> dict[str, Any]:
        """With the positions themselves, also where only their number was given: the noise is in their units."""
        return self._arguments | {"positions": self.positions} if self.is_equispaced else self._arguments

    @property
    def is_open(self) -> bool:
        """Whether the output is the noisy number itself."""
        return self.interval is None

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the interval of outputs, infinite if there is none."""
        return self.interval or (-math.inf, math.inf)

    @cached_property
    def _log_inside(self) -> FloatArray:
        """log Pr[output in the interval] for each record, where outputs are drawn again until they are; else 0."""
        if not self.is_truncated:
            return np.zeros(self.size)
        low, high = self.bounds
        with np.errstate(divide="ignore"):
            return np.log(self.noise.between(low - self.positions, high - self.positions))

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        place = self.positions[self._records(records)]
        low, high = self.bounds
        if self.is_truncated:
            return np.clip(place + self.noise.sample_between(low - place, high - place, rng), low, high)
        return np.clip(place + self.noise.sample(place.size, rng), low, high)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        """The log of the density; at a clamped end, of the probability of that end."""
        value = np.atleast_1d(as_floats(outputs, "Outputs", MechanismError))
        low, high = self.bounds
        MechanismError.unless(np.all(np.isfinite(value)), "Outputs must be finite numbers.")
        if not (value.ndim == 1 and np.all((value >= low) & (value <= high))):
            raise MechanismError(f"Outputs of {self!r} lie in [{low:g}, {high:g}], one number each.")
        logs = self.noise.log_density(value[:, None] - self.positions) - self._log_inside
        if self.is_clamped:
            logs[value == low] = self.noise.log_below(low - self.positions)
            logs[value == high] = self.noise.log_above(high - self.positions)
        return logs

    def density(self, at: FloatArray) -> FloatArray:
        """The density of the output, records x places inside the bounds."""
        return np.asarray(np.exp(self.noise.log_density(at - self.positions[:, None]) - self._log_inside[:, None]))

    def mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Pr[low < output <= high | record], records x intervals; with clamped ends, of the output before clamping."""
        inside = self.noise.between(low - self.positions[:, None], high - self.positions[:, None])
        return inside / np.exp(self._log_inside)[:, None] if self.is_truncated else inside

    def viewed(self, values: IntArray) -> Additive:
        """Noise on the positions of the records that are seen."""
        return self.labelled(None).replace(positions=self.positions[values])

    def binned(self, edges: FloatArray) -> Binned:
        """The mechanism that tells only between which of the edges the output lies (the ends of `bounds` are added)."""
        return Binned(self, edges)

    @cached_property
    def epsilon(self) -> float:
        if self.spread == 0 or self.is_open:
            return self.noise.epsilon(self.spread)
        return max(float(np.ptp(logs, axis=1).max()) for logs in self._extremes())

    def _extremes(self) -> Iterator[FloatArray]:
        for start in range(0, self._telling.size, step := max(1, LOG_BLOCK // self.size)):
            yield self.noise.log_density(self._telling[start : start + step, None] - self.positions) - self._log_inside
        if self.is_clamped:
            yield self.log_likelihood(self.bounds)

    @property
    def _telling(self) -> FloatArray:
        """Outputs with the largest ratio of densities for every pair of records."""
        return fail(NOT_KNOWN, MechanismError)

    def delta_at(self, epsilon: float) -> float:
        """The largest over pairs of records, whose ratio of densities rises or falls from one end to the other."""
        epsilon = as_epsilon(epsilon)
        if self.spread == 0 or epsilon >= self.epsilon:
            return 0.0
        place = np.unique(self.positions, return_index=True)[1]
        rows = (self._hockey_stick(one, place, epsilon).max() for one in place)
        return float(max(rows))

    def _hockey_stick(self, one: int, others: IntArray, epsilon: float) -> FloatArray:
        """sum (P(theta | one) - e^epsilon P(theta | other))_+ for one record against others."""
        low, high = self.bounds
        inside = self._log_inside[one], self._log_inside[others]
        x, y = float(self.positions[one]), self.positions[others]
        threshold = np.clip(self._ratio_reaches(x, y, epsilon + inside[0] - inside[1]), low, high)
        above = x >= y  # where it is the upper outputs that speak for `one`
        parts = [(np.where(above, threshold, low), np.where(above, high, threshold))]
        if self.is_clamped:
            far = np.full(y.size, np.inf)
            parts += [(-far, np.full(y.size, low)), (np.full(y.size, high), far)]
        total = np.zeros(y.size)
        for start, end in parts:
            with np.errstate(divide="ignore"):
                mine, other = (np.log(self.noise.between(start - at, end - at)) for at in (x, y))
            total += np.maximum(np.exp(mine - inside[0]) - np.exp(np.minimum(other - inside[1] + epsilon, 1.0)), 0.0)
        return np.where(x == y, 0.0, total)

    def _ratio_reaches(self, x: float, y: FloatArray, level: FloatArray) -> FloatArray:
        """The output at which log f(output - x) - log f(output - y) reaches a level."""
        return fail(NOT_KNOWN, MechanismError)


class Laplace(WithLaplace, Additive):
    """Laplace noise (RAD Example 4.7). Give its `scale`, or the `epsilon` it has for these positions: spread / scale.

    A whole number of positions stands for so many from 0 to 1, and the scale is in these units: on records 0, 1, 2, ...
    it is `Laplace(range(10), scale=2)`, not `Laplace(10, scale=2)`.

    Where other records than these are possible, whose positions may be farther apart, give that distance as the
    `sensitivity`: the epsilon that it is made with is then promised of all of them (`nominal_epsilon`, the parameter),
    and `epsilon` is the smaller one of these positions.

    >>> Laplace([0.0, 0.1, 0.45, 1.0], scale=0.2).epsilon
    5.0
    >>> Laplace([40, 41], epsilon=1.0, sensitivity=100).epsilon
    0.01
    """

    noise: LaplaceNoise

    def __init__(
        self,
        positions: npt.ArrayLike,
        epsilon: float | None = None,
        *,
        scale: float | None = None,
        sensitivity: float | None = None,
        interval: tuple[float, float] | None = None,
        ends: Ends = "clamp",
    ) -> None:
        spread = 1.0 if isinstance(positions, numbers.Number) else float(np.ptp(as_positions(positions)))
        self.sensitivity = None if sensitivity is None else as_sensitivity(sensitivity, spread)
        farthest = spread if self.sensitivity is None else self.sensitivity
        super().__init__(positions, LaplaceNoise(laplace_scale(epsilon, scale, farthest, 1e-99)), interval, ends)

    def viewed(self, values: IntArray) -> Laplace:
        """The scale stays; what epsilon that is depends on the positions."""
        return Laplace(self.positions[values], scale=self.scale, interval=self.interval, ends=self.ends)

    @property
    def scale(self) -> float:
        """The scale of the noise, its mean size."""
        return self.noise.scale

    def error(self) -> dict[str, float]:
        return {NUMBER_ERROR: self.scale * math.log(20)}

    def delta_at(self, epsilon: float) -> float:
        if not self.is_open:
            return super().delta_at(epsilon)
        return max(0.0, -math.expm1((as_epsilon(epsilon) - self.epsilon) / 2))

    def guarantee(self) -> Guarantee:
        """The curve of Laplace noise, which clamping keeps: it is post-processing. Drawing again leaves the epsilon."""
        return PureDP(self.epsilon) if self.is_truncated else laplace_curve(self.noise.epsilon(self.spread))

    @property
    def guarantee_is_exact(self) -> bool:
        """Unless outputs are kept in an interval that does not hold all positions."""
        return not self._wavers

    @property
    def _telling(self) -> FloatArray:
        low, high = self.bounds
        return np.unique(np.r_[low, high, self.positions[(self.positions > low) & (self.positions < high)]])

    def _ratio_reaches(self, x: float, y: FloatArray, level: FloatArray) -> FloatArray:
        """Between the two positions the log ratio rises from -|x - y| / scale to the same with +."""
        reach = np.abs(x - y) / self.scale
        middle = (x + y) / 2 + np.sign(x - y) * level * self.scale / 2
        beyond = np.where(level >= reach, np.inf, -np.inf) * np.where(x >= y, 1, -1)
        return np.where(np.abs(level) < reach, middle, beyond)


class Gaussian(WithGaussian, Additive):
    """Gaussian noise of standard deviation sigma (RAD Example 4.8). Unbounded, it is epsilon-DP for no epsilon.

    A whole number of positions stands for so many from 0 to 1, and sigma is in these units: on records 0, 1, 2, ... it
    is `Gaussian(range(10), sigma=2)`, not `Gaussian(10, sigma=2)`. (`DiscreteGaussian(10, sigma=2)` is on 0 to 9.)

    A `sensitivity` is the distance that the positions of other records than these may have, as of `Laplace`.

    >>> Gaussian([0.0, 0.1, 0.45, 1.0], sigma=0.2).guarantee()
    GaussianDP(mu=5)
    >>> Gaussian(10, sigma=0.2)
    Gaussian(positions=<10 numbers from 0 to 1>, sigma=0.2)
    """

    noise: GaussianNoise

    def __init__(
        self,
        positions: npt.ArrayLike,
        sigma: float,
        *,
        sensitivity: float | None = None,
        interval: tuple[float, float] | None = None,
        ends: Ends = "clamp",
    ) -> None:
        super().__init__(positions, GaussianNoise(sigma), interval, ends)
        self.sensitivity = None if sensitivity is None else as_sensitivity(sensitivity, self.spread)
        MechanismError.unless(sensitivity is None or not self.is_truncated, UNKNOWN_PROMISE)

    def viewed(self, values: IntArray) -> Gaussian:
        """Sigma stays; what it promises of other records is no question of those that are seen."""
        return Gaussian(self.positions[values], self.sigma, interval=self.interval, ends=self.ends)

    def averaged(self, times: int) -> Mechanism | None:
        """The mean of the reports is sufficient: its noise is smaller by sqrt(times)."""
        return Gaussian(self.positions, self.sigma / math.sqrt(times)) if self.is_open else None

    def error(self) -> dict[str, float]:
        return {NUMBER_ERROR: 1.959963984540054 * self.sigma}

    def delta_at(self, epsilon: float) -> float:
        return GaussianDP(self.spread / self.sigma).delta_at(epsilon) if self.is_open else super().delta_at(epsilon)

    def guarantee(self) -> Guarantee:
        """mu-Gaussian DP with mu = spread / sigma; drawing again until the output is in range leaves only epsilon."""
        return PureDP(self.epsilon) if self.is_truncated else GaussianDP(self.spread / self.sigma)

    @property
    def guarantee_is_exact(self) -> bool:
        """Unless outputs are kept in an interval, beyond which they would tell more."""
        return self.is_open

    @property
    def _telling(self) -> FloatArray:
        return np.array(self.bounds)

    def _ratio_reaches(self, x: float, y: FloatArray, level: FloatArray) -> FloatArray:
        apart = (x - y) / self.sigma
        shift = np.divide(level, apart, out=np.zeros(y.size), where=apart != 0)
        return np.asarray((x + y) / 2 + shift * self.sigma)


class Binned(Tabled):
    """An additive mechanism of which only the bin of the output is told: post-processing, so its risk is no larger.

    Without an interval, or where outputs are clamped, the outputs beyond the last edges are two more bins.
    """

    def __init__(self, mechanism: Additive, edges: FloatArray) -> None:
        low, high = mechanism.bounds
        inner = np.unique(np.clip(edges, low, high))
        outer = (low, high) if mechanism.is_truncated else (-np.inf, low, high, np.inf)
        self.mechanism, self.size, self.labels = mechanism, mechanism.size, mechanism.labels
        self.edges = np.unique(np.concatenate([inner, outer]))

    @property
    def n_outputs(self) -> float:
        return float(self.edges.size - 1)

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        return self.mechanism.mass(self.edges[:-1][outputs], self.edges[1:][outputs])

    def row(self, record: int) -> FloatArray:
        return np.asarray(self.columns(slice(None))[record])


def _equispaced(size: int) -> FloatArray:
    return np.arange(size, dtype=np.float64) / max(1, size - 1)
