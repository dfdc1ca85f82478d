"""The file from which an interrupted audit goes on: tallies of finished blocks, and what they are the tallies of."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.code.references import Reference
from dprisk.auditing.evidence.choosing import Setup
from dprisk.auditing.evidence.experiment import Tally
from dprisk.errors import DpriskError, InputFileError, fail


def identity(setup: Setup, terms: Terms, block: int) -> dict[str, Any]:
    """What must be the same to go on from recorded blocks.

    Runs and alpha too: the design depends on them, and who adds runs after a look at the outcome needs `stop_early`.
    """
    target = setup.target
    code, post = (getattr(target, part, None) for part in ("code", "post"))
    sources = [_source(part) for part in (code, getattr(code, "function", None), post)]
    given = (target.records, getattr(target, "parameters", None), setup.design.key())
    long = repr((sources, given))
    return {
        "target": target.describe(),
        "code, records and suspects": hashlib.sha256(long.encode()).hexdigest(),
        "design": setup.design.to_dict(),
        "runs": terms.runs,
        "alpha": terms.alpha,
        "stop early": terms.stop_early,
        "block": block,
        "seed": terms.seed,
    }


def _source(code: Any) -> str:
    """The text of a function, as far as it is written in a file; otherwise its name."""
    try:
        return inspect.getsource(code.load() if isinstance(code, Reference) else code)
    except (OSError, TypeError):
        return str(getattr(code, "__qualname__", type(code).__qualname__))


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
            if held != text:
                fail(
                    f"{self.path} holds another audit; give another file, or the same code and settings.",
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

    def blocks(self, read: Callable[[dict[str, Any]], Any]) -> dict[int, Any]:
        """The tallies of the recorded blocks, by their numbers; `read` reads what `to_dict` of a tally wrote."""
        with self._file() as file:
            rows = file.execute("SELECT number, tally FROM block").fetchall()
        try:
            return {number: read(json.loads(text)) for number, text in rows}
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
