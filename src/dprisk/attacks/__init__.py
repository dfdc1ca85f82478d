"""Guessers: what an attacker does with an output."""

from dprisk.attacks.heuristics import (
    AboveThreshold,
    Correlation,
    Estimation,
    Likeliest,
    MarkovModel,
    MostCommon,
    RandomMember,
    Report,
)
from dprisk.attacks.named import NAMED, NamedAttack, fitting, make, register
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
    "NamedAttack",
    "OptimalAttack",
    "RandomMember",
    "Report",
    "SimplifiedAttack",
    "fitting",
    "make",
    "register",
]
