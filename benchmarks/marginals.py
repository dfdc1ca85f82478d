"""Tables from noisy marginals: the tables behind Figures 4 to 7 of Swanberg et al., on the data sets of DPRISK_DATA.

    DPRISK_DATA=folder python -m benchmarks.marginals [--runs N] [--seed N] [--only 4 5 6 7]

A row is one release: mean numbers of records right of 100 by the prior alone, the relaxed projection and the
prior-aware attack, our attack's lead over the published one with its standard error (tables are paired), the bounds at
5, 50 and 95 % from (epsilon, delta) as in the paper and from the Gaussian noise, means over tables, and in how many
tables an attack got more right than the 95 % bound of that table (5 % would be no surprise).
"""

import argparse
import math
import os
import time
from collections.abc import Sequence

import numpy as np

from dprisk.datasets import CodedTable, acs16, sf_fire
from dprisk.population.networks import Network
from dprisk.population.rebuilding import Rebuilt, rebuild

FOLDERS = {"ACS": (acs16, "acs-2018-folktables"), "FIRE": (sf_fire, "sf-fire")}
EPSILONS = (1, 3, 5, 10, 20, 50, 500)
APPROXIMATE = {"ACS": ("AGEP", (0, 1, 2, 3)), "FIRE": ("Zipcode of Incident", (0, 1, 2, 5, 10))}
VARIED = {"ACS": "SCHL", "FIRE": "ALS Unit"}
KNOWN = 3  # columns that the attacker always knows in Figure 6


def row(name: str, found: Rebuilt, seconds: float) -> str:
    aware = np.array([tally.aware for tally in found.tallies])
    relaxed = found.relaxed_by_table
    lead, error = (aware - relaxed).mean(), (aware - relaxed).std(ddof=1) / math.sqrt(found.runs)
    by_pair, most = found.most_by_table_and_pair, found.most_by_table
    best = [max(*tally.relaxed, tally.aware, tally.prior) for tally in found.tallies]
    broken = int((np.array(best) > most[:, -1]).sum())
    bounds = "  ".join(
        " ".join(f"{value:3.0f}" for value in values) for values in (by_pair.mean(axis=0), most.mean(axis=0))
    )
    right = f"{found.prior_alone:5.1f} {found.relaxed_projection:5.1f} {found.prior_aware:5.1f}"
    return f"{name:34s} {right}  {lead:+5.1f} +-{error:3.1f}  {bounds}  {broken:2d} of {found.runs}  {seconds:4.0f} s"


def figure(number: int, source: str, table: CodedTable, law: Network, runs: int, seed: int) -> None:
    print(f"\nFigure {number}, {source}")
    print(f"{'':34s} prior relax  ours  lead          pair 5/50/95  Gaussian      broken")
    for name, secret, epsilon, within in cases(number, source, table, law):
        began = time.perf_counter()
        tables = max(3, runs // 3) if len(secret) > 3 or epsilon > 3 else runs  # these take several times as long
        found = rebuild(table, secret, epsilon, prior=law, within=within, runs=tables, seed=seed)
        print(row(name, found, time.perf_counter() - began), flush=True)


def cases(number: int, source: str, table: CodedTable, law: Network) -> list[tuple[str, Sequence[str], float, float]]:
    if number == 4:
        return [(name, [name], 1, 0) for name in table.names]
    if number == 5:
        return [(f"{VARIED[source]}, epsilon {epsilon}", [VARIED[source]], epsilon, 0) for epsilon in EPSILONS]
    if number == 6:
        visited = [table.names[column] for column in law.order][KNOWN:]
        return [(f"{count} columns", visited[:count], 3, 0) for count in range(1, len(visited) + 1, 2)]
    name, errors = APPROXIMATE[source]
    return [(f"{name} within {error}", [name], 1, error) for error in errors]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="another one draws other tables")
    parser.add_argument("--only", type=int, nargs="*", default=[4, 5, 6, 7])
    parser.add_argument("--source", nargs="*", default=list(FOLDERS))
    asked = parser.parse_args()
    folder = os.environ.get("DPRISK_DATA")
    if folder is None:
        parser.error("set DPRISK_DATA to the folder of the data sets")
    for source in asked.source:
        load, inner = FOLDERS[source]
        table = load(os.path.join(folder, inner))
        law = Network.fit(table.rows, table.sizes)
        for number in asked.only:
            figure(number, source, table, law, asked.runs, asked.seed)


if __name__ == "__main__":
    main()
