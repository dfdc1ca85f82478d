"""Structure that replaces enumeration: exact optima in O(m log m) however many outputs there are."""

import numpy as np

from dprisk.exact.optimum import Optimum
from dprisk.mechanisms import GRR, Mechanism, OnAttribute, SetProtocol
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.numbers.noise import SymmetricNoise
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray, IntArray


def set_protocol(mechanism: SetProtocol, threat: Threat) -> Optimum:
    """Exact reconstruction from a reported set, for any prior and any knowledge (theory, section 2a).

    Sort each group by falling probability. Record i with h heavier ones in its group is the attacker's choice
    exactly when i is in the set and those h are not, so

        RAD = (r1 - r0) sum_i pi_i [a_h (1 - pi_i) - b_h (mass of all records but i and the h)],

    and a group with nothing in the set adds 0. For ReRo the choice is the larger of pi_i r1 and pi_top r0, with
    top the heaviest record of the group, if that is not in the set itself. The attacker of the advantage is right about
    a participant with record i if it is chosen, with probability r1 a_h. Beyond that, a set that holds nobody of
    positive probability tells nothing: it then guesses the top of the group.
    """
    pi = threat.prior.weights
    found, by_record = _from_sets(mechanism, threat, pi, int(np.count_nonzero(pi)))
    if threat.success.is_exact or not threat.knows.is_all:
        return found
    # A record that every guess hits, or none, adds nothing to the advantage.
    groups, covered = threat.knows.groups, threat.reach.covered
    sure = ~threat.reach.can_avoid[groups]
    by_record = np.where(~sure & covered, by_record, 0.0)
    order = _heaviest_first(pi, groups)
    right = np.where(sure[order], pi[order], np.asarray(found.right_by_group)) * covered[order]
    return Optimum((pi * by_record)[order], (pi * covered)[order], by_record, right_by_group=right)


def sees_one_value_each(mechanism: Mechanism, threat: Threat) -> bool:
    """Whether a set protocol sees an attribute that tells the records of each group apart, and exactly one is sought.

    In a group that has all values that occur every guess may be right about somebody; elsewhere some guess must be
    sure to fail, so that the attacker can abstain.
    """
    if not (isinstance(mechanism, OnAttribute) and isinstance(mechanism.mechanism, SetProtocol)):
        return False
    values, groups = mechanism.values, threat.knows.groups
    if np.unique(groups * mechanism.mechanism.size + values).size < values.size:
        return False
    reach = threat.reach
    complete = np.bincount(groups) == np.unique(values).size
    return bool(reach.sizes.max() <= 1 and reach.covered.all() and np.all(complete | reach.can_avoid))


def set_protocol_on_attribute(mechanism: OnAttribute, threat: Threat) -> Optimum:
    """As `set_protocol`, where the reported set is of values of an attribute that other groups have too.

    The report of somebody else is that of a value v, drawn by its mass q_v in all groups together. So the bracket is
    a_h (1 - q_i) - b_h (mass of all values but i's and the h), while the choice is by pi, as before. A group with none
    of its values in the set adds 0: the attacker abstains, or, if the group has all values, the set tells nothing.
    """
    protocol: SetProtocol = mechanism.mechanism  # type: ignore[assignment]
    mass = np.bincount(mechanism.values, weights=threat.prior.weights).astype(float)
    return _from_sets(protocol, threat, mass[mechanism.values], int(np.count_nonzero(mass)))[0]


