"""Private networks for tables: what they promise, that each is its own, and what attacks on them gain."""

import numpy as np
import pytest
import torch

from dprisk.datasets import LabelledTable
from dprisk.learning.attribute_study import infer_attributes
from dprisk.learning.private_networks import PrivateNetworks
from dprisk.types import FloatArray

torch.set_num_threads(1)


def wines() -> LabelledTable:
    """178 wines that come with scikit-learn: their hue in three bands is the secret, the grower the label."""
    from sklearn.datasets import load_wine

    loaded = load_wine()
    names = [name for name in loaded.feature_names if name != "hue"]
    columns = {name: loaded.data[:, loaded.feature_names.index(name)] for name in names}
    hue = loaded.data[:, loaded.feature_names.index("hue")]
    secret = np.digitize(hue, np.quantile(hue, [0.6, 0.85]))
    table = {**columns, "hue": [("low", "middle", "high")[band] for band in secret], "grower": loaded.target}
    return LabelledTable.of(table, "hue", "grower", numbers=names, name="wines")


def answers(learner: PrivateNetworks, extras: list[int], table: LabelledTable) -> list[FloatArray]:
    shared = table.features()[:100], table.label[:100]
    own = [(table.features()[[row]], table.label[[row]]) for row in extras]
    return [model.probabilities(table.features()) for model in learner.train(shared, own, 3, seed=5)]


def test_the_noise_keeps_the_epsilon_that_was_asked_for() -> None:
    learner = PrivateNetworks.with_epsilon(1.0, sample_rate=0.1, steps=30)
    assert 0.98 < learner.guarantee.epsilon_at(1e-5) <= 1.0 + 1e-9
    assert PrivateNetworks.with_epsilon(8.0, sample_rate=0.1, steps=30).noise_multiplier < learner.noise_multiplier


def test_a_network_follows_from_its_number_and_data_alone() -> None:
    learner = PrivateNetworks(1.0, sample_rate=0.2, steps=10, hidden=(8, 8))
    together = answers(learner, [101, 102, 103], wines())
    for number, told in enumerate(together):
        assert told.shape == (178, 3)
        assert told.sum(axis=1) == pytest.approx(np.ones(178), abs=1e-5)
        if number:
            assert not np.allclose(told, together[0])
    again = answers(learner, [101, 102, 110], wines())
    assert again[:2] == [pytest.approx(told, abs=1e-5) for told in together[:2]]
    assert again[2] != pytest.approx(together[2], abs=1e-6)


def test_several_targets_at_once_are_trained_on() -> None:
    """Without noise and with one batch, a training with two more records is that on all of them."""
    table = wines()
    learner = PrivateNetworks(1e-9, sample_rate=1.0, steps=60, clip=5.0, hidden=(8,))
    rows, labels = table.features(), table.label
    shared, both = (rows[:100], labels[:100]), (rows[100:], labels[100:])
    (split,) = learner.train(shared, [both], 3, seed=1)
    (whole,) = learner.train((rows[:0], labels[:0]), [(rows, labels)], 3, seed=1)
    assert split.probabilities(rows) == pytest.approx(whole.probabilities(rows), abs=1e-4)
    assert (split.probabilities(rows).argmax(axis=1) == labels).mean() > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("targets", [None, 1])
def test_attacks_on_private_networks_gain_next_to_nothing_while_imputation_succeeds(targets: int | None) -> None:
    learner = PrivateNetworks.with_epsilon(1.0, sample_rate=0.2, steps=20, hidden=(16, 16))
    found = infer_attributes(wines(), learner, others=80, people=60, targets=targets, trainings=150)
    for name in ("imputation", "Yeom", "CSMIA", "WCAI"):
        low, high = found[name].advantage.interval
        assert low <= 0 <= high, name
        assert high - low < (0.12 if targets is None else 0.45), name
        assert found.bound is not None
        assert low < found.bound
    assert found["imputation"].success.mean > 0.6
    assert found.epsilon == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_a_network_without_noise_that_learned_by_heart_gives_people_away() -> None:
    """Random labels can only be learned by heart; then the value in somebody's row is the one the network knows."""
    rng, size, values = np.random.default_rng(2), 160, 4
    secret, label = rng.integers(values, size=size), rng.integers(2, size=size)
    known = {f"c{place}": rng.integers(2, size=size) for place in range(12)}
    names = tuple(map(str, range(values)))
    table = LabelledTable("noise", known, dict.fromkeys(known, 2), "s", secret, names, label, ("a", "b"))
    learner = PrivateNetworks(1e-6, sample_rate=1.0, steps=100, clip=10.0, learning_rate=2.0, hidden=(64,))
    found = infer_attributes(table, learner, others=10, people=100, trainings=40)
    assert found.train_accuracy > 0.95
    assert found["CSMIA"].advantage.interval[0] > 0.05
