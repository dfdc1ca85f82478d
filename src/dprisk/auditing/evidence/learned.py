"""Scores that are learned from pilot runs: what each record's outputs look like.

A learner is trained on pilot runs and gives a `Scorer`, which stays as it is from then on. `Frequencies` counts values
and bins, `Kernels` smooths numbers and short vectors, `Classifier` takes any classifier that tells probabilities.
Unless told, an audit tries the first two and keeps what promises more on pilot runs that were held out.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import as_objects, sortable
from dprisk.auditing.evidence.design import Scorer, leads
from dprisk.auditing.evidence.numbers import as_numbers, columns_of, rows_of
from dprisk.auditing.evidence.places import Ladder, quantiles
from dprisk.errors import ParameterError, TargetError, fail, require
from dprisk.tables import as_floats
from dprisk.types import AnyArray, BoolArray, FloatArray, IntArray

MOST_VALUES = 256  # distinct numbers beyond which they are put into bins
FEWEST_BINS, MOST_BINS = 8, 64
IN_A_BIN = 150  # numbers that should fall into one
SMOOTHING = 0.5  # added to each count
SMOOTH_BINS, SMOOTH_WIDTH = 512, 0.3  # of smoothed numbers; the width is a share of all, times n^(-1/5)
MOST_COLUMNS = 6  # of vectors that kernels are put on
MOST_POINTS, FEWEST_POINTS, ALL_POINTS = 500, 50, 4000  # kernels for each record, and for all of them
REACH = 3.0  # of a kernel, in standard deviations, times n^(-1/(d+4))
CELLS = 1 << 20  # distances that are held at once
FARTHEST = 1e30  # a coordinate beyond which kernels do not reach, and where fourth powers of squares overflow
HUGE = 1e100  # a number beyond which squares overflow
WAYS_EACH = 8  # ways to look for each output, beyond which a table of all of them takes longer
LEAST = 1e-12  # probability that a classifier is taken to mean at least


class Learner(ABC):
    """Learns from pilot runs how much an output speaks for each record."""

    @abstractmethod
    def learn(self, outputs: Any, records: IntArray) -> Scorer:
        """The scorer that so many outputs teach, one for each of these records."""

    def suits(self, outputs: Any) -> bool:
        """Whether outputs like these can be learned from."""
        return True


class Frequencies(Learner):
    """Frequencies of values and of bins of numbers, entry by entry: suits everything."""

    def learn(self, outputs: Any, records: IntArray) -> Scorer:
        return FrequencyScorer(outputs, records)


class Kernels(Learner):
    """Densities of numbers, and of vectors of up to six of them, whose entries may depend on each other."""

    def learn(self, outputs: Any, records: IntArray) -> Scorer:
        require(
            self.suits(outputs),
            f"Kernels need finite numbers below {HUGE:g}, or vectors of up to {MOST_COLUMNS}, with more than "
            f"{MOST_VALUES} distinct values each; leave out `scorer` for other outputs.",
            TargetError,
        )
        return FrequencyScorer(outputs, records, smooth=True) if outputs.ndim == 1 else KernelScorer(outputs, records)

    def suits(self, outputs: Any) -> bool:
        if not isinstance(outputs, np.ndarray) or outputs.dtype.kind not in "iuf" or outputs.ndim > 2:
            return False
        columns = columns_of(outputs)
        if outputs.ndim > 1 and not (
            1 <= len(columns) <= MOST_COLUMNS and np.all(np.abs(outputs.astype(float)) < HUGE)
        ):
            return False  # in one column odd numbers have places of their own
        return all(np.unique(column).size > MOST_VALUES for column in columns)


class Classifier(Learner):
    """Any classifier with `fit(X, y)`, `predict_proba(X)` and `classes_`, such as those of scikit-learn.

    A copy of it is trained on pilot runs: X are the outputs as rows of numbers, y the records. Its probabilities,
    divided by the shares of the records among those runs, are likelihoods up to a number that is the same for all. Its
    certificate is the better, the better calibrated they are; it is valid in any case.
    """

    def __init__(self, model: Any) -> None:
        for name in ("fit", "predict_proba"):
            require(callable(getattr(model, name, None)), f"A classifier needs a method {name}; {model!r} has none.")
        self.model = model

    def learn(self, outputs: Any, records: IntArray) -> Scorer:
        return ClassifierScorer(self.model, outputs, records)


class _Learned(Scorer):
    """What was learned about the records in `known`; the others have no scores.

    `kind` and `shape` are those of the outputs learned from. Of the same code some blocks of outputs may be numbers and
    some objects, because one of those is None: `_alike` makes them comparable.
    """

    known: IntArray
    kind: str
    shape: tuple[int, ...]

    def _learn(self, outputs: Any, records: IntArray) -> IntArray:
        """Note which records there are; the place among them of the record of each output."""
        require(len(outputs) == records.size > 0, "Learning needs a pilot run for each record.")
        self.kind, self.shape = outputs.dtype.kind, outputs.shape[1:]
        self.known, codes = np.unique(records, return_inverse=True)
        return codes

    def _alike(self, outputs: AnyArray) -> AnyArray:
        """Outputs as those learned from: numbers, and not a number for what is none of that shape, or objects."""
        if (outputs.dtype.kind == "O") == (self.kind == "O") and outputs.shape[1:] == self.shape:
            return outputs
        values = outputs.tolist()
        return as_objects(values) if self.kind == "O" else as_numbers(values, self.shape)

    def _places(self, records: IntArray) -> IntArray:
        return np.searchsorted(self.known, records)


class FrequencyScorer(_Learned):
    """Frequencies seen in pilot runs: of values, of bins of numbers, or of the entries of rows one by one.

    Entries of a row are treated as if they were independent given the record. `smooth` puts numbers into many bins and
    spreads each number over its neighbours.
    """

    may_draw = False

    def __init__(self, outputs: Any, records: IntArray, smooth: bool = False) -> None:
        codes = self._learn(outputs, records)
        self.smooth = smooth
        self.columns = [_Frequencies(column, codes, self.known.size, smooth) for column in columns_of(outputs)]

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        return self._total(self._codes(outputs), len(outputs), records)

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray]:
        """As from the scores; where outputs can look in few ways only, each way is scored once."""
        ways = tuple(column.table.shape[1] for column in self.columns)
        if not ways or math.prod(ways) > WAYS_EACH * len(outputs):
            return super().leads(outputs, records)
        look = self._look(outputs, ways)
        there = np.bincount(look) > 0
        some = np.flatnonzero(there)
        best, lead = leads(self._total(np.unravel_index(some, ways), some.size, records))
        place = (np.cumsum(there) - 1)[look]
        return best[place], lead[place]

    def _look(self, outputs: Any, ways: tuple[int, ...]) -> IntArray:
        """How each output looks, as one number."""
        if outputs.dtype == bool and outputs.shape[1:] == self.shape and all(known.are_bits for known in self.columns):
            return (rows_of(outputs) @ [math.prod(ways[place + 1 :]) for place in range(len(ways))]).astype(np.int64)
        return np.ravel_multi_index(self._codes(outputs), ways)

    def _codes(self, outputs: Any) -> tuple[IntArray, ...]:
        """How each output looks, column by column."""
        columns = columns_of(self._alike(outputs))
        return tuple(known.codes(column) for column, known in zip(columns, self.columns, strict=True))

    def _total(self, codes: tuple[IntArray, ...], count: int, records: IntArray) -> FloatArray:
        """The scores of so many outputs that look so."""
        total, places = np.zeros((records.size, count)), self._places(records)
        for known, code in zip(self.columns, codes, strict=True):
            total += known.table[places].take(code, axis=1)
        return total.T

    def describe(self) -> str:
        return "smoothed frequencies learned in pilot runs" if self.smooth else "frequencies learned in pilot runs"


class KernelScorer(_Learned):
    """The density of each record's outputs: the mean of kernels on some of its pilot outputs.

    The vectors are scaled so that the covariance within a record is the identity, which is what lets entries depend on
    each other. The kernel falls as (1 + d^2/r^2)^-4 with the distance d. Its tails are heavy, so that far from all
    pilot outputs no record leads.
    """

    may_draw = False

    def __init__(self, outputs: FloatArray, records: IntArray) -> None:
        codes = self._learn(outputs, records)
        vectors = rows_of(outputs)
        most = min(MOST_POINTS, max(FEWEST_POINTS, ALL_POINTS // self.known.size))
        inside = vectors - np.array([vectors[codes == code].mean(axis=0) for code in range(self.known.size)])[codes]
        variance, axes = np.linalg.eigh(inside.T @ inside / len(inside))
        self.scale: FloatArray = axes / np.sqrt(np.maximum(variance, 1e-9 * variance.max()))
        points = vectors @ self.scale
        self.points = [points[codes == code][:most] for code in range(self.known.size)]
        self.reach = REACH * most ** (-1 / (points.shape[1] + 4))

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        vectors = rows_of(self._alike(outputs))
        usual: BoolArray = np.all(np.abs(vectors) < HUGE, axis=1)  # an output with other entries says nothing
        scaled = np.where(usual[:, None], vectors, 0.0) @ self.scale
        usual &= np.all(np.abs(scaled) < FARTHEST, axis=1)
        scaled[~usual] = 0.0
        found = np.column_stack([self._log_density(scaled, self.points[place]) for place in self._places(records)])
        return np.where(usual[:, None], found, 0.0)

    def _log_density(self, vectors: FloatArray, points: FloatArray) -> FloatArray:
        step = max(1, CELLS // len(points))
        squares = (points**2).sum(axis=1)
        parts = []
        for start in range(0, len(vectors), step):
            some = vectors[start : start + step]
            distance = (some**2).sum(axis=1)[:, None] + squares - 2 * some @ points.T
            near = 1 + np.maximum(distance, 0.0) / self.reach**2
            near *= near
            parts.append((1 / (near * near)).mean(axis=1))
        density: FloatArray = np.concatenate([*parts, np.zeros(0)])
        return np.log(density)

    def describe(self) -> str:
        return "densities learned in pilot runs"


class ClassifierScorer(_Learned):
    """The probabilities of a trained classifier, as log-likelihoods."""

    def __init__(self, model: Any, outputs: Any, records: IntArray) -> None:
        codes = self._learn(outputs, records)
        try:
            self.model = copy.deepcopy(model)
        except Exception as problem:
            message = f"The classifier {type(model).__name__} cannot be copied ({problem}); give one that can."
            raise ParameterError(message) from problem
        self.model.fit(_features(outputs, self.kind), codes)
        classes = np.asarray(getattr(self.model, "classes_", np.arange(self.known.size)))
        if not np.array_equal(classes, np.arange(self.known.size)):
            fail(f"The classifier has the classes {classes.tolist()}, but was given 0..{self.known.size - 1}.")
        self.shares: FloatArray = np.log(np.bincount(codes) / codes.size)

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        if len(outputs) == 0:
            return np.zeros((0, records.size))
        given = self.model.predict_proba(_features(self._alike(outputs), self.kind))
        told = as_floats(given, "What predict_proba gives", ParameterError)
        size = self.known.size
        if told.shape != (len(outputs), size):
            fail(f"predict_proba must give {size} finite probabilities for each output, got the shape {told.shape}.")
        wrong = told[~(np.isfinite(told) & (told > -LEAST))]
        require(wrong.size == 0, f"predict_proba must give probabilities, got {wrong[:1].sum():g} among them.")
        scores: FloatArray = np.log(np.maximum(told, LEAST)) - self.shares
        return scores[:, self._places(records)]

    def describe(self) -> str:
        return f"probabilities of {type(self.model).__name__}, trained on pilot runs"


class _Frequencies:
    """How often each value, or bin of values, was seen for each record. What is no number has places of its own."""

    def __init__(self, values: Any, records: IntArray, size: int, smooth: bool) -> None:
        array = sortable(values)
        self.values = np.unique(array)
        self.edges: Ladder | None = None
        if self.values.size > MOST_VALUES and np.issubdtype(array.dtype, np.number):
            finite = int(np.count_nonzero(np.isfinite(array)))
            bins = SMOOTH_BINS if smooth else min(MOST_BINS, max(FEWEST_BINS, finite // IN_A_BIN))
            self.edges = Ladder(quantiles(array, bins))
        self.are_bits = array.dtype == bool and not self.values[0]  # which stand in the columns 0 and 1
        count = self.values.size + 1 if self.edges is None else len(self.edges) + 1 + len(_ODD)
        table = np.zeros((size, count))
        np.add.at(table, (records, self.codes(array)), 1.0)
        if self.edges is not None and smooth:
            table = _smoothed(table, len(self.edges) + 1) + SMOOTHING / count
        else:
            table += SMOOTHING
        self.table: FloatArray = np.log(table / table.sum(axis=1, keepdims=True))

    def codes(self, values: Any) -> IntArray:
        """The column of each value; the last is for values that were not there to learn from."""
        array = sortable(values)
        if self.edges is None:
            if self.are_bits and array.dtype == bool:
                return array.astype(np.int64)
            place = np.minimum(np.searchsorted(self.values, array), self.values.size - 1)
            near = self.values[place]
            same = (near == array) | ((near != near) & (array != array))  # not a number is the same as itself here
            return np.where(same, place, self.values.size)
        code = self.edges.places(array)
        if not np.isfinite(array).all():
            for number, odd in enumerate(_ODD):
                code[odd(array)] = len(self.edges) + 1 + number
        return code


def _smoothed(table: FloatArray, bins: int) -> FloatArray:
    """The counts of the first bins, which hold about as many numbers each, spread by a normal kernel."""
    from scipy.ndimage import gaussian_filter1d

    width = SMOOTH_WIDTH * bins * table.sum() ** -0.2
    return np.hstack([gaussian_filter1d(table[:, :bins], width, axis=1, mode="reflect"), table[:, bins:]])


_ODD: tuple[Callable[[Any], Any], ...] = (np.isnan, np.isposinf, np.isneginf)


def _features(outputs: Any, kind: str) -> FloatArray:
    """Outputs as rows of finite numbers; what is no number, or infinite, is 0.

    If the outputs learned from were of the kind that such numbers are of, columns of their own tell.
    """
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind not in "biuf":
        fail(
            "A classifier learns from numbers. Turn the outputs into some by `post`, or leave out `scorer`.",
            TargetError,
        )
    rows = rows_of(outputs)
    odd = [number(rows).astype(float) for number in _ODD] if kind == "f" else []
    return np.hstack([np.where(np.isfinite(rows), rows, 0.0), *odd])


EVERY: tuple[Learner, ...] = (Frequencies(), Kernels())  # what is tried unless told
