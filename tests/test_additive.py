"""Noise on the line: the risk at the break points against integrals, bins and the papers' formulas."""

import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dprisk import Gaussian, Laplace, Line, Prior, Ring, Threat, assess
from dprisk.attacks import OptimalAttack
from dprisk.errors import MechanismError, TooLargeError
from dprisk.exact import advantage_by_record, breakpoints, cells, enumerate_outputs, solve
from dprisk.exact.equal_steps import equal_steps
from dprisk.mechanisms import Additive, DensityNoise, GaussianNoise, LaplaceNoise
from dprisk.threat import Exact, Success
from dprisk.threat.knowledge import Knowledge
from dprisk.threat.windows import Windows
from dprisk.types import BoolArray, FloatArray
from tests.strategies import partitions, priors

Interval = tuple[float, float] | None
KINDS = ["laplace", "gaussian"]
ENDS: list[tuple[str, Interval]] = [("open", None), ("clamp", (0.1, 0.8)), ("truncate", (-0.2, 0.7))]


def noisy(kind: str, positions: Any, width: float, interval: Interval = None, ends: str = "clamp") -> Additive:
    noise = LaplaceNoise(width) if kind == "laplace" else GaussianNoise(width)
    return Additive(positions, noise, interval, "truncate" if ends == "truncate" else "clamp")


# The integrals written out


class Written:
    """The advantage and success as integrals of maxima over sets, with mpmath."""

    def __init__(self, kind: str, mechanism: Additive, prior: FloatArray, groups: Any, near: BoolArray) -> None:
        self.positions = [mpmath.mpf(float(x)) for x in mechanism.positions]
        self.width = mpmath.mpf(mechanism.noise.scale if kind == "laplace" else mechanism.noise.sigma)  # type: ignore[attr-defined]
        self.kind, self.mechanism = kind, mechanism
        self.prior = [mpmath.mpf(float(p)) for p in prior]
        self.sets = [
            [[z for z in range(prior.size) if near[g, z] and groups[z] == x] for g in range(near.shape[0])]
            for x in np.unique(groups)
        ]
        low, high = mechanism.bounds
        self.inside = [
            self.below(high - x) - self.below(low - x) if mechanism.is_truncated else mpmath.mpf(1)
            for x in self.positions
        ]

    def below(self, x: Any) -> Any:
        u = x / self.width
        if self.kind == "gaussian":
            return mpmath.ncdf(u)
        return mpmath.exp(u) / 2 if u < 0 else 1 - mpmath.exp(-u) / 2

    def densities(self, at: Any) -> list[Any]:
        u = [(at - x) / self.width for x in self.positions]
        if self.kind == "gaussian":
            logs, total = [-v * v / 2 for v in u], self.width * mpmath.sqrt(2 * mpmath.pi)
        else:
            logs, total = [-abs(v) for v in u], 2 * self.width
        return [mpmath.exp(log) / total / inside for log, inside in zip(logs, self.inside, strict=True)]

    def worth(self, chances: list[Any], chosen: list[int], penalise: bool) -> Any:
        """Theorem 4.3: sum_{z in c} pi_z (P_z - sum_y pi_y P_y), or without the second part."""
        evidence = mpmath.fdot(self.prior, chances) if penalise else mpmath.mpf(0)
        return mpmath.fsum(self.prior[z] * (chances[z] - evidence) for z in chosen)

    def best(self, chances: list[Any], penalise: bool) -> Any:
        return mpmath.fsum(max(self.worth(chances, chosen, penalise) for chosen in group) for group in self.sets)

    def corners(self, penalise: bool) -> list[Any]:
        """Where two sets are worth the same: a dense scan, then roots."""
        low, high = self.mechanism.bounds
        far = float(self.width) * (60 if self.kind == "laplace" else 12)
        places = self.mechanism.positions
        start, end = max(low, places.min() - far), min(high, places.max() + far)
        grid = np.unique(np.clip(np.r_[np.linspace(start, end, 1200), np.linspace(-1, 2, 1200)], start, end))
        density = np.exp(self.mechanism.noise.log_density(grid[:, None] - places))
        density /= np.array([float(inside) for inside in self.inside])
        pi = np.array([float(p) for p in self.prior])
        evidence = density @ pi if penalise else np.zeros(grid.size)
        corners = [mpmath.mpf(float(x)) for x in (start, end, *places) if start <= x <= end]
        for group in self.sets:
            worth = [sum(pi[z] * (density[:, z] - evidence) for z in chosen) + 0 * grid for chosen in group]
            for one, two in itertools.combinations(range(len(group)), 2):
                gap = worth[one] - worth[two]
                for i in np.flatnonzero(gap[:-1] * gap[1:] < 0):

                    def difference(at: Any, one: list[int] = group[one], two: list[int] = group[two]) -> Any:
                        chances = self.densities(at)
                        return self.worth(chances, one, penalise) - self.worth(chances, two, penalise)

                    bracket = (mpmath.mpf(float(grid[i])), mpmath.mpf(float(grid[i + 1])))
                    corners.append(mpmath.findroot(difference, bracket, solver="anderson", verify=False))
        return sorted(corners)

    def value(self, penalise: bool) -> float:
        corners = self.corners(penalise)
        cells = [(a, b) for a, b in itertools.pairwise(corners) if b - a > mpmath.mpf(10) ** -15]
        total = mpmath.fsum(
            mpmath.quad(lambda at: self.best(self.densities(at), penalise), mpmath.linspace(a, b, 2)) for a, b in cells
        )
        if self.mechanism.interval is not None and not self.mechanism.is_truncated:
            low, high = self.mechanism.interval
            total += self.best([self.below(low - x) for x in self.positions], penalise)
            total += self.best([self.below(x - high) for x in self.positions], penalise)
        return float(total)


