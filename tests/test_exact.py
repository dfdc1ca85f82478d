"""The exact optimum against every attack there is, and the properties it must have."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dprisk import (
    GRR,
    OLH,
    OUE,
    Exponential,
    Gaussian,
    Laplace,
    Line,
    Matrix,
    Mechanism,
    Prior,
    Ring,
    SubsetSelection,
    Threat,
    assess,
    exact,
)
from dprisk.attacks import OptimalAttack
from dprisk.errors import DpriskError, TooLargeError
from dprisk.exact import forms, theorem
from dprisk.exact.optimum import Optimum
from dprisk.mechanisms import SHE, Geometric, PostProcessed, VectorGaussian
from dprisk.threat import Balls, Distances, Exact
from dprisk.types import BoolArray, FloatArray, IntArray
from tests import naive
from tests.strategies import balls, channels, partitions, priors, set_protocols


def by_table(success: BoolArray) -> Distances:
    return Distances(0.5, np.where(success, 0.0, 1.0))


@st.composite
def problems(draw: st.DrawFn, max_size: int = 5) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    size = draw(st.integers(1, max_size))
    return draw(channels(size)), draw(priors(size)), draw(partitions(size)), draw(balls(size))


@st.composite
def tiny_problems(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Small enough to try all attacks: at most 3^6 or 4^4 of them."""
    size, outputs, groups = draw(st.sampled_from([(3, 3, 2), (3, 2, 3), (4, 2, 2), (4, 4, 1), (2, 3, 2)]))
    return draw(channels(size, outputs)), draw(priors(size)), draw(partitions(size, groups)), draw(balls(size))


@pytest.mark.slow
@given(tiny_problems())
def test_no_attack_beats_the_exact_value_and_one_attains_it(problem: Any) -> None:
    channel, prior, groups, success = problem
    best = exact.solve(Matrix(channel), Threat(Prior(prior), groups, by_table(success)))
    advantage, rero = naive.best_of_all_attacks(channel, prior, groups, success)
    assert best.advantage == pytest.approx(advantage, abs=1e-12)
    assert best.success == pytest.approx(rero, abs=1e-12)


@pytest.mark.slow
@given(problems())
def test_general_balls_follow_theorem_4_3(problem: Any) -> None:
    channel, prior, groups, success = problem
    best = exact.solve(Matrix(channel), Threat(Prior(prior), groups, by_table(success)))
    assert (best.advantage, best.success) == pytest.approx(naive.theorem_4_3(*problem), abs=1e-12)


@pytest.mark.slow
@given(
    st.data(),
    st.integers(1, 7),
    st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 9.0]),
    st.sampled_from(["line", "ring"]),
)
def test_line_and_ring_balls_follow_theorem_4_3(data: st.DataObject, size: int, eta: float, space: str) -> None:
    places = np.array(data.draw(st.lists(st.integers(0, 7), min_size=size, max_size=size)), dtype=float)
    gap = np.abs(places[:, None] - places)
    distance = np.minimum(gap, 8 - gap) if space == "ring" else gap
    success = Ring(eta, places, circumference=8.0) if space == "ring" else Line(eta, places)
    channel, prior, groups = data.draw(channels(size)), data.draw(priors(size)), data.draw(partitions(size))
    best = exact.solve(Matrix(channel), Threat(Prior(prior), groups, success))
    expected = naive.theorem_4_3(channel, prior, groups, distance <= eta)
    assert (best.advantage, best.success) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@given(st.data(), st.integers(1, 6))
def test_the_family_needs_no_enumeration(data: st.DataObject, size: int) -> None:
    """One closed form for GRR, subset selection, unary encoding and local hashing (theory 2a)."""
    protocol = data.draw(set_protocols(size))
    threat = Threat(Prior(data.draw(priors(size))), data.draw(partitions(size)))
    fast, slow = exact.solve(protocol, threat), exact.enumerate_outputs(protocol, threat)
    assert fast.advantage_by_group == pytest.approx(slow.advantage_by_group, abs=1e-12)
    assert fast.success_by_group == pytest.approx(slow.success_by_group, abs=1e-12)
    expected = naive.theorem_4_3(protocol.matrix(), threat.prior.weights, threat.knows.groups, np.eye(size, dtype=bool))
    assert (fast.advantage, fast.success) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@given(st.data(), st.integers(1, 6))
