"""Ways of looking at an output: each turns outputs into whole numbers, alike where the outputs look alike.

Leaks hide where nobody looks: in a value that only one record ever has, in a type, a length, a missing number, the
sign of a zero, the last bits of a float. A view says what it looks at, and in words what it saw, so that a leak that is
found can be shown to people.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import Failure, as_bytes, as_objects, different, shown
from dprisk.auditing.evidence.numbers import columns_of, leaves, numbers_in
from dprisk.auditing.evidence.places import MIXING, NOTHING
from dprisk.types import AnyArray, BoolArray, FloatArray, IntArray

FEW_BITS, ROWS = 32, 1 << 61  # entries that are True or False, which make one whole number together, counted from here
MANY = 3  # odd entries of a row, beyond which they are not counted
WIDER = 1 << 20  # more than any sum of counts of odd entries
USUAL = "a float other than 0"


class Seen:
    """Outputs, and how they look: each view of them is taken once. They may be those at some places among others."""

    def __init__(
        self, outputs: AnyArray, looks: dict[Any, Any] | None = None, among: tuple[Seen, Any] | None = None
    ) -> None:
        self.outputs = outputs
        self._looks = {} if looks is None else looks
        self._among = among

    def __len__(self) -> int:
        return len(self.outputs)

    def tokens(self, view: View) -> IntArray:
        """What a view makes of them."""
        if not view.is_fixed:
            return view.tokens(self)
        return np.asarray(self._once(type(view), lambda: self._looked_at(view)))

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

    @property
    def entries(self) -> FloatArray | None:
        """The entries of the outputs, see `entries_of`."""
        found: FloatArray | None = self._once("entries", lambda: entries_of(self.outputs))
        return found

    def _once(self, name: Any, look: Callable[[], Any]) -> Any:
        if name not in self._looks:
            self._looks[name] = look()
        return self._looks[name]

    def take(self, places: Any) -> Seen:
        """Some of them, by their places or a mask."""
        return Seen(self.outputs[places], among=(self, places))

    @staticmethod
    def join(parts: Sequence[Seen]) -> Seen:
        """One after the other, as if they had been looked at together.

        The entries of objects are taken anew: how one is seen depends on the others.
        """
        if len(parts) == 1:
            return parts[0]
        kept = [view for view in (Value(), Form(), LowBits()) if any(type(view) in part._looks for part in parts)]
        looks: dict[Any, Any] = {type(view): np.concatenate([part.tokens(view) for part in parts]) for view in kept}
        kinds = {_row_kind(part.outputs) for part in parts}
        for name in ("numbers", "entries") if len(kinds) == 1 and "O" not in kinds.pop()[0] else ():
            found = [part._looks[name] for part in parts if part._looks.get(name) is not None]
            if len(found) == len(parts):
                looks[name] = np.concatenate(found, axis=-1)
        return Seen(joined([part.outputs for part in parts]), looks)


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
        if outputs.dtype.kind not in "biuf":
            return _by_kind(outputs, _bits, _digests)
        if outputs.ndim == 1:
            return _bits(outputs)
        rows = outputs.reshape(len(outputs), -1)
        if outputs.dtype.kind == "b" and rows.shape[1] <= FEW_BITS:
            return _packed(rows)
        return _mixed([_bits(column) for column in rows.T], len(outputs))

    def words(self, token: int, example: Any) -> str:
        told = shown(example)
        if told == "nan":
            return "the output is NaN with the same bits each time"
        return f"the output is one and the same, {told}," if "..." in told else f"the output is {told}"


class Form(View):
    """What kind of thing an output is, whatever its value: type, length, NaN, infinite, the sign of a zero."""

    def tokens(self, seen: Seen) -> IntArray:
        outputs = seen.outputs
        return number_forms(outputs) if outputs.dtype.kind in "biuf" else _by_kind(outputs, number_forms, _forms)

    def words(self, token: int, example: Any) -> str:
        return f"the output {form_of(example)}"


class LowBits(View):
    """How fine the grid is that a number lies on: the exponent of its last bit that is set.

    Floats of noise are added on a grid that depends on the number they are added to, so the last bits tell it
    (Mironov 2012).
    """

    def tokens(self, seen: Seen) -> IntArray:
        outputs = seen.outputs
        if outputs.dtype.kind == "b":
            return np.full(len(outputs), NOTHING)
        if outputs.dtype.kind not in "iuf":
            return _by_kind(outputs, last_bit, _finest)
        finest = np.full(len(outputs), -NOTHING)
        for column in columns_of(outputs):
            places = last_bit(column)
            finest = np.where(places == NOTHING, finest, np.minimum(finest, places))
        return np.where(finest == -NOTHING, NOTHING, finest)

    def words(self, token: int, example: Any) -> str:
        if is_number(example):
            return f"the output is an odd multiple of 2^{token}"
        return f"the numbers of the output are multiples of 2^{token}, and not all of 2^{token + 1},"


def numbers_of(outputs: AnyArray) -> FloatArray | None:
    """Outputs that are numbers, and not a number where one is none; None if they are something else altogether."""
    if outputs.dtype.kind in "biuf":
        return outputs.astype(float, copy=False) if outputs.ndim == 1 else None
    values = outputs.tolist()
    if not _may_be_numbers(values):
        return None
    found = np.array([float(value) if is_number(value) else math.nan for value in values])
    return None if np.isnan(found).all() else found


def entries_of(outputs: AnyArray) -> FloatArray | None:
    """The entries of vectors, or of tuples of one length, at any depth, a row for each entry; None of others."""
    if outputs.dtype.kind in "biuf":
        return None if outputs.ndim == 1 else np.asarray(columns_of(outputs), dtype=float)
    values = [leaves(value) if isinstance(value, tuple) else value for value in outputs.tolist()]
    lengths = Counter(len(value) for value in values if isinstance(value, tuple))
    length, count = lengths.most_common(1)[0] if lengths else (0, 0)
    if length < 2 or count <= len(values) / 2:
        return None
    usual = [isinstance(value, tuple) and len(value) == length for value in values]
    columns = [
        _as_column([value[place] if fits else None for value, fits in zip(values, usual, strict=True)])
        for place in range(length)
    ]
    return np.array(columns)


def is_number(value: Any) -> bool:
    """Whether it is a float or a whole number of 64 bits."""
    return _array_kind(value) != "O"


def _by_kind(
    outputs: AnyArray, of_numbers: Callable[[AnyArray], IntArray], of_others: Callable[[AnyArray], IntArray]
) -> IntArray:
    """Tokens of objects: those that are floats, of any width, or whole numbers have the same as in an array of such."""
    values = outputs.astype(object)
    if not _may_be_numbers(values):
        return of_others(values)
    kinds = np.fromiter(map(_array_kind, values), dtype="U3", count=len(values))
    found = np.empty(len(values), dtype=np.int64)
    for kind in np.unique(kinds):
        mine = kinds == kind
        found[mine] = of_others(values[mine]) if kind == "O" else of_numbers(values[mine].astype(kind))
    return found


def _may_be_numbers(values: Iterable[Any]) -> bool:
    return any(issubclass(kind, int | float | np.number) for kind in set(map(type, values)))


def _array_kind(value: Any) -> str:
    """The kind of array that outputs like this become: floats, whole numbers, or objects."""
    if isinstance(value, float):
        return "f8"
    if isinstance(value, np.floating):
        return str(value.dtype.str[1:])
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return "i8" if is_whole and -(2**63) <= value < 2**63 else "O"


def _forms(values: AnyArray) -> IntArray:
    return digests(list(map(form_of, values)))


def _as_column(values: list[Any]) -> FloatArray:
    """Numbers as they are; of anything else a number that depends on how it is written alone."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return np.array(values)
    if kinds == {str} and len(set(values)) == 1:  # the names in a dict
        return np.full(len(values), float(digests(values[:1])[0] >> 24))
    if all(value is None or is_number(value) or isinstance(value, bool) for value in values):
        return np.array([math.nan if value is None else float(value) for value in values])
    return (digests(values) >> 24).astype(float)


