"""The papers' theorems, one function each, with the corrections of the theory page.

Notation: kappa_pi is the collision probability, kappa_plus and kappa_minus the largest and smallest prior mass of a
ball. Neighbours differ by replacement. Values are as the formula gives them and may exceed 1.
"""

import math

import numpy as np

from dprisk.bounds.bound import EXACT, MANY, UNIFORM, UNINFORMED, is_exchangeable, is_pair, theorem
from dprisk.bounds.ours import reveal_or_respond
from dprisk.guarantees import Guarantee
from dprisk.types import FloatArray


def largest_variation(epsilon: float, delta: float = 0.0) -> float:
    """(e^eps - 1 + 2 delta) / (e^eps + 1): no (epsilon, delta)-DP mechanism has a larger total variation."""
    shrink = math.exp(-epsilon)
    return (-math.expm1(-epsilon) + 2 * delta * shrink) / (1 + shrink)


@theorem(
    "variation",
    "RAD Theorem 4.2; thesis Theorems 6, 9",
    "TV (1 - kappa_pi)",
    attained="by randomised response, among mechanisms of its total variation",
)
def rad_theorem_4_2(total_variation: float, kappa_pi: float) -> float:
    """RAD <= TV (1 - kappa_pi), for any knowledge, success and prior. Attained by randomised response.

    RAD Theorem 4.2, thesis Theorems 6 and 9. With an (epsilon, delta) only, TV is `largest_variation`; that form is
    reached for two records only.
    """
    return total_variation * (1 - kappa_pi)


@theorem(
    "variation-of-pair",
    "RAD Theorem 4.2",
    "(e^eps - 1 + 2 delta)/(e^eps + 1) (1 - kappa_pi)",
    attained="for two records",
    is_attained=lambda guarantee, threat: (
        threat.success.is_exact and threat.prior.support_size == 2 and is_pair(guarantee, threat)
    ),
)
def rad_theorem_4_2_of_pair(epsilon: float, delta: float, kappa_pi: float) -> float:
    """Theorem 4.2 with the largest total variation that an (epsilon, delta) allows."""
    return rad_theorem_4_2(largest_variation(epsilon, delta), kappa_pi)


def composed_variation(total_variation: float, times: int) -> float:
    """The total variation of `times` adaptive releases is at most 1 - (1 - TV)^T (RAD section 4, after Theorem 4.2)."""
    return -math.expm1(times * math.log1p(-total_variation)) if total_variation < 1 else 1.0


@theorem(
    "curve-between-baselines", "RAD Theorem 5.1, first statement", "max 1 - f(a) - a, kappa- <= a <= kappa+", UNINFORMED
)
def rad_theorem_5_1_first(guarantee: Guarantee, kappa_minus: float, kappa_plus: float) -> float:
    """RAD <= max 1 - f(a) - a over kappa_minus <= a <= kappa_plus. Needs: nothing known."""
    return guarantee.largest_gap(kappa_minus, kappa_plus)


@theorem(
    "curve-discrete",
    "RAD Theorem 5.1, second statement",
    "(1 - kappa_pi) max 1 - f(a) - a, a <= kappa+/(1 - kappa_pi)",
    UNINFORMED,
)
def rad_theorem_5_1_second(guarantee: Guarantee, kappa_pi: float, kappa_plus: float) -> float:
    """RAD <= (1 - kappa_pi) max 1 - f(a) - a over 0 <= a <= kappa_plus / (1 - kappa_pi), the end capped at 1.

    Needs: nothing known, a discrete prior. Neither statement of Theorem 5.1 is always the smaller.
    """
    if kappa_pi >= 1:
        return 0.0
    return (1 - kappa_pi) * guarantee.largest_gap(0.0, min(1.0, kappa_plus / (1 - kappa_pi)))


@theorem("three-of-pair", "RAD Proposition 5.3", "the least of three bounds by epsilon, delta, kappa", UNINFORMED)
def rad_proposition_5_3(epsilon: float, delta: float, kappa_pi: float, kappa_minus: float, kappa_plus: float) -> float:
    """RAD <= the least of three (epsilon, delta) bounds. Needs: nothing known.

    The second, ((1 - kappa_minus)(e^eps - 1) + delta) / e^eps, falls with epsilon if delta > 1 - kappa_minus; what
    holds at a larger epsilon holds here too, so its limit 1 - kappa_minus is taken then.
    """
    rest = 1 - kappa_minus
    return min(
        _gain_of_ratio(kappa_plus, epsilon) + delta,
        min(rest, rest * -math.expm1(-epsilon) + delta * math.exp(-epsilon)),
        rad_theorem_4_2(largest_variation(epsilon, delta), kappa_pi),
    )


