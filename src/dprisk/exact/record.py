"""The risk of one named record: what an attacker gains who only asks "is it this one or not?" (theory, section 3.8).

The attacker of RAD is the best on average, and may never name a rare record. One who looks for z answers yes or no, and
gains

    tau_z = max_A P_z(A) - Q(A) = TV(P_z, Q) = (1 - w_z) TV(P_z, Q without z),

right on a participant with z against somebody of whom the same is known. Q is the law of the output for that somebody:
a record drawn from the prior, or, if the attacker knows the target's group, from the prior within the group; w are
these probabilities. An attacker who knows the whole record has nothing to ask but whether it took part, which is the
comparison with the prior. The prior's mean of tau_z is then RAD with everything known.

The answer is yes where the output speaks for z, P_z > Q; for protocols that report a set, where the set names z, which
gains as much.
"""

from dataclasses import dataclass

import numpy as np

from dprisk.errors import ThreatError, TooLargeError, fail, require
from dprisk.exact import breakpoints
from dprisk.exact.posterior import largest_posterior
from dprisk.exact.theorem import TIE
from dprisk.mechanisms import Mechanism, SetProtocol
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.threat.prior import Prior
from dprisk.threat.success import Distances
from dprisk.threat.threat import Threat
from dprisk.types import BoolArray, FloatArray, IntArray

CELLS = 1 << 21  # of a channel that are looked at at once
ALIKE = 1e-9  # by less than this no record is more at risk than another
SMALLEST = 1e-290  # a probability that still has all its digits
HARDLY = 1e-6  # a probability at which a record hardly counts in an average


@dataclass(frozen=True)
class Exposure:
    """What the attacker gains who looks for one record.

    It says yes with probability `yes` if the target has it, and `yes - advantage` if the target is anybody of whom the
    same is known; None if the advantage is a bound only. `largest_posterior` is the most that an output makes the
    attacker believe it, None if not known. The true advantage is at most `error` larger, apart from rounding; unless
    `is_proven`, that is an estimate.
    """

    advantage: float
    yes: float | None
    largest_posterior: float | None
    error: float = 0.0
    is_proven: bool = True


def compared_with(threat: Threat, record: int) -> FloatArray:
    """The probability of each record for somebody of whom the same is known as of the target."""
    pi, knows = threat.prior.weights, threat.knows
    if knows.is_none or knows.is_all:
        return pi
    weights = np.where(knows.groups == knows.groups[record], pi, 0.0)
    total = float(weights.sum())
    name = threat.prior.name(record)
    told = f"Nobody is believed to have what is known of {name!r}: the prior gives its group no probability."
    require(total > 0, told, ThreatError)
    return weights / total


def rarest_first(threat: Threat) -> IntArray:
    """The records by how likely each is to who knows what the attacker knows, those of probability 0 first.

    Without those of a group that nobody is believed to be in.
    """
    share = shares(threat)
    return np.asarray(np.argsort(share, kind="stable")[: np.count_nonzero(~np.isnan(share))])  # nan comes last


def shares(threat: Threat) -> FloatArray:
    """How likely each record is to who knows what the attacker knows; nan in a group that nobody is in."""
    return np.where(_somebody_around(threat), threat.prior.weights / _mass_around(threat), np.nan)


def exposure(mechanism: Mechanism, threat: Threat, record: int) -> Exposure:
    """The risk of one record, exactly; refuses what would take an enumeration beyond reach."""
    weights, simple = compared_with(threat, record), mechanism.sufficient()
    if isinstance(simple, SetProtocol):
        return _in_sets(simple, weights, record)
    if isinstance(simple, Additive):
        return _on_a_line(simple, weights, record)
    if simple.is_listable:
        return _listed(simple, weights, record)
    return _refuse(mechanism)


def exposures(mechanism: Mechanism, threat: Threat) -> FloatArray:
    """tau_z of every record, nan in a group that nobody is believed to be in: who is most at risk."""
    simple, prior = mechanism.sufficient(), threat.prior
    if isinstance(simple, SetProtocol):
        found = _variation(simple) * (1 - prior.weights / _mass_around(threat))
    elif isinstance(simple, Additive):
        found = _all_on_a_line(simple, threat)
    elif simple.is_listable:
        found = _all_listed(simple, threat)
    else:
        _refuse(mechanism)
    return np.where(_somebody_around(threat), found, np.nan)


def _refuse(mechanism: Mechanism) -> Exposure:
    told = f"The outputs of {mechanism!r} cannot be gone through for every record; `risk.of(record)` estimates one."
    return fail(told, TooLargeError)


def _variation(protocol: SetProtocol) -> float:
    """The total variation of any two records, which "z is in the set" attains against all: tau_z is 1 - w_z of it."""
    return float(protocol.gain(np.array([1]))[0]) if protocol.size > 1 else 0.0


