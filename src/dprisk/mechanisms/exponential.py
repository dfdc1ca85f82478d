"""The exponential mechanism over any utility, distance matrix or graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_number, as_size
from dprisk.guarantees import PureDP
from dprisk.mechanisms.by_epsilon import ByEpsilon
from dprisk.mechanisms.tabled import Tabled
from dprisk.tables import as_floats
from dprisk.threat.graphs import adjacency, distance_matrix
from dprisk.types import AnyArray, FloatArray, IntArray
from dprisk.values import Parameter

Places = slice | IntArray | int


class Exponential(ByEpsilon, Tabled):
    """Output theta with probability proportional to exp(eps u(z, theta) / (2 sensitivity)).

    `utility` is records x outputs. The sensitivity is the largest difference that replacing the record makes to
    the utility of one output; it is computed unless given. `nominal_epsilon` is the parameter, `epsilon` the
    true one, which is often smaller.
    """

    def __init__(self, utility: npt.ArrayLike, epsilon: float, sensitivity: float | None = None) -> None:
        table = np.asarray(utility)
        if table.dtype != np.float32:  # which holds hops on a graph exactly, in half the space
            table = as_floats(utility, "Utilities", MechanismError)
        if not (table.ndim == 2 and table.size > 0):
            raise MechanismError(f"Utilities are records x outputs, got shape {table.shape}.")
        MechanismError.unless(np.all(np.isfinite(table)), "Utilities must be finite numbers.")
        with np.errstate(over="ignore"):
            needed = float(np.max(table.max(axis=0) - table.min(axis=0)))
        self._utility = table
        self._start(table.shape[0], epsilon, needed, sensitivity)

    def _start(self, size: int, epsilon: float, needed: float, sensitivity: float | None) -> None:
        given = needed if sensitivity is None else as_number("sensitivity", sensitivity)
        MechanismError.unless(needed < math.inf and given < math.inf, "Utilities and sensitivity must be finite.")
        if not given >= needed * (1 - 1e-12):
            raise MechanismError(f"The utility changes by up to {needed:g}, above the sensitivity {given:g}.")
        self.size, self.nominal_epsilon, self.sensitivity = size, as_epsilon(epsilon), given
        self._rate = self.nominal_epsilon / (2 * given) if given > 0 else 0.0

    @property
    def parameter(self) -> Parameter:
        """Epsilon. With a large one all records may report the same best output, and be hidden again."""
        return Parameter.epsilon(self.nominal_epsilon, wavers=True)

    def ceiling(self, value: float) -> PureDP:
        return PureDP(value)

    @classmethod
    def from_distances(cls, distances: npt.ArrayLike, epsilon: float, sensitivity: float | None = None) -> Exponential:
        """Utility is minus the distance, records x outputs."""
        table = np.asarray(distances)
        MechanismError.unless(np.all(table >= 0), "Distances must be numbers of at least 0.")
        return Exponential(-table, epsilon, sensitivity)

    @classmethod
    def on_line(cls, size: int, epsilon: float) -> Exponential:
        """Records and outputs 0..size-1, utility minus their distance."""
        return SpacedExponential(size, epsilon, "line")

    @classmethod
    def on_ring(cls, size: int, epsilon: float) -> Exponential:
        """Records and outputs 0..size-1 around a ring, utility minus their distance."""
        return SpacedExponential(size, epsilon, "ring")

    @classmethod
    def on_graph(
        cls,
        graph: Any,
        epsilon: float,
        weight: str | None = None,
        sensitivity: float | None = None,
        nodes: Sequence[Any] | None = None,
    ) -> Exponential:
        """Records and outputs are the nodes of a graph, utility minus their distance, in hops or in an edge weight.

        `nodes` is their order, the prior's labels where it has any; by default that of the graph.
        """
        mechanism = cls.from_distances(distance_matrix(adjacency(graph, weight, nodes)), epsilon, sensitivity)
        if not hasattr(graph, "nodes"):
            return mechanism
        return mechanism.labelled(graph.nodes if nodes is None else nodes)

    def _scores(self, records: Places, outputs: Places) -> AnyArray:
        """u(z, theta) for all records and some outputs, or for one record and all outputs."""
        return np.asarray(self._utility[:, outputs] if isinstance(records, slice) else self._utility[records])

    @cached_property
    def _log_normaliser(self) -> FloatArray:
        total = np.empty(self.size)
        for record in range(self.size):
            score = self._rate * self._scores(record, slice(None)).astype(float)
            top = score.max()
            total[record] = top + np.log(np.exp(score - top).sum())
        return total

    @property
    def n_outputs(self) -> float:
        return float(self._utility.shape[1])

    def _log_columns(self, outputs: slice | IntArray) -> FloatArray:
        score: FloatArray = self._scores(slice(None), outputs).astype(float)
        score *= self._rate
        score -= self._log_normaliser[:, None]
        return score

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        score = self._log_columns(outputs)
        np.exp(score, out=score)
        return score

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        return self._log_columns(self._outputs(outputs)).T

    def row(self, record: int) -> FloatArray:
        score: FloatArray = self._rate * self._scores(record, slice(None)).astype(float)
        return np.asarray(np.exp(score - self._log_normaliser[record]))

    @cached_property
    def epsilon(self) -> float:
        """In logarithms, which do not underflow."""
        blocks = (self._log_columns(slice(at, at + 256)) for at in range(0, int(self.n_outputs), 256))
        return float(max(np.ptp(block, axis=0).max() for block in blocks))


class SpacedExponential(Exponential):
    """The exponential mechanism on equally spaced records, on a line or ring: its utilities take no memory."""

    is_equispaced = True

    def __init__(self, size: int, epsilon: float, space: Literal["line", "ring"]) -> None:
        size = as_size(size)
        self._ring = space == "ring"
        self._start(size, epsilon, float(size // 2 if self._ring else size - 1), None)

    @property
    def n_outputs(self) -> float:
        return float(self.size)

    def _scores(self, records: Places, outputs: Places) -> AnyArray:
        place = np.arange(self.size)
        gap = np.abs(np.atleast_1d(place[records])[:, None] - place[outputs])
        near = np.minimum(gap, self.size - gap) if self._ring else gap
        return np.asarray(-near if isinstance(records, slice) else -near[0])
