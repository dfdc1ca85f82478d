"""No bound is ever below the exact value; what is called attained is attained; the papers' slips are pinned."""

import itertools
import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dprisk import (
    GRR,
    OUE,
    ApproxDP,
    DpriskError,
    GaussianDP,
    Guarantee,
    Line,
    Matrix,
    Mechanism,
    Prior,
    PureDP,
    Ring,
    SubsetSelection,
    Threat,
    WorstCase,
    assess,
    bounds,
    conversions,
    exact,
)
from dprisk.bounds import REGISTRY, ours, papers, programs
from dprisk.population import leakage
from dprisk.rounding import significant_up
from dprisk.threat import Distances
from dprisk.types import FloatArray
from tests.strategies import balls, partitions, priors

WHICH: tuple[Literal["advantage"], Literal["success"]] = ("advantage", "success")
EPSILONS = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])


def vertex(size: int, outputs: int, epsilon: float, delta: float, seed: int) -> FloatArray:
    """A vertex of the polytope of (epsilon, delta)-DP channels, in a random direction.

    Hockey-stick excesses t[z, z', theta] >= P[z, theta] - e^eps P[z', theta] must sum to at most delta.
    """
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b]
    cells, slacks = size * outputs, len(pairs) * outputs
    rows, limits = [], []
    for number, (a, b) in enumerate(pairs):
        for theta in range(outputs):
            row = np.zeros(cells + slacks)
            row[a * outputs + theta], row[b * outputs + theta] = 1, -math.exp(epsilon)
            row[cells + number * outputs + theta] = -1
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(cells + slacks)
        row[cells + number * outputs : cells + (number + 1) * outputs] = 1
        rows.append(row)
        limits.append(delta)
    total = np.zeros((size, cells + slacks))
    for record in range(size):
        total[record, record * outputs : (record + 1) * outputs] = 1
    cost = np.concatenate([rng.normal(size=cells), np.zeros(slacks)])
    found = linprog(cost, np.array(rows), limits, total, np.ones(size), bounds=(0, 1), method="highs")
    table = np.clip(found.x[:cells].reshape(size, outputs), 0, 1)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


@st.composite
def kept_promises(draw: st.DrawFn, size: int) -> tuple[Mechanism, Guarantee]:
    """A mechanism and a guarantee that it keeps: extreme ones, since only those come near a bound."""
    epsilon, seed = draw(EPSILONS), draw(st.integers(0, 1000))
    delta = draw(st.sampled_from([0.0, 0.0, 0.01, 0.2]))
    kind = draw(st.sampled_from(["vertex", "blocks", "subset", "reveal", "gaussian", "unary"]))
    if kind == "vertex":
        table = vertex(size, draw(st.integers(2, 4)), epsilon, delta, seed)
        return Matrix(table), ApproxDP(epsilon + 1e-9, delta + 1e-9)
    prior = Prior(draw(priors(size)))
    if kind == "blocks":
        return ours.worst_blocks(epsilon, prior).mechanism(), PureDP(epsilon)
    if kind == "subset":
        return SubsetSelection(size, epsilon, draw(st.integers(1, max(1, size - 1)))), PureDP(epsilon)
    if kind == "reveal":
        return ours.worst_top_records(epsilon, delta, prior).mechanism(), ApproxDP(epsilon, delta)
    if kind == "unary":
        return OUE(size, epsilon), OUE(size, epsilon).guarantee()
    # Positions on a line with Gaussian noise, in bins: post-processing of a mu-Gaussian-DP mechanism.
    mu = draw(st.sampled_from([0.3, 1.0, 3.0]))
    edges = np.linspace(-3, mu + 3, 12)
    from scipy.stats import norm

    mean = np.linspace(0, mu, size)
    cumulative = norm.cdf(edges - mean[:, None])
    table = np.diff(np.hstack([np.zeros((size, 1)), cumulative, np.ones((size, 1))]), axis=1)
    return Matrix(table / table.sum(axis=1, keepdims=True)), GaussianDP(mu)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Mechanism, Guarantee, Threat]:
    size = draw(st.integers(2, 5))
    success = draw(st.sampled_from(["exact", "exact", "line", "ring", "any"]))
    rule: Any = {
        "exact": None,
        "line": Line(1.0),
        "ring": Ring(1.0),
        "any": Distances(0.5, np.where(draw(balls(size)), 0.0, 1.0)),
    }[success]
    knows = draw(st.sampled_from(["none", "none", "all", "some"]))
    groups: Any = draw(partitions(size)) if knows == "some" else knows
    mechanism, promise = draw(kept_promises(size))
    return mechanism, promise, Threat(Prior(draw(priors(size))), groups, rule)


