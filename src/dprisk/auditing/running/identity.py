"""What tells one audit from another, so that none goes on from runs of other code: text, arguments, objects."""

from __future__ import annotations

from typing import Any

from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.code.fingerprints import fingerprint
from dprisk.auditing.code.target import Target

ATTACKERS = 4  # counted up when attackers, or the sizes of blocks, become others


def identity(target: Target, terms: Terms, look: Any, threat: Any = None) -> dict[str, Any]:
    """What must be the same to go on from recorded blocks.

    Runs and alpha too: the design depends on them, and who adds runs after a look at the outcome needs `stop_early`.
    """
    given = [target.mechanism, target.records, target.pairs, look, threat]
    return {
        "attackers": ATTACKERS,
        "target": target.describe(),
        "code, records and attacker": fingerprint([*what_runs(target), *given]),
        "claim": [terms.claim.epsilon, terms.claim.delta, terms.claim.relation],
        "runs": terms.runs,
        "alpha": terms.alpha,
        "may end early": terms.anytime,
        "seed": terms.seed,
    }


def what_runs(target: Target) -> list[Any]:
    """The code of a target, and what is called with it."""
    return [getattr(target, part, None) for part in ("code", "post", "parameters")]
