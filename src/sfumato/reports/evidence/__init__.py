"""The evidence pack: what an auditor asks for, gathered from the record of a ledger; it gives no verdict."""
