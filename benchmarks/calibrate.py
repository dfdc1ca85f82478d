"""How fast calibration and the worst-case bounds are, as ratios against riskcal and against limits, in one run.

    python benchmarks/calibrate.py          (pip install riskcal==1.5.1; about five minutes, nearly all riskcal's)

1. DP-SGD (sample rate 0.002, 10000 steps) calibrated to a membership advantage, and to a true positive rate, against
   riskcal with its default settings, both for add/remove neighbours.
2. Trade-off curves from the same privacy loss distributions. They part company on fine grids after many steps: of one
   step's distribution, the add direction that riskcal reads from dp_accounting 0.6 has a mass of 1 + 1e-9 at grid 5e-4,
   1 + 3e-8 at 1e-4 and 1 + 4e-7 at 3e-5 (noise 0.64), and its mean is off by 0.4, 9 and 105 thousandths. Every step
   adds to that. dprisk reads the remove direction, whose mass is 1, and mirrors it.
3. The exact worst case over all epsilon-DP mechanisms: closed form and compact dual.
4. DP-SGD against a threat: one accounting, an event, an assessment and a calibration, each as a multiple of what
   dp_accounting takes to make one privacy loss distribution for replacement and to read 2000 deltas off it, which is
   the least that an assessment took when dprisk was built on that.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import dp_accounting
import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from riskcal import analysis
from riskcal.calibration.dpsgd import find_noise_multiplier_for_advantage, find_noise_multiplier_for_err_rates

from dprisk import DPSGD, Line, Prior, Threat, assess, calibrate, dp_sgd
from dprisk.bounds import ours, programs
from dprisk.guarantees import PrivacyLoss, from_dp_event

RATE, STEPS = 0.002, 10_000
ADVANTAGE, TPR, FPR = 0.1, 0.05, 0.01
ALPHA = np.array([0.001, 0.01, 0.05, 0.1, 0.5])


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def against_riskcal() -> None:
    family = DPSGD(RATE, STEPS, "add-remove")
    dp_sgd(1.0, 0.1, 2, grid=1e-2)  # so that importing dp_accounting is nobody's time
    print(f"\n1. DP-SGD, sample rate {RATE}, {STEPS} steps, add/remove neighbours")
    mine, my_time = timed(lambda: calibrate(family, advantage=ADVANTAGE))
    print(f"   advantage {ADVANTAGE}: dprisk {mine.value:.5f} in {my_time:.2f} s, advantage there {mine.bound:.9f}")
    search = partial(find_noise_multiplier_for_advantage, sample_rate=RATE, num_steps=STEPS)
    theirs, their_time = timed(lambda: search(advantage=ADVANTAGE))
    there = family.with_parameter(float(theirs)).total_variation
    print(f"   riskcal {theirs:.5f} in {their_time:.1f} s, advantage there {there:.6f}")
    print(f"   ratio {their_time / my_time:.1f} (10 wanted), noise differs by {abs(mine.value - theirs):.1e}")

    mine, my_time = timed(lambda: calibrate(family, tpr_at_fpr=(TPR, FPR)))
    print(f"\n   TPR {TPR} at FPR {FPR}: dprisk {mine.value:.5f} in {my_time:.2f} s, TPR there {mine.bound:.9f}")
    rates = partial(find_noise_multiplier_for_err_rates, alpha=FPR, beta=1 - TPR, sample_rate=RATE, num_steps=STEPS)
    for name, settings in (
        ("its defaults", {}),
        ("grid 5e-4", {"grid_step": 5e-4, "beta_tol": 1e-4, "noise_min": 0.4}),
    ):
        theirs, their_time = timed(partial(rates, **settings))
        there = 1 - float(family.with_parameter(float(theirs)).tradeoff(FPR))
        print(f"   riskcal, {name}: {float(theirs):.5f} in {their_time:.1f} s, TPR there {there:.5f}")
        wanted = " (30 wanted)" if not settings else ""
        gap = abs(mine.value - float(theirs))
        print(
            f"      ratio {their_time / my_time:.0f}{wanted}, noise differs by {gap:.1e}, TPR by {abs(there - TPR):.1e}"
        )


def curves() -> None:
    print("\n2. Trade-off curves from the same privacy loss distribution: largest difference from riskcal")
    for noise, steps, grid in ((1.0, 100, 1e-3), (1.0, 1000, 1e-3), (0.5, STEPS, 5e-4), (0.5, STEPS, 1e-4)):
        rate = RATE if steps > 1000 else 0.01
        pld = privacy_loss_distribution.from_gaussian_mechanism(
            noise, sampling_prob=rate, value_discretization_interval=grid
        ).self_compose(steps)
        mine, theirs = PrivacyLoss(pld, "add-remove").tradeoff(ALPHA), analysis.get_beta_from_pld(pld, alpha=ALPHA)
        print(f"   noise {noise}, {steps:6} steps, grid {grid:g}: {np.abs(mine - theirs).max():.1e}", end="")
        print(f"   f(0.001): dprisk {mine[0]:.5f}, riskcal {theirs[0]:.5f}")
    print("   A curve should settle as the grid gets finer: compare the last two lines.")


def worst_cases() -> None:
    print("\n3. Worst over all epsilon-DP mechanisms")
    prior = Prior.zipf(1_000_000, 1.1)
    _, seconds = timed(lambda: ours.worst_blocks(1.0, prior))
    print(f"   closed form, m = 1,000,000: {seconds:.3f} s, {seconds / 0.3:.2f} of the limit 0.3 s")
    for size in (50, 100, 150, 300):
        threat = Threat(Prior.zipf(size), success=Line(size // 10))
        found, seconds = timed(partial(programs.worst_advantage, 1.0, threat))
        pi, near = threat.prior.weights, threat.reach.members().toarray()
        worth = pi * (near - (near @ pi)[:, None])
        slack = found.value - np.expm1(1.0) * np.maximum(worth - found.dual, 0).sum(axis=1).max()
        limit = f", {seconds / 3:.2f} of the limit 3 s" if size == 150 else ""
        print(f"   compact dual, m = {size:3}: {seconds:5.2f} s{limit}; RAD* <= {found.value:.9f}, slack {slack:.1e}")


def trainings() -> None:
    print("\n4. DP-SGD, noise 1, sample rate 0.01, 1000 steps, ten and twenty records")
    replaced = dp_accounting.NeighboringRelation.REPLACE_ONE
    make = partial(privacy_loss_distribution.from_gaussian_mechanism, 1.0, sampling_prob=0.01)

    def accounted() -> Any:
        pld = make(neighboring_relation=replaced).self_compose(1000)
        return pld.get_delta_for_epsilon(np.linspace(0.0, 10.0, 2000))

    _, unit = timed(accounted)
    print(f"   dp_accounting, one distribution and its deltas: {unit:.2f} s")
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 1000
    )
    training = DPSGD(0.01, 1000)
    for name, work, limit in (
        ("dp_sgd, its curve", lambda: dp_sgd(1.0, 0.01, 1000).knots, 0.5),
        ("from_dp_event, its curve", lambda: from_dp_event(event).knots, 0.5),
        ("assess, uniform", lambda: assess(dp_sgd(1.0, 0.01, 1000), Threat(Prior.uniform(10))).to_dict(), 1.0),
        ("assess, zipf", lambda: assess(dp_sgd(1.0, 0.01, 1000), Threat(Prior.zipf(20))).to_dict(), 1.0),
        ("calibrate, uniform", lambda: calibrate(training, Threat(Prior.uniform(10)), advantage=0.1), 3.0),
        ("calibrate, zipf", lambda: calibrate(training, Threat(Prior.zipf(20)), advantage=0.1), 3.0),
    ):
        _, seconds = timed(work)
        print(f"   {name}: {seconds:.2f} s, {seconds / unit:.2f} of that, {seconds / unit / limit:.2f} of the limit")


if __name__ == "__main__":
    trainings()
    worst_cases()
    against_riskcal()
    curves()
