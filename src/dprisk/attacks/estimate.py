"""Measured values with confidence, where exact ones are out of reach."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dprisk.errors import ParameterError, as_number, as_whole, require
from dprisk.exact import posterior, require_match
from dprisk.exact.optimum import Optimum
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.combined import number_of
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray, IntArray

Progress = Callable[[int, int, float], None]  # told of outputs drawn, outputs wanted, and the advantage so far
BLOCK_CELLS = 1 << 21
MIN_SAMPLES, FEW_SAMPLES, MAX_SAMPLES = 500, 20_000, 1 << 20
FEW_CELLS, MANY_CELLS = 1 << 28, 1 << 26  # records times samples; records times numbers sampled
MAX_STRATA, MIN_ROUNDS = 16, 50_000
MAX_GUESSED = 1 << 18  # outputs that an attack is measured on, unless told


class Guesser(Protocol):
    """An attack: anything that guesses a record from an output."""

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        """A guess (a record's number) for each output; `known` is the number of each target's knowledge group."""


@dataclass(frozen=True, eq=False)
class Estimate(Optimum):
    """A Monte Carlo estimate of an optimum or of one attack: means over `samples` outputs, with valid intervals."""

    samples: int
    confidence: float
    advantage_interval: tuple[float, float]
    success_interval: tuple[float, float]

    @property
    def advantage(self) -> float:
        """The mean, or the end of its interval that it went past by chance."""
        return min(max(super().advantage, self.advantage_interval[0]), self.advantage_interval[1])

    @property
    def success(self) -> float:
        """The mean, or the end of its interval that it went past by chance, such as 1."""
        return min(max(super().success, self.success_interval[0]), self.success_interval[1])

    def to_dict(self) -> dict[str, Any]:
        """Samples, confidence and intervals, ready for JSON."""
        return {
            "samples": self.samples,
            "confidence": self.confidence,
            "advantage_interval": list(self.advantage_interval),
            "success_interval": list(self.success_interval),
        }


def default_samples(mechanism: Mechanism) -> int:
    """As many outputs as about two seconds allow: a million of a few numbers each for a few records."""
    m = mechanism.size
    numbers = _count_numbers(mechanism.sample([0], np.random.default_rng(0)))
    few = int(np.clip(FEW_CELLS // m, MIN_SAMPLES, FEW_SAMPLES))
    return int(np.clip(MANY_CELLS // (m * numbers), few, MAX_SAMPLES))


def checked(samples: int | None, confidence: float) -> tuple[int | None, float]:
    """The settings of an estimate, or an error that names the wrong one."""
    confidence = as_number("confidence", confidence)
    require(0 < confidence < 1, f"confidence must lie strictly between 0 and 1, got {confidence}")
    return None if samples is None else as_whole("samples", samples, least=2), confidence


def best_attacker(
    mechanism: Mechanism,
    threat: Threat,
    rng: np.random.Generator,
    samples: int | None = None,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Estimate:
    """RAD and ReRo of the best attackers, by sampling outputs and computing the attackers' gain on each exactly.

    With theta drawn from the mechanism on Z ~ pi, the posterior success sum_x max_c pi(c | theta) has mean ReRo, the
    gain sum_x max_c [pi(c | theta) - pi(c)] has mean RAD: no attack is simulated, only outputs are. The posterior of
    the best blind guess has the baseline as its mean; subtracting it leaves values in [0, 1] that vary less.

    Many samples are drawn in rounds, in each of which the records come in their due proportion. The rounds are
    independent and their means lie in [0, 1], and vary less than those of as many outputs of random records.
    """
    require_match(mechanism, threat)
    mechanism = mechanism.sufficient()
    samples, confidence = checked(samples, confidence)
    samples = samples or default_samples(mechanism)
    strata = int(np.clip(samples // MIN_ROUNDS, 1, MAX_STRATA))
    rounds = -(-samples // strata)
    samples = rounds * strata
    pi, reach = threat.prior.weights, threat.reach
    mass = reach.sums(pi[:, None])
    blind = reach.first_best(mass)[:, 0]  # what a blind attacker guesses
    block = max(1, BLOCK_CELLS // ((pi.size + reach.guess.size) * strata))
    advantages, successes = [], []
    by_group = np.zeros((2, reach.starts.size))
    for child, start in zip(rng.spawn(-(-rounds // block)), range(0, rounds, block), strict=True):
        count = min(block, rounds - start)
        outputs = mechanism.sample(draw_records(pi, count, strata, child), child)
        hits = reach.sums(posterior(mechanism.log_likelihood(outputs), pi))
        luck = hits[blind] - mass[blind]
        gains = reach.best(hits - mass) - luck
        best = reach.best(hits) - luck
        by_group += gains.sum(axis=1), best.sum(axis=1)
        advantages.append(gains.sum(axis=0).reshape(count, strata).mean(axis=1))
        successes.append(best.sum(axis=0).reshape(count, strata).mean(axis=1))
        if progress is not None:
            drawn = (start + count) * strata
            progress(drawn, samples, float(by_group[0].sum()) / drawn)
    advantage, success = np.concatenate(advantages), np.concatenate(successes)
    by_group /= samples
    return Estimate(
        by_group[0],
        by_group[1],
        None,
        samples,
        confidence,
        mean_interval(advantage, 0.0, 1.0, confidence),
        mean_interval(success, threat.baseline, 1.0, confidence),
    )


def measure(
    guesser: Guesser,
    mechanism: Mechanism,
    threat: Threat,
    rng: np.random.Generator,
    samples: int | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """RAD and ReRo of an attack: of any guesser, good or bad, on outputs of the mechanism.

    For a run with Z ~ pi, theta drawn from the mechanism on Z, and the attack's guess for each group, let A be the
    records on which the guess for their group succeeds. Then 1{Z in A} - pi(A) has the attack's RAD as its mean
    (theory, section 4.2). Averaged over who the target may have been it is pi(A | theta) - pi(A), which has the same
    mean, varies less, and lies in [-1, 1]. The attack is asked once for each group and output.

    >>> from dprisk import GRR, Prior, Threat
    >>> from dprisk.attacks import NAMED
    >>> threat, rng = Threat(Prior([0.5, 0.3, 0.2])), np.random.default_rng(0)
    >>> round(measure(NAMED["TRUE"](), GRR(3, epsilon=1.0), threat, rng, samples=50_000).advantage, 2)
    0.23
    """
    require_match(mechanism, threat)
    samples, confidence = checked(samples, confidence)
    samples = samples or min(default_samples(mechanism), MAX_GUESSED)
    pi, reach, n_groups = threat.prior.weights, threat.reach, threat.knows.n_groups
    mass = reach.sums(pi[:, None])[:, 0]
    block = max(1, BLOCK_CELLS // (pi.size + reach.guess.size))
    advantages, successes = [], []
    by_group = np.zeros((2, n_groups))
    for child, start in zip(rng.spawn(-(-samples // block)), range(0, samples, block), strict=True):
        count = min(block, samples - start)
        outputs = mechanism.sample(draw_records(pi, count, 1, child), child)
        hits = reach.sums(posterior(mechanism.log_likelihood(outputs), pi))
        chosen = sets_guessed(guesser, outputs, threat, child)
        success = np.take_along_axis(hits, chosen, axis=0)
        gains = success - mass[chosen]
        by_group += gains.sum(axis=1), success.sum(axis=1)
        advantages.append(gains.sum(axis=0))
        successes.append(success.sum(axis=0))
    by_group /= samples
    return Estimate(
        by_group[0],
        by_group[1],
        None,
        samples,
        confidence,
        mean_interval(np.concatenate(advantages), -1.0, 1.0, confidence),
        mean_interval(np.concatenate(successes), 0.0, 1.0, confidence),
    )


def sets_guessed(guesser: Guesser, outputs: Any, threat: Threat, rng: np.random.Generator) -> IntArray:
    """The number of the set (see `Reach`) that an attack guesses for each group and output, groups x outputs."""
    reach, count = threat.reach, number_of(outputs)
    chosen = np.empty((threat.knows.n_groups, count), dtype=np.int64)
    takes_known = len(inspect.signature(guesser.guess).parameters) > 2
    require(
        takes_known or threat.knows.is_none,
        f"The attacker knows something of its targets, but {type(guesser).__name__}.guess takes no third argument "
        "`known` for it.",
    )
    for group in range(threat.knows.n_groups):
        guesses = np.asarray(guesser.guess(outputs, rng, *([np.full(count, group)] if takes_known else [])))
        require(
            guesses.shape == (count,)
            and guesses.dtype.kind in "biu"
            and bool(np.all((guesses >= 0) & (guesses < reach.n_guesses))),
            f"An attack must guess one record of 0..{reach.n_guesses - 1} for each output.",
            ParameterError,
        )
        chosen[group] = reach.find(guesses, group)
    return chosen


def draw_records(pi: FloatArray, rounds: int, strata: int, rng: np.random.Generator) -> IntArray:
    """`rounds` times `strata` records, each round's one after the other.

    The i-th of a round is the prior's quantile at a random place in [i, i + 1) / strata, so that the mean of a function
    over a round is unbiased and, by stratification, never varies more than over as many independent records.
    """
    cumulative = np.cumsum(pi)
    places = (np.arange(strata) + rng.random((rounds, strata))).ravel() / strata
    places = np.minimum(places, np.nextafter(1.0, 0.0))
    return np.searchsorted(cumulative / cumulative[-1], places, side="right")


def mean_interval(values: FloatArray, low: float, high: float, confidence: float) -> tuple[float, float]:
    """A confidence interval for the mean of independent values in [low, high], valid at any sample size.

    Empirical Bernstein (Maurer and Pontil 2009, Theorem 4) on either side at half the error.
    """
    n = values.size
    log_term = math.log(4 / (1 - confidence))
    width = math.sqrt(2 * float(values.var(ddof=1)) * log_term / n) + 7 * (high - low) * log_term / (3 * (n - 1))
    mean = float(values.mean())
    return max(low, mean - width), min(high, mean + width)


def _count_numbers(outputs: Any) -> int:
    """How many numbers there are in outputs, also in the nested pairs of products."""
    return sum(map(_count_numbers, outputs)) if isinstance(outputs, tuple) else int(np.size(outputs))
