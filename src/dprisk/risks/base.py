"""What a mechanism and a guarantee are both asked: how much the best attacker gains. Both answers read alike."""

from abc import abstractmethod
from functools import cached_property
from typing import Any

from dprisk.answers import Answer, Row
from dprisk.comparisons import Compared
from dprisk.pictures import Bar, Bars, draw
from dprisk.risks import sentences
from dprisk.risks.record import RecordRisk
from dprisk.rounding import plain
from dprisk.threat import Threat

FAR_MORE = 1.5  # times the advantage: what somebody gains who looks for one record is then told in the sentence too


class Assessment(Compared, Answer):
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
            *([("units", "differ", self.other_units)] if self.other_units else []),
            *self._found(),
            *self._comparison_rows,
        ]

    @property
    def other_units(self) -> str:
        """That the distance of a near guess is in other units than the noise, in words; empty where it is not."""
        return sentences.of_units(self._promises, self.threat)

    def most_exposed(self, count: int = 1) -> tuple[RecordRisk, ...]:
        """So many of the records from which who looks for them gains most, most first; none where records are numbers.

        Of those that are as exposed the rarest come first. Where the exposure of every record is out of reach, it is
        bounded by what is promised.
        """
        return ()

    @cached_property
    def worst_off(self) -> RecordRisk | None:
        """The record most at risk, to who looks for it; None where it is not known, or would take long to tell."""
        return next(iter(self.most_exposed()), None)

    def _of_worst_off(self) -> str:
        """A sentence to go on with, where who looks for one record gains far more; empty otherwise.

        The advantage is an average over people, and its attacker may never name a rare record. Where there is nothing
        to find out, that is said.
        """
        worst, aside = self.worst_off, f" {sentences.SETTLED}" if self.threat.is_settled else ""
        if worst is None or worst.advantage <= FAR_MORE * self.advantage + 1e-9:
            return aside
        return aside + sentences.of_worst_off(worst.sentence_of_worst(), worst.alike)

    def _rates(self) -> list[Row]:
        """The two rates that the advantage is the difference of, where they are known."""
        return []

    @abstractmethod
    def _shown(self, which: str) -> str:
        """One of the numbers as it is printed."""

    @abstractmethod
    def _found(self) -> list[Row]:
        """How the numbers were found, and what they compare with."""

    def picture(self) -> Bars:
        """What `plot` draws, as plain data."""
        words = {"success": "right with the report (success)", "advantage": "due to taking part (advantage)"}
        blind = Bar("right without the report (baseline)", self.baseline, plain(self.baseline))
        return Bars(self.about, (blind, *(self._bar(which, label) for which, label in words.items())))

    def _bar(self, which: str, label: str) -> Bar:
        interval = None if self.exact else getattr(self, f"{which}_interval", None)
        is_bound = not self.exact and interval is None
        return Bar(label, getattr(self, which), self._shown(which), is_bound, interval=interval)

    def plot(self, ax: Any = None) -> Any:
        """Draw baseline, success and advantage as bars with matplotlib; returns the axes. Bounds are hatched."""
        return draw(self.picture(), ax)

    def to_dict(self) -> dict[str, Any]:
        told = {"exact": self.exact, "threat": self.threat.describe(), "comparisons": self.compared or None}
        return super().to_dict() | told | {"worst_off": self.worst_off.to_dict() if self.worst_off else None}
