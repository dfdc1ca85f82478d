"""A mechanism of another library, as a function of one record, with what the library says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dprisk.guarantees import Guarantee

OneRecord = Callable[[Any], Any]
MOST_PAIRS = 10_000  # of vectors whose distances are computed


@runtime_checkable
class Seeded(Protocol):
    """Code that is built anew, with another seed, for each block of runs."""

    def seeded(self, seed: int) -> OneRecord:
        """The function of one record for a block with this seed."""


@dataclass(frozen=True)
class Adapted:
    """A mechanism of another library, as a function of one record.

    `for_block(seed)` is that function for a block of runs; by default `call`, which draws from global randomness.
    `records` are the records that the library itself names, `claim` is what it promises of every pair of them, both
    None if it does not say.
    """

    name: str
    library: str
    call: OneRecord
    records: tuple[Any, ...] | None = None
    claim: Guarantee | None = None
    reproducible: bool = True
    note: str = ""

    def for_block(self, seed: int) -> OneRecord:
        """The function of one record to run in a block with this seed."""
        call = self.call
        return call.seeded(seed) if isinstance(call, Seeded) else call


def span(records: Sequence[Any] | None) -> float | None:
    """How far apart two of the records can be, None if they are no numbers."""
    numeric = records and all(isinstance(entry, int | float) for entry in records)
    return max(records) - min(records) if records and numeric else None


def widest(records: Sequence[Any] | None, distance: Callable[[Any], float]) -> float | None:
    """The largest distance of two records that are lists of as many numbers, by their difference; None of others."""
    if not records or len(records) * (len(records) - 1) > 2 * MOST_PAIRS:
        return None
    try:
        rows = np.asarray(records, dtype=float)
    except (TypeError, ValueError):
        return None
    if rows.ndim != 2:
        return None
    return max((float(distance(one - two)) for one, two in combinations(rows, 2)), default=0.0)
