"""Tables from noisy marginals: networks, candidates, attacks and bounds against everything written out."""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from dprisk.cli.commands import command
from dprisk.datasets import CodedTable
from dprisk.errors import InputFileError, ParameterError, PriorError, TooLargeError
from dprisk.population.beliefs import beliefs_after
from dprisk.population.candidates import Candidates, candidates
from dprisk.population.marginals import NoisyMarginals, groups_of, noise_for, publish
from dprisk.population.networks import Network
from dprisk.population.rebuilding import Rebuilt, rebuild
from dprisk.population.relaxed import _Fit, onto_distributions, relaxed_projection, symmetric_polynomial
from dprisk.types import FloatArray, IntArray

SIZES = (2, 3, 2, 4)
UNIVERSE = np.array(list(itertools.product(*map(range, SIZES))))


def correlated(people: int, seed: int) -> IntArray:
    """Rows whose later columns depend on the earlier ones."""
    rng = np.random.default_rng(seed)
    first = rng.integers(2, size=people)
    second = np.where(rng.random(people) < 0.7, first, 2)
    third = (first + (rng.random(people) < 0.2)) % 2
    fourth = np.where(rng.random(people) < 0.6, second + third, rng.integers(4, size=people))
    return np.stack([first, second, third, np.minimum(fourth, 3)], axis=1)


def network(seed: int = 0, parents: int = 2) -> Network:
    return Network.fit(correlated(200, seed), SIZES, parents)


def chances(law: Network) -> Callable[[IntArray], FloatArray]:
    return lambda rows: np.exp(law.log_probability(rows))


# --- networks ---


@given(st.integers(0, 10_000), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_the_chances_of_all_rows_sum_to_one(seed: int, parents: int) -> None:
    law = network(seed, parents)
    assert chances(law)(UNIVERSE).sum() == pytest.approx(1)
    assert max(map(len, law.parents)) <= parents


@pytest.mark.slow
def test_with_one_parent_no_tree_explains_more() -> None:
    """Chow and Liu: every tree on four columns tried; of enough rows each edge pays for itself."""
    rows = correlated(20_000, 1)

    def entropy(columns: tuple[int, ...]) -> float:
        shares = np.unique(rows[:, columns], axis=0, return_counts=True)[1] / len(rows)
        return float(-(shares * np.log(shares)).sum())

    def explained(edges: tuple[tuple[int, int], ...]) -> float:
        return sum(entropy((a,)) + entropy((b,)) - entropy((a, b)) for a, b in edges)

    def is_tree(edges: tuple[tuple[int, int], ...]) -> bool:
        reached = {0}
        for _ in range(4):
            reached |= {c for edge in edges for c in edge if reached & set(edge)}
        return len(reached) == 4

    pairs = list(itertools.combinations(range(4), 2))
    best = max(explained(edges) for edges in itertools.combinations(pairs, 3) if is_tree(edges))
    law = Network.fit(rows, SIZES, parents=1)
    found = tuple((parents[0], column) for column, parents in enumerate(law.parents) if parents)
    assert explained(found) == pytest.approx(best)


def test_more_parents_explain_more() -> None:
    rows = correlated(5000, 2)
    by_parents = [Network.fit(rows, SIZES, parents).log_probability(rows).mean() for parents in (1, 2)]
    assert by_parents[1] > by_parents[0] + 0.01


def test_rows_are_drawn_with_their_chances() -> None:
    law, people = network(), 40_000
    drawn = law.draw(people, np.random.default_rng(0))
    found = np.bincount(np.ravel_multi_index(tuple(drawn.T), SIZES), minlength=len(UNIVERSE)) / people
    expected = chances(law)(UNIVERSE)
    assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / people) + 1e-9)


def test_what_no_network_is_fitted_to_is_refused() -> None:
    with pytest.raises(ParameterError, match="rows of 4 codes"):
        Network.fit(np.zeros((3, 2), dtype=int), SIZES)
    with pytest.raises(ParameterError, match="below its column's size"):
        Network.fit(np.full((3, 4), 2), SIZES)
    with pytest.raises(ParameterError, match="parents must be"):
        Network.fit(correlated(10, 0), SIZES, parents=0)


