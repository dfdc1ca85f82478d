"""The auditors of the papers, for comparison."""

from __future__ import annotations

import math

import numpy as np

from dprisk.auditing.certify.counts import Counts, as_alpha, epsilon_estimate, lower_log_odds
from dprisk.errors import as_number, as_whole, fail


def ldp_auditor(true_positives: float, false_positives: float, runs_per_arm: float, alpha: float) -> float:
    """LDP-Auditor (thesis Algorithm 1): ln of a lower over an upper Clopper-Pearson bound, alpha/2 each, at least 0.

    Two records, `runs_per_arm` runs on each; positives are answers "the first". A valid certificate, for two arms that
    estimate what one estimates here. It cannot exceed 12.148 at 1e6 runs and alpha 0.01 (printed as 12.25). Fractional
    counts are allowed, to compare expected ones.
    """
    alpha, runs = as_alpha(alpha), as_number("runs_per_arm", runs_per_arm)
    hits, alarms = as_number("true_positives", true_positives), as_number("false_positives", false_positives)
    if not (0 < runs < math.inf and 0 <= hits <= runs and 0 <= alarms <= runs):
        fail(f"Of {runs:g} runs in each arm from none to all are positive, got {hits:g} and {alarms:g}.")
    if hits == 0 or alarms == runs:
        return 0.0
    low = lower_log_odds(hits, runs, alpha / 2)
    high = -lower_log_odds(runs - alarms, runs, alpha / 2)
    # ln of the rates: -ln(1 + e^-x)
    return max(0.0, float(np.logaddexp(0.0, -high) - np.logaddexp(0.0, -low)))


def rad_point_estimate(correct: int, runs: int, size: int, delta: float = 0.0) -> float:
    """RAD equation 61, a point estimate: ln((1 - delta m + gamma m)/(1 - gamma m/(m-1))), gamma = correct/runs - 1/m.

    Not a bound: about half of all runs exceed the true epsilon. At least 0; where the formula is undefined, infinite if
    every answer was correct and 0 if delta explains them all. The same as `epsilon_estimate` without abstentions.
    """
    runs = as_whole("runs", runs)
    return epsilon_estimate(Counts(runs, runs, correct, size), delta)
