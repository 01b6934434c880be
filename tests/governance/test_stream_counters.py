"""The count of a charge: a place belongs to its first holder, the count only moves forward, and the record keeps it."""

# ruff: noqa: S608 - the statements of a test, on tables of its own

from concurrent.futures import ThreadPoolExecutor

import pytest

from sfumato.core.budget import Budget
from sfumato.core.ledger import Reservation
from sfumato.errors import InvalidInput, LedgerError, Refused
from sfumato.governance.durable import DurableLedger
from sfumato.governance.entries import Advanced, Row
from sfumato.governance.ledger import Ledger
from sfumato.governance.memory import MemoryLedger
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished
from tests.governance.signers import key_of
from tests.governance.test_governed import account as user_of
from tests.governance.test_governed import asked, governed, passed

HALF = Budget(epsilon="1/2")


def charged(home: Home) -> tuple[DurableLedger, Reservation]:
    account = furnished(home).account(ACCOUNT, unit=PATIENT)
    return account, account.reserve(HALF, datasets=[VISITS], idempotency="night shift")


def counted(ledger: DurableLedger | MemoryLedger, charge: Reservation) -> None:
    """What both ledgers must do."""
    ledger.advance(charge, 0, "a", datasets=[VISITS])
    ledger.advance(charge, 0, "a", datasets=[VISITS])  # said again by its holder
    ledger.advance(charge, 1, "b", datasets=[VISITS])
    for place, holder in ((0, "a"), (1, "a"), (0, "b"), (1, "c")):
        with pytest.raises(Refused, match="older than the ledger's count, or another copy"):
            ledger.advance(charge, place, holder, datasets=[VISITS])
    with pytest.raises(LedgerError, match=r"does not follow the ledger's count .* which is at 1"):
        ledger.advance(charge, 3, "d", datasets=[VISITS])
    for place, holder in ((-1, "d"), (True, "d"), (2, "")):
        with pytest.raises(InvalidInput, match="a place in a count"):
            ledger.advance(charge, place, holder, datasets=[VISITS])
    ledger.advance(charge, 2, "d", datasets=[VISITS])
    assert ledger.spent == HALF


def test_a_count_moves_forward_one_by_one_and_each_place_has_one_holder(home: Home) -> None:
    account, charge = charged(home)
    counted(account, charge)
    again = home.account()  # as another process sees it
    found = again.charge_named("night shift")
    assert found is not None
    assert (found.number, found.place, found.holder) == (charge.number, 2, "d")
    assert again.charge_named("another") is None
    with pytest.raises(Refused):
        again.advance(charge, 2, "e", datasets=[VISITS])
    account.commit_text(charge, "question", "{}")
    with pytest.raises(LedgerError, match="settled already"):
        account.advance(charge, 3, "f", datasets=[VISITS])
    assert account.ledger.verify() == ()
    kinds = [row.kind for row in account.ledger.rows()]
    assert kinds.count("ledger.advanced") == 3


def test_the_ledger_in_memory_counts_alike() -> None:
    ledger = MemoryLedger(account="er", budget=Budget(epsilon=1), unit=PATIENT)
    counted(ledger, ledger.reserve(HALF))
    other = ledger.reserve(HALF)
    ledger.advance(other, 0, "a")  # each charge has a count of its own
    ledger.close([VISITS], {})
    with pytest.raises(Refused, match="was closed"):
        ledger.advance(other, 1, "b", datasets=[VISITS])


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_of_many_at_once_one_takes_the_place(home: Home) -> None:
    account, charge = charged(home)
    account.advance(charge, 0, "start", datasets=[VISITS])

    def taken(name: int) -> int | None:
        try:
            home.account().advance(charge, 1, f"copy {name}", datasets=[VISITS])
        except Refused:
            return None
        return name

    with ThreadPoolExecutor(4) as pool:
        winners = [name for name in pool.map(taken, range(8)) if name is not None]
    assert len(winners) == 1
    assert account.charge_named("night shift").holder == f"copy {winners[0]}"  # type: ignore[union-attr]
    assert account.ledger.verify() == ()


def test_a_count_that_was_set_back_is_found(home: Home) -> None:
    account, charge = charged(home)
    account.advance(charge, 0, "a", datasets=[VISITS])
    account.advance(charge, 1, "b", datasets=[VISITS])
    home.unlocked(f"UPDATE charge SET place = 0, holder = 'a' WHERE number = {charge.number}")
    (finding,) = account.ledger.verify()
    assert f"the charge {charge.number} in the stored state does not follow" in finding.problem


def test_a_record_that_skips_a_place_is_found(home: Home) -> None:
    """A forger with the key's help could chain any row; the replay still says what is wrong with it."""
    account, charge = charged(home)
    account.advance(charge, 0, "a", datasets=[VISITS])
    ledger = account.ledger
    for place in (0, 2):
        with ledger.record.reading() as transaction:
            totals = transaction.end()
        forged = Row.after(
            totals.number, totals.digest, Advanced(at=totals.at, charge=charge.number, place=place, holder="x")
        )
        home.unlocked(
            f"INSERT INTO record (number, kind, body, previous, digest) VALUES ({forged.number}, '{forged.kind}', "
            f"'{forged.body}', '{forged.previous}', '{forged.digest}')",
            f"UPDATE head SET number = {forged.number}, digest = '{forged.digest}'",
        )
        assert any("does not go on like this" in finding.problem for finding in ledger.verify())
        home.unlocked(
            f"DELETE FROM record WHERE number = {forged.number}",
            f"UPDATE head SET number = {totals.number}, digest = '{totals.digest}'",
        )
        assert ledger.verify() == ()


def test_what_was_not_started_has_no_count_and_a_closed_version_ends_one(home: Home) -> None:
    account, charge = charged(home)
    queued = account.reserve(HALF, datasets=[VISITS], queued=True)
    with pytest.raises(Refused, match="may not be read"):
        account.advance(queued, 0, "a", datasets=[VISITS])
    account.advance(charge, 0, "a", datasets=[VISITS])
    account.close([VISITS], {})
    with pytest.raises(Refused, match="may not be read"):
        account.advance(charge, 1, "b", datasets=[VISITS])
    assert account.ledger.verify() == ()


def test_a_veto_ends_a_stream_at_its_next_step(home: Home) -> None:
    ledger = governed(home)
    passed(ledger, asked(ledger))
    account = user_of(ledger)
    charge = account.reserve(HALF, datasets=[VISITS])
    account.advance(charge, 0, "a", datasets=[VISITS])
    ledger.veto(by="mele", key=key_of("mele"), community="valley", dataset="visits", reason="we were not asked")
    with pytest.raises(Refused, match="under a community's veto"):
        account.advance(charge, 1, "b", datasets=[VISITS])
    assert ledger.verify() == ()


def test_a_recovery_ends_the_streams_from_before(home: Home) -> None:
    """An older state might go on from there, beside what was told in the entries that are lost."""
    account, charge = charged(home)
    account.advance(charge, 0, "a", datasets=[VISITS])
    home.anchor.unlink()
    ledger = Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="the disk is gone")
    again = ledger.account(ACCOUNT, unit=PATIENT)
    for place, holder in ((0, "a"), (1, "b")):
        with pytest.raises(Refused, match="nobody knows how far its stream had gone"):
            again.advance(charge, place, holder, datasets=[VISITS])
    assert again.left == Budget.none()
    assert home.open().verify() == ()
