"""The sets of records a guess can be right about, given what the attacker knows.

Seen an output, an attacker who knows that the record lies in group x picks a guess g. All that matters of g is the set
of records of the group on which it succeeds, S_g and a^-1(x). A `Reach` lists these sets, group by group, and does the
two sums that every computation needs: the mass in each set, and the sets over each record. The best attacker then
takes, in each group, the set of largest value.

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

    def __init__(self, guess: IntArray, group: IntArray, pairs: "Pairs") -> None:
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
class Pairs:
    """Which set belongs to a guess in a group: `number` for the pairs in `key`, group * base + rank of the guess."""

    rank: IntArray
    base: int
    key: IntArray
    number: IntArray


class Sets(Reach):
    """Sets given as the rows of a 0/1 matrix, kept sparse unless a dense product is cheaper."""

    def __init__(self, members: Any, guess: IntArray, group: IntArray, pairs: "Pairs") -> None:
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
        return np.asarray(self._sparse[sets[None, :], records[None, :]].toarray()[0] > 0)

    def members(self) -> Any:
        return self._sparse

    def profiles(self) -> list[IntArray]:
        prints = _fingerprints(self._sparse.T)
        return [np.unique(prints[:, column], return_inverse=True)[1] for column in range(2)]

    def narrowed(self, records: IntArray, preference: IntArray) -> "tuple[Sets, IntArray]":
        members = self._sparse[:, records]
        prints = _fingerprints(members)[preference]
        keep, place = first_of_each(self.group[preference], prints[:, 0], prints[:, 1])
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


def sets(success: Any, groups: IntArray) -> Sets:
    """The sets given by a sparse 0/1 matrix success[guess, record], cut along the knowledge groups."""
    table = scipy.sparse.coo_array(success)
    n_guesses, n_records = table.shape
    n_groups = int(groups.max()) + 1
    each = np.arange(n_guesses)
    if n_groups == 1:
        pairs = Pairs(each, n_guesses, each, each)
        return Sets(table.tocsr().astype(float), each, np.zeros(n_guesses, dtype=np.int64), pairs)
    rows, record = table.coords[0].astype(np.int64), table.coords[1]
    key, row = np.unique(groups[record] * n_guesses + rows, return_inverse=True)
    key, row = _with_empty(key, row, n_guesses, n_groups)
    members = scipy.sparse.csr_array((np.ones(record.size), (row, record)), shape=(key.size, n_records))
    group, guess = key // n_guesses, key % n_guesses
    prints = _fingerprints(members)
    keep, place_of = first_of_each(group, prints[:, 0], prints[:, 1])
    return Sets(members[keep], guess[keep], group[keep], Pairs(each, n_guesses, key, place_of))


def _fingerprints(rows: Any) -> Any:
    """Two numbers for each row of a sparse 0/1 matrix, equal for equal rows: sums of random numbers modulo 2^64."""
    secret = np.random.default_rng(0).integers(0, 1 << 63, size=(rows.shape[1], 2), dtype=np.uint64)
    return rows.astype(np.uint64) @ secret


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


def first_of_each(group: IntArray, a: Any, b: Any) -> tuple[IntArray, IntArray]:
    """Where each distinct triple (group, a, b) occurs first, sorted by it; and the place of every triple there."""
    order = np.lexsort((b, a, group))
    triple = (group[order], a[order], b[order])
    new = np.ones(order.size, dtype=bool)
    new[1:] = np.any([part[1:] != part[:-1] for part in triple], axis=0)
    place = np.empty_like(order)
    place[order] = np.cumsum(new) - 1
    return order[new], place
