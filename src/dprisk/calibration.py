"""The second question: how much noise do I need?

`calibrate` finds the weakest noise that keeps a tolerated risk, and always ends on the safe side: the risk that it
reports was computed at the parameter that it reports, and is at most the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dprisk.answers import Answer, Row
from dprisk.comparisons import Compared, Comparisons
from dprisk.errors import DpriskError, ParameterError, as_number, fail, require
from dprisk.mechanisms import Mechanism
from dprisk.pictures import Curve, Curves, draw
from dprisk.pictures.picture import GREY
from dprisk.risks import Assessment, RecordRisk, WorstCase, at_most, risk_of, sentences
from dprisk.rounding import plain, significant_down, significant_up, written_out
from dprisk.search import LARGEST, ROUNDING, SMALLEST, Found, Measure, Progress, required_parameter, weakest
from dprisk.sweeps import sweep
from dprisk.threat import Threat
from dprisk.values import Adjustable, Parameter

POINTS = 25  # of the curve that is drawn


@dataclass(frozen=True, kw_only=True)
class Alternative(Found):
    """What another way to calibrate would choose."""

    name: str
    meaning: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Calibration(Found, Compared, Answer):
    """The weakest noise found that keeps the goal: the `value` of the parameter, and the `subject` that has it.

    It is `unlimited` if the goal is kept however weak the noise is.
    """

    template: Adjustable
    threat: Threat | None
    kind: str
    goal: str
    target: float

    @property
    def parameter(self) -> str:
        """The name of the number that was found."""
        return self._knob.name

    @property
    def _knob(self) -> Parameter:
        return required_parameter(self.template)

    @cached_property
    def risk(self) -> Assessment | None:
        """The assessment at the parameter found, where there is a threat.

        Of a mechanism whose risk can only be estimated it is the worst that its guarantee allows.
        """
        return None if self.threat is None else at_most(self.subject, self.threat)

    @cached_property
    def achieved(self) -> dict[str, float]:
        """The risk at the parameter found."""
        if self.risk is None:
            return {"advantage": _total_variation(_of_any(self.subject))}
        return {"advantage": self.risk.advantage, "success": self.risk.success, "baseline": self.risk.baseline}

    @cached_property
    def worst_off(self) -> RecordRisk | None:
        """The record most at risk at the parameter found, to who looks for it: the achieved advantage is an average.

        As of the assessment `risk`; where it is what the goal limits, as closely as it was computed for that.
        """
        if self.risk is None:
            return None
        return self.risk.most_exposed()[0] if self.kind == "most_at_risk" else self.risk.worst_off

    @property
    def advantage(self) -> float:
        """The achieved advantage."""
        return self.achieved["advantage"]

    @property
    def bound(self) -> float:
        """The value that the goal limits, as computed at the parameter found: at most the target."""
        return self.measured

    @property
    def source(self) -> str:
        """What the advantage is computed by."""
        return "total variation" if self.risk is None else self.risk.source

    @property
    def other_units(self) -> str:
        """As of an assessment."""
        return "" if self.threat is None else sentences.of_units(self.subject, self.threat)

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What worst-case membership and ReRo calibration would choose for the same tolerated advantage."""
        return tuple(other for other in self._others if isinstance(other, Alternative))

    @property
    def without_answer(self) -> dict[str, str]:
        """The ways to calibrate that find no noise for the same tolerated advantage, and why."""
        return dict(other for other in self._others if not isinstance(other, Alternative))

    @cached_property
    def _others(self) -> list[Alternative | tuple[str, str]]:
        if self.threat is None or self.kind != "advantage":
            return []
        baseline = min(1.0, self.threat.baseline)
        more = f"bound on success, 1 - f(baseline), <= baseline + {self.target:g}"
        other: list[tuple[str, str, Measure, float]] = [
            ("membership", f"total variation <= {self.target:g}", _total_variation, self.target),
            ("ReRo", more, lambda it: _true_positive_rate(it, baseline), min(1.0, baseline + self.target)),
        ]
        if self.target > baseline:  # RAD Figure 2 keeps the success itself, which no noise brings below the baseline
            meaning = f"the same bound <= {self.target:g}, as RAD Figure 2 has it"
            other.append(("ReRo itself", meaning, lambda it: _true_positive_rate(it, baseline), self.target))
        found: list[Alternative | tuple[str, str]] = []
        for name, meaning, measure, target in other:
            try:
                found.append(Alternative(**vars(weakest(self.template, measure, target)), name=name, meaning=meaning))
            except DpriskError as problem:  # of that way to calibrate, not of what was found
                found.append((name, str(problem)))
        return found

    @cached_property
    def utility(self) -> dict[str, float]:
        """What the noise costs, here and under the alternatives: smaller is better."""
        found = {"": self, **{f" by {other.name}": other for other in self.alternatives}}
        chosen = {by: choice.subject for by, choice in found.items() if not choice.unlimited}
        return {name + by: number for by, subject in chosen.items() for name, number in subject.error().items()}

    @property
    def _promises(self) -> Any:
        return self.subject

    @cached_property
    def comparisons(self) -> Comparisons | None:
        """As of any answer; None where the goal needs no noise, so that there is nothing to promise."""
        return None if self.unlimited else super().comparisons

    @property
    def about(self) -> str:
        return f"{type(self.template).__name__}, any {self.parameter}" if self.unlimited else str(self.subject.brief())

    @property
    def numbers(self) -> dict[str, Any]:
        exposed = {"most_at_risk": self.worst_off.advantage} if self.worst_off else {}
        return {self.parameter: None if self.unlimited else self.value, **self.achieved, **exposed}

    @property
    def rows(self) -> list[Row]:
        scale = f", {self.template.units}" if self.template.units else ""
        return [
            (self.parameter, self._shown(self), f"keeps {self.goal}{'' if self._knob.rises else scale}"),
            *((f"achieved {what}", plain(number), self._how(what)) for what, number in self.achieved.items()),
            *([self.worst_off.row_of_worst] if self.worst_off else []),
            *([("units", "differ", other)] if (other := self.other_units) else []),
            *((f"{self.parameter} by {other.name}", self._shown(other), other.meaning) for other in self.alternatives),
            *((f"{self.parameter} by {name}", "none", why) for name, why in self.without_answer.items()),
            *(self._cost(*cost) for cost in self.utility.items()),
            *([] if self.unlimited else self._comparison_rows),
        ]

    def _cost(self, what: str, number: float) -> Row:
        name, _, measured = what.partition(", ")  # as in "variance of a frequency, times reports by ReRo"
        measured, *by = measured.partition(" by ")
        return name + "".join(by), written_out(f"{number:.4g}"), measured or self.template.units

    def _how(self, what: str) -> str:
        """What is said beside an achieved number: of a mechanism it is exact unless the guarantee stands in for it."""
        stands_in = self._by_guarantee and what != "baseline"
        return "at most: the worst that the guarantee allows" if stands_in else ""

    @property
    def _by_guarantee(self) -> bool:
        """Whether the risk of a mechanism is out of reach, so that the worst that its guarantee allows stands in."""
        return isinstance(self.risk, WorstCase) and isinstance(self.subject, Mechanism)

    def _shown(self, found: Found) -> str:
        """A parameter rounded to the safe side."""
        return "any" if found.unlimited else self._rounded(found.value, 4)

    def _rounded(self, value: float, digits: int) -> str:
        """To so many digits, on the safe side; to all of them where there is no such side, since the risk jumps."""
        if self._knob.jumps or self._knob.wavers:
            return repr(value)
        return significant_down(value, digits) if self._knob.rises else significant_up(value, digits)

    def sentence(self) -> str:
        """What to choose, rounded to the safe side, so that the printed number keeps the promise too."""
        return f"{self._choice()}{self._of_worst_off()}"

    def _choice(self) -> str:
        gains = {"advantage": "the advantage", "most_at_risk": "the advantage of who looks for one record"}
        limit = f" at or below {100 * self.target:g} points"
        goal = gains[self.kind] + limit if self.kind in gains else self.goal
        if self.unlimited and self._knob.wavers:
            return f"Every {self.parameter} that was tried, from {SMALLEST:g} to {LARGEST:g}, keeps {goal}."
        if self.unlimited:
            return f"Any {self.parameter} keeps {goal}: this goal needs no noise."
        others = "" if self._knob.jumps or self._knob.wavers else " or less" if self._knob.rises else " or more"
        return f"To keep {goal}, choose {self.parameter} {self._rounded(self.value, 3)}{others}{self._aside(others)}."

    def _of_worst_off(self) -> str:
        """What the record most at risk gains where that is more than what was limited, and which goal limits it."""
        worst, limit = self.worst_off, self.target if self.kind == "advantage" else self.advantage
        if worst is None or self.kind not in ("advantage", "success") or worst.advantage <= limit + 1e-9:
            return ""
        aside = "without noise " if self.unlimited and not self._knob.wavers else ""
        told = sentences.of_worst_off(worst.sentence_of_worst(), worst.alike, aside)
        return f"{told} The goal most_at_risk (--most-at-risk) limits that."

    def _aside(self, others_keep_it: str) -> str:
        """What noise that is, where the goal is the parameter itself, and whether less may do."""
        if self._by_guarantee and self.kind in ("advantage", "success"):
            return " (by its guarantee; less noise may do)"
        scale = getattr(self.subject, "scale", None)
        if self.kind != "epsilon" or scale is None or not self._knob.rises:
            return ""
        measured = f" {self.template.units}" if self.template.units else ""
        more = " or more" if others_keep_it else ""
        return f": Laplace noise of scale {significant_up(scale, 3)}{more}{measured}"

    def picture(self) -> Curves:
        """What `plot` draws, as plain data."""
        if self.threat is None:
            fail("Without a threat there is no curve to draw: calibrate against one.")
        require(not self.unlimited, "This goal needs no noise, so there is no curve that crosses it.")
        values = self.value * np.linspace(*((0.1, 2.0) if self._knob.rises else (0.4, 3.0)), POINTS)
        which = "success" if self.kind == "success" else "advantage"
        turned: dict[str, Any] = {self.parameter: sorted({*values.tolist(), self.value})}
        drawn: Any = sweep(self.template, self.threat, **turned).picture(which)
        (panel,), curves = drawn.panels, drawn.panels[0].curves
        if self.kind == which:
            ends = (min(curves[0].x), max(curves[0].x))
            curves = (*curves, Curve(f"tolerated: {self.target:g}", ends, (self.target,) * 2, GREY, dashed=True))
        return Curves(
            drawn.heading, drawn.across, (replace(panel, curves=curves),), mark=(self.value, self.achieved[which])
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the risk over the parameter with matplotlib, with the goal and what was found; returns the axes."""
        return draw(self.picture(), ax)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "goal": self.goal,
            "unlimited": self.unlimited,
            "target": self.target,
            "bound": self.bound,
            "source": self.source,
            "without_answer": self.without_answer,
            "worst_off": self.worst_off.to_dict() if self.worst_off else None,
            "alternatives": {other.name: None if other.unlimited else other.value for other in self.alternatives},
            "utility": self.utility,
            "comparisons": self.compared or None,
        }

    def __repr__(self) -> str:
        limited = {"most_at_risk": self.bound} if self.kind == "most_at_risk" else {}
        kept = ", ".join(f"{name}={number:.6g}" for name, number in (limited | self.achieved).items())
        chosen = f"any {self.parameter}" if self.unlimited else f"{self.parameter}={self._rounded(self.value, 6)}"
        return f"Calibration({chosen}, {kept})"

    def __getattr__(self, name: str) -> float:
        """The number found by the name of the parameter, as in `found.epsilon`; it is `found.value` too.

        If any number would do, it is that of no noise: an infinite epsilon, or sigma 0.
        """
        if name.startswith("_") or "template" not in vars(self) or name != self.parameter:
            raise AttributeError(f"A {type(self).__name__} has no {name!r}; the number found is its `value`.")
        if self.unlimited and not self._knob.wavers:
            return math.inf if self._knob.rises else 0.0
        return self.value


def calibrate(
    template: Any,
    threat: Threat | None = None,
    *,
    advantage: float | None = None,
    success: float | None = None,
    most_at_risk: float | None = None,
    tpr_at_fpr: tuple[float, float] | None = None,
    epsilon: float | tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """The weakest noise that keeps one goal.

    `template` is a mechanism, a release or a guarantee with any value of its parameter, or `DPSGD`; the parameter found
    is the one that it is made with (the nominal epsilon, where that differs from the true one). The goal is an
    advantage or a success against the threat (of a mechanism whose risk can only be estimated, the worst that its
    guarantee allows), a true positive rate at a false positive rate, or an epsilon (with a delta, as a pair). Advantage
    and success are about people drawn at random: `worst_off` tells what somebody gains who looks for the record most at
    risk, and the goal `most_at_risk` limits that. Without a threat, the advantage is that of telling two neighbouring
    data sets apart: the total variation. `progress` is told each value that is tried, and what the goal limits there.

    More noise than was found keeps the goal too, with two exceptions, for which the answer is the value found and no
    other: sizes that follow from epsilon by rounding, and risks that may fall again as noise gets weaker (outputs kept
    in an interval, the exponential mechanism). For these, stronger noise is looked at in steps, up to where it is
    proven to keep the goal.

    >>> from dprisk import GRR, Prior, Threat
    >>> calibrate(GRR(100, epsilon=1.0), Threat(Prior.uniform(100)), advantage=0.1)
    Calibration(epsilon=2.50437, advantage=0.1, success=0.11, baseline=0.01)
    """
    goals = {
        "advantage": advantage,
        "success": success,
        "most_at_risk": most_at_risk,
        "tpr_at_fpr": tpr_at_fpr,
        "epsilon": epsilon,
    }
    given = [name for name, goal in goals.items() if goal is not None]
    require(threat is None or isinstance(threat, Threat), f"A {type(threat).__name__} is not a Threat.", ParameterError)
    require(len(given) == 1, f"Give exactly one goal of {', '.join(goals)}; got {', '.join(given) or 'none'}.")
    measure, target, goal = _goal(given[0], goals[given[0]], threat)
    baseline = threat.baseline if threat is not None and success is not None else 0.0
    found = weakest(template, measure, target, progress, baseline)
    return Calibration(**vars(found), template=template, threat=threat, kind=given[0], goal=goal, target=target)


def _goal(name: str, goal: Any, threat: Threat | None) -> tuple[Measure, float, str]:
    """What to measure, its limit, and both in words."""
    if name in ("advantage", "success", "most_at_risk"):
        return _risk_goal(name, goal, threat)
    if name == "tpr_at_fpr":
        require(isinstance(goal, Sequence) and len(goal) == 2, f"tpr_at_fpr is a pair (tpr, fpr), got {goal!r}")
        tpr, fpr = (as_number("A rate", rate) for rate in goal)
        require(
            0 <= fpr < tpr <= 1, f"Needs 0 <= fpr < tpr <= 1: a true positive rate of fpr takes no attack; got {goal}"
        )
        return lambda it: _true_positive_rate(_of_any(it), fpr), tpr, f"TPR at FPR {fpr:g} <= {tpr:g}"
    pair = goal if isinstance(goal, Sequence) and not isinstance(goal, str) else (goal, 0.0)
    require(len(pair) == 2, f"epsilon is a number or a pair (epsilon, delta), got {goal!r}")
    limit, delta = as_number("epsilon", pair[0]), as_number("delta", pair[1])
    require(limit >= 0 and 0 <= delta <= 1, f"Needs epsilon >= 0 and delta in [0, 1], got {goal}")
    if delta == 0:
        return lambda it: float(_of_any(it).epsilon_at(0.0)), limit, f"epsilon <= {limit:g}"
    return lambda it: float(_of_any(it).guarantee().delta_at(limit)), delta, f"({limit:g}, {delta:g})-DP"


def _of_any(subject: Any) -> Any:
    """What is promised of any record, where that is known and more than the records listed; otherwise the subject."""
    return getattr(subject, "promised", None) or subject


def _risk_goal(name: str, goal: Any, threat: Threat | None) -> tuple[Measure, float, str]:
    spoken = "advantage of who looks for one record" if name == "most_at_risk" else name
    limit = as_number(f"The tolerated {spoken}", goal)
    percent = f"; {limit:g} {'%' if name == 'success' else 'points'} are {limit / 100:g}" if 1 < limit <= 100 else ""
    require(0 < limit <= 1, f"The tolerated {spoken} must lie in (0, 1], got {limit:g}{percent}")
    if name == "most_at_risk":
        require(threat is not None, "An attacker who looks for one record needs a threat: which records are there?")
        assert threat is not None
        threat.require_listed()
        return partial(_exposed, threat=threat), limit, f"{spoken} <= {limit:g}"
    if threat is None:
        require(name == "advantage", "A tolerated success needs a threat: success at what?", ParameterError)
        return lambda it: _total_variation(_of_any(it)), limit, f"advantage <= {limit:g}"
    if name == "success":
        require(
            limit >= threat.baseline * (1 - ROUNDING),
            f"A success of {limit:g} cannot be kept: the baseline, without any release, is {threat.baseline:g}.",
        )
        limit = 1.0 if threat.baseline >= 1 - ROUNDING else limit  # a sure success whose parts add up to almost 1
    return partial(risk_of, threat=threat, which=name), limit, f"{name} <= {limit:g}"


def _exposed(subject: Any, threat: Threat) -> float:
    """What somebody gains who looks for the record most at risk.

    An attacker who knows groups looks within them; what it gains of people in all of them may be more.
    """
    risk = at_most(subject, threat)
    most = risk.most_exposed()[0].advantage
    return most if threat.knows.is_none or threat.knows.is_all else max(most, risk.advantage)


def _total_variation(subject: Any) -> float:
    return float(subject.guarantee().total_variation)


def _true_positive_rate(subject: Any, false_positive_rate: float) -> float:
    return 1 - float(subject.guarantee().tradeoff(false_positive_rate))
