"""The words and lines of texts, and the entries and rows of nested outputs: which of them tell records apart."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from dprisk.auditing.code.failures import Failure
from dprisk.auditing.evidence.numbers import MOST_NAMES, SHORT, leaves
from dprisk.auditing.evidence.places import NOTHING
from dprisk.auditing.evidence.table_rows import is_record, json_in, leaves_and_rows
from dprisk.auditing.evidence.views import Seen, View
from dprisk.types import AnyArray, IntArray

TRIED_FOR_PARTS = 1000  # outputs by which it is decided whether parts are looked at
MANY_TEXTS = 64  # of them, beyond which one by one they tell less than their parts
FEWEST_TRIED, MOST_TRIED, LONG_BY = 500, 200_000, 20  # outputs, and parts, by which it is decided which parts tell
SHOWN_PARTS = 3
MOST_TELLING = 16  # words or entries that are looked for
WORD = re.compile(r"\w+|[^\w ]| {2,}")  # or a sign, or more than one space


class Parts(View):
    """The first of some words, lines, entries or rows that an output holds, those that tell most before others."""

    is_fixed = False

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)
        self._places = {_key(part): place for place, part in enumerate(parts)}
        self._some = frozenset(parts)  # 1 is 1.0 here, which a second look at all that is no text tells apart

    def tokens(self, seen: Seen) -> IntArray:
        if seen.outputs.dtype.kind != "O" or not self.parts:
            return np.full(len(seen), NOTHING)
        some, places = seen.different
        return np.fromiter(map(self._first, some.outputs.tolist()), dtype=np.int64, count=len(some))[places]

    def _first(self, value: Any) -> int:
        parts = parts_of(value)
        held: Iterable[Any] = self._some.intersection(parts)
        if not all(isinstance(part, str) for part in held):
            held = [part for part in parts if part in self._some]
        keys = map(_key, held)
        return min((self._places[key] for key in keys if key in self._places), default=NOTHING)

    def words(self, token: int, example: Any) -> str:
        *before, mine = self.parts[: token + 1]
        more = f" and {len(before) - SHOWN_PARTS} more" if len(before) > SHOWN_PARTS else ""
        none = f" and none of {', '.join(map(_told, before[:SHOWN_PARTS]))}{more}" if before else ""
        word = "the word " if isinstance(example, str | Failure) and isinstance(mine, str) and mine.isalnum() else ""
        return f"the output holds {word}{_told(mine)}{none}"


def _told(part: Any) -> str:
    """A part in words; of a number its kind, too, since a whole number is told from a float that is as large."""
    if isinstance(part, tuple):
        return f"the row {dict(part) if is_record(part) else part!r}"
    if isinstance(part, str) and not WORD.fullmatch(part):
        return f"the line {part!r}"
    plain = part.item() if isinstance(part, np.generic) else part
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        return repr(plain)
    return f"{'the float' if isinstance(plain, float) else 'the whole number'} {plain!r}"


def parts_of(value: Any) -> Sequence[Any]:
    """The words and lines of a text or failure, what is in it at any depth and its rows; of anything else nothing."""
    if isinstance(value, Failure):
        return _words(str(value))
    if isinstance(value, str):
        said = json_in(value)
        return _words(value) + leaves_and_rows(said)[1] if isinstance(said, tuple) else _words(value)
    if isinstance(value, frozenset):
        value = tuple(sorted(value, key=repr))  # in an order that is the same in every process
    if not isinstance(value, tuple):
        return ()
    every, rows = leaves_and_rows(value)
    held: list[Any] = [*rows]
    for entry in every:
        if isinstance(entry, str):
            held += _name_words(entry) if len(entry) <= SHORT else _words(entry)
        elif isinstance(entry, frozenset):
            held += parts_of(entry)
        else:
            held.append(entry)
    return held


def _words(text: str) -> list[str]:
    """Its words, and its lines that are more than a word."""
    words: list[str] = WORD.findall(text)
    return words + [line for line in text.splitlines() if not WORD.fullmatch(line)] if "\n" in text else words


_name_words = lru_cache(MOST_NAMES)(_words)


def _key(part: Any) -> tuple[type, str]:
    return type(part), repr(part)


def with_parts(outputs: AnyArray) -> IntArray:
    """The places of texts and nested outputs; of none if there are few different ones, since whole ones tell more then.

    They may be few among numbers.
    """
    values = outputs.tolist() if outputs.dtype.kind == "O" else []
    held = np.fromiter(
        (isinstance(value, str | tuple | frozenset | Failure) for value in values), dtype=bool, count=len(values)
    )
    places = np.flatnonzero(held)
    some = outputs[places[:TRIED_FOR_PARTS]].tolist()
    return places if len(set(some)) > min(MANY_TEXTS, len(some) / 2) else places[:0]


def telling_parts(outputs: AnyArray, records: IntArray) -> list[Any]:
    """The words or entries that tell most of some record, those that tell most first; from the first outputs."""
    longest = max((len(parts_of(value)) for value in outputs[:LONG_BY].tolist()), default=1)
    count = max(FEWEST_TRIED, MOST_TRIED // max(1, longest))
    some = outputs[:count].tolist()
    held = [{_key(part): part for part in dict.fromkeys(parts_of(value))} for value in some]
    often: Counter[Any] = Counter()
    for parts in held:
        often.update(parts.keys())
    times: dict[Any, Counter[int]] = {key: Counter() for key, count in often.items() if count > 1}
    found: dict[Any, Any] = {}
    for parts, record in zip(held, records[:count].tolist(), strict=True):
        for key in parts.keys() & times.keys():
            times[key][record] += 1
            found[key] = parts[key]

    def evidence(key: Any) -> float:
        (_, top), total = times[key].most_common(1)[0], often[key]
        return top * math.log((top + 0.5) / (total - top + 0.5))

    told = (found[key] for key in sorted(times, key=evidence, reverse=True))
    return list(islice((part for part in told if _is_found_again(part)), MOST_TELLING))


def _is_found_again(part: Any) -> bool:
    """Whether it is equal to what is written alike: a row with NaN is not."""
    return type(part) is not tuple or all(entry == entry for entry in leaves(part))
