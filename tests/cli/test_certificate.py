"""``verify``, ``explain`` and ``report``: on good, tampered, foreign, broken and hostile files."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.signature import SigningKey

HEAVY = ("ibis", "duckdb", "torch", "pandas", "pyarrow", "altair", "numpy", "scipy")


def edit(file: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf-8")


def without_heavy_parts(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own in which no engine and no framework can be imported."""
    script = (
        f"import sys\nfor name in {HEAVY!r}: sys.modules[name] = None\n"
        "from sfumato.cli import main\nsys.argv[0] = 'sfumato'\nmain()\n"
    )
    command = [sys.executable, "-W", "error", "-c", script, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)


def test_a_certificate_is_consistent_and_nobody_is_authenticated_without_a_key(run, place):
    outcome = run("verify", place / "ili.json")
    assert outcome.exit_code == 0
    assert outcome.stdout == "consistent, not authenticated: no trusted key was given\n"


def test_the_trusted_key_authenticates_as_file_and_as_text(run, place):
    for key in (place / "key.pub", (place / "key.pub").read_text().strip()):
        outcome = run("verify", place / "ili.json", "--key", key)
        assert (outcome.exit_code, outcome.stdout) == (0, "consistent, and signed by the trusted key\n")


def test_another_key_is_found_out(run, place):
    outcome = run("verify", place / "ili.json", "--key", SigningKey.new().public_text)
    assert outcome.exit_code == 3
    assert "signature.key: is not the trusted key" in outcome.stdout


def test_a_key_that_is_none_is_an_error_and_not_a_finding(run, place):
    outcome = run("verify", place / "ili.json", "--key", place / "nowhere.pub")
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert "64 hexadecimal digits" in outcome.stderr


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("statement.values", lambda document: document["statement"]["values"].__setitem__(0, 10**6)),
        ("statement.spend.epsilon", lambda document: document["statement"]["spend"].update(epsilon="1/4")),
        ("statement.account.name", lambda document: document["statement"]["account"].update(name="nobody")),
        ("signature.value", lambda document: document["signature"].update(value="0" * 128)),
        ("seals", lambda document: document.pop("seals")),
    ],
)
def test_what_was_touched_is_named(run, place, field, change):
    edit(place / "ili.json", change)
    outcome = run("verify", place / "ili.json")
    assert outcome.exit_code == 3
    assert any(line.startswith(f"{field}: ") for line in outcome.stdout.splitlines())


def test_the_outcome_can_be_read_by_a_program(run, place):
    good = run("verify", place / "ili.json", "--key", place / "key.pub", "--json")
    assert (good.exit_code, json.loads(good.stdout)) == (
        0,
        {"consistent": True, "authenticated": True, "findings": []},
    )
    edit(place / "ili.json", lambda document: document["statement"].update(issued="yesterday"))
    bad = run("verify", place / "ili.json", "--json")
    assert bad.exit_code == 3
    assert "statement.issued" in {finding["field"] for finding in json.loads(bad.stdout)["findings"]}


@pytest.mark.few(6)
@pytest.mark.parametrize("command", ["verify", "explain", "report"])
@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\xff\xfe",
        b"a letter",
        b"[]",
        b'{"a": 0.5}',
        b'{"version": 1' + b"0" * 5000 + b"}",
        b"[" * 100_000,
    ],
    ids=["missing", "empty", "bytes", "text", "list", "float", "digits", "nesting"],
)
def test_what_is_no_certificate_is_refused_in_plain_words(run, place, command, content):
    file = place / "other.json"
    if content is not None:
        file.write_bytes(content)
    outcome = run(command, file)
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("sfumato: ")
    assert "Traceback" not in outcome.stderr
    assert not (place / "other.html").exists()


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["half a pair \ud800", "1" * 5000 + "/1", 10**4000])
@pytest.mark.parametrize("part", [("dataset", "name"), ("account", "spent"), ("limit", "rows_per_group"), ("issued",)])
def test_a_hostile_value_anywhere_is_no_traceback(run, place, name, part):
    def put(document: Any) -> None:
        holder = document["statement"]
        for step in part[:-1]:
            holder = holder[step]
        holder[part[-1]] = name

    edit(place / "ili.json", put)
    for command in ("verify", "explain"):
        outcome = run(command, place / "ili.json")
        assert outcome.exit_code in (1, 3)
        assert isinstance(outcome.exception, SystemExit)


