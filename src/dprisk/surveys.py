"""One column of a table that people randomise before they tell it, and an attacker who knows other columns.

Each person's record is the row of what the attacker knows and the column that is asked for. Records, prior and
knowledge follow from the table: the rows that occur, how often each does, and what the attacker can tell apart. The
mechanism sees the column alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from dprisk.csv_files import CsvFile
from dprisk.errors import MechanismError, ThreatError, fail
from dprisk.mechanisms import Mechanism, OnAttribute
from dprisk.mechanisms.base import require_mechanism
from dprisk.rounding import so_many
from dprisk.tables import doubts, natural, require_present, rows_of, tally
from dprisk.threat.knowledge import Knowledge
from dprisk.threat.prior import Prior
from dprisk.threat.success import Attributes
from dprisk.threat.threat import Threat, as_success
from dprisk.types import Table

Known = Sequence[str] | str


@dataclass(frozen=True, repr=False)
class Survey:
    """What people are asked for, and how many have (or are believed to have) each row of (known columns, that column).

    >>> people = {"sex": ["f", "f", "m", "m"], "ill": ["yes", "no", "no", "no"]}
    >>> survey = Survey.from_table(people, "ill", knows=["sex"])
    >>> survey
    Survey(ill: 2 values, 4 people, the attacker knows sex)
    >>> from dprisk import GRR, assess
    >>> assess(survey.randomised(GRR(survey.size, epsilon=1.0)), survey.threat())
    Risk(advantage=0.173294, success=0.865529, baseline=0.75, exact)
    """

    column: str
    knows: tuple[str, ...] | str
    counts: Mapping[tuple[Any, ...], float]

    @classmethod
    def from_table(cls, table: Table, column: str, knows: Known = ()) -> Self:
        """From a data frame or a mapping from column name to values, one row a person.

        `knows` names the columns that the attacker knows of its target; "none" is no column, and "all" is the answer
        itself: then it asks only whether the target took part.
        """
        columns = _columns(column, knows)
        rows = rows_of(table, columns)
        ThreatError.unless(len(rows) > 0, "The table has no rows.")
        for place, name in enumerate(columns):
            require_present([row[place] for row in rows], f"The column {name!r}")
        return cls(column, _known(knows), tally(rows))

    @classmethod
    def from_csv(cls, path: str | Path, column: str, knows: Known = ()) -> Self:
        """From a CSV file with a header row and one row a person; only these columns are read."""
        file = CsvFile.open(path)
        *known, asked = (file.name(name) for name in _columns(column, knows))
        columns = _columns(asked, known)  # no column by two spellings
        counts = file.counts(columns)
        texts = [list(dict.fromkeys(row[place] for row in counts)) for place in range(len(columns))]
        value = [dict(zip(text, natural(text), strict=True)) for text in texts]
        rows = {tuple(value[place][cell] for place, cell in enumerate(row)): times for row, times in counts.items()}
        return cls(asked, "all" if _known(knows) == "all" else tuple(known), {row: rows[row] for row in tally(rows)})

    @property
    def people(self) -> int:
        """How many people the table has."""
        return round(math.fsum(self.counts.values()))

    @cached_property
    def prior(self) -> Prior:
        """How common each value of the column is."""
        values = tally(row[-1] for row in self.counts)
        common = dict.fromkeys(values, 0.0)
        for row, times in self.counts.items():
            common[row[-1]] += times
        return Prior.from_counts(common)

    @property
    def groups(self) -> Counter[tuple[Any, ...]]:
        """How many possible rows there are of each combination of known columns."""
        return Counter(row[:-1] for row in self.counts)

    def uniform(self) -> Self:
        """The same people, to an attacker whom the table does not tell which values are common.

        In each group of the known columns all values are possible and equally likely, also those that do not occur in
        it; groups are as common as in the table.

        >>> people = {"sex": ["f", "f", "m", "m"], "ill": ["yes", "no", "no", "no"]}
        >>> Survey.from_table(people, "ill", knows=["sex"]).uniform().counts
        {('f', 'no'): 1.0, ('f', 'yes'): 1.0, ('m', 'no'): 1.0, ('m', 'yes'): 1.0}
        """
        people = dict.fromkeys(self.groups, 0.0)
        for row, times in self.counts.items():
            people[row[:-1]] += times
        rows = {(*group, value): times / self.size for group, times in people.items() for value in self.values}
        return replace(self, counts=rows)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the column: what the mechanism takes, in this order."""
        return self.prior.labels or ()

    @property
    def size(self) -> int:
        """How many values there are: the size of the mechanism."""
        return self.prior.size

    def threat(self, within: float | None = None) -> Threat:
        """An attacker who knows those columns and wants this one, exactly or within a distance."""
        if isinstance(self.knows, str) or not self.knows:
            return Threat(self.prior, self.knows or "none", as_success(within))
        names = (*self.knows, self.column)
        table = {name: [row[place] for row in self.counts] for place, name in enumerate(names)}
        return Threat(
            Prior.from_counts(dict(self.counts)),
            Knowledge.columns(table, self.knows),
            Attributes(table, (self.column,), {} if within is None else {self.column: within}),
        )

    def randomised(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism as it randomises the column: its records are those of the threat."""
        require_mechanism(mechanism)
        if mechanism.size != self.size:
            fail(f"{self.column!r} has {self.size} values, the mechanism takes {mechanism.size}.", MechanismError)
        named = mechanism.labelled(mechanism.labels or self.values)
        if named.labels != self.values:
            fail(f"The labels of the mechanism are not the values of {self.column!r} in their order.", MechanismError)
        if isinstance(self.knows, str) or not self.knows:
            return named
        rows, number = tuple(self.counts), {value: place for place, value in enumerate(self.values)}
        return OnAttribute(mechanism.labelled(None), [number[row[-1]] for row in rows]).labelled(rows)

    @property
    def doubts(self) -> list[str]:
        """What looks like a slip in the columns, in a few words each."""
        names = (*(() if isinstance(self.knows, str) else self.knows), self.column)
        return doubts({name: [row[place] for row in self.counts] for place, name in enumerate(names)})

    def describe(self) -> str:
        """In a few words, for tables and reports."""
        known = self.knows if isinstance(self.knows, str) else ", ".join(map(str, self.knows))
        values, people = so_many(self.size, "value", "values"), so_many(self.people, "person", "people")
        return f"{self.column}: {values}, {people}, the attacker knows {_WORDS.get(known, known)}"

    def __repr__(self) -> str:
        return f"Survey({self.describe()})"


_WORDS = {"": "nothing", "all": "the answer"}


def _columns(column: str, knows: Known) -> list[str]:
    """The known columns and the one that is asked for, checked."""
    known = _known(knows)
    columns = [*(() if isinstance(known, str) else known), column]
    for name in columns:
        ThreatError.unless(isinstance(name, str) and name, f"A column is given by its name, got {name!r}.")
        ThreatError.unless(
            columns.count(name) == 1, f"The column {name!r} cannot be known and asked for, or known twice."
        )
    return columns


def _known(knows: Known) -> tuple[str, ...] | str:
    if isinstance(knows, str):
        return () if knows == "none" else knows if knows == "all" else (knows,)
    return tuple(knows)
