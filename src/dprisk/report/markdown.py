"""Blocks as Markdown: the same content, pictures as their tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dprisk.letters import visible, visible_lines
from dprisk.report.blocks import Block, Bullets, Card, Code, Figure, Heading, Matrix, Paragraph, Table

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")
_EMPHASIS = {"lead": "", "good": "**", "bad": "**", "note": "", "": ""}


def to_markdown(blocks: Sequence[Block]) -> str:
    """The page."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {_text(block.text)}"
        case Paragraph():
            mark = _EMPHASIS[block.tone]
            label = f"**{_text(block.label)}.** " if block.label else ""
            return f"{label}{mark}{_text(block.text)}{mark}"
        case Bullets():
            return "\n".join(f"- {_text(item)}" for item in block.items)
        case Code():
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block.text)), default=0))
            return f"{_text(block.caption)}\n\n{fence}\n{visible_lines(block.text)}\n{fence}"
        case Table():
            return _table(block)
        case Figure():
            return f"*{_text(block.caption)}* {_text(block.alt)}\n\n{_table(block.table)}"
        case Card():
            lines = [f"### {_text(block.name)}", f"**{_text(block.number)}** {_text(block.unit)}"]
            return "\n\n".join([*lines, f"**{_text(block.verdict)}**", *map(_text, block.sentences)])
        case Matrix():
            return _matrix(block)


def _text(text: str) -> str:
    """Without what Markdown or HTML would take for a sign of its own, on one line."""
    return _MARKS.sub(r"\\\1", visible(" ".join(text.split())))


def _table(table: Table) -> str:
    rule = ["---:" if place in table.right else "---" for place in range(len(table.head))]
    rows = [f"| {' | '.join(map(_text, row))} |" for row in table.rows]
    return "\n".join(
        [_text(table.caption), "", f"| {' | '.join(map(_text, table.head))} |", f"| {' | '.join(rule)} |", *rows]
    )


def _matrix(matrix: Matrix) -> str:
    rows = tuple(
        (
            name,
            *(
                f"{level}: {', '.join(inside)}" if inside else level
                for level, inside in zip(levels, names, strict=True)
            ),
        )
        for name, levels, names in zip(matrix.rows, matrix.levels, matrix.names, strict=True)
    )
    return _table(Table(matrix.caption, ("likelihood \\ impact", *matrix.columns), rows))
