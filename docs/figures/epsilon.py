"""Draw docs/figures/epsilon.svg: what taking part in randomised response adds, against epsilon.

python docs/figures/epsilon.py
"""

from math import tanh
from pathlib import Path

import numpy as np

from dprisk import GRR, Prior, Threat, assess

SIZES = {2: "#0072b2", 10: "#009e73", 100: "#d55e00", 1000: "#cc79a7"}  # told apart by the colour-blind too
EPSILONS = np.linspace(0, 6, 61)
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BELOW = 320, 230, 40, 30, 122, 44


def place(epsilon: float, advantage: float) -> tuple[float, float]:
    """Where a point of a curve is on the drawing."""
    return LEFT + WIDTH * epsilon / EPSILONS[-1], TOP + HEIGHT * (1 - advantage)


def added(size: int, epsilon: float) -> float:
    """The advantage against randomised response, all answers equally likely."""
    return assess(GRR(size, epsilon), Threat(Prior.uniform(size))).advantage


def curve(values: list[float], label: str, style: str, shift: float = 4) -> str:
    """One line, with its label at the right end, moved down by so much."""
    points = " ".join("{:.1f},{:.1f}".format(*place(e, v)) for e, v in zip(EPSILONS, values, strict=True))
    x, y = place(EPSILONS[-1], values[-1])
    return (
        f'<polyline points="{points}" fill="none" stroke-width="2" {style}/>\n'
        f'<text x="{x + 6:.1f}" y="{y + shift:.1f}">{label}</text>'
    )


def axes() -> str:
    """The frame, its ticks and what they count."""
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = place(0, tick)
        parts.append(f'<line x1="{x}" x2="{x + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in range(7):
        x, y = place(tick, 0)
        parts.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{tick}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 37}" text-anchor="middle">epsilon</text>')
    parts.append(f'<text x="{LEFT}" y="{TOP - 12}">advantage: what taking part adds</text>')
    return "\n".join(parts)


def picture() -> str:
    """The whole drawing."""
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW
    most = [tanh(epsilon / 4) for epsilon in EPSILONS]
    parts = [axes(), curve(most, "any mechanism", 'stroke="#777" stroke-dasharray="5 4"', shift=-3)]
    for size, colour in SIZES.items():
        values = [added(size, float(epsilon)) for epsilon in EPSILONS]
        parts.append(curve(values, f"{size} answers", f'stroke="{colour}"', shift=6 if size == 10 else 4))
    x, y = place(2, added(100, 2.0))
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{SIZES[100]}"/>')
    body = "\n".join(parts)
    style = 'font-family="sans-serif" font-size="13" fill="#222"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("epsilon.svg").write_text(picture())
