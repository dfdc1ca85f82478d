"""Mechanisms for a record that is any number in an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_ends, as_noise_epsilon, as_number
from dprisk.guarantees import Guarantee
from dprisk.mechanisms.base import Mechanism
from dprisk.mechanisms.numbers.additive import Additive, Gaussian, Laplace
from dprisk.mechanisms.numbers.noise import GaussianNoise, LaplaceNoise
from dprisk.tables import as_floats
from dprisk.types import AnyArray, FloatArray
from dprisk.values import Parameter

Effort = Literal["rough", "close", "full"]


class OnInterval(Mechanism):
    """A number in [low, high] plus noise; `truncated` outputs are drawn again until they lie in [low, high] too.

    Made by `OnInterval.exponential`, `.laplace` and `.gaussian`. Its records cannot be listed, so it goes with a
    `Density` as prior, and its risk is enclosed between certified bounds. The epsilon of Laplace noise refers to the
    `sensitivity`, the length of the interval unless given.
    """

    size = math.inf  # type: ignore[assignment]
    effort: Effort = "full"  # that its certified bounds are worth: less in a sketch

    def __init__(
        self,
        noise: LaplaceNoise | GaussianNoise,
        low: float = 0.0,
        high: float = 1.0,
        truncated: bool = False,
        sensitivity: float | None = None,
    ) -> None:
        if not isinstance(noise, LaplaceNoise | GaussianNoise):
            raise MechanismError(f"The noise is a LaplaceNoise or a GaussianNoise, not {noise!r}.")
        self.low, self.high, self.sensitivity = _ends(low, high, sensitivity)
        self.noise, self.truncated = noise, bool(truncated)

    @classmethod
    def exponential(
        cls, epsilon: float, low: float = 0.0, high: float = 1.0, sensitivity: float | None = None
    ) -> OnInterval:
        """The exponential mechanism on the interval, with minus the distance d from the record as utility (RAD A.2).

        Its density is proportional to exp(-epsilon d / (2 sensitivity)): truncated Laplace noise.
        """
        epsilon = as_noise_epsilon("The exponential mechanism", epsilon)
        low, high, reach = _ends(low, high, sensitivity)
        return cls(LaplaceNoise(2 * reach / epsilon), low, high, truncated=True, sensitivity=reach)

    @classmethod
    def laplace(cls, epsilon: float, low: float = 0.0, high: float = 1.0) -> OnInterval:
        """Laplace noise of scale (high - low) / epsilon."""
        epsilon = as_noise_epsilon("Laplace noise", epsilon)
        low, high, reach = _ends(low, high, None)
        return cls(LaplaceNoise(reach / epsilon), low, high)

    @classmethod
    def gaussian(cls, sigma: float, low: float = 0.0, high: float = 1.0) -> OnInterval:
        """Gaussian noise of standard deviation sigma."""
        return cls(GaussianNoise(sigma), low, high)

    @property
    def parameter(self) -> Parameter:
        """The sigma of Gaussian noise; of Laplace noise the nominal epsilon."""
        if isinstance(self.noise, GaussianNoise):
            return Parameter.noise("sigma", self.noise.sigma)
        return Parameter.epsilon(self._reach / self.noise.scale)

    def with_parameter(self, value: float) -> Self:
        if isinstance(self.noise, GaussianNoise):
            return self.replace(noise=GaussianNoise(value))
        return self.replace(noise=LaplaceNoise(self._reach / as_noise_epsilon("Laplace noise", value)))

    @property
    def _reach(self) -> float:
        """What epsilon is over the scale of the noise; the exponential mechanism loses a factor of two."""
        return self.sensitivity * (2 if self.truncated else 1)

    @property
    def sketches(self) -> Sequence[Callable[[float], Any]]:
        """Itself, with bounds from coarser grids: a search looks closely only where it ends."""
        return tuple(partial(self._sketch, effort) for effort in ("rough", "close"))

    def _sketch(self, effort: Effort, value: float) -> Self:
        return self.with_parameter(value)._with({"effort": effort})

    @cached_property
    def at_the_ends(self) -> Additive:
        """The same noise for the two records that differ most: those at the ends of the interval."""
        bounds = (self.low, self.high)
        inside = bounds if self.truncated else None
        if isinstance(self.noise, GaussianNoise):
            return Gaussian(bounds, self.noise.sigma, interval=inside, ends="truncate")
        return Laplace(bounds, scale=self.noise.scale, interval=inside, ends="truncate")

    @cached_property
    def epsilon(self) -> float:
        return self.at_the_ends.epsilon

    def delta_at(self, epsilon: float) -> float:
        return self.guarantee().delta_at(epsilon)

    def guarantee(self) -> Guarantee:
        """That of the two ends: noise on a line hides a shorter distance better."""
        return self.at_the_ends.guarantee()

    @property
    def guarantee_is_exact(self) -> bool:
        return self.at_the_ends.guarantee_is_exact

    @property
    def units(self) -> str:
        return self.at_the_ends.units

    def error(self) -> dict[str, float]:
        return {} if self.truncated else self.at_the_ends.error()

    def log_inside(self, records: FloatArray) -> FloatArray:
        """log Pr[noise keeps the output in the interval], which outputs are conditioned on; 0 if they are not."""
        if not self.truncated:
            return np.zeros_like(records)
        return np.asarray(np.log(self.noise.between(self.low - records, self.high - records)))

    def log_density(self, outputs: FloatArray, records: FloatArray) -> FloatArray:
        """log p(output | record), outputs x records."""
        return self.noise.log_density(outputs[:, None] - records) - self.log_inside(records)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        """Refused: there are too many records to list; `log_density` takes some."""
        raise MechanismError(
            f"{self!r} is for any number from {self.low:g} to {self.high:g}, too many to list; for some of them there "
            "are Laplace(positions, ...) and Gaussian(positions, ...)."
        )

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        """One output for each record, given by its value."""
        z = np.atleast_1d(as_floats(records, "Records", MechanismError))
        if not np.all((z >= self.low) & (z <= self.high)):
            raise MechanismError(f"Records must lie in [{self.low:g}, {self.high:g}].")
        if self.truncated:
            return np.clip(z + self.noise.sample_between(self.low - z, self.high - z, rng), self.low, self.high)
        return z + self.noise.sample(z.size, rng)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"size": None}


def _ends(low: float, high: float, sensitivity: float | None) -> tuple[float, float, float]:
    """The interval and what epsilon refers to, checked."""
    low, high = as_ends(low, high, MechanismError)
    reach = high - low if sensitivity is None else as_number("sensitivity", sensitivity)
    MechanismError.unless(reach >= (high - low) * (1 - 1e-12), f"The sensitivity is at least {high - low:g}.")
    return low, high, reach
