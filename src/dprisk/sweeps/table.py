"""What a sweep comes out with: a table of cases, and the worst of them in words."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dprisk.answers import Answer, Row
from dprisk.errors import MissingPackageError, fail, require
from dprisk.pictures import draw
from dprisk.rounding import plain, significant_up
from dprisk.sweeps.curves import NAMED, pictured
from dprisk.sweeps.point import Point
from dprisk.sweeps.worst import stretches, worst_along, worst_of
from dprisk.values import Parameter

if TYPE_CHECKING:
    from dprisk.pictures.picture import Picture

MOST_TURNS = 4  # changes of the worst that a sentence can name


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Answer):
    """The cases that were assessed, the parameter innermost.

    `axes` are the names of what was varied, `parameter` what the noise is set by, `asked` how many cases there were to
    be: more than `points` if somebody stopped the sweep.
    """

    points: tuple[Point, ...]
    axes: tuple[str, ...]
    parameter: Parameter | None
    asked: int

    @property
    def complete(self) -> bool:
        """Whether every case was assessed."""
        return len(self.points) == self.asked

    @property
    def about(self) -> str:
        what = "" if "subject" in self.axes or not self.points else f"{self.points[0].subject}: "
        return f"{what}{', '.join(map(self._extent, self.axes))} ({len(self.points)} cases)"

    def _extent(self, axis: str) -> str:
        places = self._places(axis)
        if axis in ("subject", "prior") or len(places) == 1:
            return ", ".join(_shown(place) for place in places) if len(places) <= 3 else f"{len(places)} {axis}s"
        return f"{axis} {min(places):g} to {max(places):g}"

    def _places(self, axis: str) -> list[Any]:
        return list(dict.fromkeys(point.along(axis) for point in self.points))

    @property
    def records(self) -> list[dict[str, Any]]:
        """The table as plain data: a mapping from column to value for each case.

        Ends of intervals are there if some case is estimated or enclosed, bounds if they were asked for.
        """
        return [self._record(point) for point in self.points]

    def _record(self, point: Point) -> dict[str, Any]:
        told = {axis: point.along(axis) for axis in self.axes}
        told |= {name: getattr(point, name) for name in ("advantage", "success", "baseline", "how", "source")}
        for which in ("advantage", "success") if self._has_intervals else ():
            ends = getattr(point, f"{which}_interval")
            own = getattr(point, which)
            told[f"{which}_low"], told[f"{which}_high"] = ends or (None if point.how == "bound" else own, own)
        for name in ("advantage_bound", "success_bound") if self._has_bounds else ():
            told[name] = getattr(point, name)
        return told

    @cached_property
    def _has_intervals(self) -> bool:
        return any(point.advantage_interval is not None for point in self.points)

    @cached_property
    def _has_bounds(self) -> bool:
        return any(point.advantage_bound is not None for point in self.points)

    def column(self, name: str) -> list[Any]:
        """One column of the table."""
        records = self.records
        known = list(records[0]) if records else []
        require(name in known, f"There is no column {name}; there are {', '.join(known)}.")
        return [record[name] for record in records]

    def where(self, **places: Any) -> Sweep:
        """The cases at some places on some axes, as in `where(prior="uniform")` or `where(within=[0, 10])`."""
        for axis in places:
            require(axis in self.axes, f"{axis} was not varied; {', '.join(self.axes)} were.")
        wanted = {axis: given if isinstance(given, list | tuple) else [given] for axis, given in places.items()}
        kept = tuple(point for point in self.points if all(point.along(axis) in some for axis, some in wanted.items()))
        require(len(kept) > 0, "No case of the sweep is there.")
        return replace(self, points=kept, asked=len(kept))

    @property
    def worst(self) -> Point:
        """The case with the largest advantage; of several, the first."""
        return worst_of(self.points) if self.points else fail("The sweep was stopped before the first case.")

    @cached_property
    def along(self) -> str | None:
        """The axis with numbers: the parameter if it was varied, or else the distance; None if neither was."""
        numeric = [axis for axis in self.axes if axis not in NAMED and len(self._places(axis)) > 1]
        return numeric[-1] if numeric else None

    def worst_along(self, axis: str) -> list[tuple[float, Any]]:
        """Which subject, prior or distance has the largest advantage, for each number of `along`.

        Of several that are as bad, it is the one that was the worst before.
        """
        require(axis in self.axes, f"{axis} was not varied; {', '.join(self.axes)} were.")
        if self.along is None:
            fail("Neither a parameter nor a distance was varied: `worst` is the worst.")
        return worst_along(self.points, axis, self.along)

    @property
    def numbers(self) -> dict[str, Any]:
        return {"cases": len(self.points), "worst": self._record(self.worst) if self.points else None}

    @property
    def columns(self) -> tuple[str, ...]:
        limits = ("advantage at most", "success at most") if self._has_bounds else ()
        return (*self.axes, "baseline", "success", "advantage", *limits, "how")

    @property
    def rows(self) -> list[Row]:
        return [self._row(point) for point in self.points]

    def _row(self, point: Point) -> Row:
        limits = (point.advantage_bound, point.success_bound) if self._has_bounds else ()
        return (
            *(_shown(point.along(axis)) for axis in self.axes),
            plain(point.baseline),
            _number(point, point.success),
            _number(point, point.advantage),
            *("" if limit is None else significant_up(limit, 4) for limit in limits),
            point.how,
        )

    def sentence(self) -> str:
        """The worst of what was tried, and which prior, distance or subject makes it so."""
        stopped = "" if self.complete else f" The sweep was stopped after {len(self.points)} of {self.asked} cases."
        if not self.points:
            return stopped.strip()
        worst = self.worst
        about = {"bound": "at most ", "enclosed": "at most ", "estimate": "about "}.get(worst.how, "")
        gains = (
            f"advantage {about}{_number(worst, worst.advantage)}, success {about}{_number(worst, worst.success)}, "
            f"baseline {plain(worst.baseline)}."
        )
        cases = "the one case" if len(self.points) == 1 else f"the {len(self.points)} cases"
        more = "".join(f" {self._changes(axis)}" for axis in self.axes if self._is_compared(axis))
        return f"Of {cases} tried the worst is {self.place(worst)}: {gains}{more}{stopped}"

    def place(self, point: Point) -> str:
        """Where a case lies, in words."""
        words = {"subject": "", "prior": "prior "}
        return ", ".join(f"{words.get(axis, f'{axis} ')}{_shown(point.along(axis))}" for axis in self.axes)

    def _is_compared(self, axis: str) -> bool:
        return self.along not in (None, axis) and len(self._places(axis)) > 1

    def _changes(self, axis: str) -> str:
        """Which place is the worst, from one number to the next."""
        word = {"prior": "prior", "within": "distance"}
        most = f"The worst {word[axis]} is" if axis in word else "Most is gained from"
        (place, _, last), *later = stretches(self.worst_along(axis))
        if not later:
            return f"{most} {_shown(place)} throughout."
        told = [f"{_shown(place)} up to {self.along} {last:g}"]
        told += [f"{_shown(place)} from {first:g} on" for place, first, _ in later]
        return f"{most} {', '.join(told)}." if len(told) <= MOST_TURNS else f"{most} another for another {self.along}."

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"axes": list(self.axes), "complete": self.complete, "rows": self.records}

    def to_csv(self) -> str:
        """The table as CSV."""
        text = io.StringIO()
        if records := self.records:
            writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(records)
        return text.getvalue()

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            raise MissingPackageError("A pandas data frame needs pandas: pip install pandas.") from None
        return pandas.DataFrame(self.records)

    def to_polars(self) -> Any:
        """The table as a polars data frame."""
        try:
            import polars
        except ImportError:
            raise MissingPackageError("A polars data frame needs polars: pip install polars.") from None
        return polars.DataFrame(self.records)

    def picture(self, which: str = "advantage") -> Picture:
        """What `plot` draws, as plain data."""
        return pictured(self.points, self.axes, self.parameter, which)

    def plot(self, which: str = "advantage", ax: Any = None) -> Any:
        """Draw the advantage or the success with matplotlib; returns the axes, or an array of them for several panels.

        Along the axis is the parameter, or else the distance, or else each case has a bar. Names stand at the curves.
        Solid lines are exact, dashed ones are bounds, and shaded ones are estimates with their intervals.
        """
        return draw(self.picture(which), ax)

    def __repr__(self) -> str:
        return f"Sweep({self.about})"


def _shown(place: Any) -> str:
    return f"{place:g}" if isinstance(place, float) else str(place)


def _number(point: Point, value: float) -> str:
    return significant_up(value, 4) if point.how in ("bound", "enclosed") else plain(value)
