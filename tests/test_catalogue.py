"""Names that people type: every one leads somewhere, and what is registered shows up wherever names are used."""

import io
import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import dprisk.cli
from dprisk import (
    DPSGD,
    GRR,
    ZCDP,
    ApproxDP,
    Density,
    DiscreteLaplace,
    GaussianDP,
    Guarantee,
    Mechanism,
    Prior,
    PureDP,
    dp_sgd,
)
from dprisk.catalogue import (
    GUARANTEES,
    MECHANISMS,
    NOISES,
    OPTIONS,
    PRIORS,
    QUERIES,
    REGISTERS,
    SUCCESS,
    Catalogue,
    Entry,
    Option,
)
from dprisk.cli.assess import assess_command, calibrate_command
from dprisk.cli.audit import audit_command
from dprisk.cli.options import Command
from dprisk.cli.plot import plot_command
from dprisk.cli.progress import live
from dprisk.errors import DpriskError, ParameterError
from dprisk.mechanisms import ConcreteHashing, DiscreteGaussian, GaussianNoise, LaplaceNoise, LocalHashing
from dprisk.mechanisms.tabled import Tabled
from dprisk.releases import Query
from dprisk.threat.success import Exact, Line, Ring, Success
from dprisk.types import FloatArray, IntArray
from dprisk.values import Parameter
from tests.typed import run

ENTRIES = [(register, entry) for register in REGISTERS for entry in register]
NAMES = [f"{register.kind} {entry.name}" for register, entry in ENTRIES]
PLAUSIBLE = {  # values of options that may be left out
    "subset_size": 2,
    "hashes": "polynomial",
    "threshold": 0.7,
    "space": "ring",
    "ends": "truncate",
    "relation": "replace-one",
    "exponent": 1.1,
    "ratio": 0.9,
    "low": 0,
    "high": 100,
    "edges": [0, 50, 100],
    "start": 1.0,
    "end": 3.0,
}
MADE: dict[str, Any] = {
    "mechanism": Mechanism,
    "guarantee": Guarantee,
    "prior": (Prior, Density),
    "success rule": Success,
    "query": Query,
    "noise": (LaplaceNoise, GaussianNoise, Guarantee),
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "matrix.csv").write_text("\n".join(["0.25,0.75"] * 5) + "\n")
    (tmp_path / "prior.csv").write_text("label,count\n" + "".join(f"{label},1\n" for label in "abcde"))
    return {"matrix": tmp_path / "matrix.csv", "path": tmp_path / "prior.csv"}


@pytest.mark.parametrize(("register", "entry"), ENTRIES, ids=NAMES)
def test_every_entry_can_be_made(register: Catalogue, entry: Entry, files: dict[str, Path]) -> None:
    examples = {option.name: option.example for option in entry.options if option.example is not None} | {
        name: path for name, path in files.items() if name in entry.takes
    }
    assert set(entry.needs) <= set(examples), "an option that is needed has an example"
    ways = entry.one_of or (tuple(examples),)
    choices = [{name: examples[name] for name in way} for way in ways]
    more = {name: value for name, value in PLAUSIBLE.items() if name in entry.takes}
    assert entry.one_of or set(entry.takes) - {"categories"} == {*examples, *more}
    for given in (*choices, *([examples | more] if more else [])):
        made = entry.make(given, 5)
        assert isinstance(made, MADE[register.kind])
        assert getattr(made, "size", 5) in (5, math.inf)


@pytest.mark.parametrize(("register", "entry"), ENTRIES, ids=NAMES)
def test_every_entry_is_explained(register: Catalogue, entry: Entry) -> None:
    assert entry.title[0].isupper()
    assert entry.explanation[0].isupper()
    assert entry.explanation.endswith(".")
    for text in (entry.title, entry.explanation):
        assert "\n" not in text
        assert len(text) <= 100
    assert all(OPTIONS[option.name] is option for option in entry.options), "an option means one thing everywhere"
    for text in (entry.name, entry.title, *entry.aliases):
        for written in (text, text.upper(), text.replace(" ", "-"), text.replace("-", "_")):
            assert register[written] is entry


