"""Histogram encoding and local hashing with real hashes, against definitions written out."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from dprisk import GRR, Matrix, Prior, Threat, assess, calibrate
from dprisk.attacks import estimate
from dprisk.errors import MechanismError, ParameterError, TooLargeError
from dprisk.mechanisms import SHE, THE, ConcreteHashing, LocalHashing, Repeated
from dprisk.mechanisms.local.hashing import HashFamily, ListedHashes, MixingHashes, PolynomialHashes, _mix
from dprisk.types import FloatArray, IntArray
from tests import naive
from tests.strategies import partitions, priors

EPSILONS = st.sampled_from([0.01, 0.5, 1.0, 3.0, 8.0, 20.0])


def laplace_below(x: FloatArray, scale: float) -> FloatArray:
    """The distribution function of Laplace noise."""
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.where(x < 0, tail, 1 - tail)


def she_advantage(size: int, epsilon: float) -> float:
    return assess(SHE(size, epsilon), Threat(Prior.uniform(size))).advantage


def binned(size: int, epsilon: float, bins: int) -> Matrix:
    """SHE with each entry rounded: below 0, above 1, or one of some bins between. It tells a little less."""
    edges = np.linspace(0, 1, bins + 1)
    other = np.diff(np.r_[0.0, laplace_below(edges, 2 / epsilon), 1.0])
    true = other[::-1]
    rows = []
    for z in range(size):
        row = np.ones(1)
        for entry in range(size):
            row = np.multiply.outer(row, true if entry == z else other).ravel()
        rows.append(row)
    return Matrix(rows)


def test_noise_is_laplace_on_the_one_hot_vector() -> None:
    """Kolmogorov-Smirnov on the true entries and on the others, over more than one block."""
    mechanism, rng = SHE(100, 1.5), np.random.default_rng(5)
    records = rng.integers(100, size=12_000)
    values = mechanism.sample(records, rng)
    own = values[np.arange(records.size), records] - 1
    values[np.arange(records.size), records] = np.nan
    for part in (own, values[~np.isnan(values)]):
        below = laplace_below(np.sort(part), mechanism.scale)
        distance = np.abs(below - np.arange(part.size) / part.size).max()
        assert distance < 1.95 / math.sqrt(part.size)  # exceeded by chance once in a thousand


def test_the_likelihood_is_the_product_of_laplace_densities() -> None:
    mechanism, rng = SHE(4, 3.0), np.random.default_rng(6)
    outputs = mechanism.sample([0, 1, 2, 3, 3], rng) * 2
    for row, output in zip(mechanism.log_likelihood(outputs), outputs, strict=True):
        for z in range(4):
            entries = [math.log(3 / 4) - 1.5 * abs(output[i] - (i == z)) for i in range(4)]
            assert row[z] == pytest.approx(sum(entries), abs=1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 500.0])
def test_likelihoods_stay_finite_and_ratios_stay_within_epsilon(epsilon: float) -> None:
    mechanism = SHE(3, epsilon)
    logs = mechanism.log_likelihood([[-1e9, 0.5, 1e9], [2.0, -2.0, 1e300]])
    assert np.all(np.isfinite(logs))
    sure = mechanism.log_likelihood([[1.5, -0.5, 0.5]])[0]
    assert sure[0] - sure[1] == pytest.approx(epsilon, rel=1e-6)
    assert mechanism.epsilon == epsilon
    assert mechanism.pairwise_epsilon()[0].tolist() == [0.0, epsilon, epsilon]
    assert mechanism.delta_at(epsilon) == 0 < mechanism.delta_at(0.999 * epsilon)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_the_privacy_profile_is_that_of_fine_bins(epsilon: float) -> None:
    mechanism, table = SHE(2, epsilon), binned(2, epsilon, 150).matrix()
    for share in (0.0, 0.2, 0.5, 0.9):
        delta = mechanism.delta_at(share * epsilon)
        assert 0 <= delta - naive.hockey_stick(table, share * epsilon) < 5e-5


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 4.0, 40.0, 2000.0])
def test_the_guarantee_is_on_the_safe_side_and_close(epsilon: float) -> None:
    mechanism = SHE(7, epsilon)
    guarantee = mechanism.guarantee()
    for share in (0.0, 0.123, 0.5, 0.77, 0.999):
        exact, told = mechanism.delta_at(share * epsilon), guarantee.delta_at(share * epsilon)
        assert exact <= told
        assert told <= exact + 5e-4 or epsilon > 700  # beyond which e^epsilon is no float
    assert guarantee.epsilon_at(0.0) == epsilon


@pytest.mark.slow
@given(st.integers(2, 40), EPSILONS)
def test_no_bound_is_below_the_exact_value(size: int, epsilon: float) -> None:
    risk = assess(SHE(size, epsilon), Threat(Prior.uniform(size)))
    assert risk.bounds.advantage >= risk.advantage * (1 - 1e-12)
    assert risk.bounds.success >= risk.success * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.7, 5.0, 60.0, 500.0])
def test_two_records_have_half_the_total_variation(epsilon: float) -> None:
    assert she_advantage(2, epsilon) == pytest.approx(SHE(2, epsilon).total_variation / 2, rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "bins", "gap"), [(2, 150, 3e-5), (3, 24, 1e-3)])
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_the_exact_value_is_that_of_fine_bins(size: int, bins: int, gap: float, epsilon: float) -> None:
    table = binned(size, epsilon, bins).matrix()
    rounded = naive.theorem_4_3(
        table, np.full(size, 1 / size), np.zeros(size, dtype=np.int64), np.eye(size, dtype=bool)
    )
    risk = assess(SHE(size, epsilon), Threat(Prior.uniform(size)))
    assert risk.exact
    assert 0 <= risk.advantage - rounded[0] < gap
    assert 0 <= risk.success - rounded[1] < gap


@pytest.mark.parametrize("size", [3, 5, 8])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 12.0])
def test_the_integral_is_a_finite_sum_for_few_records(size: int, epsilon: float) -> None:
    """ReRo with u = e^-y / 2: A/2 times the integral of (1-u)^(m-1) / u^2 from A to 1/2, term by term."""
    tail = math.exp(-epsilon / 2) / 2
    between = 0.0
    for k in range(size):
        antiderivative: Callable[[float, int], float] = (
            (lambda u, _: math.log(u)) if k == 1 else lambda u, k: u ** (k - 1) / (k - 1)
        )
        between += (-1) ** k * math.comb(size - 1, k) * (antiderivative(0.5, k) - antiderivative(tail, k))
    all_low = tail * 0.5 ** (size - 1) / size
    ties = sum(
        math.comb(size - 1, k) * tail**k * (1 - tail) ** (size - 1 - k) / (1 + k) for k in range(size)
    )  # the true entry shares the top with k others
    success = all_low + tail / 2 * between + ties / 2
    assert assess(SHE(size, epsilon), Threat(Prior.uniform(size))).success == pytest.approx(success, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 3052, 10**6])
@pytest.mark.parametrize("epsilon", [1.0, 10.0, 25.0, 40.0])
def test_the_integral_agrees_with_another_rule_for_many_records(size: int, epsilon: float) -> None:
    rate, tail = epsilon / 2, math.exp(-epsilon / 2) / 2

    def chosen(y: float) -> float:
        return math.exp(y - rate) / 2 * math.exp((size - 1) * math.log1p(-math.exp(-y) / 2))

    where = [math.log(size), math.log(size) + 3]
    between = quad(chosen, 0, rate, points=[y for y in where if y < rate], epsabs=1e-13, epsrel=1e-11, limit=500)[0]
    success = between + -math.expm1(size * math.log1p(-tail)) / (2 * size * tail)
    assert she_advantage(size, epsilon) == pytest.approx(success - 1 / size, abs=1e-12)


def test_the_exact_value_is_a_number_wherever_it_is_asked_for() -> None:
    epsilons = [1e-9, 1e-4, 1.0, 30.0, 500.0, 1e9]
    for size in (1, 2, 3, 50, 10**6):
        found = [she_advantage(size, epsilon) for epsilon in epsilons]
        assert all(0 <= value <= 1 for value in found)
        assert found == sorted(found)
        assert found[-1] == pytest.approx(1 - 1 / size, abs=1e-12)
    # At small epsilon a is half of it and RAD is a/m (1 - 2^(1-m)), the first order of the formula.
    for size in (2, 3, 50, 1000):
        assert she_advantage(size, 1e-7) == pytest.approx(0.5e-7 / size * (1 - 2.0 ** (1 - size)), rel=1e-6)


def test_the_exact_value_is_what_the_best_attack_gets() -> None:
    rng, runs = np.random.default_rng(8), 100_000
    for size, epsilon in ((4, 2.0), (30, 8.0)):
        records = rng.integers(size, size=runs)
        clipped = np.clip(SHE(size, epsilon).sample(records, rng), 0, 1)
        top = clipped == clipped.max(axis=1, keepdims=True)
        right = top[np.arange(runs), records] / top.sum(axis=1)
        expected = assess(SHE(size, epsilon), Threat(Prior.uniform(size))).success
        assert abs(right.mean() - expected) < 4 * right.std() / math.sqrt(runs)


def test_other_threats_are_estimated_and_the_estimate_is_right() -> None:
    mechanism, uniform = SHE(6, 3.0), Threat(Prior.uniform(6))
    assert not assess(mechanism, Threat.membership(Prior.uniform(6)), runs=200).exact
    assert not assess(mechanism, Threat(Prior.zipf(6)), runs=200).exact
    low, high = estimate.estimate_best(mechanism, uniform, np.random.default_rng(1), 4000).advantage_interval
    assert low <= assess(mechanism, uniform).advantage <= high
    # Of two known records the best attacker says "member" to the likelier: the same half of the total variation.
    known = assess(SHE(2, 3.0), Threat.membership(Prior.uniform(2)), runs=4000).estimate
    assert known is not None
    assert known.advantage_interval[0] <= she_advantage(2, 3.0) <= known.advantage_interval[1]


def test_every_record_is_equally_at_risk() -> None:
    risk = assess(SHE(5, 2.0), Threat(Prior.uniform(5)))
    assert risk.average_attacker_by_record.tolist() == [risk.advantage] * 5
    assert assess(SHE(1, 2.0), Threat(Prior.uniform(1))).success == 1
    assert (SHE(1, 2.0).epsilon, SHE(1, 2.0).guarantee().total_variation) == (0.0, 0.0)


def test_histogram_encoding_can_be_calibrated_and_repeated() -> None:
    threat = Threat(Prior.uniform(20))
    for template in (SHE(20, 1.0), THE(20, 1.0)):
        found = calibrate(template, threat, advantage=0.1)
        assert 0.1 - 1e-9 <= found.advantage <= 0.1
        assert found.utility["variance of a frequency, times reports"] > 0
    twice = Repeated(SHE(3, 1.0), 2)
    assert twice.epsilon == 2.0
    assert twice.log_likelihood(twice.sample([0, 1], np.random.default_rng(0))).shape == (2, 3)
    with pytest.raises(TooLargeError, match="too many"):
        SHE(3, 1.0).matrix()


@pytest.mark.slow
@given(st.integers(2, 6), EPSILONS, st.floats(0, 1))
def test_thresholding_tells_less_than_the_vector(size: int, epsilon: float, threshold: float) -> None:
    vector = SHE(size, epsilon)
    for bits in (THE(size, epsilon, threshold), THE(size, epsilon)):
        assert bits.epsilon <= epsilon * (1 + 1e-14)
        for share in (0.0, 0.3, 0.8):
            assert bits.delta_at(share * epsilon) <= vector.delta_at(share * epsilon) + 1e-14
        threat = Threat(Prior.uniform(size))
        assert assess(bits, threat).advantage <= assess(vector, threat).advantage + 1e-14


@given(EPSILONS, st.floats(0, 1))
def test_thresholding_is_unary_encoding(epsilon: float, threshold: float) -> None:
    bits = THE(5, epsilon, threshold)
    scale = 2 / epsilon
    assert bits.p == pytest.approx(1 - float(laplace_below(np.array(threshold - 1), scale)), abs=1e-15)
    assert bits.q == pytest.approx(1 - float(laplace_below(np.array(threshold), scale)), abs=1e-15)
    odds = math.log(bits.p) - math.log1p(-bits.p) + math.log1p(-bits.q) - math.log(bits.q)
    assert bits.epsilon == pytest.approx(odds, rel=1e-9, abs=1e-12)
    assert bits.with_parameter(1.0).threshold == threshold


def test_thresholded_samples_are_those_of_unary_encoding() -> None:
    vector, bits, rng = SHE(50, 2.0), THE(50, 2.0), np.random.default_rng(9)
    seen = vector.sample(np.zeros(20_000, dtype=int), rng) > bits.threshold
    for part, chance in ((seen[:, 0], bits.p), (seen[:, 1:], bits.q)):
        assert abs(part.mean() - chance) < 4 * math.sqrt(chance * (1 - chance) / part.size)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 4.0, 20.0, 300.0])
def test_the_threshold_has_the_least_variance(epsilon: float) -> None:
    """Against every threshold on a fine grid, by the variance that Wang et al. print."""

    def printed(threshold: float) -> float:
        grown = math.exp(epsilon * threshold / 2)
        return (2 * grown - 1) / (1 + math.exp(epsilon * (threshold - 0.5)) - 2 * grown) ** 2

    best = THE(9, epsilon)
    assert 0.5 <= best.threshold <= 1
    if epsilon < 100:
        assert best.frequency_variance() == pytest.approx(printed(best.threshold), rel=1e-6)
    others = [THE(9, epsilon, threshold).frequency_variance() for threshold in np.linspace(0.5, 1, 501)]
    assert best.frequency_variance() <= min(others) * (1 + 1e-8)


def test_without_budget_or_noise_thresholding_still_works() -> None:
    assert (THE(4, 0.0).epsilon, THE(4, 0.0).threshold) == (0.0, 0.5)
    weak = THE(4, 5000.0)
    assert weak.epsilon == pytest.approx(2500 + math.log(8 / 3))  # p is 2/3 at the best threshold
    assert weak.p == pytest.approx(2 / 3)
    assert weak.to_dict() == {
        "kind": "THE",
        "size": 4,
        "epsilon": 5000.0,
        "threshold": weak.threshold,
    }


ALL_HASHES = {(m, g): list(itertools.product(range(g), repeat=m)) for m, g in ((2, 2), (3, 2), (3, 3), (4, 2))}


@pytest.mark.slow
@given(st.sampled_from(sorted(ALL_HASHES)), EPSILONS, st.data())
def test_all_functions_together_are_the_ideal_hash(shape: tuple[int, int], epsilon: float, data: st.DataObject) -> None:
    m, g = shape
    ideal, real = LocalHashing(m, epsilon, g), ConcreteHashing(m, epsilon, g, ALL_HASHES[shape])
    threat = Threat(Prior(data.draw(priors(m))), data.draw(partitions(m)))
    one, two = assess(real, threat), assess(ideal, threat)
    assert one.exact
    assert (one.advantage, one.success) == pytest.approx((two.advantage, two.success), abs=1e-12)
    assert real.delta_at(0.3) == pytest.approx(ideal.delta_at(0.3), abs=1e-12)
    assert real.guarantee().tradeoff(0.1) == pytest.approx(ideal.guarantee().tradeoff(0.1), abs=1e-12)


def written_out(mechanism: ConcreteHashing) -> FloatArray:
    """The channel of local hashing, one hash, record and value after the other."""
    count, g, m = mechanism.hashes.count, mechanism.hash_range, mechanism.size
    response = GRR(g, mechanism.epsilon).matrix()
    table = np.zeros((m, count * g))
    for number, z, value in itertools.product(range(count), range(m), range(g)):
        hashed = int(mechanism.hashes.values(np.array([number]), np.array([z]))[0])
        table[z, number * g + value] = response[hashed, value] / count
    return table


@pytest.mark.parametrize(("size", "hash_range", "prime"), [(2, 2, 2), (3, 2, None), (5, 3, 7), (4, 9, None)])
def test_the_polynomial_family_is_enumerated(size: int, hash_range: int, prime: int | None) -> None:
    mechanism = ConcreteHashing(size, 1.5, hash_range, PolynomialHashes(size, hash_range, prime))
    table = written_out(mechanism)
    assert mechanism.matrix() == pytest.approx(table, abs=1e-15)
    for share in (0.0, 0.5, 1.3):
        assert mechanism.delta_at(share) == pytest.approx(naive.hockey_stick(table, share), abs=1e-12)
    prior, groups = Prior.zipf(size), np.arange(size) % 2
    risk = assess(mechanism, Threat(prior, groups))
    expected = naive.theorem_4_3(table, prior.weights, groups, np.eye(size, dtype=bool))
    assert (risk.advantage, risk.success) == pytest.approx(expected, abs=1e-12)


def test_polynomials_are_those_of_the_definition_and_pairwise_independent() -> None:
    p, g = 7, 3
    family = PolynomialHashes(5, g, p)
    table = family.values(np.arange(p * p)[:, None], np.arange(5))
    assert table.tolist() == [[(a * z + b) % p % g for z in range(5)] for a in range(p) for b in range(p)]
    assert ListedHashes(g, table).separation == pytest.approx(family.separation, abs=1e-15)
    residues = PolynomialHashes(5, p, p).values(np.arange(p * p)[:, None], np.arange(5))
    for z, other in itertools.combinations(range(5), 2):
        assert len({(one, two) for one, two in residues[:, [z, other]].tolist()}) == p * p
    assert PolynomialHashes(90, 8).prime == 97


def test_mixing_is_splitmix() -> None:
    """The first numbers of SplitMix64 from state 1234567, as published with its reference implementation."""
    state = np.uint64(1234567) + np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert _mix(state).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_mixed_values_are_uniform_and_independent_over_seeds() -> None:
    """Chi-square for three records at once: 5^3 cells."""
    g, seeds = 5, np.arange(50_000)
    values = MixingHashes(g).values(seeds[:, None], np.array([0, 1, 900]))
    seen = np.bincount(values @ [1, g, g * g], minlength=g**3)
    chi_square = float(((seen - seeds.size / g**3) ** 2 / (seeds.size / g**3)).sum())
    assert abs(chi_square - 124) < 4 * math.sqrt(2 * 124)


def test_the_mixing_family_is_close_to_the_ideal() -> None:
    threat = Threat(Prior.uniform(30))
    real, ideal = ConcreteHashing(30, 2.0, 8), assess(LocalHashing(30, 2.0, 8), threat)
    measured = assess(real, threat, runs=20_000)
    assert measured.estimate is not None
    low, high = measured.estimate.advantage_interval
    assert low <= ideal.advantage <= high
    assert measured.bounds.advantage >= ideal.advantage
    outputs = real.sample(np.arange(30), np.random.default_rng(2))
    own = np.exp(real.log_likelihood(outputs))[np.arange(30), np.arange(30)] * 2**32
    assert set(np.round(own, 12)) <= {round(GRR(8, 2.0).p, 12), round(GRR(8, 2.0).q, 12)}


def test_samples_of_hashing_are_truthful_as_often_as_they_should_be() -> None:
    rng = np.random.default_rng(4)
    for family in ("mixing", "polynomial"):
        mechanism = ConcreteHashing(20, 1.0, 4, family)
        records = rng.integers(20, size=40_000)
        drawn = mechanism.sample(records, rng)
        truthful = mechanism.hashes.values(drawn[:, 0], records) == drawn[:, 1]
        chance = GRR(4, 1.0).p
        assert abs(truthful.mean() - chance) < 4 * math.sqrt(chance * (1 - chance) / records.size)


class Shifts(HashFamily):
    """What a user might write: z + number, mod g."""

    name, count, size, hash_range, separation = "shifts", 3, 4, 3, 1.0

    def values(self, hashes: IntArray, records: IntArray) -> IntArray:
        return (hashes + records) % 3


def test_a_family_of_ones_own_can_be_studied() -> None:
    threat = Threat(Prior.zipf(4))
    table = [[(number + z) % 3 for z in range(4)] for number in range(3)]
    own, listed = ConcreteHashing(4, 1.0, 3, Shifts()), ConcreteHashing(4, 1.0, 3, table)
    assert assess(own, threat).advantage == pytest.approx(assess(listed, threat).advantage, abs=1e-15)


def test_hashes_that_tell_nothing_apart_tell_nothing() -> None:
    mute = ConcreteHashing(3, 2.0, 2, [[0, 0, 0], [1, 1, 1]])
    assert (mute.epsilon, mute.delta_at(0.0), mute.guarantee().total_variation) == (0.0, 0.0, 0.0)
    assert assess(mute, Threat(Prior.uniform(3))).advantage == pytest.approx(0.0, abs=1e-15)


def test_hashing_goes_on_the_record() -> None:
    mechanism = ConcreteHashing(5, 1.0, 3, "polynomial")
    assert repr(mechanism) == "ConcreteHashing(size=5, epsilon=1, hash_range=3, hashes='polynomial')"
    assert mechanism.with_parameter(2.0).to_dict() == {
        "kind": "ConcreteHashing",
        "size": 5,
        "epsilon": 2.0,
        "hash_range": 3,
        "hashes": "PolynomialHashes(size=5, hash_range=3)",
    }


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: SHE(3, 0.0), MechanismError, "SHE needs epsilon > 1e-300, got 0"),
        (lambda: SHE(3, 1.0).log_likelihood([[1.0, 2.0]]), MechanismError, "row of 3 finite numbers"),
        (lambda: SHE(2, 1.0).log_likelihood([[1.0, math.inf]]), MechanismError, "row of 2 finite numbers"),
        (lambda: THE(3, 1.0, 1.5), MechanismError, r"threshold must lie in \[0, 1\]"),
        (lambda: THE(3, 1.0, math.nan), MechanismError, "got nan"),
        (lambda: THE(3, -1.0), ParameterError, "at least 0"),
        (lambda: ConcreteHashing(3, 1.0, 1), ParameterError, "hash_range must be a whole number of at least 2"),
        (lambda: ConcreteHashing(3, 1.0, 2, "md5"), MechanismError, "'mixing', 'polynomial', a table"),
        (lambda: PolynomialHashes(3, 2, 9), MechanismError, "prime must be a prime number from 3"),
        (lambda: PolynomialHashes(8, 2, 7), MechanismError, "from 8, the number of records"),
        (lambda: ConcreteHashing(3, 1.0, 2, MixingHashes(3)), MechanismError, "to 3 values; asked for are 3 records"),
        (lambda: ConcreteHashing(3, 1.0, 1 << 40, "polynomial"), MechanismError, r"at most 2\^31 - 1"),
        (lambda: ConcreteHashing(3, 1.0, 1 << 62), MechanismError, r"below 2\^62"),
        (lambda: ConcreteHashing(3, 1.0, 2, [[0, 1]]), MechanismError, "These hashes take 2 records to 2 values"),
        (lambda: ConcreteHashing(2, 1.0, 2, [[0, 1], [1]]), MechanismError, "rows of equal length"),
        (lambda: ConcreteHashing(2, 1.0, 2, [0, 1]), MechanismError, "a row for each hash"),
        (lambda: ConcreteHashing(2, 1.0, 2, [[0, 2]]), MechanismError, r"whole numbers in 0\.\.1"),
        (lambda: ConcreteHashing(2, 1.0, 2, [[0, 0.5]]), MechanismError, r"whole numbers in 0\.\.1"),
        (lambda: ConcreteHashing(2, 1.0, 2).log_likelihood([[0, 2]]), MechanismError, "a value below 2"),
        (lambda: ConcreteHashing(2, 1.0, 2).matrix(), TooLargeError, "too many to hold"),
    ],
)
def test_wrong_values_get_one_clear_sentence(wrong: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()
