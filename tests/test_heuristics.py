"""The published attacks, against their rules written out and against the best attacker."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dprisk import (
    GRR,
    OLH,
    OUE,
    SUE,
    Exponential,
    Line,
    Matrix,
    Mechanism,
    Prior,
    Ring,
    SubsetSelection,
    Threat,
    assess,
    audit,
)
from dprisk.attacks import (
    NAMED,
    AboveThreshold,
    Correlation,
    Estimation,
    Likeliest,
    MarkovModel,
    MostCommon,
    OptimalAttack,
    RandomMember,
    Report,
    make,
)
from dprisk.attacks.estimate import Guesser, mass_range, measure, one_run
from dprisk.attacks.heuristics import frequencies, one_of
from dprisk.auditing import Look
from dprisk.auditing.evidence.design import GuessScorer, KnownScorer, leads
from dprisk.auditing.evidence.guessing import Guessing, bet_on
from dprisk.errors import DpriskError
from dprisk.mechanisms import BLH, SHE, THE, ConcreteHashing, UnaryEncoding
from dprisk.threat import Balls, Distances
from dprisk.types import BoolArray, FloatArray, IntArray
from tests.naive import attack_values
from tests.strategies import balls, channels, partitions, priors

SKEWED = Prior([0.5, 0.25, 0.15, 0.1])
UNIFORM = Prior.uniform(4)
TRANSITIONS = np.array([[0.6, 0.4, 0.0], [0.05, 0.15, 0.8], [1.0, 0.0, 0.0]])
SET_PROTOCOLS = {
    "GRR": GRR(4, 1.5),
    "SS": SubsetSelection(4, 1.0, 2),
    "SUE": SUE(4, 2.0),
    "OUE": OUE(4, 1.0),
    "THE": THE(4, 2.0, 0.7),
    "BLH": BLH(4, 1.0),
    "OLH": OLH(4, 1.0),
    "hashes": ConcreteHashing(4, 2.0, 3, [[0, 1, 2, 0], [1, 1, 1, 2], [2, 0, 0, 0]]),
}
of_each_protocol = pytest.mark.parametrize("mechanism", SET_PROTOCOLS.values(), ids=SET_PROTOCOLS)


class Coin:
    """Guess by given odds, odds[output, group, guess]: any attack on a channel with numbered outputs."""

    def __init__(self, odds: FloatArray) -> None:
        self.odds = odds

    def guess(self, outputs: Any, rng: np.random.Generator, known: Any = None) -> IntArray:
        ends = np.cumsum(self.odds[outputs, known], axis=1)
        return np.asarray((ends / ends[:, -1:] <= rng.random((len(outputs), 1))).sum(axis=1))


def written_out(
    channel: FloatArray, pi: FloatArray, groups: IntArray, success: BoolArray, odds: FloatArray
) -> tuple[float, float]:
    """RAD and ReRo of an attack with random guesses: the definition, every term."""
    advantage = rero = 0.0
    for z, theta, g in itertools.product(range(pi.size), range(channel.shape[1]), range(success.shape[0])):
        if success[g, z]:
            chance = pi[z] * odds[theta, groups[z], g]
            advantage += chance * (channel[z, theta] - pi @ channel[:, theta])
            rero += chance * channel[z, theta]
    return advantage, rero


def all_outputs(mechanism: Mechanism) -> FloatArray:
    return np.concatenate(list(mechanism.outputs(1 << 10)))


def guess_shares(attack: Guesser, output: Any, size: int, known: int | None = None, times: int = 4000) -> FloatArray:
    """How often each record is guessed from one output."""
    outputs = np.array([output] * times)
    group = None if known is None else np.full(times, known)
    return np.bincount(attack.guess(outputs, np.random.default_rng(3), group), minlength=size) / times


def odds_of(rule: Callable[[Any], FloatArray], mechanism: Mechanism) -> FloatArray:
    """odds[output, 0, guess] of a rule for every output."""
    return np.array([[rule(output)] for output in all_outputs(mechanism)])


def evenly(members: list[int], size: int) -> FloatArray:
    odds = np.zeros(size)
    odds[members or list(range(size))] = 1 / (len(members) or size)
    return odds


def members_by_hand(mechanism: Mechanism, output: Any) -> list[int]:
    """The candidates of attacks 1, 10, 11, 13 and 14."""
    if isinstance(mechanism, GRR):
        return [int(output)]
    if isinstance(mechanism, ConcreteHashing):
        table = [[0, 1, 2, 0], [1, 1, 1, 2], [2, 0, 0, 0]]
        number, value = output
        return [z for z in range(4) if table[number][z] == value]
    return [z for z in range(mechanism.size) if output[z]]


def inside(value: float, interval: tuple[float, float]) -> bool:
    return interval[0] - 1e-12 <= value <= interval[1] + 1e-12


# The rules


def test_the_report_is_the_guess() -> None:
    rng = np.random.default_rng(0)
    assert Report().guess([3, 0, 3], rng).tolist() == [3, 0, 3]
    with pytest.raises(DpriskError, match="numbers of records"):
        Report().guess([[True, False]], rng)


def test_the_prior_alone() -> None:
    rng = np.random.default_rng(0)
    for outputs in ([1, 2, 3], np.zeros((3, 4), dtype=bool)):
        assert MostCommon(SKEWED).guess(outputs, rng).tolist() == [0, 0, 0]
    assert MostCommon([-0.1, 0.3, 0.8]).guess([0], rng).tolist() == [2]
    found = measure(MostCommon(SKEWED), OUE(4, 3.0), Threat(SKEWED), rng, 5000)
    assert found.advantage == pytest.approx(0, abs=0.02)
    assert inside(0.5, found.success_interval)
    with pytest.raises(DpriskError, match="finite weight"):
        MostCommon([0.5, math.nan])


@of_each_protocol
def test_a_random_member_of_the_reported_set(mechanism: Mechanism) -> None:
    attack = RandomMember(mechanism)  # type: ignore[arg-type]
    for output in all_outputs(mechanism):
        expected = evenly(members_by_hand(mechanism, output), 4)
        shares = guess_shares(attack, output, 4)
        assert np.all((shares > 0) == (expected > 0))
        assert shares == pytest.approx(expected, abs=0.04)


def test_the_bits_that_are_on_count_even_if_they_speak_against() -> None:
    """The thesis's rule as it stands; below 0 in advantage where p < q."""
    mechanism = UnaryEncoding(4, 0.2, 0.6)
    assert guess_shares(RandomMember(mechanism), [True, False, False, True], 4)[[1, 2]].sum() == 0
    found = measure(RandomMember(mechanism), mechanism, Threat(UNIFORM), np.random.default_rng(0), 20_000)
    assert found.advantage_interval[1] < 0


