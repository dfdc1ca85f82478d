"""What kind of thing a value is, whatever the value: a whole number, NaN, minus zero, None, text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from dprisk.auditing.code.failures import Failure
from dprisk.auditing.code.outputs import digests
from dprisk.auditing.evidence.layouts import Layout, entries_in
from dprisk.auditing.evidence.places import NOTHING
from dprisk.types import AnyArray, IntArray

USUAL = "a float other than 0"


def kind_of(value: Any) -> str:
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
        return f"a failure ({value.kind})"
    if isinstance(value, bool | np.bool_):
        return "True or False"
    if isinstance(value, tuple):
        return f"{len(value)} entr{'y' if len(value) == 1 else 'ies'}"
    if isinstance(value, str):
        return "text"
    return "a whole number" if isinstance(value, int | np.integer) else f"of type {type(value).__name__}"


def kind_alone(value: Any) -> str:
    """The same of what stands alone, where zero is a number like any other and a decimal tells how long it is."""
    if isinstance(value, Decimal) and value.is_finite():
        return f"{kind_of(value)} with {max(0, -int(value.as_tuple().exponent))} decimals"
    is_zero = isinstance(value, float | np.floating) and value == 0 and not bool(np.signbit(value))
    return kind_of(type(value)(1) if is_zero else value)


def entry_kinds(outputs: AnyArray, layout: Layout, places: Sequence[int]) -> IntArray:
    """A token for the kind of some entries, these x outputs; nothing of outputs that have another length."""
    if outputs.dtype.kind in "biuf":
        rows = outputs.reshape(len(outputs), math.prod(outputs.shape[1:]))
        fits = rows.shape[1] == layout.length
        return _number_kinds(rows[:, list(places)].T) if fits else np.full((len(places), len(rows)), NOTHING)
    held = [entries_in(value) for value in outputs.tolist()]
    usual = [place for place, entries in enumerate(held) if len(entries) == layout.length]
    found = np.full((len(places), len(held)), NOTHING)
    for row, place in zip(found, places, strict=True):
        row[usual] = _kinds([held[number][place] for number in usual])
    return found


def _kinds(values: list[Any]) -> IntArray:
    if set(map(type, values)) == {float}:
        return _number_kinds(np.array(values))
    return digests([kind_alone(value) for value in values])


def _number_kinds(numbers: AnyArray) -> IntArray:
    """The same of an array of numbers."""
    usual = kind_alone(numbers.dtype.type(1))
    if numbers.dtype.kind != "f":
        return np.full(numbers.shape, digests([usual])[0])
    odd = {
        "NaN": np.isnan(numbers),
        "infinite": np.isinf(numbers),
        "minus zero": (numbers == 0) & np.signbit(numbers),
    }
    return np.select(list(odd.values()), digests(list(odd)).tolist(), digests([usual])[0])
