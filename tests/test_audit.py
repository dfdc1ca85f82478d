"""Audits: what they certify, which bugs they find, how rarely they are wrong, and that nothing disturbs them."""

import json
import math
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import ApproxDP
from dprisk.auditing import (
    AuditInterrupted,
    AuditReport,
    Look,
    Running,
    as_target,
    audit,
    audit_recorded,
    recorded,
)
from dprisk.auditing.certify.anytime import log_e_value
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.certify.portfolio import Answers
from dprisk.auditing.running import plan
from dprisk.auditing.running.workers import RETRIES
from dprisk.cli.audit import _records
from dprisk.errors import AuditedCodeError, DpriskError, InputFileError, ParameterError, TargetError
from dprisk.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SHE,
    SUE,
    THE,
    Gaussian,
    Laplace,
    Matrix,
    Mechanism,
    Product,
    SubsetSelection,
)
from dprisk.testing import assert_private
from tests.typed import run

Rng = np.random.Generator
Code = Callable[..., Any]

# --- certificates ---


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("kind", [GRR, SubsetSelection, SUE, OUE, SHE, THE, BLH, OLH])
def test_nearly_all_of_the_true_epsilon_is_certified(kind: Callable[[int, float], Mechanism], epsilon: float) -> None:
    mechanism = kind(100, epsilon)
    report = audit(mechanism, runs=100_000, seed=4)
    assert report.claim.epsilon == mechanism.epsilon  # THE promises less than the epsilon that it is made for
    assert 0.93 * mechanism.epsilon <= report.epsilon_certified <= mechanism.epsilon
    assert report.verdict == "consistent with the claim"


def test_unary_encoding_does_not_saturate() -> None:
    assert audit(OUE(3052, 14.0), runs=20_000).epsilon_certified > 13


@pytest.mark.parametrize("size", [50, 500])
def test_the_ends_of_a_line_are_suspected(size: int) -> None:
    assert audit(Laplace(size, 1.0), runs=20_000).epsilon_certified > 0.85


# --- bugs ---


def laplace(record: float, rng: Rng) -> float:
    return round(1024 * (record + rng.laplace())) / 1024  # so that the last bits tell nothing


def half_the_noise(record: float, rng: Rng) -> float:
    return record + rng.laplace(scale=0.5)


def same_seed(record: float) -> float:
    return record + np.random.default_rng(7).laplace()


def sparse_vector(record: int, rng: Rng, noise: float = 4.0) -> int:
    """The first of two queries, each changed by at most 1 by a person, above a noisy threshold; epsilon 1."""
    threshold = 0.5 + rng.laplace(scale=2.0)
    answers = (query + (rng.laplace(scale=noise) if noise else 0.0) for query in (record, 1 - record))
    return next((place for place, answer in enumerate(answers) if answer >= threshold), 2)


def sparse_vector_without_noise(record: int, rng: Rng) -> int:
    return sparse_vector(record, rng, noise=0.0)


TRUTH = math.e / (math.e + 9)  # of GRR on 10 records at epsilon 1


def grr(record: int, rng: Rng, truth: float = TRUTH) -> int:
    return record if rng.random() < truth else int((record + rng.integers(1, 10)) % 10)


def grr_from_all(record: int, rng: Rng) -> int:
    """The thesis's first fault: the other answer is drawn from all records, the true one too."""
    return record if rng.random() < TRUTH else int(rng.integers(10))


def grr_tenth(record: int, rng: Rng) -> int:
    """The thesis's second fault: the truth is told with 0.1 more."""
    return grr(record, rng, TRUTH + 0.1)


def grr_too_honest(record: int, rng: Rng) -> int:
    return grr(record, rng, 1.15 * TRUTH)


def oue_without_reset(record: int, rng: Rng) -> list[bool]:
    """The fault of pure-ldp 1.1.2: the true bit stays on if either draw turns it on."""
    bits = rng.random(10) < 1 / (math.e + 1)
    bits[record] |= rng.random() < 0.5
    return [bool(bit) for bit in bits]


BROKEN: list[tuple[Code, int]] = [
    (half_the_noise, 2),
    (laplace, 3),  # noise for a sensitivity of 1, where it is 2
    (sparse_vector_without_noise, 2),
    (same_seed, 2),
    (grr_from_all, 10),
    (grr_tenth, 10),
    (grr_too_honest, 10),
    (oue_without_reset, 10),
]


@pytest.mark.parametrize(("code", "size"), BROKEN)
def test_bugs_are_found_within_a_few_thousand_runs(code: Code, size: int) -> None:
    name = code.__name__
    family = GRR(10, 1.0) if name.startswith("grr") else OUE(10, 1.0) if name.startswith("oue") else None
    report = audit(code, 1.0, records=range(size), runs=20_000, stop_early=True, look=Look(family=family))
    assert report.verdict == "violated"
    assert report.counts.runs <= 6000
    assert report.anytime


def test_faulty_protocols_are_found_by_learning_too() -> None:
    for code in (grr_from_all, grr_tenth, oue_without_reset):
        assert audit(code, 1.0, records=range(10), runs=20_000, stop_early=True).verdict == "violated"


