"""The command: `dprisk assess`, `calibrate`, `audit`, `bounds` and `demo`."""

import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import click

from dprisk import __version__
from dprisk.assessment import Risk, assess
from dprisk.bounds import REGISTRY
from dprisk.calibration import calibrate
from dprisk.cli.audit import audit_command
from dprisk.cli.names import (
    GUARANTEES,
    MECHANISMS,
    OF_A_GUARANTEE,
    OF_A_MECHANISM,
    OF_SUBJECT,
    PRIORS,
    SPACED,
    THREAT,
    Kind,
    Options,
    flag,
    options,
)
from dprisk.cli.tables import bounds_table, registry_table, show, show_table
from dprisk.cli.threats import named_knowledge, named_prior, prior_file
from dprisk.errors import DpriskError, require
from dprisk.guarantees import DPSGD, Guarantee
from dprisk.mechanisms import GRR, Mechanism
from dprisk.releases.files import ReleaseFile, read_release
from dprisk.threat.knowledge import Knowledge
from dprisk.threat.prior import Prior
from dprisk.threat.threat import Threat, as_success

DEMO_EPSILON, DEMO_ADVANTAGE = 2.0, 0.05
ANY = 1.0  # the parameter of a template that is to be calibrated


@click.group(no_args_is_help=False, invoke_without_command=True)
@click.pass_context
@click.version_option(__version__, prog_name="dprisk")
def cli(context: click.Context) -> None:
    """What does a differentially private release risk, how much noise does it need, does the code keep its promise?"""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command("assess")
