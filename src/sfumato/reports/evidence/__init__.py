"""The evidence pack: what an auditor asks for, gathered from the record of a ledger; it gives no verdict."""

from sfumato.reports.evidence.declared import Declared
from sfumato.reports.evidence.folder import write
from sfumato.reports.evidence.pack import Pack, Scope, pack

__all__ = ["Declared", "Pack", "Scope", "pack", "write"]
