"""Somebody's own closed form, bound and attack: one registration, and every verb takes them."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprisk import (
    GRR,
    OUE,
    ApproxDP,
    Laplace,
    Mechanism,
    Prior,
    PureDP,
    Threat,
    assess,
    attacks,
    audit,
    bounds,
    calibrate,
    exact,
)
from dprisk.attacks import MarkovModel, NamedAttack
from dprisk.attacks.estimate import estimate_best, measure
from dprisk.bounds import Bound
from dprisk.errors import DpriskError, TooLargeError
from dprisk.exact import Form
from dprisk.mechanisms import SHE, VectorGaussian
from dprisk.registers import Register
from dprisk.types import IntArray
from tests.typed import run

SKEWED = Threat(Prior([0.6, 0.3, 0.1]))
TWO_OF_THREE = Threat(Prior([0.5, 0.5, 0.0]))


def is_uniform_histogram(mechanism: Mechanism, threat: Threat) -> bool:
    simple = threat.knows.is_none and threat.success.is_exact and threat.prior.is_uniform_on_support
    return isinstance(mechanism, SHE) and simple


def without_the_impossible(mechanism: SHE, threat: Threat) -> exact.Optimum:
    """The entries of records that nobody has are noise: as if there were only the others."""
    some = threat.prior.support_size
    found = exact.solve(SHE(some, mechanism.epsilon), Threat(Prior.uniform(some)))
    by_record = np.where(threat.prior.weights > 0, found.advantage, 0.0)
    return exact.Optimum(found.advantage_by_group, found.success_by_group, by_record)


@pytest.fixture
def form() -> Iterator[Form]:
    mine = Form("possible entries", "this test", is_uniform_histogram, without_the_impossible)
    exact.register(mine)
    yield mine
    exact.FORMS.unregister("possible entries")


@pytest.fixture
def bound() -> Iterator[Bound]:
    """Of all there is to gain; true of every mechanism, and rarely the tightest."""
    mine = Bound(
        "all-there-is",
        "this test",
        "1 - kappa_pi",
        "any",
        lambda guarantee, threat: 1 - threat.prior.collision_probability,
    )
    bounds.register(mine)
    yield mine
    bounds.REGISTRY.unregister("all-there-is")


class Last:
    def guess(self, outputs: Any, rng: np.random.Generator, known: Any = None) -> IntArray:
        return np.full(len(outputs), 2)


@pytest.fixture
def attack() -> Iterator[NamedAttack]:
    mine = NamedAttack("LAST", "last one", "guess the last record", Last)
    attacks.register(mine)
    yield mine
    attacks.NAMED.unregister("last")


def test_a_register_keeps_order_and_names() -> None:
    entries: Register[Form] = Register("form", *exact.FORMS)
    assert [form.name for form in entries][-2:] == ["break points", "every output"]
    assert entries["Break Points"].name == "break points"
    assert len(entries) == len(exact.FORMS)
    with pytest.raises(DpriskError, match="Another form, sets, is called 'sets' already"):
        entries.register(exact.FORMS["sets"])
    entries.unregister("sets")
    assert "sets" not in entries
    with pytest.raises(
        DpriskError, match="no form 'sets'; choose one of enclosed, fewer records, sets of an attribute"
    ):
        entries["sets"]


def test_names_are_understood_in_every_register() -> None:
    assert attacks.NAMED["Randomized Response"].name == "GRR"
    assert bounds.REGISTRY["fixed point"].name == "fixed-point"
    with pytest.raises(DpriskError, match=r"Did you mean worst-blocks\?"):
        bounds.REGISTRY["worst-block"]


def test_an_optimum_says_by_what_it_was_found() -> None:
    uniform = Threat(Prior.uniform(3))
    found = {
        "sets": (OUE(3, 1.0), SKEWED),
        "randomised response": (GRR(3, 1.0), Threat.reconstruction(Prior.uniform(3), within=1)),
        "nearest position": (Laplace(3, 1.0), uniform),
        "repeated means": (VectorGaussian(np.repeat(np.eye(3), 2, axis=0), 1.0), Threat(Prior.uniform(6))),
        "right-angled means": (VectorGaussian(np.eye(3), 1.0), uniform),
        "break points": (Laplace(3, 1.0), SKEWED),
        "every output": (GRR(3, 1.0).repeat(2), SKEWED),
    }
    for name, (mechanism, threat) in found.items():
        assert exact.solve(mechanism, threat).by == name
        assert exact.FORMS[name].source


def test_a_closed_form_of_ones_own(form: Form) -> None:
    """What had to be estimated is exact, and inside the interval of the estimate."""
    risk, truth = assess(SHE(3, 2.0), TWO_OF_THREE), assess(SHE(2, 2.0), Threat(Prior.uniform(2)))
    assert risk.exact
    assert risk.optimum.by == form.name
    assert (risk.advantage, risk.success) == (truth.advantage, truth.success)
    assert risk.average_attacker_by_record.tolist() == [truth.advantage, truth.advantage, 0.0]
    assert calibrate(SHE(3, 2.0), TWO_OF_THREE, advantage=truth.advantage).value == pytest.approx(2.0)
    measured = estimate_best(SHE(3, 2.0), TWO_OF_THREE, np.random.default_rng(0), 20_000)
    assert measured.advantage_interval[0] <= risk.advantage <= measured.advantage_interval[1]
    with pytest.raises(DpriskError, match="'possible entries' already"):
        exact.register(form)


def test_without_it_the_value_is_out_of_reach() -> None:
    with pytest.raises(TooLargeError, match="infinitely many outputs"):
        exact.solve(SHE(3, 2.0), TWO_OF_THREE)


def test_a_bound_of_ones_own(bound: Bound, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    worst = assess(PureDP(1.0), SKEWED)
    assert "all-there-is" in [value.bound.name for value in worst.on_advantage.values]
    assert "all-there-is" in json.dumps(worst.to_dict())
    assert "all-there-is" in run(capsys, monkeypatch, "bounds")[1]
    certain = assess(ApproxDP(0.0, 1.0), Threat(Prior([0.6, 0.3, 0.1]), knows=[0, 1, 1]))
    assert certain.on_advantage.values[0].number == pytest.approx(1 - SKEWED.prior.collision_probability)
    assert calibrate(PureDP(1.0), SKEWED, advantage=0.1).value > 0
    assert audit(GRR(3, 1.0), threat=SKEWED, runs=2000).epsilon_certified <= 1
    with pytest.raises(DpriskError, match="choose another name"):
        bounds.register(bound)


def test_a_formula_is_given_what_its_parameters_are_called(bound: Bound) -> None:
    wrong = replace(bound, name="wrong", formula=lambda luck: luck)
    with pytest.raises(DpriskError, match="wrong takes 'luck'; a formula is given total_variation, prior"):
        wrong.value(PureDP(1.0), SKEWED)


def test_assessments_can_be_pickled_with_their_bounds(bound: Bound) -> None:
    worst, risk = assess(PureDP(1.0), SKEWED), assess(GRR(3, 1.0), SKEWED)
    assert risk.bounds.advantage == pytest.approx(worst.advantage)
    for told in (worst, risk, risk.bounds):
        again = pickle.loads(pickle.dumps(told))
        assert again.to_dict() == told.to_dict()
    again = pickle.loads(pickle.dumps(worst))
    assert all(
        one.bound is two.bound for one, two in zip(again.on_advantage.values, worst.on_advantage.values, strict=True)
    )
    away = pickle.dumps(bound)
    bounds.REGISTRY.unregister(bound.name)
    with pytest.raises(DpriskError, match="no bound 'all-there-is'"):
        pickle.loads(away)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(bound)
    bounds.register(bound)


def test_an_attack_of_ones_own(attack: NamedAttack) -> None:
    rng = np.random.default_rng(0)
    found = measure(attacks.make("Last", GRR(3, 1.0), SKEWED), GRR(3, 1.0), SKEWED, rng, 2000)
    assert found.advantage == pytest.approx(0, abs=0.05)
    with pytest.raises(DpriskError, match=r"one record of 0..1"):
        attacks.make("LAST", GRR(2, 1.0), Threat(Prior.uniform(2)))
    with pytest.raises(DpriskError, match="'LAST' already"):
        attacks.register(attack)


def test_attacks_are_made_by_name() -> None:
    rng = np.random.default_rng(0)
    best = assess(OUE(3, 1.0), SKEWED)
    assert {attack.needs for attack in attacks.NAMED} >= {(), ("mechanism",), ("prior",), ("mechanism", "threat")}
    assert all(attack.title and attack.explanation for attack in attacks.NAMED)
    for name, which in (("optimal", "advantage"), ("optimal-success", "success")):
        found = measure(attacks.make(name, OUE(3, 1.0), SKEWED), OUE(3, 1.0), SKEWED, rng, 40_000)
        assert getattr(found, which) == pytest.approx(getattr(best, which), abs=0.01)
    assert attacks.make("prior", OUE(3, 1.0), SKEWED).guess([0, 1], rng).tolist() == [0, 0]
    assert attacks.make("est", GRR(3, 1.0), SKEWED, others=[0] * 99).guess([1], rng).tolist() == [0]
    gradients = VectorGaussian(np.eye(3), 0.1)
    for name in ("simplified", "Simplified-Norms"):
        assert attacks.make(name, gradients, SKEWED).guess(np.eye(3), rng).tolist() == [0, 1, 2]
    model = MarkovModel(np.full((3, 3), 1 / 3))
    steps = model.threat(Prior.uniform(3))
    assert attacks.make("corr", model.on_steps(GRR(3, 1.0)), steps, model=model).guess([2], rng, [0]).tolist() == [2]


@pytest.mark.parametrize(
    ("name", "mechanism", "more", "said"),
    [
        ("luck", GRR(3, 1.0), {}, "no attack 'luck'; choose one of OPTIMAL"),
        ("EST", GRR(3, 1.0), {}, "EST needs the records of everybody else, by their numbers; pass it as `others`"),
        ("CORR", GRR(3, 1.0), {}, "CORR needs a MarkovModel"),
        ("GRR", GRR(3, 1.0), {"others": [0]}, "GRR takes no `others`"),
        ("GRR", OUE(3, 1.0), {}, "outputs must be numbers of records"),
        ("OUE", Laplace(3, 1.0), {}, "report a set of records"),
        ("SIMPLIFIED", GRR(3, 1.0), {}, "Gaussian noise on vectors"),
        ("OPTIMAL", GRR(4, 1.0), {}, "they must be the same"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(name: str, mechanism: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(DpriskError, match=said):
        attacks.make(name, mechanism, SKEWED, **more)
