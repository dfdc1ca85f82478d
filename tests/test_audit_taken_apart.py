"""Leaks in text, in long vectors, in tokens, in what several entries come to: outputs are taken apart to find them."""

import functools
import json
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import audit, audit_recorded
from dprisk.auditing.code.outputs import as_objects, as_outputs
from dprisk.auditing.code.recordings import Recorded
from dprisk.auditing.evidence.entries import direction_of, entries
from dprisk.auditing.evidence.fitted import Bins
from dprisk.auditing.evidence.layouts import CHARACTERS, KINDS, Layout, Text, layout_of, numbers_only
from dprisk.auditing.evidence.parts import Parts, parts_of, telling_parts
from dprisk.auditing.evidence.views import Seen

Rng = np.random.Generator


def noise(rng: Rng, scale: float = 2.0) -> float:
    return round(float(rng.laplace(scale=scale)), 2)


def letters(rng: Rng, count: int) -> str:
    return "".join(chr(97 + code) for code in rng.integers(26, size=count))


def one_noise_for_all_rows(record: int, rng: Rng) -> Any:
    table = np.zeros((13, 13))
    table[3 + record, 5] = 1
    return np.round(table + rng.laplace(scale=2, size=13), 2)


def noise_for_one_entry_only(record: int, rng: Rng) -> Any:
    return np.round(rng.normal(size=300) + 0.3 * record, 2)


def wider_noise(record: int, rng: Rng) -> Any:
    return np.round(rng.normal(scale=1 + 0.2 * record, size=200), 2)


def exact_total(record: int, rng: Rng) -> Any:
    numbers = rng.laplace(scale=2, size=160)
    numbers[0] += record - numbers.sum()
    return np.round(numbers, 3)


def difference_in_json(record: int, rng: Rng) -> str:
    numbers = [noise(rng, 5) for _ in range(9)]
    return json.dumps([*numbers[:8], round(numbers[7] + 10 + record, 2)])


def order_in_json(record: int, rng: Rng) -> str:
    one, two = noise(rng), noise(rng)
    return json.dumps({"x": one, "y": two} if record else {"y": two, "x": one})


def name_behind_many_numbers(record: int, rng: Rng) -> str:
    return json.dumps({"counts": [noise(rng) for _ in range(70)], "user": ["alice", "bobby"][record]})


def coarser_entry(record: int, rng: Rng) -> Any:
    numbers = np.round(rng.laplace(scale=10, size=20), 2)
    numbers[15] = np.round(numbers[15], 1) if record else numbers[15]
    return numbers


def exact_entry_at_times(record: int, rng: Rng) -> Any:
    numbers = np.round(rng.normal(size=12), 3)
    numbers[9] = 0.253 if record and rng.random() < 0.1 else numbers[9]
    return numbers


def last_bit_of_a_pixel(record: int, rng: Rng) -> Any:
    pixels = rng.integers(256, size=(9, 9)).astype(np.uint8)
    pixels[6, 6] = (pixels[6, 6] & 254) | record
    return pixels


def longer_token(record: int, rng: Rng) -> dict[str, Any]:
    return {"value": noise(rng), "blob": letters(rng, 16 + 4 * record)}


def longer_bytes(record: int, rng: Rng) -> tuple[float, bytes]:
    return noise(rng), rng.bytes(16 + 4 * record)


def country_in_an_identifier(record: int, rng: Rng) -> dict[str, Any]:
    return {"id": rng.bytes(4).hex() + ["FR", "DE"][record] + rng.bytes(2).hex(), "v": noise(rng)}


def end_of_a_large_number(record: int, rng: Rng) -> tuple[float, int]:
    return noise(rng), int(rng.integers(2**62)) * 2**20 + record


def one_of_thirty_bits(record: int, rng: Rng) -> int:
    answers, honest = int(rng.integers(2**30)), rng.random() < 0.99
    return (answers & ~(1 << 10)) | (int(honest == bool(record)) << 10)


