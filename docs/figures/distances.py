"""Draw docs/figures/distances.svg: the advantage against a noisy mean over the distance, for three priors.

python docs/figures/distances.py
"""

import runpy
from pathlib import Path

from dprisk import Laplace, Sweep, Threat, sweep
from dprisk.pictures import svg

priors = runpy.run_path(str(Path(__file__).with_name("priors.py")))["priors"]


def swept() -> Sweep:
    """At epsilon 4, every distance from 0 to 100 hours."""
    beliefs = priors()
    return sweep(Laplace(101, epsilon=4.0), Threat(beliefs["as in the data"]), prior=beliefs, within=range(101))


def picture() -> str:
    """The whole drawing."""
    return svg(swept().picture())


if __name__ == "__main__":
    Path(__file__).with_name("distances.svg").write_text(picture())
