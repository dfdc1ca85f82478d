"""How much each output speaks for each record: the evidence that an audit decides by.

A score is a log-likelihood up to a number that is the same for all records. For a known mechanism it is its own
likelihood, also where the outputs come from code that only claims to be that mechanism. For anything else it is learned
from pilot runs. A bad score makes an audit weak, never wrong: what is certified holds for every rule of decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from dprisk.errors import ParameterError, require
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.base import leads
from dprisk.types import AnyArray, FloatArray, IntArray

MOST_VALUES = 256  # distinct numbers beyond which they are put into bins
FEWEST_BINS, MOST_BINS = 8, 64
IN_A_BIN = 150  # numbers that should fall into one
SMOOTHING = 0.5  # added to each count


class Scorer(ABC):
    """Scores outputs for records."""

    @abstractmethod
    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        """Outputs x records."""

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray]:
        """For each output the best of the records (its place among them), and its lead over the second."""
        return leads(self.scores(outputs, records))

    @abstractmethod
    def describe(self) -> str:
        """In a few words, for reports."""


class KnownScorer(Scorer):
    """The likelihood of a mechanism that is known in full."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        return self.mechanism.scores(outputs, records)

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray]:
        return self.mechanism.leads(outputs, records)

    def describe(self) -> str:
        return f"likelihood of {self.mechanism!r}"


class LearnedScorer(Scorer):
    """Frequencies seen in pilot runs: of values, of bins of numbers, or of the entries of rows one by one.

    Entries of a row are treated as if they were independent given the record.
    """

    def __init__(self, outputs: Any, records: IntArray, size: int) -> None:
        require(len(outputs) == records.size > 0, "Learning needs a pilot run for each record.", ParameterError)
        self.is_rows = getattr(outputs, "ndim", 1) == 2
        columns = outputs.T if self.is_rows else [outputs]
        self.columns = [_Frequencies(column, records, size) for column in columns]

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        columns = outputs.T if self.is_rows else [outputs]
        total = np.zeros((len(outputs), records.size))
        for column, known in zip(columns, self.columns, strict=True):
            total += known.logs(column)[:, records]
        return total

    def describe(self) -> str:
        return "frequencies learned in pilot runs"


class _Frequencies:
    """How often each value, or bin of values, was seen for each record."""

    def __init__(self, values: Any, records: IntArray, size: int) -> None:
        array = _comparable(values)
        self.edges: FloatArray | None = None
        distinct = np.unique(array)
        if distinct.size > MOST_VALUES and np.issubdtype(array.dtype, np.number):
            bins = min(MOST_BINS, max(FEWEST_BINS, array.size // IN_A_BIN))
            self.edges = np.unique(np.quantile(array, np.linspace(0, 1, bins + 1)[1:-1]))
            code, count = np.searchsorted(self.edges, array), self.edges.size + 1
        else:
            self.values = distinct
            code, count = np.searchsorted(distinct, array), distinct.size + 1  # the last for values not seen here
        table = np.full((size, count), SMOOTHING)
        np.add.at(table, (records, code), 1.0)
        self.table: FloatArray = np.log(table / table.sum(axis=1, keepdims=True))

    def logs(self, values: Any) -> FloatArray:
        array = _comparable(values)
        if self.edges is not None:
            return np.asarray(self.table[:, np.searchsorted(self.edges, array)].T)
        place = np.minimum(np.searchsorted(self.values, array), self.values.size - 1)
        code = np.where(self.values[place] == array, place, self.values.size)
        return np.asarray(self.table[:, code].T)


def _comparable(values: AnyArray) -> AnyArray:
    """Values that can be sorted: anything but numbers and text by how it is written."""
    return np.array([repr(value) for value in values]) if values.dtype == object else values
