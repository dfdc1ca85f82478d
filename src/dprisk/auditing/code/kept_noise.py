"""Code that keeps its noise: drawn when it is first called, and given again from then on, as a cache does.

An audit calls code many times and takes the runs as independent. Of code that keeps its noise they are copies of one
run: what they tell is luck, and "violated" may be said of correct code. So such code is refused. It is told from code
without noise, which is rightly found out, by the random numbers that it draws: some in the first call with a record,
and none in later ones, or fewer if it adds fresh noise to what it keeps. It must be looked at before anything else
calls it.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dprisk.auditing.code.called import CodeTarget
from dprisk.auditing.code.fingerprints import fingerprint
from dprisk.auditing.code.outputs import same_outputs
from dprisk.auditing.code.randomness import all_generators, kept, seeded, states, system_draws
from dprisk.errors import DpriskError, TargetError, fail
from dprisk.types import AnyArray

RECORDS = 4  # that are tried, each in a few calls
PATIENCE, LONG = 0.2, 5.0  # seconds of calls after which no more are tried, and of copies
REPEATED, BLOCKS = 512, 128  # calls in a block, and blocks, before code is refused: noise drawn in advance is used up
LATER = 8  # calls that draw fewer random numbers than the first one, all as many, before that counts
COPIES = 1024  # of what is called, as it was before its first call, that show whether what it keeps is noise
SEVERAL, OFTEN = 4, 64  # copies among so many that give something else than one that gives always the same
KEPT_FOR = 2  # records with which that is so: the first call of all may prepare something for everybody
CHANGEABLE = list, dict, set, bytearray, np.ndarray

_refused: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by id: they have their noise by now, and draw none


def require_fresh_noise(target: CodeTarget) -> bool:
    """Refuse code that draws noise when it is first called with a record, and in later calls gives the same again.

    A few calls with each of a few records tell, one record's if they are slow. Before code is refused it is called up
    to 65,536 times more, all generators of the process watched: code that draws in advance then gives other outputs, or
    draws. If what is called can be copied, copies of it must also give other outputs in their first calls, or else it
    keeps no noise. Refused as well is code that adds fresh noise to what it keeps, as all of RAPPOR's client does: from
    the same seed it draws more random numbers in the first call with a record than in any later one, with each of two
    records; and code that draws in each call but gives what its first draw gave (`dict.setdefault`).

    What is inside a `functools.lru_cache` is tried in its stead, since the cache may be full already. Code that fails
    is left to fail where that is told. Of code that is not refused it tells whether it draws in advance: some calls
    with a record draw, others do not, or draw more.
    """
    code = target.loaded
    holder = code.__self__ if inspect.ismethod(code) else code
    inside, in_advance = _inside_cache(code), False
    keeps = _refused.get(id(holder)) is holder
    with contextlib.suppress(DpriskError):
        if not keeps:
            watch = _Watch(target, inside)
            keeps = watch.keeps() if inside is None else watch.varies()
            in_advance = watch.in_advance
    if keeps:
        with contextlib.suppress(TypeError):  # some objects cannot be remembered without being kept
            _refused[id(holder)] = holder
        _refuse(target, holder, inside)
    return in_advance


def _refuse(target: CodeTarget, holder: Any, inside: Any) -> None:
    remedy = f"a function that makes a fresh object in each run, as {_fresh(target, holder)} does"
    fail(
        f"{target.name} keeps its noise: it draws random numbers when it is first called and keeps them for later "
        "calls, so its runs are not independent and an audit of them says nothing; audit "
        f"{remedy if inside is None else f'what is inside its cache, {target.name}.__wrapped__'}.",
        TargetError,
    )


def _fresh(target: CodeTarget, holder: Any) -> str:
    """How to make what is called anew in each run, as far as its class tells."""
    own = not inspect.isroutine(holder) and type(holder).__module__.partition(".")[0] not in ("dprisk", "functools")
    made = type(holder).__name__ if own else "Client"
    method = f".{target.loaded.__name__}" if own and inspect.ismethod(target.loaded) else ""
    return f"`lambda record, rng: {made}(){method}(record, rng)`"


def _copied(code: Any) -> Any:
    """A copy of an object with all that it holds; None of a function, whose closure and globals stay the same."""
    if inspect.isfunction(code) or inspect.isbuiltin(code):
        return None
    try:
        return copy.deepcopy(code)
    except Exception:  # of an object that has its own way to be copied, or none
        return None


def _inside_cache(code: Any) -> Any:
    """The function inside a `functools.lru_cache`, or one that tells as much of itself; None if there is none."""
    ways: list[Any] = [code, getattr(code, "__call__", None)]  # noqa: B004, what an object is called by
    for call in ways:
        if hasattr(call, "cache_info") and hasattr(call, "__wrapped__") and call.cache_info()[2] != 0:
            inside, owner = call.__wrapped__, getattr(call, "__self__", None)
            return inside if owner is None else MethodType(inside, owner)
    return None


@dataclass(frozen=True)
class _Call:
    """What one block gave, whether it drew random numbers, and where it left the generators that were seeded."""

    outputs: AnyArray
    drew: bool
    left: list[bytes]


class _Watch:
    """A few calls of a target, from seeds, and whether random numbers are drawn in them."""

    def __init__(self, target: CodeTarget, code: Any = None) -> None:
        places = np.unique(np.linspace(0, target.size - 1, RECORDS).astype(np.int64))
        some = tuple(target.records[place] for place in places.tolist())
        few = replace(
            target,
            code=target.code if code is None else code,
            records=some,
            pairs=None,
            changes_records=any(isinstance(record, CHANGEABLE) or hasattr(record, "__array__") for record in some),
        )
        self.target, self.seeded = few.watchable()
        self.unused = _copied(target.loaded if code is None else code)
        self.others: list[Any] = []
        self.seconds = 0.0
        self.in_advance = False

    def keeps(self) -> bool:
        """Whether the first call with a record draws what the next ones, from the same seed, do not draw again."""
        partly = 0
        for numbers in self._asked():
            first, again = self._call(numbers, 0), self._call(numbers, 0)
            self.in_advance |= first.left != again.left or first.drew > again.drew
            if not again.drew:
                if same_outputs(first.outputs, again.outputs):
                    if first.drew and self._stays(numbers) and not self._is_no_noise(numbers):
                        return True
                    self.others = self.others or all_generators()  # no noise so far, or drawn from where nobody looked
            elif first.left != again.left:
                partly += self._settled(numbers, again)
                if partly >= KEPT_FOR:
                    return True
            elif self._drops(numbers, again):
                return True
        return False

    def varies(self) -> bool:
        """Whether calls draw random numbers, or give other outputs."""
        for numbers in self._asked():
            one, two = self._call(numbers, 0), self._call(numbers, 1)
            if one.drew or two.drew or not same_outputs(one.outputs, two.outputs):
                return True
        return False

    def _asked(self) -> Iterator[list[int]]:
        """The record of each call, the first in any case and others while there is time; a batch has them all."""
        everybody = list(range(self.target.size))
        for numbers in [everybody] if self.target.batch else [[number] for number in everybody]:
            yield numbers
            if self.seconds > PATIENCE:
                return

    def _settled(self, numbers: list[int], again: _Call) -> bool:
        """Whether from now on as many random numbers are drawn from the same seed: none were drawn in advance."""
        return all(self._call(numbers, 0).left == again.left for _ in range(LATER))

    def _is_no_noise(self, numbers: list[int]) -> bool:
        """Whether what it keeps is in what is called, and copies of that, not called before, all give the same."""
        return self._holds_it and not self._copies_differ(numbers, COPIES, 1)

    def _drops(self, numbers: list[int], before: _Call) -> bool:
        """Whether what is drawn makes no difference, but did in the first call: copies give other outputs in theirs."""
        for seed in range(1, LATER):
            if self.seconds > PATIENCE or not same_outputs(before.outputs, self._call(numbers, seed).outputs):
                return False
        several = self._holds_it and self._copies_differ(numbers, OFTEN, SEVERAL)
        return several and self._stays(numbers, drawing=True)

    @property
    def _holds_it(self) -> bool:
        """Whether calls changed what is called; otherwise they keep something elsewhere, if anything."""
        return self.unused is not None and fingerprint(self.unused) != fingerprint(self.target.loaded)

    def _copies_differ(self, numbers: list[int], count: int, several: int) -> bool:
        """Whether several of so many copies give other outputs in their first call than one, or there is no time."""
        started, first, others = time.perf_counter(), self._of_copy(numbers, 0), 0
        for seed in range(1, count):
            others += not same_outputs(first, self._of_copy(numbers, seed))
            if others >= several or time.perf_counter() - started > LONG:
                return True
        return False

    def _of_copy(self, numbers: list[int], seed: int) -> AnyArray:
        with kept:
            return replace(self.target, code=copy.deepcopy(self.unused)).repeat(numbers, seed)

    def _stays(self, numbers: list[int], drawing: bool = False) -> bool:
        """Whether very many calls, each from a seed of its own, give the same, though something was drawn before.

        Unless they may be `drawing`, none of them draws, whichever generator it might draw from.
        """
        self.others = all_generators()
        block = numbers if self.target.batch else numbers * REPEATED
        started, before = self.seconds, self._call(block, 0)
        for seed in range(1, BLOCKS):
            call = self._call(block, seed)
            alike = self.target.batch or same_outputs(call.outputs[1:], call.outputs[:-1])
            draws = (before.drew or call.drew) and not drawing
            if draws or not (alike and same_outputs(before.outputs, call.outputs)):
                return False
            if self.seconds - started > PATIENCE and not self.target.batch:
                break
        return True

    def _call(self, numbers: list[int], seed: int) -> _Call:
        """One block from this seed."""
        watched = [*self.seeded, *self.others]
        with kept, system_draws() as drawn:
            with seeded(seed, self.seeded):
                before = states(watched)
            started = time.perf_counter()
            outputs = self.target.repeat(numbers, seed)
            self.seconds += time.perf_counter() - started
            after, left = states(watched), states(self.seeded)
        return _Call(outputs, after != before or bool(drawn), left)
