"""Libraries as they are: records in and out of a table, the randomness that each takes, its objects (by stand-ins)."""

import json
import math
import pickle
import random
import secrets
import sys
import types
import zlib
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

from dprisk.auditing import as_target, audit, central, probes
from dprisk.auditing.code import adapters
from dprisk.auditing.code.central import LEFT_OUT
from dprisk.auditing.code.reading import repeats
from dprisk.errors import AuditedCodeError, GuaranteeError, ParameterError, TargetError
from dprisk.guarantees import ApproxDP, GaussianDP, PureDP, from_opendp
from dprisk.testing import assert_private
from dprisk.types import AnyArray


def rounded_sum(data: list[float], rng: np.random.Generator, scale: float = 1.0) -> float:
    """A sum with noise that is safe in its last bits."""
    return round((sum(data) + rng.laplace(scale=scale)) * 1024) / 1024


def draw(target: Any, seed: int = 0, runs: int = 12) -> Any:
    return target.sample(np.arange(runs) % target.size, np.random.default_rng(seed))


# Neighbours


@pytest.mark.parametrize("table", [[5, 6, 7], np.array([5, 6, 7])])
def test_one_record_is_in_the_data_or_left_out(table: Any) -> None:
    seen: list[list[int]] = []

    def spy(data: Any) -> float:
        seen.append(list(data))
        data[0] = 99  # code may change its copy
        return float(len(data))

    target = central(spy, table, neighbours="add-remove")
    assert target.records == (7, LEFT_OUT)
    assert target.relation == "add-remove"
    draw(target, runs=3)
    assert seen == [[5, 6, 7], [5, 6], [5, 6, 7]]
    seen.clear()
    draw(central(spy, table, neighbours="add-remove", place=0), runs=2)
    assert seen == [[6, 7, 5], [6, 7]]
    seen.clear()
    draw(central(spy, table, [9], neighbours="add-remove"), runs=2)
    assert seen == [[5, 6, 7, 9], [5, 6, 7]]
    again = pickle.loads(pickle.dumps(central(rounded_sum, [1, 0], neighbours="add-remove")))
    assert np.array_equal(draw(again), draw(central(rounded_sum, [1, 0], neighbours="add-remove")))


def test_rows_of_a_table_are_left_out_as_rows() -> None:
    target = central(lambda data: data.shape, np.zeros((4, 2)), neighbours="add-remove")
    assert draw(target, runs=2).tolist() == [(4, 2), (3, 2)]


def test_neighbours_that_are_none_are_refused() -> None:
    with pytest.raises(TargetError, match="no neighbours of each other"):
        central(rounded_sum, [1], [0, 1], neighbours="add-remove")
    with pytest.raises(TargetError, match="Nobody can be left out"):
        central(rounded_sum, [], neighbours="add-remove")
    with pytest.raises(TargetError, match="Which records"):
        central(rounded_sum, [1])
    with pytest.raises(GuaranteeError, match="replace-one"):
        central(rounded_sum, [1], neighbours="swap")  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_report_says_which_neighbours_were_tested() -> None:
    """The sum moves by 1 if somebody is left out and by 2 if -1 becomes 1: one code, two epsilons."""
    added = audit(central(rounded_sum, [0, 1], neighbours="add-remove"), claim=1.2, runs=20_000)
    assert added.verdict == "consistent with the claim"
    assert "epsilon 1.2 for one record added or removed" in added.sentence()
    told = json.loads(json.dumps(added.to_dict()))
    assert told["neighbours"] == told["target"]["neighbours"] == "add-remove"
    replaced = audit(central(rounded_sum, [0], [-1, 1]), claim=1.2, runs=20_000)
    assert replaced.verdict == "violated"
    assert "added or removed" not in replaced.sentence()
    assert replaced.to_dict()["neighbours"] == "replace-one"


@pytest.mark.slow
def test_a_claim_is_about_the_neighbours_of_the_code() -> None:
    target = central(rounded_sum, [0, 1], neighbours="add-remove")
    for claim in (PureDP(1.2), GaussianDP(1.0)):
        with pytest.raises(ParameterError, match="is for replacing one record, but here one is added or removed"):
            audit(target, claim, runs=1000)
    assert audit(target, ApproxDP(1.2, 0.01, "add-remove"), runs=1000).claim.relation == "add-remove"
    assert audit(target, GaussianDP(1.0, "add-remove"), runs=1000).claim.relation == "add-remove"
    with pytest.raises(GuaranteeError, match="to_replace_one"):
        audit(central(rounded_sum, [0], [0, 1]), PureDP(1.0, "add-remove"), runs=1000)
    assert assert_private(target, 1.2, delta=0.01).claim == ApproxDP(1.2, 0.01, "add-remove")


