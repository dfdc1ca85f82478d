"""The errors dprisk raises: one family, each named after what is wrong."""

import numbers
from math import inf
from typing import Any, NoReturn


class DpriskError(Exception):
    """Anything dprisk refuses. The message says what was given, what is allowed, what to do."""

    @classmethod
    def unless(cls, condition: object, message: str) -> None:
        """Raise it unless the condition holds."""
        if not condition:
            raise cls(message)


class PriorError(DpriskError, ValueError):
    """These numbers are not a prior."""


class ThreatError(DpriskError, ValueError):
    """This knowledge or success rule does not fit the records."""


class MechanismError(DpriskError, ValueError):
    """This mechanism cannot exist, or cannot do what was asked."""


class GuaranteeError(DpriskError, ValueError):
    """This is not a guarantee, or not one that can be used here."""


class ParameterError(DpriskError, ValueError):
    """A number is outside its range."""


class InputFileError(DpriskError, ValueError):
    """A file is missing, empty, or lacks what we need from it."""


class TooLargeError(DpriskError, ValueError):
    """The exact answer was asked for and is out of reach."""


class TargetError(DpriskError, ValueError):
    """This cannot be audited as it is given, or its outputs cannot be compared."""


class MissingPackageError(DpriskError, ImportError):
    """An optional package is needed and not installed; the message says which."""


class AuditedCodeError(DpriskError, RuntimeError):
    """The audited code failed or did not return in time: a finding of its own, not an error of the audit.

    `record` is the record it failed on (None if a whole batch failed), `records` the numbers of the block's records
    up to that call and `seed` the block's seed: `as_target(code, records).repeat(error.records, error.seed)` runs into
    it again at once, with the code and the records that were audited. The original error is the `__cause__`; one that
    crossed from a worker process keeps its text only.
    """

    def __init__(self, message: str, record: Any, records: list[int], seed: int) -> None:
        super().__init__(message)
        self.record, self.records, self.seed = record, records, seed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.record, self.records, self.seed)


def require(condition: object, message: str, error: type[DpriskError] = ParameterError) -> None:
    """Raise `error(message)` unless the condition holds."""
    error.unless(condition, message)


def fail(message: str, error: type[DpriskError] = ParameterError) -> NoReturn:
    """Raise `error(message)`."""
    raise error(message)


def as_number(name: str, value: Any) -> float:
    """A real number, or an error that names it."""
    if type(value) is float:
        return value  # at once, since this is asked of every number
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    if isinstance(plain, bool) or not isinstance(plain, numbers.Real):
        fail(f"{name} must be a number, got {value!r}")
    try:
        return float(plain)
    except OverflowError:
        return fail(f"{name} is too large to compute with")


def as_whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`, or an error that names it; 5.0 and numpy integers count."""
    if type(value) is int and least <= value <= 2**53:
        return value  # at once, since this is asked of every count
    number = as_number(name, value)
    if not (number.is_integer() and number >= least):
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(number)


def as_epsilon(epsilon: Any) -> float:
    """A privacy parameter: finite and at least 0."""
    value = as_number("epsilon", epsilon)
    if not 0 <= value < inf:
        fail(f"epsilon must be a finite number of at least 0, got {value:g}")
    return abs(value)  # -0.0 is 0


def as_noise_epsilon(noise: str, epsilon: Any, above: float = 1e-99) -> float:
    """The epsilon of noise whose scale is a range over epsilon, which must be a number one can compute with."""
    value = as_epsilon(epsilon)
    if value <= above:
        raise MechanismError(f"{noise} needs epsilon > {above:g}, got {value:g}: its scale would be too large")
    return value


def as_scale(name: str, value: Any) -> float:
    """A scale of noise: neither its square nor the inverse of that overflows."""
    number = as_number(name, value)
    MechanismError.unless(1e-100 < number < 1e100, f"{name} must lie between 1e-100 and 1e100, got {number:g}")
    return number


def as_ends(low: Any, high: Any, error: type[DpriskError]) -> tuple[float, float]:
    """The ends of an interval, in order."""
    ends = as_number("low", low), as_number("high", high)
    require(-inf < ends[0] < ends[1] < inf, f"Needs finite low < high, got {ends[0]:g} and {ends[1]:g}.", error)
    return ends


def require_relation(relation: str) -> None:
    """Refuse what is no neighbouring relation."""
    if relation not in ("replace-one", "add-remove"):
        raise GuaranteeError(f"relation must be 'replace-one' or 'add-remove', got {relation!r}")


def as_size(size: Any) -> int:
    """A number of possible records: at least 1."""
    return as_whole("size, the number of possible records,", size)
