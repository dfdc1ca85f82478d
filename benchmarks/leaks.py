"""Leaks that an audit must find with default settings, in how many of 20 seeds it does, and what more runs gain.

    python -m benchmarks.leaks [--part NAME ...] [--seeds 20] [--jobs N]

rare     Laplace noise at epsilon 1, rounded, that gives a record away with probability p: verbatim, or on one of two
         records by NaN, a sentinel, the sign of zero, None, another type, another length, an exception.
many     one record in a thousand that is given away always; randomised response over 3,052 whole numbers.
growth   what correct code, and code with too little noise, is certified with 20,000, 100,000 and a million runs.

A leak counts as found if the claim is refuted and a witness is given. Rows that miss what is wanted say so.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from benchmarks.false_alarms import five, flipped, geometric, on_a_grid, rows
from dprisk.auditing import AuditReport, as_target, audit
from dprisk.types import AnyArray, IntArray

GRID = 1024
RARE = {0.01: 20_000, 0.001: 100_000, 0.0002: 1_000_000}  # the chance of a disclosure, and the runs that must show it
ENOUGH = 0.95  # of all seeds
RUNS = (20_000, 100_000, 1_000_000)

Code = Callable[[IntArray, np.random.Generator], Any]
Audit = Callable[[int], AuditReport]


# --- rare disclosures ---


def on_one_record(output: float, record: int, value: Any) -> Any:
    return value if record == 0 else output


def fails_on_one_record(output: float, record: int) -> float:
    if record == 0:
        raise ValueError
    return output


KINDS: dict[str, Callable[[float, int], Any]] = {
    "verbatim": lambda output, record: record,
    "NaN": partial(on_one_record, value=math.nan),
    "sentinel": partial(on_one_record, value=-999.0),
    "-0.0": partial(on_one_record, value=-0.0),
    "None": partial(on_one_record, value=None),
    "dtype": lambda output, record: np.float32(output) if record == 0 else output,
    "length": lambda output, record: [output] if record == 0 else output,
    "exception": fails_on_one_record,
}


def disclosing(kind: str, chance: float) -> Callable[[int, np.random.Generator], Any]:
    """Laplace noise on a grid, which is private, but for what it does with this chance."""
    disclose = KINDS[kind]

    def code(record: int, rng: np.random.Generator) -> Any:
        output = round((record + rng.laplace()) * GRID) / GRID
        return disclose(output, record) if rng.random() < chance else output

    return code


def rare(kind: str, chance: float, seed: int) -> AuditReport:
    code = disclosing(kind, chance)
    target = as_target(code, [0, 1], failures=kind == "exception")
    return audit(target, 1.0, runs=RARE[chance], seed=seed)


# --- one of many ---


def gives_one_away(records: IntArray, rng: np.random.Generator) -> AnyArray:
    """Randomised response over a thousand records, but that record 777 always tells the truth."""
    return np.where(records == 777, 777, five(records, rng, 1000))


def one_of_a_thousand(seed: int) -> AuditReport:
    return audit(as_target(gives_one_away, list(range(1000)), batch=True), 1.0, runs=100_000, seed=seed)


def over_3052(records: IntArray, rng: np.random.Generator) -> AnyArray:
    """Randomised response at epsilon 6 over 3,052 whole numbers."""
    size, kept = 3052, math.exp(6)
    honest = rng.random(records.size) < (kept - 1) / (kept + size - 1)
    return np.where(honest, records, rng.integers(size, size=records.size))


def whole_numbers(seed: int) -> AuditReport:
    return audit(as_target(over_3052, list(range(3052)), batch=True), 6.0, runs=1_000_000, seed=seed)


# --- certificates against runs ---


def truncated(records: IntArray, rng: np.random.Generator) -> AnyArray:
    """Laplace noise at epsilon 1 on two positions half as far apart, drawn again until it lies in [0, 1]."""
    outputs = np.full(records.size, math.nan)
    while (left := np.flatnonzero(np.isnan(outputs))).size:
        tried = records[left] / 2 + rng.laplace(size=left.size)
        outputs[left] = np.where((tried >= 0) & (tried <= 1), np.round(tried * GRID) / GRID, math.nan)
    return outputs


def half_the_noise(records: IntArray, rng: np.random.Generator) -> AnyArray:
    return np.round((records + rng.laplace(scale=0.5, size=records.size)) * GRID) / GRID


GROWING: tuple[Code, ...] = (flipped, five, geometric, on_a_grid, rows, truncated, half_the_noise)


def grown(code: Code, runs: int, seed: int) -> AuditReport:
    records = list(range(5 if code is five else 2))
    return audit(as_target(code, records, batch=True), 1.0, runs=runs, seed=seed)


# --- tables ---


def facts(make: Audit, seed: int) -> tuple[bool, float, str]:
    """Whether a leak was found and shown, the certified epsilon, and the witness."""
    report = make(seed)
    found = report.verdict == "violated" and bool(report.witnesses)
    return found, report.epsilon_certified, report.witnesses[0].what if report.witnesses else ""


def print_found(name: str, make: Audit, seeds: int, pool: ProcessPoolExecutor) -> None:
    started = time.perf_counter()
    each = list(pool.map(partial(facts, make), range(1, seeds + 1)))
    count, certified = sum(found for found, _, _ in each), float(np.median([number for _, number, _ in each]))
    shown = next((words for found, _, words in each if found), "")
    print(
        f"   {name:34} found in {count:2} of {seeds}   certified {certified:5.2f}"
        f"   {time.perf_counter() - started:4.0f} s{'' if count >= ENOUGH * seeds else '   MISSED'}   {shown}",
        flush=True,
    )


def print_rare(seeds: int, pool: ProcessPoolExecutor) -> None:
    print("\nRare disclosures of code that claims epsilon 1; the median certificate")
    for chance, kind in ((chance, kind) for chance in RARE for kind in KINDS):
        print_found(f"{kind}, {chance:g} in {RARE[chance]:,} runs", partial(rare, kind, chance), seeds, pool)


def print_many(seeds: int, pool: ProcessPoolExecutor) -> None:
    print("\nMany records")
    print_found("record 777 of 1,000, 100,000 runs", one_of_a_thousand, seeds, pool)
    certified = sorted(number for _, number, _ in pool.map(partial(facts, whole_numbers), range(1, seeds + 1)))
    missed = "" if certified[0] >= ENOUGH * 6 else "   MISSED"
    print(f"   GRR over 3,052 numbers, epsilon 6, a million runs: {certified[0]:.3f} to {certified[-1]:.3f}{missed}")


def print_growth(seeds: int, pool: ProcessPoolExecutor) -> None:
    print(f"\nMedian certificates with {', '.join(f'{runs:,}' for runs in RUNS)} runs")
    for code in GROWING:
        medians = list(_medians(code, seeds, pool))
        missed = "" if medians == sorted(medians) else "   MISSED"
        print(f"   {code.__name__:34} {'   '.join(f'{number:.3f}' for number in medians)}{missed}", flush=True)


def _medians(code: Code, seeds: int, pool: ProcessPoolExecutor) -> Iterator[float]:
    for runs in RUNS:
        each = pool.map(partial(facts, partial(grown, code, runs)), range(1, seeds + 1))
        yield float(np.median([number for _, number, _ in each]))


PARTS = {"rare": print_rare, "many": print_many, "growth": print_growth}


def main() -> None:
    parser = argparse.ArgumentParser(description="How surely audits find leaks, and what they gain with runs.")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the seeds of a row")
    given = parser.parse_args()
    with ProcessPoolExecutor(given.jobs) as pool:
        for part in given.part:
            PARTS[part](given.seeds, pool)


if __name__ == "__main__":
    main()
