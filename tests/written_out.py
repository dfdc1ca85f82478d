"""Every constructor of a mechanism over its whole range, beside its channel written out from the definition.

Channels are logs of probabilities, records x outputs, so that nothing underflows. The parameters include what is rarely
tried: no privacy and no noise, intervals that only touch the positions or miss them, one record, records that coincide.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import laplace, norm

from dprisk import GRR, OLH, OUE, SUE, Gaussian, Laplace, Matrix, SubsetSelection
from dprisk.mechanisms import (
    BLH,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Geometric,
    LocalHashing,
    Mechanism,
    OnAttribute,
    PostProcessed,
    Product,
    Repeated,
    UnaryEncoding,
)
from dprisk.types import FloatArray

Written = tuple[Mechanism, FloatArray]
EPSILONS = [0.0, 1e-9, 1e-5, 0.01, 0.5, 1.0, 3.0, 9.0, 36.0, 100.0, 699.0, 701.0, 746.0, 1000.0, 1491.0, 1e4, 1e5]
CHANCES = [0.0, 1e-300, 1e-12, 0.1, 0.5, 0.9, 1 - 1e-12, 1.0]
SCALES = [1e-3, 0.02, 0.1, 0.5, 1.0, 3.0, 5.0, 20.0]
FEW_OUTPUTS = 3000


def log(chance: float) -> float:
    return math.log(chance) if chance > 0 else -math.inf


def normalised(logs: FloatArray) -> FloatArray:
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))


def bits(size: int, on: float, off: float, other_on: float, other_off: float) -> FloatArray:
    """Independent bits, by the logs of the chances of the own bit and of any other."""
    chances = [(other_off, other_on), (off, on)]
    words = np.array(list(itertools.product([0, 1], repeat=size)))
    return np.array([[sum(chances[i == z][bit] for i, bit in enumerate(word)) for word in words] for z in range(size)])


@st.composite
def local(draw: st.DrawFn) -> Written:
    size, epsilon = draw(st.integers(1, 4)), draw(st.sampled_from(EPSILONS))
    kind: Any = draw(st.sampled_from(["GRR", "SUE", "OUE", "unary", "hashing", "BLH", "OLH", "subset"]))
    if kind == "GRR":
        return GRR(size, epsilon), normalised(-epsilon * (1 - np.eye(size)))
    if kind == "SUE":
        right, wrong = -np.logaddexp(0, -epsilon / 2), -np.logaddexp(0, epsilon / 2)
        return SUE(size, epsilon), bits(size, right, wrong, wrong, right)
    if kind == "OUE":
        return OUE(size, epsilon), bits(size, log(0.5), log(0.5), -np.logaddexp(0, epsilon), -np.logaddexp(0, -epsilon))
    if kind == "unary":
        p, q = draw(st.sampled_from(CHANCES)), draw(st.sampled_from(CHANCES))
        return UnaryEncoding(size, p, q), bits(size, log(p), log(1 - p), log(q), log(1 - q))
    if kind == "subset":
        size = max(size, 2)
        members = draw(st.integers(1, size - 1))
        sets = list(itertools.combinations(range(size), members))
        table = np.array([[0.0 if z in chosen else -epsilon for chosen in sets] for z in range(size)])
        return SubsetSelection(size, epsilon, members), normalised(table)
    if kind == "OLH":
        epsilon = min(epsilon, 600.0)  # beyond, the number of hash values is no float
    made: LocalHashing = BLH(size, epsilon) if kind == "BLH" else OLH(size, epsilon)
    if kind == "hashing":
        made = LocalHashing(size, epsilon, draw(st.integers(2, 6)))
    others = math.log(made.hash_range - 1)
    right = -np.logaddexp(0, others - epsilon)
    values = math.log(made.hash_range)
    return made, bits(size, right, others - epsilon + right, -values, others - values)


@st.composite
def exponential(draw: st.DrawFn) -> Written:
    size, epsilon = draw(st.integers(1, 5)), draw(st.sampled_from(EPSILONS))
    gap = np.abs(np.arange(size)[:, None] - np.arange(size))
    kind = draw(st.sampled_from(["line", "ring", "table"]))
    made: Mechanism
    if kind == "line":
        made, utility = Exponential.on_line(size, epsilon), -gap.astype(float)
    elif kind == "ring":
        made, utility = Exponential.on_ring(size, epsilon), -np.minimum(gap, size - gap).astype(float)
    else:
        rows = st.lists(st.integers(-3, 3), min_size=3, max_size=3)
        utility = np.array(draw(st.lists(rows, min_size=size, max_size=size)), dtype=float)
        utility *= draw(st.sampled_from([1e-3, 1.0, 1e4]))
        made = Exponential(utility, epsilon)
    reach = float(np.ptp(utility, axis=0).max())
    return made, normalised(utility * (epsilon / (2 * reach) if reach > 0 else 0.0))


def on_whole_numbers(
    positions: list[int], log_weight: Callable[[Any], Any], interval: tuple[int, int] | None, ends: str, far: int
) -> FloatArray:
    """Noise on whole numbers, out to where it has no weight that floats could add."""
    low, high = min(positions) - far, max(positions) + far
    if interval:
        low, high = min(low, interval[0]), max(high, interval[1])
    outputs = np.arange(low, high + 1)
    logs = np.array([log_weight(outputs - place) for place in positions])
    if interval and ends == "truncate":
        return normalised(logs[:, (outputs >= interval[0]) & (outputs <= interval[1])])
    logs = normalised(logs)
    if not interval:
        return logs
    shown = np.clip(outputs, *interval)
    return np.array([logsumexp(logs[:, shown == value], axis=1) for value in np.unique(shown)]).T


@st.composite
def whole(draw: st.DrawFn) -> Written:
    kind = draw(st.sampled_from(["laplace", "gaussian", "geometric"]))
    ends: Any = draw(st.sampled_from(["clamp", "clamp", "truncate"]))
    if kind == "geometric":
        size, epsilon = draw(st.integers(1, 5)), max(draw(st.sampled_from(EPSILONS)), 0.01)
        given = draw(st.sampled_from([None, 0.5, 3.0]))
        rate = epsilon / (given or max(size - 1, 1))
        table = on_whole_numbers(
            list(range(size)), lambda k: -rate * np.abs(k), (0, size - 1), ends, min(20_000, int(60 / rate) + 60)
        )
        return Geometric(size, epsilon, given, ends), table
    positions = draw(st.lists(st.integers(-6, 6), min_size=1, max_size=5))
    start = draw(st.integers(-10, 10))
    anywhere = start, start + draw(st.integers(0, 8))
    ends_of = min(positions), max(positions)
    touching = [(ends_of[1], ends_of[1] + draw(st.integers(0, 6))), (ends_of[0] - draw(st.integers(0, 6)), ends_of[0])]
    interval = draw(st.sampled_from([None, anywhere, *touching, ends_of, (ends_of[1] + 9, ends_of[1] + 12)]))
    scale = draw(st.sampled_from(SCALES))
    if kind == "laplace":
        made: Mechanism = DiscreteLaplace(positions, scale=scale, interval=interval, ends=ends)
        return made, on_whole_numbers(positions, lambda k: -np.abs(k) / scale, interval, ends, int(60 * scale) + 60)
    made = DiscreteGaussian(positions, scale, interval=interval, ends=ends)
    return made, on_whole_numbers(positions, lambda k: -((k / scale) ** 2) / 2, interval, ends, int(40 * scale) + 60)


@st.composite
def tables(draw: st.DrawFn) -> Written:
    size = draw(st.integers(1, 5))
    entries = st.sampled_from([0.0, 1e-300, 1e-12, 0.1, 1.0, 1.0, 3.0])
    rows = np.array(draw(st.lists(st.lists(entries, min_size=3, max_size=3), min_size=size, max_size=size)))
    rows[:, 0] += 1e-3
    rows /= rows.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return Matrix(rows), np.log(rows)


SINGLE = st.one_of(local(), exponential(), whole(), tables())


def both(one: FloatArray, two: FloatArray) -> FloatArray:
    return np.asarray((one[:, :, None] + two[:, None, :]).reshape(len(one), -1))


@st.composite
def combined(draw: st.DrawFn) -> Written:
    """Views, products, repetitions and post-processing of the others."""
    mechanism, logs = draw(SINGLE)
    kind = draw(st.sampled_from(["view", "product", "repeat", "map"]))
    seen = draw(st.lists(st.integers(0, mechanism.size - 1), min_size=1, max_size=4))
    if kind == "view":
        return OnAttribute(mechanism, seen), logs[seen]
    if kind == "product":
        other, more = draw(st.one_of(local(), whole()))
        also = [place % other.size for place in range(len(seen))]
        if logs.shape[1] * more.shape[1] <= FEW_OUTPUTS:
            return Product(OnAttribute(mechanism, seen), OnAttribute(other, also)), both(logs[seen], more[also])
    few = mechanism.n_outputs == logs.shape[1] and logs.shape[1] ** 2 <= FEW_OUTPUTS
    if kind == "map" and few and isinstance(mechanism, Matrix | GRR | Exponential | Geometric):
        images = np.array(draw(st.lists(st.integers(0, 2), min_size=logs.shape[1], max_size=logs.shape[1])))
        with np.errstate(divide="ignore"):
            merged = [logsumexp(logs[:, images == image], axis=1) for image in np.unique(images)]
        return PostProcessed(mechanism, images), np.array(merged).T
    if few and mechanism.n_outputs**2 <= FEW_OUTPUTS:
        return Repeated(mechanism, 2), both(logs, logs)
    return mechanism, logs


def on_a_line(mechanism: Laplace | Gaussian) -> FloatArray:
    """Noise on a line in many narrow cells: post-processing, so its risk is a little smaller."""
    law, far = (laplace, 40) if isinstance(mechanism, Laplace) else (norm, 10)
    width = mechanism.noise.width
    steps = np.r_[np.linspace(-far, far, 801), np.linspace(-3, 3, 601)] * width
    place = mechanism.positions
    edges = np.unique(np.r_[(place[:, None] + steps).ravel(), place, np.add.outer(place, place).ravel() / 2])
    if mechanism.interval:
        low, high = mechanism.interval
        edges = np.unique(np.r_[edges[(edges > low) & (edges < high)], np.linspace(low, high, 1001)])
    u = (edges - place[:, None]) / width
    start, end = u[:, :-1], u[:, 1:]
    start, end = np.where(start > 0, -end, start), np.where(start > 0, -start, end)  # the lower tail has all its digits
    below, above = law.logcdf(start), law.logcdf(end)
    with np.errstate(divide="ignore"):
        inside = above + np.log(-np.expm1(np.minimum(below - above, 0.0)))
    if mechanism.is_truncated:
        return normalised(inside)
    return np.column_stack([law.logcdf(u[:, 0]), inside, law.logsf(u[:, -1])])


@st.composite
def lines(draw: st.DrawFn) -> Written:
    positions = draw(st.lists(st.sampled_from([-2.0, 0.0, 1e-9, 1.0, 1.0, 5.0, 1e3]), min_size=1, max_size=4))
    width = draw(st.sampled_from([0.01, 0.3, 1.0, 8.0])) * max(float(np.ptp(positions)), 1.0)
    low, high = min(positions), max(positions)
    gap = width * draw(st.sampled_from([0.01, 1.0, 6.0]))
    beyond = high + 10 * width
    interval = draw(
        st.sampled_from([None, (low, low + gap), (high, high + gap), (low - gap, high + gap), (beyond, beyond + gap)])
    )
    ends: Any = draw(st.sampled_from(["clamp", "clamp", "truncate"]))
    made: Laplace | Gaussian = (
        Laplace(positions, scale=width, interval=interval, ends=ends)
        if draw(st.booleans())
        else Gaussian(positions, width, interval=interval, ends=ends)
    )
    return made, on_a_line(made)
