"""Options and commands of the command line, made from the catalogue."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from dprisk.catalogue import PRIORS, SUCCESS, Catalogue, Entry, Option

Options = dict[str, Any]
Sections = Mapping[str, Sequence[click.Parameter]]
FEW = 3  # names that are listed before the meaning of an option that only they take
FILE = click.Path(path_type=Path)


class Command(click.Command):
    """A command whose help shows its options by section, and then the names in some registers.

    An option that two sections have is the one of the later section.
    """

    def __init__(
        self, name: str, callback: Callable[..., Any], sections: Sections, registers: Sequence[Catalogue] = ()
    ) -> None:
        last = {option.name: option for options in sections.values() for option in options}
        self.sections = {
            title: [option for option in options if last[option.name] is option] for title, options in sections.items()
        }
        self.registers = registers
        params = [option for options in self.sections.values() for option in options]
        super().__init__(name, callback=callback, params=params, help=callback.__doc__)

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """One list a section; `--help` is in the last."""
        asks_for_help = [option for option in self.get_params(context) if option not in self.params]
        sections = self.sections or {"Options": []}
        for title, options in sections.items():
            shown = [*options, *asks_for_help] if title == list(sections)[-1] else options
            with formatter.section(title):
                formatter.write_dl([line for option in shown if (line := option.get_help_record(context)) is not None])
        for register in self.registers:
            with formatter.section(register.plural.capitalize()):
                formatter.write_dl([(entry.name, entry.title) for entry in register])


class EntryOption(click.Option):
    """An option of entries of the catalogue."""


def option(name: str, kind: Any, meaning: str, **more: Any) -> click.Option:
    """An option of a command itself; a bool is a flag."""
    more = {"is_flag": True} if kind is bool else {"type": kind} | more
    return click.Option([flag(name), name], help=meaning, **more)


def name_in(register: Catalogue, name: str, meaning: str) -> click.Option:
    """An option that takes a name in a register, as people write it, and becomes the entry."""

    def found(_: click.Context, __: click.Parameter, text: str | None) -> Entry | None:
        return None if text is None else register[text]

    return option(name, str, meaning, metavar="NAME", callback=found)


def of_entries(*registers: Catalogue) -> dict[str, list[click.Parameter]]:
    """A section for each register: the choice of a name, and the options that its entries take."""
    sections: dict[str, list[click.Parameter]] = {}
    seen: set[str] = set()
    for register in registers:
        also = "" if register is registers[0] else f"Instead of a {registers[0].kind}: "
        choice = name_in(register, register.kind, f"{also}one of the names below.".capitalize())
        new = [_of_entry(known, registers) for name, known in register.options.items() if name not in seen]
        sections[register.kind.capitalize()] = [choice, *new]
        seen |= set(register.options)
    return sections


def _of_entry(known: Option, registers: Sequence[Catalogue]) -> EntryOption:
    """The option, with the names of those who take it if they are few."""
    takers = dict.fromkeys(entry.name for register in registers for entry in register if known in entry.options)
    meaning = f"{known.meaning[0].upper()}{known.meaning[1:]}."
    if len(takers) <= FEW:
        meaning = f"{', '.join(takers)}: {known.meaning}."
    kind: Any = FILE if known.kind is Path else known.kind
    if known.choices:
        kind = click.Choice(known.choices, case_sensitive=False)
    return EntryOption([flag(known.name), known.name], type=kind, help=meaning)


def of_a_release() -> click.Parameter:
    """A query that is published with noise."""
    return option(
        "release",
        FILE,
        "Instead of a mechanism: a TOML or JSON file with a query, its data, the possible records and the noise. The "
        "prior is then how often each record occurs in the data, unless --prior says another; --knows names columns.",
    )


def of_a_table() -> list[click.Parameter]:
    """A column that people randomise, and the table that it is of."""
    return [
        option("data", FILE, "A CSV file with one row a person: the records, the prior and what --knows names."),
        option("column", str, "The column of --data that the mechanism randomises and the attacker wants."),
    ]


def of_the_attacker() -> list[click.Parameter]:
    """What the attacker believes, knows and wants."""
    near = click.Choice([entry.name for entry in SUCCESS if "within" in entry.takes], case_sensitive=False)
    return [
        option("size", int, "Number of possible records; a prior file or a matrix brings its own."),
        option(
            "prior",
            str,
            f"{prior_names()} with `label` and `probability` or `count`.",
            metavar="PRIOR",
            show_default="uniform",
        ),
        option(
            "knows",
            str,
            "none, all, columns of --data such as sex,age, or a CSV file with `group` (and `label`, unless in the "
            "order of the records).",
            metavar="WHAT",
            default="none",
            show_default=True,
        ),
        option("within", float, "A guess this near the record counts as right; exact if left out."),
        option("space", near, "Where distances are measured; on a line if left out."),
    ]


def prior_names() -> str:
    """How priors are written: a name, perhaps with a number behind a colon, or the path of a file."""
    return f"{', '.join(prior_name(entry) for entry in PRIORS if 'path' not in entry.takes)} or a CSV file"


def prior_name(entry: Entry) -> str:
    """A prior as it is written, with what may stand behind the colon."""
    return f"{entry.name}:{','.join(map(str.upper, entry.takes))}" if entry.takes else entry.name


def only_of_entries() -> list[str]:
    """The names of the options that are only for entries; what the running command has itself is not among them."""
    return [option.name for option in click.get_current_context().command.params if isinstance(option, EntryOption)]


def taken(entry: Entry, given: Options) -> Options:
    """The options given for an entry, also those that it does not take and will refuse."""
    return {name: given[name] for name in dict.fromkeys((*only_of_entries(), *entry.takes)) if given[name] is not None}


def echoed(given: Options, size: int) -> Options:
    """What was asked, ready for JSON."""
    written = {
        name: value.name if isinstance(value, Entry) else str(value) if isinstance(value, Path) else value
        for name, value in given.items()
        if value is not None
    }
    return written | {"size": size}


def flag(name: str) -> str:
    """An option's name as it is typed."""
    return f"--{name.replace('_', '-')}"
