"""Priors, knowledge and success: built from what people have, refused when they make no sense."""

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dprisk import GRR, Attributes, DpriskError, Exponential, Knowledge, Line, Matrix, Prior, Ring, Threat, assess
from dprisk.errors import PriorError
from dprisk.threat import Balls, Distances, Exact, Graph
from tests.strategies import channels, partitions, priors


def test_a_prior_knows_its_numbers() -> None:
    prior = Prior([0.5, 0.25, 0.25, 0.0])
    assert (prior.size, prior.support_size) == (4, 3)
    assert prior.collision_probability == 0.375
    assert prior.entropy == 1.5
    assert prior.sorted_weights.tolist() == [0.5, 0.25, 0.25]
    assert Prior([1.0]).entropy == 0.0


def test_priors_come_from_what_people_have(tmp_path: Path) -> None:
    expected = {"cold": 0.75, "flu": 0.25}
    values = ["cold", "flu", "cold", "cold"]
    counts = tmp_path / "counts.csv"
    counts.write_text("label,count\ncold,3\nflu,1\n")
    shares = tmp_path / "shares.csv.gz"
    with gzip.open(shares, "wt") as file:
        file.write("label,probability\ncold,0.75\nflu,0.25\n")
    raw = tmp_path / "raw.csv"
    raw.write_text("id,ill\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    for prior in (
        Prior({"cold": 0.75, "flu": 0.25}),
        Prior.from_counts({"cold": 3, "flu": 1}),
        Prior.from_counts([3, 1], ["cold", "flu"]),
        Prior.from_column(values),
        Prior.from_column(pd.Series(values)),
        Prior.from_column(pl.Series(values)),
        Prior.from_csv(counts),
        Prior.from_csv(shares),
        Prior.from_csv(raw, column="ill"),
    ):
        assert prior.to_dict() == pytest.approx(expected)


def test_named_priors() -> None:
    assert Prior.zipf(3, 1.0).weights == pytest.approx(np.array([6, 3, 2]) / 11)
    assert Prior.geometric(3, 0.5).weights == pytest.approx(np.array([4, 2, 1]) / 7)
    assert Prior.uniform(3).is_uniform
    assert not Prior.zipf(3).is_uniform


def test_number_labels_are_positions_text_labels_are_not() -> None:
    assert Prior.from_column([10, 20, 40]).positions().tolist() == [10, 20, 40]
    assert Prior.uniform(3).positions().tolist() == [0, 1, 2]
    for labels in (["low", "mid", "top"], [10, 20, "top"]):
        for rule in (Line(1.0), Ring(1.0)):
            with pytest.raises(PriorError, match=r"the label '(low|top)' is none: .* Line\(within, positions="):
                Threat(Prior.uniform(3, labels), success=rule)
    assert Threat(Prior.uniform(3, [*"abc"]), success=Line(1.0, positions=[0, 1, 2])).kappa_plus == 1.0
    threat = Threat.reconstruction(Prior.from_column([10, 20, 40]), within=10)
    assert threat.kappa_plus == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Prior([0.5, 0.8]), r"sums to 1\.3, not 1\. If these are counts"),
        (lambda: Prior([0.5, math.nan]), "must be finite; entry 1 is nan"),
        (lambda: Prior([1.5, -0.5]), "at least 0; entry 1 is -0.5"),
        (lambda: Prior([]), "non-empty"),
        (lambda: Prior(["a", "b"]), "must be numbers"),
        (lambda: Prior([0.5, 0.5], ["a"]), "1 labels for 2 records"),
        (lambda: Prior([0.5, 0.5], ["a", "a"]), "'a' appears twice"),
        (lambda: Prior.from_counts([0, 0]), "at least one must be positive"),
        (lambda: Prior.from_column([]), "column is empty"),
        (lambda: Prior.from_column(pd.Series(["a", None])), r"missing values \(1 of 2\)"),
        (lambda: Prior.zipf(3, -1.0), "exponent"),
        (lambda: Prior.uniform(10**9), "at most 100,000,000 of them, got 1,000,000,000"),
        (lambda: Prior.geometric(3, 2.0), "ratio"),
        (lambda: Threat(Prior.uniform(3), knows=[0, 1]), "2 records, the prior has 3"),
        (lambda: Threat(Prior.uniform(3), knows="some"), "'none', 'all'"),
        (lambda: Line(-1.0), "at least 0, got -1"),
        (lambda: Line(math.nan), "got nan"),
        (lambda: Threat(Prior.uniform(3), success=Line(1.0, [0, 1])).reach, "each of the 3 records"),
        (lambda: Ring(1.0, [0, 1]), "needs its circumference"),
        (lambda: Threat(Prior.uniform(2), success=Ring(1.0, [0, 9], 8.0)).reach, r"\[0, 8\)"),
        (lambda: Threat(Prior.uniform(2), success=Distances(1.0, np.zeros((2, 3)))).reach, "2 columns"),
        (lambda: Threat(Prior.uniform(2), success=Graph(1.0, nx.path_graph(3))).reach, "3 nodes"),
        (lambda: Threat(Prior.uniform(2), success=Balls(lambda _: [5])).reach, r"numbers of records in 0\.\.1"),
        (lambda: Threat.attributes({"a": [1, 2]}, known=["b"], secret=["a"]), "needs one column 'b'"),
        (lambda: Threat.attributes({"a": [1], "b": [1]}, known=["a"], secret=["a"]), "known and secret"),
        (lambda: Threat.attributes({"a": ["x"], "b": ["y"]}, ["a"], ["b"], {"b": 1.0}).reach, "must be numbers"),
        (lambda: Threat.reconstruction(Prior.uniform(2), within=1, space="torus"), "'line' or 'ring'"),
        (lambda: Threat(Prior.uniform(2)).column("age"), "not made from a table"),
        (lambda: assess(GRR(3, 1.0), Threat(Prior.uniform(4))), "takes 3 records, the prior has 4"),
    ],
)
def test_nonsense_gets_one_clear_sentence(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(DpriskError, match=message) as problem:
        wrong()
    assert isinstance(problem.value, ValueError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("label,count\n", "no records"),
        ("name,count\na,1\n", "no column `label`"),
        ("label,share\na,1\n", "exactly one of the columns"),
        ("label,probability,count\na,1,1\n", "exactly one of the columns"),
        ("label,count\na,many\n", "row 2: `count` must be a number, got 'many'"),
        ("label,count\na\n", r"row 2 has 1 cell, the header 2 \(separated by commas\)"),
        ("label,probability\na,0.5\nb,0.4\n", "sums to 0.9, not 1"),
        ("label,count\na,1\na,2\n", "'a' appears twice"),
        ("label,probability\na,nan\n", "must be a finite number"),
    ],
)
def test_a_bad_file_gets_one_clear_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "prior.csv"
    path.write_text(text)
    with pytest.raises(DpriskError, match=message):
        Prior.from_csv(path)


