"""Code that is called as a black box, block by block: seeded, timed, its failures told so that they can be repeated."""

from __future__ import annotations

import inspect
import itertools
import reprlib
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import nullcontext
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.auditing.code.adapted import Adapted
from dprisk.auditing.code.adapters import adapt
from dprisk.auditing.code.failures import Failure
from dprisk.auditing.code.frozen import are_simple, can_change, is_flat, is_simple
from dprisk.auditing.code.outputs import as_bytes, as_outputs
from dprisk.auditing.code.randomness import generator_for, generator_parameter, held_randomness, seeded
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.target import Target
from dprisk.auditing.code.timeouts import NoTimerError, OutOfTimeError, as_timeout, stopwatch
from dprisk.errors import AuditedCodeError, TargetError, fail
from dprisk.guarantees import Guarantee
from dprisk.guarantees.base import Relation
from dprisk.types import AnyArray, IntArray

PACKAGE = Path(__file__).parents[2]
LIGHT = 1 << 15  # bytes of a record that is timed: as many as the fastest cache holds


@dataclass(frozen=True, eq=False, repr=False)
class CodeTarget(Target):
    """Code that is run as a black box: a function of one record, or of a list of them (`batch`).

    With `failures` an exception, or a call that takes too long, is an output like any other; with `timing` an output
    is a pair of what was returned and the seconds that it took. Code that `changes_records` gets a copy in each run. It
    can be sent to other processes if the code can; code named by text always can.
    """

    name: str
    records: tuple[Any, ...]
    code: Any  # an Adapted, a function, or a Reference to either
    batch: bool = False
    parameters: Mapping[str, Any] | None = None
    post: Callable[[Any], Any] | None = None
    timeout: float | None = None
    failures: bool = False
    timing: bool = False
    claim: Guarantee | None = None
    reproducible: bool = True
    note: str = ""
    in_advance: bool = False
    library: str | None = None
    pairs: IntArray | None = None
    changes_records: bool = False
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, Mapping | None):
            fail(f"parameters is a mapping of names, as in {{'scale': 2.0}}, not {self.parameters!r}", TargetError)
        if not (self.post is None or callable(self.post)):
            fail(f"post is a function of one output, not {self.post!r}", TargetError)
        if self.timeout is not None:
            object.__setattr__(self, "timeout", as_timeout(self.timeout))
        if self.failures and self.batch:
            fail("A batch that fails gives no outputs at all: leave out failures, or batch.", TargetError)
        if self.timing and self.batch:
            fail("A batch takes one time for all its outputs: leave out timing, or batch.", TargetError)
        if self.timing:
            self._require_light()
            object.__setattr__(self, "reproducible", False)
            object.__setattr__(self, "note", "How long a call takes is different each time.")

    def _require_light(self) -> None:
        """Refuse to time calls with records that a processor's cache may hold from one run to the next."""
        heaviest = max(map(_weight, self.records))
        if heaviest > LIGHT:
            told = f"A record of {heaviest:,} bytes is quicker to read if the run before had it"
            remedy = "have the code make it from a number, or leave timing out"
            fail(f"{told}, so times would tell of this audit, not of {self.name}; {remedy}.", TargetError)

    def load(self) -> None:
        """Find the code."""
        _ = self._resolved

    @property
    def loaded(self) -> Any:
        """The code itself, also where it was named by text."""
        return self._resolved[0]

    def watchable(self) -> tuple[CodeTarget, list[Any]]:
        """The same code without times, and all generators that it is seen to hold: one of them is its parameter's."""
        code, _, place = self._resolved
        given = dict(self.parameters or {})
        if place is not None:
            given.setdefault(place, generator_for(code, place, 0))
        target = replace(self, parameters=given, timing=False)
        return target, target._generators

    def sample(self, records: IntArray, rng: np.random.Generator) -> AnyArray:
        """Outputs of the code; it fails with an `AuditedCodeError` that can be repeated."""
        return self.repeat(records, int(rng.integers(1 << 63)))

    def stream(self, records: IntArray, step: int, rng: np.random.Generator) -> Generator[AnyArray, None, None]:
        """What `sample` gives, from one seed, but not held at once. A batch is not divided."""
        return self._block(records, sys.maxsize if self.batch else step, int(rng.integers(1 << 63)))

    def repeat(self, records: npt.ArrayLike, seed: int) -> AnyArray:
        """The outputs of one block, from its seed: what `sample` gave, or the same error again."""
        (outputs,) = self._block(records, sys.maxsize, seed)
        return outputs

    def _block(self, records: npt.ArrayLike, step: int, seed: int) -> Generator[AnyArray, None, None]:
        numbers = self._numbers(records)
        chosen, copied = self._objects[numbers].tolist(), self._copied
        with seeded(seed, self._generators):
            function, *more = self._function(seed)
            for start in range(0, len(chosen), step) if chosen else [0]:
                part = chosen[start : start + step]
                given = part if copied is None else map(copied, part)
                if self.batch:
                    (outputs,) = self._each(map(function, [_as_batch(list(given))]), [None], numbers, seed)
                    self._require_one_each(outputs, len(part))
                    outputs = copy(outputs)
                else:
                    results = map(function, given, *more)
                    half = (len(part) + 1) // 2 if start == 0 else 0
                    outputs = self._each(itertools.islice(results, half), part[:half], numbers[:half], seed)
                    held = _snapshots(outputs)
                    outputs += self._each(results, part[half:], numbers[: start + len(part)], seed)
                    self._require_kept(held)
                yield as_outputs(outputs)

    def _each(self, results: Iterator[Any], chosen: list[Any], numbers: IntArray, seed: int) -> list[Any]:
        """The results for the chosen records, the last of those whose numbers are given; a batch is one of None."""
        outputs: list[Any] = []
        try:
            with stopwatch(self.timeout, outputs) if self.timeout else nullcontext():
                outputs.extend(results)  # no loop in Python; what was done before an error stays
            if len(outputs) < len(chosen):
                raise StopIteration  # of the code itself, which looks as if all were done
        except (Exception, SystemExit, GeneratorExit, OutOfTimeError) as problem:
            missing = len(chosen) - len(outputs)
            if isinstance(problem, OutOfTimeError) and not missing:
                return outputs  # it came back just in time
            if isinstance(problem, NoTimerError) or not missing:
                raise
            raise self._failed(problem, chosen[-missing], numbers[: numbers.size - missing + 1], seed) from problem
        return outputs

    def _require_kept(self, held: list[tuple[Any, Any]]) -> None:
        """Refuse code whose earlier output has become another one: all of them would be that of the last run."""
        for output, before in held:
            if _as_bytes(after := _copied(output)) != _as_bytes(before):
                what = f"It returned {reprlib.repr(before)}, which later was {reprlib.repr(after)}"
                remedy = "Return a copy; in Python as_target(..., post=copy.deepcopy) makes one."
                fail(f"{self.name} writes into what it returned. {what}. {remedy}", TargetError)

    def _require_one_each(self, outputs: Any, count: int) -> None:
        many = isinstance(outputs, list | tuple) or (isinstance(outputs, np.ndarray) and outputs.ndim > 0)
        if not many or len(outputs) != count:
            returned = f"{len(outputs)} outputs" if many else f"a {type(outputs).__name__}"
            needed = "batch=True needs a list or an array with one output for each."
            fail(f"{self.name} was given {count} records and returned {returned}; {needed}", TargetError)
        shared = [] if isinstance(outputs, np.ndarray) else [value for value in outputs if can_change(value)]
        if len({id(value) for value in shared}) < len(shared):
            what = f"one {type(shared[0]).__name__} for several records"
            fail(f"{self.name} returned {what} of a batch. Return one for each.", TargetError)

    def _failed(self, problem: BaseException, record: Any, numbers: IntArray, seed: int) -> AuditedCodeError:
        where = "a batch" if record is None and self.batch else f"record {record!r}, run {numbers.size} of its block,"
        said = " ".join(str(problem).split())
        what = (
            f"did not return within {self.timeout:g} s"
            if isinstance(problem, OutOfTimeError)
            else f"raised {type(problem).__name__}{f': {said}' if said else ''}"
        )
        again = "The same audit with the same seed runs into it again. " if self.reproducible else ""
        learn = "Who sees that it failed may learn from it: with failures=True (--failures) that is an output."
        leak = "" if self.batch else learn
        message = f"{self.name} on {where} {what}{_place(problem)}. {again}{leak}".strip()
        return AuditedCodeError(message, record, numbers.tolist(), seed)

    def _function(self, seed: int) -> tuple[Any, ...]:
        """The code for one block: a function of the record or batch, and what it takes besides, over and over."""
        code, adapted, place = self._resolved
        given = dict(self.parameters or {})
        function: Callable[..., Any] = code
        if adapted is not None:
            function = adapted.for_block(seed)
        elif place is not None and place not in given:
            generator = generator_for(code, place, seed)
            if (
                inspect.isfunction(code)
                and code.__code__.co_varnames[1:2] == (place,)
                and not (self.batch or self.post or given or code.__code__.co_kwonlyargcount)
            ):
                return self._wrapped(code), itertools.repeat(generator)  # by position, faster
            given[place] = generator
        function = partial(function, **given) if given else function
        function = function if self.post is None else _Then(function, self.post)
        return (self._wrapped(function),)

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function = _Caught(function) if self.failures else function
        return _Timed(function) if self.timing else function

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

    @property
    def _copied(self) -> Callable[[Any], Any] | None:
        """What copies a record for each run, so that code which changes it is given the same one again."""
        if self.changes_records:
            return copy if all(is_simple(record) or is_flat(record) for record in self.records) else deepcopy
        return None if self.pairs is None else copy  # whole inputs, which code may change in runs that were not tried

    @cached_property
    def _generators(self) -> list[Any]:
        code, adapted, _ = self._resolved
        held = held_randomness(partial(code if adapted is None else adapted.call, **(self.parameters or {})))
        return held[0] if self.post is None else held[0] + held_randomness(self.post)[0]

    def __getstate__(self) -> dict[str, Any]:
        found_again = ("_generators", "_objects", "_resolved")
        return {name: value for name, value in self.__dict__.items() if name not in found_again}


