"""How many of n records an attacker can be right about, at a confidence: Swanberg et al., Corollary 3.4.

Record i is guessed right before the release with chance kappa_i at most. If the release is (epsilon, delta)-DP, then
for every attacker

    Pr[at least v right] <= Pr[S >= v] + n delta,

S a sum of independent coins of chances beta(kappa_i) = e^eps kappa_i / (1 + (e^eps - 1) kappa_i). The chances are the
largest that any guess has, record by record, which is safe where the paper's best guess for all together is not.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dprisk.bounds.papers import posterior
from dprisk.errors import as_epsilon, require
from dprisk.guarantees import GaussianDP
from dprisk.rounding import outward
from dprisk.types import FloatArray

TRIED = 40  # pairs of a curve


def most_right(kappas: FloatArray, epsilon: float, delta: float, confidences: Sequence[float]) -> tuple[int, ...]:
    """For each confidence the number of records that no attacker is right about more of."""
    for confidence in confidences:
        require(0 < confidence < 1, f"confidence must lie strictly between 0 and 1, got {confidence}")
    require(0 <= delta <= 1, f"delta must lie in [0, 1], got {delta}")
    exceeded = np.append(tails_at_most(kappas, epsilon, delta)[1:], 0.0)
    return tuple(int(np.argmax(exceeded <= 1 - confidence)) for confidence in confidences)


def most_right_of_gaussian(kappas: FloatArray, mu: float, confidences: Sequence[float]) -> tuple[int, ...]:
    """The same for Gaussian DP, which promises a delta at every epsilon: the least over many such pairs."""
    found = [most_right(kappas, epsilon, delta, confidences) for epsilon, delta in _pairs(mu, len(kappas))]
    return tuple(min(of_pairs) for of_pairs in zip(*found, strict=True))


@lru_cache(maxsize=32)
def _pairs(mu: float, people: int) -> tuple[tuple[float, float], ...]:
    """Pairs of a curve at which the bounds on so many people are worth a look."""
    deltas = (np.geomspace(1e-9, 0.5, TRIED) / max(people, 1)).tolist()
    return tuple((GaussianDP(mu).epsilon_at(delta), delta) for delta in deltas)


def tails_at_most(kappas: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """Upper bounds on Pr[at least v right], v = 0, ..., n."""
    epsilon = as_epsilon(epsilon)
    tails = _tails([posterior(epsilon, float(min(kappa, 1.0))) for kappa in kappas])
    people = len(kappas)
    bounds = tails + people * delta
    return np.asarray(np.minimum([outward(bound, 4 * people) for bound in bounds], 1.0))


def _tails(chances: Sequence[float]) -> FloatArray:
    """Pr[S >= v] of a sum of independent coins, coin by coin."""
    law = np.ones(1)
    for chance in chances:
        law = np.append(law * (1 - chance), 0.0) + np.append(0.0, law * chance)
    return np.asarray(np.cumsum(law[::-1])[::-1])
