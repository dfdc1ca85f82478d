"""Many trainings by DP-SGD at once, each with weights, noise and batches of its own.

A step takes the gradient of every example of the batch, clips it to norm C, adds them up, adds noise of standard
deviation sigma C to every coordinate, and moves the weights against the sum over the expected batch size, times the
learning rate. All trainings share their data but for one record, and only sums over them are formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dprisk.errors import as_number, as_whole, fail, require
from dprisk.learning.examples import Examples
from dprisk.learning.networks import Model, Network, Parameters
from dprisk.learning.randomness import Streams, quick, streams
from dprisk.types import FloatArray

MASKED = 0.25  # from this sample rate on, gradients are taken of all examples and those outside the batch left out
ON_PROCESSOR = 1 << 24  # numbers kept at a time: beyond it caches help no more
CURES = "a smaller learning_rate, less noise, smaller inputs, or a loss that is always finite"
Progress = Callable[[int, int], None]  # told of trainings done, trainings wanted


@dataclass(frozen=True)
class Recipe:
    """How a model is trained with DP-SGD.

    `noise_multiplier` is the noise over `clip`, the norm that gradients are clipped to. With a `sample_rate` below 1
    every example is in a step's batch with that chance, as accountants assume.
    """

    model: Model
    noise_multiplier: float
    steps: int = 100
    clip: float = 0.1
    learning_rate: float = 1.0
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        is_model = all(hasattr(self.model, name) for name in ("shapes", "start", "gradients"))
        told = "A model is made by mlp or small_cnn, or by OwnModel of any torch module"
        require(is_model, f"{told}; {type(self.model).__name__} is none of them.")
        as_whole("steps", self.steps)
        noise = as_number("noise_multiplier", self.noise_multiplier)
        require(0 <= noise < math.inf, f"noise_multiplier must be finite and at least 0, got {noise:g}")
        for name in ("clip", "learning_rate"):
            number = as_number(name, getattr(self, name))
            require(0 < number < math.inf, f"{name} must be finite and above 0, got {number:g}")
        rate = as_number("sample_rate", self.sample_rate)
        require(0 < rate <= 1, f"sample_rate must lie in (0, 1], got {rate:g}")


@dataclass(frozen=True)
class Evidence:
    """What the noisy gradients of each training say of each candidate, trainings x candidates.

    With y the noisy gradient less that of everybody else and g the candidate's clipped gradient, at each step's
    weights: `products` are the sums over the steps of <y, g>, `squares` of <g, g>, and `log_likelihood` of the
    logarithm of the density of y if the candidate took part over that if nobody did,

        log(1 - q + q exp((<y, g> - <g, g> / 2) / (sigma C)^2)),        q the sample rate.
    """

    log_likelihood: FloatArray
    products: FloatArray
    squares: FloatArray

    @classmethod
    def joined(cls, parts: Sequence[Evidence]) -> Evidence:
        """The evidence of one after the other."""
        names = ("log_likelihood", "products", "squares")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True, eq=False)
class Trained:
    """Trained models: the weights of each (trainings first), and the evidence on candidates if there were any."""

    recipe: Recipe
    parameters: Parameters
    evidence: Evidence | None

    def outputs(self, examples: Examples) -> FloatArray:
        """What each model says of each example: trainings x examples x numbers, for a network chances of classes."""
        device = self.parameters[0].device
        inputs = self.recipe.model.inputs(torch.tensor(examples.inputs, device=device))
        with torch.no_grad():
            found: FloatArray = self.recipe.model.outputs(self.parameters, inputs).cpu().numpy()
        return found

    def accuracies(self, examples: Examples) -> FloatArray:
        """The part of the examples that each model gives its largest number to the right label of."""
        right: FloatArray = (self.outputs(examples).argmax(-1) == examples.labels).mean(axis=1)
        return right


def train(
    recipe: Recipe,
    data: Examples,
    runs: int | Sequence[int] = 1,
    *,
    own: Examples | None = None,
    candidates: Examples | None = None,
    targets: npt.ArrayLike | None = None,
    noise_multipliers: npt.ArrayLike | None = None,
    start: Sequence[npt.ArrayLike] | None = None,
    frozen: bool = False,
    expected: float | None = None,
    seed: int = 0,
    device: str = "cpu",
    fast: bool = False,
    chunk: int | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Train so many models on the same data, and each with one more record if there is one.

    `own` has one more record for each training. Or `targets` has the number of one of the `candidates` for each, or -1
    for none; then the evidence on all candidates is gathered on the way. `runs` may be the numbers of the trainings: a
    training's random numbers follow from its number and the seed, whatever else is trained with it and in however large
    a `chunk`. So does its result, but for rounding: sums are taken in another order, and weights agree to about 1e-5,
    not to the last bit. Each training begins with weights of its own, or with `start`, and stays there if it is
    `frozen`. Its noise multiplier is the recipe's, unless `noise_multipliers` has one for each. A step divides the
    noisy sum by the sample rate times the number of examples, or the number `expected` where the true one is a secret.

    `fast` is for a GPU: code is compiled, which takes a minute at first, and sums over `data` are taken in TF32. The
    gradients of the one record and the evidence stay in single precision, sums over steps in double.
    """
    numbers = [as_whole("The number of a training", run, least=0) for run in _listed(runs)]
    as_whole("seed", seed, least=0)
    require(len(data) > 0, "There must be an example to learn from.")
    machine = as_machine(device)
    require(not fast or machine.type == "cuda", f"`fast` is for a GPU, and device is {device!r}: leave it out.")
    job = _Job(recipe, data, own, candidates, machine, frozen, fast, expected)
    which = _targets(targets, candidates, own, len(numbers))
    noise = _noises(recipe, noise_multipliers, len(numbers), candidates is not None)
    step = chunk or _chunk(recipe, job.width, machine)
    parts = []
    for first in range(0, len(numbers), step):
        now = slice(first, min(first + step, len(numbers)))
        told = progress and partial(_told, progress, now, len(numbers))
        made = streams(int(seed), numbers[now], machine, job.fast)
        parts.append(job.run(made, which[now], noise[now], now, start, told))
    weights = [torch.cat(parts_of) for parts_of in zip(*(part for part, _ in parts), strict=True)]
    finite = all(bool(torch.isfinite(part).all()) for part in weights)
    gathered = [evidence for _, evidence in parts if evidence is not None]
    finite = finite and all(bool(np.isfinite(told.log_likelihood).all()) for told in gathered)
    require(finite, f"Weights or gradients grew beyond all numbers: take {CURES}.")
    return Trained(recipe, weights, Evidence.joined(gathered) if gathered else None)


