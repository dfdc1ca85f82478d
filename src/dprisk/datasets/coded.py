"""Tables of categories as whole numbers: column c of a row is the place of its cell among the column's values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from dprisk.csv_files import CsvFile
from dprisk.errors import InputFileError, fail, require
from dprisk.tables import natural
from dprisk.types import IntArray


@dataclass(frozen=True, eq=False, repr=False)
class CodedTable:
    """Columns with their values, and rows of codes; `values[c][rows[i, c]]` is what person i has in column c."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    rows: IntArray

    def __post_init__(self) -> None:
        rows = np.asarray(self.rows)
        shaped = rows.ndim == 2 and rows.shape[1] == len(self.names) == len(self.values) and rows.shape[0] > 0
        require(shaped, f"A table of {len(self.names)} columns needs rows of as many codes, got shape {rows.shape}.")
        for name, codes, values in zip(self.names, rows.T, self.values, strict=True):
            told = f"Column {name!r} has codes from {codes.min()} to {codes.max()}, but {len(values)} values."
            require(codes.min() >= 0 and codes.max() < len(values), told)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any]]) -> Self:
        """From columns of anything that can be sorted; the values of each are numbered in order."""
        require(len(columns) > 0, "A table needs at least one column.")
        coded = {name: np.unique(np.asarray(cells), return_inverse=True) for name, cells in columns.items()}
        lengths = {name: codes.size for name, (_, codes) in coded.items()}
        require(len(set(lengths.values())) == 1, f"The columns differ in length: {lengths}.")
        values = tuple(tuple(found.tolist()) for found, _ in coded.values())
        return cls(tuple(columns), values, np.stack([codes for _, codes in coded.values()], axis=1))

    @classmethod
    def from_csv(cls, path: str | Path, names: Sequence[str] | None = None) -> Self:
        """From some columns, or all, of a CSV file with a header row and one row a person; an empty cell is refused."""
        file = CsvFile.open(path)
        columns = file.filled(names)
        return cls.from_columns({name: natural(cells) for name, cells in columns.items()})

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(map(len, self.values))

    @cached_property
    def people(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def places(self, columns: Sequence[str]) -> tuple[int, ...]:
        """The places of some columns, in the order of the table; capital letters do not matter."""
        require(not isinstance(columns, str), f"Columns are given as a list of names, got {columns!r}.")
        known = {name.casefold(): place for place, name in enumerate(self.names)}
        for name in columns:
            if name.casefold() not in known:
                fail(f"There is no column {name!r}; the table has {', '.join(self.names)}.", InputFileError)
        found = sorted({known[name.casefold()] for name in columns})
        require(len(found) == len(columns), f"A column is named twice in {', '.join(columns)}.")
        return tuple(found)

    def only(self, columns: Sequence[str]) -> Self:
        """The same people, with these columns alone."""
        places = list(self.places(columns))
        names, values = (tuple(self.names[place] for place in places), tuple(self.values[place] for place in places))
        return type(self)(names, values, self.rows[:, places])

    def __repr__(self) -> str:
        return f"CodedTable({self.people} people, {', '.join(self.names)})"
