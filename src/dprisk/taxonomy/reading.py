"""Threat models from files: every name checked, and whatever is wrong told in a sentence with its line."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dprisk.documents import Section, read_document
from dprisk.errors import InputFileError, fail
from dprisk.taxonomy.contradictions import require_consistent
from dprisk.taxonomy.dimensions import DIMENSIONS, NAMED
from dprisk.taxonomy.keys import (
    ATTACKER,
    CRAFTER,
    EVALUATOR,
    LEVELS,
    MOST,
    MOST_ATTACKERS,
    MOST_COUNTED,
    MOST_NAME,
    MOST_NAMES,
    MOST_TEXT,
    TOP,
    UNIVERSE,
    Key,
)
from dprisk.taxonomy.model import Attacker, Choice, ThreatModel, Universe

A_RELEASE = (
    "is a release file, as for `dprisk assess --release`. In a threat model it goes below a line [release], and who "
    "might come after it below [[attacker]]; `dprisk init` writes an example."
)
MOST_ATTACKS = 64  # combinations of options that one attacker stands for


def read_threat_model(path: str | Path, data: str | Path | None = None) -> ThreatModel:
    """Read a threat model file (TOML or JSON).

    Files that it names are looked for in its folder, or in the folder `data` first, and nowhere else.
    """
    folder = Path(path).parent
    section = read_document(path, (folder,) if data is None else (Path(data), folder)).section()
    return threat_model(section)


def threat_model(section: Section) -> ThreatModel:
    """The threat model that a section of a file describes."""
    given = section.given
    names = [key.name for key in TOP]
    if "query" in given and "release" not in given:
        fail(f"{section.where()} {A_RELEASE}", InputFileError)
    section.check(("title", "release", "attacker"), (*names[1:], "universe", "crafter", "evaluator"))
    release = section.inner("release")
    if not isinstance(release.given, Mapping) or not release.given:
        release.refuse("must hold names with values: a mechanism, a guarantee, parts, or a query with data.")
    top = {key.name: _value(section, key) for key in TOP if key.name in given}
    crafter = _section(section, "crafter", CRAFTER)
    counts = {name: crafter.pop(name) for name in ("records_per_unit", "people") if name in crafter}
    universe = _section(section, "universe", UNIVERSE) if "universe" in given else None
    model = ThreatModel(
        **top,
        release=release.given,
        universe=None if universe is None else Universe(**universe),
        crafter=crafter,
        evaluator=_section(section, "evaluator", EVALUATOR),
        **counts,
        attackers=_attackers(section),
        section=section,
    )
    _require_whole(model, section)
    require_consistent(model)
    return model


def _section(whole: Section, name: str, keys: Sequence[Key]) -> dict[str, Any]:
    return _values(whole.inner(name), keys) if name in whole.given else {}


def _values(section: Section, keys: Sequence[Key]) -> dict[str, Any]:
    """The values of a section, each checked by its kind."""
    section.check([key.name for key in keys if key.needed], [key.name for key in keys if not key.needed])
    return {key.name: _value(section, key) for key in keys if key.name in section.given}


def _attackers(whole: Section) -> tuple[Attacker, ...]:
    listed = whole.given["attacker"]
    if not isinstance(listed, list) or not listed:
        whole.refuse("is a list: write each attacker below a line [[attacker]].", "attacker")
    if len(listed) > MOST_ATTACKERS:
        whole.refuse(f"lists {len(listed)} attackers, at most {MOST_ATTACKERS} are read.", "attacker")
    found: list[Attacker] = []
    for number in range(len(listed)):
        section = whole.inner("attacker", number)
        values = _values(section, ATTACKER)
        choices = {it.name: values.pop(it.name) for it in DIMENSIONS if it.name in values}
        if any(_looks(values["name"]) == _looks(other.name) for other in found):
            section.refuse(f"is {values['name']!r} again; each attacker needs a name of its own.", "name")
        found.append(Attacker(choices=choices, **values))
    return tuple(found)


def _looks(name: str) -> str:
    """A name as readers tell it from others: spaces, case and the way letters are put together do not count."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _require_whole(model: ThreatModel, section: Section) -> None:
    """Refuse an attacker of whom a dimension is not said, here or for all, and one that stands for too many attacks."""
    for number, attacker in enumerate(model.attackers):
        part = section.inner("attacker", number)
        for it in DIMENSIONS:
            if model.choice(attacker, it.name) is None:
                also = "" if it.role == "attacker" else f", here or for all in [{it.role}]"
                options = ", ".join(option.name for option in it.options)
                part.refuse(f"({attacker.name}) lacks `{it.name}`{also}; it is one of {options}.")
        count = 1
        for choice in model.profile(attacker).values():
            count *= len(choice.options)
        if count > MOST_ATTACKS:
            part.refuse(f"({attacker.name}) stands for {count} attacks, at most {MOST_ATTACKS} are read; split it.")


