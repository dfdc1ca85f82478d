"""What the attacker believes about the record before the release."""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dprisk.csv_files import CsvFile
from dprisk.errors import InputFileError, PriorError, as_number, as_size, fail
from dprisk.tables import as_floats, column_names, listed, natural, require_present, tally, twice
from dprisk.types import FloatArray, IntArray
from dprisk.values import Value

_OF_PEOPLE = (
    "Of a file with one row a person name the column that is meant: Prior.from_csv(file, column=...), or --data FILE "
    "--column NAME."
)
SUM_TOLERANCE = 1e-9
LOOKED_AT = 10_000  # labels that are compared with a wrong one
SHOWN = 5  # labels that a message lists
MOST_LISTED = 10**8  # that are listed one by one: each takes some ten bytes in several arrays


@dataclass(frozen=True, eq=False, repr=False)
class Prior(Value):
    """A probability for each possible record.

    `weights` must sum to 1 within 1e-9 (they are then scaled to sum to 1 as closely as floats allow).
    A mapping from label to probability brings its own labels. Records of probability 0 are allowed: they
    can be guessed and reported; `size` counts them, and `support_size` leaves them out.

    >>> Prior([0.5, 0.3, 0.2])
    Prior(weights=[0.5, 0.3, 0.2])
    >>> Prior.uniform(100)
    Prior(100 records, heaviest 0.01, collision probability 0.01)
    """

    weights: FloatArray
    labels: tuple[Any, ...] | None = None
    size: int = field(init=False)

    def __init__(self, weights: npt.ArrayLike | Mapping[Any, float], labels: Iterable[Any] | None = None) -> None:
        weights, labels = _with_labels(weights, labels)
        mass = _mass(weights, "probabilities")
        total = float(mass.sum())
        PriorError.unless(
            abs(total - 1) <= SUM_TOLERANCE,
            f"The prior sums to {total:.10g}, not 1. If these are counts or rounded shares, use Prior.from_counts "
            "(in a file: name the column `count`).",
        )
        object.__setattr__(self, "weights", mass / total)
        object.__setattr__(self, "labels", _labels(labels, mass.size))
        object.__setattr__(self, "size", mass.size)

    @classmethod
    def uniform(cls, size: int, labels: Iterable[Any] | None = None) -> Self:
        """Every one of `size` records equally likely."""
        size = _listable(size)
        return cls(np.full(size, 1 / size), labels)

    @classmethod
    def from_counts(cls, counts: npt.ArrayLike | Mapping[Any, float], labels: Iterable[Any] | None = None) -> Self:
        """Probabilities in proportion to counts; a mapping label -> count brings its labels.

        >>> Prior.from_counts({"flu": 30, "cold": 70}).to_dict()
        {'flu': 0.3, 'cold': 0.7}
        """
        counts, labels = _with_labels(counts, labels)
        mass = _mass(counts, "counts")
        PriorError.unless(mass.max() > 0, "All counts are 0; at least one must be positive.")
        mass = mass / mass.max()  # so that the sum cannot overflow
        return cls(mass / mass.sum(), labels)

    @classmethod
    def from_column(cls, values: Iterable[Any], labels: Iterable[Any] | None = None) -> Self:
        """The frequencies in a column of observed values (a list, a pandas or polars series, an array).

        The records are the values that occur, sorted, or the given `labels`, some of which may not occur.

        >>> Prior.from_column(["flu", "cold", "flu"], labels=["flu", "cold", "measles"]).weights.round(2).tolist()
        [0.67, 0.33, 0.0]
        """
        PriorError.unless(not isinstance(values, Mapping), "A mapping label -> count is for Prior.from_counts.")
        if hasattr(values, "columns"):
            some = "".join(f", such as table[{name!r}]" for name in column_names(values)[:1])
            fail(f"This is a whole table; a prior is of one column{some}.", PriorError)
        entries = listed(values)
        PriorError.unless(len(entries) > 0, "The column is empty; a prior needs at least one observed value.")
        require_present(entries, "The column")
        counts = tally(entries)
        if labels is None:
            return cls.from_counts(counts)
        names = listed(labels)
        known = set(_labels(names, len(names)) or ())
        unlisted = [value for value in counts if value not in known]
        PriorError.unless(not unlisted, f"The column holds {unlisted[:1]}, which is not among the labels.")
        return cls.from_counts([counts.get(name, 0) for name in names], names)

    @classmethod
    def from_csv(cls, path: str | Path, column: str | None = None) -> Self:
        """A prior from a CSV file.

        Without `column` the file has a column `label` and either `probability` (must sum to 1) or `count`.
        With `column`, the file has one row a person, and these are the frequencies of the values in that column.
        Commas, semicolons or tabs between the cells; capital letters in the names of columns do not matter.
        """
        file = CsvFile.open(path)
        if column is not None:
            counts = file.counts([column])
            values = natural([value for (value,) in counts])
            known = dict(zip(values, counts.values(), strict=True))
            return cls.from_counts({value: known[value] for value in tally(values)})
        if not file.has("label"):
            fail(f"{path} has no column `label`; {file.described}. {_OF_PEOPLE}", InputFileError)
        given = [name for name in ("probability", "count") if file.has(name)]
        InputFileError.unless(
            len(given) == 1, f"{path} needs exactly one of the columns `probability` and `count`; {file.described}."
        )
        table = file.columns(["label", *given])
        _require_names(file, table["label"])
        build = cls if given == ["probability"] else cls.from_counts
        numbers = file.numbers(table[given[0]], given[0])
        if not all(0 <= number < math.inf for number in numbers):
            wanted = "must be a finite number of at least 0, got {cell}"
            file.refuse_cell(
                given[0], lambda cell: not 0 <= float(cell) < math.inf, wanted, "correct it or leave the row out"
            )
        return build(numbers, natural(table["label"]))

    @classmethod
    def zipf(cls, size: int, exponent: float = 1.0) -> Self:
        """The k-th record has weight k ** -exponent."""
        size = _listable(size)
        exponent = as_number("the zipf exponent", exponent)
        PriorError.unless(0 <= exponent < np.inf, f"the zipf exponent must be finite and at least 0, got {exponent}")
        return cls.from_counts(np.arange(1, size + 1) ** -exponent)

    @classmethod
    def geometric(cls, size: int, ratio: float = 0.5) -> Self:
        """Each record is `ratio` times as likely as the one before it."""
        size = _listable(size)
        ratio = as_number("the ratio", ratio)
        PriorError.unless(0 < ratio <= 1, f"the ratio must lie in (0, 1], got {ratio}")
        return cls.from_counts(ratio ** np.arange(size))

    @cached_property
    def support(self) -> IntArray:
        """The records of positive probability."""
        return np.flatnonzero(self.weights)

    @property
    def support_size(self) -> int:
        """The number of records of positive probability: the m of every bound."""
        return self.support.size

    @cached_property
    def sorted_weights(self) -> FloatArray:
        """The positive probabilities, largest first."""
        return np.sort(self.weights[self.support])[::-1]

    @cached_property
    def collision_probability(self) -> float:
        """kappa_pi, the chance that two draws from the prior coincide."""
        most = 1.0 if self.support_size == 1 else math.nextafter(1.0, 0.0)  # beside a rare record no other is sure
        return min(most, float(self.weights @ self.weights))

    @cached_property
    def entropy(self) -> float:
        """Shannon entropy in bits."""
        return float(-(self.sorted_weights @ np.log2(self.sorted_weights))) + 0.0

    @property
    def is_uniform(self) -> bool:
        """Whether every record is equally likely."""
        return self.support_size == self.size and self.is_uniform_on_support

    @property
    def is_uniform_on_support(self) -> bool:
        """Whether every record of positive probability is equally likely."""
        return bool(self.sorted_weights[0] - self.sorted_weights[-1] <= 1e-12 * self.sorted_weights[0])

    def name(self, record: int) -> Any:
        """The label of a record, or its number where there are no labels."""
        return record if self.labels is None else self.labels[record]

    def find(self, record: Any) -> int:
        """The number of a record, by its label, or by its number where there are no labels.

        Text finds a label that is written like it ("42" the label 42, "f, yes" the label ("f", "yes")), perhaps with
        other capital letters, or a row that it is a part of ("yes"), if only one is.
        """
        if self.labels is None:
            return _numbered(record, self.size)
        with suppress(KeyError, TypeError):  # what is no label, or cannot be one, is compared with each
            return self._places[record]
        same = _alike(self.labels, record)
        if len(same) == 1:
            return same[0]
        if same:
            some = "; ".join(written(self.labels[place]) for place in same[:SHOWN])
            more = f"; and {len(same) - SHOWN} more" if len(same) > SHOWN else ""
            fail(
                f"{len(same)} records are written like {written(record)!r}, give one of them: {some}{more}.", PriorError
            )
        folded = {written(label).casefold(): written(label) for label in self.labels[:LOOKED_AT]}
        near = difflib.get_close_matches(written(record).casefold(), folded, n=3, cutoff=0.5) or list(folded)[:3]
        names = " or ".join(folded[name] for name in near)
        raise PriorError(f"There is no record {written(record)!r} among {self.size}; is it {names}?")

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The number of each record by its label: no two labels are the same."""
        return {label: place for place, label in enumerate(self.labels or ())}

    def positions(self) -> FloatArray:
        """Where the records lie on a line: at their labels, which must be numbers; without labels at 0, 1, 2, ..."""
        if self.labels is None:
            return np.arange(self.size, dtype=float)
        places = [_place(label) for label in self.labels]
        odd = [label for label, place in zip(self.labels, places, strict=True) if place is None]
        PriorError.unless(
            not odd,
            f"A distance needs records that are numbers, and the label {odd[0] if odd else 0!r} is none: leave it out, "
            "or say where the records lie, as in Line(within, positions=[...]).",
        )
        return np.array(places, dtype=float)

    def require_even_spacing(self, what: str) -> None:
        """Refuse number labels that do not rise in equal steps, for `what` takes records to be equally spaced.

        Labels none of which is a number say nothing of where the records lie.
        """
        if self.labels is not None and all(_place(label) is None for label in self.labels):
            return
        gaps = np.diff(self.positions())
        even = gaps.size == 0 or (gaps.min() > 0 and np.ptp(gaps) <= 1e-9 * gaps.max())
        PriorError.unless(
            even,
            f"{what} takes the records to rise in equal steps, but the labels do not; give positions.",
        )

    def to_dict(self) -> dict[Any, float]:
        """Label -> probability."""
        names: Sequence[Any] = range(self.size) if self.labels is None else self.labels
        return dict(zip(names, self.weights.tolist(), strict=True))

    def _summary(self) -> str:
        return (
            f"Prior({self.size} records, heaviest {self.weights.max():.4g}, "
            f"collision probability {self.collision_probability:.4g})"
        )


def _numbered(record: Any, size: int) -> int:
    """The number of a record that has no label."""
    number = int(record) if isinstance(record, str) and record.isdecimal() else record
    is_one = isinstance(number, int | np.integer) and not isinstance(number, bool) and 0 <= number < size
    PriorError.unless(is_one, f"There is no record {record!r}: the records have no labels, only numbers 0..{size - 1}.")
    return int(number)


def _is_equal(label: Any, record: Any) -> bool:
    equal = label == record
    return isinstance(equal, bool | np.bool_) and bool(equal)


def written(label: Any) -> str:
    """A label as people write it."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _alike(labels: Sequence[Any], record: Any) -> list[int]:
    """The places of the labels that a record may be: those that are it, else by how they are written, nearest first."""
    same = [place for place, label in enumerate(labels) if _is_equal(label, record)]
    if same or not isinstance(record, str):
        return same
    folded = record.casefold()
    likenesses: tuple[Callable[[Any], bool], ...] = (
        lambda label: written(label) == record,
        lambda label: written(label).casefold() == folded,
        lambda label: isinstance(label, tuple) and record in map(str, label),
        lambda label: isinstance(label, tuple) and folded in (str(part).casefold() for part in label),
    )
    found = ([place for place, label in enumerate(labels) if is_like(label)] for is_like in likenesses)
    return next(filter(None, found), [])


