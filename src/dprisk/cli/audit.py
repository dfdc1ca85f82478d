"""The command `dprisk audit`."""

import logging
import math
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, redirect_stdout
from inspect import isroutine
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dprisk.attacks import NAMED, make
from dprisk.attacks.estimate import Guesser
from dprisk.attacks.named import MORE
from dprisk.auditing import AuditInterrupted, Look, Running, as_target, audit, audit_recorded, recorded
from dprisk.auditing.certify.anytime import anytime_epsilon
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.code.reading import require_few
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.target import Target
from dprisk.auditing.report import AuditReport
from dprisk.auditing.running.workers import LONGEST
from dprisk.catalogue import MECHANISMS
from dprisk.catalogue.naming import records_of
from dprisk.cli.options import (
    FILE,
    Command,
    Options,
    flag,
    name_in,
    of_a_table,
    of_entries,
    of_the_attacker,
    only_of_entries,
    option,
    taken,
)
from dprisk.cli.printing import print_csv, print_json, say
from dprisk.cli.progress import live
from dprisk.cli.subjects import HOW_MANY, read_survey, read_threat, survey_records, survey_threat
from dprisk.cli.sweeping import INTERRUPTED
from dprisk.errors import ParameterError, fail, require
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms import Mechanism
from dprisk.rounding import decimals_down
from dprisk.surveys import Survey
from dprisk.tables import readable
from dprisk.threat.prior import Prior
from dprisk.threat.threat import Threat

OF_A_THREAT = {"prior", "knows", "within", "space"}
EXIT_CODES = {"violated": 1, "undecided": 3, "consistent with the claim": 0}
LARGE = 1e100  # an e-value beyond which digits say nothing
PATIENCE = "5s"  # for a cluster to answer, and to come back when it was lost


def audit_command() -> Command:
    """`dprisk audit`, with the names that the catalogue has now."""
    sections = of_entries(MECHANISMS) | {
        "Or your code": [
            click.Argument(["code"], required=False, metavar="[PACKAGE.MODULE:FUNCTION]"),
            option("records", str, "Records, any two of which the claim is about, as in 0..9 or low,middle,high."),
            name_in(MECHANISMS, "family", "The mechanism that the code claims to be, at the epsilon of the --claim."),
            option("batch", bool, "The code takes many records at once and returns an output for each."),
            option("timeout", float, "How many seconds one call may take."),
            option("failures", bool, "Take an exception, or a call that takes too long, as an output."),
            option("timing", bool, "Look at how long each call takes, too."),
            option(
                "outputs", FILE, "Instead of code: a CSV file of recorded runs, with columns `record` and `output`."
            ),
        ],
        "Claim": [
            option("claim", float, "The claimed epsilon; with --mechanism, its own if left out."),
            option("delta", float, "The claimed delta, the chance that epsilon fails; 0 if left out."),
        ],
        "Table": of_a_table(),
        "Records and attacker": of_the_attacker(),
        "Audit": [
            option("runs", int, "How often the code is run.", default=100_000),
            option("alpha", float, "Chance that the certified epsilon is too large.", default=0.01),
            option("seed", int, "A whole number that fixes all that is random.", default=0),
            option("attack", str, "Guess by this attack, one of those that `dprisk catalogue` lists.", metavar="NAME"),
            option(
                "for", str, "End after this time with what is certified by then, as in 90s, 10m or 2h.", metavar="TIME"
            ),
            option("stop_early", bool, "Stop as soon as the claim is refuted."),
            option("jobs", int, "How many processes run the code at the same time.", default=1),
            option("cluster", str, "Run on a dask cluster instead, as in tcp://host:8786.", metavar="ADDRESS"),
            option("store", FILE, "A file that keeps what is done: an interrupted audit goes on from it."),
            option("json", bool, "Print JSON instead of sentences."),
            option("csv", bool, "Print CSV instead of sentences: a line for each number."),
        ],
    }
    examples = (
        "--mechanism oue --epsilon 2 --size 100",
        "mypackage.noise:privatise --records 0..9 --claim 1",
        "--outputs reports.csv --claim 1",
    )
    return Command("audit", _audit, sections, (MECHANISMS,), examples)


def _audit(**given: Any) -> None:
    """Does this code keep its promise?

    Runs a mechanism or a function of yours many times, or takes recorded runs, and finds an epsilon that the true one
    is not below. Ends with exit code 1 if that breaks the claim, with 3 if so few runs could not have shown it. With
    --prior, --knows or --within it measures what this attacker gains; without them it looks wherever a leak shows best.
    """
    context = click.get_current_context()
    subjects = [given[subject] for subject in ("code", "mechanism", "outputs")]
    require(subjects.count(None) == 2, "Give either --mechanism, PACKAGE.MODULE:FUNCTION, or a file of --outputs.")
    typed = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    interrupted = False
    try:
        with redirect_stdout(sys.stderr):  # what the code prints is no part of the report
            report = _recorded(given, typed) if given["outputs"] is not None else _run(given, typed)
    except KeyboardInterrupt as stop:
        click.echo(f"\n{_stopped(given['store'])}", err=True)
        if not isinstance(stop, AuditInterrupted):
            raise
        report, interrupted = stop.report, True
    if given["json"]:
        print_json(report.to_dict())
    elif given["csv"]:
        print_csv(report.table())
    else:
        say(_told(report))
    context.exit(INTERRUPTED if interrupted else EXIT_CODES[report.verdict])


