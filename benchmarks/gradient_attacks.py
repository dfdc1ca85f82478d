"""What who sees every noisy gradient gains on MNIST and Fashion-MNIST: the papers' settings, as one table.

    python -m benchmarks.gradient_attacks --data-dir DATA [--device cuda --fast] [--runs 1000] [--csv FILE] [--part ...]

mnist, fashion          999 records and 8 candidates, the network 784-10-10 (RAD Figures 4 and 5)
mnist-128, fashion-128  128 candidates (thesis Figure 8.1)
mnist-pair, fashion-pair    the thesis's prior 0.35, 0.35, 0.05 x 6 (Figure 8.3)
fashion-cnn             the thesis's convolutional network (Figure 8.2): a GPU, or patience
opposite                two opposite gradients, weights fixed: where the printed line is exceeded most

100 full-batch steps, clipped to 0.1, epsilon 1, 5, 10, 20, 50 at delta 1e-5, intervals at 99 %. At the end it says how
often the printed line with mu = sqrt(T)/sigma is exceeded, and whether anything is beyond what is proven.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.cli.tables import show
from dprisk.datasets import fashion_mnist, mnist
from dprisk.learning import (
    Examples,
    GradientAttack,
    Recipe,
    attack_gradients,
    mlp,
    noise_for,
    small_cnn,
    train,
    worst_pair_prior,
)

EPSILONS = (1, 5, 10, 20, 50)
OTHERS = 999
PARTS = ("mnist", "mnist-128", "mnist-pair", "fashion", "fashion-128", "fashion-pair", "fashion-cnn", "opposite")


def attacked(part: str, asked: argparse.Namespace) -> tuple[GradientAttack, list[float]]:
    """One part, and the accuracy of a model at each epsilon (none for the opposite gradients)."""
    more: dict[str, Any] = {"runs": asked.runs, "device": asked.device, "fast": asked.fast}
    if part == "opposite":
        network = mlp(3, 2)
        pair = Examples([[1.0, 2.0, 3.0]] * 2, [0, 1])
        recipe = Recipe(network, 1.0)
        more |= {"start": [np.zeros(shape) for shape in network.shapes], "frozen": True, "device": "cpu", "fast": False}
        levels = [noise_for(epsilon, 1e-5, recipe) for epsilon in EPSILONS]
        return attack_gradients(recipe, pair, pair, noise_multipliers=levels, knows=["none", "all"], **more), []
    load = mnist if part.startswith("mnist") else fashion_mnist
    size = 128 if part.endswith("128") else 8
    pictures, labels = load(asked.data_dir)
    every = Examples(pictures[: OTHERS + size].reshape(OTHERS + size, -1), labels[: OTHERS + size])
    data, candidates = every[:OTHERS], every[OTHERS:]
    recipe = Recipe(small_cnn(), 1.0, learning_rate=0.5) if part.endswith("cnn") else Recipe(mlp(784, 10, 10), 1.0)
    levels = [noise_for(epsilon, 1e-5, recipe) for epsilon in EPSILONS]
    loudest = replace(recipe, noise_multiplier=levels[-1])
    prior = worst_pair_prior(loudest, data, candidates, device=asked.device) if part.endswith("pair") else None
    found = attack_gradients(recipe, data, candidates, prior, noise_multipliers=levels, **more)
    some = train(recipe, data, [0] * len(levels), noise_multipliers=levels, device=asked.device)
    tested = load(asked.data_dir, "test")
    test = Examples(tested.inputs[:2000].reshape(2000, -1), tested.labels[:2000])
    return found, some.accuracies(test).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=os.environ.get("DPRISK_DATA", "data"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--part", choices=PARTS, nargs="*", default=PARTS)
    asked = parser.parse_args()
    lines: list[dict[str, Any]] = []
    for part in asked.part:
        start = time.perf_counter()
        found, accuracies = attacked(part, asked)
        print(f"\n{part}, {time.perf_counter() - start:.1f} s")
        show(found)
        if accuracies:
            told = ", ".join(f"{each:.2f}" for each in accuracies)
            print(f"Test accuracy of one model at each epsilon: {told}.")
        lines += [{"part": part} | record for record in found.records]
        broken = [case for case in found.cases if case.exceeds_bounds]
        worse = [
            case
            for case in found.cases
            if case.advantage.advantage_interval[1] < case.by_attack["inner products"].advantage_interval[0]
        ]
        over = [f"{case.epsilon:.3g} ({case.knows})" for case in found.cases if case.exceeds_printed]
        above = [
            f"{case.epsilon:.3g} ({case.knows})"
            for case in found.cases
            if case.printed is not None and case.advantage.advantage > case.printed and not case.exceeds_printed
        ]
        print(f"Beyond what is proven: {len(broken)}. Worse than the inner-product rule: {len(worse)}.")
        print(f"Printed line exceeded beyond the interval: {', '.join(over) or 'nowhere'}; ", end="")
        print(f"above it, within the interval: {', '.join(above) or 'nowhere'}.", flush=True)
    if asked.csv is not None:
        with asked.csv.open("w", newline="") as out:
            writer = csv.DictWriter(out, list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