def test_every_option_is_explained_and_taken() -> None:
    taken = {name for register in REGISTERS for name in register.options}
    assert taken == set(OPTIONS)
    for option in OPTIONS.values():
        assert option.meaning
        assert not option.meaning.endswith(".")
        assert option.meaning.count("if left out") == (option.optional and option.name not in ("low", "high", "edges"))


@pytest.mark.parametrize(
    ("register", "text", "name"),
    [
        *((MECHANISMS, text, "grr") for text in ("randomised response", "Randomized Response", "RR", "k-RR", "kRR")),
        *((MECHANISMS, text, "grr") for text in ("GRR", "direct encoding", "generalized randomised response")),
        (MECHANISMS, "RAPPOR", "sue"),
        (MECHANISMS, "unary encoding", "ue"),
        (MECHANISMS, "optimized unary encoding", "oue"),
        (MECHANISMS, "OUE", "oue"),
        (MECHANISMS, "local hashing", "local-hashing"),
        (MECHANISMS, "OLH", "olh"),
        (MECHANISMS, "optimised local hashing", "olh"),
        *((MECHANISMS, text, "ss") for text in ("subset selection", "SS", "w-SS")),
        (MECHANISMS, "summation with histogram encoding", "she"),
        (MECHANISMS, "geometric", "geometric"),
        (MECHANISMS, "discrete Laplace", "discrete-laplace"),
        (MECHANISMS, "discrete Gaussian mechanism", "discrete-gaussian"),
        (MECHANISMS, "exponential mechanism", "exponential"),
        (MECHANISMS, "Laplace mechanism", "laplace"),
        *((GUARANTEES, text, "gaussian") for text in ("gaussian DP", "GDP", "f-GDP")),
        *((GUARANTEES, text, "zcdp") for text in ("zCDP", "concentrated")),
        *((GUARANTEES, text, "pure") for text in ("pure", "eps-DP", "epsilon-DP", "ε-DP")),
        *((GUARANTEES, text, "approx") for text in ("approximate", "(eps, delta)", "(ε,δ)-DP")),
        *((GUARANTEES, text, "dpsgd") for text in ("DP-SGD", "dp sgd")),
        *((MECHANISMS, text, "grr") for text in ("Generalized RR", "k-ary randomized response", "Warner", "d-RR")),
        *((MECHANISMS, text, "sue") for text in ("rappor", "Basic one-time RAPPOR", "Symmetric Unary Encoding")),
        *((MECHANISMS, text, "oue") for text in ("optimal unary encoding", "Optimized UE")),
        *((MECHANISMS, text, "ss") for text in ("ω-SS", "k-subset", "Subset Selection mechanism")),
        *((MECHANISMS, text, "laplace") for text in ("Laplacian", "LAPLACE", "laplacian noise")),
        *((MECHANISMS, text, "gaussian") for text in ("normal", "Gauss", "Gaussian mechanism", "gaussian noise")),
        *((MECHANISMS, text, "she") for text in ("HE", "histogram encoding")),
        *((MECHANISMS, text, "matrix") for text in ("channel", "probability matrix")),
        (MECHANISMS, "exponential", "exponential"),
        *((GUARANTEES, text, "pure") for text in ("DP", "differential privacy", "pure-dp", "epsilon DP", "eps")),
        *((GUARANTEES, text, "approx") for text in ("approx DP", "(epsilon,delta)-DP", "eps-delta", "ADP")),
        *((GUARANTEES, text, "gaussian") for text in ("μ-GDP", "\u00b5-GDP", "mu-gdp", "gaussian")),
        *((GUARANTEES, text, "zcdp") for text in ("ρ-zCDP", "rho-zcdp", "CDP", "zero concentrated DP")),
        *((GUARANTEES, text, "dpsgd") for text in ("Opacus", "private SGD", "DPSGD")),
        (SUCCESS, "within", "line"),
        (QUERIES, "average", "mean"),
        (NOISES, "Laplace noise", "laplace"),
        (NOISES, "normal noise", "gaussian"),
        (PRIORS, "Zipf", "zipf"),
    ],
)
def test_names_are_understood_as_people_write_them(register: Catalogue, text: str, name: str) -> None:
    assert register[text].name == name


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: MECHANISMS["grr"].make({"epsilon": 2.0}, 100), GRR(100, 2.0)),
        (lambda: MECHANISMS["LH"].make({"epsilon": 2.0, "hash_range": 8}, 9), LocalHashing(9, 2.0, 8)),
        (
            lambda: MECHANISMS["concrete-hashing"].make({"epsilon": 1.0, "hash_range": 4, "hashes": "polynomial"}, 9),
            ConcreteHashing(9, 1.0, 4, "polynomial"),
        ),
        (lambda: MECHANISMS["discrete-laplace"].make({"epsilon": 2.0}, 9), DiscreteLaplace(9, 2.0)),
        (lambda: MECHANISMS["discrete-laplace"].make({"epsilon": 2.0}, [0, 3]), DiscreteLaplace([0, 3], 2.0)),
        (lambda: MECHANISMS["discrete-gaussian"].make({"sigma": 2.0}, 9), DiscreteGaussian(9, 2.0)),
        (lambda: GUARANTEES["approx"].make({"epsilon": 1.0, "delta": 1e-5}), ApproxDP(1.0, 1e-5)),
        (lambda: GUARANTEES["pure"].make({"epsilon": 1.0, "relation": None}), PureDP(1.0)),
        (
            lambda: GUARANTEES["dpsgd"].make({"noise_multiplier": 9.0, "sample_rate": 1.0, "steps": 4}),
            dp_sgd(9.0, 1.0, 4),
        ),
        (lambda: SUCCESS["exact"].make({}), Exact()),
        (lambda: SUCCESS["line"].make({"within": 3.0}), Line(3.0)),
        (lambda: SUCCESS["ring"].make({"within": 3.0}), Ring(3.0)),
        (lambda: PRIORS["zipf"].make({"exponent": 1.1}, 10), Prior.zipf(10, 1.1)),
        (lambda: NOISES["laplace"].make({"epsilon": 1.0}), PureDP(1.0)),
        (lambda: NOISES["gaussian"].make({"mu": 1.0}), GaussianDP(1.0)),
        (lambda: NOISES["gaussian"].make({"rho": 1.0}), ZCDP(1.0)),
    ],
)
def test_what_is_made_is_what_was_meant(made: Callable[[], Any], expected: Any) -> None:
    assert made() == expected


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: MECHANISMS["gr"], r"There is no mechanism 'gr'; choose one of grr, sue, .* Did you mean grr\?$"),
        (lambda: MECHANISMS["randomise response"], r"Did you mean grr, that is randomised response\?$"),
        (lambda: MECHANISMS["rapor"], r"Did you mean sue, that is RAPPOR\?$"),
        (lambda: MECHANISMS["magic"], r"There is no mechanism 'magic'; choose one of .*, matrix\.$"),
        (lambda: MECHANISMS[""], "There is no mechanism ''"),
        (lambda: MECHANISMS["mechanism"], "There is no mechanism 'mechanism'"),
        (lambda: MECHANISMS["grr"].make({}, 5), r"^epsilon is missing for grr\.$"),
        (lambda: MECHANISMS["ue"].make({}, 5), r"^p and q are missing for ue\.$"),
        (lambda: MECHANISMS["grr"].make({"epsilon": 1, "p": 1}, 5), "p has no meaning for grr; it takes epsilon"),
        (lambda: MECHANISMS["grr"].make({"epsilon": -1}, 5), "epsilon must be a finite number of at least 0, got -1"),
        (
            lambda: MECHANISMS["exponential"].make({"epsilon": 1, "space": "plane"}, 5),
            "space must be 'line' or 'ring', got 'plane'",
        ),
        (lambda: NOISES["laplace"].make({}), "laplace needs exactly one of scale, epsilon"),
        (lambda: NOISES["laplace"].make({"scale": 1, "epsilon": 1}), "laplace needs exactly one of scale, epsilon"),
        (lambda: PRIORS["uniform"].make({"ratio": 1}, 5), "ratio has no meaning for uniform; it takes no options"),
        (lambda: MECHANISMS["grr"].template({"epsilon": 1}, 5), "epsilon is what is to be found; leave it out"),
        (lambda: MECHANISMS["ue"].template({"p": 0.5}, 5), "q is missing for ue"),
        (lambda: MECHANISMS["matrix"].template({}), "matrix is missing for matrix"),
        (lambda: GUARANTEES["dpsgd"].template({"noise_multiplier": 1}), "noise_multiplier is what is to be found"),
        (lambda: GUARANTEES["dpsgd"].template({"steps": 3}), "sample_rate is missing for dpsgd"),
        (
            lambda: MECHANISMS.register(Entry("new", "New", "It.", GRR, aliases=("k RR",))),
            "Another mechanism, grr, is called 'k RR' already",
        ),
        (
            lambda: MECHANISMS.register(Entry("rappor", "New", "It.", GRR)),
            "sue, is called 'rappor' already",
        ),
        (lambda: MECHANISMS.register(Entry("--", "New", "It.", GRR)), "'--' is no name"),
        (
            lambda: MECHANISMS.register(Entry("new", "New", "It.", GRR, (Option("epsilon", int, "an age"),))),
            "already takes an option epsilon, which means: the privacy parameter",
        ),
        (lambda: MECHANISMS.unregister("new"), "There is no mechanism 'new'"),
    ],
)
def test_wrong_input_gets_one_sentence(wrong: Callable[[], object], message: str) -> None:
    before = list(MECHANISMS)
    with pytest.raises(ParameterError, match=message):
        wrong()
    assert list(MECHANISMS) == before


