"""A headless Chromium, driven by the DevTools protocol over two pipes: nothing but the standard library.

The browser reads commands from its file 3 and writes answers and events to its file 4, each a JSON text that ends with
a zero byte. Names of hosts are not resolved, so that a page which needs the network shows what it looks like without.
"""

import fcntl
import json
import os
import select
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = (
    "--headless",
    "--no-sandbox",  # as root, in a container; the only pages opened are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0  # seconds for one answer, on a busy machine


def above_nine(end: int) -> int:
    """The same open file under a number that does not collide with 3 and 4."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return moved


@dataclass
class Page:
    """One tab, and what the browser told of it."""

    commands: int
    answers: int
    session: str | None = None
    loader: str | None = None
    kept: str | None = None
    seen: list[dict[str, Any]] = field(default_factory=list)
    buffer: bytes = b""
    sent: int = 0

    def read(self, deadline: float) -> dict[str, Any]:
        """The next answer or event."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, deadline - monotonic()))
            found = os.read(self.answers, 1 << 20) if ready else b""
            if not found:
                raise TimeoutError("Chromium does not answer")
            self.buffer += found
        text, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(text))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come before it are kept."""
        self.sent += 1
        command = {"id": self.sent, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        deadline = monotonic() + PATIENCE
        while (message := self.read(deadline)).get("id") != self.sent:
            self.seen.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return dict(message["result"])

    def open(self, address: str, width: int, height: int = 900) -> None:
        """Show a page in a window of this size, and wait until it has loaded."""
        self.resize(width, height)
        self.seen.clear()
        self.kept = None
        self.loader = self.call("Page.navigate", url=address)["loaderId"]
        deadline = monotonic() + PATIENCE
        while not any(event["name"] == "load" for event in self.events("Page.lifecycleEvent")):
            self.seen.append(self.read(deadline))

    def resize(self, width: int, height: int = 900) -> None:
        """Make the window this large; the page is laid out anew before anything else is asked of it."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def keep(self, address: str, width: int) -> None:
        """Show a page that nobody changes: the one that is shown, if it is that, in a window of another width."""
        if self.kept == address:
            self.resize(width)
        else:
            self.open(address, width)
            self.kept = address

    def events(self, method: str) -> list[dict[str, Any]]:
        """What the browser told of one kind since the page was opened, leaving out the page before it."""
        told = (message["params"] for message in self.seen if message.get("method") == method)
        return [event for event in told if event.get("loaderId", self.loader) == self.loader]

    def ask(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        return [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """What the page wrote to the console as an error or a warning, and errors that nobody caught."""
        thrown = [event["exceptionDetails"] for event in self.events("Runtime.exceptionThrown")]
        called = [event for event in self.events("Runtime.consoleAPICalled") if event["type"] in ("error", "warning")]
        logged = [event["entry"] for event in self.events("Log.entryAdded")]
        return [str(told) for told in (*thrown, *called, *(e for e in logged if e["level"] in ("error", "warning")))]


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """A browser with one tab, its profile in a folder that is thrown away; ended with the block."""
    assert PROGRAM is not None
    (read_commands, commands), (answers, write_answers) = os.pipe(), os.pipe()
    theirs = above_nine(read_commands), above_nine(write_answers)
    actions = [
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, theirs[0], 3),
        (os.POSIX_SPAWN_DUP2, theirs[1], 4),
    ]
    arguments = [PROGRAM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    process = os.posix_spawn(PROGRAM, arguments, os.environ, file_actions=actions, setpgroup=0)
    for end in theirs:
        os.close(end)
    try:
        page = Page(commands, answers)
        target = page.call("Target.createTarget", url="about:blank")["targetId"]
        page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Page.setLifecycleEventsEnabled", enabled=True)
        yield page
    finally:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(commands)
        os.close(answers)