@pytest.mark.slow
@pytest.mark.usefixtures("verdicts_alone")
@pytest.mark.parametrize(("code", "size"), [(laplace, 2), (sparse_vector, 2), (grr, 10)])
def test_correct_code_is_not_accused(code: Code, size: int) -> None:
    for seed in range(12):
        for stop_early in (True, False):
            report = audit(code, 1.0, records=range(size), runs=1500, alpha=1e-3, seed=seed, stop_early=stop_early)
            assert report.verdict == "consistent with the claim"


# --- false alarms ---


@pytest.mark.slow
@pytest.mark.usefixtures("verdicts_alone")
@pytest.mark.parametrize("stop_early", [False, True])
@pytest.mark.parametrize("subject", [GRR(5, 1.0), OUE(5, 1.0), laplace])
def test_false_alarms_at_the_boundary_are_as_rare_as_promised(
    subject: Any, stop_early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "BLOCK", 50)  # looks at every 50 runs
    alpha, audits = 0.1, 150
    records = None if isinstance(subject, Mechanism) else range(2)
    alarms = above = 0
    for seed in range(audits):
        seen: list[bool] = []

        def look(tally: Counts | Answers, _: int, seen: list[bool] = seen) -> None:
            evidence = log_e_value(tally, 1.0) if isinstance(tally, Counts) else tally.log_e_value(1.0, 0.0)
            seen.append(stop_early and evidence >= -math.log(alpha))

        report = audit(
            subject, 1.0, records=records, runs=500, alpha=alpha, seed=seed, stop_early=stop_early, watch=look
        )
        alarms += report.verdict == "violated"
        above += any(seen) or report.epsilon_certified > 1.0
    most = audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))
    assert alarms <= above <= most
    assert stop_early or above > 0  # the bound is not idle


# --- delta ---


def gaussian(record: float, rng: Rng) -> float:
    return round(1024 * (record + rng.normal())) / 1024


def half_gaussian(record: float, rng: Rng) -> float:
    return round(1024 * (record + rng.normal(scale=0.5))) / 1024


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_gaussian_noise_keeps_the_claim_that_it_has_and_half_of_it_does_not(epsilon: float) -> None:
    claim = ApproxDP(epsilon, Gaussian(2, 1.0).delta_at(epsilon))
    assert audit(gaussian, claim, records=[0, 1], runs=10_000).verdict == "consistent with the claim"
    assert audit(half_gaussian, claim, records=[0, 1], runs=10_000).verdict == "violated"
    report = audit(half_gaussian, claim, records=[0, 1], runs=10_000, stop_early=True)
    assert report.verdict == "violated"
    assert report.counts.runs < 10_000
    known = audit(Gaussian(2, 0.5), claim, runs=20_000)
    assert known.verdict == "violated"
    assert audit(Gaussian(2, 1.0), claim, runs=20_000).verdict == "consistent with the claim"


def test_a_design_aims_at_the_delta_of_the_claim() -> None:
    """A rule that answers in the far tail would be right less often than delta allows."""
    report = audit(Gaussian(2, 0.5), ApproxDP(1.0, 0.2), runs=20_000)
    assert report.counts.correct > 0.2 * report.counts.runs


# --- outputs of all kinds ---


def rarely_nothing(value: Any) -> Code:
    def code(record: int, rng: Rng) -> Any:
        return value if rng.random() < 0.2 * record else float(rng.normal())

    return code


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_numbers_that_are_none_give_a_record_away(value: float) -> None:
    assert audit(rarely_nothing(value), 1.0, records=2, runs=2000).verdict == "violated"


def test_tables_of_numbers_are_looked_at_entry_by_entry() -> None:
    def code(record: int, rng: Rng) -> Any:
        return record * np.eye(2) + rng.normal(size=(2, 2))

    assert audit(code, 1.0, records=[0, 5], runs=1000).verdict == "violated"


def test_a_mechanism_that_rules_records_out_is_audited() -> None:
    report = audit(Matrix([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]), 1.0, runs=1000)
    assert report.epsilon_certified > 3
    json.dumps(report.to_dict(), allow_nan=False)


def test_a_mechanism_whose_outputs_come_in_pairs_is_audited() -> None:
    """Two reports of the same record at epsilon 1 each."""
    mechanism = Product(GRR(3, 1.0), SUE(3, 1.0))
    assert 1.8 < audit(mechanism, runs=30_000).epsilon_certified <= 2
    assert audit(mechanism, 1.5, runs=30_000).verdict == "violated"


def test_many_records_of_unknown_code_are_sampled() -> None:
    assert audit(lambda record: record, 1.0, records=range(5000), runs=500).verdict == "violated"


@pytest.mark.parametrize("output", [7, "text", (1, 2), [True, False]])
def test_what_the_family_never_returns_is_said(output: Any) -> None:
    with pytest.raises(TargetError, match="leave out `family`"):
        audit(lambda record: output, 1.0, records=range(5), runs=100, look=Look(family=GRR(5, 1.0)))


def test_a_family_of_another_size_is_refused() -> None:
    with pytest.raises(ParameterError, match="4 records"):
        audit(grr, 1.0, records=range(10), look=Look(family=GRR(4, 1.0)))


# --- the same report whoever runs it ---


def same(report: AuditReport) -> dict[str, Any]:
    return {key: value for key, value in report.to_dict().items() if key != "seconds"}


