"""Mechanisms, guarantees and threats are values: equal by content, closed, picklable, and true to their labels."""

import inspect
import math
import pickle
import re
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import dprisk.guarantees
import dprisk.mechanisms
import dprisk.threat
from dprisk import (
    DPSGD,
    GRR,
    OLH,
    OUE,
    SUE,
    ZCDP,
    ApproxDP,
    Density,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianDP,
    Knowledge,
    Laplace,
    Line,
    Matrix,
    Mechanism,
    Prior,
    PureDP,
    Ring,
    SubsetSelection,
    Threat,
    assess,
    audit,
    calibrate,
    release,
)
from dprisk.errors import DpriskError, TooLargeError
from dprisk.guarantees import Guarantee, PrivacyLoss, RenyiDP, TradeOff, dp_sgd
from dprisk.mechanisms import (
    BLH,
    SHE,
    THE,
    Additive,
    ConcreteHashing,
    DensityNoise,
    DiscreteGaussian,
    GaussianNoise,
    Geometric,
    LaplaceNoise,
    LocalHashing,
    OnAttribute,
    OnInterval,
    PostProcessed,
    Product,
    Repeated,
    SpacedExponential,
    UnaryEncoding,
    VectorGaussian,
    VectorLaplace,
)
from dprisk.mechanisms.local.sets import SeenMembers
from dprisk.mechanisms.numbers.additive import Binned
from dprisk.releases import Histogram, Mean
from dprisk.threat import Attributes, Balls, Distances, Exact, Graph, Success
from dprisk.values import Adjustable, Value

NAMES = ("low", "mid", "high")
PEOPLE = {"illness": ["flu", "cold", "flu", "flu"], "age": [3, 5, 8, 8]}


def logistic_density(x: Any) -> Any:
    return np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2


def logistic_below(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(x, -700, 700)))


