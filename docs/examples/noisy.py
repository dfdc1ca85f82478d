"""Three functions that claim to be private. One of them is. Noise is rounded: its last bits would tell the record."""

import math

import numpy as np


def laplace(record: float, rng: np.random.Generator) -> float:
    """A number between 0 and 1, with Laplace noise for epsilon 0.5."""
    return round(record + rng.laplace(scale=1 / 0.5), 2)


def halved(record: float, rng: np.random.Generator) -> float:
    """The same, with half the noise: the scale of somebody who measured the distance to the middle."""
    return round(record + rng.laplace(scale=0.5 / 0.5), 2)


def survey(record: int, rng: np.random.Generator) -> int:
    """One of ten answers by randomised response, epsilon 1; but "another answer" may be the true one again."""
    keep = math.e / (math.e + 9)
    return record if rng.random() < keep else int(rng.integers(10))
