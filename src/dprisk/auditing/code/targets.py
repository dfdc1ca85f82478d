"""What can be audited: anything that turns a record into a random output, run as a black box, block by block."""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import signal
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.auditing.code.adapters import Adapted, adapt, version_of
from dprisk.auditing.code.outputs import Recorded, as_outputs, recorded
from dprisk.auditing.code.randomness import generator_parameter, held_randomness, seeded
from dprisk.auditing.code.references import Reference, name_of
from dprisk.auditing.code.timeouts import LONGEST, NO_TIMER, SHORTEST, NoTimerError, OutOfTimeError, stopwatch
from dprisk.errors import AuditedCodeError, TargetError, as_number, as_whole, require
from dprisk.guarantees import Guarantee, as_guarantee
from dprisk.mechanisms import Mechanism
from dprisk.types import AnyArray, IntArray

__all__ = ["Recorded", "Target", "as_outputs", "as_target", "central", "recorded"]

PACKAGE = Path(__file__).parents[1]
MOST_RECORDS = 10_000_000  # of code


class Target(ABC):
    """Something to audit: a random output for each of `records`, which sampling names by their numbers.

    `claim` is the guarantee that the target is said to have, None if nobody said; `reproducible` tells whether the
    same seed gives the same runs, as far as that can be seen, and `note` why not.
    """

    name: str
    records: tuple[Any, ...]
    claim: Guarantee | None = None
    reproducible: bool = True
    note: str = ""
    library: str | None = None
    timeout: float | None = None

    @property
    def size(self) -> int:
        """How many possible records there are."""
        return len(self.records)

    @abstractmethod
    def sample(self, records: IntArray, rng: np.random.Generator) -> Any:
        """One output for each record number, the outputs along the first axis (see `as_outputs`)."""

    def stream(self, records: IntArray, step: int, rng: np.random.Generator) -> Generator[Any, None, None]:
        """The outputs of one block of runs, those of `step` records at a time: to be read to the end, or closed."""
        for start in range(0, records.size, step):
            yield self.sample(records[start : start + step], rng)

    def describe(self) -> dict[str, Any]:
        """What a report says of the target, ready for JSON."""
        return {
            "name": self.name,
            "size": self.size,
            "library": self.library,
            "version": version_of(self.library),
            "reproducible": self.reproducible,
            "note": self.note,
            "timeout": self.timeout,
            "claim": None if self.claim is None else repr(self.claim),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.size} records)"

    def _numbers(self, records: npt.ArrayLike) -> IntArray:
        """Record numbers, checked."""
        numbers = np.atleast_1d(np.asarray(records))
        require(
            numbers.ndim == 1
            and (numbers.size == 0 or np.issubdtype(numbers.dtype, np.integer))
            and (numbers.size == 0 or bool(numbers.min() >= 0 and numbers.max() < self.size)),
            f"Records are given by their numbers, 0..{self.size - 1}.",
        )
        return numbers.astype(np.int64, copy=False)


class MechanismTarget(Target):
    """A mechanism of dprisk."""

    def __init__(self, mechanism: Mechanism, claim: Guarantee | None = None) -> None:
        self.mechanism, self.claim = mechanism, claim
        self.name, self.library = repr(mechanism), "dprisk"
        self.records = tuple(range(mechanism.size)) if mechanism.labels is None else mechanism.labels

    def sample(self, records: IntArray, rng: np.random.Generator) -> Any:
        """Outputs of the mechanism."""
        return self.mechanism.sample(records, rng)


