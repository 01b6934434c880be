"""One release, from its charge to its delivery: the only code that reads for a question and draws its noise."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sfumato.core.area import Area
from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.events import PrivacyEvent
from sfumato.core.guarantees import Guarantee
from sfumato.core.interrupts import FAILED, attempt
from sfumato.core.ledger import AccountLedger
from sfumato.core.limits import Limit
from sfumato.core.query import Answer, Dataset, DrawnMechanism, Query
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.signature import SigningKey
from sfumato.core.statement import Statement
from sfumato.core.units import Unit
from sfumato.errors import EngineFailed, LedgerError, Refused
from sfumato.noise import SystemWords
from sfumato.reports.presenter import Reports
from sfumato.reports.waiting import waiting
from sfumato.version import __version__

__all__ = ["Asked", "released"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with all that follows from its declaration; nothing was read for it."""

    query: Query
    area: Area[Any]
    unit: Unit
    limit: Limit | None
    private: Sequence[Dataset]
    derived: tuple[Dataset, ...]
    sensitivity: Sensitivity
    mechanism: DrawnMechanism
    event: PrivacyEvent
    guarantee: Guarantee
    charge: Budget
    question: str


def released(
    asked: Asked,
    *,
    ledger: AccountLedger,
    key: SigningKey,
    idempotency: str | None,
    reads: tuple[str, str] | None,
) -> Release:
    """Charge, read, draw, sign, store; then deliver.

    Guarantee: no row is read before the charge counts, and nothing is delivered before it is stored. A failure keeps
    the charge and closes the data; a real Ctrl-C keeps the charge and closes nothing. Sensitive: what is read.
    """
    query, private, mechanism, question = asked.query, asked.private, asked.mechanism, asked.question
    closed = next((dataset for dataset in private if ledger.closed(dataset)), None)
    if closed is not None:
        raise Refused(
            f"{closed.name!r} was closed after its engine failed: whether another question fails could tell "
            "what a row holds. Nothing was read and nothing was spent. Mend the data and declare a new version."
        )
    asked.area.check_fit(query)
    stored = asked.area.stored(query)
    for dataset, what in stored.items():
        if ledger.shut(dataset, what):
            raise Refused(
                f"what {dataset.name!r} reads was closed under another name, after its engine failed: whether another "
                "question fails could tell what a row holds. Nothing was read and nothing was spent. Mend the data and "
                "declare a new version."
            )

    reservation = ledger.reserve(
        asked.charge,
        datasets=private,
        event=asked.event,
        idempotency=idempotency,
        lasts=_lasts(idempotency),
        reads=reads,
        question=question,
    )
    given = None if idempotency is None else ledger.given(reservation)
    if given is not None:
        return given
    issued = datetime.now(UTC).isoformat(timespec="seconds")
    answer = _noisy(asked.area, query, mechanism)
    if answer is None and ledger.close(private, stored):
        raise EngineFailed(
            f"the engine stopped while it read {query.dataset.name!r}. Rows may have been read, so the charge of "
            f"{reservation.cost} is kept; no number was released, and this version of the data is closed. "
            "Check the data, then declare it as a new version."
        )
    # Of questions that are asked at once, one tells that it failed: what became of the others would tell more.
    if answer is None or any(ledger.closed(each) for each in private) or any(map(ledger.shut, stored, stored.values())):
        raise Refused(
            f"what {query.dataset.name!r} reads was closed meanwhile, after its engine failed. The charge of "
            f"{reservation.cost} is kept; no number was released. Mend the data and declare a new version."
        )
    statement = Statement(
        identifier=secrets.token_hex(16),
        issued=issued,
        code=f"sfumato {__version__}",
        dataset=query.dataset,
        unit=asked.unit,
        limit=asked.limit,
        query=query,
        sensitivity=asked.sensitivity,
        mechanism=mechanism,
        law=mechanism.law,
        event=asked.event,
        guarantee=asked.guarantee,
        spend=reservation.cost,
        account=reservation.account,
        values=answer[0],
        found=answer[1],
        derived=asked.derived,
    )
    release = Release(
        statement=statement,
        certificate=Certificate.sign(statement, key),
        charged=reservation.cost,
        repeated=False,
        presenter=Reports(),
    )
    try:
        ledger.commit(reservation, question, release)
    except LedgerError:
        given = None if idempotency is None else ledger.given(reservation)
        if given is None:
            raise
        return given  # another process finished the same request first: its answer is the one that counts
    return release


def _noisy(area: Area[Any], query: Query, mechanism: DrawnMechanism) -> Answer | None:
    """Read and draw; None where that failed. Exact numbers, and an engine's words that may quote data, end here.

    A real Ctrl-C is no failure of the engine: it ends in ``KeyboardInterrupt``, the charge counts and the data stay
    open. Nothing else that is raised leaves, whatever its class.
    """

    def answered() -> Answer:
        with waiting(f"reading {query.dataset.name}"):
            exact = area.read(query)
        return mechanism.draw(exact, SystemWords())

    answer = attempt(answered)
    return None if answer is FAILED else answer


def _lasts(idempotency: str | None) -> timedelta | None:
    """When a charge without an answer is stale; one that a retry may still finish never is."""
    return timedelta(days=1) if idempotency is None else None
