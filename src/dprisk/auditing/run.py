"""The third question: does this code keep its promise?"""

from __future__ import annotations

import hashlib
import inspect
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.attacks.estimate import Guesser
from dprisk.auditing.certify.consequence import consequence
from dprisk.auditing.certify.experiment import Experiment
from dprisk.auditing.certify.statistics import Counts
from dprisk.auditing.code.outputs import Recorded
from dprisk.auditing.code.randomness import kept
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.targets import CodeTarget, MechanismTarget, Target, as_target
from dprisk.auditing.code.trials import require_own_noise, tried
from dprisk.auditing.evidence.design import Design, choose_several, learned_designs
from dprisk.auditing.evidence.guessing import choose_guessing
from dprisk.auditing.evidence.learned import EVERY, Classifier, Learner
from dprisk.auditing.evidence.restriction import restricted
from dprisk.auditing.evidence.scores import GuessScorer, KnownScorer, Scorer
from dprisk.auditing.evidence.several import Several
from dprisk.auditing.report import AuditReport
from dprisk.auditing.running.blocks import Plan, Store, Watch, generator, tallies_in_order
from dprisk.errors import InputFileError, ParameterError, ThreatError, as_number, as_whole, fail, require
from dprisk.guarantees import ApproxDP, Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.threat.threat import Threat

BLOCK = 10_000  # runs of a known mechanism in a block
CALLS = 1000  # runs of unknown code in a block at least, and those whose outputs are held at once
MOST_CALLS = 10_000  # the same at most
PARTS = 20  # blocks to share out and to record, unless they would be smaller or larger than that
LOOKS = 100  # runs of unknown code in a block if the audit may end at each
EARLY = 20_000  # runs that an audit which may end early is designed for, so that its pilot is short
HELD = 1 << 21  # bytes of outputs of a known mechanism that are held at once, few enough to stay in the cache


