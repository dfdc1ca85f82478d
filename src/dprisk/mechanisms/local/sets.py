"""Local protocols that report a random set of records: one family (theory, section 2a).

Randomised response reports one record, subset selection several, unary encoding the records whose bits are on, local
hashing the records that hash to the reported value. In all of them the likelihood of a set depends only on whether
the true record is in it, and the other records are exchangeable:

    P(set | z) = base(set) * (r1 if z in set else r0),   r1 >= r0.

There are only two base measures: sets of a fixed size (randomised response is size 1) and independent
members (local hashing with an ideal hash is unary encoding with q = 1/g). Four probabilities of each are all
that the exact advantage under any prior and any knowledge needs; `dprisk.exact.closed_forms` does the sum.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy

from dprisk.errors import MechanismError, as_epsilon, as_size, as_whole
from dprisk.guarantees import Guarantee, PureDP, TradeOff
from dprisk.mechanisms.base import Mechanism
from dprisk.mechanisms.by_epsilon import ByEpsilon
from dprisk.mechanisms.local.bits import draw_subsets, where_on
from dprisk.types import AnyArray, BoolArray, FloatArray, IntArray
from dprisk.values import Parameter

FEW_RECORDS = 64  # records up to which their columns are looked at, rather than the members of the sets
FREQUENCY_ERROR = "variance of a frequency, times reports"


class SetProtocol(Mechanism):
    """A mechanism whose output names a set of records.

    With i a record and h >= 0 others named beforehand, each method takes an array of h and gives, for
    "i is in the set and the h named ones are not":
    """

    @abstractmethod
    def hit(self, named: IntArray) -> FloatArray:
        """r1 a_h, its probability when i is the true record."""

    @abstractmethod
    def miss(self, named: IntArray) -> FloatArray:
        """r0 a_h, its probability when one of the h named records is the true one."""

    @abstractmethod
    def gain(self, named: IntArray) -> FloatArray:
        """(r1 - r0) a_h, their difference, with all its digits."""

    @abstractmethod
    def pair_gain(self, named: IntArray) -> FloatArray:
        """(r1 - r0) b_h, with b_h the base measure of sets with i and one more record in, the h named ones out."""

    @abstractmethod
    def none(self, named: IntArray) -> FloatArray:
        """r0 c_h, the probability that none of h >= 1 named records is in the set when one of them is the true one."""

    @abstractmethod
    def members(self, outputs: npt.ArrayLike) -> BoolArray:
        """Which records (columns) each report (rows) names, checked."""

    @property
    def fewest(self) -> int:
        """How many records a set names at least, if it names any."""
        return 1

    def delta_at(self, epsilon: float) -> float:
        """One formula for the family: records z, z' differ only on sets with z in and z' out."""
        epsilon = as_epsilon(epsilon)
        if epsilon >= self.epsilon:
            return 0.0
        return float(self.hit(np.array([1]))[0]) * -math.expm1(epsilon - self.epsilon)

    def pairwise_epsilon(self) -> FloatArray:
        return np.where(np.eye(self.size, dtype=bool), 0.0, self.epsilon)

    def guarantee(self) -> Guarantee:
        """Three straight pieces: only sets with exactly one of two records in tell them apart (thesis Example 1)."""
        if self.size == 1:
            return PureDP(0.0)
        one = np.array([1])
        hit, miss = float(self.hit(one)[0]), float(self.miss(one)[0])
        return TradeOff([0.0, miss, 1 - hit, 1.0], [1.0, 1 - hit, miss, 0.0], linear=True, epsilon=self.epsilon)

    guarantee_is_exact = True

    def frequency_variance(self) -> float:
        """The variance of an estimated frequency times the number of reports, for a rare record (Wang et al. 2017).

        q (1 - q) / (p - q)^2, with p and q the chances that a record is in the set of its owner and of anybody else.
        """
        own, other = self._chances()
        gap = (own - other) ** 2 if own > other else 0.0
        return other * (1 - other) / gap if gap > 0 else math.inf  # too small a gap has no square

    def error(self) -> dict[str, float]:
        return {FREQUENCY_ERROR: self.frequency_variance()}

    @property
    def naming(self) -> tuple[float, float]:
        """The chances that a report names its owner's record, and any given other."""
        return self._chances()

    def _chances(self) -> tuple[float, float]:
        """The chances that the set holds the true record, and any given other."""
        none = np.array([0])
        return float(self.hit(none)[0]), float(self.miss(none)[0] + self.pair_gain(none)[0])


