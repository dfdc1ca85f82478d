"""The command `dprisk audit`."""

import json
import sys
import time
from contextlib import redirect_stdout
from inspect import isroutine
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dprisk.auditing import AuditInterrupted, Look, Running, as_target, audit, audit_recorded, recorded
from dprisk.auditing.certify.anytime import anytime_epsilon
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.code.reading import require_few
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.target import Target
from dprisk.auditing.report import AuditReport, rounded_down
from dprisk.cli.cluster import workers
from dprisk.cli.names import MECHANISMS, OF_A_MECHANISM, OF_A_THREAT, SPACED, Kind, Options, flag, options
from dprisk.cli.threats import named_knowledge, named_prior
from dprisk.errors import ParameterError, fail, require
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms import Matrix, Mechanism
from dprisk.tables import readable
from dprisk.threat.prior import Prior
from dprisk.threat.threat import Threat, as_success

OF_MECHANISMS = sorted({option for kind in MECHANISMS.values() for option in kind.options} - {"space"})
ASKS_FOR_A_THREAT = {"prior", "knows", "within"}
ON_THE_LINE = {"laplace", "gaussian"}  # whose likelihood takes the records for places, in any unit

VIOLATED, INTERRUPTED = 1, 130  # exit codes


@click.command("audit")
@click.argument("code", required=False, metavar="[PACKAGE.MODULE:FUNCTION]")
@options(OF_A_MECHANISM)
@click.option("--size", type=int, help="mechanism: number of possible records.")
@click.option("--records", help="Code: its possible records, as in 0..9 or low,middle,high.")
@click.option(
    "--family",
    metavar="NAME",
    help="Code: the mechanism that it claims to be, named as for --mechanism, at the epsilon of the --claim.",
)
@click.option("--batch", is_flag=True, help="Code: it takes many records at once and returns an output for each.")
@click.option("--outputs", type=click.Path(path_type=Path), help="A file of recorded runs: columns record and output.")
@options(OF_A_THREAT)
@click.option("--claim", type=float, help="The claimed epsilon; that of the mechanism if left out.")
@click.option("--delta", type=float, help="The claimed delta, 0 if left out.")
@click.option("--runs", type=int, default=100_000, show_default=True, help="How often the code is run.")
@click.option("--alpha", type=float, default=0.01, show_default=True, help="Chance that the certificate is wrong.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same report.")
@click.option("--designs", type=int, default=1, show_default=True, help="Sets of suspects that share the runs.")
@click.option("--stop-early", is_flag=True, help="Stop as soon as the claim is refuted.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Worker processes.")
@click.option("--cluster", metavar="ADDRESS", help="Run on a dask cluster instead, as in tcp://host:8786.")
@click.option("--store", type=click.Path(path_type=Path), help="Record finished blocks here, and go on from them.")
@click.option("--timeout", type=float, help="Code: seconds that one call may take.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of sentences.")
@click.pass_context
def audit_command(context: click.Context, /, as_json: bool, **given: Any) -> None:
    """Does this code keep its promise?

    Runs a mechanism, a function or recorded outputs against a claimed epsilon. Certifies a lower bound on the true
    epsilon. Ends with code 1 if the claim is violated. With --prior, --knows or --within it measures what that
    attacker gains; without them it looks for the leak wherever it shows best.
    """
    require(
        [given[subject] for subject in ("code", "mechanism", "outputs")].count(None) == 2,
        "Give either --mechanism, PACKAGE.MODULE:FUNCTION, or a file of --outputs.",
    )
    typed = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    interrupted = False
    try:
        with redirect_stdout(sys.stderr):  # what the code prints is no part of the report
            report = _recorded(given, typed) if given["outputs"] is not None else _run(given, typed)
    except AuditInterrupted as stop:
        report, interrupted = stop.report, True
        click.echo(err=True)  # behind ^C, or what _Live wrote
    click.echo(json.dumps(report.to_dict(), indent=2) if as_json else _told(report))
    context.exit(INTERRUPTED if interrupted else VIOLATED if report.verdict == "violated" else 0)


