"""Privacy notions that are a few numbers: pure, approximate, Gaussian, concentrated and Renyi DP, a curve."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import GuaranteeError, as_epsilon, as_number, as_whole, fail, require
from dprisk.guarantees.base import Guarantee, Relation, _rates
from dprisk.guarantees.curves import Knots, below_samples, from_profile, group_of_two, symmetric
from dprisk.tables import as_floats
from dprisk.types import FloatArray

PROFILE = np.concatenate([[0.0], np.geomspace(1e-4, 60.0, 600)])  # epsilons at which a smooth curve gets its tangents


@dataclass(frozen=True)
class ApproxDP(Guarantee):
    """(epsilon, delta)-differential privacy."""

    epsilon: float
    delta: float = 0.0
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))
        object.__setattr__(self, "delta", as_number("delta", self.delta))
        require(0 <= self.delta <= 1, f"delta must lie in [0, 1], got {self.delta}")
        _require_relation(self.relation)

    @cached_property
    def knots(self) -> Knots:
        middle = (1 - self.delta) * math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))
        kinks = [(0.0, 1 - self.delta), (middle, middle), (1 - self.delta, 0.0), (1.0, 0.0)]
        alpha, beta = np.array(sorted(set(kinks), key=lambda kink: (kink[0], -kink[1]))).T
        return alpha, beta

    def delta_at(self, epsilon: float) -> float:
        """delta from its own epsilon on; below it, up to total variation (e^eps - 1 + 2 delta)/(e^eps + 1) at 0."""
        missing = self.epsilon - as_epsilon(epsilon)
        if missing <= 0:
            return self.delta
        return self.delta + (1 - self.delta) * -math.expm1(-missing) / (1 + math.exp(-self.epsilon))

    def epsilon_at(self, delta: float) -> float:
        """The formula of `delta_at` solved for epsilon; infinite below the guarantee's own delta."""
        delta = as_number("delta", delta)
        require(0 <= delta <= 1, f"delta must lie in [0, 1], got {delta}")
        if delta < self.delta:
            return math.inf
        if delta >= self.total_variation:
            return 0.0
        share = (delta - self.delta) * (1 + math.exp(-self.epsilon)) / (1 - self.delta)
        return max(0.0, self.epsilon + math.log1p(-share) * (1 - 1e-12))  # rounded up

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        return [(self.epsilon, self.delta)]

    @property
    def _pure_epsilon(self) -> float:
        return self.epsilon if self.delta == 0 else math.inf

    def compose(self, times: int) -> Guarantee:
        """The exact optimum (Kairouz, Oh, Viswanath 2015): `times` randomised responses, each revealing with delta.

        Unless one reveals, all that counts is how many of the binary responses point to the first data set.
        """
        times = as_whole("times", times)
        if times == 1:
            return self
        from scipy.special import bdtr

        p, q = 1 / (1 + math.exp(-self.epsilon)), math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))
        count = np.arange(times, -1, -1)
        hidden = (1 - self.delta) ** times
        # P(at least k responses point to the first): when it is true, and when the second is.
        hit, alarm = bdtr(times - count, times, q), bdtr(times - count, times, p)
        places, heights = np.r_[0.0, hidden * alarm], np.r_[hidden, hidden * (1 - hit)]
        pure = times * self.epsilon if self.delta == 0 else None
        return TradeOff(places, heights, self.relation, linear=True, epsilon=pure)

    def to_replace_one(self) -> ApproxDP:
        """Replacing is removing and adding: (2 epsilon, (1 + e^epsilon) delta)."""
        if self.relation == "replace-one":
            return self
        grown = (1 + math.exp(self.epsilon)) * self.delta if self.epsilon < 700 else float(self.delta > 0)
        return ApproxDP(2 * self.epsilon, min(1.0, grown))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "approx", "epsilon": self.epsilon, "delta": self.delta, "relation": self.relation}


@dataclass(frozen=True)
class PureDP(ApproxDP):
    """epsilon-differential privacy."""

    epsilon: float
    delta: float = field(default=0.0, init=False, repr=False)
    relation: Relation = "replace-one"

    def to_replace_one(self) -> PureDP:
        """Replacing is removing and adding: 2 epsilon."""
        return self if self.relation == "replace-one" else PureDP(2 * self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "pure", "epsilon": self.epsilon, "relation": self.relation}


