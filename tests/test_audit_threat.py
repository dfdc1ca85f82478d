"""Audits under a threat: runs have unbiased values, certificates are rarely wrong, and some leaks only show there."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprisk import (
    GRR,
    OUE,
    ApproxDP,
    AuditInterrupted,
    Laplace,
    Matrix,
    Prior,
    PureDP,
    Ring,
    Threat,
    WorstCase,
    assess,
    audit,
)
from dprisk.attacks import OptimalAttack
from dprisk.attacks.estimate import mass_range
from dprisk.auditing import Look, Running, as_target
from dprisk.auditing.certify.advantage import epsilon_from_advantage
from dprisk.auditing.certify.bets import Bet
from dprisk.auditing.certify.gains import Gains
from dprisk.auditing.evidence.design import KnownScorer
from dprisk.auditing.evidence.guessing import Guessing, bet_on
from dprisk.auditing.running import plan
from dprisk.errors import InputFileError, MechanismError, ParameterError, TargetError, ThreatError
from dprisk.testing import assert_private
from dprisk.threat import Distances
from dprisk.types import FloatArray
from tests.naive import theorem_4_3
from tests.strategies import balls, channels, partitions, priors
from tests.typed import run

Rng = np.random.Generator


def same(report: Any) -> dict[str, Any]:
    return {key: value for key, value in report.to_dict().items() if key != "seconds"}


# --- the value of a run ---


@pytest.mark.slow
@given(st.data())
def test_the_mean_of_the_values_is_the_best_attackers_advantage(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 5))
    channel, weights = data.draw(channels(size)), data.draw(priors(size))
    groups, table = data.draw(partitions(size)), data.draw(balls(size))
    mechanism = Matrix(channel)
    threat = Threat(Prior(weights), groups, Distances(0.5, 1.0 - table))
    guessing = Guessing(threat, KnownScorer(mechanism), bet_on(threat))
    advantage = 0.0
    low, high = mass_range(threat)
    for output in range(channel.shape[1]):
        for record in np.flatnonzero(weights * channel[:, output]):
            one = guessing.tally(np.array([output]), np.array([record]))
            assert one.runs == 1
            assert low - 1e-12 <= one.masses[0] <= high * (1 + 1e-4)
            assert guessing.bet.low <= one.mean <= guessing.bet.high
            advantage += weights[record] * channel[record, output] * one.mean
    expected, _ = theorem_4_3(channel, weights, groups, table)
    assert expected - 1e-4 <= advantage <= expected + 1e-9


def gains(values: dict[float, tuple[int, int]]) -> Gains:
    mass = np.concatenate([np.full(sum(both), mass) for mass, both in values.items()])
    hit = np.concatenate([np.arange(sum(both)) < both[0] for both in values.values()])
    return Gains.of(mass, hit)


def test_tallies_add_up_in_any_order_and_can_be_written_down() -> None:
    one, two = gains({0.3: (2, 1), 0.0: (1, 0)}), gains({0.3: (0, 4), 1.0: (5, 0)})
    both = gains({1.0: (5, 0), 0.0: (1, 0), 0.3: (2, 5)})
    assert one + two == two + one == both
    assert Gains.read(json.loads(json.dumps(both.to_dict()))) == both
    assert (both.runs, both.correct) == (13, 8)
    assert both.mean == pytest.approx((8 - 5 - 7 * 0.3) / 13, abs=3e-5)
    assert one != two
    assert "8 right of 13" in repr(both)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_masses_are_rounded_up_a_little(masses: list[float]) -> None:
    rounded = [Gains.of(np.array([mass]), np.array([True])).masses[0] for mass in masses]
    for mass, up in zip(masses, rounded, strict=True):
        assert mass * (1 - 1e-12) <= up <= mass * (1 + 4e-5) + 1e-300


# --- bets ---


def naive_capital(bet: Bet, x: FloatArray, mean: float) -> float:
    """A bettor who plays run by run with forty purses, and with one more if there is a stake."""
    stakes = np.geomspace(1e-4, 0.999, 40)
    purses = np.full(40, 1 / 40 if bet.stake is None else 0.2 / 40)
    if bet.stake is not None:
        stakes, purses = np.append(stakes, bet.stake), np.append(purses, 0.8)
    for value in x:
        purses = purses * (1 + stakes * (value - mean) / (bet.high - bet.low))
    return float(purses.sum())


@pytest.mark.parametrize("stake", [None, 0.07])
def test_the_capital_is_that_of_a_bettor(stake: float | None) -> None:
    bet, rng = Bet(-0.3, 0.9, stake), np.random.default_rng(0)
    x = rng.choice([-0.3, 0.2, 0.9], size=200)
    levels, times = np.unique(x, return_counts=True)
    for mean in (-0.3, 0.0, 0.2):
        found = bet.log_capital(levels, times.astype(float), mean)
        assert found == pytest.approx(math.log(naive_capital(bet, x, mean)), rel=1e-9)
    low, high = (bound(levels, times.astype(float), 0.05) for bound in (bet.lower, bet.upper))
    assert low < x.mean() < high
    assert naive_capital(bet, x, low) == pytest.approx(20, rel=1e-4)


def test_a_tuned_stake_is_better_and_no_less_valid() -> None:
    rng, alpha, tuned_is_better, alarms = np.random.default_rng(1), 0.1, 0, 0
    tries, runs, chance = 300, 2000, 0.3
    for _ in range(tries):
        hits = float(rng.binomial(runs, chance))
        values, times = np.array([0.0, 1.0]), np.array([runs - hits, hits])
        tuned = Bet.tuned(0.0, 1.0, chance * (1 - chance), runs, alpha).lower(values, times, alpha)
        tuned_is_better += tuned > Bet(0.0, 1.0).lower(values, times, alpha)
        alarms += tuned > chance
    assert tuned_is_better == tries
    assert alarms <= tries * alpha + 3 * math.sqrt(tries * alpha * (1 - alpha))


@pytest.mark.slow
def test_very_many_distinct_values_are_put_together() -> None:
    x = np.random.default_rng(0).random(50_000)
    low = Bet(0.0, 1.0).lower(x, np.ones(x.size), 0.01)
    assert 0.49 < low < x.mean()


# --- certificates ---

THREATS = {
    "uniform": Threat(Prior.uniform(8)),
    "zipf": Threat(Prior.zipf(8)),
    "known groups": Threat(Prior.zipf(8), knows=[0, 0, 0, 1, 1, 1, 2, 2]),
    "all known": Threat.membership(Prior.geometric(8)),
    "line": Threat.reconstruction(Prior.zipf(8), within=1.0),
    "ring": Threat(Prior.uniform(8), success=Ring(1.0)),
    "zero mass": Threat(Prior([0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", THREATS)
def test_the_certificate_is_below_the_truth_and_near_what_the_advantage_allows(name: str) -> None:
    threat, mechanism = THREATS[name], GRR(8, 1.5)
    report = audit(mechanism, threat=threat, runs=100_000)
    attainable = epsilon_from_advantage(assess(mechanism, threat).advantage, threat)
    assert 0.93 * attainable < report.epsilon_certified < attainable + 1e-6 <= 1.5 + 1e-5
    assert report.verdict == "consistent with the claim"
    attack: Any = report.attack()
    risk, worst = assess(mechanism, threat), WorstCase(PureDP(1.5), threat)
    assert attack.advantage_bound == pytest.approx(worst.advantage)
    assert attack.success_bound == pytest.approx(worst.success)
    assert attack.advantage_interval[0] < risk.advantage < attack.advantage_interval[1]
    assert attack.success_interval[0] < attack.success < attack.success_interval[1]
    assert audit(mechanism, 0.3, threat=threat, runs=100_000).verdict == "violated"


def test_a_uniform_prior_is_audited_as_before_without_abstaining() -> None:
    """The certificate is Clopper-Pearson's put into Corollary 5.6."""
    from dprisk.auditing.certify.counts import Counts, certified_epsilon

    report = audit(GRR(20, 2.0), threat=Threat(Prior.uniform(20)), runs=20_000)
    counts = Counts(20_000, 20_000, report.tally.correct, 20)
    assert report.epsilon_certified == pytest.approx(certified_epsilon(counts, 0.01), abs=1e-8)


