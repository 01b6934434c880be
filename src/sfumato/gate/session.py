"""What is opened, advanced and closed (streams, training runs, evaluators): charged as a whole, then read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar, runtime_checkable

from sfumato.core.budget import Budget
from sfumato.core.documents import Registry, check_types
from sfumato.core.interrupts import check_outside
from sfumato.core.ledger import Reservation
from sfumato.core.limits import Limit
from sfumato.core.query import Mechanism, Query
from sfumato.core.release import Release, delivered_again
from sfumato.core.units import Unit
from sfumato.errors import NotDeclared, Refused, Unsupported
from sfumato.gate.counters import Counters
from sfumato.gate.notary import Notary, Priced, now
from sfumato.gate.sealed import derived_secret

__all__ = ["Opened", "SessionGate", "SessionQuery"]

Found = TypeVar("Found")


@runtime_checkable
class SessionQuery(Query, Protocol):
    """A query that a session answers, step by step."""

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """Why a mechanism is not one for this query and unit; None if it is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A session that was charged for; ``home`` is the ledger that its charge is in. Public."""

    priced: Priced[Mechanism]
    issued: str
    home: str
    reservation: Reservation

    @property
    def query(self) -> Query:
        """What the session was opened for."""
        return self.priced.query

    @property
    def mechanism(self) -> Mechanism:
        """What it draws with."""
        return self.priced.mechanism

    @property
    def question(self) -> str:
        """The canonical form of what it answers."""
        return self.priced.question

    @property
    def charged(self) -> Budget:
        """What the whole session costs."""
        return self.reservation.cost


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SessionGate:
    """A vault as sessions see it: the one place where the charge of a session is made and its end is signed.

    ``queries`` are the classes that may be opened, ``what`` they are called in messages. Guarantee: nothing is read
    before the whole charge counts, and the charge is that of the mechanism that runs, for the unit of the vault.
    """

    notary: Notary
    declarations: Registry
    queries: tuple[type, ...]
    what: str
    counters: Counters = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counters", Counters(self.notary.ledger, what=self.what))

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.notary.unit

    def price(self, query: Query, mechanism: Mechanism, limit: Limit | None, spend: Budget) -> Priced[Mechanism]:
        """What a session would cost; refused where it could not be opened for any budget. Charges nothing."""
        return self._priced(query, mechanism, limit, spend)

    def open(
        self, query: Query, mechanism: Mechanism, limit: Limit | None, spend: Budget, *, idempotency: str | None
    ) -> Opened:
        """Charge a whole session before anything of it is read."""
        check_outside()
        priced = self._priced(query, mechanism, limit, spend)
        return self._opened(priced, self._found(priced, self.counters.charged, idempotency))

    def find(
        self,
        query: Query,
        mechanism: Mechanism,
        limit: Limit | None,
        spend: Budget,
        *,
        idempotency: str | None,
        charge: int | None,
    ) -> Opened:
        """Find the charge of a session again, under its key or by its number; charges nothing."""
        priced = self._priced(query, mechanism, limit, spend)
        return self._opened(priced, self._found(priced, partial(self.counters.found, number=charge), idempotency))

    def told(
        self,
        query: Query,
        mechanism: Mechanism,
        limit: Limit | None,
        spend: Budget,
        *,
        idempotency: str | None,
        charge: int | None = None,
    ) -> Release:
        """The release of a session that was closed, of a charge by its number if that is said; charges nothing."""
        priced = self._priced(query, mechanism, limit, spend)
        release = self._found(priced, partial(self.counters.told, number=charge), idempotency)
        if release is None:
            raise NotDeclared(f"no {self.what} like this was closed here; nothing was spent. Resume it, or open one.")
        return delivered_again(release)

    def close(self, opened: Opened, query: Query, values: tuple[int, ...]) -> Release:
        """Sign and store what a session told, then deliver it."""
        check_outside()
        return self.notary.stored(opened.priced, opened.reservation, query, (values, ()), issued=opened.issued)

    def secret(self, purpose: str) -> bytes:
        """32 bytes that only the holder of the vault's signing key can work out."""
        return derived_secret(self.notary.key, f"{self.what} {purpose}")

    def move(self, opened: Opened, serial: int, nonce: str) -> None:
        """Move the counter of a session forward, or refuse: another state has taken this place."""
        check_outside()
        self.counters.move(opened.reservation, opened.query.dataset, serial, nonce)

    def check(self, opened: Opened) -> None:
        """Refuse to go on where the charge of a session does not stand any more, or its dataset was closed."""
        check_outside()
        self.notary.ledger.check_running(opened.reservation, datasets=[opened.query.dataset])

    def fail(self, opened: Opened) -> bool:
        """Close the data of a session whose engine failed; False if it was closed already, which is then all to tell.

        Whether another one fails could reveal what a row holds, and so could how many of those under way fail.
        """
        return self.notary.ledger.close([opened.query.dataset], {})

    def _opened(self, priced: Priced[Mechanism], reservation: Reservation) -> Opened:
        return Opened(priced=priced, issued=now(), home=self.notary.ledger.home, reservation=reservation)

    def _priced(self, query: Query, mechanism: Mechanism, limit: Limit | None, spend: Budget) -> Priced[Mechanism]:
        """What a session costs, once its query and its mechanism were checked."""
        if type(query) not in self.queries or not isinstance(query, SessionQuery):
            raise Unsupported(f"this vault opens {self.what}s that it declared itself; nothing was read or spent.")
        if not self.declarations.lists(mechanism):
            raise Unsupported(
                f"the noise of a {self.what} is of this library's own kinds, and not of a class made from one; nothing "
                "was read or spent."
            )
        check_types(query, f"the {self.what}")
        check_types(mechanism, f"the mechanism of the {self.what}")
        problem = query.mismatch(mechanism, self.unit)
        if problem is not None:
            raise Refused(f"the mechanism of a {self.what} {problem}; nothing was read and nothing was spent.")
        return self.notary.priced(query, mechanism, limit, query.sensitivity(self.unit, limit), spend)

    def _found(self, priced: Priced[Mechanism], find: Callable[..., Found], key: str | None) -> Found:
        """What a method of the counters, which charges or looks up, finds for this price."""
        dataset = priced.query.dataset
        if self.notary.ledger.closed(dataset):
            raise Refused(f"{dataset.name!r} was closed; nothing was read and nothing was spent.")
        return find(priced.charge, dataset, event=priced.event, question=priced.question, key=key)
