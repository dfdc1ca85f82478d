"""The thesis's prior on candidates for an attack on gradients: most of it on the two that are easiest to tell apart."""

import numpy as np

from dprisk.errors import require
from dprisk.learning.examples import Examples
from dprisk.learning.training import Recipe, train
from dprisk.threat import Prior

PILOTS = 4  # trainings for each candidate that the pair is chosen by
SHARE = 0.7  # of the two; thesis section 7.4.4


def worst_pair_prior(recipe: Recipe, data: Examples, candidates: Examples, seed: int = 0, device: str = "cpu") -> Prior:
    """0.35 for each of two candidates, and the rest shared by the others (thesis, section 7.4.4).

    The first is the candidate that noisy gradients point to most, over trainings with each of them. The second is the
    one that those of trainings with the first point to least. These trainings serve for nothing else.
    """
    size = len(candidates)
    require(size >= 2, "A pair needs two candidates.")
    targets = np.repeat(np.arange(size), PILOTS)
    pilot = train(recipe, data, targets.size, candidates=candidates, targets=targets, seed=seed + 1, device=device)
    assert pilot.evidence is not None
    scores = pilot.evidence.products.reshape(size, PILOTS, size).mean(axis=1)  # target x candidate
    first = int(scores.sum(axis=0).argmax())
    others = np.where(np.arange(size) == first, np.inf, scores[first])
    weights = np.full(size, (1 - SHARE) / (size - 2) if size > 2 else 0.0)
    weights[[first, int(others.argmin())]] = SHARE / 2 if size > 2 else 0.5
    return Prior(weights)
