"""Many trainings at once are each the training that one would do alone."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from dprisk.errors import DpriskError
from dprisk.learning import Examples, Recipe, mlp, small_cnn, train
from dprisk.learning.randomness import GeneratorStreams, HashedStreams, generator_keys, stream_keys, streams
from tests.plain_training import as_module, train_plainly

torch.set_num_threads(1)


def examples(count: int, inputs: int, classes: int, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=count)
    centres = rng.normal(size=(classes, inputs))
    return Examples(centres[labels] + rng.normal(size=(count, inputs)), labels)


def flat(trained: list[torch.Tensor], run: int) -> torch.Tensor:
    return torch.cat([part[run].flatten() for part in trained])


RECIPE = Recipe(mlp(20, 4), noise_multiplier=1.0)
NETWORKS = {
    "mlp": (mlp(20, 6, 4), 20),
    "deep": (mlp(12, 8, 7, 5, activation="tanh"), 12),
    "cnn": (small_cnn(side=12, classes=4, filters=(3, 4)), 144),
}


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("name", NETWORKS)
def test_trainings_at_once_are_the_training_written_out(name: str, rate: float) -> None:
    network, inputs = NETWORKS[name]
    every = examples(64, inputs, 4)
    data, candidates = every[:60], every[60:]
    recipe = Recipe(network, noise_multiplier=2.0, clip=0.1, learning_rate=0.5, sample_rate=rate, steps=40)
    targets = [2, -1, 0]
    found = train(recipe, data, 3, candidates=candidates, targets=targets, seed=5)
    for run, target in enumerate(targets):
        weights, told = train_plainly(recipe, data, candidates, target, run, seed=5)
        assert torch.linalg.norm(flat(found.parameters, run) - weights) <= 1e-5 * torch.linalg.norm(weights)
        assert found.evidence is not None
        np.testing.assert_allclose(found.evidence.log_likelihood[run], told, rtol=2e-4, atol=2e-4)


def test_a_step_divides_by_the_number_of_examples_that_is_expected() -> None:
    """Twice as many are as half the learning rate; to expect those that there are changes nothing."""
    data, recipe = examples(40, 20, 4), Recipe(mlp(20, 6, 4), noise_multiplier=1.0, steps=5, sample_rate=0.5)
    twice = train(recipe, data, 2, expected=80, seed=1)
    slower = train(dataclasses.replace(recipe, learning_rate=0.5), data, 2, seed=1)
    as_many, plain = train(recipe, data, 2, expected=40, seed=1), train(recipe, data, 2, seed=1)
    for run in range(2):
        assert torch.allclose(flat(twice.parameters, run), flat(slower.parameters, run), rtol=1e-5)
        assert torch.equal(flat(as_many.parameters, run), flat(plain.parameters, run))
        assert not torch.allclose(flat(twice.parameters, run), flat(plain.parameters, run), rtol=1e-3)
    with pytest.raises(DpriskError, match="number of examples above 0"):
        train(recipe, data, expected=0)


def test_a_training_does_not_depend_on_those_beside_it() -> None:
    every = examples(70, 20, 4)
    recipe = Recipe(mlp(20, 6, 4), noise_multiplier=1.0, steps=30, sample_rate=0.5)
    targets = [0, 1, 2, 3, 0, 1]
    more: dict[str, Any] = {"candidates": every[66:], "seed": 3}
    whole = train(recipe, every[:66], 6, targets=targets, **more)
    for chunk, runs in [(1, [0, 1, 2, 3, 4, 5]), (4, [5, 2]), (6, [4])]:
        some = train(recipe, every[:66], runs, targets=[targets[run] for run in runs], chunk=chunk, **more)
        for place, run in enumerate(runs):
            torch.testing.assert_close(flat(some.parameters, place), flat(whole.parameters, run), rtol=1e-5, atol=1e-6)


def test_a_record_of_its_own_is_like_a_candidate_that_took_part() -> None:
    every = examples(43, 20, 4)
    recipe = Recipe(mlp(20, 6, 4), noise_multiplier=1.0, steps=10)
    one = train(recipe, every[:40], 3, own=every[40:])
    other = train(recipe, every[:40], 3, candidates=every[40:], targets=[0, 1, 2])
    for own, chosen in zip(one.parameters, other.parameters, strict=True):
        torch.testing.assert_close(own, chosen, rtol=1e-5, atol=1e-6)
    without = train(recipe, every[:40], 3)
    assert not torch.allclose(without.parameters[0], one.parameters[0])


def test_each_training_has_its_own_noise_multiplier() -> None:
    every = examples(44, 20, 4)
    more: dict[str, Any] = {"candidates": every[40:], "seed": 1}
    quiet, loud = (Recipe(mlp(20, 6, 4), noise_multiplier=noise, steps=10) for noise in (0.5, 4.0))
    both = train(quiet, every[:40], [0, 0], targets=[1, 1], noise_multipliers=[0.5, 4.0], **more)
    for place, recipe in enumerate((quiet, loud)):
        alone = train(recipe, every[:40], 1, targets=[1], **more)
        torch.testing.assert_close(flat(both.parameters, place), flat(alone.parameters, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_opacus_trains_to_the_same_weights() -> None:
    """Without noise, which Opacus draws elsewhere; it adds 1e-6 to norms before it clips."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    data = examples(50, 20, 4)
    network = mlp(20, 6, 4)
    ours = train(Recipe(network, noise_multiplier=0.0, steps=30, clip=0.3, learning_rate=1.0), data)
    begun = train(Recipe(network, noise_multiplier=0.0, steps=1, clip=1e-12, learning_rate=1e-12), data)
    module = as_module(network)
    with torch.no_grad():
        for theirs, start in zip(module.parameters(), begun.parameters, strict=True):
            theirs.copy_(start[0])
    wrapped = GradSampleModule(module)
    optimiser = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=1.0), noise_multiplier=0.0, max_grad_norm=0.3, expected_batch_size=50
    )
    x, y = torch.tensor(data.inputs), torch.tensor(data.labels)
    for _ in range(30):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(wrapped(x), y).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    for theirs, own in zip(module.parameters(), ours.parameters, strict=True):
        torch.testing.assert_close(own[0], theirs.detach(), rtol=1e-4, atol=1e-5)


