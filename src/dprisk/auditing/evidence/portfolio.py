"""A portfolio of attackers: one that was settled beforehand, and several that keep learning from earlier blocks.

All of them look at the same runs. The first has the sharpest certificate; the others find what it does not look at, and
together they cost no more than the logarithm of their number (theory, section 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.certify.portfolio import Answers
from dprisk.auditing.evidence.attackers import (
    TWO,
    Learned,
    Verbatim,
    by_name,
    of_two,
    quick_rules,
    rules,
    rules_for_earlier,
    verbatim,
)
from dprisk.auditing.evidence.coverage import Coverage, smallest_disclosure
from dprisk.auditing.evidence.design import Design
from dprisk.auditing.evidence.experiment import Attack, Experiment
from dprisk.auditing.evidence.rules import ALONE, BEFORE, OWN_TIMES, Bar, Past
from dprisk.auditing.evidence.screening import clearest_pair, clearest_ratio
from dprisk.auditing.evidence.views import Seen
from dprisk.auditing.evidence.witness import Witness, witness_of
from dprisk.guarantees import ApproxDP
from dprisk.types import AnyArray, IntArray

ELSEWHERE = 3  # every third run is of everybody, where the main attacker suspects some only
OTHER_PAIR = 2  # every second run is of another pair of neighbours, where there are some
LATELY = 20_000  # runs by which it is learned what outputs tell of the run before
FIRST_OF_BLOCK = 5000  # runs of a block that are looked at for that: it is rarely rare, and looking takes time
LARGE_DELTA = 0.01  # which allows so much that nothing is certain about what one record alone gives
NOT_FEW = 200  # runs by which the main attacker may settle such a claim
MEET_OFTEN = 100  # records of whom two are the target often enough
OWN = f"value{ALONE}"  # sees whatever one record alone gives, if it is the same each time
LESS_PLAIN = 0.1  # of its weight for a witness in the last bits of numbers, or one that was chosen for two records
PLAINEST = (
    "verbatim",
    f"form{ALONE}",
    OWN,
    "value, clearly",
    "edges",
    "wide bins",
    "parts",
    "value of one entry",
)


@dataclass(frozen=True, eq=False)
class Portfolio(Experiment[Answers]):
    """The main attacker's design, and what the learners know by now, for each set of records that runs are drawn from.

    These are the main attacker's suspects and `others`: everybody, or more pairs of neighbours. `names` are those of
    the learners, settled after the pilot.

    `two` are records whom outputs tell apart best so far. A run of everybody whose target is one of them has either
    with the same chance, so it is one of a pair as well, for attackers who look at no other run: an output that rules
    one record out, and not the others, is seen by these alone.

    `earlier` is what outputs tell of the record of the run before, for each set that it is from; nothing unless runs
    are `in_turn`, as the code made them. Code that keeps something from call to call may tell it, and then whoever was
    there before is not protected. Every second output is looked at so, of the first in each block: no run is then both
    the one that is told of and the one that tells. With which it begins is decided by the first target, of whom nothing
    is told.
    """

    main: Design
    records: Sequence[Any]
    epsilon: float
    others: tuple[IntArray, ...] = ()
    low_bits: bool = True
    names: tuple[str, ...] = ()
    learned: tuple[Learned, ...] = field(default=(), repr=False)
    two: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    between: Learned = field(default_factory=dict, repr=False)  # what tells them apart
    in_turn: bool = True
    earlier: tuple[Learned, ...] = field(default=(), repr=False)

    learns = True

    @classmethod
    def begun(
        cls,
        main: Design,
        records: Sequence[Any],
        epsilon: float,
        pilot: Past,
        low_bits: bool = True,
        others: tuple[IntArray, ...] | None = None,
        in_turn: bool = True,
    ) -> Portfolio:
        """The portfolio that a pilot teaches; without other suspects everybody is one of them."""
        if others is None:
            others = () if main.size == len(records) else (np.arange(len(records)),)
        first = cls(main, records, epsilon, others, low_bits, in_turn=in_turn).after(pilot)
        names = sorted({name for known in (*first.learned, first.between, *first.earlier) for name in by_name(known)})
        return replace(first, names=tuple(names))

    def after(self, past: Past) -> Portfolio:
        """What it knows after these runs; of several other pairs the half goes on that some output tells apart best."""
        others = self.others
        if self.names and len(others) > 1:
            order = np.argsort([-clearest_ratio(past.evenly(pair), pair) for pair in others], kind="stable")
            others = tuple(others[place] for place in order[: (order.size + 1) // 2])
        now = replace(self, others=others)
        learned = tuple(now._rules(rules, past, suspects) for suspects in now.sources)
        if now.in_turn:
            later = past.recent(LATELY).next_outputs
            earlier = tuple(now._rules(rules_for_earlier, later, suspects) for suspects in now.sources)
            now = replace(now, earlier=earlier)
        return replace(now, learned=learned)._with_two(past, whole=True)

    def _rules(self, teach: Callable[..., Learned], past: Past, suspects: IntArray) -> Learned:
        mine = past.evenly(suspects)
        return (
            teach(mine, self.verbatim.of(suspects), Bar(self.epsilon, suspects.size), self.low_bits)
            if mine.records.size
            else {}
        )

    def reminded(self, past: Past) -> Portfolio:
        """The same with what is quick to learn."""
        learned = tuple(
            known | quick_rules(past.evenly(suspects), Bar(self.epsilon, suspects.size), self.low_bits)
            if known
            else known
            for suspects, known in zip(self.sources, self.learned, strict=True)
        )
        return replace(self, learned=learned)._with_two(past, whole=False)

    def _with_two(self, past: Past, whole: bool) -> Portfolio:
        if self._whole is None or past.records.size == 0:
            return self
        two, share = clearest_pair(past, np.arange(len(self.records)))
        bar = Bar(self.epsilon, 2)
        if whole or (share > bar.rate and set(two) != set(self.two)):
            return replace(self, two=two, between=of_two(self._rules(rules, past, two)))
        quick = quick_rules(past.evenly(self.two), bar, self.low_bits)
        return replace(self, between=self.between | of_two(quick))

    @property
    def _whole(self) -> int | None:
        """The number of the source that is everybody, if these are more than two, and few enough to meet two often."""
        sizes, everybody = [suspects.size for suspects in self.sources], len(self.records)
        return sizes.index(everybody) if everybody in sizes and 2 < everybody <= MEET_OFTEN else None

    @cached_property
    def verbatim(self) -> Verbatim:
        """The rule that looks for the records themselves."""
        return verbatim(self.records)

    @property
    def sources(self) -> tuple[IntArray, ...]:
        """The sets of records that the target of a run is drawn from."""
        return (self.main.universe, *self.others)

    @cached_property
    def universe(self) -> IntArray:  # type: ignore[override]
        return np.concatenate(self.sources)

    @cached_property
    def _starts(self) -> IntArray:
        """The place in the universe where each source begins, and its end."""
        return np.cumsum([0, *(suspects.size for suspects in self.sources)])

    @property
    def may_draw(self) -> bool:
        return self.main.may_draw

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        if not self.others:
            return self.main.draw(count, rng)
        runs, turn = np.arange(count), OTHER_PAIR if self.others[0].size == 2 else ELSEWHERE
        source = np.where(runs % turn == turn - 1, 1 + runs // turn % len(self.others), 0)
        drawn = self._starts[source]
        for number, suspects in enumerate(self.sources):
            mine = np.flatnonzero(source == number)
            drawn[mine] += rng.integers(suspects.size, size=mine.size)
        return drawn

    def tally(self, outputs: AnyArray, drawn: IntArray) -> Answers:
        return self.judged(Seen(outputs), drawn)

    def judged(self, all_seen: Seen, drawn: IntArray) -> Answers:
        """The same of outputs that were looked at already."""
        total = Answers(drawn.size, self.main.nothing, {name: {} for name in self.names})
        source = np.searchsorted(self._starts, drawn, side="right") - 1
        for number, (suspects, known) in enumerate(zip(self.sources, self.learned, strict=True)):
            mine = np.flatnonzero(source == number)
            if mine.size == 0:
                continue
            seen, truth = (all_seen, drawn) if mine.size == drawn.size else (all_seen.take(mine), drawn[mine])
            main = self.main.tally(seen.outputs, truth) if number == 0 else self.main.nothing
            targets = self.universe[truth]
            parts = self._counted(known, seen, targets, suspects.size)
            if self.between and number == self._whole:
                pair = np.flatnonzero((targets == self.two[0]) | (targets == self.two[1]))
                parts |= self._counted(self.between, seen.take(pair), targets[pair], 2)
            total = total + Answers(0, main, parts)
        begin = 2 + drawn[0] % 2 if drawn.size else 0  # by chance, for code may leak in every second call
        later = np.arange(begin, min(drawn.size, FIRST_OF_BLOCK), 2)
        for number, (suspects, known) in enumerate(zip(self.sources, self.earlier, strict=False)):
            mine = later[source[later - 1] == number]
            own, before = (self.universe[drawn[runs]] for runs in (mine, mine - 1))
            parts = self._counted(known, all_seen.take(mine, own), before, suspects.size)
            total = total + Answers(0, self.main.nothing, parts)
        return total

    def _counted(self, known: Learned, seen: Seen, targets: IntArray, size: int) -> dict[str, dict[int, Counts]]:
        """How often each attacker answered, and was right."""
        fared = {
            name + word: {size: Counts(targets.size, answered, right, size)}
            for name, rule in known.items()
            for word, (answered, right) in zip(rule.grades, rule.fared(seen, targets), strict=True)
        }
        return {name: fared[name] for name in self.names if name in fared}

    @property
    def nothing(self) -> Answers:
        return Answers(0, self.main.nothing, {name: {} for name in self.names})

    def certified(self, tally: Answers, alpha: float, delta: float, anytime: bool) -> float:
        return tally.certified(alpha, delta, anytime)

    def log_e_value(self, tally: Answers, claim: ApproxDP) -> float:
        return tally.log_e_value(claim.epsilon, claim.delta)

    def estimate(self, tally: Answers, delta: float) -> float:
        return tally.estimate(delta)

    def able(self, tally: Answers, claim: ApproxDP, alpha: float, anytime: bool) -> bool:
        """Whether the main attacker, had it been right with every answer, would have refuted the claim."""
        main = Counts(tally.main.runs, tally.main.answered, tally.main.answered, tally.main.size)
        return Answers(tally.runs, main, tally.others).refutes(claim.epsilon, claim.delta, alpha, anytime)

    def attack(self, tally: Answers, claim: ApproxDP, alpha: float, anytime: bool) -> Attack:
        return self.main.attack(tally.main, claim, alpha, anytime)

    def witnesses(self, tally: Answers, claim: ApproxDP, alpha: float, past: Past) -> tuple[Witness, ...]:
        """What each learner saw whose evidence against the claim is large by itself; the same outputs once.

        Where the main attacker alone refuted the claim, what any learner saw most clearly. Outputs that the claim
        allows to be so frequent are no witness: a claim may be refuted by many that each show a little.
        """
        convinced = tally.convinced(claim.epsilon, claim.delta, alpha)
        found = [witness for witness in self._told(convinced, tally, past) if witness.shows(claim)]
        if not found:
            own = [name for name in self.names if BEFORE not in name]
            found = [witness for witness in self._told(own, tally, past) if witness.shows(claim)][:1]
        return tuple([witness for witness in found if not witness.is_of_rounded] or found)

    def _told(self, names: Sequence[str], tally: Answers, past: Past) -> list[Witness]:
        """What these learners saw, the clearest first; of those who saw the same the one who says it best."""
        found: dict[Any, Witness] = {}
        sources = [(past, suspects, known) for suspects, known in zip(self.sources, self.learned, strict=True)]
        sources += [(past, self.two, self.between)] if self.between else []
        later = past.next_outputs
        sources += [(later, suspects, known) for suspects, known in zip(self.sources, self.earlier, strict=False)]
        seen = [(suspects, runs.of(suspects), by_name(known)) for runs, suspects, known in sources]
        for name in sorted(names, key=_plainness):
            sizes = tally.others[name]
            best = max(sizes, key=lambda size: sizes[size].correct, default=0)
            for suspects, mine, known in seen:
                if suspects.size == best and name in known:
                    rule, grade = known[name]
                    witness = witness_of(name, rule.at(grade), mine, self.records)
                    if witness is not None:
                        found.setdefault((suspects.tobytes(), witness.times, witness.other_times), witness)

        def weight(witness: Witness) -> float:
            plain = not (witness.attacker.startswith("low bits") or TWO in witness.attacker)
            return witness.against(self.epsilon) * (1 if plain else LESS_PLAIN)

        return sorted(found.values(), key=weight, reverse=True)

    def coverage(
        self, tally: Answers, claim: ApproxDP, alpha: float, anytime: bool, rounds: list[int], records: IntArray
    ) -> Coverage:
        """What was looked at, and the rarest disclosure of any one record that would have been found.

        Where all records are run, but some more often, it is that of a record which is not among these.
        """
        pilot = max(0, records.size - sum(rounds))
        before = np.bincount(records[:pilot], minlength=len(self.records))
        own = {OWN + word: times for word, times in OWN_TIMES.items()}

        def smallest(suspects: IntArray, share: float) -> float | None:
            size, mine = suspects.size, [int(runs * share) for runs in rounds]
            needed = tally.needed(own, size, sum(mine), claim.epsilon, claim.delta, alpha, anytime)
            often = {times: needed[name] for name, times in own.items() if name in needed}
            return smallest_disclosure(mine, size, int(before[suspects].min()), often)

        share = tally.main.runs / max(1, tally.runs)
        suspects, least = self.main.universe, smallest(self.main.universe, share)
        able = least is not None
        if not able and claim.delta >= LARGE_DELTA and tally.main.runs >= NOT_FEW:
            able = self.able(tally, claim, alpha, anytime) and tally.certified(alpha, claim.delta, anytime) > 0
        if self._everybody:
            suspects, least = self.others[0], smallest(self.others[0], 1 - share)
        return Coverage(
            records=int(np.count_nonzero(np.bincount(records))),
            given=len(self.records),
            runs=tally.runs,
            pilot=pilot,
            attackers=("main", *self.names),
            smallest=least,
            suspects=suspects.size,
            able=able,
        )

    @property
    def _everybody(self) -> bool:
        """Whether all records are run, but those of the main attacker more often."""
        return len(self.others) == 1 and self.others[0].size == len(self.records)

    def to_dict(self) -> dict[str, Any]:
        return self.main.to_dict() | {"learners": list(self.names)}


def _plainness(name: str) -> int:
    """The place of an attacker, in any of its grades, among those whose words are plainest."""
    name = name.replace(BEFORE, "")
    return next((place for place, plain in enumerate(PLAINEST) if name.startswith(plain)), len(PLAINEST))
