"""Bounds straight from an add/remove guarantee (theory 3.9): never below the worst channel, tighter than the detour."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dprisk import (
    DPSGD,
    ApproxDP,
    GaussianDP,
    Guarantee,
    Line,
    Matrix,
    Prior,
    PureDP,
    Threat,
    assess,
    bounds,
    calibrate,
    exact,
)
from dprisk.bounds import REGISTRY, add_remove
from dprisk.guarantees import ZCDP, RenyiDP, TradeOff
from dprisk.guarantees.curves import from_profile
from dprisk.threat import Distances
from dprisk.types import FloatArray, IntArray
from tests import naive
from tests.strategies import balls, partitions, priors

STRAIGHT = [bound for bound in REGISTRY if bound.relation == "add-remove"]
WHICH: tuple[Any, ...] = ("advantage", "success")


def left_out_curve(channel: FloatArray) -> TradeOff:
    """The add/remove curve of a channel whose last row is the output without the target: every pair's, both ways."""
    alphas, betas = [], []
    without = channel[-1]
    for row in channel[:-1]:
        order = np.argsort(-row / np.maximum(without, 1e-300))
        alphas.append(np.append(0.0, np.cumsum(without[order])).clip(0, 1))
        betas.append((1 - np.append(0.0, np.cumsum(row[order]))).clip(0, 1))
    return TradeOff(np.concatenate(alphas), np.concatenate(betas), "add-remove", linear=True)


@st.composite
def situations(draw: st.DrawFn) -> tuple[FloatArray, Threat]:
    """Any channel with a row for the data without the target, any prior, knowledge and success."""
    size, outputs = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    rows = draw(st.lists(priors(outputs), min_size=size + 1, max_size=size + 1))
    rule = draw(st.sampled_from(["exact", "exact", "line", "any"]))
    success: Any = {"exact": None, "line": Line(1.0), "any": Distances(0.5, np.where(draw(balls(size)), 0.0, 1.0))}[
        rule
    ]
    knows = draw(st.sampled_from(["none", "all", "some"]))
    groups: Any = draw(partitions(size)) if knows == "some" else knows
    return np.array(rows), Threat(Prior(draw(priors(size))), groups, success)


@pytest.mark.slow
@settings(max_examples=150)
@given(situations())
def test_no_add_remove_bound_is_below_the_exact_value(situation: tuple[FloatArray, Threat]) -> None:
    channel, threat = situation
    best, promise = exact.solve(Matrix(channel[:-1]), threat), left_out_curve(channel)
    for which in WHICH:
        found = bounds.evaluate(promise, threat, which)
        assert {value.bound.relation for value in found.values} == {"add-remove", "replace-one"}
        for value in found.values:
            assert value.number >= getattr(best, which) - 1e-12, (value.bound.name, value.number)


def random_case(rng: np.random.Generator) -> tuple[FloatArray, IntArray, list[tuple[float, float]]]:
    """A prior on up to six records, skewed or uniform, a partition of them, and one or two pairs (epsilon, delta)."""
    size = int(rng.integers(2, 7))
    prior = np.full(size, 1 / size) if rng.random() < 0.2 else rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])))
    groups = np.zeros(size, dtype=np.int64)
    if rng.random() < 0.5:  # all joint guesses are listed: at most two groups of the larger ones
        groups = np.unique(rng.integers(0, 3 if size < 5 else 2, size), return_inverse=True)[1]
    epsilon = float(rng.uniform(0.1, 3.0))
    kinds: list[list[tuple[float, float]]] = [
        [(epsilon, 0.0)],
        [(epsilon, float(rng.uniform(0, 0.3)))],
        [(epsilon / 3, 0.2), (epsilon, 0.01)],
    ]
    return prior, groups, kinds[int(rng.choice(3, p=[0.5, 0.3, 0.2]))]


def promise_of(pairs: list[tuple[float, float]]) -> Guarantee:
    if len(pairs) == 1:
        return ApproxDP(*pairs[0], relation="add-remove")
    epsilons, deltas = np.array([(0.0, 1.0), *pairs]).T
    return TradeOff(*from_profile(epsilons, deltas), "add-remove", linear=True)


@pytest.mark.slow
def test_the_program_is_never_below_the_worst_add_remove_channel() -> None:
    rng = np.random.default_rng(11)
    equal = detours = uniform = 0
    for _ in range(150):
        prior, groups, pairs = random_case(rng)
        promise, threat = promise_of(pairs), Threat(Prior(prior), groups)
        worst = naive.worst_left_out(prior, groups, pairs)
        found = bounds.evaluate(promise, threat, "advantage").values
        for value in found:
            assert value.number >= worst - 1e-7, (value.bound.name, value.number, worst)
        best = {kind: min(value.number for value in found if value.converted == kind) for kind in (False, True)}
        equal += best[False] <= worst * (1 + 1e-4)
        detours += best[True] > best[False] * (1 + 1e-9)
        if threat.prior.is_uniform and threat.knows.is_none and pairs[0][1] == 0 and len(pairs) == 1:
            uniform += 1
            assert best[False] == pytest.approx(worst, rel=1e-6)
    assert equal > 60  # of 150: the bound is often attained
    assert detours > 100
    assert uniform >= 3


