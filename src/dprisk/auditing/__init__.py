"""The third question: does this code keep its promise?"""

from dprisk.auditing.code.central import central, probes
from dprisk.auditing.code.neighbours import Neighbours
from dprisk.auditing.code.reading import as_target
from dprisk.auditing.code.recordings import recorded
from dprisk.auditing.evidence.choosing import Look
from dprisk.auditing.recorded_runs import audit_recorded
from dprisk.auditing.report import AuditReport
from dprisk.auditing.run import AuditInterrupted, audit
from dprisk.auditing.running.workers import Running

__all__ = [
    "AuditInterrupted",
    "AuditReport",
    "Look",
    "Neighbours",
    "Running",
    "as_target",
    "audit",
    "audit_recorded",
    "central",
    "probes",
    "recorded",
]
