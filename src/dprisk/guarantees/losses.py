"""Privacy loss distributions of Gaussian noise on Poisson samples: made, composed and read as whole arrays.

The loss is the logarithm of how much likelier an output is on one data set than on its neighbour. Its distribution on a
grid, rounded up, composes by convolution. dp_accounting does the same for many more mechanisms, one number at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy

from dprisk.rounding import ULP
from dprisk.types import FloatArray
from dprisk.values import named

Direction = Literal["remove", "add", "replace"]
Phase = tuple[float, float, int]  # noise multiplier, sample rate, steps
FAR = 9.8  # standard deviations; beyond lies less than e^-50
GRID = 1e-4  # discretisation of the privacy loss, unless another is asked for
TAIL = 1e-15  # probability that a composition may cut off, and counts as certain loss
MOST = 2**20  # points of a grid; where losses spread over more of them, the grid is made coarser
COARSEST = 1.0  # a grid on which every step is rounded up to certain loss, or nearly
LARGEST = 700.0  # an epsilon whose exponential is a float


@dataclass(frozen=True, eq=False)
class Losses:
    """Probabilities `mass` of the losses (first + i) * grid, and `infinite` of losses beyond all bounds."""

    grid: float
    first: int
    mass: FloatArray
    infinite: float

    @property
    def values(self) -> FloatArray:
        """The losses."""
        return np.asarray((self.first + np.arange(self.mass.size)) * self.grid, dtype=float)

    @cached_property
    def profile(self) -> tuple[FloatArray, FloatArray]:
        """The losses of at least 0, 0 among them, and delta at each; between two, delta is linear in e^epsilon.

        delta(epsilon) = P(loss > epsilon) - e^epsilon sum over these of P(loss) e^-loss. It ends at 700: where losses
        go on beyond, delta is told not to fall any more, which is the safe side.
        """
        start = max(0, 1 - self.first)
        losses, mass = self.values[start:], self.mass[start:]
        above, other = _from_above(mass), _from_above(mass * np.exp(-losses))
        some = 1 + int(np.searchsorted(losses, LARGEST))
        epsilons, above, other = np.append(0.0, losses)[:some], above[:some], other[:some]
        deltas = self.infinite + above - np.exp(epsilons) * other + 8 * ULP * above
        deltas = np.minimum.accumulate(np.clip(deltas, self.infinite, 1.0))
        if some > losses.size:
            return epsilons, deltas
        return np.append(epsilons, LARGEST), np.append(deltas, deltas[-1])


def _from_above(mass: FloatArray) -> FloatArray:
    """What lies at each place or above it, and 0 above all; in long numbers, as a million roundings add up."""
    return np.append(np.cumsum(mass[::-1], dtype=np.longdouble)[::-1].astype(float), 0.0)


def composed(parts: Sequence[tuple[Losses, int]]) -> Losses:
    """The losses of independent releases, each so often: one product of Fourier transforms.

    Only a window of the sum is kept. What may lie outside, and what rounding lost, counts as infinite.
    """
    grid = parts[0][0].grid
    first = sum(part.first * times for part, times in parts)
    low, high = _window(parts)
    size = scipy.fft.next_fast_len(max(high - low + 1, *(part.mass.size for part, _ in parts)), real=True)
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    for part, times in parts:
        spectrum *= scipy.fft.rfft(part.mass, size) ** times
    mass = np.roll(scipy.fft.irfft(spectrum, size), -(low % size))[: high - low + 1].clip(min=0.0)
    infinite = -math.expm1(sum(times * math.log1p(-part.infinite) for part, times in parts)) + TAIL
    return Losses(grid, first + low, mass, max(infinite, 1 - float(mass.sum())))


def _window(parts: Sequence[tuple[Losses, int]]) -> tuple[int, int]:
    """Between which steps of the grid the sum lies but for `TAIL`, counted from the least it can be: by Chernoff."""
    low, high, spread = 0, 0, 1.0
    for part, times in parts:
        step = np.arange(part.mass.size)
        spread += times * (_sum(part.mass * step**2) - _sum(part.mass * step) ** 2)
        high += times * (part.mass.size - 1)
    with np.errstate(divide="ignore"):
        logs = [(np.log(part.mass), times) for part, times in parts]
    for order in np.array([0.125, 0.25, 0.5, 1.0, 2.0]) * 8 / math.sqrt(spread):
        rise, fall = (sum(times * _log_moment(log, way) for log, times in logs) for way in (order, -order))
        high = min(high, math.ceil((rise + math.log(2 / TAIL)) / order))
        low = max(low, math.floor(-(fall + math.log(2 / TAIL)) / order))
    return low, max(low, high)


def _log_moment(log_mass: FloatArray, order: float) -> float:
    """log sum_i mass_i e^(order i)."""
    exponent = log_mass + order * np.arange(log_mass.size)
    largest = float(exponent.max())
    return largest + math.log(_sum(np.exp(exponent - largest)))


def _sum(array: FloatArray) -> float:
    """Not by a product of vectors, which starts threads and waits for them if others use the processor."""
    return float(np.sum(array))


def sampled_gaussian(noise: float, rate: float, direction: Direction, grid: float) -> Losses:
    """One Gaussian mechanism of sensitivity 1 on a Poisson sample, as "connect the dots" rounds it (Doroshenko et al.).

    With x the output, the upper distribution is a mixture of N(0, noise^2) and N(-1, noise^2) (a record is removed, or
    replaced) or N(0, noise^2) (it is added), the lower one of N(0, noise^2) and N(1, noise^2) (added, or replaced) or
    N(0, noise^2). The loss falls with x. The probability between two points of the grid goes to both, so that it counts
    the same under upper and lower; rounding errors go to the larger loss.
    """
    bottom, top = _range(noise, rate, direction)
    first, last = math.floor(bottom / grid), math.ceil(top / grid)
    epsilons = np.arange(first, last + 1, dtype=float) * grid
    x = _where_loss(epsilons, noise, rate, direction)  # falls
    upper, lower = (_mixture(x, shift, noise, rate) for shift in _shifts(direction))
    excess = upper.between - np.exp(epsilons[:-1]) * lower.between + 4 * ULP * upper.below[:-1]
    above = np.clip(excess / -math.expm1(-grid), 0.0, upper.between)
    mass = np.append(upper.between - above, 0.0) + np.append(0.0, above)
    mass[0] += max(0.0, 1 - float(upper.below[0]))
    return Losses(grid, first, mass, float(upper.below[-1]))


def _range(noise: float, rate: float, direction: Direction) -> tuple[float, float]:
    """Between which values the loss lies, but for outputs that are `FAR` away."""
    ends = FAR * noise + (direction == "add"), -FAR * noise - (direction != "add")
    bottom, top = (float(_loss(np.array(end), noise, rate, direction)) for end in ends)
    return bottom, top


def accounted(phases: Sequence[Phase], direction: Direction, grid: float) -> Losses:
    """The losses of phases one after the other, on a grid at least so fine, or as fine as `MOST` points allow.

    A training whose losses spread so far hides next to nothing. A coarser grid rounds up more: it stays a bound.
    """
    widest = max(top - bottom for bottom, top in (_range(noise, rate, direction) for noise, rate, _ in phases))
    grid = max(grid, widest / MOST)
    while grid < COARSEST:
        parts = [(sampled_gaussian(noise, rate, direction, grid), steps) for noise, rate, steps in phases]
        low, high = _window(parts)
        if high - low < MOST:
            return composed(parts)
        grid *= 2 * (high - low) / MOST
    return Losses(grid, 1, np.zeros(1), 1.0)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Probabilities below falling places, and between neighbouring ones."""

    below: FloatArray
    between: FloatArray