class LateExecutor(Executor):
    """Runs nothing before a result is asked for, and then what was submitted last first."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future = LateFuture(self)
        self.waiting.append((future, lambda: function(*arguments, **named)))
        return future

    def run(self) -> None:
        while self.waiting:
            future, call = self.waiting.pop()
            future.set_result(call())


class LateFuture(Future[Any]):
    def __init__(self, executor: LateExecutor) -> None:
        super().__init__()
        self.executor = executor

    def result(self, timeout: float | None = None) -> Any:
        self.executor.run()
        return super().result(timeout)


def global_noise(record: int) -> float:
    return record + float(np.random.laplace())  # noqa: NPY002


def executors() -> Iterator[Running]:
    yield Running(n_jobs=2)
    yield Running(n_jobs=4)
    yield Running(executor=LateExecutor())
    with ThreadPoolExecutor(3) as threads:
        yield Running(executor=threads)
    with ProcessPoolExecutor(2) as processes:
        yield Running(executor=processes)


@pytest.mark.slow
@pytest.mark.parametrize("stop_early", [False, True])
def test_any_executor_gives_the_same_report(stop_early: bool) -> None:
    cases: list[tuple[Any, dict[str, Any]]] = [
        (OUE(20, 2.0), {"claim": 2.0, "runs": 45_000}),
        (global_noise, {"claim": 1.0, "records": [0, 1], "runs": 3250}),
        (half_the_noise, {"claim": 1.0, "records": [0, 1], "runs": 3250}),
    ]
    alone = [same(audit(subject, **given, stop_early=stop_early)) for subject, given in cases]
    for running in executors():
        for (subject, given), expected in zip(cases, alone, strict=True):
            assert same(audit(subject, **given, running=running, stop_early=stop_early)) == expected


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_gives_the_same_report() -> None:
    import distributed

    given: dict[str, Any] = {"claim": 1.0, "records": [0, 1], "runs": 3250}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        report = audit(global_noise, **given, running=Running(executor=client.get_executor()))
    assert same(report) == same(audit(global_noise, **given))


def test_another_seed_gives_another_report() -> None:
    assert audit(GRR(5, 1.0), runs=1000, seed=1).counts != audit(GRR(5, 1.0), runs=1000, seed=2).counts


def dies_once(record: int, rng: Rng) -> float:
    marker = Path(os.environ["DPRISK_TEST_MARKER"])
    if multiprocessing.parent_process() is not None and not marker.exists():
        marker.touch()
        os._exit(1)
    return record + rng.laplace()


def dies(record: int) -> int:
    if multiprocessing.parent_process() is not None:
        os._exit(1)
    return record


def test_a_worker_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "died"
    monkeypatch.setenv("DPRISK_TEST_MARKER", str(marker))
    expected = same(audit(dies_once, 1.0, records=[0, 1], runs=3000))
    assert not marker.exists()
    report = audit(dies_once, 1.0, records=[0, 1], runs=3000, running=Running(n_jobs=2))
    assert "Workers died 1 times" in report.notes[0]
    assert same(replace(report, notes=())) == expected
    assert marker.exists()


def test_workers_that_always_die_end_in_one_sentence() -> None:
    with pytest.raises(TargetError, match=f"A worker died {RETRIES + 1} times in a row at block 0"):
        audit(dies, 1.0, records=[0, 1], runs=1000, running=Running(n_jobs=2))
    with ProcessPoolExecutor(1) as pool, pytest.raises(TargetError, match="A worker died 1 times"):
        audit(dies, 1.0, records=[0, 1], runs=1000, running=Running(executor=pool))


def test_code_that_cannot_be_sent_says_so() -> None:
    with pytest.raises(TargetError, match="cannot be sent to other processes"):
        audit(lambda record: record, 1.0, records=[0, 1], runs=1000, running=Running(n_jobs=2))


# --- stores and interruptions ---

SLOW = """
import time

def privatise(record, rng):
    time.sleep(3e-4)
    return round(record + rng.laplace())