def _value(section: Section, key: Key) -> Any:
    return READERS[key.kind](section, key.name)


def _name(section: Section, key: str) -> str:
    text = _text(section, key, MOST_NAME)
    if not text.strip():
        section.refuse("is empty; give a short text.", key)
    odd = [letter for letter in text if letter in "<>" or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")]
    if odd:
        section.refuse(f"is a name in plain text, without {odd[0]!r}; got {text[:40]!r}.", key)
    return text


def _text(section: Section, key: str, most: int = MOST_TEXT) -> str:
    text = section.given[key]
    if not isinstance(text, str):
        section.refuse(f"is a text, got {text!r:.60}.", key)
    if len(text) > most:
        section.refuse(f"has {len(text)} letters, at most {most} are read.", key)
    return str(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(section: Section, key: str) -> float:
    number = section.given[key]
    if not _is_number(number) or not 0 < number < 1e300:
        section.refuse(f"is a number above 0, got {number!r:.60}.", key)
    return float(number)


def _share(section: Section, key: str) -> float:
    number = section.given[key]
    hint = f"; {number:g} points are {number / 100:g}" if _is_number(number) and 1 < number <= 100 else ""
    if not _is_number(number) or not 0 < number <= 1:
        section.refuse(f"is a number above 0 and at most 1, got {number!r:.60}{hint}.", key)
    return float(number)


def whole_number(section: Section, key: str) -> int:
    """A number of something, at least 1."""
    number = section.given[key]
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MOST_COUNTED.get(key, MOST):
        section.refuse(f"is a whole number from 1 to {MOST_COUNTED.get(key, MOST):,}, got {number!r:.60}.", key)
    return int(number)


def _names(section: Section, key: str) -> tuple[str, ...]:
    held = section.given[key]
    names = [held] if isinstance(held, str) else held
    if not isinstance(names, list) or not names or not all(isinstance(it, str) and it for it in names):
        section.refuse(f"is a list of columns, got {held!r:.60}.", key)
    if len(set(names)) < len(names) or len(names) > MOST_NAMES:
        section.refuse(f"names a column twice, or more than {MOST_NAMES}.", key)
    return tuple(names)


def _numbers(section: Section, key: str) -> dict[str, float]:
    held = section.given[key]
    if not isinstance(held, Mapping) or not held:
        section.refuse(f"has a number for each column, as in {{ age = 5 }}; got {held!r:.60}.", key)
    part = section.inner(key)
    return {name: _number(part, name) for name in held}


def _within(section: Section, key: str) -> float | dict[str, float]:
    return _numbers(section, key) if isinstance(section.given[key], Mapping) else _number(section, key)


def _prior(section: Section, key: str) -> str | dict[str, float]:
    held = section.given[key]
    if not isinstance(held, Mapping):
        return _text(section, key, MOST_NAME)
    part = section.inner(key)
    for name, share in held.items():
        if not _is_number(share) or not 0 <= share <= 1:
            part.refuse(f"is a probability, got {share!r:.60}.", name)
    total = sum(held.values())
    if not abs(total - 1) <= 1e-9:
        section.refuse(f"sums to {total:.10g}, not 1.", key)
    return {name: float(share) for name, share in held.items()}


def _knows(section: Section, key: str) -> str | tuple[str, ...]:
    return str(section.given[key]) if section.given[key] in ("none", "all") else _names(section, key)


def _level(section: Section, key: str) -> str:
    level = section.given[key]
    if level not in LEVELS:
        section.refuse(f"is {', '.join(LEVELS[:-1])} or {LEVELS[-1]}, got {level!r:.60}.", key)
    return str(level)


def _record(section: Section, key: str) -> Any:
    record = section.given[key]
    if not (isinstance(record, str) or _is_number(record)):
        section.refuse(f"is a record by its label, a text or a number, got {record!r:.60}.", key)
    return record


def _choice(section: Section, key: str) -> Choice:
    held, text = section.given[key], ""
    if isinstance(held, Mapping):
        part = section.inner(key)
        part.check(("option",), ("text",))
        text = _text(part, "text") if "text" in held else ""
        held = held["option"]
    known, listed = NAMED[key].options, held if isinstance(held, list) else [held]
    for option in listed:
        if option not in known:
            section.refuse(f"is one of {', '.join(it.name for it in known)}; got {option!r:.60}.", key)
    names = tuple(known[option].name for option in listed)
    if not names or len(set(names)) < len(names):
        section.refuse("lists no option, or one twice.", key)
    return Choice(names, text)


READERS: dict[str, Callable[[Section, str], Any]] = {
    "name": _name,
    "text": _text,
    "number": _number,
    "share": _share,
    "count": whole_number,
    "names": _names,
    "choice": _choice,
    "level": _level,
    "file": partial(_text, most=MOST_NAME),
    "prior": _prior,
    "knows": _knows,
    "within": _within,
    "numbers": _numbers,
    "record": _record,
}