def test_randomised_response_needs_no_enumeration_for_any_ball(data: st.DataObject, size: int) -> None:
    success = data.draw(balls(size) | st.none())
    eta = data.draw(st.integers(0, 3))
    rule = Line(float(eta)) if success is None else by_table(success)
    threat = Threat(Prior(data.draw(priors(size))), data.draw(partitions(size)), rule)
    protocol = GRR(size, data.draw(st.sampled_from([0.0, 1.0, 4.0])))
    fast, slow = exact.solve(protocol, threat), exact.enumerate_outputs(protocol, threat)
    assert fast.advantage_by_group == pytest.approx(slow.advantage_by_group, abs=1e-12)
    assert fast.success_by_group == pytest.approx(slow.success_by_group, abs=1e-12)


@pytest.mark.slow
@given(st.data(), st.integers(1, 5))
def test_full_knowledge_needs_no_enumeration_for_any_ball(data: st.DataObject, size: int) -> None:
    """Membership inference with a guess that cannot miss somebody gains nothing on that record (gotcha 4)."""
    protocol = data.draw(set_protocols(size))
    threat = Threat(Prior(data.draw(priors(size))), "all", by_table(data.draw(balls(size))))
    fast, slow = exact.solve(protocol, threat), exact.enumerate_outputs(protocol, threat)
    assert (fast.advantage, fast.success) == pytest.approx((slow.advantage, slow.success), abs=1e-12)


@pytest.mark.slow
@given(problems())
def test_breakdowns_add_up(problem: Any) -> None:
    channel, prior, groups, success = problem
    risk = assess(Matrix(channel), Threat(Prior(prior), groups, by_table(success)))
    assert prior @ risk.average_attacker_by_record == pytest.approx(risk.advantage, abs=1e-10)
    for whole, part in ((risk.advantage, "advantage"), (risk.success, "success"), (risk.baseline, "baseline")):
        total = sum(group.prior_mass * getattr(group, part) for group in risk.by_group)
        assert total == pytest.approx(whole, abs=1e-10)


@pytest.mark.slow
@given(st.data(), st.integers(1, 5))
def test_the_family_breaks_ties_at_random_in_its_breakdown(data: st.DataObject, size: int) -> None:
    protocol = data.draw(set_protocols(size))
    threat = Threat(Prior(data.draw(priors(size))), data.draw(partitions(size)))
    slow = theorem.enumerate_by_record(protocol, threat)
    support = threat.prior.support  # on records of probability 0 every choice is a tie
    assert exact.advantage_by_record(protocol, threat)[support] == pytest.approx(slow[support], abs=1e-9)


@pytest.mark.slow
@given(problems(), st.data())
def test_post_processing_never_helps(problem: Any, data: st.DataObject) -> None:
    channel, prior, groups, success = problem
    threat = Threat(Prior(prior), groups, by_table(success))
    outputs = channel.shape[1]
    merged = PostProcessed(Matrix(channel), data.draw(st.lists(st.integers(0, 2), min_size=outputs, max_size=outputs)))
    before, after = exact.solve(Matrix(channel), threat), exact.solve(merged, threat)
    assert after.advantage <= before.advantage + 1e-12
    assert after.success <= before.success + 1e-12


@pytest.mark.slow
@given(problems(), st.data())
def test_relabelling_changes_nothing(problem: Any, data: st.DataObject) -> None:
    channel, prior, groups, success = problem
    records = np.array(data.draw(st.permutations(range(prior.size))))
    outputs = np.array(data.draw(st.permutations(range(channel.shape[1]))))
    before = exact.solve(Matrix(channel), Threat(Prior(prior), groups, by_table(success)))
    shuffled = Threat(Prior(prior[records]), groups[records], by_table(success[:, records]))
    after = exact.solve(Matrix(channel[np.ix_(records, outputs)]), shuffled)
    assert (after.advantage, after.success) == pytest.approx((before.advantage, before.success), abs=1e-12)


