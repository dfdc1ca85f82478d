"""A threat model: what is released, over which records, and who might come after it. Made once, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NoReturn

from dprisk.documents import Section
from dprisk.taxonomy.dimensions import DIMENSIONS

Attack = dict[str, str]  # an option of each dimension


@dataclass(frozen=True)
class Choice:
    """Options of one dimension, several if attacks with each are meant, and free text beside them."""

    options: tuple[str, ...]
    text: str = ""

    def to_dict(self) -> Any:
        """As a file has it."""
        plain: Any = self.options[0] if len(self.options) == 1 else list(self.options)
        return {"option": plain, "text": self.text} if self.text else plain


@dataclass(frozen=True)
class Attacker:
    """Who might come after the release: its own choices, and what it knows, wants and may gain."""

    name: str
    choices: Mapping[str, Choice]
    about: str = ""
    knows: str | tuple[str, ...] | None = None
    wants: tuple[str, ...] = ()
    within: float | Mapping[str, float] | None = None
    fpr: float | None = None
    target: str | int | float | None = None
    tolerance: float | None = None
    impact: str | None = None

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The columns of the target's record that it knows, where it does not know all or none."""
        return self.knows if isinstance(self.knows, tuple) else ()


@dataclass(frozen=True)
class Universe:
    """The possible records, and how likely each is."""

    prior: str | Mapping[str, float] | None = None
    size: int | None = None
    table: str | None = None
    columns: tuple[str, ...] = ()
    bands: Mapping[str, float] = field(default_factory=dict)
    marginals: str | None = None
    text: str = ""


@dataclass(frozen=True)
class ThreatModel:
    """What a threat model file says. `section` is where it was read from, for sentences with a line."""

    title: str
    release: Mapping[str, Any]
    attackers: tuple[Attacker, ...]
    about: str = ""
    universe: Universe | None = None
    crafter: Mapping[str, Choice] = field(default_factory=dict)
    evaluator: Mapping[str, Choice] = field(default_factory=dict)
    records_per_unit: int | None = None
    people: int | None = None
    section: Section | None = field(default=None, compare=False, repr=False)

    def refuse(self, attacker: Attacker, key: str, told: str) -> NoReturn:
        """Raise a sentence about an attacker, with the line of the key, or of the attacker if it has no such key."""
        assert self.section is not None
        part = self.section.inner("attacker", self.attackers.index(attacker))
        part.refuse(f"({attacker.name}) {told}", *([key] if key in part.given else []))

    def choice(self, attacker: Attacker, dimension: str) -> Choice | None:
        """What holds of an attacker: its own choice, or that of the crafter or evaluator for all."""
        return attacker.choices.get(dimension) or self.crafter.get(dimension) or self.evaluator.get(dimension)

    def options(self, attacker: Attacker, dimension: str) -> tuple[str, ...]:
        """The options of that choice; none where nothing is said."""
        choice = self.choice(attacker, dimension)
        return () if choice is None else choice.options

    def profile(self, attacker: Attacker) -> dict[str, Choice]:
        """The choice of every dimension, in their order."""
        found = ((it.name, self.choice(attacker, it.name)) for it in DIMENSIONS)
        return {name: choice for name, choice in found if choice is not None}

    def attacks(self, attacker: Attacker) -> list[Attack]:
        """Every combination of the options: each is an attack (Attaxonomy Figure 1b)."""
        profile = self.profile(attacker)
        return [dict(zip(profile, way, strict=True)) for way in product(*(it.options for it in profile.values()))]

    def units(self, option: str) -> int:
        """How many records change at once for a privacy unit: one for an event, the records of a unit otherwise."""
        return 1 if option == "event" else (self.records_per_unit or 1)

    def to_dict(self) -> dict[str, Any]:
        """As a file has it: reading that gives the same model."""
        crafter: dict[str, Any] = _told(self.crafter)
        counts = {"records_per_unit": self.records_per_unit, "people": self.people}
        whole = {
            "title": self.title,
            "about": self.about,
            "release": _plain(self.release),
            "universe": None if self.universe is None else _plain(vars(self.universe)),
            "crafter": crafter | _plain(counts),
            "evaluator": _told(self.evaluator),
            "attacker": [_attacker(it) for it in self.attackers],
        }
        return {name: value for name, value in whole.items() if value not in (None, "", {})}


def _told(choices: Mapping[str, Choice]) -> dict[str, Any]:
    return {name: choice.to_dict() for name, choice in choices.items()}


def _attacker(attacker: Attacker) -> dict[str, Any]:
    own = {name: value for name, value in vars(attacker).items() if name != "choices"}
    first = {name: own.pop(name) for name in ("name", "about")}
    return _plain(first) | _told(attacker.choices) | _plain(own)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists and dictionaries, without what was left out."""
    return {name: _data(value) for name, value in values.items() if value not in (None, "", (), {})}


def _data(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _data(inner) for key, inner in value.items()}
    return [_data(inner) for inner in value] if isinstance(value, list | tuple) else value
