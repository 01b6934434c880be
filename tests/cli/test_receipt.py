"""Receipts by commands: written beside a certificate, checked without the ledger, refused in clear words."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.exits import Exit
from sfumato.core.certificate import Certificate
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.governance import settings
from tests.cli.institution import done, furnished, refused

ROWS = pa.table({"patient_id": [1, 2, 3, 3], "ward": [1, 1, 2, 2]})


def released(name: str, *, epsilon: str) -> Release:
    """A release of the institution here, its certificate in a file."""
    book = settings.opened(Path("ledger.toml"))
    unit = sf.user("patient_id", relation="add/remove")
    vault = sf.Vault(unit=unit, ledger=book, account="hospital/oncology")
    table = vault.table(ROWS, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    release = table.count().release(epsilon=epsilon)
    release.certificate.save(name)
    book.close()
    return release


def wrong(run, *words: object) -> str:
    outcome = run("verify", *words)
    assert outcome.exit_code == Exit.FOUND_WRONG, outcome.stdout
    return str(outcome.stdout)


KEY = ("--key", "ledger.key.pub")


def test_a_receipt_is_written_beside_its_certificate_and_checked_without_the_ledger(run, here, tmp_path_factory):
    released("wards.json", epsilon="1/4")
    assert done(run, "receipt", "wards.json") == "written: wards.receipt.json (entry 7, as of the head of entry 7)\n"
    done(run, "ledger", "head", "-o", "head.json")
    elsewhere = tmp_path_factory.mktemp("reader")
    for name in ("wards.json", "wards.receipt.json", "head.json", "ledger.key.pub"):
        shutil.copy(here / name, elsewhere)
    files = (elsewhere / "wards.json", "--receipt", elsewhere / "wards.receipt.json")
    key = ("--key", elsewhere / "ledger.key.pub")
    said = done(run, "verify", *files, *key)
    assert said.startswith("consistent, and signed by the trusted key\nreceipt: entry 7 of ledger ")
    assert "not final: no published head covers the entry" in said
    assert "the key that signs certificates was taken for the ledger's" in said
    own = done(run, "verify", *files, *key, "--ledger-key", elsewhere / "ledger.key.pub")
    assert "not final" in own
    assert "was taken for the ledger's" not in own
    said = done(run, "verify", *files, *key, "--head", elsewhere / "head.json")
    assert said.endswith("final: whoever changes entry 7 contradicts the published head\n")
    told = json.loads(done(run, "verify", *files, *key, "--head", elsewhere / "head.json", "--json"))
    assert told["receipt"] | {"ledger": "", "published": []} == {
        "holds": True,
        "problems": [],
        "entry": 7,
        "ledger": "",
        "as_of": 7,
        "head_authenticated": True,
        "published": [],
        "final_by": 7,
    }
    said = done(run, "verify", *files)
    assert "not authenticated: no trusted key was given" in said


def test_a_receipt_that_leads_to_a_later_published_head_replaces_the_earlier_one(run, here):
    released("one.json", epsilon="1/4")
    done(run, "receipt", "one.json")
    released("two.json", epsilon="1/8")
    done(run, "ledger", "head", "-o", "head.json")
    said = wrong(run, "one.json", "--receipt", "one.receipt.json", *KEY, "--head", "head.json")
    assert "does not lead to the published head of entry 9. Get one that does: sfumato receipt" in said
    told = json.loads(done(run, "receipt", "one.json", "--head", "head.json", "--json"))
    assert told == {"written": "one.receipt.json", "entry": 7, "as_of": 9, "heads": 1}
    said = done(run, "verify", "one.json", "--receipt", "one.receipt.json", *KEY, "--head", "head.json")
    assert "final: " in said
    Path("mine.json").write_text("{}", "utf-8")
    assert "is not a receipt; nothing was written" in refused(run, "receipt", "one.json", "-o", "mine.json")
    assert "is the certificate itself" in refused(run, "receipt", "one.json", "-o", "one.json")
    assert Path("mine.json").read_text("utf-8") == "{}"


def test_a_certificate_signed_with_the_real_key_and_never_in_the_ledger_is_refused(run, here):
    release = released("wards.json", epsilon="1/4")
    done(run, "receipt", "wards.json")
    said = release.statement
    forged = replace(said, values=tuple(value + 1 for value in said.values))
    Certificate.sign(forged, SigningKey.load("ledger.key")).save("forged.json")
    assert done(run, "verify", "forged.json", *KEY) == "consistent, and signed by the trusted key\n"
    said = wrong(run, "forged.json", "--receipt", "wards.receipt.json", *KEY)
    assert "this certificate is not what entry 7 stores" in said
    assert "the certificate was made without the ledger" in said
    assert "never stored the certificate of release" in refused(run, "receipt", "forged.json")


def test_receipts_of_others_and_altered_ones_are_refused(run, here, tmp_path_factory, monkeypatch):
    released("one.json", epsilon="1/4")
    released("two.json", epsilon="1/8")
    done(run, "receipt", "one.json")
    done(run, "receipt", "two.json")
    assert "is not what entry 9 stores" in wrong(run, "one.json", "--receipt", "two.receipt.json", *KEY)
    altered = json.loads(Path("one.receipt.json").read_text("utf-8"))
    altered["path"][0] = "0" * 64
    Path("altered.json").write_text(json.dumps(altered), "utf-8")
    assert "is not what entry 7 stores" in wrong(run, "one.json", "--receipt", "altered.json", *KEY)
    other = tmp_path_factory.mktemp("other")
    with monkeypatch.context() as patch:
        patch.chdir(other)
        furnished(run)
        released("three.json", epsilon="1/4")
        done(run, "receipt", "three.json")
    said = wrong(run, "one.json", "--receipt", other / "three.receipt.json", *KEY)
    assert "is not signed by the trusted key of the ledger" in said
    assert "was charged to ledger" in said
    keys = ("--key", "ledger.key.pub", "--ledger-key", other / "ledger.key.pub")
    assert "was charged to ledger" in wrong(run, "one.json", "--receipt", other / "three.receipt.json", *keys)
    assert "never stored" in refused(run, "receipt", other / "three.json")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"kind":"ledger.receipt","version":1}', "\x00", "[" * 5000])
def test_what_is_no_receipt_is_refused_in_plain_words(run, place, content):
    (place / "receipt.json").write_text(content, "utf-8")
    said = refused(run, "verify", place / "ili.json", "--receipt", place / "receipt.json")
    assert "is not a receipt; nothing was verified" in said


def test_options_of_a_receipt_need_one(run, place):
    assert "go with --receipt" in refused(run, "verify", place / "ili.json", "--head", place / "ili.json")
    assert "go with --receipt" in refused(run, "verify", place / "ili.json", "--ledger-key", place / "key.pub")


def test_a_receipt_of_a_trial_cannot_be_had(run, here, place):
    assert "never stored the certificate" in refused(run, "receipt", place / "ili.json")
