"""Attribute inference against models that only answer: attacks written out, the value of a training, known cases."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk.datasets import LabelledTable
from dprisk.errors import DpriskError
from dprisk.learning.attribute_attacks import ATTACKS, Seen
from dprisk.learning.attribute_risk import AttributeRisk
from dprisk.learning.attribute_study import Classifier, OneByOne, Rows, infer_attributes
from dprisk.learning.attribute_values import (
    advantage_by_value,
    expected_variance,
    mean_by_betting,
    success_and_advantage,
)
from dprisk.learning.imputation import imputed
from dprisk.types import FloatArray, IntArray


def people(size: int = 400, values: int = 3, seed: int = 0) -> LabelledTable:
    """People told apart by a number; the secret goes with a category, and the label with neither."""
    rng = np.random.default_rng(seed)
    secret = rng.choice(values, size, p=np.arange(values, 0, -1) / sum(range(1, values + 1)))
    hint = np.where(rng.random(size) < 0.8, secret, rng.integers(values, size=size))
    known = {"number": np.arange(size) / size, "hint": hint}
    names = tuple(f"value {value}" for value in range(values))
    label = rng.integers(2, size=size)
    return LabelledTable("made up", known, {"hint": values}, "secret", secret, names, label, ("no", "yes"))


class Memoriser:
    """Is sure of the label of the rows that it was trained on, and knows nothing of others."""

    def __init__(self, rows: FloatArray, labels: IntArray) -> None:
        self.seen = {row.tobytes(): label for row, label in zip(rows, labels, strict=True)}

    def probabilities(self, rows: FloatArray) -> FloatArray:
        told = np.full((len(rows), 2), 0.5)
        for place, row in enumerate(rows):
            if (label := self.seen.get(row.tobytes())) is not None:
                told[place] = np.eye(2)[label]
        return told


def memorise_sometimes(rows: FloatArray, labels: IntArray, rng: np.random.Generator, chance: float = 1.0) -> Memoriser:
    return Memoriser(rows, labels) if rng.random() < chance else Memoriser(rows[:0], labels[:0])


def written_out(name: str, answers: FloatArray, label: int, imputation: FloatArray, shares: FloatArray) -> int:
    """Attacks 6 to 9 of the thesis for one person, as it writes them; `answers` is values x classes."""
    predicted = [int(np.argmax(answer)) for answer in answers]
    matching = [value for value, guess in enumerate(predicted) if guess == label]
    confidences = [max(answer) for answer in answers]
    scores: Sequence[float]
    match name:
        case "CSMIA" if len(matching) == 1:
            return matching[0]
        case "CSMIA" if not matching:
            return confidences.index(min(confidences))
        case "CSMIA":
            return max(matching, key=lambda value: confidences[value])
        case "majority":
            scores = list(shares)
        case "imputation":
            scores = list(imputation)
        case "Yeom":
            scores = [share * answer[label] for share, answer in zip(shares, answers, strict=True)]
        case _:
            scores = [chance * answer[label] for chance, answer in zip(imputation, answers, strict=True)]
    return scores.index(max(scores))


@given(seed=st.integers(0, 10_000), values=st.integers(2, 5), classes=st.integers(2, 4))
def test_attacks_are_those_of_the_thesis(seed: int, values: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    answers = rng.dirichlet(np.ones(classes), size=(values, 6))
    label, imputation = rng.integers(classes, size=6), rng.dirichlet(np.ones(values), size=6)
    shares = rng.dirichlet(np.ones(values))
    seen = Seen(answers, label, imputation, shares)
    for name, attack in ATTACKS.items():
        expected = [written_out(name, answers[:, who], label[who], imputation[who], shares) for who in range(6)]
        assert attack(seen).tolist() == expected, name


@given(seed=st.integers(0, 10_000), n=st.integers(2, 6), data=st.data())
def test_the_value_of_a_training_is_unbiased(seed: int, n: int, data: st.DataObject) -> None:
    """Against RAD Definition 4.1 written out: every D_-, every pair of records of the prior, any attack."""
    k = data.draw(st.integers(1, n - 1))
    rng = np.random.default_rng(seed)
    trained_on = [frozenset(chosen) for chosen in combinations(range(n), k)]
    right = {chosen: rng.random(n) < rng.random() for chosen in trained_on}  # whom the attack is right about
    mask = {chosen: np.isin(np.arange(n), list(chosen)) for chosen in trained_on}
    values = [success_and_advantage(right[chosen], mask[chosen]) for chosen in trained_on]
    successes, advantages = [], []
    for others in map(frozenset, combinations(range(n), k - 1)):
        prior = [z for z in range(n) if z not in others]
        on_participants = [right[others | {z}][z] for z in prior]
        on_others = [right[others | {taking_part}][z] for taking_part in prior for z in prior]
        successes.append(np.mean(on_participants))
        advantages.append(np.mean(on_participants) - np.mean(on_others))
    assert np.mean(values, axis=0) == pytest.approx([np.mean(successes), np.mean(advantages)], abs=1e-12)


@given(seed=st.integers(0, 10_000), n=st.integers(2, 6), data=st.data())
def test_the_parts_by_value_are_unbiased(seed: int, n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n - 1))
    rng = np.random.default_rng(seed)
    secret = rng.integers(2, size=n)
    with_him, without = rng.random(n) < 0.7, rng.random(n) < 0.4  # right about each who took part, and who did not
    found = []
    for chosen in combinations(range(n), k):
        took_part = np.isin(np.arange(n), chosen)
        found.append(advantage_by_value(np.where(took_part, with_him, without), took_part, secret, 3))
        assert np.all(np.abs(found[-1]) <= max(n / k, n / (n - k)) / 2 + 1e-12)
    for value in range(3):
        mine = secret == value
        expected = with_him[mine].mean() - without[mine].mean() if mine.any() else 0.0
        assert np.mean(found, axis=0)[value] == pytest.approx(expected, abs=1e-12)


def test_one_target_a_training_gives_the_one_run_value_of_the_theory() -> None:
    right = np.array([True, False, True, True])
    success, advantage = success_and_advantage(right, np.array([True, False, False, False]))
    assert success == 1.0
    assert advantage == pytest.approx(1.0 - right.mean())


@pytest.mark.slow
@pytest.mark.parametrize("law", ["coins", "rare", "steady"])
def test_intervals_by_betting_keep_their_word(law: str) -> None:
    """Also watched after every value, where intervals for a fixed number would fail."""
    rng, missed, runs = np.random.default_rng(1), 0, 300
    for _ in range(runs):
        match law:
            case "coins":
                values, mean = np.where(rng.random(40) < 0.7, 0.3, -0.7), 0.0
            case "rare":
                values, mean = np.where(rng.random(40) < 0.03, 0.97, -0.03), 0.0
            case _:
                values, mean = rng.uniform(-0.1, 0.1, 40), 0.0
        ends = [mean_by_betting(values[:stop], -1.0, 1.0, 0.2, 0.01, 40).interval for stop in (10, 20, 40)]
        missed += any(not low <= mean <= high for low, high in ends)
    assert missed / runs <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / runs)


def test_intervals_by_betting_shrink_where_values_hardly_vary() -> None:
    steady = np.random.default_rng(0).uniform(-0.01, 0.01, 200)
    low, high = mean_by_betting(steady, -1.0, 1.0, 0.05, expected_variance(1000, 500), 200).interval
    assert -0.03 < low < 0 < high < 0.03
    assert mean_by_betting(np.ones(50), 0.0, 1.0, 0.05, 0.01, 50).interval[1] == 1.0
    assert mean_by_betting(np.ones(50), 0.0, 1.0, 0.05, 0.01, 50).interval[0] > 0.9


@pytest.mark.parametrize(("chance", "trainings"), [(1.0, 30), (0.5, 120)])
def test_a_model_that_memorises_is_found_out(chance: float, trainings: int) -> None:
    """Its RAD is known: where it memorised, CSMIA is right about all who took part, otherwise it guesses value 0.

    All targets of a training are given away together or not at all, so that only trainings count as independent.
    """
    table = people()
    learner = OneByOne(lambda rows, labels, rng: memorise_sometimes(rows, labels, rng, chance))
    found = infer_attributes(table, learner, others=200, people=100, trainings=trainings, seed=3)
    listed = table.sample(400, np.random.default_rng(3)).secret[200:300]  # others, listed, and those to test on
    true = chance * (1 - 1 / 51) * np.mean(listed != 0)
    low, high = found["CSMIA"].advantage.interval
    assert 0 < low <= true <= high
    success = np.mean(listed == 0) + chance * np.mean(listed != 0)
    low, high = found["CSMIA"].success.interval
    assert low <= success <= high
    by_value = found["CSMIA"].by_value
    assert by_value["value 0"].interval[0] <= 0 <= by_value["value 0"].interval[1]
    assert by_value["value 1"].interval[0] <= chance <= by_value["value 1"].interval[1]
    assert "On people whose secret is value" in found.sentence()
    assert "Nothing is known of what the training promises" in found.sentence()


def test_intervals_over_many_studies_hold_the_known_advantage() -> None:
    """The whole way, again and again: others and list stay, as the intervals are about them."""
    table, missed = people(60), 0
    right = table.secret == 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        gains = []
        for _ in range(25):
            took_part = np.zeros(60, dtype=bool)
            took_part[rng.permutation(60)[:20]] = True
            gains.append(success_and_advantage(right | (took_part & (rng.random() < 0.3)), took_part)[1])
        low, high = mean_by_betting(np.array(gains), -1.0, 1.0, 0.1, expected_variance(60, 20), 25).interval
        missed += not low <= 0.3 * (1 - 1 / 41) * np.mean(~right) <= high
    assert missed <= 200 * 0.1 + 3 * np.sqrt(200 * 0.09)


def test_a_model_that_ignores_its_data_gives_nothing_away() -> None:
    class Constant:
        def probabilities(self, rows: FloatArray) -> FloatArray:
            return np.tile([0.3, 0.7], (len(rows), 1))

    found = infer_attributes(people(), OneByOne(lambda *_: Constant()), others=200, people=100, trainings=60)
    for attack in found.found:
        low, high = attack.advantage.interval
        assert low <= 0 <= high
        assert "gains at least" not in found.sentence()
    assert found["Yeom"].success.mean == found["majority"].success.mean  # the model tells nothing: the commonest value
    assert found["WCAI"].success.mean == found["imputation"].success.mean
    assert found["imputation"].success.mean > found["majority"].success.mean + 0.1


def test_imputation_succeeds_often_and_gains_nothing() -> None:
    """On real data that come with scikit-learn: a secret that others' data tell, and a model that is not private."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    loaded = load_breast_cancer()
    columns = {f"c{place}": loaded.data[:, place] for place in (0, 1, 4, 5)}
    secret = np.digitize(loaded.data[:, 2], np.quantile(loaded.data[:, 2], [0.5, 0.8]))
    table = {**columns, "perimeter": [("small", "middle", "large")[code] for code in secret], "ill": loaded.target}
    named = LabelledTable.of(table, "perimeter", "ill", numbers=tuple(columns), name="tumours")
    learner = OneByOne(lambda rows, labels, _: LogisticRegression().fit(rows, labels))
    found = infer_attributes(named, learner, others=250, people=200, trainings=100)
    assert found["imputation"].success.interval[0] > 0.7
    low, high = found["imputation"].advantage.interval
    assert -0.08 < low <= 0 <= high < 0.08
    assert found.train_accuracy > 0.85 > found.commonest_class
    assert found.bound is None


