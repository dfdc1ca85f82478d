"""Priors by name, and records as an entry of the catalogue takes them: for the command line and for files."""

from __future__ import annotations

import math
from typing import Any

from dprisk.catalogue.entries import PRIORS
from dprisk.catalogue.register import Entry
from dprisk.errors import ThreatError, fail, require
from dprisk.threat.prior import Prior


def prior_names() -> str:
    """How priors are written: a name, perhaps with a number behind a colon, or the path of a file."""
    return f"{', '.join(prior_name(entry) for entry in PRIORS if 'path' not in entry.takes)} or a CSV file"


def prior_name(entry: Entry) -> str:
    """A prior as it is written, with what may stand behind the colon."""
    return f"{entry.name}:{','.join(map(str.upper, entry.takes))}" if entry.takes else entry.name


def named_prior(text: str, size: int | None, how_many: str) -> Prior | None:
    """NAME or NAME:NUMBER,...; None if that is no name, but perhaps a file. `how_many` asks for a size."""
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
    require(size is not None or entry.records == "nothing", how_many)
    made: Prior = entry.make(value, size)
    require(size in (None, made.size), f"A size has no meaning with {entry.name}: its records are any number.")
    return made


def records_of(prior: Prior, entry: Entry) -> Any:
    """What an entry is told of the records: their number, where they lie, or the interval of which they are any number.

    Noise on numbers has the units of the labels.
    """
    if not math.isfinite(prior.size):
        return prior
    if entry.records != "places" or prior.labels is None:
        return prior.size
    for label in prior.labels:
        require(
            _is_number(label), f"{entry.name} adds noise to numbers; the label {label!r} is no number.", ThreatError
        )
    return prior.positions()


def _is_number(label: Any) -> bool:
    try:
        return math.isfinite(float(label))
    except (TypeError, ValueError):
        return False
