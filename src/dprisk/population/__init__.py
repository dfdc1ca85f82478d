"""Many people at once: how many records can be reconstructed, and what one run with many canaries tells.

>>> from dprisk.population import Targets, at_most
>>> print(at_most(1.0, Targets.uniform(100, values=10)))
AtMost(30 of 100, ApproxDP(epsilon=1), alpha=0.05)
"""

from dprisk.population.bounding import AtMost, at_most
from dprisk.population.canaries import OneRun
from dprisk.population.once import OneRunAudit, audit_one_run, choose_guesses
from dprisk.population.rebuilding import Rebuilt, rebuild
from dprisk.population.targets import Targets

__all__ = [
    "AtMost",
    "OneRun",
    "OneRunAudit",
    "Rebuilt",
    "Targets",
    "at_most",
    "audit_one_run",
    "choose_guesses",
    "rebuild",
]
