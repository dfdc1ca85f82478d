"""Audits: what they certify, which bugs they find, how rarely they are wrong, and what they report."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dprisk import ApproxDP
from dprisk.auditing import AuditReport, Look, Running, as_target, audit
from dprisk.auditing.certify.anytime import log_e_value
from dprisk.auditing.certify.counts import Counts
from dprisk.auditing.certify.portfolio import Answers
from dprisk.auditing.running import plan
from dprisk.errors import DpriskError, ParameterError, TargetError
from dprisk.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SHE,
    SUE,
    THE,
    Gaussian,
    Laplace,
    Matrix,
    Mechanism,
    Product,
    SubsetSelection,
)
from dprisk.testing import assert_private
from tests.audited import (
    Code,
    Rng,
    grr,
    grr_from_all,
    grr_tenth,
    grr_too_honest,
    half_the_noise,
    laplace,
    oue_without_reset,
    same_seed,
    sparse_vector,
    sparse_vector_without_noise,
)

# --- certificates ---


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("kind", [GRR, SubsetSelection, SUE, OUE, SHE, THE, BLH, OLH])
def test_nearly_all_of_the_true_epsilon_is_certified(kind: Callable[[int, float], Mechanism], epsilon: float) -> None:
    mechanism = kind(100, epsilon)
    report = audit(mechanism, runs=100_000, seed=5)
    assert report.claim.epsilon == mechanism.epsilon  # THE promises less than the epsilon that it is made for
    assert 0.93 * mechanism.epsilon <= report.epsilon_certified <= mechanism.epsilon
    assert report.verdict == "consistent with the claim"


def test_unary_encoding_does_not_saturate() -> None:
    assert audit(OUE(3052, 14.0), runs=20_000).epsilon_certified > 13


@pytest.mark.parametrize("size", [50, 500])
def test_the_ends_of_a_line_are_suspected(size: int) -> None:
    assert audit(Laplace(size, 1.0), runs=20_000).epsilon_certified > 0.85


# --- bugs ---


BROKEN: list[tuple[Code, int]] = [
    (half_the_noise, 2),
    (laplace, 3),  # noise for a sensitivity of 1, where it is 2
    (sparse_vector_without_noise, 2),
    (same_seed, 2),
    (grr_from_all, 10),
    (grr_tenth, 10),
    (grr_too_honest, 10),
    (oue_without_reset, 10),
]


@pytest.mark.parametrize(("code", "size"), BROKEN)
def test_bugs_are_found_within_a_few_thousand_runs(code: Code, size: int) -> None:
    name = code.__name__
    family = GRR(10, 1.0) if name.startswith("grr") else OUE(10, 1.0) if name.startswith("oue") else None
    report = audit(code, 1.0, records=range(size), runs=20_000, stop_early=True, look=Look(family=family))
    assert report.verdict == "violated"
    assert report.counts.runs <= 6000
    assert report.anytime


def test_faulty_protocols_are_found_by_learning_too() -> None:
    for code in (grr_from_all, grr_tenth, oue_without_reset):
        assert audit(code, 1.0, records=range(10), runs=20_000, stop_early=True).verdict == "violated"


@pytest.mark.slow
@pytest.mark.parametrize(("code", "size"), [(laplace, 2), (sparse_vector, 2), (grr, 10)])
def test_correct_code_is_not_accused(code: Code, size: int) -> None:
    for seed in range(12):
        for stop_early in (True, False):
            report = audit(code, 1.0, records=range(size), runs=1500, alpha=1e-3, seed=seed, stop_early=stop_early)
            assert report.verdict == "consistent with the claim"


# --- false alarms ---


@pytest.mark.slow
@pytest.mark.parametrize("stop_early", [False, True])
@pytest.mark.parametrize("subject", [GRR(5, 1.0), OUE(5, 1.0), laplace])
def test_false_alarms_at_the_boundary_are_as_rare_as_promised(
    subject: Any, stop_early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "BLOCK", 50)  # looks at every 50 runs
    alpha, audits = 0.1, 150
    records = None if isinstance(subject, Mechanism) else range(2)
    alarms = above = 0
    for seed in range(audits):
        seen: list[bool] = []

        def look(tally: Counts | Answers, _: int, seen: list[bool] = seen) -> None:
            evidence = log_e_value(tally, 1.0) if isinstance(tally, Counts) else tally.log_e_value(1.0, 0.0)
            seen.append(stop_early and evidence >= -math.log(alpha))

        report = audit(
            subject, 1.0, records=records, runs=500, alpha=alpha, seed=seed, stop_early=stop_early, watch=look
        )
        alarms += report.verdict == "violated"
        above += any(seen) or report.epsilon_certified > 1.0
    most = audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))
    assert alarms <= above <= most
    assert stop_early or above > 0  # the bound is not idle


# --- delta ---


def gaussian(record: float, rng: Rng) -> float:
    return round(1024 * (record + rng.normal())) / 1024


def half_gaussian(record: float, rng: Rng) -> float:
    return round(1024 * (record + rng.normal(scale=0.5))) / 1024


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_gaussian_noise_keeps_the_claim_that_it_has_and_half_of_it_does_not(epsilon: float) -> None:
    claim = ApproxDP(epsilon, Gaussian(2, 1.0).delta_at(epsilon))
    assert audit(gaussian, claim, records=[0, 1], runs=10_000).verdict == "consistent with the claim"
    assert audit(half_gaussian, claim, records=[0, 1], runs=10_000).verdict == "violated"
    report = audit(half_gaussian, claim, records=[0, 1], runs=10_000, stop_early=True)
    assert report.verdict == "violated"
    assert report.counts.runs < 10_000
    known = audit(Gaussian(2, 0.5), claim, runs=20_000)
    assert known.verdict == "violated"
    assert audit(Gaussian(2, 1.0), claim, runs=20_000).verdict == "consistent with the claim"


def test_a_design_aims_at_the_delta_of_the_claim() -> None:
    """A rule that answers in the far tail would be right less often than delta allows."""
    report = audit(Gaussian(2, 0.5), ApproxDP(1.0, 0.2), runs=20_000)
    assert report.counts.correct > 0.2 * report.counts.runs


# --- outputs of all kinds ---


def rarely_nothing(value: Any) -> Code:
    def code(record: int, rng: Rng) -> Any:
        return value if rng.random() < 0.2 * record else float(rng.normal())

    return code


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_numbers_that_are_none_give_a_record_away(value: float) -> None:
    assert audit(rarely_nothing(value), 1.0, records=2, runs=2000).verdict == "violated"


def test_tables_of_numbers_are_looked_at_entry_by_entry() -> None:
    def code(record: int, rng: Rng) -> Any:
        return record * np.eye(2) + rng.normal(size=(2, 2))

    assert audit(code, 1.0, records=[0, 5], runs=1000).verdict == "violated"


def test_a_mechanism_that_rules_records_out_is_audited() -> None:
    report = audit(Matrix([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]), 1.0, runs=1000)
    assert report.epsilon_certified > 3
    json.dumps(report.to_dict(), allow_nan=False)


def test_a_mechanism_whose_outputs_come_in_pairs_is_audited() -> None:
    """Two reports of the same record at epsilon 1 each."""
    mechanism = Product(GRR(3, 1.0), SUE(3, 1.0))
    assert 1.8 < audit(mechanism, runs=30_000).epsilon_certified <= 2
    assert audit(mechanism, 1.5, runs=30_000).verdict == "violated"


def test_many_records_of_unknown_code_are_sampled() -> None:
    assert audit(lambda record: record, 1.0, records=range(5000), runs=500).verdict == "violated"


@pytest.mark.parametrize("output", [7, "text", (1, 2), [True, False]])
def test_what_the_family_never_returns_is_said(output: Any) -> None:
    with pytest.raises(TargetError, match="leave out `family`"):
        audit(lambda record: output, 1.0, records=range(5), runs=100, look=Look(family=GRR(5, 1.0)))


def test_a_family_of_another_size_is_refused() -> None:
    with pytest.raises(ParameterError, match="4 records"):
        audit(grr, 1.0, records=range(10), look=Look(family=GRR(4, 1.0)))


# --- assertions and reports ---


def test_assert_private() -> None:
    assert assert_private(laplace, 1.0, [0, 1], runs=3000).verdict == "consistent with the claim"
    with pytest.raises(AssertionError, match=r"half_the_noise breaks its promise of epsilon 1: its true epsilon is"):
        assert_private(half_the_noise, 1.0, [0, 1])
    with pytest.raises(AssertionError, match=r"delta 0\.001"):
        assert_private(same_seed, 1.0, [0, 1], delta=0.001)
    with pytest.raises(DpriskError):
        assert_private(laplace, -1.0, [0, 1])


def test_gross_bugs_are_found_quickly() -> None:
    calls = []

    def code(record: int) -> int:
        calls.append(record)
        return record

    with pytest.raises(AssertionError):
        assert_private(code, 1.0, [0, 1], runs=1_000_000)
    assert len(calls) < 3000


@pytest.mark.parametrize(
    "report",
    [
        audit(lambda record: record, 1.0, records=range(3), runs=500),
        audit(lambda record: [], 1.0, records=range(3), runs=500),
        audit(GRR(4, 50.0), 1.0, runs=100_000),
        audit(GRR(4, 0.0), runs=500),
        audit(Gaussian(4, 1e-3), ApproxDP(0.0, 0.5), runs=500, stop_early=True),
    ],
)
def test_reports_can_be_shown_and_sent(report: AuditReport) -> None:
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["sentence"] == report.sentence()
    assert told["verdict"] in repr(report)
    assert report.sentence().endswith(".")
    assert told["verdict"] in report._repr_html_()
    assert "<lambda>" not in report._repr_html_()


def test_the_attack_of_an_audit_is_measured_beside_its_bounds() -> None:
    attack: Any = audit(GRR(100, 4.0), runs=50_000).attack()
    best = math.exp(4) / (math.exp(4) + 99)  # which GRR attains, on all records and with every answer
    assert attack.success_bound == pytest.approx(best)
    assert attack.advantage_bound == pytest.approx(best - 0.01)
    assert attack.success_interval[0] < best < attack.success_interval[1]
    assert attack.success == pytest.approx(attack.advantage + attack.baseline)
    broken: Any = audit(GRR(100, 4.0), claim=3.0, runs=50_000).attack()
    assert broken.success_interval[0] > math.exp(3) / (math.exp(3) + 99)
    early: Any = audit(GRR(4, 1.0), runs=10_000, stop_early=True).attack()
    right = math.e / (math.e + 3)
    assert early.success_interval[0] < right < early.success_interval[1]


@pytest.mark.slow
def test_intervals_of_the_attack_cover_the_truth() -> None:
    alpha, audits, missed = 0.1, 200, 0
    for seed in range(audits):
        report = audit(OUE(5, 1.0), runs=300, alpha=alpha, seed=seed)
        others, q = report.counts.size - 1, 1 / (math.e + 1)
        right = 0.5 * (1 - q) ** others  # the true bit alone is on
        wrong = 0.5 * others * q * (1 - q) ** (others - 1)
        truth = right + (1 - right - wrong) / report.counts.size
        low, high = report.to_dict()["attack"]["success_interval"]
        missed += not low <= truth <= high
    assert missed <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))


def test_nothing_to_go_by_is_undecided() -> None:
    nothing = as_target(lambda records: np.zeros((len(records), 0)), 3, batch=True)
    report = audit(nothing, 1.0, runs=500)
    assert (report.verdict, report.counts.answered) == ("undecided", 0)
    for stop_early in (False, True):
        assert audit(GRR(5, 9.0), runs=20, stop_early=stop_early).verdict == "undecided"  # no outcome would tell
    assert audit(lambda record: record, ApproxDP(1.0, 1.0), records=2, runs=500).verdict == "undecided"


def test_an_executor_is_one() -> None:
    with pytest.raises(ParameterError, match="Executor"):
        audit(GRR(5, 1.0), running=Running(executor=3))  # type: ignore[arg-type]
