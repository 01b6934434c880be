"""The ledger by commands: made once, verified, held to what was published, exported, recovered."""

import json
import shutil
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from sfumato.cli.exits import Exit
from sfumato.cli.protected import unit_of
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.units import describe, user, weight
from sfumato.errors import InvalidInput
from sfumato.governance import settings
from sfumato.governance.anchor import SignedHead
from sfumato.governance.entries import Row
from tests.cli.institution import done, refused


def rewritten(database: Path, statement: str) -> None:
    """Do what only somebody with the database's password can."""
    with sqlite3.connect(database) as connection:
        for trigger in ("record_no_update", "record_no_delete"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        connection.execute(statement)
    connection.close()


def test_init_says_where_everything_is_and_what_the_anchor_cannot_do_there(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = done(run, "ledger", "init", "books")
    assert "settings: books/ledger.toml" in said
    assert "warning:  the anchor lies on the same disk as the database" in said
    assert "is there already" in refused(run, "ledger", "init", "books")
    told = json.loads(done(run, "ledger", "init", "more", "--json"))
    assert set(told) == {"settings", "database", "key", "anchor", "warning"}
    assert told["settings"] == "more/ledger.toml"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:xyzzy4711@127.0.0.1:1/ledger?connect_timeout=2",
        "postgresql://ada:a@127.0.0.1:1/ledger?connect_timeout=2&password=xyzzy4711",
    ],
)
def test_init_never_prints_a_password(run, tmp_path, url):
    pytest.importorskip("psycopg")
    said = refused(run, "ledger", "init", tmp_path, "--url", url)
    assert "cannot be used" in said
    assert "xyzzy4711" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("ledger", "verify"),
        ("ledger", "head"),
        ("ledger", "expire"),
        ("account", "list"),
        ("budget", "show"),
        ("budget", "requests"),
        ("ledger", "recover", "--reason", "x"),
    ],
)
def test_without_a_ledger_everything_says_how_to_get_one(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    said = refused(run, *words)
    assert "there is no settings file ledger.toml" in said
    assert "sfumato ledger init" in said
    assert list(tmp_path.iterdir()) == []


def test_the_ledger_is_named_by_option_or_environment(run, here, tmp_path, monkeypatch):
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    assert "hospital" in done(run, "account", "list", "--ledger", here / "ledger.toml")
    assert "hospital" in done(run, "account", "list", "--ledger", here / "ledger.db")
    monkeypatch.setenv("SFUMATO_LEDGER", str(here))
    assert "hospital" in done(run, "account", "list")


def test_a_sound_ledger_verifies_and_agrees_with_its_published_heads(run, here):
    done(run, "ledger", "head", "-o", "first.json")
    done(run, "ledger", "dataset", "visits", "--version", "2", "--population", "patients", "--epsilon", 4)
    done(run, "ledger", "head", "-o", "second.json")
    said = done(run, "ledger", "verify", "--head", "first.json", "--head", "second.json")
    assert "6 entries" in said
    assert "2 published heads agree" in said
    told = {"holds": True, "heads": 0, "findings": [], "since": 0, "replayed": True, "checkpoint": None}
    assert json.loads(done(run, "ledger", "verify", "--json")) == told
    assert "already exists" in refused(run, "ledger", "head", "-o", "first.json")
    assert "is not a signed head" in refused(run, "ledger", "verify", "--head", "reasons.toml")


def test_an_edited_entry_is_named_with_its_number_and_exit_code(run, here):
    rewritten(here / "ledger.db", "UPDATE record SET body = replace(body, 'for 2026', 'for 2027') WHERE number = 2")
    outcome = run("ledger", "verify")
    assert outcome.exit_code == Exit.FOUND_WRONG
    assert "entry 2: was edited" in outcome.stdout
    assert "does not hold" in outcome.stdout
    found = run("ledger", "verify", "--json")
    assert found.exit_code == Exit.FOUND_WRONG
    assert json.loads(found.stdout)["findings"][0]["entry"] == 2


def test_a_refilled_balance_is_found_though_every_entry_is_in_place(run, here):
    rewritten(here / "ledger.db", "UPDATE balance SET cap_epsilon = '9/1' WHERE name = 'account hospital'")
    outcome = run("ledger", "verify")
    assert outcome.exit_code == Exit.FOUND_WRONG
    assert "account hospital" in outcome.stdout


def test_a_restored_backup_is_refused_verified_as_short_and_recovered_by_a_decision(run, here):
    shutil.copy(here / "ledger.db", here / "backup.db")
    done(run, "ledger", "dataset", "laboratory", "--version", "1", "--population", "patients", "--epsilon", 1)
    shutil.copy(here / "backup.db", here / "ledger.db")
    for words in (("budget", "show"), ("ledger", "head"), ("ledger", "expire")):
        assert "restored from an old backup" in refused(run, *words)
    outcome = run("ledger", "verify")
    assert outcome.exit_code == Exit.FOUND_WRONG
    assert "entry 6: is missing" in outcome.stdout
    assert "say why" in refused(run, "ledger", "recover", "--reason", " ")
    assert "--charge-epsilon" in refused(run, "ledger", "recover", "--reason", "x", "--charge-delta", "0.1")
    decided = ("ledger", "recover", "--reason", "the disk failed", "--charge-epsilon", "1/2", "--json")
    told = json.loads(done(run, *decided))
    assert told.pop("basis") == "the anchor was at entry 6"
    assert told == {"entry": 7, "lost": 1, "charged": {"epsilon": "1/2", "delta": "0"}, "whole": False, "closes": True}
    spent = json.loads(done(run, "budget", "show", "--json"))["accounts"][0]["spent"]
    assert spent == {"epsilon": "1/2", "delta": "0"}
    assert "7 entries" in done(run, "ledger", "verify")
    assert "there is nothing to recover" in refused(run, "ledger", "recover", "--reason", "again")


def test_the_export_is_the_record_and_its_digests_follow(run, here):
    lines = done(run, "ledger", "export").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["number"] for row in rows] == list(range(1, 6))
    assert done(run, "ledger", "export", "-o", "record.jsonl") == "written: record.jsonl (5 entries)\n"
    assert (here / "record.jsonl").read_text("utf-8").splitlines() == lines
    assert json.loads(done(run, "ledger", "export", "--json")) == rows
    ledger = settings.opened(here)
    for row, line in zip(rows, lines, strict=True):
        body = line.partition('"entry":')[2][:-1]
        texts = (row["previous"], row["digest"], row["nonce"])
        assert Row(row["number"], row["entry"]["kind"], body, *texts).expected == row["digest"]
        assert SignedHead.read(row["head"]).holds((here / "ledger.key.pub").read_text("utf-8").strip())
    assert rows[-1]["digest"] == ledger.head().head.digest
    ledger.close()


