"""Both rates of the attacker of largest advantage, and the exact value of any given attack, against definitions."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import (
    GRR,
    OUE,
    SUE,
    Exponential,
    Gaussian,
    Laplace,
    Line,
    Matrix,
    Prior,
    PureDP,
    SubsetSelection,
    Survey,
    Threat,
    assess,
    exact,
)
from dprisk.attacks import NAMED, MostCommon, OptimalAttack, fitting, make
from dprisk.attacks.estimate import estimate_best, measure
from dprisk.errors import DpriskError
from dprisk.exact import theorem
from dprisk.exact.closed_forms import randomised_response
from dprisk.mechanisms import BLH, SHE, Mechanism, SetProtocol, VectorGaussian
from dprisk.threat.success import Distances, Success
from dprisk.types import BoolArray, FloatArray, IntArray
from tests.naive import attack_values
from tests.strategies import balls, partitions, priors, set_protocols
from tests.test_exact import by_table, problems, tiny_problems
from tests.typed import run


def best_rates(channel: FloatArray, pi: FloatArray, groups: IntArray, success: BoolArray) -> tuple[float, float]:
    """Of all deterministic attacks the largest advantage, and the largest success among those that attain it."""
    shape = channel.shape[1], int(groups.max()) + 1
    guesses = itertools.product(range(success.shape[0]), repeat=shape[0] * shape[1])
    values = [attack_values(channel, pi, groups, success, np.array(guess).reshape(shape)) for guess in guesses]
    top = max(advantage for advantage, _ in values)
    return top, max(right for advantage, right in values if advantage > top - 1e-13)


@pytest.mark.slow
@given(tiny_problems())
def test_both_rates_are_those_of_the_best_of_all_attacks(problem: Any) -> None:
    channel, pi, groups, success = problem
    risk = assess(Matrix(channel), Threat(Prior(pi), groups, by_table(success)))
    advantage, right = best_rates(channel, pi, groups, success)
    assert risk.advantage == pytest.approx(max(advantage, 0.0), abs=1e-12)
    assert risk.right_on_participants == pytest.approx(right, abs=1e-10)
    assert risk.right_on_others == pytest.approx(right - risk.advantage, abs=1e-10)
    for whole in ("right_on_participants", "right_on_others"):
        total = sum(group.prior_mass * getattr(group, whole) for group in risk.by_group)
        assert total == pytest.approx(getattr(risk, whole), abs=1e-10)


@pytest.mark.slow
@given(st.data(), st.integers(2, 5))
def test_closed_forms_know_the_same_rates_as_enumeration(data: st.DataObject, size: int) -> None:
    prior, groups = Prior(data.draw(priors(size))), data.draw(partitions(size))
    protocol, rule = data.draw(set_protocols(size)), by_table(data.draw(balls(size)))
    response = GRR(size, data.draw(st.sampled_from([0.0, 0.5, 2.0])))
    exactly, loosely, known = Threat(prior, groups), Threat(prior, groups, rule), Threat(prior, "all", rule)
    for mechanism, threat, found in (
        (protocol, exactly, exact.solve(protocol, exactly)),
        (protocol, known, exact.solve(protocol, known)),
        (response, loosely, randomised_response(response, loosely)),
    ):
        slow = theorem.enumerate_right(mechanism, threat)
        assert found.right_by_group is not None
        assert found.right_by_group == pytest.approx(slow, abs=1e-10)


@pytest.mark.parametrize("protocol", [GRR(3, 1.0), OUE(3, 0.7), SubsetSelection(3, 0.5)])
def test_a_randomised_column_has_the_rates_of_enumeration(protocol: SetProtocol) -> None:
    """Two groups that have some of the same values, one of them without the third."""
    rows = [("a", "x")] * 6 + [("a", "y")] * 2 + [("a", "z")] * 4 + [("b", "x")] * 3 + [("b", "z")] * 5
    groups, values = zip(*rows, strict=True)
    survey = Survey.from_table({"group": groups, "value": values}, "value", ["group"])
    mechanism, threat = survey.randomised(protocol), survey.threat()
    found = exact.solve(mechanism, threat)
    assert found.right_by_group is not None
    assert found.right_by_group == pytest.approx(theorem.enumerate_right(mechanism, threat), abs=1e-10)


@pytest.mark.parametrize(
    ("mechanism", "threat"),
    [
        (Laplace(5, 1.0), Threat(Prior.zipf(5), [0, 0, 1, 1, 1])),
        (Gaussian(5, 0.5), Threat(Prior.zipf(5), success=Line(0.3, np.linspace(0, 1, 5)))),
        (Gaussian(5, 0.5), Threat.membership(Prior.zipf(5))),
        (Laplace(5, 1.0), Threat(Prior.uniform(5))),
        (SHE(4, 2.0), Threat(Prior.uniform(4))),
        (VectorGaussian(np.eye(4), 0.7), Threat(Prior.uniform(4))),
        (OUE(6, 1.0), Threat(Prior.zipf(6), "all")),
    ],
)
def test_the_best_attack_is_measured_at_the_rates_that_are_told(mechanism: Any, threat: Threat) -> None:
    risk = assess(mechanism, threat)
    measured = measure(OptimalAttack(mechanism, threat), mechanism, threat, np.random.default_rng(0), 40_000, 1e-4)
    assert risk.right_on_participants is not None
    low, high = measured.success_interval
    assert low <= risk.right_on_participants <= high
    value = assess(mechanism, threat, attack="OPTIMAL")
    assert value.exact
    assert (value.advantage, value.success) == pytest.approx((risk.advantage, risk.right_on_participants), abs=1e-12)


def test_an_estimate_knows_both_rates_within_its_interval() -> None:
    threat = Threat(Prior.zipf(12), [0, 1] * 6, Line(1.0))
    truth = assess(OUE(12, 1.0), threat)
    held = 0
    for seed in range(30):
        measured = estimate_best(OUE(12, 1.0), threat, np.random.default_rng(seed), runs=400)
        low, high = measured.right_interval
        held += low <= (truth.right_on_participants or 0.0) <= high
        assert low <= measured.right <= high
    assert held >= 28


class Always:
    """A deterministic attack by a table, guesses[output]."""

    def __init__(self, table: list[int]) -> None:
        self.table = np.array(table)

    def guess(self, outputs: Any, rng: np.random.Generator, known: Any = None) -> IntArray:
        guesses: IntArray = self.table[np.asarray(outputs)]
        return guesses

    def chances(self, outputs: Any, guesses: int) -> FloatArray:
        return np.equal.outer(np.arange(guesses), self.guess(outputs, np.random.default_rng(0))).astype(np.float64)


@pytest.mark.slow
@given(problems(), st.data())
def test_the_value_of_an_attack_is_its_definition(problem: Any, data: st.DataObject) -> None:
    channel, pi, groups, success = problem
    choice = st.integers(0, success.shape[0] - 1)
    table = data.draw(st.lists(choice, min_size=channel.shape[1], max_size=channel.shape[1]))
    found = assess(Matrix(channel), Threat(Prior(pi), groups, by_table(success)), attack=Always(table))
    attack = np.repeat(np.array(table)[:, None], groups.max() + 1, axis=1)
    assert found.exact
    assert (found.advantage, found.success) == pytest.approx(
        attack_values(channel, pi, groups, success, attack), abs=1e-12
    )


NAMES = {
    GRR(5, 1.0): ("UNI", "PRIOR", "OPTIMAL", "OPTIMAL-SUCCESS", "SHE"),
    OUE(5, 1.0): ("OUE", "PRIOR", "OPTIMAL", "OPTIMAL-SUCCESS", "SHE"),
    SubsetSelection(5, 1.0, 2): ("SS",),
    BLH(5, 2.0): ("BLH",),
    SUE(5, 0.0): ("SUE",),
    Exponential.on_line(5, 2.0): ("UNI", "SHE", "OPTIMAL", "OPTIMAL-SUCCESS"),
    Laplace(5, 1.0): ("OPTIMAL", "OPTIMAL-SUCCESS", "PRIOR"),
}


@pytest.mark.parametrize("success", [None, Line(1.0)])
@pytest.mark.parametrize("knows", ["none", "all", [0, 0, 1, 1, 1]])
def test_named_attacks_have_the_value_that_they_are_measured_at(success: Success | None, knows: Any) -> None:
    rng = np.random.default_rng(7)
    for prior in (Prior([0.5, 0.2, 0.1, 0.1, 0.1]), Prior([0.6, 0.4, 0.0, 0.0, 0.0])):
        threat = Threat(prior, knows, success)
        for mechanism, names in NAMES.items():
            for name in names:
                found = assess(mechanism, threat, attack=name)
                measured = measure(make(name, mechanism, threat), mechanism, threat, rng, 2000, 1e-6)
                assert found.exact
                low, high = measured.advantage_interval
                below, above = measured.success_interval
                assert low - 1e-9 <= found.advantage <= high + 1e-9, (name, mechanism, threat)
                assert below - 1e-9 <= found.success <= above + 1e-9, (name, mechanism, threat)


def test_an_attack_that_names_records_is_refused_where_guesses_are_others() -> None:
    threat = Threat(Prior.uniform(2), success=Distances(0.4, np.array([[0.0, 1.0]])))
    with pytest.raises(DpriskError, match="UNI guesses one of the records, but the rows"):
        assess(GRR(2, 3.0), threat, attack="UNI")
    assert assess(GRR(2, 3.0), threat, attack="OPTIMAL").advantage <= assess(GRR(2, 3.0), threat).advantage + 1e-12


def test_the_closed_forms_of_the_thesis() -> None:
    """UNI on randomised response is right with probability p and gains (p - q)(1 - kappa); PRIOR gains nothing."""
    prior, mechanism = Prior.zipf(3052), GRR(3052, 7.0)
    threat = Threat(prior)
    uni, guess = (assess(mechanism, threat, attack=name) for name in ("UNI", "PRIOR"))
    assert uni.success == pytest.approx(mechanism.p, rel=1e-12)
    assert uni.advantage == pytest.approx((mechanism.p - mechanism.q) * (1 - prior.collision_probability), rel=1e-10)
    assert (guess.advantage, guess.success) == pytest.approx((0.0, prior.weights.max()))
    graph, few = Exponential.on_line(40, 2.0), Threat(Prior.zipf(40))
    pi, channel = few.prior.weights, graph.matrix()
    by_hand = float((pi * (np.diag(channel) - pi @ channel)).sum())
    assert assess(graph, few, attack="UNI").advantage == pytest.approx(by_hand, abs=1e-14)


def test_unary_encoding_of_many_records_is_attacked_by_symmetry() -> None:
    """Nobody lists 2^300 sets: under a uniform prior a random member is best, under others it gains as often."""
    uniform, skewed = Threat(Prior.uniform(300)), Threat(Prior.zipf(300))
    best = assess(OUE(300, 3.0), uniform)
    found, other = (assess(OUE(300, 3.0), threat, attack="OUE") for threat in (uniform, skewed))
    assert found.advantage == pytest.approx(best.advantage, abs=1e-15)
    assert other.success == pytest.approx(found.success, abs=1e-15)
    assert 0 < other.advantage < assess(OUE(300, 3.0), skewed).advantage


def test_an_attack_that_says_nothing_of_itself_is_measured_and_marked() -> None:
    class Silent:
        def guess(self, outputs: Any, rng: np.random.Generator, known: Any = None) -> IntArray:
            return np.asarray(outputs)

    found = assess(GRR(3, 1.0), Threat(Prior.zipf(3)), attack=Silent(), runs=5000)
    assert not found.exact
    assert found.estimate is not None
    assert found.estimate.runs == 5000
    assert found.sentence().startswith("By an estimate, the attack Silent is right about ")
    low, high = found.estimate.advantage_interval
    assert low <= assess(GRR(3, 1.0), Threat(Prior.zipf(3)), attack="UNI").advantage <= high
    told = json.loads(json.dumps(found.to_dict()))
    assert told["attack"] == "Silent"
    assert told["estimate"]["runs"] == 5000
    wrong = OptimalAttack(GRR(3, 5.0), Threat(Prior.zipf(3)))  # made for another mechanism
    assert not assess(GRR(3, 1.0), Threat(Prior.zipf(3)), attack=wrong, runs=500).exact


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (lambda: assess(PureDP(1.0), Threat(Prior.uniform(3)), attack="UNI"), "a PureDP has no outputs"),  # type: ignore[call-overload]
        (lambda: assess(GRR(3, 1.0), Threat(Prior.uniform(3)), attack=3), "has a method `guess`, not 3"),  # type: ignore[call-overload]
        (lambda: assess(GRR(3, 1.0), Threat(Prior.uniform(3)), attack="UNIX"), "There is no attack 'UNIX'"),
        (lambda: assess(OUE(3, 1.0), Threat(Prior.uniform(3)), attack="UNI"), "guesses the output itself"),
        (
            lambda: assess(OUE(3, 1.0), Threat(Prior.uniform(3)), attack="UNI"),
            r"^The attack UNI does not fit OUE\(size=3, epsilon=1\)\. .* Attacks that fit: OPTIMAL, .*\bOUE\b",
        ),
        (lambda: assess(GRR(3, 1.0), Threat(Prior.uniform(4)), attack=MostCommon([1, 0, 0])), "must be the same"),
    ],
)
def test_a_wrong_attack_gets_one_sentence(asked: Any, message: str) -> None:
    with pytest.raises(DpriskError, match=message) as told:
        asked()
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("mechanism", [GRR(4, 1.0), OUE(4, 1.0), Gaussian(4, 1.0)])
def test_attacks_that_are_said_to_fit_do(mechanism: Mechanism) -> None:
    threat = Threat(Prior.zipf(4))
    names = fitting(mechanism, threat)
    for attack in NAMED:
        if attack.name in names:
            assert assess(mechanism, threat, attack=attack.name, runs=100).attack == attack.name
        else:
            with pytest.raises(DpriskError):
                make(attack.name, mechanism, threat)


def test_the_command_tells_of_an_attack(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("assess", "--mechanism", "grr", "--epsilon", "1", "--size", "4", "--prior", "zipf:1")
    truth = assess(GRR(4, 1.0), Threat(Prior.zipf(4)), attack="UNI")
    assert truth.sentence() in run(capsys, monkeypatch, *line, "--attack", "uni")[1]
    told = json.loads(run(capsys, monkeypatch, *line, "--attack", "uni", "--json")[1])
    assert (told["attack"], told["advantage"], told["success"]) == ("UNI", truth.advantage, truth.success)
    for wrong, words in (
        ((*line, "--attack", "uni", "--record", "1"), "--attack and --record are two questions: ask one at a time."),
        ((*line, "--attack", "uni", "--bounds"), "--attack and --bounds are two questions: ask one at a time."),
        (
            ("assess", "--guarantee", "pure", "--epsilon", "1", "--size", "4", "--attack", "uni"),
            "is for mechanisms only",
        ),
    ):
        code, _, told = run(capsys, monkeypatch, *wrong)
        assert code != 0
        assert words in told
