"""Guessers: what an attacker does with an output."""

from dprisk.attacks.optimal import OptimalAttack
from dprisk.attacks.simplified import SimplifiedAttack

__all__ = ["OptimalAttack", "SimplifiedAttack"]
