"""Governance: the ledger that keeps all releases together within what was allowed."""

from sfumato.governance.memory import MemoryLedger, Reservation

__all__ = ["MemoryLedger", "Reservation"]
