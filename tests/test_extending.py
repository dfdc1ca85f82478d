"""The page on extending, performed literally: its files written, imported and installed, its promises kept."""

import ast
import doctest
import importlib
import inspect
import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dprisk import GRR, Prior, PureDP, Threat, assess, attacks, audit, bounds, calibrate, exact
from dprisk.attacks.estimate import measure
from dprisk.auditing import Look
from dprisk.bounds import ours
from dprisk.catalogue import MECHANISMS
from dprisk.cli.tables import show
from dprisk.errors import DpriskError
from dprisk.values import Adjustable, Parameter
from tests.naive import attack_values, theorem_4_3
from tests.strategies import balls, partitions, priors
from tests.test_exact import by_table
from tests.typed import run

Extras = dict[str, ModuleType]
Told = Callable[..., str]

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BLOCKS = re.findall(r"^```(\S+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
FILES = {name[1]: text for text in PYTHON if (name := re.match(r"# (\w+)\.py\n", text))}
USES = [text for text in PYTHON if not text.startswith("# ")]
PRINTED = next(text for kind, text in BLOCKS if kind == "text")
PROJECT = tomllib.loads(next(text for kind, text in BLOCKS if kind == "toml"))
PLUGINS: dict[str, str] = PROJECT["project"]["entry-points"]["dprisk.plugins"]
COMMANDS = [
    (shlex.split(command)[1:], printed)
    for kind, text in BLOCKS
    if kind == "shell-session"
    for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
]
CLAIMS_IT = """
from rather_not import RatherNot

def respond(records, rng):
    return RatherNot(5, 1.0, 0.2).sample(records, rng)
"""
some_examples = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
THREAT = Threat(Prior([0.4, 0.3, 0.1, 0.1, 0.1]))


def install(folder: Path, plugins: dict[str, str]) -> Path:
    """What `pip install` leaves in a folder of packages: the files, and what the project says of itself."""
    for name, text in {**FILES, "claims_it": CLAIMS_IT}.items():
        (folder / f"{name}.py").write_text(text)
    about = folder / "survey_extras-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: survey-extras\nVersion: 1.0\n")
    named = "".join(f"{name} = {module}\n" for name, module in plugins.items())
    (about / "entry_points.txt").write_text(f"[dprisk.plugins]\n{named}")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's project, installed for a test; what it registers is forgotten afterwards."""
    registers: tuple[Any, ...] = (exact.FORMS, bounds.REGISTRY, attacks.NAMED, MECHANISMS)
    before = [{entry.name for entry in register} for register in registers]
    monkeypatch.syspath_prepend(install(tmp_path, PLUGINS))
    yield tmp_path
    for register, known in zip(registers, before, strict=True):
        for entry in [entry for entry in register if entry.name not in known]:
            register.unregister(entry.name)
    for name in (*FILES, "claims_it"):
        sys.modules.pop(name, None)


@pytest.fixture
def extras(folder: Path) -> Extras:
    """Its modules, imported."""
    return {name: importlib.import_module(name) for name in FILES if not name.startswith("test_")}


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Told:
    """What the command prints."""
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: "".join(run(capsys, monkeypatch, *arguments)[1:])


@pytest.fixture
def survey(extras: Extras) -> Any:
    return extras["rather_not"].RatherNot(5, epsilon=1.0, silent=0.2)


def alike(shown: str, found: str) -> bool:
    """Whether a text is what the page shows, which may leave out some of it."""
    one, two = ("".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines()) for text in (shown, found))
    return doctest.OutputChecker().check_output(one, two, doctest.ELLIPSIS)


def test_the_page_has_one_short_file_for_each_kind() -> None:
    assert list(FILES) == [
        "rather_not",
        "rather_not_exact",
        "quarter_epsilon",
        "take_at_word",
        "headcount",
        "test_rather_not",
    ]
    assert all(text.count("\n") <= 40 for text in FILES.values())
    assert [text.count(".register(") for text in FILES.values()] == [1, 1, 1, 1, 0, 0]
    assert set(PLUGINS.values()) | {"headcount"} == set(PROJECT["tool"]["setuptools"]["py-modules"])
    assert set(FILES) - {"test_rather_not"} == set(PROJECT["tool"]["setuptools"]["py-modules"])


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_every_line_gives_what_the_page_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names: dict[str, Any] = {}
    checked = 0
    for text in USES:
        lines = text.splitlines()
        for statement in ast.parse(text).body:
            said = lines[(statement.end_lineno or 0) - 1].partition("  # ")[2]
            code = ast.unparse(statement)
            if isinstance(statement, ast.Expr):
                found = repr(eval(code, names))
                assert not said or alike(said, found), (code, found)
                checked += bool(said)
            else:
                exec(code, names)
    assert checked == sum("  # " in line for text in USES for line in text.splitlines())
    assert checked >= 15
    assert alike(PRINTED, capsys.readouterr().out)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("arguments", "shown"), COMMANDS, ids=[" ".join(arguments) for arguments, _ in COMMANDS])
