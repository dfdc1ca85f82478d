"""The best attacker as a guesser (RAD Algorithm 1)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import ParameterError, ThreatError, require
from dprisk.estimate import posterior
from dprisk.exact import TIE, block_size, require_same_size
from dprisk.mechanisms import Mechanism
from dprisk.threat import Threat
from dprisk.types import IntArray


class OptimalAttack:
    """Guess the record whose ball gains most by the output, ties broken at random.

    With `maximise="advantage"` it is Algorithm 1, which no attack exceeds in RAD (Corollary 4.9); with
    `maximise="success"` it guesses the ball of largest posterior mass, which no attack exceeds in ReRo.
    """

    def __init__(self, mechanism: Mechanism, threat: Threat, maximise: str = "advantage") -> None:
        require_same_size(mechanism, threat)
        require(
            maximise in ("advantage", "success"),
            f"maximise must be 'advantage' or 'success', got {maximise!r}",
            ParameterError,
        )
        self.mechanism, self.threat, self.maximise = mechanism, threat, maximise
        mass = threat.reach.sums(threat.prior.weights[:, None])
        self._handicap = mass if maximise == "advantage" else np.zeros_like(mass)

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        """A guess (a record's number) for each output.

        `known` is the number of each target's knowledge group, `threat.knows.groups[record]`; it may be left
        out if the attacker knows nothing.
        """
        log_likelihood = self.mechanism.log_likelihood(outputs)
        reach = self.threat.reach
        require(
            known is not None or self.threat.knows.is_none,
            "This attacker knows something of each target: pass its group as `known`.",
            ThreatError,
        )
        group = np.zeros(len(log_likelihood), dtype=np.int64) if known is None else np.asarray(known, dtype=np.int64)
        require(
            group.shape == (len(log_likelihood),),
            f"{len(log_likelihood)} outputs but `known` has shape {group.shape}; give one group an output.",
            ThreatError,
        )
        guesses = np.empty(group.size, dtype=np.int64)
        step = block_size(reach, self.threat.prior.size)
        for start in range(0, group.size, step):
            mine = slice(start, start + step)
            worth = reach.sums(posterior(log_likelihood[mine], self.threat.prior.weights)) - self._handicap
            worth[reach.group[:, None] != group[mine]] = -np.inf
            tied = worth >= worth.max(axis=0) - TIE
            guesses[mine] = reach.guess[np.where(tied, rng.random(worth.shape), -1.0).argmax(axis=0)]
        return guesses
