"""The grid that numbers lie on: which bit or decimal is the last, and what is left of a number when it is divided.

Noise may hide how large a number is, and not where it comes from: a code that adds multiples of 7 leaves the remainder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprisk.auditing.evidence.fitted import entry_name
from dprisk.auditing.evidence.places import NOTHING
from dprisk.auditing.evidence.views import Seen, View, last_bit
from dprisk.types import FloatArray, IntArray

DIVISOR = 420  # by 2, 3, 4, 5, 6, 7 and 10
MOST_DECIMALS = 6
EXACT = 2.0**53  # beyond which floats are no longer all whole numbers


class LastBit(View):
    """How fine the grid is that one entry of an output lies on, see `LowBits`."""

    is_fixed = False

    def __init__(self, place: int) -> None:
        self.place = place

    def tokens(self, seen: Seen) -> IntArray:
        column = column_of(seen, self.place)
        return np.full(len(seen), NOTHING) if column is None else last_bit(column)

    def words(self, token: int, example: Any) -> str:
        return f"{entry_name(example, self.place)} is an odd multiple of 2^{token}"


class Remainder(View):
    """How many decimals a number has, or an entry, and what it leaves, without the point, divided by `DIVISOR`."""

    is_fixed = False

    def __init__(self, place: int | None = None) -> None:
        self.place = place

    def tokens(self, seen: Seen) -> IntArray:
        column = column_of(seen, self.place)
        return np.full(len(seen), NOTHING) if column is None else remainders(column)

    def words(self, token: int, example: Any) -> str:
        decimals, left = divmod(token, DIVISOR)
        what = "the output" if self.place is None else entry_name(example, self.place)
        if decimals == 0:
            return f"{what} is a multiple of {DIVISOR} plus {left}"
        without = f"{decimals} decimal{'s' * (decimals > 1)}, and without the point"
        return f"{what} has {without} is a multiple of {DIVISOR} plus {left}"


def column_of(seen: Seen, place: int | None) -> FloatArray | None:
    """The outputs as numbers, or one of their entries; None if there is no such."""
    if place is None:
        return seen.numbers
    columns = seen.entries
    return None if columns is None or len(columns) <= place else np.asarray(columns[place])


def remainders(numbers: FloatArray) -> IntArray:
    """For each number of at most six decimals how many it has, and its remainder; `NOTHING` for others.

    >>> [divmod(token, DIVISOR) for token in remainders(np.array([421.0, 0.37])).tolist()]
    [(0, 1), (2, 37)]
    """
    found = np.full(numbers.size, NOTHING)
    left = np.flatnonzero(np.abs(numbers) < EXACT)
    left = _fitted(numbers, left, 0, found)
    left = left[np.abs(numbers[left]) * 10.0**MOST_DECIMALS < EXACT]
    left = left[np.rint(numbers[left] * 10.0**MOST_DECIMALS) / 10.0**MOST_DECIMALS == numbers[left]]
    for decimals in range(1, MOST_DECIMALS + 1):
        left = _fitted(numbers, left, decimals, found)
    return found


def _fitted(numbers: FloatArray, left: IntArray, decimals: int, found: IntArray) -> IntArray:
    """Notes those of the numbers left that have so many decimals, and gives the others."""
    if left.size == 0:
        return left
    some = numbers[left]
    whole = np.rint(some * 10.0**decimals)
    fits = whole / 10.0**decimals == some
    found[left[fits]] = decimals * DIVISOR + whole[fits].astype(np.int64) % DIVISOR
    return np.asarray(left[~fits])
