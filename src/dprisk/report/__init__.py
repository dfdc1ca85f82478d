"""One self-contained page on a threat model, to hand to a review board; the same as Markdown and JSON."""

from dprisk.report.audits import AuditFile, read_audit
from dprisk.report.making import Report, make_report

__all__ = ["AuditFile", "Report", "make_report", "read_audit"]
