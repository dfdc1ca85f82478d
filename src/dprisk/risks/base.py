"""What a mechanism and a guarantee are both asked: how much the best attacker gains. Both answers read alike."""

from abc import abstractmethod
from typing import Any

from dprisk.answers import Answer, Row
from dprisk.rounding import plain
from dprisk.threat import Threat


class Assessment(Answer):
    """What the best attacker gains.

    `advantage` (RAD) is success on a participant minus success on somebody who did not take part, `success` (ReRo)
    the best success with the output, `baseline` the best without. Each is of the attacker that is best at it.
    """

    threat: Threat

    @property
    @abstractmethod
    def advantage(self) -> float:
        """RAD."""

    @property
    @abstractmethod
    def success(self) -> float:
        """ReRo."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether advantage and success are those of the subject itself, neither measured nor bounded."""

    @property
    @abstractmethod
    def source(self) -> str:
        """What the advantage is computed by."""

    @property
    def baseline(self) -> float:
        """The best success without seeing the output."""
        return self.threat.baseline

    @property
    def normalised_advantage(self) -> float:
        """Advantage over 1 - kappa_pi: 1 means always right on participants and never on others (RAD section 4)."""
        most = 1 - self.threat.prior.collision_probability
        return self.advantage / most if most > 1e-15 else 0.0

    @property
    def numbers(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("advantage", "success", "baseline", "normalised_advantage")}

    @property
    def rows(self) -> list[Row]:
        normalised = f"{100 * self.normalised_advantage:.1f} %"
        known = "" if self.threat.knows.is_none or not self.threat.knows.is_all else "the record is known beforehand"
        return [
            ("baseline", plain(self.baseline), known or "guessed right without the report"),
            ("success (ReRo)", self._shown("success"), known or "guessed right with the report, at best"),
            *self._rates(),
            ("advantage (RAD)", self._shown("advantage"), "right on participants minus right on others"),
            ("normalised", normalised, "100 %: right on all participants, on no other"),
            *self._found(),
        ]

    def _rates(self) -> list[Row]:
        """The two rates that the advantage is the difference of, where they are known."""
        return []

    @abstractmethod
    def _shown(self, which: str) -> str:
        """One of the numbers as it is printed."""

    @abstractmethod
    def _found(self) -> list[Row]:
        """How the numbers were found, and what they compare with."""

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"exact": self.exact, "threat": self.threat.describe()}
