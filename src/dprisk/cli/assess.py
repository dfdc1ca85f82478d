"""The commands `dprisk assess` and `dprisk calibrate`: what is known of a release, and what is asked about it."""

from typing import Any, NoReturn

import click

from dprisk.assessment import Risk, assess
from dprisk.calibration import calibrate
from dprisk.catalogue import GUARANTEES, MECHANISMS
from dprisk.cli.options import Command, echoed, flag, of_a_release, of_a_table, of_entries, of_the_attacker, option
from dprisk.cli.progress import live
from dprisk.cli.subjects import Described, described
from dprisk.cli.sweeping import INTERRUPTED, show_sweep, swept, take_ranges, with_ranges
from dprisk.cli.tables import show, show_bounds, show_json
from dprisk.errors import require
from dprisk.guarantees import Guarantee

REGISTERS = (MECHANISMS, GUARANTEES)
POINTS = 11  # of a range that does not say how many


def assess_command() -> Command:
    """`dprisk assess`, with the names that the catalogue has now."""
    sections = of_entries(*REGISTERS) | {
        "Release": [of_a_release()],
        "Table": of_a_table(),
        "Records and attacker": of_the_attacker(),
        "Answer": [
            option("runs", int, "Runs of an estimate, where the exact value is out of reach."),
            option("seed", int, "Seed of those runs; 0 if left out."),
            option("thorough", bool, "Solve optimisation problems for many records too."),
            option("bounds", bool, "Show every bound that applies, not only the tightest."),
            option("json", bool, "Print JSON instead of a table."),
        ],
    }
    return Command("assess", _assess, with_ranges(sections, POINTS), REGISTERS)


def calibrate_command() -> Command:
    """`dprisk calibrate`, with the names that the catalogue has now."""
    sections = of_entries(*REGISTERS) | {
        "Release": [of_a_release()],
        "Table": of_a_table(),
        "Records and attacker": of_the_attacker(),
        "Goal": [
            option("advantage", float, "The advantage to stay at or below."),
            option("success", float, "The success to stay at or below."),
            option("tpr", float, "The true positive rate to stay at or below, at the --fpr."),
            option("fpr", float, "The false positive rate for --tpr."),
            option("to_epsilon", float, "The epsilon to keep, of any two records."),
            option("to_delta", float, "The delta to keep with --to-epsilon; 0 if left out."),
            option("json", bool, "Print JSON instead of a table."),
        ],
    }
    return Command("calibrate", _calibrate, sections, REGISTERS)


def _assess(**given: Any) -> None:
    """What does this release risk?

    Tells how often the best attacker is right about one person, with the report and without it: exactly for a
    mechanism, at most for a guarantee. Several numbers (0.1,0.5,1) or a range (0.1..5, or 0.1..5:20 for 20 points) for
    the parameter or for --within give a table; `dprisk plot` draws it.
    """
    ranges = take_ranges(given)
    as_json, all_bounds = given.pop("json"), given.pop("bounds")
    for name in ("runs", "seed"):
        require(given["guarantee"] is None or given[name] is None, f"{flag(name)} is for mechanisms only.")
    asked = described(given, ranges=ranges)
    if ranges:
        _assess_all(asked, ranges, given | {"json": as_json, "bounds": all_bounds})
    subject, threat = asked.subject, asked.threat
    if isinstance(subject, Guarantee):
        subject = subject.to_replace_one()
    with live() as tell:
        progress = None if tell is None else lambda done, runs, gain: tell(done, runs, f"advantage about {gain:.4g}")
        drawn = {name: given[name] for name in ("runs", "seed", "thorough")}
        risk = assess(subject, threat, **drawn, progress=progress)
    worst = risk.bounds if all_bounds and isinstance(risk, Risk) else risk
    if as_json:
        told = risk.to_dict() | {"inputs": echoed(given, threat.prior.size), "about": asked.about}
        show_json(told | ({} if worst is risk else {"bounds": worst.to_dict()["bounds"]}))
        return
    if asked.about:
        click.echo(asked.about)
    show(risk)
    if all_bounds:
        show_bounds(worst.on_advantage.values + worst.on_success.values)


def _assess_all(asked: Described, ranges: dict[str, tuple[float, ...]], given: dict[str, Any]) -> NoReturn:
    """A table of what every combination of the numbers in the ranges risks."""
    settings = {name: given[name] for name in ("runs", "seed", "thorough", "bounds")}
    found, interrupted = swept(asked.subject, asked.threat, **ranges, **settings)
    if asked.about and not (given["json"] or given.get("csv")):
        click.echo(asked.about)
    show_sweep(found, given, echoed(given, asked.threat.prior.size), ranges)
    click.get_current_context().exit(INTERRUPTED if interrupted else 0)


def _calibrate(**given: Any) -> None:
    """How much noise do I need?

    Finds the weakest noise that keeps a tolerated risk, never above it. The parameter to be found is left out.
    """
    as_json = given.pop("json")
    require((given["tpr"] is None) == (given["fpr"] is None), "--tpr and --fpr go together.")
    require(given["to_delta"] is None or given["to_epsilon"] is not None, "--to-delta goes with --to-epsilon.")
    goals = [name for name in ("advantage", "success", "tpr", "to_epsilon") if given[name] is not None]
    require(
        len(goals) == 1,
        "Give exactly one goal: --advantage, --success, --tpr with --fpr, or --to-epsilon (with --to-delta).",
    )
    asked = described(given, template=True)
    require(given["relation"] != "add-remove", "Against a threat, noise is calibrated for replace-one neighbours.")
    found = calibrate(
        asked.subject,
        asked.threat,
        advantage=given["advantage"],
        success=given["success"],
        tpr_at_fpr=None if given["tpr"] is None else (given["tpr"], given["fpr"]),
        epsilon=None if given["to_epsilon"] is None else (given["to_epsilon"], given["to_delta"] or 0.0),
    )
    if as_json:
        inputs = echoed(given, asked.threat.prior.size)
        show_json(found.to_dict() | {"inputs": inputs, "about": asked.about})
        return
    if asked.about:
        click.echo(asked.about)
    show(found)
