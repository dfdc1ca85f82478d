"""Audits from one run: certificates against definitions, every outcome counted out, and simulated audits."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import one_run as benchmark
from dprisk import DpriskError, Prior
from dprisk.auditing.certify.counts import Counts, certified_epsilon
from dprisk.cli.commands import command
from dprisk.population import OneRun, Targets, audit_one_run, choose_guesses, one_run
from dprisk.population.one_run import Guesses, best_moment_epsilon, counted_epsilon, log_evidence
from dprisk.types import FloatArray

OUTCOMES = st.lists(st.booleans(), min_size=1, max_size=60)


def guesses(right: list[bool], values: int = 2, canaries: int | None = None) -> Guesses:
    targets = Targets.uniform(canaries or len(right), values)
    return Guesses(np.array(right), targets.baselines[: len(right)], targets)


def best(run: Guesses, delta: float = 0.0) -> float:
    return best_moment_epsilon(run, 0.05, delta)[0]


def counted(run: Guesses, delta: float = 0.0) -> float:
    return counted_epsilon(run, 0.05, delta)


def evidence(right: list[bool], masses: list[float], epsilon: float) -> float:
    """The mean over the steps of the likelihood ratio of a larger epsilon, guess by guess."""

    def rate(eps: float, mass: float) -> float:
        return math.exp(eps) * mass / (1 + math.expm1(eps) * mass)

    total = 0.0
    for step, log_weight in zip(one_run.STEPS, one_run.LOG_WEIGHTS, strict=True):
        ratio = math.exp(log_weight)
        for held, mass in zip(right, masses, strict=True):
            one, other = rate(epsilon + step, mass), rate(epsilon, mass)
            ratio *= one / other if held else (1 - one) / (1 - other)
        total += ratio
    return total


@settings(max_examples=60)
@given(st.lists(st.booleans(), min_size=1, max_size=15), st.sampled_from([0.0, 0.4, 2.0]), st.booleans())
def test_the_evidence_is_what_its_definition_says(right: list[bool], epsilon: float, by_guess: bool) -> None:
    masses = [0.5, 0.1, 0.9, 0.01, 0.3] * 3
    run = Guesses(np.array(right), np.array(masses[: len(right)]), Targets([0.9] * len(right)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_run, "FEW_KAPPAS", 0 if by_guess else 16)
        if not run.successes:
            assert run.moments.size == 0
            return
        found = log_evidence(run, epsilon, epsilon, 0.05, 0.0) - math.log(0.05)
    for moment, log in zip(run.moments.tolist(), found.tolist(), strict=True):
        assert log == pytest.approx(math.log(evidence(right[:moment], masses[:moment], epsilon)), abs=1e-9)
    anywhere = max(evidence(right[:k], masses[:k], epsilon) for k in range(1, len(right) + 1))
    assert max(0.0, found.max()) == pytest.approx(max(0.0, math.log(anywhere)), abs=1e-9)  # no moment is missed


@pytest.mark.parametrize(("epsilon", "values"), [(0.0, 2), (1.0, 2), (1.0, 5)])
def test_the_evidence_is_fair_and_rarely_large_counted_out(epsilon: float, values: int) -> None:
    """Eight guesses, each right with beta: every outcome with its probability."""
    rate, mass = math.exp(epsilon) / (math.exp(epsilon) + values - 1), 1 / values
    mean, alarms = 0.0, {0.05: 0.0, 0.2: 0.0}
    for right in itertools.product([False, True], repeat=8):
        chance = math.prod(rate if held else 1 - rate for held in right)
        mean += chance * evidence(list(right), [mass] * 8, epsilon)
        for alpha in alarms:
            alarms[alpha] += chance * (best_moment_epsilon(guesses(list(right), values), alpha)[0] > epsilon)
    assert mean == pytest.approx(1.0, abs=1e-9)
    assert all(share <= alpha for alpha, share in alarms.items())
    assert alarms[0.2] > 0


@settings(max_examples=40)
@given(OUTCOMES, st.sampled_from([0.0, 1e-4]), st.data())
def test_one_more_right_guess_never_certifies_less(right: list[bool], delta: float, data: st.DataObject) -> None:
    better = list(right)
    better[data.draw(st.integers(0, len(right) - 1))] = True
    for certificate in (best, counted):
        assert certificate(guesses(better), delta) >= certificate(guesses(right), delta) - 1e-6


@given(st.integers(1, 300), st.integers(2, 20), st.data())
def test_counted_guesses_certify_what_independent_runs_would(count: int, values: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, count))
    ours = counted_epsilon(guesses([place < successes for place in range(count)], values), 0.05)
    assert ours == pytest.approx(certified_epsilon(Counts(count, count, successes, values), 0.05), abs=1e-6)


def test_delta_costs_and_costs_more_where_more_canaries_share_it() -> None:
    right = [True] * 90 + [False] * 10
    for certificate in (best, counted):
        free, small, large = (certificate(guesses(right), delta) for delta in (0.0, 1e-5, 1e-3))
        assert free > small > large > 0
        assert certificate(guesses(right, canaries=1000), 1e-5) < small
        assert certificate(guesses(right, canaries=1000), 0.5) == 0


def test_canaries_of_many_kinds_are_counted_with_their_own_chances() -> None:
    masses = np.array([0.5, 0.1] * 50)
    run = Guesses(np.arange(100) % 4 < 2, masses, Targets(masses, masses, masses))
    low = counted_epsilon(run, 0.05)
    assert counted_epsilon(Guesses(run.right, np.full(100, 0.5), run.canaries), 0.05) < low
    assert low < counted_epsilon(Guesses(run.right, np.full(100, 0.1), run.canaries), 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["randomised response, 10 values", "reveals with 1e-3, all at once", "the worst law, 2 values"]
)
def test_simulated_audits_are_wrong_as_rarely_as_alpha_says(name: str) -> None:
    (setting,) = (one for one in benchmark.settings() if one.name == name)
    found = benchmark.errors(setting, 600, seed=1)
    most = benchmark.ALPHA + 3 * math.sqrt(benchmark.ALPHA * (1 - benchmark.ALPHA) / 600)
    assert all(found[way] <= most for way in ("best moment", "all", "a tenth"))
    assert found["uncorrected"] > 3 * benchmark.ALPHA  # the maximum over numbers of guesses is no certificate


@pytest.mark.slow
def test_the_best_moment_certifies_more_than_counting_all() -> None:
    """Gaussian sums, 1000 canaries, mu = 1: about 1.67 against 0.70; many values certify more than two."""
    found = benchmark.medians(benchmark.sums(1.0, 1000), 2, 1000, 15)
    assert found["best moment"] > 1.4 > 0.9 > found["all"]
    two, many = (benchmark.medians(benchmark.choices(2.0, m, 500), m, 500, 15) for m in (2, 64))
    assert many["all"] > two["all"] + 0.5
    assert many["best moment"] > two["best moment"]


def test_scores_become_guesses_the_most_certain_first() -> None:
    run = OneRun.from_scores([0.2, 5.0, -3.0, 0.1, -0.1, 9.0], [0, 1, 0, 1, 0, 1])
    assert run.right.tolist() == [True, True, True, True, False, False]
    rare = OneRun.from_scores(np.arange(10.0), [False] * 9 + [True], prior=0.1)
    assert sorted(set(rare.masses.tolist())) == [0.1, 0.9]
    assert rare.right.all()
    with pytest.raises(DpriskError, match="one score and one membership a canary"):
        OneRun.from_scores([1.0, 2.0], [True])
    with pytest.raises(DpriskError, match="True or False"):
        OneRun.from_scores([1.0, 2.0], [3, 4])
    with pytest.raises(DpriskError, match="not a number"):
        OneRun.from_scores([1.0, math.nan], [True, False])


def test_a_score_that_tells_nothing_certifies_nothing_in_whatever_order_canaries_are_listed() -> None:
    """Everybody who was out is listed before everybody who was in, as files often are: in that order, 4.6 and more.

    Five runs by chance: one in twenty may be above 0, none far above.
    """
    inside = np.arange(1000) >= 500
    alike = OneRun.from_scores(np.zeros(1000), inside)
    saturated = OneRun.from_scores(np.where(np.arange(1000) % 2, np.inf, -np.inf), inside)
    one_value = OneRun.from_guesses(["a"] * 1000, ["a"] * 100 + ["b"] * 900, 10)
    nearest = OneRun.from_candidates(np.zeros((1000, 10)), np.arange(1000) // 100)
    drawn = np.isin(np.arange(1000), np.random.default_rng(0).permutation(1000)[:500])  # as many people draw members
    chosen = OneRun.from_guesses([True] * 1000, drawn.tolist(), 2)
    for run in (alike, saturated, one_value, nearest, chosen):
        for guesses in (None, 100, 1000):
            assert audit_one_run(run, guesses=guesses).epsilon_certified < 1


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("score,member\n1,1\n0,0\n", {"values": 10}, "tells who was in, so a canary has no values; drop .values."),
        ("guess,truth,values\na,a,2\n", {"prior": 0.9}, "tells guesses of values, each as likely as another; drop"),
        ("guess,truth,values\na,a,2\n", {"values": 10}, "has a column .values.: leave out"),
        ("guess,truth,values\na,a,2.7\n", {}, "row 2: .values. is 2.7; write a whole number of at least 2"),
        ("guess,truth,values\na,a,inf\n", {}, "row 2: .values. is inf; write a whole number of at least 2"),
        ("guess,truth,values\na,a,2\na,,2\n", {}, "row 3: .truth. is empty"),
        ("guess,truth\na,a\n", {}, "how many equally likely values"),
        ("guess,truth,certainty\na,a,nan\n", {"values": 2}, "A certainty is not a number"),
    ],
)
def test_files_of_canaries_that_contradict_what_is_said(
    content: str, options: dict[str, Any], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "canaries.csv"
    file.write_text(content)
    with pytest.raises(DpriskError, match=told):
        OneRun.from_csv(file, **options)


def test_one_canary_is_a_canary() -> None:
    one = OneRun.from_guesses(["a"], ["a"], 4)
    assert repr(one) == "OneRun(1 right of 1 guess about 1 canary)"
    told = audit_one_run(one)
    assert told.about == "One run with 1 canary"
    assert told.sentence().startswith("1 of the first 1 guess about 1 canary in one run was right.")


def test_canaries_with_less_than_two_values_are_refused() -> None:
    with pytest.raises(DpriskError, match="values must be a whole number of at least 2, got 0"):
        OneRun.counted(61, 100, 1000, values=0)


def test_guesses_of_values_with_priors_and_without() -> None:
    run = OneRun.from_guesses(
        ["a", None, "b", "z"], ["a", "b", "a", "a"], Prior({"a": 0.7, "b": 0.3}), [0.1, 9, 0.5, 8]
    )
    assert run.masses.tolist() == [0.3, 0.7]  # the most certain first; no guess, and one that cannot be, do not count
    assert run.right.tolist() == [False, True]
    assert run.canaries.people == 4
    several = OneRun.from_guesses([0, 1], [0, 1], [2, 4])
    assert sorted(several.masses.tolist()) == [0.25, 0.5]
    with pytest.raises(DpriskError, match="nothing to certify"):
        OneRun.from_guesses([None], ["a"], 2)


def test_a_mechanism_and_an_attack_are_run_once() -> None:
    seen: list[list[str]] = []

    def mechanism(values: list[str]) -> list[str]:
        seen.append(values)
        return values

    prior = Prior.uniform(4, ["n", "e", "s", "w"])
    run = OneRun.of(mechanism, lambda output: (output, range(len(output))), prior, canaries=50, seed=3)
    assert len(seen) == 1
    assert run.right.all()
    found = audit_one_run(run)
    assert found.guesses == 50
    assert found.epsilon_certified > 2
    with pytest.raises(DpriskError, match="a guess for each of the 50 canaries, it gave 1"):
        OneRun.of(mechanism, lambda _: ["n"], prior, canaries=50)


def test_a_pilot_tells_which_way_to_go() -> None:
    even = OneRun(np.arange(1000) % 4 > 0, np.full(1000, 0.5), Targets.members(1000))  # every guess as good as another
    assert choose_guesses(even) == 1000
    sharp = OneRun(np.append(np.ones(60, dtype=bool), np.arange(940) % 2 == 0), even.masses, even.canaries)
    assert choose_guesses(sharp) != 1000
    with pytest.raises(DpriskError, match="needs the guesses in their order"):
        choose_guesses(OneRun.counted(61, 100, 1000))


def test_scores_of_candidates() -> None:
    run = OneRun.from_candidates([[0.0, 1.0, 0.2], [5.0, 0.0, 0.0], [0.0, 0.1, 0.0]], [1, 0, 0])
    assert run.right.tolist() == [True, True, False]
    assert run.masses.tolist() == [1 / 3] * 3


def test_an_audit_in_numbers_in_words_and_as_a_picture() -> None:
    rng = np.random.default_rng(0)
    inside = rng.integers(0, 2, 300) == 1
    run = OneRun.from_scores(rng.normal(inside * 4.0, 1), inside)
    found = audit_one_run(run, claim=1.0, delta=1e-6)
    assert found.verdict == "violated"
    assert "breaks a promise of epsilon 1 at delta 1e-06 for adding or removing a record" in found.sentence()
    assert "If every canary was in or out by a coin of its own, the true epsilon" in found.sentence()
    assert "the first" in found.sentence()
    assert json.loads(json.dumps(found.to_dict()))["fixed_beforehand"] is False
    assert "certified" in found._repr_html_()
    read, fixed = found.picture().panels[0].curves
    assert read.y[-1] == pytest.approx(found.epsilon_certified)
    assert list(read.y) == sorted(read.y)
    assert max(fixed.y) > 0
    fixed_before = audit_one_run(run, claim=9.0, guesses=150)
    assert fixed_before.guesses == 150
    assert "consistent with epsilon 9, which is no proof of it" in fixed_before.sentence()
    with pytest.raises(DpriskError, match="the run has only 300"):
        audit_one_run(run, guesses=301)
    with pytest.raises(DpriskError, match=r"OneRun.from_scores"):
        audit_one_run([True, False])  # type: ignore[arg-type]
    only_counts = OneRun.counted(61, 100, 1000)
    assert audit_one_run(only_counts).counted == 100
    with pytest.raises(DpriskError, match="Only counts are known"):
        audit_one_run(only_counts, guesses=50)
    assert "drawn independently and the number of guesses was fixed" in audit_one_run(only_counts).sentence()
    nothing = audit_one_run(OneRun.counted(0, 10, 10))
    assert nothing.epsilon_certified == 0
    assert "at least" not in nothing.sentence()
    with pytest.raises(DpriskError, match="claim must be a finite number of at least 0, got -1"):
        audit_one_run(only_counts, claim=-1.0)


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = command().main(["population", *arguments], standalone_mode=False)
    return int(code or 0), capsys.readouterr().out


def scores(tmp_path: Path, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    inside = rng.integers(0, 2, 200)
    drawn: FloatArray = rng.normal(inside * 5.0, 1)
    file = tmp_path / "scores.csv"
    file.write_text("score,member\n" + "".join(f"{s},{m}\n" for s, m in zip(drawn, inside, strict=True)))
    return file


@pytest.mark.slow
def test_the_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    counts = ("audit", "--successes", "61", "--guesses", "100", "--targets", "1000", "--delta", "1e-5")
    code, printed = asked(capsys, *counts, "--prior", "0.5", "--json")
    assert (code, json.loads(printed)["successes"]) == (0, 61)
    code, printed = asked(capsys, "audit", "--scores", str(scores(tmp_path)), "--claim", "1")
    assert code == 1
    assert "breaks a promise" in printed
    people = tmp_path / "people.csv"
    people.write_text("baseline,people\n0.1,60\n0.3,40\n")
    picture = tmp_path / "risk.svg"
    code, printed = asked(
        capsys, "bound", "--targets", str(people), "--epsilon", "1", "--delta", "1e-5", "--out", str(picture)
    )
    assert code == 0
    assert "no attacker reconstructs more than" in printed
    assert picture.read_text().startswith("<?xml")
    _, printed = asked(capsys, "bound", "--people", "10", "--values", "4", "--mu", "0.5", "--csv")
    assert printed.startswith("what,record,value\nat_most,")
    _, more = asked(
        capsys, "bound", "--people", "10", "--baseline", "0.25", "--epsilon", "1", "--wrong-by", "0.1", "--json"
    )
    assert json.loads(more)["its_baseline"] == pytest.approx(0.35)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bound", "--people", "10", "--values", "4"], "--epsilon is missing"),
        (["bound", "--epsilon", "1"], "Give --targets FILE, or --people"),
        (["bound", "--epsilon", "1", "--people", "3"], "Give one of --values and --baseline"),
        (["bound", "--epsilon", "1", "--mu", "1", "--people", "3", "--values", "2"], "Give --mu, or --epsilon"),
        (["audit", "--successes", "3"], "--guesses is missing"),
        (["audit", "--successes", "3", "--guesses", "2", "--targets", "5"], "at most all are right"),
    ],
)
def test_a_command_that_cannot_be_answered_says_why(arguments: list[str], told: str) -> None:
    with pytest.raises(Exception, match=told.replace("-", ".")):
        command().main(["population", *arguments], standalone_mode=False)


def test_files_of_runs(tmp_path: Path) -> None:
    file = tmp_path / "guesses.csv"
    file.write_text("guess,truth,certainty\nflu,flu,1\n,cold,0\ncold,flu,2\n")
    run = OneRun.from_csv(file, values=3)
    assert run.right.tolist() == [False, True]
    with pytest.raises(DpriskError, match="how many equally likely values"):
        OneRun.from_csv(file)
    file.write_text("score,member\n1,maybe\n")
    with pytest.raises(DpriskError, match=r"row 2: .member. is 'maybe'; write 1 or 0"):
        OneRun.from_csv(file)
    file.write_text("a,b\n1,2\n")
    with pytest.raises(DpriskError, match=r"needs columns .score. and .member."):
        OneRun.from_csv(file)


def test_a_promise_for_adding_or_removing_a_record_bounds_less(capsys: pytest.CaptureFixture[str]) -> None:
    asked_for = ("bound", "--people", "50", "--baseline", "0.1", "--epsilon", "1", "--json")
    replaced, added = (
        json.loads(asked(capsys, *asked_for, "--relation", relation)[1])["at_most"]
        for relation in ("replace-one", "add-remove")
    )
    doubled = json.loads(asked(capsys, "bound", "--people", "50", "--baseline", "0.1", "--epsilon", "2", "--json")[1])
    assert replaced < added == doubled["at_most"]
