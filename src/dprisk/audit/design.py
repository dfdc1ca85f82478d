"""What the auditor does in each run: whom it suspects, and when it answers.

A design is a set U of records and a rule: answer with the record of U that has the largest score if it leads the
second by at least a margin, otherwise abstain. It is chosen before the runs that certify, from the known likelihood
or from pilot runs, so as to make the expected certificate largest (theory, section 4.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.audit.scores import KnownScorer, LearnedScorer, Scorer
from dprisk.audit.statistics import expected_certificate
from dprisk.audit.targets import Target
from dprisk.errors import MechanismError, ParameterError, require
from dprisk.mechanisms import Mechanism, SetProtocol
from dprisk.mechanisms.base import leads
from dprisk.types import AnyArray, FloatArray, IntArray

PILOT_RUNS, FEWEST_PILOT_RUNS, PILOT_CELLS = 4000, 500, 1 << 19  # of a known mechanism, for each size that is tried
PILOT_STEP = 200  # of them at a time
MOST_WORSE = 4  # sizes in a row that are tried in vain
LEARNING_RUNS, MOST_LEARNING_RUNS = 300, 10_000  # of unknown code, for each record
LEARNING_SHARE = 0.1  # of the runs planned, within these limits
DOUBT = 0.01  # chance that what pilot runs promise is too good
PAIR_RUNS, PAIRS = 30, 3  # of a known mechanism, for each record, to find distant pairs, and how many of them
MOST_LEARNED = 64  # records that are looked at in unknown code
MARGINS = np.linspace(0.0, 1.0, 41)
LARGE = 40.0  # an epsilon beyond which more suspects would not help
CERTAIN = 1e6  # a lead that no margin needs to exceed, infinite ones among them


@dataclass(frozen=True)
class Design:
    """Suspects and rule. `universe` are numbers of records, `margin` the lead that it takes to answer."""

    universe: IntArray
    margin: float
    scorer: Scorer

    @property
    def size(self) -> int:
        """The number of suspects."""
        return self.universe.size

    def answers(self, outputs: Any) -> IntArray:
        """For each output the place of the answer in the universe, -1 to abstain."""
        best, lead = self.scorer.leads(outputs, self.universe)
        return np.where(lead >= self.margin, best, -1)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"suspects": self.size, "margin": self.margin, "evidence": self.scorer.describe()}


def choose(
    target: Target, scorer: KnownScorer | None, runs: int, alpha: float, delta: float, rng: np.random.Generator
) -> Design:
    """The design with the largest expected certificate at the claim's delta."""
    if scorer is None:
        return _choose_learned(target, runs, alpha, delta, rng)
    if isinstance(scorer.mechanism, SetProtocol):
        return _choose_for_sets(scorer, scorer.mechanism, runs, alpha, delta, rng)
    return _choose_known(target, scorer, runs, alpha, delta, rng)


def _choose_for_sets(
    scorer: KnownScorer, protocol: SetProtocol, runs: int, alpha: float, delta: float, rng: np.random.Generator
) -> Design:
    """Answer if exactly one suspect is in the reported set: how often that is right and wrong is known."""
    sizes = np.union1d(_sizes(protocol.size, protocol.epsilon), [protocol.size])
    right, wrong = protocol.hit(sizes - 1), (sizes - 1) * protocol.miss(sizes - 1)
    worth = [
        expected_certificate(float(p), float(q), runs, int(size), alpha, delta)
        for p, q, size in zip(right, wrong, sizes, strict=True)
    ]
    size = int(sizes[int(np.argmax(worth))])
    return Design(rng.permutation(protocol.size)[:size], protocol.epsilon * (1 - 1e-9) or 1e-9, scorer)


