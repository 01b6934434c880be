"""What a ledger promises, on both stores."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil, floor

import pytest

from sfumato.core.budget import Budget
from sfumato.core.events import DiscreteGaussian, DiscreteLaplace
from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.units import family, record, user
from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import MemoryLedgerState, end_of, replay
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished

THIRD = Budget(epsilon="1/3")


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def books_of(ledger: Ledger) -> tuple[MemoryLedgerState, MemoryLedgerState]:
    """The state as the database keeps it, and as the record alone gives it."""
    with ledger.record.reading() as transaction:
        kept = MemoryLedgerState(
            kept={balance.name: balance for balance in transaction.balances()},
            editions={edition.dataset: edition for edition in transaction.editions()},
            charges={charge.number: charge for charge in transaction.charges()},
            answers=dict(transaction.answers()),
            head=transaction.totals(),
        )
        replayed = replay(transaction.rows())
    replayed.head = replace(end_of(replayed), state=map_of(replayed).root())
    return kept, replayed


def spent(ledger: Ledger) -> dict[str, Fraction]:
    return {balance.name: balance.epsilon_spent for balance in ledger.balances()}


@pytest.mark.parametrize("home", STORES, indirect=True)
@pytest.mark.claim("S1-03")
def test_a_charge_counts_at_every_level_and_for_dataset_and_population(home: Home) -> None:
    ledger = furnished(home)
    reservation = ledger.account(ACCOUNT, unit=PATIENT).reserve(THIRD, datasets=[VISITS])
    names = (
        "account hospital",
        "account hospital/oncology",
        f"account {ACCOUNT}",
        "dataset visits",
        "population patients",
    )
    assert spent(ledger) == dict.fromkeys(sorted(names), Fraction(1, 3))
    assert (reservation.account.name, reservation.account.releases) == (ACCOUNT, 1)
    assert reservation.account.spent == THIRD
    assert ledger.verify() == ()


@pytest.mark.few(6)
@pytest.mark.parametrize("home", STORES, indirect=True)
@pytest.mark.claim("S1-23")
@pytest.mark.parametrize("level", ["hospital", "department", "project", "dataset", "population"])
def test_any_level_that_is_used_up_refuses_and_nothing_changes(home: Home, level: str) -> None:
    ledger = furnished(home, **{level: Budget(epsilon=1)})
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.reserve(Budget(epsilon="2/3"), datasets=[VISITS])
    before = (books_of(ledger)[0], ledger.head())
    with pytest.raises(BudgetExceeded, match="1/3 left; this release asks for ε = 1/2"):
        account.reserve(Budget(epsilon="1/2"), datasets=[VISITS])
    with pytest.raises(BudgetExceeded):  # the least unit above what is left
        account.reserve(Budget(epsilon=Fraction(1, 3) + Fraction(1, 10**30)), datasets=[VISITS])
    assert (books_of(ledger)[0], ledger.head()) == before
    assert account.left_for([VISITS]).epsilon == Fraction(1, 3)
    account.reserve(THIRD, datasets=[VISITS])  # equality is allowed
    assert account.left_for([VISITS]).epsilon == 0


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_thirds_and_tiny_deltas_add_up_exactly(home: Home) -> None:
    ledger = furnished(home, project=Budget(epsilon=1, delta="3/1000000000000"))
    account = ledger.account(ACCOUNT, unit=PATIENT)
    for _ in range(3):
        account.reserve(Budget(epsilon="1/3", delta="1/1000000000000"), datasets=[VISITS])
    assert account.spent == Budget(epsilon=1, delta="3/1000000000000")
    assert account.left == Budget.none()
    with pytest.raises(BudgetExceeded):
        account.reserve(Budget(epsilon=0, delta="1/1000000000000000000"), datasets=[VISITS])
    # The naive twin keeps millionths, rounded up: it would refuse the third third, or lose the δ if rounded down.
    assert 3 * ceil(Fraction(1, 3) * 10**6) > 10**6
    assert 3 * floor(Fraction(1, 10**12) * 10**6) == 0


@pytest.mark.claim("X-10")
def test_versions_and_overlapping_datasets_draw_on_one_population(home: Home) -> None:
    ledger = furnished(home, population=Budget(epsilon=1))
    newer, register = Dataset(name="visits", edition="2026-11"), Dataset(name="register", edition="1")
    ledger.declare_dataset(newer, population="patients", cap=Budget(epsilon=100, delta="1/1000"))
    ledger.declare_dataset(register, population="patients", cap=Budget(epsilon=1))
    account = ledger.account(ACCOUNT, unit=PATIENT)
    for dataset in (VISITS, newer):
        account.reserve(Budget(epsilon="1/2"), datasets=[dataset])
    with pytest.raises(BudgetExceeded, match="population patients"):
        account.reserve(Budget(epsilon="1/100"), datasets=[register])
    assert spent(ledger)["dataset visits"] == 1  # versions share the cap of their dataset
    assert spent(ledger)["dataset register"] == 0


def test_a_join_of_two_datasets_on_the_same_people_counts_once_for_them(home: Home) -> None:
    ledger = furnished(home)
    ledger.declare_dataset(Dataset(name="register", edition="1"), population="patients", cap=Budget(epsilon=1))
    ledger.account(ACCOUNT, unit=PATIENT).reserve(THIRD, datasets=[VISITS, Dataset(name="register", edition="1")])
    counted = spent(ledger)
    assert counted["dataset visits"] == counted["dataset register"] == counted["population patients"] == Fraction(1, 3)


@pytest.mark.parametrize("home", STORES, indirect=True)
@pytest.mark.claim("S1-24")
def test_departments_on_one_population_draw_on_one_total(home: Home) -> None:
    ledger = furnished(home, population=Budget(epsilon=1))
    for path in ("hospital/paediatrics", "hospital/paediatrics/asthma"):
        ledger.open_account(path, unit=user("child", relation="add/remove"), cap=Budget(epsilon=1), reason="planned")
    first = ledger.account(ACCOUNT, unit=PATIENT)
    second = ledger.account("hospital/paediatrics/asthma", unit=user("child", relation="add/remove"))
    first.reserve(Budget(epsilon="3/4"), datasets=[VISITS])
    assert second.left.epsilon == 1
    assert second.left_for([VISITS]).epsilon == Fraction(1, 4)
    with pytest.raises(BudgetExceeded, match="population patients"):
        second.reserve(Budget(epsilon="1/2"), datasets=[VISITS])


def test_a_budget_belongs_to_its_unit_and_relation(home: Home) -> None:
    ledger = furnished(home)
    for weaker in (user("patient_id", relation="replace"), record(relation="add/remove")):
        with pytest.raises(Refused, match="does not cover"):
            ledger.account(ACCOUNT, unit=weaker)
    stronger = family(3, "patient_id", relation="add/remove")
    ledger.account(ACCOUNT, unit=stronger).reserve(THIRD, datasets=[VISITS])
    with pytest.raises(Refused, match="do not add up"):
        ledger.open_account("hospital/graphs", unit=record(relation="add/remove"), cap=THIRD, reason="none")


def test_what_is_not_declared_is_not_charged(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    with pytest.raises(NotDeclared, match="not declared in the ledger"):
        account.reserve(THIRD, datasets=[Dataset(name="visits", edition="2027-01")])
    with pytest.raises(NotDeclared, match="names the datasets"):
        account.reserve(THIRD)
    with pytest.raises(NotDeclared, match="'hospital/cardiology' is not open"):
        ledger.account("hospital/cardiology", unit=PATIENT)
    with pytest.raises(NotDeclared, match="'clinic' is not open"):
        ledger.open_account("clinic/ward", unit=PATIENT, cap=THIRD, reason="orphan")
    with pytest.raises(NotDeclared, match="is not declared"):
        ledger.declare_dataset(VISITS, population="staff", cap=THIRD)
    with pytest.raises(NotDeclared, match="reason"):
        ledger.open_account("clinic", unit=PATIENT, cap=THIRD, reason=" ")
    with pytest.raises(InvalidInput, match="is not the path"):
        ledger.open_account("hospital//x", unit=PATIENT, cap=THIRD, reason="slip")
    with pytest.raises(InvalidInput, match="is not a filter"):
        ledger.open_account("clinic", unit=PATIENT, cap=THIRD, reason="slip", method="pld")
    assert set(spent(ledger).values()) == {0}


def test_what_is_declared_twice_is_the_same_or_refused(home: Home) -> None:
    ledger = furnished(home)
    head, roomy = ledger.head(), Budget(epsilon=100, delta="1/1000")
    ledger.declare_dataset(VISITS, population="patients", cap=roomy)
    assert ledger.head() == head
    ledger.declare_population("staff", unit=PATIENT, cap=THIRD, reason="other people")
    for edition in ("2026-10", "2027-01"):
        with pytest.raises(Refused, match="is about 'patients', and a new version"):
            ledger.declare_dataset(Dataset(name="visits", edition=edition), population="staff", cap=roomy)
    ledger.declare_version(Dataset(name="visits", edition="2027-01"))
    assert ledger.head().head.number == head.head.number + 2
    with pytest.raises(NotDeclared, match="'births' is not declared"):
        ledger.declare_version(Dataset(name="births", edition="1"))
    with pytest.raises(Refused, match="all its versions share"):
        ledger.declare_dataset(Dataset(name="visits", edition="3"), population="patients", cap=Budget(epsilon=200))
    with pytest.raises(Refused, match="open already"):
        ledger.open_account("hospital", unit=PATIENT, cap=roomy, reason="more")
    with pytest.raises(Refused, match="declared already"):
        ledger.declare_population("patients", unit=PATIENT, cap=roomy, reason="more")


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_an_answer_is_stored_with_its_commit_and_found_by_its_question(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    question = '{"count":"北部 \u0000 😀"}' + "x" * 5000  # longer than an index of PostgreSQL takes
    assert account.answer(question) is None
    reservation = account.reserve(THIRD, datasets=[VISITS])
    account.commit_text(reservation, question, '{"certificate":"é"}')
    assert home.account().answer(question) == '{"certificate":"é"}'
    assert ledger.charge(reservation.number).state is State.COMMITTED
    with pytest.raises(LedgerError, match="settled already"):
        account.commit_text(reservation, question, "{}")
    with pytest.raises(LedgerError, match="settled already"):
        account.release(reservation)
    again = account.reserve(THIRD, datasets=[VISITS])  # drawn anew: the newer answer is the stored one
    account.commit_text(again, question, "{}")
    assert account.answer(question) == "{}"
    assert account.spent == Budget(epsilon="2/3")


def test_a_charge_that_is_given_back_leaves_no_trace_in_the_balances(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.release(account.reserve(THIRD, datasets=[VISITS], queued=True))
    assert set(spent(ledger).values()) == {0}
    assert {balance.charges for balance in ledger.balances()} == {0}
    assert ledger.head().head.epsilon == Fraction(1, 3)  # the sum that a recovery charges never goes back
    assert ledger.verify() == ()


def test_an_idempotency_key_gives_the_same_reservation_and_its_answer(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    first = account.reserve(THIRD, datasets=[VISITS], idempotency="request-7")
    account.reserve(THIRD, datasets=[VISITS])
    assert account.reserve(THIRD, datasets=[VISITS], idempotency="request-7") == first
    assert account.spent == Budget(epsilon="2/3")
    assert account.answer_of(first) is None
    account.commit_text(first, "question", '{"answer":1}')
    retried = home.account().reserve(THIRD, datasets=[VISITS], idempotency="request-7")
    assert retried == first
    assert account.answer_of(retried) == '{"answer":1}'
    with pytest.raises(Refused, match="another request"):
        account.reserve(Budget(epsilon="1/4"), datasets=[VISITS], idempotency="request-7")
    other = account.reserve(THIRD, datasets=[VISITS], idempotency="request-8", queued=True)
    account.release(other)
    with pytest.raises(LedgerError, match="released"):
        account.reserve(THIRD, datasets=[VISITS], idempotency="request-8", queued=True)
    asked = account.reserve(THIRD, datasets=[VISITS], idempotency="request-9", question="how many?")
    assert account.reserve(THIRD, datasets=[VISITS], idempotency="request-9", question="how many?") == asked
    with pytest.raises(Refused, match="another request"):
        account.reserve(THIRD, datasets=[VISITS], idempotency="request-9", question="who?")
    assert account.spent == Budget(epsilon=1)


def test_a_stale_charge_counts_unless_nothing_was_read(home: Home) -> None:
    clock = Clock()
    ledger = furnished(home, clock=clock)
    account, hour = ledger.account(ACCOUNT, unit=PATIENT), timedelta(hours=1)
    running = account.reserve(THIRD, datasets=[VISITS], lasts=hour)
    waiting = account.reserve(THIRD, datasets=[VISITS], lasts=hour, queued=True)
    begun = account.reserve(THIRD, datasets=[VISITS], lasts=hour, queued=True)
    patient = account.reserve(THIRD, datasets=[VISITS])
    with pytest.raises(LedgerError, match="never started"):
        account.commit_text(waiting, "question", "{}")
    account.start(begun)
    clock.now += timedelta(minutes=59)
    assert ledger.expire() == ()
    clock.now += timedelta(minutes=1)
    assert ledger.expire() == (running.number, waiting.number, begun.number)
    states = [ledger.charge(each.number).state for each in (running, waiting, begun, patient)]
    assert states == [State.EXPIRED, State.RELEASED, State.EXPIRED, State.RESERVED]
    assert account.spent == Budget(epsilon=1)
    for settled in (running, waiting, begun):
        with pytest.raises(LedgerError, match="settled already"):
            account.commit_text(settled, "question", "{}")
    with pytest.raises(LedgerError, match="settled already"):
        account.start(waiting)
    assert ledger.verify() == ()


def test_a_charge_that_was_started_is_not_given_back(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    waiting, begun = (account.reserve(THIRD, datasets=[VISITS], queued=True) for _ in range(2))
    account.start(begun)
    account.start(begun)  # said again it changes nothing
    with pytest.raises(Refused, match="rows may have been read"):
        account.release(begun)
    account.release(waiting)
    assert account.spent == THIRD
    account.commit_text(begun, "question", "{}")
    assert ledger.verify() == ()


def test_a_closed_version_is_closed_for_everybody(home: Home) -> None:
    ledger = furnished(home)
    newer = Dataset(name="visits", edition="2026-11")
    ledger.declare_dataset(newer, population="patients", cap=Budget(epsilon=100, delta="1/1000"))
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.close([VISITS], {})
    head = ledger.head()
    account.close([VISITS, Dataset(name="nobody's", edition="1")], {})
    assert ledger.head() == head
    other = home.account()
    assert (other.closed(VISITS), other.closed(newer)) == (True, False)
    with pytest.raises(Refused, match="was closed"):
        other.reserve(THIRD, datasets=[VISITS, newer])
    other.reserve(THIRD, datasets=[newer])
    assert ledger.verify() == ()
    kept, replayed = books_of(ledger)
    assert kept == replayed


def test_a_clock_that_was_set_back_is_refused(home: Home) -> None:
    clock = Clock()
    ledger = furnished(home, clock=clock)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.reserve(THIRD, datasets=[VISITS])
    clock.now -= timedelta(minutes=4)  # clocks of two machines differ a little
    account.reserve(THIRD, datasets=[VISITS])
    clock.now -= timedelta(minutes=2)
    with pytest.raises(LedgerError, match="clock was set back"):
        account.reserve(THIRD, datasets=[VISITS])
    assert account.spent == Budget(epsilon="2/3")
    times = [entry.split('"at":"')[1][:25] for entry in ledger.export()]
    assert times == sorted(times)


def test_a_zcdp_filter_admits_more_than_sums_and_stops_within_its_cap(home: Home) -> None:
    ledger = furnished(home)
    cap = Budget(epsilon=1, delta="1/1000000")
    ledger.open_account("hospital/research", unit=PATIENT, cap=cap, reason="many small questions", method="zcdp")
    account = ledger.account("hospital/research", unit=PATIENT)
    event, cost = DiscreteLaplace(l1=Fraction(1), scale=Fraction(20)), Budget(epsilon="1/20")
    cap_rho = ledger.balance("hospital/research").rho
    assert cap_rho is not None
    admitted = cap_rho // Fraction(1, 800)  # each has ρ = ε²/2
    assert admitted > 1 / Fraction(1, 20) - 10
    for _ in range(admitted):
        account.reserve(cost, datasets=[VISITS], event=event)
    with pytest.raises(BudgetExceeded, match="ρ = "):
        account.reserve(cost, datasets=[VISITS], event=event)
    balance = ledger.balance("hospital/research")
    assert balance.epsilon_spent == admitted * Fraction(1, 20)  # sums are always kept
    assert balance.spent.epsilon <= 1
    assert balance.spent.delta == cap.delta
    with pytest.raises(Refused, match="states no ρ"):
        account.reserve(cost, datasets=[VISITS])
    gaussian = DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(10**9))
    account.reserve(Budget(epsilon="1/1000", delta="1/10000000"), datasets=[VISITS], event=gaussian)
    assert ledger.verify() == ()


def test_sums_that_could_not_be_written_down_are_refused(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.reserve(Budget(epsilon=Fraction(1, 3**1500)), datasets=[VISITS])
    with pytest.raises(LedgerError, match="denominators"):
        account.reserve(Budget(epsilon=Fraction(1, 2**1500)), datasets=[VISITS])
    account.reserve(THIRD, datasets=[VISITS])
    assert ledger.verify() == ()


@pytest.mark.parametrize("home", STORES, indirect=True)
@pytest.mark.claim("S1-21")
def test_the_record_alone_gives_the_books_bit_for_bit(home: Home) -> None:
    clock = Clock()
    ledger = furnished(home, clock=clock)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    for number in range(12):
        reservation = account.reserve(
            Budget(epsilon=Fraction(1, number + 3), delta=Fraction(1, 10**9 + number)),
            datasets=[VISITS],
            idempotency=f"request-{number}",
            queued=number % 4 in (2, 3),
            lasts=timedelta(minutes=1) if number % 2 else None,
        )
        match number % 4:
            case 0:
                account.commit_text(reservation, f"question {number % 3}", f'{{"number":{number}}}')
            case 2:
                account.release(reservation)
    clock.now += timedelta(hours=1)
    assert len(ledger.expire()) == 6
    kept, replayed = books_of(ledger)
    assert kept == replayed
    assert len(kept.charges) == 12
    # Added up once more, from the bodies as text and without the reducer.
    total = sum(
        (Fraction(1, number + 3) for number in range(12) if number % 4 not in (2, 3)),
        start=Fraction(0),
    )
    assert kept.kept["account hospital"].epsilon_spent == total
    assert ledger.verify() == ()


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_a_ledger_is_made_once_and_opened_with_its_own_key_and_anchor(home: Home) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(home.url, key=SigningKey.new(), anchor=home.anchor)
    ledger = furnished(home)
    with pytest.raises(LedgerError, match="exists already"):
        home.create()
    with pytest.raises(LedgerError, match="holds a ledger already"):
        Ledger.create(home.url, key=home.key, anchor=f"{home.anchor}2")
    with pytest.raises(LedgerError, match="another key"):
        Ledger.open(home.url, key=SigningKey.new(), anchor=home.anchor)
    assert home.open().identifier == ledger.identifier
    ledger.close()
    assert ledger.balance("hospital").charges == 0  # opens its connections again
