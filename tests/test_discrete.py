"""Noise on whole numbers: against sums written out, and against the continuous noise it turns into."""

import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from dprisk import ZCDP, DiscreteLaplace, Gaussian, Laplace, Line, Matrix, Mechanism, Prior, Threat, assess, calibrate
from dprisk.attacks import OptimalAttack
from dprisk.errors import MechanismError, ParameterError, TooLargeError
from dprisk.exact import solve
from dprisk.mechanisms import DiscreteGaussian, Geometric, Repeated
from dprisk.mechanisms.numbers.whole import DiscreteAdditive
from dprisk.mechanisms.numbers.whole_noise import WholeGaussian, WholeLaplace
from dprisk.threat import Exact, Success
from dprisk.types import FloatArray
from tests import naive

PLACES = [0, 1, 1, 4, 9]
SKEWED = [0.4, 0.05, 0.25, 0.2, 0.1]
BOUNDED: list[DiscreteAdditive] = [
    DiscreteLaplace(PLACES, scale=2.5, interval=(0, 9)),
    DiscreteLaplace(PLACES, scale=2.5, interval=(-3, 5)),
    DiscreteLaplace(PLACES, scale=0.7, interval=(2, 3), ends="truncate"),
    DiscreteLaplace(PLACES, 3.0, interval=(12, 20), ends="truncate"),
    DiscreteLaplace(PLACES, scale=2.5, interval=(12, 20)),
    DiscreteGaussian(PLACES, 1.3, interval=(-2, 11)),
    DiscreteGaussian(PLACES, 0.3, interval=(1, 8)),
    DiscreteGaussian(PLACES, 3.0, interval=(3, 6), ends="truncate"),
    DiscreteGaussian(PLACES, 40.0, interval=(-5, -4), ends="truncate"),
    DiscreteGaussian(PLACES, 2.0, interval=(7, 7)),
]
OPEN: list[DiscreteAdditive] = [
    DiscreteLaplace(PLACES, 2.0),
    DiscreteLaplace(PLACES, scale=0.2),
    DiscreteGaussian(PLACES, 0.4),
    DiscreteGaussian(PLACES, 5.0),
]


