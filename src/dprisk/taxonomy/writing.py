"""Threat models as text: TOML and JSON that read back as the same model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dprisk.errors import InputFileError, fail
from dprisk.taxonomy.model import ThreatModel

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(model: ThreatModel) -> str:
    """The model as a TOML file."""
    told = model.to_dict()
    lines = [f"{_key(name)} = {toml_value(value)}" for name, value in told.items() if not _is_section(value)]
    for name, value in told.items():
        for part in value if _is_list_of_sections(value) else [value] if isinstance(value, Mapping) else []:
            lines += ["", f"[[{_key(name)}]]" if isinstance(value, list) else f"[{_key(name)}]"]
            lines += [f"{_key(key)} = {toml_value(held)}" for key, held in part.items()]
    return "\n".join(lines) + "\n"


def to_json(model: ThreatModel) -> str:
    """The model as a JSON file."""
    return json.dumps(model.to_dict(), indent=2, ensure_ascii=False) + "\n"


def write_threat_model(model: ThreatModel, path: str | Path) -> Path:
    """Write a file that reads back as the same model; its name ends in .toml or .json."""
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        fail(f"{path} must end in .toml or .json.", InputFileError)
    path.write_text(to_toml(model) if path.suffix == ".toml" else to_json(model), encoding="utf-8")
    return path


def _is_list_of_sections(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, Mapping) for part in value)


def _is_section(value: Any) -> bool:
    return isinstance(value, Mapping) or _is_list_of_sections(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {toml_value(held)}" for name, held in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _string(value) if isinstance(value, str) else repr(value)


def _string(text: str) -> str:
    """A basic string; JSON escapes all that TOML wants escaped, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