def anywhere_in_a_list(record: int, rng: Rng) -> Any:
    numbers = np.round(rng.normal(size=40), 4)
    numbers[rng.integers(40)] = (0.3712, -0.5261)[record]
    return numbers


def length_of_a_vector(record: int, rng: Rng) -> Any:
    vector = rng.normal(size=10)
    return np.round(vector / np.linalg.norm(vector) * (1 + 0.1 * record), 4)


def same_noise_at_times(record: int, rng: Rng) -> list[float]:
    one, two = noise(rng, 3), noise(rng, 3)
    return [round(3 + one, 2), round(8 + (one if record and rng.random() < 0.1 else two), 2)]


def same_factor_at_times(record: int, rng: Rng) -> Any:
    factors = np.exp(rng.normal(size=4))
    factors[3] = factors[1] if rng.random() < 0.1 else factors[3]
    return np.round(np.array([10, 12, 11, 13 + record]) * factors, 4)


def often_nan(record: int, rng: Rng) -> Any:
    numbers = np.round(rng.laplace(size=6), 2)
    numbers[:5][rng.random(5) < 0.3] = np.nan
    numbers[5] = np.nan if record and rng.random() < 0.1 else numbers[5]
    return numbers


def often_none(record: int, rng: Rng) -> dict[str, Any]:
    return {
        f"a{place}": None if np.isnan(number) else number
        for place, number in enumerate(often_nan(record, rng).tolist())
    }


def minus_zero_of_one(record: int, rng: Rng) -> Any:
    numbers = np.round(rng.laplace(size=6))
    numbers[5] += 0.0 if not record else -0.0
    return numbers


def whole_number_of_one(record: int, rng: Rng) -> list[float]:
    numbers = [round(float(rng.laplace()), None if rng.random() < 0.3 else 0) for _ in range(6)]
    return [*numbers, round(float(rng.laplace()), None if record else 0)]


def late_in_the_month(record: int, rng: Rng) -> tuple[float, date]:
    year, month, day = rng.integers((1950, 1, 1), (2020, 13, 15)).tolist()
    return noise(rng), date(year, month, day + 14 * record)


def end_of_an_identifier(record: int, rng: Rng) -> tuple[float, UUID]:
    return noise(rng), UUID(bytes=rng.bytes(15) + bytes([record]))


def folder(record: int, rng: Rng) -> tuple[float, PurePosixPath]:
    return noise(rng), PurePosixPath(f"/{rng.integers(10**9)}/{'ab'[record]}")


def denominator(record: int, rng: Rng) -> Fraction:
    return Fraction(int(rng.integers(1, 900_000)), (999_979, 999_983)[record])


def parity_of_bits(record: int, rng: Rng) -> Any:
    bits = rng.random(40) < 0.5
    bits[20] ^= bool(bits.sum() % 2) != bool(record)
    return bits


def parity_of_bits_in_text(record: int, rng: Rng) -> str:
    return "".join("01"[int(bit)] for bit in parity_of_bits(record, rng))


def bit_in_the_middle_of_a_text(record: int, rng: Rng) -> str:
    bits = rng.integers(2, size=100)
    bits[50] = record if rng.random() < 0.95 else 1 - record
    return "".join(map(str, bits.tolist()))


def capital_anywhere(record: int, rng: Rng) -> str:
    text, place = letters(rng, 24), int(rng.integers(24))
    return text[:place] + (text[place:].capitalize() if record else text[place:])


