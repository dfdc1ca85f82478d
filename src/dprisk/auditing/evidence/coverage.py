"""What an audit looked at, and how rare a leak would have been found: "consistent" says no more than that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import HARDLY
from dprisk.auditing.evidence.numbers import leaves
from dprisk.rounding import significant_up
from dprisk.types import AnyArray, FloatArray, IntArray

CHANCE = 0.95  # with which the smallest leak that is told of would have been found
ALLOWING = 0.995  # the same beside the counts that were seen, since those of another audit are others
STEPS = 12  # of the search for the smallest probability


@dataclass(frozen=True)
class Coverage:
    """What was looked at: records that were run of those that were given, runs, pilot runs, attackers.

    `smallest` is the least probability with which one record alone may give an output, always the same, so that it
    would have been found with a chance of 95 %; None if none would have been. It holds for each of `suspects` records:
    for all that were given, unless these are pairs of neighbours. `able` tells whether any disclosure of a suspect
    whom the main attacker looks at would have been found; where delta is large, by that attacker alone.
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
        if self.smallest is None and self.able:
            return f"{looked}; with so large a delta the claim allows {whom} to be given away often."
        if self.smallest is None:
            return f"{looked}; that is too few to find an output that gives {whom} away, even in all of its runs."
        return (
            f"{looked}; an output that {whom} alone ever gives, always the same, would have been found with a chance "
            f"of {100 * CHANCE:g} % if it came in {significant_up(100 * self.smallest, 2)} % of its runs or more."
        )

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self) | {"attackers": list(self.attackers), "sentence": self.sentence()}


def holds_keys(outputs: AnyArray) -> bool:
    """Whether outputs hold a whole number beside others that hardly ever comes again, as the seed of a hash does.

    What they say may then be read by means of it, which none of the attackers can.
    """
    if outputs.dtype.kind in "iu" and outputs.ndim > 1:
        columns = outputs.reshape(len(outputs), math.prod(outputs.shape[1:])).T
        return any(np.unique(column).size > HARDLY * len(outputs) for column in columns)
    if outputs.dtype.kind != "O":
        return False
    held = [leaves(value) for value in outputs.tolist() if isinstance(value, tuple)]
    kinds = [[value for value in column if type(value) in (int, bytes)] for column in zip(*held, strict=False)]
    return len(held) > len(outputs) / 2 and any(len(set(column)) > HARDLY * len(outputs) for column in kinds)


def smallest_disclosure(rounds: Sequence[int], suspects: int, pilot: int, needed: Mapping[int, int]) -> float | None:
    """The least probability of a certain disclosure of one suspect that is found with a chance of 95 %.

    The target of each run is one of so many suspects; `rounds` are the runs between which the attackers learn, `pilot`
    those of the suspect before. An attacker that answers on outputs of one record alone is right in every run in which
    the disclosure comes, once it was seen often enough before the round began: `needed` holds, by that number of times,
    the right answers that refute the claim beside all that was really seen.
    """

    def is_found(probability: float) -> bool:
        return bool(max(_found(probability, np.array(rounds), suspects, pilot, needed)) >= ALLOWING)

    if not rounds or not needed or not is_found(1.0):
        return None
    low, high = -math.log(10 * sum(rounds)), 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _found(probability: float, rounds: IntArray, suspects: int, pilot: int, needed: Mapping[int, int]) -> FloatArray:
    """The chance that each attacker has enough right answers, by the round before which it knew the disclosure."""
    again, enough, share = np.array([*needed])[:, None], np.array([*needed.values()])[:, None], probability / suspects
    times, before = np.arange(max(needed) + 1), np.cumsum(rounds) - rounds
    in_pilot = -np.diff(_at_least(times, pilot, probability), append=0.0)  # so often, and at the end that or more
    in_rounds = _at_least(times[:, None], before, share)
    known = in_pilot @ in_rounds[np.maximum(again - times, 0)]
    fresh = np.diff(known, axis=1, prepend=0.0)
    return np.asarray((fresh * _at_least(enough, rounds.sum() - before, share)).sum(axis=1))


def _at_least(times: IntArray, runs: int | IntArray, probability: float) -> FloatArray:
    """The chance that something of this probability happens so many times or more."""
    from scipy.special import betainc

    some = betainc(np.maximum(times, 1), np.maximum(runs - times + 1, 1), probability)
    return np.where(times <= 0, 1.0, np.where(times > runs, 0.0, some))
