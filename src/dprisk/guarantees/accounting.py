"""Guarantees from privacy accountants: dp_accounting events, Opacus histories, OpenDP measurements, DP-SGD.

dp_accounting does the composition, and is imported when the first of these is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dprisk.errors import GuaranteeError, TooLargeError, as_number, as_whole, require, require_relation
from dprisk.guarantees.base import Guarantee, Relation
from dprisk.guarantees.notions import ZCDP, ApproxDP, GaussianDP, PureDP
from dprisk.guarantees.profiles import GRID, PrivacyLoss
from dprisk.tables import listed
from dprisk.values import Adjustable, Parameter

SMALLEST_NOISE = 0.05  # below it a privacy loss distribution takes gigabytes


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
        require_relation(relation)
        distance = 2 if relation == "replace-one" else 1
        return GaussianDP(distance * math.sqrt(steps) / noise_multiplier, relation)
    return from_opacus([(noise_multiplier, sample_rate, steps)], relation, grid)


@dataclass(frozen=True, eq=False, repr=False)
class DPSGD(Adjustable):
    """DP-SGD with Poisson sampling, its noise multiplier to be found."""

    sample_rate: float
    steps: int
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        rate = as_number("sample_rate", self.sample_rate)
        require(0 < rate <= 1, f"sample_rate must lie in (0, 1], got {rate:g}")
        object.__setattr__(self, "steps", as_whole("steps", self.steps))

    @property
    def parameter(self) -> Parameter:
        return Parameter.noise("noise_multiplier", math.nan)

    def with_parameter(self, value: float) -> Guarantee:
        """The guarantee of a training with this noise multiplier."""
        return self._on_grid(value, GRID)

    def _on_grid(self, noise_multiplier: float, grid: float) -> Guarantee:
        return dp_sgd(noise_multiplier, self.sample_rate, self.steps, self.relation, grid)

    @property
    def sketches(self) -> tuple[Callable[[float], Guarantee], ...]:
        """The central limit, and the accountant on two coarse grids; full batches need none."""
        if self.sample_rate == 1:
            return ()
        return self._limit, partial(self._on_grid, grid=1e-3), partial(self._on_grid, grid=5e-4)

    def extrapolate(self, roots: Sequence[float]) -> float:
        """The accountant's error falls with the square of its grid: from 1e-3 and 5e-4 on to 1e-4."""
        return roots[2] + (roots[2] - roots[1]) * (0.25 - 0.01) / (1 - 0.25)

    @property
    def without_noise(self) -> Guarantee:
        """Without any noise a record still shows only if it is in some batch."""
        return ApproxDP(0.0, 1 - (1 - self.sample_rate) ** self.steps, self.relation)

    def _limit(self, noise_multiplier: float) -> Guarantee:
        """Many small steps are nearly Gaussian DP (Bu, Dong, Long, Su 2020)."""
        distance = 2 if self.relation == "replace-one" else 1
        step = math.expm1(min(50.0, 1 / noise_multiplier**2))
        return GaussianDP(min(100.0, distance * self.sample_rate * math.sqrt(self.steps * step)), self.relation)


def from_opacus(
    history: Iterable[tuple[float, float, int]], relation: Relation = "replace-one", grid: float = GRID
) -> PrivacyLoss:
    """An Opacus accountant's history: tuples (noise_multiplier, sample_rate, steps). Poisson sampling is assumed."""
    from dp_accounting.pld import privacy_loss_distribution

    require_relation(relation)
    total: Any = None
    for entry in listed(getattr(history, "history", history)):
        if not (isinstance(entry, Sequence) and len(entry) == 3):
            raise GuaranteeError(f"A history holds tuples (noise_multiplier, sample_rate, steps), got {entry!r}.")
        noise_multiplier, sample_rate, steps = entry
        _require_step(noise_multiplier, sample_rate, steps)
        TooLargeError.unless(
            noise_multiplier >= SMALLEST_NOISE,
            f"A noise multiplier of {noise_multiplier:g} is beyond the accountant; {SMALLEST_NOISE:g} is the least.",
        )
        step = privacy_loss_distribution.from_gaussian_mechanism(
            noise_multiplier,
            sampling_prob=sample_rate,
            value_discretization_interval=grid,
            neighboring_relation=_neighbouring(relation),
        )
        phase = step.self_compose(steps)
        total = phase if total is None else total.compose(phase)
    GuaranteeError.unless(total is not None, "The history is empty; there is nothing to account for.")
    return PrivacyLoss(total, relation)


