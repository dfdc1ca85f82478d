"""Numbers as text, rounded to the safe side: a bound that is printed is a bound still."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

ULP = 2.0**-52
FEW_STEPS = 32  # of arithmetic, in any formula of the register


def outward(bound: float, terms: int) -> float:
    """An upper bound with what floats may have lost on the way to it put on top.

    That is relative to the bound for a sum of so many terms and a few steps more, and absolute for differences from 1.
    """
    return bound * (1 + (terms + FEW_STEPS) * ULP) + 4 * ULP


def written_out(number: str) -> str:
    """The same number without an exponent, unless it has many places: 22790 instead of 2.279e+04."""
    return f"{Decimal(number):f}" if "e+" in number and float(number) < 1e9 else number


def significant_up(value: float, digits: int = 6) -> str:
    """An upper bound to so many significant digits, never printed below its value."""
    if value <= 0 or not math.isfinite(value):
        return f"{value:g}"
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    shown = f"{value:.{digits}g}"
    return written_out(shown if float(shown) >= value else f"{float(shown) + step:.{digits}g}")


def nearly_up(value: float, digits: int = 6) -> str:
    """The same, but noise in the last binary digits is no reason to round: for what is shown beside exact numbers."""
    return significant_up(float(f"{value:.12g}"), digits) if math.isfinite(value) else significant_up(value, digits)


def significant_down(value: float, digits: int) -> str:
    """A lower bound to so many significant digits; noise in the last binary digits is no reason to round."""
    return written_out(f"{float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(f'{value:.12g}')):g}")


def decimals_down(value: float, digits: int) -> str:
    """A lower bound in so many decimals, which is one still; noise in the last binary digits is no reason to round."""
    return str(Decimal(f"{value:.12g}").quantize(Decimal(1).scaleb(-digits), ROUND_FLOOR))


def decimals_up(value: float, digits: int) -> str:
    """An upper bound in so many decimals."""
    return str(Decimal(f"{value:.12g}").quantize(Decimal(1).scaleb(-digits), ROUND_CEILING))


def sure(alpha: float) -> str:
    """1 - alpha in words, with digits enough not to be all of 100 %."""
    if alpha < 1e-6:
        return f"confidence 1 - {alpha:g}"
    error = Context(prec=3, rounding=ROUND_CEILING).multiply(100, Decimal(repr(float(alpha))))
    return f"{(100 - error).normalize():f} % confidence"


def plain(value: float) -> str:
    """Four decimals, or three significant digits where these would vanish: for numbers that are no bounds."""
    return f"{value:.4f}" if value >= 0.001 or value == 0 else f"{value:.3g}"


def so_many(number: int, one: str, many: str) -> str:
    """So many things: 1 canary, 12 canaries."""
    return f"{number} {one if number == 1 else many}"


def round_number_of_people(*shares: float) -> int:
    """The smallest power of ten, at least 1000, at which no share that counts vanishes by rounding."""
    smallest = min((share for share in shares if share > 1e-9), default=1.0)
    people = 1000
    while smallest * people < 1 and people < 10**9:
        people *= 10
    return people


def percent_up(share: float) -> str:
    """A share in percent, to three digits, or four near all of it, rounded up.

    >>> percent_up(0.1193), percent_up(0.99913)
    ('12', '99.92')
    """
    return significant_up(100 * share, 3 if share < 0.99 else 4)
