"""What an audit looked at, and how rare a leak would have been found: "consistent" says no more than that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.rounding import significant_up
from dprisk.types import FloatArray

CHANCE = 0.95  # with which the smallest leak that is told of would have been found
ALLOWING = 0.995  # the same beside the counts that were seen, since those of another audit are others
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
    rounds: Sequence[int], suspects: int, pilot: int, again: int, needed: int | None
) -> float | None:
    """The least probability of a certain disclosure of one suspect that is found with a chance of 95 %.

    The target of each run is one of so many suspects; `rounds` are the runs between which the attackers learn, `pilot`
    those of the suspect before. The attacker that answers on outputs of one record alone is right in every run in which
    the disclosure comes, once it was seen `again` times before the round began; `needed` are the right answers that,
    beside all that was really seen, refute the claim, None if there are never enough.
    """
    if not rounds or needed is None or _found(1.0, rounds, suspects, pilot, again, needed) < ALLOWING:
        return None
    low, high = -math.log(10 * sum(rounds)), 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        enough = _found(math.exp(middle), rounds, suspects, pilot, again, needed) >= ALLOWING
        low, high = (low, middle) if enough else (middle, high)
    return math.exp(high)


def _found(probability: float, rounds: Sequence[int], suspects: int, pilot: int, again: int, needed: int) -> float:
    """The chance of enough right answers, by the round before which the disclosure was seen often enough."""
    total = known = 0.0
    left, share = sum(rounds), probability / suspects
    in_pilot = _at_least(np.arange(again + 1), pilot, probability)
    for runs in rounds:
        before = sum(rounds) - left
        seen = float(in_pilot[again] - np.diff(in_pilot) @ _at_least(again - np.arange(again), before, share))
        total += (seen - known) * float(_at_least(needed, left, share))
        known, left = seen, left - runs
    return total


def _at_least(times: npt.ArrayLike, runs: int, probability: float) -> FloatArray:
    """The chance that something of this probability happens so many times or more."""
    from scipy.special import betainc

    wanted = np.asarray(times)
    some = betainc(np.maximum(wanted, 1), np.maximum(runs - wanted + 1, 1), probability)
    return np.where(wanted <= 0, 1.0, np.where(wanted > runs, 0.0, some))