# --- candidates ---


@given(st.integers(0, 10_000), st.sets(st.integers(0, 3), min_size=1), st.integers(1, 60), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_a_network_lists_the_likeliest_completions_with_their_exact_chances(
    seed: int, unknown: set[int], most: int, parents: int
) -> None:
    law = network(seed, parents)
    rows = law.draw(5, np.random.default_rng(seed))
    listed = candidates(law, rows, SIZES, sorted(unknown), most)
    everything = candidates(chances(law), rows, SIZES, sorted(unknown))
    kept = listed.prior.shape[1]
    assert kept == min(most, everything.prior.shape[1])
    np.testing.assert_allclose(listed.prior, -np.sort(-everything.prior, axis=1)[:, :kept], rtol=1e-9)
    joint = chances(law)(listed.rows.reshape(-1, 4)).reshape(5, kept)
    known = [c for c in range(4) if c not in unknown]
    for record in range(5):
        same = (UNIVERSE[:, known] == rows[record, known]).all(axis=1)
        np.testing.assert_allclose(listed.prior[record], joint[record] / chances(law)(UNIVERSE[same]).sum(), rtol=1e-9)
        assert len(np.unique(listed.rows[record], axis=0)) == kept
        assert np.all(listed.rows[record][:, known] == rows[record, known])


def test_draws_from_the_rest_stand_for_it() -> None:
    """Weights sum to 1; with many lists together, each row that is not listed gets its chance on average."""
    law = network(2)
    rows = np.repeat(law.draw(1, np.random.default_rng(1)), 400, axis=0)
    unknown = [1, 2, 3]
    listed = candidates(law, rows, SIZES, unknown, 8, np.random.default_rng(2))
    likeliest = candidates(law, rows, SIZES, unknown, 8)
    np.testing.assert_array_equal(listed.rows[:, :8], likeliest.rows)
    drawn_some = (listed.weight[:, 8:] > 0).any(axis=1)
    assert drawn_some.mean() > 0.5
    np.testing.assert_allclose(listed.weight[drawn_some].sum(axis=1), 1)
    everything = candidates(chances(law), rows[:1], SIZES, unknown)
    codes = np.ravel_multi_index(tuple(np.moveaxis(listed.rows, 2, 0)), SIZES)
    for row, expected in zip(everything.rows[0], everything.prior[0], strict=True):
        same = codes == np.ravel_multi_index(tuple(row), SIZES)
        np.testing.assert_allclose(listed.prior[same & (listed.weight > 0)], expected, rtol=1e-9)
        if expected < likeliest.prior.min():
            stood_for = (listed.weight * same).sum(axis=1)[drawn_some]
            error = stood_for.std() / math.sqrt(len(stood_for))
            assert stood_for.mean() == pytest.approx(expected, abs=4 * error + 1e-3)


@pytest.mark.slow
def test_beliefs_from_some_candidates_are_those_from_all() -> None:
    """Strong noise, as where candidates are too many to list. Without draws the rest is taken to be impossible."""
    law, rng = network(5), np.random.default_rng(6)
    rows = law.draw(3, rng)
    published = publish(rows, SIZES, [1, 3], 2, 5.0, rng)
    exact = beliefs_after(published, candidates(law, rows, SIZES, [1, 3], 12), rng, sweeps=600, chains=8)[:, :4]
    without = beliefs_after(published, candidates(law, rows, SIZES, [1, 3], 4), rng, sweeps=600, chains=8)
    lists = [candidates(law, rows, SIZES, [1, 3], 4, np.random.default_rng(seed)) for seed in range(600)]
    lists = [some for some in lists if some.weight.sum(axis=1).min() > 0.999]  # where something was drawn for everybody
    assert len(lists) >= 10
    found = [beliefs_after(published, some, rng, sweeps=60, chains=4)[:, :4] for some in lists]
    np.testing.assert_allclose(np.mean(found, axis=0), exact, atol=0.02)
    assert np.abs(without - exact).max() > 0.05


def test_a_guess_within_a_distance_is_the_heaviest_ball() -> None:
    law = network()
    rows = law.draw(6, np.random.default_rng(3))
    listed = candidates(law, rows, SIZES, [3], 10)
    guesses, masses = listed.best(listed.prior, within=1)
    for record in range(6):
        by_value = {int(row[3]): p for row, p in zip(listed.rows[record], listed.prior[record], strict=True)}
        balls = {g: sum(p for z, p in by_value.items() if abs(z - g) <= 1) for g in range(4)}
        assert masses[record] == pytest.approx(max(balls.values()))
        assert balls[int(listed.rows[record, guesses[record], 3])] == pytest.approx(max(balls.values()))


def test_priors_that_are_none_are_refused() -> None:
    rows = correlated(3, 0)
    with pytest.raises(PriorError, match="chance of at least 0"):
        candidates(lambda given: -np.ones(len(given)), rows, SIZES, [1])
    with pytest.raises(TooLargeError, match="give a Network"):
        candidates(lambda given: np.ones(len(given)), np.zeros((1, 2), dtype=int), (200, 200), [0, 1])
    with pytest.raises(ParameterError, match="at least one column"):
        candidates(network(), rows, SIZES, [])
    few = candidates(network(), rows, SIZES, [0, 1, 2, 3], 5)
    with pytest.raises(ParameterError, match="fewer columns"):
        few.best(few.prior, within=1)


# --- marginals ---


def test_marginals_are_counts_and_their_sensitivity_is_root_two_each() -> None:
    rows = correlated(30, 4)
    other = rows.copy()
    other[0] = (rows[0] + 1) % np.array(SIZES)  # a row with no value in common
    rng = np.random.default_rng(0)
    one, two = (publish(data, SIZES, [0, 3], 2, 1e-9, rng) for data in (rows, other))
    assert one.groups == tuple(group for group in itertools.combinations(range(4), 2) if set(group) & {0, 3})
    for group, counts in zip(one.groups, one.counts, strict=True):
        for cell in itertools.product(*(range(SIZES[c]) for c in group)):
            assert counts[cell] == pytest.approx((rows[:, group] == cell).all(axis=1).sum(), abs=1e-6)
    moved = math.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(one.counts, two.counts, strict=True)))
    assert moved == pytest.approx(math.sqrt(2 * len(one.groups)), abs=1e-6)


