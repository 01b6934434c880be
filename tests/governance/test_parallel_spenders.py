"""Many spenders at once, threads, processes and forked ones: never above a cap, and exactly what fits."""

import multiprocessing
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.errors import BudgetExceeded
from sfumato.governance.durable import DurableLedger
from sfumato.governance.rows import BALANCE
from sfumato.governance.transaction import Transaction
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished

TENTH = Budget(epsilon="1/10")


def spend(account: DurableLedger, name: str) -> str:
    """One request: its answer, or the refusal."""
    try:
        reservation = account.reserve(TENTH, datasets=[VISITS])
    except BudgetExceeded as refused:
        told = "has ε = 0 left; this release asks for ε = 1/10"
        return "refused" if told in str(refused) else str(refused)
    account.commit_text(reservation, f"question {name}", "{}")
    return "answered"


def requests(home: Home, name: str, times: int, results: "multiprocessing.Queue[str]") -> None:
    account = home.account()
    for number in range(times):
        results.put(spend(account, f"{name}.{number}"))


@pytest.mark.parametrize("home", STORES, indirect=True)
@pytest.mark.claim("S1-23")
def test_a_hundred_requests_on_a_cap_for_ten_get_ten_answers(home: Home) -> None:
    ledger = furnished(home, dataset=Budget(epsilon=1))
    account = ledger.account(ACCOUNT, unit=PATIENT)
    together = threading.Barrier(100, timeout=60)

    def request(number: int) -> str:
        together.wait()
        return spend(account, str(number))

    with ThreadPoolExecutor(100) as pool:
        outcomes = Counter(pool.map(request, range(100)))
    assert outcomes == {"answered": 10, "refused": 90}
    assert {balance.epsilon_spent for balance in ledger.balances()} == {Fraction(1)}
    assert ledger.verify() == ()


@pytest.mark.long
def test_processes_of_their_own_get_exactly_what_fits(home: Home) -> None:
    ledger = furnished(home, hospital=Budget(epsilon=1))
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    spenders = [context.Process(target=requests, args=(home, str(number), 5, results)) for number in range(4)]
    for spender in spenders:
        spender.start()
    outcomes = Counter(results.get(timeout=120) for _ in range(20))
    for spender in spenders:
        spender.join(60)
    assert outcomes == {"answered": 10, "refused": 10}
    assert ledger.balance("hospital").epsilon_spent == 1
    assert ledger.verify() == ()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_spends_from_the_same_budget(home: Home) -> None:
    ledger = furnished(home, hospital=Budget(epsilon=1))
    account = ledger.account(ACCOUNT, unit=PATIENT)
    assert spend(account, "before") == "answered"
    with ledger.record.reading() as transaction:  # a connection is in use while the process forks
        assert transaction.balance("account hospital") is not None
        children = []
        for name in ("first", "second"):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    outcomes = [spend(account, f"{name} {number}") for number in range(3)]
                    code = 0 if outcomes == ["answered"] * 3 else 2
                finally:
                    os._exit(code)
            children.append(child)
    outcomes = [spend(account, f"parent {number}") for number in range(3)]
    assert outcomes == ["answered"] * 3
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert spend(account, "after") == "refused"
    assert ledger.balance("hospital").charges == 10
    assert ledger.verify() == ()


@pytest.mark.parametrize("home", STORES, indirect=True)
def test_the_naive_twin_overspends(home: Home) -> None:
    """Check, then update, without the write lock first: what the suite above must be able to see."""
    ledger = furnished(home, hospital=Budget(epsilon=1))
    together = threading.Barrier(8, timeout=60)
    engine = sa.create_engine(ledger.record.store.url, connect_args={"timeout": 60} if home.lite else {})

    def naive(_: int) -> bool:
        with engine.connect() as connection:
            balance = Transaction(connection.connection.cursor()).balance("account hospital")
            connection.rollback()
        assert balance is not None
        fits = balance.cap.epsilon >= balance.epsilon_spent + Fraction(1, 2)
        together.wait()
        if fits:
            with engine.begin() as connection:
                found = connection.execute(sa.select(BALANCE).where(BALANCE.c.name == "account hospital")).one()
                top, _, bottom = found.epsilon_spent.partition("/")
                after = Fraction(int(top), int(bottom)) + Fraction(1, 2)
                values = {"epsilon_spent": f"{after.numerator}/{after.denominator}"}
                connection.execute(sa.update(BALANCE).where(BALANCE.c.name == "account hospital").values(**values))
        return fits

    with ThreadPoolExecutor(8) as pool:
        answered = sum(pool.map(naive, range(8)))
    engine.dispose()
    assert answered == 8  # where 2 were allowed
    assert any("balance account hospital" in str(finding) for finding in ledger.verify())
