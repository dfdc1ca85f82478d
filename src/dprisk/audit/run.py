"""The third question: does this code keep its promise?"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.audit import statistics
from dprisk.audit.blocks import Plan, Store, Watch, counts_in_order, generator
from dprisk.audit.design import Design, choose, learned_design
from dprisk.audit.outputs import Recorded
from dprisk.audit.report import AuditReport
from dprisk.audit.scores import KnownScorer, Scorer
from dprisk.audit.statistics import Counts
from dprisk.audit.targets import Target, as_target
from dprisk.errors import ParameterError, as_number, as_whole, fail, require
from dprisk.guarantees import ApproxDP, PureDP
from dprisk.mechanisms import Mechanism

BLOCK = 10_000  # runs of a known mechanism in a block
CALLS = 1000  # runs of unknown code in a block
LOOKS = 100  # the same if the audit may end at each block
HELD = 1 << 21  # bytes of outputs of a known mechanism that are held at once, few enough to stay in the cache


def audit(
    subject: Any,
    claim: float | ApproxDP | PureDP | None = None,
    *,
    records: Sequence[Any] | None = None,
    runs: int = 100_000,
    alpha: float = 0.01,
    seed: int = 0,
    family: Mechanism | None = None,
    scorer: Scorer | None = None,
    stop_early: bool = False,
    n_jobs: int = 1,
    executor: Executor | None = None,
    store: str | Path | None = None,
    batch: bool = False,
    timeout: float | None = None,
    watch: Watch | None = None,
) -> AuditReport:
    """Put the claim that some code is epsilon-DP (or (epsilon, delta)-DP) to the test.

    `subject` is a mechanism of this package, a function of one record (or of many, with `batch`),
    "package.module:function", or an object of another library (see `as_target`); `records` are the possible records.
    The claim is an epsilon or a guarantee, by default that of the mechanism. `family` is a mechanism that the code
    claims to be: its likelihood then decides, whatever the code does. With `stop_early` the audit ends when the claim
    is refuted, and its certificate is one that allows that. The same seed gives the same report for any number of
    workers and after any interruption.

    >>> from dprisk import GRR
    >>> audit(GRR(10, epsilon=1.0), runs=20_000).verdict
    'consistent with the claim'
    >>> audit(GRR(10, epsilon=1.5), claim=1.0, runs=20_000).verdict
    'violated'
    """
    started = time.perf_counter()
    target = as_target(subject, records, batch=batch, timeout=timeout)
    require(target.size >= 2, "An audit needs at least two possible records.", ParameterError)
    promise = _claim(target.claim if claim is None else claim, subject)
    runs, seed, n_jobs = as_whole("runs", runs), as_whole("seed", seed, least=0), as_whole("n_jobs", n_jobs)
    alpha = as_number("alpha", alpha)
    require(0 < alpha < 1, f"alpha must lie strictly between 0 and 1, got {alpha:g}")
    known = subject if isinstance(subject, Mechanism) else family
    design = _design(target, known, scorer, runs, alpha, seed)
    length = BLOCK if isinstance(subject, Mechanism) else LOOKS if stop_early else CALLS
    plan = Plan(target, design, runs, length, seed, _step(subject, length))
    identity = {"target": target.describe(), "design": design.to_dict(), "block": plan.block, "seed": seed}
    record = Store(store, identity) if store is not None else None
    counts = Counts(0, 0, 0, design.size)
    try:
        for block in counts_in_order(plan, executor, n_jobs, record):
            counts = counts + block
            if watch is not None:
                watch(counts, runs)
            if stop_early and statistics.anytime_epsilon(counts, alpha, promise.delta) > promise.epsilon:
                break
    finally:
        if record is not None:
            record.close()
    told = target.describe() | {"versions": _versions()}
    return AuditReport(told, promise, counts, design, alpha, runs, stop_early, seed, time.perf_counter() - started)


def _design(
    target: Target, known: Mechanism | None, scorer: Scorer | None, runs: int, alpha: float, seed: int
) -> Design:
    if scorer is not None:
        return Design(np.arange(target.size), 1e-9, scorer)
    if known is not None:
        require(
            known.size == target.size,
            f"The family has {known.size} records, the code under test {target.size}; they must be the same.",
            ParameterError,
        )
    return choose(target, KnownScorer(known) if known is not None else None, runs, alpha, generator(seed, -1))


def _step(subject: Any, block: int) -> int:
    """How many runs of a block to make at once: all of code that is called, of a mechanism what fits."""
    if not isinstance(subject, Mechanism):
        return block
    return max(1, min(block, HELD // np.asarray(subject.sample(np.array([0]), np.random.default_rng(0))).nbytes))


def _claim(claim: Any, subject: Any) -> ApproxDP:
    if claim is None:
        require(isinstance(subject, Mechanism), "What does the code claim? Give an epsilon as `claim`.", ParameterError)
        return ApproxDP(subject.epsilon, 0.0)
    if isinstance(claim, ApproxDP):
        claim.require_replace_one()
        return claim
    if isinstance(claim, int | float | np.number):
        return ApproxDP(as_number("The claimed epsilon", claim), 0.0)
    return fail(f"A claim is an epsilon, PureDP or ApproxDP, not {claim!r}.", ParameterError)


def _versions() -> dict[str, str]:
    from dprisk import __version__

    return {"dprisk": __version__, "numpy": np.__version__, "python": platform.python_version()}


def audit_recorded(
    runs: Recorded, claim: float | ApproxDP | PureDP, *, alpha: float = 0.01, seed: int = 0
) -> AuditReport:
    """Audit code that cannot be run here, by a record and an output for each of its runs (see `recorded`).

    A random half of the runs is learned from. Of the others, runs of suspects drawn at random are used up one by one,
    until those of one suspect are used up: so they are independent, with a uniform suspect, whatever was recorded.
    """
    started = time.perf_counter()
    promise, rng = _claim(claim, None), generator(as_whole("seed", seed, least=0), -1)
    codes, outputs = runs.records, runs.outputs
    require(np.unique(codes).size >= 2, "An audit needs recorded runs of at least two records.", ParameterError)
    order = rng.permutation(codes.size)
    learn, rest = order[: codes.size // 2], order[codes.size // 2 :]
    require(np.unique(codes[learn]).size >= 2, "There are too few recorded runs to learn from.", ParameterError)
    design = learned_design(outputs[learn], codes[learn], runs.size, rest.size, alpha)
    waiting = [list(rest[codes[rest] == record]) for record in design.universe]
    drawn: list[tuple[int, int]] = []
    while True:
        suspect = int(rng.integers(design.size))
        if not waiting[suspect]:
            break
        drawn.append((suspect, waiting[suspect].pop()))
    truth, used = np.array(drawn, dtype=np.int64).reshape(-1, 2).T
    answers = design.answers(outputs[used]) if used.size else truth
    counts = Counts(truth.size, int((answers >= 0).sum()), int((answers == truth).sum()), design.size)
    told = {"name": runs.name, "size": runs.size, "recorded": int(runs.records.size), "versions": _versions()}
    seconds = time.perf_counter() - started
    return AuditReport(told, promise, counts, design, alpha, counts.runs, False, seed, seconds)