def as_code(mechanism: Any) -> Callable[..., Any]:
    def code(record: int, rng: Rng) -> Any:
        return mechanism.sample(np.array([record]), rng)[0]

    return code


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zipf", "known groups", "line"])
def test_attacks_are_learned_too(name: str) -> None:
    threat, mechanism = THREATS[name], GRR(8, 2.0)
    best = assess(mechanism, threat).advantage
    report = audit(as_code(mechanism), 2.0, records=8, threat=threat, runs=20_000)
    assert report.to_dict()["attack"]["advantage_interval"][1] > 0.95 * best
    assert report.tally.mean == pytest.approx(best, abs=0.02)
    assert audit(as_code(mechanism), 1.0, records=8, threat=threat, runs=20_000).verdict == "violated"


def test_an_attack_of_ones_own_decides() -> None:
    threat, mechanism = THREATS["known groups"], OUE(8, 2.0)
    own = OptimalAttack(mechanism, threat)
    report = audit(mechanism, threat=threat, runs=40_000, look=Look(scorer=own))
    assert report.design.to_dict()["evidence"] == "guesses of OptimalAttack"
    known = audit(mechanism, threat=threat, runs=40_000)
    assert report.tally.mean == pytest.approx(known.tally.mean, abs=0.015)
    assert report.tally.mean == pytest.approx(assess(mechanism, threat).advantage, abs=0.015)


