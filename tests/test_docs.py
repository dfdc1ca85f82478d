"""The docs build without warnings, and their commands print what the page shows."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_prints_what_the_page_shows(command: str, shown: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "dprisk"
    environment = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    ran = subprocess.run(
        [sys.executable, "-m", "dprisk", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    printed = "\n".join(line.rstrip() for line in (ran.stdout + ran.stderr).splitlines())
    assert printed.rstrip() == shown


def test_the_docs_build_without_warnings(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "from-csv-to-risk.html").is_file()


def test_the_picture_is_what_its_script_draws() -> None:
    """Regenerate with `python docs/figures/bounds.py` when a bound changes."""
    folder = ROOT / "docs" / "figures"
    drawn = runpy.run_path(str(folder / "bounds.py"))["picture"]()
    assert drawn == (folder / "bounds.svg").read_text()
