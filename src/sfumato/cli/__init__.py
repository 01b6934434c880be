"""The command line: one file for each group of commands."""

from sfumato.cli.app import main

__all__ = ["main"]
