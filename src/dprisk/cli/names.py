"""The names and options by which the command knows mechanisms, guarantees and threats."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dprisk.errors import require
from dprisk.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP, dp_sgd
from dprisk.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SHE,
    SUE,
    THE,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    Matrix,
    Mechanism,
    SubsetSelection,
    UnaryEncoding,
)
from dprisk.threat.prior import Prior

Options = dict[str, Any]


class Kind:
    """A mechanism or guarantee by its name on the command line: the options it takes, and how to make it."""

    def __init__(self, build: Callable[..., Any], *options: str) -> None:
        self.build, self.options = build, options

    def make(self, size: int | list[float], given: Options) -> Any:
        """Build it from the options; None stands for one that was left out and has a default.

        Instead of a number of records, those that add noise on the line take their places.
        """
        chosen = {name: given[name] for name in self.options if given[name] is not None}
        missing = [flag(name) for name in self.options if name not in chosen and name not in OPTIONAL]
        verb = "is" if len(missing) == 1 else "are"
        require(not missing, f"{' and '.join(missing)} {verb} missing for this choice.")
        return self.build(size, **chosen)


def _exponential(size: int, epsilon: float, space: str = "line") -> Mechanism:
    return (Exponential.on_ring if space == "ring" else Exponential.on_line)(size, epsilon)


MECHANISMS = {
    "grr": Kind(GRR, "epsilon"),
    "sue": Kind(SUE, "epsilon"),
    "oue": Kind(OUE, "epsilon"),
    "ue": Kind(UnaryEncoding, "p", "q"),
    "ss": Kind(SubsetSelection, "epsilon", "subset_size"),
    "blh": Kind(BLH, "epsilon"),
    "olh": Kind(OLH, "epsilon"),
    "she": Kind(SHE, "epsilon"),
    "the": Kind(THE, "epsilon", "threshold"),
    "exponential": Kind(_exponential, "epsilon", "space"),
    "geometric": Kind(lambda size, epsilon, ends="clamp": Geometric(size, epsilon, ends=ends), "epsilon", "ends"),
    "laplace": Kind(Laplace, "epsilon"),
    "gaussian": Kind(Gaussian, "sigma"),
    "matrix": Kind(lambda size, matrix: Matrix.from_file(matrix), "matrix"),
}
GUARANTEES = {
    "pure": Kind(lambda size, epsilon, relation: PureDP(epsilon, relation), "epsilon", "relation"),
    "approx": Kind(
        lambda size, epsilon, delta, relation: ApproxDP(epsilon, delta, relation), "epsilon", "delta", "relation"
    ),
    "gaussian": Kind(lambda size, mu, relation: GaussianDP(mu, relation), "mu", "relation"),
    "zcdp": Kind(lambda size, rho, relation: ZCDP(rho, relation), "rho", "relation"),
    "dpsgd": Kind(
        lambda size, noise_multiplier, sample_rate, steps, relation: dp_sgd(
            noise_multiplier, sample_rate, steps, relation
        ),
        "noise_multiplier",
        "sample_rate",
        "steps",
        "relation",
    ),
}
PRIORS: dict[str, Callable[..., Prior]] = {
    "uniform": Prior.uniform,
    "zipf": Prior.zipf,
    "geometric": Prior.geometric,
}
SPACED = {"exponential", "geometric", "laplace", "gaussian"}  # which take the records to be equally spaced
OPTIONAL = {"subset_size", "threshold", "ends", "space", "relation"}
OF_A_MECHANISM = (
    click.option("--mechanism", metavar="NAME", help=f"One of {', '.join(MECHANISMS)}."),
    click.option("--epsilon", type=float, help="Privacy parameter."),
    click.option("--p", type=float, help="ue: chance that the true bit is on."),
    click.option("--q", type=float, help="ue: chance that another bit is on."),
    click.option("--sigma", type=float, help="mechanism gaussian: standard deviation, positions over [0, 1]."),
    click.option("--subset-size", type=int, help="ss: records in a report; chosen from epsilon if left out."),
    click.option("--threshold", type=float, help="the: entries above it are reported; of least variance if left out."),
    click.option("--ends", help="geometric: clamp (default) or truncate."),
    click.option(
        "--matrix", type=click.Path(path_type=Path), help="matrix: CSV without header or .npy, a line for each record."
    ),
)
OF_A_GUARANTEE = (
    click.option("--guarantee", metavar="NAME", help=f"Instead of a mechanism: one of {', '.join(GUARANTEES)}."),
    click.option("--delta", type=float, help="approx: the other one."),
    click.option("--mu", type=float, help="guarantee gaussian: mu of Gaussian DP."),
    click.option("--rho", type=float, help="zcdp: rho of concentrated DP."),
    click.option("--noise-multiplier", type=float, help="dpsgd: noise over clipping norm."),
    click.option("--sample-rate", type=float, help="dpsgd: chance that a record is in a batch."),
    click.option("--steps", type=int, help="dpsgd: number of steps."),
    click.option("--relation", help="Neighbours of the guarantee: replace-one (default) or add-remove (is converted)."),
)
OF_A_THREAT = (
    click.option(
        "--prior",
        metavar="PRIOR",
        show_default="uniform",
        help="uniform, zipf:EXPONENT, geometric:RATIO, or a CSV file with `label` and `probability` or `count`.",
    ),
    click.option(
        "--knows",
        metavar="WHAT",
        default="none",
        show_default=True,
        help="none, all, or a CSV file with `group` (and `label`, unless in the order of the records).",
    ),
    click.option("--within", type=float, help="A guess this near the record counts as right; exact if left out."),
    click.option("--space", help="Where distances are measured: line (default) or ring."),
)
THREAT = (
    click.option("--size", type=int, help="Number of possible records; a prior file or a matrix brings its own."),
    *OF_A_THREAT,
)
OF_SUBJECT = {name for kind in (*MECHANISMS.values(), *GUARANTEES.values()) for name in kind.options} - {"space"}


def options(*groups: tuple[Callable[[Any], Any], ...]) -> Callable[[Any], Any]:
    """Several options as one decorator, in the order given."""

    def decorate(command: Any) -> Any:
        for group in reversed(groups):
            for option in reversed(group):
                command = option(command)
        return command

    return decorate


def flag(name: str) -> str:
    """An option's name as it is typed."""
    return f"--{name.replace('_', '-')}"
