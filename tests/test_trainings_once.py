"""One training with canaries: what it certifies with little noise and with enough, and that its size tells nothing."""

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dprisk import DpriskError  # noqa: E402
from dprisk.guarantees import dp_sgd  # noqa: E402
from dprisk.learning import Examples, OwnModel, Recipe, mlp, train  # noqa: E402
from dprisk.population import audit_one_run, trainings  # noqa: E402
from dprisk.population.trainings import train_once  # noqa: E402

RNG = np.random.default_rng(0)
DATA = Examples(RNG.normal(size=(100, 60)), RNG.integers(0, 4, 100))
CANARIES = Examples(RNG.normal(size=(200, 60)) * 2, RNG.integers(0, 4, 200))


def recipe(noise: float, sample_rate: float = 1.0) -> Recipe:
    return Recipe(mlp(60, 4), noise, steps=40, clip=1.0, learning_rate=4.0, sample_rate=sample_rate)


def test_a_training_with_little_noise_is_found_out() -> None:
    found = audit_one_run(train_once(recipe(0.5), DATA, CANARIES), claim=0.5, delta=1e-5)
    assert found.verdict == "violated"
    assert found.run.in_or_out
    assert found.run.canaries.people == 200


@pytest.mark.parametrize("rate", [1.0, 0.3, 0.1])
def test_a_training_with_the_promised_noise_keeps_its_claim(rate: float) -> None:
    """The claim is for adding or removing a record, as canaries are in or out: five seeds, none above it."""
    noise = 30.0 * rate
    claim = dp_sgd(noise, rate, 40).epsilon_at(1e-5)
    runs = [train_once(recipe(noise, rate), DATA, CANARIES, seed=seed) for seed in range(5)]
    assert claim < 2
    assert all(audit_one_run(run, claim, delta=1e-5).verdict == "consistent with the claim" for run in runs)


def test_how_far_an_example_moves_the_weights_does_not_tell_how_many_are_in(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, sizes = [], []

    def watched(given: Recipe, examples: Examples, *more: Any, **named: Any) -> Any:
        steps.append(given.learning_rate / named["expected"])
        sizes.append(len(examples))
        return train(given, examples, *more, **named)

    monkeypatch.setattr(trainings, "train", watched)
    for seed in range(3):
        train_once(recipe(1.0), DATA, CANARIES, prior=0.3, seed=seed)
    assert len(set(sizes)) > 2
    assert steps == pytest.approx([4.0 / 160] * 6)


def test_canaries_are_in_as_often_as_the_prior_says_and_by_the_seed() -> None:
    runs = [train_once(recipe(1.0), DATA, CANARIES, prior=0.2, seed=seed) for seed in (1, 1, 2)]
    right = [run.right.tolist() for run in runs]
    assert right[0] == right[1] != right[2]
    assert set(runs[0].masses.tolist()) == {0.2, 0.8}


def test_the_score_is_the_log_odds_of_the_label_for_chances_and_for_scores() -> None:
    some = CANARIES[:5]
    network = train(recipe(1.0), DATA, 3)
    chances = np.take_along_axis(network.outputs(some), some.labels[None, :, None], axis=2)[..., 0].astype(float)
    assert trainings._log_odds(network, some) == pytest.approx(np.log(chances / (1 - chances)), abs=1e-4)
    own = train(Recipe(OwnModel(torch.nn.Linear(60, 4)), 1.0, steps=3), DATA, 2)
    scores = own.outputs(some).astype(float)
    shares = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    label = np.take_along_axis(shares, some.labels[None, :, None], axis=2)[..., 0]
    assert trainings._log_odds(own, some) == pytest.approx(np.log(label / (1 - label)), abs=1e-6)


@pytest.mark.parametrize(
    ("data", "canaries", "prior", "told"),
    [
        (DATA[:0], CANARIES, 0.5, "an example to learn from"),
        (DATA, CANARIES[:0], 0.5, "There must be a canary"),
        (DATA, CANARIES, 1.0, r"must lie in \(0, 1\), got 1"),
        (DATA, CANARIES, math.nan, r"must lie in \(0, 1\), got nan"),
        (DATA, Examples(np.zeros((3, 7)), [0, 1, 2]), 0.5, r"the shape of the data, \(60,\), got \(7,\)"),
        (DATA, Examples(np.zeros((3, 60)), [0, 1, 9]), 0.5, "labels up to 9"),
    ],
)
def test_what_cannot_be_trained_is_refused(data: Examples, canaries: Examples, prior: float, told: str) -> None:
    with pytest.raises(DpriskError, match=told):
        train_once(recipe(1.0), data, canaries, prior)
