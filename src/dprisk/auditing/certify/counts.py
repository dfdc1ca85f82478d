"""Counted answers, and the epsilon that they certify where the number of runs was fixed beforehand.

The setting of every function on `Counts`: a set U of s records is fixed. In each run a fresh Z is drawn uniformly from
U, the mechanism is run on it, and the attacker, who sees the output alone, answers with a record of U or abstains.
With S = Pr[correct] and W = Pr[wrong], every (epsilon, delta)-DP mechanism (replace one) has

    S <= c W + delta,    c = e^epsilon / (s - 1)                                             (theory, 4.1).

U, the attacker and the number of runs must not depend on the runs that are counted; `anytime` is for looking at every
run and stopping whenever one likes.

Three kinds of numbers, and they are not interchangeable. `certified_epsilon` is wrong with probability at most alpha
for a number of runs fixed beforehand; `anytime_epsilon` is so at every moment at once; `epsilon_estimate` and
`rad_point_estimate` are estimates, above the truth about as often as below. Nothing here draws random numbers.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import asdict, dataclass

import numpy as np

from dprisk.errors import ParameterError, as_epsilon, as_number, as_whole, fail, require
from dprisk.types import FloatArray

SHARE = 0.1  # of alpha, spent on how often the attacker is right at all; for delta > 0 only


@dataclass(frozen=True)
class Counts:
    """What `runs` runs gave: how often the attacker `answered`, how often that was `correct`, out of `size` records.

    Blocks of runs on the same number of records add up.

    >>> Counts(runs=100, answered=40, correct=30, size=8) + Counts(runs=100, answered=50, correct=41, size=8)
    Counts(runs=200, answered=90, correct=71, size=8)
    """

    runs: int
    answered: int
    correct: int
    size: int

    def __post_init__(self) -> None:
        plain = {type(self.runs), type(self.answered), type(self.correct), type(self.size)} == {int}
        if not (plain and 0 <= self.correct <= self.answered <= self.runs <= 2**53 and self.size >= 2):
            self._check()  # seldom, since an audit makes many

    def _check(self) -> None:
        for name in ("runs", "answered", "correct"):
            object.__setattr__(self, name, as_whole(name, getattr(self, name), least=0))
        object.__setattr__(self, "size", as_whole("size, the number of records to tell apart,", self.size, least=2))
        if not self.correct <= self.answered <= self.runs:
            got = f"got {self.answered} answered, {self.correct} correct."
            fail(f"Of {self.runs} runs at most all are answered, and of those at most all correctly; {got}")

    @property
    def wrong(self) -> int:
        """Runs answered with another record than the true one."""
        return self.answered - self.correct

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        if self.size != other.size:
            got = f"got {self.size} and {other.size}. Combine their e-values instead."
            fail(f"Only counts over the same number of records add up, {got}")
        return Counts(self.runs + other.runs, self.answered + other.answered, self.correct + other.correct, self.size)

    def to_dict(self) -> dict[str, int]:
        """Ready for JSON."""
        return asdict(self) | {"wrong": self.wrong}

    @classmethod
    def read(cls, told: dict[str, int]) -> Counts:
        """What `to_dict` wrote."""
        return cls(told["runs"], told["answered"], told["correct"], told["size"])

    def summary(self) -> dict[str, int]:
        """What a report says of them."""
        return {"runs": self.runs, "answered": self.answered, "correct": self.correct}

    def describe(self) -> str:
        """In words."""
        return f"{self.correct:,} right of {self.answered:,} answers in {self.runs:,} runs among {self.size:,} suspects"


def fewest_runs(size: int, epsilon: float, delta: float, alpha: float) -> int | None:
    """How many right answers and no wrong one it takes to certify more than an epsilon; None if no number does.

    >>> fewest_runs(2, 1.0, 0.0, 0.01)
    15
    """

    def is_enough(runs: int) -> bool:
        return certified_epsilon(Counts(runs, runs, runs, size), alpha, delta) > epsilon

    most = next((2**power for power in range(1, 50) if is_enough(2**power)), None)
    return None if most is None else bisect.bisect_left(range(most), True, lo=1, key=is_enough)


def certified_epsilon(counts: Counts, alpha: float, delta: float = 0.0) -> float:
    """A lower bound on epsilon that exceeds the true one with probability at most alpha; 0 if nothing is shown.

    delta = 0. Let r be the chance of being right in an answered run. S <= c W says r <= c/(1 + c), so that
    epsilon >= ln((s - 1) r/(1 - r)), which rises with r. Given how many runs were answered, `correct` is binomial with
    r, and the one-sided Clopper-Pearson bound is above r with probability at most alpha. The runs must
    be independent, but may differ: given which were answered, `correct` is stochastically at most binomial with
    c/(1 + c) if each keeps the claim. An attacker that answers or abstains by how earlier runs went needs
    `anytime_epsilon`.

    delta > 0. S <= c W + delta, W = S (1 - r)/r, say

        epsilon >= ln((s - 1) r/(1 - r)) + ln(1 - delta/S),

    which rises with r and with S: the certificate for delta = 0, less what delta may explain of the correct answers.
    Take Clopper-Pearson lower bounds, on r at 0.9 alpha (given the number of answers, hence also without) and on S at
    0.1 alpha. Unless one of them is above its rate, which happens with probability at most alpha, the certificate is at
    most the true epsilon. This needs independent runs of one mechanism and one attacker.

    The usual split bounds S from below and W from above at alpha/2 each, and both errors count in full. Here the error
    of S counts only through delta/S: as delta/S vanishes, the certificate becomes the exact one at 0.9 alpha. It is the
    weaker one only where delta explains most of the correct answers.

    Rounded down. No certificate is ever infinite: n correct answers out of n leave r >= alpha^(1/n).

    >>> round(certified_epsilon(Counts(runs=1_000_000, answered=1_000_000, correct=1_000_000, size=3052), 0.01), 3)
    20.312
    """
    alpha, delta = as_alpha(alpha), as_delta(delta)
    return max(0.0, _certificate(counts.correct, counts.answered, counts.runs, counts.size, alpha, delta))


def p_value(counts: Counts, epsilon: float, delta: float = 0.0) -> float:
    """How surprising the counts are under the claim: at most any p with probability at most p, if the claim holds.

    delta = 0: the exact binomial tail, the chance of so many correct answers or more at r = c/(1 + c).
    delta > 0: the smallest alpha at which `certified_epsilon` refutes the claim. The certificates rise with alpha, so
    that Pr[p <= a] <= inf over a' > a of Pr[certified at a' > epsilon] <= a. Rounded up.
    """
    epsilon, delta = as_epsilon(epsilon), as_delta(delta)
    if counts.correct == 0:
        return 1.0
    if delta == 0:
        return min(1.0, _tail(counts.correct, counts.answered, epsilon - math.log(counts.size - 1)))

    def refuted(log_alpha: float) -> bool:
        alpha = math.exp(log_alpha)
        return _certificate(counts.correct, counts.answered, counts.runs, counts.size, alpha, delta) > epsilon

    low, high = -690.0, 0.0  # 1e-300 and 1
    if not refuted(high):
        return 1.0
    if refuted(low):
        return math.exp(low)
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return min(1.0, math.exp(high))


def epsilon_estimate(counts: Counts, delta: float = 0.0) -> float:
    """The plug-in estimate ln((s - 1)(S - delta)/W) from observed shares, at least 0. Not a bound.

    Infinite if no answer was wrong and the correct ones are more than delta explains; 0 without answers.
    """
    delta = as_delta(delta)
    if counts.runs == 0 or counts.correct <= delta * counts.runs:
        return 0.0
    if counts.wrong == 0:
        return math.inf
    return max(0.0, math.log((counts.size - 1) * ((counts.correct - delta * counts.runs) / counts.wrong)))


def expected_certificate(
    correct_rate: float, wrong_rate: float, runs: float, size: int, alpha: float, delta: float = 0.0
) -> float:
    """The certificate if every count were its expectation: to choose a design before running. Not a bound itself.

    >>> e = math.exp(1.0)
    >>> round(expected_certificate(e / (e + 3051), 3051 / (e + 3051), 1_000_000, 3052, alpha=0.01), 3)
    0.921
    """
    correct, wrong = as_number("correct_rate", correct_rate), as_number("wrong_rate", wrong_rate)
    runs, size = as_number("runs", runs), as_whole("size, the number of records to tell apart,", size, least=2)
    if not (min(correct, wrong) >= 0 and correct + wrong <= 1 + 1e-9):
        fail(f"correct_rate and wrong_rate are shares of all runs, got {correct:g} and {wrong:g}")
    require(0 <= runs < math.inf, f"runs must be at least 0, got {runs:g}")
    rates = np.array([correct]), np.array([wrong])
    return float(expected_certificates(*rates, runs, size, as_alpha(alpha), as_delta(delta))[0])


def expected_certificates(
    correct: FloatArray, wrong: FloatArray, runs: float, size: int, alpha: float, delta: float
) -> FloatArray:
    """The same for many pairs of rates at once, taken as they are and not rounded to the safe side."""
    from scipy.special import expit

    answered = np.minimum(1.0, correct + wrong) * runs
    right = np.minimum(correct * runs, answered)
    found = math.log(size - 1) + _log_odds(right, answered, alpha if delta == 0 else (1 - SHARE) * alpha)
    if delta > 0:
        success = expit(_log_odds(right, runs, SHARE * alpha))
        with np.errstate(divide="ignore", invalid="ignore"):
            found += np.where(success > delta, np.log1p(-delta / success), -np.inf)
    return np.maximum(0.0, found)


def _log_odds(right: FloatArray, trials: FloatArray | float, alpha: float) -> FloatArray:
    """What `lower_log_odds` gives, for many at once and not rounded down."""
    from scipy.special import betainccinv, betaincinv

    some = right > 0
    failures = trials - right + 1
    with np.errstate(divide="ignore"):  # of rates below the smallest number there is
        found = np.log(betaincinv(right, failures, alpha, where=some, out=np.zeros_like(right)))
    rest = betainccinv(failures, right, alpha, where=some, out=np.ones_like(right))
    return np.asarray(found - np.log(rest))


def _certificate(correct: float, answered: float, runs: float, size: int, alpha: float, delta: float) -> float:
    """The lower bound of `certified_epsilon` before it is cut at 0; the counts may be fractions."""
    if correct <= 0:
        return -math.inf
    log_odds, left = lower_log_odds(correct, answered, alpha if delta == 0 else (1 - SHARE) * alpha), 0.0
    if delta > 0:
        success, explained = rate(lower_log_odds(correct, runs, SHARE * alpha)), delta * (1 + 1e-14)
        if success <= explained:
            return -math.inf
        left = math.log1p(-explained / success)
    others = math.log(size - 1)
    return log_odds + left + others - 4e-16 * (abs(log_odds) + others)


def lower_log_odds(successes: float, trials: float, alpha: float) -> float:
    """ln(r/(1 - r)) for the Clopper-Pearson lower bound r: Pr[Bin(trials, r) >= successes] = alpha, rounded down."""
    from scipy.special import betainccinv, betaincinv

    if successes <= 0 or alpha <= 0:  # a share of the smallest alpha is 0
        return -math.inf
    if successes >= trials:
        log_r = math.log(alpha) / trials
        found = log_r - math.log(-math.expm1(log_r))
    else:
        failures = trials - successes + 1
        r, rest = float(betaincinv(successes, failures, alpha)), float(betainccinv(failures, successes, alpha))
        if r == 0:  # below the smallest number there is
            return -math.inf
        found = math.log(r) - math.log(rest)
    step = 2.0**-52
    while _tail(successes, trials, found) > alpha:
        found -= step * max(1.0, abs(found))
        step *= 4
    return found


def _tail(successes: float, trials: float, log_odds: float) -> float:
    """Pr[Bin(trials, r) >= successes] at r = 1/(1 + e^-log_odds), by whichever of r and 1 - r is the smaller."""
    from scipy.special import betainc, betaincc

    if successes <= 0:
        return 1.0
    failures = trials - successes + 1
    if log_odds <= 0:
        return float(betainc(successes, failures, rate(log_odds)))
    return float(betaincc(failures, successes, rate(-log_odds)))


def rate(log_odds: float) -> float:
    """1/(1 + e^-x), accurate for large negative x."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    return math.exp(log_odds) / (1 + math.exp(log_odds))


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """A lower and an upper bound on the chance of success, each wrong with probability at most alpha.

    >>> clopper_pearson(0, 10, 0.05)[0], round(clopper_pearson(0, 10, 0.05)[1], 4)  # the rule of three: 1 - 0.05^(1/10)
    (0.0, 0.2589)
    """
    low = rate(lower_log_odds(successes, trials, alpha))
    return low, rate(-lower_log_odds(trials - successes, trials, alpha))


def as_alpha(alpha: float) -> float:
    """A chance of being wrong, strictly between 0 and 1."""
    value = as_number("alpha", alpha)
    require(0 < value < 1, f"alpha, the chance of being wrong, must lie strictly between 0 and 1, got {value:g}")
    return value


def as_delta(delta: float) -> float:
    """A delta in [0, 1]."""
    value = as_number("delta", delta)
    require(0 <= value <= 1, f"delta must lie in [0, 1], got {value:g}", ParameterError)
    return value
