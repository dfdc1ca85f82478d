"""What gives code away, so that people can see it: which outputs, on which record, and how often on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dprisk.auditing.evidence.attackers import Past, Rule

SHOWN = 3  # outputs


@dataclass(frozen=True)
class Witness:
    """Outputs that one record gives more often than another: `what` says which, in words.

    `times` of `runs` runs of the record gave one, and `other_times` of `other_runs` runs of the `other` record, of which
    most did among the rest. `examples` are some of the outputs.
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

    def sentence(self) -> str:
        """In words."""
        return (
            f"{self.what[0].upper()}{self.what[1:]} in {self.times} of {self.runs} runs of record {self.record!r} and in "
            f"{self.other_times} of {self.other_runs} runs of record {self.other!r}."
        )

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
    words = np.array(rule.words(past.seen.take(named)))
    best: tuple[float, str, int] | None = None
    for what in dict.fromkeys(words.tolist()):
        among = named[words == what]
        record = int(np.bincount(answers[among]).argmax())
        right, wrong = _split(past, among, record)
        worth = right / (wrong + 1) * min(1.0, right / 5)
        if best is None or worth > best[0]:
            best = worth, what, record
    assert best is not None
    _, what, record = best
    among = named[words == what]
    others = np.bincount(past.records[among], minlength=len(records))
    runs = np.bincount(past.records, minlength=len(records))
    others[record] = -1
    other = int(np.argmax(np.where(runs > 0, others, -2)))
    examples = [
        repr(value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value)
        for value in past.seen.outputs[among[:SHOWN]]
    ]
    times = int(np.count_nonzero(past.records[among] == record))
    return Witness(
        attacker,
        what,
        records[record],
        times,
        int(runs[record]),
        records[other],
        max(0, int(others[other])),
        int(runs[other]),
        tuple(examples),
    )


def _split(past: Past, among: Any, record: int) -> tuple[int, int]:
    right = int(np.count_nonzero(past.records[among] == record))
    return right, len(among) - right
