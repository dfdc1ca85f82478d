"""`python -m dprisk` is the command."""

from dprisk.cli import main

main()
