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

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dprisk.errors import ThreatError, as_number, require
from dprisk.exact.grid import Grid, Look, largest_in_pieces, prefix
from dprisk.exact.optimum import Optimum
from dprisk.mechanisms.numbers.interval import Effort, OnInterval
from dprisk.mechanisms.numbers.noise import LaplaceNoise
from dprisk.threat.density import Density
from dprisk.threat.threat import Threat
from dprisk.threat.window_masses import window_masses
from dprisk.types import FloatArray, IntArray

FIRST, MOST = 128, 5000  # grid points that are started with, and at most
ROUGH, CLOSE = 128, 1e-4  # grid points of a rough certificate; what a close one may lack, as a share of the advantage
MOST_RATIO = 16.0  # of the width of cells to that of pieces
QUADRATURE, ROUNDING = 0.02, 1e-12  # by how much bounds are moved outward: a share of their distance, and a constant


@dataclass(frozen=True)
class Bounds:
    """A number that lies between two others."""

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return self.upper - self.lower


@dataclass(frozen=True)
class Certificate:
    """Bounds on advantage, success and baseline, and the number of grid points that it took."""

    advantage: Bounds
    success: Bounds
    baseline: Bounds
    grid: int


@dataclass(frozen=True, eq=False)
class Enclosed(Optimum):
    """An optimum between certified bounds: its numbers are the upper ones."""

    certificate: Certificate

    @property
    def advantage_interval(self) -> tuple[float, float]:
        """Certified bounds on RAD."""
        return self.certificate.advantage.lower, self.certificate.advantage.upper

    @property
    def success_interval(self) -> tuple[float, float]:
        """Certified bounds on ReRo."""
        return self.certificate.success.lower, self.certificate.success.upper

    @property
    def gap(self) -> float:
        """How far the bounds are apart at most."""
        return max(self.certificate.advantage.gap, self.certificate.success.gap)

    def to_dict(self) -> dict[str, Any]:
        """The bounds, ready for JSON."""
        return {name: list(getattr(self, name)) for name in ("advantage_interval", "success_interval")}


def enclose(mechanism: OnInterval, threat: Threat) -> Enclosed:
    """The optimum for records that are numbers, as `certify` encloses it."""
    found = certify(mechanism, *threat.interval, effort=mechanism.effort)
    advantage, success = np.array([[found.advantage.upper], [found.success.upper]])
    return Enclosed(advantage, success, None, found, error=found.advantage.gap)


def certify(
    mechanism: OnInterval, prior: Density, within: float, gap: float = 1e-6, effort: Effort = "full"
) -> Certificate:
    """Bounds on RAD and ReRo that are at most `gap` apart, or as close as a grid of 5000 points brings them.

    With less effort they hold too. "rough" takes one small grid, so that they change smoothly with the noise, and
    "close" ends where they are as close as a ten-thousandth of the advantage.
    """
    eta, gap = as_number("The distance `within`", within), as_number("gap", gap)
    require(0 < eta < math.inf, f"The distance `within` must be finite and above 0, got {eta:g}.")
    require(gap >= 1e-9, f"The gap must be at least 1e-9, got {gap:g}.")
    require(
        (mechanism.low, mechanism.high) == (prior.low, prior.high),
        f"The mechanism takes records in [{mechanism.low:g}, {mechanism.high:g}], the prior lies on "
        f"[{prior.low:g}, {prior.high:g}]; they must be the same.",
        ThreatError,
    )
    length = prior.high - prior.low
    require(
        eta * 2 * MOST >= length,
        f"The distance `within` must be at least a {2 * MOST}th of the interval, {length / (2 * MOST):g}, got {eta:g}: "
        "closer guesses need a finer grid than there is.",
        ThreatError,
    )
    return _refined(mechanism, prior, eta, gap, effort)


