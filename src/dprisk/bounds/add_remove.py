"""Bounds straight from a guarantee for adding or removing a record, with no detour over replacing one (theory, 3.9).

Q is the output without the target, f the trade-off curve of Q against the output with it, in both directions, and q_z
the probability under Q that the guess made for z is right. Then P_z is right with at most 1 - f(q_z), and every other
record makes the same guess with at least f(1 - q_z) and at most 1 - f(q_z). Rounding goes up.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dprisk.bounds.bound import UNIFORM, Certified, theorem
from dprisk.guarantees import Guarantee
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray, IntArray

ROUNDING = 2.0**-49  # what the few sums below may lose, put on top
CELLS = 1 << 22  # numbers held at once
MANY_WEIGHTS = 4096  # different weights beyond which near ones count as the heaviest of them
FEW_WEIGHTS = 64  # that prices are looked for with
TANGENTS = 500  # of the conjugate


def spread_at(guarantee: Guarantee, rate: float) -> float:
    """phi(a) = 1 - f(a) - f(1 - a): concave, symmetric, largest at 1/2."""
    return 1 - float(guarantee.tradeoff(rate)) - float(guarantee.tradeoff(1 - rate))


@theorem(
    "left-out",
    "dprisk, theory 3.9 a; Hayes et al. 2023",
    "1 - f(kappa_aux)",
    bounds="success",
    relation="add-remove",
)
def success_left_out(guarantee: Guarantee, kappa_aux: float) -> float:
    """ReRo <= 1 - f(kappa_aux), f the add/remove curve: any prior, knowledge and success (theory, 3.9 a)."""
    return min(1.0, 1 - float(guarantee.tradeoff(min(1.0, kappa_aux))) + ROUNDING)


@theorem(
    "left-out-knowledge",
    "dprisk, theory 3.9 b",
    "(1 - kappa_pi) phi(min(1/2, kappa_aux/(1 - kappa_pi))), phi(a) = 1 - f(a) - f(1 - a)",
    relation="add-remove",
)
def advantage_left_out(guarantee: Guarantee, kappa_pi: float, kappa_aux: float) -> float:
    """RAD <= (1 - kappa_pi) phi(min(1/2, kappa_aux / (1 - kappa_pi))): any knowledge and success (theory, 3.9 b).

    Any prior too; one with a density has kappa_pi = 0.
    """
    rest = 1 - kappa_pi
    if rest <= 0:
        return 0.0
    return rest * spread_at(guarantee, min(0.5, kappa_aux / rest)) + ROUNDING


def record_left_out(guarantee: Guarantee, mass: float) -> float:
    """The advantage on one named record of this prior probability: at most phi(1/2) (1 - pi_z) (theory, 3.8).

    Needs: a guarantee for adding or removing a record.
    """
    return spread_at(guarantee, 0.5) * (1 - mass) + ROUNDING


@theorem("left-out-uniform", "dprisk, theory 3.9 d", "1 - f(1/m) - 1/m", UNIFORM, relation="add-remove")
def uniform_left_out(guarantee: Guarantee, size: int) -> float:
    """RAD <= 1 - f(1/m) - 1/m (theory, 3.9 d). Needs: uniform prior, exact success, nothing known."""
    return max(0.0, 1 - float(guarantee.tradeoff(1 / size)) - 1 / size + ROUNDING) if size > 1 else 0.0


@theorem(
    "left-out-program",
    "dprisk, theory 3.9 c",
    "a concave program over the trade-off curve, group by group",
    ("exact success",),
    relation="add-remove",
)
def program_left_out(guarantee: Guarantee, threat: Threat) -> Certified:
    """The largest RAD of exact success that the add/remove curve allows, for any prior and knowledge (theory, 3.9 c).

    For each group of records that the attacker cannot tell apart, with y_g how often g is guessed when it is the truth
    and x_g how often at all,

        max sum_g pi_g (y_g - x_g)   subject to   sum_g q_g <= 1,   sum_g x_g <= 1,   y_g <= 1 - f(q_g),
            pi_g y_g + (1 - pi_g) f(1 - q_g)  <=  x_g  <=  pi_g y_g + (1 - pi_g) (1 - f(q_g)).

    Both sums are equal to 1 if nothing is known: some record is then as likely under the output as records are on
    average, and guessing it is no worse than to abstain. `dual` holds lambda and nu of each group, the prices of the
    two sums: `certified_by` is a bound for any prices. Needs: exact success.
    """
    weights, groups = threat.prior.weights[threat.prior.support], threat.knows.groups[threat.prior.support]
    places = _Places.of(guarantee)
    if threat.knows.is_none:
        prices = _prices_of_all(places, weights)[None, :]
    else:
        prices = _prices_of_groups(places, weights, groups)
    return Certified(_bound(places, weights, groups, prices), prices)


def certified_by(guarantee: Guarantee, threat: Threat, prices: FloatArray) -> float:
    """The bound of `program_left_out` that prices prove: lambda and nu in a row for each group.

    With knowledge both must be at least 0; if nothing is known, any will do.
    """
    weights, groups = threat.prior.weights[threat.prior.support], threat.knows.groups[threat.prior.support]
    return _bound(_Places.of(guarantee), weights, groups, prices)


@dataclass(frozen=True, eq=False)
class _Places:
    """Everywhere that a maximum over q can be: with q, 1 - f(q) and f(1 - q). Between these both are straight."""

    q: FloatArray
    hit: FloatArray
    miss: FloatArray

    @classmethod
    def of(cls, guarantee: Guarantee) -> "_Places":
        alpha, beta = guarantee.knots
        mirrored = np.interp(1 - alpha, alpha, beta)
        q, hit, miss = np.r_[alpha, 1 - alpha], 1 - np.r_[beta, mirrored], np.r_[mirrored, beta]
        order = np.lexsort((miss, hit, q))
        return cls(q[order], hit[order], miss[order])

    def most(self, up: FloatArray, down: FloatArray, price: FloatArray) -> FloatArray:
        """max_q up (1 - f(q)) - down f(1 - q) - price q, for each entry: all places are tried."""
        best = np.empty(up.size)
        rows = max(1, CELLS // self.q.size)
        for start in range(0, up.size, rows):
            part = slice(start, start + rows)
            tried = np.outer(up[part], self.hit) - np.outer(down[part], self.miss) - np.outer(price[part], self.q)
            best[part] = tried.max(axis=1)
        return best

    def argmost(self, up: FloatArray, down: FloatArray, price: FloatArray) -> IntArray:
        """Where that maximum is, by bisection on the slope: quick, and good enough to find prices."""
        low, high = np.zeros(up.shape, dtype=np.int64), np.full(up.shape, self.q.size - 1)
        rise, fall, run = self.pieces
        for _ in range(self.q.size.bit_length()):
            middle = np.minimum((low + high) // 2, self.q.size - 2)
            rises = up * rise[middle] - down * fall[middle] - price * run[middle] > 0
            low, high = np.where(rises, np.minimum(middle + 1, high), low), np.where(rises, high, middle)
        return low

    @cached_property
    def pieces(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How much 1 - f(q), f(1 - q) and q grow from one place to the next."""
        return np.diff(self.hit), np.diff(self.miss), np.diff(self.q)

    @cached_property
    def conjugate(self) -> tuple[FloatArray, FloatArray]:
        """Prices t, and max_q phi(q) - t q at each. It is convex in t: between these, chords lie above it."""
        gain, run = np.diff(self.hit - self.miss), np.diff(self.q)
        with np.errstate(over="ignore"):
            slopes = np.sort(gain[run > 0] / run[run > 0]).clip(min=0.0)
        slopes = slopes[slopes < np.inf] if (slopes < np.inf).any() else np.zeros(1)
        prices = np.unique(np.r_[0.0, slopes[np.linspace(0, slopes.size - 1, TANGENTS).astype(int)]])
        return prices, self.most(np.ones(prices.size), np.ones(prices.size), prices)


