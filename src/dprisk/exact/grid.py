"""A grid for records that are numbers: windows that guesses are right on, pieces between their ends, cells of outputs.

`certified.py` says what is bounded on it, and by what.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dprisk.mechanisms.numbers.interval import OnInterval
from dprisk.mechanisms.numbers.noise import LaplaceNoise
from dprisk.threat.density import Density
from dprisk.types import BoolArray, FloatArray, IntArray

CLOSER = 30  # halvings of the grid towards the guesses whose window ends at an end of the interval
BLOCK_CELLS = 1 << 17
FAR, BEYOND = 7.0, 3e-12  # standard deviations of a Gaussian that are looked at, and the mass beyond them


@dataclass(frozen=True)
class Look:
    """What cells hold.

    Cells x pieces: mass of the cell, density at its ends, at most and at least, second derivative at most, steepness in
    z. A column each: the width, what a density of 1 on the cell amounts to, what kinks inside the cell may add.
    """

    mass: FloatArray
    left: FloatArray
    right: FloatArray
    most: FloatArray
    least: FloatArray
    bend: FloatArray
    steep: FloatArray
    width: FloatArray
    scale: FloatArray
    peak: float  # the largest density of any record
    cell: tuple[FloatArray, FloatArray]  # its two ends, a column each
    kink: FloatArray | float = 0.0
    is_wide: BoolArray | bool = False  # cells that are too wide to be bounded by curvature
    times: float = 1.0  # what all that is found there is multiplied by


class Grid:
    """Windows, the pieces of the interval between their ends, and cells of outputs, `coarser` times as wide."""

    def __init__(self, mechanism: OnInterval, prior: Density, eta: float, points: int, coarser: float = 1.0) -> None:
        self.mechanism, self.noise, self.points, self.coarser = mechanism, mechanism.noise, points, coarser
        low, high = prior.low, prior.high
        lattice, guess = _guesses(low, high, eta, points)
        self.begin, self.end = np.maximum(guess - eta, low), np.minimum(guess + eta, high)
        self.edges = _distinct(np.concatenate([self.begin, self.end, lattice, prior.turns, [low, high]]))
        self.begin, self.end = (_nearest(self.edges, ends) for ends in (self.begin, self.end))
        self.cells = self._cells(_nearest(self.edges, lattice))
        self.lo, self.hi = np.searchsorted(self.edges, self.begin), np.searchsorted(self.edges, self.end)
        self.z, self.w = prior.nodes(self.edges)
        self.w = self.w * np.exp(-mechanism.log_inside(self.z))  # the density of an output is w f(theta - z)
        self.peak = float(np.exp(-mechanism.log_inside(self.z)).max())
        self.mass = prefix(prior.nodes(self.edges)[1].sum(axis=1))
        self.kappa = self.mass[self.hi] - self.mass[self.lo]
        self.step = np.maximum.reduce([np.diff(places) for places in (guess, self.begin, self.end)])
        self.upper_leads, self.lower_leads = self._shares(prior, self.step)
        # How far the mass of a window between two guesses may lie below that of both.
        piece = np.minimum(np.diff(self.mass[self.lo]), np.diff(self.mass[self.hi]))
        self.below = float((self.lower_leads * piece).max(initial=0.0))
        self.is_even = not (np.any(self.upper_leads) or np.any(self.lower_leads))
        self.steepness = _steepness(mechanism, self.edges)
        least = prior.extremes(self.edges)[0]
        self.stretch = [self._stretch(-largest_in_pieces(-least, at), at) for at in (self.lo, self.hi)]

    def _cells(self, lattice: FloatArray) -> FloatArray:
        """The edges of the cells of outputs; beyond them Laplace outputs all tell the same, Gaussian ones are rare."""
        if isinstance(self.noise, LaplaceNoise):
            return lattice
        low, high = lattice[0], lattice[-1]
        inside = np.linspace(low, high, 1 + math.ceil((lattice.size - 1) / self.coarser))
        if self.mechanism.truncated:
            return inside
        sigma, away = self.noise.sigma, [0.0]
        step = self.coarser * max(sigma, high - low) / self.points
        while away[-1] < FAR * sigma:  # cells may grow as their mass falls
            away.append(away[-1] + step * math.exp(min(3.0, (away[-1] / sigma) ** 2 / 6)))
        return np.concatenate([low - np.array(away[:0:-1]), inside, high + np.array(away[1:])])

    def _shares(self, prior: Density, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between neighbouring guesses, how far the share of mass behind one end of the window may lead the other's.

        The share behind the upper end leads by at most the first, that behind the lower end by at most the second.
        Where the density falls, a share of mass is ahead of the share of the way, where it rises behind it, by at most
        a quarter of the change of the density over its mean.
        """
        least, most = prior.extremes(self.edges)
        trend = prior.trend(self.edges)
        early, late = [], []
        for at in (self.hi, self.lo):
            spread = largest_in_pieces(most, at) + largest_in_pieces(-least, at)
            mass = np.diff(self.mass[at])
            with np.errstate(divide="ignore", invalid="ignore"):
                off = np.where(np.isfinite(spread), np.minimum(spread * step / (4 * mass), 1.0), 1.0)
            off = np.where(mass > 0, off, 0.0)
            early.append(np.where(largest_in_pieces(-trend, at) < 0, 0.0, off))
            late.append(np.where(largest_in_pieces(trend, at) < 0, 0.0, off))
        return np.minimum(early[0] + late[1], 1.0), np.minimum(late[0] + early[1], 1.0)

    def _stretch(self, least: FloatArray, at: IntArray) -> FloatArray:
        """How far an end of the window moves at most, in units of its piece's mass, while it gathers that mass."""
        mass = np.diff(self.mass[at])
        return np.asarray(np.divide(mass, least, out=np.full(mass.size, 1e300), where=least > 0))

    def looks(self) -> Iterator[Look]:
        """What all cells hold, in blocks."""
        is_laplace, step = isinstance(self.noise, LaplaceNoise), max(1, BLOCK_CELLS // self.edges.size)
        for start in range(0, self.cells.size - 1, step):
            block = self.cells[start : start + step + 1]
            yield self._laplace(block) if is_laplace else self._gaussian(block)
        if is_laplace and not self.mechanism.truncated:
            yield self._laplace_tails()

    @property
    def unseen(self) -> float:
        """The mass of outputs that no cell holds."""
        return 0.0 if isinstance(self.noise, LaplaceNoise) or self.mechanism.truncated else BEYOND

    def window_sums(self, pieces: FloatArray) -> FloatArray:
        """The sum over each window."""
        total = prefix(pieces)
        return np.asarray(total[:, self.hi] - total[:, self.lo])

    def _laplace(self, cells: FloatArray) -> Look:
        rate, left, right = 1 / self.noise.width, cells[:-1, None], cells[1:, None]
        width = right - left
        at = self._laplace_density(cells)
        own = self.w.sum(axis=1) * rate / 2
        inside = (self.edges[:-1] >= left) & (self.edges[1:] <= right)
        # Outside the cell a density falls by e^(-rate width) from its nearer end; a record inside has what is left.
        fall = -np.expm1(-rate * width) / rate
        nearer = np.maximum(at[:-1], at[1:])
        most = np.where(inside, own, nearer)
        return Look(
            mass=np.where(inside, self._mass_at_home(), nearer * fall),
            left=at[:-1],
            right=at[1:],
            most=most,
            least=np.minimum(at[:-1], at[1:]) * np.exp(-rate * width),
            bend=rate**2 * most,
            steep=self.steepness[None, :] + rate,
            width=width,
            scale=width,
            peak=self.peak * rate / 2,
            cell=(left, right),
            kink=rate * width / 2 * np.where(inside, own, 0.0).sum(axis=1, keepdims=True),
        )

    def _mass_at_home(self) -> FloatArray:
        """The mass that each piece sends into the cell it lies in."""
        cell = np.clip(np.searchsorted(self.cells, self.edges[:-1], side="right") - 1, 0, self.cells.size - 2)
        left, right = self.cells[cell][:, None], self.cells[cell + 1][:, None]
        return np.asarray((self.w * self.noise.between(left - self.z, right - self.z)).sum(axis=1))

    def _laplace_density(self, at: FloatArray) -> FloatArray:
        """int over each piece of pi p(at | z) dz; no place lies inside a piece."""
        rate = 1 / self.noise.width
        left_end, right_end = self.edges[:-1], self.edges[1:]
        before = (self.w * np.exp(-rate * (right_end[:, None] - self.z))).sum(axis=1)
        behind = (self.w * np.exp(-rate * (self.z - left_end[:, None]))).sum(axis=1)
        far = np.maximum(at[:, None] - right_end, left_end - at[:, None])
        weight = np.where(at[:, None] >= right_end, before, behind)
        return np.asarray(rate / 2 * weight * np.exp(-rate * far))

    def _laplace_tails(self) -> Look:
        """Outputs beyond the interval: all are worth what its end is, times a falling exponential."""
        at, width, ends = self._laplace_density(self.cells[[0, -1]]), self.noise.width, self.cells[[0, -1], None]
        steep, none = self.steepness[None, :] + 1 / width, np.zeros((2, 1))
        return Look(at, at, at, at, at, 0 * at, steep, none, none + 1, self.peak / width, (ends, ends), times=width)

    def _gaussian(self, cells: FloatArray) -> Look:
        """Densities are divided by that of a record in the middle of the cell; exponentials of straight lines stay."""
        sigma, left, right = self.noise.width, cells[:-1], cells[1:]
        middle, width = (left + right) / 2, right - left
        z, w = self.z.ravel(), self.w.ravel()
        apart = (z - middle[:, None]) / sigma
        ends = [
            w * np.exp(np.minimum(apart * (((at - middle) / sigma)[:, None] - apart / 2), 50.0)) for at in (left, right)
        ]
        pieces = np.arange(0, z.size, self.z.shape[1])

        def pool(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values, pieces, axis=1))

        at = [pool(end) for end in ends]
        reach = np.maximum(np.abs(right[:, None] - self.edges[:-1]), np.abs(left[:, None] - self.edges[1:]))
        column = width[:, None]
        return Look(
            mass=pool(w * self.noise.between(left[:, None] - z, right[:, None] - z)),
            left=at[0],
            right=at[1],
            most=np.maximum(*at),
            least=np.minimum(*at) * np.exp(-reach / sigma**2 * column),
            bend=np.maximum(*(pool(end * (apart / sigma) ** 2) for end in ends)),
            steep=reach / sigma**2 + self.steepness,
            width=column,
            scale=column / (sigma * math.sqrt(2 * math.pi)),
            peak=self.peak * math.exp(min(50.0, float(width.max() / sigma) ** 2 / 8)),
            cell=(left[:, None], right[:, None]),
            is_wide=width > 5 * sigma,
        )


