"""A receipt shows that a ledger stored a certificate, and nothing that the ledger never stored has one that holds."""

# ruff: noqa: S608 - the statements of a test, on tables of its own

import json
import secrets
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.documents import canonical
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance import receipts
from sfumato.governance.anchor import SignedHead
from sfumato.governance.durable import DurableLedger
from sfumato.governance.entry_tree import Frontier, inclusion_path, leaf_hash
from sfumato.governance.ledger import Ledger
from sfumato.governance.receipts import Receipt, check_receipt
from tests.governance.homes import ACCOUNT, PATIENT, STORES, Home, furnished, older, readable, sqlite_home
from tests.governance.test_anchor import Backup

SMALL = Budget(epsilon="1/100")


def certificate_of(ledger: Ledger) -> Certificate:
    """What a receipt looks at in a certificate; that it is consistent is verified elsewhere."""
    return Certificate(
        canonical({"statement": {"identifier": secrets.token_hex(16), "account": {"ledger": ledger.identifier}}})
    )


def released(ledger: Ledger, account: DurableLedger | None = None) -> Certificate:
    account = ledger.account(ACCOUNT, unit=PATIENT) if account is None else account
    certificate = certificate_of(ledger)
    account.commit_text(account.reserve(SMALL, datasets=[readable(ledger)]), secrets.token_hex(4), certificate.text)
    return certificate


def key_of(ledger: Ledger) -> str:
    return ledger.key.public_text


def checked(certificate: Certificate, receipt: Receipt, ledger: Ledger, *heads: SignedHead) -> receipts.ReceiptCheck:
    return check_receipt(certificate.text, Receipt.read(receipt.text), key=key_of(ledger), heads=heads)


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_every_release_has_a_short_receipt_as_of_every_later_head(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "_worked_out", None)  # the stored subtrees are enough
    ledger = furnished(home)
    made = []
    for _ in range(14):
        made.append(released(ledger))
        for certificate in made:
            receipt = ledger.receipt(certificate)
            found = checked(certificate, receipt, ledger)
            assert (found.holds, found.signed, found.final) == (True, True, None)
            assert receipt.head == ledger.head()
            assert len(receipt.path) <= receipt.head.head.number.bit_length()
    assert ledger.receipt(8).text == ledger.receipt(made[0]).text
    assert ledger.verify() == ()


def test_a_receipt_reads_as_it_was_written(home: Home, tmp_path: Path) -> None:
    ledger = furnished(home)
    receipt = ledger.receipt(released(ledger), ledger.head())
    assert Receipt.read(receipt.text) == receipt
    assert Receipt.read(receipt.save(tmp_path / "receipt.json").read_text("utf-8")) == receipt
    with pytest.raises(InvalidInput, match="not a receipt"):
        Receipt.read(receipt.head.text)


def test_it_says_how_far_it_goes(home: Home) -> None:
    ledger = furnished(home)
    certificate = released(ledger)
    receipt = ledger.receipt(certificate)
    said = str(check_receipt(certificate.text, receipt))
    assert f"receipt: entry 8 of ledger {ledger.identifier}, as of its head of entry 8" in said
    assert "not authenticated: no trusted key was given" in said
    assert "not final: no published head covers the entry" in said
    said = str(checked(certificate, receipt, ledger, ledger.head()))
    assert "signed by the trusted key" in said
    assert "final: whoever changes entry 8 contradicts the published head" in said


def test_a_certificate_that_the_ledger_never_stored_has_no_receipt(home: Home) -> None:
    """Also one that is signed with the ledger's own key: a signature is no entry."""
    ledger = furnished(home)
    forged, stored = certificate_of(ledger), released(ledger)
    with pytest.raises(NotDeclared, match="never stored the certificate"):
        ledger.receipt(forged)
    found = checked(forged, ledger.receipt(stored), ledger)
    assert not found.holds
    assert "the receipt belongs to another certificate or was altered, or the certificate was made without" in str(
        found
    )


def test_another_certificates_receipt_is_refused(home: Home) -> None:
    ledger = furnished(home)
    one, other = released(ledger), released(ledger)
    assert not checked(one, ledger.receipt(other), ledger).holds
    touched = Certificate(one.text.replace('{"statement"', '{"more":1,"statement"'))
    assert not checked(touched, ledger.receipt(one), ledger).holds