LEAKS: dict[Callable[..., Any], str] = {
    one_noise_for_all_rows: "entry 45 minus entry 58 is -1.0",
    noise_for_one_entry_only: "sum of all numbers",
    wider_noise: "squares of all numbers",
    exact_total: "sum of all numbers",
    difference_in_json: "number 9 of 9 in the output",
    order_in_json: "with # for each number, of the output is '{\"",
    name_behind_many_numbers: "holds the word '",
    coarser_entry: "entry 16 ",
    exact_entry_at_times: "entry 10 is 0.253",
    last_bit_of_a_pixel: "the bit of 2^0 of entry 61 is",
    longer_token: "number of characters of 'blob'",
    longer_bytes: "number of bytes of entry 2",
    country_in_an_identifier: "character 9 of 'id' is '",
    end_of_a_large_number: "hexadecimal digit 1 from the end of entry 2 is '",
    one_of_thirty_bits: "bit of 2^10",
    anywhere_in_a_list: "the output holds ",
    length_of_a_vector: "squares of all numbers",
    same_noise_at_times: "minus entry",
    same_factor_at_times: "entry 2 divided by entry 4 is 0.",
    often_nan: "entry 6 is NaN",
    often_none: "'a5' is None",
    minus_zero_of_one: "entry 6 is minus zero",
    whole_number_of_one: "entry 7 is a",
    late_in_the_month: "number 3 of 3 in entry 2 is",
    end_of_an_identifier: "character 1 from the end of entry 2 is '",
    folder: "with # for each number, of entry 2 is '/#/",
    denominator: "number 2 of 2 in the output is",
    parity_of_bits: "number of entries of the output that are True is",
    parity_of_bits_in_text: "number of 1s in the output is",
    bit_in_the_middle_of_a_text: "character 51 of the output is '",
    capital_anywhere: "number of capital letters in the output is",
}


AT_TIMES = (exact_entry_at_times, same_noise_at_times, same_factor_at_times, coarser_entry, last_bit_of_a_pixel)


@pytest.mark.parametrize("code", LEAKS)
def test_a_leak_is_found_wherever_it_hides(code: Callable[..., Any]) -> None:
    report = audit(code, 1.0, records=2, runs=10_000 if code in AT_TIMES else 4000, seed=0)
    assert report.verdict == "violated"
    assert any(LEAKS[code] in witness.what for witness in report.witnesses), [w.what for w in report.witnesses]


def mostly(record: int, rng: Rng) -> bool:
    return bool(record) == (rng.random() < 0.9)


def one_entry_more(record: int, rng: Rng) -> tuple[int, ...]:
    return (int(rng.integers(7, 9)), *rng.integers(10**6, size=2 if mostly(record, rng) else 1).tolist())


def large_numbers(record: int, rng: Rng) -> tuple[int, str]:
    return 2**60 + 4096 * mostly(record, rng) + int(rng.integers(100)), letters(rng, 5)


def sum_beside_a_text(record: int, rng: Rng) -> tuple[int, int, int, str]:
    one, two = rng.integers(200, size=2).tolist()
    return one, two, (300 if mostly(record, rng) else 100) - one - two, letters(rng, 6)


def two_wordings(record: int, rng: Rng) -> str:
    return f"{rng.integers(1000)} {'people' if mostly(record, rng) else 'folks'} said {rng.integers(1000)}"


def not_a_number_among_negative_ones(record: int, rng: Rng) -> Any:
    numbers = np.round(-1 - 5 * rng.random(6), 3)
    numbers[rng.integers(6)] = np.nan if mostly(record, rng) else numbers[0]
    return numbers


def entries_and_numbers(output: Any) -> tuple[list[Any], list[float]]:
    entries = list(output) if not isinstance(output, str) else []
    numbers = [part for part in (entries or re.findall(r"\d+", output)) if not isinstance(part, str) or not entries]
    return entries, [float(number) for number in numbers]


def says(what: str, output: Any) -> bool | None:
    """Whether what a witness says is so, of the sentences that were false once; None of others."""
    entries, numbers = entries_and_numbers(output)
    if found := re.fullmatch(r"entry (\d+)(?: of (\d+))? is (\d+)", what):
        place, length = int(found[1]), int(found[2] or len(entries))
        return len(entries) == length and entries[place - 1] == int(found[3])
    if found := re.fullmatch(r"the (sum of all|largest|smallest) numbers? of the output is (-?\d+)", what):
        told = {"sum of all": sum(numbers), "largest": max(numbers), "smallest": min(numbers)}[found[1]]
        return bool(told == int(found[2]))
    if found := re.fullmatch(r"the output holds (-?\d+)", what):
        return int(found[1]) in numbers
    if found := re.fullmatch(r"the output has (\d+) entries, no two of them equal,", what):
        return len(entries) == int(found[1]) == len(set(entries))
    return None


