"""Which entries of outputs tell records apart: one, a pair, or a weighted sum of all; and what they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.auditing.evidence.keyed import Keyed
from dprisk.auditing.evidence.layouts import Layout, entries_in, numbers_only
from dprisk.auditing.evidence.numbers import held_number, is_number, names_of_leaves, without_unit
from dprisk.auditing.evidence.places import in_order
from dprisk.auditing.evidence.views import Seen
from dprisk.types import AnyArray, FloatArray, IntArray

TINY = 1e-15  # of a variance, beside which a smaller one is rounding
SUMMED_RUNS = 20_000  # of vectors from which a direction is learned
MOST_SUMMED = 1000  # entries whose covariance is learned
FEWEST_RUNS, MOST_CELLS = 2000, 1 << 21  # by which it is tried how telling the ends of each entry are
NAMED_BY = 100  # outputs that have the same names in the same places


@dataclass(frozen=True)
class Entry:
    """One entry of outputs that are taken apart so; without a layout the output itself, if it is a number."""

    name: str
    place: int = 0
    layout: Layout | None = None

    def column(self, seen: Seen) -> FloatArray:
        """The entry of each output, see `Layout.columns`."""
        if self.layout is not None:
            return seen.column(self.layout, self.place)
        return np.full(len(seen), np.nan) if seen.numbers is None else seen.numbers

    def numbers(self, seen: Seen) -> FloatArray:
        """The same where it is a number."""
        column = self.column(seen)
        return column if seen.outputs.dtype.kind in "biu" else numbers_only(column)

    def of(self, example: Any) -> Any:
        """The entry of one output."""
        return example if self.layout is None else self.layout.pieces(example)[self.place]


WHOLE = Entry("the output")


def _sum(columns: FloatArray) -> FloatArray:
    return np.asarray(columns.sum(axis=0))


def _squares(columns: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray((columns**2).sum(axis=0))


def _largest(columns: FloatArray) -> FloatArray:
    return np.asarray(columns.max(axis=0))


def _smallest(columns: FloatArray) -> FloatArray:
    return np.asarray(columns.min(axis=0))


def _place_of_largest(columns: FloatArray) -> FloatArray:
    return np.asarray(columns.argmax(axis=0) + 1.0)


TOTALS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "the sum of all numbers of the output": _sum,
    "the sum of the squares of all numbers of the output": _squares,
    "the largest number of the output": _largest,
    "the smallest number of the output": _smallest,
    "the place of the largest among the numbers of the output": _place_of_largest,
}
BITS_ON = "the number of entries of the output that are True"


@dataclass(frozen=True)
class Total(Entry):
    """What the numbers of an output come to, by one of `TOTALS`: those in some columns, where all are finite.

    Of those that are True or False it is how many are True.
    """

    places: tuple[int, ...] = ()

    def column(self, seen: Seen) -> FloatArray:
        return self.total(numbers_only(seen.columns(self.layout or Layout(0))))

    def total(self, numbers: FloatArray) -> FloatArray:
        """The same of columns of numbers, to nine decimals; not a number where one is missing."""
        mine = numbers[list(self.places)]
        usual = np.isfinite(mine).all(axis=0)
        return np.where(usual, np.round(TOTALS.get(self.name, _sum)(np.where(usual, mine, 0.0)), 9), np.nan)

    def of(self, example: Any) -> Any:
        pieces = [] if self.layout is None else self.layout.pieces(example)
        numbers = [
            float(piece) if is_number(piece) or isinstance(piece, bool) else held_number(piece) for piece in pieces
        ]
        number = float(self.total(np.array(numbers, dtype=float)[:, None])[0])
        return int(number) if number.is_integer() else number


def entries(outputs: AnyArray, layout: Layout) -> list[Entry]:
    """All columns of outputs, called by their keys, or by the names before them where these are always the same.

    Where some outputs have another number of entries, this is told: nothing is said of those.
    """
    if isinstance(layout, Keyed):
        return [Entry(name, place, layout) for place, name in enumerate(layout.names)]
    plain = _by_place(outputs, layout)
    texts = [f"{piece} {without_unit(plain[text.place].name)}" for text in layout.texts for piece in text.names]
    return plain + [Entry(name, layout.length + place, layout) for place, name in enumerate(texts)]


def _by_place(outputs: AnyArray, layout: Layout) -> list[Entry]:
    """The same without the columns of texts."""
    all_are_usual = outputs.dtype.kind != "O" or all(len(entries_in(output)) == layout.length for output in outputs)
    among = "" if all_are_usual else f" of {layout.length}"
    plain = [Entry(f"entry {place + 1}{among}", place, layout) for place in range(layout.length)]
    if outputs.dtype.kind == "O":
        some = [output for output in outputs[: 2 * NAMED_BY] if len(entries_in(output)) == layout.length][:NAMED_BY]
        names = [set(found) for found in zip(*map(_names, some), strict=True)]
        plain = [
            Entry(name.pop(), entry.place, layout) if len(name) == 1 and all_are_usual else entry
            for entry, name in zip(plain, names, strict=True)
        ]
    return plain


def _names(value: Any, name: str = "") -> Iterator[str]:
    """A name for each of the leaves: what stands before it in a pair, or its number; of a text, the output."""
    if not isinstance(value, tuple):
        yield "the output"
        return
    for place, entry in enumerate(value, start=1):
        here = f"{name}, entry {place}" if name else f"entry {place}"
        if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
            key = f"{name}, {entry[0]!r}" if name else f"{entry[0]!r}"
            yield f"the name {key}"
            yield from _names(entry[1], key) if isinstance(entry[1], tuple) else names_of_leaves(entry[1], key)
        else:
            yield from _names(entry, here) if isinstance(entry, tuple) else names_of_leaves(entry, here)


def shifted(columns: FloatArray, records: IntArray) -> int:
    """The entry whose mean differs most from record to record, beside its spread."""
    known, codes = np.unique(records, return_inverse=True)
    rows = _scaled(columns)
    times = np.maximum(1, np.bincount(codes))
    means = np.array([np.bincount(codes, row, minlength=known.size) / times for row in rows])
    spread = np.array([(row - mean[codes]).std() for row, mean in zip(rows, means, strict=True)])
    return int(np.argmax(np.ptp(means, axis=1) / np.maximum(spread, TINY)))


def _scaled(columns: FloatArray) -> FloatArray:
    """Between -1 and 1, so that nothing overflows; 0 for what is not finite."""
    finite = np.where(np.isfinite(columns), columns, 0.0)
    return np.asarray(finite / np.maximum(np.abs(finite).max(axis=1, keepdims=True), np.finfo(float).tiny))


def correlated(columns: FloatArray, records: IntArray) -> tuple[int, int]:
    """The pair of entries whose correlation differs most between some record and all runs."""
    finite = _scaled(columns)

    def correlations(rows: FloatArray) -> FloatArray:
        centred = rows - rows.mean(axis=1, keepdims=True)
        scaled = centred / np.maximum(np.sqrt((centred**2).sum(axis=1, keepdims=True)), 1e-300)
        return np.asarray(scaled @ scaled.T)

    every = correlations(finite)
    known, times = np.unique(records, return_counts=True)
    apart = [np.abs(correlations(finite[:, records == record]) - every) for record in known[np.argsort(-times)][:4]]
    one, two = np.unravel_index(np.argmax(np.triu(np.max(apart, axis=0), 1)), every.shape)
    return (int(one), int(two)) if one != two else (0, 1)


def shadowed(columns: FloatArray, records: IntArray) -> tuple[int, int]:
    """The entry that differs most from record to record, and the one that shares most of its noise."""
    place = shifted(columns, records)
    known, codes = np.unique(records, return_inverse=True)
    rows = _scaled(columns)
    for code in range(known.size):
        rows[:, codes == code] -= rows[:, codes == code].mean(axis=1, keepdims=True)
    spread = np.maximum(np.sqrt((rows**2).sum(axis=1)), 1e-300)
    shared = np.abs(rows @ rows[place]) / spread
    shared[place] = -1
    return place, int(np.argmax(shared))


def direction_of(columns: FloatArray, records: IntArray, apart_only: bool = False) -> FloatArray:
    """The weights by which the means of two records differ most beside the spread within records (Fisher).

    With `apart_only` entries are weighted as if they were independent, which few runs of long vectors teach already. It
    is all zeros where there are too few runs for more, or too many entries.
    """
    some = columns[:, :SUMMED_RUNS]
    finite = some if np.isfinite(some).all() else np.where(np.isfinite(some), some, 0.0)
    rows, first = _between_ends(finite)
    rows, scale = _between_ends(rows - rows.mean(axis=1, keepdims=True) if rows.size else rows)
    rows, scale = rows.T, first * scale
    known, codes = np.unique(records[:SUMMED_RUNS], return_inverse=True)
    count, size = rows.shape
    if known.size < 2 or size == 0 or (not apart_only and (count < 2 * size or size > MOST_SUMMED)):
        return np.zeros(size)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        direction = _direction(rows, codes, known.size, apart_only) / scale
    return direction if np.isfinite(direction).all() else np.zeros(size)


def _between_ends(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Columns as they are between -1 and 1, and by what they were divided."""
    largest = np.abs(columns).max(axis=1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    return columns / scale[:, None], scale


def _direction(rows: FloatArray, codes: IntArray, records: int, apart_only: bool) -> FloatArray:
    """The same of entries between -1 and 1."""
    means = np.array([rows[codes == code].mean(axis=0) for code in range(records)])
    inside = rows - means[codes]
    if apart_only:
        variance, axes = (inside**2).mean(axis=0), None
    else:
        variance, axes = np.linalg.eigh(inside.T @ inside / len(inside))
    spread = np.maximum(variance, TINY * max(1.0, variance.max()))
    turned = means if axes is None else means @ axes
    one, two = _farthest(turned / np.sqrt(spread))
    weights = (turned[one] - turned[two]) / spread
    direction = weights if axes is None else axes @ weights
    most = np.abs(direction).max()
    return np.asarray(direction / most) if most > 0 else np.zeros_like(direction)


def _farthest(points: FloatArray) -> tuple[int, int]:
    """The two points that are farthest from each other."""
    squares = (points**2).sum(axis=1)
    apart = squares[:, None] + squares - 2 * points @ points.T
    one, two = np.unravel_index(np.argmax(apart), apart.shape)
    return int(one), int(two)


def second_ends(columns: FloatArray, records: IntArray) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """For each column the second record's smallest and largest number, and the records that go beyond them."""
    order = in_order(records)
    known, starts = np.unique(records[order], return_index=True)
    if known.size < 2:
        none = np.full(len(columns), -1)
        return np.full(len(columns), -np.inf), np.full(len(columns), np.inf), none, none
    usual = np.where(np.isfinite(columns), columns, np.nan)[:, order]
    lows = np.nan_to_num(np.fmin.reduceat(usual, starts, axis=1), nan=np.inf)
    highs = np.nan_to_num(np.fmax.reduceat(usual, starts, axis=1), nan=-np.inf)
    low, high = np.argsort(lows, axis=1, kind="stable"), np.argsort(-highs, axis=1, kind="stable")
    second = np.take_along_axis(lows, low, axis=1)[:, 1], np.take_along_axis(highs, high, axis=1)[:, 1]
    return *second, known[low[:, 0]], known[high[:, 0]]


def beyond(columns: FloatArray, records: IntArray) -> int:
    """The entry by whose ends records are told best: ends of one half of some runs, tried on the other."""
    count = max(FEWEST_RUNS, MOST_CELLS // len(columns))
    some, records = columns[:, :count], records[:count]
    half = records.size // 2
    low, high, lowest, highest = second_ends(some[:, :half], records[:half])
    rest, truth = some[:, half:], records[half:]
    below, above = rest < low[:, None], rest > high[:, None]
    right = (below & (truth == lowest[:, None])).sum(axis=1) + (above & (truth == highest[:, None])).sum(axis=1)
    wrong = below.sum(axis=1) + above.sum(axis=1) - right
    return int(np.argmax(right * np.log((right + 0.5) / (wrong + 0.5))))
