"""The best attacker as a guesser (RAD Algorithm 1)."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import ThreatError, TooLargeError, require
from dprisk.exact import TIE, beliefs, block_size, require_match, right_by_group, solve
from dprisk.exact.breakpoints import partition
from dprisk.exact.certified import Enclosed
from dprisk.exact.optimum import Optimum
from dprisk.exact.theorem import enumerate_gain_of_most_successful
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.combined import number_of, take
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray, IntArray


class OptimalAttack:
    """Guess the record whose ball gains most by the output.

    With `maximise="advantage"` it is Algorithm 1, which no attack exceeds in RAD (Corollary 4.9); with
    `maximise="success"` it guesses the ball of largest posterior mass, which no attack exceeds in ReRo. Of balls that
    are equally good it takes the best by the other measure (the heaviest, or the lightest), and of these any.
    """

    def __init__(self, mechanism: Mechanism, threat: Threat, maximise: str = "advantage") -> None:
        require_match(mechanism, threat)
        goals = ("advantage", "success")
        require(maximise in goals, f"maximise must be 'advantage' or 'success', got {maximise!r}")
        self.mechanism, self.threat, self.maximise = mechanism, threat, maximise
        mass = threat.reach.sums(threat.prior.weights[:, None])
        self._preferred = mass if maximise == "advantage" else -mass
        self._handicap = mass if maximise == "advantage" else np.zeros_like(mass)
        self._tie = TIE * threat.reach.best(mass)[:, 0]

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        """A guess (a record's number) for each output.

        `known` is the number of each target's knowledge group, `threat.knows.groups[record]`; it may be left
        out if the attacker knows nothing.
        """
        reach, count = self.threat.reach, number_of(outputs)
        group = known_groups(self.threat, known, count)
        guesses = np.empty(count, dtype=np.int64)
        step = block_size(reach, self.threat.prior.size)
        for start in range(0, count, step):
            mine = slice(start, start + step)
            log_likelihood = self.mechanism.log_likelihood(take(outputs, mine))
            worth = reach.sums(beliefs(log_likelihood, self.threat.prior.weights)) - self._handicap
            worth[reach.group[:, None] != group[mine]] = -np.inf
            tied = worth >= worth.max(axis=0) - self._tie[group[mine]]
            preferred = np.where(tied, self._preferred, -np.inf)
            tied &= preferred >= preferred.max(axis=0) - self._tie[group[mine]]
            guesses[mine] = reach.guess[np.where(tied, rng.random(worth.shape), -1.0).argmax(axis=0)]
        return guesses

    def value(self, mechanism: Mechanism, threat: Threat) -> Optimum | None:
        """Its advantage and success on the mechanism and threat that it was made for, where they can be computed."""
        if not (mechanism == self.mechanism and threat == self.threat):
            return None
        try:
            found = solve(mechanism, threat)
            if isinstance(found, Enclosed):
                return None
            if self.maximise == "success":
                gained = _gain_of_most_successful(mechanism.sufficient(), threat)
                return replace(found, advantage_by_group=gained, right_by_group=found.success_by_group)
            right = found.right_by_group
            right = right_by_group(mechanism, threat) if right is None else right
        except TooLargeError:
            return None
        return replace(found, success_by_group=right, right_by_group=right)


def _gain_of_most_successful(mechanism: Mechanism, threat: Threat) -> FloatArray:
    if isinstance(mechanism, Additive):
        mechanism = mechanism.binned(partition(mechanism, threat, penalise=False).edges)
    require(mechanism.is_listable, "The outputs cannot be gone through.", TooLargeError)
    return enumerate_gain_of_most_successful(mechanism, threat)


def known_groups(threat: Threat, known: npt.ArrayLike | None, count: int) -> IntArray:
    """The number of each target's knowledge group, checked; all 0 if nothing is known."""
    knows, is_given = threat.knows, known is not None
    told = "This attacker knows something of each target: pass its group as `known`."
    require(is_given or knows.is_none, told, ThreatError)
    group = np.zeros(count, dtype=np.int64) if known is None else np.asarray(known)
    is_one_each = group.shape == (count,) and np.issubdtype(group.dtype, np.integer)
    require(is_one_each, f"Give the number of a group for each of the {count} outputs.", ThreatError)
    is_known = bool(np.all((group >= 0) & (group < knows.n_groups)))
    require(is_known, f"Group numbers must lie in 0..{knows.n_groups - 1}.", ThreatError)
    return group
