"""Guarantees from privacy accountants: privacy loss distributions, dp_accounting events, Opacus histories, OpenDP.

dp_accounting does the composition, and is imported when the first of these is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import GuaranteeError, TooLargeError, as_epsilon, as_number, as_whole, require
from dprisk.guarantees.base import Guarantee, Relation, _rates
from dprisk.guarantees.curves import Knots, from_profile, group_of_two
from dprisk.guarantees.notions import ZCDP, ApproxDP, GaussianDP, PureDP, TradeOff, _require_relation
from dprisk.tables import listed
from dprisk.types import FloatArray

GRID = 1e-4  # discretisation of the privacy loss; dp_accounting rounds up
SMALLEST_NOISE = 0.05  # below it a privacy loss distribution takes gigabytes
TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss(Guarantee):
    """A privacy loss distribution: anything with dp_accounting's `get_delta_for_epsilon` (and `self_compose`).

    dp_accounting does not store the neighbouring relation in the object (and takes add/remove unless told otherwise),
    so it must be said here.
    """

    pld: Any
    relation: Relation

    def __post_init__(self) -> None:
        require(
            hasattr(self.pld, "get_delta_for_epsilon"),
            f"A privacy loss distribution has get_delta_for_epsilon; {type(self.pld).__name__} has not.",
            GuaranteeError,
        )
        _require_relation(self.relation)

    def delta_at(self, epsilon: float) -> float:
        epsilon = as_epsilon(epsilon)
        return float(min(1.0, self.pld.get_delta_for_epsilon(float(epsilon))))

    def epsilon_at(self, delta: float) -> float:
        require(0 <= delta <= 1, f"delta must lie in [0, 1], got {delta}")
        if delta == 0 or not hasattr(self.pld, "get_epsilon_for_delta"):
            return super().epsilon_at(delta)
        return float(self.pld.get_epsilon_for_delta(delta))

    @cached_property
    def total_variation(self) -> float:
        return self.delta_at(0.0)

    @cached_property
    def _top(self) -> float:
        """An epsilon beyond which delta hardly falls."""
        top = 0.1
        while top < 200 and self.delta_at(top) > 1e-12:
            top *= 1.5
        return top

    def tradeoff(self, alpha: npt.ArrayLike) -> FloatArray:
        """At one place by the best tangent there, which is closer than the knots; at several by the knots."""
        place = _rates(alpha)
        if place.ndim > 0:
            return super().tradeoff(place)
        from scipy.optimize import minimize_scalar

        rate = float(place)

        def depth(epsilon: float) -> float:
            delta = self.delta_at(epsilon)
            return -max(1 - delta - math.exp(epsilon) * rate, (1 - delta - rate) * math.exp(-epsilon), 0.0)

        best = minimize_scalar(depth, bounds=(0.0, self._top), method="bounded", options={"xatol": 1e-5})
        return np.asarray(-min(best.fun, depth(0.0)))

    @cached_property
    def knots(self) -> Knots:
        top = self._top
        epsilons = np.unique(np.concatenate([np.linspace(0.0, top, 1000), np.geomspace(top / 1e4, top, 1000)]))
        return from_profile(epsilons, np.asarray(self.pld.get_delta_for_epsilon(epsilons), dtype=float))

    def compose(self, times: int) -> PrivacyLoss:
        times = as_whole("times", times)
        return PrivacyLoss(self.pld.self_compose(times), self.relation)

    def to_replace_one(self) -> Guarantee:
        """Two steps along the trade-off curve; accounting for replacement from the start is tighter."""
        return self if self.relation == "replace-one" else TradeOff(*group_of_two(*self.knots), linear=True)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "privacy loss", "total_variation": self.total_variation, "relation": self.relation}

    def __repr__(self) -> str:
        return f"PrivacyLoss(total variation {self.total_variation:.4g}, {self.relation})"


def dp_sgd(
    noise_multiplier: float, sample_rate: float, steps: int, relation: Relation = "replace-one", grid: float = GRID
) -> Guarantee:
    """DP-SGD with Poisson sampling: `steps` Gaussian mechanisms on random batches.

    `noise_multiplier` is the standard deviation of the noise over the clipping norm, as in Opacus. Under replacement
    two clipped gradients are up to two norms apart, and this is accounted for (theory, correction 1). Full batches are
    one Gaussian mechanism, exactly. The accountant rounds up, by about grid^2 times steps in total variation: below
    that, a finer `grid` tells more.
    """
    if sample_rate == 1:
        _require_step(noise_multiplier, sample_rate, steps)
        _require_relation(relation)
        distance = 2 if relation == "replace-one" else 1
        return GaussianDP(distance * math.sqrt(steps) / noise_multiplier, relation)
    return from_opacus([(noise_multiplier, sample_rate, steps)], relation, grid)


def from_opacus(
    history: Iterable[tuple[float, float, int]], relation: Relation = "replace-one", grid: float = GRID
) -> PrivacyLoss:
    """An Opacus accountant's history: tuples (noise_multiplier, sample_rate, steps). Poisson sampling is assumed."""
    from dp_accounting.pld import privacy_loss_distribution

    _require_relation(relation)
    total: Any = None
    for entry in listed(getattr(history, "history", history)):
        require(
            isinstance(entry, Sequence) and len(entry) == 3,
            f"A history holds tuples (noise_multiplier, sample_rate, steps), got {entry!r}.",
            GuaranteeError,
        )
        noise_multiplier, sample_rate, steps = entry
        _require_step(noise_multiplier, sample_rate, steps)
        require(
            noise_multiplier >= SMALLEST_NOISE,
            f"A noise multiplier of {noise_multiplier:g} is beyond the accountant; {SMALLEST_NOISE:g} is the least.",
            TooLargeError,
        )
        step = privacy_loss_distribution.from_gaussian_mechanism(
            noise_multiplier,
            sampling_prob=sample_rate,
            value_discretization_interval=grid,
            neighboring_relation=_neighbouring(relation),
        )
        phase = step.self_compose(steps)
        total = phase if total is None else total.compose(phase)
    require(total is not None, "The history is empty; there is nothing to account for.", GuaranteeError)
    return PrivacyLoss(total, relation)