def named(mechanisms: list[DiscreteAdditive]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mechanism", mechanisms, ids=[repr(mechanism) for mechanism in mechanisms])


def weight(mechanism: DiscreteAdditive, k: int) -> float:
    noise = mechanism.noise
    if isinstance(noise, WholeLaplace):
        return math.exp(-noise.rate * abs(k))
    assert isinstance(noise, WholeGaussian)
    return math.exp(-(k**2) / (2 * noise.sigma**2))


def written_out(mechanism: DiscreteAdditive, far: int = 400) -> FloatArray:
    """The law of the outputs in `bounds`, record by record, from the definition."""
    low, high = mechanism.bounds
    table = np.zeros((mechanism.size, high - low + 1))
    for record, place in enumerate(mechanism.positions):
        for k in range(-far, far + 1):
            output = int(place) + k
            if mechanism.is_truncated:
                if low <= output <= high:
                    table[record, output - low] += weight(mechanism, k)
            else:
                table[record, min(max(output, low), high) - low] += weight(mechanism, k)
        table[record] /= table[record].sum()
    return table


@named(BOUNDED + OPEN)
def test_the_channel_is_the_law_written_out(mechanism: DiscreteAdditive) -> None:
    table, expected = mechanism.matrix(), written_out(mechanism)
    assert table == pytest.approx(expected, rel=1e-11, abs=1e-16)
    for record in range(mechanism.size):
        assert mechanism.row(record) == pytest.approx(expected[record], rel=1e-11, abs=1e-16)
    listed = np.concatenate(list(mechanism.outputs(7)))
    likelihood = np.exp(mechanism.log_likelihood(listed)).T
    assert likelihood == pytest.approx(table, rel=1e-12)


@named(BOUNDED + OPEN)
def test_privacy_follows_the_definition(mechanism: DiscreteAdditive) -> None:
    table = written_out(mechanism)
    for epsilon in (0.0, 0.3, 1.0, 2.5, 8.0):
        assert mechanism.delta_at(epsilon) == pytest.approx(naive.hockey_stick(table, epsilon), abs=1e-13)
    guarantee = mechanism.guarantee()
    for epsilon in (0.0, 0.5, 1.5):
        assert guarantee.delta_at(epsilon) == pytest.approx(mechanism.delta_at(epsilon), abs=1e-9)
    if mechanism.interval is not None:
        assert mechanism.epsilon == pytest.approx(Matrix(table).epsilon, rel=1e-9, abs=1e-12)
    elif isinstance(mechanism, DiscreteLaplace):
        assert mechanism.epsilon == pytest.approx(9 / mechanism.scale, rel=1e-12)
    else:
        assert math.isinf(mechanism.epsilon)


@pytest.mark.slow
@named(BOUNDED + OPEN)
@pytest.mark.parametrize("knows", ["none", "all", [0, 1, 0, 1, 0]])
@pytest.mark.parametrize("success", [Exact(), Line(1.0, PLACES)])
def test_the_risk_is_that_of_the_law_written_out(
    mechanism: DiscreteAdditive, knows: str | list[int], success: Success
) -> None:
    threat = Threat(Prior(SKEWED), knows, success)
    places = np.arange(5) if isinstance(success, Exact) else np.array(PLACES)
    near = np.abs(places[:, None] - places) <= (0 if isinstance(success, Exact) else 1)
    advantage, rero = naive.theorem_4_3(written_out(mechanism), np.array(SKEWED), threat.knows.groups, near)
    found = assess(mechanism, threat)
    assert found.exact
    assert (found.advantage, found.success) == pytest.approx((advantage, rero), abs=1e-12)


@named(BOUNDED + OPEN)
def test_samples_follow_the_law(mechanism: DiscreteAdditive) -> None:
    rng, runs = np.random.default_rng(5), 20_000
    low = mechanism.bounds[0]
    for record, row in enumerate(written_out(mechanism)):
        drawn = mechanism.sample(np.full(runs, record), rng)
        seen, expected = np.bincount(drawn - low, minlength=row.size), runs * row
        some = expected > 5
        assert seen[~some].sum() <= expected[~some].sum() + 5 * math.sqrt(expected[~some].sum()) + 8
        chi_square = float(((seen[some] - expected[some]) ** 2 / expected[some]).sum())
        assert chi_square <= some.sum() + 5 * math.sqrt(2 * some.sum()) + 12


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1.0, 30.0, 999.0, 1001.0, 1e4, 1e6])
def test_tails_of_the_discrete_gaussian(sigma: float) -> None:
    """The part beyond k, against a plain sum; wide noise takes another way to it."""
    noise = WholeGaussian(sigma)
    far = int(min(50 * sigma, 12 * sigma + 1e5))
    total = math.fsum(np.exp(noise.log_weight(np.arange(-far, far + 1.0)))) if sigma < 1e5 else None
    if total is not None:
        assert noise.log_total == pytest.approx(math.log(total), abs=1e-13)
    for k in (1, int(0.5 * sigma) + 1, int(4 * sigma), int(9 * sigma), int(35 * sigma)):
        further = np.arange(0.0, min(12 * sigma, 60 * sigma**2 / k) + 10)
        beyond = math.fsum(np.exp(-further * (2 * k + further) / (2 * sigma**2)))
        expected = -(k**2) / (2 * sigma**2) + math.log(beyond) - noise.log_total
        assert float(noise.log_at_least(np.array(float(k)))) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert float(noise.log_at_least(np.array(1.0 - k))) == pytest.approx(math.log1p(-math.exp(expected)), abs=1e-12)


@pytest.mark.parametrize(("discrete", "continuous"), [(DiscreteLaplace, Laplace), (DiscreteGaussian, Gaussian)])
@pytest.mark.parametrize("interval", [None, (-100, 700)])
def test_wide_noise_is_nearly_continuous(
    discrete: Callable[..., Mechanism], continuous: Callable[..., Mechanism], interval: tuple[int, int] | None
) -> None:
    places, width = [0, 100, 250, 700], 300.0
    keyword = "scale" if discrete is DiscreteLaplace else "sigma"
    one = discrete(places, **{keyword: width}, interval=interval)
    two = continuous(places, **{keyword: width}, interval=interval)
    for success in (Exact(), Line(150.0, places)):
        threat = Threat(Prior([0.1, 0.4, 0.3, 0.2]), [0, 0, 1, 1], success)
        assert assess(one, threat).advantage == pytest.approx(assess(two, threat).advantage, abs=2e-3)
    assert one.delta_at(0.3) == pytest.approx(two.delta_at(0.3), abs=2e-3)


def test_geometric_noise_is_discrete_laplace_noise_kept_in_range() -> None:
    for ends in ("clamp", "truncate"):
        one = Geometric(6, 2.0, ends=ends)
        two = DiscreteLaplace(6, 2.0, interval=(0, 5), ends=ends)
        assert one.matrix() == pytest.approx(two.matrix(), abs=1e-15)
        assert one.epsilon == pytest.approx(two.epsilon, rel=1e-12)