# One or more of every public kind, over three records.
MECHANISMS: list[Mechanism] = [
    GRR(3, 1.0),
    SubsetSelection(3, 1.0),
    SubsetSelection(3, 1.0, 2),
    SUE(3, 1.0),
    OUE(3, 1.0),
    UnaryEncoding(3, 0.6, 0.2),
    LocalHashing(3, 1.0, 4),
    BLH(3, 1.0),
    OLH(3, 1.0),
    ConcreteHashing(3, 1.0, 2, "polynomial"),
    ConcreteHashing(3, 1.0, 2, [[0, 1, 1], [1, 0, 1]]),
    SHE(3, 1.0),
    THE(3, 1.0),
    THE(3, 1.0, threshold=0.6),
    Exponential([[0.0, -1.0, -2.0], [-1.0, 0.0, -1.0], [-2.0, -1.0, 0.0]], 1.0),
    Exponential.on_line(3, 1.0),
    Exponential.on_ring(3, 1.0),
    Matrix([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.2, 0.3, 0.5]]),
    Laplace(3, 1.0),
    Laplace([0, 1, 10], scale=2.0, interval=(0, 10)),
    Gaussian([0, 1, 10], sigma=2.0),
    Gaussian(3, sigma=2.0, interval=(0, 1), ends="truncate"),
    Additive([0, 1, 10], LaplaceNoise(2.0)),
    Additive([0, 1, 10], DensityNoise(logistic_density, logistic_below)),
    DiscreteLaplace([0, 1, 10], 1.0),
    DiscreteLaplace([0, 1, 10], scale=3.0, interval=(0, 10)),
    DiscreteGaussian([0, 1, 10], 2.0),
    Geometric(3, 1.0),
    VectorGaussian([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 1.0, steps=3),
    VectorGaussian([[0.0, 0.0, 5.0], [1.0, 0.0, 5.0], [3.0, 0.0, 5.0]], 1.0),
    VectorLaplace([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 1.0),
    VectorLaplace([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]], 1.0),
    Repeated(GRR(3, 1.0), 2),
    Repeated(Gaussian([0, 1, 10], sigma=2.0), 2),
    Product(GRR(3, 1.0), OUE(3, 2.0)),
    Product(Gaussian(3, 1.0), VectorGaussian([[0.0], [1.0], [2.0]], 3.0)),
    OnAttribute(GRR(2, 1.0), [0, 1, 1]),
    OnAttribute(Gaussian(2, 1.0), [0, 1, 1]),
    PostProcessed(GRR(3, 1.0), [0, 0, 1]),
    release(Histogram("illness"), PEOPLE, ["cold", "flu", "measles"], PureDP(1.0)).labelled(None),
    release(Histogram("illness"), PEOPLE, ["cold", "flu", "measles"], GaussianDP(1.0)).labelled(None),
    release(Mean("age"), PEOPLE, [0, 5, 10], PureDP(1.0)).labelled(None),
]
GUARANTEES: list[Guarantee] = [
    PureDP(1.0),
    PureDP(1.0, "add-remove"),
    ApproxDP(1.0, 1e-5),
    GaussianDP(1.5),
    ZCDP(0.5),
    RenyiDP([2.0, 4.0], [0.5, 1.0]),
    TradeOff([0.0, 0.2, 1.0], [1.0, 0.4, 0.0], linear=True),
    dp_sgd(1.0, 0.1, 5),
]
SUCCESSES: list[Success] = [
    Exact(),
    Line(1.0),
    Line(0.5, [0.0, 1.0, 3.0]),
    Ring(1.0),
    Distances(1.0, [[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]),
    Distances(1.0, sparse.csr_array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])),
    Graph(1.0, nx.path_graph(3)),
    Attributes({"a": [0, 0, 1], "b": [3, 4, 5]}, ["a", "b"], {"b": 1.0}),
]
THREATS = [
    Threat(Prior([0.5, 0.3, 0.2]), knows, success)
    for knows in ("none", "all", ["f", "f", "m"])
    for success in (Exact(), Line(1.0))
] + [Threat.attributes({"sex": ["f", "f", "m"], "ill": ["yes", "no", "no"]}, ["sex"], ["ill"])]
NUMBERS = [OnInterval.laplace(1.0), OnInterval.exponential(2.0, 0, 3), OnInterval.gaussian(0.3)]
DENSITIES = [Density.uniform(), Density.beta(2, 5), Density.from_data([0.1, 0.4, 0.9], 0, 1)]
VALUES: list[Value] = [
    *MECHANISMS,
    *NUMBERS,
    *GUARANTEES,
    *SUCCESSES,
    *THREATS,
    *DENSITIES,
    Prior.zipf(3),
    Prior({"a": 0.5, "b": 0.5}),
    Prior.uniform(100),
    Knowledge.partition(["m", "f", "f"]),
    DPSGD(0.1, 5),
    LaplaceNoise(2.0),
    GaussianNoise(2.0),
    DensityNoise(logistic_density, logistic_below),
    Threat.reconstruction(Density.beta(2, 5), within=0.1),
]


