"""The first question: what does this release risk?

`assess` answers for a mechanism (exactly, between certified bounds, or by a marked estimate) and for a guarantee (the
worst over every mechanism that keeps it).
"""

from typing import Any, TypedDict, Unpack, overload

import numpy as np

from dprisk.attacks import NAMED, estimate, make
from dprisk.attacks.value import exact_value
from dprisk.errors import ThreatError, TooLargeError, fail, require
from dprisk.mechanisms import Mechanism
from dprisk.risks import Assessment, AttackRisk, GroupRisk, RecordRisk, Risk, WorstCase, computed
from dprisk.threat import Distances, Threat

__all__ = ["Assessment", "AttackRisk", "GroupRisk", "RecordRisk", "Risk", "WorstCase", "assess"]


class Settings(TypedDict, total=False):
    """What `assess` may be told besides."""

    runs: int | None
    alpha: float | None
    seed: np.random.Generator | int | None
    thorough: bool
    progress: estimate.Progress | None


@overload
def assess(
    subject: Mechanism, threat: Threat, *, attack: str | estimate.Guesser, **settings: Unpack[Settings]
) -> AttackRisk: ...
@overload
def assess(subject: Mechanism, threat: Threat, **settings: Unpack[Settings]) -> Risk: ...
@overload
def assess(subject: Any, threat: Threat, **settings: Unpack[Settings]) -> WorstCase: ...
def assess(
    subject: Any,
    threat: Threat,
    *,
    attack: str | estimate.Guesser | None = None,
    runs: int | None = None,
    alpha: float | None = None,
    seed: np.random.Generator | int | None = None,
    thorough: bool = False,
    progress: estimate.Progress | None = None,
) -> Risk | WorstCase | AttackRisk:
    """The best attacker's advantage and success against a mechanism, or against anything that keeps a guarantee.

    A mechanism: exact wherever there is a closed form or the outputs can be listed; between certified bounds for
    records that are numbers (`OnInterval`, with a `Density` as prior); otherwise a Monte Carlo estimate over so many
    `runs`, marked by `exact=False`, with intervals that are wrong with probability `alpha` (0.05). `seed` is a whole
    number (0) or a numpy Generator, and `progress` is told after each block of outputs how many are drawn, how many are
    wanted, and the advantage so far.
    A guarantee (or a dp_accounting event or privacy loss distribution, an Opacus accountant, an OpenDP measurement):
    every bound that applies, and the tightest; `thorough` solves larger optimisation problems too.
    With an `attack` (a name of `dprisk.attacks.NAMED`, or anything that guesses), what that one attacker gains from a
    mechanism: exact where its guesses are known as chances and the outputs can be listed or a formula applies,
    otherwise measured in so many `runs`.

    >>> from dprisk import GRR, Prior, PureDP, Threat
    >>> assess(GRR(100, epsilon=2.0), Threat(Prior.uniform(100)))
    Risk(advantage=0.0594532, success=0.0694532, baseline=0.01, exact)
    >>> assess(PureDP(1.0), Threat(Prior.zipf(10)))
    WorstCase(advantage<=0.156465, success<=0.374394, baseline=0.341417, by dprisk, theory 3.2)
    >>> assess(GRR(100, epsilon=2.0), Threat(Prior.zipf(100)), attack="PRIOR")
    AttackRisk(PRIOR, advantage=0, success=0.192776, exact)
    """
    if not isinstance(threat, Threat):
        fail(f"The second argument is a Threat, not {type(threat).__name__}.", ThreatError)
    given: dict[str, Any] = {"runs": runs, "alpha": alpha, "seed": seed}
    drawn = {name: value for name, value in given.items() if value is not None}
    settings = _checked(**drawn) if drawn else None
    if attack is not None:
        return _of_attack(attack, subject, threat, settings or _checked())
    try:
        found = computed(subject, threat, thorough)
    except TooLargeError:
        return Risk(subject, threat, estimate.estimate_best(subject, threat, *(settings or _checked()), progress))
    if drawn and not (isinstance(found, Risk) and found.enclosed is None):
        kind = "records that are numbers" if isinstance(found, Risk) else "a guarantee"
        fail(f"Nothing is drawn at random for {kind}: leave out {', '.join(drawn)}.")
    return found


def _of_attack(
    attack: str | estimate.Guesser,
    subject: Any,
    threat: Threat,
    settings: tuple[np.random.Generator, int | None, float],
) -> AttackRisk:
    kind = type(subject).__name__
    require(isinstance(subject, Mechanism), f"An attack is on a mechanism; a {kind} has no outputs to guess from.")
    threat.require_listed()
    name = NAMED[attack].name if isinstance(attack, str) else type(attack).__name__
    other_guesses = isinstance(threat.success, Distances) and threat.success.matrix.shape[0] != threat.prior.size
    if isinstance(attack, str) and other_guesses and not name.startswith("OPTIMAL"):
        fail(f"{name} guesses one of the records, but the rows of the given distances are other guesses.", ThreatError)
    guesser = make(attack, subject, threat) if isinstance(attack, str) else attack
    told = f"An attack is a name such as 'UNI' or has a method `guess`, not {attack!r}."
    require(callable(getattr(guesser, "guess", None)), told)
    value = exact_value(guesser, subject, threat)
    return AttackRisk(subject, threat, value or estimate.measure(guesser, subject, threat, *settings), name)


def _checked(
    runs: int | None = None, alpha: float = 0.05, seed: np.random.Generator | int = 0
) -> tuple[np.random.Generator, int | None, float]:
    """The settings of an estimate, checked also where nothing turns out to be estimated."""
    try:
        generator = np.random.default_rng(seed)
    except (TypeError, ValueError):
        fail(f"seed is a whole number of at least 0 or a numpy Generator, got {seed!r}")
    return generator, *estimate.checked(runs, alpha)
