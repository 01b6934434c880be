"""An owner process: who may charge through it, whose a charge is, and what becomes of clients that misbehave."""

import os
import secrets
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.events import Composed, DiscreteLaplace
from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.core.release import presenter_of
from sfumato.core.signature import SigningKey
from sfumato.core.stored import Stored
from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError, NotDeclared, Refused, Unsupported
from sfumato.governance.ledger import Ledger
from sfumato.governance.owner.client import RemoteLedger, socket_of
from sfumato.governance.owner.frames import MOST_BYTES, Frames, Gone, Peer, overflow_uid, peer_of
from sfumato.governance.owner.messages import (
    AdvanceRequest,
    AmountsRequest,
    CloseRequest,
    CommitRequest,
    DoneReply,
    ErrorReply,
    GivenRequest,
    HelloRequest,
    ReservedReply,
    ReserveRequest,
    StoredRequest,
    WelcomeReply,
)
from sfumato.governance.owner.permissions import Permissions
from sfumato.governance.owner.served import ServedAccount
from sfumato.governance.owner.server import OwnerServer, ServerLimits
from sfumato.reports.stored import stored_release
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, furnished, sqlite_home
from tests.governance.owners import Owner, answer, served, short_folder, template

THIRD = Budget(epsilon="1/3")
ROWS = pa.table({"patient_id": [1, 2, 3]})
ADA, BEN = 61001, 61002
LIMIT = sf.Limit(groups=1, rows_per_group=1)
LAPLACE = DiscreteLaplace(l1=Fraction(1), scale=Fraction(4))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    book = furnished(sqlite_home(tmp_path), project=Budget(epsilon=1))
    yield book
    assert book.verify() == ()
    book.close()


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does a moment later."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


class Users:
    """Says who connects: what the kernel would say, on a machine with other users."""

    def __init__(self, uid: int) -> None:
        self.uid = uid

    def __call__(self, _: socket.socket) -> Peer:
        return Peer(uid=self.uid)


def allowed(**accounts: str) -> Permissions:
    numbers = {"ada": ADA, "ben": BEN}
    return Permissions(accounts={numbers[name]: frozenset({path}) for name, path in accounts.items()})


# ------------------------------------------------------------------------------------------------------ who may charge


def test_the_kernel_says_who_connects(ledger: Ledger) -> None:
    found: list[int] = []

    def noted(connection: socket.socket) -> Peer:
        peer = peer_of(connection)
        found.extend([peer.uid, peer.pid])
        return peer

    with served(ledger, credentials=noted) as owner:
        assert owner.account().left == Budget(epsilon=1)
    assert found == [os.geteuid(), os.getpid()]


def test_without_permissions_only_the_owner_itself_may_charge(ledger: Ledger) -> None:
    with (
        served(ledger, credentials=Users(ADA)) as owner,
        pytest.raises(Refused, match=f"user {ADA} may charge nothing here"),
    ):
        owner.account()
    with served(ledger) as owner:
        assert stat.S_IMODE(owner.place.stat().st_mode) == 0o600
        owner.account().reserve(THIRD, datasets=[VISITS])
    assert ledger.balance(ACCOUNT).spent == THIRD


def test_the_number_that_stands_for_unknown_users_is_refused_even_where_it_is_listed(ledger: Ledger) -> None:
    nobody = overflow_uid()
    permissions = Permissions(accounts={nobody: frozenset({"*"})})
    assert not permissions.allows(nobody, ACCOUNT)
    with (
        served(ledger, permissions=permissions, credentials=Users(nobody)) as owner,
        pytest.raises(Refused, match=f"user {nobody} stands for everybody"),
    ):
        owner.account()
    assert not Permissions(own=nobody).allows(nobody, ACCOUNT)


def test_a_user_charges_its_own_accounts_and_is_not_told_which_others_exist(ledger: Ledger) -> None:
    ledger.open_account("hospital/surgery", unit=PATIENT, cap=Budget(epsilon=1), reason="decided by the tests")
    with served(ledger, permissions=allowed(ada=ACCOUNT), credentials=Users(ADA)) as owner:
        assert stat.S_IMODE(owner.place.stat().st_mode) == 0o666
        owner.account().reserve(THIRD, datasets=[VISITS])
        told = set()
        for other in ("hospital/surgery", "hospital", "hospital/nowhere", f"{ACCOUNT}/deeper"):
            with pytest.raises(Refused, match="may not charge this account here, whether or not there is one") as why:
                owner.account(other)
            told.add(str(why.value))
        assert len(told) == 1
    assert ledger.balance("hospital/surgery").spent == Budget.none()


