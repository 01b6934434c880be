"""An owner process under load and under fire: the ledger's tests, through the socket.

Many spenders, processes that are killed at every step on either side, a restored backup, an edited database, a full
disk, other users of the machine.
"""

import os
import re
import secrets
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from socket import socket

import pytest

from sfumato.core.budget import Budget
from sfumato.core.ledger import State
from sfumato.errors import BudgetExceeded, LedgerError, Refused
from sfumato.governance.ledger import Ledger
from sfumato.governance.owner.frames import Peer, overflow_uid
from sfumato.governance.owner.permissions import Permissions
from sfumato.governance.owner.server import ServerLimits
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished, sqlite_home
from tests.governance.owners import (
    COST,
    Owner,
    answer,
    forked,
    killed,
    process,
    refused_or_spent,
    served,
    short_folder,
    spender,
    template,
)
from tests.governance.test_anchor import Backup
from tests.governance.test_store_faults import small_disk
from tests.parts import absent

THIRD = Fraction(1, 3)
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
OWN = os.geteuid()
ADA = 61001
OWNER_STEPS = 90  # statements, waits for the disk and messages of one charge at the owner; some more than there are


# ------------------------------------------------------------------------------------------------------ many spenders


@pytest.mark.parametrize(
    ("spenders", "level"),
    [
        (20, "dataset"),
        *(
            pytest.param(200, level, marks=pytest.mark.long)
            for level in ("hospital", "department", "project", "dataset", "population")
        ),
    ],
)
def test_parallel_spenders_never_exceed_any_level(home: Home, spenders: int, level: str) -> None:
    template()  # once, before all are let go
    ledger = furnished(home, **{level: Budget(epsilon=3)})
    with served(ledger, limits=ServerLimits(each_user=2 * spenders)) as owner:
        accounts = [owner.account() for _ in range(spenders)]
        together = threading.Barrier(spenders, timeout=60)

        def request(number: int) -> str:
            together.wait()
            return refused_or_spent(accounts[number], str(number))

        with ThreadPoolExecutor(spenders) as pool:
            outcomes = Counter(pool.map(request, range(spenders)))
    assert outcomes == {"answered": 9, "refused": spenders - 9}
    assert {balance.epsilon_spent for balance in ledger.balances()} == {Fraction(3)}
    assert ledger.verify() == ()
    ledger.close()


def test_two_users_with_accounts_of_their_own_cannot_exceed_the_cap_of_a_dataset(home: Home) -> None:
    ledger = furnished(home, dataset=Budget(epsilon=1))
    ledger.open_account("hospital/surgery", unit=PATIENT, cap=Budget(epsilon=100), reason="decided by the tests")
    users = {ADA: ACCOUNT, ADA + 1: "hospital/surgery"}
    turns = iter((ADA, ADA + 1))
    permissions = Permissions(accounts={uid: frozenset({path}) for uid, path in users.items()})

    def in_turn(_: socket) -> Peer:
        return Peer(uid=next(turns))

    with served(ledger, permissions=permissions, credentials=in_turn) as owner:
        ada, ben = owner.account(ACCOUNT), owner.account("hospital/surgery")
        for account in (ada, ben, ada):
            account.reserve(COST, datasets=[VISITS])
        with pytest.raises(BudgetExceeded, match="'dataset visits' has ε = 0 left"):
            ben.reserve(COST, datasets=[VISITS])
    assert ledger.balance("hospital/surgery").epsilon_spent == THIRD
    ledger.close()


# ------------------------------------------------------------------------------------------------------------- killed


def checked(home: Home, told: dict[str, str], *, whole: bool) -> None:
    """Hold a ledger to what clients were told: what was charged counts once, at every level."""
    ledger = home.open()
    if whole:
        assert ledger.verify() == ()
    (spent,) = {balance.epsilon_spent for balance in ledger.balances()}  # all levels or none
    account = ledger.account(ACCOUNT, unit=PATIENT)
    charges = {name: account.charge_named(f"{OWN}:{name}") for name in told}
    assert spent == THIRD * sum(charge is not None for charge in charges.values())
    for name, words in told.items():
        charge = charges[name]
        assert "reserved" not in words or charge is not None
        assert "committed" not in words or (charge is not None and charge.state is State.COMMITTED)
        assert charge is None or charge.state in (State.RESERVED, State.COMMITTED)
        assert (account.answer(name) is not None) is (charge is not None and charge.state is State.COMMITTED)
    ledger.close()