def _mixture(x: FloatArray, shift: float, noise: float, rate: float) -> _Mixture:
    """Of N(0, noise^2) and, with weight `rate`, N(shift, noise^2)."""
    parts = [(rate, (x - shift) / noise), (1 - rate, x / noise)] if shift else [(1.0, x / noise)]
    below, between = np.zeros(x.size), np.zeros(x.size - 1)
    for weight, place in parts:
        low, high = scipy.special.ndtr(place), scipy.special.ndtr(-place)
        below += weight * low
        between += weight * np.where(place[1:] > 0, high[1:] - high[:-1], low[:-1] - low[1:])
    return _Mixture(below, np.maximum(between, 0.0))


def _shifts(direction: Direction) -> tuple[float, float]:
    """Where the record moves the mean of the upper and of the lower distribution."""
    return (0.0 if direction == "add" else -1.0), (0.0 if direction == "remove" else 1.0)


def _loss(x: FloatArray, noise: float, rate: float, direction: Direction) -> FloatArray:
    """log of the upper over the lower density."""
    upper, lower = _shifts(direction)
    with np.errstate(divide="ignore"):
        stay, move = np.log1p(-rate), np.log(rate)
    up = np.logaddexp(stay, move + (-0.5 - x) / noise**2) if upper else 0.0
    down = np.logaddexp(stay, move + (x - 0.5) / noise**2) if lower else 0.0
    return np.asarray(up - down)


