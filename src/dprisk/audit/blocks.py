"""Running an audit block by block: the same counts for any number of workers, any executor, any interruption.

Block i draws from a generator seeded by the audit's seed and i alone. Counts of finished blocks may be recorded in a
SQLite file, each in its own transaction, and are read from there when the audit goes on.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.audit.design import Design
from dprisk.audit.statistics import Counts
from dprisk.audit.targets import Target
from dprisk.errors import InputFileError, require

RETRIES = 3  # times that a pool whose workers died is made anew
AHEAD = 2  # blocks in flight for each worker, beyond which none is submitted


@dataclass(frozen=True)
class Plan:
    """What is run: `runs` runs in blocks of `block`, from one seed. Outputs are held for `step` runs at a time."""

    target: Target
    design: Design
    runs: int
    block: int
    seed: int
    step: int

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.runs // self.block)

    def run(self, number: int) -> Counts:
        """One block: draw suspects, call the code, count the answers."""
        count = min(self.block, self.runs - number * self.block)
        rng = generator(self.seed, number)
        truth = rng.integers(self.design.size, size=count)
        answered = correct = 0
        for start in range(0, count, self.step):
            mine = truth[start : start + self.step]
            answers = self.design.answers(self.target.sample(self.design.universe[mine], rng))
            answered += int((answers >= 0).sum())
            correct += int((answers == mine).sum())
        return Counts(count, answered, correct, self.design.size)


def generator(seed: int, number: int) -> np.random.Generator:
    """The generator of a block; number -1 is for the pilot."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number + 1,)))


def counts_in_order(plan: Plan, executor: Executor | None, n_jobs: int, store: Store | None) -> Iterator[Counts]:
    """The counts of the blocks 0, 1, 2, ..., recorded ones from the store, the others as they are run."""
    known = store.blocks(plan.design.size) if store else {}
    missing = [number for number in range(plan.blocks) if number not in known]
    fresh = _run(plan, missing, executor, n_jobs)
    for number in range(plan.blocks):
        if number not in known:
            counts = next(fresh)
            if store:
                store.record(number, counts)
            yield counts
        else:
            yield known[number]


def _run(plan: Plan, numbers: list[int], executor: Executor | None, n_jobs: int) -> Iterator[Counts]:
    if executor is None and n_jobs == 1:
        yield from map(plan.run, numbers)
        return
    done = 0
    for attempt in range(RETRIES + 1):
        own = ProcessPoolExecutor(n_jobs) if executor is None else None
        try:
            for counts in _submitted(plan, numbers[done:], own or executor, n_jobs):  # type: ignore[arg-type]
                yield counts
                done += 1
            return
        except BrokenExecutor:
            if own is None or attempt == RETRIES:
                raise
        finally:
            if own is not None:
                own.shutdown(wait=False, cancel_futures=True)


def _submitted(plan: Plan, numbers: list[int], executor: Executor, n_jobs: int) -> Iterator[Counts]:
    """Results in order, with a few blocks in flight."""
    waiting: deque[Future[Counts]] = deque()
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
    """Counts of finished blocks in a SQLite file, and what they are the counts of."""

    def __init__(self, path: str | Path, identity: dict[str, Any]) -> None:
        self.path = Path(path)
        self._connection = self._open()
        text = json.dumps(identity, sort_keys=True, default=str)
        with closing(self._connection.execute("SELECT value FROM audit WHERE key = 'identity'")) as found:
            row = found.fetchone()
        if row is None:
            with self._connection:
                self._connection.execute("INSERT INTO audit VALUES ('identity', ?)", (text,))
        require(
            row is None or row[0] == text,
            f"{self.path} holds another audit; give another file, or the same settings to go on with that one.",
            InputFileError,
        )

    def _open(self) -> Any:
        import sqlite3

        try:
            connection = sqlite3.connect(self.path)
            with connection:
                connection.execute("CREATE TABLE IF NOT EXISTS audit (key TEXT PRIMARY KEY, value TEXT)")
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS block (number INTEGER PRIMARY KEY, runs INT, answered INT, correct INT)"
                )
        except sqlite3.Error as problem:
            raise InputFileError(f"{self.path} cannot be used to record the audit: {problem}.") from problem
        return connection

    def blocks(self, size: int) -> dict[int, Counts]:
        """The recorded blocks."""
        rows = self._connection.execute("SELECT number, runs, answered, correct FROM block")
        return {number: Counts(runs, answered, correct, size) for number, runs, answered, correct in rows}

    def record(self, number: int, counts: Counts) -> None:
        """Write one block, in a transaction of its own."""
        with self._connection:
            row = (number, counts.runs, counts.answered, counts.correct)
            self._connection.execute("INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


Watch = Callable[[Counts, int], None]  # told of the counts so far, and of the runs planned