def over(values: Sequence[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "value", values, ids=[f"{number} {type(it).__name__}" for number, it in enumerate(values)]
    )


def test_every_public_kind_is_looked_at() -> None:
    kinds = {type(value) for value in VALUES}
    for room in (dprisk.mechanisms, dprisk.guarantees, dprisk.threat):
        public = {getattr(room, name) for name in room.__all__}
        concrete = {
            kind
            for kind in public
            if inspect.isclass(kind) and issubclass(kind, Value) and not inspect.isabstract(kind)
        }
        allowed = {Balls, PrivacyLoss, Density, SpacedExponential}  # tested below, or seen under another name
        assert concrete - kinds <= allowed, room.__name__


@pytest.mark.slow
@over(VALUES)
def test_a_value_survives_a_pickle(value: Value) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value
    assert hash(again) == hash(value)
    assert repr(again) == repr(value)


@over(VALUES)
def test_a_value_cannot_be_changed(value: Value) -> None:
    for name in (*vars(value), "something"):
        with pytest.raises(AttributeError):
            setattr(value, name, 0)
        with pytest.raises(AttributeError):
            delattr(value, name)
    for held in (vars(value)[name] for name in value._own):  # not what another test made it derive
        assert not isinstance(held, np.ndarray) or not held.flags.writeable


@pytest.mark.slow
@over(VALUES)
def test_made_again_it_is_the_same_and_otherwise_not(value: Value) -> None:
    assert value.replace() == value
    assert sum(other == value for other in VALUES) == 1
    assert value != "something else"


@over([value for value in VALUES if "<" not in repr(value) and "(" in repr(value)])
def test_a_short_repr_is_the_code_that_makes_it(value: Value) -> None:
    names: dict[str, Any] = {}
    for room in (dprisk.mechanisms, dprisk.guarantees, dprisk.threat):
        names |= {name: getattr(room, name) for name in room.__all__}
    from dprisk.threat.density import Beta, Uniform

    names |= {"Beta": Beta, "Uniform": Uniform}
    if re.search(r"\d records|\d knots|total variation|Density\(", repr(value)):
        return  # a summary
    assert eval(repr(value), names) == value


def test_what_somebody_passed_can_still_be_changed_without_harm() -> None:
    table = np.array([[0.5, 0.5], [0.25, 0.75]])
    weights = [0.5, 0.5]
    mechanism, prior = Matrix(table), Prior(weights)
    before = repr(mechanism), repr(prior), mechanism.matrix().copy()
    table[0, 0], weights[0] = 9.0, 9.0
    assert (repr(mechanism), repr(prior)) == before[:2]
    assert np.array_equal(mechanism.matrix(), before[2])
    assert mechanism.replace() == mechanism


@pytest.mark.slow
def test_privacy_loss_compares_by_its_curve() -> None:
    assert dp_sgd(1.0, 0.1, 5) == dp_sgd(1.0, 0.1, 5)
    assert dp_sgd(1.0, 0.1, 5) != dp_sgd(1.0, 0.1, 6)


def returning_mechanisms(mechanism: Mechanism) -> dict[str, Callable[[], Mechanism | None]]:
    """Every public method that returns a mechanism, called somehow."""
    calls: dict[str, Callable[[], Any]] = {
        "labelled": lambda: mechanism.labelled(mechanism.labels),
        "replace": mechanism.replace,
        "sufficient": mechanism.sufficient,
        "restricted": lambda: mechanism.restricted([0, 1, 2]),
    }
    if mechanism.parameter is not None:
        calls["with_parameter"] = lambda: mechanism.with_parameter(1.25)
    if not isinstance(mechanism, Product):
        calls["repeat"] = lambda: mechanism.repeat(2)
    if isinstance(mechanism, Additive):
        calls["binned"] = lambda: mechanism.binned(np.array([0.25, 0.5]))
    return calls


def test_no_method_that_returns_a_mechanism_is_forgotten() -> None:
    told = {"labelled", "replace", "sufficient", "restricted", "with_parameter", "repeat", "binned"}
    aside = {
        "averaged",
        "viewed",
        "laws",
        "on_means",
        "from_distances",
        "on_line",
        "on_ring",
        "on_graph",
        "from_file",
        "exponential",
        "laplace",
        "gaussian",
    }  # other records, or made from nothing
    for kind in {type(value) for value in (*MECHANISMS, *NUMBERS)}:
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            hint = str(inspect.signature(method).return_annotation)
            returns = any(word in hint for word in ("Mechanism", "Self", "Repeated", "Binned", "Laplace", "Gaussian"))
            assert name.startswith("_") or not returns or name in told | aside, (kind, name)


@over(MECHANISMS)
def test_labels_survive_whatever_returns_a_mechanism(value: Mechanism) -> None:
    named = value.labelled(NAMES)
    for name, call in returning_mechanisms(named).items():
        other = call()
        assert other is None or other.labels == NAMES, name
    assert value.labels is None
    assert named != value
    assert pickle.loads(pickle.dumps(named)) == named
    fewer = named.restricted([2, 0])
    assert fewer is None or fewer.labels == ("high", "low")


@over(MECHANISMS)
def test_a_prior_in_another_order_is_refused_everywhere(value: Mechanism) -> None:
    named, reversed_prior = value.labelled(NAMES), Prior([0.5, 0.3, 0.2], NAMES[::-1])
    threat = Threat(reversed_prior)
    with pytest.raises(DpriskError, match="same order"):
        assess(named, threat)
    if named.parameter is not None:
        with pytest.raises(DpriskError, match="same order"):
            calibrate(named, threat, advantage=0.01)
    with pytest.raises(DpriskError, match="same order"):
        audit(named, 5.0, threat=threat, runs=10)
    wrapped = Product(named, GRR(3, 1.0)) if isinstance(named, Product) else named.repeat(2)
    with pytest.raises(DpriskError, match="same order"):
        assess(wrapped, threat)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: assess(GRR(3, 1.0).labelled(NAMES), Threat(Prior.uniform(3, NAMES[::-1]))),
            r"give the probabilities in the mechanism's order, as in Prior.from_counts\(counts, mechanism.labels\)",
        ),
        (
            lambda: assess(GRR(3, 1.0).labelled(NAMES), Threat(Prior.uniform(3, ["a", "b", "c"]))),
            r"a prior over the mechanism's records is Prior.from_column\(values, mechanism.labels\)",
        ),
        (
            lambda: assess(
                Exponential(np.zeros((3, 3)), 1.0).labelled(NAMES), Threat(Prior.uniform(3, ["a", "b", "c"]))
            ),
            r"make the mechanism with nodes=prior.labels",
        ),
        (lambda: assess(GRR, Threat(Prior.uniform(3))), r"is a kind, not one of them; make one: GRR\(size, epsilon\)"),
        (lambda: assess(Laplace, Threat(Prior.uniform(3))), r"make one: Laplace\(positions, \.\.\.\)"),
        (lambda: assess(PureDP, Threat(Prior.uniform(3))), r"make one: PureDP\(epsilon, \.\.\.\)"),
        (lambda: GRR(3, 1.0).replace(foo=4), "GRR is not made with 'foo'; it takes size, epsilon"),
        (lambda: Prior.uniform(3).replace(size=4), "Prior is not made with 'size'; it takes weights, labels"),
    ],
)
def test_advice_fits_the_situation(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        wrong()


def test_the_wrong_calibrations_of_a_reversed_prior_are_refused() -> None:
    mechanism = DiscreteLaplace([0, 1, 10], 1.0).labelled(NAMES)
    for weights in ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]):
        with pytest.raises(DpriskError, match="same order"):
            calibrate(mechanism, Threat(Prior(weights, NAMES[::-1])), advantage=0.1)
        kept = calibrate(mechanism, Threat(Prior(weights, NAMES)), advantage=0.1)
        assert assess(mechanism.with_parameter(kept.value), Threat(Prior(weights))).advantage <= 0.1


