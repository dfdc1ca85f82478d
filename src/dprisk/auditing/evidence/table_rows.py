"""Rows of tables as units: one tells more than its entries do, wherever it stands, as in a shuffled synthetic table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import as_objects
from dprisk.auditing.evidence.places import NOTHING, counted
from dprisk.auditing.evidence.views import Seen, Value, View
from dprisk.types import AnyArray, IntArray

WIDEST = 16  # entries of a row that is looked at as a whole
MOST_TELLING = 16  # rows that are looked for
PLAIN = (float, int, str, bool, type(None))
FEWEST_TRIED, MOST_TRIED, MOST_CELLS = 500, 5000, 1 << 20  # tables by which it is decided which, the fewer the larger


class Rows(View):
    """The first of some rows that a table of numbers holds, those that tell most before others."""

    is_fixed = False

    def __init__(self, rows: AnyArray) -> None:
        self.rows, self._known = rows, Value().tokens(Seen(rows))

    def tokens(self, seen: Seen) -> IntArray:
        found = np.full(len(seen), NOTHING)
        if is_table(seen.outputs) and _alike(seen.outputs, self.rows):
            tokens = _row_tokens(seen.outputs)
            for place in range(self._known.size - 1, -1, -1):
                found[(tokens == self._known[place]).any(axis=1)] = place
        return found

    def words(self, token: int, example: Any) -> str:
        *before, mine = [str(tuple(row)) for row in self.rows[: token + 1].tolist()]
        return f"the output holds the row {mine}{' and none of ' * bool(before)}{', '.join(before)}"


def telling_rows(outputs: AnyArray, records: IntArray) -> Rows:
    """The rows that tell most of some record where any row of a table may be one of them; from the first tables."""
    count = min(MOST_TRIED, max(FEWEST_TRIED, MOST_CELLS // outputs[0].size))
    some = outputs[:count]
    tokens = _row_tokens(some)
    known, _, top, rest = counted(tokens.ravel(), np.repeat(records[:count], tokens.shape[1]))
    evidence = top * np.log((top + 0.5) / (rest + 0.5))
    best = known[np.argsort(-evidence, kind="stable")[:MOST_TELLING]]
    every, first = np.unique(tokens, return_index=True)
    return Rows(some.reshape(-1, some.shape[2])[first[np.searchsorted(every, best)]])


def is_table(outputs: AnyArray) -> bool:
    """Whether each output is a table of numbers with several rows, which are not too wide."""
    return outputs.dtype.kind in "biuf" and outputs.ndim == 3 and outputs.shape[1] > 1 < outputs.shape[2] <= WIDEST


def _alike(outputs: AnyArray, rows: AnyArray) -> bool:
    return outputs.dtype.kind == rows.dtype.kind and outputs.shape[2] == rows.shape[1]


def _row_tokens(tables: AnyArray) -> IntArray:
    """A token for each row of each table, tables x rows."""
    count, rows, width = tables.shape
    return Value().tokens(Seen(tables.reshape(count * rows, width))).reshape(count, rows)


def leaves_and_rows(value: tuple[Any, ...]) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """What is in a tuple at any depth, and the tuples in it that hold few entries, more than one; no fields of a dict.

    Sets in them would be written in another order by another process, so these hold none.
    """
    held: list[Any] = []
    rows: list[tuple[Any, ...]] = []
    no_fields = None  # found out where it matters
    for entry in value:
        if type(entry) is not tuple:
            held.append(entry)
            continue
        if len(entry) == 2 and type(entry[0]) is str and type(entry[1]) in PLAIN:
            no_fields = not is_record(value) if no_fields is None else no_fields
            rows += [entry] * no_fields
            held += entry
            continue
        more, inner = leaves_and_rows(entry)
        if 1 < len(more) <= WIDEST and frozenset not in map(type, more):
            rows.append(entry)
        held += more
        rows += inner
    return held, rows


def is_record(value: tuple[Any, ...]) -> bool:
    """Whether these are pairs of a name and something, each name once, as a dict becomes."""
    if set(map(type, value)) != {tuple}:
        return False
    try:
        named = dict(value)
    except ValueError:  # no pairs
        return False
    return len(named) == len(value) and set(map(type, named)) == {str}


def json_in(text: str) -> Any:
    """What a text says that is a list or an object of JSON, as outputs are; None of others."""
    if text[:1] not in ("[", "{"):
        return None
    try:
        return as_objects([json.loads(text)])[0]
    except (ValueError, RecursionError):
        return None
