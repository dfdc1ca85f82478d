"""The register of bounds. `evaluate` tries them all and says why those that do not apply do not."""

import copyreg
from dataclasses import dataclass, replace
from typing import Any, get_args

from dprisk.bounds import add_remove, ours, papers, programs
from dprisk.bounds.bound import Bound, Bounded, Value
from dprisk.errors import GuaranteeError, TooLargeError
from dprisk.guarantees import Guarantee
from dprisk.registers import Register
from dprisk.threat.threat import Threat

FUNCTIONS = [function for module in (papers, ours, programs, add_remove) for function in vars(module).values()]
THEOREMS: list[Bound] = [bound for function in FUNCTIONS for bound in getattr(function, "bounds", ())]
REGISTRY = Register("bound", *sorted(THEOREMS, key=lambda bound: get_args(Bounded).index(bound.bounds)))


def register(bound: Bound) -> None:
    """Add a bound, which `assess`, `calibrate` and `audit` then take where it applies: it must be proven."""
    REGISTRY.register(bound)


def named(name: str) -> Bound:
    """A bound of the register."""
    return REGISTRY[name]


def _pickled(bound: Bound) -> str | tuple[Any, ...]:
    """By its name, since formulas are functions without one; a bound that is not in the register as it is."""
    is_known = bound.name in REGISTRY and REGISTRY[bound.name] is bound
    return (named, (bound.name,)) if is_known else bound.__reduce_ex__(2)


copyreg.pickle(Bound, _pickled)


@dataclass(frozen=True)
class Evaluation:
    """The bounds that apply, tightest first, and for each of the others the reason why it does not."""

    values: tuple[Value, ...]
    obstacles: dict[str, str]


def evaluate(
    guarantee: Guarantee, threat: Threat, which: Bounded, thorough: bool = False, people: int | None = None
) -> Evaluation:
    """Try every bound on the advantage, on the success, or on a match among `people`.

    A guarantee for adding or removing a record goes to the bounds for such guarantees as it is, and to those for
    replacing a record converted: neither way is always the tighter one.
    """
    values, obstacles = [], {}
    forms = _forms(guarantee)
    for bound in (bound for bound in REGISTRY if bound.bounds == which):
        form = forms.get(bound.relation, guarantee)
        obstacle = form if isinstance(form, str) else bound.obstacle(form, threat, thorough)
        if obstacle is None and not isinstance(form, str):
            try:
                value = bound.value(form, threat, people)
                values.append(value if form is guarantee else replace(value, attained=False, converted=True))
            except TooLargeError as problem:
                obstacle = str(problem)
        if obstacle is not None:
            obstacles[bound.name] = obstacle
    # Of equal bounds the one that is known to be attained tells most.
    order = sorted(values, key=lambda value: (float(f"{value.number:.9e}"), not value.attained))
    return Evaluation(tuple(order), obstacles)


def _forms(guarantee: Guarantee) -> dict[str, Guarantee | str]:
    """The guarantee for each relation that it can be had for, or why it cannot."""
    forms: dict[str, Guarantee | str] = {guarantee.relation: guarantee}
    try:
        forms["replace-one"] = guarantee.replaced
    except GuaranteeError as problem:
        forms["replace-one"] = str(problem)
    return forms
