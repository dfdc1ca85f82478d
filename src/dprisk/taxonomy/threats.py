"""What an attacker of a threat model believes, knows and wants, as a `Threat`."""

from __future__ import annotations

from collections.abc import Mapping

from dprisk.errors import DpriskError
from dprisk.mechanisms import Mechanism
from dprisk.taxonomy.model import Attacker, ThreatModel
from dprisk.taxonomy.setting import Records, Setting
from dprisk.threat import Attributes, Exact, Knowledge, Line, Threat
from dprisk.threat.success import Success


def facing(model: ThreatModel, setting: Setting, attacker: Attacker, goal: str) -> Threat:
    """The threat of an attacker with this goal; what does not fit the records is refused at its line."""
    if goal != "membership":
        _require_columns(model, setting, attacker)
    threat = _threat(model, setting, attacker, goal)
    if attacker.target is not None:
        try:
            threat.prior.find(attacker.target)
        except DpriskError as problem:
            model.refuse(attacker, "target", f"is not among the records: {problem}")
    return threat


def _threat(model: ThreatModel, setting: Setting, attacker: Attacker, goal: str) -> Threat:
    records, knows = setting.records, attacker.known_columns
    try:
        if goal == "membership":
            if setting.column is not None:  # who knows an answer of a survey asks whether it was given
                return records.survey(setting.column, "all").threat()
            return Threat(records.prior, "all")
        if setting.column is not None:
            within = attacker.within
            if isinstance(within, Mapping):
                within = within.get(setting.column)
            return records.survey(setting.column, knows).threat(within)
        if not isinstance(setting.subject, Mechanism) and attacker.wants and attacker.within is None:
            records = records.of_columns((*knows, *attacker.wants))
        known = Knowledge.columns(records.table or {}, knows) if knows else "none"
        return Threat(records.prior, known, _success(records, attacker, knows))
    except DpriskError as problem:
        model.refuse(attacker, "name", f"does not fit the records: {problem}")


def _success(records: Records, attacker: Attacker, knows: tuple[str, ...]) -> Success:
    rest = tuple(name for name in records.columns if name not in knows)
    wants = attacker.wants or rest
    within = attacker.within
    if not knows and set(wants) == set(rest) and within is None:
        return Exact()  # who knows something would be allowed to keep silent by this rule, and is not by the other
    if records.table is None or (len(records.columns) == 1 and not isinstance(within, Mapping)):
        assert not isinstance(within, Mapping)
        return Exact() if within is None else Line(within)
    near = within if isinstance(within, Mapping) else {} if within is None else dict.fromkeys(wants, within)
    return Attributes(records.table, wants, dict(near))


def _require_columns(model: ThreatModel, setting: Setting, attacker: Attacker) -> None:
    """Refuse columns that the records do not have, and such as the release says nothing of."""
    columns = setting.records.columns
    held = ", ".join(columns) or "none: the universe is a list of records, not a table"
    knows = attacker.known_columns
    near = tuple(attacker.within) if isinstance(attacker.within, Mapping) else ()
    for key, names in (("knows", knows), ("wants", attacker.wants), ("within", near)):
        for name in names:
            if name not in columns:
                model.refuse(attacker, key, f"names {name!r}, which is no column of the records ({held}).")
    if setting.column is not None:
        if setting.column in knows:
            model.refuse(attacker, "knows", f"names {setting.column}, which is what the release randomises.")
        if attacker.wants not in ((), (setting.column,)):
            model.refuse(attacker, "wants", f"is {setting.column}: the release tells of no other column.")
    if knows and set(knows) == set(columns):
        model.refuse(attacker, "knows", "names all columns, so that nothing is left to guess.")
