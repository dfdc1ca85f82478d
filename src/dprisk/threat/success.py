"""What counts as having reconstructed the record: the ball S_g of records for which guess g is good enough.

Guesses are records unless a success says otherwise. Each class lists its sets for given knowledge groups as a `Reach`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from dprisk.errors import ThreatError, TooLargeError, as_number
from dprisk.tables import as_floats, column, encode, listed
from dprisk.threat.knowledge import refine
from dprisk.threat.prior import Prior
from dprisk.threat.reach import Reach, sets
from dprisk.threat.windows import windows
from dprisk.types import AnyArray, FloatArray, IntArray, Table
from dprisk.values import Value

MOST_PAIRS = 20_000_000


class Success(Value):
    """A rule that says which records a guess is good enough for; `is_exact` if only the record itself will do."""

    is_exact: ClassVar[bool] = False

    def require_places(self, prior: Prior) -> None:
        """Refuse records that lie nowhere, where the rule is about how far apart their labels are."""

    def places(self, prior: Prior) -> FloatArray | None:
        """Where the records lie on a line, where the rule is about how far apart that is."""
        return None

    @abstractmethod
    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        """The distinct sets of records, within each group, that the guesses succeed on."""

    @abstractmethod
    def describe(self) -> str:
        """In a few words, for tables and reports."""


@dataclass(frozen=True, eq=False, repr=False)
class Exact(Success):
    """The guess must be the record."""

    is_exact = True

    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        return windows(np.arange(prior.size, dtype=float), 0.0, groups)

    def describe(self) -> str:
        return "exactly"


@dataclass(frozen=True, eq=False, repr=False)
class Within(Success):
    """The guess must lie `within` a distance of the record."""

    within: float
    _where: ClassVar[str]

    def __post_init__(self) -> None:
        _require_distance(self.within)

    def describe(self) -> str:
        return f"within {self.within:g} {self._where}"


@dataclass(frozen=True, eq=False, repr=False)
class Line(Within):
    """The guess must lie `within` this distance of the record on a line.

    Positions default to the prior's labels, which must be numbers, and to 0, 1, 2, ... without labels. A distance that
    exceeds it by no more than rounding counts as it.
    """

    positions: npt.ArrayLike | None = None
    _where = "on a line"

    def require_places(self, prior: Prior) -> None:
        if self.positions is None:
            prior.positions()

    def places(self, prior: Prior) -> FloatArray:
        return _positions(self.positions, prior)

    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        return windows(self.places(prior), self.within, groups)


@dataclass(frozen=True, eq=False, repr=False)
class Ring(Within):
    """The guess must lie `within` this distance of the record on a ring.

    Without positions the records stand around the ring in equal steps, in their order; the step is that of the prior's
    labels, which must be numbers that rise in equal steps, and 1 without labels.
    """

    positions: npt.ArrayLike | None = None
    circumference: float | None = None
    _where = "on a ring"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.positions is None) != (self.circumference is None):
            raise ThreatError("A ring with positions needs its circumference, and the other way round.")

    def require_places(self, prior: Prior) -> None:
        if self.positions is None:
            prior.positions()

    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        if self.positions is None or self.circumference is None:
            prior.require_even_spacing("A ring without positions")
            places = prior.positions()
            step = float(places[1] - places[0]) if prior.size > 1 else 1.0
            return windows(places - places[0], self.within, groups, step * prior.size)
        ThreatError.unless(0 < self.circumference < np.inf, "The circumference must be finite and above 0.")
        places = _positions(self.positions, prior)
        if not np.all((places >= 0) & (places < self.circumference)):
            raise ThreatError(f"Positions on a ring must lie in [0, {self.circumference:g}).")
        return windows(places, self.within, groups, self.circumference)


@dataclass(frozen=True, eq=False, repr=False)
class Distances(Within):
    """The guess must lie `within` this distance of the record by a matrix of losses, guesses x records.

    The matrix may be dense or sparse. In a sparse one, entries that are not stored are farther than any distance,
    except the diagonal of a square matrix, which is 0.
    """

    matrix: Any
    _where = "by the given distances"

    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        if scipy.sparse.issparse(self.matrix):
            loss = scipy.sparse.csr_array(self.matrix).tocoo()  # csr adds up entries that are stored twice
            _require_losses(loss.data, loss.shape, prior.size)
            rows, columns = loss.coords
            if loss.shape[0] == loss.shape[1]:
                unset = np.setdiff1d(np.arange(prior.size), rows[rows == columns])
                rows, columns = np.r_[rows, unset], np.r_[columns, unset]
            near = np.r_[loss.data, np.zeros(rows.size - loss.data.size)] <= self.within * (1 + 1e-12)
            hits = (np.ones(np.count_nonzero(near)), (rows[near], columns[near]))
            return sets(scipy.sparse.csr_array(hits, shape=loss.shape), groups)
        dense = as_floats(self.matrix, "Losses", ThreatError)
        _require_losses(dense.ravel(), dense.shape, prior.size)
        return sets(scipy.sparse.csr_array(dense <= self.within * (1 + 1e-12)), groups)


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Within):
    """The guess must lie `within` this distance of the record on a graph: in hops, or in the sum of an edge weight.

    `graph` is a networkx graph or a sparse adjacency matrix, its nodes in the order of the records (networkx: the
    prior's labels, if it has any). In a directed graph the way runs from the guess to the record.
    """

    graph: Any
    weight: str | None = None

    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        from dprisk.threat.graphs import adjacency, within

        edges = adjacency(self.graph, self.weight, prior.labels)
        if edges.shape[0] != prior.size:
            raise ThreatError(f"The graph has {edges.shape[0]} nodes, the prior {prior.size} records; they must agree.")
        return sets(within(edges, self.within), groups)

    def describe(self) -> str:
        return f"within {self.within:g} {'hops' if self.weight is None else self.weight} on a graph"


@dataclass(frozen=True, eq=False, repr=False)
class Attributes(Success):
    """The guess must have the named columns right; a column in `within` only up to that distance.

    `table` has one row for each record. The other columns do not matter.
    """

    table: Table
    columns: Sequence[str]
    within: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            object.__setattr__(self, "columns", (self.columns,))
        ThreatError.unless(len(self.columns) > 0, "Name at least one secret column.")
        ThreatError.unless(isinstance(self.within, Mapping), "`within` maps a column's name to a distance.")
        for name, eta in self.within.items():
            ThreatError.unless(name in self.columns, f"`within` names {name!r}, which is not a secret column.")
            _require_distance(eta)

    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        exact = [encode(column(self.table, name))[0] for name in self.columns if not self.within.get(name)]
        classes = refine(exact) if exact else np.zeros(prior.size, dtype=np.int64)
        ThreatError.unless(classes.size == prior.size, f"The table has {classes.size} rows for {prior.size} records.")
        loose = {name: eta for name, eta in self.within.items() if eta > 0}
        if not loose:
            return windows(classes.astype(float), 0.0, groups)
        values = {name: _numeric(self.table, name, prior.size) for name in loose}
        if len(loose) == 1:  # one line for each class, the lines laid end to end with a gap between them
            ((name, eta),) = loose.items()
            offset = values[name] - values[name].min()
            return windows(classes * (float(offset.max()) + 3 * eta) + offset, eta, groups)
        scaled = [values[name] / (eta * (1 + 1e-12)) for name, eta in loose.items()]
        return sets(_chebyshev_pairs(np.column_stack([2.0 * classes, *scaled])), groups)

    def describe(self) -> str:
        parts = (f"{name} within {self.within[name]:g}" if self.within.get(name) else name for name in self.columns)
        return "in " + ", ".join(parts)


@dataclass(frozen=True, eq=False, repr=False)
class Balls(Success):
    """The guess must lie in a ball given by a function.

    `ball(guess)` is called with each record's label (its number, where there are none) and returns the records for
    which that guess is good enough: a boolean mask, or the numbers of the records.
    """

    ball: Callable[[Any], Iterable[Any]]

    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        rows = [self._members(prior, record) for record in range(prior.size)]
        starts = np.cumsum([0, *(row.size for row in rows)])
        hits = (np.ones(starts[-1]), np.concatenate(rows), starts)
        return sets(scipy.sparse.csr_array(hits, shape=(prior.size, prior.size)), groups)

    def _members(self, prior: Prior, record: int) -> IntArray:
        ball = np.asarray(listed(self.ball(prior.name(record))))
        if ball.dtype == bool:
            ThreatError.unless(ball.shape == (prior.size,), f"A mask of shape {ball.shape} for {prior.size} records.")
            return np.flatnonzero(ball)
        whole = ball.size == 0 or (ball.ndim == 1 and np.issubdtype(ball.dtype, np.integer))
        ThreatError.unless(
            whole and np.all((ball >= 0) & (ball < prior.size)),
            f"The ball of guess {prior.name(record)!r} must be a mask or numbers of records in 0..{prior.size - 1}.",
        )
        return np.unique(ball).astype(np.int64)

    def describe(self) -> str:
        return "within a given ball"


def _require_distance(within: float) -> None:
    value = as_number("The distance `within`", within)
    if not 0 <= value < np.inf:
        raise ThreatError(f"The distance `within` must be a finite number of at least 0, got {within}.")


def _require_losses(values: AnyArray, shape: tuple[int, ...], records: int) -> None:
    if not (len(shape) == 2 and shape[0] > 0 and shape[1] == records):
        raise ThreatError(f"The loss matrix must be guesses x records with {records} columns, got shape {shape}.")
    ThreatError.unless(np.all(values >= 0), "Losses must be numbers of at least 0.")


def _positions(positions: npt.ArrayLike | None, prior: Prior) -> FloatArray:
    if positions is None:
        return prior.positions()
    places = as_floats(positions, "Positions", ThreatError)
    if not (places.shape == (prior.size,) and np.all(np.isfinite(places))):
        raise ThreatError(f"Give one finite position for each of the {prior.size} records.")
    return places


def _numeric(table: Table, name: str, size: int) -> FloatArray:
    values = as_floats(column(table, name), f"With `within`, the values of {name!r}", ThreatError)
    ThreatError.unless(values.size == size, f"The table has {values.size} rows for {size} records.")
    ThreatError.unless(np.all(np.isfinite(values)), f"The column {name!r} has values that are not finite.")
    return values


def _chebyshev_pairs(points: FloatArray) -> Any:
    """A sparse 0/1 matrix of the pairs of points that differ by at most 1 in every coordinate."""
    tree = scipy.spatial.cKDTree(points)
    count = tree.count_neighbors(tree, 1.0, p=np.inf)
    TooLargeError.unless(count <= MOST_PAIRS, f"{count} pairs of records lie within these distances, too many to list.")
    pairs = tree.query_pairs(1.0, p=np.inf, output_type="ndarray")
    rows = np.r_[np.arange(len(points)), pairs[:, 0], pairs[:, 1]]
    columns = np.r_[np.arange(len(points)), pairs[:, 1], pairs[:, 0]]
    return scipy.sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(len(points), len(points)))