def _where_loss(epsilon: FloatArray, noise: float, rate: float, direction: Direction) -> FloatArray:
    """The x at which the loss is epsilon; infinite where it never is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if direction == "remove":
            ratio = np.expm1(epsilon) / rate
            return np.where(ratio > -1, -0.5 - noise**2 * np.log1p(np.maximum(ratio, -1.0)), np.inf)
        if direction == "add":
            ratio = np.expm1(-epsilon) / rate
            return np.where(ratio > -1, 0.5 + noise**2 * np.log1p(np.maximum(ratio, -1.0)), -np.inf)
        # sinh(epsilon/2) (1 - rate)/rate e^(1/(2 noise^2)) = sinh(-x/noise^2 - epsilon/2)
        half = np.abs(epsilon) / 2
        log_sinh = half + np.log(-np.expm1(-2 * half) / 2) + 0.5 / noise**2 + np.log1p(-rate) - math.log(rate)
        arsinh = np.logaddexp(np.logaddexp(0.0, 2 * log_sinh) / 2, log_sinh)
        return np.asarray(-(noise**2) * np.sign(epsilon) * (arsinh + half))


@dataclass(frozen=True, eq=False, repr=False)
class SampledGaussians:
    """The privacy loss of trainings in phases, one after the other, for one relation of neighbours.

    Read as dp_accounting's privacy loss distributions are (`get_delta_for_epsilon`), and for either relation.
    """

    phases: tuple[Phase, ...]
    replaced: bool
    grid: float

    @cached_property
    def profile(self) -> tuple[FloatArray, FloatArray]:
        """Epsilons on the grid from 0, and delta at each: the larger of adding and removing.

        Without any noise a record would still show only if it is in some batch.
        """
        directions: tuple[Direction, ...] = ("replace",) if self.replaced else ("remove", "add")
        found = [accounted(self.phases, way, self.grid) for way in directions]
        longest = max((losses.profile for losses in found), key=lambda profile: float(profile[0][-1]))[0]
        deltas = [_at(longest, *losses.profile) for losses in found]
        with np.errstate(divide="ignore"):
            never = sum(steps * float(np.log1p(-rate)) for _, rate, steps in self.phases)
        return longest, np.minimum(np.max(deltas, axis=0), -math.expm1(never) * (1 + 8 * ULP))

    def get_delta_for_epsilon(self, epsilon: Any) -> Any:
        """delta, exactly between the points of the grid too."""
        found = _at(np.asarray(epsilon, dtype=float), *self.profile)
        return float(found) if found.ndim == 0 else found

    def self_compose(self, times: int) -> SampledGaussians:
        """Every phase so often."""
        phases = tuple((noise, rate, steps * times) for noise, rate, steps in self.phases)
        return SampledGaussians(phases, self.replaced, self.grid)

    def followed_by(self, other: Any) -> SampledGaussians | None:
        """Another training, or Gaussian noise, after this one; None if it is neither."""
        theirs = getattr(other, "pld", None)
        if isinstance(theirs, SampledGaussians) and theirs.grid == self.grid:
            return SampledGaussians(self.phases + theirs.phases, self.replaced, self.grid)
        mu = getattr(other, "mu", 0.0)
        noise = [((2 if self.replaced else 1) / mu, 1.0, 1)] if mu > 0 else []
        return SampledGaussians((*self.phases, *noise), self.replaced, self.grid) if noise else None

    def code(self, write: Callable[[Any], str]) -> str:
        """What makes the guarantee of these trainings, its numbers as `write` writes them."""
        told = [f"relation={write('replace-one')}"] if self.replaced else []
        told += [f"grid={write(self.grid)}"] if self.grid != GRID else []
        if len(self.phases) == 1:
            names = ("noise_multiplier", "sample_rate", "steps")
            numbers = [named(name, number, write) for name, number in zip(names, self.phases[0], strict=True)]
            return f"dp_sgd({', '.join([*numbers, *told])})"
        return f"from_opacus({', '.join([write(list(self.phases)), *told])})"

    def __repr__(self) -> str:
        return f"<{sum(steps for _, _, steps in self.phases)} steps>"

    def to_replace_one(self) -> SampledGaussians:
        """The same trainings accounted for replacing a record."""
        return SampledGaussians(self.phases, True, self.grid)


def _at(epsilon: FloatArray, epsilons: FloatArray, deltas: FloatArray) -> FloatArray:
    """A profile between its points, where delta is linear in e^epsilon; beyond them it stays."""
    place = np.clip(np.searchsorted(epsilons, epsilon, side="right") - 1, 0, epsilons.size - 2)
    gone, gap = np.minimum(epsilon, epsilons[-1]) - epsilons[place], epsilons[place + 1] - epsilons[place]
    share = np.minimum(np.expm1(gone) / np.expm1(gap), 1.0)
    between = deltas[place] + share * (deltas[place + 1] - deltas[place])
    return np.asarray(np.where(epsilon >= epsilons[-1], deltas[-1], between))
