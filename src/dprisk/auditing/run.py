"""The third question: does this code keep its promise?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from dprisk.auditing.certify.claim import Terms, as_claim
from dprisk.auditing.code.reading import Records, read
from dprisk.auditing.code.target import Target, is_built_in
from dprisk.auditing.evidence.choosing import Look, WatchPilot, choose
from dprisk.auditing.report import AuditReport, conclude
from dprisk.auditing.running.identity import identity
from dprisk.auditing.running.plan import Outcome, Watch, carry_out
from dprisk.auditing.running.store import Store
from dprisk.auditing.running.workers import Budget, Running
from dprisk.errors import MechanismError, ParameterError, TooLargeError, require
from dprisk.guarantees import ApproxDP, Guarantee
from dprisk.threat.threat import Threat

SLACK = 1e-6  # of what is known of a mechanism, which is computed in floats


def audit(
    subject: Any,
    claim: float | tuple[float, float] | Guarantee | None = None,
    *,
    records: Records = None,
    threat: Threat | None = None,
    runs: int = 100_000,
    alpha: float = 0.01,
    seed: int = 0,
    stop_early: bool = False,
    look: Look = Look(),  # noqa: B008, a frozen value
    running: Running = Running(),  # noqa: B008
    watch: Watch | None = None,
    watch_pilot: WatchPilot | None = None,
) -> AuditReport:
    """Put the claim that some code is epsilon-DP (or (epsilon, delta)-DP) to the test.

    `subject` is a mechanism of this package, a function of one record, "package.module:function", an object of another
    library, or a target that `as_target` or `central` made of one, with options of its own; `records` are the possible
    records, or how many there are, or for a function of a whole input `Neighbours`. The claim is an epsilon, a pair
    (epsilon, delta) or a guarantee, by default that of the mechanism; of a guarantee that is not (epsilon, delta)-DP,
    such as Gaussian DP, a consequence is tested (see `consequence`). With `stop_early` the audit ends when the claim is
    refuted, and its certificate is one that allows that.

    Without a `threat` the target of a run is one of a few suspects, and the attacker may abstain: the sharpest test of
    an epsilon. With one, the audit measures what that attacker gains, on records drawn from its prior, and certifies
    the epsilon that so much takes.

    `Look` says what the attacker goes by, `Running` who runs the code and how; `watch` is told of the tally so far and
    of the runs planned, after each block, and `watch_pilot` of the pilot runs that come before. The same seed gives the
    same report for any number of workers and after any interruption; Ctrl-C raises `AuditInterrupted`, which has the
    report so far, unless there is none yet.

    >>> from dprisk import GRR
    >>> audit(GRR(10, epsilon=1.0), runs=20_000).verdict
    'consistent with the claim'
    >>> audit(GRR(10, epsilon=1.5), claim=1.0, runs=20_000).verdict
    'violated'
    """
    started, budget = time.perf_counter(), Budget(getattr(running, "seconds", None))
    require(isinstance(look, Look), f"look is a Look, as in Look(low_bits=False), not {look!r}")
    require(isinstance(running, Running), f"running is a Running, as in Running(n_jobs=2), not {running!r}")
    require(watch is None or callable(watch), f"watch is a function of the tally so far and the runs, not {watch!r}")
    with _in_time(budget), budget.kept():
        target = read(subject, records, running.timeout)
    promise = as_claim(target.claim if claim is None else claim, target.mechanism, target.relation)
    terms = Terms(promise, runs, alpha, seed, stop_early, running.seconds is not None)
    with (
        nullcontext()
        if running.store is None
        else closing(Store(running.store, identity(target, terms, look, threat))) as store
    ):
        with _in_time(budget), budget.kept():
            setup = choose(target, terms, threat, look, store, watch_pilot)
        found = carry_out(setup, terms, running, store, watch, budget)
    ended = budget.is_over and found.tally.runs < terms.runs
    report = conclude(
        found,
        target.describe(),
        terms,
        started,
        planned=found.tally.runs if ended else terms.runs,
        anytime=terms.anytime or found.interrupted,
        notes=_notes(found, terms, running, ended),
        known_epsilon=None if claim is None else _larger_epsilon(target, terms.claim),
    )
    if found.interrupted:
        raise AuditInterrupted(report, running.store)
    return report


@contextmanager
def _in_time(budget: Budget) -> Iterator[None]:
    """Says so where the time is up before the first run that counts."""
    try:
        yield
    except KeyboardInterrupt:
        if not budget.is_over:
            raise
        told = f"{budget.seconds:g} seconds were up before the first run that counts, while the code was tried."
        more = "Give the audit more time, or fewer records, or a store, from which the same audit goes on."
        raise ParameterError(f"{told} {more}") from None


def _larger_epsilon(target: Target, claim: ApproxDP) -> float | None:
    """The epsilon of a mechanism of dprisk by its formula, if that is above the claim; None otherwise, or unknown."""
    mechanism = target.mechanism
    if mechanism is None or not is_built_in(mechanism):
        return None
    with suppress(MechanismError, TooLargeError):
        if claim.delta == 0:
            return mechanism.epsilon if mechanism.epsilon > claim.epsilon * (1 + SLACK) else None
        if mechanism.guarantee_is_exact and mechanism.delta_at(claim.epsilon) > claim.delta * (1 + SLACK):
            return mechanism.epsilon_at(claim.delta)
    return None


def _notes(found: Outcome, terms: Terms, running: Running, ended: bool) -> Iterator[str]:
    if ended:
        yield f"The time of {running.seconds:g} s was up after {found.tally.runs:,} of {terms.runs:,} runs."
    if found.deaths:
        yield (
            f"Workers died {found.deaths} times, and their blocks were run again: if the code ended its process, "
            "whoever sees that may learn from it, and this audit did not look."
        )


class AuditInterrupted(KeyboardInterrupt):
    """Somebody stopped the audit; `report` is on the runs until then, with a certificate that allows stopping.

    Who stops an audit because of what it shows, but reads its last report if it shows nothing, errs with probability at
    most 2 alpha: alpha for either certificate. `stop_early` keeps to alpha. `advice` says how to go on.
    """

    def __init__(self, report: AuditReport, store: str | Path | None = None) -> None:
        self.report = report
        self.advice = (
            "With a store, a file for finished blocks, the same audit would go on where it stopped."
            if store is None
            else f"Finished blocks are in {store}: the same audit with the same store goes on from them."
        )
        super().__init__(f"{report.sentence()} {self.advice}")
