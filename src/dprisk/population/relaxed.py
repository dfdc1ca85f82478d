"""The relaxed projection attack: rows of chances instead of rows of values, moved until their marginals fit.

Aydore et al. (2021) relax a table to one-hot rows that may be any distributions; Dick et al. (2023) rebuild tables so
from exact marginals; Swanberg et al. (section 6) start at the prior given the known columns, keep these frozen, and
attack noisy marginals. The least squares ||noisy counts - counts of the soft table||^2 are minimised by Adam, each
column of each row projected back onto the distributions after every step. The guess is each row's likeliest value in
every column.

With g_c = <x_ic, x_jc> for column c of two soft rows, the soft counts' squared length is the sum over pairs of rows of
e_k(g_1, ..., g_d), the elementary symmetric polynomial: the sum over groups of k columns of the products. So neither it
nor its gradient takes a look at the cells; only the products with the noisy counts do.
"""

from collections.abc import Sequence

import numpy as np

from dprisk.population.candidates import Candidates
from dprisk.population.marginals import NoisyMarginals
from dprisk.types import FloatArray, IntArray

STOPS, RATE = (1, 2, 5, 10, 20, 50, 100), 0.05
FADE, SQUARED_FADE, TINY = 0.9, 0.999, 1e-8  # Adam's constants as published

Soft = list[FloatArray]  # for each column: people x values


def relaxed_projection(
    published: NoisyMarginals, listed: Candidates, stops: Sequence[int] = STOPS, rate: float = RATE
) -> list[IntArray]:
    """The guessed rows, known columns as they are, after each of these numbers of steps.

    Under noise it matters when one stops: the best fit to the noisy counts is a fit to their noise.
    """
    soft = _at_the_prior(published.sizes, listed)
    fit = _Fit(published, listed.unknown, soft)
    moments = {column: (np.zeros_like(soft[column]), np.zeros_like(soft[column])) for column in listed.unknown}
    guessed = []
    for step in range(1, max(stops) + 1):
        slopes = fit.gradient(soft)
        for column in listed.unknown:
            mean, square = moments[column]
            mean += (1 - FADE) * (slopes[column] - mean)
            square += (1 - SQUARED_FADE) * (slopes[column] ** 2 - square)
            move = (mean / (1 - FADE**step)) / (np.sqrt(square / (1 - SQUARED_FADE**step)) + TINY)
            soft[column] = onto_distributions(soft[column] - rate * move)
        if step in stops:
            guessed.append(np.stack([column.argmax(axis=1) for column in soft], axis=1))
    return guessed


def onto_distributions(points: FloatArray) -> FloatArray:
    """The nearest distribution to each row (the projection onto the simplex, called sparsemax)."""
    falling = -np.sort(-points, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, points.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    return np.asarray(np.maximum(points - excess[np.arange(len(points)), last][:, None], 0))


def _at_the_prior(sizes: Sequence[int], listed: Candidates) -> Soft:
    """Known columns one-hot; of the others the chances of each value, given what is known."""
    weights = listed.weight / listed.weight.sum(axis=1, keepdims=True)
    soft = []
    for column, size in enumerate(sizes):
        chances = np.zeros((listed.people, size))
        for record in range(listed.people):
            chances[record] = np.bincount(listed.rows[record, :, column], weights[record], minlength=size)
        soft.append(chances)
    return soft


class _Fit:
    """Half the squared distance between noisy counts and those of a soft table, by its gradient.

    Noisy counts that share all columns but one stand side by side, so that one product serves them all; where these
    columns are known, it is made once.
    """

    def __init__(self, published: NoisyMarginals, unknown: tuple[int, ...], soft: Soft) -> None:
        self.ways, self.unknown = published.ways, unknown
        ends = np.cumsum([published.sizes[column] for column in unknown])
        self.parts = {c: slice(end - published.sizes[c], end) for c, end in zip(unknown, ends, strict=True)}
        beside: dict[tuple[int, ...], FloatArray] = {}
        for group, counts in zip(published.groups, published.counts, strict=True):
            for place, column in enumerate(group):
                if column in unknown:
                    others = group[:place] + group[place + 1 :]
                    turned = np.moveaxis(counts, place, -1).reshape(-1, counts.shape[place])
                    held = beside.setdefault(others, np.zeros((len(turned), int(ends[-1]))))
                    held[:, self.parts[column]] = turned
        self.known = np.zeros((len(soft[0]), int(ends[-1])))
        for others in [others for others in beside if set(others).isdisjoint(unknown)]:
            self.known += _products(soft, others) @ beside.pop(others)
        self.beside = beside

    def gradient(self, soft: Soft) -> dict[int, FloatArray]:
        """With respect to the chances in the unknown columns."""
        told = self.known.copy()
        for others, counts in self.beside.items():
            told += _products(soft, others) @ counts
        inner = [part @ part.T for part in soft]
        slopes = {}
        for column in self.unknown:
            rest = [g for c, g in enumerate(inner) if c != column]
            slopes[column] = symmetric_polynomial(rest, self.ways - 1) @ soft[column] - told[:, self.parts[column]]
        return slopes


def symmetric_polynomial(values: Sequence[FloatArray], degree: int) -> FloatArray:
    """e_k: the sum over all groups of k of these arrays of the products in each group, entry by entry."""
    sums = np.zeros((degree + 1, *values[0].shape))
    sums[0] = 1
    for value in values:
        for k in range(degree, 0, -1):
            sums[k] += value * sums[k - 1]
    return np.asarray(sums[degree])


def _products(soft: Soft, columns: Sequence[int]) -> FloatArray:
    """For each row the product chances of some columns, as one long axis."""
    found = np.ones((len(soft[0]), 1))
    for column in columns:
        found = (found[:, :, None] * soft[column][:, None, :]).reshape(len(found), -1)
    return found
