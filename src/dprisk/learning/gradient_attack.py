"""What could somebody find out who sees every noisy gradient of a training? Measured in many trainings.

The informed attacker of the papers knows all records but one, the weights and the noisy gradients of every step, and
which of those records were in each batch. It compares candidates for the last record by their exact likelihood. From
the same trainings follow the risks for whatever it knows of the record beforehand.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import torch

from dprisk.attacks import OptimalAttack, SimplifiedAttack
from dprisk.attacks.estimate import checked, draw_records, measure_recorded
from dprisk.auditing.certify.bets import advantage_lower_bound
from dprisk.bounds.papers import rad_theorem_4_2, rad_theorem_5_1_second
from dprisk.calibration import calibrate
from dprisk.errors import InputFileError, as_number, as_whole, fail, require
from dprisk.guarantees import DPSGD, GaussianDP, dp_sgd
from dprisk.learning.attack_answer import GradientAttack, Measured
from dprisk.learning.channel import NoisyGradients, as_outputs
from dprisk.learning.examples import Examples
from dprisk.learning.randomness import streams
from dprisk.learning.training import Evidence, Recipe, as_machine, train
from dprisk.risks import WorstCase
from dprisk.threat import Knowledge, Prior, Threat
from dprisk.types import FloatArray, IntArray

KNOWLEDGE = ("none", "label", "all")
BLOCK = {"cpu": 256, "cuda": 1 << 14}  # trainings between two savings
Progress = Callable[[int, int], None]


class AttackInterrupted(KeyboardInterrupt):
    """Somebody stopped the trainings. Those that were done are in the file, if one was given."""

    def __init__(self, done: int, wanted: int, file: Path | None) -> None:
        kept = f"; the same call goes on from {file}" if file is not None and done > 0 else ", and nothing was kept"
        super().__init__(f"Stopped after {done} of {wanted} trainings{kept}.")


def noise_for(epsilon: float, delta: float, recipe: Recipe) -> float:
    """The noise multiplier with which a recipe is (epsilon, delta)-DP for adding or removing a record."""
    template = DPSGD(recipe.sample_rate, recipe.steps)
    return float(calibrate(template, epsilon=(as_number("epsilon", epsilon), as_number("delta", delta))).value)


def attack_gradients(
    recipe: Recipe,
    data: Examples,
    candidates: Examples,
    prior: Prior | None = None,
    *,
    knows: str | Sequence[str] = KNOWLEDGE,
    noise_multipliers: float | Sequence[float] | None = None,
    runs: int = 1000,
    alpha: float = 0.01,
    delta: float = 1e-5,
    seed: int = 0,
    start: Sequence[npt.ArrayLike] | None = None,
    frozen: bool = False,
    device: str = "cpu",
    fast: bool = False,
    file: str | Path | None = None,
    progress: Progress | None = None,
) -> GradientAttack:
    """Train `runs` times with each noise multiplier (the recipe's, if none is given), attack, and measure.

    In each training the record is drawn from the `prior`, uniform over the candidates if left out. The attacker knows
    all of `data`, and which of it was in each batch; of the record nothing ("none"), its "label", or "all" of it.

    Intervals are each wrong with chance `alpha`. A run's value is how likely its guess was to be right, given what was
    seen: it has the mean of guesses that were right, and varies less. The same seed gives the same result on the same
    kind of device, but for rounding. Epsilons are told at `delta`. With a `file`, trainings that are done are kept
    there every while, and the same call goes on from it.
    """
    beliefs = _beliefs(prior, data, candidates)
    (_, alpha), runs, seed = checked(None, alpha), as_whole("runs", runs, least=2), as_whole("seed", seed, least=0)
    delta = as_number("delta", delta)
    require(0 <= delta <= 1, f"delta must lie in [0, 1], got {delta:g}")
    levels = _levels([recipe.noise_multiplier] if noise_multipliers is None else noise_multipliers)
    kinds = [knows] if isinstance(knows, str) else dict.fromkeys(knows)
    require(len(levels) > 0 and len(kinds) > 0, "Give at least one noise multiplier and one kind of knowledge.")
    as_machine(device)
    threats = {name: _threat(beliefs, name, candidates) for name in kinds}
    drawn = draw_records(beliefs.weights, runs, 1, np.random.default_rng([seed, 1]))
    job = _Trainings(recipe, data, candidates, drawn, levels, seed, start, frozen, device, fast)
    evidence = job.evidence(None if file is None else Path(file), progress)
    measured = []
    for level, noise in enumerate(levels):
        own = replace(recipe, noise_multiplier=noise)
        outputs = as_outputs(evidence)[level * runs : (level + 1) * runs]
        channel = NoisyGradients(own, data, candidates)
        measured += [
            _measured(channel, name, threat, outputs, drawn, alpha, delta, seed) for name, threat in threats.items()
        ]
    return GradientAttack(tuple(measured), runs, alpha, delta, frozen)


def _beliefs(prior: Prior | None, data: Examples, candidates: Examples) -> Prior:
    for name, part in {"data": data, "candidates": candidates}.items():
        require(isinstance(part, Examples), f"{name} must be Examples(inputs, labels), not {type(part).__name__}.")
    require(len(candidates) > 1, "With one candidate there is nobody to compare it with: give two or more.")
    beliefs = Prior.uniform(len(candidates)) if prior is None else prior
    require(beliefs.size == len(candidates), f"The prior is over {beliefs.size} records, not {len(candidates)}.")
    numbers, names = [str(number) for number in range(beliefs.size)], [str(label) for label in beliefs.labels or ()]
    mixed = names != numbers and sorted(names) == sorted(numbers)
    require(not mixed, f"Candidates are numbered from 0 in order, the prior has {', '.join(names)}: put it in order.")
    require(beliefs.support_size > 1, "The prior is sure of one candidate, so that there is nothing to find out.")
    return beliefs


def _levels(given: Any) -> list[float]:
    each = [as_number("A noise multiplier", noise) for noise in (given if np.ndim(given) else [given])]
    told = f"Noise multipliers must be finite and above 0, got {each}: without noise the gradients tell everything."
    require(all(0 < noise < math.inf for noise in each), told)
    return each


def _threat(prior: Prior, knows: str, candidates: Examples) -> Threat:
    require(knows in KNOWLEDGE, f"`knows` is one of {', '.join(KNOWLEDGE)}, got {knows!r}.")
    if knows != "label":
        return Threat(prior, knows=knows)
    names, groups = np.unique(candidates.labels, return_inverse=True)
    return Threat(prior, knows=Knowledge(groups, tuple(names.tolist()), ("label",)))


def _measured(
    channel: NoisyGradients,
    knows: str,
    threat: Threat,
    outputs: Any,
    drawn: IntArray,
    alpha: float,
    delta: float,
    seed: int,
) -> Measured:
    attacks: dict[str, Any] = {
        "best success": OptimalAttack(channel, threat, maximise="success"),
        "best advantage": OptimalAttack(channel, threat),
        "inner products": SimplifiedAttack(channel, threat),
    }
    found = {
        name: measure_recorded(
            attack, outputs, drawn, threat, np.random.default_rng([seed, 2]), alpha, channel, by_bets
        )
        for name, attack in attacks.items()
    }
    recipe = channel.recipe
    guarantee = dp_sgd(recipe.noise_multiplier, recipe.sample_rate, recipe.steps)
    return Measured(
        recipe.noise_multiplier,
        guarantee.epsilon_at(delta),
        knows,
        threat,
        found,
        WorstCase(guarantee, threat),
        printed_line(recipe, threat) if recipe.sample_rate == 1 else None,
    )


def by_bets(values: FloatArray, low: float, high: float, alpha: float) -> tuple[float, float]:
    """An interval for the mean of independent values in [low, high]: a bet on either side, at half the error.

    Wrong with probability at most alpha, for any number of values; far narrower than empirical Bernstein's for some
    hundred values whose range is wider than they vary.
    """
    inside = np.clip(values, low, high)  # for what floats add at the ends
    lower = advantage_lower_bound(inside, alpha / 2, low=low, high=high)
    upper = -advantage_lower_bound(-inside, alpha / 2, low=-high, high=-low)
    return lower, upper


def printed_line(recipe: Recipe, threat: Threat) -> float:
    """The RAD line of the papers' figures for full-batch DP-SGD: it takes mu = sqrt(T) / sigma for replacing a record.

    RAD Examples 5.2 and 5.7, and Theorem 4.2 where something is known. Two clipped gradients may be twice as far apart,
    so it is no bound (theory, correction 1).
    """
    curve = GaussianDP(math.sqrt(recipe.steps) / recipe.noise_multiplier)
    kappa = threat.prior.collision_probability
    lines = [rad_theorem_4_2(curve.total_variation, kappa)]
    if threat.knows.is_none:
        lines.append(rad_theorem_5_1_second(curve, kappa, threat.kappa_plus))
    return min(lines)


def _told(progress: Progress, first: int, wanted: int, done: int, _: int) -> None:
    progress(first + done, wanted)


@dataclass(frozen=True)
class _Trainings:
    """The trainings of all noise levels: the same targets, starts and draws for each, so that curves are smooth."""

    recipe: Recipe
    data: Examples
    candidates: Examples
    drawn: IntArray
    levels: list[float]
    seed: int
    start: Sequence[npt.ArrayLike] | None
    frozen: bool
    device: str
    fast: bool

    def evidence(self, file: Path | None, progress: Progress | None) -> Evidence:
        wanted = len(self.levels) * self.drawn.size
        if file is not None:
            there = file.parent.is_dir()
            require(there, f"There is no folder {file.parent} to keep {file.name} in.", InputFileError)
        parts = [] if file is None or not file.exists() else [self._kept(file)]
        done = sum(len(part.products) for part in parts)
        try:
            for block in self._blocks(done, wanted):
                told = None if progress is None else partial(_told, progress, block.start, wanted)
                parts.append(self._trained(block, told))
                done = block.stop
                if file is not None:
                    self._keep(file, Evidence.joined(parts))
        except KeyboardInterrupt as stop:
            raise AttackInterrupted(done, wanted, file) from stop
        return Evidence.joined(parts)

    def _blocks(self, done: int, wanted: int) -> Iterator[range]:
        size = BLOCK.get(torch.device(self.device).type, BLOCK["cuda"])
        for first in range(done, wanted, size):
            yield range(first, min(first + size, wanted))

    def _trained(self, block: range, told: Any) -> Evidence:
        runs = self.drawn.size
        trained = train(
            self.recipe,
            self.data,
            [number % runs for number in block],
            candidates=self.candidates,
            targets=self.drawn[[number % runs for number in block]],
            noise_multipliers=[self.levels[number // runs] for number in block],
            start=self.start,
            frozen=self.frozen,
            seed=self.seed,
            device=self.device,
            fast=self.fast,
            progress=told,
        )
        assert trained.evidence is not None
        return trained.evidence

    def _identity(self) -> str:
        """What tells these trainings from others."""
        told = repr((self.recipe, self.levels, self.seed, self.frozen, torch.device(self.device).type, self.fast))
        mark = hashlib.sha256(told.encode())
        for array in (self.data.inputs, self.data.labels, self.candidates.inputs, self.candidates.labels, self.drawn):
            mark.update(np.ascontiguousarray(array).tobytes())
        begun = self.recipe.model.start(streams(self.seed, [0], torch.device("cpu")))  # of a module, its own weights
        for part in self.start or begun:
            mark.update(np.asarray(part, dtype=np.float32).tobytes())
        for part in self.recipe.model.fixed:
            mark.update(part.detach().cpu().numpy().tobytes())
        return mark.hexdigest()

    def _keep(self, file: Path, evidence: Evidence) -> None:
        unfinished = file.with_suffix(".part")
        with unfinished.open("wb") as out:
            np.savez(out, identity=self._identity(), **vars(evidence))
        unfinished.replace(file)

    def _kept(self, file: Path) -> Evidence:
        try:
            with file.open("rb") as source, np.load(source) as held:
                identity = str(held["identity"])
                evidence = Evidence(held["log_likelihood"], held["products"], held["squares"])
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
            fail(f"{file} does not hold trainings; give another file, or remove it.", InputFileError)
        if identity != self._identity():
            fail(f"{file} holds other trainings; give another file, or remove it to begin again.", InputFileError)
        return evidence
