"""The commands in the docs print what the page shows, and the pictures are what their scripts draw."""

import re
import runpy
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprisk import Prior, Threat, assess
from dprisk.attacks import estimate
from dprisk.csv_files import read_csv
from tests.typed import run

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
COMMANDS = [
    (command, output.rstrip())
    for page in PAGES
    for block in BLOCK.findall(page.read_text())
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) >= 2


def test_the_readme_has_no_link_that_breaks_where_only_the_readme_is_shown() -> None:
    """A package index shows it without the files beside it: it names pages by their paths instead."""
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", text) == []
    for path in re.findall(r"`(docs/[^`]+)`", text):
        assert (ROOT / path).is_file()


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_prints_what_the_page_shows(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *arguments = shlex.split(command)
    assert program == "dprisk"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)
    _, told, complained = run(capsys, monkeypatch, *arguments)
    printed = "\n".join(line.rstrip() for line in (told + complained).splitlines())
    assert printed.rstrip() == shown


@cache
def script(name: str) -> dict[str, Any]:
    """What the script of a picture defines."""
    return runpy.run_path(str(FIGURES / f"{name}.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bounds", "adult", "epsilon", "priors", "distances", "guesses"])
def test_the_picture_is_what_its_script_draws(name: str) -> None:
    """Regenerate with `python docs/figures/NAME.py` when a bound or a risk changes."""
    assert script(name)["picture"]() == (FIGURES / f"{name}.svg").read_text()


@pytest.mark.slow
def test_simulated_attacks_on_the_mean_hours_gain_what_the_curves_say() -> None:
    """The page says within 0.02. Standard deviations are at most about a half, of the means 0.008."""
    epsilons = script("adult")["EPSILONS"].tolist()
    for panel in [panel for row in script("adult")["panels"]()[:2] for panel in row]:
        assert len(panel.points) == 28
        for point in panel.points:
            assert point.value == pytest.approx(panel.curves[point.eta][epsilons.index(point.epsilon)], abs=0.02)


def test_an_estimate_for_the_histogram_of_hours_agrees_with_the_closed_form() -> None:
    adult = script("adult")
    for prior, records in (("uniform", None), ("0 or 100 hours", [0, 100])):
        labels = records or list(range(101))
        exact = assess(adult["histogram"](4.0, labels), Threat(Prior.uniform(len(labels), labels)))
        threat = Threat.reconstruction(adult["priors"]()[prior])
        found = estimate.estimate_best(adult["histogram"](4.0), threat, np.random.default_rng(0), runs=4000)
        assert exact.exact
        assert found.advantage_interval[0] <= exact.advantage <= found.advantage_interval[1]


def test_the_counts_of_hours_are_those_of_the_whole_data_set() -> None:
    counts = read_csv(ROOT / "docs" / "examples" / "adult-hours.csv")
    assert counts["label"] == [str(hour) for hour in range(101)]
    assert sum(map(int, counts["count"])) == 32_561 + 16_281
