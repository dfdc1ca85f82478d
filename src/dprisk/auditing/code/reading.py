"""Anything that can be audited, read as a `Target`, and tried on a few runs before it is."""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dprisk.auditing.code.adapters import adapt
from dprisk.auditing.code.called import CodeTarget
from dprisk.auditing.code.kept_noise import require_fresh_noise
from dprisk.auditing.code.neighbours import Neighbours
from dprisk.auditing.code.outputs import as_bytes, as_objects, same_outputs
from dprisk.auditing.code.randomness import NAMED, generator_parameter, held_randomness
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.target import MechanismTarget, Target, name_of, version_of
from dprisk.errors import AuditedCodeError, DpriskError, TargetError, as_whole, fail, require
from dprisk.guarantees import Guarantee, as_guarantee
from dprisk.mechanisms import Mechanism

Records = Sequence[Any] | Neighbours | int | None

MOST_LISTED = 10_000_000  # records of code
PATIENCE = 0.2  # seconds of trying whether code repeats itself, beyond which no more runs are made
METHODS = "add_noise", "randomise", "randomize", "privatise", "privatize", "perturb", "sanitize", "release"
OF_AN_OBJECT = "; name a method of an object, as in mech:obj.meth"
CONTAINERS = list, tuple, dict, set
FAILS_AGAIN = (
    10  # times that a failure is tried again: code that draws anew and fails every other time passes 1 in 1,000
)
SAME = 32  # runs of one record in a batch: never all alike twice, and different, if each has its own noise


def read(subject: Any, records: Records = None, timeout: float | None = None) -> Target:
    """What is to be audited, by `as_target`, and as a few runs show it.

    A target whose runs from one seed differed, as those of code that makes its own generators do, is marked so. One
    whose records share their noise in a batch is refused, and so is one that keeps its noise (see `kept_noise`): its
    runs are not independent, and no certificate holds. The time limit is that of code, also of a `CodeTarget` that was
    given.
    """
    target = as_target(subject, records)
    require(target.size >= 2, "An audit needs at least two possible records.")
    if not isinstance(target, CodeTarget):
        require(timeout is None, f"{target.name} has no calls to limit, as code has; leave out timeout.", TargetError)
        return target
    target = target if timeout is None else replace(target, timeout=timeout)
    in_advance = require_fresh_noise(target)
    target = replace(target, changes_records=_changes_records(target), in_advance=in_advance)
    if target.reproducible and not _repeats(target):
        note = "The same seed gave other outputs: it draws what cannot be seeded, or keeps something between calls."
        target = replace(target, reproducible=False, note=note)
    if target.batch:
        _require_own_noise(target)
    return target


def as_target(
    subject: Any,
    records: Records = None,
    claim: Any = None,
    *,
    batch: bool = False,
    parameters: Mapping[str, Any] | None = None,
    post: Callable[[Any], Any] | None = None,
    timeout: float | None = None,
    failures: bool = False,
    timing: bool = False,
    name: str | None = None,
) -> Target:
    """Anything that can be audited, as a `Target`.

    `subject` is one of

    - a dprisk `Mechanism`;
    - a function of one record, `f(record)`, or with `batch=True` of a list of them, `f(records)`, which gives one
      output for each. A parameter called rng or generator, or annotated as `numpy.random.Generator`, gets a
      generator, one called random_state a `RandomState`, as in scikit-learn; all other parameters without a default
      must be in `parameters`;
    - the text "package.module:function" for any of these, looked for in the current directory too;
    - an OpenDP measurement, a pure-ldp client, a diffprivlib mechanism, or what `adapters.pure_ldp` and
      `adapters.multi_freq_ldpy` give;
    - a `Target`, such as that of `central`.

    `records` lists the possible records, or tells how many there are (then they are 0, 1, ...). For a function of a
    whole input they are `Neighbours`: pairs of inputs, of which each run gets a copy. `claim` is the
    guarantee to be tested, as `as_guarantee` takes it; libraries that state one for every pair of the records need
    none. `post` is applied to each output. `timeout` limits each run (with `batch` each block) to that many seconds,
    and one quarter more at most; it needs the main thread of a process on a system with timers, and cannot stop code
    that does not come back to Python. A run that fails or takes too long ends the audit; with `failures` it is an
    output like any other, for whoever sees that it failed may learn from it. With `timing` an output is a pair: what
    the code returned, and the seconds that it took.

    >>> target = as_target(lambda record, rng: record + rng.normal(), records=2)
    >>> target.sample(np.array([0, 1, 1]), np.random.default_rng(0)).shape
    (3,)
    """
    reference = Reference.parse(subject) if isinstance(subject, str) else None
    code = reference.load() if reference else subject
    promise = None if claim is None else as_guarantee(claim)
    if isinstance(code, Target | Mechanism):
        return _relabelled(
            _whole(code, records, not any((batch, parameters, post, timeout, failures, timing))), promise, name
        )
    shown = reference.text if reference else name_of(code)
    made = _from_code(code, shown, listed_records(records), parameters, batch)
    return replace(
        made,
        name=name or made.name,
        code=reference or made.code,
        post=post,
        timeout=timeout,
        failures=failures,
        timing=timing,
        claim=promise or made.claim,
        pairs=records.pairs if isinstance(records, Neighbours) else None,
    )