@pytest.mark.slow
@settings(max_examples=200)
@given(situations())
def test_no_bound_is_below_the_exact_value(situation: Any) -> None:
    mechanism, promise, threat = situation
    best = exact.solve(mechanism, threat)
    # A vertex found by a solver keeps its promise up to the solver's tolerance, the others up to rounding.
    slack = 1e-7 if type(mechanism) is Matrix else 1e-12
    for which in WHICH:
        truth = getattr(best, which)
        for given_promise in (promise, mechanism.guarantee()):
            found = bounds.evaluate(given_promise, threat, which)
            assert found.values
            for value in found.values:
                assert value.number >= truth - slack, (value.bound.name, value.number, truth)


@pytest.mark.slow
@given(st.data(), EPSILONS, st.integers(1, 7))
def test_what_is_called_attained_is_attained(data: st.DataObject, epsilon: float, size: int) -> None:
    prior = Prior(data.draw(priors(size)))
    threat = Threat(prior)
    worst = assess(PureDP(epsilon), threat)
    blocks = ours.worst_blocks(epsilon, prior)
    assert blocks.mechanism().epsilon <= epsilon + 1e-9
    assert exact.solve(blocks.mechanism(), threat).advantage == pytest.approx(blocks.advantage, abs=1e-9)
    assert worst.advantage == pytest.approx(blocks.advantage, abs=1e-9)
    delta = data.draw(st.sampled_from([0.0, 0.05, 0.4]))
    top = ours.worst_top_records(epsilon, delta, prior)
    assert top.mechanism().delta_at(epsilon) <= delta + 1e-9
    assert exact.solve(top.mechanism(), threat).success == pytest.approx(top.success, abs=1e-9)
    reached = exact.solve(_reveal_or_blocks(epsilon, delta, prior), threat).advantage
    assert reached == pytest.approx(ours.reveal_or_blocks(epsilon, delta, prior), abs=1e-9)


def _reveal_or_blocks(epsilon: float, delta: float, prior: Prior) -> Matrix:
    answer = ours.worst_blocks(epsilon, prior).mechanism().matrix()
    return Matrix(np.hstack([delta * np.eye(prior.size), (1 - delta) * answer]))


@pytest.mark.slow
@settings(max_examples=80)
@given(situations(), EPSILONS, st.sampled_from([0.0, 0.0, 0.05]))
def test_a_value_flagged_as_attained_is_the_optimum(situation: Any, epsilon: float, delta: float) -> None:
    """Against the program over all mechanisms with the guarantee."""
    threat = situation[2]
    for which in WHICH:
        optimum = programs.worst_with_delta(epsilon, delta, threat, which)
        promise = PureDP(epsilon) if delta == 0 else ApproxDP(epsilon, delta)
        for value in bounds.evaluate(promise, threat, which).values:
            if value.attained:
                assert value.number == pytest.approx(optimum.attained, abs=1e-6), value.bound.name


def test_the_program_is_tight_at_tiny_epsilon() -> None:
    """Value over epsilon tends to a constant; a program in the wrong units loses a third of it."""
    threat = Threat(Prior.zipf(30), success=Line(3.0))
    slopes = [programs.worst_advantage(epsilon, threat).value / epsilon for epsilon in (1e-4, 1e-7, 1e-10)]
    assert slopes == pytest.approx([slopes[0]] * 3, rel=1e-3)
    assert programs.worst_advantage(1e-10, threat).is_tight


@pytest.mark.slow
def test_a_ball_that_holds_everything_gains_nothing() -> None:
    for seed in range(60):
        prior = Prior(np.random.default_rng(seed).dirichlet(np.ones(4)))
        worst = assess(PureDP(1.0), Threat(prior, success=Line(9.0)))
        assert worst.advantage == pytest.approx(0.0, abs=1e-12)
        assert worst.success == pytest.approx(1.0)


def test_a_match_among_many_people() -> None:
    worst = assess(PureDP(1.0), Threat(Prior.uniform(100)))
    some, one = worst.match_among(20)
    assert (some.bound.name, one.bound.name) == ("best-case", "average-case")
    assert some.number == pytest.approx(1 - (1 - papers.posterior(1.0, 0.01)) ** 20)
    with pytest.raises(DpriskError, match="needs pure DP"):
        assess(GaussianDP(1.0), Threat(Prior.uniform(100))).match_among(20)


