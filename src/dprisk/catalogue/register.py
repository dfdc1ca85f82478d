"""What can be named and made: options, entries that take them, and registers of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dprisk.errors import as_size, fail, require
from dprisk.registers import Register
from dprisk.threat.density import Density

Write = Callable[[str], str]


@dataclass(frozen=True)
class Option:
    """A number or a word that something is made with; it means the same wherever it is taken.

    If it may be left out, the meaning says what holds then. Otherwise `example` is a plausible value.
    """

    name: str
    kind: type
    meaning: str
    example: Any = None
    optional: bool = False
    choices: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        told = {"name": self.name, "type": self.kind.__name__, "meaning": self.meaning, "optional": self.optional}
        return told | ({"choices": list(self.choices)} if self.choices else {})


@dataclass(frozen=True)
class Entry:
    """Something that has a name: what it is in words, and how it is made from options.

    The `title` says what it is, the `explanation` in one line what it does. Names, titles and `aliases` all lead to it.

    `build` takes the options by name. What it is told of the records comes first: their "number"; their number, which
    it takes to rise in equal steps ("spaced"); their "places", a list of numbers, or their number for 0, 1, 2, ...; or
    "nothing", and then a mechanism or a prior brings its own.

    With `one_of`, exactly one of these sets of options is given. `unset` builds what is calibrated, if that is another
    thing than what is built in the end. `numbers` builds it for records that are any number from `low` to `high`.
    """

    name: str
    title: str
    explanation: str
    build: Callable[..., Any]
    options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()
    records: Literal["number", "spaced", "places", "nothing"] = "number"
    one_of: tuple[tuple[str, ...], ...] = ()
    unset: Callable[..., Any] | None = None
    numbers: Callable[..., Any] | None = None

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of all its options."""
        return tuple(option.name for option in self.options)

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of those that cannot be left out."""
        return tuple(option.name for option in self.options if not option.optional and not self.one_of)

    def ways(self, write: Write = str) -> str:
        """The sets of options of which exactly one is given, in words."""
        return ", ".join(" with ".join(map(write, way)) for way in self.one_of)

    def make(self, given: Mapping[str, Any], records: Any = None, write: Write = str) -> Any:
        """Build it from options by name; None stands for one that is left out.

        What is wrong gets one sentence, in which `write` says how the reader knows the name of an option.
        """
        chosen = _present(given)
        self._check(chosen, write)
        return self._built(self.build, chosen, records)

    def template(self, given: Mapping[str, Any], records: Any = None, write: Write = str) -> Any:
        """What `calibrate` takes: as `make`, without the option that is to be found."""
        chosen = _present(given)
        anything = {option.name: option.example for option in self.options if option.name in self.needs}
        filled = _present(anything) | chosen
        self._check(filled, write)
        made = self._built(self.unset or self.build, filled, records)
        if made.parameter is None:
            fail(f"{self.name} has no parameter to calibrate.")
        sought = made.parameter.name
        require(sought not in chosen, f"{write(sought)} is what is to be found; leave it out.")
        self._check(chosen, write, besides=sought)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; an option that cannot be left out is among the needs."""
        words = {"name": self.name, "title": self.title, "explanation": self.explanation, "aliases": list(self.aliases)}
        return words | {"options": list(self.takes), "needs": list(self.needs)}

    def _built(self, build: Callable[..., Any], chosen: Mapping[str, Any], records: Any) -> Any:
        if isinstance(records, Density):
            if self.numbers is None:
                fail(f"{self.name} takes records that can be listed, not any number of an interval.")
            return self.numbers(low=records.low, high=records.high, **chosen)
        if self.records == "nothing":
            return build(**chosen)
        counted = self.records == "places" and isinstance(records, int)
        return build(np.arange(as_size(records)) if counted else records, **chosen)

    def _check(self, chosen: Mapping[str, Any], write: Write, besides: str = "") -> None:
        """Refuse what it does not take and what is none of the choices, and ask for what is missing."""
        takes = ", ".join(map(write, self.takes)) or "no options"
        for name in chosen:
            require(name in self.takes, f"{write(name)} has no meaning for {self.name}; it takes {takes}.")
        for option in (option for option in self.options if option.choices and option.name in chosen):
            require(
                chosen[option.name] in option.choices,
                f"{write(option.name)} must be {' or '.join(map(repr, option.choices))}, got {chosen[option.name]!r}.",
            )
        if self.one_of:
            require(set(chosen) in map(set, self.one_of), f"{self.name} needs exactly one of {self.ways(write)}.")
        missing = [write(name) for name in self.needs if name not in chosen and name != besides]
        require(not missing, f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing for {self.name}.")


class Catalogue(Register[Entry]):
    """A register of what is made from options. `dprisk` shows it in the commands that are built from then on."""

    def register(self, entry: Entry, before: str | None = None) -> None:
        """As in any register; also refuses an entry that gives an option a new meaning."""
        for option in entry.options:
            known = self.options.get(option.name, option)
            require(
                known == option, f"A {self.kind} already takes an option {option.name}, which means: {known.meaning}."
            )
        super().register(entry, before)

    @property
    def options(self) -> dict[str, Option]:
        """All options that some entry takes, by name."""
        return {option.name: option for entry in self for option in entry.options}


def _present(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
