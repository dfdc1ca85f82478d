"""How attackers count what they saw, against counting one by one."""

import operator
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import audit
from dprisk.auditing import as_target
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.certify.portfolio import Answers
from dprisk.auditing.code.outputs import as_objects
from dprisk.auditing.evidence.attackers import verbatim
from dprisk.auditing.evidence.coverage import smallest_disclosure
from dprisk.auditing.evidence.layouts import Layout, layout_of
from dprisk.auditing.evidence.places import NOTHING, Ladder, counted
from dprisk.auditing.evidence.rules import Lookup, Past
from dprisk.auditing.evidence.screening import clearest_pair
from dprisk.auditing.evidence.views import Seen, Value
from dprisk.types import FloatArray, IntArray

SMALL, LARGE = st.integers(-3, 3), st.sampled_from([-(2**63), -(2**63) + 1, -5, 0, 7, 2**40, 2**63 - 2, 2**63 - 1])
TOKENS = st.one_of(SMALL, LARGE, st.just(NOTHING))


@given(st.lists(st.tuples(TOKENS, st.integers(0, 4)), min_size=1, max_size=60))
def test_tokens_are_counted_as_one_by_one(runs: list[tuple[int, int]]) -> None:
    tokens, records = (np.array(part, dtype=np.int64) for part in zip(*runs, strict=True))
    known, named, top, rest = counted(tokens, records)
    total = Counter(token for token, _ in runs if token != NOTHING)
    assert known.tolist() == sorted(token for token, times in total.items() if times >= 2)
    for token, name, most, others in zip(*(part.tolist() for part in (known, named, top, rest)), strict=True):
        times = Counter(record for seen, record in runs if seen == token)
        assert (most, most + others) == (max(times.values()), total[token])
        assert name == min(record for record in times if times[record] == most)


@given(st.dictionaries(st.one_of(SMALL, LARGE), st.integers(0, 4)), st.lists(TOKENS, min_size=1))
def test_a_lookup_names_what_its_token_stands_for(known: dict[int, int], outputs: list[int]) -> None:
    tokens = np.array(sorted(known), dtype=np.int64)
    named = np.array([known[token] for token in sorted(known)], dtype=np.int64)
    rule = Lookup(Value(), tokens, named, np.ones_like(named))
    found = rule.answers(Seen(np.array(outputs, dtype=np.int64))).tolist()
    assert found == [known.get(output, -1) for output in outputs]


@given(
    st.dictionaries(SMALL, st.tuples(st.integers(0, 2), st.sets(st.integers(0, 3), min_size=1)), min_size=1),
    st.lists(st.tuples(TOKENS, st.integers(0, 2)), min_size=1),
)
def test_every_grade_counts_its_own_answers(
    known: dict[int, tuple[int, set[int]]], runs: list[tuple[int, int]]
) -> None:
    tokens = np.array(sorted(known), dtype=np.int64)
    named = np.array([known[token][0] for token in sorted(known)], dtype=np.int64)
    grades = {str(place): np.array([place in known[token][1] for token in sorted(known)]) for place in range(4)}
    rule = Lookup.with_grades(Value(), (tokens, named, named, named), grades)
    outputs, targets = (np.array(part, dtype=np.int64) for part in zip(*runs, strict=True))
    for place, counts in enumerate(rule.fared(Seen(outputs), targets)):
        told = [(known[output][0], target) for output, target in runs if output in known and place in known[output][1]]
        assert counts == (len(told), sum(name == target for name, target in told))
        answers = rule.at(place).answers(Seen(outputs))
        assert (int(np.count_nonzero(answers >= 0)), int(np.count_nonzero(answers == targets))) == counts


def rounded_laplace(record: IntArray, rng: np.random.Generator) -> FloatArray:
    return np.round(record + rng.laplace(scale=2.0, size=len(record)), 1)


def with_a_sentinel(probability: float) -> Callable[..., FloatArray]:
    """Such noise, but record 1 is a value of its own now and then."""

    def code(record: IntArray, rng: np.random.Generator) -> FloatArray:
        rarely = rng.random(len(record)) < probability
        return np.where((np.asarray(record) == 1) & rarely, 0.37, rounded_laplace(record, rng))

    return code


@pytest.mark.slow
def test_a_rare_value_is_found_among_many_that_tell_by_luck() -> None:
    for seed in range(5):
        target = as_target(with_a_sentinel(0.003), [0, 1], batch=True)
        report = audit(target, 0.5, runs=100_000, seed=seed)
        assert report.verdict == "violated"
        assert report.witnesses[0].what == "the output is 0.37"


