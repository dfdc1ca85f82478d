"""Outputs taken apart into columns: entries at any depth, and of texts among them numbers, wording and characters."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprisk.auditing.code.outputs import NUMBER, as_objects, digests
from dprisk.auditing.evidence.numbers import (
    FROM_FLOATS,
    NUMERAL,
    columns_of,
    held_number,
    is_number,
    leaves,
    numbers_in,
)
from dprisk.types import AnyArray, FloatArray

EXACT = 2**53  # beyond which floats do not hold every whole number
BEYOND = 2.0**960  # more than numbers are, where entries that are none have their places
CHARACTERS = (16, 32, 64)  # of a text that are looked at one by one, from either end: as many as most have, about
KINDS = {"capital letter": re.compile(r"[A-Z]"), "digit": re.compile(r"\d"), "1": re.compile("1")}  # which are counted
MOST_TEXTS, MOST_NUMBERS = 4, 512  # entries that are taken apart further, and numbers in one of them
UNITS = {bytes: "byte", int: "hexadecimal digit"}
NO_TEXT = (*NUMBER, np.generic, tuple, frozenset, type(None))
SAMPLE, FEW_TEXTS = 200, 32  # outputs by which that is decided, and different texts among them that are few


@dataclass(frozen=True)
class Text:
    """An entry that is a text: at which place, how many numbers are read in it, and what its characters are called.

    So many characters at either end are looked at one by one.
    """

    place: int
    numbers: int = 0
    unit: str = "character"
    characters: int = CHARACTERS[0]

    @property
    def kinds(self) -> dict[str, re.Pattern[str]]:
        """The kinds of characters that are counted: of text alone."""
        return KINDS if self.unit == "character" else {}

    @property
    def names(self) -> list[str]:
        """What its columns are, to be followed by the name of the entry."""
        ends = [f"{self.unit} {place + 1}" for place in range(self.characters)]
        return [
            "the wording, with # for each number, of",
            f"the number of {self.unit}s of",
            *(f"the number of {kind}s in" for kind in self.kinds),
            *(f"number {place + 1} of {self.numbers} in" for place in range(self.numbers)),
            *(f"{end} of" for end in ends),
            *(f"{end} from the end of" for end in ends),
        ]

    def pieces(self, text: str) -> list[Any]:
        """What stands in its columns: the wording, the length, numbers if they are so many, and characters."""
        first, last = self._ends(text)
        ends = [*first.ljust(self.characters, "\0"), *last.ljust(self.characters, "\0")]
        counts = [len(kind.findall(text)) for kind in self.kinds.values()]
        return [NUMERAL.sub("#", text), len(text), *counts, *self._read(text), *ends]

    def columns(self, texts: list[str]) -> FloatArray:
        """The same of many texts as numbers, a row for each piece; not a number where there is none."""
        wording = _as_column([NUMERAL.sub("#", text) for text in texts])
        lengths = np.array(list(map(len, texts)), dtype=float)
        numbers = np.array(list(map(self._read, texts)), dtype=float).reshape(len(texts), self.numbers).T
        counts = [np.array([len(kind.findall(text)) for text in texts], dtype=float) for kind in self.kinds.values()]
        first, last = (_characters(list(ends), self.characters) for ends in zip(*map(self._ends, texts), strict=True))
        return np.vstack([wording, lengths, *counts, numbers, first, last])

    def _ends(self, text: str) -> tuple[str, str]:
        """How it begins, and how it ends, the last character first."""
        return text[: self.characters], text[: -self.characters - 1 : -1]

    def _read(self, text: str) -> tuple[Any, ...]:
        """The numbers of a text that has as many as most."""
        if self.numbers == 0:
            return ()
        numbers = numbers_in(text)
        return numbers if len(numbers) == self.numbers else (math.nan,) * self.numbers


@dataclass(frozen=True)
class Layout:
    """How outputs are taken apart: those of `length` entries, at any depth, into these, and some texts further."""

    length: int
    texts: tuple[Text, ...] = ()

    by_place: ClassVar[bool] = True  # the entries stand at the same places in every output

    @property
    def size(self) -> int:
        """How many columns there are."""
        return self.length + sum(len(text.names) for text in self.texts)

    @property
    def number_places(self) -> list[int]:
        """The columns that may hold numbers of the outputs: entries, and numbers in texts."""
        places, start = list(range(self.length)), self.length
        for text in self.texts:
            first = start + 2 + len(text.kinds)
            places += range(first, first + text.numbers)
            start += len(text.names)
        return places

    def entries_in(self, output: Any) -> tuple[Any, ...]:
        """The entries of an output."""
        return entries_in(output)

    def pieces(self, example: Any) -> list[Any]:
        """What one output has in each column."""
        if isinstance(example, np.ndarray) and self.by_place:
            return example.ravel().tolist()
        held = self.entries_in(example)
        more = [text.pieces(_as_text(held[text.place]) or "") for text in self.texts]
        return [*held, *(piece for pieces in more for piece in pieces)]

    def columns(self, outputs: AnyArray) -> FloatArray:
        """The columns of outputs, a row for each; not a number of outputs that have other lengths.

        What is no number stands beyond all that are, in a place of its own (`numbers_only` leaves it out).
        """
        if outputs.dtype.kind in "biuf" and not _too_large(outputs):
            columns = columns_of(outputs) if outputs.ndim > 1 else np.zeros((0, len(outputs)))
            fits = len(columns) == self.size
            return np.asarray(columns, dtype=float) if fits else np.full((self.size, len(outputs)), np.nan)
        objects = outputs if outputs.dtype.kind == "O" else as_objects(outputs.tolist())
        held = [self.entries_in(value) for value in objects.tolist()]
        usual = [place for place, value in enumerate(held) if len(value) == self.length]
        found = np.full((self.size, len(outputs)), np.nan)
        found[:, usual] = self._columns_of([held[place] for place in usual])
        return found

    def _columns_of(self, rows: list[tuple[Any, ...]]) -> FloatArray:
        """The same of outputs all of which have as many entries."""
        found = np.full((self.size, len(rows)), np.nan)
        for row, column in zip(found, zip(*rows, strict=True), strict=False):
            row[:] = _as_column(list(column))
        start = self.length
        for text in self.texts:
            told = {place: words for place, row in enumerate(rows) if (words := _as_text(row[text.place])) is not None}
            found[start : start + len(text.names), list(told)] = text.columns(list(told.values()))
            start += len(text.names)
        return found


def _too_large(outputs: AnyArray) -> bool:
    """Whether some are whole numbers that floats do not tell apart."""
    return outputs.dtype.kind in "iu" and outputs.size > 0 and max(int(outputs.max()), -int(outputs.min())) > EXACT


def layout_of(outputs: AnyArray) -> Layout | None:
    """How most outputs can be taken apart; None where most are single numbers, or not of one length."""
    if outputs.dtype.kind in "biuf":
        return Layout(math.prod(outputs.shape[1:])) if outputs.ndim > 1 and outputs.size else None
    held = list(map(entries_in, outputs.tolist()))
    length, count = Counter(map(len, held)).most_common(1)[0] if held else (0, 0)
    if length == 0 or 2 * count <= len(held):
        return None
    texts = tuple(_texts([value for value in held[: 2 * SAMPLE] if len(value) == length][:SAMPLE]))
    return Layout(length, texts) if length > 1 or texts else None


def _texts(some: Sequence[Sequence[Any]]) -> Iterator[Text]:
    """Which entries are texts, and many: names in a dict are always the same, and few texts tell more whole."""
    few = min(FEW_TEXTS, len(some) / 2)
    places = (place for place, column in enumerate(zip(*some, strict=True)) if len(set(column)) > few)
    texts = ((place, [_as_text(value[place]) for value in some]) for place in places)
    told = [(place, [words for words in column if words is not None]) for place, column in texts]
    for place, words in [(place, words) for place, words in told if 2 * len(words) > len(some)][:MOST_TEXTS]:
        yield _text_like(words, place, UNITS.get(type(some[0][place]), "character"))


def _text_like(words: Sequence[str], place: int, unit: str) -> Text:
    """How texts like these are taken apart."""
    numbers, count = Counter(len(numbers_in(text)) for text in words).most_common(1)[0]
    half = max(map(len, words)) / 2
    characters = next((most for most in CHARACTERS if most >= half), CHARACTERS[-1])
    return Text(place, numbers if 2 * count > len(words) and numbers <= MOST_NUMBERS else 0, unit, characters)


def entries_in(output: Any) -> tuple[Any, ...]:
    """The entries of an output at any depth; a text is one by itself, a number is none."""
    if isinstance(output, tuple):
        return leaves(output)
    return () if _as_text(output) is None else (output,)


def _as_text(value: Any) -> str | None:
    """Text, and bytes, dates, decimals, identifiers and very large whole numbers as text; None of others."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if type(value) is int and abs(value) > EXACT:
        return f"{value:x}"
    return None if isinstance(value, NO_TEXT) else str(value)


