"""The command `dprisk`."""

from dprisk.cli.main import command, main

__all__ = ["command", "main"]
