"""Mechanisms that are made with an epsilon."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from dprisk.mechanisms.base import Mechanism
from dprisk.values import Parameter


class ByEpsilon(Mechanism):
    """Made with an `epsilon`, its parameter: the nominal one, and the true one where there is something to hide."""

    nominal_epsilon: float

    @property
    def parameter(self) -> Parameter:
        return Parameter.epsilon(self.nominal_epsilon)

    def with_parameter(self, value: float) -> Self:
        return self.replace(epsilon=value)

    @cached_property
    def epsilon(self) -> float:
        return self.nominal_epsilon if self.size > 1 else 0.0
