"""The number that sets how much noise there is: one way to turn it, whatever it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dprisk.errors import MechanismError, fail
from dprisk.values import Value


@dataclass(frozen=True)
class Parameter:
    """A name, the present value, and what happens when it is turned.

    `rises` says whether the risk rises with it (epsilon) or falls (a noise). `jumps` says that a rounded size follows
    from it, so that a smaller value need not have the smaller risk. `adds_up` says that two releases have the sum of
    theirs, so that a budget is shared among them.
    """

    name: str
    value: float
    rises: bool
    jumps: bool = False
    adds_up: bool = False

    @classmethod
    def epsilon(cls, value: float, jumps: bool = False) -> Parameter:
        """A privacy parameter: the larger, the weaker the noise."""
        return cls("epsilon", value, rises=True, jumps=jumps, adds_up=True)

    @classmethod
    def noise(cls, name: str, value: float) -> Parameter:
        """The size of noise: the larger, the stronger."""
        return cls(name, value, rises=False)


class Adjustable(Value):
    """A value with a parameter that can be turned, or none.

    What takes long to build may have `sketches`: functions of the parameter that build cheap stand-ins, roughest first.
    `extrapolate` guesses the parameter sought from theirs. `without_noise` is what is left without any noise, where
    building that is out of reach.
    """

    @property
    def parameter(self) -> Parameter | None:
        """The number that sets how much noise there is; None if it is fixed."""
        return None

    def with_parameter(self, value: float) -> Any:
        """The same with another value of its parameter."""
        if self.parameter is None:
            fail(f"{self!r} is fixed as it is: it has no parameter to set.", MechanismError)
        return self.replace(**{self.parameter.name: value})

    def error(self) -> dict[str, float]:
        """The usual measure of what the noise costs, by its name; empty where there is none."""
        return {}

    @property
    def sketches(self) -> Sequence[Callable[[float], Any]]:
        """None, unless building takes long."""
        return ()

    def extrapolate(self, roots: Sequence[float]) -> float:
        """The last of them."""
        return roots[-1]

    @property
    def without_noise(self) -> Any:
        """None, unless it can be told without building it."""
        return None
