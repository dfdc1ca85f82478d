"""Certified bounds for a record that is any number in an interval, against brute force and the discrete engine."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import stats

from dprisk import Density, DpriskError, Laplace, Line, Prior, Threat, assess
from dprisk.exact.certified import Bounds, Certificate, certify
from dprisk.mechanisms import OnInterval
from dprisk.mechanisms.numbers.noise import GaussianNoise, LaplaceNoise
from dprisk.types import FloatArray
from tests.nested_monte_carlo import chance_of_error, nested_monte_carlo

Function = Callable[[FloatArray], FloatArray]
DATA = stats.beta(2, 3).rvs(200, random_state=np.random.default_rng(5))


@dataclass(frozen=True)
class Belief:
    """A density on [0, 1], and the same by its distribution function and quantiles, from elsewhere."""

    density: Callable[[float, float], Density]
    below: Function
    quantile: Function


def beta(a: float, b: float) -> Belief:
    law = stats.beta(a, b)
    return Belief(lambda low, high: Density.beta(a, b, low, high), law.cdf, law.ppf)


def by_quantiles(density: Callable[[float, float], Density], below: Function) -> Belief:
    places = np.linspace(0, 1, 20_001)
    shares = cache(lambda: below(places))
    return Belief(density, below, lambda share: np.interp(share, shares(), places))


def two_peaks(z: FloatArray) -> FloatArray:
    return np.asarray(0.6 * stats.beta.pdf(z, 5, 20) + 0.4 * stats.beta.pdf(z, 30, 15))


def below_two_peaks(z: FloatArray) -> FloatArray:
    return np.asarray(0.6 * stats.beta.cdf(z, 5, 20) + 0.4 * stats.beta.cdf(z, 30, 15))


def below_kernels(z: FloatArray) -> FloatArray:
    standard = (z[:, None] - DATA) / 0.05
    start, end = (stats.norm.cdf((place - DATA) / 0.05) for place in (0.0, 1.0))
    return np.asarray((stats.norm.cdf(standard) - start).sum(axis=1) / (end - start).sum())


BELIEFS = {
    "uniform": Belief(Density.uniform, lambda z: np.clip(z, 0, 1), lambda share: share),
    "beta(1, 1)": beta(1, 1),
    "beta(0.1, 0.1)": beta(0.1, 0.1),
    "beta(0.5, 3)": beta(0.5, 3),
    "beta(2, 5)": beta(2, 5),
    "beta(1, 3)": beta(1, 3),
    "two peaks": by_quantiles(
        lambda low, high: Density.from_pdf(lambda z: two_peaks((z - low) / (high - low)) / (high - low), low, high),
        below_two_peaks,
    ),
    "data": by_quantiles(
        lambda low, high: Density.from_data(low + (high - low) * DATA, low, high, 0.05 * (high - low)), below_kernels
    ),
}


def brute_force(mechanism: OnInterval, belief: Belief, eta: float) -> tuple[float, float, float]:
    """Advantage, success and baseline on [0, 1] from definitions: all of 800 guesses for each of 600 outputs or more.

    Records are 3000 equally likely ones, a window that cuts through one takes its share.
    """
    records = belief.quantile((np.arange(3000) + 0.5) / 3000)
    guesses = np.unique(np.clip(np.append(np.linspace(0, 1, 801), [eta, 1 - eta]), 0, 1))
    ends = [belief.below(np.clip(guesses + side * eta, 0, 1)) * 3000 for side in (-1, 1)]
    kappa = (ends[1] - ends[0]) / 3000
    outputs, step = np.linspace(0, 1, 601, retstep=True)
    tail = np.empty(0)
    if not mechanism.truncated:  # the same for Laplace noise, but for what its tails hold
        tail = np.arange(step, 20 * mechanism.noise.width, max(step, mechanism.noise.width / 100))
    outputs = np.concatenate([-tail[::-1], outputs, 1 + tail])
    values = []
    densities = (np.exp(mechanism.log_density(some, records)) for some in np.array_split(outputs, 20))
    for density in itertools.chain.from_iterable(densities):
        joint = np.append(0.0, np.cumsum(density / 3000))
        after = [np.interp(end, np.arange(3001), joint) for end in ends]
        right = after[1] - after[0]
        values.append(((right - kappa * joint[-1]).max(), right.max()))
    advantage, success = np.trapezoid(np.array(values).T, outputs)
    return float(advantage), float(success), float(kappa.max())


def holds(bounds: Bounds, value: float, error: float = 0.0) -> bool:
    return bounds.lower - error <= value <= bounds.upper + error


def stretched(noise: LaplaceNoise | GaussianNoise, factor: float) -> LaplaceNoise | GaussianNoise:
    return type(noise)(noise.width * factor)


def sound(found: Certificate) -> bool:
    """In order, and between 0 and 1."""
    every = found.advantage, found.success, found.baseline
    return all(0 <= each.lower <= each.upper <= 1 for each in every) and found.baseline.upper <= found.success.upper


@pytest.mark.slow
@pytest.mark.parametrize("name", BELIEFS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_brute_force_lies_between_the_bounds(name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(name)])
    belief, low, high = BELIEFS[name], -3.0, 40.0
    kinds: list[type[LaplaceNoise] | type[GaussianNoise]] = [LaplaceNoise, GaussianNoise]
    noise = kinds[rng.integers(2)](float(np.exp(rng.uniform(math.log(0.05), math.log(10)))))
    truncated, eta = bool(rng.integers(2)), float(rng.uniform(0.02, 0.8))
    found = certify(
        OnInterval(stretched(noise, 43.0), low, high, truncated), belief.density(low, high), eta * 43.0, 3e-5
    )
    assert sound(found)
    advantage, success, baseline = brute_force(OnInterval(noise, 0, 1, truncated), belief, eta)
    assert holds(found.advantage, advantage, 1e-5)
    assert holds(found.success, success, 1e-5)
    assert holds(found.baseline, baseline, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [Density.uniform(), Density.beta(0.1, 0.1)], ids=repr)
@pytest.mark.parametrize("eta", [0.1, 0.25, 0.5, 0.75])
def test_the_settings_of_the_paper_are_known_to_a_millionth(prior: Density, eta: float) -> None:
    for epsilon in (1.0, 5.0, 20.0):
        found = certify(OnInterval.exponential(epsilon), prior, eta, 1e-6)
        assert max(found.advantage.gap, found.success.gap) <= 1e-6
        coarse = certify(OnInterval.exponential(epsilon), prior, eta, 1e-3)
        for fine, wide in ((found.advantage, coarse.advantage), (found.success, coarse.success)):
            assert fine.lower <= wide.upper
            assert wide.lower <= fine.upper


def test_the_scale_does_not_matter() -> None:
    for noise in (LaplaceNoise(0.2), GaussianNoise(0.2)):
        unit = certify(OnInterval(noise), Density.beta(2, 5), 0.15, 1e-3)
        large = certify(OnInterval(stretched(noise, 100.0), 0, 100), Density.beta(2, 5, 0, 100), 15.0, 1e-3)
        assert large.advantage.lower == pytest.approx(unit.advantage.lower, abs=1e-9)
        assert large.advantage.upper == pytest.approx(unit.advantage.upper, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [Density.uniform(), Density.beta(0.1, 0.1)], ids=repr)
@pytest.mark.parametrize("truncated", [False, True])
def test_noise_that_drowns_or_shows_everything(prior: Density, truncated: bool) -> None:
    for noise in (LaplaceNoise(1e12), GaussianNoise(1e12), LaplaceNoise(1e-12), GaussianNoise(1e-12)):
        found = certify(OnInterval(noise, truncated=truncated), prior, 0.1, 1e-3)
        assert sound(found)
        if noise.width > 1:
            assert found.advantage.upper < 1e-4
            assert found.success.upper < found.baseline.lower + 1e-4
        else:
            assert found.success.lower > 1 - 1e-9
            assert found.advantage.lower > 0.7


@pytest.mark.parametrize("eta", [1.0, 1.2, 50.0])
def test_a_window_as_long_as_the_interval_is_always_right(eta: float) -> None:
    for mechanism in (OnInterval.laplace(1.0), OnInterval.gaussian(0.3), OnInterval.exponential(3.0)):
        found = certify(mechanism, Density.beta(2, 5), eta)
        assert sound(found)
        assert found.advantage.upper < 1e-11
        assert found.baseline.lower > 1 - 1e-11


@pytest.mark.slow
def test_a_fine_discrete_universe_comes_near() -> None:
    found = certify(OnInterval.exponential(4.0), Density.beta(2, 5), 0.1)
    gaps = []
    for size in (100, 200, 400):
        edges = np.linspace(0, 1, size + 1)
        places, weights = (edges[1:] + edges[:-1]) / 2, np.diff(stats.beta.cdf(edges, 2, 5))
        # A window of the interval holds 0.2 size records, a ball one more: half a step less makes it one less.
        threats = [Threat(Prior(weights), success=Line(eta, places)) for eta in (0.1, 0.1 - 1 / size)]
        mechanism = Laplace(places, scale=0.5, interval=(0, 1), ends="truncate")
        more, less = (assess(mechanism, threat).advantage for threat in threats)
        gaps.append(abs((more + less) / 2 - found.advantage.upper) * size)
    assert max(gaps) < 0.1


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("noise", [LaplaceNoise(0.4), GaussianNoise(0.4)], ids=repr)
def test_outputs_are_drawn_from_the_density(noise: LaplaceNoise | GaussianNoise, truncated: bool) -> None:
    mechanism = OnInterval(noise, -1, 2, truncated)
    for record in (-1.0, 0.3, 2.0):
        drawn = mechanism.sample(np.full(20_000, record), np.random.default_rng(3))
        places = np.linspace(-1, 2, 3001) if truncated else np.linspace(-12, 12, 24_001)
        density = np.exp(mechanism.log_density(places, np.array([record]))[:, 0])
        below = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(places)))
        assert below[-1] == pytest.approx(1, abs=1e-3)
        assert stats.kstest(drawn, lambda x, at=places, of=below: np.interp(x, at, of)).pvalue > 1e-3


@pytest.mark.slow
def test_records_are_drawn_from_the_prior() -> None:
    for belief in (BELIEFS["uniform"], BELIEFS["beta(2, 5)"], BELIEFS["two peaks"], BELIEFS["data"]):
        drawn = belief.density(-3, 40).sample(20_000, np.random.default_rng(4))
        assert stats.kstest((drawn + 3) / 43, belief.below).pvalue > 1e-3


@pytest.mark.parametrize("law", [(0.3, 0.6), (0.5, 3), (3, 0.5), (1, 1), (1, 3), (2, 1), (1.5, 4), (300, 200)])
def test_the_density_of_a_bin_lies_between_its_extremes(law: tuple[float, float]) -> None:
    prior = Density.beta(*law, -3, 40)
    edges = np.unique(np.concatenate([np.linspace(-3, 40, 40), prior.turns]))
    least, most = prior.extremes(edges)
    inside = edges[:-1] + np.diff(edges) * np.linspace(0.001, 0.999, 50)[:, None]
    at = stats.beta.pdf((inside + 3) / 43, *law) / 43
    assert np.all(least <= at.min(axis=0) * (1 + 1e-9))
    assert np.all(most >= at.max(axis=0) * (1 - 1e-9))
    rises = np.sign(np.diff(at, axis=0))
    trend = prior.trend(edges)
    assert np.all((trend == 0) | np.all(rises * trend >= 0, axis=0))
    assert prior.nodes(edges)[1].sum(axis=1) == pytest.approx(np.diff(stats.beta.cdf((edges + 3) / 43, *law)))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: certify(OnInterval.laplace(1.0), Density.uniform(), 0.0), "above 0"),
        (lambda: certify(OnInterval.laplace(1.0), Density.uniform(), math.inf), "finite"),
        (lambda: certify(OnInterval.laplace(1.0), Density.uniform(), 1e-5), "10000th"),
        (lambda: certify(OnInterval.laplace(1.0), Density.uniform(), 0.1, 1e-12), "gap"),
        (lambda: certify(OnInterval.laplace(1.0), Density.uniform(0, 2), 0.1), "must be the same"),
        (lambda: Threat.reconstruction(Density.uniform()), "must be above 0"),
        (lambda: assess(OnInterval.laplace(1.0), Threat(Prior.uniform(3))), "infinitely many records"),
        (lambda: Density.uniform(1, 1), "low < high"),
        (lambda: Density.beta(0, 1), "alpha and beta"),
        (lambda: Density.from_pdf(lambda z: 2 * np.ones_like(z), 0, 1), "integrates to 2"),
        (lambda: Density.from_pdf(lambda z: z - 0.5, 0, 1), "at least 0"),
        (lambda: Density.from_pdf(lambda z: np.where(z > 0.3141, 1 / 0.6859, 0.0), 0, 1), "integrate"),
        (lambda: Density.from_data([0.5], 0, 1), "two observed"),
        (lambda: Density.from_data([0.5, 2.0], 0, 1), "must lie in"),
        (lambda: Density.from_data([0.5, 0.7], 0, 1, -1.0), "bandwidth"),
        (lambda: OnInterval.exponential(1.0, 0, 1, sensitivity=0.5), "sensitivity"),
        (lambda: OnInterval.exponential(0.0), "epsilon > 1e-99, got 0"),
        (lambda: OnInterval.gaussian(0.0), "between 1e-100 and 1e100, got 0"),
        (lambda: OnInterval.laplace(1.0).sample([2.0], np.random.default_rng()), "must lie in"),
    ],
)
def test_wrong_input_is_refused(wrong: Callable[[], object], says: str) -> None:
    with pytest.raises(DpriskError, match=says):
        wrong()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [2.0, 8.0])
@pytest.mark.parametrize("eta", [0.1, 0.75])
def test_nested_monte_carlo_agrees(epsilon: float, eta: float) -> None:
    """Its own interval is wide, so its spread over repetitions is looked at too; the maximum biases it upward."""
    mechanism = OnInterval.exponential(epsilon)
    found = certify(mechanism, Density.uniform(), eta, 1e-5)
    rng = np.random.default_rng(6)
    runs = [
        nested_monte_carlo(mechanism, np.ones_like, lambda n, g: g.random(n), eta, found.baseline.upper, 200, rng)
        for _ in range(3)
    ]
    assert all(abs(run.estimate - found.advantage.lower) <= run.error for run in runs)
    estimates = np.array([run.estimate for run in runs])
    assert estimates.mean() == pytest.approx(found.advantage.upper, abs=0.02)


def test_the_corrected_error_of_nested_monte_carlo() -> None:
    """Theory: terms that do not exceed their mean are no bound (correction 17), so a small t has no small chance."""
    assert chance_of_error(0.01, 1000, 4, 1.5, 0.2) > 1
    assert chance_of_error(2.0, 1000, 4, 1.5, 0.2) < 1e-6


def test_no_bound_on_the_advantage_exceeds_one() -> None:
    """Noise far below what the grid resolves: the bounds are wide, and stay among what an advantage can be."""
    found = assess(OnInterval.laplace(1e6), Threat.reconstruction(Density.beta(2, 5), 0.01))
    assert 0.9 < found.advantage <= 1


@pytest.mark.parametrize("end", ["a", None, 1j, [1]])
def test_ends_that_are_no_numbers_are_named(end: object) -> None:
    with pytest.raises(DpriskError, match="low must be a number"):
        OnInterval.laplace(1.0, low=end)  # type: ignore[arg-type]
    with pytest.raises(DpriskError, match="high must be a number"):
        OnInterval.exponential(1.0, high=end)  # type: ignore[arg-type]


def test_a_density_that_takes_no_array_is_refused() -> None:
    with pytest.raises(DpriskError, match="called with an array of numbers and raised ValueError: The truth value"):
        Density.from_pdf(lambda z: 2.0 if z > 0.5 else 0.0, 0, 1)  # type: ignore[arg-type, return-value]
