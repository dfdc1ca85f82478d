"""The statistics of an audit: exact coverage by summation, e-values by dynamic programs, the papers' numbers."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, multinomial

from dprisk import GRR, Prior, Threat, assess
from dprisk.attacks.estimate import mean_interval
from dprisk.auditing.certify.advantage import epsilon_from_advantage
from dprisk.auditing.certify.anytime import anytime_epsilon, combine_e_values, log_e_value, log_e_values
from dprisk.auditing.certify.bets import _stakes, advantage_lower_bound
from dprisk.auditing.certify.counts import (
    Counts,
    certified_epsilon,
    epsilon_estimate,
    expected_certificate,
    p_value,
)
from dprisk.auditing.certify.papers import ldp_auditor, rad_point_estimate
from dprisk.auditing.certify.portfolio import Answers
from dprisk.bounds.papers import epsilon_of_corollary_5_6
from dprisk.errors import ParameterError
from dprisk.guarantees import PureDP
from dprisk.threat.success import Line

MILLION = 1_000_000
ROUNDOFF = 1 + 1e-9


def true_epsilon(r: float, size: int) -> float:
    """The smallest epsilon of a mechanism that is right with r when answered; never below 0."""
    return max(0.0, math.log((size - 1) * r / (1 - r)))


def outcomes(runs: int) -> list[tuple[int, int]]:
    """All pairs of correct and wrong counts."""
    return [(right, wrong) for right in range(runs + 1) for wrong in range(runs + 1 - right)]


def trinomial(runs: int, success: float, error: float) -> list[tuple[Counts, float]]:
    """Every outcome of so many runs on 4 records, with its probability."""
    rest = max(0.0, 1 - success - error)
    return [
        (Counts(runs, right + wrong, right, 4), float(multinomial.pmf([right, wrong, runs - right - wrong], runs, p)))
        for right, wrong in outcomes(runs)
        for p in [[success, error, rest]]
    ]


def on_the_boundary(epsilon: float, delta: float, size: int = 4) -> list[tuple[float, float]]:
    """Pairs S, W with S = c W + delta, from almost no wrong answers to no abstention at all."""
    c = math.exp(epsilon) / (size - 1)
    return [(c * w + delta, w) for w in np.array([1e-6, 0.05, 0.3, 0.7, 1.0]) * (1 - delta) / (1 + c)]


def naive_split(counts: Counts, alpha: float, delta: float) -> float:
    """S from below and W from above by Clopper-Pearson, alpha/2 each."""
    from scipy.stats import beta

    n, right, wrong = counts.runs, counts.correct, counts.wrong
    low = beta.ppf(alpha / 2, right, n - right + 1) if right else 0.0
    high = beta.ppf(1 - alpha / 2, wrong + 1, n - wrong) if wrong < n else 1.0
    return max(0.0, math.log((counts.size - 1) * (low - delta) / high)) if low > delta else 0.0


class TestCounts:
    def test_blocks_add_up(self) -> None:
        total = sum([Counts(10, 5, 3, 7), Counts(20, 9, 1, 7)], start=Counts(0, 0, 0, 7))
        assert total == Counts(30, 14, 4, 7)
        assert total.wrong == 10
        assert total.to_dict() == {"runs": 30, "answered": 14, "correct": 4, "size": 7, "wrong": 10}

    def test_other_universes_do_not_add_up(self) -> None:
        with pytest.raises(ParameterError, match=r"same number of records add up, got 7 and 8.*e-values"):
            Counts(10, 5, 3, 7) + Counts(10, 5, 3, 8)

    @pytest.mark.parametrize("wrong", [(10, 11, 3, 2), (10, 5, 6, 2), (-1, 0, 0, 2), (10, 5, 3, 1), (10, 5, 2.5, 2)])
    def test_impossible_counts_are_refused(self, wrong: tuple[int, int, int, int]) -> None:
        with pytest.raises(ParameterError):
            Counts(*wrong)

    def test_whole_numbers_of_numpy_become_plain(self) -> None:
        assert type(Counts(np.int64(10), 5.0, np.int32(3), 7).correct) is int  # type: ignore[arg-type]


class TestCertificate:
    @pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
    @pytest.mark.parametrize("size", [2, 5, 1000])
    def test_it_exceeds_the_truth_with_at_most_alpha(self, size: int, alpha: float) -> None:
        for answered in (1, 2, 7, 40):
            found = np.array([certified_epsilon(Counts(50, answered, k, size), alpha) for k in range(answered + 1)])
            for r in (1e-4, 0.01, 0.2, 0.5, 0.77, 0.9, 0.99, 0.9999):
                chance = binom.pmf(np.arange(answered + 1), answered, r)
                assert chance[found > true_epsilon(r, size)].sum() <= alpha * ROUNDOFF

    def test_just_above_a_certificate_that_is_exact_the_error_is_alpha(self) -> None:
        """At r with Pr[Bin(n, r) >= k] = alpha the error is alpha: the bound cannot be raised."""
        for answered, k in ((40, 30), (40, 40), (1000, 3)):
            found = certified_epsilon(Counts(answered, answered, k, 2), 0.05)
            if found > 0:
                r = 1 / (1 + math.exp(-found))
                assert binom.sf(k - 1, answered, r) == pytest.approx(0.05, rel=1e-9)

    def test_runs_that_differ_but_keep_the_claim_do_no_harm(self) -> None:
        """Each run has its own r at most that of the claim: the number of correct answers is Poisson-binomial."""
        most = math.exp(1.5) / (math.exp(1.5) + 3)
        chance = np.array([1.0])
        for r in np.linspace(0.2 * most, most, 25):
            chance = np.convolve(chance, [1 - r, r])
        wrong = [certified_epsilon(Counts(25, 25, k, 4), 0.1) > 1.5 for k in range(26)]
        assert chance[wrong].sum() <= 0.1

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (0.5, 0.01), (1.0, 0.2), (3.0, 1e-3)])
    def test_with_delta_it_exceeds_the_truth_with_at_most_alpha(self, epsilon: float, delta: float) -> None:
        for runs in (1, 6, 20):
            wrong = {
                alpha: {
                    pair: certified_epsilon(Counts(runs, sum(pair), pair[0], 4), alpha, delta) > epsilon
                    for pair in outcomes(runs)
                }
                for alpha in (0.05, 0.4)
            }
            for success, error in on_the_boundary(epsilon, delta):
                law = trinomial(runs, success, error)
                for alpha, bad in wrong.items():
                    chance = math.fsum(p for counts, p in law if bad[counts.correct, counts.wrong])
                    assert chance <= alpha * ROUNDOFF

    def test_with_delta_it_beats_the_split_unless_delta_explains_most(self) -> None:
        for runs, size, delta in itertools.product((100, 10_000, MILLION), (2, 50), (1e-5, 1e-3, 0.05)):
            for answered, r in itertools.product((0.02, 0.3, 1.0), (0.3, 0.6, 0.95, 1.0)):
                counts = Counts(runs, round(answered * runs), round(answered * runs * r), size)
                if counts.correct * 0.5 < delta * runs:
                    continue
                split = naive_split(counts, 0.01, delta)
                assert certified_epsilon(counts, 0.01, delta) >= split, counts
        assert certified_epsilon(Counts(10_000, 5000, 2500, 8), 0.01, 0.2) < naive_split(
            Counts(10_000, 5000, 2500, 8), 0.01, 0.2
        )

    def test_a_vanishing_delta_costs_a_tenth_of_alpha(self) -> None:
        counts = Counts(2000, 900, 600, 20)
        assert certified_epsilon(counts, 0.05, 1e-12) == pytest.approx(certified_epsilon(counts, 0.045), abs=1e-8)

    def test_nothing_shown_is_zero(self) -> None:
        for counts in (Counts(0, 0, 0, 5), Counts(10, 0, 0, 5), Counts(10, 10, 0, 5), Counts(10, 10, 2, 5)):
            for delta in (0.0, 0.1, 1.0):
                assert certified_epsilon(counts, 0.05, delta) == 0
                assert anytime_epsilon(counts, 0.05, delta) == 0

    @pytest.mark.slow
    @given(
        answered=st.integers(1, 400),
        correct=st.integers(0, 400),
        more=st.integers(0, 400),
        size=st.sampled_from([2, 3, 100, 10**6]),
        alpha=st.sampled_from([0.001, 0.05, 0.3]),
        delta=st.sampled_from([0.0, 1e-6, 0.01]),
    )
    def test_more_correct_answers_and_a_larger_alpha_certify_more(
        self, answered: int, correct: int, more: int, size: int, alpha: float, delta: float
    ) -> None:
        correct, more = sorted((min(correct, answered), min(more, answered)))
        fewer, counts = Counts(500, answered, correct, size), Counts(500, answered, more, size)
        for bound in (certified_epsilon, anytime_epsilon):
            assert bound(fewer, alpha, delta) <= bound(counts, alpha, delta) + 1e-9
            assert bound(counts, alpha, delta) <= bound(counts, 1.5 * alpha, delta) + 1e-9
            assert bound(counts, alpha, delta) >= bound(counts, alpha, delta + 0.01)
        assert anytime_epsilon(counts, alpha) <= certified_epsilon(counts, alpha)

    def test_p_value_is_the_binomial_tail(self) -> None:
        for k, epsilon in itertools.product((1, 5, 20), (0.0, 1.0, 4.0)):
            r = math.exp(epsilon) / (math.exp(epsilon) + 6)
            found = p_value(Counts(30, 20, k, 7), epsilon)
            assert found == pytest.approx(binom.sf(k - 1, 20, r), rel=1e-12)
        assert p_value(Counts(30, 20, 0, 7), 1.0) == 1

    @pytest.mark.parametrize("delta", [0.0, 1e-4, 0.05])
    def test_p_value_and_certificate_agree(self, delta: float) -> None:
        counts = Counts(1000, 700, 500, 5)
        for alpha in (1e-9, 0.01, 0.4):
            bound = certified_epsilon(counts, alpha, delta)
            assert p_value(counts, bound - 1e-9, delta) <= alpha <= p_value(counts, bound + 1e-9, delta)

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.05), (1.0, 0.2)])
    def test_small_p_values_are_rare_under_the_claim(self, epsilon: float, delta: float) -> None:
        p = {pair: p_value(Counts(9, sum(pair), pair[0], 4), epsilon, delta) for pair in outcomes(9)}
        for success, error in on_the_boundary(epsilon, delta):
            law = trinomial(9, success, error)
            for level in (0.01, 0.1, 0.3, 0.7):
                small = math.fsum(chance for counts, chance in law if p[counts.correct, counts.wrong] <= level)
                assert small <= level * ROUNDOFF


class TestEvidence:
    @pytest.mark.parametrize("delta", [0.0, 0.01, 0.3])
    @pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
    def test_the_mean_is_at_most_one_under_the_claim(self, epsilon: float, delta: float) -> None:
        for success, error in on_the_boundary(epsilon, delta):
            mean = math.fsum(
                p * math.exp(log_e_value(counts, epsilon, delta)) for counts, p in trinomial(8, success, error)
            )
            assert mean <= ROUNDOFF
            assert mean == pytest.approx(1)  # on the boundary: nothing is given away

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (2.0, 0.0), (0.5, 0.05), (2.0, 0.2)])
    def test_no_stopping_rule_raises_the_mean(self, epsilon: float, delta: float) -> None:
        """The best stopping rule, knowing everything, by dynamic programming over all counts up to 14 runs."""
        evidence = {
            (n, *pair): math.exp(log_e_value(Counts(n, sum(pair), pair[0], 4), epsilon, delta))
            for n in range(15)
            for pair in outcomes(n)
        }
        for success, error in on_the_boundary(epsilon, delta):

            @cache
            def best(n: int, right: int, wrong: int, success: float = success, error: float = error) -> float:
                now = evidence[n, right, wrong]
                if n == 14:
                    return now
                on = success * best(n + 1, right + 1, wrong) + error * best(n + 1, right, wrong + 1)
                return max(now, on + (1 - success - error) * best(n + 1, right, wrong))

            assert best(0, 0, 0) <= ROUNDOFF

    @pytest.mark.slow
    @pytest.mark.parametrize(("epsilon", "size"), [(0.0, 2), (1.0, 2), (3.0, 10), (1.0, 1000)])
    def test_watched_after_every_answer_it_is_ever_wrong_with_at_most_alpha(self, epsilon: float, size: int) -> None:
        """Exact: the chance that a walk of 250 answers ever refutes the true claim, by its law at each step."""
        r = math.exp(epsilon) / (math.exp(epsilon) + size - 1)
        alpha, ever = 0.1, 0.0
        law = {0: 1.0}
        for n in range(1, 251):
            step: dict[int, float] = {}
            for k, p in law.items():
                step[k + 1] = step.get(k + 1, 0.0) + p * r
                step[k] = step.get(k, 0.0) + p * (1 - r)
            refuting = {k for k in step if log_e_value(Counts(n, n, k, size), epsilon) >= -math.log(alpha)}
            ever += math.fsum(step[k] for k in refuting)
            law = {k: p for k, p in step.items() if k not in refuting and p > 1e-15}
        assert 0.001 < ever <= alpha

    @pytest.mark.slow
    @pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.0), (1.0, 0.02)])
    def test_simulated_audits_watched_at_every_block(self, epsilon: float, delta: float) -> None:
        """2000 audits of 25 growing blocks each on a mechanism that just keeps the claim: few are ever wrong."""
        size, error = 8, 0.1
        success = math.exp(epsilon) / (size - 1) * error + delta
        blocks = np.unique(np.geomspace(5, 4000, 25).astype(int))
        drawn = np.random.default_rng(5).multinomial(
            blocks, [success, error, 1 - success - error], size=(2000, blocks.size)
        )
        seen = drawn.cumsum(axis=1).reshape(-1, 3).tolist()
        counts = [Counts(n, a + b, a, size) for n, (a, b, _) in zip(blocks.cumsum().tolist() * 2000, seen, strict=True)]
        refuted = log_e_values([[one] for one in counts], epsilon, delta) >= -math.log(0.1)
        assert 0 < refuted.reshape(2000, -1).any(axis=1).mean() <= 0.1
        some = range(25 * blocks.size) if delta == 0 else ()
        assert [anytime_epsilon(counts[i], 0.1) > epsilon for i in some] == [refuted[i] for i in some]

    def test_the_bound_is_where_the_evidence_ends(self) -> None:
        for counts in (Counts(1000, 800, 500, 5), Counts(30, 30, 30, 2), Counts(MILLION, 900, 700, 100)):
            for delta in (0.0, 1e-5, 1e-4):
                bound = anytime_epsilon(counts, 0.05, delta)
                assert bound > 0
                assert log_e_value(counts, bound, delta) >= math.log(20) > log_e_value(counts, bound + 1e-8, delta)

    def test_every_claim_below_the_bound_is_refuted(self) -> None:
        """With delta the evidence need not fall with epsilon: here it dips, and the bound must stay before the dip."""
        counts, delta, enough = Counts(3308, 582, 582, 3586), 0.0826, 143.0
        bound = anytime_epsilon(counts, math.exp(-enough), delta)
        below, above = np.linspace(0, bound, 200), np.linspace(bound, 9, 200)
        assert bound > 0
        assert all(log_e_value(counts, x, delta) >= enough for x in below)
        evidence = [log_e_value(counts, x, delta) for x in above]
        assert min(evidence) < enough < max(evidence[1:])

    def test_it_loses_little_to_the_best_stake(self) -> None:
        """Against the best single stake in hindsight, which nobody knows beforehand: less than 4.5 in the log."""
        for n, r, size in [(30, 1.0, 2), (1000, 0.5, 8), (10**9, 0.5, 8), (10**6, 2e-3, 3052), (10**9, 1e-5, 10**6)]:
            counts = Counts(n, n, round(n * r), size)
            claim = certified_epsilon(counts, 1e-4)
            c = math.exp(claim) / (size - 1)
            stakes = np.geomspace(1e-9, 1 - 1e-9, 20_000) / c
            best = (counts.correct * np.log1p(stakes) + counts.wrong * np.log1p(-c * stakes)).max()
            assert best - 4.5 < log_e_value(counts, claim) < best

    def test_averages(self) -> None:
        assert combine_e_values([0.0, math.log(3)]) == pytest.approx(math.log(2))
        assert combine_e_values([5000.0, -math.inf]) == pytest.approx(5000 - math.log(2))
        assert combine_e_values([-math.inf]) == -math.inf
        with pytest.raises(ParameterError, match="at least one"):
            combine_e_values([])


class TestPapers:
    @pytest.mark.parametrize(
        ("found", "cap"),
        [
            (ldp_auditor(MILLION, 0, MILLION, 0.01), 12.148),
            (ldp_auditor(MILLION, 0, MILLION, 0.02), 12.288),  # without the Bonferroni split
            (certified_epsilon(Counts(MILLION, MILLION, MILLION, 3052), 0.01), 20.312),
            (certified_epsilon(Counts(MILLION, MILLION, MILLION, 5356), 0.01), 20.874),
        ],
    )
    def test_largest_certifiable_epsilon(self, found: float, cap: float) -> None:
        assert found == pytest.approx(cap, abs=5e-4)

    @pytest.mark.parametrize(
        ("m", "epsilon", "ours", "theirs"),
        [
            (3052, 1, 0.921, 0.771),
            (3052, 2, 1.952, 1.806),
            (3052, 8, 7.995, 7.800),
            (3052, 12, 11.983, 11.043),
            (3052, 16, 15.875, 12.099),
            (5356, 1, 0.894, 0.697),
            (5356, 4, 3.977, 3.787),
            (5356, 16, 15.906, 12.099),
        ],
    )
    def test_randomised_response_at_expected_counts(self, m: int, epsilon: float, ours: float, theirs: float) -> None:
        p, q = math.exp(epsilon) / (math.exp(epsilon) + m - 1), 1 / (math.exp(epsilon) + m - 1)
        assert expected_certificate(p, 1 - p, MILLION, m, 0.01) == pytest.approx(ours, abs=5.1e-4)
        assert ldp_auditor(p * MILLION, q * MILLION, MILLION, 0.01) == pytest.approx(theirs, abs=5.1e-4)

    def test_expected_counts_that_are_whole_give_the_certificate(self) -> None:
        counts = Counts(1000, 300, 200, 9)
        for delta in (0.0, 1e-3):
            assert expected_certificate(0.2, 0.1, 1000, 9, 0.05, delta) == pytest.approx(
                certified_epsilon(counts, 0.05, delta)
            )

    @pytest.mark.parametrize("delta", [0.0, 0.01])
    @pytest.mark.parametrize("size", [2, 3, 10])
    def test_rates_that_tell_nothing_certify_exactly_0(self, size: int, delta: float) -> None:
        """Right no more often than by guessing: neither a little above 0 nor below it."""
        right = 1 / size
        assert expected_certificate(right, 1 - right, 10_000, size, 0.05, delta) == 0.0
        assert expected_certificate(0.5 * right, 0.5 * (1 - right), 10_000, size, 0.05, delta) == 0.0
        assert expected_certificate(0.0, 1.0, 10_000, size, 0.05, delta) == 0.0
        assert certified_epsilon(Counts(1000, 1000, 1000 // size, size), 0.05, delta) == 0.0
        assert ldp_auditor(500, 500, 1000, 0.05) == 0.0

    def test_the_point_estimate_is_no_bound(self) -> None:
        """Theory, correction 4: equation 61 exceeds the true epsilon in about half of all audits."""
        m, runs, p = 20, 2000, math.exp(2) / (math.exp(2) + 19)
        estimates = [rad_point_estimate(k, runs, m) for k in range(runs + 1)]
        above = math.fsum(binom.pmf(k, runs, p) for k in range(runs + 1) if estimates[k] > 2)
        assert 0.48 < above < 0.52

    @pytest.mark.parametrize("delta", [0.0, 0.01])
    def test_the_point_estimate_is_equation_61(self, delta: float) -> None:
        for k in (60, 100, 500, 999):
            printed = epsilon_of_corollary_5_6(k / 1000 - 1 / 30, delta, 30)
            assert rad_point_estimate(k, 1000, 30, delta) == pytest.approx(printed)
        assert rad_point_estimate(1000, 1000, 30) == math.inf
        assert rad_point_estimate(0, 1000, 30) == 0

    def test_the_plug_in_estimate(self) -> None:
        assert epsilon_estimate(Counts(100, 60, 40, 11)) == pytest.approx(math.log(20))
        assert epsilon_estimate(Counts(100, 60, 40, 11), 0.1) == pytest.approx(math.log(15))
        assert epsilon_estimate(Counts(100, 60, 60, 11)) == math.inf
        assert epsilon_estimate(Counts(100, 60, 60, 11), 0.6) == 0
        assert epsilon_estimate(Counts(0, 0, 0, 11)) == 0

    def test_ldp_auditor_without_positives(self) -> None:
        assert ldp_auditor(0, 0, 100, 0.05) == 0
        assert ldp_auditor(100, 100, 100, 0.05) == 0
        assert ldp_auditor(10, 90, 100, 0.05) == 0
        with pytest.raises(ParameterError, match="Of 100 runs in each arm"):
            ldp_auditor(101, 0, 100, 0.05)


class TestExtremes:
    """Warnings are errors in this suite."""

    @pytest.mark.slow
    @pytest.mark.parametrize("runs", [1, 1000, 10**9])
    @pytest.mark.parametrize("size", [2, 10**6])
    @pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-5, 0.5, 1.0])
    def test_everything_stays_finite(self, runs: int, size: int, delta: float) -> None:
        for answered, r in itertools.product((0.0, 1e-6, 1.0), (0.0, 1e-7, 0.5, 1 - 1e-9, 1.0)):
            counts = Counts(runs, round(runs * answered), round(round(runs * answered) * r), size)
            for alpha in (1e-12, 0.01, 0.999):
                fixed, anytime = certified_epsilon(counts, alpha, delta), anytime_epsilon(counts, alpha, delta)
                assert 0 <= fixed < 45
                assert 0 <= anytime < 45
            for epsilon in (0.0, 20.0, 40.0, 800.0):
                assert 0 <= p_value(counts, epsilon, delta) <= 1
                assert log_e_value(counts, epsilon, delta) < math.inf
            assert not math.isnan(epsilon_estimate(counts, delta))

    def test_a_billion_correct_answers_among_a_million(self) -> None:
        counts = Counts(10**9, 10**9, 10**9, 10**6)
        expected = math.log(10**6 - 1) - math.log(-math.log(0.01) / 1e9)
        assert certified_epsilon(counts, 0.01) == pytest.approx(expected, abs=1e-8)
        assert expected - 0.5 < anytime_epsilon(counts, 0.01) < expected

    @pytest.mark.parametrize("alpha", [0, 1, -0.1, math.nan])
    def test_alpha_is_a_chance(self, alpha: float) -> None:
        with pytest.raises(ParameterError, match="alpha, the chance of being wrong, must lie strictly"):
            certified_epsilon(Counts(10, 5, 3, 7), alpha)

    def test_delta_is_a_chance(self) -> None:
        with pytest.raises(ParameterError, match=r"delta must lie in \[0, 1\], got 2"):
            log_e_value(Counts(10, 5, 3, 7), 1.0, 2.0)


class TestAdvantage:
    def test_it_exceeds_the_mean_with_at_most_alpha(self) -> None:
        """Exact, over all 2^9 sequences of values 0.9 and -0.3."""
        for sequences_alpha in (0.1, 0.4):
            bounds = {
                x: advantage_lower_bound(np.where(x, 0.9, -0.3), sequences_alpha)
                for x in itertools.product((True, False), repeat=9)
            }
            for p in (0.05, 0.3, 0.5, 0.9):
                wrong = (sum(x) for x, bound in bounds.items() if bound > 1.2 * p - 0.3)
                assert math.fsum(p**k * (1 - p) ** (9 - k) for k in wrong) <= sequences_alpha

    @pytest.mark.slow
    @pytest.mark.parametrize("anytime", [False, True])
    def test_simulated_coverage_and_tightness(self, anytime: bool) -> None:
        rng = np.random.default_rng(1)
        wrong, width = 0, []
        for _ in range(400):
            x = np.where(rng.random(300) < 0.15, 1.0, 0.0) - rng.choice([0.05, 0.15], 300)
            looks = (20, 60, 150, 300) if anytime else (300,)
            bounds = [advantage_lower_bound(x[:n], 0.1, anytime=anytime) for n in looks]
            wrong += max(bounds) > 0.05
            width.append(0.05 - bounds[-1])
        assert wrong / 400 <= 0.1
        assert np.mean(width) < (0.11 if anytime else 0.08)

    def test_it_is_tighter_than_empirical_bernstein(self) -> None:
        rng = np.random.default_rng(2)
        for n, p in ((100, 0.9), (1000, 0.02), (20_000, 0.3)):
            x = np.where(rng.random(n) < p, 0.98, -0.02)
            other = mean_interval(x, -1.0, 1.0, 0.1)[0]  # half the error on this side
            assert advantage_lower_bound(x, 0.05) > other

    def test_stakes_come_from_earlier_values_only(self) -> None:
        x = np.random.default_rng(4).random(30)
        for t in (0, 1, 17, 29):
            other = np.concatenate([x[:t], 1 - x[t:]])
            assert (_stakes(x, 0.3)[: t + 1] == _stakes(other, 0.3)[: t + 1]).all()

    def test_many_distinct_values_are_rounded_down(self) -> None:
        x = np.random.default_rng(3).uniform(-1, 1, 70_000)
        bound = advantage_lower_bound(x, 0.05, anytime=True)
        assert -0.03 < bound < x.mean()

    def test_what_it_refuses(self) -> None:
        assert advantage_lower_bound([], 0.05) == -1
        with pytest.raises(ParameterError, match=r"must lie in \[-1, 1\], got 0 to 2"):
            advantage_lower_bound([0.0, 2.0], 0.05)
        with pytest.raises(ParameterError):
            advantage_lower_bound([0.0, math.nan], 0.05)


class TestInversion:
    def test_uniform_categories_are_inverted_in_closed_form(self) -> None:
        for m, advantage, delta in ((4, 0.3, 0.0), (100, 0.5, 0.01), (MILLION, 0.2, 1e-6)):
            found = epsilon_from_advantage(advantage, Threat(Prior.uniform(m)), delta)
            exact = epsilon_of_corollary_5_6(advantage, delta, m)
            assert exact - 1e-8 < found <= exact

    def test_what_is_attained_comes_back(self) -> None:
        threat = Threat(Prior([0.4, 0.3, 0.2, 0.1]))
        for epsilon in (0.3, 1.0, 4.0):
            advantage = assess(PureDP(epsilon), threat).advantage
            assert epsilon - 1e-6 < epsilon_from_advantage(advantage, threat) <= epsilon

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "threat",
        [
            Threat(Prior([0.4, 0.3, 0.2, 0.1])),
            Threat(Prior([0.4, 0.3, 0.2, 0.1]), knows=[0, 0, 1, 1]),
            Threat(Prior([0.4, 0.3, 0.2, 0.1]), knows="all"),
            Threat(Prior([0.4, 0.3, 0.2, 0.1]), success=Line(1.0)),
        ],
    )
    def test_it_is_never_above_the_epsilon_of_a_mechanism(self, threat: Threat) -> None:
        for epsilon in (0.5, 2.0):
            advantage = assess(GRR(4, epsilon), threat).advantage
            found = epsilon_from_advantage(advantage, threat)
            assert 0 < found <= epsilon
            assert epsilon_from_advantage(advantage, threat, delta=0.01) <= found

    def test_large_universes(self) -> None:
        threat = Threat(Prior(np.arange(1, 2001) / np.arange(1, 2001).sum()), knows=np.arange(2000) % 3)
        assert epsilon_from_advantage(0.1, threat) > 0.1

    def test_no_advantage_and_too_much(self) -> None:
        threat = Threat(Prior([0.5, 0.3, 0.2]))
        assert epsilon_from_advantage(-0.2, threat) == 0
        assert epsilon_from_advantage(0.05, threat, delta=0.5) == 0
        assert 10 < epsilon_from_advantage(1 - threat.prior.collision_probability, threat) < math.inf
        with pytest.raises(ParameterError, match=r"No attack on this prior has an advantage above"):
            epsilon_from_advantage(0.9, threat)


def test_the_estimate_is_not_that_of_the_luckiest_attacker() -> None:
    """Of sixty attackers one was right eight times of eight, which made the best estimate infinite."""
    others = {f"attacker {place}": {2: Counts(1000, 0, 0, 2)} for place in range(60)}
    lucky = Answers(1000, Counts(1000, 1000, 505, 2), others | {"lucky": {2: Counts(1000, 8, 8, 2)}})
    assert lucky.estimate(0.0) == pytest.approx(math.log(505 / 495))
