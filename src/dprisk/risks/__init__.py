"""What a release risks: of a mechanism, and of anything that keeps a guarantee."""

from dprisk.risks.attack import AttackRisk
from dprisk.risks.base import Assessment
from dprisk.risks.record import RecordRisk
from dprisk.risks.risk import GroupRisk, Risk, at_most, computed, risk_of
from dprisk.risks.worst_case import WorstCase

__all__ = [
    "Assessment",
    "AttackRisk",
    "GroupRisk",
    "RecordRisk",
    "Risk",
    "WorstCase",
    "at_most",
    "computed",
    "risk_of",
]
