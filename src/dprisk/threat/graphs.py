"""Distances on graphs, block by block so that memory stays small."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy

from dprisk.errors import ThreatError, as_number
from dprisk.types import AnyArray, FloatArray

BLOCK_CELLS = 1 << 22


def adjacency(graph: Any, weight: str | None = None, nodes: Sequence[Any] | None = None) -> Any:
    """A sparse matrix of edge lengths (1 for a hop, without `weight`) from a networkx graph or a square matrix.

    `nodes` is the order of the rows: every node of the graph, once.
    """
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        return _of_networkx(graph, weight, nodes)
    ThreatError.unless(weight is None, "`weight` names an edge attribute of a networkx graph; a matrix has none.")
    try:
        edges = scipy.sparse.csr_array(graph, dtype=float)
    except (TypeError, ValueError):
        raise ThreatError("A graph is a networkx graph or an adjacency matrix.") from None
    if not (edges.ndim == 2 and edges.shape[0] == edges.shape[1] and edges.shape[0] > 0):
        raise ThreatError(f"An adjacency matrix is square, got shape {edges.shape}.")
    ThreatError.unless(edges.nnz == 0 or edges.data.min() >= 0, "Edge lengths must be at least 0.")
    return edges


def _of_networkx(graph: Any, weight: str | None, nodes: Sequence[Any] | None) -> Any:
    order = list(graph.nodes) if nodes is None else list(nodes)
    place = {node: number for number, node in enumerate(order)}
    ThreatError.unless(
        len(place) == len(order) > 0 and set(place) == set(graph.nodes),
        "The records must be the nodes of the graph, each once: ways through the others would be lost.",
    )
    shortest: dict[tuple[int, int], float] = {}
    for start, end, data in graph.edges(data=True):
        if weight is not None and weight not in data:
            raise ThreatError(f"The edge from {start!r} to {end!r} has no {weight!r}; give every edge its length.")
        length = 1.0 if weight is None else as_number(f"The {weight} of an edge", data[weight])
        ThreatError.unless(length >= 0, f"The {weight} of an edge must be at least 0, got {length:g}.")
        for way in ((place[start], place[end]), (place[end], place[start]))[: 1 if graph.is_directed() else 2]:
            shortest[way] = min(length, shortest.get(way, length))  # of parallel edges the shortest counts
    rows, columns = np.array(list(shortest)).T if shortest else np.zeros((2, 0), dtype=int)
    entries = (list(shortest.values()), (rows, columns))
    return scipy.sparse.csr_array(entries, shape=(len(order), len(order)), dtype=float)


def distances(edges: Any, limit: float = np.inf) -> Iterator[tuple[int, FloatArray]]:
    """Rows of the distance matrix in blocks: (first row, block), with inf beyond the limit."""
    hops = bool(np.all(edges.data == 1))
    step = max(1, BLOCK_CELLS // edges.shape[0])
    for start in range(0, edges.shape[0], step):
        rows = np.arange(start, min(start + step, edges.shape[0]))
        yield start, scipy.sparse.csgraph.dijkstra(edges, indices=rows, limit=limit, unweighted=hops)


def within(edges: Any, eta: float) -> Any:
    """A sparse 0/1 matrix: which nodes lie within eta of which."""
    limit = eta * (1 + 1e-12)
    blocks = [scipy.sparse.csr_array(block <= limit) for _, block in distances(edges, limit)]
    return scipy.sparse.vstack(blocks, format="csr")


def distance_matrix(edges: Any) -> AnyArray:
    """All distances (hops in single precision, which holds them exactly). Every node must reach every other."""
    full = np.empty(edges.shape, dtype=np.float32 if np.all(edges.data == 1) else np.float64)
    for start, block in distances(edges):
        full[start : start + len(block)] = block
    ThreatError.unless(
        np.all(np.isfinite(full)),
        "Some nodes cannot be reached from others, so their distance is infinite; keep one connected component "
        "(in a directed graph: use it undirected).",
    )
    return full
