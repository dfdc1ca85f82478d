"""Ways of looking that are fitted to earlier outputs.

Numbers are cut at quantiles of earlier ones, alone, in pairs, in tuples, or as a weighted sum. One entry, or what two
come to, may be looked at as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import digests, shown
from dprisk.auditing.evidence.entries import Entry
from dprisk.auditing.evidence.kinds import USUAL, entry_kinds, kind_alone
from dprisk.auditing.evidence.layouts import Layout, numbers_only
from dprisk.auditing.evidence.numbers import is_number, leaves
from dprisk.auditing.evidence.places import NOTHING, Ladder, counted, quantiles
from dprisk.auditing.evidence.views import Form, Seen, Value, View
from dprisk.types import FloatArray, IntArray

PAIRED = 64  # more than there are places in either of a pair
CUT_BY = 20_000  # numbers by whose quantiles others are cut, at least
MANY_BINS, IN_A_BIN = 512, 40  # bins at most, and numbers in one at least
SHOWN_WEIGHTS, TOLD_WEIGHT = 3, 1e-3  # weights that are told, none of them below this share of the largest
MOST_TELLING = 16  # numbers that are looked for among entries
FAR = 10  # times as far from the middle half of the numbers as that is wide


class Bins(View):
    """Numbers cut at quantiles of earlier ones."""

    is_fixed = False

    def __init__(self, numbers: FloatArray, bins: int) -> None:
        some = numbers[:: max(1, numbers.size // CUT_BY)]
        edges = quantiles(some, bins)
        self.edges, self.digits = in_decimals(edges)
        if edges.size < bins - 1 and _parted(some, self.edges) < _parted(some, edges):
            self.edges, self.digits = edges, None  # few numbers, which decimals would not tell apart
        self.whole = bool(np.all(some == np.floor(some)))
        self._ladder = Ladder(self.edges)

    def tokens(self, seen: Seen) -> IntArray:
        return np.full(len(seen), NOTHING) if seen.numbers is None else self.places(seen.numbers)

    def places(self, numbers: FloatArray) -> IntArray:
        """The bin of each number."""
        return np.where(np.isnan(numbers), NOTHING, self._ladder.places(numbers))

    def words(self, token: int, example: Any) -> str:
        return f"the output is {self.range_of(token, example)}"

    def range_of(self, place: int, example: Any) -> str:
        """The numbers of a bin in words; one number where all are whole and the example fills it."""
        low, high = (float(self.edges[edge]) if 0 <= edge < self.edges.size else None for edge in (place - 1, place))
        above, upto = (None if end is None else written(end, self.digits) for end in (low, high))
        if low is None or high is None:
            ends = f"at most {upto}" if high is not None else f"above {above}" if low is not None else "any number"
            return "NaN" if place == NOTHING else ends
        if self.whole and isinstance(example, int | np.integer) and high - low <= 1 and high == example:
            return f"{high:.0f}"
        return f"above {above} and at most {upto}"


def _parted(numbers: FloatArray, edges: FloatArray) -> int:
    """How many bins some numbers are in."""
    return np.unique(edges.searchsorted(numbers)).size


class OneColumn(View):
    """One entry of an output, cut at quantiles of earlier ones."""

    is_fixed = False

    def __init__(self, entry: Entry, column: FloatArray, bins: int) -> None:
        self.entry, self.bins = entry, Bins(column, bins)

    def tokens(self, seen: Seen) -> IntArray:
        return self.bins.places(self.entry.column(seen))

    def words(self, token: int, example: Any) -> str:
        return f"{self.entry.name} is {_entry_words(self.bins, token, self.entry.of(example))}"


class OneValue(View):
    """One entry of an output as it is."""

    is_fixed = False

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def tokens(self, seen: Seen) -> IntArray:
        return as_they_are(self.entry.column(seen))

    def words(self, token: int, example: Any) -> str:
        return f"{self.entry.name} is {shown(self.entry.of(example))}"


class OneKind(View):
    """What kind of thing one entry of an output is, whatever its value."""

    is_fixed = False

    def __init__(self, entry: Entry, layout: Layout) -> None:
        self.entry, self.layout = entry, layout

    def tokens(self, seen: Seen) -> IntArray:
        return np.asarray(entry_kinds(seen.outputs, self.layout, [self.entry.place])[0])

    def words(self, token: int, example: Any) -> str:
        kind = kind_alone(self.entry.of(example))
        return f"{self.entry.name} is {'a float, not NaN, infinite or minus zero' if kind == USUAL else kind}"


WAYS = {
    "minus": "nine",
    "plus": "nine",
    "divided by": "three",
}  # two entries may be taken together, to so many decimals


class Difference(View):
    """What is left when one entry is taken from another, what two add up to, or their ratio, to some decimals."""

    is_fixed = False

    def __init__(self, one: Entry, two: Entry, way: str) -> None:
        self.one, self.two, self.way = one, two, way

    def tokens(self, seen: Seen) -> IntArray:
        return as_they_are(combined(self.one.numbers(seen), self.two.numbers(seen), self.way))

    def words(self, token: int, example: Any) -> str:
        number = float(np.int64(token).view(np.float64))
        return f"{self.one.name} {self.way} {self.two.name} is {number!r} to {WAYS[self.way]} decimals"


class WeightedSum(View):
    """The sum of entries with weights, cut at quantiles of earlier ones."""

    is_fixed = False

    def __init__(self, layout: Layout, names: Sequence[str], direction: FloatArray, sums: FloatArray) -> None:
        self.layout, self.names, self.direction = layout, names, direction
        self.bins = Bins(sums, max(2, min(MANY_BINS, sums.size // IN_A_BIN)))

    def tokens(self, seen: Seen) -> IntArray:
        return self.bins.places(summed(seen.columns(self.layout), self.direction))

    def words(self, token: int, example: Any) -> str:
        largest = np.argsort(-np.abs(self.direction), kind="stable")[:SHOWN_WEIGHTS]
        least = TOLD_WEIGHT * np.abs(self.direction).max()
        told = [place for place in largest if abs(self.direction[place]) > least]
        weights = [(float(self.direction[place]), self.names[place]) for place in told]
        terms = ", ".join(f"{weight:.3g} times {name}" for weight, name in weights)
        more = " and others" if np.count_nonzero(self.direction) > len(weights) else ""
        return f"a weighted sum of the entries ({terms}{more}) is {self.bins.range_of(token, None)}"


class Held(View):
    """The first of some numbers that an output holds, wherever they stand, those that tell most before others."""

    is_fixed = False

    def __init__(self, layout: Layout, places: Sequence[int], numbers: FloatArray) -> None:
        self.layout, self.places, self.held = layout, list(places), numbers

    def tokens(self, seen: Seen) -> IntArray:
        found, columns = np.full(len(seen), NOTHING), seen.columns(self.layout)[self.places]
        for place in range(self.held.size - 1, -1, -1):
            found[(columns == self.held[place]).any(axis=0)] = place
        return found

    def words(self, token: int, example: Any) -> str:
        held = self.held.tolist()[: token + 1]
        *before, mine = [str(int(number)) if number.is_integer() else repr(number) for number in held]
        return f"the output holds {mine}{' and none of ' * bool(before)}{', '.join(before)}"


def telling_numbers(layout: Layout, places: Sequence[int], columns: FloatArray, records: IntArray) -> Held:
    """The numbers that tell most of some record where any of some columns may hold them."""
    some = columns[list(places)]
    known, _, top, rest = counted(as_they_are(some.ravel()), np.tile(records, len(some)))
    evidence = top * np.log((top + 0.5) / (rest + 0.5))
    best = np.argsort(-evidence, kind="stable")[:MOST_TELLING]
    return Held(layout, places, known[best].view(np.float64) if known.size else np.zeros(0))


def as_they_are(column: FloatArray) -> IntArray:
    """A token for each number, the same for the same; nothing for what is not a number."""
    return np.where(np.isnan(column), NOTHING, np.ascontiguousarray(column + 0.0, dtype=np.float64).view(np.int64))


def combined(one: FloatArray, two: FloatArray, way: str) -> FloatArray:
    """The sum or difference of numbers to nine decimals, which forget how they were rounded; or the ratio to three."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if way == "divided by":
            return np.asarray(np.round(one / two, 3) + 0.0)
        return np.asarray(np.round(one + two if way == "plus" else one - two, 9) + 0.0)


