"""The randomness of audited code: found, seeded before each block of runs, and put back.

A block of runs has one seed. Code that takes a generator gets one with that seed (see `generator_for`); all other
sources that can be seeded are seeded with it before the block: `random`, `numpy.random`, those of numba and torch where
they are loaded, and generators that the function itself holds. So the same seed gives the same runs in any process, and
no two blocks share their random numbers. Randomness of the operating system (`secrets`, `os.urandom`, OpenDP) cannot be
seeded: such a target says `reproducible=False` where it is seen, and `repeats` tells by trying.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import itertools
import os
import pickle
import platform
import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dprisk.types import AnyArray

MOST_HELD = 1000  # objects that are looked into
GENERATOR_NAMES = ("rng", "random_state", "generator")
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)  # parameters given by their names
_CODE = (FunctionType, MethodType, partial)
_SYSTEM_RANDOMNESS = ("secrets", "urandom", "SystemRandom", "token_bytes", "randbits", "randbelow")


def block_generator(seed: int, number: int) -> np.random.Generator:
    """The generator of a block of an audit with this seed; number -1 is for the pilot."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number + 1,)))


def generator_parameter(function: Any) -> str | None:
    """The parameter that takes a generator, told by its name or annotation; None if there is none."""
    named = [entry for entry in _parameters(function).values() if entry.kind in NAMED]
    fit = (entry.name for entry in named if entry.name in GENERATOR_NAMES or _is_generator(entry.annotation))
    return next(fit, None)


def generator_for(function: Any, parameter: str, seed: int) -> np.random.Generator | np.random.RandomState:
    """What a function gets by its parameter for a generator.

    One called `random_state` gets a `RandomState`, as in scikit-learn and all that follow it, which take nothing else;
    any other, and one that is annotated so, a `Generator`.
    """
    if parameter == "random_state" and not _is_generator(_parameters(function)[parameter].annotation):
        return random_state(seed)
    return np.random.default_rng(seed)


def random_state(seed: int) -> np.random.RandomState:
    """A generator of numpy's older kind with this seed."""
    return np.random.RandomState(np.random.MT19937(seed))


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-in functions do not tell
        return {}


def _is_generator(annotation: Any) -> bool:
    if isinstance(annotation, str):
        parts = {part.strip() for part in annotation.split("|")}
        return not parts.isdisjoint({"Generator", "random.Generator", "np.random.Generator", "numpy.random.Generator"})
    return annotation is np.random.Generator or np.random.Generator in getattr(annotation, "__args__", ())


def held_randomness(function: Any) -> tuple[list[Any], list[str]]:
    """The generators that a function holds, and the names by which it reaches randomness of the operating system.

    Looked at are its closure, defaults, bound arguments and object, the globals that its code names, and the same of
    the functions of its own package among them; and what those objects hold in turn, as attributes or entries, of up to
    a thousand of them.
    """
    held, named = [], []
    waiting, seen = [function], set()
    while waiting:
        code = waiting.pop()
        if id(code) not in seen:
            seen.add(id(code))
            values, names, more = _looked_into(code)
            held += values
            named += names
            waiting += more
    held += [value.__self__ for value in held if inspect.isbuiltin(value) or inspect.ismethod(value)]
    held += _held_in_turn(held)
    named += [value.__name__ for value in held if isinstance(value, ModuleType) and value.__name__ == "secrets"]
    found = {id(value): value for value in held if isinstance(value, _GENERATORS)}
    named += ["SystemRandom" for value in found.values() if isinstance(value, random.SystemRandom)]
    return [value for value in found.values() if not isinstance(value, random.SystemRandom)], sorted(set(named))


def _looked_into(code: Any) -> tuple[list[Any], list[str], list[Any]]:
    """What code holds, the names by which it reaches the operating system, and the code among what it holds."""
    if isinstance(code, partial):
        return [*code.args, *code.keywords.values()], [], [code.func]
    if inspect.ismethod(code):
        return _attributes(code.__self__), [], [code.__func__]
    if inspect.isfunction(code):
        values, names = _reached(code)
        root = (code.__module__ or "").split(".")[0]
        near = [value for value in values if inspect.isfunction(value) and value.__module__.split(".")[0] == root]
        return values, [name for name in names if name in _SYSTEM_RANDOMNESS], near
    inside = _attributes(code)
    return inside, [], [value for value in (*inside, vars(type(code)).get("__call__")) if isinstance(value, _CODE)]


