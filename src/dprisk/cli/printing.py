"""How anything is printed: tables on a terminal, aligned columns anywhere else, and text that cannot do harm."""

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dprisk.letters import visible


def say(text: str, err: bool = False) -> None:
    """Lines of text."""
    click.echo("\n".join(visible(line) for line in text.split("\n")), err=err)


def print_json(told: Any) -> None:
    """What a program reads."""
    click.echo(json.dumps(told, indent=2))


def print_csv(lines: Sequence[Mapping[str, Any]]) -> None:
    """What a spreadsheet reads: numbers in full, nothing for None."""
    steady = visible if sys.stdout.isatty() else str
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(lines[0])
    out.writerows([steady(part) if isinstance(part, str) else part for part in line.values()] for line in lines)


def print_table(
    title: str, lines: Iterable[Sequence[str]], headings: Sequence[str] = (), right: Sequence[int] = ()
) -> None:
    """A title and lines of cells, those of the columns in `right` at the right. Cells may have several lines."""
    cells = [["\n".join(map(visible, cell.split("\n"))) for cell in line] for line in lines]
    if sys.stdout.isatty():
        _print_box(visible(title), cells, headings, right)
    else:
        click.echo("\n".join([visible(title), *_aligned([list(headings), *cells] if headings else cells, right)]))


def _print_box(title: str, lines: list[list[str]], headings: Sequence[str], right: Sequence[int]) -> None:
    table = Table(title=Text(title), title_justify="left", show_header=bool(headings))
    for column in range(len(lines[0]) if lines else len(headings)):
        heading = Text(headings[column]) if headings else ""
        table.add_column(heading, justify="right" if column in right else "left")
    for line in lines:
        table.add_row(*map(Text, line))
    Console(highlight=False, markup=False, emoji=False).print(table)


def _aligned(lines: list[list[str]], right: Sequence[int]) -> Iterable[str]:
    """Columns two spaces apart, without a limit on their width: a pipe has none."""
    parts = [[cell.split("\n") for cell in line] for line in lines]
    widths = [max(cell_len(text) for cell in column for text in cell) for column in zip(*parts, strict=True)]
    for line in parts:
        for row in range(max(map(len, line))):
            texts = [cell[row] if row < len(cell) else "" for cell in line]
            padded = [
                " " * (width - cell_len(text)) + text if place in right else text + " " * (width - cell_len(text))
                for place, (text, width) in enumerate(zip(texts, widths, strict=True))
            ]
            yield "  ".join(padded).rstrip()