@pytest.mark.slow
@pytest.mark.parametrize(("ends", "interval"), ENDS, ids=[name for name, _ in ENDS])
@pytest.mark.parametrize("knows", ["none", "partition", "all"])
@pytest.mark.parametrize("eta", [None, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_risk_is_the_integral(kind: str, eta: float | None, knows: str, ends: str, interval: Interval) -> None:
    seed = [KINDS.index(kind), eta is None, len(knows), len(ends)]
    rng = np.random.default_rng(seed)
    size = 2 + sum(seed) % 4
    places = np.round(rng.random(size), 3)
    pi = rng.dirichlet(np.full(size, 0.7))
    groups = {"none": np.zeros(size, int), "partition": np.arange(size) % 2, "all": np.arange(size)}[knows]
    near = np.eye(size, dtype=bool) if eta is None else np.abs(places[:, None] - places) <= eta
    threat = Threat(Prior(pi), Knowledge.partition(groups), Exact() if eta is None else Line(eta, places))
    mechanism = noisy(kind, places, float(rng.choice([0.1, 0.3, 1.0])), interval, ends)
    with mpmath.workdps(22):
        written = Written(kind, mechanism, threat.prior.weights, groups, near)
        expected = written.value(True), written.value(False)
    found = breakpoints.optimum(mechanism, threat)
    assert (found.advantage, found.success) == pytest.approx(expected, abs=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_risk_is_the_integral_to_fifty_digits(kind: str) -> None:
    """One instance each with nothing left to the precision of the reference."""
    places, pi = np.array([0.0, 0.15, 0.7]), np.array([0.55, 0.15, 0.3])
    threat = Threat(Prior(pi), success=Line(0.2, places))
    near = np.abs(places[:, None] - places) <= 0.2
    mechanism = noisy(kind, places, 0.4)
    with mpmath.workdps(50):
        written = Written(kind, mechanism, threat.prior.weights, np.zeros(3, int), near)
        expected = written.value(True), written.value(False)
    found = breakpoints.optimum(mechanism, threat)
    assert (found.advantage, found.success) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("noise", [LaplaceNoise(1.0), GaussianNoise(1.0)], ids=KINDS)
def test_masses_keep_their_digits(noise: LaplaceNoise | GaussianNoise) -> None:
    rng = np.random.default_rng(4)
    low = rng.normal(size=400) * 10 ** rng.uniform(-8, 1.4, 400)
    high = low + 10 ** rng.uniform(-12, 2, 400)
    found = noise.between(low, high)
    with mpmath.workdps(60):
        flipped = zip(np.where(low > 0, -high, low), np.where(low > 0, -low, high), found, strict=True)
        for a, b, mass in flipped:
            if isinstance(noise, GaussianNoise):
                expected = mpmath.ncdf(mpmath.mpf(b)) - mpmath.ncdf(mpmath.mpf(a))
            else:
                ends = [mpmath.exp(-abs(mpmath.mpf(x))) / 2 for x in (a, b)]
                expected = (ends[1] if b < 0 else 1 - ends[1]) - ends[0]
            if expected > mpmath.mpf("1e-290"):
                assert abs(mass / expected - 1) < 1e-11


# Bins from below and from above


def bracket(mechanism: Additive, threat: Threat, edges: FloatArray) -> tuple[float, float, float, float]:
    """Bounds on RAD and ReRo: what the bins tell, and the largest that any output inside a bin could be worth.

    An attacker who saw, bin by bin, the largest density of each record in his set and the smallest of the others,
    would do at least as well.
    """
    pi, reach = threat.prior.weights[:, None], threat.reach
    lower = enumerate_outputs(mechanism.binned(edges), threat)
    low, high = edges[:-1], edges[1:]
    width = high - low
    density = [mechanism.density(at) for at in (low, high)]
    largest, smallest = np.maximum(*density), np.minimum(*density)
    crest = (mechanism.positions[:, None] > low) & (mechanism.positions[:, None] < high)
    largest = np.where(crest, mechanism.density(mechanism.positions).diagonal()[:, None], largest)
    price = reach.sums(pi)
    top = reach.sums(pi * largest)
    advantage = float((reach.best(top - price * (pi * smallest).sum(axis=0)) * width).sum())
    success = float((reach.best(top) * width).sum())
    atoms = np.array([[-np.inf, edges[-1]], [edges[0], np.inf]])
    tails = pi * mechanism.noise.between(
        atoms[0] - mechanism.positions[:, None], atoms[1] - mechanism.positions[:, None]
    )
    advantage += float(reach.best(reach.sums(tails) - price * tails.sum(axis=0)).sum())
    success += float(reach.best(reach.sums(tails)).sum())
    return lower.advantage, advantage, lower.success, success


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("success", [Exact(), Line(5.0)])
def test_many_records_lie_between_two_sums_over_bins(kind: str, width: float, success: Success) -> None:
    rng = np.random.default_rng(3)
    places, pi = np.sort(rng.random(50)), rng.dirichlet(np.full(50, 0.5))
    mechanism = noisy(kind, places, width)
    for knows in ("none", [i % 3 for i in range(50)]):
        threat = Threat(Prior(pi), knows, success)
        edges = np.linspace(-30 * width, 1 + 30 * width, 6001)
        low, high, least, most = bracket(mechanism, threat, edges)
        found = solve(mechanism, threat)
        assert low - 1e-13 <= found.advantage <= high + 1e-13
        assert least - 1e-13 <= found.success <= most + 1e-13
        assert high - low < 0.1
        finer = np.concatenate([rng.normal(rng.choice(places), width, 50) for _ in range(100)])
        tried = enumerate_outputs(mechanism.binned(np.r_[edges, finer]), threat)
        assert tried.advantage <= found.advantage + found.error + 1e-13
        assert tried.success <= found.success + found.error + 1e-13


@st.composite
def settings_on_the_line(draw: st.DrawFn) -> tuple[Additive, Threat, FloatArray]:
    size = draw(st.integers(1, 8))
    gap = draw(st.sampled_from([1e-9, 1e-3, 0.1, 1.0, 1e6]))
    places = gap * np.array(draw(st.lists(st.integers(0, 20), min_size=size, max_size=size)), dtype=float)
    width = draw(st.sampled_from([1e-3, 0.1, 1.0, 7.0, 1e3])) * gap
    interval, ends = draw(st.sampled_from([(None, "clamp"), ((2.5, 9.0), "clamp"), ((-3.0, 40.0), "truncate")]))
    inside = None if interval is None else (interval[0] * gap, interval[1] * gap)
    ends = "clamp" if width < 0.1 * gap else ends
    mechanism = noisy(draw(st.sampled_from(KINDS)), places, width, inside, ends)
    success = draw(st.sampled_from([Exact(), Line(1.0), Line(3.0 * gap, places), Ring(1.0)]))
    threat = Threat(Prior(draw(priors(size))), Knowledge.partition(draw(partitions(size))), success)
    first, last = np.clip([places.min() - 8 * width, places.max() + 8 * width], *mechanism.bounds)
    shares = np.array(draw(st.lists(st.floats(0, 1), min_size=1, max_size=30)))
    edges = np.r_[np.linspace(first, last, 800), first + shares * (last - first), places]
    return mechanism, threat, edges


@pytest.mark.slow
@given(settings_on_the_line())
@settings(max_examples=100)
def test_no_partition_beats_the_break_points(case: tuple[Additive, Threat, FloatArray]) -> None:
    """And what is said of records and groups adds up to what is said of all."""
    mechanism, threat, edges = case
    found, tried = breakpoints.optimum(mechanism, threat), enumerate_outputs(mechanism.binned(edges), threat)
    assert found.error < 1e-10
    assert tried.advantage <= found.advantage + found.error + 1e-12
    assert tried.success <= found.success + found.error + 1e-12
    assert found.success <= 1 + 1e-12
    by_record = advantage_by_record(mechanism, threat)
    assert threat.prior.weights @ by_record == pytest.approx(found.advantage, abs=1e-11)
    risk = assess(mechanism, threat)
    assert sum(part.prior_mass * part.advantage for part in risk.by_group) == pytest.approx(risk.advantage, abs=1e-11)
    assert risk.advantage == pytest.approx(found.advantage, abs=1e-11)
    assert risk.success == pytest.approx(found.success, abs=1e-11)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60)
def test_records_out_of_sight_of_a_cell_do_not_matter(data: st.DataObject) -> None:
    """Leaving them out gives the optimum that looking at all of them gives, under any prior and knowledge."""
    size = data.draw(st.integers(2, 40))
    places = np.array(data.draw(st.lists(st.integers(0, 100), min_size=size, max_size=size)), dtype=float)
    mechanism = noisy(data.draw(st.sampled_from(KINDS)), places, data.draw(st.sampled_from([0.2, 1.0, 4.0])))
    success = data.draw(st.sampled_from([Exact(), Line(3.0, places), Ring(3.0, places, 101.0)]))
    threat = Threat(Prior(data.draw(priors(size))), Knowledge.partition(data.draw(partitions(size))), success)
    found = breakpoints.optimum(mechanism, threat)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells.Search, "near", lambda search, left, right: search)
        whole = breakpoints.optimum(mechanism, threat)
    assert found.advantage == pytest.approx(whole.advantage, abs=1e-11)
    assert found.success == pytest.approx(whole.success, abs=1e-11)


@pytest.mark.slow
@given(st.data())
def test_sets_seen_on_some_records(data: st.DataObject) -> None:
    """A narrowed window holds of the records that stay what the whole window holds of them."""
    size = data.draw(st.integers(1, 12))
    places = np.array(data.draw(st.lists(st.integers(0, 12), min_size=size, max_size=size)), dtype=float)
    success = data.draw(st.sampled_from([Line(2.0, places), Ring(2.0, places, 13.0)]))
    knows = Knowledge.partition(data.draw(partitions(size)))
    whole = Threat(Prior.uniform(size), knows, success).reach
    assert isinstance(whole, Windows)
    stay = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=size, max_size=size).filter(any)))
    preference = np.array(data.draw(st.permutations(range(whole.guess.size))))
    seen, sets = whole.narrowed(stay, preference)
    held, cut = seen.members().toarray(), whole.members().toarray()[:, stay]
    assert np.array_equal(held, cut[sets])
    assert np.array_equal(seen.group, whole.group[sets])
    first: dict[tuple[int, ...], int] = {}
    for number in preference:
        first.setdefault((int(whole.group[number]), *cut[number].astype(int)), int(number))
    assert set(first.values()) <= set(sets.tolist())
    assert len(first) == sets.size or isinstance(success, Ring)  # which lists its records twice
    for group in range(int(whole.group.max()) + 1):
        guesses = np.arange(whole.n_guesses)
        assert np.array_equal(held[seen.find(guesses, group)], cut[whole.find(guesses, group)])


