"""Trade-off curves as knots: convex, falling, symmetric, and never above the truth.

A trade-off curve f(alpha) is the smallest false negative rate of any test that tells two neighbouring data sets apart
with false positive rate alpha. A lower curve means more risk, so every approximation here lies below.
"""

import numpy as np

from dprisk.types import FloatArray

Knots = tuple[FloatArray, FloatArray]
LARGEST = 700.0  # an epsilon whose exponential is a float
ADDED_UP = 1e-12  # what sums over all pairs of segments may lose
ROUNDING = 2.0**-50  # what sums of probabilities may lose


def lower_hull(alpha: FloatArray, beta: FloatArray) -> Knots:
    """The lower convex hull of points, as knots with rising alpha: a minimum of curves need not be convex."""
    order = np.lexsort((beta, alpha))
    hull: list[tuple[float, float]] = []
    for x, y in zip(alpha[order].tolist(), beta[order].tolist(), strict=True):
        if hull and x == hull[-1][0]:
            continue
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    knots = np.array(hull)
    return knots[:, 0], knots[:, 1]


def symmetric(alpha: FloatArray, beta: FloatArray) -> Knots:
    """The largest symmetric convex curve below the points: replacing one record works both ways."""
    return lower_hull(np.concatenate([alpha, beta, [0.0, 1.0]]), np.concatenate([beta, alpha, [1.0, 0.0]]))


def from_profile(epsilons: FloatArray, deltas: FloatArray) -> Knots:
    """The curve of a mechanism that is (epsilon_i, delta_i)-DP for every i (Dong, Roth, Su 2022, Prop. 2.5).

    f is the largest of the lines 1 - delta - e^eps alpha and their mirror images. `epsilons` must rise from 0.
    """
    # A line whose delta lies above the hull of the others is nowhere the largest.
    steep, delta = lower_hull(np.exp(epsilons), np.minimum.accumulate(np.clip(deltas, 0.0, 1.0)))
    meet = (delta[:-1] - delta[1:]) / (steep[1:] - steep[:-1])
    height = 1 - delta[:-1] - steep[:-1] * meet
    middle = (1 - delta[0]) / 2
    left = (meet <= middle) & (height >= middle)
    alpha = np.concatenate([[0.0], meet[left][::-1], [middle]])
    beta = np.concatenate([[1 - delta[-1]], height[left][::-1], [middle]])
    return symmetric(alpha, beta)


def below_samples(alpha: FloatArray, beta: FloatArray) -> Knots:
    """A curve below every convex curve through the given points.

    Between two points a convex curve lies below their chord, but above the chords of the neighbouring intervals,
    prolonged. Those are used.
    """
    alpha, beta = lower_hull(np.r_[0.0, alpha, 1.0], np.r_[1.0, beta, 0.0])
    if alpha.size < 3:  # the samples lie on the diagonal: nothing can be told apart
        return alpha, beta
    slope = np.diff(beta) / np.diff(alpha)
    x, y = alpha[1:-2], beta[1:-2]  # inner intervals: the chords on either side, prolonged, meet inside
    before, after = slope[:-2], slope[2:]
    gap = after - before
    meet = np.where(gap > 0, (y - beta[2:-1] + after * alpha[2:-1] - before * x) / np.where(gap > 0, gap, 1.0), x)
    depth = y + before * (meet - x)
    # The outer intervals have a neighbour on one side only, whose chord is prolonged to the axes.
    start = min(1.0, beta[1] - slope[1] * alpha[1])
    end = min(1.0, alpha[-2] - beta[-2] / slope[-2]) if slope[-2] < 0 else 1.0
    floor = max(0.0, beta[-2] + slope[-2] * (end - alpha[-2]))
    xs = np.r_[0.0, alpha[1:-1], meet, end, 1.0]
    ys = np.r_[start, beta[1:-1], depth, floor, 0.0]
    # Of two heights at one place the lower counts, and mirror images too: replacing works both ways.
    return lower_hull(np.r_[xs, ys], np.r_[np.maximum(ys, 0.0), xs])


