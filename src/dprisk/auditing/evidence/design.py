"""What the auditor does in each run: how much an output speaks for each record, whom it suspects, when it answers.

A score is a log-likelihood up to a number that is the same for all records. For a known mechanism it is its own
likelihood, also where the outputs come from code that only claims to be that mechanism. For anything else it is learned
from pilot runs (`learned.py`). A bad score makes an audit weak, never wrong: what is certified holds for every rule of
decision.

A design is a set U of records and a rule: answer with the record of U that has the largest score if it leads the
second by at least a margin, otherwise abstain (theory, section 4.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.attacks.estimate import Guesser
from dprisk.auditing.certify.anytime import anytime_epsilon, log_e_value
from dprisk.auditing.certify.bets import Bet
from dprisk.auditing.certify.counts import Counts, certified_epsilon, clopper_pearson, epsilon_estimate
from dprisk.auditing.code.outputs import numbers_of_one_kind
from dprisk.auditing.code.target import is_built_in
from dprisk.auditing.evidence.experiment import Attack, Experiment
from dprisk.bounds.papers import rad_corollary_5_6
from dprisk.errors import TargetError, as_whole, fail
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.combined import number_of
from dprisk.types import FloatArray, IntArray

ANY_LEAD = 1e-9  # a margin with which it answers wherever one record leads


def leads(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """The place of the largest score in each row of at least two, and how far it leads the second."""
    if scores.shape[1] == 2:
        first, second = scores.T
        with np.errstate(invalid="ignore"):
            lead = np.abs(second - first)
        lead[np.isnan(lead)] = 0.0  # both infinite: none leads
        return (second > first).astype(np.int64), lead
    two = np.partition(scores, -2, axis=1)[:, -2:]
    possible = two[:, 1] > -np.inf  # for one of the records; otherwise none leads
    return scores.argmax(axis=1), np.subtract(two[:, 1], two[:, 0], where=possible, out=np.zeros(len(two)))


class Scorer(ABC):
    """Scores outputs for records: for all of them, or for those that are `known`.

    `may_draw` unless it is certain to leave the random numbers of `random`, numpy and torch alone.
    """

    known: IntArray | None = None
    may_draw: bool = True

    @abstractmethod
    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        """Outputs x records."""

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray]:
        """For each output the best of the records (its place among them), and its lead over the second."""
        return leads(self.scores(outputs, records))

    @abstractmethod
    def describe(self) -> str:
        """In a few words, for reports."""


class KnownScorer(Scorer):
    """The likelihood of a mechanism that is known in full."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.may_draw = not is_built_in(mechanism)

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        with self._understood(outputs):
            return self.mechanism.scores(_plain(outputs), records)

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray]:
        with self._understood(outputs):
            outputs = _plain(outputs)
            return self.mechanism.leads(outputs, records) or leads(self.mechanism.scores(outputs, records))

    @contextmanager
    def _understood(self, outputs: Any) -> Iterator[None]:
        """Says so where outputs are nothing that the mechanism could have reported."""
        try:
            yield
        except (IndexError, TypeError, ValueError) as problem:
            shown = ""
            if isinstance(outputs, np.ndarray) and outputs.size:
                odd = outputs[~np.isfinite(outputs)] if outputs.dtype.kind == "f" else outputs[:0]
                shown = f", such as {(odd if odd.size else outputs).tolist()[0]!r},"
            raise TargetError(
                f"Outputs of the code{shown} are none of {self.mechanism!r}. Have the code report as that does, a "
                "record by its number 0, 1, ..., or leave out `family`."
            ) from problem

    def describe(self) -> str:
        return f"likelihood of {self.mechanism!r}"


class GuessScorer(Scorer):
    """The guess of an attack: 1 for the record guessed, 0 for the others.

    The attack sees the same random numbers in each block of outputs, so that an audit does not depend on the workers.
    A guess is then a fixed function of the output and its place in the block, which is a valid rule of decision.
    """

    def __init__(self, guesser: Guesser, seed: int = 0) -> None:
        self.guesser, self.seed = guesser, as_whole("seed", seed, least=0)

    def scores(self, outputs: Any, records: IntArray) -> FloatArray:
        return np.asarray(self._guesses(outputs)[:, None] == records, dtype=float)

    def leads(self, outputs: Any, records: IntArray) -> tuple[IntArray, FloatArray]:
        """As from the scores: the place of the guess and a lead of 1, or of 0 if it is none of the records."""
        guesses, order = self._guesses(outputs), np.argsort(records)
        place = order[np.minimum(np.searchsorted(records, guesses, sorter=order), records.size - 1)]
        among = records[place] == guesses
        return np.where(among, place, 0), among.astype(float)

    def _guesses(self, outputs: Any) -> IntArray:
        guesses, count = np.asarray(self.guesser.guess(outputs, np.random.default_rng(self.seed))), number_of(outputs)
        if guesses.shape != (count,) or guesses.dtype.kind not in "biu":
            gave = f"{type(self.guesser).__name__} gave {guesses.dtype} of shape {guesses.shape}."
            fail(f"An attack must guess one record, by its number 0, 1, ..., for each of {count} outputs; {gave}")
        return guesses

    def describe(self) -> str:
        return f"guesses of {type(self.guesser).__name__}"


