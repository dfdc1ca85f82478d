"""Ways of looking that are fitted to earlier outputs.

Numbers are cut at quantiles of earlier ones, alone, in pairs, in tuples, or as a weighted sum. Text and nested outputs
are looked through for the words, or entries at any depth, that tell records apart.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import shown
from dprisk.auditing.evidence.entries import Entry
from dprisk.auditing.evidence.numbers import leaves
from dprisk.auditing.evidence.places import NOTHING, Ladder, quantiles
from dprisk.auditing.evidence.views import Form, Seen, Value, View, digests, is_number, numbers_only
from dprisk.types import AnyArray, FloatArray, IntArray

PAIRED = 64  # more than there are places in either of a pair
CUT_BY = 20_000  # numbers by whose quantiles others are cut, at least
MOST_PARTS = 64  # words of a text, or entries, that are looked at
TRIED_FOR_PARTS = 1000  # outputs by which that is decided
MANY_TEXTS = 64  # of them, beyond which one by one they tell less than their parts
SHOWN_PARTS = 3
MOST_TELLING = 16  # words or entries that are looked for
FAR = 10  # times as far from the middle half of the numbers as that is wide
WORD = re.compile(r"\w+|[^\w ]| {2,}")  # or a sign, or more than one space


class Bins(View):
    """Numbers cut at quantiles of earlier ones, or weighted sums of entries that are cut so."""

    is_fixed = False

    def __init__(self, numbers: FloatArray, bins: int, direction: FloatArray | None = None) -> None:
        some = numbers[:: max(1, numbers.size // CUT_BY)]
        self.edges, self.digits = in_decimals(quantiles(some, bins))
        self.direction = direction
        self.whole = bool(np.all(some == np.floor(some)))
        self._ladder = Ladder(self.edges)

    def tokens(self, seen: Seen) -> IntArray:
        if self.direction is not None:
            return self.places(summed(seen.entries(self.direction.size), self.direction))
        return np.full(len(seen), NOTHING) if seen.numbers is None else self.places(seen.numbers)

    def places(self, numbers: FloatArray) -> IntArray:
        """The bin of each number."""
        return np.where(np.isnan(numbers), NOTHING, self._ladder.places(numbers))

    def words(self, token: int, example: Any) -> str:
        what = "the output" if self.direction is None else "a weighted sum of the entries"
        return f"{what} is {self.range_of(token, example if self.direction is None else None)}"

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


class OneColumn(View):
    """One entry of an output, cut at quantiles of earlier ones."""

    is_fixed = False

    def __init__(self, entry: Entry, column: FloatArray, bins: int) -> None:
        self.entry, self.bins = entry, Bins(column, bins)

    def tokens(self, seen: Seen) -> IntArray:
        return self.bins.places(self.entry.column(seen))

    def words(self, token: int, example: Any) -> str:
        return f"{self.entry.name} is {_entry_words(self.bins, token, self.entry.of(example))}"


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

    def __init__(self, length: int) -> None:
        self.length = length

    def tokens(self, seen: Seen) -> IntArray:
        ordered = np.sort(seen.entries(self.length), axis=0)
        times = np.count_nonzero(ordered[1:] == ordered[:-1], axis=0)
        return np.where(np.isnan(ordered).all(axis=0), NOTHING, times)

    def words(self, token: int, example: Any) -> str:
        if token == 0:
            return "no two entries of the output are equal"
        return f"{token} entr{'y' if token == 1 else 'ies'} of the output repeat{'s' * (token == 1)} another"


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
    """The sums of entries with these weights, those left out that are no finite numbers; of none not a number."""
    numbers = numbers_only(columns)
    usual = np.isfinite(numbers)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = direction @ (numbers if usual.all() else np.where(usual, numbers, 0.0))
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


class Parts(View):
    """The first of some words, or entries at any depth, that an output holds, those that tell most before others."""

    is_fixed = False

    def __init__(self, parts: Sequence[str]) -> None:
        self.parts = {part: place for place, part in enumerate(parts)}

    def tokens(self, seen: Seen) -> IntArray:
        if seen.outputs.dtype.kind != "O":
            return np.full(len(seen), NOTHING)
        some, places = seen.different
        found = (
            min((self.parts[part] for part in parts_of(value) if part in self.parts), default=NOTHING)
            if isinstance(value, str | tuple | frozenset)
            else NOTHING
            for value in some.outputs.tolist()
        )
        return np.fromiter(found, dtype=np.int64, count=len(some))[places]

    def words(self, token: int, example: Any) -> str:
        *before, mine = list(self.parts)[: token + 1]
        more = f" and {len(before) - SHOWN_PARTS} more" if len(before) > SHOWN_PARTS else ""
        none = f" and none of {', '.join(before[:SHOWN_PARTS])}{more}" if before else ""
        word = "the word " if isinstance(example, str) and mine[1:-1].isalnum() else ""
        return f"the output holds {word}{mine}{none}"


def parts_of(value: Any) -> set[str]:
    """The words of a text, and what is in it at any depth, each as it is written."""
    found: set[str] = set()
    for entry in islice(value, MOST_PARTS) if isinstance(value, (tuple, frozenset)) else (value,):
        if isinstance(entry, str):
            found |= _words(entry)
        elif isinstance(entry, (tuple, frozenset)):
            found |= parts_of(entry)
        else:
            found.add(repr(entry))
    return found


@lru_cache(1 << 10)  # the names in a dict come again and again
def _words(text: str) -> frozenset[str]:
    return frozenset(map(repr, WORD.findall(text)[:MOST_PARTS]))


def with_parts(outputs: AnyArray) -> IntArray:
    """The places of texts and nested outputs; of none if there are few different ones, since whole ones tell more then.

    They may be few among numbers.
    """
    values = outputs.tolist() if outputs.dtype.kind == "O" else []
    held = np.fromiter((isinstance(value, str | tuple | frozenset) for value in values), dtype=bool, count=len(values))
    places = np.flatnonzero(held)
    some = outputs[places[:TRIED_FOR_PARTS]].tolist()
    return places if len(set(some)) > min(MANY_TEXTS, len(some) / 2) else places[:0]


def telling_parts(outputs: AnyArray, records: IntArray) -> list[str]:
    """The words or entries that tell most of some record, those that tell most first."""
    held: dict[str, Counter[int]] = {}
    for value, record in zip(outputs.tolist(), records.tolist(), strict=True):
        for part in parts_of(value):
            held.setdefault(part, Counter())[record] += 1

    def evidence(part: str) -> float:
        (_, top), total = held[part].most_common(1)[0], held[part].total()
        return top * math.log((top + 0.5) / (total - top + 0.5))

    return sorted((part for part in held if held[part].total() > 1), key=evidence, reverse=True)[:MOST_TELLING]
