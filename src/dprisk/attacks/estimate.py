"""Measured values with valid intervals: of the best attacker where the exact value is out of reach, and of any attack.

One run, one unbiased number. The target Z is drawn from the prior, the mechanism is run on it, and the attack guesses
for each thing that it may know of Z. Let A be the records on which it then succeeds. The value of the run is

    X = 1{Z in A} - pi(A),    with the attack's RAD as its mean,

since pi(A) is the chance, given the output, that the attack succeeds on an independent record of the prior (theory,
section 4.2). Nothing need be known of the mechanism: it may be any code. Where its likelihood is known, averaging over
who the target may have been gives P(A | theta) - pi(A), which has the same mean and varies less.
"""

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dprisk.errors import as_number, as_whole, require
from dprisk.exact import beliefs, beliefs_by_law, require_match
from dprisk.exact.optimum import Optimum
from dprisk.exact.theorem import most_right
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.combined import number_of
from dprisk.mechanisms.counted import condensed
from dprisk.threat.threat import Threat
from dprisk.types import BoolArray, FloatArray, IntArray

Progress = Callable[[int, int, float], None]  # told of outputs drawn, outputs wanted, and the advantage so far
Code = Callable[[IntArray, np.random.Generator], Any]  # the numbers of some records -> an output for each
Interval = Callable[[FloatArray, float, float, float], tuple[float, float]]  # values, their range, alpha
BLOCK_CELLS = 1 << 21
DRAWN = 1 << 24  # numbers in outputs that are held at once
MIN_RUNS, FEW_RUNS, MAX_RUNS = 500, 20_000, 1 << 20
FEW_CELLS, MANY_CELLS = 1 << 28, 1 << 26  # records times runs; records times numbers drawn
MAX_STRATA, MIN_ROUNDS = 16, 50_000
MAX_GUESSED = 1 << 18  # runs that an attack is measured in, unless told
MANY_GROUPS = 100  # beyond which an attack is not asked for each of them
TWO_RUNS = 1 << 12  # runs at a time then
SAME = 1e-12  # masses that differ by less are the same


class Guesser(Protocol):
    """An attack: anything that guesses a record from an output."""

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        """A guess (a record's number) for each output; `known` is the number of each target's knowledge group."""


@dataclass(frozen=True, eq=False)
class Estimate(Optimum):
    """An optimum or one attack, measured: means over `runs`, with intervals each wrong with probability `alpha`.

    `right_interval` is of how often the attacker of the advantage is right about participants.
    """

    runs: int
    alpha: float
    advantage_interval: tuple[float, float]
    success_interval: tuple[float, float]
    right_interval: tuple[float, float]

    @property
    def advantage(self) -> float:
        return min(max(super().advantage, self.advantage_interval[0]), self.advantage_interval[1])

    @property
    def success(self) -> float:
        return min(max(super().success, self.success_interval[0]), self.success_interval[1])

    @property
    def right(self) -> float:
        return min(max(super().right or 0.0, self.right_interval[0]), self.right_interval[1])

    def to_dict(self) -> dict[str, Any]:
        """Runs, alpha and intervals, ready for JSON."""
        names = ("advantage_interval", "success_interval", "right_interval")
        intervals = {name: list(getattr(self, name)) for name in names}
        return {"runs": self.runs, "alpha": self.alpha, **intervals}


