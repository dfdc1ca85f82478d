"""Formulas as MathML, which browsers draw themselves: no script, no network, and text that can be copied."""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LONG = 40  # characters of LaTeX; a longer formula in a line may be wider than a telephone, and gets its own scroll bar
TOUCHES = {
    "<mo>'</mo>": '<mo lspace="0" rspace="0">′</mo>',
    '<mo stretchy="false">/</mo>': '<mo stretchy="false" lspace="0" rspace="0">/</mo>',
    "<mo>{</mo>": '<mo stretchy="false">{</mo>',  # braces of sets keep their size
    "<mo>}</mo>": '<mo stretchy="false">}</mo>',
}


def markup(node: nodes.math | nodes.math_block, block: bool) -> str:
    """The MathML of one formula; a command that is not known is a warning, and fails the build."""
    try:
        mathml: str = tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        logging.getLogger(__name__).warning("%s in the formula %s", error, node.astext(), location=node)
        return ""
    for found, better in TOUCHES.items():
        mathml = mathml.replace(found, better)
    return mathml


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line of text."""
    kind = "math long" if len(node.astext()) > LONG else "math"
    self.body.append(self.starttag(node, "span", "", CLASS=kind) + markup(node, block=False) + "</span>")
    raise nodes.SkipNode


def visit_math_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula that stands alone."""
    self.body.append(self.starttag(node, "div", CLASS="math") + markup(node, block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
