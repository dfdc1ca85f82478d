"""The command `dprisk`: all its commands, and how it ends."""

import io
import os
import sys
from importlib import resources
from importlib.metadata import entry_points

import click

from dprisk import __version__
from dprisk.assessment import assess
from dprisk.attacks import NAMED
from dprisk.bounds import REGISTRY
from dprisk.calibration import calibrate
from dprisk.catalogue import REGISTERS
from dprisk.cli.assess import assess_command, calibrate_command
from dprisk.cli.audit import audit_command
from dprisk.cli.learn import learn_command
from dprisk.cli.options import Command, Group, option
from dprisk.cli.plot import plot_command
from dprisk.cli.population import population_command
from dprisk.cli.printing import print_json, say
from dprisk.cli.report import check_command, init_command, report_command
from dprisk.cli.tables import show, show_attacks, show_catalogue, show_options, show_registry
from dprisk.errors import DpriskError
from dprisk.letters import visible
from dprisk.mechanisms import GRR
from dprisk.threat.prior import Prior
from dprisk.threat.threat import Threat

DEMO_EPSILON, DEMO_ADVANTAGE = 2.0, 0.05
ABOUT = """What does a differentially private release risk? How much noise does it need? Does the code keep its promise?

And what should we worry about? `dprisk init` asks, and `dprisk report` answers on one page.

`dprisk COMMAND --help` has examples. `dprisk demo` shows one that runs.
"""


def command() -> click.Group:
    """The command with all that the catalogue knows now, also what was registered since the package was loaded."""
    as_json = {"Answer": [option("json", bool, "Print JSON instead of tables, with the details.")]}
    questions_first = (
        assess_command(),
        calibrate_command(),
        audit_command(),
        init_command(),
        check_command(),
        report_command(),
        plot_command(),
        population_command(),
        learn_command(),
        Command("bounds", _bounds, as_json),
        Command("catalogue", _catalogue, as_json),
        Command("demo", _demo, {}),
    )
    group = Group("dprisk", ABOUT, questions_first)
    return click.version_option(__version__, prog_name="dprisk")(group)


def main() -> None:
    """Run the command: wrong input gets one sentence and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a label in letters that the terminal has not
    try:
        _load_plugins()
        code = command().main(prog_name="dprisk", standalone_mode=False)
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except BrokenPipeError:  # whoever read the answer has seen enough, as in `dprisk catalogue | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (DpriskError, click.ClickException, MemoryError, OSError) as problem:
        message = (
            problem.format_message().replace("\n\t", " ") if isinstance(problem, click.ClickException) else str(problem)
        )
        if isinstance(problem, MemoryError):
            message = "This needs more memory than there is; choose a smaller size."
        say(f"Error: {visible(message)}", err=True)
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted before there was an answer.", err=True)
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _load_plugins() -> None:
    """Import what installed packages name in the entry point group `dprisk.plugins`: it registers what it adds."""
    for plugin in entry_points(group="dprisk.plugins"):
        try:
            plugin.load()
        except Exception as problem:
            why = f"{type(problem).__name__}: {problem}"
            raise DpriskError(f"The plugin {plugin.name} cannot be loaded ({why}); repair or remove it.") from problem


def _bounds(json: bool) -> None:
    """List every bound: what it is on, what it needs, who proved it."""
    if json:
        print_json([bound.to_dict() for bound in REGISTRY])
        return
    for which in dict.fromkeys(bound.bounds for bound in REGISTRY):
        show_registry(which, REGISTRY)


def _catalogue(json: bool) -> None:
    """List every name that you can type.

    Tells what each stands for, which options it takes, and what else it is called.
    """
    attacks = [{key: getattr(attack, key) for key in ("name", "title", "explanation", "needs")} for attack in NAMED]
    options = {name: known for register in REGISTERS for name, known in register.options.items()}
    if json:
        told = {register.plural.replace(" ", "_"): [entry.to_dict() for entry in register] for register in REGISTERS}
        print_json(told | {"attacks": attacks, "options": [known.to_dict() for known in options.values()]})
        return
    for register in REGISTERS:
        show_catalogue(register)
    show_attacks(NAMED)
    show_options(options.values())


def _demo() -> None:
    """Show an example that comes with dprisk.

    A clinic asks its patients for one of ten diagnoses, by randomised response.
    """
    with resources.as_file(resources.files("dprisk") / "examples" / "clinic.csv") as path:
        prior = Prior.from_csv(path)
    threat = Threat(prior)
    click.echo(
        f"A clinic asks each patient for one of {prior.size} diagnoses, by randomised response at epsilon "
        f"{DEMO_EPSILON:g}.\nThe attacker knows how common each diagnosis is, and nothing else.\n"
    )
    show(assess(GRR(prior.size, DEMO_EPSILON), threat))
    click.echo(f"\n{calibrate(GRR(prior.size, DEMO_EPSILON), threat, advantage=DEMO_ADVANTAGE).sentence()}")