def test_accounts_below_one_are_allowed_by_a_star() -> None:
    permissions = Permissions.read(["0=hospital/*", f"{ADA}=*", "1=hospital/oncology"])
    assert permissions.allows(0, "hospital/oncology/trials")
    assert not replace(permissions, own=5).allows(0, "hospital")
    assert not permissions.allows(1, "hospital/oncology/trials")
    assert permissions.allows(ADA, "anything")
    for wrong in ("ada", "=hospital", f"{ADA}=", "no such user=hospital", f"{ADA}=hospital//x"):
        with pytest.raises(InvalidInput):
            Permissions.read([wrong])


def test_a_declared_release_key_is_asked_for(ledger: Ledger) -> None:
    keys = {ADA: frozenset({SigningKey.new().public_text})}
    permissions = replace(allowed(ada=ACCOUNT, ben=ACCOUNT), keys=keys)
    users = Users(ADA)
    with served(ledger, permissions=permissions, credentials=users) as owner:
        account = owner.account()
        charge = account.reserve(THIRD, datasets=[VISITS])
        with pytest.raises(Refused, match=r"not a release key of user .*nothing was stored.*the charge counts"):
            account.commit(charge, "how many", answer(charge))
        users.uid = BEN  # of whom no key was declared
        account = owner.account()
        charge = account.reserve(THIRD, datasets=[VISITS])
        account.commit(charge, "how many", answer(charge))


def test_connections_of_a_user_are_limited_and_others_go_on(ledger: Ledger) -> None:
    users = Users(ADA)
    permissions, limits = allowed(ada=ACCOUNT, ben=ACCOUNT), ServerLimits(each_user=2)
    with served(ledger, permissions=permissions, credentials=users, limits=limits) as owner:
        first, second = owner.account(), owner.account()
        with pytest.raises(LedgerError, match=f"2 connections of user {ADA} and 2 in all.*nothing was spent"):
            owner.account()
        users.uid = BEN
        assert owner.account().left == first.left == second.left
        first.disconnect()
        users.uid = ADA
        eventually(lambda: _opens(owner))


def _opens(owner: Owner) -> bool:
    try:
        owner.account()
    except LedgerError:
        return False
    return True


def test_a_socket_that_somebody_else_made_is_refused(ledger: Ledger) -> None:
    with served(ledger) as owner, pytest.raises(Refused, match=f"one of user {ADA}, and the folder belongs to user"):
        owner.account(credentials=Users(ADA))


# ---------------------------------------------------------------------------------------------------- whose a charge is


def test_a_connection_that_ends_leaves_its_charge_counted_and_closed(ledger: Ledger) -> None:
    with served(ledger) as owner:
        account = owner.account()
        charge = account.reserve(THIRD, datasets=[VISITS], question="a session")
        queued = account.reserve(THIRD, datasets=[VISITS], queued=True)
        account.disconnect()
        eventually(lambda: ledger.charge(queued.number).state is not State.RESERVED)
        assert ledger.charge(charge.number).state is State.EXPIRED
        assert ledger.charge(queued.number).state is State.RELEASED  # never started: no row was read for it
        assert ledger.balance(ACCOUNT).spent == THIRD
        with pytest.raises(LedgerError, match=r"settled already \(expired\)"):
            account.commit(charge, "a session", answer(charge))
        with pytest.raises(Refused, match="was closed"):
            account.again(charge.number, "a session")


def test_what_was_made_under_a_key_is_gone_on_with_by_its_user_alone(ledger: Ledger) -> None:
    users, limits = Users(ADA), ServerLimits(cut=0.05)
    with served(ledger, permissions=allowed(ada=ACCOUNT, ben=ACCOUNT), credentials=users, limits=limits) as owner:
        first = owner.account()
        charge = first.reserve(THIRD, datasets=[VISITS], idempotency="night", question="a session")
        second = owner.account()
        for taken in (
            lambda: second.reserve(THIRD, datasets=[VISITS], idempotency="night", question="a session"),
            lambda: second.again(charge.number, "a session"),
        ):
            with pytest.raises(Refused, match="held by another connection"):
                taken()
        first.disconnect()
        users.uid = BEN
        other = owner.account()
        assert other.named("night") is None
        with pytest.raises(Refused, match="without an idempotency key of yours"):
            other.again(charge.number, "a session")
        users.uid = ADA
        assert second.again(charge.number, "a session") == charge
        assert second.reserve(THIRD, datasets=[VISITS], idempotency="night", question="a session") == charge
        second.commit(charge, "a session", answer(charge))
        assert second.named("night") is State.COMMITTED
        users.uid = BEN
        other.reserve(THIRD, datasets=[VISITS], idempotency="night", question="a session")  # a key of its own
    assert ledger.balance(ACCOUNT).spent == Budget(epsilon="2/3")


