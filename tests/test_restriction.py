"""What an output tells of the suspects, drawn alone: its law, and that nobody's own code is replaced by it."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dprisk.auditing import Running, as_target, audit
from dprisk.auditing.code.target import MechanismTarget
from dprisk.auditing.evidence.design import Design, GuessScorer, KnownScorer
from dprisk.auditing.evidence.restriction import restricted
from dprisk.auditing.running import plan
from dprisk.errors import MechanismError
from dprisk.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SHE,
    SUE,
    THE,
    ConcreteHashing,
    Laplace,
    LocalHashing,
    Mechanism,
    PostProcessed,
    SetProtocol,
    SubsetSelection,
    UnaryEncoding,
)
from dprisk.types import AnyArray, BoolArray, IntArray

Rng = np.random.Generator

SMALL: list[SetProtocol] = [
    OUE(7, 1.0),
    SUE(7, 2.0),
    THE(7, 1.0),
    UnaryEncoding(7, 0.2, 0.7),
    BLH(7, 1.0),
    OLH(7, 2.0),
    *[SubsetSelection(7, 1.0, size) for size in (1, 2, 3, 4, 5, 6)],
]


def codes(rows: BoolArray) -> IntArray:
    """Each row of booleans as a number."""
    return np.asarray(rows @ (1 << np.arange(rows.shape[1])))


def of(mechanism: Mechanism, records: npt.ArrayLike) -> Any:
    found = mechanism.restricted(records)
    assert found is not None
    return found


# --- the law ---


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
@pytest.mark.parametrize("some", [[4], [6, 0], [1, 5, 3], [0, 1, 2, 3, 4, 6]])
def test_the_likelihood_is_that_of_all_outputs_which_look_the_same(mechanism: SetProtocol, some: list[int]) -> None:
    fewer = of(mechanism, some)
    outputs = np.concatenate(list(mechanism.outputs(64)))
    whole = np.exp(mechanism.log_likelihood(outputs))[:, some]
    wanted = np.array([np.bincount(codes(outputs[:, some]), column, 1 << len(some)) for column in whole.T]).T
    listed = np.concatenate(list(fewer.outputs(3)))
    assert np.exp(fewer.log_likelihood(listed)) == pytest.approx(wanted[codes(listed)], abs=1e-12)
    named = np.arange(len(some))
    for part in ("hit", "miss", "gain", "pair_gain", "none"):
        assert getattr(fewer, part)(named[1:]) == pytest.approx(getattr(mechanism, part)(named[1:]))


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_every_output_is_drawn_as_often_as_its_likelihood_says(mechanism: SetProtocol) -> None:
    fewer = of(mechanism, [6, 2, 0, 5])
    drawn = codes(fewer.sample(np.full(60_000, 1), np.random.default_rng(5)))
    outputs = np.concatenate(list(fewer.outputs(16)))
    wanted = np.exp(fewer.log_likelihood(outputs)[:, 1])[np.argsort(codes(outputs))] * drawn.size
    seen = np.bincount(drawn, minlength=16)
    assert wanted.sum() == pytest.approx(drawn.size)
    assert seen[wanted == 0].sum() == 0
    assert stats.chisquare(seen[wanted > 0], wanted[wanted > 0]).pvalue > 1e-4


@pytest.mark.parametrize(
    "mechanism",
    [OUE(300, 4.0), SUE(300, 1.0), OLH(300, 2.0), *[SubsetSelection(300, 1.0, size) for size in (1, 80, 150, 280)]],
    ids=repr,
)
@pytest.mark.parametrize("size", [5, 100, 299])
def test_it_is_drawn_as_the_whole_output_is_and_then_looked_at(mechanism: SetProtocol, size: int) -> None:
    rng = np.random.default_rng(6)
    some = rng.permutation(300)[:size]
    truth = rng.integers(size, size=6000)
    whole, alone = mechanism.sample(some[truth], rng)[:, some], of(mechanism, some).sample(truth, rng)
    every = np.arange(truth.size)
    for read in (  # of each row its true bit, its number of members, and who is among the first four
        lambda rows: rows[every, truth].astype(int),
        lambda rows: rows.sum(axis=1),
        lambda rows: codes(rows[:, :4]) * (truth >= 4),
    ):
        one, two = read(whole), read(alone)
        table = np.array([np.bincount(part, minlength=max(one.max(), two.max()) + 1) for part in (one, two)])
        often = table.sum(axis=0) >= 20
        table = np.column_stack([table[:, often], table[:, ~often].sum(axis=1) + 1])
        assert stats.chi2_contingency(table).pvalue > 1e-4


def test_the_entries_of_a_noisy_histogram_keep_their_law() -> None:
    mechanism, some, rng = SHE(50, 2.0), np.array([7, 40, 3]), np.random.default_rng(7)
    fewer = of(mechanism, some)
    whole, alone = mechanism.sample(np.full(20_000, 40), rng)[:, some], fewer.sample(np.full(20_000, 1), rng)
    assert alone.shape == (20_000, 3)
    for place in range(3):
        noise = alone[:, place] - (place == 1)
        assert stats.kstest(noise, stats.laplace(scale=1.0).cdf).pvalue > 1e-4
        assert stats.ks_2samp(whole[:, place], alone[:, place]).pvalue > 1e-4
    assert abs(np.corrcoef(alone.T) - np.eye(3)).max() < 0.04


@pytest.mark.parametrize("mechanism", [*SMALL, SHE(7, 1.0)], ids=repr)
def test_scores_and_leads_are_the_same(mechanism: Mechanism) -> None:
    some, every = np.array([5, 0, 3]), np.arange(3)
    outputs = mechanism.sample(np.repeat(some, 50), np.random.default_rng(8))
    fewer = of(mechanism, some)
    assert fewer.epsilon == mechanism.epsilon
    assert np.array_equal(fewer.scores(outputs[:, some], every), mechanism.scores(outputs, some))
    of_fewer, of_all = KnownScorer(fewer), KnownScorer(mechanism)
    for one, two in zip(of_fewer.leads(outputs[:, some], every), of_all.leads(outputs, some), strict=True):
        assert np.array_equal(one, two)


def test_a_restriction_is_a_mechanism_like_others() -> None:
    fewer = of(SubsetSelection(20, 1.0, 6), [3, 4, 9])
    assert repr(fewer) == "SeenMembers(whole=SubsetSelection(size=20, epsilon=1, subset_size=6), size=3)"
    assert fewer.with_parameter(2.0).epsilon == 2.0
    assert fewer.n_outputs == 8
    assert of(OUE(5, 1.0).labelled("abcde"), [1, 2]).labels == ("b", "c")
    for mechanism in (OUE(5, 1.0), SHE(5, 1.0), SubsetSelection(5, 1.0)):
        for some in ([1, 1], [5], []):
            with pytest.raises(MechanismError):
                mechanism.restricted(np.array(some, dtype=int))
    assert SubsetSelection(5, 1.0).restricted(range(5)) is None
    assert OUE(5, 1.0).repeat(2).restricted([0, 1]) is None


# --- who is restricted ---


def is_restricted(mechanism: Mechanism) -> bool:
    target = as_target(mechanism)
    return restricted(target, Design(np.arange(2), 1e-9, KnownScorer(mechanism)))[0] is not target


class Counted(MechanismTarget):
    """A target of somebody's own."""

    def sample(self, records: IntArray, rng: Rng) -> Any:
        return super().sample(records, rng)


