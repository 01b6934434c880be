"""Builds the commands of the command line once for each worker, and not for each command that a test runs.

Typer makes all commands anew whenever one is run: a tenth of a second, where most commands take a hundredth. A process
runs one command and builds once; tests run hundreds in one process. What is built holds nothing of a run.
"""

from functools import cache

from typer import testing

testing._get_command = cache(testing._get_command)  # type: ignore[attr-defined]  # a name of theirs alone
