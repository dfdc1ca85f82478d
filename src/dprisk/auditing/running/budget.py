"""A time for a whole audit, after which it ends with what it has by then."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

AGAIN = 1.0  # seconds after which code that went on in spite of it is interrupted again


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
