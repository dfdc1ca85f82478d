"""The result of an audit, read from what `dprisk audit --json` wrote, beside what is proved of the release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprisk.documents import Section, read_document
from dprisk.errors import DpriskError
from dprisk.report.blocks import Block, Figure, Heading, Paragraph, Table
from dprisk.report.drawings import NARROW, WIDE, between
from dprisk.rounding import significant_down, significant_up, sure
from dprisk.taxonomy.setting import Setting

VERDICTS = ("violated", "consistent with the claim", "undecided")


@dataclass(frozen=True)
class AuditFile:
    """What an audit found: the claim, the epsilon that is certified from below, and its own sentence."""

    verdict: str
    certified: float
    claim: float
    delta: float
    alpha: float
    sentence: str


def read_audit(path: str | Path) -> AuditFile:
    """Read what `dprisk audit --json` wrote; whatever is missing gets one sentence."""
    section = read_document(path).section()
    numbers = {name: _number(section, name) for name in ("epsilon_certified", "claim", "delta", "alpha")}
    verdict, sentence = (section.given.get(name) for name in ("verdict", "sentence"))
    if verdict not in VERDICTS or not isinstance(sentence, str) or len(sentence) > 5000:
        section.refuse("is not what `dprisk audit --json` writes: it needs a verdict and a sentence.")
    return AuditFile(
        verdict, numbers["epsilon_certified"], numbers["claim"], numbers["delta"], numbers["alpha"], sentence
    )


def _number(section: Section, name: str) -> float:
    value: Any = section.given.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        section.refuse(f"is not what `dprisk audit --json` writes: it needs the number {name!r}.")
    return float(value)


def audit_blocks(audit: AuditFile, setting: Setting) -> list[Block]:
    """What is proved from above and certified from below, on one axis of epsilon, at the audit's delta."""
    proved = math.inf
    try:
        proved = setting.guarantee().to_replace_one().epsilon_at(audit.delta)
    except DpriskError:
        proved = math.inf
    low, high = significant_down(audit.certified, 4), "none" if math.isinf(proved) else significant_up(proved, 4)
    at = f" at delta {audit.delta:g}" if audit.delta else ""
    rows = (
        ("certified from below, by runs of the code", f">= {low}", sure(audit.alpha)),
        ("proved from above, for what the file describes", high if math.isinf(proved) else f"<= {high}", "by proof"),
        ("claimed in the audit", f"{audit.claim:g}", audit.verdict),
    )
    table = Table(
        f"The true epsilon{at} of the release, when one record is replaced", ("what", "epsilon", "how sure"), rows, (1,)
    )
    blocks: list[Block] = [
        Heading(2, "Does the code keep its promise?", "audit"),
        Paragraph(audit.sentence, "bad" if audit.verdict == "violated" else ""),
    ]
    if audit.certified > proved:
        blocks.append(
            Paragraph(
                f"The audit certifies an epsilon of at least {low}, above the {high} that is proved for the release in "
                "this file: the code that was audited is not that release, and the numbers in this report are not its.",
                "bad",
            )
        )
    else:
        blocks.append(
            Paragraph("An audit that finds nothing proves nothing: what is certified is a lower bound.", "note")
        )
    alt = f"An axis of epsilon: at least {low} is certified, at most {high} is proved, {audit.claim:g} was claimed."
    drawn = between(audit.certified, proved, audit.claim, WIDE), between(audit.certified, proved, audit.claim, NARROW)
    return [*blocks, Figure(*drawn, "Certified from below, proved from above.", alt, table)]
