"""Charges of streams, found again: by the key of a durable ledger, or in the memory of the vault."""

from typing import Any

from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.errors import NotDeclared, Refused

__all__ = ["Counters"]


class Counters:
    """The charge of each stream, and its count: which of its states goes on.

    The count itself is the ledger's: see ``advance`` there. Guarantee: what is found again was charged once, for the
    same question, and is still open. In memory it lasts as long as the vault.
    """

    def __init__(self, ledger: Any, what: str = "stream") -> None:
        self._what, self._ledger, self.durable = what, ledger, hasattr(ledger, "charge_named")
        self._charges: dict[int, tuple[str, Any]] = {}
        self._ended: dict[int, tuple[str, Release]] = {}

    def charged(self, cost: Budget, dataset: Dataset, *, event: PrivacyEvent, question: str, key: str | None) -> Any:
        """Charge a stream; under the key of one that runs, find its charge."""
        self._check_open(key)
        reservation = self._reserved(cost, dataset, event=event, question=question, key=key)
        if not self.durable:
            self._charges[reservation.number] = (question, reservation)
        return reservation

    def found(
        self,
        cost: Budget,
        dataset: Dataset,
        *,
        event: PrivacyEvent,
        question: str,
        key: str | None,
        number: int | None = None,
    ) -> Any:
        """The charge of a stream that runs, to go on with it: under its key or, without one, by its number."""
        if not self.durable:
            known, reservation = self._charges.get(-1 if number is None else number, (None, None))
            if known != question or key is not None:
                raise Refused(
                    f"the charge of this {self._what} is not in this vault's memory, and a new one would be a second "
                    f"{self._what}. Nothing was resumed and nothing was spent. Keep {self._what}s that outlive a "
                    "process in a ledger."
                )
            return reservation
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
        """The release of a stream that was closed, if there is one: of the charge under a key, or of this number."""
        found: Release | None = None
        if key is None and number is not None:
            if self._ledger.stored(question, [dataset]) is None:  # also: whether it may still be used like this
                return None
            if self.durable:
                return self._ledger.settled(number, question)  # type: ignore[no-any-return]
            asked, found = self._ended.get(number, ("", None))
            return found if asked == question else None
        if key is None:
            found = self._ledger.stored(question, [dataset])
        elif self.durable and self._ledger.charge_named(key) is not None:
            found = self._ledger.given(self._reserved(cost, dataset, event=event, question=question, key=key))
        return found

    def move(self, reservation: Any, dataset: Dataset, serial: int, nonce: str) -> None:
        """Take a place in the count, or refuse: a later state, or another one with this place, has gone on."""
        self._ledger.advance(reservation, serial, nonce, datasets=[dataset])

    def end(self, reservation: Any, question: str, release: Release) -> None:
        """Forget a stream that was closed, but for what it told: it cannot be resumed."""
        self._charges.pop(reservation.number, None)
        if not self.durable:
            self._ended[reservation.number] = (question, release)

    def _check_open(self, key: str | None) -> bool:
        """Whether there is a charge under a key; refuses that of a stream that was closed."""
        known = self._ledger.charge_named(key) if self.durable and key is not None else None
        if known is not None and known.state.value != "reserved":
            raise Refused(
                f"the {self._what} under this idempotency key was closed; nothing was read and nothing was spent. What "
                f"it told is kept: ask for it again, or open another {self._what} under another key."
            )
        return known is not None

    def _reserved(self, cost: Budget, dataset: Dataset, *, event: PrivacyEvent, question: str, key: str | None) -> Any:
        return self._ledger.reserve(
            cost, datasets=[dataset], event=event, idempotency=key, lasts=None, question=question
        )
