"""Which entries of vectors tell records apart: one, a pair, or a weighted sum of all."""

from __future__ import annotations

import numpy as np

from dprisk.types import FloatArray, IntArray

TINY = 1e-15  # of a variance, beside which a smaller one is rounding
SUMMED_RUNS = 20_000  # of vectors from which a direction is learned


def shifted(columns: FloatArray, records: IntArray) -> int:
    """The entry whose mean differs most from record to record, beside its spread."""
    known, codes = np.unique(records, return_inverse=True)
    finite = np.where(np.isfinite(columns), columns, 0.0)
    times = np.maximum(1, np.bincount(codes))
    means = np.array([np.bincount(codes, row, minlength=known.size) / times for row in finite])
    spread = np.array([(row - mean[codes]).std() for row, mean in zip(finite, means, strict=True)])
    apart = np.ptp(means, axis=1)
    return int(np.argmax(apart / np.maximum(spread, TINY + TINY * np.abs(finite).max(axis=1))))


def correlated(columns: FloatArray, records: IntArray) -> tuple[int, int]:
    """The pair of entries whose correlation differs most between some record and all runs."""
    finite = np.where(np.isfinite(columns), columns, 0.0)

    def correlations(rows: FloatArray) -> FloatArray:
        centred = rows - rows.mean(axis=1, keepdims=True)
        scaled = centred / np.maximum(np.sqrt((centred**2).sum(axis=1, keepdims=True)), 1e-300)
        return np.asarray(scaled @ scaled.T)

    every = correlations(finite)
    known, times = np.unique(records, return_counts=True)
    apart = [np.abs(correlations(finite[:, records == record]) - every) for record in known[np.argsort(-times)][:4]]
    one, two = np.unravel_index(np.argmax(np.triu(np.max(apart, axis=0), 1)), every.shape)
    return (int(one), int(two)) if one != two else (0, 1)


def direction_of(columns: FloatArray, records: IntArray) -> FloatArray | None:
    """The weights by which the means of two records differ most beside the spread within records (Fisher)."""
    some = columns[:, :SUMMED_RUNS]
    finite = some if np.isfinite(some).all() else np.where(np.isfinite(some), some, 0.0)
    largest = np.abs(finite).max(axis=1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    rows = finite.T / scale  # between -1 and 1
    known, codes = np.unique(records[:SUMMED_RUNS], return_inverse=True)
    if known.size < 2 or len(rows) < 4 * rows.shape[1] or rows.size == 0:
        return None
    means = np.array([rows[codes == code].mean(axis=0) for code in range(known.size)])
    inside = rows - means[codes]
    variance, axes = np.linalg.eigh(inside.T @ inside / len(inside))
    spread = np.maximum(variance, TINY * max(1.0, variance.max()))
    apart = means @ axes / np.sqrt(spread)
    one, two = np.unravel_index(np.argmax(((apart[:, None] - apart) ** 2).sum(axis=2)), (known.size, known.size))
    direction = axes @ ((axes.T @ (means[one] - means[two])) / spread)
    size = np.abs(direction).max()
    return direction / size / scale if size > 0 else None
