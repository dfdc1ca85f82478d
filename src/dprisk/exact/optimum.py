"""What a computation of the best attacker returns."""

import math
from dataclasses import dataclass, field

import numpy as np

from dprisk.types import FloatArray, IntArray


def sums_by_group(groups: IntArray, values: FloatArray) -> FloatArray:
    """The sums of values, one a record, over the groups."""
    return np.asarray(np.bincount(groups, weights=values), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best attackers' advantage and success, split by knowledge group.

    `by_record` is the advantage that the advantage-maximising attacker has on each record, so that
    advantage = sum_z pi_z by_record[z]; `right_by_group` is how often that attacker is right about participants. Both
    are None where it takes another computation to know. The true advantage and success are at most `error` larger than
    told, apart from rounding; unless `is_proven`, that is an estimate. `most` is what no attacker can exceed under the
    prior, and `by` the name of the form (see `forms.py`) that found it.
    """

    advantage_by_group: FloatArray
    success_by_group: FloatArray
    by_record: FloatArray | None
    right_by_group: FloatArray | None = field(default=None, kw_only=True)
    error: float = field(default=0.0, kw_only=True)
    is_proven: bool = field(default=True, kw_only=True)
    most: float = field(default=1.0, kw_only=True)
    by: str = field(default="", kw_only=True)

    @property
    def advantage(self) -> float:
        """RAD of the best attacker."""
        return min(self.most, math.fsum(self.advantage_by_group))

    @property
    def right(self) -> float | None:
        """How often the attacker of largest advantage is right about participants, where that is known already."""
        return None if self.right_by_group is None else min(1.0, math.fsum(self.right_by_group))

    @property
    def success(self) -> float:
        """ReRo of the best attacker."""
        return min(1.0, math.fsum(self.success_by_group))  # rounding may take a sure success beyond
