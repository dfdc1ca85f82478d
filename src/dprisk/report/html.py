"""Blocks as one HTML page that needs nothing else: no script, no network, its style and pictures inside.

All text is escaped here, in one place, and a content security policy allows nothing but the one style sheet: even text
that got through could not run or load anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources

from dprisk.letters import visible_lines
from dprisk.report.blocks import Block, Bullets, Card, Code, Figure, Heading, Matrix, Paragraph, Table
from dprisk.report.drawings import COLOURS
from dprisk.report.svg import Drawing
from dprisk.taxonomy.keys import LEVELS

FEW_COLUMNS = 2  # up to which a table fits on a telephone as it is


@cache
def style() -> str:
    """The style sheet."""
    return (resources.files("dprisk.report") / "style.css").read_text(encoding="utf-8")


def to_html(title: str, blocks: Sequence[Block], version: str) -> str:
    """The page."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head, rest = _split(blocks)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            f"<style>{style()}</style>",
            "</head>",
            "<body>",
            "<header>",
            *_written(head),
            "</header>",
            "<main>",
            *_written(rest[: _end_of_first_part(rest)]),
            _contents(rest),
            *_written(rest[_end_of_first_part(rest) :]),
            "</main>",
            f"<footer><p>Made by dprisk {_text(version)}.</p></footer>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _split(blocks: Sequence[Block]) -> tuple[list[Block], list[Block]]:
    """What comes before the first heading of level 2, and the rest."""
    first = next((place for place, it in enumerate(blocks) if isinstance(it, Heading) and it.level == 2), len(blocks))
    return list(blocks[:first]), list(blocks[first:])


def _end_of_first_part(blocks: Sequence[Block]) -> int:
    """Where the second heading of level 2 stands."""
    found = [place for place, it in enumerate(blocks) if isinstance(it, Heading) and it.level == 2]
    return found[1] if len(found) > 1 else len(blocks)


def _contents(blocks: Sequence[Block]) -> str:
    """Links to the parts that follow the first."""
    parts = [it for it in blocks if isinstance(it, Heading) and it.level == 2 and it.anchor][1:]
    items = "".join(f'<li><a href="#{_text(it.anchor)}">{_text(it.text)}</a></li>' for it in parts)
    return f'<nav aria-label="Parts of this report"><ul>{items}</ul></nav>' if items else ""


def _written(blocks: Sequence[Block]) -> list[str]:
    """Blocks one after the other; cards that follow each other are a list."""
    lines: list[str] = []
    for place, block in enumerate(blocks):
        card = isinstance(block, Card)
        if card and not (place and isinstance(blocks[place - 1], Card)):
            lines.append('<ul class="cards">')
        lines.append(_block(block))
        if card and not (place + 1 < len(blocks) and isinstance(blocks[place + 1], Card)):
            lines.append("</ul>")
    return lines


def _block(block: Block) -> str:
    match block:
        case Heading():
            mark = f' id="{_text(block.anchor)}"' if block.anchor else ""
            return f"<h{block.level}{mark}>{_text(block.text)}</h{block.level}>"
        case Paragraph():
            tone = f' class="{block.tone}"' if block.tone else ""
            label = f"<strong>{_text(block.label)}.</strong> " if block.label else ""
            return f"<p{tone}>{label}{_text(block.text)}</p>"
        case Bullets():
            return f"<ul>{''.join(f'<li>{_text(item)}</li>' for item in block.items)}</ul>"
        case Code():
            return f"<figure><figcaption>{_text(block.caption)}</figcaption><pre>{_text(block.text)}</pre></figure>"
        case Table():
            return _table(block)
        case Figure():
            return _figure(block)
        case Card():
            return _card(block)
        case Matrix():
            return _matrix(block)


def _text(text: str) -> str:
    """Escaped; letters that turn the direction of what follows, or that nobody sees, are shown by their codes."""
    return escape(visible_lines(text), quote=True)


def _table(table: Table) -> str:
    """Roles are spelled out, since a telephone shows rows as blocks, and blocks lose them."""
    kind = "stack" if len(table.head) > FEW_COLUMNS else "plain"

    def side(place: int) -> str:
        return ' class="right"' if place in table.right else ""

    head = "".join(
        f'<th scope="col" role="columnheader"{side(place)}>{_text(name)}</th>' for place, name in enumerate(table.head)
    )
    rows = []
    for row in table.rows:
        first = f'<th scope="row" role="rowheader">{_text(row[0])}</th>'
        rest = "".join(
            f'<td role="cell" data-head="{_text(table.head[place])}"{side(place)}>{_text(cell)}</td>'
            for place, cell in enumerate(row[1:], start=1)
        )
        rows.append(f'<tr role="row">{first}{rest}</tr>')
    return (
        f'<table class="{kind}" role="table"><caption>{_text(table.caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def _figure(figure: Figure) -> str:
    """Both pictures, of which the style shows one, then the same as a table."""
    broad = ' class="broad"' if figure.wide.width > 900 else ""
    return (
        f"<figure{broad}><figcaption>{_text(figure.caption)}</figcaption>"
        f"{figure.wide.to_svg(figure.alt, 'wide')}{figure.narrow.to_svg(figure.alt, 'narrow')}"
        f"{_key(figure)}</figure>{_table(figure.table)}"
    )


def _key(figure: Figure) -> str:
    """The line and the mark of each name, where a picture has several."""
    if not figure.key:
        return ""
    items = []
    for number, name in enumerate(figure.key):
        sample = Drawing(34, 14)
        sample.line([(1, 7), (33, 7)], f"curve c{number % COLOURS}")
        sample.mark(17, 7, number, f"mark c{number % COLOURS}")
        items.append(f"<li>{sample.to_svg(f'line {number + 1}', 'sample')}<span>{_text(name)}</span></li>")
    return f'<ul class="key">{"".join(items)}</ul>'


def _card(card: Card) -> str:
    sentences = "".join(f"<p>{_text(sentence)}</p>" for sentence in card.sentences)
    return (
        f'<li class="card"><h3><a href="#{_text(card.anchor)}">{_text(card.name)}</a></h3>'
        f'<p class="number">{_text(card.number)}</p><p class="unit">{_text(card.unit)}</p>'
        f'<p class="{card.tone or "note"}">{_text(card.verdict)}</p>{sentences}</li>'
    )


def _matrix(matrix: Matrix) -> str:
    head = "".join(f'<th scope="col">{_soft(name)}</th>' for name in matrix.columns)
    rows = []
    for name, levels, names in zip(matrix.rows, matrix.levels, matrix.names, strict=True):
        cells = "".join(_cell(level, inside) for level, inside in zip(levels, names, strict=True))
        rows.append(f'<tr><th scope="row">{_soft(name)}</th>{cells}</tr>')
    return (
        f'<table class="matrix"><caption>{_text(matrix.caption)}</caption>'
        f'<thead><tr><th scope="col">like&shy;lihood \\ impact</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(level: str, names: Sequence[str]) -> str:
    inside = "".join(f"<strong>{_text(name)}</strong>" for name in names)
    return f'<td class="l{LEVELS.index(level)}">{_soft(level)}{inside}</td>'


def _soft(level: str) -> str:
    """A level that may be broken at its syllables."""
    return _text(level).replace("moderate", "mod&shy;erate")