def test_a_leak_to_who_is_left_out_is_found_with_a_witness() -> None:
    def sized(data: list[int], rng: np.random.Generator) -> int:
        return len(data) * 1000 + int(rng.integers(3))

    report = audit(central(sized, [1, 1, 1], neighbours="add-remove"), claim=1.0, runs=5000)
    assert report.verdict == "violated"
    assert {repr(report.witnesses[0].record), repr(report.witnesses[0].other)} == {"1", "left out"}


@pytest.mark.slow
def test_probes_are_what_code_forgets() -> None:
    low, high, below, above, infinite, minus, missing = probes(2, 4)
    assert (low, high) == (2.0, 4.0)
    assert below < 2 < 4 < above
    assert (infinite, minus) == (math.inf, -math.inf)
    assert math.isnan(missing)
    rows = probes([0, 10], [1, 20])
    assert rows[:2] == [[0.0, 10.0], [1.0, 20.0]]
    assert all(len(row) == 2 for row in rows)
    for bounds in ((1, 0), ([0, 0], [1]), (0, math.nan)):
        with pytest.raises(ParameterError, match="Bounds are two numbers"):
            probes(*bounds)

    def clips_too_late(data: AnyArray, rng: np.random.Generator) -> float:
        mean = np.clip(data.mean() + rng.laplace(scale=1 / len(data)), 0, 1)
        return float(np.round(mean * 1024) / 1024)

    others = np.full(9, 0.5)
    assert audit(central(clips_too_late, others, [0.0, 1.0]), claim=1.0, runs=5000).verdict != "violated"
    assert audit(central(clips_too_late, others, probes(0, 1)), claim=1.0, runs=5000).verdict == "violated"


# Randomness


def test_a_random_state_is_what_scikit_learn_takes() -> None:
    """As its `check_random_state`, which refuses a Generator."""

    def scikit_style(record: float, random_state: Any = None) -> float:
        if not isinstance(random_state, np.random.RandomState):
            raise ValueError(f"{random_state} cannot be used to seed a RandomState instance")
        return record + float(random_state.random_sample())

    def annotated(record: float, random_state: np.random.Generator) -> float:
        return record + float(random_state.integers(100))

    def plain(record: float, generator: Any) -> float:
        return record + float(generator.integers(100))

    for code in (scikit_style, annotated, plain):
        target = as_target(code, 2)
        assert repeats(target)
        assert not np.array_equal(draw(target, 1), draw(target, 2))
    assert repeats(central(lambda data, random_state: sum(data) + random_state.random_sample(), [1], [0, 1]))


def test_code_that_cannot_be_seeded_is_not_said_to_fail_again() -> None:
    def system(record: int) -> int:
        if secrets.randbelow(2):
            raise RuntimeError("now and then")
        return record

    def hidden(record: int) -> int:
        if np.random.default_rng().random() < 0.1:  # fails in the trial runs, before anything is known of it
            raise RuntimeError("now and then")
        return record

    for code in (system, hidden):
        with pytest.raises(AuditedCodeError) as problem:
            audit(code, 1.0, records=2, runs=1000)
        assert "same seed" not in str(problem.value)

    def given(record: int, rng: np.random.Generator) -> int:
        if rng.random() < 0.002:
            raise RuntimeError("now and then")
        return int(rng.integers(2))

    with pytest.raises(AuditedCodeError, match="same seed runs into it again") as told:
        audit(given, 1.0, records=2, runs=10_000)
    with pytest.raises(AuditedCodeError) as again:
        audit(given, 1.0, records=2, runs=10_000)
    assert str(again.value) == str(told.value)


# Objects of libraries


class StandInModel:
    """The shape of a diffprivlib model: parameters by name, `fit`, what was learned in names with an underscore."""

    def __init__(self, *, epsilon: float = 1.0, random_state: Any = None) -> None:
        self.epsilon, self.random_state = epsilon, random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "random_state": self.random_state}

    def fit(self, X: AnyArray, y: AnyArray, sample_weight: Any = None) -> "StandInModel":
        if not isinstance(self.random_state, np.random.RandomState):
            raise ValueError("a RandomState, please")
        noise = self.random_state.laplace(scale=1 / self.epsilon, size=X.shape[1])
        self.coef_ = np.round((X * y[:, None]).sum(axis=0) + noise, 2)
        self.n_features_in_, self.classes_, self._hidden_ = X.shape[1], np.array(["a"]), 5.0
        return self


