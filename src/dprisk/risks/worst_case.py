"""The risk of a guarantee: every bound that applies, and the tightest."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dprisk import bounds
from dprisk.answers import Row
from dprisk.bounds.add_remove import record_left_out
from dprisk.errors import GuaranteeError, ThreatError, as_whole, require
from dprisk.exact.record import ALIKE, Exposure, compared_with, rarest_first, shares
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism, OnAttribute
from dprisk.risks import sentences
from dprisk.risks.base import Assessment
from dprisk.risks.record import RecordRisk
from dprisk.rounding import nearly_up, significant_up
from dprisk.threat import Threat

UPWARDS = 1e-15  # a few roundings, by which bounds are moved to the safe side


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Assessment):
    """The risk of a guarantee: bounds on every mechanism that keeps it, the tightest for each number.

    `thorough` also solves the optimisation problems for more than a few dozen records.
    """

    guarantee: Guarantee
    threat: Threat
    thorough: bool = False

    @property
    def _promises(self) -> Guarantee:
        return self.guarantee

    @cached_property
    def on_advantage(self) -> bounds.Evaluation:
        """Every bound on the advantage."""
        return bounds.evaluate(self.guarantee, self.threat, "advantage", self.thorough)

    @cached_property
    def on_success(self) -> bounds.Evaluation:
        """Every bound on the success."""
        return bounds.evaluate(self.guarantee, self.threat, "success", self.thorough)

    @cached_property
    def advantage_bound(self) -> bounds.Value:
        """The tightest bound on the advantage: one on the success, where that is smaller.

        Who is right about participants more often than about others, by so much, is right about them so often.
        """
        own = self.on_advantage.values[0]
        if own.attained or own.number <= self.baseline or own.number <= self.success_bound.number:
            return own  # no bound on the success is below what is attained, nor below the baseline
        return replace(self.success_bound, attained=False)

    @property
    def success_bound(self) -> bounds.Value:
        """The tightest bound on the success."""
        return self.on_success.values[0]

    @property
    def advantage(self) -> float:
        return min(self.advantage_bound.number, 1 - self.threat.essence.prior.collision_probability)

    @property
    def success(self) -> float:
        return min(self.success_bound.number, 1.0)

    @property
    def exact(self) -> bool:
        """False: these are bounds. Whether they are attained is told by `advantage_bound.attained`."""
        return False

    @property
    def about(self) -> str:
        return self.guarantee.brief()

    @property
    def source(self) -> str:
        return self.advantage_bound.source

    def _shown(self, which: str) -> str:
        return f"<= {nearly_up(getattr(self, which), 4)}"

    @property
    def left_out_or_in(self) -> float | None:
        """How far participants can be told from those left out: the total variation, if the guarantee is for that.

        The advantage compares with somebody else from the prior in the person's place.
        """
        told = sentences.is_membership(self.threat) and self.guarantee.relation == "add-remove"
        return self.guarantee.total_variation if told else None

    def _found(self) -> list[Row]:
        apart = self.left_out_or_in
        means = "the same if others are left out, not replaced by somebody from the prior"
        return [
            *([self.worst_off.row_of_worst] if self.worst_off else []),
            *([] if apart is None else [("left out or in", f"<= {significant_up(apart, 4)}", means)]),
            *(
                (f"{which} by", "attained" if value.attained else "bound", value.source)
                for which, value in (("success", self.success_bound), ("advantage", self.advantage_bound))
            ),
        ]

    def worst_mechanism(self, which: Literal["advantage", "success"] = "advantage") -> Mechanism | None:
        """A mechanism with this guarantee that attains the tightest bound, where one is known."""
        values = (self.on_advantage if which == "advantage" else self.on_success).values
        for value in values:
            as_tight = value.number <= values[0].number * (1 + 1e-9)
            if as_tight and value.attained and value.bound.worst:
                worst, kinds = value.bound.worst(self.guarantee, self.threat.essence), self.threat.kinds
                whole = worst if kinds.are_records else OnAttribute(worst, kinds.of_record)
                return whole.labelled(self.threat.prior.labels)
        return None

    def match_among(self, people: int) -> tuple[bounds.Value, bounds.Value]:
        """The tightest bounds on a guess that matches at least one of so many people, and a random one of them.

        For records drawn independently from the prior, and no knowledge of any of them.
        """
        people = as_whole("people", people)
        both: tuple[bounds.Bounded, ...] = ("match among many", "match of a random one")
        some, one = (bounds.evaluate(self.guarantee, self.threat, which, people=people) for which in both)
        for found in (some, one):
            require(len(found.values) > 0, f"This bound {next(iter(found.obstacles.values()), '')}.", ThreatError)
        return some.values[0], one.values[0]

    def of(self, record: Any) -> RecordRisk:
        """The most that an attacker gains who looks for one record (its label, or its number): theory 3.8.

        With w the probability of the record, TV the total variation and E = e^epsilon of pure DP, both for replacing,
        tau_z <= (1 - w) TV, and the belief in it rises to at most w E / (1 + w (E - 1)). From a guarantee for adding or
        removing one also tau_z <= (1 - w)(1 - 2 f(1/2)).
        """
        self.threat.require_listed()
        number = self.threat.prior.find(record)
        weight = float(compared_with(self.threat, number)[number])
        most, belief, by = math.inf, 1.0, ""
        if self.guarantee.relation == "add-remove":
            most, by = record_left_out(self.guarantee, weight), "(1 - prior)(1 - 2 f(1/2)), theory 3.8"
        with suppress(GuaranteeError):  # Renyi DP says too little about replacing a record
            replaced = self.guarantee.replaced
            if (other := (1 - weight) * replaced.total_variation) < most:
                most, by = other, "(1 - prior) times the total variation of replacing a record, theory 3.8"
            least = math.exp(-replaced.epsilon_at(0.0))
            belief = weight / (weight + (1 - weight) * least) if weight > 0 else 0.0
        advantage, posterior = (min(1.0, value * (1 + UPWARDS)) for value in (most, belief))
        return RecordRisk(self.about, self.threat, number, Exposure(advantage, None, posterior), by)

    def most_exposed(self, count: int = 1) -> tuple[RecordRisk, ...]:
        """Those of which the bound is largest: the rarest."""
        if self.threat.has_numbers:
            return ()
        alike = bool(np.nanmax(share := shares(self.threat)) - np.nanmin(share) <= ALIKE)
        worst = (self.of(self.threat.prior.name(int(number))) for number in rarest_first(self.threat)[:count])
        return tuple(replace(one, alike=alike) for one in worst)

    def sentence(self) -> str:
        who = sentences.attacker(self.threat)
        told = sentences.of_bounds(
            self.threat,
            f"{self.guarantee.whatever}, a{who[1:]}",
            self.success,
            self.baseline,
            self.advantage,
            self.left_out_or_in,
        )
        return told + self._of_worst_off()

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "guarantee": self.guarantee.to_dict(),
            "advantage_bound": self.advantage_bound.to_dict(),
            "success_bound": self.success_bound.to_dict(),
            "left_out_or_in": self.left_out_or_in,
            "worst_mechanism": (worst := self.worst_mechanism()) and worst.to_dict(),
            "bounds": [value.to_dict() for value in self.on_advantage.values + self.on_success.values],
            "obstacles": self.on_advantage.obstacles | self.on_success.obstacles,
        }

    def __repr__(self) -> str:
        most = f"advantage<={significant_up(self.advantage)}, success<={significant_up(self.success)}"
        return f"WorstCase({most}, baseline={self.baseline:.6g}, by {self.source})"
