"""Many people at once: tails against exact arithmetic, bounds against every mechanism there is."""

import itertools
import math
import time
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprisk import ApproxDP, Density, DpriskError, GaussianDP, Line, Prior, PureDP, Threat
from dprisk.bounds.papers import rad_lemma_5_4
from dprisk.population import Targets, at_most, leakage, poisson_binomial
from dprisk.population.many_targets import corollary_3_4, theorem_3_2, theorem_3_3, theorem_3_5, with_delta
from dprisk.population.poisson_binomial import PoissonBinomial
from dprisk.population.secrets import LargestMasses, Zipf, frequencies, power_sum, prior_of_scores, sampling_error
from dprisk.population.strangers import attaxonomy_separation, match_somebody, singling_out
from dprisk.population.targets import posteriors
from dprisk.population.uniform import exact_chance, exact_law, mahloujifar_chance
from dprisk.types import BoolArray
from tests.naive import largest_chance

CHANCES = st.lists(st.sampled_from([0.0, 1e-12, 0.001, 0.1, 0.3, 0.5, 0.75, 0.999, 1.0]), min_size=1, max_size=12)


def exact_tails(chances: list[float]) -> list[Fraction]:
    """P(S >= k) for k = 0, ..., n, in rational numbers."""
    law = [Fraction(1)]
    for chance in map(Fraction, chances):
        law = [
            (law[k] if k < len(law) else 0) * (1 - chance) + (law[k - 1] if k else 0) * chance
            for k in range(len(law) + 1)
        ]
    return [sum(law[k:], Fraction(0)) for k in range(len(law))]


@given(CHANCES)
def test_tails_are_those_of_exact_arithmetic_rounded_up(chances: list[float]) -> None:
    law, exact = PoissonBinomial(chances), exact_tails(chances)
    for successes, tail in enumerate(exact):
        found = Fraction(law.at_least(successes))
        assert tail * (1 - Fraction(1, 10**15)) <= found <= tail * (1 + Fraction(1, 10**12))
    assert all(Fraction(told) >= tail for told, tail in zip(law.tails().tolist(), exact, strict=True))
    assert law.at_least(len(chances) + 1) == 0


@given(CHANCES, st.sampled_from([0.47, 0.043, 1.7e-3, 1.3e-9, 1.9e-40]))
def test_the_number_at_a_confidence_is_the_least(chances: list[float], alpha: float) -> None:
    tails = [*map(float, exact_tails(chances)), 0.0]
    assert PoissonBinomial(chances).most(alpha) == next(v for v in range(len(chances) + 1) if tails[v + 1] <= alpha)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1.0, 0.01, 1e-6])
def test_tails_of_two_hundred_trials_down_to_1e_300(spread: float) -> None:
    chances = np.random.default_rng(0).random(200) * spread
    with mpmath.workdps(60):
        law = [mpmath.mpf(1)]
        for chance in map(mpmath.mpf, chances.tolist()):
            law = [
                (law[k] if k < len(law) else 0) * (1 - chance) + (law[k - 1] if k else 0) * chance
                for k in range(len(law) + 1)
            ]
        seen = 0
        for successes in range(0, 201, 3):
            exact = mpmath.fsum(law[successes:])
            if exact > mpmath.mpf("1e-300"):
                ratio = mpmath.exp(PoissonBinomial(chances).log_at_least(successes)) / exact - 1
                assert -1e-18 <= ratio <= 1.5e-12
                seen += exact < mpmath.mpf("1e-50")
    assert seen >= 5


def test_laws_made_of_pieces_are_those_made_trial_by_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    chances = np.random.default_rng(1).random(3000) ** 3
    one_by_one = [PoissonBinomial(chances).log_at_least(v) for v in (700, 800, 900, 1500)]
    monkeypatch.setattr(poisson_binomial, "ONE_BY_ONE", 100)
    monkeypatch.setattr(poisson_binomial, "LEAF", 64)
    in_pieces = [PoissonBinomial(chances).log_at_least(v) for v in (700, 800, 900, 1500)]
    for plain, pieced in zip(one_by_one, in_pieces, strict=True):
        assert plain - 1e-10 <= pieced <= plain + 1e-6


