"""Counts of several attackers who looked at the same runs, and the epsilon that they certify together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dprisk.auditing.certify.anytime import (
    anytime_epsilon_of_several,
    combine_e_values,
    log_e_values,
    right_answers_to_reach,
)
from dprisk.auditing.certify.counts import Counts, certified_epsilon, epsilon_estimate

MAIN = 0.5  # of alpha for the attacker that was settled beforehand, the rest for those that keep learning


@dataclass(frozen=True)
class Answers:
    """What runs gave: of the `main` attacker, who was settled before the first of them, and of those who keep learning.

    `others` holds the counts of each by its name, one for each number of suspects that it was put before.
    """

    runs: int
    main: Counts
    others: Mapping[str, Mapping[int, Counts]] = field(default_factory=dict)

    def __add__(self, more: Answers) -> Answers:
        if not isinstance(more, Answers):
            return NotImplemented
        others = {name: dict(parts) for name, parts in self.others.items()}
        for name, parts in more.others.items():
            mine = others.setdefault(name, {})
            for size, counts in parts.items():
                mine[size] = mine[size] + counts if size in mine else counts
        return Answers(self.runs + more.runs, self.main + more.main, others)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        others = {name: [counts.to_dict() for counts in parts.values()] for name, parts in self.others.items()}
        return {"runs": self.runs, "main": self.main.to_dict(), "others": others}

    @classmethod
    def read(cls, told: dict[str, Any]) -> Answers:
        """What `to_dict` wrote."""
        others = {
            name: {counts.size: counts for counts in map(Counts.read, parts)} for name, parts in told["others"].items()
        }
        return cls(told["runs"], Counts.read(told["main"]), others)

    def summary(self) -> dict[str, Any]:
        """What a report says of them."""
        others = {
            name: {word: sum(getattr(counts, word) for counts in parts.values()) for word in ("answered", "correct")}
            for name, parts in self.others.items()
        }
        return {"runs": self.runs, "answered": self.main.answered, "correct": self.main.correct, "learners": others}

    def describe(self) -> str:
        """In words."""
        return f"{self.main.describe()}; {len(self.others)} more attackers learned as they went"

    def log_e_value(self, epsilon: float, delta: float) -> float:
        """The log of the average of the e-values of all attackers, half of the weight on the main one."""
        return combine_e_values(log_e_values(self._all, epsilon, delta), self._weights)

    def certified(self, alpha: float, delta: float, anytime: bool) -> float:
        """A lower bound on epsilon, above the true one with probability at most alpha.

        At any moment by the average of all e-values. For a number of runs fixed beforehand the main attacker has the
        exact bound at its share of alpha, and those who learn have theirs by the average of their e-values.
        """
        if anytime:
            return anytime_epsilon_of_several(self._all, alpha, delta, self._weights)
        found = [certified_epsilon(self.main, MAIN * alpha if self.others else alpha, delta)]
        if self.others:
            found.append(anytime_epsilon_of_several(self._all[1:], (1 - MAIN) * alpha, delta))
        return max(found)

    def refutes(self, epsilon: float, delta: float, alpha: float, anytime: bool) -> bool:
        """Whether the certificate is above this epsilon, without computing it: at delta 0 it is if and only if so.

        With a delta it may be a little below it still, for it must refute every smaller epsilon as well.
        """
        if anytime:
            return self.log_e_value(epsilon, delta) >= -math.log(alpha)
        if certified_epsilon(self.main, MAIN * alpha if self.others else alpha, delta) > epsilon:
            return True
        learned = combine_e_values(log_e_values(self._all[1:], epsilon, delta)) if self.others else -math.inf
        return learned >= -math.log((1 - MAIN) * alpha)

    def needed(
        self, names: Iterable[str], size: int, most: int, epsilon: float, delta: float, alpha: float, anytime: bool
    ) -> dict[str, int]:
        """How many more right answers of each of these, among so many suspects, refute a claim; not if `most` do not.

        Only the e-value of one learner changes, so those of the others are computed once.
        """
        mine = [name for name in names if name in self.others]
        if self.refutes(epsilon, delta, alpha, anytime):
            return dict.fromkeys(mine, 1)
        every, weights = self._all, np.array(self._weights)
        if not anytime:  # those who learn have their share of alpha to themselves
            every, weights, alpha = every[1:], weights[1:] / weights[1:].sum(), (1 - MAIN) * alpha
        values = weights * np.exp(log_e_values(every, epsilon, delta))
        found = {}
        for name in mine:
            place = len(every) - len(self.others) + list(self.others).index(name)
            enough = math.log((1 / alpha - np.delete(values, place).sum()) / weights[place])
            found[name] = right_answers_to_reach(enough, every[place], size, most, epsilon, delta)
        return {name: needed for name, needed in found.items() if needed is not None}

    def convinced(self, epsilon: float, delta: float, alpha: float) -> list[str]:
        """The learners whose evidence against a claim reaches 1/alpha by itself, most of it first."""
        logs = dict(zip(self.others, log_e_values(self._all[1:], epsilon, delta), strict=True)) if self.others else {}
        return sorted((name for name in logs if logs[name] >= -math.log(alpha)), key=lambda name: -logs[name])

    def estimate(self, delta: float) -> float:
        """The plug-in estimate of the attacker with the largest certificate, at a small alpha; not a bound.

        The alpha is that of one among all of them: of many somebody is right a few times in a row by luck.
        """
        alpha = 0.01 / len(self._all)
        most = max(self._all, key=lambda parts: anytime_epsilon_of_several([parts], alpha, delta))
        return max(epsilon_estimate(counts, delta) for counts in most)

    def pooled(self, epsilon: float, delta: float) -> Counts:
        """The counts of the attacker with most evidence against a claim, where it had most answers."""
        logs = log_e_values(self._all, epsilon, delta)
        return max(self._all[int(logs.argmax())], key=lambda counts: counts.answered)

    @property
    def sizes(self) -> set[int]:
        """Numbers of suspects that attackers were put before."""
        return {self.main.size, *(size for parts in self.others.values() for size in parts)}

    @property
    def _all(self) -> list[list[Counts]]:
        return [[self.main], *(list(parts.values()) for parts in self.others.values())]

    @property
    def _weights(self) -> list[float]:
        count = len(self.others)
        return [MAIN, *[(1 - MAIN) / count] * count] if count else [1.0]
