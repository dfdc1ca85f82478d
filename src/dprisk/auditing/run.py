"""The third question: does this code keep its promise?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

from dprisk.auditing.certify.claim import Terms, as_claim
from dprisk.auditing.code.reading import read
from dprisk.auditing.code.target import versions
from dprisk.auditing.evidence.choosing import Look, choose
from dprisk.auditing.report import AuditReport
from dprisk.auditing.running.plan import Watch, carry_out
from dprisk.auditing.running.store import Store, identity
from dprisk.auditing.running.workers import Running
from dprisk.errors import require
from dprisk.guarantees import Guarantee
from dprisk.threat.threat import Threat


def audit(
    subject: Any,
    claim: float | tuple[float, float] | Guarantee | None = None,
    *,
    records: Sequence[Any] | int | None = None,
    threat: Threat | None = None,
    runs: int = 100_000,
    alpha: float = 0.01,
    seed: int = 0,
    stop_early: bool = False,
    look: Look = Look(),  # noqa: B008, a frozen value
    running: Running = Running(),  # noqa: B008
    watch: Watch | None = None,
) -> AuditReport:
    """Put the claim that some code is epsilon-DP (or (epsilon, delta)-DP) to the test.

    `subject` is a mechanism of this package, a function of one record, "package.module:function", an object of another
    library, or a target that `as_target` or `central` made of one, with options of its own; `records` are the possible
    records, or how many there are. The claim is an epsilon, a pair (epsilon, delta) or a guarantee, by
    default that of the mechanism; of a guarantee that is not (epsilon, delta)-DP, such as Gaussian DP, a consequence is
    tested (see `consequence`). With `stop_early` the audit ends when the claim is refuted, and its certificate is one that allows that.

    Without a `threat` the target of a run is one of a few suspects, and the attacker may abstain: the sharpest test of
    an epsilon. With one, the audit measures what that attacker gains, on records drawn from its prior, and certifies
    the epsilon that so much takes.

    `Look` says what the attacker goes by, `Running` who runs the code and how; `watch` is told of the tally so far and
    of the runs planned, after each block. The same seed gives the same report for any number of workers and after any
    interruption; Ctrl-C raises `AuditInterrupted`, which has the report so far.

    >>> from dprisk import GRR
    >>> audit(GRR(10, epsilon=1.0), runs=20_000).verdict
    'consistent with the claim'
    >>> audit(GRR(10, epsilon=1.5), claim=1.0, runs=20_000).verdict
    'violated'
    """
    started = time.perf_counter()
    require(isinstance(look, Look), f"look is a Look, as in Look(designs=2), not {look!r}")
    require(isinstance(running, Running), f"running is a Running, as in Running(n_jobs=2), not {running!r}")
    require(watch is None or callable(watch), f"watch is a function of the tally so far and the runs, not {watch!r}")
    target = read(subject, records, running.timeout)
    promise = as_claim(target.claim if claim is None else claim, target.mechanism, target.relation)
    terms = Terms(promise, runs, alpha, seed, stop_early)
    with (
        nullcontext()
        if running.store is None
        else closing(Store(running.store, identity(target, terms, look))) as store
    ):
        setup = choose(target, terms, threat, look, store)
        found = carry_out(setup, terms, running, store, watch)
    report = AuditReport(
        target=target.describe() | {"versions": versions()},
        claim=terms.claim,
        tally=found.tally,
        design=found.design,
        alpha=terms.alpha,
        planned=terms.runs,
        anytime=stop_early or found.interrupted,
        seed=terms.seed,
        seconds=time.perf_counter() - started,
    )
    seen, design = found.everything, found.design
    if report.verdict == "violated":
        learned = found.learned()
        witnesses = learned.design.witnesses(found.tally, terms.claim, terms.alpha, seen)
        report = replace(report, witnesses=witnesses)
    else:
        how = terms.claim, terms.alpha, report.anytime, list(found.all_rounds)
        report = replace(report, coverage=design.coverage(found.tally, *how, seen))
    if found.interrupted:
        raise AuditInterrupted(report)
    return report


class AuditInterrupted(KeyboardInterrupt):
    """Somebody stopped the audit; `report` is on the runs until then, with a certificate that allows stopping.

    Who stops an audit because of what it shows, but reads its last report if it shows nothing, errs with probability at
    most 2 alpha: alpha for either certificate. `stop_early` keeps to alpha.
    """

    def __init__(self, report: AuditReport) -> None:
        super().__init__(report.sentence())
        self.report = report
