"""Noise on vectors: likelihoods, sufficient statistics, the exact optimum at right angles, rules that are not best."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.spatial.distance import pdist
from scipy.stats import laplace, norm

from dprisk import GRR, Gaussian, GaussianDP, Line, Mechanism, Prior, Threat, assess, exact
from dprisk.attacks import OptimalAttack, SimplifiedAttack, estimate
from dprisk.errors import MechanismError, ParameterError, ThreatError
from dprisk.exact.independent_scores import largest_score_advantage, right_angled_lengths
from dprisk.mechanisms import Product, Repeated, VectorGaussian, VectorLaplace, vectors
from dprisk.types import FloatArray

MEANS = np.array([[1.0, 0.0, 2.0], [0.5, -1.0, 2.0], [0.0, 3.0, 2.0], [0.25, 0.0, 2.0]])
EXTREMES = [1e-12, 1e-6, 1.0, 1e6, 1e12]


def rotation(dimension: int, seed: int) -> FloatArray:
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(dimension, dimension)))[0])


# Likelihoods and privacy


@pytest.mark.parametrize(
    ("mechanism", "density"),
    [
        (VectorGaussian(MEANS, 0.7), lambda x: norm.logpdf(x, scale=0.7)),
        (VectorGaussian(MEANS, 0.7, steps=9), lambda x: norm.logpdf(x, scale=0.7 / 3)),
        (VectorLaplace(MEANS, 0.7), lambda x: laplace.logpdf(x, scale=0.7)),
    ],
)
def test_the_likelihood_is_the_product_over_coordinates(
    mechanism: Mechanism, density: Callable[[FloatArray], FloatArray]
) -> None:
    outputs = mechanism.sample([0, 1, 2, 3, 3], np.random.default_rng(1))
    by_hand = [[density(output - mean).sum() for mean in MEANS] for output in outputs]
    assert mechanism.log_likelihood(outputs) == pytest.approx(np.array(by_hand), abs=1e-12)


def test_samples_have_the_right_mean_and_spread() -> None:
    rng, records = np.random.default_rng(2), np.full(40_000, 2)
    for mechanism, spread in ((VectorGaussian(MEANS, 2.0, 4), 1.0), (VectorLaplace(MEANS, 3.0), 3 * math.sqrt(2))):
        outputs = mechanism.sample(records, rng)
        assert outputs.mean(axis=0) == pytest.approx(MEANS[2], abs=5 * spread / 200)
        assert outputs.std(axis=0) == pytest.approx(np.full(3, spread), rel=0.05)


def test_privacy_is_that_of_the_farthest_pair() -> None:
    assert VectorGaussian(MEANS, 2.0, 9).guarantee() == GaussianDP(math.hypot(0.5, 4) / (2 / 3))
    assert VectorGaussian(MEANS, 2.0).delta_at(0.3) == GaussianDP(math.hypot(0.5, 4) / 2).delta_at(0.3)
    assert VectorLaplace(MEANS, 2.0).epsilon == 4.5 / 2
    assert VectorLaplace(MEANS, 2.0).pairwise_epsilon()[0, 3] == 0.375
    assert VectorLaplace(MEANS, 2.0).with_parameter(0.9).scale == pytest.approx(5.0)
    assert math.isinf(VectorGaussian(MEANS, 2.0).epsilon)
    for alone in (VectorGaussian(MEANS[:1], 1.0), VectorLaplace(MEANS[:1], 1.0)):
        assert (alone.epsilon, alone.delta_at(0.0)) == (0.0, 0.0)
        assert alone.guarantee().total_variation == pytest.approx(0.0)
        assert alone.pairwise_epsilon().tolist() == [[0.0]]


@pytest.mark.parametrize("shift", [(1.5, 0.0), (1.0, 0.5), (0.75, -0.75)])
def test_the_profile_of_laplace_noise_is_never_below_the_truth(shift: tuple[float, float]) -> None:
    """Against the two-dimensional hockey-stick divergence on a fine grid; equal when one moves, or two by as much."""
    mechanism = VectorLaplace([(0.0, 0.0), shift], 1.0)
    x = np.arange(-12, 14, 0.02) + 0.01
    one, two = (np.exp(-np.abs(x - at)) / 2 for at in (0.0, shift[0]))
    three, four = (np.exp(-np.abs(x - at)) / 2 for at in (0.0, shift[1]))
    for epsilon in (0.0, 0.3, 1.0, 1.4):
        excess = np.outer(one, three) - math.exp(epsilon) * np.outer(two, four)
        truth = float(np.maximum(excess, 0).sum() * 0.02**2)
        assert mechanism.delta_at(epsilon) >= truth - 1e-4
        assert mechanism.guarantee().delta_at(epsilon) >= truth - 1e-4
        if mechanism.guarantee_is_exact:
            assert mechanism.delta_at(epsilon) == pytest.approx(truth, abs=1e-3)
            assert mechanism.guarantee().delta_at(epsilon) == pytest.approx(truth, abs=1e-3)
    assert mechanism.guarantee_is_exact == (shift != (1.0, 0.5))


@pytest.mark.parametrize("size", EXTREMES)
def test_no_scale_of_the_noise_is_too_small_or_too_large(size: float) -> None:
    rng = np.random.default_rng(3)
    for mechanism in (VectorGaussian(MEANS, size), VectorGaussian(MEANS, size, 100), VectorLaplace(MEANS, size)):
        outputs = mechanism.sample([0, 1, 2, 3], rng)
        assert np.all(np.isfinite(mechanism.log_likelihood(outputs)))
        assert 0 <= mechanism.guarantee().total_variation <= 1
        for prior in (Prior.uniform(4), Prior.zipf(4)):
            for knows in ("none", "all"):
                threat = Threat(prior, knows)
                risk = assess(mechanism, threat, runs=2000)
                most = 1 - prior.collision_probability
                assert 0 <= risk.advantage <= most + 0.02  # an estimate may be above by chance
                if size == 1e-12:
                    assert risk.advantage == pytest.approx(most, abs=0.05)
                if size == 1e12:
                    assert risk.advantage == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: VectorGaussian([1.0, 2.0], 1.0), MechanismError, "a row for each record"),
        (lambda: VectorGaussian([[1.0], [2.0, 3.0]], 1.0), MechanismError, "rows of equal length"),
        (lambda: VectorGaussian([[1.0], [math.nan]], 1.0), MechanismError, "finite numbers"),
        (lambda: VectorGaussian(np.zeros((0, 3)), 1.0), MechanismError, "a row for each record"),
        (lambda: VectorGaussian(MEANS, 0.0), MechanismError, "sigma must lie between 1e-100 and 1e100, got 0"),
        (lambda: VectorGaussian(MEANS, math.inf), MechanismError, "got inf"),
        (lambda: VectorGaussian(MEANS, 1.0, steps=0), ParameterError, "steps must be a whole number of at least 1"),
        (lambda: VectorGaussian(MEANS, 1.0).log_likelihood([[1.0, 2.0]]), MechanismError, "a row of 3 numbers"),
        (lambda: VectorGaussian(MEANS, 1.0).log_likelihood([[1.0, 2.0, math.inf]]), MechanismError, "finite"),
        (lambda: VectorLaplace(MEANS, -1.0), MechanismError, "scale must lie between 1e-100 and 1e100, got -1"),
        (lambda: VectorLaplace(MEANS, 1.0).with_parameter(0.0), MechanismError, "needs epsilon > 1e-99"),
        (lambda: simplified(GRR(3, 1.0), Threat(Prior.uniform(3))), MechanismError, "a VectorGaussian"),
        (
            lambda: simplified(VectorGaussian(MEANS, 1.0), Threat(Prior.uniform(4), success=Line(0.5))),
            ThreatError,
            "exact reconstruction only",
        ),
        (
            lambda: simplified(VectorGaussian(MEANS, 1.0), Threat(Prior.uniform(4), knows="all")).guess(
                MEANS, np.random.default_rng()
            ),
            ThreatError,
            "pass its group",
        ),
    ],
)
def test_wrong_values_get_one_clear_sentence(wrong: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


def simplified(mechanism: Mechanism, threat: Threat) -> SimplifiedAttack:
    return SimplifiedAttack(mechanism, threat)  # type: ignore[arg-type]


def test_the_means_are_not_printed() -> None:
    assert repr(VectorGaussian(MEANS, 0.5, 3)) == "VectorGaussian(means=<4 x 3 numbers>, sigma=0.5, steps=3)"
    assert VectorLaplace(np.zeros((2000, 2)), 1.0).to_dict() == {
        "kind": "VectorLaplace",
        "size": 2000,
        "means": None,
        "scale": 1.0,
    }


# Sufficient statistics


def as_told(mechanism: Mechanism) -> FloatArray:
    """The distances of the means over the noise: all that counts of a Gaussian release."""
    assert isinstance(mechanism, VectorGaussian)
    return np.asarray(pdist(mechanism.means) / mechanism.noise)


@given(
    st.integers(3, 7), st.integers(2, 5), st.integers(2, 30), st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e3])
)
def test_the_span_of_the_means_is_sufficient(m: int, rank: int, dimension: int, seed: int, sigma: float) -> None:
    rng = np.random.default_rng(seed)
    rank = min(rank, m - 1, dimension)
    means = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, dimension)) + rng.normal(size=dimension)
    full = VectorGaussian(means, sigma, steps=4)
    if rank == 1:
        return
    reduced = full.sufficient()
    assert isinstance(reduced, VectorGaussian)
    assert reduced.dimension == rank
    assert as_told(reduced) == pytest.approx(as_told(full), rel=1e-9)


def test_no_direction_that_counts_is_left_out() -> None:
    """A difference of 1e-14 is nothing beside 1, but a lot beside noise of 1e-15."""
    means = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1e-14, 0.0], [0.0, 1e-14, 0.0]]
    quiet = VectorGaussian(means, 1e-15)
    assert as_told(quiet.sufficient()) == pytest.approx(as_told(quiet), rel=1e-9)


def test_coordinates_in_which_records_agree_are_left_out() -> None:
    reduced = VectorLaplace(MEANS, 0.3).sufficient()
    assert isinstance(reduced, VectorLaplace)
    assert reduced.means == pytest.approx(MEANS[:, :2])
    assert VectorLaplace(MEANS[:, :2], 0.3).sufficient().size == 4


def test_reports_and_their_mean_tell_the_same() -> None:
    rng = np.random.default_rng(4)
    repeated = Repeated(VectorGaussian(MEANS[:, :2], 0.8), 5)
    outputs = repeated.sample([0, 1, 2, 3], rng)
    mean = repeated.sufficient()
    assert isinstance(mean, VectorGaussian)
    logs, short = repeated.log_likelihood(outputs), mean.log_likelihood(outputs.mean(axis=1))
    assert logs - logs[:, :1] == pytest.approx(short - short[:, :1], abs=1e-10)


def test_two_releases_are_one_on_the_joint_means() -> None:
    other = VectorGaussian(rotation(4, 0), 0.2, 3)
    first = VectorGaussian(MEANS[:, :2], 0.8)
    joint = Product(first, other)
    assert as_told(joint.sufficient()) ** 2 == pytest.approx(as_told(first) ** 2 + as_told(other) ** 2)
    mu = float(as_told(joint.sufficient()).max())
    assert joint.guarantee().delta_at(0.5) == pytest.approx(GaussianDP(mu).delta_at(0.5))
    assert Product(first, GRR(4, 1.0)).sufficient().size == 4


# The exact optimum at right angles


@pytest.mark.parametrize(
    ("m", "mu", "value"),
    [
        (2, 0.5, 0.0987),
        (2, 3.0, 0.4332),
        (8, 0.5, 0.0740),
        (8, 1.0, 0.1690),
        (8, 3.0, 0.6198),
        (10, 1.0, 0.1533),
        (100, 0.5, 0.0131),
        (100, 3.0, 0.3545),
    ],
)
def test_the_table_of_orthogonal_gradients(m: int, mu: float, value: float) -> None:
    """Theory, section 3.6."""
    means = 3 + np.eye(m, m + 2) @ rotation(m + 2, m)
    lengths = right_angled_lengths(means)
    assert lengths is not None
    assert largest_score_advantage(lengths * mu / math.sqrt(2)) == pytest.approx(value, abs=5e-5)
    if m > 2:
        risk = assess(VectorGaussian(means, math.sqrt(2) / mu), Threat(Prior.uniform(m)))
        assert risk.exact
        assert risk.advantage == pytest.approx(value, abs=5e-5)
        assert risk.success == pytest.approx(risk.advantage + 1 / m, abs=1e-15)


@pytest.mark.parametrize("distance", [1e-13, 1e-6, 0.1, 1.0, 8.0, 50.0, 1e13])
def test_two_records_are_told_apart_as_by_one_coordinate(distance: float) -> None:
    expected = math.erf(distance / math.sqrt(8)) / 2
    for share in (0.0, 0.3, 0.5):
        strengths = distance * np.sqrt([share, 1 - share])
        assert largest_score_advantage(strengths) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.sampled_from([0.0, 0.05, 0.3, 1.0, 1.0, 2.5, 6.0]), min_size=2, max_size=5))
def test_the_integral_is_the_sum_over_records(strengths: list[float]) -> None:
    """sum_i (1/m) P(record i has the largest score | i), each by adaptive quadrature; of equals at 0 the first wins."""
    a = np.array(strengths)

    def right(i: int, t: float) -> float:
        score = a[i] * t - a[i] ** 2 / 2
        chance = 1.0
        for j in range(a.size):
            if j != i and a[j] > 0:
                chance *= norm.cdf((score + a[j] ** 2 / 2) / a[j])
            elif j != i:
                chance *= float(score > 0 or (score == 0 and i < j))
        return chance * float(norm.pdf(t - a[i]))

    success = sum(
        quad(lambda t, i=i: right(i, t), a[i] - 10, a[i] + 10, points=[a[i] / 2, a[i]], limit=500, epsabs=1e-12)[0]
        for i in range(a.size)
    )
    assert largest_score_advantage(a) == pytest.approx((success - 1) / a.size, abs=1e-9)


@pytest.mark.slow
def test_many_records_of_all_lengths_agree_with_simulation() -> None:
    rng = np.random.default_rng(5)
    a = np.r_[0.0, np.geomspace(0.01, 6.0, 30), np.full(9, 2.0)]
    scores = a * rng.normal(size=(200_000, a.size)) - a**2 / 2
    record = rng.integers(a.size, size=200_000)
    scores[np.arange(200_000), record] += a[record] ** 2  # the record's own mean
    rate = float((scores.argmax(axis=1) == record).mean())
    assert largest_score_advantage(a) + 1 / a.size == pytest.approx(rate, abs=5 * math.sqrt(rate / 200_000))


def test_only_means_at_right_angles_are_taken_for_such() -> None:
    rng = np.random.default_rng(6)
    simplex = 7 + (np.eye(5) - 0.2) @ rotation(5, 1)
    common = np.c_[np.full(5, 3.0), np.eye(5)] @ rotation(6, 2)
    unequal = np.diag([0.0, 1e-2, 0.5, 1.0, 40.0]) @ rotation(5, 3) - 2
    acute = np.array([[0.0, 0.0], [1.0, 0.0], [0.4, 0.9]])
    for means in (simplex, common, unequal, acute):
        lengths = right_angled_lengths(means)
        assert lengths is not None
        square = (lengths[:, None] ** 2 + lengths**2)[np.triu_indices(len(means), 1)]
        assert square == pytest.approx(pdist(means) ** 2, rel=1e-9)
    obtuse = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.1]])
    for means in (obtuse, rng.normal(size=(6, 9)), simplex + np.diag([0, 0, 0, 0, 1e-6])):
        assert right_angled_lengths(means) is None


def test_other_threats_are_estimated() -> None:
    release = VectorGaussian(np.eye(4), 0.5)
    for threat in (Threat(Prior.zipf(4)), Threat(Prior.uniform(4), "all"), Threat(Prior.uniform(4), success=Line(1.0))):
        assert not assess(release, threat, runs=100).exact
    padded = assess(VectorGaussian(np.eye(4)[[0, 1, 2, 3, 3]] + 0.0, 0.5), Threat(Prior([0.25] * 4 + [0.0])))
    assert padded.exact
    assert padded.advantage == pytest.approx(assess(release, Threat(Prior.uniform(4))).advantage, abs=1e-14)


# The estimate


def test_records_come_in_their_due_proportion() -> None:
    pi = np.array([0.0, 0.5, 0.3, 0.0, 0.2, 0.0])
    drawn = estimate.draw_records(pi, 20_000, 10, np.random.default_rng(7)).reshape(20_000, 10)
    assert np.all(np.sort(drawn, axis=1) == np.repeat([1, 2, 4], [5, 3, 2]))
    uneven = estimate.draw_records(pi, 20_000, 3, np.random.default_rng(8)).reshape(20_000, 3)
    share = np.bincount(uneven.ravel(), minlength=6) / uneven.size
    assert share == pytest.approx(pi, abs=0.01)
    assert ((uneven == 2).mean(axis=1)).var() < 0.3 * 0.7 / 3


@pytest.mark.parametrize("prior", [Prior.uniform(4), Prior.zipf(4)])
def test_intervals_hold_the_exact_value_and_estimates_are_unbiased(
    prior: Prior, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rounds of 16 records, of which the prior's proportions need not be whole."""
    monkeypatch.setattr(estimate, "MIN_ROUNDS", 40)
    mechanism: Mechanism = VectorGaussian(np.eye(4), 0.6) if prior.is_uniform else GRR(4, 1.5)
    threat, rng, runs = Threat(prior), np.random.default_rng(9), 300
    truth = exact.solve(mechanism, threat)
    found = [estimate.estimate_best(mechanism, threat, rng, runs=640) for _ in range(runs)]
    assert found[0].runs == 640
    for name in ("advantage", "success"):
        values = np.array([getattr(one, name) for one in found])
        held = [getattr(one, f"{name}_interval") for one in found]
        value = getattr(truth, name)
        assert sum(low <= value <= high for low, high in held) >= 0.95 * runs
        assert values.mean() == pytest.approx(value, abs=4 * values.std() / math.sqrt(runs) + 1e-12)