def test_every_command_prints_what_the_page_shows(told: Told, arguments: list[str], shown: str) -> None:
    assert alike(shown, told(*arguments))


@pytest.mark.usefixtures("folder")
def test_the_tests_of_the_page_pass() -> None:
    tests = importlib.import_module("test_rather_not")
    found = [test for name, test in inspect.getmembers(tests, inspect.isfunction) if name.startswith("test_")]
    assert len(found) == 4
    for test in found:
        test()


# A protocol


@some_examples
@given(st.data(), st.integers(2, 4), st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([0.05, 0.5]))
def test_the_risk_of_the_protocol_is_what_the_definition_says(
    extras: Extras, data: st.DataObject, size: int, epsilon: float, silent: float
) -> None:
    """Its channel by hand, and every success rule and knowledge; the closed form where nothing is known."""
    weights, groups, table = data.draw(priors(size)), data.draw(partitions(size)), data.draw(balls(size))
    nothing_known = data.draw(st.booleans())
    groups = np.zeros_like(groups) if nothing_known else groups
    mechanism = extras["rather_not"].RatherNot(size, epsilon, silent)
    threat = Threat(Prior(weights), groups, by_table(table))
    found = exact.solve(mechanism, threat)
    truth = np.exp(epsilon) / (np.exp(epsilon) + size - 1)
    answered = np.where(np.eye(size, dtype=bool), truth, (1 - truth) / (size - 1))
    channel = np.column_stack([(1 - silent) * answered, np.full(size, silent)])
    assert mechanism.matrix() == pytest.approx(channel)
    assert found.by == ("silence" if threat.knows.is_none else "every output")
    assert (found.advantage, found.success) == pytest.approx(theorem_4_3(channel, weights, groups, table), abs=1e-12)


def test_the_protocol_is_a_value(survey: Any) -> None:
    named = survey.labelled(["a", "b", "c", "d", "e"])
    for value in (survey, named):
        again = pickle.loads(pickle.dumps(value))
        assert (again, hash(again), repr(again), again.labels) == (value, hash(value), repr(value), value.labels)
        assert value.replace() == value != survey.with_parameter(2.0)
    with pytest.raises(AttributeError, match="is a value"):
        survey.silent = 0.5
    for other in (named.with_parameter(2.0), named.replace(silent=0.5), named.repeat(2), named.sufficient()):
        assert other.labels == named.labels
    mixed = Threat(Prior([0.4, 0.3, 0.1, 0.1, 0.1], ["e", "d", "c", "b", "a"]))
    for ask in (assess, partial(calibrate, advantage=0.1), partial(audit, runs=10)):
        with pytest.raises(DpriskError, match="same order"):
            ask(named, threat=mixed)
    with pytest.raises(DpriskError, match="silent must lie strictly between 0 and 1, got 1"):
        survey.replace(silent=1)


def test_the_protocol_is_assessed_calibrated_and_audited(survey: Any) -> None:
    found = calibrate(survey, THREAT, advantage=0.1)
    assert found.parameter == "epsilon"
    assert assess(survey.with_parameter(found.value), THREAT).advantage == pytest.approx(0.1, rel=1e-9)
    assert audit(survey, 0.5, runs=20_000).verdict == "violated"
    honest = audit(survey, runs=20_000)
    assert honest.verdict == "consistent with the claim"
    assert honest.claim.epsilon == pytest.approx(1.0)


