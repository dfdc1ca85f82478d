"""Attackers who keep learning: from all earlier blocks of an audit, never from the one they judge (theory, 4.4).

An attacker learns a rule that names a suspect for some outputs and is silent for the others. How well it learned makes
it strong or weak, never wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dprisk.auditing.code.outputs import as_objects, shown
from dprisk.auditing.evidence.entry_rules import (
    FEW_BINS,
    TRIED,
    are_many,
    edges_of,
    most_answered,
    rules_for_entries,
    rules_for_one_entry,
)
from dprisk.auditing.evidence.fitted import IN_A_BIN, MANY_BINS, Bins, Unusual, coarse
from dprisk.auditing.evidence.grids import BITS, Bit, LowBits, Remainder, bit_of
from dprisk.auditing.evidence.keyed import keyed_layout_of
from dprisk.auditing.evidence.layouts import layout_of
from dprisk.auditing.evidence.parts import Parts, telling_parts, with_parts
from dprisk.auditing.evidence.rules import BEFORE, Bar, Lookup, Past, Rule, clear_or_alone, looked_up
from dprisk.auditing.evidence.table_rows import is_table, telling_rows
from dprisk.auditing.evidence.views import BesideOwn, Form, Seen, Value, View
from dprisk.types import IntArray

COARSE_BINS = 4
BY_KEY = ", by key"  # behind the names of rules for entries that are found by a key

TWO = ", of two"  # behind the names of rules for two records

Learned = dict[str, Rule]  # rules by their names


class Verbatim(Lookup):
    """Names the record that the output is."""

    def of(self, suspects: IntArray) -> Verbatim:
        """The same for some records."""
        mine = np.isin(self.named, suspects)
        if mine.all():
            return self
        return replace(self, known=self.known[mine], named=self.named[mine], graded=self.graded[mine])

    def groups(self, seen: Seen) -> IntArray:
        return np.zeros(len(seen), dtype=np.int64)

    def words(self, seen: Seen) -> list[str]:
        return [f"the output is {shown(output)}, the record itself," for output in seen.outputs]


def rules(past: Past, known: Lookup, bar: Bar, low_bits: bool = True) -> Learned:
    """What every attacker has learned by now, beside one that is `known` before; one that has nothing is left out."""
    found: Learned = {"verbatim": known} if known.known.size else {}
    found |= quick_rules(past, bar, low_bits) | _of_numbers(past, bar) | _of_parts(past, bar)
    numbers = past.seen.numbers
    if numbers is not None:
        bins = max(2, min(MANY_BINS, numbers.size // IN_A_BIN))
        found["narrow bins"] = looked_up(Bins(numbers, bins), past, bar, bins > FEW_BINS)
        found["edges"] = edges_of(numbers, past.records)
    if (cut := coarse(past.seen, COARSE_BINS)) is not None:
        found["coarsely"] = looked_up(cut, past, bar)
    if layout := layout_of(past.seen.outputs):
        found |= rules_for_entries(layout, past, bar, low_bits)
    if keyed := keyed_layout_of(past.seen.outputs):
        found |= {f"{name}{BY_KEY}": rule for name, rule in rules_for_entries(keyed, past, bar, low_bits).items()}
    return found


def rules_for_earlier(past: Past, known: Lookup, bar: Bar, low_bits: bool = True) -> Learned:
    """Rules that name the record of the run before, of which code tells nothing that keeps nothing."""
    found: Learned = {"verbatim": known} if known.known.size else {}
    for name, view in _quick_views(past.seen, low_bits).items():
        found[name] = looked_up(view, past, bar, graded=isinstance(view, Value))
    for name, view in {"value": Value(), "form": Form()}.items():
        found[f"{name} beside its own record"] = looked_up(BesideOwn(view), past, bar, graded=False)
    found |= _of_numbers(past, bar) | _of_parts(past, bar)
    if layout := layout_of(past.seen.outputs):
        found |= rules_for_one_entry(layout, past, bar)
    return {f"{name}{BEFORE}": rule for name, rule in found.items()}


def quick_rules(past: Past, bar: Bar, low_bits: bool = True) -> Learned:
    """Those of the rules that are quick to learn: what is rare becomes known the later the better."""
    found: Learned = {}
    for name, view in _quick_views(past.seen, low_bits).items():
        many = isinstance(view, Value)  # of many tokens some tell a record by luck
        found[name] = clear_or_alone(view, past, bar, many)
    return found


def of_two(learned: Learned) -> Learned:
    """The same rules as attackers of their own.

    They tell two records apart, of whom one may be ruled out by what several others show as well.
    """
    return {f"{name}{TWO}": rule for name, rule in learned.items()}


def _quick_views(seen: Seen, low_bits: bool) -> dict[str, View]:
    views: dict[str, View] = {"value": Value(), "form": Form(), "unusual value": Unusual(seen)}
    return views | ({"low bits": LowBits()} if low_bits else {})


def by_name(learned: Learned) -> dict[str, tuple[Rule, int]]:
    """The attackers by their names: each grade of each rule."""
    return {name + word: (rule, grade) for name, rule in learned.items() for grade, word in enumerate(rule.grades)}


def verbatim(records: Sequence[Any]) -> Verbatim:
    """The rule that looks for the records themselves: as they are, as floats, as text."""
    spelled = [(spelling, number) for number, record in enumerate(records) for spelling in _spellings(record)]
    tokens = Value().tokens(Seen(as_objects([spelling for spelling, _ in spelled])))
    known, first = np.unique(tokens, return_index=True)
    return Verbatim(Value(), known, np.array([number for _, number in spelled])[first], np.ones_like(known))


def _spellings(record: Any) -> list[Any]:
    plain = record.item() if isinstance(record, np.generic) else record
    if not isinstance(plain, int | float | str | bool):
        return []
    try:
        return [plain, float(plain), str(plain)]
    except (ValueError, OverflowError):
        return [plain, str(plain)]


def _of_numbers(past: Past, bar: Bar) -> Learned:
    """What outputs tell that are numbers: about how large they are, and what is left when they are divided."""
    numbers = past.seen.numbers
    if numbers is None:
        return {}
    bins = max(2, min(FEW_BINS, numbers.size // IN_A_BIN))
    found: Learned = {"wide bins": looked_up(Bins(numbers, bins), past, bar, graded=False)}
    if are_many(numbers[:TRIED]):
        found["remainder"] = clear_or_alone(Remainder(), past, bar)
        if past.seen.outputs.dtype.kind in "iu":
            tried = ((place, bit_of(past.seen.outputs[:TRIED], place)) for place in range(BITS))
            best = most_answered(tried, past.records[:TRIED], bar, strictly=True)
            found["one bit"] = looked_up(Bit(best or 0), past, bar, graded=False)
    return found


def _of_parts(past: Past, bar: Bar) -> Learned:
    """What words and lines of a text tell, or entries and rows at any depth."""
    if is_table(past.seen.outputs):
        return {"parts": looked_up(telling_rows(past.seen.outputs, past.records), past, bar)}
    some = with_parts(past.seen.outputs)[-TRIED:]
    if some.size == 0:
        return {}
    return {"parts": looked_up(Parts(telling_parts(past.seen.outputs[some], past.records[some])), past, bar)}
