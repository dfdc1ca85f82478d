"""Audits from one run: how often they are wrong, and how much they certify.

    python -m benchmarks.one_run [--quick]

The first table holds the share of audits, each of one run of code at the boundary of its promise, in which the true
epsilon is refuted: a certificate above it is wrong, and may happen in a share alpha at most. The order of the guesses
and the moment to stop go by the output and by what was revealed so far. `uncorrected` is what a maximum over numbers
of guesses gives if each is taken as if it had been fixed beforehand, as some tools do. The second table holds medians.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import betainc

from dprisk.guarantees import GaussianDP
from dprisk.population import Targets
from dprisk.population.one_run import Guesses, best_moment_epsilon, counted_epsilon, log_evidence
from dprisk.population.uniform import exact_law
from dprisk.types import BoolArray, FloatArray

ALPHA = 0.05
CANARIES = 200
Draw = Callable[[np.random.Generator], BoolArray]  # whether each guess was right, in the order of the attacker


@dataclass(frozen=True)
class Setting:
    """Code at the boundary of (epsilon, delta), attacked: `draw` makes a run."""

    name: str
    epsilon: float
    delta: float
    draw: Draw
    values: int = 2
    canaries: int = CANARIES

    @property
    def targets(self) -> Targets:
        return _targets(self.canaries, self.values)


@cache
def _targets(canaries: int, values: int) -> Targets:
    return Targets.uniform(canaries, values)


# --- runs ---


def responses(epsilon: float, values: int = 2, canaries: int = CANARIES) -> Draw:
    """Randomised response: every guess is as good as another."""
    honest = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    return lambda rng: rng.random(canaries) < honest


def sums(mu: float, canaries: int = CANARIES) -> Draw:
    """Noise on a sum of canaries at right angles: score N(+-mu/2, 1), most certain first."""

    def draw(rng: np.random.Generator) -> BoolArray:
        inside = rng.integers(0, 2, canaries)
        scores = rng.normal((inside - 0.5) * mu, 1)
        right: BoolArray = ((scores > 0) == (inside == 1))[np.argsort(-np.abs(scores))]
        return right

    return draw


def wandering(mu: float, canaries: int = CANARIES) -> Draw:
    """The same, by an attacker who takes the most certain after a right guess, and a middling one after a wrong."""
    sure = sums(mu, canaries)

    def draw(rng: np.random.Generator) -> BoolArray:
        left: list[bool] = sure(rng).tolist()
        found: list[bool] = []
        while left:
            found.append(left.pop(0 if not found or found[-1] else len(left) // 2))
        return np.array(found)

    return draw


def choices(mu: float, values: int, canaries: int) -> Draw:
    """Noise on sums of canaries with several values, any two of them mu apart; the surest first."""

    def draw(rng: np.random.Generator) -> BoolArray:
        scores = rng.normal(size=(canaries, values))
        scores[:, 0] += mu / math.sqrt(2)  # the true value is the first, without loss
        top = np.partition(scores, -2, axis=1)
        right: BoolArray = (scores.argmax(axis=1) == 0)[np.argsort(top[:, -2] - top[:, -1])]
        return right

    return draw


def revealing(epsilon: float, delta: float, together: bool, canaries: int = CANARIES) -> Draw:
    """Randomised response that tells the value itself with probability delta, of each canary or of all at once."""
    honest = responses(epsilon, canaries=canaries)

    def draw(rng: np.random.Generator) -> BoolArray:
        told = np.full(canaries, rng.random() < delta) if together else rng.random(canaries) < delta
        right: BoolArray = (honest(rng) | told)[np.argsort(~told, kind="stable")]
        return right

    return draw


def worst(epsilon: float, delta: float, values: int) -> Draw:
    """The mechanism at which a refutation by counting all guesses is as likely as the promise allows."""

    def draw(rng: np.random.Generator) -> BoolArray:
        right = np.arange(CANARIES) < rng.choice(CANARIES + 1, p=_worst_law(epsilon, delta, values))
        return rng.permutation(right)

    return draw


@cache
def _worst_law(epsilon: float, delta: float, values: int) -> FloatArray:
    return exact_law([(epsilon, delta)], values, least_refuting(CANARIES, values, epsilon, delta), CANARIES)


def settings() -> Iterator[Setting]:
    """Every mechanism at the boundary of what it promises."""
    for values in (2, 10):
        yield Setting(f"randomised response, {values} values", 1.0, 0.0, responses(1.0, values), values)
    for delta in (1e-5, 1e-3):
        for name, order in (("most certain first", sums), ("wandering", wandering)):
            truth = GaussianDP(1.0).epsilon_at(delta)
            yield Setting(f"Gaussian sums, delta {delta:g}, {name}", truth, delta, order(1.0))
    for together in (False, True):
        name = "all at once" if together else "each"
        yield Setting(f"reveals with 1e-3, {name}", 1.0, 1e-3, revealing(1.0, 1e-3, together))
    for values in (2, 10):
        yield Setting(f"the worst law, {values} values", 1.0, 1e-4, worst(1.0, 1e-4, values), values)


# --- certificates ---


@cache
def least_refuting(guesses: int, values: int, epsilon: float, delta: float) -> int:
    """How many right guesses certify more than epsilon; one more than there are if none do."""
    targets, low, high = _targets(CANARIES, values), 0, guesses + 1
    while low + 1 < high:
        middle = (low + high) // 2
        counted = Guesses(np.arange(guesses) < middle, targets.baselines[:guesses], targets)
        low, high = (low, middle) if counted_epsilon(counted, ALPHA, delta) > epsilon else (middle, high)
    return high


def errors(setting: Setting, audits: int, seed: int = 0) -> dict[str, float]:
    """How often the truth is refuted: read at the best moment, counted all or a tenth, and by the invalid maximum."""
    rng = np.random.default_rng(seed)
    right = np.array([setting.draw(rng) for _ in range(audits)])
    n, targets, truth, delta = setting.canaries, setting.targets, setting.epsilon, setting.delta
    masses = targets.baselines
    best = [
        guesses.successes > 0 and log_evidence(guesses, truth, truth, ALPHA, delta).max() >= 0
        for guesses in (Guesses(row, masses, targets) for row in right)
    ]
    found = {"best moment": float(np.mean(best))}
    for name, count in (("all", n), ("a tenth", n // 10)):
        least = least_refuting(count, setting.values, truth, delta)
        found[name] = float((right[:, :count].sum(axis=1) >= least).mean())
    so_far, places = np.cumsum(right, axis=1), np.arange(1, n + 1)
    chance = math.exp(truth) / (math.exp(truth) + setting.values - 1)
    tails = np.where(so_far > 0, betainc(np.maximum(so_far, 1), places - so_far + 1, chance), 1.0)
    found["uncorrected"] = float((tails.min(axis=1) <= ALPHA).mean())
    return found


def medians(draw: Draw, values: int, canaries: int, audits: int, seed: int = 0) -> dict[str, float]:
    """The median certificate at delta 0: at the best moment, and counted."""
    rng, targets = np.random.default_rng(seed), Targets.uniform(canaries, values)
    runs = [Guesses(draw(rng), targets.baselines, targets) for _ in range(audits)]
    certified: dict[str, list[float]] = {
        "best moment": [best_moment_epsilon(run, ALPHA)[0] for run in runs],
        "all": [counted_epsilon(run, ALPHA) for run in runs],
        "a tenth": [counted_epsilon(run.first(canaries // 10), ALPHA) for run in runs],
    }
    return {name: float(np.median(found)) for name, found in certified.items()}


def powers() -> Iterator[tuple[str, Draw, int, int]]:
    """What is audited for the second table: name, run, values, canaries."""
    for mu in (1.0, 2.0, 4.0):
        yield f"Gaussian sums, mu {mu:g}, 1000 canaries", sums(mu, 1000), 2, 1000
    yield "randomised response, epsilon 1, 1000 canaries", responses(1.0, canaries=1000), 2, 1000
    for values in (2, 4, 16, 64):
        yield f"{values} values, any two 2 apart, 1000 canaries", choices(2.0, values, 1000), values, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="500 audits a row instead of 5,000")
    audits = 500 if parser.parse_args().quick else 5000
    most = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / audits)
    print(f"Truth refuted in {audits:,} audits a row; at most {most:.4f} by chance")
    good = True
    for setting in settings():
        started = time.perf_counter()
        found = errors(setting, audits)
        good &= all(share <= most for name, share in found.items() if name != "uncorrected")
        shares = "  ".join(f"{name} {share:.4f}" for name, share in found.items())
        print(f"{setting.name:44s} {shares}  {time.perf_counter() - started:5.1f} s")
    print("Median certified epsilon")
    for name, draw, values, canaries in powers():
        told = medians(draw, values, canaries, max(20, audits // 50))
        print(f"{name:48s} " + "  ".join(f"{way} {value:.2f}" for way, value in told.items()))
    print("All rates are what alpha allows." if good else "Some rates are too high.")
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
