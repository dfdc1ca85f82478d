"""Unary encoding: a bit for each record, independent of each other."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy

from dprisk.errors import MechanismError, as_epsilon, as_number, as_size, require
from dprisk.mechanisms.base import Mechanism
from dprisk.mechanisms.by_epsilon import ByEpsilon
from dprisk.mechanisms.local.bits import draw_rows
from dprisk.mechanisms.local.sets import AnyRow
from dprisk.types import AnyArray, FloatArray, IntArray
from dprisk.values import Parameter


class UnaryEncoding(AnyRow):
    """A bit for each record: the true one on with probability p, each other with probability q, independently.

    In the family, the set holds the records whose bits speak for them: those on, or those off if p < q.
    Its epsilon is turned by moving q; p stays.
    """

    def __init__(self, size: int, p: float, q: float) -> None:
        p, q = as_number("p", p), as_number("q", q)
        for name, value in (("p", p), ("q", q)):
            require(0 <= value <= 1, f"{name} must lie in [0, 1], got {value}")
        self._set(size, p, 1 - p, q, 1 - q, p - q)

    def _set(self, size: int, p: float, not_p: float, q: float, not_q: float, contrast: float) -> None:
        """Complements and the contrast p - q are given apart: differences lose digits."""
        size = as_size(size)
        self.size, self.p, self.q = size, float(p), float(q)
        self._bits = (p, not_p, q, not_q)
        self._contrast = abs(contrast)
        self._flipped = p < q or not_q == 0
        self._in, self._not_in, self._other, self._not_other = (not_p, p, not_q, q) if self._flipped else self._bits

    @cached_property
    def epsilon(self) -> float:
        if self.size == 1 or self.p == self.q:
            return 0.0
        one = np.array([1])
        hit, miss = float(self.hit(one)[0]), float(self.miss(one)[0])
        return math.log(hit) - math.log(miss) if miss > 0 else math.inf

    @property
    def parameter(self) -> Parameter:
        return Parameter.epsilon(self.epsilon)

    def with_parameter(self, value: float) -> Self:
        shrink = math.exp(-as_epsilon(value))
        MechanismError.unless(0 < self.p < 1, f"with p = {self.p:g} the privacy parameter cannot be set")
        return self.replace(q=self.p * shrink / (self.p * shrink + 1 - self.p))

    def hit(self, named: IntArray) -> FloatArray:
        return self._in * self._all_off(named)

    def miss(self, named: IntArray) -> FloatArray:
        return self._other * self._not_in * self._all_off(named - 1)

    def gain(self, named: IntArray) -> FloatArray:
        return self._contrast * self._all_off(named - 1)

    def pair_gain(self, named: IntArray) -> FloatArray:
        return self._other * self._contrast * self._all_off(named - 1)

    def none(self, named: IntArray) -> FloatArray:
        return self._not_in * self._all_off(named - 1)

    def _all_off(self, records: IntArray) -> FloatArray:
        return np.asarray(np.exp(records * math.log(self._not_other)))

    def _log_inside_outside(self, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        p, not_p, q, not_q = self._bits
        inside = _log(p) + _times_log(sizes - 1, q) + _times_log(self.size - sizes, not_q)
        outside = _log(not_p) + _times_log(sizes, q) + _times_log(self.size - 1 - sizes, not_q)
        return inside, outside

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        numbers = self._records(records)
        bits = draw_rows(self.q, numbers.size, self.size, rng)
        bits[np.arange(numbers.size), numbers] = rng.random(numbers.size) < self.p
        return bits

    def scores(self, outputs: npt.ArrayLike, records: IntArray) -> FloatArray:
        return super().scores(self._speaking(outputs), records)

    def leads(self, outputs: npt.ArrayLike, records: IntArray) -> tuple[IntArray, FloatArray]:
        return super().leads(self._speaking(outputs), records)

    def _speaking(self, outputs: npt.ArrayLike) -> npt.ArrayLike:
        """The bits that speak for their records: those on, or those off if p < q."""
        return np.asarray(outputs) == 0 if self._flipped else outputs

    @property
    def naming(self) -> tuple[float, float]:
        return self.p, self.q

    def _restricted(self, size: int) -> Mechanism:
        """The bits are independent, so their own bits are drawn as before."""
        return self.labelled(None).replace(size=size)


class UnaryByEpsilon(ByEpsilon, UnaryEncoding):
    """Unary encoding whose p and q follow from epsilon."""

    def __init__(self, size: int, epsilon: float) -> None:
        self.nominal_epsilon = as_epsilon(epsilon)
        self._set(size, *self._rule(self.nominal_epsilon))

    @staticmethod
    @abstractmethod
    def _rule(epsilon: float) -> tuple[float, float, float, float, float]:
        """p, 1-p, q, 1-q, p-q."""


class SUE(UnaryByEpsilon):
    """Symmetric unary encoding (basic RAPPOR): every bit is kept with probability e^(eps/2) / (e^(eps/2) + 1)."""

    @staticmethod
    def _rule(epsilon: float) -> tuple[float, float, float, float, float]:
        keep, flip = float(scipy.special.expit(epsilon / 2)), float(scipy.special.expit(-epsilon / 2))
        return keep, flip, flip, keep, math.tanh(epsilon / 4)


class OUE(UnaryByEpsilon):
    """Optimal unary encoding (Wang et al. 2017): the true bit is on with probability 1/2, others with 1/(e^eps + 1)."""

    @staticmethod
    def _rule(epsilon: float) -> tuple[float, float, float, float, float]:
        on, off = (float(scipy.special.expit(sign * epsilon)) for sign in (-1, 1))
        return 0.5, 0.5, on, off, math.tanh(epsilon / 2) / 2


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf


def _times_log(count: IntArray, probability: float) -> FloatArray:
    """count * log(probability), with 0 log 0 = 0; a negative count only arises for sets that cannot be."""
    return (
        np.where(count == 0, 0.0, count * _log(probability)) if probability > 0 else np.where(count > 0, -np.inf, 0.0)
    )
