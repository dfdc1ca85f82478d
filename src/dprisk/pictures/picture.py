"""What a picture shows, as plain data: curves in panels, or bars. Nothing here draws."""

from dataclasses import dataclass

# Okabe and Ito's colours, which people of every colour vision tell apart; their yellow is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#E69F00", "#56B4E9", "#CC79A7")
GREY, BLACK = "#767676", "#000000"


@dataclass(frozen=True)
class Curve:
    """A line with its name. `dashed` is for bounds, `low` and `high` are the ends of an interval at each point."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: str
    dashed: bool = False
    bold: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Panel:
    """Curves that share their axes; the title is empty where there is only one panel."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Curves:
    """Panels side by side: what is above all of them, and below each."""

    heading: str
    across: str
    panels: tuple[Panel, ...]
    logarithmic: bool = False
    mark: tuple[float, float] | None = None  # a point that is pointed out


@dataclass(frozen=True)
class Bar:
    """A named number, with an interval if it has one; `open` bars are bounds, of which only the upper end is known."""

    label: str
    value: float
    shown: str
    open: bool = False
    bold: bool = False
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bars:
    """Named numbers to compare, the first at the top."""

    heading: str
    bars: tuple[Bar, ...]


Picture = Curves | Bars


def colour(number: int) -> str:
    """The colour of the curve of that number."""
    return COLOURS[number % len(COLOURS)]
