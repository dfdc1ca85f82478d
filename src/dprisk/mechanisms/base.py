"""What every mechanism can do: a channel from one person's record to an output, once or several times."""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, TooLargeError, as_epsilon, as_number, as_whole
from dprisk.guarantees import ApproxDP, Guarantee, PureDP, TradeOff
from dprisk.guarantees.curves import likeliest_first
from dprisk.mechanisms.arrays import hockey_sticks, largest_log_ratios, record_numbers, require_listed_records
from dprisk.mechanisms.counts import by_counts, count_vectors, lists_of_reports, log_by_counts
from dprisk.mechanisms.reports import sample_reports, sum_over_reports
from dprisk.tables import listed, twice
from dprisk.types import AnyArray, FloatArray, IntArray
from dprisk.values import Adjustable, Parameter, content, refuse_kind, told_of, written

PAIRWISE_CELLS = 1 << 20  # beyond this many entries the curves of all pairs of records are not drawn
LISTED_CELLS = 1 << 28  # beyond this many entries a channel is not gone through
MATRIX_CELLS = 1 << 26  # 512 MB: the largest channel that is ever held in one piece


class Mechanism(Adjustable):
    """A randomised release of one record out of `size`, everybody else's data fixed.

    A mechanism samples outputs and knows the likelihood of each. One with finitely many outputs can also list
    them, and is then known exactly: its columns, its true epsilon, delta and total variation, all under
    replacement of one record. It is a value: methods that return a mechanism return another one, over records of the
    same names.
    """

    size: int
    labels: tuple[Any, ...] | None = None
    pairs_outputs: bool = False  # whether outputs are a pair of arrays, as those of a product are

    @abstractmethod
    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        """One output for each record, the outputs along the first axis."""

    @abstractmethod
    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        """log P(output | record) for each output (rows) and every record (columns)."""

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        """log P(output | record), outputs x some records, up to a number that depends on the output only."""
        return self.log_likelihood(outputs)[:, records]

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray] | None:
        """Which of some records is likeliest, and by how much, where that takes less than their scores; else None."""
        return None

    def labelled(self, labels: Iterable[Any] | None) -> Self:
        """The same with a name for each record; a prior with labels must then list the same ones in the same order."""
        names = None if labels is None else tuple(labels if isinstance(labels, str) else listed(labels))
        if names == self.labels:
            return self
        for again in twice(names or ()):
            raise MechanismError(f"The label {again!r} appears twice; each record needs its own.")
        return self._with({"labels": names})

    def _with(self, state: dict[str, Any]) -> Self:
        labels = state.get("labels")
        if labels is not None and len(labels) != self.size:
            raise MechanismError(f"{len(labels)} labels for {self.size} records; give each record its own.")
        return super()._with(state)

    def repeat(self, times: int) -> Repeated:
        """`times` independent reports of the same record (see `Repeated`)."""
        return Repeated(self, times)

    def sufficient(self) -> Mechanism:
        """A simpler mechanism whose output tells as much of the record: the law of a sufficient statistic.

        Every risk is the same for both. The mechanism itself if no simpler one is known.
        """
        simple = self._simpler()
        return self if simple is None else simple.labelled(self.labels)

    def _simpler(self) -> Mechanism | None:
        """What `sufficient` returns, labels aside."""
        return None

    def averaged(self, times: int) -> Mechanism | None:
        """The law of a statistic of so many reports that tells as much as all of them; None if none is known."""
        return None

    def viewed(self, values: IntArray) -> Mechanism | None:
        """The same for records of which it sees an attribute: `values[z]` is the number of its own record that z has.

        None if nothing simpler is known than a view of one attribute (`OnAttribute`).
        """
        return None

    @property
    def is_equispaced(self) -> bool:
        """Whether it was told only how many records there are, and takes them to rise in equal steps."""
        return bool(np.isscalar(self._arguments.get("positions")))

    def laws(self) -> tuple[Mechanism, IntArray]:
        """A mechanism with one record for each law of an output that tells as much, and the law that each record has.

        Itself and the records' own numbers, unless some are known to share a law.
        """
        return self, np.arange(self.size)

    def restricted(self, records: npt.ArrayLike) -> Mechanism | None:
        """The mechanism that reports what the output tells of some records, for these alone: they become 0, 1, ...

        It is a post-processing, and `scores` of these records are the same for both. None if no simpler
        mechanism than this one is known.
        """
        numbers = self._records(records)
        if not np.unique(numbers).size == numbers.size > 0:
            raise MechanismError("A mechanism is restricted to at least one record, each given once.")
        fewer = self._restricted(numbers.size)
        labels = None if self.labels is None else [self.labels[number] for number in numbers]
        return None if fewer is None else fewer.labelled(labels)

    def _restricted(self, size: int) -> Mechanism | None:
        """What `restricted` returns for so many records, where all records are alike."""
        return None

    @property
    def n_outputs(self) -> float:
        """How many outputs there are; infinite if they cannot be listed."""
        return math.inf

    @property
    def merges_outputs(self) -> bool:
        """Whether outputs without end are listed as one, as the far tails of noise on whole numbers are."""
        return False

    def outputs(self, block: int) -> Iterator[AnyArray]:
        """All outputs, in blocks of at most `block`, in the format of `sample`."""
        raise MechanismError(f"{self!r} has no finite list of outputs.")

    def channel(self, block: int) -> Iterator[FloatArray]:
        """All columns P(output | record), in blocks of shape (size, at most `block`)."""
        for outputs in self.outputs(block):
            yield np.exp(self.log_likelihood(outputs)).T

    def log_channel(self, block: int) -> Iterator[FloatArray]:
        """The logarithms of `channel`, also where it is too small for floats."""
        return (self.log_likelihood(outputs).T for outputs in self.outputs(block))

    def pairwise_epsilon(self) -> FloatArray:
        """The largest log-likelihood ratio of each record (rows) against each other one (columns)."""
        self._require_listable()
        largest = np.full((self.size, self.size), -np.inf)
        for outputs in self.outputs(max(1, (1 << 18) // self.size)):
            largest = np.maximum(largest, largest_log_ratios(self.log_likelihood(outputs).T))
        return largest

    @property
    def is_listable(self) -> bool:
        """Whether the outputs are few enough to go through them all."""
        return self.n_outputs * self.size <= LISTED_CELLS

    def _require_listable(self) -> None:
        if not self.is_listable:
            many = f"{self.n_outputs:.3g} outputs for {self.size} records"
            raise TooLargeError(f"{self!r} has {many}, too many to go through.")

    def matrix(self) -> FloatArray:
        """The whole channel as a row-stochastic matrix, records x outputs."""
        if self.size * self.n_outputs > MATRIX_CELLS:
            raise TooLargeError(f"{self!r} has {self.size} x {self.n_outputs:.3g} entries, too many to hold at once.")
        return np.concatenate(list(self.channel(1 << 12)), axis=1)

    @cached_property
    def epsilon(self) -> float:
        """The smallest epsilon for which the mechanism is epsilon-DP, infinite if there is none."""
        largest = 0.0
        self._require_listable()
        for columns in self.channel(1 << 10):
            high, low = columns.max(axis=0), columns.min(axis=0)
            if np.any((low == 0) & (high > 0)):
                return math.inf
            largest = max(largest, float((np.log(high[low > 0]) - np.log(low[low > 0])).max(initial=0.0)))
        return largest

    def epsilon_at(self, delta: float) -> float:
        """An epsilon that goes with a delta; the smallest at delta 0."""
        return self.epsilon if delta == 0 else self.guarantee().epsilon_at(delta)

    def delta_at(self, epsilon: float) -> float:
        """The smallest delta for which the mechanism is (epsilon, delta)-DP.

        The largest hockey-stick divergence sum_theta (P(theta|z) - e^epsilon P(theta|z'))_+ over pairs of records.
        """
        epsilon = as_epsilon(epsilon)
        self._require_listable()
        worst = np.zeros((self.size, self.size))
        for columns in self.channel(max(1, (1 << 18) // self.size)):
            worst += hockey_sticks(columns, epsilon)
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
        if not self._lists_pairs:
            return PureDP(self.epsilon) if math.isfinite(self.epsilon) else ApproxDP(0.0, 1.0)
        table = self.matrix()
        alpha, beta = map(np.concatenate, zip(*(likeliest_first(table, z) for z in range(self.size)), strict=True))
        return TradeOff(alpha, beta, linear=True, epsilon=self.epsilon)

    @property
    def guarantee_is_exact(self) -> bool:
        """Whether `guarantee` is the curve of these records up to rounding, and not just one below it."""
        return self._lists_pairs

    @property
    def _lists_pairs(self) -> bool:
        return self.size**2 * self.n_outputs <= PAIRWISE_CELLS

    @property
    def promised(self) -> Guarantee | None:
        """What is promised of any record, where others than those listed may be told apart better; otherwise None."""
        return None

    @property
    def guarantee_is_quick(self) -> bool:
        """Whether `guarantee` costs no more than going through the outputs once."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The mechanism's kind, and what it was made with or chose itself, ready for JSON; long lists are left out."""
        told = {"kind": type(self).__name__, "size": self.size}
        turned = {} if self.parameter is None else {self.parameter.name: self.parameter.value}
        for name, entry in inspect.signature(type(self)).parameters.items():
            value = turned.get(name, getattr(self, name, self._arguments.get(name)))
            if name in self._arguments or (value is not None and content(value) != content(entry.default)):
                told[name] = told_of(value)
        return told

    @cached_property
    def _content(self) -> Any:
        return super()._content, content(self.labels)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"labels": self.labels}

    def _code(self, write: Callable[[Any], str]) -> str:
        code = super()._code(write)
        named = "labels" in self._put and "<" not in code and write is written  # a heading does without names
        return f"{code}.labelled({written(self.labels)})" if named else code

    def _records(self, records: npt.ArrayLike) -> IntArray:
        return record_numbers(records, self.size)


class Made(Mechanism):
    """Made of other mechanisms: what a sufficient statistic of it promises is what it promises."""

    def delta_at(self, epsilon: float) -> float:
        """The smallest delta; where the outputs cannot be listed, what the guarantee tells, which is at least it."""
        same = self.sufficient()
        if same is not self:
            return same.delta_at(epsilon)
        return super().delta_at(epsilon) if self.is_listable else self.guarantee().delta_at(epsilon)

    def guarantee(self) -> Guarantee:
        same = self.sufficient()
        return super().guarantee() if same is self else same.guarantee()

    @property
    def guarantee_is_exact(self) -> bool:
        same = self.sufficient()
        return super().guarantee_is_exact if same is self else same.guarantee_is_exact


class Wrapped(Made):
    """Made of another mechanism, whose parameter it has."""

    mechanism: Mechanism

    @property
    def merges_outputs(self) -> bool:
        return self.mechanism.merges_outputs

    @property
    def parameter(self) -> Parameter | None:
        return self.mechanism.parameter

    def with_parameter(self, value: float) -> Self:
        return self.replace(mechanism=self.mechanism.with_parameter(value))

    @property
    def promised(self) -> Guarantee | None:
        return self.mechanism.promised

    @property
    def is_equispaced(self) -> bool:
        return self.mechanism.is_equispaced


class Repeated(Wrapped):
    """`times` independent reports of the same record; an output holds them along its second axis.

    The order of the reports tells nothing, so outputs are listed by how often each report occurs:
    C(n + T - 1, T) columns instead of n^T.
    """

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        require_mechanism(mechanism)
        require_listed_records(mechanism)
        if mechanism.pairs_outputs:
            raise MechanismError("Repeat the two parts of a product, then take the product: the release is the same.")
        self.mechanism, self.times, self.size = mechanism, as_whole("times", times), mechanism.size
        self.labels = mechanism.labels

    @cached_property
    def epsilon(self) -> float:
        return self.times * self.mechanism.epsilon

    @property
    def parameter(self) -> Parameter | None:
        """That of a report; what adds up over the reports, such as epsilon, is that of all of them."""
        one = self.mechanism.parameter
        return replace(one, value=self.times * one.value) if one and one.adds_up else one

    def with_parameter(self, value: float) -> Self:
        value = as_number("The parameter", value)
        return super().with_parameter(value / self.times if self.parameter and self.parameter.adds_up else value)

    @property
    def promised(self) -> Guarantee | None:
        """By the epsilon, where there is one, which the curve of many reports does not tell; otherwise by the curve."""
        one = self.mechanism.promised
        pure = math.inf if one is None else one.epsilon_at(0.0)
        return (PureDP(pure) if pure < math.inf else one).compose(self.times) if one else None

    def pairwise_epsilon(self) -> FloatArray:
        return self.times * self.mechanism.pairwise_epsilon()

    def guarantee(self) -> Guarantee:
        """All pairs of records where that is feasible, otherwise the composition of the single guarantee."""
        return super().guarantee() if self._is_listed else self.mechanism.guarantee().compose(self.times)

    @property
    def guarantee_is_quick(self) -> bool:
        """Unless a curve is composed, which takes a privacy loss distribution."""
        return self._is_listed or not isinstance(self.mechanism.guarantee(), TradeOff)

    @property
    def _is_listed(self) -> bool:
        return self._lists_pairs or self.sufficient() is not self

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        return sample_reports(self.mechanism.sample, self._records(records), self.times, rng)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        reports = np.asarray(outputs)
        if not (reports.ndim >= 2 and reports.shape[1] == self.times):
            raise MechanismError(f"An output of {self!r} holds {self.times} reports along its second axis.")
        return sum_over_reports(self.mechanism.log_likelihood, reports, self.size)

    def _simpler(self) -> Mechanism | None:
        return self.mechanism.sufficient().averaged(self.times)

    @property
    def n_outputs(self) -> float:
        return count_vectors(self.mechanism.n_outputs, self.times)

    def channel(self, block: int) -> Iterator[FloatArray]:
        return by_counts(self.mechanism.matrix(), self.times, block)

    def log_channel(self, block: int) -> Iterator[FloatArray]:
        logs = np.concatenate(list(self.mechanism.log_channel(1 << 12)), axis=1)
        return log_by_counts(self.mechanism.matrix(), logs, self.times, block)

    def outputs(self, block: int) -> Iterator[AnyArray]:
        """One output for each count vector: the reports in the order of the single mechanism's list."""
        listed = np.concatenate(list(self.mechanism.outputs(1 << 12)))
        return (listed[reports] for reports in lists_of_reports(len(listed), self.times, block))


def require_mechanism(given: Any) -> None:
    """Refuse what is not a mechanism; of a kind of mechanisms one must be made first."""
    refuse_kind(given)
    MechanismError.unless(isinstance(given, Mechanism), f"A mechanism is needed, such as GRR(5, 1.0), not {given!r}.")