"""


def blocks_in(store: Path) -> int:
    if not store.exists():
        return 0
    with sqlite3.connect(store) as file:
        tables = file.execute("SELECT count(*) FROM sqlite_master WHERE name = 'block'").fetchone()[0]
        counted = "SELECT count(*) FROM block WHERE number >= 0"  # the others are of the pilot
        found = int(file.execute(counted).fetchone()[0]) if tables else 0
    file.close()
    return found


@pytest.mark.slow
def test_an_audit_that_was_killed_or_interrupted_goes_on_to_the_same_report(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, "-m", "dprisk", "audit", "slow:privatise", "--claim", "1", "--records", "0,1"]
    command += ["--runs", "6000", "--jobs", "2", "--json", "--store"]

    def start(store: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*command, store], cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    def finish(store: str) -> dict[str, Any]:
        told, _ = start(store).communicate(timeout=60)
        return {key: value for key, value in json.loads(told).items() if key != "seconds"}

    expected = finish("undisturbed.db")
    assert expected["verdict"] == "consistent with the claim"
    assert expected["runs"] == 6000
    for number, name in ((signal.SIGKILL, "killed.db"), (signal.SIGINT, "interrupted.db")):
        disturbed = start(name)
        until = time.monotonic() + 30
        while blocks_in(tmp_path / name) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        disturbed.send_signal(number)
        told, _ = disturbed.communicate(timeout=30)  # which ends when the workers have
        assert 2 <= blocks_in(tmp_path / name) < 12
        if number == signal.SIGINT:
            assert disturbed.returncode == 130
            partial = json.loads(told)
            assert (partial["verdict"], partial["anytime"]) == ("undecided", True)
            assert 1000 <= partial["runs"] < 6000
        assert finish(name) == expected


def test_an_interruption_carries_the_report_so_far(tmp_path: Path) -> None:
    def stop(counts: Counts, _: int) -> None:
        if counts.runs >= 1500:
            raise KeyboardInterrupt

    given: dict[str, Any] = {"records": [0, 1], "runs": 4000, "seed": 3}
    store = tmp_path / "audit.db"
    with pytest.raises(KeyboardInterrupt) as stopped:
        audit(laplace, 1.0, **given, watch=stop, running=Running(store=store))
    assert isinstance(stopped.value, AuditInterrupted)
    assert stopped.value.report.verdict == "undecided"
    assert stopped.value.report.counts.runs == 2000
    assert same(audit(laplace, 1.0, **given, running=Running(store=store))) == same(audit(laplace, 1.0, **given))


@pytest.mark.parametrize(
    "other", [{"seed": 1}, {"runs": 1500}, {"alpha": 0.05}, {"records": [0, 2]}, {"stop_early": True}]
)
def test_a_store_of_another_audit_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    given: dict[str, Any] = {"records": [0, 1], "runs": 1000, "running": Running(store=tmp_path / "audit.db")}
    audit(laplace, 1.0, **given)
    with pytest.raises(InputFileError, match="holds another audit"):
        audit(laplace, 1.0, **(given | other))


def test_a_store_of_other_code_is_refused(tmp_path: Path) -> None:
    def changed(record: float, rng: Rng) -> float:
        return record + rng.laplace(scale=1.0)

    changed.__qualname__ = "laplace"
    audit(laplace, 1.0, records=[0, 1], runs=1000, running=Running(store=tmp_path / "audit.db"))
    with pytest.raises(InputFileError, match="holds another audit"):
        audit(changed, 1.0, records=[0, 1], runs=1000, running=Running(store=tmp_path / "audit.db"))


def test_a_store_that_is_no_store_gets_one_sentence(tmp_path: Path) -> None:
    text, table = tmp_path / "text.db", tmp_path / "table.db"
    text.write_text("not a database, " * 100)
    with sqlite3.connect(table) as file:
        file.execute("CREATE TABLE block (other TEXT)")
    file.close()
    for path in (text, table, tmp_path / "missing" / "audit.db", tmp_path):
        with pytest.raises(InputFileError, match="cannot be used to record the audit"):
            audit(GRR(4, 1.0), runs=100, running=Running(store=path))


def test_a_damaged_store_gets_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    audit(GRR(4, 1.0), runs=100, running=Running(store=path))
    data = bytearray(path.read_bytes())
    data[1000:] = b"x" * (len(data) - 1000)
    path.write_bytes(bytes(data))
    with pytest.raises(InputFileError):
        audit(GRR(4, 1.0), runs=100, running=Running(store=path))


def test_code_that_cannot_be_seeded_goes_on_from_what_it_gave(tmp_path: Path) -> None:
    """The pilot is recorded too, so that the same experiment is chosen again."""

    def code(record: int) -> int:
        return record ^ (os.urandom(1)[0] & 1)

    given: dict[str, Any] = {"records": [0, 1], "runs": 3000, "running": Running(store=tmp_path / "audit.db")}

    def stop(tally: Any, _: int) -> None:
        if tally.runs >= 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(code, 1.0, **given, watch=stop)
    whole = audit(code, 1.0, **given)
    assert whole.runs == 3000
    assert same(whole) == same(audit(code, 1.0, **given))


# --- faults of the audited code ---

MODULE = """
import time
import numpy as np
from dprisk import GRR
from dprisk.auditing import central

mechanism = GRR(4, epsilon=1.0)

def total(data, rng):
    return sum(data) + rng.laplace(scale=1)

target = central(total, [0, 1, 1], records=[0, 1])

def unseeded(record):
    return record + np.random.default_rng().laplace(scale=9)

def privatise(record, rng):
    return round(1024 * (record + rng.laplace(scale=9))) / 1024

def broken(record, rng):
    return record + rng.laplace(scale=1)

def respond(record, rng):
    return record if rng.random() < 0.2 else int(rng.integers(10))

def many(records, rng):
    return records + rng.laplace(scale=9, size=len(records))

def crash(record, rng):
    return 1 / (record != 3 or rng.random() < 0.5)

