"""A column that people randomise, and attackers who know others: against the definitions, written out row by row."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import GRR, OLH, OUE, Laplace, Prior, PureDP, SubsetSelection, Survey, Threat, assess, calibrate
from dprisk.errors import DpriskError
from dprisk.exact import advantage_by_record, theorem
from dprisk.mechanisms import OnAttribute
from tests.naive import theorem_4_3
from tests.strategies import set_protocols

PEOPLE: dict[str, list[Any]] = {
    "sex": ["f", "f", "f", "f", "m", "m", "m", "m", "m"],
    "age": [30, 30, 30, 60, 30, 60, 60, 60, 60],
    "ill": ["flu", "flu", "HIV", "none", "flu", "none", "none", "flu", "none"],
}
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=12)


@pytest.mark.slow
@given(data=st.data(), rows=ROWS)
def test_the_risk_is_that_of_the_definition(data: st.DataObject, rows: list[tuple[str, int]]) -> None:
    """Every person a row, every output a column: the attacker knows the first entry and wants the second."""
    survey = Survey.from_table({"known": [a for a, _ in rows], "asked": [v for _, v in rows]}, "asked", ["known"])
    protocol = data.draw(set_protocols(survey.size))
    counts = Counter(rows)
    records = sorted(counts)
    prior = np.array([counts[row] for row in records]) / len(rows)
    groups = np.unique([a for a, _ in records], return_inverse=True)[1]
    right = np.array([[guess[1] == record[1] for record in records] for guess in records])
    channel = protocol.matrix()[[survey.values.index(value) for _, value in records]]
    mechanism, threat = survey.randomised(protocol), survey.threat()
    assert mechanism.labels == threat.prior.labels == tuple(records)
    risk = assess(mechanism, threat)
    assert risk.exact
    assert (risk.advantage, risk.success) == pytest.approx(theorem_4_3(channel, prior, groups, right), abs=1e-12)
    assert mechanism.matrix() == pytest.approx(channel)


@pytest.mark.slow
@given(data=st.data(), rows=ROWS, unused=st.integers(0, 2))
def test_sets_of_an_attribute_agree_with_the_list_of_outputs(
    data: st.DataObject, rows: list[tuple[str, int]], unused: int
) -> None:
    """Also where the mechanism has values that nobody has, and for the advantage on each record, ties included."""
    records = sorted(set(rows))
    values = [value for _, value in records]
    protocol = data.draw(set_protocols(max(values) + 1 + unused))
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(records), max_size=len(records)).filter(any))
    threat = Survey("asked", ("known",), dict(zip(records, weights, strict=True))).threat()
    mechanism = OnAttribute(protocol, values)
    found, listed = assess(mechanism, threat).optimum, theorem.enumerate_outputs(mechanism, threat)
    assert found.by == "sets of an attribute"
    assert found.advantage_by_group == pytest.approx(listed.advantage_by_group, abs=1e-12)
    assert found.success_by_group == pytest.approx(listed.success_by_group, abs=1e-12)
    by_record = theorem.enumerate_by_record(mechanism, threat)
    positive = threat.prior.weights > 0  # what the attacker gains on a record that nobody has is a matter of taste
    assert advantage_by_record(mechanism, threat)[positive] == pytest.approx(by_record[positive], abs=1e-9)


@pytest.mark.parametrize("kind", [OUE, SubsetSelection, OLH])
def test_many_values_stay_exact(kind: Callable[[int, float], OUE]) -> None:
    """Beyond any list of outputs; and noise can be calibrated for it."""
    rng = np.random.default_rng(1)
    table = {"known": rng.integers(4, size=3000), "asked": rng.zipf(1.5, size=3000) % 200}
    survey = Survey.from_table(table, "asked", "known")
    mechanism, threat = survey.randomised(kind(survey.size, 1.0)), survey.threat()
    risk = assess(mechanism, threat)
    assert risk.exact
    assert 0 < risk.advantage <= assess(PureDP(1.0), threat).advantage
    found = calibrate(mechanism, threat, advantage=risk.advantage)
    assert found.value == pytest.approx(1.0, abs=1e-6)


def test_knowing_nothing_is_the_column_alone() -> None:
    prior = Prior.from_column(PEOPLE["ill"])
    for knows in ((), "none"):
        survey = Survey.from_table(PEOPLE, "ill", knows)
        assert survey.threat() == Threat.reconstruction(prior)
        assert survey.randomised(GRR(3, 1.0)) == GRR(3, 1.0).labelled(prior.labels)
    survey = Survey.from_table(PEOPLE, "ill", "all")
    assert survey.threat() == Threat.membership(prior)
    assert assess(survey.randomised(GRR(3, 1.0)), survey.threat()) is not None


def test_a_number_may_be_wanted_roughly() -> None:
    survey = Survey.from_table(PEOPLE, "age", knows=["sex"])
    near = assess(survey.randomised(Laplace([30, 60], 1.0)), survey.threat(within=30))
    assert (near.advantage, near.baseline) == pytest.approx((0.0, 1.0), abs=1e-15)
    whole = Threat.attributes({name: PEOPLE[name] for name in ("sex", "age")}, known=["sex"], secret=["age"])
    exactly = assess(survey.randomised(Laplace([30, 60], 1.0)), survey.threat())
    wrapped = OnAttribute.by_label(Laplace([30, 60], 1.0).labelled([30, 60]), whole.column("age"))
    assert exactly.advantage == assess(wrapped, whole).advantage


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame])
def test_files_and_frames_are_the_same(tmp_path: Path, frame: Callable[[object], object]) -> None:
    path = tmp_path / "people.csv"
    lines = ["Sex;Age;ILL;remark", *(";".join([*map(str, row), "x"]) for row in zip(*PEOPLE.values(), strict=True))]
    path.write_text("\n".join(lines))
    read = Survey.from_csv(path, "ill", knows=["age", "sex"])
    made = Survey.from_table(frame(PEOPLE), "ill", knows=["age", "sex"])
    assert (read.counts, read.values, read.people) == (made.counts, ("HIV", "flu", "none"), 9)
    assert repr(read) == "Survey(ILL: 3 values, 9 people, the attacker knows Age, Sex)"
    one, two = (assess(it.randomised(OUE(3, 1.0)), it.threat()) for it in (read, made))
    assert one.advantage == two.advantage


def test_a_calibrated_view_sees_the_same_values() -> None:
    """Values are numbers of the mechanism's records: made again with another epsilon, they stay what they were."""
    survey = Survey.from_table({"known": list(range(20)), "asked": [9, 7, 5, 3] * 5}, "asked", "known")
    mechanism = survey.randomised(GRR(4, 1.0))
    assert isinstance(mechanism, OnAttribute)
    other = mechanism.with_parameter(2.0)
    assert np.array_equal(other.values, mechanism.values)
    assert other.labels == mechanism.labels
    assert mechanism.to_dict()["values"] == mechanism.values.tolist() == [3, 2, 1, 0] * 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Survey.from_table(PEOPLE, "job"), "needs one column 'job'; it has 'sex', 'age', 'ill'"),
        (lambda: Survey.from_table(PEOPLE, "ill", ["ill"]), "'ill' cannot be known and asked for"),
        (lambda: Survey.from_table(PEOPLE, 3), "given by its name, got 3"),  # type: ignore[arg-type]
        (lambda: Survey.from_table({"ill": []}, "ill"), "no rows"),
        (lambda: Survey.from_table({"ill": ["a", None]}, "ill"), r"The column 'ill' has missing values \(1 of 2\)"),
        (lambda: Survey.from_table(PEOPLE, "ill").randomised(GRR(4, 1.0)), "'ill' has 3 values, the mechanism takes 4"),
        (lambda: Survey.from_table(PEOPLE, "ill").randomised(GRR), r"make one: GRR\(size, epsilon\)"),  # type: ignore[arg-type]
        (lambda: Survey.from_table(PEOPLE, "ill").randomised(GRR(3, 1.0).labelled("abc")), "not the values of 'ill'"),
        (
            lambda: assess(GRR(3, 1.0), Survey.from_table(PEOPLE, "ill", ["sex"]).threat()),
            "3 records, the prior has 5; those are the rows of a table: if the mechanism sees one column of them, wrap",
        ),
    ],
)
def test_wrong_input_gets_one_clear_sentence(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        wrong()
