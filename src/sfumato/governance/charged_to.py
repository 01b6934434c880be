"""The account of a durable ledger that a vault charges, however the ledger was named."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.governance.durable import DurableLedger
    from sfumato.governance.ledger import Ledger

__all__ = ["charged_to"]


def charged_to(
    ledger: "Ledger | str | Path",
    account: str | None,
    unit: Unit,
    *,
    reader: Callable[[str], Release],
    key: SigningKey | str | Path | None,
    anchor: str | Path | None,
    purpose: str | None,
    recipient: str | None,
    reads: tuple[str, str] | None = None,
) -> "DurableLedger":
    """The account of an open ledger, or of one that is opened here; ``reader`` reads the releases it stored."""
    from sfumato.governance import settings
    from sfumato.governance.ledger import Ledger

    if account is None:
        raise NotDeclared("a ledger has many accounts; nothing was done. Say account='institution/department/project'.")
    if not isinstance(ledger, Ledger):
        by_settings = "://" not in str(ledger) and settings.file_of(ledger).is_file()
        if anchor is None and (key is None or by_settings):
            ledger = settings.opened(ledger)  # its own key charges; one that is given here signs certificates
        elif key is None or anchor is None:
            raise NotDeclared(
                "a ledger is opened by its settings file, or with its key and its anchor; nothing was done. "
                "Say key=…, anchor=…."
            )
        else:
            ledger = Ledger.open(ledger, key=key, anchor=anchor)
    elif anchor is not None:
        raise InvalidInput("an open ledger has its anchor already; nothing was done. Leave anchor out.")
    return ledger.account(account, unit=unit, reader=reader, purpose=purpose, recipient=recipient, reads=reads)
