"""Private learning: many trainings by DP-SGD at once, and what an attacker learns from them.

Needs torch, which is loaded here and nowhere else in dprisk.
"""

from dprisk.errors import MissingPackageError

try:
    import torch as torch
except ImportError:
    raise MissingPackageError('Trainings need torch: pip install "dprisk[learning]".') from None

from dprisk.learning.attack_answer import GradientAttack
from dprisk.learning.channel import NoisyGradients
from dprisk.learning.examples import Examples
from dprisk.learning.gradient_attack import AttackInterrupted, attack_gradients, noise_for
from dprisk.learning.modules import OwnModel
from dprisk.learning.networks import Network, mlp, small_cnn
from dprisk.learning.training import Recipe, Trained, train
from dprisk.learning.worst_pair import worst_pair_prior

__all__ = [
    "AttackInterrupted",
    "Examples",
    "GradientAttack",
    "Network",
    "NoisyGradients",
    "OwnModel",
    "Recipe",
    "Trained",
    "attack_gradients",
    "mlp",
    "noise_for",
    "small_cnn",
    "train",
    "worst_pair_prior",
]
