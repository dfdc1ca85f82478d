"""Guarantees from privacy accountants: dp_accounting events, Opacus histories, OpenDP measurements, DP-SGD.

A training with DP-SGD is accounted for adding or removing a record, as is usual, and for replacing one as soon as a
bound asks for it. dp_accounting does what is neither Gaussian noise nor a Poisson sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from dprisk.errors import GuaranteeError, TooLargeError, as_number, as_whole, require, require_relation
from dprisk.guarantees.base import Guarantee, Relation
from dprisk.guarantees.losses import GRID, Phase, SampledGaussians
from dprisk.guarantees.notions import ZCDP, ApproxDP, GaussianDP, PureDP
from dprisk.guarantees.profiles import PrivacyLoss
from dprisk.tables import listed
from dprisk.types import FloatArray
from dprisk.values import Adjustable, Parameter, refuse_kind

SMALLEST_NOISE = 0.05  # below it a privacy loss distribution takes gigabytes


def dp_sgd(
    noise_multiplier: float, sample_rate: float, steps: int, relation: Relation = "add-remove", grid: float = GRID
) -> Guarantee:
    """DP-SGD with Poisson sampling: `steps` Gaussian mechanisms on random batches.

    `noise_multiplier` is the standard deviation of the noise over the clipping norm, as in Opacus. Its epsilon, delta
    and curve are those for adding or removing a record, unless `relation` says "replace-one": then two clipped
    gradients are up to two norms apart (theory, correction 1). Bounds take whichever says more. Full batches are one
    Gaussian mechanism, exactly. The accountant rounds up, by about grid^2 times steps in total variation: below that, a
    finer `grid` tells more. Where there is so little noise that losses spread too far for the grid, it takes a coarser
    one, which rounds up more.
    """
    return from_opacus([(noise_multiplier, sample_rate, steps)], relation, grid)


@dataclass(frozen=True, eq=False, repr=False)
class DPSGD(Adjustable):
    """DP-SGD with Poisson sampling, its noise multiplier to be found; `dp_sgd` is a training whose noise is known."""

    sample_rate: float
    steps: int
    relation: Relation = "add-remove"

    def __post_init__(self) -> None:
        rate = as_number("sample_rate", self.sample_rate)
        require(0 < rate <= 1, f"sample_rate must lie in (0, 1], got {rate:g}")
        object.__setattr__(self, "steps", as_whole("steps", self.steps))
        require_relation(self.relation)

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
    history: Iterable[tuple[float, float, int]], relation: Relation = "add-remove", grid: float = GRID
) -> Guarantee:
    """An Opacus accountant's history: tuples (noise_multiplier, sample_rate, steps). Poisson sampling is assumed."""
    require_relation(relation)
    phases: list[Phase] = []
    for entry in listed(getattr(history, "history", history)):
        if not (isinstance(entry, Sequence) and len(entry) == 3):
            raise GuaranteeError(f"A history holds tuples (noise_multiplier, sample_rate, steps), got {entry!r}.")
        _require_step(*entry)
        phases.append((float(entry[0]), float(entry[1]), int(entry[2])))
    GuaranteeError.unless(len(phases) > 0, "The history is empty; there is nothing to account for.")
    return _trained(phases, relation, grid)


def _trained(phases: Iterable[Phase], relation: Relation, grid: float) -> Guarantee:
    """Trainings in phases; those on full batches are one Gaussian mechanism together."""
    sampled, full = [], 0.0
    for noise, rate, steps in phases:
        if rate == 1:
            full += steps / noise**2
            continue
        TooLargeError.unless(
            noise >= SMALLEST_NOISE,
            f"A noise multiplier of {noise:g} is beyond the accountant; {SMALLEST_NOISE:g} is the least.",
        )
        sampled.append((noise, rate, steps))
    replaced = relation == "replace-one"
    if not sampled:
        return GaussianDP((2 if replaced else 1) * math.sqrt(full), relation)
    whole = [(1 / math.sqrt(full), 1.0, 1)] if full else []
    return PrivacyLoss(SampledGaussians((*sampled, *whole), replaced, grid), relation)


