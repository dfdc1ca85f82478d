"""What a few runs of code show before it is audited: whether a seed repeats them, whether they share their noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dprisk.auditing.code.targets import CodeTarget, Target
from dprisk.errors import TargetError, require

SAME = 32  # runs of one record in a batch: never all alike twice, and different, if each has its own noise


def tried(target: Target) -> Target:
    """The target, marked if two runs from one seed differed, as those of code that makes its own generators do."""
    if not isinstance(target, CodeTarget) or not target.reproducible or repeats(target, runs=2):
        return target
    return replace(target, reproducible=False, note="The same seed gave other outputs: it draws what cannot be seeded.")


def require_own_noise(target: Target) -> None:
    """Refuse a batch whose records share their noise: its runs are not independent, and no certificate holds."""
    if not isinstance(target, CodeTarget) or not target.batch:
        return
    one, two = (target.sample(np.zeros(SAME, dtype=np.int64), np.random.default_rng(seed)) for seed in range(2))
    require(
        not (_same(one[1:], one[:-1]) and _same(two[1:], two[:-1])) or _same(one, two),
        f"{target.name} gives all records of a batch the same noise, so its runs are not independent. Draw noise for "
        "each record, as with size=len(records), or leave out batch.",
        TargetError,
    )


def repeats(target: Target, seed: int = 0, runs: int = 64) -> bool:
    """Whether the same seed gave the same outputs, tried on two blocks of a few runs.

    False is certain; True is not, if the code uses its randomness rarely.
    """
    numbers = np.arange(runs) % target.size
    one, two = (target.sample(numbers, np.random.default_rng(seed)) for _ in range(2))
    return _same(one, two)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, tuple):
        return all(map(_same, one, two))
    return bool(np.array_equal(one, two, equal_nan=one.dtype.kind == "f"))
