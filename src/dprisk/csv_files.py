"""CSV files as people have them: commas, semicolons or tabs, with a header row, compressed or not, however large.

Only the header is read until a column is asked for, so that a file without it is refused at once. Rows are read in
blocks, and of each only the columns that are needed. Rows are counted as a spreadsheet does: the header is row 1.
"""

import csv
import gzip
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn, Self, TextIO

from dprisk.errors import InputFileError

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
BLOCK = 1 << 8  # rows that are held at once: few enough not to wake the garbage collector
THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")  # or a decimal comma and three digits
FEW = 1 << 16  # distinct cells of a column up to which equal ones are held once

Row = list[str]


@dataclass(frozen=True)
class CsvFile:
    """A CSV file of which the header is known."""

    path: Path
    encoding: str
    delimiter: str
    header: tuple[str, ...]

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Read the header, and find the delimiter: the one that cuts it into most cells.

        One that cuts the row below into equally many goes before one that does not.
        """
        path = require_file(path)
        encoding = _encoding(path)
        found = max((_trial(path, encoding, delimiter) for delimiter in DELIMITERS), key=lambda trial: trial[:2])
        _, cells, delimiter, header = found
        InputFileError.unless(cells > 0, f"{path} is empty; a header row and at least one record are needed.")
        return cls(path, encoding, delimiter, header)

    @property
    def described(self) -> str:
        """Its columns, and how they were told apart, for messages."""
        apart = f"separated by {DELIMITERS[self.delimiter]}" if len(self.header) > 1 else "with no delimiter seen"
        if len(self.header) == 1 and "|" in self.header[0]:
            apart = "separated by vertical bars, which are not read: write commas, semicolons or tabs"
        title = " (row 2 has more cells: is row 1 the header, or a title?)" if self._starts_with_a_title() else ""
        return f"it has {', '.join(f'`{name}`' for name in self.header)}, {apart}{title}"

    def has(self, name: str) -> bool:
        """Whether there is a column of that name; capital letters do not matter."""
        return len(self._places(name)) > 0

    def name(self, name: str) -> str:
        """A column's name as the header writes it, or an error that lists the columns."""
        places = self._places(name)
        if name in self.header and len(places) > 1:
            raise InputFileError(f"{self.path} has two columns `{name}`; each needs its own name.")
        if len(places) > 1:
            raise InputFileError(f"{self.path}: `{name}` may be several columns; {self.described}.")
        if not places:
            raise InputFileError(f"{self.path} has no column `{name}`; {self.described}.")
        return self.header[places[0]]

    def _starts_with_a_title(self) -> bool:
        """Whether the second row has more cells with something in them than the first."""
        for delimiter in DELIMITERS:
            with _rows(self.path, self.encoding, delimiter) as rows:
                first, second = (sum(1 for cell in _header(rows)[1] if cell.strip()) for _ in range(2))
            if first < second:
                return True
        return False

    def columns(self, names: Sequence[str] | None = None, as_written: bool = False) -> dict[str, list[str]]:
        """Some columns, or all, as text, by the names that they were asked for; `as_written` keeps the space around."""
        trim = str if as_written else str.strip
        asked = list(self.header if names is None else names)
        picks = [itemgetter(place) for place in self._chosen(asked)]
        read: list[list[str]] = [[] for _ in asked]
        known: list[dict[str, str]] = [{} for _ in asked]
        for _, rows in self._blocks():
            for pick, column, same in zip(picks, read, known, strict=True):
                cells = list(map(trim, map(pick, rows)))
                column.extend(map(same.setdefault, cells, cells) if len(same) < FEW else cells)
        InputFileError.unless(not read or read[0], f"{self.path} has a header row but no records.")
        return dict(zip(asked, read, strict=True))

    def filled(self, names: Sequence[str] | None = None) -> dict[str, list[str]]:
        """As `columns`, where an empty cell is no value and is refused."""
        read = self.columns(names)
        for name, cells in read.items():
            self._require_none_empty(name, cells.count(""))
        return read

    def _require_none_empty(self, name: str, empty: int) -> None:
        if empty:
            what = f"is empty, the first of {empty}" if empty > 1 else "is empty"
            advice = "fill it, for instance with `unknown`, or leave such rows or this column out"
            self.refuse_cell(name, lambda cell: not cell, what, advice)

    def counts(self, names: Sequence[str]) -> dict[tuple[str, ...], int]:
        """How often each combination of cells occurs in some columns; an empty cell is refused.

        What is held is one block and the combinations, however many rows there are.
        """
        places = self._chosen(names)
        pick, counted = itemgetter(*places), Counter[Any]()
        for _, rows in self._blocks():
            counted.update(map(pick, rows))
        InputFileError.unless(counted, f"{self.path} has a header row but no records.")
        merged: dict[tuple[str, ...], int] = {}
        for cells, times in counted.items():
            key = tuple(cell.strip() for cell in ((cells,) if len(places) == 1 else cells))
            merged[key] = merged.get(key, 0) + times
        for place, name in enumerate(names):
            self._require_none_empty(name, sum(times for key, times in merged.items() if not key[place]))
        return merged

    def numbers(self, texts: Sequence[str], name: str) -> list[float]:
        """A column that was read as text, as numbers; or an error that names the first cell that is none."""
        try:
            return list(map(float, texts))
        except ValueError:
            hint = "with a decimal point" if any("," in text for text in texts) else "in every row"
            if any(THOUSANDS.fullmatch(text.strip()) for text in texts):
                hint = "without commas between thousands, and with a decimal point where one is meant"
            self.refuse_cell(name, _is_no_number, "must be a number, got {cell!r}", f"write numbers {hint}")

    def refuse_cell(self, name: str, wrong: Callable[[str], bool], what: str, advice: str) -> NoReturn:
        """Raise an error that names the first row with such a cell, looked up in the file."""
        place = self._chosen([name])[0]
        for first, rows in self._blocks(skip_blank=False):
            for number, row in enumerate(rows, start=first):
                if row and wrong(cell := row[place].strip()):
                    found = what.format(cell=cell)
                    raise InputFileError(f"{self.path}, row {number}: `{self.header[place]}` {found}; {advice}.")
        raise InputFileError(f"{self.path} changed while it was read.")

    def _places(self, name: str) -> list[int]:
        same = [place for place, own in enumerate(self.header) if own == name]
        wanted = name.strip().casefold()
        return same or [place for place, own in enumerate(self.header) if own.casefold() == wanted]

    def _chosen(self, names: Sequence[str]) -> list[int]:
        return [self.header.index(self.name(name)) for name in names]

    def _blocks(self, skip_blank: bool = True) -> Iterator[tuple[int, list[Row]]]:
        """The rows below the header, each as wide as it, with the number of the first; blank lines are no rows."""
        with _rows(self.path, self.encoding, self.delimiter) as reader:
            first, last = _header(reader)
            number = first + 1
            while rows := list(islice(reader, BLOCK)):
                last = rows[-1]
                if len(rows) < BLOCK:
                    self._require_closed(last)
                if not set(map(len, rows)) <= {len(self.header)}:
                    for row, cells in enumerate(rows, start=number):
                        InputFileError.unless(
                            len(cells) in (0, len(self.header)),
                            f"{self.path}, row {row} has {_cells(cells)}, the header {len(self.header)} (separated by "
                            f"{DELIMITERS[self.delimiter]}); put a cell that holds a delimiter between quotes.",
                        )
                full = list(filter(None, rows)) if skip_blank else rows
                if full:
                    yield number, full
                number += len(rows)
            self._require_closed(last)

    def _require_closed(self, last: Row) -> None:
        """Refuse a file that ends between quotes: the blank line after it is then no row of its own."""
        if last:
            line = _last_start(self.path, self.encoding, self.delimiter)
            raise InputFileError(
                f"{self.path}, line {line}: a quote is opened and not closed; close it or leave it out."
            )


