"""Calibration: the weakest noise, never above the target."""

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dprisk import (
    DPSGD,
    GRR,
    OLH,
    OUE,
    SUE,
    ZCDP,
    ApproxDP,
    DpriskError,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    Line,
    Matrix,
    Prior,
    PureDP,
    SubsetSelection,
    Threat,
    assess,
    calibrate,
    dp_sgd,
    search,
)
from dprisk.guarantees import RenyiDP, accounting
from dprisk.guarantees.losses import GRID
from dprisk.mechanisms import DiscreteLaplace, Geometric, OnAttribute, VectorLaplace

UNIFORM, ZIPF = Threat(Prior.uniform(10)), Threat(Prior.zipf(10))
SMOOTH: list[tuple[Any, Threat]] = [
    (GRR(10, 1.0), ZIPF),
    (SUE(10, 1.0), ZIPF),
    (OUE(10, 1.0), Threat(Prior.zipf(10), [0, 1] * 5)),
    (SubsetSelection(10, 1.0, 3), ZIPF),
    (Exponential.on_line(10, 1.0), Threat(Prior.zipf(10), success=Line(1.0))),
    (Geometric(10, 1.0), ZIPF),
    (Laplace(10, 1.0), UNIFORM),
    (Gaussian(10, 1.0), UNIFORM),
    (OnAttribute(GRR(2, 1.0), [0, 1] * 5), ZIPF),
    (PureDP(1.0), ZIPF),
    (PureDP(1.0), Threat(Prior.zipf(6), success=Line(1.0))),
    (PureDP(1.0), Threat(Prior.zipf(6), "all")),
    (ApproxDP(1.0, 1e-5), ZIPF),
    (GaussianDP(1.0), UNIFORM),
    (ZCDP(1.0), UNIFORM),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "threat"), SMOOTH, ids=[f"{family!r}-{threat!r}" for family, threat in SMOOTH])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_the_round_trip_ends_at_the_target_and_never_above(family: Any, threat: Threat, share: float) -> None:
    """Calibrate, then assess what was found: at most the target, and within 1e-9 of it."""
    largest = assess(family, threat).advantage
    target = share * largest
    found = calibrate(family, threat, advantage=target)
    again = assess(family.with_parameter(found.value), threat)
    assert again.advantage == found.bound == found.advantage
    assert again.advantage <= target
    assert again.advantage == pytest.approx(target, rel=1e-9)


def test_closed_forms_of_the_papers_solved() -> None:
    """RAD Examples 4.4, 4.7, 4.8 inverted by hand."""
    kappa = ZIPF.prior.collision_probability
    grr = calibrate(GRR(10, 1.0), ZIPF, advantage=0.05)
    share = 0.05 / (1 - kappa)
    assert grr.value == pytest.approx(math.log((1 + 9 * share) / (1 - share)), rel=1e-12)
    gauss = calibrate(Gaussian(10, 1.0), UNIFORM, advantage=0.1)
    assert gauss.value == pytest.approx(1 / (18 * norm.ppf((1 + 0.1 * 10 / 9) / 2)), rel=1e-9)
    laplace = calibrate(Laplace(1001, 1.0), Threat(Prior.uniform(1001)), advantage=0.05)
    assert laplace.value == pytest.approx(-2000 * math.log1p(-0.05 * 1001 / 1000), rel=1e-9)
    membership = calibrate(PureDP(1.0), Threat.membership(Prior.uniform(1000)), advantage=0.2)
    assert membership.value == pytest.approx(4 * math.atanh(0.2), rel=1e-9)


