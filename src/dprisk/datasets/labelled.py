"""People as rows of a table: attributes that others may know, one that they should not, and a label to be learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dprisk.errors import ThreatError, as_whole, require
from dprisk.tables import as_floats, column, column_names, encode
from dprisk.types import AnyArray, FloatArray, IntArray, Table


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table that a classifier is trained on, with one attribute that somebody may want to find out.

    `known` holds the attributes that an attacker knows of its target: whole numbers from 0 for those in `categories`
    (where the entry says how many there are), numbers otherwise. `secret` is the sensitive attribute as numbers of its
    `values`, `label` what the model predicts, as numbers of its `classes`. `note` says what the table stands in for.
    """

    name: str
    known: Mapping[str, AnyArray]
    categories: Mapping[str, int]
    sensitive: str
    secret: IntArray
    values: tuple[str, ...]
    label: IntArray
    classes: tuple[str, ...]
    note: str = ""
    _scale: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        sizes = {len(self.secret), len(self.label), *map(len, self.known.values())}
        require(len(sizes) == 1, f"The columns of {self.name} must be equally long, got {sorted(sizes)}.", ThreatError)
        require(len(self.known) > 0, f"{self.name} needs at least one known attribute.", ThreatError)
        require(len(self.values) > 1, f"{self.sensitive} needs at least two values to tell apart.", ThreatError)
        require(len(self.classes) > 1, "The label needs at least two classes.", ThreatError)
        _require_codes(self.secret, len(self.values), self.sensitive)
        _require_codes(self.label, len(self.classes), "the label")
        for name, size in self.categories.items():
            _require_codes(self.known[name], size, name)
        if not self._scale:
            numbers = {name: entries for name, entries in self.known.items() if name not in self.categories}
            for name, entries in numbers.items():
                missing = int(np.size(entries) - np.isfinite(entries).sum())
                told = f"{name} has {missing} entries that are no finite number; drop these people, or fill them in."
                require(missing == 0, told, ThreatError)
            scale = {name: (float(np.min(entries)), float(np.max(entries))) for name, entries in numbers.items()}
            object.__setattr__(self, "_scale", scale)

    @classmethod
    def of(
        cls, table: Table, sensitive: str, label: str, numbers: str | Sequence[str] = (), name: str = "the table"
    ) -> LabelledTable:
        """A data frame, or a mapping from name to column. Columns are categories, but for those named in `numbers`.

        >>> people = {"age": [31, 54, 47], "job": ["baker", "nurse", "baker"], "smokes": ["no", "yes", "no"]}
        >>> LabelledTable.of(people, sensitive="smokes", label="job", numbers=("age",)).values
        ('no', 'yes')
        """
        numbers = (numbers,) if isinstance(numbers, str) else numbers
        require(sensitive != label, f"{label!r} is to be learned, so that it cannot be the secret too.", ThreatError)
        names = column_names(table)
        coded = {each: encode(column(table, each)) for each in names if each not in numbers}
        for each in (sensitive, label):
            told = f"There is no column {each!r} of categories; there are {', '.join(map(repr, coded))}."
            require(each in coded, told, ThreatError)
        known: dict[str, AnyArray] = {each: coded[each][0] for each in coded if each not in (sensitive, label)}
        known |= {each: as_floats(column(table, each), f"The column {each!r}", ThreatError) for each in numbers}
        sizes = {each: len(coded[each][1]) for each in coded if each in known}
        values, classes = (tuple(map(str, coded[each][1])) for each in (sensitive, label))
        return cls(name, known, sizes, sensitive, coded[sensitive][0], values, coded[label][0], classes)

    @property
    def size(self) -> int:
        """How many people there are."""
        return len(self.secret)

    @property
    def n_features(self) -> int:
        """How many numbers the model is given of a person."""
        return int(self.known_features(np.zeros(1, dtype=np.int64)).shape[1]) + len(self.values)

    def take(self, rows: IntArray) -> LabelledTable:
        """Some of the people, in this order; numbers keep the scale that they have in the whole table."""
        known = {name: entries[rows] for name, entries in self.known.items()}
        return replace(self, known=known, secret=self.secret[rows], label=self.label[rows])

    def sample(self, count: int, rng: np.random.Generator) -> LabelledTable:
        """So many people at random, none twice."""
        count = as_whole("count", count)
        require(count <= self.size, f"{self.name} has {self.size:,} people; {count:,} were asked for.")
        return self.take(rng.permutation(self.size)[:count])

    def known_features(self, rows: IntArray | None = None) -> FloatArray:
        """What is known of people as numbers in [0, 1]: a place for each category, numbers by their range."""
        every = np.arange(self.size) if rows is None else rows
        parts = []
        for name, entries in self.known.items():
            if (size := self.categories.get(name)) is None:
                low, high = self._scale[name]
                parts.append(((entries[every].astype(float) - low) / ((high - low) or 1.0))[:, None])
            elif size == 2:
                parts.append(entries[every].astype(float)[:, None])
            else:
                parts.append(np.eye(size)[entries[every]])
        return np.hstack(parts)

    def features(self, secret: IntArray | None = None) -> FloatArray:
        """What the model is given of people: all that is known, and their secret (or what is put in for it)."""
        own = self.secret if secret is None else secret
        return np.hstack([self.known_features(), np.eye(len(self.values))[own]])


def _require_codes(column: AnyArray, size: int, name: str) -> None:
    whole = np.issubdtype(np.asarray(column).dtype, np.integer)
    within = whole and (len(column) == 0 or (int(np.min(column)) >= 0 and int(np.max(column)) < size))
    require(within, f"{name} must be given as whole numbers from 0 to {size - 1}.", ThreatError)