def audit(
    subject: Any,
    claim: float | Guarantee | None = None,
    *,
    threat: Threat | None = None,
    records: Sequence[Any] | int | None = None,
    runs: int = 100_000,
    alpha: float = 0.01,
    seed: int = 0,
    family: Mechanism | None = None,
    scorer: Scorer | Learner | Guesser | Any = None,
    designs: int = 1,
    stop_early: bool = False,
    n_jobs: int = 1,
    executor: Executor | None = None,
    store: str | Path | None = None,
    batch: bool = False,
    parameters: Mapping[str, Any] | None = None,
    post: Callable[[Any], Any] | None = None,
    timeout: float | None = None,
    watch: Watch | None = None,
) -> AuditReport:
    """Put the claim that some code is epsilon-DP (or (epsilon, delta)-DP) to the test.

    `subject` is a mechanism of this package, a function of one record (or of many, with `batch`),
    "package.module:function", or an object of another library (see `as_target`); `records` are the possible records, or
    how many there are. The claim is an epsilon or a guarantee, by default that of the mechanism; of a guarantee that is
    not (epsilon, delta)-DP, such as Gaussian DP, a consequence is tested (see `consequence`). `family` is a
    mechanism that the code claims to be: its likelihood then decides, whatever the code does. With `stop_early` the
    audit ends when the claim is refuted, and its certificate is one that allows that.

    Without a `threat` the target of a run is one of a few suspects, and the attacker may abstain: the sharpest test of
    an epsilon. With one, the audit measures what that attacker gains, on records drawn from its prior, and certifies
    the epsilon that so much takes.

    `scorer` is another attack. A `Scorer`, or anything that guesses, is taken as it is. A `Learner`, or a classifier
    with `fit` and `predict_proba`, is trained on pilot runs first.

    With several `designs` that many sets of suspects share the runs and alpha, for code whose pilot runs cannot tell
    where it leaks: weaker where they can, stronger where they point at the wrong records.

    The same seed gives the same report for any number of workers and after any interruption; Ctrl-C raises
    `AuditInterrupted`, which has the report so far. `batch`, `parameters`, `post` and `timeout` are those of
    `as_target`.

    >>> from dprisk import GRR
    >>> audit(GRR(10, epsilon=1.0), runs=20_000).verdict
    'consistent with the claim'
    >>> audit(GRR(10, epsilon=1.5), claim=1.0, runs=20_000).verdict
    'violated'
    """
    started = time.perf_counter()
    target = as_target(subject, records, batch=batch, parameters=parameters, post=post, timeout=timeout)
    require(target.size >= 2, "An audit needs at least two possible records.", ParameterError)
    target = tried(target)
    require_own_noise(target)
    own = target.mechanism if isinstance(target, MechanismTarget) else None
    promise = _claim(target.claim if claim is None else claim, own)
    runs, seed, n_jobs = as_whole("runs", runs), as_whole("seed", seed, least=0), as_whole("n_jobs", n_jobs)
    alpha = as_number("alpha", alpha)
    require(0 < alpha < 1, f"alpha must lie strictly between 0 and 1, got {alpha:g}")
    require(
        family is None or isinstance(family, Mechanism),
        f"family is a mechanism, as in Laplace(2, epsilon=0.5), not {family!r}",
        ParameterError,
    )
    require(
        store is None or isinstance(store, str | Path),
        f"store is the name of a file, as in 'audit.sqlite', not {store!r}",
        ParameterError,
    )
    known = own if family is None else family
    require(
        executor is None or hasattr(executor, "submit"),
        f"executor must be a concurrent.futures.Executor, got {executor!r}",
        ParameterError,
    )
    evidence, learners = _evidence(target, known, scorer)
    require(
        store is None or target.reproducible or evidence is not None,
        f"{target.name} cannot be seeded: its pilot runs, and with them the audit, would be others when it goes "
        "on from a store. Give the mechanism that it claims to be as `family`, or leave out the store.",
        ParameterError,
    )
    planned, rng = min(runs, EARLY) if stop_early else runs, generator(seed, -1)
    designs = as_whole("designs", designs)
    design: Experiment[Any]
    if threat is None:
        design = _design(target, evidence, planned, alpha, promise.delta, rng, designs, learners)
    else:
        require(designs == 1, "Under a threat there is one attack: leave out `designs`.", ParameterError)
        _require_same_records(target, threat)
        design = choose_guessing(target, threat, evidence, planned, alpha, rng, learners)
    block = _block(target, runs, stop_early)
    run, judged = restricted(target, design)
    plan = Plan(run, judged, runs, block, seed, _step(run, block))
    record = None if store is None else Store(store, _identity(target, design, plan, alpha, stop_early))
    tally = design.nothing

    def report(anytime: bool) -> AuditReport:
        told, seconds = target.describe() | {"versions": _versions()}, time.perf_counter() - started
        return AuditReport(told, promise, tally, design, alpha, runs, anytime, seed, seconds)

    try:
        with kept:
            for more in tallies_in_order(plan, executor, n_jobs, record):
                tally = tally + more
                if watch is not None:
                    watch(tally, runs)
                if stop_early and design.refuted(tally, promise, alpha):
                    break
    except KeyboardInterrupt:
        raise AuditInterrupted(report(anytime=True)) from None
    finally:
        if record is not None:
            record.close()
    return report(anytime=stop_early)


class AuditInterrupted(KeyboardInterrupt):
    """Somebody stopped the audit; `report` is on the runs until then, with a certificate that allows stopping.

    Who stops an audit because of what it shows, but reads its last report if it shows nothing, errs with probability at
    most 2 alpha: alpha for either certificate. `stop_early` keeps to alpha.
    """

    def __init__(self, report: AuditReport) -> None:
        super().__init__(report.sentence())
        self.report = report


