"""Objects of other libraries that work on a whole data set, as functions of it, and what they claim.

- an OpenDP measurement on data sets;
- a model with `fit`, as of scikit-learn and diffprivlib: the last column of the data is what it learns to tell, if it
  learns that, and the output is what it has learned;
- an algorithm with `quick_result`, as of PyDP.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from dprisk.errors import TargetError, require
from dprisk.guarantees import Guarantee, PureDP, from_opendp
from dprisk.guarantees.base import Relation

MOST_NAMED = 100  # numbers of a model that are called by the names of its attributes


def of_data(code: Any) -> Callable[..., Any]:
    """Code as a function of a data set: that of a model or algorithm, and what is a function already as it is."""
    if inspect.isroutine(code) or isinstance(code, type):
        return code
    if hasattr(code, "quick_result"):
        return QuickResult(code)
    if hasattr(code, "fit") and hasattr(code, "get_params"):
        return Fitted(code)
    return code  # type: ignore[no-any-return]


def claim_of(code: Any, neighbours: Relation) -> Guarantee | None:
    """What an object of another library promises of such neighbours; None if it does not say.

    PyDP counts by adding or removing a record, diffprivlib's models by replacing one; OpenDP has a privacy map.
    """
    replaces = neighbours == "replace-one"
    if hasattr(code, "input_metric"):
        counted = {"SymmetricDistance": 2, "InsertDeleteDistance": 2} | ({"ChangeOneDistance": 1} if replaces else {})
        steps = counted.get(str(code.input_metric).split("(")[0])
        if steps is None:
            return None
        return from_opendp(code, steps) if replaces else from_opendp(code, 1, neighbours)
    if isinstance(code, QuickResult):
        return None if replaces else PureDP(float(code.algorithm.epsilon), neighbours)
    if isinstance(code, Fitted) and replaces:
        epsilon = code.model.get_params(deep=False).get("epsilon")
        return PureDP(float(epsilon)) if isinstance(epsilon, int | float) else None
    return None


class QuickResult:
    """An algorithm of PyDP, which is asked anew in each run."""

    def __init__(self, algorithm: Any) -> None:
        self.algorithm = algorithm
        self.__qualname__, self.__module__ = type(algorithm).__name__, type(algorithm).__module__

    def __call__(self, data: Any) -> Any:
        """The answer for this data."""
        return self.algorithm.quick_result(list(data))


class Fitted:
    """What a model has learned: its attributes whose names end in an underscore, as far as they are numbers.

    Whoever gets the model sees all of them. Each run fits a new model with the same parameters; a `random_state` among
    them is that of the block.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        parameters = inspect.signature(model.fit).parameters
        self.supervised = "y" in parameters and parameters["y"].default is inspect.Parameter.empty
        self.__qualname__, self.__module__ = type(model).__name__, type(model).__module__

    def __call__(self, data: Any, random_state: Any = None) -> Any:
        """What a model learns from this data, by the names of its attributes; of large ones the numbers alone."""
        given = self.model.get_params(deep=False)
        state = {"random_state": random_state} if "random_state" in given else {}
        model = type(self.model)(**given | state)
        rows = np.asarray(data)
        model.fit(rows[:, :-1], rows[:, -1]) if self.supervised else model.fit(rows)
        names = [name for name in vars(model) if name.endswith("_") and name[0] != "_" and name != "n_features_in_"]
        learned = {name: np.ravel(getattr(model, name)) for name in names}
        numbers = {
            name: values.astype(float)
            for name, values in learned.items()
            if values.dtype.kind in "biuf" and values.size
        }
        require(bool(numbers), f"{type(model).__name__} has learned no numbers that could be looked at.", TargetError)
        if sum(values.size for values in numbers.values()) > MOST_NAMED:
            return np.concatenate(list(numbers.values()))
        return {name: values.tolist() if values.size > 1 else values.item() for name, values in numbers.items()}
