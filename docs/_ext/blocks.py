"""Blocks of code and output that can be read at any width.

A table in console output must not wrap, and the sentence below it must not be cut. So a console block is put on the
page in pieces: tables, which scroll in their box, and all other output, which wraps. The style sheet joins them, and
indents what is wrapped, for which each line needs an element of its own.
"""

import re
from itertools import groupby

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

TABLE_LINE = re.compile(r"[┏┃┡│├└╭╰]|\s\s+\S|(?!\$ ).*\S\s\s+\S")  # drawn, indented, or with columns


def literal(text: str, like: nodes.literal_block, **attributes: object) -> nodes.literal_block:
    """A block like another one, with another text."""
    return nodes.literal_block(text, text, **{**like.attributes, **attributes})


def pieces(block: nodes.literal_block) -> list[nodes.literal_block]:
    """Each run of table lines, and each run of other lines."""
    runs = groupby(block.astext().rstrip().splitlines(), key=lambda line: TABLE_LINE.match(line) is not None)
    return [literal("\n".join(lines), block, classes=["table" if table else "text"]) for table, lines in runs]


class Blocks(SphinxPostTransform):
    """Split console blocks; take the empty line from the end of doctests, which need it in the source only."""

    default_priority = 400
    formats = ("html",)

    def run(self, **_: object) -> None:
        """Called by Sphinx, once a page."""
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language") == "console" or "┃" in block.astext():
                block.replace_self(nodes.container("", *pieces(block), classes=["console"]))
            elif block.get("language") == "python":
                block.replace_self(literal(block.astext().rstrip(), block))
        for number, block in enumerate(self.document.findall(nodes.literal_block)):
            block["highlight_args"] = {**block.get("highlight_args", {}), "linespans": f"block-{number}"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_post_transform(Blocks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
