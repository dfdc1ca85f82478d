"""What the attacker believes about a record that may be any number in an interval."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dprisk.errors import PriorError, as_ends, as_number
from dprisk.tables import as_floats, listed
from dprisk.types import FloatArray
from dprisk.values import Value

NODES = 3  # of Gauss and Legendre in each bin
KERNELS = 2000  # distinct values up to which a kernel estimate keeps every one


def _unlisted(density: Density) -> Any:
    raise PriorError(
        f"{density!r} is for any number in an interval, and this takes records that can be listed: give a Prior over "
        "some of them."
    )


class Density(Value):
    """A probability density on [low, high]: the prior of a record that is any number there.

    `Density.uniform`, `.beta`, `.from_pdf` and `.from_data` make the usual ones. What takes a list of records refuses a
    density in one sentence.
    """

    low: float
    high: float
    size = math.inf
    labels = None
    collision_probability = 0.0
    weights = sorted_weights = support = support_size = entropy = property(_unlisted)
    is_uniform = is_uniform_on_support = False
    slack = 1e-12  # by how much `below` may be wrong at most

    def positions(self) -> FloatArray:
        """Refused, as the weights are."""
        return np.asarray(_unlisted(self))

    @abstractmethod
    def below(self, z: FloatArray) -> FloatArray:
        """The probability of numbers up to z, 0 below the interval and 1 above it."""

    @abstractmethod
    def nodes(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Places and weights, bins x nodes: sum_q w_iq g(z_iq) is the integral of pi g over bin i for smooth g."""

    @abstractmethod
    def extremes(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest density in each bin; the largest may be infinite."""

    def trend(self, edges: FloatArray) -> FloatArray:
        """1 where the density rises throughout a bin, -1 where it falls, 0 where neither is known."""
        return np.zeros(edges.size - 1)

    @abstractmethod
    def describe(self) -> str:
        """In a few words, for reports."""

    @property
    def turns(self) -> tuple[float, ...]:
        """Where the density turns from rising to falling or back, as far as that is known."""
        return ()

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent records."""
        edges = np.linspace(self.low, self.high, 4097)
        mass = self.nodes(edges)[1].sum(axis=1)
        total = np.r_[0.0, np.cumsum(mass)]
        return np.interp(rng.random(size), total / total[-1], edges)

    @staticmethod
    def uniform(low: float = 0.0, high: float = 1.0) -> Uniform:
        """Every number of the interval equally likely."""
        return Uniform(low, high)

    @staticmethod
    def beta(alpha: float, beta: float, low: float = 0.0, high: float = 1.0) -> Beta:
        """The beta distribution, stretched to the interval."""
        return Beta(alpha, beta, low, high)

    @staticmethod
    def from_pdf(pdf: Callable[[FloatArray], FloatArray], low: float, high: float) -> Smooth:
        """Any smooth density, called with arrays; it must integrate to 1 over the interval."""
        return Smooth(pdf, low, high)

    @staticmethod
    def from_data(values: Iterable[Any], low: float, high: float, bandwidth: float | None = None) -> Smooth:
        """A Gaussian kernel estimate from observed values, cut off at the ends of the interval and rescaled.

        Without a bandwidth it is Silverman's. More than 2000 distinct values are first rounded to 2000 steps.
        """
        return Smooth(_kernel_estimate(values, low, high, bandwidth), low, high, "kernel estimate")

    def _summary(self) -> str:
        return f"Density({self.describe()} on [{self.low:g}, {self.high:g}])"


class Uniform(Density):
    """Every number of the interval equally likely."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = as_ends(low, high, PriorError)

    def below(self, z: FloatArray) -> FloatArray:
        return np.clip((z - self.low) / (self.high - self.low), 0.0, 1.0)

    def nodes(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        places, weights = _gauss(edges)
        return places, weights / (self.high - self.low)

    def extremes(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        level = np.full(edges.size - 1, 1 / (self.high - self.low))
        return level, level

    def describe(self) -> str:
        return "uniform"


class Beta(Density):
    """The beta distribution, stretched to the interval. Its density may be infinite at the ends."""

    def __init__(self, alpha: float, beta: float, low: float, high: float) -> None:
        self.low, self.high = as_ends(low, high, PriorError)
        self.alpha, self.beta_ = (as_number(name, value) for name, value in (("alpha", alpha), ("beta", beta)))
        if not (min(self.alpha, self.beta_) >= 0.01 and max(self.alpha, self.beta_) <= 1e6):
            raise PriorError(f"alpha and beta must lie in [0.01, 1e6], got {alpha:g} and {beta:g}")

    def below(self, z: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.betainc(self.alpha, self.beta_, self._unit(z)))

    def nodes(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """In the scale of the distribution function, where no density is infinite."""
        share = self.below(edges)
        places, weights = _gauss(share)
        z = scipy.special.betaincinv(self.alpha, self.beta_, np.clip(places, 0.0, 1.0))
        return np.clip(self.low + (self.high - self.low) * z, edges[:-1, None], edges[1:, None]), weights

    def extremes(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Those at the ends of the bin: the turn is an edge."""
        at = self._pdf(edges)
        return np.minimum(at[:-1], at[1:]), np.maximum(at[:-1], at[1:])

    def trend(self, edges: FloatArray) -> FloatArray:
        at = self._pdf(edges)
        return np.where(at[1:] > at[:-1], 1.0, np.where(at[1:] < at[:-1], -1.0, 0.0))

    def _pdf(self, edges: FloatArray) -> FloatArray:
        unit = self._unit(edges)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = (self.alpha, unit), (self.beta_, 1 - unit)
            logs = [0.0 if power == 1 else (power - 1) * np.log(part) for power, part in factors]
        scale = scipy.special.betaln(self.alpha, self.beta_)
        at = np.exp(np.nan_to_num(logs[0] + logs[1], nan=0.0, posinf=np.inf) - scale)
        return np.broadcast_to(at / (self.high - self.low), unit.shape)

    def _unit(self, z: FloatArray) -> FloatArray:
        return np.clip((z - self.low) / (self.high - self.low), 0.0, 1.0)

    @property
    def turns(self) -> tuple[float, ...]:
        rise, fall = self.alpha - 1, self.beta_ - 1
        return (self.low + (self.high - self.low) * rise / (rise + fall),) if rise * fall > 0 else ()

    def describe(self) -> str:
        return f"beta({self.alpha:g}, {self.beta_:g})"


class Smooth(Density):
    """A density given by a function, taken to be smooth on the scale of a bin."""

    slack = 1e-9

    def __init__(self, pdf: Callable[[FloatArray], FloatArray], low: float, high: float, name: str = "density") -> None:
        self.low, self.high = as_ends(low, high, PriorError)
        PriorError.unless(callable(pdf), f"The density is a function of an array of numbers, not {pdf!r}.")
        self.pdf_given, self.name, self.total = pdf, name, 1.0
        grid = np.linspace(self.low, self.high, 1025)
        try:
            at = np.asarray(pdf(grid[1:-1]), dtype=float)
        except Exception as problem:
            message = f"The density is called with an array of numbers and raised {type(problem).__name__}: {problem}"
            raise PriorError(message) from problem
        if not (at.shape == (1023,) and np.all(np.isfinite(at) & (at >= 0))):
            raise PriorError("The density must give, for an array of numbers, as many finite ones of at least 0.")
        coarse, fine = (float(self.nodes(edges)[1].sum()) for edges in (grid[::2], grid))
        if not abs(fine - 1) < 1e-6:
            raise PriorError(f"The density integrates to {fine:.8g} over [{self.low:g}, {self.high:g}], not to 1.")
        PriorError.unless(abs(fine - coarse) < 1e-9, "The density is not smooth enough to be integrated.")
        self.total = fine

    def pdf(self, z: FloatArray) -> FloatArray:
        """The density, rescaled to integrate to 1 to the last digit."""
        return np.asarray(self.pdf_given(z), dtype=float) / self.total

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """A lattice, and the probability below each of its places."""
        edges = np.linspace(self.low, self.high, 4097)
        return edges, np.r_[0.0, np.cumsum(self.nodes(edges)[1].sum(axis=1))]

    def below(self, z: FloatArray) -> FloatArray:
        """From the lattice up to the last of its places before z, and by Gauss from there."""
        edges, mass = self._table
        inside = np.clip(z, self.low, self.high)
        at = np.clip(np.searchsorted(edges, inside, side="right") - 1, 0, edges.size - 2)
        places, weights = _gauss_between(edges[at], inside)
        return np.asarray(mass[at] + (weights * self.pdf(places.ravel()).reshape(places.shape)).sum(axis=1))

    def nodes(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        places, weights = _gauss(edges)
        return places, weights * self.pdf(places.ravel()).reshape(places.shape)

    def extremes(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Among the ends and five places between, with a tenth of their spread to spare."""
        inside = edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0.0, 1.0, 7)
        inside = np.clip(inside, self.low + 1e-12 * (self.high - self.low), self.high - 1e-12 * (self.high - self.low))
        at = self.pdf(inside.ravel()).reshape(inside.shape)
        spare = np.ptp(at, axis=1) / 10
        return np.maximum(at.min(axis=1) - spare, 0.0), at.max(axis=1) + spare

    def describe(self) -> str:
        return self.name


def _gauss(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss and Legendre in each bin, for a density of 1."""
    return _gauss_between(edges[:-1], edges[1:])


def _gauss_between(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for any intervals."""
    node, weight = np.polynomial.legendre.leggauss(NODES)
    half = (right - left)[:, None] / 2
    return left[:, None] + half * (1 + node), half * weight


@dataclass(frozen=True, eq=False, repr=False)
class Kernels(Value):
    """A sum of normal densities of one width, each with its share."""

    centres: FloatArray
    share: FloatArray
    width: float

    def __call__(self, z: FloatArray) -> FloatArray:
        standard = (np.asarray(z)[:, None] - self.centres) / self.width
        return np.asarray(np.exp(-(standard**2) / 2) @ self.share) / (self.width * math.sqrt(2 * math.pi))


def _kernel_estimate(values: Iterable[Any], low: float, high: float, bandwidth: float | None) -> Kernels:
    low, high = as_ends(low, high, PriorError)
    data = as_floats(listed(values), "The observed values", PriorError)
    PriorError.unless(not bool(np.any(np.isnan(data))), "Some observed values are missing; drop or fill them first.")
    PriorError.unless(data.ndim == 1 and data.size > 1, "A kernel estimate needs at least two observed values.")
    PriorError.unless(np.all((data >= low) & (data <= high)), f"Values must lie in [{low:g}, {high:g}].")
    centres, counts = np.unique(data, return_counts=True)
    if centres.size > KERNELS:
        step = (high - low) / KERNELS
        centres, counts = np.unique(low + step * np.round((data - low) / step), return_counts=True)
    PriorError.unless(bandwidth is not None or np.ptp(data) > 0, "All values coincide; give a bandwidth.")
    width = _silverman(data) if bandwidth is None else as_number("bandwidth", bandwidth)
    PriorError.unless(0 < width < math.inf, f"The bandwidth must be finite and above 0, got {width:g}.")
    inside = scipy.special.ndtr((high - centres) / width) - scipy.special.ndtr((low - centres) / width)
    return Kernels(centres, counts / (counts * inside).sum(), width)


def _silverman(data: FloatArray) -> float:
    quarters = np.subtract(*np.percentile(data, [75, 25])) / 1.34
    spread = min(float(data.std()), float(quarters)) if quarters > 0 else float(data.std())
    return float(0.9 * spread * data.size**-0.2)
