"""Two-sided geometric (discrete Laplace) noise on whole numbers, with outputs kept in range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_size, require
from dprisk.mechanisms.tabled import Tabled
from dprisk.types import AnyArray, FloatArray, IntArray


class Geometric(Tabled):
    """Records and outputs 0..size-1; noise of size k has probability proportional to exp(-eps k / sensitivity).

    `ends="clamp"` moves an output outside the range to its nearer end; `ends="truncate"` draws again until the output
    lies inside, which leaks more than the nominal epsilon says (`epsilon` is the true one). The sensitivity
    defaults to size - 1: one person's number is released, and may be replaced by any other.
    """

    def __init__(self, size: int, epsilon: float, sensitivity: float | None = None, ends: str = "clamp") -> None:
        size = as_size(size)
        epsilon = as_epsilon(epsilon)
        require(ends in ("clamp", "truncate"), f"ends must be 'clamp' or 'truncate', got {ends!r}", MechanismError)
        scale = max(size - 1, 1) if sensitivity is None else sensitivity
        require(0 < scale < math.inf, f"sensitivity must be finite and above 0, got {sensitivity}", MechanismError)
        self.size, self.nominal_epsilon, self.sensitivity, self.ends = size, float(epsilon), float(scale), ends
        self._rate = epsilon / scale
        require(self._rate < math.inf, f"sensitivity {scale:g} is too small for epsilon {epsilon:g}", MechanismError)

    def with_epsilon(self, epsilon: float) -> Geometric:
        return Geometric(self.size, epsilon, self.sensitivity, self.ends)

    @property
    def n_outputs(self) -> float:
        return float(self.size)

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        return self._probability(np.arange(self.size)[:, None], np.arange(self.size)[outputs])

    def row(self, record: int) -> FloatArray:
        return self._probability(np.array([record]), np.arange(self.size)).ravel()

    def _probability(self, record: IntArray, output: IntArray) -> FloatArray:
        last, rate = self.size - 1, self._rate
        decay = np.exp(-rate * np.abs(record - output))
        if self.ends == "truncate":
            return np.asarray(decay / (_partial(rate, record) + _partial(rate, last - record) - 1))
        # An inner output gets its own noise, an end all the noise beyond it too; the only output gets everything.
        share = 1 / (1 + math.exp(-rate))
        at_end = 1.0 if last == 0 else share
        inside = -math.expm1(-rate) * share
        return np.asarray(decay * np.where((output == 0) | (output == last), at_end, inside))

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        if self.ends == "truncate" or self._rate < 1e-9:
            return super().sample(records, rng)
        numbers = self._records(records)
        # The difference of two geometric counts is two-sided geometric.
        one, two = (rng.exponential(size=numbers.size) // self._rate for _ in range(2))
        return np.clip(numbers + (one - two).astype(np.int64), 0, self.size - 1)

    @property
    def epsilon(self) -> float:
        if self.ends == "clamp":  # the ends are the outputs that tell most: decay over the whole range
            return self._rate * (self.size - 1)
        place = np.arange(self.size)
        total = np.log(_partial(self._rate, place) + _partial(self._rate, self.size - 1 - place) - 1)
        # The outputs that tell most are the ends, by symmetry either: in logarithms, which do not underflow.
        return float(np.ptp(-self._rate * place - total))

    def _parameters(self) -> dict[str, Any]:
        return {"nominal_epsilon": self.nominal_epsilon, "sensitivity": self.sensitivity, "ends": self.ends}


def _partial(rate: float, n: IntArray) -> FloatArray:
    """sum_{k=0..n} exp(-rate k)."""
    if rate == 0:
        return n.astype(float) + 1
    return np.asarray(np.expm1(-rate * (n + 1)) / math.expm1(-rate))