def _run(given: Options, typed: set[str]) -> AuditReport:
    threat = _threat(given) if typed & ASKS_FOR_A_THREAT else None
    require(
        given["space"] is None or given["within"] is not None or given["mechanism"] == "exponential",
        "--space has no meaning without --within.",
    )
    prior = None if threat is None else threat.prior
    subject, family = (_mechanism(given, prior), None) if given["mechanism"] is not None else _code(given, prior)
    require(given["delta"] is None or given["claim"] is not None, "--delta is part of a claim: give --claim as well.")
    require(
        given["cluster"] is None or "jobs" not in typed, "--jobs are local workers; a --cluster brings its own workers."
    )
    require(
        given["cluster"] is None or given["timeout"] is None,
        "--timeout is kept in local processes only; leave it out with a --cluster.",
    )
    claim = None if given["claim"] is None else ApproxDP(given["claim"], given["delta"] or 0.0)
    with workers(given["cluster"], given["jobs"]) as (executor, n_jobs):
        return audit(
            subject,
            claim,
            threat=threat,
            runs=given["runs"],
            alpha=given["alpha"],
            seed=given["seed"],
            stop_early=given["stop_early"],
            look=Look(family=family, designs=given["designs"]),
            running=Running(n_jobs, executor, given["store"], given["timeout"]),
            watch=_Live(given["alpha"], given["delta"] or 0.0) if sys.stderr.isatty() else None,
        )


def _threat(given: Options) -> Threat:
    """The threat; records that were listed are the labels of a prior that brings none."""
    records = None if given["records"] is None else _records(given["records"])
    size = given["size"] if records is None else len(records)
    what = "--size" if records is None else "--records"
    prior = named_prior("uniform" if given["prior"] is None else given["prior"], size, given["matrix"], what)
    if prior.labels is None and records is not None:
        prior = Prior(prior.weights, records)
    success = as_success(given["within"], given["space"] or "line")
    return Threat(prior, named_knowledge(given["knows"], prior), success)


def _mechanism(given: Options, prior: Prior | None) -> Mechanism:
    kind = _kind("mechanism", given)
    for option, instead in (
        ("records", "a mechanism has --size"),
        ("timeout", "a mechanism needs none"),
        ("family", "a mechanism is its own"),
        ("batch", "a mechanism always does that"),
    ):
        require(given[option] in (None, False), f"{flag(option)} is for code; {instead}.")
    if given["matrix"] is not None:
        matrix = Matrix.from_file(given["matrix"])
        require(
            given["size"] in (None, matrix.size), f"--size says {given['size']} records, the matrix has {matrix.size}."
        )
        return matrix
    size = given["size"] if prior is None else prior.size
    require(size is not None, "--size is missing: how many possible records are there?")
    if prior is not None and given["mechanism"] in SPACED:
        prior.require_even_spacing(f"The mechanism {given['mechanism']}")
    made: Mechanism = kind.make(size, given)
    return made


def _code(given: Options, prior: Prior | None) -> tuple[Target, Mechanism | None]:
    for option in OF_MECHANISMS:
        require(
            given[option] is None or (given["family"] is not None and option != "epsilon"),
            f"{flag(option)} is for mechanisms; what the code promises is its --claim.",
        )
    require(given["size"] is None, "--size is for mechanisms; the code has --records.")
    require(":" in given["code"] or not Path(given["code"]).is_file(), _a_file(given["code"]))
    brings_its_own = not isroutine(Reference.parse(given["code"]).load())
    require(
        given["claim"] is not None or (brings_its_own and given["family"] is None),
        "--claim is missing: which epsilon does the code promise?",
    )
    labels = None if prior is None or prior.labels is None else list(prior.labels)
    records = labels if given["records"] is None else _records(given["records"])
    require(records is not None or brings_its_own, "--records is missing, as in --records 0..9.")
    target = as_target(given["code"], records, batch=given["batch"])
    return target, None if given["family"] is None else _family(given, list(target.records))


