"""Attribute inference on real tables: the numbers of docs/could-somebody-learn-an-attribute.md.

    DPRISK_DATA=folder python -m benchmarks.attributes                       # about half an hour on one idle core
    DPRISK_DATA=folder python -m benchmarks.attributes --paper --device cuda # the thesis's sizes, for a GPU

The first trains on 5,000 people, 500 of them drawn anew from a list of 1000 each time. The second is the setting of the
thesis: 49,000 people whom the attacker knows, and one target from a list of 1000 in each training.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dprisk.datasets import LabelledTable, census, census_2019, hospital
from dprisk.learning.attribute_risk import AttributeRisk
from dprisk.learning.attribute_study import infer_attributes
from dprisk.learning.private_networks import PrivateNetworks
from dprisk.rounding import decimals_down, decimals_up

DATA: dict[str, Callable[[Path], LabelledTable]] = {
    "census": census,
    "census-2019": partial(census_2019, income=90_000),
    "hospital": hospital,
}
EPSILONS = (1.0, 50.0)
SMALL: dict[str, Any] = {"others": 4_500, "people": 1000}
PAPER: dict[str, Any] = {"others": 49_000, "people": 1000, "targets": 1}


def line(name: str, epsilon: float, found: AttributeRisk, seconds: float) -> str:
    cells = [name, f"{epsilon:g}", f"{found.train_accuracy:.3f} / {found.test_accuracy:.3f}"]
    for attack in found.found:
        low, high = attack.advantage.interval
        ends = f"[{decimals_down(low, 2)}, {decimals_up(high, 2)}]"
        cells.append(f"{attack.success.mean:.3f}, {attack.advantage.mean:+.3f} {ends}")
    most = decimals_up(found.bound or 1.0, 3)
    return f"| {' | '.join([*cells, f'at most {most}', f'{found.trainings}, {seconds:.0f} s'])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", action="store_true", help="the sizes of the thesis")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", choices=list(DATA), nargs="*", default=list(DATA))
    parser.add_argument("--trainings", type=int, default=150)
    asked = parser.parse_args()
    folder = Path(os.environ["DPRISK_DATA"])
    attacks = "majority | imputation | Yeom | CSMIA | WCAI"
    print(f"| data | epsilon | model, train / test | {attacks} | any attack | trainings |")
    print(f"| {' | '.join(['---'] * 10)} |", flush=True)
    for name in asked.only:
        table = DATA[name](folder)
        sizes = PAPER if asked.paper else SMALL
        if table.size < sizes["others"] + sizes["people"] + 1000:  # as many as there are, and some to test on
            sizes = sizes | {"others": table.size - sizes["people"] - 1000}
        for epsilon in EPSILONS:
            start = time.perf_counter()
            often: dict[str, Any] = {"sample_rate": 0.01, "steps": 2940} if asked.paper else {}
            learner = PrivateNetworks.with_epsilon(epsilon, device=asked.device, **often)
            found = infer_attributes(table, learner, trainings=asked.trainings, **sizes)
            print(line(name, epsilon, found, time.perf_counter() - start), flush=True)
            for value, rate in found["WCAI"].by_value.items():
                print(f"    WCAI on {value}: {rate.mean:+.3f} [{rate.interval[0]:+.3f}, {rate.interval[1]:+.3f}]")


if __name__ == "__main__":
    main()
