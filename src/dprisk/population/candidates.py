"""What each record may be: the ways to fill in the columns that the attacker does not know, likeliest first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from dprisk.errors import PriorError, TooLargeError, as_whole, require
from dprisk.population.networks import Network
from dprisk.types import BoolArray, FloatArray, IntArray

RowChances = Callable[[IntArray], FloatArray]  # rows of codes -> P(x) of each, or a multiple of it
MOST_LISTED = 10_000  # ways to fill in a row, where a prior is any function and all of them are listed


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """For each record, rows of codes that it may be, and how likely each is given the columns that are known.

    `rows[i, t]` is candidate t of record i, all columns, and `prior[i, t]` its conditional probability. `complete` says
    that every way to fill in the unknown columns is listed. Otherwise the likeliest are, and then perhaps some that
    were drawn from the rest and stand for all of it: `weight[i, t]` is the probability that a candidate stands for, its
    own or its share of the rest. Weights sum to 1 where everything is stood for; places that are not needed have 0.
    """

    rows: IntArray
    prior: FloatArray
    weight: FloatArray
    unknown: tuple[int, ...]
    complete: bool

    @property
    def people(self) -> int:
        """How many records there are."""
        return len(self.prior)

    @cached_property
    def secrets(self) -> IntArray:
        """The codes of the unknown columns alone."""
        return self.rows[:, :, list(self.unknown)]

    def near(self, record: int, within: float) -> BoolArray:
        """Which candidates of a record (columns) a guess of another (rows) is right about: L1 distance of codes."""
        codes = self.secrets[record]
        return np.asarray(np.abs(codes[:, None] - codes[None]).sum(axis=2) <= within)

    def best(self, beliefs: FloatArray, within: float = 0) -> tuple[IntArray, FloatArray]:
        """For each record the guess that is likeliest to be right, and how likely it is, by these beliefs."""
        if within == 0:
            return beliefs.argmax(axis=1), beliefs.max(axis=1)
        require(self.complete, "Guesses within a distance need every way to fill in a row; ask for fewer columns.")
        masses = [self.near(record, within) @ beliefs[record] for record in range(self.people)]
        return np.array([mass.argmax() for mass in masses]), np.array([mass.max() for mass in masses])

    def right(self, guesses: IntArray, truth: IntArray, within: float = 0) -> BoolArray:
        """Which guesses are right about the true rows."""
        guessed = np.take_along_axis(self.secrets, guesses[:, None, None], axis=1)[:, 0]
        return np.asarray(np.abs(guessed - truth[:, list(self.unknown)]).sum(axis=1) <= within)


def candidates(
    prior: Network | RowChances,
    rows: IntArray,
    sizes: Sequence[int],
    unknown: Sequence[int],
    most: int = 500,
    rng: np.random.Generator | None = None,
) -> Candidates:
    """The `most` likeliest ways to fill in the unknown columns of each row, or all where there are no more.

    The prior is a network, or a function that gives P(x), up to a factor, for rows of codes: then all are listed.
    What the rows hold in the unknown columns is not looked at. With an `rng`, draws from the rest stand for it.
    """
    rows, unknown = np.asarray(rows), tuple(unknown)
    require(len(unknown) > 0, "Name at least one column that the attacker does not know.")
    if isinstance(prior, Network):
        listed = _likeliest(prior, rows, unknown, as_whole("most", most))
        return listed if listed.complete or rng is None else _with_the_rest(listed, prior, rows, rng)
    ways = prod(sizes[column] for column in unknown)
    told = f"Unknown columns can be filled in in {ways} ways, too many for a prior that is a function; give a Network."
    require(ways <= MOST_LISTED, told, TooLargeError)
    everything = np.repeat(rows[:, None], ways, axis=1)
    everything[:, :, list(unknown)] = np.array(list(product(*(range(sizes[column]) for column in unknown))))
    chances = np.asarray(prior(everything.reshape(-1, rows.shape[1])), dtype=float).reshape(len(rows), ways)
    possible = np.all(chances >= 0) and np.all(np.isfinite(chances)) and np.all(chances.sum(axis=1) > 0)
    PriorError.unless(possible, "A prior gives every row a chance of at least 0, and more to some way to fill it in.")
    chances = chances / chances.sum(axis=1, keepdims=True)
    return Candidates(everything, chances, chances, unknown, complete=True)


def _likeliest(network: Network, rows: IntArray, unknown: tuple[int, ...], most: int) -> Candidates:
    """Exact: a beginning of a row is kept if its best completion is among the `most` best.

    Each of the likeliest rows is then kept to its end, since the beginnings that go before its own belong to as many
    likelier rows.
    """
    total, _ = _eliminated(network, rows, unknown, np.add.reduce)
    value, factors = _eliminated(network, rows, unknown, np.maximum.reduce)
    listed, values = rows[:, None].copy(), value[:, None]
    people = np.arange(len(rows))[:, None]
    for column in (c for c in network.order if c in unknown):
        factor = factors[column] / factors[column].max(axis=-1, keepdims=True)
        # A known parent's axis has length 1.
        places = tuple(listed[:, :, c] if c in unknown else 0 for c in network.parents[column])
        chances = values[:, :, None] * factor[(people, *places)]
        flat = chances.reshape(len(rows), -1)
        kept = np.argsort(-flat, axis=1, kind="stable")[:, :most]
        values = np.take_along_axis(flat, kept, axis=1)
        begun, code = np.divmod(kept, network.sizes[column])
        listed = listed[people, begun].copy()
        listed[:, :, column] = code
    ways = prod(network.sizes[column] for column in unknown)
    chances = values / total[:, None]
    return Candidates(listed, chances, chances, unknown, complete=ways <= most)


def _with_the_rest(listed: Candidates, network: Network, rows: IntArray, rng: np.random.Generator) -> Candidates:
    """As many draws as there are candidates, those that are not among them added with the rest's weight shared out."""
    people, width = listed.prior.shape
    total, factors = _eliminated(network, rows, listed.unknown, np.add.reduce)
    drawn = np.repeat(rows[:, None], width, axis=1)
    who = np.arange(people)[:, None]
    for column in (c for c in network.order if c in listed.unknown):
        places = tuple(drawn[:, :, c] if c in listed.unknown else 0 for c in network.parents[column])
        summed = np.cumsum(factors[column][(who, *places)], axis=2)
        drawn[:, :, column] = (summed < rng.random((people, width, 1)) * summed[:, :, -1:]).sum(axis=2)
    chances = np.exp(network.log_probability(drawn.reshape(-1, rows.shape[1]))).reshape(people, width) / total[:, None]
    new = chances < listed.prior.min(axis=1, keepdims=True) * (1 - 1e-9)  # all others are listed
    first = np.argsort(~new, axis=1, kind="stable")[:, : new.sum(axis=1).max()]
    new, chances = (np.take_along_axis(held, first, axis=1) for held in (new, chances))
    drawn = drawn[who, first]
    rest = np.maximum(1 - listed.prior.sum(axis=1, keepdims=True), 0)
    shares = np.where(new, rest / np.maximum(new.sum(axis=1, keepdims=True), 1), 0.0)
    return Candidates(
        np.concatenate([listed.rows, drawn], axis=1),
        np.concatenate([listed.prior, np.where(new, chances, 0.0)], axis=1),
        np.concatenate([listed.weight, shares], axis=1),
        listed.unknown,
        complete=False,
    )


