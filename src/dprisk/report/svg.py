"""Pictures as SVG text that stands in the page: lines, dots, words. Colours come from the page's style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dprisk.letters import visible

LETTER = 6.2  # width of a letter at 11 units, about


class Drawing:
    """Shapes on a sheet; what is drawn later lies above."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A line through points, of a class of the style sheet."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline class="{kind}" points="{path}"/>')

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A rectangle."""
        size = f'width="{max(0.0, width):.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}/>')

    def mark(self, x: float, y: float, number: int, kind: str) -> None:
        """A mark, of another shape for each number, so that colours are not needed to tell them apart."""
        shapes = (
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>',
            f'<rect class="{kind}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>',
            f'<path class="{kind}" d="M{x:.1f} {y - 5.5:.1f}l5 9h-10z"/>',
            f'<path class="{kind}" d="M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z"/>',
        )
        self._parts.append(shapes[number % len(shapes)])

    def words(self, x: float, y: float, text: str, kind: str = "word", anchor: str = "start") -> None:
        """A line of text."""
        self._parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(text)}</text>')

    def lines(self, x: float, y: float, text: str, most: float, kind: str = "word", anchor: str = "start") -> int:
        """Text in lines of at most this width; how many there are."""
        parts = wrapped(text, max(4, int(most / LETTER)))
        for number, part in enumerate(parts):
            self.words(x, y + 12.5 * number, part, kind, anchor)
        return len(parts)

    def to_svg(self, alt: str, kind: str) -> str:
        """The picture, with its description for who cannot see it."""
        size = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" width="{self.width:.0f}" height="{self.height:.0f}"'
        return f'<svg class="{kind}" {size} role="img" aria-label="{_text(alt)}">{"".join(self._parts)}</svg>'


def wrapped(text: str, most: int) -> list[str]:
    """Words in lines of at most so many letters; a longer word is cut."""
    lines: list[str] = []
    for word in text.split():
        word = word if len(word) <= most else word[: most - 1] + "…"
        if lines and len(lines[-1]) + 1 + len(word) <= most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def _text(text: str) -> str:
    return escape(visible(text), quote=True)
