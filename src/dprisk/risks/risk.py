"""The risk of a mechanism: exact, between certified bounds, or estimated; and of anything, as far as it is computed."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dprisk import exact
from dprisk.answers import Row
from dprisk.attacks.estimate import Estimate
from dprisk.attacks.one_record import estimate_exposure
from dprisk.errors import DpriskError, TooLargeError, as_whole, require
from dprisk.exact.certified import Enclosed
from dprisk.exact.optimum import Optimum
from dprisk.exact.record import ALIKE, HARDLY, exposure, exposures, rarest_first
from dprisk.guarantees import as_guarantee
from dprisk.mechanisms import Mechanism
from dprisk.risks import sentences
from dprisk.risks.base import Assessment
from dprisk.risks.record import RecordRisk
from dprisk.risks.worst_case import WorstCase
from dprisk.rounding import nearly_up, plain
from dprisk.threat import Threat
from dprisk.threat.prior import written
from dprisk.types import FloatArray

MOST_AT_RISK = 3
SMALL = 1000  # records up to which breakdown and bounds are shown without being asked for
LISTED = 2000  # records up to which the exposure of each is computed to find the largest
ON_A_LINE = ("nearest position", "equal steps", "break points")
ON_REQUEST = ("records, bounds", "left out", "take longer; ask: --record, risk.of(...), --bounds, risk.bounds")


@dataclass(frozen=True)
class GroupRisk:
    """The risk of the people in one knowledge group, as shares of that group.

    The two rates are of the attacker of the advantage, about participants and others of the group.
    """

    name: Any
    prior_mass: float
    advantage: float
    success: float
    baseline: float
    right_on_participants: float | None = None
    right_on_others: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class OfMechanism(Assessment):
    """What somebody gains from a mechanism: computed, or a Monte Carlo estimate (`estimate`) with intervals."""

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

    def _shown(self, which: str) -> str:
        value = getattr(self, which)
        if self.exact:
            return plain(value)
        low, high = self._interval(which)
        return f"{plain(value)} [{plain(low)}, {plain(high)}]"

    @property
    def _promises(self) -> Mechanism:
        return self.mechanism

    @property
    def _compares_quickly(self) -> bool:
        return self.mechanism.guarantee_is_quick

    def to_dict(self) -> dict[str, Any]:
        measured = self.estimate.to_dict() if self.estimate else None
        return super().to_dict() | {"estimate": measured, "mechanism": self.mechanism.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class Risk(OfMechanism):
    """The risk of a mechanism.

    Where `exact` is False, it is a Monte Carlo estimate (`estimate`), or its numbers are the upper of two certified
    bounds (`enclosed`); both come with intervals.

    The attacker of the advantage is right about participants and others at two rates, of which the advantage is the
    difference; of several who gain as much it is the one who is right most often.
    """

    @cached_property
    def _right_by_group(self) -> FloatArray | None:
        """How often the attacker of the advantage is right about participants, None where that is not known."""
        known = self.optimum.right_by_group
        if known is None and self.exact:
            with suppress(TooLargeError):  # a form that tells no rates, and too many outputs to go through
                return exact.right_by_group(self.mechanism, self.threat)
        return known

    @property
    def right_on_participants(self) -> float | None:
        """How often the attacker of the advantage is right about participants; None where that is not known."""
        if self.estimate is not None:
            return self.estimate.right
        return None if self._right_by_group is None else min(1.0, math.fsum(self._right_by_group))

    @property
    def right_on_others(self) -> float | None:
        """How often the same attacker is right about people who did not take part."""
        return None if self.right_on_participants is None else max(0.0, self.right_on_participants - self.advantage)

    @property
    def numbers(self) -> dict[str, Any]:
        rates = {name: getattr(self, name) for name in ("right_on_participants", "right_on_others")}
        return super().numbers | rates

    @property
    def enclosed(self) -> Enclosed | None:
        """The certified bounds on the risk of records that are numbers; None for records that are listed."""
        return self.optimum if isinstance(self.optimum, Enclosed) else None

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

    def of(self, record: Any) -> RecordRisk:
        """The risk of one record, by its label (its number, where there are no labels), to who looks for it.

        Exact wherever the outputs can be gone through or have a closed form, otherwise an estimate with intervals.
        """
        self.threat.require_listed()
        number = self.threat.prior.find(record)
        try:
            found = exposure(self.mechanism, self.threat, number)
        except TooLargeError:
            runs, alpha = (self.estimate.runs, self.estimate.alpha) if self.estimate else (None, 0.05)
            found = estimate_exposure(self.mechanism, self.threat, number, np.random.default_rng(0), runs, alpha)
        return RecordRisk(self.about, self.threat, number, found)

    @cached_property
    def exposures(self) -> FloatArray:
        """`of(record).advantage` of every record; nan in a group that nobody is believed to be in.

        With nothing or everything known, the prior's mean of it is the advantage of membership inference.
        """
        self.threat.require_listed()
        return exposures(self.mechanism, self.threat)

    @cached_property
    def average_attacker_by_record(self) -> FloatArray:
        """The advantage on each record of the attacker who is best on average; the prior's mean of it is `advantage`.

        That attacker may never name a rare record: `of` and `exposures` tell how exposed each is. For exact risks only.
        """
        told = f"There is no breakdown by record of {self.source}; `by_group` has one by group."
        require(self.exact, told, TooLargeError)
        return exact.advantage_by_record(self.mechanism, self.threat)

    @cached_property
    def by_group(self) -> tuple[GroupRisk, ...]:
        """The risk in each knowledge group that the prior gives any mass."""
        pi, reach = self.threat.prior.weights, self.threat.reach
        mass = np.bincount(self.threat.knows.groups, weights=pi)
        blind = reach.best(reach.sums(pi[:, None]))[:, 0]
        advantage, right = self.optimum.advantage_by_group, self._right_by_group
        parts = [advantage, self.optimum.success_by_group, blind]
        parts += [] if right is None else [right, np.maximum(right - advantage, 0.0)]
        names = self.threat.knows.names
        return tuple(
            GroupRisk(names[x], float(mass[x]), *(float(part[x] / mass[x]) for part in parts))
            for x in np.flatnonzero(mass)
        )

    def most_at_risk(self, count: int = 5) -> list[tuple[Any, float]]:
        """The records from which who looks for them gains most, as (label, advantage), however unlikely they are."""
        count = as_whole("count", count, least=0)
        exposed, prior = self.exposures, self.threat.prior
        known = np.flatnonzero(~np.isnan(exposed))
        order = known[np.argsort(-exposed[known], kind="stable")][:count]
        return [(prior.name(int(record)), float(exposed[record])) for record in order]

    def most_exposed(self, count: int = 1) -> tuple[RecordRisk, ...]:
        if self.threat.has_numbers:
            return ()
        try:
            TooLargeError.unless(self._lists_exposures, "The exposure of each record would take long.")
            exposed, order = np.round(self.exposures, 9), rarest_first(self.threat)
        except DpriskError:
            return self.bounds.most_exposed(count)
        worst = order[np.argsort(-exposed[order], kind="stable")][:count]
        alike = bool(np.nanmax(exposed) - np.nanmin(exposed) <= ALIKE)
        return tuple(replace(self.of(self.threat.prior.name(int(number))), alike=alike) for number in worst)

    @property
    def _lists_exposures(self) -> bool:
        """Whether the exposure of each record is in reach: of noise on a line, unlikely ones are found one by one."""
        if self.optimum.by == "sets" or self.estimate is not None:
            return self.optimum.by == "sets"
        one_by_one = int((self.threat.prior.weights < HARDLY).sum()) if self.optimum.by in ON_A_LINE else 0
        return self.mechanism.size <= LISTED and one_by_one <= LISTED // 10

    @cached_property
    def worst_off(self) -> RecordRisk | None:
        """As of any assessment; by what is promised, where the exposure of every record would take long."""
        with suppress(DpriskError):
            if self._is_quick or self.optimum.by == "sets":
                return next(iter(self.most_exposed()), None)
            if self.mechanism.guarantee_is_quick and not self.threat.has_numbers:
                return self.bounds.most_exposed()[0]
        return None

    def of_records(self) -> list[tuple[str, Any, float]]:
        """For each record what an attacker gains who looks for it, and what the best on average gains from it."""
        told: list[tuple[str, Any, float]] = []
        prior = self.threat.prior
        with suppress(DpriskError):
            compared = np.flatnonzero(~np.isnan(self.exposures))
            told += [("advantage if looked for", prior.name(int(z)), float(self.exposures[z])) for z in compared]
        with suppress(DpriskError):
            average = self.average_attacker_by_record
            told += [("average attacker", prior.name(int(z)), float(average[z])) for z in prior.support]
        return told

    def _rates(self) -> list[Row]:
        if self.right_on_participants is None or self.right_on_others is None:
            return []
        place = sentences.in_their_place(self.threat)
        return [
            ("on participants", plain(self.right_on_participants), "right about who took part, by who gains most"),
            ("on others", plain(self.right_on_others), f"right about who did not{place}, same attacker"),
        ]

    def _found(self) -> list[Row]:
        if self.estimate:
            told = f"from {self.estimate.runs} outputs, intervals at {100 * (1 - self.estimate.alpha):g} %"
            return [("computed", "estimate", told), *self._at_risk(), ON_REQUEST]
        if self.enclosed:
            apart = f"certified bounds, at most {self.enclosed.gap:.0e} apart"
            return [("computed", "enclosed", apart), *self._compared()]
        if self.optimum.is_proven:
            how = ("computed", "exactly", "no sampling error")
        else:
            how = ("computed", "numerically", f"error about {self.optimum.error:.0e}")
        return [how, *self._compared()] if self._is_quick else [how, *self._at_risk(), ON_REQUEST]

    @property
    def _is_quick(self) -> bool:
        """Whether breakdown and bounds cost little beside the result itself."""
        listed = SMALL**2 / self.mechanism.n_outputs  # records, where outputs are gone through
        most = {"sets": SMALL} | dict.fromkeys(ON_A_LINE, SMALL // 10)
        return self.mechanism.size <= min(SMALL, most.get(self.optimum.by, listed))

    def _at_risk(self) -> list[Row]:
        """The records most at risk: three of them where the exposure of each is known, one row where all are alike."""
        first = self.worst_off
        if first is None or not (first.exact and self._is_quick):
            return [first.row_of_worst] if first else []
        if first.alike:
            return [first.row_of_worst] if first.advantage > self.advantage + ALIKE else []
        worst = self.most_at_risk(MOST_AT_RISK)
        looked_for = f"if looked for{sentences.among_alike(self.threat)}"
        return [("most at risk", plain(gain), f"{written(name)}, {looked_for}") for name, gain in worst]

    def _compared(self) -> list[Row]:
        """Who is most at risk, and what the guarantee alone would tell, as far as known."""
        rows = self._at_risk()
        worst_case = None
        with suppress(DpriskError):
            worst_case = self.bounds
        for which in ("success", "advantage") if worst_case else ():
            most, by = getattr(worst_case, which), getattr(worst_case, f"{which}_bound").bound.source
            rows.append((f"bound on {which}", nearly_up(most, 4), by))
        return rows

    def sentence(self) -> str:
        who = sentences.attacker(self.threat)
        if self.enclosed:
            return sentences.of_bounds(self.threat, who, self.success, self.baseline, self.advantage)
        if self.right_on_participants is None:
            return sentences.of_difference(self.threat, who, self.advantage) + self._of_worst_off()
        is_estimate = self.estimate is not None
        told = sentences.of_rates(self.threat, who, self.right_on_participants, self.advantage, is_estimate)
        return told + self._of_worst_off() + (f" Mind the units: {self.other_units}." if self.other_units else "")

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "enclosed": self.enclosed.to_dict() if self.enclosed else None,
            "numerical_error": self.optimum.error if self.exact else None,
        }

    def __repr__(self) -> str:
        kind = "exact" if self.optimum.is_proven else "numerical"
        kind = f"estimate from {self.estimate.runs} outputs" if self.estimate else kind
        kind = f"certified within {self.enclosed.gap:.1e}" if self.enclosed else kind
        numbers = f"advantage={self.advantage:.6g}, success={self.success:.6g}, baseline={self.baseline:.6g}"
        return f"Risk({numbers}, {kind})"


def computed(subject: Any, threat: Threat, thorough: bool = False) -> Risk | WorstCase:
    """As `assess`, but nothing is estimated: what is out of reach raises a `TooLargeError`."""
    if isinstance(subject, Mechanism):
        return Risk(subject, threat, exact.solve(subject, threat))
    return WorstCase(as_guarantee(subject), threat, thorough)


def at_most(subject: Any, threat: Threat) -> Risk | WorstCase:
    """As `computed`; of a mechanism whose risk is out of reach, the worst that its guarantee allows."""
    try:
        return computed(subject, threat)
    except TooLargeError:
        return WorstCase(subject.guarantee(), threat)


def risk_of(subject: Any, threat: Threat, which: str) -> float:
    """The advantage or the success of a mechanism or guarantee, computed, or at least not exceeded."""
    return float(getattr(at_most(subject, threat), which))
