"""Private learning: many trainings by DP-SGD at once, and what an attacker learns from them.

Needs torch, which is loaded here and nowhere else in dprisk.
"""

from dprisk.errors import MissingPackageError

try:
    import torch as torch
except ImportError:
    raise MissingPackageError('Trainings need torch: pip install "dprisk[learning]".') from None

from dprisk.learning.examples import Examples
from dprisk.learning.networks import Network, mlp, small_cnn
from dprisk.learning.training import Recipe, Trained, train

__all__ = ["Examples", "Network", "Recipe", "Trained", "mlp", "small_cnn", "train"]
