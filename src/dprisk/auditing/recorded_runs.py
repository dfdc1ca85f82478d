"""The same question of code that ran elsewhere, by what it gave there."""

from __future__ import annotations

import time
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

PARTS = 8  # of the runs that count, between which attackers learn


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
    require(np.unique(codes).size >= 2, "An audit needs recorded runs of at least two records.")
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
    drawn: list[tuple[int, int]] = []
    while all(waiting):
        suspect = int(rng.integers(design.size))
        drawn.append((suspect, waiting[suspect].pop()))
    truth, used = np.array(drawn, dtype=np.int64).reshape(-1, 2).T
    past = Past(Seen(outputs[learn]), codes[learn])
    begun = Portfolio.begun(design, runs.labels, terms.claim.epsilon, past, others=(), in_turn=False)
    found = Outcome(begun.nothing, begun, past)
    for part in np.array_split(np.arange(used.size), PARTS) if used.size else ():
        found = found.learned(whole=True)
        new = Past(Seen(outputs[used[part]]), codes[used[part]])
        tally = found.tally + found.design.judged(new.seen, truth[part])
        found = replace(found, tally=tally, recent=(*found.recent, new))
    target = {"name": runs.name, "size": runs.size, "recorded": int(codes.size)}
    return conclude(found, target, terms, started, planned=found.tally.runs, anytime=True)
