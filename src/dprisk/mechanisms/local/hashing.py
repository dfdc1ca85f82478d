"""Local hashing, with an ideal hash and with hash functions that exist.

`LocalHashing` takes the hash values of different records as independent. Those of a real family are not: it has only
so many functions, and some records collide more often than others (`ConcreteHashing`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_size, as_whole, fail
from dprisk.guarantees import Guarantee, PureDP, TradeOff
from dprisk.mechanisms.arrays import whole_below
from dprisk.mechanisms.base import LISTED_CELLS
from dprisk.mechanisms.by_epsilon import ByEpsilon
from dprisk.mechanisms.local.sets import GRR
from dprisk.mechanisms.local.unary import UnaryEncoding
from dprisk.types import AnyArray, BoolArray, FloatArray, IntArray
from dprisk.values import Parameter, Value

LARGEST_PRIME = (1 << 31) - 1  # a product of two residues fits 64 bits


class LocalHashing(ByEpsilon, UnaryEncoding):
    """Hash the record to one of g values with a random hash, report it by randomised response on g values.

    With an ideal hash (independent, uniform values) the report is as good as the set of records that hash to the
    reported value: unary encoding with p = e^eps / (e^eps + g - 1) and q = 1/g, and so it is sampled.
    """

    def __init__(self, size: int, epsilon: float, hash_range: int) -> None:
        self.nominal_epsilon = epsilon = as_epsilon(epsilon)
        self.hash_range = as_whole("hash_range", hash_range, least=2)
        lies = (self.hash_range - 1) * math.exp(-epsilon)
        others = (self.hash_range - 1) / self.hash_range
        contrast = -math.expm1(-epsilon) * others / (1 + lies)
        self._set(size, 1 / (1 + lies), lies / (1 + lies), 1 / self.hash_range, others, contrast)


class BLH(LocalHashing):
    """Binary local hashing: two hash values."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__(size, epsilon, 2)


class OLH(LocalHashing):
    """Optimal local hashing (Wang et al. 2017): e^eps + 1 hash values, rounded."""

    def __init__(self, size: int, epsilon: float) -> None:
        given = as_epsilon(epsilon)
        enough = min(given, 700.0)  # beyond, hash values never collide, and p and q change no more
        super().__init__(size, enough, round(math.exp(enough)) + 1)
        self.nominal_epsilon = given

    @property
    def parameter(self) -> Parameter:
        return Parameter.epsilon(self.nominal_epsilon, jumps=True)


class HashFamily(Value):
    """`count` numbered functions from the records 0..size-1 to the values 0..hash_range-1; a random one is drawn.

    Derive from it to study the hashes of a given program.
    """

    name: str
    count: int
    size: int
    hash_range: int

    @abstractmethod
    def values(self, hashes: IntArray, records: IntArray) -> IntArray:
        """The value of each record under the hash of that number; the arrays are broadcast."""

    @property
    @abstractmethod
    def separation(self) -> float:
        """The share of hashes that tell two records apart, for the pair where it is largest; 1 is always safe."""


class PolynomialHashes(HashFamily):
    """((a z + b) mod p) mod g for a, b in 0..p-1: p^2 functions, pairwise independent before the last step.

    (Carter and Wegman 1979.) The prime p is at least the number of records, and the smallest such number that is at
    least g too unless it is given.
    """

    def __init__(self, size: int, hash_range: int, prime: int | None = None) -> None:
        self.prime = _next_prime(max(size, hash_range)) if prime is None else as_whole("prime", prime, least=2)
        MechanismError.unless(
            size <= self.prime <= LARGEST_PRIME and _is_prime(self.prime),
            f"prime must be a prime number from {size}, the number of records, to 2^31 - 1, got {self.prime}",
        )
        self.name = f"polynomial mod {self.prime}"
        self.count, self.size, self.hash_range = self.prime**2, self.prime, hash_range

    def values(self, hashes: IntArray, records: IntArray) -> IntArray:
        a, b = np.divmod(hashes, self.prime)
        return np.asarray((a * records + b) % self.prime % self.hash_range)

    @property
    def separation(self) -> float:
        """Of every pair alike: two independent residues mod p, reduced to 0..g-1."""
        often, more = divmod(self.prime, self.hash_range)
        same = more * (often + 1) ** 2 + (self.hash_range - more) * often**2
        return 1 - same / self.count


