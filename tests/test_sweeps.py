"""A sweep says what single assessments say, names the worst of what was tried, and can be stopped."""

import json
import math
import pickle
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import (
    DPSGD,
    GRR,
    OUE,
    ApproxDP,
    Density,
    Gaussian,
    GaussianDP,
    Laplace,
    Prior,
    PureDP,
    Ring,
    Threat,
    assess,
    sweep,
)
from dprisk.errors import DpriskError
from dprisk.mechanisms import SHE, OnInterval, Repeated
from dprisk.risks import Assessment, Risk
from dprisk.sweeps import Point, Sweep, SweepInterrupted, numbers_in, sweeping
from dprisk.threat.success import Attributes

PRIORS = {"uniform": Prior.uniform(6), "zipf": Prior.zipf(6), "two": Prior([0.5, 0, 0, 0, 0, 0.5])}
THREAT = Threat(Prior.zipf(6))


def told(risk: Assessment) -> tuple[float, float, float]:
    return risk.advantage, risk.success, risk.baseline


@pytest.mark.slow
def test_every_case_is_what_a_single_call_says() -> None:
    """Exactly, not nearly: all combinations of subject, parameter, prior and distance."""
    subjects = {"grr": GRR(6, 1.0), "laplace": Laplace(6, 1.0), "any": PureDP(1.0)}
    epsilons, distances = [0.5, 3.0], [0, 1]
    found = sweep(subjects, THREAT, epsilon=epsilons, within=distances, prior=PRIORS)
    cases = list(product(subjects, PRIORS, distances, epsilons))
    assert [(p.subject, p.prior, p.within, p.parameter) for p in found.points] == cases
    for point, (name, prior, within, epsilon) in zip(found.points, cases, strict=True):
        alone = assess(subjects[name].with_parameter(epsilon), Threat.reconstruction(PRIORS[prior], within=within))
        assert (point.advantage, point.success, point.baseline) == told(alone)
        assert point.how == ("bound" if name == "any" else "exact")
    assert found.complete


@pytest.mark.parametrize(
    ("subject", "name", "values"),
    [
        (Gaussian(6, 1.0), "sigma", [0.2, 1.0]),
        (GaussianDP(1.0), "mu", [0.5, 2.0]),
        (ApproxDP(1.0, 1e-5), "epsilon", [0.5, 2.0]),
        (DPSGD(1.0, 4), "noise_multiplier", [2.0, 8.0]),
        (Repeated(GRR(6, 1.0), 2), "epsilon", [0.5, 2.0]),
    ],
)
def test_any_parameter_goes_by_its_own_name(subject: Any, name: str, values: list[float]) -> None:
    arguments: dict[str, Any] = {name: values}
    found = sweep(subject, THREAT, **arguments)
    alone = [assess(subject.with_parameter(value), THREAT) for value in values]
    assert found.axes == (name,)
    assert found.column("advantage") == [risk.advantage for risk in alone]
    assert found.column("success") == [risk.success for risk in alone]


def test_knowledge_and_the_space_of_a_threat_stay() -> None:
    threat = Threat(Prior.uniform(6), knows=list("aabbcc"), success=Ring(1.0))
    found = sweep(GRR(6, 2.0), threat, within=[0, 1, 2], prior={"zipf": Prior.zipf(6)})
    alone = [assess(GRR(6, 2.0), Threat(Prior.zipf(6), list("aabbcc"), Ring(within))) for within in (0, 1, 2)]
    assert found.column("advantage") == [risk.advantage for risk in alone]


def test_a_prior_without_labels_is_over_the_records_of_the_threat() -> None:
    labels = [0, 10, 20, 40]
    threat = Threat.reconstruction(Prior.uniform(4, labels), within=10)
    found = sweep(GRR(4, 1.0), threat, prior={"zipf": Prior.zipf(4)})
    named = Threat.reconstruction(Prior.zipf(4).replace(labels=labels), within=10)
    assert found.points[0].advantage == assess(GRR(4, 1.0), named).advantage
    assert found.points[0].baseline != Threat.reconstruction(Prior.zipf(4), within=10).baseline


