"""Records that are numbers: their windows, what a guarantee means for them, and how much noise they need."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dprisk import ApproxDP, GaussianDP, Prior, PureDP, Threat, assess, calibrate
from dprisk.bounds import REGISTRY
from dprisk.bounds.bound import LISTED
from dprisk.errors import MechanismError, PriorError
from dprisk.exact.certified import certify
from dprisk.mechanisms import GRR, OnAttribute, OnInterval, PostProcessed, Product
from dprisk.threat import Density
from dprisk.threat.window_masses import window_masses

HALF_COSINE = Density.from_pdf(lambda z: 1 + np.cos(6 * np.pi * z) / 2, 0.0, 1.0)
PRIORS = [Density.uniform(), Density.beta(2, 5), Density.beta(0.3, 0.3), HALF_COSINE]
MECHANISMS = [OnInterval.laplace(2.0), OnInterval.exponential(3.0), OnInterval.gaussian(0.4)]


def masses_on_a_lattice(law: Any, eta: float) -> tuple[float, float]:
    """The smallest and the largest mass of a window, by going through many of them."""
    guess = np.concatenate([np.linspace(0, 1, 40_001), [eta, 1 - eta]])
    guess = guess[(guess >= 0) & (guess <= 1)]
    mass = law.cdf(np.minimum(guess + eta, 1)) - law.cdf(np.maximum(guess - eta, 0))
    return float(mass.min()), float(mass.max())


@pytest.mark.slow
@settings(max_examples=40)
@given(
    shape=st.tuples(*[st.sampled_from([0.1, 0.5, 1.0, 1.3, 2.0, 5.0, 40.0])] * 2),
    eta=st.sampled_from([0.003, 0.01, 0.1, 0.25, 0.5, 0.77, 1.0]),
)
def test_windows_of_beta_densities_are_known_to_the_last_digits(shape: tuple[float, float], eta: float) -> None:
    """Never inside of what a fine lattice finds, and no further outside than the lattice is coarse."""
    found = window_masses(Density.beta(*shape, 10.0, 14.0), 4 * eta)
    least, most = masses_on_a_lattice(stats.beta(*shape), eta)
    assert found.lightest[0] <= least
    assert most <= found.heaviest[1]
    assert found.heaviest == pytest.approx((most, most), abs=2e-6)
    assert found.lightest == pytest.approx((least, least), abs=2e-6)
    assert found.heaviest[1] - found.heaviest[0] < 1e-11
    assert found.lightest[1] - found.lightest[0] < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("eta", [0.02, 0.4])
def test_windows_of_a_function_and_of_data(eta: float) -> None:
    found = window_masses(HALF_COSINE, eta)
    place = np.linspace(0, 1, 20_001)
    below = place + np.sin(6 * np.pi * place) / (12 * np.pi)
    mass = np.interp(place + eta, place, below) - np.interp(place - eta, place, below)
    assert found.heaviest == pytest.approx((mass.max(), mass.max()), abs=1e-7)
    assert found.lightest == pytest.approx((mass.min(), mass.min()), abs=1e-7)
    data = Density.from_data(np.random.default_rng(0).beta(2, 5, 300), 0.0, 1.0)
    found = window_masses(data, eta)
    draws = data.sample(200_000, np.random.default_rng(1))
    inside = [np.mean(np.abs(draws - guess) <= eta) for guess in np.linspace(0, 1, 201)]
    assert found.heaviest == pytest.approx((max(inside),) * 2, abs=0.01)


def test_a_baseline_does_not_move_with_the_noise() -> None:
    """Beta(0.1, 0.1), within 0.01: the window at an end, whose mass is F(0.02)."""
    threat = Threat.reconstruction(Density.beta(0.1, 0.1), within=0.01)
    at_the_end = float(stats.beta(0.1, 0.1).cdf(0.02))
    assert at_the_end == pytest.approx(0.343583, abs=5e-7)
    assert at_the_end <= threat.baseline == threat.kappa_plus <= at_the_end + 2e-12
    for epsilon in (1.0, 5.0):
        found = certify(OnInterval.exponential(epsilon), *threat.interval, 1e-3)
        assert found.baseline.lower <= at_the_end <= found.baseline.upper == threat.baseline
        assert found.success.lower >= found.baseline.lower


@pytest.mark.parametrize("eta", [0.05, 0.3, 0.6])
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_no_bound_for_numbers_is_below_the_certified_value(prior: Density, eta: float) -> None:
    threat = Threat.reconstruction(prior, within=eta)
    for mechanism in MECHANISMS:
        found = certify(mechanism, prior, eta, 1e-3)
        for guarantee in (mechanism.guarantee(), ApproxDP(1.0, mechanism.delta_at(1.0))):
            worst = assess(guarantee, threat)
            assert all(value.number >= found.advantage.lower for value in worst.on_advantage.values)
            assert all(value.number >= found.success.lower for value in worst.on_success.values)


def test_the_bounds_for_numbers_are_those_of_the_papers() -> None:
    """Theorem 4.2 with kappa_pi = 0, the first statement of Theorem 5.1, Proposition 5.3, theory 3.4."""
    threat, epsilon = Threat.reconstruction(Density.uniform(), within=0.1), 1.0
    worst = assess(PureDP(epsilon), threat)
    numbers = {value.bound.name: value.number for value in worst.on_advantage.values}
    assert numbers["variation"] == pytest.approx(np.tanh(epsilon / 2))
    assert numbers["universal"] == pytest.approx(np.tanh(epsilon / 4))
    assert numbers["three-of-pair"] == pytest.approx(0.2 * np.expm1(epsilon))
    curve = PureDP(epsilon)
    places = np.linspace(0.1, 0.2, 1001)
    assert numbers["curve-between-baselines"] == pytest.approx(
        float((1 - curve.tradeoff(places) - places).max()), abs=1e-6
    )
    odds = 0.2 * np.e / (1 + 0.2 * (np.e - 1))
    assert worst.advantage == pytest.approx(odds - 0.2)
    assert worst.success == pytest.approx(odds)
    assert assess(PureDP(20.0), Threat.reconstruction(Density.uniform(), within=0.5)).advantage <= 0.5


def test_what_takes_a_list_of_records_says_so() -> None:
    threat = Threat.reconstruction(Density.uniform(), within=0.1)
    worst = assess(PureDP(1.0), threat)
    told = worst.on_advantage.obstacles | worst.on_success.obstacles
    for bound in REGISTRY:
        replaces = bound.relation == "replace-one" and bound.bounds in ("advantage", "success")
        if replaces and LISTED & set(bound._asks):
            assert "can be listed" in told[bound.name] or "exact reconstruction" in told[bound.name]
    assert worst.to_dict()["threat"]["records"] == "Uniform(low=0, high=1)"
    assert worst.worst_mechanism() is None
    assert worst.match_among(3)[0].number >= threat.baseline
    with pytest.raises(PriorError, match="records that can be listed"):
        _ = threat.ball_masses


@pytest.mark.parametrize("template", [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(1.0)])
def test_guarantees_are_calibrated_for_numbers(template: Any) -> None:
    threat = Threat.reconstruction(Density.beta(2, 5), within=0.1)
    found = calibrate(template, threat, advantage=0.1)
    assert 0.0999 < found.advantage <= 0.1
    assert calibrate(template, threat, success=0.6).achieved["success"] <= 0.6


@pytest.mark.slow
@pytest.mark.parametrize("template", [OnInterval.laplace(1.0)])
def test_noise_on_numbers_is_calibrated_and_compared(template: OnInterval) -> None:
    threat = Threat.reconstruction(Density.beta(2, 5), within=0.1)
    found = calibrate(template, threat, advantage=0.05)
    assert 0.05 * (1 - 2e-5) < found.advantage <= 0.05
    assert found.advantage == found.bound
    assert assess(found.subject, threat).bounds.advantage > found.advantage
    assert {other.name for other in found.alternatives} >= {"membership", "ReRo"}


@pytest.mark.parametrize(
    "make",
    [
        lambda numbers: numbers.repeat(2),
        lambda numbers: Product(numbers, numbers),
        lambda numbers: OnAttribute(numbers, [0, 1]),
        lambda numbers: PostProcessed(numbers, lambda output: output),
    ],
)
def test_nothing_is_made_of_noise_on_all_numbers(make: Any) -> None:
    with pytest.raises(MechanismError, match=r"any number of an interval, .* take Laplace\(positions"):
        make(OnInterval.laplace(1.0))


def test_listed_records_and_numbers_do_not_mix() -> None:
    with pytest.raises(MechanismError, match="infinitely many"):
        assess(GRR(3, 1.0), Threat.reconstruction(Density.uniform(), within=0.1))
    with pytest.raises(MechanismError, match="infinitely many"):
        assess(OnInterval.laplace(1.0), Threat(Prior.uniform(3)))


def test_a_guarantee_for_adding_or_removing_bounds_numbers_as_well() -> None:
    """Theory 3.9 a and b with kappa_pi = 0: never looser than the detour over replacing a record."""
    threat = Threat.reconstruction(Density.uniform(), within=0.1)
    straight, detour = assess(GaussianDP(0.5, "add-remove"), threat), assess(GaussianDP(1.0), threat)
    assert straight.advantage <= detour.advantage
    assert straight.success == pytest.approx(1 - float(GaussianDP(0.5).tradeoff(threat.baseline)), abs=1e-9)