def test_a_stored_answer_is_given_under_its_key_while_others_hold_nothing(ledger: Ledger) -> None:
    with served(ledger) as owner:
        first, second = owner.account(), owner.account()
        charge = first.reserve(THIRD, datasets=[VISITS], idempotency="night", question="how many")
        first.commit(charge, "how many", answer(charge))
        for account in (first, second):
            again = account.reserve(THIRD, datasets=[VISITS], idempotency="night", question="how many")
            given = account.given(again)
            assert given is not None
            assert given.certificate.text == answer(charge).certificate.text
    assert ledger.balance(ACCOUNT).spent == THIRD


def test_a_charge_is_settled_and_moved_by_its_own_connection_alone(ledger: Ledger) -> None:
    with served(ledger) as owner:
        mine, other = owner.account(), owner.account()
        charge = mine.reserve(THIRD, datasets=[VISITS], question="how many")
        release = answer(charge)
        for forbidden in (
            lambda: other.commit(charge, "how many", release),
            lambda: other.release(charge),
            lambda: other.start(charge),
            lambda: other.advance(charge, 0, "a", datasets=[VISITS]),
            lambda: other.check_running(charge, datasets=[VISITS]),
            lambda: other.again(charge.number, "how many"),
            lambda: other.close([VISITS], {}),
        ):
            with pytest.raises(Refused):
                forbidden()
        with pytest.raises(Refused, match="rows may have been read"):
            mine.release(charge)
        mine.commit(charge, "how many", release)
        queued = mine.reserve(THIRD, datasets=[VISITS], queued=True)
        mine.release(queued)
        started = mine.reserve(THIRD, datasets=[VISITS], queued=True)
        mine.start(started)
        with pytest.raises(Refused, match="rows may have been read"):
            mine.release(started)
    assert ledger.charge(charge.number).state is State.COMMITTED
    assert ledger.balance(ACCOUNT).spent == Budget(epsilon="2/3")


def test_the_answers_of_another_account_are_not_listed_by_number(ledger: Ledger) -> None:
    ledger.open_account("hospital/surgery", unit=PATIENT, cap=Budget(epsilon=1), reason="decided by the tests")
    with served(ledger) as owner:
        account, other = owner.account(), owner.account("hospital/surgery")
        charge = account.reserve(THIRD, datasets=[VISITS])
        account.commit(charge, "how many", answer(charge))
        for asked in (lambda: other.given(charge), lambda: other.settled(charge.number, "how many")):
            with pytest.raises(Refused):
                asked()
        with pytest.raises(Refused, match="not made on this connection"):
            other.commit(charge, "how many", answer(charge))


def test_data_are_closed_by_who_was_charged_for_them(ledger: Ledger) -> None:
    newer = Dataset(name=VISITS.name, edition="newer")
    ledger.declare_version(newer)
    names = Stored(since=0, names=frozenset({"rows of a file"}))
    with served(ledger) as owner:
        account = owner.account()
        account.reserve(THIRD, datasets=[VISITS])
        for datasets, stored in (([newer], {}), ([VISITS], {newer: names}), ([], {VISITS: names})):
            with pytest.raises(Refused, match=r"closes the datasets that an open charge.*nothing was closed"):
                account.close(datasets, stored)
        many = Stored(since=0, names=frozenset(map(str, range(10_001))))
        for work in (lambda: account.close([VISITS], {VISITS: many}), lambda: account.shut(VISITS, many)):
            with pytest.raises(InvalidInput, match="10,000 places"):
                work()
        with pytest.raises(InvalidInput, match="1,000 datasets"):
            account.reserve(THIRD, datasets=[Dataset(name=VISITS.name, edition=str(each)) for each in range(1001)])
        long = Composed(events=(LAPLACE,) * 1000)
        with pytest.raises(InvalidInput, match=r"the privacy event has more than .*nothing was spent"):
            account.reserve(THIRD, datasets=[VISITS], event=long)
        assert not account.closed(VISITS)
        assert account.close([VISITS], {VISITS: names})
        assert account.closed(VISITS)


