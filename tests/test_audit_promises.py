"""What an audit promises, against code, scorers and numbers that make it hard to keep."""

import json
import math
import pickle
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from dprisk import GRR, Gaussian, GaussianDP, Mechanism, Prior, Threat, audit, audit_recorded
from dprisk.auditing import AuditReport, Look, as_target, recorded, recorded_runs
from dprisk.auditing.certify.claim import consequence
from dprisk.auditing.certify.counts import Counts, certified_epsilon
from dprisk.auditing.code.outputs import as_outputs
from dprisk.auditing.code.randomness import set_aside
from dprisk.auditing.code.recordings import Recorded
from dprisk.auditing.evidence.design import Design, GuessScorer, KnownScorer, Scorer
from dprisk.auditing.evidence.learned import FrequencyScorer, Kernels, KernelScorer
from dprisk.auditing.evidence.suspects import Wanted, learned_design
from dprisk.errors import DpriskError, ParameterError, ThreatError
from dprisk.guarantees import ApproxDP
from dprisk.mechanisms import UnaryEncoding


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def report(counts: Counts, claim: ApproxDP, alpha: float = 0.01) -> AuditReport:
    design = Design(np.arange(counts.size), 1e-9, Always(0))
    return AuditReport({"name": "it"}, claim, counts, design, alpha, counts.runs, False, 0, 0.0)


class Always(Scorer):
    """Names one suspect, whatever the output."""

    def __init__(self, suspect: int) -> None:
        self.suspect = suspect

    def scores(self, outputs: Any, records: Any) -> Any:
        return np.tile(np.arange(len(records)) == self.suspect, (len(outputs), 1)).astype(float)

    def describe(self) -> str:
        return f"always {self.suspect}"


# --- what is said ---


@pytest.mark.parametrize("correct", range(600, 1000, 13))
def test_a_sentence_never_says_more_than_the_certificate(correct: int) -> None:
    found = report(Counts(1000, 1000, correct, 2), ApproxDP(0.3))
    said = float(found.sentence().split("at least ")[1].split()[0])
    assert said <= found.epsilon_certified < said + 0.001 + 1e-9
    assert float(repr(found).split(">=")[1].split(",")[0]) <= found.epsilon_certified


def test_what_the_claim_allows_is_never_said_too_small() -> None:
    found = report(Counts(1000, 1000, 900, 3), ApproxDP(1.0))
    attack: Any = found.attack()
    words = found.attack_sentence()
    success, advantage = (float(part.split(")")[0]) for part in words.split("the claim allows ")[1:])
    assert 100 * attack.success_bound <= success <= 100 * attack.success_bound + 0.01
    assert 100 * attack.advantage_bound <= advantage <= 100 * attack.advantage_bound + 0.01
    low, high = (float(end) for end in words.split("(")[1].split(";")[0].split(" to "))
    assert low <= 100 * attack.success_interval[0]
    assert high >= 100 * attack.success_interval[1]


@pytest.mark.parametrize("threat", [None, Threat(Prior([0.6, 0.4]))])
def test_an_attack_is_a_value_that_says_what_was_measured(threat: Threat | None) -> None:
    made = audit(GRR(2, epsilon=1.0), threat=threat, runs=100)
    without = replace(made, tally=made.design.nothing)
    bounds = {"baseline", "success_bound", "advantage_bound"}
    measured = {"success", "success_interval", "advantage", "advantage_interval"}
    assert set(made.to_dict()["attack"]) == bounds | measured
    assert set(without.to_dict()["attack"]) == bounds
    assert without.attack_sentence() == ""
    assert made.attack() == made.attack() != without.attack()
    assert (without.attack().success, without.attack().advantage_interval) == (None, None)


@pytest.mark.parametrize(
    ("alpha", "words"),
    [
        (0.01, "99 % confidence"),
        (0.1, "90 % confidence"),
        (0.07, "93 % confidence"),
        (0.001, "99.9 % confidence"),
        (0.05 / 3, "98.33 % confidence"),
        (1e-12, "confidence 1 - 1e-12"),
    ],
)
def test_no_confidence_is_rounded_to_certainty(alpha: float, words: str) -> None:
    assert words in report(Counts(1000, 1000, 900, 2), ApproxDP(1.0), alpha).sentence()


