"""A torch module of one's own is trained and attacked as a network of ours is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dprisk.errors import DpriskError
from dprisk.learning import Examples, Network, OwnModel, Recipe, attack_gradients, mlp, train
from dprisk.learning.layers import Activation, Dense, Trainable, Weights
from tests.plain_training import as_module
from tests.test_learning_training import examples

torch.set_num_threads(1)


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.1])
def test_a_module_is_trained_like_the_same_network(rate: float) -> None:
    """Both begin with the weights of the module, so both draw the same numbers."""
    every, network = examples(34, 20, 4), mlp(20, 6, 4)
    module = as_module(network)
    start = [part.detach().numpy() for part in module.parameters()]
    a, b = (
        train(
            Recipe(model, noise_multiplier=2.0, steps=20, sample_rate=rate),
            every[:30],
            3,
            candidates=every[30:],
            targets=[0, 3, -1],
            start=start,
        )
        for model in (OwnModel(module), network)
    )
    for one, other in zip(a.parameters, b.parameters, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert a.evidence is not None
    assert b.evidence is not None
    np.testing.assert_allclose(a.evidence.log_likelihood, b.evidence.log_likelihood, rtol=1e-3, atol=1e-3)
    chances = torch.softmax(torch.tensor(a.outputs(every)), dim=-1)
    np.testing.assert_allclose(chances, b.outputs(every), rtol=1e-3, atol=1e-4)


def test_its_gradients_are_those_of_the_network() -> None:
    every, network = examples(9, 20, 4), mlp(20, 6, 4)
    module = as_module(network)
    weights = [torch.stack([part.detach(), part.detach() * 2]) for part in module.parameters()]
    x, y = torch.tensor(every.inputs), torch.tensor(every.labels)
    formed = OwnModel(module).gradients(weights, x, y)
    ghost = network.gradients(weights, network.inputs(x), y)
    torch.testing.assert_close(formed.square_norms, ghost.square_norms, rtol=1e-5, atol=1e-6)
    factors = torch.rand(2, 9)
    for one, other in zip(formed.sums(factors), ghost.sums(factors), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(formed.products(weights), ghost.products(weights), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_any_loss_and_own_canaries() -> None:
    """A linear model with squared loss; a canary far from all else is told from the others."""
    rng = np.random.default_rng(0)
    data = Examples(rng.normal(size=(40, 5)), rng.integers(2, size=40))
    canaries = Examples(np.concatenate([rng.normal(size=(1, 5)), 50 * np.eye(5)[:1]]), [0, 1])
    model = OwnModel(torch.nn.Linear(5, 1), lambda told, label: ((told[:, 0] - label) ** 2).mean())
    recipe = Recipe(model, noise_multiplier=3.0, steps=30)
    found = attack_gradients(recipe, data, canaries, runs=60, knows=["none"])
    case = found.case("none")
    assert not case.exceeds_bounds
    assert case.advantage.advantage > 0.2


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(DpriskError, match="takes a torch module"):
        OwnModel(len)  # type: ignore[arg-type]
    with pytest.raises(DpriskError, match="no weights"):
        OwnModel(torch.nn.ReLU())


@pytest.mark.parametrize(
    "layer",
    [torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4, track_running_stats=False)],
)
def test_layers_without_gradients_of_single_examples_are_refused(layer: torch.nn.Module) -> None:
    parts = torch.nn.Linear(5, 4), layer, torch.nn.Linear(4, 3)
    with pytest.raises(DpriskError, match=f"{type(layer).__name__} .* no example has a gradient of its own"):
        OwnModel(torch.nn.Sequential(*parts))
    if getattr(layer, "track_running_stats", True):  # then it can be fixed
        recipe = Recipe(OwnModel(torch.nn.Sequential(*parts).eval()), 1.0, steps=2)
        train(recipe, examples(10, 5, 3), 2)


@pytest.mark.parametrize(
    ("module", "loss", "message"),
    [
        (torch.nn.Linear(7, 3), None, r"examples of shape \(5,\)"),
        (torch.nn.Linear(5, 2), None, "labels up to 2"),
        (torch.nn.Linear(5, 3), lambda told, label: told, "cannot be taken"),
        (torch.nn.Linear(5, 3), lambda told, label: torch.nn.functional.dropout(told).sum(), "random operation"),
        (torch.nn.Linear(5, 3).double(), None, "Double"),
        (torch.nn.Linear(5, 3), lambda told, label: told.sum() * float("nan"), "a loss that is always finite"),
    ],
)
def test_what_torch_says_becomes_a_sentence(module: torch.nn.Module, loss: Any, message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        train(Recipe(OwnModel(module, loss), 1.0, steps=2), Examples(np.ones((6, 5)), [0, 1, 2, 0, 1, 2]))


def test_trainings_with_other_fixed_weights_are_others(tmp_path: Path) -> None:
    """What is fixed in a module, as in transfer learning, decides the gradients too."""
    every, file = examples(14, 5, 3), tmp_path / "runs.npz"
    for scale in (1.0, 2.0):
        fixed = torch.nn.Linear(5, 4).requires_grad_(False)
        with torch.no_grad():
            fixed.weight.fill_(scale)
            fixed.bias.zero_()
        last = torch.nn.Linear(4, 3)
        torch.nn.init.zeros_(last.weight)
        torch.nn.init.zeros_(last.bias)
        recipe = Recipe(OwnModel(torch.nn.Sequential(fixed, last)), 2.0, steps=2)
        if scale == 1.0:
            attack_gradients(recipe, every[:10], every[10:], runs=4, file=file)
            continue
        with pytest.raises(DpriskError, match="holds other trainings"):
            attack_gradients(recipe, every[:10], every[10:], runs=4, file=file)


@dataclass(frozen=True)
class Scale(Trainable):
    """A learned factor for each feature: a layer that dprisk does not have."""

    features: int

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(self.features,)]

    @property
    def fan_in(self) -> int:
        return 1

    @property
    def numbers(self) -> int:
        return 2 * self.features

    def forward(self, weights: Weights, entering: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return weights[0][..., None] * entering, entering

    def backward(self, weights: Weights, kept: torch.Tensor, leaving: torch.Tensor) -> torch.Tensor:
        return weights[0][..., None] * leaving

    def square_norms(self, kept: torch.Tensor, leaving: torch.Tensor) -> torch.Tensor:
        return (leaving * kept).square().sum(-2)

    def sums(self, kept: torch.Tensor, leaving: torch.Tensor) -> Weights:
        return [(leaving * kept).sum(-1)]

    def products(self, direction: Weights, kept: torch.Tensor, leaving: torch.Tensor) -> torch.Tensor:
        return (direction[0][..., None] * kept * leaving).sum(-2)


class Scaled(torch.nn.Module):
    """The same with torch's own layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(20, 6), torch.nn.Linear(6, 4)
        self.factors = torch.nn.Parameter(torch.rand(6))
        self.order = ("first.weight", "first.bias", "factors", "last.weight", "last.bias")

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        told: torch.Tensor = self.last(self.factors * torch.tanh(self.first(rows)))
        return told


