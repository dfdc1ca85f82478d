"""The part of a report about one attacker: what it knows and wants, what it gains, who is at risk, what would help."""

from __future__ import annotations

from dprisk.report import words
from dprisk.report.blocks import Block, Bullets, Figure, Heading, Paragraph, Table
from dprisk.report.drawings import NARROW, WIDE, Line, curves
from dprisk.report.sections import anchor, chosen
from dprisk.rounding import significant_up, written_out
from dprisk.taxonomy import RULES, Answered, Faced, Kept

SEES = {"access": "sees", "population_knowledge": "knows of the population", "dataset_knowledge": "knows of the data"}
MORE_IS_SEEN = (
    "This attacker sees or steers what is computed on the way. The numbers hold for it only if the promise covers that "
    "too, as it does for DP-SGD that is accounted step by step, and for people who randomise their own answer."
)
ROWS = 6  # of the table beside a curve, about


def attacker_part(faced: Faced) -> list[Block]:
    """All that is said of one attacker."""
    attacker = faced.attacker
    blocks: list[Block] = [Heading(2, attacker.name, anchor(faced))]
    if attacker.about:
        blocks.append(Paragraph(attacker.about, "lead"))
    blocks.append(_knows_and_wants(faced))
    for part in (_gains, _bounds, _most_at_risk, _curve, _noise, _not_covered, _rules):
        blocks += part(faced)
    return blocks


def _knows_and_wants(faced: Faced) -> Table:
    attacker, goal = faced.attacker, faced.model.profile(faced.attacker)["goal"].options
    knows = attacker.knows or ("all" if goal == ("membership",) else "none")
    known = ", ".join(knows) if isinstance(knows, tuple) else {"none": "nothing", "all": "all of it"}[knows]
    rest = "all of it" if knows == "none" else "the rest of it"
    wants = ", ".join(attacker.wants) or ("whether it took part" if goal == ("membership",) else rest)
    rows = [("knows of the target's record", known), ("wants", wants)]
    if attacker.within is not None:
        near = {"": attacker.within} if isinstance(attacker.within, float) else attacker.within
        rows.append(("is right within", ", ".join(f"{name} {value:g}".strip() for name, value in near.items())))
    rows += [(title, chosen(faced, name)) for name, title in SEES.items()]
    if attacker.known_columns and not faced.model.profile(attacker)["dataset_knowledge"].text:
        rows[-1] = (rows[-1][0], f"{rows[-1][1]}: of the target {known}, of others no more than the file says")
    if attacker.tolerance is not None:
        rows.append(("may gain", f"{words.tolerated(attacker.tolerance)}, an advantage of {attacker.tolerance:g}"))
    if attacker.impact is not None:
        rows.append(("impact if it succeeds", attacker.impact))
    return Table("What it knows, wants and sees", ("what", "this attacker"), tuple(rows))


def _gains(faced: Faced) -> list[Block]:
    """A sentence for each question, and the numbers."""
    blocks: list[Block] = [Heading(3, "What it gains")] if faced.covered else []
    if any("intermediate-results" in it.question.rules for it in faced.covered):
        blocks.append(Paragraph(MORE_IS_SEEN, "note"))
    for it in faced.covered:
        blocks.append(Paragraph(words.sentence(faced, it), label=words.about_whom(faced, it)))
        if it.question.at_most and it.risk is not None and it.risk.exact:
            blocks.append(
                Paragraph("This attacker knows or sees less than that one, and gains at most as much.", "note")
            )
    rows = [(words.about_whom(faced, it), *words.numbers(it), words.how(it)) for it in faced.covered]
    head = ("target", "baseline", "success", "advantage", "how found")
    return [*blocks, *([Table(f"{faced.attacker.name}: the numbers", head, tuple(rows), (1, 2, 3))] if rows else [])]


def _bounds(faced: Faced) -> list[Block]:
    """Exact value, bounds for this prior and universal, and the bound on all people, side by side."""
    rows: list[tuple[str, ...]] = []
    for it in faced.covered:
        if it.question.kind == "risk":
            rows += [(words.about_whom(faced, it), *row) for row in words.exact_or_bounds(it)]
        elif it.population is not None:
            told = "vacuous: it excludes nothing" if it.population.is_vacuous else "on success, not on the advantage"
            share = words.shown(it, "success")
            rows.append((words.about_whom(faced, it), f"Population bound, {told}", share, RULES["population"].source))
    head = ("target", "how", "at most", "who proved it")
    return [Table("Exact values and bounds side by side", head, tuple(rows), (2,))] if rows else []