def _whole(code: Target | Mechanism, records: Records, plain: bool) -> Target:
    """What needs no reading: a target, or a mechanism, whose labels are its records."""
    if isinstance(records, Neighbours):
        fail(f"{code!r} takes one person's record; neighbours are for functions of a whole input.", TargetError)
    if isinstance(code, Target):
        require(records is None and plain, f"{code!r} is a target already; only a claim can be added.", TargetError)
        return code
    if not plain:
        fail(f"{code!r} takes no further options: it is run as it is.", TargetError)
    if math.isinf(code.size):
        fail(
            f"{code!r} is for any number of an interval; audit it at some of them, as in Laplace([0, 1], ...).",
            TargetError,
        )
    if records is None or isinstance(records, int):
        require(records in (None, code.size), f"{type(code).__name__} has {code.size} records.", TargetError)
        return MechanismTarget(code)
    labelled = code.labelled(records)
    if code.labels is not None and code.labels != labelled.labels:
        fail(f"{code!r} names its records itself, as {code.labels[0]!r} and so on; leave out records.", TargetError)
    return MechanismTarget(labelled)


def _from_code(
    code: Any, shown: str, listed: tuple[Any, ...] | None, parameters: Mapping[str, Any] | None, batch: bool
) -> CodeTarget:
    """A mechanism of another library, or a function, as what it tells of itself without being called."""
    require(not isinstance(code, type), f"{shown} is a class; give an object of it, or a function.", TargetError)
    adapted = None if inspect.isroutine(code) else adapt(code, listed)
    if adapted is not None:
        require(not batch, f"{adapted.name} takes one record at a time, not a batch.", TargetError)
        require(not parameters, f"{adapted.name} has its parameters already.", TargetError)
        listed = adapted.records if listed is None or adapted.library == "opendp" else listed
        return CodeTarget(
            name=adapted.name,
            records=listed or fail(f"{adapted.name} does not tell its records: pass records=[...].", TargetError),
            code=adapted,
            claim=adapted.claim,
            reproducible=adapted.reproducible,
            note=adapted.note,
            library=adapted.library,
        )
    require_function(code)
    system = held_randomness(code)[1]
    module = (getattr(inspect.unwrap(code), "__module__", None) or "").split(".")[0].replace("_", "-")
    made = CodeTarget(
        name=shown,
        records=listed or fail(f"{shown} does not tell its records: pass records=[...], or how many.", TargetError),
        code=code,
        batch=batch,
        parameters=parameters,
        reproducible=not system,
        note=f"It uses randomness of the operating system ({', '.join(system)})." if system else "",
        library=module if version_of(module) is not None else None,  # installed under the same name
    )
    _check_signature(code, parameters or {}, batch)
    return made


def require_function(code: Any) -> None:
    """Refuse what cannot be called, or gives no output when it is."""
    if not callable(code):
        method = next((name for name in METHODS if callable(getattr(code, name, None))), None)
        advice = f"it has a method {method}: pass that" if method else "give a function of one record, or its name"
        fail(f"{code!r} cannot be called; {advice}.", TargetError)
    require(
        not any(map(inspect.iscoroutinefunction, (code, code.__call__))) and not inspect.isasyncgenfunction(code),
        f"{name_of(code)} is an async function, which gives no output when it is called; wrap it in a function "
        "that runs it, as with asyncio.run.",
        TargetError,
    )