def test_a_layer_of_ones_own_is_one_class() -> None:
    every, module = examples(9, 20, 4), Scaled()
    network = Network((Dense(20, 6), Activation("tanh"), Scale(6), Dense(6, 4)))
    named = dict(module.named_parameters())
    x, y = torch.tensor(every.inputs), torch.tensor(every.labels)
    formed = OwnModel(module).gradients([part[None].detach() for part in named.values()], x, y)
    ghost = network.gradients([named[name][None].detach() for name in module.order], network.inputs(x), y)
    torch.testing.assert_close(formed.square_norms, ghost.square_norms, rtol=1e-4, atol=1e-6)
    factors = torch.rand(1, 9)
    theirs = dict(zip(named, formed.sums(factors), strict=True))
    for name, own in zip(module.order, ghost.sums(factors), strict=True):
        torch.testing.assert_close(own, theirs[name], rtol=1e-4, atol=1e-6)
    towards = [torch.ones_like(part) for part in theirs.values()]
    inner = ghost.products([torch.ones_like(named[name])[None] for name in module.order])
    torch.testing.assert_close(formed.products(towards), inner, rtol=1e-4, atol=1e-5)
    trained = train(Recipe(network, 1.0, steps=3, sample_rate=0.5), every, 2)
    assert trained.outputs(every).shape == (2, 9, 4)