def test_the_noise_is_that_of_all_marginals_together() -> None:
    """Swanberg et al., section 6.1: 105 compositions at epsilon 1, 274 at epsilon 3."""
    sixteen = (2,) * 16
    assert len(groups_of(sixteen, [9], 3)) == 105
    assert len(groups_of(sixteen, [1, 2, 3], 3)) == 274
    assert noise_for(1, 1e-5, 105) == pytest.approx(54.06, abs=0.01)
    assert noise_for(3, 1e-5, 274) == pytest.approx(32.55, abs=0.01)
    with pytest.raises(ParameterError, match="at most the 4 there are"):
        groups_of(SIZES, [0], 5)
    with pytest.raises(ParameterError, match="lower `ways`"):
        groups_of((1000,) * 4, [0], 3)


# --- the prior-aware attack ---


def posterior_by_hand(published: NoisyMarginals, listed: Candidates) -> FloatArray:
    """For each record the chances of its candidates: every table written out, its counts made, its density taken."""
    people, width = listed.prior.shape
    found = np.zeros((people, width))
    for choice in itertools.product(range(width), repeat=people):
        table = listed.rows[range(people), choice]
        distance = 0.0
        for group, counts in zip(published.groups, published.counts, strict=True):
            exact = np.zeros(counts.shape)
            for row in table:
                exact[tuple(row[list(group)])] += 1
            distance += ((counts - exact) ** 2).sum()
        weight = math.exp(-distance / (2 * published.noise**2)) * listed.weight[range(people), choice].prod()
        found[range(people), choice] += weight
    return np.asarray(found / found.sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unknown", "people", "ways", "noise"), [([3], 4, 2, 0.8), ([1, 2], 3, 3, 0.5), ([0, 3], 3, 2, 3.0)]
)
def test_beliefs_are_the_posterior(unknown: list[int], people: int, ways: int, noise: float) -> None:
    law, rng = network(5), np.random.default_rng(6)
    rows = law.draw(people, rng)
    published = publish(rows, SIZES, unknown, ways, noise, rng)
    listed = candidates(chances(law), rows, SIZES, unknown)
    expected = posterior_by_hand(published, listed)
    found = beliefs_after(published, listed, rng, sweeps=1500, chains=8)
    np.testing.assert_allclose(found, expected, atol=0.015)
    assert np.abs(expected - listed.prior).max() > 0.05  # the marginals did tell something


