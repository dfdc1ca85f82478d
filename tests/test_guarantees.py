"""Guarantees: curves that are right, never above the truth, and refuse the wrong neighbours."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dp_accounting
import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dprisk import (
    GRR,
    OUE,
    ZCDP,
    ApproxDP,
    DpriskError,
    Exponential,
    Gaussian,
    GaussianDP,
    Guarantee,
    Laplace,
    Matrix,
    Mechanism,
    Prior,
    PureDP,
    SubsetSelection,
    Threat,
    assess,
    dp_sgd,
)
from dprisk.guarantees import PrivacyLoss, RenyiDP, TradeOff, as_guarantee, from_dp_event, from_opacus, from_opendp
from dprisk.mechanisms import Geometric, Repeated
from dprisk.types import FloatArray
from tests import naive
from tests.strategies import channels

ALPHA = np.linspace(0, 1, 201)
SOME: list[Guarantee] = [
    PureDP(1.0),
    PureDP(0.0),
    PureDP(300.0),
    ApproxDP(0.5, 0.01),
    ApproxDP(0.0, 1.0),
    GaussianDP(1.3),
    GaussianDP(0.0),
    ZCDP(0.3),
    RenyiDP((1.5, 2, 8, 32), (0.2, 0.3, 1.0, 5.0)),
    TradeOff(ALPHA, norm.cdf(norm.isf(ALPHA) - 1.0)),
    PureDP(0.4).compose(7),
    ApproxDP(0.4, 0.01).compose(3),
    PrivacyLoss(
        privacy_loss_distribution.from_laplace_mechanism(2.0, value_discretization_interval=1e-2), "replace-one"
    ),
]
each = pytest.mark.parametrize("promise", SOME, ids=[repr(promise) for promise in SOME])


def exact_tradeoff(one: FloatArray, two: FloatArray, alpha: float) -> float:
    """Neyman-Pearson by hand: reject outputs in order of likelihood ratio until the level is used up."""
    ratio = np.divide(two, one, out=np.full_like(two, np.inf), where=one > 0)
    level, power = 0.0, 0.0
    for theta in np.argsort(-ratio, kind="stable"):
        share = 1.0 if one[theta] == 0 else min(1.0, max(0.0, (alpha - level) / one[theta]))
        level, power = level + share * one[theta], power + share * two[theta]
    return 1 - power


@each
def test_a_curve_is_convex_falling_symmetric_and_below_the_diagonal(promise: Guarantee) -> None:
    f = promise.tradeoff(ALPHA)
    assert np.all(np.diff(f) <= 1e-12)
    assert np.all(np.diff(f, 2) >= -1e-9)
    assert np.all((f >= 0) & (f <= 1 - ALPHA + 1e-12))
    places, heights = (part[promise.knots[1] > 0] for part in promise.knots)  # where it is 0 it has no inverse
    assert np.interp(heights, *promise.knots) == pytest.approx(places, abs=1e-6)


@each
def test_profile_and_curve_say_the_same(promise: Guarantee) -> None:
    """delta(eps) is the largest 1 - f(a) - e^eps a, up to how closely the knots follow the curve."""
    fine = np.unique(np.concatenate([ALPHA, np.geomspace(1e-9, 1, 2000)]))
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        gap = float(np.max(1 - promise.tradeoff(fine) - math.exp(epsilon) * fine))
        assert promise.delta_at(epsilon) == pytest.approx(max(0.0, gap), abs=2e-3)
    assert promise.total_variation == pytest.approx(promise.delta_at(0.0), abs=1e-12)


@each
def test_epsilon_at_is_the_inverse_of_delta_at(promise: Guarantee) -> None:
    for delta in (1e-6, 0.01, 0.2):
        epsilon = promise.epsilon_at(delta)
        if math.isfinite(epsilon):
            assert promise.delta_at(epsilon) <= delta * (1 + 1e-6) + 1e-15
            assert epsilon == 0 or promise.delta_at(epsilon * 0.99) > delta * (1 - 1e-6)


def test_closed_forms() -> None:
    assert PureDP(1.0).total_variation == pytest.approx(math.tanh(0.5))
    assert PureDP(1.0).epsilon_at(0.0) == 1.0
    assert GaussianDP(1.0).total_variation == pytest.approx(2 * norm.cdf(0.5) - 1)
    assert GaussianDP(1.0).tradeoff(0.05) == pytest.approx(norm.cdf(norm.isf(0.05) - 1))
    assert math.isinf(GaussianDP(1.0).epsilon_at(0.0))
    assert ZCDP(0.5).total_variation == pytest.approx(math.sqrt(0.25), abs=1e-5)  # Pinsker


@pytest.mark.slow
@given(st.integers(2, 4).flatmap(channels))
def test_the_curve_of_a_channel_is_the_envelope_of_its_pairs(table: FloatArray) -> None:
    """Never above any pair's curve, and touching one at the knots (gotcha 1: the raw minimum is not convex)."""
    promise = Matrix(table).guarantee()
    pairs = [(one, two) for one in table for two in table]
    for alpha in (0.0, 0.03, 0.2, 0.5, 0.9, 1.0):
        assert promise.tradeoff(alpha) <= min(exact_tradeoff(one, two, alpha) for one, two in pairs) + 1e-9
    for alpha, beta in zip(*promise.knots, strict=True):
        assert beta == pytest.approx(min(exact_tradeoff(one, two, float(alpha)) for one, two in pairs), abs=1e-9)


