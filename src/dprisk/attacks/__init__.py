"""Guessers: what an attacker does with an output."""

from dprisk.attacks.optimal import OptimalAttack

__all__ = ["OptimalAttack"]
