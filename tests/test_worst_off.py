"""Whoever is worst off: an answer about people drawn at random does not comfort somebody who can be looked for."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import (
    DPSGD,
    GRR,
    OUE,
    Density,
    DpriskError,
    Gaussian,
    GaussianDP,
    Laplace,
    Line,
    Matrix,
    Prior,
    PureDP,
    Threat,
    assess,
    calibrate,
)
from dprisk.mechanisms import OnInterval
from dprisk.report import make_report
from dprisk.report.blocks import Card, Paragraph
from dprisk.taxonomy import read_threat_model
from tests.test_taxonomy import small
from tests.typed import run

HIV = Threat(Prior({"negative": 0.99, "HIV": 0.01}))
TEN = Threat(Prior.zipf(10))


def test_a_goal_that_needs_no_noise_says_whom_that_finds_out() -> None:
    """Without noise a report is the record: who looks for HIV says yes to all who have it, and to 10 of 1000 others."""
    found = calibrate(GRR(2, 1.0), HIV, advantage=0.05)
    assert found.unlimited
    worst = found.worst_off
    assert worst is not None
    assert worst.record == "HIV"
    assert worst.advantage == pytest.approx(0.99)
    assert found.numbers["most_at_risk"] == worst.advantage
    assert ("most at risk", "0.9900", "HIV, if looked for") in found.rows
    told = found.sentence()
    assert told.startswith("Any epsilon keeps the advantage at or below 5 points: this goal needs no noise. ")
    assert "without noise an attacker who looks for HIV (no record is more at risk) says yes to 1000 of 1000" in told
    assert found.to_dict()["worst_off"]["record"] == "HIV"
    assert "HIV, if looked for" in found._repr_html_()
    assert repr(found).startswith("Calibration(any epsilon, advantage=")


def test_the_command_says_it_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hiv.csv").write_text("label,count\nnegative,99\nHIV,1\n")
    line = ["calibrate", "--mechanism", "grr", "--prior", str(tmp_path / "hiv.csv")]
    assert "looks for HIV" in run(capsys, monkeypatch, *line, "--advantage", "0.05")[1].splitlines()[-1]
    told = json.loads(run(capsys, monkeypatch, *line, "--most-at-risk", "0.05", "--json")[1])
    assert told["epsilon"] == pytest.approx(2 * math.atanh(0.05 / 0.99), rel=1e-9)  # (1 - pi) tanh(eps / 2) = 0.05
    assert told["most_at_risk"] <= 0.05


@pytest.mark.parametrize(
    "template",
    [GRR(10, 1.0), OUE(10, 1.0), Laplace(10, 1.0), Gaussian(10, 1.0), PureDP(1.0), DPSGD(1.0, 10)],
    ids=lambda it: type(it).__name__,
)
def test_no_record_gains_more_than_the_goal_for_the_one_most_at_risk(template: Any) -> None:
    found = calibrate(template, TEN, most_at_risk=0.1)
    assert 0.1 * (1 - 1e-4) <= found.bound <= 0.1
    risk: Any = assess(found.subject, TEN)
    assert max(risk.of(record).advantage for record in range(10)) == pytest.approx(found.bound, abs=1e-9)
    assert "drawn at random" not in found.sentence()
    weaker = calibrate(template, TEN, advantage=0.1)
    assert weaker.worst_off is not None
    assert weaker.worst_off.advantage > 0.1
    assert weaker.sentence().endswith(" The goal most_at_risk (--most-at-risk) limits that.")


def test_the_goal_needs_records_that_can_be_named() -> None:
    numbers = Threat.reconstruction(Density.uniform(), within=0.1)
    for threat, message in ((None, "needs a threat"), (numbers, "can be listed")):
        with pytest.raises(DpriskError, match=message):
            calibrate(PureDP(1.0), threat, most_at_risk=0.1)
    with pytest.raises(DpriskError, match=r"must lie in \(0, 1\], got 5; 5 points are 0.05"):
        calibrate(PureDP(1.0), TEN, most_at_risk=5)
    found = calibrate(OnInterval.laplace(1.0), numbers, advantage=0.1)
    assert found.worst_off is None
    assert "most_at_risk" not in found.numbers


def test_the_sentence_of_an_assessment_names_who_is_worst_off() -> None:
    """Far more than the average only: where it is about as much there is nothing to add."""
    risk = assess(GRR(2, 8.0), HIV)
    assert risk.to_dict()["worst_off"]["record"] == "HIV"
    told = risk.sentence()
    assert told.endswith("11 of 1000 taken at random: 989 more.")
    assert "an attacker who looks for HIV (no record is more at risk)" in told
    assert assess(GRR(10, 1.0), Threat(Prior.uniform(10))).sentence().endswith("taking part adds 132.")
    alike = assess(OUE(10, 1.0), Threat(Prior.uniform(10)))
    assert ("most at risk", "0.2080", "any record, if looked for: all alike") in alike.rows  # 0.9 (1/2 - 1/(e + 1))


def test_most_exposed_is_the_largest_exposure_by_its_definition() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        channel = rng.dirichlet(np.ones(4), size=5)
        pi = rng.dirichlet(np.ones(5))
        risk = assess(Matrix(channel), Threat(Prior(pi)))
        variation = np.abs(channel - pi @ channel).sum(axis=1) / 2
        assert risk.worst_off is not None
        assert risk.worst_off.advantage == pytest.approx(variation.max(), abs=1e-12)
        assert [it.number for it in risk.most_exposed(3)] == list(np.argsort(-variation)[:3])
        bounded = risk.bounds.worst_off
        assert bounded is not None
        assert bounded.advantage >= variation.max()


def test_where_every_exposure_would_take_long_the_promise_bounds_them() -> None:
    """Laplace noise on 500 records, and an estimate: (1 - prior) times the total variation, for the rarest."""
    for risk in (
        assess(Laplace(500, 1.0), Threat(Prior.zipf(500))),
        assess(OUE(200, 2.0), Threat(Prior.uniform(200), success=Line(3.0)), runs=500),
    ):
        worst = risk.worst_off
        assert worst is not None
        assert not worst.exact
        assert worst.advantage == pytest.approx(risk.bounds.of(risk.mechanism.size - 1).advantage)
        (row,) = (row for row in risk.rows if row[0] == "most at risk")
        assert row[1].startswith("<= ")


def test_the_number_found_has_the_name_that_is_shown() -> None:
    found = calibrate(GRR(10, 1.0), TEN, advantage=0.05)
    assert found.epsilon == found.value
    assert calibrate(Gaussian(10, 1.0), TEN, advantage=0.05).sigma > 0
    with pytest.raises(AttributeError, match="no 'sigma'; the number found is its `value`"):
        _ = found.sigma
    assert found.at_delta(1e-6).epsilon == found.epsilon


def report_on(folder: Path, **changes: Any) -> Any:
    (folder / "threat.json").write_text(json.dumps(small(**changes)))
    return make_report(read_threat_model(folder / "threat.json"))


def test_a_report_does_not_comfort_whoever_is_worst_off(tmp_path: Path) -> None:
    """20 of 1000 on average, 989 of those who have HIV: not a word of comfort without the other."""
    changes: dict[str, Any] = {"release__epsilon": 8.0, "universe__prior": {"negative": 0.99, "HIV": 0.01}}
    report = report_on(tmp_path, **changes, attacker__tolerance=0.05)
    exposed = "who looks for HIV says yes to 989 more of 1000 people who have it than of people at random, above the"
    (first,) = (it for it in report.blocks if isinstance(it, Paragraph) and "within what is tolerated" in it.text)
    (card,) = (it for it in report.blocks if isinstance(it, Card))
    for told in (first.text, card.verdict, report.sentence()):
        assert exposed in told
    assert (first.tone, card.tone) == ("bad", "bad")
    asked = report_on(tmp_path, **changes, attacker__tolerance=0.05, crafter__target_source="chosen")
    assert "Above the tolerance of 50 of 1000." in asked.sentence()
    easy = report_on(tmp_path, **changes, attacker__tolerance=0.995)
    assert easy.sentence().endswith("Within the tolerance of 995 of 1000.")
    assert next(it for it in easy.blocks if isinstance(it, Card)).tone == "good"


@pytest.mark.parametrize(
    ("knows", "verdict"),
    [
        ("chosen", "Above the tolerance of 50 of 1000."),
        ("none", "Not shown to be within the tolerance of 50 of 1000: an attacker who knows or sees more is above it."),
    ],
)
def test_an_estimate_whose_interval_is_above_the_tolerance_is_above_it(
    knows: str, verdict: str, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("ill\nflu\nflu\nflu\ncold\ncold\nHIV\nasthma\n")
    release = {
        "data": "people.csv",
        "query": {"kind": "histogram", "column": "ill"},
        "universe": {"columns": ["ill"]},
        "noise": {"kind": "laplace", "epsilon": 1.0},
    }
    report = report_on(
        tmp_path, release=release, universe=None, attacker__dataset_knowledge=knows, attacker__tolerance=0.05
    )
    assert report.faced[0].covered[0].is_estimate
    assert report.sentence().endswith(verdict)
    assert ("at most" in report.sentence()) is (knows == "none")


@pytest.mark.parametrize(
    "subject",
    [PureDP(1.0), GRR(3, 1.0), OUE(3, 1.0), Laplace([40.0, 41.0, 90.0], 1.0), Gaussian([40.0, 41.0, 90.0], 9.0)],
    ids=lambda it: type(it).__name__,
)
def test_a_record_that_the_prior_rules_out_is_at_risk_too(subject: Any) -> None:
    """The data may lack it while the target has it: nobody is easier to find."""
    threat = Threat(Prior({"a": 0.6, "b": 0.4, "HIV": 0.0}))
    risk: Any = assess(subject, threat)
    gains = [risk.of(record).advantage for record in ("a", "b", "HIV")]
    worst = risk.worst_off
    assert worst.record == "HIV"
    assert worst.advantage == pytest.approx(max(gains), abs=1e-12)
    if not isinstance(subject, PureDP):
        assert risk.exposures == pytest.approx(gains, abs=1e-9)
        assert ("advantage if looked for", "HIV", risk.exposures[2]) in risk.of_records()
    found = calibrate(subject, threat, most_at_risk=0.05)
    at_goal: Any = assess(found.subject, threat)
    assert at_goal.of("HIV").advantage <= 0.05 * (1 + 1e-9)


def test_a_record_in_a_group_that_nobody_is_in_is_left_out() -> None:
    """There is nobody to compare it with."""
    threat = Threat(Prior([0.5, 0.3, 0.2, 0.0, 0.0]), ["x", "x", "y", "y", "z"])
    risk = assess(GRR(5, 1.0), threat)
    assert np.isnan(risk.exposures).tolist() == [False] * 4 + [True]
    assert [it.number for it in risk.most_exposed(5)] == [3, 1, 0, 2]


@pytest.mark.parametrize(
    "template", [OUE(10, 1.0), PureDP(1.0), GaussianDP(1.0), DPSGD(1.0, 10)], ids=lambda it: type(it).__name__
)
def test_where_all_records_are_alike_none_is_named(template: Any) -> None:
    ten = Threat(Prior.uniform(10))
    found = calibrate(template, ten, advantage=0.05)
    for answer in (found, assess(found.subject, ten)):
        told = answer.sentence()
        assert ". An attacker who looks for one record, whichever it is, says yes to " in told
        assert "drawn at random" not in told
        assert "no record is more" not in told
    assert found.worst_off is not None
    assert found.worst_off.alike
    alike = "any record, if looked for: all alike"
    (row,) = (row for row in found.rows if row[0] == "most at risk")
    assert row[2] == (alike if isinstance(template, OUE) else "any record, if looked for, by the promise")


def test_a_report_names_none_of_records_that_are_alike(tmp_path: Path) -> None:
    uniform = {f"ill-{number}": 0.1 for number in range(10)}
    changes = {"release__mechanism": "oue", "release__epsilon": 0.7, "universe__prior": uniform}
    report = report_on(tmp_path, **changes, attacker__tolerance=0.06)
    (card,) = (it for it in report.blocks if isinstance(it, Card))
    assert "Who looks for one record, whichever it is, says yes to 15" in card.verdict
    assert "drawn at random: " not in card.verdict
    assert "ill-" not in report.sentence()


def test_the_goal_limits_the_average_too_where_groups_are_known() -> None:
    """Alone in their groups, nobody can be looked for; that somebody took part still shows."""
    threat = Threat(Prior.uniform(4), ["a", "b", "c", "d"])
    for template in (GRR(4, 1.0), PureDP(1.0)):
        found = calibrate(template, threat, most_at_risk=0.05)
        assert found.advantage <= found.bound <= 0.05
    pairs = Threat(Prior([0.4, 0.1, 0.3, 0.2]), ["a", "a", "b", "b"])
    worst = assess(GRR(4, 3.0), pairs).worst_off
    assert worst is not None
    assert "(no record is more at risk, beyond what was known)" in worst.sentence_of_worst()


def test_calibrating_and_assessing_tell_the_same_of_who_is_worst_off() -> None:
    """By the promise where every exposure would take long, unless it is what the goal limits."""
    threat = Threat(Prior.zipf(300))
    found = calibrate(Laplace(300, 1.0), threat, advantage=0.05)
    there = assess(found.subject, threat).worst_off
    assert found.worst_off is not None
    assert there is not None
    assert not there.exact
    assert (found.worst_off.advantage, found.worst_off.exact) == (there.advantage, there.exact)
    asked = calibrate(Laplace(120, 1.0), Threat(Prior.zipf(120)), most_at_risk=0.05)
    assert asked.worst_off is not None
    assert asked.worst_off.advantage == asked.bound <= 0.05
    assert f"most_at_risk={asked.bound:.6g}" in repr(asked)


def test_where_any_epsilon_will_do_it_is_infinite() -> None:
    assert calibrate(GRR(2, 1.0), HIV, advantage=0.05).epsilon == math.inf
    assert calibrate(Gaussian(2, 1.0), HIV, advantage=0.05).sigma == 0.0