def test_estimates_have_the_intervals_of_a_single_call() -> None:
    threat = Threat(Prior.zipf(4))
    found = sweep({"she": SHE(4, 1.0), "grr": GRR(4, 1.0), "any": PureDP(1.0)}, threat, epsilon=[1.0], runs=500, seed=3)
    alone = assess(SHE(4, 1.0), threat, runs=500, seed=3)
    she, grr, bound = found.records
    assert (she["advantage_low"], she["advantage_high"]) == alone.advantage_interval
    assert (she["success_low"], she["success_high"]) == alone.success_interval
    assert she["how"] == "estimate"
    assert grr["advantage_low"] == grr["advantage"] == grr["advantage_high"]
    assert (bound["advantage_low"], bound["advantage_high"]) == (None, bound["advantage"])


def test_bounds_stand_beside_the_exact_values_and_are_not_below_them() -> None:
    found = sweep([GRR(6, 1.0), OUE(6, 1.0)], THREAT, epsilon=[0.5, 2.0], bounds=True)
    for point in found.points:
        kind = GRR if point.subject == "GRR" else OUE
        limits = assess(kind(6, point.parameter or 0.0), THREAT).bounds
        assert (point.advantage_bound, point.success_bound) == (limits.advantage, limits.success)
        assert limits.advantage >= point.advantage - 1e-12
    assert found.columns[-3:] == ("advantage at most", "success at most", "how")


@pytest.mark.slow
def test_numbers_of_an_interval_are_swept_too() -> None:
    priors = {"flat": Density.uniform(), "beta": Density.beta(2, 5)}
    found = sweep(OnInterval.laplace(2.0), Threat.reconstruction(Density.uniform(), within=0.2), prior=priors)
    assert {point.how for point in found.points} == {"enclosed"}
    assert found.worst.advantage == max(found.column("advantage"))


def test_the_sentence_names_the_worst_prior_and_where_it_changes() -> None:
    """Randomised response over six records: two records are the mildest uniform prior (theory, correction 3)."""
    found = sweep(GRR(6, 1.0), THREAT, epsilon=[0.5, 1.0, 2.0], prior=PRIORS)
    assert found.worst_along("prior") == [(0.5, "uniform"), (1.0, "uniform"), (2.0, "uniform")]
    success = math.exp(2) / (math.exp(2) + 5)
    assert found.sentence() == (
        f"Of the 9 cases tried the worst is prior uniform, epsilon 2: advantage {success - 1 / 6:.4f}, "
        f"success {success:.4f}, baseline 0.1667. The worst prior is uniform throughout."
    )
    noise = sweep(Laplace(6, 1.0), THREAT, epsilon=[4, 1.0, 12, 40], prior=PRIORS)
    alone = {epsilon: max(PRIORS, key=lambda it: _laplace(it, epsilon)) for epsilon in (1.0, 4, 12, 40)}
    assert noise.worst_along("prior") == list(alone.items())
    assert alone[1.0] == "two"
    assert alone[40] == "uniform"
    last = max(epsilon for epsilon, prior in alone.items() if prior == "two")
    first = min(epsilon for epsilon, prior in alone.items() if prior == "uniform")
    assert noise.sentence().endswith(f"The worst prior is two up to epsilon {last:g}, uniform from {first:g} on.")


def _laplace(prior: str, epsilon: float) -> float:
    return assess(Laplace(6, epsilon), Threat(PRIORS[prior])).advantage


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_the_worst_is_the_largest_and_the_first_of_equals(advantages: list[float]) -> None:
    points = tuple(Point("it", float(i), None, None, gain, 1.0, 0.5, "exact", "") for i, gain in enumerate(advantages))
    worst = Sweep(points, ("epsilon",), None, len(points)).worst
    assert worst.advantage >= max(advantages) * (1 - 1e-12) - 1e-14
    assert worst.advantage == max(advantages) or worst.parameter <= float(advantages.index(max(advantages)))  # type: ignore[operator]


