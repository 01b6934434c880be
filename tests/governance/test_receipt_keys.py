"""Receipts of a ledger whose keys have roles, checked from its root: which key might sign which head, and where."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.documents import encode
from sfumato.core.signature import SigningKey
from sfumato.governance.anchor import SignedHead
from sfumato.governance.key_documents import KeyCertificate, Role, SignedByRoot
from sfumato.governance.keyring import signed_by_root
from sfumato.governance.ledger import Ledger
from sfumato.governance.receipts import Receipt, ReceiptCheck, check_receipt
from sfumato.reports.release_keys import verify_by_receipt
from sfumato.reports.verify import verify
from tests.governance.homes import VISITS, furnished, sqlite_home
from tests.governance.owners import answer, template
from tests.governance.rooted import Rooted, account
from tests.governance.test_receipts import released


@pytest.fixture
def here(tmp_path: Path) -> Rooted:
    return Rooted(sqlite_home(tmp_path))


def stored(ledger: Ledger) -> Certificate:
    return released(ledger, account(ledger))


def checked(certificate: Certificate, receipt: Receipt, keys: Rooted, *heads: SignedHead) -> ReceiptCheck:
    return check_receipt(certificate.text, Receipt.read(receipt.text), root=keys.root.public_text, heads=heads)


def test_a_receipt_holds_from_the_root_whichever_certified_key_signed_its_head(here: Rooted) -> None:
    second = SigningKey.new()
    with closing(here.furnished()) as ledger:
        first = stored(ledger)
        early = ledger.receipt(first)
        published = ledger.head()
        ledger.certify(second.public_text, role="charge", holder="spare", root=here.root)
    with closing(here.open(key=second)) as ledger:
        other = stored(ledger)
        ledger.revoke(here.charge.public_text, role="charge", reason="changed", root=here.root)
        later = stored(ledger)
        end = ledger.head()
        for certificate in (first, other, later):
            receipt = ledger.receipt(certificate, published, end)
            found = checked(certificate, receipt, here, published, end)
            assert (found.problems, found.signed, found.rooted) == ((), True, True)
            assert "which is signed by a key that the trusted root certified for that" in str(found)
            assert "final: " in str(found)
            assert Receipt.read(receipt.text) == receipt
    assert checked(first, early, here, published).holds


def test_a_head_that_no_certified_key_signed_there_is_refused(here: Rooted) -> None:
    """A key that was revoked, one that is certified later, one of another role, the root itself, and a stranger's."""
    old, later = SigningKey.new(), SigningKey.new()
    with closing(here.furnished()) as ledger:
        ledger.certify(old.public_text, role="charge", holder="spare", root=here.root)
        ledger.revoke(old.public_text, role="charge", reason="stolen", root=here.root)
        certificate = stored(ledger)
        receipt = ledger.receipt(certificate)
        assert checked(certificate, receipt, here).holds
        for thief in (old, later, here.administer, here.release, here.root, SigningKey.new()):
            forged = SignedHead.sign(receipt.head.head, thief)
            found = checked(certificate, replace(receipt, head=forged), here)
            assert (found.holds, found.signed, found.final) == (False, False, None)
            assert "is not signed by a key that the trusted root had certified for that" in str(found)
            found = checked(certificate, receipt, here, forged)
            assert "the published head of entry" in str(found)
            assert not found.holds


def _without_revocation(receipt: Receipt) -> Receipt:
    return replace(receipt, keys=tuple(step for step in receipt.keys if "revoked" not in step.body))


def _moved(receipt: Receipt) -> Receipt:
    *first, last = receipt.keys
    return replace(receipt, keys=(*first, replace(last, number=last.number - 1)))


def _other_opening(receipt: Receipt) -> Receipt:
    body = json.loads(receipt.keys[0].body)
    opened = json.dumps(body | {"key": "ab" * 32}, separators=(",", ":"), sort_keys=True)
    return replace(receipt, keys=(replace(receipt.keys[0], body=opened), *receipt.keys[1:]))


ALTERED: dict[str, tuple[Callable[[Receipt], Receipt], str]] = {
    "no keys": (lambda receipt: replace(receipt, keys=()), "shows no keys of a root"),
    "a document left out": (_without_revocation, "an old one cannot be entered again, and none can be left out"),
    "a document elsewhere": (_moved, "is not in the tree of its head"),
    "another opening": (_other_opening, "is not in the tree of its head"),
    "not from the opening on": (lambda one: replace(one, keys=one.keys[1:]), "is not a document of a root"),
    "something else": (
        lambda one: replace(one, keys=(replace(one.keys[0], body="{}"), *one.keys[1:])),
        "cannot be read",
    ),
    "no hashes": (lambda one: replace(one, keys=(replace(one.keys[0], path=("x",)),)), "cannot be read"),
}


