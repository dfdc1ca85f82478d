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
        wrong = _wrong(table)
        MechanismError.unless(not wrong, wrong)
        self._table: FloatArray = table / table.sum(axis=1)[:, None]
        self.size = table.shape[0]

    @classmethod
    def from_file(cls, path: str | Path) -> Matrix:
        """A channel from a `.npy` file, or from a CSV without header: a line for each record."""
        path = require_file(path)
        try:
            if path.suffix == ".npy":
                table = np.load(path)
            else:
                table = _read_lines(path.read_text(encoding="utf-8-sig").split())
        except (ValueError, OSError, EOFError) as problem:
            header = f": {problem}" if isinstance(problem, InputFileError) else ""
            told = f"{path} cannot be read as a matrix of numbers, a line for each record{header}."
            raise InputFileError(told) from None
        InputFileError.unless(isinstance(table, np.ndarray | list) and len(table) > 0, f"{path} holds no matrix.")
        rows = as_floats(table, f"{path}: The entries of a channel", MechanismError)
        wrong = _wrong(rows, first=1) if rows.ndim == 2 else ""
        InputFileError.unless(not wrong, f"{path}: {wrong}")
        return cls(rows)

    @property
    def n_outputs(self) -> float:
        return float(self._table.shape[1])

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        return self._table[:, outputs]

    def row(self, record: int) -> FloatArray:
        return np.asarray(self._table[record])

    def matrix(self) -> FloatArray:
        return self._table


def _wrong(table: FloatArray, first: int = 0) -> str:
    """What is wrong with the rows of a channel, the first of which has this number; empty if nothing is."""
    bad = np.argwhere(~(table >= 0))
    if bad.size:
        row, column = bad[0]
        found = f"row {row + first}, column {column + first} is {table[row, column]:g}"
        return f"Probabilities must be numbers of at least 0; {found}."
    sums = table.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax()) if sums.size else 0
    if sums.size and not abs(sums[worst] - 1) <= ROW_TOLERANCE:
        return f"Each row of a channel must sum to 1; row {worst + first} sums to {sums[worst]:.10g}."
    return ""


def _read_lines(lines: list[str]) -> list[list[float]]:
    """Lines of numbers between commas; a header line is called one."""
    try:
        return [[float(entry) for entry in line.split(",")] for line in lines]
    except ValueError:
        rest = [[float(entry) for entry in line.split(",")] for line in lines[1:]]
        InputFileError.unless(len(rest) == 0, "take out its first line, a header")
        raise