def test_records_beyond_those_learned_about_are_taken_as_average() -> None:
    def code(record: int, rng: Rng) -> float:
        return record / 300 + 0.2 * rng.normal()

    threat = Threat.reconstruction(Prior.uniform(300), within=40.0)
    report = audit(code, 1.0, records=300, threat=threat, runs=5000)
    assert report.tally.mean > 0.2
    assert report.verdict == "violated"


def test_an_output_that_the_family_never_makes_says_nothing() -> None:
    family = Matrix([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    threat = Threat(Prior([0.7, 0.3]))
    report = audit(lambda record: 2, 1.0, records=2, threat=threat, runs=500, look=Look(family=family))
    assert (report.verdict, report.tally.mean) == ("consistent with the claim", pytest.approx(0, abs=0.1))


def test_what_a_family_would_need_is_an_estimate() -> None:
    found = audit(GRR(8, 1.5), 1.0, threat=THREATS["zipf"], runs=100_000).family_estimate()
    assert found is not None
    assert (found["parameter"], found["value"]) == ("epsilon", pytest.approx(1.5, abs=0.05))
    assert audit(GRR(8, 1.5), runs=1000).family_estimate() is None
    assert audit(as_code(GRR(8, 1.5)), 1.5, records=8, threat=THREATS["zipf"], runs=500).family_estimate() is None


@pytest.mark.slow
def test_delta_is_taken_off() -> None:
    threat, claim = Threat(Prior.zipf(6)), ApproxDP(1.0, 0.05)
    honest = WorstCase(claim, threat)
    reveal = Matrix(np.hstack([0.05 * np.eye(6), 0.95 * GRR(6, 1.0).matrix()]))
    assert audit(reveal, claim, threat=threat, runs=50_000).verdict == "consistent with the claim"
    broken = audit(Matrix(np.hstack([0.4 * np.eye(6), 0.6 * GRR(6, 1.0).matrix()])), claim, threat=threat, runs=50_000)
    assert broken.verdict == "violated"
    assert broken.attack().advantage_bound == pytest.approx(honest.advantage)


# --- leaks that only a threat shows ---


def by_quarter(record: int, rng: Rng) -> int:
    """Randomised response on the quarter of 100 records that the record is in, at epsilon 1.3."""
    own = record // 25
    return own if rng.random() < math.exp(1.3) / (math.exp(1.3) + 3) else int((own + rng.integers(1, 4)) % 4)


def test_a_leak_of_the_neighbourhood_shows_with_a_ball() -> None:
    exact = audit(by_quarter, 1.0, records=100, threat=Threat(Prior.uniform(100)), runs=5000)
    near = audit(by_quarter, 1.0, records=100, threat=Threat.reconstruction(Prior.uniform(100), 12.0), runs=5000)
    assert exact.verdict == "consistent with the claim"
    assert near.verdict == "violated"
    assert near.epsilon_certified <= 1.3


def about_one(record: int, rng: Rng) -> bool:
    """Reports nothing, unless of record 777."""
    return bool(rng.random() < (0.9 if record == 777 else 0.1))


@pytest.mark.slow
def test_a_leak_about_a_likely_record_shows_with_a_skewed_prior() -> None:
    weights = np.full(2000, 0.7 / 1999)
    weights[777] = 0.3
    assert audit(about_one, 1.0, records=2000, runs=5000).verdict == "consistent with the claim"
    uniform = audit(about_one, 1.0, records=2000, threat=Threat(Prior.uniform(2000)), runs=5000)
    assert uniform.verdict == "consistent with the claim"
    skewed = audit(about_one, 1.0, records=2000, threat=Threat(Prior(weights)), runs=5000)
    assert skewed.verdict == "violated"
    assert skewed.epsilon_certified <= math.log(9)


# --- false alarms ---


def worst(threat: Threat, epsilon: float) -> Matrix:
    """A mechanism at the boundary: no epsilon-DP mechanism has a larger advantage under this threat."""
    found = WorstCase(PureDP(epsilon), threat).worst_mechanism()
    assert found is not None
    assert assess(found, threat).advantage == pytest.approx(WorstCase(PureDP(epsilon), threat).advantage)
    return Matrix(found.matrix())


@pytest.mark.slow
@pytest.mark.parametrize("stop_early", [False, True])
def test_false_alarms_at_the_boundary_are_as_rare_as_promised(
    stop_early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "BLOCK", 50)  # looks at every 50 runs
    alpha, audits, threat = 0.1, 150, Threat(Prior([0.5, 0.3, 0.2]))
    mechanism = worst(threat, 1.0)
    alarms = above = 0
    for seed in range(audits):
        report = audit(mechanism, 1.0, threat=threat, runs=400, alpha=alpha, seed=seed, stop_early=stop_early)
        alarms += report.verdict == "violated"
        above += report.epsilon_certified > 1.0 or report.log_e_value >= -math.log(alpha)
    assert alarms <= above <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))
    assert above > 0  # the bound is not idle