def _plain(outputs: Any) -> Any:
    """Numbers of several types, such as 0 beside 0.5, as a mechanism reports them."""
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind != "O":
        return outputs
    values = outputs.tolist()
    return (
        numbers_of_one_kind(values) if all(isinstance(value, int | float | np.number) for value in values) else outputs
    )


@dataclass(frozen=True)
class Design(Experiment[Counts]):
    """Suspects and rule. `universe` are numbers of records, `margin` the lead that it takes to answer."""

    universe: IntArray
    margin: float
    scorer: Scorer

    @property
    def may_draw(self) -> bool:
        return self.scorer.may_draw

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        return rng.integers(self.universe.size, size=count)

    def tally(self, outputs: Any, drawn: IntArray) -> Counts:
        best, lead = self.scorer.leads(outputs, self.universe)
        answers = np.where(lead >= self.margin, best, -1)  # the place of the answer in the universe, -1 to abstain
        if answers.shape != drawn.shape:
            fail(f"The attack must answer once for each of {drawn.size} outputs; it gave the shape {answers.shape}.")
        return Counts(drawn.size, int((answers >= 0).sum()), int((answers == drawn).sum()), self.universe.size)

    @property
    def nothing(self) -> Counts:
        return Counts(0, 0, 0, self.universe.size)

    def certified(self, tally: Counts, alpha: float, delta: float, anytime: bool) -> float:
        return (anytime_epsilon if anytime else certified_epsilon)(tally, alpha, delta)

    def log_e_value(self, tally: Counts, claim: ApproxDP) -> float:
        return log_e_value(tally, claim.epsilon, claim.delta)

    def estimate(self, tally: Counts, delta: float) -> float:
        return epsilon_estimate(tally, delta)

    def able(self, tally: Counts, claim: ApproxDP, alpha: float, anytime: bool) -> bool:
        best = Counts(tally.runs, tally.answered, tally.answered, tally.size)
        return self.certified(best, alpha, claim.delta, anytime) > claim.epsilon

    def attack(self, tally: Counts, claim: ApproxDP, alpha: float, anytime: bool) -> Attack:
        """How often the attacker names the record of a run, and the most that the claim allows.

        The record is uniform on the s suspects; an attacker that abstains guesses one of them at random. With S the
        chance of a correct answer and A that of any, the success (ReRo) is S + (1 - A)/s and the advantage (RAD) is
        1/s less. The intervals hold with probability at least 1 - alpha: Clopper-Pearson at alpha/4 for each end of S
        and of A, or at any moment by betting on the mean of 1, 0 and 1/s. The bounds are RAD Corollary 5.6.
        """
        guess = 1 / tally.size
        most = min(1 - guess, rad_corollary_5_6(claim.epsilon, claim.delta, tally.size))
        if tally.runs == 0:
            return Attack(guess, guess + most, most)
        silent = tally.runs - tally.answered
        success = (tally.correct + silent * guess) / tally.runs
        if anytime:
            values, times = np.array([1.0, 0.0, guess]), np.array([tally.correct, tally.wrong, silent], dtype=float)
            low, high = (bound(values, times, alpha / 2) for bound in (Bet(0.0, 1.0).lower, Bet(0.0, 1.0).upper))
        else:
            right, none = (clopper_pearson(k, tally.runs, alpha / 4) for k in (tally.correct, silent))
            low, high = (min(1.0, a + b * guess) for a, b in zip(right, none, strict=True))
        return Attack(guess, guess + most, most, success, (low, high), success - guess, (low - guess, high - guess))

    def to_dict(self) -> dict[str, Any]:
        return {"suspects": self.size, "margin": self.margin, "evidence": self.scorer.describe()}
