"""The risk of one named record: what an attacker gains who looks for it and for nothing else."""

from dataclasses import dataclass
from typing import Any

from dprisk.answers import Answer, Row
from dprisk.attacks.one_record import EstimatedExposure
from dprisk.exact.record import Exposure, compared_with
from dprisk.risks import sentences
from dprisk.rounding import nearly_up, plain, significant_up
from dprisk.threat import Threat
from dprisk.threat.prior import written


@dataclass(frozen=True, eq=False, repr=False)
class RecordRisk(Answer):
    """What an attacker gains who asks of somebody "is it this record, or not?" (theory, section 3.8).

    It says yes to participants with the record with probability `yes_on_record`, and to those with any record, drawn
    from the prior (within the group, where the attacker knows it), with `yes_on_others`. The `advantage` is the
    difference, the largest there is, and `largest_posterior` the most that any output makes it believe, up from `prior`
    (None where that is not known). Of a guarantee only bounds are known: then there are no rates.
    """

    subject: str
    threat: Threat
    number: int
    exposure: Exposure
    bounded_by: str = ""  # of a guarantee: what the advantage is at most
    alike: bool = False  # of the one most at risk: whether every record is as much

    @property
    def record(self) -> Any:
        """The label of the record, or its number where there are no labels."""
        return self.threat.prior.name(self.number)

    @property
    def prior(self) -> float:
        """What the attacker believes of the record before the report."""
        return float(compared_with(self.threat, self.number)[self.number])

    @property
    def advantage(self) -> float:
        """How much more often the attacker says yes to the record than to any: exact, an estimate, or a bound."""
        return self.exposure.advantage

    @property
    def advantage_interval(self) -> tuple[float, float]:
        """Where the advantage lies: an exact one is its own interval."""
        if self.estimate is not None:
            return self.estimate.advantage_interval
        return self.advantage if self.exact else 0.0, self.advantage

    @property
    def yes_on_record(self) -> float | None:
        """How often the attacker says yes to participants with the record."""
        return self.exposure.yes

    @property
    def yes_on_others(self) -> float | None:
        """How often it says yes to participants with any record."""
        return None if self.exposure.yes is None else max(0.0, self.exposure.yes - self.advantage)

    @property
    def largest_posterior(self) -> float | None:
        """The most that an output makes the attacker believe; None where that is not known."""
        return self.exposure.largest_posterior

    @property
    def estimate(self) -> EstimatedExposure | None:
        """Runs, alpha and intervals of a Monte Carlo result; None where the result is computed."""
        return self.exposure if isinstance(self.exposure, EstimatedExposure) else None

    @property
    def exact(self) -> bool:
        """Whether the numbers are those of the subject itself, neither measured nor bounded."""
        return self.estimate is None and self.exposure.yes is not None

    @property
    def about(self) -> str:
        return f"record {written(self.record)}, {self.subject}"

    @property
    def among(self) -> str:
        """Where those come from whom people with the record are compared with, in words."""
        knows = self.threat.knows
        if knows.is_none or knows.is_all:
            return ""
        name = knows.names[knows.groups[self.number]]
        return f" from the group {written(name)}"

    @property
    def numbers(self) -> dict[str, Any]:
        names = ("advantage", "yes_on_record", "yes_on_others", "prior", "largest_posterior")
        return {name: getattr(self, name) for name in names}

    @property
    def rows(self) -> list[Row]:
        found = [("advantage", self._shown(), "the difference, by who looks for this record")]
        if self.yes_on_record is not None and self.yes_on_others is not None:
            found = [
                ("yes on record", plain(self.yes_on_record), "said of participants who have it"),
                ("yes on others", plain(self.yes_on_others), f"said of participants at random{self.among}"),
                *found,
            ]
        found.append(("prior", plain(self.prior), "how likely it is without the report"))
        if self.largest_posterior is not None:
            most = plain(self.largest_posterior)
            if self.exposure.yes is None:
                most = f"<= {significant_up(self.largest_posterior, 4)}"
            found.append(("largest posterior", most, "how likely a report can make it, at most"))
        return [*found, self._how()]

    @property
    def row_of_worst(self) -> Row:
        """The record most at risk in a row; the largest bound is one on every record."""
        looked_for = f"if looked for{sentences.among_alike(self.threat)}"
        whom = f"any record, {looked_for}: all alike" if self.alike else f"{written(self.record)}, {looked_for}"
        whom = whom if self.exact else f"any record, {looked_for}, by the promise"
        return "most at risk", self._shown(), whom

    def _shown(self) -> str:
        if self.estimate is not None:
            low, high = self.advantage_interval
            return f"{plain(self.advantage)} [{plain(low)}, {plain(high)}]"
        return plain(self.advantage) if self.exact else f"<= {nearly_up(self.advantage, 4)}"

    def _how(self) -> Row:
        if self.estimate is not None:
            told = f"from {self.estimate.runs} outputs, intervals at {100 * (1 - self.estimate.alpha):g} %"
            return "computed", "estimate", told
        if not self.exact:
            return "computed", "bound", self.bounded_by
        if self.exposure.is_proven:
            return "computed", "exactly", "no sampling error"
        return "computed", "numerically", f"error about {self.exposure.error:.0e}"

    @property
    def _name(self) -> str:
        return f"record {self.number}" if self.threat.prior.labels is None else written(self.record)

    def sentence(self) -> str:
        is_estimate = self.estimate is not None
        told = sentences.of_record(self._name, self.among, self.yes_on_record, self.advantage, is_estimate)
        if not self.largest_posterior:
            return told
        return f"{told} {sentences.of_belief(self.prior, self.largest_posterior, self.exposure.yes is None)}".rstrip()

    def sentence_of_worst(self) -> str:
        """The same of the record most at risk, beliefs aside; the largest bound is one on every record."""
        if self.exact and not self.alike:
            beyond = self.among and ", beyond what was known"  # which may tell more of others than the report does
            name = f"{self._name} (no record is more at risk{beyond})"
            return sentences.of_record(name, self.among, self.yes_on_record, self.advantage)
        among = self.among and " from those of whom the same is known"
        return sentences.of_any_record(among, self.advantage, self.exact)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "record": self.record if isinstance(self.record, bool | int | float | str) else written(self.record),
            "exact": self.exact,
            "estimate": self.estimate.to_dict() if self.estimate else None,
            "numerical_error": self.exposure.error if self.exact else None,
            "threat": self.threat.describe(),
        }

    def __repr__(self) -> str:
        kind = "estimate" if self.estimate else "exact" if self.exact else "bound"
        return f"RecordRisk({self.record!r}, advantage={self.advantage:.6g}, {kind})"
