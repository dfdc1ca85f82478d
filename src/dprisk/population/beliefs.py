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

Where there is little noise, one record alone can hardly change: its old count would be missing, its new one too many.
Two records that exchange their secrets leave most counts as they are. So between the draws it is drawn for pairs, too,
which of the two is which: they exchange with chance 1 / (1 + e^-gain), the gain being that of the logarithm above. (By
the rule of Metropolis two that are alike would always exchange, and the next time back.) Where there is next to no
noise, the first sweeps pretend that there is more, so that a start which almost fits can come apart once more.
"""

from collections.abc import Callable
from math import comb

import numpy as np

from dprisk.errors import as_whole
from dprisk.population.candidates import Candidates
from dprisk.population.marginals import NoisyMarginals
from dprisk.types import FloatArray, IntArray

ALONE = 1.0  # of mu: up to here a record changes often enough alone, and exchanges are not worth their time
MELTED = 12.0  # of mu: with less noise than this, sampling begins with so much and ends with what there is
MELTING = 0.8  # of the sweeps that do not count

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
    Where there is little noise, it pays to start where another attack ended: the way to a good fit is long.
    """
    sampler = _Sampler(published, listed, as_whole("chains", chains), rng, start)
    sweeps = as_whole("sweeps", sweeps, 2)
    warm = sweeps // 2
    total = np.zeros_like(listed.weight)
    for sweep in range(sweeps):
        sampler.precision = published.noise**-2 * _melted(published.mu, (sweep + 1) / (MELTING * warm))
        for record in rng.permutation(listed.people):
            chances = sampler.redraw(record)
            if sweep >= warm:
                total[record] += chances
        for record, mate in enumerate(sampler.mates() if published.mu > ALONE else ()):
            sampler.exchange(record, mate)
        if tell is not None:
            tell(sweep + 1, sweeps)
    own = np.divide(listed.prior, listed.weight, out=np.zeros_like(total), where=listed.weight > 0)
    return np.asarray(own * total / (sweeps - warm))


def _melted(mu: float, progress: float) -> float:
    """What the precision is multiplied by on the way from a mu of `MELTED` to the release's, where that is larger."""
    return float(min(1.0, (MELTED / mu) ** (2 * max(1 - progress, 0.0))))


class _Sampler:
    """Chains of Gibbs sampling: the candidate that each record is now, and its unknown columns one-hot."""

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
        self.agree_known = (first[:, None] == first[None]).sum(axis=2)
        self.hot = _one_hot(listed.secrets, [published.sizes[c] for c in listed.unknown])
        self.shared = np.array([comb(agree, published.ways) for agree in range(columns + 1)], dtype=float)
        # How many cells more two rows share that agree in an unknown column, too. If it is the only one, that is all.
        beside = np.diff(self.shared)[self.agree_known]
        self.beside = np.where(np.eye(people) > 0, 0, beside) if len(listed.unknown) == 1 else None
        self.same, self.place = _places(listed.secrets)
        # The more known columns differ, the more counts an exchange moves, and the less often it is tried.
        tried = (1 + self.precision * (beside.max() - beside)) ** -2.0
        self.tried = np.cumsum(np.where(np.eye(people) > 0, 0, tried), axis=1)
        if start is None:
            self.at = np.stack([_draw(self.log_weight, rng) for _ in range(chains)])  # chains, people
        else:  # the candidate that most columns of the row agree with
            self.at = np.tile((rows == start[:, None]).sum(axis=2).argmax(axis=1), (chains, 1))
        self.state = self.hot[np.arange(people), self.at]  # chains, people, one-hot

    def redraw(self, record: int) -> FloatArray:
        """Draw a record anew in each chain given all others; the chances it was drawn with, averaged over chains."""
        evidence = (self.support[record][:, None] - self._shared_with_others(record)) * self.precision
        log = (self.log_weight[record][:, None] + evidence).T
        chances = np.exp(log - log.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        summed = np.cumsum(chances, axis=1)
        drawn = (summed < self.rng.random((self.chains, 1)) * summed[:, -1:]).sum(axis=1)
        self.at[:, record] = drawn
        self.state[:, record] = self.hot[record, drawn]
        return np.asarray(chances.mean(axis=0))

    def _shared_with_others(self, record: int) -> FloatArray:
        """Candidates x chains: the cells that a candidate of the record shares with all others, up to a constant."""
        if self.beside is not None:
            return np.asarray(self.hot[record] @ (self.beside[record] @ self.state).T)
        people = len(self.agree_known)
        mates = self.state.reshape(self.chains * people, -1)
        agree = (self.hot[record] @ mates.T).reshape(-1, self.chains, people) + self.agree_known[record]
        shared = self.shared[agree.astype(np.intp)]
        shared[:, :, record] = 0
        return np.asarray(shared.sum(axis=2))

    def mates(self) -> IntArray:
        """For each record another one to exchange with, drawn without a look at what they are now."""
        mates = (self.tried < self.rng.random((len(self.tried), 1)) * self.tried[:, -1:]).sum(axis=1)
        return np.asarray(mates)

    def exchange(self, one: int, two: int) -> None:
        """Let two records exchange their unknown columns in the chains where the dice say so.

        Not tried where either does not list the other's, or lists its own twice and could not come back.
        """
        pair, at = [one, two], self.at[:, [one, two]]
        keys = self.same[pair, at]
        new = self.place[pair, keys[:, ::-1]]
        possible = (new >= 0).all(axis=1) & (self.place[pair, keys] == at).all(axis=1) & (keys[:, 0] != keys[:, 1])
        if not possible.any():
            return
        agree = (self.state @ self.state[:, pair].transpose(0, 2, 1)).astype(np.intp)  # chains, people, pair
        known = self.agree_known[pair][:, :, None]
        difference = self.shared[agree + known[0]] - self.shared[agree + known[1]]
        fewer = difference[:, :, 0] - difference[:, :, 1]  # cells shared with each person, now less after
        fewer[:, pair] = 0
        support = self.support[pair, new] - self.support[pair, at]
        weight = self.log_weight[pair, new] - self.log_weight[pair, at]
        gain = weight.sum(axis=1) + self.precision * (support.sum(axis=1) + fewer.sum(axis=1))
        done = possible & (self.rng.logistic(size=self.chains) < gain)
        for record, places in zip(pair, new.T, strict=True):
            self.at[done, record] = places[done]
            self.state[done, record] = self.hot[record, places[done]]


def _places(secrets: IntArray) -> tuple[IntArray, IntArray]:
    """A number for each candidate, the same for the same unknown columns; where a record lists each first, or -1."""
    people, width, columns = secrets.shape
    _, same = np.unique(secrets.reshape(-1, columns), axis=0, return_inverse=True)
    same = same.reshape(people, width)
    place = np.full((people, int(same.max()) + 1), -1)
    place[np.arange(people)[:, None], same[:, ::-1]] = np.arange(width)[::-1]
    return same, place


def _draw(log: FloatArray, rng: np.random.Generator) -> IntArray:
    """A place in each row, drawn with chances of these logarithms."""
    return np.asarray(np.argmax(log + rng.gumbel(size=log.shape), axis=1))


def _one_hot(codes: IntArray, sizes: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Codes of several columns as 0/1 vectors, one after the other."""
    parts = [np.eye(size, dtype=np.float32)[codes[..., place]] for place, size in enumerate(sizes)]
    return np.concatenate(parts, axis=-1)
