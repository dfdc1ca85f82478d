"""What an audit runs: anything that turns a record into a random output; a mechanism of dprisk as such."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import cache, partial
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt

from dprisk.errors import require
from dprisk.guarantees import Guarantee
from dprisk.guarantees.base import Relation
from dprisk.mechanisms import Mechanism
from dprisk.types import IntArray


class Target(ABC):
    """Something to audit: a random output for each of `records`, which sampling names by their numbers.

    `claim` is the guarantee that the target is said to have, None if nobody said, and `mechanism` what it is, if that
    is known in full. `reproducible` tells whether the same seed gives the same runs, as far as that can be seen, and
    `note` why not; `in_advance`, whether it seems to draw random numbers for later calls. `batch`: the outputs of a
    block are made, and held, at once. `pairs` are the numbers of the records that are neighbours, None if all of them
    are. `relation` tells in what the records differ: one replaces the other, or one is somebody's and the other that
    they are left out.
    """

    name: str
    records: tuple[Any, ...]
    claim: Guarantee | None = None
    mechanism: Mechanism | None = None
    reproducible: bool = True
    note: str = ""
    in_advance: bool = False
    library: str | None = None
    timeout: float | None = None
    batch: bool = False
    pairs: IntArray | None = None
    relation: Relation = "replace-one"

    @property
    def size(self) -> int:
        """How many possible records there are."""
        return len(self.records)

    @abstractmethod
    def sample(self, records: IntArray, rng: np.random.Generator) -> Any:
        """One output for each record number, the outputs along the first axis (see `as_outputs`)."""

    def load(self) -> None:  # noqa: B027, most have nothing to import
        """Import what is run, where that was named only."""

    def stream(self, records: IntArray, step: int, rng: np.random.Generator) -> Generator[Any, None, None]:
        """The outputs of one block of runs, those of `step` records at a time: to be read to the end, or closed."""
        for start in range(0, records.size, step):
            yield self.sample(records[start : start + step], rng)

    def describe(self) -> dict[str, Any]:
        """What a report says of the target, ready for JSON."""
        return {
            "name": self.name,
            "size": self.size,
            "library": self.library,
            "version": version_of(self.library),
            "reproducible": self.reproducible,
            "note": self.note,
            "neighbours": self.relation,
            "timeout": self.timeout,
            "claim": None if self.claim is None else repr(self.claim),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.size} records)"

    def _numbers(self, records: npt.ArrayLike) -> IntArray:
        """Record numbers, checked."""
        numbers = np.atleast_1d(np.asarray(records))
        require(
            numbers.ndim == 1
            and (numbers.size == 0 or (numbers.dtype.kind in "iu" and 0 <= numbers.min() <= numbers.max() < self.size)),
            f"Records are given by their numbers, 0..{self.size - 1}.",
        )
        return numbers.astype(np.int64, copy=False)


class MechanismTarget(Target):
    """A mechanism of dprisk; its records are its labels, if it has some."""

    mechanism: Mechanism

    def __init__(self, mechanism: Mechanism, claim: Guarantee | None = None) -> None:
        self.mechanism, self.claim = mechanism, claim
        self.name, self.library = repr(mechanism), "dprisk"
        self.records = tuple(range(mechanism.size)) if mechanism.labels is None else mechanism.labels

    def sample(self, records: IntArray, rng: np.random.Generator) -> Any:
        """Outputs of the mechanism."""
        return self.mechanism.sample(records, rng)


def is_built_in(mechanism: Mechanism | None) -> bool:
    """Whether it is a mechanism of dprisk itself, whose formulas hold for what it draws."""
    return mechanism is not None and type(mechanism).__module__.startswith("dprisk.")


def name_of(code: Any) -> str:
    """What a person calls this code."""
    if isinstance(code, partial):
        return name_of(code.func)
    name = str(getattr(code, "__qualname__", None) or getattr(code, "__name__", None) or type(code).__name__)
    return name.rpartition(".")[2] if name.startswith("pybind11_") else name  # which names no class of people


@cache
def version_of(library: str | None) -> str | None:
    """The installed version of a distribution, None if there is none of that name."""
    try:
        return metadata.version(library) if library else None
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str]:
    """Of what the runs of an audit depend on besides the code, for its report."""
    return {"dprisk": str(version_of("dprisk")), "numpy": np.__version__, "python": platform.python_version()}
