"""Attackers who know only where records come from: matching somebody, matching a given one, singling somebody out.

n records are drawn independently from a prior; the attacker sees the output and makes one guess (Attaxonomy, section
4). The guess may match *some* record (best case) or a *given* one, which is the same as a random one (average). What it
does not say: nothing about people whose record is known to be unlike the others, and nothing about attackers who know
part of the data set. A large best case may be chance alone: always read it beside what it is without the release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.answers import Answer, Row
from dprisk.bounds.papers import attaxonomy_average, attaxonomy_best_case
from dprisk.errors import as_number, as_whole, require
from dprisk.guarantees import ApproxDP, Guarantee
from dprisk.population.many_targets import mean_mode, pairs_of
from dprisk.population.targets import posteriors
from dprisk.rounding import ULP, decimals_up, significant_up

LISTED = 100_000  # people over whom a mean is taken, which is no smaller than that over more


def match_somebody(guarantee: Guarantee | float, baseline: float, people: int) -> Match:
    """How likely does one guess match one of so many records, and how likely a given one of them?

    `baseline` is the largest prior probability of what one guess can be right about.

    >>> print(match_somebody(1.0, baseline=0.001, people=100).sentence())
    If records are drawn independently and no guess is likelier beforehand than 0.1 %, one guess matches some one of \
100 with at most 23.80 %, 9.52 % without the release; a given one with at most 0.272 %, 0.1 % without it.
    """
    promise = guarantee if isinstance(guarantee, Guarantee) else ApproxDP(guarantee)
    chance = as_number("baseline", baseline)
    require(0 < chance <= 1, f"A baseline must lie in (0, 1], got {chance:g}")
    return Match(promise, chance, as_whole("people", people))


@dataclass(frozen=True, eq=False, repr=False)
class Match(Answer):
    """One guess about many records, by an attacker who knows only the prior they are drawn from."""

    guarantee: Guarantee
    baseline: float
    people: int

    @property
    def _pairs(self) -> list[tuple[float, float]]:
        return pairs_of(self.guarantee)

    @property
    def somebody(self) -> float:
        """The guess matches at least one record: 1 - (1 - beta)^n, and what delta adds (theory, 3.7)."""
        return min(1.0, *(self._somebody(epsilon, delta) for epsilon, delta in self._pairs))

    def _somebody(self, epsilon: float, delta: float) -> float:
        """The same as `with_delta` for people with one baseline, rounded up; for any number of them.

        Modes fall with the number of trials, so that their mean over some is at least that over more.
        """
        chance = float(posteriors(epsilon, np.array([self.baseline]))[0])
        luck = 1.0 if chance >= 1 else -math.expm1(self.people * math.log1p(-chance)) * (1 + 8 * ULP)
        if delta == 0:
            return luck
        some = min(self.people, LISTED)
        return luck + self.people * delta * mean_mode(np.full(some, chance * (1 - chance)), some) * (1 + 1e-12)

    @property
    def given_one(self) -> float:
        """The guess matches a given one: beta + delta."""
        return min(1.0, *(float(posteriors(eps, np.array([self.baseline]))[0]) + delta for eps, delta in self._pairs))

    @property
    def somebody_without(self) -> float:
        """The best case without the release: 1 - (1 - kappa)^n."""
        return -math.expm1(self.people * math.log1p(-self.baseline)) if self.baseline < 1 else 1.0

    def singled_out(self) -> float:
        """Exactly one record has a property of that prior probability, which the attacker picks after the release."""
        return min(singling_out(epsilon, self.baseline, self.people, delta) for epsilon, delta in self._pairs)

    def published(self) -> dict[str, float]:
        """Attaxonomy's own bounds, n e^eps kappa and e^eps kappa, cut at 1; for pure DP, infinite epsilon otherwise."""
        epsilon = self.guarantee.replaced.epsilon_at(0.0)
        if not math.isfinite(epsilon):
            return {"somebody": 1.0, "given_one": 1.0}
        return {
            "somebody": min(1.0, attaxonomy_best_case(epsilon, self.baseline, self.people)),
            "given_one": min(1.0, attaxonomy_average(epsilon, self.baseline)),
        }

    @property
    def about(self) -> str:
        return f"{self.guarantee.brief()}, one guess about {self.people} people"

    @property
    def numbers(self) -> dict[str, Any]:
        return {
            "somebody": self.somebody,
            "somebody_without_release": self.somebody_without,
            "given_one": self.given_one,
            "given_one_without_release": self.baseline,
            "singled_out": self.singled_out(),
            "people": self.people,
        }

    @property
    def rows(self) -> list[Row]:
        return [
            ("somebody", f"<= {significant_up(self.somebody, 4)}", f"{self.somebody_without:.4g} without the release"),
            ("a given one", f"<= {significant_up(self.given_one, 4)}", f"{self.baseline:.4g} without the release"),
            (
                "singled out",
                f"<= {significant_up(self.singled_out(), 4)}",
                "exactly one has a property as rare as that",
            ),
        ]

    def sentence(self) -> str:
        some = decimals_up(100 * self.somebody, 2)
        return (
            f"If records are drawn independently and no guess is likelier beforehand than {100 * self.baseline:.3g} %, "
            f"one guess matches some one of {self.people} with at most {some} %, "
            f"{100 * self.somebody_without:.3g} % without the release; a given one with at most "
            f"{significant_up(100 * self.given_one, 3)} %, {100 * self.baseline:.3g} % without it."
        )


def singling_out(epsilon: float, weight: float, people: int, delta: float = 0.0) -> float:
    """How likely exactly one of n records has a property of this prior probability, chosen after the release, at most.

    Predicate singling out (Cohen and Nissim), for pure DP: given the output and the records before it, each has the
    property with a probability between w/(w + e^eps (1 - w)) and beta(w). The worst chain of such chances follows from
    its end. delta adds at most 2 n delta: a chance may be too high or too low, by delta each on average. Without a
    release n w (1 - w)^(n-1), near 0.37 for w = 1/n: only a property much rarer than one in n singles anybody out.
    """
    count, chance = as_whole("people", people), as_number("weight", weight)
    high = float(posteriors(epsilon, np.array([chance]))[0])
    low = chance / (chance + math.exp(min(epsilon, 700.0)) * (1 - chance)) if chance > 0 else 0.0
    none, one = 0.0, 1.0  # with so many records to come, the best chance if none, or one, had it so far
    for _ in range(count):
        rate = high if one >= none else low
        none, one = rate * one + (1 - rate) * none, (1 - low) * one
    return min(1.0, none * (1 + 1e-9) + 2 * count * delta)


def attaxonomy_separation(people: int, bits: int) -> tuple[float, float]:
    """How often an attacker is right on average, of a mechanism that gives away one data set: Attaxonomy Theorem 4.12.

    The mechanism tells the odd record if all others are 0, else nothing; records are uniform over k bits. A record may
    be reconstructed surely (ReRo 1) while on average little is: that separates the two. Two attackers: the paper's, who
    guesses the odd record, and the best, who guesses 0 whenever something is told. Printed are the loss 1[x = z], which
    must be 1[x != z], and a chance without the factor n: for n = 3, k = 1 that gives 0.583, not 0.625.

    >>> attaxonomy_separation(3, 1)
    (0.625, 0.75)
    """
    count, rare = as_whole("people", people, least=2), 2.0 ** -as_whole("bits", bits)
    silent = rare - rare**count
    all_zero, odd = rare**count, count * rare ** (count - 1) * (1 - rare)
    return silent + all_zero + odd / count, silent + all_zero + odd * (count - 1) / count
