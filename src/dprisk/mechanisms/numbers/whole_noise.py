"""Noise on the whole numbers: discrete Laplace (two-sided geometric) and discrete Gaussian laws."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dprisk.errors import TooLargeError
from dprisk.types import FloatArray, IntArray
from dprisk.values import Value

LONGEST_SUM = 1 << 28  # terms beyond which the weights of intervals are not added up
TAIL_BLOCK = 1 << 20  # terms of a sum looked at at once
LAPLACE_FAR, GAUSS_FAR = 45.0, 9.0  # scales beyond which less than 1e-18 of the noise lies
SMOOTH = 1000.0  # a sum over so wide a bell is an integral and three corrections


class WholeNoise(Value):
    """A law on the whole numbers with weights that fall on both sides of 0 alike, log-concave."""

    @abstractmethod
    def log_weight(self, k: FloatArray) -> FloatArray:
        """The log of a number in proportion to Pr[noise = k]."""

    @property
    @abstractmethod
    def log_total(self) -> float:
        """The log of the sum of all weights; infinite for noise without bound."""

    @abstractmethod
    def _log_upper(self, k: FloatArray) -> FloatArray:
        """log Pr[noise >= k] for k >= 1."""

    @abstractmethod
    def log_between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The log of the sum of the weights from low to high."""

    @property
    @abstractmethod
    def far(self) -> float:
        """A size that the noise exceeds with a probability below 1e-18."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Independent draws."""

    @abstractmethod
    def epsilon(self, distance: float) -> float:
        """The largest log ratio of Pr[noise = k] and Pr[noise = k + distance]."""

    @abstractmethod
    def ratio_reaches(self, distance: float, level: float) -> float:
        """The x with log Pr[noise = x - distance / 2] - log Pr[noise = x + distance / 2] = level, infinite if none."""

    def log_at_least(self, k: FloatArray) -> FloatArray:
        """log Pr[noise >= k]: what is far out has all its digits."""
        k = np.asarray(k, dtype=float)
        tail = self._log_upper(np.where(k >= 1, k, 1 - k))
        return np.where(k >= 1, tail, np.log1p(-np.exp(tail)))


@dataclass(frozen=True, eq=False, repr=False)
class WholeLaplace(WholeNoise):
    """Pr[k] in proportion to exp(-rate abs(k)); at rate 0 without bound."""

    rate: float

    def log_weight(self, k: FloatArray) -> FloatArray:
        return np.asarray(-self.rate * np.abs(k))

    @property
    def log_total(self) -> float:
        return -math.log(math.tanh(self.rate / 2)) if self.rate > 1e-300 else math.inf

    def _log_upper(self, k: FloatArray) -> FloatArray:
        return np.asarray(-self.rate * k - math.log1p(math.exp(-self.rate)))

    def log_between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        a, b = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
        near = np.maximum(0, np.maximum(a, -b))  # from 0, if the interval does not hold it
        below, above = np.clip(-a, 0, b - a), np.clip(b, 0, b - a)
        around = self._partial(below) + self._partial(above) - 1
        return np.asarray(-self.rate * near + np.log(np.where(near > 0, self._partial(b - a), around)))

    def _partial(self, n: FloatArray) -> FloatArray:
        """sum_{k=0..n} exp(-rate k)."""
        return np.asarray(np.expm1(-self.rate * (n + 1)) / math.expm1(-self.rate) if self.rate > 0 else n + 1.0)

    @property
    def far(self) -> float:
        return LAPLACE_FAR / self.rate if self.rate > 0 else math.inf

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """The difference of two geometric counts is two-sided geometric."""
        one, two = (rng.exponential(size=size) // self.rate for _ in range(2))
        return (one - two).astype(np.int64)

    def epsilon(self, distance: float) -> float:
        return self.rate * distance

    def ratio_reaches(self, distance: float, level: float) -> float:
        return math.inf if level >= self.rate * distance else level / (2 * self.rate)


@dataclass(frozen=True, eq=False, repr=False)
class WholeGaussian(WholeNoise):
    """Pr[k] in proportion to exp(-k^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020)."""

    sigma: float

    def log_weight(self, k: FloatArray) -> FloatArray:
        u = np.asarray(k) / self.sigma
        return np.asarray(-(u * u) / 2)

    @cached_property
    def log_total(self) -> float:
        return math.log(2 * float(self._beyond(np.zeros(1))[0]) - 1)

    def _log_upper(self, k: FloatArray) -> FloatArray:
        return self.log_weight(k) + np.log(self._beyond(k)) - self.log_total

    def _beyond(self, k: FloatArray) -> FloatArray:
        """The sum of the weights from k >= 0 on, divided by the weight of k.

        With wide noise by Euler's formula, unless k is so far out that few terms matter.
        """
        distinct, back = np.unique(k, return_inverse=True)
        slope = distinct / self.sigma**2
        smooth = (slope < 0.05) & (self.sigma >= SMOOTH)
        integral = self.sigma * math.sqrt(math.pi / 2) * scipy.special.erfcx(distinct / (self.sigma * math.sqrt(2)))
        total = integral + 1 / 2 + slope / 12 - (slope**3 - 3 * slope / self.sigma**2) / 720
        further = np.arange(math.ceil(GAUSS_FAR * self.sigma) + 2.0 if self.sigma < SMOOTH else SMOOTH)
        summed = np.flatnonzero(~smooth)
        for part in np.split(summed, range(0, summed.size, max(1, TAIL_BLOCK // further.size))[1:]):
            u = further / self.sigma
            total[part] = np.exp(-u * (distinct[part, None] / self.sigma + u / 2)).sum(axis=1)
        return np.asarray(total[back].reshape(np.shape(k)))

    def log_between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Summed term by term: a difference of two tails would lose the digits of a short interval."""
        low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
        length = float((high - low).max()) + 1
        TooLargeError.unless(
            low.size * (length - 1) <= LONGEST_SUM,
            f"An interval of {length - 1:.3g} outputs for {low.size} records is too long to add up.",
        )
        nearest = np.clip(0.0, low, high)
        total = np.zeros(low.shape)
        for start in np.arange(0, length, step := max(1, TAIL_BLOCK // max(1, low.size))):
            k = low[..., None] + np.arange(start, min(start + step, length))
            terms = np.exp(self.log_weight(k) - self.log_weight(nearest)[..., None])
            total += np.where(k <= high[..., None], terms, 0.0).sum(axis=-1)
        return self.log_weight(nearest) + np.log(total)

    @property
    def far(self) -> float:
        return GAUSS_FAR * self.sigma + 1

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """By rejection from discrete Laplace noise, as Canonne, Kamath and Steinke do."""
        scale = math.floor(self.sigma) + 1
        drawn = np.empty(size, dtype=np.int64)
        missing = np.arange(size)
        while missing.size:
            k = WholeLaplace(1 / scale).sample(missing.size, rng)
            keep = rng.exponential(size=k.size) > (np.abs(k) - self.sigma**2 / scale) ** 2 / (2 * self.sigma**2)
            drawn[missing[keep]] = k[keep]
            missing = missing[~keep]
        return drawn

    def epsilon(self, distance: float) -> float:
        return math.inf if distance > 0 else 0.0

    def ratio_reaches(self, distance: float, level: float) -> float:
        return level * self.sigma**2 / distance
