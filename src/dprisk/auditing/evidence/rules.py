"""Rules by which an attacker names a suspect for some outputs, learned from earlier runs, and how sure they must be."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from dprisk.auditing.certify.counts import rate
from dprisk.auditing.evidence.places import Counted, Directory, counted, in_order
from dprisk.auditing.evidence.views import Seen, View
from dprisk.types import BoolArray, FloatArray, IntArray

DOUBTS = (0.1, 1e-3, 1e-6)  # chances that a rate of right answers is taken to be too good, for each token
OWN_TIMES = {
    "": 2,
    ", 4 times": 4,
    ", 8 times": 8,
    ", 16 times": 16,
}  # that one record alone has shown a token, by grade
FEW_GRADES = 3  # of them, where there are few tokens
ALONE = ", of one record alone"  # behind the names of rules that go by what no other record has shown
BEFORE = ", of the run before"  # behind the names of rules that name the record of another run
EVENLY = 1.1  # times as many runs of a record as of the middle one that do not matter


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
        order = in_order(mine.records)
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size) - np.repeat(np.cumsum(times) - times, times)
        kept = rank < most
        return Past(mine.seen.take(kept), mine.records[kept])

    def recent(self, most: int) -> Past:
        """The last runs, so many at most."""
        return Past(self.seen.take(slice(-most, None)), self.records[-most:])

    @property
    def next_outputs(self) -> Past:
        """With each record the output of the run after its own, beside the record of that run."""
        return Past(self.seen.take(slice(1, None), own=self.records[1:]), self.records[:-1])


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


def looked_up(view: View, past: Past, bar: Bar, graded: bool = True) -> Lookup:
    """Answers on tokens that clearly tell a record."""
    counts = counted(past.seen.tokens(view), past.records)
    return Lookup.with_grades(view, counts, _clear(counts, bar, graded))


def clear_or_alone(view: View, past: Past, bar: Bar, graded: bool = False) -> Lookup:
    """Answers on tokens that clearly tell a record, and, as other grades, on those that one record alone has shown."""
    counts = counted(past.seen.tokens(view), past.records)
    clear = {f", clearly{word}": some for word, some in _clear(counts, bar, graded).items()}
    return Lookup.with_grades(view, counts, clear | _alone(counts, graded))


def _clear(counts: Counted, bar: Bar, graded: bool) -> dict[str, BoolArray]:
    """Tokens whose answers are clearly right more often than the claim allows, by grade."""
    luck = by_luck(counts, bar)
    return {
        f", doubt {doubt:g}" if place else "": luck < doubt for place, doubt in enumerate(DOUBTS) if graded or not place
    }


def _alone(counts: Counted, graded: bool) -> dict[str, BoolArray]:
    """Tokens that one record alone has shown, by grade."""
    _, _, top, rest = counts
    grades = dict(list(OWN_TIMES.items())[: None if graded else FEW_GRADES])
    return {f"{ALONE}{word}": (top >= times) & (rest == 0) for word, times in grades.items()}


def by_luck(counts: Counted, bar: Bar) -> FloatArray:
    """For each token the chance of as many right answers beside so many wrong ones, if they are as the claim allows."""
    from scipy.special import betainc

    _, _, top, rest = counts
    return np.asarray(betainc(top, rest + 1, bar.rate))
