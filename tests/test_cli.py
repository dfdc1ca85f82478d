"""The command: what it prints, and what it says to wrong input."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import (
    GRR,
    OUE,
    Density,
    Gaussian,
    GaussianDP,
    Line,
    Prior,
    PureDP,
    Ring,
    SubsetSelection,
    Threat,
    assess,
    calibrate,
)
from dprisk.mechanisms import SHE, THE, DiscreteGaussian, OnInterval, UnaryEncoding
from tests.typed import run


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {
        "prior": "label,probability\na,0.5\nb,0.3\nc,0.2\n",
        "blank": "group;remark\nx;\n;y\n",
        "counts": "label,count\n10,5\n20,3\n40,2\n",
        "groups": "label,group\nc,y\na,x\nb,x\n",
        "ordered": "group\nx\nx\ny\n",
        "matrix": "0.5,0.5\n0.9,0.1\n0.2,0.8\n",
        "empty": "",
        "off": "label,probability\na,0.5\nb,0.8\n",
        "columns": "name,count\na,1\n",
        "ragged": "0.5,0.5\n1\n",
        "partial": "label,group\na,x\n",
        "twice": "label,count,count\na,1,2\n",
        "mixed": "label,count\n10,1\n20,1\n65+,1\n",
        "doubled": "label,group\na,x\na,y\nb,x\nc,x\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return {name: str(tmp_path / f"{name}.csv") for name in texts}


ABC = Prior({"a": 0.5, "b": 0.3, "c": 0.2})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--mechanism grr --epsilon 2 --size 100", lambda: assess(GRR(100, 2.0), Threat(Prior.uniform(100)))),
        (
            "--mechanism oue --epsilon 1 --size 30 --prior zipf:1.1 --knows all",
            lambda: assess(OUE(30, 1.0), Threat.membership(Prior.zipf(30, 1.1))),
        ),
        ("--mechanism she --epsilon 3 --size 50", lambda: assess(SHE(50, 3.0), Threat(Prior.uniform(50)))),
        ("--mechanism the --epsilon 2 --prior {prior}", lambda: assess(THE(3, 2.0), Threat(ABC))),
        (
            "--mechanism the --epsilon 2 --threshold 0.8 --size 9",
            lambda: assess(THE(9, 2.0, 0.8), Threat(Prior.uniform(9))),
        ),
        ("--mechanism ss --epsilon 1 --prior {prior}", lambda: assess(SubsetSelection(3, 1.0), Threat(ABC))),
        (
            "--mechanism ue --p 0.7 --q 0.2 --prior {prior} --knows {groups}",
            lambda: assess(UnaryEncoding(3, 0.7, 0.2), Threat(ABC, ["x", "x", "y"])),
        ),
        (
            "--mechanism grr --epsilon 3 --prior {counts} --knows {ordered} --within 10",
            lambda: assess(GRR(3, 3.0), Threat(Prior([0.5, 0.3, 0.2]), ["x", "x", "y"], Line(10, [10, 20, 40]))),
        ),
        (
            "--mechanism grr --epsilon 1 --size 10 --within 2 --space ring",
            lambda: assess(GRR(10, 1.0), Threat(Prior.uniform(10), success=Ring(2.0))),
        ),
    ],
)
def test_json_tells_what_the_library_computes(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    arguments: str,
    expected: Any,
) -> None:
    code, out, err = run(capsys, monkeypatch, "assess", *arguments.format(**files).split(), "--json")
    assert (code, err) == (0, "")
    told, risk = json.loads(out), expected()
    for key in ("advantage", "success", "baseline"):
        assert told[key] == pytest.approx(getattr(risk, key), abs=1e-14)
    assert told["exact"] is True
    assert told["inputs"]["mechanism"] == arguments.split()[1]
    assert told["inputs"]["size"] == risk.threat.prior.size


@pytest.mark.parametrize(
    "name", ["grr", "sue", "oue", "ss", "blh", "olh", "she", "the", "exponential", "geometric", "laplace"]
)
def test_every_name_works(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    code, out, _ = run(capsys, monkeypatch, "assess", "--mechanism", name, "--epsilon", "1", "--size", "8", "--json")
    assert code == 0
    assert 0 < json.loads(out)["advantage"] < 1


def test_a_matrix_brings_its_size(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, files: dict[str, str], tmp_path: Path
) -> None:
    code, out, _ = run(capsys, monkeypatch, "assess", "--mechanism", "matrix", "--matrix", files["matrix"], "--json")
    assert code == 0
    np.save(tmp_path / "matrix.npy", np.loadtxt(files["matrix"], delimiter=","))
    path = str(tmp_path / "matrix.npy")
    again = run(capsys, monkeypatch, "assess", "--mechanism", "matrix", "--matrix", path, "--json")[1]
    assert json.loads(out)["advantage"] == json.loads(again)["advantage"]


def test_an_estimate_is_marked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["assess", "--mechanism", "oue", "--epsilon", "1", "--size", "80", "--within", "3", "--runs", "200"]
    code, out, _ = run(capsys, monkeypatch, *arguments)
    assert code == 0
    assert "estimate" in out
    told = json.loads(run(capsys, monkeypatch, *arguments, "--json")[1])
    assert told["exact"] is False
    low, high = told["estimate"]["advantage_interval"]
    assert low < told["advantage"] < high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--mechanism grr --epsilon -1 --size 3", "epsilon must be a finite number of at least 0, got -1"),
        ("--mechanism grr --epsilon nan --size 3", "got nan"),
        ("--mechanism grr --epsilon two --size 3", "--epsilon is a number"),
        ("--mechanism magic --epsilon 1 --size 3", "There is no mechanism 'magic'; choose one of grr"),
        ("--mechanism grr --size 3", "--epsilon is missing"),
        ("--mechanism grr --epsilon 1", "--size is missing"),
        ("--mechanism grr --epsilon 1 --size 0", "must be a whole number of at least 1"),
        ("--mechanism grr --epsilon 1 --size 4 --prior {prior}", "--size says 4 records"),
        ("--mechanism grr --epsilon 1 --prior {off}", "sums to 1.3, not 1"),
        ("--mechanism grr --epsilon 1 --prior {empty}", "is empty"),
        ("--mechanism grr --epsilon 1 --prior {columns}", "no column `label`"),
        (
            "--mechanism grr --epsilon 1 --prior nowhere.csv",
            "There is no file nowhere.csv, and a prior is uniform, zipf:",
        ),
        ("--mechanism grr --epsilon 1 --size 3 --prior foo:1", "There is no file foo:1, and a prior is uniform, zipf:"),
        ("--mechanism grr --epsilon 1 --size 3 --prior zipf:steep", "needs a number behind the colon"),
        ("--mechanism grr --epsilon 1 --prior {prior} --knows {partial}", "no group for the record b"),
        ("--mechanism grr --epsilon 1 --size 5 --knows {ordered}", "3 records, the prior has 5"),
        ("--mechanism grr --epsilon 1 --size 5 --knows {prior}", "no column `group`"),
        ("--mechanism grr --epsilon 1 --size 2 --knows {blank}", "row 3: `group` is empty; give each record a group"),
        ("--mechanism grr --epsilon 1 --size 5 --within -2", "at least 0, got -2"),
        ("--mechanism grr --epsilon 1 --size 5 --within nan", "got nan"),
        ("--mechanism grr --epsilon 1 --size 5 --within 1 --space plane", "'line', 'ring'"),
        ("--mechanism the --epsilon 1 --size 5 --threshold 2", "threshold must lie in [0, 1]"),
        ("--mechanism she --epsilon 1 --size 5 --threshold 0.7", "--threshold has no meaning for she"),
        ("--mechanism she --epsilon 0 --size 5", "SHE needs epsilon > 1e-300, got 0"),
        ("--mechanism grr --epsilon 1 --size 5 --p 0.5", "--p has no meaning for grr"),
        ("--mechanism matrix --matrix {ragged}", "rows of equal length"),
        ("--mechanism matrix --matrix {matrix} --size 7", "takes 3 records, the prior has 7"),
        ("--mechanism ue --p 2 --q 0.1 --size 3", "p must lie in [0, 1]"),
        ("--epsilon 1", "Give either --mechanism or --guarantee"),
        ("--mechanism grr --epsilon 1 --size 5 --noise 3", "No such option '--noise'"),
        ("--mechanism grr --epsilon 1 --size 5 --space ring", "--space has no meaning without --within"),
        ("--mechanism geometric --epsilon 1 --prior {counts}", "rise in equal steps"),
        (
            "--mechanism laplace --epsilon 1 --prior {prior}",
            "adds noise to numbers; the label 'a' is no number",
        ),
        ("--mechanism gaussian --sigma 1 --prior {mixed}", "the label '65+' is no number"),
        ("--mechanism grr --epsilon 1 --size 5 --prior uniform:3", "takes no number"),
        ("--mechanism grr --epsilon 1 --size 5 --seed -1", "a whole number of at least 0"),
        ("--mechanism grr --epsilon 1 --size 5 --runs 1", "at least 2"),
        ("--mechanism grr --epsilon 1 --size 99999999999999", "at most 100,000,000"),
        ("--mechanism grr --epsilon 1 --prior {twice}", "two columns `count`"),
        ("--mechanism grr --epsilon 1 --prior {mixed} --within 5", "A distance needs records that are numbers"),
        ("--mechanism grr --epsilon 1 --prior {prior} --knows {doubled}", "names a record twice"),
        ("--mechanism matrix --matrix {empty}", "holds no matrix"),
        ("--mechanism grr --guarantee pure --epsilon 1 --size 5", "either --mechanism or --guarantee"),
        ("--guarantee pure --epsilon 1 --size 5 --delta 0.1", "--delta has no meaning for pure"),
        ("--guarantee approx --epsilon 1 --size 5", "--delta is missing"),
        ("--guarantee dpsgd --noise-multiplier 1 --size 5", "--sample-rate and --steps are missing"),
        ("--guarantee pure --epsilon 1 --size 5 --runs 100", "--runs is for mechanisms only"),
        ("--guarantee gaussian --mu -1 --size 5", "mu must be a finite number of at least 0"),
        ("--guarantee pure --epsilon 1 --size 5 --relation sideways", "'replace-one', 'add-remove'"),
    ],
)
def test_wrong_input_gets_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    arguments: str,
    message: str,
) -> None:
    code, out, err = run(capsys, monkeypatch, "assess", *arguments.format(**files).split())
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("Error: ")
    assert len(err.strip().splitlines()) == 1


def test_too_little_memory_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(sys.modules["dprisk.cli.assess"], "assess", full)
    code, out, err = run(capsys, monkeypatch, *["assess", "--mechanism", "grr", "--epsilon", "1", "--size", "10"])
    assert (code, out) == (2, "")
    assert "more memory" in err


def test_the_demo_answers_its_question(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run(capsys, monkeypatch, "demo")
    assert code == 0
    assert "choose epsilon" in out
    chosen = float(out.split("choose epsilon ")[1].split()[0])
    prior = Prior.from_csv(Path(sys.modules["dprisk"].__file__ or "").parent / "examples" / "clinic.csv")
    assert (
        assess(GRR(10, chosen), Threat(prior)).advantage
        <= 0.05
        < assess(GRR(10, chosen + 1e-3), Threat(prior)).advantage
    )


def test_the_import_is_light() -> None:
    heavy = (
        "torch",
        "pandas",
        "polars",
        "networkx",
        "matplotlib",
        "pydantic",
        "dask",
        "streamlit",
        "rich",
        "scipy.stats",
    )
    code = f"import sys, dprisk; print([name for name in {heavy} if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_a_label_with_brackets_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "prior.csv"
    path.write_text("label,count\n[/b],1\n[other],3\n01234,2\n")
    code, out, _ = run(capsys, monkeypatch, "assess", "--mechanism", "grr", "--epsilon", "1", "--prior", str(path))
    assert code == 0
    assert all(label in out for label in ("[/b]", "[other]", "01234"))


def test_a_file_from_a_spreadsheet_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "prior.csv"
    path.write_bytes('\ufeff"label","count"\r\n"a, b",3\r\n\r\nc,1\r\n'.encode())
    code, out, _ = run(
        capsys, monkeypatch, "assess", "--mechanism", "grr", "--epsilon", "1", "--prior", str(path), "--json"
    )
    assert code == 0
    assert json.loads(out)["baseline"] == 0.75


def test_the_command_alone_shows_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run(capsys, monkeypatch)
    assert (code, err) == (0, "")
    assert "assess" in out
    assert "calibrate" in out
    for name, inside in (("learn", "attributes"), ("population", "marginals")):
        code, out, err = run(capsys, monkeypatch, name)
        assert (code, err) == (0, "")
        assert f"Usage: dprisk {name} " in out.splitlines()[0]
        assert any(line.startswith(f"  {inside} ") for line in out.splitlines())


def test_a_guarantee_is_assessed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(
        run(capsys, monkeypatch, *["assess", "--guarantee", "pure", "--epsilon", "1", "--size", "10", "--json"])[1]
    )
    assert told["advantage"] == pytest.approx(0.1320, abs=5e-5)  # theory, table 3.5
    assert told["advantage_bound"]["attained"] is True
    straight = run(
        capsys,
        monkeypatch,
        *["assess", "--guarantee", "pure", "--epsilon", "0.5", "--size", "10", "--relation", "add-remove", "--json"],
    )
    added = json.loads(straight[1])
    assert added["advantage"] == assess(PureDP(0.5, "add-remove"), Threat(Prior.uniform(10))).advantage
    assert added["advantage"] < told["advantage"]  # that of the doubled epsilon
    assert added["advantage_bound"]["source"] == "dprisk, theory 3.9 d"


@pytest.mark.slow
def test_dp_sgd_is_calibrated_by_the_tighter_relation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["calibrate", "--guarantee", "dp-sgd", "--steps", "100", "--size", "10", "--advantage", "0.1", "--json"]
    said += ["--sample-rate", "1"]
    for relation, noise in ((None, 22.73), ("add-remove", 22.73), ("replace-one", 39.53)):
        chosen = [] if relation is None else ["--relation", relation]
        told = json.loads(run(capsys, monkeypatch, *said, *chosen)[1])
        assert told["noise_multiplier"] == pytest.approx(noise, abs=0.006)


def test_a_guarantee_named_as_a_mechanism_is_recognised(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("assess", "calibrate"):
        assert "give it as --guarantee opacus" in run(capsys, monkeypatch, command, "--mechanism", "opacus")[2]
        assert "give it as --mechanism grr" in run(capsys, monkeypatch, command, "--guarantee", "grr")[2]


def test_epsilon_is_told_at_the_delta_that_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["assess", "--guarantee", "gaussian", "--size", "4", "--at-delta", "1e-7", "--mu"]
    told = json.loads(run(capsys, monkeypatch, *said, "1", "--json")[1])
    assert told["comparisons"]["epsilon_at_delta_1e-7"] == GaussianDP(1.0).epsilon_at(1e-7)
    assert "--at-delta is about one release" in run(capsys, monkeypatch, *said, "1,2")[2]


@pytest.mark.parametrize("goal", [("--to-epsilon", "3", "--to-delta", "1e-5"), ("--tpr", "0.1", "--fpr", "0.01")])
def test_a_goal_that_depends_on_no_attacker_needs_no_records(
    goal: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ["calibrate", "--guarantee", "dpsgd", "--sample-rate", "1", "--steps", "100", *goal, "--json"]
    alone, among = (json.loads(run(capsys, monkeypatch, *said, *more)[1]) for more in ([], ["--size", "10"]))
    assert alone["noise_multiplier"] == among["noise_multiplier"]
    assert "size" not in alone["inputs"]


@pytest.mark.parametrize(
    "said",
    [
        "assess --guarantee pure --epsilon 1",
        "calibrate --guarantee dpsgd --sample-rate 1 --steps 9 --advantage 0.1",
        "calibrate --guarantee pure --to-epsilon 1 --knows all",
    ],
)
def test_who_has_a_guarantee_is_not_asked_for_the_size_of_the_data(
    said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run(capsys, monkeypatch, *said.split())
    assert code == 2
    assert "among how many possible records does the attacker look for this person's? (not the size of the data" in err


def test_noise_is_calibrated(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(
        run(
            capsys,
            monkeypatch,
            *["calibrate", "--mechanism", "laplace", "--size", "10", "--advantage", "0.1", "--json"],
        )[1]
    )
    assert told["epsilon"] == pytest.approx(-18 * math.log1p(-1 / 9), rel=1e-12)  # RAD Example 4.7, solved
    assert told["advantage"] <= 0.1
    assert told["bound"] <= 0.1
    assert told["baseline"] == pytest.approx(0.1)
    code, _, err = run(
        capsys,
        monkeypatch,
        *["calibrate", "--mechanism", "laplace", "--size", "10", "--epsilon", "1", "--advantage", "0.1"],
    )
    assert (code, err) == (2, "Error: --epsilon is what is to be found; leave it out.\n")
    code, _, err = run(capsys, monkeypatch, "calibrate", "--mechanism", "laplace", "--size", "10")
    assert code == 2
    assert "Give exactly one goal: --advantage, --success, --most-at-risk, --tpr with --fpr, or --to-epsilon" in err


def test_noise_has_the_units_of_the_records(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    """Hours are hours: a sigma on a scale from 0 to 100 is a hundred times that for records from 0 to 1."""

    def told(line: str) -> Any:
        return json.loads(run(capsys, monkeypatch, *line.split(), "--json")[1])

    hours = Path(__file__).parents[1] / "docs" / "examples" / "adult-hours.csv"
    found = told(f"calibrate --mechanism gaussian --prior {hours} --advantage 0.05")
    fraction = calibrate(Gaussian(101, 1.0), Threat(Prior.from_csv(hours)), advantage=0.05)
    assert found["sigma"] == pytest.approx(100 * fraction.value, rel=1e-9)
    assert found["sigma"] == pytest.approx(22.8, abs=0.05)
    assert found["comparisons"]["epsilon_at_delta_1e-5"] == pytest.approx(27.7, abs=0.05)
    assert found["utility"]["95 % error"] == pytest.approx(1.96 * found["sigma"], rel=1e-4)
    assert (
        "on a scale from 0 to 100"
        in run(
            capsys, monkeypatch, *["calibrate", "--mechanism", "gaussian", "--prior", str(hours), "--advantage", "0.05"]
        )[1]
    )
    uneven = told("assess --mechanism gaussian --sigma 9 --prior {counts}".format(**files))
    expected = assess(Gaussian([10, 20, 40], 9.0), Threat(Prior([0.5, 0.3, 0.2])))
    assert uneven["advantage"] == pytest.approx(expected.advantage, abs=1e-12)
    for name, made in (("gaussian", Gaussian), ("discrete-gaussian", DiscreteGaussian)):
        counted = told(f"assess --mechanism {name} --sigma 2 --size 6")
        expected = assess(made(range(6), 2.0), Threat(Prior.uniform(6)))
        assert counted["advantage"] == pytest.approx(expected.advantage, abs=1e-12)


def test_the_register_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    out = run(capsys, monkeypatch, "bounds")[1]
    assert "worst-blocks" in out
    listed = json.loads(run(capsys, monkeypatch, "bounds", "--json")[1])
    assert {"name", "bounds", "statement", "needs", "source", "attained"} == set(listed[0])


def test_every_option_of_a_table_works(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = "assess --mechanism grr --epsilon 1 --size 6 --prior zipf:1 --bounds"
    assert "worst-blocks" in run(capsys, monkeypatch, *arguments.split())[1]
    out = run(capsys, monkeypatch, *["calibrate", "--guarantee", "gaussian", "--size", "10", "--advantage", "0.1"])[1]
    assert "choose mu" in out


@pytest.mark.slow
def test_numbers_of_an_interval_on_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(line: str) -> tuple[int, str, str]:
        return run(capsys, monkeypatch, *line.split())

    told = json.loads(ran("assess --mechanism laplace --epsilon 2 --prior beta:2,5 --within 0.1 --json")[1])
    risk = assess(OnInterval.laplace(2.0), Threat.reconstruction(Density.beta(2, 5), within=0.1))
    assert told["advantage"] == risk.advantage
    assert told["enclosed"]["advantage_interval"] == list(risk.advantage_interval)
    goal = "--within 0.2 --advantage 0.1 --json"
    found = json.loads(ran(f"calibrate --mechanism exponential --prior interval:0,2 {goal}")[1])
    assert found["advantage"] <= 0.1 < found["advantage"] + 1e-3
    for wrong, message in (
        ("assess --mechanism grr --epsilon 2 --prior interval --within 0.1", "records that can be listed"),
        ("assess --mechanism laplace --epsilon 2 --prior interval", "must be above 0"),
        ("assess --mechanism laplace --epsilon 2 --prior beta:2 --within 0.1", "b is missing for beta"),
        ("audit --mechanism laplace --epsilon 2 --prior interval --within 0.1", "can be listed"),
    ):
        code, _, problem = ran(wrong)
        assert code == 2
        assert message in problem


def test_a_calibration_says_what_has_no_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One possible record, and an alternative that finds no noise: neither is an error."""
    alone = ["calibrate", "--guarantee", "pure", "--size", "1", "--advantage", "0.05"]
    code, out, _ = run(capsys, monkeypatch, *alone)
    assert code == 0
    assert "Any epsilon keeps" in out
    beside = [
        "calibrate",
        "--guarantee",
        "approx",
        "--delta",
        "0.05",
        "--size",
        "3",
        "--knows",
        "all",
        "--advantage",
        "0.05",
        "--json",
    ]
    code, out, _ = run(capsys, monkeypatch, *beside)
    assert code == 0
    told = json.loads(out)
    assert told["epsilon"] == pytest.approx(0.0779615, rel=1e-5)
    assert "A delta of 0.05 leaves nothing of the target" in told["without_answer"]["membership"]


def test_a_whole_number_may_have_an_exponent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("assess", "--mechanism", "grr", "--epsilon", "1", "--size")
    assert run(capsys, monkeypatch, *line, "1e1") == run(capsys, monkeypatch, *line, "10")
