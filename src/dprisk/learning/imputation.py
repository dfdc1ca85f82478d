"""Imputation: what other people's data say about somebody's sensitive attribute, by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from dprisk.datasets import LabelledTable
from dprisk.errors import MissingPackageError
from dprisk.types import FloatArray


def imputed(people: LabelledTable, others: LabelledTable, model: Any = None) -> FloatArray:
    """The probability of each value for each of some people, learned from `others`: people x values.

    What it learns from is all that the attacker knows of its target: the known attributes, and the label. `model` is a
    classifier of scikit-learn, fitted here; logistic regression if left out. Values that nobody in `others` has get 0.
    """
    if model is None:
        try:
            from sklearn.linear_model import LogisticRegression
        except ImportError:
            raise MissingPackageError('Imputation needs scikit-learn: pip install "dprisk[learning]".') from None
        model = LogisticRegression(max_iter=500)
    found = np.zeros((people.size, len(people.values)))
    present = np.unique(others.secret)
    if present.size == 1:  # nothing to tell apart
        found[:, present[0]] = 1.0
        return found
    model.fit(_all_known(others), others.secret)
    found[:, model.classes_] = model.predict_proba(_all_known(people))
    return found


def _all_known(people: LabelledTable) -> FloatArray:
    return np.hstack([people.known_features(), np.eye(len(people.classes))[people.label]])