def from_dp_event(event: Any, relation: Relation = "replace-one", grid: float = GRID) -> PrivacyLoss:
    """A dp_accounting `DpEvent`, accounted for under the given relation; refuses what dp_accounting cannot do."""
    from dp_accounting import UnsupportedEventError
    from dp_accounting.pld import PLDAccountant

    require_relation(relation)
    accountant = PLDAccountant(_neighbouring(relation), grid)
    try:
        accountant.compose(event)
    except UnsupportedEventError as problem:
        other = " Try from_dp_event(event, 'add-remove').to_replace_one()." if relation == "replace-one" else ""
        message = f"dp_accounting cannot account for this event under {relation}: {problem}{other}"
        raise GuaranteeError(message) from problem
    return PrivacyLoss(_Accounted(accountant, grid), relation)


def from_opendp(measurement: Any, d_in: float | None = None, relation: Relation = "replace-one") -> Guarantee:
    """An OpenDP measurement, by its privacy map at the distance of data sets that differ in one record.

    That distance is 2 for a symmetric or insert-delete distance and 1 for a change-one or Hamming distance; for any
    other input metric pass `d_in`, the distance that replacing one record can make, or with another `relation` adding or
    removing it.
    """
    require_relation(relation)
    metric = str(measurement.input_metric)
    if d_in is None:
        GuaranteeError.unless(relation == "replace-one", "How far does adding one record move the input? Pass d_in.")
        known = {"SymmetricDistance": 2, "InsertDeleteDistance": 2, "ChangeOneDistance": 1, "HammingDistance": 1}
        d_in = known.get(metric.split("(")[0])
        if d_in is None:
            raise GuaranteeError(f"How far does replacing one record move the input by {metric}? Pass d_in.")
    loss, measure = measurement.map(d_in), str(measurement.output_measure)
    if measure.startswith("MaxDivergence"):
        return PureDP(float(loss), relation)
    if measure.startswith("ZeroConcentratedDivergence"):
        return ZCDP(float(loss), relation)
    if measure.startswith("Approximate(MaxDivergence"):
        return ApproxDP(float(loss[0]), float(loss[1]), relation)
    if measure.startswith("Approximate(ZeroConcentratedDivergence") and loss[1] == 0:
        return ZCDP(float(loss[0]), relation)
    readable = hasattr(loss, "delta") and not isinstance(loss, tuple)
    GuaranteeError.unless(readable, f"dprisk cannot read a privacy loss under {measure}.")
    return PrivacyLoss(_Profile(loss), relation)


def as_guarantee(subject: Any) -> Guarantee:
    """A guarantee from whatever carries one: a `Guarantee`, a privacy loss distribution, an event, a measurement."""
    if isinstance(subject, Guarantee):
        return subject
    GuaranteeError.unless(
        not hasattr(subject, "get_delta_for_epsilon"),
        "A privacy loss distribution does not tell its neighbours: give PrivacyLoss(pld, 'replace-one'), or "
        "PrivacyLoss(pld, 'add-remove').to_replace_one().",
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


def _require_step(noise_multiplier: float, sample_rate: float, steps: int) -> None:
    noise = as_number("noise_multiplier", noise_multiplier)
    require(0 < noise < math.inf, f"noise_multiplier must be finite and above 0, got {noise:g}")
    require(0 < as_number("sample_rate", sample_rate) <= 1, f"sample_rate must lie in (0, 1], got {sample_rate}")
    as_whole("steps", steps)


def _neighbouring(relation: Relation) -> Any:
    from dp_accounting import NeighboringRelation

    replaced = relation == "replace-one"
    return NeighboringRelation.REPLACE_ONE if replaced else NeighboringRelation.ADD_OR_REMOVE_ONE


@dataclass(frozen=True)
class _Accounted:
    """A dp_accounting accountant seen as a privacy loss distribution."""

    accountant: Any
    grid: float

    def get_delta_for_epsilon(self, epsilon: Any) -> Any:
        return np.vectorize(self.accountant.get_delta, otypes=[float])(epsilon)

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
        return np.vectorize(self.profile.delta, otypes=[float])(epsilon)

    def self_compose(self, times: int) -> Any:
        raise GuaranteeError("An OpenDP privacy profile cannot be composed here; compose the measurement in OpenDP.")
