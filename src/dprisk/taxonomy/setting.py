"""What a threat model file describes, made: the possible records, and what is released."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.catalogue import GUARANTEES, MECHANISMS, PRIORS, Entry
from dprisk.catalogue.naming import named_prior, prior_names, records_of
from dprisk.csv_files import CsvFile
from dprisk.documents import Section
from dprisk.errors import InputFileError
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.release_files import ReleaseFile, release_of
from dprisk.surveys import Survey
from dprisk.tables import encode, natural, rows_of
from dprisk.taxonomy.keys import PART_WORDS
from dprisk.taxonomy.model import ThreatModel, Universe
from dprisk.taxonomy.reading import whole_number
from dprisk.threat.prior import Prior

MOST_RECORDS = 2_000_000
Columns = dict[str, list[Any]]
WAYS = ("mechanism", "guarantee", "parts", "query")


@dataclass(frozen=True)
class Records:
    """The possible records: how likely each is, their columns if they have any, and where that comes from, in words."""

    prior: Prior
    table: Columns | None
    source: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return () if self.table is None else tuple(self.table)

    def of_columns(self, names: tuple[str, ...]) -> Records:
        """The same people with these columns alone: what a guarantee says of them needs no others."""
        codes, distinct = encode(rows_of(self.table or {}, names))
        mass = np.bincount(codes, weights=self.prior.weights)
        table = {name: [row[place] for row in distinct] for place, name in enumerate(names)}
        return Records(Prior.from_counts(mass, distinct), table, self.source)

    def survey(self, column: str, knows: tuple[str, ...] | str) -> Survey:
        """What asking for one column is, to who knows some of the others."""
        table = self.table or {}
        names = (*(() if isinstance(knows, str) else knows), column)
        counts: dict[tuple[Any, ...], float] = {}
        for row, weight in zip(rows_of(table, names), self.prior.weights.tolist(), strict=True):
            counts[row] = counts.get(row, 0.0) + weight
        return Survey(column, knows, dict(sorted(counts.items(), key=lambda it: tuple(map(str, it[0])))))


@dataclass(frozen=True)
class Setting:
    """The records and the release.

    `subject` is what is assessed, `template` what is calibrated (None where several releases are composed, of which
    none is the one to turn). A mechanism that randomises one `column` of the table is built for its values.
    """

    records: Records
    subject: Any
    template: Any
    column: str | None
    words: str
    now: float | None  # the number that sets its noise
    planned: ReleaseFile | None = None

    @property
    def is_of_many(self) -> bool:
        """Whether other people's records are in the output too; not so where people randomise their own."""
        return self.planned is not None or not isinstance(self.subject, Mechanism)

    def guarantee(self, records: int = 1) -> Guarantee:
        """What is promised of so many records that change at once."""
        promised: Guarantee = self.subject.guarantee()
        return promised.for_groups(records)


def setting_of(model: ThreatModel) -> Setting:
    """Make what the file describes; what cannot be made gets one sentence with its line."""
    section = model.section
    if section is None:
        raise InputFileError("A threat model is assessed from its file: read it with read_threat_model.")
    part = section.inner("release")
    named = [way for way in WAYS if way in model.release]
    if len(named) != 1:
        part.refuse(f"needs exactly one of {', '.join(WAYS)}.")
    if named == ["query"]:
        if model.universe is not None:
            section.refuse("has no meaning here: the release has a query, with a universe of its own.", "universe")
        return _planned(part)
    if model.universe is None:
        section.refuse("lacks `universe`: which records are possible, and how likely is each?")
    records = _records(model.universe, section.inner("universe"))
    if named == ["parts"]:
        return _composed(part, records)
    made, template, column, words = _made(part, records)
    return Setting(records, made, template, column, words, _now(template, made, model.release))


def _records(universe: Universe, section: Section) -> Records:
    named = [name for name in ("prior", "table", "marginals") if getattr(universe, name) is not None]
    if named not in (["prior"], ["table"], ["marginals"], ["table", "marginals"]):
        section.refuse("needs a prior, a table, marginals, or a table with marginals in case it is absent.")
    for name in ("columns", "bands"):
        if name in section.given and "table" not in named:
            section.refuse("goes with a table.", name)
    if universe.size is not None and named != ["prior"]:
        section.refuse("goes with a prior such as uniform; here it follows from the file.", "size")
    with section.placed(*named[:1]):
        if "table" in named and ("marginals" not in named or _is_there(section, "table")):
            return _from_table(universe, section)
        return _from_marginals(section) if "marginals" in named else _from_prior(universe, section)


