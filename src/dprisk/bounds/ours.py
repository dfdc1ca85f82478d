"""Our own theorems: exact worst cases and universal bounds (theory, section 3)."""

import math
from dataclasses import dataclass

import numpy as np

from dprisk.bounds.bound import EXACT, UNIFORM, UNINFORMED, is_exchangeable, is_pair, is_pure, theorem
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import GRR, Matrix, Mechanism, OnAttribute
from dprisk.threat.prior import Prior
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray


def gain(epsilon: float, mass: float) -> float:
    """h(k) = beta(k) - k, what a likelihood ratio of e^epsilon adds to something of prior probability k.

    Largest at k = 1 / (1 + e^(eps/2)), where it is tanh(eps/4).
    """
    shrink = math.exp(-epsilon)
    return -math.expm1(-epsilon) * mass * (1 - mass) / (shrink + (1 - shrink) * mass) if mass > 0 else 0.0


def best_mass(epsilon: float) -> float:
    """1 / (1 + e^(eps/2)), the prior probability at which `gain` is largest."""
    return math.exp(-epsilon / 2) / (1 + math.exp(-epsilon / 2))


def largest_gain(epsilon: float, mass: float) -> float:
    """The largest `gain` of any prior probability up to a mass; its peak is not computed, for it may underflow."""
    return math.tanh(epsilon / 4) if mass >= best_mass(epsilon) else gain(epsilon, mass)


@dataclass(frozen=True)
class Blocks:
    """Randomised response on k blocks: the k - 1 heaviest records alone, the rest as one."""

    epsilon: float
    prior: Prior
    count: int
    advantage: float

    def mechanism(self) -> OnAttribute:
        """The epsilon-DP mechanism that attains the advantage."""
        order = np.argsort(-self.prior.weights, kind="stable")
        block = np.full(self.prior.size, self.count - 1)
        block[order[: self.count - 1]] = np.arange(self.count - 1)
        return OnAttribute(GRR(self.count, self.epsilon), block)

    def certificate(self) -> FloatArray:
        """A dual point y that proves no epsilon-DP mechanism does better: sum(y) is the advantage, and

        sum(y) >= (e^eps - 1) sum_z (c_gz - y_z)_+  for every guess g,  c_gz = pi_z (1{z=g} - pi_g).

        One entry for each record of the support, heaviest first (theory, proof of 3.2).
        """
        p, k = self.prior.sorted_weights, self.count - 1
        if self.epsilon == 0:
            return np.zeros(p.size)
        t = self.advantage / math.expm1(self.epsilon)
        y = p * (1 - p) - t
        before, rest = float(p[:k].sum()), float(p[k:].sum())
        if t >= p[k]:
            y[k:] = -(t - p[k] * before) / rest * p[k:]
        else:
            y[k + 1 :] = -p[k] * p[k + 1 :]
        return y


def respond_in_blocks(guarantee: Guarantee, threat: Threat) -> Mechanism:
    """What attains `worst_blocks`."""
    return worst_blocks(guarantee.epsilon_at(0.0), threat.prior).mechanism()


@theorem(
    "worst-blocks",
    "dprisk, theory 3.2",
    "max_k (E-1)/(E+k-1) [sum_{i<k} pi_i(1-pi_i) + pi_k sum_{i<k} pi_i]",
    EXACT,
    attained="by randomised response on k blocks",
    is_attained=is_pure,
    worst=respond_in_blocks,
)
def worst_blocks(epsilon: float, prior: Prior) -> Blocks:
    """The largest exact-reconstruction advantage of any epsilon-DP mechanism, no auxiliary knowledge, in O(m log m).

    With the prior sorted descending and E = e^eps,

        RAD* = max_k (E-1)/(E+k-1) * [ sum_{i<k} pi_i (1-pi_i) + pi_k sum_{i<k} pi_i ].

    Attained by randomised response on k blocks. Proof: theory, section 3.2.
    Needs: pure DP, exact success, nothing known.
    """
    p = prior.sorted_weights
    before = np.cumsum(p) - p  # mass of the heavier records
    spread = np.cumsum(p * (1 - p)) - p * (1 - p)
    k = np.arange(1, p.size + 1)
    advantage = -math.expm1(-epsilon) / (1 + (k - 1) * math.exp(-epsilon)) * (spread + p * before)
    best = int(np.argmax(advantage))
    return Blocks(epsilon, prior, best + 1, float(advantage[best]))


def reveal_or_blocks(epsilon: float, delta: float, prior: Prior) -> float:
    """The advantage of a mechanism that reveals the record with probability delta and else does `worst_blocks`.

    Attained by an (epsilon, delta)-DP mechanism; that none does better is proven for delta = 0 and where every record
    is a block of its own (which holds for the uniform prior), and is a conjecture otherwise. Not offered as a bound.
    """
    return delta * (1 - prior.collision_probability) + (1 - delta) * worst_blocks(epsilon, prior).advantage


@dataclass(frozen=True)
class TopRecords:
    """Reveal with probability delta, else randomised response on the k heaviest records."""

    epsilon: float
    delta: float
    prior: Prior
    count: int
    success: float

    def mechanism(self) -> Matrix:
        """The (epsilon, delta)-DP mechanism that attains the success; records outside the top k answer evenly."""
        m, k = self.prior.size, self.count
        order = np.argsort(-self.prior.weights, kind="stable")
        answer = np.full((m, k), 1 / k)
        answer[order[:k]] = GRR(k, self.epsilon).matrix()
        return Matrix(np.hstack([self.delta * np.eye(m), (1 - self.delta) * answer]))


