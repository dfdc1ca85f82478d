"""Guarantees that are whole curves: trade-off curves by their points, privacy loss distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from dprisk.errors import GuaranteeError, as_epsilon, as_number, require, require_relation
from dprisk.guarantees.base import LARGEST_EPSILON, Guarantee, Relation, as_rates
from dprisk.guarantees.curves import Knots, below_samples, from_profile, group_of, product, symmetric
from dprisk.guarantees.losses import GRID, SampledGaussians
from dprisk.tables import as_floats
from dprisk.types import FloatArray
from dprisk.values import LONGEST, content

NEARLY_SURE = 1 - 1e-13  # a total variation beyond which the two data sets count as told apart
TINY = np.finfo(float).tiny


class AsCurve(Guarantee):
    """What can be done with any guarantee by its curve alone."""

    def _by_curves(self, other: Guarantee) -> TradeOff:
        """By the product of what the curves describe (Dong, Roth, Su 2022, section 3.1); exact for a few corners."""
        pure = self._pure_epsilon + other._pure_epsilon
        knots = product(self.knots, other.knots)
        return TradeOff(*knots, self.relation, linear=True, epsilon=pure if math.isfinite(pure) else None)

    def _grouped(self, size: int) -> Guarantee:
        """So many steps along the curve."""
        pure = size * self._pure_epsilon
        knots = group_of(*self.knots, size)
        return TradeOff(*knots, self.relation, linear=True, epsilon=pure if math.isfinite(pure) else None)


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(AsCurve):
    """A trade-off curve given by points, such as riskcal's alphas and betas.

    Points are taken as samples of a convex curve, and between them the curve is assumed as low as convexity allows.
    Pass `linear=True` if the curve really is straight between them. It is made symmetric: replacing works both ways.
    `epsilon` is that of pure DP if it is known; otherwise it is read off the curve, where rounding may hide it.
    """

    alpha: npt.ArrayLike
    beta: npt.ArrayLike
    relation: Relation = "replace-one"
    linear: bool = False
    epsilon: float | None = None

    def __post_init__(self) -> None:
        alpha, beta = (as_floats(part, "Error rates", GuaranteeError) for part in (self.alpha, self.beta))
        if not (alpha.ndim == 1 and alpha.size > 0 and alpha.shape == beta.shape):
            raise GuaranteeError("Give at least one alpha, and one beta for each alpha.")
        pure = self.epsilon
        if pure is not None and not as_number("epsilon", pure) >= 0:
            raise GuaranteeError(f"epsilon must be at least 0, got {pure}")
        inside = np.all((alpha >= 0) & (alpha <= 1) & (beta >= 0) & (beta <= 1))
        GuaranteeError.unless(inside, "Error rates alpha and beta must lie in [0, 1].")
        if not np.all(alpha + beta <= 1 + 1e-9):
            raise GuaranteeError("A trade-off curve is at or below 1 - alpha; are these true positive rates, 1 - beta?")
        require_relation(self.relation)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "beta", beta)

    @classmethod
    def from_profile(cls, profile: Callable[[FloatArray], FloatArray], epsilon: float) -> TradeOff:
        """The curve of a mechanism that is (e, profile(e))-DP for every e, and epsilon-DP: by 400 of its tangents."""
        epsilons = np.linspace(0.0, min(epsilon, 700.0), 400) if epsilon > 0 else np.zeros(1)
        alpha, beta = from_profile(epsilons, profile(epsilons))
        return cls(alpha, beta, linear=True, epsilon=epsilon)

    @cached_property
    def knots(self) -> Knots:
        alpha, beta = np.asarray(self.alpha), np.asarray(self.beta)
        return symmetric(alpha, beta) if self.linear else below_samples(alpha, beta)

    @property
    def _pure_epsilon(self) -> float:
        if self.epsilon is not None:
            return self.epsilon
        alpha, beta = self.knots
        steepest = float(beta[0] - beta[1]), float(alpha[1] - alpha[0])
        return (math.log(steepest[0]) - math.log(steepest[1])) * (1 + 1e-15) if beta[0] == 1 else math.inf

    def _repeated(self, times: int) -> Guarantee:
        """Through the privacy loss distribution of the pair of outputs that the curve describes, rounded up."""
        if self.total_variation > NEARLY_SURE:  # an accountant has no mass left to compose
            pure = None if self.epsilon is None else times * self.epsilon
            return TradeOff([0.0], [0.0], self.relation, linear=True, epsilon=pure)
        return _privacy_loss_of_knots(self.knots, self.relation).compose(times)

    def to_replace_one(self) -> Guarantee:
        """Two steps along the curve."""
        return self if self.relation == "replace-one" else self._grouped(2).replace(relation="replace-one")

    def to_dict(self) -> dict[str, Any]:
        alpha, beta = self.knots
        return {"kind": "tradeoff", "alpha": alpha.tolist(), "beta": beta.tolist(), "relation": self.relation}

    def _summary(self) -> str:
        return f"TradeOff({self.knots[0].size} knots, total variation {self.total_variation:.4g})"


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss(AsCurve):
    """A privacy loss distribution: anything with dp_accounting's `get_delta_for_epsilon` (and `self_compose`).

    dp_accounting does not store the neighbouring relation in the object (and takes add/remove unless told otherwise),
    so it must be said here. One that also has a `profile` (rising epsilons from 0, and delta at each) is read faster,
    and one that has `to_replace_one` is accounted for replacement afresh where it is needed.
    """

    pld: Any
    relation: Relation
    _told = "privacy loss", "total_variation"

    def __post_init__(self) -> None:
        if not hasattr(self.pld, "get_delta_for_epsilon"):
            raise GuaranteeError(f"A privacy loss has get_delta_for_epsilon; {type(self.pld).__name__} has not.")
        require_relation(self.relation)

    def delta_at(self, epsilon: float) -> float:
        return float(min(1.0, self.pld.get_delta_for_epsilon(as_epsilon(epsilon))))

    def epsilon_at(self, delta: float) -> float:
        require(0 <= delta <= 1, f"delta must lie in [0, 1], got {delta}")
        if delta == 0 or not hasattr(self.pld, "get_epsilon_for_delta"):
            return super().epsilon_at(delta)
        return float(self.pld.get_epsilon_for_delta(delta))

    @cached_property
    def total_variation(self) -> float:
        return self.delta_at(0.0)

    @cached_property
    def _top(self) -> float:
        """An epsilon beyond which delta hardly falls."""
        top = 0.1
        while top < 200 and self.delta_at(top) > 1e-12:
            top *= 1.5
        return top

    def tradeoff(self, alpha: npt.ArrayLike) -> FloatArray:
        """At one place by the best tangent there, which is closer than the knots; at several by the knots."""
        place = as_rates(alpha)
        if place.ndim > 0:
            return super().tradeoff(place)
        rate = float(place)
        if hasattr(self.pld, "profile"):
            steep, height = self._lines
            return np.asarray(max(0.0, np.max(height - steep * rate), np.max((height - rate) / steep)))

        def depth(epsilon: float) -> float:
            delta = self.delta_at(epsilon)
            return -max(1 - delta - math.exp(epsilon) * rate, (1 - delta - rate) * math.exp(-epsilon), 0.0)

        best = scipy.optimize.minimize_scalar(depth, bounds=(0.0, self._top), method="bounded", options={"xatol": 1e-5})
        return np.asarray(-min(best.fun, depth(0.0)))

    @cached_property
    def _lines(self) -> tuple[FloatArray, FloatArray]:
        """e^epsilon and 1 - delta: every line 1 - delta - e^epsilon alpha lies below the curve, and so its mirror."""
        epsilons, deltas = self.pld.profile
        return np.exp(np.minimum(epsilons, LARGEST_EPSILON)), 1 - np.asarray(deltas, dtype=float)

    @cached_property
    def knots(self) -> Knots:
        top = self._top
        epsilons = np.unique(np.concatenate([np.linspace(0.0, top, 1000), np.geomspace(top / 1e4, top, 1000)]))
        if not hasattr(self.pld, "profile"):
            return from_profile(epsilons, np.asarray(self.pld.get_delta_for_epsilon(epsilons), dtype=float))
        known, deltas = self.pld.profile
        some = np.unique(np.searchsorted(known, epsilons).clip(max=known.size - 1))
        return from_profile(known[some], np.asarray(deltas)[some])

    def _repeated(self, times: int) -> PrivacyLoss:
        return PrivacyLoss(self.pld.self_compose(times), self.relation)

    def _and(self, other: Guarantee) -> Guarantee | None:
        """Distributions that know how to compose with each other do."""
        together = getattr(self.pld, "followed_by", lambda other: None)(other)
        return None if together is None else PrivacyLoss(together, self.relation)

    def to_replace_one(self) -> Guarantee:
        """Accounted for replacement, which is tighter, or else two steps along the trade-off curve."""
        if self.relation == "replace-one":
            return self
        if hasattr(self.pld, "to_replace_one"):
            return PrivacyLoss(self.pld.to_replace_one(), "replace-one")
        return self._grouped(2).replace(relation="replace-one")

    @cached_property
    def _content(self) -> Hashable:
        """The distributions of other libraries do not compare; the curves that follow from them do."""
        return type(self), self.relation, content(self.knots)

    def to_dict(self) -> dict[str, Any]:
        trained = self.pld.phases if isinstance(self.pld, SampledGaussians) else ()
        return super().to_dict() | ({"phases": [list(phase) for phase in trained]} if trained else {})

    @property
    def whatever(self) -> str:
        trained = isinstance(self.pld, SampledGaussians)
        return "Whatever model is trained like this" if trained else super().whatever

    def _code(self, write: Callable[[Any], str]) -> str:
        code = self.pld.code(write) if isinstance(self.pld, SampledGaussians) else ""
        return code if 0 < len(code) <= LONGEST else super()._code(write)

    def _summary(self) -> str:
        return f"PrivacyLoss(total variation {self.total_variation:.4g}, {self.relation})"


def _privacy_loss_of_knots(knots: Knots, relation: Relation) -> PrivacyLoss:
    """The distribution of the pair of outputs that a piecewise linear curve describes, with one output a segment."""
    from dp_accounting.pld import privacy_loss_distribution

    alpha, beta = knots
    lower, upper = np.append(np.diff(alpha), 0.0), np.append(-np.diff(beta), 1 - beta[0])
    logs = [np.log(np.maximum(mass / mass.sum(), TINY)) for mass in (lower, upper)]
    some = [{i: float(log) for i, log in enumerate(part) if log > math.log(1e-300)} for part in logs]
    pld = privacy_loss_distribution.from_two_probability_mass_functions(*some, value_discretization_interval=GRID)
    return PrivacyLoss(pld, relation)
