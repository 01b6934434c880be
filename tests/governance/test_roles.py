"""Roles by key: a root certifies and revokes, each key does its own part, and a stolen one does no more than that."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance import keyring, ledger_state, signed_record, transaction
from sfumato.governance.board import Board
from sfumato.governance.entries import (
    AccountOpened,
    Administered,
    BoardSeated,
    ClockConfirmed,
    DatasetDeclared,
    Entry,
    Expired,
    LedgerOpened,
    PopulationDeclared,
    Repriced,
    TermsDeclared,
)
from sfumato.governance.key_documents import KeyCertificate, Role, SignedByRoot, root_hash
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import account_line
from tests.governance.homes import PATIENT, STORES, Home, furnished, older, sqlite_home
from tests.governance.rooted import CAP, Rooted, charged
from tests.governance.signers import keyed
from tests.governance.test_governed import TERMS

HALF = Budget(epsilon="1/2")


@pytest.fixture
def here(tmp_path: Path) -> Rooted:
    return Rooted(sqlite_home(tmp_path))


# ---------------------------------------------------------------------------------------------- what each key may do


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_a_ledger_with_a_root_charges_verifies_and_is_read_from_the_root(home: Home) -> None:
    keys = Rooted(home)
    ledger = keys.furnished()
    charged(ledger)
    assert ledger.verify() == ()
    again = keys.open()
    charged(again)
    assert again.balance("hospital").spent == Budget(epsilon="1/5")
    reader = Ledger.read(home.url, key=keys.root.public_text, anchor=home.anchor)
    assert reader.verify(again.head()) == ()
    assert reader.head() == again.head()
    ring = reader.keys()
    assert ring is not None
    assert [(one.role, one.key, one.since) for one in ring.keys] == [
        (Role.CHARGE, keys.charge.public_text, 1),
        (Role.RELEASE, keys.release.public_text, 2),
        (Role.ADMINISTER, keys.administer.public_text, 3),
    ]


def test_which_root_is_trusted_has_to_be_said(here: Rooted) -> None:
    here.furnished()
    with pytest.raises(NotDeclared, match="come from a root, and which one you trust was not said"):
        here.open(root=None)
    for wrong in (here.charge, here.next_root, SigningKey.new()):
        with pytest.raises(LedgerError, match="not a root of this ledger"):
            here.open(root=wrong.public_text)
        reader = Ledger.read(here.home.url, key=wrong.public_text, checked=False)
        assert any("not a root of this ledger" in finding.problem for finding in reader.verify())


def test_a_ledger_without_a_root_goes_on_as_it_is(home: Home) -> None:
    ledger = furnished(home)
    assert ledger.keys() is None
    assert ledger.release_key is ledger.key
    with pytest.raises(NotDeclared, match="made without a root"):
        ledger.certify(SigningKey.new().public_text, role="charge", holder="x", root=SigningKey.new())
    with pytest.raises(LedgerError, match="another key"):
        Ledger.open(home.url, key=home.key, anchor=home.anchor, root=SigningKey.new().public_text)
    with pytest.raises(NotDeclared, match="come from a root"):
        Ledger.create(home.url, key=home.key, anchor=home.anchor, administer=SigningKey.new())
    assert ledger.verify() == ()


@pytest.mark.parametrize("revision", ["0001", "0001-zcdp", "0004"])
def test_old_ledgers_open_and_verify(tmp_path: Path, revision: str) -> None:
    ledger = older(tmp_path, revision).open()
    assert ledger.verify() == ()
    assert ledger.keys() is None


ADMINISTERS: dict[str, Callable[[Ledger], object]] = {
    "account": lambda ledger: ledger.open_account("other", unit=PATIENT, cap=HALF, reason="mine"),
    "population": lambda ledger: ledger.declare_population("others", unit=PATIENT, cap=HALF, reason="mine"),
    "dataset": lambda ledger: ledger.declare_dataset(
        Dataset(name="visits", edition="2"), population="patients", cap=CAP
    ),
    "terms": lambda ledger: ledger.declare_terms(TERMS),
    "board": lambda ledger: ledger.seat(
        keyed(Board(members=("ada", "ben", "cho"), quorum=2)), by="a", reason="statute"
    ),
    "clock": lambda ledger: ledger.confirm_clock("it is right"),
    "reprice": lambda ledger: ledger.reprice(7, cost=HALF, reason="a claim was wrong"),
}


@pytest.mark.parametrize("name", ADMINISTERS)
def test_administration_needs_the_key_of_an_administrator(here: Rooted, name: str) -> None:
    charged(here.furnished())
    before = here.open().head()
    with pytest.raises(Refused, match=r"needs the signature of an administrator.*no such key was given"):
        ADMINISTERS[name](here.open(administer=None))
    for key in (here.charge, here.release, here.root, SigningKey.new()):
        with pytest.raises(Refused, match="may not act as 'administer'"):
            ADMINISTERS[name](here.open(administer=key))
    assert here.open().head() == before
    ledger = here.open()
    ADMINISTERS[name](ledger)
    assert isinstance(list(ledger.rows())[-1].entry, Administered)
    assert ledger.verify() == ()
    assert here.open().balances() == ledger.balances()


@pytest.mark.parametrize("which", ["release", "administer", "root", "other"])
def test_only_a_key_that_charges_signs_heads(here: Rooted, which: str) -> None:
    here.furnished()
    key = SigningKey.new() if which == "other" else getattr(here, which)
    ledger = here.open(key=key)  # it may read
    before = here.home.anchor.read_bytes()
    with pytest.raises(Refused, match="may not act as 'charge' at entry 7"):
        charged(ledger)
    assert here.home.anchor.read_bytes() == before
    assert here.open().verify() == ()


def test_the_key_of_a_role_is_read_when_it_is_needed(here: Rooted, tmp_path: Path) -> None:
    here.furnished()
    ledger = here.open(administer=tmp_path / "nowhere", release=tmp_path / "nowhere")
    charged(ledger)
    with pytest.raises(InvalidInput, match=r"there is no key .* is to administer here.* has to certify another one"):
        ledger.confirm_clock("x")
    with pytest.raises(InvalidInput, match=r"there is no key .* is to release here.* has to certify another one"):
        _ = ledger.release_key


# -------------------------------------------------------------------------------------------- certified and revoked


def test_the_key_that_charges_is_changed_and_the_old_one_signs_no_more(here: Rooted) -> None:
    old = here.furnished()
    charged(old)
    new = SigningKey.new()
    with pytest.raises(Refused, match="never certified"):
        charged(here.open(key=new))
    old.certify(new.public_text, role="charge", holder="the new server", root=here.root)
    late = here.open(key=new)
    charged(late)
    charged(old)  # both may, for a while
    old.revoke(here.charge.public_text, role="charge", reason="replaced", root=here.root)
    with pytest.raises(Refused, match=r"was revoked by entry \d+ \(replaced\)"):
        charged(old)
    charged(late)
    assert late.verify() == ()
    assert Ledger.read(here.home.url, key=here.root.public_text, anchor=here.home.anchor).verify() == ()
    ring = late.keys()
    assert ring is not None
    assert [(one.since, one.ended) for one in ring.keys if one.role is Role.CHARGE] == [(1, 11), (8, None)]


def test_a_key_that_was_lost_is_replaced_by_one_that_signs_its_own_certificate(here: Rooted) -> None:
    here.furnished()
    new = SigningKey.new()
    ledger = here.open(key=new)
    ledger.certify(new.public_text, role="charge", holder="the new server", root=here.root)
    ledger.revoke(here.charge.public_text, role="charge", reason="lost", root=here.root)
    charged(ledger)
    assert ledger.verify() == here.open(key=new).verify() == ()


def test_heads_of_a_revoked_key_do_not_hold_where_they_stand(here: Rooted) -> None:
    """By position: a head from before the revocation holds, one after it does not, whatever its time says."""
    ledger = here.furnished()
    before = ledger.head()
    new = SigningKey.new()
    ledger.certify(new.public_text, role="charge", holder="new", root=here.root)
    ledger.revoke(here.charge.public_text, role="charge", reason="stolen", root=here.root)
    later = here.open(key=new)
    charged(later)
    assert later.verify(before) == ()
    stolen = ledger.record.signed  # signs whatever it is given
    with later.record.reading() as reading:
        end = reading.end()
    assert any("signature of a head" in each.problem for each in later.verify(stolen(end)))
    backdated = stolen(replace(end, at="2020-01-01T00:00:00+00:00"))
    assert any("signature of a head" in each.problem for each in later.verify(backdated))
    # In the anchor, or under a row, it is refused.
    here.home.anchor.unlink()
    later.record.anchor.create(stolen(end))  # type: ignore[union-attr]
    with pytest.raises(LedgerError, match="is not signed for this ledger"):
        here.open(key=new)


def test_a_last_day_is_judged_at_the_time_of_the_entry(here: Rooted) -> None:
    now = [datetime(2027, 12, 30, 12, tzinfo=UTC)]
    ledger = here.furnished(lambda: now[0])
    brief = SigningKey.new()
    ledger.certify(brief.public_text, role="charge", holder="for the year", root=here.root, until="2027-12-31")
    user = here.open(key=brief, clock=lambda: now[0])
    charged(user)
    now[0] += timedelta(days=1)
    charged(user)
    now[0] += timedelta(days=1)
    with pytest.raises(Refused, match="its last day was 2027-12-31, and it is 2028-01-01"):
        charged(user)
    charged(ledger)
    assert ledger.verify() == ()  # what it signed until then stands
    for wrong in ("2027-2-1", "tomorrow", "2027-02-30", "2027-12-31T00:00"):
        with pytest.raises(InvalidInput, match="last day of a key"):
            ledger.certify(brief.public_text, role="release", holder="x", root=here.root, until=wrong)


def test_a_document_of_the_root_is_entered_once_in_its_turn_and_in_its_ledger(here: Rooted, tmp_path: Path) -> None:
    ledger = here.furnished()
    key = SigningKey.new().public_text
    certificate = ledger.certify(key, role="release", holder="press", root=here.root)
    ledger.revoke(key, role="release", reason="gone", root=here.root)
    with pytest.raises(Refused, match="document 3 of the root, and the next one to be entered is 5"):
        ledger.enter(certificate)  # an old certificate does not bring a revoked key back
    (tmp_path / "other").mkdir()
    other = Rooted(sqlite_home(tmp_path / "other"), root=here.root)
    elsewhere = other.furnished()
    with pytest.raises(Refused, match="signed for another ledger"):
        elsewhere.enter(certificate)
    said = KeyCertificate(ledger=ledger.identifier, number=5, role=Role.CHARGE, key=key, holder="thief")
    for thief in (here.charge, here.administer, here.release, here.next_root, SigningKey.new()):
        with pytest.raises(Refused, match="is not signed by the root"):
            ledger.enter(SignedByRoot.sign(said, thief))
    with pytest.raises(Refused, match="next one to be entered is 5"):
        ledger.enter(SignedByRoot.sign(replace(said, number=6), here.root))  # none is left out
    ledger.enter(SignedByRoot.sign(said, here.root))
    with pytest.raises(Refused, match="certified for 'charge' already"):
        ledger.certify(key, role="charge", holder="again", root=here.root)
    with pytest.raises(Refused, match="is certified for 'release' now"):
        ledger.revoke(key, role="release", reason="again", root=here.root)
    assert ledger.verify() == ()


def test_a_stolen_root_cannot_name_its_successor(here: Rooted) -> None:
    ledger = here.furnished()
    thief = SigningKey.new()
    with pytest.raises(Refused, match="not the root whose hash was recorded beforehand"):
        ledger.rotate_root(thief, next_root=None)
    third = SigningKey.new()
    ledger.rotate_root(here.next_root, next_root=third.public_text)
    key = SigningKey.new().public_text
    with pytest.raises(Refused, match="is not signed by the root"):
        ledger.certify(key, role="charge", holder="thief", root=here.root)
    ledger.certify(key, role="charge", holder="ours", root=here.next_root)
    with pytest.raises(Refused, match="recorded beforehand"):
        ledger.rotate_root(here.root, next_root=None)
    ledger.rotate_root(third, next_root=None)
    with pytest.raises(Refused, match="recorded beforehand"):
        ledger.rotate_root(SigningKey.new(), next_root=None)  # the last one
    assert ledger.verify() == ()
    for root in (here.root, here.next_root, third):  # whichever of them somebody knows
        assert Ledger.read(here.home.url, key=root.public_text, anchor=here.home.anchor).verify() == ()
        charged(here.open(root=root.public_text))


def test_the_hash_of_the_next_root_does_not_show_its_key(here: Rooted) -> None:
    opened = next(iter(here.furnished().rows())).entry
    assert isinstance(opened, LedgerOpened)
    assert opened.next_root == root_hash(here.next_root.public_text)
    assert here.next_root.public_text not in str(opened)
    assert opened.next_root != hashlib.sha256(here.next_root.public_text.encode()).hexdigest()


def test_a_recovery_goes_on_with_the_keys_that_are_left(here: Rooted) -> None:
    ledger = here.furnished()
    ledger.close()
    kept = Path(here.home.url).read_bytes()
    ledger = here.open()
    charged(ledger, "1")
    revocation = ledger.revoke(here.release.public_text, role="release", reason="lost", root=here.root)
    ledger.close()
    Path(here.home.url).write_bytes(kept)
    with pytest.raises(LedgerError, match="old backup"):
        here.open()
    given: dict[str, Any] = {"anchor": here.home.anchor, "root": here.root.public_text, "reason": "the disk failed"}
    with pytest.raises(Refused, match="the holder of the root say how many"):
        Ledger.recover(here.home.url, key=here.charge, **given)
    with pytest.raises(Refused, match="has signed 3 documents, and 2 are in the record or were given"):
        Ledger.recover(here.home.url, key=here.charge, documents=[here.word(3)], **given)
    documents = [revocation, here.word(3)]
    with pytest.raises(Refused, match="may not act as 'charge'"):
        Ledger.recover(here.home.url, key=here.release, documents=documents, **given)
    back = Ledger.recover(here.home.url, key=here.charge, documents=documents, **given)
    assert back.verify() == ()
    assert back.balance("hospital").spent.epsilon == 1
    with pytest.raises(Refused, match="was revoked"):  # it was lost with its entry, and entered anew
        back.check_release_key(here.release.public_text)


# ---------------------------------------------------------------------------------------------------- a stolen key


def _forge(here: Rooted, monkeypatch: pytest.MonkeyPatch, make: Callable[[str], Entry], **given: Any) -> int:
    """What a thief of the key that charges does with the database and the anchor, and a code of their own."""
    with monkeypatch.context() as patch:
        patch.setattr(ledger_state, "check_entry", lambda *_: None)
        patch.setattr(transaction, "check_entry", lambda *_: None)
        patch.setattr(signed_record, "needs_administrator", lambda _: False)
        thief = here.open(administer=None, **given)
        thief._enter(lambda opened, at: [make(at)])
        number = thief.head().head.number
        thief.close()
    return number


NEW = Dataset(name="visits", edition="2")
FORGED: dict[str, Callable[[str], Entry]] = {
    "account": lambda at: AccountOpened(at=at, path="mine", unit=PATIENT, cap=CAP, rho=None, reason="x"),
    "population": lambda at: PopulationDeclared(at=at, name="all", unit=PATIENT, cap=CAP, rho=None, reason="x"),
    "dataset": lambda at: DatasetDeclared(at=at, dataset=NEW, population="patients", cap=CAP),
    "terms": lambda at: TermsDeclared(at=at, terms=TERMS),
    "board": lambda at: BoardSeated(
        at=at, board=keyed(Board(members=("eve", "mal", "sid"), quorum=2)), by="eve", reason="x", proposal=None
    ),
    "a board that names a vote": lambda at: BoardSeated(
        at=at, board=keyed(Board(members=("eve", "mal", "sid"), quorum=2)), by="eve", reason="x", proposal=1
    ),
    "clock": lambda at: ClockConfirmed(at=at, since=at, reason="x"),
    "reprice": lambda at: Repriced(at=at, charge=7, cost=Budget(epsilon=1), losses=(), reason="x"),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_a_thief_of_the_charging_key_forges_is_refused_and_named(
    here: Rooted, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = datetime.now(UTC)
    ledger = here.furnished(lambda: moment)
    charged(ledger)
    number = _forge(here, monkeypatch, FORGED[name], clock=lambda: moment)
    with pytest.raises(LedgerError, match="administrator"):
        here.open(clock=lambda: moment)
    reader = Ledger.read(here.home.url, key=here.root.public_text, anchor=here.home.anchor, checked=False)
    first = reader.verify()[0]
    assert (first.entry, "administrator" in first.problem) == (number, True)


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM record WHERE kind = 'ledger.key_revoked'",
        "UPDATE record SET kind = 'ledger.started' WHERE kind = 'ledger.key_revoked'",
        "UPDATE record SET kind = 'ledger.started' WHERE kind = 'ledger.key_certified'",
        "UPDATE record SET kind = 'ledger.key_certified' WHERE kind = 'ledger.administered'",
        "UPDATE record SET number = 1000 WHERE kind = 'ledger.key_revoked'",
        "UPDATE record SET body = (SELECT body FROM record WHERE number = 2) WHERE kind = 'ledger.key_revoked'",
        "DELETE FROM record WHERE number = 1",
        'UPDATE record SET body = replace(body, \'"root":"\', \'"root":"0\') WHERE number = 1',
    ],
)
def test_whoever_writes_to_the_database_alone_changes_no_key(here: Rooted, edit: str) -> None:
    ledger = here.furnished()
    ledger.revoke(here.release.public_text, role="release", reason="stolen", root=here.root)
    charged(ledger)
    ledger.close()
    here.home.unlocked(edit)
    with pytest.raises((LedgerError, Refused)):
        here.open().check_release_key(here.release.public_text)
    with pytest.raises((LedgerError, Refused)):
        ledger.check_release_key(here.release.public_text)  # nor for who had it open


def test_a_last_day_goes_by_one_clock() -> None:
    key = keyring.CertifiedKey(role=Role.CHARGE, key="a", holder="x", since=1, until="2027-12-31")
    assert key.valid(1, "2027-12-31T23:59:59+00:00")
    assert not key.valid(1, "2027-12-31T20:00:00-11:00")  # that is the next day where everybody else is
    assert key.valid(1, "2028-01-01T08:00:00+14:00")
    assert not key.valid(1, "no time at all")


def test_what_is_filed_as_something_else_is_named(here: Rooted, monkeypatch: pytest.MonkeyPatch) -> None:
    charged(here.furnished())
    number = _forge(here, monkeypatch, FORGED["account"])
    here.home.unlocked(f"UPDATE record SET kind = 'ledger.started' WHERE number = {number}")  # noqa: S608
    found = Ledger.read(here.home.url, key=here.root.public_text, checked=False).verify()
    assert any(each.entry == number and "administrator" in each.problem for each in found)


def _signed(here: Rooted, ledger: Ledger, entry: Any, key: SigningKey) -> Administered:
    with ledger.record.reading() as reading:
        ring, before = ledger.keys(), reading.end().decisions
    assert ring is not None
    return keyring.administered(ring, entry, before, key)


@pytest.mark.parametrize("which", ["charge", "release", "own", "root"])
def test_a_signature_of_another_key_does_not_administer(
    here: Rooted, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = here.furnished()
    key = SigningKey.new() if which == "own" else getattr(here, which)
    number = _forge(here, monkeypatch, lambda at: _signed(here, ledger, FORGED["account"](at), key))
    with pytest.raises(LedgerError, match="may not act as 'administer'"):
        here.open()
    found = Ledger.read(here.home.url, key=here.root.public_text, checked=False).verify()
    assert (found[0].entry, "may not act as 'administer'" in found[0].problem) == (number, True)


def test_a_declaration_of_earlier_days_cannot_be_entered_again(here: Rooted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old terms over new ones: the signature is genuine, and was made for other decisions before it."""
    ledger = here.furnished()
    ledger.declare_terms(TERMS)
    old = list(ledger.rows())[-1].entry
    assert isinstance(old, Administered)
    ledger.declare_terms(replace(TERMS, purposes=("research/oncology",)))
    later = SigningKey.new()
    ledger.certify(later.public_text, role="release", holder="x", root=here.root)
    monkeypatch.setattr(ledger_state, "_check_time", lambda *_: None)
    number = _forge(here, monkeypatch, lambda _: old)
    with pytest.raises(LedgerError, match="does not hold for this entry and for the decisions before it"):
        here.open()
    found = Ledger.read(here.home.url, key=here.root.public_text, checked=False).verify()
    assert (found[0].entry, "does not hold for this entry" in found[0].problem) == (number, True)


