"""From one-run values to a certified lower bound on epsilon, for any prior, knowledge and idea of success.

In a run Z is drawn from the prior, the mechanism is run on it, and the attacker guesses for each thing that it may know
of Z. Let A be the records on which it then succeeds. X = 1{Z in A} - pi(A) has the attack's advantage (RAD) as its mean
(theory, 4.2). A lower confidence bound on that mean, put into the tightest bound on the advantage that holds for every
(epsilon, delta)-DP mechanism, is a certificate at the same level: whatever the code is, and whatever the attack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.auditing.certify.statistics import ROUNDING, as_alpha, as_delta, log_sum_exp
from dprisk.bounds import REGISTRY, Bound, Value
from dprisk.bounds.papers import rad_corollary_5_6
from dprisk.errors import ThreatError, TooLargeError, as_number, fail, require
from dprisk.guarantees import ApproxDP, Guarantee
from dprisk.threat.threat import Threat
from dprisk.types import BoolArray, FloatArray, IntArray

BETS = np.geomspace(1e-4, 0.999, 40)  # stakes on the mean of values in [0, 1]
TUNED = 0.8  # of the capital, on the stake that pilot runs suggest; the rest is spread over all of them
LEVELS = 1 << 14  # distinct values that a bound on a mean keeps apart
DIGITS = 16  # binary digits to which masses are rounded up, so that a tally stays short
SLACK = 1e-9  # of the last of them, so that the rounding of sums does not count
MOST_RECORDS = 300  # records up to which optimisation problems are solved again and again, if asked for


@dataclass(frozen=True, eq=False)
class Gains:
    """A tally of one-run values: how many runs with each mass pi(A) were hits (Z in A) and how many misses.

    Tallies add up, in any order. `Gains.of` rounds masses up to 16 binary digits, and so the values X down.

    >>> some = Gains.of(np.array([0.25, 0.25, 0.5]), np.array([True, False, True]))
    >>> (some + some).runs, some.mean
    (6, 0.3333333333333333)
    """

    masses: FloatArray
    hits: IntArray
    misses: IntArray

    @classmethod
    def of(cls, mass: FloatArray, hit: BoolArray) -> Gains:
        """The tally of runs with these masses, in which the attacker was right or not."""
        fraction, power = np.frexp(mass)
        rounded = np.ldexp(np.ceil(fraction * 2.0**DIGITS - SLACK), power - DIGITS)
        return _merged(rounded, hit.astype(np.int64), (~hit).astype(np.int64))

    @classmethod
    def read(cls, told: dict[str, Any]) -> Gains:
        """What `to_dict` wrote."""
        masses, hits, misses = (told[name] for name in ("masses", "hits", "misses"))
        return cls(np.array(masses, dtype=float), np.array(hits, dtype=np.int64), np.array(misses, dtype=np.int64))

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return int(self.hits.sum() + self.misses.sum())

    @property
    def correct(self) -> int:
        """How many were hits."""
        return int(self.hits.sum())

    @property
    def values(self) -> tuple[FloatArray, FloatArray]:
        """The distinct values X, and how often each occurred."""
        return np.concatenate([1 - self.masses, -self.masses]), np.concatenate([self.hits, self.misses]).astype(float)

    @property
    def mean(self) -> float:
        """The mean of X, an unbiased estimate of the advantage but for the rounding; 0 without runs."""
        values, times = self.values
        return float(values @ times) / max(1, self.runs)

    @property
    def variance(self) -> float:
        """The variance of X among the runs; 0 without runs."""
        values, times = self.values
        return float((values - self.mean) ** 2 @ times) / max(1, self.runs)

    def __add__(self, other: Gains) -> Gains:
        if not isinstance(other, Gains):
            return NotImplemented
        return _merged(
            np.concatenate([self.masses, other.masses]),
            np.concatenate([self.hits, other.hits]),
            np.concatenate([self.misses, other.misses]),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gains) and self.to_dict() == other.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {"masses": self.masses.tolist(), "hits": self.hits.tolist(), "misses": self.misses.tolist()}

    def summary(self) -> dict[str, Any]:
        """What a report says of it."""
        return {"runs": self.runs, "correct": self.correct}

    def describe(self) -> str:
        """In words."""
        return f"{self.correct} right of {self.runs} guesses, advantage {self.mean:.4g}"

    def __repr__(self) -> str:
        return f"Gains({self.describe()})"


def _merged(masses: FloatArray, hits: IntArray, misses: IntArray) -> Gains:
    distinct, place = np.unique(masses, return_inverse=True)
    sums = np.zeros((2, distinct.size), dtype=np.int64)
    np.add.at(sums[0], place, hits)
    np.add.at(sums[1], place, misses)
    return Gains(distinct, *sums)


@dataclass(frozen=True)
class Bet:
    """How to bet on the mean of independent values in [low, high].

    If the mean is at most m, then 1 + lam (x - m), x and m scaled to [0, 1], is a factor of mean at most 1 and never
    negative for every stake lam in [0, 1). Products over the runs are nonnegative supermartingales, and so are mixtures
    with weights fixed beforehand: 0.8 on `stake` (if pilot runs suggest one), the rest spread evenly over 40 stakes. So
    the mixture ever reaches 1/alpha with probability at most alpha (Ville), at any moment it is looked at, and since
    products forget the order, a tally suffices (Waudby-Smith and Ramdas, JRSS B 2024).
    """

    low: float
    high: float
    stake: float | None = None

    @classmethod
    def tuned(cls, low: float, high: float, variance: float, runs: float, alpha: float) -> Bet:
        """With the stake that gains most over so many runs of this variance: sqrt(2 ln(1/alpha)/(n var))."""
        spread = max(variance, 1e-12) / (high - low) ** 2
        return cls(low, high, min(0.999, math.sqrt(-2 * math.log(alpha) / (runs * spread))))

    def log_capital(self, values: FloatArray, times: FloatArray, mean: float) -> float:
        """The evidence against a mean of at most `mean`, as a log e-value. It falls with `mean`."""
        x, times = self._levels(values, times)
        m = (mean - self.low) / (self.high - self.low)
        return self._capital(x, times)(min(1.0, m)) if m >= 0 else math.inf

    def lower(self, values: FloatArray, times: FloatArray, alpha: float) -> float:
        """A lower bound on the mean; with probability at most alpha it is ever above it."""
        capital = self._capital(*self._levels(values, times))
        return self.low + _first_refuted(capital, -math.log(alpha)) * (self.high - self.low)

    def upper(self, values: FloatArray, times: FloatArray, alpha: float) -> float:
        """An upper bound on the mean, by the same bet on the values turned round."""
        return -Bet(-self.high, -self.low, self.stake).lower(-values, times, alpha)

    def _levels(self, values: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The values scaled to [0, 1]; too many distinct ones are rounded down to so many levels."""
        used = times > 0
        x = np.clip((values[used] - self.low) / (self.high - self.low), 0.0, 1.0)
        if x.size <= LEVELS:
            return x, times[used]
        levels, place = np.unique(np.floor(x * LEVELS) / LEVELS, return_inverse=True)
        return levels, np.bincount(place, weights=times[used]).astype(float)

    def _capital(self, x: FloatArray, times: FloatArray) -> Callable[[float], float]:
        stakes = BETS if self.stake is None else np.append(BETS, self.stake)
        share = 1.0 if self.stake is None else 1 - TUNED
        weights = np.append(np.full(BETS.size, share / BETS.size), [TUNED] * (stakes.size - BETS.size))

        def capital(mean: float) -> float:
            logs = np.log1p(np.outer(x - mean, stakes))
            return log_sum_exp(times @ logs - ROUNDING * (times @ np.abs(logs)) + np.log(weights))

        return capital


