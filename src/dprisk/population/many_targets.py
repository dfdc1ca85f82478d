"""How many of many targets an attacker can be right about at once: the papers' theorems, and what takes their place.

Everywhere S is the sum of independent Bernoulli(beta_i), beta_i = e^eps k_i / (1 + (e^eps - 1) k_i), where k_i is the
largest prior mass that an attempt on target i can be right about, the safe choice (theory, correction 15). W is the
number of targets that the attacker is right about.
"""

from __future__ import annotations

import math

import numpy as np

from dprisk.errors import GuaranteeError, require
from dprisk.guarantees import Guarantee
from dprisk.population.poisson_binomial import PoissonBinomial
from dprisk.population.targets import Targets, posteriors
from dprisk.rounding import ULP
from dprisk.types import FloatArray

CONCENTRATION = 0.4689  # eta = max sqrt(2x) e^(-2x) sum_k (x^k/k!)^2 is 0.46882...


def pairs_of(guarantee: Guarantee) -> list[tuple[float, float]]:
    """The pairs (epsilon, delta) of a guarantee, for replacing a record; each delta rounded up."""
    pairs = [(eps, min(1.0, delta + 2 * ULP) if delta else 0.0) for eps, delta in guarantee.replaced.pairs]
    finite = [pair for pair in pairs if math.isfinite(pair[0])]
    require(len(finite) > 0, f"{guarantee!r} implies no epsilon.", GuaranteeError)
    return finite


def theorem_3_2(epsilon: float, targets: Targets, successes: int) -> float:
    """ln of the bound P(W >= v | output) <= P(S >= v), for every output of an epsilon-DP mechanism, rounded up.

    Swanberg et al., Theorem 3.2; printed for (epsilon, delta), proven for and true of pure DP only (correction 14).
    """
    return PoissonBinomial(posteriors(epsilon, targets.baselines)).log_at_least(successes)


def theorem_3_3(epsilon: float, targets: Targets, successes: int, missed: FloatArray) -> float:
    """P(F + S >= v) for a given law of F, the number of targets on which the mechanism fails its epsilon.

    Swanberg et al., Theorem 3.3, where F is independent of S and has mean at most n delta. `missed` holds P(F = j) for
    j = 0, 1, ... The theorem does not say what F is; see `theorem_3_5` for what goes wrong if it is taken to be
    independent of S whatever the mechanism.
    """
    tails = np.append(PoissonBinomial(posteriors(epsilon, targets.baselines)).tails(), 0.0)
    law = np.asarray(missed, dtype=float)
    needed = np.clip(successes - np.arange(law.size), 0, targets.people + 1)
    return min(1.0, float(law @ tails[needed]))


def corollary_3_4(epsilon: float, delta: float, targets: Targets, successes: int) -> float:
    """P(W >= v) <= P(S >= v) + n delta (Swanberg et al., Corollary 3.4, with the safe k_i)."""
    return min(1.0, math.exp(theorem_3_2(epsilon, targets, successes)) + targets.people * delta)


def theorem_3_5(epsilon: float, delta: float, targets: Targets, successes: int) -> float:
    """P(S >= v) + a n delta, a = max_j (P(S >= v - j) - P(S >= v))/j. As printed: not a bound for delta > 0.

    Swanberg et al., Theorem 3.5, after Steinke et al., Theorem 5.2. The proof takes the number F of targets on which
    the mechanism fails its epsilon to be independent of S. A mechanism can fail where it helps most. Two bits, epsilon
    0, delta 0.01: some mechanism lets an attacker be right about at least one with 0.7575; this gives 0.755. Fifty
    values out of ten each, epsilon 0.1, delta 1e-5: what delta adds to the chance of ten is 1.28 times this.
    `with_delta` holds, and `uniform.exact_chance` is attained. Kept for comparison.
    """
    law = PoissonBinomial(posteriors(epsilon, targets.baselines))
    reached = law.at_least(successes)
    tails = np.append(law.tails(), np.zeros(max(0, successes - targets.people)))
    steps = np.arange(1, successes + 1)
    slope = float(((tails[successes - steps] - reached) / steps).max()) if successes > 0 else 0.0
    return min(1.0, reached + max(0.0, slope) * targets.people * delta)


def allowance(epsilon: float, delta: float, targets: Targets) -> float:
    """What delta adds at most to the chance of reaching any number of successes (ours).

    > P(W >= v) <= P(S >= v) + Delta * mean over m < n of mode_m,

    Delta = `targets.excess`, mode_m the largest probability that a sum of m of the Bernoulli(beta_i) has at any place,
    at most min(1, 0.4689/sigma). Reveal the targets in a random order. Let V_j(s) be P(s + what the rest of S gives
    >= v). If success j has, given the output and what was revealed, the chance beta_j + e_j, the mean of V rises by at
    most e_j times the chance that the rest hits one place; start with P(S >= v), end with P(W >= v). A target stands at
    each place of the order equally often, its e_j has at most the mean that it has if all others are known, and these
    add up to Delta (theory, 4.3). Rounded up.
    """
    chances = posteriors(epsilon, targets.baselines)
    return targets.excess(epsilon, delta) * mean_mode(chances * (1 - chances), targets.people) if delta else 0.0


def mean_mode(variances: FloatArray, guesses: int) -> float:
    """The mean over m < guesses of min(1, 0.4689/sigma_m), sigma_m^2 the sum of the m smallest variances; rounded up.

    The law of m independent trials has nowhere more than 0.4689/sigma (Baillon, Cominetti and Vaisman 2016).
    """
    least = np.sort(variances)[: max(0, guesses - 1)]
    with np.errstate(divide="ignore"):
        modes = np.minimum(1.0, CONCENTRATION * (1 + 1e-9) / np.sqrt(np.cumsum(least)))
    return (1.0 + float(modes.sum())) / max(1, guesses) * (1 + 1e-12)


def with_delta(epsilon: float, delta: float, targets: Targets, successes: int) -> float:
    """P(W >= v) for every (epsilon, delta)-DP mechanism and attacker, at most (ours): see `allowance`."""
    return min(1.0, math.exp(theorem_3_2(epsilon, targets, successes)) + allowance(epsilon, delta, targets))
