"""Outputs and records of odd kinds: nothing that code returns, or does to what it is given, hides a leak."""

import copy
import hashlib
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import audit, audit_recorded
from dprisk.auditing import Running, as_target
from dprisk.auditing.certify.counts import Counts, certified_epsilon, fewest_runs
from dprisk.auditing.code.called import CodeTarget
from dprisk.auditing.code.outputs import as_outputs, digests
from dprisk.auditing.evidence.entries import entries
from dprisk.auditing.evidence.grids import LowBits
from dprisk.auditing.evidence.layouts import Layout
from dprisk.auditing.evidence.views import Form, Seen, Value, form_of, joined
from dprisk.auditing.evidence.witness import Witness
from dprisk.auditing.run import AuditInterrupted
from dprisk.errors import AuditedCodeError, DpriskError, TargetError
from dprisk.guarantees import ApproxDP

BUFFER = np.zeros(3)
LIST: list[int] = []
HELD: dict[str, int] = {}


def in_a_buffer(record: int, rng: np.random.Generator) -> Any:
    BUFFER[:] = 0
    BUFFER[record] = 1
    return BUFFER


def in_a_view(record: int, rng: np.random.Generator) -> Any:
    return "an array", in_a_buffer(record, rng)[:]


def in_a_list(record: int, rng: np.random.Generator) -> Any:
    LIST[:] = [record]
    return LIST


def in_a_dict(record: int, rng: np.random.Generator) -> Any:
    HELD["answer"] = record
    return HELD


@pytest.mark.parametrize("code", [in_a_buffer, in_a_view, in_a_list, in_a_dict])
def test_code_that_writes_into_what_it_returned_is_refused(code: Callable[..., Any]) -> None:
    with pytest.raises(
        TargetError, match=f"{code.__name__} writes into what it returned. It returned .* Return a copy"
    ):
        audit(code, 1.0, records=3, runs=2000, seed=0)
    copied = as_target(code, 3, post=copy.deepcopy)
    assert audit(copied, 1.0, runs=2000, seed=0).verdict == "violated"


MASKED = np.ma.masked_array([1e20, 2.0], mask=[False, False], fill_value=1e20)


def in_a_mask(record: int, rng: np.random.Generator) -> Any:
    MASKED.mask = [record == 1, False]
    return MASKED


def in_a_list_now_and_then(record: int, rng: np.random.Generator) -> Any:
    return in_a_list(record, rng) if rng.random() < 0.02 else [-1]


@pytest.mark.parametrize("code", [in_a_mask, in_a_list_now_and_then])
def test_code_that_writes_into_a_mask_or_rarely_is_refused(code: Callable[..., Any]) -> None:
    for seed in range(4):
        with pytest.raises(TargetError, match="writes into what it returned"):
            audit(code, 1.0, records=2, runs=8000, seed=seed)


KEPT: dict[str, Any] = {"list": [1, 2], "array": np.arange(3), "set": {1, 2}, "dict": {"a": 1}}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_what_is_returned_again_and_never_changed_is_fine(kept: Any) -> None:
    assert audit(lambda record: kept, 1.0, records=2, runs=2000).verdict != "violated"


class Colour(Enum):
    RED = 1


FIXED = [np.bool_(True), Colour.RED, Decimal(1), frozenset({1}), (1, (2, 3)), date(2020, 1, 1)]


@pytest.mark.parametrize("output", FIXED, ids=lambda output: type(output).__name__)
def test_a_batch_may_repeat_what_nobody_can_change(output: Any) -> None:
    target = as_target(lambda records: [output] * len(records), 2, batch=True)
    assert audit(target, 1.0, runs=2000).verdict == "consistent with the claim"


def test_a_batch_may_give_none_to_several() -> None:
    """Before Python 3.12 None has the hash of any object, so it was taken for one that may be written into."""
    target = as_target(
        lambda records, rng: [(None, 1)[bit] for bit in rng.integers(2, size=len(records))], 2, batch=True
    )
    assert audit(target, 1.0, runs=2000).verdict == "consistent with the claim"


NOTHING_IN_IT = {
    "masked": lambda record, rng: np.ma.masked_array([1.0], mask=[rng.random() < 0.1]).mean(),
    "days": lambda record, rng: np.timedelta64(int(rng.integers(3)), "D"),
    "empty lists": lambda record, rng: [],
    "empty arrays": lambda record, rng: np.zeros(0),
}