def test_a_client_closes_no_data_of_other_people_by_saying_where_they_lie(ledger: Ledger) -> None:
    """Rows under another name about the same people are closed with a version; those of others are not the client's."""
    again, staff = Dataset(name="visits again", edition="1"), Dataset(name="rota", edition="1")
    ledger.declare_dataset(again, population="patients", cap=THIRD)
    ledger.declare_population("staff", unit=PATIENT, cap=THIRD, reason="decided by the tests")
    ledger.declare_dataset(staff, population="staff", cap=THIRD)
    rows, theirs = (Stored(since=0, names=frozenset({name})) for name in ("a file", "the file of the rota"))
    both = Stored(since=0, names=rows.names | theirs.names)
    with served(ledger) as owner:
        account = owner.account()
        account.reserve(Budget(epsilon="1/100"), datasets=[VISITS])
        assert account.close([VISITS], {VISITS: both})
        assert account.shut(again, rows)
        assert not account.shut(staff, theirs)
        assert not account.closed(staff)
        assert not account.close([VISITS], {VISITS: both})  # it is closed already
    direct = ledger.account(ACCOUNT, unit=PATIENT)
    assert direct.shut(again, rows)
    assert not direct.shut(staff, theirs)
    assert direct.close([], {VISITS: theirs}) is False
    assert direct.shut(staff, theirs)  # who holds the ledger read them
    assert ledger.verify() == ()


# ------------------------------------------------------------------------------------------------------- what is stored


def test_an_answer_is_stored_for_the_charge_that_it_states_and_no_other(ledger: Ledger) -> None:
    right = template()[0].statement
    assert right.limit is not None
    parts = (right.query, PATIENT, right.limit.without_words, THIRD, right.mechanism)
    question = canonical([encode(part) for part in parts])
    with served(ledger) as owner:
        account = owner.account("hospital/oncology")
        charge = account.reserve(THIRD, datasets=[VISITS], event=right.event, question=question)
        good = answer(charge)
        tampered = Certificate(good.certificate.text.replace('"add/remove"', '"replace"'))
        more = replace(charge.account, releases=charge.account.releases + 1)
        wrong = [
            (question, replace(good, presenter=presenter_of(good), certificate=tampered), (LedgerError, "not verify")),
            (question, answer(charge, spend=Budget(epsilon="1/4")), (LedgerError, "not verify")),
            (question, answer(charge, account=more), (Refused, "does not state the charge")),
            (question, answer(charge, account=replace(charge.account, custody="me")), (LedgerError, "not verify")),
            (question, answer(charge, account=replace(charge.account, custody=None)), (Refused, "not state")),
            ("another", good, (Refused, "answers another question")),
        ]
        for asked, release, (error, words) in wrong:
            with pytest.raises(error, match=words):
                account.commit(charge, asked, release)
        assert account.given(charge) is None
        account.commit(charge, question, good)

        beds = Dataset(name="beds", edition="1")
        ledger.declare_dataset(beds, population="patients", cap=Budget(epsilon=1))
        for given, words in (
            ({"datasets": [VISITS], "event": LAPLACE, "question": question}, "another privacy loss"),
            ({"datasets": [beds], "question": question}, "data that were not charged"),
            ({"datasets": [VISITS], "question": question.replace('"visits"', '"beds"')}, "not an answer to"),
            ({"datasets": [VISITS], "question": question.replace('"add/remove"', '"replace"')}, "not an answer to"),
        ):
            charge = account.reserve(THIRD, **given)  # type: ignore[arg-type]
            with pytest.raises(Refused, match=rf"{words}.*nothing was stored.*charge {charge.number} counts"):
                account.commit(charge, str(given["question"]), answer(charge))
            assert account.given(charge) is None


def test_a_vault_charges_through_the_socket_and_a_repeated_question_is_free(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SigningKey.new().save(tmp_path / "release.key")
    with served(ledger) as owner:
        vault = sf.Vault(unit=PATIENT, ledger=owner.address, account=ACCOUNT, key=tmp_path / "release.key")
        assert (vault.name, vault.budget) == (ACCOUNT, Budget(epsilon=1))
        visits = vault.table(ROWS, name=VISITS.name, version=VISITS.edition, limit=LIMIT)
        first = visits.count().release(epsilon="1/3")
        again = visits.count().release(epsilon="1/3")
        assert (first.repeated, again.repeated, again.charged) == (False, True, Budget.none())
        assert first.certificate.text == again.certificate.text
        assert first.statement.account.custody == "owner process"
        assert "an owner process" in first.explain(audience="manager")
        signature = first.certificate.document["signature"]
        assert isinstance(signature, dict)
        assert signature["key"] == SigningKey.load(tmp_path / "release.key").public_text != ledger.key.public_text
        with pytest.raises(BudgetExceeded, match="2/3 left; this release asks for ε = 3/4"):
            visits.count().release(epsilon="3/4")
        with pytest.raises(NotDeclared, match="hands out no key"):
            sf.Vault(unit=PATIENT, ledger=owner.address, account=ACCOUNT)
        with pytest.raises(InvalidInput, match="keeps the anchor itself"):
            sf.Vault(unit=PATIENT, ledger=owner.address, account=ACCOUNT, key="k", anchor=tmp_path / "anchor")
        with pytest.raises(NotDeclared, match="hands out no key"):
            _ = owner.account().key
        kept = sf.Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)  # the owner's own: it states no custody
        table = kept.table(ROWS, name=VISITS.name, version=VISITS.edition, limit=LIMIT)
        assert table.count().release(epsilon="1/4").statement.account.custody is None
        assert table.count().release(epsilon="1/3").certificate.text == first.certificate.text
        monkeypatch.setattr(type(vault._ledger), "spent", property(_gone))
        assert "its ledger cannot be read now" in repr(vault)
        vault._ledger.disconnect()  # type: ignore[attr-defined]
    assert ledger.balance(ACCOUNT).spent == Budget(epsilon="7/12")


