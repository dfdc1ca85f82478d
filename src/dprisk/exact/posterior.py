"""The most that an output can make an attacker believe that the record is z: the supremum of w_z P_z / sum_y w_y P_y.

Laplace noise: the output at z's own place has the largest ratio P_z / P_y against every y at once. Gaussian noise: the
sum of the P_y / P_z is a sum of exponentials of straight lines, hence convex, and its least value is found by halving;
towards an end at which z lies outermost it falls for ever, down to the share of the records that lie where z does.
The same holds of discrete Gaussian noise, on the whole numbers beside that least value, and of the sum of several such
reports, which is all that they tell. What is released beside it changes the weights: there is a least value for each of
its outputs. All other mechanisms are looked at output by output, in logarithms.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from dprisk.mechanisms import SHE, Mechanism, OnAttribute, Product, Repeated
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.numbers.noise import GaussianNoise, LaplaceNoise
from dprisk.mechanisms.numbers.whole import DiscreteAdditive
from dprisk.mechanisms.numbers.whole_noise import WholeGaussian
from dprisk.mechanisms.vectors import VectorLaplace
from dprisk.types import AnyArray, FloatArray

HALVINGS = 200
CELLS = 1 << 20  # of a channel that are looked at at once
MOST_LINES = 1 << 12  # outputs beside a number with Gaussian noise that are gone through, half a millisecond each

LARGEST = 700.0  # the logarithm of a ratio that floats hold: beyond, the belief is 0 to all digits


def largest_posterior(mechanism: Mechanism, weights: FloatArray, record: int) -> float | None:
    """The largest belief in a record that an output leaves; None where that is not known."""
    if weights[record] == 0:
        return 0.0
    if isinstance(mechanism, SHE):
        return _belief(mechanism, np.eye(mechanism.size)[[record]], weights, record)
    if isinstance(mechanism, VectorLaplace):
        return _belief(mechanism, mechanism.means[[record]], weights, record)
    if isinstance(mechanism, Additive):
        return _on_a_line(mechanism, weights, record)
    return _of_parts(_parts(mechanism), weights, record)


def _belief(mechanism: Mechanism, output: FloatArray, weights: FloatArray, record: int) -> float:
    """What the attacker believes after an output that z can have made."""
    logs = mechanism.log_likelihood(output)[0]
    ratio = np.exp(np.minimum(logs[weights > 0] - logs[record], LARGEST))
    return min(1.0, float(weights[record] / (weights[weights > 0] @ ratio)))


def _on_a_line(mechanism: Additive, weights: FloatArray, record: int) -> float | None:
    """Of noise on a number, clamped or not."""
    low, high = mechanism.bounds
    ends = [low, high] if mechanism.is_clamped else []
    clamped = max((_belief(mechanism, np.array([end]), weights, record) for end in ends), default=0.0)
    if isinstance(mechanism.noise, LaplaceNoise):
        place = float(np.clip(mechanism.positions[record], np.nextafter(low, math.inf), np.nextafter(high, -math.inf)))
        return max(clamped, _belief(mechanism, np.array([place]), weights, record))
    if isinstance(mechanism.noise, GaussianNoise):
        line = _Bell(mechanism.positions, mechanism.noise.sigma, low, high)
        return max(clamped, line.belief(_log(weights) - mechanism._log_inside, record))
    return None


@dataclass(frozen=True)
class _Bell:
    """The sum of so many reports of a number with Gaussian noise, one number for each record.

    The outputs are those between two ends, or all `whole` numbers.
    """

    positions: AnyArray
    sigma: float
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    times: int = 1

    def belief(self, log_weights: FloatArray, record: int) -> float:
        """The largest belief in z over all outputs: by the least of sum_y w_y exp(line_y), lines counted from z."""
        some = log_weights > -np.inf
        place = self.positions[record]
        far = (self.positions[some] - place).astype(float)
        slope = far / self.sigma**2
        height = log_weights[some] - self.times * far * far / (2 * self.sigma**2)

        def falls(at: float) -> bool:
            line = slope * at + height
            return bool(np.sum(slope * np.exp(line - line.max())) < 0)

        low, high = self.low - float(place), self.high - float(place)
        if (slope.max() <= 0 and high == math.inf) or (slope.min() >= 0 and low == -math.inf):
            levels = [height[slope == 0]]  # those where z is, which is where all others fall far below
        else:
            at = _lowest(falls, low, high, self.sigma * math.sqrt(self.times))
            levels = [slope * near + height for near in ((math.floor(at), math.ceil(at)) if self.whole else (at,))]
        return max(min(1.0, math.exp(float(log_weights[record]) - _log_sum(level))) for level in levels)


def _lowest(falls: Callable[[float], bool], low: float, high: float, step: float) -> float:
    """Where a convex function is least between two ends, one or both of which may be infinite; looked for from 0."""
    left, right, reach = max(low, -step), min(high, step), step
    left, right = min(left, high), max(right, low)
    while left > low and not falls(left):
        left, reach = max(low, left - reach), 2 * reach
    reach = step
    while right < high and falls(right):
        right, reach = min(high, right + reach), 2 * reach
    for _ in range(HALVINGS):
        middle = (left + right) / 2
        if middle in (left, right):
            break
        left, right = (middle, right) if falls(middle) else (left, middle)
    return (left + right) / 2


def _parts(mechanism: Mechanism) -> list[Mechanism]:
    """What is released independently of each other, each in its simplest form."""
    if isinstance(mechanism, Product):
        return [*_parts(mechanism.first.sufficient()), *_parts(mechanism.second.sufficient())]
    if isinstance(mechanism, Repeated):
        return [Repeated(mechanism.mechanism.sufficient(), mechanism.times)]
    if isinstance(mechanism, OnAttribute):
        return [OnAttribute(part, mechanism.values) for part in _parts(mechanism.mechanism.sufficient())]
    return [mechanism]


def _of_parts(parts: list[Mechanism], weights: FloatArray, record: int) -> float | None:
    """Of independent releases: at most one whole number with Gaussian noise, the others with outputs to go through."""
    bells = [(part, bell) for part in parts if (bell := _bell(part)) is not None]
    others = [part for part in parts if _bell(part) is None]
    if len(bells) > 1 or any(part.merges_outputs for part in others):
        return None
    if not others:
        return bells[0][1].belief(_log(weights), record)
    rest = reduce(Product, others)
    if not (rest.is_listable if not bells else rest.n_outputs <= MOST_LINES):
        return None
    most = 0.0
    for columns in rest.log_channel(max(1, CELLS // rest.size)):
        logs = (columns + _log(weights)[:, None]).T
        logs = logs[logs[:, record] > -np.inf]
        if bells:
            most = max([most, *(bells[0][1].belief(row, record) for row in logs)])
        elif logs.size:
            most = max(most, float(np.exp((logs[:, record] - _log_sum(logs)).max())))
    return min(1.0, most)


def _bell(mechanism: Mechanism) -> _Bell | None:
    """The whole number with unbounded Gaussian noise that tells all that the output does, None if there is none."""
    if isinstance(mechanism, OnAttribute) and (inner := _bell(mechanism.mechanism)) is not None:
        return replace(inner, positions=inner.positions[mechanism.values])
    if isinstance(mechanism, Repeated) and (inner := _bell(mechanism.mechanism)) is not None:
        return replace(inner, times=inner.times * mechanism.times)
    if not (isinstance(mechanism, DiscreteAdditive) and isinstance(mechanism.noise, WholeGaussian)):
        return None
    return _Bell(mechanism.positions, mechanism.noise.sigma, whole=True) if mechanism.interval is None else None


def _log(weights: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _log_sum(logs: FloatArray) -> Any:
    """The log of the sums of what these are the logarithms of, along the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return np.log(np.exp(logs - top).sum(axis=-1)) + top[..., 0]