def test_a_matrix_has_nothing_to_calibrate(files: dict[str, Path]) -> None:
    with pytest.raises(DpriskError, match="matrix has no parameter to calibrate"):
        MECHANISMS["matrix"].template({"matrix": files["matrix"]})


ADJUSTABLE = [entry for entry in (*MECHANISMS, *GUARANTEES) if entry.name != "matrix"]


@pytest.mark.parametrize("entry", ADJUSTABLE, ids=lambda entry: entry.title)
def test_a_template_leaves_out_its_parameter_and_nothing_else(entry: Entry) -> None:
    needed = {option.name: option.example for option in entry.options if option.name in entry.needs}
    sought = "noise_multiplier" if entry.unset else entry.make(needed, 5).parameter.name
    given = {name: value for name, value in needed.items() if name != sought}
    assert entry.template(given, 5).parameter.name == sought
    for name in given:
        with pytest.raises(ParameterError, match=f"{name} is missing for {entry.name}"):
            entry.template({other: value for other, value in given.items() if other != name}, 5)


def test_a_training_is_calibrated_without_its_noise() -> None:
    assert GUARANTEES["dpsgd"].template({"sample_rate": 0.5, "steps": 7}) == DPSGD(0.5, 7)


# A toy that somebody else registers


class Toy(Tabled):
    """Tells the record with some odds, and otherwise any one at random."""

    def __init__(self, size: int, odds: float) -> None:
        self.size, self.odds = size, odds
        self.table = (odds * np.eye(size) + 1 / size) / (odds + 1)

    @property
    def n_outputs(self) -> float:
        return float(self.size)

    def columns(self, outputs: slice | IntArray) -> FloatArray:
        return np.asarray(self.table[:, outputs])

    def row(self, record: int) -> FloatArray:
        return np.asarray(self.table[record])

    @property
    def parameter(self) -> Parameter:
        return Parameter("odds", self.odds, rises=True)


