"""The verb `at_most`: how many of these people's records can an attacker reconstruct?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dprisk.answers import Answer, Row
from dprisk.auditing.certify.counts import as_alpha
from dprisk.errors import as_whole, require
from dprisk.guarantees import ApproxDP, Guarantee
from dprisk.pictures.drawing import draw
from dprisk.pictures.picture import GREY, Curve, Curves, Panel, colour
from dprisk.population.leakage import forms
from dprisk.population.many_targets import allowance, pairs_of
from dprisk.population.poisson_binomial import PoissonBinomial
from dprisk.population.targets import Targets, posteriors
from dprisk.population.uniform import exact_chance
from dprisk.rounding import ULP, decimals_up, significant_up, sure, written_out
from dprisk.types import FloatArray

FEW_PEOPLE = 400  # for whom the exact program is solved,
FEW_ROWS = 2100  # with as many pairs as make so many rows: a second or so
MANY_PEOPLE = 5000  # from whom on few pairs of a curve are tried
LISTED = 1000  # people of whom each is told
POINTS = 40  # of a picture
UNLIKELY = 1e-4  # chance at which a picture ends


def at_most(guarantee: Guarantee | float, targets: Targets, alpha: float = 0.05) -> AtMost:
    """How many of these people's records can be reconstructed, whatever the mechanism and the attacker?

    The guarantee is for replacing a record, or turned into one that is; a number is the epsilon of pure DP. The number
    that comes out is exceeded with probability at most alpha, over the records, the mechanism and the attacker. For
    pure DP that holds given any output, too.

    >>> from dprisk import ApproxDP
    >>> print(at_most(ApproxDP(1.0, 1e-5), Targets.uniform(100, values=10)).at_most)
    30
    """
    promise = guarantee if isinstance(guarantee, Guarantee) else ApproxDP(guarantee)
    require(isinstance(targets, Targets), f"targets must be Targets, as in Targets.uniform(100, 10), got {targets!r}")
    return AtMost(promise, targets, as_alpha(alpha))


@dataclass(frozen=True, eq=False, repr=False)
class AtMost(Answer):
    """With probability at least 1 - alpha no attacker is right about more than `at_most` of the targets.

    Their records must be independent of each other, each drawn from a prior with the given baseline: what an attacker
    knows of one from another is part of the priors.
    """

    guarantee: Guarantee
    targets: Targets
    alpha: float

    @cached_property
    def pairs(self) -> list[tuple[float, float]]:
        """The pairs (epsilon, delta) of the guarantee for replacing a record that are tried."""
        finite = pairs_of(self.guarantee)
        return finite if self.targets.people <= MANY_PEOPLE else finite[:: -(-len(finite) // 8)] + finite[-1:]

    @cached_property
    def _laws(self) -> list[tuple[PoissonBinomial, float]]:
        """For each pair the sum that dominates, and what delta adds; pairs that promise nothing are left out."""
        allowed = [(epsilon, allowance(epsilon, delta, self.targets)) for epsilon, delta in self.pairs]
        return [
            (PoissonBinomial(posteriors(epsilon, self.targets.baselines)), added)
            for epsilon, added in allowed
            if added < 1
        ]

    @property
    def _is_exact_tried(self) -> bool:
        """Whether the exact program is worth its time: for delta or a curve, where all values are equally likely."""
        small = self.targets.values is not None and self.targets.people <= FEW_PEOPLE
        return small and any(delta > 0 for _, delta in self.pairs)

    def _exact(self, successes: int) -> float:
        step = -(-len(self.pairs) * self.targets.people // FEW_ROWS)
        return exact_chance(self.pairs[::step], int(self.targets.values or 2), successes, self.targets.people)

    def log_chance_of(self, successes: int) -> float:
        """ln of the most likely that at least so many are reconstructed; rounded up, down to far below 1e-300."""
        wanted = as_whole("successes", successes, least=0)
        if wanted > self.targets.people:
            return -math.inf
        logs = [
            float(np.logaddexp(law.log_at_least(wanted), math.log(added) if added else -math.inf))
            for law, added in self._laws
        ]
        if self._is_exact_tried:
            logs.append(math.log(max(self._exact(wanted), 1e-300)))
        return min([0.0, *(log + 2 * ULP for log in logs)])

    def chance_of(self, successes: int) -> float:
        """The most likely that at least so many are reconstructed."""
        return min(1.0, math.exp(self.log_chance_of(successes)))

    @cached_property
    def at_most(self) -> int:
        """No more are reconstructed, with probability at least 1 - alpha."""
        people = self.targets.people
        found = min([people, *(law.most(self.alpha - added) for law, added in self._laws if added < self.alpha)])
        if not self._is_exact_tried:
            return found
        return _least(lambda most: self._exact(most + 1) <= self.alpha, round(self.targets.expected), found)

    @cached_property
    def without_release(self) -> int:
        """The same before anything is released."""
        return PoissonBinomial(self.targets.baselines).most(self.alpha)

    @cached_property
    def expected(self) -> float:
        """How many are reconstructed on average, at most."""
        sums = [
            float(posteriors(epsilon, self.targets.baselines).sum()) + self.targets.excess(epsilon, delta)
            for epsilon, delta in self.pairs
        ]
        return min(float(self.targets.people), *(total * (1 + 1e-12) for total in sums))

    @cached_property
    def chances(self) -> FloatArray:
        """How often a guess about each person is right, at most: the best of beta + what delta adds, and 1 - f.

        For pure DP it is also what anybody can believe after seeing any output.
        """
        own = [
            posteriors(epsilon, self.targets.baselines) + self.targets.excesses(epsilon, delta)
            for epsilon, delta in self.pairs
        ]
        curve = 1 - self.guarantee.replaced.tradeoff(self.targets.baselines) + ULP
        found: FloatArray = np.min([np.ones(self.targets.people), curve, *own], axis=0)
        return found

    @property
    def advantages(self) -> FloatArray:
        """What the release adds to that: chance minus baseline."""
        return self.chances - self.targets.baselines

    def forms(self) -> dict[str, float]:
        """How often the likeliest guess about the person worst off is right, as each framework bounds it."""
        worst = float(self.targets.baselines[int(np.argmax(self.advantages))])
        told = [forms(epsilon, worst, delta) for epsilon, delta in self.pairs]
        return {name: min(form[name] for form in told) for name in told[0]}

    @property
    def about(self) -> str:
        return f"{self.guarantee.brief()}, {self.targets.people} people"

    @property
    def numbers(self) -> dict[str, Any]:
        """How many, of how many, and what the person worst off risks."""
        worst = int(np.argmax(self.advantages))
        return {
            "at_most": self.at_most,
            "people": self.targets.people,
            "without_release": self.without_release,
            "alpha": self.alpha,
            "expected": self.expected,
            "expected_without_release": self.targets.expected,
            "largest_advantage": float(self.advantages[worst]),
            "its_success": float(self.chances[worst]),
            "its_baseline": float(self.targets.baselines[worst]),
        }

    @property
    def compared(self) -> dict[str, Any]:
        """The person worst off in the words of other frameworks."""
        return {f"success_by_{name}": value for name, value in self.forms().items()}

    @property
    def rows(self) -> list[Row]:
        numbers = self.numbers
        worst = f"up from {_nearest(numbers['its_baseline'])}, for the person who has most to lose"
        return [
            ("reconstructed", f"<= {self.at_most}", f"of {self.targets.people} records, {sure(self.alpha)}"),
            ("before", f"<= {self.without_release}", "the same without the release"),
            (
                "on average",
                f"<= {significant_up(self.expected, 4)}",
                f"{_nearest(self.targets.expected)} without the release",
            ),
            ("one of them", f"<= {significant_up(numbers['its_success'], 4)}", worst),
        ]

    def sentence(self) -> str:
        people, most, numbers = self.targets.people, self.at_most, self.numbers
        told = f"no attacker reconstructs more than {most} of these {people} records ({sure(self.alpha)})"
        if most >= people:
            told = f"nothing rules out, at {sure(self.alpha)}, that all of these {people} records are reconstructed"
        return (
            f"If the records are independent and the priors right, {told}; "
            f"without the release it would be at most {self.without_release}. "
            f"A guess about the person who has most to lose is right with at most "
            f"{decimals_up(100 * numbers['its_success'], 1)} %, up from {100 * numbers['its_baseline']:.3g} %."
        )

    def of_records(self) -> list[tuple[str, Any, float]]:
        """Baseline, success and advantage of each, for up to a thousand people."""
        if self.targets.people > LISTED:
            return []
        names = self.targets.labels or range(self.targets.people)
        parts = {"baseline": self.targets.baselines, "success": self.chances, "advantage": self.advantages}
        return [
            (what, name, float(value))
            for what, values in parts.items()
            for name, value in zip(names, values, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "guarantee": self.guarantee.to_dict(),
            "forms": self.forms(),
            "people_told": self.by_record(),
        }

    def picture(self) -> Curves:
        """What `plot` draws: how likely at least so many are reconstructed, with the release and without it."""
        before = PoissonBinomial(self.targets.baselines)
        last = min(
            self.targets.people, max(law.most(UNLIKELY) for law in [before, *(law for law, _ in self._laws)]) + 1
        )
        places = sorted({round(place) for place in np.linspace(0, last, POINTS)})
        after = tuple(self.chance_of(place) for place in places)
        prior = tuple(min(1.0, before.at_least(place)) for place in places)
        across = tuple(map(float, places))
        curves = (
            Curve("with the release, at most", across, after, colour(0), bold=True),
            Curve("without it", across, prior, GREY, dashed=True),
        )
        return Curves("How likely so many records or more are reconstructed", "records", (Panel("", curves),))

    def plot(self, ax: Any = None) -> Any:
        """Draw that with matplotlib; returns the axes."""
        return draw(self.picture(), ax)

    def __repr__(self) -> str:
        return f"AtMost({self.at_most} of {self.targets.people}, {self.guarantee.brief()}, alpha={self.alpha:g})"


def _least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least number from low to high that something holds for, if it does from there on; high is known to be one."""
    low = min(low, high)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def _nearest(value: float) -> str:
    """Four digits of a number that a bound is compared with; rounded up it would make the release look better."""
    return written_out(f"{value:.4g}")