def test_records_are_written_as_people_write_them() -> None:
    witness = audit(lambda record: int(record), 1.0, records=list(np.arange(2)), runs=2000).witnesses[0]
    assert "of record 0," in witness.sentence() or "of record 1," in witness.sentence()
    assert {witness.to_dict()["record"], witness.to_dict()["other"]} == {0, 1}


def one_in_ten_fails(records: IntArray, rng: np.random.Generator) -> FloatArray:
    """Randomised response over ten records; record 1 gives NaN in one of a hundred runs."""
    kept = rng.random(records.size) < np.expm1(1) / (np.expm1(1) + 10)
    outputs = np.where(kept, records, rng.integers(10, size=records.size)).astype(float)
    outputs[(records == 1) & (rng.random(records.size) < 0.01)] = np.nan
    return outputs


@pytest.mark.slow
def test_a_rare_leak_of_one_record_among_ten_is_found() -> None:
    """About twenty of 20,000 runs tell: they must be noticed early, and be looked for in all runs."""
    target = as_target(one_in_ten_fails, range(10), batch=True)
    reports = [audit(target, 1.0, runs=20_000, alpha=1e-3, seed=seed) for seed in range(20)]
    found = [report.witnesses[0].what for report in reports if report.verdict == "violated"]
    assert found.count("the output is NaN") >= 19


@pytest.mark.parametrize(("pilot", "again", "needed"), [(300, 2, 12), (0, 4, 3), (40, 1, 1)])
def test_the_smallest_disclosure_is_that_of_simulated_audits(pilot: int, again: int, needed: int) -> None:
    rounds, suspects, trials, rng = [1000, 3000, 12_000], 5, 20_000, np.random.default_rng(0)
    least = smallest_disclosure(rounds, suspects, pilot, {again: needed, again + 1: 10 * needed + 90})
    assert least is not None
    seen, right = rng.binomial(pilot, least, size=trials), np.zeros(trials)
    for runs in rounds:
        fresh = rng.binomial(runs, least / suspects, size=trials)
        right += np.where(seen >= again, fresh, 0)
        seen += fresh
    assert np.mean(right >= needed) == pytest.approx(0.995, abs=0.0025)


def test_no_disclosure_is_found_with_too_few_answers_or_runs() -> None:
    assert smallest_disclosure([1000], 5, 300, {}) is None
    assert smallest_disclosure([], 5, 300, {2: 1}) is None
    assert smallest_disclosure([1000], 5, 0, {2: 1}) is None  # nothing was learned before the only round


@pytest.mark.parametrize("anytime", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_so_many_right_answers_are_needed_and_not_one_less(anytime: bool, delta: float) -> None:
    claim = (1.0, delta, 0.01, anytime)
    others = {"one": {2: Counts(5000, 900, 600, 2)}, "two": {2: Counts(5000, 0, 0, 2), 5: Counts(100, 7, 3, 5)}}
    tally = Answers(5100, Counts(5000, 5000, 3500, 2), others)

    def with_more(right: int) -> Answers:
        return tally + Answers(0, Counts(0, 0, 0, 2), {"two": {5: Counts(right, right, right, 5)}})

    needed = tally.needed(["two", "three"], 5, 1000, *claim)["two"]
    assert with_more(needed).refutes(*claim)
    assert not with_more(needed - 1).refutes(*claim)
    assert tally.needed(["two"], 5, needed - 1, *claim) == {}
    assert with_more(needed).needed(["one"], 2, 1000, *claim) == {"one": 1}  # refuted as it is


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=80, unique=True),
    st.lists(st.floats(allow_nan=False), max_size=20),
    st.sampled_from([1.0, 1e-300, 1e-3]),
)
def test_a_ladder_tells_what_bisecting_tells(edges: list[float], numbers: list[float], scale: float) -> None:
    rungs = np.unique(np.array(edges) * scale)
    with np.errstate(over="ignore"):
        beside = np.nextafter(rungs, np.inf)
    some = np.r_[np.array(numbers), np.array(numbers) * scale, rungs, beside, np.inf]
    assert np.array_equal(Ladder(rungs).places(some), np.searchsorted(rungs, some))


def test_a_ladder_of_narrow_floats_tells_what_bisecting_tells() -> None:
    edges: Any = np.linspace(-3, 3, 50, dtype=np.float16)
    some = np.linspace(-4, 4, 999)
    assert np.array_equal(Ladder(edges).places(some), np.searchsorted(edges, some))


@pytest.mark.parametrize("size", [10, 100, 5000])
def test_a_ladder_of_quantiles_tells_what_bisecting_tells(size: int) -> None:
    rng = np.random.default_rng(0)
    for numbers in (rng.laplace(size=20_000), np.round(rng.normal(size=20_000), 2), rng.standard_cauchy(20_000)):
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, size)))
        some = np.r_[numbers, edges, np.nextafter(edges, -np.inf)]
        assert np.array_equal(Ladder(edges).places(some), np.searchsorted(edges, some))


