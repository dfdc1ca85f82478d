"""Rows of random booleans, drawn quickly and from exactly the right distribution."""

from __future__ import annotations

import math

import numpy as np

from dprisk.types import BoolArray, IntArray

SAMPLE_CELLS = 1 << 19  # bits are drawn in blocks that stay in the cache
SPARSE = 1 / 20  # rate of bits below which those that are on are drawn one by one


def draw_subsets(size: int, own: IntArray, truth: BoolArray, others: IntArray, rng: np.random.Generator) -> BoolArray:
    """Rows of booleans, one for each record of `own`: that one as `truth` says, and uniformly `others` of the rest.

    Of a large set its complement is drawn.
    """
    large = 2 * others > size - 1
    few = np.where(large, size - 1 - others, others)
    mean = float(few.mean()) if few.size else 0.0
    rate = max(0.0, mean - 2 * math.sqrt(mean * (1 - mean / size))) / size
    rate = rate if rate < SPARSE else math.floor(256 * rate) / 256  # which a byte decides
    member = draw_rows(rate, own.size, size, rng)
    _choose_others(own, few, member, rng)
    if large.any():
        np.not_equal(member, large[:, None], out=member)
    member[np.arange(own.size), own] = truth
    return member


def _choose_others(own: IntArray, wanted: IntArray, member: BoolArray, rng: np.random.Generator) -> None:
    """Make each row of `member`, independent bits, a uniform set of as many as wanted, not its own.

    Independent bits, brought to the wanted number by adding random ones, are a uniform subset: no step tells one of
    the others from another. Their rate should be two standard deviations low; rows that still get too many start from
    nothing. As many are added at once as a row lacks; those drawn twice or in vain change nothing.
    """
    size = member.shape[1]
    member[np.arange(own.size), own] = False
    lack = wanted - _row_counts(member)
    over = np.flatnonzero(lack < 0)
    member[over], lack[over] = False, wanted[over]
    cells = member.reshape(-1)
    while (rows := np.flatnonzero(lack)).size:
        row = np.repeat(rows, lack[rows])
        pick = rng.integers(size - 1, size=row.size)
        pick += pick >= own[row]
        pick += row * size
        fresh = np.sort(pick[~cells[pick]])
        added = fresh[np.diff(fresh, prepend=-1) > 0]
        cells[added] = True
        lack -= np.bincount(added // size, minlength=lack.size)


def draw_rows(probability: float, rows: int, size: int, rng: np.random.Generator) -> BoolArray:
    """Rows of independent bits."""
    bits = np.empty((rows, size), dtype=bool)
    step = max(1, SAMPLE_CELLS // size)
    for start in range(0, rows, step):
        draw_bits(probability, bits[start : start + step], rng)
    return bits


def draw_bits(probability: float, out: BoolArray, rng: np.random.Generator) -> None:
    """Fill `out`, which is contiguous, with independent bits.

    One random byte decides a bit against the first eight binary digits of the probability; only on a tie (one in
    256) a second draw of 53 bits decides against the rest. Eight times less randomness, nothing lost. Rare bits are
    found by the gaps between them, which are geometric.
    """
    flat = out.reshape(-1)
    if probability < SPARSE:
        flat[:] = False
        _rare(probability, flat, rng)
        return
    digits = math.floor(probability * 256)
    if digits >= 256:
        flat[:] = True
        return
    byte = rng.integers(1 << 64, size=-(-flat.size // 8), dtype=np.uint64).astype("<u8", copy=False).view(np.uint8)
    byte = byte[: flat.size]
    np.less(byte, digits, out=flat)
    if probability * 256 > digits:
        tie = where_on(byte == digits)
        flat[tie] = rng.random(tie.size) < probability * 256 - digits


def where_on(bits: BoolArray) -> IntArray:
    """Where bits are on, as `np.flatnonzero` has it, quicker where few are: most words hold none."""
    flat = np.ascontiguousarray(bits).reshape(-1)
    whole = flat.size >> 3 << 3
    words = flat[:whole].view(np.uint64)  # eight bits, a byte each, that are looked at together
    some = words != 0
    if 4 * np.count_nonzero(some) > some.size:
        return np.flatnonzero(flat)
    word = np.flatnonzero(some)
    within = np.flatnonzero(words[word].view(bool))
    found = (word[within >> 3] << 3) + (within & 7)
    return np.concatenate([found, whole + np.flatnonzero(flat[whole:])])


def _rare(probability: float, flat: BoolArray, rng: np.random.Generator) -> None:
    """Turn on independent bits of a small rate: the gaps are exponential numbers of rate -log(1 - p), rounded down."""
    start, mean = 0, probability * flat.size
    count = math.ceil(mean + 4 * math.sqrt(mean) + 4)
    while probability > 0 and start < flat.size:
        gaps = np.minimum(rng.standard_exponential(count) / -math.log1p(-probability), flat.size)
        on = start - 1 + np.cumsum(gaps.astype(np.int64) + 1)
        flat[on[on < flat.size]] = True
        start = int(on[-1]) + 1


def _row_counts(member: BoolArray) -> IntArray:
    """How many are on in each row; narrow sums are fast."""
    narrow = np.uint16 if member.shape[1] < 1 << 16 else np.int64
    return np.asarray(member.sum(axis=1, dtype=narrow).astype(np.int64))