@pytest.mark.slow
def test_beliefs_are_the_posterior_where_lists_differ_and_some_stand_for_others() -> None:
    """Records that list other candidates, some drawn twice: exchanges are possible between some of them only."""
    law, rng = network(5), np.random.default_rng(7)
    rows = law.draw(3, rng)
    published = publish(rows, SIZES, [1, 3], 3, 1.0, rng)
    listed = candidates(law, rows, SIZES, [1, 3], 5, rng)
    codes = [row[weights > 0].tolist() for row, weights in zip(listed.secrets @ [4, 1], listed.weight, strict=True)]
    assert any(len(set(row)) < len(row) for row in codes)
    assert len({frozenset(row) for row in codes}) > 1
    assert len(set(codes[0]) & set(codes[1])) > 1
    found = beliefs_after(published, listed, rng, sweeps=1500, chains=8)
    own = np.divide(listed.prior, listed.weight, out=np.zeros_like(listed.prior), where=listed.weight > 0)
    np.testing.assert_allclose(found, own * posterior_by_hand(published, listed), atol=0.015)


@pytest.mark.parametrize("noise", [0.3, 0.15])
def test_people_whom_counts_cannot_tell_apart_exchange(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people alike in what is known, with other secrets: either may be who, and one alone cannot change.

    With the weaker noise sampling begins melted, too. (mu is 8 and 16.)
    """
    law, rng = network(5), np.random.default_rng(6)
    rows = np.array([[0, 0, 0, 1], [0, 0, 0, 3], [1, 2, 1, 3]])
    published = publish(rows, SIZES, [3], 3, noise, rng)
    listed = candidates(chances(law), rows, SIZES, [3])
    expected = posterior_by_hand(published, listed)
    assert 0.1 < expected[0, 1] < 0.9
    found = beliefs_after(published, listed, rng, start=rows)
    np.testing.assert_allclose(found, expected, atol=0.1)
    monkeypatch.setattr("dprisk.population.beliefs.ALONE", math.inf)
    stuck = beliefs_after(published, listed, rng, start=rows)
    assert np.abs(stuck - expected).max() > 0.2


def test_of_one_record_the_posterior_is_exact() -> None:
    law, rng = network(7), np.random.default_rng(8)
    rows = law.draw(1, rng)
    published = publish(rows, SIZES, [1, 3], 3, 2.0, rng)
    listed = candidates(chances(law), rows, SIZES, [1, 3])
    found = beliefs_after(published, listed, rng, sweeps=4, chains=1)
    np.testing.assert_allclose(found, posterior_by_hand(published, listed), rtol=1e-6)


# --- the relaxed projection ---


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=6))
def test_the_projection_is_the_nearest_distribution(point: list[float]) -> None:
    """It is point - t cut off at 0, for the one t that makes it sum to 1: found by bisection."""
    low, high = min(point) - 1.0, max(point)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(p - middle, 0) for p in point) > 1 else (low, middle)
    expected = [max(p - low, 0) for p in point]
    np.testing.assert_allclose(onto_distributions(np.array([point]))[0], expected, atol=1e-9)


def test_symmetric_polynomials_are_sums_over_groups() -> None:
    values = [np.array(float(v)) for v in (2, 3, 5, 7)]
    assert symmetric_polynomial(values, 2) == 2 * 3 + 2 * 5 + 2 * 7 + 3 * 5 + 3 * 7 + 5 * 7
    assert symmetric_polynomial(values, 0) == 1


@pytest.mark.parametrize(("unknown", "ways"), [((3,), 3), ((1, 2), 2), ((0, 1, 3), 3)])
def test_the_gradient_is_that_of_the_squared_distance(unknown: tuple[int, ...], ways: int) -> None:
    rng = np.random.default_rng(9)
    published = publish(correlated(6, 10), SIZES, unknown, ways, 1.0, rng)
    soft = [rng.dirichlet(np.ones(size), 6) for size in SIZES]

    def distance(parts: list[FloatArray]) -> float:
        total = 0.0
        for group, counts in zip(published.groups, published.counts, strict=True):
            made = np.zeros(counts.shape)
            for person in range(6):
                cells = np.array(1.0)
                for c in group:
                    cells = np.multiply.outer(cells, parts[c][person])
                made = made + cells
            total += float(((counts - made) ** 2).sum()) / 2
        return total

    slopes, step = _Fit(published, unknown, soft).gradient(soft), 1e-5
    for column in unknown:
        for person, value in itertools.product(range(6), range(SIZES[column])):
            ends = []
            for sign in (1, -1):
                moved = [part.copy() for part in soft]
                moved[column][person, value] += sign * step
                ends.append(distance(moved))
            assert slopes[column][person, value] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-5)


def test_without_noise_both_attacks_rebuild_what_the_marginals_tell() -> None:
    """Eight people who differ in what is known: exact three-way counts tell the fourth column of each."""
    rng = np.random.default_rng(11)
    rows = np.array([[*known, rng.integers(4)] for known in itertools.product(range(2), range(2), range(2))])
    sizes = (2, 2, 2, 4)
    published = publish(rows, sizes, [3], 3, 0.05, rng)
    listed = candidates(lambda given: np.ones(len(given)), rows, sizes, [3])
    guesses, _ = listed.best(beliefs_after(published, listed, rng))
    assert listed.right(guesses, rows).all()
    assert np.array_equal(relaxed_projection(published, listed, [300], 0.05)[0], rows)


# --- the whole game ---


def table(people: int = 400) -> CodedTable:
    return CodedTable(("a", "b", "c", "d"), tuple(tuple(range(size)) for size in SIZES), correlated(people, 13))


@pytest.mark.slow
def test_attacks_gain_from_the_marginals_and_stay_below_the_bounds() -> None:
    """Weak noise and few people, so that the marginals tell much of each; 60 tables of 6 people."""
    found = rebuild(table(), ["d"], epsilon=12.0, people=6, runs=60)
    assert found.prior_aware > found.prior_alone + 0.3
    assert found.prior_aware >= found.relaxed_projection - 0.1
    for place, level in enumerate((0.05, 0.5, 0.95)):
        best = np.array([max(tally.aware, tally.prior) for tally in found.tallies])
        broken = (best > found.most_by_table[:, place]).sum()
        assert broken <= 60 * (1 - level) + 3 * math.sqrt(60 * level * (1 - level))
    assert np.all(found.most_by_table <= found.most_by_table_and_pair)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer_and_progress_is_told() -> None:
    told: list[tuple[int, int, str]] = []
    asked: dict[str, Any] = {"people": 20, "runs": 2, "ways": 2, "seed": 3}
    one = rebuild(table(), ["b", "d"], 2.0, watch=lambda *now: told.append(now), **asked)
    two = rebuild(table(), ["d", "B"], 2.0, **asked)
    assert one.numbers == two.numbers
    assert [(done, planned) for done, planned, _ in told] == [(1, 2), (2, 2)]
    assert rebuild(table(), ["b", "d"], 2.0, **(asked | {"seed": 4})).numbers != one.numbers
    assert one.secret == ("b", "d")
    assert "all of b, d" in one.sentence()
    assert json.loads(json.dumps(one.to_dict()))["prior_aware"] == one.prior_aware


class Wrapped:
    """A prior of somebody else's making."""

    def __init__(self, law: Network) -> None:
        self.law = law

    def draw(self, people: int, rng: np.random.Generator) -> IntArray:
        return self.law.draw(people, rng)

    def log_probability(self, rows: IntArray) -> FloatArray:
        return self.law.log_probability(rows)


@pytest.mark.slow
def test_any_prior_will_do_and_a_distance_makes_it_easier() -> None:
    law = Network.fit(table().rows, SIZES)
    asked: dict[str, Any] = {"people": 20, "runs": 2}
    own, wrapped = (rebuild(table(), ["d"], 4.0, prior=prior, **asked) for prior in (law, Wrapped(law)))
    assert own.prior_alone == wrapped.prior_alone
    assert own.most == wrapped.most
    assert "nothing rules out" in rebuild(table(), ["d"], 40.0, prior=law, **asked).sentence()
    near: Rebuilt = rebuild(table(), ["d"], 4.0, prior=law, within=1, **asked)
    assert near.prior_alone > own.prior_alone
    assert near.most[0.95] >= own.most[0.95]


def test_questions_that_make_no_sense_get_a_sentence() -> None:
    with pytest.raises(InputFileError, match=r"no column 'x'; the table has a, b, c, d"):
        rebuild(table(), ["x"], 1.0)
    with pytest.raises(ParameterError, match="list of names"):
        rebuild(table(), "a", 1.0)
    with pytest.raises(ParameterError, match="named twice"):
        rebuild(table(), ["a", "A"], 1.0)
    with pytest.raises(ParameterError, match="All columns are secret"):
        rebuild(table(), ["a", "b", "c", "d"], 1.0)
    with pytest.raises(ParameterError, match="keeps no epsilon with delta 0"):
        rebuild(table(), ["a"], 1.0, delta=0.0)
    wide = CodedTable(("a", "b", "c"), (tuple(range(60)),) * 3, np.arange(60)[:, None] + np.zeros((1, 3), dtype=int))
    with pytest.raises(TooLargeError, match="3600 ways, too many to compare"):
        rebuild(wide, ["a", "b"], 1.0, ways=2, within=1)
    with pytest.raises(ParameterError, match="within must be at least 0"):
        rebuild(table(), ["a"], 1.0, within=-1)


# --- the command ---

HOSPITAL = "population marginals --data docs/examples/hospital.csv --columns Sex,Age,Diagnosis --secret Diagnosis"


def run(text: str) -> tuple[int, str]:
    ran = CliRunner().invoke(command(), text.split(), standalone_mode=False)
    return ran.exit_code, str(ran.exception) if ran.exception else ran.output


@pytest.mark.slow
def test_the_command_answers_in_words_json_and_csv() -> None:
    _, words = run(f"{HOSPITAL} --epsilon 1 --runs 1 --people 30")
    assert "prior-aware attack" in words
    _, text = run(f"{HOSPITAL} --epsilon 1 --runs 1 --people 30 --json")
    answer = json.loads(text)
    assert answer["sentence"] in words
    _, lines = run(f"{HOSPITAL} --epsilon 1 --runs 1 --people 30 --csv")
    assert f"most_95,,{answer['most_95']}" in lines


def test_the_command_says_where_data_sets_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPRISK_DATA", raising=False)
    assert "by --data-dir, or by $DPRISK_DATA" in run("population marginals --data acs16 --epsilon 1 --secret SEX")[1]
    monkeypatch.setenv("DPRISK_DATA", str(tmp_path))
    missing = run("population marginals --data acs16 --epsilon 1 --secret SEX")[1]
    assert "There is no acs16_discrete-domain.json" in missing
    assert "put it there" in missing
    assert "neither a file nor a data set" in run("population marginals --data acs --epsilon 1 --secret SEX")[1]


def test_the_command_reads_a_named_data_set(tmp_path: Path) -> None:
    folder = tmp_path / "sf-fire"
    folder.mkdir()
    (folder / "fire_discrete-domain.json").write_text(json.dumps({"sizes": dict(zip("abcd", SIZES, strict=True))}))
    rows = "\n".join(",".join(map(str, row)) for row in correlated(100, 14))
    (folder / "fire_discrete.csv").write_text(f"a,b,c,d\n{rows}\n")
    asked = f"population marginals --data fire --data-dir {tmp_path} --columns a,b,d --secret d --epsilon 1 --runs 1"
    assert "1 3-way marginals" in run(f"{asked} --people 10")[1]


def test_a_refusal_of_the_library_is_a_sentence() -> None:
    code, told = run(f"{HOSPITAL} --epsilon 1 --within -1")
    assert code != 0
    assert told == "--within must be at least 0, got -1"
    assert run(f"{HOSPITAL} --epsilon 1 --json --csv")[1] == "Choose one of --json and --csv."
