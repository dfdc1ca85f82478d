"""The commands `dprisk assess` and `dprisk calibrate`: what is known of a release, and what is asked about it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from dprisk.answers import COLUMNS
from dprisk.assessment import Assessment, Risk, assess
from dprisk.bounds import Value
from dprisk.calibration import Calibration, calibrate
from dprisk.catalogue import GUARANTEES, MECHANISMS
from dprisk.cli.options import (
    Command,
    Options,
    echoed,
    flag,
    of_a_release,
    of_a_table,
    of_entries,
    of_the_attacker,
    option,
)
from dprisk.cli.printing import print_csv, print_json, say
from dprisk.cli.progress import waiting
from dprisk.cli.subjects import Described, described, guarantee_alone
from dprisk.cli.sweeping import INTERRUPTED, show_sweep, swept, take_ranges, with_ranges
from dprisk.cli.tables import show, show_bounds
from dprisk.errors import require
from dprisk.threat.prior import written

REGISTERS = (MECHANISMS, GUARANTEES)
POINTS = 11  # of a range that does not say how many
FEW_RECORDS = 100  # up to which JSON tells of each
LOOKED_FOR = ("yes_on_record", "yes_on_others", "prior", "largest_posterior")  # told in CSV of a record by --record
AS_DATA = (
    option("json", bool, "Print JSON instead of a table."),
    option("csv", bool, "Print CSV instead of a table: a line for each number, and one for each record."),
)


def assess_command() -> Command:
    """`dprisk assess`, with the names that the catalogue has now."""
    sections = of_entries(*REGISTERS) | {
        "Or a release in a file": [of_a_release()],
        "Or a column of a table, with a mechanism": of_a_table(),
        "Records and attacker": of_the_attacker(),
        "Answer": [
            option("runs", int, "How many outputs to draw where the exact value is out of reach and is estimated."),
            option("seed", int, "A whole number that fixes what is drawn; 0 if left out."),
            option("thorough", bool, "Also try the slow bounds when there are many records."),
            option(
                "record",
                str,
                "Tell as well what an attacker gains who looks for this record; give it again for another.",
                metavar="LABEL",
                multiple=True,
            ),
            option(
                "attack", str, "Tell what this attack of `dprisk catalogue` gains, not the best one.", metavar="NAME"
            ),
            option("at_delta", float, "Tell the epsilon that goes with this delta, not with 1e-5."),
            option("bounds", bool, "Show every bound that applies, not only the tightest."),
            *AS_DATA,
        ],
    }
    examples = (
        "--mechanism grr --epsilon 2 --size 100",
        "--mechanism oue --epsilon 1 --prior illnesses.csv --record HIV",
        "--mechanism laplace --epsilon 1 --size 100 --within 5",
        "--guarantee pure --epsilon 1 --size 10 --knows all",
        "--mechanism oue --epsilon 1 --data clinic.csv --column illness",
        "--mechanism grr --epsilon 0.1..5 --size 100",
        "--release histogram.toml --csv",
    )
    return Command("assess", _assess, with_ranges(sections, POINTS), REGISTERS, examples)


def calibrate_command() -> Command:
    """`dprisk calibrate`, with the names that the catalogue has now."""
    sections: dict[str, Sequence[click.Parameter]] = {
        **of_entries(*REGISTERS),
        "Or a release in a file": [of_a_release()],
        "Or a column of a table, with a mechanism": of_a_table(),
        "Records and attacker": of_the_attacker(),
        "Goal, one of these": [
            option("advantage", float, "The largest tolerated advantage, as in 0.05 for 5 points."),
            option("success", float, "How often an attacker may be right at most, as in 0.3."),
            option(
                "most_at_risk",
                float,
                "The largest tolerated advantage of somebody who looks for one record, whichever it is, as in 0.05.",
            ),
            option(
                "tpr", float, "The largest tolerated true positive rate of telling two neighbours apart; needs --fpr."
            ),
            option("fpr", float, "The false positive rate that goes with --tpr, as in 0.01."),
            option("to_epsilon", float, "The epsilon to keep, of any two records."),
            option("to_delta", float, "The delta to keep with --to-epsilon; 0 if left out."),
        ],
        "Answer": AS_DATA,
    }
    examples = (
        "--mechanism grr --size 100 --advantage 0.05",
        "--mechanism gaussian --prior adult-hours.csv --advantage 0.05",
        "--guarantee zcdp --size 10 --knows all --advantage 0.1",
    )
    return Command("calibrate", _calibrate, sections, REGISTERS, examples)


def _assess(**given: Any) -> None:
    """What does this release risk?

    Tells how often the best attacker is right about one person, with the report and without it. Describe what is
    released: a mechanism, whose risk is computed exactly; a guarantee, for the worst mechanism that keeps it; or a
    release in a file. Then say what the attacker believes, knows and wants. Several numbers (0.1,0.5,1) or a range
    (0.1..5, or 0.1..5:20 for 20 points) for the noise or for --within give a table; `dprisk plot` draws it.
    """
    ranges, form, all_bounds = take_ranges(given), _form(given), given.pop("bounds")
    _require_one_question(given, all_bounds, bool(ranges))
    if ranges:
        return _assess_all(described(given, ranges=ranges), ranges, given | {form: True, "bounds": all_bounds})
    with waiting("Assessing") as tell:
        asked = described(given)
        drawn = {name: given[name] for name in ("attack", "runs", "seed", "thorough")}
        risk: Any = assess(
            asked.subject,
            asked.threat,
            **drawn,
            progress=lambda done, runs, gain: tell(f"{done} of {runs} runs, advantage about {gain:.4g}"),
        )
        tell("comparing with bounds")
        risk = risk if given["at_delta"] is None else risk.at_delta(given["at_delta"])
        values = _every_bound(risk) if all_bounds else ()
        looked_for = [risk.of(record) for record in given["record"]]
        more = {"looked_for": [it.to_dict() for it in looked_for], "bounds": [value.to_dict() for value in values]}
        finish = _ready(risk, form, given, asked.about, {name: told for name, told in more.items() if told})
    finish()
    if form != "table":
        return
    for one in looked_for:
        show(one)
    if all_bounds:
        show_bounds(values)


def _every_bound(risk: Any) -> tuple[Value, ...]:
    """All bounds that apply to the guarantee, or to that of the mechanism."""
    worst = risk.bounds if isinstance(risk, Risk) else risk
    return tuple(worst.on_advantage.values + worst.on_success.values)


def _require_one_question(given: Options, all_bounds: bool, over_ranges: bool) -> None:
    """Refuse options that do not go together."""
    for name, other in (("record", bool(given["record"])), ("bounds", all_bounds)):
        alone = given["attack"] is None or not other
        require(alone, f"--attack and {flag(name)} are two questions: ask one at a time.")
    for name in ("runs", "seed", "attack"):
        require(given["guarantee"] is None or given[name] is None, f"{flag(name)} is for mechanisms only.")
    for name in ("record", "attack", "at_delta"):
        one = given[name] in (None, ()) or not over_ranges
        require(one, f"{flag(name)} is about one release: leave it out, or the range.")


def _assess_all(asked: Described, ranges: dict[str, tuple[float, ...]], given: dict[str, Any]) -> None:
    """A table of what every combination of the numbers in the ranges risks."""
    settings = {name: given[name] for name in ("runs", "seed", "thorough", "bounds")}
    found, interrupted = swept(asked.subject, asked.threat, **ranges, **settings)
    if asked.about and "table" in given:
        say(asked.about)
    show_sweep(found, given, echoed(given, asked.threat.prior.size), ranges)
    if interrupted:
        click.get_current_context().exit(INTERRUPTED)


def _calibrate(**given: Any) -> None:
    """How much noise do I need?

    Finds the weakest noise that keeps the risk at or below a goal. Leave out the option that sets the noise, such as
    --epsilon or --sigma: it is the answer.
    """
    form = _form(given)
    require((given["tpr"] is None) == (given["fpr"] is None), "--tpr and --fpr go together.")
    require(given["to_delta"] is None or given["to_epsilon"] is not None, "--to-delta goes with --to-epsilon.")
    risks = ("advantage", "success", "most_at_risk")
    goals = [name for name in (*risks, "tpr", "to_epsilon") if given[name] is not None]
    require(
        len(goals) == 1,
        "Give exactly one goal: --advantage, --success, --most-at-risk, --tpr with --fpr, or --to-epsilon (with "
        "--to-delta).",
    )
    with waiting("Calibrating") as tell:
        alone: Any = None if goals[0] in risks else guarantee_alone(given)
        asked = described(given, template=True) if alone is None else None
        subject, threat, about = (asked.subject, asked.threat, asked.about) if asked else (alone, None, "")
        found = calibrate(
            subject,
            threat,
            advantage=given["advantage"],
            success=given["success"],
            most_at_risk=given["most_at_risk"],
            tpr_at_fpr=None if given["tpr"] is None else (given["tpr"], given["fpr"]),
            epsilon=None if given["to_epsilon"] is None else (given["to_epsilon"], given["to_delta"] or 0.0),
            progress=lambda tried, measured: tell(
                f"{subject.parameter.name} {tried:.4g} has {goals[0]} {measured:.4g}"
            ),
        )
        tell(f"{found.parameter} {found.value:.4g} found, comparing it with other ways to calibrate")
        finish = _ready(found, form, given, about)
    finish()


def _form(given: Options) -> str:
    """How the answer is wanted."""
    as_json, as_csv = given.pop("json"), given.pop("csv")
    return "json" if as_json else "csv" if as_csv else "table"


def readable_label(record: Any) -> Any:
    """A row as it is written; anything else as it is."""
    return written(record) if isinstance(record, tuple) else record


def _ready(
    answer: Assessment | Calibration,
    form: str,
    given: Options,
    about: str,
    more: dict[str, Any] | None = None,
) -> Callable[[], None]:
    """What prints the answer, now that all of it is computed, with what else was asked for."""
    if form == "json":
        told = answer.to_dict() | {"inputs": echoed(given, answer.threat.prior.size if answer.threat else None)}
        told["about"] = about
        if answer.threat and answer.threat.prior.size <= FEW_RECORDS:
            told["records"] = [line | {"record": readable_label(line["record"])} for line in answer.by_record()]
        return partial(print_json, told | (more or {}))
    if form == "csv":
        also = more or {}
        lines = [(f"bound on {it['bounds']}: {it['name']}", None, it["value"]) for it in also.get("bounds", ())]
        lines += [(what, it["record"], it[what]) for it in also.get("looked_for", ()) for what in LOOKED_FOR]
        table = answer.table() + [dict(zip(COLUMNS, line, strict=True)) for line in lines]
        return partial(print_csv, [line | {"record": readable_label(line["record"])} for line in table])
    _ = answer.rows  # computes what they show

    def print_all() -> None:
        if about:
            say(about)
        show(answer)

    return print_all