def from_dp_event(event: Any, relation: Relation = "replace-one", grid: float = GRID) -> PrivacyLoss:
    """A dp_accounting `DpEvent`, accounted for under the given relation; refuses what dp_accounting cannot do."""
    from dp_accounting import UnsupportedEventError
    from dp_accounting.pld import PLDAccountant

    _require_relation(relation)
    accountant = PLDAccountant(_neighbouring(relation), grid)
    try:
        accountant.compose(event)
    except UnsupportedEventError as problem:
        other = " Try from_dp_event(event, 'add-remove').to_replace_one()." if relation == "replace-one" else ""
        message = f"dp_accounting cannot account for this event under {relation}: {problem}{other}"
        raise GuaranteeError(message) from problem
    return PrivacyLoss(_Accounted(accountant, grid), relation)


def from_opendp(measurement: Any, d_in: float | None = None) -> Guarantee:
    """An OpenDP measurement, by its privacy map at the distance of data sets that differ in one record.

    That distance is 2 for a symmetric or insert-delete distance and 1 for a change-one or Hamming distance; for any
    other input metric pass `d_in`, the distance that replacing one record can make.
    """
    metric = str(measurement.input_metric)
    if d_in is None:
        known = {"SymmetricDistance": 2, "InsertDeleteDistance": 2, "ChangeOneDistance": 1, "HammingDistance": 1}
        d_in = known.get(metric.split("(")[0])
        require(
            d_in is not None,
            f"How far does replacing one record move the input by {metric}? Pass d_in.",
            GuaranteeError,
        )
    loss, measure = measurement.map(d_in), str(measurement.output_measure)
    if measure.startswith("MaxDivergence"):
        return PureDP(float(loss))
    if measure.startswith("ZeroConcentratedDivergence"):
        return ZCDP(float(loss))
    if measure.startswith("Approximate(MaxDivergence"):
        return ApproxDP(float(loss[0]), float(loss[1]))
    if measure.startswith("Approximate(ZeroConcentratedDivergence") and loss[1] == 0:
        return ZCDP(float(loss[0]))
    readable = hasattr(loss, "delta") and not isinstance(loss, tuple)
    require(readable, f"dprisk cannot read a privacy loss under {measure}.", GuaranteeError)
    return PrivacyLoss(_Profile(loss), "replace-one")


