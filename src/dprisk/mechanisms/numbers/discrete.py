"""Noise on whole numbers: discrete Laplace (two-sided geometric) and discrete Gaussian."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, TooLargeError, as_epsilon, as_number, as_size, fail, require
from dprisk.guarantees import ZCDP, Guarantee, PureDP
from dprisk.mechanisms.base import LISTED_CELLS, PAIRWISE_CELLS, Mechanism
from dprisk.mechanisms.numbers.additive import Ends
from dprisk.mechanisms.tabled import Tabled
from dprisk.tables import as_floats
from dprisk.types import AnyArray, FloatArray, IntArray

LARGEST = 1 << 53  # whole numbers that floats hold exactly
LONGEST = 1 << 26  # outputs of one record that are held at once
TAIL_BLOCK = 1 << 20  # terms of a sum looked at at once
LAPLACE_FAR, GAUSS_FAR = 45.0, 9.0  # scales beyond which less than 1e-18 of the noise lies
SMOOTH = 1000.0  # a sum over so wide a bell is an integral and three corrections


class WholeNoise(ABC):
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


@dataclass(frozen=True)
class WholeLaplace(WholeNoise):
    """Pr[k] in proportion to exp(-rate |k|); at rate 0 without bound."""

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


@dataclass(frozen=True)
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
        from scipy.special import erfcx

        distinct, back = np.unique(k, return_inverse=True)
        slope = distinct / self.sigma**2
        smooth = (slope < 0.05) & (self.sigma >= SMOOTH)
        integral = self.sigma * math.sqrt(math.pi / 2) * erfcx(distinct / (self.sigma * math.sqrt(2)))
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
        require(
            low.size * float((high - low).max()) <= LISTED_CELLS,
            f"An interval of {float((high - low).max()):.3g} outputs for {low.size} records is too long to add up.",
            TooLargeError,
        )
        nearest = np.clip(0.0, low, high)
        total = np.zeros(low.shape)
        length = float((high - low).max()) + 1
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


class DiscreteAdditive(Tabled):
    """The record's position plus noise, all of them whole numbers.

    `positions` has a whole number for each record: what the query answers if the target has that record. A single
    number m stands for the positions 0..m-1. With an `interval`, outputs are kept in it: `ends="clamp"` moves an
    output outside to the nearer end, `ends="truncate"` draws again until it lies inside, which leaks more than the
    noise alone. Without one, each tail that less than 1e-18 of the noise reaches is listed as one output.
    """

    noise: WholeNoise

    def __init__(
        self,
        positions: npt.ArrayLike,
        noise: WholeNoise,
        interval: tuple[int, int] | None = None,
        ends: Ends = "clamp",
    ) -> None:
        require(ends in ("clamp", "truncate"), f"ends must be 'clamp' or 'truncate', got {ends!r}", MechanismError)
        self.is_counted = np.ndim(positions) == 0
        self.positions = _positions(positions)
        self.size, self.noise, self.ends = self.positions.size, noise, ends
        self.interval = None if interval is None else _interval(interval)

    @property
    def is_truncated(self) -> bool:
        """Whether the noise is drawn again until the output lies in the interval."""
        return self.interval is not None and self.ends == "truncate"

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The first and the last output of the list."""
        far = math.ceil(min(self.noise.far, LARGEST))
        return self.interval or (int(self.positions.min()) - far, int(self.positions.max()) + far)

    @property
    def range(self) -> int:
        """The largest distance between two positions: the sensitivity of the query to this person."""
        return int(np.ptp(self.positions))

    @property
    def n_outputs(self) -> float:
        return float(self.bounds[1] - self.bounds[0] + 1)

    def outputs(self, block: int) -> Iterator[AnyArray]:
        return (numbers + self.bounds[0] for numbers in super().outputs(block))

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        if isinstance(outputs, slice):
            outputs = np.arange(*outputs.indices(int(self.n_outputs)))
        return np.exp(self._log_probability(slice(None), self.bounds[0] + outputs))

    def row(self, record: int) -> FloatArray:
        require(
            self.n_outputs <= LONGEST,
            f"{self!r} has {self.n_outputs:.3g} outputs, too many to hold at once.",
            TooLargeError,
        )
        place = np.arange(self.bounds[0], self.bounds[1] + 1)
        return np.exp(self._log_probability(slice(record, record + 1), place)).ravel()

    @cached_property
    def _log_inside(self) -> FloatArray:
        """The log of the weight of the interval, for each record."""
        place = self.positions.astype(float)
        return self.noise.log_between(self.bounds[0] - place, self.bounds[1] - place)

    def _log_probability(self, records: slice, outputs: IntArray) -> FloatArray:
        """log Pr[output | record], records x outputs."""
        low, high = self.bounds
        place = self.positions[records, None].astype(float)
        logs = self.noise.log_weight(outputs - place)
        if self.is_truncated:
            return np.asarray(logs - self._log_inside[records, None])
        if low == high:
            return np.zeros_like(logs)
        logs -= self.noise.log_total
        for end, to_reach in ((low, place - low), (high, high - place)):
            if np.any(outputs == end):
                logs[:, outputs == end] = self.noise.log_at_least(to_reach)
        return logs

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        numbers = np.atleast_1d(np.asarray(outputs))
        low, high = self.bounds
        require(
            numbers.ndim == 1
            and np.issubdtype(numbers.dtype, np.integer)
            and (self.interval is None or bool(np.all((numbers >= low) & (numbers <= high)))),
            f"An output of {self!r} is a whole number" + (f" in {low}..{high}." if self.interval else "."),
            MechanismError,
        )
        return self._log_probability(slice(None), np.clip(numbers, low, high)).T

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        numbers = self._records(records)
        if self.is_truncated or self.noise.far > LARGEST:
            return super().sample(numbers, rng) + self.bounds[0]
        return np.asarray(np.clip(self.positions[numbers] + self.noise.sample(numbers.size, rng), *self.bounds))

    @property
    def epsilon(self) -> float:
        """The ratio of two records' probabilities rises or falls with the output: an end tells most."""
        if self.interval is None:
            return self.noise.epsilon(self.range)
        return float(np.ptp(self._log_probability(slice(None), np.array(self.interval)), axis=0).max())

    def with_epsilon(self, epsilon: float) -> Mechanism:
        return fail("Noise that is given by its law has no epsilon to set.", MechanismError)

    def delta_at(self, epsilon: float) -> float:
        """Without truncation, of the two outermost positions.

        It is the largest Pr[output >= t | x] - e^epsilon Pr[output >= t | y] over t, which grows with x and falls with
        y; and the same from the other side.
        """
        epsilon = as_epsilon(epsilon)
        if self.range == 0 or epsilon >= self.epsilon:
            return 0.0
        if self.is_truncated:
            return super().delta_at(epsilon)
        low, high = self.interval or (-math.inf, math.inf)
        first, last = int(self.positions.min()), int(self.positions.max())
        return max(
            self._one_sided(first, last, low, high, epsilon), self._one_sided(-last, -first, -high, -low, epsilon)
        )

    def _one_sided(self, first: int, last: int, low: float, high: float, epsilon: float) -> float:
        """Pr[output >= t | last] - e^epsilon Pr[output >= t | first] at the best t."""
        best = (first + last) / 2 + self.noise.ratio_reaches(self.range, epsilon)
        t = min(max(best if math.isinf(best) else math.floor(best) + 1, low + 1), high)
        if math.isinf(t):
            return 0.0
        mine, other = (float(self.noise.log_at_least(np.array(t - place))) for place in (last, first))
        return max(0.0, math.exp(mine) - math.exp(min(other + epsilon, 1.0)))

    def guarantee(self) -> Guarantee:
        """Without truncation the curve of the two outermost positions, which are the easiest to tell apart."""
        if self.range == 0:
            return PureDP(0.0)
        if self.is_truncated:
            return super().guarantee()
        pair = DiscreteAdditive([self.positions.min(), self.positions.max()], self.noise, self.interval)
        return Tabled.guarantee(pair)

    def _options(self) -> dict[str, Any]:
        """What was chosen besides the noise, for reports."""
        places = {} if self.is_counted else {"low": int(self.positions.min()), "high": int(self.positions.max())}
        return places | ({} if self.interval is None else {"outputs": f"{self.ends} to {list(self.interval)}"})

    def _parameters(self) -> dict[str, Any]:
        return {"noise": type(self.noise).__name__} | self._options()

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | ({} if self.is_counted else {"positions": self.positions.tolist()})