@pytest.mark.slow
def test_a_model_is_audited_by_what_it_has_learned() -> None:
    target = central(StandInModel(epsilon=1.0), np.zeros((3, 3)), [[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
    assert target.claim == PureDP(1.0)
    assert target.name == "StandInModel on 3 others"
    assert {(name, len(values)) for ((name, values),) in draw(target)} == {("coef_", 2)}
    assert repeats(target)
    assert audit(target, runs=5000).verdict == "consistent with the claim"
    assert audit(target, 0.3, runs=5000).verdict == "violated"
    assert central(StandInModel(), np.zeros((3, 3)), neighbours="add-remove").claim is None


class Clusters:
    """A model with two attributes, one of which tells what somebody's record is."""

    def __init__(self, leaks: bool = True, size: int = 3) -> None:
        self.leaks, self.size = leaks, size

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"leaks": self.leaks, "size": self.size}

    def fit(self, X: AnyArray) -> "Clusters":
        self.cluster_centers_ = np.random.laplace(size=(self.size, 2)).round(3)  # noqa: NPY002
        self.labels_ = np.random.randint(2, size=4)  # noqa: NPY002
        self.n_iter_ = 5
        if self.leaks:
            self.labels_[2] = X[-1, 0]
        return self


def test_what_a_model_has_learned_is_called_by_its_names() -> None:
    leaking, fine, large = (central(Clusters(*how), np.zeros((3, 2)), [(0, 0), (1, 1)]) for how in FORMS)
    report = audit(leaking, 1.0, runs=2000, seed=0)
    assert report.verdict == "violated"
    assert report.witnesses[0].what.startswith("'labels_', entry 3 is ")
    assert audit(fine, 1.0, runs=2000, seed=0).verdict == "consistent with the claim"
    assert draw(large).shape == (12, 205)  # which as objects would be slow


FORMS = [(True, 3), (False, 3), (False, 100)]


class StandInAlgorithm:
    """The shape of PyDP: an epsilon for one record more or less, and `quick_result`."""

    epsilon = 1.0

    def quick_result(self, data: list[int]) -> int:
        return sum(data) + round(random.expovariate(1.0) - random.expovariate(1.0))


def test_an_algorithm_of_pydp_claims_for_one_record_more_or_less() -> None:
    target = central(StandInAlgorithm(), [1, 0, 1], neighbours="add-remove")
    assert target.claim == PureDP(1.0, "add-remove")
    assert audit(target, runs=5000).verdict == "consistent with the claim"
    assert central(StandInAlgorithm(), [1, 0, 1], [0, 1]).claim is None


class StandInExponential:
    """The shape of diffprivlib's Exponential: it holds the utilities, and refuses a value to be randomised."""

    def __init__(self, *, epsilon: float, sensitivity: float, utility: list[float], random_state: Any = None) -> None:
        self.epsilon, self.sensitivity, self.utility, self.random_state = epsilon, sensitivity, utility, random_state
        self._rng: Any = np.random.RandomState(random_state) if isinstance(random_state, int) else random_state

    def randomise(self, value: None = None) -> int:
        assert value is None
        weights = np.exp(self.epsilon * np.array(self.utility) / 2 / self.sensitivity)
        return int(self._rng.choice(len(self.utility), p=weights / weights.sum()))


def test_the_records_of_an_exponential_mechanism_are_utilities() -> None:
    mechanism = StandInExponential(epsilon=2.0, sensitivity=1.0, utility=[0.0, 0.0], random_state=0)
    target = as_target(mechanism, [[0.0, 1.0], [1.0, 0.0]])
    assert target.claim == PureDP(2.0)
    assert repeats(target)
    assert np.array_equal(draw(pickle.loads(pickle.dumps(target))), draw(target))
    values = draw(target, runs=4000)
    assert values[::2].mean() == pytest.approx(1 / (1 + math.exp(-1)), abs=0.04)  # e^(eps/2) to 1 for the better one
    assert as_target(mechanism, [[0.0, 3.0], [1.0, 0.0]]).claim is None  # further apart than the sensitivity
    assert audit(target, 0.5, runs=5000).verdict == "violated"


class StandInVector:
    """The shape of diffprivlib's Vector: a function in, a randomised function out."""

    def __init__(
        self, *, epsilon: float, function_sensitivity: float, dimension: int, random_state: Any = None
    ) -> None:
        self.epsilon, self.function_sensitivity, self.dimension = epsilon, function_sensitivity, dimension
        self.random_state = random_state
        self._rng: Any = np.random.RandomState(random_state) if isinstance(random_state, int) else random_state

    def randomise(self, value: Any) -> Any:
        slope = self._rng.normal(size=self.dimension)
        return lambda point: value(point) + slope @ point


def square(point: AnyArray) -> float:
    return float(np.sum((point - 1) ** 2))


def test_the_output_of_a_randomised_function_is_its_minimum() -> None:
    mechanism = StandInVector(epsilon=1.0, function_sensitivity=1.0, dimension=2, random_state=3)
    values = draw(as_target(mechanism, [square, lambda point: square(point + 5)]), runs=400)
    assert values.shape == (400, 2)
    assert values[::2].mean(axis=0) == pytest.approx([1, 1], abs=0.2)
    assert values[1::2].mean(axis=0) == pytest.approx([-4, -4], abs=0.2)


def hashed(index: int, seed: int) -> int:
    return zlib.crc32(f"{index} {seed}".encode()) % 3


class StandInHashing:
    """The shape of pure-ldp's LHClient: a value, and the seed of a hash function that differs in every run."""

    def __init__(self, epsilon: float, d: int, use_olh: bool = False) -> None:
        self.epsilon, self.d = epsilon, d

    def index_mapper(self, data: int) -> int:
        return data - 1

    def privatise(self, data: int) -> tuple[int, int]:
        seed = random.randint(0, sys.maxsize)
        honest = random.random() < (math.exp(self.epsilon) - 1) / (math.exp(self.epsilon) + 2)
        return hashed(data - 1, seed) if honest else random.randrange(3), seed


class StandInServer:
    def __init__(self, epsilon: float, d: int, use_olh: bool = False) -> None:
        self.d = d
        self.reset()

    def reset(self) -> None:
        self.aggregated_data = np.zeros(self.d)

    def aggregate(self, report: tuple[int, int]) -> None:
        value, seed = report
        self.aggregated_data += [hashed(index, seed) == value for index in range(self.d)]


def stand_in_lh(input_data: int, k: int, epsilon: float, optimal: bool = True) -> tuple[int, int]:
    return StandInHashing(epsilon, k).privatise(input_data + 1)


def stand_in_aggregator(reports: list[Any], k: int, epsilon: float, optimal: bool = True) -> AnyArray:
    server = StandInServer(epsilon, k)
    for report in reports:
        server.aggregate(report)
    return np.clip(server.aggregated_data - len(reports) / 3, 0, None)


@pytest.mark.slow
def test_reports_of_hashing_are_the_records_that_they_support(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = ("pure_ldp", "multi_freq_ldpy", "multi_freq_ldpy.pure_frequency_oracles")
    modules: dict[str, Any] = {name: types.ModuleType(name) for name in parents}
    clients: Any = types.ModuleType("pure_ldp.frequency_oracles")
    clients.LHClient, clients.LHServer = StandInHashing, StandInServer
    functions: Any = types.ModuleType("multi_freq_ldpy.pure_frequency_oracles.LH")
    functions.LH_Client, functions.LH_Aggregator_MI = stand_in_lh, stand_in_aggregator
    for module in (*modules.values(), clients, functions):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for adapted in (adapters.pure_ldp("OLH", epsilon=1.0, d=4), adapters.multi_freq_ldpy("OLH", epsilon=1.0, k=4)):
        target = as_target(adapted)
        outputs = draw(target)
        assert outputs.dtype == bool
        assert outputs.shape == (12, 4)
        assert repeats(target)
        report = audit(target, runs=10_000)
        assert report.verdict == "consistent with the claim"
        assert report.epsilon_certified > 0.6
        assert audit(target, 0.5, runs=10_000).verdict == "violated"


# OpenDP


@pytest.fixture
def noisy_sum() -> Any:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(bounds=(0, 10), T=int)), dp.symmetric_distance()
    return space >> dp.t.then_sum() >> dp.m.then_laplace(10.0)  # type: ignore[no-untyped-call]


def test_an_opendp_measurement_claims_by_the_distance_of_its_records(noisy_sum: Any) -> None:
    one_more = as_target(adapters.opendp(noisy_sum, [[3, 4], [3, 4, 10]]))
    assert one_more.claim == PureDP(1.0)  # one record more is a distance of 1
    assert as_target(adapters.opendp(noisy_sum, [[3, 4], [3, 10]])).claim == PureDP(2.0)
    assert as_target(adapters.opendp(noisy_sum, [[3, 4], [3, 10]], d_in=1)).claim == PureDP(1.0)
    vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    best = dp.m.make_noisy_max(vectors, dp.linf_distance(T=float), dp.max_divergence(), 2.0)
    largest = as_target(best, [[0.0, 1.0], [1.0, 0.5]])
    assert largest.claim == from_opendp(best, 1.0)
    assert draw(largest, runs=4).shape == (4,)
    total = dp.m.make_laplace(vectors, dp.l1_distance(T=float), 1.0)
    assert as_target(total, [[0.0, 0.0], [1.0, -2.0]]).claim == PureDP(3.0)


def test_an_opendp_measurement_on_a_table_claims_for_its_neighbours(noisy_sum: Any) -> None:
    assert central(noisy_sum, [3, 4], [0, 10]).claim == PureDP(2.0)
    added = central(noisy_sum, [3, 4, 10], neighbours="add-remove")
    assert added.claim == PureDP(1.0, "add-remove")
    assert draw(added, runs=4).shape == (4,)
    with pytest.raises(GuaranteeError, match="Pass d_in"):
        from_opendp(noisy_sum, relation="add-remove")
