"""The witness: what it countersigns and what it refuses, what a lease lets through, and what a recovery charges."""

import json
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance import leasing, witness_server
from sfumato.governance.anchor import Head, SignedHead
from sfumato.governance.board import Action, Board, Choice, Reasons
from sfumato.governance.entries import Recovered
from sfumato.governance.health import health, metrics
from sfumato.governance.ledger import Ledger
from sfumato.governance.witness import Conflict, Witness
from sfumato.governance.witness_client import WitnessClient
from sfumato.governance.witness_server import WitnessServer
from sfumato.governance.witnessed import Extension, LastSeen, SignedExtension, WitnessedHead
from sfumato.reports.verify import verify
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished, readable, sqlite_home
from tests.governance.owners import answer
from tests.governance.signers import key_of, keyed

LEASE = Budget(epsilon=1)
HALF = Budget(epsilon="1/2")
QUARTER = Budget(epsilon="1/4")
THIRD = Budget(epsilon="1/3")
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Place:
    """A ledger in a folder, its witness in another, and the two ways to lose the first."""

    folder: Path
    home: Home
    witness: Witness
    address: str

    def open(self, address: str | None = None) -> Ledger:
        return Ledger.open(self.home.url, key=self.home.key, anchor=self.home.anchor, witness=address or self.address)

    def recover(self, **more: Any) -> Ledger:
        given: dict[str, Any] = {"witness": self.address, "reason": "decided by the tests", **more}
        return Ledger.recover(self.home.url, key=self.home.key, anchor=self.home.anchor, **given)

    def save(self, name: str) -> None:
        """Keep the database, the anchor and the witnessed head as they are: no connection may be open."""
        shutil.copytree(self.folder / "ours", self.folder / name)

    def restore(self, name: str, *, database: bool = True, anchor: bool = True, witnessed: bool = True) -> None:
        """Bring back what was kept; the others stay as they are."""
        kept = self.folder / name
        if database:
            for file in Path(self.home.url).parent.glob("ledger.db*"):
                file.unlink()
            for file in kept.glob("ledger.db*"):
                shutil.copy(file, Path(self.home.url).parent)
        if anchor:
            shutil.copy(kept / "apart" / "anchor", self.home.anchor)
        if witnessed:
            shutil.copy(kept / "apart" / "anchor.witnessed", f"{self.home.anchor}.witnessed")


