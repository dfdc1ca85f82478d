"""A mechanism on a whole data set, seen as a channel from one person's record."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dprisk.auditing.code.reading import as_target, listed_records, require_function
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.target import Target, name_of
from dprisk.errors import TargetError, as_whole, fail, require
from dprisk.types import AnyArray


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
    failures: bool = False,
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
    require_function(code)
    if isinstance(others, str | Mapping) or hasattr(others, "columns") or not hasattr(others, "__iter__"):
        table = "of a table give a list of its rows, and a function that makes a table of them."
        kind = type(others).__name__
        fail(f"The data of the others are a list or an array of records, not a {kind}; {table}", TargetError)
    base: Any = others if isinstance(others, np.ndarray) else list(others)
    if place is not None:
        place = as_whole("place", place, least=0)
        require(place < len(base), f"place must be one of the {len(base)} places of the data set, got {place}")
    listed = listed_records(records) or ()
    if isinstance(base, np.ndarray):
        joint = np.asarray(list(listed))
        one, rows = joint.shape[1:], base.shape[1:]
        require(one == rows, f"A record of shape {one} does not fit a data set of rows of shape {rows}.", TargetError)
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
        failures=failures,
        name=f"{shown} on {len(base)} others" if place is None else f"{shown} on {len(base)} people",
    )


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
