"""Open charges and a copy of database and anchor: of the two that hold a charge, one draws for it and the other not."""

from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.core.ledger import Reservation
from sfumato.errors import LedgerError, NotDeclared, Refused
from sfumato.governance.durable import DurableLedger
from sfumato.governance.entries import Started
from sfumato.governance.ledger import Ledger
from sfumato.governance.owner.server import ServerLimits
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished, sqlite_home
from tests.governance.owners import served
from tests.governance.test_owner import ADA, BEN, Users, allowed
from tests.governance.test_witness import NOWHERE, Place, charge, spent
from tests.governance.test_witness import place as _place

place = _place  # a fixture
HALF = Budget(epsilon="1/2")


def of(ledger: Ledger) -> DurableLedger:
    return ledger.account(ACCOUNT, unit=PATIENT)


def by_key(account: DurableLedger) -> Reservation:
    return account.reserve(HALF, datasets=[VISITS], idempotency="night", question="q")


def by_number(account: DurableLedger) -> Reservation:
    found = account.charge_named("night")
    assert found is not None
    return account.again(found.number, "q")


WAYS: dict[str, Callable[[DurableLedger], Reservation]] = {"key": by_key, "number": by_number}


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_database_and_anchor_does_not_draw_once_more_for_an_open_charge(place: Place, way: str) -> None:
    """Neither within the lease nor beyond it: the witness has seen the one that came first."""
    with closing(place.open()) as ledger:
        by_key(of(ledger))
        ledger.lease.renew()
    place.save("old")
    with closing(place.open()) as ledger:
        account = of(ledger)
        account.commit_text(WAYS[way](account), "q", "{}")
        assert spent(ledger) == Fraction(1, 2)  # the budget is charged once
        assert ledger.verify() == ()
    place.restore("old")
    with closing(place.open()) as copy:
        with pytest.raises(LedgerError, match=r"old database was brought back.*Nothing was read and nothing was"):
            WAYS[way](of(copy))
        with pytest.raises(LedgerError, match="old database was brought back"):
            charge(copy)


def test_two_copies_that_run_at_once_do_not_both_draw_for_one_charge(place: Place, tmp_path: Path) -> None:
    with closing(place.open()) as ledger:
        by_key(of(ledger))
        ledger.lease.renew()
    place.save("copy")
    other = Home(url=str(tmp_path / "copy" / "ledger.db"), folder=str(tmp_path / "copy" / "apart"))
    given = {"key": other.key, "anchor": other.anchor, "witness": place.address}
    with closing(place.open()) as ledger, closing(Ledger.open(other.url, **given)) as copy:  # type: ignore[arg-type]
        first = by_key(of(copy))
        with pytest.raises(LedgerError, match="old database was brought back"):
            by_key(of(ledger))
        of(copy).commit_text(first, "q", "{}")


@pytest.mark.parametrize("way", WAYS)
def test_without_the_witness_an_open_charge_is_not_gone_on_with(place: Place, way: str) -> None:
    with closing(place.open()) as ledger:
        by_key(of(ledger))
    with closing(place.open(NOWHERE)) as ledger, pytest.raises((LedgerError, Refused), match="Nothing was"):
        WAYS[way](of(ledger))
    with closing(place.open()) as ledger:
        ledger.lease.address = None
        with pytest.raises(NotDeclared, match="a charge that was open before is gone on with"):
            WAYS[way](of(ledger))
    with closing(place.open()) as ledger:
        account = of(ledger)
        account.commit_text(WAYS[way](account), "q", "{}")
        assert by_key(account).number == 8  # what is settled is handed out, and nobody is asked
        assert (spent(ledger), ledger.verify()) == (Fraction(1, 2), ())