@pytest.mark.slow
def test_tails_are_fast() -> None:
    rng = np.random.default_rng(0)
    for trials, seconds in ((100, 0.01), (100_000, 2.0)):
        chances, taken = rng.random(trials), []
        for _ in range(3):
            started = time.perf_counter()
            PoissonBinomial(chances).log_at_least(int(0.6 * trials))
            taken.append(time.perf_counter() - started)
        assert min(taken) < seconds


@given(CHANCES, st.sampled_from([0.0, 0.3, 2.0]), st.integers(1, 12))
def test_the_bound_rises_with_epsilon_with_priors_and_with_people(
    chances: list[float], epsilon: float, successes: int
) -> None:
    here = theorem_3_2(epsilon, Targets(chances), successes)
    slack = here + 1e-11
    assert theorem_3_2(epsilon + 0.1, Targets(chances), successes) >= here - 1e-11
    likelier = Targets(np.minimum(1.0, np.array(chances) * 1.1))
    assert theorem_3_2(epsilon, likelier, successes) >= here - 1e-11
    assert theorem_3_2(epsilon, Targets([*chances, 0.2]), successes) >= here - 1e-11
    assert theorem_3_2(epsilon, Targets(chances), successes + 1) <= slack


def hits(values: int, people: int, successes: int) -> BoolArray:
    """For every data set (rows) and guess of all records (columns): are so many of them right?"""
    sets = list(itertools.product(range(values), repeat=people))
    return np.array([[sum(map(int.__eq__, x, g)) >= successes for g in sets] for x in sets])


@pytest.mark.parametrize(("people", "values"), [(2, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (1.0, 0.0), (0.5, 0.05), (2.0, 0.01)])
def test_no_mechanism_beats_the_bounds_and_the_exact_one_is_attained(
    people: int, values: int, epsilon: float, delta: float
) -> None:
    targets, priors = Targets.uniform(people, values), np.full((people, values), 1 / values)
    for successes in range(1, people + 1):
        worst = largest_chance(priors, epsilon, delta, hits(values, people, successes))
        exact = exact_chance([(epsilon, delta)], values, successes, people)
        assert exact == pytest.approx(worst, abs=1e-6)
        bound = with_delta(epsilon, delta, targets, successes)
        assert worst - 1e-9 <= bound <= corollary_3_4(epsilon, delta, targets, successes) + 1e-9
        assert worst - 1e-6 <= mahloujifar_chance([(epsilon, delta)], values, successes, people)
        if delta == 0:
            assert math.exp(theorem_3_2(epsilon, targets, successes)) == pytest.approx(exact, abs=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.7, 2.0]), st.sampled_from([0.0, 0.02]), st.integers(1, 2))
def test_no_mechanism_beats_the_bounds_for_any_priors(seed: int, epsilon: float, delta: float, successes: int) -> None:
    priors = np.random.default_rng(seed).dirichlet(np.ones(3) / 2, size=2)
    targets = Targets.from_priors([Prior(row) for row in priors])
    worst = largest_chance(priors, epsilon, delta, hits(3, 2, successes))
    assert worst <= with_delta(epsilon, delta, targets, successes) + 1e-8
    found = at_most(ApproxDP(epsilon, delta), targets)
    assert worst <= found.chance_of(successes) + 1e-8
    alone = largest_chance(priors[:1], epsilon, delta, hits(3, 1, 1))
    assert alone <= found.chances[0] + 1e-8


def test_the_printed_theorem_3_5_is_not_a_bound() -> None:
    """Its proof takes the failures of a mechanism to be independent of its successes."""
    worst = largest_chance(np.full((2, 2), 0.5), 0.0, 0.01, hits(2, 2, 1))
    printed = theorem_3_5(0.0, 0.01, Targets.members(2), 1)
    assert worst == pytest.approx(0.7575)
    assert printed == pytest.approx(0.755)
    doubled = 2 * theorem_3_5(0.0, 0.01, Targets.members(3), 1) - 0.875
    assert doubled < largest_chance(np.full((3, 2), 0.5), 0.0, 0.01, hits(2, 3, 1)) - 0.001
    tail = math.exp(theorem_3_2(0.1, Targets.uniform(50, 10), 10))
    added = exact_chance([(0.1, 1e-5)], 10, 10, 50) - tail
    assert tail == pytest.approx(0.042, abs=5e-4)
    assert added == pytest.approx(1.28 * (theorem_3_5(0.1, 1e-5, Targets.uniform(50, 10), 10) - tail), rel=0.01)


