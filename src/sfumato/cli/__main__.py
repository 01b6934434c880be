"""Runs the command line as ``python -m sfumato.cli``."""

from sfumato.cli.app import main

main()
