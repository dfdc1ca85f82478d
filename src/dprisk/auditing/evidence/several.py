"""Several designs in one audit, where a pilot cannot tell which of them finds the leak.

Each design has its own share of the runs. What they show together is corrected for their number: never the best of
several tests at the level of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dprisk.auditing.certify.anytime import anytime_epsilon_of_several, combine_e_values, log_e_value
from dprisk.auditing.certify.counts import Counts, certified_epsilon, epsilon_estimate
from dprisk.auditing.evidence.design import Design
from dprisk.auditing.evidence.experiment import Attack, Experiment
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms.combined import take
from dprisk.types import IntArray


@dataclass(frozen=True)
class Tallies:
    """The counts of each design."""

    parts: tuple[Counts, ...]

    @property
    def runs(self) -> int:
        return sum(part.runs for part in self.parts)

    def __add__(self, other: Tallies) -> Tallies:
        if not isinstance(other, Tallies):
            return NotImplemented
        return Tallies(tuple(one + two for one, two in zip(self.parts, other.parts, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        return {"parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def read(cls, told: dict[str, Any]) -> Tallies:
        return cls(tuple(map(Counts.read, told["parts"])))

    def summary(self) -> dict[str, Any]:
        answered, correct = (sum(getattr(part, name) for part in self.parts) for name in ("answered", "correct"))
        each = [part.summary() | {"size": part.size} for part in self.parts]
        return {"runs": self.runs, "answered": answered, "correct": correct, "by_design": each}

    def describe(self) -> str:
        told = self.summary()
        return f"{told['correct']} right of {told['answered']} answers in {self.runs} runs of {len(self.parts)} designs"


@dataclass(frozen=True, eq=False)
class Several(Experiment[Tallies]):
    """Designs that take turns, run by run.

    For a number of runs fixed beforehand the certificate is the largest of theirs, each at alpha over their number
    (the union bound). At any moment it is by the average of their e-values, which is an e-value of the same claim
    (`combine_e_values`).
    """

    designs: tuple[Design, ...]

    @cached_property
    def universe(self) -> IntArray:  # type: ignore[override]
        """The suspects of all designs, one design after the other."""
        return np.concatenate([design.universe for design in self.designs])

    @cached_property
    def _starts(self) -> IntArray:
        """Where the suspects of each design begin, and where those of the last end."""
        return np.cumsum([0, *(design.size for design in self.designs)])

    @property
    def may_draw(self) -> bool:
        return any(design.may_draw for design in self.designs)

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        turn = np.arange(count) % len(self.designs)
        return self._starts[turn] + rng.integers(np.diff(self._starts)[turn])

    def tally(self, outputs: Any, drawn: IntArray) -> Tallies:
        owner = np.searchsorted(self._starts, drawn, side="right") - 1
        mine = [np.flatnonzero(owner == number) for number in range(len(self.designs))]
        return Tallies(
            tuple(
                design.tally(take(outputs, own), drawn[own] - start) if own.size else design.nothing
                for design, own, start in zip(self.designs, mine, self._starts[:-1], strict=True)
            )
        )

    @property
    def nothing(self) -> Tallies:
        return Tallies(tuple(design.nothing for design in self.designs))

    def certified(self, tally: Tallies, alpha: float, delta: float, anytime: bool) -> float:
        if anytime:
            return anytime_epsilon_of_several(tally.parts, alpha, delta)
        return max(self._each(tally, alpha, delta))

    def _each(self, tally: Tallies, alpha: float, delta: float) -> list[float]:
        share = alpha / len(self.designs)
        return [certified_epsilon(part, share, delta) for part in tally.parts]

    def _leading(self, tally: Tallies, alpha: float, delta: float) -> tuple[Design, Counts]:
        """The design with the largest certificate; of equal ones that with the largest estimate."""
        estimates = [epsilon_estimate(part, delta) for part in tally.parts]
        worth = list(zip(self._each(tally, alpha, delta), estimates, strict=True))
        best = worth.index(max(worth))
        return self.designs[best], tally.parts[best]

    def log_e_value(self, tally: Tallies, claim: ApproxDP) -> float:
        return combine_e_values([log_e_value(part, claim.epsilon, claim.delta) for part in tally.parts])

    def estimate(self, tally: Tallies, delta: float) -> float:
        """The estimate of the design with the largest certificate, too large rather than too small."""
        return epsilon_estimate(self._leading(tally, 0.5, delta)[1], delta)

    def able(self, tally: Tallies, claim: ApproxDP, alpha: float, anytime: bool) -> bool:
        best = Tallies(tuple(Counts(part.runs, part.answered, part.answered, part.size) for part in tally.parts))
        return self.certified(best, alpha, claim.delta, anytime) > claim.epsilon

    def attack(self, tally: Tallies, claim: ApproxDP, alpha: float, anytime: bool) -> Attack:
        """What the attacker of the leading design gained in its runs, with intervals that hold for all designs."""
        design, part = self._leading(tally, alpha, claim.delta)
        return design.attack(part, claim, alpha / len(self.designs), anytime)

    def to_dict(self) -> dict[str, Any]:
        return {"designs": [design.to_dict() for design in self.designs]}
