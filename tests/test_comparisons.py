"""Every result beside what people compare with: epsilon at delta 1e-5, mu, membership advantage, error rates."""

import json
import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dprisk import (
    GRR,
    ZCDP,
    ApproxDP,
    Gaussian,
    GaussianDP,
    Guarantee,
    Laplace,
    Matrix,
    Mechanism,
    Prior,
    PureDP,
    Threat,
    assess,
    calibrate,
)
from dprisk.comparisons import Comparisons
from dprisk.errors import DpriskError
from dprisk.guarantees import TradeOff
from dprisk.mechanisms import (
    Additive,
    ConcreteHashing,
    DensityNoise,
    DiscreteGaussian,
    Exponential,
    Geometric,
    OnAttribute,
    VectorLaplace,
)
from tests.strategies import channels

THREAT = Threat(Prior.uniform(10))
PROMISES: list[Guarantee] = [
    PureDP(0.0),
    PureDP(1.0),
    PureDP(1.0, relation="add-remove"),
    PureDP(30.0),
    PureDP(0.7).compose(9),
    ApproxDP(1.0, 1e-6),
    GaussianDP(0.3),
    GaussianDP(4.0, relation="add-remove"),
    ZCDP(0.5),
    GRR(5, 2.0).guarantee(),
    Laplace(5, 2.0).guarantee(),
    TradeOff([0.1, 0.3], [0.6, 0.35]),
]


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_no_number_is_below_what_the_curve_says(promise: Guarantee) -> None:
    told = Comparisons.of(promise)
    assert told.relation == promise.relation
    assert told.membership_advantage == promise.total_variation
    if math.isfinite(told.epsilon):
        assert promise.delta_at(told.epsilon) <= 1e-5
        assert told.epsilon == 0 or promise.delta_at(max(0.0, told.epsilon - 1e-3)) > 1e-5
    for rate, share in told.true_positive_rates.items():
        assert share >= 1 - float(promise.tradeoff(rate)) >= rate - 1e-15
    if math.isfinite(told.mu):
        places = np.r_[np.geomspace(1e-12, 0.5, 400), np.linspace(0.01, 1, 400)]
        assert np.all(GaussianDP(told.mu).tradeoff(places) <= promise.tradeoff(places) + 1e-12)


@given(st.floats(0.01, 30.0))
def test_the_mu_of_pure_privacy_has_a_formula(epsilon: float) -> None:
    """Dong, Roth, Su 2022: the curve of epsilon-DP has one kink, at (1/(1 + e^eps), 1/(1 + e^eps))."""
    expected = -2 * scipy.special.ndtri(1 / (1 + math.exp(epsilon)))
    assert PureDP(epsilon).implied_mu == pytest.approx(expected, rel=1e-11)
    assert PureDP(epsilon).implied_mu >= expected


@given(channels(size=3))
def test_no_smaller_mu_would_do(channel: np.ndarray) -> None:
    """The least mu at which a Gaussian curve lies below the curve of every pair of records, by all thresholds."""
    promise = Matrix(0.9 * channel + 0.1 / channel.shape[1]).guarantee()
    mu = promise.implied_mu
    if mu < 1e-12:
        assert promise.total_variation < 1e-12
        return
    alpha, beta = promise.knots
    assert np.all(GaussianDP(mu).tradeoff(alpha) <= beta + 1e-9)
    assert np.any(GaussianDP(mu * 0.99).tradeoff(alpha) > beta)


@given(channels(size=3), st.sampled_from([1e-3, 1e-2]))
def test_no_test_of_two_records_finds_more_than_is_told(channel: np.ndarray, rate: float) -> None:
    """The best test (Neyman and Pearson) takes outputs by likelihood ratio until the false alarms are used up."""
    told = Comparisons.of(Matrix(channel).guarantee()).true_positive_rates[rate]
    best = 0.0
    for mine in channel:
        for other in channel:
            left, found = rate, 0.0
            for output in sorted(range(mine.size), key=lambda o: -mine[o] / other[o] if other[o] else -math.inf):
                share = 1.0 if other[output] <= left else left / other[output]
                left, found = left - share * other[output], found + share * mine[output]
            best = max(best, found)
    assert told >= best - 1e-12


def test_a_calibrated_sigma_is_told_as_epsilon_at_delta() -> None:
    """mu = 1 / 0.228, at which delta 1e-5 takes epsilon 27.7 (Balle and Wang 2018)."""
    mu, epsilon = 1 / 0.228, 27.7
    normal = scipy.special.ndtr
    assert normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu) == pytest.approx(
        1e-5, rel=0.1
    )
    told = Comparisons.of(Gaussian(101, sigma=0.228).guarantee())
    assert told.epsilon == pytest.approx(27.7, abs=0.1)
    found = calibrate(GaussianDP(1.0), THREAT, advantage=0.1)
    assert found.comparisons is not None
    assert found.comparisons.mu == found.value
    assert found.to_dict()["comparisons"]["epsilon_at_delta_1e-5"] == GaussianDP(found.value).epsilon_at(1e-5)
    assert "epsilon at delta 1e-5" in [what for what, _, _ in found.rows]


