"""The command `dprisk`."""

from dprisk.cli.main import main

__all__ = ["main"]
