"""The risk of one named record: TV(P_z, Q) written out, closed forms beside it, and how a record is named."""

import csv
import io
import itertools
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import (
    GRR,
    OUE,
    ApproxDP,
    Density,
    Gaussian,
    GaussianDP,
    Laplace,
    Matrix,
    Prior,
    PureDP,
    SubsetSelection,
    Threat,
    assess,
)
from dprisk.attacks.one_record import estimate_exposure
from dprisk.errors import DpriskError
from dprisk.exact.record import compared_with, exposure, exposures
from dprisk.guarantees import RenyiDP
from dprisk.mechanisms import (
    SHE,
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    OnAttribute,
    PostProcessed,
    Product,
    SetProtocol,
    VectorGaussian,
    VectorLaplace,
)
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.types import FloatArray, IntArray
from tests.strategies import channels, partitions, priors, set_protocols
from tests.typed import run


def by_hand(channel: FloatArray, pi: FloatArray, groups: IntArray, z: int) -> tuple[float, float, float, float]:
    """Total variation, the least and the most that a best event says yes to z, and the largest posterior."""
    known = 1 < groups.max() + 1 < pi.size
    weights = np.array([p if not known or groups[y] == groups[z] else 0.0 for y, p in enumerate(pi)])
    weights = weights / weights.sum()
    variation = surely = perhaps = belief = 0.0
    for theta in range(channel.shape[1]):
        mine = channel[z, theta]
        other = sum(weights[y] * channel[y, theta] for y in range(pi.size))
        variation += abs(mine - other) / 2
        surely += mine if mine > other * (1 + 1e-9) else 0.0
        perhaps += mine if mine >= other * (1 - 1e-9) else 0.0
        belief = max(belief, weights[z] * mine / other if other > 0 else 0.0)
    return variation, surely, perhaps, belief


def some_mass(threat: Threat, record: int) -> bool:
    groups = threat.knows.groups
    mass = threat.prior.weights[groups == groups[record]].sum()
    return bool(threat.knows.is_none or threat.knows.is_all or mass > 0)


@pytest.mark.slow
@given(st.data(), st.integers(1, 6))
def test_the_risk_of_a_record_is_a_total_variation(data: st.DataObject, size: int) -> None:
    channel, pi, groups = data.draw(channels(size)), data.draw(priors(size)), data.draw(partitions(size))
    threat = Threat(Prior(pi), groups)
    risk = assess(Matrix(channel), threat)
    for z in filter(lambda z: some_mass(threat, z), range(size)):
        found = risk.of(z)
        variation, surely, _, belief = by_hand(channel, threat.prior.weights, groups, z)
        assert found.exact
        assert found.advantage == pytest.approx(variation, abs=1e-12)
        assert found.yes_on_record == pytest.approx(surely, abs=1e-12)
        assert found.yes_on_others == pytest.approx(surely - variation, abs=1e-12)
        assert found.largest_posterior == pytest.approx(belief, abs=1e-12)
        assert risk.exposures[z] == pytest.approx(variation, abs=1e-12)


@pytest.mark.slow
@given(st.data(), st.integers(1, 6))
def test_its_prior_mean_is_the_advantage_of_membership(data: st.DataObject, size: int) -> None:
    mechanism: Any = data.draw(st.one_of(set_protocols(size), channels(size).map(Matrix)))
    prior = Prior(data.draw(priors(size)))
    membership = assess(mechanism, Threat.membership(prior))
    for risk in (assess(mechanism, Threat(prior)), membership):
        mean = prior.weights[prior.support] @ risk.exposures[prior.support]
        assert mean == pytest.approx(membership.advantage, abs=1e-12)


@pytest.mark.slow
@given(st.data(), st.integers(2, 6))
def test_of_every_set_protocol_it_is_a_share_of_the_total_variation(data: st.DataObject, size: int) -> None:
    protocol: SetProtocol = data.draw(set_protocols(size))
    threat = Threat(Prior(data.draw(priors(size))), data.draw(partitions(size)))
    channel = protocol.matrix()
    for z in filter(lambda z: some_mass(threat, z), range(size)):
        found = exposure(protocol, threat, z)
        weight = compared_with(threat, z)[z]
        assert found.advantage == pytest.approx((1 - weight) * protocol.total_variation, abs=1e-12)
        variation, surely, perhaps, belief = by_hand(channel, threat.prior.weights, threat.knows.groups, z)
        assert found.advantage == pytest.approx(variation, abs=1e-12)
        assert surely - 1e-12 <= (found.yes or 0.0) <= perhaps + 1e-12 or found.advantage < 1e-12
        assert found.largest_posterior == pytest.approx(belief, abs=1e-9)