def test_every_goal_is_kept() -> None:
    found = calibrate(OUE(10, 1.0), ZIPF, success=0.5)
    assert assess(OUE(10, found.value), ZIPF).success == pytest.approx(0.5, rel=1e-9)
    assert found.bound <= 0.5
    rates = calibrate(GaussianDP(1.0), tpr_at_fpr=(0.05, 0.01))
    assert rates.value == pytest.approx(norm.isf(0.01) - norm.isf(0.05), rel=1e-9)
    plain = calibrate(Gaussian(5, 1.0), epsilon=(1.0, 1e-5))
    assert Gaussian(5, plain.value).delta_at(1.0) <= 1e-5
    assert Gaussian(5, plain.value * 0.999).delta_at(1.0) > 1e-5
    assert calibrate(Exponential.on_line(5, 1.0), epsilon=1.0).value == pytest.approx(2.0, rel=1e-9)
    apart = calibrate(PureDP(1.0), advantage=0.1)
    assert apart.value == pytest.approx(2 * math.atanh(0.1), rel=1e-9)


def test_a_goal_that_needs_no_noise_is_said_so() -> None:
    found = calibrate(OUE(4, 1.0), Threat(Prior.uniform(4)), advantage=0.5)
    assert found.unlimited
    assert calibrate(OLH(10, 1.0), UNIFORM, advantage=0.6).unlimited
    assert not calibrate(Laplace(1001, 1.0), Threat(Prior.uniform(1001)), advantage=0.05).unlimited


def test_the_search_on_a_step_takes_few_looks() -> None:
    """A risk that jumps from 0 to 1 gives a secant nothing to go by; it ends below the step all the same."""
    for step in (1e-6, 1.0, 2.0, 3e7):
        looks: list[float] = []

        def risk(subject: Any, looks: list[float] = looks, step: float = step) -> float:
            looks.append(subject.epsilon)
            return float(subject.epsilon > step)

        found = search.weakest(PureDP(1.0), risk, 0.5)
        assert found.measured == 0
        assert step * (1 - 1e-12) <= found.value <= step
        assert len(looks) <= 70
    for start in (1e-12, 1e-6, 0.3):  # above the step: steps away from it grow
        tried: list[float] = []

        def above(x: float, tried: list[float] = tried) -> float:
            tried.append(x)
            return float(x > 0.5)

        assert search._safe(above, 0.5, 0.5 + start) <= 0.5
        assert len(tried) <= 60


@pytest.mark.slow
def test_the_accountant_is_asked_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    grids: list[float] = []
    account = accounting.from_opacus

    def counted(history: Any, relation: Any, grid: float) -> Any:
        grids.append(grid)
        return account(history, relation, grid)

    monkeypatch.setattr(accounting, "from_opacus", counted)
    found = calibrate(DPSGD(0.05, 50), UNIFORM, advantage=0.1)
    assert found.advantage <= 0.1
    assert grids.count(GRID) <= 3
    assert len(grids) <= 8


def risk_at(template: Any, value: float, threat: Threat) -> float:
    return float(assess(template.with_parameter(value), threat).advantage)


TWO = Threat(Prior.uniform(2))
WAVERING: list[tuple[Any, float]] = [
    (Laplace([0, 5.0], 1.0, interval=(50, 60)), 0.005),
    (Laplace([0, 5.0], 1.0, interval=(5, 60)), 0.05),
    (Laplace([0, 5.0], 1.0, interval=(0, 0.5), ends="truncate"), 0.2),
    (Gaussian([0, 5.0], 1.0, interval=(50, 60)), 0.005),
    (Gaussian([0, 5.0], 1.0, interval=(0, 0.5), ends="truncate"), 0.2),
    (Exponential([[1.0, 0.9, 0.0], [1.0, 0.0, 0.9]], 1.0), 0.05),
    (Geometric(2, 1.0, ends="truncate"), 0.1),
    (DiscreteLaplace([0, 5], 1.0, interval=(20, 30)), 0.005),
]
VIEWED = OnAttribute(Laplace([0, 5.0, 9.0], 1.0, interval=(50, 60)), [0, 1])  # of which no ceiling is known


