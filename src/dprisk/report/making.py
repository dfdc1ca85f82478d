"""The report on a threat model: the same content as a page, as Markdown and as JSON."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dprisk import __version__
from dprisk.answers import Answer, Row
from dprisk.errors import InputFileError, fail
from dprisk.report import sections, words
from dprisk.report.attackers import attacker_part
from dprisk.report.audits import AuditFile, Standing, audit_blocks, standing
from dprisk.report.blocks import Block, Bullets, Code, Heading, Paragraph, to_data, without_comfort
from dprisk.report.html import to_html
from dprisk.report.markdown import to_markdown
from dprisk.taxonomy import Answered, Faced, Kept, ThreatModel, answer

PACKAGES = ("numpy", "scipy", "dp-accounting")
FORMS = (".html", ".md", ".json")
MOST_SHOWN = 200_000  # letters of the file that the page repeats; of a longer one its checksum is enough


@dataclass(frozen=True, eq=False)
class Report(Answer):
    """Every attacker of a threat model against its release, for people to read, question and keep."""

    model: ThreatModel
    faced: list[Faced]
    audit: AuditFile | None = None
    inputs: tuple[tuple[str, str], ...] = field(default=())  # the files it rests on, with their checksums

    @property
    def about(self) -> str:
        return self.model.title

    @cached_property
    def audited(self) -> Standing | None:
        """What the audit means for this release."""
        return None if self.audit is None else standing(self.audit, self.faced[0].setting)

    @property
    def columns(self) -> tuple[str, ...]:
        return "attacker", "target", "baseline", "success", "advantage", "keeps the tolerance"

    @property
    def right_aligned(self) -> tuple[int, ...]:
        return 2, 3, 4

    @property
    def rows(self) -> list[Row]:
        """A line for each question that is covered."""
        return [
            (one.attacker.name, words.about_whom(one, it), *words.numbers(it), words.needed(it))
            for one in self.faced
            for it in one.covered
        ]

    @property
    def numbers(self) -> dict[str, Any]:
        return {"attackers": [_numbers(one) for one in self.faced]}

    def sentence(self) -> str:
        """What an audit found, and what each attacker gains, one after the other."""
        return " ".join(self.lines())

    def lines(self) -> list[str]:
        """What an audit found, and what each attacker gains, a line for each."""
        told = [] if self.audited is None else [self.audited.told]
        for one in self.faced:
            worst = one.worst
            if worst is None:
                parts = [words.sentence(one, it) for it in one.covered] or ["not covered."]
                told.append(f"{one.attacker.name}: {' '.join(parts)}")
            else:
                told.append(f"{one.attacker.name} {words.gain(one, worst)}. {words.verdict(one, worst)}")
        return told

    @property
    def blocks(self) -> list[Block]:
        """The report, part by part."""
        model, faced = self.model, self.faced
        found: list[Block] = [Paragraph("What does this release risk, and for whom?", "note"), Heading(1, model.title)]
        found += [Paragraph(model.about, "lead")] if model.about else []
        found += [Paragraph(f"Released: {faced[0].setting.words}.")]
        found += sections.summary(faced, self.audited)
        found += sections.side_by_side(faced)
        found += sections.likelihood_and_impact(faced)
        found += sections.taxonomy_picture(faced)
        for one in faced:
            found += attacker_part(one)
        found += audit_blocks(self.audit, faced[0].setting) if self.audit else []
        found += [*sections.limits(faced), *sections.references(faced), *self._to_repeat()]
        return list(map(without_comfort, found)) if self.audited and self.audited.is_in_doubt else found

    def _to_repeat(self) -> list[Block]:
        versions = [f"{name} {version(name)}" for name in PACKAGES]
        lines = [f"dprisk {__version__}, Python {platform.python_version()}, {', '.join(versions)}"]
        lines += [f"{name}: SHA-256 {checksum}" for name, checksum in self.inputs]
        text = "" if self.model.section is None else self.model.section.document.text
        source = "" if self.model.section is None else self.model.section.document.path.name
        return [
            Heading(2, "To repeat it", "repeat"),
            Bullets(tuple(lines)),
            *([Code(text, f"The threat model, {source}")] if 0 < len(text) <= MOST_SHOWN else []),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, and every part of the report."""
        return super().to_dict() | {
            "title": self.model.title,
            "threat_model": self.model.to_dict(),
            "audit": self._audit(),
            "inputs": dict(self.inputs),
            "version": __version__,
            "content": [to_data(block) for block in self.blocks],
        }

    def _audit(self) -> dict[str, Any] | None:
        """What the audit says of its own claim, and of this release."""
        if self.audit is None or self.audited is None:
            return None
        it = self.audited
        here = {"verdict": it.verdict, "sentence": it.told, "epsilon_proved": it.proved}
        return dict(vars(self.audit)) | {"of_this_release": here}

    def to_html(self) -> str:
        """One page that needs nothing else."""
        return to_html(self.model.title, self.blocks, __version__)

    def to_markdown(self) -> str:
        """The same, pictures as tables."""
        return to_markdown(self.blocks)

    def to_json(self) -> str:
        """The same, for programs."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write it as what the name ends in: .html, .md or .json."""
        path = Path(path)
        if path.suffix not in FORMS:
            fail(f"{path} must end in {', '.join(FORMS[:-1])} or {FORMS[-1]}.", InputFileError)
        made = {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json}[path.suffix]()
        try:
            path.write_text(made, encoding="utf-8")
        except OSError as problem:
            raise InputFileError(f"{path} cannot be written: {problem.strerror}.") from problem
        return path


def make_report(model: ThreatModel, audit: AuditFile | None = None) -> Report:
    """Answer every question of a threat model that was read from a file, and put it together."""
    faced = answer(model)
    files = [] if model.section is None else [model.section.document.path, *model.section.document.used]
    inputs = tuple((path.name, _checksum(path)) for path in dict.fromkeys(files))
    return Report(model, faced, audit, inputs)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _numbers(faced: Faced) -> dict[str, Any]:
    return {
        "name": faced.attacker.name,
        "answers": [_answer(faced, it) for it in faced.covered],
        "not_covered": [it.reason for it in faced.not_covered],
    }


def _answer(faced: Faced, it: Answered) -> dict[str, Any]:
    asked = it.question
    told: dict[str, Any] = {"kind": asked.kind, "about": words.about_whom(faced, it), "rules": list(asked.rules)}
    told |= {"records": asked.records, "exact": it.exact, "advantage": it.advantage}
    if it.risk is not None:
        told |= {"baseline": it.risk.baseline, "success": it.risk.success}
    if it.rate is not None:
        told |= {"tpr": it.rate, "fpr": faced.attacker.fpr}
    if it.population is not None:
        told["population"] = it.population.to_dict()
    if it.many is not None:
        names = ("at_most", "people", "without_release", "alpha")
        told["many"] = {name: it.many.numbers[name] for name in names}
    if it.exposed:
        told["exposed"] = [
            {"record": words.record(faced, it, one.record), "advantage": one.advantage, "prior": one.prior}
            for one in it.exposed
        ]
    if words.is_settled(it):
        told["nothing_to_find_out"] = True
    elif isinstance(it.kept, Kept):
        told["keeps_tolerance"] = {
            "parameter": it.kept.parameter.name,
            "value": it.kept.value,
            "tolerance": it.kept.tolerance,
        }
    return told | {"sentence": words.sentence(faced, it)}
