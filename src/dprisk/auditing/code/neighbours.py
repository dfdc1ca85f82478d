"""Pairs of neighbouring inputs, for code that takes a whole input: the answers of queries, counts, a table."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np

from dprisk.errors import TargetError, as_whole, fail, require
from dprisk.types import IntArray

MOST_PAIRS = 1000  # that are taken from a generator
EXAMPLES = 100  # that are drawn from a strategy

Relation = Literal["replace-one", "add-remove"]


class Neighbours:
    """Inputs of code, and which of them are neighbours: those between which it promises that one cannot tell.

    `pairs` is a list or a generator of pairs, of which the first 1,000 are taken, or a hypothesis strategy for pairs,
    of which 100 examples are drawn, always the same. An audit takes it as its `records`, finds out in a few runs of
    each pair which of them the code tells apart best, and puts the claim to the test on those.

    >>> Neighbours([([1, 1], [2, 1]), ([1, 1], [1, 2])])
    Neighbours(2 pairs of 3 inputs)
    """

    def __init__(self, pairs: Iterable[tuple[Any, Any]] | Any) -> None:
        listed = _examples(pairs) if hasattr(pairs, "filter") and hasattr(pairs, "map") else _listed(pairs)
        numbers: dict[Any, int] = {}
        inputs: list[Any] = []
        found: dict[tuple[int, int], None] = {}
        for pair in listed:
            places = [numbers.setdefault(_key(side), len(numbers)) for side in pair]
            inputs.extend(side for side, place in zip(pair, places, strict=True) if place == len(inputs))
            if places[0] != places[1]:
                found[min(places), max(places)] = None
        require(
            bool(found), "Neighbours are pairs of inputs that differ, as in [([1, 1], [2, 1])]; got none.", TargetError
        )
        self.inputs: tuple[Any, ...] = tuple(inputs)
        self.pairs: IntArray = np.array(list(found), dtype=np.int64)

    @classmethod
    def queries(cls, size: int, level: float = 1) -> Neighbours:
        """Answers of queries each of which one person can move by 1: one, half or all of them, up or down.

        All answers are at `level` before, or some of them a step away. The patterns are those of Ding et al. (2018).

        >>> Neighbours.queries(5)
        Neighbours(15 pairs of 18 inputs)
        """
        size, half = as_whole("size, the number of queries,", size), size // 2
        first, rest = np.eye(size, dtype=int)[0], 1 - np.eye(size, dtype=int)[0]
        left = np.array([1] * half + [0] * (size - half))
        moves = [first, -first, first - rest, rest - first, left, -left, left - (1 - left), np.ones(size, dtype=int)]
        found = [(np.zeros(size, dtype=int), move) for move in [*moves, -first[::-1], (rest - first)[::-1]]]
        found += [(left, 1 - left), (first, rest), (first[::-1], rest[::-1])]
        found += [(first * size, first * size - first), (first * size, first * size - first + rest)]
        return cls([tuple([level + step for step in side.tolist()] for side in pair) for pair in found])

    @classmethod
    def counts(cls, size: int, relation: Relation = "replace-one") -> Neighbours:
        """Counts of people: one person moves from one count to another, or joins one (`add-remove`).

        The counts are all 0 before, all equal, or one is far above the rest.

        >>> Neighbours.counts(4), Neighbours.counts(4, "add-remove")
        (Neighbours(13 pairs of 21 inputs), Neighbours(10 pairs of 15 inputs))
        """
        size = as_whole("size, the number of counts,", size, least=2)
        one, equal = np.eye(size, dtype=int), np.ones(size, dtype=int)
        bases = [0 * equal, equal, 10 * equal, 1000 * one[0], 10 * equal + 100 * one[0]]
        moves = [(0 * equal, one[0] - one[-1]), (one[0], one[-1])] if _replaces(relation) else [(0 * equal, one[0])]
        moves += [(one[1], one[-1])] if _replaces(relation) else [(0 * equal, one[-1])]
        found = [(base + before, base + after) for base in bases for before, after in moves]
        return cls([(before.tolist(), after.tolist()) for before, after in found if after.min() >= 0])

    @classmethod
    def tables(cls, values: Sequence[Any], people: int, relation: Relation = "replace-one") -> Neighbours:
        """Lists of people's values, of which one is replaced, or one more comes (`add-remove`).

        The others all have one of the values, or half of them the first and half the last.

        >>> Neighbours.tables([0, 1], people=4)
        Neighbours(3 pairs of 6 inputs)
        """
        people = as_whole("people", people, least=1)
        listed = list(values)
        require(len(listed) >= 2, f"Two values or more are needed for people to differ, got {listed}.", TargetError)
        others = people - _replaces(relation)
        half = [listed[0]] * (others // 2) + [listed[-1]] * (others - others // 2)
        tables = [*([value] * others for value in listed), half]
        if _replaces(relation):
            ends = [(listed[0], value) for value in listed[1:]]
            return cls([([*table, one], [*table, two]) for table in tables for one, two in ends])
        return cls([(table, [*table, value]) for table in tables for value in listed])

    def __repr__(self) -> str:
        return f"Neighbours({len(self.pairs)} pairs of {len(self.inputs)} inputs)"


def _replaces(relation: Any) -> bool:
    """Whether neighbours differ by replacing one record, not by one record more."""
    if relation not in ("replace-one", "add-remove"):
        fail(f"The relation of neighbours is 'replace-one' or 'add-remove', not {relation!r}.", TargetError)
    return bool(relation == "replace-one")


def _listed(pairs: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs, checked."""
    if isinstance(pairs, str) or not hasattr(pairs, "__iter__"):
        fail(f"Neighbours are a list of pairs of inputs, as in [([1, 1], [2, 1])], not {pairs!r}.", TargetError)
    for pair in islice(pairs, MOST_PAIRS):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            fail(f"A pair of neighbours is two inputs, as in ([1, 1], [2, 1]), not {pair!r}.", TargetError)
        yield pair[0], pair[1]


def _examples(strategy: Any) -> Iterator[tuple[Any, Any]]:
    """Examples of a hypothesis strategy, the same every time."""
    from hypothesis import HealthCheck, Phase, given, settings

    found: list[Any] = []

    @settings(
        max_examples=EXAMPLES,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(pair: Any) -> None:
        found.append(pair)

    collect()
    return _listed(found)


def _key(value: Any) -> Any:
    """The same for inputs that are the same."""
    try:
        return pickle.dumps(value)
    except Exception:  # whatever an input's own way of being pickled raises
        return id(value)