def test_a_receipt_of_another_ledger_is_refused(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    ours, theirs = (furnished(sqlite_home(folder)) for folder in folders)
    certificate, foreign = released(ours), released(theirs)
    found = checked(certificate, theirs.receipt(foreign), ours)
    assert "is not signed by the trusted key of the ledger" in str(found)
    assert f"was charged to ledger '{ours.identifier}', and the receipt is of ledger {theirs.identifier}" in str(found)
    found = checked(certificate, ours.receipt(certificate), ours, theirs.head())
    assert "is of ledger" in str(found)
    assert found.final is None


ALTERED: dict[str, Callable[[Receipt], Receipt]] = {
    "another number": lambda it: replace(it, number=it.number + 1),
    "no number": lambda it: replace(it, number=0),
    "a number beyond the head": lambda it: replace(it, number=it.head.head.number + 1),
    "another entry before": lambda it: replace(it, previous="0" * 64),
    "another random part": lambda it: replace(it, nonce="0" * 32),
    "no random part": lambda it: replace(it, nonce=""),
    "another question": lambda it: replace(it, said=it.said.replace('"question":"', '"question":"x')),
    "another kind": lambda it: replace(it, said=it.said.replace("ledger.committed", "ledger.released")),
    "another certificate inside": lambda it: replace(it, said=it.said.replace("{", '{"certificate":"{}",', 1)),
    "not an entry": lambda it: replace(it, said="[]"),
    "not JSON": lambda it: replace(it, said="{"),
    "a shorter path": lambda it: replace(it, path=it.path[1:]),
    "a longer path": lambda it: replace(it, path=(*it.path, "00" * 32)),
    "a path of something else": lambda it: replace(it, path=("x", *it.path[1:])),
    "a path in another order": lambda it: replace(it, path=it.path[::-1]),
    "another tree": lambda it: replace(it, head=replace(it.head, head=replace(it.head.head, tree="0" * 64))),
    "a tree that is none": lambda it: replace(it, head=replace(it.head, head=replace(it.head.head, tree="x" * 64))),
    "no tree": lambda it: replace(it, head=replace(it.head, head=replace(it.head.head, tree=""))),
    "another signature": lambda it: replace(it, head=replace(it.head, signature="00" * 64)),
}


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, Certificate, Receipt, SignedHead]:
    """A ledger, a release with its receipt, and a later head that was published and that the receipt leads to."""
    ledger = furnished(sqlite_home(tmp_path_factory.mktemp("grown")))
    for _ in range(3):
        certificate = released(ledger)
    released(ledger)
    published = ledger.head()
    released(ledger)
    return ledger, certificate, ledger.receipt(certificate, published), published


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_receipt_is_refused(grown: tuple[Ledger, Certificate, Receipt, SignedHead], what: str) -> None:
    ledger, certificate, receipt, published = grown
    assert checked(certificate, receipt, ledger, published).final == published.head
    altered = ALTERED[what](receipt)
    assert altered != receipt
    found = checked(certificate, altered, ledger, published)
    assert not found.holds
    assert found.final is None
    assert all(line.startswith("receipt: ") for line in str(found).splitlines())


def test_each_hash_of_a_receipt_counts(grown: tuple[Ledger, Certificate, Receipt, SignedHead]) -> None:
    ledger, certificate, receipt, published = grown
    (link,) = receipt.links
    assert link.path
    for place, each in enumerate(receipt.path):
        changed = f"{int(each[0], 16) ^ 1:x}{each[1:]}"
        wrong = replace(receipt, path=(*receipt.path[:place], changed, *receipt.path[place + 1 :]))
        assert not checked(certificate, wrong, ledger).holds
    for place, each in enumerate(link.path):
        changed = f"{int(each[0], 16) ^ 1:x}{each[1:]}"
        path = (*link.path[:place], changed, *link.path[place + 1 :])
        wrong = replace(receipt, links=(replace(link, path=path),))
        assert checked(certificate, wrong, ledger).holds  # it leads nowhere else, and says nothing wrong of itself
        assert "are of one history" in str(checked(certificate, wrong, ledger, published))
        assert not checked(certificate, wrong, ledger, published).holds


def test_published_heads_before_and_after(home: Home) -> None:
    ledger = furnished(home)
    released(ledger)
    before = ledger.head()
    certificate = released(ledger)
    at = ledger.head()
    released(ledger)
    after = ledger.head()
    early = replace(ledger.receipt(certificate), links=())
    assert checked(certificate, early, ledger, after).final == after.head  # its own head
    released(ledger)
    receipt = ledger.receipt(certificate, before, at, after)
    for published, final in ((before, None), (at, at.head), (after, after.head), (ledger.head(), ledger.head().head)):
        found = checked(certificate, receipt, ledger, published)
        assert found.holds, found
        assert found.final == final
    assert "goes on from the published head" in str(checked(certificate, receipt, ledger, before))
    found = checked(certificate, early, ledger, ledger.head())
    assert "does not lead to the published head" in str(found)
    assert "sfumato receipt CERTIFICATE --head" in str(found)
    assert not found.holds
    # A receipt of the past that leads to a head of the future, for readers who kept the old one.
    link = next(each for each in ledger.receipt(certificate, after).links)
    later = replace(early, links=(replace(link, head=ledger.head()),))
    assert checked(certificate, later, ledger, ledger.head()).final == ledger.head().head


