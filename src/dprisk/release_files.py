"""A release described in a file: the query, the data of everybody else, the possible records, the noise.

The file is TOML or JSON; paths in it are relative to it.

    data = "clinic.csv"
    query = { kind = "histogram", column = "illness" }
    universe = { columns = ["illness"] }
    noise = { kind = "laplace", epsilon = 1.0 }
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dprisk.catalogue import NOISES, QUERIES, Catalogue, Entry
from dprisk.csv_files import CsvFile, require_file
from dprisk.errors import InputFileError, as_number, fail, require
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.numbers.noise import Noise
from dprisk.releases import release
from dprisk.releases.queries import Query, Sum
from dprisk.tables import encode, listed, natural, rows_of
from dprisk.threat.prior import Prior

_require = partial(require, error=InputFileError)
Options = dict[str, Any]
Columns = dict[str, list[Any]]
_OTHER_PRIOR = "say what is believed instead, as in --prior uniform."
RANGE_IS_SECRET = "the guarantee holds only if it is public. Give the query a low and a high"
MOST_RECORDS = 10_000_000  # in a range


@dataclass(frozen=True, eq=False)
class ReleaseFile:
    """What a release file says.

    `data` and `table` hold everybody else's records and the possible ones, by column. `prior` is as on the command
    line, or None; if it is the name of a file, that lies in `folder`.
    """

    query: Query
    data: Columns
    table: Columns
    noise: Noise | Guarantee
    mechanism: Mechanism
    prior: str | None
    folder: Path
    range_from_data: bool = False  # that decides how much one person can change a sum

    @property
    def others(self) -> int:
        """How many people there are besides the target."""
        return len(next(iter(self.data.values())))

    @property
    def is_numeric(self) -> bool:
        """Whether the records are numbers: then they have a distance."""
        return all(isinstance(label, int | float) for label in self.mechanism.labels or ())

    def describe(self, prior: str, any_noise: bool) -> str:
        """In a sentence; `prior` is as on the command line, and with `any_noise` that of the file is left out."""
        common = "the prior is how often each occurs among them" if prior == "data" else f"the prior is {prior}"
        told = f"{self.query.describe()}, over {self.others} others and one of {self.mechanism.size} possible records; "
        told += common
        if isinstance(self.noise, Guarantee) and not any_noise:
            kind = type(self.mechanism).__name__.removeprefix("Vector")
            told = f"{told}; {kind} noise, the least that keeps {self.noise!r}"
        if self.range_from_data:
            values = self.table[self.query.looks_at[0]]
            told = f"{told}. The range, {min(values):g} to {max(values):g}, comes from the data; {RANGE_IS_SECRET}"
        return told

    def prior_from_data(self) -> Prior:
        """How often each record occurs among everybody else."""
        names = list(self.table)
        lacking = [name for name in names if name not in self.data]
        if lacking:
            fail(f"The data do not tell how common each record is: they have no column {lacking[0]!r}; {_OTHER_PRIOR}")
        rows = self.data[names[0]] if len(names) == 1 else rows_of(self.data, names)
        odd = set(rows) - set(self.mechanism.labels or ())
        if odd:
            first = next(row for row in rows if row in odd)
            fail(f"The data hold {first!r}, which is none of the possible records; {_OTHER_PRIOR}")
        return Prior.from_column(rows, self.mechanism.labels)


def read_release(path: str | Path) -> ReleaseFile:
    """Read a release file; whatever it says too much or too little gets one sentence."""
    path = require_file(path)
    given = _document(path)
    _check(given, str(path), ("data", "query", "universe", "noise"), ("prior", "interval", "ends"))
    query, numeric = _query(given["query"], path)
    data, table = _tables(given["data"], given["universe"], query, numeric, path)
    noise, sensitivity = _noise(given["noise"], path)
    prior = given.get("prior")
    _require(prior is None or isinstance(prior, str), f"{path}: `prior` is a text, got {prior!r}.")
    one_column = tuple(table) == query.looks_at and len(table) == 1
    mechanism = release(
        query,
        data,
        next(iter(table.values())) if one_column else table,
        noise,
        sensitivity=sensitivity,
        interval=given.get("interval"),
        ends=given.get("ends", "clamp"),
    )
    open_ended = isinstance(query, Sum) and query.sensitivity(1) is None and sensitivity is None
    from_data = given["universe"] == "data" or "columns" in given["universe"]
    return ReleaseFile(query, data, table, noise, mechanism, prior, path.parent, open_ended and from_data)


def _document(path: Path) -> Options:
    _require(path.suffix in (".toml", ".json"), f"{path} must end in .toml or .json.")
    try:
        text = path.read_text(encoding="utf-8")
        given = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError) as problem:
        raise InputFileError(f"{path} cannot be read as {path.suffix[1:].upper()}: {problem}") from problem
    return given if isinstance(given, dict) else fail(f"{path} must hold names with values.", InputFileError)


def _check(given: Any, where: str, needed: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuse a section that lacks a name, or has one that means nothing."""
    known = f"it takes {', '.join((*needed, *allowed))}"
    _require(isinstance(given, Mapping), f"{where} must hold names with values; {known}.")
    missing = [name for name in needed if name not in given]
    _require(not missing, f"{where} lacks `{', '.join(missing[:1])}`; {known}.")
    unknown = [name for name in given if name not in (*needed, *allowed)]
    _require(not unknown, f"{where} has an unknown name `{', '.join(unknown[:1])}`; {known}.")


