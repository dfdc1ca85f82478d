"""References that are obviously right, and slow: the definitions written out."""

import itertools
import math

import numpy as np
from scipy.optimize import linprog

from dprisk.types import BoolArray, FloatArray, IntArray


def attack_values(
    channel: FloatArray, prior: FloatArray, groups: IntArray, success: BoolArray, attack: IntArray
) -> tuple[float, float]:
    """RAD (Definition 2.3) and ReRo of a deterministic attack; `attack[theta, x]` is its guess."""
    advantage = rero = 0.0
    for z, theta in itertools.product(range(prior.size), range(channel.shape[1])):
        if success[attack[theta, groups[z]], z]:
            marginal = sum(prior[y] * channel[y, theta] for y in range(prior.size))
            advantage += prior[z] * (channel[z, theta] - marginal)
            rero += prior[z] * channel[z, theta]
    return advantage, rero


def best_of_all_attacks(
    channel: FloatArray, prior: FloatArray, groups: IntArray, success: BoolArray
) -> tuple[float, float]:
    """The largest RAD and the largest ReRo over every deterministic attack."""
    shape = channel.shape[1], int(groups.max()) + 1
    guesses = itertools.product(range(success.shape[0]), repeat=shape[0] * shape[1])
    values = [attack_values(channel, prior, groups, success, np.reshape(guess, shape)) for guess in guesses]
    return max(value[0] for value in values), max(value[1] for value in values)


def theorem_4_3(channel: FloatArray, prior: FloatArray, groups: IntArray, success: BoolArray) -> tuple[float, float]:
    """The double sum of theorem 4.3, loop by loop: for channels too large for all attacks."""
    advantage = rero = 0.0
    for theta in range(channel.shape[1]):
        joint = prior * channel[:, theta]
        weight = joint - prior * joint.sum()
        for x in np.unique(groups):
            inside = success & (groups == x)
            advantage += max(weight[row].sum() for row in inside)
            rero += max(joint[row].sum() for row in inside)
    return advantage, rero


def hockey_stick(channel: FloatArray, epsilon: float) -> float:
    """The smallest delta, from the definition."""
    pairs = itertools.product(channel, channel)
    return max(float(np.maximum(one - np.exp(epsilon) * two, 0).sum()) for one, two in pairs)


def worst_left_out(prior: FloatArray, groups: IntArray, pairs: list[tuple[float, float]]) -> float:
    """The largest RAD of exact success over all channels that are (epsilon, delta)-DP for adding or removing a record.

    A linear program as it is defined: P[z, A] and a free Q[A] over every joint choice A of a guess for each group (or
    none, with knowledge), and for each pair (epsilon, delta), each record and both directions the excesses of one over
    e^epsilon times the other, which sum to at most delta.
    """
    size, members = prior.size, [np.flatnonzero(groups == group) for group in np.unique(groups)]
    silent: list[int | None] = [] if len(members) == 1 else [None]
    choices = list(itertools.product(*([*group.tolist(), *silent] for group in members)))
    right = np.array([[record in choice for record in range(size)] for choice in choices], dtype=float)
    worth = prior * (right - (right @ prior)[:, None])
    n_sets, eye = len(choices), np.eye(len(choices))
    rows, limits, n_excess = [], [], 2 * size * len(pairs)
    for number, (epsilon, delta, record, way) in enumerate(
        (epsilon, delta, record, way) for epsilon, delta in pairs for record in range(size) for way in (0, 1)
    ):
        one, other = (record, size) if way == 0 else (size, record)
        block = np.zeros((n_sets + 1, size + 1 + n_excess, n_sets))
        block[:n_sets, one], block[:n_sets, other] = eye, -math.exp(epsilon) * eye
        block[:n_sets, size + 1 + number], block[n_sets, size + 1 + number] = -eye, 1.0
        rows.append(block.reshape(n_sets + 1, -1))
        limits.append(np.append(np.zeros(n_sets), delta))
    total = np.hstack([np.kron(np.eye(size + 1), np.ones(n_sets)), np.zeros((size + 1, n_excess * n_sets))])
    cost = np.concatenate([-worth.T.ravel(), np.zeros((1 + n_excess) * n_sets)])
    solved = linprog(cost, np.vstack(rows), np.concatenate(limits), total, np.ones(size + 1), method="highs")
    assert solved.status == 0
    return -float(solved.fun)


def largest_chance(priors: FloatArray, epsilon: float, delta: float, right: BoolArray) -> float:
    """The largest chance that an attacker is right, over all (epsilon, delta)-DP mechanisms on several records.

    A linear program as it is defined: P[x, g] for every data set x (a row of `right`, people in order, the last varies
    fastest) and every guess g (a column); for any two data sets that differ in one record, the excesses of one over
    e^epsilon times the other sum to at most delta. `priors` has a row for each person.
    """
    people, values = priors.shape
    sets = list(itertools.product(range(values), repeat=people))
    weights = np.array([math.prod(priors[i, x[i]] for i in range(people)) for x in sets])
    near = [
        (a, b)
        for a, b in itertools.permutations(range(len(sets)), 2)
        if sum(u != v for u, v in zip(sets[a], sets[b], strict=True)) == 1
    ]
    guesses = right.shape[1]
    cells, eye = len(sets) * guesses, np.eye(guesses)
    rows = np.zeros((len(near), guesses + 1, cells + len(near) * guesses))
    for number, (a, b) in enumerate(near):
        rows[number, :guesses, a * guesses : (a + 1) * guesses] = eye
        rows[number, :guesses, b * guesses : (b + 1) * guesses] = -math.exp(epsilon) * eye
        place = slice(cells + number * guesses, cells + (number + 1) * guesses)
        rows[number, :guesses, place], rows[number, guesses, place] = -eye, 1.0
    limits = np.tile(np.append(np.zeros(guesses), delta), len(near))
    total = np.hstack([np.kron(np.eye(len(sets)), np.ones(guesses)), np.zeros((len(sets), len(near) * guesses))])
    cost = np.concatenate([-(weights[:, None] * right).ravel(), np.zeros(len(near) * guesses)])
    solved = linprog(cost, rows.reshape(-1, rows.shape[2]), limits, total, np.ones(len(sets)), method="highs")
    assert solved.status == 0
    return -float(solved.fun)
