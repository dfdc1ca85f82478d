"""Stores, workers and time: how an audit is run, stopped and taken up again."""

from __future__ import annotations

import functools
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import GRR, Laplace, Prior, Threat
from dprisk.attacks import Report
from dprisk.auditing import AuditInterrupted, Look, Running, as_target, audit, central
from dprisk.auditing.code.called import CodeTarget
from dprisk.auditing.code.fingerprints import fingerprint
from dprisk.errors import InputFileError, ParameterError
from dprisk.guarantees import ApproxDP


class RR:
    """Randomised response that draws from the operating system: nothing but its state tells one from another."""

    def __init__(self, epsilon: float, table: Any = None) -> None:
        self.keep, self.table = math.exp(epsilon) / (1 + math.exp(epsilon)), table
        self.rng = np.random.default_rng()

    def __call__(self, record: int) -> int:
        return record if int.from_bytes(os.urandom(4), "little") / 2**32 < self.keep else 1 - record


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def closing_over(value: Any) -> Any:
    return lambda record: record + value


def held(target: Any) -> Any:
    return target.code


def scaled(record: int, scale: Any) -> Any:
    return record, scale


ARRAY = np.arange(5.0)
PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "object": (lambda: RR(1.0), lambda: RR(3.0)),
    "partial": (lambda: functools.partial(scaled, scale=1.0), lambda: functools.partial(scaled, scale=2.0)),
    "array in a partial": (
        lambda: functools.partial(scaled, scale=ARRAY),
        lambda: functools.partial(scaled, scale=ARRAY + 1),
    ),
    "closure": (lambda: closing_over(1), lambda: closing_over(2)),
    "array in an object in a closure": (
        lambda: closing_over(RR(1.0, {"rows": [ARRAY]})),
        lambda: closing_over(RR(1.0, {"rows": [ARRAY + 1]})),
    ),
    "None in a closure": (lambda: closing_over(None), lambda: closing_over(0)),
    "bound method": (lambda: RR(1.0).__call__, lambda: RR(3.0).__call__),
    "slots": (lambda: Slotted(1), lambda: Slotted([1])),
    "set": (lambda: {"a", "b"}, lambda: {"a", "c"}),
    "mechanism": (lambda: GRR(5, 1.0), lambda: GRR(5, 1.5)),
    "prior": (lambda: Threat(Prior([0.5, 0.3, 0.2])), lambda: Threat(Prior([0.5, 0.2, 0.3]))),
    "central": (
        lambda: held(central(sum, others=[1, 0, 1], records=[0, 1])),
        lambda: held(central(sum, others=[1, 1, 1], records=[0, 1])),
    ),
    "central's array": (
        lambda: held(central(np.sum, others=np.arange(2000), records=[0, 1])),
        lambda: held(central(np.sum, others=np.r_[:1999, 5], records=[0, 1])),
    ),
    "attack": (lambda: Look(scorer=Report()), lambda: Look(family=GRR(2, 1.0))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_state_is_part_of_what_is_audited(name: str) -> None:
    one, other = PAIRS[name]
    assert fingerprint(one()) == fingerprint(one())
    assert fingerprint(one()) != fingerprint(other())


def test_an_identity_is_the_same_in_another_process() -> None:
    code = "from tests.test_audit_running import *\nprint(*[fingerprint(PAIRS[name][0]()) for name in sorted(PAIRS)])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == [fingerprint(PAIRS[name][0]()) for name in sorted(PAIRS)]


def test_circles_are_followed_once() -> None:
    one, two = RR(1.0), RR(1.0)
    one.table, two.table = one, two
    assert fingerprint(one) == fingerprint(two)


def interrupted(code: Any, store: Path, **given: Any) -> AuditInterrupted:
    def stop(tally: Any, _: int) -> None:
        if tally.runs >= 2000:
            raise KeyboardInterrupt

    with pytest.raises(AuditInterrupted) as stopped:
        audit(code, 1.0, records=[0, 1], runs=4000, running=Running(store=store), watch=stop, **given)
    return stopped.value


def test_a_store_goes_on_for_the_same_object_only(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    assert "goes on from them" in str(interrupted(RR(0.5), store))
    with pytest.raises(InputFileError, match="another audit"):
        audit(RR(3.0), 1.0, records=[0, 1], runs=4000, running=Running(store=store))
    report = audit(RR(0.5), 1.0, records=[0, 1], runs=4000, running=Running(store=store))
    assert (report.runs, report.verdict) == (4000, "consistent with the claim")


def test_without_a_store_the_message_names_one() -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(AuditInterrupted, match="With a store"):
        audit(GRR(2, 1.0), runs=50_000, watch=stop)


@pytest.mark.parametrize(("part", "factor"), [("runs", 69), ("records", 0)])
def test_blocks_of_another_size_are_refused(tmp_path: Path, part: str, factor: int) -> None:
    store = tmp_path / "a.db"
    interrupted(RR(1.0), store)
    with sqlite3.connect(store) as file:
        (told,) = file.execute("SELECT tally FROM block WHERE number = 1").fetchone()
        if part == "runs":
            changed = json.loads(told) | {"runs": 1000 * factor}
            file.execute("UPDATE block SET tally = ? WHERE number = 1", (json.dumps(changed),))
        else:
            file.execute("UPDATE block SET records = NULL WHERE number = 1")
    with pytest.raises(InputFileError, match="of block 1, which has 1000"):
        audit(RR(1.0), 1.0, records=[0, 1], runs=4000, running=Running(store=store))


# --- time ---


def hangs_after_a_while(record: int, rng: np.random.Generator) -> int:
    if rng.random() < 1e-4:
        time.sleep(60)
    return record if rng.random() < 0.7 else 1 - record


@pytest.fixture
def deaf() -> Iterator[None]:
    """A process in which something else handles Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.SIG_IGN


@pytest.mark.slow
@pytest.mark.usefixtures("deaf")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_audit_ends_in_time_with_what_it_has(n_jobs: int) -> None:
    started = time.perf_counter()
    running = Running(n_jobs, seconds=3.0)
    report = audit(hangs_after_a_while, 1.0, records=[0, 1], runs=10_000_000, running=running)
    assert time.perf_counter() - started < 30  # and not until a call comes back
    assert 0 < report.runs < 10_000_000
    assert report.anytime
    assert f"was up after {report.runs:,} of 10,000,000 runs" in report.sentence()


def test_enough_time_changes_nothing_but_the_certificate() -> None:
    given: dict[str, Any] = {"records": [0, 1], "runs": 3000}
    timed = audit(quick, 1.0, **given, running=Running(seconds=600))
    assert (timed.runs, timed.anytime, timed.notes) == (3000, True, ())
    assert timed.tally == audit(quick, 1.0, **given, stop_early=True).tally


def test_an_audit_goes_on_within_its_pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = CodeTarget.sample
    pieces: list[int] = []

    def counted(target: CodeTarget, records: Any, rng: np.random.Generator) -> Any:
        pieces.append(records.size)
        return sample(target, records, rng)

    def stop(runs: int, planned: int) -> None:
        assert planned == 600  # 300 of each record
        if runs == 500:
            raise KeyboardInterrupt

    monkeypatch.setattr(CodeTarget, "sample", counted)
    given: dict[str, Any] = {"records": [0, 1], "runs": 2000}
    kept = Running(store=tmp_path / "runs")
    with pytest.raises(KeyboardInterrupt):
        audit(quick, 1.0, **given, running=kept, watch_pilot=stop)
    resumed = audit(quick, 1.0, **given, running=kept)
    assert (pieces.count(250), pieces.count(100)) == (2, 1)  # none of them twice
    assert resumed.tally == audit(quick, 1.0, **given).tally


def seldom_text(record: int, rng: np.random.Generator) -> tuple[int, int | str]:
    """Two numbers that tell something together, the second one rarely a word."""
    noisy = record + round(rng.laplace(scale=2.0))
    second = noisy * (1 if rng.random() < 0.5 else -1) + (record if rng.random() < 0.3 else 0)
    return noisy, "failed" if rng.random() < 0.0004 else second


@pytest.mark.slow
@pytest.mark.parametrize("kept", [2, 5])
def test_what_was_looked_at_before_does_not_matter_when_an_audit_goes_on(tmp_path: Path, kept: int) -> None:
    store = tmp_path / "runs"
    given: dict[str, Any] = {"records": [0, 1, 2], "runs": 20_000, "running": Running(store=store)}
    whole = audit(seldom_text, 3.0, **given)
    with sqlite3.connect(store) as file:
        file.execute("DELETE FROM block WHERE number >= ?", (kept,))
    file.close()
    assert audit(seldom_text, 3.0, **given).tally == whole.tally


def test_a_family_may_suspect_records_that_no_pilot_run_was_of() -> None:
    def noisy(record: int, rng: np.random.Generator) -> float:
        return round(record / 2999 + rng.laplace(), 3)

    report = audit(noisy, 1.5, records=range(3000), runs=600, look=Look(family=Laplace(3000, epsilon=1.0)))
    assert report.coverage is not None
    assert report.coverage.smallest is None


def quick(record: int, rng: np.random.Generator) -> int:
    return record if rng.random() < 0.6 else 1 - record


def test_workers_do_not_ask_every_object_what_it_is() -> None:
    """Proxies that other packages hold may warn, or load something."""

    def asked(proxy: Any) -> Any:
        raise RuntimeError("asked")

    proxy = type("Proxy", (), {"__class__": property(asked)})()
    audit(quick, 1.0, records=[0, 1], runs=2000, running=Running(n_jobs=2))
    del proxy


def test_no_time_for_the_pilot_is_said() -> None:
    with pytest.raises(ParameterError, match="before the first run that counts"):
        audit(slow, 1.0, records=[0, 1], running=Running(seconds=0.3))
    with pytest.raises(ParameterError, match="above 0"):
        Running(seconds=0)


def slow(record: int) -> int:
    time.sleep(0.01)
    return record


# --- workers ---


def dies_once(record: int) -> int:
    """Ends its process in one of the first runs that a worker makes, once."""
    mark = Path(os.environ["DPRISK_TEST_MARK"])
    if mark.exists() and mark.read_text() != str(os.getpid()):
        mark.unlink()
        os._exit(1)
    return record if int.from_bytes(os.urandom(4), "little") % 3 else 1 - record


@pytest.mark.slow
def test_workers_that_died_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "mark"
    monkeypatch.setenv("DPRISK_TEST_MARK", str(mark))

    def begin(*_: Any) -> None:
        if not mark.exists() and not begun:
            begun.append(1)
            mark.write_text(str(os.getpid()))

    begun: list[int] = []
    report = audit(dies_once, 1.0, records=[0, 1], runs=20_000, running=Running(n_jobs=2), watch=begin)
    assert "Workers died 1 times" in report.sentence()
    assert report.to_dict()["notes"] == list(report.notes)


# --- curves ---


def test_certificates_at_several_deltas() -> None:
    report = audit(GRR(2, 2.0), 1.0, runs=20_000)
    assert report.epsilon_at(0.0) == report.epsilon_certified
    values = [report.epsilon_at(delta) for delta in (0.0, 1e-4, 1e-2, 0.1)]
    assert values == sorted(values, reverse=True)
    curve = report.curve((0.1, 0.0, 1e-2))
    assert [delta for delta, _ in curve] == [0.0, 1e-2, 0.1]
    assert all(0 < epsilon <= report.epsilon_at(delta) for delta, epsilon in curve)
    with pytest.raises(ParameterError, match="delta"):
        report.epsilon_at(2.0)


@pytest.mark.slow
def test_curves_hold_at_once() -> None:
    """At the boundary of randomised response, whose curve is known, all deltas together err in alpha of all audits."""
    mechanism, alpha, audits = GRR(2, 1.0), 0.1, 300
    deltas = (0.0, 0.01, 0.05, 0.1)
    truth = [mechanism.guarantee().epsilon_at(delta) for delta in deltas]
    wrong = 0
    for seed in range(audits):
        curve = audit(mechanism, ApproxDP(1.0, 0.0), runs=500, alpha=alpha, seed=seed).curve(deltas)
        wrong += any(epsilon > true + 1e-12 for (_, epsilon), true in zip(curve, truth, strict=True))
    assert wrong / audits <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / audits)


def test_the_json_is_complete() -> None:
    told = json.loads(json.dumps(audit(as_target(quick, [0, 1]), 1.0, runs=3000).to_dict()))
    assert told["coverage"]["runs"] == 3000
    assert told["curve"][0]["delta"] == 0.0
    assert told["witnesses"] == told["notes"] == []


# --- the command ---


def command(*words: str) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, "-m", "dprisk", "audit", "tests.test_audit_running:quick", "--records", "0,1"]
    return subprocess.run([*given, "--claim", "1", *words], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_command_ends_in_time() -> None:
    ended = command("--runs", "100000000", "--for", "3s", "--json")
    told = json.loads(ended.stdout)
    assert told["anytime"]
    assert told["notes"] == [f"The time of 3 s was up after {told['runs']:,} of 100,000,000 runs."]
    assert ended.stderr == ""
    assert command("--for", "soon").stderr.count("no time") == 1


@pytest.mark.slow
def test_workers_leave_without_a_word() -> None:
    ended = command("--runs", "20000", "--jobs", "2", "--stop-early")
    assert (ended.returncode, ended.stderr) == (0, "")
