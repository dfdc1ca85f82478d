"""A sweep as a picture: what goes along the axis, what is a curve, what is a panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dprisk.errors import require
from dprisk.pictures.picture import GREY, Bar, Bars, Curve, Curves, Panel, Picture, colour
from dprisk.rounding import plain, significant_up
from dprisk.sweeps.point import Point
from dprisk.sweeps.ranges import MAGNITUDES
from dprisk.sweeps.worst import stretches, worst_along
from dprisk.values import Parameter

HEADINGS = {
    "advantage": "Advantage: right about participants, minus right about others",
    "success": "Success: how often the best attacker is right about a participant",
}
NAMED = ("subject", "prior")  # the axes whose places have names instead of numbers
KINDS = {"bound": "at most", "estimate": "estimated", "enclosed": "certified", "exact": "exact"}


def pictured(points: Sequence[Point], axes: Sequence[str], parameter: Parameter | None, which: str) -> Picture:
    """Curves over the parameter, or over the distance, or else bars.

    Of what else varies, the first (subject, prior, distance) makes the curves, and the others a panel for each
    combination.
    """
    require(which in HEADINGS, f"A picture shows the advantage or the success, not {which!r}.")
    require(len(points) > 0, "There is no case to draw.")
    varied = [axis for axis in axes if len(_split(points, [axis])) > 1]
    numeric = [axis for axis in varied if axis not in NAMED]
    if not numeric:
        return _bars(points, varied or axes, which)
    along = numeric[-1]  # the parameter is the last of the axes
    others = [axis for axis in varied if axis != along]
    by, apart = others[:1], others[1:]
    panels = tuple(
        Panel(_names(apart, inside[0]), tuple(_curves(inside, along, by, which)))
        for inside in _split(points, apart).values()
    )
    span = [float(point.along(along)) for point in points]
    logarithmic = min(span) > 0 and max(span) / min(span) >= MAGNITUDES
    return Curves(HEADINGS[which], _across(along, parameter), panels, logarithmic)


def _split(points: Sequence[Point], axes: Sequence[str]) -> dict[tuple[Any, ...], list[Point]]:
    """The points by their places on some axes, in their order."""
    found: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        found.setdefault(tuple(point.along(axis) for axis in axes), []).append(point)
    return found


def _curves(points: Sequence[Point], along: str, by: Sequence[str], which: str) -> Iterator[Curve]:
    """A curve for each place on the axis `by`, with that of its bounds; for one success, its baseline too."""
    worst = _worst(points, along, by, which)
    for number, (place, group) in enumerate(_split(points, by).items()):
        own = sorted(group, key=lambda point: float(point.along(along)))
        name = _names(by, own[0]) or _kind(own)
        yield _curve(own, along, which, name + worst.get(place, ""), colour(number), place in worst)
        if own[0].advantage_bound is not None:
            label = f"{name}, at most" if by else "at most, by its guarantee"
            yield _curve(own, along, f"{which}_bound", label, colour(number))
    baselines = {(float(point.along(along)), point.baseline) for point in points}
    if which == "success" and len(baselines) == len({x for x, _ in baselines}):
        x, y = zip(*sorted(baselines), strict=True)
        yield Curve("without the report", x, y, GREY, dashed=True)


def _worst(points: Sequence[Point], along: str, by: Sequence[str], which: str) -> dict[tuple[Any, ...], str]:
    """For priors and distances that are somewhere the worst: where."""
    if not by or by[0] == "subject":
        return {}
    found = stretches(worst_along(points, by[0], along, which))
    told: dict[tuple[Any, ...], str] = {}
    for number, (place, first, last) in enumerate(found):
        start, end = "" if number == 0 else f"from {first:g}", f"to {last:g}"
        where = f" {start} on" if number == len(found) - 1 else f" {start or 'up'} {end}"
        told[(place,)] = f" (worst{'' if len(found) == 1 else where})" if (place,) not in told else " (worst in parts)"
    return told


def _curve(points: Sequence[Point], along: str, which: str, label: str, colour: str, bold: bool = False) -> Curve:
    x = tuple(float(point.along(along)) for point in points)
    y = tuple(float(getattr(point, which)) for point in points)
    is_bound = which.endswith("_bound") or points[0].how == "bound"
    if is_bound or all(point.how != "estimate" for point in points):
        return Curve(label, x, y, colour, is_bound, bold)
    ends = [getattr(point, f"{which}_interval") or (getattr(point, which),) * 2 for point in points]
    return Curve(label, x, y, colour, False, bold, tuple(low for low, _ in ends), tuple(high for _, high in ends))


def _bars(points: Sequence[Point], axes: Sequence[str], which: str) -> Bars:
    """The largest first, which is the worst of what was tried."""
    order = sorted(points, key=lambda point: -float(getattr(point, which)))
    return Bars(HEADINGS[which], tuple(_bar(point, axes, which, point is order[0] != order[-1]) for point in order))


def _bar(point: Point, axes: Sequence[str], which: str, worst: bool) -> Bar:
    value, is_upper = float(getattr(point, which)), point.how in ("bound", "enclosed")
    shown = f"at most {significant_up(value, 3)}" if is_upper else plain(value)
    label = _names(axes, point) + (" (worst)" if worst else "")
    return Bar(label, value, shown, point.how == "bound", worst, getattr(point, f"{which}_interval"))


def _names(axes: Sequence[str], point: Point) -> str:
    places = ((axis, point.along(axis)) for axis in axes)
    return ", ".join(str(place) if axis in NAMED else f"{axis} {place:g}" for axis, place in places)


def _kind(points: Sequence[Point]) -> str:
    hows = {point.how for point in points}
    return KINDS[hows.pop()] if len(hows) == 1 else "exact or estimated"


def _across(along: str, parameter: Parameter | None) -> str:
    if along == "within" or parameter is None:
        return "within: how near a guess must be to count as right"
    return f"{parameter.name} (to the right: {'weaker' if parameter.rises else 'stronger'} noise)"
