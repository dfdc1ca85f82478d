"""What audited code returned, as arrays: one rule for all outputs, run here or recorded elsewhere.

They can be compared with each other: numbers mostly as numbers, anything else by how it is written.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import reprlib
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from dprisk.auditing.code.failures import Failure
from dprisk.auditing.code.frozen import SIMPLE, frozen
from dprisk.errors import TargetError, fail, require
from dprisk.types import AnyArray, IntArray

_PLAIN: dict[type, type[np.generic]] = {bool: np.bool_, int: np.int64, float: np.float64}
_EXACT = SIMPLE - {float, int}  # which are written in one way
_LABELLED = (np.ma.MaskedArray, np.recarray)  # arrays of which the entries do not tell all
NUMBER = (bool, int, float, np.bool_, np.integer, np.floating)
_DTYPE, _NDIM = attrgetter("dtype"), attrgetter("ndim")
_HEAD = len(marshal.dumps([], 2))
HARDLY = 0.9  # of outputs that are seen once, beyond which comparing whole ones tells nothing


class _Brief(reprlib.Repr):
    """An output as people read it, not too long; a failure with all that it says."""

    def repr_Failure(self, failure: Failure, level: int) -> str:
        """All of it."""
        return repr(failure)


BRIEFLY = _Brief()
BRIEFLY.maxlist = BRIEFLY.maxtuple = 12  # entries of an output that are shown
LONG = 200  # characters of an output beyond which its digest is compared instead


def as_outputs(outputs: Sequence[Any]) -> AnyArray:
    """Outputs along the first axis.

    - Numbers of one kind become a bool, integer or float array; lists or arrays of numbers, all of one kind and shape,
      the rows of a larger array.
    - Anything else becomes a one-dimensional array of objects that can be counted: text, None, tuples such as
      (value, seed), sets. Lists, arrays, tables and tensors become tuples, dicts and dataclasses tuples of their
      entries. What differs from output to output stays visible: 0 beside 0.0, a shorter list, a float32, the class of
      a named tuple. Not told apart are lists, tuples and arrays, sets and frozen sets, and whole numbers of any width.
    - Objects that are only equal to themselves are refused.

    >>> as_outputs([1, 0, 2]), as_outputs([[True, False], [True, True]]).shape
    (array([1, 0, 2]), (2, 2))
    >>> as_outputs([(1, 77), (0, 78)])
    array([(1, 77), (0, 78)], dtype=object)
    """
    if isinstance(outputs, np.ndarray) and outputs.ndim > 0 and outputs.dtype.kind in "biuf":
        return outputs
    values = outputs if type(outputs) is list else list(outputs)
    kinds = set(map(type, values))
    if (plain := _plain(values, kinds)) is not None:
        return plain
    if values and all(issubclass(kind, NUMBER) and not issubclass(kind, np.timedelta64) for kind in kinds):
        if not all(map(_is_plain, kinds)):
            return as_objects(values)
        return numbers_of_one_kind(values) if len({_kind(kind) for kind in kinds}) == 1 else _objects(values)
    try:
        return _rows_or_objects(values, kinds)
    except RecursionError:
        what = "An output holds itself, or is nested too deeply to be compared"
        raise TargetError(f"{what}; return numbers, text or tuples.") from None


def _rows_or_objects(values: list[Any], kinds: set[type]) -> AnyArray:
    if values and all(map(_is_row, kinds)):
        even = _even_rows(values, kinds)
        rows = _rows(values) if even is None else even
        return rows if rows.size else as_objects(values)
    return as_objects(values)


def _is_row(kind: type) -> bool:
    return kind is list or (issubclass(kind, np.ndarray) and not issubclass(kind, _LABELLED))


def _is_plain(number: type) -> bool:
    """Whether a type of numbers is Python's or numpy's, and no class of somebody who gives them a meaning."""
    return number in _PLAIN or issubclass(number, np.generic)


def numbers_of_one_kind(values: list[Any]) -> AnyArray:
    """Numbers as an array, whatever types they have; as objects where whole ones do not fit in 64 bits."""
    array = np.asarray(values)
    whole = all(isinstance(value, bool | int | np.bool_ | np.integer) for value in values)
    return array if array.dtype.kind in ("biu" if whole else "f") else _objects(values)


def _kind(number: type) -> str:
    """What a reader can tell of the type of a number: Python's and numpy's are written alike, narrow floats are not."""
    if issubclass(number, bool | np.bool_):
        return "bool"
    if issubclass(number, int | np.integer):
        return "whole"
    return "float" if issubclass(number, float) else number.__name__


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
        return _stacked(values)
    if kinds != {list}:
        return None
    if (bits := _bits(values)) is not None:
        return bits
    if len(set(map(len, values))) != 1:
        return None
    entries: list[Any] = []
    for row in values:
        entries += row
    flat = _plain(entries, set(map(type, entries)))
    return None if flat is None else flat.reshape(len(values), -1)


def _stacked(arrays: list[Any]) -> AnyArray | None:
    """Arrays of numbers of one type and shape, one after the other; None of others."""
    dtype, shape = arrays[0].dtype, arrays[0].shape
    if dtype.kind not in "biuf" or any(len(set(map(part, arrays))) > 1 for part in (_DTYPE, _NDIM)):
        return None
    if len(shape) == 1 and len(set(map(len, arrays))) == 1:
        with contextlib.suppress(TypeError, ValueError):  # what does not lie in one piece, and nothing
            return np.frombuffer(bytearray().join(arrays), dtype).reshape(-1, *shape)
    with contextlib.suppress(ValueError):  # unequal shapes
        return np.asarray(arrays)
    return None


def _bits(values: list[list[Any]]) -> AnyArray | None:
    """Lists of True and False, all of one length, as rows; None of others.

    Marshalled, a list is a few bytes that tell its length, and one byte for each True or False.
    """
    if not values[0] or type(values[0][0]) is not bool:
        return None
    with contextlib.suppress(ValueError):  # what cannot be marshalled, and unequal lengths
        rows = np.frombuffer(marshal.dumps(values, 2), np.uint8, offset=_HEAD).reshape(len(values), -1)
        only_false = rows[0].copy()
        only_false[_HEAD:] = ord("F")
        apart = rows ^ only_false
        is_true = apart[:, _HEAD:] == ord("T") ^ ord("F")
        if np.count_nonzero(apart) == np.count_nonzero(is_true):  # nothing else is other than that
            return np.asarray(is_true)
    return None


def _rows(values: list[Any]) -> AnyArray:
    """Lists and arrays of one shape, stacked."""
    if len({value.dtype if isinstance(value, np.ndarray) else None for value in values}) > 1:
        return as_objects(values)
    types = _types_in(values)
    if len(set(map(_kind, types))) > 1 or not all(map(_is_plain, types)):
        return as_objects(values)
    lists = all(type(value) is list for value in values)
    try:
        stacked = np.asarray(values) if lists else np.stack([np.asarray(value) for value in values])
    except ValueError:  # unequal shapes
        return as_objects(values)
    if stacked.dtype.kind in "biuf" and not _rounds(stacked, values):
        return stacked
    return as_objects(values)


def _types_in(value: Any) -> set[type]:
    """Those of the entries of lists and arrays, however deep."""
    if isinstance(value, np.ndarray):
        return {value.dtype.type}
    if type(value) is not list:
        return {type(value)}
    types = set(map(type, value))
    held = {kind for kind in types if kind is list or issubclass(kind, np.ndarray)}
    return types.union(*map(_types_in, value)) - held if held else types


def _rounds(stacked: AnyArray, values: list[Any]) -> bool:
    """Whether whole numbers beyond 64 bits were rounded to fit."""
    return stacked.dtype.kind == "f" and all(
        isinstance(value, list) and value and all(isinstance(entry, int) for entry in value) for value in values
    )


def as_objects(values: list[Any]) -> AnyArray:
    """Values along one axis, as what can be counted."""
    return _objects([frozen(value) for value in values])


def _objects(values: list[Any]) -> AnyArray:
    return np.fromiter(values, dtype=object, count=len(values))


def are_different(outputs: AnyArray) -> bool:
    """Whether these are compared as a whole, and hardly any two of them are the same."""
    if outputs.dtype.kind in "biuf":
        return False
    times = np.unique(sortable(outputs), return_counts=True)[1]
    return bool(np.count_nonzero(times == 1) > HARDLY * len(outputs))


def require_outputs(outputs: Any) -> None:
    """Refuse code that returns nothing at all."""
    if not isinstance(outputs, np.ndarray) or outputs.size == 0:
        return
    if outputs.dtype.kind == "f":
        require(not np.isnan(outputs).all(), "Every output is NaN; is the code given what it needs?", TargetError)
    elif outputs.dtype.kind == "O":
        kinds = set(map(type, outputs))
        require(kinds != {type(None)}, "Every output is None; does the code return its output?", TargetError)
        if kinds == {Failure} and len(set(outputs)) == 1:
            fail(f"Every run failed: {outputs[0]}; is the code given what it needs?", TargetError)


def sortable(values: AnyArray) -> AnyArray:
    """Values that can be sorted: anything but numbers and text by how it is written."""
    if values.dtype != object:
        return values
    some, places = different(values.tolist())
    return np.array(list(map(written, some)))[places]


def different(values: list[Any]) -> tuple[list[Any], IntArray]:
    """Values of which hardly any two are the same, and the place of each value among them.

    Plain ones are the same if their types are, too; any others count as different.
    """
    known: dict[Any, int] = {}
    places = [known.setdefault(_packed(value) or object(), len(known)) for value in values]
    return list(dict(zip(places, values, strict=True)).values()), np.array(places, dtype=np.int64)


def as_bytes(value: Any) -> bytes:
    """What tells a value from others, the same in every process."""
    return _packed(value) or written(value).encode(errors="backslashreplace")


def digests(values: list[Any]) -> IntArray:
    """A number for each value, the same in every process."""
    some, places = different(values)
    return digests_of_each(some)[places]


def digests_of_each(values: Iterable[Any]) -> IntArray:
    """The same where hardly any two are the same."""
    held = b"".join(hashlib.blake2b(as_bytes(value), digest_size=8).digest() for value in values)
    return np.frombuffer(held, dtype="<i8").astype(np.int64)


def _packed(value: Any) -> bytes | None:
    """A plain value as bytes, which tell 1, 1.0 and True apart; None of others."""
    try:
        return marshal.dumps(value, 2)
    except ValueError:
        return None


def written(value: Any) -> str:
    """A value as text, numbers in one way whatever type they have; where that is long, its digest."""
    if isinstance(value, tuple):
        text = f"({', '.join(map(repr if _EXACT.issuperset(map(type, value)) else written, value))})"
    elif isinstance(value, frozenset):  # which has no order that is the same in every process
        text = f"{{{', '.join(sorted(map(written, value)))}}}"
    else:
        plain = value.item() if isinstance(value, np.generic) else value
        whole = int(plain) if isinstance(plain, float) and plain.is_integer() else plain
        text = hex(whole) if type(whole) is int and abs(whole) >> 64 else repr(whole)  # decimals have a limit
    return text if len(text) <= LONG else hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def same_outputs(one: Any, two: Any) -> bool:
    """Whether all outputs are the same; what is not a number is the same as itself."""
    if isinstance(one, tuple):
        return all(map(same_outputs, one, two))
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype.kind == "O":
        return list(map(as_bytes, one.tolist())) == list(map(as_bytes, two.tolist()))
    return bool(np.array_equal(one, two, equal_nan=one.dtype.kind == "f"))


def shown(example: Any) -> str:
    """An output as people read it, not too long."""
    try:
        return BRIEFLY.repr(example.tolist() if isinstance(example, np.ndarray | np.generic) else example)
    except ValueError:  # Python writes no whole number of thousands of digits
        return f"<{type(example).__name__} with a very long number>"