def _check_signature(function: Any, parameters: Mapping[str, Any], batch: bool) -> None:
    """Refuse a function that cannot be called as it will be, before the first run."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    place = generator_parameter(function)
    given = {*parameters, *([] if place is None else [place])}
    try:
        signature.bind(None, **dict.fromkeys(given))
        return
    except TypeError as problem:
        advice = str(problem)
    first, *others = signature.parameters.values() or (None,)
    open_ones = [entry.name for entry in others if entry.default is entry.empty and entry.kind in NAMED]
    needed = [name for name in open_ones if name not in given]
    if first is None:
        advice = "it takes no argument"
    elif first.name in (place, "self", "cls"):
        advice = f"its first parameter is {first.name}{OF_AN_OBJECT * (first.name == 'self')}"
    elif needed:
        advice = (
            f"it also needs {', '.join(needed)}: pass parameters={{{', '.join(f'{n!r}: ...' for n in needed)}}} to "
            "as_target, or a function that sets what it needs"
        )
    what = "a list of records" if batch else "the record"
    fail(f"{name_of(function)} cannot be called with {what} as its first argument: {advice}.", TargetError)


def require_few(count: int) -> None:
    """Refuse more records than can be listed in a moment, which a zero too many asks for."""
    if count > MOST_LISTED:
        fail(f"{count} possible records are too many to list; choose at most {MOST_LISTED} that matter.", TargetError)


def listed_records(records: Records) -> tuple[Any, ...] | None:
    """The possible records, each once; a number of them are 0, 1, ..., and None stays None."""
    if records is None:
        return None
    if isinstance(records, Neighbours):
        return records.inputs
    if isinstance(records, int | np.integer):
        count = as_whole("records, the number of possible records,", records)
        require_few(count)
        return tuple(range(count))
    if hasattr(records, "columns"):
        remedy = "give records=frame.to_dict('records'), or one column as a list"
        fail(f"A data frame is no list of records: {remedy}.", TargetError)
    many = not isinstance(records, str) and hasattr(records, "__iter__")
    require(many, f"Records are a list, got {records!r}.", TargetError)
    listed = tuple(records.tolist() if isinstance(records, np.ndarray) and records.ndim == 1 else records)
    require(len(listed) > 0, "At least one record is needed.", TargetError)
    with contextlib.suppress(TypeError):  # records that cannot be hashed are told apart by their numbers
        (most, times), *_ = Counter(listed).most_common(1)
        require(times == 1, f"The records must differ from each other; {most!r} is there {times} times.", TargetError)
    return listed


def _relabelled(target: Target, claim: Guarantee | None, name: str | None) -> Target:
    if claim is None and name is None:
        return target
    same = copy.copy(target)
    object.__setattr__(same, "claim", claim or target.claim)
    object.__setattr__(same, "name", name or target.name)
    return same


def _require_own_noise(target: Target) -> None:
    one, two = (target.sample(np.zeros(SAME, dtype=np.int64), np.random.default_rng(seed)) for seed in range(2))
    require(
        not (same_outputs(one[1:], one[:-1]) and same_outputs(two[1:], two[:-1])) or same_outputs(one, two),
        f"{target.name} gives all records of a batch the same noise, so its runs are not independent. Draw noise for "
        "each record, as with size=len(records), or leave out batch.",
        TargetError,
    )


def _changes_records(target: CodeTarget) -> bool:
    """Whether code changed one of two lists, dicts, sets, arrays or tables that it was given; no others are tried."""
    some = target.records[:2]
    given = [record for record in some if isinstance(record, CONTAINERS) or hasattr(record, "__array__")]
    try:
        tried = copy.deepcopy(given)
    except Exception:  # of an object that has its own way to be copied, or none
        return False
    with contextlib.suppress(DpriskError):  # what cannot be compared; and code that fails will do so again
        before = [as_bytes(record) for record in as_objects(tried)]
        if tried:
            replace(target, records=tuple(tried), pairs=None).sample(np.arange(len(tried)), np.random.default_rng(0))
        return before != [as_bytes(record) for record in as_objects(tried)]
    return False


def _repeats(target: CodeTarget) -> bool:
    """Whether it `repeats`; if it fails on the way, that is said to come again only if it did so ten times at once."""
    untried, started = replace(target, reproducible=False), time.perf_counter()
    try:
        return repeats(untried)
    except AuditedCodeError as problem:
        for _ in range(FAILS_AGAIN):
            if time.perf_counter() - started > PATIENCE or not _fails_alike(untried, problem):
                raise
        target.repeat(problem.records, problem.seed)  # fails once more, and says so
        raise


def _fails_alike(target: CodeTarget, problem: AuditedCodeError) -> bool:
    try:
        target.repeat(problem.records, problem.seed)
    except AuditedCodeError as other:
        return str(other) == str(problem)
    return False


def repeats(target: Target, seed: int = 0, runs: int = 64) -> bool:
    """Whether the same seed gave the same outputs, tried on two blocks of a few runs, fewer of slow code.

    False is certain; True is not, if the code uses its randomness rarely.
    """
    some, started = 2, time.perf_counter()
    while True:
        numbers = np.arange(some) % target.size
        one, two = (target.sample(numbers, np.random.default_rng(seed)) for _ in range(2))
        if not same_outputs(one, two):
            return False
        if some >= runs or time.perf_counter() - started > PATIENCE:
            return True
        some = min(runs, 8 * some)
