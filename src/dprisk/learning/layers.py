"""Layers of networks that are trained many at a time: forwards, backwards, and what clipping needs.

Arrays of activations have the trainings first and the examples third: R x features x examples (x height x width).
Inputs that all trainings share have no first axis. Then a layer's product for all of them is one wide matrix product,
which is what makes many trainings quick.

The gradient of one example by a dense layer's weights is the outer product of the gradient d by what leaves the layer
and of what enters it, a. So its norm is that of d times that of a, its product with a matrix M is <d, M a>, and the sum
of many is one matrix product. It is never formed (Goodfellow 2015; Li et al. 2022 call it ghost clipping).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Weights = list[Tensor]  # of one layer: R x ... each
ACTIVATIONS = {"relu": torch.relu, "elu": functional.elu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}
BLOCK = 1 << 26  # numbers of the gradients of filters that are formed at a time


class Layer(ABC):
    """A layer: derive from it for one without weights, from `Trainable` for one that learns."""

    @abstractmethod
    def forward(self, weights: Weights, entering: Tensor) -> tuple[Tensor, Any]:
        """What leaves it, and what `backward` and the rest need to know of the way here."""

    @abstractmethod
    def backward(self, weights: Weights, kept: Any, leaving: Tensor) -> Tensor:
        """The gradient by what entered, from that by what left."""


class Trainable(Layer):
    """A layer that learns. Of each example it knows what it kept and the gradient by what left, and needs no more."""

    @property
    @abstractmethod
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of its weights."""

    @property
    @abstractmethod
    def fan_in(self) -> int:
        """How many numbers enter each that leaves: weights begin within one over its root."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """Numbers that are kept for one example."""

    @abstractmethod
    def square_norms(self, kept: Any, leaving: Tensor) -> Tensor:
        """The square of the norm of each example's gradient by the weights, R x examples."""

    @abstractmethod
    def sums(self, kept: Any, leaving: Tensor) -> Weights:
        """The sum of all examples' gradients by the weights."""

    @abstractmethod
    def products(self, direction: Weights, kept: Any, leaving: Tensor) -> Tensor:
        """The inner product of each example's gradient with a direction, R x examples."""


@dataclass(frozen=True)
class Dense(Trainable):
    """A matrix of weights and a bias."""

    inputs: int
    outputs: int

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(self.outputs, self.inputs), (self.outputs,)]

    @property
    def fan_in(self) -> int:
        return self.inputs

    @property
    def numbers(self) -> int:
        return 2 * self.outputs

    def forward(self, weights: Weights, entering: Tensor) -> tuple[Tensor, Tensor]:
        matrix, bias = weights
        if entering.dim() == 2:
            wide = matrix.reshape(-1, self.inputs) @ entering
            return wide.reshape(*matrix.shape[:2], -1).add_(bias[..., None]), entering
        return torch.baddbmm(bias[..., None], matrix, entering), entering

    def backward(self, weights: Weights, kept: Tensor, leaving: Tensor) -> Tensor:
        return weights[0].mT @ leaving

    def square_norms(self, kept: Tensor, leaving: Tensor) -> Tensor:
        return _squares(leaving) * (_squares(kept) + 1)

    def sums(self, kept: Tensor, leaving: Tensor) -> Weights:
        if kept.dim() == 2:
            matrix = leaving.reshape(-1, leaving.shape[-1]) @ kept.mT
            matrix = matrix.reshape(*leaving.shape[:2], self.inputs)
        else:
            matrix = leaving @ kept.mT
        return [matrix, leaving.sum(-1)]

    def products(self, direction: Weights, kept: Tensor, leaving: Tensor) -> Tensor:
        return (self.forward(direction, kept)[0] * leaving).sum(-2)


def _squares(vectors: Tensor) -> Tensor:
    """The square of the norm of each column."""
    return vectors.square().sum(-2)


