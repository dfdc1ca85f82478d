"""Working people of the American Community Survey, whose race is to be guessed: Census19, and what stands in for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.csv_files import CsvFile
from dprisk.datasets.files import folder_of, present
from dprisk.datasets.labelled import LabelledTable
from dprisk.errors import InputFileError, MissingPackageError, as_number, fail, require
from dprisk.types import IntArray

RACES = (
    "White",
    "Black",
    "Native American",
    "Asian",
    "Pacific Islander",
    "some other race",
    "two or more races",
)
INCOME = 50_000
CENSUS_2024 = "the 2024 one-year American Community Survey, as prepared to stand in for Census19"
CENSUS_2019 = "the NIST excerpts of the 2019 American Community Survey, as prepared to stand in for Census19"
NOTE = "The data stand in for Census19: levels differ from those in papers about it."
CENSUS19 = "the person files psam_p*.csv of the 2019 one-year American Community Survey of the US Census Bureau"
COUNTED_FROM_ONE = ("SEX", "COW", "SCHL", "MAR", "WAOB")
DIFFICULTIES = ("DREM", "DPHY", "DEAR", "DEYE")
# From the survey's codes 1 to 9 to the seven classes of Jayaraman and Evans: three of them are Native American.
RACE_OF_CODE = np.array([-1, 0, 1, 2, 2, 2, 3, 4, 5, 6])


def census(folder: str | Path) -> LabelledTable:
    """1,402,797 people of the 2024 survey, with the columns and the filter of Census19 (pyarrow reads the file).

    They stand in for Census19: another year, without California and Texas, citizenship and Hispanic origin in place of
    the region of birth. The label is an income of at least 50,000 dollars; other thresholds are not in the file.
    """
    path = present(folder_of(folder, "census-pums-2024"), "census24.parquet", CENSUS_2024)
    sizes = {"COW": 8, "SCHL": 24, "MAR": 5, "SEX": 2, **dict.fromkeys(DIFFICULTIES, 2), "NATIVITY": 2, "CIT": 5}
    sizes |= {"HISP": 24}
    columns = _parquet(path, [*sizes, "AGEP", "WKHP", "RAC1P", "label"])
    return _people("census", columns, sizes, ("AGEP", "WKHP"), columns["label"], INCOME, NOTE)


def census_2019(folder: str | Path, income: float = INCOME) -> LabelledTable:
    """26,648 people of the 2019 survey in 31 areas. The label is an income of at least `income` dollars.

    They stand in for Census19: fewer, without class of worker, working hours and region of birth.
    """
    path = present(folder_of(folder, "acs-2019-nist"), "census19_like.csv", CENSUS_2019)
    sizes = {"EDU": 13, "MSP": 7, "SEX": 2, "HISP": 5, "INDP_CAT": 20, **dict.fromkeys(DIFFICULTIES, 2), "OWN_RENT": 3}
    file = CsvFile.open(path)
    read = file.columns([*sizes, "AGEP", "RAC1P", "PINCP"])
    columns = {name: np.array(file.numbers(read[name], name)) for name in ("AGEP", "RAC1P", "PINCP")}
    columns |= {name: _coded(read[name], size, name, path) for name, size in sizes.items()}
    label = columns["PINCP"] >= _income(income)
    return _people("census-2019", columns, sizes, ("AGEP",), label, income, NOTE)


def census19(folder: str | Path, income: float = 90_000) -> LabelledTable:
    """Census19 itself, made from the survey's own files: everybody above 16 who works, with race in seven classes.

    Put the files psam_p01.csv to psam_p56.csv of the 2019 one-year person file ("PUMS", csv) into the folder, or into
    `census19` in it; some states will do. Columns that are read: AGEP, COW, SCHL, MAR, RAC1P, SEX, DREM, DPHY, DEAR,
    DEYE, WKHP, WAOB, PINCP. The recodes are those of Jayaraman and Evans (CCS 2022); the thesis's label is an income of
    at least 90,000 dollars.
    """
    own = folder_of(folder, "census19")
    files = sorted(path for path in own.glob("psam_p*.csv*") if path.suffix in (".csv", ".gz"))
    InputFileError.unless(files, f"There is no psam_p*.csv in {own}; put {CENSUS19} there (some states will do).")
    names = ("AGEP", *COUNTED_FROM_ONE, "RAC1P", *DIFFICULTIES, "WKHP", "PINCP")
    parts = [_working(path, names) for path in files]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    sizes = {"COW": 9, "SCHL": 24, "MAR": 5, "SEX": 2, "WAOB": 8, **dict.fromkeys(DIFFICULTIES, 2)}
    columns |= {name: columns[name] - 1 for name in COUNTED_FROM_ONE}
    columns |= {name: (columns[name] == 1).astype(np.int64) for name in DIFFICULTIES}
    known = (columns["RAC1P"] >= 1) & (columns["RAC1P"] < RACE_OF_CODE.size)
    InputFileError.unless(known.all(), f"`RAC1P` must be 1 to 9 for everybody who works in the files of {own}.")
    columns["RAC1P"] = RACE_OF_CODE[columns["RAC1P"]]
    label = columns["PINCP"] >= _income(income)
    return _people("census19", columns, sizes, ("AGEP", "WKHP"), label, income, "")


def _people(
    name: str,
    columns: dict[str, Any],
    sizes: dict[str, int],
    numbers: Sequence[str],
    label: Any,
    income: float,
    note: str,
) -> LabelledTable:
    known = {each: np.asarray(columns[each], dtype=np.int64) for each in sizes}
    known |= {each: np.asarray(columns[each], dtype=float) for each in numbers}
    race = np.asarray(columns["RAC1P"], dtype=np.int64)
    classes = (f"earns less than {income:,.0f}", f"earns at least {income:,.0f}")
    return LabelledTable(name, known, sizes, "race", race, RACES, np.asarray(label, dtype=np.int64), classes, note)


def _income(income: float) -> float:
    value = as_number("income", income)
    require(value > 0, f"income must be a number of dollars above 0, got {income}")
    return value


def _parquet(path: Path, names: Sequence[str]) -> dict[str, Any]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingPackageError(
            f'Reading {path.name} needs pyarrow: pip install "dprisk[learning]"; or take census-2019, which needs none.'
        ) from None
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as problem:
        raise InputFileError(f"{path} cannot be read as a Parquet file: {problem}") from problem
    for name in names:
        InputFileError.unless(name in table.column_names, f"{path} has no column `{name}`.")
    return {name: table[name].to_numpy() for name in names}


def _coded(texts: Sequence[str], size: int, name: str, path: Path) -> IntArray:
    """A column of at most `size` categories as numbers, in the order of the sorted texts."""
    distinct, codes = np.unique(np.asarray(texts), return_inverse=True)
    if len(distinct) > size:
        fail(f"{path}: `{name}` has {len(distinct)} values, not at most {size}.", InputFileError)
    return codes.astype(np.int64)


def _working(path: Path, names: Sequence[str]) -> dict[str, IntArray]:
    """Some columns of the people above 16 who work; an empty cell means "not applicable", as for children."""
    file = CsvFile.open(path)
    read = {name: np.array([text or "0" for text in column]) for name, column in file.columns(names).items()}
    columns = {name: np.array(file.numbers(column.tolist(), name)).astype(np.int64) for name, column in read.items()}
    kept = (columns["AGEP"] > 16) & (columns["WKHP"] > 0)
    return {name: column[kept] for name, column in columns.items()}
