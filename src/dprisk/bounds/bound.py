"""What a bound is: what it needs, what it bounds, who proved it, where it is attained."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

from dprisk.errors import require
from dprisk.guarantees import Guarantee
from dprisk.guarantees.base import Relation
from dprisk.mechanisms import Mechanism
from dprisk.rounding import outward
from dprisk.threat.success import Exact, Ring
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray

Bounded = Literal["advantage", "success", "match among many", "match of a random one"]
Only = Literal["nothing known", "exact success", "uniform prior"]
Notion = Literal["any", "pair", "one pair", "pure"]
NOTIONS: dict[Notion, str] = {
    "any": "any guarantee",
    "pair": "an epsilon and delta",
    "one pair": "one epsilon and delta",
    "pure": "pure DP",
}
RELATIONS: dict[Relation, str] = {
    "replace-one": "replacing one record",
    "add-remove": "adding or removing one",
}
UNINFORMED: tuple[Only, ...] = ("nothing known",)
EXACT: tuple[Only, ...] = ("nothing known", "exact success")
UNIFORM: tuple[Only, ...] = ("nothing known", "exact success", "uniform prior")
FEW = 60  # records up to which optimisation problems are solved without being asked for
VERY_FEW = 15  # the same where every pair of records counts
MANY = 300  # records up to which all pairs of them are listed without being asked for
QUANTITIES = {
    "total_variation": "guarantee.total_variation",
    "prior": "threat.prior",
    "weights": "threat.prior.sorted_weights",
    "size": "threat.prior.support_size",
    "kappa_pi": "threat.prior.collision_probability",
    **{name: f"threat.{name}" for name in ("kappa_minus", "kappa_plus", "kappa_aux", "ball_masses")},
    **{name: name for name in ("guarantee", "threat", "epsilon", "delta", "people", "which")},
}  # that a formula can ask for, and where they are found
LISTED = {"prior", "weights", "size", "ball_masses", "threat"}  # that only records that can be listed have
Formula = TypeVar("Formula", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Certified:
    """An upper bound, the dual point that proves it (as its formula says), and what is attained.

    `attained` is the value of the best mechanism that the solver found; 0 if it found none.
    """

    value: float
    dual: FloatArray
    attained: float = 0.0

    @property
    def is_tight(self) -> bool:
        """Whether the bound is attained, up to one part in a million."""
        return self.value - self.attained <= 1e-6 * self.value


@dataclass(frozen=True)
class Bound:
    """One result. Whoever registers it vouches that it is proven.

    `notion` is what it reads off the guarantee: its curve ("any"), a pair epsilon, delta ("pair": every pair that the
    guarantee implies is tried; "one pair": only if it is one), or its epsilon at delta 0 ("pure"). `formula` is given
    the `QUANTITIES` that its parameters are named after, and returns a number, a `Certified`, or what has the
    number under the name of what is bounded. It holds `only` for threats with these properties, and only for
    guarantees about the `relation` of neighbours that it is proven for. It is asked about the `essence` of a threat.
    """

    name: str
    source: str
    statement: str
    notion: Notion
    formula: Callable[..., Any]
    only: tuple[Only, ...] = ()
    bounds: Bounded = "advantage"
    relation: Relation = "replace-one"
    most_records: float = math.inf
    attained: str = ""
    is_attained: Callable[[Guarantee, Threat], bool] = lambda guarantee, threat: False
    worst: Callable[[Guarantee, Threat], Mechanism] | None = None

    def obstacle(self, guarantee: Guarantee, threat: Threat, thorough: bool = False) -> str | None:
        """Why the bound does not apply, in a sentence; None if it does."""
        if guarantee.relation != self.relation:
            return f"needs a guarantee for {RELATIONS[self.relation]}; this one is for {RELATIONS[guarantee.relation]}"
        threat = threat.essence
        if (unfit := self._unfit(threat)) is not None:
            return unfit
        if self.notion == "pure" and math.isinf(guarantee.epsilon_at(0.0)):
            return "needs pure DP; this guarantee has no epsilon at delta 0"
        if self.notion == "one pair" and len(guarantee.pairs) > 1:
            return "needs a single epsilon and delta"
        if not (thorough or math.isinf(self.most_records)) and threat.prior.support_size > self.most_records:
            return f"is computed for up to {self.most_records:g} records unless asked for (thorough=True)"
        return None

    def _unfit(self, threat: Threat) -> str | None:
        """What the threat lacks, in a sentence; None if nothing."""
        if "nothing known" in self.only and not threat.knows.is_none:
            return f"needs an attacker without auxiliary knowledge; this one knows {threat.knows.describe()}"
        if "exact success" in self.only and not threat.success.is_exact:
            return "needs exact reconstruction; here a near guess counts as right"
        if "uniform prior" in self.only and not threat.prior.is_uniform_on_support:
            return "needs a uniform prior"
        if threat.has_numbers and LISTED & set(self._asks):
            return "needs records that can be listed; here they are any numbers of an interval"
        return None

    def needs(self) -> str:
        """What it needs, in a few words."""
        about = "" if self.relation == "replace-one" else f" for {RELATIONS[self.relation]}"
        return ", ".join([NOTIONS[self.notion] + about, *self.only])

    def to_dict(self) -> dict[str, str]:
        """What there is to know about the bound, ready for JSON."""
        words = ("name", "bounds", "statement", "needs", "source", "attained")
        return {word: self.needs() if word == "needs" else getattr(self, word) for word in words}

    def value(self, guarantee: Guarantee, threat: Threat, people: int | None = None) -> Value:
        """The bound evaluated, as its formula gives it."""
        threat = threat.essence
        pairs: Any = guarantee.pairs if self.notion in ("pair", "one pair") else [(None, None)]
        if self.notion == "pure":
            pairs = [(guarantee.epsilon_at(0.0), 0.0)]
        known = SimpleNamespace(guarantee=guarantee, threat=threat, people=people, which=self.bounds)
        numbers, proven = [], True
        for known.epsilon, known.delta in pairs:
            found = self.formula(*(read(known) for read in self._reads))
            if isinstance(found, Certified):
                proven, found = proven and found.is_tight, found.value
            numbers.append(getattr(found, self.bounds, found))
        terms = 1 if threat.has_numbers else threat.prior.support_size
        number = min(numbers) if self._is_nothing(guarantee, threat) else outward(min(numbers), terms)
        return Value(self, number, proven and self.is_attained(guarantee, threat))

    def _is_nothing(self, guarantee: Guarantee, threat: Threat) -> bool:
        """Whether there is nothing to gain at all, so that a bound of 0 is no rounding."""
        one = not threat.has_numbers and threat.prior.support_size == 1
        hidden = guarantee.total_variation == 0 or one
        return threat.kappa_aux == 0 or (self.bounds == "advantage" and hidden)

    @cached_property
    def _asks(self) -> tuple[str, ...]:
        """The names of the arguments of the formula."""
        return tuple(inspect.signature(self.formula).parameters)

    @cached_property
    def _reads(self) -> list[Callable[[Any], Any]]:
        """How to get the arguments of the formula."""
        for name in self._asks:
            require(
                name in QUANTITIES,
                f"The formula of {self.name} takes {name!r}; a formula is given {', '.join(QUANTITIES)} by name.",
            )
        return [attrgetter(QUANTITIES[name]) for name in self._asks]


@dataclass(frozen=True)
class Value:
    """A bound evaluated: its number, and whether some mechanism with this guarantee attains it.

    `converted` says that the guarantee was for adding or removing a record, and the bound is for replacing one.
    """

    bound: Bound
    number: float
    attained: bool
    converted: bool = False

    @property
    def source(self) -> str:
        """Who proved it, and whether the guarantee was converted for it."""
        return f"{self.bound.source}, converted to replacing one record" if self.converted else self.bound.source

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; a vacuous infinite number becomes None."""
        return {
            "name": self.bound.name,
            "bounds": self.bound.bounds,
            "value": self.number if math.isfinite(self.number) else None,
            "source": self.source,
            "relation": self.bound.relation,
            "attained": self.attained,
        }


