"""Ranges on the command line, and `dprisk plot`: the numbers of the library, as a table or a picture."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import DPSGD, GRR, OUE, Laplace, Prior, PureDP, Sweep, Threat, assess, sweep
from dprisk.cli import sweeping
from dprisk.release_files import read_release
from dprisk.sweeps import SweepInterrupted
from tests import typed

RELEASE = "docs/examples/histogram.toml"
HOURS = "docs/examples/adult-hours.csv"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda command: typed.run(capsys, monkeypatch, *command.split())


def found_by(run: Any, command: str) -> Any:
    code, out, err = run(f"{command} --json")
    assert (code, err) == (0, "")
    return json.loads(out)


UNIFORM = Threat(Prior.uniform(9))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "assess --mechanism grr --size 9 --epsilon 0.1..5:4",
            lambda: sweep(GRR(9, 1.0), UNIFORM, epsilon=[0.1, 1.73, 3.37, 5.0]),
        ),
        (
            "assess --mechanism grr --size 9 --epsilon 1,2 --within 0..2:3 --knows all",
            lambda: sweep(GRR(9, 1.0), Threat.membership(Prior.uniform(9)), epsilon=[1, 2], within=[0, 1, 2]),
        ),
        (
            "assess --guarantee dpsgd --noise-multiplier 4,8 --sample-rate 1 --steps 9 --size 9",
            lambda: sweep(DPSGD(1.0, 9), UNIFORM, noise_multiplier=[4, 8]),
        ),
        (
            "assess --mechanism oue --size 9 --epsilon 1,2 --bounds",
            lambda: sweep(OUE(9, 1.0), UNIFORM, epsilon=[1, 2], bounds=True),
        ),
        (
            "plot --mechanism grr,oue --guarantee pure --size 9 --epsilon 1,2 --prior uniform --prior zipf:1.1",
            lambda: sweep(
                {"grr": GRR(9, 1.0), "oue": OUE(9, 1.0), "pure": PureDP(1.0)},
                UNIFORM,
                epsilon=[1, 2],
                prior={"uniform": Prior.uniform(9), "zipf:1.1": Prior.zipf(9, 1.1)},
            ),
        ),
        (
            f"plot --mechanism laplace --epsilon 4 --within 0,40 --prior uniform --prior {HOURS}",
            lambda: sweep(
                Laplace(101, 4.0),
                Threat(Prior.from_csv(HOURS)),
                within=[0, 40],
                prior={"adult-hours.csv": Prior.from_csv(HOURS), "uniform": Prior.uniform(101, range(101))},
            ),
        ),
        (f"plot --release {RELEASE} --prior uniform --prior zipf --runs 200", lambda: _of_the_release()),
    ],
)
def test_numbers_are_those_of_the_library(run: Any, command: str, expected: Any) -> None:
    told, wanted = found_by(run, command), expected()
    for row, other in zip(told["rows"], json.loads(json.dumps(wanted.to_dict()))["rows"], strict=True):
        numbers = {name for name, value in other.items() if isinstance(value, float)}
        assert {name: row[name] for name in other if name not in numbers} == {
            name: other[name] for name in other if name not in numbers
        }
        assert [row[name] for name in numbers] == pytest.approx([other[name] for name in numbers], abs=1e-12)
    assert told["sentence"] == wanted.sentence()
    words = command.split()
    assert words[1].removeprefix("--") in told["inputs"]


def _of_the_release() -> Sweep:
    mechanism = read_release(RELEASE).mechanism
    kinds = {"uniform": Prior.uniform(mechanism.size), "zipf": Prior.zipf(mechanism.size)}
    priors = {name: Prior(prior.weights, mechanism.labels) for name, prior in kinds.items()}
    return sweep(mechanism, Threat(priors["uniform"]), prior=priors, runs=200)


def test_a_single_number_is_assessed_as_ever(run: Any) -> None:
    told = found_by(run, "assess --mechanism grr --size 9 --epsilon 2")
    assert told["advantage"] == assess(GRR(9, 2.0), UNIFORM).advantage
    assert "rows" not in told


def test_a_range_is_shown_as_a_table_and_as_csv(run: Any) -> None:
    _, table, _ = run("assess --mechanism grr --size 9 --epsilon 0.1..5")
    assert table.count("exact") == 11
    assert "Of the 11 cases tried the worst is epsilon 5" in table.replace("\n", " ")
    _, csv, _ = run("plot --mechanism grr --size 9 --epsilon 1,2 --csv")
    assert csv == sweep(GRR(9, 1.0), UNIFORM, epsilon=[1, 2]).to_csv()


@pytest.mark.slow
def test_a_picture_is_written_with_every_name(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "risk.svg"
    command = f"plot --mechanism GRR --mechanism RAPPOR --guarantee pure --size 50 --epsilon 0.1..8:9 --out {out}"
    code, told, err = run(command)
    assert (code, err) == (0, "")
    assert told.endswith(f"Written to {out}.\n")
    text = out.read_text()
    assert all(f">{name}<" in text for name in ("GRR", "RAPPOR", "pure"))
    _, told, err = run(f"{command} --of success --csv")
    assert told.startswith("subject,epsilon,advantage")
    assert "Written to" in err
    assert "without the report" in out.read_text()


GRR9 = "plot --mechanism grr --size 9"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{GRR9} --epsilon 1..2", "Say where to: --out risk.svg (or .png), or --json or --csv."),
        (f"{GRR9} --epsilon 1 --csv", "Give something to compare"),
        (f"{GRR9} --epsilon 1..2 --out risk.pdf", "risk.pdf ends in neither"),
        (f"{GRR9} --epsilon 1..2 --out nowhere/risk.svg", "There is no folder nowhere"),
        (f"{GRR9} --epsilon 1..2 --sigma 3 --csv", "--sigma has no meaning for grr."),
        (f"{GRR9} --epsilon 1..2 --prior zipf --prior zipf --csv", "--prior zipf is given twice."),
        ("plot --size 9 --epsilon 1..2 --csv", "Give --mechanism or --guarantee, or a --release file."),
        ("plot --mechanism grr,gaussian --size 9 --epsilon 1..2 --csv", "--sigma is missing for gaussian."),
        ("assess --mechanism grr --size 9 --epsilon 2..1", "--epsilon: a range goes from the smaller number"),
        ("assess --mechanism grr --size 9 --epsilon 1..2:0", "--epsilon: a range has 2 to 1000 points"),
        ("assess --mechanism grr --size 9 --epsilon one", "--epsilon is a number, some (0.1,0.5,1) or a range"),
        ("assess --mechanism grr --size 9 --epsilon 1 --within 1..x", "--within is a number, some"),
        ("assess --guarantee approx --size 9 --epsilon 1 --delta 0.1,0.2", "ApproxDP has the parameter epsilon"),
        ("assess --mechanism grr --size 9 --epsilon -1,1", "epsilon must be"),
    ],
)
def test_wrong_input_gets_one_sentence(run: Any, command: str, message: str) -> None:
    code, out, err = run(command)
    assert code == 2
    assert out == ""
    assert err.startswith("Error: ")
    assert message in err
    assert err.count("\n") == 1


def test_without_matplotlib_one_sentence_says_what_to_install(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run(f"{GRR9} --epsilon 1..2 --out {tmp_path}/risk.svg")
    assert (code, err) == (2, "Error: Pictures need matplotlib: pip install 'dprisk[plot]'.\n")
    assert run(f"{GRR9} --epsilon 1..2 --csv")[0] == 0


def test_a_stopped_sweep_shows_what_it_has(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sweep(GRR(9, 1.0), UNIFORM, epsilon=np.linspace(1, 2, 5))
    part = Sweep(whole.points[:2], whole.axes, whole.parameter, whole.asked)

    def stopped(*_: Any, **__: Any) -> Sweep:
        raise SweepInterrupted(part)

    monkeypatch.setattr(sweeping, "sweep", stopped)
    code, out, _ = run("assess --mechanism grr --size 9 --epsilon 1..2:5")
    assert code == 130
    assert "The sweep was stopped after 2 of 5 cases." in out.replace("\n", " ")


@pytest.mark.parametrize(("number", "hints"), [("1,5", 1), ("0.1,5", 0), ("1,2,5", 0), ("1.5", 0), ("1,2", 0)])
def test_a_decimal_comma_gets_a_hint(
    number: str, hints: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = typed.run(
        capsys, monkeypatch, *f"assess --mechanism grr --size 3 --epsilon {number} --json".split()
    )
    assert code == 0
    assert json.loads(out)
    assert err.count("--epsilon 1,5 is read as two cases, 1 and 5; if one is meant, write 1.5.") == hints