def _choose_known(
    target: Target, scorer: KnownScorer, runs: int, alpha: float, delta: float, rng: np.random.Generator
) -> Design:
    """Sizes up to a few times e^epsilon and distant pairs are tried, on the mechanism, not on the code under test.

    What an answer is right with is read off the likelihood: for tiny rates of error no pilot would see one. Once a few
    sizes in a row were no better, larger ones are not tried.
    """
    order = rng.permutation(target.size)
    epsilon = _epsilon(scorer.mechanism)
    best, worse, chosen = -1.0, 0, Design(order[:2], 1e-9, scorer)
    sizes = [order[:size] for size in _sizes(target.size, epsilon)]
    for universe in _distant_pairs(scorer, rng) + sizes:
        size = universe.size
        lead, sure = _pilot(scorer, universe, max(FEWEST_PILOT_RUNS, min(PILOT_RUNS, PILOT_CELLS // size)), rng)
        worse += 1
        for margin in _margins(lead):
            answered = lead >= margin
            rates = float((sure * answered).mean()), float(((1 - sure) * answered).mean())
            worth = expected_certificate(*rates, runs, size, alpha, delta)
            if worth > best * (1 + 1e-9):
                best, worse, chosen = worth, 0, Design(universe, float(margin), scorer)
        if worse == MOST_WORSE:
            break
    return chosen


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


def _choose_learned(target: Target, runs: int, alpha: float, delta: float, rng: np.random.Generator) -> Design:
    """Pilot runs of the code itself, the same number for each of the records that are looked at."""
    every = rng.permutation(target.size)[:MOST_LEARNED]
    each = min(MOST_LEARNING_RUNS, max(LEARNING_RUNS, round(LEARNING_SHARE * runs / every.size)))
    pilot = rng.permutation(np.repeat(every, each))
    return learned_design(target.sample(pilot, rng), pilot, runs, alpha, delta)


def learned_design(outputs: AnyArray, records: IntArray, runs: int, alpha: float, delta: float) -> Design:
    """The best design by pilot runs in random order: two thirds to learn scores from, the others to choose by."""
    cut = 2 * records.size // 3
    trial = records[cut:]
    every = np.intersect1d(records[:cut], trial)
    require(every.size >= 2, "There are too few runs to learn from: each record needs several.", ParameterError)
    scorer = LearnedScorer(outputs[:cut], records[:cut])
    scores = scorer.scores(outputs[cut:], every)
    best, chosen = -1.0, Design(every[:2], 1e-9, scorer)
    for places in _suspects(scores, trial, every):
        universe = every[places]
        mine = np.isin(trial, universe)
        guess, lead = leads(scores[mine][:, places])
        right = universe[guess] == trial[mine]
        for margin in _margins(lead):
            answered = lead >= margin
            correct, wrong = int((right & answered).sum()), int((~right & answered).sum())
            rates = (correct + 1) / (mine.sum() + 2), (wrong + 1) / (mine.sum() + 2)
            seen = expected_certificate(*rates, float(mine.sum()), universe.size, DOUBT, delta)  # luck left out
            worth = min(seen, expected_certificate(*rates, runs, universe.size, alpha, delta))
            if worth > best * (1 + 1e-9):
                best, chosen = worth, Design(universe, float(margin), scorer)
    return chosen


def _suspects(scores: FloatArray, trial: IntArray, every: IntArray) -> list[IntArray]:
    """Places in `every` worth a try: all, and the pairs that are told apart best, most different scores first."""
    means = np.array([scores[trial == record].mean(axis=0) for record in every])
    own = np.diagonal(means)
    apart = own[:, None] + own - means - means.T
    pairs = np.argwhere(np.triu(np.ones_like(apart), 1) > 0)
    order = np.argsort(-apart[pairs[:, 0], pairs[:, 1]], kind="stable")[:16]
    return [np.arange(every.size), *pairs[order]]


def _margins(lead: FloatArray) -> FloatArray:
    """Margins to try: quantiles of the leads above 0."""
    some = np.sort(np.minimum(lead[lead > 0], CERTAIN))
    places = np.round(MARGINS * (some.size - 1)).astype(np.int64)
    return np.unique(some[places]) * (1 - 1e-9) if some.size else some


def _sizes(records: int, epsilon: float) -> list[int]:
    """2, 3, 4, 6, 8, 12, ... up to a few times e^epsilon, at most all records."""
    most = min(records, math.ceil(8 * math.exp(min(epsilon, 20.0))) + 2)
    steps = [2 ** (k // 2) * (3 if k % 2 else 2) // (2 if k % 2 else 1) for k in range(60)]
    return sorted({min(records, size) for size in steps if 2 <= size <= most} | {min(records, most)})
