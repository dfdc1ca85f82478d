"""What one run of an audit gave: guesses about canaries, in the order of how certain they are, and which were right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from dprisk.csv_files import CsvFile
from dprisk.errors import InputFileError, ParameterError, TargetError, as_number, as_whole, fail, require
from dprisk.population.one_run import Guesses
from dprisk.population.targets import Targets, whole_cells
from dprisk.rounding import so_many
from dprisk.tables import as_floats, listed
from dprisk.threat.prior import Prior
from dprisk.types import BoolArray, FloatArray, IntArray

TIES = 0x6B0F_52D1_93CA  # seed of the order of ties: not 0, by which somebody else may have drawn who is in
YES, NO = {"1", "1.0", "true", "yes", "in", "member"}, {"0", "0.0", "false", "no", "out", "non-member"}


@dataclass(frozen=True, eq=False, repr=False)
class OneRun:
    """Guesses about canaries after one run, most certain first.

    `right` says which held, `masses` how likely each was before the run, `canaries` what all of them could have been.
    The values must have been drawn independently, from the priors that are given, and the order must not depend on
    whether guesses are right (it may depend on the values of canaries that came before). Guesses that are equally
    certain come in a random order: that of a file or list may tell who was in. `ordered` is False where only the counts
    are known. `in_or_out` says that canaries were in or out, and did not just have one value or another.
    """

    right: BoolArray
    masses: FloatArray
    canaries: Targets
    ordered: bool = True
    in_or_out: bool = False

    @classmethod
    def from_scores(cls, scores: Any, members: Any, prior: float = 0.5) -> OneRun:
        """Membership: a score for each canary, high for those who seem to be in, and whether it was in.

        Each canary was put in with probability `prior`, by a coin of its own. Scores above the quantile that separates
        that share from the rest are guessed to be in, the others out; the further from it, the more certain.

        >>> OneRun.from_scores([3.0, -2.0, 0.1, -0.3], [True, False, False, False])
        OneRun(3 right of 4 guesses about 4 canaries)
        """
        given = as_floats(scores, "scores", ParameterError)
        inside = _flags(members)
        ok = given.ndim == 1 and given.shape == inside.shape and given.size > 0
        require(ok, f"Give one score and one membership a canary, got {given.shape} and {inside.shape}.")
        require(not np.isnan(given).any(), "A score is not a number (NaN); give such canaries the lowest score.")
        chance, canaries = as_number("prior", prior), Targets.members(given.size, prior)
        finite = np.clip(given, -1e300, 1e300)
        middle = float(np.quantile(finite, 1 - chance))
        guess = finite > middle
        order = _most_certain_first(np.abs(finite - middle))
        right, masses = guess == inside, np.where(guess, chance, 1 - chance)
        return cls(right[order], masses[order], canaries, in_or_out=True)

    @classmethod
    def from_guesses(cls, guesses: Any, truths: Any, prior: Any, certainties: Any = None) -> OneRun:
        """Reconstruction: a guess (None: no guess) and the true value of each canary.

        `prior` is what all values were drawn from: a number m for 0, ..., m - 1 or any m equally likely values, a
        `Prior` with the values as labels, or a list with one of these for each canary. Without `certainties` no
        guess is taken to be more certain than another.
        """
        named, true = listed(guesses), listed(truths)
        require(len(named) == len(true) > 0, f"Give one guess a canary, got {len(named)} for {len(true)}.")
        own = list(prior) if isinstance(prior, list | tuple) else [prior] * len(true)
        require(len(own) == len(true), f"Give one prior a canary, got {len(own)} for {len(true)}.")
        asked = np.array([guess is not None for guess in named])
        masses = np.array(
            [_mass(held, guess) if guess is not None else 0.0 for held, guess in zip(own, named, strict=True)]
        )
        asked &= masses > 0  # a guess that cannot be right says nothing
        require(asked.any(), "No guess is a possible value: there is nothing to certify.")
        right = np.array([guess == truth for guess, truth in zip(named, true, strict=True)]) & asked
        order = _order(certainties, len(true))
        order = order[asked[order]]
        return cls(right[order], masses[order], _canaries(own))

    @classmethod
    def from_candidates(cls, scores: Any, truths: Any) -> OneRun:
        """Reconstruction: scores of m equally likely values for each canary (n x m), and the number of the true one.

        The value with the largest score is guessed; the further it is ahead of the next, the more certain.
        """
        table, true = as_floats(scores, "scores", ParameterError), np.asarray(truths)
        ok = table.ndim == 2 and table.shape[1] >= 2 and true.shape == table.shape[:1] and table.shape[0] > 0
        require(ok, "Give a row of scores for each canary, one for each of its values, and as many true values.")
        require(not np.isnan(table).any(), "A score is not a number (NaN).")
        top = np.partition(table, -2, axis=1)
        return cls.from_guesses(table.argmax(axis=1), true, table.shape[1], top[:, -1] - top[:, -2])

    @classmethod
    def counted(
        cls, successes: int, guesses: int, canaries: int, prior: float | None = None, values: int = 2
    ) -> OneRun:
        """Only counts are known: so many of so many guesses were right, a number that was fixed before the run.

        The canaries were in with probability `prior` each, or had one of so many equally likely `values`.
        """
        right, asked = as_whole("successes", successes, least=0), as_whole("guesses", guesses)
        many = as_whole("values", values, least=2)
        require(right <= asked, f"Of {asked} guesses at most all are right, got {right}.")
        total = as_whole("targets", canaries)
        require(asked <= total, f"{asked} guesses about {total} canaries; give one a canary at most.")
        known = Targets.uniform(total, many) if prior is None else Targets.members(total, prior)
        masses, is_member = known.baselines[:asked].copy(), prior is not None
        return cls(np.arange(asked) < right, masses, known, ordered=False, in_or_out=is_member)

    @classmethod
    def of(
        cls,
        mechanism: Callable[..., Any],
        attack: Callable[[Any], Any],
        prior: Prior | int,
        canaries: int,
        seed: int = 0,
    ) -> OneRun:
        """Draw the canaries' values, run the mechanism on them once, and let the attack guess them from the output.

        The attack returns a guess for each canary (None: no guess), or a pair: the guesses and how certain each is.
        It must see nothing but the output. A mechanism with a parameter `rng` gets a numpy generator.
        """
        count = as_whole("canaries", canaries)
        belief = Prior.uniform(prior) if isinstance(prior, int) else prior
        coins, noise = np.random.default_rng(seed).spawn(2)
        values = [belief.name(int(number)) for number in coins.choice(belief.size, size=count, p=belief.weights)]
        more = {"rng": noise} if "rng" in signature(mechanism).parameters else {}
        found = attack(mechanism(list(values), **more))
        guesses, certainties = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        named = listed(guesses)
        TargetError.unless(
            len(named) == count,
            f"The attack must return a guess for each of the {count} canaries, it gave {len(named)}.",
        )
        return cls.from_guesses(named, values, belief, certainties)

    @classmethod
    def from_csv(cls, path: str | Path, prior: float | None = None, values: int | None = None) -> OneRun:
        """A file with a row a canary: columns `score` and `member`, or `guess`, `truth` and perhaps `certainty`.

        An empty guess is none. The number of equally likely values of guessed canaries is `values`, or a column. How
        likely a canary with a score was in is `prior`, a half if left out.
        """
        file = CsvFile.open(path)
        if file.has("score") and file.has("member"):
            require(values is None, f"{path} tells who was in, so a canary has no values; drop `values`.")
            table = file.columns(["score", "member"])
            return cls.from_scores(
                file.numbers(table["score"], "score"),
                _read_flags(file, table["member"]),
                0.5 if prior is None else prior,
            )
        if not (file.has("guess") and file.has("truth")):
            fail(
                f"{path} needs columns `score` and `member`, or `guess` and `truth`; {file.described}.", InputFileError
            )
        require(prior is None, f"{path} tells guesses of values, each as likely as another; drop `prior`.")
        extra = [name for name in ("certainty", "values") if file.has(name)]
        table = file.columns(["guess", "truth", *extra])
        if "" in table["truth"]:
            file.refuse_cell("truth", lambda cell: not cell, "is empty", "write the value that the canary had")
        return cls.from_guesses(
            [cell or None for cell in table["guess"]],
            table["truth"],
            _read_values(file, table.get("values"), values),
            file.numbers(table["certainty"], "certainty") if "certainty" in extra else None,
        )

    @cached_property
    def guesses(self) -> Guesses:
        """What the certificates are computed from."""
        return Guesses(self.right, self.masses, self.canaries)

    def __repr__(self) -> str:
        guesses = so_many(self.right.size, "guess", "guesses")
        canaries = so_many(self.canaries.people, "canary", "canaries")
        return f"OneRun({int(self.right.sum())} right of {guesses} about {canaries})"


def _flags(members: Any) -> BoolArray:
    flags = np.asarray(listed(members))
    ok = flags.ndim == 1 and (flags.dtype == bool or bool(np.all((flags == 0) | (flags == 1))))
    require(ok, "members must say for each canary whether it was in: True or False, 1 or 0.")
    return flags.astype(bool)


def _read_flags(file: CsvFile, cells: Sequence[str]) -> BoolArray:
    lowered = [cell.casefold() for cell in cells]
    if not set(lowered) <= YES | NO:
        file.refuse_cell("member", lambda cell: cell.casefold() not in YES | NO, "is {cell!r}", "write 1 or 0")
    return np.array([cell in YES for cell in lowered])


def _mass(prior: Any, guess: Any) -> float:
    """The prior probability of a guess."""
    if isinstance(prior, Prior):
        known = guess in (prior.labels if prior.labels is not None else range(prior.size))
        return float(prior.weights[prior.find(guess)]) if known else 0.0
    return 1 / as_whole("the number of values of a canary", prior, least=2)


def _canaries(priors: Sequence[Any]) -> Targets:
    first = priors[0]
    if all(prior is first or prior == first for prior in priors):
        if isinstance(first, Prior):
            one = Targets.from_priors([first])
            return Targets(np.repeat(one.baselines, len(priors)), one.smallest[0], one.collisions[0])
        return Targets.uniform(len(priors), first)
    return Targets.from_priors([prior if isinstance(prior, Prior) else Prior.uniform(prior) for prior in priors])


def _read_values(file: CsvFile, cells: Sequence[str] | None, values: int | None) -> list[int] | int:
    """How many equally likely values each canary had: of the column, or of all as given."""
    told = f"{file.path}: how many equally likely values has a canary? Give `values`, or a column of that name."
    if cells is None:
        InputFileError.unless(values is not None, told)
        return as_whole("values", values, least=2)
    require(values is None, f"{file.path} has a column `values`: leave out the number of values besides.")
    return whole_cells(file, cells, "values", 2)


def _order(certainties: Any, count: int) -> IntArray:
    """The canaries, most certain first; in a random order if nothing is said."""
    given = np.zeros(count) if certainties is None else as_floats(certainties, "certainties", ParameterError)
    require(given.shape == (count,), f"Give one certainty a canary, got {given.shape} for {count}.")
    require(not np.isnan(given).any(), "A certainty is not a number (NaN); give such guesses the lowest.")
    return _most_certain_first(given)


def _most_certain_first(certainties: FloatArray) -> IntArray:
    """Their order, ties at random but the same each time.

    In the order of the list, members before the others, a score that is the same for all would seem to tell them apart.
    """
    drawn = np.random.default_rng(TIES).permutation(certainties.size)
    order: IntArray = drawn[np.argsort(-certainties[drawn], kind="stable")]
    return order