# The papers' formulas


@pytest.mark.parametrize("size", [2, 5, 11])
@pytest.mark.parametrize("parameter", [0.05, 0.5, 2.0, 10.0])
def test_equally_spaced_positions(size: int, parameter: float) -> None:
    """RAD Examples 4.7 and 4.8, by both ways."""
    threat = Threat(Prior.uniform(size))
    formulas = {
        Laplace(size, parameter): (size - 1) / size * -math.expm1(-parameter / (2 * (size - 1))),
        Gaussian(size, parameter): (size - 1) / size * (2 * stats.norm.cdf(1 / (2 * (size - 1) * parameter)) - 1),
    }
    for mechanism, expected in formulas.items():
        for found in (solve(mechanism, threat), breakpoints.optimum(mechanism, threat)):
            assert found.advantage == pytest.approx(expected, abs=1e-13)
            assert found.success == pytest.approx(expected + 1 / size, abs=1e-13)


@pytest.mark.parametrize("width", [0.01, 0.2, 1.0, 30.0])
def test_positions_anywhere(width: float) -> None:
    """RAD equations 70 and 75, by both ways."""
    places = np.array([0.3, -1.0, 0.31, 2.0, 0.9, 0.9])
    gaps = np.diff(np.sort(places))
    threat = Threat(Prior.uniform(6))
    laplace = float(-np.expm1(-gaps / (2 * width)).sum()) / 6
    gaussian = float((2 * stats.norm.cdf(gaps / (2 * width)) - 1).sum()) / 6
    for kind, expected in zip(KINDS, (laplace, gaussian), strict=True):
        mechanism = noisy(kind, places, width)
        for found in (solve(mechanism, threat), breakpoints.optimum(mechanism, threat)):
            assert found.advantage == pytest.approx(expected, abs=1e-13)


