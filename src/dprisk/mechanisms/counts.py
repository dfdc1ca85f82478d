"""Independent reports of one record by how often each output occurs: the vectors of counts and their laws."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy

from dprisk.types import FloatArray, IntArray

HELD = 1 << 22  # counts, or reports, that are held at once
LEAST = 1e-200  # what stands for a smaller mean, from which records may differ as much
LARGEST_LOG = 700.0  # the logarithm of a number that floats hold


def count_vectors(n: float, times: int) -> float:
    """How many vectors of n counts sum to `times`: C(n + times - 1, times), infinite where floats do not hold it."""
    if not n < 1e9:
        return math.inf
    most, few = int(n) + times - 1, min(int(n) - 1, times)
    log_many = math.lgamma(most + 1) - math.lgamma(few + 1) - math.lgamma(most - few + 1)
    return float(math.comb(most, few)) if log_many < LARGEST_LOG else math.inf


def lists_of_reports(n: int, times: int, block: int) -> Iterator[IntArray]:
    """The sorted list of reports of each vector of counts, in their order, in blocks of shape (at most `block`, times).

    (0, ..., 0) comes first, that is, the vector (times, 0, ..., 0).
    """
    block = min(block, max(1, HELD // times))
    if times < n:
        reports = itertools.combinations_with_replacement(range(n), times)
        yield from map(np.array, iter(lambda: list(itertools.islice(reports, block)), []))
        return
    for counts in vectors_of_counts(n, times, block):
        numbers = np.tile(np.arange(n), counts.shape[1])
        yield np.repeat(numbers, counts.T.ravel()).reshape(counts.shape[1], times)


def vectors_of_counts(n: int, times: int, block: int) -> Iterator[IntArray]:
    """All vectors of n counts that sum to `times`, in blocks of shape (n, at most `block`).

    Each is found by its place in the list, count by count: with k counts to come after this one, the vectors that leave
    less than j to them are C(j + k - 1, k) many, and they come first.
    """
    block = min(block, max(1, HELD // n))
    before = [np.arange(times + 1.0 if n > 2 else 0.0)]  # of k = 1: the place itself, looked up by nobody
    for _ in range(2, n):
        before.append(np.cumsum(before[-1]))
    many = int(count_vectors(n, times))
    for start in range(0, many, block):
        rank = np.arange(start, min(start + block, many))
        left = np.full(rank.size, times)
        counts = np.empty((n, rank.size), dtype=np.int64)
        for place in range(n - 1):
            k = n - 1 - place
            if k == 1:
                rest = rank
            else:
                rest = np.searchsorted(before[k - 1], rank, side="right") - 1
                rank = rank - before[k - 1][rest].astype(np.int64)
            counts[place] = left - rest
            left = rest
        counts[n - 1] = left
        yield counts


def by_counts(single: FloatArray, times: int, block: int) -> Iterator[FloatArray]:
    """The channel of so many independent reports by how often each output occurs, from that of a single report."""
    with np.errstate(divide="ignore"):
        logs = np.log(single)
    return (np.exp(columns) for columns in log_by_counts(single, logs, times, block))


def log_by_counts(single: FloatArray, logs: FloatArray, times: int, block: int) -> Iterator[FloatArray]:
    """The same in logarithms, from the channel of a single report and its logarithms, which tell more of what is tiny.

    Few reports are gone through. Of many it is the law of the counts under the mean of the records, which is far from
    1 only where the counts are far from what is expected, and by how much each record differs from it: so that the
    logarithms of large and of small numbers do not cancel.
    """
    n = logs.shape[1]
    if times < n:
        for reports in lists_of_reports(n, times, min(block, max(1, HELD // len(logs)))):
            yield sum((logs[:, turn] for turn in reports.T), _log_orders(reports))
        return
    mean, is_zero = np.maximum(single.mean(axis=0), LEAST), np.isneginf(logs)
    ratio = np.maximum(single, LEAST) / mean
    apart = np.where(is_zero, 0.0, np.where(single >= LEAST, np.log(ratio), logs - np.log(mean)))
    for counts in vectors_of_counts(n, times, block):
        columns = apart @ counts + _log_multinomial(counts, mean, times)
        if is_zero.any():
            columns[is_zero.astype(float) @ (counts > 0) > 0] = -np.inf
        yield columns


def _log_orders(reports: IntArray) -> FloatArray:
    """The log of the number of orders that each sorted list of reports can come in."""
    run, log_same = np.ones(len(reports)), np.zeros(len(reports))
    for one, two in itertools.pairwise(reports.T):
        run = np.where(one == two, run + 1, 1)
        log_same += np.log(run)
    return np.asarray(math.lgamma(reports.shape[1] + 1) - log_same)


def _log_multinomial(counts: IntArray, mean: FloatArray, times: int) -> FloatArray:
    """The log of the multinomial law: deviances, which vanish where counts are as expected (Loader 2000)."""
    expected = times * mean[:, None]
    surplus = (counts - expected) / expected
    deviance = expected * (scipy.special.xlog1py(1 + surplus, surplus) - surplus)
    return np.asarray(_log_stirling(np.array(float(times))) - (_log_stirling(counts) + deviance).sum(axis=0))


def _log_stirling(n: Any) -> FloatArray:
    """log n! - (n log n - n), 0 at 0."""
    n = np.asarray(n, dtype=float)
    many = np.maximum(n, 1.0)
    series = np.log(2 * math.pi * many) / 2 + (1 - (1 / 30 - (1 / 105 - 1 / 140 / many**2) / many**2) / many**2) / (
        12 * many
    )
    small = scipy.special.gammaln(n + 1) - scipy.special.xlogy(n, n) + n
    return np.asarray(np.where(n < 16, small, series))
