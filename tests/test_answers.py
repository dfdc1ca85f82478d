"""Every answer reads alike: numbers, rows, a sentence, JSON, and one way to be shown."""

import inspect
import json
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import dprisk
from dprisk import GRR, Density, Gaussian, Prior, PureDP, Threat, assess, audit, calibrate, sweep
from dprisk.answers import Answer
from dprisk.cli.tables import show
from dprisk.errors import DpriskError
from dprisk.mechanisms import SHE, OnInterval
from dprisk.risks import Assessment

THREAT = Threat(Prior.zipf(4))
NUMBERS = Threat.reconstruction(Density.beta(2, 5), within=0.1)
QUESTIONS: dict[str, Callable[[], Answer]] = {
    "a risk": lambda: assess(GRR(4, 1.0), THREAT),
    "an estimate": lambda: assess(SHE(4, 1.0), THREAT, runs=500),
    "one record": lambda: assess(GRR(4, 1.0), THREAT).of(3),
    "one record, estimated": lambda: assess(SHE(4, 1.0), THREAT, runs=500).of(3),
    "one record of a guarantee": lambda: assess(PureDP(1.0), THREAT).of(3),
    "one attack": lambda: assess(GRR(4, 1.0), THREAT, attack="UNI"),
    "a worst case": lambda: assess(PureDP(1.0), THREAT),
    "a certified interval": lambda: assess(OnInterval.laplace(2.0), NUMBERS),
    "a calibration": lambda: calibrate(GRR(4, 1.0), THREAT, advantage=0.1),
    "a calibration of numbers": lambda: calibrate(OnInterval.laplace(1.0), NUMBERS, advantage=0.2),
    "a calibration without a threat": lambda: calibrate(Gaussian(4, 1.0), advantage=0.1),
    "a sweep": lambda: sweep([GRR(4, 1.0), PureDP(1.0)], THREAT, epsilon=[0.5, 1.0], bounds=True),
    "an audit": lambda: audit(GRR(4, 1.0), runs=500),
    "an audit of code": lambda: audit(lambda record, rng: record ^ int(rng.integers(2)), 1.0, records=[0, 1], runs=500),
    "an audit under a threat": lambda: audit(GRR(4, 1.0), threat=THREAT, runs=500),
}


ASKED = [pytest.param(name, marks=pytest.mark.slow) if "numbers" in name else name for name in QUESTIONS]


@cache
def answer_to(question: str) -> Answer:
    return QUESTIONS[question]()


@pytest.mark.slow
@pytest.mark.parametrize("question", ASKED)
def test_an_answer_tells_everything_it_should(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = answer_to(question)
    assert answer.about
    assert answer.sentence().endswith(".")
    assert len(answer.rows) >= 2
    assert all(len(row) == len(answer.columns) and all(isinstance(part, str) for part in row) for row in answer.rows)
    told = json.loads(json.dumps(answer.to_dict()))
    assert told["sentence"] == answer.sentence()
    assert told.items() >= json.loads(json.dumps(answer.numbers)).items()
    page = answer._repr_html_()
    assert answer.rows[0][0] in page
    show(answer)
    printed = capsys.readouterr().out
    assert answer.sentence() in printed.replace("\n", " ").replace("  ", " ") or answer.sentence() in printed
    assert answer.rows[0][0] in printed


@pytest.mark.parametrize("question", ASKED)
def test_an_answer_survives_a_pickle(question: str) -> None:
    answer = answer_to(question)
    again = pickle.loads(pickle.dumps(answer))
    assert again.to_dict() == answer.to_dict()
    assert again.rows == answer.rows


def test_pages_and_sentences_are_made_in_one_place() -> None:
    source = Path(dprisk.__file__).parent
    assert [path.name for path in source.rglob("*.py") if "def _repr_html_" in path.read_text()] == ["answers.py"]
    written = [path.name for path in source.rglob("*.py") if "<table" in path.read_text()]
    assert sorted(written) == ["answers.py", "html.py"]  # an answer in a notebook, and the report as a page


@pytest.mark.slow
@pytest.mark.slow
def test_numbers_on_an_interval_are_assessed_and_calibrated_like_others() -> None:
    found, risk = answer_to("a calibration of numbers"), answer_to("a certified interval")
    assert isinstance(risk, Assessment)
    assert isinstance(found, dprisk.Calibration)
    assert not risk.exact
    assert isinstance(risk, dprisk.Risk)
    low, high = risk.advantage_interval
    assert low <= risk.advantage == high <= low + 1e-6
    assert found.parameter == "epsilon"
    assert found.advantage <= 0.2
    weaker = assess(OnInterval.laplace(found.value * 1.001), NUMBERS)
    assert weaker.advantage_interval[0] > 0.2 - 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: assess(OnInterval.laplace(1.0), NUMBERS, runs=10), "leave out runs"),
        (lambda: assess(PureDP(1.0), THREAT, seed=1), "leave out seed"),
        (lambda: assess(GRR(4, 1.0), NUMBERS), "must be the same"),
        (lambda: assess(OnInterval.laplace(1.0).repeat(2), NUMBERS), "records are listed"),
        (lambda: assess(OnInterval.laplace(1.0), THREAT), "infinitely many records"),
        (lambda: audit(OnInterval.laplace(1.0), runs=10), "audit it at some of them"),
        (lambda: Threat(Density.uniform()), "above 0"),
        (lambda: Threat(Density.uniform(), knows="all", success=dprisk.Line(0.1)), "list some"),
        (lambda: OnInterval.laplace(1.0).log_likelihood([0.5]), "too many to list"),
    ],
)
def test_what_numbers_on_an_interval_cannot_do_gets_one_sentence(wrong: object, message: str) -> None:
    assert callable(wrong)
    with pytest.raises(DpriskError, match=message) as told:
        wrong()
    assert "\n" not in str(told.value)


def test_the_verbs_take_what_people_use() -> None:
    assert len(inspect.signature(audit).parameters) <= 12
    assert len(inspect.signature(assess).parameters) <= 8
    assert len(inspect.signature(calibrate).parameters) <= 8
