"""Named things in order, to which anybody can add their own: closed forms, bounds, attacks, all that people type."""

import difflib
import re
import unicodedata
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from dprisk.errors import fail, require


class Named(Protocol):
    """Anything with a name; perhaps also with a `title`, and with `aliases`."""

    @property
    def name(self) -> str:
        """What people call it."""


Entry = TypeVar("Entry", bound=Named)


class Register(Generic[Entry]):
    """Entries of one kind, in the order in which they are tried, found by name, title or alias.

    Capital letters, hyphens, spaces and brackets make no difference, nor does British or American spelling, nor the
    kind at the end ("Laplace mechanism").
    """

    def __init__(self, kind: str, *entries: Entry, plural: str = "") -> None:
        self.kind, self.plural = kind, plural or f"{kind}s"
        self.entries: list[Entry] = []
        self._named: dict[str, tuple[Entry, str]] = {}
        for entry in entries:
            self.register(entry)

    def register(self, entry: Entry, before: str | None = None) -> None:
        """Add an entry at the end, or before another; refuses one whose name, title or alias leads to another."""
        texts = (entry.name, getattr(entry, "title", entry.name), *getattr(entry, "aliases", ()))
        for text in texts:
            require(self._key(text) != "", f"{text!r} is no name for a {self.kind}.")
            if text in self:
                fail(f"Another {self.kind}, {self[text].name}, is called {text!r} already; choose another name.")
        self.entries.insert(len(self) if before is None else self.entries.index(self[before]), entry)
        self._named |= {self._key(text): (entry, text) for text in reversed(texts)}

    def unregister(self, name: str) -> None:
        """Take an entry out again."""
        gone = self[name]
        self.entries.remove(gone)
        self._named = {key: named for key, named in self._named.items() if named[0] is not gone}

    def __getitem__(self, text: str) -> Entry:
        """The entry that people call so, or a sentence that lists the names."""
        if text in self:
            return self._named[self._key(text)][0]
        hint = ""
        for near in difflib.get_close_matches(self._key(text), self._named, n=1):
            entry, meant = self._named[near]
            hint = f" Did you mean {entry.name}{'' if meant == entry.name else f', that is {meant}'}?"
        return fail(f"There is no {self.kind} {text!r}; choose one of {', '.join(entry.name for entry in self)}.{hint}")

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self._key(text) in self._named

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self.entries))

    def __len__(self) -> int:
        return len(self.entries)

    def _key(self, text: str) -> str:
        """What of a name counts: letters and digits, in American spelling, without the kind."""
        plain = re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text).casefold())
        return re.sub(r"is(?=[ei]|ation)", "iz", plain.removesuffix(self.kind)).replace("our", "or")