def test_the_table_is_the_same_in_every_format() -> None:
    found = sweep({"a": GRR(6, 1.0), "b": PureDP(1.0)}, THREAT, epsilon=[0.5, 1.0], prior=PRIORS)
    frame, other = found.to_pandas(), found.to_polars()
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(other, pl.DataFrame)
    assert frame.to_dict("records") == other.to_dicts() == found.records == found.to_dict()["rows"]
    read = [line.split(",") for line in found.to_csv().splitlines()]
    assert read[0] == list(found.records[0])
    place = read[0].index("advantage")
    assert [float(line[place]) for line in read[1:]] == found.column("advantage")
    assert json.loads(json.dumps(found.to_dict()))["worst"] == found.numbers["worst"]
    again = pickle.loads(pickle.dumps(found))
    assert again.records == found.records
    assert "<th" in found._repr_html_()


def test_a_part_of_a_sweep_is_a_sweep() -> None:
    found = sweep(GRR(6, 1.0), THREAT, epsilon=[0.5, 1.0, 2.0], prior=PRIORS)
    part = found.where(prior=["zipf", "two"], epsilon=1.0)
    assert [point.prior for point in part.points] == ["zipf", "two"]
    assert part.points[0] in found.points


def test_each_subject_is_built_once_for_all_threats_and_each_threat_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[float] = []
    reached: list[Threat] = []
    turn, reach = GRR.with_parameter, Threat.reach.func  # type: ignore[attr-defined]

    def turned(mechanism: GRR, value: float) -> GRR:
        built.append(value)
        return turn(mechanism, value)

    def reaching(threat: Threat) -> Any:
        reached.append(threat)
        return reach(threat)

    monkeypatch.setattr(GRR, "with_parameter", turned)
    monkeypatch.setattr(Threat.reach, "func", reaching)
    sweep(GRR(6, 1.0), THREAT, epsilon=[0.5, 1.0, 2.0], prior=PRIORS, within=[1, 2])
    assert built == [0.5, 1.0, 2.0]
    assert len(reached) == 6


def test_progress_is_told_of_every_case() -> None:
    seen: list[tuple[int, int, Point]] = []
    found = sweep(GRR(6, 1.0), THREAT, epsilon=[0.5, 1.0], prior=PRIORS, progress=lambda *told: seen.append(told))
    assert [(done, cases) for done, cases, _ in seen] == [(done, 6) for done in range(1, 7)]
    assert {point for *_, point in seen} == set(found.points)


def test_what_was_found_survives_an_interruption() -> None:
    def stop(done: int, cases: int, point: Point) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(SweepInterrupted) as stopped:
        sweep(GRR(6, 1.0), THREAT, epsilon=[0.5, 1.0, 2.0], prior=PRIORS, progress=stop)
    found = stopped.value.sweep
    assert isinstance(stopped.value, KeyboardInterrupt)
    assert len(found.points) == 4
    assert not found.complete
    whole = sweep(GRR(6, 1.0), THREAT, epsilon=[0.5, 1.0, 2.0], prior=PRIORS)
    assert set(found.points) < set(whole.points)
    assert found.sentence().endswith("The sweep was stopped after 4 of 9 cases.")


def test_an_interruption_before_the_first_case_has_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> Risk:
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeping, "assess", stop)
    with pytest.raises(SweepInterrupted, match="stopped after 0 of 1 cases") as stopped:
        sweep(GRR(6, 1.0), THREAT, epsilon=[0.5])
    assert stopped.value.sweep.to_dict()["rows"] == []


