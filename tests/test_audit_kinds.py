"""Kinds of outputs: what a failure says, and types that are equal, or written alike, and still are not the same."""

from collections import OrderedDict, deque
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dprisk import audit
from dprisk.auditing import as_target
from dprisk.auditing.code.failures import Failure
from dprisk.auditing.code.outputs import as_outputs, digests
from dprisk.auditing.evidence.views import Form, Seen, Value


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