def _in_sets(protocol: SetProtocol, weights: FloatArray, record: int) -> Exposure:
    """Yes if z is in the set; the lightest set with z speaks most for it."""
    mine, yes = float(weights[record]), float(protocol.hit(np.array([0]))[0])
    others = np.sort(np.delete(weights, record))[: protocol.fewest - 1].sum()
    least = float(np.exp(-protocol.epsilon))  # r0 / r1
    lightest = least + (1 - least) * min(1.0, mine + float(others))
    belief = mine / lightest if mine > 0 else 0.0
    return Exposure(_variation(protocol) * (1 - mine), yes, min(1.0, belief))


def _listed(mechanism: Mechanism, weights: FloatArray, record: int) -> Exposure:
    advantage = yes = most = 0.0
    is_faint = mechanism.merges_outputs  # whether some outputs are not in the list, or too unlikely for floats
    for columns in mechanism.channel(_block(mechanism)):
        mine, other = columns[record], weights @ columns
        gain = mine - other
        says_yes = gain > TIE * other
        advantage += float(np.maximum(gain, 0.0).sum())
        yes += float(mine[says_yes].sum())
        ratio = np.divide(mine, other, out=np.zeros(other.size), where=other > SMALLEST)
        most = max(most, float(weights[record] * ratio.max(initial=0.0)))
        is_faint = is_faint or bool(np.any(other <= SMALLEST))
    belief = largest_posterior(mechanism, weights, record) if is_faint and most < 1 else min(1.0, most)
    return Exposure(advantage, min(1.0, yes), belief)


def _all_listed(mechanism: Mechanism, threat: Threat) -> FloatArray:
    groups = _groups(threat)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(groups[order]) > 0])
    share = threat.prior.weights / np.maximum(_mass_around(threat), np.finfo(float).tiny)
    total = np.zeros(mechanism.size)
    for columns in mechanism.channel(_block(mechanism)):
        other = np.add.reduceat((share[:, None] * columns)[order], starts, axis=0)
        total += np.maximum(columns - other[groups], 0.0).sum(axis=1)
    return total


def _on_a_line(mechanism: Additive, weights: FloatArray, record: int) -> Exposure:
    """Two hypotheses, z and the others, each as likely: where the better one changes is all that matters of outputs."""
    mine, belief = float(weights[record]), largest_posterior(mechanism, weights, record)
    if mine >= 1:
        return Exposure(0.0, 0.0, 1.0)
    some = np.flatnonzero((weights > 0) | (np.arange(weights.size) == record))
    at = int(np.searchsorted(some, record))
    even = weights[some] / (2 * (1 - mine))
    even[at] = 0.5
    is_z = np.ones((2, some.size))
    is_z[0, at] = 0.0  # the first guess is right about z only, the second about nobody
    threat = Threat(Prior(even / even.sum()), success=Distances(0.5, is_z))
    part = breakpoints.partition(few := mechanism.viewed(some), threat, penalise=True)
    found = _listed(few.binned(part.edges), even, at)  # against a mixture that is half of z: TV / 2
    error = 4 * (1 - mine) * part.defect  # the threat's advantage is half of that
    return Exposure(2 * (1 - mine) * found.advantage, found.yes, belief, error, breakpoints.is_proven(mechanism))


def _all_on_a_line(mechanism: Additive, threat: Threat) -> FloatArray:
    """Group by group: who is at risk in a group is the breakdown of the attacker who knows everything but that.

    Records that hardly count in it are looked at one by one.
    """
    groups, found = _groups(threat), np.zeros(mechanism.size)
    for group in np.unique(groups):
        members = np.flatnonzero((groups == group) & (threat.prior.weights > 0))
        if members.size > 1:
            prior = Prior.from_counts(threat.prior.weights[members])
            found[members] = breakpoints.by_record(mechanism.viewed(members), Threat.membership(prior))
    for record in np.flatnonzero(_somebody_around(threat) & (threat.prior.weights < HARDLY)):
        found[record] = _on_a_line(mechanism, compared_with(threat, int(record)), int(record)).advantage
    return found


def _groups(threat: Threat) -> IntArray:
    """The groups of records that are compared with each other."""
    return np.zeros_like(threat.knows.groups) if threat.knows.is_all else threat.knows.groups


def _somebody_around(threat: Threat) -> BoolArray:
    """For each record, whether anybody is believed to have what is known of it."""
    groups = _groups(threat)
    return np.asarray((np.bincount(groups, weights=threat.prior.weights) > 0)[groups])


def _mass_around(threat: Threat) -> FloatArray:
    """For each record, the probability of those that it is compared with."""
    groups = _groups(threat)
    mass = np.bincount(groups, weights=threat.prior.weights)
    return np.asarray(np.where(mass > 0, mass, 1.0)[groups], dtype=np.float64)


def _block(mechanism: Mechanism) -> int:
    return max(1, CELLS // mechanism.size)
