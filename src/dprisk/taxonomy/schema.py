"""The JSON schema of threat model files, made from the names that the reader takes."""

from __future__ import annotations

from typing import Any

from dprisk.catalogue import GUARANTEES, MECHANISMS, NOISES, QUERIES
from dprisk.registers import Register
from dprisk.taxonomy.dimensions import DIMENSIONS
from dprisk.taxonomy.keys import (
    LEVELS,
    MOST_ATTACKERS,
    MOST_NAME,
    MOST_NAMES,
    MOST_TEXT,
    PART_WORDS,
    SECTIONS,
    TOP,
    Key,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ABOVE_0: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0}
_BY_COLUMN: dict[str, Any] = {"type": "object", "minProperties": 1, "additionalProperties": _ABOVE_0}
_COLUMNS: dict[str, Any] = {
    "oneOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "minItems": 1,
            "maxItems": MOST_NAMES,
            "uniqueItems": True,
        },
    ]
}
KINDS: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "minLength": 1, "maxLength": MOST_NAME, "pattern": "^[^<>]*$"},
    "text": {"type": "string", "maxLength": MOST_TEXT},
    "number": _ABOVE_0,
    "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "count": {"type": "integer", "minimum": 1},
    "names": _COLUMNS,
    "level": {"enum": list(LEVELS)},
    "file": {"type": "string", "minLength": 1, "maxLength": MOST_NAME},
    "prior": {
        "oneOf": [
            {"type": "string", "minLength": 1, "maxLength": MOST_NAME},
            {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
            },
        ]
    },
    "knows": _COLUMNS,
    "within": {"oneOf": [_ABOVE_0, _BY_COLUMN]},
    "numbers": _BY_COLUMN,
    "record": {"type": ["string", "number"]},
}


def json_schema() -> dict[str, Any]:
    """What a threat model file may hold, for editors and other programs.

    Names are listed as they are registered, with titles and aliases; the reader is more generous with their spelling,
    and it alone finds contradictions.
    """
    parts = {name: _section(keys) for name, keys in SECTIONS.items() if name}
    attackers = {"type": "array", "items": parts.pop("attacker"), "minItems": 1, "maxItems": MOST_ATTACKERS}
    whole = _section(TOP)
    whole["properties"] |= {"release": _release()} | parts | {"attacker": attackers}
    whole["required"] = ["title", "release", "attacker"]
    return {"$schema": DRAFT, "title": "A threat model for dprisk"} | whole


def _section(keys: tuple[Key, ...]) -> dict[str, Any]:
    return _object({key.name: _key(key) for key in keys}, *(key.name for key in keys if key.needed))


def _object(properties: dict[str, Any], *needed: str) -> dict[str, Any]:
    """An object with these names and no others."""
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": list(needed)} if needed else {})


def _key(key: Key) -> dict[str, Any]:
    return {"description": key.meaning} | (_choice(key.name) if key.kind == "choice" else KINDS[key.kind])


def _choice(name: str) -> dict[str, Any]:
    """An option, several, or either with a text."""
    dimension = next(it for it in DIMENSIONS if it.name == name)
    one = {"enum": _spellings(dimension.options)}
    plain = {"oneOf": [one, {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}]}
    return {"oneOf": [*plain["oneOf"], _object({"option": plain, "text": KINDS["text"]}, "option")]}


def _spellings(register: Register[Any]) -> list[str]:
    """All that leads to an entry, names first."""
    rest = [text for it in register for text in (it.title, *it.aliases)]
    return list(dict.fromkeys([*(it.name for it in register), *rest]))


def _release() -> dict[str, Any]:
    """A mechanism or guarantee with its options, several of them, or a query with data and noise."""
    words = {key.name: _key(key) for key in PART_WORDS}
    named = []
    for register in (MECHANISMS, GUARANTEES):
        names = {"enum": _spellings(register)}
        options = {name: {"description": option.meaning} for name, option in register.options.items()}
        named.append(_object({register.kind: names} | options | words, register.kind))
    listed = {"type": "array", "items": {"oneOf": named}, "minItems": 1}
    many = _object({"parts": listed, "text": KINDS["text"]}, "parts")
    kinds = {
        register.kind: {
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"enum": _spellings(register)}},
        }
        for register in (QUERIES, NOISES)
    }
    ways = {"prior": {"type": "string"}, "interval": {"type": "array"}, "ends": {"type": "string"}}
    given = {"data": KINDS["file"], "universe": {"type": ["object", "string"]}} | kinds | ways
    query = _object(given, "data", "query", "universe", "noise")
    return {"oneOf": [*named, many, query]}