def read_csv(path: str | Path, as_written: bool = False) -> dict[str, list[str]]:
    """All columns of a CSV file with a header row, as text."""
    return CsvFile.open(path).columns(as_written=as_written)


def require_file(path: str | Path) -> Path:
    """A path to something that can be read."""
    if not isinstance(path, str | Path) or str(path) == "":
        raise InputFileError(f"A file is named by its path, got {path!r}.")
    path = Path(path)
    try:
        exists, readable = path.exists(), path.is_file()
    except OSError as problem:
        raise InputFileError(f"{path} cannot be read: {problem}") from problem
    InputFileError.unless(exists, f"There is no file {path}.")
    InputFileError.unless(readable, f"{path} is not a file.")
    return path


def _opened(path: Path, encoding: str) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", newline="", encoding=encoding)
    return path.open(newline="", encoding=encoding)


def _encoding(path: Path) -> str:
    """UTF-8, or UTF-16 where the file begins with its mark, as spreadsheets write it."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            mark = file.read(2)
    except (OSError, EOFError) as problem:
        raise InputFileError(f"{path} cannot be read: {problem}") from problem
    return "utf-16" if mark in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


@contextmanager
def _rows(path: Path, encoding: str, delimiter: str) -> Iterator[Iterator[Row]]:
    """The rows of a file, header included, and a blank one; what cannot be read gets one sentence."""
    try:
        with _opened(path, encoding) as file:
            yield csv.reader(chain(file, [""]), delimiter=delimiter)
    except UnicodeDecodeError as problem:
        raise InputFileError(_not_unicode(path, problem)) from problem
    except (OSError, EOFError, csv.Error) as problem:
        hint = ""
        if "field larger" in str(problem):
            hint = f"; is a quote opened on line {_last_start(path, encoding, delimiter)} and not closed?"
        raise InputFileError(f"{path} cannot be read as CSV: {problem}{hint}") from problem


def _last_start(path: Path, encoding: str, delimiter: str) -> int:
    """The line on which the last row begins, or the one that cannot be read."""
    start = end = 0
    with _opened(path, encoding) as file, suppress(csv.Error):
        rows = csv.reader(file, delimiter=delimiter)
        for _ in rows:
            start, end = end + 1, rows.line_num
        return start
    return end + 1


def _trial(path: Path, encoding: str, delimiter: str) -> tuple[bool, int, str, tuple[str, ...]]:
    """Whether a delimiter cuts the header and the row below alike, into how many cells, and what the header is then."""
    with _rows(path, encoding, delimiter) as rows:
        header, below = _header(rows)[1], _header(rows)[1]
    alike = 1 < len(header) == len(below)
    return alike, len(header), delimiter, tuple(cell.strip() for cell in header)


def _header(rows: Iterator[Row]) -> tuple[int, Row]:
    """The first row that is not blank, and its number; no cells if there is none."""
    return next(((number, row) for number, row in enumerate(rows, start=1) if row), (0, []))


def _not_unicode(path: Path, problem: UnicodeDecodeError) -> str:
    """Which row, and what the byte would be in Latin-1, which is what such files mostly are."""
    if problem.encoding not in ("utf-8", "utf8"):
        return f"{path} cannot be read as text: it begins like UTF-16, but is not."
    with _opened(path, "latin-1") as file:
        number, line = next(
            (number, line) for number, line in enumerate(file, start=1) if not _is_utf8(line.encode("latin-1"))
        )
    byte = problem.object[problem.start]
    around = line.strip()[:40]
    return (
        f"{path} is not UTF-8: line {number} holds the byte 0x{byte:02x}, {chr(byte)!r} in Latin-1 ({around!r}). "
        f"Save it as `CSV UTF-8`, or convert it: iconv -f latin1 -t utf-8 {shlex.quote(str(path))} > utf8.csv"
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_no_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return True
    return False


def _cells(cells: Row) -> str:
    return "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