class TwoColumns(View):
    """Two entries of an output together, each cut at quantiles of earlier ones."""

    is_fixed = False

    def __init__(self, entries: tuple[Entry, Entry], columns: tuple[FloatArray, FloatArray], bins: int) -> None:
        self.parts = [OneColumn(entry, column, bins) for entry, column in zip(entries, columns, strict=True)]

    def tokens(self, seen: Seen) -> IntArray:
        one, two = (part.tokens(seen) for part in self.parts)
        return paired(one, two)

    def words(self, token: int, example: Any) -> str:
        told = [part.words(place, example) for part, place in zip(self.parts, divmod(token, PAIRED), strict=True)]
        return ", and ".join(told)


class Repeats(View):
    """How many entries of an output are equal to another one."""

    is_fixed = False

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def tokens(self, seen: Seen) -> IntArray:
        ordered = np.sort(seen.columns(self.layout)[: self.layout.length], axis=0)
        times = np.count_nonzero(ordered[1:] == ordered[:-1], axis=0)
        return np.where(np.isnan(ordered).all(axis=0), NOTHING, times)

    def words(self, token: int, example: Any) -> str:
        if token == 0:
            return f"the output has {self.layout.length} entries, no two of them equal,"
        return f"of the {self.layout.length} entries of the output {token} repeat{'s' * (token == 1)} another"