# Limits


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("knows", ["none", "all"])
def test_no_noise_tells_all_and_much_noise_nothing(kind: str, knows: str) -> None:
    pi = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
    threat = Threat(Prior(pi), knows)
    places = np.array([0.0, 0.2, 0.5, 0.6, 1.0])
    for width in (1e-12, 1e-3):
        found = breakpoints.optimum(noisy(kind, places, width), threat)
        assert found.advantage == pytest.approx(1 - (pi**2).sum(), abs=1e-12)
        assert found.success == pytest.approx(1.0, abs=1e-12)
    found = breakpoints.optimum(noisy(kind, places, 1e12), threat)
    assert 0 <= found.advantage < 1e-12
    assert found.success == pytest.approx(threat.baseline, abs=1e-12)


def test_epsilon_from_nothing_to_everything() -> None:
    threat = Threat(Prior([0.6, 0.3, 0.1]))
    assert assess(Laplace(3, 1e-9), threat).advantage == pytest.approx(0.0, abs=1e-9)
    assert assess(Laplace(3, 500.0), threat).advantage == pytest.approx(1 - 0.46, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1e-12, 1e-3, 1.0, 1e12])
@pytest.mark.parametrize(
    ("places", "pi"),
    [
        ([0.7], [1.0]),
        ([0.0, 1.0], [0.9, 0.1]),
        ([0.0, 1.0, 2.0], [0.0, 1.0, 0.0]),
        ([0.0, 0.5, 1.0], [1e-15, 1 - 2e-15, 1e-15]),
        ([1.0, 1.0, 1.0], [0.2, 0.3, 0.5]),
        ([0.0, 0.0, 1.0, 1.0], [0.1, 0.4, 0.3, 0.2]),
        ([0.0, 1e6, 2e6], [0.2, 0.5, 0.3]),
        ([0.0, 1e-9, 2e-9, 1.0], [0.4, 0.2, 0.3, 0.1]),
        ([-1e6, -1e6 + 1e-9, 3.0], [0.3, 0.3, 0.4]),
    ],
)
def test_extreme_settings_stay_in_range(kind: str, width: float, places: list[float], pi: list[float]) -> None:
    size = len(places)
    for knows, success in itertools.product(("none", "all"), (Exact(), Line(1e-9, places), Line(1.0, places))):
        threat = Threat(Prior(pi), knows, success)
        for interval in (None, (-0.5, 0.75)):
            mechanism = noisy(kind, places, width, interval)
            found = breakpoints.optimum(mechanism, threat)
            assert -1e-12 <= found.advantage <= 1 - sum(p * p for p in pi) + 1e-12
            assert threat.baseline - 1e-12 <= found.success <= 1 + 1e-12
            assert found.error < 1e-9
            by_record = advantage_by_record(mechanism, threat)
            assert np.all(np.abs(by_record) <= 1 + 1e-12)
            if size == 1 or max(pi) == 1:
                assert found.advantage == pytest.approx(0.0, abs=1e-12)


