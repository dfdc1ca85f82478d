"""The pictures of a report: bars side by side, curves over the noise, the taxonomy, an axis with what is certified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dprisk.report.svg import Drawing, wrapped

WIDE, NARROW = 680.0, 328.0
COLOURS = 8  # of the style sheet


@dataclass(frozen=True)
class Bar:
    """What one attacker gains: a share, how it is written, whether it is an upper bound, and what is tolerated."""

    who: str
    label: str
    share: float
    shown: str
    is_bound: bool
    tolerated: float | None


def bars(listed: Sequence[Bar], width: float) -> Drawing:
    """A bar for each, below its name and number, under the name of the attacker; a stroke where the tolerance is.

    Where a name does not fit beside its number, numbers have lines of their own.
    """
    room = [width - 6.6 * len(bar.shown) - 8 for bar in listed]
    below = 15.0 if any(_cut(bar.label, fits) != bar.label for bar, fits in zip(listed, room, strict=True)) else 0.0
    left, right, step, heads = 2.0, width - 2, 38.0 + below, len({bar.who for bar in listed})
    bottom = step * len(listed) + 24.0 * heads + 2
    sheet = Drawing(width, bottom + 18)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = left + tick * (right - left)
        sheet.line([(x, 4), (x, bottom)], "grid")
        sheet.words(x, bottom + 14, f"{1000 * tick:g}", "tick", {0.0: "start", 1.0: "end"}.get(tick, "middle"))
    y, who = 0.0, ""
    for bar in listed:
        if bar.who != who:
            sheet.words(left + 2, y + 18, _cut(bar.who, width), "head halo")
            y, who = y + 24, bar.who
        sheet.words(left + 2, y + 11, _cut(bar.label, width), "word halo")
        sheet.words(left + 2 if below else right, y + 11 + below, bar.shown, "number halo", "start" if below else "end")
        y += below
        sheet.box(left, y + 16, bar.share * (right - left), 13, "bar bound" if bar.is_bound else "bar")
        if bar.tolerated is not None:
            x = left + bar.tolerated * (right - left)
            sheet.line([(x, y + 13), (x, y + 32)], "limit")
        y += step - below
    return sheet


@dataclass(frozen=True)
class Line:
    """The advantage over the parameter of the noise; where the noise keeps the tolerance, if it is known."""

    label: str
    points: tuple[tuple[float, float], ...]
    kept: float | None


@dataclass(frozen=True)
class _Plane:
    """Where a value of the parameter and an advantage lie on a sheet; the parameter goes up by factors."""

    low: float
    high: float
    width: float
    height: float

    @property
    def ends(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of what is drawn."""
        return 40.0, 18.0, self.width - 12, self.height - 36

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The point for a value of the parameter and an advantage."""
        left, top, right, bottom = self.ends
        share = math.log(x / self.low) / math.log(self.high / self.low) if self.high > self.low else 0.5
        return left + share * (right - left), bottom - y * (bottom - top)

    def holds(self, x: float) -> bool:
        """Whether a value of the parameter is on the sheet."""
        return self.low <= x <= self.high


def curves(lines: Sequence[Line], parameter: str, now: float | None, tolerance: float | None, width: float) -> Drawing:
    """Curves over the parameter; where it is now, what is tolerated, and marks where noise keeps that."""
    values = [x for line in lines for x, _ in line.points]
    plane = _Plane(min(values), max(values), width, (0.5 if width >= WIDE else 0.62) * width)
    sheet = Drawing(width, plane.height)
    _axes(sheet, plane, parameter)
    left, top, right, bottom = plane.ends
    if tolerance is not None:
        y = plane.place(plane.low, tolerance)[1]
        sheet.line([(left, y), (right, y)], "limit")
        sheet.words(right, y - 4, "tolerated", "tick", "end")
    if now is not None and plane.holds(now):
        x = plane.place(now, 0)[0]
        sheet.line([(x, top - 4), (x, bottom)], "now")
        sheet.words(x, top - 7, f"now: {now:g}", "tick", "end" if x > width / 2 else "start")
    for number, line in enumerate(lines):
        points = [plane.place(x, y) for x, y in line.points]
        sheet.line(points, f"curve c{number % COLOURS}")
        sheet.mark(*points[-1 - number % 3 * 2], number, f"mark c{number % COLOURS}")
        if line.kept is not None and tolerance is not None and plane.holds(line.kept):
            sheet.mark(*plane.place(line.kept, tolerance), number, f"mark c{number % COLOURS}")
    return sheet


def _axes(sheet: Drawing, plane: _Plane, parameter: str) -> None:
    left, _, right, bottom = plane.ends
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = plane.place(plane.low, tick)[1]
        sheet.line([(left, y), (right, y)], "grid")
        sheet.words(left - 6, y + 4, f"{1000 * tick:g}", "tick", "end")
    for value in _ticks(plane.low, plane.high, 10 if plane.width >= WIDE else 6):
        x = plane.place(value, 0)[0]
        sheet.line([(x, bottom), (x, bottom + 4)], "axis")
        sheet.words(x, bottom + 16, f"{value:g}", "tick", "middle")
    sheet.line([(left, bottom), (right, bottom)], "axis")
    sheet.words((left + right) / 2, plane.height - 5, parameter, "tick", "middle")


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two ends, on a scale of factors."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [float(f"{step}e{decade}") for decade in decades for step in steps]
        if len(inside := [x for x in found if low * 0.999 <= x <= high * 1.001]) <= most:
            return inside
    return inside


@dataclass(frozen=True)
class Axis:
    """A dimension of the taxonomy with the names of its options."""

    title: str
    options: tuple[str, ...]


def taxonomy(axes: Sequence[Axis], ways: Sequence[Sequence[tuple[int, ...]]], narrow: bool) -> Drawing:
    """Parallel coordinates, as in Attaxonomy Figure 1: a line through all dimensions for each attacker.

    `ways` has for each attacker the options that it takes in each dimension; several mean every path through them. On
    a narrow page the dimensions lie below each other.
    """
    return _lying(axes, ways) if narrow else _standing(axes, ways)


def _standing(axes: Sequence[Axis], ways: Sequence[Sequence[tuple[int, ...]]]) -> Drawing:
    width, top, tall = 980.0, 52.0, 250.0
    step = width / len(axes)
    sheet = Drawing(width, top + tall + 24)
    for number, axis in enumerate(axes):
        x = step * (number + 0.5) - 24
        sheet.line([(x, top), (x, top + tall)], "rail")
        sheet.lines(step * number + 4, 14, axis.title, step - 6, "head")
    drawn = []
    for who, chosen in enumerate(ways):
        shift = 5.0 * (who - (len(ways) - 1) / 2)
        stops = []
        for number, options in enumerate(chosen):
            count, x = len(axes[number].options), step * (number + 0.5) - 24
            stops.append([(x, _stop(top, tall, option, count) + shift) for option in options])
        drawn.append(stops)
    _paths(sheet, drawn)
    for number, axis in enumerate(axes):
        x = step * (number + 0.5) - 24
        for option, name in enumerate(axis.options):
            y = _stop(top, tall, option, len(axis.options))
            parts = wrapped(name, int((step - 14) / 6.2))
            for row, part in enumerate(parts):
                sheet.words(x + 11, y + 4 + 12.5 * (row - (len(parts) - 1) / 2), part, "word halo")
    return sheet


def _stop(top: float, tall: float, option: int, count: int) -> float:
    return top + tall * (option + 0.5) / count


def _lying(axes: Sequence[Axis], ways: Sequence[Sequence[tuple[int, ...]]]) -> Drawing:
    width, step = NARROW, 92.0
    sheet = Drawing(width, step * len(axes) + 6)
    drawn = []
    for number, axis in enumerate(axes):
        y = step * number + 34
        sheet.words(2, y - 20, axis.title, "head halo")
        sheet.line([(2, y), (width - 2, y)], "rail")
    for who, chosen in enumerate(ways):
        shift = 5.0 * (who - (len(ways) - 1) / 2)
        stops = []
        for number, options in enumerate(chosen):
            count, y = len(axes[number].options), step * number + 34
            stops.append([(_stop(0, width, option, count) + shift, y) for option in options])
        drawn.append(stops)
    _paths(sheet, drawn)
    for number, axis in enumerate(axes):
        room = width / len(axis.options)
        for option, name in enumerate(axis.options):
            x = _stop(0, width, option, len(axis.options))
            sheet.lines(x, step * number + 51, name, room + 6, "word halo", "middle")
    return sheet


def _paths(sheet: Drawing, drawn: Sequence[Sequence[Sequence[tuple[float, float]]]]) -> None:
    for who, stops in enumerate(drawn):
        for here, there in pairwise(stops):
            for start in here:
                for end in there:
                    sheet.line([start, end], f"curve c{who % COLOURS}")
    for who, stops in enumerate(drawn):
        for points in stops:
            for x, y in points:
                sheet.mark(x, y, who, f"mark c{who % COLOURS}")


def between(certified: float, proved: float, claim: float, width: float) -> Drawing:
    """What is certified from below, what is proved from above, and what was claimed, on one axis of epsilon."""
    left, right, y = 10.0, width - 10, 58.0
    finite = [value for value in (certified, proved, claim) if math.isfinite(value)]
    most = 1.15 * max(*finite, 1e-9)
    sheet = Drawing(width, 112)

    def place(value: float) -> float:
        return left + min(value, most) / most * (right - left)

    sheet.line([(left, y), (right, y)], "axis")
    if certified <= proved:
        sheet.box(place(certified), y - 7, place(proved) - place(certified), 14, "between")
    for value, name, up in ((certified, "certified: at least", True), (proved, "proved: at most", False)):
        x = place(value)
        sheet.line([(x, y - 12), (x, y + 12)], "now" if up else "limit")
        shown = f"{name} {value:.4g}"
        anchor = "start" if x < width * 0.35 else "end" if x > width * 0.65 else "middle"
        sheet.words(x, y - 18 if up else y + 26, shown, "number", anchor)
    x = place(claim)
    sheet.words(x, y + 44, f"▲ claimed {claim:.4g}", "tick", "start" if x < width / 2 else "end")
    sheet.words(left, 100, "0", "tick")
    sheet.words(right, 100, "epsilon", "tick", "end")
    return sheet


def _cut(text: str, room: float) -> str:
    most = int(room / 6.2)
    return text if len(text) <= most else text[: most - 1] + "…"