@pytest.mark.slow
def test_false_alarms_of_learned_attacks_with_a_ball_are_as_rare_as_promised() -> None:
    """On a ring of four, where a guess is right on three; this mechanism attains the set bound (theory, 3.4 c)."""
    alpha, audits = 0.1, 150
    threat = Threat(Prior.uniform(4), success=Ring(1.0))
    mechanism = Matrix(np.where(np.eye(4)[[2, 3, 0, 1]] > 0, 1.0, math.e) / (1 + 3 * math.e))
    assert assess(mechanism, threat).advantage == pytest.approx(WorstCase(PureDP(1.0), threat).advantage)
    cumulative = np.cumsum(mechanism.matrix(), axis=1)

    def code(records: Any, rng: Rng) -> Any:
        return (rng.random((len(records), 1)) > cumulative[np.asarray(records)]).sum(axis=1)

    alarms = 0
    for seed in range(audits):
        report = audit(as_target(code, 4, batch=True), 1.0, threat=threat, runs=400, alpha=alpha, seed=seed)
        alarms += report.verdict == "violated"
    assert 0 < alarms <= audits * alpha + 3 * math.sqrt(audits * alpha * (1 - alpha))


# --- the same machinery ---


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_report() -> None:
    given: dict[str, Any] = {"threat": THREATS["all known"], "runs": 25_000}
    assert same(audit(OUE(8, 1.0), **given)) == same(audit(OUE(8, 1.0), **given, running=Running(n_jobs=2)))