def hang(record):
    if record == 3:
        time.sleep(60)
    return record
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "__init__.py").touch()
    (tmp_path / "mypkg" / "mod.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("mypkg", "mypkg.mod"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_crash_tells_how_to_repeat_it() -> None:
    def crash(record: int, rng: Rng) -> float:
        return 1 / (record != 3 or rng.random() < 0.5)

    line = crash.__code__.co_firstlineno + 1
    said = rf"on record 3, .* ZeroDivisionError.*test_audit\.py, line {line}\)\. The same audit with the same seed"
    with pytest.raises(AuditedCodeError, match=said) as caught:
        audit(crash, 1.0, records=range(5))
    assert caught.value.record == 3
    with pytest.raises(AuditedCodeError) as again:
        as_target(crash, 5).repeat(caught.value.records, caught.value.seed)  # type: ignore[attr-defined]
    assert str(again.value) == str(caught.value)


def fails_in_a_worker(record: int) -> int:
    return record if multiprocessing.parent_process() is None else record // 0


def hangs_in_a_worker(record: int) -> int:
    if multiprocessing.parent_process() is not None:
        time.sleep(60)
    return record


def test_failures_in_workers_are_told_as_well() -> None:
    with pytest.raises(AuditedCodeError, match="ZeroDivisionError") as caught:
        audit(fails_in_a_worker, 1.0, records=2, runs=2000, running=Running(n_jobs=2))
    assert caught.value.record in (0, 1)
    with pytest.raises(AuditedCodeError, match=r"within 0\.1 s"):
        audit(hangs_in_a_worker, 1.0, records=2, runs=1000, running=Running(n_jobs=2, timeout=0.1))


def test_a_time_limit_needs_processes() -> None:
    with ThreadPoolExecutor(2) as threads, pytest.raises(ParameterError, match="only the main thread"):
        audit(laplace, 1.0, records=2, runs=1000, running=Running(executor=threads, timeout=5))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "said"), [("crash", "raised ZeroDivisionError"), ("hang", "within 0.2 s")])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_command_ends_with_a_sentence_if_the_code_fails(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    package: Path,
    name: str,
    said: str,
    jobs: str,
) -> None:
    arguments = f"audit mypkg.mod:{name} --claim 1 --records 0..4 --timeout 0.2 --jobs {jobs}".split()
    code, out, error = run(capsys, monkeypatch, *arguments)
    assert (code, out) == (2, "")
    assert said in error
    assert "record 3" in error
    assert "mod.py, line" in error
    assert len(error.splitlines()) == 1


# --- the command ---


def test_the_command_audits_a_mechanism(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "audit --mechanism oue --epsilon 4 --size 100 --runs 100000 --alpha 0.01 --seed 1 --json"
    arguments = text.split()
    code, out, _ = run(capsys, monkeypatch, *arguments)
    told = json.loads(out)
    assert code == 0
    assert told["verdict"] == "consistent with the claim"
    assert told["claim"] == pytest.approx(4.0)
    assert 3.9 < told["epsilon_certified"] <= 4
    assert {"epsilon_estimate", "runs", "answered", "e_value"} <= set(told)
    code, out, _ = run(capsys, monkeypatch, *arguments, "--claim", "3")
    assert (code, json.loads(out)["verdict"]) == (1, "violated")


@pytest.mark.parametrize(("name", "expected"), [("privatise", 0), ("broken", 1)])
def test_the_command_audits_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: Path, name: str, expected: int
) -> None:
    arguments = f"audit mypkg.mod:{name} --claim 1.0 --records 0..9 --runs 3000".split()
    code, out, _ = run(capsys, monkeypatch, *arguments)
    assert code == expected
    assert ("breaks its promise" in out) == (expected == 1)


@pytest.mark.parametrize("arguments", ["mypkg.mod:target --claim 1", "mypkg.mod:target --claim 1 --family laplace"])
def test_the_command_takes_what_brings_its_own_records(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: Path, arguments: str
) -> None:
    code, out, _ = run(capsys, monkeypatch, "audit", *arguments.split(), "--runs", "2000")
    assert code == 0
    assert "total on 3 others" in out
    told = json.loads(run(capsys, monkeypatch, "audit", "mypkg.mod:mechanism", "--runs", "2000", "--json")[1])
    assert told["claim"] == 1.0


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("0,0.5,1", [0.0, 0.5, 1.0]),
        ("0,1e-3", [0.0, 0.001]),
        ("-1, 1", [-1, 1]),
        ("007,010", ["007", "010"]),
        ("low,2", ["low", "2"]),
        ("2..4", [2, 3, 4]),
    ],
)
def test_records_are_numbers_if_all_are(text: str, records: list[Any]) -> None:
    found = _records(text)
    assert found == records
    assert list(map(type, found)) == list(map(type, records))


def test_code_that_makes_its_own_generator_is_seen_not_to_repeat(package: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"records": [0, 1], "runs": 1000}
    report = audit("mypkg.mod:unseeded", 1.0, **given)
    assert not report.target["reproducible"]
    assert "same seed" in report.target["note"]
    assert audit("mypkg.mod:privatise", 1.0, **given).target["reproducible"]


def test_recorded_outputs_of_which_no_two_are_alike_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"{k},{k % 2},{'ab'[k % 2]}\n" for k in range(100))
    (tmp_path / "runs.csv").write_text("id,record,output\n" + rows)
    with pytest.raises(InputFileError, match=r"No two outputs .* leave out columns"):
        audit_recorded(recorded(tmp_path / "runs.csv"), 1.0)