def test_the_worst_mechanism_is_named_where_it_is_known() -> None:
    uniform = Threat(Prior.uniform(10))
    for promise in (PureDP(1.0), ApproxDP(1.0, 0.05)):
        worst = assess(promise, uniform)
        for which in WHICH:
            named = worst.worst_mechanism(which)
            assert named is not None
            assert getattr(assess(named, uniform), which) == pytest.approx(getattr(worst, which), abs=1e-9)
    worst = assess(PureDP(1.0), Threat(Prior.zipf(10)))
    named = worst.worst_mechanism()
    assert named is not None
    assert assess(named, Threat(Prior.zipf(10))).advantage == pytest.approx(worst.advantage, abs=1e-12)
    assert worst.advantage_bound.attained
    assert assess(GaussianDP(1.0), Threat(Prior.uniform(3))).worst_mechanism() is None


@given(st.data(), EPSILONS, st.integers(1, 12))
def test_the_dual_certificate_proves_the_worst_blocks(data: st.DataObject, epsilon: float, size: int) -> None:
    """Theory 3.2: y is feasible, so no epsilon-DP mechanism exceeds sum(y)."""
    prior = Prior(data.draw(priors(size)))
    blocks = ours.worst_blocks(epsilon, prior)
    y, p = blocks.certificate(), prior.sorted_weights
    assert y.sum() == pytest.approx(blocks.advantage, abs=1e-12)
    for guess in range(p.size):
        worth = p * ((np.arange(p.size) == guess) - p[guess])
        assert y.sum() >= math.expm1(epsilon) * np.maximum(worth - y, 0).sum() - 1e-12


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data(), EPSILONS, st.integers(2, 6))
def test_the_compact_dual_is_the_primal_over_all_staircases(data: st.DataObject, epsilon: float, size: int) -> None:
    """Theory 3.1 against 2^m columns: the dual is not below, and not above by more than the solver's tolerance."""
    rule = Distances(0.5, np.where(data.draw(balls(size)), 0.0, 1.0))
    threat = Threat(Prior(data.draw(priors(size))), data.draw(partitions(size, 2)), rule)
    columns = np.array([1 + math.expm1(epsilon) * np.array(part) for part in itertools.product((0, 1), repeat=size)])
    for which, certified in (
        ("advantage", programs.worst_advantage(epsilon, threat)),
        ("success", programs.worst_success(epsilon, threat)),
    ):
        worth = []
        for column in columns:
            joint = threat.prior.weights * column
            reach, mass = threat.reach, threat.reach.sums(threat.prior.weights[:, None])
            hits = reach.sums(joint[:, None]) - (mass * joint.sum() if which == "advantage" else 0)
            worth.append(reach.best(hits).sum())
        primal = linprog(-np.array(worth), A_eq=columns.T, b_eq=np.ones(size), bounds=(0, None), method="highs")
        assert certified.value >= -primal.fun - 1e-9
        assert certified.value == pytest.approx(-primal.fun, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
def test_a_program_of_many_sets_takes_those_that_it_needs(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses about every group at once are many: with all of them in one program it took minutes."""
    rng = np.random.default_rng(5)
    people = {"ill": rng.choice(list("abc"), 18).tolist(), "age": rng.integers(20, 50, 18).tolist()}
    threat = Threat.attributes(people, known=["ill"], secret=["age"], within={"age": 5})
    sizes, solved = [], programs._Worst._solved

    def counted(worst: programs._Worst) -> tuple[FloatArray, float]:
        sizes.append(len(worst.worth))
        return solved(worst)

    monkeypatch.setattr(programs._Worst, "_solved", counted)
    few = {which: getattr(programs, f"worst_{which}")(epsilon, threat) for which in WHICH}
    assert all(found.is_tight for found in few.values())
    largest = max(sizes)
    monkeypatch.setattr(programs, "FEW_SETS", math.inf)
    sizes.clear()
    for which, found in few.items():
        whole = getattr(programs, f"worst_{which}")(epsilon, threat)
        assert found.value == pytest.approx(whole.value, rel=1e-9)
        assert found.attained == pytest.approx(whole.attained, rel=1e-9)
    assert largest < max(sizes) / 2


def test_a_certificate_survives_a_sloppy_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever y the solver returns, the shifted one proves its value: at least the true optimum."""
    threat = Threat(Prior.zipf(8), success=Line(1.0))
    truth = programs.worst_advantage(1.0, threat)
    rng = np.random.default_rng(1)
    for noise in (0.0, 1e-6, 1e-3, 0.1):
        off = truth.dual + noise * rng.normal(size=truth.dual.size)
        monkeypatch.setattr(programs._Worst, "_solve", lambda self, off=off: (off, 0.0))
        assert programs.worst_advantage(1.0, threat).value >= truth.value - 1e-12


@pytest.mark.slow
def test_the_program_for_many_records_is_certified() -> None:
    """m = 150, checked without the solver: feasibility of the dual point is computed afresh."""
    threat = Threat(Prior.zipf(150), success=Line(10.0))
    found = programs.worst_advantage(1.0, threat)
    pi, near = threat.prior.weights, np.abs(np.arange(150)[:, None] - np.arange(150)) <= 10
    worth = pi * (near - (near @ pi)[:, None])
    assert found.dual.sum() == pytest.approx(found.value)
    assert found.value >= math.expm1(1.0) * np.maximum(worth - found.dual, 0).sum(axis=1).max()
    assert found.value <= ours.set_advantage(1.0, 0.0, threat.prior.collision_probability, threat.ball_masses)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data(), EPSILONS, st.sampled_from([0.0, 0.01, 0.3]), st.integers(1, 5))
def test_the_program_with_delta_meets_what_is_known(
    data: st.DataObject, epsilon: float, delta: float, size: int
) -> None:
    """Success: theory 3.3. Advantage: attained by revealing or blocks, so never below, and (conjectured) equal."""
    threat = Threat(Prior(data.draw(priors(size))))
    success = programs.worst_with_delta(epsilon, delta, threat, "success").value
    assert success == pytest.approx(ours.worst_top_records(epsilon, delta, threat.prior).success, abs=1e-6)
    advantage = programs.worst_with_delta(epsilon, delta, threat, "advantage").value
    attained = ours.reveal_or_blocks(epsilon, delta, threat.prior)
    assert advantage >= attained - 1e-9
    assert advantage == pytest.approx(attained, abs=1e-6)


@pytest.mark.slow
@given(st.data(), st.integers(2, 6))
def test_the_curve_program_agrees_with_what_is_known(data: st.DataObject, size: int) -> None:
    """Uniform prior: the fixed point. Pure DP: never below the exact worst case, and equal for success (3.3)."""
    promise: Guarantee = data.draw(st.sampled_from([PureDP(1.0), ApproxDP(0.5, 0.02), GaussianDP(0.8)]))
    uniform = Threat(Prior.uniform(size))
    fixed = ours.fixed_point_advantage(promise, size)
    assert programs.advantage_by_curve(promise, uniform).value == pytest.approx(fixed, abs=2e-3)
    assert programs.advantage_by_curve(promise, uniform).value >= fixed - 1e-9
    threat = Threat(Prior(data.draw(priors(size))))
    pure = programs.success_by_curve(PureDP(1.0), threat).value
    assert pure >= ours.worst_top_records(1.0, 0.0, threat.prior).success - 1e-9


@pytest.mark.slow
@settings(max_examples=20)
@given(st.data(), st.integers(2, 6), st.sampled_from(["none", "all"]), st.sampled_from([None, Line(1.0)]))
def test_bounds_rise_with_epsilon_and_delta(data: st.DataObject, size: int, knows: str, rule: Any) -> None:
    threat = Threat(Prior(data.draw(priors(size))), knows, rule)
    for which in WHICH:
        for promises in (
            [ApproxDP(epsilon, 0.01) for epsilon in (0.0, 0.2, 1.0, 3.0)],
            [ApproxDP(epsilon, 0.95) for epsilon in (0.0, 0.1, 0.5, 3.0)],
            [ApproxDP(0.5, delta) for delta in (0.0, 0.01, 0.3, 1.0)],
            [PureDP(epsilon) for epsilon in (0.0, 0.2, 1.0, 3.0)],
            [GaussianDP(mu) for mu in (0.0, 0.5, 2.0)],
        ):
            seen: dict[str, float] = {}
            for promise in promises:
                for value in bounds.evaluate(promise, threat, which).values:
                    assert value.number >= seen.get(value.bound.name, -1.0) - 1e-9, value.bound.name
                    seen[value.bound.name] = value.number


@pytest.mark.parametrize("size", [2, 3, 10])
def test_thesis_theorems_4_and_5_need_delta_in_their_second_term(size: int) -> None:
    """Theory, correction 6: at epsilon 0, where the printed terms are 0, revealing gains delta (1 - kappa_pi)."""
    delta, prior = 0.1, Prior.uniform(size)
    gained = exact.solve(ours.worst_top_records(0.0, delta, prior).mechanism(), Threat(prior)).advantage
    assert gained == pytest.approx(delta * (1 - 1 / size))
    assert papers.thesis_theorem_4(0.0, delta, size, 1 / size) == pytest.approx(delta)
    assert papers.thesis_theorem_5(0.0, delta, prior.weights) == pytest.approx(gained)  # it is tight there
    for epsilon in (0.1, 1.0, 4.0):  # without delta they are the theorems of WPES'24
        weights = Prior.zipf(size).sorted_weights
        most, least = float(weights[0]), float(weights[-1])
        assert papers.thesis_theorem_4(epsilon, 0.0, size, most) == pytest.approx(
            papers.wpes_theorem_7_2(epsilon, most)
        )
        pure = papers.wpes_theorem_7_3(epsilon, size, least, most)
        assert papers.thesis_theorem_5(epsilon, 0.0, weights) == pytest.approx(pure)


def test_bounds_for_comparison_have_their_names() -> None:
    """WPES'24 Theorem 4.6 and Yeom et al., at epsilon 1: 0.632 and 1.718, where the total variation is 0.462."""
    told = {
        value.bound.name: value.number for value in assess(PureDP(1.0), Threat(Prior.uniform(5))).on_advantage.values
    }
    assert told["membership-ratio"] == pytest.approx(0.632, abs=5e-4)
    assert told["membership-yeom"] == pytest.approx(1.718, abs=5e-4)
    assert math.tanh(0.5) < told["membership-ratio"] < told["membership-yeom"]
    # WPES'24 Theorem 4.13: an attribute of four equally likely values, guessed by way of a membership attack.
    assert conversions.attribute_advantage_through_membership(0.32, 4) == pytest.approx(0.08)
    with pytest.raises(DpriskError, match="must lie in"):
        conversions.attribute_advantage_through_membership(1.5, 4)


def test_the_register_names_each_bound_once_and_cites_it() -> None:
    names = [bound.name for bound in REGISTRY]
    assert len(set(names)) == len(names)
    assert all(bound.source and bound.statement for bound in REGISTRY)
    assert {"advantage", "success"} < {bound.bounds for bound in REGISTRY}


def test_an_obstacle_says_what_is_missing() -> None:
    worst = assess(PureDP(1.0), Threat(Prior.zipf(5), "all"))
    assert worst.on_advantage.obstacles["knapsack"] == (
        "needs an attacker without auxiliary knowledge; this one knows everything"
    )
    large = assess(PureDP(1.0), Threat(Prior.zipf(80), success=Line(2.0)))
    assert "thorough=True" in large.on_advantage.obstacles["worst-mechanism"]
    assert assess(PureDP(1.0), Threat(Prior.zipf(80), success=Line(2.0)), thorough=True).advantage <= large.advantage


def test_zero_mass_records_do_not_loosen_a_bound() -> None:
    """Gotcha 2: padding zipf on 10 to 100 records raised Theorem 5.5 from 0.2349 to 0.2624."""
    weights = Prior.zipf(10).weights
    padded = Prior(np.concatenate([weights, np.zeros(90)]))
    for promise in (PureDP(1.0), ApproxDP(1.0, 1e-3)):
        short, long = (assess(promise, Threat(prior)) for prior in (Prior(weights), padded))
        assert long.advantage == pytest.approx(short.advantage, abs=1e-12)
        assert long.success == pytest.approx(short.success, abs=1e-12)


def test_tables_of_the_theory_page() -> None:
    """Section 3.5: exact worst case, blocks, Theorem 5.5 for zipf(1) on 10."""
    prior = Prior.zipf(10)
    for epsilon, worst, blocks, knapsack in ((0.5, 0.0755, 3, 0.1107), (1, 0.1565, 4, 0.2349), (4, 0.6905, 10, 0.7520)):
        found = ours.worst_blocks(epsilon, prior)
        assert found.advantage == pytest.approx(worst, abs=5e-5)
        assert found.count == blocks
        assert papers.rad_theorem_5_5(epsilon, 0.0, prior.sorted_weights) == pytest.approx(knapsack, abs=5e-5)


class TestSlipsOfThePapers:
    """Each fails with the formula as printed."""

    def test_the_printed_constant_of_thesis_theorem_7_is_not_a_bound(self) -> None:
        """Correction 5: with e^eps + 2 in the denominator randomised response on a skewed prior breaks it."""
        epsilon, prior = 1.0, Prior([0.5, 0.5])
        truth = exact.solve(GRR(2, epsilon), Threat(prior)).advantage
        printed = papers._heaviest_pairs(
            math.expm1(epsilon) / (math.exp(epsilon) + 2),
            papers.rad_lemma_5_4(epsilon, 0.0, 2) * 2,
            prior.sorted_weights,
        )
        assert printed < truth - 0.01
        assert papers.thesis_theorem_7(epsilon, 0.0, prior.sorted_weights) == pytest.approx(truth)

    def test_thesis_theorems_4_and_5_need_their_delta(self) -> None:
        """Correction 6: at epsilon 0 the printed term is 0, and revealing with delta gains delta (1 - kappa)."""
        prior = Prior.zipf(4)
        gained = ours.reveal_or_blocks(0.0, 0.1, prior)
        assert gained == pytest.approx(0.1 * (1 - prior.collision_probability))
        printed = papers.rad_theorem_4_2(papers.largest_variation(0.0), prior.collision_probability)
        assert (
            printed < gained <= papers.rad_theorem_4_2(papers.largest_variation(0.0, 0.1), prior.collision_probability)
        )

    def test_membership_has_no_factor_1_over_m(self) -> None:
        """Correction 9: WPES Table 2 bounds the informed membership advantage by (e^eps - 1)/m."""
        epsilon, size = 0.1, 12
        threat = Threat.membership(Prior.uniform(size))
        best = max(exact.solve(SubsetSelection(size, epsilon, w), threat).advantage for w in range(1, size))
        assert best == pytest.approx(0.0250, abs=5e-5)
        assert math.expm1(epsilon) / size < best <= math.tanh(epsilon / 4) + 1e-12

    def test_membership_is_not_reconstruction(self) -> None:
        """Correction 8: WPES Proposition 8.1 equates them; true for m = 2, false beyond."""
        mechanism = SubsetSelection(8, 0.5)
        member, blind = (exact.solve(mechanism, Threat(Prior.uniform(8), knows)).advantage for knows in ("all", "none"))
        assert member > blind + 0.05

    def test_the_rero_rows_of_wpes_table_2(self) -> None:
        """Correction 10: kappa (1 + (m-1) tanh(eps/2)), printed kappa (m-1)(tanh(eps/2) + 1): 0.52 against 1.32."""
        printed, right = (0.1 * 9 * (math.tanh(0.5) + 1), 0.1 * (1 + 9 * math.tanh(0.5)))
        assert (printed, right) == pytest.approx((1.32, 0.52), abs=5e-3)
        # At epsilon 4 that branch is the smaller of the two, and Table 3.5 has 0.9676.
        assert papers.wpes_proposition_5_1(4.0, 10, 0.1) == pytest.approx(0.9676, abs=5e-5)

    def test_the_advantage_bound_is_no_bound_on_success(self) -> None:
        """Correction 11: at m = 4, eps = 0.1 guessing succeeds with 0.269, the printed right side is 0.026."""
        success = exact.solve(GRR(4, 0.1), Threat(Prior.uniform(4))).success
        assert success == pytest.approx(0.269, abs=5e-4)
        assert papers.wpes_theorem_7_3(0.1, 4, 0.25, 0.25) == pytest.approx(0.026, abs=5e-4)

    def test_the_two_point_prior_is_the_least_risky_uniform_one(self) -> None:
        """Correction 3: RAD calls it the worst. Randomised response on 6 records at epsilon 1: 0.186 against 0.111."""
        mechanism = GRR(6, 1.0)
        uniform, two = Prior.uniform(6), Prior([0.5, 0.5, 0, 0, 0, 0])
        risks = [exact.solve(mechanism, Threat(prior)).advantage for prior in (uniform, two)]
        assert risks == pytest.approx([0.186, 0.111], abs=5e-4)

    def test_the_posterior_bound_of_swanberg_section_4_2(self) -> None:
        """Correction 13: e^eps/(e^eps - 1 + 1/p), printed without the -1: 0.731 against 0.576 at p = 1/2, eps = 1."""
        assert papers.posterior(1.0, 0.5) == pytest.approx(0.731, abs=5e-4)
        assert math.e / (math.e + 2) == pytest.approx(0.576, abs=5e-4)
        reached = exact.solve(GRR(2, 1.0), Threat(Prior.uniform(2))).success
        assert math.e / (math.e + 2) < reached <= papers.posterior(1.0, 0.5) + 1e-12

    def test_the_top_zipf_password(self) -> None:
        """Correction 12: with s = 1.1 over 10^9 the top mass is 0.10723, Adv 0.156 and eps_protect 0.399."""
        mass = 0.10723
        posterior = leakage.posterior(1.0, mass)
        assert leakage.generalised_advantage(posterior, mass) == pytest.approx(0.156, abs=5e-4)
        assert leakage.epsilon_to_protect(mass, 0.05) == pytest.approx(0.399, abs=1e-3)

    def test_the_interval_of_thesis_theorem_8_has_a_plus_sign(self) -> None:
        """Correction 7: with 1 - delta e^-eps the mean wrong guess of a constant mechanism lies outside."""
        epsilon, delta, size = 0.1, 0.5, 3
        shrink = math.exp(-epsilon)
        printed = (1 - delta * shrink) / (size - 1 + shrink)
        low, high = papers._off_diagonal_range(ApproxDP(epsilon, delta), size)
        wrong_guess = 1 / 3  # guesses at random: each record with probability 1/3
        assert printed < wrong_guess
        assert low <= wrong_guess <= high

    def test_bounds_with_kappa_plus_break_under_knowledge(self) -> None:
        """Gotcha 5: the ReRo bounds hold with kappa_aux, not with kappa_plus, once something is known."""
        threat = Threat(Prior.uniform(4), [0, 0, 1, 1])
        truth = exact.solve(GRR(4, 0.5), threat).success
        assert papers.bayes_factor_success(0.5, threat.kappa_plus) < truth
        assert papers.bayes_factor_success(0.5, threat.kappa_aux) >= truth


def test_conversions() -> None:
    promise = GaussianDP(1.0)
    assert conversions.membership_advantage(promise) == promise.total_variation
    assert conversions.attack_accuracy(promise) == pytest.approx((1 + promise.total_variation) / 2, abs=1e-9)
    assert conversions.attack_accuracy(promise, 0.999) == pytest.approx(0.999, abs=2e-3)
    assert conversions.true_positive_rate(PureDP(1.0), 0.01) == pytest.approx(0.01 * math.e)
    odds = conversions.posterior_odds(1.0, 0.2)
    assert odds / (1 + odds) == pytest.approx(leakage.posterior(1.0, 0.2))
    assert conversions.attribute_advantage(PureDP(1.0), 0.5) == pytest.approx(math.tanh(0.5) / 2)
    with pytest.raises(DpriskError, match="no epsilon keeps it"):
        leakage.epsilon_to_protect(0.1, 0.01, delta=0.5)


def test_distributional_reconstruction() -> None:
    """Theory 3.7 sharpens Attaxonomy, and holds for randomised response applied to each of n people (by listing)."""
    epsilon, people, size = 1.0, 2, 3
    kappa, channel = 1 / size, GRR(size, epsilon).matrix()
    best = 0.0
    for outputs in itertools.product(range(size), repeat=people):
        joint = {
            data: np.prod([channel[z, theta] / size for z, theta in zip(data, outputs, strict=True)])
            for data in itertools.product(range(size), repeat=people)
        }
        best += max(sum(weight for data, weight in joint.items() if guess in data) for guess in range(size))
    assert best <= papers.best_case(epsilon, kappa, people) + 1e-12
    assert papers.best_case(epsilon, kappa, people) < papers.attaxonomy_best_case(epsilon, kappa, people)
    assert papers.average_case(epsilon, kappa) < papers.attaxonomy_average(epsilon, kappa)
    assert papers.best_case(epsilon, 1.0, people) == 1.0


@pytest.mark.parametrize("size", [3, 4, 7])
def test_the_curve_of_pure_dp_in_thesis_theorem_8_and_corollary_2(size: int) -> None:
    """By hand at epsilon 0.5: f(a) = max(1 - E a, (1 - a)/E) has its largest gap at 1/(E + 1).

    The mean wrong guess lies between 1/(E + m - 1) and 1/(m - 1 + e^-eps), which holds that place at m = 3 and ends
    before it at m = 4 and 7, where the gap is (E - 1) a.
    """
    grow = math.exp(0.5)
    low, high = 1 / (grow + size - 1), 1 / (size - 1 + 1 / grow)
    assert papers._off_diagonal_range(PureDP(0.5), size) == pytest.approx((low, high), rel=1e-12)
    assert (high < 1 / (grow + 1)) == (size > 3)
    gap = (grow - 1) * min(high, 1 / (grow + 1))
    expected = (size - 1) / size * gap
    assert papers.thesis_corollary_2(PureDP(0.5), size) == pytest.approx(expected, rel=1e-12)
    assert papers.thesis_theorem_8(PureDP(0.5), np.full(size, 1 / size)) == pytest.approx(expected, rel=1e-12)
    heavy = np.array([0.5, *[0.5 / (size - 1)] * (size - 1)])
    most, each = size * (size - 1) * gap, math.tanh(0.25)
    pairs = sorted((a * b for i, a in enumerate(heavy) for b in heavy[i + 1 :]), reverse=True)
    filled = 0.0
    for pair in pairs:  # both orders of the heaviest pairs, each up to the total variation
        part = min(2 * each, most)
        filled, most = filled + pair * part, most - part
    assert papers.thesis_theorem_8(PureDP(0.5), heavy) == pytest.approx(filled, rel=1e-12)


def largest_by_program(epsilon: float, delta: float, pi: FloatArray, right: FloatArray, which: str) -> float:
    """The best (epsilon, delta)-DP mechanism whose output is the guess itself: nothing known, as a linear program."""
    guesses, size = right.shape
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b]
    cells = size * guesses
    worth = pi[:, None] * (right.T - (right @ pi if which == "advantage" else 0.0))
    rows, limits = [], []
    for number, (a, b) in enumerate(pairs):
        total = np.zeros(cells + len(pairs) * guesses)
        for guess in range(guesses):
            row = np.zeros(total.size)
            row[a * guesses + guess], row[b * guesses + guess] = 1, -math.exp(epsilon)
            row[cells + number * guesses + guess], total[cells + number * guesses + guess] = -1, 1
            rows.append(row)
            limits.append(0.0)
        rows.append(total)
        limits.append(delta)
    sums = np.zeros((size, cells + len(pairs) * guesses))
    for z in range(size):
        sums[z, z * guesses : (z + 1) * guesses] = 1
    cost = np.concatenate([-worth.ravel(), np.zeros(len(pairs) * guesses)])
    return -float(linprog(cost, A_ub=np.array(rows), b_ub=limits, A_eq=sums, b_eq=np.ones(size)).fun)