MECHANISMS: list[Mechanism] = [
    GRR(5, 1.0),
    OUE(4, 1.0),
    SubsetSelection(5, 1.0, 2),
    Exponential.on_line(5, 3.0),
    Geometric(5, 2.0),
    Repeated(GRR(3, 1.0), 3),
    Laplace(4, 1.0),
    Gaussian(4, 0.7),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=[repr(mechanism) for mechanism in MECHANISMS])
def test_a_mechanism_gives_its_own_guarantee(mechanism: Mechanism) -> None:
    promise = mechanism.guarantee()
    for epsilon in (0.0, 0.5, 1.5):
        assert promise.delta_at(epsilon) == pytest.approx(mechanism.delta_at(epsilon), abs=1e-5)
        assert promise.delta_at(epsilon) >= mechanism.delta_at(epsilon) - 1e-12
    assert promise.epsilon_at(0.0) == pytest.approx(mechanism.epsilon, rel=1e-9)


def test_samples_of_a_curve_are_never_joined_by_chords() -> None:
    """riskcal gives betas at alphas; a chord between them lies above a convex curve, which would be unsafe."""
    truth = GaussianDP(1.5)
    for count in (5, 12, 60):
        alpha = np.linspace(0, 1, count)
        assert np.all(TradeOff(alpha, truth.tradeoff(alpha)).tradeoff(ALPHA) <= truth.tradeoff(ALPHA) + 1e-12)
    tail = np.geomspace(1e-12, 0.5, 1000)
    dense = np.unique(np.concatenate([[0.0], tail, 1 - tail, [1.0]]))
    close = TradeOff(dense, truth.tradeoff(dense))
    assert close.tradeoff(ALPHA) == pytest.approx(truth.tradeoff(ALPHA), abs=1e-3)


def test_pure_composition_is_the_optimal_one() -> None:
    """Kairouz, Oh, Viswanath: against the product of binary randomised responses, listed."""
    single = GRR(2, 0.6)
    listed = Repeated(single, 4).guarantee()
    composed = PureDP(0.6).compose(4)
    assert composed.tradeoff(ALPHA) == pytest.approx(listed.tradeoff(ALPHA), abs=1e-12)
    reveal = np.array([[0.1, 0.0], [0.0, 0.1]])
    leaky = Matrix(np.hstack([reveal, 0.9 * single.matrix()]))
    listed = Repeated(leaky, 3).guarantee()
    assert ApproxDP(0.6, 0.1).compose(3).tradeoff(ALPHA) == pytest.approx(listed.tradeoff(ALPHA), abs=1e-12)