def _factors(weights: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What 1 - f(q) and f(1 - q) count in a record's term, once x and y are at their best for the price nu of x.

    x is at its lower end if pi + nu >= 0 and at its upper end otherwise, where the term is -nu (1 - f(q)).
    """
    up = np.where(weights + nu >= 0, weights * np.maximum(1 - weights - nu, 0.0), -nu)
    return up, np.maximum(weights + nu, 0.0) * (1 - weights)


def _bound(places: _Places, weights: FloatArray, groups: IntArray, prices: FloatArray) -> float:
    """sum over groups of lambda + nu, and over records of the largest term at these prices: weak duality."""
    total = float(prices.sum())
    if (prices[:, 1] == 0).all():  # w phi(q) - lambda q, w = pi (1 - pi): one curve for all records
        worth = weights * (1 - weights)
        ratio = prices[groups, 0] / np.maximum(worth, 1e-300)
        return _at_least_0(total + float(worth @ np.interp(ratio, *places.conjugate)) + ROUNDING)
    pi, count, nu = *_rounded_up(weights), prices[0, 1]
    up, down = _factors(pi, np.full(pi.size, nu))
    return _at_least_0(total + float(count @ places.most(up, down, np.full(pi.size, prices[0, 0]))) + ROUNDING)


def _at_least_0(bound: float) -> float:
    """No advantage is below 0 or above 1; where the prices are beyond all numbers, that is all that is known."""
    return max(0.0, bound) if math.isfinite(bound) else 1.0


def _rounded_up(weights: FloatArray, most: int = MANY_WEIGHTS) -> tuple[FloatArray, FloatArray]:
    """The different weights and how often each occurs; of very many, near ones as the heaviest of them.

    A record's term rises with its weight up to (1 - nu)/2, and nu is at most 0 or so; heavier ones stay as they are.
    """
    pi, count = np.unique(weights, return_counts=True)
    if pi.size <= most:
        return pi, count.astype(float)
    level = np.ceil(np.log(pi / pi[-1]) * (most - 4) / np.log(pi[-1] / pi[0]))
    level[pi > 0.25] += np.arange(np.sum(pi > 0.25)) + 1
    starts = np.flatnonzero(np.diff(level, prepend=-np.inf))
    return pi[np.append(starts[1:], pi.size) - 1], np.add.reduceat(count, starts).astype(float)


def _prices_of_all(places: _Places, weights: FloatArray) -> FloatArray:
    """Good prices where nothing is known: the best nu on ever finer grids, for each the best lambda by bisection."""
    pi, count = _rounded_up(weights, FEW_WEIGHTS)
    # At nu = -pi a record's term changes its form. For equal weights that is the best nu (theory, 3.9 d).
    nus = np.unique(np.r_[-pi, np.linspace(-pi[-1], 0.0, 9), 0.1, 0.3]) if pi.size > 1 else -pi
    for _ in range(5):
        up, down = _factors(pi, nus[:, None])
        low, high = np.full(nus.size, -1.0), np.ones(nus.size)
        for _ in range(26):
            middle = (low + high) / 2
            demand = places.q[places.argmost(up, down, middle[:, None])] @ count
            low, high = np.where(demand > 1, middle, low), np.where(demand > 1, high, middle)
        at = places.argmost(up, down, high[:, None])
        terms = up * places.hit[at] - down * places.miss[at] - high[:, None] * places.q[at]
        best = int(np.argmin(high + nus + terms @ count))
        found = np.array([high[best], nus[best]])
        near = nus[max(best - 1, 0)], nus[min(best + 1, nus.size - 1)]
        nus = np.unique(np.r_[np.linspace(near[0], found[1], 5), np.linspace(found[1], near[1], 5)])
    return found


def _prices_of_groups(places: _Places, weights: FloatArray, groups: IntArray) -> FloatArray:
    """Good prices with knowledge: nu = 0, and the lambda of each group by bisection on how much of q is asked for."""
    prices, values = places.conjugate
    worth, n_groups = weights * (1 - weights), int(groups.max()) + 1
    demand = np.append(-np.diff(values) / np.diff(prices), 0.0) if prices.size > 1 else np.zeros(1)
    low, high = np.zeros(n_groups), np.ones(n_groups)
    for _ in range(50):
        middle = (low + high) / 2
        place = np.searchsorted(prices, middle[groups] / np.maximum(worth, 1e-300), side="right") - 1
        asked = np.bincount(groups, demand[place], n_groups)
        low, high = np.where(asked > 1, middle, low), np.where(asked > 1, high, middle)
    return np.column_stack([high, np.zeros(n_groups)])
