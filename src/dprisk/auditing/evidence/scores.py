"""How much each output speaks for each record: the evidence that an audit decides by.

A score is a log-likelihood up to a number that is the same for all records. For a known mechanism it is its own
likelihood, also where the outputs come from code that only claims to be that mechanism. For anything else it is learned
from pilot runs (`learned.py`). A bad score makes an audit weak, never wrong: what is certified holds for every rule of
decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dprisk.attacks.estimate import Guesser
from dprisk.auditing.code.outputs import numbers_of_one_kind
from dprisk.errors import TargetError, as_whole, fail
from dprisk.mechanisms import Mechanism
from dprisk.mechanisms.combined import number_of
from dprisk.types import FloatArray, IntArray


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
        self.may_draw = not type(mechanism).__module__.startswith("dprisk.")

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