def test_other_compositions() -> None:
    assert GaussianDP(0.5).compose(4) == GaussianDP(1.0)
    assert ZCDP(0.125).compose(3) == ZCDP(0.375)
    assert RenyiDP([2.0], [0.125]).compose(3) == RenyiDP([2.0], [0.375])
    exact, rounded = PureDP(0.3).compose(5), TradeOff(*PureDP(0.3).knots, linear=True).compose(5)
    assert 0 <= rounded.total_variation - exact.total_variation < 1e-3


def outputs_of(epsilon: float, delta: float) -> FloatArray:
    """Two rows that are exactly (epsilon, delta)-DP: each reveals with delta, and else randomised response."""
    p = 1 / (1 + math.exp(-epsilon))
    likely, rare = (1 - delta) * p, (1 - delta) * (1 - p)
    return np.array([[delta, 0.0, likely, rare], [0.0, delta, rare, likely]])


@pytest.mark.slow
def test_different_guarantees_compose() -> None:
    """Two approximate guarantees exactly, by all pairs of outputs; anything else at or below the truth."""
    for first, second in (((1.0, 0.0), (0.3, 0.0)), ((1.0, 0.1), (0.3, 0.02)), ((0.0, 0.2), (2.0, 0.0))):
        both = ApproxDP(*first).compose(ApproxDP(*second))
        table = np.einsum("zi,zj->zij", outputs_of(*first), outputs_of(*second)).reshape(2, -1)
        for epsilon in (0.0, 0.1, 0.7, 1.0, 1.2, 1.9):
            assert both.delta_at(epsilon) == pytest.approx(naive.hockey_stick(table, epsilon), abs=1e-11)
    assert PureDP(1.0).compose(PureDP(0.3)).epsilon_at(0.0) == pytest.approx(1.3)
    assert GaussianDP(0.6, "add-remove").compose(GaussianDP(0.8, "add-remove")) == GaussianDP(1.0, "add-remove")
    assert ZCDP(0.25).compose(ZCDP(0.5)) == ZCDP(0.75)
    assert RenyiDP([2.0, 4.0], [0.25, 0.5]).compose(RenyiDP([4.0, 8.0], [0.5, 1.0])) == RenyiDP([4.0], [1.0])
    assert RenyiDP([2.0, 4.0], [0.25, 0.5]).compose(ZCDP(0.25)) == RenyiDP([2.0, 4.0], [0.75, 1.5])
    assert ZCDP(0.25).compose(RenyiDP([2.0, 4.0], [0.25, 0.5])) == RenyiDP([2.0, 4.0], [0.75, 1.5])
    # By their curves alone, two Gaussian guarantees come out a little worse than they are.
    curve = TradeOff(*GaussianDP(0.6).knots, linear=True)
    for one, other in ((curve, GaussianDP(0.8)), (GaussianDP(0.8), curve)):
        gap = GaussianDP(1.0).tradeoff(ALPHA) - one.compose(other).tradeoff(ALPHA)
        assert np.all((gap > -1e-12) & (gap < 2e-3))
    pure = PureDP(0.5).compose(GaussianDP(1.0))
    assert GaussianDP(1.0).total_variation < pure.total_variation < 1
    assert pure.epsilon_at(0.0) == math.inf
    training, noise = dp_sgd(1.0, 0.05, 50, grid=1e-3), dp_sgd(5.0, 1.0, 4)
    then = from_opacus([(1.0, 0.05, 50), (5.0, 1.0, 4)], grid=1e-3)
    assert training.compose(noise) == noise.compose(training) == then
    longer = training.compose(dp_sgd(1.0, 0.05, 20, grid=1e-3))
    assert longer.total_variation == pytest.approx(dp_sgd(1.0, 0.05, 70, grid=1e-3).total_variation, abs=1e-12)
    assert training.to_replace_one().compose(noise.to_replace_one()) == then.to_replace_one()
    by_curves = training.compose(PureDP(0.1, "add-remove"))
    assert training.total_variation < by_curves.total_variation < training.total_variation + PureDP(0.1).total_variation
    with pytest.raises(DpriskError, match="for add-remove, the other for replace-one"):
        PureDP(1.0, "add-remove").compose(PureDP(1.0))


