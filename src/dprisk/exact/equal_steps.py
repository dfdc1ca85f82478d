"""Laplace noise on equally spaced positions, a uniform prior, guesses that may be some records off: few cells count."""

import math
from collections.abc import Callable

import numpy as np

from dprisk.exact.optimum import Optimum
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.numbers.noise import LaplaceNoise
from dprisk.threat.threat import Threat
from dprisk.threat.windows import Windows
from dprisk.types import AnyArray, BoolArray, FloatArray

UNEVEN = 1e-13  # by so much of their spread positions may miss equal steps
HALVINGS = 80


def equal_steps(mechanism: Additive, threat: Threat) -> Optimum | None:
    """Nothing known, uniform prior, a guess is right about the w records on either side of it; m >= 2w + 2 records.

    Let records be 0, 1, ..., m-1 at their own positions, f_z the density of the output for record z, T their sum, and
    K = 2w + 1. By Theorem 4.3, m RAD is the integral of the largest sum of u_z = f_z - T / m over a window, and m ReRo
    that of the largest sum of f_z. The windows of K records are the full ones; at the left end there are the first
    w + 1, ..., 2w records too, and as many at the right.

    ReRo. A shorter window is part of a full one. Of two neighbouring full windows the one is better whose centre is
    nearer, so with F the distribution function of the noise

        m ReRo = (m - 2w) (2 F(w + 1/2) - 1) + 2 (w + 1 - F(w + 1/2)).

    RAD. Outputs left of the middle are enough, by symmetry. There a short window at the right end is no better than the
    one of its length at the left, record by record. u_z rises with z up to the output and falls from there, and is
    positive for z in some [p, q]. So of the first L records, w + 1 <= L <= K, the best are L = q + 1, kept within these
    bounds, or w + 1 if p > w; but then their sum is negative, and that of the nearest K records is not, since the sum
    of all u_z is 0. What is left to compare are the first L records and the nearest full window, and where q >= 2w the
    full window is as good.

    f_z / T rises with the output as far as z: of the ratios f_y / f_z those with y > z stay and those with y < z fall.
    So z <= q from some output b_z on, which bisection finds. Between these, the positions and the points half way
    between them, the difference of the two candidates is a exp(t) + b exp(-t), t the output in units of the noise,
    which changes its sign once at most: bisection finds that too. All masses are sums of geometric series. QED.

    Where a point is off by d, the value is off by the order of d^2. None if the positions or the windows are others.
    """
    noise, m = mechanism.noise, mechanism.size
    w = _radius(threat)
    step = _step(mechanism.positions)
    if not (isinstance(noise, LaplaceNoise) and mechanism.is_open and w is not None and step is not None):
        return None
    line = _Line(m, step / noise.scale)
    inside = -math.expm1(-line.rate * (w + 0.5))  # 2 F(w + 1/2) - 1
    success = np.array([((m - 2 * w) * inside + 2 * (w + (1 - inside) / 2)) / m])

    end = min(2 * w + 0.5, (m - 1) / 2)
    edges, first, last = _cells(line, w, end)
    held = line.mass(first, last, edges).sum() + inside * ((m - 1) / 2 - end)
    whole = line.below(0, m - 1, edges)
    rest = m / 2 - whole[-1]  # of all records, outputs from `end` to the middle
    price = ((last - first + 1) * np.diff(np.r_[0.0, whole])).sum() + (2 * w + 1) * rest
    advantage = np.array([max(0.0, 2 * (held - price / m) / m)])
    error = UNEVEN * line.rate * m  # how far outputs move at most, over the noise
    return Optimum(advantage, success, None, right_by_group=np.array([2 * held / m]), error=error)


