"""Roles by key on the command line: made with a root, certified, revoked, listed; releases verified from the root."""

import json
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.exits import Exit
from sfumato.core.certificate import Certificate
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.errors import Refused
from sfumato.governance import settings
from tests.cli.institution import done, refused

WHO = ("--unit", "user:patient_id")
PARTS = count(101)


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """A hospital whose keys have roles, with people and a dataset, made once."""
    folder = tmp_path_factory.mktemp("rooted")
    for name in ("root", "next", "press"):
        SigningKey.new().save(folder / f"{name}.key")
    settings.made(folder, root=folder / "root.key", next_root=folder / "next.key.pub")
    ledger = settings.opened(folder)
    who = sf.user("patient_id", relation="add/remove")
    ledger.open_account("hospital", unit=who, cap=sf.Budget(epsilon=4), reason="for 2026")
    ledger.declare_population("patients", unit=who, cap=sf.Budget(epsilon=8), reason="lifetime")
    ledger.declare_dataset(Dataset(name="visits", edition="1"), population="patients", cap=sf.Budget(epsilon=4))
    ledger.close()
    return folder


@pytest.fixture
def rooted(hospital, tmp_path, monkeypatch):
    """The same in the folder that commands run in."""
    shutil.copytree(hospital, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    return tmp_path


def released(key: SigningKey | None = None) -> Release:
    """A release that is charged to the ledger of this folder; fresh noise each time."""
    vault = sf.Vault(
        unit=sf.user("patient_id", relation="add/remove"),
        ledger=settings.opened("ledger.toml"),
        account="hospital",
        key=key,
    )
    rows = pa.table({"patient_id": [1, 2, 3]})
    visits = vault.table(rows, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    return visits.count().release(epsilon=f"1/{next(PARTS)}")


def test_init_makes_a_key_for_each_role_and_says_which_is_whose(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SigningKey.new().save(tmp_path / "root.key")
    said = done(run, "ledger", "init", "books", "--root", "root.key")
    assert "administer: " in said
    assert "no next root was named" in said
    told = json.loads(done(run, "ledger", "init", "more", "--root", "root.key", "--json"))
    assert {"root", "release", "administer"} < set(told)
    for name in ("ledger.key", "ledger.release.key", "ledger.administer.key"):
        assert (tmp_path / "more" / name).stat().st_mode & 0o077 == 0
    assert not (tmp_path / "more" / "ledger.root.key").exists()  # the root itself stays where it was
    assert (tmp_path / "more" / "ledger.root.pub").read_text("ascii") == (tmp_path / "root.key.pub").read_text("ascii")
    assert "whose root" not in refused(run, "ledger", "init", "third", "--next-root", "root.key.pub")
    assert not (tmp_path / "third").exists()


def test_the_root_is_needed_by_no_other_command(run, rooted):
    (rooted / "root.key").rename(rooted / "vault.key")
    done(run, "account", "open", "hospital/oncology", *WHO, "--epsilon", 1, "--reason", "figures")
    done(run, "ledger", "verify")
    released()
    (rooted / "ledger.administer.key").rename(rooted / "away.key")
    released()  # charging needs no administrator
    words = ("account", "open", "hospital/urology", *WHO, "--epsilon", 1, "--reason", "figures")
    assert "there is no key" in refused(run, *words)


def test_a_key_is_certified_listed_and_revoked(run, rooted):
    words = ("press.key.pub", "--role", "release", "--root", "root.key")
    said = done(run, "key", "certify", *words, "--holder", "press office", "--until", "2030-12-31")
    assert "press office may sign certificates from entry 7 on, until 2030-12-31" in said
    assert "already exists" in refused(run, "key", "certify", *words, "--holder", "press office")
    told = json.loads(done(run, "key", "list", "--json"))
    assert told["keys"][-1] == {
        "role": "release",
        "holder": "press office",
        "key": SigningKey.load("press.key").public_text,
        "from": 7,
        "to": None,
        "until": "2030-12-31",
        "valid": True,
        "reason": None,
    }
    assert "after entry 8" in done(run, "key", "revoke", *words, "--reason", "the laptop was stolen")
    for name in ("ledger.key", "ledger.administer.key", "ledger.release.key", "root.key"):
        (rooted / name).unlink()  # reading needs the public half of the root alone
    listed = done(run, "key", "list")
    assert "press office" in listed
    assert "revoked by entry 8 (the laptop was stolen)" in " ".join(listed.split())
    assert "as of entry 8" in listed
    assert json.loads(done(run, "key", "list", "--json"))["keys"][-1]["to"] == 8
    assert "holds" in done(run, "ledger", "verify", "--json")


def test_a_recovery_asks_for_all_documents_and_for_the_word_of_the_root(run, rooted):
    words = ("press.key.pub", "--role", "release", "--root", "root.key")
    kept = (rooted / "ledger.db").read_bytes()
    done(run, "key", "certify", *words, "--holder", "press office")
    told = json.loads(done(run, "key", "revoke", *words, "--reason", "the laptop was stolen", "--json"))
    assert told["written"] == "press.key.pub.revoked"
    assert "4 documents signed" in done(run, "key", "list")
    for file in rooted.glob("ledger.db*"):
        file.unlink()
    (rooted / "ledger.db").write_bytes(kept)
    recover = ("ledger", "recover", "--reason", "the disk failed", "--certified", "press.key.pub.cert")
    assert "sfumato key standing" in refused(run, *recover)
    assert "written: word.json" in done(
        run, "key", "standing", "--root", "root.key", "--documents", "4", "-o", "word.json"
    )
    assert "already exists" in refused(
        run, "key", "standing", "--root", "root.key", "--documents", "4", "-o", "word.json"
    )
    assert "has signed 4 documents, and 3" in refused(run, *recover, "--certified", "word.json")
    said = done(run, *recover, "--certified", "press.key.pub.revoked", "--certified", "word.json")
    assert "the root vouches for its 4 documents" in said
    done(run, "ledger", "verify")
    assert json.loads(done(run, "key", "list", "--json"))["keys"][-1]["valid"] is False


def test_a_thief_of_another_key_certifies_nothing(run, rooted):
    words = ("key", "certify", "press.key.pub", "--role", "charge", "--holder", "eve", "--root")
    for key in ("press.key", "next.key", "ledger.key", "ledger.administer.key"):
        assert "not signed by the root" in refused(run, *words, key)
    assert not Path("press.key.pub.cert").exists()


def test_the_root_is_followed_by_the_one_that_was_named(run, rooted):
    assert "recorded beforehand" in refused(run, "key", "rotate-root", "press.key")
    done(run, "key", "rotate-root", "next.key")
    words = ("key", "certify", "press.key.pub", "--role", "charge", "--holder", "server", "--root")
    assert "not signed by the root" in refused(run, *words, "root.key")
    done(run, *words, "next.key")
    done(run, "ledger", "verify", "--key", "next.key.pub")
    done(run, "ledger", "verify", "--key", "root.key.pub")  # from which the chain leads to the other


def test_the_key_that_charges_is_replaced_by_commands(run, rooted):
    SigningKey.new().save("new.key")
    old = (rooted / "ledger.key.pub").read_text("ascii").strip()
    (rooted / "ledger.key").unlink()  # lost
    text = (rooted / "ledger.toml").read_text("utf-8").replace('key = "ledger.key"', 'key = "new.key"')
    (rooted / "ledger.toml").write_text(text, "utf-8")
    assert "may not act as 'charge'" in refused(run, "ledger", "clock", "--reason", "x")
    done(run, "key", "certify", "new.key.pub", "--role", "charge", "--holder", "server", "--root", "root.key")
    done(run, "key", "revoke", old, "--role", "charge", "--reason", "lost", "--root", "root.key")
    released()
    done(run, "ledger", "verify")


def test_an_export_is_verified_from_the_root(run, rooted):
    done(run, "ledger", "export", "-o", "record.jsonl")
    done(run, "ledger", "head", "-o", "head.json")
    words = ("ledger", "verify", "--export", "record.jsonl", "--head", "head.json", "--key")
    assert "the trusted key agree" in done(run, *words, "root.key.pub")
    outcome = run(*words, "ledger.key.pub")
    assert outcome.exit_code == Exit.FOUND_WRONG
    assert "not a root of this ledger" in outcome.stdout


def test_a_ledger_without_a_root_lists_its_one_key(run, here):
    assert "does everything" in done(run, "key", "list")
    assert json.loads(done(run, "key", "list", "--json"))["root"] is None
    words = ("ledger.key.pub", "--role", "charge", "--holder", "x", "--root", "ledger.key", "-o", "c")
    assert "made without a root" in refused(run, "key", "certify", *words)


# ------------------------------------------------------------------------------------------- certificates of releases


def test_a_release_verifies_from_the_root_by_the_certificate_of_its_key(run, rooted):
    words = ("press.key.pub", "--role", "release", "--holder", "press office", "--root", "root.key")
    with pytest.raises(Refused, match="may not act as 'release'"):
        released(SigningKey.load("press.key"))
    done(run, "key", "certify", *words)
    released(SigningKey.load("press.key")).certificate.save("count.json")
    said = done(run, "verify", "count.json", "--root", "root.key.pub", "--certified", "press.key.pub.cert")
    assert "press office" in said
    assert "whether the key was revoked since is not known from this" in said
    beside = done(run, "verify", "count.json", "--root", "root.key.pub", "--key", "press.key.pub")
    assert beside == said
    said = done(run, "verify", "count.json", "--root", "root.key.pub", "--ledger", "ledger.toml")
    assert "stored in entry 9; the key was not revoked as of entry 9" in said
    done(run, "key", "revoke", *words[:3], "--root", "root.key", "--reason", "stolen")
    said = done(run, "verify", "count.json", "--root", "root.key.pub", "--ledger", "ledger.toml")
    assert "the key was revoked later, by entry 10, as of entry 10" in said  # by position: it stands
    assert done(run, "verify", "count.json", "--key", SigningKey.load("press.key").public_text)


def test_a_release_verifies_from_the_root_by_its_receipt_alone(run, rooted, tmp_path_factory):
    words = ("press.key.pub", "--role", "release", "--root", "root.key")
    done(run, "key", "certify", *words, "--holder", "press office")
    released(SigningKey.load("press.key")).certificate.save("count.json")
    done(run, "receipt", "count.json")
    done(run, "ledger", "head", "-o", "head.json")
    elsewhere = tmp_path_factory.mktemp("reader")
    for name in ("count.json", "count.receipt.json", "head.json", "root.key.pub", "next.key.pub"):
        shutil.copy(rooted / name, elsewhere)
    files = (elsewhere / "count.json", "--receipt", elsewhere / "count.receipt.json")
    root = ("--root", elsewhere / "root.key.pub")
    said = done(run, "verify", *files, *root, "--head", elsewhere / "head.json")
    assert "signed by a key that the root certified for releases (press office), stored in entry 9" in said
    assert "the key was not revoked as of entry 9" in said
    assert "which is signed by a key that the trusted root certified for that" in said
    assert said.endswith("final: whoever changes entry 9 contradicts the published head\n")
    told = json.loads(done(run, "verify", *files, *root, "--json"))
    assert (told["authenticated"], told["receipt"]["head_authenticated"], told["receipt"]["final_by"]) == (
        True,
        True,
        None,
    )
    outcome = run("verify", *files, "--root", elsewhere / "next.key.pub")
    assert outcome.exit_code == Exit.FOUND_WRONG
    assert "was certified by another root than the one that is trusted" in outcome.stdout
    assert "leave --ledger-key out" in refused(run, "verify", *files, *root, "--ledger-key", elsewhere / "next.key.pub")
    done(run, "key", "revoke", *words, "--reason", "stolen")
    done(run, "receipt", "count.json")
    said = done(run, "verify", "count.json", "--receipt", "count.receipt.json", "--root", "root.key.pub")
    assert "the key was revoked later, by entry 10, as of entry 10" in said  # by position: it stands


def test_a_certificate_of_a_key_for_something_else_does_not_verify_by_its_receipt(run, rooted):
    """A thief of the charging key stores an answer that they signed themselves."""
    release = released()
    ledger = settings.opened("ledger.toml")
    account = ledger.account("hospital", unit=sf.user("patient_id", relation="add/remove"))
    charge = account.reserve(sf.Budget(epsilon="1/7"), datasets=[Dataset(name="visits", edition="1")])
    statement = replace(release.statement, account=charge.account, spend=charge.cost)
    forged = Certificate.sign(statement, ledger.key)
    account.commit_text(charge, "forged", forged.text)
    ledger.close()
    forged.save("forged.json")
    done(run, "receipt", "forged.json")
    outcome = run("verify", "forged.json", "--receipt", "forged.receipt.json", "--root", "root.key.pub")
    assert outcome.exit_code == Exit.FOUND_WRONG
    assert "might not sign certificates at entry" in outcome.stdout


def test_a_release_key_that_is_revoked_meanwhile_is_charged_nothing(run, rooted):
    words = ("press.key.pub", "--role", "release", "--root", "root.key")
    done(run, "key", "certify", *words, "--holder", "press office")
    vault = sf.Vault(
        unit=sf.user("patient_id", relation="add/remove"),
        ledger="ledger.toml",  # whose own key charges
        account="hospital",
        key="press.key",
    )
    rows = pa.table({"patient_id": [1, 2, 3]})
    visits = vault.table(rows, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    press = SigningKey.load("press.key").public_text
    assert visits.count().release(epsilon="1/9").certificate.document["signature"]["key"] == press
    done(run, "key", "revoke", *words, "--reason", "stolen")
    spent = vault.spent
    with pytest.raises(Refused, match="was revoked by entry"):
        visits.count().release(epsilon="1/11")
    assert vault.spent == spent


def test_what_the_root_did_not_certify_does_not_verify(run, rooted):
    released().certificate.save("count.json")
    outsider = SigningKey.new()
    vault = sf.Vault(
        unit=sf.user("patient_id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="x", key=outsider
    )
    table = pa.table({"patient_id": [1, 2, 3]})
    data = vault.table(table, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    data.count().release(epsilon="1/10").certificate.save("forged.json")
    done(run, "key", "certify", "press.key.pub", "--role", "release", "--holder", "press", "--root", "root.key")
    done(run, "key", "certify", "next.key.pub", "--role", "charge", "--holder", "server", "--root", "root.key")
    by_file = ("--root", "root.key.pub", "--certified")
    found = {
        ("count.json", *by_file, "press.key.pub.cert"): "is not the key that the root certified",
        ("count.json", *by_file, "next.key.pub.cert"): "does not certify a key for releases",
        ("count.json", "--root", "next.key.pub", "--certified", "press.key.pub.cert"): "not signed by the root",
        ("forged.json", *by_file, "press.key.pub.cert"): "is not the ledger that the key is for",
        ("forged.json", "--root", "root.key.pub", "--ledger", "ledger.toml"): "is not stored in this ledger",
    }
    for words, problem in found.items():
        outcome = run("verify", *words)
        assert (outcome.exit_code, problem in outcome.stdout) == (Exit.FOUND_WRONG, True), (words, outcome.stdout)
        told = json.loads(run("verify", *words, "--json").stdout)
        assert told["consistent"] is told["authenticated"] is False
    assert "which document says so" in refused(run, "verify", "count.json", "--root", "root.key.pub")
    assert "go with --root" in refused(run, "verify", "count.json", "--certified", "press.key.pub.cert")
    assert "is not a document that a root key signed" in refused(run, "verify", "count.json", *by_file, "count.json")


def test_a_last_day_is_held_to_what_the_release_states(run, rooted):
    words = ("press.key.pub", "--role", "release", "--holder", "press", "--root", "root.key")
    done(run, "key", "certify", *words, "--until", "2999-01-01")
    release = released(SigningKey.load("press.key"))
    release.certificate.save("count.json")
    done(run, "verify", "count.json", "--root", "root.key.pub", "--key", "press.key.pub")
    done(run, "key", "revoke", *words[:3], "--root", "root.key", "--reason", "to shorten it")
    done(run, "key", "certify", *words, "--until", "2020-01-01", "-o", "short.cert")
    outcome = run("verify", "count.json", "--root", "root.key.pub", "--certified", "short.cert")
    assert "is after the last day of the key, 2020-01-01" in outcome.stdout
    with pytest.raises(Refused, match="its last day was 2020-01-01"):
        released(SigningKey.load("press.key"))


def test_evidence_names_an_answer_that_no_certified_key_signed(run, rooted):
    """A thief of the charging key stores an answer that they signed themselves."""
    release = released()
    done(run, "evidence", "--all", "--out", "sound")
    told = json.loads((rooted / "sound" / "evidence.json").read_text("utf-8"))
    assert told["releases"][0]["certificate"]["signed_by_ledger"] is True
    page = (rooted / "sound" / "evidence.md").read_text("utf-8")
    assert "the ledger's own key" not in page  # which charges and signed nothing here
    assert f"the key {told['releases'][0]['certificate']['signer']}, which the root had certified" in page
    ledger = settings.opened("ledger.toml")
    account = ledger.account("hospital", unit=sf.user("patient_id", relation="add/remove"))
    charge = account.reserve(sf.Budget(epsilon="1/7"), datasets=[Dataset(name="visits", edition="1")])
    statement = replace(release.statement, account=charge.account, spend=charge.cost)
    account.commit_text(charge, "forged", Certificate.sign(statement, ledger.key).text)
    outcome = run("evidence", "--all", "--out", "unsound")
    assert outcome.exit_code == Exit.FOUND_WRONG
    assert "no key that the root had certified for releases" in (rooted / "unsound" / "evidence.md").read_text("utf-8")