def reveal_or_respond(guarantee: Guarantee, threat: Threat) -> Mechanism:
    """What attains the success of `worst_top_records`; for a uniform prior it attains Corollary 5.6 too."""
    return worst_top_records(*guarantee.pairs[0], threat.prior).mechanism()


@theorem(
    "worst-top-records",
    "dprisk, theory 3.3",
    "delta + (1 - delta) max_k E/(E+k-1) (sum of the k largest pi)",
    EXACT,
    bounds="success",
    attained="by revealing with delta, else randomised response on the top k",
    is_attained=is_pair,
    worst=reveal_or_respond,
)
def worst_top_records(epsilon: float, delta: float, prior: Prior) -> TopRecords:
    """The largest exact-reconstruction success of any (epsilon, delta)-DP mechanism, no auxiliary knowledge.

        ReRo* = delta + (1 - delta) max_k E/(E+k-1) * (sum of the k largest pi).

    Proof: theory, section 3.3. Needs: exact success, nothing known.
    """
    k = np.arange(1, prior.support_size + 1)
    share = np.cumsum(prior.sorted_weights) / (1 + (k - 1) * math.exp(-epsilon))
    best = int(np.argmax(share))
    return TopRecords(epsilon, delta, prior, best + 1, delta + (1 - delta) * float(share[best]))


@theorem(
    "sets",
    "dprisk, theory 3.4 c",
    "max_g h(pi(S_g)) plus a delta term",
    UNINFORMED,
    attained="at delta = 0 for uniform categories and rings",
    is_attained=is_exchangeable,
)
def set_advantage(epsilon: float, delta: float, kappa_pi: float, ball_masses: FloatArray) -> float:
    """RAD <= c + delta (1 - kappa_pi)(1 - c / (1 - kappa_minus)), c = max_g h(pi(S_g)) (theory, 3.4 c).

    Needs: nothing known. Exact at delta = 0 if records can be exchanged without changing prior and success (a uniform
    prior on categories or a ring).
    """
    # h rises up to its best mass and falls beyond, so only the nearest mass on either side can give the maximum.
    below, above = ball_masses[ball_masses <= best_mass(epsilon)], ball_masses[ball_masses > best_mass(epsilon)]
    nearest = [float(part) for part in (below.max(initial=0.0), above.min(initial=1.0))]
    most = max(gain(epsilon, mass) for mass in nearest)
    return _with_delta(most, delta, kappa_pi, float(ball_masses.min()))


@theorem(
    "sets-between",
    "dprisk, theory 3.4 c",
    "max h(k) over kappa- <= k <= kappa+, plus a delta term",
    UNINFORMED,
)
def set_advantage_between(
    epsilon: float, delta: float, kappa_pi: float, kappa_minus: float, kappa_plus: float
) -> float:
    """`set_advantage` where only the lightest and the heaviest ball are known, as of records that are numbers.

    Needs: nothing known. The masses of windows fill all that lies between the two.
    """
    most = gain(epsilon, min(max(kappa_minus, best_mass(epsilon)), kappa_plus))
    return _with_delta(most, delta, kappa_pi, kappa_minus)


def _with_delta(most: float, delta: float, kappa_pi: float, kappa_minus: float) -> float:
    """c + delta (1 - kappa_pi)(1 - c / (1 - kappa_minus)) for the largest gain c of a set, if no set is lighter."""
    rest = 1 - kappa_minus
    # What holds at a larger epsilon holds here too; with a large delta the formula would fall towards that limit.
    return min(rest, most + delta * (1 - kappa_pi) * (1 - most / rest)) if rest > 0 else 0.0


@theorem("knowledge", "dprisk, theory 3.4", "h(min(kappa_aux, 1/(1 + e^(eps/2)))) plus a delta term")
def knowledge_advantage(epsilon: float, delta: float, kappa_pi: float, kappa_aux: float) -> float:
    """RAD <= c + (1 - c) delta (1 - kappa_pi), c = h(min(kappa_aux, 1/(1+e^(eps/2)))): any knowledge (theory, 3.4)."""
    most = largest_gain(epsilon, kappa_aux)
    return most + (1 - most) * delta * (1 - kappa_pi)


@theorem("universal", "dprisk, theory 3.4 a", "tanh(eps/4) plus a delta term")
def universal_advantage(epsilon: float, delta: float, kappa_pi: float) -> float:
    """RAD <= tanh(eps/4) + (1 - tanh(eps/4)) delta (1 - kappa_pi): any knowledge, success and prior (theory, 3.4)."""
    most = math.tanh(epsilon / 4)
    return most + (1 - most) * delta * (1 - kappa_pi)


@theorem("curve-of-knowledge", "dprisk, theory 3.4", "max 1 - f(a) - a, a <= kappa_aux")
def curve_advantage(guarantee: Guarantee, kappa_aux: float) -> float:
    """RAD <= max 1 - f(a) - a over 0 <= a <= kappa_aux: any knowledge (theory, 3.4)."""
    return guarantee.largest_gap(0.0, min(1.0, kappa_aux))


@theorem(
    "fixed-point",
    "dprisk, theory 3.6",
    "(m - 1)(1/m - a), f(a) = (m - 1) a",
    UNIFORM,
    attained="where it equals Corollary 5.6",
    is_attained=is_pair,
)
def fixed_point_advantage(guarantee: Guarantee, size: int) -> float:
    """RAD <= (m - 1)(1/m - a), a the root of f(a) = (m - 1) a (theory, 3.6).

    Never above either statement of Theorem 5.1. Needs: uniform prior, exact success, nothing known.
    """
    return (size - 1) * max(0.0, 1 / size - guarantee.crossing(size - 1)) if size > 1 else 0.0
