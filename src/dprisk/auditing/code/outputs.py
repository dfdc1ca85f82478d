"""What audited code returned, as arrays: one rule for all outputs, run here or recorded elsewhere.

They can be compared with each other: numbers mostly as numbers, anything else by how it is written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import marshal
import reprlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import Any

import numpy as np

from dprisk.errors import TargetError, fail, require
from dprisk.types import AnyArray, IntArray

_PLAIN: dict[type, type[np.generic]] = {bool: np.bool_, int: np.int64, float: np.float64}
_SIMPLE = frozenset({bool, int, float, complex, str, bytes, type(None)})  # which can be counted as they are
_EXACT = _SIMPLE - {float, int}  # which are written in one way
_LABELLED = (np.ma.MaskedArray, np.recarray)  # arrays of which the entries do not tell all
NUMBER = (bool, int, float, np.bool_, np.integer, np.floating)
_DTYPE, _NDIM = attrgetter("dtype"), attrgetter("ndim")
_HEAD = len(marshal.dumps([], 2))
HARDLY = 0.9  # of outputs that are seen once, beyond which comparing whole ones tells nothing
BRIEFLY = reprlib.Repr()
BRIEFLY.maxlist = BRIEFLY.maxtuple = 12  # entries of an output that are shown
LONG = 200  # characters of an output beyond which its digest is compared instead


@dataclass(frozen=True)
class Failure:
    """What a run gave that gave no output: the name of the exception, or that its time was up."""

    kind: str

    def __repr__(self) -> str:
        return f"failed: {self.kind}"


def as_outputs(outputs: Sequence[Any]) -> AnyArray:
    """Outputs along the first axis.

    - Numbers of one kind become a bool, integer or float array; lists or arrays of numbers, all of one kind and shape,
      the rows of a larger array.
    - Anything else becomes a one-dimensional array of objects that can be counted: text, None, tuples such as
      (value, seed), sets. Lists, arrays, tables and tensors become tuples, dicts and dataclasses tuples of their
      entries. What differs from output to output stays visible: 0 beside 0.0, a shorter list, a float32.
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
        return numbers_of_one_kind(values) if len({_kind(kind) for kind in kinds}) == 1 else _objects(values)
    try:
        return _rows_or_objects(values, kinds)
    except RecursionError:
        what = "An output holds itself, or is nested too deeply to be compared"
        raise TargetError(f"{what}; return numbers, text or tuples.") from None


def _rows_or_objects(values: list[Any], kinds: set[type]) -> AnyArray:
    if values and all(issubclass(kind, list | np.ndarray) and not issubclass(kind, _LABELLED) for kind in kinds):
        even = _even_rows(values, kinds)
        rows = _rows(values) if even is None else even
        return rows if rows.size else as_objects(values)
    return as_objects(values)


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
    if len({_kind(kind) for kind in _types_in(values)}) > 1:
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
    if not isinstance(value, list):
        return {type(value)}
    types = set(map(type, value))
    held = {kind for kind in types if issubclass(kind, list | np.ndarray)}
    return types.union(*map(_types_in, value)) - held if held else types


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
    if is_simple(value):
        return value
    if type(value) is dict and is_flat(value):
        return tuple(value.items())
    if isinstance(value, tuple | list | deque):
        return tuple(_frozen(entry) for entry in value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, np.ndarray):
        return _frozen_array(value)
    if isinstance(value, set | frozenset):
        return frozenset(_frozen(entry) for entry in value)
    if isinstance(value, dict):
        return tuple((_frozen(key), _frozen(entry)) for key, entry in value.items())
    if isinstance(value, np.generic):
        return value if isinstance(value, np.floating) and not isinstance(value, float) else value.item()
    return _frozen_object(value)


def is_simple(value: Any) -> bool:
    """Whether it can be counted as it is, and nobody can change it."""
    return type(value) in _SIMPLE or (type(value) is tuple and are_simple(value))


def is_flat(value: Any) -> bool:
    """Whether it is an array of numbers, or a list, set or dict of simple values: a copy of it shares nothing."""
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    if type(value) is dict:
        return are_simple(value) and are_simple(value.values())
    return type(value) in (list, set) and are_simple(value)


def are_simple(entries: Iterable[Any]) -> bool:
    """Whether all are of Python's own kinds that can be counted, and that nobody can change."""
    return _SIMPLE.issuperset(map(type, entries))


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
        return (*_frozen(array.tolist()), repr(array.dtype.names))
    if array.size == 0 and array.ndim > 1:
        return (f"no entries, shape {array.shape}",)
    masked = isinstance(array, np.ma.MaskedArray)  # of which a list has None
    narrow = array.dtype.kind == "f" and array.dtype != float
    if not narrow or masked:
        return _frozen(array.tolist())
    return tuple(array) if array.ndim == 1 else tuple(map(_frozen, array)) if array.ndim else array[()]


def _labels(value: Any) -> str | None:
    """The names of a data frame or series, its columns, rows and categories, which may tell more than its entries."""
    named = {part: getattr(value, part, None) for part in ("name", "columns", "index")}
    told = {part: held for part, held in named.items() if held is not None and not callable(held)}
    if "index" in told and hasattr(value, "dtypes"):  # those of polars are of all frames so far
        told |= _categories(value.dtypes)
    return ", ".join(f"{part} {held if part == 'name' else list(held)}" for part, held in told.items()) or None


def _categories(dtypes: Any) -> dict[str, list[list[Any]]]:
    """Those that columns of a data frame may hold, whether they do or not; nothing where there are none."""
    every = [dtypes] if np.ndim(dtypes) == 0 else list(dtypes)
    found = [list(dtype.categories) for dtype in every if getattr(dtype, "categories", None) is not None]
    return {"categories": found} if found else {}


def _frozen_object(value: Any) -> Any:
    """The same of what is no list, dict, set, array or number of numpy."""
    kind: Any = type(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, Failure | type):
        named = [(field.name, _frozen(getattr(value, field.name))) for field in dataclasses.fields(value)]
        return kind.__name__, *named
    if isinstance(value, Decimal) and value.is_snan():
        return repr(value)  # which cannot be counted
    if not isinstance(value, str | bytes) and hasattr(value, "__array__"):  # data frames, series, tensors
        entries, labels = _frozen(np.asarray(value)), _labels(value)
        return entries if labels is None else (*(entries if isinstance(entries, tuple) else (entries,)), labels)
    if kind.__hash__ is None:
        fail(f"An output is a {kind.__name__}, which cannot be compared; return numbers, text or tuples.", TargetError)
    if kind.__hash__ is object.__hash__ and value is not None:
        what = f"numbers, text or tuples{' (post=tuple does that)' if hasattr(value, '__next__') else ''}."
        fail(f"An output is a {kind.__name__}, which is equal to no other; return what it holds: {what}", TargetError)
    return value


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
            fail(f"Every run {outputs[0]}; is the code given what it needs?", TargetError)


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
