"""Repeated reports to draw from: of few outputs how often each occurs, which tells as much in fewer numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from dprisk.errors import MechanismError
from dprisk.mechanisms.base import MATRIX_CELLS, Mechanism, Repeated
from dprisk.mechanisms.combined import OnAttribute, Product
from dprisk.types import AnyArray, FloatArray


class Counted(Mechanism):
    """How often each output of a mechanism occurs among `times` independent reports of the same record.

    An output is a vector of counts, in the order in which the mechanism lists its outputs.
    """

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        self.mechanism, self.times, self.size, self.labels = mechanism, times, mechanism.size, mechanism.labels
        self._table = mechanism.matrix()

    def sample(self, records: npt.ArrayLike, rng: np.random.Generator) -> AnyArray:
        rows = self._table / self._table.sum(axis=1)[:, None]
        return rng.multinomial(self.times, rows[self._records(records)])

    def log_likelihood(self, outputs: npt.ArrayLike) -> FloatArray:
        counts = np.atleast_2d(np.asarray(outputs))
        if counts.shape[1:] != self._table.shape[1:] or not np.all(counts.sum(axis=1) == self.times):
            raise MechanismError(f"An output of {self!r} holds {self._table.shape[1]} counts that sum to {self.times}.")
        ways = scipy.special.gammaln(self.times + 1) - scipy.special.gammaln(counts + 1).sum(axis=1)
        is_zero = self._table == 0
        logs = counts @ np.log(np.where(is_zero, 1.0, self._table)).T + ways[:, None]
        logs[(counts > 0) @ is_zero.T.astype(float) > 0] = -np.inf
        return np.asarray(logs)


def condensed(mechanism: Mechanism) -> Mechanism:
    """A mechanism whose outputs tell as much in no more numbers: repeated reports are counted where that is less."""
    match mechanism:
        case Repeated(mechanism=one, times=times) if one.n_outputs <= min(times, MATRIX_CELLS / one.size):
            return Counted(one, times)
        case Product(first=first, second=second):
            return Product(condensed(first), condensed(second))
        case OnAttribute(mechanism=one, values=values):
            return OnAttribute(condensed(one), values)
    return mechanism
