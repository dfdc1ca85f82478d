"""Answers in words that count people; every sentence is true when read alone."""

from __future__ import annotations

import math
from typing import Any

from dprisk.population import AtMost
from dprisk.risks import RecordRisk, Risk, WorstCase
from dprisk.risks.sentences import NEARLY_ONE, SETTLED
from dprisk.rounding import percent_up, plain, round_number_of_people, significant_down, significant_up, so_many, sure
from dprisk.taxonomy import Answered, Faced, Kept
from dprisk.taxonomy.findings import gained_with
from dprisk.threat.prior import written

MOST_LETTERS = 300  # of a record
OF_ANYBODY = {"baseline": "baseline", "success": "success (ReRo)", "advantage": "advantage (RAD)"}  # rows of answers
OF_A_RECORD = {"baseline": "prior", "success": "largest posterior", "advantage": "advantage"}
WAY_OUT = ' With target_source = "chosen" in the file the tolerance is held against that.'
MEMBERSHIP = "known"  # of who asks whether a record took part: it guesses nothing


def about_whom(faced: Faced, it: Answered) -> str:
    """Whom a question is about, as a row of a table begins."""
    asked = it.question
    told = {
        "risk": "Anybody, drawn at random",
        "rate": "Recognising who took part",
        "nothing": "Anybody",
        "many": f"How many of {faced.model.people or 1:,} people",
        "population": f"One guess for all of {faced.model.people or 1:,} people",
        "record": "The most exposed person",
    }.get(asked.kind, "")
    if asked.kind == "record" and faced.attacker.target is not None:
        told = f"One chosen person: {record(faced, it, it.exposed[0].record)}" if it.exposed else "One chosen person"
    if len({other.question.records for other in faced.covered}) > 1:
        several = {"group": f"a group of {asked.records} records", "event": "one event"}
        told += f"; {several.get(asked.unit, 'a person with ' + so_many(asked.records, 'record', 'records'))}"
    return told


def lowered(text: str) -> str:
    """Text as it stands within a sentence."""
    return text[:1].lower() + text[1:]


def record(faced: Faced, it: Answered, label: Any) -> str:
    """A record by its columns, where it has any."""
    if not isinstance(label, tuple):
        return cut(written(label)) if it.threat is None or it.threat.prior.labels is not None else f"record {label}"
    attacker = faced.attacker
    column = () if faced.setting.column is None else (faced.setting.column,)
    wanted = (*attacker.known_columns, *(attacker.wants or column))
    for names in (wanted, faced.setting.records.columns):
        if len(names) == len(label):
            bands = {} if faced.model.universe is None else faced.model.universe.bands
            parts = (f"{name} {_banded(value, bands.get(name))}" for name, value in zip(names, label, strict=True))
            return cut(", ".join(parts))
    return cut(written(label))


def _banded(value: Any, width: float | None) -> str:
    """A value, or the band that begins with it."""
    if width is None or not isinstance(value, int | float):
        return str(value)
    last = value + width - 1 if isinstance(value, int) and float(width).is_integer() else value + width
    return f"{value} to {last:g}"


def cut(text: str) -> str:
    """Text of bounded length: labels are other people's."""
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def adds(it: Answered) -> str:
    """What taking part adds, of so many people: at most where it is a bound, about where it is measured."""
    share = it.advantage if it.rate is None else it.rate
    if share is None:
        return ""
    people = round_number_of_people(share)
    if it.exact:
        return f"{count(round(share * people))} of {count(people)}"
    if it.is_estimate and not it.question.at_most:
        return f"about {count(round(share * people))} of {count(people)}"
    most = upper(it) if it.is_estimate else share
    return f"at most {count(math.ceil(most * people - 1e-9))} of {count(people)}"


def gain(faced: Faced, it: Answered) -> str:
    """What an attacker gains, as a sentence goes on after its name."""
    if it.question.kind == "nothing":
        return "gains nothing"
    more, than = adds(it).replace(" of ", " more of ", 1), "who took part than of those who did not"
    whom = lowered(about_whom(faced, it))
    if it.question.kind == "record":
        return f"says yes to {more} people with the record it looks for than of people at random ({whom})"
    does = "recognises" if it.question.goal == "membership" else "is right about"
    if it.is_estimate:
        does = "recognises, by an estimate," if it.question.goal == "membership" else "is, by an estimate, right about"
        more = more.replace("about ", "", 1)
    return f"{does} {more} people {than} ({whom})"


