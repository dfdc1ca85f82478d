"""How often an audit cries wolf: every way to audit, on code whose true epsilon is exactly its claim.

    python -m benchmarks.false_alarms [--quick] [--only WORD ...] [--jobs N]

A certificate above the claim is wrong, and may happen in a share alpha of all audits at most. Each row holds the
shares of 2,000 audits (`--quick`: 200) at alpha 0.05 and 0.01, and says so if one of them is above alpha and three
standard errors.

once      the runs were fixed beforehand, and the certificate is read at the end.
watched   the evidence is looked at after every hundred runs, and its largest value counts.
resumed   a store goes on after interruptions by somebody who stops whenever the evidence has fallen.
workers   eight processes, forked or fresh, and random numbers that the audit does not find.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import hidden_noise
from dprisk import GRR, OUE, Gaussian, Laplace, Prior, Threat
from dprisk.attacks import Report
from dprisk.auditing import AuditReport, Look, Neighbours, Running, as_target, audit, audit_recorded
from dprisk.auditing.code.recordings import Recorded
from dprisk.auditing.code.target import Target
from dprisk.guarantees import ApproxDP
from dprisk.types import AnyArray, BoolArray, FloatArray, IntArray

ALPHAS = (0.05, 0.01)
HONEST = math.e / (1 + math.e)  # randomised response at epsilon 1
WORKERS = 8

Alarms = tuple[bool, ...]  # for each alpha


# --- code whose epsilon is 1 exactly ---


def flipped(records: IntArray, rng: np.random.Generator) -> IntArray:
    return np.where(rng.random(records.size) < HONEST, records, 1 - records)


def five(records: IntArray, rng: np.random.Generator, size: int = 5) -> IntArray:
    honest = rng.random(records.size) < (math.e - 1) / (math.e + size - 1)
    return np.where(honest, records, rng.integers(size, size=records.size))


def hundred(records: IntArray, rng: np.random.Generator) -> IntArray:
    return five(records, rng, 100)


def thousand(records: IntArray, rng: np.random.Generator) -> IntArray:
    return five(records, rng, 1000)


def geometric(records: IntArray, rng: np.random.Generator) -> IntArray:
    one, two = rng.geometric(1 - math.exp(-1), size=(2, records.size))
    return np.asarray(records + one - two)


def on_a_grid(records: IntArray, rng: np.random.Generator) -> FloatArray:
    return np.round((records + rng.laplace(size=records.size)) * 1024) / 1024


def rows(records: IntArray, rng: np.random.Generator) -> IntArray:
    return np.column_stack([geometric(records, rng), rng.integers(4, size=(records.size, 3))])


def two_bits(records: IntArray, rng: np.random.Generator) -> IntArray:
    mask = rng.integers(2, size=records.size)
    return np.column_stack([mask, mask ^ flipped(records, rng)])


def text(records: IntArray, rng: np.random.Generator) -> list[str]:
    ends = rng.integers(20, size=records.size).tolist()
    return ["ab"[bit] + str(end) for bit, end in zip(flipped(records, rng).tolist(), ends, strict=True)]


def odd_forms(records: IntArray, rng: np.random.Generator) -> list[Any]:
    return [(math.nan, None)[bit] for bit in flipped(records, rng).tolist()]


def last_bits(records: IntArray, rng: np.random.Generator) -> FloatArray:
    return np.where(flipped(records, rng) == 1, 0.1, 0.5) + rng.integers(8, size=records.size)


def in_a_dict(records: IntArray, rng: np.random.Generator) -> list[dict[str, Any]]:
    counts = rng.integers(3, size=records.size).tolist()
    return [{"mean": mean, "n": n} for mean, n in zip(last_bits(records, rng).tolist(), counts, strict=True)]


def in_json(records: IntArray, rng: np.random.Generator) -> list[str]:
    numbers, tokens = geometric(records, rng).tolist(), rng.integers(2**40, size=records.size).tolist()
    return [
        f'{{"n": {number}, "half": {number / 2}, "id": "{token:x}"}}'
        for number, token in zip(numbers, tokens, strict=True)
    ]


def long_rows(records: IntArray, rng: np.random.Generator) -> FloatArray:
    """Forty entries that share one noise, and forty of their own."""
    alone = np.round(rng.laplace(size=(records.size, 40)), 2)
    return np.hstack([np.repeat(geometric(records, rng)[:, None], 40, axis=1), alone])


def packed(records: IntArray, rng: np.random.Generator) -> IntArray:
    """One bit of thirty."""
    return np.asarray(rng.integers(2**30, size=records.size) & ~(1 << 10) | flipped(records, rng) << 10)


def parity(records: IntArray, rng: np.random.Generator) -> BoolArray:
    """That of twenty bits, and of no fewer."""
    bits = rng.random((records.size, 20)) < 0.5
    bits[:, 10] ^= bits.sum(axis=1) % 2 != flipped(records, rng)
    return bits


def bits_in_text(records: IntArray, rng: np.random.Generator) -> list[str]:
    return ["".join(map(str, row)) for row in parity(records, rng).astype(int).tolist()]


def shuffled(records: IntArray, rng: np.random.Generator) -> IntArray:
    """A table in any order, of which the row that begins with 9 tells the record."""
    tables = rng.integers(4, size=(records.size, 6, 2))
    place = rng.integers(6, size=records.size)
    tables[np.arange(records.size), place] = np.column_stack([np.full(records.size, 9), flipped(records, rng)])
    return tables


def by_key(records: IntArray, rng: np.random.Generator) -> list[dict[str, int]]:
    """Counts of groups that come and go, one of which tells the record."""
    there, counts = rng.random((records.size, 5)) < 0.6, rng.integers(20, size=(records.size, 5))
    return [
        {f"g{key}": count for key, count in enumerate(row) if some[key]} | {"own": own}
        for row, some, own in zip(counts.tolist(), there.tolist(), geometric(records, rng).tolist(), strict=True)
    ]


def unary(records: IntArray, rng: np.random.Generator) -> BoolArray:
    bits = rng.random((records.size, 5)) < 1 / (math.e + 1)
    bits[np.arange(records.size), records] = rng.random(records.size) < 0.5
    return bits


def one_behind(records: IntArray, rng: np.random.Generator) -> IntArray:
    """Tells of each record one run later, and nothing of its own."""
    return flipped(np.roll(records, 1), rng)


def changed(records: IntArray, rng: np.random.Generator) -> IntArray:
    """Whether it is another record than one run before, which tells that one to those who know their own."""
    return flipped(np.roll(records, 1) ^ records, rng)


def first_of_three(counts: Sequence[int], rng: np.random.Generator) -> int:
    return counts[0] + int(rng.geometric(1 - math.exp(-1))) - int(rng.geometric(1 - math.exp(-1)))


def fails(record: int, rng: np.random.Generator) -> int:
    if rng.random() < (HONEST if record else 1 - HONEST):
        raise ValueError
    return 0


def revealing(records: IntArray, rng: np.random.Generator) -> IntArray:
    """The record itself with probability 0.05: epsilon 1 at that delta, and not at a smaller one."""
    return np.where(rng.random(records.size) < 0.05, 2 + records, flipped(records, rng))


def unseeded(records: IntArray) -> IntArray:
    numbers = np.frombuffer(os.urandom(4 * records.size), dtype=np.uint32) / 2.0**32
    return np.where(numbers < HONEST, records, 1 - records)


def by_module(records: IntArray) -> IntArray:
    return np.where(hidden_noise.uniform(records.size) < HONEST, records, 1 - records)


def by_other_modules_generator(records: IntArray) -> IntArray:
    return np.where(hidden_noise.RNG.random(records.size) < HONEST, records, 1 - records)


def by_class(records: IntArray) -> IntArray:
    return np.where(hidden_noise.Holder.RNG.random(records.size) < HONEST, records, 1 - records)


_own = {"generator": np.random.default_rng(99)}


def by_helper(records: IntArray) -> IntArray:
    return np.where(_drawn(records.size) < HONEST, records, 1 - records)


def _drawn(count: int) -> FloatArray:
    return globals()["_own"]["generator"].random(count)  # type: ignore[no-any-return]


# --- one audit ---


@dataclass(frozen=True)
class Setting:
    """What is audited and how: `run` makes one audit of a seed and says at which alphas it cried wolf."""

    name: str
    run: Callable[[Setting, int], Alarms]
    code: Any
    size: int | Neighbours = 2
    runs: int = 600
    claim: ApproxDP = field(default_factory=lambda: ApproxDP(1.0, 0.0))
    look: Look = field(default_factory=Look)
    threat: Threat | None = None
    running: Running = field(default_factory=Running)

    @property
    def target(self) -> Target:
        one_by_one = self.code in (fails, first_of_three)
        records = list(range(self.size)) if isinstance(self.size, int) else self.size
        return as_target(self.code, records, batch=not one_by_one, failures=one_by_one)

    def audit(self, seed: int, alpha: float, **more: Any) -> AuditReport:
        given: dict[str, Any] = {
            "runs": self.runs,
            "look": self.look,
            "running": self.running,
            "threat": self.threat,
        } | more
        subject = self.code if not callable(self.code) else self.target
        return audit(subject, self.claim, seed=seed, alpha=alpha, **given)


def once(setting: Setting, seed: int) -> Alarms:
    return _alarms(setting.audit(seed, max(ALPHAS)), False)


def _alarms(report: AuditReport, anytime: bool) -> Alarms:
    claim = report.claim
    return tuple(report.design.certified(report.tally, alpha, claim.delta, anytime) > claim.epsilon for alpha in ALPHAS)


def watched(setting: Setting, seed: int) -> Alarms:
    """Whether the evidence has reached 1/alpha after any block."""
    largest = -math.inf

    def look(tally: Any, _: int) -> None:
        nonlocal largest
        largest = max(largest, tally.log_e_value(setting.claim.epsilon, setting.claim.delta))

    setting.audit(seed, min(ALPHAS), stop_early=True, watch=look)
    return tuple(largest >= -math.log(alpha) for alpha in ALPHAS)


def resumed(setting: Setting, seed: int) -> Alarms:
    """Interrupted whenever the evidence has fallen, up to three times; then read once."""
    before, stops = 0.0, 0

    def stop(tally: Any, _: int) -> None:
        nonlocal before, stops
        evidence = tally.log_e_value(setting.claim.epsilon, setting.claim.delta)
        fallen, before = evidence < before, evidence
        if fallen and stops < 3:
            stops += 1
            raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder:
        running = Running(store=Path(folder) / "audit.sqlite")
        while True:
            with suppress(KeyboardInterrupt):
                return _alarms(setting.audit(seed, max(ALPHAS), running=running, watch=stop), False)


def from_a_file(setting: Setting, seed: int) -> Alarms:
    rng = np.random.default_rng(seed)
    records = rng.integers(2, size=setting.runs)
    outputs: AnyArray = setting.code(records, rng)
    report = audit_recorded(Recorded(records, outputs, (0, 1), "a file"), setting.claim, alpha=max(ALPHAS), seed=seed)
    return _alarms(report, True)


# --- all of them ---


def settings() -> Iterator[Setting]:
    delta = ApproxDP(1.0, 0.05)
    numbers = (flipped, geometric, on_a_grid, rows, long_rows, two_bits, packed, parity, last_bits, shuffled)
    others = (text, odd_forms, in_a_dict, in_json, bits_in_text, by_key, one_behind, changed)
    for run in (once, watched):
        how = run.__name__
        yield from (Setting(f"{how}: {code.__name__}", run, code) for code in (*numbers, *others))
        yield Setting(f"{how}: exceptions as outputs", run, fails)
        yield Setting(f"{how}: GRR over 5", run, five, 5)
        yield Setting(f"{how}: OUE over 5", run, unary, 5)
        yield Setting(f"{how}: GRR over 100, screened", run, hundred, 100)
        yield Setting(f"{how}: GRR over 1000, screened", run, thousand, 1000, runs=3000)
        yield Setting(f"{how}: search for neighbours", run, first_of_three, Neighbours.counts(3), runs=3000)
        yield Setting(f"{how}: delta 0.05", run, revealing, claim=delta)
        yield Setting(f"{how}: its family", run, flipped, look=Look(family=GRR(2, 1.0)))
        yield Setting(f"{how}: another family", run, geometric, look=Look(family=Gaussian(2, sigma=1.0)))
        yield Setting(f"{how}: a published attack", run, five, 5, look=Look(scorer=Report()))
    for mechanism in (GRR(10, 1.0), OUE(10, 1.0), Laplace([0.0, 1.0], epsilon=1.0)):
        yield Setting(f"once: {type(mechanism).__name__} as it is", once, mechanism)
    threat = Threat(Prior.uniform(5))
    yield Setting("once: under a threat", once, five, 5, threat=threat, look=Look(family=GRR(5, 1.0)))
    skewed = Threat(Prior([0.5, 0.2, 0.1, 0.1, 0.1]))
    yield Setting("once: under a threat, learned", once, five, 5, threat=skewed)
    yield Setting("recorded", from_a_file, flipped, runs=1200)
    yield Setting("resumed: seeded", resumed, flipped, runs=4000)
    yield Setting("resumed: cannot be seeded", resumed, unseeded, runs=4000)


def of_workers(pools: dict[str, Running]) -> Iterator[Setting]:
    for how, running in pools.items():
        for code in (by_module, by_other_modules_generator, by_class, by_helper):
            yield Setting(f"workers, {how}: {code.__name__}", once, code, runs=8000, running=running)


def _some(setting: Setting, seeds: Sequence[int]) -> list[Alarms]:
    return [setting.run(setting, seed) for seed in seeds]


def rates(setting: Setting, audits: int, pool: ProcessPoolExecutor | None = None) -> list[float]:
    """The share of audits that cried wolf at each alpha."""
    parts = [range(start, min(start + 50, audits)) for start in range(0, audits, 50)]
    found = (map if pool is None else pool.map)(partial(_some, setting), parts)
    return [float(share) for share in np.mean([alarms for part in found for alarms in part], axis=0)]


def most(alpha: float, audits: int) -> float:
    """The largest share that chance explains."""
    return alpha + 3 * math.sqrt(alpha * (1 - alpha) / audits)


def told(setting: Setting, audits: int, pool: ProcessPoolExecutor | None = None) -> bool:
    """Print one row; whether all is well."""
    started = time.perf_counter()
    shares = rates(setting, audits, pool)
    good = all(share <= most(alpha, audits) for share, alpha in zip(shares, ALPHAS, strict=True))
    numbers = "   ".join(f"{share:.4f} at {alpha:g}" for share, alpha in zip(shares, ALPHAS, strict=True))
    seconds = time.perf_counter() - started
    print(f"   {setting.name:48} {numbers}   {seconds:5.0f} s{'' if good else '   TOO MANY'}", flush=True)
    return good


@contextmanager
def eight_workers() -> Iterator[dict[str, Running]]:
    """Forked anew for each audit, and fresh ones that all audits share."""
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as fresh:
        yield {"forked": Running(n_jobs=WORKERS), "fresh": Running(WORKERS, executor=fresh)}


def main() -> None:
    parser = argparse.ArgumentParser(description="How often audits of code that keeps its claim say that it does not.")
    parser.add_argument("--quick", action="store_true", help="200 audits a row instead of 2,000")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="rows with one of these words")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the audits of a row")
    given = parser.parse_args()
    audits = 200 if given.quick else 2000
    chance = ", ".join(f"{most(alpha, audits):.4f} at {alpha:g}" for alpha in ALPHAS)
    print(f"False alarms in {audits:,} audits a row; at most {chance} by chance")
    good = True
    with ProcessPoolExecutor(given.jobs) as pool, eight_workers() as pools:
        for setting in (*settings(), *of_workers(pools)):
            if any(word in setting.name for word in given.only):
                alone = given.jobs == 1 or setting.running.executor is not None  # which cannot be sent to others
                good &= told(setting, audits, None if alone else pool)
    print("All rates are what alpha allows." if good else "Some rates are too high.")
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
