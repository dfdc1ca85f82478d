"""Where to look: of many records, or pairs of neighbouring inputs, those that code tells apart best in few runs.

Successive halving: each stage spends the same number of runs on the candidates that are left, and the half whose
outputs differ more goes on. What is chosen depends on these runs alone, and they certify nothing, so a bad choice makes
an audit weak, never wrong (theory, section 4.4).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dprisk.auditing.code.target import Target
from dprisk.auditing.evidence.fitted import Bins, coarse
from dprisk.auditing.evidence.layouts import layout_of
from dprisk.auditing.evidence.rules import Past, together
from dprisk.auditing.evidence.views import Form, Seen, Value
from dprisk.types import FloatArray, IntArray

MOST_RECORDS, MOST_PAIRS = 64, 12  # that are left to be learned from
STAGE = 0.08  # of the runs planned, for each stage
FEWEST = 4  # runs of each record in the first stage
BINS, MOST_COLUMNS = 12, 8
LUCK = 1e-3  # chance that one ratio is taken to be too large
RECENT = 10_000  # runs by which two records are chosen
MOST_TOKENS, OFTEN = 256, 5  # ways an output looks that are counted, each seen so often

Score = Callable[[Past, IntArray], FloatArray]  # how different the outputs of each candidate are


def screened(target: Target, runs: int, rng: np.random.Generator) -> tuple[IntArray, Past | None]:
    """The records or pairs that are left, those that differ most first, and the runs by which they were chosen."""
    if target.pairs is None:
        return halved(target, np.arange(target.size)[:, None], MOST_RECORDS, unlike_the_rest, runs, rng)
    return halved(target, target.pairs, MOST_PAIRS, unlike_each_other, runs, rng)


def halved(
    target: Target, candidates: IntArray, most: int, score: Score, runs: int, rng: np.random.Generator
) -> tuple[IntArray, Past | None]:
    """Candidates, a row of record numbers each, halved until there are few; of too many for the runs some at random."""
    if len(candidates) <= most:
        return candidates[rng.permutation(len(candidates))], None
    stage, past = max(FEWEST * 2 * most, round(STAGE * runs)), None
    left = candidates[rng.permutation(len(candidates))[: stage // (FEWEST * candidates.shape[1])]]
    while len(left) > most:
        records = np.unique(left)
        drawn = rng.permutation(np.repeat(records, max(1, stage // records.size)))
        past = together([past, Past(Seen(target.sample(drawn, rng)), drawn)])
        order = np.argsort(-score(past.of(records), left), kind="stable")
        left = left[order[: max(most, len(left) // 2)]]
    return left, past


def unlike_each_other(past: Past, pairs: IntArray) -> FloatArray:
    """How clearly the outputs of two inputs differ, by the way of looking that shows it best."""
    return _largest([_surprise(table[pairs[:, 0]], table[pairs[:, 1]]) for table in _tables(past)])


def unlike_the_rest(past: Past, records: IntArray) -> FloatArray:
    """How clearly the outputs of one record differ from those of all others."""
    found = []
    for table in _tables(past):
        own = table[records[:, 0]]
        found.append(_surprise(own, own.sum(axis=0) - own))
    return _largest(found)


def _largest(found: list[FloatArray]) -> FloatArray:
    return np.asarray(np.max(found, axis=0))


def clearest_ratio(past: Past, pair: IntArray) -> float:
    """The largest epsilon of a pair of inputs that one way an output looks speaks for, luck left out.

    A lower bound on the odds of the one input that gives such outputs more often, for as many runs of both.
    """
    from scipy.special import betaincinv, logit

    best = 0.0
    for table in _tables(past):
        one, two = table[pair[0]], table[pair[1]]
        top, rest = np.maximum(one, two), np.minimum(one, two)
        some = top > 0
        best = max(best, float(logit(betaincinv(top[some], rest[some] + 1, LUCK)).max()))
    return best


def clearest_pair(past: Past, records: IntArray) -> tuple[IntArray, float]:
    """The two of these records that one way an output looks tells apart best, as recent runs show it, and how well.

    That is the share of the one record among both where an output looks so, luck left out.
    """
    from scipy.special import betaincinv

    recent = past.recent(RECENT).evenly(records)
    best, pair = 0.0, records[:2]
    for table in (whole[records] for whole in _tables(recent, int(records.max()) + 1)):
        rates = betaincinv(np.maximum(table.max(axis=0), 0.5), table.min(axis=0) + 1, LUCK)
        token = int(np.argmax(rates))
        if rates[token] > best:
            order = np.argsort(table[:, token], kind="stable")
            best, pair = float(rates[token]), records[order[[-1, 0]]]  # never the same, also where all are equal
    return pair, best


def _surprise(one: FloatArray, two: FloatArray) -> FloatArray:
    """The likelihood ratio statistic of two rows of counts, in standard deviations from what chance gives."""
    both = one + two
    share = one.sum(axis=1, keepdims=True) / np.maximum(1, both.sum(axis=1, keepdims=True))
    statistic = np.zeros(len(one))
    for part, expected in ((one, both * share), (two, both * (1 - share))):
        ratio = np.divide(part, expected, out=np.ones_like(part), where=(part > 0) & (expected > 0))
        statistic += 2 * (part * np.log(ratio)).sum(axis=1)
    freedom = np.maximum(1, (both > 0).sum(axis=1) - 1)
    return np.asarray((statistic - freedom) / np.sqrt(2 * freedom))


def _tables(past: Past, size: int = 0) -> list[FloatArray]:
    """For each way of looking at outputs, how often each record gave what looks alike; a row a record."""
    seen = past.seen
    looks = [seen.tokens(Value()), seen.tokens(Form())]
    if (numbers := seen.numbers) is not None:
        looks.append(Bins(numbers, BINS).places(numbers))
    if layout := layout_of(seen.outputs):
        looks += [Bins(column, BINS).places(column) for column in seen.columns(layout)[:MOST_COLUMNS]]
    if (view := coarse(seen, BINS)) is not None:
        looks.append(view.tokens(seen))
    size = max(size, int(past.records.max()) + 1)
    return [_counts(tokens, past.records, size) for tokens in looks]


def _counts(tokens: IntArray, records: IntArray, size: int) -> FloatArray:
    """A row for each record: how often it gave each of the frequent tokens, and any other."""
    known, place, times = np.unique(tokens, return_inverse=True, return_counts=True)
    order = np.argsort(-times, kind="stable")[:MOST_TOKENS]
    often = order[times[order] >= OFTEN]
    column = np.full(known.size, often.size)
    column[often] = np.arange(often.size)
    table = np.zeros((size, often.size + 1))
    np.add.at(table, (records, column[place.ravel()]), 1.0)
    return table


def busiest(past: Past, candidates: IntArray, most: int) -> IntArray:
    """The candidates of which most runs were made, in their order."""
    times = np.bincount(past.records, minlength=int(candidates.max()) + 1)[candidates].min(axis=1)
    places = np.sort(np.argsort(-times, kind="stable")[:most])
    return np.asarray(candidates[places[times[places] > 0]])