def _a_file(name: str) -> str:
    if name.endswith(".py"):
        return f"{name} is a file; name a function in it, as in {Path(name).stem}:function."
    return f"{name} is a file; recorded runs are given as --outputs {name}."


def _family(given: Options, records: list[Any]) -> Mechanism:
    """What the code claims to be: at the claimed epsilon, and on the line at the records themselves."""
    kind, name = _kind("family", given), given["family"]
    numbers = all(isinstance(record, int | float) for record in records)
    require(numbers or name not in ON_THE_LINE, f"{name} adds noise to numbers; the --records are none.")
    made: Mechanism = kind.make(records if name in ON_THE_LINE else len(records), given | {"epsilon": given["claim"]})
    return made


def _kind(choice: str, given: Options) -> Kind:
    """What a --mechanism or --family names; options that it does not take are refused."""
    name = given[choice]
    require(name in MECHANISMS, f"There is no mechanism {name!r}; choose one of {', '.join(MECHANISMS)}.")
    for option in OF_MECHANISMS:
        takes = option in MECHANISMS[name].options
        require(given[option] is None or takes, f"{flag(option)} has no meaning for {name}.")
    return MECHANISMS[name]


def _records(text: str) -> list[Any]:
    """A range of whole numbers, or a list: of numbers if each is one (007 is none), of text otherwise."""
    first, dots, last = text.partition("..")
    if not dots:
        parts = [part.strip() for part in text.split(",")]
        require(all(parts), f"--records {text!r} names an empty record; list them as in 0..9 or low,middle,high.")
        require(
            len(parts) > 1, f"--records {text} is one; at least two possible records are needed, as in 0..9 or 0,0.5."
        )
        return readable(parts) or parts
    try:
        low, high = int(first), int(last)
    except ValueError:
        raise ParameterError(f"{text!r} is no range of whole numbers, as in 0..9.") from None
    require(low < high, f"The range {text} holds fewer than two records.")
    require_few(high - low + 1)
    return list(range(low, high + 1))


def _recorded(given: Options, typed: set[str]) -> AuditReport:
    for option in sorted(typed - {"outputs", "claim", "delta", "alpha", "seed"}):
        fail(f"{flag(option)} has no meaning with --outputs, which are runs of the past.")
    require(given["claim"] is not None, "--claim is missing: which epsilon does the code promise?")
    claim = ApproxDP(given["claim"], given["delta"] or 0.0)
    return audit_recorded(recorded(given["outputs"]), claim, alpha=given["alpha"], seed=given["seed"])


class _Live:
    """One line on the terminal while the audit runs."""

    def __init__(self, alpha: float, delta: float) -> None:
        self.alpha, self.delta, self.started = alpha, delta, time.perf_counter()

    def __call__(self, tally: Any, planned: int) -> None:
        left = (time.perf_counter() - self.started) * (planned - tally.runs) / tally.runs
        line = f"{tally.runs} of {planned} runs, {self._sure(tally)}, {left:.0f} s left "
        click.echo(f"\r{line}" if tally.runs < planned else "\r" + " " * len(line) + "\r", nl=False, err=True)

    def _sure(self, tally: Any) -> str:
        if not isinstance(tally, Counts):
            return str(tally.describe())
        certified = rounded_down(anytime_epsilon(tally, self.alpha, self.delta), 3)
        return f"{tally.answered} answered, epsilon >= {certified}"


def _told(report: AuditReport) -> str:
    return (
        f"{report.sentence()}\n"
        f"Verdict: {report.verdict}. Best estimate {report.epsilon_estimate:.3f}, e-value {report.e_value:.3g}, "
        f"{report.tally.describe()}.\n{report.attack_sentence()}"
    ).rstrip()