def _first_refuted(capital: Callable[[float], float], enough: float) -> float:
    """From below, the largest mean in [0, 1] that a falling capital refutes; 0 if it refutes none."""
    below, above = 0.0, 1.0
    if capital(below) < enough:
        return 0.0
    while above - below > 1e-8:
        middle = (below + above) / 2
        below, above = (middle, above) if capital(middle) >= enough else (below, middle)
    return below


def advantage_lower_bound(
    values: npt.ArrayLike, alpha: float, *, anytime: bool = False, low: float = -1.0, high: float = 1.0
) -> float:
    """A lower bound on the mean of independent one-run values, above it with probability at most alpha.

    The values are X = 1{success on Z} - sum_z pi_z 1{success on z}, whose mean is the advantage of the attack (theory,
    4.2), in order of the runs and known to lie in [low, high]. Betting (Waudby-Smith and Ramdas, JRSS B 2024): if the
    mean is at most m, then prod (1 + lam_t (X_t - m)) is a nonnegative supermartingale for stakes lam_t in
    [0, 1/(high - low)] chosen from earlier values, and ever reaches 1/alpha with probability at most alpha. It falls
    with m, so the bound is the m where it does.

    Fixed number of values n: lam_t = sqrt(2 ln(1/alpha) / (n var_t)), var_t the variance so far (their equation 26),
    and the largest product on the way counts. `anytime`: a mixture over 40 fixed stakes, so that the bound may be read
    after every value; more than 16384 distinct values are rounded down to so many levels.
    """
    alpha, low, high = as_alpha(alpha), as_number("low", low), as_number("high", high)
    x = np.asarray(values, dtype=float)
    require(x.ndim == 1, f"The values must be a list of numbers, got an array of shape {x.shape}.")
    require(-math.inf < low < high < math.inf, f"low must be below high, got {low:g} and {high:g}")
    if x.size == 0:
        return low
    require(
        bool((x >= low).all() and (x <= high).all()),
        f"The values must lie in [{low:g}, {high:g}], got {float(x.min()):g} to {float(x.max()):g}.",
    )
    if anytime:
        levels, counts = np.unique(x, return_counts=True)
        return Bet(low, high).lower(levels, counts.astype(float), alpha)
    enough = -math.log(alpha)
    capital = _plug_in_capital((x - low) / (high - low), enough)
    return low + _first_refuted(capital, enough) * (high - low)