TABLE = {"age": [1, 2, 3, 4, 5, 6], "job": list("aabbcc")}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: sweep(GRR(6, 1.0), THREAT), "Say what to vary"),
        (lambda: sweep(GRR(6, 1.0), THREAT, sigma=[1.0]), "GRR has the parameter epsilon, not sigma."),
        (lambda: sweep([GRR(6, 1.0), Gaussian(6, 1.0)], THREAT, epsilon=[1.0]), "Gaussian has the parameter sigma"),
        (lambda: sweep(GRR(6, 1.0), THREAT, eta=[1.0]), "called `within`"),
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon=[1.0], mu=[1.0]), "One parameter is varied at a time"),
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon=[]), "lists no number"),
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon=[1, 1.0]), "lists a number twice"),
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon="0.1..5"), "must be a number"),  # type: ignore[arg-type]
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon=[1, -1]), "epsilon -1: epsilon must be"),
        (lambda: sweep(GRR(6, 1.0), THREAT, prior=[Prior.uniform(6)]), "mapping from names"),  # type: ignore[arg-type]
        (lambda: sweep(GRR(6, 1.0), THREAT, prior={"seven": Prior.uniform(7)}), "prior seven: The mechanism takes 6"),
        (lambda: sweep([], THREAT, epsilon=[1.0]), "list of subjects is empty"),
        (lambda: sweep([GRR(6, 1.0), GRR(6, 1.0)], THREAT, epsilon=[1.0]), "read the same"),
        (lambda: sweep(GRR(6, 1.0), Prior.uniform(6), epsilon=[1.0]), "is a Threat, not Prior"),  # type: ignore[arg-type]
        (lambda: sweep(PureDP(1.0), THREAT, epsilon=[1.0], runs=10), "leave out runs"),
        (
            lambda: sweep(GRR(6, 1.0), Threat(Prior.uniform(6), success=Attributes(TABLE, ["job"])), within=[1]),
            "no one distance",
        ),
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon=[1.0]).column("rad"), "There is no column rad"),
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon=[1.0]).where(prior="x"), "prior was not varied"),
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon=[1.0]).where(epsilon=2.0), "No case"),
        (lambda: sweep(GRR(6, 1.0), THREAT, epsilon=[1.0]).picture("rad"), "not 'rad'"),
    ],
)
def test_wrong_sweeps_get_one_sentence(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(DpriskError) as refused:
        wrong()
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2", (2.0,)),
        ("0.1,0.5,1", (0.1, 0.5, 1.0)),
        ("0.1..5:2", (0.1, 5.0)),
        ("1..3:5", (1.0, 1.5, 2.0, 2.5, 3.0)),
        ("0..10", (0.0, 2.5, 5.0, 7.5, 10.0)),
        ("0.01..100", (0.01, 0.1, 1.0, 10.0, 100.0)),
        ("-1..1:3", (-1.0, 0.0, 1.0)),
        ("1e-3..1", (0.001, 0.00562, 0.0316, 0.178, 1.0)),
    ],
)
def test_ranges_are_read_as_people_write_them(text: str, numbers: tuple[float, ...]) -> None:
    assert numbers_in(text, 5) == numbers


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(2, 50))
def test_a_range_rises_from_its_first_number_to_its_last(one: float, other: float, points: int) -> None:
    low, high = sorted((one, other))
    if low == high:
        return
    numbers = numbers_in(f"{low!r}..{high!r}:{points}", 5)
    assert numbers[0] == low
    assert numbers[-1] == high
    assert list(numbers) == sorted(set(numbers))
    assert len(numbers) <= points


@pytest.mark.parametrize(
    "text", ["", "a", "1..", "..1", "1..a", "2..1", "1..1", "1..2:1", "1..2:x", "1..2:2000", "nan", "1..inf", "1,,2"]
)
def test_a_bad_range_gets_one_sentence(text: str) -> None:
    with pytest.raises(DpriskError, match="--epsilon") as refused:
        numbers_in(text, 5, "--epsilon")
    assert "\n" not in str(refused.value)


def test_frames_are_loaded_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sweep(GRR(6, 1.0), THREAT, epsilon=[1.0])
    for name, ask in (("pandas", found.to_pandas), ("polars", found.to_polars)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(DpriskError, match=f"pip install {name}"):
            ask()
