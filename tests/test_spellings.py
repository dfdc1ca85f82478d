"""One threat, many spellings: whatever a threat is written as, what holds of it is the same."""

from functools import cache
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
    Exponential,
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
from dprisk.attacks.estimate import estimate_best
from dprisk.auditing.certify.advantage import epsilon_from_advantage
from dprisk.errors import PriorError
from dprisk.exact import beliefs, beliefs_by_law
from dprisk.mechanisms import (
    DiscreteLaplace,
    Geometric,
    Matrix,
    Mechanism,
    OnAttribute,
    Product,
    VectorGaussian,
    VectorLaplace,
)
from dprisk.mechanisms.vectors import VectorNoise
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


expected = cache(numbers)


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
        for subject in SUBJECTS if knows is known[0] else SUBJECTS[:3]:
            assert numbers(subject, threat) == pytest.approx(expected(subject, plain), abs=1e-10), subject


@pytest.mark.slow
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
    ill = OnAttribute.by_label(
        GRR(3, 1.0).labelled(["flu", "no", "yes"]), [label[1] for label in threat.prior.labels or ()]
    )
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


@pytest.mark.slow
@settings(max_examples=60)
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
    assert threat.is_exact == (essence.success.is_exact and essence.prior.size == threat.prior.support_size)
    if threat.is_exact:
        assert numbers(Matrix(channel), Threat(Prior(prior), groups)) == pytest.approx(
            numbers(Matrix(channel), threat), abs=1e-12
        )


@pytest.mark.slow
@settings(max_examples=15)
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


UNEVEN = Prior.uniform(5, [0, 1, 2, 3, 100])


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(5, 1.0),
        Gaussian(5, 0.5),
        DiscreteLaplace(5, 1.0),
        Geometric(5, 1.0),
        Exponential.on_line(5, 1.0),
        Laplace(5, 1.0).repeat(2),
        Product(GRR(5, 1.0), Laplace(5, 1.0)),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_equal_steps_do_not_go_with_labels_that_have_none(mechanism: Mechanism) -> None:
    for ask in (lambda: assess(mechanism, Threat(UNEVEN)), lambda: calibrate(mechanism, Threat(UNEVEN), advantage=0.1)):
        with pytest.raises(PriorError, match="takes the records to rise in equal steps, but the labels do not"):
            ask()
    for labels in ([2, 4, 6, 8, 10], [*"abcde"], None):  # labels that are no numbers say nothing
        assert assess(mechanism, Threat(Prior.uniform(5, labels)), runs=100 if mechanism.pairs_outputs else None)


def test_what_is_told_its_positions_takes_any_labels() -> None:
    assert assess(Laplace([0, 1, 2, 3, 100], scale=1.0), Threat(UNEVEN)).exact
    assert assess(OnAttribute(Laplace(2, 1.0), [0, 0, 1, 1, 1]), Threat(UNEVEN)).exact
    assert assess(GRR(5, 1.0), Threat(UNEVEN)).exact


LAWS = [
    OnAttribute(OUE(3, 1.0), [0, 1, 1, 2, 0, 1]),
    VectorGaussian([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [1.0, 0.0, 0.0]], 0.8),
    VectorLaplace(np.eye(3)[[0, 1, 1, 2, 0, 1]], 0.7),
    VectorLaplace(np.eye(3), 0.7),
]


@pytest.mark.parametrize("mechanism", LAWS, ids=lambda mechanism: type(mechanism).__name__)
def test_records_of_one_law_share_what_is_believed_of_it(mechanism: Mechanism) -> None:
    """The law of each record, and a mechanism for the laws alone, tell what the mechanism itself tells."""
    few, law = mechanism.laws()
    rng = np.random.default_rng(1)
    prior = Prior.from_counts([5, 0, 1, 2, 3, 1][: mechanism.size])
    same = law[:, None] == law
    table = mechanism.log_likelihood(mechanism.sample(rng.integers(mechanism.size, size=50), rng))
    for one, two in np.argwhere(same):
        assert table[:, one] == pytest.approx(table[:, two])
    outputs = few.sample(law[rng.integers(mechanism.size, size=50)], rng)
    seen = few.log_likelihood(outputs)
    assert beliefs_by_law(seen, law, prior.weights) == pytest.approx(beliefs(seen[:, law], prior.weights), abs=1e-14)
    threat = Threat(prior, [0, 1, 0, 1, 1, 0][: mechanism.size])
    found = estimate_best(mechanism, threat, np.random.default_rng(2), 40_000)
    apart = estimate_best(_without_laws(mechanism), threat, np.random.default_rng(3), 40_000)
    for which in ("advantage_interval", "success_interval"):
        one, two = getattr(found, which), getattr(apart, which)
        assert max(one[0], two[0]) < min(one[1], two[1])
    assert found.advantage == pytest.approx(apart.advantage, abs=0.01)


def _without_laws(mechanism: Mechanism) -> Mechanism:
    """The same, but for differences that floats hardly hold, so that every record has a law of its own."""
    if isinstance(mechanism, VectorNoise):
        return mechanism.on_means(mechanism.means + 1e-9 * np.arange(mechanism.size)[:, None])
    return Matrix(mechanism.matrix())


@settings(max_examples=60)
@given(st.data())
def test_what_nobody_tells_apart_is_one_record(data: st.DataObject) -> None:
    """A mechanism that sees one column: merging records that neither it nor success tells apart changes nothing."""
    size = data.draw(st.integers(2, 6))
    values = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    one = data.draw(st.sampled_from([OUE(3, 1.0), GRR(3, 2.0), SubsetSelection(3, 1.0, 2)]))
    column = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    rules = [
        Attributes({"x": column}, "x"),
        Attributes({"x": values}, "x"),
        Exact(),
        Distances(0.0, 1.0 - data.draw(balls(size))),
    ]
    threat = Threat(Prior(data.draw(priors(size))), data.draw(partitions(size)), data.draw(st.sampled_from(rules)))
    mechanism = OnAttribute(one, values)
    found, listed = assess(mechanism, threat), assess(Matrix(mechanism.matrix()), threat)
    assert numbers(mechanism, threat) == pytest.approx(numbers(Matrix(mechanism.matrix()), threat), abs=1e-12)
    support, by_record = threat.prior.support, found.average_attacker_by_record
    assert by_record[support] @ threat.prior.weights[support] == pytest.approx(listed.advantage, abs=1e-10)
    assert [group.advantage for group in found.by_group] == pytest.approx(
        [group.advantage for group in listed.by_group], abs=1e-10
    )


def test_a_column_of_many_is_exact_where_the_column_alone_is() -> None:
    people = {"town": [*range(40)] * 3, "ill": [place % 30 for place in range(120)]}
    threat = Threat.attributes(people, known=[], secret=["ill"])
    mechanism = OnAttribute(OUE(31, 1.0), [label[1] for label in threat.prior.labels or ()])
    found = assess(mechanism, threat)
    assert found.exact
    assert found.advantage == pytest.approx(assess(OUE(31, 1.0), Threat(Prior([1 / 30] * 30 + [0.0]))).advantage)