def test_open_laplace_noise_loses_nothing_beyond_the_outermost_positions() -> None:
    """However wide the noise: only the outputs between the positions are listed."""
    mechanism, prior = DiscreteLaplace(PLACES, scale=1e9), Prior(SKEWED)
    assert mechanism.n_outputs > 1e10
    assert mechanism.sufficient().n_outputs == 10
    assert assess(mechanism, Threat(prior, "all")).advantage == pytest.approx(
        assess(Laplace(PLACES, scale=1e9), Threat(prior, "all")).advantage, rel=1e-6
    )


def test_wide_gaussian_noise_is_sampled_and_bounded_but_not_listed_for_many_records() -> None:
    mechanism = DiscreteGaussian(100, sigma=1e6)
    threat = Threat(Prior.zipf(100))
    with pytest.raises(TooLargeError, match=r"1\.8e\+07 outputs for 100 records"):
        solve(mechanism, threat)
    with pytest.raises(TooLargeError, match="too long to add up"):
        DiscreteGaussian(100, 1e6, interval=(0, 10**8), ends="truncate").log_likelihood([0])
    guarantee = mechanism.guarantee()
    assert isinstance(guarantee, ZCDP)
    assert mechanism.delta_at(1e-4) == pytest.approx(Gaussian(np.arange(100), 1e6).delta_at(1e-4), rel=1e-5)
    assert guarantee.delta_at(1e-4) >= mechanism.delta_at(1e-4)
    drawn = mechanism.sample(np.full(20_000, 50), np.random.default_rng(1))
    assert drawn.std() == pytest.approx(1e6, rel=0.03)


def test_the_guarantee_holds_for_every_pair() -> None:
    for mechanism in (DiscreteLaplace(PLACES, 2.0), DiscreteGaussian(PLACES, 4.0, interval=(0, 6))):
        table, guarantee = written_out(mechanism), mechanism.guarantee()
        for (one, two), epsilon in itertools.product(itertools.permutations(table, 2), (0.0, 0.2, 1.0)):
            assert np.maximum(one - math.exp(epsilon) * two, 0).sum() <= guarantee.delta_at(epsilon) + 1e-12


def test_the_best_attack_reaches_the_exact_advantage() -> None:
    mechanism, threat = DiscreteGaussian(PLACES, 2.0), Threat(Prior(SKEWED), success=Line(1.0, PLACES))
    attack, rng, runs = OptimalAttack(mechanism, threat), np.random.default_rng(8), 40_000
    places = np.array(PLACES)
    targets, others = rng.choice(5, size=(2, runs), p=SKEWED)
    guesses = attack.guess(mechanism.sample(targets, rng), rng)
    gain = [np.abs(places[guesses] - places[people]) <= 1 for people in (targets, others)]
    assert gain[0].mean() - gain[1].mean() == pytest.approx(assess(mechanism, threat).advantage, abs=0.015)


def test_extreme_parameters() -> None:
    for mechanism in (DiscreteLaplace(3, scale=1e-3), DiscreteGaussian(3, 1e-3)):
        assert mechanism.matrix()[:, mechanism.bounds[0] * -1 :][:, :3] == pytest.approx(np.eye(3), abs=1e-15)
    for single in (DiscreteLaplace([7], scale=2.0), DiscreteGaussian([7, 7], 2.0)):
        assert (single.epsilon, single.delta_at(0.0)) == (0.0, 0.0)
        assert single.guarantee().epsilon_at(0.0) == 0
        assert assess(single, Threat(Prior.uniform(single.size))).advantage == 0
    assert DiscreteLaplace(3, 0.5).with_parameter(1.5).epsilon == pytest.approx(1.5)
    assert DiscreteGaussian(3, 0.5).with_parameter(2.0).sigma == 2.0
    assert Repeated(DiscreteLaplace(2, 1.0, interval=(0, 1)), 2).epsilon == pytest.approx(2.0)
    assert DiscreteGaussian(3, 2.0, interval=(0, 2)).to_dict() == {
        "kind": "DiscreteGaussian",
        "size": 3,
        "positions": [0, 1, 2],
        "sigma": 2.0,
        "interval": [0, 2],
    }


