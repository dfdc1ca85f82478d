"""What the command prints: plain when piped, harmless labels, CSV, a line of progress that only a terminal shows."""

import csv
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas
import pytest

from dprisk import GRR, Prior, PureDP, Threat, assess, audit, calibrate
from dprisk.answers import Answer
from dprisk.cli.printing import print_table
from dprisk.cli.progress import waiting
from dprisk.letters import visible
from dprisk.rounding import significant_down, significant_up
from tests.typed import run

PRIOR = Prior([0.4, 0.3, 0.2, 0.1], labels=["flu", "cold", "HIV", "none"])
NASTY = {":smile:": 3, "\x1b[31mred": 4, "[bold]b[/bold]": 5, "a\nb": 2, "日本": 1, "\u202eevil": 1, "é\xa0ü": 1}


def words(line: str) -> list[str]:
    return line.split()


def watched(*arguments: str, interrupt_at: str | None = None) -> tuple[int, str]:
    """The command on a terminal of its own, interrupted when it shows this: how it ended, and all that was shown."""
    import pty

    process, terminal = pty.fork()
    if process == 0:
        os.environ |= {"TERM": "xterm", "COLUMNS": "100"}
        os.execv(sys.executable, [sys.executable, "-m", "dprisk", *arguments])
    shown, sent = b"", False
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        try:
            new = os.read(terminal, 1 << 16) if ready else None
        except OSError:
            break
        if new == b"":
            break
        shown += new or b""
        if interrupt_at is not None and not sent and re.search(interrupt_at.encode(), shown):
            os.kill(process, signal.SIGINT)
            sent = True
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown.decode()


