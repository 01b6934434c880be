"""What every ledger that the gate charges must do: in memory, on SQLite, on PostgreSQL and through an owner process."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.ledger import AccountLedger, Reservation, State
from sfumato.core.query import Dataset
from sfumato.core.release import Release, presenter_of
from sfumato.core.signature import SigningKey
from sfumato.core.stored import Stored, moment
from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError, Refused
from sfumato.governance.memory import MemoryLedger
from sfumato.reports.stored import stored_release
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, dropped, furnished, postgres_home, sqlite_home
from tests.governance.owners import process, served

CAP, THIRD = Budget(epsilon=1), Budget(epsilon="1/3")
ROWS = pa.table({"patient_id": [1, 2, 3]})


LONG = ("postgresql", "socket on postgresql", "socket of a process")


@pytest.fixture(params=["memory", "sqlite", "socket", *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
def account(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AccountLedger]:
    """An account with ε = 1, in every kind of ledger in turn."""
    if request.param == "memory":
        yield MemoryLedger(account=ACCOUNT, budget=CAP, unit=PATIENT)
        return
    server = request.getfixturevalue("postgres_url") if "postgresql" in request.param else None
    home = sqlite_home(tmp_path) if server is None else postgres_home(tmp_path, server)
    ledger = furnished(home, project=CAP)
    if "process" in request.param:
        with process(home) as owner:
            yield owner.account()
    elif "socket" in request.param:
        with served(ledger) as owner:
            yield owner.account()
    else:
        yield ledger.account(ACCOUNT, unit=PATIENT, reader=stored_release)
    ledger.close()
    if server is not None:
        dropped(home, server)


@pytest.fixture(scope="module")
def answered() -> Callable[[Reservation], Release]:
    """A release that states a charge: a count of visits, as a vault would sign it."""
    key = SigningKey.new()
    vault = sf.Vault(unit=PATIENT, budget=CAP, name="template", key=key)
    visits = vault.table(ROWS, name=VISITS.name, version=VISITS.edition, limit=sf.Limit(groups=1, rows_per_group=1))
    template = visits.count().release(epsilon=THIRD.epsilon)

    def made(reservation: Reservation) -> Release:
        said = {"account": reservation.account, "spend": reservation.cost, "reads": reservation.reads}
        statement = replace(template.statement, **said)  # type: ignore[arg-type]
        signed = Certificate.sign(statement, key)
        return replace(template, presenter=presenter_of(template), statement=statement, certificate=signed)

    return made


Answered = Callable[[Reservation], Release]


def test_a_charge_counts_from_its_reservation_on(account: AccountLedger) -> None:
    assert (account.budget, account.spent, account.left) == (CAP, Budget.none(), CAP)
    reservation = account.reserve(THIRD, datasets=[VISITS], lasts=timedelta(days=1))
    assert (account.spent, account.left) == (THIRD, CAP - THIRD)
    assert (reservation.cost, reservation.account.name, reservation.account.spent) == (THIRD, ACCOUNT, THIRD)


def test_what_exceeds_the_budget_is_refused_and_changes_nothing(account: AccountLedger) -> None:
    account.reserve(Budget(epsilon="2/3"), datasets=[VISITS])
    with pytest.raises(BudgetExceeded, match="1/3 left; this release asks for ε = 1/2"):
        account.reserve(Budget(epsilon="1/2"), datasets=[VISITS])
    assert account.left == THIRD
    account.reserve(THIRD, datasets=[VISITS])  # equality is allowed
    assert account.left == Budget.none()


def test_several_charges_are_asked_about_together_and_nothing_is_held_back(account: AccountLedger) -> None:
    half = Budget(epsilon="1/2")
    account.check_fits([(half, None), (half, None)], datasets=[VISITS])  # equality is allowed
    with pytest.raises(BudgetExceeded, match="1 left; this release asks for ε = 7/6"):
        account.check_fits([(half, None), (half, None), (Budget(epsilon="1/6"), None)], datasets=[VISITS])
    with pytest.raises(BudgetExceeded):
        account.check_fits([(half, None), (Budget(epsilon="1/4", delta="1/1000"), None)], datasets=[VISITS])
    assert account.spent == Budget.none()
    account.reserve(THIRD, datasets=[VISITS])
    with pytest.raises(BudgetExceeded, match="2/3 left; this release asks for ε = 1"):
        account.check_fits([(half, None), (half, None)], datasets=[VISITS])
    assert account.spent == THIRD


def test_an_answer_is_stored_with_its_charge_and_settles_it_once(account: AccountLedger, answered: Answered) -> None:
    reservation = account.reserve(THIRD, datasets=[VISITS], question="how many")
    release = answered(reservation)
    assert account.stored("how many", [VISITS]) is None
    assert account.given(reservation) is None
    account.commit(reservation, "how many", release)
    for stored in (
        account.stored("how many", [VISITS]),
        account.given(reservation),
        account.settled(reservation.number, "how many"),
    ):
        assert stored is not None
        assert stored.certificate.text == release.certificate.text
    assert account.stored("how few", [VISITS]) is None
    assert account.spent == THIRD
    with pytest.raises(LedgerError, match="settled already"):
        account.commit(reservation, "how many", release)


def test_an_open_charge_is_found_again_for_its_own_question_alone(account: AccountLedger, answered: Answered) -> None:
    reservation = account.reserve(THIRD, datasets=[VISITS], question="a session")
    found = account.again(reservation.number, "a session")
    assert (found.number, found.cost, found.account) == (reservation.number, THIRD, reservation.account)
    for number, question in ((reservation.number, "another"), (reservation.number + 1, "a session")):
        with pytest.raises((Refused, LedgerError)):
            account.again(number, question)
    assert account.settled(reservation.number, "a session") is None
    account.commit(reservation, "a session", answered(reservation))
    with pytest.raises(Refused):  # it was closed
        account.again(reservation.number, "a session")
    assert account.spent == THIRD


def test_a_key_that_was_never_used_names_no_charge(account: AccountLedger) -> None:
    assert account.named("night shift") is None
    if not isinstance(account, MemoryLedger):  # which has no keys
        account.reserve(THIRD, datasets=[VISITS], idempotency="night shift")
        account.reserve(THIRD, datasets=[VISITS], idempotency="night shift")
        assert account.named("night shift") is State.RESERVED
        assert account.spent == THIRD


def test_each_place_in_the_count_of_a_charge_has_one_holder(account: AccountLedger, answered: Answered) -> None:
    charge = account.reserve(THIRD, datasets=[VISITS], question="a session")
    account.advance(charge, 0, "a", datasets=[VISITS])
    account.advance(charge, 0, "a", datasets=[VISITS])  # said again by its holder
    account.advance(charge, 1, "b", datasets=[VISITS])
    for place, holder in ((0, "a"), (1, "a"), (1, "c")):
        with pytest.raises(Refused, match="older than the ledger's count, or another copy"):
            account.advance(charge, place, holder, datasets=[VISITS])
    with pytest.raises(LedgerError, match="does not follow the ledger's count"):
        account.advance(charge, 3, "d", datasets=[VISITS])
    with pytest.raises(InvalidInput, match="a place in a count"):
        account.advance(charge, -1, "d", datasets=[VISITS])
    account.check_running(charge, datasets=[VISITS])
    account.commit(charge, "a session", answered(charge))
    for go_on in (
        lambda: account.advance(charge, 2, "e", datasets=[VISITS]),
        lambda: account.check_running(charge, datasets=[VISITS]),
    ):
        with pytest.raises((Refused, LedgerError)):
            go_on()


def test_data_is_closed_once_and_by_what_it_is_stored_as(account: AccountLedger) -> None:
    before = Stored(since=moment(), names=frozenset({"rows of a file"}))
    other = Stored(since=moment(), names=frozenset({"rows elsewhere"}))
    charge = account.reserve(THIRD, datasets=[VISITS], question="a session")
    assert not account.closed(VISITS)
    assert not account.shut(VISITS, before)
    assert account.close([VISITS], {VISITS: before})
    assert not account.close([VISITS], {VISITS: before})  # one failure tells
    assert account.closed(VISITS)
    assert account.shut(VISITS, before)
    assert not account.shut(VISITS, other)
    assert not account.closed(Dataset(name=VISITS.name, edition="another"))
    with pytest.raises(Refused):
        account.check_running(charge, datasets=[VISITS])
    with pytest.raises(Refused):
        account.advance(charge, 0, "a", datasets=[VISITS])
    assert account.spent == THIRD  # what was charged counts


def test_who_asks_the_same_question_waits(account: AccountLedger) -> None:
    order: list[str] = []

    def second() -> None:
        with account.asking("how many"):
            order.append("second")

    thread = threading.Thread(target=second)
    with account.asking("how many"), account.asking("how few"):
        thread.start()
        thread.join(timeout=0.3)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_ledger_tells_which_one_it_is(account: AccountLedger) -> None:
    assert account.home == account.home
    assert account.home != MemoryLedger(account=ACCOUNT, budget=CAP, unit=PATIENT).home


JANUARY, FEBRUARY = ("2026-01-01", "2026-01-31"), ("2026-02-01", "2026-02-28")


@pytest.mark.parametrize("through", ["itself", "an owner process"])
def test_a_stored_answer_is_not_handed_out_for_other_days_than_it_was_charged_for(
    tmp_path: Path, answered: Callable[[Reservation], Release], through: str
) -> None:
    ledger = furnished(sqlite_home(tmp_path), project=CAP)
    with served(ledger) as owner:

        def view(reads: tuple[str, str] | None) -> AccountLedger:
            if through == "itself":
                return ledger.account(ACCOUNT, unit=PATIENT, reader=stored_release, reads=reads)
            return owner.account(reads=reads)

        account = view(None)
        charge = account.reserve(THIRD, datasets=[VISITS], reads=JANUARY)
        account.commit(charge, "how many", answered(charge))
        plain = account.reserve(THIRD, datasets=[VISITS])
        account.commit(plain, "how much", answered(plain))
        for asked in (
            lambda: account.stored("how many", [VISITS], reads=FEBRUARY),
            lambda: view(FEBRUARY).stored("how many", [VISITS]),
        ):
            with pytest.raises(Refused, match=r"reads 2026-01-01/2026-01-31.*reads 2026-02-01/2026-02-28: one of the"):
                asked()
        for found in (
            account.stored("how many", [VISITS]),  # who states no days contradicts nothing
            account.stored("how many", [VISITS], reads=JANUARY),
            view(JANUARY).stored("how many", [VISITS]),
            view(FEBRUARY).stored("how many", [VISITS], reads=JANUARY),
        ):
            assert found is not None
            assert found.statement.reads == JANUARY
        assert view(JANUARY).stored("how much", [VISITS]) is not None
    ledger.close()