def _entry_words(bins: Bins, place: int, entry: Any) -> str:
    """What entries of a bin are; those that are no numbers are put there by a digest, several together."""
    if is_number(entry):
        return bins.range_of(place, entry)
    if isinstance(entry, bool | np.bool_):
        return str(bool(entry))
    return f"one of some values (such as {shown(entry)})"


class Coarse(View):
    """Tuples whole, but for their floats, which are cut at quantiles of earlier ones."""

    is_fixed = False

    def __init__(self, floats: FloatArray, bins: int) -> None:
        self.bins = Bins(floats, bins)

    def tokens(self, seen: Seen) -> IntArray:
        values = seen.outputs.tolist()
        floats = np.array(_floats(values))
        places = iter(self.bins.places(floats).tolist())
        cut = [
            tuple(("bin", next(places)) if isinstance(entry, float) else entry for entry in leaves(value))
            if isinstance(value, tuple)
            else value
            for value in values
        ]
        return digests(cut)

    def words(self, token: int, example: Any) -> str:
        if not isinstance(example, tuple):
            return f"the output is {shown(example)}"
        places = iter(self.bins.places(np.array(_floats([example]))).tolist())
        told = [
            f"a number {self.bins.range_of(next(places), None)}" if isinstance(entry, float) else repr(entry)
            for entry in leaves(example)
        ]
        return f"the output is ({', '.join(told)})"


def coarse(seen: Seen, bins: int) -> Coarse | None:
    """The view of tuples with floats in them; None of other outputs."""
    floats = _floats(seen.outputs.tolist()) if seen.outputs.dtype.kind == "O" else []
    return Coarse(np.array(floats), bins) if floats else None


def _floats(values: list[Any]) -> list[float]:
    tuples = [leaves(value) for value in values if isinstance(value, tuple)]
    return [entry for value in tuples for entry in value if isinstance(entry, float)]


def in_decimals(edges: FloatArray) -> tuple[FloatArray, int | None]:
    """The same numbers with as many decimals as tell them apart well, and how many; None for all that they have.

    What is cut there can then be told in words that are true to the last run.
    """
    if edges.size == 0:
        return edges, None
    with np.errstate(over="ignore"):
        gaps = np.diff(edges)
    gap = float(gaps.min()) if gaps.size else max(1e-12, abs(float(edges[0])))
    digits = max(0, 2 - math.floor(math.log10(gap))) if gap < math.inf else 0
    if digits + max(0.0, math.log10(max(1.0, float(np.abs(edges).max())))) > 15:
        return edges, None
    return np.unique(np.round(edges, digits)), digits


def written(number: float, digits: int | None) -> str:
    """A number that has so many decimals."""
    if digits is None:
        return repr(float(number))
    told = f"{number:.{digits}f}"
    return told.rstrip("0").rstrip(".") if "." in told else told


def paired(one: IntArray, two: IntArray) -> IntArray:
    """Two places as one number; nothing if there is nothing to say about one of them."""
    return np.where((one == NOTHING) | (two == NOTHING), NOTHING, one * PAIRED + two)


def summed(columns: FloatArray, direction: FloatArray) -> FloatArray:
    """The sums of entries with these weights, to nine decimals; those left out that are no finite numbers."""
    numbers = numbers_only(columns)
    usual = np.isfinite(numbers)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.round(direction @ (numbers if usual.all() else np.where(usual, numbers, 0.0)), 9)
    return np.where(usual.any(axis=0), sums, np.nan)


class Unusual(View):
    """The output as a whole, where it is another kind of thing than most earlier outputs, or a number far from them.

    Among many values that any record may give, the few that name one would be drowned: a text among numbers, or -999,
    is not.
    """

    is_fixed = False

    def __init__(self, seen: Seen) -> None:
        forms, times = np.unique(seen.tokens(Form()), return_counts=True)
        self.usual = forms[np.argmax(times)]
        self.low, self.high = _usual_range(seen.numbers)

    def tokens(self, seen: Seen) -> IntArray:
        forms, numbers = seen.tokens(Form()), seen.numbers
        odd = forms != self.usual
        if numbers is not None:
            odd |= (numbers < self.low) | (numbers > self.high)
        return np.where(odd, seen.tokens(Value()), NOTHING) if odd.any() else np.full(len(seen), NOTHING)

    def words(self, token: int, example: Any) -> str:
        return Value().words(token, example)


def _usual_range(numbers: FloatArray | None) -> tuple[float, float]:
    """What numbers are not `FAR` from most of these."""
    some = np.zeros(0) if numbers is None else numbers[:: max(1, numbers.size // CUT_BY)]
    some = some[np.isfinite(some)]
    low, high = map(float, np.quantile(some, (0.25, 0.75))) if some.size else (0.0, 0.0)
    reach = FAR * (high - low) or math.inf
    return low - reach, high + reach