def test_a_few_records_get_many_runs() -> None:
    eight = VectorGaussian(np.random.default_rng(0).normal(size=(8, 100)), 1.0).sufficient()
    assert estimate.default_runs(eight) >= 1_000_000
    assert estimate.default_runs(VectorGaussian(np.eye(1000), 1.0)) == 20_000
    assert estimate.default_runs(Repeated(Gaussian(8, 1.0), 1000)) == 20_000


# The papers' rule


def phi_formula(release: VectorGaussian, prior: FloatArray, norms: bool) -> float:
    """The rule's RAD for an attacker who knows the record: W is linear in the output, so every chance is a Phi."""
    means = release.means
    direction = means - prior @ means
    half = norms * (means**2).sum(axis=1) / 2
    signal = means @ direction.T - (half - prior @ half)
    chance = norm.cdf(signal / (release.noise * np.linalg.norm(direction, axis=1)))
    return float(prior @ (np.diag(chance) - prior @ chance))


@pytest.mark.slow
@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("weights", [[0.25] * 4, [0.4, 0.3, 0.2, 0.1]])
def test_the_rule_against_its_closed_form(weights: list[float], norms: bool) -> None:
    release, threat = VectorGaussian(MEANS, 4.0, 4), Threat(Prior(weights), knows="all")
    found = estimate.measure(
        SimplifiedAttack(release, threat, norms), release, threat, np.random.default_rng(10), 100_000
    )
    low, high = found.advantage_interval
    assert low <= phi_formula(release, np.array(weights), norms) <= high
    assert high - low < 0.02
    best = estimate.estimate_best(release, threat, np.random.default_rng(11), runs=100_000)
    assert found.advantage <= best.advantage + 0.01


