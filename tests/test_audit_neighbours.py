"""Pairs of neighbouring inputs, screening among many, and what witnesses say."""

from __future__ import annotations

import math
from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import GRR, Prior, Threat
from dprisk.auditing import Look, Neighbours, as_target, audit
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.code.randomness import block_generator
from dprisk.auditing.evidence.entries import Entry, entries
from dprisk.auditing.evidence.fitted import Bins, TwoColumns, coarse
from dprisk.auditing.evidence.grids import LowBits
from dprisk.auditing.evidence.layouts import Layout
from dprisk.auditing.evidence.portfolio import Portfolio
from dprisk.auditing.evidence.rules import Past
from dprisk.auditing.evidence.screening import busiest, clearest_ratio, screened, unlike_each_other, unlike_the_rest
from dprisk.auditing.evidence.suspects import Wanted, pilot_past
from dprisk.auditing.evidence.views import Seen, Value, form_of
from dprisk.errors import DpriskError
from dprisk.testing import assert_private


def noisy_max(answers: list[float], rng: np.random.Generator) -> int:
    return int(np.argmax(answers + rng.laplace(scale=2.0, size=len(answers))))


def quiet_max(answers: list[float], rng: np.random.Generator) -> int:
    return int(np.argmax(answers + rng.laplace(scale=0.5, size=len(answers))))


# --- which inputs ---


def test_every_ready_pair_of_queries_differs_by_at_most_one_in_each_answer() -> None:
    for size in (1, 2, 5, 8):
        some = Neighbours.queries(size, level=3)
        for one, two in some.pairs:
            assert np.abs(np.subtract(some.inputs[one], some.inputs[two])).max() == 1


@pytest.mark.parametrize(("relation", "moved", "people"), [("replace-one", 2, 0), ("add-remove", 1, 1)])
def test_ready_counts_differ_by_one_person(relation: Any, moved: int, people: int) -> None:
    some = Neighbours.counts(4, relation)
    for one, two in some.pairs:
        step = np.subtract(some.inputs[one], some.inputs[two])
        assert np.abs(step).sum() == moved
        assert abs(step.sum()) == people
        assert min(some.inputs[one] + some.inputs[two]) >= 0


@pytest.mark.parametrize(("relation", "longer"), [("replace-one", 0), ("add-remove", 1)])
def test_ready_tables_differ_by_one_person(relation: Any, longer: int) -> None:
    some = Neighbours.tables(["a", "b", "c"], 4, relation)
    for one, two in some.pairs:
        first, second = some.inputs[one], some.inputs[two]
        assert abs(len(first) - len(second)) == longer
        assert first[:3] == second[:3]


def test_pairs_come_from_a_list_an_endless_generator_or_a_strategy() -> None:
    listed = Neighbours([([0], [1]), ([1], [0]), ([1], [2]), ([5], [5])])
    assert listed.inputs[:3] == ([0], [1], [2])
    assert listed.pairs.tolist() == [[0, 1], [1, 2]]
    assert len(Neighbours(pairwise([step] for step in count())).pairs) == 1000
    strategy = st.lists(st.integers(0, 3), min_size=3, max_size=3).map(lambda row: (row, [row[0] + 1, *row[1:]]))
    drawn = Neighbours(strategy)
    assert len(drawn.pairs) > 10
    assert drawn.inputs == Neighbours(strategy).inputs
    assert len(Neighbours([(np.array([0.0]), np.array([1.0])), (np.array([1.0]), np.array([0.0]))]).pairs) == 1


@pytest.mark.parametrize("wrong", [[], 3, "ab", [(1,)], [1, 2], [([1], [1])]])
def test_what_is_no_pair_is_refused(wrong: Any) -> None:
    with pytest.raises(DpriskError, match=r"pair|Neighbours"):
        Neighbours(wrong)
    with pytest.raises(DpriskError, match="replace-one"):
        Neighbours.counts(3, "swap")  # type: ignore[arg-type]


def test_neighbours_need_a_function_of_a_whole_input() -> None:
    some = Neighbours.queries(3)
    with pytest.raises(DpriskError, match="whole input"):
        audit(GRR(5, epsilon=1.0), records=some)
    with pytest.raises(DpriskError, match="leave it out"):
        audit(noisy_max, 1.0, records=some, threat=Threat(Prior.uniform(len(some.inputs))))
    with pytest.raises(DpriskError, match="leave out family"):
        audit(noisy_max, 1.0, records=some, look=Look(family=GRR(len(some.inputs), epsilon=1.0)), runs=1000)


def test_code_that_changes_its_input_does_not_change_that_of_the_next_run() -> None:
    def greedy(answers: list[int], rng: np.random.Generator) -> int:
        answers.append(7)
        return len(answers)

    target = as_target(greedy, Neighbours.queries(3))
    assert set(target.sample(np.arange(target.size).repeat(5), block_generator(0, 0)).tolist()) == {4}