@pytest.mark.parametrize(
    ("template", "target"), [*WAVERING, (VIEWED, 0.005)], ids=[repr(it[0]) for it in [*WAVERING, (VIEWED, 0)]]
)
def test_stronger_noise_keeps_the_goal_too_where_the_risk_wavers(template: Any, target: float) -> None:
    """The risk may fall again as noise gets weaker: what is found has the goal kept by all stronger noise."""
    assert template.parameter.wavers
    found = calibrate(template, TWO, advantage=target)
    assert not found.unlimited
    assert found.bound <= target
    weaker = 1 if template.parameter.rises else -1
    for step in np.linspace(0.0, 12.0, 25):
        assert risk_at(template, found.value * math.exp(-weaker * step), TWO) <= target
    assert risk_at(template, found.value * 1.001**weaker, TWO) > target
    assert "or less" not in found.sentence()
    assert "or more" not in found.sentence()


def test_a_clamped_release_is_not_called_safe_at_any_epsilon() -> None:
    template = Laplace([0, 5.0], 1.0, interval=(50, 60))
    assert risk_at(template, 0.1, TWO) == pytest.approx(0.0097, abs=5e-5)
    assert calibrate(template, TWO, advantage=0.005).value == pytest.approx(0.0254757, rel=1e-4)
    loose = calibrate(template, TWO, advantage=0.05)
    assert loose.unlimited
    assert loose.sentence().startswith("Every epsilon that was tried, from 1e-09 to 1e+09, keeps")
    inside = Laplace([0, 5.0], 1.0, interval=(-1, 6))  # outputs beyond the positions tell nothing more
    assert not inside.parameter.wavers
    assert calibrate(inside, TWO, advantage=0.05).value == pytest.approx(-2 * math.log1p(-0.1), rel=1e-9)


@pytest.mark.parametrize("value", [0.2, 1.0, 30.0])
@pytest.mark.parametrize("template", [it[0] for it in WAVERING], ids=[repr(it[0]) for it in WAVERING])
def test_the_ceiling_is_above_the_risk_and_falls_with_more_noise(template: Any, value: float) -> None:
    weaker = value * 1.5 if template.parameter.rises else value / 1.5
    most, more = (assess(template.ceiling(at), TWO).advantage for at in (value, weaker))
    assert risk_at(template, value, TWO) <= most * (1 + 1e-12) <= more * (1 + 1e-9)


def test_the_search_ends_where_no_mechanism_exists() -> None:
    """With less noise the interval is out of reach: the last noise that can be made is the answer, not a failure."""
    template = Gaussian([0, 5.0], 1.0, interval=(0, 0.5), ends="truncate")
    found = calibrate(template, TWO, advantage=0.5)
    assert not found.unlimited
    assert found.advantage <= 0.5
    with pytest.raises(DpriskError, match="out of reach of a position"):
        template.with_parameter(found.value / 1.01)
    far = DiscreteLaplace([0, 10**13], 100.0)  # at epsilon 1 the scale is too large
    with pytest.raises(DpriskError, match="must lie between"):
        far.with_parameter(1.0)
    assert calibrate(far, epsilon=50.0).value == pytest.approx(50.0, rel=1e-12)


def test_an_alternative_without_an_answer_is_told_beside_it() -> None:
    """Delta alone is the tolerated total variation; the answer itself has nothing to do with it."""
    found = calibrate(ApproxDP(1.0, 0.05), Threat(Prior.uniform(3), "all"), advantage=0.05)
    assert found.advantage <= 0.05
    assert [other.name for other in found.alternatives] == ["ReRo"]
    assert list(found.without_answer) == ["membership"]
    assert "delta of" in found.without_answer["membership"]
    assert ("epsilon by membership", "none", found.without_answer["membership"]) in found.rows
    assert found.to_dict()["without_answer"] == found.without_answer


def test_a_success_goal_has_no_alternatives() -> None:
    found = calibrate(GRR(10, 1.0), UNIFORM, success=0.3)
    assert found.alternatives == ()
    assert found.without_answer == {}
    assert calibrate(GRR(10, 1.0), epsilon=1.0).alternatives == ()


