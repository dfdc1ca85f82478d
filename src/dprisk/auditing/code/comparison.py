"""Outputs as they can be compared with each other: mostly numbers as numbers, anything else by how it is written."""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dprisk.errors import TargetError, require
from dprisk.types import AnyArray, FloatArray

LONG = 200  # characters of an output beyond which its digest is compared instead


def comparable(outputs: Any) -> Any:
    """Pilot outputs as they can be learned from; refused if they are compared as a whole and never twice the same."""
    outputs = _mostly_numbers(outputs)
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind not in "biuf":
        require(
            len(set(sortable(outputs).tolist())) < len(outputs),
            f"No two outputs of the pilot runs are alike, such as {reprlib.repr(outputs[0])}, so nothing can be "
            "learned from them. Return floats, or lists of them (tuples, text and others are compared as a whole), or "
            "give the mechanism that the code claims to be as `family`.",
            TargetError,
        )
    return outputs


def require_outputs(outputs: Any) -> None:
    """Refuse code that returns nothing at all."""
    some = not isinstance(outputs, np.ndarray) or outputs.dtype.kind != "O" or outputs.size == 0
    require(
        some or any(output is not None for output in outputs),
        "Every output is None; does the code return its output?",
        TargetError,
    )


def _mostly_numbers(outputs: AnyArray) -> AnyArray:
    """Objects most of which are numbers, or vectors of one length, as these, and the rest as not a number.

    So a rare None hides nothing. Numbers that would be rounded count among the rest, and tuples are compared as a whole
    unless they are vectors, which hold floats and perhaps whole numbers and are not all seen again and again.
    """
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind != "O" or outputs.size == 0:
        return outputs
    shapes = Counter(map(_shape, outputs))
    shape, count = shapes.most_common(1)[0]
    if shape is None or count <= outputs.size / 2 or (len(shapes) == 1 and len(set(outputs)) < outputs.size):
        return outputs
    return as_numbers([value if _shape(value) == shape else None for value in outputs], shape)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a number that floats hold, or of a vector of floats; None of anything else."""
    if isinstance(value, tuple):
        numbers = all(isinstance(entry, float | int) for entry in value)
        return (len(value),) if numbers and any(isinstance(entry, float) for entry in value) else None
    try:
        held = isinstance(value, int | float | np.number) and (value != value or float(value) == value)
    except OverflowError:
        held = False
    return () if held else None


def as_numbers(values: list[Any], shape: tuple[int, ...]) -> FloatArray:
    """Numbers, or arrays of this shape; what is none of them is not a number."""
    rows = np.full((len(values), *shape), np.nan)
    for place, value in enumerate(values):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            row = np.asarray(np.nan if isinstance(value, str) else value, dtype=float)
            if row.shape == shape:
                rows[place] = row
    return rows


def sortable(values: AnyArray) -> AnyArray:
    """Values that can be sorted: anything but numbers and text by how it is written."""
    return np.array(each_once(_written, values)) if values.dtype == object else values


def each_once(function: Callable[[Any], str], values: Iterable[Any]) -> list[str]:
    """A function of each value, computed once for plain values of the same types that are the same."""
    known: dict[bytes, str] = {}
    found = []
    for value in values:
        try:
            key = marshal.dumps(value, 2)  # tells 1, 1.0 and True apart, which a dict does not
        except ValueError:
            found.append(function(value))
            continue
        if key not in known:
            known[key] = function(value)
        found.append(known[key])
    return found


def _written(value: Any) -> str:
    """A value as text, numbers in one way whatever type they have; where that is long, its digest."""
    if isinstance(value, tuple):
        text = f"({', '.join(map(_written, value))})"
    else:
        plain = value.item() if isinstance(value, np.generic) else value
        text = repr(int(plain)) if isinstance(plain, float) and plain.is_integer() else repr(plain)
    return text if len(text) <= LONG else hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def columns_of(outputs: AnyArray) -> Any:
    """The entries of the outputs one by one: rows, tables and so on are taken apart."""
    return outputs.reshape(len(outputs), -1).T if outputs.ndim > 1 else [outputs]


def rows_of(outputs: AnyArray) -> FloatArray:
    """Outputs as rows of numbers."""
    return outputs.reshape(len(outputs), -1).astype(float)
