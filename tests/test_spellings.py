"""One threat, many spellings: whatever a threat is written as, what holds of it is the same."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dprisk import (
    GRR,
    OUE,
    ApproxDP,
    Gaussian,
    GaussianDP,
    Knowledge,
    Laplace,
    Prior,
    PureDP,
    SubsetSelection,
    Threat,
    assess,
    calibrate,
)
from dprisk.auditing.certify.advantage import epsilon_from_advantage
from dprisk.mechanisms import Matrix, OnAttribute
from dprisk.threat import Attributes, Balls, Distances, Exact, Graph, Line, Ring
from dprisk.types import BoolArray, FloatArray, IntArray
from tests.naive import theorem_4_3
from tests.strategies import balls, channels, partitions, priors

WEIGHTS = [0.4, 0.3, 0.2, 0.1]
GRID = {"x": ["a", "a", "b", "b"], "y": [0, 1, 0, 1]}
PATH = sparse.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
EXACT = {
    "exactly": Exact(),
    "on a line": Line(0.0),
    "nearer than any neighbour": Line(0.9),
    "at positions": Line(1.0, positions=[5.0, 0.0, 9.0, 2.5]),
    "on a ring": Ring(0.5),
    "by distances": Distances(0.5, 1.0 - np.eye(4)),
    "by sparse distances": Distances(0.5, sparse.csr_array((4, 4))),
    "named by other guesses": Distances(0.0, 1.0 - np.roll(np.eye(4), 1, axis=0)),
    "with a guess that is never right": Distances(0.0, 1.0 - np.eye(5)[:, :4]),
    "on a graph": Graph(0.5, PATH),
    "in a ball": Balls(lambda guess: [guess]),
    "in one column": Attributes({"id": ["k", "l", "m", "n"]}, "id"),
    "in all columns": Attributes(GRID, ("x", "y")),
    "in all columns, one nearly": Attributes(GRID, ("x", "y"), {"y": 0.25}),
}
NOTHING: list[Any] = ["none", ["anybody"] * 4, Knowledge.none(4)]
EVERYTHING: list[Any] = ["all", ["w", "x", "y", "z"], [3, 1, 2, 0]]
SUBJECTS = [
    GRR(4, 1.0),
    OUE(4, 2.0),
    SubsetSelection(4, 1.0, 2),
    Laplace([0.0, 1.0, 2.0, 3.0], scale=0.7),
    Gaussian([0.0, 1.0, 1.5, 3.0], sigma=0.8),
    Matrix([[0.7, 0.1, 0.2], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4], [0.2, 0.2, 0.6]]),
    PureDP(1.5),
    ApproxDP(0.5, 0.05),
    GaussianDP(1.0),
]


def numbers(subject: Any, threat: Threat) -> tuple[float, ...]:
    found = assess(subject, threat)
    return found.advantage, found.success, found.baseline


@pytest.mark.parametrize("weights", [WEIGHTS, [0.25] * 4], ids=["skewed", "uniform"])
@pytest.mark.parametrize("spelling", EXACT)
@pytest.mark.parametrize("known", [NOTHING, EVERYTHING], ids=["nothing", "everything"])
def test_a_threat_is_the_same_in_every_spelling(spelling: str, known: list[Any], weights: list[float]) -> None:
    plain = Threat(Prior(weights), known[0])
    for knows in known:
        threat = Threat(Prior(weights), knows, EXACT[spelling])
        assert threat.is_exact
        assert threat.essence.success == Exact()
        assert threat.essence.knows.is_none == plain.knows.is_none
        for subject in SUBJECTS:
            assert numbers(subject, threat) == pytest.approx(numbers(subject, plain), abs=1e-10), subject


@pytest.mark.parametrize("template", [GRR(4, 1.0), PureDP(1.0), ApproxDP(1.0, 1e-3)])
def test_calibration_and_certificates_are_the_same_in_every_spelling(template: Any) -> None:
    plain = Threat(Prior(WEIGHTS))
    noise, certified = calibrate(template, plain, advantage=0.1).value, epsilon_from_advantage(0.1, plain)
    for spelling in ("in all columns", "on a graph", "named by other guesses"):
        threat = Threat(Prior(WEIGHTS), success=EXACT[spelling])
        assert calibrate(template, threat, advantage=0.1).value == pytest.approx(noise, rel=1e-9)
        assert epsilon_from_advantage(0.1, threat) == pytest.approx(certified, rel=1e-9)


@pytest.mark.parametrize("subject", [subject for subject in SUBJECTS if not hasattr(subject, "size")])
def test_records_that_nobody_has_change_nothing_for_a_guarantee(subject: Any) -> None:
    plain = Threat(Prior(WEIGHTS))
    padded = Prior([0.4, 0.0, 0.3, 0.2, 0.0, 0.1])
    near = Line(0.6, positions=[0.0, 0.5, 1.0, 2.0, 2.5, 3.0])  # of two others, but only records that nobody has
    for threat in (
        Threat(padded),
        Threat(padded, [0, 1, 0, 0, 2, 0]),
        Threat(padded, success=Attributes({"x": [*"aabccd"]}, "x")),
    ):
        assert threat.essence.knows.is_none
        assert numbers(subject, threat) == pytest.approx(numbers(subject, plain), abs=1e-10)
    assert not Threat(padded, success=near).is_exact
    assert Threat(padded, success=Line(0.4, positions=[0.0, 0.3, 1.0, 2.0, 2.3, 3.0])).is_exact


def test_a_guess_between_two_records_is_right_about_both_even_if_nobody_is_there() -> None:
    assert not Threat(Prior([0.5, 0.0, 0.5]), success=Line(1.0)).is_exact
    assert Threat(Prior([0.5, 0.0, 0.5]), success=Line(0.5)).is_exact


def test_a_column_to_find_is_a_record_to_find() -> None:
    """Success that comes to naming a class: the classes are the records, also for the worst mechanism."""
    people = {"town": [*"abcabcab"], "ill": ["yes", "no", "no", "no", "no", "yes", "no", "flu"]}
    threat = Threat.attributes(people, known=[], secret=["ill"])
    plain = Threat(Prior({"flu": 1 / 8, "no": 5 / 8, "yes": 2 / 8}))
    assert not threat.is_exact
    assert threat.essence.success == Exact()
    for guarantee in (PureDP(1.5), ApproxDP(0.5, 0.05), GaussianDP(1.0)):
        assert numbers(guarantee, threat) == pytest.approx(numbers(guarantee, plain), abs=1e-12)
    worst = assess(PureDP(1.5), threat).worst_mechanism()
    assert worst is not None
    assert worst.labels == threat.prior.labels
    assert worst.epsilon == pytest.approx(1.5)
    assert assess(worst, threat).advantage == pytest.approx(assess(PureDP(1.5), threat).advantage, abs=1e-12)
    ill = OnAttribute(GRR(3, 1.0), [label[1] for label in threat.prior.labels or ()], labels=["flu", "no", "yes"])
    assert numbers(ill, threat) == pytest.approx(numbers(GRR(3, 1.0), plain), abs=1e-12)


def test_knowledge_of_what_is_secret_is_membership() -> None:
    people = {"town": [*"abcabcab"], "post": [*"xxyxxyxx"]}
    threat = Threat.attributes(people, known=["town"], secret=["post"])
    assert threat.essence.knows.is_all
    assert threat.essence.prior.size == 3
    assert numbers(PureDP(1.0), threat) == pytest.approx(
        numbers(PureDP(1.0), Threat.membership(Prior([3 / 8, 3 / 8, 2 / 8])))
    )


def test_who_cannot_guess_wrong_on_purpose_is_not_exact() -> None:
    """Theory, gotcha 4: with every illness in every town, no guess is sure to fail in a town."""
    everywhere = {"town": [*"aabb"], "ill": ["no", "yes"] * 2}
    assert Threat.attributes(everywhere, known=["town"], secret=["ill"]).essence.success != Exact()
    somewhere = {"town": [*"aabbcc"], "ill": ["no", "yes", "no", "flu", "flu", "yes"]}
    assert Threat.attributes(somewhere, known=["town"], secret=["ill"]).is_exact


@st.composite
def situations(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    size = draw(st.integers(1, 6))
    return draw(channels(size)), draw(priors(size)), draw(partitions(size)), draw(balls(size))


@settings(max_examples=200)
@given(situation=situations())
def test_kinds_of_records_are_all_that_an_attacker_sees(
    situation: tuple[FloatArray, FloatArray, IntArray, BoolArray],
) -> None:
    """Mixing the outputs of the records of a kind, by their probabilities, leaves advantage and success as they are."""
    channel, prior, groups, table = situation
    threat = Threat(Prior(prior), groups, Distances(0.0, 1.0 - table))
    kinds, essence = threat.kinds, threat.essence
    mixed = np.zeros((kinds.count, channel.shape[1]))
    np.add.at(mixed, kinds.of_record, prior[:, None] * channel)
    mixed /= kinds.masses(threat.prior)[:, None]
    found = assess(Matrix(mixed), essence)
    # Groups in which nobody is add nothing.
    assert (found.advantage, found.success) == pytest.approx(theorem_4_3(channel, prior, groups, table), abs=1e-12)
    assert found.baseline == pytest.approx(threat.baseline, abs=1e-12)
    if not essence.success.is_exact:  # where guesses that are right about nobody in a group are all alike
        assert essence.kappa_plus == pytest.approx(threat.kappa_plus, abs=1e-12)
        assert essence.kappa_minus == pytest.approx(threat.kappa_minus, abs=1e-12)
    assert essence.essence.success == essence.success
    assert essence.essence.prior == essence.prior
    if threat.is_exact:
        assert numbers(Matrix(channel), Threat(Prior(prior), groups)) == pytest.approx(
            numbers(Matrix(channel), threat), abs=1e-12
        )


@settings(max_examples=40)
@given(st.data())
def test_kinds_on_lines_and_rings_are_those_of_their_balls(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 7))
    prior, groups = Prior(data.draw(priors(size))), data.draw(partitions(size))
    places = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), dtype=float)
    eta = data.draw(st.sampled_from([0.0, 0.5, 1.0, 3.0, 20.0]))
    apart = np.abs(places[:, None] - places)
    for rule, distance in ((Line(eta, places), apart), (Ring(eta, places, 10.0), np.minimum(apart, 10 - apart))):
        near, listed = Threat(prior, groups, rule), Threat(prior, groups, Distances(eta, distance))
        assert near.kinds.count >= listed.kinds.count
        assert near.essence.success.is_exact == listed.essence.success.is_exact or near.kinds.count > listed.kinds.count
        assert numbers(PureDP(1.0), near) == pytest.approx(numbers(PureDP(1.0), listed), abs=1e-9)
