"""A query on a table, published with noise: the channel from one record to the output, everybody else fixed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy

from dprisk.errors import MechanismError, ParameterError, as_number
from dprisk.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from dprisk.mechanisms import Gaussian, Laplace, Mechanism, VectorGaussian, VectorLaplace
from dprisk.mechanisms.numbers.noise import GaussianNoise, LaplaceNoise, Noise
from dprisk.mechanisms.numbers.positions import Ends
from dprisk.mechanisms.some_records import ENOUGH
from dprisk.releases.queries import Query
from dprisk.tables import as_floats, column, column_names, listed, require_present, rows_of, twice
from dprisk.types import FloatArray, Table

ONE_RECORD = "There is only one possible record, so nothing can be told of it; list others, or give a sensitivity."


def release(
    query: Query | Callable[[Table], Any],
    data: Table,
    universe: Table | Iterable[Any],
    noise: Noise | Guarantee,
    *,
    sensitivity: float | None = None,
    interval: tuple[float, float] | None = None,
    ends: Ends = "clamp",
) -> Mechanism:
    """The mechanism that publishes the answer to a query with noise: what a person's record does to the output.

    `data` holds everybody else, who stay as they are: a data frame or a mapping from column name to values, one row a
    person. `universe` holds the records that the target might have, one row each, or is a plain list of values if the
    query looks at one column. The mechanism's records are those, in their order, and its `labels` are the values or
    the rows as tuples, so that a prior over other records is refused. `Prior.from_column(values, mechanism.labels)` is
    the prior of a column's frequencies; the `table` of a threat made by `Threat.attributes` is a universe.

    `query` is a `Count`, `Sum`, `Mean`, `Histogram` or `Marginal`, or any function from a table to a number or vector,
    which is called with each record appended to the data (a data frame stays one, other tables become dictionaries of
    lists).

    `noise` is a `LaplaceNoise` or `GaussianNoise`, put on each entry of the answer, or the guarantee that it is to
    keep: `PureDP` by Laplace noise, `GaussianDP` and `ZCDP` by Gaussian noise, `ApproxDP` by the least Gaussian noise
    that keeps its epsilon and delta (the analytic Gaussian mechanism, Balle and Wang 2018). A guarantee needs the
    `sensitivity`: the largest distance between the answers for two records, L1 for Laplace and L2 for Gaussian noise.
    If left out it is the one that the query states, or else that of this universe and these data. The answers of the
    five queries move alike on any data of this size; a function may move more on other data, for which the noise
    promises nothing. What the noise promises for that sensitivity is the mechanism's `promised`, where it is more than
    for this universe; of Laplace noise its parameter is that epsilon.

    A number may be kept in an `interval`, by clamping or truncation (see `Laplace`).

    >>> from dprisk import Prior, Threat, assess

    >>> from dprisk.releases import Histogram
    >>> others = {"illness": ["flu", "flu", "cold", "flu"]}
    >>> mechanism = release(Histogram("illness"), others, ["cold", "flu", "measles"], PureDP(1.0))
    >>> mechanism
    VectorLaplace(means=<3 x 3 numbers>, scale=2)
    >>> assess(mechanism, Threat(Prior.uniform(3)))
    Risk(advantage=0.130568, success=0.463901, baseline=0.333333, exact)
    """
    if not (isinstance(query, Query) or callable(query)):
        raise ParameterError(f"A query such as Count('ill', 'yes') or a function is needed, not {query!r}.")
    names = query.looks_at if isinstance(query, Query) else tuple(column_names(data))
    people = 1 + len(rows_of(data, names))
    records, labels = _universe(universe, names)
    answers = query.answers(data, records) if isinstance(query, Query) else _called(query, data, records)
    stated = query.sensitivity(people) if isinstance(query, Query) else None
    if isinstance(noise, Guarantee):
        MechanismError.unless(len(labels) > 1 or sensitivity is not None or stated is not None, ONE_RECORD)
        noise = _keeping(noise, answers, sensitivity, stated)
    else:
        MechanismError.unless(sensitivity is None, "The sensitivity has no meaning for a given noise; leave it out.")
    return _noisy(answers, noise, stated if sensitivity is None else sensitivity, interval, ends).labelled(labels)


def _universe(universe: Table | Iterable[Any], columns: tuple[str, ...]) -> tuple[Mapping[str, list[Any]], list[Any]]:
    """The possible records by column, and a label for each."""
    if hasattr(universe, "columns") or isinstance(universe, Mapping):
        names = column_names(universe)
        MechanismError.unless(len(names) > 0, "The universe has no columns.")
        labels: list[Any] = rows_of(universe, names)
        records = {name: column(universe, name) for name in names}
    else:
        if len(columns) != 1:
            raise MechanismError(f"The query looks at {len(columns)} columns; give the universe as a table with them.")
        labels = listed(universe)
        records = {columns[0]: labels}
    MechanismError.unless(len(labels) > 0, "The universe is empty; list the records that the target might have.")
    require_present(labels, "The universe")
    again = twice(labels)
    MechanismError.unless(not again, f"The universe lists the record {again[:1]} twice.")
    return records, labels


def _called(query: Callable[[Table], Any], data: Table, universe: Mapping[str, list[Any]]) -> FloatArray:
    """The answers of a function, by calling it with each record appended."""
    names = column_names(data)
    missing = [name for name in names if name not in universe]
    if missing:
        raise MechanismError(f"A function of the table needs all its columns; the universe lacks {missing[:1]}.")
    others = {name: column(data, name) for name in names}
    build = type(data) if hasattr(data, "columns") else dict
    answers = [
        query(build({name: [*others[name], universe[name][record]] for name in names}))
        for record in range(len(universe[names[0]]))
    ]
    numbers = as_floats(answers, "The answers of the query", MechanismError)
    if not (numbers.ndim in (1, 2) and np.all(np.isfinite(numbers))):
        raise MechanismError("The query must answer with a finite number or a vector of them, always equally long.")
    return numbers


def _keeping(guarantee: Guarantee, answers: FloatArray, given: float | None, stated: float | None) -> Noise:
    """The noise that keeps a guarantee: by the given sensitivity, or the stated one, or that of the answers."""
    noise: type[LaplaceNoise] | type[GaussianNoise] = GaussianNoise
    if isinstance(guarantee, PureDP):
        noise, level = LaplaceNoise, guarantee.epsilon
    elif isinstance(guarantee, GaussianDP):
        level = guarantee.mu
    elif isinstance(guarantee, ZCDP):
        level = math.sqrt(2 * guarantee.rho)
    elif isinstance(guarantee, ApproxDP) and guarantee.delta > 0:
        level = _largest_mu(guarantee.epsilon, guarantee.delta)
    elif isinstance(guarantee, ApproxDP):
        noise, level = LaplaceNoise, guarantee.epsilon
    else:
        raise MechanismError(
            f"No noise is known here for {guarantee!r}; PureDP is kept by Laplace noise, GaussianDP, ZCDP "
            "and ApproxDP by Gaussian noise."
        )
    guarantee.require_replace_one()
    MechanismError.unless(level > 1e-99, f"No noise keeps {guarantee!r}: it would be infinite.")
    needed = _spread(answers, noise)
    if given is not None:
        given = as_number("sensitivity", given)
        MechanismError.unless(0 < given < math.inf, f"sensitivity must be a finite number above 0, got {given:g}")
        MechanismError.unless(
            needed <= given * ENOUGH,
            f"A sensitivity of {given:g} will not do: two records change the answer by {needed:.10g} "
            f"({'L1' if noise is LaplaceNoise else 'L2'}); give at least that, or leave it out.",
        )
    spread = next(choice for choice in (given, stated, needed) if choice is not None)
    MechanismError.unless(spread > 0, "The answer is the same for every record; give the noise or a sensitivity.")
    return noise(spread / level)


def _largest_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-Gaussian DP is (epsilon, delta)-DP: the analytic Gaussian mechanism.

    delta_at rises with mu from 0 to 1. It is Phi(mu/2 - epsilon/mu) - exp(epsilon + log Phi(-mu/2 - epsilon/mu)), so it
    is off by rounding by some 1e-16 of the first term, times what stands in the exponent: 1e-14 is added to be safe.
    Where that hides a small delta, the total variation, which delta_at never exceeds, has all its digits.
    """
    MechanismError.unless(delta < 1, "Any release keeps delta 1: there is no least noise; give a smaller delta.")

    def keeps(mu: float) -> bool:
        first = float(scipy.special.ndtr(mu / 2 - epsilon / mu))
        exponent = 1 + epsilon - float(scipy.special.log_ndtr(-mu / 2 - epsilon / mu))
        rounded_up = GaussianDP(mu).delta_at(epsilon) + 1e-14 * first * exponent
        return min(rounded_up, GaussianDP(mu).total_variation * (1 + 1e-14)) <= delta

    low, high = 0.0, 1.0
    while keeps(high):
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high and high - low > 1e-13 * high:
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _spread(answers: FloatArray, noise: type[Noise]) -> float:
    """The largest distance between two answers: L1 for Laplace noise, L2 for Gaussian noise."""
    if answers.ndim == 1:
        return float(np.ptp(answers))
    return (VectorLaplace(answers, 1.0) if noise is LaplaceNoise else VectorGaussian(answers, 1.0)).spread


def _noisy(
    answers: FloatArray, noise: Noise, sensitivity: float | None, interval: tuple[float, float] | None, ends: Ends
) -> Mechanism:
    one_number = answers.ndim == 1
    if sensitivity is not None and sensitivity <= ENOUGH * _spread(answers, type(noise)):
        sensitivity = None  # that of these records: there is no more to promise
    MechanismError.unless(one_number or interval is None, "An interval is for queries that answer with one number.")
    if isinstance(noise, LaplaceNoise):
        if one_number:
            return Laplace(answers, scale=noise.scale, sensitivity=sensitivity, interval=interval, ends=ends)
        return VectorLaplace(answers, noise.scale, sensitivity)
    if isinstance(noise, GaussianNoise):
        if one_number:
            known = None if interval is not None and ends == "truncate" else sensitivity
            return Gaussian(answers, noise.sigma, sensitivity=known, interval=interval, ends=ends)
        return VectorGaussian(answers, noise.sigma, sensitivity=sensitivity)
    raise MechanismError(
        f"The noise is LaplaceNoise(scale), GaussianNoise(sigma) or a guarantee such as PureDP(1.0), not {noise!r}."
    )
