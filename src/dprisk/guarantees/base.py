"""What every guarantee can tell: its trade-off curve, total variation, epsilon for a delta, delta for an epsilon."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dprisk.errors import GuaranteeError, as_epsilon, as_number, as_whole, require
from dprisk.guarantees.curves import Knots
from dprisk.tables import as_floats
from dprisk.types import FloatArray
from dprisk.values import Adjustable

Relation = Literal["replace-one", "add-remove"]
ROUNDING = 2.0**-51  # what adding up knots may lose, put on top to stay on the safe side
END = 1e-14  # what adding up knots may lose near (0, 1) and (1, 0)
LARGEST_EPSILON = 700.0  # e^epsilon must be a float
BY_LOGARITHMS = 1e12  # epsilons of deltas that are computed in logarithms


class Guarantee(Adjustable):
    """A promise about every pair of neighbouring data sets.

    Neighbours differ by replacement of one record, unless `relation` says "add-remove". Bounds say which of the two
    they are for; `to_replace_one` converts. The trade-off curve is convex and symmetric and never above the truth.
    """

    relation: Relation
    _told: ClassVar[tuple[str, ...]] = ()  # its kind, and the names of its numbers
    _largest_epsilon: ClassVar[float] = LARGEST_EPSILON  # up to which `delta_at` can be told

    @cached_property
    @abstractmethod
    def knots(self) -> Knots:
        """A convex piecewise linear curve at or below the trade-off curve: the places alpha and the heights beta."""

    def compose(self, other: Guarantee | int) -> Guarantee:
        """The guarantee of so many independent releases that each have this one, or of this release and another.

        >>> from dprisk import GaussianDP, PureDP
        >>> GaussianDP(3.0).compose(GaussianDP(4.0))
        GaussianDP(mu=5)
        >>> PureDP(1.0).compose(PureDP(0.5)).epsilon_at(0.0)
        1.5
        """
        if not isinstance(other, Guarantee):
            times = as_whole("times", other)
            return self if times == 1 else self._repeated(times)
        GuaranteeError.unless(
            self.relation == other.relation,
            f"One guarantee is for {self.relation}, the other for {other.relation}; compose those for the same.",
        )
        return self._and(other) or other._and(self) or self._by_curves(other)

    @abstractmethod
    def _repeated(self, times: int) -> Guarantee:
        """`compose` for two or more releases with this guarantee."""

    def _and(self, other: Guarantee) -> Guarantee | None:
        """`compose` with another guarantee, where there is a closer way than by the curves of both."""
        return None

    @abstractmethod
    def _by_curves(self, other: Guarantee) -> Guarantee:
        """`compose` with any other guarantee."""

    def for_groups(self, size: int) -> Guarantee:
        """The guarantee for data sets that differ in so many records, one after the other.

        >>> from dprisk import PureDP
        >>> PureDP(0.5).for_groups(4)
        PureDP(epsilon=2)
        """
        size = as_whole("size", size)
        return self if size == 1 else self._grouped(size)

    @abstractmethod
    def _grouped(self, size: int) -> Guarantee:
        """`for_groups` of two or more."""

    @abstractmethod
    def to_replace_one(self) -> Guarantee:
        """The guarantee for replacing a record, from one for adding or removing it; itself if it is one already."""

    @cached_property
    def replaced(self) -> Guarantee:
        """The same as `to_replace_one()`, worked out once."""
        return self.to_replace_one()

    @property
    def whatever(self) -> str:
        """What a bound from it is true for, as a sentence begins."""
        return "Whatever the mechanism"

    def to_dict(self) -> dict[str, Any]:
        """The kind and the numbers of the guarantee, ready for JSON."""
        kind, *names = self._told
        return {"kind": kind, **{name: getattr(self, name) for name in names}, "relation": self.relation}

    def guarantee(self) -> Guarantee:
        """Itself: so it can be asked as a mechanism is."""
        return self

    def tradeoff(self, alpha: npt.ArrayLike) -> FloatArray:
        """f(alpha), the least false negative rate of any test with false positive rate alpha."""
        places = as_rates(alpha)
        return np.interp(places, *self.knots)

    def delta_at(self, epsilon: float) -> float:
        """The delta that goes with an epsilon: max_alpha 1 - f(alpha) - e^epsilon alpha."""
        epsilon = as_epsilon(epsilon)
        if epsilon >= self._pure_epsilon:
            return 0.0
        alpha, beta = self.knots
        gain = 1 - beta - np.exp(min(epsilon, LARGEST_EPSILON)) * alpha
        return float(min(max(0.0, gain.max()) + ROUNDING, 1.0))

    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon that goes with a delta, infinite if there is none; rounded up."""
        delta = as_number("delta", delta)
        require(0 <= delta <= 1, f"delta must lie in [0, 1], got {delta}")
        if self.total_variation <= delta:
            return 0.0
        if delta == 0:
            return self._pure_epsilon
        return least_epsilon(self.delta_at, delta, self._largest_epsilon)

    @cached_property
    def total_variation(self) -> float:
        """The largest total variation distance between the outputs on neighbours: delta_at(0)."""
        return self.delta_at(0.0)

    @cached_property
    def implied_mu(self) -> float:
        """The least mu for which the curve shows mu-Gaussian DP, rounded up; infinite unless this is pure DP.

        A Gaussian curve is convex, so it lies below a piecewise linear one if it does at the knots: mu is the largest
        Phi^-1(1 - alpha) - Phi^-1(beta). A knot within rounding of an end of the curve is that end.
        """
        if not math.isfinite(self._pure_epsilon):
            return math.inf
        alpha, beta = self.knots
        ends = (np.minimum(alpha, beta) < END) & (np.maximum(alpha, beta) > 1 - END)
        inner = list(zip(alpha[~ends].tolist(), beta[~ends].tolist(), strict=True))
        if any(min(knot) <= 0 for knot in inner):
            return math.inf
        quantile = NormalDist().inv_cdf  # which takes no import of scipy.special, that quick answers do without
        return max([0.0, *(-quantile(place) - quantile(height) for place, height in inner)]) * (1 + 1e-12)

    def largest_gap(self, low: float, high: float) -> float:
        """max 1 - f(alpha) - alpha over low <= alpha <= high.

        The gap is concave and, f being symmetric, largest at the fixed point of f, where it is the total variation.
        That point is (1 - TV) / 2, and within rounding of the interval counts as inside: the safe side.
        """
        fixed = (1 - self.total_variation) / 2
        if low - 1e-12 <= fixed <= high + 1e-12:
            return self.total_variation
        end = low if fixed < low else high
        gap = max(0.0, 1 - float(self.tradeoff(end)) - end) + ROUNDING
        return min(gap, self.total_variation)

    def crossing(self, slope: float) -> float:
        """The place a where the curve meets the line slope * a, rounded down; slope > 0."""
        alpha, beta = self.knots
        above = beta - slope * alpha  # falls from beta[0] >= 0 to -slope
        last = int(np.flatnonzero(above >= 0)[-1])
        if last == alpha.size - 1:
            return float(alpha[-1])
        share = above[last] / (above[last] - above[last + 1])
        return float((alpha[last] + share * (alpha[last + 1] - alpha[last])) * (1 - 1e-15))

    @property
    def _pure_epsilon(self) -> float:
        """The epsilon that goes with delta = 0; infinite unless a notion knows better."""
        return math.inf

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        """Pairs (epsilon, delta) that the guarantee implies, for bounds that take such a pair: try each."""
        alpha, beta = self.knots
        with np.errstate(over="ignore", divide="ignore"):
            steep = -np.diff(beta) / np.diff(alpha)  # a tangent of slope -e^eps meets the curve where its slope changes
        top = min(math.log(steep[0]) if steep[0] > 1 else 0.0, 50.0)
        grid = np.linspace(0.0, top, 41)
        deltas = (1 - beta - np.exp(grid)[:, None] * alpha).max(axis=1)
        listed = list(zip(grid.tolist(), np.clip(deltas, 0.0, 1.0).tolist(), strict=True))
        return listed + ([(self._pure_epsilon, 0.0)] if math.isfinite(self._pure_epsilon) else [])

    def require_replace_one(self) -> None:
        """Refuse a guarantee for another neighbouring relation, with the way out."""
        GuaranteeError.unless(
            self.relation == "replace-one",
            f"{self!r} is for adding or removing one record, the bounds are for replacing one; "
            "call to_replace_one() to convert it.",
        )


def least_epsilon(delta_at: Callable[[float], float], delta: float, largest: float) -> float:
    """The smallest epsilon whose delta is at most this one, by bisection; infinite if there is none up to `largest`."""
    if delta_at(0.0) <= delta:
        return 0.0
    low, high = 0.0, min(LARGEST_EPSILON, largest)
    while delta_at(high) > delta:
        if high >= largest:
            return math.inf
        low, high = high, min(2 * high, largest)
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def as_rates(alpha: npt.ArrayLike) -> FloatArray:
    """False positive rates, checked."""
    places = as_floats(alpha, "False positive rates", GuaranteeError)
    require(np.all((places >= 0) & (places <= 1)), "A false positive rate must lie in [0, 1].")
    return places
