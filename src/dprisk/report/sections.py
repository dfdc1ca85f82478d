"""The parts of a report, in the order in which people ask: in short, who, how likely and how bad, why, how sure."""

from __future__ import annotations

import math

from dprisk.report import words
from dprisk.report.audits import Standing
from dprisk.report.blocks import Block, Bullets, Card, Figure, Heading, Matrix, Paragraph, Table, Tone
from dprisk.report.drawings import NARROW, WIDE, Axis, Bar, bars, taxonomy
from dprisk.report.nist import likelihood, risk_level
from dprisk.risks import Risk
from dprisk.rounding import sure
from dprisk.tables import doubts
from dprisk.taxonomy import DIMENSIONS, RULES, Faced
from dprisk.taxonomy.keys import LEVELS

NUMBERS = (
    "The baseline is how often the attacker is right without what is released, the success how often with it, at best. "
    "The advantage is how much more often it is right about people who took part than about people who did not: what "
    "taking part adds. About one chosen person the attacker asks: is it this record, or not? There the baseline is how "
    "common the record is, the success is how sure a report can make the attacker, and the advantage is how much more "
    "often it says yes to people with the record than to people at random. Both matter: of a rare record the advantage "
    "can be large and the success small, since most of those who get a yes do not have it."
)
EXCEEDED = "may be exceeded"
NO_LEAVE = (
    "A low level is no leave to exceed the tolerance: a likelihood of up to 20 % is called low, whatever people "
    "tolerate, and the level falls with the impact. The file's own tolerance may be exceeded by"
)


def anchor(faced: Faced) -> str:
    """The place of an attacker in the page: its number, since names are people's own."""
    return f"attacker-{faced.model.attackers.index(faced.attacker) + 1}"


def summary(faced: list[Faced], audited: Standing | None = None) -> list[Block]:
    """What people read first: what an audit found, how many attackers may gain more than is tolerated, what would
    help, a card for each."""
    blocks: list[Block] = [Heading(2, "In short", "summary")]
    blocks += [] if audited is None else [audited.paragraph]
    if audited is not None and audited.is_in_doubt:
        blocks.append(Paragraph("What follows is about the release as the file describes it, not about that code."))
    blocks += _tolerated(faced)
    if names := words.untold(faced):
        blocks.append(Paragraph(f"Nothing here says whether the tolerance is kept: {', '.join(names)}.", "bad"))
    if any(it.not_covered for it in faced):
        told = "Some questions are not covered by any bound here; each attacker's part says which and why."
        blocks.append(Paragraph(told))
    return [*blocks, *map(_card, faced)]


def _tolerated(faced: list[Faced]) -> list[Block]:
    """Whether every tolerance is kept. Good news is none of what is not covered, and of who could not be compared."""
    asked = [it for it in faced if it.worst is not None and words.keeps(it, it.worst) is not None]
    if not asked:
        return []
    over = [it for it in asked if _is_kept(it) is False]
    compared = f"{len(asked)} attackers" if len(asked) == len(faced) else f"the {len(asked)} whose gain can be compared"
    alone = "The attacker" if len(faced) == 1 else asked[0].attacker.name
    if over:
        who = alone if len(asked) == 1 else f"{len(over)} of {compared}"
        return [Paragraph(f"{who} may gain more than is tolerated. {words.remedy(faced)}".strip(), "bad")]
    return [_kept(f"{alone} stays" if len(asked) == 1 else f"All of {compared} stay", asked)]


def _kept(who_stays: str, asked: list[Faced]) -> Paragraph:
    """That all tolerances are kept, and the first record that is more exposed than its attacker's tolerance."""
    covered = ", in what is covered" if any(it.not_covered for it in asked) else ""
    exposed = next(filter(None, (words.of_most_exposed(one, it) for one in asked for it in one.covered)), "")
    return Paragraph(f"{who_stays} within what is tolerated{covered}.{exposed}", "bad" if exposed else "good")


def _card(faced: Faced) -> Card:
    name, worst = faced.attacker.name, faced.worst
    if worst is None:
        told = tuple(words.sentence(faced, it) for it in faced.covered)
        rated = next((words.adds(it) for it in faced.covered if it.rate is not None), "")
        unit = "of those who took part are recognised" if rated else "; ".join(it.reason for it in faced.not_covered)
        verdict = "No advantage, and so no tolerance, belongs to this question."
        return Card(name, rated or "not covered", unit, "note", verdict, told, anchor(faced))
    kept = words.keeps(faced, worst)
    tone: Tone = "note" if kept is None else "good" if kept and not words.most_exposed(faced, worst) else "bad"
    lines = [words.short(faced, it) for it in faced.covered if it.advantage is not None]
    unit = words.gain_unit(faced, worst)
    return Card(name, words.adds(worst), unit, tone, words.verdict(faced, worst), tuple(lines), anchor(faced))


