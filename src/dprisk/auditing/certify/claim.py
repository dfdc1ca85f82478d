"""What is put to the test, and how. Of a promise such as Gaussian DP it is an (epsilon, delta) that follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprisk.auditing.certify.counts import as_alpha
from dprisk.errors import as_number, as_whole, fail, require
from dprisk.guarantees import ApproxDP, GaussianDP, Guarantee
from dprisk.guarantees.base import Relation
from dprisk.mechanisms import Mechanism

EARLY = 20_000  # runs that an audit which may end early is designed for, so that its pilot is short
EXCESS = 1.25  # how many times more revealing than promised is the code that the choice is made for
LARGEST_MU = 15.0  # beyond it a total variation is 1 in floating point
CHOICES = 300
ROUNDING = 2.0**-50  # more than a computed delta may be too small, besides one part in 1e12


@dataclass(frozen=True)
class Terms:
    """What an audit is held to, settled before its first run: the claim, and how many runs may refute it how surely.

    `stop_early` ends it once the claim is refuted; `timed` says that there may be no time for all runs.
    """

    claim: ApproxDP
    runs: int = 100_000
    alpha: float = 0.01
    seed: int = 0
    stop_early: bool = False
    timed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", as_whole("runs", self.runs))
        object.__setattr__(self, "seed", as_whole("seed", self.seed, least=0))
        object.__setattr__(self, "alpha", as_alpha(self.alpha))

    @property
    def anytime(self) -> bool:
        """Whether it may end before all runs are made: when the claim is refuted, or the time is up."""
        return self.stop_early or self.timed

    @property
    def aim(self) -> int:
        """The runs that the experiment is chosen for."""
        return min(self.runs, EARLY) if self.anytime else self.runs


def as_claim(claim: Any, own: Mechanism | None = None, relation: Relation = "replace-one") -> ApproxDP:
    """An epsilon, a pair (epsilon, delta) or a guarantee as what is tested of neighbours of this relation.

    None is the epsilon of the mechanism that is audited itself. Numbers are about whatever neighbours the code has; a
    guarantee says itself which it is about, and must be about these.
    """
    if claim is None:
        if own is None:
            fail("What does the code claim? Give an epsilon as `claim`.")
        require(
            math.isfinite(own.epsilon),
            f"{own!r} keeps no finite epsilon at delta 0. Give a claim with a delta: claim=(1.0, 1e-5), or on the "
            "command line --claim 1 --delta 1e-5.",
        )
        return ApproxDP(own.epsilon, 0.0)
    if isinstance(claim, Guarantee):
        if relation == "replace-one":
            claim.require_replace_one()
        elif claim.relation != relation:
            fail(
                f"{claim!r} is for replacing one record, but here one is added or removed: give the claim "
                "relation='add-remove', or its numbers alone."
            )
        return claim if isinstance(claim, ApproxDP) else consequence(claim)
    epsilon, delta = claim if isinstance(claim, tuple) and len(claim) == 2 else (claim, 0.0)
    if isinstance(epsilon, int | float | np.number):
        return ApproxDP(as_number("The claimed epsilon", epsilon), delta, relation)
    return fail(f"A claim is an epsilon or a guarantee such as ApproxDP(1.0, 1e-5), not {claim!r}.")


@dataclass(frozen=True)
class Consequence(ApproxDP):
    """(epsilon, delta)-differential privacy as what another guarantee, the `promise`, implies."""

    promise: Guarantee = field(kw_only=True)

    @property
    def told(self) -> str:
        """The promise, for a sentence."""
        return repr(self.promise).replace(f", relation={self.relation!r}", "")


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
    return Consequence(epsilon, delta, promise.relation, promise=promise)