@options(OF_A_MECHANISM, OF_A_GUARANTEE, THREAT)
@click.option(
    "--release",
    type=click.Path(path_type=Path),
    help="Instead of a mechanism: a TOML or JSON file with a query, its data, the possible records and the noise; "
    "--prior may then be `data`, --knows columns of the records.",
)
@click.option("--samples", type=int, help="Outputs to draw where the exact value is out of reach.")
@click.option("--seed", type=int, help="Seed for those draws (0 if left out).")
@click.option("--thorough", is_flag=True, help="Solve optimisation problems for many records too.")
@click.option("--bounds", "all_bounds", is_flag=True, help="Show every bound that applies, not only the tightest.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def assess_command(as_json: bool, all_bounds: bool, **given: Any) -> None:
    """What does this release risk?

    Tells how often the best attacker is right about one person, with the report and without it: exactly for a
    mechanism, at most for a guarantee.
    """
    planned = None if given["release"] is None else _planned(given)
    if planned is not None:
        subject: Mechanism | Guarantee = planned.mechanism
        threat = _threat_to(planned, given)
        given["query"] = planned.query.describe()
    else:
        _, kind = _kind(given)
        threat = _threat(given)
        subject = _subject(kind, given, threat.prior)
    risk = assess(
        subject,
        threat,
        runs=given["samples"],
        seed=given["seed"],
        thorough=given["thorough"],
        progress=_show_progress if sys.stderr.isatty() else None,
    )
    if as_json:
        told = risk.to_dict() | {"inputs": _echo(given, threat)}
        if all_bounds and isinstance(risk, Risk):
            told["bounds"] = risk.bounds.to_dict()["bounds"]
        click.echo(json.dumps(told, indent=2))
        return
    if planned is not None:
        click.echo(f"{given['query']}, over {planned.others} others and one of {threat.prior.size} possible records")
    show(risk)
    if all_bounds:
        worst = risk.bounds if isinstance(risk, Risk) else risk
        show_table(bounds_table(worst.on_advantage.values + worst.on_success.values))


@cli.command("calibrate")
@options(OF_A_MECHANISM, OF_A_GUARANTEE, THREAT)
@click.option("--advantage", type=float, help="The advantage to stay at or below.")
@click.option("--success", type=float, help="The success to stay at or below.")
@click.option("--tpr", type=float, help="The true positive rate to stay at or below, at the --fpr.")
@click.option("--fpr", type=float, help="The false positive rate for --tpr.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def calibrate_command(as_json: bool, **given: Any) -> None:
    """How much noise do I need?

    Finds the weakest noise that keeps a tolerated risk, never above it. The parameter to be found is left out.
    """
    require((given["tpr"] is None) == (given["fpr"] is None), "--tpr and --fpr go together.")
    goals = [flag(name) for name in ("advantage", "success", "tpr") if given[name] is not None]
    require(len(goals) == 1, "Give exactly one goal: --advantage, --success, or --tpr with --fpr.")
    name, kind = _kind(given)
    threat = _threat(given)
    rates = None if given["tpr"] is None else (given["tpr"], given["fpr"])
    found = calibrate(
        _template(name, kind, given, threat.prior),
        threat,
        advantage=given["advantage"],
        success=given["success"],
        tpr_at_fpr=rates,
    )
    if as_json:
        click.echo(json.dumps(found.to_dict() | {"inputs": _echo(given, threat)}, indent=2))
    else:
        show(found)


@cli.command("bounds")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables, with the statements.")
def bounds_command(as_json: bool) -> None:
    """Every bound dprisk knows: what it bounds, what it needs, who proved it."""
    if as_json:
        click.echo(json.dumps([bound.to_dict() for bound in REGISTRY], indent=2))
        return
    for which in dict.fromkeys(bound.bounds for bound in REGISTRY):
        show_table(registry_table(which, REGISTRY))


cli.add_command(audit_command)


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
    risk = assess(GRR(prior.size, DEMO_EPSILON), threat)
    show(risk)
    click.echo(f"\n{calibrate(GRR(prior.size, DEMO_EPSILON), threat, advantage=DEMO_ADVANTAGE).sentence()}")


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
    except MemoryError:
        click.echo("Error: This needs more memory than there is; choose a smaller size.", err=True)
        code = 2
    except OSError as problem:
        click.echo(f"Error: {problem}", err=True)
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _kind(given: Options) -> tuple[str, Kind]:
    """The name and the kind of what was asked about; options that it does not take are refused, not ignored."""
    named = [(choice, given[choice]) for choice in ("mechanism", "guarantee") if given[choice] is not None]
    also = ", or a --release file" if "release" in given else ""
    require(len(named) == 1, f"Give either --mechanism or --guarantee{also}.")
    for option in ("samples", "seed"):
        measured = given.get(option) is not None
        require(named[0][0] == "mechanism" or not measured, f"{flag(option)} is for mechanisms only.")
    choice, name = named[0]
    known = MECHANISMS if choice == "mechanism" else GUARANTEES
    require(name in known, f"There is no {choice} {name!r}; choose one of {', '.join(known)}.")
    takes = known[name].options
    for option in sorted(OF_SUBJECT):
        require(
            given[option] is None or option in takes,
            f"{flag(option)} has no meaning for {name}; it takes {', '.join(map(flag, takes))}.",
        )
    require(
        given["space"] is None or given["within"] is not None or "space" in takes,
        "--space has no meaning without --within.",
    )
    return name, known[name]


def _require_spacing(given: Options, prior: Prior) -> None:
    if given["mechanism"] in SPACED:
        prior.require_even_spacing(f"The mechanism {given['mechanism']}")


def _subject(kind: Kind, given: Options, prior: Prior) -> Mechanism | Guarantee:
    _require_spacing(given, prior)
    made: Mechanism | Guarantee = kind.make(prior.size, given | {"relation": given["relation"] or "replace-one"})
    return made.to_replace_one() if isinstance(made, Guarantee) else made


def _template(name: str, kind: Kind, given: Options, prior: Prior) -> Any:
    """What is to be calibrated: the subject with any value for the parameter that is to be found."""
    _require_spacing(given, prior)
    relation = given["relation"] or "replace-one"
    require(relation == "replace-one", "Against a threat, noise is calibrated for replace-one neighbours.")
    if name == "dpsgd":
        require(given["noise_multiplier"] is None, "The noise multiplier is what is to be found; leave it out.")
        for option in ("sample_rate", "steps"):
            require(given[option] is not None, f"{flag(option)} is missing for dpsgd.")
        return DPSGD(given["sample_rate"], given["steps"])
    if name == "ue":  # which keeps its p and moves its q
        return kind.make(prior.size, given)
    sought = next((option for option in ("epsilon", "sigma", "mu", "rho") if option in kind.options), "")
    require(sought != "", f"{name} has no parameter to calibrate.")
    require(given[sought] is None, f"{flag(sought)} is what is to be found; leave it out.")
    return kind.make(prior.size, given | {sought: ANY, "relation": relation})


def _planned(given: Options) -> ReleaseFile:
    """The release in a file; options that say of a mechanism what the file says of the release are refused."""
    for option in ("mechanism", "guarantee", "size", *sorted(OF_SUBJECT)):
        require(given[option] is None, f"{flag(option)} has no meaning with --release: the file says it.")
    planned = read_release(given["release"])
    require(
        given["prior"] is None or planned.prior is None,
        f"{given['release']} names a prior; leave --prior out, or take it out of the file.",
    )
    return planned


def _threat_to(planned: ReleaseFile, given: Options) -> Threat:
    """The threat to a planned release: its records, with their labels."""
    require(given["space"] is None or given["within"] is not None, "--space has no meaning without --within.")
    require(
        given["within"] is None or planned.is_numeric,
        "--within is a distance between records that are numbers: a universe of one column of numbers.",
    )
    given["prior"] = next(text for text in (given["prior"], planned.prior, "uniform") if text is not None)
    prior = _prior_of(planned, given["prior"])
    success = as_success(given["within"], given["space"] or "line")
    return Threat(prior, _knowledge_of(planned, given["knows"], prior), success)


def _knowledge_of(planned: ReleaseFile, text: str, prior: Prior) -> Knowledge | str:
    """As `named_knowledge`, or columns of the records."""
    names = text.split(",")
    if text not in ("none", "all") and all(name in planned.table for name in names):
        return Knowledge.columns(planned.table, names)
    require(
        text in ("none", "all") or Path(text).exists(),
        f"--knows is none, all, a CSV file or columns of the records ({', '.join(planned.table)}), got {text}.",
    )
    return named_knowledge(text, prior)


def _prior_of(planned: ReleaseFile, text: str) -> Prior:
    """A prior over the records of a release; `data` is how often each occurs among everybody else."""
    if text == "data":
        return planned.prior_from_data()
    if text.partition(":")[0] in PRIORS:
        return Prior(named_prior(text, planned.mechanism.size, None).weights, planned.mechanism.labels)
    return prior_file(text, text if planned.prior is None else planned.folder / text, "data, ")


def _threat(given: Options) -> Threat:
    success = as_success(given["within"], given["space"] or "line")
    given["prior"] = "uniform" if given["prior"] is None else given["prior"]
    prior = named_prior(given["prior"], given["size"], given["matrix"])
    return Threat(prior, named_knowledge(given["knows"], prior), success)


def _echo(given: Options, threat: Threat) -> Options:
    told = {
        name: str(value) if isinstance(value, Path) else value for name, value in given.items() if value is not None
    }
    return told | {"size": threat.prior.size}


def _show_progress(done: int, wanted: int, advantage: float) -> None:
    """One line on the terminal, rewritten as the estimate goes on and wiped at its end."""
    line = f"\r{done} of {wanted} outputs, advantage about {advantage:.4g} "
    click.echo(line if done < wanted else "\r" + " " * len(line) + "\r", nl=False, err=True)