class _Line:
    """Records at 0, 1, ..., m-1 and Laplace noise of a rate: sums over runs of records, in closed form."""

    def __init__(self, size: int, rate: float) -> None:
        self.size, self.rate = size, rate

    def density(self, first: AnyArray | int, last: AnyArray | int, at: FloatArray) -> FloatArray:
        """sum exp(-rate |at - z|) over the records z from first to last."""
        left, right, near_left, near_right = self._split(first, last, at)
        return near_left * self._series(left) + near_right * self._series(right)

    def below(self, first: AnyArray | int, last: AnyArray | int, at: FloatArray) -> FloatArray:
        """sum Pr[output <= at | z] over the records z from first to last."""
        left, right, near_left, near_right = self._split(first, last, at)
        return left + (near_right * self._series(right) - near_left * self._series(left)) / 2

    def mass(self, first: AnyArray, last: AnyArray, edges: FloatArray) -> FloatArray:
        """sum Pr[output in a cell | z] over the records of each cell, which are bounded by edges from -infinity on."""
        starts = np.r_[0.0, self.below(first[1:], last[1:], edges[:-1])]
        return np.asarray(self.below(first, last, edges) - starts)

    def _split(self, first: AnyArray | int, last: AnyArray | int, at: FloatArray) -> tuple[FloatArray, ...]:
        """How many records lie at or left of a place and how many right of it, and exp(-distance) of the nearest."""
        split = np.clip(np.floor(at), np.asarray(first) - 1.0, last)  # the last record on the left
        return (
            split - first + 1,
            last - split,
            np.exp(-self.rate * np.maximum(at - split, 0.0)),
            np.exp(-self.rate * np.maximum(split + 1 - at, 0.0)),
        )

    def _series(self, count: FloatArray) -> FloatArray:
        """1 + exp(-rate) + ..., so many terms."""
        return np.asarray(np.expm1(-self.rate * count) / math.expm1(-self.rate))

    def gain(self, first: AnyArray | int, last: AnyArray | int, at: FloatArray) -> FloatArray:
        """sum u_z over the records from first to last."""
        price = (np.asarray(last) - first + 1) / self.size
        return self.density(first, last, at) - price * self.density(0, self.size - 1, at)


def _cells(line: _Line, w: int, end: float) -> tuple[FloatArray, AnyArray, AnyArray]:
    """The right ends of cells from -infinity to `end`, and the best window of each: its first and its last record."""
    short = np.arange(w + 1, 2 * w + 1)  # records that join the window at the left end one by one
    joins = _crossing(lambda at: line.gain(short, short, at), np.zeros(w), np.minimum(short, end))
    places = np.r_[np.arange(0.0, end), np.arange(0.5, end), joins[joins <= end], 0.0, end]
    edges = np.unique(np.clip(places, 0.0, end))
    joins = np.sort(joins)

    def candidates(left: FloatArray, right: FloatArray) -> tuple[AnyArray, AnyArray]:
        middle = np.where(np.isfinite(left), (left + right) / 2, -1.0)
        length = w + np.searchsorted(joins, middle)  # the last of the first few records
        length = np.where(middle < 0, w + np.count_nonzero(joins <= 0), length)
        return length, np.maximum(np.floor(middle + 0.5).astype(np.int64), w)

    def excess(few: AnyArray, centre: AnyArray, at: FloatArray) -> FloatArray:
        return line.gain(centre - w, centre + w, at) - line.gain(0, few, at)

    few, centre = candidates(edges[:-1], edges[1:])
    at_ends = [excess(few, centre, place) for place in (edges[:-1], edges[1:])]
    turns = (at_ends[0] < 0) & (at_ends[1] > 0) | (at_ends[0] > 0) & (at_ends[1] < 0)
    if turns.any():
        some = few[turns], centre[turns]
        sign = np.sign(at_ends[1][turns])
        found = _crossing(lambda at: sign * excess(*some, at), edges[:-1][turns], edges[1:][turns])
        edges = np.unique(np.r_[edges, found])
    lefts = np.r_[-np.inf, edges[:-1]]
    few, centre = candidates(lefts, edges)
    middle = np.where(np.isfinite(lefts), (lefts + edges) / 2, edges)
    is_full = excess(few, centre, middle) > 0
    return edges, np.where(is_full, centre - w, 0), np.where(is_full, centre + w, few)


def _crossing(function: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Where each of some functions becomes positive for good: `low` if it is there, infinity if not even at `high`."""
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    at_once, never = function(low) > 0, function(high) <= 0
    start = low.copy()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        positive: BoolArray = function(middle) > 0
        low, high = np.where(positive, low, middle), np.where(positive, middle, high)
    return np.where(at_once, start, np.where(never, np.inf, high))


def _radius(threat: Threat) -> int | None:
    """w if the prior is uniform, nothing is known and a guess is right about w neighbours on either side."""
    if not (threat.knows.is_none and threat.prior.is_uniform and isinstance(threat.reach, Windows)):
        return None
    reach, m = threat.reach, threat.prior.size
    w, records = int(reach.hi[0]) - 1, np.arange(m)
    if not (w > 0 and 2 * w + 2 <= m == reach.lo.size and np.array_equal(reach.order, records)):
        return None
    same = np.array_equal(reach.lo, np.maximum(records - w, 0)) and np.array_equal(
        reach.hi, np.minimum(records + w + 1, m)
    )
    return w if same else None


def _step(positions: FloatArray) -> float | None:
    """The distance of neighbours if the positions rise or fall in equal steps."""
    steps = positions.size - 1
    if steps < 1 or positions[0] == positions[-1]:
        return None
    even = np.linspace(positions[0], positions[-1], steps + 1)
    spread = abs(float(positions[-1] - positions[0]))
    return spread / steps if np.abs(positions - even).max() <= UNEVEN * spread else None
