"""The verb: the same question for many situations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dprisk.assessment import assess
from dprisk.errors import DpriskError, ParameterError, PriorError, ThreatError, as_number, fail, require
from dprisk.mechanisms import Mechanism
from dprisk.sweeps.point import Point
from dprisk.sweeps.table import Sweep
from dprisk.tables import listed
from dprisk.threat import Density, Line, Prior, Threat
from dprisk.threat.success import Exact, Within
from dprisk.values import Adjustable, Parameter

Progress = Callable[[int, int, Point], None]  # cases done, cases in all, and the one that was just found
Place = tuple[str, float | None, str | None, float | None]  # subject, parameter, prior, within
Amounts = Iterable[float] | float


class SweepInterrupted(KeyboardInterrupt):
    """Somebody stopped the sweep; `sweep` has what was found until then."""

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep.sentence())
        self.sweep = sweep


def sweep(
    subject: Any,
    threat: Threat,
    *,
    prior: Mapping[str, Prior | Density] | None = None,
    within: Amounts | None = None,
    bounds: bool = False,
    thorough: bool = False,
    runs: int | None = None,
    alpha: float | None = None,
    seed: np.random.Generator | int | None = None,
    progress: Progress | None = None,
    **parameter: Amounts,
) -> Sweep:
    """What `assess` says over a parameter, over distances, over priors, and of several subjects side by side.

    `subject` is whatever `assess` takes, or several in a list or by name in a mapping. What is varied are the parameter
    that sets their noise, by its own name (`epsilon=[0.5, 1, 2]`, `sigma=`, `mu=`, `noise_multiplier=`), how near a
    guess must be (`within=[0, 10, 20]`), and the prior (a mapping from names to priors; one without labels takes those
    of the threat). All combinations are assessed, each exactly as `assess` would; what is not varied is as in the
    subject and the threat. With `bounds`, each mechanism is shown beside what its guarantee alone promises.

    `progress` is told after each case how many are done, how many there are, and what was found. Ctrl-C raises
    `SweepInterrupted`, whose `sweep` has what was found until then.

    >>> from dprisk import GRR, OUE, Prior, Threat
    >>> found = sweep([GRR(10, 1.0), OUE(10, 1.0)], Threat(Prior.uniform(10)), epsilon=[1, 2, 3])
    >>> found.column("advantage")
    [0.1319..., 0.3508..., 0.5905..., 0.0807..., 0.2175..., 0.3380...]
    """
    require(isinstance(threat, Threat), f"The second argument is a Threat, not {type(threat).__name__}.", ThreatError)
    require(progress is None or callable(progress), f"progress is a function of three arguments, not {progress!r}")
    subjects = _subjects(subject, bool(parameter))
    turned, values = _turned(subjects, parameter)
    distances: tuple[float | None, ...] = (None,) if within is None else _amounts("within", within)
    threats = {
        (name, distance): _threat(threat, belief, distance)
        for (name, belief), distance in product(_priors(prior, threat).items(), distances)
    }
    varied = {"subject": _are_several(subject), "prior": prior is not None, "within": within is not None}
    axes = (*(axis for axis, is_varied in varied.items() if is_varied), *([turned.name] if turned else []))
    require(len(axes) > 0, "Say what to vary: the parameter, as in epsilon=[0.5, 1, 2], or within= or prior=.")
    settings = {"runs": runs, "alpha": alpha, "seed": seed}
    cases = _Cases(subjects, turned, values, threats, {"thorough": thorough}, settings)
    found: dict[Place, Point] = {}

    def so_far() -> Sweep:
        order = ((name, value, *case) for name in subjects for case in threats for value in values)
        points = tuple(found[place] for place in order if place in found)
        return Sweep(points, axes, turned, cases.count)

    try:
        for place, risk in cases.assessed():
            with cases.told_at(place):
                found[place] = Point.of(risk, bounds, *place)
            if progress is not None:
                progress(len(found), cases.count, found[place])
    except KeyboardInterrupt:
        raise SweepInterrupted(so_far()) from None
    return so_far()


@dataclass(frozen=True)
class _Cases:
    """All combinations, in the order that is quickest: what is built for one value meets every threat before the next.

    A subject may be large or slow to build, and is held one at a time; a threat keeps what it has worked out about
    its records for all of them.
    """

    subjects: dict[str, Any]
    parameter: Parameter | None
    values: tuple[float | None, ...]
    threats: dict[tuple[str | None, float | None], Threat]
    settings: dict[str, Any]
    of_estimates: dict[str, Any]

    @property
    def count(self) -> int:
        return len(self.subjects) * len(self.values) * len(self.threats)

    def assessed(self) -> Iterator[tuple[Place, Any]]:
        for name, subject in self.subjects.items():
            settings = self.settings | (self.of_estimates if self._may_be_drawn(subject) else {})
            for value in self.values:
                with self.told_at((name, value, None, None)):
                    made = subject if value is None else subject.with_parameter(value)
                for case, threat in self.threats.items():
                    place = (name, value, *case)
                    with self.told_at(place):
                        risk = assess(made, threat, **settings)
                    yield place, risk

    def _may_be_drawn(self, subject: Any) -> bool:
        """Runs and seeds are for mechanisms; `assess` refuses them where there is none."""
        among = any(isinstance(one, Mechanism) for one in self.subjects.values())
        return isinstance(subject, Mechanism) or not among

    @contextmanager
    def told_at(self, place: Place) -> Iterator[None]:
        """Errors inside say where they came up."""
        name, value, prior, within = place
        try:
            yield
        except DpriskError as problem:
            parts = (
                name if len(self.subjects) > 1 else "",
                "" if self.parameter is None else f"{self.parameter.name} {value:g}",
                "" if prior is None else f"prior {prior}",
                "" if within is None else f"within {within:g}",
            )
            where = ", ".join(filter(None, parts))
            raise type(problem)(f"{where}: {problem}" if where else str(problem)) from problem


def _are_several(subject: Any) -> bool:
    return isinstance(subject, Mapping | list | tuple)


def _subjects(subject: Any, is_turned: bool) -> dict[str, Any]:
    """Each subject by its name: the given one, its kind, or, where that does not tell, the code that makes it."""
    if isinstance(subject, Mapping):
        require(len(subject) > 0, "There is nothing to sweep: the mapping of subjects is empty.")
        return {str(name): one for name, one in subject.items()}
    if not _are_several(subject):
        return {_kind(subject) if is_turned else _brief(subject): subject}
    require(len(subject) > 0, "There is nothing to sweep: the list of subjects is empty.")
    kinds = [_kind(one) for one in subject]
    names = [kind if kinds.count(kind) == 1 else _brief(one) for kind, one in zip(kinds, subject, strict=True)]
    require(
        len(set(names)) == len(names), "Two subjects read the same: name them, in a mapping from names to subjects."
    )
    return dict(zip(names, subject, strict=True))


def _kind(subject: Any) -> str:
    return type(subject).__name__


def _brief(subject: Any) -> str:
    return str(subject.brief() if isinstance(subject, Adjustable) else subject)


def _turned(subjects: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Parameter | None, tuple[float | None, ...]]:
    """The parameter that all subjects have, and its values; of one that is not given, None."""
    if not given:
        return None, (None,)
    has = {name: one.parameter if isinstance(one, Adjustable) else None for name, one in subjects.items()}
    if "eta" in given:
        fail("How near a guess must be is called `within` here.")
    require(len(given) == 1, f"One parameter is varied at a time; got {', '.join(given)}.")
    ((wanted, amounts),) = given.items()
    for name, parameter in has.items():
        own = "no parameter to vary" if parameter is None else f"the parameter {parameter.name}, not {wanted}"
        require(parameter is not None and parameter.name == wanted, f"{name} has {own}.", ParameterError)
    return next(iter(has.values())), _amounts(wanted, amounts)


def _amounts(name: str, given: Any) -> tuple[float, ...]:
    """Some numbers, each once."""
    amounts = listed(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    numbers = tuple(as_number(name, amount) for amount in amounts)
    require(len(numbers) > 0, f"{name} lists no number.")
    require(len(set(numbers)) == len(numbers), f"{name} lists a number twice.")
    return numbers


def _priors(given: Any, threat: Threat) -> Mapping[str | None, Any]:
    """The priors by name; without any, that of the threat."""
    if given is None:
        return {None: threat.prior}
    if not (isinstance(given, Mapping) and given):
        fail("prior is a mapping from names to priors, as in {'uniform': Prior.uniform(10)}.", PriorError)
    return {str(name): _labelled(one, threat.prior) for name, one in given.items()}


def _labelled(prior: Any, like: Any) -> Any:
    """A prior without labels is over the records of the threat."""
    unnamed = isinstance(prior, Prior) and prior.labels is None and isinstance(like, Prior)
    return prior.replace(labels=like.labels) if unnamed and prior.size == like.size and like.labels else prior


def _threat(threat: Threat, prior: Any, within: float | None) -> Threat:
    if within is None:
        return threat if prior is threat.prior else threat.replace(prior=prior)
    if isinstance(threat.success, Exact):
        rule: Within = Line(within)
    elif isinstance(threat.success, Within):
        rule = threat.success.replace(within=within)
    else:
        fail(f"A guess that is right {threat.success.describe()} has no one distance to vary.", ThreatError)
    return threat.replace(prior=prior, success=rule)
