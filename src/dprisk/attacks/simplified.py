"""The papers' attack on DP-SGD (RAD Algorithm 2), for comparison with the best one."""

import numpy as np
import numpy.typing as npt

from dprisk.attacks.optimal import known_groups
from dprisk.errors import MechanismError, ThreatError, fail, require
from dprisk.exact import require_match
from dprisk.mechanisms.vectors import Aligned
from dprisk.threat.threat import Threat
from dprisk.types import IntArray


class SimplifiedAttack:
    """Guess by inner products: the log-likelihood ratio with a mean of logarithms for the logarithm of a mean.

    With g the output (the gradients of everybody else subtracted, the mean over the steps) and mu_z record z's mean,

        W(z) = <g, mu_z> - sum_y pi_y <g, mu_y>                                (norms=False, RAD equation 27)
        W(z) = <g, mu_z> - <mu_z, mu_z>/2 - sum_y pi_y (<g, mu_y> - <mu_y, mu_y>/2)    (norms=True)

    Of the records in the target's group take the one of largest pi_z W(z), the first of equals. If its W is above 0, or
    if nothing is known of the target, guess it. Otherwise guess a random record outside the group, which says "did not
    take part" and is never right.

    The paper calls the rule optimal. It is so for a uniform prior, nothing known and means of equal length (with the
    norms, of any length). Otherwise `OptimalAttack` gains more: by Jensen's inequality, evidence for z implies W(z) > 0
    but not conversely, so the rule claims participation too often (theory, correction 2). The paper's pseudocode tests
    the W of one step; this tests the sum over the steps, as its equation 27 does.
    """

    def __init__(self, mechanism: Aligned, threat: Threat, norms: bool = False) -> None:
        if not isinstance(mechanism, Aligned):
            told = f"The simplified rule is for Gaussian noise on vectors, a VectorGaussian, not {mechanism!r}."
            fail(told, MechanismError)
        require_match(mechanism, threat)
        require(threat.success.is_exact, "The simplified rule is for exact reconstruction only.", ThreatError)
        self.mechanism, self.threat, self.norms = mechanism, threat, norms
        groups = threat.knows.groups
        self._order, self._sizes = np.argsort(groups, kind="stable"), np.bincount(groups)
        self._members = np.split(self._order, np.cumsum(self._sizes)[:-1])

    def guess(self, outputs: npt.ArrayLike, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        """A guess (a record's number) for each output; `known` is as for `OptimalAttack`."""
        aligned, pi = self.mechanism.alignments(outputs, self.norms), self.threat.prior.weights
        mean = (aligned @ pi)[:, None]
        group = known_groups(self.threat, known, len(aligned))
        guesses = self._elsewhere(group, rng)
        for known_group in np.flatnonzero(np.bincount(group)):
            mine, members = np.flatnonzero(group == known_group), self._members[known_group]
            everybody = mine.size == group.size
            evidence = aligned[:, members] - mean if everybody else aligned[np.ix_(mine, members)] - mean[mine]
            best = (pi[members] * evidence).argmax(axis=1)
            claimed = self.threat.knows.is_none | (evidence[np.arange(mine.size), best] > 0)
            guesses[mine[claimed]] = members[best[claimed]]
        return guesses

    def _elsewhere(self, group: IntArray, rng: np.random.Generator) -> IntArray:
        """A random record outside each group: with the records in the order of groups, those after it and around."""
        after = np.cumsum(self._sizes)[group]
        others = self._order.size - self._sizes[group]
        return self._order[(after + (rng.random(group.size) * others).astype(np.int64)) % self._order.size]
