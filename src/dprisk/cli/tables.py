"""Answers and registers as tables on the terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from dprisk.answers import Answer
from dprisk.attacks import NamedAttack
from dprisk.bounds import Bound, Value
from dprisk.catalogue import Catalogue, Entry, Option
from dprisk.rounding import significant_up


def show(answer: Answer) -> None:
    """Any answer: its table, then its sentence."""
    show_table(_table(answer.about, ("what", "value", "meaning"), answer.rows))
    _console().print(answer.sentence(), soft_wrap=True)


def show_table(table: Table) -> None:
    """A table alone."""
    _console().print(table)


def bounds_table(values: Sequence[Value]) -> Table:
    """Every bound that applies, tightest first."""
    lines = [
        (
            value.bound.bounds,
            significant_up(value.number),
            value.bound.name,
            value.bound.source,
            "yes" if value.attained else "",
        )
        for value in values
    ]
    return _table("Bounds that apply", ("bounds", "value", "name", "source", "attained"), lines)


def registry_table(which: str, registry: Iterable[Bound]) -> Table:
    """The bounds on one quantity, with what they need and who proved them."""
    lines = [(bound.name, bound.needs(), bound.source) for bound in registry if bound.bounds == which]
    return _table(f"Bounds on the {which}", ("name", "needs", "source"), lines)


def catalogue_table(register: Catalogue) -> Table:
    """The names in a register: what each stands for, the options it takes, what else it is called."""
    lines = [(entry.name, "\n".join(filter(None, _about(entry)))) for entry in register]
    return _table(register.plural.capitalize(), ("name", "what it is"), lines)


def _about(entry: Entry) -> tuple[str, ...]:
    perhaps = [name for name in entry.takes if name not in entry.needs]
    word = "one of " if entry.one_of else "perhaps "
    takes = ", ".join((*entry.needs, *([word + ", ".join(perhaps)] if perhaps else [])))
    return (
        entry.title,
        entry.explanation,
        f"takes {takes}" if takes else "",
        f"also called {', '.join(entry.aliases)}" if entry.aliases else "",
    )


def attacks_table(attacks: Iterable[NamedAttack]) -> Table:
    """The attacks that have a name, with what each does."""
    lines = [(attack.name, f"{attack.title}\n{attack.explanation}") for attack in attacks]
    return _table("Attacks", ("name", "what it is"), lines)


def options_table(options: Iterable[Option]) -> Table:
    """What every option means."""
    return _table("Options", ("name", "meaning"), [(option.name, option.meaning) for option in options])


def _table(title: str, headings: tuple[str, ...], lines: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for line in lines:
        table.add_row(*line)
    return table


def _console() -> Console:
    return Console(highlight=False, markup=False)