def test_whoever_holds_the_key_cannot_have_an_entry_behind_a_published_head(home: Home) -> None:
    """The key signs a private head over a tree with a forged leaf: it is not final, and no published head covers it."""
    ledger = furnished(home)
    stored = released(ledger)
    forged, honest, published = certificate_of(ledger), ledger.receipt(stored), ledger.head()
    with ledger.record.store.reading() as transaction:
        leaves = [leaf_hash(row.digest) for row in transaction.rows()]
    leaves[-1] = honest.leaf(forged.text)
    frontier = Frontier()
    for leaf in leaves:
        frontier = frontier.after(leaf)
    private = SignedHead.sign(replace(published.head, tree=frontier.root().hex()), ledger.key)
    receipt = replace(honest, head=private)  # the path beside the last leaf is the same
    alone = checked(forged, receipt, ledger)
    assert (alone.holds, alone.signed, alone.final) == (True, True, None)
    assert "not final" in str(alone)
    held = checked(forged, receipt, ledger, published)
    assert not held.holds
    assert "the ledger has two histories" in str(held)


def test_two_copies_of_a_ledger_do_not_vouch_for_each_other(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    home = sqlite_home(tmp_path / "one")
    furnished(home).close()
    home.execute("PRAGMA journal_mode=DELETE")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    ours = home.open()
    theirs = Home(url=str(tmp_path / "two" / "ledger.db"), folder=str(tmp_path / "two" / "apart")).open()
    certificate, other = released(ours), released(theirs)
    released(theirs)
    receipt = ours.receipt(certificate)
    foreign = theirs.receipt(other, theirs.head())
    mixed = replace(receipt, links=(replace(foreign.links[0], head=theirs.head()),))
    assert not checked(certificate, mixed, ours, theirs.head()).holds
    for _ in range(2):
        released(ours)
    with pytest.raises(LedgerError, match="No receipt was made"):
        ours.receipt(certificate, theirs.head())


REFUSED: dict[str, tuple[Callable[[Ledger], Any], type[Exception], str]] = {
    "an entry that is no answer": (lambda it: it.receipt(1), NotDeclared, "does not store an answer"),
    "an entry that is not there": (lambda it: it.receipt(99), NotDeclared, "entry 99 of this ledger does not store"),
    "another document": (lambda it: it.receipt(Certificate("{}")), InvalidInput, "not the certificate of a release"),
    "a head of another key": (
        lambda it: it.receipt(8, SignedHead.sign(it.head().head, SigningKey.new())),
        Refused,
        "not signed by a key of this ledger",
    ),
    "a head of another ledger": (
        lambda it: it.receipt(8, SignedHead.sign(replace(it.head().head, ledger="x"), it.key)),
        Refused,
        "is of ledger x",
    ),
    "a head without a tree": (
        lambda it: it.receipt(8, SignedHead.sign(replace(it.head().head, tree=""), it.key)),
        Refused,
        "states no tree of entries",
    ),
    "a head of the future": (
        lambda it: it.receipt(8, SignedHead.sign(replace(it.head().head, number=99), it.key)),
        Refused,
        "the record ends at entry 8",
    ),
    "a head of another history": (
        lambda it: it.receipt(8, SignedHead.sign(replace(it.head().head, number=7), it.key)),
        LedgerError,
        "the entry of a published head was lost and given up",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_receipt(home: Home, what: str) -> None:
    ledger = furnished(home)
    released(ledger)
    asked, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        asked(ledger)


def test_lost_entries_are_empty_places_and_receipts_go_on(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = furnished(home)
    kept = released(ledger)
    backup = Backup(home)
    lost = [released(ledger) for _ in range(5)]
    gone = ledger.receipt(lost[0])
    published = ledger.head()
    backup.restore()
    ledger = Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="a lost disk")
    after = [released(ledger) for _ in range(4)]
    assert ledger.verify() == ()
    monkeypatch.setattr(receipts, "_worked_out", None)
    for certificate in (kept, *after):
        assert checked(certificate, ledger.receipt(certificate), ledger).holds
    monkeypatch.undo()
    assert checked(lost[0], gone, ledger, published).final == published.head  # it was in the record that was published
    with pytest.raises(NotDeclared, match="never stored"):
        ledger.receipt(lost[0])
    with pytest.raises(LedgerError, match="lost and given up"):
        ledger.receipt(kept, published)


def rows_of(home: Home) -> list[Any]:
    return home.execute("SELECT number, digest, subtrees FROM record ORDER BY number")


def test_the_stored_tree_is_the_one_of_the_record(home: Home) -> None:
    ledger = furnished(home)
    for _ in range(5):
        released(ledger)
    frontier = Frontier()
    for number, digest, subtrees in rows_of(home):
        frontier = frontier.after(leaf_hash(digest))
        assert (frontier.size, frontier.subtrees) == (number, subtrees)
    assert home.execute("SELECT frontier FROM head") == [(frontier.text,)]
    assert ledger.head().head.tree == frontier.root().hex()
    with ledger.record.reading() as transaction:
        stored = receipts.stored_nodes(transaction)
        worked_out = receipts._worked_out(transaction, frontier.size)
        for index in range(frontier.size):
            assert inclusion_path(index, frontier.size, stored) == inclusion_path(index, frontier.size, worked_out)


SUBTREES = {
    "none": "UPDATE record SET subtrees = ''",
    "of something else": "UPDATE record SET subtrees = 'x'",
    "of another row": "UPDATE record SET subtrees = (SELECT other.subtrees FROM record other WHERE other.number = 4)",
    "made up": f"UPDATE record SET subtrees = '{'ab' * 32 * 5}'",
}


@pytest.mark.parametrize("what", SUBTREES)
def test_changed_subtrees_are_found_and_harm_nobody(home: Home, what: str) -> None:
    """They are never believed: receipts are the same, worked out from the digests, and charges never read them."""
    ledger = furnished(home)
    made = [released(ledger) for _ in range(4)]
    before = [ledger.receipt(each).text for each in made]
    home.unlocked(SUBTREES[what])
    assert [ledger.receipt(each).text for each in made] == before
    found = ledger.verify()
    assert found
    assert all("carries other subtrees" in finding.problem for finding in found)
    receipt = ledger.receipt(released(ledger))
    assert receipt.head.holds(key_of(ledger))


FRONTIERS = {
    "none": "0:",
    "of another size": "1:" + "ab" * 32,
    "of other hashes": None,
    "not one": "x",
    "of no size": "",
}


@pytest.mark.parametrize("what", FRONTIERS)
def test_a_changed_frontier_stops_the_ledger(home: Home, what: str) -> None:
    ledger = furnished(home)
    certificate = released(ledger)
    size = ledger.head().head.number
    text = FRONTIERS[what] if FRONTIERS[what] is not None else Frontier(size, (b"x" * 32,) * size.bit_count()).text
    home.execute(f"UPDATE head SET frontier = '{text}'")
    for book in (ledger, Ledger.unchecked(home.url, key=home.key, anchor=home.anchor)):
        with pytest.raises(LedgerError, match=r"[Nn]othing was"):
            released(book)
        with pytest.raises(LedgerError):
            book.receipt(certificate)
        assert any("head" in str(finding) or "frontier" in str(finding) for finding in book.verify())
    with pytest.raises(LedgerError):
        home.open()


def other(column: str) -> str:
    """The same text with another first sign, whatever it is."""
    return f"CASE substr({column}, 1, 1) WHEN 'a' THEN 'b' ELSE 'a' END || substr({column}, 2)"


@pytest.mark.parametrize("column", ["body", "nonce", "previous"])
def test_a_changed_entry_has_no_receipt(home: Home, column: str) -> None:
    ledger = furnished(home)
    number = ledger.receipt(released(ledger)).number
    released(ledger)
    home.unlocked(f"UPDATE record SET {column} = {other(column)} WHERE number = {number}")
    with pytest.raises((LedgerError, NotDeclared)):
        ledger.receipt(number)


def test_a_changed_digest_beside_an_entry_is_not_believed(home: Home) -> None:
    ledger = furnished(home)
    released(ledger)
    certificate = released(ledger)
    home.unlocked(f"UPDATE record SET digest = {other('digest')} WHERE number = 9")
    with pytest.raises(LedgerError, match="No receipt was made"):
        ledger.receipt(certificate)


def test_releases_from_before_the_tree_have_receipts_after_the_migration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = older(tmp_path, "0005")
    published = SignedHead.read((tmp_path / "old" / "head.json").read_text("utf-8").strip())
    certificate = Certificate(canonical(json.loads((tmp_path / "old" / "wards.json").read_text("utf-8"))))
    ledger = home.open()
    monkeypatch.setattr(receipts, "_worked_out", None)
    receipt = ledger.receipt(certificate)
    assert receipt.number == 14
    assert checked(certificate, receipt, ledger, ledger.head()).final == ledger.head().head
    assert published.holds(key_of(ledger))  # of the version before
    assert ledger.verify(published) == ()
    with pytest.raises(Refused, match="signed before heads stated one"):
        ledger.receipt(certificate, published)
    assert "signed before heads stated one" in str(checked(certificate, receipt, ledger, published))


def test_entries_without_a_random_part_have_no_receipt(tmp_path: Path) -> None:
    ledger = older(tmp_path, "0004").open()
    with pytest.raises(Refused, match="before entries had a random part"):
        ledger.receipt(8)