def _bits(column: AnyArray) -> IntArray:
    if column.dtype.kind == "f":
        return np.ascontiguousarray(column, dtype=np.float64).view(np.int64)
    return column.astype(np.int64)


def _finest(values: AnyArray) -> IntArray:
    """The exponent of the last bit that is set in any number of an output; `NOTHING` where there is none."""
    held = [[number for number in numbers_in(value) if is_number(number)] for value in values]
    found, owners = np.full(len(values), -NOTHING), np.repeat(np.arange(len(values)), list(map(len, held)))
    places = last_bit(np.array([float(number) for some in held for number in some]))
    some = places != NOTHING
    np.minimum.at(found, owners[some], places[some])
    return np.where(found == -NOTHING, NOTHING, found)


def last_bit(column: AnyArray) -> IntArray:
    """The exponent of the last bit that is set; `NOTHING` for 0 and what is no number."""
    if column.dtype.kind in "iu":
        size, shift = np.abs(column.astype(np.int64)), np.zeros(len(column), dtype=np.int64)
    else:
        usual = np.isfinite(column)
        mantissa, exponent = np.frexp(np.where(usual, np.abs(column), 0.0).astype(float))
        size, shift = (mantissa * 2.0**53).astype(np.int64), exponent.astype(np.int64) - 53
    trailing = np.frexp((size & -size).astype(float))[1] - 1
    return np.where(size == 0, NOTHING, shift + trailing)


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


