"""Code that keeps something from one call to the next: whoever was there before is not protected."""

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.false_alarms import ALPHAS, most, one_behind, rates, settings
from dprisk import Laplace, audit
from dprisk.auditing import as_target, audit_recorded, recorded
from dprisk.auditing.certify.claim import Terms, as_claim
from dprisk.auditing.evidence.attackers import by_name
from dprisk.auditing.evidence.choosing import Look, choose
from dprisk.auditing.evidence.rules import BEFORE
from dprisk.auditing.evidence.views import Seen

Rng = np.random.Generator
LAST = {"record": 0}


def forgets_nothing(record: int, rng: Rng) -> Any:
    """Randomised response, but now and then what it says is about somebody else."""
    before, LAST["record"] = LAST["record"], record
    return f"was {before}" if rng.random() < 0.01 else int(rng.integers(4))


def drifts(record: int, rng: Rng) -> float:
    """Noise enough for the record, added to a number that is still there from the last one."""
    before, LAST["record"] = LAST["record"], record
    return round(before + float(rng.laplace(scale=0.3)), 2)


def returns_the_last_one(record: int) -> int:
    before, LAST["record"] = LAST["record"], record
    return before


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (forgets_nothing, "in the next run the output is 'was "),
        (drifts, "in the next run "),
        (returns_the_last_one, "itself,"),
    ],
)
def test_code_that_tells_the_record_of_the_run_before_is_found(code: Any, what: str) -> None:
    report = audit(code, 1.0, records=4, runs=20_000, seed=0)
    assert report.verdict == "violated"
    assert what in report.witnesses[0].what
    assert re.search(
        "In the next run the output is .* after .* runs of record ., and after .* runs of", report.sentence()
    )
    assert "carries something of a run into the next" in report.sentence()


def last(record: int) -> int:
    before, LAST["record"] = LAST["record"], record
    return before


WAYS: dict[str, Any] = {
    "a dict": lambda record, rng: {"noise": float(rng.normal()), "last": last(record)},
    "an entry": lambda record, rng: [float(rng.normal()), float(last(record))],
    "a remainder": lambda record, rng: int(rng.integers(10**6)) * 10 + last(record),
    "last bits": lambda record, rng: float(rng.integers(2**20)) / 1024 + last(record) * 2.0**-20,
    "a word": lambda record, rng: f"id{rng.integers(10**6)} last={last(record)}",
    "a length": lambda record, rng: [int(rng.integers(3))] * (3 + last(record)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_it_is_found_in_whatever_shows_it(way: Any) -> None:
    report = audit(way, 1.0, records=3, runs=6000, seed=0)
    assert report.verdict == "violated"
    assert "carries something of a run into the next" in report.sentence()


@pytest.mark.parametrize("turn", [0, 1])
def test_code_that_leaks_in_every_second_call_is_found(turn: int) -> None:
    calls = itertools.count()

    def code(record: int, rng: Rng) -> Any:
        before = last(record)
        return f"was {before}" if next(calls) % 2 == turn else int(rng.integers(4))

    assert audit(code, 1.0, records=2, runs=20_000, seed=0).verdict == "violated"


def test_it_is_found_of_anybody() -> None:
    """Outputs tell nothing of their own record, so the main attacker suspects any two, and rarely that one."""

    def code(record: int, rng: Rng) -> Any:
        return "X" if last(record) == 7 else int(rng.integers(4))

    for seed in range(3):
        report = audit(code, 1.0, records=10, runs=10_000, seed=seed)
        assert report.verdict == "violated"
        assert (report.witnesses[0].what, report.witnesses[0].record) == (
            "in the next run the output has 1 character",
            7,
        )


def test_code_that_keeps_nothing_is_not_said_to() -> None:
    """Where only the main attacker refutes a claim, the clearest of what the others saw may be luck."""

    def noise(record: int, rng: Rng) -> float:
        return round(record + float(rng.laplace(scale=5)), 2)

    look = Look(family=Laplace(2, epsilon=0.1))
    for seed in range(8):
        assert (
            "into the next" not in audit(noise, 0.1, records=2, runs=6000, alpha=0.05, seed=seed, look=look).sentence()
        )


class Cached:
    """Tells whether it was asked for the same record just before, and perhaps more."""

    def __init__(self, output: Callable[[bool, Rng], Any]) -> None:
        self.last, self.output = -1, output

    def __call__(self, record: int, rng: Rng) -> Any:
        hit, self.last = record == self.last, record
        return self.output(hit, rng)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (lambda hit, rng: hit, "the output is "),
        (lambda hit, rng: None if hit else int(rng.integers(1000)), "the output is "),
        (lambda hit, rng: {"x": float(rng.laplace()), "hit": hit}, "'hit' is "),
        (lambda hit, rng: [round(float(rng.laplace(10.0 * hit)), 2), 0.5], "entry 1 is "),
    ],
)
@pytest.mark.parametrize("records", [2, 5])
def test_who_knows_their_own_record_learns_that_of_the_run_before(
    output: Callable[[bool, Rng], Any], told: str, records: int
) -> None:
    report = audit(Cached(output), 1.0, records=records, runs=6000, seed=0)
    assert report.verdict == "violated"
    witness = report.witnesses[0]
    assert witness.what.startswith(f"in the next run {told}")
    assert re.search(r", and its own record is number \d \(counted from 0\),$", witness.what)


