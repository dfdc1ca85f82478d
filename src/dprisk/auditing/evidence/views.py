"""Ways of looking at an output: each turns outputs into whole numbers, alike where the outputs look alike.

Leaks hide where nobody looks: in a value that only one record ever has, in a type, a length, a missing number, the
sign of a zero, the last bits of a float. A view says what it looks at, and in words what it saw, so that a leak that is
found can be shown to people.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import as_objects, different, digests, digests_of_each, shown
from dprisk.auditing.evidence.kinds import kind_alone, kind_of
from dprisk.auditing.evidence.layouts import Layout
from dprisk.auditing.evidence.numbers import is_number
from dprisk.auditing.evidence.places import MIXING, NOTHING
from dprisk.types import AnyArray, BoolArray, FloatArray, IntArray

FEW_BITS, ROWS = 32, 1 << 61  # entries that are True or False, which make one whole number together, counted from here
MOST_DEEP = 32  # lists in lists that are an array
MANY = 3  # odd entries of a row, beyond which they are not counted
WIDER = 1 << 20  # more than any sum of counts of odd entries
OWN_BITS = 16  # of a token that are for the record of the run
LONGER = 1 << 30  # more than any form of an output of one number


class Seen:
    """Outputs, and how they look: each view of them is taken once. They may be those at some places among others.

    `own` are the records of the runs, by their numbers, for those who know them and ask for something else.
    """

    def __init__(
        self,
        outputs: AnyArray,
        looks: dict[Any, Any] | None = None,
        among: tuple[Seen, Any] | None = None,
        own: IntArray | None = None,
    ) -> None:
        self.outputs, self.own = outputs, own
        self._looks = {} if looks is None else looks
        self._among = among
        self._last: tuple[View, IntArray] | None = None  # what a view that was fitted made of them

    def __len__(self) -> int:
        return len(self.outputs)

    def tokens(self, view: View) -> IntArray:
        """What a view makes of them."""
        if not view.is_fixed:
            return self._fitted(view)
        return np.asarray(self._once(type(view), lambda: self._looked_at(view)))

    def _fitted(self, view: View) -> IntArray:
        if self._last is None or self._last[0] is not view:
            others, places = self._among or (self, slice(None))
            known = others._last[1][places] if others._last is not None and others._last[0] is view else None
            self._last = view, view.tokens(self) if known is None else known
        return self._last[1]

    def _looked_at(self, view: View) -> IntArray:
        if self._among is not None:
            others, places = self._among
            return np.asarray(others.tokens(view)[places])
        if self.outputs.dtype.kind in "biuf":
            return view.tokens(self)
        some, places = self.different
        return view.tokens(some)[places]

    @property
    def different(self) -> tuple[Seen, IntArray]:
        """Those of the objects of which hardly any two are the same, and the place of each output among them."""
        found: tuple[Seen, IntArray] = self._once("different", self._compared)
        return found

    def _compared(self) -> tuple[Seen, IntArray]:
        some, places = different(self.outputs.tolist())
        return Seen(np.fromiter(some, dtype=object, count=len(some))), places

    @property
    def numbers(self) -> FloatArray | None:
        """The outputs as numbers, see `numbers_of`."""
        found: FloatArray | None = self._once("numbers", lambda: numbers_of(self.outputs))
        return found

    def columns(self, layout: Layout) -> FloatArray:
        """The entries of the outputs, taken apart so."""
        found: FloatArray = self._once(layout, lambda: self._columns(layout))
        return found

    def _columns(self, layout: Layout) -> FloatArray:
        if self._among is not None:
            others, places = self._among
            return others.columns(layout)[:, places]
        return layout.columns(self.outputs)

    def column(self, layout: Layout, place: int) -> FloatArray:
        """One of them; where they are some among others, no more than that is taken from there."""
        if self._among is not None and layout not in self._looks:
            others, places = self._among
            return np.asarray(others.column(layout, place)[places])
        return np.asarray(self.columns(layout)[place])

    def _once(self, name: Any, look: Callable[[], Any]) -> Any:
        if name not in self._looks:
            self._looks[name] = look()
        return self._looks[name]

    def take(self, places: Any, own: IntArray | None = None) -> Seen:
        """Some of them, by their places or a mask; perhaps beside the records of these."""
        if own is None and self.own is not None:
            own = self.own[places]
        return Seen(self.outputs[places], among=(self, places), own=own)

    @staticmethod
    def join(parts: Sequence[Seen]) -> Seen:
        """One after the other, as if they had been looked at together: how an output looks depends on it alone."""
        if len(parts) == 1:
            return parts[0]
        outputs = joined([part.outputs for part in parts])
        looks: dict[Any, Any] = {}
        for name in dict.fromkeys(name for part in parts for name in part._looks):
            if isinstance(name, type):
                looks[name] = np.concatenate([part.tokens(name()) for part in parts])
            elif isinstance(name, Layout) and _takes_long(name, outputs):
                looks[name] = np.concatenate([part.columns(name) for part in parts], axis=1)
            elif name == "numbers" and all(part._looks.get(name) is not None for part in parts):
                looks[name] = np.concatenate([part._looks[name] for part in parts])
        return Seen(outputs, looks)


def _takes_long(layout: Layout, outputs: AnyArray) -> bool:
    """Whether columns are kept; of arrays of numbers they are quickly had again."""
    return outputs.dtype.kind == "O" or not layout.by_place


def joined(parts: Sequence[AnyArray]) -> AnyArray:
    """Outputs one after the other; as objects where they are of other kinds."""
    if len({_row_kind(part) for part in parts}) == 1:
        return np.concatenate(parts) if len(parts) > 1 else parts[0]
    return as_objects([value for part in parts for value in part])


def _row_kind(outputs: AnyArray) -> tuple[Any, ...]:
    """What outputs have in common that can be one array: narrow floats are something else than others."""
    return outputs.dtype.str if outputs.dtype.kind == "f" else outputs.dtype.kind, outputs.shape[1:]


class View(ABC):
    """What an attacker looks at. It is fixed if it looks the same way whatever earlier outputs were."""

    is_fixed = True

    @abstractmethod
    def tokens(self, seen: Seen) -> IntArray:
        """A whole number for each output; `NOTHING` for one that the view has nothing to say about."""

    @abstractmethod
    def words(self, token: int, example: Any) -> str:
        """What outputs with this token have in common, an example of which is given: "the output is NaN"."""


class Value(View):
    """The output as a whole, bit by bit."""

    def tokens(self, seen: Seen) -> IntArray:
        outputs = seen.outputs
        return _values(outputs) if outputs.dtype.kind in "biuf" else by_kind(outputs, _values, digests_of_each)

    def words(self, token: int, example: Any) -> str:
        told = shown(example)
        if told == "nan":
            return "the output is NaN with the same bits each time"
        return f"the output is one and the same, {told}," if "..." in told else f"the output is {told}"


class Form(View):
    """What kind of thing an output is, whatever its value: type, length, NaN, infinite, the sign of a zero."""

    def tokens(self, seen: Seen) -> IntArray:
        outputs = seen.outputs
        return number_forms(outputs) if outputs.dtype.kind in "biuf" else by_kind(outputs, number_forms, _forms)

    def words(self, token: int, example: Any) -> str:
        return f"the output {form_of(example)}"


class BesideOwn(View):
    """What another view sees, beside the record of the run, for who knows that and asks for the run before."""

    is_fixed = False

    def __init__(self, view: View) -> None:
        self.view = view

    def tokens(self, seen: Seen) -> IntArray:
        return np.full(len(seen), NOTHING) if seen.own is None else beside(seen.tokens(self.view), seen.own)

    def words(self, token: int, example: Any) -> str:
        seen, own = divmod(token, 1 << OWN_BITS)
        return f"{self.view.words(seen, example)}, and its own record is number {own} (counted from 0),"


def beside(tokens: IntArray, own: IntArray) -> IntArray:
    """Tokens and the records of the runs together; nothing of records whose numbers are too large."""
    is_told = (tokens != NOTHING) & (own < 1 << OWN_BITS)
    return np.where(is_told, (tokens << OWN_BITS) | own, NOTHING)


def numbers_of(outputs: AnyArray) -> FloatArray | None:
    """Outputs that are numbers, and not a number where one is none; None if they are something else altogether."""
    if outputs.dtype.kind in "biuf":
        return outputs.astype(float, copy=False) if outputs.ndim == 1 else None
    values = outputs.tolist()
    if not _may_be_numbers(values):
        return None
    found = np.array([float(value) if is_number(value) else math.nan for value in values])
    return None if np.isnan(found).all() else found


def by_kind(
    outputs: AnyArray, of_numbers: Callable[[AnyArray], IntArray], of_others: Callable[[AnyArray], IntArray]
) -> IntArray:
    """Tokens of objects: numbers, and tuples of one kind of them, have the same as in an array of such."""
    values = outputs.astype(object)
    kinds = np.array([_array_kind(value) for value in values], dtype=object)
    found = np.empty(len(values), dtype=np.int64)
    for kind in dict.fromkeys(kinds):
        mine = kinds == kind
        alike = values[mine]
        found[mine] = of_others(alike) if kind == "O" else of_numbers(np.array(alike.tolist(), dtype=kind.split()[0]))
    return found


def _may_be_numbers(values: Iterable[Any]) -> bool:
    return any(issubclass(kind, int | float | np.number) for kind in set(map(type, values)))


def _array_kind(value: Any) -> str:
    """The kind of array that outputs like this become: floats, whole numbers, rows of them, or objects."""
    if isinstance(value, float):
        return "f8"
    if isinstance(value, tuple):
        return _row_of(value)
    if isinstance(value, np.floating):
        return str(value.dtype.str[1:])
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return "i8" if is_whole and -(2**63) <= value < 2**63 else "O"


def _row_of(value: tuple[Any, ...]) -> str:
    """The kind of the rows that tuples like this become, and their shape; objects if they become none."""
    first = None
    for leaf in _in_turn(value):  # most that hold something else as well say so at once
        kind = "b1" if type(leaf) is bool else _array_kind(leaf)
        if kind == "O" or kind != (first or kind):
            return "O"
        first = kind
    shape = None if first is None else _shape_of(value)
    return "O" if shape is None or len(shape) > MOST_DEEP else f"{first} {shape}"


def _in_turn(value: tuple[Any, ...]) -> Iterator[Any]:
    """The leaves of a tuple, one by one."""
    for entry in value:
        if type(entry) is tuple:
            yield from _in_turn(entry)
        else:
            yield entry


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """That of nested tuples all of which are as long as the others beside them; None of others."""
    if not isinstance(value, tuple):
        return ()
    inner = set(map(_shape_of, value))
    return (len(value), *shape) if len(inner) == 1 and (shape := inner.pop()) is not None else None


def _forms(values: AnyArray) -> IntArray:
    return digests(list(map(form_of, values)))


def _values(outputs: AnyArray) -> IntArray:
    """The tokens of numbers and of rows of them."""
    if outputs.ndim == 1:
        return _bits(outputs) if outputs.dtype.kind != "b" else digests_of_each([False, True])[outputs.astype(np.int64)]
    rows = outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))
    if outputs.dtype.kind == "b" and rows.shape[1] <= FEW_BITS:
        return _packed(rows)
    return _mixed([_bits(column) for column in rows.T], len(outputs))


def _bits(column: AnyArray) -> IntArray:
    if column.dtype.kind == "f":
        return np.ascontiguousarray(column, dtype=np.float64).view(np.int64)
    return column.astype(np.int64)


def _packed(rows: BoolArray) -> IntArray:
    """The bits of each row as one number, far from those that are outputs themselves."""
    weights = 2.0 ** np.arange(rows.shape[1])
    return np.asarray((rows.astype(float) @ weights).astype(np.int64) + ROWS)


def _mixed(columns: list[IntArray], count: int) -> IntArray:
    """One number for each row; other rows have other numbers but for a chance of about n^2/2^64."""
    start = (len(columns) + 1) * int(MIXING) & (2**64 - 1)  # neither a row of zeros nor an empty one is 0
    total = np.full(count, start, dtype=np.uint64)
    for column in columns:
        total = (total ^ column.view(np.uint64)) * MIXING
        total ^= total >> np.uint64(29)
    return total.view(np.int64)


def form_of(value: Any) -> str:
    """What kind of thing this is, as the end of a sentence."""
    if isinstance(value, np.ndarray):
        return _row_form(value) if value.dtype.kind == "f" else form_of(as_objects([value])[0])
    if isinstance(value, tuple) and _array_kind(value).startswith("f"):
        return _row_form(np.array(value))
    if isinstance(value, tuple):
        return f"has {len(value)} entr{'y' if len(value) == 1 else 'ies'}{_kinds_in(value)}"
    if isinstance(value, str | bytes):
        return f"has {len(value)} {'character' if isinstance(value, str) else 'byte'}{'s' * (len(value) != 1)}"
    if isinstance(value, frozenset):
        return f"is a set of {len(value)}"
    return f"is {kind_alone(value)}"


def _kinds_in(value: tuple[Any, ...]) -> str:
    """What kinds of entries there are; one after the other where some are lists themselves."""
    nested = any(isinstance(part, tuple) for part in value)
    kinds = list(map(kind_of, value)) if nested else sorted(set(map(kind_of, value)))
    if len(set(kinds)) == 1:
        return f" ({'each ' * (len(value) > 1)}{kinds[0]})"
    return f" ({', '.join(kinds)})" if kinds else ""


def _row_form(row: AnyArray) -> str:
    """How many entries of each odd kind there are."""
    names = ("NaN", "infinite", "minus infinite", "minus zero", "zero")
    told = [
        f"{times if times < MANY else f'{MANY} or more'} that {'is' if times == 1 else 'are'} {name}"
        for times, name in zip(_odd(row), names, strict=True)
        if times
    ]
    width = "" if row.dtype.kind != "f" or row.dtype == float else f" of type {row.dtype}"
    entries = "1 entry" if row.size == 1 else f"{row.size} entries"
    return f"has {entries}{width}, {' and '.join(told) or 'none of them NaN, infinite or zero'}"


def _odd(numbers: AnyArray) -> list[int]:
    """How many are NaN, infinite, minus infinite, minus zero and zero."""
    if numbers.dtype.kind != "f":
        return [0] * 5
    zeros = np.signbit(numbers[numbers == 0])
    kinds = (np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers), zeros, ~zeros)
    return [int(kind.sum()) for kind in kinds]


def number_forms(outputs: AnyArray) -> IntArray:
    """Whether whole or not, how wide a float is, the shape, and how many entries of each odd kind there are.

    Zero is odd among entries, where a cell may be left empty; by itself it is a number like any other.
    """
    shape = sum((size + 1) * 4099**place for place, size in enumerate(outputs.shape[1:])) % LONGER * LONGER
    if outputs.dtype.kind == "b" and outputs.ndim == 1:
        return np.full(len(outputs), _forms(np.array([True], dtype=object))[0])
    if outputs.dtype.kind != "f":
        return np.full(len(outputs), shape - (2 if outputs.dtype.kind == "b" else 1))
    usual = shape + (0 if outputs.dtype == float else outputs.dtype.itemsize * WIDER)
    if outputs.ndim == 1:
        outputs = np.where((outputs == 0) & ~np.signbit(outputs), 1, outputs)
        if np.isfinite(outputs).all() and outputs.all():
            return np.full(len(outputs), usual)
    rows = outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))
    found = np.full(len(rows), usual)
    for row in np.flatnonzero((~np.isfinite(rows) | (rows == 0)).any(axis=1)):
        found[row] += sum(min(times, MANY) * (MANY + 1) ** place for place, times in enumerate(_odd(rows[row])))
    return found