@pytest.mark.parametrize("template", [DiscreteLaplace(10, 1.0), DiscreteGaussian(10, 1.0)])
def test_the_weakest_noise_keeps_the_target(template: DiscreteLaplace | DiscreteGaussian) -> None:
    threat = Threat(Prior.zipf(10))
    found = calibrate(template, threat, advantage=0.1)
    kept, weaker = (
        template.with_parameter(found.value * (1 + more))
        if isinstance(template, DiscreteLaplace)
        else template.with_parameter(found.value * (1 - more))
        for more in (0.0, 1e-3)
    )
    assert assess(kept, threat).advantage <= 0.1 < assess(weaker, threat).advantage


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: DiscreteLaplace([0.5, 1.0], 1.0), MechanismError, "whole numbers, one for each record"),
        (lambda: DiscreteLaplace([0, math.nan], 1.0), MechanismError, "whole numbers, one for each record"),
        (lambda: DiscreteLaplace(3), MechanismError, "either epsilon or scale"),
        (lambda: DiscreteLaplace(3, 0.0), MechanismError, "needs epsilon > 0"),
        (lambda: DiscreteLaplace([4, 4], 1.0), MechanismError, "give the scale"),
        (lambda: DiscreteLaplace(0, 1.0), ParameterError, "at least 1"),
        (lambda: DiscreteGaussian(3, math.inf), MechanismError, "sigma must lie between"),
        (lambda: DiscreteGaussian(3, 1.0, interval=(0.5, 2)), MechanismError, "whole numbers low <= high"),  # type: ignore[arg-type]
        (lambda: DiscreteGaussian(3, 1.0, interval=(3, 2)), MechanismError, "low <= high"),
        (lambda: DiscreteGaussian(3, 1.0, ends="wrap"), MechanismError, "'clamp' or 'truncate'"),  # type: ignore[arg-type]
        (lambda: DiscreteGaussian(3, 1.0).log_likelihood([0.5]), MechanismError, "is a whole number"),
        (lambda: DiscreteLaplace(3, 1.0, interval=(0, 2)).log_likelihood([3]), MechanismError, r"in 0\.\.2"),
        (
            lambda: DiscreteLaplace(3, 1.0, interval=(0, 10**9), ends="truncate").sample([0], np.random.default_rng()),
            TooLargeError,
            "too many to hold",
        ),
    ],
)
def test_wrong_values_get_one_clear_sentence(wrong: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


@pytest.mark.parametrize(("positions", "sigma"), [((0, 9), 2.0), ((0, 9), 0.7), ((18, 89), 1.0), ((0, 1), 1.0)])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12])
def test_the_epsilon_of_discrete_gaussian_noise_has_all_its_digits(
    positions: tuple[int, int], sigma: float, delta: float
) -> None:
    """Against sums of 60 digits; a curve of floats loses what is far out, and infinity is no answer."""
    mechanism = DiscreteGaussian(positions, sigma)
    found = mechanism.epsilon_at(delta)
    with mpmath.workdps(60):
        weight = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(-250, 251)}
        total = mpmath.fsum(weight.values())
        far = positions[1] - positions[0]

        def delta_at(epsilon: float) -> mpmath.mpf:
            times = mpmath.exp(mpmath.mpf(epsilon))
            gains = (weight[k] - times * weight[k + far] for k in range(-250, 251 - far))
            return mpmath.fsum(max(gain, 0) for gain in gains) / total

        assert delta_at(found) <= delta < delta_at(found - 1e-6 * max(found, 1.0))
        if found < 600:
            assert delta_at(mechanism.guarantee().epsilon_at(delta)) <= delta + 2.0**-49
            assert mechanism.guarantee().epsilon_at(delta) == pytest.approx(found, rel=1e-3)


def test_less_noise_does_where_epsilon_is_large() -> None:
    found = calibrate(DiscreteGaussian(10, 1.0), epsilon=(30.0, 1e-5))
    assert found.value == pytest.approx(1.9311, abs=1e-4)
    assert DiscreteGaussian(10, found.value).delta_at(30.0) <= 1e-5


def test_one_record_is_allowed_as_it_is_on_a_line() -> None:
    for one in (DiscreteLaplace(1, 2.0), Laplace(1, 2.0), Geometric(1, 2.0), DiscreteGaussian(1, 2.0)):
        assert assess(one, Threat(Prior([1.0]))).advantage == 0
        assert one.epsilon == 0
    assert DiscreteLaplace(1, 2.0).scale == DiscreteLaplace(2, 2.0).scale == Laplace(1, 2.0).scale
    assert DiscreteLaplace(1, 2.0).with_parameter(4.0) == DiscreteLaplace(1, 4.0)
    with pytest.raises(MechanismError, match="All positions coincide"):
        DiscreteLaplace([3], 2.0)
