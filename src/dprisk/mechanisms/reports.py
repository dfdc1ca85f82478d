"""Several reports of each record: drawn, and their likelihoods added up, without holding too much at once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dprisk.errors import TooLargeError
from dprisk.types import AnyArray, FloatArray, IntArray

MOST_REPORTS = 1 << 28  # 2 GB: as many are drawn at once
MANY_TURNS = 1000  # calls one after the other that take no time to speak of
HELD = 1 << 22  # likelihoods that are looked at at once


def sample_reports(
    sample: Callable[[IntArray, np.random.Generator], AnyArray], records: IntArray, times: int, rng: np.random.Generator
) -> AnyArray:
    """`times` reports of each record, records x reports; those of few records in one call."""
    if records.size * times > MOST_REPORTS:
        told = f"{records.size} outputs of {times} reports each are too many to hold at once"
        raise TooLargeError(f"{told}: at most {MOST_REPORTS} reports are drawn in one call.")
    if times > MANY_TURNS and records.size < times:
        reports = sample(np.repeat(records, times), rng)
        return reports.reshape(records.size, times, *reports.shape[1:])
    return np.stack([sample(records, rng) for _ in range(times)], axis=1)


def sum_over_reports(log_likelihood: Callable[[Any], FloatArray], reports: AnyArray, size: int) -> FloatArray:
    """The sums over the second axis of reports of their log-likelihoods, outputs x records."""
    count, times = reports.shape[:2]
    step = max(1, HELD // max(1, count * size))
    total = np.zeros((count, size))
    for start in range(0, times, step):
        some = reports[:, start : start + step]
        logs = log_likelihood(some.reshape(-1, *reports.shape[2:]))
        total += logs.reshape(count, some.shape[1], size).sum(axis=1)
    return total