class Rows(SetProtocol):
    """A protocol that reports its set as a row of booleans, one for each record."""

    @abstractmethod
    def _log_inside_outside(self, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        """log P(set | z) of a set of given size that contains z, and of one that does not."""

    def members(self, outputs: npt.ArrayLike) -> BoolArray:
        member = np.atleast_2d(np.asarray(outputs))
        told = member.dtype == bool or bool(np.all((member == 0) | (member == 1)))
        if not (member.ndim == 2 and member.shape[1] == self.size and told):
            raise MechanismError(f"An output of {self!r} is a row of {self.size} booleans.")
        return member.astype(bool, copy=False)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        member = self.members(outputs)
        inside, outside = self._log_inside_outside(member.sum(axis=1))
        return np.where(member, inside[:, None], outside[:, None])

    def scores(self, outputs: npt.ArrayLike, records: IntArray) -> FloatArray:
        """Only membership counts: epsilon for the records in the set."""
        member = np.asarray(outputs)[:, records].astype(bool)
        return np.where(member, self.epsilon, 0.0)

    def leads(self, outputs: npt.ArrayLike, records: IntArray) -> tuple[IntArray, FloatArray]:
        """A record leads, by epsilon, if it is the only one of them in the set."""
        sets = np.asarray(outputs)
        if records.size <= FEW_RECORDS:
            member = sets[:, records]
            return member.argmax(axis=1), np.where(np.count_nonzero(member, axis=1) == 1, self.epsilon, 0.0)
        place = np.full(self.size, -1)
        place[records] = np.arange(records.size)
        row, column = np.divmod(where_on(sets), self.size)
        found = place[column]
        row, found = row[found >= 0], found[found >= 0]
        best = np.zeros(len(sets), dtype=np.int64)
        best[row] = found
        return best, np.where(np.bincount(row, minlength=len(sets)) == 1, self.epsilon, 0.0)


class AnyRow(Rows):
    """A protocol that may report any row of booleans."""

    @property
    def n_outputs(self) -> float:
        return 2.0**self.size if self.size < 1000 else math.inf

    def outputs(self, block: int) -> Iterator[AnyArray]:
        bit = np.arange(self.size)
        for start in range(0, 1 << self.size, block):
            number = np.arange(start, min(start + block, 1 << self.size))
            yield (number[:, None] >> bit & 1).astype(bool)


class FixedSize(SetProtocol, ByEpsilon):
    """A protocol that reports `subset_size` records, the true one among them with probability w E / (w E + m - w)."""

    def __init__(self, size: int, epsilon: float, subset_size: int) -> None:
        self.size = self.total = size
        self.nominal_epsilon, self.subset_size = epsilon, subset_size
        w, others = subset_size, (size - subset_size) * math.exp(-epsilon)
        self.p = w / (w + others)
        self._not_p = others / (w + others)

    @property
    def fewest(self) -> int:
        return max(1, self.subset_size - (self.total - self.size))

    @property
    def _r1(self) -> float:
        return self.p * self.total / self.subset_size

    @property
    def _r0(self) -> float:
        return self._not_p * self.total / (self.total - self.subset_size) if self.total > self.subset_size else 0.0

    def hit(self, named: IntArray) -> FloatArray:
        return self._r1 * self._others_out(1)[named] * self.subset_size / self.total

    def miss(self, named: IntArray) -> FloatArray:
        return self._r0 * self._others_out(1)[named] * self.subset_size / self.total

    def gain(self, named: IntArray) -> FloatArray:
        return -math.expm1(-self.nominal_epsilon) * self.hit(named)  # r0 = r1 e^-eps

    def pair_gain(self, named: IntArray) -> FloatArray:
        if self.subset_size == 1:
            return np.zeros(named.shape)
        both = self.subset_size * (self.subset_size - 1) / (self.total * (self.total - 1))
        return -math.expm1(-self.nominal_epsilon) * self._r1 * both * self._others_out(2)[named]

    def none(self, named: IntArray) -> FloatArray:
        return self._r0 * self._others_out(0)[named]

    def _others_out(self, taken: int) -> FloatArray:
        """For h = 0..m: the chance that h named others are out of a uniform w-subset, given `taken` records in it.

        C(m-taken-h, w-taken) / C(m-taken, w-taken), as a running product: log-gammas lose digits at large m.
        """
        h = np.arange(self.total)
        left, free = self.total - taken - h, self.total - self.subset_size - h
        ratio = np.zeros(self.total)
        np.divide(free, left, out=ratio, where=(left > 0) & (free > 0))
        return np.concatenate([[1.0], np.cumprod(ratio)])


class SubsetSelection(FixedSize, Rows):
    """Report a set of `subset_size` records that holds the true one with probability w E / (w E + m - w).

    Without `subset_size` it is max(1, floor(m / (e^epsilon + 1))) (Ye and Barg; RAD Example 4.6).
    """

    def __init__(self, size: int, epsilon: float, subset_size: int | None = None) -> None:
        size, epsilon = as_size(size), as_epsilon(epsilon)
        best = max(1, math.floor(size * scipy.special.expit(-epsilon)))
        chosen = best if subset_size is None else as_whole("subset_size", subset_size, least=0)
        MechanismError.unless(
            1 <= chosen <= max(1, size - 1),
            f"subset selection over {size} records reports between 1 and {max(1, size - 1)} of them, got subset_size="
            f"{subset_size}; at epsilon {epsilon:g} the best size is {best}, leave subset_size out to let it choose",
        )
        super().__init__(size, epsilon, chosen)

    @property
    def parameter(self) -> Parameter:
        """Epsilon; unless it was given, the subset size follows in jumps."""
        return Parameter.epsilon(self.nominal_epsilon, jumps=self._arguments.get("subset_size") is None)

    def _log_inside_outside(self, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        w, m = self.subset_size, self.size
        fits = np.where(sizes == w, 0.0, -np.inf)
        with np.errstate(divide="ignore"):  # log 0 = -inf is meant: with one record nothing is outside
            return fits + np.log(self.p) - _log_binom(m - 1, w - 1), fits + np.log(self._not_p) - _log_binom(m - 1, w)

    @property
    def n_outputs(self) -> float:
        if self.size <= 500:
            return float(math.comb(self.size, self.subset_size))
        return math.exp(min(700.0, _log_binom(self.size, self.subset_size)))

    def outputs(self, block: int) -> Iterator[AnyArray]:
        subsets = itertools.combinations(range(self.size), self.subset_size)
        while chosen := list(itertools.islice(subsets, block)):
            member = np.zeros((len(chosen), self.size), dtype=bool)
            np.put_along_axis(member, np.array(chosen), True, axis=1)
            yield member

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        numbers = self._records(records)
        truth = rng.random(numbers.size) < self.p
        return draw_subsets(self.size, numbers, truth, self.subset_size - truth, rng)

    def _restricted(self, size: int) -> Mechanism | None:
        """The members of the subset among these records; nothing simpler if they are all."""
        return SeenMembers(self, size) if size < self.size else None


class SeenMembers(FixedSize, AnyRow):
    """Which of `size` records subset selection over all of them reports, one of these being the true one.

    That one is reported as before. How many of the others are is hypergeometric, and any so many are as likely. What
    the family asks of named records does not depend on who else there is.
    """

    def __init__(self, whole: SubsetSelection, size: int) -> None:
        super().__init__(whole.size, whole.nominal_epsilon, whole.subset_size)
        self.whole, self.size = whole, size

    @property
    def parameter(self) -> Parameter:
        return self.whole.parameter

    def with_parameter(self, value: float) -> Self:
        return self.replace(whole=self.whole.with_parameter(value))

    def _log_inside_outside(self, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Those of one subset, times the number of ways to choose the members that are not seen."""
        w, unseen = self.subset_size, self.total - self.size
        inside, outside = self.whole._log_inside_outside(np.array([w]))
        ways = np.array(
            [_log_binom(unseen, w - k) if 0 <= w - k <= unseen else -math.inf for k in range(self.size + 1)]
        )
        return inside + ways[sizes], outside + ways[sizes]

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        numbers = self._records(records)
        truth = rng.random(numbers.size) < self.p
        others = self.subset_size - truth
        seen = rng.hypergeometric(others, self.total - 1 - others, self.size - 1)
        return draw_subsets(self.size, numbers, truth, seen, rng)


class GRR(FixedSize):
    """Generalised randomised response: the true record with probability e^eps / (e^eps + m - 1), else another.

    The sets have one record each, and that is the output.
    """

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__(as_size(size), as_epsilon(epsilon), 1)

    @property
    def q(self) -> float:
        """The probability of each wrong record."""
        return self._not_p / (self.size - 1) if self.size > 1 else 0.0

    def members(self, outputs: npt.ArrayLike) -> BoolArray:
        return np.asarray(self._records(outputs)[:, None] == np.arange(self.size))

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        numbers = self._records(records)
        lie = rng.random(numbers.size) < self.size * self.q  # then any record, the true one included
        return np.where(lie, rng.integers(self.size, size=numbers.size), numbers)

    def scores(self, outputs: npt.ArrayLike, records: IntArray) -> FloatArray:
        return np.where(np.asarray(outputs)[:, None] == records, self.epsilon, 0.0)

    def leads(self, outputs: npt.ArrayLike, records: IntArray) -> tuple[IntArray, FloatArray]:
        place = np.full(self.size, -1)
        place[records] = np.arange(records.size)
        found = place[np.asarray(outputs)]
        return np.maximum(found, 0), np.where(found >= 0, self.epsilon, 0.0)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        reported = self._records(outputs)
        with np.errstate(divide="ignore"):
            result = np.full((reported.size, self.size), np.log(self.q))
        result[np.arange(reported.size), reported] = np.log(self.p)
        return result

    @property
    def n_outputs(self) -> float:
        return float(self.size)

    def outputs(self, block: int) -> Iterator[AnyArray]:
        for start in range(0, self.size, block):
            yield np.arange(start, min(start + block, self.size))


def _log_binom(n: int, k: int) -> float:
    if not 0 <= k <= n:
        return math.inf  # no such set: a likelihood of 0
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
