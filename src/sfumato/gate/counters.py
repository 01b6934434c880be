"""Charges of sessions, found again: under the idempotency key of a durable ledger, or by their number."""

from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.ledger import AccountLedger, Reservation, State
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.errors import NotDeclared, Refused

__all__ = ["Counters"]


class Counters:
    """The charge of each session, and its count: which of its states goes on.

    Charges and counts are the ledger's: see ``again`` and ``advance`` there. Guarantee: what is found again was charged
    once, for the same question, and is still open. In memory it lasts as long as the vault.
    """

    def __init__(self, ledger: AccountLedger, what: str = "stream") -> None:
        self._what, self._ledger = what, ledger

    def charged(
        self, cost: Budget, dataset: Dataset, *, event: PrivacyEvent, question: str, key: str | None
    ) -> Reservation:
        """Charge a session; under the key of one that runs, find its charge."""
        self._check_open(key)
        return self._reserved(cost, dataset, event=event, question=question, key=key)

    def found(
        self,
        cost: Budget,
        dataset: Dataset,
        *,
        event: PrivacyEvent,
        question: str,
        key: str | None,
        number: int | None = None,
    ) -> Reservation:
        """The charge of a session that runs, to go on with it: under its key or, without one, by its number."""
        if key is None and number is not None:
            return self._ledger.again(number, question)
        if not self._check_open(key):
            raise NotDeclared(
                "the ledger knows no charge under this idempotency key; nothing was resumed and nothing was spent. "
                f"Say idempotency=…, the key that the {self._what} was opened with."
            )
        return self._reserved(cost, dataset, event=event, question=question, key=key)

    def told(
        self,
        cost: Budget,
        dataset: Dataset,
        *,
        event: PrivacyEvent,
        question: str,
        key: str | None,
        number: int | None = None,
    ) -> Release | None:
        """The release of a session that was closed, if there is one: of the charge under a key, or of this number."""
        if key is not None:
            if self._ledger.named(key) is None:
                return None
            return self._ledger.given(self._reserved(cost, dataset, event=event, question=question, key=key))
        stored = self._ledger.stored(question, [dataset])  # also: whether it may still be used like this
        return stored if stored is None or number is None else self._ledger.settled(number, question)

    def move(self, reservation: Reservation, dataset: Dataset, serial: int, nonce: str) -> None:
        """Take a place in the count, or refuse: a later state, or another one with this place, has gone on."""
        self._ledger.advance(reservation, serial, nonce, datasets=[dataset])

    def _check_open(self, key: str | None) -> bool:
        """Whether there is a charge under a key; refuses that of a session that was closed."""
        known = None if key is None else self._ledger.named(key)
        if known not in (None, State.RESERVED):
            raise Refused(
                f"the {self._what} under this idempotency key was closed; nothing was read and nothing was spent. What "
                f"it released is kept: ask for it again, or open another {self._what} under another key."
            )
        return known is not None

    def _reserved(
        self, cost: Budget, dataset: Dataset, *, event: PrivacyEvent, question: str, key: str | None
    ) -> Reservation:
        return self._ledger.reserve(
            cost, datasets=[dataset], event=event, idempotency=key, lasts=None, question=question
        )
