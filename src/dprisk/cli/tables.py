"""Answers and registers on the terminal."""

from collections.abc import Iterable

from dprisk.answers import USUAL, Answer
from dprisk.attacks import NamedAttack
from dprisk.bounds import Bound, Value
from dprisk.catalogue import Catalogue, Entry, Option
from dprisk.cli.options import Options
from dprisk.cli.printing import print_csv, print_json, print_table, say
from dprisk.letters import visible
from dprisk.rounding import significant_up


def show(answer: Answer) -> None:
    """Any answer: its table, then its sentence."""
    usual = answer.columns == USUAL
    rows = [tuple(map(visible, row)) for row in answer.rows]
    print_table(visible(answer.about), rows, () if usual else answer.columns, answer.right_aligned)
    say(visible(answer.sentence()))


def show_as(answer: Answer, given: Options) -> None:
    """Any answer as JSON, as CSV, or as a table with its sentence."""
    if given["json"]:
        print_json(answer.to_dict())
    elif given["csv"]:
        print_csv(answer.table())
    else:
        show(answer)


def show_bounds(values: Iterable[Value]) -> None:
    """Every bound that applies, tightest first."""
    lines = []
    for value in values:
        bound, attained = value.bound, "yes" if value.attained else ""
        lines.append((bound.bounds, significant_up(value.number), bound.name, bound.source, attained))
    print_table("Bounds that apply", lines, ("bounds", "value", "name", "source", "attained"), right=(1,))


def show_registry(which: str, registry: Iterable[Bound]) -> None:
    """The bounds on one quantity, with what they need and who proved them."""
    lines = [(bound.name, bound.needs(), bound.source) for bound in registry if bound.bounds == which]
    print_table(f"Bounds on the {which}", lines, ("name", "needs", "source"))


def show_catalogue(register: Catalogue) -> None:
    """The names in a register: what each stands for, the options it takes, what else it is called."""
    lines = [(entry.name, "\n".join(filter(None, _about(entry)))) for entry in register]
    print_table(register.plural.capitalize(), lines, ("name", "what it is"))


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
    print_table("Attacks", lines, ("name", "what it is"))


def show_options(options: Iterable[Option]) -> None:
    """What every option means."""
    print_table("Options", [(option.name, option.meaning) for option in options], ("name", "meaning"))
