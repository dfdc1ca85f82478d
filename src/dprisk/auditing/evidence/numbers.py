"""Outputs as numbers, as far as they hold some: vectors out of tuples, dicts and text."""

from __future__ import annotations

import contextlib
import math
import re
import reprlib
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import NUMBER, are_different
from dprisk.errors import TargetError, fail
from dprisk.types import AnyArray, FloatArray

SHORT, MOST_NAMES = 64, 1 << 14  # characters of a text that may be a name in a dict, which come again and again
POWER = r"(?:[eE][-+]?\d+)?"
NUMERAL = re.compile(rf"(?<![\w.])[-+]?(?:\d{{0,15}}\.\d+{POWER}|\d{{1,15}}{POWER}(?![\w.]))")  # and no part of a name


EPOCH = datetime(1970, 1, 1)


def _moment(when: datetime) -> tuple[float]:
    return ((when.replace(tzinfo=None) - EPOCH).total_seconds(),)


def _parts(number: Any) -> tuple[float, float]:
    return float(number.real), float(number.imag)


OTHER_NUMBERS: dict[type, Callable[[Any], tuple[float, ...]]] = {
    Decimal: lambda number: (float(number),),
    Fraction: lambda number: (number.numerator / number.denominator,),
    complex: _parts,
    np.complex64: _parts,
    timedelta: lambda span: (span.total_seconds(),),
    datetime: _moment,
}
FROM_FLOATS: dict[type, Callable[[float], Any]] = {
    Decimal: lambda number: Decimal(repr(number)),
    Fraction: lambda number: Fraction(number).limit_denominator(10**6),
    timedelta: lambda seconds: timedelta(0, seconds),
    datetime: lambda seconds: EPOCH + timedelta(0, seconds),
}
COMPLEX = (complex, np.complex64)
_DIVIDED = frozenset({tuple, *COMPLEX})
SECONDS = {timedelta: " in seconds", datetime: " in seconds since 1970"}


def comparable(outputs: Any) -> Any:
    """Pilot outputs as they can be learned from; refused if they are compared as a whole and never twice the same."""
    outputs = mostly_numbers(outputs)
    if isinstance(outputs, np.ndarray) and are_different(outputs):
        fail(
            f"No two outputs of the pilot runs are alike, such as {reprlib.repr(outputs[0])}, and most hold no floats, "
            "or not equally many, so nothing can be learned from them. Return floats, or lists of them, or give the "
            "mechanism that the code claims to be as `family`.",
            TargetError,
        )
    return outputs


def mostly_numbers(outputs: AnyArray) -> AnyArray:
    """Objects most of which are numbers, or vectors of one length, as these, and the rest as not a number.

    So a rare None hides nothing. Numbers that would be rounded count among the rest, and tuples are compared as a whole
    unless they are vectors, which hold floats and perhaps whole numbers and are not mostly seen again. Of those
    that hold other things besides, such as the names in a dict or the words of a text, the numbers are the vector.
    """
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind != "O" or outputs.size == 0:
        return outputs
    shapes = Counter(map(_shape, outputs))
    shape, count = shapes.most_common(1)[0]
    if shape is None or count <= outputs.size / 2 or (len(shapes) == 1 and 2 * len(set(outputs)) <= outputs.size):
        return outputs
    return as_numbers([value if _shape(value) == shape else None for value in outputs], shape)


