"""TOML and JSON files that people write: read within bounds, and the line on which each key stands.

Neither parser of the standard library tells where a value came from, so a second look finds it, only where a sentence
needs it. What is refused is refused by `Section.refuse`: file, line, key, what was given, what is allowed.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from dprisk.csv_files import require_file
from dprisk.errors import DpriskError, InputFileError, fail

MOST_BYTES = 2_000_000
MOST_DEPTH = 20
MOST_DATA = 200_000_000  # bytes of a data file, where files are looked for in given folders only
Keys = tuple[str | int, ...]
# Strings and comments, in which brackets mean nothing, and brackets.
_TOML = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]', re.DOTALL
)
_JSON = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{}]', re.DOTALL)
_WORD = re.compile(r"[\w-]+")
_REST = re.compile(r"[^,\]}\n#]*")  # of a number, a date, a word


@dataclass(frozen=True)
class Document:
    """What a file holds, and its text, in which keys are found again."""

    path: Path
    text: str
    given: dict[str, Any]
    folders: tuple[Path, ...] | None = None  # the only ones from which it may name files; None: any
    used: list[Path] = field(default_factory=list, compare=False)  # the files that were looked up

    @cached_property
    def lines(self) -> dict[Keys, int]:
        """The line of each key; entries of a list are keyed by their number."""
        return _Lines(self.text, self.path.suffix == ".toml").found

    def section(self) -> Section:
        """All of it."""
        return Section(self, ())

    def place(self, keys: Keys) -> str:
        """The file, the line of a key (of the nearest key around it that is there), as in `plan.toml, line 3`."""
        found = next((self.lines[keys[:end]] for end in range(len(keys), 0, -1) if keys[:end] in self.lines), None)
        return str(self.path) if found is None else f"{self.path}, line {found}"


@dataclass(frozen=True)
class Section:
    """A part of a document that holds names with values."""

    document: Document
    keys: Keys

    @property
    def given(self) -> Any:
        """What it holds."""
        held: Any = self.document.given
        for key in self.keys:
            held = held[key]
        return held

    def inner(self, *keys: str | int) -> Section:
        """A part of it."""
        return Section(self.document, (*self.keys, *keys))

    def refuse(self, told: str, *keys: str | int) -> NoReturn:
        """Raise a sentence with the place: of a key of this section, or of the section itself."""
        fail(f"{self.where(*keys)} {told}", InputFileError)

    @contextmanager
    def placed(self, *keys: str | int) -> Iterator[None]:
        """Puts the place before what the library refuses, unless a sentence begins with the file already."""
        try:
            yield
        except DpriskError as problem:
            if isinstance(problem, InputFileError) and str(problem).startswith(str(self.document.path)):
                raise
            raise InputFileError(f"{self.where(*keys)}: {problem}") from problem

    def where(self, *keys: str | int) -> str:
        """The place in words, as a sentence begins: plan.toml, line 3: `query`."""
        here = (*self.keys, *keys)
        return f"{self.document.place(here)}: `{spelled(here)}`" if here else str(self.document.path)

    def check(self, needed: Sequence[str], allowed: Sequence[str]) -> None:
        """Refuse a section that lacks a name, or has one that means nothing."""
        known = f"it takes {', '.join((*needed, *allowed))}"
        if not isinstance(self.given, Mapping):
            self.refuse(f"must hold names with values; {known}.")
        for name in self.given:
            if name not in (*needed, *allowed):
                place = self.document.place((*self.keys, name))
                inside = f" in `{spelled(self.keys)}`" if self.keys else ""
                fail(f"{place} has an unknown name `{name}`{inside}; {known}.", InputFileError)
        missing = [name for name in needed if name not in self.given]
        if missing:
            self.refuse(f"lacks `{missing[0]}`; {known}.")

    def file(self, key: str) -> Path:
        """The path of a file that is named here, relative to this one; it must be there, and where it may be."""
        name, folders = self.given[key], self.document.folders
        if not isinstance(name, str) or name == "":
            self.refuse(f"is the name of a file, got {name!r}.", key)
        beside = self.document.path.parent / name
        if folders is None:
            self.document.used.append(beside)
            return beside
        rooms = [folder.resolve() for folder in folders]
        for folder in folders:
            path = (folder / name).resolve()
            if not any(path.is_relative_to(room) for room in rooms):
                self.refuse(f"must lie in the folder of this file or below it, got {name!r}.", key)
            if path.is_file():
                size = path.stat().st_size
                if size > MOST_DATA:
                    self.refuse(f"names a file of {size:,} bytes, at most {MOST_DATA:,} are read.", key)
                self.document.used.append(folder / name)
                return folder / name
        return self.refuse(f"names a file that is not there: {name!r}; it is looked for beside this file.", key)


def spelled(keys: Keys) -> str:
    """Keys as people say them; entries of a list are counted from 1.

    >>> spelled(("attacker", 1, "goal"))
    'attacker 2, goal'
    """
    said = ""
    for key in keys:
        said += f" {key + 1}" if isinstance(key, int) else f"{', ' if said else ''}{key}"
    return said


def read_document(path: str | Path, folders: Sequence[Path] | None = None) -> Document:
    """The names and values in a TOML or JSON file; what cannot be read gets one sentence.

    With `folders`, files that it names are looked for there, in this order, and nowhere else.
    """
    path = require_file(path)
    if path.suffix not in (".toml", ".json"):
        fail(f"{path} must end in .toml or .json.", InputFileError)
    size = path.stat().st_size
    if size > MOST_BYTES:
        fail(f"{path} has {size:,} bytes, at most {MOST_BYTES:,} are read; put data into a CSV file.", InputFileError)
    kind = path.suffix[1:].upper()
    text = _decoded(path, path.read_bytes(), kind)
    _require_shallow(path, text)
    try:
        given = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InputFileError(f"{path} cannot be read as {kind}: {problem}") from problem
    if not isinstance(given, dict):
        fail(f"{path} must hold names with values.", InputFileError)
    return Document(path, text, given, None if folders is None else tuple(folders))


def _decoded(path: Path, content: bytes, kind: str) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        told = f"line {line} holds the byte 0x{content[problem.start]:02x}, which is not UTF-8; save it as UTF-8."
        raise InputFileError(f"{path} cannot be read as {kind}: {told}") from problem


def _require_shallow(path: Path, text: str) -> None:
    """Refuse brackets in brackets without end, which parsers follow until they break."""
    depth = 0
    for found in (_TOML if path.suffix == ".toml" else _JSON).finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found.group(), 0)
        if depth > MOST_DEPTH:
            line = text.count("\n", 0, found.start()) + 1
            fail(f"{path}, line {line}: brackets are nested more than {MOST_DEPTH} deep.", InputFileError)


class _Lines:
    """Goes through a text that a parser has accepted, and notes the line of each key."""

    def __init__(self, text: str, is_toml: bool) -> None:
        self.text, self.at, self.found = text, 0, dict[Keys, int]()
        self.comments = "#" if is_toml else ""
        self._count: dict[Keys, int] = {}
        self._ends = [found.start() for found in re.finditer("\n", text)]
        if is_toml:
            self._statements()
        else:
            self._value(())

    def _statements(self) -> None:
        head: Keys = ()
        while self._skip():
            if self.text[self.at] == "[":
                head = self._header()
            else:
                self._pair(head)

    def _header(self) -> Keys:
        """[a.b] or [[a.b]]; the entries of a list are counted, and names below it belong to its last entry."""
        many = self.text.startswith("[[", self.at)
        line = self._line()
        self.at += 2 if many else 1
        names = self._names("]")
        self.at += 2 if many else 1
        keys: Keys = ()
        for name in names[:-1]:
            keys = (*keys, name)
            keys = (*keys, self._count[keys]) if keys in self._count else keys
        keys = (*keys, names[-1])
        self._note(keys, line)
        if many:
            self._count[keys] = self._count.get(keys, -1) + 1
            keys = (*keys, self._count[keys])
            self._note(keys, line)
        return keys

    def _pair(self, inside: Keys) -> None:
        """A key, perhaps with dots, and its value."""
        line, keys = self._line(), inside
        for name in self._names("=:"):
            keys = (*keys, name)
            self._note(keys, line)
        self.at += 1
        self._skip()
        self._value(keys)

    def _names(self, end: str) -> list[str]:
        names: list[str] = []
        while self._skip() and self.text[self.at] not in end:
            if self.text[self.at] in "\"'":
                names.append(self._quoted())
            elif word := _WORD.match(self.text, self.at):
                names.append(word.group())
                self.at = word.end()
            else:
                self.at += 1  # a dot
        return names

    def _value(self, keys: Keys) -> None:
        self._skip()
        opening = self.text[self.at]
        if opening in "\"'":
            self._string()
        elif opening in "[{":
            self._inside(keys, opening)
        else:
            found = _REST.match(self.text, self.at)
            self.at = found.end() if found else self.at + 1

    def _inside(self, keys: Keys, opening: str) -> None:
        self.at += 1
        number = 0
        while self._skip(also=",") and self.text[self.at] not in "]}":
            if opening == "{":
                self._pair(keys)
            else:
                self._note((*keys, number), self._line())
                self._value((*keys, number))
                number += 1
        self.at += 1

    def _quoted(self) -> str:
        """A name between quotes, what is escaped in it unescaped."""
        start = self.at
        plain = self._string()
        return str(json.loads(self.text[start : self.at])) if "\\" in plain and self.text[start] == '"' else plain

    def _string(self) -> str:
        """The text between quotes."""
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        start = self.at = self.at + len(mark)
        while not self.text.startswith(mark, self.at):
            self.at += 2 if self.text[self.at] == "\\" and quote == '"' else 1
        held = self.text[start : self.at]
        self.at += len(mark)
        return held

    def _skip(self, also: str = "") -> bool:
        """Go to what comes next; whether there is anything."""
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in self.comments and letter:
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif letter.isspace() or letter in also:
                self.at += 1
            else:
                return True
        return False

    def _line(self) -> int:
        return bisect_left(self._ends, self.at) + 1

    def _note(self, keys: Keys, line: int) -> None:
        self.found.setdefault(keys, line)
