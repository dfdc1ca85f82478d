"""Distances on graphs, block by block so that memory stays small."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dprisk.errors import ThreatError, require
from dprisk.types import AnyArray, FloatArray

BLOCK_CELLS = 1 << 22


def adjacency(graph: Any, weight: str | None = None, nodes: Sequence[Any] | None = None) -> Any:
    """A sparse matrix of edge lengths (1 a hop without `weight`) from a networkx graph or a square matrix."""
    from scipy import sparse

    if hasattr(graph, "nodes"):
        import networkx as nx

        order = list(graph.nodes) if nodes is None else list(nodes)
        missing = [node for node in order if node not in graph]
        require(not missing, f"The graph has no node {missing[:1]}; its nodes must be the records.", ThreatError)
        edges = sparse.csr_array(nx.to_scipy_sparse_array(graph, order, weight=weight, dtype=float, format="csr"))
    else:
        require(weight is None, "`weight` names an edge attribute of a networkx graph; a matrix has none.", ThreatError)
        edges = sparse.csr_array(graph, dtype=float)
        require(edges.shape[0] == edges.shape[1], f"An adjacency matrix is square, got {edges.shape}.", ThreatError)
    require(edges.nnz == 0 or bool(edges.data.min() >= 0), "Edge lengths must be at least 0.", ThreatError)
    if weight is None and hasattr(graph, "nodes"):
        edges.data[:] = 1.0
    return edges


def distances(edges: Any, limit: float = np.inf) -> Iterator[tuple[int, FloatArray]]:
    """Rows of the distance matrix in blocks: (first row, block), with inf beyond the limit."""
    from scipy.sparse.csgraph import dijkstra

    hops = bool(np.all(edges.data == 1))
    step = max(1, BLOCK_CELLS // edges.shape[0])
    for start in range(0, edges.shape[0], step):
        rows = np.arange(start, min(start + step, edges.shape[0]))
        yield start, dijkstra(edges, indices=rows, limit=limit, unweighted=hops)


def within(edges: Any, eta: float) -> Any:
    """A sparse 0/1 matrix: which nodes lie within eta of which."""
    from scipy import sparse

    limit = eta * (1 + 1e-12)
    blocks = [sparse.csr_array(block <= limit) for _, block in distances(edges, limit)]
    return sparse.vstack(blocks, format="csr")


def distance_matrix(edges: Any) -> AnyArray:
    """All distances (hops in single precision, which holds them exactly). Every node must reach every other."""
    full = np.empty(edges.shape, dtype=np.float32 if np.all(edges.data == 1) else np.float64)
    for start, block in distances(edges):
        full[start : start + len(block)] = block
    require(
        bool(np.all(np.isfinite(full))),
        "Some nodes cannot be reached from others, so their distance is infinite; keep one connected component "
        "(in a directed graph: use it undirected).",
        ThreatError,
    )
    return full
