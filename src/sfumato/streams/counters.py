"""Counters of streams: kept where the charges are, and only ever moved forward."""

from typing import Any

from sfumato.core import events
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.errors import LedgerError, NotDeclared, Refused

__all__ = ["Counters"]

NOTHING = events.DiscreteLaplace(l1=0, scale=1)  # type: ignore[arg-type]


class Counters:
    """The charge of each stream, and which of its states goes on.

    A place in the count of a stream belongs to the first state that takes it. In a durable ledger that is an entry of
    cost 0 under a key of its own, which no other can be entered under; in memory it lasts as long as the vault.
    """

    def __init__(self, ledger: Any) -> None:
        self._ledger, self._durable = ledger, hasattr(ledger, "ledger")
        self._places: dict[int, tuple[int, str]] = {}
        self._charges: dict[str, Any] = {}

    def charged(
        self,
        cost: Budget,
        dataset: Dataset,
        *,
        event: events.PrivacyEvent,
        question: str,
        idempotency: str | None,
        again: bool,
    ) -> Any:
        """Charge a stream, or with ``again`` find its charge, which must be there."""
        if again and not self._durable:
            known = self._charges.get(question)
            if known is None or idempotency is not None:
                raise Refused(
                    "the charge of this stream is not in this vault's memory, and a new one would be a second stream. "
                    "Nothing was resumed and nothing was spent. Keep streams that outlive a process in a ledger."
                )
            return known
        known = self._known(idempotency) if again and idempotency is not None else None
        if known is not None and known.state.value != "reserved":
            raise Refused("this stream was closed; nothing was resumed and nothing was spent. Open another one.")
        if again and known is None:
            raise NotDeclared(
                "the ledger knows no charge under this idempotency key; nothing was resumed and nothing was spent. "
                "Say idempotency=…, the key that the stream was opened with."
            )
        reservation = self._ledger.reserve(
            cost, datasets=[dataset], event=event, idempotency=idempotency, lasts=None, question=question
        )
        if not self._durable:
            self._charges[question] = reservation
        return reservation

    def end(self, question: str) -> None:
        """Forget a stream that was closed: it cannot be resumed."""
        self._charges.pop(question, None)

    def move(self, reservation: Any, dataset: Dataset, serial: int, nonce: str) -> None:
        """Take a place in the count, or refuse: a later state, or another one with this place, has gone on."""
        if self._durable:
            self._entered(reservation, dataset, serial, nonce)
            return
        last, owner = self._places.get(reservation.number, (-1, ""))
        if serial < last or (serial == last and owner != nonce):
            raise _overtaken()
        self._places[reservation.number] = (serial, nonce)

    def _entered(self, reservation: Any, dataset: Dataset, serial: int, nonce: str) -> None:
        key = f"stream {reservation.number} state {serial}"
        if self._known(f"stream {reservation.number} state {serial + 1}") is not None:
            raise _overtaken()
        try:
            place = self._ledger.reserve(
                Budget.none(), datasets=[dataset], event=NOTHING, idempotency=key, queued=True, question=nonce
            )
        except Refused:
            raise _overtaken() from None
        except LedgerError:
            known = self._known(key)
            if known is None or known.state.value != "released":
                raise
            return  # this very state took the place before: entries under one key are the same to the last sign
        self._ledger.release(place)

    def _known(self, key: str) -> Any:
        with self._ledger.ledger._store.reading() as pages:
            return pages.charge_named(key)


def _overtaken() -> Refused:
    return Refused(
        "this state of the stream is older than the ledger's count, or another copy of it has gone on; nothing was "
        "resumed, nothing was told, and the charge counts. Go on with the newest state."
    )
