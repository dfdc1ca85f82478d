"""Public data sets, read from a folder that holds their files as published: one function a data set.

Nothing is downloaded, and no data come with dprisk.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path

from dprisk.errors import InputFileError, fail, require

ADULT_FIELDS = 15
ADULT_COLUMNS = {"age": 0, "hours-per-week": 12}


def adult(folder: str | Path, files: Sequence[str] = ("adult.data", "adult.test")) -> dict[str, list[int]]:
    """Age and working hours of the people in the Adult (Census Income) data set, in the order of its files.

    The columns are `age` and `hours-per-week`, whole numbers, one entry a person. Each file may also be compressed,
    with `.gz` after its name. The training file `adult.data` has 32,561 people, the test file `adult.test` 16,281.
    """
    require(not isinstance(files, str), f"`files` is a list of names such as ['adult.data'], got {files!r}.")
    table: dict[str, list[int]] = {name: [] for name in ADULT_COLUMNS}
    for file in files:
        path = _present(
            folder,
            file,
            "the Adult (Census Income) data set of the UCI Machine Learning Repository, Becker and Kohavi 1996",
        )
        for line, text in enumerate(_lines(path), start=1):
            if not text.strip() or text.startswith("|"):  # the last line, and the comment that opens the test file
                continue
            fields = text.split(",")
            InputFileError.unless(
                len(fields) == ADULT_FIELDS,
                f"{path}, line {line} has {len(fields)} fields, not the {ADULT_FIELDS} of this data set.",
            )
            for name, place in ADULT_COLUMNS.items():
                table[name].append(_whole(fields[place], name, path, line))
    InputFileError.unless(len(table["age"]) > 0, f"There are no people in {', '.join(files) or 'no file'}.")
    return table


def _present(folder: str | Path, file: str, data_set: str) -> Path:
    """The file or its compressed form, or a sentence that says how to get it."""
    for name in (file, f"{file}.gz"):
        if (path := Path(folder) / name).is_file():
            return path
    return fail(f"There is no {file} or {file}.gz in {folder}; it is part of {data_set}: put it there.", InputFileError)


def _lines(path: Path) -> list[str]:
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return content.decode("utf-8-sig").splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as problem:
        raise InputFileError(f"{path} cannot be read as text in UTF-8: {problem}") from problem


def _whole(text: str, name: str, path: Path, line: int) -> int:
    entry = text.strip()
    if not (entry.isascii() and entry.isdigit()):
        raise InputFileError(f"{path}, line {line}: `{name}` must be a whole number, got {entry!r}.")
    return int(entry)
