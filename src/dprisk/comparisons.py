"""What a promise is in the numbers that people compare: epsilon at a delta, mu, membership advantage, error rates."""

from __future__ import annotations

import math
from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from dprisk.answers import Row
from dprisk.conversions import membership_advantage, true_positive_rate
from dprisk.errors import DpriskError
from dprisk.guarantees import Guarantee
from dprisk.guarantees.base import Relation
from dprisk.mechanisms.some_records import OfSome
from dprisk.rounding import nearly_up

DELTA = 1e-5
FALSE_POSITIVE_RATES = (1e-3, 1e-2)
NEIGHBOURS = {"replace-one": "one record is replaced", "add-remove": "one record is added or removed"}
OF_SOME = "one of these records is replaced by another"


@dataclass(frozen=True)
class Comparisons:
    """A guarantee in the numbers that people compare, each at least the truth for neighbours by this `relation`.

    `epsilon` goes with `delta`, `mu` with Gaussian DP: infinite where there is none. `membership_advantage` is the
    total variation, and `true_positive_rates` are those of the best test at each false positive rate. All are about the
    records that are listed; `of_some` says that others may be possible, and `promised` is the epsilon that is
    promised of any record, where it is known and larger: at `promised_delta`, which is 0 where there is one. Unless
    they are `exact`, the mechanism may keep better ones than are known.
    """

    relation: Relation
    epsilon: float
    mu: float
    membership_advantage: float
    true_positive_rates: dict[float, float]
    delta: float = DELTA
    of_some: bool = False
    promised: float | None = None
    promised_delta: float = 0.0
    exact: bool = True

    @classmethod
    def of(cls, subject: Any, delta: float = DELTA) -> Comparisons:
        """Read off the trade-off curve of a mechanism or guarantee, whatever the neighbouring relation.

        >>> from dprisk import GaussianDP
        >>> Comparisons.of(GaussianDP(1.0)).epsilon
        4.377...
        """
        guarantee: Guarantee = subject.guarantee()
        promised: Guarantee | None = getattr(subject, "promised", None)
        of_some = promised is not None or isinstance(subject, OfSome)
        promised_delta = 0.0 if promised is None or math.isfinite(promised.epsilon_at(0.0)) else delta
        rates = {rate: true_positive_rate(guarantee, rate) for rate in FALSE_POSITIVE_RATES}
        return cls(
            guarantee.relation,
            subject.epsilon_at(delta),
            guarantee.implied_mu,
            membership_advantage(guarantee),
            rates,
            delta,
            of_some,
            None if promised is None else promised.epsilon_at(promised_delta),
            promised_delta,
            getattr(subject, "guarantee_is_exact", True),
        )

    @property
    def rows(self) -> list[Row]:
        """For a person, rounded up, bounds as such; without a mu where there is none."""
        neighbours = OF_SOME if self.of_some else NEIGHBOURS[self.relation]
        epsilon = (f"epsilon at delta {_short(self.delta)}", self.epsilon, f"kept when {neighbours}")
        at = f", at delta {_short(self.promised_delta)}" if self.promised_delta > 0 else ""
        whom = f"of any record, listed or not{at}"
        promised = [] if self.promised is None else [("epsilon promised", self.promised, whom)]
        mu = ("mu", self.mu, "is Gaussian DP with this mu")
        rates = [
            (f"TPR at FPR {rate:g}", share, f"found, at 1 false alarm in {1 / rate:g}")
            for rate, share in self.true_positive_rates.items()
        ]
        told = [
            *promised,
            epsilon,
            *([mu] if math.isfinite(self.mu) else []),
            ("membership advantage", self.membership_advantage, "telling two such data sets apart"),
            *rates,
        ]
        known = {what for what, *_ in promised} if not self.exact else {what for what, *_ in told}
        return [(what, _shown(much) if what in known else _at_most(much), means) for what, much, means in told]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: None stands for infinity."""
        return {
            "relation": self.relation,
            **({} if self.exact else {"only_bounds": True}),
            **({} if self.promised is None else {"epsilon_promised": _finite(self.promised)}),
            f"epsilon_at_delta_{_short(self.delta)}": _finite(self.epsilon),
            "mu": _finite(self.mu),
            "membership_advantage": self.membership_advantage,
            **{f"tpr_at_fpr_{rate:g}": share for rate, share in self.true_positive_rates.items()},
        }


class Compared:
    """An answer about a subject that makes a promise: what that is in the numbers that people compare."""

    @property
    @abstractmethod
    def _promises(self) -> Any:
        """The mechanism or guarantee that the answer is about."""

    @cached_property
    def comparisons(self) -> Comparisons | None:
        """Epsilon at delta 1e-5, mu, membership advantage and true positive rates; None where no curve is known."""
        try:
            return Comparisons.of(self._promises)
        except DpriskError:  # a mechanism too large to go through, or a noise whose curve nobody told
            return None

    def at_delta(self, delta: float) -> Self:
        """The same answer, its epsilon told at another delta.

        >>> from dprisk import GaussianDP, Prior, Threat, assess
        >>> assess(GaussianDP(1.0), Threat(Prior.uniform(2))).at_delta(1e-6).comparisons.epsilon
        4.886...
        """
        other = copy(self)
        vars(other)["comparisons"] = Comparisons.of(self._promises, delta)
        return other

    @property
    def _compares_quickly(self) -> bool:
        """Whether they cost little beside the answer itself; otherwise they are told only where they are asked for."""
        return True

    @property
    def _comparison_rows(self) -> list[Row]:
        if not self._compares_quickly and "comparisons" not in vars(self):
            return [("epsilon, mu, TPR", "not computed", "they would take long here: ask for `comparisons` in Python")]
        if self.comparisons is None:
            return [("epsilon, mu, TPR", "unknown", "no trade-off curve is known for this mechanism")]
        return self.comparisons.rows

    @property
    def compared(self) -> dict[str, Any]:
        """The comparisons by name, None for what is infinite; empty where they are unknown or would take long."""
        wanted = self._compares_quickly or "comparisons" in vars(self)
        return self.comparisons.to_dict() if wanted and self.comparisons else {}


def _shown(number: float) -> str:
    return nearly_up(number, 4) if math.isfinite(number) else "infinite"


def _at_most(number: float) -> str:
    return f"<= {_shown(number)}" if math.isfinite(number) else "unknown"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _short(number: float) -> str:
    return f"{number:g}".replace("e-0", "e-")