@pytest.mark.usefixtures("folder")
def test_the_command_knows_the_protocol(told: Told) -> None:
    options = ["--mechanism", "rather-not", "--silent", "0.2", "--size", "5", "--prior", "zipf", "--json"]
    risk = json.loads(told("assess", *options, "--epsilon", "1"))
    found = json.loads(told("calibrate", *options, "--advantage", str(risk["advantage"])))
    audited = json.loads(told("audit", *options, "--epsilon", "1", "--runs", "5000"))
    made = MECHANISMS["Randomized response with silence"].make({"epsilon": 1.0, "silent": 0.2}, 5)
    assert risk["advantage"] == assess(made, Threat(Prior.zipf(5))).advantage
    assert found["epsilon"] == pytest.approx(1.0)
    assert audited["claim"] == pytest.approx(1.0)
    for command in ("assess", "calibrate", "audit"):
        helped = " ".join(told(command, "--help").split())
        assert "rather-not Randomised response with silence" in helped
        assert "--silent NUMBER With --mechanism rather-not: chance of no answer." in helped
    listed = {entry["name"]: entry for entry in json.loads(told("catalogue", "--json"))["mechanisms"]}
    assert listed["rather-not"]["options"] == ["epsilon", "silent"]
    assert "also called no answer" in told("catalogue")
    code = shlex.split("--records 0..4 --claim 1 --family rather-not --silent 0.2 --batch --runs 2000 --json")
    assert json.loads(told("audit", "claims_it:respond", *code))["epsilon_certified"] <= 1


# A bound


@some_examples
@given(st.data(), st.integers(2, 5), st.sampled_from([0.1, 1.0, 3.0, 10.0]))
def test_the_bound_is_never_below_the_exact_value(
    extras: Extras, data: st.DataObject, size: int, epsilon: float
) -> None:
    """Of randomised response and of the worst mechanism there is, whatever is believed, known and wanted."""
    weights, groups, table = data.draw(priors(size)), data.draw(partitions(size)), data.draw(balls(size))
    threat = Threat(Prior(weights), groups, by_table(table))
    most = extras["quarter_epsilon"].quarter_epsilon(epsilon, threat)
    assert exact.solve(GRR(size, epsilon), threat).advantage <= most
    assert ours.worst_blocks(epsilon, threat.prior).advantage <= most


def test_the_bound_is_listed_and_taken_where_it_applies(extras: Extras, told: Told) -> None:
    worst = assess(PureDP(1.0), THREAT)
    listed = {bound["name"]: bound["value"] for bound in worst.to_dict()["bounds"]}
    assert listed["quarter-epsilon"] == pytest.approx(0.25, rel=1e-12)
    assert pickle.loads(pickle.dumps(worst)).to_dict() == worst.to_dict()
    assert "quarter-epsilon" in told("bounds")
    listed = {bound["name"]: bound for bound in json.loads(told("bounds", "--json"))}
    assert listed["quarter-epsilon"]["needs"] == "pure DP"
    shown = told("assess", "--guarantee", "pure", "--epsilon", "1", "--size", "5", "--bounds")
    assert "0.25" in next(line for line in shown.splitlines() if "quarter-epsilon" in line)


# An attack


def test_the_attack_gains_what_the_definition_says(extras: Extras, survey: Any, told: Told) -> None:
    word = attacks.make("Word", survey, THREAT)
    guesses = np.array([[0], [1], [2], [3], [4], [0]])
    pi, groups = THREAT.prior.weights, THREAT.knows.groups
    truth = attack_values(survey.matrix(), pi, groups, np.eye(5, dtype=bool), guesses)
    found = measure(word, survey, THREAT, np.random.default_rng(1), runs=50_000, alpha=1e-6)
    for interval, value in zip((found.advantage_interval, found.success_interval), truth, strict=True):
        assert interval[0] <= value <= interval[1]
    look = Look(scorer=word)
    audited = audit(survey, threat=THREAT, look=look, runs=20_000, alpha=1e-6)
    low, high = audited.attack().advantage_interval or (1, 0)
    assert low <= truth[0] <= high
    assert audit(survey, 0.5, look=look, runs=20_000).verdict == "violated"
    listed = {attack["name"]: attack for attack in json.loads(told("catalogue", "--json"))["attacks"]}
    assert listed["WORD"]["needs"] == ["mechanism", "prior"]
    assert "guess what was said" in told("catalogue")


