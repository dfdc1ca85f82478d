"""Scores learned from pilot runs: frequencies, kernels, classifiers, and which of them an audit keeps."""

import math
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dprisk import ApproxDP, Gaussian, Prior, Threat, audit
from dprisk.auditing import Look, Running, as_target
from dprisk.auditing.evidence.design import Scorer
from dprisk.auditing.evidence.learned import (
    EVERY,
    Classifier,
    ClassifierScorer,
    Frequencies,
    FrequencyScorer,
    Kernels,
    KernelScorer,
    Learner,
)
from dprisk.errors import ParameterError, TargetError
from dprisk.types import FloatArray, IntArray

Rng = np.random.Generator
Code = Callable[[Any, Rng], Any]
BOTH = np.arange(2)


def pilot(code: Code, size: int = 2, each: int = 2000, seed: int = 0) -> tuple[Any, IntArray]:
    rng = np.random.default_rng(seed)
    records = rng.permutation(np.repeat(np.arange(size), each))
    return code(records, rng), records


def laplace(records: Any, rng: Rng) -> FloatArray:
    exact = np.asarray(records) + rng.laplace(size=len(records))
    return np.asarray(np.round(1024 * exact) / 1024)  # so that the last bits tell nothing


COVARIANCE = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
SHIFT = np.array([0.6, 0.0, 0.0])
ROOT = np.linalg.cholesky(COVARIANCE)


def correlated(records: Any, rng: Rng) -> FloatArray:
    """Noise that two entries share nearly all of: their difference tells the record, neither alone does."""
    noise: FloatArray = rng.normal(size=(len(records), 3)) @ ROOT.T
    return np.outer(records, SHIFT) + noise


def lead(scorer: Scorer, outputs: Any) -> FloatArray:
    scores = scorer.scores(outputs, BOTH)
    return np.asarray(scores[:, 1] - scores[:, 0])


# --- frequencies ---


def _bits(rng: Rng, count: int, chances: list[float]) -> Any:
    return rng.random((count, len(chances))) < chances


