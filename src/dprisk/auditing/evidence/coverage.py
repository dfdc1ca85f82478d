"""What an audit looked at, and how rare a leak would have been found: "consistent" says no more than that."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dprisk.rounding import significant_up

CHANCE = 0.95  # with which the smallest leak that is told of would have been found
SIMULATED = 0.98  # the same by simulation, since the counts of another audit, beside which it would show, are others
TRIALS = 1000  # simulated audits for each probability
STEPS = 12  # of the search for the smallest probability


@dataclass(frozen=True)
class Coverage:
    """What was looked at: records that were run of those that were given, runs, pilot runs, attackers.

    `smallest` is the least probability with which one record alone may give an output, always the same, so that it
    would have been found with a chance of 95 %; None if none would have been. It holds for each of `suspects` records:
    for all that were given, unless these are pairs of neighbours. `able` tells whether any disclosure of a suspect
    whom the main attacker looks at would have been found.
    """

    records: int
    given: int
    runs: int
    pilot: int
    attackers: tuple[str, ...]
    smallest: float | None
    suspects: int
    able: bool

    def sentence(self) -> str:
        """In words."""
        who = "all" if self.records == self.given else f"{self.records:,} of"
        looked = f"{len(self.attackers)} attackers looked at {self.runs:,} runs of {who} {self.given:,} records"
        whom = "one record" if self.suspects == self.given else f"one of the {self.suspects} records looked at most"
        if self.smallest is None:
            return f"{looked}; that is too few to find an output that gives {whom} away, even in all of its runs."
        return (
            f"{looked}; one and the same output that {whom} alone gives in {significant_up(100 * self.smallest, 2)} % "
            f"of its runs or more would have been found with a chance of {100 * CHANCE:g} %."
        )

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self) | {"attackers": list(self.attackers), "sentence": self.sentence()}


def smallest_disclosure(
    rounds: Sequence[int], suspects: int, pilot: int, again: int, convicts: Callable[[int], bool]
) -> float | None:
    """The least probability of a certain disclosure of one suspect that is found with a chance of 95 %, simulated.

    The target of each run is one of so many suspects; `rounds` are the runs between which the attackers learn, `pilot`
    those of the suspect before. The attacker that answers on outputs of one record alone is right in every run in which
    the disclosure comes, once it was seen `again` times before the round began; `convicts` tells whether so many right
    answers, beside all that was really seen, refute the claim.
    """
    if not rounds or not convicts(sum(rounds)):
        return None
    needed = _least(convicts, sum(rounds))
    rng = np.random.default_rng(0)

    def found(probability: float) -> bool:
        seen = rng.binomial(pilot, probability, size=TRIALS)
        right = np.zeros(TRIALS)
        for runs in rounds:
            fresh = rng.binomial(runs, probability / suspects, size=TRIALS)
            right += np.where(seen >= again, fresh, 0)
            seen += fresh
        return bool(np.mean(right >= needed) >= SIMULATED)

    low, high = -math.log(10 * sum(rounds)), 0.0
    if not found(1.0):
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _least(holds: Callable[[int], bool], most: int) -> int:
    """The least number for which it holds, given that it does for the largest and goes on to once it does."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