def test_the_smallest_alpha_shows_nothing_rather_than_failing() -> None:
    assert certified_epsilon(Counts(100, 100, 100, 2), 5e-324, 1e-5) == 0


# --- promises of another kind ---


@pytest.mark.parametrize("mu", [1e-18, 1e-16, 1.4e-15, 2.0293889639334027e-09, 1.3490659563925557e-05, 0.01, 1.0, 20.0])
def test_the_pair_put_to_the_test_never_promises_more_than_gaussian_dp(mu: float) -> None:
    found = consequence(GaussianDP(mu))
    with mpmath.workdps(60):
        e, m = mpmath.mpf(found.epsilon), mpmath.mpf(mu)
        implied = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert mpmath.mpf(found.delta) >= implied


# --- recorded runs ---


def test_the_use_of_recorded_runs_ends_with_the_first_record_that_has_none_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Drawing a suspect in vain is no run, so the next one would not be uniform: wrong answers would go uncounted."""
    taught: list[Any] = []

    def learn(outputs: Any, records: Any, *_: Any) -> Design:
        taught.append(records)
        return Design(np.array([0, 1]), 1e-9, Always(1))

    monkeypatch.setattr(recorded_runs, "learned_design", learn)
    monkeypatch.setattr(recorded_runs, "SEVERAL", 1)
    records = np.repeat([0, 1], [1, 200])
    runs = Recorded(records, np.zeros(records.size, dtype=np.int64), (0, 1), "file")
    for seed in range(40):
        found = audit_recorded(runs, 0.0, seed=seed).counts
        left = 1 - int((taught[-1] == 0).sum())
        assert found.wrong == left
        assert found.runs == 0 or left == 1


# --- outputs that change their kind ---


def mixed(record: Any, rng: np.random.Generator) -> Any:
    """Keeps nothing secret but returns None once in a while."""
    return None if rng.random() < 0.002 else float(record) + rng.normal() / 100


def rows_or_none(record: Any, rng: np.random.Generator) -> Any:
    return None if rng.random() < 0.002 else [float(record) + rng.normal() / 100, rng.normal()]


def bits_or_large(record: Any, rng: np.random.Generator) -> Any:
    return 2**70 if rng.random() < 0.002 else record


@pytest.mark.slow
@pytest.mark.parametrize("code", [mixed, rows_or_none, bits_or_large])
@pytest.mark.parametrize("threat", [None, Threat(Prior([0.6, 0.4]))])
@pytest.mark.parametrize("seed", range(3))
def test_a_rare_none_does_not_hide_a_leak(code: Any, threat: Any, seed: int) -> None:
    found = audit(code, 1.0, records=2, runs=4000, threat=threat, seed=seed)
    assert found.epsilon_certified > 3


@pytest.mark.parametrize("learned_from", ["numbers", "anything"])
def test_values_are_the_same_in_any_company(learned_from: str) -> None:
    numbers, records = as_outputs([0, 1, 0, 1] * 20), np.array([0, 1, 0, 1] * 20)
    anything = as_outputs([None, *numbers.tolist()[1:]])
    scorer = FrequencyScorer(numbers if learned_from == "numbers" else anything, records)
    alone, beside = as_outputs([0, 1]), as_outputs([0, 1, None])
    floats = as_outputs([0.0, 1.0])
    every = np.array([0, 1])
    assert np.array_equal(scorer.scores(alone, every), scorer.scores(beside, every)[:2])
    assert np.array_equal(scorer.scores(floats, every), scorer.scores(beside, every)[:2])
    assert scorer.scores(alone, every).argmax(axis=1).tolist() == [0, 1]


def test_kernels_say_nothing_of_outputs_beyond_all_numbers(rng: np.random.Generator) -> None:
    records = np.repeat([0, 1], 300)
    scorer = KernelScorer(rng.normal(size=(600, 2)) + records[:, None], records)
    odd = np.array([[1e200, 0.0], [-1e308, 1e308], [1e40, 1.0], [np.inf, 0.0], [np.nan, 1.0]])
    assert np.all(scorer.scores(odd, np.array([0, 1])) == 0)
    assert not Kernels().suits(np.vstack([rng.normal(size=(600, 2)), [[1e200, 0.0]]]))


def test_kernels_that_nobody_asked_for_may_suit_a_part_of_the_pilot_only(rng: np.random.Generator) -> None:
    """An infinite number in the first third is not seen by what the other two teach."""
    outputs, records = rng.normal(size=(900, 2)), rng.permutation(np.repeat([0, 1], 450))
    outputs[0, 0] = np.inf
    assert learned_design(outputs, records, Wanted(1000, 0.01, 0.0)).size == 2


# --- scorers that are not what they should be ---


class OneRow(Always):
    """Scores of the first output only."""

    def scores(self, outputs: Any, records: Any) -> Any:
        return super().scores(outputs, records)[:1]


class Column(Always):
    """Leads as a column, which numpy would compare with every target."""

    def leads(self, outputs: Any, records: Any) -> Any:
        best, lead = super().leads(outputs, records)
        return best[:, None], lead[:, None]


class FirstGuess:
    def guess(self, outputs: Any, rng: np.random.Generator, aux: Any = None) -> Any:
        return np.zeros(1, dtype=np.int64)


@pytest.mark.parametrize("scorer", [OneRow(0), Column(0), GuessScorer(FirstGuess())])
def test_a_scorer_must_answer_once_for_each_output(scorer: Any) -> None:
    with pytest.raises(DpriskError, match=r"each (of 100 )?output"):
        audit(lambda record: 0, 0.1, records=3000, runs=2000, stop_early=True, look=Look(scorer=scorer))


@pytest.mark.parametrize("scorer", [OneRow(0), GuessScorer(FirstGuess())])
def test_a_scorer_must_score_each_output_under_a_threat(scorer: Any) -> None:
    with pytest.raises(ParameterError, match="each output"):
        audit(lambda record: 0, 0.1, records=3, runs=2000, threat=Threat(Prior.uniform(3)), look=Look(scorer=scorer))


class Reseeding:
    """An attack that makes itself repeatable, at the cost of everybody who draws from numpy.random."""

    def guess(self, outputs: Any, rng: np.random.Generator, aux: Any = None) -> Any:
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        return np.asarray(outputs)


def shared_coin(record: int) -> int:
    """Binary randomised response at epsilon 1, by numpy's shared generator."""
    return record if np.random.random() < math.e / (math.e + 1) else 1 - record  # noqa: NPY002


