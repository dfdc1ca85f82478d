"""How much of a table could be rebuilt from its noisy marginals: attacks beside what no attack exceeds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any, Protocol

import numpy as np

from dprisk.answers import Answer, Row
from dprisk.datasets.coded import CodedTable
from dprisk.errors import TooLargeError, as_number, as_whole, require
from dprisk.guarantees import ApproxDP, GaussianDP, Guarantee
from dprisk.population.beliefs import beliefs_after
from dprisk.population.bounding import at_most
from dprisk.population.candidates import Candidates, candidates
from dprisk.population.marginals import groups_of, noise_for, publish
from dprisk.population.networks import Network
from dprisk.population.relaxed import STOPS, relaxed_projection
from dprisk.population.targets import Targets
from dprisk.types import FloatArray, IntArray

LEVELS = (0.05, 0.5, 0.95)  # the confidences of the bounds
MOST_CANDIDATES = 150  # rows that a record may be, likeliest first; draws from the rest stand for it
MOST_COMPARED = 2000  # ways to fill in a record, where guesses may be off by a distance
ROUNDING = 1e-9  # what chances of rows may have lost in floats, and more
SWEEPS = 60  # of Gibbs sampling; twice as many where mu is above 1, and records depend on each other more

Tell = Callable[[int, int, str], None]  # how many tables are done, how many are planned, and what is known by now


class RowPrior(Protocol):
    """How rows are distributed: of any network package, wrapped."""

    def draw(self, people: int, rng: np.random.Generator) -> IntArray:
        """Rows of that many people, drawn independently, as codes."""

    def log_probability(self, rows: IntArray) -> FloatArray:
        """The logarithm of the chance of each row of codes."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Of one table: how many records each attack is right about, and what can be guessed of each beforehand.

    `relaxed` has a number for each of the relaxed projection's stops. `baselines` has each record's largest chance of a
    right guess by the prior, `collisions` how likely two draws from its prior coincide, at least.
    """

    prior: int
    relaxed: tuple[int, ...]
    aware: int
    baselines: FloatArray
    collisions: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Rebuilt(Answer):
    """What attackers rebuild of tables that were drawn from a prior and published as noisy marginals.

    `prior_alone`, `relaxed_projection` and `prior_aware` are mean numbers of records with all secret columns right, of
    `people`. The relaxed projection stops in each table where it did best in the others. `most` has, for each
    confidence, the number of records that no attacker exceeds, in the table where it is largest; `most_by_pair` is the
    same from (epsilon, delta) alone, whatever the mechanism.
    """

    secret: tuple[str, ...]
    people: int
    epsilon: float
    delta: float
    ways: int
    marginals: int
    noise: float
    within: float
    tallies: tuple[Tally, ...]

    @property
    def runs(self) -> int:
        """How many tables were drawn, published and attacked."""
        return len(self.tallies)

    @property
    def prior_alone(self) -> float:
        """Right without the marginals, by the likeliest guess."""
        return float(np.mean([tally.prior for tally in self.tallies]))

    @cached_property
    def relaxed_by_table(self) -> FloatArray:
        """Right by the published attack, stopped where it did best in the other tables; half-way if there are none."""
        right = np.array([tally.relaxed for tally in self.tallies], dtype=float)
        if self.runs == 1:
            return right[:, len(STOPS) // 2]
        return np.array([own[np.argmax(right.sum(axis=0) - own)] for own in right])

    @property
    def relaxed_projection(self) -> float:
        """The mean of these."""
        return float(self.relaxed_by_table.mean())

    @property
    def prior_aware(self) -> float:
        """Right by ours."""
        return float(np.mean([tally.aware for tally in self.tallies]))

    @cached_property
    def most_by_table(self) -> IntArray:
        """Tables x `LEVELS`: the number of records that no attacker exceeds, by the Gaussian noise."""
        return self._most(GaussianDP(sqrt(2 * self.marginals) / self.noise))

    @cached_property
    def most_by_table_and_pair(self) -> IntArray:
        """The same for every mechanism with this epsilon and delta."""
        return self._most(ApproxDP(self.epsilon, self.delta))

    def _most(self, guarantee: Guarantee) -> IntArray:
        targets = [Targets(tally.baselines, collisions=tally.collisions) for tally in self.tallies]
        return np.array([[at_most(guarantee, people, 1 - level).at_most for level in LEVELS] for people in targets])

    @property
    def most(self) -> dict[float, int]:
        """The number of records that no attacker exceeds, by confidence, in the table where it is largest."""
        return dict(zip(LEVELS, self.most_by_table.max(axis=0).tolist(), strict=True))

    @property
    def most_by_pair(self) -> dict[float, int]:
        """The same for every mechanism with this epsilon and delta."""
        return dict(zip(LEVELS, self.most_by_table_and_pair.max(axis=0).tolist(), strict=True))

    @property
    def about(self) -> str:
        noisy = f"{self.marginals} {self.ways}-way marginals with noise {self.noise:.3g} on each count"
        return f"{noisy}: epsilon {self.epsilon:g}, delta {self.delta:g} together, {self.people} people a table"

    @property
    def numbers(self) -> dict[str, Any]:
        return {
            "people": self.people,
            "runs": self.runs,
            "marginals": self.marginals,
            "noise": self.noise,
            "prior_alone": self.prior_alone,
            "relaxed_projection": self.relaxed_projection,
            "prior_aware": self.prior_aware,
            **{f"most_{100 * level:g}": most for level, most in self.most.items()},
            **{f"most_by_pair_{100 * level:g}": most for level, most in self.most_by_pair.items()},
        }

    @property
    def rows(self) -> list[Row]:
        bounds = [
            (f"at most, {100 * level:g} %", str(most), f"{self.most_by_pair[level]} for any such epsilon and delta")
            for level, most in self.most.items()
        ]
        return [
            ("prior alone", f"{self.prior_alone:.1f}", "right without the marginals"),
            ("relaxed projection", f"{self.relaxed_projection:.1f}", "right by the published attack"),
            ("prior-aware attack", f"{self.prior_aware:.1f}", "right by ours"),
            *bounds,
        ]

    def sentence(self) -> str:
        tables = "in one table" if self.runs == 1 else f"mean of {self.runs} tables"
        right = "" if self.within == 0 else f" within {self.within:g}"
        hidden = self.secret[0] if len(self.secret) == 1 else f"all of {', '.join(self.secret)}"
        each = "this table" if self.runs == 1 else "any of these tables"
        most = f"no attacker gets more than {self.most[0.95]} of {each} right, with 95 % confidence"
        if self.most[0.95] >= self.people:
            most = "nothing rules out, at 95 % confidence, that an attacker gets all of one right"
        return (
            f"Of {self.people} people whose other columns are known, our attack got {hidden}{right} right for "
            f"{self.prior_aware:.1f}, and {self.prior_alone:.1f} without the marginals ({tables}). If rows "
            f"follow the prior, {most}."
        )

    def to_dict(self) -> dict[str, Any]:
        asked = {name: getattr(self, name) for name in ("epsilon", "delta", "ways", "within")}
        return {"secret": list(self.secret)} | asked | super().to_dict()

    def __repr__(self) -> str:
        attacks = f"prior_alone={self.prior_alone:g}, relaxed_projection={self.relaxed_projection:g}"
        return f"Rebuilt({attacks}, prior_aware={self.prior_aware:g}, most={self.most[0.95]} of {self.people})"


def rebuild(
    table: CodedTable,
    secret: Sequence[str],
    epsilon: float,
    delta: float = 1e-5,
    *,
    prior: RowPrior | None = None,
    people: int = 100,
    ways: int = 3,
    within: float = 0,
    runs: int = 5,
    seed: int = 0,
    watch: Tell | None = None,
) -> Rebuilt:
    """Publish marginals of tables like this one, and try to fill in the secret columns of every record.

    The game of Swanberg et al., section 6: rows of `people` records are drawn from the `prior`, a network fitted to the
    table if left out, as many tables as `runs` says. All marginals of `ways` columns that hold a secret one are
    published, with noise for (epsilon, delta)-DP of all together. The attacker knows the prior and every other column.
    A guess is right if all secret columns are, or if their codes are `within` a distance of the true ones together.
    """
    unknown = table.places(secret)
    told = "All columns are secret; the attacker must know one at least, which tells it whose row it fills in."
    require(len(unknown) < len(table.names), told)
    people, runs = as_whole("people", people), as_whole("runs", runs)
    within = as_number("within", within)
    require(within >= 0, f"within must be at least 0, got {within:g}")
    law = prior if prior is not None else Network.fit(table.rows, table.sizes)
    marginals = len(groups_of(table.sizes, unknown, ways))
    noise = noise_for(epsilon, delta, marginals)
    game = _Game(table.sizes, unknown, law, people, ways, within, noise)
    tallies = []
    for number, stream in enumerate(np.random.SeedSequence(as_whole("seed", seed, 0)).spawn(runs)):
        tallies.append(game.play(np.random.default_rng(stream)))
        if watch is not None:
            watch(number + 1, runs, f"{tallies[-1].aware} of {people} right in the last")
    names = tuple(table.names[column] for column in unknown)
    return Rebuilt(names, people, epsilon, delta, ways, marginals, noise, within, tuple(tallies))


@dataclass(frozen=True, eq=False)
class _Game:
    """All that is the same for every table."""

    sizes: tuple[int, ...]
    unknown: tuple[int, ...]
    prior: RowPrior
    people: int
    ways: int
    within: float
    noise: float

    def play(self, rng: np.random.Generator) -> Tally:
        """Draw a table, publish it, attack it, and note what could be guessed beforehand."""
        truth = self.prior.draw(self.people, rng)
        published = publish(truth, self.sizes, self.unknown, self.ways, self.noise, rng)
        listed = self._candidates(truth, rng)
        alone, kappas = listed.best(listed.prior, self.within)
        relaxed = relaxed_projection(published, listed, STOPS)
        right = [self._right_rows(rows, truth) for rows in relaxed]
        sweeps = SWEEPS if published.mu <= 1 else 2 * SWEEPS
        beliefs = beliefs_after(published, listed, rng, start=relaxed[-1], sweeps=sweeps)
        distinct = listed.prior if listed.complete else listed.prior[:, :MOST_CANDIDATES]
        return Tally(
            prior=self._right(listed, alone, truth),
            relaxed=tuple(right),
            aware=self._right(listed, listed.best(beliefs, self.within)[0], truth),
            baselines=np.minimum(kappas * (1 + ROUNDING), 1.0),
            collisions=np.minimum((distinct**2).sum(axis=1), 1.0) * (1 - ROUNDING),
        )

    def _candidates(self, truth: IntArray, rng: np.random.Generator) -> Candidates:
        ways = prod(self.sizes[column] for column in self.unknown)
        told = f"The secret columns can be filled in in {ways} ways, too many to compare by distance; ask for fewer."
        require(self.within == 0 or ways <= MOST_COMPARED, told, TooLargeError)
        most = MOST_CANDIDATES if self.within == 0 else ways
        law = self.prior
        given = law if isinstance(law, Network) else lambda rows: np.exp(law.log_probability(rows))
        return candidates(given, truth, self.sizes, self.unknown, most, rng)

    def _right(self, listed: Candidates, guesses: IntArray, truth: IntArray) -> int:
        return int(listed.right(guesses, truth, self.within).sum())

    def _right_rows(self, rows: IntArray, truth: IntArray) -> int:
        wrong = np.abs(rows[:, list(self.unknown)] - truth[:, list(self.unknown)]).sum(axis=1)
        return int((wrong <= self.within).sum())
