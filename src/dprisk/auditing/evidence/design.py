"""What the auditor does in each run: whom it suspects, and when it answers.

A design is a set U of records and a rule: answer with the record of U that has the largest score if it leads the
second by at least a margin, otherwise abstain. It is chosen before the runs that certify, from the known likelihood
or from pilot runs, so as to make the expected certificate largest (theory, section 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.auditing.certify import statistics
from dprisk.auditing.certify.advantage import Bet
from dprisk.auditing.certify.experiment import Experiment
from dprisk.auditing.certify.statistics import Counts, expected_certificate
from dprisk.auditing.code.comparison import comparable
from dprisk.auditing.code.targets import Target
from dprisk.auditing.evidence.learned import EVERY, Learner
from dprisk.auditing.evidence.scores import KnownScorer, Scorer
from dprisk.bounds.papers import rad_corollary_5_6
from dprisk.errors import MechanismError, ParameterError, require
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms import Mechanism, SetProtocol
from dprisk.mechanisms.base import leads
from dprisk.types import AnyArray, FloatArray, IntArray

PILOT_RUNS, FEWEST_PILOT_RUNS, PILOT_CELLS = 4000, 500, 1 << 19  # of a known mechanism, for each size that is tried
PILOT_STEP = 200  # of them at a time
MOST_WORSE = 4  # sizes in a row that are tried in vain
LEARNING_RUNS, MOST_LEARNING_RUNS = 300, 10_000  # of unknown code, for each record
LEARNING_SHARE = 0.1  # of the runs planned, within these limits
FOLDS = 3  # parts of those runs, each judged by what the others teach
DOUBT = 1e-3  # chance that what pilot runs promise is too good; small, for the best of many designs is chosen
PAIR_RUNS, PAIRS = 30, 3  # of a known mechanism, for each record, to find distant pairs, and how many of them
MOST_LEARNED = 64  # records that are looked at in unknown code
MARGINS = np.linspace(0.0, 1.0, 41)
LARGE = 40.0  # an epsilon beyond which more suspects would not help
CERTAIN = 1e6  # a lead that no margin needs to exceed, infinite ones among them


@dataclass(frozen=True)
class Design(Experiment[Counts]):
    """Suspects and rule. `universe` are numbers of records, `margin` the lead that it takes to answer."""

    universe: IntArray
    margin: float
    scorer: Scorer

    @property
    def may_draw(self) -> bool:
        """If the scorer may."""
        return self.scorer.may_draw

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        """Suspects, uniformly."""
        return rng.integers(self.size, size=count)

    def tally(self, outputs: Any, drawn: IntArray) -> Counts:
        """Answers, and how many were right."""
        answers = self.answers(outputs)
        require(
            answers.shape == drawn.shape,
            f"The attack must answer once for each output; for {drawn.size} of them its answers have the shape "
            f"{answers.shape}.",
            ParameterError,
        )
        return Counts(drawn.size, int((answers >= 0).sum()), int((answers == drawn).sum()), self.size)

    def answers(self, outputs: Any) -> IntArray:
        """For each output the place of the answer in the universe, -1 to abstain."""
        best, lead = self.scorer.leads(outputs, self.universe)
        return np.where(lead >= self.margin, best, -1)

    def read(self, told: dict[str, Any]) -> Counts:
        """Counts that were written down."""
        return Counts.read(told)

    @property
    def nothing(self) -> Counts:
        """No runs."""
        return Counts(0, 0, 0, self.size)

    def certified(self, tally: Counts, alpha: float, delta: float, anytime: bool) -> float:
        """By Clopper-Pearson on answered runs, or by the e-process (theory, 4.1)."""
        return (statistics.anytime_epsilon if anytime else statistics.certified_epsilon)(tally, alpha, delta)

    def log_e_value(self, tally: Counts, claim: ApproxDP) -> float:
        """By betting on right against wrong answers."""
        return statistics.log_e_value(tally, claim.epsilon, claim.delta)

    def estimate(self, tally: Counts, delta: float) -> float:
        """The epsilon that the counts would have on average."""
        return statistics.epsilon_estimate(tally, delta)

    def able(self, tally: Counts, claim: ApproxDP, alpha: float, anytime: bool) -> bool:
        """Whether the claim would be refuted if all answers were correct."""
        best = Counts(tally.runs, tally.answered, tally.answered, tally.size)
        return self.certified(best, alpha, claim.delta, anytime) > claim.epsilon

    def attack(self, tally: Counts, claim: ApproxDP, alpha: float, anytime: bool) -> dict[str, Any]:
        """How often the attacker names the record of a run, and the most that the claim allows.

        The record is uniform on the s suspects; an attacker that abstains guesses one of them at random. With S the
        chance of a correct answer and A that of any, the success (ReRo) is S + (1 - A)/s and the advantage (RAD) is
        1/s less. The intervals hold with probability at least 1 - alpha: Clopper-Pearson at alpha/4 for each end of S
        and of A, or at any moment by betting on the mean of 1, 0 and 1/s. The bounds are RAD Corollary 5.6.
        """
        guess = 1 / tally.size
        most = min(1 - guess, rad_corollary_5_6(claim.epsilon, claim.delta, tally.size))
        told: dict[str, Any] = {"baseline": guess, "success_bound": guess + most, "advantage_bound": most}
        if tally.runs == 0:
            return told
        silent = tally.runs - tally.answered
        success = (tally.correct + silent * guess) / tally.runs
        if anytime:
            values, times = np.array([1.0, 0.0, guess]), np.array([tally.correct, tally.wrong, silent], dtype=float)
            ends = [bound(values, times, alpha / 2) for bound in (Bet(0.0, 1.0).lower, Bet(0.0, 1.0).upper)]
        else:
            right, none = (statistics.clopper_pearson(k, tally.runs, alpha / 4) for k in (tally.correct, silent))
            ends = [min(1.0, a + b * guess) for a, b in zip(right, none, strict=True)]
        return told | {
            "success": success,
            "success_interval": ends,
            "advantage": success - guess,
            "advantage_interval": [end - guess for end in ends],
        }

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"suspects": self.size, "margin": self.margin, "evidence": self.scorer.describe()}


@dataclass(frozen=True)
class _Wanted:
    """What each of `count` designs is for: a certificate at this alpha and delta, from so many runs."""

    runs: int
    alpha: float
    delta: float
    count: int

    def worth(self, right: float, wrong: float, suspects: int) -> float:
        """The certificate to expect where a run is answered right and wrong with these chances."""
        return expected_certificate(right, wrong, self.runs, suspects, self.alpha, self.delta)


def choose(
    target: Target, scorer: KnownScorer | None, runs: int, alpha: float, delta: float, rng: np.random.Generator
) -> Design:
    """The design with the largest expected certificate at the claim's delta."""
    return choose_several(target, scorer, runs, alpha, delta, rng, 1)[0]