def _reached(function: Any) -> tuple[list[Any], list[str]]:
    """What a function's own code can reach: values, and names of globals and attributes."""
    held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a cell may be empty
            held.append(cell.cell_contents)
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return held + [function.__globals__[name] for name in names if name in function.__globals__], sorted(names)


def _attributes(thing: Any) -> list[Any]:
    """The attributes of an object that has some, whatever it answers when it is asked for its __dict__."""
    inside = None
    if not isinstance(thing, ModuleType):
        with contextlib.suppress(AttributeError):
            inside = object.__getattribute__(thing, "__dict__")
    return list(inside.values()) if isinstance(inside, dict) else []


def _held_in_turn(values: list[Any]) -> list[Any]:
    """What values hold as attributes or entries, what those hold, and so on, the nearest first."""
    found: dict[int, Any] = {}
    waiting = deque(values)
    while waiting and len(found) < MOST_HELD:
        value = waiting.popleft()
        if id(value) in found or isinstance(value, type) or inspect.isroutine(value):
            continue
        inside = _attributes(value)
        if isinstance(value, dict | list | tuple):
            inside += itertools.islice(value.values() if isinstance(value, dict) else value, MOST_HELD)
        if inside or isinstance(value, _GENERATORS):
            found[id(value)] = value
            waiting += inside
    return list(found.values())


_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_SHARED = threading.RLock()  # what is seeded belongs to all threads: one block at a time


class _Kept:
    """What `random` and `numpy.random` would draw next, put back when the last of those who are inside leaves.

    That takes as long as a hundred calls of a short function, so whoever runs many blocks is inside all the while.
    """

    def __init__(self) -> None:
        self.inside = 0
        self.states: Any = None

    def __enter__(self) -> None:
        with _SHARED:
            if self.inside == 0:
                self.states = random.getstate(), np.random.get_state()  # noqa: NPY002, what audited code may draw from
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with _SHARED:
            self.inside -= 1
            if self.inside == 0:
                random.setstate(self.states[0])
                np.random.set_state(self.states[1])  # noqa: NPY002


kept = _Kept()


@contextlib.contextmanager
def seeded(seed: int, generators: Sequence[Any]) -> Iterator[None]:
    """All randomness that can be seeded, seeded for a block; `random` and `numpy.random` are put back after it."""
    words: AnyArray = np.random.SeedSequence(seed).generate_state(4 + 4 * len(generators))
    with _SHARED, kept:
        random.seed(int(words[0]) << 32 | int(words[1]))
        np.random.seed(words[:4])  # noqa: NPY002
        if "numba" in sys.modules:
            _numba_seed()(int(words[2]))
        if "torch" in sys.modules:
            _torch_seed()(int(words[3]))
        for generator, place in zip(generators, itertools.count(4, 4), strict=False):
            _reseed(generator, words[place : place + 4])
        yield


def states(generators: Sequence[Any]) -> list[bytes]:
    """What these generators, `random`, `numpy.random` and torch would draw next: others once one of them has drawn."""
    torch = sys.modules.get("torch")
    known = [random.getstate(), np.random.get_state()]  # noqa: NPY002
    known += [] if torch is None else [torch.get_rng_state().numpy()]
    return [pickle.dumps(state) for state in (*known, *map(_state, generators))]