def test_one_possible_record_needs_no_noise() -> None:
    assert calibrate(PureDP(1.0), Threat(Prior([1.0])), advantage=0.05).unlimited


def test_families_whose_size_is_rounded_stay_safe() -> None:
    """Subset selection and local hashing change a whole number with epsilon, and the risk jumps there."""
    for family in (SubsetSelection(10, 1.0), OLH(10, 1.0)):
        for target in np.linspace(0.02, 0.4, 9):
            found = calibrate(family, Threat.membership(Prior.uniform(10)), advantage=float(target))
            assert family.parameter.jumps
            assert assess(found.subject, Threat.membership(Prior.uniform(10))).advantage <= target


def test_other_calibrations_and_utility_are_shown() -> None:
    """RAD Figure 2: for the same tolerated risk, RAD needs less noise than ReRo, and far less than membership."""
    found = calibrate(Laplace(10, 1.0), UNIFORM, advantage=0.1)
    other = {alternative.name: alternative.value for alternative in found.alternatives}
    assert other["membership"] < other["ReRo"] < found.value
    assert other["membership"] == pytest.approx(-2 * math.log1p(-0.1), rel=1e-6)  # TV of Laplace: 1 - exp(-eps/2)
    assert found.utility["95 % error"] == pytest.approx(math.log(20) / found.value)
    assert found.utility["95 % error"] < found.utility["95 % error by ReRo"]
    local = calibrate(GRR(10, 1.0), UNIFORM, advantage=0.1)
    p, q = math.exp(local.value) / (math.exp(local.value) + 9), 1 / (math.exp(local.value) + 9)
    variance = local.utility["variance of a frequency, times reports"]
    assert variance == pytest.approx(q * (1 - q) / (p - q) ** 2)


def test_the_variance_is_that_of_the_usual_estimator() -> None:
    """Simulated: share of reports that name a rare record, corrected by p and q."""
    rng = np.random.default_rng(4)
    for mechanism in (SubsetSelection(8, 1.0, 3), OUE(8, 1.0)):
        runs, reports = 3000, 400
        sets = mechanism.sample(np.zeros(runs * reports, dtype=int), rng)[:, 5].reshape(runs, reports)
        none = np.array([0])
        own = float(mechanism.hit(none)[0])
        other = float(mechanism.miss(none)[0] + mechanism.pair_gain(none)[0])
        estimates = (sets.mean(axis=1) - other) / (own - other)
        assert estimates.mean() == pytest.approx(0.0, abs=0.01)
        assert estimates.var() * reports == pytest.approx(mechanism.frequency_variance(), rel=0.1)


def test_rero_is_kept_in_both_readings() -> None:
    """RAD Figure 2, ten records, gamma 0.3: error 0.41; 2.16 for ReRo <= baseline + gamma, 2.73 for ReRo <= gamma."""
    found = calibrate(Laplace(10, 1.0), Threat(Prior.uniform(10)), advantage=0.3)
    names = ("", " by membership", " by ReRo", " by ReRo itself")
    errors = [found.utility[f"95 % error{name}"] for name in names]
    assert errors == pytest.approx([0.41, 4.20, 2.16, 2.73], abs=5e-3)
    # No noise brings the success below the baseline: then only our reading is left.
    low = calibrate(Laplace(10, 1.0), Threat(Prior.uniform(10)), advantage=0.1)
    assert [other.name for other in low.alternatives] == ["membership", "ReRo"]


