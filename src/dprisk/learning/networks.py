"""Networks that are trained many at a time, each training with weights of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor

from dprisk.errors import as_whole, require
from dprisk.learning.layers import (
    ACTIVATIONS,
    Activation,
    Convolution,
    Dense,
    Flatten,
    Layer,
    Pooling,
    Trainable,
    start,
)
from dprisk.learning.randomness import Streams

Parameters = list[Tensor]  # R x shape, for each shape of the model


class Gradients(Protocol):
    """The gradients of the loss of each example, by the weights of each training. They need not exist as arrays."""

    @property
    def square_norms(self) -> Tensor:
        """The square of the norm of each, R x examples."""

    def sums(self, factors: Tensor) -> Parameters:
        """Their sums over the examples with these factors, R x examples."""

    def products(self, direction: Parameters) -> Tensor:
        """Their inner products with a direction in the space of the weights, R x examples."""


class Model(Protocol):
    """What can be trained: it has weights to begin with, and gradients."""

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of its weights."""

    @property
    def fixed(self) -> list[Tensor]:
        """What it has besides, which no training changes."""

    @property
    def classes(self) -> int | None:
        """How many labels it tells apart; None if that is not for it to say."""

    @property
    def numbers(self) -> int:
        """About how many numbers are kept for one example while its gradient is taken."""

    def start(self, streams: Streams) -> Parameters:
        """Weights to begin with."""

    def inputs(self, rows: Tensor, own: bool = False) -> Tensor:
        """Rows of examples as `gradients` takes them; `own` rows have the trainings as first axis."""

    def gradients(self, parameters: Parameters, inputs: Tensor, labels: Tensor) -> Gradients:
        """Of inputs that all trainings share, or of their own: then these and the labels have R as first axis."""

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """What the model says, R x examples x numbers."""


@dataclass(frozen=True)
class Network:
    """A sequence of layers whose outputs are scores of classes; the loss is the cross-entropy of their softmax.

    `mlp` and `small_cnn` make the usual ones.
    """

    layers: tuple[Layer, ...]
    image: tuple[int, int] | None = None  # channels and side of the inputs, where they are images

    @property
    def trainable(self) -> list[Trainable]:
        """The layers that have weights."""
        return [layer for layer in self.layers if isinstance(layer, Trainable)]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [shape for layer in self.trainable for shape in layer.shapes]

    @property
    def numbers(self) -> int:
        return 3 * sum(layer.numbers for layer in self.trainable)

    @property
    def fixed(self) -> list[Tensor]:
        return []

    @property
    def classes(self) -> int:
        return int(self.shapes[-1][0])

    def start(self, streams: Streams) -> Parameters:
        return [
            part
            for layer in self.trainable
            for part in start(layer, streams.uniform(sum(math.prod(shape) for shape in layer.shapes)))
        ]

    def inputs(self, rows: Tensor, own: bool = False) -> Tensor:
        """Features before examples: (R x) features x examples, or (R x) channels x examples x side x side."""
        front = 2 if own else 1
        channels, side = self.image or (self.trainable[0].shapes[0][1], 1)
        size, given = channels * side**2, math.prod(rows.shape[front:])
        require(given == size, f"The network takes {size} numbers an example, not {given}.")
        if self.image is None:
            return rows.flatten(front).mT.contiguous()
        return rows.reshape(*rows.shape[:front], channels, side, side).transpose(-4, -3).contiguous()

    def gradients(self, parameters: Parameters, inputs: Tensor, labels: Tensor) -> Gradients:
        scores, kept = self._forward(parameters, inputs)
        wanted = labels[..., None, :] == torch.arange(scores.shape[1], device=labels.device)[:, None]
        leaving = torch.softmax(scores, dim=1).sub_(wanted.to(scores.dtype))
        found = []
        place = len(parameters)
        for number in range(len(self.layers) - 1, -1, -1):
            layer, weights = self.layers[number], []
            if isinstance(layer, Trainable):
                place -= len(layer.shapes)
                weights = parameters[place : place + len(layer.shapes)]
                found.append((layer, kept[number], leaving))
            if place > 0:
                leaving = layer.backward(weights, kept[number], leaving)
        return GhostGradients(found[::-1])

    def _forward(self, parameters: Parameters, inputs: Tensor) -> tuple[Tensor, list[Any]]:
        place, kept, passing = 0, [], inputs
        for layer in self.layers:
            count = len(layer.shapes) if isinstance(layer, Trainable) else 0
            passing, needed = layer.forward(parameters[place : place + count], passing)
            kept.append(needed)
            place += count
        return passing, kept

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        return torch.softmax(self._forward(parameters, inputs)[0], dim=1).mT


@dataclass(frozen=True)
class GhostGradients:
    """Each layer with what entered it and the gradient by what left it, from which all else follows."""

    layers: list[tuple[Trainable, Tensor, Tensor]]

    @property
    def square_norms(self) -> Tensor:
        norms = [layer.square_norms(kept, leaving) for layer, kept, leaving in self.layers]
        return sum(norms[1:], norms[0])

    def sums(self, factors: Tensor) -> Parameters:
        found: Parameters = []
        for layer, kept, leaving in self.layers:
            found += layer.sums(kept, leaving * factors.view(len(factors), 1, -1, *[1] * (leaving.dim() - 3)))
        return found

    def products(self, direction: Parameters) -> Tensor:
        place, found = 0, []
        for layer, kept, leaving in self.layers:
            found.append(layer.products(direction[place : place + len(layer.shapes)], kept, leaving))
            place += len(layer.shapes)
        return sum(found[1:], found[0])


def mlp(*widths: int, activation: str = "relu") -> Network:
    """Dense layers of these widths, from the inputs to the classes, with an activation between them.

    The papers' network for MNIST is `mlp(784, 10, 10)`.

    >>> mlp(4, 3, 2).shapes
    [(3, 4), (3,), (2, 3), (2,)]
    """
    require(len(widths) >= 2, f"A network has inputs and classes: give two widths or more, got {list(widths)}.")
    require(activation in ACTIVATIONS, f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}.")
    sizes = [as_whole("A width", width) for width in widths]
    layers: list[Layer] = []
    for inputs, outputs in pairwise(sizes):
        layers += [Dense(inputs, outputs), Activation(activation)]
    return Network(tuple(layers[:-1]))


def small_cnn(side: int = 28, channels: int = 1, classes: int = 10, filters: Sequence[int] = (32, 64)) -> Network:
    """The thesis's network for Fashion-MNIST: twice a 3 x 3 convolution, ELU and 2 x 2 pooling, then 128 units."""
    layers: list[Layer] = []
    now, entering = as_whole("side", side), channels
    for count in filters:
        require(now >= 4, f"Images of side {side} are too small for {len(filters)} convolutions.")
        layers += [Convolution(entering, count, now), Activation("elu"), Pooling()]
        now, entering = (now - 2) // 2, count
    layers += [Flatten(), Dense(entering * now * now, 128), Activation("elu"), Dense(128, classes)]
    return Network(tuple(layers), (channels, side))