def _stopped(store: Path | None) -> str:
    """What somebody who pressed Ctrl-C can do now."""
    if store is None:
        return "Stopped, and no run was kept. With --store FILE the same command would go on where it is stopped."
    return f"Stopped. The same command with --store {store} goes on where it stopped."


def _run(given: Options, typed: set[str]) -> AuditReport:
    entry = given["mechanism"]
    listed = None if given["records"] is None else _records(given["records"])
    survey, threat = _attacker(given, typed, listed)
    prior = survey.prior if survey is not None else None if threat is None else threat.prior
    subject, family = _code(given, prior, listed) if entry is None else (_mechanism(given, prior, survey), None)
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
        return f"{tally.answered:,} answered, epsilon >= {certified}"

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
            running=Running(n_jobs, executor, given["store"], given["timeout"], _seconds(given["for"])),
            watch=None if tell is None else lambda tally, planned: tell(tally.runs, planned, known(tally)),
            watch_pilot=None if tell is None else lambda runs, planned: tell(runs, planned, "a pilot to learn from"),
        )


def _attacker(given: Options, typed: set[str], listed: list[Any] | None) -> tuple[Survey | None, Threat | None]:
    """The column that is randomised and the threat, each if there is one."""
    entry, survey = given["mechanism"], read_survey(given)
    if survey is not None:
        known = entry is None and given["knows"] != "none"
        require(not known, "Code is run on the values of the --column alone; leave --knows out.")
        return survey, survey_threat(given, entry, survey)
    if not typed & (OF_A_THREAT if entry is None else OF_A_THREAT - set(entry.takes)):
        return None, None
    threat = read_threat(given, entry, listed)
    threat.require_listed()
    return None, threat


def _seconds(text: str | None) -> float | None:
    """A time such as 90, 90s, 10m or 2h."""
    if text is None:
        return None
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    try:
        seconds = float(number) * unit
    except ValueError:
        raise ParameterError(f"--for {text} is no time; give one as in 90s, 10m or 2h.") from None
    require(0 < seconds <= LONGEST, f"--for must be above 0 and no more than a year, got {text}.")
    return seconds


def _attack(name: str | None, mechanism: Mechanism | None, threat: Threat | None) -> Guesser | None:
    """The attack of that name, on what the mechanism reports; the records are equally likely unless a threat says."""
    if name is None:
        return None
    if mechanism is None:
        return fail("--attack needs to know what outputs mean: give the --family of the code.")
    for need in NAMED[name].needs:
        if need not in ("mechanism", "threat", "prior"):
            told = f"--attack {name} needs {MORE.get(need, need)}, which only Python can give"
            fail(f"{told}: make({NAMED[name].name!r}, mechanism, threat, {need}=...) in dprisk.attacks.")
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


def _mechanism(given: Options, prior: Prior | None, survey: Survey | None) -> Mechanism:
    entry = given["mechanism"]
    for name, instead in (
        ("records", "a mechanism has --size"),
        ("timeout", "a mechanism needs none"),
        ("family", "a mechanism is its own"),
        ("batch", "a mechanism always does that"),
        ("failures", "a mechanism does not fail"),
        ("timing", "a mechanism is drawn in blocks"),
    ):
        require(given[name] in (None, False), f"{flag(name)} is for code; {instead}.")
    size = given["size"] if prior is None else prior.size
    require(size is not None or entry.records == "nothing", HOW_MANY)
    if survey is not None:
        return survey.randomised(entry.make(taken(entry, given), survey_records(entry, survey), flag))
    made: Mechanism = entry.make(taken(entry, given), size if prior is None else records_of(prior, entry), flag)
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
    target = as_target(given["code"], records, batch=given["batch"], failures=given["failures"], timing=given["timing"])
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
    for name in sorted(typed - {"outputs", "claim", "delta", "alpha", "seed", "json", "csv"}):
        fail(f"{flag(name)} has no meaning with --outputs, which are runs of the past.")
    require(given["claim"] is not None, "--claim is missing: which epsilon does the code promise?")
    claim = ApproxDP(given["claim"], given["delta"] or 0.0)
    return audit_recorded(recorded(given["outputs"]), claim, alpha=given["alpha"], seed=given["seed"])


def _told(report: AuditReport) -> str:
    best = f"{report.epsilon_estimate:.3f}" if math.isfinite(report.epsilon_estimate) else "infinite"
    evidence = f"{report.e_value:.3g}" if report.e_value < LARGE else f"above {LARGE:g}"
    return (
        f"{report.sentence()}\n"
        f"Verdict: {report.verdict}. Best estimate {best}, e-value {evidence}, {report.tally.describe()}.\n"
        f"{report.attack_sentence()}"
    ).rstrip()
