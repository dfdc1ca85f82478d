"""What every audit has in common: runs that add up to a tally, and what follows from it.

`Design` names suspects and abstains, `Guessing` attacks under a threat, a `Portfolio` has attackers who keep learning;
blocks, stores and reports know nothing but this.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from dprisk.guarantees import ApproxDP
from dprisk.types import IntArray


class Tally(Protocol):
    """What some runs gave. Tallies of other runs of the same experiment can be added, in any order."""

    @property
    def runs(self) -> int:
        """How many runs there were."""

    def __add__(self, other: Self, /) -> Self: ...

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""

    @classmethod
    def read(cls, told: dict[str, Any]) -> Self:
        """What `to_dict` wrote."""

    def summary(self) -> dict[str, Any]:
        """What a report says of it, ready for JSON."""

    def describe(self) -> str:
        """In words."""


T = TypeVar("T", bound=Tally)


@dataclass(frozen=True)
class Attack:
    """An attacker's success (ReRo) and advantage (RAD) beside the most that the claim allows.

    `baseline` is the success without the output. What was measured in the runs is None where there were none.
    """

    baseline: float
    success_bound: float
    advantage_bound: float
    success: float | None = None
    success_interval: tuple[float, float] | None = None
    advantage: float | None = None
    advantage_interval: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """What is known, ready for JSON."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()}


class Experiment(ABC, Generic[T]):
    """Records to draw from (`universe`, by numbers), what to note of a run, and what a tally of runs certifies.

    Settled before the first run that counts.
    """

    universe: IntArray
    learns: bool = False  # whether it is told of finished blocks (`after`), and judges the next ones by them

    @property
    def size(self) -> int:
        """How many places there are to draw."""
        return self.universe.size

    @property
    @abstractmethod
    def may_draw(self) -> bool:
        """Whether `tally` may use random numbers that the code under test draws from too."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        """The place in the universe of the target of each run."""

    @abstractmethod
    def tally(self, outputs: Any, drawn: IntArray) -> T:
        """What runs gave whose targets were drawn so."""

    def judged(self, seen: Any, drawn: IntArray) -> T:
        """As `tally`, of outputs as they are looked at (`Seen`), if it learns."""
        return self.tally(seen.outputs, drawn)

    def after(self, past: Any) -> Self:
        """The same experiment with what earlier runs teach; their outputs and records are told if it learns."""
        return self

    def reminded(self, past: Any) -> Self:
        """The same with as much of that as is quick to learn."""
        return self

    def witnesses(self, tally: T, claim: ApproxDP, alpha: float, past: Any) -> tuple[Any, ...]:
        """What gives the code away, to be shown to people, the clearest first; nothing where nothing does."""
        return ()

    def coverage(
        self, tally: T, claim: ApproxDP, alpha: float, anytime: bool, rounds: list[int], records: IntArray
    ) -> Any:
        """What was looked at (`Coverage`), where these records were run in these rounds; None where it is not known."""
        return None

    @property
    @abstractmethod
    def nothing(self) -> T:
        """The tally of no runs."""

    @abstractmethod
    def certified(self, tally: T, alpha: float, delta: float, anytime: bool) -> float:
        """A lower bound on epsilon at this delta, above it with probability at most alpha.

        `anytime`: however and whenever the runs were stopped; otherwise for a number of runs fixed beforehand.
        """

    @abstractmethod
    def log_e_value(self, tally: T, claim: ApproxDP) -> float:
        """The log of the evidence against the claim: an e-process."""

    @abstractmethod
    def estimate(self, tally: T, delta: float) -> float:
        """The epsilon that fits the tally: an estimate, not a bound."""

    def family_estimate(self, tally: T) -> dict[str, Any] | None:
        """See `AuditReport.family_estimate`; None where there is no family or no advantage to go by."""
        return None

    @abstractmethod
    def able(self, tally: T, claim: ApproxDP, alpha: float, anytime: bool) -> bool:
        """Whether the claim would be refuted if every answer had been right."""

    @abstractmethod
    def attack(self, tally: T, claim: ApproxDP, alpha: float, anytime: bool) -> Attack:
        """What the attacker gained, with intervals that hold at once, beside the bounds under the claim."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """What a report says of the experiment, ready for JSON."""

    def refuted(self, tally: T, claim: ApproxDP, alpha: float) -> bool:
        """Whether the anytime certificate is above the claim; the e-value, which is quick, must then be large."""
        large = self.log_e_value(tally, claim) >= -math.log(alpha)
        return large and self.certified(tally, alpha, claim.delta, True) > claim.epsilon