def theorem(
    name: str, source: str, statement: str, only: tuple[Only, ...] = (), **more: Any
) -> Callable[[Formula], Formula]:
    """Make a function the formula of a bound, one of its `bounds`. Parameters tell the notion unless it is given."""

    def marked(formula: Formula) -> Formula:
        names = inspect.signature(formula).parameters
        notion = more.pop("notion", "pair" if "delta" in names else "pure" if "epsilon" in names else "any")
        vars(formula).setdefault("bounds", []).append(Bound(name, source, statement, notion, formula, only, **more))
        return formula

    return marked


def is_pure(guarantee: Guarantee, threat: Threat) -> bool:
    """Whether the guarantee says epsilon-DP and nothing more, so that the worst epsilon-DP mechanism has it."""
    return is_pair(guarantee, threat) and guarantee.pairs[0][1] == 0


def is_pair(guarantee: Guarantee, threat: Threat) -> bool:
    """Whether the guarantee says (epsilon, delta)-DP and nothing more."""
    return len(guarantee.pairs) == 1


def is_exchangeable(guarantee: Guarantee, threat: Threat) -> bool:
    """Pure DP, a uniform prior, and categories or a ring: a group acts transitively (theory, 3.4 c)."""
    around = isinstance(threat.success, Ring) and threat.success.positions is None
    same = isinstance(threat.success, Exact) or around
    return is_pure(guarantee, threat) and same and threat.prior.is_uniform
