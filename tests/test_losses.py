"""The accountant for DP-SGD: never below the truth, hardly above it, and as dp_accounting but for rounding."""

import math
import time
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import norm

import dprisk.guarantees.losses as losses_module
from dprisk import GaussianDP, Prior, Threat, assess, dp_sgd
from dprisk.guarantees import Guarantee, PrivacyLoss, as_guarantee, from_dp_event, from_opacus
from dprisk.guarantees.losses import MOST, Direction, Losses, SampledGaussians, accounted, composed, sampled_gaussian

EPSILONS = np.array([0.0, 0.03, 0.1, 0.5, 1.0, 2.0, 4.0])


def one_step(noise: float, rate: float, direction: Direction, epsilon: float) -> float:
    """delta of one step by adding up densities on a fine grid of outputs."""
    x = np.linspace(-15 * noise - 1, 15 * noise + 1, 400_001)
    still, down, up = (norm.pdf(x, shift, noise) for shift in (0.0, -1.0, 1.0))
    upper = still if direction == "add" else (1 - rate) * still + rate * down
    lower = still if direction == "remove" else (1 - rate) * still + rate * up
    return float(np.maximum(upper - math.exp(epsilon) * lower, 0.0).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("direction", ["remove", "add", "replace"])
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (0.5, 0.3), (3.0, 0.9), (2.0, 1.0)])
def test_one_step_is_the_integral_rounded_up(direction: Direction, noise: float, rate: float) -> None:
    grid = 1e-3
    losses = sampled_gaussian(noise, rate, direction, grid)
    assert losses.mass.min() >= 0
    assert losses.mass.sum() + losses.infinite == pytest.approx(1.0, abs=1e-13)
    known, deltas = losses.profile
    for epsilon in EPSILONS[known[-1] > EPSILONS]:
        delta = np.interp(math.exp(epsilon), np.exp(known), deltas)
        truth = one_step(noise, rate, direction, float(epsilon))
        assert truth - 1e-9 <= delta <= truth + grid**2 + 1e-9


def test_two_small_distributions_compose_by_hand() -> None:
    one = Losses(0.5, -1, np.array([0.25, 0.5, 0.2]), 0.05)
    two = Losses(0.5, 0, np.array([0.9, 0.1]), 0.0)
    both = composed([(one, 2), (two, 1)])
    by_hand = np.convolve(np.convolve(one.mass, one.mass), two.mass)
    start = both.first + 2
    assert both.mass == pytest.approx(by_hand[start : start + both.mass.size], abs=1e-14)
    assert both.infinite == pytest.approx(1 - 0.95**2, abs=1e-12)
    for epsilon, delta in zip(*one.profile, strict=True):
        truth = one.infinite + sum(
            p * max(0, 1 - math.exp(epsilon - v)) for v, p in zip(one.values, one.mass, strict=True)
        )
        assert delta == pytest.approx(truth, abs=1e-14)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_full_batches_as_samples_of_all_are_gaussian(relation: str) -> None:
    """A Gaussian mechanism is known exactly: the accountant is above it, and hardly."""
    replaced = relation == "replace-one"
    losses = SampledGaussians(((5.0, 1.0, 20), (3.0, 1.0, 4)), replaced, 1e-3)
    truth = GaussianDP((2 if replaced else 1) * math.sqrt(20 / 25 + 4 / 9))
    for epsilon in EPSILONS:
        assert 0 <= losses.get_delta_for_epsilon(float(epsilon)) - truth.delta_at(float(epsilon)) < 1e-5
    history = [(5.0, 1.0, 20), (3.0, 1.0, 4)]
    assert from_opacus(history, "replace-one" if replaced else "add-remove").total_variation == truth.total_variation
    # A phase on full batches beside one on samples.
    mixed = from_opacus([(5.0, 1.0, 20), (3.0, 0.999999, 4)], "replace-one" if replaced else "add-remove", 1e-3)
    assert isinstance(mixed, PrivacyLoss)
    assert mixed.total_variation == pytest.approx(truth.total_variation, abs=1e-5)


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.01, 1000), (0.6, 0.05, 30), (2.0, 0.3, 50)])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_it_agrees_with_dp_accounting(noise: float, rate: float, steps: int, relation: str) -> None:
    kind = dp_accounting.NeighboringRelation
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        noise,
        sampling_prob=rate,
        value_discretization_interval=1e-3,
        neighboring_relation=kind.REPLACE_ONE if relation == "replace-one" else kind.ADD_OR_REMOVE_ONE,
    ).self_compose(steps)
    mine = SampledGaussians(((noise, rate, steps),), relation == "replace-one", 1e-3)
    finer = SampledGaussians(((noise, rate, steps),), relation == "replace-one", 2e-4)
    for epsilon in map(float, EPSILONS):
        # Their masses add up to a little more than 1, ever more so on finer grids.
        delta = mine.get_delta_for_epsilon(epsilon)
        assert delta == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-7, abs=1e-12)
        assert delta >= finer.get_delta_for_epsilon(epsilon)
    one_by_one = np.array([mine.get_delta_for_epsilon(float(epsilon)) for epsilon in EPSILONS])
    assert np.array_equal(mine.get_delta_for_epsilon(EPSILONS), one_by_one)


