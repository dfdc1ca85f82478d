"""What is said of all people at once: one guess that matches at least one of them, or a random one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dprisk.errors import DpriskError
from dprisk.guarantees import Guarantee, PureDP
from dprisk.risks import WorstCase
from dprisk.search import weakest
from dprisk.threat import Threat

SAYS_SOMETHING = 0.99  # a bound on a chance at or above this tells next to nothing


@dataclass(frozen=True)
class Population:
    """Bounds for so many people: a guess that matches `some` of them, and a random `one`, beside what luck alone does.

    `says_from` is the largest epsilon of pure DP at which the bound on some is below 0.99, None if there is none;
    `people_at_most` is for how many people it is below that at this guarantee, `people_at_best` at any.
    """

    people: int
    baseline: float
    some: float
    one: float
    source: str
    says_from: float | None
    people_at_most: int
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
    some, one = WorstCase(guarantee, threat).match_among(people)
    share = min(1.0, one.number)
    return Population(
        people,
        _at_least_one(threat.baseline, people),
        min(1.0, some.number),
        share,
        some.source,
        _says_from(threat, people),
        _people_at_most(share, people),
        _people_at_most(threat.baseline, people),
    )


def _at_least_one(chance: float, people: int) -> float:
    """1 - (1 - chance)^people."""
    return 1.0 if chance >= 1 else -math.expm1(people * math.log1p(-chance))


def _people_at_most(chance: float, people: int) -> int:
    """The most people, up to those that there are, of whom a guess matches one with a bound below 0.99."""
    if chance >= 1:
        return 0
    if chance <= 0:
        return people
    return min(people, max(0, math.ceil(math.log1p(-SAYS_SOMETHING) / math.log1p(-chance)) - 1))


def _says_from(threat: Threat, people: int) -> float | None:
    def bound(guarantee: Any) -> float:
        return float(WorstCase(guarantee, threat).match_among(people)[0].number)

    try:
        found = weakest(PureDP(1.0), bound, SAYS_SOMETHING * (1 - 1e-9))
    except DpriskError:
        return None
    return None if found.unlimited else found.value
