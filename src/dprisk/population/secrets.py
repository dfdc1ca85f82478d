"""Priors over secrets: too many to list, from frequency files, from scores; and how far off a sample may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.csv_files import CsvFile
from dprisk.errors import InputFileError, PriorError, as_number, as_size, as_whole, require
from dprisk.tables import as_floats
from dprisk.threat.prior import Prior
from dprisk.types import FloatArray
from dprisk.values import Value

SUMMED = 10_000  # terms that are added up one by one before the Euler-Maclaurin formula takes over
LABELS = ("label", "name", "pin", "password", "value", "rank")  # columns that name a secret
WEIGHTS = ("count", "leak_count", "frequency", "probability", "percent")  # and tell how common it is


class Zipf(Value):
    """A secret of which the k-th likeliest value has weight k ** -exponent, among however many values.

    >>> round(Zipf(10**9, 1.1).heaviest(), 5), round(Zipf(10**9, 1.2).heaviest(), 5)
    (0.10723, 0.18141)
    """

    def __init__(self, size: int, exponent: float = 1.0) -> None:
        self.size = as_size(size)
        self.exponent = as_number("the zipf exponent", exponent)
        PriorError.unless(
            0 <= self.exponent < math.inf, f"the zipf exponent must be finite and at least 0, got {exponent}"
        )

    @cached_property
    def _total(self) -> float:
        return power_sum(self.size, self.exponent)

    def heaviest(self, count: int = 1) -> float:
        """The probability of the so many likeliest values together."""
        top = min(as_whole("count", count), self.size)
        return min(1.0, power_sum(top, self.exponent) / self._total)

    @cached_property
    def collision_probability(self) -> float:
        """The chance that two draws coincide."""
        return min(1.0, power_sum(self.size, 2 * self.exponent) / self._total**2)


class LargestMasses(Value):
    """A secret of which only the likeliest values are listed, likeliest first; the rest of the mass is somewhere else.

    No value that is not listed may be likelier than the last that is: all bounds here need only the largest masses.
    """

    def __init__(self, masses: Any) -> None:
        given = as_floats(masses, "masses", PriorError)
        ok = given.ndim == 1 and given.size > 0 and bool(np.all(given >= 0)) and float(given.sum()) <= 1 + 1e-9
        PriorError.unless(ok, "The largest masses are probabilities that add up to at most 1.")
        PriorError.unless(bool(np.all(np.diff(given) <= 0)), "The largest masses come likeliest first.")
        self.masses: FloatArray = given

    def heaviest(self, count: int = 1) -> float:
        """The probability of the so many likeliest values together, at most."""
        wanted = as_whole("count", count)
        beyond = max(0, wanted - self.masses.size) * float(self.masses[-1])
        return min(1.0, float(self.masses[:wanted].sum()) + beyond)

    @property
    def collision_probability(self) -> float:
        """The chance that two draws coincide, at least."""
        return float(self.masses @ self.masses)


def power_sum(count: int, exponent: float) -> float:
    """1 + 2^-s + ... + count^-s, by the Euler-Maclaurin formula beyond the first terms; to about 1e-15 relative.

    From N = SUMMED on: the integral, half of both ends, and two corrections s/12 x^(-s-1) and s(s+1)(s+2)/720 x^(-s-3),
    each taken at N less at the last. What is left out is below N^(-s-5).
    """
    first = min(count, SUMMED)
    listed = math.fsum((np.arange(1, first + 1, dtype=float) ** -exponent).tolist())
    if count == first:
        return listed
    low, high, s = float(first), float(count), exponent
    log = math.log(high / low)
    area = low ** (1 - s) * (math.expm1((1 - s) * log) / (1 - s) if s != 1 else log)
    ends = (high**-s - low**-s) / 2  # the term at `low` is in the list already
    bends = s / 12 * (low ** (-s - 1) - high ** (-s - 1))
    turns = s * (s + 1) * (s + 2) / 720 * (low ** (-s - 3) - high ** (-s - 3))
    return float(listed + area + ends + bends - turns)


def frequencies(path: str | Path, label: str | None = None, weight: str | None = None) -> Prior:
    """A prior from a file that says how common each secret is: names, passwords, PINs.

    The columns may be named; otherwise the file's own `label`, `name`, `pin`, `password`, `value` or `rank`, and
    `count`, `leak_count`, `frequency`, `probability` or `percent`. A secret that is listed twice is added up. What the
    file leaves out is taken not to occur, which makes every listed secret a little too likely: the safe side of bounds
    without delta. What delta adds goes by the rarest secret, too, so give `LargestMasses` what is known of a list with
    gaps.
    """
    file = CsvFile.open(path)
    names, shares = (_column(file, given, usual) for given, usual in ((label, LABELS), (weight, WEIGHTS)))
    table = file.columns([names, shares])
    numbers = file.numbers(table[shares], shares)
    if min(numbers) < 0:
        file.refuse_cell(shares, lambda cell: float(cell) < 0, "is {cell}", "it must be at least 0")
    counted: dict[str, float] = {}
    for secret, number in zip(table[names], numbers, strict=True):
        counted[secret] = counted.get(secret, 0.0) + number
    return Prior.from_counts(counted)


def _column(file: CsvFile, given: str | None, usual: Sequence[str]) -> str:
    if given is not None:
        return file.name(given)
    found = next((name for name in usual if file.has(name)), None)
    InputFileError.unless(found, f"{file.path} has none of {', '.join(f'`{it}`' for it in usual)}; {file.described}.")
    return str(found)


def prior_of_scores(candidates: Sequence[Any], score: Callable[[Any], float]) -> Prior:
    """A prior in proportion to e^score, such as a language model's log-likelihood of each candidate.

    >>> prior_of_scores(["cat", "dog"], {"cat": -1.0, "dog": -2.0}.get).weights.round(3).tolist()
    [0.731, 0.269]
    """
    names = list(candidates)
    scores = as_floats([score(name) for name in names], "scores", PriorError)
    PriorError.unless(scores.size > 0 and not np.isnan(scores).any(), "Every candidate needs a score, a number.")
    PriorError.unless(bool(scores.max() < math.inf), "A score is infinite; every log-likelihood is at most a number.")
    PriorError.unless(bool(scores.max() > -math.inf), "Every candidate has the score -infinity: none is possible.")
    return Prior.from_counts(np.exp(scores - scores.max()), names)


def sampling_error(samples: int, alpha: float = 0.05) -> float:
    """How far the frequency of any one value in so many samples is from its probability, but with probability alpha.

    2 sqrt(ln(2/alpha)/(2 samples)): the Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant, at both sides of
    the value. It holds for all values at once, however many there are. For sets that are runs of values just as well.
    """
    count, chance = as_whole("samples", samples), as_number("alpha", alpha)
    require(0 < chance < 1, f"alpha, the chance of being wrong, must lie strictly between 0 and 1, got {chance:g}")
    return min(1.0, 2 * math.sqrt(math.log(2 / chance) / (2 * count)))
