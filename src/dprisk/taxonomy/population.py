"""What is said of all people at once: one guess that matches at least one of them, and a guess about each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dprisk.errors import DpriskError, GuaranteeError, TooLargeError
from dprisk.guarantees import Guarantee, PureDP
from dprisk.population import AtMost, Targets, at_most
from dprisk.population.strangers import match_somebody
from dprisk.search import weakest
from dprisk.threat import Threat

SAYS_SOMETHING = 0.99  # a bound on a chance at or above this tells next to nothing
MOST_COUNTED = 200_000  # people whose guesses are counted: a second or so


@dataclass(frozen=True)
class Population:
    """Bounds for so many people: a guess that matches `some` of them, and a random `one`, beside what luck alone does.

    `says_from` is the largest epsilon of pure DP at which the bound on some is below 0.99, None if there is none;
    `people_at_best` is for how many people it is below that at some epsilon.
    """

    people: int
    baseline: float
    some: float
    one: float
    says_from: float | None
    people_at_best: int

    @property
    def is_vacuous(self) -> bool:
        """Whether the bound on matching some of them excludes nothing."""
        return self.some >= SAYS_SOMETHING

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return dict(vars(self)) | {"is_vacuous": self.is_vacuous}


def population(guarantee: Guarantee, threat: Threat, people: int) -> Population:
    """The tightest bounds that there are: for attackers who know of nobody, and people drawn from the prior."""

    def bound(promised: Any, many: int = people) -> float:
        return match_somebody(promised, threat.baseline, many).somebody

    found = match_somebody(guarantee, threat.baseline, people)
    return Population(
        people,
        found.somebody_without,
        found.somebody,
        found.given_one,
        _says_from(bound),
        _most(lambda many: bound(PureDP(0.0), many) < SAYS_SOMETHING, people),
    )


@lru_cache(maxsize=8)
def how_many(guarantee: Guarantee, threat: Threat, people: int) -> AtMost:
    """About how many of so many people a guess about each can be right, people drawn from the prior independently.

    Who knows a group g of each person is right with at most beta(k_g) given the groups, k_g the baseline in the group
    (Swanberg et al., Theorem 3.2). Groups are drawn too, so that all are right independently with the mean of beta(k_g)
    at most, which is at most beta of the mean of k_g, for beta is concave: people who all have the threat's baseline
    are the worst case (ours). What delta adds is not averaged like this: for such an attacker pure DP is needed.
    """
    TooLargeError.unless(
        people <= MOST_COUNTED, f"Guesses are counted for up to {MOST_COUNTED:,} people, not for {people:,}."
    )
    if threat.knows.is_none:
        return at_most(guarantee, Targets.under(threat, people))
    epsilon = guarantee.replaced.epsilon_at(0.0)
    GuaranteeError.unless(
        math.isfinite(epsilon), "How many are found out by who knows something of each is bounded for pure DP only."
    )
    return at_most(epsilon, Targets(np.full(people, threat.baseline)))


def _most(holds: Callable[[int], bool], people: int) -> int:
    """The most people, up to those that there are, for whom something holds that holds for fewer, too."""
    low, high = 0, people + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _says_from(bound: Callable[[Any], float]) -> float | None:
    try:
        found = weakest(PureDP(1.0), bound, SAYS_SOMETHING * (1 - 1e-9))
    except DpriskError:
        return None
    return None if found.unlimited else found.value
