"""How fast many trainings with DP-SGD are, with the attack on their gradients.

    python -m benchmarks.learning                     # a processor, two threads: against vmap(grad) in the same run
    python -m benchmarks.learning --device cuda       # a GPU: 8000 trainings with attack, in full precision and fast

The setting is the papers': 999 records and one of 8 candidates, a network 784-10-10, 100 full-batch steps. Pictures are
random points, which take as long as real ones. Rows that miss what is wanted say so.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from dprisk.learning import Examples, Recipe, attack_gradients, mlp, noise_for, train

OTHERS, CANDIDATES, STEPS, CLIP = 999, 8, 100, 0.1
TOGETHER, THREADS, TIMES = 32, 2, 12
MANY, SECONDS = 8000, 1.0
EPSILONS, ROW_RUNS, ROW_SECONDS = (1, 5, 10, 20, 50), 1000, 15.0


def setting() -> tuple[Recipe, Examples, Examples]:
    rng = np.random.default_rng(0)
    inputs = rng.random((OTHERS + CANDIDATES, 784), dtype=np.float32)
    labels = rng.integers(10, size=OTHERS + CANDIDATES)
    every = Examples(inputs, labels)
    recipe = Recipe(mlp(784, 10, 10), noise_multiplier=1.0, steps=STEPS, clip=CLIP)
    noise = noise_for(10, 1e-5, recipe)
    return Recipe(mlp(784, 10, 10), noise, STEPS, CLIP), every[:OTHERS], every[OTHERS:]


def by_vmap(recipe: Recipe, data: Examples, extra: Examples, steps: int) -> None:
    """One training as people write it: the gradient of each example by `vmap(grad)`, no attack."""
    module = torch.nn.Sequential(torch.nn.Linear(784, 10), torch.nn.ReLU(), torch.nn.Linear(10, 10))
    weights = {name: part.detach().clone() for name, part in module.named_parameters()}
    x = torch.tensor(np.concatenate([data.inputs, extra.inputs[:1]]))
    y = torch.tensor(np.concatenate([data.labels, extra.labels[:1]]))

    def loss(now: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        return functional.cross_entropy(functional_call(module, now, (one[None],)), label[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))
    scale = recipe.noise_multiplier * recipe.clip
    for _ in range(steps):
        found = each(weights, x, y)
        norms = torch.stack([part.flatten(1).norm(dim=1) for part in found.values()]).norm(dim=0)
        factors = (recipe.clip / norms).clamp(max=1.0)
        for name, part in found.items():
            noisy = torch.einsum("n,n...->...", factors, part) + scale * torch.randn_like(weights[name])
            weights[name] = weights[name] - noisy / len(x)


def seconds(work: Callable[[], Any], repeats: int, device: str = "cpu") -> float:
    """The best of a few, after one that warms up."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return min(taken)


def on_processor() -> None:
    torch.set_num_threads(THREADS)
    recipe, data, extra = setting()
    few = Recipe(recipe.model, recipe.noise_multiplier, 20, CLIP)  # as long as a fifth of all steps
    share = STEPS / few.steps
    targets = np.arange(TOGETHER) % CANDIDATES

    def ours() -> None:
        train(few, data, TOGETHER, candidates=extra, targets=targets, chunk=TOGETHER)

    pairs = [
        (seconds(lambda: by_vmap(few, data, extra, few.steps), 1) * share, seconds(ours, 1) * share / TOGETHER)
        for _ in range(3)
    ]
    theirs, own = (float(np.median([pair[which] for pair in pairs])) for which in (0, 1))
    ratio = float(np.median([pair[0] / pair[1] for pair in pairs]))
    told = "" if ratio >= TIMES else f"  MISSES {TIMES}x"
    print(f"{THREADS} threads, a training of {STEPS} steps, median of 3:")
    print(f"  vmap(grad), one at a time, no attack   {theirs * 1e3:8.1f} ms")
    print(f"  dprisk, {TOGETHER} together, with attack       {own * 1e3:8.1f} ms   {ratio:.1f}x{told}")


def on_gpu(device: str) -> None:
    recipe, data, extra = setting()
    targets = np.arange(MANY) % CANDIDATES
    print(f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}, {MANY} trainings with attack:")
    for fast in (False, True):

        def work(fast: bool = fast) -> None:
            train(recipe, data, MANY, candidates=extra, targets=targets, device=device, fast=fast)

        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        first = time.perf_counter() - start
        took = seconds(work, 3, device)
        name = "compiled, TF32 for the others" if fast else "single precision throughout"
        told = "" if took <= SECONDS or not fast else f"  MISSES {SECONDS:g} s"
        print(f"  {name:32} {took:7.3f} s   (first call {first:.1f} s){told}")
    for fast in (False, True):
        levels = [noise_for(epsilon, 1e-5, recipe) for epsilon in EPSILONS]
        start = time.perf_counter()
        attack_gradients(recipe, data, extra, noise_multipliers=levels, runs=ROW_RUNS, device=device, fast=fast)
        took = time.perf_counter() - start
        told = "" if took <= ROW_SECONDS else f"  MISSES {ROW_SECONDS:g} s"
        kind = "fast" if fast else "single precision"
        print(f"  {len(EPSILONS)} epsilons x {ROW_RUNS} trainings, measured and bounded, {kind}: {took:.2f} s{told}")
    print(f"  memory used at most: {torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    if device == "cpu":
        on_processor()
    else:
        on_gpu(device)


if __name__ == "__main__":
    main()
