"""The first question: what does this release risk?

`assess` answers for a mechanism (exactly, or by a marked estimate) and for a guarantee (the worst over every mechanism
that keeps it). Both answers read alike.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np

from dprisk import bounds, exact
from dprisk.attacks import estimate
from dprisk.attacks.estimate import Estimate
from dprisk.errors import ThreatError, TooLargeError, as_number, as_whole, fail, require
from dprisk.exact.certified import Certificate, certify
from dprisk.exact.optimum import Optimum
from dprisk.guarantees import Guarantee, as_guarantee
from dprisk.mechanisms import Mechanism, OnInterval
from dprisk.threat.density import Density
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray


@dataclass(frozen=True)
class GroupRisk:
    """The risk of the people in one knowledge group, as shares of that group."""

    name: Any
    prior_mass: float
    advantage: float
    success: float
    baseline: float


class Assessment(ABC):
    """What the best attacker gains.

    `advantage` (RAD) is success on a participant minus success on somebody who did not take part, `success` (ReRo)
    the best success with the output, `baseline` the best without. Each is of the attacker that is best at it.
    """

    threat: Threat

    @property
    @abstractmethod
    def advantage(self) -> float:
        """RAD."""

    @property
    @abstractmethod
    def success(self) -> float:
        """ReRo."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether advantage and success are those of the subject itself, neither measured nor bounded."""

    @property
    def baseline(self) -> float:
        """The best success without seeing the output."""
        return self.threat.baseline

    @property
    def normalised_advantage(self) -> float:
        """Advantage over 1 - kappa_pi: 1 means always right on participants and never on others (RAD section 4)."""
        most = 1 - self.threat.prior.collision_probability
        return self.advantage / most if most > 1e-15 else 0.0

    @abstractmethod
    def sentence(self) -> str:
        """The risk in natural frequencies."""

    def _numbers(self) -> dict[str, Any]:
        return {
            "advantage": self.advantage,
            "success": self.success,
            "baseline": self.baseline,
            "normalised_advantage": self.normalised_advantage,
            "exact": self.exact,
            "threat": self.threat.describe(),
            "sentence": self.sentence(),
        }

    def _goal(self) -> str:
        return "" if self.threat.success.is_exact else f" {self.threat.success.describe()}"


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Assessment):
    """The risk of a mechanism. Where `exact` is False, it is a Monte Carlo estimate and comes with intervals."""

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
    def estimate(self) -> Estimate | None:
        """Runs, alpha and intervals of a Monte Carlo result; None where the result is exact."""
        return self.optimum if isinstance(self.optimum, Estimate) else None

    @property
    def exact(self) -> bool:
        """Whether advantage and success are computed, not measured."""
        return self.estimate is None

    @cached_property
    def bounds(self) -> "WorstCase":
        """What the mechanism's guarantee alone would tell, for comparison."""
        return WorstCase(self.mechanism.guarantee(), self.threat)

    @cached_property
    def by_record(self) -> FloatArray:
        """The best attacker's advantage on each record; the prior's mean of it is `advantage`. For exact risks only."""
        require(self.exact, "An estimate has no breakdown by record; `by_group` has one by group.", TooLargeError)
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

    def sentence(self) -> str:
        """The risk in natural frequencies."""
        people = _people(self.success, self.baseline, self.advantage)
        right, blind, more = (round(share * people) for share in (self.success, self.baseline, self.advantage))
        about = "" if self.exact else "about "
        if self.threat.knows.is_all:
            return (
                f"Of {people} people whose record is known, an attacker rightly says of {about}{more} more that they "
                f"took part than it wrongly says of {people} who did not."
            )
        adds_up = abs(self.success - self.baseline - self.advantage) < 1e-9
        right = blind + more if adds_up else right  # so that the rounded numbers add up too
        both = (
            f"Of {people} people like this one, an attacker guesses {about}{right} right{self._goal()} "
            f"after seeing the report, {blind} without it"
        )
        if adds_up:
            return f"{both}; taking part adds {about}{more}."
        return (
            f"{both}. An attacker who bets on what the report gives away, rather than on what is likely anyway, "
            f"gains from those who take part: taking part adds {about}{more}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but breakdowns and bounds, ready for JSON."""
        measured = self.estimate
        return self._numbers() | {
            "estimate": measured.to_dict() if measured else None,
            "numerical_error": None if measured else self.optimum.error,
            "mechanism": self.mechanism.to_dict(),
        }

    def _repr_html_(self) -> str:
        from dprisk.render import as_html

        return as_html(self)

    def __repr__(self) -> str:
        computed = "exact" if self.optimum.is_proven else "numerical"
        kind = f"estimate from {self.estimate.runs} outputs" if self.estimate else computed
        numbers = f"advantage={self.advantage:.6g}, success={self.success:.6g}, baseline={self.baseline:.6g}"
        return f"Risk({numbers}, {kind})"


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Assessment):
    """The risk of a guarantee: bounds on every mechanism that keeps it, the tightest for each number.

    `thorough` also solves the optimisation problems for more than a few dozen records.
    """

    guarantee: Guarantee
    threat: Threat
    thorough: bool = False

    def __post_init__(self) -> None:
        self.guarantee.require_replace_one()

    @cached_property
    def on_advantage(self) -> bounds.Evaluation:
        """Every bound on the advantage."""
        return bounds.evaluate(self.guarantee, self.threat, "advantage", self.thorough)

    @cached_property
    def on_success(self) -> bounds.Evaluation:
        """Every bound on the success."""
        return bounds.evaluate(self.guarantee, self.threat, "success", self.thorough)

    @property
    def advantage_bound(self) -> bounds.Value:
        """The tightest bound on the advantage."""
        return self.on_advantage.values[0]

    @property
    def success_bound(self) -> bounds.Value:
        """The tightest bound on the success."""
        return self.on_success.values[0]

    @property
    def advantage(self) -> float:
        """No mechanism with this guarantee has a larger RAD."""
        return min(self.advantage_bound.number, 1 - self.threat.prior.collision_probability)

    @property
    def success(self) -> float:
        """No mechanism with this guarantee has a larger ReRo."""
        return min(self.success_bound.number, 1.0)

    @property
    def exact(self) -> bool:
        """False: these are bounds. Whether they are attained is told by `advantage_bound.attained`."""
        return False

    def worst_mechanism(self, which: Literal["advantage", "success"] = "advantage") -> Mechanism | None:
        """A mechanism with this guarantee that attains the tightest bound, where one is known."""
        values = (self.on_advantage if which == "advantage" else self.on_success).values
        for value in values:
            as_tight = value.number <= values[0].number * (1 + 1e-9)
            if as_tight and value.attained and value.bound.worst:
                return value.bound.worst(self.guarantee, self.threat)
        return None

    def match_among(self, people: int) -> tuple[bounds.Value, bounds.Value]:
        """The tightest bounds on a guess that matches at least one of so many people, and a random one of them.

        For records drawn independently from the prior, and no knowledge of any of them.
        """
        people = as_whole("people", people)
        both: tuple[Literal["match among many"], Literal["match of a random one"]]
        both = ("match among many", "match of a random one")
        some, one = (bounds.evaluate(self.guarantee, self.threat, which, people=people) for which in both)
        for found in (some, one):
            require(len(found.values) > 0, f"This bound {next(iter(found.obstacles.values()), '')}.", ThreatError)
        return some.values[0], one.values[0]

    def sentence(self) -> str:
        """The risk in natural frequencies, rounded up."""
        people = _people(self.success, self.baseline, self.advantage)
        of, blind = people, round(self.baseline * people)
        right, more = (math.ceil(share * people - 1e-9) for share in (self.success, self.advantage))
        return (
            f"Of {of} people like this one, an attacker guesses at most {right} right{self._goal()} after seeing "
            f"the report, {blind} without it; taking part adds at most {more}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return self._numbers() | {
            "guarantee": self.guarantee.to_dict(),
            "advantage_bound": self.advantage_bound.to_dict(),
            "success_bound": self.success_bound.to_dict(),
            "worst_mechanism": (worst := self.worst_mechanism()) and worst.to_dict(),
            "bounds": [value.to_dict() for value in self.on_advantage.values + self.on_success.values],
            "obstacles": self.on_advantage.obstacles | self.on_success.obstacles,
        }

    def _repr_html_(self) -> str:
        from dprisk.render import as_html

        return as_html(self)

    def __repr__(self) -> str:
        most = f"advantage<={rounded_up(self.advantage)}, success<={rounded_up(self.success)}"
        numbers = f"{most}, baseline={self.baseline:.6g}"
        return f"WorstCase({numbers}, by {self.advantage_bound.bound.source})"


