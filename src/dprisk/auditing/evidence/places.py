"""Many numbers at once, quickly: between which edges each lies, which known one it is, how often records showed it."""

from __future__ import annotations

import numpy as np

from dprisk.types import FloatArray, IntArray

FEW = 16  # edges up to which bisecting is quick
CELLS = 1 << 13  # of an even grid from the first edge to the last
MOST_STEPS = 4  # edges in one cell beyond which bisecting is quicker
NOTHING = -(2**62)  # the view of an output that it has nothing to say about
FEW_TOKENS = 1 << 12  # between the smallest and the largest, for which there is an entry each in a table
MIXING = np.uint64(0x9E3779B97F4A7C15)  # an odd number whose multiples are spread over all 64 bits
SPARE = 8  # slots for each token that is known, so that hardly any share one
MOST_CELLS = 1 << 20  # tokens times records that are counted in a table

Counted = tuple[IntArray, IntArray, IntArray, IntArray]


class Ladder:
    """Edges in order, finite and each once: as `np.searchsorted`, several times as fast where they are many.

    An even grid is laid over them. The cell of a number never falls as the number rises, also as floats round it, so
    that edges of lower cells are below it and those of higher ones above. What is left are the edges of its own cell,
    rarely more than one, to compare with one by one.
    """

    def __init__(self, edges: FloatArray) -> None:
        self.edges = edges = np.asarray(edges, dtype=float)
        self._steps = 0
        if edges.size > FEW:
            with np.errstate(over="ignore"):
                self._scale = (CELLS - 1) / (edges[-1] - edges[0])
            times = np.bincount(self._cells(edges), minlength=CELLS + 1)
            self._before = np.cumsum(times) - times
            self._above = np.r_[edges, np.inf]
            self._steps = int(times.max())

    def __len__(self) -> int:
        return self.edges.size

    def places(self, numbers: FloatArray) -> IntArray:
        """How many edges are below each number; of what is not a number, some place."""
        if not 0 < self._steps <= MOST_STEPS:
            return self.edges.searchsorted(numbers)
        place: IntArray = self._before[self._cells(numbers)]
        for _ in range(self._steps):
            place += self._above[place] < numbers
        return place

    def _cells(self, numbers: FloatArray) -> IntArray:
        with np.errstate(over="ignore", invalid="ignore"):
            inside = np.fmin(np.fmax((numbers - self.edges[0]) * self._scale, -1.0), CELLS - 1.0)
        return np.asarray(inside.astype(np.int64) + 1)


def quantiles(numbers: FloatArray, bins: int) -> FloatArray:
    """The finite numbers that cut all of them into so many bins of about one size, in order and each once."""
    ordered = np.sort(numbers[np.isfinite(numbers)])
    if ordered.size == 0:
        return ordered
    shares = np.linspace(0, 1, bins + 1)[1:-1]
    return np.unique(ordered[np.round(shares * (ordered.size - 1)).astype(np.int64)].astype(float))


class Directory:
    """Tokens in order, each once, and where others are among them.

    If the smallest and the largest are close, there is a table of all between. Otherwise each has a slot by its bits,
    and those of one slot are compared with one after the other.
    """

    def __init__(self, known: IntArray) -> None:
        self._low, self._high = int(known[0]) - 1, int(known[-1]) + 1
        self._is_table = self._high - self._low <= FEW_TOKENS and max(-self._low, self._high) < 2**63
        if self._is_table:
            self._place = np.full(self._high - self._low + 1, -1)
            self._place[known - self._low] = np.arange(known.size)
        else:
            self._shift = np.uint64(64 - (SPARE * known.size).bit_length())
            slots = self._slots(known)
            times = np.bincount(slots)
            self._first = np.append(np.cumsum(times) - times, known.size)
            self._steps = int(times.max())
            self._place = np.append(np.argsort(slots, kind="stable"), np.zeros(self._steps, np.int64))
            self._known = known[self._place]

    def places(self, tokens: IntArray) -> IntArray:
        """The place of each token among those that are known; -1 if it is not."""
        if self._is_table:
            return np.asarray(self._place[np.minimum(np.maximum(tokens, self._low), self._high) - self._low])
        place: IntArray = self._first[np.minimum(self._slots(tokens), self._first.size - 1)]
        for _ in range(self._steps - 1):
            place += self._known[place] != tokens  # beyond its slot only if it is none of them
        return np.where(self._known[place] == tokens, self._place[place], -1)

    def _slots(self, tokens: IntArray) -> IntArray:
        return (np.ascontiguousarray(tokens).view(np.uint64) * MIXING >> self._shift).view(np.int64)


def in_order(codes: IntArray) -> IntArray:
    """The places of small whole numbers in their order, equal ones one after the other; few bits are sorted sooner."""
    return np.argsort(codes.astype(np.min_scalar_type(int(codes.max(initial=0)))), kind="stable")


def counted(tokens: IntArray, records: IntArray) -> Counted:
    """Tokens seen at least twice, the record that showed each most often, how often, and how often others did."""
    there = np.bincount(records) > 0
    some, codes = np.flatnonzero(there), (np.cumsum(there) - 1)[records]
    known, place, which = _grouped(tokens)
    codes = codes if which is None else codes[which]
    if known.size * some.size <= MOST_CELLS:
        table = np.bincount(place * some.size + codes, minlength=known.size * some.size)
        table = table.reshape(known.size, some.size)
        top, total, named = table.max(axis=1, initial=0), table.sum(axis=1), some[table.argmax(axis=1)]
    else:
        cells, times = np.unique(place * some.size + codes, return_counts=True)
        owner, who = np.divmod(cells, some.size)
        order = np.lexsort((-times, owner))
        first = order[np.flatnonzero(np.diff(owner[order], prepend=-1))]
        known, total = known[owner[first]], np.bincount(owner, weights=times).astype(np.int64)[owner[first]]
        named, top = some[who[first]], times[first]
    again = total >= 2
    return known[again], named[again], top[again], (total - top)[again]


def _grouped(tokens: IntArray) -> tuple[IntArray, IntArray, IntArray | None]:
    """Tokens in order, the place among them of some outputs, and which outputs these are; None for all.

    Left out are outputs that a view has nothing to say about; and, where tokens are many, those seen once.
    """
    said = None if (tokens != NOTHING).all() else np.flatnonzero(tokens != NOTHING)
    mine = tokens if said is None else tokens[said]
    if mine.size == 0:
        return mine, mine, said
    low, high = int(mine.min()), int(mine.max())
    if high - low < max(FEW_TOKENS, mine.size):
        return low + np.arange(high - low + 1), mine - low, said
    order = np.argsort(mine)
    ordered = mine[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    times = np.diff(np.r_[starts, ordered.size])
    again = times >= 2
    which = order[np.repeat(again, times)]
    place = np.repeat(np.arange(int(again.sum())), times[again])
    return ordered[starts[again]], place, which if said is None else said[which]