def program(prior: FloatArray, groups: IntArray, promise: Guarantee) -> float:
    """Theory 3.9 c as a linear program over every place where the maximum can be, for curves of few knots."""
    alpha, beta = promise.knots
    q = np.union1d(alpha, 1 - alpha)
    miss, hit = np.interp(1 - q, alpha, beta), 1 - np.interp(q, alpha, beta)
    total = 0.0
    for group in np.unique(groups):
        pi = prior[groups == group]
        size, each = pi.size, np.kron(np.eye(pi.size), np.ones(q.size))
        right, wrong, asked = (np.kron(np.eye(size), part) for part in (hit, miss, q))
        x, y = np.diag(1.0 + 0 * pi), np.diag(pi)
        rest = (1 - pi)[:, None]
        rows = np.block([[-right, 0 * x, x], [rest * wrong, -x, y], [-rest * right, x, -y]])
        sums = np.block(
            [[asked.sum(axis=0), np.zeros(2 * size)], [0 * each.sum(axis=0), np.ones(size), np.zeros(size)]]
        )
        whole = np.hstack([each, np.zeros((size, 2 * size))])
        cost = np.concatenate([np.zeros(size * q.size), pi, -pi])
        if groups.max() == 0:
            whole, limits = np.vstack([whole, sums]), np.zeros(3 * size)
        else:
            rows, limits = np.vstack([rows, sums]), np.append(np.zeros(3 * size), [1.0, 1.0])
        solved = linprog(cost, rows, limits, whole, np.ones(len(whole)), bounds=(0, 1), method="highs")
        total -= float(solved.fun)
    return total


def test_prices_are_good_and_any_prices_are_a_bound() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        prior, groups, pairs = random_case(rng)
        promise, threat = promise_of(pairs), Threat(Prior(prior), groups)
        found, solved = add_remove.program_left_out(promise, threat), program(prior, groups, promise)
        assert found.value == pytest.approx(solved, abs=1e-7)
        assert add_remove.certified_by(promise, threat, found.dual) == found.value
        other = np.abs(rng.normal(scale=0.2, size=found.dual.shape))
        other[:, 1] *= -rng.random() if threat.knows.is_none else 0.0
        assert add_remove.certified_by(promise, threat, other) >= solved - 1e-12


def test_very_many_records_are_bounded_too() -> None:
    promise = GaussianDP(0.44, "add-remove")
    for prior in (Prior.zipf(20_000, 1.1), Prior.geometric(300, 0.95)):
        whole = add_remove.program_left_out(promise, Threat(prior)).value
        assert 0 < whole < add_remove.advantage_left_out(promise, prior.collision_probability, prior.weights.max())
    # Rounding near weights up to each other costs little.
    pi, count = add_remove._rounded_up(prior.weights, 100)
    assert count.sum() == prior.weights.size
    assert prior.weights.sum() <= pi @ count < 1.2
    many = Threat(Prior.uniform(50_000))
    assert add_remove.program_left_out(promise, many).value == pytest.approx(
        add_remove.uniform_left_out(promise, 50_000), rel=0.01
    )


def exact_gaussian(means: FloatArray, threat: Threat) -> tuple[float, float]:
    """RAD and ReRo of standard Gaussian noise on means in the plane, by a fine grid of outputs."""
    places = np.linspace(means.min() - 7, means.max() + 7, 160)
    x, y = (part.ravel() for part in np.meshgrid(places, places))
    density = np.exp(-((x - means[:, :1]) ** 2 + (y - means[:, 1:]) ** 2) / 2)
    best = exact.solve(Matrix(density / density.sum(axis=1, keepdims=True)), threat)
    return best.advantage, best.success


@pytest.mark.parametrize("seed", range(12))
def test_no_add_remove_bound_is_below_gaussian_noise_on_vectors(seed: int) -> None:
    """Means anywhere in a ball of radius mu around the output without the target: mu-Gaussian DP for add/remove."""
    rng = np.random.default_rng(seed)
    size, mu = int(rng.integers(2, 7)), float(rng.choice([0.5, 1.0, 2.0]))
    angle, radius = rng.uniform(0, 2 * math.pi, size), mu * np.sqrt(rng.random(size))
    if seed % 3 == 0:  # a regular polygon is where the bounds are nearest
        angle, radius = 2 * math.pi * np.arange(size) / size, np.full(size, mu)
    prior = Prior(rng.dirichlet(np.full(size, 3.0)))
    for knows in ("none", "all", rng.integers(0, 2, size).tolist()):
        threat = Threat(prior, knows)
        means = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        for which, truth in zip(WHICH, exact_gaussian(means, threat), strict=True):
            for value in bounds.evaluate(GaussianDP(mu, "add-remove"), threat, which).values:
                assert value.number >= truth - 1e-6, (value.bound.name, value.number, truth)


