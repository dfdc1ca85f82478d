"""Mechanisms made of mechanisms: repetition, two releases of one record, post-processing, a view of one attribute."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_whole, require
from dprisk.guarantees import Guarantee
from dprisk.mechanisms.base import PAIRWISE_CELLS, Mechanism
from dprisk.mechanisms.tabled import Matrix
from dprisk.mechanisms.vectors import VectorGaussian, as_vector_gaussian
from dprisk.types import AnyArray, FloatArray, IntArray


class Repeated(Mechanism):
    """`times` independent reports of the same record; an output holds them along its second axis.

    The order of the reports tells nothing, so outputs are listed by how often each report occurs:
    C(n + T - 1, T) columns instead of n^T.
    """

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        require(
            isinstance(mechanism, Mechanism), f"Only a mechanism can be repeated, not {mechanism!r}.", MechanismError
        )
        require(
            not isinstance(mechanism, Product),
            "Repeat the two parts of a product, then take the product: the release is the same.",
            MechanismError,
        )
        self.mechanism, self.times, self.size = mechanism, as_whole("times", times), mechanism.size

    @property
    def epsilon(self) -> float:
        return self.times * self.mechanism.epsilon

    def with_epsilon(self, epsilon: float) -> Repeated:
        """Each report gets epsilon / times."""
        return Repeated(self.mechanism.with_epsilon(epsilon / self.times), self.times)

    def pairwise_epsilon(self) -> FloatArray:
        return self.times * self.mechanism.pairwise_epsilon()

    def guarantee(self) -> Guarantee:
        """All pairs of records where that is feasible, otherwise the composition of the single guarantee."""
        listed = self.size**2 * self.n_outputs <= PAIRWISE_CELLS
        return super().guarantee() if listed else self.mechanism.guarantee().compose(self.times)

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        return np.stack([self.mechanism.sample(records, rng) for _ in range(self.times)], axis=1)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        reports = np.asarray(outputs)
        require(
            reports.ndim >= 2 and reports.shape[1] == self.times,
            f"An output of {self!r} holds {self.times} reports along its second axis.",
            MechanismError,
        )
        parts = (self.mechanism.log_likelihood(reports[:, turn]) for turn in range(self.times))
        total: FloatArray = np.sum(list(parts), axis=0)
        return total

    def sufficient(self) -> Mechanism:
        """Of Gaussian reports the law of their mean, whose noise is smaller by sqrt(times); otherwise itself."""
        single = as_vector_gaussian(self.mechanism.sufficient())
        if single is None:
            return self
        return VectorGaussian(single.means, single.sigma, single.steps * self.times).sufficient()

    @property
    def n_outputs(self) -> float:
        one = self.mechanism.n_outputs
        if not one < 1e9:
            return math.inf
        return float(math.comb(int(one) + self.times - 1, self.times)) if self.times < 1000 else math.inf

    def channel(self, block: int) -> Iterator[FloatArray]:
        single = self.mechanism.matrix()
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(single), -1e6)  # stands for log 0: exp of it is 0, and 0 times it is 0
        log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, self.times + 1)))])
        for reports in _batches(itertools.combinations_with_replacement(range(single.shape[1]), self.times), block):
            counts = np.zeros((single.shape[1], len(reports)))
            np.add.at(counts, (np.array(reports).T, np.arange(len(reports))), 1)
            ways = math.lgamma(self.times + 1) - log_factorial[counts.astype(int)].sum(axis=0)
            yield np.exp(logs @ counts + ways)

    def outputs(self, block: int) -> Iterator[AnyArray]:
        """One output for each count vector: the reports in the order of the single mechanism's list."""
        listed = np.concatenate(list(self.mechanism.outputs(1 << 12)))
        for reports in _batches(itertools.combinations_with_replacement(range(len(listed)), self.times), block):
            yield listed[np.array(reports)]

    def _parameters(self) -> dict[str, Any]:
        return {"mechanism": self.mechanism.to_dict(), "times": self.times}

    def __repr__(self) -> str:
        return f"Repeated({self.mechanism!r}, times={self.times})"