LOOKS: dict[str, Callable[[Rng, int], Any]] = {
    "bits": lambda rng, count: _bits(rng, count, [0.3, 0.5, 0.9]),
    "bits that were always set": lambda rng, count: _bits(rng, count, [1.0, 0.5] if count > 500 else [0.5, 0.5]),
    "bits that were never set": lambda rng, count: _bits(rng, count, [0.0, 0.5] if count > 500 else [0.5, 0.5]),
    "one bit": lambda rng, count: rng.random(count) < 0.3,
    "whole numbers, some of them new": lambda rng, count: rng.integers(5 if count > 500 else 9, size=count),
    "floats, some of them odd": lambda rng, count: np.where(rng.random(count) < 0.1, np.nan, rng.normal(size=count)),
    "rows of floats": lambda rng, count: rng.normal(size=(count, 3)),
    "texts": lambda rng, count: np.array([f"v{n}" for n in rng.integers(4, size=count)], dtype=object),
    "rows of nothing": lambda rng, count: np.zeros((count, 0)),
    "objects where there were bits": lambda rng, count: (
        _bits(rng, count, [0.5, 0.5]) if count > 500 else np.array([None, (True, False)] * (count // 2), dtype=object)
    ),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("count", [2, 400])
def test_outputs_that_look_alike_are_scored_once_and_all_the_same(look: Callable[[Rng, int], Any], count: int) -> None:
    rng = np.random.default_rng(4)
    scorer = FrequencyScorer(look(rng, 900), rng.integers(3, size=900))
    outputs, suspects = look(rng, count), np.array([2, 0, 1])
    for mine, plain in zip(scorer.leads(outputs, suspects), Scorer.leads(scorer, outputs, suspects), strict=True):
        np.testing.assert_array_equal(mine, plain)


# --- kernels ---


def test_smoothed_numbers_have_nearly_the_true_likelihood_ratio() -> None:
    x = np.linspace(-3, 4, 200)
    true = np.abs(x) - np.abs(x - 1)
    outputs, records = pilot(laplace)
    smooth, rough = Kernels().learn(outputs, records), Frequencies().learn(outputs, records)
    assert np.abs(lead(smooth, x) - true).mean() < 0.1
    assert np.abs(lead(smooth, x) - true).mean() < np.abs(lead(rough, x) - true).mean()
    assert smooth.describe() == "smoothed frequencies learned in pilot runs"


def test_kernels_see_that_entries_depend_on_each_other() -> None:
    outputs, records = pilot(correlated)
    fresh, truth = pilot(correlated, seed=1)
    precision = np.linalg.inv(COVARIANCE)
    true = fresh @ precision @ SHIFT - SHIFT @ precision @ SHIFT / 2
    errors = {
        type(learner).__name__: float(np.abs(lead(learner.learn(outputs, records), fresh) - true).mean())
        for learner in EVERY
    }
    assert errors["Kernels"] < 0.5 * errors["Frequencies"]
    right = (lead(Kernels().learn(outputs, records), fresh) > 0) == (truth == 1)
    assert right.mean() > 0.7


def test_a_kernel_density_is_the_mean_of_its_kernels() -> None:
    rng = np.random.default_rng(0)
    outputs, records = rng.normal(size=(300, 2)), np.arange(300) % 3
    scorer = KernelScorer(outputs, records)
    at = rng.normal(size=(5, 2))
    found = scorer.scores(at, np.array([2, 0]))
    for column, record in enumerate((2, 0)):
        for row in range(5):
            distances = (outputs[records == record] - at[row]) @ scorer.scale
            kernels = (1 + (distances**2).sum(axis=1) / scorer.reach**2) ** -4.0
            assert found[row, column] == pytest.approx(math.log(kernels.mean()))


def test_far_from_all_pilot_outputs_no_record_leads() -> None:
    outputs, records = pilot(correlated, each=500)
    scorer = KernelScorer(outputs, records)
    assert np.abs(lead(scorer, np.full((1, 3), 1e4))).max() < 0.01
    assert np.array_equal(lead(scorer, np.array([[np.nan, 0, 0], [np.inf, 0, 0]])), [0, 0])


def test_an_entry_that_follows_from_the_others_does_no_harm() -> None:
    def code(records: Any, rng: Rng) -> FloatArray:
        some = correlated(records, rng)
        return np.column_stack([some, some.sum(axis=1)])

    outputs, records = pilot(code, each=500)
    assert np.isfinite(KernelScorer(outputs, records).scores(outputs, BOTH)).all()


@pytest.mark.parametrize(
    ("outputs", "suited"),
    [
        (np.random.default_rng(0).normal(size=500), True),
        (np.random.default_rng(0).normal(size=(500, 3)), True),
        (np.append(np.random.default_rng(0).normal(size=500), np.nan), True),
        (np.random.default_rng(0).normal(size=(500, 7)), False),
        (np.random.default_rng(0).normal(size=(500, 2, 2)), False),
        (np.arange(500) % 10, False),
        (np.arange(500), True),
        (np.random.default_rng(0).random((500, 3)) < 0.5, False),
        (np.array(["a", "b"] * 250, dtype=object), False),
    ],
)
def test_kernels_suit_finite_numbers_and_short_vectors(outputs: Any, suited: bool) -> None:
    assert Kernels().suits(outputs) == suited
    if not suited:
        with pytest.raises(TargetError, match="Kernels need finite numbers"):
            Kernels().learn(outputs, np.arange(len(outputs)) % 2)


# --- classifiers ---


class Logistic:
    """Logistic regression by Newton's method: as much of a scikit-learn classifier as is needed."""

    def fit(self, features: Any, classes: Any) -> "Logistic":
        self.classes_ = np.unique(classes)
        rows = np.column_stack([np.ones(len(features)), features])
        self.weights = np.zeros(rows.shape[1])
        for _ in range(8):
            p = 1 / (1 + np.exp(-rows @ self.weights))
            hessian = (rows * (p * (1 - p))[:, None]).T @ rows + 1e-6 * np.eye(rows.shape[1])
            self.weights = self.weights + np.linalg.solve(hessian, rows.T @ (classes - p))
        return self

    def predict_proba(self, features: Any) -> Any:
        p = 1 / (1 + np.exp(-(np.column_stack([np.ones(len(features)), features]) @ self.weights)))
        return np.column_stack([1 - p, p])


def test_the_probabilities_of_a_classifier_become_likelihood_ratios() -> None:
    """Also where one record had more pilot runs than the other."""
    rng = np.random.default_rng(0)
    records = np.repeat([0, 1], [3000, 9000])
    scorer = ClassifierScorer(Logistic(), correlated(records, rng), records)
    fresh = correlated(rng.integers(2, size=500), rng)
    precision = np.linalg.inv(COVARIANCE)
    assert np.abs(lead(scorer, fresh) - (fresh @ precision @ SHIFT - SHIFT @ precision @ SHIFT / 2)).mean() < 0.1
    assert scorer.describe() == "probabilities of Logistic, trained on pilot runs"
    assert np.array_equal(pickle.loads(pickle.dumps(scorer)).scores(fresh, BOTH), scorer.scores(fresh, BOTH))


def test_the_model_that_was_given_is_not_trained_itself() -> None:
    model = Logistic()
    audit(as_target(correlated, 2, batch=True), ApproxDP(1.0, 0.27), runs=1000, look=Look(scorer=model))
    assert not hasattr(model, "weights")


class Silent:
    def fit(self, features: Any, classes: Any) -> None:
        self.classes_ = np.array([0, 1, 7])

    def predict_proba(self, features: Any) -> Any:
        return np.ones((len(features), 3))


class Wrong(Silent):
    def fit(self, features: Any, classes: Any) -> None:
        self.classes_ = np.array([0, 1])


class Telling(Wrong):
    def __init__(self, told: Any) -> None:
        self.told = told

    def predict_proba(self, features: Any) -> Any:
        return [[self.told, 0.5]] * len(features)


@pytest.mark.parametrize(
    ("scorer", "said"),
    [
        (Silent(), "has the classes"),
        (Wrong(), "2 finite probabilities for each output"),
        (Telling("a"), "What predict_proba gives must be numbers"),
        (Telling(math.nan), "predict_proba must give probabilities, got nan"),
        (Telling(-0.7), "predict_proba must give probabilities, got -0.7"),
        (Telling(threading.Lock()), "Telling cannot be copied"),
        (Classifier, "scorer must be a Scorer, a Learner"),
        (3, "scorer must be a Scorer, a Learner"),
    ],
)
def test_misuse_is_refused_in_a_sentence(scorer: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        audit(as_target(correlated, 2, batch=True), 1.0, runs=500, look=Look(scorer=scorer))


def test_what_is_no_classifier_is_refused() -> None:
    with pytest.raises(ParameterError, match="needs a method fit"):
        Classifier(3)
    with pytest.raises(TargetError, match="learns from numbers"):
        audit(lambda record: f"{record}", 1.0, records=2, runs=500, look=Look(scorer=Logistic()))


def test_numbers_that_are_none_have_columns_of_their_own() -> None:
    def code(records: Any, rng: Rng) -> FloatArray:
        hidden = (np.asarray(records) == 1) & (rng.random(len(records)) < 0.3)
        return np.where(hidden, np.nan, rng.normal(size=len(records)))

    assert audit(as_target(code, 2, batch=True), 1.0, runs=3000, look=Look(scorer=Logistic())).verdict == "violated"


# --- which of them an audit keeps ---


def gaussian_delta(mu: float, epsilon: float) -> float:
    return Gaussian(2, 1 / mu).delta_at(epsilon)


@pytest.mark.slow
def test_vectors_with_correlated_entries_are_certified() -> None:
    delta = gaussian_delta(math.sqrt(SHIFT @ np.linalg.inv(COVARIANCE) @ SHIFT), 1.0)
    target, claim = as_target(correlated, 2, batch=True), ApproxDP(1.0, delta)
    frequencies = audit(target, claim, runs=30_000, look=Look(scorer=Frequencies()))
    usual = audit(target, claim, runs=30_000)
    classified = audit(target, claim, runs=30_000, look=Look(scorer=Logistic()))
    assert frequencies.epsilon_certified < 0.2
    assert 0.65 < usual.epsilon_certified < 1.0
    assert 0.65 < classified.epsilon_certified < 1.0
    assert usual.design.to_dict()["evidence"] == "densities learned in pilot runs"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_numbers_are_certified_as_well_as_before(epsilon: float) -> None:
    def code(records: Any, rng: Rng) -> FloatArray:
        return np.asarray(records) + rng.laplace(scale=1 / epsilon, size=len(records))

    target = as_target(code, 2, batch=True)

    def mean(look: Look) -> float:
        return float(np.mean([audit(target, 9.0, runs=30_000, look=look, seed=k).epsilon_certified for k in range(8)]))

    assert mean(Look()) > max(mean(Look(scorer=Frequencies())) - 0.03 * epsilon, 0.85 * epsilon)  # a seed is worth 0.04


def test_a_learner_of_ones_own_is_trained_on_pilot_runs_only() -> None:
    taught = []

    class Own(Learner):
        def learn(self, outputs: Any, records: IntArray) -> Scorer:
            taught.append(records.size)
            return FrequencyScorer(outputs, records)

    report = audit(as_target(laplace, 2, batch=True), 1.0, runs=5000, look=Look(scorer=Own()))
    assert report.verdict == "consistent with the claim"
    assert taught == [400, 400, 400]  # two thirds of 300 pilot runs for each record, three times


def test_learners_serve_audits_under_a_threat() -> None:
    threat = Threat(Prior([0.6, 0.4]))
    target = as_target(correlated, 2, batch=True)
    for scorer in (None, Logistic(), Kernels()):
        report = audit(target, 0.3, runs=5000, threat=threat, look=Look(scorer=scorer))
        assert report.verdict == "violated"
        assert "frequencies" not in report.design.to_dict()["evidence"]


def test_scores_travel_to_workers() -> None:
    reports = [
        audit(
            as_target(correlated, 2, batch=True), ApproxDP(1.0, 0.27), runs=3000, running=Running(n_jobs=jobs)
        ).to_dict()
        for jobs in (1, 2)
    ]
    assert reports[0]["correct"] == reports[1]["correct"]


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_promised_with_kernels_and_classifiers() -> None:
    alpha, audits = 0.1, 150
    for scorer in (Kernels(), None, Logistic()):
        alarms = sum(
            audit(
                as_target(laplace, 2, batch=True), 1.0, runs=500, alpha=alpha, seed=k, look=Look(scorer=scorer)
            ).verdict
            == "violated"
            for k in range(audits)
        )
        assert alarms <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))