def test_a_mechanism_in_a_module_is_known_in_full(package: Path) -> None:
    report = audit("mypkg.mod:mechanism", runs=10_000)
    assert report.claim == ApproxDP(1.0, 0.0)
    assert "likelihood" in report.design.to_dict()["evidence"]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_the_code_prints_is_no_part_of_the_report(package: Path, jobs: str) -> None:
    (package / "loud.py").write_text(
        "print('loading')\ndef code(record, rng):\n    print('running')\n    return round(record + rng.laplace())\n"
    )
    given = ["loud:code", "--records", "0,1", "--claim", "1", "--runs", "500", "--jobs", jobs, "--json"]
    told = subprocess.run([sys.executable, "-m", "dprisk", "audit", *given], capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["runs"] == 500
    assert "loading" in told.stderr
    assert "running" in told.stderr


def recorded_runs(path: Path, code: Code, size: int = 2, runs: int = 6000) -> Path:
    rng = np.random.default_rng(5)
    rows = [(record, code(record, rng)) for record in rng.integers(size, size=runs).tolist()]
    path.write_text("record,output\n" + "".join(f"{record},{output}\n" for record, output in rows))
    return path


@pytest.mark.parametrize(("code", "expected"), [(laplace, 0), (half_the_noise, 1)])
def test_the_command_audits_recorded_outputs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: Code, expected: int
) -> None:
    path = recorded_runs(tmp_path / "runs.csv", code)
    assert run(capsys, monkeypatch, "audit", "--outputs", str(path), "--claim", "1.0")[0] == expected