def _eliminated(
    network: Network, rows: IntArray, unknown: tuple[int, ...], reduce: Callable[..., FloatArray]
) -> tuple[FloatArray, dict[int, FloatArray]]:
    """Sums (or maxima) of P(x) over the unknown columns, for each row, and each column's factor on the way there.

    A factor has an axis for the rows, one for each parent, one for the column itself; that of a known column has
    length 1. Columns are taken last first, and what is left of one is passed to its latest parent.
    """
    total = np.ones(len(rows))
    waiting: dict[int, list[FloatArray]] = {column: [] for column in network.order}
    factors: dict[int, FloatArray] = {}
    for column in reversed(network.order):
        factor = _factor(network, column, rows, unknown)
        for message in waiting[column]:
            factor = factor * message
        factors[column] = factor
        left = reduce(factor, axis=-1)
        home = network.home[column]
        if home is None:
            total = total * left
        else:
            waiting[home].append(_aligned(left, network.parents[column], (*network.parents[home], home)))
    return total, factors


def _factor(network: Network, column: int, rows: IntArray, unknown: tuple[int, ...]) -> FloatArray:
    """The chances of a column's values given its parents', at what is known of each row."""
    axes = (*network.parents[column], column)
    index = []
    for place, c in enumerate(axes):
        shape = [1] * (1 + len(axes))
        shape[1 + place if c in unknown else 0] = -1
        index.append((np.arange(network.sizes[c]) if c in unknown else rows[:, c]).reshape(shape))
    lengths = (network.sizes[c] if c in unknown else 1 for c in axes)
    return np.broadcast_to(network.tables[column][tuple(index)], (len(rows), *lengths))


def _aligned(message: FloatArray, own: tuple[int, ...], axes: tuple[int, ...]) -> FloatArray:
    """A message over some columns as a factor over more of them: axes in their order, of length 1 where it has none."""
    present = [c for c in axes if c in own]
    turned = message.transpose(0, *(1 + own.index(c) for c in present))
    lengths = dict(zip(present, turned.shape[1:], strict=True))
    return turned.reshape(len(message), *(lengths.get(c, 1) for c in axes))
