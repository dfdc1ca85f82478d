"""Whether numbers in a file are written in one way, so that nothing is lost by reading them as numbers."""

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from math import inf
from typing import NamedTuple

import numpy as np

NUMERAL = re.compile(r"([-+]?)([0-9]*)(\.[0-9]*)?(?:([eE])([-+]?)([0-9]+))?")
WORD = re.compile(r"([-+]?)(inf|infinity|(?<!-)nan)", re.IGNORECASE)


class Form(NamedTuple):
    """How a number is written, without its digits: few forms serve very many numbers."""

    sign: str
    whole: str  # none, 0, 1 for any other digit, or 10 for several
    decimals: int  # -1 without a point: `3` is not `3.`
    ends_in_zero: bool
    letter: str | None  # the e of 1e-05
    power_sign: str | None
    power: str | None

    @property
    def is_shortest(self) -> bool:
        """Whether no zero ends its decimals, as in 3 and 3.5."""
        return self.decimals == -1 or (self.decimals > 0 and not self.ends_in_zero)

    @property
    def has_decimals(self) -> bool:
        """Whether it has some, and a zero ends them only as .0, as in 3.0 and 3.5."""
        return self.decimals == 1 or (self.decimals > 0 and not self.ends_in_zero)


class Word(NamedTuple):
    """A number that is written as a word, such as inf or NaN."""

    sign: str
    spelling: str


def are_written_alike(numbers: Mapping[str, float]) -> bool:
    """Whether how each number is written follows from the number, by one rule for all of them.

    Then whoever knows the numbers knows the cells. The rules are a fixed number of decimals; the shortest way, 3 beside
    3.5; and Python's, 3.0 beside 3.5. Each with signs, leading zeros and powers of ten in one way.
    """
    found = set(map(_form, numbers))
    forms = {form for form in found if isinstance(form, Form)}
    return (
        None not in found
        and _are_spelt_alike({word.spelling for word in found if isinstance(word, Word)})
        and len({form.sign for form in found if form} - {"-"}) <= 1  # 3 beside +3
        and _begin_alike(forms)
        and _have_decimals_alike(forms)
        and _have_powers_alike({form for form in forms if form.power}, numbers)
        and _differ(numbers.values())
    )


def _form(cell: str) -> Form | Word | None:
    """How a number is written; None of anything else."""
    match = NUMERAL.fullmatch(cell)
    if match is None:
        word = WORD.fullmatch(cell)
        return word and Word(word[1], word[2])
    sign, whole, fraction, *power = match.groups()
    kind = whole if whole in ("", "0") else "1" if len(whole) == 1 else "10"
    return Form(sign, kind, len(fraction or "") - 1, fraction is not None and fraction[-1] == "0", *power)


def _are_spelt_alike(words: Collection[str]) -> bool:
    """Whether nan has one spelling, and inf too."""
    return len({word.lower()[:3] for word in words}) == len(words)


def _begin_alike(forms: Collection[Form]) -> bool:
    """Whether there is always a zero before the point, or never: not .5 beside 0.5."""
    return not {"", "0"} <= {form.whole for form in forms if form.decimals > 0}


def _have_decimals_alike(forms: Collection[Form]) -> bool:
    """Whether all have equally many decimals, or trailing zeros never, or only as Python writes them."""
    if len({form.decimals for form in forms}) == 1 or all(form.is_shortest for form in forms):
        return True
    powers = [form for form in forms if form.power]
    in_powers = all(form.is_shortest for form in powers) or all(form.has_decimals for form in powers)  # 1.0E-5 in Java
    return in_powers and all(form.has_decimals for form in forms if not form.power)


def _have_powers_alike(powers: Collection[Form], numbers: Mapping[str, float]) -> bool:
    """Whether powers of ten have one form, and which numbers have them follows from the numbers."""
    if not powers:
        return True
    return (
        len({form.letter for form in powers}) == 1
        and len({form.power_sign for form in powers} - {"-"}) <= 1
        and _are_padded_alike({form.power or "" for form in powers})
        and all(form.whole in ("0", "1") for form in powers)
        and _follow_from_size(numbers)
    )


def _are_padded_alike(powers: Collection[str]) -> bool:
    """Whether all have the zeros that fill up to one width: 05 and 12, or 5 and 12."""
    return any(all(power == str(int(power)).zfill(width) for power in powers) for width in (1, 2, 3))


def _follow_from_size(numbers: Mapping[str, float]) -> bool:
    """Whether the numbers with powers of ten are smaller or larger than all others, or shorter so (as R decides)."""
    with_power = {cell for cell in numbers if "e" in cell.lower()}
    if any(numbers[cell] and cell.lstrip("-+")[0] == "0" for cell in with_power):  # 0.5e1
        return False
    sizes = [abs(number) for cell, number in numbers.items() if cell not in with_power and number and abs(number) < inf]
    low, high = min(sizes, default=inf), max(sizes, default=0)
    if not any(low <= abs(numbers[cell]) <= high for cell in with_power):
        return True
    numerals = (cell for cell in numbers if NUMERAL.fullmatch(cell))
    return all((cell in with_power) == _is_shorter_with_power(cell) for cell in numerals)


def _is_shorter_with_power(cell: str) -> bool:
    """Whether 1e+05 takes fewer characters than 100000, and so on; the sign counts in neither."""
    _, digits, shift = Decimal(cell).normalize().as_tuple()
    power, decimals = len(digits) - 1 + int(shift), max(-int(shift), 0)
    plain = max(power, 0) + 1 + (decimals + 1 if decimals else 0)
    return len(digits) + (len(digits) > 1) + (4 if abs(power) < 100 else 5) < plain


def _differ(numbers: Collection[float]) -> bool:
    """Whether no two are the same; minus zero is another than zero."""
    floats = np.array([number for number in numbers if isinstance(number, float)], dtype=float)
    whole = {number for number in numbers if not isinstance(number, float)}
    return np.unique(floats.view(np.int64)).size + len(whole) == len(numbers)
