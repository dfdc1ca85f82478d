"""A Bayesian network fitted to a table: how likely each row is, exactly, also given some of its columns.

Columns are taken one by one, each with at most `parents` earlier ones that it depends on. These always lie together in
a group that an earlier column formed with its own parents, so that the network is part of a k-tree: whatever is known
of a row, what follows for the rest is computed without approximation, in time of the largest group's number of cells.
With one parent this is the tree of Chow and Liu (1968), the likeliest of all trees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np

from dprisk.errors import as_whole, require
from dprisk.types import FloatArray, IntArray

PSEUDO_COUNTS = 1.0  # people, spread like the whole column, that every conditional distribution is smoothed by
MOST_CELLS = 1_000_000  # of a group of columns


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """Columns in `order`, the earlier ones that each depends on, and the chances of its values given theirs.

    `tables[c]` has one axis for each of `parents[c]` and then one for the values of column c, over which it sums to 1.

    >>> rows = np.array([[0, 0], [0, 0], [1, 1], [1, 0]] * 100)
    >>> network = Network.fit(rows, sizes=(2, 2))
    >>> [round(float(p), 2) for p in np.exp(network.log_probability(np.array([[0, 0], [1, 1]])))]
    [0.5, 0.25]
    """

    sizes: tuple[int, ...]
    order: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[FloatArray, ...]

    @classmethod
    def fit(cls, rows: IntArray, sizes: Sequence[int], parents: int = 2) -> Self:
        """The network that explains the rows best, column by column, by the Bayesian information criterion."""
        most = as_whole("parents", parents)
        counting = _Counting(np.asarray(rows), tuple(sizes))
        columns = range(len(counting.sizes))
        order = [max(columns, key=lambda c: counting.entropy((c,)))]
        chosen: dict[int, tuple[int, ...]] = {order[0]: ()}
        groups: list[tuple[int, ...]] = [(), (order[0],)]
        while len(order) < len(counting.sizes):
            pairs = [(c, group) for c in columns if c not in chosen for group in groups]
            column, group = max(pairs, key=lambda pair: counting.score(*pair))
            order.append(column)
            chosen[column] = group
            together = (*group, column)
            new = [g for size in range(1, most + 1) for g in combinations(together, size) if column in g]
            groups += [tuple(sorted(g)) for g in new]
        parented = tuple(chosen[column] for column in columns)
        tables = tuple(counting.conditional(column, parented[column]) for column in columns)
        return cls(counting.sizes, tuple(order), parented, tables)

    def log_probability(self, rows: IntArray) -> FloatArray:
        """The logarithm of the chance of each row."""
        rows = np.asarray(rows)
        found = np.zeros(len(rows))
        for column, (parents, table) in enumerate(zip(self.parents, self.tables, strict=True)):
            found += np.log(table[tuple(rows[:, c] for c in (*parents, column))])
        return found

    def draw(self, people: int, rng: np.random.Generator) -> IntArray:
        """Rows of that many people, drawn independently."""
        rows = np.zeros((people, len(self.sizes)), dtype=np.int64)
        for column in self.order:
            chances = self.tables[column][tuple(rows[:, c] for c in self.parents[column])]
            rows[:, column] = _drawn(np.broadcast_to(chances, (people, self.sizes[column])), rng)
        return rows

    @cached_property
    def home(self) -> tuple[int | None, ...]:
        """For each column the latest of its parents, whose group holds them all; None for one without parents."""
        rank = {column: place for place, column in enumerate(self.order)}
        return tuple(max(parents, key=lambda c: rank[c]) if parents else None for parents in self.parents)

    def __repr__(self) -> str:
        widest = max(map(len, self.parents))
        return f"Network({len(self.sizes)} columns, at most {widest} parents each)"


def _drawn(chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """A place in each row, drawn with the chances in it."""
    summed = np.cumsum(chances, axis=1)
    places = (summed < rng.random((len(chances), 1)) * summed[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(places, chances.shape[1] - 1), dtype=np.int64)


class _Counting:
    """Counts of the rows of a table, each kept once it is known."""

    def __init__(self, rows: IntArray, sizes: tuple[int, ...]) -> None:
        shaped = rows.ndim == 2 and len(rows) > 0 and rows.shape[1] == len(sizes)
        require(shaped, f"A network needs rows of {len(sizes)} codes to be fitted to, got shape {rows.shape}.")
        require(np.all(rows >= 0) and np.all(rows < np.array(sizes)), "Every code must lie below its column's size.")
        self.rows, self.sizes = rows.astype(np.int64), sizes
        self._entropies: dict[tuple[int, ...], float] = {}

    def counts(self, columns: Sequence[int]) -> FloatArray:
        """How many rows have each combination of values."""
        shape = tuple(self.sizes[c] for c in columns)
        flat = np.ravel_multi_index(tuple(self.rows[:, c] for c in columns), shape)
        return np.bincount(flat, minlength=int(np.prod(shape))).astype(float).reshape(shape)

    def entropy(self, columns: tuple[int, ...]) -> float:
        """Of some columns together, in nats."""
        if not columns:
            return 0.0
        columns = tuple(sorted(columns))
        if columns not in self._entropies:
            shares = self.counts(columns).ravel() / len(self.rows)
            shares = shares[shares > 0]
            self._entropies[columns] = float(-(shares * np.log(shares)).sum())
        return self._entropies[columns]

    def score(self, column: int, parents: tuple[int, ...]) -> float:
        """What the parents explain of a column, in nats a row, less what their number of cells costs."""
        cells = float(np.prod([self.sizes[c] for c in parents]))
        if cells * self.sizes[column] > MOST_CELLS:
            return -np.inf
        explained = self.entropy((column,)) + self.entropy(parents) - self.entropy((*parents, column))
        cost = np.log(len(self.rows)) / (2 * len(self.rows)) * (self.sizes[column] - 1) * (cells - 1)
        return float(explained - cost)

    def conditional(self, column: int, parents: tuple[int, ...]) -> FloatArray:
        """The chances of a column's values given the parents', smoothed so that none is 0."""
        alone = self.counts((column,)) + PSEUDO_COUNTS / self.sizes[column]
        counts = self.counts((*parents, column)) + PSEUDO_COUNTS * alone / alone.sum()
        return np.asarray(counts / counts.sum(axis=-1, keepdims=True))
