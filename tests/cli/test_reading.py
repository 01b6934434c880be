"""Commands that only read need the public key of the ledger, and never ask for the private one."""

import json

import pytest

from sfumato.core.signature import SigningKey
from sfumato.governance import settings
from tests.cli.institution import acting, done, refused

READING = [
    ("budget", "show"),
    ("budget", "requests"),
    ("account", "list"),
    ("ledger", "head"),
    ("ledger", "export"),
    ("ledger", "verify"),
    ("releases",),
    ("evidence", "--all", "--out", "pack"),
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_it_runs_without_the_private_key(run, seated, words):
    kept = done(run, *words)
    (seated / "ledger.key").unlink()
    words = [word if word != "pack" else "again" for word in words]
    assert done(run, *words).replace("again", "pack") == kept
    (seated / "ledger.key.pub").rename(seated / "auditor.pub")
    assert "names is not there" in refused(run, *words[:-1], *(("third",) if words[-1] == "again" else words[-1:]))
    words = [word if word != "again" else "fourth" for word in words]
    assert done(run, *words, "--key", "auditor.pub").replace("fourth", "pack") == kept


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_who_has_no_anchor_is_told_what_that_means(run, seated, words):
    done(run, "ledger", "head", "-o", "head.json")
    for name in ("ledger.key", "ledger.anchor"):
        (seated / name).unlink()
    outcome = run(*words, "--key", "ledger.key.pub")
    assert outcome.exit_code == 0
    assert "an old copy" in outcome.stdout + outcome.stderr
    assert "would not be noticed" in outcome.stdout + outcome.stderr
    if words == ("ledger", "head"):
        return
    words = [word if word != "pack" else "again" for word in words]
    outcome = run(*words, "--key", "ledger.key.pub", "--head", "head.json")
    assert outcome.exit_code == 0
    assert "old copy" not in outcome.stdout + outcome.stderr


def test_what_programs_read_is_not_mixed_with_the_note(run, seated):
    (seated / "ledger.anchor").unlink()
    said = run("budget", "show", "--json", "--key", "ledger.key.pub")
    assert json.loads(said.stdout)["entries"] == 7
    assert "old copy" in said.stderr


def test_what_writes_asks_for_the_private_key(run, seated):
    (seated / "ledger.key").unlink()
    for words in (
        ("ledger", "expire"),
        ("ledger", "terms", "visits-terms.toml"),
        ("budget", "veto", *acting("eva"), "--community", "riverside", "--dataset", "visits", "--reason", "no"),
    ):
        assert "ledger.key that ledger.toml names is not there" in refused(run, *words)


def test_a_private_key_is_no_trusted_key(run, seated):
    assert "64 hexadecimal digits" in refused(run, "budget", "show", "--key", "ledger.key")
    assert "another key" in refused(run, "budget", "show", "--key", SigningKey.new().public_text)


def test_a_ledger_older_than_a_published_head_is_refused(run, seated):
    old = (seated / "ledger.db").read_bytes()
    done(run, "account", "open", "hospital/urology", "--unit", "user:patient_id", "--epsilon", 1, "--reason", "new")
    done(run, "ledger", "head", "-o", "head.json")
    (seated / "ledger.db").write_bytes(old)
    (seated / "ledger.anchor").unlink()
    assert "restored from an old backup" in refused(
        run, "budget", "show", "--key", "ledger.key.pub", "--head", "head.json"
    )
    assert settings.reading("ledger.toml", key="ledger.key.pub").held_to_nothing