class Product(Mechanism):
    """Two independent releases of the same record; outputs are a pair: those of the first, those of the second.

    To release two attributes of a record, each by its own mechanism, take the product of two `OnAttribute`.
    """

    def __init__(self, first: Mechanism, second: Mechanism) -> None:
        for part in (first, second):
            require(isinstance(part, Mechanism), f"A product takes two mechanisms, not {part!r}.", MechanismError)
        require(
            first.size == second.size,
            f"Both mechanisms must take the same records: {first.size} and {second.size}.",
            MechanismError,
        )
        self.first, self.second, self.size = first, second, first.size

    def with_epsilon(self, epsilon: float) -> Product:
        """Splits epsilon between the two in their present proportion."""
        epsilon = as_epsilon(epsilon)
        one, two = self.first.epsilon, self.second.epsilon
        share = one / (one + two) if 0 < one + two < math.inf else 0.5
        return Product(self.first.with_epsilon(share * epsilon), self.second.with_epsilon((1 - share) * epsilon))

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> Any:
        return self.first.sample(records, rng), self.second.sample(records, rng)

    def log_likelihood(self, outputs: Any) -> FloatArray:
        require(
            isinstance(outputs, tuple) and len(outputs) == 2 and number_of(outputs[0]) == number_of(outputs[1]),
            f"Outputs of {self!r} are a pair of equally many outputs, the first's and the second's.",
            MechanismError,
        )
        return self.first.log_likelihood(outputs[0]) + self.second.log_likelihood(outputs[1])

    def sufficient(self) -> Mechanism:
        """Of two Gaussian releases one on the joint means, each scaled to the smaller noise; otherwise itself."""
        one, two = (as_vector_gaussian(part.sufficient()) for part in (self.first, self.second))
        if one is None or two is None:
            return self
        noise = min(one.noise, two.noise)
        joint = np.concatenate([part.means * (noise / part.noise) for part in (one, two)], axis=1)
        return VectorGaussian(joint, noise).sufficient()

    def guarantee(self) -> Guarantee:
        same = self.sufficient()
        return super().guarantee() if same is self else same.guarantee()

    @property
    def n_outputs(self) -> float:
        return self.first.n_outputs * self.second.n_outputs

    @cached_property
    def _largest_log_ratio(self) -> float:
        """The two ratios of a pair of records multiply, and their outputs are free to be the worst for both."""
        return float((self.first.pairwise_epsilon() + self.second.pairwise_epsilon()).max())

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

    def outputs(self, block: int) -> Iterator[Any]:
        rows, columns = self._sides(block)
        for one in self.first.outputs(rows):
            for two in self.second.outputs(columns):
                pairs = np.divmod(np.arange(number_of(one) * number_of(two)), number_of(two))
                yield take(one, pairs[0]), take(two, pairs[1])

    def _parameters(self) -> dict[str, Any]:
        return {"first": self.first.to_dict(), "second": self.second.to_dict()}

    def __repr__(self) -> str:
        return f"Product({self.first!r}, {self.second!r})"