@FORKS
@pytest.mark.parametrize("kills", [4, pytest.param(1000, marks=pytest.mark.long)])
def test_clients_and_owners_that_are_killed_anywhere_never_under_count(tmp_path: Path, kills: int) -> None:
    """In turn a client and the owner, killed at one of its steps; a retry then is the same charge, settled once."""
    home, roomy = sqlite_home(tmp_path), Budget(epsilon=10**5)
    furnished(home, hospital=roomy, department=roomy, project=roomy, dataset=roomy, population=roomy).close()
    told: dict[str, str] = {}
    with short_folder() as folder:
        place = folder / "s"
        child = forked(home, place)
        code, told["whole"] = spender(f"unix:{place}", "whole")
        assert (code, killed(child)) == (0, -9)
        steps, done, turn = int(told["whole"].split()[-1]), 0, 0
        assert steps > 8
        while done < kills:
            turn += 1
            name, of_client = f"turn {turn}", turn % 2 == 0
            last = 1 + secrets.randbelow(steps if of_client else OWNER_STEPS)
            child = forked(home, place, last=0 if of_client else last)
            code, told[name] = spender(f"unix:{place}", name, last=last if of_client else 0)
            assert code == (-9 if of_client else 0)
            if not of_client:
                code = 0 if _runs(child) else killed(child)
                child = child if code == 0 else forked(home, place)
            done += code == -9
            _, again = spender(f"unix:{place}", name)
            assert "committed" in again or "settled already (committed)" in again
            told[name] += again
            killed(child)
            if kills < 10 or turn % 100 == 0:
                checked(home, told, whole=turn % 100 == 0)
    checked(home, told, whole=True)


