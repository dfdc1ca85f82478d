"""DP-SGD whose noise is still to be chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dprisk.errors import as_number, as_whole, require
from dprisk.guarantees.accounting import dp_sgd
from dprisk.guarantees.base import Guarantee, Relation
from dprisk.guarantees.notions import ApproxDP, GaussianDP
from dprisk.guarantees.profiles import GRID
from dprisk.values import Adjustable, Parameter


@dataclass(frozen=True, eq=False, repr=False)
class DPSGD(Adjustable):
    """DP-SGD with Poisson sampling, its noise multiplier to be found."""

    sample_rate: float
    steps: int
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        rate = as_number("sample_rate", self.sample_rate)
        require(0 < rate <= 1, f"sample_rate must lie in (0, 1], got {rate:g}")
        object.__setattr__(self, "steps", as_whole("steps", self.steps))

    @property
    def parameter(self) -> Parameter:
        return Parameter.noise("noise_multiplier", math.nan)

    def with_parameter(self, value: float) -> Guarantee:
        """The guarantee of a training with this noise multiplier."""
        return self._on_grid(value, GRID)

    def _on_grid(self, noise_multiplier: float, grid: float) -> Guarantee:
        return dp_sgd(noise_multiplier, self.sample_rate, self.steps, self.relation, grid)

    @property
    def sketches(self) -> tuple[Callable[[float], Guarantee], ...]:
        """The central limit, and the accountant on two coarse grids; full batches need none."""
        if self.sample_rate == 1:
            return ()
        return self._limit, partial(self._on_grid, grid=1e-3), partial(self._on_grid, grid=5e-4)

    def extrapolate(self, roots: Sequence[float]) -> float:
        """The accountant's error falls with the square of its grid: from 1e-3 and 5e-4 on to 1e-4."""
        return roots[2] + (roots[2] - roots[1]) * (0.25 - 0.01) / (1 - 0.25)

    @property
    def without_noise(self) -> Guarantee:
        """Without any noise a record still shows only if it is in some batch."""
        return ApproxDP(0.0, 1 - (1 - self.sample_rate) ** self.steps, self.relation)

    def _limit(self, noise_multiplier: float) -> Guarantee:
        """Many small steps are nearly Gaussian DP (Bu, Dong, Long, Su 2020)."""
        distance = 2 if self.relation == "replace-one" else 1
        step = math.expm1(min(50.0, 1 / noise_multiplier**2))
        return GaussianDP(min(100.0, distance * self.sample_rate * math.sqrt(self.steps * step)), self.relation)