def _step_by_step(alpha: FloatArray, beta: FloatArray, size: int) -> float:
    """The total variation of so many steps along a curve, by going along it on a fine grid."""
    places = np.linspace(0, 1, 200_001)
    reached = places
    for _ in range(size):
        reached = 1 - np.interp(reached, alpha, beta)
    return float(np.max(reached - places))


def test_groups_are_several_steps() -> None:
    assert PureDP(0.5).for_groups(3) == PureDP(1.5)
    assert PureDP(0.5, "add-remove").for_groups(2).to_replace_one() == PureDP(2.0)
    three = ApproxDP(0.5, 0.01).for_groups(3)
    assert isinstance(three, ApproxDP)
    assert three.delta == pytest.approx(0.01 * math.expm1(1.5) / math.expm1(0.5))
    assert ApproxDP(0.0, 0.01).for_groups(3) == ApproxDP(0.0, 0.03)
    assert ApproxDP(400.0, 0.01).for_groups(5) == ApproxDP(2000.0, 1.0)
    assert GaussianDP(0.5).for_groups(4) == GaussianDP(2.0)
    assert ZCDP(0.25).for_groups(3) == ZCDP(2.25)
    assert RenyiDP([2.0, 16.0], [0.1, 0.5]).for_groups(3) == RenyiDP([4.0], [4.5])
    with pytest.raises(DpriskError, match="needs an order of at least 8; this one has 4 at most"):
        RenyiDP([4.0], [0.1]).for_groups(4)
    # Steps along a curve, exact for a Gaussian one and for the corners of an approximate one.
    for size in (2, 3, 7, 12):  # pure DP has two straight pieces: what is doubled is what is taken step by step
        by_curve = TradeOff(*PureDP(0.1).knots, linear=True).for_groups(size)
        assert by_curve.total_variation == pytest.approx(_step_by_step(*PureDP(0.1).knots, size), abs=2e-6)
    curve = TradeOff(*GaussianDP(0.5).knots, linear=True).for_groups(4)
    gap = GaussianDP(2.0).tradeoff(ALPHA) - curve.tradeoff(ALPHA)
    assert np.all((gap > -1e-9) & (gap < 1e-3))
    corners = TradeOff(*ApproxDP(0.5, 0.01).knots, linear=True).for_groups(3)
    assert np.all(corners.tradeoff(ALPHA) >= three.tradeoff(ALPHA) - 1e-12)
    assert corners.delta_at(1.5) == pytest.approx(three.delta, abs=1e-12)
    training = dp_sgd(2.0, 0.1, 10, grid=1e-3)
    assert training.for_groups(1) is training
    assert training.for_groups(2).total_variation > training.to_replace_one().total_variation
    with pytest.raises(DpriskError, match="size must be"):
        PureDP(1.0).for_groups(0)


def test_add_remove_is_converted_openly() -> None:
    assert PureDP(1.0, "add-remove").to_replace_one() == PureDP(2.0)
    assert GaussianDP(1.0, "add-remove").to_replace_one() == GaussianDP(2.0)
    assert ZCDP(1.0, "add-remove").to_replace_one() == ZCDP(4.0)
    twice = ApproxDP(1.0, 1e-6, "add-remove").to_replace_one()
    assert twice.epsilon == 2.0
    assert twice.delta == pytest.approx((1 + math.e) * 1e-6)
    curve = TradeOff(*GaussianDP(1.0).knots, "add-remove", linear=True).to_replace_one()
    assert curve.tradeoff(ALPHA) == pytest.approx(GaussianDP(2.0).tradeoff(ALPHA), abs=1e-3)
    assert np.all(curve.tradeoff(ALPHA) <= GaussianDP(2.0).tradeoff(ALPHA) + 1e-9)
    # Of a training the replacement is accounted for afresh, which is tighter than two steps along the curve.
    training = dp_sgd(1.0, 0.1, 10, grid=1e-3)
    afresh, along = training.to_replace_one(), TradeOff(*training.knots, "add-remove", linear=True).to_replace_one()
    assert afresh == dp_sgd(1.0, 0.1, 10, "replace-one", grid=1e-3)
    assert training.total_variation < afresh.total_variation < along.total_variation
    with pytest.raises(DpriskError, match="says little about replacing"):
        RenyiDP([2.0], [0.1], "add-remove").to_replace_one()


