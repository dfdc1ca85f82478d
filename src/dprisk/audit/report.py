"""What an audit comes out with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from dprisk.audit import statistics
from dprisk.audit.consequence import Consequence
from dprisk.audit.design import Design
from dprisk.audit.statistics import Counts
from dprisk.bounds.papers import rad_corollary_5_6
from dprisk.guarantees import ApproxDP

Verdict = Literal["violated", "consistent with the claim", "undecided"]


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport:
    """The verdict on a claim, and the epsilon that the runs certify.

    With probability at least 1 - alpha the code is epsilon-DP for no epsilon below `epsilon_certified` (at the claim's
    delta). With `anytime` that holds however and whenever the audit was stopped; otherwise the number of runs was fixed
    beforehand. `epsilon_estimate` is the number that fits best, and may be too large or too small.
    """

    target: dict[str, Any]
    claim: ApproxDP
    counts: Counts
    design: Design
    alpha: float
    planned: int
    anytime: bool
    seed: int
    seconds: float

    @property
    def name(self) -> str:
        """What was audited."""
        return str(self.target["name"])

    @property
    def epsilon_certified(self) -> float:
        """The true epsilon is at least this, with confidence 1 - alpha."""
        return self._certified(self.counts)

    def _certified(self, counts: Counts) -> float:
        bound = statistics.anytime_epsilon if self.anytime else statistics.certified_epsilon
        return bound(counts, self.alpha, self.claim.delta)

    @property
    def epsilon_estimate(self) -> float:
        """The epsilon that the counts would have on average: an estimate, not a bound."""
        return statistics.epsilon_estimate(self.counts, self.claim.delta)

    @property
    def log_e_value(self) -> float:
        """The natural logarithm of the e-value."""
        return statistics.log_e_value(self.counts, self.claim.epsilon, self.claim.delta)

    @property
    def e_value(self) -> float:
        """Evidence against the claim: if it holds, this reaches 1/alpha with probability at most alpha, ever."""
        return math.exp(min(self.log_e_value, 700.0))

    @property
    def verdict(self) -> Verdict:
        """Violated if the certified epsilon is above the claim; undecided if there was too little to go by.

        That is so if runs are missing, no answer was given, or so many answers could not refute the claim even if
        all were correct.
        """
        if self.epsilon_certified > self.claim.epsilon:
            return "violated"
        runs, answered = self.counts.runs, self.counts.answered
        able = self._certified(Counts(runs, answered, answered, self.counts.size)) > self.claim.epsilon
        return "consistent with the claim" if able and runs >= self.planned else "undecided"

    def attack(self) -> dict[str, Any]:
        """How often the attacker names the record of a run, and the most that the claim allows.

        The record is uniform on the s suspects; an attacker that abstains guesses one of them at random. With S the
        chance of a correct answer and A that of any, the success (ReRo) is S + (1 - A)/s and the advantage (RAD) is
        1/s less. The intervals hold with probability at least 1 - alpha (Clopper-Pearson at alpha/4 for each end of S
        and of A); an audit that could stop early has none. The bounds are RAD Corollary 5.6.
        """
        counts, guess = self.counts, 1 / self.counts.size
        most = min(1 - guess, rad_corollary_5_6(self.claim.epsilon, self.claim.delta, counts.size))
        told: dict[str, Any] = {"baseline": guess, "success_bound": guess + most, "advantage_bound": most}
        if counts.runs == 0:
            return told
        silent = counts.runs - counts.answered
        success = (counts.correct + silent * guess) / counts.runs
        told |= {"success": success, "advantage": success - guess}
        if not self.anytime:
            right, none = (statistics.clopper_pearson(k, counts.runs, self.alpha / 4) for k in (counts.correct, silent))
            ends = [min(1.0, a + b * guess) for a, b in zip(right, none, strict=True)]
            told |= {"success_interval": ends, "advantage_interval": [end - guess for end in ends]}
        return told

    def sentence(self) -> str:
        """The outcome in words."""
        sure, claim = 100 * (1 - self.alpha), f"epsilon {self.claim.epsilon:g}"
        if self.claim.delta:
            claim += f", delta {self.claim.delta:g}"
        if isinstance(self.claim, Consequence):
            claim = f"{self.claim.told} (tested as {claim})"
        certified = f"its true epsilon is at least {self.epsilon_certified:.3f} ({sure:g} % confidence)"
        if self.verdict == "violated":
            return f"{self.name} breaks its promise of {claim}: {certified}."
        if self.verdict == "undecided":
            return f"The claim of {claim} by {self.name} is undecided after {self.counts.runs} runs; {certified}."
        return f"{self.counts.runs} runs of {self.name} are consistent with {claim}; {certified}."

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "verdict": self.verdict,
            "claim": self.claim.epsilon,
            "delta": self.claim.delta,
            "promise": self.claim.told if isinstance(self.claim, Consequence) else None,
            "epsilon_certified": self.epsilon_certified,
            "epsilon_estimate": _finite(self.epsilon_estimate),
            "e_value": self.e_value,
            "log_e_value": self.log_e_value,
            "runs": self.counts.runs,
            "answered": self.counts.answered,
            "correct": self.counts.correct,
            "planned": self.planned,
            "attack": self.attack(),
            "alpha": self.alpha,
            "anytime": self.anytime,
            "design": self.design.to_dict(),
            "target": self.target,
            "seed": self.seed,
            "seconds": self.seconds,
            "sentence": self.sentence(),
        }

    def _repr_html_(self) -> str:
        shown = ("verdict", "epsilon_certified", "epsilon_estimate", "e_value", "runs", "answered", "correct")
        told = self.to_dict()
        rows = "".join(f"<tr><td>{key}</td><td>{escape(str(told[key]))}</td></tr>" for key in shown)
        return f"<table>{rows}</table><p>{escape(self.sentence())}</p>"

    def __repr__(self) -> str:
        numbers = f"epsilon>={self.epsilon_certified:.4g}, claim {self.claim.epsilon:g}"
        return f"AuditReport({self.verdict}, {numbers}, {self.counts.runs} runs)"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
