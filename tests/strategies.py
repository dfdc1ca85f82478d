"""Random priors, channels, knowledge and success rules for the property tests."""

import numpy as np
from hypothesis import strategies as st

from dprisk import GRR, OLH, OUE, SUE, SubsetSelection
from dprisk.mechanisms import BLH, THE, LocalHashing, SetProtocol, UnaryEncoding
from dprisk.types import BoolArray, FloatArray, IntArray

# Small whole weights give ties and zero-mass records, large ones skew.
WEIGHTS = st.sampled_from([0, 0, 1, 1, 1, 2, 3, 7, 50])


@st.composite
def priors(draw: st.DrawFn, size: int) -> FloatArray:
    weights = np.array(draw(st.lists(WEIGHTS, min_size=size, max_size=size)), dtype=float)
    weights[draw(st.integers(0, size - 1))] += 1
    return np.asarray(weights / weights.sum())


@st.composite
def channels(draw: st.DrawFn, size: int, max_outputs: int = 4) -> FloatArray:
    outputs = draw(st.integers(1, max_outputs))
    rows = draw(st.lists(priors(outputs), min_size=size, max_size=size))
    return np.array(rows)


def partitions(size: int, max_groups: int = 3) -> st.SearchStrategy[IntArray]:
    """Group numbers without gaps."""
    labels = st.lists(st.integers(0, max_groups - 1), min_size=size, max_size=size)
    return labels.map(lambda given: np.unique(given, return_inverse=True)[1])


@st.composite
def balls(draw: st.DrawFn, size: int) -> BoolArray:
    """Any success table, guesses x records: mostly square with each record a good guess for itself, but not always."""
    own = draw(st.sampled_from([True, True, False]))
    guesses = size if own else draw(st.integers(1, size + 1))
    bits = draw(st.lists(st.booleans(), min_size=guesses * size, max_size=guesses * size))
    table = np.array(bits).reshape(guesses, size)
    return table | np.eye(size, dtype=bool) if own else table


@st.composite
def set_protocols(draw: st.DrawFn, size: int) -> SetProtocol:
    epsilon = draw(st.sampled_from([0.0, 0.1, 1.0, 3.0, 9.0]))
    unit = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
    kinds: list[SetProtocol] = [
        GRR(size, epsilon),
        SUE(size, epsilon),
        OUE(size, epsilon),
        BLH(size, epsilon),
        OLH(size, epsilon),
        THE(size, epsilon),
        LocalHashing(size, epsilon, draw(st.integers(2, 6))),
        SubsetSelection(size, epsilon, draw(st.integers(1, max(1, size - 1)))),
        UnaryEncoding(size, draw(unit), draw(unit)),
    ]
    return draw(st.sampled_from(kinds))