@pytest.mark.parametrize(
    ("weights", "epsilon", "delta", "within", "which"),
    [
        ([0.62, 0.35, 0.03], 0.1, 0.05, 1.0, "advantage"),
        ([0.08, 0.46, 0.46], 1.0, 0.2, 0.0, "advantage"),
        ([0.18, 0.07, 0.54, 0.21], 0.1, 0.2, 1.0, "success"),
    ],
)
def test_programs_with_delta_where_they_beat_the_closed_forms(
    weights: list[float], epsilon: float, delta: float, within: float, which: Literal["advantage", "success"]
) -> None:
    pi = np.array(weights)
    near = (np.abs(np.arange(pi.size)[:, None] - np.arange(pi.size)) <= within).astype(float)
    found = bounds.evaluate(ApproxDP(epsilon, delta), Threat(Prior(pi), success=Line(within)), which).values
    programs_too = [value for value in found if value.bound.name.startswith("worst-mechanism-delta")]
    closed = [value.number for value in found if math.isinf(value.bound.most_records)]
    assert programs_too[0].number < 0.99 * min(closed)
    assert programs_too[0].attained
    expected = largest_by_program(epsilon, delta, pi, near, which)
    assert expected * (1 - 1e-9) <= programs_too[0].number <= expected * (1 + 1e-6)


