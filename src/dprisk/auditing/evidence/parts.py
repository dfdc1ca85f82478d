"""A way of looking at text and nested outputs: which words, or entries at any depth, they hold."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dprisk.auditing.evidence.views import NOTHING, Seen, View
from dprisk.types import AnyArray, IntArray

MOST_PARTS = 64  # words of a text, or entries, that are looked at
TRIED = 1000  # outputs by which that is decided
MOST_TELLING = 16  # words or entries that are looked for
WORD = re.compile(r"\w+")


class Parts(View):
    """The first of some words, or entries at any depth, that an output holds."""

    is_fixed = False

    def __init__(self, parts: Sequence[str]) -> None:
        self.parts = {part: place for place, part in enumerate(parts)}

    def tokens(self, seen: Seen) -> IntArray:
        found = (
            min((self.parts[part] for part in parts_of(value) if part in self.parts), default=NOTHING)
            for value in seen.outputs.tolist()
        )
        return np.fromiter(found, dtype=np.int64, count=len(seen))

    def words(self, token: int, example: Any) -> str:
        return f"the output holds {list(self.parts)[token]}"


def parts_of(value: Any) -> set[str]:
    """The words of a text, and what is in it at any depth, each as it is written."""
    if isinstance(value, str):
        return {repr(word) for word in WORD.findall(value)[:MOST_PARTS]}
    if isinstance(value, tuple | frozenset):
        return set().union(*map(parts_of, list(value)[:MOST_PARTS])) if value else set()
    return {repr(value)}


def have_parts(outputs: AnyArray) -> bool:
    """Whether these are texts or nested outputs, most of which are never seen again: whole ones tell nothing then."""
    some = outputs[:TRIED].tolist() if outputs.dtype.kind == "O" else []
    return any(isinstance(value, str | tuple | frozenset) for value in some) and 2 * len(set(some)) > len(some)


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