@pytest.mark.parametrize("code", NOTHING_IN_IT.values(), ids=NOTHING_IN_IT)
def test_odd_outputs_that_tell_nothing_are_consistent(code: Callable[..., Any]) -> None:
    assert audit(code, 1.0, records=2, runs=3000).verdict == "consistent with the claim"


def test_a_batch_that_is_written_over_later_was_seen_before() -> None:
    held = np.zeros(20_000)

    def code(records: Any) -> Any:
        held[: len(records)] = records
        return held[: len(records)]

    assert audit(as_target(code, 2, batch=True), 1.0, runs=4000, seed=0).verdict == "violated"


def test_outputs_that_hold_nan_are_not_taken_for_changed_ones() -> None:
    def code(record: int, rng: np.random.Generator) -> Any:
        return {"mean": float("nan"), "rows": np.ma.masked_invalid([np.nan, rng.integers(3)]), "n": np.float32("nan")}

    assert audit(code, 1.0, records=2, runs=2000, seed=0).verdict == "consistent with the claim"


@pytest.mark.parametrize(
    "records",
    [
        [np.zeros(2), np.ones(2)],
        [[0.0, 0.0], [1.0, 1.0]],
        [{"n": [0.0]}, {"n": [1.0]}],
        [[[0.0]], [[1.0]]],
    ],
)
def test_code_that_changes_its_record_is_given_the_same_again(records: list[Any]) -> None:
    given = copy.deepcopy(records)

    def code(record: Any, rng: np.random.Generator) -> float:
        inner = record["n"] if isinstance(record, dict) else record
        inner = inner[0] if isinstance(inner[0], list) else inner
        inner[0] += rng.laplace(scale=0.5)
        return round(float(inner[0]), 1)

    assert 1.5 < audit(code, 1.0, records=records, runs=20_000, seed=0).epsilon_certified <= 2.0
    assert repr(records) == repr(given)


def test_records_that_code_leaves_alone_are_handed_over_themselves() -> None:
    """Some are known by their identity, and large ones are slow to copy."""
    one, two = object(), object()
    assert audit(lambda record: record is one, 1.0, records=[one, two], runs=2000).verdict == "violated"
    arrays = [np.zeros(10), np.ones(10)]
    assert audit(lambda record: record is arrays[0], 1.0, records=arrays, runs=2000).verdict == "violated"


@pytest.mark.parametrize("code", [lambda records: [BUFFER] * len(records), lambda records: [LIST for _ in records]])
def test_a_batch_whose_outputs_are_one_object_is_refused(code: Callable[..., Any]) -> None:
    with pytest.raises(TargetError, match=r"for several records of a batch\. Return one for each"):
        audit(as_target(code, 2, batch=True), 1.0, runs=2000)


@pytest.mark.parametrize("rare", [0.0, 0.01])
def test_outputs_hardly_any_two_of_which_are_alike_are_no_acquittal(rare: float) -> None:
    def code(record: int, rng: np.random.Generator) -> bytes | None:
        return None if rng.random() < rare else hashlib.sha256(bytes([record]) + rng.bytes(8)).digest()

    report = audit(code, 1.0, records=2, runs=5000, seed=0)
    assert report.verdict == "undecided"
    assert "give it numbers to look at with post=" in report.sentence()


def test_how_many_runs_it_takes_is_told_for_the_most_suspects() -> None:
    """Among a hundred fewer runs refute a claim than among two."""
    noise = audit(lambda record, rng: int(rng.integers(2)), 10.0, records=100, runs=5000, seed=0)
    leak = audit(lambda record, rng: record, 10.0, records=100, runs=5000, seed=0)
    assert leak.verdict == "violated"
    assert "at least to refute it" not in noise.sentence()


def rounded(record: int, rng: np.random.Generator) -> Any:
    return round(record + rng.laplace(), 2)


RARE: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "the record": lambda record, rng: record,
    "a text": lambda record, rng: f"debug: {record}",
    "a text that is never the same": lambda record, rng: f"failed at {rng.random()} on record {record}",
    "entries that are never the same": lambda record, rng: {"at": rng.random(), "record": record},
    "a list": lambda record, rng: [record, 7],
    "a narrow float": lambda record, rng: np.float32(record),
    "a sentinel": lambda record, rng: -999.0 + record,
}


