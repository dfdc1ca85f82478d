"""RAD Theorem 4.3 as it stands: a sum over the outputs, in blocks of bounded memory.

    RAD  = sum_theta sum_x max_g sum_{z in S_g, a(z)=x} pi_z (P[z,theta] - sum_y pi_y P[y,theta])
    ReRo = sum_theta sum_x max_g sum_{z in S_g, a(z)=x} pi_z  P[z,theta]

Maxima are not clipped at 0: where no guess is sure to fail, the attacker may have to take a loss (theory, gotcha 4).
"""

import math
from collections.abc import Iterator

import numpy as np

from dprisk.errors import MechanismError, fail
from dprisk.exact.optimum import Optimum
from dprisk.mechanisms import Mechanism
from dprisk.threat.reach import Reach
from dprisk.threat.threat import Threat
from dprisk.threat.windows import Windows
from dprisk.types import BoolArray, FloatArray, IntArray

TIE = 1e-12  # sets whose value differs by less than this part of the mass at stake are taken as equally good


def enumerate_outputs(mechanism: Mechanism, threat: Threat) -> Optimum:
    """Advantage and success, over the mechanism's list of outputs."""
    reach, mass = threat.reach, threat.reach.sums(threat.prior.weights[:, None])
    advantage, success = np.zeros((2, reach.starts.size))
    tells = False
    for columns, evidence, hits in _blocks(mechanism, threat):
        tells = tells or bool(np.any(columns != columns[0]))
        success += reach.best(hits).sum(axis=1)
        advantage += reach.best(hits - mass * evidence).sum(axis=1)
    # A guess that ignores the output has 0, and where all outputs say the same no guess has more: the rest is rounding.
    return Optimum(np.maximum(advantage, 0.0) if tells else np.zeros_like(advantage), success, None)


def _blocks(mechanism: Mechanism, threat: Threat) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """The columns of the channel, p(theta) of each, and pi_c(theta) of every set c that a guess can be right about."""
    pi, reach = threat.prior.weights, threat.reach
    for columns in mechanism.channel(block_size(reach, threat.prior.size)):
        yield columns, pi @ columns, reach.sums(pi[:, None] * columns)


def enumerate_right(mechanism: Mechanism, threat: Threat) -> FloatArray:
    """How often the attacker of largest advantage is right about participants, by group.

    Several attackers may gain as much: for an output, sets of equal worth pi_c(theta) - kappa_c p(theta). Told is the
    one among them that is right most often, which takes the heaviest of these sets.
    """
    reach, mass = threat.reach, threat.reach.sums(threat.prior.weights[:, None])
    right = np.zeros(reach.starts.size)
    for _, evidence, hits in _blocks(mechanism, threat):
        right += most_right(reach, hits, hits - mass * evidence, mass, evidence).sum(axis=1)
    return right


def enumerate_gain_of_most_successful(mechanism: Mechanism, threat: Threat) -> FloatArray:
    """The advantage, by group, of the attacker of largest success; of several, of the one who gains most."""
    reach, mass = threat.reach, threat.reach.sums(threat.prior.weights[:, None])
    gained = np.zeros(reach.starts.size)
    for _, evidence, hits in _blocks(mechanism, threat):
        tied = _tied(reach, hits, mass, evidence)
        gained += reach.best(np.where(tied, hits - mass * evidence, -np.inf)).sum(axis=1)
    return gained


def most_right(
    reach: Reach,
    hits: FloatArray,
    worth: FloatArray,
    mass: FloatArray,
    evidence: FloatArray | float,
    best: FloatArray | None = None,
) -> FloatArray:
    """What the heaviest of the equally good sets of a group hits, groups x outputs; `best` is what these are worth."""
    return reach.best(np.where(_tied(reach, worth, mass, evidence, best), hits, -np.inf))


def enumerate_success(mechanism: Mechanism, threat: Threat) -> float:
    """The success alone, at half the work: the posterior Bayes vulnerability."""
    pi, reach = threat.prior.weights, threat.reach
    blocks = mechanism.channel(block_size(reach, threat.prior.size))
    return math.fsum(float(reach.best(reach.sums(pi[:, None] * columns)).sum()) for columns in blocks)


def enumerate_by_record(mechanism: Mechanism, threat: Threat) -> FloatArray:
    """The advantage on each record of the attacker who picks evenly among equally good sets, the heaviest of them."""
    reach, mass = threat.reach, threat.reach.sums(threat.prior.weights[:, None])
    total = np.zeros(threat.prior.size)
    for columns, evidence, hits in _blocks(mechanism, threat):
        chosen = reach.cover(_choice_probabilities(reach, hits - mass * evidence, mass, evidence))
        total += (chosen * (columns - evidence)).sum(axis=1)
    return total


def _choice_probabilities(reach: Reach, worth: FloatArray, mass: FloatArray, evidence: FloatArray) -> FloatArray:
    """How likely Algorithm 1 picks each set: evenly among the heaviest of the best of its group."""
    tied = _tied(reach, worth, mass, evidence)
    weight = np.where(tied, mass, -np.inf)
    tied &= weight >= (reach.best(weight) - TIE * reach.best(mass))[reach.group]
    share: FloatArray = tied / np.add.reduceat(tied, reach.starts, axis=0, dtype=float)[reach.group]
    return share


def _tied(
    reach: Reach, worth: FloatArray, mass: FloatArray, evidence: FloatArray | float, best: FloatArray | None = None
) -> BoolArray:
    """Which sets are as good as the best of their group, but for rounding; what that is worth may be known."""
    least = (reach.best(worth) if best is None else best) - TIE * reach.best(mass) * evidence
    return np.asarray(worth >= least[reach.group])


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