def _mass(values: Any, what: str) -> FloatArray:
    """Finite, non-negative numbers in one dimension, or an error that names the first that is not."""
    mass = as_floats(values, f"The {what}", PriorError)
    PriorError.unless(mass.ndim == 1 and mass.size > 0, f"The {what} must be a non-empty list of numbers.")
    for ok, rule in ((np.isfinite(mass), "finite"), (mass >= 0, "at least 0")):
        where = np.flatnonzero(~ok)
        first = f"entry {where[0]} is {mass[where[0]]:g}" if where.size else ""
        PriorError.unless(where.size == 0, f"All {what} must be {rule}; {first}.")
    return mass


def _with_labels(values: Any, labels: Iterable[Any] | None) -> tuple[Any, Iterable[Any] | None]:
    """Values and labels of a mapping or of a pandas series with an index of its own."""
    if not isinstance(values, Mapping) and not (hasattr(values, "index") and hasattr(values, "items")):
        return values, labels
    names = list(values.keys())
    own = isinstance(values, Mapping) or names != list(range(len(names)))
    PriorError.unless(not own or labels is None, "A mapping brings its own labels; drop `labels`.")
    numbers_only = list(values.values()) if isinstance(values, Mapping) else list(values)
    return numbers_only, names if own else labels


def _place(label: Any) -> float | None:
    """The number that a label is, or None."""
    try:
        place = float(label) if not isinstance(label, bool) else math.nan
    except (TypeError, ValueError):
        return None
    return place if math.isfinite(place) else None


def _labels(labels: Iterable[Any] | None, size: int) -> tuple[Any, ...] | None:
    if labels is None:
        return None
    names = tuple(listed(labels))
    PriorError.unless(len(names) == size, f"{len(names)} labels for {size} records; give each record its own.")
    require_present(names, "The list of labels")
    for again in twice(names):
        fail(f"The label {again!r} appears twice; each record needs its own.", PriorError)
    return names


def _require_names(file: CsvFile, labels: Sequence[str]) -> None:
    """Refuse labels that are empty or the same."""
    if "" in labels:
        file.refuse_cell("label", lambda cell: not cell, "is empty", "give each record a name")
    if twice(labels):
        seen: set[str] = set()

        def is_again(cell: str) -> bool:
            known = cell in seen
            seen.add(cell)
            return known

        file.refuse_cell("label", is_again, "{cell!r} appears twice", "each record needs its own")


def _listable(size: int) -> int:
    number = as_size(size)
    if number > MOST_LISTED:
        raise PriorError(f"A prior lists its records, at most {MOST_LISTED:,} of them, got {number:,}; group them.")
    return number