def test_a_control_character_in_the_record_does_not_reach_the_terminal(run, here):
    done(run, "account", "open", "x", "--unit", "record", "--epsilon", 1, "--reason", "\x1b[2Jgone")
    said = done(run, "ledger", "export")
    assert "\x1b" not in said
    assert json.loads(said.splitlines()[-1])["entry"]["reason"] == "\x1b[2Jgone"


def test_terms_are_declared_and_a_broken_file_changes_nothing(run, here):
    assert "'visits' may be used for research until 2028-12-31" in done(run, "ledger", "terms", "visits-terms.toml")
    (here / "broken.toml").write_text('kind = "terms"\nversion = 1\n', "utf-8")
    assert "broken.toml: until is missing" in refused(run, "ledger", "terms", "broken.toml")
    assert "6 entries" in done(run, "ledger", "verify")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "words",
    [
        ("account", "open", "lab", "--unit", "record", "--reason", "x"),
        ("ledger", "population", "p", "--unit", "record", "--reason", "x"),
        ("ledger", "dataset", "d", "--version", "1", "--population", "patients"),
    ],
    ids=" ".join,
)
def test_an_amount_that_is_none_changes_nothing(run, here, words):
    for epsilon in ("0", "-1", "nan", "inf", "1e999", "", "one"):
        assert "epsilon" in refused(run, *words, f"--epsilon={epsilon}")
    assert "5 entries" in done(run, "ledger", "verify")


def test_accounts_are_opened_from_the_top_and_listed(run, here):
    who = ("--unit", "user:patient_id", "--reason", "x")
    one = ("--epsilon", 1)
    assert "'hospital/surgery' is not open" in refused(run, "account", "open", "hospital/surgery/a", *who, *one)
    assert "is open already" in refused(run, "account", "open", "hospital", *who, *one)
    other = ("--unit", "record", "--reason", "x")
    assert "do not add up" in refused(run, "account", "open", "hospital/x", *other, *one)
    words = ("--delta", "1e-6", "--epsilon", 1, "--method")
    assert "--order" not in done(run, "account", "open", "hospital/rho", *who, *words, "zcdp")
    assert "order" in refused(run, "account", "open", "hospital/alpha", *who, *words, "rdp")
    done(run, "account", "open", "hospital/alpha", *who, *words, "rdp", "--order", 20)
    listed = json.loads(done(run, "account", "list", "--json"))["accounts"]
    assert {each["account"]: each["method"] for each in listed} == {
        "hospital": "basic",
        "hospital/alpha": "rdp",
        "hospital/oncology": "basic",
        "hospital/rho": "zcdp",
    }
    assert "hospital/oncology" in done(run, "account", "list")