def _is_there(section: Section, key: str) -> bool:
    folders = section.document.folders or (section.document.path.parent,)
    return any((folder / str(section.given[key])).is_file() for folder in folders)


def _from_prior(universe: Universe, section: Section) -> Records:
    given = universe.prior
    if isinstance(given, Mapping):
        return Records(Prior(dict(given)), None, "the probabilities in this file")
    text = str(given)
    named = named_prior(text, universe.size, "`size` is missing: how many possible records are there?")
    if named is not None:
        return Records(named, None, f"a prior by name: {text}")
    if universe.size is not None:
        section.refuse("follows from the file of the prior; leave it out.", "size")
    if "." not in text:
        section.refuse(f"is {prior_names()}; got {text!r}.", "prior")
    return Records(PRIORS["file"].make({"path": section.file("prior")}), None, f"the counts or probabilities in {text}")


def _from_table(universe: Universe, section: Section) -> Records:
    file = CsvFile.open(section.file("table"))
    names = [file.name(name) for name in universe.columns or file.header]
    texts = file.filled(names)
    table: Columns = {name: natural(texts[name]) for name in names}
    for name, width in universe.bands.items():
        if name not in table:
            section.refuse(f"names no column of the records; they have {', '.join(names)}.", "bands", name)
        table[name] = _banded(file, table[name], name, width)
    codes, distinct = encode(rows_of(table, names))
    columns = {name: [row[place] for row in distinct] for place, name in enumerate(names)}
    labels = distinct if len(names) > 1 else [row[0] for row in distinct]
    people = len(table[names[0]])
    told = f"how often each row occurs among {people:,} people in {universe.table}"
    return Records(Prior.from_counts(np.bincount(codes), labels), columns, told)


def _banded(file: CsvFile, values: list[Any], name: str, width: float) -> list[Any]:
    """Each number moved down to a multiple of the width: whole numbers stay whole."""
    if values and isinstance(values[0], str):
        values = file.numbers([str(value) for value in values], name)
    step = int(width) if float(width).is_integer() else width
    return [math.floor(value / step) * step for value in values]


def _from_marginals(section: Section) -> Records:
    """Columns that are believed to be independent: a record for each combination of their values."""
    file = CsvFile.open(section.file("marginals"))
    cells = file.filled(["column", "value", "count"])
    counts = file.numbers(cells["count"], "count")
    parts: dict[str, dict[str, float]] = {}
    for name, value, count in zip(cells["column"], cells["value"], counts, strict=True):
        if value in parts.setdefault(name, {}):
            section.refuse(f"lists {name} {value} twice.", "marginals")
        parts[name][value] = count
    size = math.prod(map(len, parts.values()))
    if size > MOST_RECORDS:
        section.refuse(f"gives {size:,} records, at most {MOST_RECORDS:,} are listed.", "marginals")
    rows = list(itertools.product(*(natural(list(values)) for values in parts.values())))
    mass = np.ones(1)
    for values in parts.values():
        share = Prior.from_counts(list(values.values())).weights
        mass = np.outer(mass, share).ravel()
    columns = {name: [row[place] for row in rows] for place, name in enumerate(parts)}
    told = f"one-way marginals in {section.given['marginals']}, taken to be independent"
    return Records(Prior.from_counts(mass, rows), columns, told)


def _made(part: Section, records: Records) -> tuple[Any, Any, str | None, str]:
    """A mechanism or guarantee of the catalogue: itself, what is calibrated, the column that it sees, and words."""
    entry, options = _named(part)
    column, times = part.given.get("column"), whole_number(part, "times") if "times" in part.given else 1
    with part.placed():
        told = records_of(_seen_prior(part, records), entry)
        made = entry.make(options, told)
        template = _template(entry, options, told, made)
        words = _in_words(entry.title, options)
        if times > 1:
            made = made.repeat(times) if isinstance(made, Mechanism) else made.compose(times)
            template = made if made.parameter is not None else None
            words = f"{words}, {times} times"
    return made, template, column, words


