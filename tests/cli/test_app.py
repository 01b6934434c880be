"""The application: version, usage, help whose examples run, exit codes, completion, and errors that are not ours."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import typer

from sfumato.cli import audit, certificate, demo, main
from sfumato.cli.app import app
from sfumato.cli.exits import MEANING, Exit
from sfumato.cli.output import say_paragraphs
from sfumato.core.signature import SigningKey
from sfumato.governance.settings import made
from sfumato.version import __version__
from tests import parts
from tests.cli.institution import written

EXAMPLE = re.compile(r"\$ (sfumato .*?)\s*$", re.MULTILINE)


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = list(commands(typer.main.get_command(app)))


def test_the_commands_are_these():
    assert sorted(" ".join(path) for path in ALL if path) == [
        "account",
        "account allot",
        "account calibrate",
        "account compose",
        "account convert",
        "account list",
        "account open",
        "account windows",
        "audit",
        "audit graph",
        "audit local",
        "audit membership",
        "audit model",
        "audit plans",
        "audit release",
        "audit stream",
        "audit synthetic",
        "audit training",
        "ballot",
        "ballot show",
        "ballot sign",
        "ballot submit",
        "ballot write",
        "budget",
        "budget abstain",
        "budget approve",
        "budget board",
        "budget lift",
        "budget reject",
        "budget request",
        "budget requests",
        "budget show",
        "budget veto",
        "budget withdraw",
        "consortium",
        "consortium agree",
        "consortium ask",
        "consortium new",
        "consortium train",
        "consortium verify",
        "demo",
        "demo attacks",
        "doctor",
        "evidence",
        "explain",
        "genomics",
        "genomics publish",
        "genomics uniqueness",
        "graph",
        "key",
        "key certify",
        "key enter",
        "key list",
        "key new",
        "key revoke",
        "key rotate-root",
        "key show",
        "key standing",
        "ledger",
        "ledger backup",
        "ledger clock",
        "ledger dataset",
        "ledger expire",
        "ledger export",
        "ledger grants",
        "ledger head",
        "ledger health",
        "ledger init",
        "ledger population",
        "ledger recover",
        "ledger restore",
        "ledger serve",
        "ledger terms",
        "ledger verify",
        "plan",
        "plan adopt",
        "plan correct",
        "plan digest",
        "plan run",
        "plan solve",
        "plan status",
        "plot",
        "publish",
        "query",
        "receipt",
        "releases",
        "report",
        "research",
        "research log",
        "research open",
        "research project",
        "research request",
        "research run",
        "research serve",
        "research sign",
        "research submit",
        "schema",
        "schema draft",
        "serve",
        "serve backup",
        "serve restore",
        "site",
        "site answer",
        "site answer-file",
        "site join",
        "site leave",
        "site new",
        "site runs",
        "stream",
        "stream demo",
        "stream total",
        "suggest-limit",
        "synthesize",
        "units",
        "verify",
        "witness",
        "witness end",
        "witness enrol",
        "witness init",
        "witness ledgers",
        "witness name",
        "witness renew",
        "witness serve",
    ]


def test_the_version(run):
    outcome = run("--version")
    assert (outcome.exit_code, outcome.stdout) == (0, f"sfumato {__version__}\n")


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("verify",), ("verify", "a", "b"), ("key",), ("demo", "--patients", "0")]
)
def test_wrong_usage_exits_with_2(run, words):
    assert run(*words).exit_code == 2


@pytest.mark.few(8)
@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_help_has_an_example(run, path):
    outcome = run(*path, "--help")
    assert outcome.exit_code == 0
    examples = EXAMPLE.findall(outcome.stdout)
    assert examples
    if path and path[0] not in ("account", "key", "query"):  # some need something first: a question its schema
        assert all(example.startswith(f"sfumato {' '.join(path)}") for example in examples)


def test_every_exit_code_is_documented(run):
    text = " ".join(run("--help").stdout.split())
    assert set(MEANING) == set(Exit)
    assert all(f"{code.value} {meaning}" in text for code, meaning in MEANING.items())
    assert audit.REFUTED == Exit.REFUTED


WRITTEN = {
    *("sfumato-demo", "sfumato-attacks", "attacks", "tour", "ili.html", "membership.html", "uniqueness.html"),
    *("regions.svg", "noise.svg", "belief.png"),
    *("board.key", "board.key.pub", "visits.toml"),
    *("ledger.toml", "ledger.db", "ledger.key", "ledger.key.pub", "ledger.anchor", "head.json", "record.jsonl"),
    "ledger-backup.db",
    *("partner", "table"),
    *("releases", "evidence", "press.key.pub.cert", "press.key.pub.revoked", "standing.json", "witness", "a.ballot"),
}
PLAN = """kind = "plan"
version = 1
name = "dashboard"
year = 2024
account = "hospital/oncology"
aim = "least cost"
purpose = "research"
recipient = "public"
[unit]
kind = "user"
column = "patient_id"
relation = "add/remove"
[cap]
epsilon = 1
[releases.quarters]
every = "quarterly"
question = "SELECT sex, COUNT(*) FROM visits GROUP BY sex"
schema = "planned.toml"
data = "data/{period}.parquet"
wanted = { margin = 50, confidence = 0.95 }
"""
PLANNED = """kind = "schema"
version = 1
[dataset]
name = "visits"
[unit]
column = "patient_id"
[limit]
groups = 1
rows_per_group = 1
[columns.patient_id]
type = "whole"
[columns.sex]
type = "text"
keys = ["F", "M"]
"""
DECLARED = """kind = "schema"
version = 1
[dataset]
name = "visits"
version = "1"
[unit]
column = "patient_id"
[limit]
groups = 1
rows_per_group = 1
[columns.patient_id]
type = "text"
[columns.region]
type = "text"
keys = ["Alderwick", "Brackenmoor"]
[columns.sex]
type = "text"
keys = ["F", "M"]
[columns.age]
type = "whole"
bounds = [0, 99]
"""
NOTHING_LOST = {  # examples that are refused where no entry was lost, and why
    "sfumato ledger recover": "there is nothing to recover",
    "sfumato ledger restore": "holds a ledger already",
    "sfumato witness renew": "nobody said where the witness is asked",  # nor is there a witness that can be asked
}
ENTERED = "sfumato key enter"  # and this one where the document stands in the record already
OF_A_ROOT = tuple(f"sfumato key {name}" for name in ("certify", "revoke", "rotate-root", "enter"))
ELSEWHERE = (
    *("sfumato consortium", "sfumato site"),  # several folders and processes: tests/docs/test_three_hospitals.py
    *("sfumato ledger serve", "sfumato witness serve"),  # until somebody stops them: tests/cli/test_serve.py
    "sfumato publish",  # releases on record for publication: tests/server/test_public.py
    "sfumato serve",  # likewise: tests/server/test_demo.py and test_backup.py
    "sfumato research",  # a board, a project and a box: tests/docs/test_research_environment.py
    "sfumato genomics publish",  # three files of a study: tests/genomics/test_uniqueness_page.py
    "sfumato ballot",  # a board, a request and papers that others signed: tests/cli/test_ballot_commands.py
    "sfumato witness enrol witness head.json --key charge-2",  # a key that was rotated: test_attacks_19b.py
)
LAST = ("plan", "receipt", "releases", "evidence", "witness", "budget", "key")  # they need a ledger; a board comes last


def provided(folder: Path) -> set[str]:
    """Write what people bring along: declarations, a plan and its data, arrivals, contacts and everybody's ward."""
    written(folder)
    contacts = [f"{person},{(7 * person + step) % 400}" for person in range(400) for step in (1, 3)]
    (folder / "contacts.csv").write_text("\n".join(["source,target", *contacts]) + "\n", "utf-8")
    wards = [f"{person},ward {person % 3}" for person in range(400)]
    (folder / "wards.csv").write_text("\n".join(["node,block", *wards]) + "\n", "utf-8")
    arrivals = [f"p{place % 40},2026-01-0{1 + place % 7}T{place % 24:02}:30:00Z" for place in range(400)]
    (folder / "arrivals.csv").write_text("\n".join(["who,time", *arrivals]) + "\n", "utf-8")
    (folder / "plan.toml").write_text(PLAN, "utf-8")
    (folder / "planned.toml").write_text(PLANNED, "utf-8")
    (folder / "declared.toml").write_text(DECLARED, "utf-8")
    (folder / "data").mkdir()
    for name in ("root", "root-2", "root-3", "press"):
        SigningKey.new().save(folder / f"{name}.key")
    made(folder / "rooted", root=folder / "root.key", next_root=folder / "root-2.key.pub")
    for quarter in range(1, 5):
        rows = pa.table({"patient_id": list(range(40)), "sex": ["F", "M"] * 20})
        pyarrow.parquet.write_table(rows, folder / "data" / f"2024-Q{quarter}.parquet")
    return {path.name for path in folder.iterdir()}


