"""Cells of a line of outputs: which set of records serves each, and what another set could gain there at most.

In a cell, divide all densities by that of one position near it. What is left are exponentials of straight lines,
v_z(theta) (`SymmetricNoise.tilt`), convex all of them. Against the set c0 that serves the cell, another set c gains

    D(theta) = sum_z pi_z (1_c - 1_c0 - kappa_c + kappa_c0)(z) v_z(theta) = P(theta) - N(theta),

P and N the terms with positive and with negative coefficients. Both are convex, so P' and N' rise, and on [l, r]

    D <= D(l) + (r - l) (P'(r) - N'(l))_+      and      D <= D(r) + (r - l) (N'(r) - P'(l))_+.

With Laplace noise the v_z are of two kinds only, a constant and one exponential; D is then a straight line in that
exponential, and is largest at an end of the cell. (Without the kappas, for success instead of advantage, likewise.)

Cells are looked at in blocks of neighbours, and records that are farther from a block than noise reaches are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.numbers.noise import LaplaceNoise, SymmetricNoise
from dprisk.threat.reach import Reach
from dprisk.threat.threat import Threat
from dprisk.threat.windows import Windows
from dprisk.types import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-11  # of the optimum, for the whole partition
SMALLEST_SHARE = 1e-3  # of the tolerance is granted to every cell
BLOCK_CELLS = 1 << 18
UNSEEN = 1e-16  # mass of the noise beyond the distance at which records are left out
FAR = 9.0  # standard deviations beyond which a Gaussian has no mass that floats could add
LOPSIDED = 0.01  # a split that leaves nearly all on one side is followed by one in the middle: every cell shrinks
OUTGROWN = 50.0  # log of how far another density may outgrow that of the position that a cell is measured by
OFFSETS = np.array([0.0, 1.5, 3.0, 6.0, FAR])
LAPLACE_OFFSETS = np.array([1.0, 4.0, 16.0])


@dataclass(frozen=True)
class Cells:
    """Cells that were looked at: what each may miss, and which are to be split where."""

    left: FloatArray
    right: FloatArray
    defect: FloatArray
    choice: FloatArray  # a fingerprint of the best sets, equal for equal choices
    split: BoolArray
    where: FloatArray

    def halves(self) -> FloatArray:
        """Left ends, right ends, and whether to halve them next, of the two parts of each cell that is split."""
        left, middle, right = (part[self.split] for part in (self.left, self.where, self.right))
        share = (middle - left) / (right - left)
        one, two = (left, middle, share > 1 - LOPSIDED), (middle, right, share < LOPSIDED)
        return np.stack([one, two], axis=-1).reshape(3, -1).astype(float)


@dataclass(frozen=True)
class _End:
    """One end of each cell, in units of the density of the cell's position: what every set is worth there.

    `evidence` is the density of the output, `rise` the slope of each record's share in it, `steepest` the log of the
    largest density of any record.
    """

    worth: FloatArray
    evidence: FloatArray
    rise: FloatArray
    steepest: FloatArray
    reach: Reach

    @cached_property
    def slope(self) -> FloatArray:
        """The slope of what each set holds."""
        return self.reach.sums(self.rise)

    @cached_property
    def total(self) -> FloatArray:
        """The slope of the density of the output."""
        return np.asarray(self.rise.sum(axis=0))


@dataclass(frozen=True)
class Search:
    """One mechanism against one threat: evaluates cells. `is_whole` unless some records are left out."""

    mechanism: Additive
    noise: SymmetricNoise
    reach: Reach
    pi: FloatArray
    positions: FloatArray
    log_inside: FloatArray
    price: FloatArray
    double: BoolArray
    prints: FloatArray
    penalise: bool
    tolerance: float
    is_whole: bool = True

    @classmethod
    def of(cls, mechanism: Additive, noise: SymmetricNoise, threat: Threat, penalise: bool) -> Search:
        """The search for the advantage (`penalise`) or for the success."""
        reach, pi = threat.reach, threat.prior.weights[:, None]
        return cls(
            mechanism,
            noise,
            reach,
            pi,
            mechanism.positions,
            mechanism._log_inside,
            price=reach.sums(pi) if penalise else np.zeros((reach.guess.size, 1)),
            double=_equivalent(reach, mechanism.positions, threat.prior.weights),
            prints=np.random.default_rng(0).random(reach.guess.size),
            penalise=penalise,
            tolerance=TOLERANCE * (float(noise.variation(np.array(mechanism.spread))) if penalise else 1.0),
        )

    @property
    def straight(self) -> bool:
        """Whether what a set gains on another is largest at an end of a cell."""
        return isinstance(self.noise, LaplaceNoise)

    @property
    def block(self) -> int:
        """How many cells to look at together."""
        return max(1, BLOCK_CELLS // (self.pi.size + self.reach.guess.size))

    @cached_property
    def order(self) -> IntArray:
        """The records by their positions."""
        return np.argsort(self.positions, kind="stable")

    @cached_property
    def sight(self) -> float:
        """The distance beyond which the noise has no mass to speak of."""
        return float(-self.noise.quantile(np.array(UNSEEN)))

    def near(self, left: FloatArray, right: FloatArray) -> Search:
        """The same search for these cells only, without the records that are too far from all of them to matter.

        What that misses in all cells together is bounded by twice the mass of the noise beyond `sight`.
        """
        if self.mechanism.is_truncated or not isinstance(self.reach, Windows):
            return self
        seen = (self.positions >= left.min() - self.sight) & (self.positions <= right.max() + self.sight)
        seen[self._nearest((left + right) / 2)] = True
        if np.all(seen):
            return self
        rows = np.flatnonzero(seen)
        reach, sets = self.reach.narrowed(rows, np.lexsort((self.price[:, 0], self.double)))
        return replace(
            self,
            reach=reach,
            pi=self.pi[rows],
            positions=self.positions[rows],
            log_inside=self.log_inside[rows],
            price=self.price[sets],
            double=self.double[sets],
            prints=self.prints[sets],
            is_whole=False,
        )

    def first_cells(self) -> tuple[FloatArray, FloatArray]:
        """Cells small enough for the bounds to bite, none with a kink inside; what lies beyond holds no break."""
        edges = np.unique(np.clip(_first_edges(self.mechanism, self.noise), *self.mechanism.bounds))
        return edges[:-1], edges[1:]

    def look(self, left: FloatArray, right: FloatArray, halve: BoolArray) -> Cells:
        """Which sets serve these cells, what that may miss, and which cells to split where (`halve`: in the middle)."""
        inside = (left + right) / 2
        near = self._nearest(inside)
        centre = self.positions[near]
        ends = [self._end(at, near, inside) for at in (left, right)]
        best = self.reach.first_best(ends[0].worth + ends[1].worth)
        gain = [end.worth - self._spread(np.take_along_axis(end.worth, best, axis=0)) for end in ends]
        scale = self.noise.between(left - centre, right - centre) * np.exp(-self.log_inside[near])
        evidence = np.minimum(*(end.evidence for end in ends)) * scale
        granted = self.tolerance * np.maximum(evidence, SMALLEST_SHARE)
        outgrown = np.maximum(*(end.steepest for end in ends)) > OUTGROWN
        missed = np.maximum(self.reach.best(np.maximum(*gain)), 0.0) * scale
        open_cells = np.flatnonzero((missed.sum(axis=0) <= granted) & ~outgrown)
        if not self.straight and open_cells.size:  # the others are split anyway
            sup = self._sup(gain, ends, best, right - left, open_cells)
            missed[:, open_cells] = np.maximum(self.reach.best(sup), 0.0) * scale[open_cells]
        defect = missed.sum(axis=0)
        split = (defect > granted) | outgrown
        where = inside
        if np.any(split):
            group, width = np.argmax(missed, axis=0), right - left
            where = left + width * self._crossing(ends, group, width, self.noise.bend(centre, inside) * width)
            where = np.where((where > left) & (where < right) & ~outgrown & ~halve, where, inside)
            split &= (where > left) & (where < right)  # not if the cell is down to neighbouring floats
        choice = (self.prints[best] * np.arange(1, best.shape[0] + 1)[:, None]).sum(axis=0)
        return Cells(left, right, defect, choice, split, where)

    def _end(self, at: FloatArray, near: IntArray, inside: FloatArray) -> _End:
        exponent, slope = self.noise.tilt(self.positions[:, None], self.positions[near], at, inside)
        if self.mechanism.is_truncated:
            exponent += self.log_inside[near]
            exponent -= self.log_inside[:, None]
        steepest = exponent.max(axis=0)
        np.minimum(exponent, OUTGROWN, out=exponent)  # large arrays are used again: new ones cost as much as sums do
        tilted = np.exp(exponent)
        tilted *= self.pi
        slope *= tilted
        joint = tilted
        if self.penalise and self.is_whole:
            # The advantage does not change if all v_z are lowered by 1; then small differences keep their digits.
            joint = np.expm1(exponent, out=exponent)
            joint *= self.pi
        worth = self.reach.sums(joint) - self.price * joint.sum(axis=0)
        worth[self.double] = -np.inf
        return _End(worth, tilted.sum(axis=0), slope, steepest, self.reach)

    def _nearest(self, to: FloatArray) -> IntArray:
        """The record of the largest density: that of the nearest position, unless outputs are truncated."""
        if self.mechanism.is_truncated:
            density = self.noise.log_density(to - self.positions[:, None]) - self.log_inside[:, None]
            return np.asarray(np.argmax(density, axis=0))
        place = self.positions[self.order]
        after = np.clip(np.searchsorted(place, to), 1, max(1, place.size - 1))
        before = after - 1
        after = np.minimum(after, place.size - 1)
        return self.order[np.where(to - place[before] <= place[after] - to, before, after)]

    def _sup(
        self, gain: list[FloatArray], ends: list[_End], best: IntArray, width: FloatArray, cells: IntArray
    ) -> FloatArray:
        """A bound on D over some cells for every set, from its values and slopes at the ends."""
        best = best[:, cells]
        held = self.reach.union(best)
        dearer = self.price - self._spread(self.price[best, 0])
        up, down = [], []
        for end in ends:
            slope = end.slope[:, cells]
            both = self.reach.sums(end.rise[:, cells] * held)
            mine, other = slope - both, self._spread(np.take_along_axis(both, best, axis=0)) - both
            if self.penalise:
                rest = end.total[cells] - mine - other  # of the records in both sets or in neither
                mine *= 1 - dearer
                mine += np.maximum(-dearer, 0) * rest
                other *= 1 + dearer
                other += np.maximum(dearer, 0) * rest
            up.append(mine)
            down.append(other)
        from_left = gain[0][:, cells] + width[cells] * np.maximum(up[1] - down[0], 0)
        from_right = gain[1][:, cells] + width[cells] * np.maximum(down[1] - up[0], 0)
        return np.minimum(from_left, from_right)

    def _crossing(self, ends: list[_End], group: IntArray, width: FloatArray, stretch: FloatArray) -> FloatArray:
        """Where to split a cell, as a share of it: where the best set at one end meets that at the other.

        It is done for the group that has most to gain. With Laplace noise a + b exp(k theta) runs through the values
        at the ends, k times the width being `stretch`; otherwise it is the cubic through values and slopes.
        """
        pair = [np.take_along_axis(self.reach.first_best(end.worth), group[None, :], axis=0) for end in ends]

        def ahead(values: FloatArray) -> FloatArray:
            return np.asarray(np.subtract(*(np.take_along_axis(values, sets, axis=0)[0] for sets in pair)))

        left, right = (ahead(end.worth) for end in ends)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = left / (left - right)
            if self.straight:
                bent = np.logaddexp(np.log1p(-share), np.log(share) + stretch) / stretch
                share = np.where(np.abs(stretch) > 1e-8, bent, share)
            else:
                price = np.subtract(*(self.price[sets[0], 0] for sets in pair))
                fall = [width * (ahead(end.slope) - price * end.total) for end in ends]
                share = _root_of_cubic((left, right), fall, share)
        return np.where((share > 0) & (share < 1), share, 0.5)

    def _spread(self, of_group: FloatArray) -> FloatArray:
        """One row for each set from one for each group."""
        return of_group if self.reach.starts.size == 1 else of_group[self.reach.group]


def _root_of_cubic(value: tuple[FloatArray, FloatArray], slope: list[FloatArray], start: FloatArray) -> FloatArray:
    """A root in [0, 1] of the cubic with these values and slopes at 0 and 1, by Newton steps from `start`."""
    a, b = value
    three = 2 * (a - b) + slope[0] + slope[1]
    two = 3 * (b - a) - 2 * slope[0] - slope[1]
    root = start
    for _ in range(6):
        height = ((three * root + two) * root + slope[0]) * root + a
        root = np.clip(root - height / ((3 * three * root + 2 * two) * root + slope[0]), 0.0, 1.0)
    return root


def _first_edges(mechanism: Additive, noise: SymmetricNoise) -> FloatArray:
    """Points half way between positions, beyond which another density outgrows the nearest, and a few around them.

    With Laplace noise also the positions themselves, where the densities have their kinks.
    """
    place, width = np.unique(mechanism.positions), noise.width
    wide = np.flatnonzero(np.diff(place) > width)
    half = (place[wide] + place[wide + 1]) / 2
    edges = [half, np.array(mechanism.interval or ())]
    if isinstance(noise, LaplaceNoise):
        near = half[:, None] + width * np.r_[-LAPLACE_OFFSETS, LAPLACE_OFFSETS]
        edges += [place, near[(near > place[wide, None]) & (near < place[wide + 1, None])]]
    else:  # positions much closer than the noise is wide need no cells of their own
        few = place[np.unique(np.round(place / (width / 2)), return_index=True)[1]]
        middle = (few[:-1] + few[1:]) / 2
        around = few[:, None] + width * np.r_[-OFFSETS, OFFSETS]
        edges.append(np.clip(around, np.r_[-np.inf, middle][:, None], np.r_[middle, np.inf][:, None]).ravel())
    return np.concatenate(edges)


def _equivalent(reach: Reach, positions: FloatArray, pi: FloatArray) -> BoolArray:
    """Whether each set holds the same mass at every position as an earlier set of its group: as good in every cell."""
    place = np.unique(positions, return_inverse=True)[1]
    secret = np.random.default_rng(1).random((place.max() + 1, 2))
    prints = np.round(reach.sums(pi[:, None] * secret[place]), 13)
    _, first = np.unique(np.column_stack([reach.group, prints]), axis=0, return_index=True)
    double = np.ones(reach.guess.size, dtype=bool)
    double[first] = False
    return double
