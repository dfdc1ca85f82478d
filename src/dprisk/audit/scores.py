"""How much each output speaks for each record: the evidence that an audit decides by.

A score is a log-likelihood up to a number that is the same for all records. For a known mechanism it is its own
likelihood, also where the outputs come from code that only claims to be that mechanism. For anything else it is learned
from pilot runs. A bad score makes an audit weak, never wrong: what is certified holds for every rule of decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dprisk.errors import ParameterError, TargetError, as_whole, require
from dprisk.estimate import Guesser
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.base import leads
from dprisk.types import AnyArray, FloatArray, IntArray

MOST_VALUES = 256  # distinct numbers beyond which they are put into bins
FEWEST_BINS, MOST_BINS = 8, 64
IN_A_BIN = 150  # numbers that should fall into one
SMOOTHING = 0.5  # added to each count


class Scorer(ABC):
    """Scores outputs for records: for all of them, or for those that are `known`."""

    known: IntArray | None = None

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
        with self._understood(outputs):
            return self.mechanism.scores(outputs, records)

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray]:
        with self._understood(outputs):
            return self.mechanism.leads(outputs, records)

    @contextmanager
    def _understood(self, outputs: Any) -> Iterator[None]:
        """Says so where outputs are nothing that the mechanism could have reported."""
        try:
            yield
        except (IndexError, TypeError, ValueError) as problem:
            shown = (
                f", such as {outputs[:1].tolist()[0]!r}," if isinstance(outputs, np.ndarray) and outputs.size else ""
            )
            raise TargetError(
                f"The outputs of the code{shown} are none of {self.mechanism!r}. Have the code report as that does, a "
                "record by its number 0, 1, ..., or leave out `family`."
            ) from problem

    def describe(self) -> str:
        return f"likelihood of {self.mechanism!r}"


class GuessScorer(Scorer):
    """The guess of an attack: 1 for the record guessed, 0 for the others.

    The attack sees the same random numbers in each block of outputs, so that an audit does not depend on the workers.
    A guess is then a fixed function of the output and its place in the block, which is a valid rule of decision.
    """

    def __init__(self, guesser: Guesser, seed: int = 0) -> None:
        self.guesser, self.seed = guesser, as_whole("seed", seed, least=0)

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        guesses = self.guesser.guess(outputs, np.random.default_rng(self.seed))
        return np.asarray(guesses[:, None] == records, dtype=float)

    def describe(self) -> str:
        return f"guesses of {type(self.guesser).__name__}"


class LearnedScorer(Scorer):
    """Frequencies seen in pilot runs: of values, of bins of numbers, or of the entries of rows one by one.

    Entries of a row are treated as if they were independent given the record.
    """

    def __init__(self, outputs: Any, records: IntArray) -> None:
        require(len(outputs) == records.size > 0, "Learning needs a pilot run for each record.", ParameterError)
        self.known: IntArray
        self.known, codes = np.unique(records, return_inverse=True)  # the others have no scores
        self.columns = [_Frequencies(column, codes, self.known.size) for column in _columns(outputs)]

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        places = np.searchsorted(self.known, records)
        total = np.zeros((len(outputs), records.size))
        for column, known in zip(_columns(outputs), self.columns, strict=True):
            total += known.logs(column)[:, places]
        return total

    def describe(self) -> str:
        return "frequencies learned in pilot runs"


class _Frequencies:
    """How often each value, or bin of values, was seen for each record. What is no number has places of its own."""

    def __init__(self, values: Any, records: IntArray, size: int) -> None:
        array = _comparable(values)
        self.values = np.unique(array)
        self.edges: FloatArray | None = None
        if self.values.size > MOST_VALUES and np.issubdtype(array.dtype, np.number):
            finite = array[np.isfinite(array)]
            bins = min(MOST_BINS, max(FEWEST_BINS, finite.size // IN_A_BIN))
            self.edges = np.unique(np.quantile(finite, np.linspace(0, 1, bins + 1)[1:-1]))
        count = self.values.size + 1 if self.edges is None else self.edges.size + 1 + len(_ODD)
        table = np.full((size, count), SMOOTHING)
        np.add.at(table, (records, self._codes(array)), 1.0)
        self.table: FloatArray = np.log(table / table.sum(axis=1, keepdims=True))

    def logs(self, values: Any) -> FloatArray:
        return np.asarray(self.table[:, self._codes(_comparable(values))].T)

    def _codes(self, array: AnyArray) -> IntArray:
        """The column of each value; the last is for values that were not there to learn from."""
        if self.edges is None:
            place = np.minimum(np.searchsorted(self.values, array), self.values.size - 1)
            near = self.values[place]
            same = (near == array) | ((near != near) & (array != array))  # not a number is the same as itself here
            return np.where(same, place, self.values.size)
        code = np.searchsorted(self.edges, array)
        for number, odd in enumerate(_ODD):
            code[odd(array)] = self.edges.size + 1 + number
        return code


_ODD: tuple[Callable[[Any], Any], ...] = (np.isnan, np.isposinf, np.isneginf)


def _columns(outputs: AnyArray) -> Any:
    """The entries of the outputs one by one: rows, tables and so on are taken apart."""
    return outputs.reshape(len(outputs), -1).T if outputs.ndim > 1 else [outputs]


def _comparable(values: AnyArray) -> AnyArray:
    """Values that can be sorted: anything but numbers and text by how it is written."""
    return np.array([repr(value) for value in values]) if values.dtype == object else values
