"""Draw docs/figures/adult.svg: what a noisy mean and a noisy histogram of the Adult working hours risk.

python docs/figures/adult.py            from the counts in docs/examples/adult-hours.csv
python docs/figures/adult.py FOLDER     from the data set in that folder; writes the counts first
"""

import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from dprisk import Mechanism, Prior, PureDP, Threat, assess, release
from dprisk.attacks import OptimalAttack
from dprisk.attacks.estimate import one_run, sets_guessed
from dprisk.datasets import adult
from dprisk.releases import Histogram, Mean

COUNTS = Path(__file__).parents[1] / "examples" / "adult-hours.csv"
HOURS = np.arange(101)
OTHERS = {"hours-per-week": [40] * 999}  # any 999 people: they shift all answers alike
ETAS = {0: ("#111111", ""), 40: ("#b0413e", "7 4"), 80: ("#2a7fc5", "2 3"), 100: ("#c58b2a", "1 5")}
EPSILONS = np.linspace(0, 16, 33)
SOME = (1, 2, 4, 6, 8, 12, 16)  # where attacks are simulated and histograms estimated
RUNS = 4000
WIDTH, HEIGHT, LEFT, TOP, GAP, BELOW = 230, 170, 64, 28, 40, 42


@dataclass(frozen=True)
class Point:
    """A measured number, with its interval if it has one."""

    eta: int
    epsilon: float
    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """One plot: exact values at each of `EPSILONS` by eta, and points."""

    curves: dict[int, list[float]]
    points: list[Point]


def priors() -> dict[str, Prior]:
    """What the attacker believes: nothing, the frequencies in the data, 0 or 100 hours."""
    ends = np.where((HOURS == 0) | (HOURS == 100), 0.5, 0.0)
    return {
        "uniform": Prior.uniform(101, HOURS),
        "as in the data": Prior.from_csv(COUNTS),
        "0 or 100 hours": Prior(ends, HOURS),
    }


def mean(epsilon: float, clamped: bool = False) -> Mechanism:
    """The mean of 1000 people's hours with Laplace noise; clamped to what a mean of hours can be, as in the paper."""
    query = Mean("hours-per-week", low=0, high=100)
    return release(query, OTHERS, HOURS, PureDP(epsilon), interval=(0, 100) if clamped else None)


def histogram(epsilon: float, records: np.ndarray = HOURS) -> Mechanism:
    """How many work each number of hours, with Laplace noise."""
    return release(Histogram("hours-per-week", HOURS.tolist()), OTHERS, records, PureDP(epsilon))


def simulate(epsilon: float, prior: Prior, eta: int, rng: np.random.Generator) -> tuple[float, float]:
    """Advantage and success of the best attackers in so many runs, from one unbiased number a run."""
    mechanism, threat = mean(epsilon, clamped=True), Threat.reconstruction(prior, within=eta)
    records = rng.choice(HOURS.size, size=RUNS, p=prior.weights)
    outputs = mechanism.sample(records, rng)
    attacks = (OptimalAttack(mechanism, threat, goal) for goal in ("advantage", "success"))
    gained, right = (one_run(threat, sets_guessed(attack, outputs, threat, rng), records) for attack in attacks)
    return float((gained[1] - gained[0]).mean()), float(right[1].mean())


def of_the_mean(prior: Prior, rng: np.random.Generator) -> tuple[Panel, Panel]:
    """Advantage and success: exact curves, simulated attacks as points."""
    advantage, success = Panel({}, []), Panel({}, [])
    for eta in ETAS:
        threat = Threat.reconstruction(prior, within=eta)
        risks = [assess(mean(epsilon), threat) for epsilon in EPSILONS[1:]]
        advantage.curves[eta] = [0.0, *(risk.advantage for risk in risks)]
        success.curves[eta] = [threat.baseline, *(risk.success for risk in risks)]
        for epsilon in SOME:
            gained, right = simulate(epsilon, prior, eta, rng)
            advantage.points.append(Point(eta, epsilon, gained))
            success.points.append(Point(eta, epsilon, right))
    return advantage, success


