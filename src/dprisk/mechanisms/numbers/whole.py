"""Noise added to a whole number: one position for each record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, TooLargeError, as_epsilon, as_number, as_size
from dprisk.guarantees import ZCDP, Guarantee, PureDP
from dprisk.guarantees.base import BY_LOGARITHMS, least_epsilon
from dprisk.mechanisms.base import PAIRWISE_CELLS
from dprisk.mechanisms.by_epsilon import ByEpsilon
from dprisk.mechanisms.numbers.positions import (
    LARGEST,
    Ends,
    Positioned,
    WithGaussian,
    WithLaplace,
    as_positions,
    laplace_scale,
)
from dprisk.mechanisms.numbers.whole_noise import WholeGaussian, WholeLaplace, WholeNoise
from dprisk.mechanisms.tabled import Tabled
from dprisk.types import AnyArray, FloatArray, IntArray
from dprisk.values import Parameter

LONGEST = 1 << 26  # outputs of one record that are held at once
LOST = 1e-12  # more than sums of weights and their logarithms lose of themselves


class DiscreteAdditive(Positioned, Tabled):
    """The record's position plus noise, all of them whole numbers.

    `positions` has a whole number for each record: what the query answers if the target has that record. A single
    number m stands for the positions 0..m-1. With an `interval`, outputs are kept in it: `ends="clamp"` moves an
    output outside to the nearer end, `ends="truncate"` draws again until it lies inside, which leaks more than the
    noise alone. Without one, each tail that less than 1e-18 of the noise reaches is listed as one output.
    """

    noise: WholeNoise
    positions: IntArray

    def __init__(
        self,
        positions: npt.ArrayLike,
        noise: WholeNoise,
        interval: tuple[int, int] | None = None,
        ends: Ends = "clamp",
    ) -> None:
        self._place(_positions(positions), noise, interval, ends)

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The first and the last output of the list."""
        far = math.ceil(min(self.noise.far, LARGEST))
        return self.interval or (int(self.positions.min()) - far, int(self.positions.max()) + far)

    @property
    def n_outputs(self) -> float:
        return float(self.bounds[1] - self.bounds[0] + 1)

    @property
    def merges_outputs(self) -> bool:
        return self.interval is None

    def outputs(self, block: int) -> Iterator[AnyArray]:
        return (numbers + self.bounds[0] for numbers in super().outputs(block))

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        if isinstance(outputs, slice):
            outputs = np.arange(*outputs.indices(int(self.n_outputs)))
        return np.exp(self._log_probability(slice(None), self.bounds[0] + outputs))

    def row(self, record: int) -> FloatArray:
        if self.n_outputs > LONGEST:
            raise TooLargeError(f"{self!r} has {self.n_outputs:.3g} outputs, too many to hold at once.")
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
        """log P(output | record); without an interval, of an output at or beyond an end of the list, of that tail.

        With Laplace noise all outputs of a tail tell the same of the records. With Gaussian noise they tell ever more
        of the outermost positions: what none of them exceeds is no question of the list.
        """
        numbers = np.atleast_1d(np.asarray(outputs))
        low, high = self.bounds
        MechanismError.unless(
            numbers.ndim == 1
            and np.issubdtype(numbers.dtype, np.integer)
            and (self.interval is None or bool(np.all((numbers >= low) & (numbers <= high)))),
            f"An output of {self!r} is a whole number" + (f" in {low}..{high}." if self.interval else "."),
        )
        return self._log_probability(slice(None), np.clip(numbers, low, high)).T

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        numbers = self._records(records)
        if self.is_truncated or self.noise.far > LARGEST:
            return super().sample(numbers, rng) + self.bounds[0]
        return np.asarray(np.clip(self.positions[numbers] + self.noise.sample(numbers.size, rng), *self.bounds))

    @cached_property
    def epsilon(self) -> float:
        """The ratio of two records' probabilities rises or falls with the output: an end tells most."""
        if self.interval is None:
            return self.noise.epsilon(self.spread)
        return max(float(np.ptp(logs, axis=1).max()) for logs in self._extremes())

    def _extremes(self) -> Iterator[FloatArray]:
        yield self._log_probability(slice(None), np.array(self.bounds)).T

    def viewed(self, values: IntArray) -> DiscreteAdditive:
        """Noise on the positions of the records that are seen."""
        return DiscreteAdditive(self.positions[values], self.noise, self.interval, self.ends)

    def delta_at(self, epsilon: float) -> float:
        """Without truncation, of the two outermost positions.

        It is the largest Pr[output >= t | x] - e^epsilon Pr[output >= t | y] over t, which grows with x and falls with
        y; and the same from the other side.
        """
        epsilon = as_epsilon(epsilon)
        if self.spread == 0 or epsilon >= self.epsilon:
            return 0.0
        if self.is_truncated:
            return super().delta_at(epsilon)
        low, high = self.interval or (-math.inf, math.inf)
        first, last = int(self.positions.min()), int(self.positions.max())
        return max(
            self._one_sided(first, last, low, high, epsilon), self._one_sided(-last, -first, -high, -low, epsilon)
        )

    def epsilon_at(self, delta: float) -> float:
        """By `delta_at`, in logarithms, rounded up; of truncated noise by the curve."""
        if delta == 0 or self.is_truncated or self.spread == 0 or not 0 < as_number("delta", delta) <= 1:
            return super().epsilon_at(delta)
        found = least_epsilon(lambda epsilon: self.delta_at(epsilon) * (1 + LOST), delta, BY_LOGARITHMS)
        return min(found * (1 + LOST), self.epsilon)

    def _one_sided(self, first: int, last: int, low: float, high: float, epsilon: float) -> float:
        """Pr[output >= t | last] - e^epsilon Pr[output >= t | first] at the best t."""
        best = (first + last) / 2 + self.noise.ratio_reaches(self.spread, epsilon)
        t = min(max(best if math.isinf(best) else math.floor(best) + 1, low + 1), high)
        if math.isinf(t):
            return 0.0
        mine, other = (float(self.noise.log_at_least(np.array(t - place))) for place in (last, first))
        return max(0.0, math.exp(mine) - math.exp(min(other + epsilon, 1.0)))

    def guarantee(self) -> Guarantee:
        """Without truncation the curve of the two outermost positions, which are the easiest to tell apart."""
        if self.spread == 0:
            return PureDP(0.0)
        if self.is_truncated:
            return super().guarantee()
        return Tabled.guarantee(self._outermost)

    @property
    def guarantee_is_exact(self) -> bool:
        return super().guarantee_is_exact if self.is_truncated else self._outermost._lists_pairs

    @property
    def _outermost(self) -> DiscreteAdditive:
        """The same noise on the two outermost positions."""
        return DiscreteAdditive([self.positions.min(), self.positions.max()], self.noise, self.interval)


