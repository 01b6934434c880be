"""The tutorial on synthetic rows is run as it stands, and what it says of the rows is held to the invented truth."""

import contextlib
import io
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyarrow import compute, parquet
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.demo.network import generate
from tests.docs.test_docs import DOCS, blocks

PAGE = DOCS / "tutorial" / "partner-file.md"


def shown_in(block: str, printed: str) -> bool:
    """Whether all lines of a block were printed, in this order; "..." stands for others."""
    lines = iter(printed.splitlines())
    return all(any(line.rstrip() == said.rstrip() for said in lines) for line in block.splitlines() if line != "...")


@pytest.mark.claim("S1-17")
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)], ids=["quick", "whole"])
def test_every_command_of_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """The quick one invents the patients without the rest of the tour."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    files = iter(re.findall(r'^```toml title="([\w.-]+)"', PAGE.read_text("utf-8"), re.MULTILINE))
    program, last = CliRunner(), ""
    names: dict[str, Any] = {"__name__": "partner"}
    for block in blocks(PAGE):
        match block.language:
            case "toml":
                Path(next(files)).write_text(block.body, "utf-8")
            case "py":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(block.body, str(PAGE), "exec", dont_inherit=True), names)  # noqa: S102 - ours
            case "text":
                assert shown_in(block.body, last), (block.line, last)
            case "console":
                for line in block.body.splitlines():
                    words = shlex.split(line.removeprefix("$ "))
                    if words[0] == "cp":
                        shutil.copy(words[1], words[2])
                    elif words[1] == "demo" and not whole:
                        generate(words[words.index("--folder") + 1])
                    else:
                        outcome = program.invoke(app, words[1:])
                        assert outcome.exit_code == 0, (line, outcome.stdout, outcome.stderr, outcome.exception)
                        last = outcome.stdout
    assert next(files, None) is None
    one = parquet.read_table("partner/rows.parquet")
    assert one.num_rows == 20_000
    assert names["rows"]["region"].nunique() == 12
    said = [json.loads(Path(name, "certificate.json").read_text("utf-8")) for name in ("partner", "excel")]
    assert said[0] == said[1]
    # The noise on this table has a standard deviation of 13.6 rows before the fit, and Fenwater has about 1,800.
    assert abs(names["ill"]["Fenwater"] - 0.275) < 0.07
    assert abs(names["ill"]["Alderwick"] - 0.161) < 0.05
    assert compute.min_max(one["age"]).as_py() == {"min": 0, "max": 99}