def test_the_choice_of_the_largest_mass_is_what_correction_15_needs() -> None:
    """D1(a) = .6, D2(a) = 0, D1(c) = D2(c) = .25, one guess for both: c is right about both with 0.0625."""
    targets = Targets([0.6, 0.25])
    assert math.exp(theorem_3_2(0.0, targets, 2)) >= 0.0625


def test_a_law_that_attains_the_exact_chance_keeps_the_promise() -> None:
    epsilon, delta, values, guesses, wanted = 1.0, 1e-3, 4, 20, 12
    law = exact_law([(epsilon, delta)], values, wanted, guesses)
    rate, w = math.exp(epsilon), np.arange(guesses + 1)
    right, wrong = law * w / guesses, law * (guesses - w) / guesses / (values - 1)
    excess = np.maximum(right[1:] - rate * wrong[:-1], 0).sum() + np.maximum(wrong[:-1] - rate * right[1:], 0).sum()
    assert excess <= delta * (1 + 1e-6)
    assert law[wanted:].sum() == pytest.approx(exact_chance([(epsilon, delta)], values, wanted, guesses), abs=1e-7)


@given(st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([0.0, 1e-3, 0.1]), st.integers(2, 40))
def test_one_target_is_the_largest_success_on_one_record(epsilon: float, delta: float, values: int) -> None:
    alone = exact_chance([(epsilon, delta)], values, 1, 1)
    assert alone == pytest.approx((1 + rad_lemma_5_4(epsilon, delta, values)) / values, abs=1e-7)
    assert mahloujifar_chance([(epsilon, delta)], values, 1, 1) >= alone - 1e-9


def test_the_best_attack_on_randomised_response_stays_below_the_bound() -> None:
    """A prior-aware attack on forty people with priors of their own, in 4,000 data sets."""
    rng, epsilon, people, values = np.random.default_rng(2), 1.5, 40, 5
    priors = rng.dirichlet(np.ones(values), size=people)
    found = at_most(epsilon, Targets.from_priors([Prior(row) for row in priors]))
    honest = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    right = np.zeros(4000, dtype=int)
    for row in priors:
        truth = rng.choice(values, size=right.size, p=row)
        told = np.where(rng.random(right.size) < honest, truth, (truth + rng.integers(1, values, right.size)) % values)
        likelihood = np.full((values, values), (1 - honest) / (values - 1)) + np.eye(values) * (
            honest - (1 - honest) / (values - 1)
        )
        right += (row * likelihood).argmax(axis=1)[told] == truth
    for successes in range(10, people + 1, 3):
        share, most = (right >= successes).mean(), found.chance_of(successes)
        assert share <= most + 3 * math.sqrt(most * (1 - most) / right.size) + 1e-12
    assert right.mean() > found.targets.expected + 3  # the attack does gain


def test_guesses_at_some_targets_only_have_more_delta_to_spend() -> None:
    one = np.array(
        [[x[place] == value for place in (0, 1) for value in (0, 1)] for x in itertools.product((0, 1), repeat=2)]
    )
    worst = largest_chance(np.full((2, 2), 0.5), 0.5, 0.02, one)
    assert exact_chance([(0.5, 0.02)], 2, 1, 1, targets=2) == pytest.approx(worst, abs=1e-7)
    few = exact_chance([(1.0, 1e-3)], 2, 9, 10, targets=100)
    assert exact_chance([(1.0, 1e-3)], 2, 9, 10) < few == pytest.approx(exact_chance([(1.0, 1e-2)], 2, 9, 10))


def test_theorem_3_3_with_no_failures_is_theorem_3_2() -> None:
    targets = Targets([0.1, 0.4, 0.4])
    assert theorem_3_3(1.0, targets, 2, np.array([1.0])) == pytest.approx(math.exp(theorem_3_2(1.0, targets, 2)))
    half = theorem_3_3(1.0, targets, 2, np.array([0.5, 0.5]))
    tails = PoissonBinomial(posteriors(1.0, targets.baselines)).tails()
    assert half == pytest.approx((tails[2] + tails[1]) / 2)