@dataclass(frozen=True)
class GaussianDP(Guarantee):
    """mu-Gaussian DP: neighbours are as hard to tell apart as N(0, 1) and N(mu, 1).

    A Gaussian mechanism has mu = (largest distance between neighbours' queries) / sigma. Under replacement that
    distance is up to twice the clipping norm: full-batch DP-SGD has mu = 2 sqrt(steps) / noise_multiplier (theory,
    correction 1).
    """

    mu: float
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", as_number("mu", self.mu))
        require(0 <= self.mu < math.inf, f"mu must be a finite number of at least 0, got {self.mu}")
        _require_relation(self.relation)

    def tradeoff(self, alpha: npt.ArrayLike) -> FloatArray:
        """Phi(Phi^-1(1 - alpha) - mu)."""
        from scipy.special import ndtr, ndtri

        return np.asarray(ndtr(-ndtri(_rates(alpha)) - self.mu))

    def delta_at(self, epsilon: float) -> float:
        """Balle and Wang 2018, Theorem 8."""
        from scipy.special import log_ndtr, ndtr

        epsilon = as_epsilon(epsilon)
        if self.mu == 0:
            return 0.0
        far = epsilon / self.mu
        return float(max(0.0, ndtr(self.mu / 2 - far) - math.exp(epsilon + log_ndtr(-self.mu / 2 - far))))

    @property
    def total_variation(self) -> float:
        """2 Phi(mu / 2) - 1."""
        return math.erf(self.mu / math.sqrt(8))

    def crossing(self, slope: float) -> float:
        """By bisection on the curve itself, which the knots only approximate."""
        low, high = 0.0, 1 / (1 + slope)  # the curve lies below 1 - alpha
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if float(self.tradeoff(middle)) >= slope * middle else (low, middle)
        return low

    @cached_property
    def knots(self) -> Knots:
        return from_profile(PROFILE, np.array([self.delta_at(epsilon) for epsilon in PROFILE]))

    def compose(self, times: int) -> GaussianDP:
        """mu grows with the square root."""
        times = as_whole("times", times)
        return GaussianDP(self.mu * math.sqrt(times), self.relation)

    def to_replace_one(self) -> GaussianDP:
        """Two steps of mu are one of 2 mu."""
        return self if self.relation == "replace-one" else GaussianDP(2 * self.mu)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "gaussian", "mu": self.mu, "relation": self.relation}


class _ByRenyi(Guarantee):
    """A guarantee that comes as Renyi divergences."""

    @cached_property
    @abstractmethod
    def _divergences(self) -> tuple[FloatArray, FloatArray]:
        """Orders above 1 and the divergence at each."""

    def delta_at(self, epsilon: float) -> float:
        """The best over the orders, and by the curve, which joins what different orders say."""
        by_orders, by_curve = self._delta_by_orders(as_epsilon(epsilon)), super().delta_at(epsilon)
        return min(by_orders, by_curve) if by_curve > 1e-12 else by_orders  # the curve has no digits left below

    def _delta_by_orders(self, epsilon: float) -> float:
        """Canonne, Kamath, Steinke 2020, Proposition 12; at most the total variation."""
        order, value = self._divergences
        log_delta = (order - 1) * (value - epsilon + np.log1p(-1 / order)) - np.log(order)
        return min(float(np.exp(min(0.0, log_delta.min()))), _variation_from_kl(float(value.min())))

    @cached_property
    def knots(self) -> Knots:
        return from_profile(PROFILE, np.array([self._delta_by_orders(epsilon) for epsilon in PROFILE]))


@dataclass(frozen=True)
class RenyiDP(_ByRenyi):
    """Renyi divergences of at most `values[i]` at `orders[i]` > 1."""

    orders: Sequence[float]
    values: Sequence[float]
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", tuple(map(float, np.atleast_1d(self.orders))))
        object.__setattr__(self, "values", tuple(map(float, np.atleast_1d(self.values))))
        require(len(self.orders) == len(self.values), "Give one value for each order.", GuaranteeError)
        proper = len(self.orders) > 0 and all(1 < order < math.inf for order in self.orders)
        require(proper, "Renyi orders must be finite and above 1.", GuaranteeError)
        require(all(value >= 0 for value in self.values), "Renyi divergences must be at least 0.", GuaranteeError)
        _require_relation(self.relation)

    @cached_property
    def _divergences(self) -> tuple[FloatArray, FloatArray]:
        return np.array(self.orders), np.array(self.values)

    def compose(self, times: int) -> RenyiDP:
        """Renyi divergences add up."""
        times = as_whole("times", times)
        return RenyiDP(self.orders, tuple(times * value for value in self.values), self.relation)

    def to_replace_one(self) -> RenyiDP:
        """Refused: two steps cost too much at these orders."""
        if self.relation == "replace-one":
            return self
        return fail(
            "A Renyi guarantee for adding or removing a record says little about replacing one; account for "
            "replacement from the start, with DpEvents or noise multipliers.",
            GuaranteeError,
        )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "renyi", "orders": self.orders, "values": self.values, "relation": self.relation}


