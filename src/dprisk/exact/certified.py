"""Records that are any number in an interval: RAD and ReRo of Theorem 4.3 between two certified numbers.

Guess x is right within eta: on the window W_x = [x - eta, x + eta]. For an output theta the window is worth

    value(theta, W) = int_W pi_z (p(theta|z) - p(theta)) dz = U_W(theta) - kappa_W U(theta),

(for success without the second term), and the optimum is int max_x value(theta, W_x) dtheta. Both maximum and integral
are taken on a grid: the line of outputs is cut into cells, the windows end at grid points.

*From below.* Let the attacker see only the cell of the output, which is post-processing, and use windows of the grid
only: the sum over cells of max_W int_cell value.

*From above.* Let W0 serve the cell [l, r] of width w and D = value(., W) - value(., W0). D lies below its chord but for
the curvature of its negative terms N = U_(W0 - W) + (kappa_W - kappa_W0)_+ U, and for the kinks of Laplace densities at
records inside the cell:

    D <= chord + w^2/8 max N'' + rate w/2 rho(cell) (1{W meets the cell, W0 does not hold it} + (kappa_W0 - kappa_W)_+),

rho the density that records in the cell have at themselves (-D'' is integrated against Green's function, at most w/4).
A window between two of the grid is worth what linear interpolation in the prior mass gives but for

    (e^(L h) - 1)/4 (U_u + U_l) + min over u, l of [max(a, 0) (upper leads lower) + max(-a, 0) (lower leads upper)],

u and l the pieces, at most h long, that its two ends move in, a = U_u - kappa_u U (or the same for l) what a piece is
worth, L the Lipschitz constant of log p(theta|z) in z, and "leads" how far the share of mass behind one end may be
ahead of that behind the other. Everything is of second order in the grid, which is refined until the two numbers are as
close as asked.

*Integrals over a piece* are Gauss's with three nodes. Their error is of higher order; not bounded, but measured: below
a hundredth of the distance of the two bounds for every prior and noise tried, and far below that where the grid
resolves the prior. Both bounds are moved outward by twice that hundredth, and by what rounding may do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprisk.errors import ThreatError, as_number, require
from dprisk.mechanisms.numbers.interval import OnInterval
from dprisk.mechanisms.numbers.noise import LaplaceNoise
from dprisk.threat.density import Density
from dprisk.types import BoolArray, FloatArray, IntArray

FIRST, MOST = 128, 5000  # grid points that are started with, and at most
CLOSER = 30  # halvings of the grid towards the guesses whose window ends at an end of the interval
BLOCK_CELLS = 1 << 17
MOST_RATIO = 16.0  # of the width of cells to that of pieces
FAR, BEYOND = 7.0, 3e-12  # standard deviations of a Gaussian that are looked at, and the mass beyond them
QUADRATURE, ROUNDING = 0.02, 1e-12  # by how much bounds are moved outward: a share of their distance, and a constant


@dataclass(frozen=True)
class Bounds:
    """A number that lies between two others."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """How far the two are apart."""
        return self.upper - self.lower


@dataclass(frozen=True)
class Certificate:
    """Bounds on advantage, success and baseline, and the number of grid points that it took."""

    advantage: Bounds
    success: Bounds
    baseline: Bounds
    grid: int


def certify(mechanism: OnInterval, prior: Density, eta: float, width: float = 1e-6) -> Certificate:
    """Bounds on RAD and ReRo that are at most `width` apart, or as close as a grid of 5000 points brings them."""
    eta, width = as_number("The distance eta", eta), as_number("width", width)
    require(0 < eta < math.inf, f"For a continuous record the distance eta must be finite and above 0, got {eta:g}.")
    require(width >= 1e-9, f"The width must be at least 1e-9, got {width:g}.")
    require(
        (mechanism.low, mechanism.high) == (prior.low, prior.high),
        f"The mechanism takes records in [{mechanism.low:g}, {mechanism.high:g}], the prior lies on "
        f"[{prior.low:g}, {prior.high:g}]; they must be the same.",
        ThreatError,
    )
    length = prior.high - prior.low
    require(
        eta * 2 * MOST >= length,
        f"The distance eta must be at least a {2 * MOST}th of the interval, {length / (2 * MOST):g}, got {eta:g}: "
        "closer guesses need a finer grid than there is.",
        ThreatError,
    )
    points = FIRST  # enough if the noise is so small that no grid would resolve it
    coarser = _best_ratio(mechanism, prior, eta)
    while True:
        found = _Grid(mechanism, prior, eta, points, coarser).certificate()
        apart = max(found.advantage.width, found.success.width)
        if apart <= width or points == MOST or mechanism.noise.width * MOST < length:
            return found
        points = min(MOST, math.ceil(points * max(1.3, 1.05 * math.sqrt(apart / width))))


def _best_ratio(mechanism: OnInterval, prior: Density, eta: float) -> float:
    """How much wider than the pieces the cells of Gaussian outputs had best be.

    The bounds are a k^2 + b apart, a for cells as wide as the pieces and b for the windows, and take 1/k of the time:
    k = sqrt(b / a) takes the least for a given distance. Two small grids tell a and b, if they resolve the noise.
    Cells of Laplace outputs must end where pieces do.
    """
    if isinstance(mechanism.noise, LaplaceNoise) or mechanism.noise.width * FIRST < prior.high - prior.low:
        return 1.0
    even, twice = (_Grid(mechanism, prior, eta, FIRST, ratio).certificate() for ratio in (1.0, 2.0))
    apart, more = (max(found.advantage.width, found.success.width) for found in (even, twice))
    cells = (more - apart) / 3
    return min(MOST_RATIO, max(1.0, math.sqrt(apart / cells - 1))) if 0 < cells < apart else 1.0


class _Grid:
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
        self.mass = _prefix(prior.nodes(self.edges)[1].sum(axis=1))
        self.kappa = self.mass[self.hi] - self.mass[self.lo]
        self.step = np.maximum.reduce([np.diff(places) for places in (guess, self.begin, self.end)])
        self.upper_leads, self.lower_leads = self._shares(prior, self.step)
        # How far the mass of a window between two guesses may lie above that of both, or below.
        piece = np.minimum(np.diff(self.mass[self.lo]), np.diff(self.mass[self.hi]))
        self.above = float((self.upper_leads * piece).max(initial=0.0))
        self.below = float((self.lower_leads * piece).max(initial=0.0))
        self.is_even = not (np.any(self.upper_leads) or np.any(self.lower_leads))
        self.steepness = _steepness(mechanism, self.edges)
        least = prior.extremes(self.edges)[0]
        self.stretch = [self._stretch(-_largest_in_pieces(-least, at), at) for at in (self.lo, self.hi)]

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
            spread = _largest_in_pieces(most, at) + _largest_in_pieces(-least, at)
            mass = np.diff(self.mass[at])
            with np.errstate(divide="ignore", invalid="ignore"):
                off = np.where(np.isfinite(spread), np.minimum(spread * step / (4 * mass), 1.0), 1.0)
            off = np.where(mass > 0, off, 0.0)
            early.append(np.where(_largest_in_pieces(-trend, at) < 0, 0.0, off))
            late.append(np.where(_largest_in_pieces(trend, at) < 0, 0.0, off))
        return np.minimum(early[0] + late[1], 1.0), np.minimum(late[0] + early[1], 1.0)

    def _stretch(self, least: FloatArray, at: IntArray) -> FloatArray:
        """How far an end of the window moves at most, in units of its piece's mass, while it gathers that mass."""
        mass = np.diff(self.mass[at])
        return np.asarray(np.divide(mass, least, out=np.full(mass.size, 1e300), where=least > 0))

    def certificate(self) -> Certificate:
        """The two bounds of each number on this grid."""
        sums = np.zeros((2, 2))
        step = max(1, BLOCK_CELLS // self.edges.size)
        for start in range(0, self.cells.size - 1, step):
            block = self.cells[start : start + step + 1]
            sums += self._laplace(block) if isinstance(self.noise, LaplaceNoise) else self._gaussian(block)
        if isinstance(self.noise, LaplaceNoise) and not self.mechanism.truncated:
            sums += self._laplace_tails()
        unseen = 0.0 if isinstance(self.noise, LaplaceNoise) or self.mechanism.truncated else BEYOND
        (advantage, more), (success, higher) = sums.tolist()
        blind = float(self.kappa.max())
        risk, right = _outward(advantage, more + unseen), _outward(success, higher + unseen)
        least = _outward(blind, 0.0)
        # A guess that ignores the output has no advantage, and the best of them succeeds with the baseline.
        right = Bounds(max(right.lower, least.lower), min(1.0, right.upper))
        baseline = Bounds(least.lower, min(least.upper + self.above, right.upper))
        return Certificate(Bounds(max(risk.lower, 0.0), min(1.0, risk.upper)), right, baseline, self.points)

    def _laplace(self, cells: FloatArray) -> FloatArray:
        rate, left, right = 1 / self.noise.width, cells[:-1, None], cells[1:, None]
        width = right - left
        at = self._laplace_density(cells)
        own = self.w.sum(axis=1) * rate / 2
        inside = (self.edges[:-1] >= left) & (self.edges[1:] <= right)
        # Outside the cell a density falls by e^(-rate width) from its nearer end; a record inside has what is left.
        fall = -np.expm1(-rate * width) / rate
        mass = np.where(inside, self._mass_at_home(), np.maximum(at[:-1], at[1:]) * fall)
        most = np.where(inside, own, np.maximum(at[:-1], at[1:]))
        kink = rate * width / 2 * np.where(inside, own, 0.0).sum(axis=1, keepdims=True)
        least = np.minimum(at[:-1], at[1:]) * np.exp(-rate * width)
        steep = self.steepness[None, :] + rate
        look = _Look(
            mass=mass,
            left=at[:-1],
            right=at[1:],
            most=most,
            least=least,
            bend=rate**2 * most,
            kink=kink,
            steep=steep,
            width=width,
            scale=width,
            peak=self.peak * rate / 2,
            is_wide=np.zeros(len(mass), dtype=bool),
        )
        return self._bound(look, left, right)

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

    def _laplace_tails(self) -> FloatArray:
        """Outputs beyond the interval: all are worth what its end is, times a falling exponential."""
        at = self._laplace_density(self.cells[[0, -1]])
        column = np.zeros((2, 1))
        steep = self.steepness[None, :] + 1 / self.noise.width
        no = np.zeros(2, dtype=bool)
        look = _Look(at, at, at, at, at, 0 * at, column, steep, column, column + 1, self.peak / self.noise.width, no)
        ends = self.cells[[0, -1], None]
        return self._bound(look, ends, ends) * self.noise.width

    def _gaussian(self, cells: FloatArray) -> FloatArray:
        """Densities are divided by that of a record in the middle of the cell; exponentials of straight lines stay."""
        sigma, left, right = self.noise.width, cells[:-1], cells[1:]
        middle, width = (left + right) / 2, right - left
        z, w = self.z.ravel(), self.w.ravel()
        apart = (z - middle[:, None]) / sigma
        is_wide = width > 5 * sigma
        ends = [
            w * np.exp(np.minimum(apart * (((at - middle) / sigma)[:, None] - apart / 2), 50.0)) for at in (left, right)
        ]
        pieces = np.arange(0, z.size, self.z.shape[1])

        def pool(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values, pieces, axis=1))

        mass = pool(w * self.noise.between(left[:, None] - z, right[:, None] - z))
        at = [pool(end) for end in ends]
        bend = np.maximum(*(pool(end * (apart / sigma) ** 2) for end in ends))
        reach = np.maximum(np.abs(right[:, None] - self.edges[:-1]), np.abs(left[:, None] - self.edges[1:]))
        column = width[:, None]
        steep = reach / sigma**2 + self.steepness
        least = np.minimum(*at) * np.exp(-reach / sigma**2 * column)
        look = _Look(
            mass=mass,
            left=at[0],
            right=at[1],
            most=np.maximum(*at),
            least=least,
            bend=bend,
            kink=np.zeros_like(column),
            steep=steep,
            width=column,
            scale=column / (sigma * math.sqrt(2 * math.pi)),
            peak=self.peak * math.exp(min(50.0, float(width.max() / sigma) ** 2 / 8)),
            is_wide=is_wide,
        )
        return self._bound(look, left[:, None], right[:, None])

    def _bound(self, look: _Look, left: FloatArray, right: FloatArray) -> FloatArray:
        """The lower bound, and what the upper bound adds to it, for advantage and success."""
        sums = np.zeros((2, 2))
        served, bend = self._sum(look.mass), _prefix(look.bend)
        ends = [self._sum(at) for at in (look.left, look.right)]
        seen = look.mass.sum(axis=1)
        loose = (
            look.width**2 / 4 * bend[:, -1:] + 2 * look.kink + look.peak * self._most_between(look.steep.max(axis=0))
        )
        for row, price in enumerate((self.kappa, np.zeros_like(self.kappa))):
            worth = served - price * seen[:, None]
            best = worth.argmax(axis=1)[:, None]
            gain = []
            for end, at in zip(ends, (look.left, look.right), strict=True):
                value = end - price * at.sum(axis=1, keepdims=True)
                gain.append(value - np.take_along_axis(value, best, axis=1))
            # Only windows that come near the best need a closer look.
            near = np.flatnonzero(np.any(np.maximum(*gain) + loose >= 0, axis=0))
            some = slice(near[0], near[-1] + 1)
            spare = self._spare(look, bend, best, price, (left, right), some)
            spare += self._between_guesses(look, some)[row]
            more = sum(np.maximum((each[:, some] + spare).max(axis=1), 0) / 2 for each in gain) * look.scale[:, 0]
            most = worth.max(axis=1)
            more = np.where(look.is_wide, np.inf, more)
            all_there_is = (1 - max(float(price.min()) - self.below, 0.0)) * seen  # which no window is worth more than
            sums[row] = most.sum(), np.minimum(more, all_there_is - most).sum()
        return sums

    def _spare(
        self,
        look: _Look,
        bend: FloatArray,
        best: IntArray,
        price: FloatArray,
        cell: tuple[FloatArray, FloatArray],
        some: slice,
    ) -> FloatArray:
        """How far the gain of each window over the best may rise above its chord inside the cell."""
        begin, end = self.begin[some], self.end[some]
        dearer = price[some] - price[best]
        spare: FloatArray = np.maximum(bend[:, self.lo[some]] - np.take_along_axis(bend, self.lo[best], axis=1), 0)
        spare += np.maximum(np.take_along_axis(bend, self.hi[best], axis=1) - bend[:, self.hi[some]], 0)
        spare += np.maximum(dearer, 0) * bend[:, -1:]
        spare *= look.width**2 / 8
        held = (self.begin[best] <= cell[0]) & (self.end[best] >= cell[1])
        meets = (begin < cell[1]) & (end > cell[0])
        return np.asarray(spare + look.kink * (np.maximum(-dearer, 0) + (meets & ~held)))

    def _sum(self, pieces: FloatArray) -> FloatArray:
        """The sum over each window."""
        total = _prefix(pieces)
        return np.asarray(total[:, self.hi] - total[:, self.lo])

    def _most_between(self, steep: FloatArray) -> FloatArray:
        """For a density of at most 1, no less than `_between_guesses` gives, for each window."""
        gaps = np.zeros(self.step.size)
        for at in (self.lo, self.hi):
            change = np.minimum(_largest_in_pieces(steep, at) * self.step, 50.0)
            gaps += np.diff(self.mass[at]) * (np.expm1(change) / 4 + (0.0 if self.is_even else 1.0))
        return _either_side(gaps[None, :])

    def _between_guesses(self, look: _Look, some: slice) -> tuple[FloatArray, FloatArray]:
        """What a window between two of the grid may be worth beyond the better of its neighbours, for some windows.

        The first is for the advantage, the second for the success.
        """
        first, last = max(some.start - 1, 0), min(some.stop + 1, self.lo.size)
        steps = slice(first, last - 1)
        step, leads = self.step[steps], (self.upper_leads[steps], self.lower_leads[steps])
        bent = np.zeros((len(look.most), step.size))
        total = (look.least.sum(axis=1, keepdims=True), look.most.sum(axis=1, keepdims=True))
        advantage, success = [], []
        for ends, stretch in zip((self.lo, self.hi), self.stretch, strict=True):
            at = ends[first:last]
            top = _sums_in_pieces(look.most, at)
            steepest = _largest_in_pieces(look.steep, at)
            change = np.minimum(steepest * step, 50.0)
            with np.errstate(over="ignore"):
                smooth = steepest * np.exp(change) * stretch[steps] / 8
            bent += top * np.minimum(np.expm1(change) / 4, smooth)
            if not self.is_even:
                mass = np.diff(self.mass[at])
                gain, loss = top - mass * total[0], mass * total[1] - _sums_in_pieces(look.least, at)
                advantage.append(leads[0] * np.maximum(gain, 0) + leads[1] * np.maximum(loss, 0))
                success.append(leads[0] * top)
        crop = slice(some.start - first, some.stop - first)
        if self.is_even:
            return (_either_side(bent)[:, crop],) * 2
        both = (bent + np.minimum(*advantage), bent + np.minimum(*success))
        return _either_side(both[0])[:, crop], _either_side(both[1])[:, crop]


