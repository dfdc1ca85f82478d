"""The command `dprisk learn attributes`: what it prints, and what it says to wrong input."""

import csv
import io
import json
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import torch

from dprisk.cli.commands import command

torch.set_num_threads(1)
QUICK = ["--others=60", "--people=30", "--trainings=3", "--steps=4", "--sample-rate=0.3"]
HEADER = "AGEP,EDU,MSP,RAC1P,SEX,HISP,INDP_CAT,DREM,DPHY,DEAR,DEYE,OWN_RENT,PUMA,PINCP,label_ge50k,EXCERPT"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Made-up people of a survey."""
    rng = np.random.default_rng(0)
    sizes = (60, 13, 7, 7, 2, 5, 20, 2, 2, 2, 2, 3, 1, 150_000, 2, 1)
    rows = [",".join(str(rng.integers(size)) for size in sizes) for _ in range(150)]
    (tmp_path / "census19_like.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return str(tmp_path)


def asked(*arguments: str) -> None:
    command().main(["learn", "attributes", *arguments], prog_name="dprisk", standalone_mode=False)


def test_a_table_for_each_epsilon_and_a_sentence(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked("--data", "census-2019", "--data-dir", folder, "--epsilon", "1,8", *QUICK)
    printed = capsys.readouterr().out
    for epsilon in ("1", "8"):
        assert f"race in census-2019, 3 trainings with epsilon {epsilon} at delta 1e-05 on 75 people" in printed
    for name in ("majority", "imputation", "Yeom", "CSMIA", "WCAI", "any attack", "model's label"):
        assert printed.count(f"  {name}") + printed.count(f"\n{name}") >= 2, name
    assert printed.count("levels differ from those in papers about it") == 2


def test_epsilon_is_told_at_the_delta_that_was_given(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked("--data", "census-2019", "--data-dir", folder, "--epsilon", "1", "--delta", "0.001", *QUICK)
    assert "3 trainings with epsilon 1 at delta 0.001 on 75 people" in capsys.readouterr().out


def test_numbers_for_programs_and_spreadsheets(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPRISK_DATA", folder)
    base = ("--data", "census-2019", "--income", "90000", "--epsilon", "2", *QUICK)
    asked(*base, "--json")
    (told,) = json.loads(capsys.readouterr().out)
    assert told["trainings"] == 3
    assert told["epsilon"] == pytest.approx(2.0, abs=0.01)
    asked(*base, "--csv")
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["attack"] for line in lines] == ["majority", "imputation", "Yeom", "CSMIA", "WCAI"]
    assert [float(line["advantage"]) for line in lines] == [line["advantage"] for line in told["attacks"]]


def test_a_picture(folder: str, tmp_path: Path) -> None:
    out = tmp_path / "found.svg"
    asked("--data", "census-2019", "--data-dir", folder, "--epsilon", "1", *QUICK, "--out", str(out))
    text = out.read_text()
    assert "WCAI" in text
    assert "any attack" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--data census-2019 --epsilon 1", "Say where the data are: --data-dir FOLDER, or the variable DPRISK_DATA"),
        ("--data hospital --epsilon 1 --data-dir {}", "no diabetes130_encounters.csv or .* put it there"),
        ("--data hospital --epsilon 1 --data-dir {} --income 9", "--income has no meaning for hospital"),
        ("--data census-2019 --epsilon 1 --data-dir {} --json --csv", "Choose one of --json and --csv"),
        ("--data census-2019 --epsilon 1,2 --data-dir {} --out a.svg", "--out draws one epsilon; 2 were given"),
        ("--data census-2019 --epsilon 1 --data-dir {} --others 500", "census-2019 has 150 people"),
        ("--data census-2019 --epsilon 1 --data-dir {} --trainings 1", "--trainings must be a whole number"),
        ("--data census-2019 --epsilon=-1 --data-dir {}", "Needs epsilon >= 0"),
        ("--data adult --epsilon 1", "'adult' is not one of"),
    ],
)
def test_wrong_input_gets_a_sentence(
    arguments: str, message: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPRISK_DATA", raising=False)
    with pytest.raises((click.ClickException, ValueError), match=message):
        asked(*arguments.format(folder).split())


def test_without_torch_it_says_which_extra_to_install(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch" or "dprisk.learning" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(click.ClickException, match=r'need torch: pip install "dprisk\[learning\]"'):
        asked("--data", "census-2019", "--data-dir", folder, "--epsilon", "1", *QUICK)


def test_without_scikit_learn_it_says_so_too(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(click.ClickException, match=r'needs scikit-learn: pip install "dprisk\[learning\]"'):
        asked("--data", "census-2019", "--data-dir", folder, "--epsilon", "1", *QUICK)
