"""The command `dprisk learn attack`, on the digits of scikit-learn."""

import json
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from dprisk.cli.commands import command
from dprisk.errors import DpriskError
from dprisk.learning import Examples, Recipe, mlp, worst_pair_prior

torch.set_num_threads(1)
FEW = ["learn", "attack", "--data", "digits", "--others", "30", "--steps", "10", "--runs", "10", "--epsilon"]


def run(*arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(command(), arguments)
    assert ran.exit_code == code, ran.output
    if isinstance(ran.exception, DpriskError):
        raise ran.exception
    return ran.output


def test_json_and_csv_have_every_case() -> None:
    told = json.loads(run(*FEW, "2,8", "--json", "--knows", "none,all", "--candidates", "4"))
    assert [(round(case["epsilon"], 3), case["knows"]) for case in told["cases"]] == [
        (2, "none"),
        (2, "all"),
        (8, "none"),
        (8, "all"),
    ]
    assert told["inputs"]["data"] == "digits"
    lines = run(*FEW, "2", "--csv", "--sample-rate", "0.5").splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("noise_multiplier,epsilon,knows,baseline,best_success_advantage")


@pytest.mark.slow
def test_a_table_and_a_picture(tmp_path: Path) -> None:
    out = run(*FEW, "2,8", "--out", str(tmp_path / "risk.svg"), "--prior", "worst-pair")
    assert "by an estimate" in out
    assert (tmp_path / "risk.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn", "attack", "--data", "mnist", "--epsilon", "1"], "Give --data-dir, the folder of its files"),
        ([*FEW, "1", "--knows", "some"], "one of none, label, all"),
        ([*FEW, "1", "--others", "2000"], "digits has 1797 pictures"),
        ([*FEW, "1", "--prior", "nothing.csv"], "There is no file nothing.csv"),
        ([*FEW, "-1"], "epsilon"),
        ([*FEW, "1", "--network", "cnn"], "Images of side 8 are too small"),
        ([*FEW, "1", "--device", "gpu"], "device must be cpu or cuda, got 'gpu'"),
        ([*FEW, "1", "--device", "mps"], "device must be cpu or cuda, got 'mps'"),
        ([*FEW, "1", "--seed", "-1"], "seed must be a whole number of at least 0"),
        ([*FEW, "1", "--learning-rate", "0"], "learning-rate must be finite and above 0"),
        ([*FEW, "1", "--alpha", "2"], "alpha must lie strictly between 0 and 1"),
        ([*FEW, "1", "--json", "--csv"], "Choose one of --json and --csv"),
        ([*FEW, "1", "--candidates", "1"], "With one candidate there is nobody to compare it with"),
        ([*FEW, "1", "--file", "no/such/folder/runs.npz"], "There is no folder no/such/folder to keep runs.npz in"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPRISK_DATA", raising=False)
    ran = CliRunner().invoke(command(), arguments)
    assert ran.exit_code != 0
    assert message in ran.output + str(ran.exception)


def test_a_prior_of_ones_own_is_over_the_candidates(tmp_path: Path) -> None:
    file = tmp_path / "prior.csv"
    file.write_text("label,probability\n0,0.5\n1,0.3\n2,0.2\n")
    told = json.loads(run(*FEW, "2", "--prior", str(file), "--candidates", "3", "--knows", "none", "--json"))
    assert told["cases"][0]["baseline"] == 0.5
    ran = CliRunner().invoke(command(), [*FEW, "2", "--prior", str(file)])
    assert "has 3 records: give --candidates 3, not 8" in ran.output


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("dprisk.learning")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = CliRunner().invoke(command(), [*FEW, "1"])
    assert ran.exit_code != 0
    assert 'pip install "dprisk[learning]"' in ran.output + str(ran.exception)


def test_the_worst_pair_has_opposite_gradients() -> None:
    """Two labels of one picture, among others: their gradients point away from each other."""
    rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    candidates = Examples([*rows, [0.0, 0.0, 1.0]], [0, 0, 0, 1, 0])
    prior = worst_pair_prior(Recipe(mlp(3, 2), 0.01, steps=5, learning_rate=0.01), candidates, candidates)
    assert sorted(prior.weights.tolist()) == pytest.approx([0.1, 0.1, 0.1, 0.35, 0.35])
    assert prior.weights[3] == pytest.approx(0.35)
    with pytest.raises(DpriskError, match="two candidates"):
        worst_pair_prior(Recipe(mlp(3, 2), 0.01), candidates, candidates[:1])


def test_the_examples_in_the_help_can_be_copied() -> None:
    told = CliRunner().invoke(command(), ["learn", "attack", "--help"]).output
    assert "learn attack --data digits" in told
    assert "attack attack" not in told
