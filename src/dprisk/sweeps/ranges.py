"""Numbers as people write them: one, some, or a range of them."""

import math

from dprisk.errors import fail, require

MOST = 1000  # points of a range
MAGNITUDES = 100.0  # from this ratio of its ends on, a range goes up by factors instead of steps


def numbers_in(text: str, points: int, name: str = "This") -> tuple[float, ...]:
    """The numbers in `2`, in `0.1,0.5,1`, in `0.1..5` (so many `points`) and in `0.1..5:20` (20 points).

    A range goes up by equal steps, or by equal factors if its ends are far apart. What lies between the ends is
    rounded to three digits, so that a number that is printed is the number that was computed with.

    >>> numbers_in("0.1,0.5,1", 5)
    (0.1, 0.5, 1.0)
    >>> numbers_in("0..4", 5)
    (0.0, 1.0, 2.0, 3.0, 4.0)
    >>> numbers_in("0.01..100:5", 11)
    (0.01, 0.1, 1.0, 10.0, 100.0)
    """
    if ".." not in text:
        return tuple(_number(part, text, name) for part in text.split(","))
    low, _, rest = text.partition("..")
    high, colon, count = rest.partition(":")
    if colon:
        require(
            count.strip().isdecimal(), f"{name}: behind the colon stands how many points, as in 0.1..5:20; got {text}."
        )
        points = int(count)
        require(2 <= points <= MOST, f"{name}: a range has 2 to {MOST} points, {text} asks for {points}.")
    first, last = _number(low, text, name), _number(high, text, name)
    require(first < last, f"{name}: a range goes from the smaller number to the larger, as in 0.1..5; got {text}.")
    between = (_between(first, last, step / (points - 1)) for step in range(1, points - 1))
    return (first, *dict.fromkeys(number for number in between if first < number < last), last)


def _between(first: float, last: float, share: float) -> float:
    far = first > 0 and last / first >= MAGNITUDES
    number = first * (last / first) ** share if far else first + (last - first) * share
    return float(f"{number:.3g}")


def _number(part: str, text: str, name: str) -> float:
    try:
        number = float(part)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        fail(f"{name} is a number, some (0.1,0.5,1) or a range (0.1..5, or 0.1..5:20 for 20 points), not {text!r}.")
    return number
