"""Several designs in one audit: what they find together, and that their number is paid for."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import GRR, OUE, ApproxDP, AuditInterrupted, Laplace, Prior, Threat, audit
from dprisk.auditing import Look, Running, as_target
from dprisk.auditing.certify.anytime import (
    anytime_epsilon,
    anytime_epsilon_of_several,
    combine_e_values,
    log_e_value,
)
from dprisk.auditing.certify.counts import Counts, certified_epsilon
from dprisk.auditing.evidence.several import Several, Tallies
from dprisk.auditing.running import plan
from dprisk.errors import ParameterError
from dprisk.mechanisms import Mechanism
from dprisk.testing import assert_private
from tests.test_audit_threat import same
from tests.test_cli import run

Rng = np.random.Generator
PARTS = (Counts(1000, 500, 350, 2), Counts(1000, 800, 410, 2), Counts(1001, 90, 40, 5))


# --- what several counts show together ---


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_anytime_certificate_is_where_the_average_e_value_is_large_enough(delta: float) -> None:
    found = anytime_epsilon_of_several(PARTS, 0.05, delta)
    assert 0 < found < anytime_epsilon(PARTS[0], 0.05, delta)
    below, above = (
        combine_e_values([log_e_value(part, found + step, delta) for part in PARTS]) for step in (-1e-6, 1e-2)
    )
    assert above < -math.log(0.05) <= below
    assert anytime_epsilon_of_several(PARTS[:1], 0.05, delta) == anytime_epsilon(PARTS[0], 0.05, delta)


def test_the_certificate_for_fixed_runs_is_paid_for() -> None:
    report = audit(OUE(50, 1.0), runs=20_000, look=Look(designs=3))
    assert isinstance(report.design, Several)
    parts = report.tally.parts
    assert len(parts) == 3
    assert {part.runs for part in parts} <= {6666, 6667, 6668}
    assert report.epsilon_certified == max(certified_epsilon(part, 0.01 / 3) for part in parts)
    assert report.log_e_value == pytest.approx(combine_e_values([log_e_value(part, 1.0) for part in parts]))
    assert 0.8 < report.epsilon_certified < 1
    suspects = [frozenset(design.universe.tolist()) for design in report.design.designs]
    assert len(set(suspects)) == 3


def test_each_run_is_judged_by_the_design_it_was_drawn_for() -> None:
    report = audit(lambda record: record, 1.0, records=range(6), runs=900, look=Look(designs=4))
    assert report.tally.runs == 900
    for part in report.tally.parts:
        assert part.runs == part.answered == part.correct
    assert report.verdict == "violated"


@pytest.mark.parametrize("subject", [Laplace(20, 1.0), GRR(20, 1.0)])
def test_designs_for_a_known_mechanism_differ_in_their_suspects(subject: Mechanism) -> None:
    report = audit(subject, runs=50_000, look=Look(designs=4))
    assert isinstance(report.design, Several)
    assert len({frozenset(design.universe.tolist()) for design in report.design.designs}) == 4
    assert 0.7 < report.epsilon_certified <= 1.0


def test_two_records_have_one_design() -> None:
    assert audit(Laplace(2, 1.0), runs=1000, look=Look(designs=5)).counts.runs == 1000


# --- a leak that the pilot does not point at ---


def one_bad_pair(records: Any, rng: Rng) -> Any:
    """Randomised response over 20 records at epsilon 0.8, and an error that tells record 3 from record 11.

    The error has probability 0.1, 0.1 e^0.8 for record 3 and 0.1 e^-0.8 for record 11: a ratio of e^1.6 between these
    two, and of at most e^0.8 between all others.
    """
    own, size = np.asarray(records), len(records)
    keep = math.exp(0.8) / (math.exp(0.8) + 19)
    answer = np.where(rng.random(size) < keep, own, (own + rng.integers(1, 20, size=size)) % 20)
    fails = 0.1 * np.exp(0.8 * (own == 3) - 0.8 * (own == 11))
    return np.where(rng.random(size) < fails, 20, answer)


@pytest.mark.slow
def test_one_bad_pair_of_many_is_found_more_often() -> None:
    target = as_target(one_bad_pair, 20, batch=True)
    given: dict[str, Any] = {"runs": 60_000, "alpha": 0.05}
    found = {
        designs: sum(
            audit(target, 1.0, **given, seed=seed, look=Look(designs=designs)).verdict == "violated"
            for seed in range(40)
        )
        for designs in (1, 4)
    }
    assert found[4] >= found[1] + 6


# --- false alarms ---


def grr(records: Any, rng: Rng) -> Any:
    own, size = np.asarray(records), len(records)
    keep = math.e / (math.e + 5)
    return np.where(rng.random(size) < keep, own, (own + rng.integers(1, 6, size=size)) % 6)


@pytest.mark.slow
@pytest.mark.parametrize("stop_early", [False, True])
def test_false_alarms_at_the_boundary_are_as_rare_as_promised(
    stop_early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "CALLS", 100)
    alpha, audits, alarms = 0.1, 200, 0
    for seed in range(audits):
        report = audit(
            as_target(grr, 6, batch=True),
            1.0,
            runs=1000,
            alpha=alpha,
            seed=seed,
            stop_early=stop_early,
            look=Look(designs=4),
        )
        alarms += report.verdict == "violated"
    assert alarms <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))


# --- the same machinery ---


def leaky(record: int, rng: Rng) -> float:
    return record + rng.normal()


def test_any_number_of_workers_gives_the_same_report_and_so_does_a_store(tmp_path: Path) -> None:
    given: dict[str, Any] = {"records": 4, "runs": 3500, "look": Look(designs=3)}

    def stop(tally: Tallies, _: int) -> None:
        if tally.runs >= 2000:
            raise KeyboardInterrupt

    expected = same(audit(leaky, 1.0, **given))
    assert same(audit(leaky, 1.0, **given, running=Running(n_jobs=2))) == expected
    with pytest.raises(AuditInterrupted) as stopped:
        audit(leaky, 1.0, **given, watch=stop, running=Running(store=tmp_path / "a.db"))
    assert stopped.value.report.anytime
    assert same(audit(leaky, 1.0, **given, running=Running(store=tmp_path / "a.db"))) == expected


def test_it_stops_early_and_minds_delta() -> None:
    report = audit(leaky, ApproxDP(0.1, 0.01), records=4, runs=20_000, stop_early=True, look=Look(designs=3))
    assert report.verdict == "violated"
    assert report.runs < 20_000
    assert audit(leaky, ApproxDP(0.1, 0.01), records=4, runs=20_000, look=Look(designs=3)).verdict == "violated"
    with pytest.raises(AssertionError, match="breaks its promise"):
        assert_private(leaky, 0.5, 4, look=Look(designs=3))


def test_too_few_runs_decide_nothing() -> None:
    report = audit(leaky, 1.0, records=4, runs=3, look=Look(designs=3))
    assert report.verdict == "undecided"


def test_reports_can_be_shown() -> None:
    report = audit(leaky, 1.0, records=4, runs=2000, look=Look(designs=3))
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert len(told["by_design"]) == len(told["design"]["designs"]) == 3
    assert sum(part["runs"] for part in told["by_design"]) == told["runs"] == 2000
    assert "answers in 2000 runs of 3 designs" in report.tally.describe()
    assert told["attack"]["success_interval"][0] <= told["attack"]["success"] <= told["attack"]["success_interval"][1]


def test_misuse_is_refused() -> None:
    with pytest.raises(ParameterError, match="leave out `designs`"):
        audit(GRR(4, 1.0), threat=Threat(Prior.uniform(4)), look=Look(designs=2))
    with pytest.raises(ParameterError, match="designs must be a whole number"):
        audit(GRR(4, 1.0), look=Look(designs=0))


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "audit --mechanism laplace --epsilon 1 --size 20 --runs 5000 --designs 3"
    code, out, _ = run(capsys, monkeypatch, *text.split())
    assert code == 0
    assert "runs of 3 designs" in out
