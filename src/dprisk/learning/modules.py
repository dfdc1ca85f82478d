"""Any torch module as a model: gradients by `vmap(grad)`, where the layers are not ours to look into."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from dprisk.errors import fail, require
from dprisk.learning.networks import Gradients, Parameters
from dprisk.learning.randomness import Streams

UNFIT = (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._BatchNorm, torch.nn.RReLU)
Loss = Callable[[Tensor, Tensor], Tensor]  # outputs of the module and labels, of a batch of one -> a number


@dataclass(frozen=True, eq=False)
class OwnModel:
    """A torch module with a loss (cross-entropy if left out), to be trained and attacked like a `Network`.

    The gradient of every example is formed, which takes ten times as long as a `Network` does, or longer, and far more
    memory; the numbers are the same. Every training begins with the weights that the module has now. What draws random
    numbers or looks at other examples (dropout, batch normalisation) is refused, unless `module.eval()` has fixed it.
    """

    module: torch.nn.Module
    loss: Loss | None = None
    classes: int | None = None

    def __post_init__(self) -> None:
        require(isinstance(self.module, torch.nn.Module), f"OwnModel takes a torch module, not {self.module!r}.")
        wrapped = any(hasattr(part, "grad_sample") for part in self.module.parameters())
        require(not wrapped, "Opacus still watches this module: give what `to_standard_module()` of it returns.")
        require(len(self.shapes) > 0, "This module has no weights that are trained.")
        for name, part in self.module.named_modules():
            fixed = not part.training and getattr(part, "track_running_stats", True)
            told = f"{type(part).__name__} ({name}) draws random numbers or mixes examples, so that no example has a"
            require(
                fixed or not isinstance(part, UNFIT), f"{told} gradient of its own: call module.eval() or leave it out."
            )

    @property
    def _trained(self) -> dict[str, Tensor]:
        return {name: part for name, part in self.module.named_parameters() if part.requires_grad}

    @property
    def fixed(self) -> list[Tensor]:
        return [part for name, part in self.module.state_dict().items() if name not in self._trained]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(part.shape) for part in self._trained.values()]

    @property
    def numbers(self) -> int:
        return 3 * sum(math.prod(shape) for shape in self.shapes)

    def start(self, streams: Streams) -> Parameters:
        like = streams.uniform(1)
        runs, device = len(like), like.device
        return [part.detach().to(device).expand(runs, *part.shape).clone() for part in self._trained.values()]

    def inputs(self, rows: Tensor, own: bool = False) -> Tensor:
        return rows

    def gradients(self, parameters: Parameters, inputs: Tensor, labels: Tensor) -> Gradients:
        measure = self.loss or functional.cross_entropy

        def loss(now: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
            return measure(self._called(now, one[None]), label[None])

        own = 0 if labels.dim() == 2 else None  # the axis of the trainings, where examples are not shared
        each = vmap(vmap(grad(loss), in_dims=(None, 0, 0)), in_dims=(0, own, own))
        try:
            found: dict[str, Tensor] = each(dict(zip(self._trained, parameters, strict=True)), inputs, labels)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as problem:
            reason = str(problem).splitlines()[0]
            told = f"examples of shape {tuple(inputs.shape[labels.dim() :])} and labels up to {int(labels.max())}"
            fail(f"The gradient of this module cannot be taken, with {told}, one at a time: {reason}")
        return FormedGradients([found[name] for name in self._trained])

    def _called(self, weights: dict[str, Tensor], inputs: Tensor) -> Any:
        others = {
            name: part.to(inputs.device) for name, part in self.module.state_dict().items() if name not in weights
        }
        return functional_call(self.module, {**others, **weights}, (inputs,))

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        told: Tensor = vmap(self._called, in_dims=(0, None))(dict(zip(self._trained, parameters, strict=True)), inputs)
        return told


@dataclass(frozen=True, eq=False)
class FormedGradients:
    """Gradients that exist as arrays: trainings x examples x the shape of the weights."""

    parts: list[Tensor]

    @cached_property
    def square_norms(self) -> Tensor:
        norms = [part.flatten(2).square().sum(-1) for part in self.parts]
        return sum(norms[1:], norms[0])

    def sums(self, factors: Tensor) -> Parameters:
        return [torch.einsum("rn,rn...->r...", factors.to(part.dtype), part) for part in self.parts]

    def products(self, direction: Parameters) -> Tensor:
        found = [
            torch.einsum("rnk,rk->rn", part.flatten(2), towards.flatten(1))
            for part, towards in zip(self.parts, direction, strict=True)
        ]
        return sum(found[1:], found[0])
