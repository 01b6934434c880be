"""The application: version, usage, help whose examples run, and errors that are not ours."""

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from sfumato.cli import certificate, main
from sfumato.cli.app import app
from sfumato.version import __version__
from tests import parts

EXAMPLE = re.compile(r"\$ (sfumato .*?)\s*$", re.MULTILINE)


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = list(commands(typer.main.get_command(app)))


def test_the_commands_are_these():
    assert sorted(" ".join(path) for path in ALL if path) == [
        "account",
        "account calibrate",
        "account compose",
        "account convert",
        "audit",
        "demo",
        "explain",
        "key",
        "key new",
        "key show",
        "report",
        "verify",
    ]


def test_the_version(run):
    outcome = run("--version")
    assert (outcome.exit_code, outcome.stdout) == (0, f"sfumato {__version__}\n")


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("verify",), ("verify", "a", "b"), ("key",), ("demo", "--patients", "0")]
)
def test_wrong_usage_exits_with_2(run, words):
    assert run(*words).exit_code == 2


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_help_has_an_example(run, path):
    outcome = run(*path, "--help")
    assert outcome.exit_code == 0
    assert len(EXAMPLE.findall(outcome.stdout)) == 1


def test_the_exit_codes_are_documented(run):
    assert "0 done; 1 refused or failed, with the reason; 2 wrong usage; 3 a certificate" in run("--help").stdout


def test_every_example_of_the_help_runs(run, tmp_path, monkeypatch):
    parts.package("vl_convert")
    examples = dict.fromkeys(EXAMPLE.findall(run(*path, "--help").stdout)[0] for path in ALL)
    assert len(examples) == len(ALL) - 1  # the group of keys shows the example of its first command
    monkeypatch.chdir(tmp_path)
    for example in examples:
        outcome = run(*shlex.split(example)[1:])
        assert outcome.exit_code == 0, (example, outcome.stderr, outcome.exception)
    assert {path.name for path in tmp_path.iterdir()} == {"sfumato-demo", "ili.html", "board.key", "board.key.pub"}


def test_a_mistake_of_ours_is_not_hidden(run, place, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(certificate, "_published", broken)
    assert isinstance(run("explain", place / "ili.json").exception, ZeroDivisionError)


def test_a_terminal_that_knows_no_epsilon_gets_question_marks(place, monkeypatch):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", narrow)
    monkeypatch.setattr(sys, "argv", ["sfumato", "explain", str(place / "ili.json")])
    with pytest.raises(SystemExit) as ended:
        main()
    narrow.flush()
    assert ended.value.code == 0
    assert b"? = 1/2" in narrow.buffer.getvalue()


def test_the_module_runs_as_a_program():
    command = [sys.executable, "-W", "error", "-m", "sfumato.cli", "--version"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert outcome.stdout == f"sfumato {__version__}\n"
