"""What the command line describes: a mechanism or guarantee of the catalogue or a release file, and the attacker."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dprisk.catalogue import PRIORS, SUCCESS, Entry
from dprisk.cli.options import Options, flag, only_of_entries, prior_name, prior_names, taken
from dprisk.errors import InputFileError, ThreatError, fail, require
from dprisk.release_files import ReleaseFile, read_release
from dprisk.tables import read_csv
from dprisk.threat.knowledge import Knowledge
from dprisk.threat.prior import Prior
from dprisk.threat.success import Success
from dprisk.threat.threat import Threat


def chosen(given: Options) -> Entry:
    """The mechanism or guarantee that was named."""
    named: list[Entry] = [given[kind] for kind in ("mechanism", "guarantee") if given[kind] is not None]
    also = ", or a --release file" if "release" in given else ""
    require(len(named) == 1, f"Give either --mechanism or --guarantee{also}.")
    return named[0]


def planned_release(given: Options) -> ReleaseFile:
    """The release in a file; options that say of a mechanism what the file says of the release are refused."""
    for option in ("mechanism", "guarantee", "size", *sorted(only_of_entries())):
        require(given[option] is None, f"{flag(option)} has no meaning with --release: the file says it.")
    planned = read_release(given["release"])
    if given["prior"] is not None and planned.prior is not None:
        fail(f"{given['release']} names a prior; leave --prior out, or take it out of the file.")
    return planned


def read_threat(given: Options, entry: Entry | None, records: Sequence[Any] | None = None) -> Threat:
    """The threat to a mechanism, a guarantee or code; listed `records` label a prior that brings no labels."""
    success, size, told_by = _success(given, entry), given["size"], "--size"
    if records is not None:
        size, told_by = len(records), "--records"
    elif entry is not None and entry is given["mechanism"] and entry.records == "nothing" and size is None:
        size = int(entry.make(taken(entry, given), write=flag).size)  # a mechanism that brings its own
    given["prior"] = "uniform" if given["prior"] is None else given["prior"]
    prior = _prior(given["prior"], size, told_by)
    if prior.labels is None and records is not None:
        prior = Prior(prior.weights, records)
    return Threat(prior, _knowledge(given["knows"], prior), success)


def records_of(threat: Threat) -> Any:
    """What an entry is told of the records: their number, or the interval that they may be any number of."""
    return threat.prior.size if math.isfinite(threat.prior.size) else threat.prior


def release_threat(given: Options, planned: ReleaseFile) -> Threat:
    """The threat to a planned release: over its records, with their labels."""
    success = _success(given, None)
    if given["within"] is not None and not planned.is_numeric:
        fail("--within is a distance between records that are numbers: a universe of one column of numbers.")
    given["prior"] = next(text for text in (given["prior"], planned.prior, "uniform") if text is not None)
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


def _prior(text: str, size: int | None, told_by: str) -> Prior:
    """A prior by its name, with a number behind a colon, or from a file; `told_by` is the option that gave the size."""
    if (named := _named_prior(text, size)) is not None:
        return named
    prior = _prior_file(text, text)
    if size not in (None, prior.size):
        fail(f"{told_by} says {size} records, {text} has {prior.size}; leave {told_by} out, it follows from the file.")
    return prior


def _release_prior(text: str, planned: ReleaseFile) -> Prior:
    """As any prior, over the records of a release; `data` is how often each occurs among everybody else."""
    if text == "data":
        return planned.prior_from_data()
    if (named := _named_prior(text, planned.mechanism.size)) is not None:
        return Prior(named.weights, planned.mechanism.labels)
    return _prior_file(text, text if planned.prior is None else planned.folder / text, "data, ")


def _named_prior(text: str, size: int | None) -> Prior | None:
    """NAME or NAME:NUMBER,...; None if that is no name, but perhaps a file."""
    name, colon, numbers = text.partition(":")
    if name not in PRIORS or "path" in PRIORS[name].takes:
        return None
    entry, value = PRIORS[name], {}
    if colon:
        require(len(entry.options) > 0, f"A {entry.name} prior takes no number.")
        try:
            value = dict(zip(entry.takes, map(float, numbers.split(",")), strict=False))
        except ValueError:
            fail(f"{text!r} needs a number behind the colon, as in zipf:1.1.")
        require(len(numbers.split(",")) == len(value), f"{text!r} has more numbers than {prior_name(entry)} takes.")
    require(size is not None or entry.records == "nothing", "--size is missing: how many possible records are there?")
    made: Prior = entry.make(value, size)
    require(size in (None, made.size), f"A size has no meaning with {entry.name}: its records are any number.")
    return made


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
    if text not in ("none", "all") and not Path(text).exists():
        fail(f"--knows is none, all, a CSV file or columns of the records ({', '.join(planned.table)}), got {text}.")
    return _knowledge(text, prior)


def _knowledge(text: str, prior: Prior) -> Knowledge | str:
    """none, all, or the groups in a file."""
    if text in ("none", "all"):
        return text
    table = read_csv(text)
    require("group" in table, f"{text} has no column `group`; it has {', '.join(table)}.", InputFileError)
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
