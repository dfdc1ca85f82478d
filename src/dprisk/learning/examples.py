"""Examples to learn from: inputs with their labels, as arrays."""

from typing import Any, Self

import numpy as np

from dprisk.errors import require
from dprisk.types import AnyArray, IntArray
from dprisk.values import Value


class Examples(Value):
    """One row of inputs and one label (0, 1, ...) for each example. Inputs may be vectors or images.

    >>> some = Examples([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1])
    >>> len(some), some[1:].labels.tolist()
    (3, [1, 1])
    """

    inputs: AnyArray
    labels: IntArray

    def __init__(self, inputs: Any, labels: Any) -> None:
        array, names = np.asarray(inputs, dtype=np.float32), np.asarray(labels)
        require(array.ndim >= 2, f"Inputs have a row for each example, got an array of shape {array.shape}.")
        require(bool(np.all(np.isfinite(array))), "Inputs must be finite numbers.")
        whole = names.ndim == 1 and names.dtype.kind in "iu" and bool(np.all(names >= 0))
        require(whole, "Labels are whole numbers from 0 on, one for each example.")
        require(len(array) == len(names), f"There are {len(array)} examples and {len(names)} labels.")
        self.inputs, self.labels = array, names.astype(np.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: Any) -> Self:
        return type(self)(self.inputs[which], self.labels[which])

    def _summary(self) -> str:
        return f"Examples({len(self)} of shape {self.inputs.shape[1:]}, {np.unique(self.labels).size} labels)"