@pytest.mark.slow
@given(problems(), st.data())
def test_more_knowledge_never_lowers_success(problem: Any, data: st.DataObject) -> None:
    channel, prior, groups, success = problem
    finer = groups * 3 + data.draw(partitions(prior.size))
    rule = by_table(success)
    less = exact.solve(Matrix(channel), Threat(Prior(prior), groups, rule))
    more = exact.solve(Matrix(channel), Threat(Prior(prior), finer, rule))
    assert more.success >= less.success - 1e-12


@pytest.mark.slow
@given(st.data(), st.integers(1, 6), st.sampled_from([Line, Ring]))
def test_a_larger_radius_never_lowers_success(data: st.DataObject, size: int, kind: Any) -> None:
    channel, prior, groups = data.draw(channels(size)), data.draw(priors(size)), data.draw(partitions(size))
    rises = [exact.solve(Matrix(channel), Threat(Prior(prior), groups, kind(eta))).success for eta in range(4)]
    assert np.all(np.diff(rises) >= -1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("knows", ["none", "all", [0, 0, 1, 1, 1]])
@pytest.mark.parametrize("success", [Exact(), Line(1.0)])
def test_algorithm_1_attains_the_optimum_in_simulation(knows: Any, success: Any) -> None:
    """Run the game of Definition 2.3: success on a participant minus success on somebody else, same output."""
    rng = np.random.default_rng(7)
    threat = Threat(Prior([0.4, 0.1, 0.1, 0.2, 0.2]), knows, success)
    mechanism, runs = OUE(5, 1.5), 200_000
    attack = OptimalAttack(mechanism, threat)
    record, other = rng.choice(5, size=(2, runs), p=threat.prior.weights)
    outputs = mechanism.sample(record, rng)
    radius = 0 if isinstance(success, Exact) else 1

    def hits(target: IntArray) -> BoolArray:
        guess = attack.guess(outputs, rng, threat.knows.groups[target])
        return np.asarray(np.abs(guess - target) <= radius)

    gain = hits(record).astype(float) - hits(other)
    error = 4 * gain.std() / np.sqrt(runs)
    assert gain.mean() == pytest.approx(assess(mechanism, threat).advantage, abs=error)


def test_the_attack_that_maximises_success_does() -> None:
    rng = np.random.default_rng(8)
    threat = Threat(Prior([0.6, 0.2, 0.2]))
    mechanism = GRR(3, 1.0)
    record = rng.choice(3, size=100_000, p=threat.prior.weights)
    guess = OptimalAttack(mechanism, threat, "success").guess(mechanism.sample(record, rng), rng)
    assert np.mean(guess == record) == pytest.approx(assess(mechanism, threat).success, abs=0.006)


def test_optima_are_not_clipped_where_no_guess_is_sure_to_fail() -> None:
    """Theory, correction 19: GRR on 3 points of a path, eta = 1; clipping at 0 would add 0.081."""
    threat = Threat(Prior.uniform(3), "all", Line(1.0))
    mechanism = GRR(3, 1.0)
    clipped = float(np.maximum(mechanism.matrix() - mechanism.matrix().mean(axis=0), 0).sum() / 3)
    assert clipped - assess(mechanism, threat).advantage == pytest.approx(0.081, abs=5e-4)


def test_sparse_and_dense_distances_agree() -> None:
    rng = np.random.default_rng(3)
    channel, prior = rng.dirichlet(np.ones(30), size=40), Prior(rng.dirichlet(np.ones(40)))
    distance = rng.uniform(0.1, 10, size=(40, 40))
    np.fill_diagonal(distance, 0)
    near = sparse.coo_array(np.where(distance < 3, distance, 0))
    for eta in (0.5, 2.0):
        for knows in ("none", rng.integers(3, size=40)):
            dense = exact.solve(Matrix(channel), Threat(prior, knows, Distances(eta, distance)))
            thin = exact.solve(Matrix(channel), Threat(prior, knows, Distances(eta, near)))
            assert thin.advantage == pytest.approx(dense.advantage, abs=1e-12)


def test_a_million_records_are_exact() -> None:
    """Uniform prior, nothing known: OUE's closed form (RAD Example 4.5) at m = 10^6."""
    m, epsilon = 1_000_000, 12.0
    risk = assess(OUE(m, epsilon), Threat(Prior.uniform(m)))
    e = np.exp(epsilon)
    expected = (e - 1) / (2 * m) * -np.expm1((m - 1) * -np.log1p(1 / e))
    assert risk.advantage == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 50.0, 500.0])