@pytest.mark.parametrize("key", ["night", None])
def test_a_stream_outlives_its_connection_under_a_key_alone(tmp_path: Path, key: str | None) -> None:
    home, unit = sqlite_home(tmp_path), sf.event(relation="add/remove")
    book, cap = home.create(), Budget(epsilon=9, delta="1/1000000")
    book.declare_population("all", unit=unit, cap=cap, reason="test")
    book.declare_dataset(Dataset(name="er", edition="1"), population="all", cap=cap)
    book.open_account("er", unit=unit, cap=cap, reason="test")
    SigningKey.new().save(tmp_path / "release.key")
    said = {"epsilon": 1, "delta": 1e-7, "state": tmp_path / "state", "idempotency": key}
    with served(book) as owner:

        def question() -> tuple[Any, Any]:
            vault = sf.Vault(unit=unit, ledger=owner.address, account="er", key=tmp_path / "release.key")
            return vault.stream(name="er", version="1", horizon=4).running_total(), vault._ledger

        asked, account = question()
        total = asked.open(**said)
        total.add(3)
        total._stack.close()
        account.disconnect()  # as if its process had ended
        asked, account = question()
        if key is None:
            eventually(lambda: book.balance("er").charges == 1 and not _open_charges(book))
            with pytest.raises(Refused, match="was closed"):
                asked.resume(**said)
        else:
            again = asked.resume(**said)
            again.add(4)
            assert again.steps == 2
            again.close()
            assert asked.released(epsilon=1, delta=1e-7, idempotency=key).repeated
        account.disconnect()
    assert book.balance("er").spent == Budget(epsilon=1, delta="1/10000000")
    assert book.verify() == ()
    book.close()


def _open_charges(ledger: Ledger) -> bool:
    with ledger.record.reading() as transaction:
        return any(charge.state is State.RESERVED for charge in transaction.charges())


def _gone(_: object) -> Budget:
    raise LedgerError("gone")


# -------------------------------------------------------------------------------------------- clients that misbehave


