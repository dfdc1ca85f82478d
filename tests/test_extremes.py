"""Everywhere in the range of every constructor: risks, guarantees and bounds against channels that are written out."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dprisk import (
    ApproxDP,
    DpriskError,
    GaussianDP,
    Guarantee,
    Laplace,
    Line,
    Prior,
    PureDP,
    Threat,
    assess,
    conversions,
)
from dprisk.bounds import ours
from dprisk.guarantees import TradeOff
from dprisk.guarantees.curves import product
from dprisk.mechanisms import GRR, DiscreteGaussian, Mechanism, OnInterval, PostProcessed
from dprisk.population import leakage
from dprisk.threat import Distances
from dprisk.types import BoolArray, FloatArray, IntArray
from tests.naive import theorem_4_3
from tests.strategies import partitions
from tests.written_out import SINGLE, Written, combined, lines

pytestmark = pytest.mark.filterwarnings("error")
MASSES = st.sampled_from([0.0, 1e-300, 1e-20, 1e-9, 0.5, 1.0, 1.0, 3.0])
Case = tuple[Threat, FloatArray, IntArray, BoolArray]


@st.composite
def threats(draw: st.DrawFn, size: int) -> Case:
    """A threat, and the same as weights, groups and a table of which guess is right about which record."""
    weights = np.array(draw(st.lists(MASSES, min_size=size, max_size=size)))
    weights[draw(st.integers(0, size - 1))] += 1
    prior = Prior(weights / weights.sum())
    knows = draw(st.sampled_from(["none", "all", "some"]))
    groups = {"none": np.zeros(size, dtype=int), "all": np.arange(size), "some": draw(partitions(size))}[knows]
    told = groups.tolist() if knows == "some" else knows
    within = draw(st.sampled_from([None, None, 0.0, 1.0, 10.0, "any"]))
    if within is None:
        return Threat(prior, told), prior.weights, groups, np.eye(size, dtype=bool)
    if within == "any":
        right = np.array(draw(st.lists(st.booleans(), min_size=2 * size, max_size=2 * size))).reshape(2, size)
        rule = Distances(0.5, np.where(right, 0.0, 1.0))
        return Threat(prior, told, rule), prior.weights, groups, right
    near = np.abs(np.arange(size)[:, None] - np.arange(size)) <= within
    return Threat(prior, told, Line(float(within))), prior.weights, groups, near


def largest_ratio(logs: FloatArray) -> float:
    with np.errstate(invalid="ignore"):
        ratios = [np.where(one > -np.inf, one - two, -np.inf).max() for one in logs for two in logs]
    return float(max(ratios))


def excess(logs: FloatArray, epsilon: float) -> float:
    """The largest hockey-stick divergence, with all its digits."""
    worst = 0.0
    for one in logs:
        for two in logs:
            seen = one > -np.inf
            lead = np.minimum(two[seen] + epsilon - one[seen], 0.0)
            worst = max(worst, math.fsum(np.exp(one[seen]) * -np.expm1(lead)))
    return worst


def curve_at(logs: FloatArray, alpha: float) -> float:
    """The least false negative rate of any test between two rows."""
    best = 1.0
    for one in logs:
        for two in logs:
            with np.errstate(invalid="ignore"):
                order = np.argsort(-np.where(two > -np.inf, one - two, np.inf), kind="stable")
            alarm, hit = (np.r_[0.0, np.cumsum(np.exp(law[order]))] for law in (two, one))
            best = min(best, float(np.interp(alpha, alarm, 1 - hit)))
    return best


def require_kept(guarantee: Guarantee, logs: FloatArray, slack: float) -> None:
    """A guarantee promises no more than the channel keeps."""
    for epsilon in (0.0, 0.3, 2.0, 50.0):
        assert guarantee.delta_at(epsilon) >= excess(logs, epsilon) - slack
    for alpha in (1e-9, 0.01, 0.3, 0.9):
        assert float(guarantee.tradeoff(alpha)) <= curve_at(logs, alpha) + slack


def require_above(guarantee: Guarantee, threat: Threat, advantage: float, success: float) -> None:
    """No bound is below the risk, in floats and not only in numbers."""
    worst = assess(guarantee, threat)
    for value in worst.on_advantage.values:
        assert value.number >= advantage
    for value in worst.on_success.values:
        assert value.number >= success
    assert worst.advantage >= advantage
    assert worst.success >= success


def require_right(written: Written, case: Case, slack: float) -> None:
    mechanism, logs = written
    threat, weights, groups, right = case
    risk = assess(mechanism, threat)
    assert 0 <= risk.advantage <= 1
    assert threat.baseline - 1e-15 <= risk.success <= 1
    advantage, success = theorem_4_3(np.exp(logs), weights, groups, right)
    assert risk.advantage == pytest.approx(advantage, abs=slack)
    assert risk.success == pytest.approx(success, abs=slack)
    guarantees: list[Guarantee] = [mechanism.guarantee(), ApproxDP(1.0, mechanism.delta_at(1.0))]
    if math.isfinite(mechanism.epsilon):
        guarantees.append(PureDP(mechanism.epsilon))
    for guarantee in guarantees:
        require_above(guarantee, threat, risk.advantage, risk.success)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.data())
def test_risks_and_bounds_over_the_whole_range_of_every_constructor(data: st.DataObject) -> None:
    written = data.draw(st.one_of(SINGLE, combined()))
    require_right(written, data.draw(threats(written[0].size)), 1e-12)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_risks_and_bounds_of_noise_on_a_line_wherever_the_interval_lies(data: st.DataObject) -> None:
    written = data.draw(lines())
    require_right(written, data.draw(threats(written[0].size)), 1e-4)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.one_of(SINGLE, combined()))
def test_promises_over_the_whole_range_of_every_constructor(written: Written) -> None:
    mechanism, logs = written
    epsilon = largest_ratio(logs)
    if mechanism.merges_outputs:  # the list ends where the noise does not
        assert mechanism.epsilon >= epsilon * (1 - 1e-9)
    elif isinstance(mechanism, PostProcessed) and epsilon > 600:  # floats cannot tell what merging hides
        assert epsilon * (1 - 1e-9) <= mechanism.epsilon <= mechanism.mechanism.epsilon
    else:
        assert mechanism.epsilon == pytest.approx(epsilon, rel=1e-8, abs=1e-8)
        assert mechanism.pairwise_epsilon().max() == pytest.approx(epsilon, rel=1e-8, abs=1e-8)
    for at in (0.0, 0.5, 3.0, 40.0):
        assert mechanism.delta_at(at) == pytest.approx(excess(logs, at), abs=1e-12)
    guarantee = mechanism.guarantee()
    require_kept(guarantee, logs, 1e-14)
    assert guarantee.epsilon_at(0.0) >= epsilon * (1 - 1e-9)


@settings(max_examples=25)
@given(lines())
def test_promises_of_noise_on_a_line_wherever_the_interval_lies(written: Written) -> None:
    mechanism, logs = written
    assume(mechanism.size > 1)
    for at in (0.0, 0.5, 3.0):
        told, seen = mechanism.delta_at(at), excess(logs, at)  # of the cells, which tell a little less
        assert seen - 1e-9 <= told <= seen + 1e-2
    require_kept(mechanism.guarantee(), logs, 1e-9)


HUGE = [690.0, 700.0, 701.0, 709.0, 745.0, 746.0, 1000.0, 1490.0, 1491.0, 1e4, 1e6]


@pytest.mark.parametrize("epsilon", [699.0, 710.0, 746.0, 1491.0, 1e6])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.3])
def test_no_bound_collapses_at_a_huge_epsilon(epsilon: float, delta: float) -> None:
    """Attained by revealing the record with delta and randomised response otherwise."""
    guarantee = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    for weights in (
        [1.0],
        [0.5, 0.5],
        [1 - 1e-9, 1e-9],
        [1.0, 1e-300],
        [0.25] * 4,
        [0.7, 0.2, 0.1 - 1e-20, 1e-20, 0.0],
    ):
        for knows in ("none", "all"):
            threat = Threat(Prior(weights), knows)
            risk = assess(GRR(len(weights), epsilon), threat)
            revealed = 1 - threat.prior.collision_probability
            require_above(
                guarantee,
                threat,
                delta * revealed * (1 - 1e-15) + (1 - delta) * risk.advantage,
                delta * (1 - 1e-15) + (1 - delta) * risk.success,
            )


def test_what_the_issue_of_underflow_looked_like() -> None:
    assert assess(PureDP(1491.0), Threat(Prior.uniform(4))).advantage == pytest.approx(0.75, abs=1e-12)
    assert ours.largest_gain(1491.0, 0.25) == 1.0
    assert ours.largest_gain(2.0, 1e-3) == ours.gain(2.0, 1e-3) < ours.largest_gain(2.0, 0.5) == math.tanh(0.5)


@pytest.mark.parametrize("epsilon", [1.0, *HUGE])
def test_nothing_to_gain_is_0_and_no_error(epsilon: float) -> None:
    """One possible record; no guess that can succeed."""
    alone = assess(PureDP(epsilon), Threat(Prior([1.0])))
    assert (alone.advantage, alone.success) == (0.0, 1.0)
    hopeless = assess(PureDP(epsilon), Threat(Prior.uniform(2), success=Distances(0.5, np.ones((2, 2)))))
    assert (hopeless.advantage, hopeless.success) == (0.0, 0.0)
    for value in (*hopeless.on_advantage.values, *hopeless.on_success.values):
        assert value.number >= 0  # a number; those for comparison may be above 1
    assert assess(PureDP(0.0), Threat(Prior.uniform(4))).advantage == 0.0


@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 30.0])
def test_a_bound_that_is_attained_is_not_rounded_below(size: int, epsilon: float) -> None:
    for prior in (Prior.uniform(size), Prior.zipf(size), Prior.geometric(size, 0.5)):
        threat = Threat(prior)
        for which in ("advantage", "success"):
            worst = assess(PureDP(epsilon), threat).worst_mechanism(which)
            assert worst is not None
            risk = assess(worst, threat)
            require_above(PureDP(epsilon), threat, risk.advantage, risk.success)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, *HUGE])
@pytest.mark.parametrize("share", [0.0, 1e-300, 0.5, 1.0])
def test_conversions_stay_numbers(epsilon: float, share: float) -> None:
    pure = PureDP(epsilon)
    assert max(share, 1 - share) - 1e-12 <= conversions.attack_accuracy(pure, share) <= 1
    assert share <= leakage.posterior(epsilon, share) * (1 + 1e-15) <= 1 + 1e-15
    assert share <= conversions.true_positive_rate(pure, share) + 1e-15
    if share < 1:
        assert conversions.posterior_odds(epsilon, share) >= share
    if share > 0:
        assert leakage.bits_leaked(epsilon, share) >= 0
    assert 0 <= pure.compose(3).total_variation <= 1
    assert not math.isnan(GaussianDP(epsilon).delta_at(700.0 * share))


def clamped(positions: list[int], interval: tuple[int, int]) -> float:
    from dprisk.mechanisms import DiscreteLaplace

    return assess(DiscreteLaplace(positions, scale=5, interval=interval), Threat(Prior.uniform(2))).advantage


def test_an_interval_that_touches_the_outermost_position_keeps_both_tails_apart() -> None:
    """At the low end 5 is all that lies at or below it: with r = e^-1/5, Pr[5] = (1 - r + ...) by hand.

    Pr[noise >= k] = r^k / (1 + r) for k >= 1, so Pr[output > 5] is r^6 / (1 + r) and r / (1 + r) for 0 and 5.
    """
    r = math.exp(-1 / 5)
    expected = (r - r**6) / (1 + r) / 2
    assert clamped([0, 5], (5, 10)) == pytest.approx(expected, abs=1e-15)
    assert clamped([0, 5], (-4, 0)) == pytest.approx(expected, abs=1e-15)
    assert clamped([0, 5], (5, 6)) == pytest.approx(expected, abs=1e-15)
    assert clamped([0, 5], (5, 5)) == 0.0
    beyond = (r**2 - r**7) / (1 + r) / 2
    assert clamped([0, 5], (6, 20)) == pytest.approx(beyond, abs=1e-15)


def continuous() -> list[tuple[Mechanism, float, float]]:
    """Combinations of noise without end, with their epsilon and their total variation."""
    from dprisk import Gaussian
    from dprisk.mechanisms import OnAttribute, Product, Repeated

    discrete, laplace, gauss = DiscreteGaussian([0, 2], 1.0), Laplace([0, 2.0], 1.0), Gaussian([0, 2.0], 1.0)
    two = math.erf(2 * math.sqrt(2) / math.sqrt(8))
    return [
        (Product(GRR(2, 1.0), discrete), math.inf, Product(GRR(2, 1.0), discrete).total_variation),
        (OnAttribute(discrete, [0, 1, 1]), math.inf, discrete.total_variation),
        (OnAttribute(DiscreteGaussian([0, 2, 9], 1.0), [0, 1, 1]), math.inf, discrete.total_variation),
        (OnAttribute(discrete, [1, 1]), 0.0, 0.0),
        (Repeated(discrete, 2), math.inf, Repeated(discrete, 2).total_variation),
        (PostProcessed(discrete, lambda outputs: outputs), math.inf, discrete.total_variation),
        (OnAttribute(gauss, [1, 1, 1]), 0.0, 0.0),
        (OnAttribute(Laplace([0, 2.0, 8.0], scale=2.0), [0, 1]), 1.0, -math.expm1(-0.5)),
        (Product(gauss, gauss), math.inf, two),
        (Repeated(gauss, 2), math.inf, two),
        (Product(GRR(2, 1.0), laplace), 2.0, 0.4621171573),
    ]


@pytest.mark.parametrize(("mechanism", "epsilon", "variation"), continuous(), ids=[repr(it[0]) for it in continuous()])
def test_what_is_known_of_combined_noise_is_told(mechanism: Mechanism, epsilon: float, variation: float) -> None:
    assert mechanism.epsilon == pytest.approx(epsilon)
    assert mechanism.pairwise_epsilon().max() == pytest.approx(epsilon)
    assert mechanism.total_variation == pytest.approx(variation, abs=1e-9)
    assert mechanism.guarantee().epsilon_at(0.0) == pytest.approx(epsilon)
    assert mechanism.guarantee().total_variation >= variation - 1e-9


@pytest.mark.slow
def test_the_curve_of_a_product_is_below_that_of_fine_cells() -> None:
    from dprisk import Gaussian
    from dprisk.mechanisms import Product

    gauss, laplace = Gaussian([0.0, 1.0], 1.0), Laplace([0.0, 1.0], 1.0)
    edges = np.linspace(-12.0, 13.0, 501)
    cells = [part.mass(edges[:-1], edges[1:]) for part in (gauss, laplace)]
    logs = np.log(np.array([np.outer(*(cell[z] for cell in cells)).ravel() for z in range(2)]))
    guarantee = Product(gauss, laplace).guarantee()
    for at in (0.0, 0.5, 1.0, 2.0):
        assert excess(logs, at) - 1e-9 <= guarantee.delta_at(at) <= excess(logs, at) + 2e-3


@pytest.mark.parametrize("promise", [PureDP(0.7), ApproxDP(0.5, 0.1), PureDP(5.0)])
def test_the_curve_of_a_product_is_that_of_the_composition(promise: ApproxDP) -> None:
    """Of two randomised responses the composition is known in closed form (Kairouz, Oh, Viswanath 2015)."""
    joint, truth = TradeOff(*product(promise.knots, promise.knots), linear=True), promise.compose(2)
    assert truth.total_variation <= joint.total_variation <= truth.total_variation + 1e-11
    for alpha in np.linspace(0.0, 1.0, 41):
        told, true = float(joint.tradeoff(alpha)), float(truth.tradeoff(alpha))
        assert true - 0.01 <= told <= true + 1e-15


def test_a_map_of_listed_outputs_has_its_own_epsilon() -> None:
    """A value for each listed output says what becomes of the tails; a function does not."""
    noise = DiscreteGaussian([0, 2], 1.0)
    upper = np.arange(int(noise.n_outputs)) > noise.n_outputs / 2
    assert PostProcessed(noise, upper).epsilon < 3
    assert PostProcessed(noise, lambda outputs: outputs > 1).epsilon == math.inf


def test_an_interval_has_ends() -> None:
    for low, high in ((-math.inf, 1.0), (0.0, math.inf), (-math.inf, math.inf), (1.0, 1.0), (math.nan, 1.0)):
        with pytest.raises(DpriskError, match="Needs finite low < high"):
            OnInterval.laplace(1.0, low, high)