def test_a_certificate_cannot_steer_the_terminal(run, place):
    edit(place / "ili.json", lambda document: document.update({"\x1b[2Jfine\u202e": 1}))
    outcome = run("verify", place / "ili.json")
    assert outcome.exit_code == 3
    assert "\x1b" not in outcome.stdout
    assert "\u202e" not in outcome.stdout
    assert "\\x1b[2Jfine\\u202e: is not a part of a certificate" in outcome.stdout


def test_an_explanation_in_two_languages(run, place):
    english, chinese = run("explain", place / "ili.json"), run("explain", place / "ili.json", "--lang", "zh")
    assert english.exit_code == chinese.exit_code == 0
    assert "noise was added on purpose" in english.stdout
    assert "随机噪声" in chinese.stdout
    assert "stored answer" not in english.stdout


def test_another_language_is_a_wrong_usage(run, place):
    outcome = run("explain", place / "ili.json", "--lang", "fr")
    assert outcome.exit_code == 2
    assert "zh-Hans" in outcome.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize("audience", ["public", "patient", "clinician", "manager", "board"])
def test_every_audience_has_its_text(run, place, audience):
    plain = run("explain", place / "ili.json", "--audience", audience)
    program = run("explain", place / "ili.json", "--audience", audience, "--json", "--lang", "zh")
    assert plain.exit_code == program.exit_code == 0, plain.stderr
    answer = json.loads(program.stdout)
    assert (answer["language"], answer["audience"]) == ("zh", audience)
    assert all(re.search("[\u4e00-\u9fff]", paragraph) for paragraph in answer["paragraphs"])
    if audience != "public":
        assert plain.stdout != run("explain", place / "ili.json").stdout


def test_another_audience_is_a_wrong_usage(run, place):
    assert run("explain", place / "ili.json", "--audience", "press").exit_code == 2


@pytest.mark.long
def test_a_report_in_one_language(run, place):
    outcome = run("report", place / "ili.json", "--lang", "zh", "--json")
    said = json.loads(outcome.stdout)
    assert (said["written"], said["languages"]) == (f"{place}/ili.html", ["zh"])
    assert '<html lang="zh-Hans"' in (place / "ili.html").read_text("utf-8")


@pytest.mark.parametrize("command", ["explain", "report"])
def test_nothing_is_made_of_a_tampered_or_foreign_certificate(run, place, command):
    foreign = run(command, place / "ili.json", "--key", SigningKey.new().public_text)
    edit(place / "ili.json", lambda document: document["statement"]["values"].__setitem__(0, 10**6))
    tampered = run(command, place / "ili.json")
    for outcome, field in ((foreign, "signature.key"), (tampered, "statement.values")):
        assert outcome.exit_code == 1
        assert outcome.stdout == ""
        assert field in outcome.stderr
    assert not (place / "ili.html").exists()


@pytest.mark.long
def test_a_report_lies_beside_its_certificate_or_where_it_is_wanted(run, place):
    beside = run("report", place / "ili.json")
    elsewhere = run("report", place / "ili.json", "-o", place / "page.html", "--key", place / "key.pub")
    assert beside.exit_code == elsewhere.exit_code == 0
    assert (place / "ili.html").read_text("utf-8") == (place / "page.html").read_text("utf-8")
    assert "<!doctype html>" in (place / "page.html").read_text("utf-8")


def test_a_report_never_takes_the_place_of_its_certificate(run, place):
    before = (place / "ili.json").read_bytes()
    outcome = run("report", place / "ili.json", "-o", place / "ili.json")
    assert outcome.exit_code == 1
    assert "nothing was written" in outcome.stderr
    assert (place / "ili.json").read_bytes() == before


@pytest.mark.long
def test_a_report_that_cannot_be_written_says_why(run, place):
    outcome = run("report", place / "ili.json", "-o", place / "no" / "such.html")
    assert outcome.exit_code == 1
    assert "No such file or directory" in outcome.stderr


def test_verify_needs_no_engine(place):
    outcome = without_heavy_parts("verify", place / "ili.json", "--key", place / "key.pub")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout == "consistent, and signed by the trusted key\n"


@pytest.mark.long
def test_explain_needs_no_engine(place):
    outcome = without_heavy_parts("explain", place / "ili.json", "--lang", "zh")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "随机噪声" in outcome.stdout


@pytest.mark.long
def test_report_needs_no_engine_and_does_without_a_picture(place):
    outcome = without_heavy_parts("report", place / "ili.json")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "<svg" not in (place / "ili.html").read_text("utf-8")


@pytest.mark.long
def test_a_process_reports_an_error_without_a_traceback(place):
    outcome = without_heavy_parts("verify", place / "nowhere.json")
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("sfumato: ")
    assert "Traceback" not in outcome.stderr
