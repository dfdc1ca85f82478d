"""The register of attacks: the names people know them by, what each needs, and one way to make them."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dprisk.attacks import heuristics
from dprisk.attacks.estimate import Guesser, sets_guessed
from dprisk.attacks.optimal import OptimalAttack
from dprisk.attacks.simplified import SimplifiedAttack
from dprisk.errors import DpriskError, MechanismError, require
from dprisk.exact import require_match
from dprisk.mechanisms import Mechanism
from dprisk.registers import Register
from dprisk.threat.threat import Threat

MORE = {
    "others": "the records of everybody else, by their numbers",
    "model": "a MarkovModel of how records follow each other",
}  # that attacks need beyond mechanism, threat and prior


@dataclass(frozen=True)
class NamedAttack:
    """A name, a title, what it does in a line, and how to make it."""

    name: str
    title: str
    explanation: str
    build: Callable[..., Guesser]

    @property
    def needs(self) -> tuple[str, ...]:
        """What it is made of, by the parameters of `build`: mechanism, threat, prior, or what else `make` is given."""
        parameters = inspect.signature(self.build).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.default is parameter.empty)


def make(name: str, mechanism: Mechanism, threat: Threat, **more: Any) -> Guesser:
    """An attack by its name, for a mechanism and a threat; refused if it is not for the mechanism's outputs.

    `more` is what an attack needs beyond these two: `others` for EST, `model` for CORR.

    >>> from dprisk import OUE, Prior
    >>> attack = make("oue", OUE(4, 1.0), Threat(Prior.uniform(4)))
    >>> attack.guess([[False, True, False, False]], np.random.default_rng(0))
    array([1])
    """
    require_match(mechanism, threat)
    entry = NAMED[name]
    given = {"mechanism": mechanism, "threat": threat, "prior": threat.prior} | more
    for need in entry.needs:
        what = MORE.get(need, "more than a mechanism and a threat")
        require(need in given, f"The attack {entry.name} needs {what}; pass it as `{need}`.")
    for extra in more:
        require(extra in entry.needs, f"The attack {entry.name} takes no `{extra}`.")
    try:
        return _tried(entry, given)
    except MechanismError as problem:
        why = f"The attack {entry.name} does not fit {mechanism.brief()}. {problem}"
        raise MechanismError(f"{why} Attacks that fit: {', '.join(fitting(mechanism, threat))}.") from problem


def fitting(mechanism: Mechanism, threat: Threat) -> list[str]:
    """The names of the attacks that can be made of a mechanism and a threat alone, and guess from its outputs."""
    given = {"mechanism": mechanism, "threat": threat, "prior": threat.prior}
    found = []
    for entry in NAMED:
        if set(entry.needs) <= set(given):
            with suppress(DpriskError):
                _tried(entry, given)
                found.append(entry.name)
    return found


def _tried(entry: NamedAttack, given: dict[str, Any]) -> Guesser:
    """The attack, after one guess."""
    attack = entry.build(*(given[need] for need in entry.needs))
    rng, threat = np.random.default_rng(0), given["threat"]
    outputs = given["mechanism"].sample([int(threat.prior.support[0])], rng)
    sets_guessed(attack, outputs, threat, rng, groups=[0])
    return attack


def register(attack: NamedAttack) -> None:
    """Add an attack under a name of its own."""
    NAMED.register(attack)


_REPORTED, _MEMBER = "guess the reported record", "guess any record that the report names, any at all if it names none"

# The best ones, and the thesis's by its names: section 5.3, and section 9.4 by protocol.
NAMED: Register[NamedAttack] = Register(
    "attack",
    NamedAttack("OPTIMAL", "best attacker", "no attack gains more (RAD Algorithm 1)", OptimalAttack),
    NamedAttack(
        "OPTIMAL-SUCCESS",
        "most successful attacker",
        "guess what is likeliest after the output; no attack is right more often",
        partial(OptimalAttack, maximise="success"),
    ),
    NamedAttack(
        "SIMPLIFIED",
        "simplified rule for DP-SGD",
        "guess by inner products with the records' gradients (RAD Algorithm 2)",
        SimplifiedAttack,
    ),
    NamedAttack(
        "SIMPLIFIED-NORMS",
        "simplified rule for DP-SGD, with norms",
        "the same for gradients of unequal lengths",
        partial(SimplifiedAttack, norms=True),
    ),
    NamedAttack("UNI", "report, uniform prior", _REPORTED, heuristics.Report),
    NamedAttack("TRUE", "report, true prior", _REPORTED, heuristics.Report),
    NamedAttack("PRIOR", "prior alone", "guess the likeliest record, whatever is reported", heuristics.MostCommon),
    NamedAttack(
        "EST",
        "estimated frequencies",
        "guess the record that is commonest by everybody's reports",
        heuristics.Estimation,
    ),
    NamedAttack(
        "CORR",
        "correlation",
        "trust a report that is a plausible next step, otherwise draw one from a Markov model",
        heuristics.Correlation,
    ),
    NamedAttack("GRR", "randomised response", _REPORTED, heuristics.Report),
    NamedAttack("SS", "subset selection", _MEMBER, heuristics.RandomMember),
    NamedAttack("SUE", "symmetric unary encoding", _MEMBER, heuristics.RandomMember),
    NamedAttack("OUE", "optimised unary encoding", _MEMBER, heuristics.RandomMember),
    NamedAttack("SHE", "summed histogram encoding", "guess the record of largest likelihood", heuristics.Likeliest),
    NamedAttack("THE", "thresholded histogram encoding", "guess any entry that is large", heuristics.AboveThreshold),
    NamedAttack("BLH", "binary local hashing", _MEMBER, heuristics.RandomMember),
    NamedAttack("OLH", "optimised local hashing", _MEMBER, heuristics.RandomMember),
)