@pytest.mark.slow
def test_an_interrupted_audit_goes_on_from_its_store(tmp_path: Path) -> None:
    given: dict[str, Any] = {"threat": THREATS["known groups"], "records": 8, "runs": 4000}
    store = tmp_path / "a.db"

    def stop(tally: Gains, _: int) -> None:
        if tally.runs >= 2000:
            raise KeyboardInterrupt

    with pytest.raises(AuditInterrupted) as stopped:
        audit(noisy, 1.0, **given, running=Running(store=store), watch=stop)
    assert stopped.value.report.runs == 2000
    assert stopped.value.report.verdict == "undecided"
    assert same(audit(noisy, 1.0, **given, running=Running(store=store))) == same(audit(noisy, 1.0, **given))
    for other in (THREATS["zipf"], Threat(Prior.uniform(8), THREATS["known groups"].knows), None):
        with pytest.raises(InputFileError, match="holds another audit"):
            audit(noisy, 1.0, **(given | {"threat": other}), running=Running(store=store))


def noisy(record: int, rng: Rng) -> int:
    return (record + int(rng.geometric(0.3))) % 8


def test_it_stops_early() -> None:
    report = audit(GRR(8, 3.0), 1.0, threat=THREATS["zipf"], runs=100_000, stop_early=True)
    assert (report.verdict, report.anytime) == ("violated", True)
    assert report.runs < 100_000
    with pytest.raises(AssertionError, match="breaks its promise"):
        assert_private(GRR(8, 3.0), 1.0, threat=THREATS["line"])


@pytest.mark.parametrize("runs", [1, 20])
def test_too_few_runs_decide_nothing(runs: int) -> None:
    report = audit(GRR(8, 4.0), threat=THREATS["zipf"], runs=runs)
    assert report.verdict == "undecided"
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_reports_can_be_shown() -> None:
    report = audit(GRR(8, 1.0), threat=THREATS["all known"], runs=1000)
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["design"]["threat"]["knows"] == "everything"
    assert {"verdict", "claim", "epsilon_certified", "epsilon_estimate", "e_value", "runs", "attack"} <= set(told)
    assert "points more than on people who did not take part" in report._repr_html_()
    with pytest.raises(ParameterError, match="no count of answers"):
        _ = report.counts


# --- misuse ---


class Wild:
    def guess(self, outputs: Any, rng: Rng, known: Any = None) -> Any:
        return np.full(len(outputs), 99)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"threat": Prior.uniform(8)}, "is not a Threat"),
        ({"threat": Threat(Prior.uniform(3))}, "has 8 records, the prior of the threat 3"),
        ({"threat": Threat(Prior([1.0] + [0.0] * 7))}, "one possible record"),
        ({"threat": THREATS["zipf"], "look": Look(family=GRR(3, 1.0))}, "The family has 3 records"),
        ({"threat": THREATS["zipf"], "look": Look(scorer=Wild())}, "must guess one record of 0..7"),
    ],
)
def test_misuse_is_refused_in_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises((ParameterError, ThreatError), match=said):
        audit(noisy, 1.0, records=8, runs=100, **given)


def test_labels_in_another_order_are_refused() -> None:
    threat = Threat(Prior({"b": 0.5, "a": 0.5}))
    with pytest.raises(ThreatError, match="'a' here is 'b' there"):
        audit(lambda record: record, 1.0, records=["a", "b"], threat=threat)
    assert audit(lambda record: record, 1.0, records=["b", "a"], threat=threat, runs=500).verdict == "violated"


