"""What a guarantee means in other people's words: membership advantage, accuracy, odds.

All are for replacement of one record and hold for every mechanism with the guarantee.
"""

import math

from dprisk.errors import as_epsilon, as_whole, require
from dprisk.guarantees import Guarantee


def membership_advantage(guarantee: Guarantee) -> float:
    """True positive rate minus false positive rate of the best test between two data sets: the total variation."""
    return guarantee.total_variation


def attribute_advantage(guarantee: Guarantee, collision_probability: float) -> float:
    """The advantage of guessing an attribute, whatever else is known: TV (1 - kappa_pi) (RAD Theorem 4.2)."""
    return guarantee.total_variation * (1 - collision_probability)


def attribute_advantage_through_membership(membership: float, values: int) -> float:
    """The advantage of guessing an attribute by trying one of its values on a membership attack: membership / values.

    WPES'24 Theorem 4.13, for an attribute of so many equally likely values: the attack draws a value, asks whether the
    record with it took part, and answers only if so. What that one attack gains, not what attackers can gain at most.
    """
    require(0 <= membership <= 1, f"A membership advantage must lie in [0, 1], got {membership}")
    return membership / as_whole("values", values)


def true_positive_rate(guarantee: Guarantee, false_positive_rate: float) -> float:
    """The largest true positive rate at a false positive rate: 1 - f(alpha)."""
    return 1 - float(guarantee.tradeoff(false_positive_rate))


def attack_accuracy(guarantee: Guarantee, prior: float = 0.5) -> float:
    """How often the best attacker tells which of two data sets it was, the first having this prior probability.

    1 - min_a [(1 - prior) a + prior f(a)], a linear function's minimum over a convex curve: taken at a knot.
    """
    require(0 <= prior <= 1, f"A prior probability must lie in [0, 1], got {prior}")
    alpha, beta = guarantee.knots
    return float(1 - min((1 - prior) * alpha + prior * beta))


def posterior_odds(epsilon: float, prior: float) -> float:
    """Odds after the release at most: e^eps times the odds before (pure DP)."""
    require(0 <= prior < 1, f"A prior probability must lie in [0, 1), got {prior}")
    epsilon = as_epsilon(epsilon)
    return math.exp(epsilon) * prior / (1 - prior) if epsilon < 700 else math.inf
