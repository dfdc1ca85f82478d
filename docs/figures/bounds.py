"""Draw docs/figures/bounds.svg: every bound on the advantage against the exact worst case, for three priors.

python docs/figures/bounds.py
"""

from pathlib import Path

import numpy as np

from dprisk import Prior, PureDP, Threat, bounds

PRIORS = {"uniform": Prior.uniform(10), "zipf(1)": Prior.zipf(10), "0.8 and the rest": Prior([0.8] + [0.2 / 9] * 9)}
SHOWN = {
    "variation": ("RAD Thm 4.2", "#9a9a9a"),
    "curve-between-baselines": ("RAD Thm 5.1, first", "#c9a0dc"),
    "wpes-exact": ("WPES'24 Thm 7.3", "#7fb77e"),
    "three-of-pair": ("RAD Prop 5.3", "#c58b2a"),
    "heaviest-pairs": ("thesis Thm 7", "#d98cb3"),
    "knapsack": ("RAD Thm 5.5", "#b0413e"),
    "universal": ("tanh(eps/4)", "#2a7fc5"),
    "sets": ("theory 3.4 c", "#3aa6a0"),
    "curve-program": ("theory 3.6", "#8a6d3b"),
    "worst-blocks": ("exact (theory 3.2)", "#111111"),
}
EPSILONS = np.linspace(0, 6, 61)
WIDTH, HEIGHT, LEFT, TOP, GAP = 230, 200, 46, 28, 34


def curves(prior: Prior) -> dict[str, list[float]]:
    """Each bound's value at each epsilon."""
    found: dict[str, list[float]] = {name: [] for name in SHOWN}
    for epsilon in EPSILONS:
        values = bounds.evaluate(PureDP(float(epsilon)), Threat(prior), "advantage").values
        for value in values:
            if value.bound.name in found:
                found[value.bound.name].append(value.number)
    return found


def panel(number: int, title: str, prior: Prior) -> str:
    """One plot."""
    left = LEFT + number * (WIDTH + GAP)
    parts = [
        f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#444"/>',
        f'<text x="{left + WIDTH / 2}" y="{TOP - 9}" text-anchor="middle">{title}</text>',
    ]
    for tick in range(0, 7, 2):
        x = left + WIDTH * tick / 6
        parts.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 15}" text-anchor="middle">{tick}</text>')
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = TOP + HEIGHT * (1 - tick)
        parts.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for name, values in curves(prior).items():
        colour, width = SHOWN[name][1], 2.4 if name == "worst-blocks" else 1.4
        points = " ".join(
            f"{left + WIDTH * e / 6:.1f},{TOP + HEIGHT * (1 - min(v, 1.0)):.1f}"
            for e, v in zip(EPSILONS, values, strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
    return "\n".join(parts)


def picture() -> str:
    """The whole drawing."""
    width, height = LEFT + 3 * WIDTH + 2 * GAP + 12, TOP + HEIGHT + 82
    parts = [panel(number, title, prior) for number, (title, prior) in enumerate(PRIORS.items())]
    for number, (label, colour) in enumerate(SHOWN.values()):
        x, y = LEFT + number % 5 * 152, height - 32 + number // 5 * 20
        parts.append(f'<line x1="{x}" x2="{x + 22}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2.4"/>')
        parts.append(f'<text x="{x + 27}" y="{y + 4}">{label}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 30}" text-anchor="middle">epsilon</text>')
    body = "\n".join(parts)
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("bounds.svg").write_text(picture())
