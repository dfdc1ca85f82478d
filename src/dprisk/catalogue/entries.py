"""What can be named: mechanisms, guarantees, priors, success rules, and the queries and noises of release files."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dprisk import mechanisms
from dprisk.catalogue.options import OPTIONS
from dprisk.catalogue.register import Catalogue, Entry
from dprisk.errors import as_number, require
from dprisk.guarantees import DPSGD, ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, dp_sgd
from dprisk.guarantees.base import Relation
from dprisk.mechanisms.numbers.noise import Noise
from dprisk.releases.queries import Count, Histogram, Marginal, Mean, Sum
from dprisk.threat.density import Density
from dprisk.threat.prior import Prior
from dprisk.threat.success import Exact, Line, Ring


def _entry(
    name: str,
    title: str,
    explanation: str,
    build: Callable[..., Any],
    aliases: tuple[str, ...] = (),
    options: str | None = None,
    **more: Any,
) -> Entry:
    """An entry that takes all parameters of `build` that are options, unless it says which."""
    names = inspect.signature(build).parameters if options is None else options.split()
    taken = tuple(OPTIONS[name] for name in names if name in OPTIONS)
    return Entry(name, title, explanation, build, taken, aliases, **more)


def _exponential(size: int, epsilon: float, space: str = "line") -> mechanisms.Exponential:
    return (mechanisms.Exponential.on_ring if space == "ring" else mechanisms.Exponential.on_line)(size, epsilon)


def _exponential_on_interval(low: float, high: float, epsilon: float, space: str = "line") -> mechanisms.OnInterval:
    require(space == "line", "Numbers of an interval lie on a line; leave the space out.")
    return mechanisms.OnInterval.exponential(epsilon, low, high)


def _interval(start: float = 0.0, end: float = 1.0) -> Density:
    return Density.uniform(start, end)


def _beta(a: float, b: float, start: float = 0.0, end: float = 1.0) -> Density:
    return Density.beta(a, b, start, end)


def _matrix(matrix: Path) -> mechanisms.Matrix:
    return mechanisms.Matrix.from_file(matrix)


def _training(noise_multiplier: float, sample_rate: float, steps: int, relation: Relation = "add-remove") -> DPSGD:
    """Whose noise multiplier is to be found."""
    return DPSGD(sample_rate, steps, relation)


def _laplace_noise(scale: float | None = None, epsilon: float | None = None) -> Noise | Guarantee:
    return mechanisms.LaplaceNoise(scale) if scale is not None else PureDP(epsilon)  # type: ignore[arg-type]


def _gaussian_noise(
    sigma: float | None = None,
    mu: float | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
) -> Noise | Guarantee:
    if sigma is not None:
        return mechanisms.GaussianNoise(sigma)
    if epsilon is not None:
        require(as_number("delta", delta) > 0, f"No Gaussian noise keeps delta 0; delta must be above 0, got {delta}")
        return ApproxDP(epsilon, delta)
    return GaussianDP(mu) if mu is not None else ZCDP(rho)  # type: ignore[arg-type]


MECHANISMS = Catalogue(
    "mechanism",
    _entry(
        "grr",
        "Generalised randomised response",
        "Tells the true record with some chance, and otherwise any other one.",
        mechanisms.GRR,
        (
            *("randomised response", "RR", "k-RR", "k-ary RR", "k-ary randomised response", "d-RR", "direct encoding"),
            *("generalised RR", "Warner", "Warner's randomised response"),
        ),
    ),
    _entry(
        "sue",
        "Symmetric unary encoding",
        "A bit for each record, on for the true one; each is flipped with the same chance.",
        mechanisms.SUE,
        ("RAPPOR", "basic RAPPOR", "one-time RAPPOR", "basic one-time RAPPOR", "symmetric UE"),
    ),
    _entry(
        "oue",
        "Optimal unary encoding",
        "As symmetric unary encoding, with the chances that estimate frequencies best.",
        mechanisms.OUE,
        ("optimised unary encoding", "optimal UE", "optimised UE"),
    ),
    _entry(
        "ue",
        "Unary encoding",
        "A bit for each record, on with chance p for the true one and q for any other.",
        mechanisms.UnaryEncoding,
    ),
    _entry(
        "ss",
        "Subset selection",
        "Reports several records at once, more often than not with the true one among them.",
        mechanisms.SubsetSelection,
        ("subset", "w-SS", "ω-SS", "w-subset selection", "ω-subset selection", "k-subset mechanism"),
    ),
    _entry(
        "blh",
        "Binary local hashing",
        "Hashes the record to one of two values and reports that by randomised response.",
        mechanisms.BLH,
        ("binary LH",),
    ),
    _entry(
        "olh",
        "Optimal local hashing",
        "As binary local hashing, with the number of values that estimates frequencies best.",
        mechanisms.OLH,
        ("optimised local hashing", "optimal LH"),
    ),
    _entry(
        "local-hashing",
        "Local hashing",
        "As binary local hashing, with a number of values of your choice.",
        mechanisms.LocalHashing,
        ("LH",),
    ),
    _entry(
        "concrete-hashing",
        "Local hashing with real hash functions",
        "As local hashing, with hash functions that exist instead of ideal ones.",
        mechanisms.ConcreteHashing,
        ("concrete local hashing",),
    ),
    _entry(
        "she",
        "Summation with histogram encoding",
        "A number for each record, 1 for the true one and 0 otherwise, with Laplace noise on each.",
        mechanisms.SHE,
        ("histogram encoding", "HE"),
    ),
    _entry(
        "the",
        "Thresholding with histogram encoding",
        "As summation with histogram encoding, but tells only which numbers exceed a threshold.",
        mechanisms.THE,
        ("histogram encoding with a threshold",),
    ),
    _entry(
        "exponential",
        "Exponential mechanism",
        "Reports a record near the true one more often than one far away.",
        _exponential,
        ("EM",),
        records="spaced",
        numbers=_exponential_on_interval,
    ),
    _entry(
        "geometric",
        "Geometric noise kept in range",
        "Adds whole-number noise to one of the numbers 0, 1, 2, ... and stays among them.",
        mechanisms.Geometric,
        ("bounded geometric",),
        "epsilon ends",
        records="spaced",
    ),
    _entry(
        "discrete-laplace",
        "Discrete Laplace noise",
        "Adds whole-number Laplace noise to a record that is a whole number; without labels, to 0, 1, 2, ...",
        mechanisms.DiscreteLaplace,
        ("two-sided geometric", "integer Laplace"),
        records="places",
        options="epsilon",
    ),
    _entry(
        "discrete-gaussian",
        "Discrete Gaussian noise",
        "Adds whole-number Gaussian noise to a record that is a whole number; without labels, to 0, 1, 2, ...",
        mechanisms.DiscreteGaussian,
        ("discrete normal noise", "integer Gaussian"),
        records="places",
        options="sigma",
    ),
    _entry(
        "laplace",
        "Laplace noise",
        "Adds Laplace noise to a record that is a number; without labels, to 0, 1, 2, ...",
        mechanisms.Laplace,
        ("Laplacian", "Laplacian noise", "double exponential noise"),
        records="places",
        numbers=mechanisms.OnInterval.laplace,
        options="epsilon",
    ),
    _entry(
        "gaussian",
        "Gaussian noise",
        "Adds Gaussian noise to a record that is a number; without labels, to 0, 1, 2, ...",
        mechanisms.Gaussian,
        ("Gauss", "normal", "normal noise"),
        records="places",
        numbers=mechanisms.OnInterval.gaussian,
        options="sigma",
    ),
    _entry(
        "matrix",
        "Any table of probabilities",
        "The chance of each output for each record, from a file.",
        _matrix,
        ("channel", "channel matrix", "probability matrix"),
        records="nothing",
    ),
)

# Made of a few numbers, whatever the records are.
_promise = partial(_entry, records="nothing")

GUARANTEES = Catalogue(
    "guarantee",
    _promise(
        "pure",
        "Pure differential privacy",
        "Any output is at most e^epsilon times as likely for one data set as for a neighbouring one.",
        PureDP,
        ("DP", "differential privacy", "pure DP", "eps-DP", "epsilon-DP", "ε-DP", "eps", "epsilon"),
    ),
    _promise(
        "approx",
        "Approximate differential privacy",
        "As pure differential privacy, except with a chance of about delta.",
        ApproxDP,
        (
            *("approximate", "approx DP", "approximate DP", "ADP", "(eps, delta)", "(eps, delta)-DP"),
            *("(epsilon, delta)", "(epsilon, delta)-DP", "(ε, δ)", "(ε, δ)-DP"),
        ),
    ),
    _promise(
        "gaussian",
        "Gaussian differential privacy",
        "Neighbours are as hard to tell apart as two Gaussian curves at distance mu.",
        GaussianDP,
        ("Gaussian DP", "GDP", "f-GDP", "mu-GDP", "μ-GDP", "mu"),
    ),
    _promise(
        "zcdp",
        "Zero-concentrated differential privacy",
        "Renyi divergences grow at most linearly with their order, with slope rho.",
        ZCDP,
        ("concentrated", "concentrated DP", "CDP", "rho-zCDP", "ρ-zCDP", "zero-concentrated DP", "rho"),
    ),
    _promise(
        "dpsgd",
        "DP-SGD with Poisson sampling",
        "Training by many steps on random batches, each with clipped gradients and Gaussian noise.",
        dp_sgd,
        ("Opacus", "private SGD", "subsampled Gaussian"),
        unset=_training,
        options="noise_multiplier sample_rate steps relation",
    ),
)

PRIORS = Catalogue(
    "prior",
    _entry("uniform", "Uniform prior", "Every record is equally likely.", Prior.uniform),
    _entry("zipf", "Zipf prior", "The k-th record has weight k to the minus exponent.", Prior.zipf, ("power law",)),
    _entry(
        "geometric", "Geometric prior", "Each record is `ratio` times as likely as the one before it.", Prior.geometric
    ),
    _entry(
        "interval",
        "Any number of an interval",
        "Every number from start to end is equally likely; for noise on numbers, with a distance.",
        _interval,
        records="nothing",
    ),
    _entry(
        "beta",
        "Beta distribution on an interval",
        "Any number from start to end, distributed as beta(a, b); for noise on numbers, with a distance.",
        _beta,
        records="nothing",
    ),
    _entry(
        "file",
        "Prior from a file",
        "Named by its path: a CSV with columns `label` and either `probability`, summing to 1, or `count`.",
        Prior.from_csv,
        records="nothing",
        options="path",
    ),
)

SUCCESS = Catalogue(
    "success rule",
    _promise("exact", "Exactly the record", "The guess must be the record itself.", Exact, ("exactly",)),
    _promise(
        "line",
        "Near the record on a line",
        "The guess may be off by a distance; records that are numbers lie there, others at 0, 1, 2, ...",
        Line,
        ("within",),
    ),
    _promise(
        "ring",
        "Near the record on a ring",
        "As on a line, but the last record is next to the first, as for hours of the day.",
        Ring,
        ("circle",),
    ),
)

QUERIES = Catalogue(
    "query",
    _promise("count", "Count", "How many people have a value in a column.", Count),
    _promise("sum", "Sum", "The sum of a column of numbers.", Sum, ("total",)),
    _promise("mean", "Mean", "The mean of a column of numbers.", Mean, ("average",)),
    _promise(
        "histogram",
        "Histogram",
        "How many people have each value of a column, or lie between each two edges.",
        Histogram,
    ),
    _promise(
        "marginal",
        "Marginal",
        "How many people have each combination of values in some columns.",
        Marginal,
        ("contingency table", "crosstab"),
    ),
    plural="queries",
)

NOISES = Catalogue(
    "noise",
    _promise(
        "laplace",
        "Laplace noise",
        "By its scale, or by the epsilon that it keeps.",
        _laplace_noise,
        one_of=(("scale",), ("epsilon",)),
    ),
    _promise(
        "gaussian",
        "Gaussian noise",
        "By its standard deviation, or the least that keeps mu, rho, or epsilon with delta.",
        _gaussian_noise,
        ("normal",),
        one_of=(("sigma",), ("mu",), ("rho",), ("epsilon", "delta")),
    ),
)

REGISTERS = (MECHANISMS, GUARANTEES, PRIORS, SUCCESS, QUERIES, NOISES)
