"""Noise on the line: the distributions that are added to a number."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from dprisk.errors import MechanismError, as_scale, fail
from dprisk.types import FloatArray
from dprisk.values import Value

NOT_KNOWN = "Which epsilon a noise given by its density keeps is not known, only its risk."
SHORT = 0.03  # the mass of an interval over which a density changes by less is integrated: its ends are too near
GAUSS_3 = (
    (-math.sqrt(0.6), 5 / 18),
    (0.0, 8 / 18),
    (math.sqrt(0.6), 5 / 18),
)  # Gauss-Legendre on [-1, 1], summing to 1


class Noise(Value):
    """A distribution with a density on the whole line."""

    @abstractmethod
    def log_density(self, x: FloatArray) -> FloatArray:
        """log f(x)."""

    @abstractmethod
    def log_below(self, x: FloatArray) -> FloatArray:
        """log Pr[noise <= x]."""

    @abstractmethod
    def log_above(self, x: FloatArray) -> FloatArray:
        """log Pr[noise > x]."""

    @abstractmethod
    def between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Pr[low < noise <= high], for low <= high, either of which may be infinite."""

    @abstractmethod
    def quantile(self, share: FloatArray) -> FloatArray:
        """The x with Pr[noise <= x] = share."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Independent draws."""

    def epsilon(self, distance: float) -> float:
        """The largest log ratio of the densities of the noise and the noise moved by a distance."""
        return 0.0 if distance == 0 else fail(NOT_KNOWN, MechanismError)

    def sample_between(self, low: FloatArray, high: FloatArray, rng: np.random.Generator) -> FloatArray:
        """A draw for each pair of ends, given that it lies between them."""
        start = np.exp(self.log_below(low))
        drawn = self.quantile(start + rng.random(low.size) * self.between(low, high))
        return np.clip(drawn, low, high)


