"""Where streams are charged, counted and signed: what a vault keeps for them."""

import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sfumato.accounting.basic import cost, promised
from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.documents import Registry, canonical, check_types, encode
from sfumato.core.events import PrivacyEvent
from sfumato.core.interrupts import check_outside
from sfumato.core.ledger import AccountLedger
from sfumato.core.limits import Limit
from sfumato.core.query import Mechanism, Query
from sfumato.core.release import Presenter, Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.signature import SigningKey
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.errors import NotDeclared, Refused, Unsupported
from sfumato.streams.alarms import Alarms
from sfumato.streams.counters import Counters
from sfumato.streams.gate import Opened
from sfumato.streams.sealed import derived_secret
from sfumato.streams.total import RunningTotal
from sfumato.version import __version__

__all__ = ["Desk"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Desk:
    """A vault as streams see it: the one place where the charge of a stream is made and its end is signed.

    ``ledger`` is that of the vault, in memory or durable. Guarantee: nothing of a stream is read before its whole
    charge counts, and the charge is that of the mechanism that runs, for the unit of the vault.
    """

    unit: Unit
    ledger: AccountLedger
    key: SigningKey
    presenter: Presenter
    declarations: Registry
    queries: tuple[type, ...] = (RunningTotal, Alarms)
    what: str = "stream"
    counters: Counters = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counters", Counters(self.ledger, what=self.what))

    def open_stream(
        self, query: Query, mechanism: Mechanism, limit: Limit | None, spend: Budget, *, idempotency: str | None
    ) -> Opened:
        """Charge a whole stream before anything of it is read."""
        check_outside()
        return self._opened(query, mechanism, limit, spend, idempotency, self.counters.charged)

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
        return self._opened(query, mechanism, limit, spend, idempotency, partial(self.counters.found, number=charge))

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
        find = partial(self.counters.told, number=charge)
        release: Release | None = self._found(query, mechanism, limit, spend, idempotency, find)[-1]
        if release is None:
            raise NotDeclared(f"no {self.what} like this was closed here; nothing was spent. Resume it, or open one.")
        return replace(release, charged=Budget.none(), repeated=True)

    def close_stream(self, opened: Opened, query: Query, values: tuple[int, ...]) -> Release:
        """Sign and store what a stream told, then deliver it."""
        check_outside()
        statement = Statement(
            identifier=secrets.token_hex(16),
            issued=opened.issued,
            code=f"sfumato {__version__}",
            dataset=query.dataset,
            unit=self.unit,
            limit=opened.limit,
            query=query,
            sensitivity=opened.sensitivity,
            mechanism=opened.mechanism,
            law=opened.mechanism.law,
            event=opened.event,
            guarantee=opened.guarantee,
            spend=opened.reservation.cost,
            account=opened.reservation.account,
            values=values,
        )
        release = Release(
            statement=statement,
            certificate=Certificate.sign(statement, self.key),
            charged=opened.reservation.cost,
            repeated=False,
            presenter=self.presenter,
        )
        self.ledger.commit(opened.reservation, opened.question, release)
        return release

    def stream_secret(self, purpose: str) -> bytes:
        """32 bytes that only the holder of the vault's signing key can work out."""
        return derived_secret(self.key, f"{self.what} {purpose}")

    def move_stream(self, opened: Opened, serial: int, nonce: str) -> None:
        """Move the counter of a stream forward, or refuse: another state has taken this place."""
        check_outside()
        self.counters.move(opened.reservation, opened.query.dataset, serial, nonce)

    def check_stream(self, opened: Opened) -> None:
        """Refuse to go on where the charge of a stream does not stand any more, or its dataset was closed."""
        check_outside()
        self.ledger.check_running(opened.reservation, datasets=[opened.query.dataset])

    def fail_stream(self, opened: Opened) -> bool:
        """Close the data of a stream whose engine failed; False if it was closed already, which is then all to tell.

        Whether another one fails could tell what a row holds, and so could how many of those under way fail.
        """
        return self.ledger.close([opened.query.dataset], {})

    def _opened(
        self, query: Query, mechanism: Mechanism, limit: Limit | None, spend: Budget, key: str | None, find: Any
    ) -> Opened:
        sensitivity, event, guarantee, question, reservation = self._found(query, mechanism, limit, spend, key, find)
        return Opened(
            query=query,
            limit=limit,
            sensitivity=sensitivity,
            mechanism=mechanism,
            event=event,
            guarantee=guarantee,
            question=question,
            issued=datetime.now(UTC).isoformat(timespec="seconds"),
            home=self.ledger.home,
            reservation=reservation,
        )

    def _found(
        self, query: Query, mechanism: Mechanism, limit: Limit | None, spend: Budget, key: str | None, find: Any
    ) -> tuple[Sensitivity, PrivacyEvent, Any, str, Any]:
        """Work out what a stream costs and hand it to ``find``: a method of the counters that charges, or looks up."""
        if type(query) not in self.queries:
            raise Unsupported(f"this vault opens {self.what}s that it declared itself; nothing was read or spent.")
        if not self.declarations.lists(mechanism):
            raise Unsupported(
                f"the noise of a {self.what} is of this library's own kinds, and not of a class made from one; nothing "
                "was read or spent."
            )
        check_types(query, f"the {self.what}")
        check_types(mechanism, f"the mechanism of the {self.what}")
        problem = query.mismatch(mechanism, self.unit)  # type: ignore[attr-defined]
        if problem is not None:
            raise Refused(f"the mechanism of a {self.what} {problem}; nothing was read and nothing was spent.")
        sensitivity = query.sensitivity(self.unit, limit)
        event = mechanism.loss(sensitivity)
        guarantee = promised(event, spend)
        charge = cost(guarantee)
        question = canonical([encode(part) for part in (query, self.unit, limit, charge, mechanism)])
        if self.ledger.closed(query.dataset):
            raise Refused(f"{query.dataset.name!r} was closed; nothing was read and nothing was spent.")
        found = find(charge, query.dataset, event=event, question=question, key=key)
        return sensitivity, event, guarantee, question, found