def test_overfitting_without_noise_is_found_out() -> None:
    from sklearn.tree import DecisionTreeClassifier

    learner = OneByOne(lambda rows, labels, _: DecisionTreeClassifier(random_state=0).fit(rows, labels))
    found = infer_attributes(people(), learner, others=50, people=200, trainings=80)
    assert found.train_accuracy == 1.0
    assert found["WCAI"].advantage.interval[0] > 0 or found["CSMIA"].advantage.interval[0] > 0


def test_the_same_seed_gives_the_same_answer_and_another_one_another() -> None:
    def studied(seed: int) -> dict[str, object]:
        learner = OneByOne(lambda rows, labels, rng: memorise_sometimes(rows, labels, rng, 0.5))
        return infer_attributes(people(), learner, others=100, people=50, trainings=6, seed=seed).to_dict()

    assert studied(1) == studied(1)
    assert studied(1) != studied(2)


def test_one_target_a_training_is_the_papers_setting() -> None:
    learner = OneByOne(lambda rows, labels, rng: memorise_sometimes(rows, labels, rng))
    found = infer_attributes(people(), learner, others=100, people=50, targets=1, trainings=60)
    assert found["CSMIA"].success.mean == 1.0
    assert found["CSMIA"].advantage.interval[0] > 0.2


