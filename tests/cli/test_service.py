"""The service on the command line: what it refuses to start, and that it stops when it is told to."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.cli.service import listening
from sfumato.errors import InvalidInput
from sfumato.server.service import Service
from sfumato.server.settings import FILE
from tests import parts

parts.package("fastapi")
parts.package("uvicorn")


def serve(*words: str, typed: str = "") -> tuple[int, str]:
    told = CliRunner().invoke(app, ["serve", *words], input=typed)
    return told.exit_code, told.stdout + told.stderr


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    assert "say which folder" in serve()[1]
    assert "there is no service in" in serve(str(tmp_path))[1]
    Service.create(tmp_path / "hospital").close()
    assert "in the open" in serve(str(tmp_path / "hospital"), "--host", "0.0.0.0")[1]  # noqa: S104 - refused
    place = tmp_path / "hospital" / FILE
    for line, words in (("colour = 1", "no setting"), ("port = 0", "from 1 to"), ("names = 3", "wrong type")):
        text = place.read_text("utf-8")
        place.write_text(text.replace("port = 8400\n", "") + line + "\n", "utf-8")
        assert words in serve(str(tmp_path / "hospital"))[1]
        place.write_text(text, "utf-8")


def test_a_port_that_is_taken_is_said_and_another_is_found(tmp_path: Path) -> None:
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match="cannot be listened at"), listening("127.0.0.1", port):
            pass
        with listening("127.0.0.1", port, 0) as other:
            assert other.getsockname()[1] not in (0, port)


def test_a_new_service_asks_for_its_administrator(tmp_path: Path) -> None:
    with listening("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        password = "a password of mine"  # noqa: S105 - of nobody
        typed = f"nils\n{password}\n{password}\n"
        status, said = serve(str(tmp_path / "new"), "--new", "--port", port, typed=typed)
    assert status == 1
    assert "cannot be listened at" in said
    assert password not in said
    service = Service.open(tmp_path / "new")
    assert service.people.by_password("nils", password) is not None
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    service.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "asked", "serving", "stopped"),
    [
        (signal.SIGTERM, (), "serving at", "nothing is served any more"),
        (signal.SIGINT, (), "serving at", "nothing is served any more"),
        (signal.SIGTERM, ("--json",), '{\n "serving": "http://127.0.0.1:', '{\n "stopped": true\n}\n'),
    ],
)
def test_it_answers_until_it_is_told_to_stop(
    how: int, asked: tuple[str, ...], serving: str, stopped: str, tmp_path: Path
) -> None:
    Service.create(tmp_path / "hospital").close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "sfumato.cli", "serve", str(tmp_path / "hospital"), "--port", str(port)]
    log = tmp_path / "log.jsonl"
    with subprocess.Popen(
        [*words, *asked, "--log", str(log)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            for line in serving.splitlines():  # the first that differs ends the test: more may never come
                assert line in process.stdout.readline()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/alive", timeout=60) as answer:
                assert answer.read() == b"ok\n"
            process.send_signal(how)
            assert stopped in process.stdout.read()
        finally:
            process.kill()
    assert '"route": "operation.alive"' in log.read_text("utf-8")
    assert log.stat().st_mode & 0o077 == 0
    Service.open(tmp_path / "hospital").close()
