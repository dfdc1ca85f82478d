"""The command `dprisk audit`."""

import logging
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, redirect_stdout
from inspect import isroutine
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dprisk.attacks import make
from dprisk.attacks.estimate import Guesser
from dprisk.auditing import AuditInterrupted, Look, Running, as_target, audit, audit_recorded, recorded
from dprisk.auditing.certify.anytime import anytime_epsilon
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.code.reading import require_few
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.target import Target
from dprisk.auditing.report import AuditReport
from dprisk.catalogue import MECHANISMS
from dprisk.cli.options import (
    FILE,
    Command,
    Options,
    flag,
    name_in,
    of_entries,
    of_the_attacker,
    only_of_entries,
    option,
    taken,
)
from dprisk.cli.progress import live
from dprisk.cli.subjects import read_threat
from dprisk.cli.tables import show_json
from dprisk.errors import ParameterError, fail, require
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms import Mechanism
from dprisk.rounding import decimals_down
from dprisk.tables import readable
from dprisk.threat.prior import Prior
from dprisk.threat.threat import Threat

OF_A_THREAT = {"prior", "knows", "within", "space"}
EXIT_CODES, INTERRUPTED = {"violated": 1, "undecided": 3, "consistent with the claim": 0}, 130
PATIENCE = "5s"  # for a cluster to answer, and to come back when it was lost


def audit_command() -> Command:
    """`dprisk audit`, with the names that the catalogue has now."""
    sections = of_entries(MECHANISMS) | {
        "Code": [
            click.Argument(["code"], required=False, metavar="[PACKAGE.MODULE:FUNCTION]"),
            option("records", str, "Its possible records, as in 0..9 or low,middle,high."),
            name_in(MECHANISMS, "family", "The mechanism that it claims to be, at the epsilon of the --claim."),
            option("batch", bool, "It takes many records at once and returns an output for each."),
            option("timeout", float, "Seconds that one call may take."),
            option("failures", bool, "Take an exception, or a call that takes too long, as an output."),
            option("outputs", FILE, "Instead of code: a file of recorded runs, with columns record and output."),
        ],
        "Claim": [
            option("claim", float, "The claimed epsilon; that of the mechanism if left out."),
            option("delta", float, "The claimed delta, the chance with which epsilon may fail; 0 if left out."),
        ],
        "Records and attacker": of_the_attacker(),
        "Audit": [
            option("runs", int, "How often the code is run.", default=100_000, show_default=True),
            option("alpha", float, "Chance that the certificate is wrong.", default=0.01, show_default=True),
            option("seed", int, "Same seed, same report.", default=0, show_default=True),
            option("attack", str, "Guess by this attack of `dprisk catalogue`, not by the likelihood.", metavar="NAME"),
            option("stop_early", bool, "Stop as soon as the claim is refuted."),
            option("jobs", int, "Worker processes.", default=1, show_default=True),
            option("cluster", str, "Run on a dask cluster instead, as in tcp://host:8786.", metavar="ADDRESS"),
            option("store", FILE, "Record finished blocks here, and go on from them."),
            option("json", bool, "Print JSON instead of sentences."),
        ],
    }
    return Command("audit", _audit, sections, (MECHANISMS,))


def _audit(**given: Any) -> None:
    """Does this code keep its promise?

    Runs a mechanism, a function or recorded outputs against a claimed epsilon. Certifies a lower bound on the true
    epsilon. Ends with code 1 if the claim is violated, with 3 if the runs could not have shown it, with 0 otherwise. With --prior, --knows or --within it measures what that
    attacker gains; without them it looks for the leak wherever it shows best.
    """
    context = click.get_current_context()
    subjects = [given[subject] for subject in ("code", "mechanism", "outputs")]
    require(subjects.count(None) == 2, "Give either --mechanism, PACKAGE.MODULE:FUNCTION, or a file of --outputs.")
    typed = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    interrupted = False
    try:
        with redirect_stdout(sys.stderr):  # what the code prints is no part of the report
            report = _recorded(given, typed) if given["outputs"] is not None else _run(given, typed)
    except AuditInterrupted as stop:
        report, interrupted = stop.report, True
        click.echo(err=True)  # behind ^C
    if given["json"]:
        show_json(report.to_dict())
    else:
        click.echo(_told(report))
    context.exit(INTERRUPTED if interrupted else EXIT_CODES[report.verdict])


