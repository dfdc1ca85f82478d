"""The two tables of categories that attacks on noisy marginals are shown on: census answers and fire calls."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.datasets.coded import CodedTable
from dprisk.datasets.files import lines, present
from dprisk.errors import InputFileError, MissingPackageError

ACS, FIRE = "acs16_discrete", "fire_discrete"
FIRE_COLUMNS = 10  # that the papers use; the file may have more


def acs16(folder: str | Path) -> CodedTable:
    """Sixteen answers of people in the American Community Survey.

    From `acs16_discrete.parquet` (or .csv), which holds codes from 0, and `acs16_discrete-domain.json`, which holds the
    values. The columns are those of Annamalai, Gadotti and Rocher (2024), but for one.
    """
    what = "a table of sixteen discretised columns of the American Community Survey (README of the data folder)"
    return _read(folder, ACS, what, None)


def sf_fire(folder: str | Path) -> CodedTable:
    """Ten columns of the calls to the San Francisco Fire Department, from `fire_discrete.csv` and its domain."""
    what = "the discretised calls for service of the San Francisco Fire Department, 2016 (DataSF)"
    return _read(folder, FIRE, what, FIRE_COLUMNS)


TABLES = {"acs16": acs16, "fire": sf_fire}  # by the names that people type
FOLDERS = {"acs16": "acs-2018-folktables", "fire": "sf-fire"}  # that hold them, within a folder of data sets


def _read(folder: str | Path, stem: str, what: str, columns: int | None) -> CodedTable:
    """A table of codes and the file that says how many values each column has."""
    domain_path = present(folder, f"{stem}-domain.json", what)
    try:
        domain: dict[str, Any] = json.loads("\n".join(lines(domain_path)))
        sizes = {str(name): int(size) for name, size in list(domain["sizes"].items())[:columns]}
    except (ValueError, KeyError, AttributeError, TypeError) as problem:
        raise InputFileError(
            f"{domain_path} must be JSON with `sizes`, a number for each column: {problem}"
        ) from problem
    values = [_values(domain, name, size) for name, size in sizes.items()]
    parquet = Path(folder) / f"{stem}.parquet"
    codes = _from_parquet(parquet, list(sizes)) if parquet.is_file() else _from_csv(folder, stem, what, list(sizes))
    return CodedTable(tuple(sizes), tuple(values), codes)


def _values(domain: dict[str, Any], name: str, size: int) -> tuple[Any, ...]:
    known = domain.get("values", {}).get(name, ())
    return tuple(known) if len(known) == size else tuple(range(size))


def _from_parquet(path: Path, names: list[str]) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as problem:
        told = f"{path} is read with pyarrow: pip install pyarrow, or save the table as {path.stem}.csv beside it."
        raise MissingPackageError(told) from problem
    try:
        table = parquet.read_table(path, columns=names)
        return np.stack([np.asarray(table[name]) for name in names], axis=1).astype(np.int64)
    except Exception as problem:  # pyarrow's own errors share no base with a name that is stable
        raise InputFileError(f"{path} cannot be read as a table with {', '.join(names)}: {problem}") from problem


def _from_csv(folder: str | Path, stem: str, what: str, names: list[str]) -> Any:
    path = present(folder, f"{stem}.csv", what)
    header, *body = lines(path)
    places = {name: place for place, name in enumerate(header.split(","))}
    missing = [name for name in names if name not in places]
    InputFileError.unless(not missing, f"{path} has no column {', '.join(missing)}.")
    try:
        return np.loadtxt(body, delimiter=",", dtype=np.int64, usecols=[places[name] for name in names], ndmin=2)
    except ValueError as problem:
        raise InputFileError(f"{path} must hold whole numbers: {problem}") from problem
