"""What a ledger tells whoever runs it: one line for each entry, refusal and verification, without a value of the data.

The logger is ``sfumato.ledger`` of the standard library and says nothing unless somebody listens. What is said stands
in ``extra``, so that any formatter can write it: event, entry, account, ε and δ, seconds. No question, no certificate,
no reason and no message is ever among it.
"""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sfumato.governance.entries import AccountOpened, DatasetDeclared, Entry, PopulationDeclared, Recovered, Reserved

__all__ = ["LOGGER", "JsonLines", "entered", "happened", "log_to", "refused"]

LOGGER = logging.getLogger("sfumato.ledger")
LOGGER.addHandler(logging.NullHandler())
FIELDS = (
    *("event", "entry", "account", "population", "dataset", "charge", "epsilon", "delta"),
    *("entries", "findings", "error", "seconds"),
)


def happened(event: str, *, level: int = logging.INFO, **facts: str | int | float) -> None:
    """Say that something happened, with facts that are all in :data:`FIELDS`."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, extra={"event": event, **{name: facts[name] for name in FIELDS if name in facts}})


def entered(entry: Entry, number: int, seconds: float) -> None:
    """Say that an entry was written and anchored."""
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    facts: dict[str, str | int | float] = {"entry": number, "seconds": round(seconds, 6)}
    charge = getattr(entry, "charge", None)
    if charge is not None:
        facts["charge"] = charge
    match entry:
        case Reserved():
            facts["account"] = entry.account.name
        case AccountOpened():
            facts["account"] = entry.path
        case PopulationDeclared():
            facts["population"] = entry.name
        case DatasetDeclared():
            facts["dataset"] = entry.dataset.name
    amount = entry.gap if isinstance(entry, Recovered) else getattr(entry, "cost", None)
    if amount is not None:
        facts |= {"epsilon": str(amount.epsilon), "delta": str(amount.delta)}
    happened(entry.KIND, level=logging.INFO, **facts)


def refused(error: Exception, seconds: float) -> None:
    """Say that nothing was written, and the kind of error; its words are for who asked."""
    happened("ledger.refused", level=logging.WARNING, error=type(error).__name__, seconds=round(seconds, 6))


class JsonLines(logging.Formatter):
    """A line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """The time, the level and the facts."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        facts = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        return json.dumps({"at": at, "level": record.levelname.lower(), **facts}, ensure_ascii=False)


@contextmanager
def log_to(file: str | Path) -> Iterator[None]:
    """Append lines of JSON to a file that only its owner can read, until the block ends."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler, level = logging.FileHandler(file, encoding="utf-8", delay=True), LOGGER.level
    handler.setFormatter(JsonLines())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
        handler.close()
