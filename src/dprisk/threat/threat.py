"""The threat: what the attacker believes, knows and wants."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from dprisk.errors import ThreatError, as_number, fail
from dprisk.tables import column, column_names, encode, rows_of
from dprisk.threat.density import Density
from dprisk.threat.kinds import Kinds, OnKinds
from dprisk.threat.knowledge import Knowledge, as_knowledge
from dprisk.threat.prior import Prior
from dprisk.threat.reach import Reach
from dprisk.threat.success import Attributes, Exact, Line, Ring, Success
from dprisk.threat.window_masses import WindowMasses, window_masses
from dprisk.types import FloatArray, Table
from dprisk.values import Value

ROUNDING = 1e-12  # of probabilities that add up to 1


@dataclass(frozen=True, eq=False, repr=False)
class Threat(Value):
    """A prior, the attacker's knowledge and its idea of success.

    `knows` is 'none', 'all', one group label for each record, or a `Knowledge`. A record that is any number in an
    interval has a `Density` as prior; then nothing is known and success is `Line(within)`.

    >>> Threat(Prior.uniform(4), knows=["f", "f", "m", "m"])
    Threat(prior=Prior(weights=[0.25, 0.25, 0.25, 0.25]), knows=['f', 'f', 'm', 'm'])
    """

    prior: Prior  # or a Density, which refuses what takes a list of records
    knows: Knowledge
    success: Success

    def __init__(
        self,
        prior: Prior | Density,
        knows: Knowledge | str | Iterable[Any] | None = "none",
        success: Success | None = None,
    ) -> None:
        if not isinstance(prior, Prior | Density):
            raise ThreatError(f"A threat starts with a Prior (or a Density, of numbers), not {type(prior).__name__}.")
        if success is not None and not isinstance(success, Success):
            raise ThreatError(f"`success` is a rule such as Exact() or Line(1.0), not {success!r}.")
        object.__setattr__(self, "prior", prior)
        if isinstance(prior, Density):
            _require_distance_only(knows, success)
            knows = Knowledge.none(1)
        else:
            knows = as_knowledge(knows, prior.size, prior.labels)
            (success or Exact()).require_places(prior)
        object.__setattr__(self, "knows", knows)
        object.__setattr__(self, "success", success or Exact())

    @classmethod
    def membership(cls, prior: Prior) -> Self:
        """The attacker knows the whole record and asks whether it took part."""
        return cls(prior, knows="all")

    @classmethod
    def reconstruction(cls, prior: Prior | Density, within: float | Success | None = None, space: str = "line") -> Self:
        """The attacker knows nothing and wants the record, exactly or within a distance.

        `within` is a distance on a `space` ("line" or "ring", see `Line` and `Ring`) or any `Success`.
        """
        ThreatError.unless(not isinstance(within, Success) or space == "line", "A Success brings its own space.")
        return cls(prior, success=within if isinstance(within, Success) else as_success(within, space))

    @classmethod
    def attributes(
        cls,
        table: Table,
        known: Sequence[str],
        secret: Sequence[str],
        within: Mapping[str, float] | None = None,
    ) -> Self:
        """The attacker knows some columns of the target's row and wants others.

        `table` is a data frame or a mapping from column name to values, one row a person. The records are its
        distinct rows, in sorted order, and the prior is how often each occurs.

        >>> people = {"sex": ["f", "f", "m", "m"], "ill": ["yes", "no", "no", "no"]}
        >>> Threat.attributes(people, known=["sex"], secret=["ill"])
        Threat(3 records, knows sex (one of 2 groups), right in ill, baseline 0.75)
        """
        names = column_names(table)
        ThreatError.unless(len(names) > 0, "The table has no columns.")
        known, secret = ([part] if isinstance(part, str) else list(part or ()) for part in (known, secret))
        rows = rows_of(table, names)
        ThreatError.unless(len(rows) > 0, "The table has no rows.")
        both = [name for name in known if name in secret]
        ThreatError.unless(not both, f"{both} cannot be known and secret at once.")
        codes, distinct = encode(rows)
        universe = {name: [row[i] for row in distinct] for i, name in enumerate(names)}
        return cls(
            Prior.from_counts(np.bincount(codes), distinct),
            knows=Knowledge.columns(universe, known) if known else "none",
            success=Attributes(universe, tuple(secret), dict(within or {})),
        )

    @property
    def interval(self) -> tuple[Density, float]:
        """What is believed of a record that is a number, and how near a guess must be."""
        density: Any = self.prior
        if not (isinstance(density, Density) and isinstance(self.success, Line)):
            fail("The records of this threat are listed, not numbers of an interval with a Density.", ThreatError)
        return density, self.success.within

    @property
    def has_numbers(self) -> bool:
        """Whether the records are all numbers of an interval, which cannot be listed."""
        return isinstance(self.prior, Density)

    @cached_property
    def windows(self) -> WindowMasses:
        """For records that are numbers, the lightest and the heaviest set that a guess is right about."""
        return window_masses(*self.interval)

    def require_listed(self) -> None:
        """Refuse records that are numbers of an interval, in the words of the density."""
        _ = self.prior.weights

    @cached_property
    def reach(self) -> Reach:
        """The sets of records that guesses can be right about, group by group."""
        return self.success.reach(self.prior, self.knows.groups)

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of records that it tells apart."""
        return Kinds.of(self.prior, self.knows.groups, None if self.success.is_exact else self.reach)

    @cached_property
    def essence(self) -> "Threat":
        """The plainest threat that is the same to every attacker: how it is spelled makes no difference to what holds.

        Its records are the `kinds`, its success is `Exact` where it comes to that, and groups that nobody is in are
        left out. Whatever holds of it for a guarantee holds of this one, and the other way round.

        >>> people = {"sex": ["f", "f", "m"], "ill": ["yes", "no", "no"]}
        >>> Threat.attributes(people, known=[], secret=["ill"]).essence
        Threat(2 records, knows nothing, right exactly, baseline 0.6667)
        """
        return self if self.has_numbers else self.over(self.kinds)

    def over(self, kinds: Kinds) -> "Threat":
        """The same threat over kinds of records, none of which it tells apart."""
        prior, rule = self.prior, self.success
        if rule.is_exact and kinds.are_records:
            return self
        if rule.is_exact or kinds.are_exact(self.knows.groups, self.reach):
            rule = Exact()
        elif kinds.are_records:
            return self
        else:
            rule = OnKinds(rule, prior, kinds.of_record, kinds.first)
        prior = prior if kinds.are_records else Prior(kinds.masses(prior))
        return Threat(prior, kinds.knowledge(self.knows), rule)

    @cached_property
    def is_exact(self) -> bool:
        """Whether success comes to naming the record, however it is spelled."""
        if self.success.is_exact or self.has_numbers:
            return self.success.is_exact
        every_record = Kinds.of(self.prior, self.knows.groups, None)
        return every_record.are_exact(self.knows.groups, self.reach)

    @cached_property
    def kappa_aux(self) -> float:
        """sum_x max_g pi(S_g and a^-1(x)): the best success of an attacker who sees no output."""
        if self.has_numbers:
            return self.windows.heaviest[1]
        if self.success.is_exact:
            heaviest = np.zeros(self.knows.n_groups)
            np.maximum.at(heaviest, self.knows.groups, self.prior.weights)
            return min(1.0, math.fsum(heaviest))
        return min(1.0, float(self.reach.best(self.reach.sums(self.prior.weights[:, None])).sum()))

    @property
    def baseline(self) -> float:
        """The same as `kappa_aux`, by its plain name."""
        return self.kappa_aux

    @cached_property
    def ball_masses(self) -> FloatArray:
        """pi(S_g), the prior mass of the ball of each guess, knowledge aside."""
        self.require_listed()
        everybody = np.zeros(self.prior.size, dtype=np.int64)
        masses = self.success.reach(self.prior, everybody).sums(self.prior.weights[:, None])[:, 0]
        return np.clip(masses, 0.0, 1.0)  # a ball that holds everything may add up to 1 and a rounding error

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to find out: one record is possible, or every guess is right about everybody.

        An attacker who knows the record still asks whether it took part.

        >>> Threat(Prior([1.0])).is_settled, Threat.membership(Prior([0.5, 0.5])).is_settled
        (True, False)
        """
        if self.has_numbers:
            return self.kappa_minus >= 1.0
        sure = 1.0 - ROUNDING
        return self.prior.support_size == 1 or (self.kappa_aux >= sure and self.kappa_minus >= sure)

    @property
    def kappa_minus(self) -> float:
        """The smallest prior mass of a ball S_g; for records that are numbers rounded down."""
        return self.windows.lightest[0] if self.has_numbers else float(self.ball_masses.min())

    @property
    def kappa_plus(self) -> float:
        """The largest prior mass of a ball S_g: the baseline of who knows nothing; for numbers rounded up."""
        return self.windows.heaviest[1] if self.has_numbers else float(self.ball_masses.max())

    @property
    def table(self) -> Table:
        """The attributes of every record, where the threat was made from a table."""
        if not isinstance(self.success, Attributes):
            fail("This threat was not made from a table.", ThreatError)
        return self.success.table

    def column(self, name: str) -> list[Any]:
        """One attribute of every record, where the threat was made from a table."""
        return column(self.table, name)

    def describe(self) -> dict[str, Any]:
        """The threat in words and numbers, for reports and JSON."""
        return {
            "records": self.prior.size if math.isfinite(self.prior.size) else repr(self.prior),
            "knows": self.knows.describe(),
            "right": self.success.describe(),
            "collision_probability": self.prior.collision_probability,
        }

    def _summary(self) -> str:
        records = f"{self.prior.size} records" if math.isfinite(self.prior.size) else repr(self.prior)
        return (
            f"Threat({records}, knows {self.knows.describe()}, "
            f"right {self.success.describe()}, baseline {self.baseline:.4g})"
        )


def _require_distance_only(knows: Any, success: Success | None) -> None:
    """Refuse what a record that is a number does not go with."""
    nothing = knows is None or (isinstance(knows, str) and knows == "none")
    ThreatError.unless(nothing, "For records that are numbers only knows='none' is possible; list some of them.")
    line = success is None or isinstance(success, Exact) or (isinstance(success, Line) and success.positions is None)
    ThreatError.unless(line, "Numbers of an interval lie on a line, where they are: success is Line(within).")
    ThreatError.unless(
        isinstance(success, Line) and success.within > 0,
        "No guess hits a number of an interval exactly: the distance `within` must be above 0, as in "
        "Threat.reconstruction(density, within=0.1).",
    )


def as_success(within: float | None, space: str = "line") -> Success:
    """A distance on a line or a ring as a `Success`; None means exactly."""
    ThreatError.unless(space in ("line", "ring"), f"space must be 'line' or 'ring', got {space!r}")
    if within is None:
        return Exact()
    eta = as_number("The distance `within`", within)
    return Line(eta) if space == "line" else Ring(eta)
