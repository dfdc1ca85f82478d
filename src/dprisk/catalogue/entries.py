"""What can be named: mechanisms, guarantees, priors, success rules, and the queries and noises of release files."""

from functools import partial
from pathlib import Path

from dprisk.catalogue.options import OPTIONS
from dprisk.catalogue.register import Catalogue, Entry, Option
from dprisk.guarantees import DPSGD, ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, dp_sgd
from dprisk.guarantees.base import Relation
from dprisk.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SHE,
    SUE,
    THE,
    ConcreteHashing,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianNoise,
    Geometric,
    Laplace,
    LaplaceNoise,
    LocalHashing,
    Matrix,
    SubsetSelection,
    UnaryEncoding,
)
from dprisk.mechanisms.numbers.additive import Ends
from dprisk.mechanisms.numbers.noise import Noise
from dprisk.releases.queries import Count, Histogram, Marginal, Mean, Sum
from dprisk.threat.prior import Prior
from dprisk.threat.success import Exact, Line, Ring


def _options(names: str) -> tuple[Option, ...]:
    return tuple(OPTIONS[name] for name in names.split())


def _exponential(size: int, epsilon: float, space: str = "line") -> Exponential:
    return (Exponential.on_ring if space == "ring" else Exponential.on_line)(size, epsilon)


def _geometric(size: int, epsilon: float, ends: Ends = "clamp") -> Geometric:
    return Geometric(size, epsilon, ends=ends)


def _matrix(matrix: Path) -> Matrix:
    return Matrix.from_file(matrix)


def _training(noise_multiplier: float, sample_rate: float, steps: int, relation: Relation = "replace-one") -> DPSGD:
    """Whose noise multiplier is to be found."""
    return DPSGD(sample_rate, steps, relation)


def _laplace_noise(scale: float | None = None, epsilon: float | None = None) -> Noise | Guarantee:
    return LaplaceNoise(scale) if scale is not None else PureDP(epsilon)  # type: ignore[arg-type]


def _gaussian_noise(sigma: float | None = None, mu: float | None = None, rho: float | None = None) -> Noise | Guarantee:
    if sigma is not None:
        return GaussianNoise(sigma)
    return GaussianDP(mu) if mu is not None else ZCDP(rho)  # type: ignore[arg-type]


MECHANISMS = Catalogue(
    "mechanism",
    Entry(
        "grr",
        "Generalised randomised response",
        "Tells the true record with some chance, and otherwise any other one.",
        GRR,
        _options("epsilon"),
        ("randomised response", "RR", "k-RR", "k-ary randomised response", "direct encoding"),
    ),
    Entry(
        "sue",
        "Symmetric unary encoding",
        "A bit for each record, on for the true one; each is flipped with the same chance.",
        SUE,
        _options("epsilon"),
        ("RAPPOR", "basic RAPPOR", "symmetric UE"),
    ),
    Entry(
        "oue",
        "Optimal unary encoding",
        "As symmetric unary encoding, with the chances that estimate frequencies best.",
        OUE,
        _options("epsilon"),
        ("optimised unary encoding", "optimal UE"),
    ),
    Entry(
        "ue",
        "Unary encoding",
        "A bit for each record, on with chance p for the true one and q for any other.",
        UnaryEncoding,
        _options("p q"),
    ),
    Entry(
        "ss",
        "Subset selection",
        "Reports several records at once, more often than not with the true one among them.",
        SubsetSelection,
        _options("epsilon subset_size"),
        ("w-SS", "w-subset selection", "k-subset mechanism"),
    ),
    Entry(
        "blh",
        "Binary local hashing",
        "Hashes the record to one of two values and reports that by randomised response.",
        BLH,
        _options("epsilon"),
    ),
    Entry(
        "olh",
        "Optimal local hashing",
        "As binary local hashing, with the number of values that estimates frequencies best.",
        OLH,
        _options("epsilon"),
        ("optimised local hashing",),
    ),
    Entry(
        "local-hashing",
        "Local hashing",
        "As binary local hashing, with a number of values of your choice.",
        LocalHashing,
        _options("epsilon hash_range"),
        ("LH",),
    ),
    Entry(
        "concrete-hashing",
        "Local hashing with real hash functions",
        "As local hashing, with hash functions that exist instead of ideal ones.",
        ConcreteHashing,
        _options("epsilon hash_range hashes"),
        ("concrete local hashing",),
    ),
    Entry(
        "she",
        "Summation with histogram encoding",
        "A number for each record, 1 for the true one and 0 otherwise, with Laplace noise on each.",
        SHE,
        _options("epsilon"),
        ("histogram encoding",),
    ),
    Entry(
        "the",
        "Thresholding with histogram encoding",
        "As summation with histogram encoding, but tells only which numbers exceed a threshold.",
        THE,
        _options("epsilon threshold"),
    ),
    Entry(
        "exponential",
        "Exponential mechanism",
        "Reports a record near the true one more often than one far away.",
        _exponential,
        _options("epsilon space"),
        ("EM",),
        records="spaced",
    ),
    Entry(
        "geometric",
        "Geometric noise kept in range",
        "Adds whole-number noise to one of the numbers 0, 1, 2, ... and stays among them.",
        _geometric,
        _options("epsilon ends"),
        ("bounded geometric",),
        records="spaced",
    ),
    Entry(
        "discrete-laplace",
        "Discrete Laplace noise",
        "Adds whole-number Laplace noise to one of the numbers 0, 1, 2, ...",
        DiscreteLaplace,
        _options("epsilon"),
        ("two-sided geometric",),
        records="places",
    ),
    Entry(
        "discrete-gaussian",
        "Discrete Gaussian noise",
        "Adds whole-number Gaussian noise to one of the numbers 0, 1, 2, ...",
        DiscreteGaussian,
        _options("sigma"),
        records="places",
    ),
    Entry(
        "laplace",
        "Laplace noise",
        "Adds Laplace noise to a number between 0 and 1, the first and the last record.",
        Laplace,
        _options("epsilon"),
        records="places",
    ),
    Entry(
        "gaussian",
        "Gaussian noise",
        "Adds Gaussian noise to a number between 0 and 1, the first and the last record.",
        Gaussian,
        _options("sigma"),
        ("normal noise",),
        records="places",
    ),
    Entry(
        "matrix",
        "Any table of probabilities",
        "The chance of each output for each record, from a file.",
        _matrix,
        _options("matrix"),
        ("channel",),
        records="nothing",
    ),
)

