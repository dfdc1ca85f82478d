"""What a threat model file asks, before anything is computed: the questions of each attacker, and their rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dprisk.answers import Answer, Row
from dprisk.taxonomy.model import Attacker, ThreatModel
from dprisk.taxonomy.rules import Question, questions
from dprisk.taxonomy.setting import Setting, setting_of
from dprisk.taxonomy.threats import facing

WORDS = {
    "risk": "how often it is right about somebody drawn at random",
    "record": "what it gains about one chosen person",
    "rate": "how many participants it recognises at a false positive rate",
    "many": "about how many of all people at once it is right",
    "population": "how often one guess matches somebody of all people",
    "nothing": "nothing: it has no access",
}


@dataclass(frozen=True, eq=False)
class Plan(Answer):
    """The questions of every attacker."""

    model: ThreatModel
    setting: Setting
    asked: tuple[tuple[Attacker, Question], ...]

    @property
    def about(self) -> str:
        return f"{self.model.title}: {self.setting.words}, {self.setting.records.prior.size} possible records"

    @property
    def columns(self) -> tuple[str, ...]:
        return "attacker", "asked", "by the rules"

    @property
    def right_aligned(self) -> tuple[int, ...]:
        return ()

    @property
    def rows(self) -> list[Row]:
        return [(attacker.name, _words(question), ", ".join(question.rules)) for attacker, question in self.asked]

    @property
    def numbers(self) -> dict[str, Any]:
        missing = sum(question.kind == "not covered" for _, question in self.asked)
        return {
            "attackers": len(self.model.attackers),
            "covered": len(self.asked) - missing,
            "not_covered": missing,
        }

    def sentence(self) -> str:
        """Whether the file is whole, in words."""
        told = self.numbers
        missing = f"; {told['not_covered']} not covered, with the reason above" if told["not_covered"] else ""
        many = "attacker" if told["attackers"] == 1 else "attackers"
        asked = "question is" if told["covered"] == 1 else "questions are"
        return f"The file is whole: {told['attackers']} {many}, about whom {told['covered']} {asked} answered{missing}."

    def to_dict(self) -> dict[str, Any]:
        lines = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return super().to_dict() | {"title": self.model.title, "questions": lines}


def make_plan(model: ThreatModel) -> Plan:
    """Check that everything that a threat model names can be made, and list what it asks."""
    setting = setting_of(model)
    asked = tuple((it, question) for it in model.attackers for question in questions(model, it))
    for attacker, question in asked:
        if question.kind not in ("not covered", "nothing"):
            facing(model, setting, attacker, question.goal)
    return Plan(model, setting, asked)


def _words(question: Question) -> str:
    if question.kind == "not covered":
        return f"not covered: {question.reason}"
    unit = "" if question.records == 1 else f", {question.records} records at once"
    return f"{WORDS[question.kind]} ({question.goal}{unit})"
