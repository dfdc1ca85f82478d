"""Bounds that hold for every mechanism with a guarantee: one function a theorem, one register that chooses."""

from dprisk.bounds.registry import REGISTRY, Bound, Evaluation, Value, evaluate

__all__ = ["REGISTRY", "Bound", "Evaluation", "Value", "evaluate"]
