"""Gaussian noise on means at right angles: the best guess is the largest of independent scores.

Suppose there are n_i >= 0 with dist(mu_i, mu_j)^2 = n_i^2 + n_j^2 for all i != j. All that counts of a Gaussian release
is the distances of its means, so record i may be taken to have its mean at n_i along an axis of its own. That is so for
orthogonal means of any lengths, for a simplex, for means of equal length with the same angle between any two, all up to
translation; for any two records, and for any three that form no obtuse triangle. With a_i = n_i / sigma and independent
T_i ~ N(0, 1), the likelihood ratios against the origin are exp(S_i), S_i = a_i T_i - a_i^2 / 2, so that for an attacker
who knows nothing and must be exact

    ReRo = sum_i pi_i int phi(t - a_i) prod_{j != i} Phi([log(pi_i / pi_j) + a_i t - a_i^2/2 + a_j^2/2] / a_j) dt
         = E max_i pi_i exp(S_i).

A record of probability 0 is never the best guess and drops out. One with a_i = 0 has the constant score S_i = 0; in the
first form its factor is 1 or 0. For a uniform prior on m records max_i pi_i exp(S_i) = exp(max_i S_i) / m and RAD is
ReRo - 1/m. For other priors RAD is not the largest of independent scores, and nothing is claimed here.
"""

import math

import numpy as np

from dprisk.exact.optimum import Optimum
from dprisk.mechanisms.vectors import VectorGaussian
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray

MOST_PAIRED = 1 << 12  # records up to which all pairs of them are looked at
AGREE = 1e-11  # how far, as a part of itself, a squared distance may be from the sum of two squares
SATURATED = 40.0  # records that far apart are told apart but for an error of Phi(-20)
NEGLIGIBLE = 1e-14  # below this a score is as good as constant
REACH = 9.0  # standard deviations to either side that are integrated over: all but 1e-18
NODES = 16  # of Gauss and Legendre on each panel, which is as wide as the steepest function on it


def right_angled_means(mechanism: VectorGaussian, threat: Threat) -> Optimum | None:
    """The exact optimum where the means are at right angles, the prior uniform and nothing known; otherwise None."""
    prior = threat.prior
    if not (threat.is_exact and threat.essence.knows.is_none and prior.is_uniform_on_support):
        return None
    if prior.support_size > MOST_PAIRED:
        return None
    lengths = right_angled_lengths(mechanism.means[prior.weights > 0])
    if lengths is None:
        return None
    advantage = largest_score_advantage(lengths / mechanism.noise)
    success = np.array([advantage + 1 / prior.support_size])
    return Optimum(np.array([advantage]), success, None, right_by_group=success)


def right_angled_lengths(means: FloatArray) -> FloatArray | None:
    """n with dist(mu_i, mu_j)^2 = n_i^2 + n_j^2 for all i != j, None if there is none.

    n_i is read off the triangle of i with its two nearest neighbours, where rounding hurts least.
    """
    from scipy.spatial.distance import cdist

    m = len(means)
    if m == 1:
        return np.zeros(1)
    square: FloatArray = cdist(means, means, "sqeuclidean")
    np.fill_diagonal(square, np.inf)
    if m == 2:
        return np.sqrt(np.array([square[0, 1], square[0, 1]]) / 2)
    one, two = np.argpartition(square, 1, axis=1)[:, :2].T
    each = np.arange(m)
    lengths = np.maximum(0.0, square[each, one] + square[each, two] - square[one, two]) / 2
    off = np.abs(lengths[:, None] + lengths - square)
    np.fill_diagonal(off, 0.0)
    np.fill_diagonal(square, 0.0)
    return np.sqrt(lengths) if np.all(off <= AGREE * square) else None


def largest_score_advantage(strengths: FloatArray) -> float:
    """RAD = (1/m) E[exp(max_i S_i) - 1], S_i = a_i T_i - a_i^2 / 2: one integral over s = max_i S_i.

    Its distribution function is P(s) = prod_i Phi(s/a_i + a_i/2), for s >= 0 only if some a_i is 0, and

        (e^s - 1) P'(s) = sign(s) (1 - e^-r) sum_i phi(r/a_i - a_i/2) / a_i * prod_{j != i} Phi(s/a_j + a_j/2)

    with r the size of s, which neither overflows nor cancels. At s > 0 only those a_i count for which s is within 9 a_i
    of a_i^2/2: the panels grow with s as the smallest of these does. The error is below 1e-13.
    """
    from scipy.special import log_ndtr

    some = strengths > NEGLIGIBLE
    a, count = np.unique(np.minimum(strengths[some], SATURATED), return_counts=True)
    if a.size == 0:
        return 0.0
    low = -REACH * a[0] - a[0] ** 2 / 2 if some.all() else 0.0
    edges = [low]
    while edges[-1] < a[-1] ** 2 / 2 + REACH * a[-1]:
        steepest = math.sqrt(REACH**2 + 2 * max(edges[-1], 0.0)) - REACH
        edges.append(edges[-1] + max(a[0], steepest))
    node, weight = np.polynomial.legendre.leggauss(NODES)
    left, half = np.array(edges[:-1])[:, None], np.diff(edges)[:, None] / 2
    places, weights = (left + half * (1 + node)).ravel(), (half * weight).ravel()
    total, step = 0.0, max(1, (1 << 18) // a.size)
    for start in range(0, places.size, step):
        s = places[start : start + step, None]
        below = log_ndtr(s / a + a / 2)
        others = np.exp((below @ count)[:, None] - below)
        density = np.exp(-((np.abs(s) / a - a / 2) ** 2) / 2) / (a * math.sqrt(2 * math.pi))
        gain = np.sign(s[:, 0]) * -np.expm1(-np.abs(s[:, 0])) * ((density * others) @ count)
        total += float(weights[start : start + step] @ gain)
    return total / strengths.size