def test_who_looks_for_hiv_gains_what_the_average_attacker_never_shows() -> None:
    """45 of 101,766 stays in hospital, one of 717 diagnoses: OUE at epsilon 1 (theory, section 3.8)."""
    rest = np.full(716, (101_766 - 45) / 716)
    risk = assess(OUE(717, 1.0), Threat(Prior.from_counts([*rest, 45.0], [*range(716), "HIV"])))
    assert risk.of("HIV").advantage == pytest.approx(0.231, abs=5e-4)
    assert risk.of("HIV").advantage == pytest.approx((1 - 45 / 101_766) * (0.5 - 1 / (1 + np.e)), abs=1e-12)
    assert risk.average_attacker_by_record[716] < 1e-9
    assert risk.most_at_risk(1) == [("HIV", risk.of("HIV").advantage)]
    assert (risk.of("HIV").yes_on_record, risk.of("HIV").yes_on_others) == pytest.approx((0.5, 0.269), abs=5e-4)


LINES = [
    lambda places: Laplace(places, scale=0.4),
    lambda places: Gaussian(places, 0.4),
    lambda places: Laplace(places, scale=0.4, interval=(0.2, 0.7)),
    lambda places: Gaussian(places, 0.4, interval=(0.2, 0.7)),
    lambda places: Laplace(places, scale=0.4, interval=(0.2, 0.7), ends="truncate"),
    lambda places: Gaussian(places, 0.4, interval=(0.2, 0.7), ends="truncate"),
]


@pytest.mark.parametrize("made", LINES)
@pytest.mark.parametrize("groups", [[0] * 6, [0, 0, 0, 1, 1, 1]])
def test_noise_on_a_line_agrees_with_a_fine_grid(made: Any, groups: list[int]) -> None:
    rng = np.random.default_rng(3)
    mechanism: Additive = made(rng.random(6))
    weights = np.array([0.4, 0.3, 0.0, 0.1, 0.15, 0.05])
    threat = Threat(Prior(weights), groups)
    low, high = mechanism.interval or (-7.0, 8.0)
    edges = np.linspace(low, high, 20_001)
    channel = mechanism.density((edges[1:] + edges[:-1]) / 2) * np.diff(edges)
    if mechanism.is_clamped:
        channel = np.hstack([channel, np.exp(mechanism.log_likelihood([low, high])).T])
    every = exposures(mechanism, threat)
    for z in range(6):
        share = compared_with(threat, z)
        other = share @ channel
        found = exposure(mechanism, threat, z)
        assert found.is_proven
        assert found.error < 1e-9
        assert found.advantage == pytest.approx(np.maximum(channel[z] - other, 0).sum(), abs=2e-5)
        assert found.yes == pytest.approx(channel[z][channel[z] > other].sum(), abs=2e-3)
        assert found.largest_posterior is not None
        seen = (share[z] * channel[z] / np.maximum(other, 1e-300)).max()
        assert seen * (1 - 1e-3) - 1e-9 <= found.largest_posterior <= 1
        if weights[z] > 0:
            assert every[z] == pytest.approx(found.advantage, abs=1e-9)


def test_the_largest_posterior_of_gaussian_noise_is_the_top_of_a_hill_or_a_limit() -> None:
    mechanism, weights = Gaussian([0.0, 1.0, 3.0], 0.7), np.array([0.5, 0.2, 0.3])
    threat = Threat(Prior(weights))
    at = np.linspace(-3, 6, 100_001)
    joint = weights[:, None] * mechanism.density(at)
    hill = (joint[1] / joint.sum(axis=0)).max()
    assert exposure(mechanism, threat, 1).largest_posterior == pytest.approx(hill, abs=1e-8)
    assert exposure(mechanism, threat, 0).largest_posterior == 1
    shared = Threat(Prior([0.3, 0.1, 0.6]))
    assert exposure(Gaussian([0.0, 0.0, 1.0], 0.7), shared, 1).largest_posterior == pytest.approx(0.25)
    assert exposure(Laplace([0.0, 1.0], 2.0), Threat(Prior.uniform(2)), 1).largest_posterior == pytest.approx(
        1 / (1 + np.exp(-2.0))
    )