@lru_cache(maxsize=8)  # a search comes back to where it was, and so does whoever asks for the risk that it found
def _refined(mechanism: OnInterval, prior: Density, eta: float, gap: float, effort: Effort) -> Certificate:
    """Grids as fine as it takes."""
    baseline = Bounds(*window_masses(prior, eta).heaviest)
    if effort == "rough":
        return _certificate(Grid(mechanism, prior, eta, ROUGH), baseline)
    points = FIRST  # enough if the noise is so small that no grid would resolve it
    coarser, share = _best_ratio(mechanism, prior, eta), CLOSE if effort == "close" else 0.0
    while True:
        found = _certificate(Grid(mechanism, prior, eta, points, coarser), baseline)
        apart, gap = max(found.advantage.gap, found.success.gap), max(gap, share * found.advantage.lower)
        if apart <= gap or points == MOST or mechanism.noise.width * MOST < prior.high - prior.low:
            return found
        points = min(MOST, math.ceil(points * max(1.3, 1.05 * math.sqrt(apart / gap))))


def _best_ratio(mechanism: OnInterval, prior: Density, eta: float) -> float:
    """How much wider than the pieces the cells of Gaussian outputs had best be.

    The bounds are a k^2 + b apart, a for cells as wide as the pieces and b for the windows, and take 1/k of the time:
    k = sqrt(b / a) takes the least for a given distance. Two small grids tell a and b, if they resolve the noise.
    Cells of Laplace outputs must end where pieces do.
    """
    if isinstance(mechanism.noise, LaplaceNoise) or mechanism.noise.width * FIRST < prior.high - prior.low:
        return 1.0
    blind = Bounds(0.0, 0.0)  # as if nothing were known of it
    even, twice = (_certificate(Grid(mechanism, prior, eta, FIRST, ratio), blind) for ratio in (1.0, 2.0))
    apart, more = (max(found.advantage.gap, found.success.gap) for found in (even, twice))
    cells = (more - apart) / 3
    return min(MOST_RATIO, max(1.0, math.sqrt(apart / cells - 1))) if 0 < cells < apart else 1.0


def _certificate(grid: Grid, baseline: Bounds) -> Certificate:
    """The two bounds of each number on this grid, for a given baseline."""
    sums = np.zeros((2, 2))
    for look in grid.looks():
        sums += _bound(grid, look)
    (advantage, more), (success, higher) = sums.tolist()
    risk, right = _outward(advantage, more + grid.unseen), _outward(success, higher + grid.unseen)
    # A guess that ignores the output has no advantage, and the best of them succeeds with the baseline.
    right = Bounds(max(right.lower, baseline.lower), min(1.0, max(right.upper, baseline.upper)))
    return Certificate(Bounds(max(risk.lower, 0.0), min(1.0, risk.upper)), right, baseline, grid.points)


def _bound(grid: Grid, look: Look) -> FloatArray:
    """The lower bound, and what the upper bound adds to it, for advantage and success."""
    sums = np.zeros((2, 2))
    served, bend = grid.window_sums(look.mass), prefix(look.bend)
    ends = [grid.window_sums(at) for at in (look.left, look.right)]
    seen = look.mass.sum(axis=1)
    loose = look.width**2 / 4 * bend[:, -1:] + 2 * look.kink + look.peak * _most_between(grid, look.steep.max(axis=0))
    for row, price in enumerate((grid.kappa, np.zeros_like(grid.kappa))):
        worth = served - price * seen[:, None]
        best = worth.argmax(axis=1)[:, None]
        gain = []
        for end, at in zip(ends, (look.left, look.right), strict=True):
            value = end - price * at.sum(axis=1, keepdims=True)
            gain.append(value - np.take_along_axis(value, best, axis=1))
        # Only windows that come near the best need a closer look.
        near = np.flatnonzero(np.any(np.maximum(*gain) + loose >= 0, axis=0))
        some = slice(near[0], near[-1] + 1)
        spare = _spare(grid, look, bend, best, price, some)
        spare += _between_guesses(grid, look, some)[row]
        more = sum(np.maximum((each[:, some] + spare).max(axis=1), 0) / 2 for each in gain) * look.scale[:, 0]
        most, more = worth.max(axis=1), np.where(look.is_wide, np.inf, more)
        all_there_is = (1 - max(float(price.min()) - grid.below, 0.0)) * seen  # which no window is worth more than
        sums[row] = most.sum(), np.minimum(more, all_there_is - most).sum()
    return sums * look.times


