"""The answer: numbers, sentence, dictionary, estimate."""

import json
import math

import numpy as np
import pytest

from dprisk import GRR, OUE, Density, Line, Prior, Threat, assess
from dprisk.attacks import OptimalAttack, estimate
from dprisk.attacks.estimate import mean_interval
from dprisk.errors import DpriskError
from dprisk.mechanisms import SHE


def test_the_dictionary_is_json() -> None:
    for risk in (
        assess(GRR(5, 1.0), Threat(Prior.zipf(5))),
        assess(OUE(40, 1.0), Threat(Prior.zipf(40), success=Line(2.0)), runs=50),
    ):
        told = json.loads(json.dumps(risk.to_dict(), allow_nan=False))
        assert told["advantage"] == risk.advantage
        assert told["exact"] == risk.exact == (told["estimate"] is None)


def test_the_page_shows_the_same_numbers() -> None:
    risk = assess(GRR(5, 1.0), Threat(Prior({"<b>": 0.5, "b": 0.2, "c": 0.1, "d": 0.1, "e": 0.1})))
    page = risk._repr_html_()
    assert f"{risk.advantage:.4f}" in page
    assert risk.sentence() in page
    assert "<b>" not in page


def test_most_at_risk_are_the_rare() -> None:
    risk = assess(GRR(3, 1.0), Threat(Prior({"common": 0.7, "rare": 0.1, "other": 0.2})))
    assert [name for name, _ in risk.most_at_risk(2)] == ["rare", "other"]


def test_an_estimate_says_so_and_holds_the_truth() -> None:
    """Where both can be had: enumeration for 12 records, Monte Carlo beside it; intervals at 95 % over 40 seeds."""
    threat = Threat(Prior.zipf(12), [0, 1] * 6, Line(1.0))
    truth = assess(OUE(12, 1.0), threat)
    assert truth.exact
    held = 0
    for seed in range(40):
        measured = estimate.estimate_best(OUE(12, 1.0), threat, np.random.default_rng(seed), runs=400)
        low, high = measured.advantage_interval
        below, above = measured.success_interval
        held += low <= truth.advantage <= high and below <= truth.success <= above
    assert held >= 36


def test_a_large_unary_encoding_with_balls_is_an_estimate() -> None:
    risk = assess(OUE(200, 2.0), Threat(Prior.uniform(200), success=Line(3.0)), runs=500, seed=1)
    assert not risk.exact
    assert risk.estimate is not None
    assert risk.sentence().startswith("By an estimate, ")
    assert "estimate" in repr(risk)
    again = assess(OUE(200, 2.0), Threat(Prior.uniform(200), success=Line(3.0)), runs=500, seed=1)
    assert again.advantage == risk.advantage


def test_the_interval_covers_at_its_level() -> None:
    """Means of skewed 0/1 draws at 90 %: the interval misses in far fewer than 10 % of 2000 simulations."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(2000):
        low, high = mean_interval((rng.random(200) < 0.05).astype(float), 0.0, 1.0, 0.1)
        missed += not low <= 0.05 <= high
    assert missed <= 200


def test_an_attack_needs_to_be_told_what_it_knows() -> None:
    rng = np.random.default_rng(0)
    attack = OptimalAttack(GRR(3, 1.0), Threat.membership(Prior.uniform(3)))
    with pytest.raises(DpriskError, match="pass its group"):
        attack.guess([0, 1], rng)
    with pytest.raises(DpriskError, match="each of the 2 outputs"):
        attack.guess([0, 1], rng, known=[0])
    with pytest.raises(DpriskError, match="'advantage' or 'success'"):
        OptimalAttack(GRR(3, 1.0), Threat(Prior.uniform(3)), "luck")


def test_the_interval_is_the_theorems() -> None:
    """Maurer and Pontil, Theorem 4, written out, at half the error on either side."""
    values = np.random.default_rng(2).beta(2, 3, size=5000)
    log_term = math.log(2 / (0.1 / 2))
    width = math.sqrt(2 * values.var(ddof=1) * log_term / 5000) + 7 * 1.5 * log_term / (3 * 4999)
    found = mean_interval(values, -0.5, 1.0, 0.1)
    assert found == pytest.approx((values.mean() - width, values.mean() + width), abs=1e-14)


def test_an_estimate_never_lies_below_what_is_known() -> None:
    risk = assess(OUE(30, 1.0), Threat(Prior.zipf(30, 1.1), success=Line(1.0)), runs=2000)
    assert risk.estimate is not None
    assert risk.success >= risk.baseline
    assert risk.estimate.success_interval[0] >= risk.baseline
    assert risk.advantage >= 0


def test_settings_are_checked_even_if_they_are_not_used() -> None:
    threat = Threat(Prior.uniform(3))
    for wrong in ({"runs": -1}, {"alpha": 99}, {"seed": "x"}, {"seed": -1}):
        with pytest.raises(DpriskError):
            assess(GRR(3, 1.0), threat, **wrong)
    with pytest.raises(DpriskError, match="is a Threat"):
        assess(GRR(3, 1.0), Prior.uniform(3))  # type: ignore[call-overload]


def test_an_estimate_tells_how_far_it_is() -> None:
    told: list[tuple[int, int, float]] = []
    risk = assess(
        OUE(3000, 2.0),
        Threat(Prior.uniform(3000), success=Line(3.0)),
        runs=900,
        progress=lambda *now: told.append(now),
    )
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert told[-1][:2] == (900, 900)
    assert told[-1][2] == pytest.approx(risk.advantage)
    assert len(told) > 1


def test_an_estimate_never_leaves_its_interval() -> None:
    """The control variate can push a mean near the limit past it: a success above 1 is none."""
    for mechanism in (SHE(2, 500.0), SHE(4, 1.0)):
        risk = assess(mechanism, Threat(Prior.zipf(mechanism.size, 1.1)), runs=20_000)
        assert risk.estimate is not None
        for number, (low, high) in (
            (risk.advantage, risk.estimate.advantage_interval),
            (risk.success, risk.estimate.success_interval),
        ):
            assert 0 <= low <= number <= high <= 1


def test_an_estimate_has_no_breakdown_by_record() -> None:
    risk = assess(SHE(4, 1.0), Threat(Prior.zipf(4)), runs=1000)
    with pytest.raises(DpriskError, match="by_group"):
        _ = risk.average_attacker_by_record
    with pytest.raises(DpriskError, match="estimates one"):
        risk.most_at_risk()


@pytest.mark.parametrize("within", [0.0, -1.0, math.nan, math.inf, "a", None])
def test_a_wrong_distance_is_refused_where_it_is_given(within: float) -> None:
    with pytest.raises(DpriskError, match="distance `within`"):
        Threat.reconstruction(Density.uniform(), within)
