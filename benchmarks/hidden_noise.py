"""Random numbers that an audit does not find in the code that draws them; for `benchmarks/false_alarms.py`."""

import numpy as np

from dprisk.types import FloatArray

RNG = np.random.default_rng(12345)


class Holder:
    RNG = np.random.default_rng(7)


def uniform(count: int) -> FloatArray:
    return RNG.random(count)
