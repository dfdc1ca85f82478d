"""The kinds of records that a threat tells apart: what makes differently spelled threats the same.

Two records of one knowledge group that every guess is right or wrong about together are of one kind: to an attacker
they are one record, whose output is a mixture of theirs. A mixture of outputs keeps every guarantee that each of them
keeps. Records of probability 0 count for nothing; only that they can be guessed does.
"""

from dataclasses import dataclass

import numpy as np

from dprisk.threat.knowledge import Knowledge, refine
from dprisk.threat.prior import Prior
from dprisk.threat.reach import Reach
from dprisk.threat.success import Success
from dprisk.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kinds of the records of positive probability, numbered in the order in which they first occur.

    `of_record` is the kind of each record (0 for a record of probability 0 that is of none of them), `first` the first
    record of each kind.
    """

    of_record: IntArray
    first: IntArray

    @classmethod
    def of(cls, prior: Prior, groups: IntArray, reach: Reach | None, *apart: IntArray) -> "Kinds":
        """The kinds that the sets of a reach tell apart; without one every record is of its own, as it is if exact.

        Records with different numbers in `apart` are told apart too.
        """
        if reach is None and prior.support_size == prior.size:
            return cls(np.arange(prior.size), np.arange(prior.size))
        alike = np.arange(prior.size) if reach is None else refine([groups, *reach.profiles(), *apart])
        known, first = np.unique(alike[prior.support], return_index=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        at = np.minimum(np.searchsorted(known, alike), known.size - 1)
        of_record = np.where(known[at] == alike, rank[at], 0)
        return cls(of_record, prior.support[first[order]])

    @property
    def count(self) -> int:
        """How many kinds there are."""
        return self.first.size

    @property
    def are_records(self) -> bool:
        """Whether every record is a kind of its own."""
        return self.count == self.of_record.size

    def masses(self, prior: Prior) -> FloatArray:
        """The probability of each kind."""
        return np.bincount(self.of_record, weights=prior.weights, minlength=self.count).astype(float)

    def knowledge(self, knows: Knowledge) -> Knowledge:
        """What is known of each kind; groups without any kind are left out."""
        used, groups = np.unique(knows.groups[self.first], return_inverse=True)
        return Knowledge.none(self.count) if used.size == 1 else Knowledge(groups, tuple(knows.names[x] for x in used))

    def are_exact(self, groups: IntArray, reach: Reach) -> bool:
        """Whether guesses are as with exact success: each is right about one kind at most, and every kind has one.

        With several groups each must have a guess that is sure to fail in it, as with exact success every guess
        elsewhere is (theory, gotcha 4). With one group such a guess makes no difference: the single kinds are worth 0
        together, so one of them is worth no less.
        """
        here = np.zeros((self.of_record.size, 1))
        here[self.first] = 1.0
        held = reach.sums(here)
        if held.max() > 1.5 or not np.all(reach.largest_over(held[:, 0])[self.first] > 0.5):
            return False
        used = np.unique(groups[self.first])
        return used.size == 1 or bool(np.all(reach.best(-held)[used, 0] > -0.5))


@dataclass(frozen=True, eq=False, repr=False)
class OnKinds(Success):
    """A rule for the records of a prior, seen as one for their kinds: the guesses are those of the rule."""

    rule: Success
    prior: Prior
    of_record: IntArray
    first: IntArray

    def reach(self, prior: Prior, groups: IntArray) -> Reach:
        """What the sets of the rule hold of one record of each kind."""
        whole = self.rule.reach(self.prior, groups[self.of_record])
        return whole.narrowed(self.first, np.arange(whole.guess.size))[0]

    def describe(self) -> str:
        """As the rule does."""
        return self.rule.describe()
