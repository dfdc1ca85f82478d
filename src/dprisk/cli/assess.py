"""The commands `dprisk assess` and `dprisk calibrate`: what is known of a release, and what is asked about it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from dprisk.answers import COLUMNS
from dprisk.assessment import Assessment, Risk, WorstCase, assess
from dprisk.calibration import Calibration, calibrate
from dprisk.catalogue import GUARANTEES, MECHANISMS
from dprisk.cli.options import FILE, Command, Options, echoed, flag, of_entries, of_the_attacker, option, taken
from dprisk.cli.printing import print_csv, print_json, say
from dprisk.cli.progress import waiting
from dprisk.cli.subjects import chosen, planned_release, read_threat, records_of, release_threat
from dprisk.cli.tables import show, show_bounds
from dprisk.errors import require
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.threat.threat import Threat

REGISTERS = (MECHANISMS, GUARANTEES)
FEW_RECORDS = 100  # up to which JSON tells of each
AS_DATA = (
    option("json", bool, "Print JSON instead of a table."),
    option("csv", bool, "Print CSV instead of a table: a line for each number, and one for each record."),
)


def assess_command() -> Command:
    """`dprisk assess`, with the names that the catalogue has now."""
    sections = of_entries(*REGISTERS) | {
        "Or a release in a file": [
            option(
                "release",
                FILE,
                "A TOML or JSON file with a query, its data, the possible records and the noise. Then --prior may be "
                "`data`, and --knows may name columns of the records.",
            )
        ],
        "Records and attacker": of_the_attacker(),
        "Answer": [
            option("runs", int, "How many outputs to draw where the exact value is out of reach and is estimated."),
            option("seed", int, "A whole number that fixes what is drawn; 0 if left out."),
            option("thorough", bool, "Also try the slow bounds when there are many records."),
            option("bounds", bool, "Show every bound that applies, not only the tightest."),
            *AS_DATA,
        ],
    }
    examples = (
        "--mechanism grr --epsilon 2 --size 100",
        "--mechanism laplace --epsilon 1 --prior hours.csv --within 5",
        "--guarantee pure --epsilon 1 --size 10 --knows all",
        "--release survey.toml --csv",
    )
    return Command("assess", _assess, sections, REGISTERS, examples)


def calibrate_command() -> Command:
    """`dprisk calibrate`, with the names that the catalogue has now."""
    sections: dict[str, Sequence[click.Parameter]] = {
        **of_entries(*REGISTERS),
        "Records and attacker": of_the_attacker(),
        "Goal, one of these": [
            option("advantage", float, "The largest tolerated advantage, as in 0.05 for 5 points."),
            option("success", float, "How often an attacker may be right at most, as in 0.3."),
            option(
                "tpr", float, "The largest tolerated true positive rate of telling two neighbours apart; needs --fpr."
            ),
            option("fpr", float, "The false positive rate that goes with --tpr, as in 0.01."),
        ],
        "Answer": AS_DATA,
    }
    examples = (
        "--mechanism grr --size 100 --advantage 0.05",
        "--mechanism gaussian --prior hours.csv --advantage 0.05",
        "--guarantee zcdp --size 10 --knows all --advantage 0.1",
    )
    return Command("calibrate", _calibrate, sections, REGISTERS, examples)


def _assess(**given: Any) -> None:
    """What does this release risk?

    Tells how often the best attacker is right about one person, with the report and without it. Describe what is
    released: a mechanism, whose risk is computed exactly; a guarantee, for the worst mechanism that keeps it; or a
    release in a file. Then say what the attacker believes, knows and wants.
    """
    form, all_bounds = _form(given), given.pop("bounds")
    with waiting("Assessing") as tell:
        about, subject, threat = _subject(given)
        drawn = {name: given[name] for name in ("runs", "seed", "thorough")}
        risk = assess(
            subject,
            threat,
            **drawn,
            progress=lambda done, runs, gain: tell(f"{done} of {runs} runs, advantage about {gain:.4g}"),
        )
        tell("comparing with bounds")
        worst = risk.bounds if isinstance(risk, Risk) and all_bounds else risk
        values = worst.on_advantage.values + worst.on_success.values if isinstance(worst, WorstCase) else ()
        finish = _ready(risk, form, given, [value.to_dict() for value in values] if all_bounds else None)
    if form == "table" and about:
        say(about)
    finish()
    if form == "table" and all_bounds:
        show_bounds(values)


def _subject(given: Options) -> tuple[str, Mechanism | Guarantee, Threat]:
    """What is assessed and by which attacker, and what a table says above it."""
    if given["release"] is not None:
        planned = planned_release(given)
        threat = release_threat(given, planned)
        given["query"] = planned.query.describe()
        about = f"{given['query']}, over {planned.others} others and one of {threat.prior.size} possible records"
        return about, planned.mechanism, threat
    entry = chosen(given)
    for name in ("runs", "seed"):
        require(given["guarantee"] is None or given[name] is None, f"{flag(name)} is for mechanisms only.")
    threat = read_threat(given, entry)
    subject = entry.make(taken(entry, given), records_of(threat.prior, entry), flag)
    return "", subject.to_replace_one() if isinstance(subject, Guarantee) else subject, threat


def _calibrate(**given: Any) -> None:
    """How much noise do I need?

    Finds the weakest noise that keeps the risk at or below a goal. Leave out the option that sets the noise, such as
    --epsilon or --sigma: it is the answer.
    """
    form = _form(given)
    require((given["tpr"] is None) == (given["fpr"] is None), "--tpr and --fpr go together.")
    goals = [name for name in ("advantage", "success", "tpr") if given[name] is not None]
    require(len(goals) == 1, "Give exactly one goal: --advantage, --success, or --tpr with --fpr.")
    with waiting("Calibrating") as tell:
        entry = chosen(given)
        threat = read_threat(given, entry)
        require(given["relation"] != "add-remove", "Against a threat, noise is calibrated for replace-one neighbours.")
        template = entry.template(taken(entry, given), records_of(threat.prior, entry), flag)
        found = calibrate(
            template,
            threat,
            advantage=given["advantage"],
            success=given["success"],
            tpr_at_fpr=None if given["tpr"] is None else (given["tpr"], given["fpr"]),
            progress=lambda tried, measured: tell(
                f"{template.parameter.name} {tried:.4g} has {goals[0]} {measured:.4g}"
            ),
        )
        tell(f"{found.parameter} {found.value:.4g} found, comparing it with other ways to calibrate")
        finish = _ready(found, form, given)
    finish()


def _form(given: Options) -> str:
    """How the answer is wanted."""
    as_json, as_csv = given.pop("json"), given.pop("csv")
    require(not (as_json and as_csv), "Choose one of --json and --csv.")
    return "json" if as_json else "csv" if as_csv else "table"


def _ready(
    answer: Assessment | Calibration, form: str, given: Options, bounds: list[dict[str, Any]] | None = None
) -> Callable[[], None]:
    """What prints the answer, now that all of it is computed; with all bounds, if they were asked for."""
    if form == "json":
        told = answer.to_dict() | {"inputs": echoed(given, answer.threat.prior.size if answer.threat else 0)}
        if answer.threat and answer.threat.prior.size <= FEW_RECORDS:
            told["records"] = [{"record": record, what: value} for what, record, value in answer.of_records()]
        return partial(print_json, told | ({} if bounds is None else {"bounds": bounds}))
    if form == "csv":
        lines = [(f"bound on {it['bounds']}: {it['name']}", None, it["value"]) for it in bounds or ()]
        return partial(print_csv, answer.table() + [dict(zip(COLUMNS, line, strict=True)) for line in lines])
    _ = answer.rows  # computes what they show
    return partial(show, answer)
