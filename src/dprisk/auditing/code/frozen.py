"""One output as something that can be counted and compared: it and its kind, whatever library it comes from."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from dprisk.auditing.code.failures import Failure
from dprisk.errors import TargetError, fail
from dprisk.types import AnyArray

SIMPLE = frozenset({bool, int, float, complex, str, bytes, type(None)})  # which can be counted as they are
_SUBCLASSED = (int, float, bytes, bytearray, memoryview)
_UNNAMED = frozenset({tuple, list, dict})  # of which the entries alone are looked at; of other kinds the name, too


def frozen(value: Any) -> Any:
    """The same as something that can be counted: lists, arrays and tables as tuples, with the name of an odd kind."""
    if is_simple(value):
        return value
    if type(value) is dict and is_flat(value):
        return tuple(value.items())
    kind: Any = type(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return _of_kind(value, zip(kind._fields, map(frozen, value), strict=False))
    if isinstance(value, tuple | list | deque):
        return _of_kind(value, map(frozen, value))
    if isinstance(value, np.ndarray):
        return _frozen_array(value)
    if isinstance(value, set | frozenset):
        return frozenset(frozen(entry) for entry in value)
    if isinstance(value, dict):
        return _of_kind(value, ((frozen(key), frozen(entry)) for key, entry in value.items()))
    if isinstance(value, np.generic):
        return value if _is_narrow(type(value)) else value.item()
    return _frozen_plain(value) if isinstance(value, _SUBCLASSED) else _frozen_object(value)


def _is_narrow(kind: type) -> bool:
    """Whether numbers of this type of numpy are floats or complex numbers, and not those of Python."""
    return issubclass(kind, np.inexact) and not issubclass(kind, float | complex)


def _frozen_plain(value: Any) -> tuple[str, Any]:
    """The same of what is nearly a plain number or bytes, with its class: an entry of an enumeration, a bytearray."""
    plain = next((kind for kind in (int, float) if isinstance(value, kind)), bytes)
    return type(value).__name__, plain(value)


def _of_kind(value: Any, entries: Iterable[Any]) -> tuple[Any, ...]:
    kind = type(value)
    return tuple(entries) if kind in _UNNAMED else (kind.__name__, *entries)


def is_simple(value: Any) -> bool:
    """Whether it can be counted as it is, and nobody can change it."""
    return type(value) in SIMPLE or (type(value) is tuple and are_simple(value))


def is_flat(value: Any) -> bool:
    """Whether it is an array of numbers, or a list, set or dict of simple values: a copy of it shares nothing."""
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    if type(value) is dict:
        return are_simple(value) and are_simple(value.values())
    return type(value) in (list, set) and are_simple(value)


def are_simple(entries: Iterable[Any]) -> bool:
    """Whether all are of Python's own kinds that can be counted, and that nobody can change."""
    return SIMPLE.issuperset(map(type, entries))


def can_change(value: Any) -> bool:
    """Whether somebody may write into it: what is counted by its contents stays as it is."""
    if is_simple(value):
        return False
    try:
        hash(value)
    except TypeError:
        return True
    kind: Any = type(value)
    return kind.__hash__ is object.__hash__


def _frozen_array(array: AnyArray) -> Any:
    if array.dtype.names:
        return (*frozen(array.tolist()), repr(array.dtype.names))
    if array.size == 0 and array.ndim > 1:
        return (f"no entries, shape {array.shape}",)
    masked = isinstance(array, np.ma.MaskedArray)  # of which a list has None
    if masked or not _is_narrow(array.dtype.type):
        return frozen(array.tolist())
    return tuple(array) if array.ndim == 1 else tuple(map(_frozen_array, array)) if array.ndim else array[()]


def _labels(value: Any) -> tuple[str, ...]:
    """The names of a data frame or series, its columns and rows, and of what type they are: more than its entries."""
    named = {part: getattr(value, part, None) for part in ("name", "columns", "index")}
    told = {part: held for part, held in named.items() if held is not None and not callable(held)}
    texts = [f"{part} {held if part == 'name' else list(held)}" for part, held in told.items()]
    for part, held in told.items():
        names = [name for name in getattr(held, "names", ()) if name is not None]
        texts += [f"{part} named {names}"] if names else []
    if told:
        types = _types_of(value)
        texts += [f"types {', '.join(map(str, types))}"] if types else []
        texts += _categories(types) if "index" in told else []  # those of polars are of all frames so far
    return tuple(texts)


def _types_of(value: Any) -> list[Any]:
    """Those of the columns of a data frame, and that of a series."""
    types = getattr(value, "dtypes", getattr(value, "dtype", None))
    if types is None:
        return []
    return [types] if np.ndim(types) == 0 else list(types)


def _categories(types: list[Any]) -> list[str]:
    """What columns of a data frame may hold, whether they do or not; nothing where there are none."""
    found = [list(kind.categories) for kind in types if getattr(kind, "categories", None) is not None]
    return [f"categories {found}"] if found else []


def _frozen_object(value: Any) -> Any:
    """The same of what is no list, dict, set, array or number."""
    kind: Any = type(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, Failure | type):
        named = [(field.name, frozen(getattr(value, field.name))) for field in dataclasses.fields(value)]
        return kind.__name__, *named
    if isinstance(value, Decimal) and value.is_snan():
        return repr(value)  # which cannot be counted
    if not isinstance(value, str) and hasattr(value, "__array__"):  # data frames, series, tensors
        entries, labels = frozen(np.asarray(value)), _labels(value)
        return (*(entries if isinstance(entries, tuple) else (entries,)), *labels) if labels else entries
    if kind.__hash__ is None:
        fail(f"An output is a {kind.__name__}, which cannot be compared; return numbers, text or tuples.", TargetError)
    if kind.__hash__ is object.__hash__ and value is not None:
        what = f"numbers, text or tuples{' (post=tuple does that)' if hasattr(value, '__next__') else ''}."
        fail(f"An output is a {kind.__name__}, which is equal to no other; return what it holds: {what}", TargetError)
    return value
