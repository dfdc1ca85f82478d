"""The rules by which a threat model becomes questions: which metric and theorem fit which combination of options.

Each rule has a name, under which the answer cites it. What no bound covers is an answer too, with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from dprisk.registers import Register
from dprisk.taxonomy.model import Attack, Attacker, ThreatModel

Kind = Literal["risk", "record", "rate", "many", "population", "nothing", "not covered"]
ORDER: tuple[Kind, ...] = ("risk", "record", "rate", "many", "population", "nothing", "not covered")  # as people ask


@dataclass(frozen=True)
class Rule:
    """When it applies, what follows, and who proved it."""

    name: str
    when: str
    then: str
    source: str


RULES = Register(
    "rule",
    Rule(
        "no-access",
        "the attacker has no access to the mechanism",
        "it is as often right as the baseline, and gains nothing",
        "by definition",
    ),
    Rule(
        "whole-output",
        "access is blackbox",
        "the attacker sees the whole output, which is what the release is assessed by",
        "RAD Theorem 4.3",
    ),
    Rule(
        "post-processing",
        "access is by queries to the output",
        "what holds for the whole output holds as an upper bound: an answer to a query is made from it",
        "post-processing",
    ),
    Rule(
        "intermediate-results",
        "access is whitebox or adaptive",
        "the numbers hold only if the guarantee is for all that is computed on the way, also if steps are manipulated: "
        "that is so for DP-SGD accounted step by step, and for people who randomise their own answer",
        "adaptive composition",
    ),
    Rule(
        "known-prior",
        "the attacker has a description of the population",
        "the prior is what the file says of the universe",
        "by definition",
    ),
    Rule(
        "less-than-the-prior",
        "the attacker has samples, an approximation, or only the schema",
        "an attacker who knows the prior can do all that this one can: the same numbers, as upper bounds",
        "monotonicity in knowledge",
    ),
    Rule(
        "informed",
        "the attacker knows other rows, or the dataset is chosen",
        "the numbers hold for every data set of the others, known to the attacker or not",
        "Balle et al. Theorem 2; RAD Theorem 4.3",
    ),
    Rule(
        "distributional",
        "the dataset is drawn and the attacker knows none of its rows",
        "what holds for every data set holds on average over data sets: the same numbers, as upper bounds",
        "Attaxonomy Theorem 4.10",
    ),
    Rule(
        "one-record",
        "a privacy unit has one record",
        "the guarantee is taken as it is",
        "by definition",
    ),
    Rule(
        "group-privacy",
        "a privacy unit has several records",
        "the guarantee is that of so many records that change at once, and the numbers are bounds",
        "group privacy",
    ),
    Rule(
        "membership",
        "the goal is membership, the target is drawn",
        "a threat that knows everything: how much better a participant is recognised than somebody from the prior",
        "RAD Theorem 4.2; theory 3.8",
    ),
    Rule(
        "rate-at-rate",
        "the goal is membership, measured by a true positive rate at a false positive rate",
        "the trade-off curve of the guarantee: TPR <= 1 - f(FPR)",
        "f-DP; Kaissis et al.",
    ),
    Rule(
        "attribute",
        "the goal is attribute inference, the target is drawn",
        "a threat that knows some columns and wants others",
        "RAD Theorem 4.3; theory 3.4",
    ),
    Rule(
        "reconstruction",
        "the goal is reconstruction, the target is drawn",
        "a threat that wants the record, exactly or within a distance",
        "RAD Theorem 4.3; theory 3.2",
    ),
    Rule(
        "chosen-target",
        "the target is chosen",
        "what an attacker gains who looks for one record: of the record that is most exposed, unless one is named",
        "theory 3.8",
    ),
    Rule(
        "many-targets",
        "the dataset is drawn, and its number of people is given",
        "about how many of them at once a guess about each can be right: records are taken to be independent, and "
        "those that the attacker knows beforehand do not count",
        "Swanberg et al. Theorem 3.2; theory 4.3",
    ),
    Rule(
        "population",
        "the dataset is drawn, nothing is known of any row, the target is anybody",
        "how often one guess matches at least one of all people, and a random one of them",
        "Attaxonomy Theorems 4.6, 4.10; theory 3.7",
    ),
    Rule(
        "nearest-covered",
        "the metric is not covered",
        "beside that answer stands the nearest one that is covered: the probability of a match",
        "dprisk",
    ),
    Rule(
        "squared-error",
        "success is measured by a mean squared error",
        "not covered: all bounds here are on the chance that a guess is near enough, none is on how far off it is",
        "dprisk",
    ),
    Rule(
        "singling-out",
        "the goal is singling out",
        "not covered: a predicate that isolates one row need not name a record, and how rare it must be is not in the "
        "file",
        "Cohen and Nissim",
    ),
    Rule(
        "informed-population",
        "the target is anybody among many, and the attacker knows something of the data set",
        "not covered: the bounds on matching somebody need an attacker who knows of nobody",
        "Attaxonomy section 4.2",
    ),
    Rule(
        "other-metric",
        "success is measured in another way",
        "not covered: dprisk has no bound on a metric that is only described in words",
        "dprisk",
    ),
    Rule(
        "other-baseline",
        "the baseline is another attacker",
        "not covered: the baseline here is the same attacker without access to the mechanism",
        "dprisk",
    ),
)


@dataclass(frozen=True)
class Question:
    """What is asked of one attacker, and by which rules.

    `records` change at once for the privacy unit. `at_most` if even an exact value is an upper bound for this attacker.
    """

    kind: Kind
    rules: tuple[str, ...]
    goal: str
    metric: str = ""
    target: str = ""
    unit: str = ""
    records: int = 1
    at_most: bool = False

    @property
    def reason(self) -> str:
        """Why nothing covers it."""
        return RULES[self.rules[-1]].then.removeprefix("not covered: ") if self.kind == "not covered" else ""

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from other questions: attacks that differ in nothing else have one answer."""
        if self.kind == "not covered":
            return self.kind, self.rules[-1]
        return self.kind, self.goal, self.target if self.kind == "record" else "", self.records