def test_an_administrator_of_another_ledger_does_not_administer(
    here: Rooted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = here.furnished()
    (tmp_path / "other").mkdir()
    twin = Rooted(sqlite_home(tmp_path / "other"), administer=here.administer).furnished()
    _forge(here, monkeypatch, lambda at: _signed(here, twin, FORGED["account"](at), here.administer))
    with pytest.raises(LedgerError, match="does not hold"):
        here.open()
    assert ledger.record.identifier != twin.record.identifier


def test_a_cap_that_is_raised_without_an_entry_is_named(here: Rooted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is signed by the key that charges: until somebody verifies, its thief can have it say anything."""
    ledger = here.furnished()
    charged(ledger)
    with here.open(administer=None).record.writing() as writing:
        balance = writing.transaction.balance(account_line("hospital"))
        assert balance is not None
        writing.transaction.put_balance(replace(balance, cap=Budget(epsilon=1000)))
        writing.append(Expired(at=writing.time(), charge=7, counted=True))
    assert here.open().balance("hospital").cap == Budget(epsilon=1000)  # believed, as its head is signed
    found = here.open().verify()
    assert any("leads to another state than a signed head states" in each.problem for each in found)


def test_a_thief_cannot_certify_a_key_of_their_own(here: Rooted, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = here.furnished()
    own = SigningKey.new()
    said = KeyCertificate(ledger=ledger.identifier, number=3, role=Role.ADMINISTER, key=own.public_text, holder="eve")
    forged = keyring.signed_by_root(ledger.head().head.at, SignedByRoot.sign(said, here.charge))
    with monkeypatch.context() as patch:
        patch.setattr(keyring.KeyRing, "_check", lambda *_: None)
        here.open()._enter(lambda *_: [forged])
    with pytest.raises(LedgerError, match="not signed by the root"):
        here.open()
    found = Ledger.read(here.home.url, key=here.root.public_text, checked=False).verify()
    assert (found[0].entry, "not signed by the root" in found[0].problem) == (7, True)


def test_a_root_of_ones_own_in_the_first_entry_is_refused(here: Rooted, tmp_path: Path) -> None:
    """A whole ledger made anew by somebody else, with database and anchor: the root that is trusted tells."""
    here.furnished().close()
    (tmp_path / "other").mkdir()
    forged = Rooted(sqlite_home(tmp_path / "other"), charge=here.charge, administer=here.administer)
    forged.furnished().close()
    Path(here.home.url).write_bytes(Path(forged.home.url).read_bytes())
    here.home.anchor.write_bytes(forged.home.anchor.read_bytes())
    with pytest.raises(LedgerError, match="not a root of this ledger"):
        here.open()
