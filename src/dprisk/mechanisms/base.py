"""What every mechanism can do: a channel from one person's record to an output."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, TooLargeError, as_epsilon, require
from dprisk.guarantees import ApproxDP, Guarantee, PureDP, TradeOff
from dprisk.guarantees.curves import Knots, lower_hull
from dprisk.types import AnyArray, FloatArray, IntArray

PAIRWISE_CELLS = 1 << 20  # beyond this many entries the curves of all pairs of records are not drawn
LISTED_CELLS = 1 << 28  # beyond this many entries a channel is not gone through
MATRIX_CELLS = 1 << 26  # 512 MB: the largest channel that is ever held in one piece


class Mechanism(ABC):
    """A randomised release of one record out of `size`, everybody else's data fixed.

    A mechanism samples outputs and knows the likelihood of each. One with finitely many outputs can also list
    them, and is then known exactly: its columns, its true epsilon, delta and total variation, all under
    replacement of one record.
    """

    size: int
    labels: tuple[Any, ...] | None = None

    @abstractmethod
    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        """One output for each record, the outputs along the first axis."""

    @abstractmethod
    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        """log P(output | record) for each output (rows) and every record (columns)."""

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        """log P(output | record), outputs x some records, up to a number that depends on the output only."""
        return self.log_likelihood(outputs)[:, records]

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray]:
        """Which of some records (its place among them) is likeliest, and the lead of its log-likelihood."""
        return leads(self.scores(outputs, records))

    @abstractmethod
    def with_epsilon(self, epsilon: float) -> Mechanism:
        """The same kind of mechanism with another privacy parameter."""

    def labelled(self, labels: Iterable[Any] | None) -> Self:
        """The same with a name for each record; a prior with labels must then list the same ones in the same order."""
        named = copy.copy(self)
        named.labels = None if labels is None else tuple(labels)
        require(
            named.labels is None or len(named.labels) == self.size,
            f"{len(named.labels or ())} labels for {self.size} records; give each record its own.",
            MechanismError,
        )
        return named

    @property
    def n_outputs(self) -> float:
        """How many outputs there are; infinite if they cannot be listed."""
        return math.inf

    def outputs(self, block: int) -> Iterator[AnyArray]:
        """All outputs, in blocks of at most `block`, in the format of `sample`."""
        raise MechanismError(f"{self!r} has no finite list of outputs.")

    def channel(self, block: int) -> Iterator[FloatArray]:
        """All columns P(output | record), in blocks of shape (size, at most `block`)."""
        for outputs in self.outputs(block):
            yield np.exp(self.log_likelihood(outputs)).T

    def pairwise_epsilon(self) -> FloatArray:
        """The largest log-likelihood ratio of each record (rows) against each other one (columns)."""
        self._require_listable()
        largest = np.full((self.size, self.size), -np.inf)
        for columns in self.channel(max(1, (1 << 18) // self.size)):
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(columns)
                for record in range(self.size):
                    ratio = np.where(columns[record] > 0, logs[record] - logs, -np.inf)
                    largest[record] = np.maximum(largest[record], ratio.max(axis=1))
        return largest

    @property
    def is_listable(self) -> bool:
        """Whether the outputs are few enough to go through them all."""
        return self.n_outputs * self.size <= LISTED_CELLS

    def _require_listable(self) -> None:
        require(
            self.is_listable,
            f"{self!r} has {self.n_outputs:.3g} outputs for {self.size} records, too many to go through them all.",
            TooLargeError,
        )

    def matrix(self) -> FloatArray:
        """The whole channel as a row-stochastic matrix, records x outputs."""
        require(
            self.size * self.n_outputs <= MATRIX_CELLS,
            f"{self!r} has {self.size} x {self.n_outputs:.3g} entries, too many to hold at once.",
            TooLargeError,
        )
        return np.concatenate(list(self.channel(1 << 12)), axis=1)

    @property
    def epsilon(self) -> float:
        """The smallest epsilon for which the mechanism is epsilon-DP, infinite if there is none."""
        return self._largest_log_ratio

    @cached_property
    def _largest_log_ratio(self) -> float:
        largest = 0.0
        self._require_listable()
        for columns in self.channel(1 << 10):
            high, low = columns.max(axis=0), columns.min(axis=0)
            seen = high > 0
            if np.any(low[seen] == 0):
                return math.inf
            if np.any(seen):
                largest = max(largest, float((np.log(high[seen]) - np.log(low[seen])).max()))
        return largest

    def delta_at(self, epsilon: float) -> float:
        """The smallest delta for which the mechanism is (epsilon, delta)-DP.

        The largest hockey-stick divergence sum_theta (P(theta|z) - e^epsilon P(theta|z'))_+ over pairs of records.
        """
        epsilon = as_epsilon(epsilon)
        self._require_listable()
        worst = np.zeros((self.size, self.size))
        for columns in self.channel(max(1, (1 << 18) // self.size)):
            with np.errstate(divide="ignore", over="ignore"):
                scaled = np.exp(np.log(columns) + epsilon)
            for record in range(self.size):
                worst[record] += np.maximum(columns[record] - scaled, 0).sum(axis=1)
        return float(worst.max())

    @property
    def total_variation(self) -> float:
        """The largest total variation distance between the outputs of two records: delta_at(0)."""
        return self.delta_at(0.0)

    def guarantee(self) -> Guarantee:
        """What the channel promises of every pair of records: its trade-off curve.

        The curve is the lower convex envelope of the curves of all pairs (theory, gotcha 1). A channel too large for
        that is known by its epsilon only.
        """
        if self.size == 1:
            return PureDP(0.0)
        if not self.size**2 * self.n_outputs <= PAIRWISE_CELLS:
            return PureDP(self.epsilon) if math.isfinite(self.epsilon) else ApproxDP(0.0, 1.0)
        table = self.matrix()
        knots = [_pairwise_knots(table, record) for record in range(self.size)]
        alpha, beta = (np.concatenate(part) for part in zip(*knots, strict=True))
        return TradeOff(alpha, beta, linear=True, epsilon=self.epsilon)

    def sufficient(self) -> Mechanism:
        """A simpler mechanism whose output tells as much of the record: the law of a sufficient statistic.

        Every risk is the same for both. By default the mechanism itself.
        """
        return self

    def restricted(self, records: npt.ArrayLike) -> Mechanism | None:
        """The mechanism that reports what the output tells of some records, for these alone: they become 0, 1, ...

        It is a post-processing, and `scores` and `leads` of these records are the same for both. None, as by default,
        if no simpler mechanism than this one is known.
        """
        return None

    def _resized(self, records: npt.ArrayLike) -> Self:
        """The same over as many records as are given: the restriction to them if each has an entry of its own."""
        numbers = self._records(records)
        require(
            np.unique(numbers).size == numbers.size > 0,
            "A mechanism is restricted to at least one record, each given once.",
            MechanismError,
        )
        fewer = copy.copy(self)
        fewer.size, fewer.labels = numbers.size, None
        return fewer

    def post_process(self, output_map: npt.ArrayLike | Callable[[AnyArray], npt.ArrayLike]) -> Mechanism:
        """The mechanism followed by a map of its outputs (see `PostProcessed`)."""
        from dprisk.mechanisms.combined import PostProcessed

        return PostProcessed(self, output_map)

    def repeat(self, times: int) -> Mechanism:
        """`times` independent reports of the same record (see `Repeated`)."""
        from dprisk.mechanisms.combined import Repeated

        return Repeated(self, times)

    def to_dict(self) -> dict[str, Any]:
        """The mechanism's kind and parameters, ready for JSON."""
        return {"kind": type(self).__name__, "size": self.size, **self._parameters()}

    def _parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def __repr__(self) -> str:
        shown = {
            name: value if isinstance(value, str) else f"{value:.6g}" for name, value in self._parameters().items()
        }
        given = ", ".join(f"{name}={value}" for name, value in shown.items())
        return (
            f"{type(self).__name__}(size={self.size}, {given})" if given else f"{type(self).__name__}(size={self.size})"
        )

    def _records(self, records: npt.ArrayLike) -> IntArray:
        """Record numbers, checked."""
        numbers = np.atleast_1d(np.asarray(records))
        require(
            numbers.ndim == 1 and np.issubdtype(numbers.dtype, np.integer),
            "Records are given by their numbers, a list of whole numbers.",
            MechanismError,
        )
        require(
            numbers.size == 0 or bool(numbers.min() >= 0 and numbers.max() < self.size),
            f"Record numbers must lie in 0..{self.size - 1}.",
            MechanismError,
        )
        return numbers.astype(np.int64, copy=False)


def leads(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """The place of the largest score in each row of at least two, and how far it leads the second."""
    two = np.partition(scores, -2, axis=1)[:, -2:]
    possible = two[:, 1] > -np.inf  # for one of the records; otherwise none leads
    return scores.argmax(axis=1), np.subtract(two[:, 1], two[:, 0], where=possible, out=np.zeros(len(two)))


def _pairwise_knots(table: FloatArray, record: int) -> Knots:
    """The envelope of the trade-off curves of one record against every other: outputs in order of likelihood ratio."""
    own = np.broadcast_to(table[record], table.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(table > 0, own / table, np.inf)
    order = np.argsort(-ratio, axis=1, kind="stable")
    alpha = np.cumsum(np.take_along_axis(table, order, axis=1), axis=1)
    beta = 1 - np.cumsum(np.take_along_axis(own, order, axis=1), axis=1)
    return lower_hull(np.clip(alpha.ravel(), 0.0, 1.0), np.clip(beta.ravel(), 0.0, 1.0))
