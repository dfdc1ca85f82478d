"""Data extraction from a language model: the last character of a text that was in the training data.

The model reads the characters before (one-hot) and gives chances for the next one. It is trained by DP-SGD on some
public texts and on one canary more, whose last character is drawn from a prior. Three attackers read the model's
chances at the canary's beginning, and guess:

- the model's likeliest character (Stock et al.; Swanberg et al., section 5.2),
- the likeliest by prior times chance,
- ours: the likeliest by log prior + c (log chance - its mean over trainings). How far the model is to be believed, c,
  is fitted by maximum likelihood to trainings of the attacker's own, who knows all but the canary's last character.

Under strong noise c is near 0 and ours falls back to the prior, which the first attacker forgets and the second drowns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from dprisk.answers import Answer, Row
from dprisk.assessment import assess
from dprisk.auditing.certify.counts import clopper_pearson
from dprisk.bounds.papers import bayes_factor_success
from dprisk.calibration import calibrate
from dprisk.errors import as_whole, require
from dprisk.guarantees import GaussianDP
from dprisk.learning import Examples, Recipe, mlp, train
from dprisk.rounding import plain, significant_up
from dprisk.threat import Prior, Threat
from dprisk.types import FloatArray, IntArray

DIGITS, BEFORE = 10, 8  # characters of the alphabet, and how many the model reads
OTHERS = 20  # public texts
CLIP, LEARNING_RATE = 1.0, 0.5
MOST_BELIEVED = 100.0  # the largest c

Progress = Callable[[int, int], None]  # trainings done, trainings planned


@dataclass(frozen=True, eq=False, repr=False)
class Extracted(Answer):
    """How often the canary's last character was told, of `runs` trainings, by each attacker and at most by any."""

    prior: Prior
    epsilon: float
    delta: float
    noise_multiplier: float
    runs: int
    by_model: int
    times_prior: int
    prior_aware: int
    alpha: float = 0.05

    @property
    def baseline(self) -> float:
        """The best success without the model."""
        return float(self.prior.weights.max())

    @cached_property
    def most(self) -> float:
        """No attacker's success is above this, by the Gaussian noise of all steps together."""
        mu = calibrate(GaussianDP(1.0), epsilon=(self.epsilon, self.delta)).value
        return assess(GaussianDP(mu), Threat(self.prior)).success

    @property
    def most_by_pair(self) -> float:
        """The same by epsilon and delta alone (Swanberg et al., Corollary 3.4, for the likeliest character)."""
        return min(1.0, bayes_factor_success(self.epsilon, self.baseline, self.delta))

    @property
    def _attackers(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("by_model", "times_prior", "prior_aware")}

    @property
    def about(self) -> str:
        noise = f"noise multiplier {self.noise_multiplier:.4g}"
        return (
            f"{self.runs} language models trained with DP-SGD, {noise}: epsilon {self.epsilon:g}, delta {self.delta:g}"
        )

    @property
    def numbers(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "noise_multiplier": self.noise_multiplier,
            "baseline": self.baseline,
            **{name: right / self.runs for name, right in self._attackers.items()},
            "most": self.most,
            "most_by_pair": self.most_by_pair,
        }

    @property
    def rows(self) -> list[Row]:
        meanings = ("the model's likeliest character", "likeliest by prior times chance", "ours")
        attackers = zip(self._attackers.items(), meanings, strict=True)
        return [
            ("baseline", plain(self.baseline), "right without the model"),
            *((name.replace("_", " "), self._shown(right), meaning) for (name, right), meaning in attackers),
            ("at most", significant_up(self.most, 4), "right by any attacker"),
            ("at most, by pair", significant_up(self.most_by_pair, 4), "by epsilon and delta alone"),
        ]

    def _shown(self, right: int) -> str:
        low, high = (clopper_pearson(right, self.runs, self.alpha / 2)[end] for end in (0, 1))
        return f"{plain(right / self.runs)} [{plain(low)}, {plain(high)}]"

    def sentence(self) -> str:
        return (
            f"Our attack read the last character of {self.prior_aware} of {self.runs} canaries from models trained on "
            f"one each (the likeliest character alone is right in {self.baseline:.1%}); if canaries follow the prior, "
            f"no attacker is right in more than {significant_up(100 * self.most, 3)} % on average."
        )

    def to_dict(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta} | super().to_dict()

    def __repr__(self) -> str:
        right = ", ".join(f"{name}={number / self.runs:g}" for name, number in self._attackers.items())
        return f"Extracted(baseline={self.baseline:.4g}, {right}, most={self.most:.4g})"


