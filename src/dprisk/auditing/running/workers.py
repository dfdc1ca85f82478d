"""Who runs the blocks of an audit: this process, others, or any executor. Results come in order in any case."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dprisk.auditing.code.timeouts import as_timeout
from dprisk.errors import TargetError, as_whole, fail

RETRIES = 3  # times in a row that a pool whose workers died is made anew
AHEAD = 2  # blocks in flight for each worker, beyond which none is submitted

Work = Callable[[int], Any]  # runs the block of a number


@dataclass(frozen=True)
class Running:
    """How an audit is run. What it certifies does not depend on it.

    `n_jobs` processes share the runs, or those of an `executor` of `concurrent.futures`, such as dask's. Finished
    blocks are recorded in the file `store`, from which the same audit goes on after an interruption. A call of code
    that takes longer than `timeout` seconds ends the audit; a target that has a limit of its own gets this one.
    """

    n_jobs: int = 1
    executor: Executor | None = None
    store: str | Path | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_jobs", as_whole("n_jobs", self.n_jobs))
        if not (self.executor is None or hasattr(self.executor, "submit")):
            fail(f"executor must be a concurrent.futures.Executor, got {self.executor!r}")
        if not isinstance(self.store, str | Path | None):
            fail(f"store is the name of a file, as in 'audit.sqlite', not {self.store!r}")
        if self.timeout is not None:
            object.__setattr__(self, "timeout", as_timeout(self.timeout))


def run_by_workers(work: Work, numbers: list[int], running: Running, name: str) -> Iterator[Any]:
    """What the work on each number gives, in order; `name` is said where the workers are lost.

    Workers of our own that die are replaced, and what they were at is done again.
    """
    given = running.executor
    if given is None or isinstance(given, ProcessPoolExecutor):
        _require_sendable(work, name)
    done = failures = 0
    while True:
        pool = ProcessPoolExecutor(running.n_jobs, initializer=_leave_in_time) if given is None else given
        before = done
        try:
            for result in _submitted(work, numbers[done:], pool, running.n_jobs):
                yield result
                done += 1
            return
        except Exception as problem:
            failures = failures + 1 if done == before else 1
            lost = _lost(problem, name, numbers[done], failures)
            if lost is None:
                raise
            if given is not None or failures > RETRIES or not isinstance(problem, BrokenExecutor):
                raise TargetError(lost) from problem
        finally:
            if given is None:
                pool.shutdown(wait=False, cancel_futures=True)


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


def _leave_in_time() -> None:
    """Make a worker end at once and without a word on Ctrl-C, and when the audit itself was killed."""
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