@pytest.mark.parametrize("kind", [SubsetSelection, SUE, OUE, SHE, THE, BLH, OLH])
def test_what_is_built_in_is_restricted(kind: Callable[[int, float], Mechanism]) -> None:
    assert is_restricted(kind(10, 1.0))
    assert is_restricted(kind(10, 1.0).labelled("abcdefghij"))
    assert is_restricted(UnaryEncoding(10, 0.5, 0.2))
    assert is_restricted(LocalHashing(10, 1.0, 4))


@pytest.mark.parametrize(
    "mechanism",
    [
        GRR(10, 1.0),
        Laplace(10, 1.0),
        OUE(10, 1.0).repeat(2),
        PostProcessed(LocalHashing(10, 1.0, 4), lambda rows: rows.sum(axis=1)),
        ConcreteHashing(10, 1.0, 4),
    ],
    ids=repr,
)
def test_others_are_not(mechanism: Mechanism) -> None:
    assert not is_restricted(mechanism)


def test_another_judge_or_a_target_of_its_own_sees_whole_outputs() -> None:
    mechanism = OUE(10, 1.0)
    design = Design(np.arange(2), 1e-9, KnownScorer(mechanism))
    for target in (Counted(mechanism), as_target(lambda record: record, 10)):
        assert restricted(target, design) == (target, design)
    for scorer in (KnownScorer(OUE(10, 1.0)), GuessScorer(None)):  # type: ignore[arg-type]
        other = Design(np.arange(2), 1e-9, scorer)
        assert restricted(as_target(mechanism), other)[1] is other