# --- the search ---


def test_only_neighbours_are_compared() -> None:
    """Inputs that are no neighbours may differ as they like: this code tells far ones apart for sure."""

    def far_apart(value: int, rng: np.random.Generator) -> int:
        return 100 * (value // 10) + int(rng.integers(2))

    inside = [(10 * place, 10 * place + 1) for place in range(30)]
    report = audit(far_apart, 0.5, records=Neighbours(inside), runs=5000)
    assert report.verdict == "consistent with the claim"
    assert isinstance(report.design, Portfolio)
    assert all(set(np.asarray(source) // 2 * 2) == {min(source)} for source in report.design.sources)
    crossing = audit(far_apart, 0.5, records=Neighbours([*inside, (1, 10)]), runs=5000)
    assert crossing.verdict == "violated"
    assert {crossing.witnesses[0].record, crossing.witnesses[0].other} == {1, 10}


@pytest.mark.slow
def test_the_pair_is_found_on_which_a_faulty_program_shows() -> None:
    some = Neighbours.queries(5)
    assert assert_private(noisy_max, 1.0, some).verdict == "consistent with the claim"
    report = audit(quiet_max, 1.0, records=some, runs=20_000)
    assert report.verdict == "violated"
    assert report.coverage is None
    assert "runs of record [" in report.sentence()


@pytest.mark.slow
def test_the_same_report_comes_from_a_store(tmp_path: Any) -> None:
    from dprisk.auditing import Running

    some, running = Neighbours.counts(3), Running(store=tmp_path / "audit.sqlite")
    first = audit(noisy_max, 1.0, records=some, runs=5000, running=running)
    again = audit(noisy_max, 1.0, records=some, runs=5000, running=running)
    assert first.tally == again.tally == audit(noisy_max, 1.0, records=some, runs=5000).tally


@pytest.mark.slow
def test_a_search_over_pairs_rarely_cries_wolf() -> None:
    """Pairs at the boundary of the claim: at alpha 0.2 at most 0.2 + 3 s.e. of the audits find fault."""
    keep = math.e / (1 + math.e)

    def boundary(values: Any, rng: np.random.Generator) -> Any:
        return (np.asarray(values) + (rng.random(len(values)) > keep)) % 2

    target = as_target(boundary, Neighbours([(0, 1), (2, 3), (4, 5), (6, 7)]), batch=True)
    wrong = sum(audit(target, 1.0, runs=300, alpha=0.2, seed=seed).verdict == "violated" for seed in range(50))
    assert wrong <= 50 * (0.2 + 3 * math.sqrt(0.2 * 0.8 / 50))


def test_pairs_are_halved_until_few_are_left() -> None:
    def leaks(value: int, rng: np.random.Generator) -> int:
        return value if value in (80, 81) else int(rng.integers(4))

    target = as_target(leaks, Neighbours([(2 * place, 2 * place + 1) for place in range(100)]))
    left, past = screened(target, 20_000, block_generator(0, -1))
    assert past is not None
    assert left[0].tolist() == [80, 81]
    assert len(left) == 12
    past = pilot_past(target, Wanted(20_000, 0.01, 0.0), block_generator(0, -1))
    assert np.array_equal(np.sort(busiest(past, target.pairs, 12)[:, 0]), np.sort(left[:, 0]))  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_weak_leak_of_one_record_among_a_thousand_is_found() -> None:
    def half_the_noise(record: int, rng: np.random.Generator) -> int:
        return math.floor(4 * (record / 1000 + rng.laplace(scale=0.5 if record == 777 else 1.0)))

    reports = [audit(half_the_noise, 1.0, records=1000, seed=seed) for seed in range(3)]
    found = [report for report in reports if report.verdict == "violated"]
    assert len(found) >= 2
    assert all(777 in (report.witnesses[0].record, report.witnesses[0].other) for report in found)


def test_what_differs_from_the_rest_is_seen() -> None:
    rng = np.random.default_rng(0)
    records = np.repeat(np.arange(100), 30)
    outputs = rng.integers(4, size=records.size)
    outputs[records == 42] %= 2
    past = Past(Seen(outputs), records)
    assert np.argmax(unlike_the_rest(past, np.arange(100)[:, None])) == 42
    pairs = np.array([[0, 1], [2, 42], [3, 4]])
    assert np.argmax(unlike_each_other(past, pairs)) == 1
    assert clearest_ratio(past, pairs[1]) > clearest_ratio(past, pairs[0])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.sets(st.integers(0, 4), min_size=2))
def test_learning_is_from_as_many_runs_of_each_suspect(records: list[int], chosen: set[int]) -> None:
    codes, suspects = np.array(records), np.array(sorted(chosen))
    kept = Past(Seen(np.arange(codes.size)), codes).evenly(suspects)
    times = np.bincount(codes, minlength=5)[suspects]
    middle = sorted(times.tolist())[(suspects.size - 1) // 2]
    expected = np.minimum(times, middle) if middle else times
    assert np.bincount(kept.records, minlength=5)[suspects].tolist() == expected.tolist()
    assert np.array_equal(codes[kept.seen.outputs], kept.records)


# --- words ---


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (math.nan, "is NaN"),
        (-0.0, "is minus zero"),
        (None, "is None"),
        (np.float32(0.5), "is a float32"),
        ((1.5, 2.5, 3.5), "has 3 entries, none of them NaN, infinite or zero"),
        ((False, 1.5), "has 2 entries (True or False, a float other than 0)"),
        ((math.nan,), "has 1 entry, 1 that is NaN"),
        ("abc", "has 3 characters"),
        (np.array([1.0, math.nan]), "has 2 entries, 1 that is NaN"),
    ],
)
def test_forms_are_told_in_words(value: Any, told: str) -> None:
    assert form_of(value) == told


def test_bins_are_told_with_as_many_digits_as_tell_their_ends_apart() -> None:
    bins = Bins(np.linspace(1, 1 + 1e-9, 100), 4)
    low, high = bins.range_of(1, None).removeprefix("above ").split(" and at most ")
    assert float(low) < float(high)
    whole = Bins(np.array([0, 0, 1, 1, 2, 2, 3, 3]), 8)
    assert whole.words(int(whole.places(np.array([2.0]))[0]), 2) == "the output is 2"


def test_two_entries_are_told_together() -> None:
    columns = np.array([[0.0, 1.0] * 20, np.linspace(0, 1, 40)])
    one, two = (Entry(f"entry {place + 1}", place, Layout(2)) for place in range(2))
    view = TwoColumns((one, two), (columns[0], columns[1]), 2)
    row = np.array([1.0, 0.9])
    token = int(view.tokens(Seen(row[None]))[0])
    assert view.words(token, row).startswith("entry 1 is")
    assert ", and entry 2 is above" in view.words(token, row)


def test_entries_that_are_no_numbers_are_told_as_they_are() -> None:
    rows: Any = np.fromiter([(True, 1.5), (False, 2.5)] * 20, dtype=object, count=40)
    seen = Seen(rows)
    columns = seen.columns(Layout(2))
    assert columns[0].tolist() == [1.0, 0.0] * 20
    one, two = entries(rows, Layout(2))
    view = TwoColumns((one, two), (columns[0], columns[1]), 2)
    assert view.words(int(view.tokens(seen)[0]), rows[0]).startswith("entry 1 is True, and entry 2 is at most")


def test_floats_in_tuples_are_cut_and_the_rest_is_not() -> None:
    rows: Any = np.fromiter(
        [(False, 0.1), (False, 0.2), (True, 0.1), (False, 9.0), None, (True, 8.0)], dtype=object, count=6
    )
    view = coarse(Seen(rows), 2)
    assert view is not None
    one, two, three, four, none, _ = view.tokens(Seen(rows)).tolist()
    assert one == two
    assert len({one, three, four, none}) == 4
    assert view.words(one, rows[0]) == "the output is (False, a number at most 0.2)"
    assert coarse(Seen(np.array([1.0])), 2) is None


def test_a_row_of_zeros_is_not_the_record_0() -> None:
    zeros = Value().tokens(Seen(np.zeros((1, 3), dtype=np.int64)))
    assert zeros[0] != Value().tokens(Seen(np.zeros(1, dtype=np.int64)))[0]


def test_zeros_do_not_hide_the_last_bits_of_other_entries() -> None:
    assert LowBits().tokens(Seen(np.array([[0.0, 0.75], [0.0, 4.0]]))).tolist() == [-2, 2]


def test_a_witness_is_a_sentence() -> None:
    def rarely_nan(record: int, rng: np.random.Generator) -> float:
        return math.nan if record == 1 and rng.random() < 0.1 else float(rng.integers(1, 5))

    report = audit(rarely_nan, 0.5, records=[0, 1], runs=5000)
    (witness, *_) = report.witnesses
    assert witness.sentence().startswith("The output is NaN in ")
    assert ", and in none of " in witness.sentence()


def test_verdicts_do_not_comfort() -> None:
    few = audit(GRR(2, epsilon=1.0), runs=2)
    assert few.sentence().startswith("Undecided: 2 runs")
    assert "it takes 15 at least to refute it" in few.sentence()
    assert "which is no proof of it" in audit(GRR(2, epsilon=1.0), runs=1000).sentence()


def test_code_that_returns_nothing_is_refused_but_not_code_that_often_does() -> None:
    with pytest.raises(DpriskError, match="Every output is None"):
        audit(lambda record: None, 1.0, records=[0, 1], runs=1000)
    report = audit(lambda record: None if record < 5 else 1, 1.0, records=10, runs=2000)
    assert report.verdict == "violated"
    assert isinstance(report.counts, Counts)