@dataclass(frozen=True)
class Convolution(Trainable):
    """Filters of kernel x kernel on images of side x side, without padding, and a bias each.

    A filter has few weights and many places, so that forming its gradient for each example is cheaper than the norm by
    all pairs of places. It is formed for a few examples at a time, for its norm only.
    """

    channels: int
    filters: int
    side: int
    kernel: int = 3

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(self.filters, self.channels * self.kernel**2), (self.filters,)]

    @property
    def fan_in(self) -> int:
        return self.channels * self.kernel**2

    @property
    def out(self) -> int:
        return self.side - self.kernel + 1

    @property
    def numbers(self) -> int:
        return (self.fan_in + 3 * self.filters) * self.out**2

    def forward(self, weights: Weights, entering: Tensor) -> tuple[Tensor, Tensor]:
        patches = self._patches(entering)  # (R x) fan_in x (examples places)
        flat, _ = Dense(self.fan_in, self.filters).forward(weights, patches)
        examples = entering.shape[-3]
        return flat.reshape(*flat.shape[:2], examples, self.out, self.out), patches

    def _patches(self, images: Tensor) -> Tensor:
        k = self.kernel
        views = images.unfold(-2, k, 1).unfold(-2, k, 1)  # ... channels, examples, out, out, k, k
        front = list(range(views.dim() - 6))
        order = [*front, *(len(front) + axis for axis in (0, 4, 5, 1, 2, 3))]
        return views.permute(order).reshape(*(views.shape[axis] for axis in front), self.fan_in, -1)

    def backward(self, weights: Weights, kept: Tensor, leaving: Tensor) -> Tensor:
        flat = weights[0].mT @ leaving.flatten(2)
        k, (runs, _, examples, out, _) = self.kernel, leaving.shape
        parts = flat.reshape(runs, self.channels, k, k, examples, out, out)
        images = leaving.new_zeros(runs, self.channels, examples, self.side, self.side)
        for row in range(k):
            for column in range(k):
                images[..., row : row + out, column : column + out] += parts[:, :, row, column]
        return images

    def square_norms(self, kept: Tensor, leaving: Tensor) -> Tensor:
        runs, filters, examples, out, _ = leaving.shape
        places = out * out
        gradients = leaving.reshape(runs, filters, examples, places).transpose(1, 2)
        patches = kept.reshape(*kept.shape[:-1], examples, places).movedim(-3, -1)  # (R x) examples x places x fan_in
        step = max(1, BLOCK // (runs * filters * self.fan_in))
        found = [
            (gradients[:, now : now + step] @ patches[..., now : now + step, :, :]).square().sum((-2, -1))
            for now in range(0, examples, step)
        ]
        return torch.cat(found, dim=1) + gradients.sum(-1).square().sum(-1)

    def sums(self, kept: Tensor, leaving: Tensor) -> Weights:
        return Dense(self.fan_in, self.filters).sums(kept, leaving.flatten(2))

    def products(self, direction: Weights, kept: Tensor, leaving: Tensor) -> Tensor:
        moved, _ = Dense(self.fan_in, self.filters).forward(direction, kept)
        return (moved.reshape(leaving.shape) * leaving).sum((1, 3, 4))


@dataclass(frozen=True)
class Activation(Layer):
    """A function of each number; "relu", "elu", "tanh" or "sigmoid"."""

    name: str

    def forward(self, weights: Weights, entering: Tensor) -> tuple[Tensor, Tensor]:
        leaving = ACTIVATIONS[self.name](entering)
        return leaving, leaving

    def backward(self, weights: Weights, kept: Tensor, leaving: Tensor) -> Tensor:
        if self.name == "relu":
            return leaving * (kept > 0)
        if self.name == "elu":
            return leaving * (kept.clamp(max=0) + 1)
        return leaving * (1 - kept**2 if self.name == "tanh" else kept * (1 - kept))


@dataclass(frozen=True)
class Pooling(Layer):
    """The largest number of each square of two by two; a last odd row or column is left out."""

    def forward(self, weights: Weights, entering: Tensor) -> tuple[Tensor, Any]:
        pooled, places = functional.max_pool2d(entering.flatten(0, 1), 2, return_indices=True)
        return pooled.reshape(*entering.shape[:2], *pooled.shape[1:]), (places, entering.shape)

    def backward(self, weights: Weights, kept: Any, leaving: Tensor) -> Tensor:
        places, shape = kept
        spread: Tensor = functional.max_unpool2d(leaving.flatten(0, 1), places, [2, 2], output_size=list(shape[-2:]))
        return spread.reshape(shape)


@dataclass(frozen=True)
class Flatten(Layer):
    """Images become vectors."""

    def forward(self, weights: Weights, entering: Tensor) -> tuple[Tensor, torch.Size]:
        return entering.transpose(1, 2).flatten(2).mT, entering.shape

    def backward(self, weights: Weights, kept: torch.Size, leaving: Tensor) -> Tensor:
        runs, channels, examples, height, width = kept
        return leaving.mT.reshape(runs, examples, channels, height, width).transpose(1, 2)


def start(layer: Trainable, uniform: Tensor) -> Weights:
    """Weights to begin with, evenly from within one over the root of what enters, as torch has it."""
    sizes = [math.prod(shape) for shape in layer.shapes]
    parts = torch.split(uniform.mul(2).sub(1).div(math.sqrt(layer.fan_in)), sizes, dim=1)
    return [part.reshape(-1, *shape) for part, shape in zip(parts, layer.shapes, strict=True)]
