"""Privacy notions that are a few numbers: pure, approximate, Gaussian, concentrated and Renyi DP."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from dprisk.errors import GuaranteeError, as_epsilon, as_number, require, require_relation
from dprisk.guarantees.base import BY_LOGARITHMS, Guarantee, Relation, as_rates
from dprisk.guarantees.curves import Knots, from_profile
from dprisk.guarantees.profiles import AsCurve, TradeOff
from dprisk.types import FloatArray
from dprisk.values import Parameter

PROFILE = np.concatenate([[0.0], np.geomspace(1e-4, 60.0, 600)])  # epsilons at which a smooth curve gets its tangents
FINE_PROFILE = np.concatenate([[0.0], np.geomspace(1e-4, 60.0, 1500)])  # the same where they cost little


@dataclass(frozen=True, eq=False, repr=False)
class ApproxDP(AsCurve):
    """(epsilon, delta)-differential privacy."""

    epsilon: float
    delta: float = 0.0
    relation: Relation = "replace-one"
    _told: ClassVar[tuple[str, ...]] = "approx", "epsilon", "delta"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))
        object.__setattr__(self, "delta", as_number("delta", self.delta))
        require(0 <= self.delta <= 1, f"delta must lie in [0, 1], got {self.delta}")
        require_relation(self.relation)

    @property
    def parameter(self) -> Parameter:
        return Parameter.epsilon(self.epsilon)

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
        found = self.epsilon + math.log1p(-share) * (1 - 1e-12)
        return min(self.epsilon, max(0.0, found) * (1 + 1e-15))  # rounded up

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        return [(self.epsilon, self.delta)]

    @property
    def _pure_epsilon(self) -> float:
        return self.epsilon if self.delta == 0 else math.inf

    def _repeated(self, times: int) -> Guarantee:
        """The exact optimum (Kairouz, Oh, Viswanath 2015): `times` randomised responses, each revealing with delta.

        Unless one reveals, all that counts is how many of the binary responses point to the first data set.
        """
        p, q = 1 / (1 + math.exp(-self.epsilon)), math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))
        count = np.arange(times, -1, -1)
        hidden = (1 - self.delta) ** times
        # P(at least k responses point to the first): when it is true, and when the second is.
        hit, alarm = scipy.special.bdtr(times - count, times, q), scipy.special.bdtr(times - count, times, p)
        places, heights = np.r_[0.0, hidden * alarm], np.r_[hidden, hidden * (1 - hit)]
        pure = times * self.epsilon if self.delta == 0 else None
        return TradeOff(places, heights, self.relation, linear=True, epsilon=pure)

    def _grouped(self, size: int) -> ApproxDP:
        """(k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1)): delta grows by e^epsilon in every step."""
        if self.delta == 0:
            return ApproxDP(size * self.epsilon, 0.0, self.relation)
        grown = sum(math.exp(min(step * self.epsilon, 700.0)) for step in range(size)) * self.delta
        return ApproxDP(size * self.epsilon, min(1.0, grown), self.relation)

    def to_replace_one(self) -> ApproxDP:
        """Replacing is removing and adding: (2 epsilon, (1 + e^epsilon) delta)."""
        return self if self.relation == "replace-one" else self._grouped(2).replace(relation="replace-one")


@dataclass(frozen=True, eq=False, repr=False)
class PureDP(ApproxDP):
    """epsilon-differential privacy."""

    epsilon: float
    delta: float = field(default=0.0, init=False, repr=False)
    relation: Relation = "replace-one"
    _told = "pure", "epsilon"

    def to_replace_one(self) -> PureDP:
        """Replacing is removing and adding: 2 epsilon."""
        return self if self.relation == "replace-one" else PureDP(2 * self.epsilon)

    def _grouped(self, size: int) -> PureDP:
        """k epsilon."""
        return PureDP(size * self.epsilon, self.relation)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianDP(AsCurve):
    """mu-Gaussian DP: neighbours are as hard to tell apart as N(0, 1) and N(mu, 1).

    A Gaussian mechanism has mu = (largest distance between neighbours' queries) / sigma. Under replacement that
    distance is up to twice the clipping norm: full-batch DP-SGD has mu = 2 sqrt(steps) / noise_multiplier (theory,
    correction 1).
    """

    mu: float
    relation: Relation = "replace-one"
    _told = "gaussian", "mu"
    _largest_epsilon: ClassVar[float] = BY_LOGARITHMS

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", as_number("mu", self.mu))
        require(0 <= self.mu < math.inf, f"mu must be a finite number of at least 0, got {self.mu}")
        require_relation(self.relation)

    @property
    def parameter(self) -> Parameter:
        return Parameter("mu", self.mu, rises=True)

    def tradeoff(self, alpha: npt.ArrayLike) -> FloatArray:
        """Phi(Phi^-1(1 - alpha) - mu)."""
        return np.asarray(scipy.special.ndtr(-scipy.special.ndtri(as_rates(alpha)) - self.mu))

    def delta_at(self, epsilon: float) -> float:
        """Balle and Wang 2018, Theorem 8."""
        return float(self._deltas(np.asarray(as_epsilon(epsilon))))

    def _deltas(self, epsilon: FloatArray) -> FloatArray:
        if self.mu == 0:
            return np.zeros(epsilon.shape)
        far, normal = epsilon / self.mu, scipy.special
        below = normal.ndtr(self.mu / 2 - far) - np.exp(epsilon + normal.log_ndtr(-self.mu / 2 - far))
        return np.asarray(np.maximum(0.0, below))

    def epsilon_at(self, delta: float) -> float:
        return super().epsilon_at(delta) * (1 + 1e-13)  # beyond what the logarithms in `delta_at` may lose

    @property
    def total_variation(self) -> float:
        """2 Phi(mu / 2) - 1."""
        return math.erf(self.mu / math.sqrt(8))

    @property
    def implied_mu(self) -> float:
        return self.mu

    def crossing(self, slope: float) -> float:
        """By bisection on the curve itself, which the knots only approximate."""
        low, high = 0.0, 1 / (1 + slope)  # the curve lies below 1 - alpha
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if float(self.tradeoff(middle)) >= slope * middle else (low, middle)
        return low

    @cached_property
    def knots(self) -> Knots:
        return from_profile(FINE_PROFILE, self._deltas(FINE_PROFILE))

    def _repeated(self, times: int) -> GaussianDP:
        """mu grows with the square root."""
        return GaussianDP(self.mu * math.sqrt(times), self.relation)

    def _and(self, other: Guarantee) -> Guarantee | None:
        """The squares of mu add up."""
        return GaussianDP(math.hypot(self.mu, other.mu), self.relation) if isinstance(other, GaussianDP) else None

    def _grouped(self, size: int) -> GaussianDP:
        """k mu."""
        return GaussianDP(size * self.mu, self.relation)

    def to_replace_one(self) -> GaussianDP:
        """Two steps of mu are one of 2 mu."""
        return self if self.relation == "replace-one" else GaussianDP(2 * self.mu)


class _ByRenyi(AsCurve):
    """A guarantee that comes as Renyi divergences."""

    _largest_epsilon: ClassVar[float] = BY_LOGARITHMS

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


@dataclass(frozen=True, eq=False, repr=False)
class RenyiDP(_ByRenyi):
    """Renyi divergences of at most `values[i]` at `orders[i]` > 1."""

    orders: Sequence[float]
    values: Sequence[float]
    relation: Relation = "replace-one"
    _told = "renyi", "orders", "values"

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", tuple(map(float, np.atleast_1d(self.orders))))
        object.__setattr__(self, "values", tuple(map(float, np.atleast_1d(self.values))))
        GuaranteeError.unless(len(self.orders) == len(self.values), "Give one value for each order.")
        proper = len(self.orders) > 0 and all(1 < order < math.inf for order in self.orders)
        GuaranteeError.unless(proper, "Renyi orders must be finite and above 1.")
        GuaranteeError.unless(all(value >= 0 for value in self.values), "Renyi divergences must be at least 0.")
        require_relation(self.relation)

    @cached_property
    def _divergences(self) -> tuple[FloatArray, FloatArray]:
        return np.array(self.orders), np.array(self.values)

    def _repeated(self, times: int) -> RenyiDP:
        """Renyi divergences add up."""
        return RenyiDP(self.orders, tuple(times * value for value in self.values), self.relation)

    def _and(self, other: Guarantee) -> Guarantee | None:
        """Renyi divergences add up, order by order, where both are known; concentrated DP knows all of them."""
        if isinstance(other, ZCDP):
            values = [value + order * other.rho for order, value in zip(self.orders, self.values, strict=True)]
            return RenyiDP(self.orders, values, self.relation)
        if not isinstance(other, RenyiDP):
            return None
        theirs = dict(zip(other.orders, other.values, strict=True))
        both = {o: value + theirs[o] for o, value in zip(self.orders, self.values, strict=True) if o in theirs}
        return RenyiDP(tuple(both), tuple(both.values()), self.relation) if both else None

    def _grouped(self, size: int) -> RenyiDP:
        """Orders halve and divergences triple, for each doubling of the group (Mironov 2017, Proposition 2)."""
        doublings = math.ceil(math.log2(size))
        kept = [(o, value) for o, value in zip(self.orders, self.values, strict=True) if o >= 2 ** (doublings + 1)]
        GuaranteeError.unless(
            len(kept) > 0,
            f"For groups of {size} a Renyi guarantee needs an order of at least {2 ** (doublings + 1)}; this one has "
            f"{max(self.orders):g} at most.",
        )
        orders, values = zip(*kept, strict=True)
        return RenyiDP(
            [order / 2**doublings for order in orders], [3**doublings * value for value in values], self.relation
        )

    def to_replace_one(self) -> RenyiDP:
        """Refused: two steps cost too much at these orders."""
        if self.relation == "replace-one":
            return self
        raise GuaranteeError(
            "A Renyi guarantee for adding or removing a record says little about replacing one; account for "
            "replacement from the start, with DpEvents or noise multipliers."
        )


@dataclass(frozen=True, eq=False, repr=False)
class ZCDP(_ByRenyi):
    """rho-zero-concentrated DP: the Renyi divergence of every order a is at most a rho."""

    rho: float
    relation: Relation = "replace-one"
    _told = "zcdp", "rho"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", as_number("rho", self.rho))
        require(0 <= self.rho < math.inf, f"rho must be a finite number of at least 0, got {self.rho}")
        require_relation(self.relation)

    @property
    def parameter(self) -> Parameter:
        return Parameter("rho", self.rho, rises=True, adds_up=True)

    @cached_property
    def _divergences(self) -> tuple[FloatArray, FloatArray]:
        orders = 1 + np.geomspace(1e-6, 1e6, 2000)
        return orders, orders * self.rho

    def _repeated(self, times: int) -> ZCDP:
        """rho adds up."""
        return ZCDP(self.rho * times, self.relation)

    def _and(self, other: Guarantee) -> Guarantee | None:
        """rho adds up."""
        return ZCDP(self.rho + other.rho, self.relation) if isinstance(other, ZCDP) else None

    def _grouped(self, size: int) -> ZCDP:
        """k^2 rho (Bun and Steinke 2016, Proposition 1.9)."""
        return ZCDP(size**2 * self.rho, self.relation)

    def to_replace_one(self) -> ZCDP:
        """Two steps of rho are one of 4 rho."""
        return self if self.relation == "replace-one" else ZCDP(4 * self.rho)


def _variation_from_kl(divergence: float) -> float:
    """Total variation from a Kullback-Leibler divergence: Pinsker, or Bretagnolle and Huber where that is smaller."""
    return min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)))