def test_a_cap_is_shared_out_and_the_rest_is_a_reserve(run, here):
    asked = ("account", "allot", "hospital/oncology", "--reason", "2026", "--rule")
    assert "is not a number of planned releases" in refused(run, *asked, "proportional", "--share", "a=1/2")
    assert "is not a share" in refused(run, *asked, "reserve", "--share", "a")
    assert "above 1" in refused(run, *asked, "reserve", "--share", "a=1", "--share", "b=1/2")
    told = json.loads(done(run, *asked, "reserve", "--share", "trials=1/2", "--share", "audit=1/4", "--json"))
    assert told["reserve"] == {"epsilon": "1/2", "delta": "1/4000000"}
    assert told["shares"]["trials"]["epsilon"] == "1"
    said = done(run, *asked[:2], "hospital", *asked[3:], "proportional", "--share", "x=2", "--share", "y=1")
    assert "hospital/x: ε = 8/3" in said


def test_windows_need_an_event_unit_and_a_lifetime(run, here):
    asked = ("--every", "monthly", "--entry", "monthly", "--epsilon", 1, "--lifetime-epsilon", 24)
    assert "has no entries" in refused(run, "account", "windows", "hospital", *asked)
    done(run, "account", "open", "register", "--unit", "event", "--epsilon", 12, "--reason", "x")
    assert "the privacy budget is ε = 1 for each monthly window" in done(run, "account", "windows", "register", *asked)
    found = json.loads(done(run, "budget", "show", "--json"))["windows"]
    assert found[0]["lifetime"]["cap"] == {"epsilon": "24", "delta": "0"}
    assert "has windows already" in refused(run, "account", "windows", "register", *asked)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("record", "record"),
        ("user:id", "user (id)"),
        ("family:3:id", "family of 3 (id)"),
        ("event", "event"),
        ("edge", "edge"),
        ("node:20", "node (degree at most 20)"),
        ("client", "client"),
    ],
)
def test_units_are_read(text, words):
    assert describe(unit_of(text, "replace")) == f"{words}, replace"
    assert unit_of("weight:1/2", "add/remove") == weight(bound="1/2", relation="add/remove")


@pytest.mark.parametrize(
    "text", ["", "person", "user", "user:", "record:x", "family:3", "family:x:i", "node:", "node:x"]
)
def test_what_is_no_unit_is_refused(text):
    with pytest.raises(InvalidInput, match="is not a unit"):
        unit_of(text, "replace")


def test_stale_charges_are_settled(run, here):
    ledger = settings.opened(here)
    account = ledger.account("hospital/oncology", unit=user("patient_id", relation="add/remove"))
    for queued in (True, False):
        account.reserve(
            Budget(epsilon="1/4"), datasets=[Dataset(name="visits", edition="1")], queued=queued, lasts=timedelta(0)
        )
    ledger.close()
    before = json.loads(done(run, "budget", "show", "--json"))["accounts"][1]
    assert before["reserved"]["epsilon"] == before["spent"]["epsilon"] == "1/2"
    said = done(run, "ledger", "expire")
    assert "charge 6: given back, nothing was read" in said
    assert "charge 7: counts as spent" in said
    after = json.loads(done(run, "budget", "show", "--json"))["accounts"][1]
    assert (after["reserved"]["epsilon"], after["spent"]["epsilon"]) == ("0", "1/4")
    assert json.loads(done(run, "ledger", "expire", "--json")) == {"charges": []}


@pytest.mark.long
def test_where_a_board_sits_its_quorum_agrees_to_a_recovery(run, seated):
    shutil.copy(seated / "ledger.db", seated / "backup.db")
    done(run, "ledger", "dataset", "laboratory", "--version", "1", "--population", "patients", "--epsilon", 1)
    shutil.copy(seated / "backup.db", seated / "ledger.db")
    words = ("ledger", "recover", "--reason", "the disk failed")
    for few in ((), ("--by", "ada"), ("--by", "ada", "--by", "zoe"), ("--by", "ada", "--by", "ada")):
        refused(run, *words, *few)
    assert "the agreement of 'ben' is not signed" in refused(run, *words, "--by", "ada=ada.key", "--by", "ben=cho.key")
    assert "restored from an old backup" in refused(run, "budget", "show")
    assert "1 entry lost" in done(run, *words, "--by", "ada=ada.key", "--by", "ben=ben.key")
    done(run, "ledger", "verify")