@pytest.mark.parametrize(
    "promise", [PureDP(1.0, "add-remove"), ApproxDP(0.5, 0.1, "add-remove"), GaussianDP(1.0, "add-remove")]
)
def test_the_uniform_prior_has_a_closed_form(promise: Guarantee) -> None:
    for size in (2, 3, 10, 1000):
        closed = add_remove.uniform_left_out(promise, size)
        assert closed == pytest.approx(1 - float(promise.tradeoff(1 / size)) - 1 / size)
        assert add_remove.program_left_out(promise, Threat(Prior.uniform(size))).value == pytest.approx(
            closed, rel=2e-4
        )


@pytest.mark.parametrize(
    ("size", "target", "steps", "noise"),
    [(10, 0.1, 100, 22.73), (8, 0.2, 100, 14.36), (8, 0.5, 100, 6.81), (100, 0.05, 1000, 40.99)],
)
def test_full_batches_need_the_noise_of_the_theory_page(size: int, target: float, steps: int, noise: float) -> None:
    """The settings of RAD Example 5.7 and of theory 3.6, by the licensed add/remove rule (correction 1)."""
    found = calibrate(DPSGD(1.0, steps), Threat(Prior.uniform(size)), advantage=target)
    assert found.value == pytest.approx(noise, abs=0.006)
    assert found.bound <= target
    assert found.source == "dprisk, theory 3.9 d"


@pytest.mark.slow
def test_the_tighter_way_is_taken_and_named() -> None:
    uniform, known = Threat(Prior.uniform(10)), Threat.membership(Prior.uniform(10))
    straight = assess(GaussianDP(1.0, "add-remove"), uniform)
    assert straight.advantage_bound.bound.relation == "add-remove"
    assert straight.source == "dprisk, theory 3.9 d"
    assert straight.advantage < assess(GaussianDP(2.0), uniform).advantage
    # For a pure guarantee and everything known the worst replace-one mechanism is the tighter bound.
    detour = assess(PureDP(0.1, "add-remove"), known)
    assert detour.advantage_bound.converted
    assert not detour.advantage_bound.attained  # by a mechanism that keeps 0.2 under replacement, but not this promise
    assert detour.worst_mechanism() is None
    assert detour.advantage == pytest.approx(assess(PureDP(0.2), known).advantage)
    assert detour.source.endswith("converted to replacing one record")
    assert any("converted to replacing" in text for row in detour.rows for text in row)
    told = detour.to_dict()
    assert told["advantage_bound"]["relation"] == "replace-one"
    assert {bound["relation"] for bound in told["bounds"]} == {"replace-one", "add-remove"}


def test_what_cannot_be_converted_is_bounded_straight() -> None:
    threat = Threat(Prior.zipf(5))
    worst = assess(RenyiDP([2.0, 8.0], [0.1, 0.4], "add-remove"), threat)
    assert {value.bound.relation for value in worst.on_advantage.values} == {"add-remove"}
    assert "says little about replacing" in worst.on_advantage.obstacles["variation"]
    assert worst.advantage >= assess(ZCDP(0.05, "add-remove"), threat).advantage * 0.99
    obstacles = assess(PureDP(1.0), threat).on_advantage.obstacles
    assert (
        obstacles["left-out-program"]
        == "needs a guarantee for adding or removing one; this one is for replacing one record"
    )
    assert REGISTRY["left-out-uniform"].needs().startswith("any guarantee for adding or removing one, nothing known")


def test_one_named_record_is_bounded_too() -> None:
    """Theory 3.8: the attacker who asks "is it z?" gains TV(P_z, P_pi)."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        channel, pi = rng.dirichlet(np.full(4, 0.5), 5), rng.dirichlet(np.ones(4))
        promise = left_out_curve(channel)
        for record in range(4):
            truth = np.abs(channel[record] - pi @ channel[:-1]).sum() / 2
            assert add_remove.record_left_out(promise, pi[record]) >= truth - 1e-12


@pytest.mark.parametrize("epsilon", [690.0, 709.5, 710.0, 720.0, 744.0, 745.0, 746.0, 2000.0, 1e6])
@pytest.mark.parametrize("knows", ["none", "all", [0, 0, 1, 1]])
def test_no_bound_collapses_at_a_huge_epsilon(epsilon: float, knows: Any) -> None:
    """Everything is given away: the advantage is 1 - kappa_pi."""
    for weights in ([0.25] * 4, [0.5, 0.3, 0.15, 0.05]):
        prior = Prior(weights)
        for delta in (0.0, 1e-6, 0.5):
            worst = assess(ApproxDP(epsilon, delta, relation="add-remove"), Threat(prior, knows))
            assert worst.advantage == pytest.approx(1 - prior.collision_probability, abs=1e-9)