@pytest.mark.parametrize("what", RARE)
def test_what_is_rare_is_found_among_thousands_of_usual_values(what: str) -> None:
    """Those have the ratio of the claim, all of them: answers on them drown the few that tell."""

    def code(record: int, rng: np.random.Generator) -> Any:
        return RARE[what](record, rng) if rng.random() < 0.01 else rounded(record, rng)

    report = audit(code, 1.0, records=2, runs=20_000, seed=1)
    assert report.verdict == "violated"
    assert report.witnesses[0].other_times <= 2


def test_the_words_of_rare_texts_are_no_others() -> None:
    outputs = as_outputs([1.5, "a", None, np.float32(1.5), (1, 2)])
    alone = [as_outputs([value]) for value in (1.5, "a", None, np.float32(1.5), (1, 2))]
    for view in (Value(), Form(), LowBits()):
        assert Seen(outputs).tokens(view).tolist() == [int(Seen(part).tokens(view)[0]) for part in alone]


SETS = "[frozenset('abcdefgh'), (1, frozenset('xyz'))]"


def test_a_set_of_texts_is_the_same_in_every_process() -> None:
    code = f"from dprisk.auditing.code.outputs import digests; print(digests({SETS}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert found == {f"{digests([frozenset('hgfedcba'), (1, frozenset('zyx'))])}\n"}


def test_an_output_that_rules_out_a_record_is_found_among_ten() -> None:
    """A set of four holds the record, and six records never give it: each of the four is right once in four times."""

    def code(record: int, rng: np.random.Generator) -> set[int]:
        held = set(rng.choice(10, 3, replace=False).tolist())
        return held | {record} if rng.random() < 0.3 else held

    found = [audit(code, 1.5, records=10, runs=60_000, seed=seed) for seed in (0, 1)]
    assert [report.verdict for report in found] == ["violated"] * 2


def test_narrow_floats_stay_what_they_are_beside_others() -> None:
    parts = [as_outputs([np.float32(0.1), np.float32(0.2)]), as_outputs([0.1, 0.2])]
    assert [type(value) for value in joined(parts).tolist()] == [np.float32, np.float32, float, float]
    seen = Seen(joined(parts))
    forms = seen.tokens(Form()).tolist()
    assert forms[0] == forms[1] != forms[2] == forms[3]
    for view in (Value(), Form(), LowBits()):
        assert seen.tokens(view).tolist() == np.concatenate([Seen(part).tokens(view) for part in parts]).tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", [((3, 2), (2, 3)), ((0, 2), (0, 3))])
def test_shapes_stay_visible(kind: Any, shapes: tuple[tuple[int, int], ...]) -> None:
    one, two = as_outputs([np.zeros(shape, dtype=kind) for shape in shapes]).tolist()
    assert one != two


@given(st.lists(st.lists(st.one_of(st.booleans(), st.sampled_from([1, 0, 1.0, None, "T", b"F"])), max_size=3)))
def test_lists_are_rows_only_where_every_entry_is_of_one_kind(values: list[list[Any]]) -> None:
    made = as_outputs(values)
    if made.ndim == 2 and made.shape[1]:
        assert len({type(entry) for value in values for entry in value}) == 1
    assert repr([list(value) for value in made.tolist()]) == repr(values)


ROW = st.tuples(st.sampled_from([0.0, 1.5, math.nan, -0.0]), st.sampled_from([0.0, 2.5])).map(list)
ODD = st.sampled_from(
    [None, "n/a", [1, 2.0], [1, 2], [True, False], [[1.0, 2.0], [3.0, 4.0]], 1.5, 2, True, (0.5, "a")]
)


@given(st.lists(st.one_of(ROW, ODD), min_size=1, max_size=8), st.data())
def test_how_an_output_looks_depends_on_it_alone(values: list[Any], data: st.DataObject) -> None:
    """Whatever else is in its block, and however blocks are joined, taken from or looked at before."""
    cut = data.draw(st.integers(1, len(values)))
    whole, parts = Seen(as_outputs(values)), [Seen(as_outputs(some)) for some in (values[:cut], values[cut:]) if some]
    place = data.draw(st.integers(0, len(values) - 1))
    alone = Seen(as_outputs([values[place]]))
    for view in (Value(), Form(), LowBits()):
        tokens = whole.tokens(view).tolist()
        assert tokens[place] == alone.tokens(view)[0]
        assert tokens == Seen(joined([part.outputs for part in parts])).tokens(view).tolist()
        assert tokens == [token for part in parts for token in part.tokens(view).tolist()]
    for length in (2, 4):
        columns = whole.columns(Layout(length))
        assert np.array_equal(
            columns, np.concatenate([part.columns(Layout(length)) for part in parts], axis=1), equal_nan=True
        )
        assert np.array_equal(columns[:, [place]], alone.columns(Layout(length)), equal_nan=True)
        assert np.array_equal(columns[:, [place]], whole.take([place]).columns(Layout(length)), equal_nan=True)
    assert np.array_equal(Seen.join(parts).columns(Layout(2)), whole.columns(Layout(2)), equal_nan=True)