@pytest.mark.parametrize("labels", [("low", "mid", "high"), (0, 1, 2)])
def test_a_mechanism_and_a_prior_in_another_order_are_refused_as_they_are_assessed(labels: tuple[Any, ...]) -> None:
    mechanism = GRR(3, 1.0).labelled(labels)
    for other in (labels[::-1], ("a", "b", "c")):
        threat = Threat(Prior([0.5, 0.3, 0.2], other))
        said = []
        for ask in (assess, lambda mechanism, threat: audit(mechanism, threat=threat, runs=100)):
            with pytest.raises(MechanismError, match=f"in the same order: {labels[0]!r} here is") as refused:
                ask(mechanism, threat)
            said.append(str(refused.value))
        assert said[0] == said[1]
    assert audit(mechanism, threat=Threat(Prior([0.5, 0.3, 0.2], labels)), runs=100).runs == 100


def test_the_labels_of_a_mechanism_are_its_records() -> None:
    mechanism = GRR(3, 1.0).labelled("abc")
    assert as_target(mechanism).records == as_target(mechanism, "abc").records == ("a", "b", "c")
    with pytest.raises(TargetError, match="names its records itself, as 'a' and so on; leave out records"):
        audit(mechanism, records="cba", threat=Threat(Prior([0.5, 0.3, 0.2], ["c", "b", "a"])))


# --- the command ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--mechanism grr --epsilon 1 --size 8 --prior zipf:1 --runs 5000", 0),
        ("--mechanism grr --epsilon 3 --claim 1 --size 8 --prior zipf:1 --runs 5000", 1),
        ("--mechanism laplace --epsilon 3 --claim 1 --size 20 --within 3 --runs 5000", 1),
        ("--mechanism exponential --epsilon 1 --size 20 --within 3 --space ring --runs 2000", 0),
        ("--mechanism grr --epsilon 3 --claim 1 --prior prior.csv --knows all --runs 5000", 1),
        ("--mechanism matrix --matrix matrix.csv --prior zipf --runs 500 --stop-early", 0),
        ("leaky:tell --claim 1 --prior prior.csv --runs 500", 1),
        ("leaky:tell --claim 1 --records a,b,c --knows none --runs 500", 1),
        ("leaky:tell --claim 1 --records 1..9 --within 1 --runs 500", 1),
    ],
)
def test_the_command_takes_the_options_of_a_threat(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: str,
    expected: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaky.py").write_text("def tell(record):\n    return record\n")
    (tmp_path / "prior.csv").write_text("label,count\na,5\nb,3\nc,2\n")
    (tmp_path / "matrix.csv").write_text("0.5,0.5\n0.2,0.8\n")
    code, out, error = run(capsys, monkeypatch, "audit", *arguments.split(), "--json")
    assert (code, error) == (expected, "")
    assert "threat" in json.loads(out)["design"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--mechanism grr --epsilon 1 --size 5 --space ring", "--space has no meaning without --within"),
        ("--mechanism grr --epsilon 1 --prior zipf", "--size is missing"),
        ("--mechanism grr --epsilon 1 --size 5 --prior none.csv", "none.csv"),
        ("--outputs runs.csv --claim 1 --prior zipf", "--prior has no meaning with --outputs"),
        ("leaky:tell --claim 1 --records 1..3 --knows groups.csv", "groups.csv"),
    ],
)
def test_misuse_of_the_command_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaky.py").write_text("def tell(record):\n    return record\n")
    (tmp_path / "runs.csv").write_text("record,output\n1,1\n2,2\n")
    code, out, error = run(capsys, monkeypatch, "audit", *arguments.split())
    assert (code, out) == (2, "")
    assert said in error
    assert len(error.splitlines()) == 1


def test_laplace_noise_is_audited_with_a_ball_of_any_size() -> None:
    for within in (0.0, 5.0, 30.0):
        threat = Threat.reconstruction(Prior.uniform(30), within)
        report = audit(Laplace(30, 2.0), threat=threat, runs=20_000)
        assert report.epsilon_certified <= 2.0
        assert report.verdict == ("undecided" if within == 30 else "consistent with the claim")
