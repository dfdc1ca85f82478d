"""The papers' attack on DP-SGD (RAD Algorithm 2), for comparison with the best one."""

import numpy as np
import numpy.typing as npt

from dprisk.attacks.optimal import known_groups
from dprisk.errors import MechanismError, ThreatError, require
from dprisk.estimate import Estimate, checked, draw_records, mean_interval
from dprisk.exact import posterior, require_match
from dprisk.mechanisms import VectorGaussian
from dprisk.threat import Threat
from dprisk.types import BoolArray, FloatArray, IntArray

BLOCK_CELLS, SAMPLES = 1 << 21, 1 << 18


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

    def __init__(self, mechanism: VectorGaussian, threat: Threat, norms: bool = False) -> None:
        require(
            isinstance(mechanism, VectorGaussian),
            f"The simplified rule is for Gaussian noise on vectors, a VectorGaussian, not {mechanism!r}.",
            MechanismError,
        )
        require_match(mechanism, threat)
        require(threat.success.is_exact, "The simplified rule is for exact reconstruction only.", ThreatError)
        self.mechanism, self.threat, self.norms = mechanism, threat, norms
        pi, means, groups = threat.prior.weights, mechanism.means, threat.knows.groups
        half = (means**2).sum(axis=1) / 2 if norms else np.zeros(pi.size)
        self._directions, self._offsets = means - pi @ means, half - pi @ half
        self._members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])

    def guess(self, outputs: npt.ArrayLike, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        """A guess (a record's number) for each output; `known` is as for `OptimalAttack`."""
        claimed = self._claims(self.mechanism.rows(outputs))
        inside = self.threat.knows.groups == known_groups(self.threat, known, len(claimed))[:, None]
        elsewhere = np.where(inside, -1.0, rng.random(inside.shape)).argmax(axis=1)
        claimed &= inside
        guesses: IntArray = np.where(claimed.any(axis=1), claimed.argmax(axis=1), elsewhere)
        return guesses

    def measure(self, rng: np.random.Generator, samples: int | None = None, confidence: float = 0.95) -> Estimate:
        """The rule's own RAD and ReRo, with valid intervals.

        With theta drawn from the mechanism on Z ~ pi and A(theta) the records guessed if they are the target,
        sum_{z in A} [pi(z | theta) - pi_z] has mean RAD: it is the unbiased number of one run (theory, section 4.2),
        averaged over who the target may have been. It lies in [-1, 1].
        """
        samples, confidence = checked(samples, confidence)
        samples = samples or SAMPLES
        pi, groups = self.threat.prior.weights, self.threat.knows.groups
        advantages, successes = [], []
        by_record = np.zeros((2, pi.size))
        block = max(1, BLOCK_CELLS // max(pi.size, self.mechanism.dimension))
        for child, start in zip(rng.spawn(-(-samples // block)), range(0, samples, block), strict=True):
            outputs = self.mechanism.sample(draw_records(pi, min(block, samples - start), 1, child), child)
            claimed = self._claims(outputs).T
            hits = posterior(self.mechanism.log_likelihood(outputs), pi) * claimed
            gains = hits - pi[:, None] * claimed
            by_record += gains.sum(axis=1), hits.sum(axis=1)
            advantages.append(gains.sum(axis=0))
            successes.append(hits.sum(axis=0))
        advantage: FloatArray = np.zeros(self.threat.knows.n_groups)
        success = np.zeros_like(advantage)
        np.add.at(advantage, groups, by_record[0] / samples)
        np.add.at(success, groups, by_record[1] / samples)
        return Estimate(
            advantage,
            success,
            None,
            samples,
            confidence,
            mean_interval(np.concatenate(advantages), -1.0, 1.0, confidence),
            mean_interval(np.concatenate(successes), 0.0, 1.0, confidence),
        )

    def _claims(self, outputs: FloatArray) -> BoolArray:
        """For each output (rows), which records (columns) are guessed if the target is in their group."""
        evidence = outputs @ self._directions.T - self._offsets
        worth = self.threat.prior.weights * evidence
        claimed = np.zeros(evidence.shape, dtype=bool)
        row = np.arange(len(evidence))
        for members in self._members:
            best = members[worth[:, members].argmax(axis=1)]
            claimed[row, best] = self.threat.knows.is_none | (evidence[row, best] > 0)
        return claimed