def questions(model: ThreatModel, attacker: Attacker) -> list[Question]:
    """All that is asked of an attacker, each once."""
    found: dict[tuple[object, ...], Question] = {}
    for attack in model.attacks(attacker):
        for question in _asked(model, attacker, attack):
            known = found.get(question.key)
            if known is None:
                found[question.key] = question
            else:
                rules = tuple(dict.fromkeys((*known.rules, *question.rules)))
                rules = known.rules if question.kind == "not covered" else rules
                found[question.key] = replace(known, rules=rules, at_most=known.at_most and question.at_most)
    return sorted(found.values(), key=lambda it: (ORDER.index(it.kind), it.records))


def frame(attack: Attack) -> tuple[tuple[str, ...], bool]:
    """The rules that follow from access and knowledge, and whether they leave an upper bound only."""
    access = {"blackbox": "whole-output", "query": "post-processing"}.get(attack["access"], "intermediate-results")
    prior = "known-prior" if attack["population_knowledge"] == "description" else "less-than-the-prior"
    blind = attack["dataset_generation"] == "drawn" and attack["dataset_knowledge"] == "none"
    others = "distributional" if blind else "informed"
    rules = (access, prior, others)
    return rules, bool({"post-processing", "less-than-the-prior"} & set(rules))


def _asked(model: ThreatModel, attacker: Attacker, attack: Attack) -> list[Question]:
    goal, metric, unit = attack["goal"], attack["metric"], attack["privacy_unit"]
    if attack["access"] == "none":
        return [Question("nothing", ("no-access",), goal)]
    rules, at_most = frame(attack)
    records = model.units(unit)
    rules = (*rules, "one-record" if records == 1 else "group-privacy")
    asked = Question("risk", rules, goal, metric, attack["target_source"], unit, records, at_most)
    found = [*_not_covered(asked, attack), *_covered(asked)]
    if model.people is not None and attack["target_source"] == "drawn" and goal != "membership":
        found += _of_all(asked, attack)
        found.append(_among_people(asked, attack, attacker))
    return found


def _not_covered(asked: Question, attack: Attack) -> list[Question]:
    reasons = {
        "squared-error": asked.metric == "mean-squared-error",
        "other-metric": asked.metric == "other",
        "other-baseline": attack["baseline"] == "other",
        "singling-out": asked.goal == "singling-out",
    }
    return [replace(asked, kind="not covered", rules=(why,)) for why, holds in reasons.items() if holds]


def _covered(asked: Question) -> list[Question]:
    if asked.goal == "singling-out":
        return []
    if asked.metric == "tpr-at-fpr":
        return [replace(asked, kind="rate", rules=(*asked.rules, "rate-at-rate"))] if asked.goal == "membership" else []
    near = ("nearest-covered",) if asked.metric in ("mean-squared-error", "other") else ()
    if asked.target == "chosen":
        return [replace(asked, kind="record", rules=(*asked.rules, "chosen-target", *near))]
    return [replace(asked, rules=(*asked.rules, asked.goal, *near))]


def _of_all(asked: Question, attack: Attack) -> list[Question]:
    """A guess about each: only where all of them are drawn, and a guess names what is wanted."""
    if attack["dataset_generation"] != "drawn" or asked.goal == "singling-out":
        return []
    return [replace(asked, kind="many", rules=(*asked.rules, "many-targets"), at_most=True)]


def _among_people(asked: Question, attack: Attack, attacker: Attacker) -> Question:
    """One guess that is right about anybody: goals do not matter, so it is asked once."""
    blind = attack["dataset_knowledge"] == "none" and attack["dataset_generation"] == "drawn"
    asked = replace(asked, goal="reconstruction")
    if blind and attacker.knows in (None, "none"):
        return replace(asked, kind="population", rules=(*asked.rules, "population"), at_most=True)
    return replace(asked, kind="not covered", rules=("informed-population",))
