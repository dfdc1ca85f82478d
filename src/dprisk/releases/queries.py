"""Questions to a table: counts, sums, means, histograms, marginals."""

from __future__ import annotations

import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dprisk.errors import MechanismError, TooLargeError, as_number, fail
from dprisk.tables import column, encode, listed, rows_of, twice
from dprisk.types import FloatArray, IntArray, Table

LARGEST = 1e50  # number in a column, so that sums stay finite
MOST_ENTRIES = 1 << 26  # of the table of answers, records x cells


class Query(ABC):
    """A question to a table, whose answer is a number or a vector."""

    @property
    @abstractmethod
    def looks_at(self) -> tuple[str, ...]:
        """The columns that it looks at."""

    @abstractmethod
    def answers(self, data: Table, universe: Table) -> FloatArray:
        """The answer on the data with one record added, for each record of the universe: numbers, or rows."""

    def describe(self) -> str:
        """In a few words, for tables and reports."""
        return f"{type(self).__name__.lower()} of {', '.join(self.looks_at)}"

    def sensitivity(self, people: int) -> float | None:
        """The most that one of so many people can change the answer, where the query bounds it for any record."""
        return None


@dataclass(frozen=True)
class OfColumn(Query):
    """A question to one column."""

    column: str

    @property
    def looks_at(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Count(OfColumn):
    """How many have this value in a column; `value` may be a function that says which values count.

    >>> Count("age", lambda age: age >= 65).answers({"age": [70, 30]}, {"age": [64, 65, 66]})
    array([1., 2., 2.])
    """

    value: Any

    def answers(self, data: Table, universe: Table) -> FloatArray:
        others, records = (column(table, self.column) for table in (data, universe))
        counts: Callable[[Any], bool] = self.value if callable(self.value) else partial(operator.eq, self.value)
        if not callable(self.value) and self.value not in others and self.value not in records:
            raise MechanismError(f"No record has {self.value!r} in {self.column!r}; it holds {_some(records)}.")
        return sum(map(bool, map(counts, others))) + np.array([float(bool(counts(value))) for value in records])

    def describe(self) -> str:
        return f"{super().describe()} {'by a rule' if callable(self.value) else f'= {self.value}'}"


@dataclass(frozen=True)
class Sum(OfColumn):
    """The sum of a column of numbers.

    With `low` or `high`, values beyond are moved there first: the query is the sum of the clipped values. With both,
    its sensitivity is their distance, whatever the universe.

    >>> Sum("age", low=18, high=90).answers({"age": [70, 30]}, {"age": [18, 65, 104]})
    array([118., 165., 190.])
    """

    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                bound = as_number(name, getattr(self, name))
                MechanismError.unless(abs(bound) <= LARGEST, f"{name} must be finite, at most 1e50, got {bound:g}")
        if not (self.low is None or self.high is None or self.low < self.high):
            raise MechanismError(f"low must be below high, got {self.low} and {self.high}")

    def answers(self, data: Table, universe: Table) -> FloatArray:
        return math.fsum(self._values(data)) + self._values(universe)

    def describe(self) -> str:
        low, high = (None if bound is None else f"{bound:g}" for bound in (self.low, self.high))
        if low is None and high is None:
            return super().describe()
        return f"{super().describe()}, clipped to [{low or '-inf'}, {high or 'inf'}]"

    def sensitivity(self, people: int) -> float | None:
        return None if self.low is None or self.high is None else self.high - self.low

    def _values(self, table: Table) -> FloatArray:
        values = _numbers(column(table, self.column), self.column)
        return values if self.low is None and self.high is None else np.clip(values, self.low, self.high)


@dataclass(frozen=True)
class Mean(Sum):
    """The mean of a column of numbers, over everybody else and the target; the number of people is public.

    `low` and `high` are those of `Sum`.
    """

    def answers(self, data: Table, universe: Table) -> FloatArray:
        return super().answers(data, universe) / (len(column(data, self.column)) + 1)

    def sensitivity(self, people: int) -> float | None:
        spread = super().sensitivity(people)
        return None if spread is None else spread / people


class CellCounts(Query):
    """How many fall into each of some disjoint cells."""

    @abstractmethod
    def cells(self, data: Table, universe: Table) -> list[Any]:
        """The cells, in the order of the answer's entries."""

    @abstractmethod
    def _numbered(self, table: Table, cells: list[Any]) -> IntArray:
        """The number of the cell that each row of the table falls into."""

    def answers(self, data: Table, universe: Table) -> FloatArray:
        cells = self.cells(data, universe)
        own = self._numbered(universe, cells)
        if own.size * len(cells) > MOST_ENTRIES:
            raise TooLargeError(f"{own.size} records and {len(cells)} cells are too many to hold; take coarser cells.")
        counts = np.bincount(self._numbered(data, cells), minlength=len(cells)).astype(float)
        answers = np.tile(counts, (own.size, 1))
        answers[np.arange(own.size), own] += 1
        return answers


@dataclass(frozen=True)
class Histogram(OfColumn, CellCounts):
    """How many have each value of a column, or lie between each two neighbours of some `edges`.

    Without `categories` the cells are the values that occur in the data or the universe, sorted. Cells between edges
    hold their lower end, the last one also its upper end. Values outside are refused.

    >>> Histogram("age", edges=[0, 40, 80]).answers({"age": [70, 30]}, {"age": [39, 40, 80]})
    array([[2., 1.],
           [1., 2.],
           [1., 2.]])
    """

    categories: Sequence[Any] | None = None
    edges: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.categories is not None and self.edges is not None:
            raise MechanismError("A histogram takes categories or edges, not both.")
        for name in ("categories", "edges"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(listed(given)))
        if self.categories is not None:
            again = twice(self.categories)
            MechanismError.unless(not again, f"The category {again[:1]} is listed twice.")
            MechanismError.unless(len(self.categories) > 0, "Categories are a list of at least one value.")
        if self.edges is not None:
            places = _numbers(list(self.edges), "edges")
            if not (places.size > 1 and np.all(np.diff(places) > 0)):
                raise MechanismError("Edges are at least two rising numbers.")

    def cells(self, data: Table, universe: Table) -> list[Any]:
        if self.edges is not None:
            return list(itertools.pairwise(self.edges))
        return list(self.categories) if self.categories is not None else _values(data, universe, self.column)

    def _numbered(self, table: Table, cells: list[Any]) -> IntArray:
        values = column(table, self.column)
        if self.edges is None:
            return _codes(values, cells, self.column)
        places, edges = _numbers(values, self.column), np.array(self.edges, dtype=float)
        outside = places[(places < edges[0]) | (places > edges[-1])]
        MechanismError.unless(
            outside.size == 0,
            f"The column {self.column!r} holds {outside[:1].tolist()}, outside the edges "
            f"{self.edges[0]} to {self.edges[-1]}.",
        )
        return np.minimum(np.searchsorted(edges, places, side="right") - 1, len(cells) - 1)


@dataclass(frozen=True)
class Marginal(CellCounts):
    """How many have each combination of values in some columns: a contingency table, flattened, last column fastest.

    The cells are all combinations of the values that occur in the data or the universe, each column sorted.
    """

    columns: Sequence[str]

    def __post_init__(self) -> None:
        names = (self.columns,) if isinstance(self.columns, str) else tuple(listed(self.columns))
        object.__setattr__(self, "columns", names)
        MechanismError.unless(len(names) > 0, "A marginal needs at least one column.")
        MechanismError.unless(not twice(names), "A marginal takes each column once.")

    @property
    def looks_at(self) -> tuple[str, ...]:
        return tuple(self.columns)

    def cells(self, data: Table, universe: Table) -> list[Any]:
        values = [_values(data, universe, name) for name in self.columns]
        count = math.prod(map(len, values))
        TooLargeError.unless(count <= MOST_ENTRIES, f"This marginal has {count} cells, too many to hold.")
        return list(itertools.product(*values))

    def _numbered(self, table: Table, cells: list[Any]) -> IntArray:
        return _codes(rows_of(table, self.columns), cells, " x ".join(self.columns))


def _numbers(values: list[Any], name: str) -> FloatArray:
    """A column of finite numbers; text that looks like numbers is text."""
    array = np.array(values) if values else np.zeros(0)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        odd = next((value for value in values if not isinstance(value, int | float)), values[0])
        fail(f"The column {name!r} must hold numbers, but holds {odd!r}.", MechanismError)
    numbers = array.astype(float)
    if not np.all(np.abs(numbers) <= LARGEST):
        raise MechanismError(f"Column {name!r} has missing or infinite values or some above 1e50; drop or fill them.")
    return numbers


def _values(data: Table, universe: Table, name: str) -> list[Any]:
    """The values of a column that occur in either table, sorted where they can be."""
    others, records = column(data, name), column(universe, name)
    kinds = [{isinstance(value, str) for value in values} for values in (others, records)]
    if others and not kinds[0] & kinds[1]:
        raise MechanismError(f"{name!r} holds {others[:1]} in the data and {records[:1]} in the universe; one is text.")
    return encode(others + records)[1]


def _codes(values: list[Any], cells: list[Any], name: str) -> IntArray:
    number = {cell: place for place, cell in enumerate(cells)}
    outside = [value for value in values if value not in number]
    if outside:
        raise MechanismError(f"{outside[:1]} in the column {name!r} is none of the categories {_some(cells)}.")
    return np.array([number[value] for value in values], dtype=np.int64)


def _some(values: Sequence[Any]) -> str:
    """A few of the distinct values, for messages."""
    shown = list(dict.fromkeys(values))
    return ", ".join(map(repr, shown[:5])) + (", ..." if len(shown) > 5 else "")
