"""The second question: how much noise do I need?

`calibrate` finds the weakest noise of a family that keeps a tolerated risk, and always ends on the safe side: the risk
that it reports was computed at the parameter that it reports, and is at most the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dprisk import exact
from dprisk.assessment import Risk, WorstCase, assess
from dprisk.errors import GuaranteeError, ParameterError, as_number, as_whole, fail, require
from dprisk.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, dp_sgd
from dprisk.guarantees.base import Relation
from dprisk.mechanisms import OLH, SHE, DiscreteGaussian, Gaussian, Laplace, Mechanism, SetProtocol
from dprisk.search import Family, Found, Measure, Subject, weakest
from dprisk.threat.threat import Threat


@dataclass(frozen=True)
class DPSGD:
    """DP-SGD with Poisson sampling, its noise multiplier to be found."""

    sample_rate: float
    steps: int
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        rate = as_number("sample_rate", self.sample_rate)
        require(0 < rate <= 1, f"sample_rate must lie in (0, 1], got {rate:g}")
        object.__setattr__(self, "steps", as_whole("steps", self.steps))

    def guarantee(self, noise_multiplier: float, grid: float = 1e-4) -> Guarantee:
        """The guarantee of a training with this noise multiplier."""
        return dp_sgd(noise_multiplier, self.sample_rate, self.steps, self.relation, grid)

    @property
    def sketches(self) -> tuple[Callable[[float], Guarantee], ...]:
        """The central limit, and the accountant on two coarse grids; full batches need none."""
        if self.sample_rate == 1:
            return ()
        return (
            self._limit,
            lambda noise: self.guarantee(noise, grid=1e-3),
            lambda noise: self.guarantee(noise, grid=5e-4),
        )

    @staticmethod
    def extrapolate(roots: list[float]) -> float:
        """The accountant's error falls with the square of its grid: from 1e-3 and 5e-4 on to 1e-4."""
        return roots[2] + (roots[2] - roots[1]) * (0.25 - 0.01) / (1 - 0.25)

    @property
    def without_noise(self) -> Guarantee:
        """Without any noise a record still shows only if it is in some batch."""
        return ApproxDP(0.0, 1 - (1 - self.sample_rate) ** self.steps, self.relation)

    def _limit(self, noise_multiplier: float) -> Guarantee:
        """Many small steps are nearly Gaussian DP (Bu, Dong, Long, Su 2020)."""
        distance = 2 if self.relation == "replace-one" else 1
        step = math.expm1(min(50.0, 1 / noise_multiplier**2))
        return GaussianDP(min(100.0, distance * self.sample_rate * math.sqrt(self.steps * step)), self.relation)


def as_family(template: Any) -> Family:
    """The family of a template: a mechanism or guarantee with any parameter, or `DPSGD`."""
    match template:
        case Family():
            return template
        case DPSGD():
            return Family(
                "noise_multiplier",
                template.guarantee,
                False,
                template.sketches,
                template.extrapolate,
                without_noise=template.without_noise,
            )
        case Gaussian() | DiscreteGaussian():
            return Family("sigma", template.with_sigma, False)
        case Mechanism():
            return Family("epsilon", template.with_epsilon, True, jumps=_jumps(template))
        case ApproxDP():
            return Family("epsilon", lambda epsilon: replace(template, epsilon=epsilon), True)
        case GaussianDP():
            return Family("mu", lambda mu: replace(template, mu=mu), True)
        case ZCDP():
            return Family("rho", lambda rho: replace(template, rho=rho), True)
        case _:
            return fail(
                f"{type(template).__name__} has no parameter to calibrate; give a mechanism, PureDP, ApproxDP, "
                "GaussianDP, ZCDP or DPSGD.",
                GuaranteeError,
            )


def _jumps(template: Mechanism) -> bool:
    """Whether the mechanism chooses a whole number from epsilon, alone or inside another."""
    inner = [getattr(template, part) for part in ("mechanism", "first", "second") if hasattr(template, part)]
    return isinstance(template, OLH) or getattr(template, "chooses_size", False) or any(map(_jumps, inner))