# --- faults ---


class Honest(OUE):
    """Never turns off the true bit."""

    def sample(self, records: npt.ArrayLike, rng: Rng) -> AnyArray:
        bits = super().sample(records, rng)
        bits[np.arange(len(bits)), np.asarray(records)] = True
        return bits


class Loud(SHE):
    """Half the noise."""

    def sample(self, records: npt.ArrayLike, rng: Rng) -> AnyArray:
        return SHE(self.size, 2 * self.epsilon).sample(records, rng)


class Clear(SubsetSelection):
    """The true record is always among those reported."""

    def sample(self, records: npt.ArrayLike, rng: Rng) -> AnyArray:
        rows = super().sample(records, rng)
        rows[np.arange(len(rows)), np.asarray(records)] = True
        return rows


class Leaky:
    """Something to mix in."""

    size: int

    def sample(self, records: npt.ArrayLike, rng: Rng) -> AnyArray:
        return np.asarray(np.eye(self.size)[np.asarray(records)] > 0)


class Mixed(Leaky, SUE):
    """Reports the truth."""


class Later(Honest):
    """Its fault is one class up."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Honest, Loud, Clear, Mixed, Later])
def test_a_fault_of_a_class_made_from_a_built_in_one_is_found(kind: Callable[[int, float], Mechanism]) -> None:
    mechanism = kind(200, 1.0)
    assert not is_restricted(mechanism)
    assert audit(mechanism, 1.0, runs=20_000).verdict == "violated"


def test_wrong_parameters_are_found_in_what_is_restricted() -> None:
    mechanism = UnaryEncoding(50, 0.5, 0.1)  # OUE at epsilon 1 has q = 0.27
    assert is_restricted(mechanism)
    assert audit(mechanism, 1.0, runs=20_000).verdict == "violated"


@pytest.mark.parametrize("name", ["scores", "leads", "log_likelihood"])
def test_a_judgement_of_its_own_sees_whole_outputs(name: str) -> None:
    def judge(self: OUE, outputs: Any, *records: Any) -> Any:
        assert np.asarray(outputs).shape[1] == 50
        return getattr(OUE, name)(self, outputs, *records)

    mechanism = type("Own", (OUE,), {name: judge})(50, 1.0)
    assert audit(mechanism, runs=3000).verdict == "consistent with the claim"


# --- audits ---


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SubsetSelection, SUE, OUE, BLH, OLH])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_answers_are_as_often_right_and_wrong_as_they_should_be(kind: Callable[..., Any], epsilon: float) -> None:
    mechanism = kind(3052, epsilon)
    report = audit(mechanism, runs=300_000, seed=2)
    others = np.array([report.design.size - 1])
    right, wrong = float(mechanism.hit(others)[0]), float((others * mechanism.miss(others))[0])
    counts = report.counts
    assert stats.binomtest(counts.correct, counts.runs, right).pvalue > 1e-4
    assert stats.binomtest(counts.answered - counts.correct, counts.runs, wrong).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SubsetSelection, OUE, SHE])
def test_the_report_speaks_of_the_whole_mechanism(kind: Callable[[int, float], Mechanism]) -> None:
    mechanism = kind(60, 1.0).labelled([f"town {number}" for number in range(60)])
    reports = [audit(mechanism, runs=30_000, seed=1, running=Running(n_jobs=jobs)) for jobs in (1, 2)]
    told = [{key: value for key, value in report.to_dict().items() if key != "seconds"} for report in reports]
    assert told[0] == told[1]
    assert reports[0].design.to_dict()["evidence"] == f"likelihood of {mechanism!r}"
    assert reports[0].design.universe.max() >= reports[0].design.size or reports[0].design.size == 2
    assert math.isclose(reports[0].claim.epsilon, 1.0)


def test_a_store_tells_audits_of_other_mechanisms_apart(tmp_path: Any) -> None:
    path = tmp_path / "audit.db"
    first = audit(OUE(60, 1.0), runs=25_000, running=Running(store=path))
    assert audit(OUE(60, 1.0), runs=25_000, running=Running(store=path)).counts == first.counts
    with pytest.raises(Exception, match="holds another audit"):
        audit(OUE(61, 1.0), runs=25_000, running=Running(store=path))


def test_few_runs_at_a_time_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "HELD", 1 << 10)
    assert audit(SubsetSelection(300, 1.0), runs=5000).counts.runs == 5000