@dataclass(eq=False, repr=False)
class CodeTarget(Target):
    """Code that is run as a black box: a function of one record, or of a list of them (`batch`).

    It can be sent to other processes if the code can; code named by text always can.
    """

    name: str
    records: tuple[Any, ...]
    code: Any  # an Adapted, a function, or a Reference to either
    batch: bool = False
    parameters: Mapping[str, Any] | None = None
    post: Callable[[Any], Any] | None = None
    timeout: float | None = None
    claim: Guarantee | None = None
    reproducible: bool = True
    note: str = ""
    library: str | None = None

    def sample(self, records: IntArray, rng: np.random.Generator) -> AnyArray:
        """Outputs of the code; it fails with an `AuditedCodeError` that can be repeated."""
        return self.repeat(records, int(rng.integers(1 << 63)))

    def stream(self, records: IntArray, step: int, rng: np.random.Generator) -> Generator[AnyArray, None, None]:
        """What `sample` gives, from one seed, but not held at once. A batch is not divided."""
        return self._block(records, records.size if self.batch else step, int(rng.integers(1 << 63)))

    def repeat(self, records: npt.ArrayLike, seed: int) -> AnyArray:
        """The outputs of one block, from its seed: what `sample` gave, or the same error again."""
        numbers = self._numbers(records)
        (outputs,) = self._block(numbers, numbers.size, seed)
        return outputs

    def _block(self, records: IntArray, step: int, seed: int) -> Generator[AnyArray, None, None]:
        numbers = self._numbers(records)
        chosen = self._objects[numbers].tolist()
        with seeded(seed, self._generators):
            function, *more = self._function(seed)
            for start in range(0, len(chosen), step) if chosen else [0]:
                part = chosen[start : start + step]
                yield as_outputs(
                    self._batch(function, part, numbers, seed)
                    if self.batch
                    else self._each(map(function, part, *more), part, numbers[: start + len(part)], seed)
                )

    def _each(self, results: Iterator[Any], chosen: list[Any], numbers: IntArray, seed: int) -> list[Any]:
        """The results for the chosen records, the last of those whose numbers are given."""
        outputs: list[Any] = []
        try:
            with stopwatch(self.timeout, outputs):
                outputs.extend(results)  # no loop in Python; what was done before an error stays
        except (Exception, SystemExit, OutOfTimeError) as problem:
            missing = len(chosen) - len(outputs)
            if isinstance(problem, OutOfTimeError) and not missing:
                return outputs  # it came back just in time
            if isinstance(problem, NoTimerError) or not missing:
                raise
            raise self._failed(problem, chosen[-missing], numbers[: numbers.size - missing + 1], seed) from problem
        return outputs

    def _batch(self, function: Callable[[Any], Any], chosen: list[Any], numbers: IntArray, seed: int) -> Any:
        try:
            with stopwatch(self.timeout, []):
                outputs = function(_as_batch(chosen))
        except NoTimerError:
            raise
        except (Exception, SystemExit, OutOfTimeError) as problem:
            raise self._failed(problem, None, numbers, seed) from problem
        many = isinstance(outputs, list | tuple) or (isinstance(outputs, np.ndarray) and outputs.ndim > 0)
        require(
            many and len(outputs) == len(chosen),
            f"{self.name} was given {len(chosen)} records and returned "
            + (f"{len(outputs)} outputs" if many else f"a {type(outputs).__name__}")
            + "; batch=True needs a list or an array with one output for each.",
            TargetError,
        )
        return outputs

    def _failed(self, problem: BaseException, record: Any, numbers: IntArray, seed: int) -> AuditedCodeError:
        where = "a batch" if record is None and self.batch else f"record {record!r}, run {numbers.size} of its block,"
        what = (
            f"did not return within {self.timeout:g} s"
            if isinstance(problem, OutOfTimeError)
            else f"raised {type(problem).__name__}: {' '.join(str(problem).split())}"
        )
        again = "The same audit with the same seed runs into it again." if self.reproducible else self.note
        return AuditedCodeError(
            f"{self.name} on {where} {what}{_place(problem)}. {again}",
            record,
            numbers.tolist(),
            seed,
        )

    def _function(self, seed: int) -> tuple[Any, ...]:
        """The code for one block: a function of the record or batch, and what it takes besides, over and over."""
        code, adapted, place = self._resolved
        given = dict(self.parameters or {})
        function: Callable[..., Any] = code
        if adapted is not None:
            function = adapted.for_block(seed)
        elif place is not None and place not in given:
            generator = np.random.default_rng(seed)
            if (
                inspect.isfunction(code)
                and code.__code__.co_varnames[1:2] == (place,)
                and not (self.batch or self.post or given or code.__code__.co_kwonlyargcount)
            ):
                return code, itertools.repeat(generator)  # by position, which is faster
            given[place] = generator
        function = partial(function, **given) if given else function
        return (function if self.post is None else _Then(function, self.post),)

    @cached_property
    def _resolved(self) -> tuple[Any, Adapted | None, str | None]:
        """The code itself, as another library's mechanism if it is one, and its parameter for a generator."""
        code = self.code.load() if isinstance(self.code, Reference) else self.code
        adapted = None if inspect.isroutine(code) else adapt(code, self.records)
        return code, adapted, generator_parameter(code) if adapted is None else None

    @cached_property
    def _objects(self) -> AnyArray:
        """The records as an array, which is quick to choose from."""
        return np.fromiter(self.records, dtype=object, count=self.size)

    @cached_property
    def _generators(self) -> list[Any]:
        code, adapted, _ = self._resolved
        held = held_randomness(partial(code if adapted is None else adapted.call, **(self.parameters or {})))
        return held[0] if self.post is None else held[0] + held_randomness(self.post)[0]

    def __getstate__(self) -> dict[str, Any]:
        found_again = ("_generators", "_objects", "_resolved")
        return {name: value for name, value in self.__dict__.items() if name not in found_again}


