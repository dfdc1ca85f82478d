"""Where the best guess changes along a line of outputs: the exact optimum for noise added to a number.

Between two outputs at which the best set changes, the attacker keeps to one set, and what that brings is a difference
of distribution functions. So the optimum is that of the mechanism which tells only between which break points the
output lies: the partition is all there is to find. Any partition gives a lower bound, since binning the outputs is
post-processing; what it lacks is bounded cell by cell (`cells.py`), and cells are split until that is negligible.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dprisk.errors import TooLargeError
from dprisk.exact.cells import SMALLEST_SHARE, TOLERANCE, UNSEEN, Search
from dprisk.exact.optimum import Optimum
from dprisk.exact.theorem import enumerate_by_record, enumerate_outputs, enumerate_right
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.numbers.noise import SymmetricNoise
from dprisk.threat.threat import Threat
from dprisk.types import AnyArray, FloatArray

NOWHERE = 1e-18  # mass that floats could not add
MANY = 256  # records from which on arrays are so long that two threads do not wait for each other all the time
MOST_MET = 1 << 30  # records times those that one output may come from, beyond which it would take far over ten minutes
FIRST_CELLS, FAR_TAIL = 1024, 1e-13  # of a noise of unknown shape


def optimum(mechanism: Additive, threat: Threat) -> Optimum:
    """Outputs on a line: all that matters is between which break points they lie."""
    part_for = partial(partition, mechanism, threat)
    if mechanism.size < MANY:
        parts = [part_for(True), part_for(False)]
    else:
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(part_for, (True, False)))
    binned = mechanism.binned(np.concatenate([part.edges for part in parts]))
    error = sum(part.defect for part in parts)
    return replace(enumerate_outputs(binned, threat), error=error, is_proven=is_proven(mechanism))


def is_proven(mechanism: Additive) -> bool:
    """Whether what a partition may miss is a bound, and not an estimate as for a noise of unknown shape."""
    return isinstance(mechanism.noise, SymmetricNoise)


def by_record(mechanism: Additive, threat: Threat) -> FloatArray:
    """The best attacker's advantage on each record."""
    return enumerate_by_record(mechanism.binned(partition(mechanism, threat, penalise=True).edges), threat)


def right(mechanism: Additive, threat: Threat) -> FloatArray:
    """How often the attacker of largest advantage is right about participants, by group."""
    return enumerate_right(mechanism.binned(partition(mechanism, threat, penalise=True).edges), threat)


@dataclass(frozen=True)
class Partition:
    """Break points, and a bound on what the best attacker could gain by seeing more than the cells."""

    edges: FloatArray
    defect: float


def partition(mechanism: Additive, threat: Threat, penalise: bool) -> Partition:
    """The break points for the advantage (`penalise`: each set c at the price kappa_c) or for the success."""
    if not isinstance(mechanism.noise, SymmetricNoise):
        return _halved(mechanism, threat, penalise)
    apart = _far_apart(mechanism, mechanism.noise)
    if apart is not None:
        return apart
    _require_in_reach(mechanism, mechanism.noise)
    search = Search.of(mechanism, mechanism.noise, threat, penalise)
    left, right = search.first_cells()
    halve = np.zeros(left.size, dtype=bool)
    kept: list[AnyArray] = []
    defect = 4 * UNSEEN  # two tails, each record lost to one set and gained by another
    while left.size:
        halves = [np.empty((3, 0))]
        for start in range(0, left.size, search.block):
            now = slice(start, start + search.block)
            cells = search.near(left[now], right[now]).look(left[now], right[now], halve[now])
            defect += float(cells.defect[~cells.split].sum())
            kept.append(np.array([cells.left, cells.choice, cells.right])[:, ~cells.split])
            halves.append(cells.halves())
        left, right, lopsided = np.concatenate(halves, axis=1)
        halve = lopsided > 0
    if not kept:
        return Partition(np.empty(0), 0.0)
    edges, choice, ends = np.concatenate(kept, axis=1)
    order = np.argsort(edges)
    new = np.r_[True, np.diff(choice[order]) != 0]
    return Partition(np.r_[edges[order][new], ends.max()], defect)


def _require_in_reach(mechanism: Additive, noise: SymmetricNoise) -> None:
    """Refuse what would take far longer than minutes: about every record is met in every cell that sees it."""
    place, sight = np.sort(mechanism.positions), float(-noise.quantile(np.array(UNSEEN)))
    seen = int((np.searchsorted(place, place + 2 * sight) - np.arange(place.size)).max())
    TooLargeError.unless(
        place.size * seen <= MOST_MET,
        f"{place.size} records, {seen} of them in reach of one output, are too many to find every break point.",
    )


def _far_apart(mechanism: Additive, noise: SymmetricNoise) -> Partition | None:
    """Positions so far apart that no noise reaches half way to the next: then only the nearest position counts."""
    place = np.unique(mechanism.positions)
    if mechanism.is_truncated or place.size < 2:
        return None
    least = np.array(np.diff(place).min() / 2)
    beyond = float(np.exp(noise.log_above(least)))
    return Partition((place[1:] + place[:-1]) / 2, 2 * beyond) if beyond < NOWHERE else None


def _halved(mechanism: Additive, threat: Threat, penalise: bool) -> Partition:
    """A density of unknown shape: halve a cell for as long as another set is better at its ends or in its middle.

    The defect is then an estimate, since nothing is known of what happens between these three points.
    """
    pi, reach = threat.prior.weights[:, None], threat.reach
    price = reach.sums(pi) if penalise else np.zeros((reach.guess.size, 1))

    def worth(likelihood: FloatArray) -> FloatArray:
        joint = pi * likelihood
        return np.asarray(reach.sums(joint) - price * joint.sum(axis=0))

    edges = _quantile_edges(mechanism)
    left, right, kept, defect = edges[:-1], edges[1:], [edges[-1:]], 0.0
    while left.size:
        middle = (left + right) / 2
        serves = reach.first_best(worth(mechanism.mass(left, right)))
        missed = np.zeros(left.size)
        for at in (left, middle, right):
            here = worth(np.nan_to_num(mechanism.density(at), posinf=0.0))  # infinite at a single point: no mass
            mine = np.take_along_axis(here, serves, axis=0)
            missed = np.maximum(missed, (reach.best(here) - mine).sum(axis=0) * (right - left))
        split = (missed > TOLERANCE * SMALLEST_SHARE) & (middle > left) & (middle < right)
        defect += float(missed[~split].sum())
        kept.append(left[~split])
        left, right = np.concatenate([left[split], middle[split]]), np.concatenate([middle[split], right[split]])
    return Partition(np.concatenate(kept), defect)


def _quantile_edges(mechanism: Additive) -> FloatArray:
    """Edges as dense as outputs are, out to the far tails; also where the noise of a position may begin or end."""
    tail = np.geomspace(FAR_TAIL, 0.01, 34)
    quantiles = mechanism.noise.quantile(np.r_[tail, np.linspace(0.015, 0.985, 98), 1 - tail[::-1]])
    place = np.unique(mechanism.positions)[:, None]
    all_edges = np.unique(place + quantiles)
    few = all_edges[:: max(1, all_edges.size // FIRST_CELLS)]
    return np.unique(np.clip(np.r_[few, (place + quantiles[[0, -1]]).ravel()], *mechanism.bounds))