@pytest.mark.usefixtures("folder")
def test_the_command_audits_by_an_attack(told: Told, survey: Any) -> None:
    options = ["--runs", "5000", "--json", "--attack", "word"]
    mechanism = ["audit", "--mechanism", "rather-not", "--epsilon", "1", "--silent", "0.2", "--size", "5"]
    uniform, skewed = Threat(Prior.uniform(5)), Threat(Prior.zipf(5))
    for given_prior, threat, asked in (([], uniform, None), (["--prior", "zipf"], skewed, skewed)):
        word = attacks.make("word", survey, threat)
        expected = audit(survey, threat=asked, look=Look(scorer=word), runs=5000)
        printed = json.loads(told(*mechanism, *options, *given_prior))
        assert printed["epsilon_certified"] == expected.epsilon_certified
        assert "TakeAtWord" in str(printed["design"])
    code = ["audit", "claims_it:respond", "--batch", "--records", "0..4", "--claim", "1", *options]
    assert json.loads(told(*code, "--family", "rather-not", "--silent", "0.2"))["runs"] == 5000
    assert told(*code) == "Error: --attack needs to know what outputs mean: give the --family of the code.\n"
    assert told(*mechanism, "--attack", "luck").startswith("Error: There is no attack 'luck'; choose one of OPTIMAL")
    assert told(*mechanism, "--attack", "EST").startswith("Error: --attack EST needs the records of everybody else")


# An answer


def test_the_answer_is_shown_everywhere(extras: Extras, survey: Any, capsys: pytest.CaptureFixture[str]) -> None:
    count = extras["headcount"].Headcount(assess(survey, THREAT), 1200)
    assert count.numbers == pytest.approx({"without": 1200 * 0.4, "with": 1200 * assess(survey, THREAT).success})
    show(count)
    printed, page = capsys.readouterr().out, count._repr_html_()
    for row in count.rows:
        assert all(text in printed and text in page for text in row)
    assert count.sentence() in printed
    assert count.sentence() in page
    assert json.loads(json.dumps(count.to_dict())) == count.numbers | {"sentence": count.sentence()}
    assert pickle.loads(pickle.dumps(count)).to_dict() == count.to_dict()


# Plugins


@pytest.mark.slow
@pytest.mark.slow
def test_a_fresh_process_finds_what_is_installed(tmp_path: Path) -> None:
    """Also workers of an audit, which start without having loaded it; and a file that is only there."""
    install(tmp_path, PLUGINS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    start = partial(subprocess.run, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    asked = "audit --mechanism rather-not --epsilon 1 --silent 0.2 --size 5 --attack word --runs 30000 --jobs 2 --json"
    ran = start([sys.executable, "-m", "dprisk", *asked.split()])
    assert json.loads(ran.stdout)["verdict"] == "consistent with the claim"
    shutil.rmtree(next(tmp_path.glob("*.dist-info")))
    ((code, command),) = re.findall(r'`python -c "(.*?)" (\w+)`', PAGE.read_text())
    assert "rather-not" in start([sys.executable, "-c", code, command]).stdout
    assert "rather-not" not in start([sys.executable, "-m", "dprisk", command]).stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import not_there", "ModuleNotFoundError: No module named 'not_there'"),
        ("def broken(:", "SyntaxError: invalid syntax (broken.py, line 1)"),
        (
            "from dprisk import attacks\nattacks.register(attacks.NAMED['GRR'])",
            "ParameterError: Another attack, GRR, is called 'GRR' already; choose another name.",
        ),
    ],
)
def test_a_broken_plugin_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Told, text: str, why: str
) -> None:
    install(tmp_path, {"mine": "broken"})
    (tmp_path / "broken.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert told("catalogue") == f"Error: The plugin mine cannot be loaded ({why}); repair or remove it.\n"


def test_nothing_of_the_page_is_left(told: Told) -> None:
    assert not {"rather-not", "silence", "quarter-epsilon", "WORD"} & {
        entry.name for register in (MECHANISMS, exact.FORMS, bounds.REGISTRY, attacks.NAMED) for entry in register
    }
    assert not set(FILES) & set(sys.modules)
    assert "rather-not" not in told("catalogue")


def test_a_parameter_that_is_no_argument_gets_one_sentence() -> None:
    class Renamed(GRR):
        @property
        def parameter(self) -> Parameter:
            return Parameter("strength", 1.0, rises=True)

        with_parameter = Adjustable.with_parameter

    with pytest.raises(DpriskError, match="has the parameter strength, but it is made with size, epsilon; name the"):
        calibrate(Renamed(4, 1.0), Threat(Prior.uniform(4)), advantage=0.1)
