"""Risks in a sentence that counts people: one rule for all of them.

Where both rates of an attacker are known, both are told, of so many people who took part and of as many who did not;
then their difference, which is what taking part adds. Of the three the first and the last are rounded, as a table has
them, and the second is their difference, so that what is said adds up. Where only bounds are known, each is told as the
most there is. An attacker who knows the whole record guesses nothing: it recognises, or mistakes.
"""

import math
from typing import Any

import numpy as np

from dprisk.mechanisms.numbers.positions import Positioned
from dprisk.rounding import percent_up, round_number_of_people
from dprisk.threat import Threat

NEARLY_ONE = 0.9995
SETTLED = (
    "Nothing is left to find out here: the prior and what the attacker knows already tell it of everybody, so that "
    "these numbers say nothing of the noise."
)
SAME_UNITS = 1e-6  # by so much of itself the spread of records and of positions may differ


def of_rates(
    threat: Threat, who: str, right: float, advantage: float, is_estimate: bool = False, can: bool = True
) -> str:
    """How often somebody (`who` begins the sentence) is right, or `can` be, about participants and about others."""
    people = round_number_of_people(abs(advantage))
    number, more = round(right * people), round(advantage * people)
    took_part, others = _of(number, people), _of(max(0, number - more), people)
    if is_membership(threat):
        recognised = f"{'can recognise' if can else 'recognises'} {took_part} who took part"
        told = f"{recognised}, and mistakes {others} who did not for participants"
    else:
        right_about = f"{'can be' if can else 'is'} right{_goal(threat)} about {took_part} people who took part"
        told = f"{right_about}, and about {others} who did not{in_their_place(threat)}"
    return f"{_estimated(who, is_estimate)} {told}: {_added(more, is_estimate)}."


def of_difference(threat: Threat, who: str, advantage: float) -> str:
    """The advantage alone, where the two rates are not known."""
    people = round_number_of_people(advantage)
    more = round(advantage * people)
    if is_membership(threat):
        return f'{who} can say "took part" of {_more_members(more, people)}.'
    return f"{who} can be right{_goal(threat)} about {_more(more, people)}."


def of_bounds(
    threat: Threat, who: str, success: float, baseline: float, advantage: float, left_out: float | None = None
) -> str:
    """The most that somebody is right, and the most that taking part adds: bounds on two different attackers.

    An attacker who knows the record compares with somebody else in its place, from the prior; `left_out` is the most
    that it gains against nobody in its place, where that is known.
    """
    people = round_number_of_people(advantage)
    if is_membership(threat):
        told = f"at most {_more_members(math.ceil(advantage * people - 1e-9), people)}"
        if left_out is not None:
            most = _count(math.ceil(left_out * people - 1e-9))
            told += f", and of at most {most} more than of {_count(people)} left out"
        return f'{who} can say "took part" of {told}.'
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


def of_any_record(among: str, advantage: float, exact: bool) -> str:
    """How much more often who looks for a record says yes to people with it, whichever it is."""
    people = round_number_of_people(advantage)
    more = _count(round(advantage * people)) if exact else f"at most {_count(math.ceil(advantage * people - 1e-9))}"
    told = f"{more} more of {_count(people)} people who have it than of {_count(people)} taken at random{among}"
    return f"An attacker who looks for one record, whichever it is, says yes to {told}."


def of_worst_off(told: str, alike: bool, aside: str = "") -> str:
    """What is told of the record most at risk, after a sentence about an attacker of everybody alike."""
    told = f"{aside}{told[0].lower()}{told[1:]}"
    return f" {told[0].upper()}{told[1:]}" if alike else f" That is about people drawn at random: {told}"


def of_belief(prior: float, most: float, is_bound: bool = False) -> str:
    """How far a report can move a belief; empty where nothing can be said, as of a bound that excludes nothing."""
    before = f"up from {100 * prior:.3g} %"
    if most > NEARLY_ONE:
        possible = not (is_bound or prior > NEARLY_ONE)
        return f"Some report, however rare, makes it all but certain of that, {before}." if possible else ""
    return f"No report makes it more than {percent_up(most)} % sure of that, {before}."


def of_units(subject: Any, threat: Threat) -> str:
    """That the distance of a near guess is in other units than the noise; empty where it is not, or nobody can tell.

    Only where positions were given by their number, and noise by its size: the answers of a query may well be on
    another scale, and noise made with an epsilon fits any.
    """
    if not (isinstance(subject, Positioned) and subject.is_equispaced and subject.by_size) or threat.has_numbers:
        return ""
    places = threat.success.places(threat.prior)
    if places is None or abs(np.ptp(places) - subject.spread) <= SAME_UNITS * np.ptp(places):
        return ""
    near, noise = (f"from {some.min():g} to {some.max():g}" for some in (places, subject.positions))
    near_guess = threat.success.describe().replace(" on a line", "")
    return f"{near_guess} counts records {near}, but the noise is on positions {noise}"


def attacker(threat: Threat) -> str:
    """The attacker of a threat, as a sentence begins."""
    if threat.knows.is_none:
        return "An attacker"
    known = "record" if threat.knows.is_all else threat.knows.attributes_in_words or "group"
    return f"An attacker who knows everybody's {known}"


def in_their_place(threat: Threat) -> str:
    """Whose report an attacker sees of who did not take part, where it knows groups and these might be meant."""
    return ", anybody in their place" if knows_groups(threat) else ""


def among_alike(threat: Threat) -> str:
    """Among whom a record is looked for, where the attacker knows groups."""
    return " in its group" if knows_groups(threat) else ""


def knows_groups(threat: Threat) -> bool:
    """Whether something is known of the target, but not all."""
    return not (threat.knows.is_none or threat.knows.is_all)


def is_membership(threat: Threat) -> bool:
    """Whether all of the record is known, and only taking part is not."""
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


def _more_members(more: int, people: int) -> str:
    others = f"{_count(people)} whose place somebody from the prior took"
    return f"{_count(more)} more of {_count(people)} who did than of {others}"


def _count(people: int) -> str:
    """A number of people, in groups of three digits where there are many."""
    return f"{people:,}" if people >= 10_000 else str(people)
