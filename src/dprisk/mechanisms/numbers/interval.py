"""Mechanisms for a record that is any number in an interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_noise_epsilon, as_number, require
from dprisk.mechanisms.numbers.noise import GaussianNoise, LaplaceNoise
from dprisk.tables import as_floats
from dprisk.types import FloatArray


class OnInterval:
    """A number in [low, high] plus noise; `truncated` outputs are drawn again until they lie in [low, high] too.

    Made by `OnInterval.exponential`, `.laplace` and `.gaussian`.
    """

    def __init__(
        self, noise: LaplaceNoise | GaussianNoise, low: float = 0.0, high: float = 1.0, truncated: bool = False
    ) -> None:
        require(
            isinstance(noise, LaplaceNoise | GaussianNoise),
            f"The noise is a LaplaceNoise or a GaussianNoise, not {noise!r}.",
            MechanismError,
        )
        self.low, self.high = as_number("low", low), as_number("high", high)
        require(
            -math.inf < self.low < self.high < math.inf,
            f"Needs finite low < high, got {self.low:g} and {self.high:g}.",
            MechanismError,
        )
        self.noise, self.truncated = noise, bool(truncated)

    @classmethod
    def exponential(
        cls, epsilon: float, low: float = 0.0, high: float = 1.0, sensitivity: float | None = None
    ) -> OnInterval:
        """The exponential mechanism on the interval, with minus the distance d from the record as utility (RAD A.2).

        Its density is proportional to exp(-epsilon d / (2 sensitivity)): truncated Laplace noise. The sensitivity is
        the length of the interval unless given.
        """
        epsilon = as_noise_epsilon("The exponential mechanism", epsilon)
        low, high = as_number("low", low), as_number("high", high)
        reach = high - low if sensitivity is None else as_number("sensitivity", sensitivity)
        require(reach >= (high - low) * (1 - 1e-12), f"The sensitivity is at least {high - low:g}.", MechanismError)
        return cls(LaplaceNoise(2 * reach / epsilon), low, high, truncated=True)

    @classmethod
    def laplace(cls, epsilon: float, low: float = 0.0, high: float = 1.0) -> OnInterval:
        """Laplace noise of scale (high - low) / epsilon."""
        epsilon = as_noise_epsilon("Laplace noise", epsilon)
        low, high = as_number("low", low), as_number("high", high)
        return cls(LaplaceNoise((high - low) / epsilon), low, high)

    @classmethod
    def gaussian(cls, sigma: float, low: float = 0.0, high: float = 1.0) -> OnInterval:
        """Gaussian noise of standard deviation sigma."""
        return cls(GaussianNoise(sigma), low, high)

    @property
    def epsilon(self) -> float:
        """The smallest epsilon for which it is epsilon-DP, infinite if there is none."""
        places, ends = np.array([self.low, self.high]), np.array([self.low, self.high])
        if isinstance(self.noise, GaussianNoise) and not self.truncated:
            return math.inf
        # Of all records and outputs, those at the two ends differ most.
        return float(np.ptp(self.log_density(ends, places), axis=1).max())

    def log_inside(self, records: FloatArray) -> FloatArray:
        """log Pr[noise keeps the output in the interval], which outputs are conditioned on; 0 if they are not."""
        if not self.truncated:
            return np.zeros_like(records)
        return np.asarray(np.log(self.noise.between(self.low - records, self.high - records)))

    def log_density(self, outputs: FloatArray, records: FloatArray) -> FloatArray:
        """log p(output | record), outputs x records."""
        return self.noise.log_density(outputs[:, None] - records) - self.log_inside(records)

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> FloatArray:
        """One output for each record."""
        z = np.atleast_1d(as_floats(records, "Records", MechanismError))
        require(
            bool(np.all((z >= self.low) & (z <= self.high))),
            f"Records must lie in [{self.low:g}, {self.high:g}].",
            MechanismError,
        )
        if self.truncated:
            return np.clip(z + self.noise.sample_between(self.low - z, self.high - z, rng), self.low, self.high)
        return z + self.noise.sample(z.size, rng)

    def to_dict(self) -> dict[str, Any]:
        """Kind and parameters, ready for JSON."""
        return {
            "kind": "OnInterval",
            "noise": type(self.noise).__name__,
            "scale": self.noise.width,
            "low": self.low,
            "high": self.high,
            "truncated": self.truncated,
        }

    def __repr__(self) -> str:
        kept = ", truncated" if self.truncated else ""
        return f"OnInterval({self.noise!r}, {self.low:g} to {self.high:g}{kept})"