def leaves(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is in a tuple, one after the other, also of tuples in it; of complex numbers both parts."""
    while not _DIVIDED.isdisjoint(map(type, value)):
        value = tuple([inner for entry in value for inner in _divided(entry)])
    return value


def _divided(entry: Any) -> tuple[Any, ...]:
    if type(entry) is tuple:
        return entry
    return (entry.real, entry.imag) if type(entry) in COMPLEX else (entry,)


def numbers_in(value: Any) -> tuple[Any, ...]:
    """The numbers in a tuple, however deep, and in text, as they are read there.

    >>> numbers_in((("mean", 2.5), ("n", 3))), numbers_in('{"mean": -2.5, "least": 1e-05}')
    ((2.5, 3), (-2.5, 1e-05))
    """
    if isinstance(value, str):
        return _read(value)
    found: list[Any] = []
    for leaf in leaves(value) if isinstance(value, tuple) else (value,):
        if isinstance(leaf, NUMBER):
            found.append(leaf)
        elif isinstance(leaf, str):
            found += _read_name(leaf) if len(leaf) <= SHORT else _read(leaf)
        elif isinstance(leaf, frozenset):
            found += sorted(numbers_in(tuple(leaf)))
        elif type(leaf) in OTHER_NUMBERS:
            with contextlib.suppress(OverflowError):
                found += OTHER_NUMBERS[type(leaf)](leaf)
    return tuple(found)


@lru_cache(1 << 10)  # a text is read several times
def _read(text: str) -> tuple[float, ...]:
    """The numbers in a text."""
    return tuple(int(told) if told.lstrip("+-").isdigit() else float(told) for told in NUMERAL.findall(text))


_read_name = lru_cache(MOST_NAMES)(_read.__wrapped__)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a number that floats hold, or of several in something else; None where there are no floats."""
    if isinstance(value, tuple | str) or type(value) in OTHER_NUMBERS:
        numbers = numbers_in(value)
        if not any(isinstance(entry, float | np.floating) for entry in numbers):
            return None
        return () if len(numbers) == 1 else (len(numbers),)
    try:
        held = isinstance(value, int | float | np.number) and (value != value or float(value) == value)
    except OverflowError:
        held = False
    return () if held else None


def as_numbers(values: list[Any], shape: tuple[int, ...]) -> FloatArray:
    """Numbers, or arrays of this shape; what is none of them is not a number."""
    kinds = (tuple, str, *OTHER_NUMBERS)
    held = [numbers_in(value) if isinstance(value, kinds) else value for value in values]
    if not shape:
        held = [value[0] if isinstance(value, tuple) and len(value) == 1 else value for value in held]
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        whole = np.array(held, dtype=float)
        if whole.shape == (len(held), *shape):
            return whole
    rows = np.full((len(held), *shape), np.nan)
    for place, numbers in enumerate(held):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            row = np.asarray(numbers, dtype=float)
            if row.shape == shape:
                rows[place] = row
    return rows


def is_number(value: Any) -> bool:
    """Whether it is a float or a whole number of 64 bits."""
    if isinstance(value, float | np.floating):
        return True
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and -(2**63) <= int(value) < 2**63


def held_number(value: Any) -> float | None:
    """The float that stands for a decimal, a fraction, a span or a moment and for no other; None where none does."""
    kind = type(value)
    if kind not in FROM_FLOATS:
        return None
    with contextlib.suppress(ArithmeticError, ValueError):  # what is too large, and decimals that are no numbers
        (number,) = OTHER_NUMBERS[kind](value)
        return number if FROM_FLOATS[kind](number) == value else None
    return None


def names_of_leaves(value: Any, name: str) -> tuple[str, ...]:
    """What the columns of a leaf of this name are called: both parts of a complex number, spans and moments by a unit.

    >>> names_of_leaves(1j, "entry 2")
    ('the real part of entry 2', 'the imaginary part of entry 2')
    """
    if type(value) in COMPLEX:
        return f"the real part of {name}", f"the imaginary part of {name}"
    return (f"{name}{SECONDS.get(type(value), '')}",)


def without_unit(name: str) -> str:
    """The name of a leaf that is looked at as a text."""
    return name.partition(" in seconds")[0]


def columns_of(outputs: AnyArray) -> Any:
    """The entries of the outputs one by one: rows, tables and so on are taken apart."""
    return outputs.reshape(len(outputs), math.prod(outputs.shape[1:])).T if outputs.ndim > 1 else [outputs]


def rows_of(outputs: AnyArray) -> FloatArray:
    """Outputs as rows of numbers."""
    return outputs.reshape(len(outputs), -1).astype(float)
