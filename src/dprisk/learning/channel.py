"""A training by DP-SGD as a mechanism: its record is one of some candidates, its output what gradients tell of them.

The attacker knows everybody else's record, the weights and the noisy gradient of every step. What all of that tells of
the candidates is their likelihoods, which are gathered while training. Every tool for mechanisms then applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, require
from dprisk.guarantees import Guarantee, dp_sgd
from dprisk.learning.examples import Examples
from dprisk.learning.training import Evidence, Recipe, train
from dprisk.mechanisms.vectors import Aligned
from dprisk.types import AnyArray, FloatArray


class NoisyGradients(Aligned):
    """All noisy gradients of a training on `data` and on one of the `candidates`, seen by who knows the rest.

    An output is a row of what `Evidence` has of each candidate. With `frozen` weights, which stay at `start`, it is
    Gaussian noise on fixed vectors, `VectorGaussian`, and known exactly.
    """

    def __init__(
        self,
        recipe: Recipe,
        data: Examples,
        candidates: Examples,
        start: Sequence[npt.ArrayLike] | None = None,
        frozen: bool = False,
        device: str = "cpu",
    ) -> None:
        require(len(candidates) > 0, "There must be a candidate.", MechanismError)
        require(recipe.noise_multiplier > 0, "Without noise the gradients tell everything: give a noise_multiplier.")
        self.recipe, self.data, self.candidates, self.start = recipe, data, candidates, start
        self.frozen, self.device, self.size = frozen, device, len(candidates)

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        """One training for each record."""
        targets = self._records(records)
        trained = train(
            self.recipe,
            self.data,
            list(range(targets.size)),
            candidates=self.candidates,
            targets=targets,
            start=self.start,
            frozen=self.frozen,
            seed=int(rng.integers(1 << 62)),
            device=self.device,
        )
        return as_outputs(trained.evidence)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        return self._part(outputs, 0)

    def alignments(self, outputs: npt.ArrayLike, norms: bool = False) -> FloatArray:
        products = self._part(outputs, 1)
        return products - self._part(outputs, 2) / 2 if norms else products

    def _part(self, outputs: npt.ArrayLike, number: int) -> FloatArray:
        rows = np.asarray(outputs, dtype=float)
        is_evidence = rows.ndim == 2 and rows.shape[1] == 3 * self.size
        require(is_evidence, f"An output is a row of {3 * self.size} numbers, got shape {rows.shape}.", MechanismError)
        return rows[:, number * self.size : (number + 1) * self.size]

    @property
    def epsilon(self) -> float:
        return math.inf

    def delta_at(self, epsilon: float) -> float:
        return self.guarantee().delta_at(epsilon)

    def guarantee(self) -> Guarantee:
        """What the accountant says of replacing a record."""
        recipe = self.recipe
        return dp_sgd(recipe.noise_multiplier, recipe.sample_rate, recipe.steps, "replace-one")


def as_outputs(evidence: Evidence | None) -> FloatArray:
    """Evidence as the outputs of `NoisyGradients`."""
    if evidence is None:
        raise MechanismError("These trainings had no candidates.")
    return np.concatenate([evidence.log_likelihood, evidence.products, evidence.squares], axis=1)
