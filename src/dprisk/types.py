"""Short names for the types that appear in signatures."""

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

# Anything that gives a column when indexed by its name: a pandas or polars frame, a mapping name -> values.
Table = Any