def gain_unit(faced: Faced, it: Answered) -> str:
    """What a number of people that stands alone is the number of."""
    whom = lowered(about_whom(faced, it))
    if it.question.kind == "record":
        return f"more people with the record it looks for get a yes than people at random ({whom})"
    done = "recognised" if it.question.goal == "membership" else "found out"
    return f"more of those who took part are {done} than of those who did not ({whom})"


def tolerated(share: float) -> str:
    """A tolerance, of so many people."""
    people = round_number_of_people(share)
    return f"{share * people:g} of {count(people)}"


def count(people: int) -> str:
    """A number of people, in groups of three digits where there are many."""
    return f"{people:,}" if people >= 10_000 else str(people)


def numbers(it: Answered) -> tuple[str, ...]:
    """Baseline, success and advantage, as `shown`."""
    return tuple(shown(it, which) for which in OF_ANYBODY)


def shown(it: Answered, which: str) -> str:
    """A number of an assessment as `assess` prints it: baseline, success or advantage; empty where there is none."""
    kind, is_record = it.question.kind, it.question.kind == "record"
    if kind == "nothing":
        return "0" if which == "advantage" else ""
    if kind in ("rate", "population", "many"):
        return _chances(it).get(which, "")
    if it.question.goal == "membership" and which != "advantage" and not is_record:
        return MEMBERSHIP
    rows = {} if it.found is None else {name: value for name, value, _ in it.found.rows}
    return rows.get((OF_A_RECORD if is_record else OF_ANYBODY)[which], "")


def _chances(it: Answered) -> dict[str, str]:
    """What is said of all people, or of those who are taken for participants: chances, or how many of them."""
    if it.many is not None:
        counted = {"baseline": it.many.without_release, "success": it.many.at_most}
        return {which: f"<= {most:,}" for which, most in counted.items()}
    if it.population is None:
        return {"success": f"<= {significant_up(it.rate or 0.0, 4)}"}
    return {"baseline": plain(it.population.baseline), "success": f"<= {significant_up(it.population.some, 4)}"}


def upper(it: Answered) -> float:
    """The advantage that a tolerance is held against: the upper end, where it is measured."""
    interval = getattr(it.found, "advantage_interval", None) if it.is_estimate else None
    return float(interval[1] if interval is not None else it.advantage or 0.0)


def largest(faced: Faced) -> float:
    """The largest advantage of an attacker over all its questions, each by its upper end."""
    return max((upper(it) for it in faced.covered if it.advantage is not None), default=0.0)


def _lower(it: Answered) -> float:
    """What the attacker who is assessed gains at least: its own number if that is exact; 0 of a bound."""
    if it.found is None or isinstance(it.found, WorstCase) or not (it.found.exact or it.is_estimate):
        return 0.0
    return float(getattr(it.found, "advantage_interval", (it.found.advantage,))[0])


def is_settled(it: Answered) -> bool:
    """Whether the attacker needs no release, so that its advantage of 0 is no good news."""
    return it.threat is not None and it.threat.is_settled and it.advantage is not None and upper(it) <= 1e-9


def keeps(faced: Faced, it: Answered) -> bool | None:
    """Whether the tolerance is kept; None where none is given, no advantage is known, or nothing is left to gain."""
    if faced.attacker.tolerance is None or it.advantage is None or is_settled(it):
        return None
    return upper(it) <= faced.attacker.tolerance * (1 + 1e-9)


def most_exposed(faced: Faced, it: Answered) -> RecordRisk | None:
    """The record most at risk, if who looks for it gains more than is tolerated where the answer itself keeps that."""
    tolerance = faced.attacker.tolerance
    if tolerance is None or not keeps(faced, it) or not it.exposed or it.question.kind == "record":
        return None
    return it.exposed[0] if it.exposed[0].advantage > tolerance * (1 + 1e-9) else None


def of_most_exposed(faced: Faced, it: Answered) -> str:
    """A sentence about that record to go on with; empty where there is none."""
    one = most_exposed(faced, it)
    if one is None:
        return ""
    people = round_number_of_people(one.advantage)
    more = round(one.advantage * people) if one.exact else math.ceil(one.advantage * people - 1e-9)
    told = f"{count(more)} more of {count(people)} people who have it than of people at random"
    whom = "one record, whichever it is," if one.alike else record(faced, it, one.record)
    if one.exact:
        told = f"ho looks for {whom} says yes to {told}, above the tolerance"
    else:
        told = f"ho looks for one record may say yes to up to {told}, which the promise alone does not rule out"
    return f" W{told}." if one.alike else f" That is about people drawn at random: w{told}."