def test_a_curve_says_more_than_its_pairs() -> None:
    """The exact program is below each pair alone, and below the bound of Mahloujifar et al."""
    found = at_most(GaussianDP(1.0), Targets.members(100))
    by_pairs = min(with_delta(epsilon, delta, found.targets, 80) for epsilon, delta in found.pairs)
    ours, theirs = found.chance_of(80), mahloujifar_chance(found.pairs[::3], 2, 80, 100)
    assert found.at_most < 95
    assert found.expected == pytest.approx(69.15, abs=0.01)  # 100 (1 + TV)/2
    assert ours < min(theirs, by_pairs)


def test_at_most_in_numbers_in_words_and_as_a_picture() -> None:
    found = at_most(ApproxDP(1.0, 1e-5), Targets([0.1] * 60 + [0.3] * 40, labels=range(100)))
    assert found.without_release < found.at_most < 100
    assert found.chance_of(found.at_most + 1) <= 0.05 < found.chance_of(found.at_most)
    assert f"no attacker reconstructs more than {found.at_most} of these 100 records (95 %" in found.sentence()
    assert found.numbers["its_baseline"] == 0.3  # nearer to 1/(1 + e^(1/2)), where the gain is largest
    assert len(found.of_records()) == 300
    assert "reconstructed" in found._repr_html_()
    after, before = found.picture().panels[0].curves
    assert all(one >= two for one, two in zip(after.y, before.y, strict=True))
    assert found.log_chance_of(101) == -math.inf
    assert at_most(PureDP(0.5), Targets([0.2] * 300)).log_chance_of(300) == pytest.approx(
        300 * math.log(0.2919), rel=1e-3
    )


def test_everything_may_be_reconstructed_where_nothing_rules_it_out() -> None:
    found = at_most(ApproxDP(1.0, 0.2), Targets.uniform(10, 3))
    assert (
        "nothing rules out, at 95 % confidence, that all of these 10"
        in at_most(ApproxDP(30.0), Targets([0.5] * 10)).sentence()
    )
    assert found.at_most <= 10


