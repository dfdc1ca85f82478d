"""What the attacker already knows of the target: a partition of the records into groups.

Nothing known is one group (reconstruction), everything known is a group for each record (membership inference), some
attributes known is anything between (attribute inference): one formula, three settings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dprisk.errors import ThreatError
from dprisk.tables import column, encode, rows_of
from dprisk.types import IntArray, Table
from dprisk.values import Value


@dataclass(frozen=True, eq=False, repr=False)
class Knowledge(Value):
    """a(z): the number of the group that each record belongs to, and a name for each group.

    `attributes` names the columns of a table that tell the groups apart, where they come from one.

    >>> Knowledge.partition(["m", "f", "f"])
    Knowledge(groups=[1, 0, 0], names=('f', 'm'))
    """

    groups: IntArray
    names: tuple[Any, ...]
    attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", np.asarray(self.groups, dtype=np.int64))
        used = np.unique(self.groups)
        if not np.array_equal(used, np.arange(len(self.names))):
            raise ThreatError("Groups are numbered 0, 1, ... without gaps, each with a name; use Knowledge.partition.")

    @classmethod
    def none(cls, size: int) -> Self:
        """The attacker knows nothing of the target but the prior."""
        return cls(np.zeros(size, dtype=np.int64), ("anybody",))

    @classmethod
    def all(cls, size: int, names: Sequence[Any] | None = None) -> Self:
        """The attacker knows the whole record and asks only whether it took part."""
        return cls(np.arange(size), tuple(range(size) if names is None else names))

    @classmethod
    def partition(cls, labels: Iterable[Any]) -> Self:
        """One group label for each record, in the records' order."""
        groups, names = encode(labels)
        return cls(groups, tuple(names))

    @classmethod
    def columns(cls, table: Table, names: Sequence[str]) -> Self:
        """The attacker knows these columns of a table with one row for each record."""
        names = [names] if isinstance(names, str) else names
        ThreatError.unless(len(names) > 0, "Name at least one known column, or use knows='none'.")
        groups, held = encode(column(table, names[0]) if len(names) == 1 else rows_of(table, names))
        return cls(groups, tuple(held), tuple(names))

    @property
    def size(self) -> int:
        """The number of records."""
        return self.groups.size

    @property
    def n_groups(self) -> int:
        """How many groups the attacker can tell apart."""
        return len(self.names)

    @property
    def is_none(self) -> bool:
        """Whether the attacker knows nothing."""
        return self.n_groups == 1

    @property
    def is_all(self) -> bool:
        """Whether the attacker knows every record apart."""
        return self.n_groups == self.size

    @property
    def attributes_in_words(self) -> str:
        """The columns as they are said, as in "sex, age and job"; nothing where there are none."""
        *some, last = map(str, self.attributes or ("",))
        return f"{', '.join(some)} and {last}" if some else last

    def describe(self) -> str:
        """In a few words, for tables and reports."""
        if self.is_none:
            return "nothing"
        groups = f"one of {self.n_groups} groups"
        told = f"{self.attributes_in_words} ({groups})" if self.attributes else groups
        return "everything" if self.is_all else told

    def _summary(self) -> str:
        return f"Knowledge({self.n_groups} groups of {self.size} records)"


def as_knowledge(knows: "Knowledge | str | Iterable[Any] | None", size: int, names: Sequence[Any] | None) -> Knowledge:
    """Read 'none', 'all', a list of group labels or a `Knowledge`, and check that it fits the records."""
    if knows is None or (isinstance(knows, str) and knows == "none"):
        return Knowledge.none(size)
    if isinstance(knows, str):
        if knows != "all":
            raise ThreatError(f"knows must be 'none', 'all' or one group label for each record, got {knows!r}")
        return Knowledge.all(size, names)
    if isinstance(knows, Mapping):
        labels = range(size) if names is None else names
        missing = [label for label in labels if label not in knows]
        ThreatError.unless(not missing, f"The knowledge names no group for the record {missing[:1]}.")
        knows = [knows[label] for label in labels]
    knowledge = knows if isinstance(knows, Knowledge) else Knowledge.partition(knows)
    if knowledge.size != size:
        raise ThreatError(f"The knowledge groups {knowledge.size} records, the prior has {size}; each needs a group.")
    return knowledge


def refine(labels: Sequence[IntArray]) -> IntArray:
    """The joint partition of several: records share a group only if they do in each."""
    joint = np.zeros(labels[0].size, dtype=np.int64)
    for codes in labels:
        joint = np.unique(joint * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return joint
