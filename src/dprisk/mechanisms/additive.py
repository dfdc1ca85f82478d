"""Laplace and Gaussian noise on records at m equally spaced positions in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_number, as_size, require
from dprisk.guarantees import GaussianDP, Guarantee, TradeOff
from dprisk.guarantees.curves import from_profile
from dprisk.mechanisms.base import Mechanism
from dprisk.tables import as_floats
from dprisk.types import AnyArray, FloatArray


class Additive(Mechanism):
    """The record's position i / (m - 1) plus noise; the query's sensitivity is 1."""

    @property
    def spacing(self) -> float:
        """The distance between neighbouring positions."""
        return 1 / (self.size - 1) if self.size > 1 else 0.0

    def _positions(self) -> FloatArray:
        return np.arange(self.size, dtype=np.float64) * self.spacing

    def _values(self, outputs: npt.ArrayLike) -> FloatArray:
        value = np.atleast_1d(as_floats(outputs, "Outputs", MechanismError))
        require(bool(np.all(np.isfinite(value))), "Outputs must be finite numbers.", MechanismError)
        return value

    def neighbour_variation(self) -> float:
        """The total variation between the outputs of two neighbouring positions."""
        return self._variation(self.spacing)

    _variation: Callable[[float], float]


class Laplace(Additive):
    """Laplace noise of scale 1 / epsilon (RAD Example 4.7)."""

    def __init__(self, size: int, epsilon: float) -> None:
        size = as_size(size)
        epsilon = as_epsilon(epsilon)
        require(epsilon > 1e-300, "Laplace noise needs epsilon > 0: at 0 its scale is infinite", MechanismError)
        self.size, self._epsilon = size, float(epsilon)

    @property
    def epsilon(self) -> float:
        return self._epsilon if self.size > 1 else 0.0

    @property
    def scale(self) -> float:
        """The scale of the noise, its mean size."""
        return 1 / self._epsilon

    def with_epsilon(self, epsilon: float) -> Laplace:
        return Laplace(self.size, epsilon)

    def delta_at(self, epsilon: float) -> float:
        epsilon = as_epsilon(epsilon)
        return max(0.0, -math.expm1((epsilon - self.epsilon) / 2))

    def _variation(self, distance: float) -> float:
        return -math.expm1(-self._epsilon * distance / 2)

    def guarantee(self) -> Guarantee:
        """The curve of the profile delta(e) = 1 - exp((e - epsilon) / 2), by 400 of its tangents."""
        epsilons = np.linspace(0.0, min(self.epsilon, 700.0), 400)
        alpha, beta = from_profile(epsilons, -np.expm1((epsilons - self.epsilon) / 2))
        return TradeOff(alpha, beta, linear=True, epsilon=self.epsilon)

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        return self._records(records) * self.spacing + rng.laplace(scale=self.scale, size=np.size(records))

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        value = self._values(outputs)
        return math.log(self._epsilon / 2) - self._epsilon * np.abs(value[:, None] - self._positions())


class Gaussian(Additive):
    """Gaussian noise of standard deviation sigma (RAD Example 4.8). It is epsilon-DP for no epsilon."""

    def __init__(self, size: int, sigma: float) -> None:
        size = as_size(size)
        sigma = as_number("sigma", sigma)
        require(1e-100 < sigma < 1e100, f"sigma must be finite and above 0, got {sigma:g}", MechanismError)
        self.size, self.sigma = size, float(sigma)

    @property
    def epsilon(self) -> float:
        return math.inf if self.size > 1 else 0.0

    def with_epsilon(self, epsilon: float) -> Gaussian:
        raise MechanismError("Gaussian noise is epsilon-DP for no epsilon; set sigma instead.")

    def delta_at(self, epsilon: float) -> float:
        return self.guarantee().delta_at(epsilon)

    def guarantee(self) -> Guarantee:
        """mu-Gaussian DP with mu = 1 / sigma, the positions being at most 1 apart."""
        return GaussianDP(1 / self.sigma if self.size > 1 else 0.0)

    def _variation(self, distance: float) -> float:
        return math.erf(distance / (2 * math.sqrt(2) * self.sigma))

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        return self._records(records) * self.spacing + rng.normal(scale=self.sigma, size=np.size(records))

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        value = self._values(outputs)
        standard = (value[:, None] - self._positions()) / self.sigma
        return -(standard**2) / 2 - math.log(self.sigma * math.sqrt(2 * math.pi))

    def _parameters(self) -> dict[str, Any]:
        return {"sigma": self.sigma}
