"""Privacy as an assertion, for anybody's test suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dprisk.auditing.code.reading import Records
from dprisk.auditing.report import AuditReport
from dprisk.auditing.run import audit
from dprisk.errors import DpriskError

PACKAGE = str(Path(__file__).parent)


def assert_private(
    mechanism: Any,
    epsilon: float,
    records: Records = None,
    *,
    delta: float = 0.0,
    runs: int = 20_000,
    alpha: float = 1e-3,
    seed: int = 0,
    **options: Any,
) -> AuditReport:
    """Raise an AssertionError unless the code is found consistent with its promise; otherwise return the report.

    A correct mechanism is called one that breaks its promise with probability at most `alpha`. The audit ends early on
    a gross bug; `runs` says how thorough it is on a good day. So few that no outcome could refute the claim fail too,
    for a test that cannot fail comforts for nothing. Other options, such as `look` and `running`, are those of
    `audit`.

    >>> from dprisk import GRR
    >>> assert_private(GRR(5, epsilon=1.0), epsilon=1.0).verdict
    'consistent with the claim'
    """
    __tracebackhide__ = True
    try:
        report = audit(
            mechanism, (epsilon, delta), records=records, runs=runs, alpha=alpha, seed=seed, stop_early=True, **options
        )
    except DpriskError as problem:
        raise problem.with_traceback(None) from _begun_outside(problem.__cause__)
    if report.verdict != "consistent with the claim":
        raise AssertionError(report.sentence())
    return report


def _begun_outside(problem: BaseException | None) -> BaseException | None:
    """An exception whose traceback begins with the audited code, behind the frames of dprisk that called it.

    Code that failed was called again, while the first failure was in hand: that is no context of the second.
    """
    if problem is None:
        return None
    last = problem
    while last.__context__ is not None and not isinstance(last.__context__, DpriskError):
        last = last.__context__
    last.__context__ = None
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(PACKAGE):
        frames = frames.tb_next
    return problem.with_traceback(frames or problem.__traceback__)
