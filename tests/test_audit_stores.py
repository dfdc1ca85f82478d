"""Audits that are killed or interrupted go on from their store, and a store of anything else is refused."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dprisk.auditing import AuditInterrupted, Running, audit
from dprisk.auditing.certify.counts import Counts
from dprisk.errors import InputFileError
from dprisk.mechanisms import GRR
from tests.audited import Rng, laplace, same

SLOW = """
import multiprocessing
import os
import time

def privatise(record, rng):
    if "SLOW" in os.environ and multiprocessing.parent_process() is not None:
        time.sleep(1e-3)
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

    def start(store: str, **settings: str) -> subprocess.Popen[str]:
        given: dict[str, Any] = {"cwd": tmp_path, "env": os.environ | settings, "preexec_fn": hears}
        return subprocess.Popen([*command, store], stdout=subprocess.PIPE, text=True, **given)

    def hears() -> None:
        """Heed Ctrl-C, which what runs in the background ignores, and its children with it."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def finish(store: str) -> dict[str, Any]:
        told, _ = start(store).communicate(timeout=60)
        return {key: value for key, value in json.loads(told).items() if key != "seconds"}

    expected = finish("undisturbed.db")
    assert expected["verdict"] == "consistent with the claim"
    assert expected["runs"] == 6000
    for number, name in ((signal.SIGKILL, "killed.db"), (signal.SIGINT, "interrupted.db")):
        disturbed = start(name, SLOW="1")  # a second a block: time to disturb it
        until = time.monotonic() + 30
        while blocks_in(tmp_path / name) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        disturbed.send_signal(number)
        told, _ = disturbed.communicate(timeout=30)  # which ends when the workers have
        assert 2 <= blocks_in(tmp_path / name) < 6  # which are all
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