def _identity(target: Target, design: Experiment[Any], plan: Plan, alpha: float, stop_early: bool) -> dict[str, Any]:
    """What must be the same to go on from recorded blocks.

    Runs and alpha too: the design depends on them, and who adds runs after a look at the outcome needs `stop_early`.
    """
    code, post = (getattr(target, part, None) for part in ("code", "post"))
    sources = [_source(part) for part in (code, getattr(code, "function", None), post)]
    given = (target.records, getattr(target, "parameters", None), design.key())
    long = repr((sources, given))
    return {
        "target": target.describe(),
        "code, records and suspects": hashlib.sha256(long.encode()).hexdigest(),
        "design": design.to_dict(),
        "runs": plan.runs,
        "alpha": alpha,
        "stop early": stop_early,
        "block": plan.block,
        "seed": plan.seed,
    }


def _source(code: Any) -> str:
    """The text of a function, as far as it is written in a file; otherwise its name."""
    try:
        return inspect.getsource(code.load() if isinstance(code, Reference) else code)
    except (OSError, TypeError):
        return str(getattr(code, "__qualname__", type(code).__qualname__))


def _evidence(target: Target, known: Mechanism | None, scorer: Any) -> tuple[Scorer | None, Sequence[Learner]]:
    """What the attacker goes by: a scorer, or None and the learners to try in the pilot."""
    if isinstance(scorer, Scorer):
        return scorer, ()
    if isinstance(scorer, Learner):
        return None, (scorer,)
    if hasattr(scorer, "predict_proba") and not isinstance(scorer, type):
        return None, (Classifier(scorer),)
    if scorer is not None:
        require(
            hasattr(scorer, "guess") and not isinstance(scorer, type),
            "scorer must be a Scorer, a Learner, a classifier with fit and predict_proba, or an attack with guess; got "
            f"{scorer!r}{', a class: give an object of it' if isinstance(scorer, type) else ''}",
            ParameterError,
        )
        return GuessScorer(scorer), ()
    if known is None:
        return None, EVERY
    require(
        known.size == target.size,
        f"The family has {known.size} records, the code under test {target.size}; they must be the same.",
        ParameterError,
    )
    return KnownScorer(known), ()


def _design(
    target: Target,
    scorer: Scorer | None,
    runs: int,
    alpha: float,
    delta: float,
    rng: np.random.Generator,
    count: int,
    learners: Sequence[Learner],
) -> Design | Several:
    if scorer is None or isinstance(scorer, KnownScorer):
        found = choose_several(target, scorer, runs, alpha, delta, rng, count, learners)
        return found[0] if len(found) == 1 else Several(tuple(found))
    require(
        count == 1, "A scorer is taken as it is, with all records as suspects: leave out `designs`.", ParameterError
    )
    return Design(np.arange(target.size), 1e-9, scorer)


def _require_same_records(target: Target, threat: Any) -> None:
    """Refuse a threat to other records than those of the code, or to the same in another order."""
    require(isinstance(threat, Threat), f"{threat!r} is not a Threat.", ThreatError)
    require(
        threat.prior.size == target.size,
        f"The code under test has {target.size} records, the prior of the threat {threat.prior.size}; they must be the "
        "same.",
        ThreatError,
    )
    require(
        threat.prior.support_size >= 2,
        "The prior has one possible record: there is nothing to find out. Give it at least two.",
        ThreatError,
    )
    labels = threat.prior.labels
    if labels is None or (target.records == tuple(range(target.size)) and not _are_numbers(labels, target.size)):
        return  # what is numbered has no names to compare
    for own, other in zip(target.records, labels, strict=True):
        require(
            bool(np.all(own == other)),
            f"The records of the code are not those of the prior in the same order: {own!r} here is {other!r} there.",
            ThreatError,
        )


def _are_numbers(labels: Sequence[Any], size: int) -> bool:
    """Whether these are 0, 1, ... in any order."""
    return all(isinstance(label, int | float | np.number) for label in labels) and set(labels) == set(range(size))