def test_records_in_one_place_cannot_be_told_apart() -> None:
    """Two records share a place: the heavier is guessed, as if the other had no mass to win."""
    threat = Threat(Prior([0.5, 0.2, 0.3]))
    for kind in KINDS:
        found = breakpoints.optimum(noisy(kind, [0.0, 1.0, 1.0], 1e-6), threat)
        assert found.success == pytest.approx(0.8, abs=1e-12)


@pytest.mark.parametrize("size", [2, 6, 40])
def test_ties_on_a_whole_region(size: int) -> None:
    """A prior that falls as fast as Laplace noise: all records below the output are equally likely a posteriori.

    The first is always among the best, so that seeing the output does not help to be right at all.
    """
    gap, scale = 0.5, 0.8
    weights = math.exp(-gap / scale) ** np.arange(size)
    threat = Threat(Prior(weights / weights.sum()))
    mechanism = noisy("laplace", gap * np.arange(size), scale)
    found = breakpoints.optimum(mechanism, threat)
    assert found.success == pytest.approx(threat.prior.weights[0], abs=1e-13)
    assert found.error < 1e-12
    tried = enumerate_outputs(mechanism.binned(np.linspace(-5, gap * size + 5, 10_001)), threat)
    assert found.advantage == pytest.approx(tried.advantage, abs=1e-6)
    assert tried.advantage <= found.advantage + 1e-13


def test_nearly_all_the_mass_on_one_record() -> None:
    """The price of its set cancels what it gains but for the last digits, which nobody can split a cell over."""
    pi = np.full(19, 1e-15)
    pi[9] = 1 - 18e-15
    found = breakpoints.optimum(noisy("gaussian", 19, 0.18), Threat(Prior(pi)))
    assert 0 <= found.advantage < 1e-13
    assert found.error < 1e-12