def test_an_odd_output_among_rows_changes_no_count() -> None:
    held: Counter[tuple[int, str]] = Counter()

    def code(record: int, rng: np.random.Generator) -> list[float]:
        out = [1.0, 2.0] if rng.random() < (0.9 if record else 0.2) else [1.0, 3.0]
        if rng.random() < 0.0005:
            out[1] = 2
        held[record, repr(out)] += 1
        return out

    report = audit(code, 1.0, records=2, runs=20_000, seed=1)
    assert report.verdict == "violated"
    told = [witness for witness in report.witnesses if witness.what == "the output is (1.0, 3.0)"]
    assert told
    for witness in told:
        assert abs(witness.times - held[0, "[1.0, 3.0]"]) < 300  # those tried before the audit are not counted


@pytest.mark.parametrize(
    "code",
    [
        lambda record, rng: (
            int(rng.integers(3)),
            "n/a" if rng.random() < 0.001 else round(rng.laplace() + 5 * record, 2),
        ),
        lambda record, rng: (10**30 + int(rng.integers(1000)) + record * 1000, 1.0),
        lambda record, rng: (
            None
            if record and rng.random() < 0.05
            else {"city": f"city{rng.integers(50)}", "v": round(rng.laplace(), 2)}
        ),
        lambda record, rng: (
            ("short",) if record and rng.random() < 0.05 else (f"a{rng.integers(50)}", f"b{rng.integers(50)}")
        ),
        lambda record, rng: [
            math.inf if rng.random() < (0.6 if record else 0.1) else round(rng.laplace(), 2) for _ in "ab"
        ],
        lambda record, rng: [["red", "blue"][rng.integers(2)], [round(rng.laplace() + 4 * record, 2), 1.5]],
        lambda record, rng: {
            "colour": ["red", "blue"][rng.integers(2)],
            "v": [round(rng.laplace() + 4 * record, 2), 1.5],
        },
        lambda record, rng: f"{round(record * 9 + rng.laplace(), 2)}kg",
        lambda record, rng: {round(record * 9 + rng.laplace(), 2)},
    ],
)
def test_what_is_said_of_entries_that_are_no_numbers_is_true(code: Callable[..., Any]) -> None:
    report = audit(code, 1.0, records=2, runs=8000, seed=1)
    assert report.verdict == "violated"
    told = report.sentence().split("confidence)")[1]
    assert not re.search(r"('red'|'blue') is|-\d{8,}", told), told


def test_fractions_that_no_float_holds_are_no_trouble() -> None:
    def code(record: int, rng: np.random.Generator) -> Fraction:
        return Fraction(10**400 + int(rng.integers(9)), 3)

    assert audit(code, 1.0, records=2, runs=2000, seed=1).verdict == "consistent with the claim"


def test_entries_are_called_by_names_that_are_always_there() -> None:
    outputs = as_outputs([{"mean": [1.0, 2.0], "n": 3}, {"mean": [1.5, 2.5], "n": 4}])
    names = [entry.name for entry in entries(outputs, Layout(5))]
    assert names == ["the name 'mean'", "'mean', entry 1", "'mean', entry 2", "the name 'n'", "'n'"]
    pairs = as_outputs([[["red", 1.0]], [["blue", 2.0]]])
    assert [entry.name for entry in entries(pairs, Layout(2))] == ["entry 1", "entry 2"]


@pytest.mark.parametrize(
    "code",
    [
        lambda record, rng: [0 if record else 0.0, round(rng.normal(), 1)],
        lambda record, rng: [True if record else 1, bool(rng.random() < 0.5)],
        lambda record, rng: [[1 if record else 1.0], [2 if rng.random() < 0.5 else 3]],
    ],
)
def test_the_kind_of_an_entry_gives_the_record_away(code: Callable[..., Any]) -> None:
    assert audit(code, 1.0, records=2, runs=2000, seed=0).verdict == "violated"


