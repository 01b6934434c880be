"""What a stream needs of whoever charges: to be charged before it starts, to be signed when it ends, and a counter."""

from dataclasses import dataclass
from typing import Any, Protocol

from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.limits import Limit
from sfumato.core.query import Mechanism, Query
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit

__all__ = ["Opened", "StreamGate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A stream that was charged for; ``home`` is the ledger that its charge is in. Public."""

    query: Query
    limit: Limit | None
    sensitivity: Sensitivity
    mechanism: Mechanism
    event: PrivacyEvent
    guarantee: Any
    question: str
    issued: str
    home: str
    reservation: Any

    @property
    def charged(self) -> Budget:
        """What the whole stream costs."""
        cost: Budget = self.reservation.cost
        return cost


class StreamGate(Protocol):
    """The vault, as streams see it."""

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        ...

    def open_stream(
        self, query: Query, mechanism: Mechanism, limit: Limit | None, spend: Budget, *, idempotency: str | None
    ) -> Opened:
        """Charge a whole stream before anything of it is read."""
        ...

    def find_stream(
        self,
        query: Query,
        mechanism: Mechanism,
        limit: Limit | None,
        spend: Budget,
        *,
        idempotency: str | None,
        charge: int | None,
    ) -> Opened:
        """Find the charge of a stream again, under its key or by its number; charges nothing."""
        ...

    def told_stream(
        self,
        query: Query,
        mechanism: Mechanism,
        limit: Limit | None,
        spend: Budget,
        *,
        idempotency: str | None,
        charge: int | None = None,
    ) -> Release:
        """The release of a stream that was closed, of a charge by its number if that is said; charges nothing."""
        ...

    def close_stream(self, opened: Opened, query: Query, values: tuple[int, ...]) -> Release:
        """Sign and store what a stream told."""
        ...

    def stream_secret(self, purpose: str) -> bytes:
        """32 bytes that only the holder of the vault's key can work out."""
        ...

    def move_stream(self, opened: Opened, serial: int, nonce: str) -> None:
        """Move the counter of a stream forward, or refuse: another state has taken this place."""
        ...

    def fail_stream(self, opened: Opened) -> bool:
        """Close the data of a stream whose engine failed; False if it was closed already, which is then all to tell."""
        ...

    def check_stream(self, opened: Opened) -> None:
        """Refuse to go on where the charge of a stream does not stand any more, or its dataset was closed."""
        ...