def test_the_clock_is_confirmed_on_record(run, here):
    said = done(run, "ledger", "clock", "--reason", "closed over the summer")
    assert said.startswith("the clock is confirmed: 20")
    last = json.loads(done(run, "ledger", "export").splitlines()[-1])["entry"]
    assert (last["kind"], last["reason"]) == ("ledger.clock", "closed over the summer")
    assert "at" in json.loads(done(run, "ledger", "clock", "--reason", "again", "--json"))


def test_a_lost_anchor_is_refused_and_a_recovery_leaves_nothing(run, here):
    (here / "ledger.anchor").unlink()
    assert "the anchor" in refused(run, "budget", "show")
    outcome = run("ledger", "verify")
    assert outcome.exit_code == Exit.FOUND_WRONG
    assert "is missing" in outcome.stdout
    said = done(run, "ledger", "recover", "--reason", "x", "--charge-epsilon", 1)
    assert "nothing is left under any cap" in said
    shown = json.loads(done(run, "budget", "show", "--json"))["accounts"][0]
    assert shown["spent"]["epsilon"] == shown["cap"]["epsilon"]


@pytest.mark.long
def test_the_commands_work_on_a_server_too(run, tmp_path, monkeypatch, postgres_url):
    from tests.governance.homes import dropped, postgres_home

    home = postgres_home(tmp_path, postgres_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    try:
        assert "warning" not in done(run, "ledger", "init", "--url", home.url)
        done(run, "account", "open", "hospital", "--unit", "user:id", "--epsilon", 1, "--reason", "x")
        done(run, "ledger", "population", "people", "--unit", "user:id", "--epsilon", 1, "--reason", "x")
        done(run, "ledger", "dataset", "visits", "--version", "1", "--population", "people", "--epsilon", 1)
        assert "hospital" in done(run, "budget", "show")
        assert "4 entries" in done(run, "ledger", "verify")
        assert "is there already" in refused(run, "ledger", "init")
        assert "holds a ledger already" in refused(run, "ledger", "init", "again", "--url", home.url)
    finally:
        dropped(home, postgres_url)


@pytest.mark.long
def test_an_auditor_verifies_an_export_with_a_head_and_a_key_alone(run, here, tmp_path):
    """From the public head any edited, removed, moved or cut-off entry is found, without database or secret key."""
    done(run, "ledger", "export", "-o", "record.jsonl")
    done(run, "ledger", "head", "-o", "head.json")
    public = (here / "ledger.key.pub").read_text("utf-8").strip()
    lines = (here / "record.jsonl").read_text("utf-8").splitlines(keepends=True)
    for name in ("ledger.db", "ledger.key", "ledger.anchor", "ledger.toml"):
        (here / name).unlink()
    ask = ("ledger", "verify", "--export", "record.jsonl")
    assert "Nothing outside the file was asked" in done(run, *ask)
    assert "1 published head and the trusted key agree" in done(run, *ask, "--head", "head.json", "--key", public)
    broken = {
        "edited": [*lines[:2], lines[2].replace('"reason":"', '"reason":"not '), *lines[3:]],
        "removed": [*lines[:2], *lines[3:]],
        "moved": [lines[0], lines[2], lines[1], *lines[3:]],
        "cut": lines[:-1],
    }
    for name, text in broken.items():
        (here / "record.jsonl").write_text("".join(text), "utf-8")
        outcome = run(*ask, "--head", "head.json", "--key", public)
        assert outcome.exit_code == Exit.FOUND_WRONG, name
        assert "This export does not hold" in outcome.stdout
    (here / "record.jsonl").write_text("".join(lines), "utf-8")
    other = run(*ask, "--head", "head.json", "--key", SigningKey.new().public_text)
    assert "another key than the one that is trusted" in other.stdout
    for text in ("", "{}\n", "not json\n", '{"number":1}\n', lines[0].replace('"number":1', '"number":"1"')):
        (here / "record.jsonl").write_text(text, "utf-8")
        assert "nothing was verified" in refused(run, *ask)
