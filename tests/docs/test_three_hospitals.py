"""The tutorial on three hospitals is run as it stands: hospitals are processes of their own, over HTTP."""

import json
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sfumato.cli.app import app
from sfumato.federated import check_certified, read_network
from sfumato.reports.stored import stored_release
from tests.docs.test_docs import DOCS, blocks

PAGE = DOCS / "tutorial" / "three-hospitals.md"
PROGRAM = "import sys; sys.argv[0] = 'sfumato'; from sfumato.cli import main; main()"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.long
def test_every_command_of_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    files = iter(re.findall(r'^```toml title="([\w.-]+)"', PAGE.read_text("utf-8"), re.MULTILINE))
    program, printed, started = CliRunner(), dict[str, Result](), list[subprocess.Popen[bytes]]()
    port = str(free_port())
    try:
        for block in blocks(PAGE):
            if block.language == "toml":
                Path(next(files)).write_text(block.body, "utf-8")
            elif block.language in ("python", "py"):  # the second needs the files of the commands
                exec(compile(block.body, str(PAGE), "exec", dont_inherit=True), {})  # noqa: S102 - ours
            elif block.language == "console":
                for line in block.body.replace("7443", port).splitlines():
                    words = shlex.split(line.removeprefix("$ "))[1:]
                    if words[-1] == "&":
                        started.append(subprocess.Popen([sys.executable, "-c", PROGRAM, *words[:-1]]))
                        continue
                    asks = words[:2] in (["consortium", "ask"], ["consortium", "train"])
                    more = ["--patience", "300"] if asks else []
                    outcome = program.invoke(app, [*words, *more])
                    assert outcome.exit_code == 0, (line, outcome.stdout, outcome.stderr, outcome.exception)
                    printed[" ".join(words[:2])] = outcome
    finally:
        for process in started:
            process.terminate()
            process.wait()
    assert len(started) == 3
    assert "charged: nothing, this is the stored answer" in printed["consortium ask"].stdout
    assert "verified: the sum of north, south, west" in printed["consortium verify"].stdout
    said = json.loads(Path("curve.json").read_text("utf-8"))["statement"]
    # 24 exits by week and event over 1,900 patients, each with Skellam noise of a standard deviation below 10
    assert abs(sum(said["values"]) - 1900) < 24 * 60
    network, model = read_network("model.safetensors")
    check_certified(network, model, stored_release(Path("model.json").read_text("utf-8")).statement)
    assert "8 gave a sum" in printed["consortium train"].stdout
    assert "charged: ε = 1, δ = 1/10000000, 8 rounds" in printed["site runs"].stdout
    shown = json.loads(program.invoke(app, ["budget", "show", "--ledger", "north/ledger.toml", "--json"]).stdout)
    assert "3" in json.dumps(shown)
