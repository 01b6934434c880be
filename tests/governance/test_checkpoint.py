"""Checkpoints: what was verified once is not replayed again, and nothing is believed that a whole replay would not."""

import random
import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, Refused
from sfumato.governance.anchor import SignedHead
from sfumato.governance.checkpoint import Checkpoint, SignedCheckpoint
from sfumato.governance.entries import ENTRIES, Row, Started
from sfumato.governance.ledger import Ledger
from sfumato.governance.state_map import StateMap, hashed
from sfumato.governance.transaction import Transaction
from sfumato.governance.verify import check_record
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished
from tests.governance.test_governed import BOARD, TERMS, governed, passed
from tests.governance.test_governed import account as governed_account
from tests.governance.test_governed import asked as asked_for
from tests.governance.test_tampering import rechained

HALF = Budget(epsilon="1/2")
LATER = Dataset(name="visits", edition="2026-11")


def answered(ledger: Ledger, *questions: str, delta: str = "0") -> None:
    account = ledger.account(ACCOUNT, unit=PATIENT)
    for question in questions:
        cost = Budget(epsilon="1/2", delta=delta)
        account.commit_text(account.reserve(cost, datasets=[VISITS], idempotency=question), question, "{}")


def remembered(ledger: Ledger, since: Checkpoint | None = None) -> Checkpoint:
    signed = ledger.verification(since=since).checkpoint(ledger.key, datetime.now(UTC))
    assert signed.holds(ledger.key.public_text)
    return SignedCheckpoint.read(signed.text).checkpoint


@pytest.fixture
def ledger(home: Home) -> Iterator[Ledger]:
    """Six entries of a hospital; one charge that was answered (7, 8), one that is open (9)."""
    ledger = furnished(home)
    answered(ledger, "first")
    ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS], queued=True)
    yield ledger
    ledger.close()


