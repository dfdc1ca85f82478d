"""What a release risks: of a mechanism, and of anything that keeps a guarantee."""

from dprisk.risks.base import Assessment
from dprisk.risks.computing import at_most, computed, risk_of
from dprisk.risks.risk import GroupRisk, Risk
from dprisk.risks.worst_case import WorstCase

__all__ = ["Assessment", "GroupRisk", "Risk", "WorstCase", "at_most", "computed", "risk_of"]