def from_dp_event(event: Any, relation: Relation = "add-remove", grid: float = GRID) -> Guarantee:
    """A dp_accounting `DpEvent`, accounted for under the given relation; refuses what dp_accounting cannot do."""
    from dp_accounting import UnsupportedEventError
    from dp_accounting.pld import PLDAccountant

    require_relation(relation)
    phases = _phases(event)
    if phases:
        return _trained(phases, relation, grid)
    accountant = PLDAccountant(_neighbouring(relation), grid)
    try:
        accountant.compose(event)
    except UnsupportedEventError as problem:
        other = "replace-one" if relation == "add-remove" else "add-remove"
        message = f"dp_accounting cannot account for this event under {relation}: {problem} Perhaps under {other}?"
        raise GuaranteeError(message) from problem
    return PrivacyLoss(_Accounted(accountant, grid), relation)


def _phases(event: Any, times: int = 1) -> list[Phase] | None:
    """An event that is Gaussian noise, on Poisson samples or not, any number of times; None if it is anything else."""
    import dp_accounting

    if isinstance(event, dp_accounting.NoOpDpEvent):
        return []
    if isinstance(event, dp_accounting.SelfComposedDpEvent):
        return _phases(event.event, times * event.count)
    if isinstance(event, dp_accounting.ComposedDpEvent):
        parts = [_phases(part, times) for part in event.events]
        return None if None in parts else [phase for part in parts for phase in part or ()]
    rate, inner = 1.0, event
    if isinstance(event, dp_accounting.PoissonSampledDpEvent):
        rate, inner = float(event.sampling_probability), event.event
    if not isinstance(inner, dp_accounting.GaussianDpEvent) or inner.noise_multiplier == 0:
        return None
    return [(float(inner.noise_multiplier), rate, times)] if rate > 0 else []


def from_opendp(measurement: Any, d_in: float | None = None, relation: Relation = "replace-one") -> Guarantee:
    """An OpenDP measurement, by its privacy map at the distance of data sets that differ in one record.

    That distance is 2 for a symmetric or insert-delete distance and 1 for a change-one or Hamming distance; for any
    other input metric pass `d_in`, the distance that replacing one record can make, or with another `relation` adding
    or removing it.
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
    """A guarantee from whatever carries one: a `Guarantee`, an event, an accountant, its history, a measurement."""
    if isinstance(subject, Guarantee):
        return subject
    refuse_kind(subject)
    GuaranteeError.unless(
        not hasattr(subject, "get_delta_for_epsilon"),
        "A privacy loss distribution does not tell its neighbours: give PrivacyLoss(pld, 'add-remove') or "
        "PrivacyLoss(pld, 'replace-one').",
    )
    if hasattr(subject, "history") or _is_history(subject):
        return from_opacus(subject)
    if hasattr(subject, "ledger"):  # an accountant of dp_accounting: what it has accounted for
        return _of_event(subject.ledger)
    if hasattr(subject, "input_metric"):
        return from_opendp(subject)
    if type(subject).__module__.startswith("dp_accounting"):
        return _of_event(subject)
    raise GuaranteeError(
        f"{type(subject).__name__} is neither a mechanism nor a guarantee; give a Mechanism, a Guarantee, a "
        "dp_accounting event or privacy loss distribution, an Opacus accountant or its history [(noise_multiplier, "
        "sample_rate, steps)], or an OpenDP measurement."
    )


def _is_history(subject: Any) -> bool:
    """Whether it is a list of phases, right or wrong ones; one phase alone is not."""
    lists = (list, tuple)
    return isinstance(subject, lists) and len(subject) > 0 and all(isinstance(phase, lists) for phase in subject)


def _of_event(event: Any) -> Guarantee:
    """An event for adding or removing a record, or for replacing one where dp_accounting knows only that."""
    try:
        return from_dp_event(event)
    except GuaranteeError:
        return from_dp_event(event, "replace-one")


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

    @cached_property
    def profile(self) -> tuple[FloatArray, FloatArray]:
        """Some hundred points: the accountant is asked for one at a time."""
        top = 0.1
        while top < 200 and self.accountant.get_delta(top) > 1e-12:
            top *= 1.5
        epsilons = np.unique(np.concatenate([np.linspace(0.0, top, 200), np.geomspace(top / 1e4, top, 100)]))
        return epsilons, self.get_delta_for_epsilon(epsilons)

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