def rad_lemma_5_4(epsilon: float, delta: float, size: int) -> float:
    """The largest sum over records of P(guess z | z) - P(guess z): (m - 1)(e^eps - 1 + m delta) / (e^eps + m - 1)."""
    shrink = math.exp(-epsilon)
    return (size - 1) * (-math.expm1(-epsilon) + size * delta * shrink) / (1 + (size - 1) * shrink)


@theorem("knapsack", "RAD Theorem 5.5", "records filled heaviest first up to Lemma 5.4", EXACT)
def rad_theorem_5_5(epsilon: float, delta: float, weights: FloatArray) -> float:
    """Exact reconstruction under (epsilon, delta)-DP, any prior. Needs: nothing known.

    Each record's term is at most TV (1 - pi_i), their sum at most that of Lemma 5.4; fill the heaviest first. `weights`
    are the positive probabilities, largest first: zero-mass records would loosen the bound (theory, gotcha 2).
    """
    caps = largest_variation(epsilon, delta) * (1 - weights)
    total = rad_lemma_5_4(epsilon, delta, weights.size)
    filled = np.minimum(caps, np.maximum(0.0, total - (np.cumsum(caps) - caps)))
    return float(weights @ filled)


@theorem(
    "uniform-categories",
    "RAD Corollary 5.6; thesis Corollary 1",
    "(e^eps - 1 + delta m)/(e^eps + m - 1) (m - 1)/m",
    UNIFORM,
    attained="for every delta, by revealing with delta, else randomised response",
    is_attained=is_pair,
    worst=reveal_or_respond,
)
def rad_corollary_5_6(epsilon: float, delta: float, size: int) -> float:
    """Theorem 5.5 for the uniform prior; attained for every delta. Thesis Corollary 1 is the same."""
    return rad_lemma_5_4(epsilon, delta, size) / size


def epsilon_of_corollary_5_6(advantage: float, delta: float, size: int) -> float:
    """Corollary 5.6 solved for epsilon (RAD equation 61): the largest epsilon that keeps the advantage.

    Infinite if every epsilon keeps it, 0 if delta alone exceeds it.
    """
    if advantage * size >= size - 1:
        return math.inf
    ratio = (1 - delta * size + advantage * size) / (1 - advantage * size / (size - 1))
    return max(0.0, math.log(ratio)) if ratio > 0 else 0.0


@theorem(
    "heaviest-pairs", "thesis Theorem 7, corrected", "pairs of records filled heaviest first", EXACT, most_records=MANY
)
def thesis_theorem_7(epsilon: float, delta: float, weights: FloatArray) -> float:
    """Exact reconstruction under (epsilon, delta)-DP by the heaviest pairs of records. Needs: nothing known.

    Corrected: A has denominator e^eps + 1 (printed e^eps + 2, which is violated), and m is the size of the support.
    """
    most = rad_lemma_5_4(epsilon, delta, weights.size) * weights.size
    return _heaviest_pairs(largest_variation(epsilon, delta), most, weights)


@theorem(
    "heaviest-pairs-of-curve",
    "thesis Theorem 8, corrected",
    "the same with the trade-off curve",
    EXACT,
    most_records=MANY,
)
def thesis_theorem_8(guarantee: Guarantee, weights: FloatArray) -> float:
    """Exact reconstruction under f-DP by the heaviest pairs of records. Needs: nothing known, a convex f.

    Corrected: b = (1 + delta e^-eps) / (m - 1 + e^-eps), as in its Lemma 3.
    """
    size = weights.size
    gap = guarantee.largest_gap(*_off_diagonal_range(guarantee, size))
    return _heaviest_pairs(guarantee.total_variation, size * (size - 1) * gap, weights)


@theorem("uniform-curve", "thesis Corollary 2", "(m - 1)/m max 1 - f(a) - a over the mean wrong guess", UNIFORM)
def thesis_corollary_2(guarantee: Guarantee, size: int) -> float:
    """Thesis Theorem 8 for the uniform prior."""
    return (size - 1) / size * guarantee.largest_gap(*_off_diagonal_range(guarantee, size))


@theorem("wpes-any-error", "WPES'24 Theorem 7.2", "min(kappa+ (e^eps - 1), tanh(eps/2))", UNINFORMED)
def wpes_theorem_7_2(epsilon: float, kappa_plus: float) -> float:
    """RAD <= min(kappa_plus (e^eps - 1), tanh(eps/2)) under pure DP. Needs: nothing known."""
    return min(_gain_of_ratio(kappa_plus, epsilon), math.tanh(epsilon / 2))


