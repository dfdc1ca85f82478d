"""The errors dprisk raises: one family, each named after what is wrong."""

from typing import NoReturn


class DpriskError(Exception):
    """Anything dprisk refuses. The message says what was given, what is allowed, what to do."""


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


def require(condition: bool, message: str, error: type[DpriskError] = ParameterError) -> None:
    """Raise `error(message)` unless the condition holds."""
    if not condition:
        fail(message, error)


def fail(message: str, error: type[DpriskError] = ParameterError) -> NoReturn:
    """Raise `error(message)`."""
    raise error(message)


def require_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that is negative, infinite or not a number."""
    require(0 <= epsilon < float("inf"), f"epsilon must be a finite number of at least 0, got {epsilon}")


def require_size(size: int) -> None:
    """Refuse a universe without records."""
    require(
        isinstance(size, int) and size >= 1,
        f"size must be a whole number of at least 1, the number of possible records; got {size}",
    )