@dataclass(frozen=True, eq=False, repr=False)
class IntervalThreat:
    """The record is a number with a prior density; a guess `within` that distance is right. Nothing else is known.

    >>> IntervalThreat(Density.uniform(0, 1), within=0.1)
    IntervalThreat(Density(uniform on [0, 1]), within 0.1)
    """

    prior: Density
    within: float

    def __post_init__(self) -> None:
        require(isinstance(self.prior, Density), f"The prior is a Density, not {self.prior!r}.", ThreatError)
        within = as_number("The distance `within`", self.within)
        require(0 < within < math.inf, f"The distance `within` must be finite and above 0, got {within:g}", ThreatError)

    def __repr__(self) -> str:
        return f"IntervalThreat({self.prior!r}, within {self.within:g})"


@dataclass(frozen=True, eq=False, repr=False)
class IntervalRisk:
    """The risk of a mechanism for numbers, between two certified bounds; the numbers themselves are the upper ones."""

    mechanism: OnInterval
    threat: IntervalThreat
    certificate: Certificate

    @property
    def advantage(self) -> float:
        """No attacker has a larger RAD; at least one has `advantage_interval[0]`."""
        return self.certificate.advantage.upper

    @property
    def success(self) -> float:
        """No attacker has a larger ReRo; at least one has `success_interval[0]`."""
        return self.certificate.success.upper

    @property
    def baseline(self) -> float:
        """The best success without seeing the output, from above."""
        return self.certificate.baseline.upper

    @property
    def advantage_interval(self) -> tuple[float, float]:
        """Certified bounds on RAD."""
        return self.certificate.advantage.lower, self.certificate.advantage.upper

    @property
    def success_interval(self) -> tuple[float, float]:
        """Certified bounds on ReRo."""
        return self.certificate.success.lower, self.certificate.success.upper

    def sentence(self) -> str:
        """The risk in natural frequencies."""
        people = _people(self.success, self.baseline, self.advantage)
        right, blind, more = (round(share * people) for share in (self.success, self.baseline, self.advantage))
        return (
            f"Of {people} people like this one, an attacker guesses {right} right within {self.threat.within:g} after "
            f"seeing the report, {blind} without it; taking part adds {more}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "advantage": self.advantage,
            "advantage_interval": list(self.advantage_interval),
            "success": self.success,
            "success_interval": list(self.success_interval),
            "baseline": self.baseline,
            "mechanism": self.mechanism.to_dict(),
            "threat": {"prior": repr(self.threat.prior), "within": self.threat.within},
            "sentence": self.sentence(),
        }

    def __repr__(self) -> str:
        numbers = f"advantage={self.advantage:.6g}, success={self.success:.6g}, baseline={self.baseline:.6g}"
        return f"IntervalRisk({numbers}, certified within {self.certificate.advantage.width:.1e})"


