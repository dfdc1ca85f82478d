"""What attacks on trained models found out about somebody's attribute, and how much of it is due to taking part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dprisk.answers import Answer, Row
from dprisk.assessment import assess
from dprisk.errors import require
from dprisk.guarantees import Guarantee
from dprisk.learning.attribute_attacks import WITHOUT_THE_MODEL
from dprisk.learning.attribute_values import Rate
from dprisk.pictures.picture import Bar, Bars
from dprisk.rounding import decimals_down, decimals_up, significant_up, sure
from dprisk.threat import Prior, Threat


@dataclass(frozen=True, eq=False)
class AttackFound:
    """One attack: how often it is right about people who took part (ReRo), and what taking part adds to that (RAD).

    `right_on_others` is how often it is right about people who did not. The advantage is the difference but for a
    factor 1 - 1/m, since its definition lets the other person be the same by chance. `by_value` has what taking part
    adds for the people with each value of the sensitive attribute. The intervals of one kind hold together, for all
    attacks of a study and all values.
    """

    name: str
    success: Rate
    advantage: Rate
    right_on_others: float
    by_value: Mapping[str, Rate]

    @property
    def most_exposed(self) -> str:
        """The value of whose people it is shown to gain most: by the lower end of the interval."""
        return max(self.by_value, key=lambda value: self.by_value[value].interval[0])


@dataclass(frozen=True, eq=False, repr=False)
class AttributeRisk(Answer):
    """Attacks on a sensitive attribute through trained models, measured over `trainings` of them.

    `others` people are in every training, and known to the attacker; of `people` on a list `targets` are added in each.
    The accuracies are of the models, on people they were trained on and on new ones; `commonest_class` is the accuracy
    of a model that always says the same. `guarantee` is what the training promises, None if nothing is known; its
    epsilon is told at `delta`.
    """

    data: str
    note: str
    sensitive: str
    others: int
    people: int
    targets: int
    trainings: int
    planned: int
    alpha: float
    found: tuple[AttackFound, ...]
    train_accuracy: float
    test_accuracy: float
    commonest_class: float
    guarantee: Guarantee | None
    delta: float = 1e-5

    def __getitem__(self, name: str) -> AttackFound:
        """What one attack found, by its name."""
        names = [attack.name for attack in self.found]
        require(name in names, f"There was no attack {name!r}; there were {', '.join(names)}.")
        return self.found[names.index(name)]

    @property
    def complete(self) -> bool:
        """Whether all trainings were done, not stopped before."""
        return self.trainings == self.planned

    @cached_property
    def bound(self) -> float | None:
        """The most that any attack can gain, whatever it sees of the training, knows and guesses; None if unknown.

        An attacker who knows everything gains at least as much as any other: it can say yes where the other succeeds.
        So it is the bound for membership, with as many equally likely people as may take the target's place.
        """
        if self.guarantee is None:
            return None
        threat = Threat.membership(Prior.uniform(self.people - self.targets + 1))
        return assess(self.guarantee, threat).advantage

    @cached_property
    def epsilon(self) -> float | None:
        """The epsilon of the training at `delta`, None if nothing is promised."""
        return None if self.guarantee is None else self.guarantee.epsilon_at(self.delta)

    @property
    def about(self) -> str:
        stopped = "" if self.complete else f" (stopped, of {self.planned})"
        epsilon = None if self.epsilon is None else f"epsilon {significant_up(self.epsilon, 3)} at delta {self.delta:g}"
        private = "" if epsilon is None else f" with {epsilon}"
        return (
            f"{self.sensitive} in {self.data}, {self.trainings} trainings{stopped}{private} on "
            f"{self.others + self.targets:,} people"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return "attack", "success (ReRo)", "on others", "advantage (RAD)", f"interval at {100 * (1 - self.alpha):g} %"

    @property
    def rows(self) -> list[Row]:
        told: list[Row] = [
            (
                attack.name,
                f"{attack.success.mean:.3f}",
                f"{attack.right_on_others:.3f}",
                _signed(attack.advantage.mean),
                _ends(attack.advantage),
            )
            for attack in self.found
        ]
        if self.bound is not None:
            told.append(("any attack", "", "", f"<= {decimals_up(self.bound, 3)}", ""))
        told.append(("model's label", f"{self.train_accuracy:.3f} train", f"{self.test_accuracy:.3f} test", "", ""))
        return told

    @property
    def numbers(self) -> dict[str, Any]:
        told: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "bound": self.bound}
        for attack in self.found:
            told[f"{attack.name} success"] = attack.success.mean
            told[f"{attack.name} right_on_others"] = attack.right_on_others
            told[f"{attack.name} advantage"] = attack.advantage.mean
            for which in ("success", "advantage"):
                low, high = getattr(attack, which).interval
                told |= {f"{attack.name} {which}_low": low, f"{attack.name} {which}_high": high}
        settings = ("train_accuracy", "test_accuracy", "commonest_class", "trainings", "others", "people", "targets")
        return told | {name: getattr(self, name) for name in settings} | {"alpha": self.alpha}

    def of_records(self) -> list[tuple[str, Any, float]]:
        """By the value of the sensitive attribute: what taking part adds, with the ends of its interval."""
        return [
            (what, value, number)
            for attack in self.found
            for value, rate in attack.by_value.items()
            for what, number in (
                (f"{attack.name} advantage", rate.mean),
                (f"{attack.name} advantage_low", rate.interval[0]),
                (f"{attack.name} advantage_high", rate.interval[1]),
            )
        ]

    @property
    def records(self) -> list[dict[str, Any]]:
        """A line for each attack, as plain data."""
        return [
            {
                "data": self.data,
                "epsilon": self.epsilon,
                "attack": attack.name,
                "success": attack.success.mean,
                "success_low": attack.success.interval[0],
                "success_high": attack.success.interval[1],
                "right_on_others": attack.right_on_others,
                "advantage": attack.advantage.mean,
                "advantage_low": attack.advantage.interval[0],
                "advantage_high": attack.advantage.interval[1],
                "train_accuracy": self.train_accuracy,
                "test_accuracy": self.test_accuracy,
                "trainings": self.trainings,
            }
            for attack in self.found
        ]

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"attacks": self.records, "by_value": self.by_record(), "note": self.note}

    def picture(self) -> Bars:
        """What each attack gains, with its interval, and the bound on all."""
        bars = [
            Bar(attack.name, attack.advantage.mean, _signed(attack.advantage.mean), interval=attack.advantage.interval)
            for attack in self.found
        ]
        if self.bound is not None:
            bars.append(Bar("any attack", self.bound, f"<= {decimals_up(self.bound, 3)}", open=True))
        return Bars(f"Advantage in guessing {self.sensitive}: {self.about}", tuple(bars))

    def sentence(self) -> str:
        parts = [
            self._of_the_model(),
            self._of_other_data(),
            *self._of_the_exposed(),
            self._of_all_attacks(),
            self.note,
        ]
        return " ".join(filter(None, parts))

    def _of_the_model(self) -> str:
        asking = [attack for attack in self.found if attack.name not in WITHOUT_THE_MODEL]
        best = max(asking or self.found, key=lambda attack: attack.advantage.mean)
        low, high = best.advantage.interval
        among = f"{best.name}, which gained most of the attacks that ask the model," if len(asking) > 1 else best.name
        return (
            f"In {self.trainings} trainings {among} was right about the {self.sensitive} of "
            f"{round(1000 * best.success.mean)} of 1000 people who took part, and of "
            f"{round(1000 * best.right_on_others)} of 1000 who did not: taking part adds between "
            f"{decimals_down(1000 * low, 0)} and {decimals_up(1000 * high, 0)} of 1000 ({sure(self.alpha)})."
        )

    def _of_other_data(self) -> str:
        named = {"majority": "the commonest value", "imputation": "imputation from other people's data"}
        told = [
            f"{named[attack.name]} was right about {round(1000 * attack.success.mean)} of 1000"
            for attack in self.found
            if attack.name in named
        ]
        return f"Without the model, {' and '.join(told)}." if told else ""

    def _of_the_exposed(self) -> list[str]:
        """Whose people some attack is shown to gain on, where it is shown of any."""
        shown = []
        for attack in self.found:
            low = attack.by_value[attack.most_exposed].interval[0]
            if low > 0:
                whose = f"people whose {self.sensitive} is {attack.most_exposed}"
                shown.append(f"On {whose}, {attack.name} gains at least {decimals_down(1000 * low, 0)} of 1000.")
        return shown

    def _of_all_attacks(self) -> str:
        if self.bound is None:
            return "Nothing is known of what the training promises: other attacks may gain more."
        most = decimals_up(1000 * self.bound, 0)
        over = [attack.name for attack in self.found if attack.advantage.interval[0] > self.bound]
        if over:
            return (
                f"By what the training promises no attack gains more than {most} of 1000, but {', '.join(over)} did, "
                "by more than the interval: a rare chance, or the training does not keep its promise."
            )
        return f"Other attacks may gain more, but by what the training promises none gains more than {most} of 1000."

    def __repr__(self) -> str:
        told = ", ".join(f"{attack.name}: {attack.advantage.mean:.3f}" for attack in self.found)
        return f"AttributeRisk({self.sensitive} in {self.data}, advantage of {told}, {self.trainings} trainings)"


def _signed(value: float) -> str:
    return f"{value:+.3f}"


def _ends(rate: Rate) -> str:
    low, high = rate.interval
    return f"[{decimals_down(low, 3)}, {decimals_up(high, 3)}]"
