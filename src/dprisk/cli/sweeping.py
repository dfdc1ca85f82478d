"""Ranges on the command line: options that take several numbers, and the sweep over them."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from dprisk.cli.options import EntryOption, Number, Options, Sections, flag, in_percent
from dprisk.cli.printing import print_json
from dprisk.cli.progress import live
from dprisk.cli.tables import show
from dprisk.sweeps import Sweep, SweepInterrupted, numbers_in, sweep
from dprisk.threat import Threat

INTERRUPTED = 130
DECIMAL_COMMA = re.compile(r"0,\d|\d+,(0\d+|5|25|75)")  # two whole numbers, but more likely one that is not


class Numbers(click.ParamType[Any]):
    """A number, or a tuple of several: `0.1,0.5,1`, `0.1..5` with so many points, `0.1..5:20` with 20."""

    name = "number"

    def __init__(self, points: int) -> None:
        self._points = points

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """One number as such, several as a tuple."""
        if not isinstance(value, str):
            return value
        name = flag(param.name or "") if param is not None else "This"
        with suppress(ValueError):
            return float(value)  # also what is no amount, which whoever takes it refuses in its own words
        if advice := in_percent(value):
            self.fail(f"{value!r} is not a number{advice}.", param, ctx)
        numbers = numbers_in(value, self._points, name)
        if DECIMAL_COMMA.fullmatch(value):
            whole, part = value.split(",")
            hint = f"{name} {value} is read as two cases, {whole} and {part}; if one is meant, write {whole}.{part}."
            click.echo(hint, err=True)
        return numbers if len(numbers) > 1 else numbers[0]


def with_ranges(sections: Sections, points: int) -> Sections:
    """The same options, but those that take a number take several: the parameters of entries, and the distance."""
    for option in (option for options in sections.values() for option in options):
        if (
            isinstance(option.type, Number)
            and option.type.kind is float
            and (isinstance(option, EntryOption) or option.name == "within")
        ):
            option.type = Numbers(points)
    return sections


def take_ranges(given: Options) -> dict[str, tuple[float, ...]]:
    """The options that were given several numbers; what reads the rest sees the first of them."""
    ranges = {
        name: value for name, value in given.items() if isinstance(value, tuple) and name not in ("prior", "record")
    }
    given.update({name: numbers[0] for name, numbers in ranges.items()})
    return ranges


def swept(subject: Any, threat: Threat, **asked: Any) -> tuple[Sweep, bool]:
    """The sweep with a line of progress, and whether somebody stopped it; then it has what was found until then."""
    try:
        with live("cases") as tell:
            progress = None if tell is None else lambda done, cases, _: tell(done, cases, "")
            return sweep(subject, threat, **asked, progress=progress), False
    except SweepInterrupted as stop:
        if not stop.sweep.points:
            raise
        click.echo(err=True)  # behind ^C
        return stop.sweep, True


def show_sweep(found: Sweep, given: Options, echoed: Options, ranges: Mapping[str, tuple[float, ...]]) -> None:
    """As JSON, as CSV, or as a table with its sentence."""
    if given.get("json"):
        inputs = {name: value for name, value in echoed.items() if name not in ("json", "csv", "bounds", "out")}
        print_json(found.to_dict() | {"inputs": inputs | {name: list(numbers) for name, numbers in ranges.items()}})
    elif given.get("csv"):
        click.echo(found.to_csv(), nl=False)
    else:
        show(found)
