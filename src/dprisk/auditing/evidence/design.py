"""What the auditor does in each run: whom it suspects, and when it answers.

A design is a set U of records and a rule: answer with the record of U that has the largest score if it leads the
second by at least a margin, otherwise abstain (theory, section 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.auditing.certify.anytime import anytime_epsilon, log_e_value
from dprisk.auditing.certify.bets import Bet
from dprisk.auditing.certify.counts import Counts, certified_epsilon, clopper_pearson, epsilon_estimate
from dprisk.auditing.evidence.experiment import Attack, Experiment
from dprisk.auditing.evidence.scores import Scorer
from dprisk.bounds.papers import rad_corollary_5_6
from dprisk.errors import fail
from dprisk.guarantees import ApproxDP
from dprisk.types import IntArray


@dataclass(frozen=True)
class Design(Experiment[Counts]):
    """Suspects and rule. `universe` are numbers of records, `margin` the lead that it takes to answer."""

    universe: IntArray
    margin: float
    scorer: Scorer

    @property
    def may_draw(self) -> bool:
        return self.scorer.may_draw

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        return rng.integers(self.universe.size, size=count)

    def tally(self, outputs: Any, drawn: IntArray) -> Counts:
        best, lead = self.scorer.leads(outputs, self.universe)
        answers = np.where(lead >= self.margin, best, -1)  # the place of the answer in the universe, -1 to abstain
        if answers.shape != drawn.shape:
            fail(f"The attack must answer once for each of {drawn.size} outputs; it gave the shape {answers.shape}.")
        return Counts(drawn.size, int((answers >= 0).sum()), int((answers == drawn).sum()), self.universe.size)

    @property
    def nothing(self) -> Counts:
        return Counts(0, 0, 0, self.universe.size)

    def certified(self, tally: Counts, alpha: float, delta: float, anytime: bool) -> float:
        return (anytime_epsilon if anytime else certified_epsilon)(tally, alpha, delta)

    def log_e_value(self, tally: Counts, claim: ApproxDP) -> float:
        return log_e_value(tally, claim.epsilon, claim.delta)

    def estimate(self, tally: Counts, delta: float) -> float:
        return epsilon_estimate(tally, delta)

    def able(self, tally: Counts, claim: ApproxDP, alpha: float, anytime: bool) -> bool:
        best = Counts(tally.runs, tally.answered, tally.answered, tally.size)
        return self.certified(best, alpha, claim.delta, anytime) > claim.epsilon

    def attack(self, tally: Counts, claim: ApproxDP, alpha: float, anytime: bool) -> Attack:
        """How often the attacker names the record of a run, and the most that the claim allows.

        The record is uniform on the s suspects; an attacker that abstains guesses one of them at random. With S the
        chance of a correct answer and A that of any, the success (ReRo) is S + (1 - A)/s and the advantage (RAD) is
        1/s less. The intervals hold with probability at least 1 - alpha: Clopper-Pearson at alpha/4 for each end of S
        and of A, or at any moment by betting on the mean of 1, 0 and 1/s. The bounds are RAD Corollary 5.6.
        """
        guess = 1 / tally.size
        most = min(1 - guess, rad_corollary_5_6(claim.epsilon, claim.delta, tally.size))
        if tally.runs == 0:
            return Attack(guess, guess + most, most)
        silent = tally.runs - tally.answered
        success = (tally.correct + silent * guess) / tally.runs
        if anytime:
            values, times = np.array([1.0, 0.0, guess]), np.array([tally.correct, tally.wrong, silent], dtype=float)
            low, high = (bound(values, times, alpha / 2) for bound in (Bet(0.0, 1.0).lower, Bet(0.0, 1.0).upper))
        else:
            right, none = (clopper_pearson(k, tally.runs, alpha / 4) for k in (tally.correct, silent))
            low, high = (min(1.0, a + b * guess) for a, b in zip(right, none, strict=True))
        return Attack(guess, guess + most, most, success, (low, high), success - guess, (low - guess, high - guess))

    def to_dict(self) -> dict[str, Any]:
        return {"suspects": self.size, "margin": self.margin, "evidence": self.scorer.describe()}
