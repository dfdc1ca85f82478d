"""Noise on the answers for some records: others may be possible, which the guarantee of those listed is not about."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from dprisk.errors import MechanismError, as_number
from dprisk.guarantees import Guarantee, PureDP, TradeOff
from dprisk.mechanisms.base import Mechanism

ENOUGH = 1 + 1e-12  # a sensitivity may be this much too small by rounding


class OfSome(Mechanism):
    """A mechanism whose guarantee is about the records that are listed."""


class BySensitivity(OfSome):
    """Noise made for answers that are at most a `sensitivity` apart; those of listed records may be nearer."""

    sensitivity: float | None = None  # as it was given

    @property
    @abstractmethod
    def spread(self) -> float:
        """The largest distance between the answers for two of the records listed."""

    @property
    def farthest(self) -> float:
        """The largest distance between the answers for two records, listed or not: the sensitivity, or the spread."""
        return self.spread if self.sensitivity is None else self.sensitivity

    @abstractmethod
    def _promise(self) -> Guarantee:
        """What the noise promises of any two records whose answers are no farther apart."""

    @property
    def promised(self) -> Guarantee | None:
        return self._promise() if self.farthest > ENOUGH * self.spread else None


def laplace_curve(epsilon: float) -> Guarantee:
    """What Laplace noise promises: the curve of the profile delta(e) = 1 - exp((e - epsilon) / 2)."""
    return TradeOff.from_profile(lambda e: -np.expm1((e - epsilon) / 2), epsilon) if epsilon > 0 else PureDP(0.0)


def as_sensitivity(sensitivity: float, spread: float) -> float:
    """A sensitivity, checked: at least the spread, which it may miss by rounding."""
    given = as_number("sensitivity", sensitivity)
    MechanismError.unless(0 < given < math.inf, f"sensitivity must be a finite number above 0, got {given:g}")
    MechanismError.unless(
        spread <= given * ENOUGH,
        f"A sensitivity of {given:g} will not do: the answers for two records are {spread:.10g} apart.",
    )
    return max(given, spread)