@dataclass(frozen=True)
class ZCDP(_ByRenyi):
    """rho-zero-concentrated DP: the Renyi divergence of every order a is at most a rho."""

    rho: float
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", as_number("rho", self.rho))
        require(0 <= self.rho < math.inf, f"rho must be a finite number of at least 0, got {self.rho}")
        _require_relation(self.relation)

    @cached_property
    def _divergences(self) -> tuple[FloatArray, FloatArray]:
        orders = 1 + np.geomspace(1e-6, 1e6, 2000)
        return orders, orders * self.rho

    def compose(self, times: int) -> ZCDP:
        """rho adds up."""
        times = as_whole("times", times)
        return ZCDP(self.rho * times, self.relation)

    def to_replace_one(self) -> ZCDP:
        """Two steps of rho are one of 4 rho."""
        return self if self.relation == "replace-one" else ZCDP(4 * self.rho)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "zcdp", "rho": self.rho, "relation": self.relation}


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(Guarantee):
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
        require(
            alpha.ndim == 1 and alpha.size > 0 and alpha.shape == beta.shape,
            "Give at least one alpha, and one beta for each alpha.",
            GuaranteeError,
        )
        pure = self.epsilon
        require(
            pure is None or as_number("epsilon", pure) >= 0, f"epsilon must be at least 0, got {pure}", GuaranteeError
        )
        inside = np.all((alpha >= 0) & (alpha <= 1) & (beta >= 0) & (beta <= 1))
        require(bool(inside), "Error rates alpha and beta must lie in [0, 1].", GuaranteeError)
        require(
            bool(np.all(alpha + beta <= 1 + 1e-9)),
            "A trade-off curve lies at or below 1 - alpha; are these true positive rates (1 - beta)?",
            GuaranteeError,
        )
        _require_relation(self.relation)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "beta", beta)

    @classmethod
    def from_profile(cls, profile: Callable[[FloatArray], FloatArray], epsilon: float) -> TradeOff:
        """The curve of a mechanism that is (e, profile(e))-DP for every e, and epsilon-DP: by 400 of its tangents."""
        epsilons = np.linspace(0.0, min(epsilon, 700.0), 400) if epsilon > 0 else np.zeros(1)
        alpha, beta = from_profile(epsilons, profile(epsilons))
        return cls(alpha, beta, linear=True, epsilon=epsilon)

    @classmethod
    def from_function(
        cls, curve: Callable[[FloatArray], npt.ArrayLike], relation: Relation = "replace-one"
    ) -> TradeOff:
        """A convex curve given as a function of an array of alphas, sampled densely where it bends."""
        tail = np.geomspace(1e-12, 0.5, 1000)
        alpha = np.unique(np.concatenate([[0.0], tail, 1 - tail, [1.0]]))
        return cls(alpha, np.asarray(curve(alpha), dtype=float), relation)

    @cached_property
    def knots(self) -> Knots:
        alpha, beta = np.asarray(self.alpha), np.asarray(self.beta)
        return symmetric(alpha, beta) if self.linear else below_samples(alpha, beta)

    @property
    def _pure_epsilon(self) -> float:
        if self.epsilon is not None:
            return self.epsilon
        alpha, beta = self.knots
        steepest = (beta[0] - beta[1]) / (alpha[1] - alpha[0])
        return math.log(steepest) * (1 + 1e-15) if beta[0] == 1 else math.inf

    def compose(self, times: int) -> Guarantee:
        """Through the privacy loss distribution of the pair of outputs that the curve describes, rounded up."""
        times = as_whole("times", times)
        from dprisk.guarantees.accounting import privacy_loss_of_knots

        return self if times == 1 else privacy_loss_of_knots(self.knots, self.relation).compose(times)

    def to_replace_one(self) -> TradeOff:
        """Two steps along the curve."""
        if self.relation == "replace-one":
            return self
        pure = None if self.epsilon is None else 2 * self.epsilon
        return TradeOff(*group_of_two(*self.knots), linear=True, epsilon=pure)

    def to_dict(self) -> dict[str, Any]:
        alpha, beta = self.knots
        return {"kind": "tradeoff", "alpha": alpha.tolist(), "beta": beta.tolist(), "relation": self.relation}

    def __repr__(self) -> str:
        return f"TradeOff({self.knots[0].size} knots, total variation {self.total_variation:.4g})"


def _require_relation(relation: str) -> None:
    require(
        relation in ("replace-one", "add-remove"),
        f"relation must be 'replace-one' or 'add-remove', got {relation!r}",
        GuaranteeError,
    )


def _variation_from_kl(divergence: float) -> float:
    """Total variation from a Kullback-Leibler divergence: Pinsker, or Bretagnolle and Huber where that is smaller."""
    return min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)))