@pytest.mark.slow
def test_what_coverage_says_would_have_been_found_is_found() -> None:
    """With a chance of 95 %; fewer than 19 of 25 have one of 2e-4."""
    honest = as_target(rounded_laplace, [0, 1], batch=True)
    found = 0
    for seed in range(25):
        coverage = audit(honest, 0.5, runs=20_000, alpha=1e-3, seed=seed).coverage
        assert coverage is not None
        assert coverage.smallest is not None
        leaking = as_target(with_a_sentinel(coverage.smallest), [0, 1], batch=True)
        found += audit(leaking, 0.5, runs=20_000, alpha=1e-3, seed=100 + seed).verdict == "violated"
    assert found >= 19


def test_blocks_whose_commonest_length_differs_are_joined() -> None:
    blocks = [Seen(as_objects([(1, 2)] * 3)), Seen(as_objects([(1, 2, 3)] * 4))]
    assert [layout_of(block.outputs) for block in blocks] == [Layout(2), Layout(3)]
    assert blocks[0].columns(Layout(3)).shape == (3, 3)
    together = Seen.join(blocks)
    assert layout_of(together.outputs) == Layout(3)
    assert np.isnan(together.columns(Layout(3))).tolist() == [[True] * 3 + [False] * 4] * 3


# --- leaks that hide in names, words and single entries ---


def named_row(record: int, rng: np.random.Generator) -> Any:
    return pd.Series([1.0 + round(rng.laplace(), 1)], index=["yes" if record else "no"])


def named_frame(record: int, rng: np.random.Generator) -> Any:
    return pl.DataFrame({"yes" if record else "no": [int(rng.integers(9))]})


def masked(record: int, rng: np.random.Generator) -> Any:
    return np.ma.array([1.0, rng.integers(9)], mask=[bool(record), False])


def a_word_of_many(record: int, rng: np.random.Generator) -> str | None:
    answer = "yes" if record else "no"
    return None if rng.random() < 0.05 else f"user {rng.integers(10**9)} answered {answer}"


def deep_inside(record: int, rng: np.random.Generator) -> dict[str, Any]:
    return {} if rng.random() < 0.05 else {"at": float(rng.random()), "more": {"raw": record, "x": float(rng.random())}}


def a_pair_of_twelve(record: int, rng: np.random.Generator) -> FloatArray:
    row = np.round(rng.normal(size=12), 2)
    row[11] = row[10] if record else -row[10]
    return row


def one_of_three_hundred(record: int, rng: np.random.Generator) -> FloatArray:
    row = np.round(rng.normal(size=300), 2)
    row[250] += 6 * record
    return row


LEAKS = (named_row, named_frame, masked, a_word_of_many, deep_inside, a_pair_of_twelve, one_of_three_hundred)


@pytest.mark.slow
@pytest.mark.parametrize("code", LEAKS)
def test_what_hides_in_names_words_and_entries_is_found(code: Callable[..., Any]) -> None:
    report = audit(code, 1.0, records=[0, 1], runs=4000)
    assert report.verdict == "violated"
    assert report.witnesses


@pytest.mark.parametrize("size", [1, 1000, 10**6, 5 * 10**7])
def test_what_a_witness_says_can_be_counted_again(size: int) -> None:
    """Numbers in its words are those by which was cut, not rounded ones."""
    given: dict[int, list[float]] = {size: [], size + 1: []}

    def code(record: int, rng: np.random.Generator) -> float:
        given[record].append(round(record + float(rng.normal()) * 0.3, 2))
        return given[record][-1]

    report = audit(code, 1.0, records=list(given), runs=3000)
    for witness in report.witnesses:
        found = re.findall(r"(above|below|at most) (-?[\d.]+)", witness.what)
        holds = {"above": operator.gt, "below": operator.lt, "at most": operator.le}
        for record, times in ((witness.record, witness.times), (witness.other, witness.other_times)):
            again = sum(all(holds[word](output, float(end)) for word, end in found) for output in given[record])
            assert not found or times <= again <= times + 200  # runs that tried whether it can be seeded
            assert not found or times > 0 or again <= 5


def laplace_of_two_widths(record: int, rng: np.random.Generator) -> float:
    return float(rng.laplace(scale=3 if record else 1))


def words_of_two(record: int, rng: np.random.Generator) -> str:
    number = rng.integers(9999)
    return f"apple n{number}" if record and rng.random() < 0.5 else f"apple pear n{number}"


