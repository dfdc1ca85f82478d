"""Could somebody learn an attribute from my model? Many trainings, with and without each person, and attacks on each.

A learner trains; a classifier answers. Both may be anything: `OneByOne` takes a function that fits one model, and
`PrivateNetworks` trains many networks by DP-SGD at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dprisk.datasets import LabelledTable
from dprisk.errors import as_number, as_whole, fail, require
from dprisk.learning.attribute_attacks import ATTACKS, Attack, Seen
from dprisk.learning.attribute_risk import AttackFound, AttributeRisk
from dprisk.learning.attribute_values import (
    advantage_by_value,
    draw_participants,
    expected_variance,
    mean_by_betting,
    success_and_advantage,
)
from dprisk.learning.imputation import imputed
from dprisk.types import BoolArray, FloatArray, IntArray

Rows = tuple[FloatArray, IntArray]  # features and labels of some people
Progress = Callable[[int, int, str], None]  # told of trainings done, trainings planned, and what is known by now
MOST_OTHERS, MOST_PEOPLE, MOST_TESTED, TRAINED_ON = 4500, 1000, 5000, 5000


class Classifier(Protocol):
    """A trained model that answers questions."""

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """The probability of each class for each row of features: rows x classes."""


class Learner(Protocol):
    """Whoever trains."""

    def train(self, shared: Rows, extras: Sequence[Rows], classes: int, seed: int) -> Iterable[Classifier]:
        """A classifier for each of `extras`, trained on `shared` and that one, with randomness of its own."""


@dataclass(frozen=True)
class OneByOne:
    """Trains one model after the other, by a function of features, labels and a Generator.

    What the function returns has `probabilities`, or `predict_proba` and `classes_` as classifiers of scikit-learn.
    """

    fit: Callable[[FloatArray, IntArray, np.random.Generator], Any]

    def train(self, shared: Rows, extras: Sequence[Rows], classes: int, seed: int) -> Iterable[Classifier]:
        """Each model as it is asked for."""
        seeds = np.random.SeedSequence(seed).spawn(len(extras))
        for own, extra in zip(seeds, extras, strict=True):
            rows, labels = (np.concatenate(both) for both in zip(shared, extra, strict=True))
            fitted = self.fit(rows, labels, np.random.default_rng(own))
            if hasattr(fitted, "probabilities"):
                yield fitted
                continue
            told = f"What the function of OneByOne returns must have `predict_proba`; {type(fitted).__name__} has not."
            require(hasattr(fitted, "predict_proba"), told)
            yield _Fitted(fitted, classes)


@dataclass(frozen=True)
class _Fitted:
    """A classifier of scikit-learn; a class that was not in its data has probability 0."""

    model: Any
    classes: int

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """The probability of each class for each row."""
        found = np.zeros((len(rows), self.classes))
        found[:, self.model.classes_] = self.model.predict_proba(rows)
        return found


def infer_attributes(
    table: LabelledTable,
    learner: Learner,
    *,
    others: int | None = None,
    people: int | None = None,
    targets: int | None = None,
    trainings: int = 200,
    attacks: Mapping[str, Attack] = ATTACKS,
    imputer: Any = None,
    alpha: float = 0.05,
    seed: int = 0,
    progress: Progress | None = None,
) -> AttributeRisk:
    """Measure what attacks on trained models find out about somebody's sensitive attribute, and what taking part adds.

    From the table, at random: `others` are in every training and known to the attacker, who learns from them how
    attributes go together; of a list of `people`, `targets` take part in each training, drawn anew; the model's
    accuracy is told on up to 5,000 more. Left out, the list has 1000 people or a fifth of the table, half of them take
    part each time, and `others` are half of the rest, at most 4,500. With others=49_000 and targets=1 it is the
    thesis's setting.

    How success and advantage are defined and why the intervals hold: `dprisk.learning.attribute_values`. They are about
    this list of people and these others. After Ctrl-C the answer is about the trainings that were done.
    """
    trainings, alpha = as_whole("trainings", trainings, least=2), as_number("alpha", alpha)
    seed = as_whole("seed", seed, least=0)
    require(0 < alpha < 1, f"alpha must lie strictly between 0 and 1, got {alpha}")
    _require_kinds(table, learner, attacks)
    sizes = _sizes(table, others, people, targets)
    rng = np.random.default_rng(seed)
    drawn = table.sample(sum(sizes[:2]) + sizes[3], rng)
    base, listed, tested = _parts(drawn, sizes[0], sizes[1])
    took_part = [draw_participants(sizes[1], sizes[2], rng) for _ in range(trainings)]
    study = _Study(base, listed, tested, attacks, imputed(listed, base, imputer))
    study.run(learner, took_part, int(rng.integers(1 << 63)), progress)
    return study.answer(learner, trainings, sizes[2], alpha)


def _require_kinds(table: Any, learner: Any, attacks: Any) -> None:
    kind = type(table).__name__
    require(
        isinstance(table, LabelledTable), f"The table is a LabelledTable, as LabelledTable.of makes it; not {kind}."
    )
    told = "Whoever trains is PrivateNetworks(...), or OneByOne(function of features, labels and a Generator)"
    require(hasattr(learner, "train"), f"{told}; {type(learner).__name__} is neither.")
    require(isinstance(attacks, Mapping), "`attacks` is a mapping from the name of each attack to its function.")
    require(len(attacks) > 0, "Give at least one attack.")


def _sizes(table: LabelledTable, others: int | None, people: int | None, targets: int | None) -> tuple[int, ...]:
    """How many others, people on the list, targets and people to test on there are."""
    listed = min(MOST_PEOPLE, table.size // 5) if people is None else as_whole("people", people, least=2)
    chosen = max(1, listed // 2) if targets is None else as_whole("targets", targets)
    base = min(MOST_OTHERS, (table.size - listed) // 2) if others is None else as_whole("others", others)
    require(base > 0 and listed > 1, f"{table.name} has {table.size} people, which are too few.")
    require(chosen < listed, f"targets, the people who take part, must be fewer than the {listed} people listed.")
    tested = min(MOST_TESTED, table.size - base - listed)
    if tested < 1:
        fail(f"{table.name} has {table.size:,} people; {base:,} others and {listed:,} listed leave nobody to test on.")
    return base, listed, chosen, tested


def _parts(drawn: LabelledTable, others: int, people: int) -> tuple[LabelledTable, LabelledTable, LabelledTable]:
    rows = np.arange(drawn.size)
    return drawn.take(rows[:others]), drawn.take(rows[others : others + people]), drawn.take(rows[others + people :])


class _Study:
    """Trainings and what came of them."""

    def __init__(
        self,
        base: LabelledTable,
        listed: LabelledTable,
        tested: LabelledTable,
        attacks: Mapping[str, Attack],
        imputation: FloatArray,
    ) -> None:
        self.base, self.listed, self.tested, self.attacks, self.imputation = base, listed, tested, attacks, imputation
        n, values = listed.size, len(listed.values)
        self.shares = np.bincount(base.secret, minlength=values) / base.size
        self.questions = np.concatenate([listed.features(np.full(n, value)) for value in range(values)])
        self.rows = listed.features()
        few = np.arange(min(base.size, TRAINED_ON))
        self.accuracy_on = [(part.features(), part.label) for part in (base.take(few), tested)]
        self.overall: dict[str, list[tuple[float, float]]] = {name: [] for name in attacks}
        self.by_value: dict[str, list[FloatArray]] = {name: [] for name in attacks}
        self.accuracies: list[list[float]] = []

    def run(self, learner: Learner, took_part: Sequence[BoolArray], seed: int, progress: Progress | None) -> None:
        """Train, ask, attack; until all trainings are done or somebody stops it."""
        shared = self.base.features(), self.base.label
        extras = [(self.rows[chosen], self.listed.label[chosen]) for chosen in took_part]
        try:
            trained = learner.train(shared, extras, len(self.base.classes), seed)
            for done, (chosen, model) in enumerate(zip(took_part, trained, strict=True), start=1):
                self._attack(model, chosen)
                if progress is not None:
                    progress(done, len(took_part), f"test accuracy {np.mean(self.accuracies, axis=0)[1]:.3f}")
        except KeyboardInterrupt:
            if len(self.accuracies) < 2:
                raise

    def _attack(self, model: Classifier, chosen: BoolArray) -> None:
        listed = self.listed
        shape = len(listed.values), listed.size, len(listed.classes)
        answers = np.asarray(model.probabilities(self.questions), dtype=float)
        require(answers.shape == (shape[0] * shape[1], shape[2]), f"A model must give {shape[2]} probabilities a row.")
        require(bool(np.isfinite(answers).all()), "A model gave a probability that is no number.")
        seen = Seen(answers.reshape(shape), listed.label, self.imputation, self.shares)
        accuracies = [
            float((model.probabilities(rows).argmax(axis=1) == label).mean()) for rows, label in self.accuracy_on
        ]
        for name, attack in self.attacks.items():
            guesses = np.asarray(attack(seen))
            require(guesses.shape == listed.secret.shape, f"The attack {name} must guess a value for each person.")
            right = guesses == listed.secret
            self.overall[name].append(success_and_advantage(right, chosen))
            self.by_value[name].append(advantage_by_value(right, chosen, listed.secret, len(listed.values)))
        self.accuracies.append(accuracies)

    def answer(self, learner: Learner, planned: int, targets: int, alpha: float) -> AttributeRisk:
        """What the trainings showed; intervals of one kind hold together for all attacks, and for all values."""
        n, each = self.listed.size, alpha / len(self.attacks)
        widest, variance = max(n / targets, n / (n - targets)) / 2, expected_variance(n, targets)
        counts = np.bincount(self.listed.secret, minlength=len(self.listed.values))
        found = []
        for name in self.attacks:
            done = len(self.accuracies)
            success, gain = np.array(self.overall[name][:done]).T
            parts = np.array(self.by_value[name][:done]).T
            by_value = {
                value: mean_by_betting(part, -widest, widest, each / len(parts), variance * n / count, planned)
                for value, part, count in zip(self.listed.values, parts, counts, strict=True)
                if count > 0
            }
            rates = (
                mean_by_betting(success, 0.0, 1.0, each, variance, planned),
                mean_by_betting(gain, -1.0, 1.0, each, variance, planned),
            )
            m = n - targets + 1
            on_others = rates[0].mean - rates[1].mean * m / (m - 1)
            found.append(AttackFound(name, *rates, min(1.0, max(0.0, on_others)), by_value))
        trained, tested = np.mean(self.accuracies, axis=0).tolist()
        return AttributeRisk(
            data=self.base.name,
            note=self.base.note,
            sensitive=self.base.sensitive,
            others=self.base.size,
            people=n,
            targets=targets,
            trainings=len(self.accuracies),
            planned=planned,
            alpha=alpha,
            found=tuple(found),
            train_accuracy=trained,
            test_accuracy=tested,
            commonest_class=float(np.bincount(self.tested.label).max() / self.tested.size),
            guarantee=getattr(learner, "guarantee", None),
            delta=getattr(learner, "delta", AttributeRisk.delta),
        )
