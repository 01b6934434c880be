"""Governance: the ledger that keeps all releases together within what was allowed."""

from sfumato.core.ledger import Reservation
from sfumato.governance.memory import MemoryLedger

__all__ = ["MemoryLedger", "Reservation"]