@dataclass(frozen=True)
class _Caught:
    """A function whose failures are outputs, with what they say."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.function(*arguments)
        except OutOfTimeError:
            return Failure("out of time")
        except Exception as problem:
            return Failure.of(problem)


@dataclass(frozen=True)
class _Timed:
    """A function whose outputs come with the seconds that they took."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Any) -> tuple[Any, float]:
        started = time.perf_counter()
        output = self.function(*arguments)
        return output, time.perf_counter() - started


@dataclass(frozen=True)
class _Then:
    """One function after another, as something that can be sent to other processes."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, record: Any) -> Any:
        return self.second(self.first(record))


def _snapshots(outputs: list[Any]) -> list[tuple[Any, Any]]:
    """The first output, and those that were returned more than once, each with a copy; none that nobody can change."""
    if are_simple(outputs):
        return []
    times = Counter(map(id, outputs))
    some = {id(output): output for output in outputs if times[id(output)] > 1 or output is outputs[0]}
    return [(output, _copied(output)) for output in some.values() if not is_simple(output)]


def _copied(output: Any) -> Any:
    """What an output is by now."""
    masked = isinstance(output, np.ma.MaskedArray)  # whose mask is not among its bytes
    return copy(output) if is_flat(output) and not masked else as_outputs([output]).tolist()[0]


def _as_bytes(output: Any) -> bytes:
    return output.tobytes() if isinstance(output, np.ndarray) else as_bytes(output)


def _as_batch(chosen: list[Any]) -> Any:
    """Records of one plain kind as an array, others as a list."""
    kinds = set(map(type, chosen))
    plain = len(kinds) == 1 and issubclass(next(iter(kinds)), bool | int | float | str)
    return np.asarray(chosen) if plain or kinds == {int, float} else chosen


def _place(problem: BaseException) -> str:
    """The last line that ran in the file of the audited code, which begins behind the frames of dprisk."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(problem.__traceback__)]
    behind = [(file, line) for file, line in frames if not file.startswith(str(PACKAGE))]
    lines = [line for file, line in behind if file == behind[0][0]]
    return f" ({behind[0][0]}, line {lines[-1]})" if behind else ""


def _weight(record: Any) -> int:
    """About how many bytes of memory a record takes."""
    if hasattr(record, "__array__"):
        return int(np.asarray(record).nbytes)
    if isinstance(record, Mapping | list | tuple | set | frozenset):
        return sys.getsizeof(record) + sum(map(_weight, record.values() if isinstance(record, Mapping) else record))
    return sys.getsizeof(record)