# What mechanisms say of themselves

LAWS: list[Callable[[], Additive]] = [
    lambda: Laplace([0.0, 0.3, 1.0], scale=0.4),
    lambda: Gaussian([0.0, 0.3, 1.0], 0.4),
    lambda: Laplace([0.0, 0.3, 1.0], scale=0.4, interval=(-0.1, 0.8)),
    lambda: Gaussian([0.0, 0.3, 1.0], 0.4, interval=(0.1, 1.3)),
    lambda: Laplace([0.0, 0.3, 1.0], scale=0.4, interval=(-0.1, 0.8), ends="truncate"),
    lambda: Gaussian([0.0, 0.3, 1.0], 0.4, interval=(0.1, 1.3), ends="truncate"),
    lambda: Laplace([0.0, 0.3, 1.0], scale=0.01, interval=(2.0, 2.5), ends="truncate"),
    lambda: Gaussian([0.0, 0.3, 1.0], 0.1, interval=(-1.5, -1.4), ends="truncate"),
    lambda: Additive([0.0, 0.3, 1.0], DensityNoise(stats.logistic.pdf, stats.logistic.cdf), (-1.0, 1.0), "truncate"),
    lambda: Additive([0.0, 0.3, 1.0], DensityNoise(stats.t(3).pdf, stats.t(3).cdf, stats.t(3).sf)),
]


def named(laws: list[Callable[[], Additive]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("make", laws, ids=[repr(make()) for make in laws])


def grid_of(mechanism: Additive, points: int = 40_001) -> FloatArray:
    """The middles of a grid over all outputs but the ends."""
    low, high = mechanism.bounds
    ends = np.linspace(max(low, -30.0), min(high, 30.0), points)
    return np.asarray((ends[1:] + ends[:-1]) / 2)


@named(LAWS[:9])
def test_likelihoods_sum_to_one(make: Callable[[], Additive]) -> None:
    mechanism = make()
    grid = grid_of(mechanism)
    total = np.exp(mechanism.log_likelihood(grid)).sum(axis=0) * (grid[1] - grid[0])
    if mechanism.interval is not None and mechanism.ends == "clamp":
        total += np.exp(mechanism.log_likelihood(mechanism.interval)).sum(axis=0)
    assert total == pytest.approx(np.ones(3), abs=1e-5)


@pytest.mark.slow
@named(LAWS)
def test_samples_follow_the_distribution(make: Callable[[], Additive]) -> None:
    mechanism, rng, runs = make(), np.random.default_rng(2), 20_000
    low, high = mechanism.bounds
    for record in range(3):
        drawn = mechanism.sample(np.full(runs, record), rng)
        assert np.all((drawn >= low) & (drawn <= high))
        if mechanism.interval is not None and mechanism.ends == "clamp":
            for end in mechanism.interval:
                share = math.exp(mechanism.log_likelihood([end])[0, record])
                assert np.mean(drawn == end) == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / runs))

        def below(
            at: FloatArray, record: int = record, mechanism: Additive = mechanism, low: float = low
        ) -> FloatArray:
            start = low if mechanism.is_truncated else -np.inf
            return np.asarray(mechanism.mass(np.full(at.shape, start), at)[record])

        inside = np.sort(drawn[(drawn > low) & (drawn < high)])
        first, last = (0.0, 1.0) if mechanism.interval is None else below(np.array([low, high]))
        assert stats.kstest((below(inside) - first) / (last - first), "uniform").pvalue > 1e-4


@named(LAWS[2:8])
def test_privacy_of_bounded_noise_matches_a_fine_grid(make: Callable[[], Additive]) -> None:
    mechanism = make()
    grid = grid_of(mechanism, 200_001)
    rows = np.exp(mechanism.log_likelihood(grid)) * (grid[1] - grid[0])
    logs = mechanism.log_likelihood(grid)
    if mechanism.ends == "clamp":
        atoms = mechanism.log_likelihood(mechanism.bounds)
        rows, logs = np.concatenate([rows, np.exp(atoms)]), np.concatenate([logs, atoms])
    assert mechanism.epsilon == pytest.approx(np.ptp(logs, axis=1).max(), rel=1e-3)
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        pairs = itertools.permutations(rows.T, 2)
        expected = max(float(np.maximum(one - math.exp(epsilon) * two, 0).sum()) for one, two in pairs)
        assert mechanism.delta_at(epsilon) == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("make", LAWS[:6:3] + LAWS[9:], ids=["laplace", "truncated", "student"])