def test_full_batch_sgd_has_twice_the_papers_mu() -> None:
    """Theory, correction 1: clipped gradients of z and z' may be 2C apart; RAD Example 5.2 uses mu = sqrt(T)/sigma."""
    assert dp_sgd(20.0, 1.0, 100) == GaussianDP(math.sqrt(100) / 20.0, "add-remove")
    assert dp_sgd(20.0, 1.0, 100).to_replace_one() == dp_sgd(20.0, 1.0, 100, "replace-one")
    assert dp_sgd(20.0, 1.0, 100, "replace-one") == GaussianDP(2 * math.sqrt(100) / 20.0)
    # Two records with gradients -C and +C, one step: the exact advantage is above the printed bound.
    sigma = 2.0
    exact_advantage = 0.5 * (2 * norm.cdf(1 / sigma) - 1)
    printed = 0.5 * GaussianDP(1 / sigma).total_variation
    ours = assess(dp_sgd(sigma, 1.0, 1), Threat(Prior.uniform(2))).advantage
    assert printed < exact_advantage
    assert ours == pytest.approx(exact_advantage)


@pytest.mark.slow
def test_accountants_of_other_libraries() -> None:
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(1.5)), 20
    )
    by_event = from_dp_event(event, grid=1e-3)
    by_history = from_opacus([(1.5, 0.05, 15), (1.5, 0.05, 5)], grid=1e-3)
    by_engine = from_opacus(SimpleNamespace(history=[(1.5, 0.05, 20)]), grid=1e-3)
    by_rate = dp_sgd(1.5, 0.05, 20, grid=1e-3)
    for promise in (by_history, by_engine, by_rate):
        assert promise.total_variation == pytest.approx(by_event.total_variation, abs=1e-6)
    assert assess(event, Threat(Prior.uniform(4))).advantage < by_event.total_variation
    assert by_event.total_variation < from_dp_event(event, "replace-one", grid=1e-3).total_variation
    # What is not Gaussian goes through dp_accounting, for whichever relation it knows.
    response = dp_accounting.RandomizedResponseDpEvent(0.5, 4)
    assert as_guarantee(response).relation == "replace-one"
    laplace = dp_accounting.ComposedDpEvent([event, dp_accounting.LaplaceDpEvent(2.0)])
    mixed = from_dp_event(laplace, grid=1e-2)
    assert mixed.total_variation > by_event.total_variation
    assert mixed.tradeoff(0.1) == pytest.approx(1 - mixed.total_variation - 0.1, abs=0.2)
    with pytest.raises(DpriskError, match=r"cannot account.*add-remove"):
        from_dp_event(dp_accounting.UnsupportedDpEvent())
    assert by_event.compose(2).total_variation == pytest.approx(
        dp_sgd(1.5, 0.05, 40, grid=1e-3).total_variation, abs=1e-3
    )


def test_a_privacy_loss_distribution_gives_its_curve() -> None:
    """Against the Gaussian mechanism, whose curve is known; the discretised one lies below."""
    pld = privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=1e-3)
    promise, truth = PrivacyLoss(pld, "replace-one"), GaussianDP(1.0)
    assert promise.tradeoff(ALPHA) == pytest.approx(truth.tradeoff(ALPHA), abs=1e-4)
    for alpha in (0.001, 0.05, 0.4, 0.9):
        assert promise.tradeoff(alpha) == pytest.approx(truth.tradeoff(alpha), abs=1e-6)
        assert promise.tradeoff(alpha) <= truth.tradeoff(alpha) + 1e-12