def _state(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.getstate()


@contextlib.contextmanager
def system_draws() -> Iterator[set[str]]:
    """Whether the operating system was asked for random numbers: an empty set, "drawn" in it if so.

    Seen is what asks by way of Python: `os.urandom`, `secrets`, `SystemRandom`, numpy's generators without a seed.
    Modules often ask when they are loaded, so nothing counts while some are.
    """
    drawn: set[str] = set()
    ask, loaded = os.urandom, len(sys.modules)

    def urandom(size: int, /) -> bytes:
        drawn.add("drawn")
        return ask(size)

    with _SHARED:
        places = [(os, "urandom"), (random, "_urandom")]
        try:
            for module, name in places:
                setattr(module, name, urandom)
            yield drawn
        finally:
            for module, name in places:
                setattr(module, name, ask)
            if len(sys.modules) > loaded:
                drawn.clear()


@contextlib.contextmanager
def set_aside() -> Iterator[None]:
    """What audited code draws next, put back in the end: until then an attack may draw, and seed, as it likes.

    The attack begins with seed 0 each time. With the random numbers that the code gets next, the runs that it judges
    would not be independent of the next ones; and if it left a seed behind, the code would repeat itself.
    """
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state(), None if torch is None else torch.get_rng_state()  # noqa: NPY002
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if torch is not None:
        _torch_seed()(0)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(states[2])


def this_process() -> tuple[str, int]:
    """What tells this process from all others."""
    return platform.node(), os.getpid()


_refreshed: set[tuple[str, int]] = set()
_noted: list[Any] | None = None  # the generators of this process, for workers that are forked from it


def note_generators(before_a_fork: bool = True) -> None:
    """Look for all generators before workers are forked, so that not each has to; or forget them again.

    To look at all objects takes a tenth of a second or more, and in a worker a copy of the memory that they are in.
    """
    global _noted
    _noted = all_generators() if before_a_fork else None


def begin_in_worker() -> None:
    """In a new worker: what it has from the process that it was forked from was looked at there."""
    if _noted is not None:
        gc.freeze()  # leaves these objects out of the next look, and costs nothing


def refresh_elsewhere(home: tuple[str, int], target: Any) -> None:
    """In another process than the audit's, give every generator there is random numbers of its own, once.

    A process that was forked, or that loads the same modules, begins with the random numbers of all others. Generators
    that the audit finds are seeded before each block; this is for those that it does not find.
    """
    here = this_process()
    if here == home or here in _refreshed:
        return
    _refreshed.add(here)
    target.load()
    for generator in (*(_noted or ()), *all_generators()):
        _reseed(generator, np.frombuffer(os.urandom(16), dtype=np.uint32))


def all_generators() -> list[Any]:
    """Every generator of this process, wherever it is held; that takes a tenth of a second or more."""
    found = []
    for thing in gc.get_objects():
        kind = type(thing)  # not what a proxy would say of itself, which may warn or load something
        if issubclass(kind, _GENERATORS) and not issubclass(kind, random.SystemRandom):
            found.append(thing)
    return found


def _reseed(generator: Any, words: AnyArray) -> None:
    if isinstance(generator, np.random.Generator):
        kind = type(generator.bit_generator)
        generator.bit_generator.state = kind(np.random.SeedSequence(words.tolist())).state
    elif isinstance(generator, np.random.RandomState):
        generator.seed(words)
    else:
        generator.seed(int.from_bytes(words.tobytes(), "little"))


@cache
def _torch_seed() -> Callable[[int], Any]:
    """`torch.manual_seed`, which keeps the seed and a text of the whole stack for each kind of device that may yet be
    started: that takes a millisecond or more, each block anew. Where there is no such device only what is left of it.
    """
    torch = sys.modules["torch"]
    devices = getattr(torch, "accelerator", None)
    if devices is None:  # before torch 2.6
        return torch.manual_seed  # type: ignore[no-any-return]
    kind = devices.current_accelerator()  # that torch was built for, told without starting it
    none = kind is None or (kind.type == "cuda" and torch.cuda.device_count() == 0)
    return torch.default_generator.manual_seed if none else torch.manual_seed  # type: ignore[no-any-return]


@cache
def _numba_seed() -> Callable[[int], None]:
    """Compiled code has random states of its own, which only compiled code can seed."""
    numba = importlib.import_module("numba")

    def seed(value: int) -> None:
        np.random.seed(value)  # noqa: NPY002
        random.seed(value)

    return numba.njit(seed)  # type: ignore[no-any-return]
