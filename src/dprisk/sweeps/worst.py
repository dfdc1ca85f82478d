"""The worst of what was tried, and where another takes its place."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from dprisk.sweeps.point import Point

TIE, NOISE = 1e-12, 1e-14  # values that differ by less, relatively or at all, are as bad as each other


def worst_of(points: Sequence[Point], which: str = "advantage") -> Point:
    """The first of the points with the largest value."""
    return _as_bad(points, which)[0]


def worst_along(points: Sequence[Point], axis: str, along: str, which: str = "advantage") -> list[tuple[float, Any]]:
    """Which place on an axis has the largest value, from the lowest to the highest number along another.

    Of several that are as bad, it is the one that was the worst before.
    """
    found: list[tuple[float, Any]] = []
    cases: dict[float, list[Point]] = {}
    for point in points:
        cases.setdefault(point.along(along), []).append(point)
    for number, here in sorted(cases.items()):
        as_bad = [point.along(axis) for point in _as_bad(here, which)]
        found.append((number, found[-1][1] if found and found[-1][1] in as_bad else as_bad[0]))
    return found


def _as_bad(points: Sequence[Point], which: str) -> list[Point]:
    """All points with the largest value, as far as numbers can tell."""
    most = max(getattr(point, which) for point in points)
    return [point for point in points if getattr(point, which) >= most - max(TIE * abs(most), NOISE)]


def stretches(found: Sequence[tuple[float, Any]]) -> list[tuple[Any, float, float]]:
    """The same by stretches: a place, and the first and last number up to which it stays the worst."""
    runs = ((place, [number for number, _ in run]) for place, run in groupby(found, lambda pair: pair[1]))
    return [(place, numbers[0], numbers[-1]) for place, numbers in runs]