def as_guarantee(subject: Any) -> Guarantee:
    """A guarantee from whatever carries one: a `Guarantee`, a privacy loss distribution, an event, a measurement."""
    if isinstance(subject, Guarantee):
        return subject
    require(
        not hasattr(subject, "get_delta_for_epsilon"),
        "A privacy loss distribution does not tell its neighbours: give PrivacyLoss(pld, 'replace-one'), or "
        "PrivacyLoss(pld, 'add-remove').to_replace_one().",
        GuaranteeError,
    )
    if hasattr(subject, "history"):
        return from_opacus(subject)
    if hasattr(subject, "ledger"):  # an accountant of dp_accounting: what it has accounted for
        return from_dp_event(subject.ledger)
    if hasattr(subject, "input_metric"):
        return from_opendp(subject)
    if type(subject).__module__.startswith("dp_accounting"):
        return from_dp_event(subject)
    raise GuaranteeError(
        f"{type(subject).__name__} is neither a mechanism nor a guarantee; give a Mechanism, a Guarantee, a "
        "dp_accounting event or privacy loss distribution, an Opacus accountant or an OpenDP measurement."
    )


def privacy_loss_of_knots(knots: Knots, relation: Relation) -> PrivacyLoss:
    """The distribution of the pair of outputs that a piecewise linear curve describes, with one output a segment."""
    from dp_accounting.pld import privacy_loss_distribution

    alpha, beta = knots
    lower, upper = np.append(np.diff(alpha), 0.0), np.append(-np.diff(beta), 1 - beta[0])
    logs = [np.log(np.maximum(mass / mass.sum(), TINY)) for mass in (lower, upper)]
    some = [{i: float(log) for i, log in enumerate(part) if log > math.log(1e-300)} for part in logs]
    pld = privacy_loss_distribution.from_two_probability_mass_functions(*some, value_discretization_interval=GRID)
    return PrivacyLoss(pld, relation)


def _require_step(noise_multiplier: float, sample_rate: float, steps: int) -> None:
    noise = as_number("noise_multiplier", noise_multiplier)
    require(0 < noise < math.inf, f"noise_multiplier must be finite and above 0, got {noise:g}")
    require(0 < as_number("sample_rate", sample_rate) <= 1, f"sample_rate must lie in (0, 1], got {sample_rate}")
    as_whole("steps", steps)


def _neighbouring(relation: Relation) -> Any:
    from dp_accounting import NeighboringRelation

    return {
        "replace-one": NeighboringRelation.REPLACE_ONE,
        "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    }[relation]


@dataclass(frozen=True)
class _Accounted:
    """A dp_accounting accountant seen as a privacy loss distribution."""

    accountant: Any
    grid: float

    def get_delta_for_epsilon(self, epsilon: Any) -> Any:
        return (
            np.vectorize(self.accountant.get_delta)(epsilon) if np.ndim(epsilon) else self.accountant.get_delta(epsilon)
        )

    def self_compose(self, times: int) -> _Accounted:
        import dp_accounting

        again = type(self.accountant)(self.accountant.neighboring_relation, self.grid)
        again.compose(dp_accounting.SelfComposedDpEvent(self.accountant.ledger, times))
        return _Accounted(again, self.grid)


@dataclass(frozen=True)
class _Profile:
    """An OpenDP privacy profile seen as a privacy loss distribution."""

    profile: Any

    def get_delta_for_epsilon(self, epsilon: Any) -> Any:
        return np.vectorize(self.profile.delta)(epsilon) if np.ndim(epsilon) else self.profile.delta(epsilon)

    def self_compose(self, times: int) -> Any:
        raise GuaranteeError("An OpenDP privacy profile cannot be composed here; compose the measurement in OpenDP.")
