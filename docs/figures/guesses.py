"""Draw docs/figures/guesses.svg: eight digits of which one was in the training data, and what the attacker guessed.

python docs/figures/guesses.py
"""

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

from dprisk.learning import Examples, Recipe, mlp, noise_for, train

EPSILONS = (1, 5, 20)
OTHERS, SIZE, SEED = 200, 8, 5
POINT, GAP, LEFT, TOP = 4, 12, 118, 30  # pixels: of a point of a picture, between pictures, and beside them
SIDE = 8 * POINT
HEADING = "guessed from the noisy gradients of one training each: blue frames are right, orange ones wrong"
RIGHT, WRONG = "#0072b2", "#d55e00"


def setting() -> tuple[Recipe, Examples, Examples]:
    """The digits that everybody knows, and the next ones, of which one took part."""
    loaded = load_digits()
    every = Examples(loaded.data / 16, loaded.target)
    return Recipe(mlp(64, 10, 10), 1.0), every[:OTHERS], every[OTHERS : OTHERS + SIZE]


def guesses() -> dict[int, list[int]]:
    """What the attacker of largest likelihood names, in one training with each candidate, at each epsilon."""
    torch.set_num_threads(1)
    recipe, data, candidates = setting()
    levels = [noise_for(epsilon, 1e-5, recipe) for epsilon in EPSILONS]
    trained = train(
        recipe,
        data,
        list(range(SIZE)) * len(levels),
        candidates=candidates,
        targets=list(range(SIZE)) * len(levels),
        noise_multipliers=np.repeat(levels, SIZE),
        seed=SEED,
    )
    assert trained.evidence is not None
    named = trained.evidence.log_likelihood.argmax(axis=1).reshape(len(levels), SIZE)
    return dict(zip(EPSILONS, named.tolist(), strict=True))


def drawn(pixels: np.ndarray, x: int, y: int, frame: str = "#bbb") -> str:
    """One picture, dark on white, as a path for each shade; a frame around it."""
    shades = np.round(pixels.reshape(8, 8) * 8).astype(int)
    box = f'x="{x - 2}" y="{y - 2}" width="{SIDE + 4}" height="{SIDE + 4}"'
    parts = [f'<rect {box} fill="#fff" stroke-width="2" stroke="{frame}"/>']
    for shade in range(1, 9):
        at = "".join(
            f"M{x + POINT * column} {y + POINT * row}h{POINT}v{POINT}h-{POINT}z"
            for row, column in np.argwhere(shades == shade)
        )
        if at:
            grey = 255 - 28 * shade
            parts.append(f'<path d="{at}" fill="#{grey:02x}{grey:02x}{grey:02x}"/>')
    return "\n".join(parts)


def picture() -> str:
    """The whole drawing: the candidate that took part in a column, below it what was guessed at each epsilon."""
    _, _, candidates = setting()
    named = guesses()
    width = LEFT + SIZE * (SIDE + GAP) + 8
    height = TOP + (1 + len(EPSILONS)) * (SIDE + GAP) + 22
    parts = [f'<text x="8" y="{TOP + SIDE // 2 + 4}">took part</text>']
    parts += [drawn(candidates.inputs[z], LEFT + z * (SIDE + GAP), TOP) for z in range(SIZE)]
    for row, epsilon in enumerate(EPSILONS, start=1):
        y = TOP + row * (SIDE + GAP) + 12
        right = sum(guess == z for z, guess in enumerate(named[epsilon]))
        parts.append(f'<text x="8" y="{y + SIDE // 2 - 2}">epsilon {epsilon}:</text>')
        parts.append(f'<text x="8" y="{y + SIDE // 2 + 14}">{right} of {SIZE} right</text>')
        for z, guess in enumerate(named[epsilon]):
            parts.append(drawn(candidates.inputs[guess], LEFT + z * (SIDE + GAP), y, RIGHT if guess == z else WRONG))
    body = "\n".join(parts)
    style = 'font-family="sans-serif" font-size="13" fill="#222"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
        f'<text x="8" y="16">{HEADING}</text>\n'
        f"{body}\n</svg>\n"
    )


if __name__ == "__main__":
    Path(__file__).with_name("guesses.svg").write_text(picture())
