"""What is asked of the numbers of records and outputs as arrays."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dprisk.errors import MechanismError
from dprisk.types import AnyArray


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
