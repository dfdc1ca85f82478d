"""The sets of records a guess can be right about, given what the attacker knows.

Seen an output, an attacker who knows that the record lies in group x picks a guess g. All that matters
of g is the set of records of the group on which it succeeds, S_g and a^-1(x). A `Reach` lists these sets, group by
group, and does the two sums that every computation needs: the mass in each set, and the
sets over each record. The best attacker then takes, in each group, the set of largest value.

An empty set in a group means that a guess exists that is never right there. It is listed only if such a guess
exists: without one the attacker cannot avoid a loss (theory, gotcha 4).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dprisk.types import BoolArray, FloatArray, IntArray

WIDE = 64  # columns from which numpy's reduceat along the other axis takes several times as long as group by group


class Reach(ABC):
    """Sets of records, sorted by knowledge group. With several groups, no set is listed twice in one.

    `guess[c]` is a guess whose set is c, `group[c]` the group that c belongs to, and
    `starts[x]` the first set of group x. There are `n_guesses` guesses, of which several may share a set.
    """

    _records: int

    def __init__(self, guess: IntArray, group: IntArray, pairs: "_Pairs") -> None:
        self.guess, self.group, self._pairs = guess, group, pairs
        self.starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        self.n_guesses = pairs.rank.size

    @abstractmethod
    def find(self, guesses: IntArray, group: int | IntArray) -> IntArray:
        """The number of the set that each guess is right about in a group, or each in a group of its own."""

    @abstractmethod
    def holds(self, sets: IntArray, records: IntArray) -> BoolArray:
        """Whether each of some sets, given by their numbers, holds the record beside it."""

    @abstractmethod
    def sums(self, values: FloatArray) -> FloatArray:
        """Sum the rows of `values` (records x anything) over each set. The result may be `values` itself."""

    @abstractmethod
    def cover(self, shares: FloatArray) -> FloatArray:
        """For each record, sum the rows of `shares` (sets x anything) over the sets that contain it."""

    @abstractmethod
    def union(self, chosen: IntArray) -> FloatArray:
        """1 for each record in one of the chosen sets (one for each group, groups x anything), else 0."""

    @abstractmethod
    def largest_over(self, values: FloatArray) -> FloatArray:
        """For each record, the largest of `values` (one a set) over the sets that contain it; -inf if none does."""

    @abstractmethod
    def members(self) -> Any:
        """The sets as a sparse 0/1 matrix, sets x records."""

    @abstractmethod
    def profiles(self) -> list[IntArray]:
        """Numbers of each record, all of them equal only for records of a group that are in the same sets."""

    @abstractmethod
    def narrowed(self, records: IntArray, preference: IntArray) -> "tuple[Reach, IntArray]":
        """What the sets hold of some records (in rising order, then called 0, 1, ...), and the numbers of the sets.

        Of sets of a group that become the same, the first in `preference` (all sets in some order) stays. Every group
        must keep a record.
        """

    def best(self, values: FloatArray) -> FloatArray:
        """The largest row of `values` (sets x anything) within each group."""
        if self.starts.size == 1:
            return np.asarray(values.max(axis=0, keepdims=True))
        if values.shape[1] < WIDE:
            return np.asarray(np.maximum.reduceat(values, self.starts, axis=0))
        largest = np.empty((self.starts.size, values.shape[1]))
        for group, rows in enumerate(np.split(values, self.starts[1:])):
            np.maximum.reduce(rows, axis=0, out=largest[group])
        return largest

    def first_best(self, values: FloatArray) -> IntArray:
        """The number of the first set of largest value within each group (groups x anything)."""
        if self.starts.size == 1:
            return np.asarray(values.argmax(axis=0))[None, :]
        hits = values == self.best(values)[self.group]
        number = np.where(hits, np.arange(values.shape[0])[:, None], values.shape[0])
        return np.asarray(np.minimum.reduceat(number, self.starts, axis=0))

    @cached_property
    def sizes(self) -> FloatArray:
        """How many records each set holds."""
        return self.sums(np.ones((self._records, 1)))[:, 0]

    @property
    def can_avoid(self) -> BoolArray:
        """For each group, whether some guess is never right in it."""
        return np.asarray(self.best(-self.sizes[:, None])[:, 0] == 0)

    @property
    def covered(self) -> BoolArray:
        """For each record, whether some guess is right about it."""
        return self.largest_over(self.sizes) > -np.inf


@dataclass(frozen=True)
class _Pairs:
    """Which set belongs to a guess in a group: `number` for the pairs in `key`, group * base + rank of the guess."""

    rank: IntArray
    base: int
    key: IntArray
    number: IntArray


class Windows(Reach):
    """Sets that are runs `order[lo:hi]` of consecutive records: balls on a line or ring, single records, classes."""

    def __init__(
        self, order: IntArray, lo: IntArray, hi: IntArray, guess: IntArray, group: IntArray, pairs: "_Pairs"
    ) -> None:
        super().__init__(guess, group, pairs)
        self.order, self.lo, self.hi = order, lo, hi
        self._records = int(order.max()) + 1
        self._single = bool(np.all(hi - lo <= 1))
        self._empty = np.flatnonzero(lo == hi)
        self._in_order = np.array_equal(order, np.arange(order.size))
        # With nothing known and exact success the sets are the records themselves, in their own order.
        self._identity = self._single and np.array_equal(
            order[np.minimum(lo, order.size - 1)], np.arange(self._records)
        )

    def find(self, guesses: IntArray, group: int | IntArray) -> IntArray:
        pairs = self._pairs  # the set of a guess is that of the last change before it
        at = np.searchsorted(pairs.key, group * pairs.base + pairs.rank[guesses], side="right") - 1
        return pairs.number[at]

    def holds(self, sets: IntArray, records: IntArray) -> BoolArray:
        places = self._places[:, records]
        return np.asarray(((self.lo[sets] <= places) & (places < self.hi[sets])).any(axis=0))

    @cached_property
    def _places(self) -> IntArray:
        """Where each record is listed, once or, on a ring, twice; -1 where it is not."""
        sort = np.argsort(self.order, kind="stable")
        listed = self.order[sort]
        turn = np.arange(listed.size) - np.searchsorted(listed, listed)
        found = np.full((int(turn.max()) + 1, self._records), -1)
        found[turn, listed] = sort
        return found

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
        """The first and the last set around each place where a record is listed, once or (on a ring) twice."""
        first, last = self._around()
        nowhere = first > last
        first, last = np.where(nowhere, 0, first + 1), np.where(nowhere, 0, last + 1)
        by_record = np.argsort(self.order, kind="stable").reshape(self._records, -1)
        return [ends[listed] for listed in by_record.T for ends in (first, last)]

    def narrowed(self, records: IntArray, preference: IntArray) -> "tuple[Windows, IntArray]":
        rank = np.full(self._records, -1)
        rank[records] = np.arange(records.size)
        listed = rank[self.order]
        before = np.r_[0, np.cumsum(listed >= 0)]  # of each place, how many that stay
        lo, hi = before[self.lo], before[self.hi]
        nothing = lo == hi
        lo[nothing] = hi[nothing] = np.minimum.reduceat(lo, self.starts)[self.group[nothing]]
        keep, place = _first_of_each(self.group[preference], lo[preference], hi[preference])
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


class Sets(Reach):
    """Sets given as the rows of a 0/1 matrix, kept sparse unless a dense product is cheaper."""

    def __init__(self, members: Any, guess: IntArray, group: IntArray, pairs: "_Pairs") -> None:
        super().__init__(guess, group, pairs)
        self._records = members.shape[1]
        cells = members.shape[0] * members.shape[1]
        # scipy's sparse product runs at about a twelfth of the speed of BLAS; 2^25 cells are 256 MB.
        dense = members.nnz * 12 > cells and cells <= 1 << 25
        self._sparse = members
        self._members = members.toarray() if dense else members

    def find(self, guesses: IntArray, group: int | IntArray) -> IntArray:
        pairs = self._pairs
        wanted = group * pairs.base + pairs.rank[guesses]
        at = np.minimum(np.searchsorted(pairs.key, wanted), pairs.key.size - 1)
        return np.where(pairs.key[at] == wanted, pairs.number[at], self._never[group])

    @cached_property
    def _never(self) -> IntArray:
        """For each group its empty set, that of guesses which are not listed; -1 where there is none."""
        found = np.full(int(self.group.max()) + 1, -1)
        empty = np.flatnonzero(self.sizes == 0)[::-1]
        found[self.group[empty]] = empty
        return found

    def holds(self, sets: IntArray, records: IntArray) -> BoolArray:
        wanted = sets * self._records + records
        at = np.minimum(np.searchsorted(self._cells, wanted), self._cells.size - 1)
        return np.asarray(self._cells[at] == wanted)

    @cached_property
    def _cells(self) -> IntArray:
        """Sets and their records as numbers, in order; one that is none if all sets are empty."""
        row, record = self._sparse.tocoo().coords
        return np.sort(np.r_[-1, row.astype(np.int64) * self._records + record])

    def members(self) -> Any:
        return self._sparse

    def profiles(self) -> list[IntArray]:
        prints = _fingerprints(self._sparse.T)
        return [np.unique(prints[:, column], return_inverse=True)[1] for column in range(2)]

    def narrowed(self, records: IntArray, preference: IntArray) -> "tuple[Sets, IntArray]":
        members = self._sparse[:, records]
        prints = _fingerprints(members)[preference]
        keep, place = _first_of_each(self.group[preference], prints[:, 0], prints[:, 1])
        sets, now = preference[keep], np.empty_like(place)
        now[preference] = place
        pairs = replace(self._pairs, number=now[self._pairs.number])
        return Sets(members[sets], self.guess[sets], self.group[sets], pairs), sets

    def sums(self, values: FloatArray) -> FloatArray:
        return np.asarray(self._members @ np.ascontiguousarray(values))

    def cover(self, shares: FloatArray) -> FloatArray:
        return np.asarray(self._members.T @ np.ascontiguousarray(shares))

    def union(self, chosen: IntArray) -> FloatArray:
        one_hot = np.zeros((self.guess.size, chosen.shape[1]))
        np.put_along_axis(one_hot, chosen, 1.0, axis=0)
        return self.cover(one_hot)

    def largest_over(self, values: FloatArray) -> FloatArray:
        result = np.full(self._records, -np.inf)
        by_record = self._sparse.tocsc()
        covered = np.flatnonzero(np.diff(by_record.indptr))
        if covered.size:
            result[covered] = np.maximum.reduceat(values[by_record.indices], by_record.indptr[covered])
        return result


def windows(positions: FloatArray, eta: float, groups: IntArray, circumference: float | None = None) -> Windows:
    """The balls of radius eta around the records of a line, or of a ring of the given circumference.

    Sort the distinct guesses by where their ball begins. A record is entered by the first guess whose ball
    reaches it and left by the first whose ball begins behind it, so a group's set changes at these guesses only:
    at most two for each record, however many guesses there are. A ring is cut open and its records listed twice.
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
    keep, place_of = _first_of_each(group, lo, hi)
    pairs = _Pairs(rank, base, key, place_of)
    return Windows(record, lo[keep], hi[keep], guess[number[keep]], group[keep], pairs)


