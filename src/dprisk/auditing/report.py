"""What an audit comes out with: the verdict, and what gives the code away or was looked at."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from dprisk.answers import Answer, Row
from dprisk.auditing.certify.claim import Consequence, Terms
from dprisk.auditing.certify.counts import Counts, as_delta, fewest_runs, rate
from dprisk.auditing.certify.portfolio import Answers
from dprisk.auditing.code.outputs import same_outputs, shown
from dprisk.auditing.code.target import versions
from dprisk.auditing.evidence.coverage import Coverage, holds_keys
from dprisk.auditing.evidence.experiment import Attack, Experiment
from dprisk.auditing.evidence.witness import Witness
from dprisk.auditing.running.plan import Outcome
from dprisk.errors import fail
from dprisk.guarantees import ApproxDP
from dprisk.pictures.drawing import draw
from dprisk.pictures.picture import GREY, Curve, Curves, Panel, colour
from dprisk.rounding import decimals_down, decimals_up, significant_down, sure

DELTAS = (0.0, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # of the curve in JSON

Verdict = Literal["violated", "consistent with the claim", "undecided"]


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport(Answer):
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
    witnesses: tuple[Witness, ...] = ()
    coverage: Coverage | None = None
    notes: tuple[str, ...] = ()  # what happened besides, in sentences
    keyed: bool = False  # whether outputs hold keys, and nothing was found (see `holds_keys`)
    known_epsilon: float | None = None  # that a mechanism has by its formula, where that is above the claim

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
        """Runs, answers and right answers of the attacker that was settled beforehand, where suspects are named."""
        if isinstance(self.tally, Answers):
            return self.tally.main
        if isinstance(self.tally, Counts):
            return self.tally
        return fail(f"This audit is no count of answers but {type(self.tally).__name__}: see `tally`.")

    @cached_property
    def epsilon_certified(self) -> float:
        """The true epsilon is at least this, with confidence 1 - alpha."""
        return self.design.certified(self.tally, self.alpha, self.claim.delta, self.anytime)

    def epsilon_at(self, delta: float) -> float:
        """The same at another delta: the true epsilon at this delta is at least that, with confidence 1 - alpha.

        For one delta that was chosen before the runs; `curve` holds for several at once.
        """
        return self.design.certified(self.tally, self.alpha, as_delta(delta), self.anytime)

    def curve(self, deltas: Sequence[float] = DELTAS) -> list[tuple[float, float]]:
        """Pairs of delta and epsilon: with confidence 1 - alpha the code keeps none of them with a smaller epsilon.

        All hold at once, since each is wrong with probability at most alpha over their number. Epsilon falls as delta
        rises, so that a certificate at a larger delta holds at a smaller one as well.
        """
        share, best, found = self.alpha / max(1, len(deltas)), 0.0, []
        for delta in sorted(map(as_delta, deltas), reverse=True):
            best = max(best, self.design.certified(self.tally, share, delta, self.anytime))
            found.append((delta, best))
        return found[::-1]

    def picture(self) -> Curves:
        """What `plot` draws, as plain data."""
        deltas, epsilons = zip(*self.curve([delta for delta in DELTAS if delta > 0]), strict=True)
        found = Curve("certified", deltas, epsilons, colour(0), bold=True)
        claim = self.claim.epsilon
        claimed = Curve(f"claimed: {claim:g}", deltas, (claim,) * len(deltas), GREY, dashed=True)
        return Curves(f"The true epsilon of {self.name} is at least", "delta", (Panel("", (found, claimed)),), True)

    def plot(self, ax: Any = None) -> Any:
        """Draw the certificates over delta, beside the claimed epsilon, with matplotlib; returns the axes."""
        return draw(self.picture(), ax)

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

    @cached_property
    def verdict(self) -> Verdict:
        """Violated if the certified epsilon is above the claim; undecided if there was too little to go by.

        That is so if runs are missing, no answer was given, or so many answers could not refute the claim even if
        all were correct, or code that gives away one of the suspects in every run would not have been found; and if the
        claim is known to be wrong, but the runs do not show it, or outputs are to be read by keys that nobody used.
        """
        if self.epsilon_certified > self.claim.epsilon:
            return "violated"
        if self.known_epsilon is not None or self.keyed:
            return "undecided"
        able = self.design.able(self.tally, self.claim, self.alpha, self.anytime)
        able = able and (self.coverage is None or self.coverage.able)
        return "consistent with the claim" if able and self.runs >= self.planned else "undecided"

    def attack(self) -> Attack:
        """The attacker's success (ReRo) and advantage (RAD) in the runs, beside the most that the claim allows.

        The intervals hold with probability at least 1 - alpha, all of them at once.
        """
        return self.design.attack(self.tally, self.claim, self.alpha, self.anytime)

    def sentence(self) -> str:
        """The outcome in words, and what happened besides."""
        return " ".join([self._outcome(), *self.notes])

    def _outcome(self) -> str:
        claim = f"epsilon {self.claim.epsilon:g}"
        if self.claim.delta:
            claim += f", delta {self.claim.delta:g}"
        claim += self._neighbours
        if isinstance(self.claim, Consequence):
            claim = f"{self.claim.told} (tested as {claim})"
        told = (
            f"its true epsilon is at least {self._certified}" if float(self._certified) else "no epsilon is certified"
        )
        certified = f"{told} ({sure(self.alpha)})"
        if self.verdict == "violated":
            early = "; it may be far larger, for the audit stopped there" if self.runs < self.planned else ""
            seen = self.witnesses[0].sentence() if self.witnesses else self._pooled()
            return f"{self.name} breaks its promise of {claim}: {certified}{early}.{seen and ' '}{seen}"
        if self.verdict == "undecided":
            settled = f"Undecided: {self.runs:,} runs of {self.name} do not settle {claim}"
            return f"{settled} ({self._why_undecided()}); {certified}."
        looked = f" {self.coverage.sentence()}" if self.coverage else ""
        found = f"{self.runs:,} runs of {self.name} are consistent with {claim}, which is no proof of it"
        return f"{found}; {certified}.{looked}"

    def _why_undecided(self) -> str:
        if self.runs < self.planned:
            return "the audit did not finish"
        if self.known_epsilon is not None:
            at = f" at delta {self.claim.delta:g}"
            own = f"its epsilon is {self.known_epsilon:.4g}" if self.known_epsilon < math.inf else "it keeps no epsilon"
            return f"by its formula {own}{at}, which these runs do not show"
        if self.keyed:
            return (
                "each output holds a whole number that hardly ever comes again; if that is a key, such as the seed of "
                "a hash, no attacker read the rest by it; have the code apply it, or a function given as post"
            )
        if not isinstance(self.tally, Counts | Answers):
            if self.attack().baseline >= 1 - 1e-9:
                return "every guess counts as right, so nothing is left to find out"
            return "so few might miss even a gross leak"
        sizes = self.tally.sizes if isinstance(self.tally, Answers) else {self.counts.size}
        fewest = fewest_runs(max(sizes), self.claim.epsilon, self.claim.delta, self.alpha)
        if fewest is None:
            return "no outcome could refute it"
        if self.runs < fewest:
            return f"it takes {fewest:,} at least to refute it"
        if self.counts.answered == 0:
            if isinstance(self.tally, Counts):
                return "the attacker had nothing to go by"
            return (
                "the main attacker had nothing to go by; give it numbers to look at with post=..., but what that "
                "leaves out is not audited"
            )
        if not self.design.able(self.tally, self.claim, self.alpha, self.anytime):
            return f"{self.counts.answered:,} answers of the main attacker are too few to notice even a gross leak"
        return "an output that one record alone ever gives might be missed, however often it comes"

    def _pooled(self) -> str:
        """What shows the violation where no kind of output does by itself; empty under a threat."""
        if not isinstance(self.tally, Counts | Answers):
            return ""
        epsilon, delta = self.claim.epsilon, self.claim.delta
        counts = self.tally if isinstance(self.tally, Counts) else self.tally.pooled(epsilon, delta)
        chance = rate(epsilon - math.log(counts.size - 1))
        if delta == 0:
            return (
                f"{counts.correct:,} of {counts.answered:,} guesses among {counts.size} records were right; the claim "
                f"allows {chance * counts.answered:,.0f} on average."
            )
        allowed = chance / (1 - chance) * counts.wrong + delta * counts.runs
        return (
            f"In {counts.runs:,} runs the attacker named the record, one of {counts.size}, rightly {counts.correct:,} "
            f"times and wrongly {counts.wrong:,} times; beside so many wrong answers the claim allows {allowed:,.0f} "
            "right ones on average."
        )

    @property
    def _certified(self) -> str:
        """The certificate in decimals, as many as it takes to be seen above a claim that it is above."""
        found, claim = self.epsilon_certified, self.claim.epsilon
        digits = next(
            (count for count in range(3, 13) if (float(decimals_down(found, count)) > claim) == (found > claim)), 12
        )
        return decimals_down(found, digits)

    @property
    def _neighbours(self) -> str:
        """What the claim is about, for a sentence, where that is not the usual: replacing one record."""
        return " for one record added or removed" if self.claim.relation == "add-remove" else ""

    def attack_sentence(self) -> str:
        """What the attacker gained, beside its bounds, in words; empty without runs.

        If the claim is refuted and the runs on average do not show it, as when the leak is in few of them, then what
        the claim would allow is left out: it reads as an acquittal, and is none. Of an attacker who never answered
        nothing is said.
        """
        attack, silent = self.attack(), 0
        if attack.success is None or attack.advantage is None or attack.success_interval is None:
            return ""
        if isinstance(self.tally, Counts | Answers):
            silent = self.counts.runs - self.counts.answered
            if self.counts.answered == 0:
                return ""
        low, high = (100 * end for end in attack.success_interval)
        found = (
            f"The attacker{', guessing at random where it kept silent,' if silent else ''} is right in "
            f"{100 * attack.success:.2f} % of all runs ({decimals_down(low, 2)} to {decimals_up(high, 2)}"
        )
        more = f"{100 * attack.advantage:.2f} points more than on people who did not take part"
        if self.verdict == "violated" and low <= 100 * attack.success_bound:
            return f"{found}), {more}: an average, in which the leak does not show."
        allowed, also = (
            f"the claim allows {decimals_up(100 * most, 2)}" for most in (attack.success_bound, attack.advantage_bound)
        )
        if self.verdict == "violated":
            return f"{found}; {allowed}), {more} ({also})."
        chance = ", and chance may explain the rest" if attack.success > attack.success_bound else ""
        always = " One who answers always may gain more." if silent else ""
        return f"{found}; {allowed}{chance}), {more} ({also}).{always}"

    @property
    def about(self) -> str:
        return self.name

    @property
    def numbers(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "epsilon_certified": self.epsilon_certified,
            "epsilon_estimate": _finite(self.epsilon_estimate),
            "e_value": self.e_value,
            "log_e_value": self.log_e_value,
            **self.tally.summary(),
        }

    @property
    def rows(self) -> list[Row]:
        """The verdict, what it rests on, and what the attacker gained."""
        promise = f"on epsilon {self.claim.epsilon:g}, delta {self.claim.delta:g}{self._neighbours}"
        found: list[Row] = [
            ("verdict", self.verdict, promise),
            ("certified", f">= {self._certified}", f"true epsilon, {sure(self.alpha)}"),
            ("estimate", f"{self.epsilon_estimate:.3f}", "the epsilon that fits best: no bound"),
            ("e-value", f"{self.e_value:.3g}", "evidence against the claim: 1 is none"),
            ("runs", str(self.runs), self.tally.describe()),
        ]
        found += [
            ("leak", f"{witness.times} : {witness.other_times}", witness.sentence()) for witness in self.witnesses
        ]
        told = self.attack_sentence()
        return [*found, ("attacker", "", told)] if told else found

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "claim": self.claim.epsilon,
            "delta": self.claim.delta,
            "neighbours": self.claim.relation,
            "promise": self.claim.told if isinstance(self.claim, Consequence) else None,
            "planned": self.planned,
            "attack": self.attack().to_dict(),
            "alpha": self.alpha,
            "anytime": self.anytime,
            "design": self.design.to_dict(),
            "target": self.target,
            "seed": self.seed,
            "seconds": self.seconds,
            "coverage": self.coverage and self.coverage.to_dict(),
            "notes": list(self.notes),
            "curve": self._told_curve(),
            "witnesses": [witness.to_dict() for witness in self.witnesses],
        }

    def _told_curve(self) -> list[dict[str, float]] | None:
        """The curve; None under a threat, where an epsilon takes seconds for each delta."""
        if not isinstance(self.tally, Counts | Answers):
            return None
        return [{"delta": delta, "epsilon": epsilon} for delta, epsilon in self.curve()]

    def __repr__(self) -> str:
        numbers = f"epsilon>={significant_down(self.epsilon_certified, 4)}, claim {self.claim.epsilon:g}"
        return f"AuditReport({self.verdict}, {numbers}, {self.runs} runs)"


def conclude(
    found: Outcome,
    target: dict[str, Any],
    terms: Terms,
    started: float,
    planned: int,
    anytime: bool,
    notes: Iterable[str] = (),
    known_epsilon: float | None = None,
) -> AuditReport:
    """The report on runs that began at `started`, a reading of `time.perf_counter`."""
    report = AuditReport(
        target=target | {"versions": versions()},
        claim=terms.claim,
        tally=found.tally,
        design=found.design,
        alpha=terms.alpha,
        planned=planned,
        anytime=anytime,
        seed=terms.seed,
        seconds=time.perf_counter() - started,
        notes=tuple(notes),
        known_epsilon=known_epsilon,
    )
    if report.epsilon_certified > report.claim.epsilon:
        concluded = replace(report, witnesses=found.witnesses(report.claim, report.alpha))
    else:
        how = report.claim, report.alpha, report.anytime, list(found.all_rounds), found.records
        concluded = replace(report, coverage=found.design.coverage(found.tally, *how))
    if report.epsilon_certified == 0 and found.past is not None:
        outputs = found.past.seen.outputs
        constant = (f"Every output was {shown(outputs[0])}.",) if same_outputs(outputs[1:], outputs[:-1]) else ()
        concluded = replace(concluded, keyed=holds_keys(outputs), notes=(*report.notes, *constant))
    vars(concluded)["epsilon_certified"] = report.epsilon_certified  # which can take long, and is the same
    return concluded


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