def _most_at_risk(faced: Faced) -> list[Block]:
    """The records that are most exposed, by name, for the first question that names some; a target has its numbers."""
    for it in faced.covered:
        if it.exposed and faced.attacker.target is None:
            rows = []
            for one in it.exposed:
                told = {name: value for name, value, _ in one.rows}
                after = told.get("largest posterior", "")
                rows.append((words.record(faced, it, one.record), told["prior"], told["advantage"], after))
            caption = "What an attacker gains who looks for this record and no other"
            if it.risk is not None and not it.risk.exact:
                caption += "; by a bound, which is largest for the rarest"
            head = ("record", "how common", "advantage", "how sure after a report")
            return [Heading(3, "Who is most at risk"), Table(caption, head, tuple(rows), (1, 2, 3))]
    return []


def _curve(faced: Faced) -> list[Block]:
    drawn = [it for it in faced.covered if len(it.curve) > 1]
    if not drawn:
        return []
    now, tolerance = faced.setting.now, faced.attacker.tolerance
    name = faced.setting.template.parameter.name.replace("_", " ")
    lines = [
        Line(words.about_whom(faced, it), it.curve, it.kept.value if isinstance(it.kept, Kept) else None)
        for it in drawn
    ]
    key = tuple(line.label for line in lines)
    first, last = lines[0].points[0], lines[0].points[-1]
    alt = (
        f"{lines[0].label}: from {1000 * first[1]:.0f} of 1000 at {name} {number(first[0])} to "
        f"{1000 * last[1]:.0f} of 1000 at {name} {number(last[0])}. The tables say the same of every line."
    )
    wide, narrow = (curves(lines, name, now, tolerance, width) for width in (WIDE, NARROW))
    caption = f"What taking part adds at most, of 1000 people, by {name}."
    table = _points(lines, name, now)
    return [Heading(3, f"How the risk moves with {name}"), Figure(wide, narrow, caption, alt, table, key)]


def _points(lines: list[Line], name: str, now: float | None) -> Table:
    """Some points of all curves: the noise as it is, and the noise that keeps a tolerance, among them."""
    places = sorted({x for line in lines for x, _ in line.points})
    marked = {now, *(line.kept for line in lines)}
    step = max(1, len(places) // ROWS)
    chosen_places = [x for place, x in enumerate(places) if place % step == 0 or x in marked]
    held = [dict(line.points) for line in lines]
    rows = [
        (number(x), *(significant_up(points[x], 4) if x in points else "" for points in held)) for x in chosen_places
    ]
    head = (name, *(line.label for line in lines))
    return Table("The same as a table: the advantage, at most", head, tuple(rows), tuple(range(1, len(head))))


def _noise(faced: Faced) -> list[Block]:
    """Whether the tolerance is kept, which noise would keep it, and what that costs."""
    if faced.attacker.tolerance is None or faced.worst is None:
        return []
    kept = words.keeps(faced, faced.worst)
    blocks: list[Block] = [Heading(3, "What would keep the tolerance")]
    good = kept and not words.most_exposed(faced, faced.worst)
    blocks.append(Paragraph(words.verdict(faced, faced.worst), "good" if good else "bad"))
    found = [it for it in faced.covered if it.kept is not None]
    blocks.append(Bullets(tuple(f"{words.about_whom(faced, it)}: {words.needed(it)}." for it in found)))
    rows = []
    for it in found:
        for name, now, then in it.kept.cost if isinstance(it.kept, Kept) else ():
            times = f"{then / now:.3g}" if now > 0 else ""
            rows.append((words.about_whom(faced, it), name, number(now), number(then), times))
    head = ("target", "accuracy, smaller is better", "now", "then", "times as much")
    return [*blocks, *([Table("What that costs in accuracy", head, tuple(rows), (2, 3, 4))] if rows else [])]


def _not_covered(faced: Faced) -> list[Block]:
    if not faced.not_covered:
        return []
    return [Heading(3, "Not covered"), Bullets(tuple(_why(it) for it in faced.not_covered))]


def _why(it: Answered) -> str:
    rule = RULES[it.question.rules[-1]]
    when = rule.when if rule.then.startswith("not covered") else "A bound that was asked for does not apply"
    return f"{when[0].upper()}{when[1:]}: {it.reason}."


def _rules(faced: Faced) -> list[Block]:
    used = dict.fromkeys(name for it in faced.answers for name in it.question.rules)
    return [Paragraph(f"By these rules, which are spelled out at the end: {', '.join(used)}.", "note")]


def number(value: float) -> str:
    """Four digits."""
    return written_out(f"{value:.4g}")
