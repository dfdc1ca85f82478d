"""The first question: what does this release risk?"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dprisk import estimate, exact
from dprisk.errors import TooLargeError
from dprisk.estimate import Estimate
from dprisk.mechanisms import Mechanism
from dprisk.optimum import Optimum
from dprisk.threat import Threat
from dprisk.types import FloatArray


@dataclass(frozen=True)
class GroupRisk:
    """The risk of the people in one knowledge group, as shares of that group."""

    name: Any
    prior_mass: float
    advantage: float
    success: float
    baseline: float


@dataclass(frozen=True, eq=False, repr=False)
class Risk:
    """What the best attacker gains from a release.

    `advantage` (RAD) is success on a participant minus success on somebody who did not take part, `success` (ReRo)
    the best success with the output, `baseline` the best without. Each is of the attacker that is best at it.
    Where `exact` is False, advantage and success are Monte Carlo estimates and come with intervals.
    """

    mechanism: Mechanism
    threat: Threat
    optimum: Optimum

    @property
    def advantage(self) -> float:
        """RAD of the best attacker."""
        return self.optimum.advantage

    @property
    def success(self) -> float:
        """ReRo of the best attacker."""
        return self.optimum.success

    @property
    def baseline(self) -> float:
        """The best success without seeing the output."""
        return self.threat.baseline

    @property
    def estimate(self) -> Estimate | None:
        """Samples, confidence and intervals of a Monte Carlo result; None where the result is exact."""
        return self.optimum if isinstance(self.optimum, Estimate) else None

    @property
    def exact(self) -> bool:
        """Whether advantage and success are computed, not measured."""
        return self.estimate is None

    @property
    def normalised_advantage(self) -> float:
        """Advantage over 1 - kappa_pi, the advantage of seeing the record itself; 0 if there is nothing to learn."""
        most = 1 - self.threat.prior.collision_probability
        return self.advantage / most if most > 1e-15 else 0.0

    @cached_property
    def by_record(self) -> FloatArray:
        """The best attacker's advantage on each record; the prior's mean of it is `advantage`."""
        return exact.advantage_by_record(self.mechanism, self.threat)

    @cached_property
    def by_group(self) -> tuple[GroupRisk, ...]:
        """The risk in each knowledge group that the prior gives any mass."""
        pi, reach = self.threat.prior.weights, self.threat.reach
        mass = np.bincount(self.threat.knows.groups, weights=pi)
        blind = reach.best(reach.sums(pi[:, None]))[:, 0]
        parts = (self.optimum.advantage_by_group, self.optimum.success_by_group, blind)
        names = self.threat.knows.names
        return tuple(
            GroupRisk(names[x], float(mass[x]), *(float(part[x] / mass[x]) for part in parts))
            for x in np.flatnonzero(mass)
        )

    def most_at_risk(self, count: int = 5) -> list[tuple[Any, float]]:
        """The records of positive probability with the largest advantage, as (label, advantage)."""
        prior = self.threat.prior
        order = prior.support[np.argsort(-self.by_record[prior.support], kind="stable")][:count]
        return [(prior.name(int(record)), float(self.by_record[record])) for record in order]

    def sentence(self) -> str:
        """The risk in natural frequencies."""
        people = _people(self.success, self.baseline, self.advantage)
        of, right, blind, more = (round(share * people) for share in (1, self.success, self.baseline, self.advantage))
        about = "" if self.exact else "about "
        goal = "" if self.threat.success.is_exact else f" {self.threat.success.describe()}"
        both = (
            f"Of {of} people like this one, an attacker guesses {about}{right} right{goal} "
            f"after seeing the report, {blind} without it"
        )
        if right - blind == more:
            return f"{both}; taking part adds {about}{more}."
        return (
            f"{both}. An attacker who bets on what the report gives away, rather than on what is likely anyway, "
            f"gains from those who take part: taking part adds {about}{more}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the breakdowns, ready for JSON."""
        measured = self.estimate
        return {
            "advantage": self.advantage,
            "success": self.success,
            "baseline": self.baseline,
            "normalised_advantage": self.normalised_advantage,
            "exact": self.exact,
            "estimate": measured.to_dict() if measured else None,
            "mechanism": self.mechanism.to_dict(),
            "threat": self.threat.describe(),
            "sentence": self.sentence(),
        }

    def __repr__(self) -> str:
        kind = f"estimate from {self.estimate.samples} outputs" if self.estimate else "exact"
        numbers = f"advantage={self.advantage:.6g}, success={self.success:.6g}, baseline={self.baseline:.6g}"
        return f"Risk({numbers}, {kind})"

    def _repr_html_(self) -> str:
        from dprisk.render import as_html

        return as_html(self)


def assess(
    mechanism: Mechanism,
    threat: Threat,
    *,
    samples: int | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> Risk:
    """The best attacker's advantage and success against a mechanism.

    Exact wherever there is a closed form or the outputs can be listed. Otherwise a Monte Carlo estimate over `samples`
    outputs with intervals at `confidence`, marked by `exact=False`; `rng` is a numpy Generator or a seed.

    >>> from dprisk import GRR, Prior, Threat
    >>> assess(GRR(100, epsilon=2.0), Threat(Prior.uniform(100)))
    Risk(advantage=0.0594532, success=0.0694532, baseline=0.01, exact)
    """
    try:
        return Risk(mechanism, threat, exact.best_attacker(mechanism, threat))
    except TooLargeError:
        generator = np.random.default_rng(rng)
        return Risk(mechanism, threat, estimate.best_attacker(mechanism, threat, generator, samples, confidence))


def _people(*shares: float) -> int:
    """The smallest power of ten, at least 1000, at which no share that counts vanishes by rounding."""
    smallest = min((share for share in shares if share > 1e-9), default=1.0)
    people = 1000
    while smallest * people < 1 and people < 10**9:
        people *= 10
    return people
