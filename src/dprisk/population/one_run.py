"""One run, many canaries: the epsilon that right guesses certify, for guesses counted or read at their best moment.

n canaries, each with a value drawn from a prior of its own, and one run. The attacker sees the output, and names for
some of the canaries what it takes their value to be: a set of prior mass kappa. If the mechanism is epsilon-DP in each
canary's value, then given the output and all values revealed before, a guess is right with probability at most
beta(epsilon) = e^eps kappa / (1 + (e^eps - 1) kappa), in whatever order they are revealed (theory, 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dprisk.population.many_targets import mean_mode
from dprisk.population.poisson_binomial import PoissonBinomial
from dprisk.population.targets import Targets, posteriors
from dprisk.population.uniform import exact_chance
from dprisk.types import BoolArray, FloatArray, IntArray

STEPS = np.geomspace(0.02, 30.0, 48)  # epsilons above the claim that the evidence bets on
_WEIGHTS = 1 / (1 + (np.log(STEPS / 1.5) / 1.5) ** 2)
LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
ROUNDING = 1e-14  # relative error of a computed log factor, subtracted
LARGEST = 60.0  # epsilon
FEW_KAPPAS = 16  # distinct masses up to which guesses are tallied
MOST_MOMENTS = 4096
FEW_GUESSES = 300  # up to which the exact program is solved for counted guesses,
WORTH_IT = 0.02  # if what delta may cost is more than this share of alpha


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses in the order in which they are revealed: was each right, and how likely was it beforehand?

    `canaries` are all that there were, also those without a guess; delta counts for each of them.
    """

    right: BoolArray
    masses: FloatArray
    canaries: Targets

    @property
    def count(self) -> int:
        """How many guesses there are."""
        return self.right.size

    @property
    def successes(self) -> int:
        """How many were right."""
        return int(self.right.sum())

    @cached_property
    def moments(self) -> IntArray:
        """The numbers of guesses after which the evidence may be largest: a right one that a wrong one or none follows.

        Of very many only some are looked at, which is allowed, and costs little if they are close.
        """
        ends = np.flatnonzero(self.right & ~np.append(self.right[1:], False)) + 1
        if ends.size <= 2 * MOST_MOMENTS:
            return ends
        later = np.geomspace(MOST_MOMENTS, ends.size - 1, MOST_MOMENTS).astype(int)
        some: IntArray = ends[np.unique(np.concatenate([np.arange(MOST_MOMENTS), later]))]
        return some

    @cached_property
    def kappas(self) -> FloatArray:
        """The distinct masses, smallest first."""
        return np.unique(self.masses)

    @cached_property
    def tallies(self) -> tuple[FloatArray, FloatArray]:
        """For each moment and each distinct mass, how many guesses were right so far, and how many wrong."""
        right, wrong = np.empty((2, self.moments.size, self.kappas.size))
        for place, kappa in enumerate(self.kappas):
            mine = self.masses == kappa
            right[:, place] = np.cumsum(mine & self.right)[self.moments - 1]
            wrong[:, place] = np.cumsum(mine & ~self.right)[self.moments - 1]
        return right, wrong

    def first(self, count: int) -> Guesses:
        """The first so many of them."""
        return Guesses(self.right[:count], self.masses[:count], self.canaries)


def best_moment_epsilon(guesses: Guesses, alpha: float, delta: float = 0.0) -> tuple[float, int]:
    """The epsilon that the guesses certify at the best moment to stop, and that moment.

    With probability at least 1 - alpha it is at most the true epsilon, whatever the order and the moment, which may
    both be chosen after seeing the output, and go by the values revealed so far (theory, 4.3).

    The evidence after k guesses is the mean over fixed steps d of the likelihood ratio of beta_j(epsilon + d) against
    beta_j(epsilon). Each factor is 1 + lambda_j (X_j - beta_j) with lambda_j = (e^d - 1)/(1 + (e^d - 1) beta_j) <=
    1/beta_j, so at the true epsilon the evidence is a supermartingale and ever reaches 1/alpha with probability at most
    alpha. With delta, the chances exceed beta by e_j that add up to at most c, but with probability Delta/c; then each
    term is at most exp(c max lambda) times a supermartingale, and is divided by that. c = Delta/(share alpha) is fixed
    by delta, alpha and the canaries alone; (1 - share) alpha is left.

    The bound walks up from 0 in steps over which every claim is refuted. In a step the ratios are smallest at its end;
    the stakes and Delta, which delta makes matter, are largest at its start.
    """
    if guesses.successes == 0:
        return 0.0, 0
    found = log_evidence(guesses, 0.0, 0.0, alpha, delta)
    epsilon, step, best = 0.0, 1.0, int(np.argmax(found))
    while found.max() >= 0 and step > 1e-9 and epsilon < LARGEST:
        tried = log_evidence(guesses, epsilon + step, epsilon, alpha, delta)
        if tried.max() >= 0:
            epsilon, step, best = epsilon + step, 2 * step, int(np.argmax(tried))
        else:
            step /= 2
    return epsilon, int(guesses.moments[best])


