"""The commands `dprisk assess` and `dprisk calibrate`: what is known of a release, and what is asked about it."""

from typing import Any

import click

from dprisk.assessment import Risk, assess
from dprisk.calibration import calibrate
from dprisk.catalogue import GUARANTEES, MECHANISMS
from dprisk.cli.options import FILE, Command, echoed, flag, of_entries, of_the_attacker, option, taken
from dprisk.cli.progress import live
from dprisk.cli.subjects import chosen, planned_release, read_threat, records_of, release_threat
from dprisk.cli.tables import show, show_bounds, show_json
from dprisk.errors import require
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism

REGISTERS = (MECHANISMS, GUARANTEES)


def assess_command() -> Command:
    """`dprisk assess`, with the names that the catalogue has now."""
    sections = of_entries(*REGISTERS) | {
        "Release": [
            option(
                "release",
                FILE,
                "Instead of a mechanism: a TOML or JSON file with a query, its data, the possible records and the "
                "noise; --prior may then be `data`, --knows columns of the records.",
            )
        ],
        "Records and attacker": of_the_attacker(),
        "Answer": [
            option("runs", int, "Runs of an estimate, where the exact value is out of reach."),
            option("seed", int, "Seed of those runs; 0 if left out."),
            option("thorough", bool, "Solve optimisation problems for many records too."),
            option("bounds", bool, "Show every bound that applies, not only the tightest."),
            option("json", bool, "Print JSON instead of a table."),
        ],
    }
    return Command("assess", _assess, sections, REGISTERS)


def calibrate_command() -> Command:
    """`dprisk calibrate`, with the names that the catalogue has now."""
    sections = of_entries(*REGISTERS) | {
        "Records and attacker": of_the_attacker(),
        "Goal": [
            option("advantage", float, "The advantage to stay at or below."),
            option("success", float, "The success to stay at or below."),
            option("tpr", float, "The true positive rate to stay at or below, at the --fpr."),
            option("fpr", float, "The false positive rate for --tpr."),
            option("json", bool, "Print JSON instead of a table."),
        ],
    }
    return Command("calibrate", _calibrate, sections, REGISTERS)


def _assess(**given: Any) -> None:
    """What does this release risk?

    Tells how often the best attacker is right about one person, with the report and without it: exactly for a
    mechanism, at most for a guarantee.
    """
    as_json, all_bounds, about = given.pop("json"), given.pop("bounds"), ""
    if given["release"] is not None:
        planned = planned_release(given)
        subject: Mechanism | Guarantee = planned.mechanism
        threat = release_threat(given, planned)
        given["query"] = planned.query.describe()
        about = f"{given['query']}, over {planned.others} others and one of {threat.prior.size} possible records\n"
    else:
        entry = chosen(given)
        for name in ("runs", "seed"):
            require(given["guarantee"] is None or given[name] is None, f"{flag(name)} is for mechanisms only.")
        threat = read_threat(given, entry)
        subject = entry.make(taken(entry, given), records_of(threat), flag)
    with live() as tell:
        progress = None if tell is None else lambda done, runs, gain: tell(done, runs, f"advantage about {gain:.4g}")
        drawn = {name: given[name] for name in ("runs", "seed", "thorough")}
        risk = assess(subject, threat, **drawn, progress=progress)
    worst = risk.bounds if all_bounds and isinstance(risk, Risk) else risk
    if as_json:
        told = risk.to_dict() | {"inputs": echoed(given, threat.prior.size)}
        show_json(told | ({} if worst is risk else {"bounds": worst.to_dict()["bounds"]}))
        return
    click.echo(about, nl=False)
    show(risk)
    if all_bounds:
        show_bounds(worst.on_advantage.values + worst.on_success.values)


def _calibrate(**given: Any) -> None:
    """How much noise do I need?

    Finds the weakest noise that keeps a tolerated risk, never above it. The parameter to be found is left out.
    """
    as_json = given.pop("json")
    require((given["tpr"] is None) == (given["fpr"] is None), "--tpr and --fpr go together.")
    goals = [name for name in ("advantage", "success", "tpr") if given[name] is not None]
    require(len(goals) == 1, "Give exactly one goal: --advantage, --success, or --tpr with --fpr.")
    entry = chosen(given)
    threat = read_threat(given, entry)
    found = calibrate(
        entry.template(taken(entry, given), records_of(threat), flag),
        threat,
        advantage=given["advantage"],
        success=given["success"],
        tpr_at_fpr=None if given["tpr"] is None else (given["tpr"], given["fpr"]),
    )
    if as_json:
        show_json(found.to_dict() | {"inputs": echoed(given, threat.prior.size)})
    else:
        show(found)
