"""Reading columns: from CSV files with the standard library, from any data frame without importing it."""

import contextlib
import csv
import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.errors import InputFileError, ThreatError, require
from dprisk.types import AnyArray, IntArray, Table


def read_csv(path: str | Path) -> dict[str, list[str]]:
    """The columns of a CSV file with a header row (`.gz` is read too), as text."""
    path = Path(path)
    require(path.is_file(), f"There is no file {path}.", InputFileError)
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as problem:
        raise InputFileError(f"{path} cannot be read as CSV: {problem}.") from problem
    require(len(rows) > 0, f"{path} is empty; a header row and at least one record are needed.", InputFileError)
    header = [name.strip().removeprefix("\ufeff") for name in rows[0]]
    require(len(rows) > 1, f"{path} has a header row but no records.", InputFileError)
    for number, row in enumerate(rows[1:], start=2):
        require(
            len(row) == len(header),
            f"{path}, row {number}: {len(row)} fields where the header has {len(header)}.",
            InputFileError,
        )
    return {name: [row[i].strip() for row in rows[1:]] for i, name in enumerate(header)}


def numbers(column: Sequence[str], name: str, path: str | Path) -> list[float]:
    """A text column as numbers, or an error that names the first cell that is none."""
    values = []
    for row, text in enumerate(column, start=2):
        try:
            values.append(float(text))
        except ValueError:
            message = f"{path}, row {row}: `{name}` must be a number, got {text!r}."
            raise InputFileError(message) from None
    return values


def as_number_if_all(column: Sequence[Any]) -> list[Any]:
    """The column as numbers if every entry is one (whole ones as `int`), otherwise unchanged."""
    try:
        values = [float(entry) for entry in column]
    except (TypeError, ValueError):
        return list(column)
    if not np.all(np.isfinite(values)):
        return list(column)
    return [int(value) if value.is_integer() else value for value in values]


def column_names(table: Table) -> list[str]:
    """The names of the columns of a data frame or of a mapping from name to values."""
    return list(table.columns if hasattr(table, "columns") else table)


def column(table: Table, name: str) -> list[Any]:
    """One column as a list of plain Python values."""
    names = column_names(table)
    require(name in names, f"The table has no column {name!r}; it has {_listed(names)}.", ThreatError)
    values = table[name]
    return list(values.to_list() if hasattr(values, "to_list") else values)


def encode(values: Iterable[Any]) -> tuple[IntArray, list[Any]]:
    """Number the distinct values: a code for each entry, and the value behind each code.

    Values are sorted when they can be compared, otherwise kept in order of appearance.
    """
    entries = list(values.tolist() if isinstance(values, np.ndarray) else values)
    distinct = list(dict.fromkeys(entries))
    with contextlib.suppress(TypeError):  # mixed types have no order; the order of appearance is as good as any
        distinct.sort()
    number = {value: code for code, value in enumerate(distinct)}
    return np.fromiter((number[entry] for entry in entries), dtype=np.int64, count=len(entries)), distinct


def plain(values: AnyArray | Sequence[Any]) -> list[Any]:
    """Labels as plain Python values, so that they print and serialise well."""
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "no columns"
