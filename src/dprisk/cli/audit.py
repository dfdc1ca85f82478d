"""The command `dprisk audit`."""

import json
import sys
import time
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dprisk.audit.outputs import recorded
from dprisk.audit.report import AuditReport
from dprisk.audit.run import AuditInterrupted, audit, audit_recorded
from dprisk.audit.statistics import Counts, anytime_epsilon
from dprisk.cli.names import MECHANISMS, OF_A_MECHANISM, OF_A_THREAT, SPACED, Options, flag, options
from dprisk.cli.threats import named_knowledge, named_prior
from dprisk.errors import ParameterError, fail, require
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms import Matrix
from dprisk.prior import Prior
from dprisk.tables import natural
from dprisk.threat import Threat, as_success

OF_MECHANISMS = sorted({option for kind in MECHANISMS.values() for option in kind.options} - {"space"})
ASKS_FOR_A_THREAT = {"prior", "knows", "within"}

VIOLATED, INTERRUPTED = 1, 130  # exit codes


@click.command("audit")
@click.argument("code", required=False, metavar="[PACKAGE.MODULE:FUNCTION]")
@options(OF_A_MECHANISM)
@click.option("--size", type=int, help="mechanism: number of possible records.")
@click.option("--records", help="Code: its possible records, as in 0..9 or low,middle,high.")
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
    subject, records = _mechanism(given, prior) if given["mechanism"] is not None else _code(given, prior)
    require(given["delta"] is None or given["claim"] is not None, "--delta is part of a claim: give --claim as well.")
    require(
        given["cluster"] is None or "jobs" not in typed, "--jobs are local workers; a --cluster brings its own workers."
    )
    claim = None if given["claim"] is None else ApproxDP(given["claim"], given["delta"] or 0.0)
    return audit(
        subject,
        claim,
        threat=threat,
        records=records,
        runs=given["runs"],
        alpha=given["alpha"],
        seed=given["seed"],
        designs=given["designs"],
        stop_early=given["stop_early"],
        n_jobs=given["jobs"],
        executor=_cluster(given["cluster"]),
        store=given["store"],
        timeout=given["timeout"],
        watch=_Live(given["alpha"], given["delta"] or 0.0) if sys.stderr.isatty() else None,
    )


def _threat(given: Options) -> Threat:
    """The threat; records that were listed are the labels of a prior that brings none."""
    records = None if given["records"] is None else _records(given["records"])
    size = given["size"] if records is None else len(records)
    prior = named_prior("uniform" if given["prior"] is None else given["prior"], size, given["matrix"])
    if prior.labels is None and records is not None:
        prior = Prior(prior.weights, records)
    success = as_success(given["within"], given["space"] or "line")
    return Threat(prior, named_knowledge(given["knows"], prior), success)


def _mechanism(given: Options, prior: Prior | None) -> tuple[Any, None]:
    name = given["mechanism"]
    require(name in MECHANISMS, f"There is no mechanism {name!r}; choose one of {', '.join(MECHANISMS)}.")
    takes = MECHANISMS[name].options
    for option in OF_MECHANISMS:
        require(given[option] is None or option in takes, f"{flag(option)} has no meaning for {name}.")
    require(given["records"] is None, "--records is for code; a mechanism has --size.")
    require(given["timeout"] is None, "--timeout is for code; a mechanism needs none.")
    if given["matrix"] is not None:
        matrix = Matrix.from_file(given["matrix"])
        require(
            given["size"] in (None, matrix.size), f"--size says {given['size']} records, the matrix has {matrix.size}."
        )
        return matrix, None
    size = given["size"] if prior is None else prior.size
    require(size is not None, "--size is missing: how many possible records are there?")
    if prior is not None and name in SPACED:
        prior.require_even_spacing(f"The mechanism {name}")
    return MECHANISMS[name].make(size, given), None


def _code(given: Options, prior: Prior | None) -> tuple[str, list[Any]]:
    for option in OF_MECHANISMS:
        require(given[option] is None, f"{flag(option)} is for mechanisms; what the code promises is its --claim.")
    require(given["claim"] is not None, "--claim is missing: which epsilon does the code promise?")
    require(given["size"] is None, "--size is for mechanisms; the code has --records.")
    if given["records"] is None and prior is not None and prior.labels is not None:
        return given["code"], list(prior.labels)
    require(given["records"] is not None, "--records is missing, as in --records 0..9.")
    return given["code"], _records(given["records"])


def _records(text: str) -> list[Any]:
    first, dots, last = text.partition("..")
    if not dots:
        return natural([part.strip() for part in text.split(",")])
    try:
        low, high = int(first), int(last)
    except ValueError:
        raise ParameterError(f"{text!r} is no range of whole numbers, as in 0..9.") from None
    require(low < high, f"The range {text} holds fewer than two records.")
    return list(range(low, high + 1))


def _recorded(given: Options, typed: set[str]) -> AuditReport:
    for option in sorted(typed - {"outputs", "claim", "delta", "alpha", "seed"}):
        fail(f"{flag(option)} has no meaning with --outputs, which are runs of the past.")
    require(given["claim"] is not None, "--claim is missing: which epsilon does the code promise?")
    claim = ApproxDP(given["claim"], given["delta"] or 0.0)
    return audit_recorded(recorded(given["outputs"]), claim, alpha=given["alpha"], seed=given["seed"])


def _cluster(address: str | None) -> Executor | None:
    if address is None:
        return None
    try:
        from distributed import Client
    except ImportError:
        return fail("--cluster needs dask.distributed: install dprisk with the extra `cluster`.")
    try:
        executor: Executor = Client(address, timeout="10s").get_executor()
    except OSError as problem:
        return fail(f"No dask cluster answers at {address}: {problem}.")
    return executor


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
        return f"{tally.answered} answered, epsilon >= {anytime_epsilon(tally, self.alpha, self.delta):.3f}"


def _told(report: AuditReport) -> str:
    return (
        f"{report.sentence()}\n"
        f"Verdict: {report.verdict}. Best estimate {report.epsilon_estimate:.3f}, e-value {report.e_value:.3g}, "
        f"{report.tally.describe()}.\n{report.attack_sentence()}"
    ).rstrip()