def noisy(record: int, rng: np.random.Generator) -> float:
    return float(record + rng.laplace(scale=2.0))


IN_OTHERS: dict[str, Callable[..., Any]] = {
    "tuple": lambda record, rng: (noisy(record, rng), int(rng.integers(10))),
    "dict": lambda record, rng: {"mean": noisy(record, rng), "n": 7},
    "nested": lambda record, rng: {"a": {"b": [noisy(record, rng), 1.0]}, "c": "x"},
    "text": lambda record, rng: f"mean {noisy(record, rng)} of 7",
    "one of ten": lambda record, rng: [*rng.laplace(scale=2.0, size=9).tolist(), noisy(record, rng)],
}


@pytest.mark.parametrize("what", IN_OTHERS)
def test_the_last_bits_of_a_number_are_seen_in_whatever_holds_it(what: str) -> None:
    """Laplace noise in floats keeps epsilon 0.5 but for its last bits, which give the record away."""
    report = audit(IN_OTHERS[what], 0.5, records=2, runs=8000, seed=1)
    assert report.verdict == "violated"
    assert report.witnesses[0].attacker.startswith("low bits")
    assert report.witnesses[0].times > 10 * report.witnesses[0].other_times


@pytest.mark.parametrize("what", IN_OTHERS)
def test_rounded_numbers_in_whatever_holds_them_are_no_leak(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "noisy", lambda record, rng: round(record + rng.laplace(scale=2.0), 2))
    report = audit(IN_OTHERS[what], 0.5, records=2, runs=20_000, seed=1)
    assert report.verdict == "consistent with the claim"
    assert what == "one of ten" or report.epsilon_certified > 0.3


def rarely(record: int, rng: np.random.Generator, chance: float) -> bool:
    return record == 1 and bool(rng.random() < chance)


def now_and_then(record: int, rng: np.random.Generator, usual: list[Any], place: int, leak: Any, chance: float) -> Any:
    """A list in which one entry tells record 1 now and then."""
    return [leak if at == place and rarely(record, rng, chance) else entry for at, entry in enumerate(usual)]


def mostly_zeros(rng: np.random.Generator) -> list[float]:
    """Sixty entries, of which the last is 0 and few others are not."""
    return [*np.where(rng.random(59) < 0.05, rng.normal(size=59).round(2), 0.0).tolist(), 0.0]


@dataclass(frozen=True)
class Told:
    number: int
    tag: str


class Failed(Told):
    """The same, and another class."""


LEAKS: dict[str, Callable[..., Any]] = {
    "cents": lambda record, rng: round(int(rng.integers(-(10**6), 10**6)) + (0.37 if record else 0.12), 2),
    "multiples of 7": lambda record, rng: int(rng.integers(-(10**8), 10**8)) * 7 + record,
    "multiples of 3 in a row": lambda record, rng: rng.integers(1000, size=4) * 3 + record,
    "a sparse vector": lambda record, rng: now_and_then(record, rng, mostly_zeros(rng), 59, 0.5, 0.1),
    "a negative count": lambda record, rng: now_and_then(record, rng, rng.integers(50, size=20).tolist(), 7, -1, 0.02),
    "a word of a text that is seen again": lambda record, rng: json.dumps(
        {"status": "lo" if rarely(record, rng, 0.02) else "hi", "v": round(rng.laplace(), 2)}
    ),
    "an invisible sign": lambda record, rng: (
        f"value{chr(0x200B) if rarely(record, rng, 0.02) else ' '}{round(rng.laplace(), 2)}"
    ),
    "equal entries": lambda record, rng: (
        [round(rng.laplace(), 3)] * 2 if rarely(record, rng, 0.05) else rng.laplace(size=2).round(3).tolist()
    ),
    "a frozen data class": lambda record, rng: Told(int(rng.integers(1000)), "x" if rarely(record, rng, 0.02) else "y"),
    "a class": lambda record, rng: (Failed if rarely(record, rng, 0.02) else Told)(int(rng.integers(1000)), "y"),
}


