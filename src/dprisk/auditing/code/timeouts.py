"""A time limit on each call of audited code, kept by a timer of the process."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from dprisk.errors import ParameterError, as_number, fail, require

_TICKS = 4  # looks per time limit
SHORTEST, LONGEST = 0.01, 1e8  # seconds: below, looking takes longer than the code; above, there is no such timer
NO_TIMER = (
    "A time limit is kept by a timer, which only the main thread of a process on Linux or macOS has; leave out "
    "timeout, or run in processes rather than threads."
)


class NoTimerError(ParameterError):
    """There is no timer here; no fault of the audited code."""


def as_timeout(timeout: Any) -> float:
    """Seconds that a call may take, as a timer can keep them."""
    limit = as_number("timeout", timeout)
    if not SHORTEST <= limit <= LONGEST:
        fail(f"timeout must be a positive number of seconds, from {SHORTEST:g} to {LONGEST:g}, got {timeout}")
    require(hasattr(signal, "setitimer"), NO_TIMER)
    return limit


@contextlib.contextmanager
def stopwatch(timeout: float, outputs: list[Any]) -> Iterator[None]:
    """Raise `OutOfTimeError` when the list of outputs has not grown for that long."""
    here = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    require(here, NO_TIMER, NoTimerError)
    waited, before, over = 0, -1, False

    def look(_signal: int, _frame: FrameType | None) -> None:
        nonlocal waited, before
        waited, before = (waited + 1 if len(outputs) == before else 0), len(outputs)
        if waited >= _TICKS and not over:
            waited = 0  # time for the code to clear up
            raise OutOfTimeError

    handler = signal.signal(signal.SIGALRM, look)
    running = signal.setitimer(signal.ITIMER_REAL, timeout / _TICKS, timeout / _TICKS)
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, *running)
        signal.signal(signal.SIGALRM, handler)


class OutOfTimeError(BaseException):
    """The time limit is up. No `Exception`, so that audited code does not catch it."""