@dataclass(frozen=True)
class _Look:
    """Cells x pieces: mass of the cell, density at its ends, at most and at least,
    second derivative at most, steepness in z. A column each: what kinks inside the cell may add, the width, what a
    density of 1 on the cell amounts to.
    """

    mass: FloatArray
    left: FloatArray
    right: FloatArray
    most: FloatArray
    least: FloatArray
    bend: FloatArray
    kink: FloatArray
    steep: FloatArray
    width: FloatArray
    scale: FloatArray
    peak: float  # the largest density of any record
    is_wide: BoolArray  # cells that are too wide to be bounded by curvature


def _outward(lower: float, width: float) -> Bounds:
    """Bounds with what quadrature and rounding may have changed on either side."""
    spare = QUADRATURE * max(width, 0.0) + ROUNDING
    return Bounds(lower - spare, lower + max(width, 0.0) + spare)


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


def _prefix(values: FloatArray) -> FloatArray:
    """Sums of the first 0, 1, 2, ... entries along the last axis."""
    total = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=total[..., 1:])
    return total


def _either_side(gaps: FloatArray) -> FloatArray:
    """The larger of the gaps on either side of each window."""
    padded = np.pad(gaps, ((0, 0), (1, 1)))
    return np.maximum(padded[:, 1:], padded[:, :-1])


def _sums_in_pieces(values: FloatArray, at: IntArray) -> FloatArray:
    """The sums of values[:, at_j : at_(j+1)]."""
    return np.asarray(np.diff(_prefix(values[:, at[0] : at[-1]])[:, at - at[0]], axis=1))


def _largest_in_pieces(values: FloatArray, at: IntArray) -> FloatArray:
    """The largest of values[at_j : at_(j+1)] for each j, 0 where that is empty."""
    padded = np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)
    largest = np.maximum.reduceat(padded, at[:-1], axis=-1)
    return np.asarray(np.where(at[1:] > at[:-1], largest, 0.0))
