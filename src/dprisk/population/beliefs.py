"""What to believe of each record of a table after its noisy marginals: our attack, which uses the prior to the end.

The attacker knows some columns of all n records and believes that the rest follows its prior, independently. Let b(z)
be the sum of the noisy counts of the cells that row z falls into, and a(z, z') in how many columns two rows agree. Two
rows share C(a, k) cells, so that up to a constant

    log P(x | noisy counts) = sum_i log pi_i(x_i) + [ sum_i b(x_i) - 1/2 sum_ij C(a(x_i, x_j), k) ] / noise^2,

without a count of the table ever being made. Given all other records, the chances of one are therefore those of its
candidates z in proportion to

    pi_i(z) exp( [ b(z) - sum_{j != i} C(a(z, x_j), k) ] / noise^2 )

(the candidate's share of cells with itself is the same for all). Gibbs sampling draws the records one after the other
from this; the average of the chances is the belief, and the guess that is right with the largest belief is the best
there is. (Marginals of known columns only are left out; what they would add is the same for all candidates.)
"""

from collections.abc import Callable
from math import comb

import numpy as np

from dprisk.errors import as_whole
from dprisk.population.candidates import Candidates
from dprisk.population.marginals import NoisyMarginals
from dprisk.types import FloatArray, IntArray

Tell = Callable[[int, int], None]  # how many sweeps are done, and how many are planned


def beliefs_after(
    published: NoisyMarginals,
    listed: Candidates,
    rng: np.random.Generator,
    start: IntArray | None = None,
    sweeps: int = 60,
    chains: int = 4,
    tell: Tell | None = None,
) -> FloatArray:
    """How likely each candidate of each record is after the noisy marginals, averaged over Gibbs sweeps of all records.

    Candidates that stand for others, too, take part with the weight of all these, and are believed for themselves only.
    Several independent chains start at these rows, or at draws from the prior; the second half of the sweeps counts.
    Where there is little noise, Gibbs sampling hardly leaves a good fit for a better one far away: then it pays to
    start where another attack ended.
    """
    sampler = _Sampler(published, listed, as_whole("chains", chains), rng, start)
    sweeps = as_whole("sweeps", sweeps, 2)
    warm = sweeps // 2
    total = np.zeros_like(listed.weight)
    for sweep in range(sweeps):
        for record in rng.permutation(listed.people):
            chances = sampler.redraw(record)
            if sweep >= warm:
                total[record] += chances
        if tell is not None:
            tell(sweep + 1, sweeps)
    own = np.divide(listed.prior, listed.weight, out=np.zeros_like(total), where=listed.weight > 0)
    return np.asarray(own * total / (sweeps - warm))


class _Sampler:
    """Chains of Gibbs sampling: the records of each, as one-hot rows of their unknown columns."""

    def __init__(
        self,
        published: NoisyMarginals,
        listed: Candidates,
        chains: int,
        rng: np.random.Generator,
        start: IntArray | None,
    ) -> None:
        self.rng, self.chains, self.precision = rng, chains, published.noise**-2
        rows = listed.rows
        people, width, columns = rows.shape
        self.support = published.support(rows.reshape(-1, columns)).reshape(people, width)
        with np.errstate(divide="ignore"):
            self.log_weight = np.log(listed.weight)
        known = [c for c in range(columns) if c not in listed.unknown]
        first = rows[:, 0][:, known]
        self.agree_known = (first[:, None] == first[None]).sum(axis=2).astype(np.float32)
        self.hot = _one_hot(listed.secrets, [published.sizes[c] for c in listed.unknown])
        self.shared = np.array([comb(agree, published.ways) for agree in range(columns + 1)], dtype=float)
        if start is None:
            begun = np.stack([_draw(self.log_weight, rng) for _ in range(chains)])
        else:  # the candidate that most columns of the row agree with
            begun = np.tile((rows == start[:, None]).sum(axis=2).argmax(axis=1), (chains, 1))
        self.state = self.hot[np.arange(people), begun]  # chains, people, one-hot

    def redraw(self, record: int) -> FloatArray:
        """Draw a record anew in each chain given all others; the chances it was drawn with, averaged over chains."""
        people = len(self.agree_known)
        mates = self.state.reshape(self.chains * people, -1)
        agree = (self.hot[record] @ mates.T).reshape(-1, self.chains, people) + self.agree_known[record]
        shared = self.shared[agree.astype(np.intp)]
        shared[:, :, record] = 0
        evidence = (self.support[record][:, None] - shared.sum(axis=2)) * self.precision
        log = (self.log_weight[record][:, None] + evidence).T
        chances = np.exp(log - log.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        summed = np.cumsum(chances, axis=1)
        drawn = (summed < self.rng.random((self.chains, 1)) * summed[:, -1:]).sum(axis=1)
        self.state[:, record] = self.hot[record, drawn]
        return np.asarray(chances.mean(axis=0))


def _draw(log: FloatArray, rng: np.random.Generator) -> IntArray:
    """A place in each row, drawn with chances of these logarithms."""
    return np.asarray(np.argmax(log + rng.gumbel(size=log.shape), axis=1))


def _one_hot(codes: IntArray, sizes: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Codes of several columns as 0/1 vectors, one after the other."""
    parts = [np.eye(size, dtype=np.float32)[codes[..., place]] for place, size in enumerate(sizes)]
    return np.concatenate(parts, axis=-1)
