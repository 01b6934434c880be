"""From a declaration to its price, and from an answer to a stored release: the one code path of all releases."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from sfumato.accounting.basic import cost, guarantee_of
from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.documents import canonical, encode
from sfumato.core.events import PrivacyEvent
from sfumato.core.guarantees import Guarantee
from sfumato.core.ledger import AccountLedger, Reservation
from sfumato.core.limits import Limit
from sfumato.core.query import Answer, Dataset, Mechanism, Query
from sfumato.core.release import Presenter, Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.signature import SigningKey
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.version import __version__

__all__ = ["Notary", "Priced", "now"]

Noise = TypeVar("Noise", bound=Mechanism)
Noise_co = TypeVar("Noise_co", bound=Mechanism, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced(Generic[Noise_co]):
    """A query with all that follows from its declaration; nothing was read for it. Public.

    ``question`` is its canonical form: the same question is charged once.
    """

    query: Query
    limit: Limit | None
    derived: tuple[Dataset, ...]
    sensitivity: Sensitivity
    mechanism: Noise_co
    event: PrivacyEvent
    guarantee: Guarantee
    charge: Budget
    question: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Notary:
    """Who prices, signs and stores: the unit that is protected, the account that is charged, and the key that signs.

    Guarantee: the charge is that of the mechanism that runs, for the unit of the vault; what is signed states that very
    charge; nothing is returned before it is stored. ``presenter`` is handed to every release.
    """

    unit: Unit
    ledger: AccountLedger
    key: SigningKey
    presenter: Presenter

    def priced(
        self,
        query: Query,
        mechanism: Noise,
        limit: Limit | None,
        sensitivity: Sensitivity,
        spend: Budget,
        derived: Sequence[Dataset] = (),
    ) -> Priced[Noise]:
        """Loss, guarantee, charge and canonical question, from public facts alone."""
        event = mechanism.loss(sensitivity)
        guarantee = guarantee_of(event, spend)
        charge = cost(guarantee)
        held = None if limit is None else limit.without_words  # words are no part of a question
        parts = (query, self.unit, held, charge, mechanism, *([tuple(derived)] if derived else []))
        return Priced(
            query=query,
            limit=limit,
            derived=tuple(derived),
            sensitivity=sensitivity,
            mechanism=mechanism,
            event=event,
            guarantee=guarantee,
            charge=charge,
            question=canonical([encode(part) for part in parts]),
        )

    def stored(
        self, priced: Priced[Mechanism], reservation: Reservation, query: Query, answer: Answer, *, issued: str
    ) -> Release:
        """Sign an answer and store it with its settled charge; only then may it be delivered.

        ``query`` is the one that was priced, with what a session adds to it at its end.
        """
        statement = Statement(
            identifier=secrets.token_hex(16),
            issued=issued,
            code=f"sfumato {__version__}",
            dataset=query.dataset,
            unit=self.unit,
            limit=priced.limit,
            query=query,
            sensitivity=priced.sensitivity,
            mechanism=priced.mechanism,
            law=priced.mechanism.law,
            event=priced.event,
            guarantee=priced.guarantee,
            spend=reservation.cost,
            account=reservation.account,
            values=answer[0],
            found=answer[1],
            derived=priced.derived,
            reads=reservation.reads,
        )
        release = Release(
            statement=statement,
            certificate=Certificate.sign(statement, self.key),
            charged=reservation.cost,
            repeated=False,
            presenter=self.presenter,
        )
        self.ledger.commit(reservation, priced.question, release)
        return release


def now() -> str:
    """The time that a statement says it was issued at."""
    return datetime.now(UTC).isoformat(timespec="seconds")
