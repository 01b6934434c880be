"""A process of its own that asks one question, and says when it has begun to read."""

import os
import threading
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.core.release import Release
from sfumato.tables.store import TableStore
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home

ROWS = pa.table({"patient_id": ["a", "a", "b", "c"], "region": ["north", "south", "north", "west"]})


def asked(home: Home, *, region: str = "north", **how: Any) -> Release:
    """The answer to the question, from the ledger at a place."""
    vault = sf.Vault(unit=PATIENT, ledger=home.socket or home.open(), account=ACCOUNT, key=home.key)
    limit = sf.Limit(groups=2, rows_per_group=1)
    visits = vault.table(ROWS, name=VISITS.name, version=VISITS.edition, limit=limit)
    return visits.where(sf.col("region") == region).count().release(epsilon="1/10", **how)


def ask(home: Home, told: Any, begun: Any, go_on: Any, end: str) -> None:
    """Ask, and stay in the middle of reading until told to go on; then read, fail, or be killed there."""
    read = TableStore.read

    def slowly(self: TableStore, query: Any) -> Any:
        begun.set()
        go_on.wait(60)
        threading.Event().wait(0.3)  # until who asks the same waits
        if end == "killed":
            os._exit(9)
        if end == "fails":
            raise ValueError("an engine's words")
        return read(self, query)

    TableStore.read = slowly  # type: ignore[method-assign]
    try:
        release = asked(home)
    except sf.errors.SfumatoError as refused:
        told.put((type(refused).__name__, ""))
    else:
        told.put((release.repeated, release.certificate.text))
