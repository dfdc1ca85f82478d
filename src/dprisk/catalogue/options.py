"""The options by which mechanisms, guarantees, priors, success rules, queries and noises are made, each once."""

from pathlib import Path

from dprisk.catalogue.register import Option


def _choice(name: str, meaning: str, *choices: str) -> Option:
    return Option(name, str, meaning, optional=True, choices=choices)


ALL = (
    Option("epsilon", float, "the privacy parameter; a larger one means weaker noise", 1.0),
    Option("p", float, "chance that the bit of the true record is on", 0.75),
    Option("q", float, "chance that the bit of any other record is on", 0.25),
    Option("subset_size", int, "how many records a report names; the best number if left out", optional=True),
    Option("hash_range", int, "how many values a record is hashed to", 4),
    _choice("hashes", "the hash functions: mixing ones, if left out, or polynomial ones", "mixing", "polynomial"),
    Option("threshold", float, "noisy numbers above this are reported; the best threshold if left out", optional=True),
    _choice("space", "distances on a line, if left out, or around a ring", "line", "ring"),
    _choice(
        "ends",
        "an output beyond the last record is moved there, if left out (clamp), or drawn again (truncate)",
        "clamp",
        "truncate",
    ),
    Option("sigma", float, "standard deviation of the noise, in the units of the records", 1.0),
    Option("matrix", Path, "a CSV file without header, or .npy: for each record a line with the chance of each output"),
    Option("delta", float, "chance that the promise of epsilon fails, such as 1e-5", 1e-5),
    Option("mu", float, "neighbouring data sets are as hard to tell apart as two Gaussian curves this far apart", 1.0),
    Option("rho", float, "the Renyi divergence of each order a is at most a times rho", 0.5),
    Option("noise_multiplier", float, "standard deviation of the noise, divided by the clipping norm", 1.0),
    Option("sample_rate", float, "chance that a record is in a batch", 1.0),
    Option("steps", int, "number of training steps", 100),
    _choice(
        "relation",
        "how neighbouring data sets differ: one record is replaced, or one is added or removed (DP-SGD, if left out)",
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