def _named(part: Section) -> tuple[Entry, dict[str, Any]]:
    """The entry that a part names, and the options for it; files among them are looked up."""
    kind = "mechanism" if "mechanism" in part.given else "guarantee"
    register = MECHANISMS if kind == "mechanism" else GUARANTEES
    name = part.given[kind]
    if name not in register:
        part.refuse(f"is one of {', '.join(entry.name for entry in register)}; got {name!r:.60}.", kind)
    entry = register[name]
    more = [key.name for key in PART_WORDS if kind == "mechanism" or key.name != "column"]
    part.check((kind, *entry.needs), (*(it for it in entry.takes if it not in entry.needs), *more))
    options = {key: value for key, value in part.given.items() if key in entry.takes}
    return entry, options | _files(part, entry)


def _files(part: Section, entry: Entry) -> dict[str, Path]:
    """The options of an entry that name files, looked up."""
    named = (option.name for option in entry.options if option.kind is Path)
    return {name: part.file(name) for name in named if name in part.given}


def _seen_prior(part: Section, records: Records) -> Prior:
    """The prior over what a release sees: whole records, or one column of them."""
    column = part.given.get("column")
    if column is None:
        return records.prior
    if column not in records.columns:
        part.refuse(f"is a column of the records ({', '.join(records.columns) or 'none'}).", "column")
    return records.survey(column, ()).prior


def _template(entry: Entry, options: dict[str, Any], told: Any, made: Any) -> Any:
    """What is calibrated: the release itself, unless something else is made without its noise."""
    if entry.unset is None:
        return made if made.parameter is not None else None
    filled = {it.name: it.example for it in entry.options if not it.optional} | options
    sought = entry.unset(**filled).parameter.name
    return entry.template({key: value for key, value in options.items() if key != sought}, told)


def _in_words(title: str, options: Mapping[str, Any]) -> str:
    """A name with its numbers."""
    told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in options.items())
    return f"{title} ({told})" if told else title


def _now(template: Any, made: Any, given: Mapping[str, Any]) -> float | None:
    """The number that sets the noise of a release, where one does."""
    if template is None or template.parameter is None:
        return None
    name = template.parameter.name
    value = given.get(name, getattr(made, f"nominal_{name}", getattr(made, name, None)))
    return float(value) if isinstance(value, int | float) else None


def _composed(part: Section, records: Records) -> Setting:
    part.check(("parts",), ("text",))
    listed = part.given["parts"]
    if not isinstance(listed, list) or not listed or not all(isinstance(it, Mapping) for it in listed):
        part.refuse("is a list of mechanisms and guarantees.", "parts")
    if len(listed) > 50:
        part.refuse(f"lists {len(listed)} releases, at most 50 are read.", "parts")
    whole: Guarantee | None = None
    words = []
    for number in range(len(listed)):
        one = part.inner("parts", number)
        if ("mechanism" in one.given) == ("guarantee" in one.given):
            one.refuse("needs either a mechanism or a guarantee.")
        made, _, _, told = _made(one, records)
        words.append(told)
        with one.placed():
            whole = made.guarantee() if whole is None else whole.compose(made.guarantee())
    return Setting(records, whole, None, None, f"{len(words)} releases together: {'; '.join(words)}", None)


def _planned(part: Section) -> Setting:
    with part.placed():
        planned = release_of(part)
        text = planned.prior or "data"
        if text == "data":
            prior, told = planned.prior_from_data(), f"how often each record occurs in {part.given['data']}"
        elif (named := named_prior(text, planned.mechanism.size, "")) is not None:
            prior, told = Prior(named.weights, planned.mechanism.labels), f"a prior by name: {text}"
        else:
            prior, told = PRIORS["file"].make({"path": part.file("prior")}), f"the counts or probabilities in {text}"
    noise = {key: value for key, value in part.given["noise"].items() if key != "kind"}
    kind = f"{part.given['noise']['kind']} noise"
    words = f"{planned.query.describe()}, with {_in_words(kind, noise)}"
    records, made = Records(prior, dict(planned.table), told), planned.mechanism
    return Setting(records, made, made, None, words, _now(made, made, {}), planned)
