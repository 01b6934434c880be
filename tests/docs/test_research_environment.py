"""The tutorial on the research environment is run as it stands: files are written, commands succeed, in this order."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from tests.docs.test_docs import DOCS, blocks
from tests.parts import boxes

PAGE = DOCS / "tutorial" / "research-environment.md"


@pytest.mark.long
def test_every_command_of_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    titles = re.findall(r"^```(toml|python|py)(?: title=\"([\w.-]+)\")?", PAGE.read_text("utf-8"), re.MULTILINE)
    files = iter(title for _, title in titles)
    program, last, told = CliRunner(), "", {}
    for block in blocks(PAGE):
        if block.language in ("toml", "python", "py"):
            title = next(files)
            if title:
                Path(title).write_text(block.body, "utf-8")
            else:
                exec(compile(block.body, str(PAGE), "exec", dont_inherit=True), {})  # noqa: S102 - ours
        elif block.language == "text":
            for line in block.body.splitlines():
                assert line in last.splitlines(), (line, last)
        elif block.language == "console":
            for line in block.body.splitlines():
                outcome = program.invoke(app, shlex.split(line.removeprefix("$ "))[1:])
                assert outcome.exit_code == 0, (line, outcome.stdout, outcome.stderr, outcome.exception)
                last = told[line] = outcome.stdout
    assert "stored" in told["$ sfumato research run 15 --data visits=visits.csv --schema visits.toml --out results"]
    assert "released: program 15 of stays, by sven, on visits 2026; left: " in told["$ sfumato research log"]
    assert len(list(Path("results").iterdir())) == 2
    assert Path("stays.html").is_file()


def test_the_tutorial_has_its_steps() -> None:
    shown = [line for block in blocks(PAGE, "console") for line in block.body.splitlines()]
    for step in ("project", "open", "submit", "request", "run", "log"):
        assert any(f"sfumato research {step}" in line for line in shown), step
