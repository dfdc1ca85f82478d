"""The command as somebody types it: its exit code, and what it prints."""

import sys

import pytest

from dprisk.cli import main


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["dprisk", *arguments])
    with pytest.raises(SystemExit) as leaving:
        main()
    printed = capsys.readouterr()
    return int(leaving.value.code or 0), printed.out, printed.err
