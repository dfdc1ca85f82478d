"""One case of a sweep: what was varied, and what came out."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from dprisk.risks import Assessment, Risk

How = Literal["exact", "bound", "estimate", "enclosed"]


@dataclass(frozen=True)
class Point:
    """The risk of one subject with one value of its parameter, against one prior and one distance.

    `how` says what the numbers are: exact; an upper `bound`, of whatever keeps a guarantee; an `estimate`; or the
    upper ends of certified intervals (`enclosed`). Intervals are there for the last two.
    """

    subject: str
    parameter: float | None
    prior: str | None
    within: float | None
    advantage: float
    success: float
    baseline: float
    how: How
    source: str
    advantage_interval: tuple[float, float] | None = None
    success_interval: tuple[float, float] | None = None
    advantage_bound: float | None = None
    success_bound: float | None = None

    @classmethod
    def of(
        cls,
        risk: Assessment,
        bounds: bool,
        subject: str,
        parameter: float | None,
        prior: str | None,
        within: float | None,
    ) -> Self:
        """What an assessment says; with `bounds`, also what the guarantee of a mechanism alone would say."""
        found = (risk.advantage, risk.success, risk.baseline)
        if not isinstance(risk, Risk):
            return cls(subject, parameter, prior, within, *found, "bound", risk.source)
        how: How = "exact" if risk.exact else "estimate" if risk.estimate else "enclosed"
        intervals = (None, None) if risk.exact else (risk.advantage_interval, risk.success_interval)
        limits = (risk.bounds.advantage, risk.bounds.success) if bounds else (None, None)
        return cls(subject, parameter, prior, within, *found, how, risk.source, *intervals, *limits)

    def along(self, axis: str) -> Any:
        """Its place on an axis: `subject`, `prior`, `within`, and `parameter` by whatever name."""
        return getattr(self, axis if axis in ("subject", "prior", "within") else "parameter")
