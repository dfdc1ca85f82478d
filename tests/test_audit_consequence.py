"""Claims that are not (epsilon, delta): which consequence is tested, and that testing it is valid and strong."""

import math
from typing import Any

import numpy as np
import pytest

from dprisk import ZCDP, ApproxDP, Gaussian, GaussianDP, Guarantee, Laplace, PureDP, audit
from dprisk.auditing import as_target, audit_recorded, recorded
from dprisk.auditing.certify.claim import consequence
from dprisk.errors import GuaranteeError, ParameterError
from dprisk.guarantees import RenyiDP, dp_sgd

GUARANTEES = [
    *(GaussianDP(mu) for mu in (0.0, 0.01, 0.3, 1.0, 3.0, 10.0, 50.0)),
    *(ZCDP(rho) for rho in (0.0, 0.005, 0.5, 50.0)),
    RenyiDP([2.0, 4.0], [0.1, 0.5]),
    PureDP(1.0).compose(5),
    dp_sgd(1.0, 0.1, 10),
    Laplace(2, epsilon=1.0).guarantee(),
]


def normal(record: int, rng: np.random.Generator, scale: float = 1.0) -> float:
    return record + rng.normal(scale=scale)


def found(claim: Guarantee, sigma: float, runs: int, audits: int, **options: Any) -> int:
    reports = (audit(Gaussian(2, sigma), claim, runs=runs, seed=seed, **options) for seed in range(audits))
    return sum(report.verdict == "violated" for report in reports)


@pytest.mark.slow
@pytest.mark.parametrize("promise", GUARANTEES, ids=repr)
def test_what_is_tested_is_implied(promise: Guarantee) -> None:
    tested = consequence(promise)
    assert promise.delta_at(tested.epsilon) <= tested.delta <= promise.delta_at(tested.epsilon) * (1 + 1e-9)
    assert tested.promise is promise
    assert tested == consequence(promise)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_half_the_noise_is_found_with_fewer_runs_than_at_a_small_delta(mu: float) -> None:
    claim, runs = GaussianDP(mu), 1000 if mu < 1 else 300
    small = ApproxDP(claim.epsilon_at(1e-5), 1e-5)
    assert found(claim, 0.5 / mu, runs, 20) >= 18
    assert found(small, 0.5 / mu, runs, 20) <= 5


@pytest.mark.slow
@pytest.mark.usefixtures("verdicts_alone")
@pytest.mark.parametrize("stop_early", [False, True])
def test_the_right_noise_raises_no_more_alarms_than_promised(stop_early: bool) -> None:
    alpha, audits = 0.1, 150
    alarms = found(GaussianDP(1.0), 1.0, 1000, audits, alpha=alpha, stop_early=stop_early)
    assert alarms <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))


@pytest.mark.parametrize(("claim", "told"), [(GaussianDP(1.0), "GaussianDP(mu=1)"), (ZCDP(0.5), "ZCDP(rho=0.5)")])
def test_the_report_says_what_was_promised_and_what_was_tested(claim: Guarantee, told: str) -> None:
    good = audit(normal, claim, records=[0, 1], runs=2000)
    bad = audit(as_target(normal, [0, 1], parameters={"scale": 0.5}), claim, runs=2000)
    assert (good.verdict, bad.verdict) == ("consistent with the claim", "violated")
    tested = f"{told} (tested as epsilon {bad.claim.epsilon:g}, delta {bad.claim.delta:g})"
    assert f"breaks its promise of {tested}: " in bad.sentence()
    assert f"consistent with {tested}, which is no proof of it; " in good.sentence()
    assert bad.to_dict()["promise"] == told
    assert audit(normal, 1.0, records=[0, 1], runs=1000).to_dict()["promise"] is None


def test_recorded_outputs_take_such_a_claim(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{record},{normal(record, rng, 0.4)}\n" for record in rng.integers(2, size=2000).tolist()]
    (tmp_path / "runs.csv").write_text("record,output\n" + "".join(rows))
    assert audit_recorded(recorded(tmp_path / "runs.csv"), GaussianDP(1.0)).verdict == "violated"


def test_what_is_no_claim_about_replacement_is_refused() -> None:
    with pytest.raises(GuaranteeError, match="to_replace_one"):
        audit(normal, GaussianDP(1.0, "add-remove"), records=[0, 1])
    with pytest.raises(ParameterError, match="A claim is an epsilon or a guarantee"):
        audit(normal, "private", records=[0, 1])  # type: ignore[arg-type]
