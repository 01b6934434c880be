"""Releases that a ledger stored, read again: only what verifies is delivered."""

from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.release import Release
from sfumato.errors import LedgerError
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.presenter import Reports
from sfumato.reports.verify import parsed, verify

__all__ = ["stored_release"]


def stored_release(text: str) -> Release:
    """A release from the text of its certificate, as a ledger stored it."""
    document = parsed(text)
    outcome = verify(document)
    if not outcome.consistent:
        raise LedgerError(f"a stored answer does not verify and was not delivered.\n{outcome}")
    return Release(
        statement=DECLARATIONS.decode(document["statement"], "statement"),
        certificate=Certificate(text),
        charged=Budget.none(),
        repeated=True,
        presenter=Reports(),
    )
