"""One training by DP-SGD with canaries, each in or out by a coin: what the trained model says of each."""

from __future__ import annotations

import numpy as np

from dprisk.errors import as_number, as_whole, require
from dprisk.learning import Examples, Network, Recipe, Trained, train
from dprisk.population.canaries import OneRun
from dprisk.types import FloatArray

REFERENCES = 8  # trainings without canaries, by which a model's belief in a label is told from how usual it is


def train_once(
    recipe: Recipe,
    data: Examples,
    canaries: Examples,
    prior: float = 0.5,
    *,
    seed: int = 0,
    device: str = "cpu",
) -> OneRun:
    """Toss a coin for each canary, train once on the data and those that came up, and score all by the trained model.

    The score of a canary is how much more the model believes its label than models that were trained on the data alone
    do on average, in log-odds. So the attacker knows the data and sees the trained model, but no gradient on the way.
    Epsilon is for adding or removing a record: compare it with `dp_sgd(noise_multiplier, sample_rate, steps)`, which is
    for that unless told otherwise.

    A step divides the noisy sum by the number of examples that are *expected*. By their true number, the size of the
    noise in the weights would tell how many canaries are in, which no accountant allows for.
    """
    chance = as_number("prior", prior)
    require(0 < chance < 1, f"A prior probability must lie in (0, 1), got {chance:g}")
    require(len(data) > 0, "There must be an example to learn from beside the canaries.")
    require(len(canaries) > 0, "There must be a canary.")
    shapes = data.inputs.shape[1:], canaries.inputs.shape[1:]
    require(shapes[0] == shapes[1], f"Canaries must have the shape of the data, {shapes[0]}, got {shapes[1]}.")
    classes, largest = recipe.model.classes, int(canaries.labels.max())
    require(classes is None or largest < classes, f"The network tells {classes} classes apart, labels up to {largest}.")
    coins, training = np.random.default_rng(as_whole("seed", seed, least=0)).spawn(2)
    inside = coins.random(len(canaries)) < chance
    expected = len(data) + chance * len(canaries)

    def believed(examples: Examples, runs: int) -> FloatArray:
        own_seed = int(training.integers(1 << 62))
        trained = train(recipe, examples, runs, expected=expected, seed=own_seed, device=device)
        return np.asarray(_log_odds(trained, canaries).mean(axis=0))

    score = believed(_with(data, canaries[inside]), 1) - believed(data, REFERENCES)
    return OneRun.from_scores(score, inside, chance)


def _with(data: Examples, more: Examples) -> Examples:
    return Examples(np.concatenate([data.inputs, more.inputs]), np.concatenate([data.labels, more.labels]))


def _log_odds(trained: Trained, canaries: Examples) -> FloatArray:
    """Of each canary's label in each model: its score less the logarithm of the sum of e^score of the others.

    A network tells chances, whose logarithms are scores; any other model is taken to tell scores.
    """
    told = trained.outputs(canaries).astype(float)
    classes = told.shape[-1]
    require(told.ndim == 3 and classes > max(1, canaries.labels.max()), "The model must tell a number for every label.")
    scores = np.log(np.maximum(told, np.finfo(np.float32).tiny)) if isinstance(trained.recipe.model, Network) else told
    is_own = np.arange(classes) == canaries.labels[:, None]
    own = np.where(is_own, scores, 0.0).sum(axis=-1)
    found: FloatArray = own - np.logaddexp.reduce(np.where(is_own, -np.inf, scores), axis=-1)
    return found
