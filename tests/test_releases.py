"""Queries published with noise: answers against the definition, exact risks against naive ones, files, wrong input."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprisk import (
    ZCDP,
    ApproxDP,
    Gaussian,
    GaussianDP,
    Laplace,
    Line,
    Mechanism,
    Prior,
    PureDP,
    Threat,
    WorstCase,
    assess,
    calibrate,
    release,
)
from dprisk.attacks import estimate
from dprisk.comparisons import Comparisons
from dprisk.errors import DpriskError
from dprisk.guarantees import RenyiDP
from dprisk.mechanisms import GRR, SHE, GaussianNoise, LaplaceNoise, OnAttribute, Product, VectorGaussian, VectorLaplace
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.numbers.noise import DensityNoise
from dprisk.releases import Count, Histogram, Marginal, Mean, Query, Sum
from dprisk.types import FloatArray, IntArray
from tests import naive
from tests.strategies import partitions, priors
from tests.typed import run

OTHERS: dict[str, list[Any]] = {
    "sex": ["f", "m", "f", "f", "m", "f"],
    "age": [30, 71, 45, 45, 18, 104],
    "illness": ["flu", "cold", "flu", "asthma", "flu", "cold"],
}
RECORDS: dict[str, list[Any]] = {
    "sex": ["m", "f", "m", "f"],
    "age": [20, 45, 90, 95],
    "illness": ["flu", "cold", "measles", "flu"],
}
NOISE = LaplaceNoise(1.5)


# Answers


def with_record(record: int) -> dict[str, list[Any]]:
    return {name: [*values, RECORDS[name][record]] for name, values in OTHERS.items()}


def count_rows(table: dict[str, list[Any]], names: list[str], cells: list[tuple[Any, ...]]) -> list[int]:
    rows = list(zip(*(table[name] for name in names), strict=True))
    return [rows.count(cell) for cell in cells]


ILLNESSES = [("asthma",), ("cold",), ("flu",), ("measles",)]
BOTH = [(sex, *illness) for sex in "fm" for illness in ILLNESSES]
QUERIES: list[tuple[Query, Callable[[dict[str, list[Any]]], Any]]] = [
    (Count("illness", "flu"), lambda table: table["illness"].count("flu")),
    (Count("age", lambda age: age >= 45), lambda table: sum(age >= 45 for age in table["age"])),
    (Sum("age"), lambda table: sum(table["age"])),
    (Sum("age", low=21, high=90), lambda table: sum(min(max(age, 21), 90) for age in table["age"])),
    (Sum("age", high=90), lambda table: sum(min(age, 90) for age in table["age"])),
    (Mean("age"), lambda table: sum(table["age"]) / 7),
    (Mean("age", low=50), lambda table: sum(max(age, 50) for age in table["age"]) / 7),
    (Histogram("illness"), lambda table: count_rows(table, ["illness"], ILLNESSES)),
    (
        Histogram("illness", categories=["flu", "measles", "cold", "asthma", "gout"]),
        lambda table: [table["illness"].count(name) for name in ("flu", "measles", "cold", "asthma", "gout")],
    ),
    (Histogram("age", edges=[0, 45, 90, 104]), lambda table: np.histogram(table["age"], [0, 45, 90, 104])[0]),
    (Marginal(["sex", "illness"]), lambda table: count_rows(table, ["sex", "illness"], BOTH)),
]


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(("query", "by_hand"), QUERIES, ids=lambda query: getattr(query, "__class__", query).__name__)
def test_answers_are_those_with_the_record_added(
    frame: Callable[[Any], Any], query: Query, by_hand: Callable[[dict[str, list[Any]]], Any]
) -> None:
    expected = np.array([by_hand(with_record(record)) for record in range(4)], dtype=float)
    assert query.answers(frame(OTHERS), frame(RECORDS)) == pytest.approx(expected, abs=1e-12)
    mechanism = release(query, frame(OTHERS), frame(RECORDS), NOISE)
    called = release(lambda table: by_hand({name: list(table[name]) for name in OTHERS}), frame(OTHERS), RECORDS, NOISE)
    for made in (mechanism, called):
        assert answers(made) == pytest.approx(expected, abs=1e-12)
        assert made.labels == (("m", 20, "flu"), ("f", 45, "cold"), ("m", 90, "measles"), ("f", 95, "flu"))


def answers(mechanism: Mechanism) -> FloatArray:
    if isinstance(mechanism, Additive):
        return mechanism.positions
    assert isinstance(mechanism, VectorLaplace | VectorGaussian)
    return mechanism.means


def test_a_function_sees_the_kind_of_table_it_was_given() -> None:
    ages = release(lambda frame: frame["age"].mean(), pd.DataFrame(OTHERS), pd.DataFrame(RECORDS), NOISE)
    assert answers(ages) == pytest.approx(Mean("age").answers(OTHERS, RECORDS))
    ages = release(lambda frame: frame["age"].mean(), pl.DataFrame({"age": OTHERS["age"]}), RECORDS["age"], NOISE)
    assert answers(ages) == pytest.approx(Mean("age").answers(OTHERS, RECORDS))


def test_cells_are_in_the_order_of_the_answer() -> None:
    assert Marginal(["sex", "illness"]).cells(OTHERS, RECORDS) == BOTH
    assert Histogram("age", edges=[0, 45, 104]).cells(OTHERS, RECORDS) == [(0, 45), (45, 104)]


def test_a_query_says_what_it_clips() -> None:
    told = [query.describe() for query in (Sum("age", 21, 90), Mean("age", high=90), Count("illness", "flu"))]
    assert told == ["sum of age, clipped to [21, 90]", "mean of age, clipped to [-inf, 90]", "count of illness = flu"]
    assert Marginal(["sex", "age"]).describe() == "marginal of sex, age"


def test_nobody_else_is_fine() -> None:
    nobody: dict[str, list[Any]] = {"age": [], "illness": []}
    assert answers(release(Mean("age"), nobody, [20, 30], NOISE)).tolist() == [20, 30]
    assert answers(release(Histogram("illness"), nobody, ["b", "a"], NOISE)).tolist() == [[0, 1], [1, 0]]


# The noise that keeps a guarantee


@pytest.mark.parametrize(
    ("query", "guarantee", "size"),
    [
        (Count("illness", "flu"), PureDP(0.5), 2.0),
        (Sum("age"), PureDP(0.5), 150.0),
        (Sum("age", 0, 100), PureDP(0.5), 200.0),
        (Mean("age", 0, 100), PureDP(0.5), 200 / 7),
        (Histogram("illness"), PureDP(0.5), 4.0),
        (Histogram("illness"), GaussianDP(0.5), 2 * math.sqrt(2)),
        (Histogram("illness"), ZCDP(0.125), 2 * math.sqrt(2)),
        (Sum("age"), ZCDP(0.125), 150.0),
    ],
)
def test_noise_keeps_a_guarantee(query: Query, guarantee: Any, size: float) -> None:
    mechanism = release(query, OTHERS, RECORDS, guarantee)
    if isinstance(mechanism, Laplace | VectorLaplace):
        assert mechanism.scale == pytest.approx(size, rel=1e-12)
        assert mechanism.epsilon <= guarantee.epsilon * (1 + 1e-12)
    else:
        assert isinstance(mechanism, Gaussian | VectorGaussian)
        assert mechanism.sigma == pytest.approx(size, rel=1e-12)
        assert mechanism.guarantee().delta_at(1.0) <= GaussianDP(0.5).delta_at(1.0) * (1 + 1e-9)


@pytest.mark.slow
@settings(max_examples=50)
@given(epsilon=st.floats(0, 50), exponent=st.floats(-90, -0.05))
def test_approximate_dp_gets_the_least_gaussian_noise(epsilon: float, exponent: float) -> None:
    """Balle and Wang 2018, Theorem 8, to 60 digits: the noise keeps delta, and a millionth less does not."""
    delta = 10**exponent
    mechanism = release(Count("illness", "flu"), OTHERS, RECORDS, ApproxDP(epsilon, delta))
    assert isinstance(mechanism, Gaussian)
    with mpmath.workdps(60):

        def profile(sigma: mpmath.mpf) -> mpmath.mpf:
            half, far = 1 / (2 * sigma), epsilon * sigma
            return mpmath.ncdf(half - far) - mpmath.exp(epsilon) * mpmath.ncdf(-half - far)

        sigma = mpmath.mpf(mechanism.sigma)
        assert profile(sigma) <= delta
        assert epsilon < 1e-6 or exponent < -12 or profile(sigma * (1 - mpmath.mpf("1e-6"))) > delta


def test_approximate_dp_as_in_the_literature() -> None:
    """The analytic Gaussian mechanism at epsilon 1, delta 1e-5, sensitivity 1; without delta it is Laplace noise."""
    mechanism = release(Count("illness", "flu"), OTHERS, RECORDS, ApproxDP(1.0, 1e-5))
    assert isinstance(mechanism, Gaussian)
    assert mechanism.sigma == pytest.approx(3.730632, abs=1e-6)
    assert isinstance(release(Count("illness", "flu"), OTHERS, RECORDS, ApproxDP(1.0)), Laplace)
    assert isinstance(release(Histogram("illness"), OTHERS, RECORDS, ApproxDP(1.0, 1e-5)), VectorGaussian)


def test_a_given_sensitivity_is_used_if_it_is_large_enough() -> None:
    mechanism = release(Sum("age"), OTHERS, RECORDS, PureDP(1.0), sensitivity=120)
    assert isinstance(mechanism, Laplace)
    assert mechanism.scale == 120
    assert mechanism.epsilon == pytest.approx(75 / 120)
    with pytest.raises(DpriskError, match=r"sensitivity of 70 will not do: two records change the answer by 75 \(L1\)"):
        release(Sum("age"), OTHERS, RECORDS, PureDP(1.0), sensitivity=70)
    with pytest.raises(DpriskError, match=r"by 1\.414213562 \(L2\)"):
        release(Histogram("illness"), OTHERS, RECORDS, GaussianDP(1.0), sensitivity=1)


def test_outputs_are_kept_in_an_interval() -> None:
    clamped = release(Count("illness", "flu"), OTHERS, RECORDS, PureDP(1.0), interval=(0, 7), ends="truncate")
    assert isinstance(clamped, Laplace)
    assert (clamped.interval, clamped.ends, clamped.scale) == ((0.0, 7.0), "truncate", 1.0)
    gauss = release(Sum("age"), OTHERS, RECORDS, GaussianNoise(9.0), interval=(0, 1000))
    assert isinstance(gauss, Gaussian)
    assert (gauss.interval, gauss.ends, gauss.sigma) == ((0.0, 1000.0), "clamp", 9.0)


# Exact risks


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_a_noisy_histogram_is_histogram_encoding(epsilon: float) -> None:
    """Each record its own cell, in any order, among cells that nobody might have."""
    categories = ["flu", "measles", "cold", "asthma", "gout"]
    universe, threat = ["gout", "flu", "cold", "measles"], Threat(Prior.uniform(4))
    mechanism = release(Histogram("illness", categories), OTHERS, universe, PureDP(epsilon))
    risk, same = assess(mechanism, threat), assess(SHE(4, epsilon), threat)
    assert risk.exact
    assert (risk.advantage, risk.success) == pytest.approx((same.advantage, same.success), rel=1e-12)
    measured = estimate.estimate_best(mechanism, threat, np.random.default_rng(1), 40_000, 0.001)
    low, high = measured.advantage_interval
    assert low <= risk.advantage <= high


@pytest.mark.parametrize(
    ("means", "epsilon"),
    [
        ([[3.0, 0.0], [0.0, 3.0]], 6.0),
        ([[1.0, 1.0], [0.0, 0.0]], 2.0),
        ([[5.0, 1.0, 2.0], [4.0, 1.0, 3.0], [4.0, 0.0, 2.0]], 2.0),
        ([[5.0, 7.0, 1.0, 2.0], [4.0, 7.0, 1.0, 3.0], [4.0, 7.0, 2.0, 2.0]], 2.0),
    ],
)
def test_unit_vectors_up_to_origin_order_and_sign_are_found(means: list[list[float]], epsilon: float) -> None:
    same = VectorLaplace(means, 1.0).sufficient()
    assert isinstance(same, SHE)
    assert (same.size, same.epsilon) == (len(means), epsilon)


@pytest.mark.parametrize(
    "means",
    [
        [[1.0, 0.0], [0.0, 2.0]],  # steps differ
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]],  # one record has no cell
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]],  # two share one
        [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]],  # one has two
        [[0.0, 1.0, 2.0], [1.0, 2.0, 0.0], [2.0, 0.0, 1.0]],  # three values each
    ],
)
def test_other_vectors_are_no_histogram_encoding(means: list[list[float]]) -> None:
    assert isinstance(VectorLaplace(means, 1.0).sufficient(), VectorLaplace)


def in_bins(positions: FloatArray, noise: LaplaceNoise | GaussianNoise, bins: int = 3000) -> FloatArray:
    """The channel that tells only in which narrow bin the output lies."""
    edges = np.linspace(positions.min() - 8 * noise.width, positions.max() + 8 * noise.width, bins)
    edges = np.r_[-np.inf, np.unique(np.r_[edges, positions]), np.inf]
    below = np.exp(noise.log_below(edges[None, :] - positions[:, None]))
    return np.diff(below, axis=1)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    weights=priors(5),
    groups=partitions(5),
    sick=st.lists(st.booleans(), min_size=5, max_size=5),
    noise=st.sampled_from([LaplaceNoise(0.7), GaussianNoise(0.7)]),
    within=st.sampled_from([None, 1.0]),
)
def test_records_with_the_same_answer_have_the_right_risk(
    weights: FloatArray, groups: IntArray, sick: list[bool], noise: Any, within: float | None
) -> None:
    """A count has two answers only: against theorem 4.3 written out over narrow bins."""
    records = {"number": list(range(5)), "sick": sick}
    mechanism = release(Count("sick", True), {"sick": [True, False]}, records, noise)
    threat = Threat(Prior(weights, mechanism.labels), groups, None if within is None else Line(within, np.arange(5)))
    place = np.arange(5)
    success = np.abs(place[:, None] - place) <= (within or 0)
    channel = in_bins(answers(mechanism), noise)
    risk = assess(mechanism, threat)
    assert risk.exact
    expected = naive.theorem_4_3(channel, weights, threat.knows.groups, success)
    assert (risk.advantage, risk.success) == pytest.approx(expected, abs=1e-5)
    assert weights @ risk.average_attacker_by_record == pytest.approx(risk.advantage, abs=1e-9)


def test_two_cells_shared_by_many_records() -> None:
    """ReRo is the integral of the larger density over the number of records, (1 + total variation) / m."""
    records = {"age": list(range(5)), "ill": ["yes", "no", "no", "no", "yes"]}
    for noise, variation in (
        (LaplaceNoise(2.0), SHE(2, 1.0).total_variation),
        (GaussianNoise(2.0), GaussianDP(math.sqrt(2) / 2).total_variation),
    ):
        risk = assess(release(Histogram("ill"), {"ill": ["no"]}, records, noise), Threat(Prior.uniform(5)))
        assert risk.exact
        assert (risk.advantage, risk.success) == pytest.approx((variation / 5, (1 + variation) / 5), abs=1e-9)


@pytest.mark.parametrize("noise", [LaplaceNoise(1.0), GaussianNoise(1.0)])
def test_cells_shared_by_some_records_agree_with_the_estimate(noise: Any) -> None:
    records = {"age": list(range(7)), "ill": ["a", "a", "b", "c", "c", "c", "d"]}
    mechanism, threat = release(Histogram("ill"), {"ill": ["a"]}, records, noise), Threat(Prior.uniform(7))
    risk = assess(mechanism, threat)
    assert risk.exact
    measured = estimate.estimate_best(mechanism, threat, np.random.default_rng(2), 40_000, 0.001)
    for name in ("advantage", "success"):
        low, high = getattr(measured, f"{name}_interval")
        assert low <= getattr(risk, name) <= high


def test_noise_is_calibrated_to_a_release() -> None:
    mechanism = release(Histogram("illness"), OTHERS, ["flu", "cold", "asthma"], PureDP(1.0))
    prior = Prior.uniform(3, mechanism.labels)
    found = calibrate(mechanism, Threat(prior), advantage=0.05)
    assert assess(SHE(3, found.value), Threat(prior)).advantage == pytest.approx(0.05, abs=1e-6)


# Labels and threats


@pytest.mark.parametrize("guarantee", [PureDP(1.0), GaussianDP(1.0)])
@pytest.mark.parametrize("query", [Histogram("illness"), Count("illness", "flu")])
def test_a_prior_over_other_records_is_refused(query: Query, guarantee: Any) -> None:
    mechanism = release(query, OTHERS, ["flu", "cold", "asthma"], guarantee)
    other = Threat(Prior.uniform(3, ["cold", "flu", "asthma"]))
    with pytest.raises(DpriskError, match="not the prior's in the same order: 'flu' here is 'cold' there"):
        assess(mechanism, other)
    if isinstance(guarantee, PureDP):
        assert mechanism.with_parameter(2.0).labels == mechanism.labels
    with pytest.raises(DpriskError, match="2 labels for 3 records"):
        mechanism.labelled(["flu", "cold"])


def test_the_data_give_the_prior() -> None:
    mechanism = release(Histogram("illness"), OTHERS, ["measles", "flu", "cold", "asthma"], PureDP(1.0))
    prior = Prior.from_column(OTHERS["illness"], mechanism.labels)
    assert prior.to_dict() == pytest.approx({"measles": 0, "flu": 1 / 2, "cold": 1 / 3, "asthma": 1 / 6})
    assert assess(mechanism, Threat(prior), runs=2000).baseline == 0.5
    with pytest.raises(DpriskError, match=r"\['asthma'\], which is not among the labels"):
        Prior.from_column(OTHERS["illness"], ["flu", "cold"])


def test_the_table_of_a_threat_is_a_universe() -> None:
    threat = Threat.attributes(OTHERS, known=["sex"], secret=["illness"])
    mechanism = release(Count("illness", "flu"), OTHERS, threat.table, PureDP(2.0))
    risk = assess(mechanism, threat)
    assert risk.exact
    assert 0 < risk.advantage < 1
    with pytest.raises(DpriskError, match="not made from a table"):
        _ = Threat(Prior.uniform(3)).table


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: release(Histogram("job"), OTHERS, RECORDS, NOISE), "needs one column 'job'; it has 'sex'"),
        (lambda: release(Sum("age"), OTHERS, {"illness": ["flu"]}, NOISE), "needs one column 'age'"),
        (lambda: release(Sum("sex"), OTHERS, RECORDS, NOISE), "'sex' must hold numbers, but holds 'f'"),
        (lambda: release(Sum("age"), OTHERS, ["20", "30"], NOISE), "must hold numbers, but holds '20'"),
        (lambda: release(Sum("age"), OTHERS, [20, math.inf], NOISE), "missing or infinite values"),
        (lambda: release(Sum("age"), {"age": [1.0, math.nan]}, [20, 30], NOISE), "missing or infinite values"),
        (lambda: release(Sum("age"), OTHERS, [20, 1e60], NOISE), "some above 1e50"),
        (lambda: release(Sum(["age"]), OTHERS, [20, 30], NOISE), r"needs one column \['age'\]"),  # type: ignore[arg-type]
        (lambda: release(Sum("age"), OTHERS, [], NOISE), "universe is empty"),
        (lambda: release(Sum("age"), OTHERS, {}, NOISE), "universe has no columns"),
        (lambda: release(Sum("age"), OTHERS, [20, 30, 20], NOISE), r"lists the record \[20\] twice"),
        (lambda: release(Sum("age"), OTHERS, [[20], [30]], NOISE), "plain values"),
        (lambda: release(Sum("age"), OTHERS, [20, None], NOISE), "universe has missing values"),
        (lambda: release(Sum("age"), OTHERS, 20, NOISE), "A list of values is needed"),
        (lambda: release(Sum("age"), [30, 40], [20], NOISE), "A table is a data frame or a mapping"),
        (lambda: release(Marginal(["sex", "age"]), OTHERS, [20], NOISE), "looks at 2 columns"),
        (lambda: release(Count("illness", "Flu"), OTHERS, RECORDS, NOISE), "No record has 'Flu'"),
        (lambda: Sum("age", low=9, high=3), "low must be below high"),
        (lambda: Sum("age", low=math.nan), "low must be finite"),
        (lambda: Sum("age", low="young"), "low must be a number"),  # type: ignore[arg-type]
        (lambda: Histogram("age", ["a"], [1, 2]), "categories or edges, not both"),
        (lambda: Histogram("age", ["a", "a"]), r"category \['a'\] is listed twice"),
        (lambda: Histogram("age", []), "at least one value"),
        (lambda: Histogram("age", edges=[3, 2]), "at least two rising numbers"),
        (lambda: Marginal([]), "at least one column"),
        (lambda: Marginal(["sex", "sex"]), "each column once"),
        (
            lambda: release(Histogram("illness", ["flu", "cold"]), OTHERS, RECORDS, NOISE),
            r"\['measles'\] in the column 'illness' is none of the categories 'flu', 'cold'",
        ),
        (lambda: release(Histogram("age", edges=[0, 95]), OTHERS, RECORDS, NOISE), r"holds \[104.0\], outside"),
        (lambda: release(Histogram("age"), OTHERS, ["20"], NOISE), r"\[30\] in the data and \['20'\] in the universe"),
        (lambda: release(Sum("age"), OTHERS, RECORDS, NOISE, sensitivity=3), "no meaning for a given noise"),
        (lambda: release(Sum("age"), OTHERS, RECORDS, RenyiDP([2.0], [1.0])), "No noise is known here"),
        (lambda: release(Sum("age"), OTHERS, RECORDS, PureDP(0.0)), "it would be infinite"),
        (lambda: release(Sum("age"), OTHERS, RECORDS, PureDP(1.0, "add-remove")), "to_replace_one"),
        (lambda: release(Sum("age"), OTHERS, [30], PureDP(1.0)), "There is only one possible record"),
        (lambda: release(Count("sex", "f"), OTHERS, ["m", "d"], PureDP(1.0)), "the same for every record"),
        (lambda: release(Sum("age"), OTHERS, RECORDS, "laplace"), "LaplaceNoise"),  # type: ignore[arg-type]
        (lambda: release(Sum("age"), OTHERS, RECORDS, DensityNoise(logistic, logistic_below)), "LaplaceNoise"),
        (lambda: release(Histogram("illness"), OTHERS, RECORDS, NOISE, interval=(0, 9)), "with one number"),
        (lambda: release("sum", OTHERS, RECORDS, NOISE), "or a function is needed"),  # type: ignore[arg-type]
        (lambda: release(len, OTHERS, {"sex": ["f"]}, NOISE), r"the universe lacks \['age'\]"),
        (lambda: release(lambda table: "many", OTHERS, RECORDS, NOISE), "must be numbers"),
        (lambda: release(lambda table: math.nan, OTHERS, RECORDS, NOISE), "a finite number"),
    ],
)
def test_wrong_input_gets_one_clear_sentence(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        wrong()


def logistic(x: FloatArray) -> FloatArray:
    return np.asarray(1 / (4 * np.cosh(x / 2) ** 2))


def logistic_below(x: FloatArray) -> FloatArray:
    return np.asarray((1 + np.tanh(x / 2)) / 2)


# The command


CSV = "sex,age,illness\nf,30,flu\nm,71,cold\nf,45,flu\nf,45.50,asthma\nm,18,flu\n"
FILE: dict[str, Any] = {
    "data": "data.csv",
    "query": {"kind": "histogram", "column": "illness"},
    "universe": {"columns": ["illness"]},
    "noise": {"kind": "laplace", "epsilon": 1.0},
}
AGES = {"query": {"kind": "sum", "column": "age", "low": 18, "high": 90}, "universe": {"range": [20, 60], "step": 10}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.csv").write_text(CSV)
    (tmp_path / "ages.csv").write_text("age\n20\n30\n40.5\n")
    (tmp_path / "prior.csv").write_text("label,count\nasthma,1\ncold,2\nflu,7\n")
    (tmp_path / "groups.csv").write_text("label,group\nflu,x\ncold,x\nasthma,y\n")
    (tmp_path / "matching.csv").write_text("illness\n1\n")
    return tmp_path


def write(folder: Path, changes: dict[str, Any]) -> str:
    path = folder / "release.json"
    path.write_text(json.dumps({key: value for key, value in (FILE | changes).items() if value is not None}))
    return str(path)


PEOPLE: dict[str, list[Any]] = {
    "sex": ["f", "m", "f", "f", "m"],
    "age": [30.0, 71.0, 45.0, 45.5, 18.0],
    "illness": ["flu", "cold", "flu", "asthma", "flu"],
}
ILL = ("asthma", "cold", "flu")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "options", "expected"),
    [
        ({}, "--prior uniform", lambda: assess(SHE(3, 1.0), Threat(Prior.uniform(3)))),
        (
            {"query": {"kind": "count", "column": "illness", "value": "flu"}, "prior": "prior.csv"},
            "--knows {folder}/groups.csv",
            lambda: assess(Laplace([3, 3, 4], scale=1.0), Threat(Prior([0.1, 0.2, 0.7]), ["y", "x", "x"])),
        ),
        (
            {"query": {"kind": "count", "column": "illness", "value": "flu"}, "prior": "data"},
            "--knows all",
            lambda: assess(Laplace([3, 3, 4], scale=1.0), Threat.membership(Prior([0.2, 0.2, 0.6]))),
        ),
        (
            {"query": {"kind": "count", "column": "illness", "value": "flu"}},
            "",
            lambda: assess(Laplace([3, 3, 4], scale=1.0), Threat(Prior([0.2, 0.2, 0.6]))),
        ),
        (
            {
                "query": {"kind": "count", "column": "illness", "value": "flu"},
                "noise": {"kind": "gaussian", "epsilon": 1.0, "delta": 1e-5},
            },
            "",
            lambda: assess(
                release(Count("illness", "flu"), PEOPLE, ILL, ApproxDP(1.0, 1e-5)), Threat(Prior([0.2, 0.2, 0.6], ILL))
            ),
        ),
        (
            AGES | {"interval": [0, 500], "ends": "truncate"},
            "--within 10 --prior uniform",
            lambda: assess(
                Laplace(np.arange(229.5, 270, 10), scale=72.0, interval=(0, 500), ends="truncate"),
                Threat(Prior.uniform(5), success=Line(10, [20, 30, 40, 50, 60])),
            ),
        ),
        (
            AGES | {"query": {"kind": "Average", "column": "age"}, "universe": {"file": "ages.csv"}},
            "--prior zipf:1 --within 10",
            lambda: assess(
                Laplace([0, 10, 20.5], epsilon=1.0), Threat(Prior.zipf(3), success=Line(10, [20, 30, 40.5]))
            ),
        ),
        (
            {"query": {"kind": "count", "column": "sex", "value": "f"}, "universe": "data"},
            "--knows sex,illness --prior data",
            lambda: assess(
                release(Count("sex", "f"), PEOPLE, threat_on("sex", "illness").table, PureDP(1.0)),
                threat_on("sex", "illness"),
            ),
        ),
        (
            {"noise": {"kind": "gaussian", "mu": 0.5}, "universe": {"values": ["flu", "gout"]}},
            "--prior uniform",
            lambda: assess(Gaussian([0, 1], sigma=2.0), Threat(Prior.uniform(2))),
        ),
        (
            {
                "query": {"kind": "marginal", "columns": ["sex", "illness"]},
                "universe": {"columns": ["sex", "illness"]},
                "noise": {"kind": "laplace", "epsilon": 1.0, "sensitivity": 4},
            },
            "--prior uniform",
            lambda: assess(SHE(4, 0.5), Threat(Prior.uniform(4))),
        ),
    ],
)
def test_the_command_tells_what_the_library_computes(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    changes: dict[str, Any],
    options: str,
    expected: Callable[[], Any],
) -> None:
    path = write(folder, changes)
    arguments = ["assess", "--release", path, *options.format(folder=folder).split()]
    code, out, err = run(capsys, monkeypatch, *arguments, "--json")
    assert (code, err) == (0, "")
    told, risk = json.loads(out), expected()
    for key in ("advantage", "success", "baseline"):
        assert told[key] == pytest.approx(getattr(risk, key), abs=1e-9)
    assert told["exact"] is True
    assert told["inputs"]["release"] == path
    assert told["inputs"]["size"] == risk.threat.prior.size
    assert told["inputs"]["prior"]
    assert "others and one of" in run(capsys, monkeypatch, *arguments)[1]


@pytest.mark.parametrize(
    ("changes", "options", "about"),
    [
        (
            {},
            "",
            "how often each occurs among them; Laplace noise, the least that keeps PureDP(epsilon=1)",
        ),
        ({}, "--prior uniform", "one of 3 possible records; the prior is uniform; Laplace noise"),
        ({"prior": "prior.csv"}, "", "the prior is prior.csv"),
        (
            {"noise": {"kind": "gaussian", "epsilon": 1, "delta": 1e-5}},
            "",
            "; Gaussian noise, the least that keeps ApproxDP(epsilon=1, delta=1e-05)",
        ),
    ],
)
def test_the_answer_says_which_prior_and_which_noise(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    changes: dict[str, Any],
    options: str,
    about: str,
) -> None:
    count = {"query": {"kind": "count", "column": "illness", "value": "flu"}}
    arguments = ["assess", "--release", write(folder, count | changes), *options.split()]
    assert about in run(capsys, monkeypatch, *arguments)[1]
    assert about in json.loads(run(capsys, monkeypatch, *arguments, "--json")[1])["about"]


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({"query": {"kind": "mean", "column": "age"}}, True),
        ({"query": {"kind": "sum", "column": "age", "low": 0}}, True),
        ({"query": {"kind": "mean", "column": "age", "low": 18, "high": 90}}, False),
        ({"query": {"kind": "mean", "column": "age"}, "universe": {"range": [18, 90]}, "prior": "uniform"}, False),
        (
            {
                "query": {"kind": "sum", "column": "age"},
                "noise": {"kind": "laplace", "epsilon": 1, "sensitivity": 90},
            },
            False,
        ),
        ({"universe": {"columns": ["illness"]}}, False),
    ],
)
def test_a_range_that_comes_from_the_data_is_warned_of(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    changes: dict[str, Any],
    warned: bool,
) -> None:
    path = write(folder, {"universe": {"columns": ["age"]}} | changes)
    told = "The range, 18 to 71, comes from the data; the guarantee holds only if it is public."
    for command in ("assess", "calibrate --advantage 0.1"):
        code, shown, wrong = run(capsys, monkeypatch, *command.split(), "--release", path, "--json")
        assert (code, wrong) == (0, "")
        assert (told in json.loads(shown)["about"]) is warned


@pytest.mark.parametrize(
    ("changes", "options", "expected"),
    [
        (
            {"query": {"kind": "count", "column": "illness", "value": "flu"}},
            "--advantage 0.05",
            lambda: calibrate(
                release(Count("illness", "flu"), PEOPLE, ILL, PureDP(1.0)),
                Threat(Prior.from_column(PEOPLE["illness"], ILL)),
                advantage=0.05,
            ),
        ),
        (
            {"noise": {"kind": "gaussian", "sigma": 3.0}},
            "--to-epsilon 1 --to-delta 1e-5 --prior uniform",
            lambda: calibrate(
                release(Histogram("illness"), PEOPLE, ILL, GaussianNoise(9.0)),
                Threat(Prior.uniform(3, ILL)),
                epsilon=(1.0, 1e-5),
            ),
        ),
        (
            {},
            "--advantage 0.05",
            lambda: calibrate(
                release(Histogram("illness"), PEOPLE, ILL, PureDP(3.0)),
                Threat(Prior.from_column(PEOPLE["illness"], ILL)),
                advantage=0.05,
            ),
        ),
    ],
)
def test_a_release_is_calibrated(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    changes: dict[str, Any],
    options: str,
    expected: Callable[[], Any],
) -> None:
    """The noise in the file is what is looked for: any will do."""
    arguments = ["calibrate", "--release", write(folder, changes), *options.split()]
    told, found = json.loads(run(capsys, monkeypatch, *arguments, "--json")[1]), expected()
    assert told[found.parameter] == pytest.approx(found.value, rel=1e-9)
    assert told["advantage"] == pytest.approx(found.advantage, rel=1e-9)
    assert "least that keeps" not in told["about"]


def test_what_can_only_be_estimated_is_calibrated_by_its_guarantee() -> None:
    """Never too little noise: the estimate at the noise found keeps the goal with room to spare."""
    mechanism = release(Histogram("illness"), PEOPLE, ILL, PureDP(3.0))
    threat = Threat(Prior.from_column(PEOPLE["illness"], ILL))
    found = calibrate(mechanism, threat, advantage=0.05)
    assert isinstance(found.risk, WorstCase)
    assert found.advantage == assess(found.subject.guarantee(), threat).advantage <= 0.05
    assert assess(found.subject, threat, runs=20_000).advantage_interval[1] <= 0.05
    assert ("at most: the worst that the guarantee allows") in [row[2] for row in found.rows]
    assert " or less (by its guarantee; less noise may do). That is about people drawn at random:" in found.sentence()
    kept = calibrate(mechanism, threat, epsilon=(1.0, 1e-5))
    assert kept.sentence() == "To keep (1, 1e-05)-DP, choose epsilon 1 or less: Laplace noise of scale 2 or more."


def threat_on(*known: str) -> Threat:
    return Threat.attributes(PEOPLE, known=known, secret=["age"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"query": None}, "", "lacks `query`; it takes data, query, universe, noise, prior, interval, ends"),
        ({"queries": 3}, "", "has an unknown name `queries`; it takes data, query"),
        ({"query": {"kind": "median"}}, "", "`query` needs a `kind`, one of count, sum, mean, histogram, marginal"),
        ({"query": "count"}, "", "`query` needs a `kind`"),
        ({"query": {"kind": "count", "column": "sex"}}, "", "`query` lacks `value`; it takes kind, column, value"),
        (
            {"query": {"kind": "sum", "column": "age", "top": 9}},
            "",
            "unknown name `top` in `query`; it takes kind, column, low",
        ),
        ({"query": {"kind": "sum", "column": "sex"}, "universe": {"range": [1, 2]}}, "", "`sex` must be a number"),
        ({"query": {"kind": "histogram", "column": "job"}}, "", "no column `job`; it has `sex`, `age`, `illness`"),
        ({"query": {"kind": "sum", "column": ["age"]}, "universe": {"range": [1, 2]}}, "", "the query is a name"),
        ({"noise": {"kind": "cauchy"}}, "", "`noise` needs a `kind`, one of laplace, gaussian"),
        ({"noise": {"kind": "laplace"}}, "", "needs exactly one of scale, epsilon"),
        ({"noise": {"kind": "gaussian", "epsilon": 1}}, "", "exactly one of sigma, mu, rho, epsilon with delta"),
        ({"noise": {"kind": "gaussian", "epsilon": 1, "delta": 0}}, "", "No Gaussian noise keeps delta 0"),
        ({"noise": {"kind": "laplace", "scale": "big"}}, "", "json, line 1: `noise`: scale must be a number"),
        ({"noise": {"kind": "laplace", "epsilon": -1}}, "", "json, line 1: `noise`: epsilon must be a finite number"),
        ({"query": {"kind": "sum", "column": "age", "low": 9, "high": 1}}, "", "line 1: `query`: low must be below"),
        ({"universe": {"values": ["flu"]}}, "", "json: There is only one possible record"),
        (
            {"query": {"kind": "mean", "column": "age"}},
            "",
            "`universe` has no column 'age', which the query looks at; it has 'illness'",
        ),
        ({"noise": {"kind": "laplace", "epsilon": 1, "sensitivity": 1}}, "", "change the answer by 2 (L1)"),
        ({"universe": {}}, "", "has exactly one of columns, values, range"),
        ({"universe": {"columns": ["sex"], "step": 2}}, "", "has exactly one of columns, values, range"),
        ({"universe": "everybody"}, "", "`universe` must hold names with values; it takes columns"),
        ({"universe": {"columns": ["job"]}}, "", "no column `job`; it has `sex`, `age`, `illness`"),
        ({"universe": {"columns": [3]}}, "", "columns are names, got [3]"),
        ({"universe": {"columns": []}}, "", "`universe` names no columns"),
        ({"universe": {"range": [3, 2]}}, "", "finite low < high"),
        ({"universe": {"range": 3}}, "", "range is a pair [low, high]"),
        ({"universe": {"range": [0, 1], "step": 1e-12}}, "", "too many"),
        ({"universe": {"range": [0, 1]}}, "", "one is text"),
        ({"universe": {"values": ["flu", "flu"]}}, "", "twice"),
        ({"universe": {"file": "nowhere.csv"}}, "", "There is no file"),
        ({"universe": {"file": 3}}, "", "`universe, file` is the name of a file"),
        ({"data": "nowhere.csv"}, "", "There is no file"),
        ({"prior": 3}, "", "`prior` is a text"),
        ({"prior": "data"}, "--prior uniform", "names a prior; leave --prior out"),
        ({"prior": "nowhere.csv"}, "", "There is no file"),
        (
            {"universe": {"values": ["flu", "cold"]}},
            "--prior data",
            "hold 'asthma', which is none of",
        ),
        ({"universe": {"values": ["flu", "cold", "asthma"]}, "prior": "prior.csv"}, "", "'flu' here is 'asthma' there"),
        ({"interval": [0, 1]}, "", "An interval is for queries that answer with one number"),
        ({}, "--prior nowhere.csv", "There is no file nowhere.csv"),
        ({}, "--prior=", "A file is named by its path"),
        ({}, "--within 1", "--within is a distance between records that are numbers"),
        ({}, "--space ring", "--space has no meaning without --within"),
        ({}, "--knows sex", "columns of the records (illness), got sex"),
        ({}, "--size 3", "--size has no meaning with --release"),
        ({}, "--epsilon 3", "--epsilon has no meaning with --release"),
        ({}, "--mechanism grr", "--mechanism has no meaning with --release"),
    ],
)
def test_a_wrong_file_gets_one_sentence(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    changes: dict[str, Any],
    options: str,
    message: str,
) -> None:
    code, out, err = run(capsys, monkeypatch, "assess", "--release", write(folder, changes), *options.split())
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("Error: ")
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("plan.toml", "data = ", "cannot be read as TOML"),
        ("plan.json", "{", "cannot be read as JSON"),
        ("plan.json", "[]", "must hold names with values"),
        ("plan.txt", "", "must end in .toml or .json"),
    ],
)
def test_a_file_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    text: str,
    message: str,
) -> None:
    (tmp_path / name).write_text(text)
    code, _, err = run(capsys, monkeypatch, "assess", "--release", str(tmp_path / name))
    assert code == 2
    assert message in err


MEAN: dict[str, Any] = {
    "query": {"kind": "mean", "column": "age", "low": 0, "high": 100},
    "universe": {"range": [18, 90]},
    "prior": "uniform",
}


def test_epsilon_is_the_one_that_the_file_is_written_with(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """The noise is for ages from 0 to 100, the attacker chooses among 18 to 90: epsilon is for the first."""
    path, goal = write(folder, MEAN), ["--within", "5", "--advantage", "0.05"]
    found = json.loads(run(capsys, monkeypatch, "calibrate", "--release", path, *goal, "--json")[1])
    again = write(folder, MEAN | {"noise": {"kind": "laplace", "epsilon": found["epsilon"]}})
    risk = json.loads(run(capsys, monkeypatch, "assess", "--release", again, "--within", "5", "--json")[1])
    assert risk["advantage"] == pytest.approx(0.05, rel=1e-9)
    ages = release(Mean("age", 0, 100), PEOPLE, range(18, 91), PureDP(1.0))
    assert ages.parameter is not None
    assert ages.parameter.value == pytest.approx(1.0)
    assert ages.epsilon == pytest.approx(0.72)
    kept = calibrate(ages, epsilon=0.5)
    assert kept.epsilon == pytest.approx(0.5)
    assert kept.subject.scale == pytest.approx(100 / 6 / 0.5)  # six people: the mean moves by 100 / 6


def test_the_epsilon_of_a_few_records_does_not_look_like_the_promise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    path = write(folder, MEAN | {"universe": {"values": [40, 41]}})
    lines = run(capsys, monkeypatch, "assess", "--release", path)[1].splitlines()
    (promised,) = (line for line in lines if line.startswith("epsilon promised"))
    assert promised.split(maxsplit=3)[2:] == ["1", "of any record, listed or not"]
    (own,) = (line for line in lines if line.startswith("epsilon at delta 1e-5"))
    assert own.endswith("kept when one of these records is replaced by another")
    risk = assess(release(Sum("age"), PEOPLE, [40, 41], PureDP(1.0)), Threat(Prior.uniform(2, [40, 41])))
    assert risk.comparisons is not None
    assert risk.comparisons.promised is None


def test_a_sensitivity_is_that_of_any_record() -> None:
    """Noise on vectors alike: the epsilon it is made with is for the sensitivity, the true one for the means."""
    one = VectorLaplace([[1.0, 0.0], [0.0, 1.0]], scale=8.0, sensitivity=4.0)
    assert (one.nominal_epsilon, one.epsilon) == (0.5, 0.25)
    assert one.with_parameter(1.0).scale == 4.0
    assert one.promised is not None
    assert one.promised.epsilon_at(0.0) == 0.5
    assert one.viewed(np.array([0, 1, 1])).epsilon == 0.25
    line = Laplace([40.0, 41.0], epsilon=1.0, sensitivity=100.0)
    assert (line.scale, line.epsilon, line.guarantee().epsilon_at(0.0)) == (100.0, 0.01, 0.01)
    assert line.with_parameter(2.0) == Laplace([40.0, 41.0], epsilon=2.0, sensitivity=100.0)
    for wrong in (lambda: Laplace([0, 2], 1.0, sensitivity=1.0), lambda: VectorLaplace([[0.0], [2.0]], 1.0, 1.0)):
        with pytest.raises(DpriskError, match="the answers for two records are 2 apart"):
            wrong()


THREE_AGES = {"age": [30, 40, 50]}  # with the target four people: the mean moves by 25


def of_ages(noise: Any, **options: Any) -> Any:
    return release(Mean("age", 0, 100), THREE_AGES, {"age": [40, 41]}, noise, **options)


@pytest.mark.parametrize(
    "made",
    [
        of_ages(PureDP(1.0)).repeat(2),
        Product(of_ages(PureDP(1.0)), of_ages(PureDP(3.0))),
        Product(of_ages(PureDP(1.0)), GRR(2, 3.0).labelled([(40,), (41,)])),
        OnAttribute(of_ages(PureDP(1.0)), [0, 1, 1]),
        OnAttribute(of_ages(PureDP(1.0)).repeat(2), [0, 1, 1]).labelled(["a", "b", "c"]),
        VectorLaplace([[0.0, 1.0], [1.0, 0.0]], 8.0, sensitivity=40.0).repeat(3),
        of_ages(PureDP(1.0), interval=(0.0, 100.0)),
        of_ages(PureDP(1.0)),
    ],
    ids=lambda it: it.brief(),
)
def test_what_is_made_of_a_release_promises_of_any_record_too(made: Any) -> None:
    """The parameter is the epsilon that the noise is made with, so epsilon 1 is epsilon 1 of any record."""
    assert made.promised is not None
    kept = calibrate(made, epsilon=1.0)
    assert kept.epsilon == pytest.approx(1.0, rel=1e-6)
    assert kept.subject.promised.epsilon_at(0.0) <= 1.0
    assert kept.comparisons is not None
    assert kept.comparisons.promised == pytest.approx(1.0, rel=1e-6)
    assert kept.comparisons.of_some


def test_truncated_noise_promises_of_any_record_no_more_than_it_keeps() -> None:
    """Drawing again at most doubles epsilon: two records that the query allows and nobody listed keep it as well."""
    kept = calibrate(of_ages(PureDP(1.0), interval=(0.0, 100.0), ends="truncate"), epsilon=1.0).subject
    assert kept.promised.epsilon_at(0.0) <= 1.0
    everybody = release(
        Mean("age", 0, 100),
        THREE_AGES,
        {"age": list(range(101))},
        LaplaceNoise(kept.scale),
        interval=(0.0, 100.0),
        ends="truncate",
    )
    assert everybody.epsilon <= 1.0
    with pytest.raises(DpriskError, match="leave the sensitivity out"):
        Gaussian([40.0, 41.0], 1.0, sensitivity=9.0, interval=(0.0, 100.0), ends="truncate")
    assert of_ages(ApproxDP(1.0, 1e-5), interval=(0.0, 100.0), ends="truncate").promised is None


@pytest.mark.parametrize("noise", [PureDP(1.0), GaussianDP(1.0)], ids=repr)
def test_goals_without_a_threat_are_about_any_record(noise: Any) -> None:
    """The same noise as if the two records were listed that are farthest apart."""
    everybody = release(Mean("age", 0, 100), THREE_AGES, {"age": [0, 100]}, noise)
    goals: list[dict[str, Any]] = [{"advantage": 0.1}, {"tpr_at_fpr": (0.1, 0.01)}, {"epsilon": (1.0, 1e-5)}]
    for goal in goals:
        few, all_of_them = calibrate(of_ages(noise), **goal), calibrate(everybody, **goal)
        assert few.value == pytest.approx(all_of_them.value, rel=1e-6)
        assert few.advantage == pytest.approx(all_of_them.advantage, rel=1e-6)


def test_gaussian_noise_is_made_for_any_record() -> None:
    one = of_ages(ApproxDP(1.0, 1e-5))
    assert one.sensitivity == 25.0
    assert one.promised == GaussianDP(25.0 / one.sigma)
    assert calibrate(one, epsilon=(1.0, 1e-5)).sigma == pytest.approx(one.sigma, rel=1e-6)
    risk = assess(one, Threat(Prior.uniform(2)))
    assert ("epsilon promised", "1", "of any record, listed or not, at delta 1e-5") in risk.rows
    both = VectorGaussian([[0.0, 1.0], [1.0, 0.0]], 2.0, 4, sensitivity=3.0)
    assert both.promised == GaussianDP(3.0)
    assert both.viewed(np.array([0, 1, 1])).sensitivity is None
    assert both.repeat(4).promised == GaussianDP(6.0)
    assert both.with_parameter(4.0).promised == GaussianDP(1.5)


@pytest.mark.parametrize("wrong", [math.inf, math.nan, 0.0, -1.0])
def test_a_sensitivity_is_a_finite_number(wrong: float) -> None:
    for make in (
        lambda: Laplace([0, 2], 1.0, sensitivity=wrong),
        lambda: VectorLaplace([[0.0], [2.0]], 1.0, wrong),
        lambda: Gaussian([0, 2], 1.0, sensitivity=wrong),
        lambda: of_ages(PureDP(1.0), sensitivity=wrong),
    ):
        with pytest.raises(DpriskError, match="sensitivity must be a finite number above 0, got"):
            make()


def test_the_example_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    example = Path(__file__).parents[1] / "docs" / "examples" / "histogram.toml"
    told = json.loads(run(capsys, monkeypatch, "assess", "--release", str(example), "--prior", "uniform", "--json")[1])
    assert told["advantage"] == pytest.approx(assess(SHE(4, 1.0), Threat(Prior.uniform(4))).advantage)
    assert told["inputs"]["query"] == "histogram of illness"


def test_a_query_by_name_is_no_query() -> None:
    with pytest.raises(DpriskError, match="or a function is needed, not 'mean'"):
        release("mean", {"a": [1], "b": [2]}, [1, 2], PureDP(1.0))  # type: ignore[arg-type]


def test_two_records_of_a_noisy_histogram_are_told_apart_by_two_counts() -> None:
    """Each moves by 1, with Laplace noise of scale 2 / epsilon: TV = 1 - (1 + epsilon / 4) exp(-epsilon / 2)."""
    records = ["cold", "flu", "measles"]
    mechanism = release(Histogram("illness"), {"illness": ["flu", "flu", "cold"]}, records, PureDP(1.0))
    compared = Comparisons.of(mechanism)
    assert compared.membership_advantage == pytest.approx(1 - 1.25 * math.exp(-0.5), rel=1e-9)
    assert mechanism.total_variation == pytest.approx(1 - 1.25 * math.exp(-0.5), rel=1e-12)
    assert compared.mu == pytest.approx(Comparisons.of(SHE(3, 1.0)).mu)
    found = calibrate(mechanism, Threat.membership(Prior.uniform(3, records)), advantage=0.025 * 4 / 3)
    assert found.epsilon == pytest.approx(0.20032, abs=1e-5)
    assert found.comparisons is not None
    assert found.comparisons.membership_advantage <= 0.05


def test_many_records_in_few_cells_are_told_apart_as_the_cells_are() -> None:
    mechanism = release(Histogram("age", edges=[0, 40, 80, 120]), {"age": [30, 50]}, range(100), PureDP(1.0))
    assert mechanism.total_variation == pytest.approx(1 - 1.25 * math.exp(-0.5), rel=1e-12)
