"""What the gate needs of a ledger: one account that is charged before data is read and stores what is delivered."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Protocol

from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.statement import Account
from sfumato.core.stored import Stored
from sfumato.errors import InvalidInput, LedgerError, Refused

__all__ = ["AccountLedger", "Reservation", "State", "check_next"]


class State(Enum):
    """What became of a charge; all but ``RELEASED`` count."""

    RESERVED = "reserved"
    COMMITTED = "committed"
    RELEASED = "released"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A charge that counts from now on, how the account stands with it, and the days of data that it was made for."""

    number: int
    cost: Budget
    account: Account
    reads: tuple[str, str] | None = None


class AccountLedger(Protocol):
    """One account, as the gate charges it: in memory, or of a durable ledger.

    Guarantee, of everything that meets this: charges never exceed the budget, in whatever order threads and processes
    come; a reservation that is never settled goes on counting; what is stored for a question is what was delivered.
    One conformance test runs the same cases against every ledger: tests/governance/test_account_ledgers.py.
    """

    @property
    def budget(self) -> Budget:
        """What was allowed in all."""
        ...

    @property
    def spent(self) -> Budget:
        """What counts as spent, open reservations included."""
        ...

    @property
    def left(self) -> Budget:
        """What may still be asked for."""
        ...

    @property
    def home(self) -> str:
        """Which ledger this is; a saved state of a session is bound to it."""
        ...

    def asking(self, question: str) -> AbstractContextManager[None]:
        """Hold a question against all others who ask it; they wait."""
        ...

    def stored(
        self, key: str, datasets: Sequence[Dataset] = (), *, reads: tuple[str, str] | None = None
    ) -> Release | None:
        """The answer given to the same question before, if there is one, its terms allow it and its days agree."""
        ...

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
        """Charge before anything is read, or refuse with the numbers and change nothing."""
        ...

    def check_fits(
        self,
        charges: Sequence[tuple[Budget, PrivacyEvent | None]],
        *,
        datasets: Sequence[Dataset] = (),
        reads: tuple[str, str] | None = None,
    ) -> None:
        """Refuse charges that do not fit together as the account stands now; changes nothing and holds nothing back."""
        ...

    def given(self, reservation: Reservation) -> Release | None:
        """The answer that a charge was settled with; None while it is open."""
        ...

    def commit(self, reservation: Reservation, key: str, release: Release) -> None:
        """Store the answer and settle its charge in one step, before it is delivered."""
        ...

    def release(self, reservation: Reservation) -> None:
        """Give a charge back; only where no row was read for it."""
        ...

    def named(self, idempotency: str) -> State | None:
        """What became of the charge under an idempotency key; None if there is none."""
        ...

    def again(self, number: int, question: str) -> Reservation:
        """The open charge of a question, by its number, for a session that goes on; charges nothing."""
        ...

    def settled(self, number: int, question: str) -> Release | None:
        """The answer that the charge of a question, by its number, was settled with; None if there is none."""
        ...

    def advance(self, reservation: Reservation, place: int, holder: str, *, datasets: Sequence[Dataset] = ()) -> None:
        """Take the next place in the count of an open charge, or refuse: another state of the session has gone on."""
        ...

    def check_running(self, reservation: Reservation, *, datasets: Sequence[Dataset] = ()) -> None:
        """Refuse to go on where a charge does not stand any more, or a dataset was closed."""
        ...

    def close(self, datasets: Sequence[Dataset], stored: Mapping[Dataset, Stored]) -> bool:
        """Let no row of these versions be read any more, nor under other names declared before; False if closed."""
        ...

    def closed(self, dataset: Dataset) -> bool:
        """Whether a version was closed."""
        ...

    def shut(self, dataset: Dataset, stored: Stored) -> bool:
        """Whether the rows of a version were closed under another name since it was declared."""
        ...


def check_next(number: int, place: int, holder: str, last: tuple[int, str | None] | None) -> bool:
    """Whether a place in the count of a charge is free for its holder; refused where another state went on.

    ``last`` is the place that was taken last, and by whom. False says that this very state took the place before.
    """
    if type(place) is not int or place < 0 or not holder:
        raise InvalidInput("a place in a count is a whole number from 0, with a holder; nothing was released.")
    at = -1 if last is None else last[0]
    if place > at + 1:
        raise LedgerError(
            f"state {place} does not follow the ledger's count of charge {number}, which is at {at}: the ledger was "
            "restored from a backup that is older than the state. Nothing was resumed and nothing was released. Bring "
            "the newer ledger back."
        )
    if last is not None and place <= at and (place, holder) != last:
        raise Refused(
            f"state {place} of charge {number} is older than the ledger's count, or another copy of it has gone on; "
            "nothing was resumed, nothing was released, and the charge counts. Go on with the newest state."
        )
    return place > at