@pytest.mark.long
def test_every_example_of_the_help_runs(run, tmp_path, monkeypatch):
    parts.package("vl_convert")
    in_turn = sorted(ALL, key=lambda path: LAST.index(path[0]) if path and path[0] in LAST else -1)
    examples = dict.fromkeys(example for path in in_turn for example in EXAMPLE.findall(run(*path, "--help").stdout))
    assert len(examples) >= len(ALL) - len(JSON)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    brought = provided(tmp_path)
    for example in (example for example in examples if not example.startswith(ELSEWHERE)):
        outcome = run(*shlex.split(example)[1:], *(("--ledger", "rooted") if example.startswith(OF_A_ROOT) else ()))
        if example.startswith(ENTERED):
            assert (outcome.exit_code, "cannot be entered again" in outcome.stderr) == (1, True)
            continue
        if (lost := " ".join(example.split()[:3])) in NOTHING_LOST:
            assert (outcome.exit_code, NOTHING_LOST[lost] in outcome.stderr) == (1, True)
            continue
        assert outcome.exit_code == 0, (example, outcome.stderr, outcome.stdout, outcome.exception)
    assert {path.name for path in tmp_path.iterdir()} == WRITTEN | brought


JSON = {
    ("account",),
    ("ballot",),
    ("budget",),
    ("consortium",),
    ("genomics",),
    ("key",),
    ("ledger",),
    ("plan",),
    ("research",),
    ("schema",),
    ("site",),
    ("stream",),
    ("witness",),
    (),
}  # groups have no result of their own


