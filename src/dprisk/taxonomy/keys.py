"""The names that a threat model file may hold, as data: the reader and the schema are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dprisk.taxonomy.dimensions import of_role

Kind = Literal[
    "name",  # a short line of plain text
    "text",  # free text
    "number",  # above 0
    "share",  # above 0, at most 1
    "count",  # a whole number of at least 1
    "names",  # a list of columns
    "choice",  # an option of a dimension, several, or one with a text
    "level",  # of impact
    "file",  # the name of a file beside this one
    "prior",  # a text, or probabilities by record
    "knows",  # none, all, or columns
    "within",  # a distance, or one for each column
    "numbers",  # a number for each column
    "record",  # a record, by its label
]
LEVELS = ("very low", "low", "moderate", "high", "very high")
MOST_NAME, MOST_TEXT = 120, 5000  # letters
MOST_ATTACKERS, MOST_NAMES = 20, 100
MOST, MOST_COUNTED = 10**10, {"records_per_unit": 10_000, "times": 100_000}  # of what is counted


@dataclass(frozen=True)
class Key:
    """A name in a file: what it holds and what it means."""

    name: str
    kind: Kind
    meaning: str
    needed: bool = False


def _choices(role: Literal["crafter", "attacker", "evaluator"]) -> tuple[Key, ...]:
    return tuple(Key(it.name, "choice", it.question) for it in of_role(role))


TOP = (
    Key("title", "name", "what the threat model is about", needed=True),
    Key("about", "text", "a few words for the readers of the report"),
)
UNIVERSE = (
    Key("prior", "prior", "how likely each record is: uniform, zipf:1.1, a CSV file, or probabilities by record"),
    Key("size", "count", "how many possible records there are, where the prior does not tell"),
    Key("table", "file", "a CSV file with one row a person: the records are its distinct rows"),
    Key("columns", "names", "the columns of the table that make a record; all if left out"),
    Key("bands", "numbers", "columns of numbers that count in bands of a width"),
    Key("marginals", "file", "a CSV file with column, value, count: what is known of each column alone"),
    Key("text", "text", "free text"),
)
CRAFTER = (
    *_choices("crafter"),
    Key("records_per_unit", "count", "how many records one privacy unit has at most; 1 if left out"),
    Key("people", "count", "how many people the data set has"),
)
EVALUATOR = _choices("evaluator")
ATTACKER = (
    Key("name", "name", "who it is", needed=True),
    Key("about", "text", "a few words for the readers of the report"),
    *_choices("attacker"),
    *_choices("crafter"),
    *_choices("evaluator"),
    Key("knows", "knows", "what it knows of the target's record: none, all, or columns"),
    Key("wants", "names", "the columns that it wants; all that it does not know if left out"),
    Key("within", "within", "how far off a guess may be and still count as right; it must be exact if left out"),
    Key("fpr", "share", "the false positive rate, with the metric tpr-at-fpr"),
    Key("target", "record", "the record that it looks for, with a chosen target; the most exposed if left out"),
    Key("tolerance", "share", "the largest tolerated advantage, as in 0.05 for 5 points"),
    Key("impact", "level", "how bad it is if it succeeds: very low, low, moderate, high or very high"),
)
SECTIONS = {"": TOP, "universe": UNIVERSE, "crafter": CRAFTER, "evaluator": EVALUATOR, "attacker": ATTACKER}
PART_WORDS = (
    Key("text", "text", "free text"),
    Key("column", "name", "with a table: the column that the mechanism randomises"),
    Key("times", "count", "how often it is released; 1 if left out"),
)
