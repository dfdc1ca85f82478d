"""Mechanisms: what they sample is what they say, and their privacy is what the definition gives."""

import itertools
import math
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dprisk import (
    GRR,
    OLH,
    OUE,
    SUE,
    Exponential,
    Gaussian,
    Laplace,
    Line,
    Matrix,
    Mechanism,
    Prior,
    SubsetSelection,
    Threat,
    assess,
)
from dprisk.errors import DpriskError, MechanismError, ParameterError, TooLargeError
from dprisk.mechanisms import (
    BLH,
    THE,
    ConcreteHashing,
    Geometric,
    LocalHashing,
    OnAttribute,
    PostProcessed,
    Product,
    Repeated,
    UnaryEncoding,
)
from dprisk.mechanisms.counted import condensed
from dprisk.types import FloatArray
from tests import naive
from tests.strategies import channels

FINITE: list[Mechanism] = [
    GRR(5, 1.0),
    SUE(4, 1.5),
    OUE(4, 1.0),
    UnaryEncoding(3, 0.2, 0.7),
    UnaryEncoding(3, 1.0, 0.25),
    SubsetSelection(5, 1.0, 2),
    SubsetSelection(6, 0.1),
    SubsetSelection(4, 2.0, 3),
    BLH(4, 2.0),
    OLH(4, 1.2),
    LocalHashing(3, 1.0, 5),
    THE(4, 2.0),
    THE(3, 1.0, threshold=0.3),
    ConcreteHashing(3, 1.0, 2, "polynomial"),
    ConcreteHashing(4, 2.0, 3, [[0, 1, 2, 0], [1, 1, 0, 0], [2, 2, 2, 1]]),
    Exponential.on_line(5, 3.0),
    Exponential.on_ring(5, 3.0),
    Exponential([[0.0, 2.0], [1.0, -1.0], [0.0, 0.0]], 1.0),
    Geometric(5, 2.0),
    Geometric(5, 2.0, ends="truncate"),
    Geometric(4, 3.0, sensitivity=1.0),
    Matrix([[0.2, 0.8, 0.0], [0.5, 0.25, 0.25]]),
    Repeated(GRR(3, 1.0), 3),
    Product(GRR(3, 1.0), OUE(3, 2.0)),
    OnAttribute(GRR(2, 1.0), [0, 1, 1]),
    PostProcessed(GRR(4, 1.0), [0, 0, 1, 1]),
]


