"""An audit under a threat: what an attacker gains who guesses in every run, measured and turned into an epsilon.

The target of a run is drawn from the prior, and its value is that of `attacks.estimate`. The attack is the best one for
scores that are log-likelihoods (RAD Algorithm 1): those of a known family, or learned in pilot runs. Anything else that
guesses will do too. What is certified holds for every attack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dprisk.attacks.estimate import SAME, draw_records, mass_range, one_run, sets_guessed
from dprisk.auditing.certify.advantage import epsilon_from_advantage, largest_advantage
from dprisk.auditing.certify.bets import Bet
from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.certify.counts import clopper_pearson
from dprisk.auditing.certify.gains import Gains
from dprisk.auditing.code.outputs import require_outputs
from dprisk.auditing.code.target import Target
from dprisk.auditing.evidence.design import GuessScorer, KnownScorer, Scorer
from dprisk.auditing.evidence.experiment import Attack, Experiment
from dprisk.auditing.evidence.learned import Learner
from dprisk.auditing.evidence.numbers import comparable
from dprisk.auditing.evidence.screening import MOST_RECORDS
from dprisk.auditing.evidence.suspects import FEWEST_PILOT_RUNS, PILOT_CELLS, PILOT_RUNS, pilot_runs
from dprisk.bounds import Bounded, evaluate
from dprisk.calibration import calibrate
from dprisk.errors import fail
from dprisk.exact import beliefs, block_size
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms.combined import number_of, take
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray, IntArray

GUESSES = 1 << 20  # guesses of an attack that are held at once
ROUNDED = 1e-4  # more than `Gains` adds to a mass of at most 1


@dataclass(frozen=True, eq=False)
class Guessing(Experiment[Gains]):
    """A threat, and the scores that the attacker goes by.

    Where every guess has the same prior mass, as for a uniform prior with nothing known, hits are binomial and the
    bound on the advantage is Clopper-Pearson's for a number of runs fixed beforehand. In all other cases it is `bet`,
    which holds at any moment.
    """

    threat: Threat
    scorer: Scorer
    bet: Bet
    _most: dict[tuple[str, ApproxDP], float] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def universe(self) -> IntArray:  # type: ignore[override]
        return np.arange(self.threat.prior.size)

    @property
    def may_draw(self) -> bool:
        return self.scorer.may_draw

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        return draw_records(self.threat.prior.weights, count, 1, rng)

    def tally(self, outputs: Any, drawn: IntArray) -> Gains:
        total = self.nothing
        step = block_size(self.threat.reach, self.size)
        if isinstance(self.scorer, GuessScorer):  # nothing is computed for each record
            step = max(step, GUESSES // self.threat.knows.n_groups)
        elif self._plain:
            step = max(step, GUESSES // self.size)
        for start in range(0, drawn.size, step):
            mine = slice(start, start + step)
            total = total + Gains.of(*one_run(self.threat, self._chosen(take(outputs, mine)), drawn[mine]))
        return total

    def _chosen(self, outputs: Any) -> IntArray:
        """The number of the set guessed in each group, groups x outputs."""
        reach = self.threat.reach
        if isinstance(self.scorer, GuessScorer):
            return sets_guessed(self.scorer.guesser, outputs, self.threat, np.random.default_rng(self.scorer.seed))
        if self._plain:
            return reach.find(self.scorer.leads(outputs, self.universe)[0], 0)[None, :]
        believed = beliefs(self._scores(outputs), self.threat.prior.weights)
        return reach.first_best(reach.sums(believed) - self._masses[:, None])

    @cached_property
    def _plain(self) -> bool:
        """Whether the best guess is the likeliest record: of records all alike, nothing known, of a known mechanism."""
        weights = self.threat.prior.weights
        alike = bool(np.ptp(weights) <= SAME * weights.max())
        known = isinstance(self.scorer, KnownScorer) and self.threat.knows.is_none
        return known and alike and self.threat.success.is_exact

    def _scores(self, outputs: Any) -> FloatArray:
        """Scores of every record; a record that was not learned about is as likely as the others are on average.

        An output that no record can have made, by these scores, says nothing.
        """
        pi, known = self.threat.prior.weights, self.scorer.known
        asked = self.universe if known is None else known
        some = self.scorer.scores(outputs, asked)
        if some.shape != (wanted := (number_of(outputs), asked.size)):
            fail(
                f"The attack must score each output for each record, {wanted}; its scores have the shape {some.shape}."
            )
        scores = some
        if known is not None:
            top = some.max(axis=1, keepdims=True)
            mean = top + np.log(np.exp(some - top) @ pi[known] / pi[known].sum())[:, None]
            scores = np.repeat(mean, pi.size, axis=1)
            scores[:, known] = some
        possible = scores[:, pi > 0].max(axis=1) > -np.inf
        return np.where(possible[:, None], scores, 0.0)

    @cached_property
    def _masses(self) -> FloatArray:
        """The prior mass of each set that can be guessed."""
        return self.threat.reach.sums(self.threat.prior.weights[:, None])[:, 0]

    @property
    def _constant(self) -> bool:
        """Whether every guess has the same prior mass, whatever is guessed."""
        low, high = mass_range(self.threat)
        return high - low <= SAME

    @property
    def nothing(self) -> Gains:
        return Gains.of(np.zeros(0), np.zeros(0, dtype=bool))

    def certified(self, tally: Gains, alpha: float, delta: float, anytime: bool) -> float:
        """A lower bound on the advantage, put into the tightest bound that holds for every (epsilon, delta)-DP code."""
        return epsilon_from_advantage(self._possible(self._lower(tally, alpha, anytime)), self.threat, delta)

    def _lower(self, tally: Gains, alpha: float, anytime: bool) -> float:
        """A lower bound on the advantage of the attack, above it with probability at most alpha."""
        if tally.runs == 0:
            return self.bet.low
        if self._constant and not anytime:
            return clopper_pearson(tally.correct, tally.runs, alpha)[0] - mass_range(self.threat)[1] - SAME
        return self.bet.lower(*tally.values, alpha)

    def _possible(self, advantage: float) -> float:
        """No attack has an advantage above 1 - kappa_pi; by chance a bound may."""
        return min(advantage, 1 - self.threat.prior.collision_probability)

    def log_e_value(self, tally: Gains, claim: ApproxDP) -> float:
        return self.bet.log_capital(*tally.values, self._allowed("advantage", claim)) if tally.runs else 0.0

    def estimate(self, tally: Gains, delta: float) -> float:
        return epsilon_from_advantage(self._possible(tally.mean), self.threat, delta)

    def family_estimate(self, tally: Gains) -> dict[str, Any] | None:
        if not isinstance(self.scorer, KnownScorer) or not 0 < tally.mean < 1:
            return None
        found = calibrate(self.scorer.mechanism, self.threat, advantage=tally.mean)
        return {"parameter": found.parameter, "value": None if found.unlimited else found.value}

    def able(self, tally: Gains, claim: ApproxDP, alpha: float, anytime: bool) -> bool:
        best = Gains(tally.masses, tally.hits + tally.misses, 0 * tally.misses)
        return self._possible(self._lower(best, alpha, anytime)) > self._allowed("advantage", claim)

    def attack(self, tally: Gains, claim: ApproxDP, alpha: float, anytime: bool) -> Attack:
        """The attack's advantage and success beside the tightest bounds under the claim.

        Each of the four ends of the intervals is wrong with probability at most alpha/4: by betting, at any moment; of
        the success for a fixed number of runs by Clopper-Pearson.
        """
        found = Attack(self.threat.baseline, self._allowed("success", claim), self._allowed("advantage", claim))
        if tally.runs == 0:
            return found
        values, times = tally.values
        share = alpha / 4
        if anytime:
            hits = np.array([0.0, 1.0]), np.array([tally.runs - tally.correct, tally.correct], dtype=float)
            success = Bet(0.0, 1.0).lower(*hits, share), Bet(0.0, 1.0).upper(*hits, share)
        else:
            success = clopper_pearson(tally.correct, tally.runs, share)
        above = self.bet.upper(values, times, share) + ROUNDED  # the values were rounded down
        return replace(
            found,
            success=tally.correct / tally.runs,
            success_interval=success,
            advantage=tally.mean,
            advantage_interval=(self._lower(tally, share, anytime), min(self.bet.high, above)),
        )

    def _allowed(self, which: Bounded, claim: ApproxDP) -> float:
        """The tightest bound on the advantage or success of every mechanism that keeps the claim."""
        if (which, claim) not in self._most:
            numbers = ApproxDP(claim.epsilon, claim.delta)  # of whatever neighbours the records are
            if which == "advantage":
                self._most[which, claim] = self._possible(largest_advantage(numbers, self.threat))
            else:
                self._most[which, claim] = min(1.0, evaluate(numbers, self.threat, which).values[0].number)
        return self._most[which, claim]

    def to_dict(self) -> dict[str, Any]:
        return {"threat": self.threat.describe(), "evidence": self.scorer.describe()}


def bet_on(threat: Threat, variance: float | None = None, runs: int = 1, alpha: float = 0.5) -> Bet:
    """A bet on the values of attacks under this threat, tuned to so many runs of a known variance."""
    least, most = mass_range(threat)
    low, high = -most - ROUNDED * most, 1 - least
    return Bet(low, high) if variance is None else Bet.tuned(low, high, variance, runs, alpha)


def choose_guessing(
    target: Target,
    threat: Threat,
    scorer: Scorer | None,
    learners: Sequence[Learner],
    terms: Terms,
    rng: np.random.Generator,
) -> Guessing:
    """The attack that an audit is made with, and its stake.

    A known likelihood is tried on its own mechanism, which tells the variance to bet on; without a scorer, pilot runs
    of the code are learned from. A scorer that was given is taken as it is, without pilot runs.
    """
    if scorer is None:
        return _learned(target, threat, learners, terms, rng)
    guessing = Guessing(threat, scorer, bet_on(threat))
    if not isinstance(scorer, KnownScorer):
        return guessing
    drawn = guessing.draw(max(FEWEST_PILOT_RUNS, min(PILOT_RUNS, PILOT_CELLS // target.size)), rng)
    return _tuned(guessing, guessing.tally(scorer.mechanism.sample(drawn, rng), drawn), terms)


def _learned(
    target: Target, threat: Threat, learners: Sequence[Learner], terms: Terms, rng: np.random.Generator
) -> Guessing:
    """Learn from as many runs of each record; try on records of the prior, as in the runs that count.

    Of very many records some are learned about, likely ones rather than others. The learner that promises the largest
    lower bound on the advantage, about, is kept.
    """

    def promised(seen: Gains) -> float:
        return seen.mean - math.sqrt(-2 * math.log(terms.alpha) * seen.variance / terms.aim)

    pi = threat.prior.weights
    every = np.sort(rng.choice(pi.size, min(MOST_RECORDS, threat.prior.support_size), replace=False, p=pi))
    pilot = rng.permutation(np.repeat(every, pilot_runs(every.size, terms.aim)))
    given = target.sample(pilot, rng)
    require_outputs(given)
    outputs = comparable(given)
    trial = draw_records(pi, max(FEWEST_PILOT_RUNS, pilot.size // 3), 1, rng)
    held = target.sample(trial, rng)
    found = []
    for learner in learners:
        if len(learners) == 1 or learner.suits(outputs):
            guessing = Guessing(threat, learner.learn(outputs, pilot), bet_on(threat))
            found.append((guessing, guessing.tally(held, trial)))
    return _tuned(*max(found, key=lambda pair: promised(pair[1])), terms)


def _tuned(guessing: Guessing, seen: Gains, terms: Terms) -> Guessing:
    """The same attack, with a stake for what pilot runs showed."""
    return replace(guessing, bet=bet_on(guessing.threat, seen.variance, terms.aim, terms.alpha))
