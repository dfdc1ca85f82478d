"""How many of many independent trials succeed, each with a chance of its own: tails far below the smallest float.

The law is tilted so that the number asked about becomes the usual one, worked out there, and tilted back in logarithms.
So a tail of 1e-300 is as accurate as one of a half. Every tail is an upper bound: what was lost on the way is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from dprisk.errors import ParameterError, as_number, as_whole, require
from dprisk.rounding import ULP
from dprisk.tables import as_floats
from dprisk.types import FloatArray

LEAF = 1024  # trials up to which a law is built trial by trial, without loss of relative accuracy
ONE_BY_ONE = 4096  # trials up to which the whole law is
FFT_LOSS = 40 * 2.0**-53  # of a product of spectra, a level: three transforms at below 8 units in the last place each
HEAVIEST = 1e300  # weight of a success against a failure
TINY = 1e-290  # what may be lost to underflow: entries of that size are far below what is read


class PoissonBinomial:
    """The number of successes in independent trials with these chances.

    >>> round(PoissonBinomial([0.5, 0.5, 0.1]).at_least(3), 12)
    0.025
    >>> round(PoissonBinomial([1e-3] * 200).log_at_least(150))  # of about 1e-402
    -926
    """

    def __init__(self, chances: Any) -> None:
        given = as_floats(chances, "Chances of success", ParameterError)
        require(given.ndim == 1, "Chances of success come in one list.")
        require(bool(np.all((given >= 0) & (given <= 1))), "A chance of success must lie in [0, 1].")
        self.trials = given.size
        self._sure = int((given == 1).sum())
        self._open = given[(given > 0) & (given < 1)]

    @cached_property
    def _plain(self) -> _Tilted:
        return self._tilted(1.0)

    def log_at_least(self, successes: int) -> float:
        """ln P(S >= successes), rounded up."""
        wanted = as_whole("successes", successes, least=0) - self._sure
        if wanted <= 0:
            return 0.0
        if wanted > self._open.size:
            return -math.inf
        if wanted == self._open.size:
            log = math.fsum(np.log(self._open).tolist())
            return min(0.0, log + 4 * ULP * abs(log))
        return float(self._tilted(self._tilt(wanted)).log_tails(wanted, wanted)[0])

    def at_least(self, successes: int) -> float:
        """P(S >= successes), rounded up; 0 only where it is below the smallest float or impossible."""
        return math.exp(self.log_at_least(successes))

    def tails(self) -> FloatArray:
        """P(S >= k) for k = 0, ..., trials, each rounded up by an absolute error of about 1e-12."""
        open_tails = np.exp(self._plain.log_tails(0, self._open.size))
        never = np.zeros(self.trials - self._sure - self._open.size)
        return np.concatenate([np.ones(self._sure), np.minimum.accumulate(open_tails), never])

    def most(self, alpha: float) -> int:
        """The least v with P(S > v) <= alpha, rounded up: at most v succeed, with confidence 1 - alpha."""
        share = as_number("alpha", alpha)
        require(0 < share < 1, f"alpha, the chance of being wrong, must lie strictly between 0 and 1, got {share:g}")
        size = self._open.size
        if size == 0:
            return self._sure
        law = self._tilted(self._tilt_of_tail(math.log(share)))
        logs = np.append(law.log_tails(0, size), -math.inf)[1:]  # of S > v for v = 0, ..., size
        return self._sure + int(np.flatnonzero(logs <= math.log(share))[0])

    def _tilt(self, wanted: float) -> float:
        """The weight of a success at which the tilted mean is what is wanted; 1 below the mean."""
        target = min(wanted, self._open.size - 0.5)
        return _crossing(lambda weight: self._chances(weight)[0].sum() >= target)

    def _tilt_of_tail(self, log_share: float) -> float:
        """The weight whose Chernoff bound on its own mean is about this: near the number that so few exceed."""

        def is_rare(weight: float) -> bool:
            mean = float(self._chances(weight)[0].sum())
            return float(self._log_scales(weight).sum()) - mean * math.log(weight) <= log_share

        return _crossing(is_rare)

    def _chances(self, weight: float) -> tuple[FloatArray, FloatArray]:
        """The tilted chances of success and of failure, each to four units in the last place."""
        heavy, rest = self._open * weight, 1 - self._open
        return heavy / (rest + heavy), rest / (rest + heavy)

    def _log_scales(self, weight: float) -> FloatArray:
        """ln(1 - p + p weight) of each trial."""
        found: FloatArray = np.log1p(self._open * (weight - 1))
        return found

    def _tilted(self, weight: float) -> _Tilted:
        law, lost = _law(*self._chances(weight))
        scales = self._log_scales(weight)
        log_lost = ULP * (self._open.size + float(scales.sum()))
        return _Tilted(law, math.log(weight), math.fsum(scales.tolist()) + log_lost, lost, (4 * law.size + 30) * ULP)


@dataclass(frozen=True, eq=False)
class _Tilted:
    """P'(S = k) = P(S = k) e^(t k) / E[e^(t S)], with a relative and an absolute error; e^t is a float."""

    law: FloatArray
    t: float
    log_scale: float
    absolute: float
    relative: float

    def log_tails(self, first: int, last: int) -> FloatArray:
        """ln P(S >= k) for k = first, ..., last, rounded up.

        P(S >= k) = E[e^(tS)] e^(-tk) sum_{j>=k} P'(j) e^(-t(j-k)); the sums follow from each other, last first, and are
        sums of positive numbers. The absolute error of each P' counts at most min(n - k + 1, 1/(1 - e^-t)) times.
        """
        fall, size = math.exp(-self.t), self.law.size
        if first == last:
            powers = np.exp(-self.t * np.arange(size - first))
            sums = np.array([float(self.law[first:] @ powers)])
        elif self.t == 0:
            sums = np.cumsum(self.law[::-1])[::-1][first : last + 1]
        else:
            sums = np.array(list(accumulate(self.law[::-1].tolist(), lambda beyond, here: here + fall * beyond)))
            sums = sums[::-1][first : last + 1]
        places = np.arange(first, last + 1)
        counted = np.minimum(size - places, 1 / -math.expm1(-self.t)) if self.t else size - places
        up = sums * (1 + self.relative + ULP * counted) + counted * self.absolute
        with np.errstate(divide="ignore"):
            logs = self.log_scale - self.t * places + np.log(up)
        found: FloatArray = np.minimum(0.0, logs + ULP * (self.t * places + np.abs(logs) + self.log_scale))
        return found