def test_guesses_follow_the_rule() -> None:
    """Against the rule written out, group by group."""
    pi = np.array([0.4, 0.3, 0.2, 0.1])
    release, threat = VectorGaussian(MEANS, 2.0), Threat(Prior(pi), knows=[0, 0, 1, 1])
    rng = np.random.default_rng(12)
    outputs = release.sample(rng.integers(4, size=300), rng)
    for norms in (False, True):
        attack = SimplifiedAttack(release, threat, norms)
        for x, members in ((0, [0, 1]), (1, [2, 3])):
            guesses = attack.guess(outputs, rng, np.full(300, x))
            for output, guess in zip(outputs, guesses, strict=True):
                score = MEANS @ output - norms * (MEANS**2).sum(axis=1) / 2
                evidence = score - pi @ score
                best = max(members, key=lambda z: pi[z] * evidence[z])
                assert guess == best if evidence[best] > 0 else guess not in members


def test_the_measured_advantage_is_that_of_the_guesses() -> None:
    """The definition: success on a participant minus success on somebody who did not take part."""
    release, threat = VectorGaussian(MEANS, 1.5), Threat(Prior.zipf(4), knows=[0, 0, 1, 1])
    attack, rng, runs = SimplifiedAttack(release, threat), np.random.default_rng(13), 200_000
    pi, groups = threat.prior.weights, threat.knows.groups
    taking, absent = rng.choice(4, size=runs, p=pi), rng.choice(4, size=runs, p=pi)
    outputs = release.sample(taking, rng)
    right = attack.guess(outputs, rng, groups[taking]) == taking
    anyway = attack.guess(outputs, rng, groups[absent]) == absent
    found = estimate.measure(attack, release, threat, rng, runs)
    assert found.success == pytest.approx(right.mean(), abs=5e-3)
    assert found.advantage == pytest.approx(right.mean() - anyway.mean(), abs=8e-3)
    assert found.advantage_by_group.shape == (2,)


