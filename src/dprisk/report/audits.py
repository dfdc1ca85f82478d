"""The result of an audit, read from what `dprisk audit --json` wrote, beside what is proved of the release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from dprisk.documents import Section, read_document
from dprisk.errors import DpriskError
from dprisk.guarantees.base import Relation
from dprisk.report.blocks import Block, Figure, Heading, Paragraph, Table
from dprisk.report.drawings import NARROW, WIDE, between
from dprisk.report.words import cut
from dprisk.rounding import significant_down, significant_up, sure
from dprisk.taxonomy.setting import Setting

NUMBERS = ("epsilon_certified", "claim", "delta", "alpha")
CHANGES: dict[Relation, str] = {
    "replace-one": "one record is replaced",
    "add-remove": "one record is added or left out",
}
Verdict = Literal["violated", "consistent with the claim", "undecided"]
VERDICTS = get_args(Verdict)


@dataclass(frozen=True)
class AuditFile:
    """What an audit found: the claim, the epsilon that is certified from below, and its own sentence."""

    verdict: Verdict
    certified: float
    claim: float
    delta: float
    alpha: float
    sentence: str
    neighbours: Relation = "replace-one"
    code: str = ""


def read_audit(path: str | Path) -> AuditFile:
    """Read what `dprisk audit --json` wrote; whatever is missing gets one sentence."""
    section = read_document(path).section()
    numbers = {name: _number(section, name) for name in NUMBERS}
    verdict, sentence = (section.given.get(name) for name in ("verdict", "sentence"))
    if verdict not in VERDICTS or not isinstance(sentence, str) or len(sentence) > 5000:
        section.refuse("is not what `dprisk audit --json` writes: it needs a verdict and a sentence.")
    relation, target = section.given.get("neighbours", "replace-one"), section.given.get("target")
    code = target.get("name", "") if isinstance(target, dict) else ""
    if relation not in get_args(Relation) or not isinstance(code, str) or len(code) > 5000:
        section.refuse("is not what `dprisk audit --json` writes: its neighbours, or the name of its target, are not.")
    certified, claim, delta, alpha = (numbers[name] for name in NUMBERS)
    return AuditFile(verdict, certified, claim, delta, alpha, sentence, relation, code)


def _number(section: Section, name: str) -> float:
    value: Any = section.given.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        section.refuse(f"is not what `dprisk audit --json` writes: it needs the number {name!r}.")
    return float(value)


@dataclass(frozen=True)
class Standing:
    """What an audit means for the release in a file: a verdict on that, and a sentence for who reads no further."""

    verdict: Verdict
    told: str
    proved: float | None  # the epsilon of the release at the audit's delta; None if none is known

    @property
    def is_in_doubt(self) -> bool:
        """Whether good news of the release is none of the code that was audited."""
        return self.verdict != "consistent with the claim"

    @property
    def paragraph(self) -> Paragraph:
        """The sentence, in its tone."""
        return Paragraph(self.told, "bad" if self.is_in_doubt else "note")


def standing(audit: AuditFile, setting: Setting) -> Standing:
    """The verdict of an audit, held against what is proved of the release as well as against its own claim.

    Code that has a larger epsilon than the release is not that release, whatever was claimed; an audit of a weaker
    claim has not decided on that of the release.
    """
    proved = _proved(audit, setting)
    code = cut(audit.code) or "the code"
    low, high, claim = significant_down(audit.certified, 4), significant_up(proved, 4), f"{audit.claim:g}"
    verdict, known = audit.verdict, None if math.isinf(proved) else proved
    if audit.certified > proved:
        told = f"the epsilon of {code} is at least {low}, above the {high} of the release in this file"
        return Standing(
            "violated", f"An audit refutes the promise: {told}. The numbers here are not those of that code.", known
        )
    if verdict == "violated":
        told = f"the epsilon of {code} is at least {low}, and {claim} was claimed"
        told = f"An audit refutes a claim: {told}. Until that is repaired, the numbers here are not to be relied on."
        return Standing(verdict, told, known)
    if verdict == "undecided":
        told = f"An audit of {code} is undecided: nothing here says whether it keeps the promise of the release."
        return Standing(verdict, told, known)
    if _is_weaker(audit, proved):
        told = f"held {code} against epsilon {claim} only, which is weaker than the {high} of the release in this file"
        return Standing("undecided", f"An audit {told}: nothing here says whether it keeps that.", known)
    told = (
        f"An audit of {code} found nothing against epsilon {claim}, which proves nothing: at least {low} is certified. "
        "Whether that is the code of this release, an audit cannot tell."
    )
    return Standing(verdict, told, known)


def _is_weaker(audit: AuditFile, proved: float) -> bool:
    """Whether less was claimed in the audit than is proved of the release."""
    return audit.claim > proved * (1 + 1e-9)


def _proved(audit: AuditFile, setting: Setting) -> float:
    """The epsilon that the release has at the audit's delta, for its kind of neighbours; infinite if none is known."""
    try:
        promised = setting.guarantee()
        promised = promised.to_replace_one() if audit.neighbours == "replace-one" else promised
        return promised.epsilon_at(audit.delta) if promised.relation == audit.neighbours else math.inf
    except DpriskError:
        return math.inf


def _how_it_fits(audit: AuditFile, proved: float) -> Paragraph:
    """What follows for this report: the audit may be of other code, or of another claim."""
    low, high = significant_down(audit.certified, 4), significant_up(proved, 4)
    if audit.certified > proved:
        told = (
            f"The audit certifies an epsilon of at least {low}, above the {high} that is proved for the release in "
            "this file: the code that was audited is not that release, and the numbers in this report are not its."
        )
        return Paragraph(told, "bad")
    if _is_weaker(audit, proved):
        told = (
            f"The claim that was audited, epsilon {audit.claim:g}, is weaker than the {high} that is proved for the "
            "release in this file: code that keeps the one may break the other. Audit it again with that claim."
        )
        return Paragraph(told, "bad")
    return Paragraph("An audit that finds nothing proves nothing: what is certified is a lower bound.", "note")


def audit_blocks(audit: AuditFile, setting: Setting) -> list[Block]:
    """What is proved from above and certified from below, on one axis of epsilon, at the audit's delta."""
    proved = _proved(audit, setting)
    low, high = significant_down(audit.certified, 4), "none" if math.isinf(proved) else significant_up(proved, 4)
    at = f" at delta {audit.delta:g}" if audit.delta else ""
    rows = (
        ("certified from below, by runs of the code", f">= {low}", sure(audit.alpha)),
        ("proved from above, for what the file describes", high if math.isinf(proved) else f"<= {high}", "by proof"),
        ("claimed in the audit", f"{audit.claim:g}", audit.verdict),
    )
    caption = f"The true epsilon{at} of the release, when {CHANGES[audit.neighbours]}"
    table = Table(caption, ("what", "epsilon", "how sure"), rows, (1,))
    blocks: list[Block] = [
        Heading(2, "Does the code keep its promise?", "audit"),
        Paragraph(
            f"Audited was {audit.code or 'code without a name'}. This page cannot tell whether that is this release."
        ),
        Paragraph(audit.sentence, "bad" if audit.verdict == "violated" else ""),
        _how_it_fits(audit, proved),
    ]
    alt = f"An axis of epsilon: at least {low} is certified, at most {high} is proved, {audit.claim:g} was claimed."
    drawn = between(audit.certified, proved, audit.claim, WIDE), between(audit.certified, proved, audit.claim, NARROW)
    return [*blocks, Figure(*drawn, "Certified from below, proved from above.", alt, table)]
