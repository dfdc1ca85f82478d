"""Running an audit block by block: the same tally for any number of workers, any executor, any interruption.

Block i draws from a generator seeded by the audit's seed and i alone. Tallies of finished blocks may be recorded in a
SQLite file, each in its own transaction, and are read from there when the audit goes on.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.auditing.certify.experiment import Experiment, Tally
from dprisk.auditing.code.randomness import set_aside
from dprisk.auditing.code.targets import Target
from dprisk.errors import DpriskError, InputFileError, TargetError, require

RETRIES = 3  # times in a row that a pool whose workers died is made anew
AHEAD = 2  # blocks in flight for each worker, beyond which none is submitted


@dataclass(frozen=True)
class Plan:
    """What is run: `runs` runs in blocks of `block`, from one seed. Outputs are held for `step` runs at a time."""

    target: Target
    design: Experiment[Any]
    runs: int
    block: int
    seed: int
    step: int

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.runs // self.block)

    def run(self, number: int) -> Any:
        """One block: draw targets, call the code, tally what it gave."""
        count = min(self.block, self.runs - number * self.block)
        rng = generator(self.seed, number)
        drawn = self.design.draw(count, rng)
        total = self.design.nothing
        with closing(self.target.stream(self.design.universe[drawn], self.step, rng)) as parts:
            for start, outputs in zip(range(0, count, self.step), parts, strict=False):
                with set_aside() if self.design.may_draw else nullcontext():
                    total = total + self.design.tally(outputs, drawn[start : start + self.step])
        return total


def generator(seed: int, number: int) -> np.random.Generator:
    """The generator of a block; number -1 is for the pilot."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number + 1,)))


def tallies_in_order(plan: Plan, executor: Executor | None, n_jobs: int, store: Store | None) -> Iterator[Any]:
    """The tallies of the blocks 0, 1, 2, ..., recorded ones from the store, the others as they are run."""
    known = store.blocks(plan.design) if store else {}
    if store and plan.target.reproducible and known:
        first = min(known)
        again = plan.run(first)
        require(
            again == known[first] or again.runs != known[first].runs,
            f"{store.path} holds runs of an earlier version of the code, or the code draws random numbers that cannot "
            f"be seeded: block {first} comes out differently now. Start anew with another file.",
            InputFileError,
        )
    missing = [number for number in range(plan.blocks) if number not in known]
    fresh = _run(plan, missing, executor, n_jobs)
    for number in range(plan.blocks):
        if number not in known:
            tally = next(fresh)
            if store:
                store.record(number, tally)
            yield tally
        else:
            yield known[number]


def _run(plan: Plan, numbers: list[int], executor: Executor | None, n_jobs: int) -> Iterator[Any]:
    if executor is None and n_jobs == 1:
        yield from map(plan.run, numbers)
        return
    if executor is None or isinstance(executor, ProcessPoolExecutor):
        _require_sendable(plan)
    done = failures = 0
    while True:
        pool = ProcessPoolExecutor(n_jobs, initializer=_leave_in_time) if executor is None else executor
        before = done
        try:
            for tally in _submitted(plan, numbers[done:], pool, n_jobs):
                yield tally
                done += 1
            return
        except BrokenExecutor as problem:
            failures = failures + 1 if done == before else 1
            if executor is not None or failures > RETRIES:
                died = f"A worker died {failures} times in a row"
                raise TargetError(_died(died, plan, numbers[done])) from problem
        except Exception as problem:
            lost = _lost(problem, plan, numbers[done])
            if lost is None:
                raise
            raise TargetError(lost) from problem
        finally:
            if executor is None:
                pool.shutdown(wait=False, cancel_futures=True)


def _died(what: str, plan: Plan, block: int) -> str:
    return (
        f"{what} at block {block} or soon after it: {plan.target.name} ends its process, or there is too little memory "
        "for so many workers."
    )


def _lost(problem: Exception, plan: Plan, block: int) -> str | None:
    """A sentence if the workers are gone, None if something else is wrong.

    dask has replaced a worker several times before it says so. Its errors are told by their names, so that it need not
    be imported here; it cancels all blocks when the scheduler is gone, as a pool does that somebody shuts down.
    """
    if type(problem).__name__ == "KilledWorker":
        return _died("Workers died one after the other", plan, block)
    if isinstance(problem, CancelledError) or type(problem).__module__.partition(".")[0] == "distributed":
        return (
            f"The workers were lost at block {block}: the scheduler of the cluster is gone, or somebody shut the "
            "executor down. Run the audit again when it is back; with a store it goes on where it stopped."
        )
    return None


def _leave_in_time() -> None:
    """Make a worker end at once and without a word on Ctrl-C, and when the audit itself was killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_leave_after_parent, daemon=True).start()


def _leave_after_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _require_sendable(plan: Plan) -> None:
    try:
        pickle.dumps(plan)
    except Exception as problem:
        raise TargetError(
            f"{plan.target.name} cannot be sent to other processes ({problem}). Put the code at the top level of a "
            'module and name it as "package.module:function", or run it with n_jobs=1.'
        ) from problem


def _submitted(plan: Plan, numbers: list[int], executor: Executor, n_jobs: int) -> Iterator[Any]:
    """Results in order, with a few blocks in flight."""
    waiting: deque[Future[Any]] = deque()
    rest = iter(numbers)
    try:
        while True:
            while len(waiting) < AHEAD * max(n_jobs, 2):
                number = next(rest, None)
                if number is None:
                    break
                waiting.append(executor.submit(plan.run, number))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


class Store:
    """Tallies of finished blocks in a SQLite file, and what they are the tallies of."""

    def __init__(self, path: str | Path, identity: dict[str, Any]) -> None:
        self.path = Path(path)
        self._connection: Any = None
        text = json.dumps(identity, sort_keys=True, default=str)
        try:
            with self._file() as file:
                file.execute("CREATE TABLE IF NOT EXISTS audit (key TEXT PRIMARY KEY, value TEXT)")
                file.execute("CREATE TABLE IF NOT EXISTS block (number INTEGER PRIMARY KEY, tally TEXT)")
                file.execute("INSERT OR IGNORE INTO audit VALUES ('identity', ?)", (text,))
                (held,) = file.execute("SELECT value FROM audit WHERE key = 'identity'").fetchone()
            require(
                held == text,
                f"{self.path} holds another audit; give another file, or the same code and settings to go on with that "
                "one.",
                InputFileError,
            )
        except DpriskError:
            self.close()
            raise

    @contextmanager
    def _file(self) -> Iterator[Any]:
        """The open file, one transaction."""
        import sqlite3

        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self.path)
            with self._connection:
                yield self._connection
        except sqlite3.Error as problem:
            raise InputFileError(f"{self.path} cannot be used to record the audit: {problem}.") from problem

    def blocks(self, design: Experiment[Any]) -> dict[int, Any]:
        """The recorded blocks."""
        with self._file() as file:
            rows = file.execute("SELECT number, tally FROM block").fetchall()
        try:
            return {number: design.read(json.loads(text)) for number, text in rows}
        except (KeyError, TypeError, ValueError) as problem:
            raise InputFileError(f"{self.path} holds something else than an audit: {problem}.") from problem

    def record(self, number: int, tally: Tally) -> None:
        """Write one block, in a transaction of its own."""
        with self._file() as file:
            file.execute("INSERT OR REPLACE INTO block VALUES (?, ?)", (number, json.dumps(tally.to_dict())))

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()


Watch = Callable[[Any, int], None]  # told of the tally so far, and of the runs planned