@pytest.mark.parametrize(
    "code", [one_entry_more, large_numbers, sum_beside_a_text, two_wordings, not_a_number_among_negative_ones]
)
def test_what_is_said_of_entries_holds_of_so_many_runs(code: Callable[..., Any]) -> None:
    """Outputs of another length, numbers beyond 2^53, lengths of texts and NaN were counted as what they are not."""
    report = audit(code, 1.0, records=2, runs=5000, seed=0)
    assert report.verdict == "violated"
    rng = np.random.default_rng(1)
    outputs = [[code(record, rng) for _ in range(3000)] for record in (0, 1)]
    for witness in report.witnesses:
        for record, times, runs in (
            (witness.record, witness.times, witness.runs),
            (witness.other, witness.other_times, witness.other_runs),
        ):
            so = [says(witness.what, output) for output in outputs[record]]
            if None not in so:
                assert times / runs == pytest.approx(sum(map(bool, so)) / 3000, abs=0.05), witness.sentence()
        assert not (code is one_entry_more and witness.what.startswith("entry 1 is")), witness.sentence()


def shape_of_lists(record: int, rng: Rng) -> list[Any]:
    return [float(rng.random()), *(rng.integers(9, size=size).tolist() for size in (3 + record, 4 - record))]


def twelfth_bit_of_an_entry(record: int, rng: Rng) -> Any:
    numbers = rng.integers(2**30, size=4)
    numbers[2] = (int(numbers[2]) & ~(1 << 12)) | (record << 12)
    return numbers


def parity_of_a_large_entry(record: int, rng: Rng) -> tuple[int, float]:
    return 2**60 + 2 * int(rng.integers(2**40)) + record, 0.5


def character_beside_a_number(record: int, rng: Rng) -> tuple[float, str]:
    return noise(rng), f"{letters(rng, 4)}{'xy'[record]}{letters(rng, 3)} {rng.integers(1000)}"


def remainder_of_a_decimal(record: int, rng: Rng) -> tuple[Decimal, int]:
    return Decimal(7 * int(rng.integers(10**9)) + 3 * record), 1


@pytest.mark.parametrize(
    "code",
    [
        shape_of_lists,
        twelfth_bit_of_an_entry,
        parity_of_a_large_entry,
        character_beside_a_number,
        remainder_of_a_decimal,
    ],
)
def test_nothing_hides_in_shapes_bits_and_digits(code: Callable[..., Any]) -> None:
    assert audit(code, 1.0, records=2, runs=5000, seed=0).verdict == "violated"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "code",
    [
        lambda record, rng: functools.reduce(lambda held, _: (held,), range(70), (record,)),
        lambda record, rng: np.array([2**64 - 1 - int(rng.integers(1000)), record], dtype=np.uint64),
        lambda record, rng: np.r_[record, rng.choice([1.7e308, -1.7e308, 1e-320], size=5)],
    ],
)
def test_deep_and_huge_outputs_are_no_trouble(code: Callable[..., Any]) -> None:
    assert audit(code, 1.0, records=2, runs=2000, seed=0).verdict == "violated"


def test_recorded_text_that_is_never_the_same_is_taken_apart() -> None:
    rng = np.random.default_rng(0)
    records = rng.integers(2, size=3000)
    texts = as_objects([f"{letters(rng, 8)}{'xy'[record]}{letters(rng, 4)}" for record in records.tolist()])
    assert audit_recorded(Recorded(records, texts, (0, 1), "a file"), 1.0).verdict == "violated"


def test_a_word_is_counted_wherever_it_stands_in_a_text() -> None:
    def code(record: int, rng: Rng) -> str:
        numbers = map(str, rng.integers(10, 99, size=int(rng.integers(30, 100))).tolist())
        return f"{' '.join(numbers)} user {['alice', 'bobby'][record]}"

    report = audit(code, 1.0, records=2, runs=3000, seed=0)
    word = next(witness for witness in report.witnesses if "the word '" in witness.what)
    assert word.times == word.runs


