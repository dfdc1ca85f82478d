"""The mechanisms of diffprivlib: objects with `randomise`.

Most take the value to be randomised. `Exponential` and `PermuteAndFlip` hold the utilities of the candidates instead:
their records are lists of utilities, and a mechanism is built for each. `Vector` takes a function and gives one back,
whose minimum is what is published: its records are such functions, and the output is where the minimum is.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dprisk.auditing.code.adapted import Adapted, OneRecord, span, widest
from dprisk.auditing.code.randomness import random_state
from dprisk.errors import TargetError, fail
from dprisk.guarantees import ApproxDP, Guarantee, PureDP


def randomiser(mechanism: Any, records: Sequence[Any] | None) -> Adapted:
    """A mechanism with `randomise`.

    One that was given a `random_state` is built anew with another one for each block; one without draws from the
    operating system, as it would in use, and is run as it is.
    """
    call = _Randomise(mechanism)
    return Adapted(
        name=type(mechanism).__name__,
        library="diffprivlib" if type(mechanism).__module__.startswith("diffprivlib") else type(mechanism).__module__,
        call=call,
        claim=_claim_within_sensitivity(mechanism, records),
        reproducible=call.is_seeded,
        note="" if call.is_seeded else "Without a random_state diffprivlib draws from the operating system.",
    )


class _Randomise:
    """`randomise` of a mechanism; a seeded one gets another seed for each block, the other is built anew elsewhere."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism, self.is_seeded = mechanism, getattr(mechanism, "random_state", None) is not None
        if self.is_seeded:
            _constructor_arguments(mechanism)  # refuses one that does not tell

    def seeded(self, seed: int) -> OneRecord:
        """The function for a block, with a random state of this seed if it had one at all."""
        mechanism = self.mechanism
        if self.is_seeded:
            mechanism = _rebuilt(mechanism, random_state=random_state(seed))
        return _of_one_record(mechanism)

    def __call__(self, record: Any) -> Any:
        return _of_one_record(self.mechanism)(record)

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"random_state": 0} if self.is_seeded else {}  # replaced in each block
        return _build_randomise, (type(self.mechanism), _constructor_arguments(self.mechanism) | state)


def _of_one_record(mechanism: Any) -> OneRecord:
    """The mechanism as a function of what its records are."""
    if hasattr(mechanism, "utility"):
        return _Choose(mechanism)
    if hasattr(mechanism, "function_sensitivity"):
        return partial(_minimum, mechanism)
    return mechanism.randomise  # type: ignore[no-any-return]


class _Choose:
    """A candidate, chosen by the utilities that are the record."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism
        self.built: dict[tuple[float, ...], Any] = {}

    def __call__(self, record: Any) -> Any:
        utilities = tuple(record)
        if utilities not in self.built:
            state = self.mechanism.random_state
            self.built[utilities] = _rebuilt(self.mechanism, utility=list(utilities), random_state=state)
        return self.built[utilities].randomise()


def _minimum(mechanism: Any, record: Any) -> Any:
    """Where the randomised function has its minimum; a function of two results gives its gradient too."""
    from scipy.optimize import minimize

    noisy, start = mechanism.randomise(record), np.zeros(mechanism.dimension)
    return minimize(noisy, start, jac=isinstance(record(start), tuple)).x


def _rebuilt(mechanism: Any, **other: Any) -> Any:
    """The same mechanism, but for some arguments. A random state that is an object goes on where it is."""
    return type(mechanism)(**_constructor_arguments(mechanism) | other)


def _build_randomise(kind: type[Any], arguments: dict[str, Any]) -> _Randomise:
    return _Randomise(kind(**arguments))


def _constructor_arguments(mechanism: Any) -> dict[str, Any]:
    """What to call the class with to get the same mechanism: attributes of the names of its parameters."""
    names = [name for name in inspect.signature(type(mechanism)).parameters if name != "random_state"]
    missing = [name for name in names if not hasattr(mechanism, name)]
    if missing:
        told = f"{type(mechanism).__name__} does not tell its {', '.join(missing)}, so that it cannot be built anew"
        fail(f"{told} elsewhere; leave out its random_state and run in one process.", TargetError)
    return {name: getattr(mechanism, name) for name in names}


def _claim_within_sensitivity(mechanism: Any, records: Sequence[Any] | None) -> Guarantee | None:
    """(epsilon, delta) if every two records are as near as the sensitivity says; else the mechanism claims nothing."""
    epsilon, delta = getattr(mechanism, "epsilon", None), getattr(mechanism, "delta", 0.0)
    if not isinstance(epsilon, int | float) or not isinstance(delta, int | float) or not math.isfinite(epsilon):
        return None
    sensitivity = getattr(mechanism, "sensitivity", None)
    if sensitivity is None:
        near = hasattr(mechanism, "value0")  # only the binary mechanism has all pairs as neighbours
    else:
        apart = _apart(mechanism, records) if hasattr(mechanism, "utility") else span(records)
        near = apart is not None and apart <= sensitivity
    if not near:
        return None
    return PureDP(float(epsilon)) if delta == 0 else ApproxDP(float(epsilon), float(delta))


def _apart(mechanism: Any, records: Sequence[Any] | None) -> float | None:
    """How far apart utilities can be; that they all move one way, which `monotonic` takes for granted, is unchecked."""
    if getattr(mechanism, "monotonic", False):
        return widest(records, lambda step: math.inf if step.min() < 0 < step.max() else np.abs(step).max())
    return widest(records, lambda step: np.abs(step).max())