class DiscreteLaplace(WithLaplace, DiscreteAdditive):
    """Discrete Laplace noise: k and -k, each with probability in proportion to exp(-k / scale).

    Give the `scale`, or the `epsilon` that the noise has for these positions: spread / scale.

    >>> DiscreteLaplace([0, 3, 10], scale=5).epsilon
    2.0
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
        places = _positions(positions)
        spread = max(1.0, float(np.ptp(places))) if np.ndim(positions) == 0 else float(np.ptp(places))
        scale = _wide("scale", laplace_scale(epsilon, scale, spread, 0.0))
        super().__init__(places, WholeLaplace(1 / scale), interval, ends)

    @property
    def scale(self) -> float:
        """The scale of the noise."""
        return 1 / self.noise.rate

    def viewed(self, values: IntArray) -> DiscreteLaplace:
        """The scale stays; what epsilon that is depends on the positions."""
        return DiscreteLaplace(self.positions[values], scale=self.scale, interval=self.interval, ends=self.ends)

    def _simpler(self) -> DiscreteLaplace | None:
        """Outputs clamped to the range of the positions: beyond it all probabilities fall alike.

        An end of the interval holds all that lies beyond it too, on the other side of the positions even. So the low
        end stays an output of its own, with at least one above it, and so does the high end.
        """
        if self.is_truncated:
            return None
        low, high = self.bounds
        inside = max(low, min(int(self.positions.min()), high - 1)), min(high, max(int(self.positions.max()), low + 1))
        if inside == self.interval:
            return None
        return DiscreteLaplace(self.positions, scale=self.scale, interval=inside)

    def guarantee(self) -> Guarantee:
        same = self.sufficient()
        return super().guarantee() if same is self else same.guarantee()

    @property
    def guarantee_is_exact(self) -> bool:
        same = self.sufficient()
        return super().guarantee_is_exact if same is self else same.guarantee_is_exact


class DiscreteGaussian(WithGaussian, DiscreteAdditive):
    """Discrete Gaussian noise: k with probability in proportion to exp(-k^2 / (2 sigma^2)).

    Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy (2020). Unbounded, it is epsilon-DP for no
    epsilon.

    >>> DiscreteGaussian([0, 3, 10], sigma=5).epsilon
    inf
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

    def guarantee(self) -> Guarantee:
        """Where the curve is too long to draw, rho-zCDP with rho = spread^2 / (2 sigma^2) (their theorem 4)."""
        if not self.is_truncated and 4 * self.n_outputs > PAIRWISE_CELLS:
            return ZCDP((self.spread / self.sigma) ** 2 / 2)
        return super().guarantee()


class Geometric(DiscreteAdditive, ByEpsilon):
    """Records and outputs 0..size-1; noise of size k has probability proportional to exp(-eps k / sensitivity).

    `ends="clamp"` moves an output outside the range to its nearer end; `ends="truncate"` draws again until the output
    lies inside, which leaks more than the nominal epsilon says (`epsilon` is the true one). The sensitivity
    defaults to size - 1: one person's number is released, and may be replaced by any other.
    """

    is_equispaced = True

    def __init__(self, size: int, epsilon: float, sensitivity: float | None = None, ends: Ends = "clamp") -> None:
        size = as_size(size)
        epsilon = as_epsilon(epsilon)
        scale = max(size - 1, 1) if sensitivity is None else sensitivity
        MechanismError.unless(0 < scale < math.inf, f"sensitivity must be finite and above 0, got {sensitivity}")
        rate = epsilon / scale
        MechanismError.unless(rate < math.inf, f"sensitivity {scale:g} is too small for epsilon {epsilon:g}")
        super().__init__(size, WholeLaplace(rate), (0, size - 1), ends)
        self.nominal_epsilon, self.sensitivity = float(epsilon), float(scale)

    @property
    def parameter(self) -> Parameter:
        return Parameter.epsilon(self.nominal_epsilon, wavers=self.is_truncated)

    def _most_told(self, value: float) -> float:
        return value * self.spread / self.sensitivity


def _positions(positions: npt.ArrayLike) -> IntArray:
    return np.arange(as_size(positions)) if np.ndim(positions) == 0 else as_positions(positions, whole=True)


def _wide(name: str, value: float) -> float:
    number = as_number(name, value)
    MechanismError.unless(1e-9 < number < 1e12, f"{name} must lie between 1e-9 and 1e12, got {number:g}")
    return number