def choose_several(
    target: Target,
    scorer: KnownScorer | None,
    runs: int,
    alpha: float,
    delta: float,
    rng: np.random.Generator,
    count: int,
    learners: Sequence[Learner] = EVERY,
) -> list[Design]:
    """Up to `count` designs with other suspects each, the largest expected certificates first.

    Each is worth what it certifies with its share of the runs and of alpha.
    """
    wanted = _Wanted(max(1, runs // count), alpha / count, delta, count)
    if scorer is None:
        return _choose_learned(target, wanted, rng, learners)
    if isinstance(scorer.mechanism, SetProtocol):
        return _choose_for_sets(scorer, scorer.mechanism, wanted, rng)
    return _choose_known(target, scorer, wanted, rng)


def _choose_for_sets(
    scorer: KnownScorer, protocol: SetProtocol, wanted: _Wanted, rng: np.random.Generator
) -> list[Design]:
    """Answer if exactly one suspect is in the reported set: how often that is right and wrong is known.

    All suspects are equally good; several designs differ in who they are and, where the best has all, in their number.
    """
    sizes = np.union1d(_sizes(protocol.size, protocol.epsilon), [protocol.size])
    right, wrong = protocol.hit(sizes - 1), (sizes - 1) * protocol.miss(sizes - 1)
    worth = [wanted.worth(float(p), float(q), int(size)) for p, q, size in zip(right, wrong, sizes, strict=True)]
    margin = protocol.epsilon * (1 - 1e-9) or 1e-9
    orders = [rng.permutation(protocol.size) for _ in range(wanted.count)]
    found = [
        (value, Design(order[:size], margin, scorer))
        for value, size in zip(worth, sizes, strict=True)
        for order in orders
    ]
    return _with_other_suspects(found, wanted.count)


def _with_other_suspects(found: list[tuple[float, Design]], count: int) -> list[Design]:
    """The designs of largest worth, at most one for the same suspects."""
    best: dict[frozenset[int], Design] = {}
    for _, design in sorted(found, key=lambda pair: -float(f"{pair[0]:.9e}")):  # the first of nearly equal ones
        best.setdefault(frozenset(design.universe.tolist()), design)
    return list(best.values())[:count]


def _choose_known(target: Target, scorer: KnownScorer, wanted: _Wanted, rng: np.random.Generator) -> list[Design]:
    """Sizes up to a few times e^epsilon and distant pairs are tried, on the mechanism, not on the code under test.

    What an answer is right with is read off the likelihood: for tiny rates of error no pilot would see one. Once a few
    sizes in a row were no better, larger ones are not tried.
    """
    order = rng.permutation(target.size)
    epsilon = _epsilon(scorer.mechanism)
    best, worse, found = -1.0, 0, [(-1.0, Design(order[:2], 1e-9, scorer))]
    sizes = [order[:size] for size in _sizes(target.size, epsilon)]
    for universe in _distant_pairs(scorer, rng) + sizes:
        size = universe.size
        lead, sure = _pilot(scorer, universe, max(FEWEST_PILOT_RUNS, min(PILOT_RUNS, PILOT_CELLS // size)), rng)
        worse += 1
        for margin in _margins(lead):
            answered = lead >= margin
            rates = float((sure * answered).mean()), float(((1 - sure) * answered).mean())
            worth = wanted.worth(*rates, size)
            if worth > best * (1 + 1e-9):
                best, worse = worth, 0
            found.append((worth, Design(universe, float(margin), scorer)))
        if worse == MOST_WORSE:
            break
    return _with_other_suspects(found, wanted.count)


def _epsilon(mechanism: Mechanism) -> float:
    """The mechanism's epsilon; a large number if it has none or does not know it."""
    try:
        return min(mechanism.epsilon, LARGE)
    except MechanismError:
        return LARGE


def _pilot(
    scorer: KnownScorer, universe: IntArray, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The leads in some runs of a known mechanism, and the chance that the best is right; a few runs at a time."""
    parts = []
    for truth in np.array_split(rng.integers(universe.size, size=count), 1 + count // PILOT_STEP):
        scores = scorer.scores(scorer.mechanism.sample(universe[truth], rng), universe)
        top = scores.max(axis=1, keepdims=True)
        parts.append((leads(scores)[1], 1 / np.exp(scores - top).sum(axis=1)))
    lead, sure = (np.concatenate(part) for part in zip(*parts, strict=True))
    return lead, sure


def _distant_pairs(scorer: KnownScorer, rng: np.random.Generator) -> list[IntArray]:
    """A few pairs of records that the mechanism tells apart best, such as the ends of a line."""
    every = np.unique(np.linspace(0, scorer.mechanism.size - 1, MOST_LEARNED).astype(np.int64))
    trial = np.repeat(every, PAIR_RUNS)
    scores = np.maximum(scorer.scores(scorer.mechanism.sample(trial, rng), every), -CERTAIN)
    return [every[places] for places in _suspects(scores, trial, every)[1 : 1 + PAIRS]]


def _choose_learned(
    target: Target, wanted: _Wanted, rng: np.random.Generator, learners: Sequence[Learner]
) -> list[Design]:
    """Pilot runs of the code itself, the same number for each of the records that are looked at."""
    every = rng.permutation(target.size)[:MOST_LEARNED]
    pilot = rng.permutation(np.repeat(every, pilot_runs(every.size, wanted.count * wanted.runs)))
    outputs = target.sample(pilot, rng)
    return learned_designs(outputs, pilot, wanted.runs, wanted.alpha, wanted.delta, wanted.count, learners)


def pilot_runs(records: int, runs: int) -> int:
    """How many pilot runs to learn from, of each of so many records, before so many runs that count."""
    return min(MOST_LEARNING_RUNS, max(LEARNING_RUNS, round(LEARNING_SHARE * runs / records)))


def learned_designs(
    outputs: AnyArray,
    records: IntArray,
    runs: int,
    alpha: float,
    delta: float,
    count: int = 1,
    learners: Sequence[Learner] = EVERY,
) -> list[Design]:
    """The best designs by pilot runs in random order.

    Each third of them is scored by what the other two teach, so that every run helps to choose, and none is judged by
    what it taught itself. The scores of the design are those that the last two thirds teach.
    """
    outputs, fold = comparable(outputs), np.arange(records.size) % FOLDS
    every = np.unique(records)
    for number in range(FOLDS):
        every = np.intersect1d(every, records[fold != number])
    require(every.size >= 2, "There are too few runs to learn from: each record needs several.", ParameterError)
    found = []
    for learner in learners:
        if len(learners) == 1 or all(learner.suits(outputs[fold != number]) for number in range(FOLDS)):
            scorers = [learner.learn(outputs[fold != number], records[fold != number]) for number in range(FOLDS)]
            scores = np.empty((records.size, every.size))
            for number, scorer in enumerate(scorers):
                scores[fold == number] = scorer.scores(outputs[fold == number], every)
            found += _tried(scorers[0], scores, fold, records, every, _Wanted(runs, alpha, delta, count))
    return _with_other_suspects(found, count)


def _tried(
    scorer: Scorer,
    scores: FloatArray,
    fold: IntArray,
    records: IntArray,
    every: IntArray,
    wanted: _Wanted,
) -> list[tuple[float, Design]]:
    """Designs with the scores of the first fold, and what they are worth by those of all.

    The folds differ in how far leads go, so a margin is the same quantile of the leads in each.
    """
    found = [(-1.0, Design(every[:2], 1e-9, scorer))]
    for places in _suspects(scores, records, every):
        universe = every[places]
        mine = np.isin(records, universe)
        guess, lead = leads(scores[mine][:, places])
        right, part = universe[guess] == records[mine], fold[mine]
        margins = np.unique([_quantiles(lead[part == number]) for number in range(FOLDS)], axis=1)
        for margin in margins.T[np.isfinite(margins[0])]:
            answered = lead >= margin[part]
            correct, wrong = int((right & answered).sum()), int((~right & answered).sum())
            rates = (correct + 1) / (mine.sum() + 2), (wrong + 1) / (mine.sum() + 2)
            seen = expected_certificate(*rates, float(mine.sum()), universe.size, DOUBT, wanted.delta)  # luck left out
            hoped = wanted.worth(*rates, universe.size)
            worth = min(seen, hoped) + 1e-6 * hoped  # hope decides where pilot runs show nothing
            found.append((worth, Design(universe, float(margin[0]), scorer)))
    return found


def _suspects(scores: FloatArray, trial: IntArray, every: IntArray) -> list[IntArray]:
    """Places in `every` worth a try: all, and the pairs that are told apart best, most different scores first."""
    means = np.array([scores[trial == record].mean(axis=0) for record in every])
    own = np.diagonal(means)
    apart = own[:, None] + own - means - means.T
    pairs = np.argwhere(np.triu(np.ones_like(apart), 1) > 0)
    order = np.argsort(-apart[pairs[:, 0], pairs[:, 1]], kind="stable")[:16]
    return [np.arange(every.size), *pairs[order]]


def _margins(lead: FloatArray) -> FloatArray:
    """Margins to try, each once; none if nothing ever leads."""
    return np.unique(_quantiles(lead)) if (lead > 0).any() else np.zeros(0)


def _quantiles(lead: FloatArray) -> FloatArray:
    """Quantiles of the leads above 0, a little lower so that they are reached; infinite if there are none."""
    some = np.sort(np.minimum(lead[lead > 0], CERTAIN))
    if some.size == 0:
        return np.full(MARGINS.size, np.inf)
    return some[np.round(MARGINS * (some.size - 1)).astype(np.int64)] * (1 - 1e-9)


def _sizes(records: int, epsilon: float) -> list[int]:
    """2, 3, 4, 6, 8, 12, ... up to a few times e^epsilon, at most all records."""
    most = min(records, math.ceil(8 * math.exp(min(epsilon, 20.0))) + 2)
    steps = [2 ** (k // 2) * (3 if k % 2 else 2) // (2 if k % 2 else 1) for k in range(60)]
    return sorted({min(records, size) for size in steps if 2 <= size <= most} | {min(records, most)})