@pytest.mark.parametrize("subject", [GRR(10, 2.0), Gaussian(10, 0.5), PureDP(1.0), ApproxDP(1.0, 1e-3)])
def test_assessments_tell_them_in_rows_and_in_json(subject: object) -> None:
    answer = assess(subject, THREAT)
    rows = {what: much for what, much, _ in answer.rows}
    told = json.loads(json.dumps(answer.to_dict()))["comparisons"]
    assert answer.comparisons is not None
    assert told["membership_advantage"] == answer.comparisons.membership_advantage
    assert float(rows["TPR at FPR 0.001"]) >= told["tpr_at_fpr_0.001"]
    assert float(rows["TPR at FPR 0.01"]) >= told["tpr_at_fpr_0.01"]
    if told["epsilon_at_delta_1e-5"] is None:
        assert rows["epsilon at delta 1e-5"] == "infinite"
    else:
        assert float(rows["epsilon at delta 1e-5"]) == pytest.approx(told["epsilon_at_delta_1e-5"], rel=1e-3)
    assert ("mu" in rows) == (told["mu"] is not None)


def test_a_number_is_not_rounded_up_by_noise_in_its_last_digits() -> None:
    rows = {what: much for what, much, _ in Comparisons.of(PureDP(0.0)).rows}
    assert rows["TPR at FPR 0.001"] == "0.001"
    assert rows["epsilon at delta 1e-5"] == "0"


def test_the_relation_is_named() -> None:
    added, replaced = (Comparisons.of(PureDP(1.0, relation=kind)) for kind in ("add-remove", "replace-one"))
    assert "added or removed" in added.rows[0][2]
    assert "replaced" in replaced.rows[0][2]
    assert (added.to_dict()["relation"], replaced.to_dict()["relation"]) == ("add-remove", "replace-one")


def test_where_no_curve_is_known_a_word_says_so() -> None:
    """Noise that is given by its density alone: it is assessed, but which epsilon it keeps nobody said."""
    noise = DensityNoise(stats.logistic.pdf, stats.logistic.cdf)
    answer = assess(Additive(10, noise), THREAT)
    assert answer.comparisons is None
    assert answer.to_dict()["comparisons"] is None
    assert "unknown" in [much for _, much, _ in answer.rows]


def test_nothing_is_promised_where_no_noise_is_needed() -> None:
    found = calibrate(GaussianDP(1.0), Threat(Prior.uniform(1)), advantage=0.5)
    assert found.unlimited
    assert found.comparisons is None
    assert not any("e-09" in much or "e+09" in what for what, much, _ in [*found.rows, (found.about, "", "")])


def test_what_would_take_long_is_told_only_where_it_is_asked_for() -> None:
    """Four reports of one of 300 records: the curve of all of them takes a privacy loss distribution."""
    many = GRR(300, 1.0).repeat(4)
    assert not many.guarantee_is_quick
    assert GRR(10, 1.0).repeat(2).guarantee_is_quick
    assert Gaussian(300, 1.0).repeat(4).guarantee_is_quick
    answer = assess(many, Threat(Prior.uniform(300)), runs=100)
    assert "not computed" in [much for _, much, _ in answer.rows]
    assert answer.to_dict()["comparisons"] is None
    assert answer.comparisons is not None
    assert answer.compared["membership_advantage"] == answer.comparisons.membership_advantage
    assert "TPR at FPR 0.01" in [what for what, _, _ in answer.rows]


def test_epsilon_is_told_at_the_delta_that_is_asked_for() -> None:
    for subject in (GaussianDP(1.0), GRR(4, 1.0), Gaussian(4, 2.0)):
        risk = assess(subject, Threat(Prior.uniform(4)))
        at_another = risk.at_delta(1e-7)
        told = at_another.to_dict()["comparisons"]
        assert told["epsilon_at_delta_1e-7"] == subject.guarantee().epsilon_at(1e-7)
        assert "epsilon at delta 1e-7" in [row[0] for row in at_another.rows]
        assert "epsilon at delta 1e-5" in [row[0] for row in risk.rows]
        assert at_another.advantage == risk.advantage
    with pytest.raises(DpriskError, match="delta must lie"):
        risk.at_delta(2.0)


def test_a_bound_on_a_curve_is_told_as_one() -> None:
    """The records differ in two coordinates by different steps, for which no curve is known, only one below it."""
    threat = Threat(Prior.uniform(2))
    bounded = {what: much for what, much, _ in assess(VectorLaplace([[0, 0], [1, 2]], scale=3), threat).rows}
    assert bounded["membership advantage"] == "<= 0.3935"
    assert bounded["mu"] == "<= 1.031"
    known = {what: much for what, much, _ in assess(VectorLaplace([[0, 0], [0, 3]], scale=3), threat).rows}
    assert known["membership advantage"] == "0.3935"


@pytest.mark.parametrize(
    ("mechanism", "exact"),
    [
        (GRR(10**6, 1.0), True),
        (GRR(3, 1.0).repeat(2), True),
        (GRR(30, 1.0).repeat(9), False),
        (Laplace(5, 1.0), True),
        (Laplace(5, 1.0, interval=(0.2, 1)), False),
        (Laplace(5, 1.0, interval=(0, 1), ends="truncate"), False),
        (Gaussian(5, 1.0), True),
        (Gaussian(5, 1.0).repeat(3), True),
        (Gaussian(5, 1.0, interval=(0, 1)), False),
        (Geometric(9, 1.0), True),
        (DiscreteGaussian(9, 1.0), True),
        (DiscreteGaussian(9, 1e6), False),
        (Exponential.on_line(3000, 1.0), False),
        (ConcreteHashing(10, 1.0, 4, "polynomial"), True),
        (ConcreteHashing(10, 1.0, 4), False),
        (OnAttribute(Laplace(2, 1.0), [0, 1, 1]), True),
    ],
)
def test_whether_a_curve_is_that_of_the_records_is_known(mechanism: Mechanism, exact: bool) -> None:
    assert mechanism.guarantee_is_exact == exact