@overload
def assess(
    subject: OnInterval,
    threat: IntervalThreat,
    *,
    width: float = 1e-6,
) -> IntervalRisk: ...


@overload
def assess(
    subject: Mechanism,
    threat: Threat,
    *,
    samples: int | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | int = 0,
    thorough: bool = False,
    progress: estimate.Progress | None = None,
) -> Risk: ...


@overload
def assess(
    subject: Any,
    threat: Threat,
    *,
    samples: int | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | int = 0,
    thorough: bool = False,
    progress: estimate.Progress | None = None,
) -> WorstCase: ...


def assess(
    subject: Any,
    threat: Threat | IntervalThreat,
    *,
    samples: int | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | int = 0,
    thorough: bool = False,
    progress: estimate.Progress | None = None,
    width: float = 1e-6,
) -> Risk | WorstCase | IntervalRisk:
    """The best attacker's advantage and success against a mechanism, or against anything that keeps a guarantee.

    A mechanism: exact wherever there is a closed form or the outputs can be listed, otherwise a Monte Carlo estimate
    over `samples` outputs with intervals at `confidence`, marked by `exact=False`; `rng` is a Generator or a seed, and
    `progress` is told after each block of outputs how many are drawn, how many are wanted, and the advantage so far.
    A guarantee (or a dp_accounting event or privacy loss distribution, an Opacus accountant, an OpenDP measurement):
    every bound that applies, and the tightest; `thorough` solves larger optimisation problems too.
    A mechanism for numbers (`OnInterval`, with an `IntervalThreat`): certified bounds at most `width` apart.

    >>> from dprisk import GRR, Prior, PureDP, Threat
    >>> assess(GRR(100, epsilon=2.0), Threat(Prior.uniform(100)))
    Risk(advantage=0.0594532, success=0.0694532, baseline=0.01, exact)
    >>> assess(PureDP(1.0), Threat(Prior.zipf(10)))
    WorstCase(advantage<=0.156465, success<=0.374394, baseline=0.341417, by dprisk, theory 3.2)
    """
    if isinstance(subject, OnInterval):
        if not isinstance(threat, IntervalThreat):
            fail(f"A mechanism for numbers needs an IntervalThreat, not {type(threat).__name__}.", ThreatError)
        return IntervalRisk(subject, threat, certify(subject, threat.prior, threat.within, width))
    if not isinstance(threat, Threat):
        fail(f"The second argument is a Threat, not {type(threat).__name__}.", ThreatError)
    runs, alpha = estimate.checked(samples, 1 - as_number("confidence", confidence))
    generator = as_generator(rng)
    if not isinstance(subject, Mechanism):
        return WorstCase(as_guarantee(subject), threat, thorough)
    try:
        return Risk(subject, threat, exact.solve(subject, threat))
    except TooLargeError:
        found = estimate.estimate_best(subject, threat, generator, runs, alpha, progress)
        return Risk(subject, threat, found)


def as_generator(rng: np.random.Generator | int) -> np.random.Generator:
    """A numpy Generator, or the one of a seed."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        return fail(f"rng is a numpy Generator or a seed (a whole number of at least 0), got {rng!r}")


def rounded_up(value: float, digits: int = 6) -> str:
    """A bound to so many significant digits, never printed below its value."""
    if value <= 0 or not math.isfinite(value):
        return f"{value:g}"
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    shown = f"{value:.{digits}g}"
    return shown if float(shown) >= value else f"{float(shown) + step:.{digits}g}"


def _people(*shares: float) -> int:
    """The smallest power of ten, at least 1000, at which no share that counts vanishes by rounding."""
    smallest = min((share for share in shares if share > 1e-9), default=1.0)
    people = 1000
    while smallest * people < 1 and people < 10**9:
        people *= 10
    return people
