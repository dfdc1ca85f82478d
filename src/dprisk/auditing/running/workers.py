"""Who runs the blocks of an audit, and for how long: this process, others, or any executor.

Results come in order in any case. When the time for a whole audit is up, it ends with what it has by then.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dprisk.auditing.code.outputs import as_bytes
from dprisk.auditing.code.randomness import begin_in_worker, note_generators
from dprisk.auditing.code.timeouts import as_timeout
from dprisk.errors import TargetError, as_number, as_whole, fail, require
from dprisk.types import AnyArray

BY_CHANCE = 1e-6  # how seldom code is refused that has its own noise in each worker
RETRIES = 3  # times in a row that a pool whose workers died is made anew
AHEAD = 2  # blocks in flight for each worker, beyond which none is submitted

Work = Callable[[int], Any]  # runs the block of a number
LONGEST = 366 * 24 * 3600.0  # seconds that an audit may be given
AGAIN = 1.0  # seconds after which code that went on in spite of it is interrupted again


@dataclass(frozen=True)
class Running:
    """How an audit is run. What it certifies does not depend on it.

    `n_jobs` processes share the runs, or those of an `executor` of `concurrent.futures`, such as dask's. Finished
    blocks are recorded in the file `store`, from which the same audit goes on after an interruption. A call of code
    that takes longer than `timeout` seconds ends the audit; a target that has a limit of its own gets this one.

    After `seconds` the audit ends with what it has by then, also while a call hangs that Python can interrupt. How many
    runs that allows is not fixed beforehand, so its certificate is the one that holds at any moment.
    """

    n_jobs: int = 1
    executor: Executor | None = None
    store: str | Path | None = None
    timeout: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_jobs", as_whole("n_jobs", self.n_jobs))
        if not (self.executor is None or hasattr(self.executor, "submit")):
            fail(f"executor must be a concurrent.futures.Executor, got {self.executor!r}")
        if not isinstance(self.store, str | Path | None):
            fail(f"store is the name of a file, as in 'audit.sqlite', not {self.store!r}")
        if self.timeout is not None:
            object.__setattr__(self, "timeout", as_timeout(self.timeout))
        if self.seconds is not None:
            object.__setattr__(self, "seconds", as_number("seconds, the time for the whole audit,", self.seconds))
            require(
                0 < self.seconds <= LONGEST,
                "seconds, the time for the whole audit, must be above 0 and no more than a year (leave it out for no "
                f"limit), got {self.seconds:g}",
            )


class Workers:
    """Who runs blocks: the same workers for the whole audit, and what they give in order.

    Workers of our own that die are replaced, and what they were at is done again; `name` is said where they are lost.
    `deaths` tells how often that was, for code that ends its process may tell something by it.
    """

    def __init__(self, running: Running, name: str) -> None:
        self.running, self.name = running, name
        self.deaths = 0
        self._own: ProcessPoolExecutor | None = None
        self._busy = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._dismiss()

    @property
    def are_here(self) -> bool:
        """Whether this process runs all blocks itself."""
        return self.running.executor is None and self.running.n_jobs == 1

    def run(self, work: Work, numbers: list[int]) -> Iterator[Any]:
        """What the work on each number gives, in order."""
        if self.are_here:
            yield from map(work, numbers)
            return
        given = self.running.executor
        if given is None or isinstance(given, ProcessPoolExecutor):
            _require_sendable(work, self.name)
        done = failures = 0
        while True:
            before, self._busy = done, True
            try:
                for result in _submitted(work, numbers[done:], given or self._pool(), self.running.n_jobs):
                    yield result
                    done += 1
                self._busy = False
                return
            except Exception as problem:
                self._dismiss()
                self.deaths += isinstance(problem, BrokenExecutor)
                failures = failures + 1 if done == before else 1
                lost = _lost(problem, self.name, numbers[done], failures)
                if lost is None:
                    raise
                if given is not None or failures > RETRIES or not isinstance(problem, BrokenExecutor):
                    raise TargetError(lost) from problem

    def require_own_noise(self, probe: Work) -> None:
        """Refuse code that gives the same more often in two workers than twice in one process.

        The probe is one block; code that keeps its random numbers where they can be neither seeded nor found starts
        from the same ones in each new process. It may have others besides, which differ.
        """
        here = _alike(probe(0), probe(0))
        if self.running.executor is None:
            found = [self._fresh(probe) for _ in range(2)]
        else:
            found = [future.result() for future in [self.running.executor.submit(probe, 0) for _ in range(2)]]
        require(
            _by_chance(sum(_alike(*found)), sum(here), len(here)) > BY_CHANCE,
            f"{self.name} draws the same noise in every worker: it holds random numbers that cannot be seeded, or "
            "counts calls, and each process begins with the same. Give it a parameter rng, or run it with n_jobs=1.",
            TargetError,
        )

    def _fresh(self, probe: Work) -> Any:
        _require_sendable(probe, self.name)
        note_generators()
        try:
            with ProcessPoolExecutor(1, initializer=_begin) as pool:
                return pool.submit(probe, 0).result()
        finally:
            note_generators(before_a_fork=False)

    def _pool(self) -> ProcessPoolExecutor:
        if self._own is None:
            note_generators()
            self._own = ProcessPoolExecutor(self.running.n_jobs, initializer=_begin)
        return self._own

    def _dismiss(self) -> None:
        """Send our own workers home, and wait until they are gone; those that are still at work are ended."""
        if self._own is None:
            return
        if self._busy:
            for process in list((self._own._processes or {}).values()):
                process.kill()  # they may have been forked with a handler of their parent for anything milder
        self._own.shutdown(wait=True, cancel_futures=True)
        self._own = None
        note_generators(before_a_fork=False)


def _alike(one: AnyArray, two: AnyArray) -> list[bool]:
    """Which outputs are the same in both, run by run."""
    return [as_bytes(left) == as_bytes(right) for left, right in zip(one.tolist(), two.tolist(), strict=True)]


def _by_chance(times: int, others: int, runs: int) -> float:
    """How likely so many of the runs or more are alike where `others` were before, if nothing changed (Fisher)."""
    both = times + others
    ways = (math.comb(runs, some) * math.comb(runs, both - some) for some in range(times, min(runs, both) + 1))
    return sum(ways) / math.comb(2 * runs, both)


def _lost(problem: Exception, name: str, block: int, failures: int) -> str | None:
    """A sentence if the workers are gone, None if something else is wrong.

    dask has replaced a worker several times before it says so. Its errors are told by their names, so that it need not
    be imported here; it cancels all blocks when the scheduler is gone, as a pool does that somebody shuts down.
    """
    killed = type(problem).__name__ == "KilledWorker"
    if killed or isinstance(problem, BrokenExecutor):
        died = "Workers died one after the other" if killed else f"A worker died {failures} times in a row"
        why = f"{name} ends its process, or there is too little memory for so many workers."
        return f"{died} at block {block} or soon after it: {why}"
    if isinstance(problem, CancelledError) or type(problem).__module__.partition(".")[0] == "distributed":
        return (
            f"The workers were lost at block {block}: the scheduler of the cluster is gone, or somebody shut the "
            "executor down. Run the audit again when it is back; with a store it goes on where it stopped."
        )
    return None


def _begin() -> None:
    """Make a worker end at once and without a word on Ctrl-C, and when the audit itself was killed."""
    begin_in_worker()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_leave_after_parent, daemon=True).start()


def _leave_after_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _require_sendable(work: Work, name: str) -> None:
    try:
        pickle.dumps(work)
    except Exception as problem:
        raise TargetError(
            f"{name} cannot be sent to other processes ({problem}). Put the code at the top level of a "
            'module and name it as "package.module:function", or run it with n_jobs=1.'
        ) from problem


def _submitted(work: Work, numbers: list[int], executor: Executor, n_jobs: int) -> Iterator[Any]:
    """Results in order, with a few blocks in flight."""
    waiting: deque[Future[Any]] = deque()
    rest = iter(numbers)
    try:
        waiting.extend(executor.submit(work, number) for number in islice(rest, AHEAD * max(n_jobs, 2)))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(executor.submit(work, number) for number in islice(rest, 1))
    finally:
        for future in waiting:
            future.cancel()


class Budget:
    """How much time there is: `is_over` once it was used up. Without a number of seconds it never is."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._end is not None and time.monotonic() >= self._end

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Raise KeyboardInterrupt in here when the time is up, as Ctrl-C does.

        That takes the main thread of the process, and sets aside whatever else handles Ctrl-C there; in another thread
        only `is_over` tells.
        """
        if self._end is None or threading.current_thread() is not threading.main_thread():
            yield
            return
        done = threading.Event()
        watch = threading.Thread(target=self._interrupt, args=(done,), daemon=True)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            watch.start()
            yield
        finally:
            done.set()
            watch.join()
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, done: threading.Event) -> None:
        while not done.wait(max(0.0, (self._end or 0.0) - time.monotonic())):
            os.kill(os.getpid(), signal.SIGINT)
            if done.wait(AGAIN):
                return