def test_opendp_measurements() -> None:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0))), dp.symmetric_distance()
    total: Any = dp.t.then_sum  # opendp's functions are not typed
    laplace = space >> total() >> dp.m.then_laplace(scale=20.0)
    assert from_opendp(laplace).epsilon_at(0.0) == pytest.approx(1.0, rel=1e-6)  # 2 records moved, 10 / 20 each
    gauss = space >> total() >> dp.m.then_gaussian(scale=20.0)
    zcdp = from_opendp(gauss)
    assert isinstance(zcdp, ZCDP)
    assert zcdp.rho == pytest.approx(0.5, rel=1e-6)
    profile = from_opendp(dp.c.make_zCDP_to_approxDP(gauss))
    assert profile.delta_at(1.0) == pytest.approx(zcdp.delta_at(1.0), rel=0.2)
    scalar = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=2.0)
    with pytest.raises(DpriskError, match="Pass d_in"):
        from_opendp(scalar)
    assert from_opendp(scalar, d_in=1.0).epsilon_at(0.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: PureDP(-1.0), "epsilon must be a finite number"),
        (lambda: ApproxDP(1.0, 2.0), r"delta must lie in \[0, 1\]"),
        (lambda: GaussianDP(-1.0), "mu must be"),
        (lambda: ZCDP(math.nan), "rho must be"),
        (lambda: RenyiDP([0.5], [1.0]), "above 1"),
        (lambda: RenyiDP([2.0], [1.0, 2.0]), "one value for each order"),
        (lambda: TradeOff([0, 1], [1]), "one beta for each alpha"),
        (lambda: TradeOff([], []), "at least one alpha"),
        (lambda: TradeOff(["a"], [0.5]), "must be numbers"),
        (lambda: RenyiDP([math.inf], [1.0]), "finite and above 1"),
        (lambda: GaussianDP("1"), "mu must be a number"),  # type: ignore[arg-type]
        (lambda: ApproxDP(1.0, "x"), "delta must be a number"),  # type: ignore[arg-type]
        (lambda: PureDP(1.0).epsilon_at("x"), "delta must be a number"),  # type: ignore[arg-type]
        (lambda: from_opacus([(1.0, 2)]), "holds tuples"),  # type: ignore[list-item]
        (lambda: dp_sgd(0.001, 0.1, 10), "beyond the accountant"),
        (
            lambda: assess(
                privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=1e-2),
                Threat(Prior.uniform(2)),
            ),
            "does not tell its neighbours",
        ),
        (lambda: TradeOff([0.5], [0.9]), "are these true positive rates"),
        (lambda: PureDP(1.0, "sideways"), "'replace-one' or 'add-remove'"),  # type: ignore[arg-type]
        (lambda: PureDP(1.0).compose(0), "times must be"),
        (lambda: PureDP(1.0).tradeoff(1.5), "false positive rate"),
        (lambda: PrivacyLoss(3, "replace-one"), "get_delta_for_epsilon"),
        (lambda: dp_sgd(0.0, 0.1, 10), "noise_multiplier"),
        (lambda: dp_sgd(1.0, 1.5, 10), "sample_rate"),
        (lambda: from_opacus([]), "history is empty"),
        (lambda: assess([(1.0, 0.1)], Threat(Prior.uniform(2))), "holds tuples"),
        (lambda: assess([], Threat(Prior.uniform(2))), "list is neither a mechanism nor a guarantee"),
        (lambda: assess((1.0, 0.1, 10), Threat(Prior.uniform(2))), r"its history \[\(noise_multiplier"),
        (lambda: assess("grr", Threat(Prior.uniform(2))), "neither a mechanism nor a guarantee"),
    ],
)
def test_what_is_no_guarantee_gets_one_clear_sentence(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        wrong()


def test_opendp_approximate_measures_are_told_apart() -> None:
    """(rho, delta) of approximate zCDP is no (epsilon, delta): read as one, the bound would be below the risk."""
    dp.enable_features("contrib")
    scalar = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0)
    promise = from_opendp(dp.c.make_approximate(scalar), 1.0)
    assert isinstance(promise, ZCDP)
    threat = Threat(Prior.uniform(2))
    assert assess(promise, threat).advantage >= assess(Gaussian(2, 1.0), threat).advantage
    pure = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=2.0)
    assert from_opendp(dp.c.make_approximate(pure), 1.0).to_dict()["kind"] == "approx"


def test_what_tells_everything_composes() -> None:
    everything = Repeated(Laplace([1.0, 0.0, 0.0], scale=2e-5), 2).guarantee()
    assert everything.total_variation == 1
    assert everything.epsilon_at(0.0) == pytest.approx(1e5)
    assert float(everything.tradeoff(0.3)) == 0
    assert TradeOff([0.0, 1.0], [0.0, 0.0], linear=True).compose(3).epsilon_at(0.0) == math.inf