# Made of a few numbers, whatever the records are.
_promise = partial(Entry, records="nothing")

GUARANTEES = Catalogue(
    "guarantee",
    _promise(
        "pure",
        "Pure differential privacy",
        "Any output is at most e^epsilon times as likely for one data set as for a neighbouring one.",
        PureDP,
        _options("epsilon relation"),
        ("pure DP", "eps-DP", "epsilon-DP", "ε-DP"),
    ),
    _promise(
        "approx",
        "Approximate differential privacy",
        "As pure differential privacy, except with a chance of about delta.",
        ApproxDP,
        _options("epsilon delta relation"),
        ("approximate", "approximate DP", "(eps, delta)", "(eps, delta)-DP", "(epsilon, delta)-DP", "(ε, δ)-DP"),
    ),
    _promise(
        "gaussian",
        "Gaussian differential privacy",
        "Neighbours are as hard to tell apart as two Gaussian curves at distance mu.",
        GaussianDP,
        _options("mu relation"),
        ("Gaussian DP", "GDP", "f-GDP", "mu-GDP"),
    ),
    _promise(
        "zcdp",
        "Zero-concentrated differential privacy",
        "Renyi divergences grow at most linearly with their order, with slope rho.",
        ZCDP,
        _options("rho relation"),
        ("concentrated", "concentrated DP", "rho-zCDP"),
    ),
    _promise(
        "dpsgd",
        "DP-SGD with Poisson sampling",
        "Training by many steps on random batches, each with clipped gradients and Gaussian noise.",
        dp_sgd,
        _options("noise_multiplier sample_rate steps relation"),
        ("noisy SGD", "private SGD"),
        unset=_training,
    ),
)

PRIORS = Catalogue(
    "prior",
    Entry("uniform", "Uniform prior", "Every record is equally likely.", Prior.uniform),
    Entry(
        "zipf",
        "Zipf prior",
        "The k-th record has weight k to the minus exponent.",
        Prior.zipf,
        _options("exponent"),
        ("power law",),
    ),
    Entry(
        "geometric",
        "Geometric prior",
        "Each record is `ratio` times as likely as the one before it.",
        Prior.geometric,
        _options("ratio"),
    ),
    Entry(
        "file",
        "Prior from a file",
        "Named by its path: a CSV with columns `label` and either `probability`, summing to 1, or `count`.",
        Prior.from_csv,
        _options("path"),
        records="nothing",
    ),
)

SUCCESS = Catalogue(
    "success rule",
    _promise("exact", "Exactly the record", "The guess must be the record itself.", Exact, (), ("exactly",)),
    _promise(
        "line",
        "Near the record on a line",
        "The guess may be off by a distance; records that are numbers lie there, others at 0, 1, 2, ...",
        Line,
        _options("within"),
        ("within",),
    ),
    _promise(
        "ring",
        "Near the record on a ring",
        "As on a line, but the last record is next to the first, as for hours of the day.",
        Ring,
        _options("within"),
        ("circle",),
    ),
)

QUERIES = Catalogue(
    "query",
    _promise("count", "Count", "How many people have a value in a column.", Count, _options("column value")),
    _promise("sum", "Sum", "The sum of a column of numbers.", Sum, _options("column low high"), ("total",)),
    _promise("mean", "Mean", "The mean of a column of numbers.", Mean, _options("column low high"), ("average",)),
    _promise(
        "histogram",
        "Histogram",
        "How many people have each value of a column, or lie between each two edges.",
        Histogram,
        _options("column categories edges"),
    ),
    _promise(
        "marginal",
        "Marginal",
        "How many people have each combination of values in some columns.",
        Marginal,
        _options("columns"),
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
        _options("scale epsilon"),
        one_of=True,
    ),
    _promise(
        "gaussian",
        "Gaussian noise",
        "By its standard deviation, or by the mu or rho that it keeps.",
        _gaussian_noise,
        _options("sigma mu rho"),
        ("normal",),
        one_of=True,
    ),
)

REGISTERS = (MECHANISMS, GUARANTEES, PRIORS, SUCCESS, QUERIES, NOISES)
