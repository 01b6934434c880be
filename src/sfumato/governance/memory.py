"""A ledger that lives as long as its process, and says so in every release."""

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.ledger import Reservation, State, check_next
from sfumato.core.one_at_a_time import one_at_a_time
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.stored import Stored, moment
from sfumato.core.units import Unit
from sfumato.errors import LedgerError, NotDeclared, Refused
from sfumato.governance.balances import Balance, check_together

__all__ = ["MemoryLedger"]

MOST_PARTS = 10**1000  # of a sum of charges: certificates hold rationals of up to 4,000 signs


class MemoryLedger:
    """One account, its charges and the stored answers, under one lock.

    Guarantee: charges never exceed the budget, whatever order threads come in; a reservation that is never settled goes
    on counting. A budget in ρ is kept in ρ, exactly (:class:`~sfumato.governance.balances.Balance`). Assumes: nothing
    outlives the process, so a new process starts a new budget: for trials only.
    """

    NAME = "none (in memory)"

    def __init__(self, *, account: str, budget: Budget, unit: Unit) -> None:
        self._account = account
        self._balance = Balance(name=account, unit=unit, cap=budget.without_rho, rho=budget.rho)
        self._states: list[State] = []
        self._losses: dict[int, Fraction | None] = {}
        self._questions: dict[int, tuple[str | None, Reservation]] = {}
        self._given: dict[int, tuple[str, Release]] = {}
        self._places: dict[int, tuple[int, str]] = {}
        self._answers: dict[str, Release] = {}
        self._closed: set[Dataset] = set()
        self._shut: dict[str, int] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._home = secrets.token_hex(16)

    @property
    def budget(self) -> Budget:
        """What was allowed in all."""
        return self._in_rho(self._balance.filter_cap, self._balance.cap)

    @property
    def spent(self) -> Budget:
        """What counts as spent, open reservations included."""
        balance = self._balance
        return self._in_rho(balance.filter_spent, balance.spent)

    @property
    def left(self) -> Budget:
        """What may still be asked for."""
        balance = self._balance
        return self._in_rho(balance.filter_left, balance.left)

    @staticmethod
    def _in_rho(rho: Fraction | None, comes_to: Budget) -> Budget:
        """An amount as this account keeps it."""
        return comes_to if rho is None else Budget.of_rho(rho, comes_to)

    @property
    def home(self) -> str:
        """Which ledger this is, while the process lasts."""
        return self._home

    def stored(
        self, key: str, datasets: Sequence[Dataset] = (), *, reads: tuple[str, str] | None = None
    ) -> Release | None:
        """The answer given to the same question before, if there is one; terms and windows are not kept here."""
        del datasets, reads
        with self._lock:
            return self._answers.get(key)

    def asking(self, question: str) -> AbstractContextManager[None]:
        """Hold a question against all other threads that ask it; they wait."""
        return one_at_a_time((self._home, question))

    def given(self, reservation: Reservation) -> Release | None:
        """The answer that a charge was settled with; kept of those that never go stale."""
        with self._lock:
            return self._given.get(reservation.number, (None, None))[1]

    def reserve(
        self,
        cost: Budget,
        *,
        datasets: Sequence[Dataset] = (),
        event: PrivacyEvent | None = None,
        idempotency: str | None = None,
        lasts: timedelta | None = None,
        reads: tuple[str, str] | None = None,
        question: str | None = None,
    ) -> Reservation:
        """Charge before anything is read, or refuse with the numbers and change nothing.

        All datasets are charged to the one account: what is read does not matter here, and how it is blurred matters
        where the budget is one of ρ, which ``event`` has.
        """
        del datasets
        if idempotency is not None or reads is not None:
            raise NotDeclared(
                "idempotency keys and windows of time need a ledger that outlives its process; nothing was read and "
                "nothing was spent. Say ledger='ledger.db'."
            )
        self._check_process()
        loss = self._balance.lost(event)
        with self._lock:
            self._balance.admit(cost, loss)
            after = self._balance.moved(cost, loss, times=1, charges=1)
            sums = (after.epsilon_spent, after.delta_spent, after.rho_spent)
            if max(each.denominator for each in sums) > MOST_PARTS:
                raise LedgerError(
                    f"the charges of {self._account!r} have too many different denominators: their sum could not "
                    "be written down any more. Nothing was read and nothing was spent. Ask with fewer digits."
                )
            self._balance = after
            self._states.append(State.RESERVED)
            number, account = len(self._states) - 1, after.account(self._account, self.NAME)
            self._losses[number] = loss
            reservation = Reservation(number=number, cost=cost, account=account)
            if lasts is None:  # one that never goes stale may be gone on with
                self._questions[reservation.number] = (question, reservation)
            return reservation

    def check_fits(
        self,
        charges: Sequence[tuple[Budget, PrivacyEvent | None]],
        *,
        datasets: Sequence[Dataset] = (),
        reads: tuple[str, str] | None = None,
    ) -> None:
        """Refuse charges that do not fit together as the account stands now; changes nothing and holds nothing back."""
        del datasets, reads
        with self._lock:
            losses = [self._balance.lost(event) for _, event in charges]
            check_together((self._balance, cost, loss) for (cost, _), loss in zip(charges, losses, strict=True))

    def named(self, idempotency: str) -> None:
        """None: no charge has a key here."""
        del idempotency

    def again(self, number: int, question: str) -> Reservation:
        """The open charge of a question, by its number, for a session that goes on; charges nothing."""
        with self._lock:
            asked, reservation = self._questions.get(number, (None, None))
        if reservation is None or asked != question:
            raise Refused(
                f"charge {number} for this is not in this vault's memory, and a new one would be a second charge. "
                "Nothing was resumed and nothing was spent. Keep what outlives a process in a ledger: "
                "ledger='ledger.db'."
            )
        return reservation

    def settled(self, number: int, question: str) -> Release | None:
        """The answer that the charge of a question, by its number, was settled with; None if there is none."""
        with self._lock:
            asked, release = self._given.get(number, ("", None))
        return release if asked == question else None

    def advance(self, reservation: Reservation, place: int, holder: str, *, datasets: Sequence[Dataset] = ()) -> None:
        """Take the next place in the count of an open charge, or refuse: another state of a stream has gone on."""
        with self._lock:
            self.check_running(reservation, datasets=datasets)
            if check_next(reservation.number, place, holder, self._places.get(reservation.number)):
                self._places[reservation.number] = (place, holder)

    def check_running(self, reservation: Reservation, *, datasets: Sequence[Dataset] = ()) -> None:
        """Refuse to go on with a stream whose charge is settled, or whose dataset was closed."""
        self._check_process()
        if self._states[reservation.number] is not State.RESERVED or self._closed.intersection(datasets):
            raise Refused("this charge is settled, or its dataset was closed; nothing was released.")

    def commit(self, reservation: Reservation, key: str, release: Release) -> None:
        """Store the answer and settle its charge in one step, before it is delivered."""
        with self._lock:
            self._settle(reservation, State.COMMITTED)
            self._answers[key] = release
            if self._questions.pop(reservation.number, None) is not None:
                self._given[reservation.number] = (key, release)

    def release(self, reservation: Reservation) -> None:
        """Give a charge back; only for data that was never read."""
        with self._lock:
            self._settle(reservation, State.RELEASED)
            self._questions.pop(reservation.number, None)
            loss = self._losses[reservation.number]
            self._balance = self._balance.moved(reservation.cost, loss, times=-1, charges=-1)

    def close(self, datasets: Sequence[Dataset], stored: Mapping[Dataset, Stored]) -> bool:
        """Let no row of these versions be read any more, nor under other names declared before; False if closed."""
        with self._lock:
            first = self._closed.isdisjoint(datasets) and not any(map(self.shut, stored, stored.values()))
            self._closed.update(datasets)
            self._shut.update(dict.fromkeys((name for what in stored.values() for name in what.names), moment()))
            return first

    def closed(self, dataset: Dataset) -> bool:
        """Whether a version was closed."""
        return dataset in self._closed

    def shut(self, dataset: Dataset, stored: Stored) -> bool:
        """Whether the rows of a version were closed under another name since it was declared."""
        del dataset
        return any(self._shut.get(name, 0) > stored.since for name in stored.names)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(
                f"the account {self._account!r} is kept in the memory of another process, and a forked copy would "
                "spend its budget again. Nothing was read and nothing was spent. Release where the vault was made."
            )

    def _settle(self, reservation: Reservation, state: State) -> None:
        if self._states[reservation.number] is not State.RESERVED:
            raise LedgerError(f"charge {reservation.number} is settled already; nothing was changed.")
        self._states[reservation.number] = state
