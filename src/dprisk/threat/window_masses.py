"""The lightest and the heaviest window of a density: what a guess of a number is right about before any release.

The window of guess x holds m(x) = F(x + eta) - F(x - eta). On a cell [a, b] of guesses the slope of m lies between
bounds D- and D+ that follow from the extremes of the density where the two ends of the window move, so

    m(x) <= min(m(a) + (x - a) D+, m(b) - (b - x) D-)    and    m(x) <= F(b + eta) - F(a - eta),

the latter where the density is infinite. Cells that may hold a larger mass than the largest found are halved until what
is left to gain is negligible. The lightest window is that of -m.
"""

from dataclasses import dataclass

import numpy as np

from dprisk.threat.density import Density
from dprisk.types import FloatArray

FIRST_CELLS, MOST_CELLS, ROUNDS = 256, 20_000, 60
NEGLIGIBLE = 1e-14


@dataclass(frozen=True)
class WindowMasses:
    """The smallest and the largest mass of a window, each between two numbers that differ by next to nothing."""

    lightest: tuple[float, float]
    heaviest: tuple[float, float]


def window_masses(density: Density, within: float) -> WindowMasses:
    """The lightest and the heaviest window that reaches `within` to either side of a guess in the interval."""
    low, high = (_outward(*_largest(density, within, sign), density.slack) for sign in (-1.0, 1.0))
    return WindowMasses((1 - low[1], 1 - low[0]), high)


def _outward(found: float, most: float, slack: float) -> tuple[float, float]:
    return max(0.0, found - slack), min(1.0, most + slack)


def _largest(density: Density, eta: float, sign: float) -> tuple[float, float]:
    """The largest mass (sign 1), or the largest of one minus it (sign -1): what was found, and what it is at most."""
    low, high = density.low, density.high
    lattice = np.linspace(low, high, FIRST_CELLS + 1)
    bends = np.array([low, high, *density.turns])
    edges = np.unique(np.clip(np.concatenate([lattice, bends + eta, bends - eta]), low, high))
    left, right, settled, best = edges[:-1], edges[1:], -np.inf, -np.inf
    for _ in range(ROUNDS):
        ends = [_mass(density, eta, sign, at) for at in (left, right)]
        best = max(best, *(float(end.max()) for end in ends))
        most = _most(density, eta, sign, left, right, ends)
        open_cells = most > best + NEGLIGIBLE
        settled = max(settled, float(most[~open_cells].max(initial=-np.inf)))
        left, right, most = left[open_cells], right[open_cells], most[open_cells]
        if not 0 < left.size <= MOST_CELLS:
            break
        middle = (left + right) / 2
        left, right = np.r_[left, middle], np.r_[middle, right]
        order = np.argsort(left)
        left, right = left[order], right[order]
    return best, max(best, settled, float(most.max(initial=-np.inf)))


def _mass(density: Density, eta: float, sign: float, at: FloatArray) -> FloatArray:
    """What the window around each guess holds, or what it leaves out."""
    inside = density.below(at + eta) - density.below(at - eta)
    return inside if sign > 0 else 1 - inside


def _most(
    density: Density, eta: float, sign: float, left: FloatArray, right: FloatArray, ends: list[FloatArray]
) -> FloatArray:
    """What a window of each cell of guesses holds, or leaves out, at most."""
    upper, lower = (_extremes(density, left + shift, right + shift) for shift in (eta, -eta))
    rise = upper[1] - lower[0], lower[1] - upper[0]  # of the mass held, and of that left out, at most
    steepest, fall = rise if sign > 0 else rise[::-1]
    at, width = ends, right - left
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.clip((at[1] - at[0] + width * fall) / (width * (steepest + fall)), 0.0, 1.0)
        tent = at[0] + width * steepest * share
    tent = np.where(steepest <= 0, at[0], np.where(fall <= 0, at[1], tent))
    outer, inner = (left - eta, right + eta), (right - eta, left + eta)
    begin, end = outer if sign > 0 else inner
    whole = density.below(end) - density.below(begin)
    return np.fmin(tent, whole if sign > 0 else 1 - np.maximum(whole, 0.0))


def _extremes(density: Density, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest density in each of some cells in rising order, each inside or outside the interval."""
    middle = (left + right) / 2
    inside = (middle > density.low) & (middle < density.high)
    least, most = np.zeros((2, left.size))
    edges = np.clip(np.column_stack([left[inside], right[inside]]).ravel(), density.low, density.high)
    if edges.size:
        found = density.extremes(np.maximum.accumulate(edges))
        least[inside], most[inside] = (each[::2] for each in found)
    return least, most
