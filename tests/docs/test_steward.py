"""The steward's guide is run as it stands: files are written, commands succeed, tables are those that are shown."""

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from tests.docs.test_docs import DOCS, blocks

PAGE = DOCS / "tutorial" / "steward.md"


def written(text: str) -> dict[int, str]:
    """The files of the page, by the line where their block begins."""
    return {
        number + 1: found[1]
        for number, line in enumerate(text.splitlines())
        if (found := re.match(r'```toml title="([\w.-]+)"', line))
    }


@pytest.mark.claim("S1-20", "S0-31", "S1-11")
def test_every_command_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    files = iter(written(PAGE.read_text("utf-8")).values())
    program, told, names = CliRunner(), {}, {"__name__": "steward"}
    last = ""
    for block in blocks(PAGE):
        match block.language:
            case "toml":
                Path(next(files)).write_text(block.body, "utf-8")
            case "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(block.body, str(PAGE), "exec", dont_inherit=True), names)  # noqa: S102 - ours
            case "text":
                for line in block.body.splitlines():
                    assert line == "..." or line in last.splitlines(), line
            case "console":
                for line in block.body.splitlines():
                    words = shlex.split(line.removeprefix("$ "))
                    match words[0]:
                        case "mkdir":
                            for name in words[1:]:
                                Path(name).mkdir()
                            continue
                        case "cd":  # a folder stands for a machine
                            monkeypatch.chdir(words[1])
                            continue
                        case "cp":
                            assert not words[1].endswith(".key"), "keys are never carried"
                            shutil.copy(words[1], words[2])
                            continue
                    outcome = program.invoke(app, words[1:])
                    assert outcome.exit_code == 0, (line, outcome.stdout, outcome.stderr, outcome.exception)
                    last = outcome.stdout
                    told.setdefault(line, []).append(last)
    assert next(files, None) is None
    first, second = told["$ sfumato plan run plan.toml --until 2026-03-31"]
    assert first.startswith("released: months 2026-01, 2026-02, charged")
    assert "released" not in second
    assert "missing: months 2026-03" in second
    refused = program.invoke(app, ["plan", "run", "plan.toml"])
    assert "released" not in refused.stdout
    assert Path.cwd() == tmp_path / "hospital"
    assert {file.name for file in tmp_path.rglob("*.key")} == {
        f"{who}.key" for who in ("ada", "ben", "cho", "eva", "ledger")
    }
    for file in tmp_path.rglob("*.key"):  # each key lies where it was made
        assert file.parent.name == ("hospital" if file.stem == "ledger" else file.stem)


def test_the_guide_as_it_is_shown_has_the_steps_of_the_issue() -> None:
    """An empty institution, an approved plan, a first scheduled release; nothing of it may get lost."""
    shown = [line for block in blocks(PAGE, "console") for line in block.body.splitlines()]
    steps = ("ledger init", "account open", "budget board", "ballot sign", "ballot submit", "plan adopt", "plan run")
    for step in (*steps, "evidence"):
        assert any(f"sfumato {step}" in line for line in shown), step