def of_the_histogram(prior: Prior) -> Panel:
    """Advantage: exact where there is a closed form, estimates with intervals elsewhere."""
    panel = Panel({}, [])
    for eta in ETAS:
        threat = Threat.reconstruction(prior, within=eta)
        if eta == 100:  # every guess is right
            panel.curves[eta] = [0.0] * EPSILONS.size
        elif prior.is_uniform_on_support and (eta == 0 or prior.support_size == 2):
            records = HOURS[prior.support]
            possible = Threat(Prior.uniform(records.size, records))  # the two ends are more than any eta apart
            exact = (assess(histogram(epsilon, records), possible) for epsilon in EPSILONS[1:])
            panel.curves[eta] = [0.0, *(risk.advantage for risk in exact)]
        else:
            for epsilon in SOME:
                risk = assess(histogram(epsilon), threat, runs=RUNS)
                assert risk.estimate is not None
                panel.points.append(Point(eta, epsilon, risk.advantage, risk.estimate.advantage_interval))
    return panel


@cache
def panels() -> list[list[Panel]]:
    """Three rows, advantage and success of the mean and advantage of the histogram, with a column for each prior."""
    rngs = np.random.default_rng(0).spawn(3)
    means = [of_the_mean(prior, rng) for prior, rng in zip(priors().values(), rngs, strict=True)]
    return [[pair[0] for pair in means], [pair[1] for pair in means], [*map(of_the_histogram, priors().values())]]


def draw(panel: Panel, row: int, column: int) -> str:
    """One plot."""
    left, top = LEFT + column * (WIDTH + GAP), TOP + row * (HEIGHT + BELOW)

    def place(epsilon: float, value: float) -> tuple[float, float]:
        return left + WIDTH * epsilon / EPSILONS[-1], top + HEIGHT * (1 - value)

    parts = [f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#444"/>']
    for tick in range(0, 17, 4):
        x, _ = place(tick, 0)
        parts.append(f'<text x="{x:.1f}" y="{top + HEIGHT + 15}" text-anchor="middle">{tick}</text>')
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        _, y = place(0, value)
        parts.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for eta, values in panel.curves.items():
        colour, dashes = ETAS[eta]
        places = (place(epsilon, value) for epsilon, value in zip(EPSILONS, values, strict=True))
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes or "none"}"'
        parts.append(f'<polyline points="{points}" {style}/>')
    for point in panel.points:
        colour, _ = ETAS[point.eta]
        x, y = place(point.epsilon, point.value)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>')
        if point.interval:
            (_, low), (_, high) = (place(point.epsilon, end) for end in point.interval)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour}"/>')
    return "\n".join(parts)


def picture() -> str:
    """The whole drawing."""
    width, height = LEFT + 3 * WIDTH + 2 * GAP + 12, TOP + 3 * (HEIGHT + BELOW) + 34
    parts = [draw(panel, row, column) for row, line in enumerate(panels()) for column, panel in enumerate(line)]
    for column, title in enumerate(priors()):
        x = LEFT + column * (WIDTH + GAP) + WIDTH / 2
        parts.append(f'<text x="{x}" y="{TOP - 9}" text-anchor="middle">prior: {title}</text>')
    for row, title in enumerate(("mean: advantage", "mean: success", "histogram: advantage")):
        y = TOP + row * (HEIGHT + BELOW) + HEIGHT / 2
        parts.append(f'<text transform="translate(16 {y}) rotate(-90)" text-anchor="middle">{title}</text>')
        middle = LEFT + WIDTH + GAP + WIDTH / 2
        parts.append(f'<text x="{middle}" y="{y + HEIGHT / 2 + 29}" text-anchor="middle">epsilon</text>')
    for number, (eta, (colour, dashes)) in enumerate(ETAS.items()):
        x, y = LEFT + number * 170, height - 16
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes or "none"}"'
        parts.append(f'<line x1="{x}" x2="{x + 30}" y1="{y}" y2="{y}" {style}/>')
        parts.append(f'<circle cx="{x + 40}" cy="{y}" r="2.6" fill="{colour}"/>')
        parts.append(f'<text x="{x + 48}" y="{y + 4}">{"exactly" if eta == 0 else f"within {eta} hours"}</text>')
    body = "\n".join(parts)
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def count(folder: str) -> None:
    """Write how many people of the data set work each number of hours."""
    hours = Counter(adult(folder)["hours-per-week"])
    COUNTS.write_text("label,count\n" + "".join(f"{hour},{hours[hour]}\n" for hour in HOURS.tolist()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        count(sys.argv[1])
    Path(__file__).with_name("adult.svg").write_text(picture())
