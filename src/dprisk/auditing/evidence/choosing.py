"""The experiment that an audit makes: chosen from what is known of the code, before the runs that count.

What is not known is learned from pilot runs. They are made piece by piece, so that they can be kept and told of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dprisk.auditing.certify.claim import Terms
from dprisk.auditing.code.randomness import block_generator, kept
from dprisk.auditing.code.target import Target, is_built_in
from dprisk.auditing.evidence.design import ANY_LEAD, Design, GuessScorer, KnownScorer, Scorer
from dprisk.auditing.evidence.experiment import Experiment
from dprisk.auditing.evidence.guessing import choose_guessing
from dprisk.auditing.evidence.learned import EVERY, Classifier, Learner
from dprisk.auditing.evidence.portfolio import Portfolio
from dprisk.auditing.evidence.restriction import restricted
from dprisk.auditing.evidence.rules import Past
from dprisk.auditing.evidence.screening import MOST_PAIRS, busiest
from dprisk.auditing.evidence.suspects import Wanted, known_design, learned_designs, pilot_past
from dprisk.auditing.evidence.views import joined
from dprisk.errors import ThreatError, fail, require
from dprisk.exact import require_match
from dprisk.mechanisms import Mechanism
from dprisk.threat.threat import Threat
from dprisk.types import AnyArray, IntArray

PIECE, LARGEST_PIECE = 250, 1000  # runs of a pilot in the first piece, and in the largest

WatchPilot = Callable[[int, int], None]  # told of the pilot runs made so far, and of those planned by now


class Keeps(Protocol):
    """Where the pieces of a pilot are kept."""

    def pilot(self, number: int, records: IntArray, run: Callable[[], AnyArray]) -> AnyArray:
        """The outputs of a piece for these records: as kept before, or run now and kept."""


class InPieces(Target):
    """A target for pilot runs. Each piece has its own seed, so that pieces that were kept need not be run again."""

    def __init__(self, target: Target, store: Keeps | None, watch: WatchPilot | None) -> None:
        self.name, self.records, self.pairs = target.name, target.records, target.pairs
        self._target, self._store, self._watch = target, store, watch
        self._done = self._pieces = 0

    def sample(self, records: IntArray, rng: np.random.Generator) -> Any:
        """Outputs of the target, those of a piece at a time; of a mechanism, which is quick and the same again, all."""
        if self._target.mechanism is not None:
            return self._target.sample(records, rng)
        parts: list[AnyArray] = []
        made, planned = 0, self._done + records.size
        with kept:
            while not parts or made < records.size:
                some = records[made : made + min(LARGEST_PIECE, max(PIECE, self._done))]
                parts.append(self._piece(some, np.random.default_rng(rng.integers(1 << 63))))
                made, self._done, self._pieces = made + some.size, self._done + some.size, self._pieces + 1
                if self._watch is not None:
                    self._watch(self._done, planned)
        return joined(parts)

    def _piece(self, records: IntArray, rng: np.random.Generator) -> Any:
        if self._store is None:
            return self._target.sample(records, rng)
        return self._store.pilot(self._pieces, records, lambda: self._target.sample(records, rng))


@dataclass(frozen=True)
class Look:
    """What an audit looks at first. By default it learns that in pilot runs.

    `family` is a mechanism that the code claims to be: its likelihood is the best to go by if it is one. Of a mechanism
    of dprisk it is known already.

    `scorer` is another attack. A `Scorer`, or anything that guesses, is taken as it is. A `Learner`, or a classifier
    with `fit` and `predict_proba`, is trained on pilot runs first.

    Code is looked at by attackers who learn as they go as well, so that neither can hide a leak. They look at the last
    bits of floats too, by which most code that adds noise to floats gives itself away; `low_bits=False` is for code
    whose outputs are rounded before anybody sees them.
    """

    family: Mechanism | None = None
    scorer: Any = None
    low_bits: bool = True

    def __post_init__(self) -> None:
        if not (self.family is None or isinstance(self.family, Mechanism)):
            fail(f"family is a mechanism, as in Laplace(2, epsilon=0.5), not {self.family!r}")
        if not (self.scorer is None or isinstance(self.scorer, Scorer | Learner) or _attacks(self.scorer)):
            fail(
                "scorer must be a Scorer, a Learner, a classifier with fit and predict_proba, or an attack with guess; "
                f"got {self.scorer!r}{', a class: give an object of it' if isinstance(self.scorer, type) else ''}"
            )

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
    """What is audited, by which experiment, and what is really drawn and judged if that is less (see `restriction`).

    `past` are the pilot runs that the experiment was learned from.
    """

    target: Target
    design: Experiment[Any]
    drawn: tuple[Target, Experiment[Any]] | None = None
    past: Past | None = None


def choose(
    target: Target,
    terms: Terms,
    threat: Threat | None,
    look: Look,
    store: Keeps | None = None,
    watch: WatchPilot | None = None,
) -> Setup:
    """The experiment for a target; a store keeps the pilot, so that the same one is chosen when the audit goes on."""
    scorer, learners = look.evidence(target)
    rng, piloted = block_generator(terms.seed, -1), InPieces(target, store, watch)
    if threat is not None:
        require(
            target.pairs is None,
            "A threat is to one person's record; of neighbouring inputs leave it out.",
            ThreatError,
        )
        _require_same_records(target, threat)
        return Setup(target, choose_guessing(piloted, threat, scorer, learners, terms, rng))
    wanted = Wanted(terms.aim, terms.alpha, terms.claim.delta)
    if scorer is not None and is_built_in(target.mechanism):  # known: nothing can hide
        if not isinstance(scorer, KnownScorer):
            return Setup(target, Design(np.arange(target.size), ANY_LEAD, scorer))
        design = known_design(scorer, wanted, rng)
        return Setup(target, design, restricted(target, design))

    past = pilot_past(piloted, wanted, rng, settled=scorer is not None)
    if scorer is None:
        main, *more = learned_designs(past, target.pairs, wanted, learners)
    elif isinstance(scorer, KnownScorer):
        require(
            target.pairs is None,
            f"{target.name} is run on pairs of whole inputs, which no mechanism has as its records; leave out family.",
        )
        main, more = known_design(scorer, wanted, rng), []
    else:
        sets = [np.arange(target.size)] if target.pairs is None else busiest(past, target.pairs, MOST_PAIRS)
        main, *more = [Design(suspects, ANY_LEAD, scorer) for suspects in sets]
    if isinstance(past.seen.outputs, tuple):  # pairs, as of a product: there is nothing that learns from them
        return Setup(target, main)
    others = None if target.pairs is None else tuple(design.universe for design in more)
    begun = Portfolio.begun(main, target.records, terms.claim.epsilon, past, look.low_bits, others)
    return Setup(target, begun, past=past)


def _attacks(scorer: Any) -> bool:
    return not isinstance(scorer, type) and (hasattr(scorer, "predict_proba") or hasattr(scorer, "guess"))


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
