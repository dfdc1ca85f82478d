"""One line on the terminal while something runs: how far it is, what is known by now, how long it will take."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dprisk.letters import visible

Tell = Callable[[int, int, str], None]  # how many are done, how many are planned, and what is known by now
PATIENCE = 1.0  # seconds before the line of a computation appears


@contextmanager
def waiting(doing: str) -> Iterator[Callable[[str], None]]:
    """A function that says what is known by now, on a line that appears after a second and is wiped at the end.

    Where nobody watches, it says nothing.
    """
    if not sys.stderr.isatty():
        yield lambda known: None
        return
    line = Progress(
        *(SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()),
        console=Console(stderr=True, emoji=False),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = line.add_task(doing)
    late = threading.Timer(PATIENCE, line.start)
    late.daemon = True
    late.start()
    try:
        yield lambda known: line.update(task, description=f"{doing}: {visible(known)}")
    finally:
        late.cancel()
        late.join()
        line.stop()


@contextmanager
def live(unit: str = "runs") -> Iterator[Tell | None]:
    """A function that rewrites the line, which is wiped at the end; None where nobody watches.

    `unit` is what is counted.
    """
    if not sys.stderr.isatty():
        yield None
        return
    counts = TextColumn(f"{{task.completed:.0f}} of {{task.total:.0f}} {unit}{{task.description}},", markup=False)
    with Progress(
        *(counts, TimeRemainingColumn(), TextColumn("left")),
        console=Console(stderr=True),
        auto_refresh=False,  # which takes a thread, and audits start processes
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as line:
        task = line.add_task("", visible=False)

        def tell(done: int, planned: int, known: str) -> None:
            known = f", {known}" if known else ""
            line.update(task, completed=done, total=planned, description=known, visible=True, refresh=True)

        yield tell
