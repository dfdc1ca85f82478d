"""From counted runs to a certified lower bound on epsilon.

The setting of every function on `Counts`: a set U of s records is fixed. In each run a fresh Z is drawn uniformly from
U, the mechanism is run on it, and the attacker, who sees the output alone, answers with a record of U or abstains.
With S = Pr[correct] and W = Pr[wrong], every (epsilon, delta)-DP mechanism (replace one) has

    S <= c W + delta,    c = e^epsilon / (s - 1)                                             (theory, 4.1).

U, the attacker and the number of runs must not depend on the runs that are counted, with one exception: the anytime
functions allow looking at every run and stopping whenever one likes.

Three kinds of numbers, and they are not interchangeable. `certified_epsilon` is wrong with probability at most alpha
for a number of runs fixed beforehand; `anytime_epsilon` is so at every moment at once; `epsilon_estimate` and
`rad_point_estimate` are estimates, above the truth about as often as below. Nothing here draws random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from dprisk.errors import ParameterError, as_epsilon, as_number, as_whole, require
from dprisk.types import FloatArray

SHARE = 0.1  # of alpha, spent on how often the attacker is right at all; for delta > 0 only
STEPS = np.geomspace(1e-5, 60.0, 90)  # epsilons above the claim that the e-value bets on
_WEIGHTS = 1 / (1 + (np.log(STEPS / 0.1) / 3) ** 2)
LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
ROUNDING = 1e-14  # relative error of a computed log factor, subtracted from every e-value


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
        for name in ("runs", "answered", "correct"):
            object.__setattr__(self, name, as_whole(name, getattr(self, name), least=0))
        object.__setattr__(self, "size", as_whole("size, the number of records to tell apart,", self.size, least=2))
        require(
            self.correct <= self.answered <= self.runs,
            f"Of {self.runs} runs at most all are answered, and of those at most all correctly; "
            f"got {self.answered} answered, {self.correct} correct.",
        )

    @property
    def wrong(self) -> int:
        """Runs answered with another record than the true one."""
        return self.answered - self.correct

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        require(
            self.size == other.size,
            f"Only counts over the same number of records add up, got {self.size} and {other.size}. "
            "Combine their e-values instead.",
        )
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
        return f"{self.correct} right of {self.answered} answers in {self.runs} runs among {self.size} records"


# --- one number of runs, fixed beforehand ---


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
    require(
        min(correct, wrong) >= 0 and correct + wrong <= 1 + 1e-9,
        f"correct_rate and wrong_rate are shares of all runs, got {correct:g} and {wrong:g}",
    )
    require(0 <= runs < math.inf, f"runs must be at least 0, got {runs:g}")
    answered = min(1.0, correct + wrong) * runs
    found = _certificate(min(correct * runs, answered), answered, runs, size, as_alpha(alpha), as_delta(delta))
    return max(0.0, found)


def _certificate(correct: float, answered: float, runs: float, size: int, alpha: float, delta: float) -> float:
    """The lower bound of `certified_epsilon` before it is cut at 0; the counts may be fractions."""
    if correct <= 0:
        return -math.inf
    others = math.log(size - 1)
    if delta == 0:
        log_odds = _lower_log_odds(correct, answered, alpha)
        return log_odds + others - 4e-16 * (abs(log_odds) + others)
    log_odds = _lower_log_odds(correct, answered, (1 - SHARE) * alpha)
    success = _rate(_lower_log_odds(correct, runs, SHARE * alpha))
    explained = delta * (1 + 1e-14)
    if success <= explained:
        return -math.inf
    return log_odds + math.log1p(-explained / success) + others - 4e-16 * (abs(log_odds) + others)


def _lower_log_odds(successes: float, trials: float, alpha: float) -> float:
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
        return float(betainc(successes, failures, _rate(log_odds)))
    return float(betaincc(failures, successes, _rate(-log_odds)))


def _rate(log_odds: float) -> float:
    """1/(1 + e^-x), accurate for large negative x."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    return math.exp(log_odds) / (1 + math.exp(log_odds))


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """A lower and an upper bound on the chance of success, each wrong with probability at most alpha.

    >>> clopper_pearson(0, 10, 0.05)[0], round(clopper_pearson(0, 10, 0.05)[1], 4)  # the rule of three: 1 - 0.05^(1/10)
    (0.0, 0.2589)
    """
    low = _rate(_lower_log_odds(successes, trials, alpha))
    return low, _rate(-_lower_log_odds(trials - successes, trials, alpha))


# --- at every moment at once ---


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
    return _log_evidence(counts, as_epsilon(epsilon), as_epsilon(epsilon), as_delta(delta))


def anytime_epsilon(counts: Counts, alpha: float, delta: float = 0.0) -> float:
    """A lower bound on epsilon to be read after every run: with chance at most alpha it is ever above the true one.

    The infimum of the claims epsilon whose e-value is below 1/alpha, from below. If it exceeds the true epsilon, the
    e-value of the true claim has reached 1/alpha, which happens at any time with probability at most alpha (one event
    for the whole audit: no union over times or over epsilons). 0 if nothing is shown.

    The bound walks up from 0 in steps over which every claim is refuted. In a step the factors of correct and wrong
    answers are smallest at its end and those of abstentions at its start, and these are taken. At delta = 0
    abstentions do not count, the e-value falls with epsilon and the walk is a bisection.
    """
    return anytime_epsilon_of_several([counts], alpha, delta)