def sets(success: Any, groups: IntArray) -> Sets:
    """The sets given by a sparse 0/1 matrix success[guess, record], cut along the knowledge groups."""
    table = scipy.sparse.coo_array(success)
    n_guesses, n_records = table.shape
    n_groups = int(groups.max()) + 1
    each = np.arange(n_guesses)
    if n_groups == 1:
        pairs = _Pairs(each, n_guesses, each, each)
        return Sets(table.tocsr().astype(float), each, np.zeros(n_guesses, dtype=np.int64), pairs)
    rows, record = table.coords[0].astype(np.int64), table.coords[1]
    key, row = np.unique(groups[record] * n_guesses + rows, return_inverse=True)
    key, row = _with_empty(key, row, n_guesses, n_groups)
    members = scipy.sparse.csr_array((np.ones(record.size), (row, record)), shape=(key.size, n_records))
    group, guess = key // n_guesses, key % n_guesses
    prints = _fingerprints(members)
    keep, place_of = _first_of_each(group, prints[:, 0], prints[:, 1])
    return Sets(members[keep], guess[keep], group[keep], _Pairs(each, n_guesses, key, place_of))


def _fingerprints(rows: Any) -> Any:
    """Two numbers for each row of a sparse 0/1 matrix, equal for equal rows: sums of random numbers modulo 2^64."""
    secret = np.random.default_rng(0).integers(0, 1 << 63, size=(rows.shape[1], 2), dtype=np.uint64)
    return rows.astype(np.uint64) @ secret


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


