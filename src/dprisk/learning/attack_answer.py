"""What an attack on the gradients of many trainings came out with: a table, a sentence, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dprisk.answers import Answer, Row
from dprisk.attacks.estimate import Estimate
from dprisk.bounds import Value
from dprisk.errors import fail, require
from dprisk.pictures import Curve, Curves, Panel, draw
from dprisk.pictures.picture import GREY, colour
from dprisk.risks import WorstCase, sentences
from dprisk.rounding import decimals_down, decimals_up, plain, significant_up
from dprisk.threat import Threat

WORDS = {"none": "nothing", "label": "the label", "all": "the record"}
ATTACKS = ("best success", "best advantage", "inner products")


@dataclass(frozen=True)
class Measured:
    """One amount of noise and one kind of knowledge: what attackers gained, and the most that they could.

    `by_attack` has the advantage and the success of each attacker: of the one that is right most often, of the one
    that gains most, and of the papers' rule by inner products (`SimplifiedAttack`). `printed` is the line of the
    papers' figures, which is no bound; None where they print none.
    """

    noise_multiplier: float
    epsilon: float
    knows: str
    threat: Threat
    by_attack: dict[str, Estimate]
    limits: WorstCase
    printed: float | None

    @property
    def success(self) -> Estimate:
        """Of the attacker that is right most often."""
        return self.by_attack["best success"]

    @property
    def advantage(self) -> Estimate:
        """Of the attacker that gains most."""
        return self.by_attack["best advantage"]

    @property
    def left_out(self) -> Value | None:
        """The tightest bound straight from the guarantee for adding or removing a record (theory, 3.9)."""
        return self._tightest(converted=False)

    @property
    def replaced(self) -> Value | None:
        """The tightest bound by way of replacing a record."""
        return self._tightest(converted=True)

    def _tightest(self, converted: bool) -> Value | None:
        fitting = [value for value in self.limits.on_advantage.values if value.converted == converted]
        return min(fitting, key=lambda value: value.number) if fitting else None

    @property
    def exceeds_printed(self) -> bool | None:
        """Whether the advantage is beyond the printed line by more than its interval."""
        return None if self.printed is None else self.advantage.advantage_interval[0] > self.printed

    @property
    def exceeds_bounds(self) -> bool:
        """Whether advantage or success is beyond what is proven by more than its interval: then something is broken."""
        over = self.advantage.advantage_interval[0] > self.limits.advantage
        return over or self.success.success_interval[0] > self.limits.success

    def to_dict(self) -> dict[str, Any]:
        """Everything about it, ready for JSON; one line of the table."""
        told: dict[str, Any] = {
            "noise_multiplier": self.noise_multiplier,
            "epsilon": self.epsilon,
            "knows": self.knows,
            "baseline": self.threat.baseline,
        }
        for name in ATTACKS:
            found, key = self.by_attack[name], name.replace(" ", "_")
            for which in ("advantage", "success"):
                low, high = getattr(found, f"{which}_interval")
                told |= {
                    f"{key}_{which}": getattr(found, which),
                    f"{key}_{which}_low": low,
                    f"{key}_{which}_high": high,
                }
        bounds = {"left_out": self.left_out, "replaced": self.replaced}
        told |= {f"advantage_bound_{name}": None if value is None else value.number for name, value in bounds.items()}
        told |= {"advantage_bound": self.limits.advantage, "success_bound": self.limits.success}
        return told | {"printed_line": self.printed, "exceeds_printed_line": self.exceeds_printed}


@dataclass(frozen=True, eq=False, repr=False)
class GradientAttack(Answer):
    """What somebody gains who sees every noisy gradient, for each amount of noise and each kind of knowledge."""

    cases: tuple[Measured, ...]
    runs: int
    alpha: float
    delta: float
    frozen: bool

    def case(self, knows: str, noise_multiplier: float | None = None) -> Measured:
        """The case of a knowledge, and of a noise multiplier if there are several."""
        found = [
            case for case in self.cases if case.knows == knows and noise_multiplier in (None, case.noise_multiplier)
        ]
        if len(found) != 1:
            fail(f"{len(found)} cases know {knows!r}; give one of the noise multipliers {self._levels}.")
        return found[0]

    @property
    def _levels(self) -> list[float]:
        return list(dict.fromkeys(case.noise_multiplier for case in self.cases))

    @property
    def about(self) -> str:
        size, held = self.cases[0].threat.prior.size, " with weights held fixed" if self.frozen else ""
        return (
            f"noisy gradients of {self.runs} trainings each{held}, {size} candidates, intervals at "
            f"{100 * (1 - self.alpha):g} %, epsilon at delta {self.delta:g}"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            "epsilon",
            "noise",
            "knows",
            "baseline",
            "success",
            "at most",
            "advantage",
            "at most",
            "inner products",
            "printed line",
        )

    @property
    def rows(self) -> list[Row]:
        return [_row(case) for case in self.cases]

    @property
    def numbers(self) -> dict[str, Any]:
        settings = {name: getattr(self, name) for name in ("runs", "alpha", "delta", "frozen")}
        return settings | {"cases": self.records}

    @property
    def records(self) -> list[dict[str, Any]]:
        """The table as plain data: a mapping from column to value for each case."""
        return [case.to_dict() for case in self.cases]

    def table(self) -> list[dict[str, Any]]:
        """The same as `records`."""
        return self.records

    def sentence(self) -> str:
        """The worst case in people, and whether the papers' line is exceeded anywhere."""
        worst = max(self.cases, key=lambda case: case.advantage.advantage)
        found = worst.advantage
        who = (
            f"An attacker who saw every noisy gradient{' at fixed weights' if self.frozen else ''}, knew all other "
            f"records and {WORDS[worst.knows]} of its target, "
            f"one of {worst.threat.prior.size} candidates,"
        )
        told = sentences.of_rates(worst.threat, who, found.success, found.advantage, is_estimate=True)
        return f"At epsilon {_epsilon(worst)}: {told[0].lower()}{told[1:]}{self._beyond()}"

    def _beyond(self) -> str:
        """Where values are beyond what is proven, which should not be, and beyond the papers' line, which may be."""
        cases = len(self.cases)
        broken, over = (sum(map(bool, found)) for found in zip(*map(_exceeds, self.cases), strict=True))
        told = ""
        if broken:
            told = (
                f" Values are beyond what is proven in {broken} of {cases} cases, by more than their intervals: a rare "
                "chance, or the training is not what the accountant was told."
            )
        if over:
            told += (
                f" The papers' line with mu = sqrt(T)/sigma is exceeded in {over} of {cases} cases: it is no bound on "
                "what somebody gains who compares with somebody else in the same place."
            )
        return told

    def picture(self, which: str = "advantage") -> Curves:
        """Advantage or success over epsilon, a panel for each kind of knowledge; bounds are dashed."""
        require(which in ("advantage", "success"), f"Draw 'advantage' or 'success', not {which!r}.")
        kinds = dict.fromkeys(case.knows for case in self.cases)
        panels = tuple(self._panel([case for case in self.cases if case.knows == knows], which) for knows in kinds)
        return Curves(f"{which.capitalize()} of who sees every noisy gradient", "epsilon", panels)

    def _panel(self, cases: Sequence[Measured], which: str) -> Panel:
        cases = sorted(cases, key=lambda case: case.epsilon)
        across = tuple(case.epsilon for case in cases)
        best, papers = ([case.by_attack[name] for case in cases] for name in (f"best {which}", "inner products"))
        low, high = zip(*(getattr(found, f"{which}_interval") for found in best), strict=True)
        measured = tuple(getattr(found, which) for found in best)
        limit = tuple(getattr(case.limits, which) for case in cases)
        curves = [
            Curve("best attack, measured", across, measured, colour(0), bold=True, low=low, high=high),
            Curve("inner products", across, tuple(getattr(found, which) for found in papers), colour(1)),
            Curve("bound", across, limit, colour(2), dashed=True),
        ]
        lines = tuple(case.printed for case in cases if case.printed is not None)
        if which == "advantage" and len(lines) == len(cases):
            curves.append(Curve("printed line, no bound", across, lines, GREY, dashed=True))
        return Panel(f"knows {WORDS[cases[0].knows]}", tuple(curves))

    def plot(self, which: str = "advantage", ax: Any = None) -> Any:
        """Draw the picture with matplotlib."""
        return draw(self.picture(which), ax)

    def __repr__(self) -> str:
        return f"GradientAttack({self.about})"


def _exceeds(case: Measured) -> tuple[bool, bool | None]:
    return case.exceeds_bounds, case.exceeds_printed


def _epsilon(case: Measured) -> str:
    """Rounded up, since it is a promise; but noise that was found for an epsilon has that one."""
    return significant_up(float(f"{case.epsilon:.9g}"), 4)


def _row(case: Measured) -> Row:
    return (
        _epsilon(case),
        f"{case.noise_multiplier:.4g}",
        WORDS[case.knows],
        plain(case.threat.baseline),
        _with_interval(case.success, "success"),
        significant_up(case.limits.success, 4),
        _with_interval(case.advantage, "advantage"),
        significant_up(case.limits.advantage, 4),
        plain(case.by_attack["inner products"].advantage),
        "" if case.printed is None else f"{plain(case.printed)}{' exceeded' if case.exceeds_printed else ''}",
    )


def _with_interval(found: Estimate, which: str) -> str:
    low, high = getattr(found, f"{which}_interval")
    return f"{getattr(found, which):.3f} [{decimals_down(low, 3)}, {decimals_up(high, 3)}]"