@pytest.mark.parametrize("what", LEAKS)
def test_a_leak_in_odd_places_is_found_and_named(what: str) -> None:
    report = audit(LEAKS[what], 1.0, records=2, runs=10_000, seed=1)
    assert report.verdict == "violated"
    assert report.witnesses[0].times > 20 * report.witnesses[0].other_times
    assert not report.sentence().endswith("round what is published, and audit it again.")


EPOCH = datetime(2000, 1, 1)
KINDS: list[Callable[[float], Any]] = [
    Decimal,
    lambda number: complex(number, 1.0),
    lambda number: EPOCH + timedelta(0, number),
]


@pytest.mark.parametrize("kind", KINDS, ids=["decimal", "complex", "moment"])
def test_numbers_of_other_kinds_are_numbers(kind: Callable[[float], Any]) -> None:
    found = audit(lambda record, rng: kind(5 * record + round(rng.laplace(), 3)), 1.0, records=2, runs=5000, seed=1)
    assert found.verdict == "violated"
    right = audit(lambda record, rng: kind(round(record + rng.laplace(), 3)), 1.0, records=2, runs=5000, seed=1)
    assert right.verdict == "consistent with the claim"


@pytest.mark.parametrize(("chance", "batch"), [(1.0, False), (0.02, False), (0.0005, False), (1.0, True), (0.02, True)])
def test_an_end_of_iteration_is_a_failure_like_any_other(chance: float, batch: bool) -> None:
    """A map that calls the code takes it for its own end."""

    def ends(record: Any, rng: np.random.Generator) -> Any:
        if rng.random() < chance:
            return next(iter([]))
        return rng.integers(2, size=len(record)) if batch else int(rng.integers(2))

    with pytest.raises(AuditedCodeError, match=r"raised StopIteration\."):
        audit(as_target(ends, [0, 1], batch=batch), 1.0, runs=100_000 if batch else 20_000)


@pytest.mark.parametrize(
    "code",
    [
        lambda record, rng: "".join(map(str, rng.integers(2, size=5000))),
        lambda record, rng: 10**5000 + int(rng.integers(5)),
        lambda record, rng: (10**5000 + int(rng.integers(5)), "a"),
        lambda record, rng: Decimal("sNaN") if rng.random() < 0.1 else Decimal(int(rng.integers(5))),
        lambda record, rng: (round(rng.normal(), 2), 1e308 * round(rng.random(), 2)),
        lambda record, rng: [1e300 * rng.normal() for _ in range(10)],
        lambda record, rng: {name: round(rng.normal(), 2) for name in "abcdef"} | {"who": "xyz"[rng.integers(3)]},
    ],
    ids=["digits", "a long number", "the same in a tuple", "a signalling NaN", "large floats", "many", "many names"],
)
def test_odd_numbers_are_no_trouble(code: Callable[..., Any]) -> None:
    assert audit(code, 1.0, records=2, runs=2000, seed=1).verdict != "violated"


def test_an_output_that_holds_itself_is_refused() -> None:
    def endless(record: int) -> list[Any]:
        held: list[Any] = [record]
        held.append(held)
        return held

    with pytest.raises(TargetError, match="holds itself"):
        audit(endless, 1.0, records=2, runs=2000)


def test_a_few_lucky_outputs_are_no_witness() -> None:
    """Only three entries together tell the record; a value that was seen twice tells nothing."""

    def code(record: int, rng: np.random.Generator) -> list[float]:
        one, two = rng.random(size=2)
        return [round(one, 2), round(two, 2), round((record / 2 - 3 * one + 2 * two) % 1, 2)]

    report = audit(code, 1.0, records=2, runs=100_000, seed=0)
    assert report.verdict == "violated"
    assert report.witnesses == ()
    assert "guesses among 2 records were right" in report.sentence()
    lucky, shown = (Witness("", "x", 1, times, 1000, 0, 0, 1000, ()) for times in (8, 16))
    assert not lucky.shows(ApproxDP(1.0, 0.0))
    assert shown.shows(ApproxDP(1.0, 0.0))
    assert not shown.shows(ApproxDP(1.0, 0.005))


def test_the_largest_floats_are_no_trouble() -> None:
    with np.errstate(all="raise"):
        report = audit(lambda record, rng: rng.choice([-1.7e308, 1.7e308]), 1.0, records=2, runs=2000, seed=0)
    assert report.verdict == "consistent with the claim"


