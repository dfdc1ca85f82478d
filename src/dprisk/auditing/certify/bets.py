"""Bounds on the mean of independent values in an interval, such as one-run values: by betting."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dprisk.auditing.certify.anytime import ROUNDING, log_sum_exp
from dprisk.auditing.certify.counts import as_alpha
from dprisk.errors import as_number, fail, require
from dprisk.types import FloatArray

BETS = np.geomspace(1e-4, 0.999, 40)  # stakes on the mean of values in [0, 1]
TUNED = 0.8  # of the capital, on the stake that pilot runs suggest; the rest is spread over all of them
LEVELS = 1 << 14  # distinct values that a bound on a mean keeps apart


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
    if not ((x >= low) & (x <= high)).all():
        fail(f"The values must lie in [{low:g}, {high:g}], got {float(x.min()):g} to {float(x.max()):g}.")
    if anytime:
        levels, counts = np.unique(x, return_counts=True)
        return Bet(low, high).lower(levels, counts.astype(float), alpha)
    enough, scaled = -math.log(alpha), (x - low) / (high - low)
    stakes = _stakes(scaled, enough)
    refuted = _first_refuted(lambda m: float(np.cumsum(np.log1p(stakes * (scaled - m))).max()), enough)
    return low + refuted * (high - low)


def _stakes(x: FloatArray, enough: float) -> FloatArray:
    """What to stake on each of n values in [0, 1], from the values before it."""
    t = np.arange(1, x.size + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    earlier = np.concatenate([[0.25], variance[:-1]])
    return np.minimum(0.999, np.sqrt(2 * enough / (x.size * earlier)))
