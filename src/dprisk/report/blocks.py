"""What a report consists of, whatever it is written in: headings, paragraphs, lists, tables, pictures with a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from dprisk.report.svg import Drawing

Tone = Literal["", "lead", "good", "bad", "note"]


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    level: int
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Paragraph:
    """Text, perhaps after a label; the tone says how it is meant: to be read first, good or bad news, an aside."""

    text: str
    tone: Tone = ""
    label: str = ""


@dataclass(frozen=True)
class Bullets:
    """Sentences one below the other."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Text as it is."""

    text: str
    caption: str


@dataclass(frozen=True)
class Table:
    """A caption, headings of columns, and rows; the first column names the row. `right` are columns of numbers."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A picture for a wide and for a narrow page, what it shows in words, and the table of the same.

    The `key` names its lines, in their order.
    """

    wide: Drawing
    narrow: Drawing
    caption: str
    alt: str
    table: Table
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """One attacker in short: its name, one number, and sentences."""

    name: str
    number: str
    unit: str
    tone: Tone
    verdict: str
    sentences: tuple[str, ...]
    anchor: str


@dataclass(frozen=True)
class Matrix:
    """Names in the cells of a square: rows and columns are levels, each cell has a level of its own."""

    caption: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    names: tuple[tuple[tuple[str, ...], ...], ...]


Block = Heading | Paragraph | Bullets | Code | Table | Figure | Card | Matrix


def without_comfort(block: Block) -> Block:
    """The same, good news told as an aside: for a release whose code is in doubt."""
    return replace(block, tone="note") if isinstance(block, Paragraph | Card) and block.tone == "good" else block


def to_data(block: Block) -> dict[str, Any]:
    """A block, ready for JSON; of a picture what it shows, not how it is drawn."""
    held = {name: value for name, value in vars(block).items() if not isinstance(value, Drawing)}
    told = {name: to_data(value) if isinstance(value, Table) else value for name, value in held.items()}
    return {"kind": type(block).__name__.lower(), **told}