def _crossing(is_beyond: Callable[[float], bool]) -> float:
    """The weight, from 1 to HEAVIEST, from which on something holds; about, for every weight serves."""
    low, high = 0.0, 1.0
    if is_beyond(1.0):
        return 1.0
    while high < math.log(HEAVIEST) and not is_beyond(math.exp(high)):
        low, high = high, 2 * high
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (low, middle) if is_beyond(math.exp(min(middle, math.log(HEAVIEST)))) else (middle, high)
    return math.exp(min(low, math.log(HEAVIEST)))


def _law(chances: FloatArray, rest: FloatArray) -> tuple[FloatArray, float]:
    """P(S = k) for k = 0, ..., n, and what each may be off by absolutely.

    Trial by trial, P(k) <- (1 - p) P(k) + p P(k - 1): no subtraction, so the relative error is below 3 n units in the
    last place. Large laws are made of such pieces by fast Fourier transforms: for nonnegative a and b that add up to
    one, the product of spectra has an error of at most FFT_LOSS log2(N) |a|_2 in every entry (Higham, Accuracy and
    Stability of Numerical Algorithms, Theorem 24.2, with room to spare), and errors of the factors at most add up.
    """
    trials = chances.size
    if trials <= ONE_BY_ONE:
        return _one_by_one(chances[None], rest[None])[0], TINY
    pieces = 1 << math.ceil(math.log2(trials / LEAF))
    each = math.ceil(trials / pieces)
    padding = pieces * each - trials
    heads = np.append(chances, np.zeros(padding)).reshape(pieces, each)
    tails = np.append(rest, np.ones(padding)).reshape(pieces, each)
    laws, lost = _one_by_one(heads, tails), np.full(pieces, TINY)
    while len(laws) > 1:
        laws, lost = _paired(laws, lost)
    return laws[0, : trials + 1], float(lost[0])


def _one_by_one(chances: FloatArray, rest: FloatArray) -> FloatArray:
    rows, trials = chances.shape
    law = np.zeros((rows, trials + 1))
    law[:, 0] = 1.0
    for trial in range(trials):
        here = law[:, : trial + 1] * chances[:, trial, None]
        law[:, : trial + 1] *= rest[:, trial, None]
        law[:, 1 : trial + 2] += here
    return law


def _paired(laws: FloatArray, lost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sum of each law and the next."""
    from scipy import fft

    one, two = laws[::2], laws[1::2]
    width = one.shape[1] + two.shape[1] - 1
    length = 1 << math.ceil(math.log2(width))
    product = fft.irfft(fft.rfft(one, length) * fft.rfft(two, length), length)[:, :width]
    norms = np.minimum(np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1))
    new = (lost[::2] + lost[1::2]) * (1 + 1e-9) + FFT_LOSS * math.log2(length) * norms
    return np.maximum(product, 0.0), new
