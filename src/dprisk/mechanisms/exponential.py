"""The exponential mechanism over any utility, distance matrix or graph."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, require, require_epsilon, require_size
from dprisk.graphs import adjacency, distance_matrix
from dprisk.mechanisms.tabled import Tabled
from dprisk.types import FloatArray, IntArray


class Exponential(Tabled):
    """Output theta with probability proportional to exp(eps u(z, theta) / (2 sensitivity)).

    `utility` is records x outputs. The sensitivity is the largest difference that replacing the record makes to
    the utility of one output; it is computed unless given. `nominal_epsilon` is the parameter, `epsilon` the
    true one, which is often smaller.
    """

    def __init__(self, utility: npt.ArrayLike, epsilon: float, sensitivity: float | None = None) -> None:
        require_epsilon(epsilon)
        table = np.asarray(utility)
        if table.dtype not in (np.float64, np.float32):
            table = table.astype(float)
        require(
            table.ndim == 2 and table.size > 0,
            f"Utilities are records x outputs, got shape {table.shape}.",
            MechanismError,
        )
        require(bool(np.all(np.isfinite(table))), "Utilities must be finite numbers.", MechanismError)
        needed = float(np.max(table.max(axis=0) - table.min(axis=0)))
        given = needed if sensitivity is None else float(sensitivity)
        require(
            given >= needed * (1 - 1e-12),
            f"The utility changes by up to {needed:g} when the record is replaced, above the sensitivity {given:g}.",
            MechanismError,
        )
        self.size, self.nominal_epsilon, self.sensitivity = table.shape[0], float(epsilon), given
        self._utility = table
        self._rate = epsilon / (2 * given) if given > 0 else 0.0

    @classmethod
    def from_distances(cls, distances: npt.ArrayLike, epsilon: float, sensitivity: float | None = None) -> Exponential:
        """Utility is minus the distance, records x outputs."""
        return cls(-np.asarray(distances), epsilon, sensitivity)

    @classmethod
    def on_line(cls, size: int, epsilon: float) -> Exponential:
        """Records and outputs 0..size-1, utility minus their distance."""
        require_size(size)
        place = np.arange(size)
        return cls.from_distances(np.abs(place[:, None] - place), epsilon)

    @classmethod
    def on_ring(cls, size: int, epsilon: float) -> Exponential:
        """Records and outputs 0..size-1 around a ring, utility minus their distance."""
        require_size(size)
        gap = np.abs(np.arange(size)[:, None] - np.arange(size))
        return cls.from_distances(np.minimum(gap, size - gap), epsilon)

    @classmethod
    def on_graph(
        cls, graph: Any, epsilon: float, weight: str | None = None, sensitivity: float | None = None
    ) -> Exponential:
        """Records and outputs are the nodes of a graph, utility minus their distance, in hops or in an edge weight."""
        return cls.from_distances(distance_matrix(adjacency(graph, weight)), epsilon, sensitivity)

    def with_epsilon(self, epsilon: float) -> Exponential:
        return Exponential(self._utility, epsilon, self.sensitivity)

    @cached_property
    def _log_normaliser(self) -> FloatArray:
        total = np.empty(self.size)
        for record in range(self.size):
            score = self._rate * self._utility[record].astype(float)
            top = score.max()
            total[record] = top + np.log(np.exp(score - top).sum())
        return total

    @property
    def n_outputs(self) -> float:
        return float(self._utility.shape[1])

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        score: FloatArray = self._utility[:, outputs].astype(float)
        score *= self._rate
        score -= self._log_normaliser[:, None]
        np.exp(score, out=score)
        return score

    def row(self, record: int) -> FloatArray:
        score: FloatArray = self._rate * self._utility[record].astype(float) - self._log_normaliser[record]
        return np.exp(score)

    def _parameters(self) -> dict[str, Any]:
        return {"nominal_epsilon": self.nominal_epsilon, "sensitivity": self.sensitivity}
