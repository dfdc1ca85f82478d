"""People whose records are attacked at once: how likely a guess about each is right before anything is released."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from dprisk.csv_files import CsvFile
from dprisk.errors import InputFileError, ParameterError, TooLargeError, as_number, as_whole, require
from dprisk.rounding import ULP
from dprisk.tables import as_floats, rows_of
from dprisk.threat import Threat
from dprisk.threat.prior import Prior
from dprisk.types import FloatArray, Table
from dprisk.values import Value

MOST_PEOPLE = 100_000_000  # of a file
SAME = 1e-12  # relative difference up to which baselines are one


class Targets(Value):
    """People who are attacked at once, each with a prior of their own, independent of the others'.

    All that counts of a prior is `baselines`, for each person the largest prior probability of what one attempt can be
    right about (kappa): of the likeliest value where the value must be hit exactly. Two more numbers sharpen what delta
    adds, and may be left out: `smallest`, the smallest positive probability of what an attempt can name, and
    `collisions`, the chance that two draws from the prior coincide; lower bounds will do.

    >>> Targets([0.5, 0.1, 0.1]).expected
    0.7
    >>> Targets.uniform(100, values=10)
    Targets(100 people, baselines from 0.1 to 0.1)
    """

    def __init__(
        self, baselines: Any, smallest: Any = 0.0, collisions: Any = 0.0, labels: Iterable[Any] | None = None
    ) -> None:
        self.baselines = _shares(baselines, "baselines")
        require(self.baselines.size > 0, "At least one person is needed.")
        people = self.baselines.size
        self.smallest = np.broadcast_to(_shares(smallest, "smallest"), people).copy()
        self.collisions = np.broadcast_to(_shares(collisions, "collisions"), people).copy()
        self.labels = None if labels is None else tuple(labels)
        own = self.labels is None or len(self.labels) == people
        require(own, f"{len(self.labels or ())} labels for {people} people; give each their own.")

    @classmethod
    def uniform(cls, people: int, values: int, tries: int = 1) -> Self:
        """So many people, each with one of so many equally likely values; an attempt names `tries` of them."""
        count, many = as_whole("people", people), as_whole("values", values)
        named = min(as_whole("tries", tries), many)
        return cls(np.full(count, named / many), 1 / many, 1 / many)

    @classmethod
    def members(cls, people: int, prior: float = 0.5) -> Self:
        """So many people, each of whom took part with this probability, independently: membership inference."""
        chance = as_number("prior", prior)
        require(0 < chance < 1, f"A prior probability must lie in (0, 1), got {chance:g}")
        both = max(chance, 1 - chance), min(chance, 1 - chance)
        return cls(np.full(as_whole("people", people), both[0]), both[1], both[0] ** 2 + both[1] ** 2)

    @classmethod
    def from_priors(cls, priors: Sequence[Any], tries: int = 1, labels: Iterable[Any] | None = None) -> Self:
        """A person for each prior: a `Prior`, or anything that tells its `heaviest(k)` and `collision_probability`.

        An attempt names `tries` values and is right if the record is one of them.
        """
        count = as_whole("tries", tries)
        known = [_summary(prior, count) for prior in priors]
        require(len(known) > 0, "At least one person is needed.")
        masses, least, collisions = zip(*known, strict=True)
        return cls(np.array(masses), np.array(least), np.array(collisions), labels)

    @classmethod
    def from_table(cls, table: Table, known: Sequence[str], secret: str | Sequence[str]) -> Self:
        """A person for each row: the attacker knows some columns, and how the secret ones are distributed given these.

        >>> Targets.from_table({"age": [30, 30, 40], "job": ["nurse", "cook", "nurse"]}, ["age"], "job").expected
        2.0
        """
        secrets = rows_of(table, [secret] if isinstance(secret, str) else list(secret))
        groups = rows_of(table, list(known)) if known else [()] * len(secrets)
        counts: dict[Any, dict[Any, int]] = {}
        for group, value in zip(groups, secrets, strict=True):
            inside = counts.setdefault(group, {})
            inside[value] = inside.get(value, 0) + 1
        of_group = {group: _summary(Prior.from_counts(inside), 1) for group, inside in counts.items()}
        masses, least, collisions = zip(*(of_group[group] for group in groups), strict=True)
        return cls(np.array(masses), np.array(least), np.array(collisions))

    @classmethod
    def under(cls, threat: Threat, records: Sequence[Any] | int) -> Self:
        """People under a threat, with its knowledge and its rule of success: their records, by label or number.

        Where nothing is known of anybody, their number is enough. What the attacker knows of a person is their group;
        the baseline is the heaviest set within it that a guess can be right about.

        >>> from dprisk import Line, Prior, Threat
        >>> Targets.under(Threat(Prior.uniform(10), success=Line(1)), 100)
        Targets(100 people, baselines from 0.3 to 0.3)
        """
        if isinstance(records, int):
            require(threat.knows.is_none, "The attacker knows something of each person: give their records.")
            count = as_whole("records", records)
            if threat.has_numbers:
                return cls(np.full(count, threat.kappa_plus), max(0.0, threat.kappa_minus))
            numbers = np.zeros(count, dtype=int)
        else:
            numbers = np.array([threat.prior.find(record) for record in records], dtype=int)
        weights, groups, size = threat.prior.weights, threat.knows.groups, threat.knows.n_groups
        mass, twice = np.bincount(groups, weights, size), np.bincount(groups, weights**2, size)
        best = np.ravel(threat.reach.best(threat.reach.sums(weights[:, None])))
        least = np.full(size, np.inf)
        np.minimum.at(least, groups[weights > 0], weights[weights > 0])
        mine = groups[numbers]
        require(bool(np.all(mass[mine] > 0)), "A record is impossible under the prior; its owner has no baseline.")
        smallest = least[mine] / mass[mine] if threat.success.is_exact else 0.0
        return cls(np.minimum(1.0, best[mine] / mass[mine]), smallest, twice[mine] / mass[mine] ** 2)

    @classmethod
    def from_csv(cls, path: str | Path) -> Self:
        """People in a file: a column `baseline` (how likely the best guess is), or `values` (so many, equally likely).

        Perhaps with a column `people`, how many people a row stands for, and a column `label`, what to call them.
        """
        file = CsvFile.open(path)
        given = [name for name in ("baseline", "values") if file.has(name)]
        InputFileError.unless(
            len(given) == 1, f"{path} needs exactly one of the columns `baseline` and `values`; {file.described}."
        )
        more = [name for name in ("people", "label") if file.has(name)]
        table = file.columns([*given, *more])
        repeat = whole_cells(file, table["people"], "people", 1) if "people" in more else [1] * len(table[given[0]])
        total = f"{path} stands for {sum(repeat):,} people, and at most {MOST_PEOPLE:,} can be told of; take fewer."
        require(sum(repeat) <= MOST_PEOPLE, total, TooLargeError)
        labels = np.repeat(np.array(table["label"], dtype=object), repeat) if "label" in more else None
        if given == ["values"]:
            masses = np.repeat(1 / np.array(whole_cells(file, table["values"], "values", 1)), repeat)
            return cls(masses, masses, masses, labels)
        numbers = np.array(file.numbers(table["baseline"], "baseline"))
        if np.any(~((numbers >= 0) & (numbers <= 1))):
            file.refuse_cell(
                "baseline", lambda cell: not 0 <= float(cell) <= 1, "is {cell}", "it is a chance, between 0 and 1"
            )
        return cls(np.repeat(numbers, repeat), labels=labels)

    @property
    def people(self) -> int:
        """How many there are."""
        return self.baselines.size

    @cached_property
    def expected(self) -> float:
        """How many are guessed rightly on average before the release, at most."""
        return float(self.baselines.sum())

    @property
    def values(self) -> int | None:
        """The number of equally likely values, if everybody has one of so many; else None."""
        first = float(self.baselines[0])
        count = round(1 / first) if first > 0 else 0
        alike = [np.all(np.abs(held * count - 1) <= SAME) for held in (self.baselines, self.smallest, self.collisions)]
        return count if count >= 2 and all(alike) else None

    def excesses(self, epsilon: float, delta: float) -> FloatArray:
        """How far the chance of success on each may exceed beta on average, given the output and all other records.

        delta (1 - kappa_pi)/(1 + (e^eps - 1) kappa^-): theory, 4.3. Rounded up; at most delta.
        """
        rise = math.expm1(min(epsilon, 700.0))
        found: FloatArray = delta * (1 - self.collisions) / (1 + rise * self.smallest) * (1 + 1e-12)
        return found

    def excess(self, epsilon: float, delta: float) -> float:
        """Delta: the same for all of them together."""
        return float(self.excesses(epsilon, delta).sum()) * (1 + 1e-12)

    def with_wrong_priors(self, by: float) -> Targets:
        """The same people if each prior may be off by this much: no set of values is more likely by more than that.

        Swanberg et al., section 7.1: what holds for priors with these baselines holds for every prior within total
        variation `by` of the given one; values that were thought impossible may then be possible.
        Where an attempt names one value, `sampling_error` tells how far frequencies in a sample may be off.
        """
        off = as_number("by", by)
        require(0 <= off <= 1, f"How far priors are off, in total variation, lies in [0, 1], got {off:g}")
        smallest = self.smallest if off == 0 else 0.0
        collisions = np.maximum(0.0, self.collisions - 4 * off)
        return Targets(np.minimum(1.0, self.baselines + off), smallest, collisions, self.labels)

    def _summary(self) -> str:
        return f"Targets({self.people} people, baselines from {self.baselines.min():g} to {self.baselines.max():g})"


def whole_cells(file: CsvFile, cells: Sequence[str], name: str, least: int) -> list[int]:
    """A column of whole numbers; or an error that names the first cell that is none."""

    def is_wrong(number: float | str) -> bool:
        return not (float(number) >= least and float(number) % 1 == 0)

    numbers = file.numbers(cells, name)
    if any(map(is_wrong, numbers)):
        file.refuse_cell(name, is_wrong, "is {cell}", f"write a whole number of at least {least}")
    return list(map(int, numbers))


def posteriors(epsilon: float, baselines: FloatArray) -> FloatArray:
    """beta(k) = e^eps k / (1 + (e^eps - 1) k) of each, rounded up (Swanberg et al., Theorem 3.2)."""
    shrink = math.exp(-epsilon)
    below = np.maximum(shrink + (1 - shrink) * baselines, 5e-324)  # 0 only where the baseline is, and e^-eps underflows
    found: FloatArray = np.minimum(1.0, baselines / below * (1 + 4 * ULP))
    return found


def _shares(given: Any, name: str) -> FloatArray:
    shares = np.atleast_1d(as_floats(given, name, ParameterError))
    ok = shares.ndim == 1 and bool(np.all((shares >= 0) & (shares <= 1)))
    require(ok, f"{name} are probabilities, each between 0 and 1, in one list.")
    return shares


def _summary(prior: Any, tries: int) -> tuple[float, float, float]:
    """The largest and the smallest mass that an attempt can name, and the collision probability."""
    if isinstance(prior, Mapping | list | tuple | np.ndarray):
        prior = Prior(prior)
    if isinstance(prior, Prior):
        weights = prior.sorted_weights
        return min(1.0, float(weights[:tries].sum())), float(weights[-1]), prior.collision_probability
    return float(prior.heaviest(tries)), 0.0, float(prior.collision_probability)