@pytest.fixture
def toy() -> Iterator[Entry]:
    odds = Option("odds", float, "how much likelier the truth is than a guess", 1.0)
    entry = Entry("toy", "A toy for tests", "Tells the record, or any one.", Toy, (odds,), ("play thing",))
    MECHANISMS.register(entry)
    yield entry
    MECHANISMS.unregister("toy")
    assert "toy" not in MECHANISMS
    assert "play thing" not in MECHANISMS


@pytest.mark.usefixtures("toy")
def test_a_registered_mechanism_shows_up_everywhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(arguments: str) -> dict[str, Any]:
        code, out, err = run(capsys, monkeypatch, *arguments.split(), "--json")
        assert (code, err) == (0, "")
        return dict(json.loads(out))

    def refused(arguments: str) -> str:
        code, out, err = run(capsys, monkeypatch, *arguments.split())
        assert (code, out) == (2, "")
        return err

    # The truth is told with chance 1/2 + 1/10, and without it one is right in 1/5.
    assert told("assess --mechanism toy --odds 1 --size 5")["advantage"] == pytest.approx(0.4)
    found = told("calibrate --mechanism Play-Thing --size 5 --advantage 0.4")
    assert found["odds"] == pytest.approx(1.0)
    assert found["inputs"]["mechanism"] == "toy"
    audited = told("audit --mechanism toy --odds 1 --size 5 --runs 5000")
    assert audited["claim"] == pytest.approx(math.log(6))  # (1/2 + 1/10) / (1/10)
    assert audited["verdict"] == "consistent with the claim"
    assert [entry["title"] for entry in told("catalogue")["mechanisms"] if entry["name"] == "toy"] == [
        "A toy for tests"
    ]
    for command in ("assess", "calibrate", "audit"):
        shown = run(capsys, monkeypatch, command, "--help")[1]
        assert "A toy for tests" in shown
        assert "toy: how much likelier the truth is than a guess." in " ".join(shown.split())
    assert "play thing" in run(capsys, monkeypatch, "catalogue")[1]
    assert refused("assess --mechanism toys --size 5").endswith("Did you mean toy?\n")
    assert refused("assess --mechanism toy --size 5") == "Error: --odds is missing for toy.\n"
    assert refused("assess --mechanism grr --epsilon 1 --odds 1 --size 5") == (
        "Error: --odds has no meaning for grr; it takes --epsilon.\n"
    )