@pytest.mark.slow
@pytest.mark.usefixtures("verdicts_alone")
def test_recorded_outputs_raise_no_more_false_alarms_than_promised(tmp_path: Path) -> None:
    alpha, audits = 0.1, 100
    runs = recorded(recorded_runs(tmp_path / "runs.csv", laplace, runs=40_000))
    alarms = 0
    for k in range(audits):
        part = slice(400 * k, 400 * (k + 1))
        some = type(runs)(runs.records[part], runs.outputs[part], runs.labels, runs.name)
        alarms += audit_recorded(some, 1.0, alpha=alpha, seed=k).verdict == "violated"
    assert alarms <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "Give either --mechanism"),
        ("mypkg.mod:privatise --claim 1 --records 0,1,", "names an empty record"),
        ("mypkg.mod:privatise --claim 1 --records 0..999999999", "1000000000 possible records are too many"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --prior two.csv", "leave --records out"),
        ("mypkg.mod:privatise --mechanism grr", "Give either --mechanism"),
        ("--mechanism grr --epsilon 1 --size 5 --outputs runs.csv", "Give either --mechanism"),
        ("mypkg.mod:privatise --records 0..9", "--claim is missing"),
        ("mypkg.mod:privatise --claim 1", "--records is missing"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --size 10", "--size is for mechanisms"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --epsilon 1", "--epsilon is for mechanisms"),
        ("mypkg.mod:privatise --claim 1 --records 9..0", "fewer than two records"),
        ("mypkg.mod:privatise --claim 1 --records a..b", "no range of whole numbers"),
        ("mypkg.mod:privatise --claim 1 --records 1", "at least two possible records"),
        ("mypkg.mod:privatise --claim 1 --records 1,1", "must differ"),
        ("mypkg.mod:privatise --claim -1 --records 0..9", "epsilon"),
        ("mypkg.mod:privatise --claim 1 --delta 2 --records 0..9", "delta"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --timeout 0", "timeout must be a positive"),
        ("mypkg.mod:privatize --claim 1 --records 0..9", "did you mean 'privatise'?"),
        ("mypkg.mud:privatise --claim 1 --records 0..9", "no module 'mypkg.mud'"),
        ("mypkg.mod --claim 1 --records 0..9", "package.module:function, got 'mypkg.mod'; did you mean 'mypkg:mod'?"),
        ("mypkg/mod.py:privatise --claim 1 --records 0..9", "did you mean 'mypkg.mod:privatise'?"),
        ("mypkg/mod.py --claim 1 --records 0..9", "is a file; name a function in it, as in mod:function"),
        ("runs.csv --claim 1", "recorded runs are given as --outputs runs.csv"),
        ("mypkg.mod:target", "What does the code claim?"),
        ("mypkg.mod:target --family laplace", "--claim is missing"),
        ("mypkg.mod:target --claim 1 --records 0,1", "is a target already"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --family none", "There is no mechanism 'none'"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --family grr --epsilon 1", "--epsilon is for mechanisms"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --family grr --sigma 1", "--sigma has no meaning for grr"),
        ("mypkg.mod:privatise --claim 1 --records 0..9 --family gaussian", "--sigma is missing"),
        ("mypkg.mod:privatise --claim 1 --records a,b --family laplace", "laplace adds noise to numbers"),
        (
            "mypkg.mod:privatise --claim 1 --records 0..9 --family matrix --matrix matrix.csv",
            "The family has 2 records",
        ),
        ("mypkg.mod:respond --claim 1 --records 0..9 --batch", "returned a int; batch=True needs"),
        (
            "mypkg.mod:privatise --claim 1 --records 0..9 --timeout 1 --cluster tcp://here:1",
            "leave it out with a --clus",
        ),
        ("mypkg.mod:mechanism --claim 1 --records 0..9 --batch", "takes no further options"),
        ("--mechanism grr --epsilon 1 --size 5 --family grr", "--family is for code"),
        ("--mechanism grr --epsilon 1 --size 5 --batch", "--batch is for code"),
        ("--outputs runs.csv --claim 1 --family laplace", "--family has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --batch", "--batch has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --store audit.db", "--store has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --cluster tcp://here:1", "--cluster has no meaning with --outputs"),
        ("--mechanism grr --size 5", "--epsilon is missing"),
        ("--mechanism grr --epsilon 1", "--size is missing"),
        ("--mechanism grr --epsilon 1 --size 1", "at least two possible records"),
        ("--mechanism grr --epsilon 1 --size 5 --sigma 1", "--sigma has no meaning for grr"),
        ("--mechanism grr --epsilon 1 --size 5 --records 0..4", "--records is for code"),
        ("--mechanism grr --epsilon 1 --size 5 --timeout 1", "--timeout is for code"),
        ("--mechanism grr --epsilon 1 --size 5 --delta 0.1", "--delta is part of a claim"),
        ("--mechanism grr --epsilon 1 --size 5 --runs 0", "runs must be a whole number"),
        ("--mechanism grr --epsilon 1 --size 5 --jobs 0", "--jobs must be a whole number"),
        ("--mechanism grr --epsilon 1 --size 5 --seed -1", "seed must be a whole number"),
        ("--mechanism grr --epsilon 1 --size 5 --alpha 1", "must lie strictly between 0 and 1"),
        ("--mechanism grr --epsilon 1 --size 5 --jobs 2 --cluster tcp://here:1", "--jobs are local workers"),
        ("--mechanism none --size 5", "There is no mechanism 'none'"),
        ("--mechanism gaussian --sigma 1 --size 5", "Give a claim with a delta"),
        ("--mechanism matrix --matrix matrix.csv --size 5", "the matrix has 2"),
        ("--outputs runs.csv", "--claim is missing"),
        ("--outputs none.csv --claim 1", "none.csv"),
        ("--outputs runs.csv --claim 1 --runs 5", "--runs has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --epsilon 5", "--epsilon has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --stop-early", "--stop-early has no meaning with --outputs"),
        ("--outputs runs.csv --claim 1 --alpha 0", "must lie strictly between 0 and 1"),
        ("--outputs one.csv --claim 1", "at least two records"),
        ("--outputs few.csv --claim 1", "too few runs to learn from"),
    ],
)
def test_misuse_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: Path, arguments: str, said: str
) -> None:
    recorded_runs(package / "runs.csv", laplace, runs=50)
    (package / "two.csv").write_text("label,count\n0,1\n1,2\n")
    (package / "one.csv").write_text("record,output\n1,1\n1,2\n")
    (package / "few.csv").write_text("record,output\n1,1\n2,2\n")
    (package / "matrix.csv").write_text("0.5,0.5\n0.2,0.8\n")
    code, out, error = run(capsys, monkeypatch, "audit", *arguments.split())
    assert (code, out) == (2, "")
    assert said in error
    assert len(error.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "look"),
    [
        ("mypkg.mod:privatise --records 0..9 --family laplace", Look(family=Laplace(range(10), epsilon=1.0))),
        ("mypkg.mod:privatise --records 0,5,9 --family laplace", Look(family=Laplace([0, 5, 9], epsilon=1.0))),
        (
            "mypkg.mod:privatise --records 0,9 --delta 0.01 --family gaussian --sigma 9",
            Look(family=Gaussian([0, 9], sigma=9.0)),
        ),
        ("mypkg.mod:respond --records 0..9 --family grr --stop-early", Look(family=GRR(10, 1.0))),
        ("mypkg.mod:many --records 0..9 --batch --jobs 2", Look()),
        ("mypkg.mod:many --records 0..9 --batch --family laplace", Look(family=Laplace(range(10), 1.0))),
    ],
)
def test_the_command_takes_a_family_and_batches(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    package: Path,
    arguments: str,
    look: Look,
) -> None:
    code, *more = arguments.split()
    text = ["audit", code, "--claim", "1", "--runs", "3000", *more, "--store", "audit.db", "--json"]
    records = {"0..9": range(10), "0,9": [0, 9], "0,5,9": [0, 5, 9]}[more[1]]
    target = as_target(code, records, batch="--batch" in more)
    claim = ApproxDP(1.0, 0.01 if "--delta" in more else 0.0)
    expected = same(audit(target, claim, runs=3000, stop_early="--stop-early" in more, look=look))
    for _ in range(2):  # the second time from the store
        told = json.loads(run(capsys, monkeypatch, *text)[1])
        assert {key: told[key] for key in expected} == json.loads(json.dumps(expected))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--mechanism gaussian --sigma 4 --size 5 --claim 1 --delta 0.13 --runs 5000", 0),
        ("--mechanism gaussian --sigma 1.2 --size 5 --claim 1 --delta 0.13 --runs 5000", 1),
        ("--mechanism matrix --matrix matrix.csv --runs 2000", 0),
        ("--mechanism laplace --epsilon 1 --size 5 --runs 2000 --stop-early", 0),
    ],
)
def test_other_mechanisms_at_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: Path, arguments: str, expected: int
) -> None:
    (package / "matrix.csv").write_text("0.5,0.5\n0.2,0.8\n")
    assert run(capsys, monkeypatch, "audit", *arguments.split())[0] == expected


# --- assertions and reports ---


