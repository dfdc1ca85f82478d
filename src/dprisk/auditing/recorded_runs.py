"""The same question of code that ran elsewhere, by what it gave there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dprisk.auditing.certify.claim import Terms, as_claim
from dprisk.auditing.code.outputs import require_outputs
from dprisk.auditing.code.randomness import block_generator
from dprisk.auditing.code.recordings import Recorded
from dprisk.auditing.evidence.layouts import layout_of
from dprisk.auditing.evidence.numbers import mostly_numbers
from dprisk.auditing.evidence.portfolio import Portfolio
from dprisk.auditing.evidence.rules import Past
from dprisk.auditing.evidence.suspects import Wanted, learned_design
from dprisk.auditing.evidence.views import Seen
from dprisk.auditing.report import AuditReport, conclude
from dprisk.auditing.running.plan import Outcome
from dprisk.errors import InputFileError, fail, require
from dprisk.guarantees import Guarantee
from dprisk.types import IntArray

SEVERAL = 6  # runs that two records need at least: half of them are learned from, in three parts
OFTEN = 10  # rows of each record, on average, below which it is asked whether that column is the right one
PARTS = 8  # of the runs that count, about, between which attackers learn


def audit_recorded(runs: Recorded, claim: float | Guarantee, *, alpha: float = 0.01, seed: int = 0) -> AuditReport:
    """Audit code that cannot be run here, by a record and an output for each of its runs (see `recorded`).

    A random half of the runs is learned from. Of the others, runs of suspects drawn at random are used up one by one,
    until none is left of one of them. So each run that is used has a uniform suspect, given those before, whatever was
    recorded; when they end depends on the suspects drawn, so the certificate is the one that holds at any moment.
    Attackers look at them part by part, and learn from each part before the next.
    """
    started = time.perf_counter()
    terms = Terms(as_claim(claim), alpha=alpha, seed=seed)
    if not isinstance(runs, Recorded):
        fail(f"audit_recorded takes runs that were read by `recorded`, as recorded(FILE), not a {type(runs).__name__}.")
    codes, outputs, rng = runs.records, runs.outputs, block_generator(terms.seed, -1)
    require_outputs(outputs)
    _require_several(runs)
    taken_apart = layout_of(outputs)
    require(
        (taken_apart is not None and taken_apart.length == 1)  # one text, and no number of a row beside it
        or mostly_numbers(outputs).dtype.kind in "biuf"
        or len(set(map(repr, outputs.tolist()))) < len(outputs),
        f"No two outputs in {runs.name} are alike, so nothing can be learned from them; leave out columns that are no "
        "part of the output, such as a number for each row.",
        InputFileError,
    )
    order = rng.permutation(codes.size)
    learn, rest = order[: codes.size // 2], order[codes.size // 2 :]
    design = learned_design(outputs[learn], codes[learn], Wanted(rest.size, terms.alpha, terms.claim.delta))
    waiting = [list(rest[codes[rest] == record]) for record in design.universe]
    step = max(1, design.size * min(map(len, waiting)) // PARTS)  # which no suspect that is drawn decides
    drawn: list[tuple[int, int]] = []
    while all(waiting):
        suspect = int(rng.integers(design.size))
        drawn.append((suspect, waiting[suspect].pop()))
    truth, used = np.array(drawn, dtype=np.int64).reshape(-1, 2).T
    past = Past(Seen(outputs[learn]), codes[learn])
    begun = Portfolio.begun(design, runs.labels, terms.claim.epsilon, past, others=(), in_turn=False)
    found = Outcome(begun.nothing, begun, past)
    for start in range(0, used.size, step):
        part = slice(start, start + step)
        found = found.learned(whole=True)
        new = Past(Seen(outputs[used[part]]), codes[used[part]])
        tally = found.tally + found.design.judged(new.seen, truth[part])
        found = replace(found, tally=tally, recent=(*found.recent, new))
    target = {"name": runs.name, "size": runs.size, "recorded": int(codes.size)}
    notes = *runs.notes, *_left_over(runs, rest, design.universe, used.size)
    return conclude(found, target, terms, started, planned=found.tally.runs, anytime=True, notes=notes)


def _require_several(runs: Recorded) -> None:
    """Refuse runs of which no two records have several."""
    times = np.bincount(runs.records, minlength=runs.size)
    require(np.count_nonzero(times) >= 2, "An audit needs recorded runs of at least two records.", InputFileError)
    often, there = np.count_nonzero(times >= SEVERAL), np.count_nonzero(times)
    require(
        often >= 2,
        f"{runs.name} has too few runs to learn from: {there:,} records in {times.sum():,} rows, of which "
        f"{'only one has' if often else 'none has'} {SEVERAL} rows or more; two need as many. Are the columns swapped?",
        InputFileError,
    )


def _left_over(runs: Recorded, rest: IntArray, suspects: IntArray, used: int) -> Iterator[str]:
    """Says so if most of the runs of suspects did not count since one of them has few, or the columns seem swapped."""
    there, kinds = np.unique(runs.records).size, len(set(map(repr, runs.outputs.tolist())))
    if there > OFTEN * kinds and runs.records.size < OFTEN * there:
        held = f"{there:,} records and {kinds:,} outputs"
        yield f"There are {held} in {runs.records.size:,} rows: are the columns swapped?"
    times = np.bincount(runs.records[rest], minlength=runs.size)[suspects]
    if used < times.sum() / 2:
        rare = int(suspects[np.argmin(times)])
        yield (
            f"Only {used:,} of {runs.records.size:,} rows count: all suspects are drawn as often, and record "
            f"{runs.labels[rare]!r} has {np.count_nonzero(runs.records == rare):,} rows; leave it out if it is a slip."
        )
