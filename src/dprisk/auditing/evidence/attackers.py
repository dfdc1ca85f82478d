"""Attackers who keep learning: from all earlier blocks of an audit, never from the one they judge (theory, 4.4).

An attacker learns a rule that names a suspect for some outputs and is silent for the others. How well it learned makes
it strong or weak, never wrong.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, combinations
from typing import Any, TypeVar

import numpy as np

from dprisk.auditing.certify.counts import rate
from dprisk.auditing.code.outputs import as_objects
from dprisk.auditing.evidence.entries import correlated, direction_of, shifted
from dprisk.auditing.evidence.fitted import (
    Bins,
    OneColumn,
    OneGrid,
    Parts,
    TwoColumns,
    Unusual,
    coarse,
    in_decimals,
    paired,
    summed,
    telling_parts,
    with_parts,
)
from dprisk.auditing.evidence.places import Counted, Directory, counted
from dprisk.auditing.evidence.views import Form, LowBits, Seen, Value, View, last_bit, shown
from dprisk.types import BoolArray, FloatArray, IntArray

DOUBTS = (0.1, 1e-3, 1e-6)  # chances that a rate of right answers is taken to be too good, for each token
OWN_TIMES = {
    "": 2,
    ", 4 times": 4,
    ", 8 times": 8,
    ", 16 times": 16,
}  # that one record alone has shown a token, by grade
FEW_GRADES = 2  # of them, where there are few tokens
FEW_BINS, MANY_BINS, IN_A_BIN = 32, 512, 40
PAIR_BINS, COARSE_BINS, MOST_COLUMNS, MOST_SUMMED = 16, 4, 8, 200
ALONE = ", of one record alone"  # behind the names of rules that go by what no other record has shown
EVENLY = 1.1  # times as many runs of a record as of the middle one that do not matter
TRIED = 5000  # outputs on which pairs of entries are compared

T = TypeVar("T")


@dataclass(frozen=True)
class Past:
    """What earlier runs gave: the outputs, and the record of each by its number."""

    seen: Seen
    records: IntArray

    def of(self, suspects: IntArray) -> Past:
        """The runs of some records."""
        wanted = np.zeros(1 + max(suspects.max(initial=0), self.records.max(initial=0)), dtype=bool)
        wanted[suspects] = True
        mine = wanted[self.records]
        return self if mine.all() else Past(self.seen.take(mine), self.records[mine])

    def evenly(self, suspects: IntArray) -> Past:
        """The runs of some records, of each hardly more than of the middle one: none is named for being run most."""
        mine = self.of(suspects)
        times = np.bincount(mine.records, minlength=int(suspects.max()) + 1)
        most = np.sort(times[suspects])[(suspects.size - 1) // 2]
        if most == 0 or times.max() <= EVENLY * most:
            return mine
        few_bits = np.min_scalar_type(times.size)  # which are sorted sooner
        order = np.argsort(mine.records.astype(few_bits), kind="stable")
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size) - np.repeat(np.cumsum(times) - times, times)
        kept = rank < most
        return Past(mine.seen.take(kept), mine.records[kept])


def together(parts: Sequence[Past | None]) -> Past:
    """What all of them gave."""
    some = [part for part in parts if part is not None and part.records.size]
    return Past(Seen.join([part.seen for part in some]), np.concatenate([part.records for part in some]))


@dataclass(frozen=True)
class Bar:
    """How sure an answer must be: more often right than a code that keeps the claim allows, among so many suspects."""

    epsilon: float
    suspects: int

    @property
    def rate(self) -> float:
        """e^eps / (e^eps + s - 1), the most that an answer is right with under the claim."""
        return rate(self.epsilon - math.log(self.suspects - 1))


class Rule(ABC):
    """Names a suspect for some outputs.

    It may do so more or less readily: each of its `grades` is an attacker of its own, the later the stricter. Of many
    ways an output looks some tell a record by luck alone, and a ready attacker's wrong answers to these drown the few
    that do tell; a strict one comes late. With both, neither matters.
    """

    grades: Sequence[str] = ("",)  # behind the name of the rule

    @property
    def is_silent(self) -> bool:
        """Whether it is certain never to name one."""
        return False

    @abstractmethod
    def answers(self, seen: Seen) -> IntArray:
        """The number of the record that each output speaks for; -1 to keep silent."""

    def fared(self, seen: Seen, targets: IntArray) -> list[tuple[int, int]]:
        """For each grade how often it answered, and was right."""
        answers = self.answers(seen)
        return [(int(np.count_nonzero(answers >= 0)), int(np.count_nonzero(answers == targets)))]

    def at(self, grade: int) -> Rule:
        """One grade by itself."""
        return self

    @abstractmethod
    def groups(self, seen: Seen) -> IntArray:
        """A number for each output, the same for outputs that speak for a record in the same way."""

    @abstractmethod
    def words(self, seen: Seen) -> list[str]:
        """For each output what it is about it that speaks for the record."""


@dataclass(frozen=True, eq=False)
class Lookup(Rule):
    """Names the record that a token stands for."""

    view: View
    known: IntArray  # tokens in order
    named: IntArray  # the record that each stands for
    graded: IntArray  # the grades that answer on each: 1 for the first alone, 2 for the second, 3 for both, ...
    grades: Sequence[str] = ("",)

    @classmethod
    def with_grades(cls, view: View, counts: Counted, grades: dict[str, BoolArray]) -> Lookup:
        """The tokens that were counted, and which of them each grade answers on."""
        known, named, _, _ = counts
        graded = sum(
            (some.astype(np.int64) << place for place, some in enumerate(grades.values())), np.zeros_like(known)
        )
        some = graded > 0
        return cls(view, known[some], named[some], graded[some], tuple(grades))

    @property
    def is_silent(self) -> bool:
        return self.known.size == 0

    def answers(self, seen: Seen) -> IntArray:
        return np.full(len(seen), -1) if self.is_silent else np.append(self.named, -1)[self._places(seen)]

    def fared(self, seen: Seen, targets: IntArray) -> list[tuple[int, int]]:
        if self.is_silent:
            return [(0, 0)] * len(self.grades)
        place, kinds = self._places(seen), 1 << len(self.grades)
        asked = np.flatnonzero(place >= 0)
        place = place[asked]
        right = self.named[place] == targets[asked]
        wrongs, rights = np.bincount(self.graded[place] + kinds * right, minlength=2 * kinds).reshape(2, kinds)
        answering = _members(len(self.grades))
        return list(zip((answering @ (wrongs + rights)).tolist(), (answering @ rights).tolist(), strict=True))

    def at(self, grade: int) -> Lookup:
        some = (self.graded >> grade & 1) > 0
        return replace(self, known=self.known[some], named=self.named[some], graded=some[some] * 1, grades=("",))

    def _places(self, seen: Seen) -> IntArray:
        return self._directory.places(seen.tokens(self.view))

    @cached_property
    def _directory(self) -> Directory:
        return Directory(self.known)

    def groups(self, seen: Seen) -> IntArray:
        return seen.tokens(self.view)

    def words(self, seen: Seen) -> list[str]:
        tokens = seen.tokens(self.view).tolist()
        return [self.view.words(token, output) for token, output in zip(tokens, seen.outputs, strict=True)]


@cache
def _members(grades: int) -> IntArray:
    """Which grades are in which sets of them, grades x sets: 1 if a grade is."""
    return np.asarray(np.arange(1 << grades) >> np.arange(grades)[:, None] & 1)


@dataclass(frozen=True)
class Edges(Rule):
    """Names a record for numbers beyond all that another record was seen to give."""

    low: float
    high: float
    lowest: int
    highest: int

    def answers(self, seen: Seen) -> IntArray:
        numbers = seen.numbers
        if numbers is None:
            return np.full(len(seen), -1)
        return np.where(numbers > self.high, self.highest, np.where(numbers < self.low, self.lowest, -1))

    def groups(self, seen: Seen) -> IntArray:
        return np.where(np.asarray(seen.numbers) > self.high, 1, 0)

    def words(self, seen: Seen) -> list[str]:
        above, below = f"the output is above {self.high!r}", f"the output is below {self.low!r}"
        return [above if number > self.high else below for number in np.asarray(seen.numbers).tolist()]


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


Learned = dict[str, Rule]  # rules by their names


def rules(past: Past, known: Lookup, bar: Bar, low_bits: bool = True) -> Learned:
    """What every attacker has learned by now, beside one that is `known` before; one that has nothing is left out."""
    found: Learned = {"verbatim": known} if known.known.size else {}
    found |= quick_rules(past, bar, low_bits)
    numbers = past.seen.numbers
    if numbers is not None:
        most = max(2, min(MANY_BINS, numbers.size // IN_A_BIN))
        for name, bins in (("wide bins", min(FEW_BINS, most)), ("narrow bins", most)):
            found[name] = _looked_up(Bins(numbers, bins), past, bar, bins > FEW_BINS)
        found["edges"] = _edges(numbers, past.records)
    if (cut := coarse(past.seen, COARSE_BINS)) is not None:
        found["coarsely"] = _looked_up(cut, past, bar)
    if (some := with_parts(past.seen.outputs)[-TRIED:]).size:
        found["parts"] = _looked_up(Parts(telling_parts(past.seen.outputs[some], past.records[some])), past, bar)
    columns = past.seen.entries
    if columns is not None and len(columns):
        found |= _joint(columns, past, bar, low_bits)
    return found


def quick_rules(past: Past, bar: Bar, low_bits: bool = True) -> Learned:
    """Those of the rules that are quick to learn: what is rare becomes known the later the better."""
    found: Learned = {}
    for name, view in _quick_views(past.seen, low_bits).items():
        many = isinstance(view, Value)  # of many tokens some tell a record by luck
        found[name] = _clear_or_alone(view, past, bar, many)
    return found


def rules_for_two(past: Past, bar: Bar) -> Learned:
    """Rules that tell two records apart, of whom one may be ruled out by what several others show as well."""
    views: dict[str, View] = {"value": Value(), "form": Form()}
    return {f"{name}, of two": _clear_or_alone(view, past, bar) for name, view in views.items()}


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


def _looked_up(view: View, past: Past, bar: Bar, graded: bool = True) -> Lookup:
    counts = counted(past.seen.tokens(view), past.records)
    return Lookup.with_grades(view, counts, _clear(counts, bar, graded))


def _clear_or_alone(view: View, past: Past, bar: Bar, graded: bool = False) -> Lookup:
    """Answers on tokens that clearly tell a record, and, as other grades, on those that one record alone has shown."""
    counts = counted(past.seen.tokens(view), past.records)
    clear = {f", clearly{word}": some for word, some in _clear(counts, bar, graded).items()}
    return Lookup.with_grades(view, counts, clear | _alone(counts, graded))


def _clear(counts: Counted, bar: Bar, graded: bool) -> dict[str, BoolArray]:
    """Tokens whose answers are clearly right more often than the claim allows, by grade."""
    luck = _by_luck(counts, bar)
    return {
        f", doubt {doubt:g}" if place else "": luck < doubt for place, doubt in enumerate(DOUBTS) if graded or not place
    }


def _alone(counts: Counted, graded: bool) -> dict[str, BoolArray]:
    """Tokens that one record alone has shown, by grade."""
    _, _, top, rest = counts
    grades = dict(list(OWN_TIMES.items())[: None if graded else FEW_GRADES])
    return {f"{ALONE}{word}": (top >= times) & (rest == 0) for word, times in grades.items()}


def _by_luck(counts: Counted, bar: Bar) -> FloatArray:
    """For each token the chance of as many right answers beside so many wrong ones, if they are as the claim allows."""
    from scipy.special import betainc

    _, _, top, rest = counts
    return np.asarray(betainc(top, rest + 1, bar.rate))


def _edges(numbers: FloatArray, records: IntArray) -> Edges:
    """Beyond the second record's largest number, and below the second's smallest."""
    usual = np.isfinite(numbers)
    numbers, records = numbers[usual], records[usual]
    known = np.unique(records)
    if known.size < 2:
        return Edges(-math.inf, math.inf, -1, -1)
    ends = np.array([(numbers[records == record].min(), numbers[records == record].max()) for record in known])
    low, high = np.argsort(ends[:, 0], kind="stable")[:2], np.argsort(-ends[:, 1], kind="stable")[:2]
    (below,), (above,) = (in_decimals(np.array([end]))[0] for end in (ends[low[1], 0], ends[high[1], 1]))
    return Edges(
        float(min(below, ends[low[1], 0])),
        float(max(above, ends[high[1], 1])),
        int(known[low[0]]),
        int(known[high[0]]),
    )


def _joint(columns: FloatArray, past: Past, bar: Bar, low_bits: bool) -> Learned:
    """What entries tell: a weighted sum of all of them, one of them, its last bits, and two that told most so far."""
    found: Learned = {}
    if len(columns) <= MOST_SUMMED and (direction := direction_of(columns, past.records)) is not None:
        numbers = np.asarray(summed(columns, direction))
        most = max(2, min(MANY_BINS, numbers.size // IN_A_BIN))
        found["weighted sum"] = _looked_up(Bins(numbers, most, direction), past, bar)
    some, records = columns[:, :TRIED], past.records[:TRIED]
    first, moved = range(min(len(columns), MOST_COLUMNS)), shifted(some, records)
    found["one entry"] = _looked_up(OneColumn(columns, moved, FEW_BINS), past, bar, graded=False)
    if low_bits and not np.all(some == np.floor(some)):
        grids = {place: last_bit(some[place]) for place in {*first, moved}}
        found["low bits of one entry"] = _clear_or_alone(OneGrid(_most_answered(grids, records, bar)), past, bar)
    pairs = list(combinations(first, 2))
    if pairs:
        pairs += [correlated(some, records)] if MOST_COLUMNS < len(columns) <= MOST_SUMMED else []
        places = {place: Bins(some[place], PAIR_BINS).places(some[place]) for place in {*chain.from_iterable(pairs)}}
        best = _most_answered({pair: paired(places[pair[0]], places[pair[1]]) for pair in pairs}, records, bar)
        found["two entries"] = _looked_up(TwoColumns(columns, best, PAIR_BINS), past, bar)
    return found


def _most_answered(tokens: Mapping[T, IntArray], records: IntArray, bar: Bar) -> T:
    """By which of several ways of looking at some runs most of them would be answered on."""

    def answered(key: T) -> int:
        counts = counted(tokens[key], records)
        _, _, top, rest = counts
        return int((top + rest)[_by_luck(counts, bar) < DOUBTS[0]].sum())

    return next(iter(tokens)) if len(tokens) == 1 else max(tokens, key=answered)