def test_assert_private() -> None:
    assert assert_private(laplace, 1.0, [0, 1], runs=3000).verdict == "consistent with the claim"
    with pytest.raises(AssertionError, match=r"half_the_noise breaks its promise of epsilon 1: its true epsilon is"):
        assert_private(half_the_noise, 1.0, [0, 1])
    with pytest.raises(AssertionError, match=r"delta 0\.001"):
        assert_private(same_seed, 1.0, [0, 1], delta=0.001)
    with pytest.raises(DpriskError):
        assert_private(laplace, -1.0, [0, 1])


def test_gross_bugs_are_found_quickly() -> None:
    calls = []

    def code(record: int) -> int:
        calls.append(record)
        return record

    with pytest.raises(AssertionError):
        assert_private(code, 1.0, [0, 1], runs=1_000_000)
    assert len(calls) < 3000


@pytest.mark.parametrize(
    "report",
    [
        audit(lambda record: record, 1.0, records=range(3), runs=500),
        audit(lambda record: [], 1.0, records=range(3), runs=500),
        audit(GRR(4, 50.0), 1.0, runs=100_000),
        audit(GRR(4, 0.0), runs=500),
        audit(Gaussian(4, 1e-3), ApproxDP(0.0, 0.5), runs=500, stop_early=True),
    ],
)
def test_reports_can_be_shown_and_sent(report: AuditReport) -> None:
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["sentence"] == report.sentence()
    assert told["verdict"] in repr(report)
    assert report.sentence().endswith(".")
    assert told["verdict"] in report._repr_html_()
    assert "<lambda>" not in report._repr_html_()


def test_the_attack_of_an_audit_is_measured_beside_its_bounds() -> None:
    attack: Any = audit(GRR(100, 4.0), runs=50_000).attack()
    best = math.exp(4) / (math.exp(4) + 99)  # which GRR attains, on all records and with every answer
    assert attack.success_bound == pytest.approx(best)
    assert attack.advantage_bound == pytest.approx(best - 0.01)
    assert attack.success_interval[0] < best < attack.success_interval[1]
    assert attack.success == pytest.approx(attack.advantage + attack.baseline)
    broken: Any = audit(GRR(100, 4.0), claim=3.0, runs=50_000).attack()
    assert broken.success_interval[0] > math.exp(3) / (math.exp(3) + 99)
    early: Any = audit(GRR(4, 1.0), runs=10_000, stop_early=True).attack()
    right = math.e / (math.e + 3)
    assert early.success_interval[0] < right < early.success_interval[1]


@pytest.mark.slow
def test_intervals_of_the_attack_cover_the_truth() -> None:
    alpha, audits, missed = 0.1, 200, 0
    for seed in range(audits):
        report = audit(OUE(5, 1.0), runs=300, alpha=alpha, seed=seed)
        others, q = report.counts.size - 1, 1 / (math.e + 1)
        right = 0.5 * (1 - q) ** others  # the true bit alone is on
        wrong = 0.5 * others * q * (1 - q) ** (others - 1)
        truth = right + (1 - right - wrong) / report.counts.size
        low, high = report.to_dict()["attack"]["success_interval"]
        missed += not low <= truth <= high
    assert missed <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))


def test_nothing_to_go_by_is_undecided() -> None:
    report = audit(lambda record: [], 1.0, records=range(3), runs=500)
    assert (report.verdict, report.counts.answered) == ("undecided", 0)
    for stop_early in (False, True):
        assert audit(GRR(5, 9.0), runs=20, stop_early=stop_early).verdict == "undecided"  # no outcome would tell
    assert audit(lambda record: record, ApproxDP(1.0, 1.0), records=2, runs=500).verdict == "undecided"


def test_an_executor_is_one() -> None:
    with pytest.raises(ParameterError, match="Executor"):
        audit(GRR(5, 1.0), running=Running(executor=3))  # type: ignore[arg-type]


# --- blocks of code that is called ---


def test_blocks_grow_with_the_runs_planned_and_with_nothing_else() -> None:
    code = as_target(laplace, 2)
    sizes = [plan.block_size(code, runs, False) for runs in (10, 20_000, 100_000, 10_000_000)]
    assert sizes == [1000, 1000, 5000, 10_000]
    assert plan.block_size(code, 10_000_000, True) == 100
    assert plan.block_size(as_target(lambda records: records, 2, batch=True), 10_000_000, False) == 1000


def test_large_blocks_give_the_same_report_to_any_workers() -> None:
    given: dict[str, Any] = {"claim": 1.0, "records": [0, 1], "runs": 70_000}
    assert same(audit(half_the_noise, **given)) == same(audit(half_the_noise, **given, running=Running(n_jobs=2)))


def test_the_state_of_the_callers_randomness_is_put_back_after_an_audit() -> None:
    before = random.getstate()
    audit(global_noise, 1.0, records=[0, 1], runs=1500)
    with pytest.raises(AuditedCodeError):
        audit(lambda record: 1 // 0, 1.0, records=[0, 1], runs=1500, look=Look(family=GRR(2, 1.0)))
    with pytest.raises(TargetError, match="leave out `family`"):
        audit(lambda record: "text", 1.0, records=[0, 1], runs=1500, look=Look(family=GRR(2, 1.0)))
    assert random.getstate() == before
