"""Options and commands of the command line, made from the catalogue."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dprisk.catalogue import SUCCESS, Catalogue, Entry, Option
from dprisk.catalogue.naming import prior_names
from dprisk.errors import DpriskError, InputFileError, require

COMMANDLINE = ParameterSource.COMMANDLINE
Options = dict[str, Any]
Sections = Mapping[str, Sequence[click.Parameter]]
FEW = 3  # names that are listed before the meaning of an option that only they take
HELP = {"help_option_names": ["-h", "--help"]}
FILE = click.Path(path_type=Path)
FILE.name = "file"


class Number(click.ParamType[float]):
    """A number, whole or not."""

    name = "number"

    def __init__(self, kind: type[int] | type[float]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number that a text is."""
        try:
            number = float(value)
            if self.kind is float:
                return number
            return int(value) if isinstance(value, int) or "e" not in value.casefold() else _whole(number)
        except ValueError:
            kind = "whole number" if self.kind is int else "number"
            self.fail(f"{value!r} is not a {kind}{in_percent(value)}.", param, ctx)


def _whole(number: float) -> int:
    """The whole number that 1e4 is."""
    if not number.is_integer():
        raise ValueError
    return int(number)


def in_percent(text: str) -> str:
    """What to write instead of a number in percent, if it is one; nothing otherwise."""
    with suppress(ValueError):
        if text.strip().endswith("%"):
            return f"; write {float(text.strip()[:-1]) / 100:g}"
    return ""


class Group(click.Group):
    """Commands in the order in which they were added; without any of them it shows its help."""

    def __init__(self, name: str, told: str, commands: Sequence[click.Command]) -> None:
        super().__init__(name, invoke_without_command=True, callback=_show_help, help=told, context_settings=HELP)
        for command in commands:
            self.add_command(command)

    def list_commands(self, context: click.Context) -> list[str]:
        """Their names."""
        return list(self.commands)


def _show_help() -> None:
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