def _kind(given: Any, where: str, register: Catalogue, also: tuple[str, ...] = ()) -> tuple[Entry, Options]:
    """The kind of query or noise that a section names, and its options; names in `also` are allowed besides."""
    kind: Any = given.get("kind") if isinstance(given, Mapping) else None
    names = ", ".join(entry.name for entry in register)
    _require(kind in register, f"{where} needs a `kind`, one of {names}; got {kind!r}.")
    entry = register[kind]
    _check(given, where, ("kind", *entry.needs), (*(name for name in entry.takes if name not in entry.needs), *also))
    options = {name: value for name, value in given.items() if name in entry.takes}
    _require(
        not entry.one_of or set(options) in map(set, entry.one_of), f"{where} needs exactly one of {entry.ways()}."
    )
    return entry, options


def _query(given: Any, path: Path) -> tuple[Query, tuple[str, ...]]:
    """The query, and the columns that must be numbers."""
    entry, options = _kind(given, f"{path}: `query`", QUERIES)
    query: Query = entry.make(options)
    return query, query.looks_at if isinstance(query, Sum) or "edges" in options else ()


def _noise(given: Any, path: Path) -> tuple[Noise | Guarantee, float | None]:
    entry, options = _kind(given, f"{path}: `noise`", NOISES, ("sensitivity",))
    return entry.make(options), given.get("sensitivity")


def _tables(data: Any, universe: Any, query: Query, numeric: tuple[str, ...], path: Path) -> tuple[Columns, Columns]:
    """Everybody else and the possible records, by column."""
    where = f"{path}: `universe`"
    _require(_are_texts(query.looks_at), f"{path}: a column of the query is a name.")
    file = CsvFile.open(_beside(path, data, "data"))
    if universe == "data":
        universe = {"columns": list(file.header)}
    _check(universe, where, (), ("columns", "values", "range", "step", "file"))
    named = [name for name in ("columns", "values", "range", "file") if name in universe]
    _require(
        len(named) == 1 and ("step" not in universe or named == ["range"]),
        f'{where} is "data" or has exactly one of columns, values, range (perhaps with a step) and file.',
    )
    if named == ["file"]:
        listing = CsvFile.open(_beside(path, universe["file"], "file"))
        also = [name for name in listing.header if file.has(name)]  # what the data say of the records: a prior
        return _typed(file, (*query.looks_at, *also), listing, numeric)
    if named == ["columns"]:
        names = [universe["columns"]] if isinstance(universe["columns"], str) else listed(universe["columns"])
        _require(len(names) > 0, f"{where} names no columns.")
        _require(_are_texts(names), f"{where}: columns are names, got {names!r}.")
        people, _ = _typed(file, (*query.looks_at, *names), None, numeric)
        distinct = encode(rows_of(people, names))[1]
        return people, {name: [row[place] for row in distinct] for place, name in enumerate(names)}
    _require(
        len(query.looks_at) == 1, f"{where}: values and range are for a query of one column; give columns or a file."
    )
    people, _ = _typed(file, query.looks_at, None, numeric)
    return people, {query.looks_at[0]: listed(universe["values"]) if "values" in named else _range(universe, where)}


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _typed(
    data: CsvFile, names: Sequence[str], listing: CsvFile | None, numeric: tuple[str, ...]
) -> tuple[Columns, Columns]:
    """Some columns of the data and all of the listed records, as numbers where it is so in both, so that equal values
    stay equal."""
    texts = data.columns(list(dict.fromkeys(names)))
    rows = {} if listing is None else listing.columns()
    people: Columns = {}
    records: Columns = {}
    for name in dict.fromkeys((*texts, *rows)):
        both = [*texts.get(name, ()), *rows.get(name, ())]
        values = natural(both)
        if name in numeric and isinstance(values[0], str):
            parts = ((data, texts), (listing, rows))
            values = [
                number for file, held in parts if file and name in held for number in file.numbers(held[name], name)
            ]
        cut = len(texts.get(name, ()))
        if name in texts:
            people[name] = values[:cut]
        if name in rows:
            records[name] = values[cut:]
    return people, records


def _range(universe: Mapping[str, Any], where: str) -> list[Any]:
    """low, low + step, ... up to high."""
    ends = universe["range"]
    _require(isinstance(ends, list) and len(ends) == 2, f"{where}: range is a pair [low, high], got {ends!r}")
    step = universe.get("step", 1)
    low, high, by = (as_number(f"{where}: a number of the range", value) for value in (*ends, step))
    _require(
        -math.inf < low < high < math.inf and 0 < by < math.inf,
        f"{where}: a range needs finite low < high and a step above 0.",
    )
    count = math.floor((high - low) / by * (1 + 1e-12)) + 1
    _require(count <= MOST_RECORDS, f"{where}: the range has {count} records, too many.")
    return [ends[0] + place * step for place in range(count)]


def _beside(path: Path, name: Any, key: str) -> Path:
    if not isinstance(name, str) or name == "":
        fail(f"{path}: `{key}` is the name of a file, got {name!r}.", InputFileError)
    return path.parent / name