def extract(
    prior: Prior,
    epsilon: float,
    delta: float = 1e-5,
    *,
    runs: int = 1000,
    practice: int = 1000,
    steps: int = 10,
    hidden: tuple[int, ...] = (32,),
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Extracted:
    """Train so many models on a canary each, its last character drawn from the prior, and read it from them.

    The noise makes the whole training (epsilon, delta)-DP when one text is replaced. `practice` is the number of the
    attacker's own trainings, from which it learns how far to believe a model.
    """
    runs, practice = as_whole("runs", runs), as_whole("practice", practice, 2)
    size = prior.weights.size
    require(size >= 2, "A prior with one character leaves nothing to guess.")
    mu = calibrate(GaussianDP(1.0), epsilon=(epsilon, delta)).value
    noise = 2 * sqrt(as_whole("steps", steps)) / mu  # two clipped gradients may lie two clipping norms apart
    rng = np.random.default_rng(seed)
    drawn = rng.choice(size, runs, p=prior.weights)
    tried = rng.permutation(np.arange(practice) % size)
    log_chances = _trained(np.concatenate([drawn, tried]), size, noise, steps, hidden, rng, seed, device, progress)
    mean = log_chances[runs:].mean(axis=0)
    told, practised = log_chances[:runs], log_chances[runs:] - mean
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior.weights)
    guesses = (told, log_prior + told, log_prior + belief(practised, tried) * (told - mean))
    right = (int((scores.argmax(axis=1) == drawn).sum()) for scores in guesses)
    return Extracted(prior, epsilon, delta, noise, runs, *right)


def belief(scores: FloatArray, truth: IntArray) -> float:
    """The c at which chances in proportion to exp(c score) explain the true characters best."""

    def surprise(c: float) -> float:
        chances = c * scores
        return float((logsumexp(chances, axis=1) - chances[np.arange(len(truth)), truth]).sum())

    return float(minimize_scalar(surprise, bounds=(0, MOST_BELIEVED), method="bounded").x)


def _trained(
    last: IntArray,
    size: int,
    noise: float,
    steps: int,
    hidden: tuple[int, ...],
    rng: np.random.Generator,
    seed: int,
    device: str,
    progress: Progress | None,
) -> FloatArray:
    """Logarithms of the chances that each model, trained on its own canary, gives at the canary's beginning.

    All models begin with the same weights, which are public as the other texts are.
    """
    model = mlp(DIGITS * BEFORE, *hidden, size)
    recipe = Recipe(model, noise, steps=steps, clip=CLIP, learning_rate=LEARNING_RATE)
    others = Examples(_read(rng.integers(DIGITS, size=(OTHERS, BEFORE))), rng.integers(size, size=OTHERS))
    beginning = _read(rng.integers(DIGITS, size=(1, BEFORE)))
    start = [rng.standard_normal(shape) * (len(shape) > 1) / sqrt(shape[-1]) for shape in model.shapes]
    canaries = Examples(np.repeat(beginning, len(last), axis=0), last)
    trained = train(recipe, others, len(last), own=canaries, start=start, seed=seed, device=device, progress=progress)
    chances = trained.outputs(Examples(beginning, np.zeros(1, dtype=np.int64)))[:, 0]
    return np.asarray(np.log(np.maximum(chances.astype(float), np.finfo(np.float32).tiny)))


def _read(texts: IntArray) -> FloatArray:
    """The characters before, one-hot, one after the other."""
    return np.eye(DIGITS)[texts].reshape(len(texts), -1)
