"""The published attacks on local protocols, each a guesser with its rule as published.

They are here to be compared with `OptimalAttack`: `assess(mechanism, threat, attack="UNI")` tells the advantage and
success of each.
Numbers are those of the thesis "Measurement of Attack Resilience"; most rules are older (Arcolezi et al. 2023,
LDP-Auditor). None looks at what is known of the target, except `Correlation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.attacks.optimal import OptimalAttack
from dprisk.errors import MechanismError, ParameterError, as_number, as_size, fail, require
from dprisk.exact import solve
from dprisk.exact.optimum import Optimum, sums_by_group
from dprisk.mechanisms import GRR, SHE, THE, ConcreteHashing, Mechanism, OnAttribute, SetProtocol
from dprisk.mechanisms.combined import number_of
from dprisk.mechanisms.local.bits import where_on
from dprisk.tables import as_floats
from dprisk.threat.prior import Prior
from dprisk.threat.success import Attributes
from dprisk.threat.threat import Threat
from dprisk.types import BoolArray, FloatArray, IntArray

TRIES = 8  # columns of a row that are tried before it is read


@dataclass(frozen=True)
class Report:
    """Guess the reported record: z' = theta (UNI and TRUE, Attack 1; for GRR also chapter 9).

    The two names stand for the same rule, under a uniform prior and under the true one. On randomised response it is
    best in success for a uniform prior, which is what the thesis cites, and best in advantage for every prior and
    knowledge: only the reported record gains likelihood. On the exponential mechanism it need not be best.
    """

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        reported = np.atleast_1d(np.asarray(outputs))
        if reported.ndim != 1 or not np.issubdtype(reported.dtype, np.integer):
            fail("This attack guesses the output itself, so outputs must be numbers of records.", MechanismError)
        return reported.astype(np.int64, copy=False)

    def chances(self, outputs: Any, guesses: int) -> FloatArray:
        """The reported record for sure."""
        return np.equal.outer(np.arange(guesses), self.guess(outputs, np.random.default_rng(0))).astype(np.float64)

    def value(self, mechanism: Mechanism, threat: Threat) -> Optimum | None:
        """On randomised response (thesis, section 6): (p - q)(1 - kappa_pi), right with probability p."""
        return _by_symmetry(mechanism, threat) if isinstance(mechanism, GRR) else None


class MostCommon:
    """Guess the likeliest record whatever is reported: z' = argmax_z pi_z, the first of equals (PRIOR, Attack 2).

    Its advantage is 0 and its success the baseline: the best success there is where no output outweighs the prior.
    With the estimated `frequencies` of earlier reports as prior it is Attack 3 with the target's report left out.
    """

    def __init__(self, prior: Prior | npt.ArrayLike) -> None:
        given = prior.weights if isinstance(prior, Prior) else as_floats(prior, "Weights", ParameterError)
        are_weights = given.ndim == 1 and given.size > 0 and bool(np.all(np.isfinite(given)))
        require(are_weights, "Give one finite weight for each record.")
        self.record = int(given.argmax())

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        return np.full(number_of(outputs), self.record)

    def value(self, mechanism: Mechanism, threat: Threat) -> Optimum:
        """It does not look at the report: right wherever its guess is near enough, and no more on participants."""
        anybody = threat.success.reach(threat.prior, np.zeros(threat.prior.size, dtype=np.int64))
        hit = anybody.union(anybody.find(np.array([self.record]), 0)[None, :])[:, 0]
        right = sums_by_group(threat.knows.groups, threat.prior.weights * hit)
        return Optimum(np.zeros(right.size), right, np.zeros(hit.size), right_by_group=right, by="prior alone")


class Estimation:
    """Estimate how common each record is from everybody's reports, guess the commonest (EST, Attack 3).

    With c(z) of n reports (the target's and those of the `others`) naming z, p the chance that a report names its
    owner's record and q the chance that it names any given other,

        z' = argmax_z (c(z) - n q) / (n (p - q)),   ties broken at random.

    `others` are the records of everybody else. They are fixed, and report anew in each run, so that an output of the
    mechanism is the target's report only. The thesis has this rule for randomised response; here for every protocol
    that reports a set. It learns of the population, not of the target: with many others its advantage is near 0.
    """

    def __init__(self, mechanism: SetProtocol, others: npt.ArrayLike) -> None:
        _require_sets(mechanism)
        self.mechanism, self.others = mechanism, mechanism._records(others)
        p, q = mechanism.naming
        self._sign = np.sign(p - q)

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        mine = self.mechanism.members(outputs)
        counts = np.array([row + self._count(rng) for row in mine], dtype=np.int64).reshape(mine.shape)
        estimates = self._sign * counts  # up to numbers that are the same for all records
        return one_of(estimates == estimates.max(axis=1, keepdims=True), rng)

    def _count(self, rng: np.random.Generator) -> IntArray:
        """How many of the others' reports name each record."""
        reports = self.mechanism.sample(self.others, rng)
        if isinstance(self.mechanism, GRR):
            return np.bincount(reports, minlength=self.mechanism.size)
        return np.asarray(np.count_nonzero(reports, axis=0))


def frequencies(mechanism: SetProtocol, reports: Any) -> FloatArray:
    """How common each record is, estimated without bias from reports: (c(z) - n q) / (n (p - q)) (thesis Theorem 1).

    Sampling error can make some estimates negative.

    >>> frequencies(GRR(3, epsilon=2.0), [0, 0, 0, 1, 2, 0]).round(2).tolist()
    [0.82, 0.09, 0.09]
    """
    _require_sets(mechanism)
    p, q = mechanism.naming
    require(p != q, f"The reports of {mechanism!r} tell nothing.", MechanismError)
    shares: FloatArray = mechanism.members(reports).mean(axis=0)
    return (shares - q) / (p - q)


@dataclass(frozen=True, eq=False)
class MarkovModel:
    """How a record follows the one before: `transitions[u, v]` is the chance that v follows u."""

    transitions: FloatArray

    def __init__(self, transitions: npt.ArrayLike) -> None:
        table = as_floats(transitions, "Transitions", ParameterError)
        square = table.ndim == 2 and table.shape[0] == table.shape[1] > 0
        require(square, f"Transitions are a square matrix, records x records, got shape {table.shape}.")
        sums = table.sum(axis=1)
        are_chances = bool(np.all(table >= 0) and np.all(np.abs(sums - 1) <= 1e-9))
        require(are_chances, "Each row of transitions must be probabilities that sum to 1.")
        object.__setattr__(self, "transitions", table / sums[:, None])

    @classmethod
    def from_sequences(cls, sequences: Iterable[Sequence[int]], size: int) -> MarkovModel:
        """The share of each step among those that leave a record; uniform for records that are never left.

        >>> MarkovModel.from_sequences([[0, 1, 0, 1, 1]], size=2).transitions.tolist()
        [[0.0, 1.0], [0.5, 0.5]]
        """
        counts = np.zeros((as_size(size), size))
        for sequence in sequences:
            path = np.asarray(sequence)
            inside = path.ndim == 1 and np.issubdtype(path.dtype, np.integer) and np.all((path >= 0) & (path < size))
            require(bool(inside), f"A sequence lists numbers of records in 0..{size - 1}.")
            np.add.at(counts, (path[:-1], path[1:]), 1)
        counts[counts.sum(axis=1) == 0] = 1
        return cls(counts / counts.sum(axis=1, keepdims=True))

    @property
    def size(self) -> int:
        """The number of records."""
        return len(self.transitions)

    def next(self, before: IntArray, rng: np.random.Generator) -> IntArray:
        """A random record to follow each."""
        ends = np.cumsum(self.transitions[before], axis=1)
        return np.asarray(np.count_nonzero(ends <= rng.random((before.size, 1)) * ends[:, -1:], axis=1))

    def threat(self, before: Prior) -> Threat:
        """Steps from one record to the next: the attacker knows the former and wants the latter.

        A person's record is now the step u -> v, number u * size + v, of probability before(u) P(v | u).
        """
        require(before.size == self.size, f"The model has {self.size} records, the prior {before.size}.")
        former, latter = np.divmod(np.arange(self.size**2), self.size)
        weights = (before.weights[:, None] * self.transitions).ravel()
        table = {"former": former, "latter": latter}
        return Threat(Prior.from_counts(weights), knows=former, success=Attributes(table, ("latter",)))

    def on_steps(self, mechanism: Mechanism) -> OnAttribute:
        """The mechanism as a release of steps that reports the latter record."""
        return OnAttribute(mechanism, np.arange(self.size**2) % self.size)


class Correlation:
    """Trust a report that is a plausible next step, otherwise draw one from a Markov model (CORR, Attack 4).

    With u the target's record before and P the model's transitions,

        z' = theta if P(theta | u) > threshold, else z' ~ P(. | u).

    `known` is u for each output; along the sequence of one person it is the sequence shifted by one. Guesses are
    numbers of records. Under `MarkovModel.threat`, where a record is a step, number v is the step 0 -> v, which is
    right whenever v is the latter record. The thesis finds threshold 0 to be best, and the rule wanting for large
    epsilon. On randomised response `Report` has the best advantage here too: an implausible report tells nothing for
    any other record, and success by the model alone is no advantage. For success the likeliest next record is a better
    substitute than a random one.
    """

    def __init__(self, model: MarkovModel, threshold: float = 0.0) -> None:
        self.model, self.threshold = model, as_number("threshold", threshold)
        require(0 <= self.threshold < 1, f"threshold must lie in [0, 1), got {self.threshold:g}")

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        reported = Report().guess(outputs, rng)
        before = np.full(0, 0) if known is None else np.asarray(known)
        if before.shape != reported.shape or not np.issubdtype(before.dtype, np.integer):
            fail("This attack needs the target's record before each output: pass its number as `known`.")
        size = self.model.size
        inside = (before >= 0) & (before < size) & (reported >= 0) & (reported < size)
        require(bool(np.all(inside)), f"Record numbers must lie in 0..{size - 1}.")
        plausible = self.model.transitions[before, reported] > self.threshold
        return np.where(plausible, reported, self.model.next(before, rng))


class RandomMember:
    """Guess any record that the report names: z' ~ U[theta], any record at all if it names none.

    Attack 10 on subset selection, 11 on unary encoding (the bits that are on), 13 on reports that are thresholded
    already, and 14 on local hashing (the records that hash to the reported value). Best for a uniform prior, nothing
    known and exact success, if p > q: all records named are equally likely, and likelier than the others. Otherwise
    the heaviest record named gains more.
    """

    def __init__(self, mechanism: SetProtocol | ConcreteHashing) -> None:
        self.mechanism = mechanism
        _require_sets(mechanism, ConcreteHashing)

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        return one_of(self.mechanism.members(outputs), rng)

    def chances(self, outputs: Any, guesses: int) -> FloatArray:
        """The records named, evenly."""
        return _evenly(self.mechanism.members(outputs))

    def value(self, mechanism: Mechanism, threat: Threat) -> Optimum | None:
        """By symmetry, if a report names its owner's record at least as often as another."""
        if not (isinstance(mechanism, SetProtocol) and mechanism == self.mechanism):
            return None
        own, other = mechanism.naming
        return _by_symmetry(mechanism, threat) if own >= other else None


class Likeliest:
    """Guess the record of largest likelihood: z' = argmax_z P(theta | z), ties broken at random (SHE, Attack 12).

    The thesis has it for summation with histogram encoding, where all entries of at least 1 tie; it serves every
    mechanism. Best for a uniform prior, nothing known and exact success; otherwise it leaves the prior out.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        return one_of(self._best(outputs), rng)

    def chances(self, outputs: Any, guesses: int) -> FloatArray:
        """The likeliest records, evenly."""
        return _evenly(self._best(outputs))

    def value(self, mechanism: Mechanism, threat: Threat) -> Optimum | None:
        """Where it is the best attacker, which has a closed form for more mechanisms than can be listed."""
        is_best = threat.success.is_exact and threat.knows.is_none and threat.prior.is_uniform
        best = OptimalAttack(self.mechanism, threat) if is_best and mechanism == self.mechanism else None
        return None if best is None else best.value(mechanism, threat)

    def _best(self, outputs: Any) -> BoolArray:
        logs = self.mechanism.log_likelihood(outputs)
        top = logs.max(axis=1, keepdims=True)
        return np.asarray(logs >= top - 1e-12 * (1 + np.abs(top)))


class AboveThreshold:
    """Guess any record whose noisy entry exceeds a threshold: z' ~ U[{z : theta_z > t}], else any (THE, Attack 13).

    Without a threshold it is `THE`'s of least variance; the thesis says "some" in (0.5, 1). Never better than
    `Likeliest` for a uniform prior: the threshold hides by how much an entry exceeds it.
    """

    def __init__(self, mechanism: SHE, threshold: float | None = None) -> None:
        if not isinstance(mechanism, SHE):
            told = "This attack is on the noisy vectors of SHE; for sets there is RandomMember."
            fail(told, MechanismError)
        self.mechanism = mechanism
        self.thresholded = THE(mechanism.size, 2 / mechanism.scale, threshold)

    def guess(self, outputs: Any, rng: np.random.Generator, known: npt.ArrayLike | None = None) -> IntArray:
        values = np.atleast_2d(as_floats(outputs, "Outputs", MechanismError))
        return one_of(self.thresholded.members(values > self.thresholded.threshold), rng)


def one_of(candidates: BoolArray, rng: np.random.Generator) -> IntArray:
    """A random candidate (column) of each row, any column where a row has none.

    Columns are tried at random first: the first candidate among them is a random one, and found without reading the
    row. Of rows in which none was tried the candidates are listed.
    """
    rows, columns = candidates.shape
    tried = rng.integers(columns, size=(rows, TRIES))
    hits = np.take_along_axis(candidates, tried, axis=1)
    found: IntArray = tried[np.arange(rows), hits.argmax(axis=1)]
    missed = np.flatnonzero(~hits.any(axis=1))
    found[missed] = _one_listed(candidates[missed], rng)
    return found


def _one_listed(candidates: BoolArray, rng: np.random.Generator) -> IntArray:
    rows, columns = candidates.shape
    which, on = rng.random(rows), where_on(candidates)
    starts = np.searchsorted(on, np.arange(rows + 1) * columns)
    times = np.diff(starts)
    some = times > 0
    chosen = starts[:-1] + np.minimum((which * times).astype(np.int64), times - 1)
    found: IntArray = (which * columns).astype(np.int64)
    found[some] = on[chosen[some]] % columns
    return found


def _evenly(candidates: BoolArray) -> FloatArray:
    """The chances of `one_of`, candidates x rows."""
    some = np.where(candidates.any(axis=1, keepdims=True), candidates, True)
    return np.asarray((some / some.sum(axis=1, keepdims=True)).T)


def _by_symmetry(mechanism: SetProtocol, threat: Threat) -> Optimum | None:
    """An attack on m records that treats all alike is right about participants with the same probability s for all.

    Somebody else's report makes it guess z with probability (1 - s) / (m - 1), so on record z it gains
    (1 - pi_z)(m s - 1) / (m - 1), whatever is known. To guess a random record that is named is best under a uniform
    prior (theory 2a), so s = RAD + 1/m of that. For exact success.
    """
    if not threat.success.is_exact:
        return None
    pi, groups, m = threat.prior.weights, threat.knows.groups, mechanism.size
    above = solve(mechanism, Threat(Prior.uniform(m))).advantage  # s - 1/m
    by_record = (1 - pi) * above * m / max(1, m - 1)
    right = sums_by_group(groups, pi * (above + 1 / m))
    gained = sums_by_group(groups, pi * by_record)
    return Optimum(gained, right, by_record, right_by_group=right, by="symmetry")


def _require_sets(mechanism: Any, *also: type) -> None:
    if not isinstance(mechanism, (SetProtocol, *also)):
        fail("This attack is on protocols that report a set of records, as OUE does.", MechanismError)