def as_target(
    subject: Any,
    records: Sequence[Any] | int | None = None,
    claim: Any = None,
    *,
    batch: bool = False,
    parameters: Mapping[str, Any] | None = None,
    post: Callable[[Any], Any] | None = None,
    timeout: float | None = None,
    name: str | None = None,
) -> Target:
    """Anything that can be audited, as a `Target`.

    `subject` is one of

    - a dprisk `Mechanism`;
    - a function of one record, `f(record)`, or with `batch=True` of a list of them, `f(records)`, which gives one
      output for each. A parameter called rng, random_state or generator, or annotated as `numpy.random.Generator`,
      gets a generator; all other parameters without a default must be in `parameters`;
    - the text "package.module:function" for any of these, looked for in the current directory too;
    - an OpenDP measurement, a pure-ldp client, a diffprivlib mechanism, or what `adapters.pure_ldp` and
      `adapters.multi_freq_ldpy` give;
    - a `Target`, such as that of `central`.

    `records` lists the possible records, or tells how many there are (then they are 0, 1, ...). `claim` is the
    guarantee to be tested, as `as_guarantee` takes it; libraries that state one for every pair of the records need
    none. `post` is applied to each output. `timeout` limits each run (with `batch` each block) to that many seconds,
    and one quarter more at most; it needs the main thread of a process on a system with timers, and cannot stop code
    that does not come back to Python.

    >>> target = as_target(lambda record, rng: record + rng.normal(), records=2)
    >>> target.sample(np.array([0, 1, 1]), np.random.default_rng(0)).shape
    (3,)
    """
    promise = None if claim is None else as_guarantee(claim)
    limit = None if timeout is None else as_number("timeout", timeout)
    require(
        limit is None or SHORTEST <= limit <= LONGEST,
        f"timeout must be a positive number of seconds, from {SHORTEST:g} to {LONGEST:g}, got {timeout}",
    )
    require(
        parameters is None or isinstance(parameters, Mapping),
        f"parameters is a mapping from name to value, as in {{'scale': 2.0}}, not {parameters!r}",
        TargetError,
    )
    require(post is None or callable(post), f"post is a function of one output, not {post!r}", TargetError)
    require(limit is None or hasattr(signal, "setitimer"), NO_TIMER)
    options = {"batch": batch, "parameters": parameters, "post": post, "timeout": limit}
    reference = Reference.parse(subject) if isinstance(subject, str) else None
    code = reference.load() if reference else subject
    if isinstance(code, Target):
        require(
            records is None and not any(options.values()),
            f"{code!r} is a target already; only a claim can be added.",
            TargetError,
        )
        return code if promise is None and name is None else _relabelled(code, promise, name)
    if isinstance(code, Mechanism):
        require(not any(options.values()), f"{code!r} takes no further options: it is run as it is.", TargetError)
        labelled = code if records is None or isinstance(records, int) else code.labelled(records)
        require(not isinstance(records, int) or records == code.size, f"{code!r} has {code.size} records.", TargetError)
        return _relabelled(MechanismTarget(labelled), promise, name)
    require(
        not isinstance(code, type), f"{name_of(code)} is a class; give an object of it, or a function.", TargetError
    )
    listed = _listed(records)
    adapted = adapt(code, listed)
    if adapted is not None:
        require(not batch, f"{adapted.name} takes one record at a time, not a batch.", TargetError)
        require(not parameters, f"{adapted.name} has its parameters already.", TargetError)
        listed = adapted.records if listed is None or adapted.library == "opendp" else listed
        require(listed is not None, f"{adapted.name} does not tell its records: pass records=[...].", TargetError)
        return CodeTarget(
            name=name or adapted.name,
            records=tuple(listed or ()),
            code=reference or adapted,
            post=post,
            timeout=limit,
            claim=promise or adapted.claim,
            reproducible=adapted.reproducible,
            note=adapted.note,
            library=adapted.library,
        )
    _require_function(code)
    require(
        listed is not None, f"{name_of(code)} does not tell its records: pass records=[...], or how many.", TargetError
    )
    _check_signature(code, parameters or {}, batch)
    system = held_randomness(code)[1]
    module = (getattr(inspect.unwrap(code), "__module__", None) or "").split(".")[0]
    return CodeTarget(
        name=name or (reference.text if reference else name_of(code)),
        records=tuple(listed or ()),
        code=reference or code,
        batch=batch,
        parameters=parameters,
        post=post,
        timeout=limit,
        claim=promise,
        reproducible=not system,
        note=f"It uses randomness of the operating system ({', '.join(system)})." if system else "",
        library=_distribution(module),
    )


