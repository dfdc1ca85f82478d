"""Columns: of any data frame without importing it, of text that may be numbers, of anything that can be listed."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dprisk.errors import DpriskError, ThreatError, fail
from dprisk.types import FloatArray, IntArray, Table

UNKNOWN = ("nan", "na", "n/a", "#n/a", "null")  # how programs write that there is no value
_PADDED = re.compile(r"[+-]?0\d")  # a code such as 007, no number


def readable(column: Sequence[str]) -> list[int] | list[float] | None:
    """Text as numbers if every entry can be read as one, in any notation; None if not, or for codes such as 007."""
    distinct = set(column)  # each is looked at once, however often it occurs
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            number: dict[str, Any] = {entry: kind(entry) for entry in distinct}
            return None if any(map(_PADDED.match, distinct)) else [number[entry] for entry in column]
    return None


def natural(column: Sequence[str]) -> list[Any]:
    """Text as numbers if it is how Python would write them (`10`), otherwise unchanged (`01234`)."""
    values = readable(column)
    return values if values is not None and list(map(str, values)) == list(column) else list(column)


def as_floats(values: Any, what: str, error: type[DpriskError]) -> FloatArray:
    """An array of real numbers of any shape, or an error: text, complex numbers and ragged lists are refused."""
    with contextlib.suppress(TypeError, ValueError):
        array = np.asarray(values)
        if not np.issubdtype(array.dtype, np.complexfloating):
            return array.astype(float)
    return fail(f"{what} must be numbers, in rows of equal length.", error)


def column_names(table: Table) -> list[str]:
    """The names of the columns of a data frame or of a mapping from name to values."""
    if not (hasattr(table, "columns") or isinstance(table, Mapping)):
        raise ThreatError(f"A table is a data frame or a mapping from name to column, not {type(table).__name__}.")
    return list(table.columns if hasattr(table, "columns") else table)


def column(table: Table, name: str) -> list[Any]:
    """One column as a list of plain Python values."""
    names = column_names(table)
    ThreatError.unless(names.count(name) == 1, f"The table needs one column {name!r}; it has {_listed(names)}.")
    return listed(table[name])


def rows_of(table: Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of some columns, as tuples."""
    columns = [column(table, name) for name in names]
    ThreatError.unless(len({len(values) for values in columns}) == 1, "The columns of a table must be equally long.")
    return list(zip(*columns, strict=True))


def listed(values: Any) -> list[Any]:
    """A series, an array or any iterable as a list of plain Python values."""
    for method in ("to_list", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ThreatError(f"A list of values is needed, got {values!r}.")
    return list(values)


_DROP_OR_FILL = "drop them, or fill them with a value of their own such as 'unknown'."


def require_present(values: Sequence[Any], what: str, advice: str = _DROP_OR_FILL) -> None:
    """Refuse None, NaN and the like."""
    kinds = set(map(type, values))
    if (set(map(type, chain.from_iterable(values))) if kinds == {tuple} else kinds) <= {str, int, bool}:
        return
    missing = sum(map(_is_missing, values))
    ThreatError.unless(missing == 0, f"{what} has missing values ({missing} of {len(values)}); {advice}")


def doubts(table: Mapping[str, Iterable[Any]]) -> list[str]:
    """What looks like a slip in columns that people wrote, each in a few words; nothing is changed.

    >>> doubts({"ill": ["Flu", "flu", "HIV", "n/a"]})
    ['`Flu` and `flu` of ill count as different values', '`n/a` of ill counts as a value like any other']
    >>> doubts({"34": [51, 29]})
    ['The name of the column `34` looks like a value: the file may lack a header row']
    """
    found = []
    for name, values in table.items():
        distinct = sorted(map(str, set(values)))
        spelled: dict[str, list[str]] = {}
        for value in distinct:
            spelled.setdefault(value.casefold(), []).append(f"`{value:.40}`")
        same = next((them for them in spelled.values() if len(them) > 1), None)
        missing = [value for value in distinct if value.casefold() in UNKNOWN]
        found += [f"{' and '.join(same)} of {name} count as different values"] if same else []
        found += [f"`{missing[0]}` of {name} counts as a value like any other"] if missing else []
        if name in distinct or readable([name]) is not None:
            found.append(f"The name of the column `{name:.40}` looks like a value: the file may lack a header row")
    return found


def twice(values: Iterable[Any]) -> list[Any]:
    """The values that occur more than once."""
    try:
        return [value for value, times in Counter(values).items() if times > 1]
    except TypeError:
        raise ThreatError("Records are plain values such as text and numbers, or rows of them.") from None


def tally(entries: Iterable[Any]) -> dict[Any, int]:
    """How often each value occurs: sorted when values can be compared, otherwise in order of appearance."""
    try:
        counted = Counter(entries)
    except TypeError:
        raise ThreatError("Labels must be plain values such as text and numbers, not lists.") from None
    with contextlib.suppress(TypeError):  # mixed types have no order; the order of appearance is as good as any
        return {value: counted[value] for value in sorted(counted)}
    return dict(counted)


def encode(values: Iterable[Any]) -> tuple[IntArray, list[Any]]:
    """Number the distinct values: a code for each entry, and the value behind each code.

    Values are sorted when they can be compared, otherwise kept in order of appearance.
    """
    entries = listed(values)
    require_present(entries, "This list")
    distinct = list(tally(entries))
    number = {value: code for code, value in enumerate(distinct)}
    return np.fromiter((number[entry] for entry in entries), dtype=np.int64, count=len(entries)), distinct


def _is_missing(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_missing, value))
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA answers neither yes nor no
        return True
    except ValueError:  # an array, which is there
        return False


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "no columns"
