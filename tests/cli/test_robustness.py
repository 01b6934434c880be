"""Mistakes of users, and of the systems they sit at: a message and an exit code, never a traceback."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.cli.exits import Exit
from sfumato.demo import network

LONG = os.environ.get("SFUMATO_LONG") == "1"
SCRIPT = "import sys; sys.argv[0] = 'sfumato'; from sfumato.cli import main; main()"


def program(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, *map(str, words)]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, text=True, encoding="utf-8", timeout=60, check=False, **streams)


READERS = ["verify", "explain", "report", "plot", "units"]


@pytest.mark.parametrize("command", [*READERS, "account compose", "key show"])
def test_a_folder_is_no_file(run, tmp_path, command):
    outcome = run(*command.split(), tmp_path)
    assert outcome.exit_code == Exit.REFUSED
    assert outcome.stderr.startswith("sfumato: ")


@pytest.mark.few(8)
@pytest.mark.parametrize("command", [*READERS, "account compose"])
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'{"kind": "certificate"}', b"null", b"1e400", b"\x00" * 50])
def test_another_file_is_no_certificate(run, tmp_path, command, content):
    (tmp_path / "file.json").write_bytes(content)
    outcome = run(*command.split(), tmp_path / "file.json")
    assert outcome.exit_code in (Exit.REFUSED, Exit.FOUND_WRONG)
    assert isinstance(outcome.exception, SystemExit)
    assert "Traceback" not in outcome.output


@pytest.mark.few(2)
@pytest.mark.parametrize("command", ["report", "plot", "units --plot"])
@pytest.mark.parametrize("target", ["folder", "file/below.svg", "absent/below.svg", ""])
def test_a_target_that_cannot_be_written(run, place, command, target):
    (place / "folder").mkdir()
    (place / "file").write_text("mine")
    name, _, option = command.partition(" ")
    outcome = run(name, place / "ili.json", option or "-o", place / target if target else "")
    assert outcome.exit_code == Exit.REFUSED
    assert outcome.stderr.startswith("sfumato: ")
    assert (place / "file").read_text() == "mine"


@pytest.mark.parametrize("command", ["report", "plot"])
def test_an_ending_that_nobody_writes(run, place, command):
    outcome = run(command, place / "ili.json", "-o", place / "out.docx")
    assert outcome.exit_code == Exit.REFUSED
    assert "endings" in outcome.stderr or ".html" in outcome.stderr
    assert not (place / "out.docx").exists()


@pytest.mark.few(2)
@pytest.mark.parametrize("command", ["report", "plot", "units --plot"])
def test_nothing_takes_the_place_of_the_certificate(run, place, command):
    before = (place / "ili.json").read_bytes()
    name, _, option = command.partition(" ")
    outcome = run(name, place / "ili.json", option or "-o", place / "ili.json")
    assert outcome.exit_code == Exit.REFUSED
    assert (place / "ili.json").read_bytes() == before


@pytest.mark.parametrize("words", [("plot",), ("units", "--plot", "x.svg")])
def test_without_the_plots_extra_the_way_to_get_it_is_named(run, place, words, monkeypatch):
    for module in ("altair", "vl_convert"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(place)
    outcome = run(words[0], place / "ili.json", *words[1:])
    assert outcome.exit_code == Exit.REFUSED
    assert "sfumato[plots]" in outcome.stderr


@pytest.mark.few(10)
@pytest.mark.parametrize("number", ["1e999999", "9" * 5000, "-1", "nan", "inf", "0", "1/0", "", "½", "0x10", "1_0"])
@pytest.mark.parametrize(
    "words",
    [
        ("units", "--max-degree", "3", "--epsilon"),
        ("units", "--max-degree", "3", "--epsilon", "1", "--delta"),
        ("units", "--max-degree", "3", "--epsilon", "1", "--confidence"),
        ("units", "--epsilon", "1", "--max-degree"),
        ("account", "convert", "--delta", "1e-5", "--rho"),
        ("account", "convert", "--rho", "1", "--delta"),
        ("account", "calibrate", "--sigma", "1", "--delta", "1e-5", "--sampling", "1", "--steps"),
    ],
    ids=" ".join,
)
def test_numbers_that_are_none(run, words, number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = run(*words, number)
    assert isinstance(outcome.exception, SystemExit | None)
    assert outcome.exit_code in (Exit.DONE, Exit.REFUSED, Exit.USAGE)
    if outcome.exit_code == Exit.DONE:
        assert number in ("0", "1_0")


WORDS = st.lists(
    st.sampled_from(
        [
            *("verify", "explain", "report", "plot", "units", "account", "compose", "convert", "key", "show", "new"),
            *("--json", "--lang", "zh", "--key", "--out", "-o", "--kind", "belief", "--audience", "board", "--theme"),
            *("--epsilon", "--delta", "--margin", "--max-degree", "--events", "--family", "--groups", "--rows"),
            *(
                "1",
                "0.5",
                "1e-6",
                "-1",
                "2**5",
                "",
                "ili.json",
                "key.pub",
                ".",
                "no such file",
                "--",
                "--help",
                "\x1b[2J",
            ),
        ]
    ),
    max_size=7,
)


@pytest.mark.long
@given(words=WORDS)
@settings(max_examples=150 if LONG else 40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_words_make_a_traceback(run, place, words):
    with contextlib.chdir(place):
        outcome = run(*words)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), (words, outcome.exception)
    assert outcome.exit_code in set(Exit)


def test_the_keyboard_stops_the_tour(run, tmp_path, monkeypatch):
    def pressed(*_: object, **__: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(network, "generate", pressed)
    outcome = run("demo", "--folder", tmp_path / "tour")
    assert outcome.exit_code == Exit.INTERRUPTED
    assert outcome.stderr == "sfumato: stopped. What was printed or written so far stands; nothing more was done.\n"


def test_a_failure_of_the_system_is_said(run, place, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "disk")

    monkeypatch.setattr("sfumato.reports.verify.read", full)
    outcome = run("verify", place / "ili.json")
    assert outcome.exit_code == Exit.REFUSED
    assert outcome.stderr == "sfumato: disk: No space left on device. The command was not finished.\n"


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        "explain ili.json",
        *(pytest.param(words, marks=pytest.mark.long) for words in ("units ili.json", "verify ili.json --json")),
    ],
)
def test_a_reader_that_goes_away_is_no_error_of_ours(place, words):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        outcome = program(*words.split(), stdout=gone, cwd=place)
    assert (outcome.returncode, outcome.stderr) == (Exit.NOT_READ, "")


@pytest.mark.long
def test_the_keyboard_stops_a_program_that_is_running(tmp_path):
    words = ["demo", "--patients", "2000000", "--folder", str(tmp_path / "tour")]
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as long:
        long.stdout.read(20)  # the first step is told, and patients are being invented
        long.send_signal(signal.SIGINT)
        _, said = long.communicate(timeout=60)
    assert long.returncode == Exit.INTERRUPTED
    assert said.startswith(b"sfumato: stopped.")


@pytest.mark.long
def test_a_full_disk_behind_the_output_is_said(place):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        outcome = program("explain", place / "ili.json", stdout=full)
    assert outcome.returncode == Exit.REFUSED
    assert outcome.stderr.startswith("sfumato: ")
    assert "No space left on device" in outcome.stderr


@pytest.mark.long
def test_closed_streams_change_nothing_else(tmp_path):
    shell = f'exec "{sys.executable}" -W error -c "{SCRIPT}" key new "{tmp_path}/k" >&- 2>&-'
    outcome = subprocess.run(["sh", "-c", shell], timeout=60, check=False)
    assert outcome.returncode == Exit.DONE
    assert (tmp_path / "k.pub").exists()