def _told(progress: Progress, now: slice, runs: int, part: float) -> None:
    progress(now.start + int(part * (now.stop - now.start)), runs)


def _listed(runs: int | Sequence[int]) -> Sequence[int]:
    return runs if isinstance(runs, Sequence) else range(as_whole("runs", runs))


def _noises(recipe: Recipe, given: npt.ArrayLike | None, runs: int, attacked: bool) -> FloatArray:
    noise = np.asarray(recipe.noise_multiplier if given is None else given, dtype=float)
    fits = noise.shape in ((), (runs,)) and bool(np.all((noise >= 0) & (noise < math.inf)))
    require(fits, f"`noise_multipliers` are {runs} finite numbers of at least 0, one for each training.")
    told = "Without noise the gradients tell everything: noise_multiplier must be above 0."
    require(not attacked or bool(np.all(noise > 0)), told)
    return np.broadcast_to(noise, runs)


def as_machine(device: str) -> torch.device:
    """The processor, or a GPU that is there."""
    kind = str(device).partition(":")[0]
    require(kind in ("cpu", "cuda"), f"device must be cpu or cuda, got {device!r}.")
    try:
        machine = torch.device(device)
        torch.empty(0, device=machine)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0].rstrip(".")
        fail(f"There is no device {device!r} here ({reason}). Leave it out to compute on the processor.")
    return machine


def _targets(
    targets: npt.ArrayLike | None, candidates: Examples | None, own: Examples | None, runs: int
) -> npt.NDArray[np.int64]:
    require(own is None or candidates is None, "Give each training a record of its `own` or one of `candidates`.")
    require(own is None or len(own) == runs, f"`own` must have a record for each of the {runs} trainings.")
    require((targets is None) == (candidates is None), "`candidates` and `targets` go together.")
    if own is not None:
        return np.zeros(runs, dtype=np.int64)
    if candidates is None:
        return np.full(runs, -1)
    which = np.asarray(targets)
    fits = which.shape == (runs,) and which.dtype.kind in "iu"
    fits = fits and bool(np.all((which >= -1) & (which < len(candidates))))
    require(fits, f"`targets` are {runs} numbers of 0..{len(candidates) - 1}, or -1 for none.")
    return which.astype(np.int64)