@contextmanager
def served(witness: Witness, port: int = 0, patience: float = 5) -> Iterator[WitnessServer]:
    with WitnessServer(witness, port=port, patience=patience) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A ledger with a witness that has seen its first entries, and a lease of ε = 1."""
    (tmp_path / "ours").mkdir()
    home = sqlite_home(tmp_path / "ours")
    witness = Witness.create(tmp_path / "witness")
    with served(witness) as server, closing(furnished(home)) as ledger:
        witness.enrol(ledger.head(), ledger.key.public_text)
        ledger.lease.address = server.address
        ledger.lease.name(witness.key.public_text, lease=LEASE, reason="decided by the tests")
        ledger.lease.renew()
        ledger.close()
        yield Place(folder=tmp_path, home=home, witness=witness, address=server.address)


def charge(ledger: Ledger, cost: Budget = QUARTER, question: str = "q") -> None:
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.commit_text(account.reserve(cost, datasets=[readable(ledger)]), question, "{}")


def spent(ledger: Ledger) -> Fraction:
    return ledger.balance(ACCOUNT).epsilon_spent


def seen(place: Place) -> WitnessedHead:
    text = place.witness.last(place.open().identifier, "x").witnessed
    return WitnessedHead.read(text)


def test_a_certificate_names_the_witness_of_its_ledger(place: Place, tmp_path: Path) -> None:
    def released(ledger: Ledger) -> Release:
        charge = ledger.account(ACCOUNT, unit=PATIENT).reserve(THIRD, datasets=[VISITS])
        return answer(charge)

    with closing(place.open()) as ledger:
        release = released(ledger)
        assert release.statement.account.witness == place.witness.key.public_text
        assert verify(release.certificate.document).consistent
        assert "A witness on another machine" in release.explain(audience="manager")
        other = replace(release.statement, account=replace(release.statement.account, witness="me"))
        (finding,) = verify(Certificate.sign(other, ledger.key).document).findings
        assert finding.field == "statement.account.witness"
    (tmp_path / "alone").mkdir()
    with closing(furnished(sqlite_home(tmp_path / "alone"))) as ledger:
        alone = released(ledger)
        assert alone.statement.account.witness is None
        assert "witness" not in alone.certificate.text


def test_an_honest_ledger_goes_on_and_its_head_is_witnessed(place: Place) -> None:
    with closing(place.open()) as ledger:
        for number in range(12):
            charge(ledger, question=f"{number}")
        assert spent(ledger) == 3
        head = ledger.lease.renew()
        assert head.holds(place.witness.key.public_text, ledger.key.public_text)
        assert head.signed == ledger.head()
        assert WitnessedHead.read(head.text) == head
        assert ledger.verify(witnessed=[head]) == ()
        standing = ledger.lease.standing()
        assert standing is not None
        assert (standing.witnessed, standing.entries, standing.charged) == (head, 0, Budget.none())
        charge(ledger)
        after = ledger.lease.standing()
        assert after is not None
        assert (after.entries, after.charged) == (2, QUARTER)
        assert ledger.lease.renew().signed.head.number == head.signed.head.number + 2


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_leases_hold_on_every_store(home: Home, tmp_path: Path) -> None:
    """Also where a second process has charged in between, which the first reads and follows."""
    witness = Witness.create(tmp_path / "witness")
    with served(witness) as server, closing(furnished(home)) as ledger, closing(home.open()) as other:
        witness.enrol(ledger.head(), ledger.key.public_text)
        ledger.lease.address = server.address
        ledger.lease.name(witness.key.public_text, lease=LEASE, reason="decided by the tests")
        ledger.lease.renew()
        ledger.lease.address = None
        charge(ledger, question="1")
        charge(other, question="2")
        charge(ledger, question="3")
        charge(other, question="4")
        with pytest.raises(NotDeclared, match="nobody said where the witness is asked"):
            charge(other, question="5")
        ledger.lease.address = server.address
        charge(ledger, question="5")
        charge(other, question="6")  # by the head that the other process had witnessed
        assert spent(ledger) == Fraction(3, 2)
        assert ledger.verify(witnessed=[ledger.lease.renew()]) == ()


def test_a_ledger_without_a_witness_asks_nobody(place: Place, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with closing(furnished(sqlite_home(tmp_path / "other"))) as ledger:
        charge(ledger, Budget(epsilon=50))
        ledger.lease.address = NOWHERE
        assert ledger.lease.standing() is None
        with pytest.raises(NotDeclared, match="names no witness"):
            ledger.lease.renew()


def test_while_the_witness_is_down_charges_go_on_within_the_lease_and_no_further(place: Place) -> None:
    with closing(place.open(NOWHERE)) as ledger:
        for number in range(4):
            charge(ledger, question=f"{number}")
        before = ledger.head()
        found = health(ledger)  # whoever runs the ledger sees it coming
        assert (found.lease, "is the witness there?" in str(found.attention())) == (1, True)
        assert "sfumato_ledger_lease_used_ratio 1" in metrics(found)
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"does not answer.*Nothing was read and nothing was spent"):
                charge(ledger, question="beyond")
        assert ledger.head() == before
        assert spent(ledger) == 1
        ledger.lease.address = place.address
        charge(ledger, question="beyond")
        assert spent(ledger) == Fraction(5, 4)
        with pytest.raises(Refused, match="at most ε = 1 beyond"):
            charge(ledger, Budget(epsilon=2), question="more than a lease")
        with pytest.raises(Refused, match="beyond what the witness has seen"):
            charge(ledger, Budget(epsilon="1/8", delta="1/1000000"), question="the lease has no δ")
        assert spent(ledger) == Fraction(5, 4)


def test_without_an_address_the_lease_is_the_end(place: Place) -> None:
    with closing(place.open()) as ledger:
        ledger.lease.address = None
        charge(ledger, LEASE)
        with pytest.raises(NotDeclared, match="nobody said where the witness is asked"):
            charge(ledger, question="beyond")
        assert spent(ledger) == 1


def test_an_old_database_alone_is_refused_by_the_anchor(place: Place) -> None:
    place.save("old")
    with closing(place.open()) as ledger:
        charge(ledger)
    place.restore("old", anchor=False, witnessed=False)
    with pytest.raises(LedgerError, match="old backup"):
        place.open()


def test_an_old_anchor_alone_is_followed_to_the_signed_end(place: Place) -> None:
    place.save("old")
    with closing(place.open()) as ledger:
        charge(ledger)
        ledger.lease.renew()
    place.restore("old", database=False)
    with closing(place.open()) as ledger:
        charge(ledger)
        assert spent(ledger) == HALF.epsilon
        assert ledger.lease.renew().signed == ledger.head()


@pytest.mark.parametrize("kept", [True, False])
def test_an_old_database_with_its_old_anchor_gets_one_lease_and_no_more(place: Place, *, kept: bool) -> None:
    """The copy charges exactly what the lease allows, then the witness refuses it; the first goes on."""
    with closing(place.open()) as ledger:
        charge(ledger)
        ledger.lease.renew()
    place.save("old")
    with closing(place.open()) as ledger:
        for number in range(6):  # beyond a lease, so that the witness sees some of it
            charge(ledger, HALF, question=f"first {number}")
        number = ledger.lease.renew().signed.head.number
    place.save("new")
    place.restore("old", witnessed=kept)
    with closing(place.open(NOWHERE)) as copy:
        if not kept:
            with pytest.raises(
                LedgerError, match=f"has seen entry {number} of this ledger, and the record, which ends at 9"
            ):
                charge(copy, question="refilled")
            assert spent(copy) == Fraction(1, 4)
            return
        for one in range(4):
            charge(copy, question=f"again {one}")
        assert spent(copy) == Fraction(1, 4) + LEASE.epsilon
    with closing(place.open()) as copy:
        before = copy.head()
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"has seen another entry .* nothing was spent"):
                charge(copy, Budget(epsilon="1/1000"), question="beyond")
        assert copy.head() == before
        assert copy.verify() == ()  # nothing in the copy itself shows it
    assert seen(place).signed.head.number == number
    place.restore("new")
    with closing(place.open()) as ledger:
        charge(ledger, HALF, question="the first goes on")
        ledger.lease.renew()


def test_without_the_witness_the_copy_spends_everything_again(tmp_path: Path) -> None:
    """The broken twin: the same restore, and nobody notices."""
    home = sqlite_home(tmp_path)
    furnished(home, project=LEASE).close()
    shutil.copytree(tmp_path, tmp_path.with_name("copy"))
    for where in (home, Home(str(tmp_path.with_name("copy") / "ledger.db"), str(tmp_path.with_name("copy") / "apart"))):
        with closing(where.open()) as ledger:
            charge(ledger, LEASE)


def test_a_copy_that_has_grown_longer_is_refused_too(place: Place) -> None:
    """More entries than the witness has seen do not help, nor the row that it has seen, put into the database."""
    place.save("old")
    with closing(place.open()) as ledger:
        charge(ledger)
        head = ledger.lease.renew().signed.head
        row = place.home.execute(f"SELECT * FROM record WHERE number = {head.number}")[0]  # noqa: S608 - ours
    place.restore("old")
    with closing(place.open(NOWHERE)) as copy:
        for number in range(3):
            charge(copy, question=f"{number}")
    place.home.unlocked(f"DELETE FROM record WHERE number = {head.number}")  # noqa: S608 - ours
    words = ", ".join("?" * len(row))
    with closing(sqlite3.connect(place.home.url)) as base, base:
        base.execute(f"INSERT INTO record VALUES ({words})", tuple(row))  # noqa: S608 - ours
    with closing(place.open()) as copy:
        before = copy.head()
        with pytest.raises(LedgerError, match="does not go on from it"):
            charge(copy, HALF, question="beyond")
        Path(f"{place.home.anchor}.witnessed").unlink()
        with pytest.raises(LedgerError, match="does not follow what the witness has seen"):
            charge(copy, HALF, question="beyond")
        assert copy.head() == before
    assert seen(place).signed.head == head


def test_a_restore_under_a_running_process_is_noticed(place: Place) -> None:
    place.save("old")
    with closing(place.open()) as ledger:
        charge(ledger)
        ledger.lease.renew()
        ledger.close()
        place.restore("old")
        ledger.lease.address = NOWHERE
        with pytest.raises(LedgerError, match="does not go on from it: an old database was brought back"):
            charge(ledger, question="refilled")
        assert spent(ledger) == 0


def request_of(ledger: Ledger, **changes: Any) -> SignedExtension:
    """What the ledger would tell its witness now, changed, and signed with its key."""
    with ledger.record.reading() as transaction:
        base = ledger.lease._standing(transaction, ledger.lease._named(transaction), transaction.end())
        request, _ = ledger.lease._request(transaction, base, None)
    return SignedExtension.sign(replace(request.extension, **changes), ledger.key)


def test_forgeries_are_refused_and_nothing_is_remembered(place: Place, tmp_path: Path) -> None:
    with closing(place.open()) as ledger:
        before = seen(place)
        charge(ledger)
        good, key = request_of(ledger), ledger.key
        said, head = good.extension, ledger.head().head
        foe = SigningKey.new()

        def signed(changed: Head, signer: SigningKey = key) -> SignedExtension:
            text = SignedHead.sign(changed, signer).text
            rows = (*said.rows[:-1], (changed.number, changed.digest))
            return SignedExtension.sign(replace(said, head=text, rows=rows), signer)

        with pytest.raises(Refused, match="not signed with the key"):
            place.witness.extend(SignedExtension.sign(said, foe))
        with pytest.raises(Refused, match="not signed with the key"):
            place.witness.extend(signed(head, foe))
        forged = replace(said, head=SignedHead.sign(head, foe).text)
        with pytest.raises(Refused, match="not signed with the key"):
            place.witness.extend(SignedExtension.sign(forged, key))
        with pytest.raises(Refused, match="does not know the ledger"):
            place.witness.extend(signed(replace(head, ledger="another")))
        with pytest.raises(InvalidInput, match="do not end with its head"):
            place.witness.extend(SignedExtension.sign(replace(said, rows=said.rows[:-1]), key))
        with pytest.raises(InvalidInput, match="entries in their order"):
            place.witness.extend(SignedExtension.sign(replace(said, rows=said.rows[::-1]), key))
        with pytest.raises(InvalidInput, match="entries in their order"):
            place.witness.extend(SignedExtension.sign(replace(said, rows=((*said.rows[0][:1], "zz"),)), key))
        less = replace(head, epsilon=before.signed.head.epsilon - 1)
        assert place.witness.extend(signed(less)) == Conflict(last=before)
        for since in (0, 3, head.number):
            assert place.witness.extend(request_of(ledger, since=since)) == Conflict(last=before)
        assert seen(place) == before
        made = place.witness.extend(good)
        assert isinstance(made, WitnessedHead)
        assert place.witness.extend(good) == made  # an answer that was lost is given again
        assert place.witness.extend(signed(replace(head, digest="1" * 64))) == Conflict(last=made)  # a fork
        back = before.signed.head
        assert place.witness.extend(signed(replace(back, digest="1" * 64))) == Conflict(last=made)  # a number back
        place.witness.end(ledger.identifier)
        charge(ledger)
        with pytest.raises(Refused, match="witness it no more"):
            ledger.lease.renew()


def test_enrolment_is_by_a_head_that_its_key_signed(place: Place) -> None:
    with closing(place.open()) as ledger:
        with pytest.raises(Refused, match="not signed with this key"):
            place.witness.enrol(ledger.head(), SigningKey.new().public_text)
        with pytest.raises(Refused, match="enrolled already"):
            place.witness.enrol(ledger.head(), ledger.key.public_text)
        assert place.witness.ledgers() == [(ledger.identifier, ledger.head().head.number, False)]
    with pytest.raises(LedgerError, match="exists already"):
        Witness.create(place.folder / "witness")
    with pytest.raises(LedgerError, match="no witness in"):
        Witness(place.folder / "nobody")
    assert (place.folder / "witness" / "witness.db").stat().st_mode & 0o777 == 0o600


def test_another_witness_at_the_address_is_not_believed(place: Place, tmp_path: Path) -> None:
    other = Witness.create(tmp_path / "other")
    with closing(place.open()) as ledger, served(other) as server:
        other.enrol(ledger.head(), ledger.key.public_text)
        charge(ledger, LEASE)
        ledger.lease.address = server.address
        before = ledger.head()
        with pytest.raises(LedgerError, match=r"was set back|is not the witness that the record names"):
            charge(ledger, question="beyond")
        assert ledger.head() == before


def test_a_witness_that_forgot_is_not_believed(place: Place) -> None:
    shutil.copytree(place.folder / "witness", place.folder / "forgetful")
    with closing(place.open()) as ledger:
        charge(ledger, HALF)
        ledger.lease.renew()
        charge(ledger, HALF)
        with served(Witness(place.folder / "forgetful")) as server:
            ledger.lease.address = server.address
            with pytest.raises(LedgerError, match="its memory was set back"):
                ledger.lease.renew()


KILLED = """
import os, signal, sys
from sfumato.governance.witness import Witness
from sfumato.governance.witness_server import WitnessServer