@contextmanager
def raw(owner: Owner, *, hello: bool = True) -> Iterator[socket.socket]:
    """A connection without a client: whatever bytes a test sends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        connection.connect(str(owner.place))
        if hello:
            request = HelloRequest(account=ACCOUNT, unit=PATIENT, purpose=None, recipient=None)
            connection.sendall(Frames.packed(request))
            assert isinstance(Frames(connection).read(wait=10, within=10), WelcomeReply)
        yield connection


def framed(text: str | bytes) -> bytes:
    body = text if isinstance(text, bytes) else text.encode()
    return struct.pack(">I", len(body)) + body


DEEP = "[" * 100_000
NEWER = '{"kind":"owner.amounts","version":2}'
FOREIGN = '{"kind":"owner.amounts","version":1,"more":1}'
TYPED = '{"kind":"owner.given","number":"1","version":1}'
WRONG = {
    "no JSON": (framed("nonsense"), "not a JSON document"),
    "no UTF-8": (framed(b"\xff\xfe"), "not JSON in UTF-8"),
    "a number": (framed("7"), "not a document"),
    "deep": (framed(DEEP), "not a JSON document"),
    "another version": (framed(NEWER), "version"),
    "an unknown kind": (framed('{"kind":"owner.open","version":1}'), "is unknown"),
    "a foreign field": (framed(FOREIGN), "more is not a field"),
    "another type": (framed(TYPED), "number"),
    "a budget": (framed(canonical(encode(THIRD))), "a message is not a 'budget'"),
    "empty": (struct.pack(">I", 0), "0 bytes"),
    "huge": (struct.pack(">I", MOST_BYTES + 1), "bytes is not one of this protocol"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_a_message_is_refused_in_words_and_ends_the_connection(ledger: Ledger, name: str) -> None:
    sent, words = WRONG[name]
    with served(ledger) as owner:
        account = owner.account()
        with raw(owner) as connection:
            connection.sendall(sent)
            frames = Frames(connection)
            reply = frames.read(wait=10, within=10)
            assert isinstance(reply, ErrorReply)
            assert words in reply.words
            assert "Traceback" not in reply.words
            assert reply.error == "InvalidInput"
            with pytest.raises(Gone):
                frames.read(wait=10, within=10)
        assert account.left == Budget(epsilon=1)  # the others go on


@pytest.mark.parametrize("times", [40, pytest.param(3000, marks=pytest.mark.long)])
def test_messages_with_changed_bytes_never_end_the_owner_or_exceed_a_budget(ledger: Ledger, times: int) -> None:
    """Other changes each time; a change that leaves a message may be answered, and a charge is then a charge."""
    with served(ledger) as owner:
        account = owner.account()
        charge = account.reserve(Budget(epsilon="1/100"), datasets=[VISITS], question="how many")
        whole = [
            *(AmountsRequest(), StoredRequest(question="how many", datasets=(VISITS,)), GivenRequest(number=1)),
            CommitRequest(number=charge.number, question="how many", certificate=answer(charge).certificate.text),
            AdvanceRequest(number=charge.number, place=0, holder="a", datasets=(VISITS,)),
            CloseRequest(datasets=(VISITS,), stored=((VISITS, ("rows",)),)),
            ReserveRequest(
                cost=THIRD,
                datasets=(VISITS,),
                event=LAPLACE,
                idempotency="night",
                queued=False,
                seconds=60,
                reads=("2026-01-01", "2026-01-31"),
                question="how many",
            ),
        ]
        for turn in range(times):
            body = bytearray(Frames.packed(whole[turn % len(whole)])[4:])
            for _ in range(1 + secrets.randbelow(3)):
                place = secrets.randbelow(len(body))
                body[place : place + secrets.randbelow(3)] = secrets.token_bytes(secrets.randbelow(3))
            with raw(owner) as connection:
                connection.sendall(framed(bytes(body)))
                reply = Frames(connection).read(wait=10, within=10)
                assert "Traceback" not in str(reply)
        assert not any("failed with" in words or "ended by" in words for words in owner.said)
        account.check_running(charge, datasets=[VISITS])
        assert not account.closed(VISITS)
        assert account.budget.covers(account.spent)


@pytest.mark.parametrize("message", [AmountsRequest(), DoneReply()], ids=lambda one: one.KIND)
def test_a_connection_begins_with_its_account(ledger: Ledger, message: object) -> None:
    with served(ledger) as owner, raw(owner, hello=False) as connection:
        connection.sendall(Frames.packed(message))  # type: ignore[arg-type]
        reply = Frames(connection).read(wait=10, within=10)
        assert isinstance(reply, ErrorReply)
        assert "begins by saying which account" in reply.words


def test_a_reply_is_no_request_and_a_second_hello_neither(ledger: Ledger) -> None:
    hello = HelloRequest(account=ACCOUNT, unit=PATIENT, purpose=None, recipient=None)
    with served(ledger) as owner, raw(owner) as connection:
        frames = Frames(connection)
        for message in (DoneReply(), hello):
            connection.sendall(Frames.packed(message))
            reply = frames.read(wait=10, within=10)
            assert isinstance(reply, ErrorReply)
            assert "is not asked here" in reply.words


def test_a_client_that_stalls_is_dropped_and_the_others_go_on(ledger: Ledger) -> None:
    with served(ledger, limits=ServerLimits(frame=0.2)) as owner:
        account = owner.account()
        with raw(owner) as halfway, raw(owner, hello=False) as silent:
            halfway.sendall(Frames.packed(AmountsRequest())[:7])
            account.reserve(THIRD, datasets=[VISITS])  # nobody waits for the other two
            assert (halfway.recv(1), silent.recv(1)) == (b"", b"")
        assert account.left == Budget(epsilon="2/3")
        assert sum("said nothing for too long" in words for words in owner.said) == 2


def test_half_a_frame_changes_nothing(ledger: Ledger) -> None:
    before = ledger.head()
    with served(ledger) as owner:
        with raw(owner) as connection:
            connection.sendall(Frames.packed(AmountsRequest())[:-1])
        assert owner.account().spent == Budget.none()
    assert ledger.head() == before


def test_a_client_that_takes_no_replies_is_dropped(ledger: Ledger) -> None:
    with served(ledger, limits=ServerLimits(frame=0.2)) as owner:
        with raw(owner) as connection:
            connection.settimeout(0.2)
            request = Frames.packed(AmountsRequest())
            with pytest.raises(OSError, match=r"Broken pipe|timed out|reset"):
                connection.sendall(request * 10**6)
            eventually(lambda: any("too long" in words for words in owner.said))
        assert owner.account().left == Budget(epsilon=1)


def test_an_idle_connection_is_closed_and_the_next_request_opens_another(ledger: Ledger) -> None:
    with served(ledger, limits=ServerLimits(idle=0.05)) as owner:
        account, holding = owner.account(), owner.account()
        charge = holding.reserve(THIRD, datasets=[VISITS])
        eventually(lambda: any("too long" in words for words in owner.said))
        account.reserve(THIRD, datasets=[VISITS])  # on a new connection; charged once
        holding.check_running(charge, datasets=[VISITS])  # one that holds a charge is not closed
        assert holding.spent == Budget(epsilon="2/3")


def test_what_fails_unexpectedly_is_said_in_words_of_our_own(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("a secret")

    with served(ledger) as owner:
        account = owner.account()
        monkeypatch.setattr(ServedAccount, "answered", broken)
        with pytest.raises(LedgerError, match="the owner process failed at this request") as told:
            _ = account.left
        assert "secret" not in str(told.value) + "".join(owner.said)
        assert any("ValueError" in words for words in owner.said)
        monkeypatch.undo()
        assert account.left == Budget(epsilon=1)


def test_errors_travel_as_the_same_classes_with_the_same_words(ledger: Ledger) -> None:
    for error in (BudgetExceeded, InvalidInput, LedgerError, NotDeclared, Refused, Unsupported):
        raised = ErrorReply.of(error("so and so")).raised
        assert (type(raised), str(raised)) == (error, "so and so")
    assert type(ErrorReply(error="SystemExit", words="x").raised) is LedgerError
    unknown = Dataset(name="register", edition="1")
    account = ledger.account(ACCOUNT, unit=PATIENT)
    with served(ledger) as owner:
        remote = owner.account()
        for given in ({"datasets": [unknown]}, {"datasets": []}, {"datasets": [VISITS], "idempotency": " "}):
            told = []
            for each in (account, remote):
                with pytest.raises((NotDeclared, InvalidInput)) as why:
                    each.reserve(THIRD, **given)  # type: ignore[arg-type]
                told.append((type(why.value), str(why.value)))
            assert told[0] == told[1]
        with pytest.raises(InvalidInput, match="reads"):
            remote.reserve(THIRD, datasets=[VISITS], reads=("2026-01-01", 3))  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="from a second to ten years"):
            remote.reserve(THIRD, datasets=[VISITS], lasts=timedelta(days=11 * 366))
        with pytest.raises(InvalidInput, match="longer than an owner process takes"):
            remote.stored("x" * MOST_BYTES)
        with pytest.raises(Refused, match="does not cover"):
            RemoteLedger(owner.address, ACCOUNT, unit=sf.record(relation="add/remove"), reader=stored_release)
        assert remote.left == Budget(epsilon=1)  # on the same connection


# ----------------------------------------------------------------------------------------------------- lost connections


def test_a_request_that_may_have_charged_is_not_sent_again_without_its_key(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, lost = OwnerServer._write, [True]

    def cut(self: OwnerServer, frames: Frames, message: object) -> None:
        if isinstance(message, ReservedReply) and lost:
            lost.clear()
            raise Gone  # charged, and the reply never arrives
        write(self, frames, message)  # type: ignore[arg-type]

    monkeypatch.setattr(OwnerServer, "_write", cut)
    with served(ledger) as owner:
        account = owner.account()
        with pytest.raises(LedgerError, match="whether it was charged is not known: if it was, it counts"):
            account.reserve(THIRD, datasets=[VISITS])
        assert account.spent == THIRD
        lost.append(True)
        account.reserve(THIRD, datasets=[VISITS], idempotency="night")
        assert lost == []
        assert account.spent == Budget(epsilon="2/3")  # sent twice under one key, charged once


def test_an_owner_that_is_gone_or_serves_another_ledger_is_named(ledger: Ledger, tmp_path: Path) -> None:
    with short_folder() as folder:
        place = folder / "s"
        with served(ledger, place=place) as owner:
            account = owner.account()
        with pytest.raises(LedgerError, match=r"no owner process answers at .*nothing was spent"):
            _ = account.left
        (tmp_path / "other").mkdir()
        other = furnished(sqlite_home(tmp_path / "other"))
        with served(other, place=place), pytest.raises(LedgerError, match="serves another ledger than before"):
            _ = account.left
        other.close()
        with served(ledger, place=place):
            assert account.left == Budget(epsilon=1)
            account.disconnect()
    for wrong in ("unix:", "ledger.db", "unix:/\0"):
        with pytest.raises(InvalidInput, match="unix:/path/to/socket"):
            socket_of(wrong)
    assert socket_of("unix:///run/x") == Path("/run/x")


@pytest.mark.parametrize("sent", [framed("nonsense"), Frames.packed(AmountsRequest()), b""], ids=["no", "odd", "none"])
def test_what_is_not_an_owner_process_is_not_believed(sent: bytes) -> None:
    with short_folder() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(folder / "s"))
        listening.listen()

        def impostor() -> None:
            with listening.accept()[0] as connection:
                connection.recv(10_000)
                connection.sendall(sent)

        thread = threading.Thread(target=impostor)
        thread.start()
        with pytest.raises(LedgerError, match=r"not an owner process of this version|ended the connection at once"):
            RemoteLedger(f"unix:{folder / 's'}", ACCOUNT, unit=PATIENT)
        thread.join()


def test_a_question_is_held_by_its_connection_and_never_for_ever(ledger: Ledger) -> None:
    with served(ledger, limits=ServerLimits(held=0.2)) as owner:
        first, second = owner.account(), owner.account()
        order: list[str] = []

        def next_one() -> None:
            with second.asking("how many"):
                order.append("second")

        with first.asking("how many"), first.asking("how many"):  # a thread does not wait for itself
            first.reserve(THIRD, datasets=[VISITS])  # others are asked meanwhile
            with ledger.account(ACCOUNT, unit=PATIENT).asking("how few"):
                order.append("first")
        next_one()
        assert order == ["first", "second"]

        with raw(owner) as connection:
            connection.sendall(framed('{"kind":"owner.ask","question":"how many","version":1}'))
            assert isinstance(Frames(connection).read(wait=10, within=10), DoneReply)
            began = time.monotonic()
            with second.asking("how many"):
                assert time.monotonic() - began > 0.1  # until it was held for too long


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_a_connection_of_its_own(ledger: Ledger) -> None:
    with served(ledger) as owner:
        account = owner.account()
        charge = account.reserve(THIRD, datasets=[VISITS])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                account.reserve(THIRD, datasets=[VISITS])
                try:
                    account.check_running(charge, datasets=[VISITS])
                except Refused:
                    code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        account.check_running(charge, datasets=[VISITS])
        assert account.spent == Budget(epsilon="2/3")


# ------------------------------------------------------------------------------------------------------- one owner


def test_two_owners_serve_neither_one_ledger_nor_one_socket(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = furnished(sqlite_home(tmp_path / "other"))
    with served(ledger) as owner, short_folder() as folder:
        again = OwnerServer(ledger, folder / "s", reader=stored_release)
        with pytest.raises(LedgerError, match=r"served by another owner process already; nothing was served"):
            again.serve()
        beside = OwnerServer(other, owner.place, reader=stored_release)
        with pytest.raises(LedgerError, match="another owner process listens at"):
            beside.serve()
        assert owner.account().left == Budget(epsilon=1)
    other.close()


def test_a_socket_that_was_left_is_replaced_and_nothing_else_is(ledger: Ledger, tmp_path: Path) -> None:
    with short_folder() as folder:
        left = folder / "s"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
            dead.bind(str(left))
        with served(ledger, place=left) as owner:
            assert owner.account().left == Budget(epsilon=1)
        assert not left.exists()
        left.write_text("mine")
        server = OwnerServer(ledger, left, reader=stored_release)
        with pytest.raises(InvalidInput, match="is not a socket; nothing was served"):
            server.serve()
        assert left.read_text() == "mine"
    with pytest.raises(InvalidInput, match="at most 100 bytes"):
        OwnerServer(ledger, tmp_path / ("x" * 100), reader=stored_release)
    server = OwnerServer(ledger, "/nowhere/s", reader=stored_release)
    with pytest.raises(LedgerError, match="cannot be used: No such file"):
        server.serve()


def test_an_owner_that_is_stopped_closes_what_was_open(ledger: Ledger) -> None:
    with served(ledger) as owner:
        account = owner.account()
        charge = account.reserve(THIRD, datasets=[VISITS])
        kept = account.reserve(THIRD, datasets=[VISITS], idempotency="night")
        account._connection = None  # as a client that does not notice: the server ends first
    assert ledger.charge(charge.number).state is State.EXPIRED
    assert ledger.charge(kept.number).state is State.RESERVED
    assert ledger.balance(ACCOUNT).spent == Budget(epsilon="2/3")


def test_the_record_shows_what_was_charged_through_the_owner(ledger: Ledger) -> None:
    with served(ledger) as owner:
        owner.account().reserve(THIRD, datasets=[VISITS], idempotency="night")
    bodies = [parse(body) for body in ledger.export()]
    (entry,) = [body for body in bodies if isinstance(body, dict) and body["kind"] == "ledger.reserved"]
    assert entry["idempotency"] == f"{os.geteuid()}:night"
    account = entry["account"]
    assert isinstance(account, dict)
    assert account["custody"] == "owner process"