def numbers_only(columns: FloatArray) -> FloatArray:
    """Entries that are numbers, and not a number where they are something else."""
    return columns if (usual := np.abs(columns) < BEYOND).all() else np.where(usual, columns, np.nan)


def _as_column(values: list[Any]) -> FloatArray:
    """Numbers as they are; anything else beyond them, at a place that depends on how it is written alone."""
    if set(map(type, values)) == {float}:
        return np.array(values)
    is_told = [isinstance(value, bool) or (is_number(value) and _is_exact(value)) for value in values]
    column = np.array([float(value) if told else math.nan for value, told in zip(values, is_told, strict=True)])
    others = [place for place, told in enumerate(is_told) if not told]
    if others:
        column[others] = _places_of_others([values[place] for place in others])
    return column


def _places_of_others(values: list[Any]) -> FloatArray:
    """The same of what is no float or whole number, some of which a float stands for."""
    column = np.array((digests(values) >> 24) * BEYOND)
    if not FROM_FLOATS.keys().isdisjoint(map(type, values)):
        held = {place: number for place, value in enumerate(values) if (number := held_number(value)) is not None}
        column[list(held)] = list(held.values())
    return column


def _is_exact(value: Any) -> bool:
    """Whether a float holds this number as it is."""
    return not isinstance(value, int) or abs(value) <= EXACT


def _characters(texts: list[str], most: int) -> FloatArray:
    """A place beyond numbers for each character of short texts, a row for each; not a number beyond their ends."""
    codes = np.array(texts, dtype=f"U{most}").view(np.uint32).reshape(len(texts), most).T
    return np.where(codes == 0, np.nan, codes * BEYOND)