def test_what_is_not_registered_is_gone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "toy" not in run(capsys, monkeypatch, "assess", "--help")[1]
    assert "There is no mechanism 'toy'" in run(capsys, monkeypatch, "assess", "--mechanism", "toy")[2]
    assert "No such option '--odds'" in run(capsys, monkeypatch, "assess", "--odds", "5")[2]


def test_a_registered_prior_and_success_rule_can_be_typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    within, ratio = OPTIONS["within"], OPTIONS["ratio"]
    PRIORS.register(
        Entry(
            "rising", "Rising prior", "The last is likeliest.", lambda size, ratio: Prior([ratio, 1 - ratio]), (ratio,)
        )
    )
    SUCCESS.register(
        Entry("half", "Half as far", "Counts half.", lambda within: Line(within / 2), (within,), records="nothing")
    )
    try:
        given = ["assess", "--mechanism", "grr", "--epsilon", "1", "--size", "2", "--prior", "rising:0.25", "--json"]
        assert json.loads(run(capsys, monkeypatch, *given)[1])["baseline"] == 0.75
        given += ["--within", "2", "--space", "half"]
        assert json.loads(run(capsys, monkeypatch, *given)[1])["baseline"] == 1.0
        assert "rising:RATIO or a CSV file" in " ".join(run(capsys, monkeypatch, "assess", "--help")[1].split())
    finally:
        PRIORS.unregister("rising")
        SUCCESS.unregister("half")


# The command and the docs


def test_the_catalogue_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run(capsys, monkeypatch, "catalogue", "--json")
    assert code == 0
    told = json.loads(out)
    for register in REGISTERS:
        listed = told[register.plural.replace(" ", "_")]
        assert [entry["name"] for entry in listed] == [entry.name for entry in register]
        assert {"name", "title", "explanation", "aliases", "options", "needs"} == set(listed[0])
    assert {option["name"] for option in told["options"]} == set(OPTIONS)
    out = run(capsys, monkeypatch, "catalogue")[1]
    assert all(entry.name in out for _, entry in ENTRIES)


