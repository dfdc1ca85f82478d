"""Which (epsilon, delta) to put to the test when the promise is of another kind, such as Gaussian DP."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dprisk.guarantees import ApproxDP, GaussianDP, Guarantee

EXCESS = 1.25  # how many times more revealing than promised is the code that the choice is made for
LARGEST_MU = 15.0  # beyond it a total variation is 1 in floating point
CHOICES = 300
ROUNDING = 2.0**-50  # more than a computed delta may be too small, besides one part in 1e12


@dataclass(frozen=True)
class Consequence(ApproxDP):
    """(epsilon, delta)-differential privacy as what another guarantee, the `promise`, implies."""

    promise: Guarantee = field(kw_only=True)

    @property
    def told(self) -> str:
        """The promise, for a sentence."""
        return repr(self.promise).replace(", relation='replace-one'", "")


def consequence(promise: Guarantee) -> Consequence:
    """The pair (epsilon, delta) by which an audit refutes a guarantee with the fewest runs.

    A guarantee implies (e, delta(e))-DP for every e, so who refutes one pair has refuted it. The choice depends on the
    guarantee alone, hence on no run. It is made for Gaussian noise that leaks a quarter more than noise of the promised
    total variation: with mu its parameter and hit and alarm the chances of its best test for e, which has
    delta_mu(e) = hit - exp(e) alarm, the e with the largest

        (delta_mu(e) - delta(e)) / sqrt(hit + exp(2 e) alarm),

    the excess over the standard deviation of one run. Any other choice is as valid, and needs more runs.
    """
    from scipy.special import log_ndtr, ndtr, ndtri

    mu = EXCESS * min(LARGEST_MU, 2 * float(ndtri((1 + promise.total_variation) / 2)))
    if mu == 0:
        return _implied(promise, 0.0)
    epsilons = np.linspace(0.0, mu * (mu / 2 + 3), CHOICES)
    hit, log_alarm = ndtr(mu / 2 - epsilons / mu), log_ndtr(-mu / 2 - epsilons / mu)
    excess = [GaussianDP(mu).delta_at(epsilon) - promise.delta_at(epsilon) for epsilon in epsilons]
    best = epsilons[np.argmax(excess / np.sqrt(hit + np.exp(2 * epsilons + log_alarm)))]
    return _implied(promise, float(f"{best:.3g}"))  # for who reads it


def _implied(promise: Guarantee, epsilon: float) -> Consequence:
    """The pair with this epsilon. Its delta is rounded up, for it must not promise more, unless it is exactly 0."""
    delta = promise.delta_at(epsilon)
    if delta > 0 or math.isinf(promise.epsilon_at(0.0)):
        delta = min(1.0, delta * (1 + 1e-12) + ROUNDING)
    return Consequence(epsilon, delta, promise=promise)
