"""Kinds of outputs: what a failure says, and types that are equal, or written alike, and still are not the same."""

from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dprisk import audit
from dprisk.auditing import as_target
from dprisk.auditing.code.failures import Failure
from dprisk.auditing.code.outputs import as_outputs, digests
from dprisk.auditing.evidence.entries import entries
from dprisk.auditing.evidence.kinds import entry_kinds
from dprisk.auditing.evidence.layouts import Layout
from dprisk.auditing.evidence.numbers import held_number
from dprisk.auditing.evidence.views import Form, Seen, Value
from dprisk.types import AnyArray


def rounded(record: int, rng: np.random.Generator) -> float:
    return round(float(record + rng.laplace()), 2)


def says_the_record(record: int, rng: np.random.Generator) -> float:
    if rng.random() < 0.05:
        raise ValueError(f"value {record} is out of range")
    return rounded(record, rng)


def says_it_beside_noise(record: int, rng: np.random.Generator) -> float:
    if rng.random() < 0.05:
        raise ValueError(f"at {rng.random()}: value {record} is out of range")
    return rounded(record, rng)


def says_an_address(record: int, rng: np.random.Generator) -> float:
    if rng.random() < 0.05:
        raise ValueError(f"{object()} is out of range")
    return rounded(record, rng)


def fails_with_a_key(record: int, rng: np.random.Generator) -> float:
    raise KeyError(record if record else "x")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (says_the_record, r"The output is a failure (ValueError: value 1 is out of range) in"),
        (says_it_beside_noise, "The output holds the word "),
        (fails_with_a_key, "The output is a failure (KeyError: 1) in all"),
    ],
)
def test_a_failure_is_looked_at_with_what_it_says(code: Callable[..., Any], words: str) -> None:
    report = audit(as_target(code, [0, 1], failures=True), 1.0, runs=10_000, seed=0)
    assert report.verdict == "violated"
    assert words in report.sentence()


def test_addresses_in_messages_tell_nothing() -> None:
    target = as_target(says_an_address, [0, 1], failures=True)
    outputs = target.sample(np.zeros(400, dtype=int), np.random.default_rng(0))
    assert {output for output in outputs if isinstance(output, Failure)} == {
        Failure("ValueError", "<object object at 0x...> is out of range")
    }
    assert audit(target, 1.0, runs=5000, seed=0).verdict == "consistent with the claim"


def test_the_form_of_a_failure_is_its_kind_alone() -> None:
    seen = Seen(as_outputs([Failure("KeyError", "1"), Failure("KeyError", "2"), Failure("ValueError", "1")]))
    one, two, other = seen.tokens(Form()).tolist()
    assert one == two != other
    assert len(set(seen.tokens(Value()).tolist())) == 3
    assert Form().words(one, seen.outputs[0]) == "the output is a failure (KeyError)"


def test_only_so_much_of_a_message_is_kept() -> None:
    assert Failure.of(ValueError("a\n  " + "b" * 1000)) == Failure("ValueError", "a " + "b" * 198)
    assert repr(Failure.of(ValueError())) == "a failure (ValueError)"


class Kept(NamedTuple):
    value: float


class Suppressed(NamedTuple):
    value: float


class Grade(IntEnum):
    LOW = 1
    HIGH = 2


class Sizes(list[int]):
    """A list of somebody's own."""


def frame(kind: str, name: str | None = None) -> Callable[[int], Any]:
    return lambda number: pd.DataFrame({"n": np.array([number], dtype=kind), "x": [0.5]}).rename_axis(name)


ALIKE: dict[str, tuple[Callable[[int], Any], Callable[[int], Any]]] = {
    "columns of a frame": (frame("int64"), frame("float64")),
    "the name of an index": (frame("int64"), frame("int64", "id")),
    "a series": (lambda number: pd.Series([number]), lambda number: pd.Series([number], dtype="Int64")),
    "a series of polars": (
        lambda number: pl.Series("n", [number], dtype=pl.Int32),
        lambda number: pl.Series("n", [number], dtype=pl.Int64),
    ),
    "a frame of polars": (
        lambda number: pl.DataFrame({"n": [number]}, schema={"n": pl.Int32}),
        lambda number: pl.DataFrame({"n": [number]}, schema={"n": pl.Int64}),
    ),
    "named tuples": (Kept, Suppressed),
    "a named tuple": (lambda number: (number,), Kept),
    "an ordered dict": (lambda number: {"v": number}, lambda number: OrderedDict(v=number)),
    "a deque": (lambda number: [number], lambda number: deque([number])),
    "a list of one's own": (lambda number: [number], lambda number: Sizes([number])),
    "a byte array": (lambda number: bytes([number]), lambda number: bytearray([number])),
    "an enumeration": (int, Grade),
    "an enumeration in a list": (lambda number: [number], lambda number: [Grade(number)]),
    "an enumeration in lists": (lambda number: [[number]], lambda number: [[Grade(number)]]),
    "narrow complex numbers": (
        lambda number: np.array([number], dtype=np.complex128),
        lambda number: np.array([number], dtype=np.complex64),
    ),
}


