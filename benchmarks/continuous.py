"""How fast and how close the certified bounds for a record in an interval are.

    python -m benchmarks.continuous [--quick]

1. The exponential mechanism on [0, 1] in the settings of RAD A.2: the distance of the two bounds and the seconds.
2. The papers' nested Monte Carlo beside it, as ratios: its error in the same time, and its time for the same error.
3. Gaussian and Laplace noise on 1000 positions with a skewed prior and a distance: seconds, error, and the interval.
4. Calibration for a record in an interval, as so many certificates of full closeness as it takes the time of.

--quick takes three epsilons of twenty.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy.special import betaln

from dprisk import Density, Gaussian, Laplace, Line, Prior, Threat, assess, calibrate
from dprisk.exact.certified import certify
from dprisk.mechanisms import OnInterval
from dprisk.types import FloatArray
from tests.nested_monte_carlo import nested_monte_carlo

ETAS = (0.1, 0.25, 0.5, 0.75)


def paper_settings(epsilons: list[float], limit: float = 1e-6) -> None:
    print(f"\n1. Exponential mechanism on [0, 1], bounds {limit:g} apart, epsilon {epsilons[0]:g} to {epsilons[-1]:g}")
    widest, slowest = 0.0, 0.0
    for prior in (Density.uniform(), Density.beta(0.1, 0.1)):
        for eta in ETAS:
            apart, took, grids = [], [], []
            for epsilon in epsilons:
                start = time.perf_counter()
                found = certify(OnInterval.exponential(epsilon), prior, eta, limit)
                took.append(time.perf_counter() - start)
                apart.append(max(found.advantage.gap, found.success.gap))
                grids.append(found.grid)
            print(
                f"   {prior.describe():14} eta = {eta:4}: apart at most {max(apart):.1e}   seconds {min(took):.2f} to "
                f"{max(took):.2f}, mean {np.mean(took):.2f}   grid at most {max(grids)}"
            )
            widest, slowest = max(widest, *apart), max(slowest, *took)
    print(f"   all: apart at most {widest:.1e} ({widest / limit:.2f} of the limit), slowest {slowest:.2f} s")


def beside_nested_monte_carlo(samples: int = 300, repeats: int = 6) -> None:
    """Its error is the root mean square over repetitions, far below what its own error bound allows it to claim."""
    print(f"\n2. Nested Monte Carlo with {samples} outputs and {samples} records each, epsilon = 4")

    def steep(z: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-0.9 * np.log(z * (1 - z)) - betaln(0.1, 0.1)))

    def tails(size: int, rng: np.random.Generator) -> FloatArray:
        return rng.beta(0.1, 0.1, size)

    def flat(size: int, rng: np.random.Generator) -> FloatArray:
        return rng.random(size)

    mechanism = OnInterval.exponential(4.0)
    settings: list[tuple[Density, Callable[[FloatArray], FloatArray], Callable[[int, np.random.Generator], FloatArray]]]
    settings = [(Density.uniform(), np.ones_like, flat), (Density.beta(0.1, 0.1), steep, tails)]
    for prior, pdf, draw in settings:
        for eta in (0.1, 0.75):
            start = time.perf_counter()
            found = certify(mechanism, prior, eta, 1e-6)
            ours = time.perf_counter() - start
            middle = (found.advantage.lower + found.advantage.upper) / 2
            rng = np.random.default_rng(1)
            start = time.perf_counter()
            runs = [
                nested_monte_carlo(mechanism, pdf, draw, eta, found.baseline.upper, samples, rng)
                for _ in range(repeats)
            ]
            theirs = (time.perf_counter() - start) / repeats
            error = float(np.sqrt(np.mean([(run.estimate - middle) ** 2 for run in runs])))
            # The error falls as 1 / sqrt(samples), the time grows at least as samples.
            same_time = error * np.sqrt(theirs / ours) / found.advantage.gap
            same_error = theirs * (error / found.advantage.gap) ** 2 / ours
            print(
                f"   {prior.describe():14} eta = {eta:4}: ours {found.advantage.gap:.1e} in {ours:.2f} s, theirs "
                f"{error:.1e} in {theirs:.2f} s (claims {runs[0].error:.1e})\n"
                f"      extrapolated: error {same_time:,.0f} times ours in the same time, at least {same_error:,.0f} "
                "times our time for the same error"
            )


def many_positions(size: int = 1000, eta: float = 0.05) -> None:
    print(f"\n3. {size} positions in [0, 1], beta(2, 5) prior, eta = {eta}; and the whole interval")
    edges = np.linspace(0, 1, size + 1)
    places = (edges[1:] + edges[:-1]) / 2
    weights = places * (1 - places) ** 4
    threat = Threat(Prior(weights / weights.sum()), success=Line(eta, places))
    pairs = [
        (Gaussian(places, 0.1), OnInterval.gaussian(0.1)),
        (Laplace(places, scale=0.1), OnInterval.laplace(10.0)),
    ]
    for discrete, continuous in pairs:
        start = time.perf_counter()
        risk = assess(discrete, threat)
        middle = time.perf_counter()
        whole = certify(continuous, Density.beta(2, 5), eta, 1e-4)
        end = time.perf_counter()
        lower, upper = whole.advantage.lower, whole.advantage.upper
        print(
            f"   {type(discrete).__name__:9} RAD {risk.advantage:.9f} (error at most "
            f"{risk.optimum.error:.1e}) in {middle - start:.2f} s;  interval: [{lower:.6f}, {upper:.6f}] in "
            f"{end - middle:.2f} s"
        )


def calibration(eta: float = 0.1, limit: float = 6.0) -> None:
    print(f"\n4. Noise for an advantage of 0.1, beta(2, 5) prior, eta = {eta}")
    prior = Density.beta(2, 5)
    for template in (OnInterval.laplace(1.0), OnInterval.gaussian(1.0)):
        start = time.perf_counter()
        found = calibrate(template, Threat.reconstruction(prior, within=eta), advantage=0.1)
        middle = time.perf_counter()
        certify(found.subject, prior, eta, 0.99e-6)  # not the one that the search remembers
        one = time.perf_counter() - middle
        ratio = (middle - start) / one
        print(
            f"   {found.parameter} {found.value:.5f} in {middle - start:.1f} s, {ratio:.1f} certificates of {one:.1f} s"
            f" (limit {limit:g})",
            "" if ratio <= limit else "TOO SLOW",
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    paper_settings([1.0, 8.0, 20.0] if parser.parse_args().quick else [float(epsilon) for epsilon in range(1, 21)])
    beside_nested_monte_carlo()
    many_positions()
    calibration()


if __name__ == "__main__":
    main()
