"""The command: what it prints, and what it says to wrong input."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import GRR, OUE, Geometric, Line, Prior, Ring, SubsetSelection, Threat, UnaryEncoding, assess
from dprisk.cli import main


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["dprisk", *arguments])
    with pytest.raises(SystemExit) as leaving:
        main()
    printed = capsys.readouterr()
    return int(leaving.value.code or 0), printed.out, printed.err


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {
        "prior": "label,probability\na,0.5\nb,0.3\nc,0.2\n",
        "counts": "label,count\n10,5\n20,3\n40,2\n",
        "groups": "label,group\nc,y\na,x\nb,x\n",
        "ordered": "group\nx\nx\ny\n",
        "matrix": "0.5,0.5\n0.9,0.1\n0.2,0.8\n",
        "empty": "",
        "off": "label,probability\na,0.5\nb,0.8\n",
        "columns": "name,count\na,1\n",
        "ragged": "0.5,0.5\n1\n",
        "partial": "label,group\na,x\n",
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
        ("--mechanism ss --epsilon 1 --prior {prior}", lambda: assess(SubsetSelection(3, 1.0), Threat(ABC))),
        (
            "--mechanism ue --p 0.7 --q 0.2 --prior {prior} --knows {groups}",
            lambda: assess(UnaryEncoding(3, 0.7, 0.2), Threat(ABC, ["x", "x", "y"])),
        ),
        (
            "--mechanism geometric --epsilon 3 --prior {counts} --knows {ordered} --within 10",
            lambda: assess(Geometric(3, 3.0), Threat(Prior([0.5, 0.3, 0.2]), ["x", "x", "y"], Line(10, [10, 20, 40]))),
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


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "ss", "blh", "olh", "exponential", "geometric", "laplace"])
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
    arguments = ["assess", "--mechanism", "oue", "--epsilon", "1", "--size", "80", "--within", "3", "--samples", "200"]
    code, out, _ = run(capsys, monkeypatch, *arguments)
    assert code == 0
    assert "estimate" in out
    told = json.loads(run(capsys, monkeypatch, *arguments, "--json")[1])
    assert told["exact"] is False
    low, high = told["estimate"]["advantage_interval"]
    assert low < told["advantage"] < high


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--mechanism grr --epsilon -1 --size 3", "epsilon must be a finite number of at least 0, got -1.0"),
        ("--mechanism grr --epsilon nan --size 3", "got nan"),
        ("--mechanism grr --epsilon two --size 3", "not a valid float"),
        ("--mechanism magic --epsilon 1 --size 3", "There is no mechanism 'magic'; choose one of grr"),
        ("--mechanism grr --size 3", "--epsilon is missing"),
        ("--mechanism grr --epsilon 1", "--size is missing"),
        ("--mechanism grr --epsilon 1 --size 0", "size must be a whole number of at least 1"),
        ("--mechanism grr --epsilon 1 --size 4 --prior {prior}", "--size says 4 records"),
        ("--mechanism grr --epsilon 1 --prior {off}", "sums to 1.3, not 1"),
        ("--mechanism grr --epsilon 1 --prior {empty}", "is empty"),
        ("--mechanism grr --epsilon 1 --prior {columns}", "no column `label`"),
        ("--mechanism grr --epsilon 1 --prior nowhere.csv", "There is no file nowhere.csv"),
        ("--mechanism grr --epsilon 1 --size 3 --prior zipf:steep", "needs a number behind the colon"),
        ("--mechanism grr --epsilon 1 --prior {prior} --knows {partial}", "no group for the record b"),
        ("--mechanism grr --epsilon 1 --size 5 --knows {ordered}", "3 records, the prior has 5"),
        ("--mechanism grr --epsilon 1 --size 5 --knows {prior}", "no column `group`"),
        ("--mechanism grr --epsilon 1 --size 5 --within -2", "at least 0, got -2"),
        ("--mechanism grr --epsilon 1 --size 5 --within nan", "got nan"),
        ("--mechanism grr --epsilon 1 --size 5 --space plane", "'line' or 'ring'"),
        ("--mechanism grr --epsilon 1 --size 5 --p 0.5", "--p has no meaning for grr"),
        ("--mechanism matrix --matrix {ragged}", "cannot be read as a matrix"),
        ("--mechanism matrix --matrix {matrix} --size 7", "takes 3 records, the prior has 7"),
        ("--mechanism ue --p 2 --q 0.1 --size 3", "p must lie in [0, 1]"),
        ("--epsilon 1", "Missing option '--mechanism'"),
        ("--mechanism grr --epsilon 1 --size 5 --noise 3", "No such option '--noise'"),
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
