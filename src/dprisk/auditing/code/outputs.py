"""What audited code returned, as arrays: one rule for all outputs, run here or recorded elsewhere."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dprisk.errors import TargetError, fail, require
from dprisk.types import AnyArray

_PLAIN: dict[type, type[np.generic]] = {bool: np.bool_, int: np.int64, float: np.float64}
_NUMBER = (bool, int, float, np.bool_, np.integer, np.floating)


def as_outputs(outputs: Sequence[Any]) -> AnyArray:
    """Outputs along the first axis.

    - Numbers become a bool, integer or float array; lists or arrays of numbers, all of one shape, the rows of a larger
      array.
    - Anything else becomes a one-dimensional array of objects that can be counted: text, tuples such as
      (value, seed), sets. Lists, arrays and sets inside a tuple become tuples and frozen sets.
    - Lists of unequal length and objects that are only equal to themselves are refused.

    >>> as_outputs([1, 0, 2]), as_outputs([[True, False], [True, True]]).shape
    (array([1, 0, 2]), (2, 2))
    >>> as_outputs([(1, 77), (0, 78)])
    array([(1, 77), (0, 78)], dtype=object)
    """
    if isinstance(outputs, np.ndarray) and outputs.ndim > 0 and outputs.dtype.kind in "biuf":
        return outputs
    values = list(outputs)
    kinds = set(map(type, values))
    require(kinds != {type(None)}, "Every output is None; does the code return its output?", TargetError)
    if (plain := _plain(values, kinds)) is not None:
        return plain
    if values and all(issubclass(kind, _NUMBER) for kind in kinds):
        array = np.asarray(values)
        whole = all(issubclass(kind, bool | int | np.bool_ | np.integer) for kind in kinds)
        return array if array.dtype.kind in ("biu" if whole else "f") else _objects(values)  # whole beyond 64 bits
    if values and all(issubclass(kind, list | np.ndarray) for kind in kinds):
        even = _even_rows(values, kinds)
        return _rows(values) if even is None else even
    return as_objects(values)


def _plain(values: list[Any], kinds: set[type]) -> AnyArray | None:
    """Python's numbers of one kind, quicker than numpy finds out what they are; None of others and beyond 64 bits."""
    kind = _PLAIN.get(next(iter(kinds))) if len(kinds) == 1 else None
    try:
        return None if kind is None else np.fromiter(values, dtype=kind, count=len(values))
    except OverflowError:
        return None


def _even_rows(values: list[Any], kinds: set[type]) -> AnyArray | None:
    """What `_rows` gives, quicker, of arrays of one shape, or of lists of Python's numbers; None of others."""
    if kinds == {np.ndarray}:
        with contextlib.suppress(ValueError):  # unequal shapes
            stacked = np.asarray(values)
            return stacked if stacked.dtype.kind in "biuf" else None
    if kinds != {list} or len(set(map(len, values))) != 1:
        return None
    entries: list[Any] = []
    for row in values:
        entries += row
    flat = _bits(entries)
    if flat is None:
        flat = _plain(entries, set(map(type, entries)))
    return None if flat is None else flat.reshape(len(values), -1)


def _bits(entries: list[Any]) -> AnyArray | None:
    """True and False, and what equals them, as an array; None of others."""
    with contextlib.suppress(TypeError):  # no whole number, or nothing that can be in a set
        if entries and set(entries) <= {False, True} and type(entries[0]) is bool:
            return np.frombuffer(bytearray(entries), dtype=bool)
    return None


def _rows(values: list[Any]) -> AnyArray:
    """Lists and arrays of one shape, stacked."""
    lists = all(type(value) is list for value in values)
    try:
        stacked = np.asarray(values) if lists else np.stack([np.asarray(value) for value in values])
    except ValueError:
        such = ""
        with contextlib.suppress(ValueError):  # a row is ragged itself
            shapes = sorted({np.asarray(value).shape for value in values})
            such = f", such as {shapes[0]} and {shapes[-1]}"
        fail(
            f"The outputs are lists or arrays of unequal shape{such}; return tuples, which are compared as a whole, or "
            "rows of equal length.",
            TargetError,
        )
    if stacked.dtype.kind in "biuf" and not _rounds(stacked, values):
        return stacked
    return as_objects(values)


def _rounds(stacked: AnyArray, values: list[Any]) -> bool:
    """Whether whole numbers beyond 64 bits were rounded to fit."""
    return stacked.dtype.kind == "f" and all(
        isinstance(value, list) and value and all(isinstance(entry, int) for entry in value) for value in values
    )


def as_objects(values: list[Any]) -> AnyArray:
    """Values along one axis, as what can be counted."""
    return _objects([_frozen(value) for value in values])


def _objects(values: list[Any]) -> AnyArray:
    return np.fromiter(values, dtype=object, count=len(values))


def _frozen(value: Any) -> Any:
    """The same as something that can be counted."""
    if isinstance(value, tuple | list):
        return tuple(_frozen(entry) for entry in value)
    if isinstance(value, np.ndarray):
        return _frozen(value.tolist())
    if isinstance(value, set | frozenset):
        return frozenset(_frozen(entry) for entry in value)
    if isinstance(value, np.generic):
        return value.item()
    kind: Any = type(value)
    if kind.__hash__ is None:
        fail(f"An output is a {kind.__name__}, which cannot be compared; return numbers, text or tuples.", TargetError)
    if kind.__hash__ is object.__hash__ and value is not None:
        what = f"numbers, text or tuples{' (post=tuple does that)' if hasattr(value, '__next__') else ''}."
        fail(f"An output is a {kind.__name__}, which is equal to no other; return what it holds: {what}", TargetError)
    return value
