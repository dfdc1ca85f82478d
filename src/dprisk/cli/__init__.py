"""The command `dprisk`."""

from dprisk.cli.commands import command, main

__all__ = ["command", "main"]
