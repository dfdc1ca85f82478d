"""How often records showed each token, counted fast enough to be done again and again."""

from __future__ import annotations

import numpy as np

from dprisk.auditing.evidence.places import FEW_TOKENS
from dprisk.auditing.evidence.views import NOTHING
from dprisk.types import IntArray

MOST_CELLS = 1 << 20  # tokens times records that are counted in a table

Counted = tuple[IntArray, IntArray, IntArray, IntArray]


def counted(tokens: IntArray, records: IntArray) -> Counted:
    """Tokens seen at least twice, the record that showed each most often, how often, and how often others did."""
    there = np.bincount(records) > 0
    some, codes = np.flatnonzero(there), (np.cumsum(there) - 1)[records]
    known, place, which = _grouped(tokens)
    codes = codes if which is None else codes[which]
    if known.size * some.size <= MOST_CELLS:
        table = np.bincount(place * some.size + codes, minlength=known.size * some.size)
        table = table.reshape(known.size, some.size)
        top, total, named = table.max(axis=1, initial=0), table.sum(axis=1), some[table.argmax(axis=1)]
    else:
        cells, times = np.unique(place * some.size + codes, return_counts=True)
        owner, who = np.divmod(cells, some.size)
        order = np.lexsort((-times, owner))
        first = order[np.flatnonzero(np.diff(owner[order], prepend=-1))]
        known, total = known[owner[first]], np.bincount(owner, weights=times).astype(np.int64)[owner[first]]
        named, top = some[who[first]], times[first]
    again = total >= 2
    return known[again], named[again], top[again], (total - top)[again]


def _grouped(tokens: IntArray) -> tuple[IntArray, IntArray, IntArray | None]:
    """Tokens in order, the place among them of some outputs, and which outputs these are; None for all.

    Left out are outputs that a view has nothing to say about; and, where tokens are many, those seen once.
    """
    said = None if (tokens != NOTHING).all() else np.flatnonzero(tokens != NOTHING)
    mine = tokens if said is None else tokens[said]
    if mine.size == 0:
        return mine, mine, said
    low, high = int(mine.min()), int(mine.max())
    if high - low < max(FEW_TOKENS, mine.size):
        return low + np.arange(high - low + 1), mine - low, said
    order = np.argsort(mine)
    ordered = mine[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    times = np.diff(np.r_[starts, ordered.size])
    again = times >= 2
    which = order[np.repeat(again, times)]
    place = np.repeat(np.arange(int(again.sum())), times[again])
    return ordered[starts[again]], place, which if said is None else said[which]
