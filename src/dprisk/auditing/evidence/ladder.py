"""Between which edges numbers lie: what `np.searchsorted` tells, several times as fast for many edges."""

from __future__ import annotations

import numpy as np

from dprisk.types import FloatArray, IntArray

FEW = 16  # edges up to which bisecting is quick
CELLS = 1 << 13  # of an even grid from the first edge to the last
MOST_STEPS = 4  # edges in one cell beyond which bisecting is quicker


class Ladder:
    """Edges in order, finite and each once.

    An even grid is laid over them. The cell of a number never falls as the number rises, also as floats round it, so
    that edges of lower cells are below it and those of higher ones above. What is left are the edges of its own cell,
    rarely more than one, to compare with one by one.
    """

    def __init__(self, edges: FloatArray) -> None:
        self.edges = edges = np.asarray(edges, dtype=float)
        self._steps = 0
        if edges.size > FEW:
            with np.errstate(over="ignore"):
                self._scale = (CELLS - 1) / (edges[-1] - edges[0])
            times = np.bincount(self._cells(edges), minlength=CELLS + 1)
            self._before = np.cumsum(times) - times
            self._above = np.r_[edges, np.inf]
            self._steps = int(times.max())

    def __len__(self) -> int:
        return self.edges.size

    def places(self, numbers: FloatArray) -> IntArray:
        """How many edges are below each number; of what is not a number, some place."""
        if not 0 < self._steps <= MOST_STEPS:
            return self.edges.searchsorted(numbers)
        place: IntArray = self._before[self._cells(numbers)]
        for _ in range(self._steps):
            place += self._above[place] < numbers
        return place

    def _cells(self, numbers: FloatArray) -> IntArray:
        with np.errstate(over="ignore", invalid="ignore"):
            inside = np.fmin(np.fmax((numbers - self.edges[0]) * self._scale, -1.0), CELLS - 1.0)
        return np.asarray(inside.astype(np.int64) + 1)
