"""The options by which mechanisms, guarantees, priors, success rules, queries and noises are made, each once."""

from pathlib import Path

from dprisk.catalogue.register import Option


def _choice(name: str, meaning: str, *choices: str) -> Option:
    return Option(name, str, meaning, optional=True, choices=choices)


ALL = (
    Option("epsilon", float, "privacy parameter: the larger, the weaker the noise", 1.0),
    Option("p", float, "chance that the bit of the true record is on", 0.75),
    Option("q", float, "chance that the bit of another record is on", 0.25),
    Option("subset_size", int, "records in a report; the best number for epsilon if left out", optional=True),
    Option("hash_range", int, "how many values a record is hashed to", 4),
    _choice("hashes", "hash functions: mixing, as libraries use (if left out), or polynomial", "mixing", "polynomial"),
    Option("threshold", float, "entries above it are reported; the one of least variance if left out", optional=True),
    _choice("space", "distances on a line (if left out) or around a ring", "line", "ring"),
    _choice(
        "ends",
        "outputs beyond the last record are moved there (clamp, if left out) or drawn again (truncate)",
        "clamp",
        "truncate",
    ),
    Option("sigma", float, "standard deviation of the noise", 1.0),
    Option("matrix", Path, "CSV file without header, or .npy: a line of output probabilities for each record"),
    Option("delta", float, "chance with which the promise of epsilon may fail, such as 1e-5", 1e-5),
    Option(
        "mu", float, "distance of two Gaussian curves that are as hard to tell apart as neighbouring data sets", 1.0
    ),
    Option("rho", float, "Renyi divergences of order a are at most a times rho", 0.5),
    Option("noise_multiplier", float, "standard deviation of the noise over the clipping norm", 1.0),
    Option("sample_rate", float, "chance that a record is in a batch", 1.0),
    Option("steps", int, "number of training steps", 100),
    _choice(
        "relation",
        "what neighbouring data sets differ by: replacing a record, or adding or removing one (DP-SGD, if left out)",
        "replace-one",
        "add-remove",
    ),
    Option("exponent", float, "how steep it is; 1 if left out", optional=True),
    Option("ratio", float, "between 0 and 1; 0.5 if left out", optional=True),
    Option("a", float, "first shape of a beta distribution", 2.0),
    Option("b", float, "second shape of a beta distribution", 5.0),
    Option("start", float, "least number of the interval; 0 if left out", optional=True),
    Option("end", float, "largest number of the interval; 1 if left out", optional=True),
    Option("path", Path, "name of the file"),
    Option("within", float, "largest distance of a guess that counts as right", 2.0),
    Option("column", str, "name of the column", "age"),
    Option("columns", list, "names of the columns", ("sex", "age")),
    Option("value", object, "the value that is counted", 30),
    Option("low", float, "smaller values are moved here first", optional=True),
    Option("high", float, "larger values are moved here first", optional=True),
    Option("categories", list, "the values to count; all that occur if left out", optional=True),
    Option("edges", list, "rising numbers between which values are counted", optional=True),
    Option("scale", float, "scale of Laplace noise, its mean size", 1.0),
)
OPTIONS = {option.name: option for option in ALL}