def test_targets_of_a_table_of_files_and_of_priors(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("label,values,people\nadults,10,3\nchildren,4,1\n")
    targets = Targets.from_csv(file)
    assert targets.baselines.tolist() == [0.1, 0.1, 0.1, 0.25]
    assert targets.labels == ("adults", "adults", "adults", "children")
    table = {"sex": ["f", "f", "m", "m"], "job": ["cook", "nurse", "cook", "cook"]}
    assert Targets.from_table(table, ["sex"], "job").baselines.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert Targets.from_table(table, [], ["sex", "job"]).baselines.tolist() == [0.5] * 4
    assert Targets.from_priors([[0.5, 0.3, 0.2]], tries=2).baselines.tolist() == [0.8]
    assert Targets.uniform(5, 10).values == 10
    assert Targets.uniform(5, 10, tries=2).values is None
    assert Targets.members(3, 0.1).smallest.tolist() == [0.1] * 3


def test_targets_under_a_threat() -> None:
    table = {"sex": ["f", "f", "m", "m"], "job": ["cook", "nurse", "cook", "cook"]}
    threat = Threat.attributes(table, known=["sex"], secret=["job"])
    rows = list(zip(table["sex"], table["job"], strict=True))
    assert (
        Targets.under(threat, rows).baselines.tolist() == Targets.from_table(table, ["sex"], "job").baselines.tolist()
    )
    near = Targets.under(Threat(Prior([0.1, 0.2, 0.3, 0.4]), success=Line(1)), 3)
    assert near.baselines.tolist() == pytest.approx([0.9] * 3)
    exact = Targets.under(Threat(Prior([0.5, 0.3, 0.2]), knows=[0, 0, 1]), [0, 1, 2])
    assert exact.baselines.tolist() == pytest.approx([0.625, 0.625, 1.0])
    assert exact.smallest.tolist() == pytest.approx([0.375, 0.375, 1.0])
    assert Targets.under(Threat.reconstruction(Density.uniform(0, 1), within=0.1), 2).expected == pytest.approx(0.4)
    with pytest.raises(DpriskError, match="give their records"):
        Targets.under(threat, 4)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("people\n3\n", "exactly one of the columns `baseline` and `values`"),
        ("baseline\n1.5\n", "row 2: `baseline` is 1.5; it is a chance, between 0 and 1"),
        ("baseline,people\n0.5,0\n", "row 2: `people` is 0; write a whole number"),
        ("values\n0\n", "row 2: `values` is 0; write a whole number of at least 1"),
        ("values\n2.5\n", "row 2: `values` is 2.5; write a whole number"),
        ("values\n4\nnan\n", "row 3: `values` is nan; write a whole number"),
        ("baseline,people\n0.5,1e30\n", "people, and at most 100,000,000 can be told of; take fewer"),
        ("baseline,people\n0.5,inf\n", "row 2: `people` is inf; write a whole number"),
    ],
)
def test_files_of_people_that_cannot_be(content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text(content)
    with pytest.raises(DpriskError, match=told.replace("`", ".")):
        Targets.from_csv(file)


def test_a_wrong_prior_costs_what_it_is_off() -> None:
    targets = Targets.uniform(100, 10)
    assert targets.with_wrong_priors(0.05).baselines[0] == pytest.approx(0.15)
    sure, unsure = (at_most(1.0, one).at_most for one in (targets, targets.with_wrong_priors(0.05)))
    assert unsure > sure
    assert at_most(1.0, Targets([0.15] * 100)).at_most == unsure


def test_a_prior_that_is_off_may_have_values_that_were_thought_impossible() -> None:
    """Thought (1/2, 1/2), in truth (0.49, 0.49, 0.02): what delta may add counts a guess of the third."""
    true = Targets.from_priors([[0.49, 0.49, 0.02]] * 10)
    allowed = Targets.from_priors([[0.5, 0.5]] * 10).with_wrong_priors(0.02)
    assert np.all(allowed.excesses(3.0, 1e-3) >= true.excesses(3.0, 1e-3))


def test_no_more_are_expected_than_there_are_and_the_release_is_not_made_to_look_better() -> None:
    surely, thousand = at_most(50.0, Targets([0.5] * 10)), at_most(1.0, Targets.uniform(1000, 10))
    assert surely.expected == 10
    told = {name: (value, meaning) for name, value, meaning in thousand.rows}
    assert told["on average"][1] == "100 without the release"


def test_frequencies_of_a_sample_are_off_by_no_more_than_told() -> None:
    rng, truth = np.random.default_rng(0), np.array([0.5, 0.2, 0.2, 0.1])
    off = np.abs(rng.multinomial(500, truth, size=2000) / 500 - truth).max(axis=1)
    assert (off > sampling_error(500)).mean() <= 0.05


def test_zipf_over_a_billion_has_the_corrected_numbers() -> None:
    """Correction 12: the printed pair belongs to the exponent 1.2."""
    for exponent, mass, advantage, epsilon in ((1.1, 0.10723, 0.156, 0.399), (1.2, 0.18141, 0.238, 0.2547)):
        top = Zipf(10**9, exponent).heaviest()
        assert top == pytest.approx(mass, abs=5e-6)
        assert leakage.generalised_advantage(leakage.posterior(1.0, top), top) == pytest.approx(advantage, abs=5e-4)
        assert leakage.epsilon_to_protect(top, 0.05) == pytest.approx(epsilon, abs=5e-4)
    assert leakage.epsilon_to_protect(1e-9, 0.05) == pytest.approx(17.78, abs=5e-3)
    assert Targets.from_priors([Zipf(10**9, 1.1)], tries=3).baselines[0] == pytest.approx(
        0.10723 * (1 + 2**-1.1 + 3**-1.1), abs=1e-5
    )


@given(st.sampled_from([1, 7, 10_000, 10_001, 54_321]), st.floats(0, 4))
def test_power_sums_beyond_the_listed_terms(count: int, exponent: float) -> None:
    assert power_sum(count, exponent) == pytest.approx(
        math.fsum((np.arange(1, count + 1, dtype=float) ** -exponent).tolist()), rel=1e-13
    )


def test_largest_masses_are_enough() -> None:
    known = LargestMasses([0.2, 0.1])
    assert (known.heaviest(1), known.heaviest(2), known.heaviest(4)) == pytest.approx((0.2, 0.3, 0.5))
    assert Targets.from_priors([known]).baselines.tolist() == [0.2]
    with pytest.raises(DpriskError, match="likeliest first"):
        LargestMasses([0.1, 0.2])
    with pytest.raises(DpriskError, match="add up to at most 1"):
        LargestMasses([0.9, 0.2])


def test_priors_from_frequency_files_and_scores(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("rank,name,percent,sex\n1,MARY,3,F\n2,LEE,1,F\n3,LEE,1,M\n")
    assert frequencies(file).to_dict() == pytest.approx({"MARY": 0.6, "LEE": 0.4})
    file.write_text("pin,leak_count\n0000,3\n1234,1\n")
    assert frequencies(file).to_dict() == pytest.approx({"0000": 0.75, "1234": 0.25})
    assert frequencies(file, "pin", "leak_count").labels == ("0000", "1234")
    file.write_text("pin,times\n0000,3\n")
    with pytest.raises(DpriskError, match="has none of"):
        frequencies(file)
    prior = prior_of_scores(["a", "b"], {"a": -1000.0, "b": -1001.0}.__getitem__)
    assert prior.weights.tolist() == pytest.approx([0.7310586, 0.2689414])
    with pytest.raises(DpriskError, match="needs a score"):
        prior_of_scores(["a"], lambda _: math.nan)


def test_the_frameworks_side_by_side() -> None:
    for prior in (1e-9, 0.01, 0.3, 0.9):
        told = leakage.forms(1.0, prior, 1e-5)
        assert told["posterior"] <= told["narcissus"] == told["rero"]
    assert math.e / (math.e + 2) == pytest.approx(0.576, abs=5e-4)  # printed in section 4.2 (correction 13)
    assert leakage.forms(1.0, 0.5)["posterior"] == pytest.approx(0.731, abs=5e-4)


def test_one_guess_about_many_strangers() -> None:
    found = match_somebody(1.0, 0.001, 100)
    for delta in (0.0, 1e-6, 1e-3):
        named = with_delta(1.0, delta, Targets(np.full(100, 0.001)), 1)
        assert match_somebody(ApproxDP(1.0, delta), 0.001, 100).somebody == pytest.approx(named, rel=1e-9)
    assert match_somebody(ApproxDP(1.0, 1e-13), 1e-12, 10**10).somebody == pytest.approx(0.0268, abs=2e-3)
    assert found.somebody == pytest.approx(1 - (1 - leakage.posterior(1.0, 0.001)) ** 100)
    assert found.somebody < found.published()["somebody"] == pytest.approx(0.1 * math.e)
    assert found.given_one < found.published()["given_one"]
    assert found.somebody_without == pytest.approx(1 - 0.999**100)
    assert match_somebody(ApproxDP(1.0, 1e-6), 0.001, 100).somebody > found.somebody
    assert match_somebody(GaussianDP(0.5), 0.001, 100).published() == {"somebody": 1.0, "given_one": 1.0}
    assert found.somebody_without < match_somebody(GaussianDP(0.5), 0.001, 100).somebody < 1
    assert "singled out" in found._repr_html_()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.02)])
