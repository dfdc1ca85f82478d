"""What an audit comes out with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property
from html import escape
from typing import Any, Literal

from dprisk.auditing.certify.claim import Consequence
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.evidence.experiment import Attack, Experiment
from dprisk.errors import fail
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
    tally: Any
    design: Experiment[Any]
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
    def runs(self) -> int:
        """How many runs were made."""
        return int(self.tally.runs)

    @property
    def counts(self) -> Counts:
        """Runs, answers and right answers, of an audit that names suspects."""
        if isinstance(self.tally, Counts):
            return self.tally
        return fail(f"This audit is no count of answers but {type(self.tally).__name__}: see `tally`.")

    @cached_property
    def epsilon_certified(self) -> float:
        """The true epsilon is at least this, with confidence 1 - alpha."""
        return self.design.certified(self.tally, self.alpha, self.claim.delta, self.anytime)

    @cached_property
    def epsilon_estimate(self) -> float:
        """The epsilon that the runs would have on average: an estimate, not a bound."""
        return self.design.estimate(self.tally, self.claim.delta)

    def family_estimate(self) -> dict[str, Any] | None:
        """The parameter at which the family itself would give the measured advantage, as {"parameter", "value"}.

        An estimate that presumes the code to be of that family but for its noise: for faulty code it is no bound, in
        neither direction. The value is None if no noise at all fits best. For audits under a threat of a mechanism or
        with a `family`; else None.
        """
        return self.design.family_estimate(self.tally)

    @property
    def log_e_value(self) -> float:
        """The natural logarithm of the e-value."""
        return self.design.log_e_value(self.tally, self.claim)

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
        able = self.design.able(self.tally, self.claim, self.alpha, self.anytime)
        return "consistent with the claim" if able and self.runs >= self.planned else "undecided"

    def attack(self) -> Attack:
        """The attacker's success (ReRo) and advantage (RAD) in the runs, beside the most that the claim allows.

        The intervals hold with probability at least 1 - alpha, all of them at once.
        """
        return self.design.attack(self.tally, self.claim, self.alpha, self.anytime)

    def sentence(self) -> str:
        """The outcome in words."""
        claim = f"epsilon {self.claim.epsilon:g}"
        if self.claim.delta:
            claim += f", delta {self.claim.delta:g}"
        if isinstance(self.claim, Consequence):
            claim = f"{self.claim.told} (tested as {claim})"
        certified = f"its true epsilon is at least {rounded_down(self.epsilon_certified, 3)} ({confidence(self.alpha)})"
        if self.verdict == "violated":
            return f"{self.name} breaks its promise of {claim}: {certified}."
        if self.verdict == "undecided":
            return f"The claim of {claim} by {self.name} is undecided after {self.runs} runs; {certified}."
        return f"{self.runs} runs of {self.name} are consistent with {claim}; {certified}."

    def attack_sentence(self) -> str:
        """What the attacker gained, beside its bounds, in words; empty without runs."""
        attack = self.attack()
        if attack.success is None or attack.advantage is None or attack.success_interval is None:
            return ""
        low, high = (100 * end for end in attack.success_interval)
        silent = isinstance(self.tally, Counts) and self.tally.answered < self.tally.runs
        return (
            f"The attacker{', guessing at random where it kept silent,' if silent else ''} is right in "
            f"{100 * attack.success:.2f} % of all runs ({rounded_down(low, 2)} to {rounded_up(high, 2)}; the claim "
            f"allows {rounded_up(100 * attack.success_bound, 2)}), {100 * attack.advantage:.2f} points more than on "
            f"people who did not take part (the claim allows {rounded_up(100 * attack.advantage_bound, 2)})."
        )

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
            **self.tally.summary(),
            "planned": self.planned,
            "attack": self.attack().to_dict(),
            "alpha": self.alpha,
            "anytime": self.anytime,
            "design": self.design.to_dict(),
            "target": self.target,
            "seed": self.seed,
            "seconds": self.seconds,
            "sentence": self.sentence(),
        }

    def _repr_html_(self) -> str:
        told = self.to_dict()
        shown = ("verdict", "epsilon_certified", "epsilon_estimate", "e_value", *self.tally.summary())
        rows = "".join(f"<tr><td>{key}</td><td>{escape(str(told[key]))}</td></tr>" for key in shown)
        return f"<table>{rows}</table><p>{escape(self.sentence())} {escape(self.attack_sentence())}</p>"

    def __repr__(self) -> str:
        certified = Context(prec=4, rounding=ROUND_FLOOR).create_decimal(f"{self.epsilon_certified:.12g}")
        numbers = f"epsilon>={float(certified):g}, claim {self.claim.epsilon:g}"
        return f"AuditReport({self.verdict}, {numbers}, {self.runs} runs)"


def rounded_down(value: float, digits: int) -> str:
    """A lower bound in so many decimals, which is one still; noise in the last binary digits is no reason to round."""
    return str(Decimal(f"{value:.12g}").quantize(Decimal(1).scaleb(-digits), ROUND_FLOOR))


def rounded_up(value: float, digits: int) -> str:
    """An upper bound in so many decimals."""
    return str(Decimal(f"{value:.12g}").quantize(Decimal(1).scaleb(-digits), ROUND_CEILING))


def confidence(alpha: float) -> str:
    """1 - alpha in words, with digits enough not to be all of 100 %."""
    if alpha < 1e-6:
        return f"confidence 1 - {alpha:g}"
    error = Context(prec=3, rounding=ROUND_CEILING).multiply(100, Decimal(repr(float(alpha))))
    return f"{(100 - error).normalize():f} % confidence"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
