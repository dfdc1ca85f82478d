"""The fast ways of drawing and reading sets, against plain ones."""

import numpy as np
import pytest
from scipy import stats

from dprisk import OLH, OUE, SUE, SubsetSelection
from dprisk.auditing import as_target
from dprisk.auditing.evidence.design import KnownScorer, leads
from dprisk.auditing.evidence.suspects import Wanted, known_design
from dprisk.auditing.running.plan import Plan, Round
from dprisk.mechanisms.base import Mechanism
from dprisk.mechanisms.local.bits import draw_bits, where_on


@pytest.mark.parametrize("probability", [0.0, 1e-300, 1e-4, 0.01, 0.0157, 0.0499, 0.0501, 0.25, 0.3, 0.999, 1.0])
def test_bits_have_their_rate_and_are_independent(probability: float) -> None:
    bits = np.ones((400, 501), dtype=bool)
    draw_bits(probability, bits, np.random.default_rng(1))
    assert stats.binomtest(int(bits.sum()), bits.size, probability).pvalue > 1e-4
    pairs = int((bits[:, 1:] & bits[:, :-1]).sum())  # neighbours
    spread = np.sqrt(bits[:, 1:].size * probability**2 * (1 - probability) * (1 + 3 * probability))
    assert abs(pairs - bits[:, 1:].size * probability**2) <= 5 * spread + 1


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.03, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(0, 5), (1, 7), (3, 8), (11, 13), (40, 100)])
def test_the_bits_that_are_on_are_found(shape: tuple[int, int], rate: float) -> None:
    bits = np.random.default_rng(2).random(shape) < rate
    for given in (bits, np.asfortranarray(bits), bits[:, ::2]):
        assert np.array_equal(where_on(given), np.flatnonzero(given))


@pytest.mark.parametrize("subset_size", [1, 2, 3, 5, 6])
def test_every_subset_is_drawn_as_often_as_its_likelihood_says(subset_size: int) -> None:
    mechanism = SubsetSelection(7, 1.0, subset_size)
    drawn = mechanism.sample(np.full(60_000, 2), np.random.default_rng(subset_size))
    outputs = np.concatenate(list(mechanism.outputs(100)))
    codes, place = outputs @ (1 << np.arange(7)), drawn @ (1 << np.arange(7))
    seen = (place[:, None] == codes).sum(axis=0)
    assert seen.sum() == len(drawn)
    wanted = np.exp(mechanism.log_likelihood(outputs)[:, 2]) * len(drawn)
    assert stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > 1e-4


@pytest.mark.parametrize("subset_size", [1, 20, 150, 299, 301, 500, 599])
def test_subsets_of_many_records_have_their_size_and_favour_none(subset_size: int) -> None:
    mechanism = SubsetSelection(600, 1.0, subset_size)
    drawn = mechanism.sample(np.full(4000, 9), np.random.default_rng(3))
    assert (drawn.sum(axis=1) == subset_size).all()
    assert stats.binomtest(int(drawn[:, 9].sum()), 4000, mechanism.p).pvalue > 1e-4
    others = np.delete(drawn.sum(axis=0), 9)
    share = others.mean() / 4000
    worst = np.abs(others - others.mean()).max() / np.sqrt(4000 * share * (1 - share) + 1e-9)
    assert worst < 5


@pytest.mark.parametrize("mechanism", [OUE(300, 4.0), SUE(300, 1.0), SubsetSelection(300, 3.0), OLH(300, 4.0)])
@pytest.mark.parametrize("size", [2, 64, 65, 300])
def test_the_only_suspect_in_the_set_leads(mechanism: Mechanism, size: int) -> None:
    rng = np.random.default_rng(4)
    suspects = rng.permutation(300)[:size]
    outputs = mechanism.sample(suspects[rng.integers(size, size=500)], rng)
    best, lead = KnownScorer(mechanism).leads(outputs, suspects)
    plain_best, plain_lead = leads(mechanism.scores(outputs, suspects))
    assert np.array_equal(lead, plain_lead)
    assert np.array_equal(best[lead > 0], plain_best[lead > 0])


def test_a_block_is_counted_whole_however_many_runs_are_held_at_once() -> None:
    mechanism = OUE(50, 2.0)
    target, rng = as_target(mechanism), np.random.default_rng(0)
    design = known_design(KnownScorer(mechanism), Wanted(10_000, 0.01, 0.0), rng)
    for step in (7, 1000, 10_000):
        counts = Plan(target, design, (Round(2500, 1000),), 1, step).run(2).tally
        assert counts.runs == 500
        assert 0 < counts.correct <= counts.answered <= 500