def gone_on(ledger: Ledger) -> None:
    """Something of everything that happens every day."""
    account = ledger.account(ACCOUNT, unit=PATIENT)
    answered(ledger, "second", "third", delta="1/1000000")
    account.release(account.reserve(HALF, datasets=[VISITS], queued=True))
    with ledger.record.writing() as writing:
        writing.append(Started(at=writing.time(), charge=9))
    ledger.declare_version(LATER)
    account.close([VISITS], {})
    ledger.open_account("hospital/surgery", unit=PATIENT, cap=HALF, reason="decided by the tests")
    ledger.reprice(9, cost=Budget(epsilon="3/4"), reason="a claim was corrected")


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_only_what_came_since_is_replayed_and_leads_to_the_same_state(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = remembered(ledger)
    gone_on(ledger)
    read: list[int] = []
    entry = Row.entry

    def noted(row: Row) -> object:
        read.append(row.number)
        return entry.fget(row)  # type: ignore[attr-defined]

    monkeypatch.setattr(Row, "entry", property(noted))
    done = ledger.verification(since=first)
    monkeypatch.undo()
    assert done.findings == ()
    assert done.since == first.head.head.number == 9
    assert min(read) == 10
    second, whole = remembered(ledger, first), remembered(ledger)
    assert second.head.head == whole.head.head == ledger.head().head
    for part in ("balances", "editions", "charges"):
        assert set(getattr(second, part)) == set(getattr(whole, part))
    assert second.whole == first.whole
    assert ledger.verify(since=second) == ()  # nothing came since
    assert ledger.verification(since=second).since == ledger.head().head.number


def test_decisions_since_are_replayed_and_those_before_are_known(home: Home) -> None:
    ledger = governed(home, board=BOARD, terms=TERMS)
    first = remembered(ledger)
    passed(ledger, asked_for(ledger))
    charge = governed_account(ledger).reserve(HALF, datasets=[VISITS])
    second = remembered(ledger, first)
    assert ledger.verification(since=first).since == first.head.head.number
    governed_account(ledger).commit_text(charge, "question", "{}")
    assert ledger.verify(since=second) == ()
    assert ledger.verification(since=second).since == second.head.head.number


WRITTEN = {
    "a new entry, edited": "UPDATE record SET body = replace(body, '1/2', '1/9') WHERE number = 10",
    "a new entry, removed": "DELETE FROM record WHERE number = 11",
    "the entry of the checkpoint": "UPDATE record SET body = replace(body, '1/2', '1/9') WHERE number = 9",
    "a balance": "UPDATE balance SET epsilon_spent = '0/1' WHERE name = 'account hospital'",
    "a balance gone": "DELETE FROM balance WHERE name = 'account hospital/surgery'",
    "a version opened": "UPDATE edition SET closed = closed AND 1 = 0",
    "an open charge": "UPDATE charge SET state = 'released' WHERE number = 9",
    "a new answer": "UPDATE answer SET number = 8 WHERE number = 11",
    "a new charge": "UPDATE charge SET answer = 8 WHERE number = 10",
    "the head": "UPDATE head SET epsilon = '0/1'",
    "the last signature": 'UPDATE record SET head = replace(head, \'"signature":"\', \'"signature":"0\')',
}


@pytest.mark.parametrize("what", WRITTEN)
def test_what_is_wrong_since_a_checkpoint_is_found_as_ever(home: Home, ledger: Ledger, what: str) -> None:
    first = remembered(ledger)
    gone_on(ledger)
    home.unlocked(WRITTEN[what])
    found = ledger.verify(since=first)
    assert found
    assert found == ledger.verify(first.head)
    with pytest.raises(Refused, match="none was made"):
        ledger.verification(since=first).checkpoint(ledger.key, datetime.now(UTC))


def test_a_leaf_that_no_entry_changed_is_found_although_it_was_signed(ledger: Ledger) -> None:
    """The deliberately dishonest signer: the answer to an old question becomes another, and the new root is signed."""
    answered(ledger, "second")
    first = remembered(ledger)
    with ledger.record.writing() as writing:
        known = writing.transaction.answer("0" * 64)
        assert known is None
        writing.transaction.put_answer("0" * 64, 8, "f" * 64)
        writing.append(Started(at=writing.time(), charge=9))
    found = ledger.verify(since=first)
    assert any("another state than a signed head states" in each.problem for each in found)


def test_a_record_that_its_own_key_rewrote_is_held_to_the_checkpoint(home: Home, ledger: Ledger) -> None:
    answered(ledger, "second")
    first = remembered(ledger)
    home.unlocked("UPDATE record SET body = replace(body, 'decided', 'invented') WHERE number = 3")
    rechained(home, 3)
    assert any(each.entry == first.head.head.number for each in ledger.verify(since=first))


def test_a_new_price_of_a_settled_charge_goes_through_the_whole_record(ledger: Ledger) -> None:
    first = remembered(ledger)
    ledger.reprice(7, cost=Budget(epsilon=1), reason="a claim was corrected")
    done = ledger.verification(since=first)
    assert (done.findings, done.since) == ((), 0)
    assert remembered(ledger, first).whole > ""


def test_a_question_that_is_answered_again_goes_through_the_whole_record(ledger: Ledger) -> None:
    first = remembered(ledger)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.commit_text(account.reserve(HALF, datasets=[VISITS]), "first", '{"again":1}')
    assert ledger.verification(since=first).since == 0
    assert ledger.verify(since=first) == ()


def test_a_checkpoint_is_believed_by_its_signature_and_for_its_ledger(home: Home, ledger: Ledger) -> None:
    signed = ledger.verification().checkpoint(SigningKey.new(), datetime.now(UTC))
    assert not signed.holds(ledger.key.public_text)
    more = replace(signed, checkpoint=replace(signed.checkpoint, at="2030-01-01T00:00:00+00:00"))
    assert not more.holds(ledger.key.public_text)
    foreign = replace(signed.checkpoint.head.head, ledger="another")
    head = SignedHead.sign(foreign, ledger.key)
    with pytest.raises(LedgerError, match="one of another ledger"):
        ledger.verify(since=replace(signed.checkpoint, head=head))
    with pytest.raises(InvalidInput, match="not a checkpoint"):
        SignedCheckpoint.read(signed.checkpoint.head.text)


def test_the_chain_alone_finds_edits_and_reads_no_entry(
    home: Home, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(ledger, *map(str, range(3)))
    read: list[int] = []
    decode = ENTRIES.decode
    monkeypatch.setattr(type(ENTRIES), "decode", lambda _, body, path: read.append(1) or decode(body, path))
    assert ledger.verification(chain_only=True).findings == ()
    assert len(read) == 1  # which opened the ledger
    monkeypatch.undo()
    with pytest.raises(Refused, match="was replayed"):
        ledger.verification(chain_only=True).checkpoint(ledger.key, datetime.now(UTC))
    home.unlocked("UPDATE record SET body = replace(body, '1/2', '1/9') WHERE number = 12")
    assert {each.entry for each in ledger.verification(chain_only=True).findings} == {12}


@pytest.mark.parametrize("run", [3, 1000])
def test_one_signature_speaks_for_the_rows_above_it(
    home: Home, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, run: int
) -> None:
    """A row that was added, or edited with its chain, is named; a torn signature above is found where all are asked."""
    monkeypatch.setattr("sfumato.governance.verify.RUN", run)
    answered(ledger, *map(str, range(3)))
    checked: list[int] = []
    holds = SignedHead.holds
    monkeypatch.setattr(SignedHead, "holds", lambda head, key: checked.append(head.head.number) or holds(head, key))
    assert ledger.verify() == ()
    assert len(checked) == -(-15 // run) + 1  # with that of the anchor
    home.unlocked('UPDATE record SET head = replace(head, \'"signature":"\', \'"signature":"0\') WHERE number = 8')
    assert ledger.verify() == ()
    assert [each.entry for each in ledger.verify(every_signature=True)] == [8]
    forged = SignedHead.sign(replace(ledger.head().head, number=16, digest="f" * 64), SigningKey.new())
    with ledger.record.store.reading() as transaction:
        rows = list(transaction.rows())
    own = Row.after(15, rows[-1].digest, Started(at=rows[-1].entry.at, charge=9))
    added = replace(own, head=SignedHead.sign(replace(forged.head, digest=own.digest), SigningKey.new()).text)
    named = [each.entry for each in check_record([*rows, added], heads=(), key=ledger.key.public_text)]
    assert 16 in named


def test_keys_that_are_taken_out_leave_the_map_as_if_they_had_never_been_there() -> None:
    chance = random.Random(secrets.randbits(64))
    keys = [hashed(number) for number in range(400)]
    rest = set(chance.sample(keys, chance.randrange(len(keys))))
    whole, part = StateMap(lambda _: {}), StateMap(lambda _: {})
    for key in keys:
        whole.put(key, hashed("value"))
    for key in rest:
        part.put(key, hashed("value"))
    whole.root()
    stored = dict(whole.changed)
    read = StateMap(lambda paths: {path: stored[path] for path in paths if path in stored}, whole.root())
    for made in (whole, read):
        for key in chance.sample(keys, len(keys)):
            if key not in rest:
                made.take_out(key)
        made.take_out(hashed("never there"))
        assert made.root() == part.root()
        assert all(made.get(key) == (hashed("value") if key in rest else None) for key in keys)


@pytest.mark.parametrize("body", ["plain", 'quoted "', "back\\slash", "line\nend\x00\x1f\x7f", "ε 中 \U0001f600", ""])
def test_the_digest_is_that_of_the_canonical_list(body: str) -> None:
    import hashlib

    for nonce in ("", "ab"):
        row = Row(7, "kind", body, 'previous"', "", nonce)
        parts = [7, 'previous"', body, *([nonce] if nonce else [])]
        assert row.expected == hashlib.sha256(canonical(parts).encode()).hexdigest()
    assert Row(7, "kind", "half \ud800", "", "").expected == ""


def test_transactions_of_a_verification_write_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    first = remembered(ledger)
    answered(ledger, "second")
    monkeypatch.setattr(Transaction, "flush", lambda _: pytest.fail("something was written"))
    assert ledger.verify(since=first) == ()