def central(
    function: Callable[..., Any] | str,
    others: Sequence[Any] | AnyArray,
    records: Sequence[Any],
    claim: Any = None,
    *,
    place: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    post: Callable[[Any], Any] | None = None,
    timeout: float | None = None,
    name: str | None = None,
) -> Target:
    """A mechanism on a whole data set, `function(dataset)`, seen as a channel from one person's record.

    Everybody else's data is fixed: the data set is `others` with the target's record appended, or put at `place`
    instead of what is there. Each run gets a fresh copy, an array if `others` is one (of a type that holds all records)
    and else a list; what a list holds is not copied. All other options are those of `as_target`.

    >>> total = central(lambda data, rng: sum(data) + rng.laplace(), others=[1, 0, 1], records=[0, 1])
    >>> total.sample(np.array([0, 1]), np.random.default_rng(0)).shape
    (2,)
    """
    reference = Reference.parse(function) if isinstance(function, str) else None
    code = reference.load() if reference else function
    _require_function(code)
    require(
        not isinstance(others, str | Mapping) and not hasattr(others, "columns") and hasattr(others, "__iter__"),
        f"The data of the others are a list or an array of records, not a {type(others).__name__}; of a table give a "
        "list of its rows, and a function that makes a table of them.",
        TargetError,
    )
    base: Any = others if isinstance(others, np.ndarray) else list(others)
    if place is not None:
        place = as_whole("place", place, least=0)
        require(place < len(base), f"place must be one of the {len(base)} places of the data set, got {place}")
    listed = _listed(records) or ()
    if isinstance(base, np.ndarray):
        joint = np.asarray(list(listed))
        require(
            joint.shape[1:] == base.shape[1:],
            f"A record of shape {joint.shape[1:]} does not fit a data set of rows of shape {base.shape[1:]}.",
            TargetError,
        )
        base = base.astype(np.result_type(base, joint))
    whole = _Central(reference or code, base, place)
    shown = name or (reference.text if reference else name_of(code))
    return as_target(
        whole,
        listed,
        claim,
        parameters=parameters,
        post=post,
        timeout=timeout,
        name=f"{shown} on {len(base)} others" if place is None else f"{shown} on {len(base)} people",
    )