class MixingHashes(HashFamily):
    """The z-th number of the SplitMix64 generator (Steele, Lea, Flood 2014) mod g, for 2^32 scrambled seeds.

    What libraries do with seeded xxHash or MurmurHash. Its pairs are too many to count, so `separation` is 1.
    """

    name, count, size, separation = "mixing", 1 << 32, 1 << 62, 1.0

    def __init__(self, hash_range: int) -> None:
        self.hash_range = hash_range

    def values(self, hashes: IntArray, records: IntArray) -> IntArray:
        start = _mix(hashes.astype(np.uint64))
        step = (records.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        return (_mix(start + step) % np.uint64(self.hash_range)).astype(np.int64)


class ListedHashes(HashFamily):
    """Hashes given one by one, as a table hashes x records of values in 0..g-1."""

    name = "table"

    def __init__(self, hash_range: int, table: npt.ArrayLike) -> None:
        try:
            listed = np.asarray(table)
        except ValueError:
            fail("A table of hashes needs rows of equal length.", MechanismError)
        MechanismError.unless(
            listed.ndim == 2 and listed.size > 0,
            f"A table of hashes has a row for each hash, a column for each record, got shape {listed.shape}.",
        )
        if not whole_below(listed, hash_range):
            raise MechanismError(f"Hash values must be whole numbers in 0..{hash_range - 1}.")
        self.table: IntArray = listed.astype(np.int64)
        self.count, self.size = listed.shape
        self.hash_range = hash_range

    def values(self, hashes: IntArray, records: IntArray) -> IntArray:
        return self.table[hashes, records]

    @cached_property
    def separation(self) -> float:
        """Of the pair that is told apart most often; 1 where there are too many pairs to go through."""
        hashes, size = self.table.shape
        if hashes * size**2 > LISTED_CELLS:
            return 1.0
        shares = ((self.table[:, z : z + 1] != self.table[:, z:]).mean(axis=0).max() for z in range(size))
        return float(max(shares))


class ConcreteHashing(ByEpsilon):
    """Draw a hash from a family, hash the record to one of `hash_range` values, report it by randomised response.

    An output is a pair: the number of the hash and the reported value. `hashes` is "mixing" (`MixingHashes`),
    "polynomial" (`PolynomialHashes`), a table hashes x records of values, or any `HashFamily`. Given the hash, records
    are told apart only by whether they hash to the reported value. Which do is a matter of the family, so exact risks
    come from going through all hashes where these are few enough, and are estimated otherwise. `delta_at` and the
    guarantee are those of the pair of records that is told apart most often; upper bounds for the mixing family.

    A real family may risk more than the ideal one, for instance where it spreads the records too evenly:

    >>> from dprisk import Prior, Threat, assess

    >>> from dprisk.mechanisms import ConcreteHashing, LocalHashing
    >>> threat = Threat(Prior.uniform(10))
    >>> assess(ConcreteHashing(10, epsilon=2.0, hash_range=8, hashes="polynomial"), threat)
    Risk(advantage=0.264211, success=0.364211, baseline=0.1, exact)
    >>> assess(LocalHashing(10, epsilon=2.0, hash_range=8), threat)
    Risk(advantage=0.217366, success=0.317366, baseline=0.1, exact)
    """

    def __init__(
        self, size: int, epsilon: float, hash_range: int, hashes: str | HashFamily | npt.ArrayLike = "mixing"
    ) -> None:
        self.size, self.nominal_epsilon = as_size(size), as_epsilon(epsilon)
        self.hash_range = as_whole("hash_range", hash_range, least=2)
        MechanismError.unless(self.hash_range < 1 << 62, f"hash_range must be below 2^62, got {hash_range}")
        self.hashes = _as_family(hashes, self.size, self.hash_range)
        self._response = GRR(self.hash_range, self.nominal_epsilon)
        self.epsilon = self.nominal_epsilon if self.size > 1 and self.hashes.separation > 0 else 0.0

    def delta_at(self, epsilon: float) -> float:
        """Hashes that tell two records apart do so as randomised response does; the others tell nothing."""
        epsilon = as_epsilon(epsilon)
        if epsilon >= self.epsilon:
            return 0.0
        return self.hashes.separation * self._response.p * -math.expm1(epsilon - self.epsilon)

    def guarantee(self) -> Guarantee:
        """Three straight pieces, as for randomised response: the pair that is told apart most often is the worst."""
        if self.epsilon == 0:
            return PureDP(0.0)
        share = self.hashes.separation
        hit, miss = share * self._response.p, share * self._response.q
        return TradeOff([0.0, miss, 1 - hit, 1.0], [1.0, 1 - hit, miss, 0.0], linear=True, epsilon=self.epsilon)

    @property
    def guarantee_is_exact(self) -> bool:
        """Where the share of hashes that tell two records apart is known, and not just taken to be all of them."""
        return self.hashes.separation < 1

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        numbers = self._records(records)
        hashes = rng.integers(self.hashes.count, size=numbers.size)
        return np.stack([hashes, self._response.sample(self.hashes.values(hashes, numbers), rng)], axis=1)

    def members(self, outputs: npt.ArrayLike) -> BoolArray:
        """Which records (columns) each report (rows) names: those that hash to the reported value."""
        hashes, reported = self._pairs(outputs)
        return np.asarray(self.hashes.values(hashes[:, None], np.arange(self.size)) == reported[:, None])

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        hit = self.members(outputs)
        top = math.log(self._response.p) - math.log(self.hashes.count)
        return np.where(hit, top, top - self.nominal_epsilon)

    def _pairs(self, outputs: npt.ArrayLike) -> tuple[IntArray, IntArray]:
        pairs = np.atleast_2d(np.asarray(outputs))
        limits = [self.hashes.count, self.hash_range]
        MechanismError.unless(
            pairs.ndim == 2 and pairs.shape[1] == 2 and whole_below(pairs, limits),
            f"An output of {self!r} is a pair of whole numbers: a hash below {limits[0]}, a value below {limits[1]}.",
        )
        numbers = pairs.astype(np.int64, copy=False)
        return numbers[:, 0], numbers[:, 1]

    @property
    def n_outputs(self) -> float:
        return float(self.hashes.count) * self.hash_range

    def outputs(self, block: int) -> Iterator[AnyArray]:
        for start in range(0, self.hashes.count * self.hash_range, block):
            number = np.arange(start, min(start + block, self.hashes.count * self.hash_range))
            yield np.stack(np.divmod(number, self.hash_range), axis=1)


def _as_family(hashes: str | HashFamily | npt.ArrayLike, size: int, hash_range: int) -> HashFamily:
    if isinstance(hashes, str):
        if hashes not in ("mixing", "polynomial"):
            raise MechanismError(f"hashes is 'mixing', 'polynomial', a table or a HashFamily, got {hashes!r}")
        return MixingHashes(hash_range) if hashes == "mixing" else PolynomialHashes(size, hash_range)
    made = hashes if isinstance(hashes, HashFamily) else ListedHashes(hash_range, hashes)
    MechanismError.unless(
        size <= made.size and hash_range == made.hash_range,
        f"These hashes take {made.size} records to {made.hash_range} values; asked for are {size} records and "
        f"{hash_range} values.",
    )
    return made


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The output function of SplitMix64, a bijection of 64-bit numbers; products wrap around."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))


def _next_prime(least: int) -> int:
    MechanismError.unless(least <= LARGEST_PRIME, "The polynomial family takes at most 2^31 - 1 records or values.")
    return next(number for number in range(max(2, least), LARGEST_PRIME + 1) if _is_prime(number))
