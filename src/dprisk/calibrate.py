"""The second question: how much noise do I need?"""

from dataclasses import dataclass

from dprisk.assess import Risk, assess
from dprisk.errors import MechanismError, require
from dprisk.mechanisms import Mechanism
from dprisk.threat import Threat

LARGEST_EPSILON = 64.0  # beyond it every mechanism here reports all but the truth with probability below 1e-20


@dataclass(frozen=True)
class Calibration:
    """The largest epsilon found whose risk stays within the target, and the risk there."""

    epsilon: float
    target: float
    risk: Risk

    @property
    def advantage(self) -> float:
        """The achieved advantage, at most the target."""
        return self.risk.advantage

    @property
    def unlimited(self) -> bool:
        """Whether the target holds however large epsilon is."""
        return self.epsilon >= LARGEST_EPSILON


def calibrate(mechanism: Mechanism, threat: Threat, *, advantage: float) -> Calibration:
    """The largest epsilon at which this kind of mechanism keeps the best attacker's advantage at or below the target.

    Bisection that always ends on the safe side: the risk that is returned was computed at the epsilon returned, and
    is at most the target. Needs exact risks.
    """
    require(0 < advantage <= 1, f"The tolerated advantage must lie in (0, 1], got {advantage}")

    def risk_at(epsilon: float) -> Risk:
        risk = assess(mechanism.with_epsilon(epsilon), threat, samples=2)
        require(risk.exact, f"{mechanism!r} has no exact risk for this threat to calibrate by.", MechanismError)
        return risk

    highest = risk_at(LARGEST_EPSILON)
    if highest.advantage <= advantage:
        return Calibration(LARGEST_EPSILON, advantage, highest)
    low, high = 0.0, LARGEST_EPSILON
    safe = risk_at(low)
    require(
        safe.advantage <= advantage,
        f"Even at epsilon 0 the advantage is {safe.advantage:.4g}, above the target {advantage:g}.",
    )
    while (middle := (low + high) / 2) not in (low, high):
        risk = risk_at(middle)
        if risk.advantage <= advantage:
            low, safe = middle, risk
        else:
            high = middle
    return Calibration(low, advantage, safe)