def wpes_theorem_7_3(epsilon: float, size: int, kappa_minus: float, kappa_plus: float) -> float:
    """Exact reconstruction under pure DP. Needs: nothing known. The paper's "ReRo" is the advantage (U-ReRo)."""
    return min(
        _gain_of_ratio(kappa_plus, epsilon), kappa_plus * (size - 1) * math.tanh(epsilon / 2) + kappa_plus - kappa_minus
    )


@theorem(
    "wpes-exact",
    "WPES'24 Theorem 7.3, corrected",
    "min(kappa+ (e^eps - 1), kappa+ (m - 1) tanh(eps/2) + kappa+ - kappa-)",
    EXACT,
)
def wpes_theorem_7_3_of_weights(epsilon: float, weights: FloatArray, kappa_plus: float) -> float:
    """Theorem 7.3 with the smallest positive probability for kappa_minus."""
    return wpes_theorem_7_3(epsilon, weights.size, float(weights[-1]), kappa_plus)


@theorem(
    "thesis-any-error",
    "thesis Theorem 4, corrected",
    "min(kappa+ (e^eps - 1) + delta m, (e^eps - 1 + 2 delta)/(e^eps + 1))",
    UNINFORMED,
)
def thesis_theorem_4(epsilon: float, delta: float, size: int, kappa_plus: float) -> float:
    """WPES'24 Theorem 7.2 with delta. Needs: nothing known.

    Corrected: the second term has 2 delta, without which it is 0 at epsilon 0 where delta (1 - kappa_pi) is reached.
    """
    return min(_gain_of_ratio(kappa_plus, epsilon) + delta * size, largest_variation(epsilon, delta))


@theorem(
    "thesis-exact",
    "thesis Theorem 5, corrected",
    "min(kappa+ (e^eps - 1) + delta m, kappa+ (m - 1) TV + kappa+ - kappa-), TV = (e^eps - 1 + 2 delta)/(e^eps + 1)",
    EXACT,
)
def thesis_theorem_5(epsilon: float, delta: float, weights: FloatArray) -> float:
    """WPES'24 Theorem 7.3 with delta, for exact reconstruction. Needs: nothing known.

    Corrected in its second term as Theorem 4 is. `weights` are the positive probabilities, largest first.
    """
    most, least = float(weights[0]), float(weights[-1])
    apart = most * (weights.size - 1) * largest_variation(epsilon, delta)
    return min(_gain_of_ratio(most, epsilon) + delta * weights.size, apart + most - least)


@theorem("membership-ratio", "WPES'24 Theorem 4.6, for comparison", "1 - e^-eps")
def wpes_theorem_4_6(epsilon: float) -> float:
    """The membership advantage is at most 1 - e^-eps under pure DP, and no advantage is larger. (Printed 1 - e^-delta.)

    For comparison: tanh(eps/2), the largest total variation, is never above it.
    """
    return -math.expm1(-epsilon)


@theorem("membership-yeom", "Yeom et al. 2018, for comparison", "e^eps - 1")
def yeom_membership(epsilon: float) -> float:
    """The membership advantage is at most e^eps - 1 under pure DP, which says nothing from epsilon 0.69 on."""
    return _gain_of_ratio(1.0, epsilon)


@theorem("ratio", "Balle et al. 2022; with knowledge theory 3.4", "kappa_aux e^eps", bounds="success")
def balle_success(epsilon: float, kappa_aux: float) -> float:
    """ReRo <= kappa e^eps (Balle, Cherubin, Hayes 2022). With knowledge, kappa is kappa_aux."""
    return kappa_aux + _gain_of_ratio(kappa_aux, epsilon)


@theorem(
    "wpes-success", "WPES'24 Proposition 5.1", "kappa+ min(e^eps, 1 + (m - 1) tanh(eps/2))", EXACT, bounds="success"
)
def wpes_proposition_5_1(epsilon: float, size: int, kappa_plus: float) -> float:
    """ReRo of exact reconstruction under pure DP: kappa min(e^eps, 1 + (m - 1) tanh(eps/2)). Needs: nothing known."""
    return kappa_plus + min(_gain_of_ratio(kappa_plus, epsilon), kappa_plus * (size - 1) * math.tanh(epsilon / 2))