@dataclass(frozen=True)
class Alternative:
    """What another way to calibrate would choose."""

    name: str
    found: Found
    meaning: str

    @property
    def value(self) -> float:
        """The parameter."""
        return self.found.value


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """The weakest noise found that keeps the goal.

    `unlimited` says that the goal is kept however weak the noise is.
    """

    family: Family
    threat: Threat | None
    kind: str
    goal: str
    target: float
    value: float
    subject: Subject
    measured: float
    unlimited: bool

    @property
    def parameter(self) -> str:
        """The name of the number that was found."""
        return self.family.parameter

    @cached_property
    def risk(self) -> Risk | WorstCase | None:
        """The assessment at the parameter found, where there is a threat."""
        return None if self.threat is None else assess(self.subject, self.threat)

    @cached_property
    def achieved(self) -> dict[str, float]:
        """The risk at the parameter found."""
        if self.risk is None:
            return {"advantage": _guarantee(self.subject).total_variation}
        return {"advantage": self.risk.advantage, "success": self.risk.success, "baseline": self.risk.baseline}

    @property
    def advantage(self) -> float:
        """The achieved advantage."""
        return self.achieved["advantage"]

    @property
    def bound(self) -> float:
        """The value that the goal limits, as computed at the parameter found: at most the target."""
        return self.measured

    @property
    def source(self) -> str:
        """What the advantage is computed by."""
        if self.risk is None:
            return "total variation"
        if isinstance(self.risk, WorstCase):
            return self.risk.advantage_bound.bound.source
        return "exact" if self.risk.exact else "estimate"

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What worst-case membership and ReRo calibration would choose for the same tolerated advantage."""
        if self.threat is None or self.kind != "advantage":
            return ()
        limit = min(1.0, self.threat.baseline + self.target)
        baseline = self.threat.baseline
        other: list[tuple[str, str, Measure, float]] = [
            (
                "membership",
                f"total variation <= {self.target:g}",
                lambda it: _guarantee(it).total_variation,
                self.target,
            ),
            (
                "ReRo",
                f"1 - f(baseline) <= baseline + {self.target:g}",
                lambda it: 1 - float(_guarantee(it).tradeoff(min(1.0, baseline))),
                limit,
            ),
        ]
        return tuple(
            Alternative(name, weakest(self.family, measure, target), meaning)
            for name, meaning, measure, target in other
        )

    @cached_property
    def utility(self) -> dict[str, float]:
        """What the noise costs, here and under the alternatives: smaller is better."""
        chosen = {"": self.subject} | {f" by {other.name}": other.found.subject for other in self.alternatives}
        told: dict[str, float] = {}
        for by, subject in chosen.items():
            told |= {name + by: number for name, number in _error(subject).items()}
        return told

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            self.parameter: None if self.unlimited else self.value,
            "goal": self.goal,
            "unlimited": self.unlimited,
            "target": self.target,
            "bound": self.bound,
            "source": self.source,
            **self.achieved,
            "alternatives": {other.name: None if other.found.unlimited else other.value for other in self.alternatives},
            "utility": self.utility,
        }

    def __repr__(self) -> str:
        kept = ", ".join(f"{name}={number:.6g}" for name, number in self.achieved.items())
        return f"Calibration({self.parameter}={self.value:.6g}, {kept})"


def calibrate(
    family: Any,
    threat: Threat | None = None,
    *,
    advantage: float | None = None,
    success: float | None = None,
    tpr_at_fpr: tuple[float, float] | None = None,
    epsilon: float | tuple[float, float] | None = None,
) -> Calibration:
    """The weakest noise of a family that keeps one goal.

    `family` is a mechanism or guarantee with any parameter, as a template, or `DPSGD`; the parameter found is the one
    that it is made with (the nominal epsilon, where that differs from the true one). The goal is an advantage or a
    success against the threat, a true positive rate at a false positive rate, or an epsilon (with a delta, as a pair).
    Without a threat, the advantage is that of telling two neighbouring data sets apart: the total variation.

    >>> from dprisk import GRR, Prior, Threat
    >>> calibrate(GRR(100, epsilon=1.0), Threat(Prior.uniform(100)), advantage=0.1)
    Calibration(epsilon=2.50438, advantage=0.1, success=0.11, baseline=0.01)
    """
    goals = {"advantage": advantage, "success": success, "tpr_at_fpr": tpr_at_fpr, "epsilon": epsilon}
    given = [name for name, goal in goals.items() if goal is not None]
    require(threat is None or isinstance(threat, Threat), f"{threat!r} is not a Threat.", ParameterError)
    require(len(given) == 1, f"Give exactly one goal of {', '.join(goals)}; got {', '.join(given) or 'none'}.")
    kind = as_family(family)
    measure, target, goal = _goal(given[0], goals[given[0]], threat)
    found = weakest(kind, measure, target)
    return Calibration(
        kind, threat, given[0], goal, target, found.value, found.subject, found.measured, found.unlimited
    )


def _goal(name: str, goal: Any, threat: Threat | None) -> tuple[Measure, float, str]:
    """What to measure, its limit, and both in words."""
    if name in ("advantage", "success"):
        goal = as_number(f"The tolerated {name}", goal)
        require(0 < goal <= 1, f"The tolerated {name} must lie in (0, 1], got {goal}")
        if threat is None:
            require(name == "advantage", "A tolerated success needs a threat: success at what?", ParameterError)
            return lambda it: _guarantee(it).total_variation, goal, f"advantage <= {goal:g}"
        if name == "success":
            require(
                goal >= threat.baseline * (1 - 1e-12),
                f"A success of {goal:g} cannot be kept: the baseline, without any release, is {threat.baseline:g}.",
            )
        return lambda it: _exact_or_bound(it, threat, name), goal, f"{name} <= {goal:g}"
    if name == "tpr_at_fpr":
        require(isinstance(goal, Sequence) and len(goal) == 2, f"tpr_at_fpr is a pair (tpr, fpr), got {goal!r}")
        tpr, fpr = (as_number("A rate", rate) for rate in goal)
        require(
            0 <= fpr < tpr <= 1, f"Needs 0 <= fpr < tpr <= 1: a true positive rate of fpr takes no attack; got {goal}"
        )
        return lambda it: 1 - float(_guarantee(it).tradeoff(fpr)), tpr, f"TPR at FPR {fpr:g} <= {tpr:g}"
    pair = goal if isinstance(goal, Sequence) and not isinstance(goal, str) else (goal, 0.0)
    require(len(pair) == 2, f"epsilon is a number or a pair (epsilon, delta), got {goal!r}")
    limit, delta = as_number("epsilon", pair[0]), as_number("delta", pair[1])
    require(limit >= 0 and 0 <= delta <= 1, f"Needs epsilon >= 0 and delta in [0, 1], got {goal}")
    if delta == 0:
        return (
            lambda it: it.epsilon if isinstance(it, Mechanism) else it.epsilon_at(0.0),
            limit,
            f"epsilon <= {limit:g}",
        )
    return lambda it: _guarantee(it).delta_at(limit), delta, f"({limit:g}, {delta:g})-DP"


def _exact_or_bound(subject: Subject, threat: Threat, which: str) -> float:
    if isinstance(subject, Mechanism):
        return float(getattr(exact.solve(subject, threat), which))
    return float(getattr(assess(subject, threat), which))


def _guarantee(subject: Subject) -> Guarantee:
    return subject.guarantee() if isinstance(subject, Mechanism) else subject


def _error(subject: Subject) -> dict[str, float]:
    """The usual measure of a mechanism's error."""
    if isinstance(subject, Laplace):
        return {"95 % error": subject.scale * math.log(20)}
    if isinstance(subject, Gaussian):
        return {"95 % error": 1.959963984540054 * subject.sigma}
    if isinstance(subject, SetProtocol | SHE):
        return {"variance of a frequency, times reports": subject.frequency_variance()}
    return {}
