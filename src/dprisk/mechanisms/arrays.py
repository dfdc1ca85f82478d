"""What is asked of the numbers of records and outputs as arrays."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dprisk.errors import MechanismError
from dprisk.types import AnyArray, FloatArray


def require_listed_records(mechanism: Any) -> None:
    """Refuse a mechanism whose records no array can list where another is made of it."""
    if not math.isfinite(mechanism.size):
        raise MechanismError(
            f"{mechanism!r} is for any number of an interval, and mechanisms are made of those whose records are "
            "listed: take Laplace(positions, ...) or Gaussian(positions, ...)."
        )


def whole_below(values: AnyArray, limit: Any) -> bool:
    """Whether all are whole numbers from 0 to below a limit."""
    return np.issubdtype(values.dtype, np.integer) and bool(np.all((values >= 0) & (values < limit)))


def batches(items: Iterator[Any], block: int) -> Iterator[list[Any]]:
    """So many at a time."""
    while batch := list(itertools.islice(items, block)):
        yield batch


def by_counts(single: FloatArray, times: int, block: int) -> Iterator[FloatArray]:
    """The channel of so many independent reports by how often each output occurs, from that of a single report."""
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(single), -1e6)  # stands for log 0: exp of it is 0, and 0 times it is 0
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, times + 1)))])
    for reports in batches(itertools.combinations_with_replacement(range(single.shape[1]), times), block):
        counts = np.zeros((single.shape[1], len(reports)))
        np.add.at(counts, (np.array(reports).T, np.arange(len(reports))), 1)
        ways = math.lgamma(times + 1) - log_factorial[counts.astype(int)].sum(axis=0)
        yield np.exp(logs @ counts + ways)


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