def test_an_attack_that_seeds_shared_generators_does_not_repeat_the_noise_of_the_code() -> None:
    """The noise of all but the first runs of a block would be the same ever again, and count as independent."""
    given: dict[str, Any] = {"records": 2, "runs": 100_000, "look": Look(scorer=Reseeding())}
    assert all(audit(shared_coin, 1.0, **given, seed=seed).epsilon_certified <= 1 for seed in range(3))


def test_what_is_drawn_aside_between_the_parts_of_a_block_does_not_change_them() -> None:
    target = as_target(lambda record: random.random() + np.random.random(), records=2)  # noqa: NPY002
    numbers, drawn = np.zeros(30, dtype=np.int64), []
    parts = []
    for part in target.stream(numbers, 10, np.random.default_rng(0)):
        with set_aside():
            drawn.append(random.random() + np.random.random())  # noqa: NPY002
            np.random.seed(7)  # noqa: NPY002
        parts.append(part)
    assert np.array_equal(np.concatenate(parts), target.sample(numbers, np.random.default_rng(0)))
    assert not np.isin(drawn, np.concatenate(parts)).any()


class Noise:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)


class Layered:
    """Code whose generator is held by what it holds, in a list."""

    def __init__(self) -> None:
        self.parts = [Noise()]
        self.parts[0].__dict__["owner"] = self  # round in a circle

    def __call__(self, record: int) -> float:
        return record + float(self.parts[0].rng.normal())


def test_blocks_in_other_processes_do_not_share_their_random_numbers() -> None:
    """A block is sent with a copy of the code, and so with the state that its generator had."""
    target, numbers = as_target(Layered(), records=2), np.zeros(20, dtype=np.int64)
    one, two, again = (
        pickle.loads(pickle.dumps(target)).sample(numbers, np.random.default_rng(seed)) for seed in (1, 2, 1)
    )
    assert not np.isin(one, two).any()
    assert np.array_equal(one, again)