def log_evidence(guesses: Guesses, epsilon: float, stakes_at: float, alpha: float, delta: float) -> FloatArray:
    """At each moment, ln of the evidence against every claim from `stakes_at` to epsilon, less what refutes them.

    At least 0 at some moment if all of them are refuted; see `best_moment_epsilon`.
    """
    excess = guesses.canaries.excess(stakes_at, delta)
    share = min(0.5, math.sqrt(2 * excess / alpha))
    kept = alpha * (1 - share)
    rise = np.expm1(STEPS)
    total, size = _log_ratios(guesses, epsilon, rise)
    terms = LOG_WEIGHTS + total - ROUNDING * size
    if excess > 0:
        least = float(posteriors(stakes_at, guesses.kappas[:1])[0])
        terms = terms - excess / (share * alpha) * rise / (1 + rise * least)
    top = terms.max(axis=1, keepdims=True)
    found: FloatArray = top[:, 0] + np.log(np.exp(terms - top).sum(axis=1)) + math.log(kept)
    return found


def _log_ratios(guesses: Guesses, epsilon: float, rise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """At each moment and for each step the log of the likelihood ratio, and how much was added and subtracted."""
    if guesses.kappas.size <= FEW_KAPPAS:
        down = -np.log1p(posteriors(epsilon, guesses.kappas)[:, None] * rise)
        right, wrong = guesses.tallies
        gained, lost = right @ np.maximum(STEPS + down, 0.0), wrong @ -down
        return gained - lost, gained + lost
    chances, last = posteriors(epsilon, guesses.masses), guesses.moments - 1
    total, size = np.empty((2, last.size, rise.size))
    for place, (step, gain) in enumerate(zip(STEPS, rise, strict=True)):
        down = -np.log1p(chances * gain)
        each = np.where(guesses.right, step + down, down)
        total[:, place], size[:, place] = np.cumsum(each)[last], np.cumsum(np.abs(each))[last]
    return total, size


def counted_epsilon(guesses: Guesses, alpha: float, delta: float = 0.0) -> float:
    """The epsilon that so many right guesses certify, where their number was fixed before looking at the output.

    Which canaries are guessed may depend on the output. delta = 0: given the output, the number of right guesses is
    dominated by a sum of independent Bernoulli(beta_i) (Steinke et al. for two values, Swanberg et al. for many), and
    the claims at which so many are less likely than alpha are refuted. delta > 0: what `many_targets.allowance` proves,
    with the smallest variance that a guess about each canary can have, is taken off alpha beforehand. Where all
    canaries have equally many equally likely values, the exact chance (`uniform`) takes its place if the guesses are
    few and delta matters: that, too, is settled beforehand.
    """
    if guesses.successes == 0:
        return 0.0
    alike = bool(np.ptp(guesses.masses) == 0)

    def refuted(first: float, last: float) -> bool:
        left = alpha - named_allowance(guesses, first, last, delta)
        if left <= 0:
            return False
        chances = posteriors(last, guesses.masses)
        if alike:
            return _binomial_tail(guesses.successes, guesses.count, float(chances[0])) <= left
        return PoissonBinomial(chances).log_at_least(guesses.successes) <= math.log(left)

    found = _last(refuted)
    costly = named_allowance(guesses, 0.0, 0.0, delta) > WORTH_IT * alpha
    if not (costly and guesses.count <= FEW_GUESSES and _is_plain(guesses)):
        return found
    values, targets = guesses.canaries.values or 2, guesses.canaries.people

    def is_unlikely(_: float, epsilon: float) -> bool:
        return exact_chance([(epsilon, delta)], values, guesses.successes, guesses.count, targets) <= alpha

    return max(found, _last(is_unlikely, found, 0.02, 1e-6))


def named_allowance(guesses: Guesses, first: float, last: float, delta: float) -> float:
    """What delta adds to the chance of any number of right guesses at most, at every epsilon from first to last.

    As `many_targets.allowance`, but the Bernoulli variables are those of the sets that are named. Of each canary the
    smallest variance of any set counts: beta (1 - beta) rises and then falls with kappa and with epsilon.
    """
    if delta == 0:
        return 0.0
    canaries = guesses.canaries
    ends = [posteriors(place, held) for place in (first, last) for held in (canaries.baselines, canaries.smallest)]
    least = np.min([chances * (1 - chances) for chances in ends], axis=0)
    return canaries.excess(first, delta) * mean_mode(least, guesses.count)


def _is_plain(guesses: Guesses) -> bool:
    values = guesses.canaries.values
    return values is not None and bool(np.all(np.abs(guesses.masses * values - 1) < 1e-12))


def _last(refuted: Callable[[float, float], bool], start: float = 0.0, step: float = 1.0, until: float = 1e-9) -> float:
    """The end of the claims from `start` on that are refuted; `refuted` says whether all in an interval are."""
    if not refuted(start, start):
        return 0.0
    epsilon = start
    while step > until and epsilon < LARGEST:
        if refuted(epsilon, epsilon + step):
            epsilon, step = epsilon + step, 2 * step
        else:
            step /= 2
    return epsilon


def _binomial_tail(successes: int, trials: int, chance: float) -> float:
    """P(Bin(trials, chance) >= successes), rounded up."""
    from scipy.special import betainc

    return float(betainc(successes, trials - successes + 1, chance)) * (1 + 1e-10)
