"""The owner process: it alone holds the key, the anchor and the database of a ledger, and vaults speak to it.

``messages`` are what is said, ``frames`` how it travels, ``served`` what one connection may do, ``server`` the process,
``client`` the account as a vault of another process charges it. Why: docs/decisions/0031-one-owner-process.md.
"""
