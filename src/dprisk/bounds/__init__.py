"""Bounds that hold for every mechanism with a guarantee: one function a theorem, one register that chooses."""

from dprisk.bounds.bound import Bound, Bounded, Value
from dprisk.bounds.registry import REGISTRY, Evaluation, evaluate, register

__all__ = ["REGISTRY", "Bound", "Bounded", "Evaluation", "Value", "evaluate", "register"]