def test_stopping_gives_what_was_done_by_then() -> None:
    class Stopped:
        def train(self, shared: Rows, extras: Sequence[Rows], classes: int, seed: int) -> Iterable[Classifier]:
            for number, extra in enumerate(extras):
                if number == 5:
                    raise KeyboardInterrupt
                yield Memoriser(*extra)

    told: list[tuple[int, int, str]] = []
    found = infer_attributes(
        people(), Stopped(), others=100, people=50, trainings=9, progress=lambda *line: told.append(line)
    )
    assert (found.trainings, found.planned, found.complete) == (5, 9, False)
    assert "5 trainings (stopped, of 9)" in found.about
    assert [line[:2] for line in told] == [(done, 9) for done in range(1, 6)]


def test_the_answer_says_everything_as_data_too() -> None:
    learner = OneByOne(lambda rows, labels, rng: memorise_sometimes(rows, labels, rng))
    found = infer_attributes(people(), learner, others=100, people=50, trainings=10)
    told = found.to_dict()
    assert [line["attack"] for line in told["attacks"]] == list(ATTACKS)
    assert told["CSMIA advantage"] == found["CSMIA"].advantage.mean
    assert [line["record"] for line in told["by_value"]] == ["value 0", "value 1", "value 2"]
    assert [row[0] for row in found.rows] == [*ATTACKS, "model's label"]
    assert len(found.picture().bars) == len(ATTACKS)
    with pytest.raises(DpriskError, match="There was no attack 'yeom'; there were majority, imputation, Yeom"):
        found["yeom"]