def test_membership_attributes_and_reconstruction_are_one_formula() -> None:
    prior = Prior.zipf(4)
    assert Threat.membership(prior).baseline == pytest.approx(1.0)
    assert Threat.reconstruction(prior).baseline == pytest.approx(prior.weights[0])
    some = Threat(prior, ["a", "b", "a", "b"])
    assert some.baseline == pytest.approx(prior.weights[0] + prior.weights[1])


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
def test_attributes_of_a_table(frame: Callable[[object], object]) -> None:
    """By hand: the attacker knows sex; 2 of 3 women are ill, no man: the best blind guess is right for 4 of 5."""
    people = frame({"sex": ["f", "f", "f", "m", "m"], "age": [30, 31, 60, 40, 41], "ill": [1, 1, 0, 0, 0]})
    threat = Threat.attributes(people, known=["sex"], secret=["ill"])
    assert threat.prior.size == 5
    assert threat.baseline == pytest.approx(0.8)
    near = Threat.attributes(people, known=["sex"], secret=["age"], within={"age": 1})
    assert near.baseline == pytest.approx(0.8)
    assert threat.column("age") == [row[1] for row in threat.prior.labels or ()]
    both = Threat.attributes(people, known=[], secret=["age", "ill"], within={"age": 10.0})
    assert both.baseline == pytest.approx(0.4)


def test_knowledge_from_columns() -> None:
    table = {"a": [0, 0, 1], "b": ["x", "y", "x"]}
    assert Knowledge.columns(table, ["a"]).n_groups == 2
    assert Knowledge.columns(table, ["a", "b"]).is_all


@pytest.mark.slow
@given(st.data(), st.integers(1, 5))
def test_every_way_to_say_the_same_balls_agrees(data: st.DataObject, size: int) -> None:
    """A graph, a callable, a mask and a distance matrix that mean the same balls."""
    bits = data.draw(st.lists(st.booleans(), min_size=size * size, max_size=size * size))
    success = np.array(bits).reshape(size, size) | np.eye(size, dtype=bool)
    success = success | success.T
    graph = nx.from_numpy_array(success & ~np.eye(size, dtype=bool))
    channel, prior, groups = data.draw(channels(size)), Prior(data.draw(priors(size))), data.draw(partitions(size))
    rules = [
        Distances(0.5, np.where(success, 0.0, 1.0)),
        Graph(1.0, graph),
        Balls(lambda guess: success[guess]),
        Balls(lambda guess: np.flatnonzero(success[guess])),
    ]
    risks = [assess(Matrix(channel), Threat(prior, groups, rule)) for rule in rules]
    for risk in risks[1:]:
        assert risk.advantage == pytest.approx(risks[0].advantage, abs=1e-12)
        assert risk.success == pytest.approx(risks[0].success, abs=1e-12)


