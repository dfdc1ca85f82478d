"""What need not be drawn: an audit looks at an output only for what it tells of the suspects.

The restriction of a mechanism of this package to the suspects has the law of that part of its outputs, and comes from
the same code where that draws its entries one by one. Code that somebody else wrote is never replaced by it, nor a
class made from one of these: the outputs of that are what the audit is about.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dprisk.auditing.code.target import MechanismTarget, Target
from dprisk.auditing.evidence.design import Design, KnownScorer
from dprisk.auditing.evidence.experiment import Experiment
from dprisk.mechanisms import BLH, OLH, OUE, SHE, SUE, THE, LocalHashing, SubsetSelection, UnaryEncoding

RESTRICTED_TYPES = {BLH, OLH, OUE, SHE, SUE, THE, LocalHashing, SubsetSelection, UnaryEncoding}


def restricted(target: Target, design: Experiment[Any]) -> tuple[Target, Experiment[Any]]:
    """A target and a design whose tallies have the same law; the given ones if nothing shorter is known.

    That is only known of a mechanism judged by its own likelihood.
    """
    if type(target) is not MechanismTarget or not isinstance(design, Design) or type(design.scorer) is not KnownScorer:
        return target, design
    mechanism = design.scorer.mechanism
    if mechanism is not target.mechanism or type(mechanism) not in RESTRICTED_TYPES:
        return target, design
    fewer = mechanism.restricted(design.universe)
    if fewer is None:
        return target, design
    return MechanismTarget(fewer), Design(np.arange(fewer.size), design.margin, KnownScorer(fewer))
