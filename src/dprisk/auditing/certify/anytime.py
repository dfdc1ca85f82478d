"""The epsilon that counts certify at every moment at once: by betting against the claim.

The setting is that of `counts`. Looking after every run and stopping whenever one likes is allowed here.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dprisk.auditing.certify.counts import Counts, as_alpha, as_delta, rate
from dprisk.errors import as_epsilon, require
from dprisk.types import FloatArray

STEPS = np.geomspace(1e-5, 60.0, 90)  # epsilons above the claim that the e-value bets on
_WEIGHTS = 1 / (1 + (np.log(STEPS / 0.1) / 3) ** 2)
LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
ROUNDING = 1e-14  # relative error of a computed log factor, subtracted from every e-value


def log_e_value(counts: Counts, epsilon: float, delta: float = 0.0) -> float:
    """The logarithm of the evidence against the claim: an e-process, valid at any stopping time.

    Score a run X = 1 if correct, -c if wrong, 0 if abstained. Under the claim E[X] = S - c W <= delta, given all
    earlier runs, whatever they were. So for any stake lam in [0, 1/(c + delta)] the factor 1 + lam (X - delta) is never
    negative and has mean at most 1; the product over runs is a nonnegative supermartingale that starts at 1, and so is
    a mixture of such products with weights fixed beforehand. By Ville's inequality it ever reaches 1/alpha with
    probability at most alpha. Products forget the order, so the counts suffice.

    The stakes are lam = (e^d - 1)/(1 + (c + delta) e^d) for 90 fixed steps d from 1e-5 to 60. At delta = 0 that is the
    likelihood ratio of epsilon + d against epsilon, whatever s and epsilon are: log-spaced d serve a few runs and 1e9,
    rare and nearly certain success alike. The weights fall slowly away from d = 0.1. Rounded down by 1e-14 of the size
    of the sum, so that computed values are e-values too.
    """
    return float(log_e_values([[counts]], epsilon, delta)[0])


def log_e_values(attackers: Sequence[Sequence[Counts]], epsilon: float, delta: float = 0.0) -> FloatArray:
    """The same of several attackers, each with its counts, one for each number of suspects that it was put before."""
    epsilon = as_epsilon(epsilon)
    return _log_evidence(_by_size(attackers), len(attackers), epsilon, epsilon, as_delta(delta))


def right_answers_to_reach(
    enough: float, parts: Sequence[Counts], size: int, most: int, epsilon: float, delta: float = 0.0
) -> int | None:
    """How many more right answers, among so many suspects, bring a log e-value there; None if not `most`."""
    logs = _log_products(_by_size([parts]), 1, epsilon, epsilon, delta)[0]
    gained = (1 - ROUNDING) * _log_factors(epsilon, size, delta)[0]

    def reached(right: int) -> bool:
        return log_sum_exp(logs + right * gained) >= enough

    return bisect_left(range(most), True, lo=1, key=reached) if most > 0 and reached(most) else None


def anytime_epsilon(counts: Counts, alpha: float, delta: float = 0.0) -> float:
    """A lower bound on epsilon to be read after every run: with chance at most alpha it is ever above the true one.

    The infimum of the claims epsilon whose e-value is below 1/alpha, from below. If it exceeds the true epsilon, the
    e-value of the true claim has reached 1/alpha, which happens at any time with probability at most alpha (one event
    for the whole audit: no union over times or over epsilons). 0 if nothing is shown.

    The bound walks up from 0 in steps over which every claim is refuted. In a step the factors of correct and wrong
    answers are smallest at its end and those of abstentions at its start, and these are taken. At delta = 0
    abstentions do not count, the e-value falls with epsilon and the walk is a bisection.
    """
    return anytime_epsilon_of_several([[counts]], alpha, delta)


def anytime_epsilon_of_several(
    attackers: Sequence[Sequence[Counts]], alpha: float, delta: float = 0.0, weights: Sequence[float] | None = None
) -> float:
    """The same for several attackers, each with its counts, one for each number of suspects that it was put before.

    The e-value of an attacker is the mixture of the products over all its runs, whatever their numbers of suspects. The
    weighted average of e-values is an e-value of the same claim (`combine_e_values`): the price of k attackers is
    log k, however they depend on each other and whenever earlier runs make them change their rules (theory, 4.4).
    Over a step of the walk the average is at least the average of what each is at least.
    """
    alpha, delta = as_alpha(alpha), as_delta(delta)
    enough, counted = -math.log(alpha), _by_size(attackers)

    def evidence(first: float, last: float) -> float:
        return combine_e_values(_log_evidence(counted, len(attackers), first, last, delta), weights)

    if evidence(0.0, 0.0) < enough:
        return 0.0
    epsilon, step, walks = 0.0, 1.0, True
    while step > 1e-10:
        if evidence(epsilon, epsilon + step) >= enough:
            epsilon += step
            step *= 2 if walks else 0.5
        else:
            step, walks = step / 2, delta > 0  # at delta = 0 what lies beyond is not refuted
    return epsilon


def combine_e_values(logs: Sequence[float] | FloatArray, weights: Sequence[float] | None = None) -> float:
    """The log of the average of e-values, given by their logs: again an e-value for the same claim.

    E[sum w_i E_i] <= 1 by linearity, however the E_i depend on each other. E-processes may be averaged while they run,
    with weights that add up to 1 and are fixed beforehand; equal ones if none are given.
    """
    require(len(logs) > 0 and not np.isnan(logs).any(), "Give at least one log e-value, each a number, in a list.")
    shares = np.full(len(logs), 1 / len(logs)) if weights is None else np.asarray(weights, dtype=float)
    return log_sum_exp(np.asarray(logs, dtype=float) + np.log(shares))


def _by_size(attackers: Sequence[Sequence[Counts]]) -> dict[int, FloatArray]:
    """For each number of suspects the right, wrong and withheld answers of each attacker, 3 x attackers x 1."""
    found: dict[int, FloatArray] = {}
    for place, parts in enumerate(attackers):
        for counts in parts:
            mine = found.setdefault(counts.size, np.zeros((3, len(attackers), 1)))
            mine[:, place, 0] += counts.correct, counts.wrong, counts.runs - counts.answered
    return found


def _log_evidence(
    counted: dict[int, FloatArray], attackers: int, first: float, last: float, delta: float
) -> FloatArray:
    """For each attacker at most the log e-value of every claim from first to last; that of the claim if it is one."""
    logs = _log_products(counted, attackers, first, last, delta)
    top = logs.max(axis=1, keepdims=True)
    found: FloatArray = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
    return found


def _log_products(
    counted: dict[int, FloatArray], attackers: int, first: float, last: float, delta: float
) -> FloatArray:
    """The same of each stake with its weight, the sum of which is the e-value, attackers x stakes."""
    total, sizes = np.zeros((attackers, STEPS.size)), np.zeros((attackers, STEPS.size))
    for size, (right, wrong, silent) in counted.items():
        up, down, _ = _log_factors(last, size, delta)
        gained, lost = right * up, wrong * -down
        if delta > 0:
            lost -= silent * _log_factors(first, size, delta)[2]
        total += gained - lost
        sizes += gained + lost
    return np.asarray(LOG_WEIGHTS + total - ROUNDING * sizes)


@lru_cache(maxsize=1024)  # of a claim at every look, and of the first steps of every walk
def _log_factors(epsilon: float, size: int, delta: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The logs of 1 + lam (X - delta) for a correct, a wrong and no answer, one for each stake.

    With R = (c + delta)/(1 + c + delta) and g = e^d - 1: lam = (1 - R) g/(1 + R g), and a wrong answer leaves
    1 - lam (c + delta) = 1/(1 + R g). The first two fall as epsilon rises, the third rises.
    """
    log_odds = epsilon - math.log(size - 1)
    if delta > 0:
        log_odds = float(np.logaddexp(log_odds, math.log(delta)))
    gain = np.expm1(STEPS)
    stake = rate(-log_odds) * gain / (1 + rate(log_odds) * gain)
    return np.log1p((1 - delta) * stake), -np.log1p(rate(log_odds) * gain), np.log1p(-delta * stake)


def log_sum_exp(logs: FloatArray) -> float:
    """ln of the sum of e^logs."""
    top = float(logs.max())
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(logs - top).sum()))