@pytest.mark.slow
@given(st.data(), st.integers(1, 6))
def test_attribute_classes_are_balls(data: st.DataObject, size: int) -> None:
    table = {name: data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)) for name in ("a", "b")}
    a, b = np.array(table["a"]), np.array(table["b"])
    within = data.draw(st.sampled_from([0, 1]))
    same = (a[:, None] == a) & (np.abs(b[:, None] - b) <= within)
    channel, prior, groups = data.draw(channels(size)), Prior(data.draw(priors(size))), data.draw(partitions(size))
    by_columns = Threat(prior, groups, Attributes(table, ["a", "b"], {"b": float(within)}))
    by_matrix = Threat(prior, groups, Distances(0.5, np.where(same, 0.0, 1.0)))
    one, two = (assess(Matrix(channel), threat) for threat in (by_columns, by_matrix))
    assert (one.advantage, one.success) == pytest.approx((two.advantage, two.success), abs=1e-12)


def test_a_weighted_graph_measures_lengths() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", metres=100.0)
    graph.add_edge("b", "c", metres=300.0)
    prior = Prior({"a": 0.5, "b": 0.3, "c": 0.2})
    assert Threat(prior, success=Graph(150.0, graph, "metres")).kappa_plus == pytest.approx(0.8)
    assert Threat(prior, success=Graph(1, graph)).kappa_plus == pytest.approx(1.0)
    assert Threat(prior, success=Graph(1, graph)).kappa_minus == pytest.approx(0.5)


def test_rounding_does_not_shrink_a_ball() -> None:
    """0.4 - 0.1 > 0.3 in floats; a ball of radius 0.3 on a grid of 0.1 holds three steps on either side."""
    grid = np.arange(11) * 0.1
    assert Threat(Prior.uniform(11), success=Line(0.3, grid)).kappa_plus == pytest.approx(7 / 11)


def test_a_ball_may_cover_the_ring() -> None:
    for eta, mass in ((1.0, 0.75), (1.5, 0.75), (2.0, 1.0), (7.0, 1.0)):
        assert Threat(Prior.uniform(4), success=Ring(eta)).kappa_plus == pytest.approx(mass)


def test_exact_is_the_ball_of_radius_0() -> None:
    prior = Prior.zipf(6)
    for knows in ("none", "all", [0, 1, 0, 1, 2, 2]):
        one, two = Threat(prior, knows, Exact()), Threat(prior, knows, Line(0.0))
        assert one.baseline == two.baseline


def test_large_positions_stay_apart() -> None:
    """Millisecond timestamps: a slack that grows with the position would merge them."""
    stamps = [1_600_000_000_000 + i for i in range(3)]
    assert Threat(Prior.uniform(3, stamps), success=Line(0.0)).kappa_plus == pytest.approx(1 / 3)
    assert Threat(Prior.uniform(3), success=Line(1e-4, [0.0, 1.05e-4, 9.0])).kappa_plus == pytest.approx(1 / 3)


def test_a_ring_ball_of_nearly_half_the_ring_counts_nobody_twice() -> None:
    for eta, places, around in ((0.15, [0.0, 0.15], 0.1 + 0.2), (0.5 - 1e-13, [0.0, 0.5], 1.0)):
        assert Threat(Prior.uniform(2), success=Ring(eta, places, around)).kappa_plus <= 1


def test_a_ring_takes_number_labels_as_steps() -> None:
    assert Threat(Prior.uniform(4, [10, 20, 30, 40]), success=Ring(10.0)).kappa_plus == pytest.approx(0.75)
    with pytest.raises(DpriskError, match="equal steps"):
        assert Threat(Prior.uniform(3, [10, 20, 40]), success=Ring(10.0)).kappa_plus


def test_attribute_and_graph_distances_allow_for_rounding() -> None:
    table = {"x": [0.1 * i for i in range(11)]}
    assert Threat(Prior.uniform(11), success=Attributes(table, ["x"], {"x": 0.3})).kappa_plus == pytest.approx(7 / 11)
    graph = nx.path_graph(5)
    nx.set_edge_attributes(graph, 0.1, "length")
    assert Threat(Prior.uniform(5), success=Graph(0.3, graph, "length")).kappa_plus == pytest.approx(1.0)


