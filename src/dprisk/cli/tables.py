"""Answers and registers on the terminal."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from dprisk.answers import Answer
from dprisk.attacks import NamedAttack
from dprisk.bounds import Bound, Value
from dprisk.catalogue import Catalogue, Entry, Option
from dprisk.rounding import significant_up


def show(answer: Answer) -> None:
    """Any answer: its table, then its sentence."""
    _show_table(answer.about, answer.columns, answer.rows)
    _console().print(answer.sentence(), soft_wrap=True)


def show_json(told: Any) -> None:
    """What a program reads."""
    click.echo(json.dumps(told, indent=2))


def show_bounds(values: Iterable[Value]) -> None:
    """Every bound that applies, tightest first."""
    lines = []
    for value in values:
        bound, attained = value.bound, "yes" if value.attained else ""
        lines.append((bound.bounds, significant_up(value.number), bound.name, bound.source, attained))
    _show_table("Bounds that apply", ("bounds", "value", "name", "source", "attained"), lines)


def show_registry(which: str, registry: Iterable[Bound]) -> None:
    """The bounds on one quantity, with what they need and who proved them."""
    lines = [(bound.name, bound.needs(), bound.source) for bound in registry if bound.bounds == which]
    _show_table(f"Bounds on the {which}", ("name", "needs", "source"), lines)


def show_catalogue(register: Catalogue) -> None:
    """The names in a register: what each stands for, the options it takes, what else it is called."""
    lines = [(entry.name, "\n".join(filter(None, _about(entry)))) for entry in register]
    _show_table(register.plural.capitalize(), ("name", "what it is"), lines)


def _about(entry: Entry) -> tuple[str, ...]:
    perhaps = [name for name in entry.takes if name not in entry.needs]
    choice = f"one of {entry.ways()}" if entry.one_of else f"perhaps {', '.join(perhaps)}"
    takes = ", ".join((*entry.needs, *([choice] if perhaps else [])))
    return (
        entry.title,
        entry.explanation,
        f"takes {takes}" if takes else "",
        f"also called {', '.join(entry.aliases)}" if entry.aliases else "",
    )


def show_attacks(attacks: Iterable[NamedAttack]) -> None:
    """The attacks that have a name, with what each does."""
    lines = [(attack.name, f"{attack.title}\n{attack.explanation}") for attack in attacks]
    _show_table("Attacks", ("name", "what it is"), lines)


def show_options(options: Iterable[Option]) -> None:
    """What every option means."""
    _show_table("Options", ("name", "meaning"), [(option.name, option.meaning) for option in options])


def _show_table(title: str, headings: tuple[str, ...], lines: Sequence[Sequence[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for line in lines:
        table.add_row(*line)
    _console().print(table)


def _console() -> Console:
    return Console(highlight=False, markup=False)
