"""From what the runs of an audit gave to its report: the verdict, and what gives the code away or was looked at."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.code.target import versions
from dprisk.auditing.report import AuditReport
from dprisk.auditing.running.plan import Outcome


def conclude(
    found: Outcome,
    target: dict[str, Any],
    terms: Terms,
    started: float,
    planned: int,
    anytime: bool,
    notes: Iterable[str] = (),
) -> AuditReport:
    """The report on runs that began at `started`, a reading of `time.perf_counter`."""
    report = AuditReport(
        target=target | {"versions": versions()},
        claim=terms.claim,
        tally=found.tally,
        design=found.design,
        alpha=terms.alpha,
        planned=planned,
        anytime=anytime,
        seed=terms.seed,
        seconds=time.perf_counter() - started,
        notes=tuple(notes),
    )
    if report.epsilon_certified > report.claim.epsilon:
        learned = found.learned(whole=True)
        shown = learned.design.witnesses(found.tally, report.claim, report.alpha, learned.past)
        concluded = replace(report, witnesses=shown)
    else:
        how = report.claim, report.alpha, report.anytime, list(found.all_rounds), found.records
        concluded = replace(report, coverage=found.design.coverage(found.tally, *how))
    vars(concluded)["epsilon_certified"] = report.epsilon_certified  # which can take long, and is the same
    return concluded