def test_the_rule_is_best_where_the_paper_may_say_so() -> None:
    """Uniform prior, nothing known: with means of equal length, and of any length if the norms are kept."""
    rng = np.random.default_rng(14)
    equal = rng.normal(size=(5, 3))
    equal /= np.linalg.norm(equal, axis=1, keepdims=True)
    for means, norms in ((equal, False), (equal, True), (MEANS, True)):
        release, threat = VectorGaussian(means, 0.8), Threat(Prior.uniform(len(means)))
        outputs = release.sample(rng.integers(len(means), size=500), rng)
        guesses = SimplifiedAttack(release, threat, norms).guess(outputs, rng)
        assert np.array_equal(guesses, OptimalAttack(release, threat).guess(outputs, rng))


def test_equal_means_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    for rows in (rng.integers(-1, 2, size=(60, 3)) * 0.5, np.eye(5)[rng.integers(5, size=40)], np.zeros((3, 2)) * -1.0):
        for secret in (rng, _AllAlike()):  # the second gives every row the same number
            monkeypatch.setattr(np.random, "default_rng", lambda seed, secret=secret: secret)
            distinct, place = vectors._distinct_rows(np.asarray(rows, dtype=float))
            assert np.array_equal(distinct[place], rows)
            assert len(distinct) == len(np.unique(rows + 0.0, axis=0))


class _AllAlike:
    def integers(self, low: int, high: int, size: int, dtype: type[np.uint64]) -> Any:
        return np.zeros(size, dtype=dtype)
