"""The best attacker as a guesser (RAD Algorithm 1)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import ThreatError, require
from dprisk.exact import TIE, beliefs, block_size, require_match
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.combined import number_of, take
from dprisk.threat.threat import Threat
from dprisk.types import IntArray


class OptimalAttack:
    """Guess the record whose ball gains most by the output; of equally good balls one of the heaviest, at random.

    With `maximise="advantage"` it is Algorithm 1, which no attack exceeds in RAD (Corollary 4.9), nor, of those that
    gain as much, in success; with `maximise="success"` it guesses the ball of largest posterior mass, which no attack
    exceeds in ReRo.
    """

    def __init__(self, mechanism: Mechanism, threat: Threat, maximise: str = "advantage") -> None:
        require_match(mechanism, threat)
        goals = ("advantage", "success")
        require(maximise in goals, f"maximise must be 'advantage' or 'success', got {maximise!r}")
        self.mechanism, self.threat, self.maximise = mechanism, threat, maximise
        mass = threat.reach.sums(threat.prior.weights[:, None])
        self._mass = mass
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
            weight = np.where(tied, self._mass, -np.inf)
            tied &= weight >= weight.max(axis=0) - self._tie[group[mine]]
            guesses[mine] = reach.guess[np.where(tied, rng.random(worth.shape), -1.0).argmax(axis=0)]
        return guesses


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
