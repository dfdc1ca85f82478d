"""Named things in order, to which anybody can add their own: closed forms, bounds, attacks."""

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from dprisk.errors import fail, require


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """What people call it."""


Entry = TypeVar("Entry", bound=Named)


class Register(Generic[Entry]):
    """Entries in the order in which they are tried. A name is taken once, and found whatever its case.

    `kind` is what an entry is called in messages.
    """

    def __init__(self, kind: str, entries: Iterable[Entry] = ()) -> None:
        self.kind, self.entries = kind, list(entries)

    def add(self, entry: Entry, before: str | None = None) -> None:
        """Add an entry at the end, or before another."""
        require(entry.name not in self, f"Another {self.kind} is called {entry.name!r} already; choose another name.")
        place = len(self) if before is None else self.entries.index(self[before])
        self.entries.insert(place, entry)

    def remove(self, name: str) -> None:
        """Forget an entry."""
        self.entries.remove(self[name])

    def __getitem__(self, name: str) -> Entry:
        for entry in self:
            if entry.name.casefold() == name.casefold():
                return entry
        return fail(f"There is no {self.kind} {name!r}; choose one of {', '.join(entry.name for entry in self)}.")

    def __contains__(self, name: str) -> bool:
        return any(entry.name.casefold() == name.casefold() for entry in self)

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self.entries))

    def __len__(self) -> int:
        return len(self.entries)