def test_curves_are_below_every_point_that_the_profile_allows() -> None:
    promise = dp_sgd(1.0, 0.05, 50, grid=1e-3)
    alpha = np.linspace(0, 1, 41)
    at_once, one_by_one = promise.tradeoff(alpha), np.array([float(promise.tradeoff(a)) for a in alpha])
    assert np.all(at_once <= one_by_one + 1e-12)
    assert at_once == pytest.approx(one_by_one, abs=1e-5)
    for epsilon in map(float, EPSILONS):
        delta = promise.delta_at(epsilon)
        assert np.all(one_by_one >= 1 - delta - math.exp(epsilon) * alpha - 1e-12)
    assert promise.compose(2).total_variation == dp_sgd(1.0, 0.05, 100, grid=1e-3).total_variation


def test_an_event_takes_no_longer_than_its_history() -> None:
    """Once an event was asked for its delta two thousand times, and 76 seconds passed."""
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 1000
    )
    start = time.perf_counter()
    promise = from_dp_event(dp_accounting.ComposedDpEvent([event, dp_accounting.NoOpDpEvent()]))
    assert promise.knots[0].size > 100
    assert time.perf_counter() - start < 10
    assert promise == dp_sgd(1.0, 0.01, 1000)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("noise", "rate", "steps", "hidden"),
    [(0.1, 0.01, 100_000, 0.0), (0.3, 0.01, 10_000, 0.0), (0.05, 1e-6, 10**7, math.exp(-10)), (0.1, 0.5, 10**12, 0.0)],
)
@pytest.mark.slow
def test_a_training_that_hides_nothing_is_told_in_seconds(
    noise: float, rate: float, steps: int, hidden: float, relation: Any
) -> None:
    """Once it took eight minutes and then all memory. A record that is in no batch stays hidden."""
    start = time.perf_counter()
    promise = dp_sgd(noise, rate, steps, relation)
    assert isinstance(promise, PrivacyLoss)
    assert promise.total_variation == pytest.approx(1 - hidden, abs=1e-9)
    assert (promise.epsilon_at(1e-5) == math.inf) == (noise < 0.3)
    assert promise.knots[0].size > 1
    assert time.perf_counter() - start < 10
    assert promise.pld.profile[0].size <= MOST + 2


@pytest.mark.parametrize("direction", ["remove", "add", "replace"])
def test_a_coarser_grid_for_wide_losses_is_a_bound(monkeypatch: pytest.MonkeyPatch, direction: Direction) -> None:
    phases = [(0.7, 0.1, 100), (1.0, 0.2, 5)]
    fine = accounted(phases, direction, 1e-3)
    monkeypatch.setattr(losses_module, "MOST", 2000)
    coarse = accounted(phases, direction, 1e-3)
    assert coarse.grid > fine.grid == 1e-3
    assert coarse.mass.size <= 2001
    for epsilon in (0.0, 0.5, 1.0, 3.0, 10.0):
        above = [float(np.interp(epsilon, *losses.profile)) for losses in (coarse, fine)]
        assert above[0] >= above[1] - 1e-12
        assert above[0] == pytest.approx(above[1], abs=0.02)


def test_losses_beyond_the_largest_epsilon_are_told_as_certain() -> None:
    far = Losses(100.0, 5, np.full(10, 0.1), 0.0)  # 500, 600, ..., 1400
    epsilons, deltas = far.profile
    assert epsilons.tolist() == [0.0, 500.0, 600.0, 700.0]
    assert deltas == pytest.approx([1.0, 0.9, 0.8, 0.8])


@pytest.mark.parametrize(
    ("promise", "code"),
    [
        (dp_sgd(1.5, 0.1, 5), "dp_sgd(noise_multiplier=1.5, sample_rate=0.1, steps=5)"),
        (dp_sgd(1.5, 0.1, 5).compose(2), "dp_sgd(noise_multiplier=1.5, sample_rate=0.1, steps=10)"),
        (
            dp_sgd(1.5, 0.1, 5, "replace-one", 1e-3),
            "dp_sgd(noise_multiplier=1.5, sample_rate=0.1, steps=5, relation='replace-one', grid=0.001)",
        ),
        (from_opacus([(1.5, 0.1, 5), (2.0, 0.2, 3)]), "from_opacus([(1.5, 0.1, 5), (2, 0.2, 3)])"),
    ],
)
def test_a_training_names_itself_by_the_code_that_makes_it(promise: Guarantee, code: str) -> None:
    assert repr(promise) == promise.brief() == code
    again = eval(code, {"dp_sgd": dp_sgd, "from_opacus": from_opacus})
    assert again == promise
    assert promise.to_dict()["phases"] == [list(phase) for phase in again.pld.phases]
    assert assess(promise, Threat(Prior.uniform(3))).sentence().startswith("Whatever model is trained like this, an")


def test_a_history_stands_where_a_guarantee_stands() -> None:
    history = [(1.5, 0.1, 5), (2.0, 0.2, 3)]
    assert as_guarantee(history) == as_guarantee(tuple(map(list, history))) == from_opacus(history)
    phases = [(1.0 + phase / 7, 0.1, 1) for phase in range(20)]
    assert repr(as_guarantee(phases)) == "from_opacus(<20 entries>)"
    assert repr(as_guarantee(phases[:8])).startswith("PrivacyLoss(total variation 0.")