@pytest.mark.parametrize("command", ["assess", "calibrate", "audit", "bounds", "catalogue", "demo"])
def test_help_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(capsys, monkeypatch, command, "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("--help") == 1
    assert run(capsys, monkeypatch, command, "-h") == (0, out, "")
    if command in ("assess", "calibrate", "audit"):
        assert f"Examples (files: docs/examples):\n  dprisk {command} --" in out
        assert all(f"  {entry.name} " in out and entry.title in out for entry in MECHANISMS)


def test_a_choice_that_is_missing_is_listed_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, said = run(capsys, monkeypatch, "learn", "attack")
    assert said == "Error: Missing option '--data'. Choose from: mnist, fashion-mnist, digits\n"


@pytest.mark.parametrize("name", ["assess", "calibrate", "audit"])
def test_the_examples_of_the_help_can_be_typed(name: str) -> None:
    """They parse: every option exists and takes what it is given. Those without files are run."""
    made = dprisk.cli.command().commands[name]
    assert isinstance(made, Command)
    assert len(made.examples) >= 3
    for example in made.examples:
        with made.make_context(name, shlex.split(example)) as context:
            if name != "audit" and not any(word in example for word in (".csv", ".toml")):
                made.invoke(context)


def test_help_says_which_mechanism_takes_an_option() -> None:
    """Not "the: entries above it"."""
    text = " ".join(dprisk.cli.command().commands["assess"].get_help(click.Context(click.Command("x"))).split())
    assert "With --mechanism the: noisy numbers above this are reported" in text
    assert "With --guarantee approx: chance that the promise of epsilon fails" in text
    assert not re.search(r"\b(FLOAT|INTEGER|TEXT|PATH)\b", text)


def test_the_shell_completes_names(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for words, expected in (
        ("dprisk ca", {"calibrate", "catalogue"}),
        ("dprisk assess --mechanism la", {"laplace"}),
        ("dprisk calibrate --guarantee ", {entry.name for entry in GUARANTEES}),
        ("dprisk assess --adv", set()),
        ("dprisk calibrate --adv", {"--advantage"}),
    ):
        monkeypatch.setenv("_DPRISK_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        code, out, _ = run(capsys, monkeypatch)
        assert code == 0
        assert {line.split(",")[1] for line in out.split()} == expected


@pytest.mark.parametrize("make", [assess_command, calibrate_command, audit_command, plot_command])
def test_the_examples_of_the_help_name_files_that_exist(make: Callable[[], Command]) -> None:
    read = [
        path
        for example in make().examples
        for option, path in pairwise(example.split())
        if option in ("--prior", "--data", "--release", "--outputs") and "." in path
    ]
    assert read
    assert [path for path in read if not (Path(__file__).parents[1] / "docs" / "examples" / path).is_file()] == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("assess --mechanism ue --p 2 --q 0.1 --size 3", "--p must lie in [0, 1], got 2.0"),
        ("assess --mechanism grr --epsilon two --size 3", "--epsilon is a number, some (0.1,0.5,1) or a range"),
        ("assess --mechanism grr --epsilon 1 --size 2.5", "Invalid value for '--size': '2.5' is not a whole number."),
        ("assess --mechanism grr --epsilon 1 --size 2.5e0", "'2.5e0' is not a whole number."),
        ("assess --mechanism grr --epsilon 1 --size inf", "'inf' is not a whole number."),
        (
            "assess --guarantee dpsgd --noise-multiplier 1 --sample-rate 1% --size 9",
            "'1%' is not a number; write 0.01.",
        ),
        ("calibrate --mechanism grr --size 9 --advantage 5%", "'5%' is not a number; write 0.05."),
        ("calibrate --mechanism grr --size 9 --advantage 5", "must lie in (0, 1], got 5; 5 points are 0.05"),
        ("calibrate --mechanism grr --size 9 --success 30", "must lie in (0, 1], got 30; 30 % are 0.3"),
        ("assess --mechanism ss --epsilon 1 --size 5 --subset-size 7", "got --subset-size=7; at epsilon 1 the best"),
        ("assess --mechanism grr --epsilon 1 --size 5 --within -2", "The distance --within must be a finite number"),
        ("audit --mechanism grr --epsilon 1 --size 5 --jobs 0", "--jobs must be a whole number of at least 1"),
        ("audit --mechanism grr --epsilon 1 --size 5 --attack est", "--attack est needs the records of everybody else"),
        ("audit --mechanism grr --epsilon 1 --size 5 --attack CORR", "make('CORR', mechanism, threat, model=...)"),
    ],
)
def test_a_refusal_names_what_was_typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    code, out, err = run(capsys, monkeypatch, *line.split())
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("name", [entry.name for entry in MECHANISMS if entry.records == "places"])
@pytest.mark.parametrize("command", ["assess", "calibrate", "audit"])
def test_noise_on_numbers_is_added_to_the_labels(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, name: str
) -> None:
    (tmp_path / "prior.csv").write_text("label,count\n10,5\n20,3\n40,2\n")
    size = "--sigma" if "sigma" in MECHANISMS[name].takes else "--epsilon"
    options = {"calibrate": ["--advantage", "0.1"], "assess": [size, "1"]}
    claimed = [size, "30" if size == "--sigma" else "1", "--claim", "2", "--delta", "0.3", "--runs", "500"]
    given = [command, "--mechanism", name, *options.get(command, claimed), "--prior", str(tmp_path / "prior.csv")]
    code, out, _ = run(capsys, monkeypatch, *given)
    assert (code, "positions=[10, 20, 40]" in out) == (0, True)


@pytest.mark.parametrize("name", [entry.name for entry in MECHANISMS if entry.records == "spaced"])
@pytest.mark.parametrize("command", ["assess", "calibrate", "audit"])
def test_what_lies_on_a_line_needs_even_spacing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, name: str
) -> None:
    (tmp_path / "prior.csv").write_text("label,count\n10,5\n20,3\n40,2\n")
    size = "--sigma" if "sigma" in MECHANISMS[name].takes else "--epsilon"
    options = ["--advantage", "0.1"] if command == "calibrate" else [size, "1"]
    if command == "audit" and size == "--sigma":
        options += ["--claim", "1", "--delta", "1e-5"]
    given = [command, "--mechanism", name, *options, "--prior", str(tmp_path / "prior.csv")]
    code, _, err = run(capsys, monkeypatch, *given)
    assert (code, "takes the records to rise in equal steps" in err) == (2, True)


