"""The exact optimum of summation with histogram encoding, by one integral."""

import math

import numpy as np

from dprisk.exact.optimum import Optimum
from dprisk.mechanisms.local.histogram import SHE
from dprisk.threat.threat import Threat

PANEL, NODES = 0.5, 16  # Gauss-Legendre panels: the integrand bends on the scale of 1
FLAT = 40.0  # e^-40 is lost in rounding


def histogram_encoding(mechanism: SHE, threat: Threat) -> Optimum:
    """SHE with a uniform prior, nothing known, exact reconstruction.

    With a = epsilon / 2 and A = e^-a / 2,

        RAD = (1/2 - A) [(1 - (1-A)^m) / (m A) - 2^(1-m) / m]
              + (1/2) int_0^a (e^(y-a) - e^-y) (1 - e^-y / 2)^(m-1) dy,         ReRo = RAD + 1/m.

    Proof. The best guess is the record whose entry, clipped to [0, 1], is largest, ties broken at random. A clipped
    entry is 0, lies at y/a + dy/a, or is 1 with probability A, e^(y-a) dy / 2, 1/2 if it is the true record's, and
    1/2, e^-y dy / 2, A if it is another's; another's is below y/a with probability 1 - e^-y / 2. The true record is
    chosen at 0 if all entries are 0 (and one of m is drawn), at y/a if all others are below, and at 1 with probability
    E[1/(1+B)] = (1 - (1-A)^m) / (m A), B binomial(m-1, A) counting the others at 1. Summing gives ReRo. If its entry
    followed the law of the others, the sum would be 1/m, which is what is subtracted, term by term. QED.

    No large terms cancel. The integrand is analytic, so Gauss-Legendre panels take it to rounding. Beyond
    y = ln m + 40 the power is 1, and what is left is integrated by hand.
    """
    m, a = threat.prior.size, mechanism.epsilon / 2
    tail = math.exp(-a) / 2
    tie = -math.expm1(m * math.log1p(-tail)) / (m * tail) if tail > 0 else 1.0
    atoms = -math.expm1(-a) / 2 * (tie - 2.0 ** (1 - m) / m)

    end = min(a, math.log(m) + FLAT)
    edges = np.linspace(0.0, end, math.ceil(end / PANEL) + 1)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges) / 2
    y = edges[:-1, None] + half[:, None] * (1 + nodes)
    integrand = (np.exp(y - a) - np.exp(-y)) * np.exp((m - 1) * np.log1p(-np.exp(-y) / 2))
    between = math.fsum((integrand @ weights * half).tolist())
    beyond = math.exp(-a) - math.exp(-end) - math.expm1(end - a)
    advantage = atoms + (between + beyond) / 2
    success = np.array([advantage + 1 / m])
    return Optimum(np.array([advantage]), success, np.full(m, advantage), right_by_group=success)