class DiscreteLaplace(DiscreteAdditive):
    """Discrete Laplace noise: k and -k, each with probability in proportion to exp(-k / scale).

    Give the `scale`, or the `epsilon` that the noise has for these positions: range / scale.

    >>> DiscreteLaplace([0, 3, 10], scale=5)
    DiscreteLaplace(size=3, epsilon=2, scale=5, low=0, high=10)
    """

    noise: WholeLaplace

    def __init__(
        self,
        positions: npt.ArrayLike,
        epsilon: float | None = None,
        *,
        scale: float | None = None,
        interval: tuple[int, int] | None = None,
        ends: Ends = "clamp",
    ) -> None:
        require((epsilon is None) != (scale is None), "Laplace noise takes either epsilon or scale.", MechanismError)
        if scale is None:
            epsilon = as_epsilon(epsilon)
            require(epsilon > 0, "Laplace noise needs epsilon > 0: at 0 its scale is infinite", MechanismError)
            spread = int(np.ptp(_positions(positions)))
            require(spread > 0, "All positions coincide; give the scale of the noise instead.", MechanismError)
            scale = spread / epsilon
        super().__init__(positions, WholeLaplace(1 / _wide("scale", scale)), interval, ends)

    @property
    def scale(self) -> float:
        """The scale of the noise."""
        return 1 / self.noise.rate

    @property
    def nominal_epsilon(self) -> float:
        """That of the noise alone: range / scale."""
        return self.range * self.noise.rate

    def with_epsilon(self, epsilon: float) -> DiscreteLaplace:
        """Another scale, by the epsilon of the noise alone."""
        places: npt.ArrayLike = self.size if self.is_counted else self.positions
        return DiscreteLaplace(places, epsilon, interval=self.interval, ends=self.ends)

    def sufficient(self) -> DiscreteLaplace:
        """Outputs clamped to the range of the positions: beyond it all probabilities fall alike."""
        low, high = int(self.positions.min()), int(self.positions.max())
        if self.is_truncated or (self.bounds[0] >= low and self.bounds[1] <= high):
            return self
        inside = max(low, self.bounds[0]), min(high, self.bounds[1])
        return DiscreteLaplace(self.positions, scale=self.scale, interval=inside) if inside[0] <= inside[1] else self

    def guarantee(self) -> Guarantee:
        same = self.sufficient()
        return super().guarantee() if same is self else same.guarantee()

    def _parameters(self) -> dict[str, Any]:
        named = {"epsilon": self.epsilon} if self.interval is None else {"nominal_epsilon": self.nominal_epsilon}
        return named | {"scale": self.scale} | self._options()