def default_runs(mechanism: Mechanism) -> int:
    """As many runs as about two seconds allow: a million with a few numbers each for a few records."""
    m, numbers = mechanism.size, numbers_of(mechanism)
    few = int(np.clip(FEW_CELLS // max(m, numbers), MIN_RUNS, FEW_RUNS))
    return int(np.clip(MANY_CELLS // (m * numbers), few, MAX_RUNS))


def numbers_of(mechanism: Mechanism) -> int:
    """How many numbers an output holds."""
    return _count_numbers(mechanism.sample([0], np.random.default_rng(0)))


def block_of(mechanism: Mechanism, cells: int) -> int:
    """How many outputs to look at at once, if each takes so many cells beside the numbers that it holds."""
    return max(1, min(BLOCK_CELLS // cells, DRAWN // numbers_of(mechanism)))


def checked(runs: int | None, alpha: float) -> tuple[int | None, float]:
    """The settings of an estimate, or an error that names the wrong one."""
    alpha = as_number("alpha", alpha)
    require(0 < alpha < 1, f"alpha must lie strictly between 0 and 1, got {alpha}")
    return None if runs is None else as_whole("runs", runs, least=2), alpha


def estimate_best(
    mechanism: Mechanism,
    threat: Threat,
    rng: np.random.Generator,
    runs: int | None = None,
    alpha: float = 0.05,
    progress: Progress | None = None,
) -> Estimate:
    """RAD and ReRo of the best attackers, by drawing outputs and computing the attackers' gain on each exactly.

    With theta drawn from the mechanism on Z ~ pi, the posterior success sum_x max_c pi(c | theta) has mean ReRo, the
    gain sum_x max_c [pi(c | theta) - pi(c)] has mean RAD: no attack is simulated, only outputs are. The posterior of
    the best blind guess has the baseline as its mean; subtracting it leaves values in [0, 1] that vary less.

    Many outputs are drawn in rounds, in each of which the records come in their due proportion. The rounds are
    independent and their means lie in [0, 1], and vary less than those of as many outputs of random records.
    """
    require_match(mechanism, threat)
    runs, alpha = checked(runs, alpha)
    mechanism = condensed(mechanism.sufficient())
    runs = runs or default_runs(mechanism)
    mechanism, law = mechanism.laws()
    strata = int(np.clip(runs // MIN_ROUNDS, 1, MAX_STRATA))
    rounds = -(-runs // strata)
    runs = rounds * strata
    pi, reach = threat.prior.weights, threat.reach
    mass = reach.sums(pi[:, None])
    blind = reach.first_best(mass)[:, 0]  # what a blind attacker guesses
    block = max(1, block_of(mechanism, pi.size + reach.guess.size) // strata)
    advantages, successes, rates = [], [], []
    by_group = np.zeros((3, reach.starts.size))
    for child, start in zip(rng.spawn(-(-rounds // block)), range(0, rounds, block), strict=True):
        count = min(block, rounds - start)
        outputs = mechanism.sample(law[draw_records(pi, count, strata, child)], child)
        hits = reach.sums(beliefs_by_law(mechanism.log_likelihood(outputs), law, pi))
        luck = hits[blind] - mass[blind]
        worth = hits - mass
        most = reach.best(worth)
        gains, best = most - luck, reach.best(hits) - luck
        right = most_right(reach, hits, worth, mass, 1.0, most)
        by_group += gains.sum(axis=1), best.sum(axis=1), (right - luck).sum(axis=1)
        advantages.append(gains.sum(axis=0).reshape(count, strata).mean(axis=1))
        successes.append(best.sum(axis=0).reshape(count, strata).mean(axis=1))
        rates.append(right.sum(axis=0).reshape(count, strata).mean(axis=1))
        if progress is not None:
            drawn = (start + count) * strata
            progress(drawn, runs, float(by_group[0].sum()) / drawn)
    advantage, success = np.concatenate(advantages), np.concatenate(successes)
    intervals = mean_interval(advantage, 0.0, 1.0, alpha), mean_interval(success, threat.baseline, 1.0, alpha)
    right_interval = mean_interval(np.concatenate(rates), 0.0, 1.0, alpha)
    gained, successful, told = by_group / runs
    return Estimate(gained, successful, None, runs, alpha, *intervals, right_interval, right_by_group=told)


def measure(
    attack: Guesser,
    subject: Mechanism | Code,
    threat: Threat,
    rng: np.random.Generator,
    runs: int | None = None,
    alpha: float = 0.05,
) -> Estimate:
    """RAD and ReRo of an attack, good or bad, on a mechanism or on any code, from one unbiased number a run.

    `subject` is a mechanism, whose likelihood then lowers the variance, or a function that is given the numbers of some
    records and a Generator, and returns an output for each; `mechanism.sample` is one, if it is to be measured without
    its likelihood. The attack is asked once for each group and output; of more than 100 groups for two only, that of
    the target and that of another record of the prior, which gives a value that varies more. Intervals are empirical
    Bernstein's; of what is binomial, Clopper and Pearson's: the success on code, and its advantage if every guess has
    the same prior mass.

    >>> from dprisk import GRR, Prior, Threat
    >>> from dprisk.attacks import Report
    >>> threat, rng = Threat(Prior([0.5, 0.3, 0.2])), np.random.default_rng(0)
    >>> round(measure(Report(), GRR(3, epsilon=1.0), threat, rng, runs=50_000).advantage, 2)
    0.23
    >>> def leaky(records, rng):
    ...     return np.where(rng.random(records.size) < 0.5, records, rng.integers(3, size=records.size))
    >>> round(measure(Report(), leaky, threat, rng, runs=50_000).advantage, 2)
    0.31
    """
    mechanism = subject if isinstance(subject, Mechanism) else None
    sample = subject.sample if isinstance(subject, Mechanism) else subject
    kind = type(subject).__name__
    require(callable(sample), f"What is attacked is a mechanism or a function of records and rng, not of type {kind}.")
    if mechanism is not None:
        require_match(mechanism, threat)
    runs, alpha = checked(runs, alpha)
    runs = runs or (FEW_RUNS if mechanism is None else min(default_runs(mechanism), MAX_GUESSED))
    if threat.knows.n_groups > MANY_GROUPS:
        return _measured_on_two(attack, sample, threat, rng, runs, alpha)
    pi, reach, groups = threat.prior.weights, threat.reach, threat.knows.groups
    mass = reach.sums(pi[:, None])[:, 0]
    cells = pi.size + reach.guess.size
    block = max(1, BLOCK_CELLS // cells) if mechanism is None else block_of(mechanism, cells)
    gains, successes = np.empty(runs), np.empty(runs)
    by_group = np.zeros((2, threat.knows.n_groups))
    for child, start in zip(rng.spawn(-(-runs // block)), range(0, runs, block), strict=True):
        now = slice(start, min(start + block, runs))
        drawn = draw_records(pi, now.stop - start, 1, child)
        outputs = _sampled(sample, drawn, child)
        chosen = sets_guessed(attack, outputs, threat, child)
        if mechanism is None:
            right = np.zeros(chosen.shape)
            right[groups[drawn], np.arange(drawn.size)] = one_run(threat, chosen, drawn)[1]
        else:
            right = np.take_along_axis(reach.sums(beliefs(mechanism.log_likelihood(outputs), pi)), chosen, axis=0)
        gain = right - mass[chosen]
        by_group += gain.sum(axis=1), right.sum(axis=1)
        gains[now], successes[now] = gain.sum(axis=0), right.sum(axis=0)
    return _estimated(gains, successes, by_group, threat, alpha, mechanism is None, mean_interval)


def measure_recorded(
    attack: Guesser,
    outputs: Any,
    drawn: npt.ArrayLike,
    threat: Threat,
    rng: np.random.Generator,
    alpha: float = 0.05,
    mechanism: Mechanism | None = None,
    interval: Interval | None = None,
) -> Estimate:
    """RAD and ReRo of an attack on outputs that are there already, such as those of trainings that took long.

    `drawn` is the record that each output is of, drawn from the prior before. Several attacks, and attackers who know
    this or that, can be measured on the same outputs; each interval is then valid by itself. With the `mechanism` that
    made the outputs its likelihood lowers the variance, as in `measure`; without it, guesses that were right count.
    Intervals are `measure`'s, unless there is a better `interval` for the mean of independent values.
    """
    _, alpha = checked(None, alpha)
    records, reach, groups, pi = np.asarray(drawn), threat.reach, threat.knows.groups, threat.prior.weights
    chosen = sets_guessed(attack, outputs, threat, rng)
    if mechanism is None:
        right = np.zeros(chosen.shape)
        right[groups[records], np.arange(records.size)] = one_run(threat, chosen, records)[1]
    else:
        right = np.take_along_axis(reach.sums(beliefs(mechanism.log_likelihood(outputs), pi)), chosen, axis=0)
    gain = right - reach.sums(pi[:, None])[:, 0][chosen]
    by_group = np.array([gain.sum(axis=1), right.sum(axis=1)])
    runs = gain.sum(axis=0), right.sum(axis=0)
    return _estimated(*runs, by_group, threat, alpha, mechanism is None, interval or mean_interval)


def _estimated(
    gains: FloatArray,
    successes: FloatArray,
    by_group: FloatArray,
    threat: Threat,
    alpha: float,
    counted: bool,
    interval: Interval,
) -> Estimate:
    """Values of runs with their intervals; what was `counted` is binomial."""
    runs = gains.size
    least, most = mass_range(threat)
    if counted:
        success = proportion_interval(int(successes.sum()), runs, alpha)
    else:
        success = interval(successes, 0.0, 1.0, alpha)
    advantage = interval(gains, -most, 1 - least, alpha)
    if counted and most - least <= SAME:  # gains are hits less a constant
        advantage = success[0] - most, success[1] - least
    gained, right = by_group / runs
    return Estimate(gained, right, None, runs, alpha, advantage, success, success, right_by_group=right)


def _measured_on_two(
    attack: Guesser, sample: Code, threat: Threat, rng: np.random.Generator, runs: int, alpha: float
) -> Estimate:
    """The same where the attacker may know one of very many things: two guesses a run, whatever their number.

    Z and Z' are independent records of the prior, the output is one of Z. The value of a run is whether the attack
    succeeds on Z, knowing what it knows of Z, less whether it succeeds on Z' from that output, knowing what it knows of
    Z'. The latter's chance given the output is pi(A), so the mean is the RAD of the attack. Values are -1, 0 and 1.
    """
    pi, reach, groups = threat.prior.weights, threat.reach, threat.knows.groups
    values, hits = np.empty(runs), 0
    by_group = np.zeros((2, threat.knows.n_groups))
    for child, start in zip(rng.spawn(-(-runs // TWO_RUNS)), range(0, runs, TWO_RUNS), strict=True):
        now = slice(start, min(start + TWO_RUNS, runs))
        drawn, other = (draw_records(pi, now.stop - start, 1, child) for _ in range(2))
        outputs = _sampled(sample, drawn, child)
        right, luck = (
            reach.holds(_set_guessed(attack, outputs, threat, child, groups[who]), who).astype(float)
            for who in (drawn, other)
        )
        values[now], hits = right - luck, hits + int(right.sum())
        won, lucky = (
            np.bincount(groups[who], times, minlength=threat.knows.n_groups)
            for who, times in ((drawn, right), (other, luck))
        )
        by_group += won - lucky, won
    gained, succeeded = by_group / runs
    advantage, success = mean_interval(values, -1.0, 1.0, alpha), proportion_interval(hits, runs, alpha)
    return Estimate(gained, succeeded, None, runs, alpha, advantage, success, success, right_by_group=succeeded)


def _sampled(sample: Code, drawn: IntArray, rng: np.random.Generator) -> Any:
    outputs = sample(drawn, rng)
    got = number_of(outputs)
    require(got == drawn.size, f"The code must return an output for each record, got {got} for {drawn.size}.")
    return outputs


def one_run(threat: Threat, chosen: IntArray, drawn: IntArray) -> tuple[FloatArray, BoolArray]:
    """The values X of some runs in two parts: pi(A), and whether Z is in A. X is the latter less the former.

    `chosen` are the sets that were guessed, groups x runs, as `sets_guessed` gives them; `drawn` are the records, one
    a run, drawn from the prior.
    """
    reach, run = threat.reach, np.arange(drawn.size)
    mass = reach.sums(threat.prior.weights[:, None])[:, 0]
    mine = chosen[threat.knows.groups[drawn], run]  # a record can be in the set guessed for its own group only
    return np.minimum(1.0, mass[chosen].sum(axis=0)), reach.holds(mine, drawn)


def sets_guessed(
    attack: Guesser, outputs: Any, threat: Threat, rng: np.random.Generator, groups: Iterable[int] | None = None
) -> IntArray:
    """The number of the set (see `Reach`) that an attack guesses for each output and group (or only for some groups).

    Groups x outputs.
    """
    every = range(threat.knows.n_groups) if groups is None else groups
    count = number_of(outputs)
    return np.array([_set_guessed(attack, outputs, threat, rng, np.full(count, group)) for group in every])


def _set_guessed(attack: Guesser, outputs: Any, threat: Threat, rng: np.random.Generator, known: IntArray) -> IntArray:
    """The number of the set that an attack guesses for each output, told the group of each target."""
    reach, count = threat.reach, number_of(outputs)
    takes_known = len(inspect.signature(attack.guess).parameters) > 2
    require(
        takes_known or threat.knows.is_none,
        f"The attacker knows something of its targets, but {type(attack).__name__}.guess takes no third argument "
        "`known` for it.",
    )
    guesses = np.asarray(attack.guess(outputs, rng, *([known] if takes_known else [])))
    are_whole = guesses.shape == (count,) and guesses.dtype.kind in "biu"
    are_records = are_whole and bool(np.all((guesses >= 0) & (guesses < reach.n_guesses)))
    require(are_records, f"An attack must guess one record of 0..{reach.n_guesses - 1} for each output.")
    return reach.find(guesses, known)


def mass_range(threat: Threat) -> tuple[float, float]:
    """The least and the largest prior mass of what an attacker can be right about, over its guesses in all groups."""
    masses = threat.reach.sums(threat.prior.weights[:, None])
    least, most = -threat.reach.best(-masses).sum(), threat.reach.best(masses).sum()
    return max(0.0, float(least)), min(1.0, float(most))


def draw_records(pi: FloatArray, rounds: int, strata: int, rng: np.random.Generator) -> IntArray:
    """`rounds` times `strata` records, each round's one after the other.

    The i-th of a round is the prior's quantile at a random place in [i, i + 1) / strata, so that the mean of a function
    over a round is unbiased and, by stratification, never varies more than over as many independent records.
    """
    cumulative = np.cumsum(pi)
    places = (np.arange(strata) + rng.random((rounds, strata))).ravel() / strata
    places = np.minimum(places, np.nextafter(1.0, 0.0))
    return np.searchsorted(cumulative / cumulative[-1], places, side="right")


def mean_interval(values: FloatArray, low: float, high: float, alpha: float) -> tuple[float, float]:
    """An interval that misses the mean of independent values in [low, high] with probability at most alpha.

    Empirical Bernstein (Maurer and Pontil 2009, Theorem 4) on either side at half the error, valid for any number of
    values from two on.
    """
    n = values.size
    log_term = math.log(4 / alpha)
    width = math.sqrt(2 * float(values.var(ddof=1)) * log_term / n) + 7 * (high - low) * log_term / (3 * (n - 1))
    mean = float(values.mean())
    return max(low, mean - width), min(high, mean + width)


def proportion_interval(hits: int, runs: int, alpha: float) -> tuple[float, float]:
    """Clopper and Pearson's interval: it misses the chance of a hit with probability at most alpha."""
    from scipy.stats import binomtest

    found = binomtest(hits, runs).proportion_ci(1 - alpha, method="exact")
    return float(found.low), float(found.high)


def _count_numbers(outputs: Any) -> int:
    """How many numbers there are in outputs, also in the nested pairs of products."""
    return sum(map(_count_numbers, outputs)) if isinstance(outputs, tuple) else int(np.size(outputs))
