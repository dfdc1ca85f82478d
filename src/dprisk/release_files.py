"""A release described in a file: the query, the data of everybody else, the possible records, the noise.

The file is TOML or JSON; paths in it are relative to it.

    data = "clinic.csv"
    query = { kind = "histogram", column = "illness" }
    universe = { columns = ["illness"] }
    noise = { kind = "laplace", epsilon = 1.0 }
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dprisk.catalogue import NOISES, QUERIES, Catalogue, Entry
from dprisk.csv_files import CsvFile
from dprisk.documents import Section, read_document
from dprisk.errors import InputFileError, as_number, fail, require
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.numbers.noise import Noise
from dprisk.releases import release
from dprisk.releases.queries import Query, Sum
from dprisk.tables import doubts, encode, listed, natural, rows_of
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
        return ". ".join([told, *doubts(self.table)])

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
    """Read a release file, or the release of a threat model; what it says too much or too little gets a sentence."""
    whole = read_document(path).section()
    return release_of(whole.inner("release") if "release" in whole.given else whole)


def release_of(section: Section) -> ReleaseFile:
    """The release that a section of a file describes."""
    section.check(("data", "query", "universe", "noise"), ("prior", "interval", "ends"))
    given, path = section.given, section.document.path
    query, numeric = _query(section)
    data, table = _tables(section, query, numeric)
    noise, sensitivity = _noise(section)
    prior = given.get("prior")
    if prior is not None and not isinstance(prior, str):
        section.refuse(f"is a text, got {prior!r}.", "prior")
    lacking = [name for name in query.looks_at if name not in table]
    if lacking:
        section.refuse(
            f"has no column {lacking[0]!r}, which the query looks at; it has {', '.join(map(repr, table))}.", "universe"
        )
    one_column = tuple(table) == query.looks_at and len(table) == 1
    with section.placed():
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


def _kind(section: Section, register: Catalogue, also: tuple[str, ...] = ()) -> tuple[Entry, Options]:
    """The kind of query or noise that a section names, and its options; names in `also` are allowed besides."""
    given = section.given
    kind: Any = given.get("kind") if isinstance(given, Mapping) else None
    names = ", ".join(entry.name for entry in register)
    if kind not in register:
        section.refuse(f"needs a `kind`, one of {names}; got {kind!r}.")
    entry = register[kind]
    section.check(("kind", *entry.needs), (*(name for name in entry.takes if name not in entry.needs), *also))
    options = {name: value for name, value in given.items() if name in entry.takes}
    if entry.one_of and set(options) not in map(set, entry.one_of):
        section.refuse(f"needs exactly one of {entry.ways()}.")
    return entry, options


def _query(section: Section) -> tuple[Query, tuple[str, ...]]:
    """The query, and the columns that must be numbers."""
    entry, options = _kind(section.inner("query"), QUERIES)
    with section.placed("query"):
        query: Query = entry.make(options)
    return query, query.looks_at if isinstance(query, Sum) or "edges" in options else ()


def _noise(section: Section) -> tuple[Noise | Guarantee, float | None]:
    entry, options = _kind(section.inner("noise"), NOISES, ("sensitivity",))
    with section.placed("noise"):
        return entry.make(options), section.given["noise"].get("sensitivity")


def _tables(section: Section, query: Query, numeric: tuple[str, ...]) -> tuple[Columns, Columns]:
    """Everybody else and the possible records, by column."""
    part, universe = section.inner("universe"), section.given["universe"]
    if not _are_texts(query.looks_at):
        section.refuse("is wrong: a column of the query is a name.", "query")
    file = CsvFile.open(section.file("data"))
    if universe == "data":
        universe = {"columns": list(file.header)}
    else:
        part.check((), ("columns", "values", "range", "step", "file"))
    named = _way(universe, part)
    if named == ["file"]:
        listing = CsvFile.open(part.file("file"))
        also = [name for name in listing.header if file.has(name)]  # what the data say of the records: a prior
        return _typed(file, (*query.looks_at, *also), listing, numeric)
    if named == ["columns"]:
        names = _column_names(universe["columns"], part)
        people, _ = _typed(file, (*query.looks_at, *names), None, numeric)
        distinct = encode(rows_of(people, names))[1]
        return people, {name: [row[place] for row in distinct] for place, name in enumerate(names)}
    if len(query.looks_at) != 1:
        part.refuse("has values or a range, which are for a query of one column; give columns or a file.")
    people, _ = _typed(file, query.looks_at, None, numeric)
    values = listed(universe["values"]) if "values" in named else _range(universe, part.where())
    return people, {query.looks_at[0]: values}


def _way(universe: Mapping[str, Any], part: Section) -> list[str]:
    """By which of its names a universe is given."""
    named = [name for name in ("columns", "values", "range", "file") if name in universe]
    if len(named) != 1 or ("step" in universe and named != ["range"]):
        part.refuse('is "data" or has exactly one of columns, values, range (perhaps with a step) and file.')
    return named


def _column_names(given: Any, part: Section) -> list[Any]:
    names = [given] if isinstance(given, str) else listed(given)
    if not names:
        part.refuse("names no columns.")
    if not _are_texts(names):
        part.refuse(f"takes columns by name: columns are names, got {names!r}.")
    return names


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _typed(
    data: CsvFile, names: Sequence[str], listing: CsvFile | None, numeric: tuple[str, ...]
) -> tuple[Columns, Columns]:
    """Some columns of the data and all of the listed records, as numbers where it is so in both, so that equal values
    stay equal."""
    texts = data.filled(list(dict.fromkeys(names)))
    rows = {} if listing is None else listing.filled()
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
