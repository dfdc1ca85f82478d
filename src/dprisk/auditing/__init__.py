"""The third question: does this code keep its promise?"""

from dprisk.auditing.code.outputs import recorded
from dprisk.auditing.code.targets import as_target, central
from dprisk.auditing.report import AuditReport
from dprisk.auditing.run import AuditInterrupted, audit, audit_recorded

__all__ = ["AuditInterrupted", "AuditReport", "as_target", "audit", "audit_recorded", "central", "recorded"]