def test_a_threat_with_the_same_records_in_another_order_is_refused() -> None:
    with pytest.raises(ThreatError, match="same order"):
        audit(GRR(3, epsilon=1.0), threat=Threat(Prior([0.5, 0.3, 0.2], labels=[2, 1, 0])), runs=100)


# --- unary encoding whose bits speak against the record ---


@pytest.mark.parametrize(("size", "count"), [(10, 10), (100, 80)])  # few suspects and many take different ways
def test_a_missing_bit_speaks_for_a_record_if_p_is_below_q(size: int, count: int, rng: np.random.Generator) -> None:
    mechanism = UnaryEncoding(size, p=0.2, q=0.6)
    outputs, records = mechanism.sample(rng.integers(size, size=500), rng), rng.permutation(size)[:count]
    logs = mechanism.log_likelihood(outputs)[:, records]
    scores = mechanism.scores(outputs, records)
    assert scores - scores.max(axis=1, keepdims=True) == pytest.approx(logs - logs.max(axis=1, keepdims=True), abs=1e-9)
    best, lead = KnownScorer(mechanism).leads(outputs, records)
    ordered = np.sort(logs, axis=1)
    assert lead == pytest.approx(ordered[:, -1] - ordered[:, -2], abs=1e-9)
    assert np.array_equal(best[lead > 0], logs.argmax(axis=1)[lead > 0])


def test_an_audit_finds_the_epsilon_of_flipped_bits() -> None:
    mechanism = UnaryEncoding(50, p=0.2, q=0.6)
    found = audit(mechanism, runs=50_000)
    assert 0.93 * mechanism.epsilon < found.epsilon_certified <= mechanism.epsilon
    threat = audit(mechanism, runs=20_000, threat=Threat(Prior.uniform(50)))
    assert threat.to_dict()["attack"]["advantage_interval"][0] > 0


@pytest.mark.slow
def test_reports_are_strict_json() -> None:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    for alpha in (1e-300, 1e-12, 0.999999):
        for threat in (None, Threat(Prior([0.6, 0.4]))):
            for claim in (ApproxDP(0.0), ApproxDP(1e300), ApproxDP(1.0, 1.0)):
                found = audit(lambda record: record, claim, records=2, runs=500, alpha=alpha, threat=threat)
                json.loads(json.dumps(found.to_dict()), parse_constant=refuse)


# --- what is known, and what was left out, is told ---


@pytest.mark.parametrize(
    ("mechanism", "claim", "told"),
    [
        (GRR(100, epsilon=3.0), 1.0, "its epsilon is 3 at delta 0"),
        (Gaussian(2, sigma=3.73), 1.0, "it keeps no epsilon at delta 0"),
        (Gaussian(2, sigma=1.0), (1.0, 1e-5), "its epsilon is 4.377 at delta 1e-05"),
    ],
)
def test_a_mechanism_that_is_known_to_break_the_claim_is_never_consistent(
    mechanism: Mechanism, claim: Any, told: str
) -> None:
    report = audit(mechanism, claim, runs=20)
    assert report.verdict == "undecided"
    assert f"(by its formula {told}, which these runs do not show)" in report.sentence()
    assert audit(mechanism, mechanism.epsilon_at(1e-3) * 1.01 + 0.1, runs=20).verdict != "violated"


