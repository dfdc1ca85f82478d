"""What kind of thing an output is, in words and as a number: type, length, NaN, infinite, the sign of a zero."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np

from dprisk.auditing.code.called import Failure
from dprisk.types import AnyArray, IntArray

USUAL = "a float other than 0"
BRIEFLY = reprlib.Repr()
BRIEFLY.maxlist = BRIEFLY.maxtuple = 12  # entries of an output that are shown


def form_of(value: Any) -> str:
    """What kind of thing this is, as the end of a sentence."""
    if isinstance(value, np.ndarray):
        return _row_form(value)
    if isinstance(value, tuple):
        kinds = sorted({_kind_of(part) for part in value})
        each = "each " if len(kinds) == 1 < len(value) else ""
        inside = f" ({each}{', '.join(kinds)})" if kinds else ""
        return f"has {len(value)} entr{'y' if len(value) == 1 else 'ies'}{inside}"
    if isinstance(value, str | bytes):
        return f"has {len(value)} {'characters' if isinstance(value, str) else 'bytes'}"
    if isinstance(value, frozenset):
        return f"is a set of {len(value)}"
    return f"is {_kind_of(value)}"


def _kind_of(value: Any) -> str:
    """What kind of thing this is, in a word or two."""
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return "NaN" if np.isnan(value) else "infinite"
        if value == 0:
            return "minus zero" if math.copysign(1.0, value) < 0 else "zero"
        return USUAL if isinstance(value, float) else f"a {value.dtype}"
    if value is None:
        return "None"
    if isinstance(value, Failure):
        return f"a failure, {value.kind}"
    if isinstance(value, bool | np.bool_):
        return "True or False"
    return "a whole number" if isinstance(value, int | np.integer) else f"of type {type(value).__name__}"


def _row_form(row: AnyArray) -> str:
    """How many entries of each odd kind there are."""
    names = ("NaN", "infinite", "minus infinite", "minus zero", "zero")
    told = [
        f"{times} that {'is' if times == 1 else 'are'} {name}"
        for times, name in zip(_odd(row), names, strict=True)
        if times
    ]
    return f"has {row.size} entries, {' and '.join(told) or 'none of them NaN, infinite or zero'}"


def _odd(numbers: AnyArray) -> list[int]:
    """How many are NaN, infinite, minus infinite, minus zero and zero."""
    if numbers.dtype.kind != "f":
        return [0] * 5
    zeros = np.signbit(numbers[numbers == 0])
    kinds = (np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers), zeros, ~zeros)
    return [int(kind.sum()) for kind in kinds]


def number_forms(outputs: AnyArray) -> IntArray:
    """Whether whole or not, and how many entries of each odd kind there are."""
    if outputs.dtype.kind != "f":
        return np.full(len(outputs), -1)
    if outputs.ndim == 1 and np.isfinite(outputs).all() and outputs.all():
        return np.zeros(len(outputs), dtype=np.int64)
    rows = outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))
    found = np.zeros(len(rows), dtype=np.int64)
    for row in np.flatnonzero((~np.isfinite(rows) | (rows == 0)).any(axis=1)):
        found[row] = sum(min(times, 3) * 4**place for place, times in enumerate(_odd(rows[row])))
    return found


def shown(example: Any) -> str:
    """An output as people read it, not too long."""
    return BRIEFLY.repr(example.tolist() if isinstance(example, np.ndarray | np.generic) else example)