def _spare(grid: Grid, look: Look, bend: FloatArray, best: IntArray, price: FloatArray, some: slice) -> FloatArray:
    """How far the gain of each window over the best may rise above its chord inside the cell."""
    begin, end = grid.begin[some], grid.end[some]
    dearer = price[some] - price[best]
    spare: FloatArray = np.maximum(bend[:, grid.lo[some]] - np.take_along_axis(bend, grid.lo[best], axis=1), 0)
    spare += np.maximum(np.take_along_axis(bend, grid.hi[best], axis=1) - bend[:, grid.hi[some]], 0)
    spare += np.maximum(dearer, 0) * bend[:, -1:]
    spare *= look.width**2 / 8
    held = (grid.begin[best] <= look.cell[0]) & (grid.end[best] >= look.cell[1])
    meets = (begin < look.cell[1]) & (end > look.cell[0])
    return np.asarray(spare + look.kink * (np.maximum(-dearer, 0) + (meets & ~held)))


def _most_between(grid: Grid, steep: FloatArray) -> FloatArray:
    """For a density of at most 1, no less than `_between_guesses` gives, for each window."""
    gaps = np.zeros(grid.step.size)
    for at in (grid.lo, grid.hi):
        change = np.minimum(largest_in_pieces(steep, at) * grid.step, 50.0)
        gaps += np.diff(grid.mass[at]) * (np.expm1(change) / 4 + (0.0 if grid.is_even else 1.0))
    return _either_side(gaps[None, :])


def _between_guesses(grid: Grid, look: Look, some: slice) -> tuple[FloatArray, FloatArray]:
    """What a window between two of the grid may be worth beyond the better of its neighbours, for some windows.

    The first is for the advantage, the second for the success.
    """
    first, last = max(some.start - 1, 0), min(some.stop + 1, grid.lo.size)
    steps = slice(first, last - 1)
    step, leads = grid.step[steps], (grid.upper_leads[steps], grid.lower_leads[steps])
    bent = np.zeros((len(look.most), step.size))
    total = (look.least.sum(axis=1, keepdims=True), look.most.sum(axis=1, keepdims=True))
    advantage, success = [], []
    for ends, stretch in zip((grid.lo, grid.hi), grid.stretch, strict=True):
        at = ends[first:last]
        top = _sums_in_pieces(look.most, at)
        steepest = largest_in_pieces(look.steep, at)
        change = np.minimum(steepest * step, 50.0)
        with np.errstate(over="ignore"):
            smooth = steepest * np.exp(change) * stretch[steps] / 8
        bent += top * np.minimum(np.expm1(change) / 4, smooth)
        if not grid.is_even:
            mass = np.diff(grid.mass[at])
            gain, loss = top - mass * total[0], mass * total[1] - _sums_in_pieces(look.least, at)
            advantage.append(leads[0] * np.maximum(gain, 0) + leads[1] * np.maximum(loss, 0))
            success.append(leads[0] * top)
    crop = slice(some.start - first, some.stop - first)
    if grid.is_even:
        return (_either_side(bent)[:, crop],) * 2
    return _either_side(bent + np.minimum(*advantage))[:, crop], _either_side(bent + np.minimum(*success))[:, crop]


def _outward(lower: float, width: float) -> Bounds:
    """Bounds with what quadrature and rounding may have changed on either side."""
    spare = QUADRATURE * max(width, 0.0) + ROUNDING
    return Bounds(lower - spare, lower + max(width, 0.0) + spare)


def _either_side(gaps: FloatArray) -> FloatArray:
    """The larger of the gaps on either side of each window."""
    padded = np.pad(gaps, ((0, 0), (1, 1)))
    return np.maximum(padded[:, 1:], padded[:, :-1])


def _sums_in_pieces(values: FloatArray, at: IntArray) -> FloatArray:
    """The sums of values[:, at_j : at_(j+1)]."""
    return np.asarray(np.diff(prefix(values[:, at[0] : at[-1]])[:, at - at[0]], axis=1))
