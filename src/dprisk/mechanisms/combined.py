"""Mechanisms made of mechanisms: two releases of one record, post-processing, a view of one attribute."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_number, fail
from dprisk.guarantees import Guarantee, TradeOff
from dprisk.guarantees.curves import product
from dprisk.mechanisms.arrays import require_listed_records
from dprisk.mechanisms.base import Made, Mechanism, Repeated, Wrapped, require_mechanism
from dprisk.mechanisms.tabled import Matrix
from dprisk.mechanisms.vectors import VectorGaussian, as_vector_gaussian
from dprisk.tables import listed
from dprisk.types import AnyArray, FloatArray, IntArray
from dprisk.values import Parameter

SMALLEST = 1e-290  # a probability that still has all its digits


class Product(Made):
    """Two independent releases of the same record; outputs are a pair: those of the first, those of the second.

    To release two attributes of a record, each by its own mechanism, take the product of two `OnAttribute`.
    """

    pairs_outputs = True

    def __init__(self, first: Mechanism, second: Mechanism) -> None:
        for part in (first, second):
            require_mechanism(part)
            require_listed_records(part)
        if first.size != second.size:
            raise MechanismError(f"Both mechanisms must take the same records: {first.size} and {second.size}.")
        if not (None in (first.labels, second.labels) or first.labels == second.labels):
            raise MechanismError("Both mechanisms must name the same records in the same order; their labels differ.")
        self.first, self.second, self.size = first, second, first.size
        self.labels = second.labels if first.labels is None else first.labels

    @property
    def is_equispaced(self) -> bool:
        return self.first.is_equispaced or self.second.is_equispaced

    @property
    def parameter(self) -> Parameter | None:
        """The sum of both where they add up, as epsilons do; otherwise that of the first. None if they differ."""
        one, two = self.first.parameter, self.second.parameter
        if one is None or two is None or one.name != two.name:
            return None
        value = one.value + two.value if one.adds_up else one.value
        return replace(one, value=value, jumps=one.jumps or two.jumps, wavers=one.wavers or two.wavers)

    def with_parameter(self, value: float) -> Self:
        """Both turned together, in their present proportion."""
        one, two, both = self.first.parameter, self.second.parameter, self.parameter
        if one is None or two is None or both is None:
            fail(f"The parts of {self!r} have no parameter in common to set.", MechanismError)
        value = as_number("The parameter", value)
        if both.adds_up:
            share = one.value / both.value if 0 < both.value < math.inf else 0.5
            values = share * value, (1 - share) * value
        else:
            values = value, value * (two.value / one.value)
        return self.replace(first=self.first.with_parameter(values[0]), second=self.second.with_parameter(values[1]))

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> Any:
        return self.first.sample(records, rng), self.second.sample(records, rng)

    def log_likelihood(self, outputs: Any) -> FloatArray:
        if not (isinstance(outputs, tuple) and len(outputs) == 2 and number_of(outputs[0]) == number_of(outputs[1])):
            raise MechanismError(f"Outputs of {self!r} are a pair of equally many, the first's and the second's.")
        return self.first.log_likelihood(outputs[0]) + self.second.log_likelihood(outputs[1])

    def _simpler(self) -> Mechanism | None:
        """Of two Gaussian releases one on the joint means, each scaled to the smaller noise."""
        one, two = (as_vector_gaussian(part.sufficient()) for part in (self.first, self.second))
        if one is None or two is None:
            return None
        noise = min(one.noise, two.noise)
        joint = np.concatenate([part.means * (noise / part.noise) for part in (one, two)], axis=1)
        return VectorGaussian(joint, noise).sufficient()

    @property
    def n_outputs(self) -> float:
        return self.first.n_outputs * self.second.n_outputs

    @property
    def merges_outputs(self) -> bool:
        return self.first.merges_outputs or self.second.merges_outputs

    def guarantee(self) -> Guarantee:
        """All pairs of records where that is feasible, otherwise the product of the curves of both parts."""
        if self._lists_pairs or self.sufficient() is not self:
            return super().guarantee()
        curve = product(self.first.guarantee().knots, self.second.guarantee().knots)
        return TradeOff(*curve, linear=True, epsilon=self.epsilon)

    @property
    def promised(self) -> Guarantee | None:
        parts = self.first, self.second
        if all(part.promised is None for part in parts):
            return None
        one, two = (part.promised or part.guarantee() for part in parts)
        return one.compose(two)

    @cached_property
    def epsilon(self) -> float:
        """The two ratios of a pair of records multiply, and their outputs are free to be the worst for both."""
        return float(self.pairwise_epsilon().max())

    def pairwise_epsilon(self) -> FloatArray:
        return self.first.pairwise_epsilon() + self.second.pairwise_epsilon()

    def _sides(self, block: int) -> tuple[int, int]:
        """Block sizes at which all outputs of the second come with each of the first, in that order."""
        if self.second.n_outputs <= block:
            return max(1, block // int(self.second.n_outputs)), int(self.second.n_outputs)
        return 1, block

    def channel(self, block: int) -> Iterator[FloatArray]:
        rows, columns = self._sides(block)
        for one in self.first.channel(rows):
            for two in self.second.channel(columns):
                yield (one[:, :, None] * two[:, None, :]).reshape(self.size, -1)

    def log_channel(self, block: int) -> Iterator[FloatArray]:
        rows, columns = self._sides(block)
        for one in self.first.log_channel(rows):
            for two in self.second.log_channel(columns):
                yield (one[:, :, None] + two[:, None, :]).reshape(self.size, -1)

    def outputs(self, block: int) -> Iterator[Any]:
        rows, columns = self._sides(block)
        for one in self.first.outputs(rows):
            for two in self.second.outputs(columns):
                pairs = np.divmod(np.arange(number_of(one) * number_of(two)), number_of(two))
                yield take(one, pairs[0]), take(two, pairs[1])


class OnAttribute(Wrapped):
    """A mechanism that sees only one attribute of the record.

    `values[z]` is that attribute of record z, as the number of one of the mechanism's own records. Its `labels` name
    the records z, like those of every mechanism; `by_label` takes the attribute by the names that the mechanism has.

    >>> from dprisk.mechanisms import GRR
    >>> OnAttribute(GRR(2, epsilon=1.0), [1, 1, 0])
    OnAttribute(mechanism=GRR(size=2, epsilon=1), values=[1, 1, 0])
    """

    def __init__(self, mechanism: Mechanism, values: npt.ArrayLike) -> None:
        require_mechanism(mechanism)
        require_listed_records(mechanism)
        self.mechanism = mechanism
        self.values = mechanism._records(values)
        self.pairs_outputs = mechanism.pairs_outputs
        self.size = self.values.size

    @classmethod
    def by_label(cls, mechanism: Mechanism, values: Iterable[Any]) -> Self:
        """The same with the attribute of each record by its name, which is a label of the mechanism.

        >>> from dprisk.mechanisms import GRR
        >>> illness = GRR(2, epsilon=1.0).labelled(["cold", "flu"])
        >>> OnAttribute.by_label(illness, ["flu", "flu", "cold"]).values
        array([1, 1, 0])
        """
        require_mechanism(mechanism)
        if mechanism.labels is None:
            fail(
                f"{mechanism!r} has no labels; name its records by labelled(...), or give their numbers.",
                MechanismError,
            )
        number = {label: place for place, label in enumerate(mechanism.labels)}
        entries = listed(values)
        unknown = [value for value in entries if value not in number]
        MechanismError.unless(not unknown, f"{unknown[:1]} is not among the labels of the mechanism.")
        return cls(mechanism, [number[value] for value in entries])

    @cached_property
    def epsilon(self) -> float:
        if self._sees_all:
            return self.mechanism.epsilon
        same = self.sufficient()
        return float(self._seen_pairs().max()) if same is self else same.epsilon

    def _seen_pairs(self) -> FloatArray:
        """`pairwise_epsilon` for the attributes that occur."""
        seen = np.unique(self.values)
        return self.mechanism.pairwise_epsilon()[np.ix_(seen, seen)]

    def delta_at(self, epsilon: float) -> float:
        return self.mechanism.delta_at(epsilon) if self._sees_all else super().delta_at(epsilon)

    @property
    def _sees_all(self) -> bool:
        """Whether every value occurs, so that the records tell apart all that the mechanism does."""
        return np.unique(self.values).size == self.mechanism.size

    def pairwise_epsilon(self) -> FloatArray:
        return self.mechanism.pairwise_epsilon()[np.ix_(self.values, self.values)]

    def guarantee(self) -> Guarantee:
        """That of the records that it tells apart, where that is known without a list; otherwise of all."""
        return self.mechanism.guarantee() if self._sees_all or self.sufficient() is self else super().guarantee()

    @property
    def guarantee_is_exact(self) -> bool:
        if self._sees_all:
            return self.mechanism.guarantee_is_exact
        return self.sufficient() is not self and super().guarantee_is_exact

    def _simpler(self) -> Mechanism | None:
        return self.mechanism.sufficient().viewed(self.values)

    is_equispaced = False  # the labels are those of the records, not of the attribute

    def laws(self) -> tuple[Mechanism, IntArray]:
        return self.mechanism.sufficient(), self.values

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> Any:
        return self.mechanism.sample(self.values[self._records(records)], rng)

    def log_likelihood(self, outputs: Any) -> FloatArray:
        return self.mechanism.log_likelihood(outputs)[:, self.values]

    @property
    def n_outputs(self) -> float:
        return self.mechanism.n_outputs

    def channel(self, block: int) -> Iterator[FloatArray]:
        return (columns[self.values] for columns in self.mechanism.channel(block))

    def log_channel(self, block: int) -> Iterator[FloatArray]:
        return (columns[self.values] for columns in self.mechanism.log_channel(block))

    def outputs(self, block: int) -> Iterator[Any]:
        return self.mechanism.outputs(block)


class PostProcessed(Wrapped, Matrix):
    """A mechanism followed by a map of its outputs.

    `output_map` gives a new output for each of the mechanism's, in the order in which it lists them: a list, or
    a function that is called with blocks of outputs. Equal values become one output; the new outputs are
    numbered in the sorted order of the values. Where the mechanism lists outputs without end as one, what a function
    makes of those that are not listed is not known, and the `epsilon` is that of the mechanism.
    """

    def __init__(self, mechanism: Mechanism, output_map: npt.ArrayLike | Callable[[AnyArray], npt.ArrayLike]) -> None:
        require_mechanism(mechanism)
        require_listed_records(mechanism)
        table = mechanism.matrix()
        MechanismError.unless(
            not (callable(output_map) and isinstance(mechanism, Repeated)),
            "A repeated mechanism lists its outputs without their order, so a function of them may go wrong; "
            "give a value for each listed output, or use Product.",
        )
        if callable(output_map):
            images = np.concatenate([np.atleast_1d(output_map(block)) for block in mechanism.outputs(1 << 12)])
        else:
            images = np.asarray(output_map)
        MechanismError.unless(
            images.shape == (table.shape[1],),
            f"The map must give one value for each of the {table.shape[1]} outputs, got shape {images.shape}.",
        )
        self.values, self._image = np.unique(images, return_inverse=True)
        merged = np.zeros((self.values.size, table.shape[0]))
        np.add.at(merged, self._image, table.T)
        super().__init__(merged.T)
        self.mechanism, self.labels = mechanism, mechanism.labels
        self._is_partly_seen = callable(output_map) and mechanism.merges_outputs

    @property
    def merges_outputs(self) -> bool:
        return self._is_partly_seen

    @cached_property
    def epsilon(self) -> float:
        return self.mechanism.epsilon if self._is_blurred else super().epsilon

    def pairwise_epsilon(self) -> FloatArray:
        return self.mechanism.pairwise_epsilon() if self._is_blurred else super().pairwise_epsilon()

    def delta_at(self, epsilon: float) -> float:
        return 0.0 if as_epsilon(epsilon) >= self.epsilon else super().delta_at(epsilon)

    def log_channel(self, block: int) -> Iterator[FloatArray]:
        """In one piece: added up in logarithms from those of the mechanism."""
        logs = np.concatenate(list(self.mechanism.log_channel(1 << 12)), axis=1)
        merged = np.full((self.values.size, self.size), -np.inf)
        np.logaddexp.at(merged, self._image, logs.T)
        return iter([merged.T])

    @property
    def _is_blurred(self) -> bool:
        """Whether the table does not tell every ratio: outputs are missing, or probabilities too small for floats."""
        possible = self._table[:, self._table.max(axis=0) > 0]
        return self._is_partly_seen or bool(possible.min() < SMALLEST and math.isfinite(self.mechanism.epsilon))


def number_of(outputs: Any) -> int:
    """How many outputs there are, also in the nested pairs of products."""
    return number_of(outputs[0]) if isinstance(outputs, tuple) else len(np.atleast_1d(outputs))


def take(outputs: Any, which: slice | IntArray) -> Any:
    """Some of the outputs, also in the nested pairs of products."""
    if isinstance(outputs, tuple):
        return tuple(take(part, which) for part in outputs)
    return np.atleast_1d(outputs)[which]
