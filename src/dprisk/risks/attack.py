"""The risk of one given attack, good or bad: what this attacker gains, not the best one."""

from dataclasses import dataclass
from typing import Any

from dprisk.answers import Row
from dprisk.risks import sentences
from dprisk.risks.risk import OfMechanism
from dprisk.rounding import plain


@dataclass(frozen=True, eq=False, repr=False)
class AttackRisk(OfMechanism):
    """The advantage and success of one attack on a mechanism: exact, or measured with intervals (`estimate`).

    `success` is how often it is right about participants, and `right_on_others` how often about people who did not take
    part. The attack OPTIMAL is the attacker of largest advantage; its success is what the papers call ReRo of the
    attack, at most the `success` of `Risk`.
    """

    attack: str

    @property
    def right_on_others(self) -> float:
        """How often the attack is right about people who did not take part."""
        return max(0.0, self.success - self.advantage)

    @property
    def exact(self) -> bool:
        return self.estimate is None

    @property
    def source(self) -> str:
        return "exact" if self.exact else "estimate"

    @property
    def about(self) -> str:
        return f"attack {self.attack} on {self.mechanism.brief()}"

    @property
    def numbers(self) -> dict[str, Any]:
        return super().numbers | {"right_on_others": self.right_on_others}

    @property
    def rows(self) -> list[Row]:
        return [
            ("success", self._shown("success"), "right about people who took part"),
            ("on others", plain(self.right_on_others), "right about people who did not"),
            ("advantage", self._shown("advantage"), "the difference"),
            ("baseline", plain(self.baseline), "the best success without the report"),
            *self._found(),
        ]

    def _found(self) -> list[Row]:
        if self.estimate:
            told = f"in {self.estimate.runs} runs, intervals at {100 * (1 - self.estimate.alpha):g} %"
            return [("computed", "measured", told)]
        return [("computed", "exactly", "no sampling error")]

    def sentence(self) -> str:
        who = f"The attack {self.attack}"
        return sentences.of_rates(self.threat, who, self.success, self.advantage, self.estimate is not None, can=False)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"attack": self.attack}

    def __repr__(self) -> str:
        kind = f"measured in {self.estimate.runs} runs" if self.estimate else "exact"
        return f"AttackRisk({self.attack}, advantage={self.advantage:.6g}, success={self.success:.6g}, {kind})"