def named(mechanisms: list[Mechanism]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mechanism", mechanisms, ids=[repr(mechanism) for mechanism in mechanisms])


@named(FINITE)
def test_the_channel_is_a_channel(mechanism: Mechanism) -> None:
    table = mechanism.matrix()
    assert table.shape == (mechanism.size, mechanism.n_outputs)
    assert np.all(table >= 0)
    assert table.sum(axis=1) == pytest.approx(np.ones(mechanism.size), abs=1e-12)


@named(FINITE)
def test_privacy_parameters_follow_the_definition(mechanism: Mechanism) -> None:
    table = mechanism.matrix()
    for epsilon in (0.0, 0.4, 1.0, 2.5):
        assert mechanism.delta_at(epsilon) == pytest.approx(naive.hockey_stick(table, epsilon), abs=1e-12)
    assert mechanism.total_variation == pytest.approx(naive.hockey_stick(table, 0.0), abs=1e-12)
    if math.isinf(mechanism.epsilon):
        assert np.any((table.max(axis=0) > 0) & (table.min(axis=0) == 0))
    else:
        assert naive.hockey_stick(table, mechanism.epsilon) == pytest.approx(0.0, abs=1e-12)
        if mechanism.epsilon > 1e-6:
            assert naive.hockey_stick(table, mechanism.epsilon * 0.999) > 0


@pytest.mark.slow
@named([mechanism for mechanism in FINITE if not isinstance(mechanism, Product)])
def test_samples_follow_the_likelihood(mechanism: Mechanism) -> None:
    """A chi-square test of each record's outputs against its row of the channel."""
    rng, runs = np.random.default_rng(11), 60_000
    table = mechanism.matrix()
    listed = np.concatenate(list(mechanism.outputs(1000)))
    index = {np.asarray(output).tobytes(): number for number, output in enumerate(listed)}
    for record in range(mechanism.size):
        drawn = mechanism.sample(np.full(runs, record), rng)
        if isinstance(mechanism, Repeated):
            drawn = np.sort(drawn, axis=1)
        numbers = [index[output.tobytes()] for output in drawn.astype(listed.dtype)]
        seen = np.bincount(numbers, minlength=len(listed))
        expected = runs * table[record]
        assert np.all(seen[expected == 0] == 0)
        some = expected > 0
        chi_square = float(((seen[some] - expected[some]) ** 2 / expected[some]).sum())
        degrees = int(some.sum()) - 1
        assert chi_square <= degrees + 5 * math.sqrt(2 * degrees + 1) + 12


@named(FINITE)
def test_log_likelihoods_of_samples_are_those_of_the_list(mechanism: Mechanism) -> None:
    rng = np.random.default_rng(12)
    logs = mechanism.log_likelihood(mechanism.sample(np.arange(mechanism.size), rng))
    assert logs.shape == (mechanism.size, mechanism.size)
    assert np.all(np.isfinite(np.diagonal(logs)))
    if not isinstance(mechanism, Repeated):  # whose list merges the orders of the reports
        columns = np.log(np.maximum(mechanism.matrix().T, 1e-300))
        for row in np.maximum(logs, math.log(1e-300)):
            assert np.abs(columns - row).max(axis=1).min() < 1e-9


@named([mechanism for mechanism in FINITE if not isinstance(mechanism, Matrix) or isinstance(mechanism, PostProcessed)])
def test_with_epsilon_keeps_its_promise(mechanism: Mechanism) -> None:
    if isinstance(mechanism, UnaryEncoding) and mechanism.p == 1.0:
        with pytest.raises(MechanismError, match="cannot be set"):
            mechanism.with_parameter(1.0)
        return
    for epsilon in (0.0, 0.7, 2.0):
        changed = mechanism.with_parameter(epsilon)
        assert type(changed) is type(mechanism)
        if isinstance(mechanism, Geometric):  # its epsilon counts per unit of sensitivity, and truncation leaks more
            assert isinstance(changed, Geometric)
            assert (changed.nominal_epsilon, changed.ends) == (epsilon, mechanism.ends)
        else:
            assert changed.epsilon <= epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("kind", [GRR, SUE, OUE, SubsetSelection, BLH, OLH])
def test_local_protocols_have_exactly_the_epsilon_they_are_given(
    kind: Callable[[int, float], Mechanism], epsilon: float
) -> None:
    mechanism = kind(7, epsilon)
    assert mechanism.epsilon == epsilon
    assert mechanism.delta_at(epsilon) <= 1e-15
    if epsilon > 0:
        assert mechanism.delta_at(epsilon * 0.99) > 0


def test_local_hashing_is_unary_encoding() -> None:
    hashing, unary = LocalHashing(4, 1.0, 3), UnaryEncoding(4, math.e / (math.e + 2), 1 / 3)
    assert hashing.matrix() == pytest.approx(unary.matrix(), abs=1e-15)


def test_local_hashing_matches_real_hashes() -> None:
    """All g^m hash functions, randomised response on the value: the set of preimages has the ideal-hash law."""
    m, g, epsilon = 3, 3, 1.0
    grr = GRR(g, epsilon).matrix()
    law: dict[tuple[bytes, int], float] = {}
    for code in range(g**m):
        hashed = np.array([code // g**i % g for i in range(m)])
        for record in range(m):
            for value in range(g):
                key = (hashed == value).tobytes(), record
                law[key] = law.get(key, 0.0) + grr[hashed[record], value] / g**m
    ideal = LocalHashing(m, epsilon, g)
    for column, member in zip(ideal.matrix().T, next(ideal.outputs(100)), strict=True):
        for record in range(m):
            assert column[record] == pytest.approx(law.get((member.tobytes(), record), 0.0), abs=1e-15)


def test_grr_is_subset_selection_of_one() -> None:
    assert GRR(6, 1.3).matrix() == pytest.approx(SubsetSelection(6, 1.3, 1).matrix(), abs=1e-15)


def test_subset_selection_chooses_the_papers_size() -> None:
    assert [SubsetSelection(100, epsilon).subset_size for epsilon in (1.0, 4.0, 9.0)] == [26, 1, 1]


@pytest.mark.slow
@given(st.integers(2, 4).flatmap(channels), st.integers(1, 3))
def test_repetition_is_the_product_with_itself(
    table: np.ndarray[tuple[int, int], np.dtype[np.float64]], times: int
) -> None:
    threat = Threat(Prior.zipf(table.shape[0]))
    by_counts = assess(Repeated(Matrix(table), times), threat)
    ordered: Mechanism = Matrix(table)
    for _ in range(times - 1):
        ordered = Product(ordered, Matrix(table))
    assert by_counts.advantage == pytest.approx(assess(ordered, threat).advantage, abs=1e-12)


def test_two_attributes_released_apart() -> None:
    """The product of views of two attributes is the Kronecker product of their channels."""
    first, second = GRR(2, 1.0), OUE(3, 2.0)
    rows = [(a, b) for a in range(2) for b in range(3)]
    both = Product(OnAttribute(first, [a for a, _ in rows]), OnAttribute(second, [b for _, b in rows]))
    assert both.matrix() == pytest.approx(np.kron(first.matrix(), second.matrix()), abs=1e-15)


def test_exponential_on_a_graph_counts_hops_or_lengths() -> None:
    graph = nx.path_graph(5)
    assert Exponential.on_graph(graph, 2.0).matrix() == pytest.approx(Exponential.on_line(5, 2.0).matrix(), abs=1e-15)
    nx.set_edge_attributes(graph, 3.0, "metres")
    weighted = Exponential.on_graph(graph, 2.0, weight="metres")
    assert weighted.sensitivity == 12.0
    assert weighted.matrix() == pytest.approx(Exponential.on_line(5, 2.0).matrix(), abs=1e-15)


def test_exponential_refuses_a_sensitivity_that_is_too_small() -> None:
    with pytest.raises(MechanismError, match="changes by up to 4"):
        Exponential.from_distances(np.abs(np.arange(5)[:, None] - np.arange(5)), 1.0, sensitivity=3.0)


def test_clamped_geometric_is_rounded_noise() -> None:
    """Against the two-sided geometric law written out."""
    size, rate = 4, 2.0 / 3
    alpha = math.exp(-rate)
    noise = {k: (1 - alpha) / (1 + alpha) * alpha ** abs(k) for k in range(-80, 81)}
    table = np.zeros((size, size))
    for record in range(size):
        for k, probability in noise.items():
            table[record, min(max(record + k, 0), size - 1)] += probability
    assert Geometric(size, 2.0).matrix() == pytest.approx(table, abs=1e-12)


@pytest.mark.parametrize("ends", ["clamp", "truncate"])
def test_geometric_without_privacy_budget_tells_nothing(ends: Literal["clamp", "truncate"]) -> None:
    table = Geometric(4, 0.0, ends=ends).matrix()
    assert table == pytest.approx(np.tile(table[0], (4, 1)), abs=1e-15)


@pytest.mark.slow
def test_estimates_of_additive_noise_hold_the_exact_value() -> None:
    from dprisk.attacks import estimate

    for mechanism in (Laplace(5, 3.0), Gaussian(5, 0.3)):
        for threat in (Threat(Prior.uniform(5)), Threat(Prior.zipf(5), success=Line(1.0))):
            measured = estimate.estimate_best(mechanism, threat, np.random.default_rng(1))
            low, high = measured.advantage_interval
            assert low <= assess(mechanism, threat).advantage <= high


def test_laplace_and_gaussian_profiles_match_a_fine_grid() -> None:
    x = np.linspace(-30, 31, 400_001)
    for mechanism in (Laplace(3, 1.5), Gaussian(3, 0.8)):
        density = np.exp(mechanism.log_likelihood(x))
        for epsilon in (0.0, 0.5, 1.2):
            grid = np.maximum(density[:, 2] - math.exp(epsilon) * density[:, 0], 0).sum() * (x[1] - x[0])
            assert mechanism.delta_at(epsilon) == pytest.approx(grid, abs=1e-4)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: GRR(3, -1.0), ParameterError, "epsilon must be a finite number of at least 0, got -1"),
        (lambda: GRR(3, math.nan), ParameterError, "got nan"),
        (
            lambda: GRR(0, 1.0),
            ParameterError,
            "size, the number of possible records, must be a whole number of at least 1",
        ),
        (lambda: UnaryEncoding(3, 1.2, 0.1), ParameterError, r"p must lie in \[0, 1\]"),
        (lambda: SubsetSelection(5, 9.2, 0), MechanismError, "the best size is 1"),
        (lambda: LocalHashing(5, 1.0, 1), ParameterError, "at least 2"),
        (lambda: Matrix([[0.5, 0.6]]), MechanismError, "row 0 sums to 1.1"),
        (lambda: Matrix([[0.5, 0.5], [1.0]]), MechanismError, "rows of equal length"),
        (lambda: Matrix([[1.0]]).with_parameter(1.0), MechanismError, "no parameter to set"),
        (lambda: Gaussian(3, 0.0), MechanismError, "sigma must lie between 1e-100 and 1e100, got 0"),
        (lambda: Gaussian(3, 1e308), MechanismError, r"sigma must lie between 1e-100 and 1e100, got 1e\+308"),
        (lambda: Laplace(3, 0.0), MechanismError, "needs epsilon > 1e-99, got 0"),
        (lambda: Laplace(3, 1e-320), MechanismError, "needs epsilon > 1e-99, got 9.99989e-321"),
        (lambda: Geometric(3, 1.0, ends="wrap"), MechanismError, "'clamp' or 'truncate'"),  # type: ignore[arg-type]
        (lambda: Product(GRR(3, 1.0), GRR(4, 1.0)), MechanismError, "3 and 4"),
        (lambda: PostProcessed(GRR(3, 1.0), [0, 1]), MechanismError, "each of the 3 outputs"),
        (lambda: OnAttribute.by_label(GRR(2, 1.0).labelled("ab"), ["a", "c"]), MechanismError, "not among the labels"),
        (lambda: OnAttribute.by_label(GRR(2, 1.0), ["a", "c"]), MechanismError, "has no labels; name its records by"),
        (lambda: OnAttribute(GRR, [0, 1]), MechanismError, r"make one: GRR\(size, epsilon\)"),  # type: ignore[arg-type]
        (lambda: PostProcessed(None, [0]), MechanismError, "A mechanism is needed"),  # type: ignore[arg-type]
        (lambda: GRR(3, 1.0).labelled("aaa"), MechanismError, "label 'a' appears twice"),
        (lambda: GRR(3, 1.0).sample([3], np.random.default_rng()), MechanismError, r"0\.\.2"),
        (lambda: GRR(3, 1.0).sample([0.5], np.random.default_rng()), MechanismError, "whole numbers"),
        (lambda: OUE(3, 1.0).log_likelihood([[1, 0]]), MechanismError, "row of 3 booleans"),
        (lambda: OUE(60, 1.0).matrix(), TooLargeError, "too many to hold"),
        (lambda: Repeated(GRR(3, 1.0), 0), ParameterError, "at least 1"),
    ],
)
def test_wrong_values_get_one_clear_sentence(wrong: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


def test_bits_follow_their_probability_to_the_last_digit() -> None:
    """One byte decides most bits; without the draw that breaks ties the share would be off by up to 1/256."""
    rng = np.random.default_rng(3)
    for q in (0.0019, 0.1289, 0.9961):
        bits = UnaryEncoding(1000, 0.5, q).sample(np.zeros(4000, dtype=int), rng)[:, 1:]
        assert bits.mean() == pytest.approx(q, abs=5 * math.sqrt(q * (1 - q) / bits.size))


def test_a_product_lists_its_outputs_in_one_order() -> None:
    """All of the second with each of the first, however large the factors; nested products too."""
    pair = Product(GRR(70, 1.0), GRR(70, 2.0))
    first = PostProcessed(pair, [a for a in range(70) for _ in range(70)])
    assert first.matrix() == pytest.approx(GRR(70, 1.0).matrix(), abs=1e-12)
    nested = Product(Product(GRR(3, 1.0), OUE(3, 1.0)), GRR(3, 2.0))
    columns = np.concatenate([np.exp(nested.log_likelihood(block)).T for block in nested.outputs(10)], axis=1)
    assert columns == pytest.approx(nested.matrix(), abs=1e-12)
    assert nested.epsilon == pytest.approx(Matrix(nested.matrix()).epsilon)


def test_a_product_keeps_the_proportion_of_its_parts() -> None:
    changed = Product(GRR(3, 1.0), GRR(3, 3.0)).with_parameter(8.0)
    assert (changed.first.epsilon, changed.second.epsilon) == pytest.approx((2.0, 6.0))


def test_repetition_cannot_be_post_processed_by_order() -> None:
    repeated = Repeated(GRR(3, 1.0), 2)
    with pytest.raises(MechanismError, match="without their order"):
        PostProcessed(repeated, lambda reports: reports[:, 0])
    with pytest.raises(MechanismError, match="Repeat the two parts"):
        Repeated(Product(GRR(3, 1.0), GRR(3, 1.0)), 2)


def test_privacy_of_large_combinations_needs_no_listing() -> None:
    assert OnAttribute(OUE(40, 1.0), list(range(40)) * 2).epsilon == 1.0
    assert Product(OUE(300, 1.0), OUE(300, 0.5)).epsilon == pytest.approx(1.5)
    assert OnAttribute(OUE(40, 1.0), [0, 1, 1]).epsilon == 1.0
    assert OnAttribute(OUE(40, 1.0), [1, 1, 1]).epsilon == 0.0


@given(st.integers(2, 6), st.sampled_from([0.1, 1.0, 5.0]), st.sampled_from([0.5, 1.0, 4.0]))
def test_truncated_noise_has_its_true_epsilon(size: int, epsilon: float, sensitivity: float) -> None:
    mechanism = Geometric(size, epsilon, sensitivity, ends="truncate")
    assert mechanism.epsilon == pytest.approx(Matrix(mechanism.matrix()).epsilon, rel=1e-9)


@pytest.mark.slow
def test_large_exponential_mechanisms_take_no_table() -> None:
    mechanism = Exponential.on_line(20_000, 5.0)
    assert mechanism.columns(np.array([7])).shape == (20_000, 1)
    assert mechanism.row(3).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0.5,0.5\n0.5,0.4\n", r"m.csv: Each row of a channel must sum to 1; row 2 sums to 0.9"),
        ("0.5,0.5\n0.5,-0.5\n", r"m.csv: Probabilities must be .* row 2, column 2 is -0.5"),
        ("yes,no\n0.5,0.5\n", r"m.csv cannot be read as a matrix .*: take out its first line, a header\."),
        ("0.5,0.5\n0.5,x\n", r"m.csv cannot be read as a matrix of numbers, a line for each record\."),
    ],
)
def test_what_is_wrong_in_a_file_with_a_matrix_is_told_with_its_row(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(DpriskError, match=told):
        Matrix.from_file(tmp_path / "m.csv")


@pytest.mark.parametrize("times", [1, 2, 999, 1000, 10_000, 1_000_000])
def test_many_reports_of_two_outputs_follow_the_binomial_law(times: int) -> None:
    p, k = 1 / (1 + math.exp(-1e-3)), np.arange(times + 1)
    one, two = binom.pmf(k, times, p), binom.pmf(k, times, 1 - p)
    risk = assess(GRR(2, 1e-3).repeat(times), Threat(Prior([0.6, 0.4])))
    assert risk.exact
    assert risk.advantage == pytest.approx(0.48 * np.abs(one - two).sum() / 2, abs=1e-12)
    assert risk.success == pytest.approx(np.maximum(0.6 * one, 0.4 * two).sum(), abs=1e-12)


@given(single=channels(3, max_outputs=5), times=st.integers(1, 7))
def test_counts_are_listed_with_their_probabilities(single: FloatArray, times: int) -> None:
    """Every order of the reports written out, in the order of the sorted lists."""
    repeated, n = Repeated(Matrix(single), times), single.shape[1]
    single = Matrix(single).matrix()
    lists = list(itertools.combinations_with_replacement(range(n), times))
    assert np.array_equal(np.concatenate(list(repeated.outputs(7))), lists)
    orders = [math.factorial(times) / math.prod(map(math.factorial, Counter(one).values())) for one in lists]
    by_hand = np.array([many * single[:, one].prod(axis=1) for many, one in zip(orders, lists, strict=True)]).T
    assert repeated.n_outputs == len(lists)
    assert np.concatenate(list(repeated.channel(5)), axis=1) == pytest.approx(by_hand, abs=1e-13)
    with np.errstate(divide="ignore"):
        assert np.concatenate(list(repeated.log_channel(5)), axis=1) == pytest.approx(np.log(by_hand), abs=1e-9)


def test_many_reports_are_estimated_by_counts_in_little_memory() -> None:
    """Four outputs, 20,000 reports: too many vectors of counts to go through, and reports to hold for every run."""
    many, threat = GRR(4, 0.01).repeat(20_000), Threat(Prior([0.4, 0.3, 0.2, 0.1]))
    assert not many.is_listable
    tracemalloc.start()
    risk = assess(many, threat)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert risk.estimate is not None
    assert most < 1 << 30
    # Differences of four independent shares of the reports are nearly normal: the same risk as of that many in all.
    part = assess(GRR(4, 0.01 * math.sqrt(200)).repeat(100), threat)
    assert part.exact
    assert risk.advantage == pytest.approx(part.advantage, rel=0.05)


def test_counts_have_the_likelihood_of_the_reports() -> None:
    zeros = Matrix([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    counted, repeated = condensed(zeros.repeat(4)), zeros.repeat(4)
    assert condensed(zeros.repeat(2)) == zeros.repeat(2)
    listed = np.concatenate(list(repeated.outputs(100)))
    counts = (listed[:, :, None] == np.arange(3)).sum(axis=1)
    with np.errstate(divide="ignore"):
        assert counted.log_likelihood(counts) == pytest.approx(np.log(repeated.matrix().T), abs=1e-12)
    drawn = counted.sample(np.zeros(20_000, dtype=int), np.random.default_rng(1))
    assert drawn.mean(axis=0) == pytest.approx([2, 2, 0], abs=0.05)
    with pytest.raises(MechanismError, match="3 counts that sum to 4"):
        counted.log_likelihood([[1, 1, 1]])


def test_reports_beyond_memory_are_refused() -> None:
    many = GRR(2000, 1.0).repeat(1000)
    with pytest.raises(TooLargeError, match="1000000 outputs of 1000 reports each are too many to hold at once"):
        many.sample(np.zeros(1_000_000, dtype=int), np.random.default_rng(1))
    assert GRR(1000, 1.0).repeat(900).n_outputs == math.inf  # more than floats hold
    few = GRR(3, 1.0).repeat(5000)
    assert few.sample([0, 1], np.random.default_rng(1)).shape == (2, 5000)
    together = few.log_likelihood(few.sample([0, 1], np.random.default_rng(1)))
    one_by_one = [few.mechanism.log_likelihood(row).sum(axis=0) for row in few.sample([0, 1], np.random.default_rng(1))]
    assert together == pytest.approx(np.array(one_by_one))
