"""The file from which an interrupted audit goes on: finished blocks, and what they are blocks of.

Of blocks that are learned from the outputs are kept as well, and the pilot is the block before the first. So an audit goes
on from what it knew, also of code that cannot be seeded.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import io
import json
import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.code.references import Reference
from dprisk.auditing.code.target import Target
from dprisk.auditing.evidence.attackers import Past
from dprisk.auditing.evidence.views import Seen
from dprisk.errors import DpriskError, InputFileError, fail
from dprisk.types import AnyArray

PLAIN = {
    ("builtins", "frozenset"),
    ("builtins", "complex"),
    ("numpy", "scalar"),
    ("numpy", "dtype"),
    ("decimal", "Decimal"),
}


PILOT = -1  # the number of the block that is learned from before the first run that counts


@dataclass(frozen=True)
class Block:
    """A finished block: its tally, and what it gave if that is learned from."""

    tally: Any
    past: Past | None = None


def identity(target: Target, terms: Terms, look: Any) -> dict[str, Any]:
    """What must be the same to go on from recorded blocks.

    Runs and alpha too: the design depends on them, and who adds runs after a look at the outcome needs `stop_early`.
    """
    code, post = (getattr(target, part, None) for part in ("code", "post"))
    sources = [_source(part) for part in (code, getattr(code, "function", None), post)]
    held = [_state(part) for part in (code, post)]
    long = repr((sources, held, target.records, _state(getattr(target, "parameters", None)), look))
    return {
        "target": target.describe(),
        "code, records and suspects": hashlib.sha256(long.encode()).hexdigest(),
        "claim": [terms.claim.epsilon, terms.claim.delta, terms.claim.relation],
        "runs": terms.runs,
        "alpha": terms.alpha,
        "stop early": terms.stop_early,
        "seed": terms.seed,
    }


def _source(code: Any) -> str:
    """The text of a function, as far as it is written in a file; otherwise its name."""
    try:
        return inspect.getsource(code.load() if isinstance(code, Reference) else code)
    except (OSError, TypeError):
        return str(getattr(code, "__qualname__", type(code).__qualname__))


def _state(value: Any, depth: int = 4) -> Any:
    """What code goes by besides its text: arguments that are bound, closures, the attributes of objects."""
    if depth == 0 or value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value if depth else type(value).__qualname__
    inner = partial(_state, depth=depth - 1)
    if isinstance(value, Mapping):
        return [(str(key), inner(entry)) for key, entry in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [inner(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest(), value.shape, str(value.dtype)
    if isinstance(value, np.random.Generator | np.random.RandomState | random.Random | ModuleType | type):
        return type(value).__qualname__
    if isinstance(value, functools.partial):
        return inner(value.func), inner(value.args), inner(value.keywords)
    if isinstance(value, MethodType):
        return inner(value.__func__), inner(value.__self__)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)]
        return _source(value), inner(cells), inner(value.__defaults__), inner(value.__kwdefaults__)
    return type(value).__qualname__, inner(getattr(value, "__dict__", repr(value)))


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


class Store:
    """Tallies of finished blocks in a SQLite file, and what they are the tallies of."""

    def __init__(self, path: str | Path, identity: dict[str, Any]) -> None:
        self.path = Path(path)
        self._connection: Any = None
        text = json.dumps(identity, sort_keys=True, default=str)
        try:
            with self._file() as file:
                file.execute("CREATE TABLE IF NOT EXISTS audit (key TEXT PRIMARY KEY, value TEXT)")
                file.execute(
                    "CREATE TABLE IF NOT EXISTS block (number INTEGER PRIMARY KEY, tally TEXT, records BLOB, outputs BLOB)"
                )
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

    def blocks(self, numbers: range, read: Callable[[dict[str, Any]], Any]) -> dict[int, Block]:
        """The recorded ones of some blocks, by their numbers; `read` reads what `to_dict` of a tally wrote."""
        with self._file() as file:
            asked = "SELECT number, tally, records, outputs FROM block WHERE number >= ? AND number < ?"
            rows = file.execute(asked, (numbers.start, numbers.stop)).fetchall()
        try:
            return {number: Block(read(json.loads(text)), _unpacked(*more)) for number, text, *more in rows}
        except (EOFError, KeyError, TypeError, ValueError, pickle.UnpicklingError) as problem:
            raise InputFileError(f"{self.path} holds something else than an audit: {problem}.") from problem

    def pilot(self, run: Callable[[], Past]) -> Past:
        """The pilot: as recorded, or run now and recorded."""
        known = self.blocks(range(PILOT, PILOT + 1), lambda told: None)
        if PILOT in known and known[PILOT].past is not None:
            return known[PILOT].past  # type: ignore[return-value]
        past = run()
        self._write(PILOT, {}, past)
        return past

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
        if (module.partition(".")[0], name) in PLAIN:
            return super().find_class(module, name)
        return fail(f"outputs of the type {module}.{name} are not read from a file", InputFileError)
