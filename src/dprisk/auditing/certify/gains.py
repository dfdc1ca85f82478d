"""A tally of one-run values X = 1{Z in A} - pi(A) (see `attacks.estimate`), for any prior, knowledge and success."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.types import BoolArray, FloatArray, IntArray

DIGITS = 16  # binary digits to which masses are rounded up, so that a tally stays short
SLACK = 1e-9  # of the last of them, so that the rounding of sums does not count


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
        hits, misses = (np.array(told[name], dtype=np.int64) for name in ("hits", "misses"))
        return cls(np.array(told["masses"], dtype=float), hits, misses)

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
        return f"{self.correct:,} right of {self.runs:,} guesses, advantage {self.mean:.4g}"

    def __repr__(self) -> str:
        return f"Gains({self.describe()})"


def _merged(masses: FloatArray, hits: IntArray, misses: IntArray) -> Gains:
    distinct, place = np.unique(masses, return_inverse=True)
    return Gains(distinct, *(np.bincount(place, some, distinct.size).astype(np.int64) for some in (hits, misses)))
