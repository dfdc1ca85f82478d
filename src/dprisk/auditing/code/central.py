"""A mechanism on a whole data set, seen as a channel from one person's record."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.auditing.code.called import CodeTarget
from dprisk.auditing.code.reading import as_target, listed_records, require_function
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.target import Target, name_of
from dprisk.auditing.code.whole_data import claim_of, of_data
from dprisk.errors import ParameterError, TargetError, as_whole, fail, require, require_relation
from dprisk.guarantees.base import Relation
from dprisk.tables import as_floats
from dprisk.types import AnyArray

FAR = 10.0  # times the width of the bounds that a probe lies outside them


class _LeftOut:
    """What stands for the record of somebody who is not in the data."""

    def __repr__(self) -> str:
        return "left out"

    def __reduce__(self) -> str:
        return "LEFT_OUT"


LEFT_OUT = _LeftOut()


def central(
    function: Any,
    others: Sequence[Any] | AnyArray,
    records: Sequence[Any] | None = None,
    claim: Any = None,
    *,
    neighbours: Relation = "replace-one",
    place: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    post: Callable[[Any], Any] | None = None,
    timeout: float | None = None,
    failures: bool = False,
    name: str | None = None,
) -> Target:
    """A mechanism on a whole data set, `function(dataset)`, seen as a channel from one person's record.

    Everybody else's data is fixed: the data set is `others` with the target's record appended, or put at `place`
    instead of what is there. Each run gets a fresh copy, an array if `others` is one (of a type that holds all records)
    and else a list; what a list holds is not copied. Instead of a function it may be an OpenDP measurement, a model
    with `fit` or an algorithm with `quick_result` (see `whole_data`), whose claim is known. All other options are those
    of `as_target`.

    With neighbours="add-remove" the target's one record is in the data or left out. Without `records` it is the one at
    `place` of the data given, by default the last.

    >>> total = central(lambda data, rng: sum(data) + rng.laplace(), others=[1, 0, 1], records=[0, 1])
    >>> total.sample(np.array([0, 1]), np.random.default_rng(0)).shape
    (2,)
    >>> central(len, [1, 0, 1], neighbours="add-remove").sample(np.array([0, 1]), np.random.default_rng(0))
    array([3, 2])
    """
    reference = Reference.parse(function) if isinstance(function, str) else None
    code = of_data(reference.load() if reference else function)
    require_function(code)
    require_relation(neighbours)
    base, listed = _listed_data(others), listed_records(records)
    if place is not None:
        place = as_whole("place", place, least=0)
        require(place < len(base), f"place must be one of the {len(base)} places of the data set, got {place}")
    if neighbours == "add-remove":
        base, listed, place = _in_or_out(base, listed, place)
    if listed is None:
        fail("Which records may the target have? Give records=[...], or neighbours='add-remove'.", TargetError)
    if isinstance(base, np.ndarray):
        base = _wide_enough(base, [record for record in listed if record is not LEFT_OUT])
    whole = _Central(reference or code, base, place)
    shown = name or (reference.text if reference else name_of(code))
    target = as_target(
        whole,
        listed,
        claim_of(code, neighbours) if claim is None else claim,
        parameters=parameters,
        post=post,
        timeout=timeout,
        failures=failures,
        name=f"{shown} on {len(base)} others" if place is None else f"{shown} on {len(base)} people",
    )
    return replace(target, relation=neighbours) if isinstance(target, CodeTarget) else target


def probes(low: npt.ArrayLike, high: npt.ArrayLike) -> list[Any]:
    """Records that code for numbers between two bounds often forgets: the bounds, far outside them, infinite, NaN.

    Of bounds that are lists, one for each column, they are rows.

    >>> probes(0, 1)
    [0.0, 1.0, -10.0, 11.0, inf, -inf, nan]
    """
    least, most = (as_floats(given, "Bounds", ParameterError) for given in (low, high))
    require(
        least.shape == most.shape and least.ndim <= 1 and bool(np.all(np.isfinite([least, most]) & (least <= most))),
        f"Bounds are two numbers, or two lists of as many, the lower ones first; got {low!r} and {high!r}",
    )
    width = np.maximum(most - least, 1.0)
    odd = [np.full_like(least, value) for value in (np.inf, -np.inf, np.nan)]
    return [row.tolist() for row in (least, most, least - FAR * width, most + FAR * width, *odd)]


def _listed_data(others: Any) -> Any:
    """The data of the others, as an array or a list of its own."""
    if isinstance(others, str | Mapping) or hasattr(others, "columns") or not hasattr(others, "__iter__"):
        table = "of a table give a list of its rows, and a function that makes a table of them."
        kind = type(others).__name__
        fail(f"The data of the others are a list or an array of records, not a {kind}; {table}", TargetError)
    return others if isinstance(others, np.ndarray) else list(others)


def _in_or_out(base: Any, listed: tuple[Any, ...] | None, place: int | None) -> tuple[Any, tuple[Any, ...], None]:
    """The others, and the one record that is among them or left out."""
    if listed is None:
        require(len(base) > 0, "Nobody can be left out of no data; give records=[...] with one record.", TargetError)
        place = len(base) - 1 if place is None else place
        one = base[place]
        rest = np.delete(base, place, axis=0) if isinstance(base, np.ndarray) else base[:place] + base[place + 1 :]
        return rest, (one, LEFT_OUT), None
    if len(listed) != 1 or place is not None:
        fail(
            "With neighbours='add-remove' one record is in the data or left out: give one in records, or leave records "
            "out for the one at `place`. Two records that may be added are no neighbours of each other.",
            TargetError,
        )
    return base, (*listed, LEFT_OUT), None


def _wide_enough(base: AnyArray, records: list[Any]) -> AnyArray:
    """The same data in an array of a type that holds all records."""
    joint = np.asarray(records)
    one, rows = joint.shape[1:], base.shape[1:]
    require(one == rows, f"A record of shape {one} does not fit a data set of rows of shape {rows}.", TargetError)
    return base.astype(np.result_type(base, joint))


class _Central:
    """A function of a data set as one of the target's record."""

    def __init__(self, code: Any, base: Any, place: int | None) -> None:
        self.code, self.base, self.place = code, base, place
        self.function: Callable[..., Any] = of_data(code.load()) if isinstance(code, Reference) else code
        self.__qualname__ = name_of(self.function)
        self.__module__ = getattr(self.function, "__module__", None) or ""
        with contextlib.suppress(TypeError, ValueError):  # some built-in functions do not tell
            self.__signature__ = inspect.signature(self.function)

    def __call__(self, record: Any, **parameters: Any) -> Any:
        return self.function(self._with(record), **parameters)

    def _with(self, record: Any) -> Any:
        if record is LEFT_OUT:
            return self.base.copy()
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
