"""What an attack on trained models gains by somebody's taking part: one unbiased number a training.

Fixed are D_0, the people whom the attacker knows, and a list of N people who may take part. A training adds K of the N
to D_0, drawn at random, and none of the other N - K. The attack then guesses the secret of all N. With S_in the share
of right guesses among the K, and S_out among the N - K,

    X = (1 - 1/m) (S_in - S_out),    m = N - K + 1,

has the attack's RAD as its mean: RAD Definition 4.1 for each target Z_1 in turn, averaged over who else takes part. To
see it, take one of the K aside and call the rest, with D_0, the fixed data `D_-`. Given these the one aside is uniform
over the m people of the list that are not among them. That is the prior. The success on Z_1, who took part, has mean
E S_in. In the second term Z_0 takes part and Z_1 is another draw from the prior: with chance 1/m it is Z_0 and counts
as before, otherwise it is one who did not take part. K = 1 is the thesis's setting, and X the one-run value of theory
4.2.

Given D_0 and the list, trainings with draws and noise of their own are independent, and X lies in [-1, 1]. Intervals
are by betting over the trainings. People attacked through the same model are not independent: however many they are,
one training is one value, since a training that gives everybody away half the time looks fine the other half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprisk.auditing.certify.anytime import ROUNDING, log_sum_exp
from dprisk.types import BoolArray, FloatArray, IntArray

Interval = tuple[float, float]
MOST = 0.999  # of what one has, at one bet
STAKES = np.geomspace(1e-3, MOST, 30)
TUNED = 0.8  # of the capital, on the stake that suits the variance that is expected
PRECISION = 1e-7


@dataclass(frozen=True)
class Rate:
    """A mean over the trainings, with an interval."""

    mean: float
    interval: Interval


def draw_participants(people: int, targets: int, rng: np.random.Generator) -> BoolArray:
    """Who of the list takes part in a training: so many, every choice equally likely."""
    took_part = np.zeros(people, dtype=bool)
    took_part[rng.permutation(people)[:targets]] = True
    return took_part


def success_and_advantage(right: BoolArray, took_part: BoolArray) -> tuple[float, float]:
    """S_in and X of one training, from whom the attack was right about and who took part."""
    inside, outside = float(right[took_part].mean()), float(right[~took_part].mean())
    m = int((~took_part).sum()) + 1
    return inside, (1 - 1 / m) * (inside - outside)


def advantage_by_value(right: BoolArray, took_part: BoolArray, secret: IntArray, values: int) -> FloatArray:
    """For the people with each value, a number whose mean is the success on participants less that on others.

    Each of the N takes part with chance K/N. So the mean of (1{right} - 1/2) N/K over those who do, less that with
    N/(N - K) over those who do not, has the difference as its mean, also where few have the value, or no participant
    does; 0 where nobody on the list has it. The half makes no difference to the mean, and lets it vary less.
    """
    n, k = took_part.size, int(took_part.sum())
    weights = np.where(took_part, n / k, -n / (n - k))
    counts = np.bincount(secret, minlength=values)
    sums = np.bincount(secret, weights * (right - 0.5), minlength=values)
    return np.divide(sums, counts, out=np.zeros(values), where=counts > 0)


def expected_variance(people: int, targets: int) -> float:
    """About how much X varies between trainings, before any is done: as if whom an attack is right about were fixed."""
    return 0.25 * (1 / targets + 1 / (people - targets))


def mean_by_betting(values: FloatArray, low: float, high: float, alpha: float, variance: float, planned: int) -> Rate:
    """The mean of independent values in [low, high], in an interval that misses it with probability at most alpha.

    With x and m scaled to [0, 1]: if the mean is m, then 1 + s (x/m - 1) has mean 1, and is never negative for a stake
    s in [0, 1]. Products over the values and mixtures over stakes stay nonnegative martingales, which ever reach
    2/alpha with probability at most alpha/2 (Ville). The mixture falls with m, so the lower end is the largest m at
    which it does; the upper end is that of the values turned round (Waudby-Smith and Ramdas, JRSS B 2024). It holds
    whenever one stops. Most is put on the stake that suits `planned` values of this `variance`, told beforehand.
    """
    inside = np.clip(values, low, high)  # for what floats add at the ends
    spread = max(variance, 1e-12) / (high - low) ** 2
    stake = min(MOST, 0.5 * math.sqrt(2 * math.log(2 / alpha) / (planned * spread)))
    scaled = (inside - low) / (high - low)
    lower, upper = _lower_end(scaled, stake, alpha / 2), 1 - _lower_end(1 - scaled, stake, alpha / 2)
    return Rate(float(inside.mean()), (low + lower * (high - low), low + upper * (high - low)))


def _lower_end(x: FloatArray, stake: float, alpha: float) -> float:
    """From below, the largest mean of values in [0, 1] that a bet refutes; 0 if it refutes none."""
    stakes = np.append(STAKES, stake)
    weights = np.append(np.full(STAKES.size, (1 - TUNED) / STAKES.size), TUNED)

    def refuted(mean: float) -> bool:
        logs = np.log1p(np.outer(x / mean - 1, stakes))
        capital = log_sum_exp(logs.sum(axis=0) - ROUNDING * np.abs(logs).sum(axis=0) + np.log(weights))
        return bool(capital >= -math.log(alpha))

    below, above = 0.0, 1.0
    while above - below > PRECISION:
        middle = (below + above) / 2
        below, above = (middle, above) if refuted(middle) else (below, middle)
    return below
