"""The first private count, as the README shows it: a few lines of Python, or one command."""

import ast
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.demo.network import generate
from tests.docs.test_docs import REPOSITORY, blocks

README = REPOSITORY / "README.md"
MOST_LINES = 6


def test_it_takes_at_most_six_lines_of_python() -> None:
    first = next(block.body for block in blocks(README, "python") if ".release(" in block.body)
    lines = [line for line in first.splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES
    assert len(ast.parse(first).body) == len(lines), "a line holds one statement"
    assert ".count()" in first
    assert "print(" in first


def test_the_commands_of_the_readme_print_a_count_with_its_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    generate("sfumato-demo", patients=200)
    lines = [line.removeprefix("$ ") for block in blocks(README, "console") for line in block.body.splitlines()]
    draft, query = (next(line for line in lines if line.startswith(f"sfumato {name}")) for name in ("schema", "query"))
    for line in (draft, query):
        outcome = CliRunner(env={"COLUMNS": "200"}).invoke(app, shlex.split(line)[1:])
        assert outcome.exit_code == 0, outcome.output
    assert "95% interval" in outcome.output
    assert "charged: ε = 1" in outcome.output
