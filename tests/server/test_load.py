"""Fifty analysts, and a service that is killed again and again: nothing is overspent, lost or charged twice."""

import os
import socket
from pathlib import Path

import pytest

from sfumato.governance import settings as ledger_settings
from tests import parts
from tests.server.load import CAP, Window, checked, furnished, running, visited

parts.package("uvicorn")
SECONDS = 100.0 if os.environ.get("SFUMATO_LONG") else 40.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.long
@pytest.mark.no_cover
def test_a_service_that_is_killed_under_load_loses_and_overspends_nothing(tmp_path: Path) -> None:
    made = furnished(tmp_path / "service", free_port(), analysts=50)
    with running(made) as again:
        tally = visited(made, Window(seconds=SECONDS, think=5.0, asking=0.15), again=again)
    assert tally.faults == []
    assert tally.kills >= 1
    assert len(tally.released) >= 5
    ledger = ledger_settings.opened(made.folder)
    try:
        assert 0 < checked(ledger, tally) <= 2 * CAP.epsilon
    finally:
        ledger.close()
