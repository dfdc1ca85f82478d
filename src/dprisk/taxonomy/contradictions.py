"""What cannot be meant at once in a threat model: each pair has its sentence, told at the line of the second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dprisk.taxonomy.model import Attacker, ThreatModel

Look = Callable[[ThreatModel, Attacker], bool]


@dataclass(frozen=True)
class Contradiction:
    """Two statements of an attacker that exclude each other: how to see it, the key at fault, and the sentence."""

    is_there: Look
    key: str
    told: str


def _has(dimension: str, *options: str) -> Look:
    """Whether one of the options is chosen."""
    return lambda model, attacker: not set(options).isdisjoint(model.options(attacker, dimension))


def _only(dimension: str, *options: str) -> Look:
    """Whether something is chosen, and nothing else."""
    return lambda model, attacker: set() < set(model.options(attacker, dimension)) <= set(options)


def _both(*parts: Look) -> Look:
    return lambda model, attacker: all(part(model, attacker) for part in parts)


def _knows_something(_: ThreatModel, attacker: Attacker) -> bool:
    return attacker.knows not in (None, "none")


CONTRADICTIONS = (
    Contradiction(
        _both(_has("goal", "membership"), lambda _, it: it.knows is not None and it.knows != "all"),
        "knows",
        "must be all with the goal membership: who asks whether a record took part knows that record.",
    ),
    Contradiction(
        _both(_has("goal", "membership"), _only("dataset_knowledge", "none")),
        "dataset_knowledge",
        "is none, but the goal is membership: who asks whether a record took part knows that record.",
    ),
    Contradiction(
        _both(_has("goal", "attribute", "reconstruction", "singling-out"), lambda _, it: it.knows == "all"),
        "knows",
        "is all, so that nothing is left to guess; with that the goal is membership alone.",
    ),
    Contradiction(
        _both(_knows_something, _only("dataset_knowledge", "none")),
        "knows",
        "names columns of the target, but `dataset_knowledge` is none; say chosen or random there.",
    ),
    Contradiction(
        lambda _, it: it.knows not in (None, "none", "all") and bool(set(it.knows) & set(it.wants)),
        "wants",
        "names a column that the attacker knows.",
    ),
    Contradiction(
        _both(_only("goal", "attribute"), lambda _, it: not it.wants),
        "goal",
        "is attribute, but `wants` does not say which columns.",
    ),
    Contradiction(
        _both(_only("goal", "membership"), lambda _, it: bool(it.wants)),
        "wants",
        "names columns, but the goal is membership: leave it out, or choose attribute.",
    ),
    Contradiction(
        _both(_has("metric", "tpr-at-fpr"), lambda model, it: not _has("goal", "membership")(model, it)),
        "metric",
        "is a true positive rate, which is for the goal membership.",
    ),
    Contradiction(
        _both(_has("metric", "tpr-at-fpr"), lambda _, it: it.fpr is None),
        "metric",
        "is tpr-at-fpr, but `fpr` does not say at which false positive rate.",
    ),
    Contradiction(
        _both(lambda _, it: it.fpr is not None, lambda model, it: not _has("metric", "tpr-at-fpr")(model, it)),
        "fpr",
        "goes with the metric tpr-at-fpr.",
    ),
    Contradiction(
        _both(_has("metric", "within-distance"), lambda _, it: it.within is None),
        "metric",
        "is within-distance, but `within` does not say how near.",
    ),
    Contradiction(
        _both(lambda _, it: it.within is not None, _only("metric", "exact-match", "tpr-at-fpr")),
        "within",
        "is a distance, but the metric counts exact matches only; say within-distance there.",
    ),
    Contradiction(
        _both(_only("goal", "membership"), _has("metric", "mean-squared-error", "within-distance")),
        "metric",
        "measures how near a guess is, but the goal membership guesses nothing.",
    ),
    Contradiction(
        _both(lambda _, it: it.target is not None, _only("target_source", "drawn")),
        "target",
        "names a record, but `target_source` is drawn; say chosen there.",
    ),
    Contradiction(
        _both(_has("privacy_unit", "group"), lambda model, _: (model.records_per_unit or 1) < 2),
        "privacy_unit",
        "is group, but `records_per_unit` in [crafter] does not say how many records a group has.",
    ),
    Contradiction(
        lambda model, it: any(
            (choice := model.choice(it, name)) is not None and "other" in choice.options and not choice.text
            for name in ("baseline", "metric")
        ),
        "metric",
        'is other, or the baseline is: say which in words, as { option = "other", text = "..." }.',
    ),
)


def require_consistent(model: ThreatModel) -> None:
    """Refuse the first contradiction that is found, at its line."""
    if model.section is None:
        return
    for attacker in model.attackers:
        for it in CONTRADICTIONS:
            if it.is_there(model, attacker):
                model.refuse(attacker, it.key, it.told)
