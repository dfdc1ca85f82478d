"""What attackers learn from the entries of outputs: of every one of them, of two together, and of all.

Where there are many entries, all are tried on some runs, and an attacker looks at the one that told most there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeVar

import numpy as np

from dprisk.auditing.evidence.entries import (
    BITS_ON,
    TOTALS,
    WHOLE,
    Entry,
    Total,
    beyond,
    correlated,
    direction_of,
    entries,
    second_ends,
    shadowed,
    shifted,
)
from dprisk.auditing.evidence.fitted import (
    WAYS,
    Bins,
    Difference,
    OneColumn,
    OneKind,
    OneValue,
    Repeats,
    TwoColumns,
    WeightedSum,
    as_they_are,
    combined,
    in_decimals,
    paired,
    summed,
    telling_numbers,
)
from dprisk.auditing.evidence.grids import DIVISOR, ENTRY_BITS, Bit, LastBit, Remainder, bit_of, last_bit, remainders
from dprisk.auditing.evidence.kinds import entry_kinds
from dprisk.auditing.evidence.layouts import Layout, numbers_only
from dprisk.auditing.evidence.places import counted
from dprisk.auditing.evidence.rules import DOUBTS, Bar, Past, Rule, by_luck, clear_or_alone, looked_up
from dprisk.auditing.evidence.views import BesideOwn, Seen, View, beside
from dprisk.types import FloatArray, IntArray

FEW_BINS, PAIR_BINS = 32, 16
MOST_COLUMNS, MOST_CORRELATED = 8, 500  # entries of which all pairs are tried, and of which the most telling one is
TRIED, FEWEST_TRIED, MOST_CELLS = 5000, 500, 1 << 20  # runs on which entries are tried, the fewer the more there are
FEWEST_ENTRIES, MANY_ENTRIES = 3, 50  # of which it is told what they come to, and of which few runs teach little
MANY_BITS, MOST_BITS = 40, 2000  # of one entry, and of all together, that are tried
MANY_NUMBERS = 64  # different ones, beyond which a single one among them may tell something

T = TypeVar("T")


@dataclass(frozen=True)
class Edges(Rule):
    """Names a record for numbers, or for an entry, beyond all that another record was seen to give."""

    low: float
    high: float
    lowest: int
    highest: int
    entry: Entry = WHOLE

    def answers(self, seen: Seen) -> IntArray:
        numbers = self.entry.numbers(seen)
        return np.where(numbers > self.high, self.highest, np.where(numbers < self.low, self.lowest, -1))

    def groups(self, seen: Seen) -> IntArray:
        return np.where(self.entry.numbers(seen) > self.high, 1, 0)

    def words(self, seen: Seen) -> list[str]:
        above, below = f"is above {self.high!r}", f"is below {self.low!r}"
        if not (math.isfinite(self.low) and math.isfinite(self.high)):  # the other record gave no number
            above = below = "is a number"
        numbers = self.entry.numbers(seen).tolist()
        return [f"{self.entry.name} {above if number > self.high else below}" for number in numbers]


def edges_of(numbers: FloatArray, records: IntArray, entry: Entry = WHOLE) -> Edges:
    """Beyond the second record's largest number, and below the second's smallest."""
    low, high, lowest, highest = (ends[0] for ends in second_ends(numbers[None], records))
    (below,), (above,) = (in_decimals(np.array([end]))[0] if math.isfinite(end) else [end] for end in (low, high))
    return Edges(float(min(below, low)), float(max(above, high)), int(lowest), int(highest), entry)


@dataclass(frozen=True)
class _Held:
    """What outputs hold: their entries by name, a row of `columns` for each, and some runs to try them on."""

    layout: Layout
    past: Past
    bar: Bar

    @cached_property
    def named(self) -> list[Entry]:
        return entries(self.past.seen.outputs, self.layout)

    @cached_property
    def columns(self) -> FloatArray:
        return self.past.seen.columns(self.layout)

    @cached_property
    def numbers(self) -> FloatArray:
        return numbers_only(self.columns)

    @property
    def are_bits(self) -> bool:
        return self.past.seen.outputs.dtype.kind == "b"

    @property
    def tried(self) -> slice:
        """The runs on which entries are tried: the fewer, the more entries there are."""
        return slice(min(TRIED, max(FEWEST_TRIED, MOST_CELLS // self.layout.size)))

    @cached_property
    def about(self) -> list[IntArray]:
        """About how large each entry was in those runs."""
        some = self.columns[:, self.tried]
        return [column.astype(np.int64) if self.are_bits else Bins(column, PAIR_BINS).places(column) for column in some]

    def best(self, tokens: Iterable[tuple[T, IntArray]]) -> T | None:
        """By which way of looking at those runs most of them would be answered on."""
        return most_answered(tokens, self.past.records[self.tried], self.bar, strictly=True)

    def looked_up(self, view: View, graded: bool = True) -> Rule:
        return looked_up(view, self.past, self.bar, graded)

    def clear_or_alone(self, view: View) -> Rule:
        return clear_or_alone(view, self.past, self.bar)


def rules_for_entries(layout: Layout, past: Past, bar: Bar, low_bits: bool) -> dict[str, Rule]:
    """What entries tell: one of them, how it lies on a grid, sums of all, equal ones, and two together.

    Of entries that go by keys, of which only some are looked at, nothing is said of all together.
    """
    held = _Held(layout, past, bar)
    found = _about_one(held) | _of_sums(held) | _of_two(held)
    if not held.are_bits:
        found |= _of_one_as_it_is(held) | _of_one_on_a_grid(held, low_bits) | _of_a_difference(held)
    if not layout.by_place:
        return found
    found |= _of_all(held)
    if not held.are_bits:
        found |= _of_one_kind(held) | _of_one_bit(held)
    repeats = Repeats(layout)
    if layout.length > 1 and np.median(repeats.tokens(past.seen.take(slice(TRIED)))) == 0:
        found["equal entries"] = held.clear_or_alone(repeats)
    return found


def rules_for_one_entry(layout: Layout, past: Past, bar: Bar) -> dict[str, Rule]:
    """What the one entry tells that tells most, by about how large it is, alone and beside the record of its run."""
    held = _Held(layout, past, bar)
    found = _about_one(held)
    if (own := past.seen.own) is not None:
        tokens = ((place, beside(about, own[held.tried])) for place, about in enumerate(held.about))
        place = held.best(tokens) or 0
        view = BesideOwn(OneColumn(held.named[place], held.columns[place], FEW_BINS))
        found["one entry beside its own record"] = held.looked_up(view, graded=False)
    return found


def are_many(numbers: FloatArray) -> bool:
    """Whether there are more than remainders, so that these tell something of their own."""
    return np.unique(numbers).size > DIVISOR


def most_answered(
    tokens: Iterable[tuple[T, IntArray]], records: IntArray, bar: Bar, strictly: bool = False
) -> T | None:
    """By which of several ways of looking at some runs most of them would be answered on; None if on none."""
    best, most = None, 0
    for key, mine in tokens:
        counts = counted(mine, records)
        answered = int((counts[2] + counts[3])[by_luck(counts, bar) < DOUBTS[1 if strictly else 0]].sum())
        if answered > most:
            best, most = key, answered
    return best


def _about_one(held: _Held) -> dict[str, Rule]:
    """One entry, by about how large it is."""
    best = held.best(enumerate(held.about))
    place = shifted(held.columns[:, held.tried], held.past.records[held.tried]) if best is None else best
    return {"one entry": held.looked_up(OneColumn(held.named[place], held.columns[place], FEW_BINS), graded=False)}


def _of_one_as_it_is(held: _Held) -> dict[str, Rule]:
    """The value of one entry, and beyond which ends one lies."""
    end, records = beyond(held.numbers, held.past.records), held.past.records
    value = held.best((place, as_they_are(column)) for place, column in enumerate(held.columns[:, held.tried]))
    return {
        "value of one entry": held.clear_or_alone(OneValue(held.named[value or 0])),
        "edges of one entry": edges_of(held.numbers[end], records, held.named[end]),
    }


def _of_one_kind(held: _Held) -> dict[str, Rule]:
    """What kind of thing one entry is: NaN, None, minus zero, whole where others are floats."""
    outputs = held.past.seen.outputs
    if outputs.dtype.kind in "iu":
        return {}
    kinds = entry_kinds(outputs[held.tried], held.layout, range(held.layout.length))
    varying = np.flatnonzero((kinds != kinds[:, :1]).any(axis=1)).tolist()
    place = held.best((place, kinds[place]) for place in varying) or 0
    return {"kind of one entry": held.clear_or_alone(OneKind(held.named[place], held.layout))}


def _of_one_on_a_grid(held: _Held, low_bits: bool) -> dict[str, Rule]:
    """The last bit of one entry, and what it leaves when it is divided."""
    found: dict[str, Rule] = {}
    some = held.numbers[:, held.tried]
    if low_bits and (fine := np.flatnonzero((some % 1 > 0).any(axis=1)).tolist()):
        best = held.best((place, last_bit(some[place])) for place in fine)
        found["low bits of one entry"] = held.clear_or_alone(LastBit(held.named[fine[0] if best is None else best]))
    if many := [place for place, row in enumerate(some) if are_many(row)]:
        best = held.best((place, remainders(some[place])) for place in many)
        found["remainder of one entry"] = held.clear_or_alone(Remainder(held.named[many[0] if best is None else best]))
    return found


def _of_one_bit(held: _Held) -> dict[str, Rule]:
    """One bit of one entry, where all are whole numbers."""
    if held.past.seen.outputs.dtype.kind not in "iu":
        return {}
    some = held.numbers[:, held.tried]
    most = ENTRY_BITS if len(some) * MANY_BITS > MOST_BITS else MANY_BITS
    bits = ((place, bit) for place in range(len(some)) for bit in range(most))
    place, bit = held.best(((place, bit), bit_of(some[place], bit)) for place, bit in bits) or (0, 0)
    return {"bit of one entry": held.looked_up(Bit(bit, held.named[place]), graded=False)}


def _of_all(held: _Held) -> dict[str, Rule]:
    """What all numbers of an output come to, and which are among them, wherever they stand."""
    some, records = held.numbers[:, held.tried], held.past.records[held.tried]
    places = tuple(place for place in held.layout.number_places if np.isfinite(some[place]).any())
    if len(places) < FEWEST_ENTRIES:
        return {}
    names = [BITS_ON] if held.are_bits else list(TOTALS)
    every = [Total(name, layout=held.layout, places=places) for name in names]
    best = held.best((total, Bins(sums, PAIR_BINS).places(sums)) for total in every for sums in [total.total(some)])
    chosen = best or every[0]
    column = OneColumn(chosen, chosen.total(held.numbers), FEW_BINS)
    found = {"total of all entries": held.looked_up(column, graded=False)}
    if np.unique(some[list(places), :FEWEST_TRIED]).size > MANY_NUMBERS:
        found["number among entries"] = held.looked_up(telling_numbers(held.layout, places, some, records))
    return found


def _of_sums(held: _Held) -> dict[str, Rule]:
    """Weighted sums by which records differ most: with what entries have in common taken out, and entry by entry."""
    directions = {"weighted sum": direction_of(held.numbers, held.past.records)}
    if held.layout.size > MANY_ENTRIES:
        directions["sum of shifts"] = direction_of(held.numbers, held.past.records, apart_only=True)
    names = [entry.name for entry in held.named]
    return {
        name: held.looked_up(WeightedSum(held.layout, names, direction, summed(held.columns, direction)))
        for name, direction in directions.items()
    }


def _of_two(held: _Held) -> dict[str, Rule]:
    """Two entries together, each by about how large it is."""
    pairs = _pairs(held)
    if not pairs:
        return {}
    tried = ((pair, paired(held.about[pair[0]], held.about[pair[1]])) for pair in pairs)
    one, two = most_answered(tried, held.past.records[held.tried], held.bar) or pairs[0]
    both = TwoColumns((held.named[one], held.named[two]), (held.columns[one], held.columns[two]), PAIR_BINS)
    return {"two entries": held.looked_up(both)}


def _of_a_difference(held: _Held) -> dict[str, Rule]:
    """What two entries add up to, are apart, or have for a ratio."""
    ways = [(one, two, way) for one, two in _pairs(held) for way in WAYS]
    if not ways:
        return {}
    some = held.numbers[:, held.tried]
    best = held.best((way, as_they_are(combined(some[way[0]], some[way[1]], way[2]))) for way in ways)
    one, two, way = best or ways[0]
    return {"difference of two entries": held.clear_or_alone(Difference(held.named[one], held.named[two], way))}


def _pairs(held: _Held) -> list[tuple[int, int]]:
    """Pairs of entries that are tried: of the first that are not always the same, as names in a dict are, and one."""
    some = held.columns[:, :TRIED]
    varying = np.flatnonzero((some != some[:, :1]).any(axis=1) & ~np.isnan(some).all(axis=1))
    pairs = list(combinations(varying[:MOST_COLUMNS].tolist(), 2))
    if pairs and MOST_COLUMNS < len(some) <= MOST_CORRELATED:
        pairs.append(correlated(held.numbers[:, :TRIED], held.past.records[:TRIED]))
    if len(some) > MOST_COLUMNS:
        pairs.append(shadowed(held.numbers[:, :TRIED], held.past.records[:TRIED]))
    return pairs