def test_products_of_differently_named_records_are_refused() -> None:
    with pytest.raises(DpriskError, match="labels differ"):
        Product(GRR(3, 1.0).labelled(NAMES), GRR(3, 1.0).labelled(NAMES[::-1]))
    assert Product(GRR(3, 1.0), GRR(3, 1.0).labelled(NAMES)).labels == NAMES


@pytest.mark.slow
@over([value for value in VALUES if isinstance(value, Adjustable) and value.parameter is not None])
def test_every_parameter_can_be_turned_and_reads_back(value: Any) -> None:
    turned = value.with_parameter(1.75)
    if isinstance(value, DPSGD):
        assert turned == dp_sgd(1.75, value.sample_rate, value.steps)
        return
    assert turned.parameter.value == pytest.approx(1.75)
    assert turned.parameter.name == value.parameter.name
    same = turned.with_parameter(value.parameter.value)
    if math.isfinite(value.parameter.value) and isinstance(value, Mechanism) and math.isfinite(value.size):
        assert same.guarantee().total_variation == pytest.approx(value.guarantee().total_variation, rel=1e-9)


@over([value for value in MECHANISMS if value.parameter is not None and not isinstance(value, SHE)])
def test_whatever_has_noise_can_be_calibrated(value: Mechanism) -> None:
    threat = Threat(Prior.uniform(3))
    try:
        found = calibrate(value, threat, advantage=0.07)
    except TooLargeError:  # no exact risk, so nothing to promise
        return
    assert found.parameter == value.parameter.name  # type: ignore[union-attr]
    assert found.unlimited or found.advantage <= 0.07
    assert assess(found.subject, threat).advantage <= 0.07


