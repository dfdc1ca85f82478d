"""The best attacker's advantage and success, exactly (RAD Theorem 4.3).

    RAD  = sum_theta sum_x max_g sum_{z in S_g, a(z)=x} pi_z (P[z,theta] - sum_y pi_y P[y,theta])
    ReRo = sum_theta sum_x max_g sum_{z in S_g, a(z)=x} pi_z  P[z,theta]

Structure first, then enumeration of the outputs in blocks of bounded memory. Maxima are not clipped at 0: where no
guess is sure to fail, the attacker may have to take a loss (theory, gotcha 4).
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from dprisk.errors import MechanismError, TooLargeError, fail, require
from dprisk.exact import closed_forms, independent_scores
from dprisk.exact.breakpoints import partition
from dprisk.exact.histograms import histogram_encoding
from dprisk.exact.optimum import Optimum
from dprisk.mechanisms import GRR, SHE, Mechanism, SetProtocol, VectorGaussian
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.numbers.noise import SymmetricNoise
from dprisk.mechanisms.vectors import VectorNoise
from dprisk.threat.prior import Prior
from dprisk.threat.reach import Reach, Windows
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray

TIE = 1e-12  # sets whose value differs by less than this part of the mass at stake are taken as equally good


def require_match(mechanism: Mechanism, threat: Threat) -> None:
    """Refuse a mechanism and a threat over different records, or over the same in another order."""
    require(
        mechanism.size == threat.prior.size,
        f"The mechanism takes {mechanism.size} records, the prior has {threat.prior.size}; they must be the same.",
        MechanismError,
    )
    order, labels = mechanism.labels, threat.prior.labels
    if order is not None and labels is not None and order != labels:
        own, other = next((own, other) for own, other in zip(order, labels, strict=True) if own != other)
        fail(
            f"The mechanism's records are not the prior's in the same order: {own!r} here is {other!r} there; "
            "make the mechanism with nodes=prior.labels (a graph) or universe=prior.labels (a release).",
            MechanismError,
        )


def best_attacker(mechanism: Mechanism, threat: Threat) -> Optimum:
    """RAD and ReRo of the best attackers, exactly; refuses what would take an enumeration beyond reach."""
    require_match(mechanism, threat)
    simple = mechanism.sufficient()
    structured = _structure(simple, threat)
    if structured is not None:
        return structured
    if isinstance(simple, Additive):
        return _at_break_points(simple, threat)
    return enumerate_outputs(_listed(mechanism, simple), threat)


def best_success(mechanism: Mechanism, threat: Threat) -> float:
    """ReRo alone, at half the work where the outputs must be listed: the posterior Bayes vulnerability."""
    require_match(mechanism, threat)
    simple = mechanism.sufficient()
    structured = _structure(simple, threat)
    if structured is not None:
        return structured.success
    if isinstance(simple, Additive):
        simple = simple.binned(partition(simple, threat, penalise=False).edges)
    pi, reach = threat.prior.weights, threat.reach
    blocks = _listed(mechanism, simple).channel(block_size(reach, threat.prior.size))
    return math.fsum(float(reach.best(reach.sums(pi[:, None] * columns)).sum()) for columns in blocks)


def advantage_by_record(mechanism: Mechanism, threat: Threat) -> FloatArray:
    """The advantage of the best attacker on each record, ties broken at random: who is most at risk."""
    require_match(mechanism, threat)
    simple = mechanism.sufficient()
    structured = _structure(simple, threat)
    if structured is not None and structured.by_record is not None:
        return structured.by_record
    if isinstance(simple, Additive):
        simple = simple.binned(partition(simple, threat, penalise=True).edges)
    return _enumerate_by_record(_listed(mechanism, simple), threat)


def enumerate_outputs(mechanism: Mechanism, threat: Threat) -> Optimum:
    """Theorem 4.3 as it stands, over the mechanism's list of outputs."""
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


def _at_break_points(mechanism: Additive, threat: Threat) -> Optimum:
    """Outputs on a line: all that matters is between which break points they lie."""
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(partial(partition, mechanism, threat), (True, False)))
    binned = mechanism.binned(np.concatenate([part.edges for part in parts]))
    error, is_proven = sum(part.defect for part in parts), isinstance(mechanism.noise, SymmetricNoise)
    return replace(enumerate_outputs(binned, threat), error=error, is_proven=is_proven)