def test_the_likeliest_entry_of_a_noisy_vector() -> None:
    """By the density of attack 12: entries above 1 tie."""
    rng = np.random.default_rng(1)
    mechanism = SHE(4, 1.5)
    drawn = mechanism.sample(rng.integers(4, size=8), rng)
    for output in [*drawn, np.array([1.2, 0.3, 1.9, -1.0]), np.array([-1.0, -2.0, 0.0, -0.5])]:
        density = [math.exp(-np.abs(output - np.eye(4)[z]).sum() * 1.5 / 2) for z in range(4)]
        best = [z for z in range(4) if density[z] >= max(density) * (1 - 1e-9)]
        assert guess_shares(Likeliest(mechanism), output, 4) == pytest.approx(evenly(best, 4), abs=0.04)


def test_the_likeliest_record_where_some_are_impossible() -> None:
    channel = Matrix([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    assert guess_shares(Likeliest(channel), 0, 3).tolist() == [1, 0, 0]
    assert guess_shares(Likeliest(channel), 2, 3) == pytest.approx([0, 0.5, 0.5], abs=0.04)


def test_entries_above_a_threshold() -> None:
    attack = AboveThreshold(SHE(3, 2.0), 0.75)
    for output, members in (([0.8, 0.75, 0.9], [0, 2]), ([0.1, -4.0, 0.7], []), ([0.0, 3.0, 0.0], [1])):
        assert guess_shares(attack, output, 3) == pytest.approx(evenly(members, 3), abs=0.04)
    assert AboveThreshold(SHE(3, 2.0)).thresholded.threshold == THE(3, 2.0).threshold
    with pytest.raises(DpriskError, match="threshold"):
        AboveThreshold(SHE(3, 2.0), 1.5)
    with pytest.raises(DpriskError, match="RandomMember"):
        AboveThreshold(THE(3, 2.0))  # type: ignore[arg-type]


def test_thresholding_oneself_is_as_good_as_getting_sets() -> None:
    rng = np.random.default_rng(2)
    numbers = measure(AboveThreshold(SHE(4, 2.0), 0.7), SHE(4, 2.0), Threat(SKEWED), rng, 50_000)
    sets = measure(RandomMember(THE(4, 2.0, 0.7)), THE(4, 2.0, 0.7), Threat(SKEWED), rng, 50_000)
    assert numbers.advantage == pytest.approx(sets.advantage, abs=0.01)


@of_each_protocol
def test_estimated_frequencies_are_unbiased(mechanism: Mechanism) -> None:
    """The mean over every output is the prior itself."""
    if isinstance(mechanism, ConcreteHashing):
        with pytest.raises(DpriskError, match="report a set"):
            frequencies(mechanism, [[0, 0]])  # type: ignore[arg-type]
        return
    outputs = all_outputs(mechanism)
    estimates = np.array([frequencies(mechanism, [output]) for output in outputs])  # type: ignore[arg-type]
    mean = SKEWED.weights @ mechanism.matrix() @ estimates
    assert mean == pytest.approx(SKEWED.weights, abs=1e-9)


def test_bits_that_speak_against_a_record_are_counted_against_it() -> None:
    mechanism = UnaryEncoding(3, 0.1, 0.6)
    estimates = np.array([frequencies(mechanism, [output]) for output in all_outputs(mechanism)])
    assert np.array([0.7, 0.2, 0.1]) @ mechanism.matrix() @ estimates == pytest.approx([0.7, 0.2, 0.1])
    attack = Estimation(mechanism, [1] * 200)
    assert np.all(attack.guess(mechanism.sample([0, 2], np.random.default_rng(0)), np.random.default_rng(1)) == 1)
    with pytest.raises(DpriskError, match="tell nothing"):
        frequencies(GRR(3, 0.0), [0])


def test_estimation_written_out() -> None:
    """Every way in which two others can report, and the target's own report counted with them."""
    mechanism, others = GRR(3, 1.0), [2, 0]
    p, q = mechanism.p, mechanism.q
    for mine in range(3):
        expected = np.zeros(3)
        for reports in itertools.product(range(3), repeat=2):
            chance = math.prod(p if told == truth else q for told, truth in zip(reports, others, strict=True))
            counts = np.bincount([mine, *reports], minlength=3)
            estimate = (counts - 3 * q) / (3 * (p - q))
            expected += chance * evenly([z for z in range(3) if estimate[z] >= estimate.max() - 1e-12], 3)
        assert guess_shares(Estimation(mechanism, others), mine, 3) == pytest.approx(expected, abs=0.04)


def test_estimation_learns_the_population_not_the_target() -> None:
    """Thesis section 6.1.4: with many others the advantage is near 0, the success near the baseline."""
    others = np.repeat(np.arange(4), [250, 125, 75, 50])
    for mechanism in (GRR(4, 2.0), OUE(4, 2.0)):
        found = measure(Estimation(mechanism, others), mechanism, Threat(SKEWED), np.random.default_rng(4), 4000)
        assert found.advantage == pytest.approx(0, abs=0.02)
        assert found.success == pytest.approx(0.5, abs=0.03)


def corr_odds(before: int, reported: int, threshold: float) -> FloatArray:
    if TRANSITIONS[before, reported] > threshold:
        return evenly([reported], 3)
    return np.asarray(TRANSITIONS[before])


@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_correlation_written_out(threshold: float) -> None:
    model = MarkovModel(TRANSITIONS)
    attack, mechanism = Correlation(model, threshold), GRR(3, 1.0)
    for before, reported in itertools.product(range(3), repeat=2):
        expected = corr_odds(before, reported, threshold)
        shares = guess_shares(attack, reported, 3, before)
        assert np.all((shares > 0) == (expected > 0))
        assert shares == pytest.approx(expected, abs=0.04)
    start = Prior([0.5, 0.2, 0.3])
    threat, steps = model.threat(start), model.on_steps(mechanism)
    former, latter = np.divmod(np.arange(9), 3)
    odds = np.zeros((3, 3, 9))
    for reported, before in itertools.product(range(3), repeat=2):
        odds[reported, before, :3] = corr_odds(before, reported, threshold)
    pi = (start.weights[:, None] * TRANSITIONS).ravel()
    advantage, rero = written_out(mechanism.matrix()[latter], pi, former, latter[:, None] == latter, odds)
    found = measure(attack, steps, threat, np.random.default_rng(5), 40_000, alpha=0.001)
    assert found.advantage == pytest.approx(advantage, abs=0.01)
    assert inside(advantage, found.advantage_interval)
    assert inside(rero, found.success_interval)
    best = assess(steps, threat).advantage
    assert advantage < best
    odds = np.broadcast_to(np.eye(3, 9)[:, None, :], (3, 3, 9))
    assert written_out(mechanism.matrix()[latter], pi, former, latter[:, None] == latter, odds)[0] == pytest.approx(
        best
    )


def test_a_sequence_of_one_person() -> None:
    """A cycle leaves no doubt: what is implausible is replaced by the only possible step."""
    attack = Correlation(MarkovModel.from_sequences([[0, 1, 2, 0, 1]], 4))
    path = np.array([1, 2, 0, 1, 2])
    reports = np.array([3, 0, 3, 2])
    assert attack.guess(reports, np.random.default_rng(0), path[:-1]).tolist() == path[1:].tolist()


def test_what_is_no_markov_model_is_refused() -> None:
    rng = np.random.default_rng(0)
    for wrong in ([[0.5, 0.5]], [[0.5, 0.4], [0.5, 0.5]], [[1.5, -0.5], [0.0, 1.0]]):
        with pytest.raises(DpriskError):
            MarkovModel(wrong)
    with pytest.raises(DpriskError, match="numbers of records"):
        MarkovModel.from_sequences([[0, 4]], 3)
    assert MarkovModel.from_sequences([[0, 1]], 2).transitions[1].tolist() == [0.5, 0.5]
    attack = Correlation(MarkovModel(np.eye(2)))
    with pytest.raises(DpriskError, match="known"):
        attack.guess([0, 1], rng)
    with pytest.raises(DpriskError, match=r"0..1"):
        attack.guess([0, 2], rng, [0, 0])
    with pytest.raises(DpriskError, match="threshold"):
        Correlation(MarkovModel(np.eye(2)), 1.0)


def test_attacks_have_their_names() -> None:
    names = {attack.name for attack in NAMED}
    assert {"UNI", "TRUE", "PRIOR", "EST", "CORR", "SS", "SUE", "OUE", "SHE", "THE", "BLH", "OLH"} <= names
    rng, threat = np.random.default_rng(0), Threat(Prior.uniform(5))
    for name, mechanism in (("SS", SubsetSelection(5, 1.0)), ("oue", OUE(5, 1.0)), ("She", SHE(5, 1.0))):
        assert make(name, mechanism, threat).guess(mechanism.sample([1, 2], rng), rng).shape == (2,)
    with pytest.raises(DpriskError, match="report a set"):
        make("SS", SHE(5, 1.0), threat)


# Measuring


@pytest.mark.slow
@settings(max_examples=40)
@given(data=st.data())
def test_a_measured_attack_is_the_definition(data: st.DataObject) -> None:
    """Any channel, prior, knowledge, balls and any random attack: 0.1 % of intervals at 99.9 % may err."""
    size = data.draw(st.integers(2, 5))
    channel, pi = data.draw(channels(size)), data.draw(priors(size))
    groups, success = data.draw(partitions(size)), data.draw(balls(size).filter(lambda t: t.shape[0] == t.shape[1]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    odds = rng.dirichlet(np.full(size, 0.5), size=(channel.shape[1], int(groups.max()) + 1))
    threat = Threat(Prior(pi), knows=groups, success=Balls(lambda guess: success[guess]))
    advantage, rero = written_out(channel, pi, groups, success, odds)
    for subject in (Matrix(channel), Matrix(channel).sample):
        found = measure(Coin(odds), subject, threat, rng, 3000, alpha=1e-6)
        assert inside(advantage, found.advantage_interval)
        assert inside(rero, found.success_interval)
        assert found.advantage == pytest.approx(advantage, abs=0.1)
        assert found.advantage_by_group.shape == (odds.shape[1],)


def test_the_measurement_is_unbiased() -> None:
    """The mean of 400 short measurements, four standard errors."""
    channel, groups = np.array([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4], [0.3, 0.3, 0.4]]), np.array([0, 0, 1])
    pi = np.array([0.5, 0.3, 0.2])
    odds = np.random.default_rng(6).dirichlet(np.ones(3), size=(3, 2))
    threat = Threat(Prior(pi), knows=groups)
    rng = np.random.default_rng(7)
    found = [measure(Coin(odds), Matrix(channel), threat, rng, 50) for _ in range(400)]
    for name, exact in zip(
        ("advantage", "success"), written_out(channel, pi, groups, np.eye(3) > 0, odds), strict=True
    ):
        values = np.array([getattr(one, name) for one in found])
        assert abs(values.mean() - exact) < 4 * values.std() / 20
        assert all(inside(exact, getattr(one, f"{name}_interval")) for one in found)


@pytest.mark.slow
@given(data=st.data())
def test_the_value_of_a_run_has_the_attacks_advantage_as_its_mean(data: st.DataObject) -> None:
    """Every record and output in its due proportion, no likelihood used: exactly the definition."""
    size = data.draw(st.integers(2, 5))
    channel, pi = data.draw(channels(size)), data.draw(priors(size))
    groups, success = data.draw(partitions(size)), data.draw(balls(size))
    threat = Threat(Prior(pi), groups, Distances(0.5, 1.0 - success))
    shape = channel.shape[1], int(groups.max()) + 1
    attack = np.random.default_rng(data.draw(st.integers(0, 1000))).integers(len(success), size=shape)
    drawn, outputs = (both.ravel() for both in np.indices(channel.shape))
    chosen = np.array([threat.reach.find(attack[outputs, group], group) for group in range(shape[1])])
    mass, hit = one_run(threat, chosen, drawn)
    low, high = mass_range(threat)
    assert np.all((mass >= low - 1e-12) & (mass <= high + 1e-12))
    weight = (pi[:, None] * channel).ravel()
    found = weight @ (hit - mass), weight @ hit
    assert found == pytest.approx(attack_values(channel, pi, groups, success, attack), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prior", "knows", "success"),
    [(UNIFORM, "none", None), (SKEWED, "none", None), (SKEWED, [0, 0, 1, 1], Line(1.0))],
)
def test_intervals_on_code_cover_at_their_level(prior: Prior, knows: Any, success: Any) -> None:
    """300 measurements of 200 runs at 90 %: no more misses than a binomial of 10 % has, by four deviations."""
    threat, mechanism = Threat(prior, knows, success), GRR(4, 1.0)
    right = np.eye(4) > 0 if success is None else np.abs(np.subtract.outer(range(4), range(4))) <= 1
    odds = np.broadcast_to(np.eye(4)[:, None, :], (4, threat.knows.n_groups, 4))
    truth = written_out(mechanism.matrix(), prior.weights, threat.knows.groups, right, odds)
    missed, rng = np.zeros(2), np.random.default_rng(11)
    for _ in range(300):
        found = measure(Report(), mechanism.sample, threat, rng, 200, alpha=0.1)
        for which, interval in enumerate((found.advantage_interval, found.success_interval)):
            missed[which] += not inside(truth[which], interval)
    assert np.all(missed <= 30 + 4 * math.sqrt(300 * 0.1 * 0.9))
    if threat.prior.is_uniform:  # hits less a constant: Clopper-Pearson, and not wastefully wide
        assert missed[0] == missed[1] > 5


def test_with_and_without_the_likelihood() -> None:
    """The same numbers, and the likelihood makes them sharper."""
    mechanism, threat = OUE(4, 2.0), Threat(SKEWED, [0, 0, 1, 1])
    attack = OptimalAttack(mechanism, threat)
    sharp, plain = (
        measure(attack, subject, threat, np.random.default_rng(12), 40_000, alpha=0.01)
        for subject in (mechanism, mechanism.sample)
    )
    best = assess(mechanism, threat)
    for found in (sharp, plain):
        assert inside(best.advantage, found.advantage_interval)
        assert found.advantage_by_group == pytest.approx(
            [part.prior_mass * part.advantage for part in best.by_group], abs=0.02
        )
        assert found.advantage_by_group.sum() == pytest.approx(found.advantage, abs=1e-12)
        assert found.success_by_group.sum() == pytest.approx(found.success, abs=1e-12)
    assert np.ptp(sharp.advantage_interval) < 0.6 * np.ptp(plain.advantage_interval)


def test_code_that_is_no_mechanism_can_be_attacked() -> None:
    """Reports of which every other one is verbatim, and the two ways to get it wrong."""

    def half(records: IntArray, rng: np.random.Generator) -> IntArray:
        return np.where(rng.random(records.size) < 0.5, records, 0)

    threat, rng = Threat(UNIFORM), np.random.default_rng(13)
    found = measure(Report(), half, threat, rng)
    assert inside(0.5 * 0.75, found.advantage_interval)
    assert found.success - found.advantage == pytest.approx(0.25)
    assert (found.runs, found.alpha) == (20_000, 0.05)
    with pytest.raises(DpriskError, match="an output for each record, got 1 for 10"):
        measure(Report(), lambda records, rng: records[:1], threat, rng, 10)
    with pytest.raises(DpriskError, match="a mechanism or a function"):
        measure(Report(), 7, threat, rng, 10)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(data=st.data())
def test_a_guess_finds_the_set_it_is_right_about(data: st.DataObject) -> None:
    """On lines and rings with records at the same place, and for any balls, in every group."""
    size = data.draw(st.integers(1, 7))
    groups = data.draw(partitions(size))
    places = np.array(data.draw(st.lists(st.integers(0, 8), min_size=size, max_size=size)), dtype=float)
    eta = data.draw(st.sampled_from([0.0, 1.0, 2.5, 5.0, 20.0]))
    apart = np.abs(places[:, None] - places)
    table = data.draw(balls(size))
    table = table[:size] if len(table) >= size else np.eye(size, dtype=bool)
    cases = [
        (Line(eta, places), apart <= eta),
        (Ring(eta, places, 9.0), np.minimum(apart, 9 - apart) <= eta),
        (Balls(lambda guess: table[guess]), table),
    ]
    for success, right in cases:
        reach = Threat(Prior.uniform(size), groups, success).reach
        members = reach.members().toarray() > 0
        for group in range(int(groups.max()) + 1):
            found = reach.find(np.arange(size), group)
            assert np.all(reach.group[found] == group)
            assert np.array_equal(members[found], right & (groups == group))


def test_a_guess_must_be_a_record() -> None:
    class Wrong:
        def guess(self, outputs: Any, rng: np.random.Generator, known: Any = None) -> IntArray:
            return np.full(len(outputs), -1)

    with pytest.raises(DpriskError, match=r"one record of 0..3"):
        measure(Wrong(), GRR(4, 1.0), Threat(UNIFORM), np.random.default_rng(0), 10)


# Against the best attacker


@of_each_protocol
def test_the_rules_attain_the_optimum_under_a_uniform_prior(mechanism: Mechanism) -> None:
    """Exactly: the rule written out, over all outputs."""
    odds = odds_of(lambda output: evenly(members_by_hand(mechanism, output), 4), mechanism)
    pi, nothing = UNIFORM.weights, np.zeros(4, dtype=np.int64)
    best = assess(mechanism, Threat(UNIFORM))
    exact = written_out(mechanism.matrix(), pi, nothing, np.eye(4) > 0, odds)
    assert exact == pytest.approx((best.advantage, best.success), abs=1e-12)
    found = measure(RandomMember(mechanism), mechanism, Threat(UNIFORM), np.random.default_rng(8), 20_000)  # type: ignore[arg-type]
    assert found.advantage == pytest.approx(best.advantage, abs=0.01)


def test_the_likeliest_entry_is_best_under_a_uniform_prior() -> None:
    mechanism, threat, rng = SHE(5, 3.0), Threat(Prior.uniform(5)), np.random.default_rng(9)
    found = measure(Likeliest(mechanism), mechanism, threat, rng, 40_000)
    assert inside(assess(mechanism, threat).advantage, found.advantage_interval)
    assert found.advantage == pytest.approx(assess(mechanism, threat).advantage, abs=0.01)
    assert measure(AboveThreshold(mechanism), mechanism, threat, rng, 40_000).advantage < found.advantage - 0.02


@given(pi=priors(5), groups=partitions(5), epsilon=st.sampled_from([0.1, 1.0, 4.0]))
def test_the_report_has_the_best_advantage_for_any_prior_and_knowledge(
    pi: FloatArray, groups: IntArray, epsilon: float
) -> None:
    """The thesis knows it for a uniform prior; the success is not the best for others."""
    odds = np.broadcast_to(np.eye(5)[:, None, :], (5, int(groups.max()) + 1, 5))
    advantage, rero = written_out(GRR(5, epsilon).matrix(), pi, groups, np.eye(5) > 0, odds)
    best = assess(GRR(5, epsilon), Threat(Prior(pi), knows=groups))
    assert advantage == pytest.approx(best.advantage, abs=1e-12)
    assert rero <= best.success + 1e-12


@pytest.mark.slow
@settings(max_examples=15)
@given(pi=priors(4), seed=st.integers(0, 1000))
def test_no_rule_beats_the_optimum(pi: FloatArray, seed: int) -> None:
    rng, threat = np.random.default_rng(seed), Threat(Prior(pi))
    attacks: list[tuple[Guesser, Mechanism]] = [
        (RandomMember(mechanism), mechanism)  # type: ignore[arg-type]
        for mechanism in SET_PROTOCOLS.values()
    ]
    line = Exponential.on_line(4, 3.0)
    grr = GRR(4, 1.0)
    attacks += [(Report(), line), (Likeliest(line), line), (Estimation(grr, [0, 1]), grr), (MostCommon(pi), grr)]
    attacks += [(OptimalAttack(grr, threat, "success"), grr), (OptimalAttack(line, threat), line)]
    for attack, mechanism in attacks:
        found = measure(attack, mechanism, threat, rng, 1000, alpha=1e-6)
        best = assess(mechanism, threat)
        assert found.advantage_interval[0] <= best.advantage + 1e-12
        assert found.success_interval[0] <= best.success + 1e-12


def test_under_a_skewed_prior_the_best_attacker_gains_more() -> None:
    mechanism, threat, rng = SUE(4, 1.5), Threat(SKEWED), np.random.default_rng(10)
    best = measure(OptimalAttack(mechanism, threat), mechanism, threat, rng, 40_000)
    rule = measure(RandomMember(mechanism), mechanism, threat, rng, 40_000)
    assert inside(assess(mechanism, threat).advantage, best.advantage_interval)
    assert rule.advantage_interval[1] < best.advantage_interval[0]


# In an audit


def test_an_attack_decides_an_audit() -> None:
    """As in the thesis: exact reconstruction over all records, inverted. Faulty code is found out."""
    scorer = GuessScorer(RandomMember(SUE(8, 2.0)))
    honest = audit(SUE(8, 2.0), runs=20_000, look=Look(scorer=scorer))
    assert 0.5 < honest.epsilon_certified < 2.0
    assert honest.counts.answered == 20_000
    assert audit(SUE(8, 2.0), runs=20_000, look=Look(scorer=scorer)).counts == honest.counts
    assert audit(SUE(8, 6.0), claim=2.0, runs=20_000, look=Look(scorer=scorer)).verdict == "violated"
    assert honest.design.to_dict()["evidence"] == "guesses of RandomMember"


def test_what_a_report_names() -> None:
    assert GRR(3, 1.0).members([2, 0]).tolist() == [[False, False, True], [True, False, False]]


@given(data=st.data())
def test_which_sets_hold_which_records(data: st.DataObject) -> None:
    """Against the dense union, for windows on lines and rings and for arbitrary sets."""
    size = data.draw(st.integers(2, 6))
    groups = data.draw(partitions(size))
    other = Distances(0.5, 1.0 - data.draw(balls(size)))
    success = data.draw(st.sampled_from([None, Line(1.0), Ring(1.0), other]))
    reach = Threat(Prior.uniform(size), groups, success).reach
    sets, records = (part.ravel() for part in np.indices((reach.guess.size, size)))
    assert np.array_equal(reach.holds(sets, records), reach.members().toarray()[sets, records] > 0)


@given(data=st.data())
def test_the_set_of_a_guess_in_a_group_of_its_own(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 6))
    groups = data.draw(partitions(size))
    success = data.draw(st.sampled_from([Line(1.0), Distances(0.5, 1.0 - data.draw(balls(size)))]))
    reach = Threat(Prior.uniform(size), groups, success).reach
    guesses, known = (part.ravel() for part in np.indices((reach.n_guesses, int(groups.max()) + 1)))
    one_by_one = [reach.find(guesses[[place]], int(known[place])).item() for place in range(known.size)]
    assert reach.find(guesses, known).tolist() == one_by_one


@pytest.mark.slow
def test_an_attack_that_may_know_many_things_is_measured_by_two_guesses_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unbiased, also by group: the mean over many estimates is the exact value of the attack."""
    channel = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7], [0.2, 0.2, 0.6]])
    pi, groups = SKEWED.weights, [0, 0, 1, 1]
    table = np.array([[0, 2], [1, 3], [0, 3]])
    threat = Threat(SKEWED, groups)
    exact = attack_values(channel, pi, np.array(groups), np.eye(4, dtype=bool), table)

    class FromTable:
        def guess(self, outputs: Any, rng: np.random.Generator, known: Any = None) -> IntArray:
            return np.asarray(table[outputs, known])

    def code(records: IntArray, rng: np.random.Generator) -> Any:
        return np.sum(rng.random(records.size)[:, None] > np.cumsum(channel[records], axis=1), axis=1)

    monkeypatch.setattr("dprisk.attacks.estimate.MANY_GROUPS", 1)
    found = [measure(FromTable(), code, threat, np.random.default_rng(seed), 5000, alpha=1e-4) for seed in range(100)]
    for value, wanted in zip(("advantage", "success"), exact, strict=True):
        values = np.array([getattr(one, value) for one in found])
        assert abs(values.mean() - wanted) < 4 * values.std() / 10
        assert all(inside(wanted, getattr(one, f"{value}_interval")) for one in found)


def test_guesses_lead_as_their_scores_do() -> None:
    rng = np.random.default_rng(0)
    outputs = rng.integers(-2, 12, size=500)
    scorer = GuessScorer(Likely())
    for records in (np.arange(10), np.array([7, 2, 5]), np.array([3, 1])):
        place, lead = scorer.leads(outputs, records)
        theirs, gap = leads(scorer.scores(outputs, records))
        assert lead.tolist() == gap.tolist()
        assert place[lead > 0].tolist() == theirs[gap > 0].tolist()


class Likely:
    def guess(self, outputs: IntArray, rng: np.random.Generator, known: Any = None) -> IntArray:
        return np.asarray(outputs)


def test_the_likeliest_record_is_the_best_guess_where_records_are_alike() -> None:
    """The short way gives the same tally as beliefs about every record."""
    mechanism, threat = OUE(6, 1.0), Threat(Prior.uniform(6))
    rng = np.random.default_rng(1)
    drawn = rng.integers(6, size=2000)
    outputs = mechanism.sample(drawn, rng)
    short = Guessing(threat, KnownScorer(mechanism), bet_on(threat))
    long = Guessing(threat, KnownScorer(mechanism), bet_on(threat))
    long.__dict__["_plain"] = False
    assert short._plain
    assert short.tally(outputs, drawn).to_dict() == long.tally(outputs, drawn).to_dict()


def test_each_candidate_is_as_likely_and_anybody_where_there_is_none() -> None:
    rows = np.array([[True, False, True, True], [False, False, False, False], [False, True, False, False]])
    found = one_of(np.repeat(rows, 3000, axis=0), np.random.default_rng(0)).reshape(3, 3000)
    shares = np.array([np.bincount(row, minlength=4) for row in found]) / 3000
    wanted = np.array([[1 / 3, 0, 1 / 3, 1 / 3], [0.25] * 4, [0, 1, 0, 0]])
    assert np.all(shares[wanted == 0] == 0)
    np.testing.assert_allclose(shares, wanted, atol=0.04)
    assert one_of(np.zeros((0, 4), dtype=bool), np.random.default_rng(0)).size == 0


@pytest.mark.parametrize("share", [0.004, 0.1, 0.5])
def test_candidates_are_as_likely_whether_they_are_tried_or_listed(share: float) -> None:
    rng = np.random.default_rng(1)
    row = rng.permutation(500) < 500 * share
    found = one_of(np.broadcast_to(row, (20_000, 500)), rng)
    times = np.bincount(found, minlength=500)
    assert np.all(times[~row] == 0)
    assert stats.chisquare(times[row]).pvalue > 1e-4