def _with_empty(key: IntArray, row: IntArray, n_guesses: int, n_groups: int) -> tuple[IntArray, IntArray]:
    """Add, for each group in which some guess is never right, the first such guess as an empty set."""
    group, guess = key // n_guesses, key % n_guesses
    count = np.bincount(group, minlength=n_groups)
    rank = np.arange(key.size) - np.repeat(np.cumsum(count) - count, count)
    gap = count.copy()  # the guesses 0, 1, ..., count-1 are all right somewhere, unless one is skipped
    np.minimum.at(gap, group[guess != rank], rank[guess != rank])
    some = np.flatnonzero(gap < n_guesses)
    merged = np.union1d(key, some * n_guesses + gap[some])
    return merged, np.searchsorted(merged, key)[row]


def _first_of_each(group: IntArray, a: Any, b: Any) -> tuple[IntArray, IntArray]:
    """Where each distinct triple (group, a, b) occurs first, sorted by it; and the place of every triple there."""
    order = np.lexsort((b, a, group))
    triple = (group[order], a[order], b[order])
    new = np.ones(order.size, dtype=bool)
    new[1:] = np.any([part[1:] != part[:-1] for part in triple], axis=0)
    place = np.empty_like(order)
    place[order] = np.cumsum(new) - 1
    return order[new], place


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