class SymmetricNoise(Noise):
    """Noise whose density rises to 0 and falls behind it alike, with a log-concave density."""

    @property
    @abstractmethod
    def width(self) -> float:
        """The parameter of scale."""

    def log_above(self, x: FloatArray) -> FloatArray:
        return self.log_below(-x)

    @abstractmethod
    def variation(self, distance: FloatArray) -> FloatArray:
        """The total variation between the noise and the noise shifted by a distance."""

    @abstractmethod
    def tilt(
        self, positions: FloatArray, centre: FloatArray, at: FloatArray, inside: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """log f(at - position) - log f(at - centre), and its slope in `at`.

        `inside` is a point of the interval that `at` is taken from. On an interval that holds no position but at its
        ends the slope is constant: the densities are exponentials of straight lines, times a factor they all share.
        """

    @abstractmethod
    def bend(self, centre: FloatArray, inside: FloatArray) -> FloatArray:
        """k, where every sum of tilted densities is a + b exp(k x) on the interval around `inside`; 0 if none fits."""

    def sample_between(self, low: FloatArray, high: FloatArray, rng: np.random.Generator) -> FloatArray:
        flip = low > 0  # the lower tail has all its digits, the upper tail not
        drawn = super().sample_between(np.where(flip, -high, low), np.where(flip, -low, high), rng)
        return np.where(flip, -drawn, drawn)


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceNoise(SymmetricNoise):
    """Density exp(-abs(x) / scale) / (2 scale)."""

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_scale("scale", self.scale))

    @property
    def width(self) -> float:
        return self.scale

    def log_density(self, x: FloatArray) -> FloatArray:
        return np.asarray(-np.abs(x) / self.scale - math.log(2 * self.scale))

    def log_below(self, x: FloatArray) -> FloatArray:
        u = np.asarray(x) / self.scale
        return np.where(u < 0, np.minimum(u, 0) - math.log(2), np.log1p(-np.exp(-np.maximum(u, 0)) / 2))

    def between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        a, b = np.broadcast_arrays(np.asarray(low) / self.scale, np.asarray(high) / self.scale)
        near = np.minimum(np.abs(a), np.abs(b))  # of an interval on one side of 0
        with np.errstate(invalid="ignore"):  # an end at infinity, on both sides of the interval
            width = np.where(a == b, 0.0, b - a)
        one_side = np.exp(-near) * -np.expm1(-width) / 2
        around = -(np.expm1(np.minimum(a, 0)) + np.expm1(-np.maximum(b, 0))) / 2
        return np.asarray(np.where((a < 0) & (b > 0), around, one_side))

    def quantile(self, share: FloatArray) -> FloatArray:
        small = np.minimum(share, 1 - share)
        size = -self.scale * np.log(2 * np.maximum(small, 5e-324))
        return np.asarray(np.where(share < 0.5, -size, size))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.laplace(scale=self.scale, size=size)

    def variation(self, distance: FloatArray) -> FloatArray:
        return np.asarray(-np.expm1(-np.asarray(distance) / (2 * self.scale)))

    def epsilon(self, distance: float) -> float:
        return distance / self.scale

    def tilt(
        self, positions: FloatArray, centre: FloatArray, at: FloatArray, inside: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        side, own = np.sign(inside - positions), np.sign(inside - centre)
        # One subtraction of near numbers, not of distances: both signs are the same for most positions.
        exponent = np.where(side == own, side * (positions - centre), own * (2 * at - centre - positions))
        return exponent / self.scale, (own - side) / self.scale

    def bend(self, centre: FloatArray, inside: FloatArray) -> FloatArray:
        return np.sign(inside - centre) * 2 / self.scale


@dataclass(frozen=True, eq=False, repr=False)
class GaussianNoise(SymmetricNoise):
    """The normal distribution with standard deviation sigma."""

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", as_scale("sigma", self.sigma))

    @property
    def width(self) -> float:
        return self.sigma

    def log_density(self, x: FloatArray) -> FloatArray:
        u = np.asarray(x) / self.sigma
        return np.asarray(-(u * u) / 2 - math.log(self.sigma * math.sqrt(2 * math.pi)))

    def log_below(self, x: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.log_ndtr(np.asarray(x) / self.sigma))

    def between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        a, b = np.broadcast_arrays(np.asarray(low) / self.sigma, np.asarray(high) / self.sigma)
        upper = a > 0  # the lower tail has all its digits, the upper tail not
        a, b = np.where(upper, -b, a), np.where(upper, -a, b)
        with np.errstate(invalid="ignore", over="ignore"):  # an end at infinity
            short = (b - a) * np.maximum(1.0, np.abs(a)) < SHORT
        if np.all(short):
            return _short_mass(a, b)
        mass = np.asarray(scipy.special.ndtr(b) - scipy.special.ndtr(a))
        if np.any(short):
            mass[short] = _short_mass(a[short], b[short])
        return mass

    def quantile(self, share: FloatArray) -> FloatArray:
        return np.asarray(self.sigma * scipy.special.ndtri(share))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        return rng.normal(scale=self.sigma, size=size)

    def variation(self, distance: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.erf(np.asarray(distance) / (2 * math.sqrt(2) * self.sigma)))

    def epsilon(self, distance: float) -> float:
        return math.inf if distance > 0 else 0.0

    def tilt(
        self, positions: FloatArray, centre: FloatArray, at: FloatArray, inside: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        slope = (positions - centre) / self.sigma
        return slope * ((2 * at - centre - positions) / (2 * self.sigma)), slope / self.sigma

    def bend(self, centre: FloatArray, inside: FloatArray) -> FloatArray:
        return np.zeros_like(inside)


@dataclass(frozen=True, eq=False, repr=False)
class DensityNoise(Noise):
    """Noise given by its density and its distribution function, both called with arrays.

    `above` is 1 - cdf; give it too if the upper tail matters.
    """

    pdf: Callable[[FloatArray], FloatArray]
    cdf: Callable[[FloatArray], FloatArray]
    above: Callable[[FloatArray], FloatArray] | None = None

    def __post_init__(self) -> None:
        ends = np.array([-np.inf, np.inf])
        start, end = (float(value) for value in np.asarray(self.cdf(ends), dtype=float))
        if not (abs(start) < 1e-9 and abs(end - 1) < 1e-9):
            raise MechanismError(f"A distribution function rises from 0 to 1; this rises from {start:g} to {end:g}.")
        places = self.quantile(np.linspace(0.05, 0.95, 19))
        middle, width = (places[1:] + places[:-1]) / 2, np.diff(places)
        step = 1e-4 * width
        slope = (self.cdf(middle + step) - self.cdf(middle - step)) / (2 * step)
        gap = float(np.max(np.abs(slope - self.pdf(middle)) / np.maximum(np.abs(slope), 1e-300)))
        MechanismError.unless(gap < 1e-2, "The density is not the slope of the distribution function.")

    def log_density(self, x: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.asarray(self.pdf(x), dtype=float)))

    def log_below(self, x: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.asarray(self.cdf(x), dtype=float)))

    def log_above(self, x: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._upper(x)))

    def between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        low, high = np.broadcast_arrays(low, high)
        by_below = np.asarray(self.cdf(high), dtype=float) - np.asarray(self.cdf(low), dtype=float)
        by_above = self._upper(low) - self._upper(high)
        return np.maximum(np.where(np.asarray(self.cdf(low)) > 0.5, by_above, by_below), 0.0)

    def quantile(self, share: FloatArray) -> FloatArray:
        """By bisection, in a bracket that doubles until it holds the quantile."""
        share = np.asarray(share, dtype=float)
        low, high = np.full(share.shape, -1.0), np.full(share.shape, 1.0)
        while np.any(outside := (self.cdf(low) > share) & (low > -1e300)):
            low[outside] *= 2
        while np.any(outside := (self.cdf(high) < share) & (high < 1e300)):
            high[outside] *= 2
        for _ in range(200):
            middle = (low + high) / 2
            if not np.any((low < middle) & (middle < high)):
                break
            right = np.asarray(self.cdf(middle)) < share
            low, high = np.where(right, middle, low), np.where(right, high, middle)
        return np.asarray((low + high) / 2)

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        return self.quantile(rng.random(size))

    def _upper(self, x: FloatArray) -> FloatArray:
        return np.asarray(1 - np.asarray(self.cdf(x)) if self.above is None else self.above(x), dtype=float)


def _short_mass(a: FloatArray, b: FloatArray) -> FloatArray:
    """The mass of the standard normal distribution between near numbers, to all digits."""
    middle, half = (a + b) / 2, (b - a) / 2
    mean = sum(weight * np.exp(-((middle + half * node) ** 2) / 2) for node, weight in GAUSS_3)
    return np.asarray(2 * half * mean / math.sqrt(2 * math.pi))
