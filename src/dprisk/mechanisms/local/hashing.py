"""Local hashing with hash functions that exist.

`LocalHashing` takes the hash values of different records as independent. Those of a real family are not: it has only
so many functions, and some records collide more often than others.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError, as_epsilon, as_size, as_whole, fail, require
from dprisk.guarantees import Guarantee, PureDP, TradeOff
from dprisk.mechanisms.base import LISTED_CELLS, Mechanism
from dprisk.mechanisms.local.sets import GRR
from dprisk.types import AnyArray, FloatArray, IntArray

LARGEST_PRIME = (1 << 31) - 1  # a product of two residues fits 64 bits


class HashFamily(ABC):
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
        require(
            size <= self.prime <= LARGEST_PRIME and _is_prime(self.prime),
            f"prime must be a prime number from {size}, the number of records, to 2^31 - 1, got {self.prime}",
            MechanismError,
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
        require(
            listed.ndim == 2 and listed.size > 0,
            f"A table of hashes has a row for each hash and a column for each record, got shape {listed.shape}.",
            MechanismError,
        )
        whole = np.issubdtype(listed.dtype, np.integer)
        require(
            whole and bool(np.all((listed >= 0) & (listed < hash_range))),
            f"Hash values must be whole numbers in 0..{hash_range - 1}.",
            MechanismError,
        )
        self.table: IntArray = listed.astype(np.int64)
        self.table.flags.writeable = False
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


class ConcreteHashing(Mechanism):
    """Draw a hash from a family, hash the record to one of `hash_range` values, report it by randomised response.

    An output is a pair: the number of the hash and the reported value. `family` is "mixing" (`MixingHashes`),
    "polynomial" (`PolynomialHashes`), a table hashes x records of values, or any `HashFamily`. Given the hash, records
    are told apart only by whether they hash to the reported value. Which do is a matter of the family, so exact risks
    come from going through all hashes where these are few enough, and are estimated otherwise. `delta_at` and the
    guarantee are those of the pair of records that is told apart most often; upper bounds for the mixing family.

    A real family may risk more than the ideal one, for instance where it spreads the records too evenly:

    >>> from dprisk import Prior, Threat, assess

    >>> from dprisk.mechanisms import ConcreteHashing, LocalHashing
    >>> threat = Threat(Prior.uniform(10))
    >>> assess(ConcreteHashing(10, epsilon=2.0, hash_range=8, family="polynomial"), threat)
    Risk(advantage=0.264211, success=0.364211, baseline=0.1, exact)
    >>> assess(LocalHashing(10, epsilon=2.0, hash_range=8), threat)
    Risk(advantage=0.217366, success=0.317366, baseline=0.1, exact)
    """

    def __init__(
        self, size: int, epsilon: float, hash_range: int, family: str | HashFamily | npt.ArrayLike = "mixing"
    ) -> None:
        self.size, self._epsilon = as_size(size), as_epsilon(epsilon)
        self.hash_range = as_whole("hash_range", hash_range, least=2)
        require(self.hash_range < 1 << 62, f"hash_range must be below 2^62, got {hash_range}", MechanismError)
        self.family = _as_family(family, self.size, self.hash_range)
        self._response = GRR(self.hash_range, self._epsilon)

    @property
    def epsilon(self) -> float:
        return self._epsilon if self.size > 1 and self.family.separation > 0 else 0.0

    def with_epsilon(self, epsilon: float) -> ConcreteHashing:
        return ConcreteHashing(self.size, epsilon, self.hash_range, self.family)

    def delta_at(self, epsilon: float) -> float:
        """Hashes that tell two records apart do so as randomised response does; the others tell nothing."""
        epsilon = as_epsilon(epsilon)
        if epsilon >= self.epsilon:
            return 0.0
        return self.family.separation * self._response.p * -math.expm1(epsilon - self.epsilon)

    def guarantee(self) -> Guarantee:
        """Three straight pieces, as for randomised response: the pair that is told apart most often is the worst."""
        if self.epsilon == 0:
            return PureDP(0.0)
        share = self.family.separation
        hit, miss = share * self._response.p, share * self._response.q
        return TradeOff([0.0, miss, 1 - hit, 1.0], [1.0, 1 - hit, miss, 0.0], linear=True, epsilon=self.epsilon)

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        numbers = self._records(records)
        hashes = rng.integers(self.family.count, size=numbers.size)
        return np.stack([hashes, self._response.sample(self.family.values(hashes, numbers), rng)], axis=1)

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        hashes, reported = self._pairs(outputs)
        hit = self.family.values(hashes[:, None], np.arange(self.size)) == reported[:, None]
        top = math.log(self._response.p) - math.log(self.family.count)
        return np.where(hit, top, top - self._epsilon)

    def _pairs(self, outputs: npt.ArrayLike) -> tuple[IntArray, IntArray]:
        pairs = np.atleast_2d(np.asarray(outputs))
        limits = [self.family.count, self.hash_range]
        require(
            pairs.ndim == 2
            and pairs.shape[1] == 2
            and np.issubdtype(pairs.dtype, np.integer)
            and bool(np.all((pairs >= 0) & (pairs < limits))),
            f"An output of {self!r} is a pair of whole numbers: a hash below {limits[0]}, a value below {limits[1]}.",
            MechanismError,
        )
        numbers = pairs.astype(np.int64, copy=False)
        return numbers[:, 0], numbers[:, 1]

    @property
    def n_outputs(self) -> float:
        return float(self.family.count) * self.hash_range

    def outputs(self, block: int) -> Iterator[AnyArray]:
        for start in range(0, self.family.count * self.hash_range, block):
            number = np.arange(start, min(start + block, self.family.count * self.hash_range))
            yield np.stack(np.divmod(number, self.hash_range), axis=1)

    def _parameters(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "hash_range": self.hash_range, "family": self.family.name}


def _as_family(family: str | HashFamily | npt.ArrayLike, size: int, hash_range: int) -> HashFamily:
    if isinstance(family, str):
        require(
            family in ("mixing", "polynomial"),
            f"family is 'mixing', 'polynomial', a table hashes x records or a HashFamily, got {family!r}",
            MechanismError,
        )
        return MixingHashes(hash_range) if family == "mixing" else PolynomialHashes(size, hash_range)
    made = family if isinstance(family, HashFamily) else ListedHashes(hash_range, family)
    require(
        size <= made.size and hash_range == made.hash_range,
        f"These hashes take {made.size} records to {made.hash_range} values; asked for are {size} records and "
        f"{hash_range} values.",
        MechanismError,
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
    require(least <= LARGEST_PRIME, "The polynomial family takes at most 2^31 - 1 records or values.", MechanismError)
    return next(number for number in range(max(2, least), LARGEST_PRIME + 1) if _is_prime(number))
