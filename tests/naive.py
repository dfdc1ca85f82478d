"""References that are obviously right, and slow: the definitions written out."""

import itertools

import numpy as np

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
