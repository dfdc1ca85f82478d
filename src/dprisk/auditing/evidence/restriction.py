"""What need not be drawn: an audit looks at an output only for what it tells of the suspects.

The restriction of a mechanism of this package to the suspects has the law of that part of its outputs, and comes from
the same code where that draws its entries one by one. Code that somebody else wrote is never replaced by it: the
outputs of that are what the audit is about.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprisk.auditing.certify.experiment import Experiment
from dprisk.auditing.code.targets import MechanismTarget, Target
from dprisk.auditing.evidence.design import Design
from dprisk.auditing.evidence.scores import KnownScorer
from dprisk.mechanisms import Mechanism

SPOKEN_FOR = ("sample", "scores", "leads", "log_likelihood")  # what `restricted` presumes


def restricted(target: Target, design: Experiment[Any]) -> tuple[Target, Experiment[Any]]:
    """A target and a design whose tallies have the same law; the given ones if nothing shorter is known.

    That is only known of a mechanism judged by its own likelihood.
    """
    if type(target) is not MechanismTarget or "sample" in vars(target) or not isinstance(design, Design):
        return target, design
    scorer = design.scorer
    if type(scorer) is not KnownScorer or scorer.mechanism is not target.mechanism:
        return target, design
    fewer = target.mechanism.restricted(design.universe) if _knows_itself(target.mechanism) else None
    if fewer is None:
        return target, design
    return MechanismTarget(fewer), Design(np.arange(fewer.size), design.margin, KnownScorer(fewer))


def _knows_itself(mechanism: Mechanism) -> bool:
    """Whether `restricted` was written for the methods that the mechanism has.

    It was not if one of them is in a class further down, on the object itself, or was put into its class by others.
    """
    kind = type(mechanism)
    return kind.sample.__module__ == kind.restricted.__module__ and all(
        name not in vars(mechanism) and _place(kind, name) >= _place(kind, "restricted") for name in SPOKEN_FOR
    )


def _place(kind: type[Any], name: str) -> int:
    """How far up among its classes a method is found."""
    return next(place for place, part in enumerate(kind.__mro__) if name in vars(part))
