"""A threat model, answered: for each attacker what it gains, who is most at risk, and which noise keeps a tolerance."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dprisk.assessment import assess
from dprisk.calibration import calibrate
from dprisk.conversions import true_positive_rate
from dprisk.errors import DpriskError
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.population import AtMost
from dprisk.risks import Assessment, RecordRisk, at_most
from dprisk.rounding import significant_down, significant_up
from dprisk.search import Found, weakest
from dprisk.taxonomy.model import Attacker, ThreatModel
from dprisk.taxonomy.population import Population, how_many, population
from dprisk.taxonomy.rules import Question, questions
from dprisk.taxonomy.setting import Setting, setting_of
from dprisk.taxonomy.threats import facing
from dprisk.threat import Threat
from dprisk.values import Parameter

EXPOSED = 3  # records that are named
POINTS, FEW_POINTS = 45, 7  # of a curve; where one takes long


@dataclass(frozen=True)
class Kept:
    """The weakest noise that keeps a tolerance; `cost` is what accuracy is measured by, now and with that noise."""

    tolerance: float
    parameter: Parameter
    found: Found
    cost: tuple[tuple[str, float, float], ...]
    shown: str  # the number, to three digits on the safe side; to all of them where three do not keep the tolerance

    @property
    def is_uneven(self) -> bool:
        """Whether more noise need not be better."""
        return self.parameter.jumps or self.parameter.wavers

    @property
    def value(self) -> float | None:
        """The number found; None if any will do."""
        return None if self.found.unlimited else self.found.value


@dataclass(frozen=True)
class Answered:
    """One question about an attacker, and what came out.

    `exposed` are the records that are most exposed, or the one that is looked for. `kept` is the noise that keeps the
    tolerance, or why there is none. `curve` has pairs of the noise's parameter and the advantage (at most) there.
    """

    question: Question
    threat: Threat | None = None
    risk: Assessment | None = None
    exposed: tuple[RecordRisk, ...] = ()
    rate: float | None = None
    population: Population | None = None
    many: AtMost | None = None
    reason: str = ""
    kept: Kept | str | None = None
    curve: tuple[tuple[float, float], ...] = ()

    @property
    def advantage(self) -> float | None:
        """What taking part adds, in the question's own sense; None where it has no such number."""
        if self.question.kind == "nothing":
            return 0.0
        return None if self.found is None else self.found.advantage

    @property
    def exact(self) -> bool:
        """Whether the number is that of this attacker, neither a bound nor an estimate."""
        return self.found is not None and self.found.exact and not self.question.at_most

    @property
    def is_estimate(self) -> bool:
        """Whether the number was measured."""
        return getattr(self.found, "estimate", None) is not None

    @property
    def found(self) -> Assessment | RecordRisk | None:
        """The assessment that the number is read off: of the record that is looked for, or of anybody."""
        if self.question.kind == "record":
            return self.exposed[0] if self.exposed else None
        return self.risk


@dataclass(frozen=True, eq=False)
class Faced:
    """One attacker against the release."""

    model: ThreatModel
    setting: Setting
    attacker: Attacker
    answers: tuple[Answered, ...]

    @property
    def covered(self) -> list[Answered]:
        """The answers that are numbers."""
        return [it for it in self.answers if it.question.kind != "not covered"]

    @property
    def not_covered(self) -> list[Answered]:
        """What no bound here is about."""
        return [it for it in self.answers if it.question.kind == "not covered"]

    @property
    def worst(self) -> Answered | None:
        """The answer with the largest advantage."""
        found = [it for it in self.answers if it.advantage is not None]
        return max(found, key=lambda it: it.advantage or 0.0, default=None)


def answer(model: ThreatModel, setting: Setting | None = None) -> list[Faced]:
    """Every attacker of a threat model against its release."""
    made = setting or setting_of(model)
    return [_faced(model, made, it) for it in model.attackers]


def _faced(model: ThreatModel, setting: Setting, attacker: Attacker) -> Faced:
    """All answers of an attacker, with curves over the same values of the noise: from below what is kept to above."""
    found = [_answered(model, setting, attacker, asked) for asked in questions(model, attacker)]
    kept = [it.kept.value for it in found if isinstance(it.kept, Kept)]
    ends = [end for end in (setting.now, *kept) if end is not None and end > 0]
    template = setting.template
    if ends and template is not None:
        slow = template.parameter.name == "noise_multiplier"
        values = np.geomspace(min(ends) / 2, max(ends) * 1.5, FEW_POINTS if slow else POINTS).tolist()
        places = sorted({*values, *ends})
        found = [replace(it, curve=_turning(setting, attacker, it).curve(places)) if it.risk else it for it in found]
    return Faced(model, setting, attacker, tuple(found))