@dataclass(frozen=True)
class _Then:
    """One function after another, as something that can be sent to other processes."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, record: Any) -> Any:
        return self.second(self.first(record))


class _Central:
    """A function of a data set as one of the target's record."""

    def __init__(self, code: Any, base: Any, place: int | None) -> None:
        self.code, self.base, self.place = code, base, place
        self.function: Callable[..., Any] = code.load() if isinstance(code, Reference) else code
        self.__qualname__ = name_of(self.function)
        with contextlib.suppress(TypeError, ValueError):  # some built-in functions do not tell
            self.__signature__ = inspect.signature(self.function)

    def __call__(self, record: Any, **parameters: Any) -> Any:
        return self.function(self._with(record), **parameters)

    def _with(self, record: Any) -> Any:
        if self.place is not None:
            data = self.base.copy()
            data[self.place] = record
            return data
        if isinstance(self.base, np.ndarray):
            data = np.empty((len(self.base) + 1, *self.base.shape[1:]), dtype=self.base.dtype)
            data[:-1], data[-1] = self.base, record
            return data
        return [*self.base, record]

    def __reduce__(self) -> tuple[Any, ...]:
        return _Central, (self.code, self.base, self.place)


def _require_function(code: Any) -> None:
    """Refuse what cannot be called, or gives no output when it is."""
    require(callable(code), f"{code!r} cannot be called; give a function of one record, or its name.", TargetError)
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
    given = {**parameters, **({} if place is None else {place: None})}
    what = "a list of records" if batch else "the record"
    try:
        signature.bind(None, **given)
    except TypeError as problem:
        first = next(iter(signature.parameters.values()), None)
        needed = [
            name
            for name, entry in list(signature.parameters.items())[1:]
            if entry.default is entry.empty
            and entry.kind in (entry.POSITIONAL_OR_KEYWORD, entry.KEYWORD_ONLY)
            and name not in given
        ]
        advice = (
            "it takes no argument"
            if first is None
            else f"its first parameter is {first.name}"
            if first.name in (place, "self", "cls")
            else f"it also needs {', '.join(needed)}: pass parameters={{{', '.join(f'{n!r}: ...' for n in needed)}}}, "
            "or a function that sets what it needs"
            if needed
            else str(problem)
        )
        message = f"{name_of(function)} cannot be called with {what} as its first argument: {advice}."
        raise TargetError(message) from None


def require_few(count: int) -> None:
    """Refuse more records than can be listed in a moment, which a zero too many asks for."""
    require(
        count <= MOST_RECORDS,
        f"{count} possible records are too many to list; choose some that matter, at most {MOST_RECORDS}.",
        TargetError,
    )


def _listed(records: Sequence[Any] | int | None) -> tuple[Any, ...] | None:
    if records is None:
        return None
    if isinstance(records, int | np.integer):
        count = as_whole("records, the number of possible records,", records)
        require_few(count)
        return tuple(range(count))
    require(
        not isinstance(records, str) and hasattr(records, "__iter__"),
        f"Records are a list, got {records!r}.",
        TargetError,
    )
    plain = records.tolist() if isinstance(records, np.ndarray) and records.ndim == 1 else records
    listed = tuple(plain)
    require(len(listed) > 0, "At least one record is needed.", TargetError)
    with contextlib.suppress(TypeError):  # records that cannot be hashed are told apart by their numbers
        require(len(set(listed)) == len(listed), "The records must differ from each other.", TargetError)
    return listed


def _as_batch(chosen: list[Any]) -> Any:
    """Records of one plain kind as an array, others as a list."""
    kinds = set(map(type, chosen))
    plain = len(kinds) == 1 and issubclass(next(iter(kinds)), bool | int | float | str)
    return np.asarray(chosen) if plain or kinds == {int, float} else chosen


def _relabelled(target: Target, claim: Guarantee | None, name: str | None) -> Target:
    same = copy.copy(target)
    same.claim, same.name = claim or target.claim, name or target.name
    return same


def _place(problem: BaseException) -> str:
    """The last line that ran in the file of the audited code, which begins behind the frames of dprisk."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(problem.__traceback__)]
    behind = [(file, line) for file, line in frames if not file.startswith(str(PACKAGE))]
    lines = [line for file, line in behind if file == behind[0][0]]
    return f" ({behind[0][0]}, line {lines[-1]})" if behind else ""


def _distribution(module: str) -> str | None:
    """The installed library that a module belongs to, if it has the same name."""
    library = module.replace("_", "-")
    return library if version_of(library) is not None else None
