"""Extraction from language models: attackers in order, below the bounds, and the same for the same seed."""

import json
import math

import numpy as np
import pytest

from dprisk import Prior, calibrate
from dprisk.errors import ParameterError
from dprisk.guarantees import DPSGD
from dprisk.population.extraction import belief, extract

SKEWED = Prior([0.6, 0.2, 0.1, 0.1])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("prior", [Prior.uniform(4), SKEWED], ids=["uniform", "skewed"])
def test_the_prior_aware_attack_is_at_least_as_good_and_stays_below_the_bound(prior: Prior, epsilon: float) -> None:
    found = extract(prior, epsilon, runs=600, practice=600, steps=5, hidden=(), seed=1)
    error = 0.5 / math.sqrt(600)
    shares = found.numbers
    assert shares["prior_aware"] <= found.most + 3 * error
    assert found.most <= found.most_by_pair + 1e-9
    for other in ("by_model", "times_prior", "baseline"):
        assert shares["prior_aware"] >= shares[other] - 3 * error
    if prior is SKEWED and epsilon == 1.0:
        assert shares["prior_aware"] > shares["by_model"] + 0.1
    if epsilon == 10.0:
        assert shares["prior_aware"] > found.baseline + 0.02


def test_noise_is_that_of_dp_sgd_where_one_text_is_replaced() -> None:
    found = extract(SKEWED, 2.0, runs=2, practice=4, steps=7, hidden=())
    expected = calibrate(DPSGD(1.0, 7, "replace-one"), epsilon=(2.0, 1e-5)).value
    assert found.noise_multiplier == pytest.approx(expected, rel=1e-4)


def test_the_same_seed_gives_the_same_answer() -> None:
    asked = {"runs": 50, "practice": 50, "steps": 2, "seed": 5}
    one, two = (extract(SKEWED, 5.0, **asked) for _ in range(2))  # type: ignore[arg-type]
    assert one.numbers == two.numbers
    assert json.loads(json.dumps(one.to_dict()))["runs"] == 50
    assert f"{one.prior_aware} of 50 canaries" in one.sentence()
    with pytest.raises(ParameterError, match="nothing to guess"):
        extract(Prior([1.0]), 1.0)


def test_belief_is_the_scale_that_scores_were_made_with() -> None:
    """Characters drawn with chances in proportion to exp(2 score); scores that tell nothing are not believed."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((20_000, 5))
    told = (2 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    assert belief(scores, told) == pytest.approx(2, abs=0.1)
    assert belief(scores, rng.integers(5, size=20_000)) < 0.05