@theorem("curve-at-baseline", "Hayes et al. 2023; with knowledge theory 3.4", "1 - f(kappa_aux)", bounds="success")
def hayes_success(guarantee: Guarantee, kappa_aux: float) -> float:
    """ReRo <= 1 - f(kappa) (Hayes, Mahloujifar, Balle 2023). With knowledge, kappa is kappa_aux (theory, 3.4)."""
    return 1 - float(guarantee.tradeoff(min(1.0, kappa_aux)))


@theorem(
    "posterior",
    "Swanberg et al. Theorem 3.2; with knowledge and delta theory 3.4",
    "beta(kappa_aux) + delta",
    bounds="success",
    attained="for uniform categories and delta = 0",
    is_attained=lambda guarantee, threat: threat.knows.is_none and is_exchangeable(guarantee, threat),
)
def bayes_factor_success(epsilon: float, kappa_aux: float, delta: float = 0.0) -> float:
    """ReRo <= beta(kappa) + delta, beta(k) = e^eps k / (1 + (e^eps - 1) k) (Swanberg et al., Theorem 3.2).

    With knowledge, kappa is kappa_aux; the delta term is ours (theory, 3.4).
    """
    return posterior(epsilon, kappa_aux) + delta


def posterior(epsilon: float, prior: float) -> float:
    """beta(k): the posterior when the likelihood ratio is e^epsilon in favour of something of prior probability k."""
    return prior / (math.exp(-epsilon) + -math.expm1(-epsilon) * prior) if prior > 0 else 0.0


@theorem("attaxonomy-best-case", "Attaxonomy Corollary 4.7", "n kappa e^eps", UNINFORMED, bounds="match among many")
def attaxonomy_best_case(epsilon: float, kappa_plus: float, people: int) -> float:
    """A guess matches some one of n records with at most n kappa e^eps (Attaxonomy, Corollary 4.7)."""
    return people * balle_success(epsilon, kappa_plus)


@theorem("attaxonomy-average", "Attaxonomy Corollary 4.11", "kappa e^eps", UNINFORMED, bounds="match of a random one")
def attaxonomy_average(epsilon: float, kappa_plus: float) -> float:
    """A guess matches a random one of the records with at most kappa e^eps (Attaxonomy, Corollary 4.11)."""
    return balle_success(epsilon, kappa_plus)


@theorem(
    "best-case",
    "dprisk, theory 3.7; Swanberg et al. Theorem 3.2",
    "1 - (1 - beta(kappa))^n",
    UNINFORMED,
    bounds="match among many",
)
def best_case(epsilon: float, kappa_plus: float, people: int) -> float:
    """The sharper 1 - (1 - beta(kappa))^n, from Swanberg et al., Theorem 3.2 (theory, 3.7)."""
    return -math.expm1(people * math.log1p(-posterior(epsilon, kappa_plus))) if kappa_plus < 1 else 1.0


@theorem(
    "average-case",
    "dprisk, theory 3.7; Swanberg et al. Theorem 3.2",
    "beta(kappa)",
    UNINFORMED,
    bounds="match of a random one",
)
def average_case(epsilon: float, kappa_plus: float) -> float:
    """The sharper beta(kappa) (theory, 3.7)."""
    return posterior(epsilon, kappa_plus)


def _gain_of_ratio(mass: float, epsilon: float) -> float:
    """mass (e^eps - 1); infinite where that is beyond all floats, unless there is no mass."""
    if mass == 0:
        return 0.0
    return mass * math.expm1(epsilon) if epsilon < 700 else math.inf


def _off_diagonal_range(guarantee: Guarantee, size: int) -> tuple[float, float]:
    """Where the mean probability of a wrong guess can lie: in the interval of every pair (epsilon, delta)."""
    if size == 1:
        return 0.0, 1.0
    low, high = 0.0, 1 / (size - 1)
    for epsilon, delta in guarantee.pairs:
        shrink = math.exp(-epsilon)
        low = max(low, (1 - delta) * shrink / (1 + (size - 1) * shrink))
        high = min(high, (1 + delta * shrink) / (size - 1 + shrink))
    return low, max(low, high)


def _heaviest_pairs(each: float, most: float, weights: FloatArray) -> float:
    """The largest sum of pi_i pi_j t_ij over ordered pairs with 0 <= t_ij <= each and sum t_ij <= most."""
    if each == 0 or weights.size == 1:
        return 0.0
    i, j = np.triu_indices(weights.size, 1)
    product = np.sort(weights[i] * weights[j])[::-1]
    left = most - 2 * each * np.arange(product.size)
    return float(product @ np.clip(left, 0.0, 2 * each))
