"""What gives code away, so that people can see it: which outputs, on which record, and how often on the others."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dprisk.auditing.certify.counts import rate
from dprisk.auditing.code.outputs import shown
from dprisk.auditing.evidence.rules import BEFORE, Past, Rule
from dprisk.guarantees import ApproxDP

SHOWN = 3  # outputs
LUCK = 0.01  # chance of such counts under the claim, above which they show nothing
FULL, FULL_NARROW = 15, 7  # digits of a float, and of a float32, that was not rounded
KEPT = (
    "The code carries something of a run into the next: look for a global, a cache, an attribute, a changing default."
)
LAST_BITS = "The last bits of a float tell what noise was added to; round what is published, and audit it again."


@dataclass(frozen=True)
class Witness:
    """Outputs that one record gives more often than another, or the run after it: `what` says which, in words.

    `times` of `runs` runs of the record gave one, and `other_times` of `other_runs` runs of the `other` record, that of
    the rest which did most often. `examples` are some of the outputs.
    """

    attacker: str
    what: str
    record: Any
    times: int
    runs: int
    other: Any
    other_times: int
    other_runs: int
    examples: tuple[str, ...]

    def against(self, epsilon: float) -> float:
        """How often these outputs speak against a claim, times how clearly."""
        ratio = (self.times / self.runs + 1e-9) / ((self.other_times + 0.5) / self.other_runs)
        return self.times * (math.log(ratio) - epsilon)

    def shows(self, claim: ApproxDP) -> bool:
        """Whether these outputs alone are more frequent than the claim allows, by what was counted, and not by luck."""
        from scipy.special import betainc

        share, other = self.times / self.runs, self.other_times / self.other_runs
        if not share > math.exp(min(claim.epsilon, 700.0)) * other + claim.delta:
            return False
        allowed = rate(claim.epsilon + math.log(self.runs / self.other_runs))  # the share of the record among both
        beyond = self.times - claim.delta * self.runs
        return bool(betainc(beyond, self.other_times + 1, allowed) < LUCK)

    def sentence(self) -> str:
        """In words."""
        when = "after" if BEFORE in self.attacker else "in"
        told = (
            f"{self.what[0].upper()}{self.what[1:]} {when} {_share(self.times, self.runs)} runs of record "
            f"{self.record!r}, and {when} {_share(self.other_times, self.other_runs)} runs of record {self.other!r}."
        )
        unrounded = self._is_of_last_bits and not self.is_of_rounded
        reason = KEPT if BEFORE in self.attacker else LAST_BITS if unrounded else ""
        return f"{told} {reason}".rstrip()

    @property
    def is_of_rounded(self) -> bool:
        """Whether it is about the last bits of numbers with few digits, which say no more than the numbers."""
        told = " ".join(self.examples)
        numbers = re.findall(r"[\d.]+", told.replace("float32(", "("))
        digits = max((len(number.replace(".", "").lstrip("0")) for number in numbers), default=0)
        return self._is_of_last_bits and digits < (FULL_NARROW if "float32(" in told else FULL)

    @property
    def _is_of_last_bits(self) -> bool:
        return self.attacker.startswith("low bits") and "2^-" in self.what

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        told = asdict(self) | {"examples": list(self.examples), "sentence": self.sentence()}
        return {
            name: value if isinstance(value, int | float | str | list) else repr(value) for name, value in told.items()
        }


def witness_of(attacker: str, rule: Rule, past: Past, records: Sequence[Any]) -> Witness | None:
    """The outputs for which a rule names a record most tellingly, and how often each record gave them."""
    answers = rule.answers(past.seen)
    named = np.flatnonzero(answers >= 0)
    if named.size == 0:
        return None
    groups = np.unique(rule.groups(past.seen.take(named)), return_inverse=True)[1]
    place = np.unique(groups * len(records) + answers[named], return_inverse=True)[1]
    right = past.records[named] == answers[named]
    hits, misses = (np.bincount(place[some], minlength=place.max() + 1) for some in (right, ~right))
    best = int(np.argmax(hits * np.log((hits + 0.5) / (misses + 0.5))))  # evidence: how often, times how clearly
    among = named[place == best]
    record = int(answers[among[0]])
    times, runs = (np.bincount(numbers, minlength=len(records)) for numbers in (past.records[among], past.records))
    rivals = np.where(runs > 0, times, -1)
    rivals[record] = -1
    other = int(np.argmax(rivals))
    if rivals[other] < 0:
        return None  # nobody else was run
    few = past.seen.take(among[:SHOWN])
    return Witness(
        attacker=attacker,
        what=f"{'in the next run ' * (BEFORE in attacker)}{rule.words(few)[0]}",
        record=_plain(records[record]),
        times=int(times[record]),
        runs=int(runs[record]),
        other=_plain(records[other]),
        other_times=int(times[other]),
        other_runs=int(runs[other]),
        examples=tuple(map(shown, few.outputs)),
    )


def _plain(record: Any) -> Any:
    """A number of numpy as Python writes it."""
    return record.item() if isinstance(record, np.generic) else record


def _share(times: int, runs: int) -> str:
    if times == runs:
        return f"all {runs:,}"
    return f"{times or 'none'} of {runs:,}" if times < 1000 else f"{times:,} of {runs:,}"
