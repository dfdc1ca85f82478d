"""Networks for tables, trained by DP-SGD: the learner of a study of attribute inference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.calibration import calibrate
from dprisk.guarantees import DPSGD, Guarantee, dp_sgd
from dprisk.learning.attribute_study import Classifier, Rows
from dprisk.learning.examples import Examples
from dprisk.learning.networks import mlp
from dprisk.learning.training import Recipe, Trained, train
from dprisk.types import FloatArray

DELTA = 1e-5
AT_A_TIME = {"cpu": 16}  # trainings that are done together where each has one record of its own
ON_A_GPU = 500


@dataclass(frozen=True)
class PrivateNetworks:
    """Trains dense networks (256 and 256 units, ReLU) by DP-SGD with Poisson batches.

    Trainings that differ in one record are trained many at a time, on a processor or a GPU; where several targets take
    part in each, the data differ more, and it is one after the other. Its epsilon is told at `delta`.
    """

    noise_multiplier: float
    sample_rate: float = 0.05
    steps: int = 200
    clip: float = 1.0
    learning_rate: float = 1.0
    hidden: tuple[int, ...] = (256, 256)
    device: str = "cpu"
    delta: float = DELTA

    @classmethod
    def with_epsilon(
        cls, epsilon: float, delta: float = DELTA, *, sample_rate: float = 0.05, steps: int = 200, **more: Any
    ) -> PrivateNetworks:
        """With the least noise that keeps this epsilon and delta when a record is added or removed."""
        found = calibrate(DPSGD(sample_rate, steps), epsilon=(epsilon, delta))
        return cls(found.value, sample_rate, steps, delta=delta, **more)

    @property
    def guarantee(self) -> Guarantee:
        """What the training promises."""
        return dp_sgd(self.noise_multiplier, self.sample_rate, self.steps)

    def train(self, shared: Rows, extras: Sequence[Rows], classes: int, seed: int) -> Iterator[Classifier]:
        """The networks in order; each follows from the seed, its number and its data."""
        network = mlp(shared[0].shape[1], *self.hidden, classes)
        recipe = Recipe(network, self.noise_multiplier, self.steps, self.clip, self.learning_rate, self.sample_rate)
        if all(len(labels) == 1 for _, labels in extras):
            yield from self._together(recipe, Examples(*shared), extras, seed)
            return
        for number, extra in enumerate(extras):
            data = Examples(*(np.concatenate(both) for both in zip(shared, extra, strict=True)))
            yield from _each(train(recipe, data, [number], seed=seed, device=self.device))

    def _together(self, recipe: Recipe, shared: Examples, extras: Sequence[Rows], seed: int) -> Iterable[Classifier]:
        block = AT_A_TIME.get(self.device, ON_A_GPU)
        rows, labels = (np.concatenate(parts) for parts in zip(*extras, strict=True))
        for first in range(0, len(extras), block):
            now = slice(first, min(first + block, len(extras)))
            numbers, own = list(range(now.start, now.stop)), Examples(rows[now], labels[now])
            yield from _each(train(recipe, shared, numbers, own=own, seed=seed, device=self.device))


@dataclass(frozen=True)
class _Network:
    """One of the trained networks."""

    trained: Trained

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """The probability of each class for each row."""
        told: FloatArray = self.trained.outputs(Examples(rows, np.zeros(len(rows), dtype=np.int64)))[0]
        return told


def _each(trained: Trained) -> Iterator[_Network]:
    for number in range(len(trained.parameters[0])):
        yield _Network(Trained(trained.recipe, [part[number : number + 1] for part in trained.parameters], None))