def likeliest_first(table: FloatArray, record: int) -> Knots:
    """The envelope of the curves of one row of a channel against every other: outputs in order of likelihood ratio.

    Both error rates are added up from their small end, so that what is far below rounding keeps its digits.
    """
    own = np.broadcast_to(table[record], table.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # beyond all floats is first in any case
        ratio = np.where(table > 0, own / table, np.inf)
    order = np.argsort(-ratio, axis=1, kind="stable")
    alarm, hit = (np.take_along_axis(law, order, axis=1).astype(np.longdouble) for law in (table, own))
    alpha = np.cumsum(alarm, axis=1)
    beta = np.append(np.cumsum(hit[:, :0:-1], axis=1)[:, ::-1], np.zeros((len(hit), 1)), axis=1)
    return lower_hull(*(np.clip(rate.ravel().astype(float), 0.0, 1.0) for rate in (alpha, beta)))


def group_of(alpha: FloatArray, beta: FloatArray, size: int) -> Knots:
    """The curve of so many steps between neighbours: 1 - (1 - f) o (1 - f) o ... (Dong, Roth, Su 2022, Thm. 2.14).

    By doubling: eight steps are four and four.
    """
    ways = alpha, 1 - beta
    whole = ways if size % 2 else None
    while size := size // 2:
        ways = _one_after_the_other(ways, ways)
        if size % 2:
            whole = ways if whole is None else _one_after_the_other(whole, ways)
    places, reached = whole or ways
    return lower_hull(places, 1 - reached)


def _one_after_the_other(first: Knots, then: Knots) -> Knots:
    """Two curves 1 - f, one after the other: straight between bends of the first, and what leads to bends."""
    places, reached = first
    both = np.union1d(places, np.interp(then[0], reached, places))
    return both, np.interp(np.interp(both, places, reached), *then)


def product(one: Knots, two: Knots, most: int = 2000) -> Knots:
    """The curve of two independent releases, each with a curve of its own; of many corners the tangents at `most`.

    A piecewise linear curve is that of two distributions with an output for each piece. Of both releases there is an
    output for each pair of pieces, and delta(epsilon) = sum of (p - e^epsilon q)_+ over them.
    """
    (p1, q1), (p2, q2) = _outputs(*_thinned(*one)), _outputs(*_thinned(*two))
    upper, lower = np.outer(p1, p2).ravel(), np.outer(q1, q2).ravel()
    possible = (upper > 0) | (lower > 0)
    upper, lower = upper[possible], lower[possible]
    with np.errstate(divide="ignore"):
        loss = np.log(upper) - np.log(lower)
    order = np.argsort(-loss)
    loss, upper, lower = loss[order], np.append(0.0, np.cumsum(upper[order])), np.append(0.0, np.cumsum(lower[order]))
    bends = np.unique(loss[(loss > 0) & (loss < LARGEST)])
    if bends.size > most:
        bends = bends[np.linspace(0, bends.size - 1, most).astype(int)]
    epsilons = np.append(0.0, bends)
    above = np.searchsorted(-loss, -epsilons)  # outputs of a larger loss
    return from_profile(epsilons, np.clip(upper[above] - np.exp(epsilons) * lower[above] + ADDED_UP, 0.0, 1.0))


def _thinned(alpha: FloatArray, beta: FloatArray, most: int = 1000) -> Knots:
    """A curve below, of about twice so many corners at most: by some of its pieces, prolonged."""
    if alpha.size <= most:
        return alpha, beta
    steep = -np.diff(beta) / np.diff(alpha)
    some = np.flatnonzero(steep > 1)[::-1]
    some = some[np.linspace(0, some.size - 1, most).astype(int)]
    epsilons, deltas = np.log(steep[some]), 1 - beta[some] - steep[some] * alpha[some] + ROUNDING
    variation = float((1 - alpha - beta).max()) + ROUNDING
    return from_profile(np.append(0.0, epsilons), np.append(variation, deltas))


def _outputs(alpha: FloatArray, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two distributions that a piecewise linear curve tells apart: an output a piece, and one that gives all away."""
    upper, lower = np.append(1 - beta[0], -np.diff(beta)), np.append(0.0, np.diff(alpha))
    some = (upper > 0) | (lower > 0)
    return upper[some], lower[some]


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])