def _answered(model: ThreatModel, setting: Setting, attacker: Attacker, asked: Question) -> Answered:
    if asked.kind == "not covered":
        return Answered(asked, reason=asked.reason)
    if asked.kind == "nothing":
        return Answered(asked)
    threat = facing(model, setting, attacker, asked.goal)
    if asked.kind == "rate":
        rate = true_positive_rate(setting.guarantee(asked.records), attacker.fpr or 0.0)
        return Answered(asked, threat, rate=min(1.0, rate))
    if asked.kind in ("population", "many"):
        return _of_people(setting.guarantee(asked.records), threat, model.people or 1, asked)
    asked = replace(asked, at_most=asked.at_most or (setting.is_of_many and "distributional" in asked.rules))
    risk = assess(_seen(setting, attacker, setting.subject, asked.records), threat)
    exposed = () if threat.has_numbers else _exposed(risk, attacker)
    if asked.kind == "record" and not exposed:
        reason = "records are any number of an interval, and none of them has a probability of its own"
        return Answered(replace(asked, kind="not covered"), reason=reason)
    told = Answered(asked, threat, risk, exposed)
    if attacker.tolerance is None:
        return told
    return replace(told, kept=_turning(setting, attacker, told).kept(attacker.tolerance))


def _of_people(promised: Guarantee, threat: Threat, people: int, asked: Question) -> Answered:
    try:
        if asked.kind == "many":
            return Answered(asked, threat, many=how_many(promised, threat, people))
        return Answered(asked, threat, population=population(promised, threat, people))
    except DpriskError as problem:
        return Answered(replace(asked, kind="not covered"), reason=str(problem).rstrip("."))


def _turning(setting: Setting, attacker: Attacker, it: Answered) -> _Turning:
    assert it.threat is not None
    return _Turning(setting, attacker, it.question, it.threat)


def gained_with(faced: Faced, it: Answered, value: float) -> float:
    """What an attacker gains, at most, if the noise is set by another value."""
    return _turning(faced.setting, faced.attacker, it).advantage(_turned(faced.setting.template, value))


@dataclass(frozen=True)
class _Turning:
    """The same question with more or less noise."""

    setting: Setting
    attacker: Attacker
    asked: Question
    threat: Threat

    def advantage(self, subject: Any) -> float:
        """At most, where it cannot be computed."""
        found = at_most(_seen(self.setting, self.attacker, subject, self.asked.records), self.threat)
        if self.asked.kind == "record":  # which record is most exposed may change with the noise
            return _exposed(found, self.attacker, 1)[0].advantage
        return found.advantage

    def kept(self, tolerance: float) -> Kept | str:
        """The weakest noise that keeps the tolerance, or why there is none."""
        template = self.setting.template
        if template is None:
            return "Several releases are composed, and the file does not say which of them to change."
        try:
            if self.asked.kind == "risk" and self.asked.records == 1:
                whole = _seen(self.setting, self.attacker, template, 1)
                found: Found = calibrate(whole, self.threat, advantage=tolerance)
            else:
                found = weakest(template, self.advantage, tolerance)
        except DpriskError as problem:
            return str(problem)
        cost = () if found.unlimited else self._cost(found)
        return Kept(tolerance, template.parameter, found, cost, self._shown(found, tolerance))

    def _shown(self, found: Found, tolerance: float) -> str:
        template = self.setting.template
        knob = template.parameter
        short = significant_down(found.value, 3) if knob.rises else significant_up(found.value, 3)
        if found.unlimited or not (knob.jumps or knob.wavers):
            return short
        return short if self.advantage(template.with_parameter(float(short))) <= tolerance else repr(found.value)

    def _cost(self, found: Found) -> tuple[tuple[str, float, float], ...]:
        now, then = (_error(it) for it in (self.setting.subject, found.subject))
        return tuple((name, now[name], then[name]) for name in now if name in then)

    def curve(self, places: list[float]) -> tuple[tuple[float, float], ...]:
        """The advantage at these values of the parameter; noise that cannot be made has no point."""
        found = []
        for place in places:
            with suppress(DpriskError):
                found.append((place, self.advantage(_turned(self.setting.template, place))))
        return tuple(found)


@lru_cache(maxsize=32)
def _turned(template: Any, value: float) -> Any:
    """A release with other noise: what takes an accountant is asked once for all attackers."""
    return template.with_parameter(value)


def _exposed(risk: Assessment, attacker: Attacker, count: int = EXPOSED) -> tuple[RecordRisk, ...]:
    """The record that is named, or so many that are most exposed, most first."""
    found: Any = risk
    return (found.of(attacker.target),) if attacker.target is not None else risk.most_exposed(count)


def _seen(setting: Setting, attacker: Attacker, subject: Any, records: int) -> Any:
    """The release as it meets the records of an attacker: one column of them, where it randomises that.

    Of a unit of several records it is what is promised of all of them together.
    """
    if records > 1:
        return subject.guarantee().for_groups(records)
    if setting.column is None or not isinstance(subject, Mechanism):
        return subject
    return setting.records.survey(setting.column, attacker.known_columns).randomised(subject)


def _error(subject: Any) -> dict[str, float]:
    """The usual measure of what noise costs; of a guarantee alone the spread of one noisy count that keeps it."""
    own: dict[str, float] = subject.error()
    if own:
        return own
    if isinstance(subject, Guarantee):
        epsilon = subject.epsilon_at(0.0)
        fits = 0 < epsilon < math.inf
        return {"standard deviation of one published count, with Laplace noise": math.sqrt(2) / epsilon} if fits else {}
    for name in ("scale", "sigma"):
        if isinstance(value := getattr(subject, name, None), int | float):
            return {"scale of the noise on each number": float(value)}
    return {}