def seen(mechanism: Mechanism, weights: list[float], record: int) -> float | None:
    return assess(mechanism, Threat(Prior(weights))).of(record).largest_posterior


def believed(logs: FloatArray, weights: list[float], record: int) -> float:
    """The largest posterior over outputs whose log-likelihoods are listed, outputs x records."""
    with np.errstate(divide="ignore"):
        all_of_it = logs + np.log(weights)
    return float(np.exp(all_of_it[:, record] - np.logaddexp.reduce(all_of_it, axis=1)).max())


FAR = [-2, 4, 1, 1]
RARE = [1e-12, 0.5, 0.25, 0.25]


def test_outputs_of_discrete_gaussian_noise_tell_all_of_the_outermost_positions() -> None:
    """exp(-(k + 2)^2 / 8) / exp(-(k - 4)^2 / 8) has no bound as k falls: a tail that is listed as one output has."""
    noisy = DiscreteGaussian(FAR, 2.0)
    assert seen(noisy, RARE, 0) == 1
    assert "makes it all but certain" in assess(noisy, Threat(Prior(RARE))).of(0).sentence()
    assert seen(DiscreteGaussian([2, 3], 2.0), [0.876, 0.124], 1) == 1
    assert seen(DiscreteGaussian([3, 3, 0], 2.0), [0.1, 0.3, 0.6], 0) == pytest.approx(0.25)
    assert seen(DiscreteGaussian([0, 5, 9], 2.0), [0.5, 0.5, 0.0], 1) == 1  # nobody is believed to be at 9
    assert seen(DiscreteGaussian([0, 5, 9], 2.0), [0.5, 0.5, 0.0], 2) == 0
    assert seen(DiscreteGaussian([0, 1], 1e9), [0.9, 0.1], 1) == 1  # where outputs are too many to list


@pytest.mark.parametrize("weights", [RARE, [0.4, 0.1, 0.2, 0.3], [0.5, 1e-300, 0.25, 0.25], [0.0, 0.5, 0.3, 0.2]])
def test_inner_records_are_seen_best_at_one_of_the_outputs_however_far(weights: list[float]) -> None:
    k = np.arange(-3000, 3000)[:, None]
    bell = -((k - np.array(FAR)) ** 2) / (2 * 2.0**2)
    twice = -((k - 2 * np.array(FAR)) ** 2) / (2 * 2 * 2.0**2)  # the sum of two reports
    noisy, told = DiscreteGaussian(FAR, 2.0), np.log(GRR(4, 1.0).matrix().T)
    beside = (bell[:, None, :] + told).reshape(-1, 4)
    for record, (mechanism, logs) in itertools.product(
        range(4),
        [
            (noisy, bell),
            (noisy.repeat(2), twice),
            (noisy.repeat(2).repeat(1), twice),
            (OnAttribute(DiscreteGaussian([-2, 4, 1], 2.0), [0, 1, 2, 2]), bell),
            (OnAttribute(DiscreteGaussian([-2, 4, 1], 2.0).repeat(2), [0, 1, 2, 2]), twice),
            (Product(noisy, GRR(4, 1.0)), beside),
            (OnAttribute(Product(GRR(4, 1.0), noisy), range(4)), beside),
        ],
    ):
        assert seen(mechanism, weights, record) == pytest.approx(believed(logs, weights, record), rel=1e-9), mechanism


def test_what_is_not_known_of_far_outputs_is_not_told() -> None:
    noisy = DiscreteGaussian(FAR, 2.0)
    assert seen(Product(noisy, noisy), RARE, 0) is None
    assert seen(PostProcessed(noisy, lambda outputs: outputs), RARE, 0) is None
    as_listed = PostProcessed(noisy, np.arange(int(noisy.n_outputs)))  # whose tails are one output each by its list
    assert seen(as_listed, RARE, 0) == pytest.approx(believed(np.log(noisy.matrix().T), RARE, 0), rel=1e-9)