def _run(given: Options, typed: set[str]) -> AuditReport:
    entry = given["mechanism"]
    listed = None if given["records"] is None else _records(given["records"])
    threat = None
    if typed & (OF_A_THREAT if entry is None else OF_A_THREAT - set(entry.takes)):
        threat = read_threat(given, entry, listed)
        threat.require_listed()
    prior = None if threat is None else threat.prior
    subject, family = _code(given, prior, listed) if entry is None else (_mechanism(given, prior), None)
    require(given["delta"] is None or given["claim"] is not None, "--delta is part of a claim: give --claim as well.")
    if given["cluster"] is not None:
        require("jobs" not in typed, "--jobs are local workers; a --cluster brings its own workers.")
        told = "--timeout is kept in local processes only; leave it out with a --cluster."
        require(given["timeout"] is None, told)
    law = subject if isinstance(subject, Mechanism) else family or subject.mechanism
    look = Look(family, _attack(given["attack"], law, threat))
    delta = given["delta"] or 0.0

    def known(tally: Any) -> str:
        if not isinstance(tally, Counts):
            return str(tally.describe())
        certified = decimals_down(anytime_epsilon(tally, given["alpha"], delta), 3)
        return f"{tally.answered} answered, epsilon >= {certified}"

    with _workers(given["cluster"], given["jobs"]) as (executor, n_jobs), live() as tell:
        return audit(
            subject,
            None if given["claim"] is None else (given["claim"], delta),
            threat=threat,
            runs=given["runs"],
            alpha=given["alpha"],
            seed=given["seed"],
            stop_early=given["stop_early"],
            look=look,
            running=Running(n_jobs, executor, given["store"], given["timeout"]),
            watch=None if tell is None else lambda tally, planned: tell(tally.runs, planned, known(tally)),
        )


def _attack(name: str | None, mechanism: Mechanism | None, threat: Threat | None) -> Guesser | None:
    """The attack of that name, on what the mechanism reports; the records are equally likely unless a threat says."""
    if name is None:
        return None
    if mechanism is None:
        return fail("--attack needs to know what outputs mean: give the --family of the code.")
    return make(name, mechanism, threat or Threat(Prior.uniform(mechanism.size)))


@contextmanager
def _workers(address: str | None, jobs: int) -> Iterator[tuple[Executor | None, int]]:
    """The executor of the cluster at an address and its number of threads; without an address no executor, and `jobs`.

    dask is imported for a cluster only. Runs are random, hence not pure: no block is taken from another audit.
    """
    if address is None:
        yield None, jobs
        return
    try:
        from distributed import Client
    except ImportError:
        fail("--cluster needs dask.distributed: install dprisk with the extra `cluster`.")
    try:
        client = Client(address, timeout=PATIENCE)
    except Exception as problem:  # no answer, no address, or an answer of something that is no scheduler
        raise ParameterError(f"No dask cluster answers at {address!r}, as in tcp://host:8786: {problem}.") from problem
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # that it is lost is said in one sentence
    with client:
        yield client.get_executor(pure=False), max(jobs, sum(client.nthreads().values()))


