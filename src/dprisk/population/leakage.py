"""What a release may give away of one secret, by how likely the secret was before: posterior, advantage, bits.

All hold for every mechanism with the guarantee, for replacing one record, and for a secret of any size: only its prior
probability counts (Swanberg et al., sections 3.2, 4.2, 4.3 and 5.3; theory, corrections 12 to 14).
"""

import math

from dprisk.bounds.papers import balle_success, bayes_factor_success, hayes_success, posterior
from dprisk.errors import as_epsilon, as_number, require
from dprisk.guarantees import ApproxDP

__all__ = ["bits_leaked", "epsilon_to_protect", "forms", "generalised_advantage", "narcissus_success", "posterior"]


def generalised_advantage(success: float, baseline: float) -> float:
    """(success - baseline) / (1 - baseline): the share of the failures that the release turns into successes."""
    require(baseline < 1, "With a baseline of 1 there is nothing to gain.")
    return (success - baseline) / (1 - baseline)


def epsilon_to_protect(prior: float, advantage: float, delta: float = 0.0) -> float:
    """The largest epsilon that keeps the generalised advantage on something of this prior probability.

    Solves beta(p) + delta = p + advantage (1 - p) for epsilon (Swanberg et al., section 5.3).
    """
    require(0 < prior < 1, f"A prior probability must lie in (0, 1), got {prior}")
    require(0 < advantage < 1, f"The tolerated advantage must lie in (0, 1), got {advantage}")
    success = prior + advantage * (1 - prior) - delta
    require(success >= prior, f"Delta {delta:g} alone exceeds the tolerated advantage; no epsilon keeps it.")
    return math.log(success * (1 - prior) / (prior * (1 - success)))


def bits_leaked(epsilon: float, probability: float) -> float:
    """The number of bits that an epsilon-DP mechanism leaks with at most this probability.

    log2(e^eps (1/alpha - 1) + 1) (Swanberg et al., section 3.2).
    """
    require(0 < probability <= 1, f"A probability must lie in (0, 1], got {probability}")
    if probability == 1:
        return 0.0
    log_odds = as_epsilon(epsilon) + math.log1p(-probability) - math.log(probability)
    log_of_both = max(log_odds, 0.0) + math.log1p(math.exp(-abs(log_odds)))  # without e^eps, which may overflow
    return log_of_both / math.log(2)


def narcissus_success(epsilon: float, prior: float, delta: float = 0.0) -> float:
    """e^eps p + delta, at most 1: how often an attacker succeeds whose guess fits a fresh record with probability p.

    Cohen et al., Narcissus resiliency, Theorem F.1. Never below beta(p) + delta, which Swanberg et al. print in section
    4.2 with e^eps + 1/p instead of e^eps - 1 + 1/p in the denominator, too small by that (theory, correction 13).
    """
    return min(1.0, balle_success(epsilon, prior) + delta)


def forms(epsilon: float, prior: float, delta: float = 0.0) -> dict[str, float]:
    """How often an attacker can be right about a secret of this prior probability, as each framework bounds it.

    `posterior` is beta(p) + delta, of the guess that is made; `narcissus` e^eps p + delta, of the same; `rero` the same
    of the likeliest guess, whichever is made; `curve` 1 - f(p) of the trade-off curve (Hayes et al.).

    >>> {name: round(value, 3) for name, value in forms(1.0, 0.1).items()}
    {'posterior': 0.232, 'narcissus': 0.272, 'rero': 0.272, 'curve': 0.272}
    """
    epsilon, chance, delta = as_epsilon(epsilon), as_number("prior", prior), as_number("delta", delta)
    require(0 <= chance <= 1, f"A prior probability must lie in [0, 1], got {chance:g}")
    return {
        "posterior": min(1.0, bayes_factor_success(epsilon, chance, delta)),
        "narcissus": narcissus_success(epsilon, chance, delta),
        "rero": narcissus_success(epsilon, chance, delta),
        "curve": min(1.0, hayes_success(ApproxDP(epsilon, delta), chance)),
    }