@pytest.mark.slow
def test_dp_sgd_is_calibrated_by_the_accountant() -> None:
    found = calibrate(DPSGD(0.05, 50), Threat(Prior.uniform(10)), advantage=0.1)
    again = assess(dp_sgd(found.value, 0.05, 50), Threat(Prior.uniform(10))).advantage
    assert again <= 0.1
    assert again == pytest.approx(0.1, rel=1e-5)
    for sgd, target in ((DPSGD(0.05, 50), 0.95), (DPSGD(0.001, 1), 0.1), (DPSGD(0.01, 10), 0.2)):
        assert calibrate(sgd, UNIFORM, advantage=target).unlimited  # a record is in too few batches to show
    assert calibrate(DPSGD(0.01, 100), tpr_at_fpr=(0.7, 0.0)).to_dict()["noise_multiplier"] is None
    full = calibrate(DPSGD(1.0, 100, "replace-one"), UNIFORM, advantage=0.1)
    assert full.value == pytest.approx(39.525, abs=1e-3)  # theory: 39.53 by the fixed point under replacement


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: calibrate(GRR(3, 1.0), ZIPF), "exactly one goal"),
        (lambda: calibrate(GRR(3, 1.0), ZIPF, advantage=0.1, success=0.2), "exactly one goal"),
        (lambda: calibrate(GRR(10, 1.0), ZIPF, advantage=0.0), r"\(0, 1\]"),
        (lambda: calibrate(GRR(10, 1.0), ZIPF, success=0.1), "the baseline, without any release, is 0.341"),
        (lambda: calibrate(GRR(10, 1.0), success=0.1), "needs a threat"),
        (lambda: calibrate(GRR(10, 1.0), tpr_at_fpr=(0.01, 0.05)), "takes no attack"),
        (lambda: DPSGD(1.5, 10), "sample_rate must lie"),
        (lambda: DPSGD(0.5, 0), "steps must be"),
        (lambda: calibrate(GRR(10, 1.0), tpr_at_fpr=0.5), "is a pair"),  # type: ignore[arg-type]
        (lambda: calibrate(GRR(10, 1.0), epsilon="1"), "epsilon must be a number"),  # type: ignore[arg-type]
        (lambda: calibrate(Matrix([[1.0]]), Threat(Prior([1.0])), advantage=0.1), "no parameter to calibrate"),
        (lambda: calibrate(RenyiDP([2.0], [1.0]), ZIPF, advantage=0.1), "no parameter to calibrate"),
        (lambda: calibrate(GRR(10, 1.0), Prior.uniform(10), advantage=0.1), "is not a Threat"),  # type: ignore[arg-type]
        (lambda: calibrate(DPSGD(0.5, 2), Threat(Prior.uniform(10)), success=0.1), "strongest noise that was tried"),
        (
            lambda: calibrate(GRR, ZIPF, advantage=0.1),
            r"GRR is a kind, not one of them; make one: GRR\(size, epsilon\)",
        ),
    ],
)
def test_what_cannot_be_calibrated_gets_one_clear_sentence(wrong: Any, message: str) -> None:
    with pytest.raises(DpriskError, match=message):
        wrong()


@pytest.mark.parametrize("target", [0.1, 0.2, 0.3, 0.3756])
@pytest.mark.parametrize("template", [OLH(10, 1.0), SubsetSelection(10, 1.0), GRR(10, 1.0)])
def test_the_number_that_is_printed_keeps_the_promise(template: Any, target: float) -> None:
    """Also where the risk jumps, and a rounded number lies on the other side."""
    threat = Threat(Prior.uniform(10))
    found = calibrate(template, threat, advantage=target)
    for told in (*re.findall(r"choose epsilon ([0-9.]+[0-9])", found.sentence()), found.rows[0][1]):
        assert assess(template.with_parameter(float(told)), threat).advantage <= target


