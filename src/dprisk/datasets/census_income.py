"""The Adult (Census Income) data set."""

from collections.abc import Sequence
from pathlib import Path

from dprisk.datasets.files import lines, present, whole
from dprisk.errors import InputFileError, require

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
        path = present(
            folder,
            file,
            "the Adult (Census Income) data set of the UCI Machine Learning Repository, Becker and Kohavi 1996",
        )
        for line, text in enumerate(lines(path), start=1):
            if not text.strip() or text.startswith("|"):  # the last line, and the comment that opens the test file
                continue
            fields = text.split(",")
            InputFileError.unless(
                len(fields) == ADULT_FIELDS,
                f"{path}, line {line} has {len(fields)} fields, not the {ADULT_FIELDS} of this data set.",
            )
            for name, place in ADULT_COLUMNS.items():
                table[name].append(whole(fields[place], name, path, line))
    InputFileError.unless(len(table["age"]) > 0, f"There are no people in {', '.join(files) or 'no file'}.")
    return table
