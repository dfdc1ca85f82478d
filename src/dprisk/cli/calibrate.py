"""The command `dprisk calibrate`."""

import json
from typing import Any

import click

from dprisk.calibration import calibrate
from dprisk.catalogue import GUARANTEES, MECHANISMS
from dprisk.cli.options import Command, echoed, flag, of_entries, of_the_attacker, option, taken
from dprisk.cli.subjects import chosen, number_of_records, require_spacing
from dprisk.cli.tables import show
from dprisk.cli.threats import read_threat
from dprisk.errors import require


def calibrate_command() -> Command:
    """`dprisk calibrate`, with the names that the catalogue has now."""
    registers = (MECHANISMS, GUARANTEES)
    sections = of_entries(*registers) | {
        "Records and attacker": of_the_attacker(),
        "Goal": [
            option("advantage", float, "The advantage to stay at or below."),
            option("success", float, "The success to stay at or below."),
            option("tpr", float, "The true positive rate to stay at or below, at the --fpr."),
            option("fpr", float, "The false positive rate for --tpr."),
            option("json", bool, "Print JSON instead of a table."),
        ],
    }
    return Command("calibrate", _calibrate, sections, registers)


def _calibrate(**given: Any) -> None:
    """How much noise do I need?

    Finds the weakest noise that keeps a tolerated risk, never above it. The parameter to be found is left out.
    """
    as_json = given.pop("json")
    require((given["tpr"] is None) == (given["fpr"] is None), "--tpr and --fpr go together.")
    goals = [name for name in ("advantage", "success", "tpr") if given[name] is not None]
    require(len(goals) == 1, "Give exactly one goal: --advantage, --success, or --tpr with --fpr.")
    entry = chosen(given)
    threat = read_threat(given, entry, number_of_records(entry, given))
    require_spacing(entry, threat.prior)
    require(given["relation"] != "add-remove", "Against a threat, noise is calibrated for replace-one neighbours.")
    found = calibrate(
        entry.template(taken(entry, given), threat.prior.size, flag),
        threat,
        advantage=given["advantage"],
        success=given["success"],
        tpr_at_fpr=None if given["tpr"] is None else (given["tpr"], given["fpr"]),
    )
    if as_json:
        click.echo(json.dumps(found.to_dict() | {"inputs": echoed(given, threat.prior.size)}, indent=2))
    else:
        show(found)