@pytest.mark.few(8)
@pytest.mark.parametrize("path", [path for path in ALL if path not in JSON], ids=" ".join)
def test_every_command_answers_to_programs(run, path):
    assert "--json" in run(*path, "--help").stdout


def completed(**environment: str) -> str:
    """Run the program as a shell does when it asks for completion."""
    script = "import sys; sys.argv[0] = 'sfumato'; from sfumato.cli import main; main()"
    words = environment.pop("words", "").split()
    command = [sys.executable, "-W", "error", "-c", script, *words]
    outcome = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in outcome.stderr
    return outcome.stdout


@pytest.mark.long
@pytest.mark.parametrize(("shell", "sign"), [("bash", "complete -o default -F"), ("zsh", "#compdef sfumato")])
def test_the_shell_gets_a_completion_script(shell, sign):
    asked = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "words": f"--show-completion {shell}"}
    for script in (completed(**asked), completed(_SFUMATO_COMPLETE=f"source_{shell}")):
        assert sign in script
        assert "_SFUMATO_COMPLETE" in script


@pytest.mark.long
def test_commands_and_options_are_completed():
    asked = {"_SFUMATO_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    assert completed(**asked, COMP_WORDS="sfumato un").split() == ["units"]
    assert completed(**asked | {"COMP_CWORD": "2"}, COMP_WORDS="sfumato plot --ki").split() == ["--kind"]
    assert "frontier" in completed(**asked | {"COMP_CWORD": "3"}, COMP_WORDS="sfumato plot --kind f")


def test_a_mistake_of_ours_is_not_hidden(run, place, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(certificate, "published", broken)
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


@pytest.mark.long
@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_the_tour_for_programs(run, tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    outcome = run("demo", "--folder", tmp_path / "tour", "--patients", 300, "--json")
    assert outcome.exit_code == 0, outcome.stderr
    shown = json.loads(outcome.stdout)
    assert shown["spent"] == {"epsilon": "8/5", "delta": "1/1000000"}
    assert [release["repeated"] for release in shown["releases"]] == [False, False, False, True, False]
    assert [release["noise"] for release in shown["releases"]] == [
        "laplace",
        "laplace",
        "gaussian",
        "laplace",
        "laplace",
    ]
    assert len(shown["share"]["values"]) == len(shown["share"]["intervals"]) == 12
    assert "Nothing was read and nothing was spent" in shown["refused"]
    assert all(Path(file).exists() for file in shown["files"])
    assert shown["next"][1].startswith("sfumato verify ")


def test_the_program_is_named_as_it_is_typed(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert demo._program() == "sfumato"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv" / "bin" / "sfumato")])
    assert demo._program() == os.path.join(".venv", "bin", "sfumato")


class Screen(io.StringIO):
    """A terminal of 30 columns."""

    def isatty(self) -> bool:
        return True


def test_a_long_text_is_broken_between_words_on_a_terminal_alone(monkeypatch):
    text = "word " * 20 + "\x1b[2J\n\nnext"
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    for screen, most in ((Screen(), 30), (io.StringIO(), 200)):
        monkeypatch.setattr(sys, "stdout", screen)
        say_paragraphs(text)
        lines = screen.getvalue().splitlines()
        assert max(map(len, lines)) <= most
        assert (len(lines) > 3) == (most == 30)
        assert "\x1b" not in screen.getvalue()