@pytest.mark.parametrize("ends", ["clamp", "truncate"])
def test_outputs_too_unlikely_for_floats_are_seen_too(ends: Any) -> None:
    """At 100 each probability is below 1e-2000, and their ratio is exp(99.5) or so."""
    kept = DiscreteGaussian([0, 1, 1], 1.0, interval=(-100, 100), ends=ends)
    weights = [1 - 2e-30, 1e-30, 1e-30]
    assert seen(kept, weights, 1) == pytest.approx(0.5)
    assert seen(kept.repeat(2), weights, 1) == pytest.approx(0.5)
    listed = np.arange(int(kept.n_outputs))
    assert seen(PostProcessed(kept, listed), weights, 1) == pytest.approx(0.5)


def test_laplace_tails_tell_the_same_at_every_output() -> None:
    """Of two reports the likelihood ratio is at most e^2 between positions that are one scale apart."""
    most = 0.01 * math.e**2 / (0.99 + 0.01 * math.e**2)
    assert seen(DiscreteLaplace([0, 3], scale=3.0).repeat(2), [0.99, 0.01], 1) == pytest.approx(most)
    assert seen(GRR(2, 1e-3).repeat(9000), [0.6, 0.4], 1) == pytest.approx(0.4 / (0.4 + 0.6 * math.exp(-9)))