@pytest.mark.parametrize("kind", [GRR, OUE])
def test_extreme_epsilon_stays_finite(kind: Any, epsilon: float) -> None:
    threat = Threat(Prior.zipf(50), [0, 1] * 25)
    risk = assess(kind(50, epsilon), threat)
    largest = 1.0 if kind is GRR else 0.5
    assert 0 <= risk.advantage <= largest * (1 - threat.prior.collision_probability) + 1e-12
    assert risk.baseline - 1e-12 <= risk.success <= 1 + 1e-12
    if epsilon < 1:
        assert risk.advantage < 1e-8


def test_one_record_is_no_secret() -> None:
    for mechanism in (GRR(1, 2.0), OUE(1, 2.0)):
        risk = assess(mechanism, Threat(Prior([1.0])))
        assert (risk.advantage, risk.success, risk.baseline) == pytest.approx((0.0, 1.0, 1.0), abs=1e-15)
        assert risk.normalised_advantage == 0.0


def test_exact_is_refused_beyond_reach_not_approximated() -> None:
    with pytest.raises(TooLargeError, match="out of reach"):
        exact.solve(OUE(100, 1.0), Threat(Prior.uniform(100), success=Line(2.0)))


def test_a_record_that_no_guess_hits_is_never_reconstructed() -> None:
    """A rectangular loss, and one whose diagonal is far: found by review, the closed forms counted them as hit."""
    threat = Threat(Prior.uniform(2), "all", Distances(1.0, [[0.0, 9.0], [9.0, 9.0]]))
    found = assess(OUE(2, 1.0), threat)
    assert (found.advantage, found.success) == pytest.approx((0.0578, 0.5), abs=5e-5)
    narrow = Threat(Prior.uniform(3), success=Distances(0.0, [[0.0, 1, 1], [1, 0, 1]]))
    assert assess(GRR(3, 1000.0), narrow).success == pytest.approx(2 / 3)


def test_rare_people_keep_their_risk() -> None:
    """Ties are judged by the mass at stake: beside a record of nearly all mass, rare ones still stand out."""
    prior = Prior([1 - 3e-10, 1e-10, 2e-10])
    closed, listed = (
        assess(mechanism, Threat(prior)).average_attacker_by_record
        for mechanism in (GRR(3, 1.0), Matrix(GRR(3, 1.0).matrix()))
    )
    assert listed == pytest.approx(closed, rel=1e-3, abs=1e-9)
    assert closed[1] > 0.1


def test_small_epsilon_keeps_its_digits() -> None:
    """The slope of RAD at epsilon 0 is (m-1)/m^2 for randomised response: no digits lost where differences cancel."""
    for epsilon in (1e-9, 1e-12, 1e-15):
        assert assess(GRR(4, epsilon), Threat(Prior.uniform(4))).advantage == pytest.approx(epsilon * 3 / 16, rel=1e-8)
        assert assess(OUE(2, epsilon), Threat.membership(Prior.uniform(2))).advantage == pytest.approx(
            epsilon / 8, rel=1e-8
        )


def test_large_epsilon_neither_overflows_nor_lies() -> None:
    assert GRR(5, 720.0).delta_at(720.0) == 0.0
    assert Exponential.on_line(5, 1440.0).epsilon == pytest.approx(720.0)
    assert Geometric(5, 720.0, ends="truncate").epsilon == pytest.approx(720.0, rel=1e-3)
    assert Gaussian(3, 0.01).delta_at(5000.0) == pytest.approx(0.496, abs=1e-3)
    for epsilon in (40.0, 50.0, 800.0):
        assert assess(OLH(10, epsilon), Threat(Prior.uniform(10))).advantage == pytest.approx(0.45, abs=1e-6)
    assert GRR(1, 3.0).epsilon == 0.0


def test_exact_success_by_another_name_has_the_closed_form() -> None:
    for rule in (Line(0.0), Distances(0.0, 1 - np.eye(60)), Balls(lambda guess: [guess])):
        risk = assess(OUE(60, 1.0), Threat(Prior.zipf(60), [0, 1] * 30, rule))
        assert risk.exact
        assert risk.advantage == pytest.approx(assess(OUE(60, 1.0), Threat(Prior.zipf(60), [0, 1] * 30)).advantage)