def zeros_first(record: int, rng: np.random.Generator) -> list[float]:
    zeros = int(rng.integers(3)) + 3 * record
    return [0.0] * zeros + [1.0 + rng.integers(5)] * (8 - zeros)


def whole_and_others(record: int, rng: np.random.Generator) -> float:
    return float(rng.integers(3)) if rng.random() < 0.6 else 1.0 - rng.random() * 0.3 * record


def holds(what: str, output: Any) -> bool | None:
    """Whether what a witness says holds of an output; None if the words are none of these."""
    if found := re.fullmatch(r"the output is (above|below|at most) (\S+)", what):
        compared = {"above": operator.gt, "below": operator.lt, "at most": operator.le}[found[1]]
        return bool(compared(output, float(found[2])))
    if found := re.fullmatch(r"the output is (-?[\d.]+)", what):
        return bool(output == float(found[1]))
    if found := re.fullmatch(r"the output holds the word '(\w+)'(?: and none of '(\w+)')?", what):
        return found[1] in output.split() and found[2] not in output.split()
    if found := re.fullmatch(r"the number of characters of the output is (above|below) (\S+)", what):
        return bool((operator.gt if found[1] == "above" else operator.lt)(len(output), float(found[2])))
    if found := re.fullmatch(r"character (\d+) of the output is '(.)'", what):
        return bool(output[int(found[1]) - 1] == found[2])
    if found := re.fullmatch(r"the output has (\d+) characters", what):
        return len(output) == int(found[1])
    if found := re.match(r"the output has 8 entries, (3 or more|\d) that (?:are|is) zero$", what):
        zeros = output.count(0.0)
        return bool(zeros >= 3 if found[1] == "3 or more" else zeros == int(found[1]))
    return None


@pytest.mark.parametrize("code", [laplace_of_two_widths, words_of_two, zeros_first, whole_and_others])
def test_what_a_witness_says_holds_of_so_many_outputs_and_no_more(code: Callable[..., Any]) -> None:
    report = audit(code, 0.3, records=2, runs=5000, seed=0)
    rng, outputs = np.random.default_rng(1), {}
    for record in (0, 1):
        outputs[record] = [code(record, rng) for _ in range(5000)]
    told = 0
    for witness in report.witnesses:
        for record, times, runs in (
            (witness.record, witness.times, witness.runs),
            (witness.other, witness.other_times, witness.other_runs),
        ):
            found = [holds(witness.what, output) for output in outputs[record]]
            if None not in found:
                share, expected = times / runs, sum(map(bool, found)) / 5000
                assert share == pytest.approx(expected, abs=5 * (expected / runs) ** 0.5 + 0.003)
                told += 1
    assert told >= 2


def test_whole_numbers_have_no_last_bits_of_a_float() -> None:
    report = audit(lambda record, rng: int(rng.integers(2**60)) * 2 + record, 1.0, records=2, runs=2000, seed=0)
    assert report.witnesses
    assert not any("float" in witness.sentence() for witness in report.witnesses)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=60))
def test_the_clearest_pair_is_two_records(runs: list[tuple[int, int]]) -> None:
    records, outputs = np.array(runs).T
    one, two = clearest_pair(Past(Seen(outputs), records), np.arange(5))[0]
    assert one != two


def test_the_clearest_pair_is_that_of_which_an_output_rules_one_out() -> None:
    records = np.repeat(np.arange(4), 100)
    outputs = np.where((records != 2) & (np.arange(400) % 5 == 0), 7, 0)
    assert 2 in clearest_pair(Past(Seen(outputs), records), np.arange(4))[0]


def test_rows_of_bits_are_told_apart_and_are_no_record() -> None:
    rows = np.random.default_rng(0).random((2000, 10)) < 0.5
    tokens = Seen(rows).tokens(Value())
    assert np.unique(tokens).size == len(np.unique(rows, axis=0))
    assert not (verbatim(range(1024)).answers(Seen(rows)) >= 0).any()


def one_of_four_bits(record: int, rng: np.random.Generator) -> tuple[list[int], int]:
    """One of the record's own four bits is on for certain, and it says which of the four."""
    own, bits = int(rng.integers(4)), (rng.random(16) < 0.38).astype(int)
    bits[4 * record + own] = 1
    return bits.tolist(), own


def one_hot_with_floats(record: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray((np.arange(4) == record) + rng.laplace(scale=2, size=4))


@pytest.mark.parametrize("code", [one_of_four_bits, one_hot_with_floats])
def test_what_rules_out_one_of_several_records_is_looked_for_everywhere(code: Any) -> None:
    for seed in range(2):
        report = audit(code, 1.0, records=range(4), runs=20_000, seed=seed)
        assert report.epsilon_certified > 3
        assert report.witnesses[0].other_times == 0