@pytest.mark.parametrize(
    ("template", "goal"),
    [
        (GRR(7, epsilon=1.0), {"advantage": 0.05}),
        (Gaussian([0, 1], sigma=1.0), {"epsilon": (1.0, 1e-5)}),
        (GaussianDP(1.0), {"advantage": 0.07}),
        (VectorLaplace([[0, 0], [1, 2]], scale=1.0), {"tpr_at_fpr": (0.1, 0.03)}),
        (PureDP(1.0), {"advantage": 0.033}),
        (ZCDP(1.0), {"epsilon": (1.0, 1e-6)}),
    ],
)
def test_what_is_shown_keeps_the_goal_if_it_is_typed(template: Any, goal: dict[str, Any]) -> None:
    """The repr and the heading are rounded to the safe side too: more noise, by less than the sixth digit."""
    threat = Threat(Prior.zipf(template.size)) if isinstance(template, GRR) else None
    found = calibrate(template, threat, **goal)
    shown = float(re.split("[=,]", repr(found))[1])
    in_heading = {name: float(number) for name, number in re.findall(r"(\w+)=([\d.e-]+)[,)]", found.about)}
    chosen = {found.parameter: shown} | {name: in_heading[name] for name in in_heading.keys() & {"scale", "sigma"}}
    for name, told in chosen.items():
        exact = getattr(found.subject, name) if name in ("scale", "sigma") else found.value
        assert told == pytest.approx(exact, rel=1e-5)
        assert (told > exact) == (name in ("scale", "sigma"))


def test_a_goal_that_no_noise_keeps_says_what_is_missing() -> None:
    with pytest.raises(DpriskError, match=r"epsilon is infinite at delta 0: name a delta .* --to-delta 1e-5"):
        calibrate(Gaussian([0, 1], sigma=1.0), epsilon=1.0)
    with pytest.raises(DpriskError, match=r"A delta of 0.1 leaves nothing of the target 0.05.* Take a smaller one"):
        calibrate(ApproxDP(1.0, 0.1), Threat(Prior.uniform(2)), advantage=0.05)
    assert calibrate(ApproxDP(1.0, 0.1), Threat(Prior.uniform(2)), advantage=0.1).advantage <= 0.1


def test_what_an_error_is_measured_in_stands_beside_it() -> None:
    rows = {what: means for what, _, means in calibrate(OUE(100, 1.0), Threat(Prior.uniform(100)), advantage=0.05).rows}
    assert rows["variance of a frequency by ReRo itself"] == "times reports"
    assert rows["epsilon by ReRo"] == "bound on success, 1 - f(baseline), <= baseline + 0.05"


def test_rounding_noise_does_not_lift_a_bound_above_what_it_bounds() -> None:
    rows = {what: much for what, much, _ in assess(GRR(5, 0.0), Threat(Prior.uniform(5))).rows}
    assert rows["bound on success"] == "0.2"


@pytest.mark.parametrize("template", [PureDP(1.0), PureDP(1.0, "add-remove"), ApproxDP(1.0, 1e-6), GaussianDP(1.0)])
def test_a_success_at_the_baseline_is_refused_as_such(template: Any) -> None:
    threat = Threat(Prior([0.6, 0.4]))
    for target in (0.6, 0.6 * (1 - 1e-13), 0.6 * (1 + 1e-15)):
        with pytest.raises(DpriskError, match=r"cannot be kept: the baseline, without any release, is 0\.6, and"):
            calibrate(template, threat, success=target)


def test_a_sure_success_that_adds_up_to_almost_one_needs_no_noise() -> None:
    priors = (Prior.from_counts(np.arange(1, k)) for k in range(3, 200))
    threat = next(threat for prior in priors if (threat := Threat(prior, knows="all")).baseline < 1)
    for template in (PureDP(1.0, "add-remove"), ApproxDP(1.0, 1e-6, "add-remove"), GRR(threat.prior.size, 1.0)):
        assert calibrate(template, threat, success=threat.baseline).unlimited


def test_numbers_in_a_refusal_have_digits_enough_to_differ() -> None:
    told = re.escape("the target 0.6000000001: at epsilon 0 there is 0.6000000004.")
    with pytest.raises(DpriskError, match=told):
        calibrate(ApproxDP(1.0, 1e-9), Threat(Prior([0.6, 0.4])), success=0.6 + 1e-10)
