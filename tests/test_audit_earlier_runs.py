"""Code that keeps something from one call to the next: whoever was there before is not protected."""

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.false_alarms import ALPHAS, most, one_behind, rates, settings
from dprisk import audit
from dprisk.auditing import as_target
from dprisk.auditing.certify.claim import Terms, as_claim
from dprisk.auditing.evidence.attackers import by_name
from dprisk.auditing.evidence.choosing import Look, choose
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
    [(forgets_nothing, "the next output is 'was "), (drifts, "the next output is "), (returns_the_last_one, "itself,")],
)
def test_code_that_tells_the_record_of_the_run_before_is_found(code: Any, what: str) -> None:
    report = audit(code, 1.0, records=4, runs=20_000, seed=0)
    assert report.verdict == "violated"
    assert what in report.witnesses[0].what
    assert "The next output is" in report.sentence()
    assert "keeps something of a run until the next" in report.sentence()


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
    rules = {name: rule.at(grade) for name, (rule, grade) in by_name(design.earlier).items()}
    assert any(rule.answers(Seen(outputs)).max() >= 0 for rule in rules.values())
    source = np.searchsorted(design._starts, drawn, side="right") - 1
    for name, rule in rules.items():
        answers, counted = rule.answers(Seen(outputs)), told.others[name][design.main.size]
        pairs = [(drawn[run - 1], answers[run]) for run in range(1, 501, 2) if source[run - 1] == 0]
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
