"""Where labels go: as near as possible to what they name, and never over each other."""

from collections.abc import Sequence
from itertools import pairwise

Points = Sequence[tuple[float, float]]  # of a line, from left to right
PAD, STEPS = 0.015, 60


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least `gap` apart, in the order of `wanted`, at the least sum of squared distances from there.

    All lie between `low` and `high` if there is room for them, and start at `low` if there is not. With the k-th
    smallest moved down by k gaps, the gaps become "in order", and the nearest numbers in order are the means of pooled
    neighbours (isotonic regression); cutting those at both ends keeps them the nearest.
    """
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    pools: list[tuple[float, int]] = []
    for rank, number in enumerate(order):
        mean, count = wanted[number] - rank * gap, 1
        while pools and pools[-1][0] >= mean:
            before, many = pools.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        pools.append((mean, count))
    top = max(low, high - (len(wanted) - 1) * gap)
    settled = [min(max(mean, low), top) for mean, count in pools for _ in range(count)]
    placed = [0.0] * len(wanted)
    for rank, number in enumerate(order):
        placed[number] = settled[rank] + rank * gap
    return placed


def above(lines: Sequence[Points], widths: Sequence[float], height: float) -> list[tuple[float, float]] | None:
    """The middle of the lower edge of a label on each line, all at one place, where no label touches any line.

    None if there is no such place. Of several, the one where labels are farthest from other lines. All sizes are shares
    of the width and height of the axes, which every line crosses from left to right.
    """
    half = max(widths, default=0.0) / 2 + PAD
    tried = (half + (1 - 2 * half) * step / STEPS for step in range(STEPS + 1))
    found = [(room, labels) for x in tried if (labels := _at(lines, widths, height, x)) and (room := labels[1]) > 0]
    return max(found, key=lambda pair: pair[0])[1][0] if found and half < 0.5 else None


def _at(
    lines: Sequence[Points], widths: Sequence[float], height: float, x: float
) -> tuple[list[tuple[float, float]], float]:
    """Labels at a place, and the least distance from a label to another line; 0 if one does not fit."""
    places, room = [], 1.0
    for number, (own, width) in enumerate(zip(lines, widths, strict=True)):
        left, right = x - width / 2, x + width / 2
        low, high = _extent(own, left, right)
        bottom, top = high + PAD / 2, high + PAD / 2 + height
        places.append((x, bottom))
        if top > 1 or high - low > height:
            return places, 0.0
        for other in (line for place, line in enumerate(lines) if place != number):
            below, over = _extent(other, left - PAD, right + PAD)
            room = min(room, max(below - top, low - over))
    return places, room


def _extent(line: Points, left: float, right: float) -> tuple[float, float]:
    """The lowest and highest point of a line between two places."""
    inside = [y for x, y in line if left < x < right]
    ends = [_height(line, end) for end in (left, right)]
    return min([*inside, *ends]), max([*inside, *ends])


def _height(line: Points, place: float) -> float:
    if place <= line[0][0]:
        return line[0][1]
    for (x, y), (beyond, then) in pairwise(line):
        if place <= beyond:
            return y + (then - y) * (place - x) / (beyond - x) if beyond > x else then
    return line[-1][1]
