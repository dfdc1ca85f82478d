"""Bounds that are optimisation problems, each certified: the value holds even if the solver was sloppy.

`worst_advantage` and `worst_success` are the largest advantage and success of *any* epsilon-DP mechanism, for any ball
(theory, 3.1). `advantage_by_curve` and `success_by_curve` are the convex program of theory 3.6 for any prior.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dprisk.bounds.bound import EXACT, FEW, VERY_FEW, Certified, is_pair, is_pure, theorem
from dprisk.errors import TooLargeError, require
from dprisk.guarantees import Guarantee
from dprisk.threat.threat import Threat
from dprisk.types import BoolArray, FloatArray, IntArray

MAX_VARIABLES = 160_000  # 400 records without knowledge: about ten seconds of HiGHS on one core
SOLVED = "always, up to the solver's tolerance"
FEW_SETS = 4  # for each record, up to which a program takes all of them at once
SLACK = 1e-10  # of what a set may ask for beyond those that were taken; certificates make up for it
MAX_DELTA_VARIABLES = 10_000  # with delta every pair of records counts: 21 records without knowledge


@dataclass(frozen=True, eq=False)
class _Worst:
    """The largest sum_x sum_A of value(A) over epsilon-DP mechanisms, A the sets of group x.

    A mechanism is folded with the attack: column A has the value u_A everywhere and w_Az <= (E - 1) u_A on top at
    record z. It is worth base_A u_A + sum_z worth_Az w_Az. The dual is compact: min sum_z y_z subject to

        sum_z y_z >= sum_x max_A [ base_A + (E - 1) sum_{z in x} (worth_Az - y_z)_+ ].

    Any y, shifted until this holds, proves sum(y) to be a bound.
    """

    epsilon: float
    worth: FloatArray  # sets x records
    base: FloatArray
    owner: IntArray  # the group of each set
    inside: IntArray  # the group of each record

    def certified(self) -> Certified:
        y, attained = self._solve()
        y = y + _smallest_shift(lambda shift: self._short(y + shift))
        return Certified(float(y.sum()), y, attained)

    @property
    def _scale(self) -> float:
        return 1 / math.expm1(self.epsilon) if self.epsilon < 700 else 0.0

    @cached_property
    def _own(self) -> BoolArray:
        """Whether a record is in the group of a set: sets x records."""
        return np.asarray(self.owner[:, None] == self.inside)

    def _needs(self, y: FloatArray) -> FloatArray:
        """What each set asks for in the dual constraint (divided by E - 1, so that a large epsilon does no harm)."""
        beyond = np.where(self._own, np.maximum(self.worth - y, 0), 0.0)
        return np.asarray(self._scale * self.base + beyond.sum(axis=1))

    def _most(self, needs: FloatArray) -> FloatArray:
        """The largest of each group."""
        most = np.full(int(self.owner.max()) + 1, -np.inf)
        np.maximum.at(most, self.owner, needs)
        return most

    def _short(self, y: FloatArray) -> bool:
        """Whether the dual constraint fails."""
        most = self._most(self._needs(y)).sum()
        return bool(self._scale * y.sum() < most * (1 + 1e-12))  # the margin is for rounding in these sums

    def _solve(self) -> tuple[FloatArray, float]:
        """A good y, and the value of the program; of many sets only those are taken into it that a solution asks for.

        The program of some sets is that of a mechanism which uses no others: a lower bound. It is the value of the
        whole once no set asks for more than those that were taken do.
        """
        n_sets, n_records = self.worth.shape
        require(int(self._own.sum()) <= MAX_VARIABLES, _too_many(int(self._own.sum())), TooLargeError)
        if n_sets <= FEW_SETS * n_records:
            return self._solved()
        needs = self._needs(np.zeros(n_records))
        taken = needs >= self._most(needs)[self.owner]
        while True:
            part = replace(self, worth=self.worth[taken], base=self.base[taken], owner=self.owner[taken])
            y, attained = part._solved()
            needs = self._needs(y)
            over = np.where(taken, 0.0, needs - part._most(needs[taken])[self.owner])
            late = np.flatnonzero(over > SLACK)
            if late.size == 0:
                return y, attained
            taken[late[np.argsort(-over[late], kind="stable")[:n_records]]] = True

    def _solved(self) -> tuple[FloatArray, float]:
        """The dual values of the mechanism program, a good y but not a trusted one, and the program's value.

        The variables are u_A times k, w_Az times k / (E - 1), and the total of u, with k = max(1, E - 1): all of
        order 1 at any epsilon. Without a base the objective is taken per (E - 1) / k for the same reason.
        """
        from scipy.optimize import linprog

        which, record = np.nonzero(self._own)
        n_sets, n_records = self.worth.shape
        n_groups, n_extra = int(self.owner.max()) + 1, which.size
        # Below 1e-6 the program hardly changes but for its scale, and coefficients that small would be dropped.
        rise = math.expm1(min(max(self.epsilon, 1e-6), 700.0))
        k = max(1.0, rise)
        extra, total = np.arange(n_extra), n_sets + n_extra
        equal = _filled(
            (n_records + n_groups, total + 1),
            (record, n_sets + extra, rise / k),
            (np.arange(n_records), total, 1.0),
            (n_records + self.owner, np.arange(n_sets), 1 / k),
            (n_records + np.arange(n_groups), total, -1.0),
        )
        capped = _filled((n_extra, total + 1), (extra, which, -1.0), (extra, n_sets + extra, 1.0))
        unit = 1.0 if self.base.any() else rise / k
        found = linprog(
            -np.concatenate([self.base / k / unit, self.worth[which, record] * (rise / k / unit), [0.0]]),
            A_ub=capped,
            b_ub=np.zeros(n_extra),
            A_eq=equal,
            b_eq=np.concatenate([np.ones(n_records), np.zeros(n_groups)]),
            bounds=(0, None),
            method="highs",
        )
        if found.status != 0:
            return np.zeros(n_records), 0.0
        smaller = min(1.0, math.expm1(min(self.epsilon, 700.0)) / rise)
        return -unit * found.eqlin.marginals[:n_records], -unit * float(found.fun) * smaller


@theorem(
    "curve-program",
    "dprisk, theory 3.6, any prior",
    "a convex program over the trade-off curve",
    EXACT,
    most_records=FEW,
)
def advantage_by_curve(guarantee: Guarantee, threat: Threat) -> Certified:
    """The largest RAD that the trade-off curve allows, for any prior (theory, 3.6)."""
    spread = threat.prior.sorted_weights * (1 - threat.prior.sorted_weights)
    return _curve_program(guarantee, spread, spread)


@theorem(
    "curve-program-success",
    "dprisk, theory 3.6, any prior",
    "a convex program over the trade-off curve",
    EXACT,
    bounds="success",
    most_records=FEW,
)
def success_by_curve(guarantee: Guarantee, threat: Threat) -> Certified:
    """The largest ReRo that the trade-off curve allows, for any prior (theory, 3.6)."""
    return _curve_program(guarantee, threat.prior.sorted_weights, np.zeros(threat.prior.support_size))


def _curve_program(guarantee: Guarantee, gains: FloatArray, penalties: FloatArray) -> Certified:
    """max sum_i gains_i a_i - penalties_i g(a_i)  subject to  a_i + sum_{j != i} g(a_j) <= 1   (theory, 3.6).

    a_i is how often record i is guessed right when it is the truth, and g(a) the least probability of that guess under
    another record that the trade-off curve allows: the least x with 1 - f(x) >= a. With gains pi_i and no penalties it
    bounds the success, with pi_i (1 - pi_i) for both the advantage. By weak duality any multipliers w >= 0 prove

        sum_i w_i + max_a [(gains_i - w_i) a - (penalties_i + W - w_i) g(a)],   W = sum w.

    Needs: exact success, nothing known.
    """
    from scipy.optimize import linprog

    size = gains.size
    least, hit = guarantee.knots[0], 1 - guarantee.knots[1]  # g(hit) = least
    rise = np.diff(hit) > 0
    if not rise.any():  # the curve is 0: it allows every guess to be right
        return Certified(float(gains.sum()), np.zeros(size))
    slope = np.diff(least)[rise] / np.diff(hit)[rise]
    offset = least[:-1][rise] - slope * hit[:-1][rise]
    # The multipliers need only a good sketch of g; the value below is computed with all of it.
    start = (
        np.searchsorted(hit[:-1][rise], np.linspace(0, 1, 50)),
        np.searchsorted(least[:-1][rise], np.geomspace(1e-7, 1, 50)),
    )
    keep = np.unique(np.minimum(np.concatenate(start), slope.size - 1))
    slope, offset = slope[keep], offset[keep]
    require(size * slope.size <= MAX_VARIABLES, _too_many(size * slope.size), TooLargeError)
    mine = np.arange(size)
    record, line = np.divmod(np.arange(size * slope.size), slope.size)
    one, other = np.nonzero(~np.eye(size, dtype=bool))
    rows = _filled(
        (record.size + size, 2 * size),
        (np.arange(record.size), record, slope[line]),
        (np.arange(record.size), size + record, -1.0),
        (record.size + mine, mine, 1.0),
        (record.size + one, size + other, 1.0),
    )
    limits = np.concatenate([np.tile(-offset, size), np.ones(size)])
    found = linprog(
        np.concatenate([-gains, penalties]), A_ub=rows, b_ub=limits, bounds=[(0, 1)] * (2 * size), method="highs"
    )
    weight = np.maximum(0.0, -found.ineqlin.marginals[-size:]) if found.status == 0 else np.zeros(size)
    # The inner maximum of a piecewise linear function is at a knot.
    inner = (gains - weight)[:, None] * hit - (penalties + weight.sum() - weight)[:, None] * least
    return Certified(float((weight + np.maximum(inner.max(axis=1), 0.0)).sum()), weight)


@theorem(
    "worst-mechanism",
    "dprisk, theory 3.1",
    "the compact dual: the worst epsilon-DP mechanism",
    most_records=FEW,
    attained=SOLVED,
    is_attained=is_pure,
)
def worst_advantage(epsilon: float, threat: Threat) -> Certified:
    """The largest RAD of any epsilon-DP mechanism against this threat, certified (theory, 3.1).

    A set A of records is what a guess for each knowledge group succeeds on; worth_Az = pi_z (1{z in A} - pi(A)). The
    term pi(A) ties the groups together, so every combination of guesses counts. Needs: pure DP, few enough of them.
    """
    pi, member = _joint_success_sets(threat)
    if epsilon == 0:
        return Certified(0.0, np.zeros(pi.size), 0.0)
    worth = pi * (member - (member @ pi)[:, None])
    nobody, everybody = np.zeros(len(worth), dtype=np.int64), np.zeros(pi.size, dtype=np.int64)
    found = _Worst(epsilon, worth, np.zeros(len(worth)), nobody, everybody).certified()
    return Certified(max(0.0, found.value), found.dual, found.attained)


@theorem(
    "worst-mechanism-success",
    "dprisk, theory 3.1",
    "the compact dual: the worst epsilon-DP mechanism",
    bounds="success",
    most_records=FEW,
    attained=SOLVED,
    is_attained=is_pure,
)
def worst_success(epsilon: float, threat: Threat) -> Certified:
    """The largest ReRo of any epsilon-DP mechanism against this threat, certified (theory, 3.1).

    worth_Az = pi_z 1{z in A} and base_A = pi(A): the groups come apart, so any knowledge is compact.
    """
    pi, member = _success_sets(threat)
    if epsilon == 0:
        return Certified(threat.baseline, threat.baseline * pi, threat.baseline)
    inside = threat.knows.groups[threat.prior.support]
    found = _Worst(epsilon, pi * member, member @ pi, threat.reach.group, inside).certified()
    return Certified(max(0.0, min(1.0, found.value)), found.dual, found.attained)


@theorem(
    "worst-mechanism-delta",
    "dprisk, theory 3.1 with delta",
    "the worst (epsilon, delta)-DP mechanism as a linear program",
    notion="one pair",
    most_records=VERY_FEW,
    attained=SOLVED,
    is_attained=is_pair,
)
@theorem(
    "worst-mechanism-delta-success",
    "dprisk, theory 3.1 with delta",
    "the worst (epsilon, delta)-DP mechanism as a linear program",
    notion="one pair",
    bounds="success",
    most_records=VERY_FEW,
    attained=SOLVED,
    is_attained=is_pair,
)
def worst_with_delta(epsilon: float, delta: float, threat: Threat, which: str) -> Certified:
    """The largest RAD or ReRo (`which`) of any (epsilon, delta)-DP mechanism against this threat, certified.

    The folded mechanism itself is the variable: P[z, A] with rows that sum to 1, and for each pair of records excesses
    t_zz'A >= P[z, A] - E P[z', A] that sum to at most delta. By weak duality any multipliers l_zz'A >= 0 prove

        sum_z max_A [ c_Az - sum_z' l_zz'A + E sum_z' l_z'zA ] + delta sum_zz' max_A l_zz'A.
    """
    from scipy.optimize import linprog

    pi, member = _joint_success_sets(threat)
    worth = pi * (member - ((member @ pi)[:, None] if which == "advantage" else 0.0))
    n_sets, size = worth.shape
    one, two = np.nonzero(~np.eye(size, dtype=bool))
    n_pairs, factor = one.size, math.exp(min(epsilon, 700.0))
    require(n_pairs * n_sets <= MAX_DELTA_VARIABLES, _too_many(n_pairs * n_sets, MAX_DELTA_VARIABLES), TooLargeError)
    if n_pairs == 0:
        return Certified(float(worth.max()), pi.copy(), float(worth.max()))
    n_cells, n_excess = size * n_sets, n_pairs * n_sets
    cell, excess = np.arange(n_cells), np.arange(n_excess)
    pair, chosen = np.divmod(excess, n_sets)
    found = linprog(
        -np.concatenate([worth.T.ravel(), np.zeros(n_excess)]),
        A_ub=_filled(
            (n_excess + n_pairs, n_cells + n_excess),
            (excess, one[pair] * n_sets + chosen, 1.0),
            (excess, two[pair] * n_sets + chosen, -factor),
            (excess, n_cells + excess, -1.0),
            (n_excess + pair, n_cells + excess, 1.0),
        ),
        b_ub=np.concatenate([np.zeros(n_excess), np.full(n_pairs, delta)]),
        A_eq=_filled((size, n_cells + n_excess), (cell // n_sets, cell, 1.0)),
        b_eq=np.ones(size),
        bounds=(0, None),
        method="highs",
    )
    price = np.zeros((n_pairs, n_sets))
    if found.status == 0:
        price = np.maximum(0.0, -found.ineqlin.marginals[:n_excess]).reshape(n_pairs, n_sets)
    paid, got = np.zeros((2, size, n_sets))
    np.add.at(paid, one, price)
    np.add.at(got, two, price)
    each = worth.T - paid + factor * got
    value = float(each.max(axis=1).sum() + delta * price.max(axis=1).sum())
    return Certified(max(0.0, min(value, 1.0)), each.max(axis=1), -float(found.fun) if found.status == 0 else 0.0)


def _filled(shape: tuple[int, int], *parts: tuple[Any, Any, Any]) -> Any:
    """A sparse matrix with these rows, columns and values; one number stands for many."""
    from scipy import sparse

    filled = [np.broadcast_arrays(*part) for part in parts]
    rows, columns, values = (np.concatenate(entries) for entries in zip(*filled, strict=True))
    return sparse.csr_array((values, (rows, columns)), shape=shape)


def _success_sets(threat: Threat) -> tuple[FloatArray, BoolArray]:
    """The positive probabilities, and the sets of records of the support that guesses succeed on, group by group."""
    support = threat.prior.support
    cells = threat.reach.guess.size * support.size
    require(cells <= 100 * MAX_VARIABLES, _too_many(cells), TooLargeError)
    return threat.prior.weights[support], threat.reach.members()[:, support].toarray().astype(bool)


def _joint_success_sets(threat: Threat) -> tuple[FloatArray, BoolArray]:
    """The same with a guess for each group at once: every union of one set from each."""
    pi, member = _success_sets(threat)
    by_group = [np.unique(part, axis=0) for part in np.split(member, threat.reach.starts[1:])]
    joint = math.prod(len(part) for part in by_group)
    require(joint * pi.size <= MAX_VARIABLES, _too_many(joint * pi.size), TooLargeError)
    return pi, np.array([np.any(choice, axis=0) for choice in itertools.product(*by_group)])


def _smallest_shift(short: Callable[[float], bool]) -> float:
    """The smallest uniform shift of a dual point, up or down, at which it is feasible (up to rounding)."""
    sign = 1.0 if short(0.0) else -1.0
    step = 1e-16
    while short(sign * step) == (sign > 0) and step < 1.0:
        step *= 2
    low, high = sorted((sign * step / 2, sign * step))
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return high


def _too_many(count: int, most: int = MAX_VARIABLES) -> str:
    return f"The program would have {count} variables, more than {most}; use the closed-form bounds."
