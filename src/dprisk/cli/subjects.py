"""What the command line describes: a mechanism or guarantee of the catalogue or a release file, and the attacker."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dprisk.catalogue import PRIORS, SUCCESS, Entry
from dprisk.catalogue.naming import named_prior, prior_names, records_of
from dprisk.cli.options import Options, flag, only_of_entries, taken
from dprisk.csv_files import CsvFile
from dprisk.errors import InputFileError, ThreatError, fail, require
from dprisk.mechanisms import Mechanism
from dprisk.release_files import ReleaseFile, read_release
from dprisk.rounding import significant_up
from dprisk.surveys import Survey
from dprisk.threat.knowledge import Knowledge
from dprisk.threat.prior import Prior
from dprisk.threat.success import Success
from dprisk.threat.threat import Threat

ATTACKER = ("release", "data", "column", "size", "prior", "within", "space")  # what says of whom and what is asked
WHOLE_RECORD = (
    "The mechanism randomises the whole record, what the attacker knows of it included. If it randomises one column of "
    "a table, give that as --data with its --column, and name the known columns by --knows."
)

FROM_DATA = "comes from the data; the guarantee holds only if it is public"
HOW_MANY = "--size is missing: how many possible records are there?"
AMONG = (
    "--size is missing: among how many possible records does the attacker look for this person's? (not the size of the "
    "data set)"
)


@dataclass(frozen=True)
class Described:
    """What is assessed or calibrated, the attacker, and what the reader should know of both."""

    subject: Any
    threat: Threat
    about: str = ""


def described(given: Options, template: bool = False, ranges: Mapping[str, Any] = MappingProxyType({})) -> Described:
    """What the command line describes; of a `template` the number that is to be found is left out."""
    if given["release"] is not None:
        planned = planned_release(given)
        threat = release_threat(given, planned)
        given["query"] = planned.query.describe()
        return Described(planned.mechanism, threat, planned.describe(given["prior"], template))
    entry, survey = chosen(given), read_survey(given)
    threat = read_threat(given, entry) if survey is None else survey_threat(given, entry, survey)
    records = records_of(threat.prior, entry) if survey is None else survey_records(entry, survey)
    options = taken(entry, given)
    made = entry.template(options, records, flag) if template else adjustable(entry, options, ranges, records)
    if survey is not None:
        subject = survey.randomised(made) if isinstance(made, Mechanism) else made
        about = _about(survey, given) + _of_range(entry, survey, None if template else made)
        return Described(subject, threat, ". ".join([about, *survey.doubts]))
    if not isinstance(made, Mechanism):
        return Described(made, threat)
    return Described(made, threat, WHOLE_RECORD if given["knows"] not in ("none", "all") else "")


def guarantee_alone(given: Options) -> Any:
    """The template of a guarantee, if nothing is said of records and attacker; None otherwise."""
    if given["guarantee"] is None or given["knows"] != "none" or any(given[name] is not None for name in ATTACKER):
        return None
    entry = chosen(given)
    return entry.template(taken(entry, given), write=flag)


def adjustable(entry: Entry, options: Options, ranges: Mapping[str, Any], records: Any) -> Any:
    """What is swept: as it is with the first number of each range, unless only something else can be adjusted."""
    if entry.unset is None or not ranges:
        return entry.make(options, records, flag)
    return entry.template({name: value for name, value in options.items() if name not in ranges}, records, flag)


def chosen(given: Options) -> Entry:
    """The mechanism or guarantee that was named."""
    named: list[Entry] = [given[kind] for kind in ("mechanism", "guarantee") if given[kind] is not None]
    require(len(named) == 1, "Give either --mechanism or --guarantee, or a --release file.")
    return named[0]


def planned_release(given: Options) -> ReleaseFile:
    """The release in a file; options that say of a mechanism what the file says of the release are refused."""
    for option in ("mechanism", "guarantee", "size", "data", "column", *sorted(only_of_entries())):
        require(given.get(option) is None, f"{flag(option)} has no meaning with --release: the file says it.")
    planned = read_release(given["release"])
    if given["prior"] is not None and planned.prior is not None:
        fail(f"{given['release']} names a prior; leave --prior out, or take it out of the file.")
    return planned


def read_survey(given: Options) -> Survey | None:
    """The column of a table that is randomised; what follows from the table is not given besides."""
    if given["data"] is None:
        require(given["column"] is None, "--column is a column of a table: give that as --data.")
        return None
    require(given["size"] is None, "--size has no meaning with --data: it follows from the table.")
    require(
        given["prior"] in (None, "uniform"),
        f"With --data the prior is how common each row is, or --prior uniform; got {given['prior']}.",
    )
    if given["column"] is None:
        fail(f"--column is missing: what is randomised? Of {given['data']}, {CsvFile.open(given['data']).described}.")
    knows = given["knows"]
    known = knows if knows in ("none", "all") else [name.strip() for name in knows.split(",")]
    survey = Survey.from_csv(given["data"], given["column"], known)
    return survey if given["prior"] is None else survey.uniform()


def _about(survey: Survey, given: Options) -> str:
    """What follows from the table, and what the prior is; a warning where the prior says it all."""
    told, rows = f"{survey.describe()}; the prior is", survey.groups
    if given["prior"] is not None:
        known = " (there is one, so that nothing is left to find out)" if survey.size == 1 else ""
        if len(rows) > 1 and not known:
            known = f" in each of {len(rows)} groups, which are as common as in {given['data']}"
        return f"{told} uniform: every value of {survey.column} is equally likely{known}"
    settled = sum(1 for possible in rows.values() if possible == 1)
    warning = ""
    if survey.size == 1:
        warning = f". That already tells {survey.column} of everybody: nothing is left to find out, with any noise"
    elif settled:
        hold = f"{settled} of {len(rows)} groups {'holds' if settled == 1 else 'hold'} one possible row"
        warning = f". {hold}: the prior from the file already tells their value"
    return f"{told} how common each row is in {given['data']}{warning}"


def _of_range(entry: Entry, survey: Survey, made: Any) -> str:
    """Of noise on numbers: how much that is, where it follows from epsilon, and that its range is from the data."""
    if entry.records not in ("spaced", "places"):
        return ""
    scale = getattr(made, "scale", None)
    noise = "" if scale is None else f". {entry.title} of scale {significant_up(scale, 4)}"
    return f"{noise}. The range, {min(survey.values):g} to {max(survey.values):g}, {FROM_DATA}"


def survey_threat(given: Options, entry: Entry | None, survey: Survey) -> Threat:
    """The threat to a column that is randomised."""
    require(given["space"] in (None, "line"), "--space ring has no meaning with --data.")
    _success(given, entry)  # refuses what goes without --within
    return survey.threat(given["within"])


def survey_records(entry: Entry, survey: Survey) -> Any:
    """What an entry is told of the values of a column: their number, or where they are for noise on numbers."""
    if entry.records in ("spaced", "places") and not all(isinstance(value, int | float) for value in survey.values):
        fail(
            f"{entry.name} is for numbers, but {survey.column!r} holds {survey.values[0]!r}; choose another mechanism."
        )
    if entry.records == "places":
        return list(survey.values)
    _require_places(entry, survey.prior)
    return survey.size


def _require_places(entry: Entry | None, prior: Prior) -> None:
    """Refuse records that do not lie where a mechanism takes them to lie."""
    if entry is not None and entry.records == "spaced" and math.isfinite(prior.size):
        prior.require_even_spacing(f"The mechanism {entry.name}")


def read_threat(given: Options, entry: Entry | None, records: Sequence[Any] | None = None) -> Threat:
    """The threat to a mechanism, a guarantee or code; listed `records` label a prior that brings no labels."""
    success, size, told_by = _success(given, entry), given["size"], "--size"
    if records is not None:
        size, told_by = len(records), "--records"
    elif entry is not None and entry is given["mechanism"] and entry.records == "nothing" and size is None:
        size = int(entry.make(taken(entry, given), write=flag).size)  # a mechanism that brings its own
    given["prior"] = "uniform" if given["prior"] is None else given["prior"]
    among = AMONG if given.get("guarantee") is not None else HOW_MANY
    prior = read_prior(given["prior"], size, told_by, among)
    if prior.labels is None and records is not None:
        prior = Prior(prior.weights, records)
    return Threat(prior, _knowledge(given["knows"], prior), success)


def release_threat(given: Options, planned: ReleaseFile) -> Threat:
    """The threat to a planned release: over its records, with their labels."""
    success = _success(given, None)
    if given["within"] is not None and not planned.is_numeric:
        fail("--within is a distance between records that are numbers: a universe of one column of numbers.")
    given["prior"] = next(text for text in (given["prior"], planned.prior, "data") if text is not None)
    prior = _release_prior(given["prior"], planned)
    return Threat(prior, _release_knowledge(given["knows"], planned, prior), success)


def _success(given: Options, entry: Entry | None) -> Success:
    """A rule by --within and --space, which some mechanisms take as well."""
    name, options = given["space"] or "line", {"within": given["within"]}
    if given["within"] is None:
        elsewhere = entry is not None and "space" in entry.takes
        require(given["space"] is None or elsewhere, "--space has no meaning without --within.")
        name, options = "exact", {}
    rule: Success = SUCCESS[name].make(options)
    return rule


def read_prior(text: str, size: int | None, told_by: str, how_many: str) -> Prior:
    """A prior by its name, with a number behind a colon, or from a file; `told_by` is the option that gave the size."""
    if (named := named_prior(text, size, how_many)) is not None:
        return named
    prior = _prior_file(text, text)
    if size not in (None, prior.size):
        fail(f"{told_by} says {size} records, {text} has {prior.size}; leave {told_by} out, it follows from the file.")
    return prior


def _release_prior(text: str, planned: ReleaseFile) -> Prior:
    """As any prior, over the records of a release; `data` is how often each occurs among everybody else."""
    if text == "data":
        return planned.prior_from_data()
    if (named := named_prior(text, planned.mechanism.size, HOW_MANY)) is not None:
        return Prior(named.weights, planned.mechanism.labels)
    return _prior_file(text, text if planned.prior is None else planned.folder / text, "data, ")


def _prior_file(text: str, path: str | Path, also: str = "") -> Prior:
    """The prior in a file, called `text` by the user; `also` names what else might have been meant."""
    exists = text == "" or Path(path).exists()
    require(exists, f"There is no file {text}, and a prior is {also}{prior_names()}.", InputFileError)
    read: Prior = PRIORS["file"].make({"path": path})
    return read


def _release_knowledge(text: str, planned: ReleaseFile, prior: Prior) -> Knowledge | str:
    """As any knowledge, or columns of the records."""
    names = text.split(",")
    if text not in ("none", "all") and all(name in planned.table for name in names):
        return Knowledge.columns(planned.table, names)
    if text not in ("none", "all") and not Path(text).is_file():
        fail(f"--knows is none, all, a CSV file or columns of the records ({', '.join(planned.table)}), got {text}.")
    return _knowledge(text, prior)


def _knowledge(text: str, prior: Prior) -> Knowledge | str:
    """none, all, or the groups in a file."""
    if text in ("none", "all"):
        return text
    if not Path(text).is_file():
        fail(f"There is no file {text}; --knows is none, all, or a CSV file, and with --data columns of the table.")
    file = CsvFile.open(text)
    table = file.columns(["group", "label"] if file.has("label") else ["group"])
    if "" in table["group"]:
        file.refuse_cell("group", lambda cell: not cell, "is empty", "give each record a group")
    if "label" not in table:
        return Knowledge.partition(table["group"])
    group = dict(zip(table["label"], table["group"], strict=True))
    require(len(group) == len(table["label"]), f"{text} names a record twice.", InputFileError)
    names = [str(prior.name(record)) for record in range(prior.size)]
    missing = [name for name in names if name not in group]
    require(not missing, f"{text} has no group for the record {', '.join(missing[:1])}.", ThreatError)
    unknown = sorted(set(group) - set(names))
    require(not unknown, f"{text} names a record that the prior does not have: {', '.join(unknown[:1])}.", ThreatError)
    return Knowledge.partition([group[name] for name in names])