def _mechanism(given: Options, prior: Prior | None) -> Mechanism:
    entry = given["mechanism"]
    for name, instead in (
        ("records", "a mechanism has --size"),
        ("timeout", "a mechanism needs none"),
        ("family", "a mechanism is its own"),
        ("batch", "a mechanism always does that"),
        ("failures", "a mechanism does not fail"),
    ):
        require(given[name] in (None, False), f"{flag(name)} is for code; {instead}.")
    size = given["size"] if prior is None else prior.size
    require(size is not None or entry.records == "nothing", "--size is missing: how many possible records are there?")
    made: Mechanism = entry.make(taken(entry, given), size, flag)
    if given["size"] not in (None, made.size):
        fail(f"--size says {given['size']} records, the {entry.name} has {made.size}.")
    return made


def _code(given: Options, prior: Prior | None, records: list[Any] | None) -> tuple[Target, Mechanism | None]:
    for name in only_of_entries():
        if given[name] is not None and (given["family"] is None or name == "epsilon"):
            fail(f"{flag(name)} is for mechanisms; what the code promises is its --claim.")
    require(given["size"] is None, "--size is for mechanisms; the code has --records.")
    require(":" in given["code"] or not Path(given["code"]).is_file(), _a_file(given["code"]))
    brings_its_own = not isroutine(Reference.parse(given["code"]).load())
    if given["claim"] is None and (given["family"] is not None or not brings_its_own):
        fail("--claim is missing: which epsilon does the code promise?")
    if records is None and prior is not None and prior.labels is not None:
        records = list(prior.labels)
    require(records is not None or brings_its_own, "--records is missing, as in --records 0..9.")
    target = as_target(given["code"], records, batch=given["batch"], failures=given["failures"])
    return target, None if given["family"] is None else _family(given, list(target.records))


def _a_file(name: str) -> str:
    if name.endswith(".py"):
        return f"{name} is a file; name a function in it, as in {Path(name).stem}:function."
    return f"{name} is a file; recorded runs are given as --outputs {name}."


def _family(given: Options, records: list[Any]) -> Mechanism:
    """What the code claims to be: at the claimed epsilon, and on the line at the records themselves."""
    entry = given["family"]
    numbers = all(isinstance(record, int | float) for record in records)
    require(numbers or entry.records != "places", f"{entry.name} adds noise to numbers; the --records are none.")
    options = taken(entry, given) | ({"epsilon": given["claim"]} if "epsilon" in entry.takes else {})
    made: Mechanism = entry.make(options, records if entry.records == "places" else len(records), flag)
    return made


def _records(text: str) -> list[Any]:
    """A range of whole numbers, or a list: of numbers if each is one (007 is none), of text otherwise."""
    first, dots, last = text.partition("..")
    if not dots:
        parts = [part.strip() for part in text.split(",")]
        require(all(parts), f"--records {text!r} names an empty record; list them as in 0..9 or low,middle,high.")
        if len(parts) == 1:
            fail(f"--records {text} is one; at least two possible records are needed, as in 0..9 or 0,0.5.")
        return readable(parts) or parts
    try:
        low, high = int(first), int(last)
    except ValueError:
        raise ParameterError(f"{text!r} is no range of whole numbers, as in 0..9.") from None
    require(low < high, f"The range {text} holds fewer than two records.")
    require_few(high - low + 1)
    return list(range(low, high + 1))


def _recorded(given: Options, typed: set[str]) -> AuditReport:
    for name in sorted(typed - {"outputs", "claim", "delta", "alpha", "seed", "json"}):
        fail(f"{flag(name)} has no meaning with --outputs, which are runs of the past.")
    require(given["claim"] is not None, "--claim is missing: which epsilon does the code promise?")
    claim = ApproxDP(given["claim"], given["delta"] or 0.0)
    return audit_recorded(recorded(given["outputs"]), claim, alpha=given["alpha"], seed=given["seed"])


def _told(report: AuditReport) -> str:
    return (
        f"{report.sentence()}\n"
        f"Verdict: {report.verdict}. Best estimate {report.epsilon_estimate:.3f}, e-value {report.e_value:.3g}, "
        f"{report.tally.describe()}.\n{report.attack_sentence()}"
    ).rstrip()
