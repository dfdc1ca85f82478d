"""The command: `dprisk assess` and `dprisk demo`."""

import json
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from dprisk import __version__
from dprisk.assess import Risk, assess
from dprisk.calibrate import Calibration, calibrate
from dprisk.errors import DpriskError, InputFileError, MechanismError, ParameterError, ThreatError, fail, require
from dprisk.knowledge import Knowledge
from dprisk.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SUE,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    Matrix,
    Mechanism,
    SubsetSelection,
    UnaryEncoding,
)
from dprisk.prior import Prior
from dprisk.render import as_table
from dprisk.success import Success
from dprisk.tables import read_csv
from dprisk.threat import Threat, as_success

Options = dict[str, Any]
DEMO_EPSILON, DEMO_ADVANTAGE = 2.0, 0.05


def _local(kind: Callable[[int, float], Mechanism]) -> Callable[[int, Options], Mechanism]:
    return lambda size, given: kind(size, _needed(given, "epsilon"))


def _exponential(size: int, given: Options) -> Mechanism:
    build = Exponential.on_ring if given["space"] == "ring" else Exponential.on_line
    return build(size, _needed(given, "epsilon"))


MECHANISMS: dict[str, Callable[[int, Options], Mechanism]] = {
    "grr": _local(GRR),
    "sue": _local(SUE),
    "oue": _local(OUE),
    "ue": lambda size, given: UnaryEncoding(size, _needed(given, "p"), _needed(given, "q")),
    "ss": lambda size, given: SubsetSelection(size, _needed(given, "epsilon"), given["subset_size"]),
    "blh": _local(BLH),
    "olh": _local(OLH),
    "exponential": _exponential,
    "geometric": lambda size, given: Geometric(size, _needed(given, "epsilon"), ends=given["ends"]),
    "laplace": _local(Laplace),
    "gaussian": lambda size, given: Gaussian(size, _needed(given, "sigma")),
    "matrix": lambda _, given: Matrix.from_file(_needed(given, "matrix")),
}
# What each mechanism takes besides the size; anything else given with it is refused, not ignored.
PARAMETERS = {
    "ue": {"p", "q"},
    "ss": {"epsilon", "subset_size"},
    "geometric": {"epsilon", "ends"},
    "gaussian": {"sigma"},
    "matrix": {"matrix"},
}
OF_MECHANISMS = ("epsilon", "p", "q", "sigma", "subset_size", "ends", "matrix")


@click.group()
@click.version_option(__version__, prog_name="dprisk")
def cli() -> None:
    """What does a differentially private release risk, how much noise does it need?"""


