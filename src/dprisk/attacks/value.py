"""The exact advantage and success of one given attack, where its guesses are known as chances.

An attack is any guesser. It may say more of itself, by either of two methods:

    value(mechanism, threat)      its advantage and success by a formula, None where that does not apply
    chances(outputs, guesses)     the chance of each guess, guesses x outputs, whatever is known of the target

With C the chances and s_z(theta) the sum of C over the guesses that are right about z, a list of outputs gives

    RAD = sum_theta sum_z pi_z s_z(theta) (P[z,theta] - sum_y pi_y P[y,theta]),   ReRo without the second term.
"""

from typing import Any

import numpy as np

from dprisk.attacks.estimate import Guesser
from dprisk.exact import block_size, require_match
from dprisk.exact.optimum import Optimum, sums_by_group
from dprisk.mechanisms import Mechanism
from dprisk.threat.threat import Threat


def exact_value(attack: Guesser, mechanism: Mechanism, threat: Threat) -> Optimum | None:
    """The advantage and success of an attack on a mechanism, by group; None where they can only be measured."""
    require_match(mechanism, threat)
    told: Any = attack
    found: Optimum | None = told.value(mechanism, threat) if hasattr(told, "value") else None
    if found is None and hasattr(told, "chances") and mechanism.is_listable:
        return _listed(told, mechanism, threat)
    return found


def _listed(attack: Any, mechanism: Mechanism, threat: Threat) -> Optimum:
    pi, size = threat.prior.weights, threat.prior.size
    anybody = threat.success.reach(threat.prior, np.zeros(size, dtype=np.int64))  # whatever is known of the target
    sets = anybody.find(np.arange(anybody.n_guesses), 0)
    block = block_size(anybody, size)
    advantage, success = np.zeros((2, size))
    for outputs, columns in zip(mechanism.outputs(block), mechanism.channel(block), strict=True):
        chances = attack.chances(outputs, anybody.n_guesses)
        if threat.success.is_exact:
            right = chances
        else:
            by_set = np.zeros((anybody.guess.size, columns.shape[1]))
            np.add.at(by_set, sets, chances)
            right = anybody.cover(by_set)
        success += (right * columns).sum(axis=1)
        advantage += (right * (columns - pi @ columns)).sum(axis=1)
    gained, reached = (sums_by_group(threat.knows.groups, pi * part) for part in (advantage, success))
    return Optimum(gained, reached, advantage, right_by_group=reached, by="every output")