def test_a_promise_bounds_every_attack() -> None:
    from dprisk import dp_sgd

    learner = OneByOne(lambda rows, labels, rng: memorise_sometimes(rows, labels, rng))
    object.__setattr__(learner, "guarantee", dp_sgd(1.0, 0.01, 100))
    found = infer_attributes(people(), learner, others=100, people=50, trainings=10)
    assert isinstance(found, AttributeRisk)
    assert found.bound is not None
    assert found.epsilon is not None
    assert 0 < found.bound < 0.3
    assert found.rows[-2][0] == "any attack"
    assert "by what the training promises none gains more than" in found.sentence()


def test_imputation_gives_nothing_to_values_that_nobody_has() -> None:
    table = people(100)
    others = table.take(np.flatnonzero(table.secret != 2))
    found = imputed(table, others)
    assert np.all(found[:, 2] == 0)
    assert found.sum(axis=1) == pytest.approx(np.ones(100))
    alone = imputed(table, table.take(np.flatnonzero(table.secret == 1)))
    assert np.all(alone == np.eye(3)[1])


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"people": 50, "targets": 50}, "targets, the people who take part, must be fewer than the 50 people listed"),
        ({"others": 390, "people": 10}, "leave nobody to test on"),
        ({"others": 500}, "made up has 400 people"),
        ({"trainings": 1}, "trainings must be a whole number of at least 2"),
        ({"alpha": 1.5}, "alpha must lie strictly between 0 and 1"),
        ({"targets": 0}, "targets must be a whole number of at least 1"),
        ({"people": 1}, "people must be a whole number of at least 2"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"attacks": ["Yeom"]}, "a mapping from the name of each attack"),
        ({"table": {"age": [1, 2]}}, "as LabelledTable.of makes it; not dict"),
        ({"learner": len}, "OneByOne.*builtin_function_or_method is neither"),
        ({}, "must have `predict_proba`; NoneType has not"),
    ],
)
def test_what_cannot_be_studied_is_refused(settings_: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"table": people(), "learner": OneByOne(lambda *_: None)} | settings_
    with pytest.raises(DpriskError, match=message):
        infer_attributes(**asked)


