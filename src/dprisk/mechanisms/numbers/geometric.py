"""Two-sided geometric (discrete Laplace) noise on whole numbers, with outputs kept in range."""

from __future__ import annotations

import math
from typing import Any, cast

from dprisk.errors import MechanismError, as_epsilon, as_size, require
from dprisk.mechanisms.numbers.additive import Ends
from dprisk.mechanisms.numbers.discrete import DiscreteAdditive, WholeLaplace


class Geometric(DiscreteAdditive):
    """Records and outputs 0..size-1; noise of size k has probability proportional to exp(-eps k / sensitivity).

    `ends="clamp"` moves an output outside the range to its nearer end; `ends="truncate"` draws again until the output
    lies inside, which leaks more than the nominal epsilon says (`epsilon` is the true one). The sensitivity
    defaults to size - 1: one person's number is released, and may be replaced by any other.
    """

    def __init__(self, size: int, epsilon: float, sensitivity: float | None = None, ends: str = "clamp") -> None:
        size = as_size(size)
        epsilon = as_epsilon(epsilon)
        scale = max(size - 1, 1) if sensitivity is None else sensitivity
        require(0 < scale < math.inf, f"sensitivity must be finite and above 0, got {sensitivity}", MechanismError)
        rate = epsilon / scale
        require(rate < math.inf, f"sensitivity {scale:g} is too small for epsilon {epsilon:g}", MechanismError)
        super().__init__(size, WholeLaplace(rate), (0, size - 1), cast(Ends, ends))
        self.nominal_epsilon, self.sensitivity = float(epsilon), float(scale)

    def with_epsilon(self, epsilon: float) -> Geometric:
        return Geometric(self.size, epsilon, self.sensitivity, self.ends)

    def _parameters(self) -> dict[str, Any]:
        return {"nominal_epsilon": self.nominal_epsilon, "sensitivity": self.sensitivity, "ends": self.ends}
