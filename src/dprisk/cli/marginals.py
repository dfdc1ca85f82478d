"""The command `dprisk population marginals`: how much of a table could be rebuilt from its noisy marginals?"""

import os
from pathlib import Path
from typing import Any

from dprisk.cli.options import FILE, Command, option
from dprisk.cli.progress import live
from dprisk.cli.tables import show_as
from dprisk.csv_files import CsvFile
from dprisk.datasets.coded import CodedTable
from dprisk.datasets.marginal_tables import FOLDERS, TABLES
from dprisk.errors import InputFileError
from dprisk.population.rebuilding import rebuild

VARIABLE = "DPRISK_DATA"


def marginals_command() -> Command:
    """`dprisk population marginals`."""
    sections = {
        "Table": [
            option(
                "data",
                str,
                f"A CSV file with one row a person, or a data set by name: {' or '.join(TABLES)}.",
                required=True,
                metavar="TABLE",
            ),
            option("columns", str, "The columns that are published, as in sex,age,illness; all if left out."),
            option(
                "data_dir", FILE, f"The folder of the named data sets; if left out, the one that ${VARIABLE} names."
            ),
        ],
        "Release": [
            option("epsilon", float, "Epsilon of all marginals together, replacing one person's row.", required=True),
            option("delta", float, "Delta that goes with it.", default=1e-5),
            option("ways", int, "How many columns each marginal has.", default=3),
            option("people", int, "How many people a published table has.", default=100),
        ],
        "Attacker": [
            option(
                "secret",
                str,
                "The columns that it wants, all of them right, as in SEX or SEX,AGEP; it knows the others.",
                required=True,
                metavar="NAMES",
            ),
            option("within", float, "How far off the codes may be in all, in steps.", default=0.0),
        ],
        "Answer": [
            option("runs", int, "How many tables are drawn, published and attacked.", default=5),
            option("seed", int, "A whole number that fixes all that is random.", default=0),
            option("json", bool, "Print JSON instead of a table."),
            option("csv", bool, "Print CSV instead of a table: a line for each number."),
        ],
    }
    examples = ("--data docs/examples/hospital.csv --columns Sex,Age,Diagnosis --secret Diagnosis --epsilon 1",)
    return Command("marginals", _marginals, sections, examples=examples)


def _marginals(**given: Any) -> None:
    """How much of my table could be rebuilt?

    Fits a network to the table, draws tables of so many people from it, publishes their marginals with noise, and lets
    two attackers fill in the secret columns of every record. Beside them stands the most that any attacker gets right.
    """
    table = _table(given["data"], given["data_dir"], given["columns"])
    asked = {name: given[name] for name in ("epsilon", "delta", "people", "ways", "within", "runs", "seed")}
    with live("tables") as tell:
        rebuilt = rebuild(table, _names(given["secret"]), watch=tell, **asked)
    show_as(rebuilt, given)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _table(data: str, folder: Path | None, columns: str | None) -> CodedTable:
    """The data set of that name, or the CSV file."""
    if data.casefold() not in TABLES:
        if not Path(data).exists() and not Path(data).suffix:
            raise InputFileError(f"{data} is neither a file nor a data set by name ({', '.join(TABLES)}).")
        names = None if columns is None else [CsvFile.open(data).name(name) for name in _names(columns)]
        return CodedTable.from_csv(data, names)
    table = _named(data.casefold(), folder)
    return table if columns is None else table.only(_names(columns))


def _named(name: str, folder: Path | None) -> CodedTable:
    root = folder or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if root is None:
        raise InputFileError(f"Where is {name}? Name the folder of its files by --data-dir, or by ${VARIABLE}.")
    inner = root / FOLDERS[name]
    return TABLES[name](inner if inner.is_dir() else root)
