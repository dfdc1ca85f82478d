"""The grid that numbers lie on: which bit or decimal is the last, and what is left of a number when it is divided.

Noise may hide how large a number is, and not where it comes from: a code that adds multiples of 7 leaves the remainder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprisk.auditing.evidence.entries import WHOLE, Entry
from dprisk.auditing.evidence.numbers import columns_of, is_number, numbers_in
from dprisk.auditing.evidence.places import NOTHING
from dprisk.auditing.evidence.views import Seen, View, by_kind
from dprisk.types import AnyArray, FloatArray, IntArray

DIVISOR = 420  # by 2, 3, 4, 5, 6, 7 and 10
MOST_DECIMALS = 6
BITS, ENTRY_BITS = 63, 8  # of a whole number, and of one that is an entry, that are looked at one by one
EXACT = 2.0**53  # beyond which floats are no longer all whole numbers


class LowBits(View):
    """How fine the grid is that a number lies on: the exponent of its last bit that is set.

    Floats of noise are added on a grid that depends on the number they are added to, so the last bits tell it
    (Mironov 2012).
    """

    def tokens(self, seen: Seen) -> IntArray:
        outputs = seen.outputs
        return _finest(outputs) if outputs.dtype.kind in "biuf" else by_kind(outputs, _finest, _finest_in)

    def words(self, token: int, example: Any) -> str:
        if is_number(example):
            return f"the output is an odd multiple of 2^{token}"
        return f"the numbers of the output are multiples of 2^{token}, and not all of 2^{token + 1},"


class LastBit(View):
    """How fine the grid is that one entry of an output lies on, see `LowBits`."""

    is_fixed = False

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def tokens(self, seen: Seen) -> IntArray:
        return last_bit(self.entry.numbers(seen))

    def words(self, token: int, example: Any) -> str:
        return f"{self.entry.name} is an odd multiple of 2^{token}"


class Remainder(View):
    """How many decimals an entry, or the output, has, and what it leaves, without the point, divided by `DIVISOR`."""

    is_fixed = False

    def __init__(self, entry: Entry = WHOLE) -> None:
        self.entry = entry

    def tokens(self, seen: Seen) -> IntArray:
        return remainders(self.entry.numbers(seen))

    def words(self, token: int, example: Any) -> str:
        decimals, left = divmod(token, DIVISOR)
        if decimals == 0:
            return f"{self.entry.name} is a multiple of {DIVISOR} plus {left}"
        without = f"{decimals} decimal{'s' * (decimals > 1)}, and without the point"
        return f"{self.entry.name} has {without} is a multiple of {DIVISOR} plus {left}"


class Bit(View):
    """One bit of outputs, or of an entry, that are whole numbers: several answers may be packed into one."""

    is_fixed = False

    def __init__(self, place: int, entry: Entry = WHOLE) -> None:
        self.place, self.entry = place, entry

    def tokens(self, seen: Seen) -> IntArray:
        if seen.outputs.dtype.kind not in "iu":
            return np.full(len(seen), NOTHING)
        return bit_of(seen.outputs if self.entry is WHOLE else self.entry.numbers(seen), self.place)

    def words(self, token: int, example: Any) -> str:
        return f"the bit of 2^{self.place} of {self.entry.name} is {token}"


def bit_of(outputs: AnyArray, place: int) -> IntArray:
    """One bit of whole numbers, 0 or 1: that of 2^place."""
    whole = np.where(np.isfinite(outputs), outputs, 0).astype(np.int64) if outputs.dtype.kind == "f" else outputs
    return np.asarray(whole.astype(np.int64) >> place & 1)


def remainders(numbers: FloatArray) -> IntArray:
    """For each number of at most six decimals how many it has, and its remainder; `NOTHING` for others.

    >>> [divmod(token, DIVISOR) for token in remainders(np.array([421.0, 0.37])).tolist()]
    [(0, 1), (2, 37)]
    """
    found = np.full(numbers.size, NOTHING)
    left = np.flatnonzero(np.abs(numbers) < EXACT)
    left = _noted(numbers, left, 0, found)
    left = left[np.abs(numbers[left]) * 10.0**MOST_DECIMALS < EXACT]
    left = left[np.rint(numbers[left] * 10.0**MOST_DECIMALS) / 10.0**MOST_DECIMALS == numbers[left]]
    for decimals in range(1, MOST_DECIMALS + 1):
        left = _noted(numbers, left, decimals, found)
    return found


def _noted(numbers: FloatArray, left: IntArray, decimals: int, found: IntArray) -> IntArray:
    """Notes those of the numbers left that have so many decimals, and gives the others."""
    if left.size == 0:
        return left
    some = numbers[left]
    whole = np.rint(some * 10.0**decimals)
    fits = whole / 10.0**decimals == some
    found[left[fits]] = decimals * DIVISOR + whole[fits].astype(np.int64) % DIVISOR
    return np.asarray(left[~fits])


def _finest(outputs: AnyArray) -> IntArray:
    """The exponent of the last bit that is set in any entry; `NOTHING` where there is none, or for True and False."""
    found = np.full(len(outputs), -NOTHING)
    for column in columns_of(outputs) if outputs.dtype.kind != "b" else ():
        places = last_bit(column)
        found = np.where(places == NOTHING, found, np.minimum(found, places))
    return np.where(found == -NOTHING, NOTHING, found)


def _finest_in(values: AnyArray) -> IntArray:
    """The same of the numbers in an output, wherever they stand."""
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
