"""Measured values with confidence, where exact ones are out of reach."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.errors import require
from dprisk.exact import require_same_size
from dprisk.mechanisms import Mechanism
from dprisk.optimum import Optimum
from dprisk.threat import Threat
from dprisk.types import FloatArray

BLOCK_CELLS = 1 << 21
MAX_SAMPLES, MIN_SAMPLES, SAMPLE_CELLS = 20_000, 500, 1 << 28


@dataclass(frozen=True, eq=False)
class Estimate(Optimum):
    """A Monte Carlo estimate of an optimum: means over `samples` outputs, with valid intervals."""

    samples: int
    confidence: float
    advantage_interval: tuple[float, float]
    success_interval: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Samples, confidence and intervals, ready for JSON."""
        return {
            "samples": self.samples,
            "confidence": self.confidence,
            "advantage_interval": list(self.advantage_interval),
            "success_interval": list(self.success_interval),
        }


def default_samples(threat: Threat) -> int:
    """As many outputs as a few seconds allow."""
    return int(np.clip(SAMPLE_CELLS // threat.prior.size, MIN_SAMPLES, MAX_SAMPLES))


def best_attacker(
    mechanism: Mechanism,
    threat: Threat,
    rng: np.random.Generator,
    samples: int | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """RAD and ReRo of the best attackers, by sampling outputs and computing the attackers' gain on each exactly.

    With theta drawn from the mechanism on Z ~ pi, the posterior success sum_x max_c pi(c | theta) has mean ReRo, the
    gain sum_x max_c [pi(c | theta) - pi(c)] has mean RAD: no attack is simulated, only outputs are.
    """
    require_same_size(mechanism, threat)
    samples = default_samples(threat) if samples is None else samples
    require(isinstance(samples, int) and samples >= 2, f"samples must be a whole number of at least 2, got {samples}")
    require(0 < confidence < 1, f"confidence must lie strictly between 0 and 1, got {confidence}")
    pi, reach = threat.prior.weights, threat.reach
    mass = reach.sums(pi[:, None])
    block = max(1, BLOCK_CELLS // (pi.size + reach.guess.size))
    advantages, successes = [], []
    by_group = np.zeros((2, reach.starts.size))
    for child, start in zip(rng.spawn(-(-samples // block)), range(0, samples, block), strict=True):
        count = min(block, samples - start)
        outputs = mechanism.sample(child.choice(pi.size, size=count, p=pi), child)
        hits = reach.sums(posterior(mechanism.log_likelihood(outputs), pi))
        gains = reach.best(hits - mass)
        best = reach.best(hits)
        by_group += gains.sum(axis=1), best.sum(axis=1)
        advantages.append(gains.sum(axis=0))
        successes.append(best.sum(axis=0))
    advantage, success = np.concatenate(advantages), np.concatenate(successes)
    by_group /= samples
    return Estimate(
        by_group[0],
        by_group[1],
        None,
        samples,
        confidence,
        mean_interval(advantage, -threat.baseline, 1.0, confidence),
        mean_interval(success, 0.0, 1.0, confidence),
    )


def posterior(log_likelihood: FloatArray, pi: FloatArray) -> FloatArray:
    """P(record | output), records x outputs, from log-likelihoods given as outputs x records."""
    weight = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True)) * pi
    weight /= weight.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(weight.T)


def mean_interval(values: FloatArray, low: float, high: float, confidence: float) -> tuple[float, float]:
    """A confidence interval for the mean of independent values in [low, high], valid at any sample size.

    Empirical Bernstein (Maurer and Pontil 2009, Theorem 4) on either side at half the error.
    """
    n = values.size
    log_term = math.log(4 / (1 - confidence))
    width = math.sqrt(2 * float(values.var(ddof=1)) * log_term / n) + 7 * (high - low) * log_term / (3 * (n - 1))
    mean = float(values.mean())
    return max(low, mean - width), min(high, mean + width)