def _from_sets(protocol: SetProtocol, threat: Threat, mass: FloatArray, possible: int) -> tuple[Optimum, FloatArray]:
    """Both optima, group by group, and the advantage on each record.

    `mass[z]` is the probability of all records that report as z does: its own, unless an attribute is reported. So many
    reported values are `possible`, of positive probability.

    Equally likely records of a group are chosen in an order that is drawn at random. Of t such records each is at
    every place equally often, and with j of the others before it their mass is j/(t-1) of all the others' on average.
    """
    pi, groups = threat.prior.weights, threat.knows.groups
    order = _heaviest_first(pi, groups)
    p, q, group = pi[order], mass[order], groups[order]
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    size = np.diff(np.r_[starts, p.size])
    rank = np.arange(p.size) - np.repeat(starts, size)
    h = np.arange(rank.max() + 1)
    hit, miss = protocol.hit(h), protocol.miss(h)
    gain, pair = protocol.gain(h)[rank], protocol.pair_gain(h)[rank]
    none = protocol.none(np.append(size, possible))  # of each group, and of anybody
    before = np.cumsum(q) - q
    heavier = before - np.repeat(before[starts], size)

    top = p[starts]
    chosen = np.maximum(p * hit[rank], np.repeat(top, size) * miss[rank])
    chosen[starts] = top * hit[0]
    success = np.add.reduceat(chosen, starts) + top * none[:-1]

    tied = np.flatnonzero(np.r_[True, (p[1:] != p[:-1]) | (group[1:] != group[:-1])])
    count = np.diff(np.r_[tied, p.size])

    def over_ties(values: FloatArray) -> FloatArray:
        return np.repeat(np.add.reduceat(values, tied) / count, count)

    place = np.arange(p.size) - np.repeat(tied, count)
    others = over_ties(q) * np.repeat(count, count) - q
    ahead = over_ties(place * pair) * others / np.repeat(np.maximum(count - 1, 1), count)
    rest = 1 - q - np.repeat(heavier[tied], count)
    by_record = np.empty(p.size)
    by_record[order] = over_ties(gain) * (1 - q) - over_ties(pair) * rest + ahead
    each = gain * (1 - q) - pair * (1 - q - heavier)
    right = np.add.reduceat(p * hit[rank], starts) + top * none[-1] if gain.any() else top
    advantage = np.add.reduceat(p * each, starts)
    return Optimum(advantage, success, by_record, right_by_group=right), by_record


def randomised_response(mechanism: GRR, threat: Threat) -> Optimum:
    """Randomised response for any success and any knowledge, in time linear in the sets a guess can reach.

    P(theta | z) = q + (p - q) 1{z = theta}, so a set c of mass kappa_c is worth

        (p - q) pi_theta (1{theta in c} - kappa_c)          for RAD,
        q kappa_c + (p - q) pi_theta 1{theta in c}          for ReRo.

    In theta's own group the lightest (heaviest) set around theta is best, elsewhere the lightest (heaviest) of all. If
    theta has probability 0, every set is worth 0 for RAD, and the heaviest is right most often.
    """
    pi, groups, reach = threat.prior.weights, threat.knows.groups, threat.reach
    mass = reach.sums(pi[:, None])
    lightest, heaviest = -reach.best(-mass)[:, 0], reach.best(mass)[:, 0]
    lightest_around, heaviest_around = -reach.largest_over(-mass[:, 0]), reach.largest_over(mass[:, 0])
    size, shift = mechanism.size, float(mechanism.gain(np.array([1]))[0])  # p - q
    heaviest_around = np.where(np.isfinite(heaviest_around), heaviest_around, 0.0)
    covered = np.isfinite(lightest_around)

    worth = np.where(covered, 1 - lightest_around, -lightest[groups])
    inside = np.bincount(groups, weights=pi)
    advantage = shift * (np.bincount(groups, weights=pi * worth) - (1 - inside) * lightest)
    here = np.maximum(mechanism.q * heaviest[groups], mechanism.q * heaviest_around + shift * pi * covered)
    elsewhere = mechanism.q * heaviest * (size - np.bincount(groups))
    success = np.bincount(groups, weights=here) + elsewhere

    tells = pi > 0 if shift > 0 else np.zeros(size, dtype=bool)
    around = mechanism.q * np.where(covered, lightest_around, lightest[groups]) + shift * pi * covered
    told, untold = (np.count_nonzero(those) - np.bincount(groups, weights=those) for those in (tells, ~tells))
    here = np.where(tells, around, mechanism.q * heaviest[groups])
    right = np.bincount(groups, weights=here) + mechanism.q * (told * lightest + untold * heaviest)
    return Optimum(np.maximum(advantage, 0.0), success, None, right_by_group=right)


def nearest_position(mechanism: Additive, threat: Threat) -> Optimum | None:
    """Noise on positions, uniform prior, nothing known, exact reconstruction (RAD equations 70 and 75).

    The best guess is the nearest position. Two neighbours are each mistaken for the other beyond the point half way
    between them, which is what their total variation lacks to 1: RAD is the sum of these variations, divided by m.
    None if outputs are cut off, or for noise that is not known to be symmetric and to fall on either side.
    """
    noise, m = mechanism.noise, mechanism.size
    if not (mechanism.is_open and isinstance(noise, SymmetricNoise)):
        return None
    advantage = float(noise.variation(np.diff(np.sort(mechanism.positions))).sum()) / m
    success = np.array([advantage + 1 / m])
    return Optimum(np.array([advantage]), success, None, right_by_group=success)


def _heaviest_first(pi: FloatArray, groups: IntArray) -> IntArray:
    order = np.argsort(-pi, kind="stable")
    return order[np.argsort(groups[order], kind="stable")] if groups.any() else order
