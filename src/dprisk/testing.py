"""Privacy as an assertion, for anybody's test suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dprisk.auditing.certify.anytime import anytime_epsilon
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.report import AuditReport
from dprisk.auditing.run import audit
from dprisk.errors import fail
from dprisk.guarantees import ApproxDP


def assert_private(
    mechanism: Any,
    epsilon: float,
    records: Sequence[Any] | int | None = None,
    *,
    delta: float = 0.0,
    runs: int = 20_000,
    alpha: float = 1e-3,
    seed: int = 0,
    **options: Any,
) -> AuditReport:
    """Raise an AssertionError if the code is found to break its promise; otherwise return the report.

    A correct mechanism fails with probability at most `alpha`. The audit ends early on a gross bug; `runs` says how
    thorough it is on a good day; so few that no outcome could refute the claim are refused. Other options, such as
    `look` and `running`, are those of `audit`.

    >>> from dprisk import GRR
    >>> assert_private(GRR(5, epsilon=1.0), epsilon=1.0).verdict
    'consistent with the claim'
    """
    __tracebackhide__ = True
    claim = ApproxDP(epsilon, delta)
    report = audit(mechanism, claim, records=records, runs=runs, alpha=alpha, seed=seed, stop_early=True, **options)
    if report.verdict == "violated":
        raise AssertionError(report.sentence())
    best = Counts(report.planned, report.planned, report.planned, report.target["size"])
    if report.verdict == "undecided" and anytime_epsilon(best, alpha, delta) <= epsilon:
        told = (
            f"{report.planned} runs cannot refute epsilon {claim.epsilon:g} at alpha {alpha:g}, whatever the code does"
        )
        fail(f"{told}: a test that cannot fail. Give more runs.")
    return report
