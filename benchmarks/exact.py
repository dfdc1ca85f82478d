"""How fast the exact optimum is, as ratios against what the same machine does in the same run.

    python benchmarks/exact.py [--porto FOLDER]

1. The set family at a million records (limit: one second each).
2. The exponential mechanism on a road graph, every ball from 0 to 10 hops, against one dense matrix product a radius.
3. Posterior Bayes vulnerability of a dense 2000 x 2000 channel, against libqif (`pip install qif`).
4. Attribute inference behind a noisy histogram, against the likelihood of every record in every coordinate.

FOLDER holds `road_nodes_visits.csv.gz` and `road_edges.csv.gz` of the Porto road graph; without it a grid of the same
size stands in.
"""

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dprisk import (
    GRR,
    OLH,
    OUE,
    Exponential,
    GaussianDP,
    Matrix,
    Prior,
    PureDP,
    SubsetSelection,
    Threat,
    assess,
    exact,
    release,
)
from dprisk.csv_files import read_csv
from dprisk.mechanisms import OnAttribute
from dprisk.releases import Histogram
from dprisk.threat import Graph
from dprisk.threat.graphs import adjacency, within


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The best of a few runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def family(size: int = 1_000_000, limit: float = 1.0) -> None:
    print(f"\n1. One closed form for the set family: m = {size:,}, zipf(1.1) prior, two knowledge groups")
    rng = np.random.default_rng(1)
    prior = Prior(rng.permutation(Prior.zipf(size, 1.1).weights))
    threat = Threat(prior, rng.integers(2, size=size))
    for mechanism in (GRR(size, 4.0), OUE(size, 4.0), SubsetSelection(size, 4.0), OLH(size, 4.0)):
        took = seconds(partial(exact.solve, mechanism, threat))
        name = type(mechanism).__name__
        print(f"   {name:16} {took:6.3f} s   {took / limit:5.2f} of the limit", "" if took <= limit else "TOO SLOW")


def porto(folder: Path | None) -> tuple[Any, Prior]:
    if folder is None:
        import networkx as nx

        graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(70, 74))
        return adjacency(graph), Prior.zipf(70 * 74, 0.8)
    nodes, edges = read_csv(folder / "road_nodes_visits.csv.gz"), read_csv(folder / "road_edges.csv.gz")
    u, v = (np.array(edges[name], dtype=int) for name in ("u", "v"))
    one_way = sparse.coo_array((np.ones(u.size), (u, v)), shape=(len(nodes["node"]),) * 2).tocsr()
    roads = ((one_way + one_way.T) > 0).astype(float)
    return adjacency(roads), Prior.from_counts(np.array(nodes["gps_points"], dtype=float) + 1)


def graph(folder: Path | None) -> None:
    roads, prior = porto(folder)
    mechanism = Exponential.on_graph(roads, epsilon=20.0)
    print(f"\n2. Exponential mechanism on a graph of {prior.size:,} nodes, every ball from 0 to 10 hops")
    took, best = [], []
    for eta in range(11):
        start = time.perf_counter()
        best.append(exact.solve(mechanism, Threat(prior, success=Graph(eta, roads))))
        took.append(time.perf_counter() - start)
    print(f"   peak memory so far {peak_megabytes():.0f} MB")
    dense, ball = mechanism.matrix(), within(roads, 5).toarray().astype(float)
    product = seconds(lambda: ball @ dense, 1)
    print(f"   one dense {prior.size} x {prior.size} product: {product:.2f} s")
    for eta, (seconds_taken, optimum) in enumerate(zip(took, best, strict=True)):
        print(
            f"   eta = {eta:2}: RAD {optimum.advantage:.6f}  ReRo {optimum.success:.6f}   {seconds_taken:5.2f} s"
            f"   {seconds_taken / product:4.2f} products"
        )
    print(f"   all of them: {sum(took):.1f} s, {sum(took) / (11 * product):.2f} of one product a radius (limit 3)")


def vulnerability(size: int = 2000) -> None:
    import qif

    rng = np.random.default_rng(2)
    channel, prior = rng.dirichlet(np.ones(size), size=size), rng.dirichlet(np.ones(size))
    threat, mechanism = Threat(Prior(prior)), Matrix(channel)
    theirs = qif.measure.bayes_vuln.posterior(prior, channel)
    ours = exact.enumerate_success(mechanism, threat)
    their_time = seconds(lambda: qif.measure.bayes_vuln.posterior(prior, channel), 20)
    our_time = seconds(lambda: exact.enumerate_success(mechanism, threat), 20)
    print(f"\n3. Posterior Bayes vulnerability, dense {size} x {size} channel")
    print(f"   libqif {their_time * 1e3:7.2f} ms   dprisk {our_time * 1e3:7.2f} ms   ratio {our_time / their_time:.2f}")
    print(f"   values differ by {abs(ours - theirs):.1e}")


def attributes(cells: int = 100, groups: int = 120, runs: int = 4000, limit: float = 0.2) -> None:
    """Everybody has a group that the attacker knows and a cell that it wants; the cells' counts are published."""
    rng = np.random.default_rng(3)
    people = {"group": rng.integers(groups, size=60_000).tolist(), "cell": (rng.zipf(1.3, 60_000) % cells).tolist()}
    threat = Threat.attributes(people, known=["group"], secret=["cell"])
    pi, reach = threat.prior.weights, threat.reach
    mass = reach.sums(pi[:, None])
    print(f"\n4. A histogram of {cells} cells, {threat.prior.size:,} records in {groups} known groups, {runs} outputs")

    def every_record(mechanism: Any) -> float:
        """Outputs drawn, the likelihood of each record for each, and the largest gain in each group."""
        gained = 0.0
        for _ in range(runs // 200):
            outputs = mechanism.sample(rng.choice(pi.size, size=200, p=pi), rng)
            after = reach.sums(exact.beliefs(mechanism.log_likelihood(outputs), pi))
            gained += float(np.maximum.reduceat(after - mass, reach.starts, axis=0).sum())
        return gained / runs

    for guarantee in (PureDP(1.0), GaussianDP(1.0)):
        mechanism = release(Histogram("cell"), people, threat.table, guarantee)
        start = time.perf_counter()
        risk = assess(mechanism, threat, runs=runs)
        middle = time.perf_counter()
        before = every_record(mechanism)
        end = time.perf_counter()
        ratio = (middle - start) / (end - middle)
        print(
            f"   {type(mechanism).__name__:14} {middle - start:5.2f} s, every record {end - middle:5.2f} s   ratio "
            f"{ratio:.2f} of at most {limit}",
            "" if ratio <= limit else "TOO SLOW",
            f"  RAD {risk.advantage:.4f}, {before:.4f}",
        )
    column = OnAttribute(OUE(cells, 1.0), [label[1] for label in threat.prior.labels or ()])
    whole = Threat.attributes(people, known=[], secret=["cell"])
    took = seconds(lambda: exact.solve(column, whole))
    alone = Threat(Prior.from_column(people["cell"], labels=range(cells)))
    apart = exact.solve(column, whole).advantage - exact.solve(OUE(cells, 1.0), alone).advantage
    print(f"   one column by unary encoding, exactly: {took:.3f} s, {abs(apart):.1e} from the column alone")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--porto", type=Path, default=None)
    folder = parser.parse_args().porto
    family()
    print(f"   peak memory so far {peak_megabytes():.0f} MB")
    graph(folder)
    attributes()
    vulnerability()


if __name__ == "__main__":
    main()
