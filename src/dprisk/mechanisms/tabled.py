"""Mechanisms whose outputs are numbered 0, 1, ..., n-1 and whose channel is a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dprisk.csv_files import require_file
from dprisk.errors import InputFileError, MechanismError
from dprisk.mechanisms.arrays import whole_below
from dprisk.mechanisms.base import Mechanism
from dprisk.tables import as_floats
from dprisk.types import AnyArray, FloatArray, IntArray

ROW_TOLERANCE = 1e-9


class Tabled(Mechanism):
    """A channel that is read by blocks of rows (records) and of columns (outputs)."""

    @property
    @abstractmethod
    def n_outputs(self) -> float:
        """The number of outputs."""

    @abstractmethod
    def columns(self, outputs: slice | IntArray) -> FloatArray:
        """P(output | record) for some outputs and all records, records x outputs."""

    @abstractmethod
    def row(self, record: int) -> FloatArray:
        """P(output | record) for one record and all outputs."""

    def outputs(self, block: int) -> Iterator[AnyArray]:
        for start in range(0, int(self.n_outputs), block):
            yield np.arange(start, min(start + block, int(self.n_outputs)))

    def channel(self, block: int) -> Iterator[FloatArray]:
        for start in range(0, int(self.n_outputs), block):
            yield self.columns(slice(start, min(start + block, int(self.n_outputs))))

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        with np.errstate(divide="ignore"):  # log 0 = -inf is the log-likelihood of the impossible
            return np.log(self.columns(self._outputs(outputs))).T

    def _outputs(self, outputs: npt.ArrayLike) -> IntArray:
        """Output numbers, checked."""
        numbers = np.atleast_1d(np.asarray(outputs))
        if not (numbers.ndim == 1 and whole_below(numbers, self.n_outputs)):
            raise MechanismError(f"An output of {self!r} is a whole number in 0..{int(self.n_outputs) - 1}.")
        return numbers

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        """Inverse distribution function, one search a distinct record for all its reports."""
        numbers = self._records(records)
        uniform = rng.random(numbers.size)
        order = np.argsort(numbers, kind="stable")
        present, starts = np.unique(numbers[order], return_index=True)
        reports = np.empty(numbers.size, dtype=np.int64)
        for record, mine in zip(present, np.split(order, starts[1:]), strict=True):
            row = self.row(record)
            possible = np.flatnonzero(row)
            cumulative = np.cumsum(row[possible])
            place = np.searchsorted(cumulative[:-1], uniform[mine] * cumulative[-1], side="right")
            reports[mine] = possible[place]
        return reports


class Matrix(Tabled):
    """Any finite channel, given by its row-stochastic matrix, records x outputs.

    Rows must sum to 1 within 1e-9; they are then scaled to do so as closely as floats allow.

    >>> Matrix([[0.75, 0.25], [0.25, 0.75]]).total_variation
    0.5
    """

    def __init__(self, matrix: npt.ArrayLike) -> None:
        table = as_floats(matrix, "The entries of a channel", MechanismError)
        if not (table.ndim == 2 and table.size > 0):
            raise MechanismError(f"A channel is records x outputs, got shape {table.shape}.")
        bad = np.argwhere(~(table >= 0))
        where = f"; row {bad[0][0]}, column {bad[0][1]} is {table[tuple(bad[0])]:g}" if bad.size else ""
        MechanismError.unless(bad.size == 0, f"Probabilities must be numbers of at least 0{where}.")
        sums = table.sum(axis=1)
        worst = int(np.abs(sums - 1).argmax())
        if not abs(sums[worst] - 1) <= ROW_TOLERANCE:
            raise MechanismError(f"Each row of a channel must sum to 1; row {worst} sums to {sums[worst]:.10g}.")
        self._table: FloatArray = table / sums[:, None]
        self.size = table.shape[0]

    @classmethod
    def from_file(cls, path: str | Path) -> Matrix:
        """A channel from a `.npy` file, or from a CSV without header: a line for each record."""
        path = require_file(path)
        try:
            if path.suffix == ".npy":
                table = np.load(path)
            else:
                lines = path.read_text(encoding="utf-8-sig").split()
                table = [[float(entry) for entry in line.split(",")] for line in lines]
        except (ValueError, OSError, EOFError):
            raise InputFileError(f"{path} cannot be read as a matrix of numbers, a line for each record.") from None
        InputFileError.unless(isinstance(table, np.ndarray | list) and len(table) > 0, f"{path} holds no matrix.")
        return cls(table)

    @property
    def n_outputs(self) -> float:
        return float(self._table.shape[1])

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        return self._table[:, outputs]

    def row(self, record: int) -> FloatArray:
        return np.asarray(self._table[record])

    def matrix(self) -> FloatArray:
        return self._table
