"""The risk of one named record, measured, where the exact value is out of reach (see `exact.record`).

Draw outputs evenly from the record z and from the others that it is compared with (w without z). With b the chance that
an output is z's rather than another's, the size of 2b - 1 has the mean TV(P_z, P_others), and tau_z is 1 - w_z of that.
The mean of 2b where b is above 1/2 is how often the attacker says yes to z.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dprisk.attacks.estimate import block_of, checked, default_runs, draw_records, mean_interval
from dprisk.exact.posterior import largest_posterior
from dprisk.exact.record import Exposure, compared_with
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.counted import condensed
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray


@dataclass(frozen=True, kw_only=True)
class EstimatedExposure(Exposure):
    """An exposure that was measured in so many `runs`, with intervals each wrong with probability `alpha`."""

    runs: int
    alpha: float
    advantage_interval: tuple[float, float]
    yes_interval: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Runs, alpha and intervals, ready for JSON."""
        intervals = {name: list(getattr(self, name)) for name in ("advantage_interval", "yes_interval")}
        return {"runs": self.runs, "alpha": self.alpha, **intervals}


def estimate_exposure(
    mechanism: Mechanism,
    threat: Threat,
    record: int,
    rng: np.random.Generator,
    runs: int | None = None,
    alpha: float = 0.05,
) -> EstimatedExposure:
    """The risk of one record from drawn outputs, with intervals."""
    weights, simple = compared_with(threat, record), mechanism.sufficient()
    drawn = condensed(simple)
    runs, alpha = checked(runs, alpha)
    pairs = -(-(runs or default_runs(drawn)) // 2)
    mine = float(weights[record])
    others = weights.copy()
    others[record] = 0.0
    others = others / others.sum() if mine < 1 else weights
    block = max(1, block_of(drawn, weights.size) // 2)
    parts = []
    for child, start in zip(rng.spawn(-(-pairs // block)), range(0, pairs, block), strict=True):
        parts.append(_pairs(drawn, others, record, min(block, pairs - start), child))
    apart, says_yes = np.concatenate(parts, axis=1)
    variation, yes = mean_interval(apart, 0.0, 1.0, alpha), mean_interval(says_yes, 0.0, 1.0, alpha)
    low, high = ((1 - mine) * end for end in variation)
    advantage = (1 - mine) * float(apart.mean())
    return EstimatedExposure(
        advantage,
        max(advantage, min(1.0, float(says_yes.mean()))),
        largest_posterior(simple, weights, record),
        runs=2 * pairs,
        alpha=alpha,
        advantage_interval=(low, high),
        yes_interval=yes,
    )


def _pairs(mechanism: Mechanism, others: FloatArray, record: int, count: int, rng: np.random.Generator) -> FloatArray:
    """For pairs of outputs, one of z and one of the others, the mean size of 2b - 1, and that of 2b where b > 1/2."""
    drawn = np.concatenate([np.full(count, record), draw_records(others, count, 1, rng)])
    logs = mechanism.log_likelihood(mechanism.sample(drawn, rng))
    with np.errstate(divide="ignore"):
        other = scipy.special.logsumexp(logs + np.log(others), axis=1)
    belief = scipy.special.expit(logs[:, record] - other)
    values = np.array([np.abs(2 * belief - 1), 2 * belief * (belief > 0.5)])
    return np.asarray(values.reshape(2, 2, count).mean(axis=1))