class OnAttribute(Mechanism):
    """A mechanism that sees only one attribute of the record.

    `values[z]` is that attribute of record z: its number, or, with `labels`, one of the mechanism's record labels.

    >>> from dprisk.mechanisms import GRR
    >>> OnAttribute(GRR(2, epsilon=1.0), ["flu", "flu", "cold"], labels=["cold", "flu"]).values
    array([1, 1, 0])
    """

    def __init__(self, mechanism: Mechanism, values: Any, labels: Sequence[Any] | None = None) -> None:
        require(isinstance(mechanism, Mechanism), f"A mechanism is needed, not {mechanism!r}.", MechanismError)
        if labels is not None:
            number = {label: place for place, label in enumerate(labels)}
            unknown = [value for value in values if value not in number]
            require(not unknown, f"{unknown[:1]} is not among the labels.", MechanismError)
            values = [number[value] for value in values]
        self.mechanism = mechanism
        self.values = mechanism._records(values)
        self.size = self.values.size

    @property
    def epsilon(self) -> float:
        return self.mechanism.epsilon if self._sees_all else super().epsilon

    def delta_at(self, epsilon: float) -> float:
        return self.mechanism.delta_at(epsilon) if self._sees_all else super().delta_at(epsilon)

    @property
    def _sees_all(self) -> bool:
        """Whether every value occurs, so that the records tell apart all that the mechanism does."""
        return np.unique(self.values).size == self.mechanism.size

    def pairwise_epsilon(self) -> FloatArray:
        return self.mechanism.pairwise_epsilon()[np.ix_(self.values, self.values)]

    def guarantee(self) -> Guarantee:
        return self.mechanism.guarantee()

    def with_epsilon(self, epsilon: float) -> OnAttribute:
        return OnAttribute(self.mechanism.with_epsilon(epsilon), self.values)

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> Any:
        return self.mechanism.sample(self.values[self._records(records)], rng)

    def log_likelihood(self, outputs: Any) -> FloatArray:
        return self.mechanism.log_likelihood(outputs)[:, self.values]

    @property
    def n_outputs(self) -> float:
        return self.mechanism.n_outputs

    def channel(self, block: int) -> Iterator[FloatArray]:
        return (columns[self.values] for columns in self.mechanism.channel(block))

    def outputs(self, block: int) -> Iterator[Any]:
        return self.mechanism.outputs(block)

    def _parameters(self) -> dict[str, Any]:
        return {"mechanism": self.mechanism.to_dict()}

    def __repr__(self) -> str:
        return f"OnAttribute({self.mechanism!r}, {self.size} records)"


class PostProcessed(Matrix):
    """A mechanism followed by a map of its outputs.

    `output_map` gives a new output for each of the mechanism's, in the order in which it lists them: a list, or
    a function that is called with blocks of outputs. Equal values become one output; the new outputs are
    numbered in the sorted order of the values.
    """

    def __init__(self, mechanism: Mechanism, output_map: npt.ArrayLike | Callable[[AnyArray], npt.ArrayLike]) -> None:
        table = mechanism.matrix()
        require(
            not (callable(output_map) and isinstance(mechanism, Repeated)),
            "A repeated mechanism lists its outputs without their order, so a function of them may go wrong; "
            "give a value for each listed output, or use Product.",
            MechanismError,
        )
        if callable(output_map):
            images = np.concatenate([np.atleast_1d(output_map(block)) for block in mechanism.outputs(1 << 12)])
        else:
            images = np.asarray(output_map)
        require(
            images.shape == (table.shape[1],),
            f"The map must give one value for each of the {table.shape[1]} outputs, got shape {images.shape}.",
            MechanismError,
        )
        self.values, code = np.unique(images, return_inverse=True)
        merged = np.zeros((self.values.size, table.shape[0]))
        np.add.at(merged, code, table.T)
        super().__init__(merged.T)
        self.mechanism, self.output_map = mechanism, output_map

    def with_epsilon(self, epsilon: float) -> PostProcessed:
        return PostProcessed(self.mechanism.with_epsilon(epsilon), self.output_map)

    def _parameters(self) -> dict[str, Any]:
        return {"mechanism": self.mechanism.to_dict(), "outputs": self.values.size}

    def __repr__(self) -> str:
        return f"PostProcessed({self.mechanism!r}, {self.values.size} outputs)"


def _batches(items: Iterator[Any], block: int) -> Iterator[list[Any]]:
    while batch := list(itertools.islice(items, block)):
        yield batch


def number_of(outputs: Any) -> int:
    """How many outputs there are, also in the nested pairs of products."""
    return number_of(outputs[0]) if isinstance(outputs, tuple) else len(np.atleast_1d(outputs))


def take(outputs: Any, which: slice | IntArray) -> Any:
    """Some of the outputs, also in the nested pairs of products."""
    if isinstance(outputs, tuple):
        return tuple(take(part, which) for part in outputs)
    return np.atleast_1d(outputs)[which]