def _chunk(recipe: Recipe, width: int, machine: torch.device) -> int:
    """How many trainings fit into memory, or into the caches of a processor."""
    weights = 4 * sum(math.prod(shape) for shape in recipe.model.shapes)
    numbers = weights + width * recipe.model.numbers
    if machine.type == "cpu":
        return max(1, ON_PROCESSOR // numbers)
    free, _ = torch.cuda.mem_get_info(machine)
    return max(1, int(free * 0.6) // (4 * numbers))


@dataclass(frozen=True)
class _Job:
    """The data on their device, and how one chunk of trainings is run on them."""

    recipe: Recipe
    data: Examples
    own: Examples | None
    candidates: Examples | None
    machine: torch.device
    frozen: bool
    fast: bool
    expected: float | None

    @property
    def examples(self) -> float:
        """How many there are, or how many are expected."""
        there = len(self.data) + (self.own is not None or self.candidates is not None)
        number = as_number("expected", there if self.expected is None else self.expected)
        require(0 < number < math.inf, f"`expected` is a number of examples above 0, got {number:g}")
        return number

    @property
    def masked(self) -> bool:
        """Whether a batch is marked among all examples, not picked."""
        return MASKED <= self.recipe.sample_rate < 1

    @property
    def picked(self) -> int:
        """How many examples are drawn for a batch; the last ones lie behind the end of the data."""
        expected = self.recipe.sample_rate * len(self.data)
        return math.ceil(expected + 12 * math.sqrt(expected) + 24)

    @property
    def width(self) -> int:
        """Examples whose gradients are taken at a time."""
        shared = len(self.data) if self.recipe.sample_rate >= MASKED else self.picked
        return shared + (len(self.candidates) if self.candidates is not None else 1)

    def run(
        self,
        made: Streams,
        targets: npt.NDArray[np.int64],
        noise: Any,
        now: slice,
        start: Sequence[npt.ArrayLike] | None,
        told: Callable[[float], None] | None,
    ) -> tuple[Parameters, Evidence | None]:
        recipe, runs, model = self.recipe, len(targets), self.recipe.model
        parameters = self._started(made, runs, start)
        scale = torch.as_tensor(np.asarray(noise, dtype=np.float32) * np.float32(recipe.clip), device=self.machine)
        extra = self._extra(now)
        chosen = torch.as_tensor(targets, device=self.machine)
        there = 0 if extra is None else extra[1].shape[-1]
        is_target = chosen[:, None] == torch.arange(there, device=self.machine)
        rows, labels = self._placed(self.data)
        shared = model.inputs(rows)
        totals = torch.zeros(3, runs, there, dtype=torch.float64, device=self.machine)
        rate = recipe.learning_rate / (recipe.sample_rate * self.examples)
        with torch.no_grad():
            for step in range(recipe.steps):
                sums = None if self.frozen else self._others(made, parameters, shared, rows, labels)
                seen = [_noise(made, weights, scale) for weights in parameters]
                if extra is not None:
                    in_batch = is_target
                    if recipe.sample_rate < 1:
                        in_batch = is_target & (made.uniform(1) < recipe.sample_rate)
                    told_by = _of_target(model, recipe.clip, parameters, *extra, in_batch, seen)
                    if self.candidates is not None:
                        totals += _evidence(*told_by, scale, recipe.sample_rate)
                if sums is not None:
                    for weights, total, noisy in zip(parameters, sums, seen, strict=True):
                        weights.sub_(total.add_(noisy), alpha=rate)
                if told is not None:
                    told((step + 1) / recipe.steps)
        evidence = None if self.candidates is None else Evidence(*totals.cpu().numpy())
        return parameters, evidence

    def _started(self, made: Streams, runs: int, start: Sequence[npt.ArrayLike] | None) -> Parameters:
        shapes = self.recipe.model.shapes
        if start is None:
            return self.recipe.model.start(made)
        given = [torch.as_tensor(np.asarray(part, dtype=np.float32), device=self.machine) for part in start]
        fits = [tuple(part.shape) for part in given] == [tuple(shape) for shape in shapes]
        require(fits, f"`start` must have arrays of the shapes {shapes}.")
        return [part.expand(runs, *part.shape).clone() for part in given]

    def _extra(self, now: slice) -> tuple[Tensor, Tensor] | None:
        """The inputs and labels of the candidates, or of the record that each training has of its own."""
        model = self.recipe.model
        if self.candidates is not None:
            rows, labels = self._placed(self.candidates)
            return model.inputs(rows), labels
        if self.own is None:
            return None
        rows, labels = self._placed(self.own)
        return model.inputs(rows[now, None], own=True), labels[now, None]

    def _placed(self, examples: Examples) -> tuple[Tensor, Tensor]:
        classes, largest = self.recipe.model.classes, int(examples.labels.max(initial=0))
        require(
            classes is None or largest < classes, f"The network tells {classes} classes apart, labels up to {largest}."
        )
        rows, labels = (torch.tensor(part, device=self.machine) for part in (examples.inputs, examples.labels))
        return rows, labels

    def _others(
        self, made: Streams, parameters: Parameters, shared: Tensor, rows: Tensor, labels: Tensor
    ) -> Parameters:
        """The sum of the clipped gradients of the batch, without the one record."""
        model, clip, rate = self.recipe.model, self.recipe.clip, self.recipe.sample_rate
        inputs, batch = shared, None
        if self.masked:
            batch = made.uniform(len(rows)) < rate
        elif rate < 1:
            places = _picked(made.uniform(self.picked), rate)
            batch = places < len(rows)
            places = places.clamp(max=len(rows) - 1)
            inputs, labels = model.inputs(rows[places], own=True), labels[places]
        with _precision(self.fast):
            clipped = quick(_clipped_sums) if self.fast and isinstance(model, Network) else _clipped_sums
            return clipped(model, clip, parameters, inputs, labels, batch)


def _noise(made: Streams, weights: Tensor, scale: Tensor) -> Tensor:
    return made.normal(weights[0].numel()).mul_(scale[:, None]).view(weights.shape)


def clip_factors(square_norms: Tensor, clip: float) -> Tensor:
    """What a gradient is multiplied by so that its norm is at most `clip`."""
    return (clip * torch.rsqrt(square_norms)).clamp(max=1.0)


def _clipped_sums(
    model: Model, clip: float, parameters: Parameters, inputs: Tensor, labels: Tensor, batch: Tensor | None
) -> Parameters:
    gradients = model.gradients(parameters, inputs, labels)
    factors = clip_factors(gradients.square_norms, clip)
    return gradients.sums(factors if batch is None else factors * batch)


def _of_target(
    model: Model,
    clip: float,
    parameters: Parameters,
    inputs: Tensor,
    labels: Tensor,
    in_batch: Tensor,
    seen: Parameters,
) -> tuple[Tensor, Tensor]:
    """Add the target's clipped gradient to the noise; all candidates' products with the result, and their squares."""
    gradients = model.gradients(parameters, inputs, labels)
    squares = gradients.square_norms
    factors = clip_factors(squares, clip)
    for noisy, own in zip(seen, gradients.sums(factors * in_batch), strict=True):
        noisy.add_(own)
    return gradients.products(seen) * factors, squares * factors**2


def _evidence(products: Tensor, squares: Tensor, scale: Tensor, rate: float) -> Tensor:
    products, squares = products.double(), squares.double()
    ratio = (products - squares / 2) / scale.double()[:, None] ** 2
    if rate < 1:
        ratio = torch.logaddexp(ratio + math.log(rate), torch.full_like(ratio, math.log1p(-rate)))
    return torch.stack([ratio, products, squares])


def _picked(uniform: Tensor, rate: float) -> Tensor:
    """A Poisson sample of the numbers 0, 1, ...: the gaps between those in it are geometric."""
    gaps = torch.floor(torch.log(uniform.double()) / math.log1p(-rate)).long() + 1
    return gaps.cumsum(1) - 1


@contextmanager
def _precision(fast: bool) -> Iterator[None]:
    """Products in TF32 where they may be; everywhere else as they were."""
    before = torch.get_float32_matmul_precision()
    if fast:
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        if fast:
            torch.set_float32_matmul_precision(before)