def digests(values: list[Any]) -> IntArray:
    """A number for each value, the same in every process."""
    some, places = different(values)
    return _digests(some)[places]


def _digests(values: Iterable[Any]) -> IntArray:
    held = b"".join(hashlib.blake2b(as_bytes(value), digest_size=8).digest() for value in values)
    return np.frombuffer(held, dtype="<i8").astype(np.int64)


def form_of(value: Any) -> str:
    """What kind of thing this is, as the end of a sentence."""
    if isinstance(value, np.ndarray):
        return _row_form(value)
    if isinstance(value, tuple):
        kinds = sorted({_kind_of(part) for part in value})
        each = "each " if len(kinds) == 1 < len(value) else ""
        inside = f" ({each}{', '.join(kinds)})" if kinds else ""
        return f"has {len(value)} entr{'y' if len(value) == 1 else 'ies'}{inside}"
    if isinstance(value, str | bytes):
        return f"has {len(value)} {'characters' if isinstance(value, str) else 'bytes'}"
    if isinstance(value, frozenset):
        return f"is a set of {len(value)}"
    return f"is {_kind_of(value)}"


def _kind_of(value: Any) -> str:
    """What kind of thing this is, in a word or two."""
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return "NaN" if np.isnan(value) else "infinite"
        if value == 0:
            return "minus zero" if math.copysign(1.0, value) < 0 else "zero"
        return USUAL if isinstance(value, float) else f"a {value.dtype}"
    if value is None:
        return "None"
    if isinstance(value, Failure):
        return f"a failure, {value.kind}"
    if isinstance(value, bool | np.bool_):
        return "True or False"
    if isinstance(value, tuple):
        return "nested"
    return "a whole number" if isinstance(value, int | np.integer) else f"of type {type(value).__name__}"


def _row_form(row: AnyArray) -> str:
    """How many entries of each odd kind there are."""
    names = ("NaN", "infinite", "minus infinite", "minus zero", "zero")
    told = [
        f"{times if times < MANY else f'{MANY} or more'} that {'is' if times == 1 else 'are'} {name}"
        for times, name in zip(_odd(row), names, strict=True)
        if times
    ]
    width = "" if row.dtype.kind != "f" or row.dtype == float else f" of type {row.dtype}"
    return f"has {row.size} entries{width}, {' and '.join(told) or 'none of them NaN, infinite or zero'}"


def _odd(numbers: AnyArray) -> list[int]:
    """How many are NaN, infinite, minus infinite, minus zero and zero."""
    if numbers.dtype.kind != "f":
        return [0] * 5
    zeros = np.signbit(numbers[numbers == 0])
    kinds = (np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers), zeros, ~zeros)
    return [int(kind.sum()) for kind in kinds]


def number_forms(outputs: AnyArray) -> IntArray:
    """Whether whole or not, how wide a float is, and how many entries of each odd kind there are."""
    if outputs.dtype.kind != "f":
        return np.full(len(outputs), -1)
    width = 0 if outputs.dtype == float else outputs.dtype.itemsize * WIDER
    if outputs.ndim == 1 and np.isfinite(outputs).all() and outputs.all():
        return np.full(len(outputs), width)
    rows = outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))
    found = np.full(len(rows), width)
    for row in np.flatnonzero((~np.isfinite(rows) | (rows == 0)).any(axis=1)):
        found[row] += sum(min(times, MANY) * (MANY + 1) ** place for place, times in enumerate(_odd(rows[row])))
    return found
