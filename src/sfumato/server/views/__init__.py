"""What pages show of ledger, board and releases, as frozen values; nothing here knows the web, or reads data."""
