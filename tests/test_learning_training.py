"""Many trainings at once are each the training that one would do alone."""

import numpy as np
import pytest
import torch

from dprisk.learning import Examples, Recipe, mlp, small_cnn, train
from tests.plain_training import train_plainly

torch.set_num_threads(1)


def examples(count: int, inputs: int, classes: int, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=count)
    centres = rng.normal(size=(classes, inputs))
    return Examples(centres[labels] + rng.normal(size=(count, inputs)), labels)


def flat(trained: list[torch.Tensor], run: int) -> torch.Tensor:
    return torch.cat([part[run].flatten() for part in trained])


NETWORKS = {
    "mlp": (mlp(20, 6, 4), 20),
    "deep": (mlp(12, 8, 7, 5, activation="tanh"), 12),
    "cnn": (small_cnn(side=12, classes=4, filters=(3, 4)), 144),
}


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("name", NETWORKS)
def test_trainings_at_once_are_the_training_written_out(name: str, rate: float) -> None:
    network, inputs = NETWORKS[name]
    every = examples(64, inputs, 4)
    data, candidates = every[:60], every[60:]
    recipe = Recipe(network, noise_multiplier=2.0, clip=0.1, learning_rate=0.5, sample_rate=rate)
    targets = [2, -1, 0]
    found = train(recipe, data, 3, candidates=candidates, targets=targets, seed=5)
    for run, target in enumerate(targets):
        weights, told = train_plainly(recipe, data, candidates, target, run, seed=5)
        assert torch.linalg.norm(flat(found.parameters, run) - weights) <= 1e-5 * torch.linalg.norm(weights)
        assert found.evidence is not None
        np.testing.assert_allclose(found.evidence.log_likelihood[run], told, rtol=2e-4, atol=2e-4)
