"""One line on the terminal while something runs: how far it is, what is known by now, how long it will take."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeRemainingColumn

Tell = Callable[[int, int, str], None]  # how many are done, how many are planned, and what is known by now


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
