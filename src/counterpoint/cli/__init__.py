"""The command line: one module per command. Heavy imports wait until a command needs them."""

from counterpoint.cli.app import main

__all__ = ["main"]
