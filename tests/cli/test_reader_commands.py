"""Somebody who has a copy of the database, the public key and nothing else: what commands say to a reader."""

import shutil

import pytest

from sfumato.cli.exits import Exit
from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.governance import settings
from tests.cli.institution import done, refused

SETTINGS = 'url = "ledger.db"\nkey = "ledger.key"\nanchor = "anchor"\nroot = "root.key.pub"\n'


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A folder with the database of a ledger with a root and a witness, the root's public key and a published head."""
    ours, away = tmp_path / "ours", tmp_path / "reader"
    ours.mkdir()
    away.mkdir()
    SigningKey.new().save(ours / "root.key")
    settings.made(ours, root=ours / "root.key", next_root=None)
    ledger = settings.opened(ours)
    ledger.lease.name(SigningKey.new().public_text, lease=Budget(epsilon=1), reason="decided by the tests")
    (away / "head.json").write_text(ledger.head().text + "\n", "utf-8")
    ledger.close()
    shutil.copy(ours / "ledger.db", away)
    shutil.copy(ours / "root.key.pub", away)
    (away / "ledger.toml").write_text(SETTINGS, "utf-8")
    monkeypatch.chdir(away)
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    return away


def test_a_reader_without_the_anchor_is_not_told_what_a_witness_has_seen(run, reader):
    said = done(run, "ledger", "verify", "--key", "root.key.pub")
    assert "has seen nothing" not in said
    assert "lies beside the anchor, which you cannot read" in said
    assert "0 published heads" not in said
    assert "1 published head agrees. The anchor was not asked" in done(
        run, "ledger", "verify", "--key", "root.key.pub", "--head", "head.json"
    )
    outcome = run("ledger", "head", "--key", "root.key.pub")
    assert outcome.exit_code == 0
    assert "has seen nothing" not in outcome.stderr


def test_a_reader_signs_a_checkpoint_with_a_key_of_their_own(run, reader):
    checkpoint = ("--key", "root.key.pub", "--checkpoint", "seen.json")
    said = refused(run, "ledger", "verify", *checkpoint)
    assert "--verifier-key FILE" in said
    assert "key new" not in said  # a new key in the place of the ledger's would be a trap
    SigningKey.new().save(reader / "auditor.key")
    done(run, "ledger", "verify", *checkpoint, "--verifier-key", "auditor.key")
    assert (reader / "seen.json").is_file()


def test_a_reader_asks_how_the_ledger_is(run, reader):
    read = ("--key", "root.key.pub", "--head", "head.json")
    assert "nothing needs attention" in done(run, "ledger", "health", *read)
    assert run("ledger", "health", "--key", "root.key.pub", "--metrics").exit_code == Exit.DONE
