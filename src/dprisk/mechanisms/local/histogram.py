"""Histogram encoding: Laplace noise on every coordinate of the record's one-hot vector (Wang et al. 2017, section 4.2).

`SHE` reports the noisy vector, `THE` only which coordinates exceed a threshold.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_noise_epsilon, as_number, as_size
from dprisk.guarantees import Guarantee, PureDP, TradeOff
from dprisk.mechanisms.base import Mechanism
from dprisk.mechanisms.by_epsilon import ByEpsilon
from dprisk.mechanisms.local.bits import SAMPLE_CELLS
from dprisk.mechanisms.local.sets import FREQUENCY_ERROR
from dprisk.mechanisms.local.unary import UnaryEncoding
from dprisk.tables import as_floats
from dprisk.types import AnyArray, FloatArray, IntArray

ROUNDED_UP = 1 + 2.0**-50


class SHE(ByEpsilon):
    """Summation with histogram encoding: the one-hot vector plus Laplace noise of scale 2 / epsilon on each entry.

    An output is a row of `size` numbers x. Its likelihood under record z is that of pure noise times
    exp(epsilon (c_z - 1/2)), where c = x clipped to [0, 1]: all that an output tells of a record is its clipped entry.
    """

    def __init__(self, size: int, epsilon: float) -> None:
        self.size, self.nominal_epsilon = as_size(size), as_noise_epsilon("SHE", epsilon, above=1e-300)

    @property
    def scale(self) -> float:
        """The scale of the noise on each entry, its mean size."""
        return 2 / self.nominal_epsilon

    def frequency_variance(self) -> float:
        """The variance of an estimated frequency times the number of reports (Wang et al. 2017): 8 / epsilon^2."""
        return 2 * self.scale**2

    def error(self) -> dict[str, float]:
        return {FREQUENCY_ERROR: self.frequency_variance()}

    def pairwise_epsilon(self) -> FloatArray:
        return np.where(np.eye(self.size, dtype=bool), 0.0, self.epsilon)

    def delta_at(self, epsilon: float) -> float:
        """1 - (1 + k/2) e^-k with k = (self.epsilon - epsilon) / 2, rounded up.

        Records i and j show in two entries only. Under i the loss is self.epsilon (1 - X - Y) with X = 1 - c_i and
        Y = c_j independent, each Laplace noise clipped to [0, 1]. So with rate a = self.epsilon / 2, X + Y is 0 with
        probability 1/4 and has density (a/2) e^(-a v) (1 + a v / 2) at 0 < v < 1. With t = a v,

            delta = (1 - e^(-2k)) / 4 + int_0^k (1 - e^(-2(k - t))) (1 + t/2) e^-t / 2 dt = 1 - (1 + k/2) e^-k.
        """
        return float(histogram_profile(self.epsilon, np.array(as_epsilon(epsilon))))

    def guarantee(self) -> Guarantee:
        """The curve of `delta_at`, never above the truth."""
        return histogram_curve(self.epsilon)

    guarantee_is_exact = True

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        """Exponential noise with random signs, in blocks that stay in the cache."""
        numbers = self._records(records)
        values = np.empty((numbers.size, self.size))
        step = max(1, SAMPLE_CELLS // self.size)
        for start in range(0, numbers.size, step):
            block = values[start : start + step]
            rng.standard_exponential(out=block)
            np.copysign(block, rng.integers(-128, 128, size=block.shape, dtype=np.int8), out=block)
            block *= self.scale
        values[np.arange(numbers.size), numbers] += 1
        return values

    def _restricted(self, size: int) -> Mechanism:
        """The noise on the entries is independent, so their own entries are drawn as before."""
        return self.labelled(None).replace(size=size)

    def scores(self, outputs: npt.ArrayLike, records: IntArray) -> FloatArray:
        return np.asarray(self.nominal_epsilon * np.clip(np.asarray(outputs)[:, records], 0.0, 1.0))

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        values = np.atleast_2d(as_floats(outputs, "Outputs", MechanismError))
        if not (values.ndim == 2 and values.shape[1] == self.size and np.all(np.isfinite(values))):
            raise MechanismError(f"An output of {self!r} is a row of {self.size} finite numbers.")
        rate = self.nominal_epsilon / 2
        noise = self.size * math.log(rate / 2) - (rate * np.abs(values)).sum(axis=1)
        return np.asarray((noise - rate)[:, None] + self.nominal_epsilon * np.clip(values, 0.0, 1.0))


class THE(ByEpsilon, UnaryEncoding):
    """Thresholding with histogram encoding: report which entries of `SHE`'s vector exceed a threshold in [0, 1].

    That is unary encoding with p = 1 - e^(-eps (1 - t) / 2) / 2 and q = e^(-eps t / 2) / 2, t the threshold.
    `nominal_epsilon` is the epsilon of the noise. Thresholding loses some of it: `epsilon` is the true one,
    ln p(1-q) / (q(1-p)).

    Without a threshold it is the one of least variance q(1-q) / (p-q)^2 (Wang et al. 2017, who find it by search). With
    c = e^(-eps/2) and u = e^(eps t / 2) the variance is (2u - 1) / (2u - c u^2 - 1)^2, whose derivative is 0 where
    3 c u^2 - 2 (1 + c) u + 1 = 0; the root that belongs to a t in [1/2, 1] is u = (1 + c + sqrt(1 - c + c^2)) / (3c).
    """

    def __init__(self, size: int, epsilon: float, threshold: float | None = None) -> None:
        self.nominal_epsilon = as_epsilon(epsilon)
        rate = self.nominal_epsilon / 2
        self.threshold = _best_threshold(rate) if threshold is None else as_number("threshold", threshold)
        if not 0 <= self.threshold <= 1:
            raise MechanismError(f"threshold must lie in [0, 1], the two values of an entry, got {self.threshold:g}")
        below, above = -rate * (1 - self.threshold), -rate * self.threshold
        not_p, q = math.exp(below) / 2, math.exp(above) / 2
        contrast = -(math.expm1(below) + math.expm1(above)) / 2
        self._set(size, 1 - not_p, not_p, q, 1 - q, contrast)
        # ln of p(1-q) / (q(1-p)), where ln 2q and ln 2(1-p) are known and sum to -rate
        true = rate + math.log1p(-math.expm1(below)) + math.log1p(-math.expm1(above))
        self.epsilon = true if self.size > 1 else 0.0


def histogram_profile(own: float, epsilons: FloatArray) -> FloatArray:
    """The delta at each epsilon of noise on a one-hot vector whose own epsilon is this (see `SHE.delta_at`)."""
    k = np.maximum(own - epsilons, 0.0) / 2
    return np.minimum((-np.expm1(-k) - k / 2 * np.exp(-k)) * ROUNDED_UP, 1.0)


def histogram_curve(own: float) -> Guarantee:
    """The curve of `histogram_profile`, never above the truth."""
    return TradeOff.from_profile(partial(histogram_profile, own), own) if own > 0 else PureDP(0.0)


def _best_threshold(rate: float) -> float:
    """1 + ln(c u) / rate with h = 1 - c: no digits are lost at either end."""
    if rate == 0:
        return 0.5
    h = -math.expm1(-rate)
    root = math.sqrt(1 - h + h * h)
    return 1 + math.log1p(-(h + h * (1 - h) / (1 + root)) / 3) / rate