def test_total_variation_composes() -> None:
    """RAD section 4's form holds for composed randomised response, and is attained by revealing."""
    assert papers.composed_variation(1.0, 3) == 1
    assert papers.composed_variation(1.0, 1) == 1
    for times in (1, 2, 4):
        composed = papers.composed_variation(PureDP(0.7).total_variation, times)
        assert PureDP(0.7).compose(times).total_variation <= composed + 1e-12
        reveal = ApproxDP(0.0, 0.2).compose(times).total_variation
        assert reveal == pytest.approx(papers.composed_variation(0.2, times))


@given(st.floats(1e-12, 50.0), st.sampled_from([4, 6]))
def test_a_printed_bound_is_never_below_the_bound(value: float, digits: int) -> None:
    shown = float(significant_up(value, digits))
    assert value <= shown <= value * (1 + 10.0 ** (1 - digits) * 1.01)


def test_a_worst_case_reads_like_a_risk() -> None:
    worst = assess(PureDP(1.0), Threat(Prior.zipf(10)))
    assert isinstance(worst, WorstCase)
    assert worst.sentence() == (
        "Whatever the mechanism, an attacker is right about at most 375 of 1000 people (341 without any release), and "
        "about at most 157 more of 1000 who took part than of 1000 who did not. That is about people drawn at random: "
        "an attacker who looks for one record, whichever it is, says yes to at most 447 more of 1000 people who have "
        "it than of 1000 taken at random."
    )
    told = worst.to_dict()
    assert told["advantage_bound"]["name"] == "worst-blocks"
    assert len(told["bounds"]) + len(told["obstacles"]) == sum(bound.bounds in WHICH for bound in REGISTRY)
    assert told["worst_mechanism"]["kind"] == "OnAttribute"
    assert "theory 3.2" in worst._repr_html_()
    risk = assess(GRR(10, 1.0), Threat(Prior.zipf(10)))
    assert risk.advantage <= risk.bounds.advantage + 1e-12


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 0.01), GaussianDP(1.0), GaussianDP(3.0)])
def test_an_advantage_is_at_most_the_success(guarantee: Any) -> None:
    """Bounds on the advantage alone exceed the one on the success here: no attacker gains more than it is right."""
    worst = WorstCase(guarantee, Threat(Prior.zipf(1000)))
    assert worst.on_advantage.values[0].number > worst.success
    assert worst.advantage == worst.success
    assert worst.source == worst.success_bound.source
    assert not worst.advantage_bound.attained
