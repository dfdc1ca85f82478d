"""The papers' way to approximate theorem 4.3 for a record in an interval: nested Monte Carlo (RAD A.2)."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprisk.mechanisms import OnInterval
from dprisk.types import FloatArray

SCAN = 200  # places at which the slope of a window's value is looked at


@dataclass(frozen=True)
class Nested:
    """An estimate of the advantage, and how far from it the truth may lie but for a chance of `alpha`."""

    estimate: float
    error: float


def nested_monte_carlo(
    mechanism: OnInterval,
    pdf: Callable[[FloatArray], FloatArray],
    draw: Callable[[int, np.random.Generator], FloatArray],
    eta: float,
    baseline: float,
    samples: int,
    rng: np.random.Generator,
    alpha: float = 0.05,
) -> Nested:
    """N_theta = N_z = N_p = `samples`, with fresh records for every output, for truncated outputs."""
    low, high = mechanism.low, mechanism.high
    total, candidates = 0.0, 1
    for output in rng.uniform(low, high, samples):
        marginal = _density(mechanism, output, draw(samples, rng)).mean()
        guesses = _candidates(mechanism, pdf, eta, output, marginal)
        records = draw(samples, rng)
        gain = _density(mechanism, output, records) - marginal
        total += max(float(gain[np.abs(records - guess) <= eta].sum()) for guess in guesses) / samples
        candidates = max(candidates, guesses.size)
    ends = np.linspace(low, high, 1001)
    peak = float(np.exp(np.diag(mechanism.log_density(ends, ends))).max())  # every record is its likeliest output
    error = (high - low) * _error(samples, candidates, peak, baseline, alpha)
    return Nested((high - low) * total / samples, error)


def chance_of_error(t: float, samples: int, candidates: int, peak: float, baseline: float) -> float:
    """The final bound of A.2 on Pr[|estimate - RAD| >= t], on an interval of length 1.

    Corrected: a term whose t does not exceed the mean of what it bounds says nothing and counts 1.
    """
    rate = samples / (2 * peak**2)
    inner = t / 3 - peak * math.sqrt(2 * math.log(2 * candidates) / samples)
    marginal = t / (3 * baseline) - peak / (2 * math.sqrt(samples))
    chance = 2 * math.exp(-rate * t**2 / 9)
    return chance + sum(math.exp(-rate * over**2) if over > 0 else 1.0 for over in (inner, marginal))


def _error(samples: int, candidates: int, peak: float, baseline: float, alpha: float) -> float:
    """The smallest t of which the bound gives a chance of at most alpha, from above."""
    below, above = 0.0, 100 * peak
    for _ in range(60):
        middle = (below + above) / 2
        if chance_of_error(middle, samples, candidates, peak, baseline) > alpha:
            below = middle
        else:
            above = middle
    return above


def _density(mechanism: OnInterval, output: float, records: FloatArray) -> FloatArray:
    return np.asarray(np.exp(mechanism.log_density(np.array([output]), records)[0]))


def _candidates(
    mechanism: OnInterval, pdf: Callable[[FloatArray], FloatArray], eta: float, output: float, marginal: float
) -> FloatArray:
    """Guesses between which the value of the window rises no more, and the ends: Leibniz's rule and bisection."""
    low, high = mechanism.low, mechanism.high

    def at(end: FloatArray) -> FloatArray:
        inside = (end > low) & (end < high)
        place = np.where(inside, end, (low + high) / 2)
        return np.where(inside, (_density(mechanism, output, place) - marginal) * pdf(place), 0.0)

    def slope(guess: FloatArray) -> FloatArray:
        return at(guess + eta) - at(guess - eta)

    bends = [place for place in (low + eta, high - eta) if low < place < high]
    scan = np.unique(np.concatenate([np.linspace(low, high, SCAN), bends]))
    slopes = slope(scan)
    turns = np.flatnonzero((slopes[:-1] > 0) & (slopes[1:] <= 0))
    left, right = scan[turns], scan[turns + 1]
    for _ in range(18):
        middle = (left + right) / 2
        rises = slope(middle) > 0
        left, right = np.where(rises, middle, left), np.where(rises, right, middle)
    return np.unique(np.concatenate([left, bends, [low, high]]))