def test_where_outputs_cannot_be_listed_it_is_an_estimate_whose_interval_holds() -> None:
    """Two records, where the total variation is that of their means: 30 seeds of 95 %."""
    threat = Threat(Prior([0.3, 0.7]), success=None)
    noisy = VectorGaussian([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 1.0)
    three = Threat(Prior([0.2, 0.3, 0.5]))
    with pytest.raises(DpriskError, match="estimates one"):
        exposures(noisy, three)
    found = assess(noisy, three, runs=2000).of(0)
    assert found.estimate is not None
    assert not found.exact
    assert found.estimate.runs == 2000
    assert found.sentence().startswith("By an estimate, an attacker who looks for record 0")
    truth = exposure(Gaussian([0.0, 1.0], 1.0), threat, 0)
    held = 0
    for seed in range(30):
        measured = estimate_exposure(Gaussian([0.0, 1.0], 1.0), threat, 0, np.random.default_rng(seed), 600)
        low, high = measured.advantage_interval
        below, above = measured.yes_interval
        held += low <= truth.advantage <= high and below <= (truth.yes or 0.0) <= above
    assert held >= 28


def test_laplace_vectors_tell_most_at_their_own_place() -> None:
    threat = Threat(Prior([0.2, 0.3, 0.5]))
    sure = 0.2 / (0.2 + 0.8 * np.exp(-1.0))
    for mechanism in (SHE(3, 1.0), VectorLaplace(np.eye(3), 2.0)):
        found = assess(mechanism, threat, runs=500).of(0)
        assert found.largest_posterior == pytest.approx(sure, abs=1e-12)


@pytest.mark.slow
@given(st.data(), st.integers(2, 5))
def test_a_guarantee_bounds_the_risk_of_every_record(data: st.DataObject, size: int) -> None:
    channel = Matrix(data.draw(channels(size)))
    threat = Threat(Prior(data.draw(priors(size))), data.draw(partitions(size)))
    worst, risk = assess(channel.guarantee(), threat), assess(channel, threat)
    for z in filter(lambda z: some_mass(threat, z), range(size)):
        most, found = worst.of(z), risk.of(z)
        assert not most.exact
        assert most.yes_on_record is most.yes_on_others is None
        assert found.advantage <= most.advantage + 1e-9
        assert (found.largest_posterior or 0.0) <= (most.largest_posterior or 0.0) + 1e-9


def test_what_a_guarantee_says_of_a_record() -> None:
    most = assess(PureDP(1.0), Threat(Prior([0.2, 0.3, 0.5]))).of(0)
    assert most.advantage == pytest.approx(0.8 * np.tanh(0.5))
    assert most.largest_posterior == pytest.approx(0.2 * np.e / (0.8 + 0.2 * np.e))
    assert assess(GaussianDP(1.0), Threat(Prior([0.2, 0.8]))).of(0).largest_posterior == 1
    assert GRR(3, 1.0).total_variation * 0.8 <= most.advantage


@pytest.mark.parametrize(
    ("prior", "asked", "number"),
    [
        (Prior.uniform(3), 2, 2),
        (Prior.uniform(3), "1", 1),
        (Prior.uniform(3, ["a", "b", "c"]), "b", 1),
        (Prior.uniform(3, [20, 30, 40]), 30, 1),
        (Prior.uniform(3, [20, 30, 40]), "40", 2),
        (Prior.uniform(3, [20, 30, 40]), np.float64(40.0), 2),
        (Prior.uniform(2, [("f", "yes"), ("f", "no")]), ("f", "no"), 1),
        (Prior.uniform(2, [("f", "yes"), ("f", "no")]), "f, yes", 0),
        (Prior.uniform(2, [1, "1"]), "1", 1),
    ],
)
def test_a_record_is_named_as_people_name_it(prior: Prior, asked: Any, number: int) -> None:
    assert prior.find(asked) == number
    assert assess(GRR(prior.size, 1.0), Threat(prior)).of(asked).number == number


@pytest.mark.parametrize(
    ("prior", "asked", "words"),
    [
        (Prior.uniform(2, [("f", "yes"), ("f", "no")]), ("f", ["no"]), "no record"),
        (Prior.uniform(3), 3, "no record 3: the records have no labels, only numbers 0..2"),
        (Prior.uniform(3), True, "no record True"),
        (Prior.uniform(3), "flu", "no record 'flu'"),
        (Prior.uniform(3, ["HIV", "flu", "cold"]), "Hivv", "no record 'Hivv' among 3; is it HIV?"),
        (Prior.uniform(3, ["HIV", "flu", "cold"]), 0, "no record '0' among 3; is it HIV or flu or cold?"),
        (Prior.uniform(2, [1.5, ("1.5",)]), "1.5", "2 records are written like '1.5', give one of them"),
        (Prior.uniform(2, ["a", "b"]), ["a"], "no record"),
    ],
)
def test_an_unknown_record_gets_one_sentence(prior: Prior, asked: Any, words: str) -> None:
    with pytest.raises(DpriskError, match="record") as told:
        assess(GRR(prior.size, 1.0), Threat(prior)).of(asked)
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_a_group_that_nobody_is_in_has_no_one_to_compare_with() -> None:
    risk = assess(GRR(4, 1.0), Threat(Prior([0.5, 0.5, 0.0, 0.0]), ["a", "a", "b", "b"]))
    with pytest.raises(DpriskError, match="Nobody is believed to have what is known of 2"):
        risk.of(2)
    assert np.isnan(risk.exposures[2:]).all()


def test_a_million_records_are_ranked_at_once() -> None:
    risk = assess(SubsetSelection(1_000_000, 1.0), Threat(Prior.zipf(1_000_000)))
    top = risk.most_at_risk(3)
    assert [name for name, _ in top] == [999_999, 999_998, 999_997]
    assert all(one >= two for (_, one), (_, two) in pairwise(top))
    assert risk.of(999_999).advantage == pytest.approx(top[0][1], abs=1e-15)


def test_the_command_tells_of_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = tmp_path / "ill.csv"
    counts.write_text("label,count\nHIV,4\nflu,30\n")
    line = ["assess", "--mechanism", "oue", "--epsilon", "1", "--prior", str(counts), "--record"]
    code, shown, _ = run(capsys, monkeypatch, *line, "HIV")
    truth = assess(OUE(2, 1.0), Threat(Prior.from_counts({"HIV": 4, "flu": 30}))).of("HIV")
    assert code == 0
    assert truth.sentence() in shown
    told = json.loads(run(capsys, monkeypatch, *line, "HIV", "--json")[1])
    assert told["looked_for"] == [json.loads(json.dumps(truth.to_dict()))]
    assert told["inputs"]["record"] == ["HIV"]
    assert told["right_on_participants"] - told["right_on_others"] == pytest.approx(told["advantage"])
    code, _, wrong = run(capsys, monkeypatch, *line, "HIB")
    assert code != 0
    assert wrong == "Error: There is no record 'HIB' among 2; is it HIV?\n"
    shown = run(capsys, monkeypatch, *line, "hiv", "--record", "flu")[1]
    assert shown.index("record HIV,") < shown.index("record flu,")
    out = run(capsys, monkeypatch, *line, "HIV", "--record", "flu", "--csv")[1]
    lines = [row for row in csv.DictReader(io.StringIO(out)) if row["what"] == "yes_on_record"]
    assert [row["record"] for row in lines] == ["HIV", "flu"]
    assert float(lines[0]["value"]) == truth.yes_on_record


@pytest.mark.parametrize(("size", "is_told"), [(20, False), (5000, True)])
def test_what_is_left_out_for_many_records_is_said(
    size: int, is_told: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["assess", "--mechanism", "grr", "--epsilon", "1", "--size", str(size), "--prior", "zipf"]
    shown = run(capsys, monkeypatch, *line)[1]
    assert ("--record, risk.of(...)" in shown) is is_told
    assert ("bound on advantage" in shown) is not is_told
    assert "most at risk" in shown
    assert "looks for record 7 " in run(capsys, monkeypatch, *line, "--record", "7")[1]
    assert "Bounds that apply" in run(capsys, monkeypatch, *line, "--bounds")[1]


def test_a_record_is_found_by_how_it_is_written() -> None:
    prior = Prior.uniform(5, [("f", "NO"), ("f", "yes"), ("m", "no"), ("m", 250.83), ("M", "Other")])
    for text, place in (
        ("f, NO", 0),
        ("F, no", 0),
        ("YES", 1),
        ("no", 2),
        ("250.83", 3),
        ("other", 4),
        ("m, other", 4),
    ):
        assert prior.find(text) == place
    with pytest.raises(DpriskError, match=r"^2 records are written like 'm', give one of them: m, no; m, 250\.83\.$"):
        prior.find("m")
    with pytest.raises(DpriskError, match="2 records are written like 'No'"):
        prior.find("No")
    with pytest.raises(DpriskError, match=r"7 records .*; and 2 more"):
        Prior.uniform(7, [(n, "x") for n in range(7)]).find("x")


def test_rows_are_told_as_they_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once each in JSON, with both numbers, and without Python's brackets in CSV."""
    (tmp_path / "ill.csv").write_text("sex,age,ill\nf,<30,flu\nf,<30,HIV\nm,30+,flu\nm,30+,flu\n")
    line = ["assess", "--mechanism", "grr", "--epsilon", "1", "--data", str(tmp_path / "ill.csv"), "--column", "ill"]
    line += ["--knows", "sex,age", "--record", "hiv"]
    told = json.loads(run(capsys, monkeypatch, *line, "--json")[1])
    assert [set(entry) for entry in told["records"]] == [{"record", "advantage if looked for", "average attacker"}] * 3
    rows = ["f, <30, HIV", "f, <30, flu", "m, 30+, flu"]
    assert [entry["record"] for entry in told["records"]] == rows
    assert told["looked_for"][0]["record"] == rows[0]
    lines = list(csv.DictReader(io.StringIO(run(capsys, monkeypatch, *line, "--csv")[1])))
    assert {row["record"] for row in lines} == {"", *rows}


def test_a_bound_that_excludes_nothing_is_no_fact() -> None:
    """Randomised response keeps these promises, and none of its reports makes anybody certain."""
    for guarantee in (ApproxDP(0.1, 1e-9), GaussianDP(0.01)):
        told = assess(guarantee, Threat(Prior.uniform(3))).of(1)
        assert told.largest_posterior == 1.0
        assert "certain" not in told.sentence()


def test_a_record_of_a_guarantee_for_adding_or_removing() -> None:
    threat = Threat(Prior.uniform(4))
    told = assess(PureDP(1.0, "add-remove"), threat).of(2)
    assert told.advantage == pytest.approx(0.75 * (1 - 2 * float(PureDP(1.0).tradeoff(0.5))), abs=1e-12)
    assert told.rows[-1][2].startswith("(1 - prior)(1 - 2 f(1/2))")
    renyi = RenyiDP([2, 4, 8, 32], [0.01, 0.02, 0.05, 0.2], relation="add-remove")
    assert 0 < assess(renyi, threat).of(0).advantage < 0.2
    with pytest.raises(DpriskError, match="can be listed"):
        assess(PureDP(1.0), Threat.reconstruction(Density.uniform(), within=0.1)).of(0.5)