def test_what_was_refused_with_set_sigma_instead_is_calibrated() -> None:
    universe = ["cold", "flu", "measles"]
    threat = Threat(Prior.uniform(3, universe))
    histogram = release(Histogram("illness"), PEOPLE, universe, GaussianDP(1.0))
    for template in (
        histogram,
        VectorGaussian([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 1.0),
        OnAttribute(Gaussian(2, 1.0), [0, 1, 1]),
        Repeated(Gaussian(3, 1.0), 4),
    ):
        found = calibrate(template, threat, advantage=0.05)
        assert found.parameter == "sigma"
        assert found.advantage == pytest.approx(0.05, rel=1e-6)
        assert found.advantage <= 0.05


def test_making_a_large_mechanism_looks_at_nothing() -> None:
    """Messages are written whether they are shown or not, so a repr must not compute."""
    large = VectorLaplace(np.random.default_rng(0).random((300, 20)), 1.0)
    repeated = Repeated(large, 2)
    assert repr(repeated) == "Repeated(mechanism=VectorLaplace(means=<300 x 20 numbers>, scale=1), times=2)"
    assert "spread" not in vars(large)


@pytest.mark.parametrize(
    "answer",
    [
        assess(GRR(3, 1.0), Threat(Prior.zipf(3))),
        assess(PureDP(1.0), Threat(Prior.zipf(3))),
        assess(VectorGaussian([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 1.0), Threat.membership(Prior.zipf(3)), runs=1000),
        calibrate(GRR(3, 1.0), Threat(Prior.zipf(3)), advantage=0.1),
    ],
)
def test_answers_survive_a_pickle(answer: Any) -> None:
    again = pickle.loads(pickle.dumps(answer))
    assert again.to_dict() == answer.to_dict()
    assert again.sentence() == answer.sentence()
    assert again.rows == answer.rows


def test_rare_kinds_of_mechanisms_are_values_too() -> None:
    seen = SeenMembers(SubsetSelection(5, 1.0, 2), 3)
    binned = Binned(Laplace(3, 1.0), np.array([0.5]))
    for value in (seen, binned):
        assert pickle.loads(pickle.dumps(value)) == value
        assert value.replace() == value


def test_only_labels_that_were_put_on_are_carried_along() -> None:
    inner, other = GRR(3, 1.0).labelled(NAMES), GRR(3, 1.0).labelled(NAMES[::-1])
    wrapped = Repeated(inner, 2)
    assert wrapped.replace(mechanism=other).labels == NAMES[::-1]
    assert wrapped.labelled("xyz").replace(mechanism=other).labels == ("x", "y", "z")
    bare = wrapped.labelled(None)
    assert eval(repr(bare), {"GRR": GRR, "Repeated": Repeated}) == bare
    assert bare.with_parameter(1.0).labels is None


def test_a_view_of_a_product_cannot_be_repeated_either() -> None:
    view = OnAttribute(Product(GRR(3, 1.0), GRR(3, 1.0)), [0, 1, 2, 2])
    with pytest.raises(DpriskError, match="two parts of a product"):
        Repeated(view, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Repeated(GRR(3, 1.0), 2).with_parameter("x"),  # type: ignore[arg-type]
        lambda: Product(GRR(3, 1.0), GRR(3, 1.0)).with_parameter(None),  # type: ignore[arg-type]
        lambda: GRR(3, 1.0).labelled(3),  # type: ignore[arg-type]
        lambda: audit(GRR(3, 1.0), look=None),  # type: ignore[arg-type]
        lambda: audit(GRR(3, 1.0), running=4),  # type: ignore[arg-type]
        lambda: calibrate(GRR, Threat(Prior.uniform(3)), advantage=0.1),
        lambda: Threat(Density.uniform(), success=Ring(0.1)),
    ],
)
def test_wrong_values_get_one_sentence(wrong: Callable[[], Any]) -> None:
    with pytest.raises(DpriskError) as told:
        wrong()
    assert "_Maker" not in str(told.value)
