"""Risks in a sentence that counts people: one rule for all of them.

Where both rates of an attacker are known, both are told, of so many people who took part and of as many who did not;
then their difference, which is what taking part adds. Of the three the first and the last are rounded, as a table has
them, and the second is their difference, so that what is said adds up. Where only bounds are known, each is told as the
most there is. An attacker who knows the whole record guesses nothing: it recognises, or mistakes.
"""

import math

from dprisk.rounding import round_number_of_people, significant_up
from dprisk.threat import Threat

NEARLY_ONE = 0.9995


def of_rates(
    threat: Threat, who: str, right: float, advantage: float, is_estimate: bool = False, can: bool = True
) -> str:
    """How often somebody (`who` begins the sentence) is right, or `can` be, about participants and about others."""
    people = round_number_of_people(abs(advantage))
    number, more = round(right * people), round(advantage * people)
    took_part, others = _of(number, people), _of(max(0, number - more), people)
    if _is_membership(threat):
        recognised = f"{'can recognise' if can else 'recognises'} {took_part} who took part"
        told = f"{recognised}, and mistakes {others} who did not for participants"
    else:
        right_about = f"{'can be' if can else 'is'} right{_goal(threat)} about {took_part} people who took part"
        told = f"{right_about}, and about {others} who did not"
    return f"{_estimated(who, is_estimate)} {told}: {_added(more, is_estimate)}."


def of_difference(threat: Threat, who: str, advantage: float, at_most: str = "") -> str:
    """The advantage alone, where the two rates are not known."""
    people = round_number_of_people(advantage)
    more = math.ceil(advantage * people - 1e-9) if at_most else round(advantage * people)
    if _is_membership(threat):
        told = f"{_count(more)} more of {_count(people)} who did than of {_count(people)} who did not"
        return f'{who} can say "took part" of {at_most}{told}.'
    return f"{who} can be right{_goal(threat)} about {at_most}{_more(more, people)}."


def of_bounds(threat: Threat, who: str, success: float, baseline: float, advantage: float) -> str:
    """The most that somebody is right, and the most that taking part adds: bounds on two different attackers."""
    if _is_membership(threat):
        return of_difference(threat, who, advantage, "at most ")
    people = round_number_of_people(advantage)
    right, more = (math.ceil(share * people - 1e-9) for share in (success, advantage))
    blind = _count(round(baseline * people))
    return (
        f"{who} is right{_goal(threat)} about at most {_of(right, people)} people ({blind} without any release), "
        f"and about at most {_more(more, people)}."
    )


def of_record(record: str, among: str, yes: float | None, advantage: float, is_estimate: bool = False) -> str:
    """How often who looks for a record says yes to people with it, and to people at random."""
    people = round_number_of_people(advantage)
    who, among = f"n attacker who looks for {record}", f"taken at random{among}"
    if yes is None:
        most = _count(math.ceil(advantage * people - 1e-9))
        told = (
            f"says yes to at most {most} more of {_count(people)} people who have it than of {_count(people)} {among}"
        )
        return f"Whatever the mechanism, a{who} {told}."
    number, more = round(yes * people), round(advantage * people)
    told = f"says yes to {_of(number, people)} people who have it, and to {_of(max(0, number - more), people)} {among}"
    return f"{_estimated(f'A{who}', is_estimate)} {told}: {'about ' if is_estimate else ''}{_count(more)} more."


def of_belief(prior: float, most: float, is_bound: bool = False) -> str:
    """How far a report can move a belief; empty where nothing can be said, as of a bound that excludes nothing."""
    before = f"up from {100 * prior:.3g} %"
    if most > NEARLY_ONE:
        possible = not (is_bound or prior > NEARLY_ONE)
        return f"Some report, however rare, makes it all but certain of that, {before}." if possible else ""
    return f"No report makes it more than {significant_up(100 * most, 3)} % sure of that, {before}."


def attacker(threat: Threat) -> str:
    """The attacker of a threat, as a sentence begins."""
    if threat.knows.is_none:
        return "An attacker"
    known = "record" if threat.knows.is_all else threat.knows.attributes_in_words or "group"
    return f"An attacker who knows everybody's {known}"


def _is_membership(threat: Threat) -> bool:
    return threat.knows.is_all and not threat.knows.is_none


def _estimated(who: str, is_estimate: bool) -> str:
    return f"By an estimate, {who[0].lower()}{who[1:]}" if is_estimate else who


def _added(more: int, is_estimate: bool) -> str:
    about = "about " if is_estimate else ""
    if more < 0:
        return f"it does worse on those who took part, by {about}{_count(-more)}"
    return f"taking part adds {about}{_count(more)}" if more else "taking part adds nothing"


def _goal(threat: Threat) -> str:
    return "" if threat.success.is_exact else f" ({threat.success.describe()})"


def _of(some: int, people: int) -> str:
    return f"{_count(some)} of {_count(people)}"


def _more(more: int, people: int) -> str:
    return f"{_count(more)} more of {_count(people)} who took part than of {_count(people)} who did not"


def _count(people: int) -> str:
    """A number of people, in groups of three digits where there are many."""
    return f"{people:,}" if people >= 10_000 else str(people)