class Dies(Witness):
    def extend(self, request):
        super().extend(request)
        os.kill(os.getpid(), signal.SIGKILL)

server = WitnessServer(Dies(sys.argv[1]))
print(server.address, flush=True)
server.serve_forever(0.01)
"""


def test_a_witness_that_is_killed_between_its_disk_and_its_answer_goes_on(place: Place) -> None:
    given = [sys.executable, "-c", KILLED, str(place.folder / "witness")]
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as process, closing(place.open()) as ledger:
        assert process.stdout is not None
        ledger.lease.address = process.stdout.readline().strip()
        charge(ledger, LEASE)
        ledger.lease.wait()
        before = ledger.head()
        with pytest.raises(LedgerError, match="does not answer"):
            charge(ledger, question="beyond")
        assert process.wait() == -signal.SIGKILL
        assert ledger.head() == before
        assert seen(place).signed == before  # it was on the disk
        ledger.lease.address = place.address
        charge(ledger, question="beyond")
        assert ledger.lease.renew().signed == ledger.head()


def test_two_clients_at_once_share_the_lease_and_the_witness(place: Place) -> None:
    wrong: list[BaseException] = []

    def spend(name: int) -> None:
        try:
            with closing(place.open()) as ledger:
                for number in range(8):
                    charge(ledger, HALF, question=f"{name} {number}")
        except BaseException as failed:  # noqa: BLE001 - looked at below
            wrong.append(failed)

    threads = [threading.Thread(target=spend, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    with closing(place.open()) as ledger:
        assert spent(ledger) == 8
        assert ledger.verify(witnessed=[ledger.lease.renew()]) == ()


def test_half_a_lease_is_renewed_beside_the_charges(place: Place) -> None:
    with closing(place.open()) as ledger:
        number = seen(place).signed.head.number
        charge(ledger)
        ledger.lease.wait()
        assert seen(place).signed.head.number == number
        charge(ledger)
        ledger.lease.wait()
        assert seen(place).signed.head.number == number + 4


def test_a_corrected_price_is_told_at_once(place: Place) -> None:
    """It counts also beyond the lease, so what is charged after it waits for the witness."""
    with closing(place.open()) as ledger:
        account = ledger.account(ACCOUNT, unit=PATIENT)
        number = account.reserve(QUARTER, datasets=[VISITS]).number
        ledger.reprice(number, cost=Budget(epsilon=3), reason="a claim was corrected")
        ledger.lease.wait()
        assert seen(place).signed.head.epsilon == 3
        ledger.lease.address = None
        charge(ledger)


def test_a_long_record_is_told_in_parts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leasing, "MOST_ROWS", 3)
    with closing(place.open(NOWHERE)) as ledger:
        for number in range(4):
            charge(ledger, question=f"{number}")
        ledger.lease.address = place.address
        head = ledger.lease.renew()
        assert head.signed == ledger.head()
        assert ledger.verify(witnessed=[head]) == ()


# Recovery


def lost_both(place: Place) -> int:
    """The record goes on beyond a witnessed head, and both database and anchor are brought back from before it."""
    with closing(place.open()) as ledger:
        charge(ledger, HALF, question="before")
        ledger.lease.renew()
    place.save("old")
    with closing(place.open()) as ledger:
        charge(ledger, HALF, question="lost")
        number = ledger.lease.renew().signed.head.number
        ledger.lease.address = None
        charge(ledger, question="lost and unseen")
    place.restore("old")
    return number


def last_recovery(ledger: Ledger) -> Recovered:
    return [entry for row in ledger.rows() if isinstance(entry := row.entry, Recovered)][-1]


def test_a_recovery_charges_what_the_witness_saw_and_the_lease(place: Place) -> None:
    number = lost_both(place)
    with closing(place.open(NOWHERE)) as copy:
        charge(copy, question="by the copy")
    with closing(place.recover()) as recovered:
        entry = last_recovery(recovered)
        # ε = 1/2 was witnessed and is in the record, 1/4 the copy charged itself; the witness saw 1/2 more.
        assert entry.gap == Budget(epsilon=HALF.epsilon + LEASE.epsilon)
        assert {balance.epsilon_spent for balance in recovered.balances()} == {Fraction(9, 4)}
        assert not entry.whole
        assert f"the witness saw entry {number} last" in entry.basis
        assert WitnessedHead.read(entry.witnessed).signed.head.number == number
        assert recovered.head().head.number > number
        charge(recovered, question="after")  # the witness accepts the line that gave its head up
        head = recovered.lease.renew()
        assert head.signed == recovered.head()
        given_up = WitnessedHead.read(entry.witnessed)
        assert recovered.verify(witnessed=[head, given_up]) == ()


def test_what_was_given_up_stays_given_up(place: Place) -> None:
    """The line that a recovery left behind is refused by the witness from then on."""
    lost_both(place)
    shutil.copytree(place.folder / "ours", place.folder / "kept")
    with closing(place.recover()) as recovered:
        recovered.lease.renew()
    shutil.rmtree(place.folder / "ours")
    shutil.copytree(place.folder / "kept", place.folder / "ours")
    with closing(place.open()) as copy:
        copy.lease.address = place.address
        with pytest.raises(LedgerError, match="has seen another entry"):
            copy.lease.renew()


def test_a_recovery_that_charges_less_is_refused_by_the_witness(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lost_both(place)
    cheap = "sfumato.governance.recovery.seen_loss"
    from sfumato.governance.seen_loss import seen_loss

    monkeypatch.setattr(cheap, lambda *given: replace(seen_loss(*given), gap=Budget.none()))  # type: ignore[type-var]
    with (
        closing(place.recover()) as recovered,
        pytest.raises(LedgerError, match=r"does not take entry .* for a recovery"),
    ):
        recovered.lease.renew()


def test_a_recovery_that_gives_up_another_head_is_refused_by_the_witness(place: Place) -> None:
    """The first line went on after the recovery had asked: what was charged there is not covered by it."""
    with closing(place.open()) as ledger:
        base = ledger.lease.renew()
    place.save("old")
    with closing(place.open()) as ledger:
        charge(ledger)
        ledger.lease.renew()
    place.save("first")
    place.restore("old")
    with closing(place.open(NOWHERE)) as copy:
        for number in range(4):
            charge(copy, question=f"{number}")
    place.recover().close()
    place.save("recovered")
    place.restore("first")
    with closing(place.open()) as ledger:
        charge(ledger, question="the first goes on")
        last = ledger.lease.renew()
    place.restore("recovered")
    with closing(place.open()) as recovered:
        with recovered.record.reading() as transaction:
            row = transaction.row(recovered.decision_state().recovered)
            request, whole = recovered.lease._request(transaction, base, row)
        assert whole
        assert recovered.head().head.number > last.signed.head.number
        assert place.witness.extend(request) == Conflict(last=last)
        with pytest.raises(LedgerError, match="has seen another entry"):
            recovered.lease.renew()
    assert seen(place) == last


class Replaying(Witness):
    """Somebody on the wire who gives an answer of yesterday to the question of today."""

    yesterday: LastSeen

    def last(self, ledger: str, nonce: str, upto: int | None = None) -> LastSeen:
        return self.yesterday


@pytest.mark.parametrize("how", ["an old answer", "another key"])
def test_a_recovery_believes_no_answer_but_a_fresh_one_of_its_witness(place: Place, how: str) -> None:
    name = place.open().identifier
    old = place.witness.last(name, "yesterday").witnessed
    lost_both(place)
    fake = Replaying(place.folder / "witness")
    with served(fake) as server:
        if how == "an old answer":
            fake.yesterday = place.witness.last(name, "yesterday")
        else:
            fake.last = lambda ledger, nonce, upto=None: LastSeen.sign(  # type: ignore[method-assign]
                ledger, nonce, upto or 0, old, SigningKey.new()
            )
        with pytest.raises(Refused, match="is not the witness that the record names"):
            place.recover(witness=server.address)


def test_a_recovery_needs_the_witness_or_everything(place: Place) -> None:
    lost_both(place)
    with pytest.raises(Refused, match=r"does not answer.*not recovered.*--witness-lost"):
        place.recover(witness=NOWHERE)
    with pytest.raises(NotDeclared, match="nobody said where it is asked"):
        place.recover(witness=None)
    with closing(place.recover(witness=None, witness_lost=True)) as recovered:
        assert {balance.left for balance in recovered.balances()} == {Budget.none()}
        entry = last_recovery(recovered)
        assert entry.whole
        assert "nobody knows" in entry.basis


def test_a_lost_anchor_costs_the_lease_where_a_witness_knows(place: Place) -> None:
    with closing(place.open()) as ledger:
        charge(ledger, HALF)
        ledger.lease.renew()
    place.home.anchor.unlink()
    with closing(place.recover()) as recovered:
        assert spent(recovered) == HALF.epsilon + LEASE.epsilon
        charge(recovered, question="after")
        assert recovered.lease.renew().signed == recovered.head()
    with pytest.raises(Refused, match="nothing to recover"):
        place.recover()


def test_an_old_database_under_a_good_anchor_costs_the_lease_too(place: Place) -> None:
    place.save("old")
    with closing(place.open()) as ledger:
        charge(ledger)
    place.restore("old", anchor=False, witnessed=False)
    with closing(place.recover()) as recovered:
        assert spent(recovered) == LEASE.epsilon  # the anchor knows of 1/4, the witness of nothing beyond the backup
        assert "the anchor was at entry" in last_recovery(recovered).basis
        charge(recovered, question="after")


def test_where_no_witness_is_named_the_anchor_alone_says_how_it_is_known(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    furnished(home).close()
    home.anchor.unlink()
    with closing(Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="x")) as ledger:
        assert last_recovery(ledger).basis == "the anchor is lost: nobody knows what was charged"


# Naming


def test_a_new_lease_counts_from_the_head_that_states_it(place: Place) -> None:
    with closing(place.open()) as ledger:
        ledger.lease.name(place.witness.key.public_text, lease=Budget(epsilon=3), reason="more at the year's end")
        charge(ledger, Budget(epsilon=2))
        assert seen(place).lease == Budget(epsilon=3)
        for lease in (Budget.none(), Budget(rho="1/2")):
            with pytest.raises(InvalidInput, match="a lease is an ε above 0"):
                ledger.lease.name(place.witness.key.public_text, lease=lease, reason="x")
        with pytest.raises(NotDeclared, match="reason"):
            ledger.lease.name(place.witness.key.public_text, lease=LEASE, reason=" ")


def test_a_board_decides_on_the_witness(place: Place) -> None:
    key = place.witness.key.public_text
    with closing(place.open()) as ledger:
        ledger.seat(keyed(Board(members=("ada", "ben", "cleo"), quorum=2)), by="ada", reason="x")
        with pytest.raises(Refused, match=f"subject 'witness {key}'"):
            ledger.lease.name(key, lease=HALF, reason="x")
        number = ledger.propose(
            by="ada",
            action=Action.EXCEPTION,
            subject=f"witness {key}",
            amount=HALF,
            reasons=Reasons(benefit="x", risk="x", choice="x"),
            key=key_of("ada"),
        )
        for member in ("ben", "cleo"):
            ledger.vote(number, by=member, choice=Choice.YES, key=key_of(member))
        ledger.lease.name(key, lease=HALF, reason="decided")
        with pytest.raises(Refused, match="not decided by the board"):
            ledger.lease.name(key, lease=LEASE, reason="a larger one was not")
        assert ledger.verify() == ()


def test_a_witnessed_head_of_somebody_else_is_a_finding(place: Place) -> None:
    with closing(place.open()) as ledger:
        head = ledger.lease.renew()
        foe = SigningKey.new()
        forged = WitnessedHead.sign(head.head, head.root, head.lease, head.at, foe)
        assert "not signed" in str(ledger.verify(witnessed=[forged])[0])
        other = WitnessedHead.sign(head.head, "0" * 64, head.lease, head.at, place.witness.key)
        assert "was rewritten" in str(ledger.verify(witnessed=[other])[0])
    place.save("old")
    with closing(place.open()) as ledger:
        charge(ledger)
        head = ledger.lease.renew()
    place.restore("old")
    with closing(place.open()) as ledger:
        assert "the witness has seen it, and the record ends at" in str(ledger.verify(witnessed=[head])[0])


# The wire


def ask(address: str, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    host, _, port = address.removeprefix("http://").partition(":")
    connection = HTTPConnection(host, int(port), timeout=5)
    with closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/nothing", None, {}, 404),
        ("POST", "/nothing", b"{}", {}, 404),
        ("PUT", "/extend", b"{}", {}, 501),
        ("POST", "/extend", b"not JSON", {}, 400),
        ("POST", "/extend", b"\xff\xfe", {}, 400),
        ("POST", "/extend", b"[" * 100_000, {}, 400),
        ("POST", "/extend", b'{"kind":"witness.head","version":1}', {}, 400),
        ("POST", "/extend", b'{"kind":"witness.signed_extension","version":9}', {}, 400),
        ("POST", "/last", b"[]", {}, 400),
        ("POST", "/last", b'{"ledger":"x","nonce":"y","upto":null}', {}, 403),
        ("POST", "/last", b'{"ledger":"x","nonce":"y","upto":0}', {}, 400),
        ("POST", "/last", b'{"ledger":"x","nonce":1,"upto":null}', {}, 400),
        ("POST", "/last", b'{"ledger":"x","nonce":"' + b"y" * 200 + b'","upto":null}', {}, 400),
        ("POST", "/extend", b"", {"Content-Length": "99999999999"}, 413),
        ("POST", "/extend", b"", {"Content-Length": "many"}, 411),
        ("POST", "/extend", b"", {"Content-Length": "-1"}, 411),
    ],
)
def test_what_the_witness_does_not_understand_is_answered_in_words(
    place: Place, method: str, path: str, body: bytes | None, headers: dict[str, str], status: int
) -> None:
    found, text = ask(place.address, method, path, body, **headers)
    assert found == status
    assert set(json.loads(text)) == {"error"}
    assert "Traceback" not in text
    assert ask(place.address, "GET", "/") == (200, json.dumps({"witness": place.witness.key.public_text}))


def test_who_says_nothing_or_half_is_not_waited_for(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    with served(place.witness, patience=0.1) as server:
        host, port = server.server_address[:2]
        for said in (b"", b"POST /extend HTTP/1.0\r\nContent-Length: 100\r\n\r\nhalf", b"\x00\xff\r\n\r\n"):
            with socket.create_connection((str(host), int(port)), timeout=5) as client:
                client.sendall(said)
                answer = client.makefile("rb").read()
            assert b"Traceback" not in answer
            if b"half" in said:
                assert b" 408 " in answer.splitlines()[0]
        assert ask(server.address, "GET", "/")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_more_at_once_than_there_is_room_for_are_sent_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness_server, "AT_ONCE", 1)
    with served(place.witness) as server:
        host, port = server.server_address[:2]
        with socket.create_connection((str(host), int(port)), timeout=5) as silent:
            silent.sendall(b"POST /extend HTTP/1.0\r\n")
            assert ask(server.address, "GET", "/")[0] == 503
            with closing(place.open()) as ledger:
                ledger.lease.address = server.address
                with pytest.raises((LedgerError, Refused), match=r"refused \(503\)|does not answer"):
                    ledger.lease.renew()


@pytest.mark.parametrize(
    "address", ["ftp://there", "http://", "there:1", "http://ada@there", "http://there/path", "http://there:99999"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="the address of a witness"):
        WitnessClient(address, "0" * 64, "1" * 64)


def test_an_extension_signed_for_one_ledger_says_nothing_for_another() -> None:
    key = SigningKey.new()
    said = SignedExtension.sign(Extension(head="x", since=0, rows=((1, "0" * 64),), lease=LEASE), key)
    assert SignedExtension.read(said.text) == said
    assert said.holds(key.public_text)
    assert not replace(said, extension=replace(said.extension, lease=HALF)).holds(key.public_text)
    assert not said.holds(SigningKey.new().public_text)
    with pytest.raises(InvalidInput, match=r"not a document of the kind 'witness\.head'"):
        WitnessedHead.read(said.text)
