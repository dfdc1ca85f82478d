"""The verb `audit_one_run`: which epsilon do the guesses after a single run certify?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dprisk.answers import Answer, Row
from dprisk.auditing.certify.counts import as_alpha, as_delta
from dprisk.errors import as_number, as_whole, require
from dprisk.pictures.drawing import draw
from dprisk.pictures.picture import GREY, Curve, Curves, Panel, colour
from dprisk.population.canaries import OneRun
from dprisk.population.one_run import Guesses, best_moment_epsilon, counted_epsilon
from dprisk.rounding import decimals_down, so_many, sure

POINTS = 40  # of a picture, and numbers of guesses that are tried on a pilot
MARGIN = 0.9  # what the luckiest number of a pilot is worth in another run, about

Verdict = Literal["violated", "consistent with the claim"]


def audit_one_run(
    run: OneRun, claim: float | None = None, *, delta: float = 0.0, alpha: float = 0.05, guesses: int | None = None
) -> OneRunAudit:
    """Which epsilon do the guesses about canaries certify, after a single run?

    Without `guesses` the certificate is read at its best moment, and needs no number of guesses; with it, the first
    so many are counted: a number that must be settled before looking at the output. Neither is always the larger, so
    choose beforehand: counting all pays where every guess is about equally good, the best moment where a few are much
    better than the rest. The certificate is for the change that the canaries made: of a value, or of being in or out.

    >>> run = OneRun.counted(successes=61, guesses=100, canaries=1000)
    >>> print(audit_one_run(run).sentence())
    61 of 100 guesses about 1000 canaries in one run were right. If every canary had a value drawn independently and \
