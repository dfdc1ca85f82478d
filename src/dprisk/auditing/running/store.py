"""The file from which an interrupted audit goes on: finished blocks, and what they are blocks of.

Of blocks that are learned from the outputs are kept as well, and those of the pilot. So an audit
goes on from what it knew, also of code that cannot be seeded.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.auditing.code.failures import Failure
from dprisk.auditing.evidence.rules import Past
from dprisk.auditing.evidence.views import Seen
from dprisk.errors import DpriskError, InputFileError, fail
from dprisk.types import AnyArray, IntArray

PLAIN = {
    ("builtins", "frozenset"),
    ("builtins", "complex"),
    ("numpy", "scalar"),
    ("numpy", "dtype"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("datetime", "date"),
    ("datetime", "datetime"),
    ("datetime", "timedelta"),
}


FIRST_PIECE = -1  # the number of the first piece of the pilot, before the blocks that count; the next has -2


@dataclass(frozen=True)
class Block:
    """A finished block: its tally, and what it gave if that is learned from."""

    tally: Any
    past: Past | None = None


class Store:
    """Tallies of finished blocks in a SQLite file, and what they are the tallies of."""

    def __init__(self, path: str | Path, identity: dict[str, Any]) -> None:
        self.path = Path(path)
        self._connection: Any = None
        text = json.dumps(identity, sort_keys=True, default=str)
        try:
            with self._file() as file:
                file.execute("CREATE TABLE IF NOT EXISTS audit (key TEXT PRIMARY KEY, value TEXT)")
                columns = "number INTEGER PRIMARY KEY, tally TEXT, records BLOB, outputs BLOB"
                file.execute(f"CREATE TABLE IF NOT EXISTS block ({columns})")
                file.execute("INSERT OR IGNORE INTO audit VALUES ('identity', ?)", (text,))
                (held,) = file.execute("SELECT value FROM audit WHERE key = 'identity'").fetchone()
            if held != text:
                fail(
                    f"{self.path} holds another audit, or one of another version of dprisk"
                    f"{_difference(held, json.loads(text))}; give another file, or the same code and settings.",
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

    def blocks(self, numbers: range, read: Callable[[dict[str, Any]], Any]) -> dict[int, Block]:
        """The recorded ones of some blocks, by their numbers; `read` reads what `to_dict` of a tally wrote."""
        with self._file() as file:
            asked = "SELECT number, tally, records, outputs FROM block WHERE number >= ? AND number < ?"
            rows = file.execute(asked, (numbers.start, numbers.stop)).fetchall()
        try:
            return {number: Block(read(json.loads(text)), _unpacked(*more)) for number, text, *more in rows}
        except (EOFError, KeyError, TypeError, ValueError, pickle.UnpicklingError) as problem:
            raise InputFileError(f"{self.path} holds something else than an audit: {problem}.") from problem

    def pilot(self, number: int, records: IntArray, run: Callable[[], AnyArray]) -> AnyArray:
        """The outputs of a piece of the pilot for these records: as recorded, or run now and recorded."""
        place = FIRST_PIECE - number
        known = self.blocks(range(place, place + 1), lambda told: None)
        if place not in known:
            outputs = run()
            self._write(place, {}, Past(Seen(outputs), records))
            return outputs
        past = known[place].past
        if past is None or not np.array_equal(past.records, records):
            fail(f"{self.path} holds another pilot: the file was changed, or is damaged.", InputFileError)
        return past.seen.outputs

    def record(self, number: int, block: Block) -> None:
        """Write one block, in a transaction of its own."""
        self._write(number, block.tally.to_dict(), block.past)

    def _write(self, number: int, tally: dict[str, Any], past: Past | None) -> None:
        packed = (None, None) if past is None else (_packed(past.records), _packed(past.seen.outputs))
        with self._file() as file:
            file.execute("INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?)", (number, json.dumps(tally), *packed))

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()


def _difference(held: str, given: dict[str, Any]) -> str:
    """What differs from the audit in a file, as far as both say it in a few words."""
    before = json.loads(held)
    told = [
        f"{name} {before.get(name)} there and {value} here"
        if isinstance(value, bool | int | float)
        else f"another {name}"
        for name, value in given.items()
        if before.get(name) != value
    ]
    return f" ({', '.join(told)})" if told else ""


def _packed(array: AnyArray) -> bytes:
    if array.dtype.kind == "O":
        return pickle.dumps(array.tolist())
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _unpacked(records: bytes | None, outputs: bytes | None) -> Past | None:
    if records is None or outputs is None:
        return None
    return Past(Seen(_array(outputs)), _array(records))


def _array(packed: bytes) -> AnyArray:
    if packed.startswith(b"\x93NUMPY"):
        found: AnyArray = np.load(io.BytesIO(packed), allow_pickle=False)
        return found
    values = _Values(io.BytesIO(packed)).load()
    return np.fromiter(values, dtype=object, count=len(values))


class _Values(pickle.Unpickler):
    """Reads plain values only: a file from somebody else must not run anything."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (Failure.__module__, Failure.__name__):
            return Failure
        if (module.partition(".")[0], name) in PLAIN:
            return super().find_class(module, name)
        return fail(f"outputs of the type {module}.{name} are not read from a file", InputFileError)
