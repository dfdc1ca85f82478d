"""Many targets with equally likely values: the exact worst case over all mechanisms, as a small linear program (ours).

n targets, each with one of m equally likely values, one guess at each of r of them. Mix a mechanism and attacker with
all renamings of targets and values: that keeps the guarantee and the number of right guesses W. So the guesses y given
the values x need only depend on how many of them are right, with p_w = P(W = w). If a value of one target changes, a
right guess about it turns wrong and one of the m - 1 wrong ones right; a guarantee with the pair (epsilon, delta) says

    sum_w (w p_w/r - E (r-w+1) p_{w-1}/(r (m-1)))_+ + sum_w ((r-w) p_w/(r (m-1)) - E (w+1) p_{w+1}/r)_+ <= delta n/r

and no more. The largest p_v + ... + p_r is the largest chance of v right guesses; every law p that keeps these
conditions is that of a mechanism, so it is attained. The value that is returned is the dual's, which holds even if the
solver was sloppy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dprisk.errors import TooLargeError, as_whole, require
from dprisk.types import FloatArray, IntArray

MOST_GUESSES = 2000  # in a program that takes a second or so
LARGEST = 40.0  # epsilon, beyond which a pair is left out: it says next to nothing
Pairs = Sequence[tuple[float, float]]


def exact_chance(pairs: Pairs, values: int, successes: int, guesses: int, targets: int | None = None) -> float:
    """The largest chance of so many right guesses, for any mechanism that keeps every pair (epsilon, delta).

    >>> round(exact_chance([(0.0, 0.01)], values=2, successes=1, guesses=2), 6)
    0.7575
    """
    return _worst(pairs, values, successes, guesses, targets)[0]


def exact_law(pairs: Pairs, values: int, successes: int, guesses: int) -> FloatArray:
    """P(W = w) for w = 0, ..., guesses under a mechanism that attains it, as far as the solver's tolerance goes.

    Such a mechanism draws w, picks so many targets at random, tells their values, and false ones of all others.
    """
    return _worst(pairs, values, successes, guesses, None)[1]


def _worst(pairs: Pairs, values: int, successes: int, guesses: int, targets: int | None) -> tuple[float, FloatArray]:
    many, count = as_whole("values", values, least=2), as_whole("guesses", guesses)
    share = count / (count if targets is None else as_whole("targets", targets, least=count))
    kept = [(epsilon, delta) for epsilon, delta in pairs if epsilon <= LARGEST]
    rows, owners = [np.zeros(count + 1)], [0]
    for number, (epsilon, _) in enumerate(kept, start=1):
        shown = _right_turned_wrong(epsilon, many, count) + _wrong_turned_right(epsilon, many, count)
        rows += shown
        owners += [number] * len(shown)
    return _largest(np.array(rows), np.array(owners), [0.0, *(delta / share for _, delta in kept)], successes, count)


def mahloujifar_chance(pairs: Pairs, values: int, successes: int, guesses: int) -> float:
    """The same by what Mahloujifar, Melis and Chaudhuri (Auditing f-DP in one run) use of the trade-off curve.

    For every c: sum_{w>=c} w p_w/n <= 1 - f(sum_{w>=c-1} (n-w) p_w/(n (m-1))): the event that a target is guessed
    rightly together with at least c - 1 of the others. For comparison: never below `exact_chance`.
    """
    many, count = as_whole("values", values, least=2), as_whole("guesses", guesses)
    kept = [(epsilon, delta) for epsilon, delta in pairs if epsilon <= LARGEST]
    rows = [np.zeros((1, count + 1))]
    rows += [np.cumsum(_right_turned_wrong(epsilon, many, count)[::-1], axis=0) for epsilon, _ in kept]
    owners = np.arange(1 + len(kept) * count)
    budgets = [0.0, *(delta for _, delta in kept for _ in range(count))]
    return _largest(np.concatenate(rows), owners, budgets, successes, count)[0]


def _right_turned_wrong(epsilon: float, values: int, guesses: int) -> list[FloatArray]:
    found = []
    for right in range(1, guesses + 1):
        row = np.zeros(guesses + 1)
        row[right] = right / guesses
        row[right - 1] = -math.exp(epsilon) * (guesses - right + 1) / (guesses * (values - 1))
        found.append(row)
    return found


def _wrong_turned_right(epsilon: float, values: int, guesses: int) -> list[FloatArray]:
    found = []
    for right in range(guesses):
        row = np.zeros(guesses + 1)
        row[right] = (guesses - right) / (guesses * (values - 1))
        row[right + 1] = -math.exp(epsilon) * (right + 1) / guesses
        found.append(row)
    return found


def _largest(
    rows: FloatArray, owners: IntArray, budgets: list[float], successes: int, guesses: int
) -> tuple[float, FloatArray]:
    """The largest p_v + ... + p_r, and a law that has it, if (row p)_+ adds up over each owner's rows to its budget.

    The dual: for weights u_row in [0, y_owner] the value is at most y budget + max_w (1{w >= v} - (u rows)_w).
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_array, csr_array, eye_array

    require(
        guesses <= MOST_GUESSES,
        f"The exact program is for at most {MOST_GUESSES:,} guesses, got {guesses:,}.",
        TooLargeError,
    )
    wanted = (np.arange(guesses + 1) >= successes).astype(float)
    slack = rows.shape[0]
    belongs = csr_array((np.ones(slack), (owners, np.arange(slack))), shape=(len(budgets), slack))
    limits = block_array([[csr_array(rows), -eye_array(slack)], [None, belongs]], format="csr")
    whole = csr_array(np.append(np.ones(guesses + 1), np.zeros(slack))[None])
    solved = linprog(
        np.append(-wanted, np.zeros(slack)), limits, np.append(np.zeros(slack), budgets), whole, [1.0], method="highs"
    )
    if solved.status != 0:
        return 1.0, wanted / wanted.sum()
    weights = np.maximum(0.0, -solved.ineqlin.marginals)
    owner_weights = weights[slack:]
    shown = np.minimum(weights[:slack], owner_weights[owners])
    value = float(owner_weights @ np.array(budgets)) + float((wanted - shown @ rows).max())
    law = np.maximum(0.0, solved.x[: guesses + 1])
    return min(1.0, value * (1 + 1e-12) + 1e-15), law / law.sum()