def test_success_alone_is_the_same_success() -> None:
    rng = np.random.default_rng(6)
    mechanism = Matrix(rng.dirichlet(np.ones(7), size=5))
    for threat in (Threat(Prior.zipf(5)), Threat(Prior.zipf(5), [0, 1, 0, 1, 2], Line(1.0))):
        for listed in (mechanism, GRR(5, 1.0)):
            assert exact.enumerate_success(listed, threat) == pytest.approx(exact.solve(listed, threat).success)


def test_the_attack_breaks_ties_at_random_and_refuses_the_impossible() -> None:
    rng = np.random.default_rng(9)
    attack = OptimalAttack(SubsetSelection(4, 1.0, 2), Threat(Prior.uniform(4)))
    guesses = attack.guess(np.tile([True, True, False, False], (2000, 1)), rng)
    assert np.bincount(guesses, minlength=4)[:2].min() > 900
    assert np.bincount(guesses, minlength=4)[2:].max() == 0
    with pytest.raises(DpriskError, match="impossible"):
        attack.guess([[True, True, True, False]], rng)
    with pytest.raises(DpriskError, match=r"0\.\.1"):
        OptimalAttack(GRR(2, 1.0), Threat.membership(Prior.uniform(2))).guess([0], rng, known=[5])


def test_most_at_risk_is_who_the_prior_rules_out() -> None:
    """Nobody else looks like that: the data without a record do not tell that the target has not got it."""
    risk = assess(GRR(3, 1.0), Threat(Prior([0.6, 0.4, 0.0])))
    assert [name for name, _ in risk.most_at_risk(3)] == [2, 1, 0]


@pytest.mark.parametrize("mechanism", [Laplace(101, epsilon=1.0), GRR(101, epsilon=1.0)])
def test_where_every_guess_is_right_nothing_is_gained_and_rounding_does_not_show(mechanism: Mechanism) -> None:
    everything = Threat.reconstruction(Prior.uniform(101, range(101)), within=100)
    assert 0.0 <= assess(mechanism, everything).advantage <= 1e-12


@pytest.mark.parametrize("mechanism", [SHE(30, epsilon=4.0), Laplace(30, epsilon=4.0)])
def test_within_no_distance_is_exactly(mechanism: Mechanism) -> None:
    prior = Prior.uniform(30, range(30))
    near, exactly = (assess(mechanism, Threat.reconstruction(prior, within=within)) for within in (0, None))
    assert near.exact
    assert (near.advantage, near.success) == (exactly.advantage, exactly.success)
    assert not assess(SHE(30, epsilon=4.0), Threat.reconstruction(prior, within=1), runs=500).exact


def test_the_error_of_repeated_records_shrinks_with_their_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two records for each of three laws: what is found for the three, and how far off it may be, counts half."""
    three = Optimum(np.array([0.3]), np.array([0.6]), None, error=0.01)
    monkeypatch.setattr(forms, "solve", lambda mechanism, threat: three)
    found = forms._repeated_means(VectorGaussian(np.repeat(np.eye(3), 2, axis=0), 1.0), Threat(Prior.uniform(6)))
    assert found is not None
    assert (found.advantage, found.success, found.error) == pytest.approx((0.15, 0.3, 0.005))


def test_what_says_the_same_of_every_record_has_an_advantage_of_exactly_0() -> None:
    row = [0.1, 0.2, 0.3, 0.4]
    weights = [0.123, 0.456, 0.3, 0.121]
    for knows in ("none", "all", [0, 0, 1, 1]):
        for within in (0.0, 1.0, 2.0):
            assert assess(Matrix([row] * 4), Threat(Prior(weights), knows, Line(within))).advantage == 0.0


def test_no_advantage_exceeds_what_the_prior_allows() -> None:
    for size in range(2, 40):
        prior = Prior.zipf(size)
        assert assess(Matrix(np.eye(size)), Threat(prior)).advantage <= 1 - prior.collision_probability
        assert assess(GRR(size, 1e5), Threat(prior, "all")).advantage <= 1 - prior.collision_probability