the number of guesses was fixed beforehand, the true epsilon for changing a value is at least 0.092 (95 % \
confidence).
    """
    require(isinstance(run, OneRun), f"Give what the run gave, as in OneRun.from_scores(scores, members), not {run!r}.")
    count = None if guesses is None else as_whole("guesses", guesses)
    available = run.right.size
    require(count is None or count <= available, f"guesses is {count}, but the run has only {available}.")
    if not run.ordered:
        require(count in (None, available), "Only counts are known of this run: all its guesses count, or none.")
        count = available
    promised = None if claim is None else as_number("claim", claim)
    told = f"claim must be a finite number of at least 0, got {promised}"
    require(promised is None or 0 <= promised < math.inf, told)
    return OneRunAudit(run, promised, as_delta(delta), as_alpha(alpha), count)


def choose_guesses(pilot: OneRun, *, delta: float = 0.0, alpha: float = 0.05) -> int | None:
    """How many guesses to fix before the next run, going by another one; None if the best moment does better there.

    The pilot must not be the run that is audited: a smaller training, a simulation, last week's run. The number is for
    as many guesses as the pilot has; for twice as many, double it. A bad choice makes an audit weak, never wrong.
    """
    require(pilot.ordered, "Only counts are known of this run; a pilot needs the guesses in their order.")
    guesses, delta, alpha = pilot.guesses, as_delta(delta), as_alpha(alpha)
    numbers = sorted({round(number) for number in np.geomspace(1, guesses.count, POINTS)})
    certified = {number: counted_epsilon(guesses.first(number), alpha, delta) for number in numbers}
    most = max(certified, key=lambda number: (certified[number], number))
    return most if certified[most] * MARGIN > best_moment_epsilon(guesses, alpha, delta)[0] else None


@dataclass(frozen=True, eq=False, repr=False)
class OneRunAudit(Answer):
    """With probability at least 1 - alpha the mechanism is (epsilon, delta)-DP for no epsilon below the certified one.

    `counted` is the number of guesses that was fixed beforehand; None if the certificate was read at its best moment.
    """

    run: OneRun
    claim: float | None
    delta: float
    alpha: float
    counted: int | None

    @cached_property
    def _found(self) -> tuple[float, int]:
        if self.counted is None:
            return best_moment_epsilon(self.run.guesses, self.alpha, self.delta)
        return counted_epsilon(self._guesses(self.counted), self.alpha, self.delta), self.counted

    def _guesses(self, count: int) -> Guesses:
        return self.run.guesses.first(count)

    @property
    def epsilon_certified(self) -> float:
        """The true epsilon is at least this, with confidence 1 - alpha."""
        return self._found[0]

    @property
    def guesses(self) -> int:
        """The guesses that count: so many as were fixed beforehand, or up to the best moment."""
        return self._found[1]

    @property
    def successes(self) -> int:
        """How many of these were right."""
        return int(self.run.right[: self.guesses].sum())

    @property
    def verdict(self) -> Verdict | None:
        """Violated if the certified epsilon is above the claim; None without a claim."""
        if self.claim is None:
            return None
        return "violated" if self.epsilon_certified > self.claim else "consistent with the claim"

    @property
    def about(self) -> str:
        return f"One run with {self._canaries}"

    @property
    def _canaries(self) -> str:
        return so_many(self.run.canaries.people, "canary", "canaries")

    @property
    def numbers(self) -> dict[str, Any]:
        return {
            "epsilon_certified": self.epsilon_certified,
            "delta": self.delta,
            "alpha": self.alpha,
            "guesses": self.guesses,
            "successes": self.successes,
            "canaries": self.run.canaries.people,
            "fixed_beforehand": self.counted is not None,
            "claim": self.claim,
            "verdict": self.verdict,
        }

    @property
    def rows(self) -> list[Row]:
        how = "a number that was fixed beforehand" if self.counted is not None else "the best moment to stop"
        found: list[Row] = [
            (
                "certified",
                f">= {self._shown}",
                f"true epsilon for {self._change} at delta {self.delta:g}, {sure(self.alpha)}",
            ),
            ("guesses", str(self.guesses), how),
            ("right", str(self.successes), f"of these; {self._by_chance:.4g} would be by chance"),
            ("canaries", str(self.run.canaries.people), "also those without a guess"),
        ]
        claimed = [] if self.claim is None else [("verdict", str(self.verdict), f"on epsilon {self.claim:g}")]
        return [*claimed, *found]

    @property
    def _by_chance(self) -> float:
        return float(self.run.masses[: self.guesses].sum())

    @property
    def _shown(self) -> str:
        """The certificate in decimals, as many as it takes to be seen above a claim that it is above."""
        found, claim = self.epsilon_certified, self.claim
        enough = (
            digits
            for digits in range(3, 13)
            if claim is None or (float(decimals_down(found, digits)) > claim) == (found > claim)
        )
        return decimals_down(found, next(enough, 12))

    def sentence(self) -> str:
        first = "" if self.counted is not None else "the first "
        told = (
            f"{self.successes} of {first}{so_many(self.guesses, 'guess', 'guesses')} about {self._canaries} in one run "
            f"{'was' if self.successes == 1 else 'were'} right. {self._concluded}"
        )
        at = f" at delta {self.delta:g}" if self.delta else ""
        if self.claim is None:
            return told
        if self.verdict == "violated":
            return f"{told} That breaks a promise of epsilon {self.claim:g}{at} for {self._change}."
        return f"{told} That is consistent with epsilon {self.claim:g}, which is no proof of it."

    @property
    def _change(self) -> str:
        """What epsilon is about: what the canaries did."""
        return "adding or removing a record" if self.run.in_or_out else "changing a value"

    @property
    def _concluded(self) -> str:
        """What follows, with what must be true for it."""
        if self.epsilon_certified == 0:
            return "That certifies nothing: the true epsilon may be anything."
        drawn = "was in or out by a coin of its own" if self.run.in_or_out else "had a value drawn independently"
        fixed = " and the number of guesses was fixed beforehand" if self.counted is not None else ""
        at = f" at delta {self.delta:g}" if self.delta else ""
        return (
            f"If every canary {drawn}{fixed}, the true epsilon for {self._change}{at} is at least {self._shown} "
            f"({sure(self.alpha)})."
        )

    def picture(self) -> Curves:
        """What `plot` draws: the certificate over the number of guesses, at the best moment up to there and counted."""
        places = np.unique(np.linspace(1, self.run.right.size, POINTS).astype(int)).tolist()
        parts = [self._guesses(place) for place in places]
        across = tuple(map(float, places))
        fixed = tuple(counted_epsilon(part, self.alpha, self.delta) for part in parts)
        curves = [Curve("had that number been fixed beforehand", across, fixed, GREY, dashed=True)]
        if self.run.ordered:
            read = tuple(best_moment_epsilon(part, self.alpha, self.delta)[0] for part in parts)
            curves.insert(0, Curve("at the best moment so far", across, read, colour(0), bold=True))
        return Curves("The true epsilon is at least", "guesses", (Panel("", tuple(curves)),))

    def plot(self, ax: Any = None) -> Any:
        """Draw the certificates over the number of guesses with matplotlib; returns the axes."""
        return draw(self.picture(), ax)

    def __repr__(self) -> str:
        return f"OneRunAudit(epsilon>={decimals_down(self.epsilon_certified, 3)}, delta={self.delta:g}, {self.run!r})"