def test_recorded_runs_have_no_order(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    records = rng.integers(2, size=2000)
    lines = [f"{record},{before}" for record, before in zip(records, np.roll(records, 1), strict=True)]
    (tmp_path / "runs.csv").write_text("record,output\n" + "\n".join(lines) + "\n")
    report = audit_recorded(recorded(tmp_path / "runs.csv"), 1.0)
    assert not [name for name in report.tally.others if BEFORE in name]


def test_what_is_said_was_counted() -> None:
    """All runs of the record of the witness, but for the last one, have a next output."""
    witness = audit(returns_the_last_one, 1.0, records=[0, 1], runs=5000, seed=1).witnesses[0]
    assert (witness.times, witness.other_times) == (witness.runs, 0)
    assert witness.runs + witness.other_runs > 5000


def test_answers_are_counted_for_every_second_output() -> None:
    terms = Terms(as_claim(0.2), alpha=0.01, seed=0)
    design: Any = choose(as_target(one_behind, 2, batch=True), terms, None, Look()).design
    rng = np.random.default_rng(0)
    drawn = design.draw(501, rng)
    outputs = one_behind(design.universe[drawn], rng)
    told = design.judged(Seen(outputs), drawn)
    rules = {name: rule.at(grade) for name, (rule, grade) in by_name(design.earlier[0]).items()}
    seen = Seen(outputs, own=design.universe[drawn])
    assert any(rule.answers(seen).max() >= 0 for rule in rules.values())
    source = np.searchsorted(design._starts, drawn, side="right") - 1
    for name, rule in rules.items():
        answers, counted = rule.answers(seen), told.others[name][design.main.size]
        pairs = [(drawn[run - 1], answers[run]) for run in range(2 + drawn[0] % 2, 501, 2) if source[run - 1] == 0]
        assert counted.runs == len(pairs)
        assert counted.answered == sum(answer >= 0 for _, answer in pairs)
        assert counted.correct == sum(design.universe[target] == answer for target, answer in pairs)


def test_code_that_keeps_nothing_is_certified_as_it_was() -> None:
    def noise(record: int, rng: Rng) -> int:
        return record + int(rng.geometric(1 - math.exp(-1))) - int(rng.geometric(1 - math.exp(-1)))

    report = audit(noise, 1.0, records=[0, 1], runs=20_000, seed=0)
    assert report.verdict == "consistent with the claim"
    assert report.epsilon_certified > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("how", ["once", "watched"])
def test_what_somebody_learns_of_the_run_before_may_reach_the_claim(how: str) -> None:
    """Its epsilon for the person before is exactly the claim, which is no reason for an alarm."""
    (setting,) = (one for one in settings() if one.name == f"{how}: one_behind")
    assert all(share <= most(alpha, 60) for share, alpha in zip(rates(setting, 60), ALPHAS, strict=True))
