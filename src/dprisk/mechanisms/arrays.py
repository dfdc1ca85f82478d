"""What is asked of the numbers of records and outputs as arrays."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import MechanismError
from dprisk.types import AnyArray, FloatArray, IntArray


def require_listed_records(mechanism: Any) -> None:
    """Refuse a mechanism whose records no array can list where another is made of it."""
    if not math.isfinite(mechanism.size):
        raise MechanismError(
            f"{mechanism!r} is for any number of an interval, and mechanisms are made of those whose records are "
            "listed: take Laplace(positions, ...) or Gaussian(positions, ...)."
        )


def record_numbers(records: npt.ArrayLike, size: float) -> IntArray:
    """Record numbers, checked."""
    numbers = np.atleast_1d(np.asarray(records))
    if not (numbers.ndim == 1 and np.issubdtype(numbers.dtype, np.integer)):
        raise MechanismError("Records are given by their numbers, a list of whole numbers.")
    if numbers.size > 0 and not (numbers.min() >= 0 and numbers.max() < size):
        raise MechanismError(f"Record numbers must lie in 0..{size - 1}.")
    return numbers.astype(np.int64, copy=False)


def whole_below(values: AnyArray, limit: Any) -> bool:
    """Whether all are whole numbers from 0 to below a limit."""
    return np.issubdtype(values.dtype, np.integer) and bool(np.all((values >= 0) & (values < limit)))


def largest_log_ratios(logs: FloatArray) -> FloatArray:
    """The largest difference of log-likelihoods (records x outputs) of each record against each other one."""
    largest = np.empty((len(logs), len(logs)))
    for record, own in enumerate(logs):
        with np.errstate(invalid="ignore"):
            largest[record] = np.where(own > -np.inf, own - logs, -np.inf).max(axis=1)
    return largest


def hockey_sticks(columns: FloatArray, epsilon: float) -> FloatArray:
    """sum over outputs (P(output | z) - e^epsilon P(output | z'))_+ of each record z against each other one z'."""
    with np.errstate(divide="ignore", over="ignore"):
        scaled = np.exp(np.log(columns) + epsilon)
    return np.array([np.maximum(own - scaled, 0).sum(axis=1) for own in columns])
