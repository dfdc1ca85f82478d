"""Extraction from language models: the table behind Figure 3 of Swanberg et al.

    [DPRISK_DATA=folder] python -m benchmarks.language_models [--runs N] [--device cuda]

A row is one prior, epsilon and network: success of the three attackers with the half-width of a 95 % interval, and the
bounds on any attacker by the Gaussian noise and by (epsilon, delta) alone. PINs and surnames are the ten commonest of
the frequency files in DPRISK_DATA, if it is set.
"""

import argparse
import csv
import gzip
import math
import os
from pathlib import Path

from dprisk import Prior
from dprisk.population.extraction import extract

EPSILONS = (1, 3, 5, 10, 20)
COUNTED = {
    "PINs": ("pin4_counts.csv.gz", "leak_count"),
    "surnames": ("us_census1990_surnames.csv.gz", "percent"),
}


def priors(folder: str | None) -> dict[str, Prior]:
    found = {"uniform": Prior.uniform(10), "Zipf 1.1": Prior.zipf(10, 1.1), "Zipf 1.2": Prior.zipf(10, 1.2)}
    for name, (file, column) in COUNTED.items() if folder is not None else ():
        with gzip.open(Path(folder or "") / "secret-frequency" / file, "rt") as lines:
            counts = sorted((float(row[column]) for row in csv.DictReader(lines)), reverse=True)
        found[name] = Prior.from_counts(counts[:10])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    print(f"{'prior':9s} {'epsilon':>7s} {'hidden':>6s}  prior  model  times   ours       most   by pair")
    for name, prior in priors(os.environ.get("DPRISK_DATA")).items():
        for hidden in ((), (32,)):
            for epsilon in EPSILONS:
                found = extract(
                    prior, epsilon, runs=asked.runs, practice=asked.runs, hidden=hidden, device=asked.device
                )
                said = found.numbers
                shares = "  ".join(f"{said[key]:.3f}" for key in ("baseline", "by_model", "times_prior", "prior_aware"))
                half = 1.96 * math.sqrt(said["prior_aware"] * (1 - said["prior_aware"]) / asked.runs)
                bounds = f"{found.most:.3f}  {found.most_by_pair:.3f}"
                print(
                    f"{name:9s} {epsilon:7g} {hidden[0] if hidden else 0:6d}  {shares} +-{half:.3f}  {bounds}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
