"""The command `dprisk assess`."""

import json
from typing import Any

import click

from dprisk.assessment import Risk, WorstCase, assess
from dprisk.catalogue import GUARANTEES, MECHANISMS
from dprisk.cli.options import FILE, Command, Options, echoed, flag, of_entries, of_the_attacker, option
from dprisk.cli.progress import live
from dprisk.cli.subjects import chosen, number_of_records, planned_release, subject
from dprisk.cli.tables import bounds_table, show, show_table
from dprisk.cli.threats import read_threat, release_threat
from dprisk.errors import require
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.threat.threat import Threat


def assess_command() -> Command:
    """`dprisk assess`, with the names that the catalogue has now."""
    registers = (MECHANISMS, GUARANTEES)
    sections = of_entries(*registers) | {
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
    return Command("assess", _assess, sections, registers)


def _assess(**given: Any) -> None:
    """What does this release risk?

    Tells how often the best attacker is right about one person, with the report and without it: exactly for a
    mechanism, at most for a guarantee.
    """
    as_json, all_bounds = given.pop("json"), given.pop("bounds")
    if given["release"] is not None:
        planned = planned_release(given)
        threat = release_threat(given, planned)
        given["query"] = planned.query.describe()
        about = f"{given['query']}, over {planned.others} others and one of {threat.prior.size} possible records\n"
        risk = _assessed(planned.mechanism, threat, given)
    else:
        entry, about = chosen(given), ""
        for name in ("runs", "seed"):
            require(given["guarantee"] is None or given[name] is None, f"{flag(name)} is for mechanisms only.")
        threat = read_threat(given, entry, number_of_records(entry, given))
        risk = _assessed(subject(entry, given, threat.prior), threat, given)
    if as_json:
        told = risk.to_dict() | {"inputs": echoed(given, threat.prior.size)}
        if all_bounds and isinstance(risk, Risk):
            told["bounds"] = risk.bounds.to_dict()["bounds"]
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(about, nl=False)
    show(risk)
    if all_bounds:
        worst = risk.bounds if isinstance(risk, Risk) else risk
        show_table(bounds_table(worst.on_advantage.values + worst.on_success.values))


def _assessed(subject: Mechanism | Guarantee, threat: Threat, given: Options) -> Risk | WorstCase:
    """The call of `assess`."""
    with live() as tell:
        return assess(
            subject,
            threat,
            runs=given["runs"],
            seed=given["seed"],
            thorough=given["thorough"],
            progress=None if tell is None else lambda done, runs, gain: tell(done, runs, f"advantage about {gain:.4g}"),
        )