def piped(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dprisk", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def nasty(tmp_path: Path) -> str:
    path = tmp_path / "labels.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("label", "count"), *NASTY.items()])
    return str(path)


def test_text_is_as_it_is_but_for_what_steers_a_terminal() -> None:
    assert visible("日本 é\xa0ü :smile: [bold]") == "日本 é\xa0ü :smile: [bold]"
    assert visible("\x1b[31m\x07\x9b\u202e\ud800\n") == "\\x1b[31m\\x07\\x9b\\u202e\\ud800\\n"
    assert visible(visible("\x1b")) == visible("\x1b")


def test_columns_are_aligned_without_boxes(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("title", [("日本", "1", "x\ny"), ("abc", "23", "")], right=(1,))
    assert capsys.readouterr().out == "title\n日本   1  x\n          y\nabc   23\n"
    print_table("title", [("b", "2")], ("name", "value"))
    assert capsys.readouterr().out == "title\nname  value\nb     2\n"


@pytest.mark.parametrize(
    ("number", "up", "down"),
    [
        (22785.5, "22790", "22780"),
        (0.228, "0.228", "0.228"),
        (123456789.0, "123500000", "123400000"),
        (2.27855e12, "2.279e+12", "2.278e+12"),
        (1.95996e-3, "0.00196", "0.001959"),
    ],
)
def test_numbers_are_printed_with_few_digits_to_the_safe_side(number: float, up: str, down: str) -> None:
    assert (significant_up(number, 4), significant_down(number, 4)) == (up, down)


def test_labels_are_printed_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, nasty: str
) -> None:
    line = ["assess", "--mechanism", "grr", "--epsilon", "1", "--prior", nasty]
    code, out, _ = run(capsys, monkeypatch, *line)
    assert code == 0
    assert "\x1b" not in out
    assert not re.search("[┃│━]", out)
    records = json.loads(run(capsys, monkeypatch, *line, "--json")[1])["records"]
    assert {entry["record"] for entry in records} == set(NASTY)
    lines = list(csv.DictReader(io.StringIO(run(capsys, monkeypatch, *line, "--csv")[1])))
    assert {entry["record"] for entry in lines} == {"", *NASTY}


@pytest.mark.slow
def test_a_terminal_gets_a_table_and_no_label_steers_it(nasty: str) -> None:
    code, shown = watched("assess", "--mechanism", "grr", "--epsilon", "1", "--prior", nasty)
    assert code == 0
    assert "│" in shown
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown
    code, shown = watched("assess", "--mechanism", "grr", "--epsilon", "1", "--prior", nasty, "--csv")
    assert code == 0
    assert "\\x1b[31mred" in shown
    assert "\x1b" not in shown


@pytest.mark.slow
def test_a_long_calibration_says_how_far_it_is_and_ends_in_a_sentence() -> None:
    """Certified bounds for numbers take seconds, on any machine."""
    line = words("calibrate --mechanism gaussian --prior beta:2,5 --within 0.1 --advantage 0.2")
    progress = r"sigma [\d.]+ has advantage 0\.\d+"
    code, shown = watched(*line, interrupt_at=progress)
    assert re.search(progress, shown)
    if code == 130:
        assert shown.rstrip().endswith("Interrupted before there was an answer.")
    else:
        assert code == 0
        assert "choose sigma" in shown
    assert "Traceback" not in shown


@pytest.mark.slow
def test_nothing_is_said_about_progress_in_a_pipe() -> None:
    ran = piped(*words("assess --mechanism oue --epsilon 1 --size 80 --within 3 --runs 40000"))
    assert (ran.returncode, ran.stderr) == (0, "")


def test_nothing_is_said_about_what_is_done_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    with waiting("Assessing") as tell:
        tell("nearly there")
    assert screen.getvalue() == ""
    monkeypatch.setattr("dprisk.cli.progress.PATIENCE", 0.0)
    with waiting("Assessing") as tell:
        tell("nearly there")
        time.sleep(0.3)
    assert "Assessing: nearly there" in screen.getvalue()


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    script = f"{sys.executable} -m dprisk catalogue --json | head -n 1; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.slow
def test_letters_that_the_terminal_has_not_are_no_error(nasty: str) -> None:
    line = [sys.executable, "-m", "dprisk", "assess", "--mechanism", "grr", "--epsilon", "1", "--prior", nasty, "--csv"]
    ran = subprocess.run(line, capture_output=True, check=False, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"\\u65e5" in ran.stdout


ANSWERS: list[Answer] = [
    assess(GRR(4, 1.0), Threat(PRIOR)),
    assess(PureDP(1.0), Threat(PRIOR)),
    calibrate(GRR(4, 1.0), Threat(PRIOR), advantage=0.1),
    audit(GRR(4, 1.0), runs=500),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_every_answer_becomes_a_data_frame(answer: Answer) -> None:
    frame = answer.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["what", "record", "value"]
    overall = frame[frame["record"].isna()].set_index("what")["value"]
    for name, number in answer.numbers.items():
        assert overall[name] == number


def test_a_data_frame_has_the_value_of_each_record() -> None:
    risk = assess(GRR(4, 1.0), Threat(PRIOR))
    frame = risk.to_pandas().dropna(subset="record")
    for what, values in (
        ("average attacker", risk.average_attacker_by_record),
        ("advantage if looked for", risk.exposures),
    ):
        told = frame[frame["what"] == what]
        assert list(told["record"]) == ["flu", "cold", "HIV", "none"]
        assert list(told["value"]) == pytest.approx(values.tolist(), abs=1e-12)


def test_without_pandas_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"needs pandas: install it, or take table\(\)"):
        ANSWERS[0].to_pandas()


def test_csv_and_json_are_one_or_the_other(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    line = words("assess --mechanism grr --epsilon 1 --size 3 --json --csv")
    assert run(capsys, monkeypatch, *line) == (2, "", "Error: Choose one of --json and --csv.\n")


def test_bounds_and_calibrations_are_told_in_csv_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = run(capsys, monkeypatch, *words("assess --guarantee pure --epsilon 1 --size 3 --bounds --csv"))[1]
    assert "bound on advantage: worst-blocks,,0.2" in out
    out = run(capsys, monkeypatch, *["calibrate", "--mechanism", "grr", "--size", "3", "--advantage", "0.1", "--csv"])[
        1
    ]
    lines = {line["what"]: line["value"] for line in csv.DictReader(io.StringIO(out))}
    assert float(lines["advantage"]) <= 0.1
    assert float(lines["epsilon"]) == pytest.approx(float(lines["epsilon_at_delta_1e-5"]), rel=1e-3)
