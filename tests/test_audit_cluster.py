"""Audits on a dask cluster whose workers die, whose scheduler goes away, or that is not there."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest

from dprisk import audit
from dprisk.auditing import AuditReport, Running
from dprisk.auditing.certify.counts import Counts
from dprisk.errors import TargetError

pytestmark = pytest.mark.filterwarnings("default")  # of dask and tornado


def slow(record: int, rng: np.random.Generator) -> float:
    time.sleep(1e-4)
    return record + rng.laplace()


def ends_its_worker(record: int) -> int:
    if in_worker():
        os._exit(1)
    return record


def in_worker() -> bool:
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


@pytest.fixture(scope="module")
def two_processes() -> Iterator[distributed.Client]:
    """A cluster that replaces its workers when they die."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def told(report: AuditReport) -> str:
    return json.dumps(report.to_dict() | {"seconds": 0})


@pytest.mark.slow
def test_a_killed_worker_leaves_no_trace_in_the_report(two_processes: distributed.Client) -> None:
    given: dict[str, Any] = {"claim": 1.0, "records": [0, 1], "runs": 8000, "seed": 2}
    processes, killed = two_processes.run(os.getpid), set[int]()

    def kill(_: Counts, __: int) -> None:
        """Ends a worker that has blocks to run, once."""
        busy = [processes[address] for address, blocks in two_processes.processing().items() if blocks and not killed]
        for victim in busy[:1]:
            os.kill(victim, signal.SIGKILL)
            killed.add(victim)

    disturbed = audit(slow, **given, watch=kill, running=Running(executor=two_processes.get_executor()))
    assert killed
    assert told(disturbed) == told(audit(slow, **given))


@pytest.mark.slow
def test_code_that_ends_every_worker_ends_the_audit_in_one_sentence(two_processes: distributed.Client) -> None:
    running = Running(executor=two_processes.get_executor())
    with pytest.raises(TargetError, match="Workers died one after the other at block 0"):
        audit(ends_its_worker, 1.0, records=[0, 1], runs=2000, running=running)


CODE = """
import time

def privatise(record, rng):
    time.sleep(3e-4)
    return record + rng.laplace()
"""


@contextmanager
def programs(folder: Path, port: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A scheduler and a worker, each a program of its own."""
    address = f"tcp://127.0.0.1:{port}"
    calls = [
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        ["distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard", "--nthreads", "1"],
    ]
    started = [
        subprocess.Popen([sys.executable, "-m", *call], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        for call in calls
    ]
    try:
        yield started
    finally:
        for program in started:
            program.kill()
            program.wait()


def has_blocks(store: Path) -> bool:
    if not store.exists():
        return False
    with closing(sqlite3.connect(store)) as file:
        tables = file.execute("SELECT count(*) FROM sqlite_master WHERE name = 'block'").fetchone()[0]
        return bool(tables) and file.execute("SELECT count(*) FROM block").fetchone()[0] > 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(
    folder: Path, address: str, *more: str, program: tuple[str, ...] = ("-m", "dprisk")
) -> subprocess.Popen[str]:
    (folder / "noisy.py").write_text(CODE)
    call = [sys.executable, *program, "audit", "noisy:privatise", "--claim", "1", "--records", "0,1"]
    call += ["--runs", "100000", "--cluster", address, *more]
    return subprocess.Popen(call, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_cluster_that_goes_away_gets_one_sentence(tmp_path: Path) -> None:
    port, store = free_port(), tmp_path / "audit.db"
    with programs(tmp_path, port) as (scheduler, _):
        running = command(tmp_path, f"tcp://127.0.0.1:{port}", "--store", str(store))
        until = time.monotonic() + 60
        while not has_blocks(store) and running.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        scheduler.kill()
        out, error = running.communicate(timeout=60)
    assert (running.returncode, out) == (2, ""), error
    assert error.startswith("Error: The workers were lost at block ")
    assert len(error.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{port}", "nonsense", "http://127.0.0.1:{port}"])
def test_a_cluster_that_is_not_there_gets_one_sentence(tmp_path: Path, address: str) -> None:
    """It is waited for a second, not five: nobody comes."""
    address = address.format(port=free_port())
    hasty = "from dprisk.cli import audit, main; audit.PATIENCE = '1s'; main()"
    running = command(tmp_path, address, program=("-c", hasty))
    out, error = running.communicate(timeout=60)
    assert (running.returncode, out) == (2, ""), error
    assert error.startswith(f"Error: No dask cluster answers at {address!r}")
    assert len(error.splitlines()) == 1