@pytest.mark.parametrize("knows", ["none", [0, 0, 1]])
def test_the_best_attack_reaches_the_exact_risk(make: Callable[[], Additive], knows: str | list[int]) -> None:
    mechanism, runs, rng = make(), 60_000, np.random.default_rng(1)
    pi, places = np.array([0.5, 0.2, 0.3]), mechanism.positions
    threat = Threat(Prior(pi), knows, Line(0.35, places))
    risk = assess(mechanism, threat)
    targets, others = rng.choice(3, size=(2, runs), p=pi)
    outputs = mechanism.sample(targets, rng)
    attack = OptimalAttack(mechanism, threat)
    hits = []
    for people in (targets, others):
        guess = attack.guess(outputs, rng, threat.knows.groups[people])
        hits.append(np.mean(np.abs(places[guess] - places[people]) <= 0.35))
    assert hits[0] - hits[1] == pytest.approx(risk.advantage, abs=0.015)
    fondest = OptimalAttack(mechanism, threat, maximise="success")
    guess = fondest.guess(outputs, rng, threat.knows.groups[targets])
    assert np.mean(np.abs(places[guess] - places[targets]) <= 0.35) == pytest.approx(risk.success, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        stats.t(3),
        stats.cauchy(),
        stats.logistic(),
        stats.gumbel_r(),
        stats.expon(),
        stats.uniform(-1, 2),
        stats.uniform(5, 1e-3),
        stats.beta(0.5, 0.5),
    ],
    ids=["student", "cauchy", "logistic", "gumbel", "exponential", "uniform", "narrow", "infinite"],
)
@pytest.mark.parametrize("knows", ["none", [0, 1, 0, 1]])
def test_any_density_against_a_fine_binning(law: Any, knows: str | list[int]) -> None:
    width = float(law.ppf(0.75) - law.ppf(0.25))
    places = width * np.array([0.0, 0.7, 0.8, 2.5])
    noise = DensityNoise(law.pdf, law.cdf, law.sf)
    threat = Threat(Prior([0.4, 0.3, 0.2, 0.1]), knows, Line(0.2 * width, places))
    for interval, ends in ((None, "clamp"), ((0.0, 2.0), "clamp"), ((-0.5, 2.0), "truncate")):
        inside = None if interval is None else tuple(float(law.median()) + width * np.array(interval))
        mechanism = Additive(places, noise, inside, "truncate" if ends == "truncate" else "clamp")
        found = solve(mechanism, threat)
        tails = law.ppf([1e-7, 1 - 1e-7])
        first, last = np.clip([places.min() + tails[0], places.max() + tails[1]], *mechanism.bounds)
        steps = places[:, None] + law.ppf(np.linspace(0, 1, 1500)[1:-1])
        edges = np.clip(np.r_[np.linspace(first, last, 4000), steps.ravel()], first, last)
        binned = enumerate_outputs(mechanism.binned(edges), threat)
        for mine, theirs in ((found.advantage, binned.advantage), (found.success, binned.success)):
            assert theirs - found.error - 1e-10 <= mine <= theirs + 1e-3
        by_record = advantage_by_record(mechanism, threat)
        assert threat.prior.weights @ by_record == pytest.approx(found.advantage, abs=1e-9)


def test_a_cell_that_two_sets_share_evenly_is_split() -> None:
    """Symmetric noise, equally likely records: the middle cell holds as much of the one as of the other."""
    law = stats.logistic()
    threat = Threat(Prior.uniform(2))
    for apart in (0.1, 1.0, 7.0):
        found = solve(Additive([0.0, apart], DensityNoise(law.pdf, law.cdf, law.sf)), threat)
        assert found.advantage == pytest.approx((law.cdf(apart / 2) - law.cdf(-apart / 2)) / 2, abs=1e-12)


def test_a_density_takes_the_same_values_as_the_noise_it_is_of() -> None:
    threat = Threat(Prior([0.4, 0.3, 0.2, 0.1]), success=Line(1.0))
    for kind, law in (("laplace", stats.laplace()), ("gaussian", stats.norm())):
        known = solve(noisy(kind, [0.0, 0.5, 1.5, 4.0], 1.0), threat)
        given_by_density = Additive([0.0, 0.5, 1.5, 4.0], DensityNoise(law.pdf, law.cdf, law.sf))
        found = solve(given_by_density, threat)
        assert (found.advantage, found.success) == pytest.approx((known.advantage, known.success), abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [0.001, 0.03, 1.0])