def _brackets(faced: list[Faced]) -> str:
    """What the brackets after an estimate are, where there is one."""
    found = [it.risk.estimate for one in faced for it in one.covered if isinstance(it.risk, Risk) and it.is_estimate]
    alphas = {it.alpha for it in found if it is not None}
    return "".join(f" Brackets tell where an estimate lies, at {sure(alpha)}." for alpha in sorted(alphas))


def side_by_side(faced: list[Faced]) -> list[Block]:
    """All attackers with their numbers, and a bar for each."""
    rows, drawn = [], []
    for one in faced:
        for it in one.covered:
            who, whom = one.attacker.name, words.about_whom(one, it)
            rows.append((f"{who}: {whom}", *words.numbers(it), words.how(it), words.needed(it)))
            if it.advantage is not None:
                drawn.append(Bar(who, whom, it.advantage, words.adds(it), not it.exact, one.attacker.tolerance))
    head = ("attacker and target", "baseline", "success", "advantage", "how found", "keeps the tolerance")
    table = Table("All attackers side by side", head, tuple(rows), (1, 2, 3))
    blocks: list[Block] = [Heading(2, "Attackers side by side", "side-by-side"), Paragraph(NUMBERS + _brackets(faced))]
    if not drawn:
        return [*blocks, table]
    alt = "Bars of what taking part adds: " + "; ".join(f"{bar.who}, {bar.label}: {bar.shown}" for bar in drawn) + "."
    caption = "What taking part adds, of 1000 people. Pale bars are upper bounds, dashed strokes tolerances."
    return [*blocks, Figure(bars(drawn, WIDE), bars(drawn, NARROW), caption, alt, table)]


def likelihood_and_impact(faced: list[Faced]) -> list[Block]:
    """A square of likelihood and impact, in the manner of NIST SP 800-30."""
    known = [it for it in faced if it.worst and not words.is_settled(it.worst) and it.attacker.impact]
    if not known:
        return []
    ladder = tuple(reversed(LEVELS))
    place = {it.attacker.name: (likelihood(words.largest(it)), str(it.attacker.impact)) for it in known}
    names = tuple(
        tuple(tuple(who for who, at in place.items() if at == (row, column)) for column in LEVELS) for row in ladder
    )
    levels = tuple(tuple(risk_level(row, column) for column in LEVELS) for row in ladder)
    rows = tuple(
        (who, *at, risk_level(*at), _tolerance(it)) for it, (who, at) in zip(known, place.items(), strict=True)
    )
    return [
        Heading(2, "How likely, how bad", "risk"),
        Paragraph(
            "The impact is what the authors of the threat model say. The likelihood is that an attack, once it is "
            "tried, succeeds because somebody took part: the largest advantage of the attacker in the table above, of "
            "an estimate the upper end. How likely an attack is tried is not in it, and of people drawn at random it "
            "is an average: who looks for one record may gain more. Levels and their combination are those of NIST "
            "SP 800-30, Tables G-4 and I-2."
        ),
        Matrix("Level of risk by likelihood and impact", ladder, LEVELS, levels, names),
        Table("Each attacker's level", ("attacker", "likelihood", "impact", "risk", "tolerance"), rows),
        *_no_leave(rows),
    ]


def _tolerance(faced: Faced) -> str:
    """Whether the tolerance is kept, in a word."""
    return {None: "none", True: "kept", False: EXCEEDED}[_is_kept(faced)]


def _no_leave(rows: tuple[tuple[str, ...], ...]) -> list[Block]:
    """Who may exceed the tolerance where the level of risk sounds harmless."""
    calm = [who for who, *_, level, tolerance in rows if tolerance == EXCEEDED and level in ("very low", "low")]
    return [Paragraph(f"{NO_LEAVE}: {', '.join(calm)}.", "bad")] if calm else []


def _is_kept(faced: Faced) -> bool | None:
    """Whether every question of an attacker keeps its tolerance; None where there is none to keep."""
    found = {words.keeps(faced, it) for it in faced.covered} - {None}
    return all(found) if found else None


def taxonomy_picture(faced: list[Faced]) -> list[Block]:
    """Every attacker as a line through the nine dimensions of the taxonomy."""
    axes = [Axis(it.title, tuple(_short(option.title) for option in it.options)) for it in DIMENSIONS]
    taken = [{name: choice.options for name, choice in one.model.profile(one.attacker).items()} for one in faced]
    order = {it.name: [option.name for option in it.options] for it in DIMENSIONS}
    ways = [[tuple(map(order[name].index, own[name])) for name in order] for own in taken]
    names = tuple(it.attacker.name for it in faced)
    rows = []
    for it in DIMENSIONS:
        for option in it.options:
            who = [name for name, own in zip(names, taken, strict=True) if option.name in own[it.name]]
            rows += [(it.title, option.title, ", ".join(who))] if who else []
    table = Table("The same as a table", ("dimension", "option", "attackers"), tuple(rows))
    alt = f"A line for each of {', '.join(names)} through the nine dimensions of the taxonomy; the table says the same."
    caption = "A line for each attacker, by Attaxonomy (Table 1, Figure 1). Options are listed from the strongest on."
    wide, narrow = taxonomy(axes, ways, False), taxonomy(axes, ways, True)
    return [
        Heading(2, "Who is considered", "taxonomy"),
        Figure(wide, narrow, caption, alt, table, names),
    ]


