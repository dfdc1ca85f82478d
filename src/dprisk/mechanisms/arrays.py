"""What is asked of the numbers of records, outputs and scores as arrays."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dprisk.errors import MechanismError
from dprisk.types import AnyArray, FloatArray, IntArray


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


def leads(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """The place of the largest score in each row of at least two, and how far it leads the second."""
    two = np.partition(scores, -2, axis=1)[:, -2:]
    possible = two[:, 1] > -np.inf  # for one of the records; otherwise none leads
    return scores.argmax(axis=1), np.subtract(two[:, 1], two[:, 0], where=possible, out=np.zeros(len(two)))


def batches(items: Iterator[Any], block: int) -> Iterator[list[Any]]:
    """So many at a time."""
    while batch := list(itertools.islice(items, block)):
        yield batch