def test_a_thousand_records(kind: str, width: float) -> None:
    threat = Threat(Prior.zipf(1000), success=Line(20.0))
    mechanism = noisy(kind, 1000, width)
    found = solve(mechanism, threat)
    assert found.error < 1e-10
    coarse = enumerate_outputs(mechanism.binned(np.linspace(-width, 1 + width, 300)), threat)
    assert coarse.advantage - 1e-13 <= found.advantage <= 1
    assert coarse.success - 1e-13 <= found.success <= 1


def test_an_interval_that_noise_never_reaches_is_refused() -> None:
    for kind in KINDS:
        with pytest.raises(MechanismError, match="out of reach"):
            noisy(kind, [0.0, 100.0], 0.135, (-0.1, 0.1), "truncate")


@pytest.mark.parametrize("knows", ["none", "all"])
def test_noise_far_smaller_than_the_gaps_tells_everything(knows: str) -> None:
    """Known in full, a record adds 1 - pi; unknown, the best guess is right and was so by chance with pi."""
    size = 300
    prior = Prior.zipf(size, 1.1)
    for mechanism in (Gaussian(size, 1e-12), Laplace(size, 1e9)):
        found = solve(mechanism, Threat(prior, knows))
        assert found.advantage == pytest.approx(1 - prior.collision_probability, abs=1e-12)
        assert found.success == pytest.approx(1.0, abs=1e-12)
        assert found.error < 1e-15


def test_noise_of_unknown_shape_is_called_numerical() -> None:
    noise = DensityNoise(stats.norm.pdf, stats.norm.cdf, stats.norm.sf)
    risk = assess(Additive(4, noise), Threat(Prior.zipf(4)))
    assert repr(risk).endswith("numerical)")
    assert repr(assess(Gaussian(4, 1.0), Threat(Prior.zipf(4)))).endswith("exact)")


@settings(deadline=None)
@given(
    size=st.integers(4, 60),
    share=st.floats(0.0, 1.0),
    epsilon=st.floats(1e-2, 300.0),
    falling=st.booleans(),
)
def test_equal_steps_give_what_break_points_give(size: int, share: float, epsilon: float, falling: bool) -> None:
    """Also how often the attacker of the advantage is right; from windows of three records to nearly half of all."""
    within = 1 + int(share * (size // 2 - 2))
    mechanism = Laplace(np.arange(size)[:: -1 if falling else 1] * 0.7 + 3, epsilon)
    threat = Threat.reconstruction(Prior.uniform(size), within=within)
    found, slow = equal_steps(mechanism, threat), breakpoints.optimum(mechanism, threat)
    assert found is not None
    assert found.advantage == pytest.approx(slow.advantage, rel=1e-9, abs=1e-12)
    assert found.success == pytest.approx(slow.success, rel=1e-12)
    assert found.right == pytest.approx(breakpoints.right(mechanism, threat).sum(), rel=1e-7)


def test_equal_steps_are_for_nothing_else() -> None:
    uniform = Threat.reconstruction(Prior.uniform(10), within=2)
    assert equal_steps(Laplace(range(10), 1.0), uniform) is not None
    for mechanism in (
        Gaussian(range(10), 1.0),
        Laplace(range(10), 1.0, interval=(0, 9)),
        Laplace([0, 1, 2, 3, 4, 5, 6, 7, 8, 9.001], 1.0),
        Laplace([1, 0, 2, 3, 4, 5, 6, 7, 8, 9], 1.0),
    ):
        assert equal_steps(mechanism, uniform) is None
    for threat in (
        Threat.reconstruction(Prior.zipf(10), within=2),
        Threat.reconstruction(Prior.uniform(10), within=5),
        Threat(Prior.uniform(10)),
        Threat(Prior.uniform(10, [0, 1, 2, 3, 4, 5, 6, 7, 8, 20]), success=Line(2)),
    ):
        assert equal_steps(Laplace(range(10), 1.0), threat) is None


def test_near_guesses_among_a_hundred_thousand_records_take_no_time() -> None:
    """Far from the ends every output is like every other: the advantage is nearly that of a window of a continuum."""
    size, within = 100_000, 100
    started = time.monotonic()
    risk = assess(Laplace(range(size), 1.0), Threat.reconstruction(Prior.uniform(size), within=within))
    assert risk.exact
    assert risk.sentence()
    assert time.monotonic() - started < 10
    assert risk.advantage == pytest.approx(0.0010025, abs=1e-7)


def test_what_would_take_hours_is_refused_so_that_it_is_estimated() -> None:
    size = 100_000
    with pytest.raises(TooLargeError, match="in reach of one output"):
        breakpoints.partition(
            Gaussian(range(size), size / 3), Threat.reconstruction(Prior.uniform(size), within=5), penalise=True
        )
