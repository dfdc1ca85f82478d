"""Sets of records that are runs of consecutive ones: balls on a line or ring, single records, classes."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dprisk.threat.reach import Pairs, Reach, first_of_each
from dprisk.types import BoolArray, FloatArray, IntArray


class Windows(Reach):
    """Sets that are runs `order[lo:hi]` of consecutive records: balls on a line or ring, single records, classes."""

    def __init__(
        self, order: IntArray, lo: IntArray, hi: IntArray, guess: IntArray, group: IntArray, pairs: Pairs
    ) -> None:
        super().__init__(guess, group, pairs)
        self.order, self.lo, self.hi = order, lo, hi
        self._records = int(order.max()) + 1
        self._single = bool(np.all(hi - lo <= 1))
        self._empty = np.flatnonzero(lo == hi)
        self._in_order = np.array_equal(order, np.arange(order.size))
        # With nothing known and exact success the sets are the records themselves, in their own order.
        first = order[np.minimum(lo, order.size - 1)]
        self._identity = self._single and np.array_equal(first, np.arange(self._records))

    def find(self, guesses: IntArray, group: int | IntArray) -> IntArray:
        pairs = self._pairs  # the set of a guess is that of the last change before it
        at = np.searchsorted(pairs.key, group * pairs.base + pairs.rank[guesses], side="right") - 1
        return pairs.number[at]

    def holds(self, sets: IntArray, records: IntArray) -> BoolArray:
        places = self._places[:, records]
        return np.asarray(((self.lo[sets] <= places) & (places < self.hi[sets])).any(axis=0))

    @cached_property
    def _places(self) -> IntArray:
        """Where each record is listed, once or (on a ring) twice: a row for each turn."""
        return np.argsort(self.order, kind="stable").reshape(self._records, -1).T

    def sums(self, values: FloatArray) -> FloatArray:
        if self._identity and not self._empty.size:
            return values
        if self._single:
            picked = values[self.order[np.minimum(self.lo, self.order.size - 1)]]
            picked[self._empty] = 0
            return picked
        prefix = np.empty((self.order.size + 1, values.shape[1]))
        prefix[0] = 0
        np.cumsum(values if self._in_order else values[self.order], axis=0, out=prefix[1:])
        result: FloatArray = prefix[self.hi]
        result -= prefix[self.lo]
        return result

    def cover(self, shares: FloatArray) -> FloatArray:
        return self._added(self.lo, self.hi, shares, shares.shape[1])

    def union(self, chosen: IntArray) -> FloatArray:
        column = np.broadcast_to(np.arange(chosen.shape[1]), chosen.shape)
        return self._added((self.lo[chosen], column), (self.hi[chosen], column), 1.0, chosen.shape[1])

    def _added(self, starts: Any, ends: Any, shares: FloatArray | float, width: int) -> FloatArray:
        """Shares of windows that start and end there, by record: added up where a ring lists a record twice."""
        steps, by_record = np.zeros((self.order.size + 1, width)), np.zeros((self._records, width))
        np.add.at(steps, starts, shares)
        np.subtract.at(steps, ends, shares)
        listed = np.cumsum(steps[:-1], axis=0)
        if self.order.size == self._records:
            by_record[self.order] = listed
        else:
            np.add.at(by_record, self.order, listed)
        return by_record

    def profiles(self) -> list[IntArray]:
        """The first and the last set around each place where a record is listed."""
        first, last = self._around()
        nowhere = first > last
        first, last = np.where(nowhere, 0, first + 1), np.where(nowhere, 0, last + 1)
        return [ends[listed] for listed in self._places for ends in (first, last)]

    def narrowed(self, records: IntArray, preference: IntArray) -> "tuple[Windows, IntArray]":
        rank = np.full(self._records, -1)
        rank[records] = np.arange(records.size)
        listed = rank[self.order]
        before = np.r_[0, np.cumsum(listed >= 0)]  # of each place, how many that stay
        lo, hi = before[self.lo], before[self.hi]
        nothing = lo == hi
        lo[nothing] = hi[nothing] = np.minimum.reduceat(lo, self.starts)[self.group[nothing]]
        keep, place = first_of_each(self.group[preference], lo[preference], hi[preference])
        sets, now = preference[keep], np.empty_like(place)
        now[preference] = place
        pairs = replace(self._pairs, number=now[self._pairs.number])
        seen = Windows(listed[listed >= 0], lo[sets], hi[sets], self.guess[sets], self.group[sets], pairs)
        return seen, sets

    def largest_over(self, values: FloatArray) -> FloatArray:
        result = np.full(self._records, -np.inf)
        np.maximum.at(result, self.order, _range_max(values, *self._around()))
        return result

    def _around(self) -> tuple[IntArray, IntArray]:
        """The first and the last set around each place of the order; the last before the first where there is none."""
        # lo and hi both rise from set to set, so the sets around a place are neighbours too.
        place = np.arange(self.order.size)
        return np.searchsorted(self.hi, place, side="right"), np.searchsorted(self.lo, place, side="right") - 1

    def members(self) -> Any:
        length = self.hi - self.lo
        starts = np.r_[0, np.cumsum(length)]
        place = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.lo, length)
        entries = (np.ones(place.size), self.order[place], starts)
        return scipy.sparse.csr_array(entries, shape=(length.size, self._records))


def windows(positions: FloatArray, eta: float, groups: IntArray, circumference: float | None = None) -> Windows:
    """The balls of radius eta around the records of a line, or of a ring of the given circumference.

    Sort the distinct guesses by where their ball begins. A record is entered by the first guess whose ball reaches it
    and left by the first whose ball begins behind it, so a group's set changes at these guesses only: at most two for
    each record. A ring is cut open and its records listed twice.
    """
    begin, guess, ends, rank = _balls(positions, eta, circumference)
    turns = 1 if circumference is None else 2
    slack = rounding_slack(eta, positions)
    if circumference is not None and 2 * (eta + slack) >= circumference:  # every ball is the whole ring
        begin, guess, ends, turns = begin[:1], guess[:1], np.array([np.inf]), 1
        begin, rank = np.array([-np.inf]), np.zeros_like(rank)
    place = np.concatenate([positions + turn * (circumference or 0.0) for turn in range(turns)])
    record = np.tile(np.arange(positions.size), turns)
    owner = np.tile(groups, turns)
    sort = np.lexsort((place, owner))
    place, record, owner = place[sort], record[sort], owner[sort]
    enters = np.searchsorted(ends, place, side="left")
    leaves = np.searchsorted(begin, place, side="right")

    base = guess.size + 1  # a pair (group, guess) is numbered group * base + guess
    n_groups = int(groups.max()) + 1
    key = np.unique(np.concatenate([np.arange(n_groups) * base, owner * base + enters, owner * base + leaves]))
    key = key[key % base < guess.size]
    hi = np.searchsorted(owner * base + enters, key, side="right")
    lo = np.searchsorted(owner * base + leaves, key, side="right")
    group, number = key // base, key % base
    empty = lo == hi
    lo[empty] = hi[empty] = np.searchsorted(owner, group[empty])  # so that a group lists it once, first
    keep, place_of = first_of_each(group, lo, hi)
    pairs = Pairs(rank, base, key, place_of)
    return Windows(record, lo[keep], hi[keep], guess[number[keep]], group[keep], pairs)


def _balls(
    positions: FloatArray, eta: float, circumference: float | None
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Begin, a record to name, and end of the ball of each distinct guess, sorted by begin; each record's place."""
    where, guess, same = np.unique(positions, return_index=True, return_inverse=True)
    slack = rounding_slack(eta, where)
    begin = where - eta if circumference is None else np.mod(where - eta, circumference)
    sort = np.argsort(begin, kind="stable")
    begin, guess = begin[sort], guess[sort]
    return begin - slack, guess, begin + 2 * eta + slack, np.argsort(sort)[same]


def rounding_slack(eta: float, positions: FloatArray) -> float:
    """How far beyond eta a distance may lie and count as eta: 0.4 - 0.1 is not 0.3 in floats."""
    return 1e-12 * eta + 4 * float(np.spacing(np.abs(positions).max()))


def _range_max(values: FloatArray, first: IntArray, last: IntArray) -> FloatArray:
    """max(values[first:last+1]) for many ranges, -inf for an empty one: a sparse table, level by level."""
    result = np.full(first.size, -np.inf)
    length = last - first + 1
    level, table = 1, values
    while True:
        now = np.flatnonzero((length >= level) & (length < 2 * level))
        result[now] = np.maximum(table[first[now]], table[last[now] - level + 1])
        level *= 2
        if level > length.max(initial=0):
            return result
        table = np.maximum(table[: -(level // 2)], table[level // 2 :])
