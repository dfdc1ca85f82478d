"""Guessers: what an attacker does with an output."""

from dprisk.attacks.heuristics import (
    NAMED,
    AboveThreshold,
    Correlation,
    Estimation,
    Likeliest,
    MarkovModel,
    MostCommon,
    RandomMember,
    Report,
)
from dprisk.attacks.optimal import OptimalAttack
from dprisk.attacks.simplified import SimplifiedAttack

__all__ = [
    "NAMED",
    "AboveThreshold",
    "Correlation",
    "Estimation",
    "Likeliest",
    "MarkovModel",
    "MostCommon",
    "OptimalAttack",
    "RandomMember",
    "Report",
    "SimplifiedAttack",
]
