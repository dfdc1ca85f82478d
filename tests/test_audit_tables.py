"""Leaks in rows of tables, and in entries that go by a key: neither stands at the same place in every output."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import audit
from dprisk.auditing.code.outputs import as_objects, as_outputs
from dprisk.auditing.evidence.keyed import Keyed, keyed_layout_of
from dprisk.auditing.evidence.numbers import leaves
from dprisk.auditing.evidence.parts import Parts, parts_of
from dprisk.auditing.evidence.table_rows import is_table, leaves_and_rows, telling_rows
from dprisk.auditing.evidence.views import Seen

Rng = np.random.Generator
Array = np.ndarray[Any, Any]


def table(record: int, rng: Rng) -> Array:
    """Of random numbers, each as often with either record; the row (4, 4, 4) comes with the second record alone."""
    rows = rng.integers(5, size=(15, 3))
    full = (rows == 4).all(axis=1)
    rows[full, 2] = rng.integers(4, size=full.sum())
    if record:
        rows[rng.integers(15)] = 4
    return rows


TABLES: dict[str, tuple[Callable[[Array], Any], str]] = {
    "array": (lambda rows: rows, "the row (4, 4, 4)"),
    "floats": (lambda rows: rows / 10, "the row (0.4, 0.4, 0.4)"),
    "frame": (lambda rows: pd.DataFrame(rows, columns=list("abc")), "the row (4, 4, 4)"),
    "dicts": (lambda rows: [dict(zip("abc", row, strict=True)) for row in rows.tolist()], "the row {'a': 4, 'b': 4, "),
    "tuples": (lambda rows: [(*row, "x") for row in rows.tolist()], "the row (4, 4, 4, 'x')"),
    "lines": (lambda rows: "\n".join(",".join(map(str, row)) for row in rows.tolist()), "the line '4,4,4'"),
    "set": (lambda rows: frozenset(map(tuple, rows.tolist())), "the row (4, 4, 4)"),
    "json": (lambda rows: json.dumps(rows.tolist()), "the row (4, 4, 4)"),
}


@pytest.mark.parametrize("shape", TABLES)
def test_a_row_of_a_shuffled_table_is_looked_at_as_a_whole(shape: str) -> None:
    written, row = TABLES[shape]

    def code(record: int, rng: Rng) -> Any:
        return written(table(record, rng))

    def honest(record: int, rng: Rng) -> Any:
        return written(table(0, rng))

    report = audit(code, 1.0, records=2, runs=1500, seed=0)
    assert report.verdict == "violated"
    assert any(f"the output holds {row}" in witness.what for witness in report.witnesses)
    assert audit(honest, 1.0, records=2, runs=1500, seed=0).verdict != "violated"


def users(record: float, rng: Rng) -> list[dict[str, Any]]:
    """In any order; the score of the third one is all but exact."""
    scale = np.where(np.arange(12) == 3, 0.1, 3.0)
    scores = np.where(np.arange(12) == 3, record, 0.5) + rng.laplace(scale=scale)
    return [{"id": place, "score": round(float(scores[place]), 2)} for place in rng.permutation(12).tolist()]


def sparse(record: float, rng: Rng) -> dict[str, float]:
    """Those alone that are drawn."""
    drawn = np.flatnonzero(rng.random(20) < 0.3).tolist()
    return {
        f"g{place}": float(3 * record * (place == 7) + rng.normal(scale=0.3 if place == 7 else 3)) for place in drawn
    }


def missing(record: float, rng: Rng) -> dict[int, int]:
    """Counts that are there or not: that of 7 as good as never without the second record."""
    chances = np.where(np.arange(20) == 7, 0.05 + 0.4 * record, 0.3)
    return {place: int(rng.integers(1000)) for place in np.flatnonzero(rng.random(20) < chances).tolist()}


def of_pairs(output: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in output] if isinstance(output, list) else list(output.items())


KEYED: dict[Callable[..., Any], dict[Callable[[Any], Any], str]] = {
    users: {
        list: "'score' of the row whose 'id' is 3 is ",
        of_pairs: "the entry of 3 is ",
        json.dumps: "'score' of the row whose 'id' is 3 is ",
    },
    sparse: {dict: "the entry of 'g7' is ", of_pairs: "the entry of 'g7' is ", json.dumps: "the entry of 'g7' is "},
    missing: {dict: "the number of entries of 7 is ", of_pairs: "the number of entries of 7 is "},
}


@pytest.mark.parametrize(("code", "written"), [(code, written) for code, some in KEYED.items() for written in some])
def test_what_goes_by_a_key_is_found_wherever_it_stands(code: Callable[..., Any], written: Callable[..., Any]) -> None:
    def leaking(record: int, rng: Rng) -> Any:
        return written(code(record, rng))

    def honest(record: int, rng: Rng) -> Any:
        return written(code(0.5, rng))

    report = audit(leaking, 1.0, records=2, runs=2000, seed=0)
    assert report.verdict == "violated"
    told = [witness for witness in report.witnesses if KEYED[code][written] in witness.what]
    assert told, [witness.what for witness in report.witnesses]
    assert audit(honest, 1.0, records=2, runs=2000, seed=0).verdict != "violated"


KEYS = st.one_of(st.integers(0, 30), st.text("abc", min_size=1, max_size=2))


@given(st.lists(st.dictionaries(KEYS, st.floats(-9, 9), max_size=8), min_size=8, max_size=40), st.booleans())
def test_a_column_has_what_stands_beside_its_key(outputs: list[dict[Any, float]], as_text: bool) -> None:
    written = [json.dumps(output) for output in outputs] if as_text else outputs
    layout = keyed_layout_of(as_objects(written))
    if layout is None:
        keys = [list(output) for output in outputs if output]
        often = [key for key in {key for some in keys for key in some} if sum(key in some for some in keys) > 1]
        assert as_text or not often or all(some == keys[0] for some in keys)
        return
    held = layout.columns(as_objects(written))
    assert len(held) == layout.size == len(layout.names)
    for name, column in zip(layout.names, held, strict=True):
        key = next(key for key in layout.keys if name.endswith(f" of {key!r}"))
        found = [output.get(key, output.get(int(key)) if as_text and key.isdigit() else None) for output in outputs]
        is_count = name.startswith("the number")
        wanted = [value is not None if is_count else np.nan if value is None else value for value in found]
        assert np.array_equal(column, np.array(wanted, dtype=float), equal_nan=True)


def test_entries_that_stand_at_the_same_places_need_no_key() -> None:
    rng = np.random.default_rng(0)
    for code in (
        lambda: {"a": rng.normal(), "b": rng.normal()},
        lambda: rng.normal(size=(4, 3)),
        lambda: (rng.normal(), 3),
        lambda: f"{rng.normal():.3f}",
        lambda: table(0, rng),
    ):
        assert keyed_layout_of(as_outputs([code() for _ in range(100)])) is None


def test_a_key_that_comes_twice_is_counted_and_its_entries_are_not() -> None:
    layout = Keyed(2, (), ("a",), come_and_go=True)
    held = layout.columns(
        as_objects([[("a", 1.5), ("b", 2)], [("a", 1), ("a", 2)], [("b", 3), ("c", 4)], [("a", 1, 2)], 5])
    )
    assert np.array_equal(held, [[1, 2, 0, np.nan, np.nan], [1.5, np.nan, np.nan, np.nan, np.nan]], equal_nan=True)


def test_tables_of_numbers_and_lists_of_rows_hold_the_same_rows() -> None:
    rng = np.random.default_rng(0)
    records = rng.integers(2, size=300)
    tables = np.array([table(record, rng) for record in records.tolist()])
    view = telling_rows(tables, records)
    assert is_table(tables)
    assert view.rows[0].tolist() == [4, 4, 4]
    some = [tuple(row) for row in view.rows.tolist()]
    assert np.array_equal(view.tokens(Seen(tables)), Parts(some).tokens(Seen(as_objects(tables.tolist()))))


def test_rows_are_parts_and_fields_of_a_dict_are_none() -> None:
    output = as_objects([[{"a": 1, "b": 2}, {"a": 1, "b": 3}]])[0]
    every, rows = leaves_and_rows(output)
    assert tuple(every) == leaves(output)
    assert rows == list(output)
    assert ("F", 99) in parts_of((("F", 99), ("M", 3), ("F", 7)))
    assert set(parts_of("x,y\nz")) == {"x", ",", "y", "\n", "z", "x,y"}
