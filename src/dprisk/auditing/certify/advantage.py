"""The epsilon that an advantage takes.

A lower confidence bound on the mean of one-run values (`gains`), put into the tightest bound on the advantage that
holds for every (epsilon, delta)-DP mechanism, is a certificate at the same level: whatever the code is, and whatever
the attack.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import cache

from dprisk.auditing.certify.counts import as_delta
from dprisk.bounds import REGISTRY, Bound, Value
from dprisk.bounds.papers import rad_corollary_5_6
from dprisk.errors import ThreatError, TooLargeError, as_number, fail, require
from dprisk.guarantees import ApproxDP, Guarantee
from dprisk.threat.threat import Threat


def epsilon_from_advantage(advantage: float, threat: Threat, delta: float = 0.0) -> float:
    """An epsilon that a mechanism of this advantage must exceed, or 0.

    The largest epsilon found at which the tightest bound on the advantage of (epsilon, delta)-DP mechanisms is still
    below the given one. A mechanism that kept it would break a proven bound, so the true epsilon is larger: the answer
    is on the safe side whatever the bounds' rounding, and put on a lower confidence bound of the advantage it is a
    certificate at the same level. Infinite values are never returned.

    Of the bounds that are optimisation problems, those that `assess` would solve (up to 60 records, 15 with delta) are
    solved some thirty times, where no closed form is known to be attained.

    >>> from dprisk import GRR, Prior, Threat, assess
    >>> threat = Threat(Prior([0.5, 0.3, 0.2]))
    >>> round(epsilon_from_advantage(assess(GRR(3, epsilon=1.0), threat).advantage, threat), 3)
    1.0
    """
    require(isinstance(threat, Threat), f"{threat!r} is not a Threat.")
    advantage, delta, threat = as_number("advantage", advantage), as_delta(delta), threat.essence
    most = 1 - threat.prior.collision_probability
    if not advantage <= most + 1e-12:
        fail(f"No attack on this prior has an advantage above 1 - kappa_pi = {most:g}, got {advantage:g}.")
    if advantage <= 0:
        return 0.0
    if threat.prior.is_uniform_on_support and threat.knows.is_none and threat.success.is_exact:
        # Corollary 5.6 is attained for every delta: no other bound is below it.
        records = threat.prior.support_size
        return _last_below(lambda epsilon: rad_corollary_5_6(epsilon, delta, records), advantage, 0.0, 1e-12)
    closed, forms = _bounds(delta)

    def tightest(among: Sequence[Bound], epsilon: float) -> Value:
        return _tightest(among, ApproxDP(epsilon, delta), threat)

    found = _last_below(lambda epsilon: tightest(closed, epsilon).number, advantage, 0.0, 1e-9)
    if tightest(closed, found).attained:
        return found
    return _last_below(lambda epsilon: tightest(forms, epsilon).number, advantage, found, 1e-6)


def largest_advantage(claim: ApproxDP, threat: Threat) -> float:
    """The tightest bound on the advantage under a claim; no program is solved where a closed form is attained."""
    closed, forms = _bounds(claim.delta)
    found = _tightest(closed, claim, threat.essence)
    return found.number if found.attained else _tightest(forms, claim, threat.essence).number


def _bounds(delta: float) -> tuple[list[Bound], list[Bound]]:
    """The bounds on the advantage that are formulas, and all of them."""
    # At delta 0 the program for one pair is that for pure DP over again, on every pair of records.
    forms = [bound for bound in REGISTRY if bound.bounds == "advantage" and (delta > 0 or bound.notion != "one pair")]
    return [bound for bound in forms if math.isinf(bound.most_records)], forms


def _tightest(among: Sequence[Bound], guarantee: Guarantee, threat: Threat) -> Value:
    """The least of these bounds; of nearly equal ones that which is known to be attained."""
    values = []
    for bound in among:
        if bound.obstacle(guarantee, threat) is None:
            with contextlib.suppress(TooLargeError):
                values.append(bound.value(guarantee, threat))
    require(len(values) > 0, "No bound on the advantage applies to this threat.", ThreatError)
    least = min(value.number for value in values)
    return min(values, key=lambda value: (value.number > least * (1 + 1e-9), not value.attained, value.number))


def _last_below(bound: Callable[[float], float], target: float, start: float, tolerance: float) -> float:
    """An epsilon, from start on, at which a rising bound is certainly below the target, close to the last such."""
    from scipy.optimize import brentq

    bound = cache(bound)  # ends are asked again

    def below(epsilon: float) -> bool:
        return bound(epsilon) * (1 + 1e-12) < target

    if not below(start):
        return start
    low, step = start, max(0.01, 0.01 * start)
    while below(low + step) and low < 500:
        low += step
        step *= 2
    high = low + step
    if not below(high) and bound(high) > target:
        # The root is found in a few steps; what is returned was tried itself, whatever the solver's rounding.
        root = brentq(lambda epsilon: bound(epsilon) - target, low, high, xtol=tolerance / 4, rtol=1e-14)
        near = max(low, root - tolerance * max(1.0, root))
        low, high = (near, root) if below(near) else (low, near)
    while high - low > tolerance * max(1.0, low):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low