def test_models_learn_and_say_what_they_think() -> None:
    every = examples(400, 20, 4, seed=1)
    trained = train(Recipe(mlp(20, 12, 4), noise_multiplier=0.5, clip=1.0, learning_rate=0.5), every[:300], 2)
    chances = trained.outputs(every[300:])
    assert chances.shape == (2, 100, 4)
    np.testing.assert_allclose(chances.sum(-1), 1, rtol=1e-5)
    assert trained.accuracies(every[300:]).min() > 0.8
    assert trained.evidence is None


@pytest.mark.parametrize("kind", [GeneratorStreams, HashedStreams])
def test_streams_are_normal_and_uniform_and_go_on(kind: Any) -> None:
    device = torch.device("cpu")
    made = kind([1, 1 << 31]) if kind is GeneratorStreams else kind([1, 1 << 63], device)
    normal, uniform = made.normal(20_001), made.uniform(20_000)
    for row in normal:
        assert kstest(row.numpy(), "norm").pvalue > 1e-4
    for row in uniform:
        assert kstest(row.numpy(), "uniform").pvalue > 1e-4
    assert not torch.equal(normal[0, :20_000], made.normal(20_000)[0])
    assert abs(float(np.corrcoef(normal.numpy())[0, 1])) < 0.04
    assert float(uniform.min()) > 0
    assert float(uniform.max()) < 1
    again = kind([1 << 31]) if kind is GeneratorStreams else kind([1 << 63], device)
    assert torch.equal(again.normal(20_001)[0], normal[1])