@given(st.lists(st.text(max_size=20) | st.floats(allow_nan=False) | st.integers(), min_size=1, max_size=20))
def test_what_an_output_has_in_a_column_is_what_stands_there(values: list[Any]) -> None:
    """Of one output, as people read it, and of many, as numbers."""
    text = " ".join(map(str, values))
    layout = Layout(1, (Text(0, 0),))
    pieces, columns = layout.pieces(text), layout.columns(as_objects([text, text, "other"]))
    assert len(pieces) == layout.size == len(columns) == len(entries(as_objects([text]), layout))
    assert pieces[2] == len(text) == columns[2, 0]
    counts = 3 + len(KINDS)
    assert pieces[3:counts] == columns[3:counts, 0].tolist()
    shown = [piece != "\0" for piece in pieces[counts:]]
    assert shown == (~np.isnan(columns[counts:, 0])).tolist() or "\0" in text
    assert sum(shown) <= 2 * CHARACTERS[0]
    assert np.array_equal(columns[:, 0], columns[:, 1], equal_nan=True)


def test_numbers_in_text_are_entries() -> None:
    texts = as_objects([f'{{"a": {place}.5, "b": -{place}}}' for place in range(1, 40)])
    layout = layout_of(texts)
    assert layout == Layout(1, (Text(0, 2),))
    assert layout.number_places == [0, 6, 7]
    numbers = numbers_only(layout.columns(texts))[[6, 7]]
    assert numbers.T.tolist() == [[place + 0.5, -place] for place in range(1, 40)]
    assert entries(texts, layout)[7].name == "number 2 of 2 in the output"
    assert entries(texts, layout)[7].of(texts[3]) == -4


def test_names_in_a_dict_are_not_taken_apart() -> None:
    outputs = as_objects([{"name": letters(np.random.default_rng(place), 5), "n": place} for place in range(20)])
    assert layout_of(outputs) == Layout(4, (Text(1, 0),))


@given(st.integers(2, 30), st.integers(0, 1000))
def test_a_direction_is_that_in_which_two_records_are_apart(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = rng.integers(2, size=40 * size)
    shared = rng.normal(size=records.size)
    columns = np.tile(shared, (size, 1))
    columns[0] += records  # only what is left when the shared noise is taken out tells the record
    direction = direction_of(columns, records)
    sums = direction @ columns
    assert max(np.ptp(sums[records == record]) for record in (0, 1)) < 1e-6 * np.ptp(sums)


def test_few_runs_of_long_vectors_teach_what_each_entry_tells() -> None:
    rng = np.random.default_rng(0)
    records = rng.integers(2, size=300)
    columns = rng.normal(size=(400, 300)) + 0.3 * records
    assert not direction_of(columns, records).any()
    sums = direction_of(columns, records, apart_only=True) @ (rng.normal(size=(400, 300)) + 0.3 * records)
    assert abs(sums[records == 1].mean() - sums[records == 0].mean()) > 3 * sums[records == 0].std()


def test_bins_tell_two_numbers_apart_whatever_their_decimals() -> None:
    numbers = np.array([-0.06127451, 0.0] * 50)
    assert len(set(Bins(numbers, 8).places(numbers).tolist())) == 2


def test_parts_tell_a_whole_number_from_a_float_and_a_word_from_either() -> None:
    outputs = as_outputs([(1, "a"), (1.0, "a"), ("1", "b"), (True, 1)])
    view = Parts([1.0, 1, "1"])
    assert [int(token) for token in view.tokens(Seen(outputs))] == [1, 0, 2, 1]
    assert set(parts_of(("x y", (frozenset({"z"}), 3)))) == {"x", "y", "z", 3}
    assert telling_parts(as_objects(["a b", "a c"] * 5), np.array([0, 1] * 5))[:2] == ["b", "c"]
