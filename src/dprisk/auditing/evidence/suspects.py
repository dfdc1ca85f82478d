"""Whom to suspect: designs chosen from a known likelihood, or from pilot runs.

They are chosen before the runs that certify, so as to make the expected certificate largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dprisk.auditing.certify.counts import expected_certificates
from dprisk.auditing.code.outputs import are_different, require_outputs
from dprisk.auditing.code.target import Target
from dprisk.auditing.evidence.design import ANY_LEAD, Design, KnownScorer, Scorer, leads
from dprisk.auditing.evidence.learned import EVERY, Frequencies, Learner
from dprisk.auditing.evidence.numbers import mostly_numbers
from dprisk.auditing.evidence.rules import Past, together
from dprisk.auditing.evidence.screening import MOST_PAIRS, MOST_RECORDS, busiest, screened
from dprisk.auditing.evidence.views import Seen
from dprisk.errors import MechanismError, require
from dprisk.mechanisms import Mechanism, SetProtocol
from dprisk.types import AnyArray, FloatArray, IntArray

PILOT_RUNS, FEWEST_PILOT_RUNS, PILOT_CELLS = 4000, 500, 1 << 19  # of a known mechanism, for each size that is tried
PILOT_STEP = 200  # of them at a time
MOST_WORSE = 4  # sizes in a row that are tried in vain
LEARNING_RUNS, MOST_LEARNING_RUNS = 300, 10_000  # of unknown code, for each record
LEARNING_SHARE = 0.03  # of the runs planned, within these limits
BEGINNING = 3  # times fewer of them where only those learn from a pilot who go on learning
FOLDS = 3  # parts of those runs, each judged by what the others teach
DOUBT = 1e-3  # chance that what pilot runs promise is too good; small, for the best of many designs is chosen
LEAVES_OUT = 1.1  # times as much that a design must promise which suspects some records only
PAIR_RUNS, PAIRS = 30, 3  # of a known mechanism, for each record, to find distant pairs, and how many of them
MARGINS = np.linspace(0.0, 1.0, 41)
LARGE = 40.0  # an epsilon beyond which more suspects would not help
NEVER = 1e9  # a margin that no lead of learned frequencies reaches
CERTAIN = 1e6  # a lead that no margin needs to exceed, infinite ones among them


@dataclass(frozen=True)
class Wanted:
    """What a design is for: a certificate at this alpha and delta, from so many runs."""

    runs: int
    alpha: float
    delta: float

    def worth(self, right: FloatArray, wrong: FloatArray, suspects: int) -> FloatArray:
        """The certificates to expect where a run is answered right and wrong with these chances."""
        return expected_certificates(right, wrong, self.runs, suspects, self.alpha, self.delta)


def known_design(scorer: KnownScorer, wanted: Wanted, rng: np.random.Generator) -> Design:
    """The design with the largest expected certificate.

    Designs are tried on the mechanism that the likelihood is of, not on the code under test.
    """
    if isinstance(scorer.mechanism, SetProtocol):
        return _for_sets(scorer, scorer.mechanism, wanted, rng)
    return _by_trying(scorer, wanted, rng)


def _for_sets(scorer: KnownScorer, protocol: SetProtocol, wanted: Wanted, rng: np.random.Generator) -> Design:
    """Answer if exactly one suspect is in the reported set: how often that is right and wrong is known.

    All suspects are equally good.
    """
    sizes = np.union1d(_sizes(protocol.size, protocol.epsilon), [protocol.size])
    right, wrong = protocol.hit(sizes - 1), (sizes - 1) * protocol.miss(sizes - 1)
    margin = protocol.epsilon * (1 - 1e-9) or ANY_LEAD
    order = rng.permutation(protocol.size)
    return _best(
        (
            float(wanted.worth(right[place, None], wrong[place, None], int(size))[0]),
            Design(order[:size], margin, scorer),
        )
        for place, size in enumerate(sizes)
    )[1]


def _best(found: Iterable[tuple[float, Design]]) -> tuple[float, Design]:
    """The design of largest worth, the first of nearly equal ones."""
    return max(found, key=lambda pair: float(f"{pair[0]:.9e}"))


def _by_trying(scorer: KnownScorer, wanted: Wanted, rng: np.random.Generator) -> Design:
    """Sizes up to a few times e^epsilon and distant pairs are tried.

    What an answer is right with is read off the likelihood: for tiny rates of error no pilot would see one. Once a few
    sizes in a row were no better, larger ones are not tried.
    """
    order = rng.permutation(scorer.mechanism.size)
    best, worse, found = -1.0, 0, [(-1.0, Design(order[:2], ANY_LEAD, scorer))]
    sizes = [order[:size] for size in _sizes(order.size, _epsilon(scorer.mechanism))]
    for universe in _distant_pairs(scorer, rng) + sizes:
        size = universe.size
        lead, sure = _pilot(scorer, universe, max(FEWEST_PILOT_RUNS, min(PILOT_RUNS, PILOT_CELLS // size)), rng)
        margins = np.unique(_quantiles(lead)) if (lead > 0).any() else np.zeros(0)
        answered = [lead >= margin for margin in margins]
        right = np.array([(sure * some).mean() for some in answered])
        wrong = np.array([((1 - sure) * some).mean() for some in answered])
        worse += 1
        for worth, margin in zip(wanted.worth(right, wrong, size).tolist(), margins.tolist(), strict=True):
            if worth > best * (1 + 1e-9):
                best, worse = worth, 0
            found.append((worth, Design(universe, margin, scorer)))
        if worse == MOST_WORSE:
            break
    return _best(found)[1]


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
    every = np.unique(np.linspace(0, scorer.mechanism.size - 1, MOST_RECORDS).astype(np.int64))
    trial = np.repeat(every, PAIR_RUNS)
    scores = np.maximum(scorer.scores(scorer.mechanism.sample(trial, rng), every), -CERTAIN)
    runs = np.split(np.arange(trial.size), every.size)
    return [every[places] for places in _suspects(scores, runs)[1 : 1 + PAIRS]]


def pilot_past(target: Target, wanted: Wanted, rng: np.random.Generator, settled: bool = False) -> Past:
    """Pilot runs of the code itself: many of each of the records that are learned from, few of others (`screening`).

    Fewer if the main attacker is `settled` without.
    """
    left, before = screened(target, wanted.runs, rng)
    every = np.unique(left)
    times = pilot_runs(every.size, wanted.runs) // (BEGINNING if settled else 1)
    pilot = rng.permutation(np.repeat(every, times))
    past = together([before, Past(Seen(target.sample(pilot, rng)), pilot)])
    require_outputs(past.seen.outputs)
    return past


def learned_designs(past: Past, pairs: IntArray | None, wanted: Wanted, learners: Sequence[Learner]) -> list[Design]:
    """The best design by a pilot; where only pairs are neighbours the best for each of the pairs that are left."""
    if pairs is None:
        every = busiest(past, np.arange(past.records.max() + 1)[:, None], MOST_RECORDS)
        mine = past.of(every.ravel())
        return [learned_design(mine.seen.outputs, mine.records, wanted, learners)]
    some = [past.of(pair) for pair in busiest(past, pairs, MOST_PAIRS)]
    found = [_promising(mine.seen.outputs, mine.records, wanted, learners) for mine in some]
    return [design for _, design in sorted(found, key=lambda pair: -pair[0])]


def pilot_runs(records: int, runs: int) -> int:
    """How many pilot runs to learn from, of each of so many records, before so many runs that count."""
    return min(MOST_LEARNING_RUNS, max(LEARNING_RUNS, round(LEARNING_SHARE * runs / records)))


def learned_design(outputs: AnyArray, records: IntArray, wanted: Wanted, learners: Sequence[Learner] = EVERY) -> Design:
    """The best design by pilot runs in random order, see `_promising`."""
    return _promising(outputs, records, wanted, learners)[1]


def _promising(
    outputs: AnyArray, records: IntArray, wanted: Wanted, learners: Sequence[Learner]
) -> tuple[float, Design]:
    """The best design by pilot runs in random order, and the certificate that they promise.

    Each third of them is scored by what the other two teach, so that every run helps to choose, and none is judged by
    what it taught itself. The scores of the design are those that the last two thirds teach. A design that leaves
    records out must promise clearly more: what only these give away is then looked for in fewer runs. Where hardly
    any two outputs are alike it never answers: others may learn from their parts, and if none does, nothing was shown.
    """
    outputs, fold = mostly_numbers(outputs), np.arange(records.size) % FOLDS
    rest = [fold != number for number in range(FOLDS)]
    every = reduce(np.intersect1d, [records[others] for others in rest])
    require(every.size >= 2, "There are too few runs to learn from: each record needs several.")
    if are_different(outputs):
        return 0.0, Design(every, NEVER, Frequencies().learn(outputs, records))
    found = []
    for learner in learners:
        if len(learners) == 1 or all(learner.suits(outputs[others]) for others in rest):
            scorers = [learner.learn(outputs[others], records[others]) for others in rest]
            scores = np.empty((records.size, every.size))
            for scorer, others in zip(scorers, rest, strict=True):
                scores[~others] = scorer.scores(outputs[~others], every)
            found += _tried(scorers[0], scores, fold, records, every, wanted)
    some, whole = _best(found), _best(pair for pair in found if pair[1].size == every.size)
    return some if some[0] > LEAVES_OUT * whole[0] else whole


def _tried(
    scorer: Scorer, scores: FloatArray, fold: IntArray, records: IntArray, every: IntArray, wanted: Wanted
) -> list[tuple[float, Design]]:
    """Designs with the scores of the first fold, and what they are worth by those of all.

    The folds differ in how far leads go, so a margin is the same quantile of the leads in each.
    """
    found = [(-1.0, Design(every, ANY_LEAD, scorer))]
    runs = [np.flatnonzero(records == record) for record in every]
    for places in _suspects(scores, runs):
        universe, mine = every[places], np.concatenate([runs[place] for place in places])
        guess, lead = leads(scores[mine[:, None], places])
        right, part = universe[guess] == records[mine], fold[mine]
        margins = np.unique([_quantiles(lead[part == number]) for number in range(FOLDS)], axis=1)
        margins = margins[:, np.isfinite(margins[0])]
        correct, wrong = (
            (_reaching(lead[some], part[some], margins) + 1) / (right.size + 2) for some in (right, ~right)
        )
        seen = expected_certificates(correct, wrong, right.size, universe.size, DOUBT, wanted.delta)  # luck left out
        hoped = wanted.worth(correct, wrong, universe.size)
        worth = np.minimum(seen, hoped) + 1e-6 * hoped  # hope decides where pilot runs show nothing
        found += [
            (value, Design(universe, margin, scorer))
            for value, margin in zip(worth.tolist(), margins[0].tolist(), strict=True)
        ]
    return found


def _reaching(lead: FloatArray, fold: IntArray, margins: FloatArray) -> IntArray:
    """How many leads are at least the margin of their fold, for each column of margins."""
    ordered = [np.sort(lead[fold == number]) for number in range(FOLDS)]
    beyond = [some.size - np.searchsorted(some, row) for some, row in zip(ordered, margins, strict=True)]
    return np.asarray(np.sum(beyond, axis=0))


def _suspects(scores: FloatArray, runs: list[IntArray]) -> list[IntArray]:
    """Numbers of records worth a try: all, and of several pairs those told apart best, most different scores first.

    `runs` are the places of the scores of each record's own runs.
    """
    every = np.arange(len(runs))
    if every.size == 2:
        return [every]
    means = np.array([scores[mine].mean(axis=0) for mine in runs])
    own = np.diagonal(means)
    apart = own[:, None] + own - means - means.T
    pairs = np.argwhere(np.triu(np.ones_like(apart), 1) > 0)
    order = np.argsort(-apart[pairs[:, 0], pairs[:, 1]], kind="stable")[:16]
    return [every, *pairs[order]]


def _quantiles(lead: FloatArray) -> FloatArray:
    """Quantiles of the leads above 0, a little lower so that they are reached; infinite if there are none."""
    some = np.sort(np.minimum(lead[lead > 0], CERTAIN))
    if some.size == 0:
        return np.full(MARGINS.size, np.inf)
    return some[np.round(MARGINS * (some.size - 1)).astype(np.int64)] * (1 - 1e-9)


def _sizes(records: int, epsilon: float) -> list[int]:
    """2, 3, 4, 6, 8, 12, ... up to a few times e^epsilon, at most all records."""
    most = min(records, math.ceil(8 * math.exp(min(epsilon, 20.0))) + 2)
    steps = [first << k for k in range(30) for first in (2, 3)]
    return sorted({size for size in steps if size <= most} | {most})