def verdict(faced: Faced, it: Answered) -> str:
    """Whether the tolerance is kept, in words: a bound that exceeds it is no proof that the risk does."""
    tolerance = faced.attacker.tolerance
    if tolerance is None:
        return "No tolerance is given."
    if is_settled(it):
        return SETTLED
    kept = f"the tolerance of {tolerated(tolerance)}"
    if keeps(faced, it):
        exposed = of_most_exposed(faced, it)
        return f"Within {kept}.{exposed and exposed + WAY_OUT}"
    if it.exact:
        return f"Above {kept}."
    if _lower(it) > tolerance:
        above = "an attacker who knows or sees more is above it"
        return f"Not shown to be within {kept}: {above}." if it.question.at_most else f"Above {kept}."
    alone = isinstance(it.risk, WorstCase)
    return f"The promise alone does not keep {kept}." if alone else f"Not shown to be within {kept}."


def needed(it: Answered) -> str:
    """The noise that keeps the tolerance, rounded to the safe side."""
    if it.kept is None:
        return ""
    if is_settled(it):
        return "nothing to find out"
    if isinstance(it.kept, str):
        return it.kept
    name, value = it.kept.parameter.name, it.kept.value
    if value is None:
        return f"any {name.replace('_', ' ')}"
    return f"{name.replace('_', ' ')} {it.kept.shown}{_or_less(it.kept)}"


def _or_less(kept: Kept) -> str:
    if kept.is_uneven:
        return ""
    return " or less" if kept.parameter.rises else " or more"


def how(it: Answered) -> str:
    """How the numbers were found, in a few words."""
    if it.question.kind == "nothing":
        return "by definition"
    if it.many is not None:
        return f"bound, {sure(it.many.alpha)}"
    if it.question.kind in ("rate", "population"):
        return "bound"
    if it.is_estimate:
        return "estimate"
    if it.exact:
        return "exact"
    alone = it.question.records == 1 and not it.question.at_most
    if alone and isinstance(it.found, WorstCase) and it.found.advantage_bound.attained:
        return "bound, attained by the worst mechanism"
    return "bound: exact for an attacker who knows more" if it.found is not None and it.found.exact else "bound"


def sentence(faced: Faced, it: Answered) -> str:
    """The answer in a sentence that counts people."""
    asked, name = it.question, faced.attacker.name
    if asked.kind == "nothing":
        return f"{name} has no access to what is released, and gains nothing by it."
    if asked.kind == "rate":
        fpr = faced.attacker.fpr or 0.0
        people = round_number_of_people(fpr, it.rate or fpr)
        found = math.ceil((it.rate or 0.0) * people - 1e-9)
        wrong = f"{fpr * people:g} of {count(people)}"
        told = f"at most {count(found)} of {count(people)} who took part are recognised"
        return f"Where {wrong} who did not take part are taken for participants, {told}."
    if it.population is not None:
        return population_sentence(it)
    if it.many is not None:
        whole = asked.goal == "reconstruction" and faced.attacker.within is None
        return many_sentence(it.many, whole, "informed" in asked.rules)
    if asked.kind == "record":
        return _named(faced, it, it.exposed[0], it.exposed[0].sentence())
    if it.risk is None:
        return ""
    worst = it.risk.worst_off
    is_named = worst is not None and worst.exact and not worst.alike
    return _named(faced, it, worst if is_named else None, it.risk.sentence())


def _named(faced: Faced, it: Answered, one: RecordRisk | None, told: str) -> str:
    """A sentence about a record, which is named by its columns and at no great length."""
    if one is None or it.threat is None or it.threat.prior.labels is None:
        return told
    return told.replace(written(one.record), record(faced, it, one.record))


def population_sentence(it: Answered) -> str:
    """What is said of one guess about all people; where that is nothing, at which epsilon it would say something."""
    found = it.population
    if found is None:
        return ""
    if not found.is_vacuous:
        people = round_number_of_people(found.some, 1 - found.some)
        return (
            f"One guess matches at least one of {found.people:,} people in at most "
            f"{count(math.ceil(found.some * people - 1e-9))} of {count(people)} releases "
            f"(by luck in {count(round(found.baseline * people))})."
        )
    told = f"About one guess for all of {found.people:,} people together the promise says nothing: "
    told += f"its bound is {found.some:.4g}. "
    if found.says_from is not None:
        return told + f"It starts to say something at epsilon {significant_down(found.says_from, 3)} or less."
    best = f"; for up to {found.people_at_best:,} people some epsilon would" if found.people_at_best else ""
    luck = "almost surely" if found.baseline > 0.9999 else f"in {100 * found.baseline:.3g} % of cases"
    return f"{told}At no epsilon would it: without any release the commonest record matches somebody {luck}{best}."