def test_a_ring_is_taken_for_the_exponential_mechanism_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("assess", "audit"):
        given = f"{command} --mechanism exponential --epsilon 1 --size 5 --space RING --json".split()
        assert run(capsys, monkeypatch, *given)[0] == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_on_the_terminal_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal, file = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with live() as tell:
        assert tell is not None
        for done in (10, 40):
            tell(done, 40, f"epsilon [{done}]")
    written = terminal.getvalue()
    assert "10 of 40 runs, epsilon [10]," in written
    assert "left" in written
    assert written.endswith("\x1b[2K")  # and is wiped
    monkeypatch.setattr(sys, "stderr", file)
    with live() as tell:
        assert tell is None
    assert file.getvalue() == ""


def rows(register: Catalogue) -> list[str]:
    """The table of a register in the docs."""
    lines = [
        (
            f"`{entry.name}`",
            entry.title,
            ", ".join(f"`--{name.replace('_', '-')}`" for name in entry.takes),
            ", ".join(entry.aliases),
        )
        for entry in register
    ]
    return [" | ".join(("", *line, "")).strip() for line in [("name", "what it is", "options", "also called"), *lines]]


@pytest.mark.parametrize("register", [MECHANISMS, GUARANTEES], ids=lambda register: register.plural)
def test_the_table_in_the_docs_is_that_of_the_catalogue(register: Catalogue) -> None:
    """If it fails, put these lines into the page."""
    page = (Path(__file__).parents[1] / "docs" / "names.md").read_text()
    head, *lines = rows(register)
    table = "\n".join((head, "| --- | --- | --- | --- |", *lines))
    assert f"\n{table}\n\n" in page, table