@pytest.mark.slow
def test_an_accountant_gives_what_it_has_accounted_for() -> None:
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-2)
    event = dp_accounting.GaussianDpEvent(2.0)
    accountant.compose(event)
    threat = Threat(Prior.uniform(2))
    assert assess(accountant, threat).advantage == pytest.approx(assess(event, threat).advantage, rel=1e-6)
    laplace = from_dp_event(dp_accounting.LaplaceDpEvent(2.0), "add-remove", grid=1e-2).to_replace_one()
    assert laplace.total_variation == pytest.approx(-math.expm1(-0.5), abs=2e-2)


def test_few_samples_of_a_curve_are_safe() -> None:
    """The curve of (0, 0.3)-DP passes through (0.1, 0.6): what is made of that one point must not lie above it."""
    truth = ApproxDP(0.0, 0.3)
    for alpha in ([0.1], [0.1, 0.5], [0.0, 0.1, 0.65], [0.3, 0.69, 0.9]):
        made = TradeOff(alpha, truth.tradeoff(alpha))
        assert np.all(made.tradeoff(ALPHA) <= truth.tradeoff(ALPHA) + 1e-12)


@pytest.mark.slow
@given(
    st.lists(st.floats(0.001, 0.999), min_size=1, max_size=5), st.sampled_from([0.0, 0.1]), st.sampled_from([0.2, 1.5])
)
def test_samples_anywhere_are_safe(places: list[float], delta: float, epsilon: float) -> None:
    truth = ApproxDP(epsilon, delta)
    made = TradeOff(places, truth.tradeoff(places))
    assert np.all(made.tradeoff(ALPHA) <= truth.tradeoff(ALPHA) + 1e-12)


def test_tiny_deltas_stay_on_the_safe_side() -> None:
    """Against Gaussians that have the same concentrated DP, and closed forms."""
    for rho in (0.1, 0.5):
        gaussian = GaussianDP(math.sqrt(2 * rho))
        for epsilon in (2.0, 4.0, 8.0):
            assert ZCDP(rho).delta_at(epsilon) >= gaussian.delta_at(epsilon)
        for delta in (1e-18, 1e-30):
            assert ZCDP(rho).epsilon_at(delta) >= gaussian.epsilon_at(delta)
    assert ZCDP(1e-300).total_variation > 0
    assert ApproxDP(1.0, 1e-12).delta_at(1.0) == 1e-12
    assert ApproxDP(1.0, 1e-5).epsilon_at(1e-5) == 1.0
    assert math.isinf(ApproxDP(1.0, 1e-17).epsilon_at(1e-18))
    assert ApproxDP(1.0, 0.1).epsilon_at(0.3) == pytest.approx(math.log(math.e - 0.2 * (1 + math.e) / 0.9))
    for epsilon, times in ((0.01, 1000), (0.1, 100), (50.0, 3), (1e-9, 1000)):
        composed = PureDP(epsilon).compose(times)
        assert composed.epsilon_at(0.0) == pytest.approx(epsilon * times)
        assert composed.delta_at(0.99 * epsilon * times) > 0


def test_a_channel_without_privacy_promises_nothing() -> None:
    assert Matrix(np.eye(300)).guarantee().total_variation == 1.0
    assert Laplace(10, 1000.0).guarantee().epsilon_at(0.0) == 1000.0


@pytest.mark.parametrize(("mu", "epsilon"), [(71.0, 2822.336186437271), (1.0, 4.377178095681227)])
def test_the_epsilon_of_gaussian_noise_is_finite_however_large(mu: float, epsilon: float) -> None:
    """Derived with 1300 digits from Balle and Wang's formula."""
    found = GaussianDP(mu).epsilon_at(1e-5)
    assert epsilon <= found <= epsilon * (1 + 1e-12)
    weaker = ZCDP(mu**2 / 2).epsilon_at(1e-5)
    assert found < weaker < 1.3 * found