def test_columns_that_cannot_be_used_are_refused() -> None:
    table: dict[str, Any] = {"age": [31.0, 54.0], "job": ["baker", "nurse"], "smokes": ["no", "yes"]}
    assert LabelledTable.of(table, "smokes", "job", numbers="age").known["age"].tolist() == [31.0, 54.0]
    with pytest.raises(DpriskError, match="'job' is to be learned, so that it cannot be the secret too"):
        LabelledTable.of(table, "job", "job", numbers=["age"])
    with pytest.raises(DpriskError, match="age has 1 entries that are no finite number"):
        LabelledTable.of(table | {"age": [31.0, float("nan")]}, "smokes", "job", numbers=["age"])


def test_others_are_people_who_did_not_take_part() -> None:
    """Of two people one takes part, and only about that one the attack is right; the advantage is 1 - 1/2."""

    def if_sure(seen: Seen) -> IntArray:
        value: IntArray = seen.confidence.argmax(axis=1)
        return np.where(seen.confidence.max(axis=1) == 1.0, value, -1)

    learner = OneByOne(lambda rows, labels, rng: memorise_sometimes(rows, labels, rng))
    found = infer_attributes(people(), learner, others=100, people=2, trainings=10, attacks={"sure": if_sure})
    assert (found["sure"].success.mean, found["sure"].right_on_others) == (1.0, 0.0)
    assert found["sure"].advantage.mean == 0.5
    assert (
        "right about the secret of 1000 of 1000 people who took part, and of 0 of 1000 who did not" in found.sentence()
    )


def test_a_promise_that_is_not_kept_is_told() -> None:
    from dprisk import PureDP

    learner = OneByOne(lambda rows, labels, rng: memorise_sometimes(rows, labels, rng))
    object.__setattr__(learner, "guarantee", PureDP(0.01))
    found = infer_attributes(people(), learner, others=100, people=100, trainings=60)
    assert found["CSMIA"].advantage.interval[0] > (found.bound or 1.0)
    assert "CSMIA did, by more than the interval" in found.sentence()
    assert "none gains more" not in found.sentence()


def test_an_attack_of_ones_own_joins_the_others() -> None:
    def first(seen: Seen) -> IntArray:
        return np.zeros(seen.label.size, dtype=np.int64)

    learner = OneByOne(lambda rows, labels, rng: memorise_sometimes(rows, labels, rng))
    asked = {"others": 100, "people": 20, "trainings": 4}
    found = infer_attributes(people(), learner, attacks={"first": first}, **asked)  # type: ignore[arg-type]
    assert found.sentence().startswith("In 4 trainings first was right about the secret of")
    only = infer_attributes(people(), learner, attacks={"majority": ATTACKS["majority"]}, **asked)  # type: ignore[arg-type]
    assert only.sentence().startswith("In 4 trainings majority was right about")
    with pytest.raises(DpriskError, match="The attack odd must guess a value for each person"):
        infer_attributes(people(), learner, attacks={"odd": lambda seen: np.zeros(3, dtype=np.int64)})
    with pytest.raises(DpriskError, match="Give at least one attack"):
        infer_attributes(people(), learner, attacks={})


def test_a_model_of_the_wrong_shape_is_refused() -> None:
    class Narrow:
        def probabilities(self, rows: FloatArray) -> FloatArray:
            return np.ones((len(rows), 1))

    class Broken:
        def probabilities(self, rows: FloatArray) -> FloatArray:
            return np.full((len(rows), 2), np.nan)

    for model, message in ((Narrow(), "A model must give 2 probabilities a row"), (Broken(), "that is no number")):
        with pytest.raises(DpriskError, match=message):
            infer_attributes(people(), OneByOne(lambda *_, given=model: given), others=100, people=20, trainings=2)