def recorded_rows(flips: int, rows: int, blank: str, blanks: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    record = np.arange(rows) % 2
    output = np.where(rng.random(rows) < 1 / flips, 1 - record, record)
    named = [blank if place < blanks and who == 0 else str(who) for place, who in enumerate(record.tolist())]
    return {"record": named, "output": output.tolist()}


def test_a_record_without_a_name_is_refused() -> None:
    with pytest.raises(DpriskError, match=r"column `record` has missing values \(40 of 4000\)"):
        recorded(recorded_rows(5, 4000, "", 80))


def test_rows_that_one_rare_record_leaves_unused_are_told() -> None:
    report = audit_recorded(recorded(recorded_rows(5, 4000, "O", 80)), 1.0)
    assert report.verdict == "undecided"
    assert "rows count: all suspects are drawn as often, and record 'O' has 40 rows" in report.sentence()
    assert audit_recorded(recorded(recorded_rows(5, 4000, "", 0)), 1.0).notes == ()


def test_columns_that_seem_to_be_swapped_are_asked_about() -> None:
    rows = recorded_rows(5, 4000, "", 0)
    numbers = np.random.default_rng(1).integers(10**9, size=4000).tolist()
    with pytest.raises(DpriskError, match=r"none has 6 rows or more; two need as many\. Are the columns swapped\?"):
        audit_recorded(recorded({"record": numbers, "output": rows["record"]}), 1.0)
    some = [number % 700 for number in numbers]
    assert (
        "are the columns swapped?" in audit_recorded(recorded({"record": some, "output": rows["record"]}), 1.0).notes[0]
    )


def test_text_that_may_be_numbers_with_a_decimal_comma_is_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    lines = [f"{who};{f'{who + rng.laplace():.1f}'.replace('.', ',')}" for who in np.arange(2000) % 2]
    (tmp_path / "runs.csv").write_text("\n".join(["record;output", *lines]))
    report = audit_recorded(recorded(tmp_path / "runs.csv"), 1.0)
    assert "if that is a number, write it with a point" in report.sentence()


def test_records_that_are_heavy_are_not_timed() -> None:
    with pytest.raises(DpriskError, match=r"A record of 80,000 bytes is quicker to read"):
        as_target(lambda record: 0, [np.zeros(10_000), np.ones(10_000)], timing=True)


def test_what_every_guess_is_right_about_cannot_be_found_out() -> None:
    threat = Threat.reconstruction(Prior.uniform(2), within=5)
    report = audit(lambda record, rng: record ^ int(rng.random() < 0.3), 1.0, records=2, threat=threat, runs=500)
    assert "(every guess counts as right, so nothing is left to find out)" in report.sentence()


# --- what nobody could have found is not consistent ---


def seeded_hash(record: int, rng: np.random.Generator) -> tuple[int, int]:
    """Local hashing without noise: whoever knows the seed reads the record off."""
    seed = int(rng.integers(2**31))
    return seed, hash((seed, record)) % 4


@pytest.mark.parametrize("kind", [tuple, list, np.array, lambda pair: dict(zip("sh", pair, strict=True))])
def test_outputs_with_a_key_that_nobody_applied_are_undecided(kind: Any) -> None:
    report = audit(lambda record, rng: kind(seeded_hash(record, rng)), 1.0, records=[0, 1], runs=5000)
    assert report.verdict == "undecided"
    assert "if that is a key, such as the seed of a hash, no attacker read the rest by it" in report.sentence()


def test_large_whole_numbers_that_are_read_are_no_keys() -> None:
    def wide(record: int, rng: np.random.Generator) -> list[int]:
        return [record * 10**9 + round(rng.laplace(scale=10**9)) for _ in range(2)]

    assert audit(wide, 2.0, records=[0, 1], runs=5000).verdict == "consistent with the claim"


def test_a_claim_with_a_large_delta_is_settled_by_the_main_attacker() -> None:
    def rounded(record: int, rng: np.random.Generator) -> list[float]:
        return [round(float(number), 2) for number in np.array([0.5 * record, 0]) + rng.normal(scale=0.25, size=2)]

    report = audit(rounded, GaussianDP(2.0), records=[0, 1], runs=20_000)
    assert report.verdict == "consistent with the claim"
    assert report.coverage is not None
    assert "with so large a delta the claim allows" in report.coverage.sentence()
    few = audit(lambda record, rng: record ^ int(rng.random() < 0.27), (1.0, 0.05), records=[0, 1], runs=20)
    assert few.verdict == "undecided"


@pytest.mark.parametrize("output", [7, [], "x", (1, 2.5)])
def test_code_that_always_gives_the_same_is_said_to(output: Any) -> None:
    report = audit(lambda record: output, 1.0, records=[0, 1], runs=2000)
    assert report.verdict == "consistent with the claim"
    assert re.search(r"Every output was [\[(]?.*\.$", report.sentence())