def _block(target: Target, runs: int, stop_early: bool) -> int:
    """How many runs a block has: of code that is called more if more are planned, since seeding a block takes time."""
    if isinstance(target, MechanismTarget):
        return BLOCK
    if stop_early:
        return LOOKS
    is_batch = isinstance(target, CodeTarget) and target.batch  # its outputs are held at once
    return CALLS if is_batch else min(MOST_CALLS, max(CALLS, runs // PARTS))


def _step(target: Target, block: int) -> int:
    """How many runs of a block to make at once: of code that is called some, of a mechanism what fits."""
    if not isinstance(target, MechanismTarget):
        return min(block, CALLS)
    return max(1, min(block, HELD // np.asarray(target.sample(np.array([0]), np.random.default_rng(0))).nbytes))


def _claim(claim: Any, own: Mechanism | None) -> ApproxDP:
    if claim is None:
        if own is None:
            fail("What does the code claim? Give an epsilon as `claim`.", ParameterError)
        require(
            math.isfinite(own.epsilon),
            f"{own!r} keeps no finite epsilon at delta 0. Give a claim with a delta, as in ApproxDP(1.0, 1e-5).",
            ParameterError,
        )
        return ApproxDP(own.epsilon, 0.0)
    if isinstance(claim, ApproxDP):
        claim.require_replace_one()
        return claim
    if isinstance(claim, Guarantee):
        claim.require_replace_one()
        return consequence(claim)
    if isinstance(claim, int | float | np.number):
        return ApproxDP(as_number("The claimed epsilon", claim), 0.0)
    return fail(f"A claim is an epsilon or a guarantee such as ApproxDP(1.0, 1e-5), not {claim!r}.", ParameterError)


def _versions() -> dict[str, str]:
    from dprisk.auditing.code.adapters import version_of

    return {"dprisk": str(version_of("dprisk")), "numpy": np.__version__, "python": platform.python_version()}


def audit_recorded(runs: Recorded, claim: float | Guarantee, *, alpha: float = 0.01, seed: int = 0) -> AuditReport:
    """Audit code that cannot be run here, by a record and an output for each of its runs (see `recorded`).

    A random half of the runs is learned from. Of the others, runs of suspects drawn at random are used up one by one,
    until none is left of one of them. So each run that is used has a uniform suspect, given those before, whatever was
    recorded; when they end depends on the suspects drawn, so the certificate is the one that holds at any moment.
    """
    started = time.perf_counter()
    alpha = as_number("alpha", alpha)
    require(0 < alpha < 1, f"alpha must lie strictly between 0 and 1, got {alpha:g}")
    promise, rng = _claim(claim, None), generator(as_whole("seed", seed, least=0), -1)
    codes, outputs = runs.records, runs.outputs
    require(np.unique(codes).size >= 2, "An audit needs recorded runs of at least two records.", ParameterError)
    require(
        outputs.dtype.kind in "biuf" or len(set(map(repr, outputs.tolist()))) < len(outputs),
        f"No two outputs in {runs.name} are alike, so nothing can be learned from them; leave out columns that are no "
        "part of the output, such as a number for each row.",
        InputFileError,
    )
    order = rng.permutation(codes.size)
    learn, rest = order[: codes.size // 2], order[codes.size // 2 :]
    (design,) = learned_designs(outputs[learn], codes[learn], rest.size, alpha, promise.delta)
    waiting = [list(rest[codes[rest] == record]) for record in design.universe]
    drawn: list[tuple[int, int]] = []
    while all(waiting):
        suspect = int(rng.integers(design.size))
        drawn.append((suspect, waiting[suspect].pop()))
    truth, used = np.array(drawn, dtype=np.int64).reshape(-1, 2).T
    answers = design.answers(outputs[used]) if used.size else truth
    counts = Counts(truth.size, int((answers >= 0).sum()), int((answers == truth).sum()), design.size)
    told = {"name": runs.name, "size": runs.size, "recorded": int(runs.records.size), "versions": _versions()}
    seconds = time.perf_counter() - started
    return AuditReport(told, promise, counts, design, alpha, counts.runs, True, seed, seconds)
