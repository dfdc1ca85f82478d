"""A portfolio of attackers: one that was settled beforehand, and several that keep learning from earlier blocks.

All of them look at the same runs. The first has the sharpest certificate; the others find what it does not look at, and
together they cost no more than the logarithm of their number (theory, section 4.4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.certify.portfolio import Answers
from dprisk.auditing.evidence.attackers import Bar, Learned, Past, Verbatim, rules, verbatim
from dprisk.auditing.evidence.coverage import Coverage, smallest_disclosure
from dprisk.auditing.evidence.design import Design
from dprisk.auditing.evidence.experiment import Attack, Experiment
from dprisk.auditing.evidence.views import Seen
from dprisk.auditing.evidence.witness import Witness, witness_of
from dprisk.guarantees import ApproxDP
from dprisk.types import AnyArray, IntArray

EVERYBODY = 3  # every third run is of any record, where the main attacker suspects some only


@dataclass(frozen=True, eq=False)
class Portfolio(Experiment[Answers]):
    """The main attacker's design, and what the learners know by now, for each set of records that runs are drawn from.

    `names` are those of the learners, settled after the pilot.
    """

    main: Design
    records: Sequence[Any]
    epsilon: float
    low_bits: bool = True
    names: tuple[str, ...] = ()
    learned: tuple[Learned, ...] = field(default=(), repr=False)

    learns = True

    @classmethod
    def begun(
        cls, main: Design, records: Sequence[Any], epsilon: float, pilot: Past, low_bits: bool = True
    ) -> Portfolio:
        """The portfolio that a pilot teaches."""
        first = cls(main, records, epsilon, low_bits).after(pilot)
        names = sorted({name for known in first.learned for name in known})
        return replace(first, names=tuple(names))

    def after(self, past: Past) -> Portfolio:
        """What it knows after these runs."""
        return replace(self, learned=tuple(self._rules(past, suspects) for suspects in self.sources))

    def _rules(self, past: Past, suspects: IntArray) -> Learned:
        mine = past.of(suspects)
        return (
            rules(mine, self.verbatim.of(suspects), Bar(self.epsilon, suspects.size), self.low_bits)
            if mine.records.size
            else {}
        )

    @cached_property
    def verbatim(self) -> Verbatim:
        """The rule that looks for the records themselves."""
        return verbatim(self.records)

    @cached_property
    def sources(self) -> tuple[IntArray, ...]:
        """The sets of records that the target of a run is drawn from: the main suspects, and everybody."""
        everybody = np.arange(len(self.records))
        return (self.main.universe,) if self.main.size == everybody.size else (self.main.universe, everybody)

    @cached_property
    def universe(self) -> IntArray:  # type: ignore[override]
        return np.concatenate(self.sources)

    @property
    def may_draw(self) -> bool:
        return self.main.may_draw

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        if len(self.sources) == 1:
            return self.main.draw(count, rng)
        anybody = np.arange(count) % EVERYBODY == EVERYBODY - 1
        some = rng.integers(np.where(anybody, len(self.records), self.main.size))
        return np.where(anybody, self.main.size + some, some)

    def tally(self, outputs: AnyArray, drawn: IntArray) -> Answers:
        return self.judged(Seen(outputs), drawn)

    def judged(self, all_seen: Seen, drawn: IntArray) -> Answers:
        """The same of outputs that were looked at already."""
        anybody = drawn >= self.main.size
        own = np.flatnonzero(~anybody)
        parts: dict[str, dict[int, Counts]] = {name: {} for name in self.names}
        for suspects, known, mine in zip(self.sources, self.learned, (own, np.flatnonzero(anybody)), strict=False):
            seen, truth = (all_seen, drawn) if mine.size == drawn.size else (all_seen.take(mine), drawn[mine])
            for name in self.names if mine.size else ():
                if name in known:
                    answers = known[name].answers(seen)
                    right = int(np.count_nonzero(answers == self.universe[truth]))
                    answered = np.count_nonzero(answers >= 0)
                    parts[name][suspects.size] = Counts(mine.size, int(answered), right, suspects.size)
        main = self.main.tally(all_seen.outputs[own], drawn[own]) if own.size else self.main.nothing
        return Answers(drawn.size, main, parts)

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
        return Answers(tally.runs, main, tally.others).certified(alpha, claim.delta, anytime) > claim.epsilon

    def attack(self, tally: Answers, claim: ApproxDP, alpha: float, anytime: bool) -> Attack:
        return self.main.attack(tally.main, claim, alpha, anytime)

    def witnesses(self, tally: Answers, claim: ApproxDP, alpha: float, past: Past) -> tuple[Witness, ...]:
        """What each learner saw whose evidence against the claim is large by itself; the same outputs once."""
        found: dict[str, Witness] = {}
        for name in tally.convinced(claim.epsilon, claim.delta, alpha):
            sizes = tally.others[name]
            best = max(sizes, key=lambda size: sizes[size].correct)
            for suspects, known in zip(self.sources, self.learned, strict=True):
                if suspects.size == best and name in known:
                    witness = witness_of(name, known[name], past.of(suspects), self.records)
                    if witness is not None:
                        found.setdefault(witness.what, witness)
        return tuple(sorted(found.values(), key=lambda witness: -witness.weight))

    def coverage(
        self, tally: Answers, claim: ApproxDP, alpha: float, anytime: bool, rounds: list[int], past: Past
    ) -> Coverage:
        """What was looked at, and the rarest disclosure that would have been found among the main suspects."""
        size, share = self.main.size, tally.main.runs / max(1, tally.runs)
        mine = [round(runs * share) for runs in rounds]

        def convicts(right: int) -> bool:
            counts = {name: {size: Counts(tally.main.runs, 0, 0, size)} for name in self.names}
            counts[self.names[0]] = {size: Counts(max(right, tally.main.runs), right, right, size)}
            found = Answers(tally.runs, Counts(tally.main.runs, 0, 0, size), counts)
            ends = 0.0, claim.epsilon  # the walk of a certificate goes from one to the other, which takes long
            return all(found.log_e_value(epsilon, claim.delta) >= -math.log(alpha) for epsilon in ends)

        seen, pilot = np.unique(past.records), past.records.size - sum(rounds)
        smallest = smallest_disclosure(mine, size, max(0, pilot) / size, convicts) if self.names else None
        return Coverage(seen.size, len(self.records), tally.runs, max(0, pilot), ("main", *self.names), smallest)

    def to_dict(self) -> dict[str, Any]:
        return self.main.to_dict() | {"learners": list(self.names)}
