"""Guesses of a sensitive attribute from a model that only answers questions: Yeom, CSMIA, WCAI, and without the model.

The attacker knows all of its target but one attribute, the label included. It asks the model about the target with each
value of that attribute put in, and gets the probabilities of the classes. What it knows of the population besides comes
from data that the target is not part of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dprisk.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Seen:
    """All that an attacker has, about each of some people.

    `answers` are the model's class probabilities, values x people x classes: the answer about each person with each
    value of the sensitive attribute. `label` is their true class. `imputed` is what other data say about each value,
    people x values, and `shares` how common each value is in these.
    """

    answers: FloatArray
    label: IntArray
    imputed: FloatArray
    shares: FloatArray

    @property
    def confidence(self) -> FloatArray:
        """The probability that the model gives to the true class, people x values."""
        return self.answers[:, np.arange(self.label.size), self.label].T


Attack = Callable[[Seen], IntArray]


def majority(seen: Seen) -> IntArray:
    """The commonest value, whoever it is about: what anybody can guess."""
    return np.full(seen.label.size, int(seen.shares.argmax()))


def impute(seen: Seen) -> IntArray:
    """The likeliest value given what is known of the target; the model is not asked (thesis, Attack 6).

    Jayaraman and Evans, "Are Attribute Inference Attacks Just Imputation?", CCS 2022.
    """
    return _best(seen.imputed)


def yeom(seen: Seen) -> IntArray:
    """The value with the largest product of its share and the model's confidence in the true class (thesis, Attack 7).

    After Yeom et al., CSF 2018, who ask whether the loss is below that of training instead of how large it is.
    """
    return _best(seen.shares * seen.confidence)


def csmia(seen: Seen) -> IntArray:
    """The value with which the model is right, by how sure it is of its answers (thesis, Attack 8).

    Of several values with which the predicted class is the true one, that of the most confident prediction; if there is
    none, that of the least confident one. Mehnaz et al., USENIX Security 2022.
    """
    predicted, sure = seen.answers.argmax(axis=2).T, seen.answers.max(axis=2).T
    is_right = predicted == seen.label[:, None]
    return np.where(is_right.any(axis=1), _best(np.where(is_right, sure, -1.0)), _best(-sure))


def wcai(seen: Seen) -> IntArray:
    """The value with the largest product of the model's confidence and what imputation says (thesis, Attack 9).

    Jayaraman and Evans, CCS 2022.
    """
    return _best(seen.imputed * seen.confidence)


def _best(scores: FloatArray) -> IntArray:
    """The value with the largest score for each person; of equal ones the first."""
    found: IntArray = scores.argmax(axis=1)
    return found


ATTACKS: Mapping[str, Attack] = {
    "majority": majority,
    "imputation": impute,
    "Yeom": yeom,
    "CSMIA": csmia,
    "WCAI": wcai,
}
WITHOUT_THE_MODEL = ("majority", "imputation")
