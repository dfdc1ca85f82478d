"""DP-SGD written out: one training, one gradient for each example, by torch's own layers and `vmap(grad)`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from dprisk.learning import Examples, Network, Recipe
from dprisk.learning.layers import Activation, Convolution, Dense, Flatten
from dprisk.learning.randomness import Streams, streams
from dprisk.learning.training import MASKED

ACTIVATIONS: dict[str, Callable[[], torch.nn.Module]] = {
    "relu": torch.nn.ReLU,
    "elu": torch.nn.ELU,
    "tanh": torch.nn.Tanh,
    "sigmoid": torch.nn.Sigmoid,
}


def as_module(network: Network) -> torch.nn.Sequential:
    """The same network of torch's own layers."""
    layers: list[torch.nn.Module] = []
    for layer in network.layers:
        match layer:
            case Dense():
                layers.append(torch.nn.Linear(layer.inputs, layer.outputs))
            case Convolution():
                layers.append(torch.nn.Conv2d(layer.channels, layer.filters, layer.kernel))
            case Activation():
                layers.append(ACTIVATIONS[layer.name]())
            case Flatten():
                layers.append(torch.nn.Flatten())
            case _:
                layers.append(torch.nn.MaxPool2d(2))
    return torch.nn.Sequential(*layers)


def clipped_gradients(module: torch.nn.Module, weights: dict[str, Tensor], clip: float, x: Tensor, y: Tensor) -> Tensor:
    """The clipped gradient of each example, as a row."""

    def loss(now: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(module, now, (one[None],)), label[None])

    each: dict[str, Tensor] = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    rows = torch.cat([part.flatten(1) for part in each.values()], dim=1)
    norms = rows.norm(dim=1, keepdim=True)
    return rows * torch.clamp(clip / norms, max=1.0)


def train_plainly(
    recipe: Recipe, data: Examples, candidates: Examples, target: int, run: int, seed: int
) -> tuple[Tensor, Tensor]:
    """The weights after training number `run`, and the log-likelihood of each candidate."""
    network: Any = recipe.model
    module, made = as_module(network), streams(seed, [run], torch.device("cpu"))
    names = [name for name, _ in module.named_parameters()]
    shapes = [part.shape for part in module.parameters()]
    weights = {
        name: part[0].reshape(shape) for name, part, shape in zip(names, network.start(made), shapes, strict=True)
    }
    x, extra = torch.tensor(data.inputs), torch.tensor(candidates.inputs)
    if network.image is not None:
        channels, side = network.image
        x, extra = x.reshape(-1, channels, side, side), extra.reshape(-1, channels, side, side)
    y, labels = torch.tensor(data.labels), torch.tensor(candidates.labels)
    scale, rate = recipe.noise_multiplier * recipe.clip, recipe.sample_rate
    told = torch.zeros(len(labels), dtype=torch.float64)
    for _ in range(recipe.steps):
        batch = _batch(made, len(data), rate)
        sums = torch.zeros(())
        if len(batch):  # a sample may be empty
            sums = clipped_gradients(module, weights, recipe.clip, x[batch], y[batch]).sum(0)
        noise = torch.cat([made.normal(shape.numel())[0] for shape in shapes]) * scale
        mine = clipped_gradients(module, weights, recipe.clip, extra, labels)
        sampled = rate == 1 or bool(made.uniform(1)[0, 0] < rate)
        seen = noise + mine[target] if sampled and target >= 0 else noise
        with_it, without = (-((seen - mean).double() ** 2).sum(-1) / (2 * scale**2) for mean in (mine, 0 * mine))
        told += torch.log((1 - rate) * torch.exp(without - with_it) + rate) + with_it - without
        move = (sums + seen) * recipe.learning_rate / (rate * (len(data) + 1))
        parts = torch.split(move, [shape.numel() for shape in shapes])
        weights = {
            name: weights[name] - part.reshape(shape) for name, part, shape in zip(names, parts, shapes, strict=True)
        }
    return torch.cat([part.flatten() for part in weights.values()]), told


def _batch(made: Streams, size: int, rate: float) -> Tensor:
    if rate == 1:
        return torch.arange(size)
    if rate >= MASKED:
        return torch.nonzero(made.uniform(size)[0] < rate)[:, 0]
    expected = rate * size
    drawn = made.uniform(int(np.ceil(expected + 12 * np.sqrt(expected) + 24)))[0].double()
    place, found = -1, []
    for gap in torch.floor(torch.log(drawn) / np.log1p(-rate)):
        place += int(gap) + 1
        if place < size:
            found.append(place)
    return torch.tensor(found, dtype=torch.int64)