def block_size(reach: Reach, records: int) -> int:
    """How many outputs to treat at once.

    Prefix sums want blocks that stay in the cache, matrix products want them wide; neither may take much memory.
    """
    rows = records + reach.guess.size
    return max(1, (1 << 19) // rows) if isinstance(reach, Windows) else max(64, (1 << 22) // rows)


def _structure(mechanism: Mechanism, threat: Threat) -> Optimum | None:
    """The closed form that applies, if one does."""
    if isinstance(mechanism, SetProtocol):
        one_record = threat.success.is_exact or threat.knows.is_all or threat.reach.is_single
        if one_record:
            return closed_forms.set_protocol(mechanism, threat)
    if isinstance(mechanism, GRR):
        return closed_forms.randomised_response(mechanism, threat)
    simplest = threat.knows.is_none and threat.prior.is_uniform and (threat.success.is_exact or threat.reach.is_single)
    if simplest and isinstance(mechanism, Additive) and mechanism.is_open:
        noise = mechanism.noise
        return closed_forms.nearest_position(mechanism, noise) if isinstance(noise, SymmetricNoise) else None
    if simplest and isinstance(mechanism, SHE):
        return histogram_encoding(mechanism, threat)
    if simplest and isinstance(mechanism, VectorNoise):
        distinct = np.unique(mechanism.means, axis=0)
        if len(distinct) < mechanism.size:
            return _one_of_each(mechanism.on_means(distinct), mechanism.size)
    if isinstance(mechanism, VectorGaussian):
        return independent_scores.best_attacker(mechanism, threat)
    return None


def _one_of_each(mechanism: Mechanism, records: int) -> Optimum:
    """A uniform prior, nothing known, exact reconstruction, and several records for some outputs' laws.

    `mechanism` has one record for each of n laws. ReRo is the integral of the largest density over the number of
    records, RAD is 1 / records less: n / records times those of the mechanism under a uniform prior.
    """
    found = best_attacker(mechanism, Threat(Prior.uniform(mechanism.size)))
    share = mechanism.size / records
    advantage, success = share * found.advantage_by_group, share * found.success_by_group
    return Optimum(advantage, success, None, error=share * found.error)


def _enumerate_by_record(mechanism: Mechanism, threat: Threat) -> FloatArray:
    pi, reach = threat.prior.weights, threat.reach
    mass = reach.sums(pi[:, None])
    total = np.zeros(threat.prior.size)
    for columns in mechanism.channel(block_size(reach, threat.prior.size)):
        evidence = pi @ columns
        worth = reach.sums(pi[:, None] * columns) - mass * evidence
        chosen = reach.cover(choice_probabilities(reach, worth, mass, evidence))
        total += (chosen * (columns - evidence)).sum(axis=1)
    return total


def choice_probabilities(reach: Reach, worth: FloatArray, mass: FloatArray, evidence: FloatArray) -> FloatArray:
    """How likely Algorithm 1 picks each set: evenly among the best of its group."""
    at_stake = reach.best(mass)[reach.group] * evidence
    tied = worth >= reach.best(worth)[reach.group] - TIE * at_stake
    share: FloatArray = tied / np.add.reduceat(tied, reach.starts, axis=0, dtype=float)[reach.group]
    return share


def _listed(given: Mechanism, simple: Mechanism) -> Mechanism:
    """The simpler form of a mechanism, if its outputs are few enough to go through them all."""
    require(
        simple.is_listable,
        f"{given!r} has {_many(simple.n_outputs)} outputs for {simple.size} records and no closed form for this "
        "threat, so the exact value is out of reach; `assess` estimates it.",
        TooLargeError,
    )
    return simple


def _many(outputs: float) -> str:
    return f"{outputs:.3g}" if math.isfinite(outputs) else "infinitely many"


def posterior(log_likelihood: FloatArray, pi: FloatArray) -> FloatArray:
    """P(record | output), records x outputs, from log-likelihoods given as outputs x records."""
    with np.errstate(divide="ignore"):
        joint = log_likelihood + np.log(pi)
    top = joint.max(axis=1, keepdims=True)
    require(
        bool(np.all(top > -np.inf)),
        "An output is impossible: no record of positive probability can have made it.",
        MechanismError,
    )
    weight = np.exp(joint - top)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(weight.T)
