"""What a bound is: what it needs, what it bounds, who proved it, where it is attained."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dprisk.bounds import programs
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.threat.threat import Threat

Bounded = Literal["advantage", "success", "match among many", "match of a random one"]
Only = Literal["nothing known", "exact success", "uniform prior"]
Notion = Literal["any", "pair", "one pair", "pure"]
NOTIONS: dict[Notion, str] = {
    "any": "any guarantee",
    "pair": "an epsilon and delta",
    "one pair": "one epsilon and delta",
    "pure": "pure DP",
}
UNINFORMED: tuple[Only, ...] = ("nothing known",)
EXACT: tuple[Only, ...] = ("nothing known", "exact success")
UNIFORM: tuple[Only, ...] = ("nothing known", "exact success", "uniform prior")
FEW = 60  # records up to which optimisation problems are solved without being asked for
VERY_FEW = 15  # the same where every pair of records counts
MANY = 300  # records up to which all pairs of them are listed without being asked for


@dataclass(frozen=True)
class Bound:
    """One result.

    `notion` is what it reads off the guarantee: its curve ("any"), a pair epsilon, delta ("pair": every pair that the
    guarantee implies is tried; "one pair": only if it is one), or its epsilon at delta 0 ("pure"). `formula` takes the
    guarantee, or epsilon and delta, or epsilon, and the threat (and, for matches among many, how many people). It holds
    `only` for threats with these properties.
    """

    name: str
    source: str
    statement: str
    notion: Notion
    formula: Callable[..., float | programs.Certified]
    only: tuple[Only, ...] = ()
    bounds: Bounded = "advantage"
    most_records: float = math.inf
    attained: str = ""
    is_attained: Callable[[Guarantee, Threat], bool] = lambda guarantee, threat: False
    worst: Callable[[Guarantee, Threat], Mechanism] | None = None

    def obstacle(self, guarantee: Guarantee, threat: Threat, thorough: bool = False) -> str | None:
        """Why the bound does not apply, in a sentence; None if it does."""
        if "nothing known" in self.only and not threat.knows.is_none:
            return f"needs an attacker without auxiliary knowledge; this one knows {threat.knows.describe()}"
        if "exact success" in self.only and not threat.success.is_exact:
            return "needs exact reconstruction; here a near guess counts as right"
        if "uniform prior" in self.only and not threat.prior.is_uniform_on_support:
            return "needs a uniform prior"
        if self.notion == "pure" and math.isinf(guarantee.epsilon_at(0.0)):
            return "needs pure DP; this guarantee has no epsilon at delta 0"
        if self.notion == "one pair" and len(guarantee.pairs) > 1:
            return "needs a single epsilon and delta"
        if threat.prior.support_size > self.most_records and not thorough:
            return f"is computed for up to {self.most_records:g} records unless asked for (thorough=True)"
        return None

    def needs(self) -> str:
        """What it needs, in a few words."""
        return ", ".join([NOTIONS[self.notion], *self.only])

    def to_dict(self) -> dict[str, str]:
        """What there is to know about the bound, ready for JSON."""
        return {
            "name": self.name,
            "bounds": self.bounds,
            "statement": self.statement,
            "needs": self.needs(),
            "source": self.source,
            "attained": self.attained,
        }

    def value(self, guarantee: Guarantee, threat: Threat, *people: int) -> Value:
        """The bound evaluated, as its formula gives it."""
        if self.notion == "any":
            found = [self.formula(guarantee, threat)]
        elif self.notion == "pure":
            found = [self.formula(guarantee.epsilon_at(0.0), threat, *people)]
        else:
            found = [self.formula(epsilon, delta, threat) for epsilon, delta in guarantee.pairs]
        numbers = [one.value if isinstance(one, programs.Certified) else one for one in found]
        proven = all(one.is_tight for one in found if isinstance(one, programs.Certified))
        return Value(self, min(numbers), proven and self.is_attained(guarantee, threat))


@dataclass(frozen=True)
class Value:
    """A bound evaluated: its number, and whether some mechanism with this guarantee attains it."""

    bound: Bound
    number: float
    attained: bool

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; a vacuous infinite number becomes None."""
        return {
            "name": self.bound.name,
            "bounds": self.bound.bounds,
            "value": self.number if math.isfinite(self.number) else None,
            "source": self.bound.source,
            "attained": self.attained,
        }
