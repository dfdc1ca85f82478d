"""The register of attacks: the names people know them by, what each needs, and one way to make them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprisk.attacks.estimate import Guesser, sets_guessed
from dprisk.attacks.heuristics import (
    AboveThreshold,
    Correlation,
    Estimation,
    Likeliest,
    MostCommon,
    RandomMember,
    Report,
)
from dprisk.attacks.optimal import OptimalAttack
from dprisk.attacks.simplified import SimplifiedAttack
from dprisk.errors import require
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
    """A name, a title, what it does in a line, and how to make it: `build` is called with what it `needs`, in order.

    Needs are "mechanism", "threat", "prior", or names of what else is passed to `make`.
    """

    name: str
    title: str
    explanation: str
    needs: tuple[str, ...]
    build: Callable[..., Guesser]

    def to_dict(self) -> dict[str, str]:
        """What there is to know about the attack, ready for JSON."""
        needs = ", ".join(self.needs) or "nothing"
        return {"name": self.name, "title": self.title, "explanation": self.explanation, "needs": needs}


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
    attack = entry.build(*(given[need] for need in entry.needs))
    rng = np.random.default_rng(0)
    sets_guessed(attack, mechanism.sample([int(threat.prior.support[0])], rng), threat, rng, groups=[0])
    return attack


def register(attack: NamedAttack) -> None:
    """Add an attack under a name of its own."""
    NAMED.add(attack)


_RANDOM_MEMBER = "guess any record that the report names, any at all if it names none"

# The thesis's names: section 5.3, and section 9.4 by protocol.
NAMED: Register[NamedAttack] = Register(
    "attack",
    (
        NamedAttack(
            "OPTIMAL",
            "best attacker",
            "guess what gains most by the output; no attack has a larger advantage (RAD Algorithm 1)",
            ("mechanism", "threat"),
            OptimalAttack,
        ),
        NamedAttack(
            "OPTIMAL-SUCCESS",
            "most successful attacker",
            "guess what is likeliest after the output; no attack succeeds more often",
            ("mechanism", "threat"),
            lambda mechanism, threat: OptimalAttack(mechanism, threat, maximise="success"),
        ),
        NamedAttack(
            "SIMPLIFIED",
            "simplified rule for DP-SGD",
            "guess by inner products with the records' gradients (RAD Algorithm 2)",
            ("mechanism", "threat"),
            SimplifiedAttack,
        ),
        NamedAttack(
            "SIMPLIFIED-NORMS",
            "simplified rule with norms",
            "the same for gradients of unequal lengths",
            ("mechanism", "threat"),
            lambda mechanism, threat: SimplifiedAttack(mechanism, threat, norms=True),
        ),
        NamedAttack("UNI", "report, uniform prior", "guess the reported record", (), Report),
        NamedAttack("TRUE", "report, true prior", "guess the reported record", (), Report),
        NamedAttack("PRIOR", "prior alone", "guess the likeliest record, whatever is reported", ("prior",), MostCommon),
        NamedAttack(
            "EST",
            "estimated frequencies",
            "guess the record that is commonest by everybody's reports",
            ("mechanism", "others"),
            Estimation,
        ),
        NamedAttack(
            "CORR",
            "correlation",
            "trust a report that is a plausible next step, otherwise draw one from a Markov model",
            ("model",),
            Correlation,
        ),
        NamedAttack("GRR", "report of randomised response", "guess the reported record", (), Report),
        NamedAttack("SS", "subset selection", _RANDOM_MEMBER, ("mechanism",), RandomMember),
        NamedAttack("SUE", "symmetric unary encoding", _RANDOM_MEMBER, ("mechanism",), RandomMember),
        NamedAttack("OUE", "optimised unary encoding", _RANDOM_MEMBER, ("mechanism",), RandomMember),
        NamedAttack(
            "SHE",
            "summation with histogram encoding",
            "guess the record of largest likelihood; serves every mechanism",
            ("mechanism",),
            Likeliest,
        ),
        NamedAttack(
            "THE",
            "thresholding with histogram encoding",
            "guess any record whose noisy entry exceeds a threshold",
            ("mechanism",),
            AboveThreshold,
        ),
        NamedAttack("BLH", "binary local hashing", _RANDOM_MEMBER, ("mechanism",), RandomMember),
        NamedAttack("OLH", "optimised local hashing", _RANDOM_MEMBER, ("mechanism",), RandomMember),
    ),
)
