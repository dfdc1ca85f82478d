"""The taxonomy of attacks as data: three roles, nine dimensions, and the options of each, strongest first.

Attaxonomy (Cummings, Hod, Sarathy, Swanberg) Table 1. Success has no closed list of options there, only examples; those
that the other papers measure by are added, and `other` with a text for any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dprisk.registers import Register

Role = Literal["crafter", "attacker", "evaluator"]


@dataclass(frozen=True)
class Option:
    """One setting of a dimension; `added` if Table 1 does not list it."""

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    added: bool = False


@dataclass(frozen=True)
class Dimension:
    """One aspect of an attack: its `name` in files, the question that it answers, and its options."""

    role: Role
    name: str
    title: str
    question: str
    options: Register[Option]


def _dimension(role: Role, name: str, title: str, question: str, *options: Option) -> Dimension:
    return Dimension(role, name, title, question, Register(title.lower(), *options, plural=f"options of {title}"))


DIMENSIONS: tuple[Dimension, ...] = (
    _dimension(
        "crafter",
        "dataset_generation",
        "Dataset generation",
        "Does the privacy guarantee hold for all data sets, or probabilistically over the data generation process?",
        Option("chosen", "Dataset chosen or constructed", ("constructed", "crafted")),
        Option("drawn", "Dataset drawn from a distribution", ("sampled",)),
    ),
    _dimension(
        "crafter",
        "privacy_unit",
        "Privacy unit",
        "How many individuals (and how many of their actions) are protected by the privacy guarantee?",
        Option("group", "Group"),
        Option("individual", "Individual", ("person", "user")),
        Option("event", "Event or item", ("item", "record")),
    ),
    _dimension(
        "crafter",
        "target_source",
        "Target source",
        "Does the privacy guarantee hold for all target individuals, or probabilistically?",
        Option("chosen", "Target is chosen or constructed", ("constructed", "crafted")),
        Option("drawn", "Target is drawn", ("sampled",)),
    ),
    _dimension(
        "attacker",
        "access",
        "Access to the mechanism",
        "Can the adversary change intermediate computations, see them, see the whole output, query it, or nothing?",
        Option("adaptive", "Adaptive access"),
        Option("whitebox", "Whitebox", ("white box",)),
        Option("blackbox", "Blackbox", ("black box",)),
        Option("query", "Query access (API)", ("API",)),
        Option("none", "None"),
    ),
    _dimension(
        "attacker",
        "population_knowledge",
        "Population-level knowledge",
        "How much information does the adversary have about the data population D?",
        Option("description", "Partial or full description of D", ("distribution",)),
        Option("samples", "Random samples from D"),
        Option("approximation", "Partial or full description of something near D", ("approximate description",)),
        Option("schema", "Data schema"),
    ),
    _dimension(
        "attacker",
        "dataset_knowledge",
        "Dataset-level knowledge",
        "How much information does the adversary have about the dataset?",
        Option("chosen", "Chosen subsample of the dataset", ("chosen subsample",)),
        Option("random", "Random subsample of the dataset", ("random subsample",)),
        Option("none", "None"),
    ),
    _dimension(
        "attacker",
        "goal",
        "Attack goal",
        "What is the adversary's goal?",
        Option("membership", "Membership inference", ("MIA",)),
        Option("attribute", "Attribute inference", ("AIA",)),
        Option("singling-out", "Singling out", ("predicate singling out",)),
        Option("reconstruction", "Reconstruction"),
    ),
    _dimension(
        "evaluator",
        "baseline",
        "Baseline",
        'What information does an "uninformed" baseline adversary have?',
        Option("no-access", "The same attacker without access to the mechanism", ("access to mechanism: none",)),
        Option("other", "Another attacker, in words", added=True),
    ),
    _dimension(
        "evaluator",
        "metric",
        "Success metric",
        "How is the adversary's success measured?",
        Option("mean-squared-error", "Mean squared error to the target", ("MSE",)),
        Option("tpr-at-fpr", "True positive rate at a low false positive rate", ("TPR at low FPR",)),
        Option("exact-match", "Probability of an exact match", ("probability of exact match",)),
        Option("within-distance", "Probability of a guess within a distance", added=True),
        Option("advantage", "Right on participants minus right on others (RAD)", ("RAD",), added=True),
        Option("other", "Another metric, in words", added=True),
    ),
)
NAMED = {dimension.name: dimension for dimension in DIMENSIONS}


def of_role(role: Role) -> tuple[Dimension, ...]:
    """The dimensions of one role."""
    return tuple(dimension for dimension in DIMENSIONS if dimension.role == role)


def table() -> list[dict[str, str]]:
    """Attaxonomy Table 1, a row for each option: role, dimension, question, option.

    >>> [row["option"] for row in table() if row["dimension"] == "Privacy unit"]
    ['Group', 'Individual', 'Event or item']
    """
    return [
        {"role": it.role, "dimension": it.title, "question": it.question, "option": option.title}
        for it in DIMENSIONS
        for option in it.options
        if not option.added
    ]