@pytest.mark.parametrize("what", ALIKE)
def test_what_is_of_another_type_looks_different(what: str) -> None:
    """In whatever block it comes, and it is the same in each."""
    one, two = (make(1) for make in ALIKE[what])
    views = [Value(), Form()] if what != "named tuples" else [Value()]
    together = [Seen(as_outputs([one, two])).tokens(view).tolist() for view in views]
    alone = [[int(Seen(as_outputs([value])).tokens(view)[0]) for value in (one, two)] for view in views]
    assert together == alone
    assert together[0][0] != together[0][1]
    assert digests(as_outputs([one]).tolist()) != digests(as_outputs([two]).tolist())


@pytest.mark.parametrize("what", ALIKE)
def test_a_type_that_gives_the_record_away_is_found(what: str) -> None:
    usual, rare = ALIKE[what]

    def code(record: int, rng: np.random.Generator) -> Any:
        return (rare if record and rng.random() < 0.3 else usual)(int(rng.integers(1, 3)))

    def honest(record: int, rng: np.random.Generator) -> Any:
        return (rare if rng.random() < 0.3 else usual)(int(rng.integers(1, 3)))

    report = audit(code, 1.0, records=[0, 1], runs=2000, seed=0)
    assert report.verdict == "violated"
    assert report.witnesses[0].other_times == 0
    assert audit(honest, 1.0, records=[0, 1], runs=1000, seed=0).verdict == "consistent with the claim"


def of_complex(numbers: AnyArray) -> Any:
    return numbers[::2] + 1j * numbers[1::2]


OTHER_NUMBERS: dict[str, Callable[[AnyArray], Any]] = {
    "complex numbers": of_complex,
    "narrow complex numbers": lambda numbers: of_complex(numbers).astype(np.complex64),
    "decimals": lambda numbers: [Decimal(str(number)) for number in numbers.tolist()],
    "fractions": lambda numbers: [Fraction(str(number)) for number in numbers.tolist()],
    "spans": lambda numbers: [timedelta(0, number) for number in numbers.tolist()],
}


@pytest.mark.parametrize("what", OTHER_NUMBERS)
def test_entries_that_are_numbers_of_another_kind_are_compared_with_each_other(what: str) -> None:
    """Neither of two entries tells the record, and their difference does."""

    def code(record: int, rng: np.random.Generator) -> Any:
        numbers = np.round(rng.normal(size=8) * 5, 3)
        numbers[6] = numbers[2] + record
        return OTHER_NUMBERS[what](np.round(numbers, 3))

    report = audit(code, 1.0, records=[0, 1], runs=4000, seed=0)
    assert report.verdict == "violated"
    assert report.witnesses[0].other_times == 0
    assert (
        audit(lambda record, rng: code(0, rng), 1.0, records=[0, 1], runs=2000).verdict == "consistent with the claim"
    )


def test_the_parts_of_complex_numbers_and_the_units_of_times_are_named() -> None:
    outputs = as_outputs([[number + 1j, timedelta(0, number), 0.5] for number in (1.0, 2.0)])
    assert [entry.name for entry in entries(outputs, Layout(4))] == [
        "the real part of entry 1",
        "the imaginary part of entry 1",
        "entry 2 in seconds",
        "entry 3",
    ]
    assert Layout(4).columns(outputs).tolist() == [[1.0, 2.0], [1.0, 1.0], [1.0, 2.0], [0.5, 0.5]]


ZONE = timezone(timedelta(0, 3600))


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (Decimal("0.10"), 0.1),
        (Decimal("0.1000000000000000000001"), None),
        (Decimal("NaN"), None),
        (Decimal("1e999"), None),
        (Fraction(1, 3), 1 / 3),
        (Fraction(10**400, 3), None),
        (Fraction(1, 10**9), None),
        (timedelta(-1, 0, 1), -86399.999999),
        (datetime(1970, 1, 1, 0, 1), 60.0),
        (datetime(1970, 1, 1, 1, 1, tzinfo=ZONE), None),
        ("0.1", None),
    ],
)
def test_a_float_stands_for_one_number_of_a_kind_only(value: Any, number: float | None) -> None:
    assert held_number(value) == number


def test_decimals_of_other_lengths_and_times_of_other_zones_stay_visible() -> None:
    for one, two in ((Decimal("1.5"), Decimal("1.50")), (datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=ZONE))):
        seen = Seen(as_outputs([(one, 0.5), (two, 0.5)]))
        (kinds,), column = entry_kinds(seen.outputs, Layout(2), [0]).tolist(), seen.columns(Layout(2))[0].tolist()
        assert kinds[0] != kinds[1] or column[0] != column[1]


def test_the_last_bits_of_a_narrow_float_are_explained() -> None:
    def code(record: int, rng: np.random.Generator) -> Any:
        return {"v": np.float32(record) + np.float32(rng.laplace(scale=2.0))}

    assert (
        audit(code, 0.5, records=[0, 1], runs=8000, seed=0)
        .sentence()
        .endswith("round what is published, and audit it again.")
    )