class DiscreteGaussian(DiscreteAdditive):
    """Discrete Gaussian noise: k with probability in proportion to exp(-k^2 / (2 sigma^2)).

    Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy (2020). Unbounded, it is epsilon-DP for no
    epsilon.

    >>> DiscreteGaussian([0, 3, 10], sigma=5)
    DiscreteGaussian(size=3, sigma=5, low=0, high=10)
    """

    noise: WholeGaussian

    def __init__(
        self,
        positions: npt.ArrayLike,
        sigma: float,
        *,
        interval: tuple[int, int] | None = None,
        ends: Ends = "clamp",
    ) -> None:
        super().__init__(positions, WholeGaussian(_wide("sigma", sigma)), interval, ends)

    @property
    def sigma(self) -> float:
        """The parameter of the noise; its standard deviation is a little smaller."""
        return self.noise.sigma

    def with_sigma(self, sigma: float) -> DiscreteGaussian:
        """The same with another sigma."""
        places: npt.ArrayLike = self.size if self.is_counted else self.positions
        return DiscreteGaussian(places, sigma, interval=self.interval, ends=self.ends)

    def with_epsilon(self, epsilon: float) -> DiscreteGaussian:
        return fail("Gaussian noise is epsilon-DP for no epsilon; set sigma instead.", MechanismError)

    def guarantee(self) -> Guarantee:
        """Where the curve is too long to draw, rho-zCDP with rho = range^2 / (2 sigma^2) (their theorem 4)."""
        if not self.is_truncated and 4 * self.n_outputs > PAIRWISE_CELLS:
            return ZCDP((self.range / self.sigma) ** 2 / 2)
        return super().guarantee()

    def _parameters(self) -> dict[str, Any]:
        return {"sigma": self.sigma} | self._options()


def _positions(positions: npt.ArrayLike) -> IntArray:
    if np.ndim(positions) == 0:
        return np.arange(as_size(positions))
    places = as_floats(positions, "Positions", MechanismError)
    require(
        places.ndim == 1 and places.size > 0 and bool(np.all((np.abs(places) < LARGEST) & (places == np.rint(places)))),
        "Positions are a list of whole numbers, one for each record.",
        MechanismError,
    )
    return places.astype(np.int64)


def _interval(interval: tuple[int, int]) -> tuple[int, int]:
    require(np.shape(interval) == (2,), f"interval is a pair (low, high), got {interval!r}", MechanismError)
    low, high = (as_number("An end of the interval", end) for end in interval)
    require(
        -LARGEST < low <= high < LARGEST and low.is_integer() and high.is_integer(),
        f"interval needs whole numbers low <= high, got {low:g}, {high:g}",
        MechanismError,
    )
    return int(low), int(high)


def _wide(name: str, value: float) -> float:
    number = as_number(name, value)
    require(1e-9 < number < 1e12, f"{name} must lie between 1e-9 and 1e12, got {number:g}", MechanismError)
    return number