@pytest.mark.parametrize("altered", ALTERED)
def test_keys_that_the_record_does_not_hold_like_this_are_refused(here: Rooted, altered: str) -> None:
    old = SigningKey.new()
    with closing(here.furnished()) as ledger:
        ledger.certify(old.public_text, role="charge", holder="spare", root=here.root)
        ledger.revoke(old.public_text, role="charge", reason="stolen", root=here.root)
        ledger.certify(old.public_text, role="release", holder="spare", root=here.root)
        certificate = stored(ledger)
        receipt = ledger.receipt(certificate)
    alter, words = ALTERED[altered]
    found = checked(certificate, alter(receipt), here)
    assert (found.holds, found.signed) == (False, False)
    assert words in str(found)


def test_a_document_of_the_root_that_was_never_entered_certifies_nothing(here: Rooted) -> None:
    """A thief who holds the root's signature on a key, and enters it nowhere."""
    thief = SigningKey.new()
    with closing(here.furnished()) as ledger:
        certificate = stored(ledger)
        receipt = ledger.receipt(certificate)
        ring = receipt.ring
    said = KeyCertificate(
        ledger=ring.ledger, number=ring.number + 1, role=Role.CHARGE, key=thief.public_text, holder="thief", until=None
    )
    entry = signed_by_root("2026-01-01T00:00:00+00:00", SignedByRoot.sign(said, here.root))
    body = json.dumps(encode(entry), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    step = replace(receipt.keys[-1], number=receipt.number, body=body, path=receipt.path)
    forged = replace(receipt, keys=(*receipt.keys, step), head=SignedHead.sign(receipt.head.head, thief))
    assert "is not in the tree of its head" in str(checked(certificate, forged, here))


def test_the_receipt_of_another_certificate_vouches_for_none(here: Rooted) -> None:
    """A key that was revoked, and a receipt from when it was not: what it signs now is in no entry."""
    signer, root = template()[1], here.root.public_text
    with closing(here.furnished()) as ledger:
        ledger.certify(signer.public_text, role="release", holder="press", root=here.root)
        charge = account(ledger).reserve(Budget(epsilon="1/3"), datasets=[VISITS])
        release = answer(charge)
        account(ledger).signed_by(signer.public_text).commit(charge, "q", release)
        receipt = ledger.receipt(release.certificate)
        ledger.revoke(signer.public_text, role="release", reason="stolen", root=here.root)
    assert verify_by_receipt(release.certificate.document, root=root, receipt=receipt).consistent
    forged = answer(charge, values=(41,)).certificate
    assert verify(forged.document, key=signer.public_text).authenticated
    found = verify_by_receipt(forged.document, root=root, receipt=receipt)
    assert [finding.field for finding in found.findings] == ["receipt"]
    assert "stored in entry" not in str(found)


def test_another_root_or_a_ledger_without_one_is_refused(here: Rooted, tmp_path: Path) -> None:
    with closing(here.furnished()) as ledger:
        certificate = stored(ledger)
        receipt = ledger.receipt(certificate)
    found = check_receipt(certificate.text, receipt, root=here.next_root.public_text)
    assert "is not a root of the ledger" in str(found)
    (tmp_path / "plain").mkdir()
    with closing(furnished(sqlite_home(tmp_path / "plain"))) as ledger:
        certificate = released(ledger)
        receipt = ledger.receipt(certificate)
        assert receipt.keys == ()
        assert check_receipt(certificate.text, receipt, key=ledger.key.public_text).holds
        assert "shows no keys of a root" in str(checked(certificate, receipt, here))


def test_a_receipt_of_the_first_version_is_still_read(here: Rooted) -> None:
    with closing(here.furnished()) as ledger:
        certificate = stored(ledger)
        receipt = ledger.receipt(certificate)
    older = json.loads(receipt.text)
    del older["keys"]
    read = Receipt.read(json.dumps(older | {"version": 1}))
    assert read == replace(receipt, keys=())
    assert check_receipt(certificate.text, read, key=here.charge.public_text).holds
    assert "Get a new one: sfumato receipt" in str(checked(certificate, read, here))
