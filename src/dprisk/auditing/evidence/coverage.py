"""What an audit looked at, and how rare a leak would have been found: "consistent" says no more than that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

CHANCE = 0.95  # with which the smallest leak that is told of would have been found
TRIALS = 400  # simulated audits for each probability
CELLS = 40_000  # records times simulated audits at most
STEPS = 16  # of the search for the smallest probability
AGAIN = 2  # times that an output must have been seen of one record alone before it is answered on


@dataclass(frozen=True)
class Coverage:
    """What was looked at: records that were run of those that were given, runs, pilot runs, attackers.

    `smallest` is the least probability of a certain disclosure, an output that one record alone gives and always the
    same, with which it would have been found with a chance of 95 %; None if none would have been. It is of the
    `suspects` among whom the main attacker looks, where these are not all.
    """

    records: int
    given: int
    runs: int
    pilot: int
    attackers: tuple[str, ...]
    smallest: float | None
    suspects: int

    def sentence(self) -> str:
        """In words."""
        who = "all" if self.records == self.given else f"{self.records:,} of"
        looked = f"{len(self.attackers)} attackers looked at {self.runs:,} runs of {who} {self.given:,} records"
        if self.smallest is None:
            return f"{looked}; so few could not have shown an output that gives the record away."
        whom = "the record" if self.suspects == self.given else f"one of the {self.suspects} records looked at most"
        return (
            f"{looked}; an output that gives {whom} away in {100 * self.smallest:.2g} % of its runs or more would have "
            f"been found with a chance of {100 * CHANCE:g} %."
        )

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self) | {"attackers": list(self.attackers), "sentence": self.sentence()}


def smallest_disclosure(
    rounds: list[int], suspects: int, pilot: float, convicts: Callable[[int], bool]
) -> float | None:
    """The least probability of a certain disclosure that is found with a chance of 95 %, by simulation.

    The target of each run is one of so many suspects, all alike; `rounds` are the runs between which the attackers
    learn, `pilot` those of each suspect before. An attacker that answers on outputs of one record alone is right in
    every run in which a disclosure comes that was seen twice before its round began; `convicts` tells whether so many
    right answers refute the claim.
    """
    if not rounds or not convicts(sum(rounds)):
        return None
    needed = _least(convicts, sum(rounds))
    rng = np.random.default_rng(0)
    trials = max(50, min(TRIALS, CELLS // suspects))

    def found(probability: float) -> bool:
        seen = rng.poisson(pilot * probability, size=(trials, suspects))
        right = np.zeros(trials)
        for runs in rounds:
            fresh = rng.poisson(runs / suspects * probability, size=(trials, suspects))
            right += np.where(seen >= AGAIN, fresh, 0).sum(axis=1)
            seen += fresh
        return bool(np.mean(right >= needed) >= CHANCE)

    low, high = np.log(1 / (10 * sum(rounds))), 0.0
    if not found(1.0):
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found(float(np.exp(middle))) else (middle, high)
    return float(np.exp(high))


def _least(holds: Callable[[int], bool], most: int) -> int:
    """The least number for which it holds, given that it does for the largest and goes on to once it does."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