def _runs(child: int) -> bool:
    """Whether a forked process has not ended; one that has is waited for by who asks how."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


@FORKS
def test_an_owner_that_was_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    furnished(home).close()
    template()
    with short_folder() as folder, ExitStack() as stack:
        place = folder / "s"
        child = forked(home, place)
        owner = Owner(place)
        stack.callback(owner.disconnect)
        account = owner.account()
        lost = account.reserve(COST, datasets=[VISITS], question="lost")
        kept = account.reserve(COST, datasets=[VISITS], idempotency="night", question="kept")
        assert killed(child) == -9
        assert place.is_socket()  # it was left behind
        child = forked(home, place)
        stack.callback(killed, child)
        with pytest.raises(Refused, match="not made on this connection"):
            account.commit(lost, "lost", answer(lost))
        with pytest.raises(Refused, match="without an idempotency key of yours"):
            account.again(lost.number, "lost")
        assert account.reserve(COST, datasets=[VISITS], idempotency="night", question="kept") == kept
        account.commit(kept, "kept", answer(kept))
        assert account.spent == Budget(epsilon="2/3")  # what was lost counts


@FORKS
def test_a_question_is_let_go_when_its_holder_is_killed(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    with served(ledger) as owner:
        steps = int(spender(owner.address, "whole")[1].split()[-1])
        for last in range(steps - 5, steps + 1):
            assert spender(owner.address, "how many", last=last)[0] == -9
        with owner.account().asking("how many"):
            pass
    ledger.close()


# ----------------------------------------------------------------------------------------------------------- tampering


def test_a_restored_backup_is_refused_at_start_and_while_it_serves(home: Home) -> None:
    ledger = furnished(home)
    with served(ledger) as owner:
        account = owner.account()
        assert refused_or_spent(account, "first") == "answered"
        backup = Backup(home)
        assert refused_or_spent(account, "second") == "answered"
        backup.restore()
        with pytest.raises(LedgerError, match="old backup or cut short"):
            account.reserve(COST, datasets=[VISITS])
    with pytest.raises(LedgerError, match="old backup"):
        home.open()  # before anything is served
    ledger.close()


def test_a_refilled_balance_is_refused_and_an_edited_row_is_found(home: Home) -> None:
    ledger = furnished(home, project=Budget(epsilon=1))
    head = ledger.head()
    with served(ledger) as owner:
        account = owner.account()
        assert refused_or_spent(account, "first") == "answered"
        home.execute("UPDATE balance SET epsilon_spent = '0/1'")
        with pytest.raises(LedgerError, match="nothing was spent"):
            account.reserve(COST, datasets=[VISITS])
        home.unlocked("UPDATE record SET body = replace(body, '1/3', '1/4') WHERE kind = 'ledger.reserved'")
    assert any("digest" in finding.problem or "differ" in finding.problem for finding in ledger.verify(head))
    ledger.close()


# ---------------------------------------------------------------------------------------------------------- a full disk


def test_a_full_disk_refuses_in_the_same_words_and_the_owner_goes_on(tmp_path: Path) -> None:
    with small_disk() as disk:
        home = Home(url=str(disk / "ledger.db"), folder=sqlite_home(tmp_path).folder)
        ledger = furnished(home)
        with served(ledger) as owner:
            account = owner.account()
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            (disk / "ballast").write_bytes(bytes(free - 40_000))
            charged = ledger.balance(ACCOUNT).charges
            told = ""
            while not told:
                try:
                    account.reserve(Budget(epsilon="1/1000"), datasets=[VISITS])
                    charged += 1
                except LedgerError as full:
                    told = str(full)
            assert re.search(r"cannot be used: .*(disk is full|No space left|disk I/O).*no answer was delivered", told)
            assert account.spent == Budget(epsilon=Fraction(charged, 1000))
            (disk / "ballast").unlink()
            assert refused_or_spent(account, "later") == "answered"
        assert ledger.verify() == ()
        ledger.close()


# ------------------------------------------------------------------------------------------ other users of the machine


@FORKS
def test_another_user_of_the_machine_is_known_by_the_kernel(tmp_path: Path) -> None:
    if OWN != 0:
        absent("only root can be another user")
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    with served(ledger, permissions=Permissions.read([f"{ADA}={ACCOUNT}"])) as owner:
        assert "reserved committed" in spender(owner.address, "mine", uid=ADA)[1]
        assert f"Refused: user {ADA + 1} may charge nothing here" in spender(owner.address, "other", uid=ADA + 1)[1]
    with served(ledger) as owner:  # nobody else can even connect
        assert "LedgerError: no owner process answers" in spender(owner.address, "more", uid=ADA)[1]
    assert ledger.balance(ACCOUNT).epsilon_spent == THIRD
    assert ledger.account(ACCOUNT, unit=PATIENT).named(f"{ADA}:mine") is State.COMMITTED
    ledger.close()


@FORKS
def test_whom_a_namespace_does_not_know_is_refused(tmp_path: Path) -> None:
    if OWN != 0:
        absent("only root can be another user")
    home = sqlite_home(tmp_path)
    furnished(home).close()
    nobody = overflow_uid()
    everybody = Permissions(accounts={ADA: frozenset({"*"}), nobody: frozenset({"*"})})
    with short_folder() as folder:
        place = folder / "s"
        child = forked(home, place, users=True, permissions=everybody)
        if not place.exists():
            killed(child)
            absent("no namespace of users can be made here")
        told = spender(f"unix:{place}", "whole", uid=ADA)[1]
        assert killed(child) == -9
    assert f"Refused: user {nobody} stands for everybody whom this machine does not know" in told
    assert home.open().balance(ACCOUNT).spent == Budget.none()


# ---------------------------------------------------------------------------------------------------- the whole command


@pytest.mark.long
def test_the_command_serves_until_it_is_stopped_and_two_refuse_each_other(home: Home) -> None:
    furnished(home).close()
    with process(home) as owner:
        account = owner.account()
        assert refused_or_spent(account, "first") == "answered"
        charge = account.reserve(COST, datasets=[VISITS])
        with pytest.raises(AssertionError, match="served by another owner process"), process(home):
            pass
        assert owner.process is not None
        owner.process.send_signal(signal.SIGTERM)
        owner.process.wait(30)
        assert owner.process.returncode == 0
        assert not owner.place.exists()
    assert owner.said[-1] == "stopped; nothing is served any more."
    ledger: Ledger = home.open()
    assert ledger.charge(charge.number).state is State.EXPIRED
    assert ledger.balance(ACCOUNT).epsilon_spent == 2 * THIRD
    ledger.close()


def test_an_owner_whose_ledger_cannot_be_closed_still_ends(tmp_path: Path) -> None:
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    with served(ledger) as owner:
        account = owner.account()
        charge = account.reserve(COST, datasets=[VISITS])
        home.execute("ALTER TABLE charge RENAME TO elsewhere")
        account.disconnect()
    home.execute("ALTER TABLE elsewhere RENAME TO charge")
    assert ledger.charge(charge.number).state is State.RESERVED  # it could not be closed; it counts
    assert ledger.balance(ACCOUNT).epsilon_spent == THIRD
    ledger.close()
