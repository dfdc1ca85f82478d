"""Noise on a number that each record has: the positions, an interval that outputs are kept in, and what follows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_noise_epsilon, as_number
from dprisk.guarantees import GaussianDP, Guarantee, PureDP
from dprisk.mechanisms.some_records import BySensitivity, OfSome, laplace_curve
from dprisk.tables import as_floats
from dprisk.types import AnyArray, FloatArray
from dprisk.values import Parameter

Ends = Literal["clamp", "truncate"]
LARGEST = 1 << 53  # whole numbers that floats hold exactly


class Positioned(OfSome):
    """A position for each record, plus noise, in an `interval` or not."""

    positions: AnyArray
    noise: Any
    interval: tuple[Any, Any] | None
    ends: Ends

    def _place(self, positions: AnyArray, noise: Any, interval: tuple[Any, Any] | None, ends: Ends) -> None:
        MechanismError.unless(ends in ("clamp", "truncate"), f"ends must be 'clamp' or 'truncate', got {ends!r}")
        self.positions, self.size, self.noise, self.ends = positions, positions.size, noise, ends
        self.interval = None if interval is None else as_interval(interval, positions.dtype.kind == "i")

    @property
    def is_truncated(self) -> bool:
        """Whether the noise is drawn again until the output lies in the interval."""
        return self.interval is not None and self.ends == "truncate"

    @property
    def is_clamped(self) -> bool:
        """Whether an output outside the interval is moved to its nearer end."""
        return self.interval is not None and self.ends == "clamp"

    @property
    def spread(self) -> float:
        """The largest distance between two positions: the sensitivity of the query to this person."""
        return float(np.ptp(self.positions))

    @property
    def units(self) -> str:
        return f"on a scale from {self.positions.min():g} to {self.positions.max():g}" if self.spread > 0 else ""

    @property
    def by_size(self) -> bool:
        """Whether the noise was given by its size, in the units of the positions, and not by an epsilon."""
        return self._arguments.get("epsilon") is None

    @property
    def _wavers(self) -> bool:
        """Whether outputs are kept in an interval: with less noise fewer of them may tell the records apart."""
        return self.interval is not None

    def ceiling(self, value: float) -> Any:
        """The noise alone, which clamping does not make worse; truncating at most doubles what an output tells."""
        if self.is_truncated:
            return PureDP(2 * self._most_told(value))
        return self.replace(interval=None).with_parameter(value)

    def _most_told(self, value: float) -> float:
        """With this parameter, a log ratio that no two densities exceed in the interval: less with more noise."""
        return math.inf

    @abstractmethod
    def _extremes(self) -> Iterator[FloatArray]:
        """The log-likelihoods of outputs in the interval among which the most telling one is, in blocks."""

    def pairwise_epsilon(self) -> FloatArray:
        """By the noise alone, or by the most telling outputs: in logarithms, so that far outputs count too."""
        if self.interval is None:
            far, back = np.unique(np.abs(self.positions[:, None] - self.positions), return_inverse=True)
            return np.array([self.noise.epsilon(float(distance)) for distance in far])[back].reshape(self.size, -1)
        blocks = ([(logs[:, [one]] - logs).max(axis=0) for one in range(self.size)] for logs in self._extremes())
        return np.asarray(np.max(list(blocks), axis=0))


class WithLaplace(Positioned, BySensitivity):
    """Laplace noise, turned by its nominal epsilon."""

    @property
    def nominal_epsilon(self) -> float:
        """What the noise alone promises of any record: farthest / scale."""
        return float(self.noise.epsilon(self.farthest))

    def _promise(self) -> Guarantee:
        """Drawing again at most doubles the epsilon, wherever the positions are: so much the densities are scaled."""
        return PureDP(2 * self.nominal_epsilon) if self.is_truncated else laplace_curve(self.nominal_epsilon)

    @property
    def parameter(self) -> Parameter:
        return Parameter.epsilon(self.nominal_epsilon, wavers=self._wavers)

    @property
    def _wavers(self) -> bool:
        """Not where all positions lie in the interval: the outputs beyond them tell no more than its ends."""
        low, high = self.interval or (-math.inf, math.inf)
        return self.is_truncated or not (low <= self.positions.min() and self.positions.max() <= high)

    def with_parameter(self, value: float) -> Self:
        return self.replace(epsilon=value, scale=None)

    def _most_told(self, value: float) -> float:
        return value


class WithGaussian(Positioned, BySensitivity):
    """Gaussian noise, turned by its sigma."""

    def _promise(self) -> Guarantee:
        return GaussianDP(self.farthest / self.sigma)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise; on whole numbers the true one is a little smaller."""
        return float(self.noise.sigma)

    @property
    def parameter(self) -> Parameter:
        return Parameter.noise("sigma", self.sigma, wavers=self._wavers)

    def _most_told(self, value: float) -> float:
        """|x - y| |2 theta - x - y| / (2 sigma^2) over positions x, y and outputs theta."""
        farthest = float(np.abs(np.subtract.outer(np.array(self.interval), self.positions)).max())
        return self.spread * farthest / value**2


def as_positions(positions: npt.ArrayLike, whole: bool = False) -> AnyArray:
    """A number for each record, checked; whole numbers as integers."""
    places = as_floats(positions, "Positions", MechanismError)
    fits = (np.abs(places) < LARGEST) & (places == np.rint(places)) if whole else np.isfinite(places)
    if not (places.ndim == 1 and places.size > 0 and np.all(fits)):
        raise MechanismError(f"Positions are a list of {'whole' if whole else 'finite'} numbers, one for each record.")
    return places.astype(np.int64) if whole else places


def as_interval(interval: tuple[float, float], whole: bool) -> tuple[float, float]:
    """The ends of an interval, checked; those of whole numbers may coincide."""
    MechanismError.unless(np.shape(interval) == (2,), f"interval is a pair (low, high), got {interval!r}")
    low, high = (as_number("An end of the interval", end) for end in interval)
    if whole:
        fits = -LARGEST < low <= high < LARGEST and low.is_integer() and high.is_integer()
        MechanismError.unless(fits, f"interval needs whole numbers low <= high, got {low:g}, {high:g}")
        return int(low), int(high)
    MechanismError.unless(-math.inf < low < high < math.inf, f"interval needs finite low < high, got {low:g}, {high:g}")
    return low, high


def laplace_scale(epsilon: float | None, scale: float | None, spread: float, above: float) -> float:
    """The scale of Laplace noise, as it is given or from an epsilon, which must be above so much."""
    MechanismError.unless((epsilon is None) != (scale is None), "Laplace noise takes either epsilon or scale.")
    if scale is not None:
        return scale
    checked = as_noise_epsilon("Laplace noise", epsilon, above)
    MechanismError.unless(spread > 0, "All positions coincide; give the scale of the noise instead.")
    return spread / checked
