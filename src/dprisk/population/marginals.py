"""Marginals of a table, published as counts with Gaussian noise.

A k-way marginal counts how many people have each combination of values in k columns. When one person's row is replaced
by another, one count of it falls by one and another rises by one: its L2 sensitivity is sqrt(2), for counts. (Swanberg
et al., Appendix A, divide by the number of people and keep the sqrt(2); shares have sqrt(2) / n.) All marginals
together have sqrt(2 * how many there are).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod, sqrt

import numpy as np

from dprisk.calibration import calibrate
from dprisk.errors import as_scale, as_whole, fail, require
from dprisk.guarantees import GaussianDP
from dprisk.types import FloatArray, IntArray

MOST_CELLS = 20_000_000  # counts in all marginals together


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMarginals:
    """Noisy counts: `counts[j]` has an axis for each of `groups[j]`, and `noise` is their standard deviation."""

    sizes: tuple[int, ...]
    ways: int
    groups: tuple[tuple[int, ...], ...]
    counts: tuple[FloatArray, ...]
    noise: float

    @property
    def mu(self) -> float:
        """They are one Gaussian mechanism together, of this mu, when one person's row is replaced."""
        return sqrt(2 * len(self.groups)) / self.noise

    def support(self, rows: IntArray) -> FloatArray:
        """For each row the sum of the noisy counts of the cells that it falls into."""
        found = np.zeros(len(rows))
        for group, counts in zip(self.groups, self.counts, strict=True):
            found += counts[tuple(rows[:, c] for c in group)]
        return found


def groups_of(sizes: Sequence[int], unknown: Sequence[int], ways: int) -> tuple[tuple[int, ...], ...]:
    """The groups of so many columns that hold an unknown one; what is published of the others tells nothing new."""
    columns, ways = len(sizes), as_whole("ways", ways)
    require(ways <= columns, f"ways, the columns of a marginal, must be at most the {columns} there are, got {ways}")
    groups = tuple(group for group in combinations(range(columns), ways) if not set(group).isdisjoint(unknown))
    cells = sum(prod(sizes[c] for c in group) for group in groups)
    if cells > MOST_CELLS:
        fail(f"These {len(groups)} marginals have {cells} counts; leave out columns of many values, or lower `ways`.")
    return groups


def noise_for(epsilon: float, delta: float, marginals: int) -> float:
    """The standard deviation that makes so many marginals together (epsilon, delta)-DP, replacing one person's row.

    Together they are one Gaussian mechanism, of mu = sqrt(2 * marginals) / noise.
    """
    require(delta > 0, "Gaussian noise keeps no epsilon with delta 0; give a small delta such as 1e-5.")
    mu = calibrate(GaussianDP(1.0), epsilon=(epsilon, delta)).value
    return sqrt(2 * as_whole("marginals", marginals)) / mu


def publish(
    rows: IntArray, sizes: Sequence[int], unknown: Sequence[int], ways: int, noise: float, rng: np.random.Generator
) -> NoisyMarginals:
    """All marginals of so many columns that hold an unknown one, each count with noise of this standard deviation."""
    noise = as_scale("noise", noise)
    groups = groups_of(sizes, unknown, ways)
    counts = []
    for group in groups:
        shape = tuple(sizes[c] for c in group)
        flat = np.ravel_multi_index(tuple(rows[:, c] for c in group), shape)
        exact = np.bincount(flat, minlength=prod(shape))
        counts.append((exact + noise * rng.standard_normal(exact.size)).reshape(shape))
    return NoisyMarginals(tuple(sizes), ways, groups, tuple(counts), noise)