class Command(click.Command):
    """A command whose help shows examples, its options by section, and then the names in some registers.

    An option that two sections have is the one of the later section. A refusal that begins with the name of an option
    names it as it is typed.
    """

    def __init__(
        self,
        name: str,
        callback: Callable[..., Any],
        sections: Sections,
        registers: Sequence[Catalogue] = (),
        examples: Sequence[str] = (),
    ) -> None:
        self.examples = examples
        last = {option.name: option for options in sections.values() for option in options}
        self.sections = {
            title: [option for option in options if last[option.name] is option] for title, options in sections.items()
        }
        self.registers = registers
        params = [option for options in self.sections.values() for option in options]
        super().__init__(name, callback=callback, params=params, help=callback.__doc__)

    def invoke(self, context: click.Context) -> Any:
        """Run it."""
        try:
            both = context.params.get("json") and context.params.get("csv")
            require(not both, "Choose one of --json and --csv.")
            return super().invoke(context)
        except InputFileError:
            raise  # whose names are those in the file
        except DpriskError as problem:
            typed = [name for name in context.params if context.get_parameter_source(name) is COMMANDLINE]
            raise click.ClickException(_as_typed(str(problem), typed)) from problem

    def format_help_text(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """What it does, then examples, which are not wrapped so that they can be copied."""
        super().format_help_text(context, formatter)
        if self.examples:
            with formatter.section("Examples (files: docs/examples)"):
                formatter.write("".join(f"  {context.command_path} {example}\n" for example in self.examples))

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


def _as_typed(message: str, options: Sequence[str]) -> str:
    """A message of the library, with the names of some options as they are typed."""
    for name in options:
        known = "n_jobs" if name == "jobs" else name
        anywhere = rf"|\b{known}\b" if "_" in known else ""
        message = re.sub(rf"^{known}\b|`{known}`{anywhere}", flag(name), message)
    return message


class EntryOption(click.Option):
    """An option of entries of the catalogue."""


def option(name: str, kind: Any, meaning: str, **more: Any) -> click.Option:
    """An option of a command itself; a bool is a flag, and a default is shown."""
    more = {"is_flag": True} if kind is bool else {"type": _typed(kind), "show_default": "default" in more} | more
    return click.Option([flag(name), name], help=meaning, **more)


def name_in(register: Catalogue, name: str, meaning: str, others: Sequence[Catalogue] = ()) -> click.Option:
    """An option that takes a name in a register, as people write it; names in `others` get a hint."""

    def found(_: click.Context, __: click.Parameter, text: str | None) -> Entry | None:
        for other in others if text is not None and text not in register else ():
            require(text not in other, f"{text} is a {other.kind}: give it as {flag(other.kind)} {text}.")
        return None if text is None else register[text]

    def completed(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
        return [entry.name for entry in register if entry.name.startswith(typed.casefold())]

    return option(name, str, meaning, metavar="NAME", callback=found, shell_complete=completed)


def _typed(kind: Any) -> Any:
    return Number(kind) if kind in (int, float) else kind


def of_entries(*registers: Catalogue) -> dict[str, list[click.Parameter]]:
    """A section for each register: the choice of a name, and the options that its entries take."""
    sections: dict[str, list[click.Parameter]] = {}
    seen: set[str] = set()
    for register in registers:
        first = register is registers[0]
        choice = name_in(
            register, register.kind, f"The {register.kind}, by a name from the list below or as you call it.", registers
        )
        new = [_of_entry(known, registers) for name, known in register.options.items() if name not in seen]
        sections[register.kind.capitalize() if first else f"Or a {register.kind}"] = [choice, *new]
        seen |= set(register.options)
    return sections


def _of_entry(known: Option, registers: Sequence[Catalogue]) -> EntryOption:
    """The option; if few take it, with their names."""
    takers = {entry.name: register for register in registers for entry in register if known in entry.options}
    meaning = f"{known.meaning[0].upper()}{known.meaning[1:]}."
    if len(takers) <= FEW:
        kinds = dict.fromkeys(flag(register.kind) for register in takers.values())
        meaning = f"With {' or '.join(kinds)} {' or '.join(takers)}: {known.meaning}."
    kind: Any = FILE if known.kind is Path else _typed(known.kind)
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
        option(
            "column", str, "The column of --data that the mechanism randomises and the attacker wants.", metavar="NAME"
        ),
    ]


def of_the_attacker() -> list[click.Parameter]:
    """What the attacker believes, knows and wants."""
    near = click.Choice([entry.name for entry in SUCCESS if "within" in entry.takes], case_sensitive=False)
    return [
        option(
            "size",
            int,
            "How many possible records one person may have, not how many people; follows from a file.",
        ),
        option(
            "prior",
            str,
            f"How likely each record is to the attacker: {prior_names()} with a column `label` and a column "
            "`probability` or `count`.",
            metavar="PRIOR",
            show_default="uniform",
        ),
        option(
            "knows",
            str,
            "What the attacker knows of the person: none; all, which is membership inference; columns of --data, as "
            "in sex,age; or a CSV file that puts each `label` into a `group`.",
            metavar="WHAT",
            default="none",
        ),
        option("within", float, "How far off a guess may be and still count as right; it must be exact if left out."),
        option(
            "space",
            near,
            "How distances are measured: on a line, if left out, or around a ring, as for hours of the day.",
        ),
    ]


def only_of_entries() -> list[str]:
    """The names of the options that are only for entries; what the running command has itself is not among them."""
    return [option.name for option in click.get_current_context().command.params if isinstance(option, EntryOption)]


def taken(entry: Entry, given: Options) -> Options:
    """The options given for an entry, also those that it does not take and will refuse."""
    return {name: given[name] for name in dict.fromkeys((*only_of_entries(), *entry.takes)) if given[name] is not None}


def echoed(given: Options, size: int | None) -> Options:
    """What was asked, ready for JSON."""
    written = {
        name: value.name if isinstance(value, Entry) else str(value) if isinstance(value, Path) else value
        for name, value in given.items()
        if value is not None and value != ()
    }
    return written if size is None else written | {"size": size}


def flag(name: str) -> str:
    """An option's name as it is typed."""
    return f"--{name.replace('_', '-')}"
