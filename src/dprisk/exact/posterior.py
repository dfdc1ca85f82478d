"""The most that an output can make an attacker believe that the record is z: the supremum of w_z P_z / sum_y w_y P_y.

Laplace noise: the output at z's own place has the largest ratio P_z / P_y against every y at once. Gaussian noise: the
sum of the P_y / P_z is a sum of exponentials of straight lines, hence convex, and its least value is found by halving;
towards an end at which z lies outermost it falls for ever, down to the share of the records that lie where z does.
"""

import math
from collections.abc import Callable

import numpy as np

from dprisk.mechanisms import SHE, Mechanism
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.numbers.noise import GaussianNoise, LaplaceNoise
from dprisk.mechanisms.vectors import VectorLaplace
from dprisk.types import FloatArray

HALVINGS = 200

LARGEST = 700.0  # the logarithm of a ratio that floats hold: beyond, the belief is 0 to all digits


def largest_posterior(mechanism: Mechanism, weights: FloatArray, record: int) -> float | None:
    """The largest belief in a record that an output of Laplace or Gaussian noise leaves; None for other mechanisms."""
    if weights[record] == 0:
        return 0.0
    if isinstance(mechanism, SHE):
        return _belief(mechanism, np.eye(mechanism.size)[[record]], weights, record)
    if isinstance(mechanism, VectorLaplace):
        return _belief(mechanism, mechanism.means[[record]], weights, record)
    if not isinstance(mechanism, Additive):
        return None
    low, high = mechanism.bounds
    ends = [low, high] if mechanism.is_clamped else []
    clamped = max((_belief(mechanism, np.array([end]), weights, record) for end in ends), default=0.0)
    if isinstance(mechanism.noise, LaplaceNoise):
        place = float(np.clip(mechanism.positions[record], np.nextafter(low, math.inf), np.nextafter(high, -math.inf)))
        return max(clamped, _belief(mechanism, np.array([place]), weights, record))
    if isinstance(mechanism.noise, GaussianNoise):
        return max(clamped, _gaussian(mechanism, mechanism.noise.sigma, weights, record))
    return None


def _belief(mechanism: Mechanism, output: FloatArray, weights: FloatArray, record: int) -> float:
    """What the attacker believes after an output that z can have made."""
    logs = mechanism.log_likelihood(output)[0]
    ratio = np.exp(np.minimum(logs[weights > 0] - logs[record], LARGEST))
    return min(1.0, float(weights[record] / (weights[weights > 0] @ ratio)))


def _gaussian(mechanism: Additive, sigma: float, weights: FloatArray, record: int) -> float:
    """The least of sum_y w_y exp(line_y) over the outputs, as a belief in z."""
    some = weights > 0
    place, low, high = float(mechanism.positions[record]), *mechanism.bounds
    slope = (mechanism.positions[some] - place) / sigma**2
    height = np.log(weights[some]) - (mechanism.positions[some] ** 2 - place**2) / (2 * sigma**2)
    height += mechanism._log_inside[record] - mechanism._log_inside[some]
    mine = math.log(weights[record])

    def falls(at: float) -> bool:
        line = slope * at + height
        return bool(np.sum(slope * np.exp(line - line.max())) < 0)

    if (slope.max() <= 0 and high == math.inf) or (slope.min() >= 0 and low == -math.inf):
        level = height[slope == 0]  # those where z is, which is where all others fall far below
    else:
        at = _lowest(falls, low, high, place, sigma)
        level = slope * at + height
    top = level.max()
    return float(min(1.0, math.exp(mine - top - math.log(np.exp(level - top).sum()))))


def _lowest(falls: Callable[[float], bool], low: float, high: float, start: float, step: float) -> float:
    """Where a convex function is least between two ends, one or both of which may be infinite."""
    left, right, reach = max(low, start - step), min(high, start + step), step
    left, right = min(left, high), max(right, low)
    while left > low and not falls(left):
        left, reach = max(low, left - reach), 2 * reach
    reach = step
    while right < high and falls(right):
        right, reach = min(high, right + reach), 2 * reach
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        left, right = (middle, right) if falls(middle) else (left, middle)
    return (left + right) / 2
