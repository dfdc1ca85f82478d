"""Draw docs/figures/priors.svg: the advantage against a noisy mean over epsilon, for three priors.

python docs/figures/priors.py
"""

from pathlib import Path

import numpy as np

from dprisk import Laplace, Prior, Sweep, Threat, sweep
from dprisk.pictures import svg

COUNTS = Path(__file__).parents[1] / "examples" / "adult-hours.csv"
HOURS = 101


def priors() -> dict[str, Prior]:
    """What the attacker may believe about somebody's hours."""
    return {
        "all hours alike": Prior.uniform(HOURS),
        "as in the data": Prior.from_csv(COUNTS),
        "0 or 100 hours": Prior.from_counts([1] + [0] * (HOURS - 2) + [1]),
    }


def swept() -> Sweep:
    """A guess within 20 hours counts as right."""
    threat = Threat.reconstruction(priors()["as in the data"], within=20)
    return sweep(Laplace(HOURS, epsilon=1.0), threat, prior=priors(), epsilon=np.linspace(0.25, 20, 80))


def picture() -> str:
    """The whole drawing."""
    return svg(swept().picture())


if __name__ == "__main__":
    Path(__file__).with_name("priors.svg").write_text(picture())
