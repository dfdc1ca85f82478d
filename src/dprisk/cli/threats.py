"""Priors and knowledge as they are named on the command line."""

from pathlib import Path

from dprisk.cli.names import PRIORS
from dprisk.errors import InputFileError, ParameterError, ThreatError, fail, require
from dprisk.mechanisms import Matrix
from dprisk.tables import read_csv
from dprisk.threat.knowledge import Knowledge
from dprisk.threat.prior import Prior


def named_prior(text: str, size: int | None, matrix: Path | None, told_by: str = "--size") -> Prior:
    """A prior by its name, with a number behind a colon, or from a file; a matrix tells how many records there are.

    `told_by` is the option that the size was given by.
    """
    name, colon, number = text.partition(":")
    require(not text.startswith("uniform:"), "A uniform prior takes no number.")
    if name in PRIORS:
        if size is None and matrix is not None:
            size = Matrix.from_file(matrix).size
        known_size = fail("--size is missing: how many possible records are there?") if size is None else size
        return PRIORS[name](known_size, *([_float(number, text)] if colon else []))
    prior = prior_file(text, text)
    require(
        size is None or size == prior.size,
        f"{told_by} says {size} records, {text} has {prior.size}; leave {told_by} out, it follows from the file.",
    )
    return prior


def prior_file(text: str, path: str | Path, also: str = "") -> Prior:
    """The prior in a file, called `text` by the user; `also` names what else might have been meant there."""
    require(
        text == "" or Path(path).exists(),
        f"There is no file {text}, and a prior is {also}uniform, zipf:EXPONENT, geometric:RATIO or a CSV file.",
        InputFileError,
    )
    return Prior.from_csv(path)


def named_knowledge(text: str, prior: Prior) -> Knowledge | str:
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


def _float(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{whole!r} needs a number behind the colon, as in zipf:1.1.") from None
