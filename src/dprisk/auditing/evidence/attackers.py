"""Attackers who keep learning: from all earlier blocks of an audit, never from the one they judge (theory, 4.4).

An attacker learns a rule that names a suspect for some outputs and is silent for the others. How well it learned makes
it strong or weak, never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, TypeVar

import numpy as np

from dprisk.auditing.code.outputs import as_objects, shown
from dprisk.auditing.evidence.entries import (
    WHOLE,
    Entry,
    beyond,
    correlated,
    direction_of,
    entries,
    second_ends,
    shifted,
)
from dprisk.auditing.evidence.fitted import (
    Bins,
    OneColumn,
    Parts,
    Repeats,
    TwoColumns,
    Unusual,
    coarse,
    in_decimals,
    paired,
    summed,
    telling_parts,
    with_parts,
)
from dprisk.auditing.evidence.grids import DIVISOR, LastBit, LowBits, Remainder, last_bit, remainders
from dprisk.auditing.evidence.places import counted
from dprisk.auditing.evidence.rules import BEFORE, DOUBTS, Bar, Lookup, Past, Rule, by_luck, clear_or_alone, looked_up
from dprisk.auditing.evidence.views import Form, Seen, Value, View, numbers_only, usual_length
from dprisk.types import FloatArray, IntArray

FEW_BINS, MANY_BINS, IN_A_BIN = 32, 512, 40
PAIR_BINS, COARSE_BINS, MOST_COLUMNS, MOST_SUMMED = 16, 4, 8, 200
TRIED = 5000  # outputs on which pairs of entries are compared

T = TypeVar("T")
Learned = dict[str, Rule]  # rules by their names


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
        above, below = f"{self.entry.name} is above {self.high!r}", f"{self.entry.name} is below {self.low!r}"
        return [above if number > self.high else below for number in self.entry.numbers(seen).tolist()]


class Verbatim(Lookup):
    """Names the record that the output is."""

    def of(self, suspects: IntArray) -> Verbatim:
        """The same for some records."""
        mine = np.isin(self.named, suspects)
        if mine.all():
            return self
        return replace(self, known=self.known[mine], named=self.named[mine], graded=self.graded[mine])

    def groups(self, seen: Seen) -> IntArray:
        return np.zeros(len(seen), dtype=np.int64)

    def words(self, seen: Seen) -> list[str]:
        return [f"the output is {shown(output)}, the record itself," for output in seen.outputs]


def rules(past: Past, known: Lookup, bar: Bar, low_bits: bool = True) -> Learned:
    """What every attacker has learned by now, beside one that is `known` before; one that has nothing is left out."""
    found: Learned = {"verbatim": known} if known.known.size else {}
    found |= quick_rules(past, bar, low_bits) | _of_numbers(past, bar) | _of_parts(past, bar)
    numbers = past.seen.numbers
    if numbers is not None:
        bins = max(2, min(MANY_BINS, numbers.size // IN_A_BIN))
        found["narrow bins"] = looked_up(Bins(numbers, bins), past, bar, bins > FEW_BINS)
        found["edges"] = _edges(numbers, past.records)
    if (cut := coarse(past.seen, COARSE_BINS)) is not None:
        found["coarsely"] = looked_up(cut, past, bar)
    if length := usual_length(past.seen.outputs):
        found |= _joint(entries(past.seen.outputs, length), past, bar, low_bits)
    return found


def rules_for_earlier(past: Past, known: Lookup, bar: Bar, low_bits: bool = True) -> Learned:
    """Rules that name the record of the run before, of which code tells nothing that keeps nothing."""
    found: Learned = {"verbatim": known} if known.known.size else {}
    for name, view in _quick_views(past.seen, low_bits).items():
        found[name] = looked_up(view, past, bar, graded=isinstance(view, Value))
    found |= _of_numbers(past, bar) | _of_parts(past, bar)
    if length := usual_length(past.seen.outputs):
        found["one entry"] = _of_one_entry(entries(past.seen.outputs, length), past, bar)[1]
    return {f"{name}{BEFORE}": rule for name, rule in found.items()}


def quick_rules(past: Past, bar: Bar, low_bits: bool = True) -> Learned:
    """Those of the rules that are quick to learn: what is rare becomes known the later the better."""
    found: Learned = {}
    for name, view in _quick_views(past.seen, low_bits).items():
        many = isinstance(view, Value)  # of many tokens some tell a record by luck
        found[name] = clear_or_alone(view, past, bar, many)
    return found


def rules_for_two(past: Past, bar: Bar) -> Learned:
    """Rules that tell two records apart, of whom one may be ruled out by what several others show as well."""
    views: dict[str, View] = {"value": Value(), "form": Form()}
    return {f"{name}, of two": clear_or_alone(view, past, bar) for name, view in views.items()}


def _quick_views(seen: Seen, low_bits: bool) -> dict[str, View]:
    views: dict[str, View] = {"value": Value(), "form": Form(), "unusual value": Unusual(seen)}
    return views | ({"low bits": LowBits()} if low_bits else {})


def by_name(learned: Learned) -> dict[str, tuple[Rule, int]]:
    """The attackers by their names: each grade of each rule."""
    return {name + word: (rule, grade) for name, rule in learned.items() for grade, word in enumerate(rule.grades)}


def verbatim(records: Sequence[Any]) -> Verbatim:
    """The rule that looks for the records themselves: as they are, as floats, as text."""
    spelled = [(spelling, number) for number, record in enumerate(records) for spelling in _spellings(record)]
    tokens = Value().tokens(Seen(as_objects([spelling for spelling, _ in spelled])))
    known, first = np.unique(tokens, return_index=True)
    return Verbatim(Value(), known, np.array([number for _, number in spelled])[first], np.ones_like(known))


def _spellings(record: Any) -> list[Any]:
    plain = record.item() if isinstance(record, np.generic) else record
    if not isinstance(plain, int | float | str | bool):
        return []
    try:
        return [plain, float(plain), str(plain)]
    except (ValueError, OverflowError):
        return [plain, str(plain)]


def _of_numbers(past: Past, bar: Bar) -> Learned:
    """What outputs tell that are numbers: about how large they are, and what is left when they are divided."""
    numbers = past.seen.numbers
    if numbers is None:
        return {}
    bins = max(2, min(FEW_BINS, numbers.size // IN_A_BIN))
    found: Learned = {"wide bins": looked_up(Bins(numbers, bins), past, bar, graded=False)}
    if _are_many(numbers[:TRIED]):
        found["remainder"] = clear_or_alone(Remainder(), past, bar)
    return found


def _of_parts(past: Past, bar: Bar) -> Learned:
    """What words of a text, or entries at any depth, tell."""
    some = with_parts(past.seen.outputs)[-TRIED:]
    if some.size == 0:
        return {}
    return {"parts": looked_up(Parts(telling_parts(past.seen.outputs[some], past.records[some])), past, bar)}


def _of_one_entry(named: list[Entry], past: Past, bar: Bar) -> tuple[int, Rule]:
    """The place of the entry that records shift most, and what it tells."""
    columns = past.seen.entries(len(named))
    moved = shifted(columns[:, :TRIED], past.records[:TRIED])
    return moved, looked_up(OneColumn(named[moved], columns[moved], FEW_BINS), past, bar, graded=False)


def _are_many(numbers: FloatArray) -> bool:
    """Whether there are more than remainders, so that these tell something of their own."""
    return np.unique(numbers).size > DIVISOR


def _edges(numbers: FloatArray, records: IntArray, entry: Entry = WHOLE) -> Edges:
    """Beyond the second record's largest number, and below the second's smallest."""
    low, high, lowest, highest = (ends[0] for ends in second_ends(numbers[None], records))
    (below,), (above,) = (in_decimals(np.array([end]))[0] if math.isfinite(end) else [end] for end in (low, high))
    return Edges(float(min(below, low)), float(max(above, high)), int(lowest), int(highest), entry)


def _joint(named: list[Entry], past: Past, bar: Bar, low_bits: bool) -> Learned:
    """What entries tell: a weighted sum of all, one of them, how it lies on a grid, equal ones, and two together."""
    found: Learned = {}
    length = len(named)
    columns, numbers = past.seen.entries(length), numbers_only(past.seen.entries(length))
    if length <= MOST_SUMMED and (direction := direction_of(numbers, past.records)) is not None:
        sums = summed(columns, direction)
        most = max(2, min(MANY_BINS, sums.size // IN_A_BIN))
        found["weighted sum"] = looked_up(Bins(sums, most, direction), past, bar)
    some, records = columns[:, :TRIED], past.records[:TRIED]
    first = _varying(some)[:MOST_COLUMNS].tolist()
    moved, found["one entry"] = _of_one_entry(named, past, bar)
    found |= _of_one_number(numbers, named, {*first, moved}, past, bar, low_bits)
    repeats = Repeats(length)
    if np.median(repeats.tokens(past.seen.take(slice(TRIED)))) == 0:
        found["equal entries"] = clear_or_alone(repeats, past, bar)
    pairs = list(combinations(first, 2))
    if pairs:
        pairs += [correlated(numbers[:, :TRIED], records)] if MOST_COLUMNS < length <= MOST_SUMMED else []
        places = {place: Bins(some[place], PAIR_BINS).places(some[place]) for place in {*chain.from_iterable(pairs)}}
        one, two = _most_answered({pair: paired(places[pair[0]], places[pair[1]]) for pair in pairs}, records, bar)
        both = TwoColumns((named[one], named[two]), (columns[one], columns[two]), PAIR_BINS)
        found["two entries"] = looked_up(both, past, bar)
    return found


def _of_one_number(
    numbers: FloatArray, named: list[Entry], tried: set[int], past: Past, bar: Bar, low_bits: bool
) -> Learned:
    """What one entry tells that is a number: beyond which ends it lies, and on which grid."""
    best = beyond(numbers, past.records)
    found: Learned = {"edges of one entry": _edges(numbers[best], past.records, named[best])}
    some, records = numbers[:, :TRIED], past.records[:TRIED]
    if low_bits and (fine := [place for place in tried if np.any(some[place] != np.rint(some[place]))]):
        best = _most_answered({place: last_bit(some[place]) for place in fine}, records, bar)
        found["low bits of one entry"] = clear_or_alone(LastBit(named[best]), past, bar)
    if many := [place for place in tried if _are_many(some[place])]:
        best = _most_answered({place: remainders(some[place]) for place in many}, records, bar)
        found["remainder of one entry"] = clear_or_alone(Remainder(named[best]), past, bar)
    return found


def _varying(columns: FloatArray) -> IntArray:
    """The places of entries that are not always the same, as the names in a dict are."""
    return np.flatnonzero((columns != columns[:, :1]).any(axis=1))


def _most_answered(tokens: Mapping[T, IntArray], records: IntArray, bar: Bar) -> T:
    """By which of several ways of looking at some runs most of them would be answered on."""

    def answered(key: T) -> int:
        counts = counted(tokens[key], records)
        _, _, top, rest = counts
        return int((top + rest)[by_luck(counts, bar) < DOUBTS[0]].sum())

    return next(iter(tokens)) if len(tokens) == 1 else max(tokens, key=answered)