def _short(title: str) -> str:
    """A title of an option, as short as a picture needs it."""
    for long, short in _SHORT.items():
        title = title.replace(long, short)
    return title[0].upper() + title[1:]


_SHORT = {
    "Dataset chosen or constructed": "Chosen",
    "Dataset drawn from a distribution": "Drawn",
    "Target is chosen or constructed": "Chosen",
    "Target is drawn": "Drawn",
    "Adaptive access": "Adaptive",
    "Query access (API)": "Query",
    "Partial or full description of something near D": "Near D",
    "Partial or full description of D": "Describes D",
    "Random samples from D": "Samples",
    "Data schema": "Schema",
    "Chosen subsample of the dataset": "Chosen rows",
    "Random subsample of the dataset": "Random rows",
    "Membership inference": "Membership",
    "Attribute inference": "Attribute",
    "The same attacker without access to the mechanism": "No access",
    "Another attacker, in words": "Other",
    "Mean squared error to the target": "MSE",
    "True positive rate at a low false positive rate": "TPR at FPR",
    "Probability of an exact match": "Exact match",
    "Probability of a guess within a distance": "Within",
    "Right on participants minus right on others (RAD)": "RAD",
    "Another metric, in words": "Other",
}


def chosen(faced: Faced, dimension: str) -> str:
    """What an attacker's profile says of one dimension, in words."""
    choice = faced.model.profile(faced.attacker)[dimension]
    known = next(it for it in DIMENSIONS if it.name == dimension).options
    told = " or ".join(known[name].title for name in choice.options)
    return f"{told} ({choice.text})" if choice.text else told


def references(faced: list[Faced]) -> list[Block]:
    """The rules that were applied, in full, and the papers."""
    used = {name for one in faced for it in one.answers for name in it.question.rules}
    rows = tuple((it.name, it.when, it.then, it.source) for it in RULES if it.name in used)
    return [
        Heading(2, "Rules and references", "references"),
        Table("How a threat model becomes questions", ("rule", "when", "then", "source"), rows),
        Bullets(PAPERS),
    ]


PAPERS = (
    "Attaxonomy: R. Cummings, S. Hod, J. Sarathy, M. Swanberg, Attaxonomy: Unpacking Differential Privacy Guarantees "
    "Against Practical Adversaries.",
    "RAD: Understanding Disclosure Risk in Differential Privacy with Applications to Noise Calibration and Auditing.",
    "Balle et al.: B. Balle, G. Cherubin, J. Hayes, Reconstructing Training Data with Informed Adversaries, IEEE "
    "S&P 2022.",
    "Kaissis et al.: G. Kaissis, J. Hayes, A. Ziller, D. Rueckert, Bounding Data Reconstruction Attacks with the "
    "Hypothesis Testing Interpretation of Differential Privacy.",
    "Cohen and Nissim: A. Cohen, K. Nissim, Towards Formalizing the GDPR's Notion of Singling Out, PNAS 2020.",
    "Swanberg et al.: M. Swanberg and others, Beyond the Worst Case: Extending Differential Privacy Guarantees to "
    "Realistic Adversaries.",
    "NIST SP 800-30 Rev. 1: Joint Task Force, Guide for Conducting Risk Assessments, 2012.",
    "theory: the section of that number in the page `The words and the formulas` of dprisk's documentation.",
)


def limits(faced: list[Faced]) -> list[Block]:
    """What the numbers rest on, and what they do not say."""
    setting = faced[0].setting
    size = setting.records.prior.size
    items = [
        f"Released is: {setting.words}. The numbers hold if the code does just that; an audit can refute it, not prove "
        "it.",
        f"How likely each record is comes from: {setting.records.source}. If the population is another, so are the "
        "numbers.",
        f"There are {size:,} possible records; what is not among them is not considered."
        if math.isfinite(size)
        else "Records are any number of an interval; what is outside is not considered.",
        "Only what is released is considered: not storage, not transport, not people with access to the data.",
        "A bound is on every attacker of the kind described, however clever; it says nothing of other kinds.",
        "Other releases about the same people add to the risk, unless they are among the parts of this one.",
    ]
    items += [f"{doubt}." for doubt in doubts(setting.records.table or {})]
    if setting.planned is not None and "interval" in faced[0].model.release:
        items.append("Outputs are kept in an interval: the numbers are for the data in the file, others give others.")
    return [Heading(2, "Assumptions and limits", "limits"), Bullets(tuple(items))]