def test_what_is_drawn_for_again_counts_against_the_lease_and_against_no_budget(place: Place) -> None:
    with closing(place.open()) as ledger:
        by_key(of(ledger))
        before = ledger.head().head
        by_key(of(ledger))
        after = ledger.head().head
        assert (after.epsilon - before.epsilon, after.number - before.number) == (Fraction(1, 2), 1)
        assert [row.kind for row in ledger.rows()][-1] == Started.KIND
        assert spent(ledger) == Fraction(1, 2)


def test_a_charge_that_is_gone_on_with_again_and_again_is_overcharged_by_a_recovery_and_never_undercharged(
    place: Place,
) -> None:
    """No balance admits more by it; what is lost is charged as if every draw had been delivered somewhere."""
    with closing(place.open()) as ledger:
        charge(ledger)
        ledger.lease.renew()
        before, left = spent(ledger), of(ledger).left
    place.save("old")
    with closing(place.open()) as ledger:
        for _ in range(4):
            by_key(of(ledger))
        assert spent(ledger) == before + Fraction(1, 2)
        assert of(ledger).left == left - HALF
        drawn = spent(ledger)
    place.restore("old")
    with closing(place.recover()) as back:
        assert back.balance(ACCOUNT).epsilon_spent >= drawn + Fraction(3, 2)
        assert back.verify() == ()


@pytest.mark.parametrize("told", [True, False])
def test_a_queued_charge_that_the_witness_saw_waiting_is_started_by_one_copy(place: Place, *, told: bool) -> None:
    """One that it has not seen counts against the lease of each, and nobody is asked."""
    with closing(place.open()) as ledger:
        waiting = of(ledger).reserve(HALF, datasets=[VISITS], idempotency="queue", queued=True)
        if told:
            ledger.lease.renew()
    place.save("old")
    with closing(place.open(None if told else NOWHERE)) as ledger:
        of(ledger).start(waiting)
    place.restore("old")
    with closing(place.open()) as copy:
        if told:
            with pytest.raises(LedgerError, match="old database was brought back"):
                of(copy).start(waiting)
        else:
            of(copy).start(waiting)


def test_a_queued_charge_that_was_started_before_is_not_started_by_two_copies(place: Place) -> None:
    with closing(place.open()) as ledger:
        waiting = of(ledger).reserve(HALF, datasets=[VISITS], idempotency="queue", queued=True)
        ledger.lease.renew()
        of(ledger).start(waiting)
    place.save("old")
    with closing(place.open()) as ledger:
        of(ledger).start(waiting)
        of(ledger).commit_text(waiting, "q", "{}")
        assert (spent(ledger), ledger.verify()) == (Fraction(1, 2), ())
    place.restore("old")
    with closing(place.open()) as copy, pytest.raises(LedgerError, match="old database was brought back"):
        of(copy).start(waiting)


def test_nothing_is_entered_for_a_charge_of_another_user_or_connection(place: Place) -> None:
    """What is gone on with counts against the lease and in the sums of heads: so only whose it is may go on with it."""
    users, limits = Users(ADA), ServerLimits(cut=0.05)
    with (
        closing(place.open()) as ledger,
        served(ledger, permissions=allowed(ada=ACCOUNT, ben=ACCOUNT), credentials=users, limits=limits) as owner,
    ):
        first = owner.account()
        charge = first.reserve(HALF, datasets=[VISITS], idempotency="night", question="a session")
        before, second = ledger.head(), owner.account()
        with pytest.raises(Refused, match="held by another connection"):
            second.again(charge.number, "a session")
        users.uid = BEN
        with pytest.raises(Refused, match="without an idempotency key of yours"):
            owner.account().again(charge.number, "a session")
        assert ledger.head() == before
        first.disconnect()
        users.uid = ADA
        assert second.again(charge.number, "a session") == charge


def test_a_ledger_without_a_witness_writes_nothing_when_an_open_charge_is_found(tmp_path: Path) -> None:
    with closing(furnished(sqlite_home(tmp_path))) as ledger:
        by_key(of(ledger))
        before = ledger.head()
        by_key(of(ledger))
        by_number(of(ledger))
        assert ledger.head() == before