def anytime_epsilon_of_several(parts: Sequence[Counts], alpha: float, delta: float = 0.0) -> float:
    """The same for the average of the e-values of several counts, of other runs or the same.

    The average is an e-value of the same claim (`combine_e_values`), and over a step of the walk it is at least the
    average of what each is at least.
    """
    alpha, delta = as_alpha(alpha), as_delta(delta)
    enough = -math.log(alpha)

    def evidence(first: float, last: float) -> float:
        return combine_e_values([_log_evidence(counts, first, last, delta) for counts in parts])

    if evidence(0.0, 0.0) < enough:
        return 0.0
    epsilon, step = 0.0, 1.0
    while step > 1e-10:
        if evidence(epsilon, epsilon + step) >= enough:
            epsilon += step
            step *= 2
        else:
            step /= 2
    return epsilon


def combine_e_values(logs: Sequence[float] | FloatArray, weights: Sequence[float] | FloatArray | None = None) -> float:
    """The log of the weighted average of e-values, given by their logs: again an e-value for the same claim.

    E[sum w_i E_i] <= sum w_i = 1 by linearity, however the E_i depend on each other. E-processes may be averaged while
    they run. Weights are fixed beforehand, equal unless given.
    """
    values = np.asarray(logs, dtype=float)
    require(values.ndim == 1 and values.size > 0, "Give at least one log e-value, in a list.")
    require(not np.isnan(values).any(), "A log e-value is not a number.")
    shares = np.full(values.size, 1 / values.size) if weights is None else np.asarray(weights, dtype=float)
    require(shares.shape == values.shape, f"{values.size} e-values need as many weights, got {shares.size}.")
    require(
        bool((shares >= 0).all()) and abs(math.fsum(shares) - 1) <= 1e-9,
        f"The weights must be at least 0 and sum to 1, got a sum of {math.fsum(shares):g}.",
    )
    used = shares > 0
    return log_sum_exp(values[used] + np.log(shares[used])) - max(0.0, math.log(math.fsum(shares)))


def _log_evidence(counts: Counts, first: float, last: float, delta: float) -> float:
    """At most the log e-value of every claim from first to last, and that of the claim if they are the same."""
    up, down, _ = _log_factors(last, counts.size, delta)
    parts = [counts.correct * up, counts.wrong * down]
    if delta > 0:
        parts.append((counts.runs - counts.answered) * _log_factors(first, counts.size, delta)[2])
    return log_sum_exp(LOG_WEIGHTS + np.sum(parts, axis=0) - ROUNDING * np.sum(np.abs(parts), axis=0))


def _log_factors(epsilon: float, size: int, delta: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The logs of 1 + lam (X - delta) for a correct, a wrong and no answer, one for each stake.

    With R = (c + delta)/(1 + c + delta) and g = e^d - 1: lam = (1 - R) g/(1 + R g), and a wrong answer leaves
    1 - lam (c + delta) = 1/(1 + R g). The first two fall as epsilon rises, the third rises.
    """
    log_odds = epsilon - math.log(size - 1)
    if delta > 0:
        log_odds = float(np.logaddexp(log_odds, math.log(delta)))
    gain = np.expm1(STEPS)
    stake = _rate(-log_odds) * gain / (1 + _rate(log_odds) * gain)
    return np.log1p((1 - delta) * stake), -np.log1p(_rate(log_odds) * gain), np.log1p(-delta * stake)


def log_sum_exp(logs: FloatArray) -> float:
    """ln of the sum of e^logs."""
    top = float(logs.max())
    if math.isinf(top):
        return top
    return top + math.log(float(np.exp(logs - top).sum()))


# --- the auditors of the papers, for comparison ---


def ldp_auditor(true_positives: float, false_positives: float, runs_per_arm: float, alpha: float) -> float:
    """LDP-Auditor (thesis Algorithm 1): ln of a lower over an upper Clopper-Pearson bound, alpha/2 each, at least 0.

    Two records, `runs_per_arm` runs on each; positives are answers "the first". A valid certificate, for two arms that
    estimate what one estimates here. It cannot exceed 12.148 at 1e6 runs and alpha 0.01 (printed as 12.25). Fractional
    counts are allowed, to compare expected ones.
    """
    alpha, runs = as_alpha(alpha), as_number("runs_per_arm", runs_per_arm)
    hits, alarms = as_number("true_positives", true_positives), as_number("false_positives", false_positives)
    require(
        0 < runs < math.inf and 0 <= hits <= runs and 0 <= alarms <= runs,
        f"Of {runs:g} runs in each arm from none to all are positive, got {hits:g} and {alarms:g}.",
    )
    if hits == 0 or alarms == runs:
        return 0.0
    low = _lower_log_odds(hits, runs, alpha / 2)
    high = -_lower_log_odds(runs - alarms, runs, alpha / 2)
    # ln of the rates: -ln(1 + e^-x)
    return max(0.0, float(np.logaddexp(0.0, -high) - np.logaddexp(0.0, -low)))


def rad_point_estimate(correct: int, runs: int, size: int, delta: float = 0.0) -> float:
    """RAD equation 61, a point estimate: ln((1 - delta m + gamma m)/(1 - gamma m/(m-1))), gamma = correct/runs - 1/m.

    Not a bound: about half of all runs exceed the true epsilon. At least 0; where the formula is undefined, infinite if
    every answer was correct and 0 if delta explains them all. The same as `epsilon_estimate` without abstentions.
    """
    runs = as_whole("runs", runs)
    return epsilon_estimate(Counts(runs, runs, correct, size), delta)


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
