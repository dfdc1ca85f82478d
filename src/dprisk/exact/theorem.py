"""RAD Theorem 4.3 as it stands: a sum over the outputs, in blocks of bounded memory.

    RAD  = sum_theta sum_x max_g sum_{z in S_g, a(z)=x} pi_z (P[z,theta] - sum_y pi_y P[y,theta])
    ReRo = sum_theta sum_x max_g sum_{z in S_g, a(z)=x} pi_z  P[z,theta]

Maxima are not clipped at 0: where no guess is sure to fail, the attacker may have to take a loss (theory, gotcha 4).
"""

import math

import numpy as np

from dprisk.errors import MechanismError, fail
from dprisk.exact.optimum import Optimum
from dprisk.mechanisms import Mechanism
from dprisk.threat.reach import Reach, Windows
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray, IntArray

TIE = 1e-12  # sets whose value differs by less than this part of the mass at stake are taken as equally good


def enumerate_outputs(mechanism: Mechanism, threat: Threat) -> Optimum:
    """Advantage and success, over the mechanism's list of outputs."""
    pi, reach = threat.prior.weights, threat.reach
    mass = reach.sums(pi[:, None])
    advantage, success = np.zeros((2, reach.starts.size))
    for columns in mechanism.channel(block_size(reach, threat.prior.size)):
        joint = pi[:, None] * columns
        evidence = pi @ columns  # p(theta)
        hits = reach.sums(joint)
        success += reach.best(hits).sum(axis=1)
        advantage += reach.best(hits - mass * evidence).sum(axis=1)
    return Optimum(np.maximum(advantage, 0.0), success, None)  # a guess that ignores the output has 0: less is rounding


def enumerate_success(mechanism: Mechanism, threat: Threat) -> float:
    """The success alone, at half the work: the posterior Bayes vulnerability."""
    pi, reach = threat.prior.weights, threat.reach
    blocks = mechanism.channel(block_size(reach, threat.prior.size))
    return math.fsum(float(reach.best(reach.sums(pi[:, None] * columns)).sum()) for columns in blocks)


def enumerate_by_record(mechanism: Mechanism, threat: Threat) -> FloatArray:
    """The advantage on each record of the attacker who picks evenly among equally good sets."""
    pi, reach = threat.prior.weights, threat.reach
    mass = reach.sums(pi[:, None])
    total = np.zeros(threat.prior.size)
    for columns in mechanism.channel(block_size(reach, threat.prior.size)):
        evidence = pi @ columns
        worth = reach.sums(pi[:, None] * columns) - mass * evidence
        chosen = reach.cover(_choice_probabilities(reach, worth, mass, evidence))
        total += (chosen * (columns - evidence)).sum(axis=1)
    return total


def _choice_probabilities(reach: Reach, worth: FloatArray, mass: FloatArray, evidence: FloatArray) -> FloatArray:
    """How likely Algorithm 1 picks each set: evenly among the best of its group."""
    at_stake = reach.best(mass)[reach.group] * evidence
    tied = worth >= reach.best(worth)[reach.group] - TIE * at_stake
    share: FloatArray = tied / np.add.reduceat(tied, reach.starts, axis=0, dtype=float)[reach.group]
    return share


def block_size(reach: Reach, records: int) -> int:
    """How many outputs to treat at once.

    Prefix sums want blocks that stay in the cache, matrix products want them wide; neither may take much memory.
    """
    rows = records + reach.guess.size
    return max(1, (1 << 19) // rows) if isinstance(reach, Windows) else max(64, (1 << 22) // rows)


def beliefs_by_law(log_likelihood: FloatArray, law: IntArray, pi: FloatArray) -> FloatArray:
    """`beliefs` where records share laws: log-likelihoods are outputs x laws, `law` is that of each record.

    An output says as much for one record of a law as for another, so the records share what is believed of their law.
    """
    weight = np.bincount(law, weights=pi, minlength=log_likelihood.shape[1]).astype(float)
    of_law = beliefs(log_likelihood, weight)
    share = np.divide(pi, weight[law], out=np.zeros_like(pi), where=weight[law] > 0)
    result: FloatArray = of_law[law]
    result *= share[:, None]
    return result


def beliefs(log_likelihood: FloatArray, pi: FloatArray) -> FloatArray:
    """P(record | output), records x outputs, from log-likelihoods given as outputs x records."""
    with np.errstate(divide="ignore"):
        joint = log_likelihood + np.log(pi)
    top = joint.max(axis=1, keepdims=True)
    if not np.all(top > -np.inf):
        fail("An output is impossible: no record of positive probability can have made it.", MechanismError)
    weight = np.exp(joint - top)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(weight.T)