@pytest.mark.filterwarnings("error")
def test_rows_of_narrow_floats_give_no_warning() -> None:
    def code(record: int, rng: np.random.Generator) -> Any:
        return (record + rng.laplace(size=2)).astype(np.float32)

    assert audit(code, 3.0, records=2, runs=2000, seed=0).runs == 2000


def always_fails(record: int) -> int:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (
            as_target(always_fails, 2, failures=True),
            "Every run failed: ValueError: no; is the code given what it needs",
        ),
        (as_target(lambda record: float("nan"), 2), "Every output is NaN"),
        (as_target(lambda record: None, 2), "Every output is None"),
    ],
)
def test_code_that_never_gives_anything_is_refused(target: CodeTarget, words: str) -> None:
    with pytest.raises(TargetError, match=words):
        audit(target, 1.0, runs=2000)


def fails_by_record(record: int) -> int:
    raise ValueError if record else KeyError


def test_failures_that_tell_records_apart_are_found() -> None:
    assert audit(as_target(fails_by_record, 2, failures=True), 1.0, runs=2000, seed=0).verdict == "violated"


def test_an_audit_of_failures_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def code(record: int, rng: np.random.Generator) -> int:
        return 1 // int(rng.integers(2 + record))

    def stop(tally: Any, _: int) -> None:
        if tally.runs >= 2000:
            raise KeyboardInterrupt

    target, running = as_target(code, 2, failures=True), Running(store=tmp_path / "a.db")
    with pytest.raises(AuditInterrupted):
        audit(target, 3.0, runs=6000, seed=3, running=running, watch=stop)
    assert audit(target, 3.0, runs=6000, seed=3, running=running).tally == audit(target, 3.0, runs=6000, seed=3).tally


@pytest.mark.parametrize(
    "code",
    [
        lambda record, rng: (int(rng.integers(2**60)), record),
        lambda record, rng: {"id": str(rng.integers(2**60)), "answer": round(record + rng.laplace(scale=0.2), 2)},
        lambda record, rng: {"a": {"b": [rng.random(), {"c": record}]}},
        lambda record, rng: f"{rng.random()}: {record}",
    ],
)
def test_an_identifier_that_is_never_the_same_hides_nothing(code: Callable[..., Any]) -> None:
    assert audit(code, 1.0, records=2, runs=4000, seed=0).verdict == "violated"


@pytest.mark.parametrize(
    ("runs", "claim", "words"),
    [(10, 1.0, r"it takes 15 at least to refute it"), (2000, ApproxDP(1.0, 1.0), "no outcome could refute it")],
)
def test_undecided_says_what_would_decide(runs: int, claim: Any, words: str) -> None:
    report = audit(lambda record, rng: record ^ int(rng.integers(2)), claim, records=2, runs=runs, seed=0)
    assert report.verdict == "undecided"
    assert words in report.sentence()


@given(st.integers(2, 50), st.floats(0.0, 8.0), st.sampled_from([0.0, 1e-5, 0.1]), st.sampled_from([0.05, 0.01]))
def test_the_fewest_runs_refute_a_claim_and_one_less_do_not(
    size: int, epsilon: float, delta: float, alpha: float
) -> None:
    fewest = fewest_runs(size, epsilon, delta, alpha)
    assert fewest is not None
    one, less = (certified_epsilon(Counts(runs, runs, runs, size), alpha, delta) for runs in (fewest, fewest - 1))
    assert one > epsilon >= less


def test_runs_that_were_not_read_get_one_sentence() -> None:
    path: Any = "runs.csv"
    with pytest.raises(DpriskError, match=r"recorded\(FILE\), not a str"):
        audit_recorded(path, 1.0)


def test_zero_is_a_number_like_any_other_but_not_among_entries() -> None:
    """Rounded noise is zero at times, as often as a claim allows: this hid what only the form of outputs tells."""
    width = np.float32
    outputs = [0.0, 1.5, -0.0, width(0), width(1.5), (0.0, 1.5), (1.5, 1.5)]
    zero, usual, minus, narrow_zero, narrow, with_zero, without = Seen(as_outputs(outputs)).tokens(Form()).tolist()
    assert zero == usual
    assert narrow_zero == narrow
    assert len({usual, minus, narrow, with_zero, without}) == 5
    assert form_of(0.0) == form_of(1.5)
    assert form_of(width(0)) == form_of(width(1.5)) == "is a float32"
