"""Every kind of sentence, in one place: read them aloud."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from dprisk import (
    GRR,
    OUE,
    ApproxDP,
    Density,
    Gaussian,
    GaussianDP,
    Laplace,
    Line,
    Matrix,
    Prior,
    PureDP,
    Threat,
    assess,
    audit,
    calibrate,
)
from dprisk.answers import Answer
from dprisk.exact import Optimum
from dprisk.mechanisms import DiscreteGaussian, OnInterval, VectorGaussian
from dprisk.risks import AttackRisk, Risk

ILLNESSES = Prior({"flu": 0.6, "cold": 0.32, "HIV": 0.08})
SEXES = {"flu": "f", "cold": "m", "HIV": "m"}
PEOPLE = {"sex": ["f", "f", "m", "m"], "age": [30, 30, 40, 40], "ill": ["flu", "cold", "flu", "flu"]}
NUMBERS = Threat.reconstruction(Density.uniform(), within=0.1)


WITHOUT_RATES = Optimum(np.array([0.128]), np.array([0.628]), None)  # as a form of somebody else's may be
WORSE = Optimum(np.array([-0.05]), np.array([0.2]), None)


def answer(question: Callable[[], Answer], told: str, *marks: pytest.MarkDecorator) -> object:
    return pytest.param(question, told, id=told[:60], marks=marks)


SENTENCES = [
    # a mechanism: both rates of the attacker who gains most
    answer(
        lambda: assess(GRR(100, 2.0), Threat(Prior.uniform(100))),
        "An attacker can be right about 69 of 1000 people who took part, and about 10 of 1000 who did not: taking part "
        "adds 59.",
    ),
    answer(
        lambda: assess(GRR(6, 1.0), Threat(Prior([0.8, 0.04, 0.04, 0.04, 0.04, 0.04]))),
        "An attacker can be right about 352 of 1000 people who took part, and about 274 of 1000 who did not: taking "
        "part adds 78. "
        "That is about people drawn at random: an attacker who looks for record 1 (no record is more at risk) "
        "says yes to 352 of 1000 people who have it, and to 138 of 1000 taken at random: 214 more.",
    ),
    answer(
        lambda: assess(GRR(100_000, 1.0), Threat(Prior.uniform(100_000))),
        "An attacker can be right about 3 of 100,000 people who took part, and about 1 of 100,000 who did not: taking "
        "part adds 2.",
    ),
    answer(
        lambda: assess(GRR(3, 0.0), Threat(ILLNESSES)),
        "An attacker can be right about 600 of 1000 people who took part, and about 600 of 1000 who did not: taking "
        "part adds nothing.",
    ),
    answer(
        lambda: assess(GRR(1, 1.0), Threat(Prior([1.0]))),
        "An attacker can be right about 1000 of 1000 people who took part, and about 1000 of 1000 who did not: taking "
        "part adds nothing. Nothing is left to find out here: the prior and what the attacker knows already tell it of "
        "everybody, so that these numbers say nothing of the noise.",
    ),
    answer(
        lambda: assess(Laplace(11, 4.0), Threat(Prior.zipf(11), success=Line(2.0))),
        "An attacker can be right (within 2 on a line) about 759 of 1000 people who took part, and about 460 of 1000 "
        "who did not: taking part adds 299. "
        "That is about people drawn at random: an attacker who looks for record 10 (no record is more at risk) "
        "says yes to 876 of 1000 people who have it, and to 191 of 1000 taken at random: 685 more.",
    ),
    answer(
        lambda: assess(OUE(3, 1.0), Threat(ILLNESSES, SEXES)),
        "An attacker who knows everybody's group can be right about 735 of 1000 people who took part, and about 615 of "
        "1000 who did not, anybody in their place: taking part adds 120. "
        "That is about people drawn at random: an attacker who looks for HIV (no record is more at risk, beyond what "
        "was known) says yes to 500 of 1000 people who have it, and to 315 of 1000 taken at random from the "
        "group m: 185 more.",
    ),
    answer(
        lambda: assess(GRR(3, 1.0), Threat.attributes(PEOPLE, known=["sex", "age"], secret=["ill"])),
        "An attacker who knows everybody's sex and age can be right (in ill) about 629 of 1000 people who took part, "
        "and about 447 of 1000 who did not, anybody in their place: taking part adds 182.",
        # p + q/4, and 1/4 + (p + q)/4
    ),
    answer(
        lambda: assess(GRR(4, 1.0), Threat.membership(Prior.uniform(4))),
        "An attacker who knows everybody's record can recognise 475 of 1000 who took part, and mistakes 250 of 1000 "
        "who did not for participants: taking part adds 225.",
    ),
    # an estimate, bounds for numbers, and a form that tells no rates
    answer(
        lambda: assess(OUE(200, 2.0), Threat(Prior.uniform(200), success=Line(3.0)), runs=500, seed=1),
        "By an estimate, an attacker can be right (within 3 on a line) about 80 of 1000 people who took part, and "
        "about 34 of 1000 who did not: taking part adds about 46. "
        "An attacker who looks for one record, whichever it is, says yes to "
        "at most 379 more of 1000 people who have it than of 1000 taken at random.",
    ),
    answer(
        lambda: assess(OnInterval.laplace(4.0), NUMBERS),
        "An attacker is right (within 0.1 on a line) about at most 464 of 1000 people (200 without any release), and "
        "about at most 264 more of 1000 who took part than of 1000 who did not.",
        pytest.mark.slow,
    ),
    answer(
        lambda: Risk(VectorGaussian(np.eye(3), 1.0), Threat(ILLNESSES), WITHOUT_RATES),
        "An attacker can be right about 128 more of 1000 who took part than of 1000 who did not. "
        "That is about people drawn at random: an attacker who looks for one record, whichever it is, says yes to "
        "at most 479 more of 1000 people who have it than of 1000 taken at random.",
    ),
    # a guarantee: the most that any mechanism allows
    answer(
        lambda: assess(PureDP(1.0), Threat(Prior.zipf(10))),
        "Whatever the mechanism, an attacker is right about at most 375 of 1000 people (341 without any release), and "
        "about at most 157 more of 1000 who took part than of 1000 who did not. "
        "That is about people drawn at random: an attacker who looks for one record, whichever it is, says yes to "
        "at most 447 more of 1000 people who have it than of 1000 taken at random.",
    ),
    answer(
        lambda: assess(ApproxDP(1.0, 1e-5), Threat(ILLNESSES, SEXES)),
        "Whatever the mechanism, an attacker who knows everybody's group is right about at most 921 of 1000 people "
        "(920 without any release), and about at most 202 more of 1000 who took part than of 1000 who did not. "
        "That is about people drawn at random: an attacker who looks for one record, whichever it is, says yes to "
        "at most 370 more of 1000 people who have it than of 1000 taken at random from those of whom the same is "
        "known.",
    ),
    answer(
        lambda: assess(PureDP(1.0), Threat.membership(Prior.uniform(10))),
        'Whatever the mechanism, an attacker who knows everybody\'s record can say "took part" of at most 245 more of '
        "1000 who did than of 1000 whose place somebody from the prior took. "
        "An attacker who looks for one record, whichever it is, says yes to "
        "at most 416 more of 1000 people who have it than of 1000 taken at random.",
    ),
    answer(
        lambda: assess(GaussianDP(0.5, "add-remove"), Threat.membership(Prior.uniform(2))),
        'Whatever the mechanism, an attacker who knows everybody\'s record can say "took part" of at most 192 more of '
        "1000 who did than of 1000 whose place somebody from the prior took, and of at most 198 more than of 1000 left "
        "out.",
    ),
    # one record
    answer(
        lambda: assess(OUE(3, 1.0), Threat(ILLNESSES)).of("HIV"),
        "An attacker who looks for HIV says yes to 500 of 1000 people who have it, and to 287 of 1000 taken at random: "
        "213 more. No report makes it more than 19.2 % sure of that, up from 8 %.",
    ),
    answer(
        lambda: assess(OUE(3, 1.0), Threat(ILLNESSES, SEXES)).of("HIV"),
        "An attacker who looks for HIV says yes to 500 of 1000 people who have it, and to 315 of 1000 taken at random "
        "from the group m: 185 more. No report makes it more than 40.5 % sure of that, up from 20 %.",
    ),
    answer(
        lambda: assess(Gaussian(5, 0.5), Threat(Prior.uniform(5))).of(4),
        "An attacker who looks for record 4 says yes to 762 of 1000 people who have it, and to 410 of 1000 taken at "
        "random: 352 more. Some report, however rare, makes it all but certain of that, up from 20 %.",
    ),
    answer(
        lambda: assess(PureDP(1.0), Threat(ILLNESSES)).of("HIV"),
        "Whatever the mechanism, an attacker who looks for HIV says yes to at most 426 more of 1000 people who have it "
        "than of 1000 taken at random. No report makes it more than 19.2 % sure of that, up from 8 %.",
    ),
    # one attack
    answer(
        lambda: assess(GRR(3, 1.0), Threat(ILLNESSES), attack="UNI"),
        "The attack UNI is right about 576 of 1000 people who took part, and about 383 of 1000 who did not: taking "
        "part adds 193.",
    ),
    answer(
        lambda: AttackRisk(GRR(3, 1.0), Threat(ILLNESSES), WORSE, "X"),
        "The attack X is right about 200 of 1000 people who took part, and about 250 of 1000 who did not: it does "
        "worse on those who took part, by 50.",
    ),
    # how much noise, and whether code keeps its promise
    answer(
        lambda: calibrate(GRR(100, 1.0), Threat(Prior.uniform(100)), advantage=0.1),
        "To keep the advantage at or below 10 points, choose epsilon 2.5 or less.",
    ),
    answer(
        lambda: calibrate(Laplace([0, 4, 10], 2.0), epsilon=0.5),
        "To keep epsilon <= 0.5, choose epsilon 0.5 or less: Laplace noise of scale 20 or more on a scale from 0 to "
        "10.",
    ),
    answer(
        lambda: audit(GRR(4, 2.0), claim=1.0, runs=2000),
        "GRR(size=4, epsilon=2) breaks its promise of epsilon 1: its true epsilon is at least 1.881 (99 % confidence). "
        "1,421 of 2,000 guesses among 4 records were right; the claim allows 951 on average.",
    ),
]


@pytest.mark.parametrize(("question", "told"), SENTENCES)
def test_the_sentence(question: Callable[[], Answer], told: str) -> None:
    assert question().sentence() == told


def test_left_out_or_in_is_told_where_the_guarantee_is_about_it() -> None:
    """It is the total variation, whatever the prior, which the advantage depends on."""
    promise = GaussianDP(0.5, "add-remove")
    for prior in (Prior.uniform(2), Prior.uniform(100), Prior([0.99, 0.01])):
        risk = assess(promise, Threat.membership(prior))
        assert risk.to_dict()["left_out_or_in"] == promise.total_variation
        assert ("left out or in", "<= 0.1975") in [row[:2] for row in risk.rows]
    for other in (
        assess(promise, Threat(Prior.uniform(2))),
        assess(promise.to_replace_one(), Threat.membership(Prior.uniform(2))),
    ):
        assert other.to_dict()["left_out_or_in"] is None
        assert "left out" not in other.sentence() + str(other.rows)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_what_is_said_adds_up(epsilon: float) -> None:
    """Rounded numbers too: the first and the last are those of the table, and the second is off by one at most."""
    for size in range(2, 60):
        risk = assess(OUE(size, epsilon), Threat(Prior.zipf(size)))
        right, people, others, _, more = (
            int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", risk.sentence().partition(" That")[0])
        )
        assert right - others == more
        assert abs(right - people * (risk.right_on_participants or 0)) <= 0.5 + 1e-6
        assert abs(others - people * (risk.right_on_others or 0)) <= 1 + 1e-6
        assert abs(more - people * risk.advantage) <= 0.5 + 1e-6


def test_a_violated_claim_is_not_followed_by_what_reads_as_an_acquittal() -> None:
    """A rare but glaring leak: on average the attacker gains less than the claim would allow."""
    leaky = Matrix([[0.02, 0.0, 0.98], [0.0, 0.02, 0.98]])
    report = audit(leaky, claim=1.0, runs=5000)
    assert report.verdict == "violated"
    attack = report.attack()
    assert attack.success is not None
    assert attack.success < attack.success_bound
    words = report.attack_sentence()
    assert "allows" not in words
    assert words.endswith(
        "points more than on people who did not take part: an average, in which the leak does not show."
    )
    consistent = audit(GRR(2, 1.0), claim=1.0, runs=5000).attack_sentence()
    assert consistent.count("the claim allows") == 2
    flagrant = audit(GRR(2, 4.0), claim=1.0, runs=5000).attack_sentence()
    assert flagrant.count("the claim allows") == 2


def test_a_distance_in_other_units_than_the_noise_is_told() -> None:
    """Ten positions by their number lie from 0 to 1, the records of a prior without labels at 0 to 9."""
    near = Threat.reconstruction(Prior.uniform(10), within=2)
    told = "within 2 counts records from 0 to 9, but the noise is on positions from 0 to 1"
    risk = assess(Gaussian(10, sigma=2.0), near)
    assert ("units", "differ", told) in risk.rows
    assert risk.sentence().endswith(f" Mind the units: {told}.")
    assert ("units", "differ", told) in calibrate(Gaussian(10, sigma=2.0), near, advantage=0.1).rows
    for mechanism, threat in (
        (Gaussian(range(10), sigma=2.0), near),
        (DiscreteGaussian(10, sigma=2.0), near),
        (Laplace(10, epsilon=1.0), near),  # fits any units
        (Gaussian(10, sigma=2.0), Threat(Prior.uniform(10))),
        (Gaussian(11, sigma=2.0), Threat.reconstruction(Prior.uniform(11, [i / 10 for i in range(11)]), within=0.2)),
    ):
        assert assess(mechanism, threat).other_units == ""


def test_positions_given_by_their_number_are_shown() -> None:
    assert repr(Gaussian(10, sigma=2.0)) == "Gaussian(positions=<10 numbers from 0 to 1>, sigma=2)"
    assert repr(Laplace(3, scale=2.0)) == "Laplace(positions=[0, 0.5, 1], scale=2)"
    assert Laplace([0, 0.5, 1], scale=2.0) == Laplace(3, scale=2.0)


def test_whom_each_number_compares_with_is_told_where_the_attacker_knows_groups() -> None:
    """The advantage compares with anybody, who looks for one record with those of whom the same is known."""
    threat = Threat(Prior([0.5, 0.2, 0.2, 0.1]), knows=[0, 0, 1, 1])
    risk = assess(GRR(4, 1.0), threat)
    rows = {what: means for what, _, means in risk.rows}
    assert rows["on others"] == "right about who did not, anybody in their place, same attacker"
    assert rows["most at risk"].endswith(", if looked for in its group")
    assert " who did not, anybody in their place: taking part adds " in risk.sentence()
    for knows in ("none", "all"):
        other = assess(GRR(4, 1.0), Threat(threat.prior, knows=knows))
        assert "in their place" not in str(other.rows) + other.sentence()
        assert "in its group" not in str(other.rows)