def test_a_hash_gives_each_normal_number_once() -> None:
    """Halves of one hash make two numbers: they must be independent, and no pair may come again."""
    numbers = HashedStreams([7], torch.device("cpu")).normal(40_000)[0].numpy()
    first, second = numbers[:20_000], numbers[20_000:]
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.04
    assert abs(np.corrcoef(np.abs(first), np.abs(second))[0, 1]) < 0.04
    assert np.unique(first).size > 19_900


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Recipe(mlp(20, 4), noise_multiplier=-1.0), "noise_multiplier must be finite and at least 0"),
        (lambda: Recipe(mlp(20, 4), noise_multiplier=1.0, sample_rate=0.0), r"sample_rate must lie in \(0, 1\]"),
        (lambda: Recipe(mlp(20, 4), noise_multiplier=1.0, clip=0.0), "clip must be finite and above 0"),
        (lambda: mlp(20), "inputs and classes"),
        (lambda: mlp(20, 4, activation="step"), "activation must be one of relu"),
        (lambda: small_cnn(side=5), "too small"),
        (lambda: Examples([1.0, 2.0], [0, 1]), "a row for each example"),
        (lambda: Examples([[1.0], [2.0]], [0]), "2 examples and 1 labels"),
        (lambda: Examples([[1.0]], [-1]), "whole numbers from 0 on"),
        (lambda: Examples([[float("nan")]], [0]), "finite"),
        (lambda: train(RECIPE, examples(5, 7, 4)), "takes 20 numbers an example, not 7"),
        (lambda: train(RECIPE, examples(5, 20, 4), own=examples(2, 20, 4)), "a record for each of the 1 trainings"),
        (lambda: train(RECIPE, examples(5, 20, 4), candidates=examples(2, 20, 4)), "go together"),
        (lambda: train(RECIPE, examples(5, 20, 4), candidates=examples(2, 20, 4), targets=[2]), r"numbers of 0\.\.1"),
        (lambda: train(RECIPE, examples(5, 20, 4), device="abacus"), "must be cpu or cuda, got 'abacus'"),
        (lambda: train(RECIPE, examples(5, 20, 4), device="cpu:x"), "no device 'cpu:x' here"),
        (lambda: train(RECIPE, examples(5, 20, 4), [-1]), "The number of a training must be a whole number"),
        (lambda: train(RECIPE, examples(5, 20, 4), seed=-1), "seed must be a whole number"),
        (lambda: train(RECIPE, examples(5, 20, 4)[:0]), "an example to learn from"),
        (lambda: train(RECIPE, examples(5, 20, 4), 2, noise_multipliers=[1, 2, 3]), "are 2 finite numbers"),
        (lambda: Recipe(torch.nn.Linear(20, 4), 1.0), "OwnModel of any torch module; Linear is none"),  # type: ignore[arg-type]
        (lambda: train(RECIPE, examples(5, 20, 4), fast=True), "`fast` is for a GPU"),
        (lambda: train(RECIPE, examples(5, 20, 9)), "labels up to 7"),
    ],
)
def test_what_cannot_be_trained_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        wrong()


@pytest.mark.parametrize("made", [stream_keys, generator_keys])
def test_every_training_has_a_key_of_its_own(made: Any) -> None:
    keys = made(0, range(300_000))
    assert np.unique(keys).size == 300_000
    np.testing.assert_array_equal(made(0, [7, 3]), keys[[7, 3]])
    assert not np.isin(made(1, range(1000)), keys).any()


def test_no_two_trainings_draw_the_same_numbers() -> None:
    """A torch generator reads 32 bits of its seed: of 60,000 random seeds of 64 bits, two would draw the same."""
    drawn = streams(0, range(60_000), torch.device("cpu")).uniform(3).numpy()
    assert np.unique(drawn, axis=0).shape == drawn.shape


def test_weights_that_grow_beyond_all_numbers_are_told() -> None:
    wild = Recipe(mlp(20, 6, 4), noise_multiplier=1e30, steps=30, learning_rate=1e30)
    with pytest.raises(DpriskError, match="smaller learning_rate"):
        train(wild, examples(20, 20, 4))


def test_evidence_that_is_no_number_is_told() -> None:
    """The weights are fixed, and stay finite."""
    huge = Examples(1e30 * examples(2, 20, 4).inputs, [0, 1])
    with pytest.raises(DpriskError, match="smaller inputs"):
        train(RECIPE, examples(20, 20, 4), 2, candidates=huge, targets=[0, 1], frozen=True)
