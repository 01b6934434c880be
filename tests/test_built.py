"""Commands are built once, and one run leaves nothing to the next."""

import typer
from typer.testing import CliRunner

from sfumato.cli.app import app


def test_what_one_run_was_told_is_gone_in_the_next() -> None:
    runner = CliRunner()
    told, plain, again = (runner.invoke(app, words) for words in (["units", "--help"], ["units"], ["units", "--help"]))
    assert told.output == again.output
    assert "Usage" in told.output
    assert "Usage" not in plain.output


def test_an_application_is_built_once_and_another_by_itself() -> None:
    said: list[str] = []
    one, other = typer.Typer(), typer.Typer()
    one.command()(lambda: said.append("one"))
    other.command()(lambda: said.append("other"))
    for each in (one, other, one):
        assert CliRunner().invoke(each, []).exit_code == 0
    assert said == ["one", "other", "one"]
