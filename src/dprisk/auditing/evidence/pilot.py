"""Pilot runs, from which an audit learns where to look: made piece by piece, so that they can be kept and told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from dprisk.auditing.code.randomness import kept
from dprisk.auditing.code.target import Target
from dprisk.auditing.evidence.views import joined
from dprisk.types import AnyArray, IntArray

PIECE, MOST = 250, 1000  # runs in the first piece, and in the largest

WatchPilot = Callable[[int, int], None]  # told of the pilot runs made so far, and of those planned by now


class Keeps(Protocol):
    """Where the pieces of a pilot are kept."""

    def pilot(self, number: int, records: IntArray, run: Callable[[], AnyArray]) -> AnyArray:
        """The outputs of a piece for these records: as kept before, or run now and kept."""


class InPieces(Target):
    """A target for pilot runs. Each piece has its own seed, so that pieces that were kept need not be run again."""

    def __init__(self, target: Target, store: Keeps | None, watch: WatchPilot | None) -> None:
        self.name, self.records, self.pairs = target.name, target.records, target.pairs
        self._target, self._store, self._watch = target, store, watch
        self._done = self._pieces = 0

    def sample(self, records: IntArray, rng: np.random.Generator) -> Any:
        """Outputs of the target, those of a piece at a time; of a mechanism, which is quick and the same again, all."""
        if self._target.mechanism is not None:
            return self._target.sample(records, rng)
        parts: list[AnyArray] = []
        made, planned = 0, self._done + records.size
        with kept:
            while not parts or made < records.size:
                some = records[made : made + min(MOST, max(PIECE, self._done))]
                parts.append(self._piece(some, np.random.default_rng(rng.integers(1 << 63))))
                made, self._done, self._pieces = made + some.size, self._done + some.size, self._pieces + 1
                if self._watch is not None:
                    self._watch(self._done, planned)
        return joined(parts)

    def _piece(self, records: IntArray, rng: np.random.Generator) -> Any:
        if self._store is None:
            return self._target.sample(records, rng)
        return self._store.pilot(self._pieces, records, lambda: self._target.sample(records, rng))