def _guesses(low: float, high: float, eta: float, points: int) -> tuple[FloatArray, FloatArray]:
    """A lattice over the interval and guesses whose windows end on it.

    And closer and closer guesses where an end of the window meets an end of the interval: a prior may be steep there.
    """
    step = (high - low) / points
    if 2 * eta < high - low:
        step = 2 * eta / math.ceil(2 * eta / step)
    lattice = np.append(np.arange(low, high - step / 2, step), high)
    close = step * 2.0 ** -np.arange(CLOSER)
    near = np.concatenate([place + sign * close for place in (low + eta, high - eta) for sign in (-1, 1)])
    every = np.concatenate([lattice + eta, lattice - eta, near, [low, high, low + eta, high - eta]])
    return lattice, _distinct(every[(every >= low) & (every <= high)])


def _distinct(places: FloatArray) -> FloatArray:
    """Sorted, and without those that only rounding tells apart."""
    ordered = np.sort(places)
    return ordered[np.r_[True, np.diff(ordered) > 1e-13 * np.ptp(ordered)]]


def _nearest(grid: FloatArray, to: FloatArray) -> FloatArray:
    """The grid points that these places are, up to rounding."""
    place = np.clip(np.searchsorted(grid, to), 1, grid.size - 1)
    return np.where(to - grid[place - 1] < grid[place] - to, grid[place - 1], grid[place])


def _steepness(mechanism: OnInterval, edges: FloatArray) -> FloatArray:
    """The largest |d/dz log Pr[output in the interval]| on each piece, which is at one of its ends."""
    if not mechanism.truncated:
        return np.zeros(edges.size - 1)
    low, high, noise = mechanism.low, mechanism.high, mechanism.noise
    change = np.exp(noise.log_density(low - edges)) - np.exp(noise.log_density(high - edges))
    slope = np.abs(change) / noise.between(low - edges, high - edges)
    return np.asarray(np.maximum(slope[:-1], slope[1:]))


def prefix(values: FloatArray) -> FloatArray:
    """Sums of the first 0, 1, 2, ... entries along the last axis."""
    total = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=total[..., 1:])
    return total


def largest_in_pieces(values: FloatArray, at: IntArray) -> FloatArray:
    """The largest of values[at_j : at_(j+1)] for each j, 0 where that is empty."""
    padded = np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)
    largest = np.maximum.reduceat(padded, at[:-1], axis=-1)
    return np.asarray(np.where(at[1:] > at[:-1], largest, 0.0))