def _stakes(x: FloatArray, enough: float) -> FloatArray:
    """What to stake on each of n values in [0, 1], from the values before it."""
    t = np.arange(1, x.size + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    earlier = np.concatenate([[0.25], variance[:-1]])
    return np.minimum(0.999, np.sqrt(2 * enough / (x.size * earlier)))


def _plug_in_capital(x: FloatArray, enough: float) -> Callable[[float], float]:
    """The largest log capital on the way, as a function of the mean m, with stakes from earlier values."""
    stakes = _stakes(x, enough)
    return lambda m: float(np.cumsum(np.log1p(stakes * (x - m))).max())


def epsilon_from_advantage(
    advantage: float, threat: Threat, delta: float = 0.0, *, programs: bool | None = None
) -> float:
    """An epsilon that a mechanism of this advantage must exceed, or 0.

    The largest epsilon found at which the tightest bound on the advantage of (epsilon, delta)-DP mechanisms is still
    below the given one. A mechanism that kept it would break a proven bound, so the true epsilon is larger: the answer
    is on the safe side whatever the bounds' rounding, and put on a lower confidence bound of the advantage it is a
    certificate at the same level. Infinite values are never returned.

    `programs` says what to do about the bounds that are optimisation problems, which are solved some thirty times
    where no closed form is known to be attained: None solves those that `assess` would (up to 60 records, 15 with
    delta), True all of them (up to 300 records), False keeps to the closed forms.

    >>> from dprisk import GRR, Prior, Threat, assess
    >>> threat = Threat(Prior([0.5, 0.3, 0.2]))
    >>> round(epsilon_from_advantage(assess(GRR(3, epsilon=1.0), threat).advantage, threat), 3)
    1.0
    """
    require(isinstance(threat, Threat), f"{threat!r} is not a Threat.")
    advantage, delta = as_number("advantage", advantage), as_delta(delta)
    most = 1 - threat.prior.collision_probability
    require(
        advantage <= most + 1e-12,
        f"No attack on this prior has an advantage above 1 - kappa_pi = {most:g}, got {advantage:g}.",
    )
    records = threat.prior.support_size
    if programs and records > MOST_RECORDS:
        fail(
            f"Some thirty optimisation problems over {records} records take too long; programs=False keeps to the "
            "closed forms.",
            TooLargeError,
        )
    if advantage <= 0:
        return 0.0
    if threat.prior.is_uniform_on_support and threat.knows.is_none and threat.success.is_exact:
        # Corollary 5.6 is attained for every delta: no other bound is below it.
        return _last_below(lambda epsilon: rad_corollary_5_6(epsilon, delta, records), advantage, 0.0, 1e-12)
    # At delta 0 the program for one pair is that for pure DP over again, on every pair of records.
    forms = [bound for bound in REGISTRY if bound.bounds == "advantage" and (delta > 0 or bound.notion != "one pair")]
    closed = [bound for bound in forms if math.isinf(bound.most_records)]
    thorough = programs is True

    def tightest(among: Sequence[Bound], epsilon: float) -> Value:
        return _tightest(among, ApproxDP(epsilon, delta), threat, thorough)

    found = _last_below(lambda epsilon: tightest(closed, epsilon).number, advantage, 0.0, 1e-9)
    if programs is False or tightest(closed, found).attained:
        return found
    return _last_below(lambda epsilon: tightest(forms, epsilon).number, advantage, found, 1e-6)


def _tightest(among: Sequence[Bound], guarantee: Guarantee, threat: Threat, thorough: bool) -> Value:
    """The least of these bounds; of nearly equal ones that which is known to be attained."""
    values = []
    for bound in among:
        if bound.obstacle(guarantee, threat, thorough) is None:
            try:
                values.append(bound.value(guarantee, threat))
            except TooLargeError:
                continue
    require(len(values) > 0, "No bound on the advantage applies to this threat.", ThreatError)
    least = min(value.number for value in values)
    return min(values, key=lambda value: (value.number > least * (1 + 1e-9), not value.attained, value.number))


def _last_below(bound: Callable[[float], float], target: float, start: float, tolerance: float) -> float:
    """An epsilon, from start on, at which a rising bound is certainly below the target, close to the last such."""
    from scipy.optimize import brentq

    def below(epsilon: float) -> bool:
        return bound(epsilon) * (1 + 1e-12) < target

    if not below(start):
        return start
    low, step = start, max(0.01, 0.01 * start)
    while below(low + step) and low < 500:
        low += step
        step *= 2
    high = low + step
    if not below(high) and bound(high) > target:
        # The root is found in a few steps; what is returned was tried itself, whatever the solver's rounding.
        root = brentq(lambda epsilon: bound(epsilon) - target, low, high, xtol=tolerance / 4, rtol=1e-14)
        near = max(low, root - tolerance * max(1.0, root))
        low, high = (near, root) if below(near) else (low, near)
    while high - low > tolerance * max(1.0, low):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low