def many_sentence(found: AtMost, whole: bool, informed: bool) -> str:
    """About how many people guesses are right at once; each is about the `whole` record or part of it.

    Who is `informed` of other rows may know some of them beforehand.
    """
    people, most, luck = found.targets.people, found.at_most, found.without_release
    does = "reconstructs" if whole else "is right about"
    if most >= people:
        told = f"the promise does not rule out that somebody {does} all of these {people:,} records"
    else:
        told = f"no attacker {does} more than {most:,} of these {people:,} records ({sure(found.alpha)})"
    aside = ", those that it knew beforehand aside" if informed else ""
    return (
        f"If the records are independent of each other and as common as the file says, {told}{aside}; without the "
        f"release it would be at most {luck:,}."
    )


def exact_or_bounds(it: Answered) -> list[tuple[str, str, str]]:
    """The exact value or estimate, and the bounds beside it: name, number, who proved it."""
    single = it.question.records == 1
    if isinstance(it.risk, Risk):
        kind = "Estimate" if it.risk.estimate else "Exact value" if it.risk.exact else "Certified"
        own = next(value for name, value, _ in it.risk.rows if name == OF_ANYBODY["advantage"])
        row = (f"{kind} for this mechanism and prior", own, "RAD Theorem 4.3")
        return [row, *_of_guarantee(it.risk.bounds, "By its guarantee alone", single)]
    return _of_guarantee(it.risk, "By the guarantee", single) if isinstance(it.risk, WorstCase) else []


def _of_guarantee(worst: WorstCase, title: str, single: bool) -> list[tuple[str, str, str]]:
    """What is attained is told of `single` records only: of several it is proven for another guarantee."""
    tight = worst.advantage_bound
    attained = ", which some mechanism attains: no better bound is possible" if tight.attained and single else ""
    rows = [(f"{title}, for this prior{attained}", f"<= {significant_up(worst.advantage, 4)}", tight.source)]
    wide = next((value for value in worst.on_advantage.values if value.bound.name == "universal"), None)
    if wide is not None and wide is not tight:
        rows.append(
            ("Universal bound, whatever the prior", f"<= {significant_up(min(1.0, wide.number), 4)}", wide.source)
        )
    return rows


def untold(faced: list[Faced]) -> list[str]:
    """Who has a tolerance of which nothing says whether it is kept."""
    asked = [one for one in faced if one.attacker.tolerance is not None]
    return [one.attacker.name for one in asked if one.worst is None or is_settled(one.worst)]


def remedy(faced: list[Faced]) -> str:
    """The noise that keeps all tolerances at once, where one number is known to: more noise may be worse if uneven."""
    asked = [(one, it, it.kept) for one in faced for it in one.covered if it.kept is not None]
    found = [(one, it, kept) for one, it, kept in asked if isinstance(kept, Kept)]
    strictest = _strictest([kept for _, _, kept in found])
    if strictest is None or len(found) < len(asked):
        return ""
    chosen = float(strictest.shown)
    if strictest.is_uneven and any(gained_with(one, it, chosen) > kept.tolerance for one, it, kept in found):
        return ""
    name = strictest.parameter.name.replace("_", " ")
    which = "the tolerances that can be compared" if untold(faced) else "every tolerance"
    return f"To keep {which}: {name} {strictest.shown}{_or_less(strictest)}."


def _strictest(found: list[Kept]) -> Kept | None:
    """That with most noise; None if any noise will do."""
    limits = [(kept.value, kept) for kept in found if kept.value is not None]
    if not limits:
        return None
    choose = min if limits[0][1].parameter.rises else max
    return choose(limits, key=lambda it: it[0])[1]


def short(faced: Faced, it: Answered) -> str:
    """A question and its answer in a line."""
    told = f"{about_whom(faced, it)}: {adds(it)}"
    if it.question.kind == "record" and it.exposed and (most := it.exposed[0].largest_posterior):
        told += f", though no report makes it more than {percent_up(most)} % sure" if most <= NEARLY_ONE else ""
    finite = isinstance(it.kept, Kept) and it.kept.value is not None
    return f"{told}; {needed(it)} keeps the tolerance." if finite else f"{told}."
