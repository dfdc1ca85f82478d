"""Outputs whose entries go by a key, not by a place: dicts with other names each time, rows with an id in any order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dprisk.auditing.evidence.layouts import SAMPLE, Layout
from dprisk.auditing.evidence.numbers import leaves
from dprisk.auditing.evidence.table_rows import WIDEST, is_record, json_in
from dprisk.types import AnyArray, FloatArray

MOST_COLUMNS, MOST_KEYS = 256, 64  # entries, and keys, that are looked at
OFTEN = 0.05  # of the outputs that a key should be in
NEARLY_ALL = 0.9  # of the outputs in which each key should be in one row alone

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Keyed(Layout):
    """How outputs are taken apart that are rows, each so many entries and at one place among them a key.

    There is a column for each other entry of the row with each key; not a number where no row has that key, or several
    have. Where keys come and go, another one says how many have it. `fields` are the names of the entries, if any.
    """

    keys: tuple[Any, ...] = ()
    width: int = 2
    place: int = 0
    fields: tuple[str, ...] = ()
    come_and_go: bool = False

    by_place: ClassVar[bool] = False

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        named = [f"{name!r}" for name in self.fields] or [f"entry {place + 1}" for place in range(self.width)]
        mine = named.pop(self.place)
        is_dict = self.width == 2 and not self.fields
        found: list[str] = []
        for key in map(repr, self.keys):
            if self.come_and_go:
                rows = f"entries of {key}" if is_dict else f"rows whose {mine} is {key}"
                found.append(f"the number of {rows}")
            found += (
                [f"the entry of {key}"] if is_dict else [f"{name} of the row whose {mine} is {key}" for name in named]
            )
        return found

    def columns(self, outputs: AnyArray) -> FloatArray:
        return super().columns(np.fromiter(outputs.tolist(), dtype=object, count=len(outputs)))

    def entries_in(self, output: Any) -> tuple[Any, ...]:
        """What stands in the columns; nothing of outputs that are no such rows."""
        rows, fields = _rows_of(output.tolist() if isinstance(output, np.ndarray) else output)
        if rows is None or (rows and (len(rows[0]), fields) != (self.width, self.fields)):
            return ()
        shown = [row[self.place] for row in rows]
        with_key = dict(zip(shown, rows, strict=True))
        times = Counter(shown) if len(with_key) < len(rows) else dict.fromkeys(shown, 1)
        found: list[Any] = []
        for key in self.keys:
            count = times.get(key, 0)
            found += [count] * self.come_and_go
            found += _without(with_key[key], self.place) if count == 1 else (math.nan,) * (self.width - 1)
        return tuple(found)


def keyed_layout_of(outputs: AnyArray) -> Keyed | None:
    """How most outputs are taken apart by a key; None where they have none, or the same keys in the same order."""
    if outputs.dtype.kind != "O" and not (outputs.ndim == 3 and 1 < outputs.shape[2] <= WIDEST):
        return None
    some = list(map(_rows_of, outputs[:SAMPLE].tolist()))
    kinds = Counter((len(rows[0]), fields) for rows, fields in some if rows)
    if not kinds:
        return None
    (width, fields), count = kinds.most_common(1)[0]
    empty = sum(rows == [] for rows, _ in some)
    tables = [rows for rows, names in some if rows and (len(rows[0]), names) == (width, fields)]
    place = _place_of_key(tables, width) if 2 * (count + empty) > len(some) else None
    return None if place is None else _by_key([[row[place] for row in rows] for rows in tables], width, place, fields)


def _place_of_key(tables: list[list[Row]], width: int) -> int | None:
    """The first place in the rows where nearly every table has keys, each once."""
    for place in range(width):
        if sum(_are_keys([row[place] for row in rows]) for rows in tables) > NEARLY_ALL * len(tables):
            return place
    return None


def _by_key(shown: list[list[Any]], width: int, place: int, fields: tuple[str, ...]) -> Keyed | None:
    """The layout of outputs that show these keys at this place; of the keys that come again and again."""
    times = Counter(key for keys in shown for key in keys if _is_key(key))
    most = min(MOST_KEYS, MOST_COLUMNS // width)
    often = [key for key, count in times.most_common(most) if count > max(1, OFTEN * len(shown))]
    keys = tuple(sorted((int(key) if type(key) is float else key for key in often), key=repr))
    if not keys or all(row == shown[0] for row in shown):
        return None
    come_and_go = any(set(keys).difference(row) for row in shown)
    return Keyed(len(keys) * (width - 1 + come_and_go), (), keys, width, place, fields, come_and_go)


def _are_keys(values: Sequence[Any]) -> bool:
    """Whether all of them can be keys, each once."""
    return all(map(_is_key, values)) and len(set(values)) == len(values)


def _is_key(value: Any) -> bool:
    """Whether it is a text or a whole number, also as a float, or a tuple of these."""
    if type(value) is float:
        return value.is_integer()
    if type(value) is tuple:
        return all(type(entry) in (str, int) for entry in value)
    return type(value) in (str, int)


def _rows_of(output: Any) -> tuple[list[Row] | None, tuple[str, ...]]:
    """The rows of an output, all of one width, and the names of their entries; None where it has none.

    These are dicts with the same names each, or what is in rows at any depth, the key first where it is a tuple.
    """
    entries = _entries_of(output)
    if entries is None:
        return None, ()
    fields: set[tuple[str, ...]] = set()
    if all(type(entry) is tuple and is_record(entry) for entry in entries):
        fields = {tuple(name for name, _ in entry) for entry in entries}
        rows = [tuple(value for _, value in entry) for entry in entries]
    else:
        rows = [(entry[0], *leaves(tuple(entry[1:]))) for entry in entries]
    widths = set(map(len, rows)) or {0}
    return (rows, next(iter(fields), ())) if len(widths) == 1 >= len(fields) and max(widths) <= WIDEST else (None, ())


def _entries_of(output: Any) -> Sequence[Any] | None:
    """What an output holds that is a list, a set, or JSON that says one, if all of it is lists of several entries.

    The labels behind a data frame are left out.
    """
    value = json_in(output) if isinstance(output, str) else tuple(output) if isinstance(output, frozenset) else output
    if not isinstance(value, tuple | list):
        return None
    entries = value[:-1] if len(value) > 1 and type(value[-1]) is str else value
    return entries if all(isinstance(entry, tuple | list) and len(entry) > 1 for entry in entries) else None


def _without(row: Row, place: int) -> Row:
    return row[:place] + row[place + 1 :]