@cli.command("assess")
@click.option("--mechanism", required=True, metavar="NAME", help=f"One of {', '.join(MECHANISMS)}.")
@click.option("--epsilon", type=float, help="Privacy parameter of the mechanism.")
@click.option("--size", type=int, help="Number of possible records; a prior file or a matrix brings its own.")
@click.option(
    "--prior",
    metavar="PRIOR",
    default="uniform",
    show_default=True,
    help="uniform, zipf:EXPONENT, geometric:RATIO, or a CSV file with `label` and `probability` or `count`.",
)
@click.option(
    "--knows",
    metavar="WHAT",
    default="none",
    show_default=True,
    help="none, all, or a CSV file with `group` (and `label`, unless in the order of the records).",
)
@click.option("--within", type=float, help="A guess this near the record counts as right; exact if left out.")
@click.option("--space", default="line", show_default=True, help="Where distances are measured: line or ring.")
@click.option("--p", type=float, help="ue: chance that the true bit is on.")
@click.option("--q", type=float, help="ue: chance that another bit is on.")
@click.option("--sigma", type=float, help="gaussian: standard deviation, positions spread over [0, 1].")
@click.option("--subset-size", type=int, help="ss: how many records a report names; chosen from epsilon if left out.")
@click.option("--ends", default=None, help="geometric: clamp (default) or truncate.")
@click.option("--matrix", type=click.Path(path_type=Path), help="matrix: CSV without header or .npy, a line a record.")
@click.option("--samples", type=int, help="Outputs to draw where the exact value is out of reach.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for those draws.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def assess_command(mechanism: str, as_json: bool, **given: Any) -> None:
    """What does this release risk?

    Tells how often the best attacker is right about one person, with the report and without it.
    """
    risk = _assess(mechanism, given)
    if as_json:
        inputs = {"mechanism": mechanism} | {name: _plain(value) for name, value in given.items() if value is not None}
        inputs["size"] = risk.threat.prior.size
        click.echo(json.dumps(risk.to_dict() | {"inputs": inputs}, indent=2))
    else:
        _show(risk)


@cli.command("demo")
def demo_command() -> None:
    """The bundled example: a clinic asks its patients for one of ten diagnoses, by randomised response."""
    with resources.as_file(resources.files("dprisk") / "examples" / "clinic.csv") as path:
        prior = Prior.from_csv(path)
    threat = Threat(prior)
    click.echo(
        f"A clinic asks each patient for one of {prior.size} diagnoses, by randomised response at epsilon "
        f"{DEMO_EPSILON:g}.\nThe attacker knows how common each diagnosis is, and nothing else.\n"
    )
    _show(assess(GRR(prior.size, DEMO_EPSILON), threat))
    click.echo(f"\n{_advice(calibrate(GRR(prior.size, DEMO_EPSILON), threat, advantage=DEMO_ADVANTAGE))}")


def main() -> None:
    """Run the command: wrong input gets one sentence and exit code 2, never a traceback."""
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except (DpriskError, click.ClickException) as problem:
        message = problem.format_message() if isinstance(problem, click.ClickException) else str(problem)
        click.echo(f"Error: {message}", err=True)
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _assess(name: str, given: Options) -> Risk:
    require(
        name in MECHANISMS, f"There is no mechanism {name!r}; choose one of {', '.join(MECHANISMS)}.", MechanismError
    )
    allowed = PARAMETERS.get(name, {"epsilon"})
    for option in OF_MECHANISMS:
        require(
            given[option] is None or option in allowed,
            f"{_flag(option)} has no meaning for {name}; it takes {', '.join(map(_flag, sorted(allowed)))}.",
        )
    success = as_success(given["within"], given["space"])
    prior = _prior(given["prior"], given["size"], given["matrix"])
    given = given | {"ends": given["ends"] or "clamp"}
    threat = Threat(prior, _knowledge(given["knows"], prior), success)
    return assess(MECHANISMS[name](prior.size, given), threat, samples=given["samples"], rng=given["seed"])


def _prior(text: str, size: int | None, matrix: Path | None) -> Prior:
    name, colon, number = text.partition(":")
    made: dict[str, Callable[..., Prior]] = {"uniform": Prior.uniform, "zipf": Prior.zipf, "geometric": Prior.geometric}
    if name in made and not Path(text).is_file():
        if size is None and matrix is not None:
            size = Matrix.from_file(matrix).size
        known_size = fail("--size is missing: how many possible records are there?") if size is None else size
        return made[name](known_size, *([_float(number, text)] if colon else []))
    prior = Prior.from_csv(text)
    require(
        size is None or size == prior.size,
        f"--size says {size} records, {text} has {prior.size}; leave --size out, it follows from the file.",
    )
    return prior


def _knowledge(text: str, prior: Prior) -> Knowledge | str:
    if text in ("none", "all"):
        return text
    table = read_csv(text)
    require("group" in table, f"{text} has no column `group`; it has {', '.join(table)}.", InputFileError)
    if "label" not in table:
        return Knowledge.partition(table["group"])
    group = dict(zip(table["label"], table["group"], strict=True))
    names = [str(prior.name(record)) for record in range(prior.size)]
    missing = [name for name in names if name not in group]
    require(not missing, f"{text} has no group for the record {', '.join(missing[:1])}.", ThreatError)
    return Knowledge.partition([group[name] for name in names])


def _show(risk: Risk) -> None:
    console = Console(highlight=False)
    console.print(as_table(risk))
    console.print(risk.sentence(), soft_wrap=True)


def _advice(calibration: Calibration) -> str:
    points = f"{100 * calibration.target:g} points"
    if calibration.unlimited:
        return f"The advantage stays below {points} whatever epsilon is."
    # Rounded down, so that the printed number keeps the promise too.
    epsilon = np.floor(calibration.epsilon * 1000) / 1000
    return f"To keep the advantage below {points}, choose epsilon {epsilon:.3f} or less."


def _needed(given: Options, name: str) -> Any:
    value = given[name]
    return fail(f"{_flag(name)} is missing for this mechanism.") if value is None else value


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _float(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{whole!r} needs a number behind the colon, as in zipf:1.1.") from None


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path | Success) else value


if __name__ == "__main__":
    main()
