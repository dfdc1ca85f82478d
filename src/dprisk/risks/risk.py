"""The risk of a mechanism: exact, between certified bounds, or estimated."""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dprisk import exact
from dprisk.answers import Row
from dprisk.attacks.estimate import Estimate
from dprisk.errors import DpriskError, TooLargeError, as_whole, require
from dprisk.exact.certified import Enclosed
from dprisk.exact.optimum import Optimum
from dprisk.mechanisms import Mechanism
from dprisk.risks.base import Assessment
from dprisk.risks.worst_case import WorstCase
from dprisk.rounding import plain, round_number_of_people, significant_up
from dprisk.threat import Threat
from dprisk.types import FloatArray

MOST_AT_RISK = 3
SMALL = 1000  # records up to which breakdown and bounds are shown without being asked for


@dataclass(frozen=True)
class GroupRisk:
    """The risk of the people in one knowledge group, as shares of that group."""

    name: Any
    prior_mass: float
    advantage: float
    success: float
    baseline: float


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Assessment):
    """The risk of a mechanism.

    Where `exact` is False, it is a Monte Carlo estimate (`estimate`), or its numbers are the upper of two certified
    bounds (`enclosed`); both come with intervals.
    """

    mechanism: Mechanism
    threat: Threat
    optimum: Optimum

    @property
    def advantage(self) -> float:
        return self.optimum.advantage

    @property
    def success(self) -> float:
        return self.optimum.success

    @property
    def estimate(self) -> Estimate | None:
        """Runs, alpha and intervals of a Monte Carlo result; None where the result is computed."""
        return self.optimum if isinstance(self.optimum, Estimate) else None

    @property
    def enclosed(self) -> Enclosed | None:
        """The certified bounds on the risk of records that are numbers; None for records that are listed."""
        return self.optimum if isinstance(self.optimum, Enclosed) else None

    @property
    def advantage_interval(self) -> tuple[float, float]:
        """Where the advantage lies: an exact one is its own interval."""
        return self._interval("advantage")

    @property
    def success_interval(self) -> tuple[float, float]:
        """Where the success lies: an exact one is its own interval."""
        return self._interval("success")

    def _interval(self, which: str) -> tuple[float, float]:
        interval: tuple[float, float] = getattr(self.optimum, f"{which}_interval", (getattr(self, which),) * 2)
        return interval

    @property
    def exact(self) -> bool:
        return self.estimate is None and self.enclosed is None

    @property
    def about(self) -> str:
        return self.mechanism.brief()

    @property
    def source(self) -> str:
        return "exact" if self.exact else "estimate" if self.estimate else "certified bounds"

    @cached_property
    def bounds(self) -> WorstCase:
        """What the mechanism's guarantee alone would tell, for comparison."""
        return WorstCase(self.mechanism.guarantee(), self.threat)

    @cached_property
    def by_record(self) -> FloatArray:
        """The best attacker's advantage on each record; the prior's mean of it is `advantage`. For exact risks only."""
        told = f"There is no breakdown by record of {self.source}; `by_group` has one by group."
        require(self.exact, told, TooLargeError)
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
        prior, count = self.threat.prior, as_whole("count", count, least=0)
        order = prior.support[np.argsort(-self.by_record[prior.support], kind="stable")][:count]
        return [(prior.name(int(record)), float(self.by_record[record])) for record in order]

    def _shown(self, which: str) -> str:
        value = getattr(self, which)
        if self.exact:
            return plain(value)
        low, high = self._interval(which)
        return f"{plain(value)} [{plain(low)}, {plain(high)}]"

    def _found(self) -> list[Row]:
        if self.estimate:
            told = f"from {self.estimate.runs} outputs, intervals at {100 * (1 - self.estimate.alpha):g} %"
            return [("computed", "estimate", told)]
        if self.enclosed:
            apart = f"certified bounds, at most {self.enclosed.gap:.0e} apart"
            return [("computed", "enclosed", apart), *self._compared()]
        if self.optimum.is_proven:
            how = ("computed", "exactly", "no sampling error")
        else:
            how = ("computed", "numerically", f"error about {self.optimum.error:.0e}")
        return [how, *self._compared()] if self._is_quick else [how]

    @property
    def _is_quick(self) -> bool:
        """Whether breakdown and bounds cost little beside the result itself."""
        listed = SMALL**2 / self.mechanism.n_outputs  # records, where outputs are gone through
        most = {"sets": SMALL, "nearest position": SMALL // 10, "break points": SMALL // 10}
        return self.mechanism.size <= min(SMALL, most.get(self.optimum.by, listed))

    def _compared(self) -> list[Row]:
        """The records most at risk where they differ, and what the guarantee alone would tell, as far as known."""
        rows: list[Row] = []
        with suppress(DpriskError):  # no list of outputs to break the risk down by
            worst = self.most_at_risk(MOST_AT_RISK)
            if worst[0][1] - min(self.by_record[self.threat.prior.support]) >= 1e-9:
                rows += [("most at risk", plain(advantage), str(name)) for name, advantage in worst]
        worst_case = None
        with suppress(DpriskError):
            worst_case = self.bounds
        for which in ("success", "advantage") if worst_case else ():
            most, by = getattr(worst_case, which), getattr(worst_case, f"{which}_bound").bound.source
            rows.append((f"bound on {which}", significant_up(most, 4), by))
        return rows

    def sentence(self) -> str:
        people = round_number_of_people(self.success, self.baseline, self.advantage)
        right, blind, more = (round(share * people) for share in (self.success, self.baseline, self.advantage))
        about = "about " if self.estimate else ""
        if self.threat.knows.is_all and not self.threat.knows.is_none:
            return (
                f"Of {people} people whose record is known, an attacker rightly says of {about}{more} more that they "
                f"took part than it wrongly says of {people} who did not."
            )
        adds_up = abs(self.success - self.baseline - self.advantage) < 1e-9
        right = blind + more if adds_up else right  # so that the rounded numbers add up too
        why = (
            ". An attacker who bets on what the report gives away, rather than on what is likely anyway, gains from "
            "those who take part:"
        )
        return (
            f"Of {people} people like this one, an attacker guesses {about}{right} right{self._goal()} after seeing "
            f"the report, {blind} without it{';' if adds_up else why} taking part adds {about}{more}."
        )

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "estimate": self.estimate.to_dict() if self.estimate else None,
            "enclosed": self.enclosed.to_dict() if self.enclosed else None,
            "numerical_error": self.optimum.error if self.exact else None,
            "mechanism": self.mechanism.to_dict(),
        }

    def __repr__(self) -> str:
        kind = "exact" if self.optimum.is_proven else "numerical"
        kind = f"estimate from {self.estimate.runs} outputs" if self.estimate else kind
        kind = f"certified within {self.enclosed.gap:.1e}" if self.enclosed else kind
        numbers = f"advantage={self.advantage:.6g}, success={self.success:.6g}, baseline={self.baseline:.6g}"
        return f"Risk({numbers}, {kind})"