def test_graphs_are_matched_to_records() -> None:
    star = nx.Graph([("a", "b"), ("a", "c"), ("a", "d")])
    prior = Prior({"d": 0.1, "c": 0.2, "b": 0.3, "a": 0.4})
    with pytest.raises(DpriskError, match=r"nodes=prior\.labels"):
        assess(Exponential.on_graph(star, 3.0), Threat(prior, success=Graph(0, star)))
    aligned = Exponential.on_graph(star, 3.0, nodes=prior.labels)
    assert assess(aligned, Threat(prior, success=Graph(0, star))).advantage == pytest.approx(0.207, abs=5e-4)
    with pytest.raises(DpriskError, match="ways through the others"):
        assert Threat(Prior({"b": 0.5, "c": 0.5}), success=Graph(2, star)).kappa_plus
    double = nx.MultiGraph()
    double.add_edge(0, 1, length=1.0)
    double.add_edge(0, 1, length=5.0)
    assert Threat(Prior.uniform(2), success=Graph(1.0, double, "length")).kappa_plus == 1.0
    with pytest.raises(DpriskError, match="has no 'metres'"):
        assert Threat(Prior.uniform(2), success=Graph(1.0, double, "metres")).kappa_plus


def test_sparse_losses_are_added_up_and_the_diagonal_may_be_stored() -> None:
    twice = sparse.coo_array(([0.5, 0.7], ([0, 0], [1, 1])), shape=(2, 2))
    assert Threat(Prior.uniform(2), success=Distances(1.0, twice)).kappa_plus == 0.5
    far = sparse.coo_array(([3.0], ([0], [0])), shape=(2, 2))
    assert Threat(Prior.uniform(2), success=Distances(1.0, far)).kappa_minus == 0.0


def test_missing_values_are_no_knowledge() -> None:
    nan = float("nan")
    people = pd.DataFrame({"sex": ["f"] * 4, "bmi": [nan, nan, nan, 20.0]})
    for wrong in (
        lambda: Threat(Prior.uniform(3), np.array([nan, nan, 1.0])),
        lambda: Threat.attributes(people, ["sex"], ["bmi"]),
        lambda: Prior.from_column(pd.Series([1, None], dtype="Int64")),
        lambda: Prior.uniform(2, [None, "a"]),
    ):
        with pytest.raises(DpriskError, match="missing values"):
            wrong()


def test_knowledge_may_be_a_mapping_from_label_to_group() -> None:
    prior = Prior({"a": 0.5, "b": 0.3, "c": 0.2})
    assert Threat(prior, {"c": "y", "a": "x", "b": "x"}).baseline == pytest.approx(0.7)
    with pytest.raises(DpriskError, match="no group for the record"):
        Threat(prior, {"a": "x"})


def test_labels_are_kept_as_written(tmp_path: Path) -> None:
    path = tmp_path / "zip.csv"
    path.write_text("label,count\n01234,1\n1234,2\n12345678901234567890,3\n12345678901234567891,4\n")
    assert Prior.from_csv(path).labels == ("01234", "1234", "12345678901234567890", "12345678901234567891")
    counts = pd.Series(["flu", "flu", "cold"]).value_counts()
    assert Prior.from_counts(counts).to_dict() == pytest.approx({"flu": 2 / 3, "cold": 1 / 3})
    assert Prior.from_column(["1", 1, 1, 1]).size == 2
    assert Prior.from_counts([1e308, 1e308]).weights.tolist() == [0.5, 0.5]


def test_numbers_of_any_kind_are_numbers() -> None:
    numbers: list[Any] = [np.int64(3), np.int32(3), 3.0]
    for size in numbers:
        assert Prior.uniform(size).size == GRR(size, np.float32(1.0)).size == 3  # type: ignore[arg-type]
    for wrong in (lambda: GRR(True, 1.0), lambda: GRR(3, "1"), lambda: GRR(2.5, 1.0), lambda: Prior.uniform("3")):  # type: ignore[arg-type]
        with pytest.raises(DpriskError, match="must be a"):
            wrong()


@pytest.mark.parametrize("excess", [5e-10, -5e-10])
def test_weights_that_sum_to_nearly_1_are_scaled(excess: float) -> None:
    prior = Prior([0.5 + excess, 0.3, 0.2])
    assert math.fsum(prior.weights) == pytest.approx(1.0, abs=3e-16)
    assert prior.weights[1] / prior.weights[2] == pytest.approx(1.5, rel=1e-15)
    assert prior.weights[1] == pytest.approx(0.3 / (1 + excess), rel=1e-14)
    with pytest.raises(DpriskError, match=r"sums to 1\.000000002"):
        Prior([0.5 + 2e-9, 0.3, 0.2])


def test_beside_a_rare_record_none_is_sure() -> None:
    """Its mass is lost in 1 - kappa_pi, which must not become 0."""
    assert 0 < 1 - Prior([1.0, 1e-300]).collision_probability < 1e-15
    assert Prior([1.0, 0.0]).collision_probability == 1.0
