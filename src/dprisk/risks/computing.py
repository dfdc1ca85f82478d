"""The risk of anything as far as it can be computed: exactly for a mechanism, at most for a guarantee."""

from typing import Any

from dprisk import exact
from dprisk.errors import TooLargeError
from dprisk.guarantees import as_guarantee
from dprisk.mechanisms import Mechanism
from dprisk.risks.risk import Risk
from dprisk.risks.worst_case import WorstCase
from dprisk.threat import Threat


def computed(subject: Any, threat: Threat, thorough: bool = False) -> Risk | WorstCase:
    """As `assess`, but nothing is estimated: what is out of reach raises a `TooLargeError`."""
    if isinstance(subject, Mechanism):
        return Risk(subject, threat, exact.solve(subject, threat))
    return WorstCase(as_guarantee(subject), threat, thorough)


def at_most(subject: Any, threat: Threat) -> Risk | WorstCase:
    """As `computed`; of a mechanism whose risk is out of reach, the worst that its guarantee allows."""
    try:
        return computed(subject, threat)
    except TooLargeError:
        return WorstCase(subject.guarantee(), threat)


def risk_of(subject: Any, threat: Threat, which: str) -> float:
    """The advantage or the success of a mechanism or guarantee, computed, or at least not exceeded."""
    return float(getattr(at_most(subject, threat), which))
