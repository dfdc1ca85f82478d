"""The experiment that an audit makes: chosen from what is known of the code, before the runs that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.code.randomness import block_generator
from dprisk.auditing.code.target import Target
from dprisk.auditing.evidence.design import Design
from dprisk.auditing.evidence.experiment import Experiment
from dprisk.auditing.evidence.guessing import choose_guessing
from dprisk.auditing.evidence.learned import EVERY, Classifier, Learner
from dprisk.auditing.evidence.restriction import restricted
from dprisk.auditing.evidence.scores import GuessScorer, KnownScorer, Scorer
from dprisk.auditing.evidence.several import Several
from dprisk.auditing.evidence.suspects import Wanted, known_designs, pilot_designs
from dprisk.errors import ThreatError, as_whole, fail, require
from dprisk.exact import require_match
from dprisk.mechanisms import Mechanism
from dprisk.threat.threat import Threat


@dataclass(frozen=True)
class Look:
    """How an audit looks for a leak. By default it learns in pilot runs what to look for.

    `family` is a mechanism that the code claims to be: its likelihood then decides, whatever the code does. Of a
    mechanism of dprisk it is known already.

    `scorer` is another attack. A `Scorer`, or anything that guesses, is taken as it is. A `Learner`, or a classifier
    with `fit` and `predict_proba`, is trained on pilot runs first.

    With several `designs` that many sets of suspects share the runs and alpha, for code whose pilot runs cannot tell
    where it leaks: weaker where they can, stronger where they point at the wrong records.
    """

    family: Mechanism | None = None
    scorer: Any = None
    designs: int = 1

    def __post_init__(self) -> None:
        if not (self.family is None or isinstance(self.family, Mechanism)):
            fail(f"family is a mechanism, as in Laplace(2, epsilon=0.5), not {self.family!r}")
        if not (self.scorer is None or isinstance(self.scorer, Scorer | Learner) or _attacks(self.scorer)):
            fail(
                "scorer must be a Scorer, a Learner, a classifier with fit and predict_proba, or an attack with guess; "
                f"got {self.scorer!r}{', a class: give an object of it' if isinstance(self.scorer, type) else ''}"
            )
        object.__setattr__(self, "designs", as_whole("designs", self.designs))

    def evidence(self, target: Target) -> tuple[Scorer | None, Sequence[Learner]]:
        """What the attacker goes by: a scorer, or None and the learners to try in the pilot."""
        if isinstance(self.scorer, Scorer):
            return self.scorer, ()
        if isinstance(self.scorer, Learner):
            return None, (self.scorer,)
        if self.scorer is not None:
            learns = hasattr(self.scorer, "predict_proba")
            return (None, (Classifier(self.scorer),)) if learns else (GuessScorer(self.scorer), ())
        known = target.mechanism if self.family is None else self.family
        if known is None:
            return None, EVERY
        if known.size != target.size:
            fail(f"The family has {known.size} records, the code under test {target.size}; they must be the same.")
        return KnownScorer(known), ()


@dataclass(frozen=True)
class Setup:
    """What is audited, by which experiment, and what is really drawn and judged if that is less (see `restriction`)."""

    target: Target
    design: Experiment[Any]
    drawn: tuple[Target, Experiment[Any]] | None = None


def choose(target: Target, terms: Terms, threat: Threat | None, look: Look, again: bool) -> Setup:
    """The experiment for a target; with `again` only one that would be chosen again, as an audit with a store needs."""
    scorer, learners = look.evidence(target)
    require(
        not again or target.reproducible or scorer is not None,
        f"{target.name} cannot be seeded: its pilot runs, and with them the audit, would be others when it goes "
        "on from a store. Give the mechanism that it claims to be as `family`, or leave out the store.",
    )
    rng = block_generator(terms.seed, -1)
    if threat is not None:
        require(look.designs == 1, "Under a threat there is one attack: leave out `designs`.")
        _require_same_records(target, threat)
        return Setup(target, choose_guessing(target, threat, scorer, learners, terms, rng))
    wanted = Wanted.share(terms, look.designs)
    if scorer is None:
        return Setup(target, _together(pilot_designs(target, wanted, learners, rng)))
    if isinstance(scorer, KnownScorer):
        design = _together(known_designs(scorer, wanted, rng))
        return Setup(target, design, restricted(target, design))
    require(look.designs == 1, "A scorer is taken as it is, with all records as suspects: leave out `designs`.")
    return Setup(target, Design(np.arange(target.size), 1e-9, scorer))


def _attacks(scorer: Any) -> bool:
    return not isinstance(scorer, type) and (hasattr(scorer, "predict_proba") or hasattr(scorer, "guess"))


def _together(designs: Sequence[Design]) -> Design | Several:
    return designs[0] if len(designs) == 1 else Several(tuple(designs))


def _require_same_records(target: Target, threat: Any) -> None:
    """Refuse a threat to other records than those of the code, or to the same in another order."""
    if not isinstance(threat, Threat):
        fail(f"{threat!r} is not a Threat.", ThreatError)
    if target.mechanism is not None:
        require_match(target.mechanism, threat)
    here, there = target.size, threat.prior.size
    if here != there:
        fail(f"The code has {here} records, the prior of the threat {there}; they must be the same.", ThreatError)
    if threat.prior.support_size < 2:
        fail("The prior has one possible record: there is nothing to find out. Give it at least two.", ThreatError)
    labels = threat.prior.labels
    if labels is None or (target.records == tuple(range(target.size)) and not _are_numbers(labels, target.size)):
        return  # what is numbered has no names to compare
    for own, other in zip(target.records, labels, strict=True):
        if not np.all(own == other):
            told = f"{own!r} here is {other!r} there."
            fail(f"The records of the code are not those of the prior in the same order: {told}", ThreatError)


def _are_numbers(labels: Sequence[Any], size: int) -> bool:
    """Whether these are 0, 1, ... in any order."""
    return all(isinstance(label, int | float | np.number) for label in labels) and set(labels) == set(range(size))
