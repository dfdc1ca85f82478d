"""The register of exact results: when each applies, how it computes, who proved it. `solve` takes the first that does.

Structure first, then break points on a line, then enumeration of the outputs.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprisk.errors import MechanismError, TooLargeError, fail
from dprisk.exact import breakpoints, closed_forms, theorem
from dprisk.exact.certified import enclose
from dprisk.exact.equal_steps import equal_steps
from dprisk.exact.histograms import histogram_encoding
from dprisk.exact.independent_scores import right_angled_means
from dprisk.exact.optimum import Optimum
from dprisk.mechanisms import GRR, SHE, Exponential, Mechanism, OnAttribute, OnInterval, SetProtocol, VectorGaussian
from dprisk.mechanisms.numbers.additive import Additive
from dprisk.mechanisms.vectors import VectorNoise
from dprisk.registers import Register
from dprisk.threat.kinds import Kinds
from dprisk.threat.knowledge import Knowledge
from dprisk.threat.prior import Prior
from dprisk.threat.success import Attributes
from dprisk.threat.threat import Threat
from dprisk.types import FloatArray, IntArray

_ROWS = (
    "those are the rows of a table: if the mechanism sees one column of them, wrap it by OnAttribute, or start with "
    "Survey.from_table."
)


@dataclass(frozen=True)
class Form:
    """One way to the exact optimum, and who proved it.

    `applies` tells whether it is for a mechanism (in its `sufficient` form) and a threat; `optimum` computes, or
    returns None if it finds on the way that it is not. The advantage on each record, and how often the attacker of
    largest advantage is right about participants, are read off the optimum unless `by_record` and `right_by_group` say
    how else to get them.
    """

    name: str
    source: str
    applies: Callable[[Any, Threat], bool]
    optimum: Callable[[Any, Threat], Optimum | None]
    by_record: Callable[[Any, Threat], FloatArray | None] | None = None
    right_by_group: Callable[[Any, Threat], FloatArray | None] | None = None


def solve(mechanism: Mechanism, threat: Threat) -> Optimum:
    """RAD and ReRo of the best attackers, exactly; refuses what would take an enumeration beyond reach."""
    return next(
        replace(found, by=form.name, most=1 - threat.prior.collision_probability)
        for form, simple in _forms(mechanism, threat)
        if (found := form.optimum(simple, threat)) is not None
    )


def advantage_by_record(mechanism: Mechanism, threat: Threat) -> FloatArray:
    """The advantage of the best attacker on each record, ties broken at random: who is most at risk."""
    return _detail("by_record", mechanism, threat)


def right_by_group(mechanism: Mechanism, threat: Threat) -> FloatArray:
    """How often the attacker of largest advantage is right about participants; of several, who is so most often."""
    return _detail("right_by_group", mechanism, threat)


def _detail(name: str, mechanism: Mechanism, threat: Threat) -> FloatArray:
    """By the first form that knows it: found in a way of its own, or read off the optimum."""
    tried = ((getattr(form, name) or form.optimum)(simple, threat) for form, simple in _forms(mechanism, threat))
    known = (getattr(found, name) if isinstance(found, Optimum) else found for found in tried)
    return next(found for found in known if found is not None)


def _forms(mechanism: Mechanism, threat: Threat) -> Iterator[tuple[Form, Mechanism]]:
    """The forms that apply, with what they are applied to; whoever needs one more is told that there is none."""
    require_match(mechanism, threat)
    simple = mechanism.sufficient()
    yield from ((form, simple) for form in FORMS.entries if form.applies(simple, threat))
    fail(
        f"{mechanism!r} has {_many(simple.n_outputs)} outputs for {simple.size} records and no closed form for "
        "this threat, so the exact value is out of reach; `assess` estimates it.",
        TooLargeError,
    )


def require_match(mechanism: Mechanism, threat: Threat) -> None:
    """Refuse a mechanism and a threat over different records, or over the same in another order."""
    if mechanism.size != threat.prior.size:
        fail(
            f"The mechanism takes {_many(mechanism.size)} records, the prior has {_many(threat.prior.size)}; "
            + (_ROWS if isinstance(threat.success, Attributes) else "they must be the same."),
            MechanismError,
        )
    if mechanism.is_equispaced:
        threat.prior.require_even_spacing(mechanism.brief())
    order, labels = mechanism.labels, threat.prior.labels
    if order is not None and labels is not None and order != labels:
        own, other = next((own, other) for own, other in zip(order, labels, strict=True) if own != other)
        fail(
            f"The mechanism's records are not the prior's in the same order: {own!r} here is {other!r} there; "
            f"{_advice(mechanism, set(order) == set(labels))}.",
            MechanismError,
        )


def _advice(mechanism: Mechanism, same_records: bool) -> str:
    """How to bring the labels of a mechanism and a prior together."""
    if isinstance(mechanism, Exponential):
        return "make the mechanism with nodes=prior.labels"
    if same_records:
        return "give the probabilities in the mechanism's order, as in Prior.from_counts(counts, mechanism.labels)"
    return (
        "a prior over the mechanism's records is Prior.from_column(values, mechanism.labels); the mechanism over the "
        "prior's is made with these, as in universe=prior.labels"
    )


def _many(count: float) -> str:
    return f"{count:.10g}" if count < 1e7 else f"{count:.3g}" if math.isfinite(count) else "infinitely many"


def register(form: Form) -> None:
    """Add a closed form, to be tried after those that are there and before break points and enumeration."""
    FORMS.register(form, before="break points")


def _of(
    kind: type | tuple[type, ...], when: Callable[[Threat], bool] = lambda threat: True
) -> Callable[[Any, Threat], bool]:
    """A form for mechanisms of a kind, against some threats."""
    return lambda mechanism, threat: isinstance(mechanism, kind) and when(threat)


def _plainly(threat: Threat) -> bool:
    """A uniform prior, nothing known, exact success."""
    return threat.knows.is_none and threat.prior.is_uniform and threat.is_exact


def _repeated_means(mechanism: VectorNoise, threat: Threat) -> Optimum | None:
    """A uniform prior, nothing known, exact reconstruction, and several records for some outputs' laws.

    Let there be one record for each of n laws. ReRo is the integral of the largest density over the number of records,
    RAD is 1 / records less: n / records times those of the mechanism on the n laws under a uniform prior.
    """
    distinct = np.unique(mechanism.means, axis=0)
    if len(distinct) == mechanism.size:
        return None
    found = solve(mechanism.on_means(distinct), Threat(Prior.uniform(len(distinct))))
    share = len(distinct) / mechanism.size
    advantage, success = share * found.advantage_by_group, share * found.success_by_group
    return Optimum(advantage, success, None, error=share * found.error, right_by_group=success)


def _fewer_records(mechanism: Mechanism, threat: Threat) -> tuple[Mechanism, Threat, IntArray] | None:
    """The same question with one record for all that neither outputs nor success tell apart, and which it is for each.

    Where every law of the outputs is then one kind of record, to be named exactly, it is that of the mechanism for the
    laws themselves, of which more is known. None if there are not fewer.
    """
    few, law = mechanism.laws()
    kinds = Kinds.of(threat.prior, threat.knows.groups, None if threat.success.is_exact else threat.reach, law)
    less, place = threat.over(kinds), law[kinds.first]
    if few is mechanism or kinds.count >= threat.prior.support_size or less.knows.n_groups < threat.knows.n_groups:
        return None
    if not (less.success.is_exact and np.unique(place).size == place.size):
        return OnAttribute(few, place), less, kinds.of_record
    weights, groups = np.zeros(few.size), np.zeros(few.size, dtype=np.int64)
    weights[place], groups[place] = less.prior.weights, less.knows.groups
    return few, Threat(Prior(weights), Knowledge(groups, less.knows.names)), place[kinds.of_record]


def _by_fewer_records(mechanism: Mechanism, threat: Threat) -> Optimum | None:
    """The optimum over fewer records, which is the same."""
    if (fewer := _fewer_records(mechanism, threat)) is None:
        return None
    found = solve(*fewer[:2])
    return replace(found, by_record=None if found.by_record is None else found.by_record[fewer[2]])


def _right_by_fewer_records(mechanism: Mechanism, threat: Threat) -> FloatArray | None:
    """How often that attacker is right about participants, which is the same."""
    fewer = _fewer_records(mechanism, threat)
    return None if fewer is None else right_by_group(*fewer[:2])


def _advantage_by_fewer_records(mechanism: Mechanism, threat: Threat) -> FloatArray | None:
    """The advantage on each record is that on the one that stands for it."""
    fewer = _fewer_records(mechanism, threat)
    return None if fewer is None else advantage_by_record(*fewer[:2])[fewer[2]]


FORMS: Register[Form] = Register(
    "form",
    Form("enclosed", "dprisk, by RAD Theorem 4.3", _of(OnInterval), enclose),
    Form(
        "fewer records",
        "dprisk",
        _of((OnAttribute, VectorNoise)),
        _by_fewer_records,
        _advantage_by_fewer_records,
        _right_by_fewer_records,
    ),
    Form(
        "sets",
        "dprisk, theory 2a; RAD Examples 4.4-4.6 for nothing and for everything known",
        # The last is the first in another spelling, and takes longest to see.
        _of(SetProtocol, lambda threat: threat.success.is_exact or threat.knows.is_all or threat.is_exact),
        closed_forms.set_protocol,
    ),
    Form(
        "sets of an attribute",
        "dprisk, theory 2a",
        closed_forms.sees_one_value_each,
        closed_forms.set_protocol_on_attribute,
    ),
    Form("randomised response", "dprisk; RAD Example 4.4 if exact", _of(GRR), closed_forms.randomised_response),
    Form("nearest position", "RAD equations 70 and 75", _of(Additive, _plainly), closed_forms.nearest_position),
    Form("equal steps", "dprisk", _of(Additive), equal_steps),
    Form("histogram encoding", "dprisk", _of(SHE, _plainly), histogram_encoding),
    Form("repeated means", "dprisk", _of(VectorNoise, _plainly), _repeated_means),
    Form("right-angled means", "dprisk", _of(VectorGaussian), right_angled_means),
    Form(
        "break points",
        "RAD Theorem 4.3",
        _of(Additive),
        breakpoints.optimum,
        breakpoints.by_record,
        breakpoints.right,
    ),
    Form(
        "every output",
        "RAD Theorem 4.3",
        lambda mechanism, threat: mechanism.is_listable,
        theorem.enumerate_outputs,
        theorem.enumerate_by_record,
        theorem.enumerate_right,
    ),
)
