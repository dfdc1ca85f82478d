"""Outputs of code that ran elsewhere, read from a file or a table."""

import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.auditing.code.notations import are_written_alike
from dprisk.auditing.code.outputs import as_outputs, numbers_of_one_kind
from dprisk.csv_files import read_csv, require_file
from dprisk.errors import InputFileError, fail, require
from dprisk.tables import (
    column,
    column_names,
    encode,
    listed,
    natural,
    readable,
    require_present,
)
from dprisk.types import AnyArray, IntArray, Table

_MAY_HAVE_A_COMMA = re.compile(r"[-+]?\d+(,\d+)?")
_WRITE_A_WORD = (
    "write a word there, such as `none`, so that a missing output counts as one: which are missing may tell."
)
_NAME_IT = "leave these rows out, or name the record if it is one."


@dataclass(frozen=True, eq=False)
class Recorded:
    """Outputs of a mechanism that ran elsewhere: `outputs[i]` was drawn for the record `labels[records[i]]`.

    `notes` say what may be read otherwise than it was meant.
    """

    records: IntArray
    outputs: AnyArray
    labels: tuple[Any, ...]
    name: str
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many possible records there are."""
        return len(self.labels)


def recorded(source: str | Path | Table, labels: Sequence[Any] | None = None, record: str = "record") -> Recorded:
    """Recorded outputs from a CSV file, a Parquet file or a table, one run a row.

    The column `record` names the record; every other column belongs to the output (usually one, `output`). Columns of
    numbers become numbers, several of them a row each, unless a file writes them in several ways (3 beside 3.0), which
    may tell the record: such a column stays text. Columns of text are compared as a whole. `labels` lists the
    possible records, in an order of your choice and with those that never occur; by default those that occur.
    Parquet needs polars or pandas.
    """
    text = isinstance(source, str | Path)
    table, name = (_read(source), str(source)) if text else (source, "recorded outputs")
    names = column_names(table)
    record, outputs = _divided(names, record, name)
    who = [entry.strip() if text and isinstance(entry, str) else entry for entry in column(table, record)]
    _require_named(who, f"{name}, column `{record}`")
    codes, found = encode(natural(who) if all(isinstance(entry, str) for entry in who) else who)
    if labels is not None:
        codes = _renumbered(codes, found, listed(labels))
        found = listed(labels)
    columns = [_values(column(table, entry), f"{name}, column `{entry}`") for entry in outputs]
    for entry, values in zip(outputs, columns, strict=True):
        require(len(values) == len(who), f"{name}: `{entry}` and `{record}` are of unequal length.", InputFileError)
    notes = tuple(note for entry in outputs for note in _decimal_commas(column(table, entry), entry))
    return Recorded(codes, _joined(columns), tuple(found), name, notes)


def _divided(names: list[Any], record: str, where: str) -> tuple[Any, list[Any]]:
    """The column that names the record, in small letters or capitals, and those of the output."""
    if record not in names:
        record = next((name for name in names if str(name).casefold() == record.casefold()), record)
    require(record in names, f"{where} needs a column `{record}`; it has {', '.join(map(str, names))}.", InputFileError)
    outputs = [entry for entry in names if entry != record]
    require(outputs != [], f"{where} needs a column `output` beside `{record}`.", InputFileError)
    return record, outputs


def _require_named(who: list[Any], where: str) -> None:
    """Refuse rows without a record, and none at all."""
    require(who != [], f"{where} has no rows.", InputFileError)
    require_present([entry if entry != "" else None for entry in who], where, _NAME_IT)


def _decimal_commas(cells: list[Any], name: Any) -> Iterator[str]:
    """Says so where text may be numbers with a decimal comma: it may be lists as well, so it stays text."""
    with_comma = next((cell for cell in cells if isinstance(cell, str) and "," in cell), None)
    if with_comma is not None and all(_MAY_HAVE_A_COMMA.fullmatch(cell.strip()) for cell in set(cells)):
        yield f"`{name}` is compared as text, such as {with_comma!r}; if that is a number, write it with a point."


def _read(path: str | Path) -> Table:
    path = require_file(path)
    if path.suffix not in (".parquet", ".pq"):
        return read_csv(path, as_written=True)
    for library in ("polars", "pandas"):
        try:
            reader = importlib.import_module(library).read_parquet
        except ModuleNotFoundError:
            continue
        try:
            return reader(path)
        except ImportError:  # pandas without an engine for Parquet
            continue
        except Exception as problem:
            raise InputFileError(f"{path} cannot be read as Parquet: {problem}") from problem
    return fail(f"{path}: reading Parquet needs polars, or pandas with pyarrow; CSV needs neither.", InputFileError)


def _renumbered(codes: IntArray, found: list[Any], labels: list[Any]) -> IntArray:
    place = {label: number for number, label in enumerate(labels)}
    require(len(place) == len(labels), "The labels must differ from each other.", InputFileError)
    unknown = [label for label in found if label not in place]
    require(not unknown, f"The record {unknown[:1]} is not among the labels.", InputFileError)
    return np.asarray([place[label] for label in found], dtype=np.int64)[codes]


def _values(values: list[Any], where: str) -> AnyArray:
    """A column of outputs; text becomes numbers if all of it can be read so, and nothing is lost by it."""
    require_present(values, where, advice=_WRITE_A_WORD)
    if not all(isinstance(value, str) for value in values):
        numbers = all(isinstance(value, int | float | np.number) for value in values)
        return numbers_of_one_kind(values) if numbers else as_outputs(values)  # a table does not tell 1 from 1.0
    values = _trimmed(values)
    filled = [value for value in values if value.strip()]
    read = _read_numbers(filled) if filled else None
    if read is None:
        return as_outputs(values)
    empty = len(values) - len(filled)
    require(
        not empty, f"{where} holds numbers and empty cells ({empty} of {len(values)}); {_WRITE_A_WORD}", InputFileError
    )
    return numbers_of_one_kind(read) if are_written_alike(dict(zip(values, read, strict=True))) else as_outputs(values)


def _read_numbers(cells: list[str]) -> list[Any] | None:
    """The numbers in a column, with the sign of minus zero; None where it holds anything else."""
    read = readable(cells)
    return list(map(float, cells)) if read is not None and "-0" in cells else read


def _trimmed(values: list[str]) -> list[str]:
    """Cells without the space around them where it tells nothing: all have as much of it, or are as wide with it."""
    distinct = set(values)
    around = {(len(cell) - len(cell.lstrip()), len(cell) - len(cell.rstrip())) for cell in distinct}
    return list(map(str.strip, values)) if min(len(around), len(set(map(len, distinct)))) == 1 else values


def _joined(columns: list[AnyArray]) -> AnyArray:
    if len(columns) == 1:
        return columns[0]
    if all(part.ndim == 1 and part.dtype.kind in "biuf" for part in columns):
        return np.stack(columns, axis=1)
    return as_outputs(list(zip(*(part.tolist() for part in columns), strict=True)))