def test_no_mechanism_singles_anybody_out_more_often(epsilon: float, delta: float) -> None:
    """Two records out of four, the property of being a given one; and matching any of them."""
    sets = list(itertools.product(range(4), repeat=2))
    times = np.array([[x.count(g) for g in range(4)] for x in sets])
    worst = largest_chance(np.full((2, 4), 0.25), epsilon, delta, times == 1)
    assert worst <= singling_out(epsilon, 0.25, 2, delta) + 1e-9
    some = largest_chance(np.full((2, 4), 0.25), epsilon, delta, times >= 1)
    assert some <= match_somebody(ApproxDP(epsilon, delta), 0.25, 2).somebody + 1e-9
    if epsilon == delta == 0:
        assert singling_out(0.0, 0.25, 2) == pytest.approx(2 * 0.25 * 0.75)


def test_the_separation_of_attaxonomy_counted_out() -> None:
    """Theorem 4.12 for three people and two bits, data set by data set."""
    people, values, paper, best = 3, 4, 0.0, 0.0
    told: dict[object, list[tuple[int, ...]]] = {}
    for x in itertools.product(range(values), repeat=people):
        odd = [value for value in x if value]
        told.setdefault(odd[0] if len(odd) == 1 else 0 if not odd else None, []).append(x)
    for output, sets in told.items():
        scores = [sum(x.count(guess) for x in sets) / people / values**people for guess in range(values)]
        paper += scores[output] if isinstance(output, int) else scores[1]
        best += max(scores)
    assert attaxonomy_separation(people, 2) == pytest.approx((paper, best))
